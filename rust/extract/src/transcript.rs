//! What is no markup around calls but a way of telling a whole turn: messages on channels, `ReAct`
//! lines, and reasoning that an opening phrase announces.

use turnwarden_cleanup::{ChannelToken, Message, PREFACES, message_of};

use crate::FaultKind;
use crate::Span;
use crate::calls::{Arguments, Draft, fault};
use crate::grammars::json::{Fenced, JsonItem, opens_json, past_fence};
use crate::grammars::named::text_input;
use crate::grammars::value::is_name;
use crate::grammars::{Context, Input, Read};
use crate::json::Status;
use crate::machine::{Closing, Flow, Machine, State};
use crate::markers::{Hit, Look};
use crate::plan::{ReactLabel, SyntaxId};
use crate::prose::utf8_length;
use crate::reading::Reading;
use crate::scan::Stop;

/// Longest header of a message.
const LONGEST_HEADER: usize = 1024;
/// Longest line that names a tool.
const LONGEST_NAME: usize = 256;
/// Most tokens in a header.
const MOST_TOKENS: usize = 8;
const MESSAGE: &str = "<|message|>";

/// A message to a tool.
#[derive(Debug)]
pub(crate) struct Addressed {
    start: usize,
    name: String,
    syntax: SyntaxId,
    body: AddressedBody,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "it is boxed with its message")]
enum AddressedBody {
    /// What it is depends on the first character from here on.
    Unknown(usize),
    Json(Reading),
    /// Plain input from here, searched up to there.
    Input(usize, usize),
}

/// Text that is reasoning if something else follows: from `start`, its content from `inner`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preface {
    start: usize,
    inner: usize,
    at: usize,
    kind: PrefaceKind,
}

#[derive(Clone, Copy, Debug)]
enum PrefaceKind {
    /// `Thought:`, if an action or an answer follows.
    Thought,
    /// A phrase, if this one follows.
    Phrase(&'static str),
}

/// A `ReAct` action.
#[derive(Debug)]
pub(crate) struct Action {
    /// Where its label stands, and one past it.
    label: Span,
    stage: ActionStage,
}

#[derive(Debug)]
enum ActionStage {
    Name,
    /// JSON in place of name and input.
    Json(Box<JsonItem>),
    /// The input begins somewhere behind this.
    Input(String, usize),
    /// A JSON object behind so many backticks.
    Object(String, Box<Reading>, usize),
    /// Plain text from here, searched up to there.
    Text(String, usize, usize),
}

/// Whether text begins a header whose first token the template wrote.
pub(crate) enum Opens {
    Yes,
    No,
    Wait,
}

impl Machine {
    /// Whether a header without its first token begins at `at`.
    #[allow(clippy::unused_self, reason = "reads as a question to the engine")]
    pub(crate) fn opens_header(&self, at: usize, input: Input<'_>) -> Opens {
        let rest = input.rest(at);
        let window = rest.get(..rest.floor_char_boundary(32)).unwrap_or(rest);
        for word in ["to=", "analysis", "commentary", "final"] {
            if word.starts_with(window) && !input.last && !window.is_empty() {
                return Opens::Wait;
            }
            let Some(after) = window.strip_prefix(word) else {
                continue;
            };
            if word == "to=" {
                return Opens::Yes;
            }
            for next in [MESSAGE, " to=", "<|constrain|>"] {
                if after.starts_with(next) {
                    return Opens::Yes;
                }
                if next.starts_with(after) && !input.last {
                    return Opens::Wait;
                }
            }
        }
        Opens::No
    }

