//! What has come out of a reply so far: visible text, reasoning, spans, calls, and their events.
//!
//! Text is cut out of the reply once, when its fate is known. White space at the end of the text
//! waits in a [`Joint`], because markup may follow it. A [`Checkpoint`] takes back what was
//! written after it: that happens where a later marker shows that text was something else.

use turnwarden_cleanup::{Joint, SpaceKept};

use crate::early::Early;
use crate::{Event, Fault, Repair, Reply, Span, SpanKind, ToolCall, Workflow};

/// Faults recorded for one reply; the list ends there so that hostile text cannot fill memory.
const MAX_FAULTS: usize = 1 << 10;

/// Spans to make room for at first: those of a reply with three calls.
const FIRST_SPANS: usize = 8;

/// The parts of a reply, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    pub(crate) reply: Reply,
    joint: Joint,
    /// The spans of the white space that waits in `joint`.
    joint_spans: Vec<usize>,
    /// The current block of reasoning, when one is open.
    block: Option<Block>,
    /// What is missing from `Reply::cleaned`, in order.
    pub(crate) cuts: Vec<Span>,
    /// What workflow JSON stood in the reply before that which stands there now.
    earlier: Vec<Option<Workflow>>,
    /// The calls of the reply, counted as they are announced.
    pub(crate) announced: usize,
    events: Vec<Event>,
    /// Whether anybody wants events.
    live: bool,
    /// A call that was told in part.
    pub(crate) early: Option<Early>,
    /// How many bytes of the text and of the reasoning have been told.
    text_told: usize,
    reasoning_told: usize,
}

/// A block of reasoning that is being written.
#[derive(Clone, Debug, Default)]
struct Block {
    begun: bool,
    space: String,
}

/// A state that the output can go back to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checkpoint {
    text: usize,
    joint: Joint,
    joint_spans: Vec<usize>,
    spans: usize,
    /// The last of them, which may grow later.
    last_span: Option<(SpanKind, Span)>,
    last_cut: Option<Span>,
    reasoning: Option<usize>,
    block: Option<Block>,
    cuts: usize,
    calls: usize,
    incomplete: usize,
    repairs: usize,
    workflows: usize,
}

impl Checkpoint {
    /// How many calls there were.
    pub(crate) fn calls(&self) -> usize {
        self.calls
    }
}

impl Output {
    pub(crate) fn new(live: bool) -> Self {
        let reply = Reply {
            spans: Vec::with_capacity(FIRST_SPANS),
            ..Reply::default()
        };
        Self {
            reply,
            live,
            ..Self::default()
        }
    }

    /// Whether anybody wants events.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Hands over the events since the last time.
    pub(crate) fn take_events(&mut self, events: &mut Vec<Event>) {
        self.tell();
        events.append(&mut self.events);
    }

    /// Whether no visible text has come.
    pub(crate) fn is_blank(&self) -> bool {
        self.reply.text.is_empty()
    }

    /// Whether nothing but white space has come since the last markup, and there was some.
    pub(crate) fn follows_markup(&self) -> bool {
        let waiting = self.joint_spans.iter().rev();
        let spans = (0..self.reply.spans.len()).rev();
        let passed = spans.zip(waiting).take_while(|(at, waits)| at == *waits);
        let last = self.reply.spans.iter().rev().nth(passed.count());
        last.is_some_and(|(kind, _)| *kind != SpanKind::Text)
    }

    fn span(&mut self, kind: SpanKind, start: usize, end: usize) {
        if start >= end {
            return;
        }
        let waiting = self
            .joint_spans
            .last()
            .is_some_and(|at| at + 1 == self.reply.spans.len());
        match self.reply.spans.last_mut() {
            Some((last, span)) if *last == kind && span.end == start && !waiting => span.end = end,
            _ => self.reply.spans.push((kind, Span { start, end })),
        }
    }

    fn joint_span(&mut self, start: usize, end: usize) {
        if start < end {
            self.joint_spans.push(self.reply.spans.len());
            self.reply
                .spans
                .push((SpanKind::Markup, Span { start, end }));
        }
    }

