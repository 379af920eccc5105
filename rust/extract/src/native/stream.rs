//! A native message as it streams, to the events and the reply that text gives.
//!
//! Text goes through the parser's own stream, because servers leave calls in it; those calls wait
//! until the message is over, since they count only when none came natively. Native calls are
//! announced in the order in which they began.

use std::collections::{HashMap, HashSet};

use turnwarden_signature::{Signature, signature_of_json};

use crate::calls as drafts;
use crate::engine::head;
use crate::{Event, Fault, FaultKind, Parser, Reply, Stream, ToolCall, ids};

use super::arguments::{self, Made};
use super::calls::{Origin, Outcome, Progress, Table};
use super::dialect::{Dialect, Reader};
use super::joints::{ReasoningJoint, TextJoint};
use super::passing::Passing;
use super::piece::{Piece, Sink};
use super::view::{View, WriteLimits};

pub use super::dialect::NotAMessage;

/// Reads the deltas of one native message.
///
/// Linear in what arrives; nothing already read is read again for a delta.
#[derive(Debug)]
pub struct MessageStream {
    reader: Reader,
    builder: Builder,
}

/// Reads a native message that is all there.
///
/// # Errors
/// When the value has no shape of a native message.
pub fn read_message<V: View>(parser: &Parser, message: &V) -> Result<Reply, NotAMessage> {
    let mut stream = MessageStream::new(parser);
    stream.reader.message(message, &mut stream.builder)?;
    stream.builder.finish(stream.reader.dialect());
    Ok(stream.into_reply())
}

/// The fault for something in a message that makes no sense; `message` says what.
#[must_use]
pub fn malformed(message: String) -> Fault {
    Fault {
        kind: FaultKind::MalformedMessage,
        offset: 0,
        name: None,
        message,
    }
}

impl MessageStream {
    /// A stream that reads calls in text, and types arguments, as `parser` does.
    #[must_use]
    pub fn new(parser: &Parser) -> Self {
        Self {
            reader: Reader::default(),
            builder: Builder::new(parser),
        }
    }

    /// Takes the next delta and adds the events that follow from it.
    ///
    /// # Errors
    /// When the value has no shape of a delta; nothing changes then.
    pub fn feed<V: View>(&mut self, delta: &V, events: &mut Vec<Event>) -> Result<(), NotAMessage> {
        if self.builder.finished {
            return Ok(());
        }
        self.reader.delta(delta, &mut self.builder)?;
        self.builder.advance();
        events.append(&mut self.builder.events);
        Ok(())
    }

    /// Ends the message and adds the last events; a second time there are none.
    pub fn finish(&mut self, events: &mut Vec<Event>) {
        if !self.builder.finished {
            self.builder.finish(self.reader.dialect());
        }
        events.append(&mut self.builder.events);
    }

    /// What was found so far: a copy.
    #[must_use]
    pub fn reply(&self) -> Reply {
        if self.builder.finished {
            return self.builder.reply.clone();
        }
        let text = self.builder.text.as_ref().map(|text| text.reply().clone());
        self.builder
            .compose(text.unwrap_or_default(), self.reader.dialect())
    }

    /// The reply, once the message is over.
    #[must_use]
    pub fn into_reply(self) -> Reply {
        self.builder.reply
    }

    /// Notes that something of a delta could not be looked at, or makes no sense.
    pub fn note_fault(&mut self, sentence: String, events: &mut Vec<Event>) {
        self.builder.malformed(sentence);
        events.append(&mut self.builder.events);
    }
}

/// A native call and what was made of it.
#[derive(Debug, Default)]
struct Entry {
    /// Its number among the events, once it was announced.
    index: Option<usize>,
    /// The provider's id, unless an earlier call has it.
    given_id: Option<String>,
    /// The id that was made for it, when it was announced without one.
    made_id: Option<String>,
    /// What became of it, once it was over.
    made: Option<Made>,
    /// What was passed on of its arguments, where they are not buffered.
    passing: Option<Passing>,
}

/// Where reasoning came from last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReasoningSource {
    Field,
    Text,
}

