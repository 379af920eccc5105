//! JSON outside call markup, which is a payload only when it says so: workflow JSON, and objects
//! and arrays of calls that are the whole reply or stand in a fence.

use crate::calls::Draft;
use crate::formats::{Body, UNMARKED};
use crate::grammars::Input;
use crate::grammars::json::draft;
use crate::json::{Error, FirstRepair, Kind, RepairKind, Status};
use crate::machine::{FenceFate, Flow, Machine, Pending, Saved, State};
use crate::native;
use crate::plan::SyntaxId;
use crate::prose::Wait;
use crate::reading::Reading;
use crate::workflow::{Progress, is_list};
use crate::{Repair, Span};

/// How much of JSON in prose is read before its first keys are looked at.
const FIRST_WINDOW: usize = 32;
/// From how much on JSON in prose is given up where a window of it brings nothing.
const LONGEST_WAIT: usize = 256;
/// Marks of quotes before a key.
const LONGEST_QUOTE: usize = 4;
/// Longest key without quotes at which an object is recognised.
const LONGEST_BARE_KEY: usize = 64;

/// Keys that leave open whether an object is a call, workflow JSON or a native message.
const TELLING_KEYS: &[&str] = &[
    "content",
    "next",
    "name",
    "mcp",
    "arguments",
    "args",
    "params",
    "parameters",
    "input",
    "type",
    "id",
    "function",
    "tool_calls",
    "function_call",
    "role",
    "output",
    "candidates",
    "choices",
    "parts",
    "functionCall",
    "function_call_id",
    "call_id",
    "tool_call_id",
    "index",
    "thought",
    "thoughts",
    "thinking",
    "reasoning",
    "reason",
    "explanation",
    "object",
    "model",
    "created",
    "message",
    "tool",
    "tool_name",
    "action",
    "action_input",
    "status",
    "created_at",
];

/// Where JSON stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing visible stands before it.
    Whole,
    /// First in a fence that may hold a payload; `first`: nothing visible stands before the fence.
    Fence { first: bool },
    /// Within text.
    Prose,
}

impl Place {
    /// Whether it may be the whole reply after cleanup.
    pub(crate) fn is_first(self) -> bool {
        matches!(self, Self::Whole | Self::Fence { first: true })
    }
}

/// JSON that may be a payload.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) place: Place,
    pub(crate) start: usize,
    /// Comments that stand before it in its fence.
    comments: Vec<usize>,
    pub(crate) reading: Reading,
    /// How much of JSON in prose is read at once.
    window: usize,
    /// How much of the output there was at the end of the last window.
    written: usize,
    /// The members that have been looked at.
    seen: usize,
    phase: Phase,
    /// Whether the first key is a string `content` that holds no array.
    content_first: bool,
    /// The list `next`, by the number of its member.
    next: Option<usize>,
    /// The output before this JSON.
    saved: Saved,
}

/// How much of a candidate was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    All,
    /// Up to the end of a window.
    Window,
    /// Up to the end of a window, here, and it brought nothing.
    Stuck(usize),
}

#[derive(Debug)]
enum Phase {
    /// Held back.
    Open,
    /// Its keys make it an unlikely payload: it goes out as text while it is read on.
    LetGo,
    /// Workflow JSON.
    Workflow(Progress),
}

impl Candidate {
    /// JSON at `at`, if an object or array may begin there that may be a payload.
    pub(crate) fn begin(
        machine: &Machine,
        place: Place,
        at: usize,
        input: Input<'_>,
    ) -> Result<Option<Self>, Wait> {
        if at < machine.no_json_before
            || !machine.reads_json(place)
            || !looks_like_payload(place, at, input)?
        {
            return Ok(None);
        }
        let plan = machine.plan();
        let in_fence = matches!(place, Place::Fence { .. });
        let closers = if in_fence {
            &plan.fence_closers
        } else {
            &plan.no_closers
        };
        Ok(Some(Self {
            place,
            start: at,
            comments: Vec::new(),
            reading: Reading::new(Machine::rules(&machine.shared), closers, in_fence, at),
            window: FIRST_WINDOW,
            written: 0,
            seen: 0,
            phase: Phase::Open,
            content_first: false,
            next: None,
            saved: Saved::default(),
        }))
    }