    /// Reads the header that begins at `start`.
    pub(crate) fn header(&mut self, start: usize, input: Input<'_>) -> Flow {
        let rest = input.rest(start);
        let window = rest
            .get(..rest.floor_char_boundary(LONGEST_HEADER))
            .unwrap_or(rest);
        let length = match header_end(window) {
            HeaderEnd::Message(length) => length,
            HeaderEnd::Open if window.len() == rest.len() && !input.last => {
                self.state = State::Header(start);
                return Flow::Wait;
            }
            HeaderEnd::Open | HeaderEnd::Never => {
                self.scan = start + window.chars().next().map_or(1, char::len_utf8);
                return Flow::Go;
            }
        };
        let header = window.get(..length).unwrap_or_default();
        let body = start + length + MESSAGE.len();
        let channels = self
            .plan()
            .channels
            .as_ref()
            .map(|(syntax, calls)| (*syntax, calls.clone()));
        self.emit(input, start);
        match (message_of(header), channels) {
            (Message::Reasoning, _) => {
                self.open_reasoning(Closing::Channel, start);
                self.markup(body);
            }
            (Message::To(name), Some((syntax, calls))) if self.counts(syntax) => {
                let name = name
                    .strip_prefix(calls.prefix.as_str())
                    .unwrap_or(name)
                    .to_owned();
                let body = AddressedBody::Unknown(body);
                self.state = State::Addressed(Box::new(Addressed {
                    start,
                    name,
                    syntax,
                    body,
                }));
                return Flow::Go;
            }
            (Message::Text | Message::To(_), _) => self.markup(body),
        }
        self.scan = body;
        Flow::Go
    }

    /// Reads a message to a tool.
    pub(crate) fn addressed(&mut self, mut message: Box<Addressed>, input: Input<'_>) -> Flow {
        match &mut message.body {
            AddressedBody::Unknown(from) => {
                let from = *from;
                let at = input.after_space(from);
                if input.ends_at(at) && !input.last {
                    self.state = State::Addressed(message);
                    return Flow::Wait;
                }
                if opens_json(input.rest(at)) {
                    let closers = &self.plan().channel_closers;
                    let reading = Reading::new(Self::rules(&self.shared), closers, false, at);
                    message.body = AddressedBody::Json(reading);
                } else {
                    match self.look(at, input) {
                        Look::Partial(_) => {
                            self.state = State::Addressed(message);
                            return Flow::Wait;
                        }
                        Look::Hit(hit) if !self.shared.plan.roles(hit.id).opens.is_empty() => {
                            // The call is written with markup of its own.
                            self.markup(from);
                            self.scan = from;
                            return Flow::Go;
                        }
                        _ if input.rest(at).starts_with('<') => {
                            // Markup that is not read here: no input.
                            self.markup(from);
                            self.scan = from;
                            return Flow::Go;
                        }
                        _ => message.body = AddressedBody::Input(from, from),
                    }
                }
                self.state = State::Addressed(message);
                Flow::Go
            }
            AddressedBody::Json(reading) => match reading.read(input) {
                Status::NeedMore => {
                    self.state = State::Addressed(message);
                    Flow::Wait
                }
                Status::Done { end, complete } => {
                    let span = Span {
                        start: message.start,
                        end,
                    };
                    let mut draft = named_draft(message.name, span, complete);
                    Self::rules(&self.shared).read_arguments(reading.value(None), &mut draft);
                    draft.repaired |= !reading.repairs().is_empty();
                    if reading.has_huge_number(span) {
                        draft.arguments = Arguments::Refused(FaultKind::NumberOutOfRange);
                    }
                    self.out.repairs(reading.repairs().iter().copied());
                    self.accept_addressed(draft, message.syntax, end, input)
                }
                Status::Failed(error) => {
                    let span = Span {
                        start: message.start,
                        end: error.offset,
                    };
                    let mut draft = named_draft(message.name, span, true);
                    draft.arguments = Arguments::Refused(crate::calls::fault_of(error));
                    self.accept_addressed(draft, message.syntax, error.offset, input)
                }
            },
            AddressedBody::Input(from, at) => {
                let (from, at) = (*from, *at);
                let (end, complete) = match self.next_token(at, input) {
                    Look::Hit(hit) => (hit.start, true),
                    Look::Partial(start) => {
                        message.body = AddressedBody::Input(from, start.max(at));
                        self.state = State::Addressed(message);
                        return Flow::Wait;
                    }
                    Look::Nothing if !input.last => {
                        message.body = AddressedBody::Input(from, input.text.len());
                        self.state = State::Addressed(message);
                        return Flow::Wait;
                    }
                    Look::Nothing => (input.text.len(), false),
                };
                let span = Span {
                    start: message.start,
                    end,
                };
                let mut draft = named_draft(message.name, span, complete);
                draft.arguments = text_input(input.slice(from, end));
                self.accept_addressed(draft, message.syntax, end, input)
            }
        }
    }

