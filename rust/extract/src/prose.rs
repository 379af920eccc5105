//! The state in which anything may begin: text, or reasoning.

use turnwarden_cleanup::{
    ChannelToken, Fence, FenceMark, Found, at_line_start, closing_fence, fence_at, fence_closes_at,
};

use crate::block::Block;
use crate::calls::fault;
use crate::calls::{Arguments, Draft};
use crate::candidate::{Candidate, Place};
use crate::formats::PythonCalls;
use crate::grammars::json::opens_json;
use crate::grammars::python::{Opens as PythonOpens, PythonItem, opens_python};
use crate::grammars::{Input, Read};
use crate::machine::{
    Closing, FenceFate, Flow, Machine, OpenFence, OpenReasoning, Pending, Section, State,
};
use crate::markers::{Hit, Look};
use crate::plan::SyntaxId;
use crate::scan::Stop;
use crate::transcript::Opens as HeaderOpens;
use crate::{FaultKind, Span};

/// Characters that may stand before a reply and mean nothing.
const INVISIBLE: &[char] = &['\u{feff}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}'];

/// Longest comments that may stand before the JSON in a fence.
const LONGEST_COMMENTS: usize = 4096;

impl Machine {
    pub(crate) fn prose(&mut self, input: Input<'_>) -> Flow {
        if let Some(flow) = self.beginning(input) {
            return flow;
        }
        loop {
            if let Some(flow) = self.inline_code(input) {
                return flow;
            }
            let in_reasoning = self.reasoning.is_some();
            let markers = &self.shared.plan.markers;
            let stop = self
                .stops
                .next(markers, input.bytes(), self.scan, in_reasoning);
            let at = match stop {
                None => return self.end_of_text(input),
                Some(Stop::Marker(hit)) => return self.marker(hit, input),
                Some(Stop::Byte(at)) => at,
            };
            if matches!(input.bytes().get(at), Some(b'`' | b'~')) {
                match self.ticks(at, input) {
                    Some(flow) => return flow,
                    None => continue,
                }
            }
            match self.look(at, input) {
                Look::Hit(hit) => return self.marker(hit, input),
                Look::Partial(start) => {
                    let start = start.max(self.scan);
                    self.emit(input, start);
                    self.scan = start;
                    return Flow::Wait;
                }
                Look::Nothing => {}
            }
            if let Some(flow) = self.json_in_prose(at, input) {
                return flow;
            }
            self.scan = at + input.bytes().get(at).map_or(1, |byte| utf8_length(*byte));
        }
    }

    /// The marker that counts outside payloads at the anchor byte `at`.
    pub(crate) fn look(&self, at: usize, input: Input<'_>) -> Look {
        let plan = &self.shared.plan;
        plan.markers
            .look(input.bytes(), at, input.last, |id| plan.roles(id).counts())
    }

    /// Nothing begins in the text that is left.
    fn end_of_text(&mut self, input: Input<'_>) -> Flow {
        let length = input.text.len();
        if !input.last {
            let held = self.shared.plan.markers.unfinished(input.bytes());
            let free = held.map_or(length, |held| held.max(self.scan));
            self.emit(input, free);
            self.scan = free;
            return Flow::Wait;
        }
        self.emit(input, length);
        self.scan = length;
        self.conclude(input)
    }

    /// The reply is over: settles what was left open.
    fn conclude(&mut self, input: Input<'_>) -> Flow {
        if let Some(reasoning) = &mut self.reasoning {
            if let Some(held) = reasoning.held_from.take() {
                reasoning.recovering = true;
                self.hopeless.clear();
                reasoning.calls_count = true;
                self.scan = held;
                return Flow::Go;
            }
            let start = reasoning.start;
            self.out.cut_from_cleaned(start, input.text.len());
            self.out.close_reasoning();
            self.reasoning = None;
        }
        if let Some(pending) = self.pending.take() {
            self.accept_pending(pending);
        } else if self.is_in_doubt() {
            self.settle_as_text(input);
        }
        self.state = State::Over;
        Flow::Go
    }

