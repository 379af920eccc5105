//! Gemini: candidates, content and parts, in camel case (REST) and snake case (SDK). A stream is
//! a sequence of responses whose parts follow one another.

use super::blocks::{self, identifier};
use super::piece::{ArgumentsPiece, Form, PartialValue, Piece, Sink, Slot, filled, with_arguments};
use super::view::{Key, Kind, View};

/// What has to be remembered between the responses of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct GeminiReader {
    slots: Slot,
    /// Which of several candidates is followed.
    candidate: Option<i64>,
    /// The call whose arguments are still to come, value by value.
    open: Option<(Slot, Option<String>)>,
}

impl GeminiReader {
    /// Reads a response: its first candidate.
    pub(crate) fn response<V: View>(&mut self, response: &V, form: Form, sink: &mut impl Sink) {
        let Some(candidates) = response.get(Key::Candidates) else {
            return;
        };
        if candidates.kind() != Kind::List {
            return sink.piece(Piece::Malformed(format!(
                "candidates is {}; expected a list",
                candidates.kind().as_str()
            )));
        }
        for candidate in candidates.items() {
            if candidate.kind() == Kind::Null {
                continue;
            }
            let index = candidate.number(Key::Index).unwrap_or(0);
            if *self.candidate.get_or_insert(index) == index {
                self.candidate(&candidate, sink);
                if form == Form::Whole {
                    return;
                }
            }
        }
    }

    /// Reads a candidate: its content, and why it stopped.
    pub(crate) fn candidate<V: View>(&mut self, candidate: &V, sink: &mut impl Sink) {
        if let Some(content) = candidate.get(Key::Content) {
            self.content(&content, sink);
        }
        finish_reason(candidate, sink);
    }

    /// Reads content: its parts.
    pub(crate) fn content<V: View>(&mut self, content: &V, sink: &mut impl Sink) {
        if !blocks::is_of_model(content, sink) {
            return;
        }
        if let Some(parts) = content.get(Key::Parts) {
            self.parts(&parts, sink);
        }
    }

    /// Reads a list of parts, or one.
    pub(crate) fn parts<V: View>(&mut self, parts: &V, sink: &mut impl Sink) {
        match parts.kind() {
            Kind::List => {
                for part in parts.items() {
                    self.part(&part, sink);
                }
            }
            _ => self.part(parts, sink),
        }
    }

    fn part<V: View>(&mut self, part: &V, sink: &mut impl Sink) {
        match part.kind() {
            Kind::Null => return,
            Kind::Text => return blocks::text_of(part, sink),
            Kind::Object => {}
            kind => {
                return sink.piece(Piece::Malformed(format!(
                    "a part is {}; expected an object",
                    kind.as_str()
                )));
            }
        }
        if let Some(call) = part.first(&[Key::FunctionCallCamel, Key::FunctionCall]) {
            sink.piece(Piece::TextBreak);
            sink.piece(Piece::ReasoningBreak);
            return self.call(&call, sink);
        }
        let Some(text) = part.get(Key::Text) else {
            // Images, code that the provider ran, its results.
            return sink.piece(Piece::TextBreak);
        };
        if text.text().is_some_and(|text| text.is_empty()) {
            return;
        }
        if part.get(Key::Thought).is_some_and(|flag| flag.is_true()) {
            sink.piece(Piece::TextBreak);
            blocks::reasoning_of(&text, sink);
        } else {
            sink.piece(Piece::ReasoningBreak);
            blocks::text_of(&text, sink);
        }
    }

    fn call<V: View>(&mut self, call: &V, sink: &mut impl Sink) {
        if call.kind() != Kind::Object {
            return sink.piece(Piece::Malformed(format!(
                "a function call is {}; expected an object",
                call.kind().as_str()
            )));
        }
        let id = identifier(call, &[Key::Id]);
        let name = call.string(Key::Name);
        let slot = self.slot_of(id.as_ref(), name.as_ref(), sink);
        let arguments = call.first(&[Key::Args, Key::Arguments]);
        with_arguments(
            arguments.as_ref(),
            Form::Whole,
            sink.limits(),
            |arguments| {
                sink.piece(Piece::Call {
                    slot,
                    id: filled(id.as_ref()),
                    name: filled(name.as_ref()),
                    arguments,
                });
            },
        );
        let values = call.first(&[Key::PartialArgs, Key::PartialArgsSnake]);
        for value in values.iter().flat_map(View::items) {
            partial_value(&value, slot, sink);
        }
        let more = call.first(&[Key::WillContinue, Key::WillContinueSnake]);
        if more.is_some_and(|more| more.is_true()) {
            self.open = Some((
                slot,
                id.or_else(|| self.open.take().and_then(|open| open.1)),
            ));
        } else {
            self.open = None;
            sink.piece(Piece::CallEnd(slot));
        }
    }

    /// The slot of the open call when this continues it, else a new one.
    fn slot_of(
        &mut self,
        id: Option<&String>,
        name: Option<&String>,
        sink: &mut impl Sink,
    ) -> Slot {
        if let Some((slot, open_id)) = &self.open {
            let slot = *slot;
            let continues = match (id, open_id) {
                (Some(id), Some(open_id)) => id == open_id,
                _ => filled(name).is_none(),
            };
            if continues {
                return slot;
            }
            sink.piece(Piece::CallEnd(slot));
        }
        let slot = self.slots;
        self.slots = self.slots.wrapping_add(1);
        slot
    }
}

/// Why a candidate stopped; a call that the API could not read is gone, but can be told of.
fn finish_reason<V: View>(candidate: &V, sink: &mut impl Sink) {
    let reason = candidate.first(&[Key::FinishReasonCamel, Key::FinishReason]);
    let Some(reason) = reason.as_ref().and_then(View::text) else {
        return;
    };
    match &*reason {
        "" => {}
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
            let message = candidate.first(&[Key::FinishMessage, Key::FinishMessageSnake]);
            let message = message.as_ref().and_then(View::text);
            sink.piece(Piece::Malformed(format!(
                "the API could not read a call: {}",
                message.as_deref().unwrap_or(&reason)
            )));
        }
        reason => sink.piece(Piece::Stopped {
            cut_off: reason == "MAX_TOKENS",
        }),
    }
}

fn partial_value<V: View>(value: &V, slot: Slot, sink: &mut impl Sink) {
    let Some(path) = value
        .string(Key::JsonPath)
        .or_else(|| value.string(Key::JsonPathSnake))
    else {
        return;
    };
    let mut hand_on = |value: PartialValue<'_>| {
        sink.piece(Piece::Call {
            slot,
            id: None,
            name: None,
            arguments: ArgumentsPiece::Value { path: &path, value },
        });
    };
    if let Some(text) = value.first(&[Key::StringValue, Key::StringValueSnake]) {
        if let Some(text) = text.text() {
            hand_on(PartialValue::Text(&text));
        }
        return;
    }
    let scalar = value.first(&[
        Key::NumberValue,
        Key::NumberValueSnake,
        Key::BoolValue,
        Key::BoolValueSnake,
    ]);
    let null = value.first(&[Key::NullValue, Key::NullValueSnake]);
    match (scalar, null) {
        (Some(scalar), _) => {
            let limits = super::view::WriteLimits {
                depth: 1,
                bytes: 4096,
            };
            if let Ok(written) = scalar.write(limits) {
                hand_on(PartialValue::Json(written.json));
            }
        }
        (None, Some(_)) => hand_on(PartialValue::Json("null".to_owned())),
        (None, None) => {}
    }
}
