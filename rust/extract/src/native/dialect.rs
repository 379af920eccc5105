//! Which dialect a message is in: told by its shape, so that nobody has to say so.

use super::anthropic::{self, AnthropicReader};
use super::blocks::BlockKind;
use super::gemini::GeminiReader;
use super::openai_chat::ChatReader;
use super::openai_responses::{self, CallKind, ResponsesReader};
use super::piece::{Form, Piece, Sink};
use super::view::{Key, Kind, View};

/// The dialects of native messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI chat completions.
    OpenAiChat,
    /// The OpenAI Responses API.
    OpenAiResponses,
    /// Anthropic messages.
    Anthropic,
    /// Gemini.
    Gemini,
}

impl Dialect {
    /// The label, as in `reply.format`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai_chat_json",
            Self::OpenAiResponses => "openai_responses",
            Self::Anthropic => "anthropic_blocks",
            Self::Gemini => "gemini_parts",
        }
    }
}

/// What a value is: a whole response, or which piece of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `{"choices": [...]}`
    ChatResponse,
    /// `{"message": {...}}` or `{"delta": {...}}`
    ChatChoice,
    /// `{"role": ..., "content": ..., "tool_calls": ...}`
    ChatMessage,
    /// `[{"function": {...}}]`, or one of them
    ChatCalls,
    /// `{"output": [...]}`
    ResponsesResponse,
    /// `[{"type": "function_call", ...}]`, or one of them
    ResponsesItems,
    /// `{"content": [{"type": ...}]}`
    AnthropicMessage,
    /// `[{"type": "tool_use", ...}]`, or one of them
    AnthropicBlocks,
    /// `{"candidates": [...]}`
    GeminiResponse,
    /// `{"content": {"parts": [...]}}`
    GeminiCandidate,
    /// `{"parts": [...]}`
    GeminiContent,
    /// `[{"functionCall": ...}]`, or one of them
    GeminiParts,
    /// Something of a stream that says nothing about the message, such as a usage report.
    Silent,
    /// `{"error": ...}`
    Error,
}

impl Shape {
    /// The dialect that has this shape.
    pub(crate) const fn dialect(self) -> Option<Dialect> {
        match self {
            Self::ChatResponse | Self::ChatChoice | Self::ChatMessage | Self::ChatCalls => {
                Some(Dialect::OpenAiChat)
            }
            Self::ResponsesResponse | Self::ResponsesItems => Some(Dialect::OpenAiResponses),
            Self::AnthropicMessage | Self::AnthropicBlocks => Some(Dialect::Anthropic),
            Self::GeminiResponse
            | Self::GeminiCandidate
            | Self::GeminiContent
            | Self::GeminiParts => Some(Dialect::Gemini),
            Self::Silent | Self::Error => None,
        }
    }

    /// The shape of a value; `None` when it is no message that we know.
    pub(crate) fn of<V: View>(value: &V) -> Option<Self> {
        match value.kind() {
            Kind::Object => Self::of_object(value),
            Kind::List => Self::of_list(&value.items()),
            Kind::Null | Kind::Bool | Kind::Number | Kind::Text | Kind::Other => None,
        }
    }

    fn of_list<V: View>(items: &[V]) -> Option<Self> {
        if items.is_empty() {
            return Some(Self::AnthropicBlocks);
        }
        items
            .iter()
            .filter(|item| item.kind() == Kind::Object)
            .find_map(Self::of_item)
    }

    /// The shape of a list, told by one of its items.
    fn of_item<V: View>(item: &V) -> Option<Self> {
        if let Some(name) = item.string(Key::Type) {
            return Self::of_type(&name, item);
        }
        if is_object(item, Key::Function) {
            return Some(Self::ChatCalls);
        }
        if is_object(item, Key::FunctionCallCamel) || is_object(item, Key::FunctionCall) {
            return Some(Self::GeminiParts);
        }
        if is_text(item, Key::Text) {
            return Some(Self::GeminiParts);
        }
        let arguments = item.first(&[Key::Arguments, Key::Args]);
        (is_text(item, Key::Name) && arguments.is_some()).then_some(Self::ChatCalls)
    }