    /// What may stand only where nothing visible has come: bare JSON, a payload in a fence.
    fn beginning(&mut self, input: Input<'_>) -> Option<Flow> {
        if self.reasoning.is_some() || self.code.is_some() {
            return None;
        }
        if self.scan > self.done && !input.slice(self.done, self.scan).trim().is_empty() {
            // What was passed over is text.
            self.emit(input, self.scan);
        }
        let in_fence = self.is_in_doubt();
        if !self.fresh && !in_fence && self.pending.is_none() {
            return None;
        }
        let mut at = input.after_space(self.scan);
        if self.pending.is_none() && !in_fence {
            at = self.skip_invisible(at, input);
        }
        if let Some(pending) = &self.pending {
            at = separator(at, input)?;
            if self.done != pending.span.end && opens_json(input.rest(at)) {
                // More than white space stands between the two: neither is the whole reply.
                self.settle_as_text(input);
                self.fresh = false;
                return None;
            }
        }
        if at >= input.text.len() {
            if input.last {
                return None;
            }
            self.scan = self.scan.max(self.done);
            return Some(Flow::Wait);
        }
        let mut comments = Vec::new();
        if in_fence {
            match past_comments(at, input) {
                Comments::At(value, offsets) => (at, comments) = (value, offsets),
                Comments::None => {}
                Comments::Wait => return Some(Flow::Wait),
            }
        }
        if !opens_json(input.rest(at)) {
            if self.pending.is_none()
                && !in_fence
                && let Some(flow) = self.opens_transcript(at, input)
            {
                return Some(flow);
            }
            return self.visible(at, input);
        }
        match self.look(at, input) {
            Look::Hit(_) => return None,
            Look::Partial(_) if !input.last => return Some(Flow::Wait),
            _ => {}
        }
        let place = match &self.fence {
            Some(fence) if in_fence => Place::Fence { first: fence.first },
            _ => Place::Whole,
        };
        match self.begin_json(place, at, comments, input) {
            Some(flow) => Some(flow),
            None if place == Place::Whole && self.reads_bare_python() => {
                match opens_python(input, at) {
                    PythonOpens::Yes => {
                        self.state = State::Bare(Box::new(PythonItem::new(at)));
                        Some(Flow::Go)
                    }
                    PythonOpens::Wait => Some(Flow::Wait),
                    PythonOpens::No => self.visible(at, input),
                }
            }
            None => self.visible(at, input),
        }
    }

    fn reads_bare_python(&self) -> bool {
        self.pending.is_none()
            && self
                .plan()
                .whole_python
                .iter()
                .any(|syntax| self.counts(*syntax))
    }

    /// Python calls are the reply only if all of them can be read, and nothing visible follows.
    pub(crate) fn bare_python(&mut self, mut item: Box<PythonItem>, input: Input<'_>) -> Flow {
        let mut drafts = Vec::new();
        let depth = self.shared.options.limits.max_depth;
        let read = item.read(&PythonCalls::default(), input, depth, &mut drafts);
        let start = item.start();
        let whole = self
            .plan()
            .whole_python
            .iter()
            .copied()
            .find(|syntax| self.counts(*syntax));
        match (read, whole) {
            (Read::Wait, _) => {
                self.state = State::Bare(item);
                Flow::Wait
            }
            (Read::Done(end), Some(syntax)) if self.all_bare_calls(&drafts) => {
                self.emit(input, start);
                let joint = self.out.take_joint();
                self.pending = Some(Pending {
                    span: Span { start, end },
                    joint,
                    drafts,
                    syntax,
                    native: None,
                });
                self.done = end;
                self.scan = end;
                Flow::Go
            }
            _ => {
                self.fresh = false;
                self.scan = start + 1;
                Flow::Go
            }
        }
    }

    /// Whether Python calls that no markup surrounds are calls beyond doubt.
    fn all_bare_calls(&self, drafts: &[Draft]) -> bool {
        let tools = self.shared.options.tools.as_ref();
        let clear = |draft: &Draft| match &draft.arguments {
            Arguments::Positional(..) => draft
                .name
                .as_deref()
                .is_some_and(|name| tools.is_some_and(|tools| tools.knows(name))),
            _ => true,
        };
        !drafts.is_empty() && drafts.iter().all(clear)
    }

