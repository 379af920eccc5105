//! The OpenAI Responses API: output items, and the events that stream them.

use std::collections::{HashMap, HashSet};

use super::blocks::{self, BlockKind, identifier};
use super::piece::{ArgumentsPiece, Form, Piece, Sink, Slot, filled, with_arguments, with_input};
use super::view::{Key, Kind, View};

/// Which strand of an item a text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Strand {
    /// What the user should see.
    Text,
    /// The summary of reasoning.
    Summary,
    /// The reasoning itself.
    Reasoning,
}

/// One text of an item: which item, which strand, which part of it.
type Place = (Slot, Strand, i64);

/// What has to be remembered between the events of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponsesReader {
    slots: Slot,
    by_item: HashMap<String, Slot>,
    by_index: HashMap<i64, Slot>,
    /// Texts that came as deltas, and so are not read again from the events that repeat them.
    streamed: HashSet<Place>,
    /// Items that were read to their end.
    done: HashSet<Slot>,
    /// The text read last: another place is another block.
    last: Option<Place>,
    /// Whether any item was read from the stream.
    begun: bool,
}

impl ResponsesReader {
    /// Reads a response: its output, and why it stopped.
    pub(crate) fn response<V: View>(&mut self, response: &V, sink: &mut impl Sink) {
        if let Some(output) = response.get(Key::Output) {
            self.items(&output, sink);
        }
        status(response, sink);
    }

    /// Reads a list of output items.
    pub(crate) fn items<V: View>(&mut self, items: &V, sink: &mut impl Sink) {
        match items.kind() {
            Kind::List => {
                for item in items.items() {
                    let slot = self.next_slot();
                    self.item(&item, slot, sink);
                }
            }
            Kind::Object => {
                let slot = self.next_slot();
                self.item(items, slot, sink);
            }
            Kind::Text => blocks::text_of(items, sink),
            Kind::Null => {}
            kind => sink.piece(Piece::Malformed(format!(
                "output is {}; expected a list of items",
                kind.as_str()
            ))),
        }
    }

    /// Reads an item that is all there; of one that was streamed, what is still missing.
    fn item<V: View>(&mut self, item: &V, slot: Slot, sink: &mut impl Sink) {
        match item.kind() {
            Kind::Null => return,
            Kind::Object => {}
            kind => {
                return sink.piece(Piece::Malformed(format!(
                    "an output item is {}; expected an object",
                    kind.as_str()
                )));
            }
        }
        if !self.done.insert(slot) {
            return;
        }
        let name = item.string(Key::Type).unwrap_or_default();
        match name.as_str() {
            "message" | "" => self.message(item, slot, sink),
            "reasoning" => {
                self.texts(item, Key::Summary, (slot, Strand::Summary), sink);
                self.texts(item, Key::Content, (slot, Strand::Reasoning), sink);
            }
            name => call(name, item, slot, sink),
        }
    }

    fn message<V: View>(&mut self, item: &V, slot: Slot, sink: &mut impl Sink) {
        let role = item.string(Key::Role);
        if role.is_some_and(|role| role != "assistant" && role != "model") {
            return;
        }
        self.texts(item, Key::Content, (slot, Strand::Text), sink);
    }

    /// Reads the parts of one strand.
    fn texts<V: View>(
        &mut self,
        item: &V,
        key: Key,
        (slot, strand): (Slot, Strand),
        sink: &mut impl Sink,
    ) {
        let Some(parts) = item.get(key) else {
            return;
        };
        if parts.kind() != Kind::List {
            return self.text(&parts, (slot, strand, 0), Form::Whole, sink);
        }
        for (part, index) in parts.items().iter().zip(0..) {
            if part.kind() != Kind::Null {
                self.text(part, (slot, strand, index), Form::Whole, sink);
            }
        }
    }

    /// Reads one text: a string, or a part that holds one.
    fn text<V: View>(&mut self, text: &V, place: Place, form: Form, sink: &mut impl Sink) {
        if form == Form::Whole && self.streamed.contains(&place) {
            return;
        }
        if text.kind() == Kind::Object && BlockKind::of(text) == BlockKind::Other {
            return;
        }
        if text.text().is_some_and(|text| text.is_empty()) {
            return;
        }
        self.streamed.insert(place);
        self.enter(place, sink);
        match place.1 {
            Strand::Text => blocks::text(text, sink),
            Strand::Summary | Strand::Reasoning => blocks::reasoning_of(text, sink),
        }
    }

    /// Says where one block ends and another begins.
    fn enter(&mut self, place: Place, sink: &mut impl Sink) {
        let last = self.last.replace(place);
        let Some(last) = last.filter(|&last| last != place) else {
            return;
        };
        if last.0 != place.0 {
            sink.piece(Piece::TextBreak);
        }
        sink.piece(Piece::ReasoningBreak);
    }