    /// The same JSON, behind comments.
    pub(crate) fn behind(self, comments: Vec<usize>) -> Self {
        Self { comments, ..self }
    }

    /// Whether it is workflow JSON and its text is being read, or what stands before its calls.
    pub(crate) fn is_at_content(&self) -> bool {
        matches!(self.phase, Phase::Workflow(_)) && self.next.is_none()
    }

    /// Reads on: all that has come, or in prose a growing part of it, because what turns out to
    /// be no workflow JSON is read again. Tells how much was read.
    fn read(&mut self, input: Input<'_>) -> (Status, Extent) {
        if self.place != Place::Prose || matches!(self.phase, Phase::Workflow(_)) {
            return (self.reading.read(input), Extent::All);
        }
        let mut end = (self.start + self.window).min(input.text.len());
        while !input.text.is_char_boundary(end) {
            end += 1;
        }
        let status = self.reading.read(input.up_to(end));
        if end == input.text.len() {
            return (status, Extent::All);
        }
        // The same window ends are seen however the text arrives.
        let written = self.reading.output().len();
        let stuck = self.window >= LONGEST_WAIT && written == self.written;
        self.window *= 2;
        self.written = written;
        let extent = if stuck {
            Extent::Stuck(end)
        } else {
            Extent::Window
        };
        (status, extent)
    }

    /// Where JSON in prose, other than workflow JSON, needs healing: it is read no further.
    fn doubt(&self) -> Option<&FirstRepair> {
        let doubted = self.place == Place::Prose && matches!(self.phase, Phase::LetGo);
        self.reading.first_repair().filter(|_| doubted)
    }
}

/// Whether an object or array begins at `at` that may be a payload there.
fn looks_like_payload(place: Place, at: usize, input: Input<'_>) -> Result<bool, Wait> {
    let text = input.slice(at, input.text.len());
    let Some(opener) = text.chars().next() else {
        return Ok(false);
    };
    let inside = input.after_space(at + opener.len_utf8());
    let rest = input.slice(inside, input.text.len());
    let Some(first) = rest.chars().next() else {
        return if input.last { Ok(false) } else { Err(Wait) };
    };
    if matches!(opener, '[' | '［') {
        return Ok(place != Place::Prose && matches!(first, '{' | '｛'));
    }
    let prose = place == Place::Prose;
    match first {
        '"' => Ok(true),
        '/' | '#' => Ok(!prose),
        '\'' | '“' | '”' | '＂' | '‘' | '\\' | '`' => {
            let quote = rest.chars().take_while(|c| !c.is_alphanumeric());
            let length = quote.take(LONGEST_QUOTE).map(char::len_utf8).sum();
            bare_key(rest.get(length..).unwrap_or_default(), prose, input.last)
        }
        c if c.is_alphanumeric() || c == '_' || c == '$' => bare_key(rest, prose, input.last),
        _ => Ok(false),
    }
}

/// Whether `text` begins with a key; in prose only a key of workflow JSON will do.
fn bare_key(text: &str, prose: bool, last: bool) -> Result<bool, Wait> {
    let is_key = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '.');
    let length = text.find(|c| !is_key(c)).unwrap_or(text.len());
    let key = text.get(..length).unwrap_or_default();
    if length > LONGEST_BARE_KEY {
        return Ok(false);
    }
    let after = text.get(length..).unwrap_or_default().chars();
    let mut after = after.take(LONGEST_BARE_KEY);
    let mut gap = 0;
    let colon = after.find(|c| {
        gap += 1;
        !c.is_whitespace() && !matches!(c, '\'' | '"' | '”' | '“' | '＂' | '’' | '\\' | '`')
    });
    match colon {
        None if last || gap == LONGEST_BARE_KEY => Ok(false),
        None => Err(Wait),
        Some(':' | '：') => Ok(!prose || matches!(key, "content" | "next")),
        Some(_) => Ok(false),
    }
}

impl Machine {
    /// Whether JSON at such a place may be a payload at all.
    fn reads_json(&self, place: Place) -> bool {
        let plan = self.plan();
        let workflow = plan.workflow.is_some_and(|syntax| self.counts(syntax));
        match place {
            Place::Prose => workflow,
            Place::Whole => {
                let whole = plan.whole_json.iter().chain(&plan.native);
                workflow || whole.into_iter().any(|syntax| self.counts(*syntax))
            }

            Place::Fence { .. } => workflow || self.fence_syntax().is_some(),
        }
    }