    /// A header whose first token the template wrote, or a phrase that announces reasoning.
    fn opens_transcript(&mut self, at: usize, input: Input<'_>) -> Option<Flow> {
        match self.opens_header(at, input) {
            HeaderOpens::Yes => {
                self.state = State::Header(at);
                return Some(Flow::Go);
            }
            HeaderOpens::Wait => return Some(Flow::Wait),
            HeaderOpens::No => {}
        }
        match self.preface_at(at, input)? {
            Ok(preface) => {
                self.state = State::Preface(preface);
                Some(Flow::Go)
            }
            Err(()) => Some(Flow::Wait),
        }
    }

    /// Something begins that is no JSON: a marker leaves all as it is, text does not.
    fn visible(&mut self, at: usize, input: Input<'_>) -> Option<Flow> {
        let byte = input.bytes().get(at);
        let rest = input.rest(at);
        let thought = self.plan().react.as_ref().is_some_and(|(_, calls)| {
            let label = calls.thought.as_str();
            rest.starts_with(label) || label.starts_with(rest)
        });
        if !thought && !matches!(byte, Some(b'<' | b'[' | b'`' | b'~' | 0xe2 | b']' | b'f')) {
            self.fresh = false;
        }
        None
    }

    fn skip_invisible(&mut self, at: usize, input: Input<'_>) -> usize {
        let rest = input.slice(at, input.text.len());
        let visible =
            rest.trim_start_matches(|c: char| INVISIBLE.contains(&c) || c.is_whitespace());
        let end = at + (rest.len() - visible.len());
        if self.out.is_blank() && end > at && self.done <= at {
            self.emit(input, at);
            self.markup(end);
            self.scan = end;
        }
        end
    }

    fn json_in_prose(&mut self, at: usize, input: Input<'_>) -> Option<Flow> {
        let brace = input.bytes().get(at) == Some(&b'{');
        if !brace || self.reasoning.is_some() || at < self.no_json_before {
            return None;
        }
        self.begin_json(Place::Prose, at, Vec::new(), input)
    }

    /// Begins to read JSON at `at`, when it looks like an object or array that may be a payload.
    fn begin_json(
        &mut self,
        place: Place,
        at: usize,
        comments: Vec<usize>,
        input: Input<'_>,
    ) -> Option<Flow> {
        let commented = !comments.is_empty();
        if let Ok(candidate) = Candidate::begin(self, place, at, input) {
            let candidate = candidate?.behind(comments);
            self.state = State::Candidate(Box::new(candidate));
            Some(Flow::Go)
        } else if commented || place == Place::Whole && self.pending.is_some() {
            // Comments before it, or what separates it from the calls before, are text only if
            // it is no JSON.
            Some(Flow::Wait)
        } else {
            self.emit_before(at, input);
            self.scan = at;
            Some(Flow::Wait)
        }
    }

    /// Lets the text before `at` go, unless its fate hangs on what comes.
    pub(crate) fn emit_before(&mut self, at: usize, input: Input<'_>) {
        if self.pending.is_none() || !input.slice(self.done, at).trim().is_empty() {
            self.emit(input, at);
        }
    }

    /// Goes on with inline code that was opened: what stands in it is text.
    fn inline_code(&mut self, input: Input<'_>) -> Option<Flow> {
        let mut code = self.code.take()?;
        match self.code_spans.close(&mut code, input.bytes(), input.last) {
            Found::At(_, end) => self.scan = end,
            Found::Nowhere => self.scan = code.from(),
            Found::Unknown(_) => {
                // Text may go on up to what would be a marker if this is no inline code.
                let stop = self.first_marker(input);
                self.emit(input, stop);
                self.scan = self.scan.max(stop);
                self.code = Some(code);
                return Some(Flow::Wait);
            }
        }
        None
    }