    /// The shape of a value that carries a `type`, when that decides.
    fn of_type<V: View>(name: &str, value: &V) -> Option<Self> {
        match name {
            "function" | "custom" => Some(Self::ChatCalls),
            "message" if is_response_content(value) => Some(Self::ResponsesItems),
            "message" => Some(Self::AnthropicMessage),
            "thinking" | "redacted_thinking" | "tool_use" | "server_tool_use" => {
                Some(Self::AnthropicBlocks)
            }
            "text" if is_text(value, Key::Text) => Some(Self::AnthropicBlocks),
            name if openai_responses::is_item(name) => Some(Self::ResponsesItems),
            _ => None,
        }
    }

    fn of_object<V: View>(value: &V) -> Option<Self> {
        if is_list(value, Key::Choices) {
            return Some(Self::ChatResponse);
        }
        if is_list(value, Key::Candidates) {
            return Some(Self::GeminiResponse);
        }
        if let Some(shape) = value
            .string(Key::Type)
            .and_then(|name| Self::of_type(&name, value))
        {
            return Some(shape);
        }
        if is_list(value, Key::Output) {
            return Some(Self::ResponsesResponse);
        }
        if is_object(value, Key::FunctionCallCamel) {
            return Some(Self::GeminiParts);
        }
        if let Some(call) = value.get(Key::FunctionCall) {
            let of_gemini = call.get(Key::Arguments).is_none() && value.get(Key::Role).is_none();
            return Some(if of_gemini && call.get(Key::Args).is_some() {
                Self::GeminiParts
            } else {
                Self::ChatMessage
            });
        }
        if value.get(Key::ToolCalls).is_some() {
            return Some(Self::ChatMessage);
        }
        if is_object(value, Key::Message) || is_object(value, Key::Delta) {
            return Some(Self::ChatChoice);
        }
        if is_object(value, Key::Function) {
            return Some(Self::ChatCalls);
        }
        if is_list(value, Key::Parts) {
            return Some(Self::GeminiContent);
        }
        Self::of_content(value).or_else(|| Self::of_rest(value))
    }

    fn of_content<V: View>(value: &V) -> Option<Self> {
        let content = value.get(Key::Content)?;
        let reasons = [Key::ReasoningContent, Key::Reasoning];
        match content.kind() {
            Kind::Object if is_list(&content, Key::Parts) => Some(Self::GeminiCandidate),
            Kind::List if value.first(&reasons).is_none() => Some(Self::AnthropicMessage),
            _ => Some(Self::ChatMessage),
        }
    }

    /// What little can still tell.
    fn of_rest<V: View>(value: &V) -> Option<Self> {
        let chat = [
            Key::Role,
            Key::ReasoningContent,
            Key::Reasoning,
            Key::Refusal,
            Key::ReasoningDetails,
            Key::Thinking,
        ];
        if value.first(&chat).is_some() {
            return Some(Self::ChatMessage);
        }
        if value.get(Key::Text).is_some() {
            return Some(Self::GeminiParts);
        }
        if value.get(Key::Error).is_some() {
            return Some(Self::Error);
        }
        if value
            .first(&[Key::FinishReason, Key::FinishReasonCamel])
            .is_some()
        {
            return Some(Self::ChatChoice);
        }
        if is_object(value, Key::Output) {
            // A response of an API that is not read here; its usage report must not hide that.
            return None;
        }
        let silent = [
            Key::Usage,
            Key::UsageMetadata,
            Key::UsageMetadataSnake,
            Key::PromptFeedback,
            Key::PromptFeedbackSnake,
            Key::Object,
        ];
        value.first(&silent).map(|_| Self::Silent)
    }

    /// Whether a value of this shape is a message beyond doubt: what JSON that a model wrote as
    /// its reply must show before it is taken for one.
    pub(crate) fn is_certain<V: View>(self, value: &V) -> bool {
        match self {
            Self::ChatResponse => objects(value, Key::Choices)
                .iter()
                .any(|choice| is_object(choice, Key::Message) || is_object(choice, Key::Delta)),
            Self::ChatChoice => value
                .get(Key::Message)
                .is_some_and(|message| Self::ChatMessage.is_certain(&message)),
            Self::ChatMessage => is_certain_chat_message(value),
            Self::ChatCalls => each_object(value).iter().any(is_certain_chat_call),
            Self::ResponsesResponse => objects(value, Key::Output)
                .iter()
                .any(is_certain_response_item),
            Self::ResponsesItems => each_object(value).iter().any(is_certain_response_item),
            Self::AnthropicMessage => objects(value, Key::Content)
                .iter()
                .any(|block| is_certain_block(block)),
            Self::AnthropicBlocks => match value.kind() {
                Kind::List => value.items().iter().any(|block| is_certain_block(block)),
                _ => value
                    .string(Key::Type)
                    .is_some_and(|name| name == "tool_use"),
            },
            Self::GeminiResponse => objects(value, Key::Candidates)
                .iter()
                .any(|candidate| is_object(candidate, Key::Content)),
            Self::GeminiCandidate => value
                .get(Key::Content)
                .is_some_and(|content| Self::GeminiContent.is_certain(&content)),
            Self::GeminiContent => objects(value, Key::Parts).iter().any(|part| {
                is_certain_part(part)
                    || (is_text(part, Key::Text) && value.get(Key::Role).is_some())
            }),
            Self::GeminiParts => each_object(value).iter().any(|part| is_certain_part(part)),
            Self::Silent | Self::Error => false,
        }
    }
}