    fn accept_addressed(
        &mut self,
        draft: Draft,
        syntax: SyntaxId,
        end: usize,
        input: Input<'_>,
    ) -> Flow {
        self.settle_as_payload(input);
        self.accept(draft, syntax);
        self.scan = end;
        Flow::Go
    }

    /// The next token of a channel from `from` on.
    fn next_token(&mut self, mut from: usize, input: Input<'_>) -> Look {
        let plan = &self.shared.plan;
        while let Some(offset) = memchr::memchr(b'<', input.rest(from).as_bytes()) {
            let at = from + offset;
            let wanted = |id| plan.roles(id).channel.is_some();
            match plan.markers.look(input.bytes(), at, input.last, wanted) {
                Look::Nothing => from = at + 1,
                found => return found,
            }
        }
        Look::Nothing
    }

    /// A token of a channel outside reasoning.
    pub(crate) fn channel_token(
        &mut self,
        token: ChannelToken,
        hit: Hit,
        input: Input<'_>,
    ) -> Flow {
        match token {
            ChannelToken::Header => {
                self.emit(input, hit.start);
                self.state = State::Header(hit.start);
            }
            ChannelToken::Message | ChannelToken::End => {
                let beside = input.slice(self.done, hit.start).trim().is_empty();
                if beside && self.out.follows_markup() {
                    self.emit(input, hit.start);
                    self.markup(hit.end);
                }
                self.scan = hit.end;
            }
        }
        Flow::Go
    }

    /// Whether a phrase that announces reasoning stands at `at`, where the reply begins.
    #[allow(clippy::unused_self, reason = "reads as a question to the engine")]
    pub(crate) fn preface_at(&self, at: usize, input: Input<'_>) -> Option<Result<Preface, ()>> {
        let rest = input.rest(at);
        for (open, follows) in PREFACES {
            if rest.starts_with(open) {
                let inner = at + open.len();
                let kind = PrefaceKind::Phrase(follows);
                return Some(Ok(Preface {
                    start: at,
                    inner,
                    at: inner,
                    kind,
                }));
            }
            if open.starts_with(rest) && !input.last && !rest.is_empty() {
                return Some(Err(()));
            }
        }
        None
    }

    /// Waits for what shows that text since a preface was reasoning.
    pub(crate) fn preface(&mut self, mut preface: Preface, input: Input<'_>) -> Flow {
        let found = match preface.kind {
            PrefaceKind::Phrase(phrase) => find_phrase(phrase, &mut preface.at, input),
            PrefaceKind::Thought => self.find_label(&mut preface.at, input),
        };
        match found {
            Awaited::Wait => {
                self.state = State::Preface(preface);
                Flow::Wait
            }
            Awaited::Never => {
                self.fresh = false;
                self.scan = preface.inner;
                Flow::Go
            }
            Awaited::At(start, end) => {
                self.emit(input, preface.start);
                self.open_reasoning(Closing::Any, preface.start);
                self.markup(preface.inner);
                self.scan = preface.inner;
                self.emit(input, start);
                self.reasoning = None;
                self.in_transcript |= matches!(preface.kind, PrefaceKind::Thought);
                self.close_section(preface.start, end);
                Flow::Go
            }
        }
    }

    /// The label that follows a thought; another marker before it means that it was no thought.
    fn find_label(&mut self, from: &mut usize, input: Input<'_>) -> Awaited {
        loop {
            let markers = &self.shared.plan.markers;
            let at = match self.stops.next(markers, input.bytes(), *from, false) {
                Some(Stop::Byte(at)) => at,
                Some(Stop::Marker(_)) => return Awaited::Never,
                None if !input.last => {
                    *from = markers
                        .unfinished(input.bytes())
                        .unwrap_or(input.text.len())
                        .max(*from);
                    return Awaited::Wait;
                }
                None if self.in_transcript => {
                    return Awaited::At(input.text.len(), input.text.len());
                }
                None => return Awaited::Never,
            };
            match self.look(at, input) {
                Look::Hit(hit) => {
                    let roles = self.shared.plan.roles(hit.id);
                    if roles.react.is_some() {
                        return Awaited::At(hit.start, hit.start);
                    }
                    if !roles.opens.is_empty()
                        || roles.opens_reasoning.is_some()
                        || roles.closes_reasoning
                    {
                        return Awaited::Never;
                    }
                    *from = hit.end;
                }
                Look::Partial(_) => {
                    *from = at;
                    return Awaited::Wait;
                }
                Look::Nothing => {
                    *from = at + input.bytes().get(at).map_or(1, |byte| utf8_length(*byte));
                }
            }
        }
    }