    /// The syntax of JSON calls in the fence that is open.
    fn fence_syntax(&self) -> Option<SyntaxId> {
        self.fence
            .as_ref()?
            .json
            .filter(|syntax| self.counts(*syntax))
    }

    /// Reads on in JSON that may be a payload.
    pub(crate) fn candidate(&mut self, mut candidate: Box<Candidate>, input: Input<'_>) -> Flow {
        let (status, extent) = candidate.read(input);
        self.weigh(&mut candidate, input);
        if let Some(offset) = candidate.doubt().map(|doubt| doubt.offset) {
            return self.give_up(candidate, offset, input);
        }
        if let Phase::Workflow(progress) = &mut candidate.phase {
            self.tell_workflow(progress, &candidate.reading);
        }
        match status {
            Status::NeedMore if extent != Extent::All => {
                if let Extent::Stuck(end) = extent
                    && !matches!(candidate.phase, Phase::Workflow(_))
                {
                    return self.give_up(candidate, end, input);
                }
                self.state = State::Candidate(candidate);
                Flow::Go
            }
            Status::NeedMore => {
                if matches!(candidate.phase, Phase::LetGo) {
                    self.emit(input, input.text.len());
                }
                self.state = State::Candidate(candidate);
                Flow::Wait
            }
            Status::Done { end, complete } => self.decide(candidate, end, complete, input),
            Status::Failed(error) => self.candidate_failed(candidate, error, input),
        }
    }

    /// Looks at the keys that have come: do they make it workflow JSON, or no payload?
    fn weigh(&mut self, candidate: &mut Candidate, input: Input<'_>) {
        while let Some(member) = candidate.reading.members().get(candidate.seen) {
            if matches!(candidate.phase, Phase::Workflow(_)) {
                return;
            }
            let in_object = candidate.reading.kind() == Some(Kind::Object);
            let key = candidate.reading.key(member);
            let first = candidate.seen == 0;
            let item = key.is_empty() && member.kind == Kind::String;
            let may_be_key = item
                && !candidate.reading.is_over()
                && !candidate.reading.is_closed(candidate.seen);
            if may_be_key || candidate.reading.is_kind_open(member) {
                return;
            }
            if in_object && first && key == "content" && member.kind == Kind::String {
                match holds_array(&candidate.reading, candidate.seen) {
                    None => return,
                    Some(true) => {}
                    Some(false) => {
                        candidate.content_first = true;
                        if candidate.place.is_first() && self.reads_workflow() {
                            return self.begin_workflow(candidate, input);
                        }
                    }
                }
            }
            if in_object && member.depth == 1 && key == "next" && member.kind == Kind::Array {
                if is_list(&candidate.reading, candidate.seen).is_none() {
                    return;
                }
                let index = candidate.seen;
                let doubtful = candidate
                    .doubt()
                    .is_some_and(|doubt| !doubt.had_begun(index, member));
                candidate.next = Some(index);
                if candidate.content_first && !doubtful && self.reads_workflow() {
                    return self.begin_workflow(candidate, input);
                }
            }
            if member.depth == 2 && candidate.next.is_some() && member.parent == candidate.next {
                if !candidate.reading.is_closed(candidate.seen) {
                    return;
                }
                let doubtful = candidate
                    .doubt()
                    .is_some_and(|doubt| !doubt.had_ended(candidate.seen, member));
                if !doubtful && self.reads_workflow() && is_call(&candidate.reading, candidate.seen)
                {
                    return self.begin_workflow(candidate, input);
                }
            }
            let top = if in_object { 1 } else { 2 };
            if first && !in_object {
                // The array's first item: its keys follow.
            } else if member.depth == top && candidate.seen < 2 && !key.is_empty() {
                let prose = candidate.place == Place::Prose && !matches!(key, "content" | "next");
                if prose || !TELLING_KEYS.contains(&key) && !native::may_begin(key) {
                    self.let_go(candidate, input);
                }
            }
            candidate.seen += 1;
        }
    }

