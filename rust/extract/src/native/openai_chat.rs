//! OpenAI chat completions, and what the many servers that speak like them send: whole messages
//! and deltas have one shape, so one function reads both.

use super::blocks::{self, Runs, identifier};
use super::piece::{CallDelta, Form, Piece, Sink, Slot, filled, with_arguments, with_input};
use super::view::{Key, Kind, View};

/// What has to be remembered between the chunks of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChatReader {
    slots: Slot,
    /// Which of several choices is followed: the first that was seen.
    choice: Option<i64>,
}

impl ChatReader {
    /// Reads a response or a chunk: its first choice.
    pub(crate) fn response<V: View>(&mut self, response: &V, form: Form, sink: &mut impl Sink) {
        let Some(choices) = response.get(Key::Choices) else {
            return;
        };
        if choices.kind() != Kind::List {
            return sink.piece(Piece::Malformed(format!(
                "choices is {}; expected a list",
                choices.kind().as_str()
            )));
        }
        for choice in choices.items() {
            if choice.kind() == Kind::Null {
                continue;
            }
            let index = choice.number(Key::Index).unwrap_or(0);
            if *self.choice.get_or_insert(index) == index {
                self.choice(&choice, form, sink);
                if form == Form::Whole {
                    return;
                }
            }
        }
    }

    /// Reads a choice: its message or delta, and why it stopped.
    pub(crate) fn choice<V: View>(&mut self, choice: &V, form: Form, sink: &mut impl Sink) {
        if choice.kind() != Kind::Object {
            return sink.piece(Piece::Malformed(format!(
                "a choice is {}; expected an object",
                choice.kind().as_str()
            )));
        }
        let keys = match form {
            Form::Whole => [Key::Message, Key::Delta],
            Form::Delta => [Key::Delta, Key::Message],
        };
        if let Some(message) = choice.first(&keys) {
            self.message(&message, form, sink);
        } else if let Some(text) = choice.get(Key::Text) {
            // The older completions API, and servers that imitate it.
            blocks::text_of(&text, sink);
        }
        stop_reason(choice, sink);
    }

    /// Reads a message or a delta.
    pub(crate) fn message<V: View>(&mut self, message: &V, form: Form, sink: &mut impl Sink) {
        if message.kind() != Kind::Object {
            return sink.piece(Piece::Malformed(format!(
                "the message is {}; expected an object",
                message.kind().as_str()
            )));
        }
        if !blocks::is_of_model(message, sink) {
            return;
        }
        reasoning(message, sink);
        if let Some(content) = message.get(Key::Content) {
            blocks::content(&content, Runs::Together, &mut || self.next_slot(), sink);
        } else if form == Form::Whole
            && let Some(text) = message.get(Key::Text)
        {
            blocks::text_of(&text, sink);
        }
        if let Some(refusal) = message.get(Key::Refusal) {
            blocks::text_of(&refusal, sink);
        }
        if let Some(calls) = message.get(Key::ToolCalls) {
            self.calls(&calls, form, sink);
        }
        if let Some(call) = message.get(Key::FunctionCall) {
            self.function_call(&call, form, sink);
        }
    }

    /// Reads a list of tool calls, or of parts of them.
    pub(crate) fn calls<V: View>(&mut self, calls: &V, form: Form, sink: &mut impl Sink) {
        match calls.kind() {
            Kind::Null => {}
            Kind::List => {
                let calls = calls.items();
                // Several that say nothing of themselves are told apart by where they stand.
                let by_position = calls.len() > 1 && calls.iter().all(is_bare);
                for (position, call) in calls.iter().enumerate() {
                    self.call(call, by_position.then_some(position), form, sink);
                }
            }
            Kind::Object => self.call(calls, None, form, sink),
            kind => sink.piece(Piece::Malformed(format!(
                "tool_calls is {}; expected a list",
                kind.as_str()
            ))),
        }
    }