    /// A line of a `ReAct` transcript begins.
    pub(crate) fn react_label(&mut self, label: ReactLabel, hit: Hit, input: Input<'_>) -> Flow {
        let first = self.fresh && input.slice(self.done, hit.start).trim().is_empty();
        match label {
            ReactLabel::Thought if first || self.in_transcript => {
                self.emit(input, hit.start);
                self.state = State::Preface(Preface {
                    start: hit.start,
                    inner: hit.end,
                    at: hit.end,
                    kind: PrefaceKind::Thought,
                });
            }
            ReactLabel::Action => {
                self.emit_before(hit.start, input);
                self.state = State::Action(Box::new(Action {
                    label: Span {
                        start: hit.start,
                        end: hit.end,
                    },
                    stage: ActionStage::Name,
                }));
            }
            ReactLabel::Answer if self.in_transcript => {
                self.emit(input, hit.start);
                self.markup(hit.end);
                self.scan = hit.end;
            }
            ReactLabel::Observation if self.in_transcript => {
                self.emit(input, hit.start);
                self.state = State::Imagined(hit.start);
            }
            _ => self.scan = hit.end,
        }
        Flow::Go
    }

    /// A tool's result that the model made up, and everything after it: not the model's to say.
    pub(crate) fn imagined(&mut self, start: usize, input: Input<'_>) -> Flow {
        if !input.last {
            self.state = State::Imagined(start);
            return Flow::Wait;
        }
        self.out.fault(fault(FaultKind::Junk, start, None));
        self.out.fault_span(self.done, input.text.len());
        self.done = input.text.len();
        self.scan = self.done;
        Flow::Go
    }

    /// Reads on in an action.
    pub(crate) fn action(&mut self, mut action: Box<Action>, input: Input<'_>) -> Flow {
        let label = action.label;
        let next = match action.stage {
            ActionStage::Name => self.action_name(label, input),
            ActionStage::Json(item) => return self.action_json(label, item, input),
            ActionStage::Input(name, from) => self.action_input(name, from, input),
            ActionStage::Object(name, reading, marks) => {
                return self.action_object(label, name, reading, marks, input);
            }
            ActionStage::Text(name, from, at) => {
                return self.action_text(label, name, from, at, input);
            }
        };
        match next {
            Step::To(stage) => {
                action.stage = stage;
                self.state = State::Action(action);
                Flow::Go
            }
            Step::Wait(stage) => {
                action.stage = stage;
                self.state = State::Action(action);
                Flow::Wait
            }
            Step::Text => {
                self.scan = label.end;
                Flow::Go
            }
            Step::Done(end) => {
                self.markup(end);
                self.scan = end;
                Flow::Go
            }
            Step::Call(draft, end) => self.accept_action(draft, end, input),
        }
    }