fn is_certain_chat_message<V: View>(value: &V) -> bool {
    if value
        .get(Key::ToolCalls)
        .is_some_and(|calls| calls.kind() == Kind::List)
    {
        let calls = objects(value, Key::ToolCalls);
        return calls.is_empty()
            || calls
                .iter()
                .any(|call| is_text(call, Key::Name) || is_certain_chat_call(call));
    }
    if let Some(call) = value.get(Key::FunctionCall) {
        return is_text(&call, Key::Name);
    }
    let role = value.string(Key::Role);
    role.as_deref() == Some("assistant")
        && (is_text(value, Key::Content) || is_text(value, Key::ReasoningContent))
}

fn is_certain_chat_call<V: View>(call: &V) -> bool {
    let function = call.get(Key::Function).or_else(|| call.get(Key::Custom));
    match function {
        // A tool's definition has neither an id nor arguments.
        Some(function) => {
            let arguments = function.first(&[Key::Arguments, Key::Input]);
            is_text(&function, Key::Name) && (arguments.is_some() || call.get(Key::Id).is_some())
        }
        // Without the wrapper only an id tells it from the JSON of other formats.
        None => is_text(call, Key::Name) && call.get(Key::Id).is_some(),
    }
}

fn is_certain_response_item<V: View>(item: &V) -> bool {
    let Some(name) = item.string(Key::Type) else {
        return false;
    };
    match name.as_str() {
        "message" => is_response_content(item),
        "reasoning" => is_list(item, Key::Summary) || is_list(item, Key::Content),
        "custom_tool_call" => is_text(item, Key::Name) && item.get(Key::Input).is_some(),
        "function_call" => is_text(item, Key::Name) && item.get(Key::Arguments).is_some(),
        name => {
            CallKind::of(name).is_some() && item.first(&[Key::Action, Key::Operation]).is_some()
        }
    }
}

fn is_certain_block<V: View>(block: &V) -> bool {
    block
        .string(Key::Type)
        .is_some_and(|name| match name.as_str() {
            "redacted_thinking" => true,
            name => match BlockKind::of_type(name) {
                BlockKind::Text => is_text(block, Key::Text),
                BlockKind::Reasoning => is_text(block, Key::Thinking),
                BlockKind::Call => is_text(block, Key::Name),
                BlockKind::Other => false,
            },
        })
}

fn is_certain_part<V: View>(part: &V) -> bool {
    part.first(&[Key::FunctionCallCamel, Key::FunctionCall])
        .is_some_and(|call| is_text(&call, Key::Name))
}

fn is_response_content<V: View>(item: &V) -> bool {
    objects(item, Key::Content).iter().any(|part| {
        part.string(Key::Type)
            .is_some_and(|name| name == "output_text" || name == "refusal")
    })
}

fn is_text<V: View>(value: &V, key: Key) -> bool {
    value
        .get(key)
        .is_some_and(|member| member.kind() == Kind::Text)
}

fn is_list<V: View>(value: &V, key: Key) -> bool {
    value
        .get(key)
        .is_some_and(|member| member.kind() == Kind::List)
}

fn is_object<V: View>(value: &V, key: Key) -> bool {
    value
        .get(key)
        .is_some_and(|member| member.kind() == Kind::Object)
}

/// The objects in a member that is a list.
fn objects<V: View>(value: &V, key: Key) -> Vec<V> {
    value
        .get(key)
        .map(|member| each_object(&member))
        .unwrap_or_default()
}

/// The objects in a list, or the one object.
fn each_object<V: View>(value: &V) -> Vec<V> {
    match value.kind() {
        Kind::Object => vec![value.clone()],
        _ => value
            .items()
            .into_iter()
            .filter(|item| item.kind() == Kind::Object)
            .collect(),
    }
}