    fn call<V: View>(
        &mut self,
        call: &V,
        position: Option<usize>,
        form: Form,
        sink: &mut impl Sink,
    ) {
        match call.kind() {
            Kind::Null => return,
            Kind::Object => {}
            kind => {
                return sink.piece(Piece::Malformed(format!(
                    "a tool call is {}; expected an object",
                    kind.as_str()
                )));
            }
        }
        let id = identifier(call, &[Key::Id, Key::CallId]);
        let index = call.number(Key::Index);
        let custom = call
            .get(Key::Custom)
            .filter(|custom| custom.kind() == Kind::Object);
        let function = match &custom {
            Some(custom) => custom.clone(),
            None => call
                .get(Key::Function)
                .filter(|function| function.kind() == Kind::Object)
                .unwrap_or_else(|| call.clone()),
        };
        let name = function.string(Key::Name);
        let limits = sink.limits();
        let then = |arguments: super::piece::ArgumentsPiece<'_>| {
            let delta = CallDelta {
                index,
                position,
                id: filled(id.as_ref()),
                name: filled(name.as_ref()),
                arguments,
            };
            self.hand_on(delta, form, sink);
        };
        if let Some(custom) = custom {
            with_input(custom.get(Key::Input).as_ref(), form, limits, then);
        } else {
            let keys = [
                Key::Arguments,
                Key::Args,
                Key::Params,
                Key::Parameters,
                Key::Input,
            ];
            with_arguments(function.first(&keys).as_ref(), form, limits, then);
        }
    }

    /// The one call of the time before tools, which has neither index nor id.
    fn function_call<V: View>(&mut self, call: &V, form: Form, sink: &mut impl Sink) {
        if call.kind() != Kind::Object {
            return sink.piece(Piece::Malformed(format!(
                "function_call is {}; expected an object",
                call.kind().as_str()
            )));
        }
        let name = call.string(Key::Name);
        let arguments = call.get(Key::Arguments);
        with_arguments(arguments.as_ref(), form, sink.limits(), |arguments| {
            let delta = CallDelta {
                index: None,
                position: None,
                id: None,
                name: filled(name.as_ref()),
                arguments,
            };
            self.hand_on(delta, form, sink);
        });
    }

    fn hand_on(&mut self, delta: CallDelta<'_>, form: Form, sink: &mut impl Sink) {
        match form {
            Form::Delta => sink.piece(Piece::CallDelta(delta)),
            Form::Whole => {
                let slot = self.next_slot();
                sink.piece(Piece::Call {
                    slot,
                    id: delta.id,
                    name: delta.name,
                    arguments: delta.arguments,
                });
                sink.piece(Piece::CallEnd(slot));
            }
        }
    }

    fn next_slot(&mut self) -> Slot {
        let slot = self.slots;
        self.slots = self.slots.wrapping_add(1);
        slot
    }
}

/// Whether a call says nothing of itself but its arguments.
fn is_bare<V: View>(call: &V) -> bool {
    let named = |call: &V| call.string(Key::Name).is_some_and(|name| !name.is_empty());
    call.number(Key::Index).is_none()
        && identifier(call, &[Key::Id, Key::CallId]).is_none()
        && !named(call)
        && !call
            .get(Key::Function)
            .is_some_and(|function| named(&function))
}

/// Reasoning under the names that servers of open models give it. Several may carry the same
/// text, so the first that says something counts.
fn reasoning<V: View>(message: &V, sink: &mut impl Sink) {
    let keys = [
        Key::ReasoningContent,
        Key::Reasoning,
        Key::Thinking,
        Key::ReasoningDetails,
    ];
    for key in keys {
        let Some(value) = message.get(key) else {
            continue;
        };
        if value.text().is_some_and(|text| text.is_empty()) {
            continue;
        }
        return blocks::reasoning_of(&value, sink);
    }
}

/// Why a choice stopped.
pub(crate) fn stop_reason<V: View>(choice: &V, sink: &mut impl Sink) {
    let reason = choice.first(&[Key::FinishReason, Key::DoneReason]);
    let Some(reason) = reason.as_ref().and_then(View::text) else {
        return;
    };
    if !reason.is_empty() {
        sink.piece(Piece::Stopped {
            cut_off: matches!(&*reason, "length" | "content_filter" | "max_tokens"),
        });
    }
}