    fn reads_workflow(&self) -> bool {
        self.plan()
            .workflow
            .is_some_and(|syntax| self.counts(syntax))
    }

    /// Lets JSON go as text while it is read on.
    fn let_go(&mut self, candidate: &mut Candidate, input: Input<'_>) {
        if !matches!(candidate.phase, Phase::Open) {
            return;
        }
        if self.pending.is_none() && candidate.comments.is_empty() {
            self.emit(input, candidate.start);
        }
        candidate.saved = self.save();
        candidate.phase = Phase::LetGo;
    }

    /// Takes JSON back that was let go.
    fn take_back_json(&mut self, candidate: &mut Candidate) {
        if matches!(candidate.phase, Phase::LetGo) {
            self.restore(std::mem::take(&mut candidate.saved));
            candidate.phase = Phase::Open;
        }
    }

    /// The comments before a payload are no part of the text.
    fn drop_comments(&mut self, candidate: &Candidate) {
        if candidate.comments.is_empty() {
            return;
        }
        self.markup(candidate.start);
        let dropped = candidate.comments.iter().map(|offset| Repair {
            kind: RepairKind::CommentDropped,
            offset: *offset,
        });
        self.out.repairs(dropped);
    }

    /// It is workflow JSON.
    fn begin_workflow(&mut self, candidate: &mut Candidate, input: Input<'_>) {
        let Some(syntax) = self.plan().workflow else {
            return;
        };
        self.take_back_json(candidate);
        let before = input.slice(self.done, candidate.start).trim();
        if candidate.comments.is_empty() && (self.pending.is_some() || !before.is_empty()) {
            self.emit(input, candidate.start);
        }
        self.settle_as_payload(input);
        self.drop_comments(candidate);
        self.emit(input, candidate.start);
        candidate.saved = self.save();
        self.fix_format(syntax);
        self.fresh = false;
        candidate.phase = Phase::Workflow(Progress::default());
    }

    /// The JSON is over: what is it?
    fn decide(
        &mut self,
        mut candidate: Box<Candidate>,
        end: usize,
        complete: bool,
        input: Input<'_>,
    ) -> Flow {
        if let Some(flow) = self.take_native(&mut candidate, end, complete, input) {
            return flow;
        }
        if matches!(candidate.phase, Phase::Open | Phase::LetGo)
            && self.reads_workflow()
            && self.is_workflow(&candidate, complete)
        {
            self.begin_workflow(&mut candidate, input);
            if let Phase::Workflow(progress) = &mut candidate.phase {
                self.tell_workflow(progress, &candidate.reading);
            }
        }
        if let Phase::Workflow(progress) = candidate.phase {
            self.end_workflow(progress, &candidate.reading, end, complete);
            self.scan = end;
            return Flow::Go;
        }
        if let Some((syntax, drafts)) = self.drafts(&candidate, end, complete) {
            return self.take_calls(candidate, syntax, drafts, end, input);
        }
        if !complete {
            return self.give_up(candidate, end, input);
        }
        if end < self.done {
            // More was let go while its end was in doubt.
            self.take_back_json(&mut candidate);
        }
        self.emit(input, end);
        self.scan = end;
        Flow::Go
    }

    /// Takes JSON as a native message, when it is one and nothing visible stands before it.
    fn take_native(
        &mut self,
        candidate: &mut Candidate,
        end: usize,
        complete: bool,
        input: Input<'_>,
    ) -> Option<Flow> {
        if candidate.place != Place::Whole || self.plan().native.is_empty() {
            return None;
        }
        let has_next = matches!(&candidate.phase, Phase::Workflow(progress) if progress.has_next());
        if has_next || self.pending.is_some() || candidate.saved.has_pending() {
            return None;
        }
        let begun = matches!(candidate.phase, Phase::Workflow(_));
        let message = native::read_json(candidate.reading.output())?;
        let plain = message.calls.is_empty() && message.reasoning.is_none();
        let syntax = self.plan().native.iter().copied().find(|syntax| {
            self.plan().label(*syntax) == Some(message.format) && (begun || self.counts(*syntax))
        })?;
        if begun && plain {
            return None;
        }
        if begun {
            self.restore(std::mem::take(&mut candidate.saved));
            self.format = None;
            self.out.reply.format = None;
        } else {
            self.take_back_json(candidate);
            self.emit(input, candidate.start);
        }
        let span = Span {
            start: candidate.start,
            end,
        };
        let rules = Self::rules(&self.shared);
        let calls = message.calls.into_iter();
        let mut drafts: Vec<Draft> = calls.map(|call| rules.native_draft(call, span)).collect();
        if let Some(last) = drafts.last_mut() {
            // Where the message was cut off, its last call may have been, too.
            last.complete &= complete;
        }
        self.out
            .repairs(candidate.reading.repairs().iter().copied());
        let joint = self.out.take_joint();
        let native = Some((message.text, message.reasoning));
        self.pending = Some(Pending {
            span,
            joint,
            drafts,
            syntax,
            native,
        });
        self.done = end;
        self.scan = end;
        Some(Flow::Go)
    }