/// The value is no native message, nor a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAMessage;

/// Reads messages and the parts of streams, and remembers what lies between those.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reader {
    chat: ChatReader,
    responses: ResponsesReader,
    anthropic: AnthropicReader,
    gemini: GeminiReader,
    dialect: Option<Dialect>,
}

impl Reader {
    /// The dialect of what was read.
    pub(crate) const fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// Reads a whole message.
    pub(crate) fn message<V: View>(
        &mut self,
        value: &V,
        sink: &mut impl Sink,
    ) -> Result<(), NotAMessage> {
        let shape = Shape::of(value).ok_or(NotAMessage)?;
        self.read(shape, value, Form::Whole, sink);
        Ok(())
    }

    /// Reads the next part of a stream.
    pub(crate) fn delta<V: View>(
        &mut self,
        value: &V,
        sink: &mut impl Sink,
    ) -> Result<(), NotAMessage> {
        if value.kind() != Kind::Object {
            return Err(NotAMessage);
        }
        // What the stream was so far is asked first: each question to an SDK object that lacks
        // the attribute costs as much as the rest of the delta.
        match self.dialect {
            Some(Dialect::OpenAiChat) if value.get(Key::Choices).is_some() => {
                self.chat.response(value, Form::Delta, sink);
                return Ok(());
            }
            Some(Dialect::Gemini) if value.get(Key::Candidates).is_some() => {
                self.gemini.response(value, Form::Delta, sink);
                return Ok(());
            }
            _ => {}
        }
        if let Some(name) = value.string(Key::Type)
            && self.event(&name, value, sink)
        {
            return Ok(());
        }
        let shape = Shape::of(value).ok_or(NotAMessage)?;
        self.read(shape, value, Form::Delta, sink);
        Ok(())
    }

    /// Reads an event that its type names; false when it names none.
    fn event<V: View>(&mut self, name: &str, value: &V, sink: &mut impl Sink) -> bool {
        if name.starts_with("response.") {
            self.dialect.get_or_insert(Dialect::OpenAiResponses);
            self.responses.event(name, value, sink);
            return true;
        }
        if anthropic::is_event(name) {
            self.dialect.get_or_insert(Dialect::Anthropic);
            self.anthropic.event(name, value, sink);
            return true;
        }
        match name {
            "error" => {
                error(value, sink);
                true
            }
            // The OpenAI SDK's stream helper wraps chunks and adds events of its own, all with a
            // dot in their names, that repeat what the chunks say; so does Anthropic's.
            "chunk" => {
                if let Some(chunk) = value.get(Key::Chunk) {
                    self.dialect.get_or_insert(Dialect::OpenAiChat);
                    self.chat.response(&chunk, Form::Delta, sink);
                }
                true
            }
            "text" | "thinking" | "input_json" | "signature" | "citation" => {
                value.get(Key::Snapshot).is_some()
            }
            name => name.contains('.'),
        }
    }

    fn read<V: View>(&mut self, shape: Shape, value: &V, form: Form, sink: &mut impl Sink) {
        if self.dialect.is_none() {
            self.dialect = shape.dialect();
        }
        match shape {
            Shape::ChatResponse => self.chat.response(value, form, sink),
            Shape::ChatChoice => self.chat.choice(value, form, sink),
            Shape::ChatMessage => self.chat.message(value, form, sink),
            Shape::ChatCalls => self.chat.calls(value, form, sink),
            Shape::ResponsesResponse => self.responses.response(value, sink),
            Shape::ResponsesItems => self.responses.items(value, sink),
            Shape::AnthropicMessage => self.anthropic.message(value, sink),
            Shape::AnthropicBlocks => self.anthropic.content(value, sink),
            Shape::GeminiResponse => self.gemini.response(value, form, sink),
            Shape::GeminiCandidate => self.gemini.candidate(value, sink),
            Shape::GeminiContent => self.gemini.content(value, sink),
            Shape::GeminiParts => self.gemini.parts(value, sink),
            Shape::Silent => {}
            Shape::Error => error(value, sink),
        }
    }
}

fn error<V: View>(value: &V, sink: &mut impl Sink) {
    let inner = value.get(Key::Error).unwrap_or_else(|| value.clone());
    let message = inner
        .string(Key::Message)
        .or_else(|| inner.text().map(std::borrow::Cow::into_owned));
    sink.piece(Piece::Malformed(format!(
        "the provider reports an error: {}",
        message.as_deref().unwrap_or("no message is given")
    )));
}