    /// The name behind `Action:`, and whether input follows.
    fn action_name(&mut self, label: Span, input: Input<'_>) -> Step {
        let blanks = input
            .rest(label.end)
            .bytes()
            .take(LONGEST_NAME)
            .take_while(|b| matches!(b, b' ' | b'\t'))
            .count();
        let at = label.end + blanks;
        let payload = input.after_space(at);
        if input.ends_at(payload) && !input.last {
            return Step::Wait(ActionStage::Name);
        }
        match past_fence(input, payload) {
            Fenced::Wait => return Step::Wait(ActionStage::Name),
            Fenced::At { value, .. } if opens_json(input.rest(value)) => {
                return match self.action_item(payload, input) {
                    Some(item) => Step::To(ActionStage::Json(Box::new(item))),
                    None => Step::Text,
                };
            }
            Fenced::At { value, marks } if marks > 0 && input.ends_at(value) && !input.last => {
                return Step::Wait(ActionStage::Name);
            }
            Fenced::At { .. } => {}
        }
        let rest = input.rest(at);
        let window = rest
            .get(..rest.floor_char_boundary(LONGEST_NAME))
            .unwrap_or(rest);
        let Some(length) = window.find('\n') else {
            if window.len() < rest.len() || window.len() >= LONGEST_NAME {
                return Step::Text;
            }
            if !input.last {
                return Step::Wait(ActionStage::Name);
            }
            let name = bare_name(window);
            if self.in_transcript && is_name(name) && !is_none(name) {
                let span = Span {
                    start: label.start,
                    end: input.text.len(),
                };
                return Step::Call(named_draft(name.to_owned(), span, false), span.end);
            }
            return if self.in_transcript && is_none(name) {
                Step::Done(input.text.len())
            } else {
                Step::Text
            };
        };
        let name = bare_name(window.get(..length).unwrap_or_default());
        let line_end = at + length;
        let follows = input.after_space(line_end);
        let Some((_, calls)) = &self.shared.plan.react else {
            return Step::Text;
        };
        let rest = input.rest(follows);
        if rest.starts_with(calls.input.as_str()) && is_name(name) {
            return Step::To(ActionStage::Input(
                name.to_owned(),
                follows + calls.input.len(),
            ));
        }
        if calls.input.starts_with(rest) && !input.last {
            return Step::Wait(ActionStage::Name);
        }
        if !self.in_transcript {
            return Step::Text;
        }
        if is_none(name) {
            return Step::Done(line_end);
        }
        let span = Span {
            start: label.start,
            end: line_end,
        };
        if is_name(name) && (rest.is_empty() || rest.starts_with(calls.observation.as_str())) {
            return Step::Call(
                named_draft(name.to_owned(), span, !rest.is_empty()),
                line_end,
            );
        }
        if calls.observation.starts_with(rest) && !input.last {
            return Step::Wait(ActionStage::Name);
        }
        Step::Text
    }

    fn action_item(&self, at: usize, input: Input<'_>) -> Option<JsonItem> {
        let (syntax, _) = self.plan().react.as_ref()?;
        let entry = self.plan().entry(*syntax)?;
        let context = Context {
            plan: self.plan(),
            entry,
            rules: Self::rules(&self.shared),
        };
        let item = JsonItem::at(context, input, at)?;
        Some(if self.in_transcript {
            item.among_calls()
        } else {
            item
        })
    }

    fn action_json(&mut self, label: Span, mut item: Box<JsonItem>, input: Input<'_>) -> Flow {
        let shared = std::sync::Arc::clone(&self.shared);
        let Some((syntax, calls)) = &shared.plan.react else {
            return Flow::Go;
        };
        let Some(entry) = shared.plan.entry(*syntax) else {
            return Flow::Go;
        };
        let context = Context {
            plan: &shared.plan,
            entry,
            rules: Self::rules(&shared),
        };
        let mut drafts = Vec::new();
        let read = item.read(&calls.json, context, input, &mut drafts);
        if !drafts.is_empty() {
            self.emit(input, label.start);
            self.settle_as_payload(input);
            self.in_transcript = true;
        }
        for draft in drafts {
            if draft.name.as_deref() == Some(calls.answer.trim_end_matches(':')) {
                self.tell_answer(&draft);
            } else {
                self.accept(draft, *syntax);
            }
        }
        match read {
            Read::Wait => {
                let stage = ActionStage::Json(item);
                self.state = State::Action(Box::new(Action { label, stage }));
                return Flow::Wait;
            }
            Read::Done(end) if self.in_transcript => {
                self.out.repairs(item.repairs().iter().copied());
                self.markup(end);
                self.scan = end;
            }
            Read::Done(_) | Read::Failed(..) | Read::Text(_) => {
                self.scan = label.end.max(self.done);
            }
        }
        Flow::Go
    }

    /// An action called `Final Answer`: its input is the text.
    fn tell_answer(&mut self, draft: &Draft) {
        self.markup(draft.span.start);
        if let Arguments::Text(text) = &draft.arguments {
            self.out.content(text, draft.span.start, draft.span.end);
            self.done = draft.span.end;
        }
        self.markup(draft.span.end);
    }

