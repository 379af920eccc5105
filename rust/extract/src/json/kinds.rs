//! What the healer did and why it gave up: closed lists, rendered only when shown.

use std::fmt;

/// What a repair did. The list is closed: nothing else is ever changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RepairKind {
    /// Text around or between values was dropped.
    ProseDropped,
    /// A reasoning block was dropped.
    ReasoningDropped,
    /// A code fence around the value was dropped.
    FenceDropped,
    /// A comment was dropped.
    CommentDropped,
    /// White space that JSON does not know, or a byte order mark, was dropped.
    SpaceDropped,
    /// A comma too many was dropped.
    CommaDropped,
    /// A colon too many was dropped.
    ColonDropped,
    /// A closing bracket or brace too many was dropped.
    CloserDropped,
    /// A doubled opening brace was dropped.
    OpenerDropped,
    /// A stray or doubled quote beside a string was dropped.
    QuoteDropped,
    /// A stray backslash outside a string was dropped.
    BackslashDropped,
    /// An ellipsis was dropped.
    EllipsisDropped,
    /// A key without a value was dropped.
    KeyDropped,
    /// A literal or number that was cut off was dropped, with its key.
    LiteralDropped,
    /// An escape that was cut off was dropped.
    EscapeDropped,
    /// An opening brace or bracket was added.
    OpenerAdded,
    /// A missing quote was added, or a bare word quoted.
    QuoteAdded,
    /// A missing comma was added.
    CommaAdded,
    /// A missing colon was added.
    ColonAdded,
    /// A missing closing brace or bracket was added.
    CloserAdded,
    /// A quote, control character or backslash in a string was escaped.
    EscapeAdded,
    /// Single, typographic or full-width quotes became JSON quotes.
    QuoteTranslated,
    /// Full-width or foreign punctuation was read as structure.
    PunctuationTranslated,
    /// An escape that JSON does not know became the character it stands for.
    EscapeTranslated,
    /// A Python or JavaScript literal became its JSON counterpart.
    LiteralTranslated,
    /// A number in a notation that JSON does not know was rewritten.
    NumberTranslated,
    /// `undefined`, NaN or an infinity became null.
    NonFiniteTranslated,
    /// A wrapper such as `ObjectId(...)` was taken off.
    WrapperTranslated,
    /// An opener of the wrong kind, a tuple's or a set's, was replaced.
    OpenerTranslated,
    /// A closer of the wrong kind was replaced.
    CloserTranslated,
    /// Strings in a row were joined.
    StringsJoined,
    /// A document that was escaped once was unescaped.
    DocumentUnescaped,
    /// Several values in a row became a list.
    ValuesCollected,
    /// The backslashes of a path were read literally.
    PathRead,
    /// Half a surrogate pair became U+FFFD.
    SurrogateReplaced,
    /// Bytes that are no UTF-8 became U+FFFD.
    Utf8Replaced,
}

impl RepairKind {
    /// All kinds.
    pub const ALL: [Self; 36] = [
        Self::ProseDropped,
        Self::ReasoningDropped,
        Self::FenceDropped,
        Self::CommentDropped,
        Self::SpaceDropped,
        Self::CommaDropped,
        Self::ColonDropped,
        Self::CloserDropped,
        Self::OpenerDropped,
        Self::QuoteDropped,
        Self::BackslashDropped,
        Self::EllipsisDropped,
        Self::KeyDropped,
        Self::LiteralDropped,
        Self::EscapeDropped,
        Self::OpenerAdded,
        Self::QuoteAdded,
        Self::CommaAdded,
        Self::ColonAdded,
        Self::CloserAdded,
        Self::EscapeAdded,
        Self::QuoteTranslated,
        Self::PunctuationTranslated,
        Self::EscapeTranslated,
        Self::LiteralTranslated,
        Self::NumberTranslated,
        Self::NonFiniteTranslated,
        Self::WrapperTranslated,
        Self::OpenerTranslated,
        Self::CloserTranslated,
        Self::StringsJoined,
        Self::DocumentUnescaped,
        Self::ValuesCollected,
        Self::PathRead,
        Self::SurrogateReplaced,
        Self::Utf8Replaced,
    ];