    /// Visible text that stands in the reply at `start`.
    pub(crate) fn text(&mut self, text: &str, start: usize) {
        let visible = text.trim_start();
        let lead = text.len() - visible.len();
        if visible.is_empty() {
            self.joint.push(text);
            self.joint_span(start, start + text.len());
            return;
        }
        if lead > 0 {
            self.joint.push(text.get(..lead).unwrap_or_default());
            self.joint_span(start, start + lead);
        }
        let visible = visible.trim_end();
        let end = start + lead + visible.len();
        self.settle_joint();
        self.reply.text.push_str(visible);
        self.span(SpanKind::Text, start + lead, end);
        let trail = text.get(lead + visible.len()..).unwrap_or_default();
        if !trail.is_empty() {
            self.joint.push(trail);
            self.joint_span(end, start + text.len());
        }
    }

    /// Visible text that was decoded from the bytes of the reply from `start` to `end`.
    pub(crate) fn content(&mut self, text: &str, start: usize, end: usize) {
        let visible = text.trim();
        if visible.is_empty() {
            self.joint.push(text);
            self.joint_span(start, end);
            return;
        }
        let lead = text.len() - text.trim_start().len();
        self.joint.push(text.get(..lead).unwrap_or_default());
        self.settle_joint();
        self.reply.text.push_str(visible);
        self.span(SpanKind::Text, start, end);
        self.joint
            .push(text.get(lead + visible.len()..).unwrap_or_default());
    }

    /// Something visible follows: decides what becomes of the white space before it.
    fn settle_joint(&mut self) {
        if self.reasoning_told < self.reply.reasoning.as_ref().map_or(0, String::len) {
            self.tell();
        }
        if self.joint.is_empty() {
            self.joint_spans.clear();
            return;
        }
        match self.joint.kept(self.reply.text.is_empty()) {
            SpaceKept::Nothing => {}
            SpaceKept::BlankLine => self.reply.text.push_str("\n\n"),
            SpaceKept::AsIs(space) => {
                self.reply.text.push_str(space);
                for index in &self.joint_spans {
                    if let Some(span) = self.reply.spans.get_mut(*index) {
                        span.0 = SpanKind::Text;
                    }
                }
            }
        }
        self.joint_spans.clear();
        self.joint.clear();
    }

    /// Adds a span whose kind is set later; the answer is its number.
    pub(crate) fn open_span(&mut self, start: usize, end: usize) -> usize {
        self.joint.cut();
        self.reply
            .spans
            .push((SpanKind::Markup, Span { start, end }));
        self.reply.spans.len() - 1
    }

    /// Sets the kind of a span that was added for that.
    pub(crate) fn set_span(&mut self, index: usize, kind: SpanKind) {
        if let Some(span) = self.reply.spans.get_mut(index) {
            span.0 = kind;
        }
    }

    /// Marks bytes of the reply as text that is written already.
    pub(crate) fn text_span(&mut self, start: usize, end: usize) {
        self.span(SpanKind::Text, start, end);
    }

    /// Tags, fences, special tokens.
    pub(crate) fn markup(&mut self, start: usize, end: usize) {
        if start < end {
            self.joint.cut();
        }
        self.span(SpanKind::Markup, start, end);
    }

    /// The payload of a call.
    pub(crate) fn call_span(&mut self, start: usize, end: usize) {
        self.joint.cut();
        self.span(SpanKind::Call, start, end);
    }

    /// What looked like a call and was none.
    pub(crate) fn fault_span(&mut self, start: usize, end: usize) {
        self.joint.cut();
        self.span(SpanKind::Fault, start, end);
    }