    /// What stands behind `Action Input:`.
    fn action_input(&mut self, name: String, from: usize, input: Input<'_>) -> Step {
        let at = input.after_space(from);
        if input.ends_at(at) && !input.last {
            return Step::Wait(ActionStage::Input(name, from));
        }
        let (mut value, mut marks) = match past_fence(input, at) {
            Fenced::Wait => return Step::Wait(ActionStage::Input(name, from)),
            Fenced::At { value, marks } => (value, marks),
        };
        if marks == 0 && input.rest(at).starts_with('`') {
            (value, marks) = (at + 1, 1);
            if input.ends_at(value) && !input.last {
                return Step::Wait(ActionStage::Input(name, from));
            }
        }
        if opens_json(input.rest(value)) && input.rest(value).starts_with(['{', '｛']) {
            let closers = &self.plan().react_closers;
            let reading = Reading::new(Self::rules(&self.shared), closers, marks > 0, value);
            return Step::To(ActionStage::Object(name, Box::new(reading), marks));
        }
        Step::To(ActionStage::Text(name, from, from))
    }

    fn action_object(
        &mut self,
        label: Span,
        name: String,
        mut reading: Box<Reading>,
        marks: usize,
        input: Input<'_>,
    ) -> Flow {
        match reading.read(input) {
            Status::NeedMore => {
                let stage = ActionStage::Object(name, reading, marks);
                self.state = State::Action(Box::new(Action { label, stage }));
                Flow::Wait
            }
            Status::Failed(error) => {
                let span = Span {
                    start: label.start,
                    end: error.offset,
                };
                let mut draft = named_draft(name, span, true);
                draft.arguments = Arguments::Refused(crate::calls::fault_of(error));
                self.accept_action(draft, span.end, input)
            }
            Status::Done { end, complete } => {
                let close = crate::grammars::json::close_fence(input, end, marks);
                let Read::Done(close) = close else {
                    let stage = ActionStage::Object(name, reading, marks);
                    self.state = State::Action(Box::new(Action { label, stage }));
                    return Flow::Wait;
                };
                let span = Span {
                    start: label.start,
                    end,
                };
                let mut draft = named_draft(name, span, complete);
                Self::rules(&self.shared).read_arguments(reading.value(None), &mut draft);
                draft.repaired |= !reading.repairs().is_empty();
                if reading.has_huge_number(span) {
                    draft.arguments = Arguments::Refused(FaultKind::NumberOutOfRange);
                }
                self.out.repairs(reading.repairs().iter().copied());
                self.accept_action(draft, close, input)
            }
        }
    }

    fn action_text(
        &mut self,
        label: Span,
        name: String,
        from: usize,
        mut at: usize,
        input: Input<'_>,
    ) -> Flow {
        let end = loop {
            let markers = &self.shared.plan.markers;
            let stop = match self.stops.next(markers, input.bytes(), at, false) {
                Some(stop) => stop.at(),
                None if !input.last => {
                    let held = markers
                        .unfinished(input.bytes())
                        .unwrap_or(input.text.len());
                    let stage = ActionStage::Text(name, from, held.max(at));
                    self.state = State::Action(Box::new(Action { label, stage }));
                    return Flow::Wait;
                }
                None => break input.text.len(),
            };
            match self.look(stop, input) {
                Look::Hit(hit) => {
                    let roles = self.shared.plan.roles(hit.id);
                    if roles.react.is_some() || roles.ends_turn || roles.closes_reasoning {
                        break hit.start;
                    }
                    at = hit.end;
                }
                Look::Partial(_) => {
                    let stage = ActionStage::Text(name, from, stop);
                    self.state = State::Action(Box::new(Action { label, stage }));
                    return Flow::Wait;
                }
                Look::Nothing => {
                    at = stop + input.bytes().get(stop).map_or(1, |byte| utf8_length(*byte));
                }
            }
        };
        let text = input.slice(from, end).trim();
        let span = Span {
            start: label.start,
            end: end.min(from + input.slice(from, end).trim_end().len()),
        };
        let mut draft = named_draft(name, span, true);
        if text.is_empty() {
            // A label without a value: cut off at the end of the reply, else a mistake.
            draft.complete = !input.ends_at(end);
            if draft.complete {
                draft.arguments = Arguments::Refused(FaultKind::MissingArguments);
            }
        } else {
            let (text, closed) = unfenced(text);
            draft.complete = closed || !input.ends_at(end);
            draft.arguments = text_input(text);
        }
        self.accept_action(draft, span.end, input)
    }