    /// Where the next thing after `scan` begins that means something outside inline code.
    fn first_marker(&mut self, input: Input<'_>) -> usize {
        let mut from = self.scan;
        loop {
            let markers = &self.shared.plan.markers;
            let stop = self
                .stops
                .next(markers, input.bytes(), from, self.reasoning.is_some());
            let at = match stop {
                None => {
                    let held = markers.unfinished(input.bytes());
                    return held.unwrap_or(input.text.len()).max(self.scan);
                }
                Some(Stop::Marker(hit)) => return hit.start,
                Some(Stop::Byte(at)) => at,
            };
            if let Some(mark @ (b'`' | b'~')) = input.bytes().get(at) {
                // A fence may begin here, or a run that will be one.
                let run = input
                    .rest(at)
                    .bytes()
                    .take(3)
                    .take_while(|byte| byte == mark)
                    .count();
                if run == 3 || at + run == input.text.len() {
                    return at.max(self.scan);
                }
                from = at + run;
                continue;
            }
            match self.look(at, input) {
                Look::Hit(hit) => return hit.start.max(self.scan),
                Look::Partial(start) => return start.max(self.scan),
                Look::Nothing if input.bytes().get(at) == Some(&b'{') => return at,
                Look::Nothing => {}
            }
            from = at + input.bytes().get(at).map_or(1, |byte| utf8_length(*byte));
        }
    }

    /// A run of backticks or tildes: a fence, inline code, or text. None: the scan goes on.
    fn ticks(&mut self, at: usize, input: Input<'_>) -> Option<Flow> {
        let (text, last) = (input.bytes(), input.last);
        if self.reasoning.is_some() {
            return self.begin_inline_code(at, input);
        }
        if self.fence.is_some() && !input.slice(self.done, at).trim().is_empty() {
            // What was passed over settles the fate of the fence before its end is judged.
            self.emit(input, at);
        }
        if let Some(open) = &mut self.fence {
            let same = text.get(at) == Some(&open.fence.mark);
            // Right behind its payload the end of a fence needs no line of its own.
            let behind_payload = open.is_right_behind_payload(at, input);
            let closes = same && (behind_payload || at_line_start(text, at));
            if closes && open.fate != FenceFate::Open {
                match fence_closes_at(text, at, &open.fence, last) {
                    Found::At(_, end) => {
                        self.close_fence(at, end, input);
                        return Some(Flow::Go);
                    }
                    Found::Unknown(_) => {
                        self.emit(input, at);
                        self.scan = at;
                        return Some(Flow::Wait);
                    }
                    Found::Nowhere => {}
                }
            }
            return self.begin_inline_code(at, input);
        }
        let plan = &self.shared.plan;
        match fence_at(text, at, last, |word| plan.is_payload_language(word)) {
            FenceMark::Unknown => {
                self.emit(input, at);
                self.scan = at;
                Some(Flow::Wait)
            }
            FenceMark::No => self.begin_inline_code(at, input),
            FenceMark::Open(fence) => Some(self.open_fence(fence, input)),
        }
    }

    fn open_fence(&mut self, fence: Fence, input: Input<'_>) -> Flow {
        let word = input
            .bytes()
            .get(fence.language.0..fence.language.1)
            .unwrap_or_default();
        if !self.shared.plan.is_payload_language(word) {
            self.emit(input, fence.body);
            self.state = State::Code(fence, fence.body);
            return Flow::Go;
        }
        if self.pending.is_some() {
            self.settle_as_text(input);
        }
        if let Some(syntax) = self
            .shared
            .plan
            .python_in_fence(word)
            .filter(|s| self.counts(*s))
        {
            self.emit(input, fence.start);
            self.state = State::Block(Box::new(Block::fenced(fence, syntax)));
            return Flow::Go;
        }
        self.emit(input, fence.start);
        let first = self.fresh;
        let joint = self.out.take_joint();
        let language = String::from_utf8_lossy(word).to_lowercase();
        let json = self
            .shared
            .plan
            .json_in_fence(&language, |syntax| self.counts(syntax));
        self.fence = Some(OpenFence::new(fence, joint, first, json));
        self.done = fence.body;
        self.scan = fence.body;
        Flow::Go
    }