    /// Whether a finished object is workflow JSON.
    #[allow(clippy::unused_self, reason = "reads as a question to the engine")]
    fn is_workflow(&self, candidate: &Candidate, complete: bool) -> bool {
        let reader = &candidate.reading;
        if reader.kind() != Some(Kind::Object) {
            return false;
        }
        let value = reader.value(None);
        let content = value
            .get("content")
            .is_some_and(|content| content.text().is_some());
        let Some(next) = candidate.next else {
            let alone = content && value.members().count() == 1 && complete;
            return alone && candidate.place.is_first();
        };
        let next = reader.value(Some(next));
        let holds_call = next
            .items()
            .any(|item| crate::calls::parts(item.members(), &UNMARKED).has_name());
        holds_call || complete && content && next.items().next().is_none()
    }

    /// The calls that JSON is which is no workflow, when it says that it is calls.
    fn drafts(
        &self,
        candidate: &Candidate,
        end: usize,
        complete: bool,
    ) -> Option<(SyntaxId, Vec<Draft>)> {
        let reader = &candidate.reading;
        let syntax = match candidate.place {
            Place::Prose => return None,
            Place::Fence { .. } => self.fence_syntax()?,
            Place::Whole => self.bare_syntax(reader)?,
        };
        let Body::Json(keys) = &self.plan().entry(syntax)?.syntax.body else {
            return None;
        };
        let rules = Self::rules(&self.shared);
        let says_call = |index: Option<usize>| {
            let parts = crate::calls::parts(reader.entries(index), keys);
            parts.says_call(rules.tools) || keys.explicit && parts.has_name()
        };
        let mut drafts = Vec::new();
        if reader.kind() == Some(Kind::Object) {
            if !says_call(None) {
                return None;
            }
            let span = Span {
                start: candidate.start,
                end,
            };
            drafts.push(draft(reader, None, keys, rules, span, complete));
        } else {
            let items: Vec<usize> = reader
                .members()
                .iter()
                .enumerate()
                .filter(|(_, member)| member.depth == 1)
                .map(|(index, _)| index)
                .collect();
            if !items.iter().any(|index| says_call(Some(*index))) {
                return None;
            }
            for index in items {
                let Some(member) = reader.members().get(index) else {
                    continue;
                };
                let closed = reader.is_closed(index);
                let item_end = if closed { member.text.end } else { end };
                let span = Span {
                    start: member.text.start,
                    end: item_end,
                };
                drafts.push(draft(reader, Some(index), keys, rules, span, closed));
            }
        }
        Some((syntax, drafts))
    }

    /// The syntax of bare calls: those that name their tool under `mcp` are the workflow's own.
    fn bare_syntax(&self, reading: &Reading) -> Option<SyntaxId> {
        let depth = if reading.kind() == Some(Kind::Object) {
            1
        } else {
            2
        };
        let named = reading
            .members()
            .iter()
            .filter(|member| member.depth == depth)
            .find(|member| matches!(reading.key(member), "mcp" | "name"));
        let mcp = named.is_some_and(|member| reading.key(member) == "mcp");
        let plan = self.plan();
        let format_of = |syntax| plan.entry(syntax).map(|entry| entry.format);
        let workflow = plan.workflow.and_then(format_of);
        let known = plan.whole_json.iter().copied();
        let mut known = known.filter(|syntax| self.counts(*syntax));
        let fits =
            |syntax: &SyntaxId| (workflow.is_some() && format_of(*syntax) == workflow) == mcp;
        known.clone().find(fits).or_else(|| known.next())
    }

