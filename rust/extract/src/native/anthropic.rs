//! Anthropic messages: content blocks, and the events that stream them.

use std::collections::HashMap;

use super::blocks::{self, BlockKind, Runs};
use super::piece::{ArgumentsPiece, Form, Piece, Sink, Slot};
use super::view::{Key, Kind, View};

/// What has to be remembered between the events of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnthropicReader {
    slots: Slot,
    /// What each block index stands for at the moment.
    open: HashMap<i64, (Slot, BlockKind)>,
    /// The index of the block that began last.
    last: Option<i64>,
}

/// Whether a `type` is that of a stream event.
pub(crate) fn is_event(name: &str) -> bool {
    matches!(
        name,
        "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop"
            | "ping"
    )
}

impl AnthropicReader {
    /// Reads a message: its `content`, and why it stopped.
    pub(crate) fn message<V: View>(&mut self, message: &V, sink: &mut impl Sink) {
        if !blocks::is_of_model(message, sink) {
            return;
        }
        if let Some(content) = message.get(Key::Content) {
            self.content(&content, sink);
        }
        stop_reason(message, sink);
    }

    /// Reads content: a string or a list of blocks, or one block.
    pub(crate) fn content<V: View>(&mut self, content: &V, sink: &mut impl Sink) {
        blocks::content(content, Runs::Apart, &mut || next(&mut self.slots), sink);
    }

    /// Reads one event of a stream.
    pub(crate) fn event<V: View>(&mut self, name: &str, event: &V, sink: &mut impl Sink) {
        match name {
            "message_start" => {
                if let Some(message) = event.get(Key::Message) {
                    self.message(&message, sink);
                }
            }
            "content_block_start" => self.start(event, sink),
            "content_block_delta" => self.delta(event, sink),
            "content_block_stop" => self.stop(event, sink),
            "message_delta" => {
                if let Some(delta) = event.get(Key::Delta) {
                    stop_reason(&delta, sink);
                }
            }
            _ => {}
        }
    }

    fn start<V: View>(&mut self, event: &V, sink: &mut impl Sink) {
        let index = event
            .number(Key::Index)
            .unwrap_or_else(|| self.last.map_or(0, |last| last.saturating_add(1)));
        let slot = next(&mut self.slots);
        self.last = Some(index);
        let Some(block) = event
            .get(Key::ContentBlock)
            .filter(|block| block.kind() == Kind::Object)
        else {
            self.open.insert(index, (slot, BlockKind::Other));
            return sink.piece(Piece::Malformed(
                "content_block_start without a content_block".to_owned(),
            ));
        };
        let kind = BlockKind::of(&block);
        if let Some((slot, BlockKind::Call)) = self.open.insert(index, (slot, kind)) {
            sink.piece(Piece::CallEnd(slot));
        }
        match kind {
            BlockKind::Text => blocks::text(&block, sink),
            BlockKind::Reasoning => {
                sink.piece(Piece::TextBreak);
                sink.piece(Piece::ReasoningBreak);
                blocks::reasoning(&block, sink);
            }
            BlockKind::Call => {
                sink.piece(Piece::TextBreak);
                blocks::call(&block, slot, Form::Delta, sink);
            }
            BlockKind::Other => sink.piece(Piece::TextBreak),
        }
    }

    fn delta<V: View>(&mut self, event: &V, sink: &mut impl Sink) {
        let Some(delta) = event.get(Key::Delta) else {
            return;
        };
        let kind = delta.string(Key::Type);
        let is = |name: &str, key: Key| match kind.as_deref() {
            Some(kind) => kind == name,
            None => delta.get(key).is_some(),
        };
        if is("text_delta", Key::Text) {
            return blocks::text(&delta, sink);
        }
        if is("thinking_delta", Key::Thinking) {
            return blocks::reasoning(&delta, sink);
        }
        if is("input_json_delta", Key::PartialJson) {
            self.input(event, &delta, sink);
        }
        // Signatures and citations are no part of what the model said.
    }

    fn input<V: View>(&mut self, event: &V, delta: &V, sink: &mut impl Sink) {
        let index = event.number(Key::Index).or(self.last).unwrap_or(0);
        let (slot, kind) = *self
            .open
            .entry(index)
            .or_insert_with(|| (next(&mut self.slots), BlockKind::Call));
        if kind != BlockKind::Call {
            return;
        }
        let Some(json) = delta.get(Key::PartialJson) else {
            return;
        };
        let text = json.text();
        let Some(text) = text.as_deref() else {
            return sink.piece(Piece::Malformed(format!(
                "partial_json is {}; expected a string",
                json.kind().as_str()
            )));
        };
        sink.piece(Piece::Call {
            slot,
            id: None,
            name: None,
            arguments: ArgumentsPiece::Fragment(text),
        });
    }

    fn stop<V: View>(&mut self, event: &V, sink: &mut impl Sink) {
        let Some(index) = event.number(Key::Index).or(self.last) else {
            return;
        };
        if let Some((slot, BlockKind::Call)) = self.open.remove(&index) {
            sink.piece(Piece::CallEnd(slot));
        }
    }
}

fn next(slots: &mut Slot) -> Slot {
    let slot = *slots;
    *slots = slots.wrapping_add(1);
    slot
}

fn stop_reason<V: View>(message: &V, sink: &mut impl Sink) {
    if let Some(reason) = message.string(Key::StopReason) {
        sink.piece(Piece::Stopped {
            cut_off: matches!(
                reason.as_str(),
                "max_tokens" | "model_context_window_exceeded"
            ),
        });
    }
}