    /// Reads one event of a stream; `name` is its type.
    pub(crate) fn event<V: View>(&mut self, name: &str, event: &V, sink: &mut impl Sink) {
        let name = name.strip_prefix("response.").unwrap_or(name);
        match name {
            "output_text.delta" | "refusal.delta" | "output_text.done" | "refusal.done"
            | "content_part.done" => self.text_event(name, event, Strand::Text, sink),
            "reasoning_summary_text.delta"
            | "reasoning_summary.delta"
            | "reasoning_summary_text.done"
            | "reasoning_summary.done"
            | "reasoning_summary_part.done" => {
                self.text_event(name, event, Strand::Summary, sink);
            }
            "reasoning_text.delta"
            | "reasoning.delta"
            | "reasoning_text.done"
            | "reasoning.done" => self.text_event(name, event, Strand::Reasoning, sink),
            "function_call_arguments.delta" | "custom_tool_call_input.delta" => {
                self.arguments_event(event, Key::Delta, Form::Delta, name, sink);
            }
            "function_call_arguments.done" => {
                self.arguments_event(event, Key::Arguments, Form::Whole, name, sink);
            }
            "custom_tool_call_input.done" => {
                self.arguments_event(event, Key::Input, Form::Whole, name, sink);
            }
            "output_item.added" => self.added(event, sink),
            "output_item.done" => self.item_done(event, sink),
            "completed" | "incomplete" | "failed" | "done" => self.finished(event, sink),
            _ => {}
        }
    }

    fn text_event<V: View>(&mut self, name: &str, event: &V, strand: Strand, sink: &mut impl Sink) {
        self.begun = true;
        let slot = self.slot_of(event);
        let index = match strand {
            Strand::Summary => event.number(Key::SummaryIndex),
            Strand::Text | Strand::Reasoning => event.number(Key::ContentIndex),
        };
        let place = (slot, strand, index.unwrap_or(0));
        let (value, form) = if name.rsplit('.').next() == Some("delta") {
            (event.get(Key::Delta), Form::Delta)
        } else {
            let value = event.first(&[Key::Text, Key::Refusal, Key::Part]);
            (value, Form::Whole)
        };
        let Some(value) = value else {
            return;
        };
        // A content part may be one of reasoning.
        let place = match (value.kind(), strand) {
            (Kind::Object, Strand::Text) if BlockKind::of(&value) == BlockKind::Reasoning => {
                (slot, Strand::Reasoning, place.2)
            }
            _ => place,
        };
        self.text(&value, place, form, sink);
    }

    fn arguments_event<V: View>(
        &mut self,
        event: &V,
        key: Key,
        form: Form,
        name: &str,
        sink: &mut impl Sink,
    ) {
        self.begun = true;
        let slot = self.slot_of(event);
        let id = identifier(event, &[Key::CallId]);
        let tool = event.string(Key::Name);
        let limits = sink.limits();
        let then = |arguments: ArgumentsPiece<'_>| {
            sink.piece(Piece::Call {
                slot,
                id: filled(id.as_ref()),
                name: filled(tool.as_ref()),
                arguments,
            });
        };
        let Some(value) = event.get(key) else {
            return;
        };
        if name.starts_with("custom") {
            with_input(Some(&value), form, limits, then);
        } else {
            with_arguments(Some(&value), form, limits, then);
        }
    }

    fn added<V: View>(&mut self, event: &V, sink: &mut impl Sink) {
        self.begun = true;
        let Some(item) = event
            .get(Key::Item)
            .filter(|item| item.kind() == Kind::Object)
        else {
            return;
        };
        let slot = self.next_slot();
        if let Some(id) = identifier(&item, &[Key::Id]) {
            self.by_item.insert(id, slot);
        }
        if let Some(index) = event.number(Key::OutputIndex) {
            self.by_index.insert(index, slot);
        }
        let kind = item.string(Key::Type).unwrap_or_default();
        match CallKind::of(&kind) {
            Some(call @ (CallKind::Function | CallKind::Custom)) => {
                sink.piece(Piece::TextBreak);
                call_piece((call, &kind), &item, slot, Form::Delta, sink);
            }
            Some(CallKind::BuiltIn) | None => {}
        }
    }

    fn item_done<V: View>(&mut self, event: &V, sink: &mut impl Sink) {
        self.begun = true;
        let Some(item) = event.get(Key::Item) else {
            return;
        };
        let known = identifier(&item, &[Key::Id])
            .and_then(|id| self.by_item.get(&id).copied())
            .or_else(|| {
                event
                    .number(Key::OutputIndex)
                    .and_then(|index| self.by_index.get(&index).copied())
                    .filter(|slot| !self.done.contains(slot))
            });
        let slot = known.unwrap_or_else(|| self.next_slot());
        self.item(&item, slot, sink);
    }

    fn finished<V: View>(&mut self, event: &V, sink: &mut impl Sink) {
        let Some(response) = event
            .get(Key::Response)
            .filter(|response| response.kind() == Kind::Object)
        else {
            return;
        };
        // The last event repeats all output: it is news only when nothing came before.
        if self.begun {
            return status(&response, sink);
        }
        self.begun = true;
        self.response(&response, sink);
    }

    /// The slot of the item that an event speaks of: by its id, else by its index, else the last.
    fn slot_of<V: View>(&mut self, event: &V) -> Slot {
        let id = identifier(event, &[Key::ItemId]);
        if let Some(&slot) = id.as_ref().and_then(|id| self.by_item.get(id)) {
            return slot;
        }
        let index = event.number(Key::OutputIndex);
        let known = index.and_then(|index| self.by_index.get(&index).copied());
        let slot = match (known, &id, index) {
            (Some(slot), _, _) => slot,
            (None, None, None) if self.slots > 0 => self.slots - 1,
            (None, _, _) => self.next_slot(),
        };
        if let Some(id) = id {
            self.by_item.insert(id, slot);
        }
        if let Some(index) = index {
            self.by_index.insert(index, slot);
        }
        slot
    }

    fn next_slot(&mut self) -> Slot {
        let slot = self.slots;
        self.slots = self.slots.wrapping_add(1);
        slot
    }
}

