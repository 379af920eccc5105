//! A section of call markup: calls between markers, and what else may stand there.
//!
//! Nothing is written until the first call (or junk that a marker closes) shows that this is a
//! section; until then it may still be text that only names a marker.

use turnwarden_cleanup::{Fence, Found, closing_fence, fence_closes_at};

use crate::FaultKind;
use crate::calls::fault;
use crate::grammars::{Begin, Context, Input, Item, Read};
use crate::machine::{Flow, Machine, State};
use crate::markers::{Hit, Look, MarkerId};
use crate::plan::{Entry, SyntaxId};
use crate::scan::Stop;

/// A section that is being read.
#[derive(Debug)]
pub(crate) struct Block {
    /// The marker that opened it.
    open: Hit,
    /// Where the scan goes on if this is no section.
    behind: usize,
    /// What it may be.
    syntaxes: Vec<SyntaxId>,
    /// Where the next item is looked for.
    at: usize,
    item: Option<(SyntaxId, Item)>,
    /// Whether anything was found that makes it a section.
    committed: bool,
    /// Where text begins that is no item, and how far a marker was looked for after it.
    junk: Option<(Junk, usize)>,
    /// The fence that is the section.
    fence: Option<Fence>,
}

#[derive(Clone, Copy, Debug)]
struct Junk {
    start: usize,
    kind: FaultKind,
}

impl Block {
    /// A section that `open` begins; `is_call`: the marker opens a call of its own.
    pub(crate) fn new(
        mut open: Hit,
        syntaxes: Vec<SyntaxId>,
        is_call: bool,
        input: Input<'_>,
    ) -> Self {
        let behind = open.end;
        if is_call {
            open.end = open.start;
        } else if input.slice(0, open.end).ends_with(['[', '{']) {
            // The payload's own bracket is part of the marker.
            open.end -= 1;
        }
        Self {
            open,
            behind,
            syntaxes,
            at: open.end,
            item: None,
            committed: false,
            junk: None,
            fence: None,
        }
    }

    /// A section that is fenced code.
    pub(crate) fn fenced(fence: Fence, syntax: SyntaxId) -> Self {
        let open = Hit {
            id: MarkerId::MAX,
            start: fence.start,
            end: fence.body,
        };
        Self {
            open,
            behind: fence.body,
            syntaxes: vec![syntax],
            at: fence.body,
            item: None,
            committed: false,
            junk: None,
            fence: Some(fence),
        }
    }
}

impl Block {
    /// Passes over what is no item: from `start` on, and read in vain up to `end`.
    fn skip(&mut self, kind: FaultKind, start: usize, end: usize) {
        self.at = start;
        self.junk = Some((Junk { start, kind }, end.max(start + 1)));
    }
}

/// What stands at some place in a section.
enum Next {
    Closer(Hit),
    Opener(Hit),
    Item(SyntaxId, Item),
    Junk,
    Wait,
}

/// How far the current item was read.
enum ItemRead {
    Wait,
    /// There is none, or no longer.
    Over,
    /// What it is shows that the marker before it opened no section.
    NoSection,
}

impl Machine {
    pub(crate) fn block(&mut self, mut block: Box<Block>, input: Input<'_>) -> Flow {
        loop {
            match self.read_item(&mut block, input) {
                ItemRead::Wait => {
                    self.tell_open_call(&block);
                    self.state = State::Block(block);
                    return Flow::Wait;
                }
                ItemRead::NoSection => {
                    self.scan = block.behind;
                    return Flow::Go;
                }
                ItemRead::Over => {}
            }
            if block.junk.is_some() {
                return self.junk(block, input);
            }
            let at = after_separators(input, block.at, block.committed);
            if at == input.text.len() {
                if !input.last {
                    self.state = State::Block(block);
                    return Flow::Wait;
                }
                return self.leave(&block, block.at);
            }
            let fence_end = block.fence.as_ref().map(|fence| {
                let run = input.rest(at).starts_with(char::from(fence.mark));
                if run {
                    fence_closes_at(input.bytes(), at, fence, input.last)
                } else {
                    Found::Nowhere
                }
            });
            match fence_end {
                Some(Found::At(start, end)) => {
                    if block.committed {
                        self.out.cut_from_cleaned(start, end);
                    }
                    return self.leave(&block, end);
                }
                Some(Found::Unknown(_)) => {
                    self.state = State::Block(block);
                    return Flow::Wait;
                }
                Some(Found::Nowhere) | None => {}
            }
            match self.next_in(&block, at, input) {
                Next::Wait => {
                    self.state = State::Block(block);
                    return Flow::Wait;
                }
                Next::Closer(hit) => {
                    self.commit(&mut block, input);
                    return self.leave(&block, hit.end);
                }
                Next::Opener(hit) => block.at = hit.end,
                Next::Item(syntax, item) => block.item = Some((syntax, item)),
                Next::Junk if block.committed && !self.closes(&block) => {
                    return self.leave(&block, block.at);
                }
                Next::Junk => {
                    let junk = Junk {
                        start: at,
                        kind: FaultKind::Junk,
                    };
                    let past = input.rest(at).chars().next().map_or(1, char::len_utf8);
                    block.junk = Some((junk, at + past));
                }
            }
        }
    }