    /// The name shown to users, in snake case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ProseDropped => "prose_dropped",
            Self::ReasoningDropped => "reasoning_dropped",
            Self::FenceDropped => "fence_dropped",
            Self::CommentDropped => "comment_dropped",
            Self::SpaceDropped => "space_dropped",
            Self::CommaDropped => "comma_dropped",
            Self::ColonDropped => "colon_dropped",
            Self::CloserDropped => "closer_dropped",
            Self::OpenerDropped => "opener_dropped",
            Self::QuoteDropped => "quote_dropped",
            Self::BackslashDropped => "backslash_dropped",
            Self::EllipsisDropped => "ellipsis_dropped",
            Self::KeyDropped => "key_dropped",
            Self::LiteralDropped => "literal_dropped",
            Self::EscapeDropped => "escape_dropped",
            Self::OpenerAdded => "opener_added",
            Self::QuoteAdded => "quote_added",
            Self::CommaAdded => "comma_added",
            Self::ColonAdded => "colon_added",
            Self::CloserAdded => "closer_added",
            Self::EscapeAdded => "escape_added",
            Self::QuoteTranslated => "quote_translated",
            Self::PunctuationTranslated => "punctuation_translated",
            Self::EscapeTranslated => "escape_translated",
            Self::LiteralTranslated => "literal_translated",
            Self::NumberTranslated => "number_translated",
            Self::NonFiniteTranslated => "non_finite_translated",
            Self::WrapperTranslated => "wrapper_translated",
            Self::OpenerTranslated => "opener_translated",
            Self::CloserTranslated => "closer_translated",
            Self::StringsJoined => "strings_joined",
            Self::DocumentUnescaped => "document_unescaped",
            Self::ValuesCollected => "values_collected",
            Self::PathRead => "path_read",
            Self::SurrogateReplaced => "surrogate_replaced",
            Self::Utf8Replaced => "utf8_replaced",
        }
    }
}

impl fmt::Display for RepairKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Why a text could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text holds no JSON value.
    NoValue,
    /// Text that no repair makes sense of.
    Unreadable,
    /// A number that no finite double holds.
    NumberOutOfRange,
    /// Nested deeper than the limit.
    TooDeep,
    /// Longer than the limit.
    TooLong,
}

impl ErrorKind {
    /// The name shown to users, in snake case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoValue => "no_value",
            Self::Unreadable => "unreadable",
            Self::NumberOutOfRange => "number_out_of_range",
            Self::TooDeep => "too_deep",
            Self::TooLong => "too_long",
        }
    }
}

/// Why and where reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Error {
    /// Why.
    pub kind: ErrorKind,
    /// Where, in bytes from the start of the text.
    pub offset: usize,
}

impl Error {
    pub(super) const fn new(kind: ErrorKind, offset: usize) -> Self {
        Self { kind, offset }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.offset;
        match self.kind {
            ErrorKind::NoValue => write!(
                formatter,
                "no JSON value found up to byte {offset}; expected an object, an array or a whole \
                 JSON text"
            ),
            ErrorKind::Unreadable => write!(
                formatter,
                "text at byte {offset} is no JSON and cannot be healed; expected a key, a value, a \
                 comma or a closer"
            ),
            ErrorKind::NumberOutOfRange => write!(
                formatter,
                "the number at byte {offset} is beyond the range of a double; write it as a string \
                 or with a smaller exponent"
            ),
            ErrorKind::TooDeep => write!(
                formatter,
                "the value is nested too deeply at byte {offset}; raise the depth limit or flatten it"
            ),
            ErrorKind::TooLong => write!(
                formatter,
                "the text is longer than the limit of {offset} bytes; raise the limit or split it"
            ),
        }
    }
}

impl std::error::Error for Error {}