    fn accept_action(&mut self, draft: Draft, end: usize, input: Input<'_>) -> Flow {
        let Some((syntax, _)) = &self.shared.plan.react else {
            return Flow::Go;
        };
        let syntax = *syntax;
        self.emit(input, draft.span.start);
        self.settle_as_payload(input);
        self.accept(draft, syntax);
        self.markup(end);
        self.in_transcript = true;
        self.scan = end.max(self.done);
        Flow::Go
    }
}

/// Where a header ends.
enum HeaderEnd {
    /// Its message begins behind the token that stands here.
    Message(usize),
    /// Not in what has come.
    Open,
    /// What has come is no header.
    Never,
}

/// Finds the token that ends a header: on its line, after few other tokens.
fn header_end(text: &str) -> HeaderEnd {
    let bytes = text.as_bytes();
    for at in memchr::memchr2_iter(b'\n', b'<', bytes).take(MOST_TOKENS) {
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with(MESSAGE) {
            return HeaderEnd::Message(at);
        }
        let ends = ["\n", "<|end|>", "<|call|>", "<|return|>", "<|eom|>"];
        if ends.iter().any(|end| rest.starts_with(end)) {
            return HeaderEnd::Never;
        }
    }
    let tokens = memchr::memchr_iter(b'<', bytes).take(MOST_TOKENS + 1);
    if tokens.count() > MOST_TOKENS {
        return HeaderEnd::Never;
    }
    HeaderEnd::Open
}

/// What a step of an action led to.
enum Step {
    To(ActionStage),
    Wait(ActionStage),
    /// It was no action.
    Text,
    /// No tool: nothing but markup up to here.
    Done(usize),
    Call(Draft, usize),
}

/// Whether something that is waited for has come.
enum Awaited {
    Wait,
    Never,
    At(usize, usize),
}

fn find_phrase(phrase: &str, from: &mut usize, input: Input<'_>) -> Awaited {
    let rest = input.rest(*from);
    match memchr::memmem::find(rest.as_bytes(), phrase.as_bytes()) {
        Some(offset) => Awaited::At(*from + offset, *from + offset + phrase.len()),
        None if input.last => Awaited::Never,
        None => {
            let back = input.text.len().saturating_sub(phrase.len());
            *from = input.text.floor_char_boundary(back).max(*from);
            Awaited::Wait
        }
    }
}

/// Plain input without the code fence or the backticks around it, and whether these are closed.
fn unfenced(text: &str) -> (&str, bool) {
    let inner = text.trim_start_matches('`');
    let marks = text.len() - inner.len();
    let content = inner.trim_end_matches('`');
    if marks == 0 || marks < 3 && content.contains('`') {
        return (text, true);
    }
    let closed = inner.len() - content.len() >= marks;
    let Some(line) = (marks >= 3).then(|| content.lines().next().unwrap_or_default()) else {
        return (content, closed);
    };
    let only_word = !line.trim_end().contains(char::is_whitespace);
    let is_info = only_word && (line.len() < content.len() || !closed);
    let rest = content.get(line.len()..).unwrap_or_default();
    (if is_info { rest } else { content }, closed)
}

fn named_draft(name: String, span: Span, complete: bool) -> Draft {
    Draft {
        name: Some(name),
        arguments: Arguments::Missing,
        id: None,
        complete,
        repaired: false,
        junk: None,
        span,
    }
}

/// A name without what models put around it.
fn bare_name(text: &str) -> &str {
    text.trim().trim_matches(['`', '*', '"', '\'']).trim()
}

fn is_none(name: &str) -> bool {
    matches!(
        name.to_ascii_lowercase().as_str(),
        "none" | "n/a" | "null" | "no action"
    )
}
