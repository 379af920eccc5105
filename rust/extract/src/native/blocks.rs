//! Content that is a list of typed blocks: Anthropic's, the content parts of chat messages, and
//! those of Responses messages. They share most types, and no two mean different things.

use super::piece::{ArgumentsPiece, Form, Piece, Sink, Slot, filled, with_arguments};
use super::view::{Key, Kind, View};

/// What a block of content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// Text for the user, a refusal included.
    Text,
    /// The model's reasoning.
    Reasoning,
    /// A call that the application must run.
    Call,
    /// Anything else, such as what the provider ran itself, results, images, hidden reasoning.
    Other,
}

impl BlockKind {
    /// The kind of block that a `type` names.
    pub(crate) fn of_type(name: &str) -> Self {
        match name {
            "text" | "output_text" | "refusal" | "summary_text" => Self::Text,
            "thinking" | "reasoning" | "reasoning_text" => Self::Reasoning,
            "tool_use" => Self::Call,
            _ => Self::Other,
        }
    }

    /// The kind of a block, by its type, or by what it holds when it has none.
    pub(crate) fn of<V: View>(block: &V) -> Self {
        if let Some(name) = block.string(Key::Type) {
            return Self::of_type(&name);
        }
        match block.kind() {
            Kind::Text => Self::Text,
            _ if block.get(Key::Text).is_some() => Self::Text,
            _ if block.get(Key::Thinking).is_some() => Self::Reasoning,
            _ if block.get(Key::Name).is_some() && block.get(Key::Input).is_some() => Self::Call,
            _ => Self::Other,
        }
    }
}

/// How blocks of reasoning that follow one another are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// Each is a block of its own.
    Apart,
    /// They continue one another: where deltas have the shape of blocks.
    Together,
}

/// Reads a list of blocks, or a plain string, as the content of a message.
pub(crate) fn content<V: View>(
    content: &V,
    runs: Runs,
    slots: &mut impl FnMut() -> Slot,
    sink: &mut impl Sink,
) {
    match content.kind() {
        Kind::Null => {}
        Kind::Text => text_of(content, sink),
        Kind::List => {
            for block in content.items() {
                whole(&block, runs, slots, sink);
            }
        }
        Kind::Object => whole(content, runs, slots, sink),
        kind => sink.piece(Piece::Malformed(format!(
            "the content is {}; expected a string or a list of blocks",
            kind.as_str()
        ))),
    }
}

/// Reads one block that is all there.
fn whole<V: View>(block: &V, runs: Runs, slots: &mut impl FnMut() -> Slot, sink: &mut impl Sink) {
    match block.kind() {
        Kind::Null => return,
        Kind::Text | Kind::Object => {}
        kind => {
            return sink.piece(Piece::Malformed(format!(
                "a block of the content is {}; expected an object",
                kind.as_str()
            )));
        }
    }
    let kind = BlockKind::of(block);
    if (runs == Runs::Apart) == (kind == BlockKind::Reasoning) {
        sink.piece(Piece::ReasoningBreak);
    }
    match kind {
        BlockKind::Text => text(block, sink),
        BlockKind::Reasoning => {
            sink.piece(Piece::TextBreak);
            reasoning(block, sink);
        }
        BlockKind::Call => {
            sink.piece(Piece::TextBreak);
            let slot = slots();
            call(block, slot, Form::Whole, sink);
            sink.piece(Piece::CallEnd(slot));
        }
        BlockKind::Other => {
            sink.piece(Piece::TextBreak);
            other(block, sink);
        }
    }
}

/// Tells of a block that is not read, unless it is one of those with nothing to run in them.
fn other<V: View>(block: &V, sink: &mut impl Sink) {
    let problem = match block.get(Key::Type) {
        None => "has no type and holds nothing that is known".to_owned(),
        Some(kind) => {
            let kind = kind.text().unwrap_or_default();
            let letters = kind.chars().filter(char::is_ascii_alphabetic);
            let word: String = letters.map(|c| c.to_ascii_lowercase()).collect();
            if !matches!(word.as_str(), "toolcall" | "tooluse" | "functioncall") {
                return;
            }
            format!("has the type {kind:?} of an API that is not read")
        }
    };
    sink.piece(Piece::Malformed(format!(
        "a block of the content {problem}; expected text, reasoning or a call"
    )));
}