    /// The fence around a payload, or one that turned out to be text, ends.
    fn close_fence(&mut self, start: usize, end: usize, input: Input<'_>) {
        // Text that was let go too early goes back to where the fence was open.
        self.emit(input, start);
        let dropped = self
            .fence
            .take()
            .is_some_and(|fence| fence.fate == FenceFate::Dropped);
        if dropped {
            self.markup(end);
            self.out.cut_from_cleaned(start, end);
        }
        self.scan = end;
    }

    fn begin_inline_code(&mut self, at: usize, input: Input<'_>) -> Option<Flow> {
        let text = input.bytes();
        let mark = text.get(at).copied();
        let run = text.get(at..).unwrap_or_default();
        let run = run
            .iter()
            .take(64)
            .take_while(|byte| Some(**byte) == mark)
            .count();
        if at + run == text.len() && !input.last && run < 64 {
            self.emit(input, at);
            self.scan = at;
            return Some(Flow::Wait);
        }
        self.scan = at + run;
        if mark == Some(b'`') {
            let first = self.reasoning.is_none() && self.out.is_blank();
            let across = first && input.slice(self.done, at).trim().is_empty();
            self.code = self.code_spans.open(text, at, across);
        }
        None
    }

    /// Fenced code of another language: text until its closing line.
    pub(crate) fn fenced_code(&mut self, fence: Fence, from: usize, input: Input<'_>) -> Flow {
        match closing_fence(input.bytes(), from, &fence, input.last) {
            Found::At(_, end) => {
                self.emit(input, end);
                self.scan = end;
                Flow::Go
            }
            Found::Unknown(resume) => {
                // The marks may close it, and a token that is no text follow.
                self.emit(input, resume.max(self.done));
                self.state = State::Code(fence, resume);
                Flow::Wait
            }
            Found::Nowhere => {
                self.emit(input, input.text.len());
                self.scan = input.text.len();
                Flow::Go
            }
        }
    }

    /// A marker outside payloads.
    fn marker(&mut self, hit: Hit, input: Input<'_>) -> Flow {
        let roles = self.shared.plan.roles(hit.id).clone();
        let opens: Vec<SyntaxId> = roles
            .opens
            .iter()
            .copied()
            .filter(|syntax| self.counts(*syntax))
            .collect();
        if let Some(reasoning) = &mut self.reasoning {
            let closes = match reasoning.close {
                Closing::Marker(close) => close == hit.id,
                Closing::Any => roles.closes_reasoning,
                Closing::Channel => roles.channel.is_some(),
            };
            if closes && !reasoning.recovering {
                // A header is no part of the block that it ends.
                let end = match roles.channel {
                    Some(ChannelToken::Header | ChannelToken::Message) => hit.start,
                    _ => hit.end,
                };
                return self.end_reasoning(Hit { end, ..hit }, input);
            }
            if reasoning.is_template_opened(&roles, self.done, hit, input) {
                reasoning.close = Closing::Marker(roles.opens_reasoning.unwrap_or(hit.id));
                self.emit(input, hit.start);
                self.markup(hit.end);
                self.scan = hit.end;
                return Flow::Go;
            }
            if !opens.is_empty() {
                if reasoning.calls_count {
                    return self.begin_block(hit, opens, input);
                }
                reasoning.held_from.get_or_insert(hit.start);
            } else if roles.ends_turn {
                return self.begin_tokens(hit, input);
            }
            self.scan = hit.end;
            return Flow::Go;
        }
        if !input.slice(self.done, hit.start).trim().is_empty() {
            self.emit(input, hit.start);
        }
        if roles.closes_reasoning {
            return self.lone_closer(hit, input);
        }
        if let Some(token) = roles.channel {
            let ends = token == ChannelToken::End && roles.ends_turn;
            if !ends {
                return self.channel_token(token, hit, input);
            }
        }
        if let Some(label) = roles.react.filter(|_| self.reads_react()) {
            return self.react_label(label, hit, input);
        }
        if let Some(close) = roles.opens_reasoning {
            self.emit(input, hit.start);
            self.open_reasoning(Closing::Marker(close), hit.start);
            self.markup(hit.end);
            self.scan = hit.end;
            return Flow::Go;
        }
        if let Some((close, _)) = roles
            .opens_wrapper
            .filter(|(_, always)| *always || self.after_reasoning)
        {
            self.wrapper = Some(close);
            return self.drop_marker(hit, input);
        }
        if roles
            .closes_wrapper
            .is_some_and(|always| always || self.wrapper == Some(hit.id))
        {
            self.wrapper = None;
            return self.drop_marker(hit, input);
        }
        if !opens.is_empty() {
            return self.begin_block(hit, opens, input);
        }
        if roles.ends_turn {
            return self.begin_tokens(hit, input);
        }
        let beside = !self.is_in_doubt()
            && input.slice(self.done, hit.start).trim().is_empty()
            && (self.pending.is_some() || self.out.follows_markup());
        if roles.closes_calls && beside {
            return self.drop_marker(hit, input);
        }
        self.scan = hit.end;
        Flow::Go
    }