    /// A stretch that is missing from `Reply::cleaned`.
    pub(crate) fn cut_from_cleaned(&mut self, start: usize, end: usize) {
        match self.cuts.last_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => self.cuts.push(Span { start, end }),
        }
    }

    /// Begins a block of reasoning.
    pub(crate) fn open_reasoning(&mut self) {
        self.joint.cut();
        self.block = Some(Block::default());
        self.reply.reasoning.get_or_insert_default();
    }

    /// More of the current block of reasoning, as it stands in the reply at `start`.
    pub(crate) fn reasoning(&mut self, text: &str, start: usize) {
        self.joint.cut();
        self.span(SpanKind::Reasoning, start, start + text.len());
        self.reasoning_text(text);
    }

    /// More of the current block of reasoning, decoded.
    pub(crate) fn reasoning_text(&mut self, text: &str) {
        let block = self.block.get_or_insert_default();
        let visible = text.trim();
        if visible.is_empty() {
            block.space.push_str(text);
            return;
        }
        if self.live && self.text_told < self.reply.text.len() {
            self.tell();
        }
        let block = self.block.get_or_insert_default();
        let reasoning = self.reply.reasoning.get_or_insert_default();
        let lead = text.len() - text.trim_start().len();
        if block.begun {
            reasoning.push_str(&block.space);
            reasoning.push_str(text.get(..lead).unwrap_or_default());
        } else if !reasoning.is_empty() {
            reasoning.push('\n');
        }
        block.begun = true;
        block.space.clear();
        reasoning.push_str(visible);
        block
            .space
            .push_str(text.get(lead + visible.len()..).unwrap_or_default());
    }

    /// Ends the current block of reasoning.
    pub(crate) fn close_reasoning(&mut self) {
        self.block = None;
    }

    /// Takes the white space that waits after the text, for text that is inserted before it.
    pub(crate) fn take_joint(&mut self) -> (Joint, Vec<usize>) {
        (
            std::mem::take(&mut self.joint),
            std::mem::take(&mut self.joint_spans),
        )
    }

    /// Puts white space back after the text that was inserted.
    pub(crate) fn restore_joint(&mut self, (joint, spans): (Joint, Vec<usize>)) {
        self.joint = joint;
        self.joint_spans = spans;
    }

    /// Adds white space that was taken, behind what waits now.
    pub(crate) fn append_joint(&mut self, (joint, spans): (Joint, Vec<usize>)) {
        self.joint.append(&joint);
        self.joint_spans.extend(spans);
    }

    /// Adds a complete call.
    pub(crate) fn call(&mut self, call: ToolCall, index: usize) {
        if self.live {
            self.tell();
            self.events.push(Event::ToolCallEnded {
                index,
                call: call.clone(),
            });
        }
        self.reply.tool_calls.push(call);
    }

    /// Adds a call that was cut off.
    pub(crate) fn incomplete_call(&mut self, call: ToolCall) {
        self.reply.incomplete_calls.push(call);
    }

    /// Announces a call; the answer is its number.
    pub(crate) fn start_call(&mut self, id: &str, name: &str) -> usize {
        let index = self.announced;
        self.announced += 1;
        if self.live {
            self.tell();
            let (id, name) = (id.to_owned(), name.to_owned());
            self.events.push(Event::ToolCallStarted { index, id, name });
        }
        index
    }

    /// Passes arguments on.
    pub(crate) fn arguments(&mut self, index: usize, delta: &str) {
        if self.live && !delta.is_empty() {
            self.tell();
            self.events.push(Event::ToolCallArguments {
                index,
                delta: delta.to_owned(),
            });
        }
    }

    /// Adds a fault.
    pub(crate) fn fault(&mut self, fault: Fault) {
        if self.reply.faults.len() >= MAX_FAULTS {
            return;
        }
        if self.live {
            self.tell();
            self.events.push(Event::ParseFault(fault.clone()));
        }
        self.reply.faults.push(fault);
    }

    /// Sets the workflow that the reply is.
    pub(crate) fn workflow(&mut self, workflow: Workflow) {
        self.earlier.push(self.reply.workflow.replace(workflow));
    }

    /// Adds repairs.
    pub(crate) fn repairs(&mut self, repairs: impl IntoIterator<Item = Repair>) {
        self.reply.repairs.extend(repairs);
    }

    /// Tells what text and reasoning have come since the last time.
    fn tell(&mut self) {
        if !self.live {
            return;
        }
        if let Some(delta) = self
            .reply
            .text
            .get(self.text_told..)
            .filter(|d| !d.is_empty())
        {
            self.events.push(Event::TextDelta(delta.to_owned()));
            self.text_told = self.reply.text.len();
        }
        let reasoning = self.reply.reasoning.as_deref().unwrap_or_default();
        if let Some(delta) = reasoning
            .get(self.reasoning_told..)
            .filter(|d| !d.is_empty())
        {
            self.events.push(Event::ReasoningDelta(delta.to_owned()));
            self.reasoning_told = reasoning.len();
        }
    }

    /// A state to come back to.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            text: self.reply.text.len(),
            joint: self.joint.clone(),
            joint_spans: self.joint_spans.clone(),
            spans: self.reply.spans.len(),
            last_span: self.reply.spans.last().copied(),
            last_cut: self.cuts.last().copied(),
            reasoning: self.reply.reasoning.as_ref().map(String::len),
            block: self.block.clone(),
            cuts: self.cuts.len(),
            calls: self.reply.tool_calls.len(),
            incomplete: self.reply.incomplete_calls.len(),
            repairs: self.reply.repairs.len(),
            workflows: self.earlier.len(),
        }
    }

    /// White space that waited at a checkpoint is no text yet, whatever became of it since.
    pub(crate) fn wait_again(&mut self, joint_spans: &[usize]) {
        for index in joint_spans {
            self.set_span(*index, SpanKind::Markup);
        }
    }

    /// Takes back everything since `checkpoint`, but for faults: they have been told, and say of
    /// what is reasoning now that it can't be a call either.
    pub(crate) fn roll_back(&mut self, checkpoint: Checkpoint) {
        self.early = None;
        if self.live && checkpoint.text < self.text_told {
            let told = self
                .reply
                .text
                .get(checkpoint.text..self.text_told)
                .unwrap_or_default();
            self.events.push(Event::TextRetracted {
                length: told.chars().count(),
            });
            self.text_told = checkpoint.text;
        }
        self.reply.text.truncate(checkpoint.text);
        match (checkpoint.reasoning, self.reply.reasoning.as_mut()) {
            (Some(length), Some(reasoning)) => reasoning.truncate(length),
            _ => self.reply.reasoning = None,
        }
        self.reasoning_told = self.reasoning_told.min(checkpoint.reasoning.unwrap_or(0));
        self.reply.spans.truncate(checkpoint.spans);
        self.reply.tool_calls.truncate(checkpoint.calls);
        self.reply.incomplete_calls.truncate(checkpoint.incomplete);
        self.reply.repairs.truncate(checkpoint.repairs);
        while self.earlier.len() > checkpoint.workflows {
            self.reply.workflow = self.earlier.pop().flatten();
        }
        if let (Some(last), Some(span)) = (self.reply.spans.last_mut(), checkpoint.last_span) {
            *last = span;
        }
        self.wait_again(&checkpoint.joint_spans);
        self.cuts.truncate(checkpoint.cuts);
        if let (Some(last), Some(cut)) = (self.cuts.last_mut(), checkpoint.last_cut) {
            *last = cut;
        }
        self.joint = checkpoint.joint;
        self.joint_spans = checkpoint.joint_spans;
        for index in &self.joint_spans {
            if let Some(span) = self.reply.spans.get_mut(*index) {
                span.0 = SpanKind::Markup;
            }
        }
        self.block = checkpoint.block;
    }

    /// The last touches once the reply is over.
    pub(crate) fn finish(&mut self, text: &str) {
        self.tell();
        self.reply.cleaned = cleaned(text, &self.cuts);
        self.reply.spans.sort_by_key(|(_, span)| span.start);
        self.reply.spans.dedup_by(|(kind, span), (last, before)| {
            let same = kind == last && before.end == span.start;
            if same {
                before.end = span.end;
            }
            same
        });
        self.reply.faults.sort_by_key(|fault| fault.offset);
        self.reply.repairs.sort_by_key(|repair| repair.offset);
        if self.live {
            self.events.push(Event::ReplyFinished);
        }
    }
}

/// `text` without the cuts, trimmed.
fn cleaned(text: &str, cuts: &[Span]) -> String {
    if cuts.is_empty() {
        return text.trim().to_owned();
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        cleaned.push_str(text.get(at..cut.start).unwrap_or_default());
        at = cut.end;
    }
    cleaned.push_str(text.get(at..).unwrap_or_default());
    match cleaned.trim() {
        trimmed if trimmed.len() == cleaned.len() => cleaned,
        trimmed => trimmed.to_owned(),
    }
}