    /// Takes JSON as calls: in a fence at once, bare only if nothing visible follows.
    fn take_calls(
        &mut self,
        mut candidate: Box<Candidate>,
        syntax: SyntaxId,
        drafts: Vec<Draft>,
        end: usize,
        input: Input<'_>,
    ) -> Flow {
        self.take_back_json(&mut candidate);
        self.scan = end;
        if candidate.place != Place::Whole {
            self.settle_as_payload(input);
            self.drop_comments(&candidate);
            self.emit(input, candidate.start);
            self.out
                .repairs(candidate.reading.repairs().iter().copied());
            for draft in drafts {
                self.accept(draft, syntax);
            }
            self.markup(end);
            return Flow::Go;
        }
        self.out
            .repairs(candidate.reading.repairs().iter().copied());
        if let Some(pending) = &mut self.pending {
            pending.span.end = end;
            pending.drafts.extend(drafts);
            self.done = end;
        } else {
            self.emit(input, candidate.start);
            let joint = self.out.take_joint();
            let span = Span {
                start: candidate.start,
                end,
            };
            self.pending = Some(Pending {
                span,
                joint,
                drafts,
                syntax,
                native: None,
            });
            self.done = end;
        }
        Flow::Go
    }

    /// Nothing visible followed the bare calls: they are the reply.
    pub(crate) fn accept_pending(&mut self, pending: Pending) {
        let after = self.out.take_joint();
        self.out.restore_joint(pending.joint);
        let done = std::mem::replace(&mut self.done, pending.span.start);
        if let Some((text, reasoning)) = pending.native {
            self.fix_format(pending.syntax);
            if let Some(reasoning) = reasoning {
                self.out.open_reasoning();
                self.out.reasoning_text(&reasoning);
                self.out.close_reasoning();
            }
            self.out.content(&text, self.done, self.done);
        }
        for draft in pending.drafts {
            self.accept(draft, pending.syntax);
        }
        self.markup(pending.span.end);
        self.done = done;
        self.out.append_joint(after);
    }

    /// It is no payload after all: text, in which other things may begin.
    fn give_up(&mut self, candidate: Box<Candidate>, read: usize, input: Input<'_>) -> Flow {
        self.no_json_before = self.no_json_before.max(read);
        if self.pending.is_some() {
            self.settle_as_text(input);
        }
        if matches!(candidate.phase, Phase::LetGo) {
            self.let_go = Some(candidate.saved);
        }
        self.fresh = false;
        if let Some(fence) = &self.fence
            && fence.fate == FenceFate::Open
        {
            self.settle_as_text(input);
        }
        self.scan = candidate.start + 1;
        Flow::Go
    }

    fn candidate_failed(
        &mut self,
        candidate: Box<Candidate>,
        error: Error,
        input: Input<'_>,
    ) -> Flow {
        if let Phase::Workflow(progress) = candidate.phase {
            self.tell_workflow_fault(progress, &candidate.reading, error);
            return Flow::Go;
        }
        self.give_up(candidate, error.offset, input)
    }
}

/// Whether a string member holds a JSON array, as far as its first visible character tells.
pub(crate) fn holds_array(reader: &Reading, index: usize) -> Option<bool> {
    let member = reader.members().get(index)?;
    let literal = reader.output().get(member.output.start..)?;
    let settled = reader.settled().saturating_sub(member.output.start);
    let literal = if member.closed {
        literal
    } else {
        literal.get(..settled)?
    };
    let mut rest = literal.get(1..)?;
    loop {
        rest = rest.trim_start();
        match rest
            .strip_prefix("\\n")
            .or_else(|| rest.strip_prefix("\\t"))
            .or_else(|| rest.strip_prefix("\\r"))
        {
            Some(after) => rest = after,
            None => break,
        }
    }
    match rest.chars().next() {
        None | Some('\\') if !member.closed && rest.len() < 2 => None,
        None => Some(false),
        Some(first) => Some(first == '['),
    }
}

/// Whether a closed item of `next` is a call.
fn is_call(reader: &Reading, index: usize) -> bool {
    crate::calls::parts(reader.entries(Some(index)), &UNMARKED).has_name()
}