/// The text of a text block.
pub(crate) fn text<V: View>(block: &V, sink: &mut impl Sink) {
    if block.kind() == Kind::Text {
        return text_of(block, sink);
    }
    if let Some(value) = block.first(&[Key::Text, Key::Refusal]) {
        text_of(&value, sink);
    }
}

/// The reasoning of a thinking block: a string, or a list of text blocks.
pub(crate) fn reasoning<V: View>(block: &V, sink: &mut impl Sink) {
    let Some(value) = block.first(&[Key::Thinking, Key::Text, Key::Summary]) else {
        return;
    };
    reasoning_of(&value, sink);
}

/// Hands on a value that should be reasoning: a string, an object that holds one, or a list.
pub(crate) fn reasoning_of<V: View>(value: &V, sink: &mut impl Sink) {
    match value.kind() {
        Kind::Text => {
            if let Some(text) = value.text().filter(|text| !text.is_empty()) {
                sink.piece(Piece::Reasoning(&text));
            }
        }
        Kind::Object => {
            let inner = value.first(&[Key::Text, Key::Content, Key::Summary, Key::Thinking]);
            if let Some(inner) = inner.filter(|inner| inner.kind() == Kind::Text) {
                reasoning_of(&inner, sink);
            }
        }
        Kind::List => {
            for item in value.items() {
                if matches!(item.kind(), Kind::Text | Kind::Object) {
                    reasoning_of(&item, sink);
                }
            }
        }
        Kind::Null => {}
        kind => sink.piece(Piece::Malformed(format!(
            "the reasoning is {}; expected a string",
            kind.as_str()
        ))),
    }
}

/// A `tool_use` block, as it stands in a message or as it starts in a stream.
pub(crate) fn call<V: View>(block: &V, slot: Slot, form: Form, sink: &mut impl Sink) {
    let id = identifier(block, &[Key::Id]);
    let name = block.string(Key::Name);
    let input = block.get(Key::Input);
    with_arguments(input.as_ref(), form, sink.limits(), |arguments| {
        sink.piece(Piece::Call {
            slot,
            id: filled(id.as_ref()),
            name: filled(name.as_ref()),
            arguments: match arguments {
                // A stream starts a block with `{}` and sends the input after it.
                ArgumentsPiece::Data(written)
                    if form == Form::Delta && written.json.trim() == "{}" =>
                {
                    ArgumentsPiece::Absent
                }
                other => other,
            },
        });
    });
}

/// Whether a message is one of a model. Text of users and tools is data: nothing in it is a call.
pub(crate) fn is_of_model<V: View>(message: &V, sink: &mut impl Sink) -> bool {
    let role = message.string(Key::Role).unwrap_or_default();
    let of_others = matches!(
        role.as_str(),
        "user" | "system" | "developer" | "tool" | "function"
    );
    if of_others {
        sink.piece(Piece::Malformed(format!(
            "the message has the role {role:?}; expected one of a model"
        )));
    }
    !of_others
}

/// The first of these members that can be an id: a string that is not empty, or an integer.
pub(crate) fn identifier<V: View>(value: &V, keys: &[Key]) -> Option<String> {
    keys.iter().find_map(|&key| {
        let member = value.get(key)?;
        match member.text() {
            Some(text) if text.is_empty() => None,
            Some(text) => Some(text.into_owned()),
            None => member.integer().map(|number| number.to_string()),
        }
    })
}

/// Hands on a value that should be text.
pub(crate) fn text_of<V: View>(value: &V, sink: &mut impl Sink) {
    match value.text() {
        Some(text) if text.is_empty() => {}
        Some(text) => sink.piece(Piece::Text(&text)),
        // Some servers nest the text of a part once more.
        None => match value.get(Key::Text) {
            Some(inner) if inner.kind() == Kind::Text => text_of(&inner, sink),
            _ => sink.piece(Piece::Malformed(format!(
                "a text is {}; expected a string",
                value.kind().as_str()
            ))),
        },
    }
}
