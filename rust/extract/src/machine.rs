//! The engine: one walk over the reply, as a machine with few states and one step function.
//!
//! `done` is the offset up to which every byte has been accounted for, `scan` the one from which
//! the search goes on; what lies between is held back because its fate is open.
//!
//! ```text
//! Prose --marker--> Block (calls in markup) ----------------> Prose
//!   |---reasoning tag: prose goes to the reasoning until its end
//!   |---fence of another language--> Code ------------------> Prose
//!   |---brace or bracket--> Candidate (JSON that may be calls) --> Prose
//!   |---end-of-turn token--> Tokens -----------------------> Prose
//! ```
//!
//! Whatever turns out to be no payload is text; then the scan goes on right after its beginning.
//! Memory of what was searched in vain keeps the whole linear.

use std::sync::Arc;

use turnwarden_cleanup::{CodeSearch, CodeSpans, Fence, Joint};

use crate::block::Block;
use crate::calls::{Draft, Rules, Settled, fault};
use crate::candidate::Candidate;
use crate::early::{Early, Open};
use crate::engine::Shared;
use crate::grammars::python::PythonItem;
use crate::grammars::{Input, SpaceMemo};
use crate::markers::{Hit, MarkerId};
use crate::output::{Checkpoint, Output};
use crate::plan::{Plan, Roles, SyntaxId};
use crate::scan::Stops;
use crate::transcript::{Action, Addressed, Preface};
use crate::{Event, Fault, FaultKind, Reply, Span, SpanKind, ToolCall, call_id};

/// Whether the machine can go on with the text that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Go,
    Wait,
}

#[derive(Debug)]
pub(crate) enum State {
    /// Text or reasoning in which anything may begin.
    Prose,
    /// Fenced code of another language, searched up to here for its end.
    Code(Fence, usize),
    /// End-of-turn tokens: from the first up to here.
    Tokens(usize, usize),
    /// JSON that may be a payload.
    Candidate(Box<Candidate>),
    /// Call markup.
    Block(Box<Block>),
    /// Python that may be calls, and all of the reply.
    Bare(Box<PythonItem>),
    /// The header of a message, from here on.
    Header(usize),
    /// A message to a tool.
    Addressed(Box<Addressed>),
    /// Text that may turn out to be reasoning.
    Preface(Preface),
    /// A `ReAct` action.
    Action(Box<Action>),
    /// A result that the model made up, from here on.
    Imagined(usize),
    /// The rest of a payload that can't be read, and what follows it.
    Unreadable,
    /// Everything is read.
    Over,
}

/// A fence that may hold a payload.
#[derive(Clone, Debug)]
pub(crate) struct OpenFence {
    pub(crate) fence: Fence,
    pub(crate) fate: FenceFate,
    /// Where the last payload in it ends.
    pub(crate) payload: usize,
    /// The first run of marks behind that, once one has come.
    first_mark: Option<FirstMark>,
    /// The white space before it, while its fate is open.
    pub(crate) joint: (Joint, Vec<usize>),
    /// Whether nothing visible stands before it.
    pub(crate) first: bool,
    /// The syntax of JSON calls that may stand in it.
    pub(crate) json: Option<SyntaxId>,
}

/// The first run of marks behind a payload.
#[derive(Clone, Copy, Debug)]
struct FirstMark {
    at: usize,
    /// Whether nothing but white space stands between the two.
    adjacent: bool,
}

impl OpenFence {
    /// A fence whose fate is open.
    pub(crate) fn new(
        fence: Fence,
        joint: (Joint, Vec<usize>),
        first: bool,
        json: Option<SyntaxId>,
    ) -> Self {
        Self {
            payload: fence.body,
            fence,
            fate: FenceFate::Open,
            first_mark: None,
            joint,
            first,
            json,
        }
    }