/// Makes events and a reply of pieces.
#[derive(Debug)]
struct Builder {
    parser: Parser,
    text: Option<Stream>,
    text_joint: TextJoint,
    text_events: Vec<Event>,
    /// Looks for calls in reasoning, where those count.
    drafts: Option<Stream>,
    reasoning: Option<String>,
    reasoning_joint: ReasoningJoint,
    reasoning_source: ReasoningSource,
    table: Table,
    /// One for each call of the table, as far as they were looked at.
    entries: Vec<Entry>,
    /// Calls by the ids that providers gave them.
    by_id: HashMap<String, usize>,
    /// How many calls were announced.
    announced: usize,
    /// How many calls were completed: they are in order.
    completed: usize,
    faults: Vec<Fault>,
    events: Vec<Event>,
    /// Bytes of text and reasoning so far.
    read: usize,
    too_long: bool,
    cut_off: bool,
    finished: bool,
    /// The reply, once the message is over.
    reply: Reply,
}

impl Sink for Builder {
    fn piece(&mut self, piece: Piece<'_>) {
        if self.too_long {
            return;
        }
        match piece {
            Piece::Text(text) => {
                // The calls before it in the same delta come first.
                self.advance();
                let text = self.head(text);
                self.text(text);
            }
            Piece::TextBreak => self.text_joint.break_off(),
            Piece::Reasoning(text) => {
                self.advance();
                let text = self.head(text);
                self.look_for_drafts(text);
                self.reason(text, ReasoningSource::Field);
            }
            Piece::ReasoningBreak => self.reasoning_joint.break_off(),
            Piece::Call {
                slot,
                id,
                name,
                arguments,
            } => {
                let outcome = self.table.piece(slot, id, name, arguments);
                self.outcome(outcome);
            }
            Piece::CallEnd(slot) => self.table.end(slot),
            Piece::CallDelta(delta) => {
                let outcome = self.table.delta(delta);
                self.outcome(outcome);
            }
            Piece::Malformed(sentence) => self.malformed(sentence),
            Piece::Stopped { cut_off } => {
                self.cut_off |= cut_off;
                self.table.settle();
            }
        }
        self.check_length();
    }

    fn limits(&self) -> WriteLimits {
        self.table.limits()
    }
}

impl Builder {
    fn new(parser: &Parser) -> Self {
        let limits = parser.options().limits;
        let write = WriteLimits {
            depth: limits.max_depth,
            bytes: limits.max_argument_bytes,
        };
        Self {
            parser: parser.clone(),
            text: None,
            text_joint: TextJoint::default(),
            text_events: Vec::new(),
            drafts: None,
            reasoning: None,
            reasoning_joint: ReasoningJoint::default(),
            reasoning_source: ReasoningSource::Field,
            table: Table::new(write, limits.max_calls),
            entries: Vec::new(),
            by_id: HashMap::new(),
            announced: 0,
            completed: 0,
            faults: Vec::new(),
            events: Vec::new(),
            read: 0,
            too_long: false,
            cut_off: false,
            finished: false,
            reply: Reply::default(),
        }
    }

    fn malformed(&mut self, message: String) {
        self.fault(malformed(message));
    }

    /// Adds a fault, unless it is the last one once more.
    fn fault(&mut self, fault: Fault) {
        if self.faults.last() != Some(&fault) {
            self.events.push(Event::ParseFault(fault.clone()));
            self.faults.push(fault);
        }
    }

