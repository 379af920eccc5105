//! How the readers of native messages look at a message, whatever it is made of.
//!
//! A [`View`] is one value of a message: a Python object in the bindings, a node of JSON text
//! here. Looking never fails: what is missing, null or of another type is `None`, so that odd
//! messages are read as far as they make sense.

use std::borrow::Cow;

/// The type of a value, as JSON knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Null.
    Null,
    /// True or false.
    Bool,
    /// A number.
    Number,
    /// A string.
    Text,
    /// A list.
    List,
    /// A mapping, or an object with attributes.
    Object,
    /// Nothing that JSON knows.
    Other,
}

impl Kind {
    /// The word for messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::List => "a list",
            Self::Object => "an object",
            Self::Other => "an unknown type",
        }
    }
}

/// Why a value could not be written as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwritable {
    /// Nested deeper than was allowed.
    TooDeep,
    /// Longer than was allowed.
    TooLong,
    /// It holds something that JSON does not know: what, and where.
    Foreign(String),
}

/// A value as compact JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The JSON.
    pub json: String,
    /// Whether something was replaced that JSON cannot say: a number that is not finite by null,
    /// a lone surrogate by U+FFFD.
    pub repaired: bool,
}

/// How much JSON may be written for one value.
#[derive(Clone, Copy, Debug)]
pub struct WriteLimits {
    /// Levels of nesting.
    pub depth: usize,
    /// Bytes of JSON.
    pub bytes: usize,
}

/// One value of a native message.
pub trait View: Clone {
    /// Its type.
    fn kind(&self) -> Kind;

    /// The member or attribute of that name; `None` when there is none or when it is null.
    fn get(&self, key: Key) -> Option<Self>;

    /// The string, when it is one.
    fn text(&self) -> Option<Cow<'_, str>>;

    /// The integer, when it is one of 64 bits.
    fn integer(&self) -> Option<i64>;

    /// Whether it is `true`.
    fn is_true(&self) -> bool;

    /// The items, when it is a list; else none.
    fn items(&self) -> Vec<Self>;

    /// The value as compact JSON.
    ///
    /// # Errors
    /// When it is too deep, too long, or holds what JSON does not know.
    fn write(&self, limits: WriteLimits) -> Result<Written, Unwritable>;

    /// The first of these members that is there.
    fn first(&self, keys: &[Key]) -> Option<Self> {
        keys.iter().find_map(|&key| self.get(key))
    }

    /// The member as a list; `None` when it is none.
    fn list(&self, key: Key) -> Option<Vec<Self>> {
        self.get(key)
            .filter(|value| value.kind() == Kind::List)
            .map(|value| value.items())
    }

    /// The member as an owned string.
    fn string(&self, key: Key) -> Option<String> {
        self.get(key)?.text().map(Cow::into_owned)
    }

    /// The member as an integer.
    fn number(&self, key: Key) -> Option<i64> {
        self.get(key)?.integer()
    }
}

macro_rules! keys {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// A name that readers ask for: a closed list, so that a view can prepare them all.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each is the name it stands for")]
        pub enum Key {
            $($variant),+
        }

        impl Key {
            /// Every key, in the order of the discriminants.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in messages.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
    };
}

keys! {
    Action = "action",
    Args = "args",
    Arguments = "arguments",
    BoolValue = "boolValue",
    BoolValueSnake = "bool_value",
    CallId = "call_id",
    Candidates = "candidates",
    Choices = "choices",
    Chunk = "chunk",
    Content = "content",
    ContentBlock = "content_block",
    ContentIndex = "content_index",
    Custom = "custom",
    Delta = "delta",
    DoneReason = "done_reason",
    Error = "error",
    FinishMessage = "finishMessage",
    FinishMessageSnake = "finish_message",
    FinishReason = "finish_reason",
    FinishReasonCamel = "finishReason",
    Function = "function",
    FunctionCall = "function_call",
    FunctionCallCamel = "functionCall",
    Id = "id",
    Index = "index",
    Input = "input",
    Item = "item",
    ItemId = "item_id",
    JsonPath = "jsonPath",
    JsonPathSnake = "json_path",
    Message = "message",
    Name = "name",
    NullValue = "nullValue",
    NullValueSnake = "null_value",
    NumberValue = "numberValue",
    NumberValueSnake = "number_value",
    Object = "object",
    Operation = "operation",
    Output = "output",
    OutputIndex = "output_index",
    Parameters = "parameters",
    Params = "params",
    Part = "part",
    PartialArgs = "partialArgs",
    PartialArgsSnake = "partial_args",
    PartialJson = "partial_json",
    Parts = "parts",
    PromptFeedback = "promptFeedback",
    PromptFeedbackSnake = "prompt_feedback",
    Reasoning = "reasoning",
    ReasoningContent = "reasoning_content",
    ReasoningDetails = "reasoning_details",
    Refusal = "refusal",
    Response = "response",
    Role = "role",
    Snapshot = "snapshot",
    Status = "status",
    StopReason = "stop_reason",
    StringValue = "stringValue",
    StringValueSnake = "string_value",
    Summary = "summary",
    SummaryIndex = "summary_index",
    Text = "text",
    Thinking = "thinking",
    Thought = "thought",
    ToolCalls = "tool_calls",
    Type = "type",
    Usage = "usage",
    UsageMetadata = "usageMetadata",
    UsageMetadataSnake = "usage_metadata",
    WillContinue = "willContinue",
    WillContinueSnake = "will_continue",
}