    /// Whether the marks at `at` are the first thing behind a payload. The text between the two is
    /// looked at once, however many marks follow.
    pub(crate) fn is_right_behind_payload(&mut self, at: usize, input: Input<'_>) -> bool {
        let payload = self.payload;
        let first = *self.first_mark.get_or_insert_with(|| FirstMark {
            at,
            adjacent: input.slice(payload, at).trim_start().is_empty(),
        });
        self.fate == FenceFate::Dropped && first.adjacent && first.at == at
    }
}

/// What becomes of the fence around a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceFate {
    /// Nothing visible has come after its opening line.
    Open,
    /// It is part of the text.
    Text,
    /// It surrounds a payload and is dropped.
    Dropped,
}

/// What closes a block of reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The marker that belongs to the one that opened it.
    Marker(MarkerId),
    /// Any closing marker: the template opened the block.
    Any,
    /// The token that ends a message on a channel, or begins the next.
    Channel,
}

/// A block of reasoning.
#[derive(Debug)]
pub(crate) struct OpenReasoning {
    pub(crate) close: Closing,
    pub(crate) start: usize,
    /// Where call markup begins in it: from here on it is held back, because calls in a block
    /// that is never closed are calls.
    pub(crate) held_from: Option<usize>,
    /// Whether calls in it count.
    pub(crate) calls_count: bool,
    /// Whether the block was found to be unclosed: then only complete calls count.
    pub(crate) recovering: bool,
}

impl OpenReasoning {
    /// Whether the template opened the block and the model opens it again.
    pub(crate) fn is_template_opened(
        &self,
        roles: &Roles,
        done: usize,
        hit: Hit,
        input: Input<'_>,
    ) -> bool {
        self.close == Closing::Any
            && roles.opens_reasoning.is_some()
            && self.start == 0
            && input.slice(0, hit.start).trim().is_empty()
            && done <= hit.start
    }
}

/// Bare JSON calls, which are calls only if nothing visible follows.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) span: Span,
    pub(crate) joint: (Joint, Vec<usize>),
    pub(crate) drafts: Vec<Draft>,
    pub(crate) syntax: SyntaxId,
    /// The text and the reasoning of a native message.
    pub(crate) native: Option<(String, Option<String>)>,
}

#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) out: Output,
    pub(crate) state: State,
    pub(crate) done: usize,
    pub(crate) scan: usize,
    pub(crate) stops: Stops,
    pub(crate) code_spans: CodeSpans,
    pub(crate) code: Option<CodeSearch>,
    pub(crate) fence: Option<OpenFence>,
    pub(crate) reasoning: Option<OpenReasoning>,
    /// What closes the wrapper around the answer, when one is open.
    pub(crate) wrapper: Option<MarkerId>,
    /// What a closing tag without an opening one goes back to.
    pub(crate) section: Section,
    /// The format of the reply, once a call has fixed it.
    pub(crate) format: Option<usize>,
    pub(crate) pending: Option<Pending>,
    /// Whether nothing visible has come yet, so that bare JSON may begin.
    pub(crate) fresh: bool,
    /// Whether lines of a `ReAct` transcript have come.
    pub(crate) in_transcript: bool,
    /// Whether only white space has come since a block of reasoning.
    pub(crate) after_reasoning: bool,
    /// JSON in prose has been looked for up to here.
    pub(crate) no_json_before: usize,
    spaces: SpaceMemo,
    /// Syntaxes of which a section was read to the end of the reply in vain: any marker of theirs
    /// was passed on the way, so that none behind it begins a section either.
    pub(crate) hopeless: Vec<Vec<SyntaxId>>,
    /// Text that has been let go but is scanned again: what to go back to.
    pub(crate) let_go: Option<Saved>,
}

/// What a machine goes back to when it takes back what it let go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Saved {
    checkpoint: Checkpoint,
    fence: Option<OpenFence>,
    pending: Option<Pending>,
    fresh: bool,
    after_reasoning: bool,
    done: usize,
}

/// The beginning of what may turn out to be reasoning that the template opened.
#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) at: usize,
    pub(crate) format: Option<usize>,
    pub(crate) fence: Option<OpenFence>,
    pub(crate) pending: Option<Pending>,
}