    /// Whether a fence was opened that may still be text: it is not known what stands beside it.
    fn is_in_doubt(&self) -> bool {
        self.fence
            .as_ref()
            .is_some_and(|fence| fence.fate == FenceFate::Open)
    }

    fn reads_react(&self) -> bool {
        self.plan()
            .react
            .as_ref()
            .is_some_and(|(syntax, _)| self.counts(*syntax))
    }

    fn drop_marker(&mut self, hit: Hit, input: Input<'_>) -> Flow {
        self.emit(input, hit.start);
        self.markup(hit.end);
        self.scan = hit.end;
        Flow::Go
    }

    fn begin_block(&mut self, hit: Hit, syntaxes: Vec<SyntaxId>, input: Input<'_>) -> Flow {
        if self.hopeless.contains(&syntaxes) {
            self.scan = hit.end;
            return Flow::Go;
        }
        self.emit(input, hit.start);
        let is_call = syntaxes.iter().all(|syntax| {
            let entry = self.shared.plan.entry(*syntax);
            entry.is_some_and(|entry| entry.inner.open.contains(&hit.id))
        });
        self.state = State::Block(Box::new(Block::new(hit, syntaxes, is_call, input)));
        Flow::Go
    }

    pub(crate) fn open_reasoning(&mut self, close: Closing, start: usize) {
        self.reasoning = Some(OpenReasoning {
            close,
            start,
            held_from: None,
            calls_count: self.shared.options.calls_in_reasoning,
            recovering: false,
        });
        self.out.open_reasoning();
    }

    fn end_reasoning(&mut self, hit: Hit, input: Input<'_>) -> Flow {
        if let Some(reasoning) = &mut self.reasoning {
            reasoning.held_from = None;
        }
        self.emit(input, hit.start);
        let start = self
            .reasoning
            .take()
            .map_or(hit.start, |reasoning| reasoning.start);
        self.close_section(start, hit.end);
        Flow::Go
    }

    /// Ends a block of reasoning that began at `start`, and with it a section.
    pub(crate) fn close_section(&mut self, start: usize, end: usize) {
        self.out.close_reasoning();
        self.markup(end);
        self.out.cut_from_cleaned(start, end);
        self.scan = end;
        self.after_reasoning = true;
        self.section = Section {
            checkpoint: self.out.checkpoint(),
            at: end,
            format: self.format,
            fence: self.fence.clone(),
            pending: self.pending.clone(),
        };
    }