    /// Reads on in the current item.
    fn read_item(&mut self, block: &mut Block, input: Input<'_>) -> ItemRead {
        let Some((syntax, item)) = &mut block.item else {
            return ItemRead::Over;
        };
        let syntax = *syntax;
        let mut drafts = Vec::new();
        let shared = std::sync::Arc::clone(&self.shared);
        let Some(entry) = shared.plan.entry(syntax) else {
            return ItemRead::Over;
        };
        let context = Context {
            plan: &shared.plan,
            entry,
            rules: Self::rules(&shared),
        };
        let read = item.read(context, input, &mut drafts);
        if matches!(read, Read::Done(_) | Read::Failed(..)) {
            let repairs = item.repairs().to_vec();
            self.out.repairs(repairs);
        }
        for draft in drafts {
            let recovering = self.reasoning.as_ref().is_some_and(|open| open.recovering);
            if recovering && !draft.complete {
                continue;
            }
            block.syntaxes = vec![syntax];
            self.commit(block, input);
            self.accept(draft, syntax);
        }
        match read {
            Read::Wait => return ItemRead::Wait,
            Read::Text(span) if !block.committed => {
                // What was read once is not read again: it may hold the marker itself.
                block.behind = block.behind.max(span.end);
                if span.end == input.text.len() && input.last {
                    self.hopeless.push(block.syntaxes.clone());
                }
                return ItemRead::NoSection;
            }
            Read::Done(end) => block.at = end,
            Read::Text(span) => block.skip(FaultKind::Junk, span.start, span.start),
            Read::Failed(kind, span) => block.skip(kind, span.start, span.end),
        }
        block.item = None;
        ItemRead::Over
    }

    /// Tells what is known of the call that is being read, where values are passed on at once.
    fn tell_open_call(&mut self, block: &Block) {
        if self.shared.options.buffer_arguments {
            return;
        }
        let certain = block.committed || block.fence.is_none() && self.done >= block.open.start;
        let Some((syntax, item)) = block.item.as_ref().filter(|_| certain) else {
            return;
        };
        let shared = std::sync::Arc::clone(&self.shared);
        let body = shared.plan.entry(*syntax).map(|entry| &entry.syntax.body);
        if let Some((at, open)) = body.and_then(|body| item.open_call(body)) {
            self.pass_on(at, &open);
        }
    }

    /// What stands at `at`: an end, another beginning, an item, or nothing of that.
    fn next_in(&self, block: &Block, at: usize, input: Input<'_>) -> Next {
        let wanted = |id: MarkerId| {
            self.entries(block)
                .any(|entry| entry.bounds_section(id) || entry.inner.open.contains(&id))
        };
        let look = self
            .shared
            .plan
            .markers
            .look_from(input.bytes(), at, input.last, wanted);
        match look {
            Look::Hit(hit) if self.entries(block).any(|e| e.close.contains(&hit.id)) => {
                return Next::Closer(hit);
            }
            Look::Hit(hit) if self.opens_calls(block, hit) => {}
            Look::Hit(hit) => return Next::Opener(hit),
            Look::Partial(_) => return Next::Wait,
            Look::Nothing => {}
        }
        for syntax in &block.syntaxes {
            let Some(entry) = self.shared.plan.entry(*syntax) else {
                continue;
            };
            let context = Context {
                plan: &self.shared.plan,
                entry,
                rules: Self::rules(&self.shared),
            };
            match Item::begin(context, input, at, block.at) {
                Begin::Yes(item) => return Next::Item(*syntax, item),
                Begin::Wait => return Next::Wait,
                Begin::No => {}
            }
        }
        Next::Junk
    }

    fn entries<'a>(&'a self, block: &'a Block) -> impl Iterator<Item = &'a Entry> {
        block
            .syntaxes
            .iter()
            .filter_map(|syntax| self.shared.plan.entry(*syntax))
    }

    /// Whether a marker of the section opens a call of its own.
    fn opens_calls(&self, block: &Block, hit: Hit) -> bool {
        self.entries(block)
            .any(|entry| entry.inner.open.contains(&hit.id))
    }

    /// Whether anything closes a section of this kind.
    fn closes(&self, block: &Block) -> bool {
        self.entries(block).any(|entry| !entry.close.is_empty())
    }