impl Saved {
    /// Whether bare calls stood before.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending.is_some()
    }
}

impl Machine {
    pub(crate) fn new(shared: Arc<Shared>, live: bool) -> Self {
        let mut machine = Self::of_answer(shared, live);
        if machine.shared.options.reasoning_open {
            machine.open_reasoning(Closing::Any, 0);
        }
        machine
    }

    /// For a reply whose reasoning came apart from it: it never begins inside a block.
    pub(crate) fn of_answer(shared: Arc<Shared>, live: bool) -> Self {
        Self {
            out: Output::new(live),
            state: State::Prose,
            done: 0,
            scan: 0,
            stops: Stops::default(),
            code_spans: CodeSpans::default(),
            code: None,
            fence: None,
            reasoning: None,
            wrapper: None,
            section: Section::default(),
            format: None,
            pending: None,
            fresh: true,
            in_transcript: false,
            after_reasoning: false,
            no_json_before: 0,
            let_go: None,
            hopeless: Vec::new(),
            spaces: SpaceMemo::default(),
            shared,
        }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.shared.plan
    }

    pub(crate) fn rules(shared: &Shared) -> Rules<'_> {
        Rules {
            tools: shared.options.tools.as_ref(),
            limits: &shared.options.limits,
            passes_values: !shared.options.buffer_arguments,
        }
    }

    /// Reads on in `text`, the reply so far; `last` says that no more will come.
    pub(crate) fn advance(&mut self, text: &str, last: bool) {
        let spaces = std::mem::take(&mut self.spaces);
        let input = Input::new(text, last, &spaces);
        while self.step(input) == Flow::Go {}
        self.spaces = spaces;
    }

    fn step(&mut self, input: Input<'_>) -> Flow {
        match std::mem::replace(&mut self.state, State::Prose) {
            State::Prose => self.prose(input),
            State::Code(fence, from) => self.fenced_code(fence, from, input),
            State::Tokens(start, end) => self.tokens(start, end, input),
            State::Candidate(candidate) => self.candidate(candidate, input),
            State::Block(block) => self.block(block, input),
            State::Bare(item) => self.bare_python(item, input),
            State::Header(start) => self.header(start, input),
            State::Addressed(message) => self.addressed(message, input),
            State::Preface(preface) => self.preface(preface, input),
            State::Action(action) => self.action(action, input),
            State::Imagined(start) => self.imagined(start, input),
            State::Unreadable => self.unreadable(input),
            State::Over => {
                self.state = State::Over;
                Flow::Wait
            }
        }
    }

    /// Whether a payload is being read, or one has come that ends behind `start`.
    pub(crate) fn holds_payload_since(&self, start: usize) -> bool {
        let is_inside = match &self.state {
            State::Candidate(candidate) => !candidate.is_at_content(),
            State::Block(_) | State::Bare(_) | State::Addressed(_) | State::Action(_) => true,
            State::Prose | State::Code(..) | State::Tokens(..) | State::Header(_) => false,
            State::Preface(_) | State::Imagined(_) | State::Unreadable | State::Over => false,
        };
        let later = self.out.reply.spans.iter().rev();
        let mut later = later.take_while(|(_, span)| span.end > start);
        is_inside || later.any(|(kind, _)| *kind == SpanKind::Call)
    }

    /// What can't be read is a fault up to the end: nothing tells where the payload would end.
    fn unreadable(&mut self, input: Input<'_>) -> Flow {
        if !input.last {
            self.state = State::Unreadable;
            return Flow::Wait;
        }
        self.out.fault_span(self.done, input.text.len());
        self.done = input.text.len();
        self.scan = self.done;
        Flow::Go
    }

    /// Ends the reply, of which `unread` bytes more than `text` were beyond the limit.
    pub(crate) fn finish(&mut self, text: &str, unread: usize) {
        if unread > 0 {
            self.out
                .fault(fault(FaultKind::ReplyTooLong, text.len(), None));
            self.out.fault_span(text.len(), text.len() + unread);
        }
        self.out.finish(text);
    }

    /// Adds a fault of the reply as a whole.
    pub(crate) fn tell_fault(&mut self, fault: Fault) {
        self.out.fault(fault);
    }

    pub(crate) fn take_events(&mut self, events: &mut Vec<Event>) {
        self.out.take_events(events);
    }

    pub(crate) fn reply(&self) -> &Reply {
        &self.out.reply
    }

    pub(crate) fn into_reply(self) -> Reply {
        self.out.reply
    }

    /// Accounts for everything up to `end`: it is text, or reasoning in a block of it.
    pub(crate) fn emit(&mut self, input: Input<'_>, end: usize) {
        if let Some(reasoning) = &self.reasoning {
            let end = reasoning.held_from.map_or(end, |held| held.min(end));
            let piece = input.slice(self.done, end);
            if !piece.is_empty() {
                self.out.reasoning(piece, self.done);
                self.done = end;
            }
            return;
        }
        if end < self.done {
            self.take_back(input, end);
        }
        let piece = input.slice(self.done, end);
        if piece.is_empty() {
            return;
        }
        self.let_go = None;
        if !piece.trim_start().is_empty() {
            self.settle_as_text(input);
            self.fresh = false;
            self.after_reasoning = false;
        }
        self.out.text(piece, self.done);
        self.done = end;
    }

    /// Takes back text from `end` on that was let go too early.
    fn take_back(&mut self, input: Input<'_>, end: usize) {
        if let Some(saved) = self.let_go.take() {
            self.restore(saved);
            self.emit(input, end);
        }
    }

    /// What to go back to should text have been let go too early.
    pub(crate) fn save(&self) -> Saved {
        Saved {
            checkpoint: self.out.checkpoint(),
            fence: self.fence.clone(),
            pending: self.pending.clone(),
            fresh: self.fresh,
            after_reasoning: self.after_reasoning,
            done: self.done,
        }
    }

    /// Goes back.
    pub(crate) fn restore(&mut self, saved: Saved) {
        self.out.roll_back(saved.checkpoint);
        let fence = saved.fence.iter().map(|fence| &fence.joint);
        let pending = saved.pending.iter().map(|pending| &pending.joint);
        for (_, joint_spans) in fence.chain(pending) {
            self.out.wait_again(joint_spans);
        }
        self.fence = saved.fence;
        self.pending = saved.pending;
        self.fresh = saved.fresh;
        self.after_reasoning = saved.after_reasoning;
        self.done = saved.done;
    }

    /// Something visible follows: a fence and bare JSON whose fate was open are text.
    pub(crate) fn settle_as_text(&mut self, input: Input<'_>) {
        if let Some(pending) = self.pending.take() {
            let after = self.out.take_joint();
            self.out.restore_joint(pending.joint);
            let Span { start, end } = pending.span;
            self.out.text(input.slice(start, end), start);
            self.out.append_joint(after);
            self.no_json_before = self.no_json_before.max(end);
        }
        let Some(fence) = &mut self.fence else { return };
        if fence.fate == FenceFate::Open {
            fence.fate = FenceFate::Text;
            let after = self.out.take_joint();
            self.out.restore_joint(std::mem::take(&mut fence.joint));
            let (start, end) = (fence.fence.start, fence.fence.body);
            self.out.text(input.slice(start, end), start);
            self.out.append_joint(after);
        }
    }

    /// A payload was found: the fence around it is dropped, and bare JSON before it is text.
    pub(crate) fn settle_as_payload(&mut self, input: Input<'_>) {
        self.after_reasoning = false;
        if self.pending.is_some() {
            self.settle_as_text(input);
        }
        let Some(fence) = &mut self.fence else { return };
        if fence.fate == FenceFate::Open {
            fence.fate = FenceFate::Dropped;
            let after = self.out.take_joint();
            self.out.restore_joint(std::mem::take(&mut fence.joint));
            let (start, end) = (fence.fence.start, fence.fence.body);
            self.out.markup(start, end);
            self.out.append_joint(after);
            self.out.cut_from_cleaned(start, end);
        }
    }

    /// Accounts for everything up to `end` as markup.
    pub(crate) fn markup(&mut self, end: usize) {
        self.let_go = None;
        self.out.markup(self.done, end);
        self.done = self.done.max(end);
        if let Some(fence) = &mut self.fence
            && fence.fate == FenceFate::Dropped
        {
            fence.payload = self.done;
            fence.first_mark = None;
        }
    }

    /// Fixes the format of the reply.
    pub(crate) fn fix_format(&mut self, syntax: SyntaxId) {
        if self.format.is_some() {
            return;
        }
        if let Some(entry) = self.shared.plan.entry(syntax) {
            self.format = Some(entry.format);
            self.out.reply.format = self
                .shared
                .plan
                .formats
                .get(entry.format)
                .map(|format| format.label.clone());
        }
    }

    /// Whether calls of `syntax` count in this reply: the first call fixes the format.
    pub(crate) fn counts(&self, syntax: SyntaxId) -> bool {
        let format = self.shared.plan.entry(syntax).map(|entry| entry.format);
        self.format.is_none_or(|fixed| format == Some(fixed))
    }

    /// Tells what can be told of the call at `at`, which is not complete.
    pub(crate) fn pass_on(&mut self, at: usize, open: &Open<'_>) {
        let shared = Arc::clone(&self.shared);
        let rules = Self::rules(&shared);
        let full = self.out.reply.tool_calls.len() >= rules.limits.max_calls;
        if full || self.reasoning.is_some() || !self.out.is_live() {
            return;
        }
        let known = self.out.early.take().filter(|early| early.stands_at(at));
        let mut early = known.unwrap_or_else(|| Early::new(at));
        if let Some(delta) = early.advance(open, rules).map(str::to_owned) {
            let index = early.index().unwrap_or_else(|| {
                let id = early.given_id().map_or_else(call_id, str::to_owned);
                let index = self.out.start_call(&id, early.name());
                early.announced(index, id);
                index
            });
            self.out.arguments(index, &delta);
        }
        self.out.early = Some(early);
    }

    /// Tells a complete call, of which a part may have been told.
    fn tell_call(&mut self, mut call: ToolCall, early: Option<Early>) {
        let told = early.and_then(|early| early.complete(&mut call));
        let (index, told) = told.unwrap_or_else(|| (self.out.start_call(&call.id, &call.name), 0));
        let rest = call.arguments.get(told..).unwrap_or_default();
        self.out.arguments(index, rest);
        self.out.call(call, index);
    }

    /// Makes a call, or a fault, of a draft.
    pub(crate) fn accept(&mut self, draft: Draft, syntax: SyntaxId) {
        let span = draft.span;
        let early = self.out.early.take();
        let early = early.filter(|early| early.stands_at(span.start));
        if span.start > self.done {
            self.markup(span.start);
        }
        self.fix_format(syntax);
        let limits = self.shared.options.limits;
        if let Some(at) = draft.junk {
            self.out
                .fault(fault(FaultKind::Junk, at, draft.name.clone()));
        }
        let settled = if self.out.reply.tool_calls.len() >= limits.max_calls {
            Settled::Fault(fault(FaultKind::TooManyCalls, span.start, draft.name))
        } else {
            Self::rules(&self.shared).settle(draft)
        };
        match settled {
            Settled::Call(call, misfit) => {
                self.out.call_span(self.done, span.end);
                if misfit.is_some() {
                    let name = Some(call.name.clone());
                    self.out
                        .fault(fault(FaultKind::TypeMismatch, span.start, name));
                }
                self.tell_call(call, early);
            }
            Settled::Incomplete(call) => {
                self.out.call_span(self.done, span.end);
                self.out.incomplete_call(call);
            }
            Settled::Fault(fault) => {
                self.out.fault_span(self.done, span.end);
                self.out.fault(fault);
            }
        }
        self.done = self.done.max(span.end);
    }
}
