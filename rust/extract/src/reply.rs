//! What a parsed reply is made of: plain data that the engine fills and the bindings show.
//!
//! Offsets are bytes of the reply as UTF-8, counted from its start.

/// A half-open range of bytes of the reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// What a stretch of the reply turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanKind {
    /// Visible to the user.
    Text,
    /// The model's reasoning.
    Reasoning,
    /// The payload of a tool call.
    Call,
    /// Tags, fences, special tokens and the white space trimmed with them.
    Markup,
    /// Looked like a call and was refused.
    Fault,
}

impl SpanKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Text,
        Self::Reasoning,
        Self::Call,
        Self::Markup,
        Self::Fault,
    ];

    /// The kind's name in snake case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
            Self::Call => "call",
            Self::Markup => "markup",
            Self::Fault => "fault",
        }
    }
}

/// One call that the model asked for.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The model's own id, or `call_` and 24 random characters.
    pub id: String,
    /// Whether `id` was made here; made ids do not take part in comparisons.
    pub id_generated: bool,
    /// The tool's name.
    pub name: String,
    /// The arguments as a compact JSON object: the model's own bytes less white space outside
    /// strings, only repaired parts rewritten.
    pub arguments: String,
    /// Whether anything in the call had to be healed.
    pub repaired: bool,
    /// Where the call stood.
    pub span: Span,
}

/// The reply as workflow JSON: `{"content": ..., "next": [...]}`; its calls are the reply's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workflow {
    /// What the user should see.
    pub content: String,
}

/// One thing that was healed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Repair {
    /// What was done.
    pub kind: crate::json::RepairKind,
    /// Where, in bytes from the start of the reply.
    pub offset: usize,
}

/// Why something that looked like a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// The payload of a call is no JSON and could not be healed.
    UnreadableArguments,
    /// The arguments are an array or a scalar.
    ArgumentsNotAnObject,
    /// An arguments key without a value, or arguments beside the name instead of under such a key.
    MissingArguments,
    /// A call without a name, or with an empty one.
    MissingName,
    /// Text inside call markup that is no part of a call.
    Junk,
    /// A member of workflow JSON, or an item of `next`, that has no meaning there.
    UnknownMember,
    /// A number that no finite double holds.
    NumberOutOfRange,
    /// Nested deeper than `max_depth`.
    TooDeep,
    /// More calls than `max_calls`.
    TooManyCalls,
    /// Arguments longer than `max_argument_bytes`.
    ArgumentsTooLong,
    /// A reply longer than `max_reply_bytes`.
    ReplyTooLong,
    /// The reply began to repeat itself without end.
    TextLoop,
    /// A call turned out to be a draft: a later closing tag showed that it stood in reasoning.
    Draft,
    /// An argument does not fit its declared type; the call is made all the same.
    TypeMismatch,
    /// A native message holds something that makes no sense there.
    MalformedMessage,
    /// A call in the text of a message that has native calls.
    CallInText,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 16] = [
        Self::UnreadableArguments,
        Self::ArgumentsNotAnObject,
        Self::MissingArguments,
        Self::MissingName,
        Self::Junk,
        Self::UnknownMember,
        Self::NumberOutOfRange,
        Self::TooDeep,
        Self::TooManyCalls,
        Self::ArgumentsTooLong,
        Self::ReplyTooLong,
        Self::TextLoop,
        Self::Draft,
        Self::TypeMismatch,
        Self::MalformedMessage,
        Self::CallInText,
    ];

    /// The kind's name in snake case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnreadableArguments => "unreadable_arguments",
            Self::ArgumentsNotAnObject => "arguments_not_an_object",
            Self::MissingArguments => "missing_arguments",
            Self::MissingName => "missing_name",
            Self::Junk => "junk",
            Self::UnknownMember => "unknown_member",
            Self::NumberOutOfRange => "number_out_of_range",
            Self::TooDeep => "too_deep",
            Self::TooManyCalls => "too_many_calls",
            Self::ArgumentsTooLong => "arguments_too_long",
            Self::ReplyTooLong => "reply_too_long",
            Self::TextLoop => "text_loop",
            Self::Draft => "draft",
            Self::TypeMismatch => "type_mismatch",
            Self::MalformedMessage => "malformed_message",
            Self::CallInText => "call_in_text",
        }
    }
}

/// Something that looked like a call and was refused, or a limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Why.
    pub kind: FaultKind,
    /// Where, in bytes from the start of the reply.
    pub offset: usize,
    /// The tool's name as far as it was read.
    pub name: Option<String>,
    /// What was found, what was expected, and what to do; fit to be told to the model.
    pub message: String,
}

/// Everything found in one reply.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// Complete calls in the order of the reply.
    pub tool_calls: Vec<ToolCall>,
    /// Calls that were cut off, healed as far as they go.
    pub incomplete_calls: Vec<ToolCall>,
    /// What the user should see.
    pub text: String,
    /// The reasoning blocks, trimmed and joined by newlines.
    pub reasoning: Option<String>,
    /// Set when the reply is workflow JSON.
    pub workflow: Option<Workflow>,
    /// The reply without reasoning and without the fences around its payload.
    pub cleaned: String,
    /// The label of the format that was found, such as `hermes`.
    pub format: Option<String>,
    /// What was healed, in order of offset.
    pub repairs: Vec<Repair>,
    /// What was refused, in order of offset.
    pub faults: Vec<Fault>,
    /// What each byte of the reply turned out to be: adjoining spans from the first byte to the last.
    pub spans: Vec<(SpanKind, Span)>,
}

/// What a reply does while it streams.
#[derive(Clone, Debug)]
pub enum Event {
    /// More visible text.
    TextDelta(String),
    /// More reasoning.
    ReasoningDelta(String),
    /// A call has begun: its place among the calls, its id and its name.
    ToolCallStarted {
        /// Counts from 0 over the calls of the reply.
        index: usize,
        /// As in [`ToolCall::id`].
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of a call's arguments: the deltas of one call join to its `arguments`.
    ToolCallArguments {
        /// Which call.
        index: usize,
        /// The next bytes of the arguments.
        delta: String,
    },
    /// A call is complete.
    ToolCallEnded {
        /// Which call.
        index: usize,
        /// The call.
        call: ToolCall,
    },
    /// The last bytes of text that were streamed are taken back.
    TextRetracted {
        /// How many characters (Unicode scalar values), from the end.
        length: usize,
    },
    /// Something was refused.
    ParseFault(Fault),
    /// The reply is over; ask the stream for it.
    ReplyFinished,
}