    /// As much of a text as may still come, counting how much there was.
    fn head<'a>(&mut self, text: &'a str) -> &'a str {
        let limit = self.parser.options().limits.max_reply_bytes;
        let room = limit.saturating_sub(self.read.saturating_add(self.table.bytes()));
        self.read = self.read.saturating_add(text.len());
        head(text, room)
    }

    /// Tells once that the message is too long.
    fn check_length(&mut self) {
        let limit = self.parser.options().limits.max_reply_bytes;
        self.too_long = self.read.saturating_add(self.table.bytes()) > limit;
        if self.too_long {
            self.fault(drafts::fault(FaultKind::ReplyTooLong, limit, None));
        }
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let Self {
            parser,
            text: stream,
            reasoning,
            ..
        } = self;
        // Where reasoning has a field of its own, the text does not begin inside it.
        let stream = stream.get_or_insert_with(|| match reasoning {
            Some(_) => parser.stream_of_answer(),
            None => parser.stream(),
        });
        let before = self.text_joint.before(text);
        if !before.is_empty() {
            stream.feed(before, &mut self.text_events);
        }
        stream.feed(text, &mut self.text_events);
        self.pass_text_events();
    }

    /// Passes on what the text gave, without its calls.
    fn pass_text_events(&mut self) {
        let mut given = std::mem::take(&mut self.text_events);
        for event in given.drain(..) {
            match event {
                Event::TextDelta(_) | Event::TextRetracted { .. } | Event::ParseFault(_) => {
                    self.events.push(event);
                }
                Event::ReasoningDelta(text) => self.reason(&text, ReasoningSource::Text),
                Event::ToolCallStarted { .. }
                | Event::ToolCallArguments { .. }
                | Event::ToolCallEnded { .. }
                | Event::ReplyFinished => {}
            }
        }
        self.text_events = given;
    }

    /// Reads reasoning that has a field of its own for calls, when the parser wants those.
    fn look_for_drafts(&mut self, reasoning: &str) {
        if !self.parser.options().calls_in_reasoning {
            return;
        }
        let parser = &self.parser;
        let stream = self.drafts.get_or_insert_with(|| parser.stream_of_answer());
        stream.feed(reasoning, &mut Vec::new());
    }

    fn reason(&mut self, text: &str, source: ReasoningSource) {
        let mut delta = String::new();
        match source {
            ReasoningSource::Field => self.reasoning_joint.join(text, &mut delta),
            ReasoningSource::Text => {
                let goes_on = self.reasoning_source == ReasoningSource::Text;
                self.reasoning_joint.pass(text, goes_on, &mut delta);
            }
        }
        self.reasoning_source = source;
        if !delta.is_empty() {
            self.reasoning.get_or_insert_default().push_str(&delta);
            self.events.push(Event::ReasoningDelta(delta));
        }
    }

    fn outcome(&mut self, outcome: Outcome) {
        let (kind, message) = match outcome {
            Outcome::Taken => return,
            Outcome::TooMany => (
                FaultKind::TooManyCalls,
                format!(
                    "the message holds more than max_calls ({}) calls; the rest was not read",
                    self.parser.options().limits.max_calls
                ),
            ),
            Outcome::Misplaced => (
                FaultKind::MalformedMessage,
                "a part of the arguments names a place that is none or is taken".to_owned(),
            ),
            Outcome::TooLate => (
                FaultKind::Junk,
                "arguments came for a call that was over; they were left out".to_owned(),
            ),
        };
        self.fault(Fault {
            kind,
            offset: 0,
            name: None,
            message,
        });
    }

    /// Announces the calls that can be, and completes those that are over, each in order.
    fn advance(&mut self) {
        loop {
            while self.completed < self.entries.len() && self.is_over(self.completed) {
                self.complete(self.completed);
                self.completed += 1;
            }
            self.pass_arguments();
            let next = self.entries.len();
            if next >= self.table.calls().len() || !self.enter(next) {
                return;
            }
        }
    }

    /// Passes on the values that were closed of the first call that is not over, for parsers
    /// that do not buffer arguments: those of later calls wait, so that calls never interleave.
    fn pass_arguments(&mut self) {
        if self.parser.options().buffer_arguments {
            return;
        }
        let place = self.completed;
        let (Some(call), Some(entry)) =
            (self.table.calls().get(place), self.entries.get_mut(place))
        else {
            return;
        };
        let (None, Some(index)) = (&entry.made, entry.index) else {
            return;
        };
        let rules = self.parser.rules();
        let passing = entry
            .passing
            .get_or_insert_with(|| Passing::new(&rules, call.starts));
        if let Some(delta) = passing.next(&rules, call) {
            self.events.push(Event::ToolCallArguments { index, delta });
        }
    }

    fn is_over(&self, place: usize) -> bool {
        let call = self.table.calls().get(place);
        self.finished || call.is_some_and(|call| call.ended)
    }

    /// Takes up the next call; false when it is too early for that.
    fn enter(&mut self, place: usize) -> bool {
        let Some(call) = self.table.calls().get(place) else {
            return false;
        };
        let first = call.id.as_ref().and_then(|id| self.by_id.get(id)).copied();
        if let Some(first) = first {
            // Whether it is the same call once more shows when both are over.
            if !self.is_over(place) || self.completed < place {
                return false;
            }
            let known = self
                .entries
                .get(first)
                .and_then(|entry| entry.made.as_ref());
            let made = self.make(place);
            if known.is_some_and(|known| same_call(known, &made)) {
                self.entries.push(Entry {
                    made: Some(Made::default()),
                    ..Entry::default()
                });
                self.completed = place + 1;
                return true;
            }
        } else if !self.is_over(place) {
            // Without an id it may still get one.
            let known = call.name.is_some() && call.id.is_some();
            let later = place + 1 < self.table.calls().len();
            if !known || !later && call.progress() == Progress::Blank {
                return false;
            }
        }
        self.announce(place);
        true
    }

    /// Tells that a call has begun. One without a name is not told of: it will be a fault.
    fn announce(&mut self, place: usize) {
        let mut entry = Entry::default();
        let call = self.table.calls().get(place);
        if let Some(id) = call.and_then(|call| call.id.clone())
            && !self.by_id.contains_key(&id)
        {
            self.by_id.insert(id.clone(), place);
            entry.given_id = Some(id);
        }
        if let Some(name) = call.and_then(|call| call.name.clone()) {
            let id = entry.given_id.clone();
            let id = id.unwrap_or_else(|| entry.made_id.insert(ids::call_id()).clone());
            entry.index = Some(self.announced);
            self.events.push(Event::ToolCallStarted {
                index: self.announced,
                id,
                name: self.spelling(&name),
            });
            self.announced += 1;
        }
        self.entries.push(entry);
    }

    /// A name as it was declared, or as it is.
    fn spelling(&self, name: &str) -> String {
        let tools = self.parser.options().tools.as_ref();
        tools
            .and_then(|tools| tools.spelling(name))
            .unwrap_or_else(|| name.to_owned())
    }

    /// Makes the call at `place` of what came of it.
    fn make(&self, place: usize) -> Made {
        let Some(call) = self.table.calls().get(place) else {
            return Made::default();
        };
        let is_last = place + 1 == self.table.calls().len();
        let open = match call.origin {
            Origin::Block => !call.ended,
            Origin::Fragments => self.cut_off && is_last,
        };
        arguments::make(&self.parser.rules(), call, open)
    }

    /// Tells what became of a call that was announced.
    fn complete(&mut self, place: usize) {
        let mut made = self.make(place);
        let Some(entry) = self.entries.get_mut(place) else {
            return;
        };
        if let Some(call) = &mut made.call {
            call.id_generated = entry.given_id.is_none();
            call.id = match (&entry.given_id, &entry.made_id) {
                (Some(id), _) | (None, Some(id)) => id.clone(),
                (None, None) => ids::call_id(),
            };
        }
        let complete = made.call.as_ref().filter(|_| made.complete);
        let rest = complete.map(|call| match &entry.passing {
            Some(passing) => passing.rest(&call.arguments),
            None => Some(call.arguments.as_str()),
        });
        if rest == Some(None) {
            // Others were passed on: they cannot be taken back, so this call is not made.
            let name = made.call.take().map(|call| call.name);
            made.faults
                .push(drafts::fault(FaultKind::UnreadableArguments, 0, name));
        } else if let (Some(call), Some(Some(delta)), Some(index)) = (complete, rest, entry.index) {
            if !delta.is_empty() {
                let delta = delta.to_owned();
                self.events.push(Event::ToolCallArguments { index, delta });
            }
            let call = call.clone();
            self.events.push(Event::ToolCallEnded { index, call });
        }
        let faults = made.faults.clone();
        entry.made = Some(made);
        for fault in faults {
            self.fault(fault);
        }
    }

    /// Ends the message.
    fn finish(&mut self, dialect: Option<Dialect>) {
        self.finished = true;
        self.advance();
        let text = self.text.take().map(|mut stream| {
            stream.finish(&mut self.text_events);
            stream.into_reply()
        });
        self.pass_text_events();
        let mut text = text.unwrap_or_default();
        let drafts = self.drafts.take().map(|mut stream| {
            stream.finish(&mut Vec::new());
            stream.into_reply()
        });
        let mut drafts = drafts.unwrap_or_default();
        drafts.tool_calls.append(&mut text.tool_calls);
        let in_text = TextCalls {
            complete: drafts.tool_calls,
            incomplete: std::mem::take(&mut text.incomplete_calls),
        };
        let format = text.format.take().or(drafts.format);
        let mut reply = self.compose(text, dialect);
        if reply.tool_calls.is_empty() && reply.incomplete_calls.is_empty() {
            self.tell_text_calls(&in_text.complete);
            reply.tool_calls = in_text.complete;
            reply.incomplete_calls = in_text.incomplete;
            reply.format = format;
        } else {
            self.refuse_text_calls(in_text, &mut reply);
        }
        self.reply = reply;
        self.events.push(Event::ReplyFinished);
    }

    /// The reply so far: `text` is what the text gave, without its calls.
    fn compose(&self, mut text: Reply, dialect: Option<Dialect>) -> Reply {
        text.tool_calls.clear();
        text.incomplete_calls.clear();
        text.format = None;
        let mut reply = text;
        for made in self.entries.iter().filter_map(|entry| entry.made.as_ref()) {
            reply.repairs.extend_from_slice(&made.repairs);
            match &made.call {
                Some(call) if made.complete => reply.tool_calls.push(call.clone()),
                Some(call) => reply.incomplete_calls.push(call.clone()),
                None => {}
            }
        }
        if !reply.tool_calls.is_empty() || !reply.incomplete_calls.is_empty() {
            reply.format = dialect.map(|dialect| dialect.label().to_owned());
        }
        if self.reasoning.is_some() {
            reply.reasoning.clone_from(&self.reasoning);
        }
        reply.faults.extend_from_slice(&self.faults);
        reply
    }

    /// Tells of the calls in the text of a message that has none natively.
    fn tell_text_calls(&mut self, calls: &[ToolCall]) {
        for call in calls {
            let index = self.announced;
            self.announced += 1;
            self.events.push(Event::ToolCallStarted {
                index,
                id: call.id.clone(),
                name: call.name.clone(),
            });
            self.events.push(Event::ToolCallArguments {
                index,
                delta: call.arguments.clone(),
            });
            self.events.push(Event::ToolCallEnded {
                index,
                call: call.clone(),
            });
        }
    }

    /// Drops the calls in the text of a message that has native ones: the same call once more
    /// counts once, any other is a fault.
    fn refuse_text_calls(&mut self, calls: TextCalls, reply: &mut Reply) {
        let native: HashSet<Signature> = reply.tool_calls.iter().map(signature).collect();
        let all = calls.complete.into_iter().chain(calls.incomplete);
        for call in all.filter(|call| !native.contains(&signature(call))) {
            let fault = drafts::fault(FaultKind::CallInText, call.span.start, Some(call.name));
            self.events.push(Event::ParseFault(fault.clone()));
            reply.faults.push(fault);
        }
    }
}

/// The calls that stood in the text.
struct TextCalls {
    complete: Vec<ToolCall>,
    incomplete: Vec<ToolCall>,
}

fn signature(call: &ToolCall) -> Signature {
    signature_of_json(&call.name, &call.arguments)
}

/// Whether two complete calls are the same.
fn same_call(one: &Made, other: &Made) -> bool {
    match (&one.call, &other.call) {
        (Some(first), Some(second)) => {
            one.complete && other.complete && signature(first) == signature(second)
        }
        _ => false,
    }
}
