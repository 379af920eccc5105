//! What the readers of the four dialects say: a message is a sequence of [`Piece`]s, whole or
//! as it streams, and whoever takes them need not know where they came from.

use super::view::{Kind, Unwritable, View, WriteLimits, Written};

/// Where a block of a message stands: a call keeps its slot from start to end.
pub(crate) type Slot = u64;

/// What is known of a call's arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ArgumentsPiece<'a> {
    /// Nothing new.
    Absent,
    /// The next characters of the JSON text.
    Fragment(&'a str),
    /// The whole JSON text, in place of the fragments so far.
    Whole(&'a str),
    /// An object, given as data.
    Data(Written),
    /// The next characters of a plain string input.
    InputFragment(&'a str),
    /// A whole plain string input, in place of the fragments so far.
    Input(&'a str),
    /// One value, or a part of one string, with its place.
    Value {
        /// JSON path from `$`.
        path: &'a str,
        /// What stands there.
        value: PartialValue<'a>,
    },
    /// Data that is no object.
    NotAnObject(Kind),
    /// Data that JSON cannot say.
    Unwritable(Unwritable),
}

/// A value of arguments that arrive one value at a time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PartialValue<'a> {
    /// The next characters of a string.
    Text(&'a str),
    /// A number, boolean or null, as JSON.
    Json(String),
}

/// One thing that a message says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece<'a> {
    /// More text.
    Text(&'a str),
    /// What follows is another block of text.
    TextBreak,
    /// More reasoning.
    Reasoning(&'a str),
    /// What follows is another block of reasoning.
    ReasoningBreak,
    /// More of the call in a slot, which begins with the first piece for its slot.
    Call {
        /// Which call.
        slot: Slot,
        /// Its id, once known.
        id: Option<&'a str>,
        /// Its name, once known.
        name: Option<&'a str>,
        /// What is new of its arguments.
        arguments: ArgumentsPiece<'a>,
    },
    /// Nothing more will come for the call in that slot.
    CallEnd(Slot),
    /// A fragment of a chat-completion call: which call it belongs to must be worked out.
    CallDelta(CallDelta<'a>),
    /// Something that makes no sense, as a sentence for a fault.
    Malformed(String),
    /// The model stopped, because it was done or because it was cut off.
    Stopped {
        /// Whether a limit cut the message off.
        cut_off: bool,
    },
}

/// A fragment as chat-completion streams send it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallDelta<'a> {
    /// The provider's index, when it sends one.
    pub(crate) index: Option<i64>,
    /// Which entry of several in one delta.
    pub(crate) position: Option<usize>,
    /// The provider's id, when it sends one that is not empty.
    pub(crate) id: Option<&'a str>,
    /// The name, or a part of it, when it is not empty.
    pub(crate) name: Option<&'a str>,
    /// What is new of its arguments.
    pub(crate) arguments: ArgumentsPiece<'a>,
}

/// Takes pieces as they are read.
pub(crate) trait Sink {
    /// Takes the next one.
    fn piece(&mut self, piece: Piece<'_>);

    /// How much JSON may be written for arguments that are data.
    fn limits(&self) -> WriteLimits;
}

/// Whether a value is all there is, or the next part of something that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// All there is.
    Whole,
    /// The next part.
    Delta,
}

/// Hands on a call's arguments, whatever they are: a JSON string or data.
pub(crate) fn with_arguments<V: View>(
    value: Option<&V>,
    form: Form,
    limits: WriteLimits,
    then: impl FnOnce(ArgumentsPiece<'_>),
) {
    let Some(value) = value else {
        return then(ArgumentsPiece::Absent);
    };
    match value.kind() {
        Kind::Null => then(ArgumentsPiece::Absent),
        Kind::Text => {
            let text = value.text().unwrap_or_default();
            then(match form {
                Form::Whole => ArgumentsPiece::Whole(&text),
                Form::Delta => ArgumentsPiece::Fragment(&text),
            });
        }
        Kind::Object => then(match value.write(limits) {
            Ok(written) => ArgumentsPiece::Data(written),
            Err(reason) => ArgumentsPiece::Unwritable(reason),
        }),
        kind @ (Kind::Bool | Kind::Number | Kind::List | Kind::Other) => {
            then(ArgumentsPiece::NotAnObject(kind));
        }
    }
}

/// Hands on a plain string input.
pub(crate) fn with_input<V: View>(
    value: Option<&V>,
    form: Form,
    limits: WriteLimits,
    then: impl FnOnce(ArgumentsPiece<'_>),
) {
    let Some(text) = value.and_then(View::text) else {
        return with_arguments(value, form, limits, then);
    };
    then(match form {
        Form::Whole => ArgumentsPiece::Input(&text),
        Form::Delta => ArgumentsPiece::InputFragment(&text),
    });
}

/// A string that says something.
pub(crate) fn filled(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}