    /// Text that is no item: a fault once a marker of the section follows, else no part of it.
    fn junk(&mut self, mut block: Box<Block>, input: Input<'_>) -> Flow {
        let Some((junk, from)) = block.junk else {
            return Flow::Go;
        };
        if block.fence.is_some() {
            return self.junk_in_fence(block, junk, from, input);
        }
        match self.marker_of(&block, from, input) {
            Look::Hit(hit) => {
                self.commit(&mut block, input);
                let end = input.slice(junk.start, hit.start).trim_end().len() + junk.start;
                if junk.start > self.done {
                    self.markup(junk.start);
                }
                self.out.fault(fault(junk.kind, junk.start, None));
                self.out.fault_span(self.done, end);
                self.done = self.done.max(end);
                block.junk = None;
                block.at = hit.start;
                self.state = State::Block(block);
                Flow::Go
            }
            Look::Partial(start) => {
                block.junk = Some((junk, start));
                self.state = State::Block(block);
                Flow::Wait
            }
            Look::Nothing if !input.last => {
                block.junk = Some((junk, input.text.len()));
                self.state = State::Block(block);
                Flow::Wait
            }
            Look::Nothing => self.leave(&block, junk.start),
        }
    }

    /// Text in fenced calls that is no item: a fault up to the end of the fence.
    fn junk_in_fence(
        &mut self,
        mut block: Box<Block>,
        junk: Junk,
        from: usize,
        input: Input<'_>,
    ) -> Flow {
        let Some(fence) = block.fence.filter(|_| block.committed) else {
            return self.leave(&block, junk.start);
        };
        let end = match closing_fence(input.bytes(), from, &fence, input.last) {
            Found::Unknown(resume) => {
                block.junk = Some((junk, resume));
                self.state = State::Block(block);
                return Flow::Wait;
            }
            Found::At(start, _) => start,
            Found::Nowhere => input.text.len(),
        };
        let end = junk.start + input.slice(junk.start, end).trim_end().len();
        self.markup(junk.start);
        self.out.fault(fault(junk.kind, junk.start, None));
        self.out.fault_span(self.done, end);
        self.done = self.done.max(end);
        block.junk = None;
        block.at = end;
        self.state = State::Block(block);
        Flow::Go
    }

    /// The next marker that belongs to the section.
    fn marker_of(&mut self, block: &Block, mut from: usize, input: Input<'_>) -> Look {
        let shared = std::sync::Arc::clone(&self.shared);
        let markers = &shared.plan.markers;
        let begin = from;
        loop {
            // One search for the whole reply: a section of its own would search all of it again.
            let stop = self.stops.next(markers, input.bytes(), from, false);
            let Some(stop) = stop else {
                return match markers.unfinished(input.bytes()) {
                    Some(start) if !input.last => Look::Partial(start.max(from)),
                    _ => Look::Nothing,
                };
            };
            let at = stop.at();
            let wanted = |id: MarkerId| {
                self.entries(block)
                    .any(|entry| entry.bounds_section(id) || entry.inner.open.contains(&id))
            };
            if let Stop::Marker(hit) = stop
                && hit.start >= begin
                && wanted(hit.id)
            {
                return Look::Hit(hit);
            }
            match markers.look(input.bytes(), at, input.last, wanted) {
                // A marker that begins in what is known to be junk would be met again for ever.
                Look::Hit(hit) if hit.start >= begin => return Look::Hit(hit),
                Look::Partial(start) => return Look::Partial(start.max(begin)),
                Look::Hit(_) | Look::Nothing => from = at + 1,
            }
        }
    }

    /// The section is one: its beginning is markup, and what surrounds it is settled.
    fn commit(&mut self, block: &mut Block, input: Input<'_>) {
        if std::mem::replace(&mut block.committed, true) {
            return;
        }
        if self.reasoning.is_none() {
            self.settle_as_payload(input);
        }
        self.markup(block.open.end);
        if block.fence.is_some() {
            self.out.cut_from_cleaned(block.open.start, block.open.end);
        }
        self.after_reasoning = false;
    }

    /// Leaves the section at `end`; what was no section is text.
    fn leave(&mut self, block: &Block, end: usize) -> Flow {
        if !block.committed {
            self.scan = block.behind;
            match block.fence {
                Some(fence) => self.state = State::Code(fence, fence.body),
                None => self.hopeless.push(block.syntaxes.clone()),
            }
            return Flow::Go;
        }
        self.markup(end);
        self.scan = end.max(self.done);
        if let Some(reasoning) = &mut self.reasoning {
            reasoning.start = reasoning.start.min(end);
            self.out.close_reasoning();
            self.out.open_reasoning();
        }
        Flow::Go
    }
}

/// Passes over white space, and after an item over what may separate two of them.
fn after_separators(input: Input<'_>, from: usize, after_item: bool) -> usize {
    let at = input.after_space(from);
    if after_item && matches!(input.bytes().get(at), Some(b',' | b';')) {
        return input.after_space(at + 1);
    }
    at
}