    /// A closing tag alone: the template opened the reasoning, so what came was reasoning.
    fn lone_closer(&mut self, hit: Hit, input: Input<'_>) -> Flow {
        let section = std::mem::take(&mut self.section);
        let kept = section.checkpoint.calls();
        let calls = self.out.reply.tool_calls.iter().skip(kept);
        let drafts: Vec<(Span, String)> =
            calls.map(|call| (call.span, call.name.clone())).collect();
        self.out.roll_back(section.checkpoint);
        self.done = section.at;
        self.format = section.format;
        if self.format.is_none() {
            self.out.reply.format = None;
        }
        self.pending = section.pending;
        self.fence = section.fence;
        self.let_go = None;
        for (span, name) in drafts {
            self.out
                .fault(fault(FaultKind::Draft, span.start, Some(name)));
        }
        self.open_reasoning(Closing::Any, section.at);
        self.emit(input, hit.start);
        self.reasoning = None;
        self.fresh = self.out.is_blank();
        self.close_section(section.at, hit.end);
        Flow::Go
    }

    fn begin_tokens(&mut self, hit: Hit, input: Input<'_>) -> Flow {
        self.emit(input, hit.start);
        self.state = State::Tokens(hit.start, hit.end);
        Flow::Go
    }

    /// End-of-turn tokens: dropped at the end of the reply and beside markup, else text.
    pub(crate) fn tokens(&mut self, start: usize, mut end: usize, input: Input<'_>) -> Flow {
        let beside = self.pending.is_some() || !self.is_in_doubt() && self.out.follows_markup();
        loop {
            let at = input.after_space(end);
            if at == input.text.len() {
                if input.last {
                    return self.drop_tokens(start, end, input);
                }
                self.state = State::Tokens(start, end);
                return Flow::Wait;
            }
            match self.look(at, input) {
                Look::Hit(hit) => {
                    let roles = self.shared.plan.roles(hit.id);
                    if !roles.ends_turn {
                        return self.drop_tokens(start, end, input);
                    }
                    end = hit.end;
                }
                Look::Partial(_) => {
                    self.state = State::Tokens(start, end);
                    return Flow::Wait;
                }
                Look::Nothing if beside => return self.drop_tokens(start, end, input),
                Look::Nothing => {
                    self.scan = end;
                    return Flow::Go;
                }
            }
        }
    }

    fn drop_tokens(&mut self, start: usize, end: usize, input: Input<'_>) -> Flow {
        self.emit_before(start, input);
        self.markup(end);
        self.scan = end;
        Flow::Go
    }
}

/// What stands before the JSON in a fence.
enum Comments {
    /// Comments that begin at these places; the JSON begins here.
    At(usize, Vec<usize>),
    None,
    Wait,
}

/// Passes over comments before JSON.
fn past_comments(start: usize, input: Input<'_>) -> Comments {
    let mut offsets = Vec::new();
    let mut at = start;
    loop {
        let rest = input.rest(at);
        if opens_json(rest) {
            return Comments::At(at, offsets);
        }
        let (mark, end) = match rest.as_bytes() {
            [b'#', ..] => (1, "\n"),
            [b'/', b'/', ..] => (2, "\n"),
            [b'/', b'*', ..] => (2, "*/"),
            [] | [b'/'] if !input.last => return Comments::Wait,
            _ => return Comments::None,
        };
        let room = (start + LONGEST_COMMENTS).saturating_sub(at);
        let window = rest.as_bytes().get(..room).unwrap_or(rest.as_bytes());
        let body = window.get(mark..).unwrap_or_default();
        match memchr::memmem::find(body, end.as_bytes()) {
            Some(length) => {
                offsets.push(at);
                at = input.after_space(at + mark + length + end.len());
            }
            None if window.len() < rest.len() || input.last => return Comments::None,
            None => return Comments::Wait,
        }
    }
}

/// The text so far does not tell.
pub(crate) struct Wait;

/// Passes over what may stand between two bare values. None: text.
fn separator(at: usize, input: Input<'_>) -> Option<usize> {
    if !matches!(input.bytes().get(at), Some(b',' | b';')) {
        return Some(at);
    }
    let next = input.after_space(at + 1);
    let goes_on = next == input.text.len() && !input.last;
    (goes_on || opens_json(input.slice(next, input.text.len()))).then_some(next)
}

/// How many bytes the character has that begins with this byte.
pub(crate) fn utf8_length(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0..0xf0 => 3,
        0xc0..0xe0 => 2,
        _ => 1,
    }
}