/// The kinds of items that ask the application to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// A function with JSON arguments.
    Function,
    /// A tool with a plain string input.
    Custom,
    /// A tool that the API defines and the application runs: its action is data.
    BuiltIn,
}

impl CallKind {
    /// The kind of call that a `type` names; `None` when it is no call, or one that the
    /// provider runs itself.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "function_call" => Some(Self::Function),
            "custom_tool_call" => Some(Self::Custom),
            "local_shell_call" | "shell_call" | "computer_call" | "apply_patch_call" => {
                Some(Self::BuiltIn)
            }
            _ => None,
        }
    }

    /// The name of a call that carries none: its type says which tool it is.
    fn name(self, kind: &str) -> Option<&str> {
        match self {
            Self::BuiltIn => kind.strip_suffix("_call"),
            Self::Function | Self::Custom => None,
        }
    }
}

/// Reads an item that may be a call; what the provider runs itself is none.
fn call<V: View>(kind: &str, item: &V, slot: Slot, sink: &mut impl Sink) {
    sink.piece(Piece::TextBreak);
    let Some(call) = CallKind::of(kind) else {
        return;
    };
    call_piece((call, kind), item, slot, Form::Whole, sink);
    sink.piece(Piece::CallEnd(slot));
}

/// Hands on what an item says of a call.
fn call_piece<V: View>(
    (call, kind): (CallKind, &str),
    item: &V,
    slot: Slot,
    form: Form,
    sink: &mut impl Sink,
) {
    let id = identifier(item, &[Key::CallId, Key::Id]);
    let name = item.string(Key::Name);
    let limits = sink.limits();
    let then = |arguments: ArgumentsPiece<'_>| {
        sink.piece(Piece::Call {
            slot,
            id: filled(id.as_ref()),
            name: filled(name.as_ref()).or_else(|| call.name(kind)),
            arguments,
        });
    };
    match call {
        CallKind::Function => {
            with_arguments(item.get(Key::Arguments).as_ref(), form, limits, then);
        }
        CallKind::Custom => with_input(item.get(Key::Input).as_ref(), form, limits, then),
        CallKind::BuiltIn => {
            let value = item.first(&[Key::Action, Key::Operation]);
            with_arguments(value.as_ref(), form, limits, then);
        }
    }
}

/// Whether a `type` is that of an output item.
pub(crate) fn is_item(name: &str) -> bool {
    matches!(name, "message" | "reasoning") || name.ends_with("_call") || name.ends_with("_output")
}

fn status<V: View>(response: &V, sink: &mut impl Sink) {
    let Some(status) = response.string(Key::Status) else {
        return;
    };
    match status.as_str() {
        "completed" => sink.piece(Piece::Stopped { cut_off: false }),
        "incomplete" => sink.piece(Piece::Stopped { cut_off: true }),
        "failed" => {
            let error = response.get(Key::Error);
            let message = error.and_then(|error| error.string(Key::Message));
            sink.piece(Piece::Malformed(format!(
                "the response failed: {}",
                message.as_deref().unwrap_or("no reason is given")
            )));
        }
        _ => {}
    }
}
