//! A native message that is itself text: what a whole reply of JSON says, before any healing of
//! arguments.

use super::calls::{Refusal, Source, Table};
use super::dialect::{Reader, Shape};
use super::joints::{ReasoningJoint, TextJoint};
use super::json_view::Tape;
use super::piece::{Piece, Sink};
use super::view::WriteLimits;

/// A native message, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The label of the dialect, such as `openai_chat_json`.
    pub format: &'static str,
    /// The text of the message; it may itself hold calls as text.
    pub text: String,
    /// The reasoning blocks, trimmed and joined by newlines.
    pub reasoning: Option<String>,
    /// The calls in order.
    pub calls: Vec<Call>,
    /// What made no sense, as sentences.
    pub faults: Vec<String>,
    /// Whether the message says that a limit cut it off.
    pub cut_off: bool,
}

/// A call of a native message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The provider's id.
    pub id: Option<String>,
    /// The tool's name; a call without one is a fault.
    pub name: Option<String>,
    /// The arguments as they came.
    pub arguments: Arguments,
}

/// The arguments of a call as they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// JSON text as the model wrote it: to be healed and typed; blank means none.
    Text(String),
    /// An object that came as data, as compact JSON.
    Json(String),
    /// A plain string, for the tool's only string parameter.
    Input(String),
    /// Nothing that could be arguments: what was found, as a sentence.
    Refused(String),
}

/// Reads JSON text as a native message: `None` when it is none beyond doubt, so that any other
/// JSON stays what it is. Linear; does not recurse.
///
/// ```
/// use turnwarden_extract::native;
///
/// let message = native::read_json(
///     r#"{"content":[{"type":"tool_use","id":"t1","name":"ping","input":{}}]}"#,
/// );
/// assert_eq!(message.map(|message| message.calls.len()), Some(1));
/// assert_eq!(native::read_json(r#"{"content":"plain"}"#), None);
/// ```
#[must_use]
pub fn read_json(json: &str) -> Option<Message> {
    let tape = Tape::read(json)?;
    let root = tape.root();
    let shape = Shape::of(&root)?;
    if !shape.is_certain(&root) {
        return None;
    }
    let format = shape.dialect()?.label();
    let mut collector = Collector::new(json.len());
    Reader::default().message(&root, &mut collector).ok()?;
    let message = collector.into_message(format);
    let says_something =
        !message.text.is_empty() || !message.calls.is_empty() || message.reasoning.is_some();
    (says_something || message.faults.is_empty()).then_some(message)
}

/// Whether an object that has this key at its top level may be a native message. Any other first
/// key rules it out.
#[must_use]
pub fn may_begin(key: &str) -> bool {
    matches!(
        key,
        "id" | "_request_id"
            | "arguments"
            | "call_id"
            | "candidates"
            | "choices"
            | "container"
            | "content"
            | "created"
            | "created_at"
            | "finishReason"
            | "finish_reason"
            | "function"
            | "functionCall"
            | "function_call"
            | "index"
            | "input"
            | "message"
            | "model"
            | "modelVersion"
            | "name"
            | "object"
            | "output"
            | "parts"
            | "reasoning"
            | "reasoning_content"
            | "refusal"
            | "responseId"
            | "role"
            | "service_tier"
            | "status"
            | "stop_reason"
            | "stop_sequence"
            | "summary"
            | "system_fingerprint"
            | "tool_calls"
            | "type"
            | "usage"
            | "usageMetadata"
    )
}

/// Collects the pieces of a message.
pub(super) struct Collector {
    text: String,
    text_joint: TextJoint,
    reasoning: String,
    reasoning_joint: ReasoningJoint,
    table: Table,
    faults: Vec<String>,
    cut_off: bool,
}

impl Collector {
    pub(super) fn new(length: usize) -> Self {
        let limits = WriteLimits {
            depth: usize::MAX,
            bytes: length,
        };
        Self {
            text: String::new(),
            text_joint: TextJoint::default(),
            reasoning: String::new(),
            reasoning_joint: ReasoningJoint::default(),
            table: Table::new(limits, usize::MAX),
            faults: Vec::new(),
            cut_off: false,
        }
    }

    pub(super) fn into_message(self, format: &'static str) -> Message {
        let calls = self.table.into_calls().into_iter().map(|call| Call {
            id: call.id,
            name: call.name,
            arguments: match call.source {
                Source::Json(text) => Arguments::Text(text),
                Source::Data(written) => Arguments::Json(written.json),
                Source::Input(text) => Arguments::Input(text),
                Source::Values(values) => Arguments::Json(values.to_json()),
                Source::Refused(refusal) => Arguments::Refused(refusal.sentence()),
            },
        });
        Message {
            format,
            text: self.text,
            reasoning: Some(self.reasoning).filter(|reasoning| !reasoning.is_empty()),
            calls: calls.collect(),
            faults: self.faults,
            cut_off: self.cut_off,
        }
    }
}

impl Sink for Collector {
    fn piece(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Text(text) => {
                self.text.push_str(self.text_joint.before(text));
                self.text.push_str(text);
            }
            Piece::TextBreak => self.text_joint.break_off(),
            Piece::Reasoning(text) => self.reasoning_joint.join(text, &mut self.reasoning),
            Piece::ReasoningBreak => self.reasoning_joint.break_off(),
            Piece::Call {
                slot,
                id,
                name,
                arguments,
            } => {
                self.table.piece(slot, id, name, arguments);
            }
            Piece::CallEnd(slot) => self.table.end(slot),
            Piece::CallDelta(delta) => {
                self.table.delta(delta);
            }
            Piece::Malformed(sentence) => self.faults.push(sentence),
            Piece::Stopped { cut_off } => self.cut_off |= cut_off,
        }
    }

    fn limits(&self) -> WriteLimits {
        self.table.limits()
    }
}

impl Refusal {
    /// What was found, and what was expected.
    pub(crate) fn sentence(&self) -> String {
        use super::view::Unwritable;
        match self {
            Self::NotAnObject(kind) => {
                format!("the arguments are {}; expected an object", kind.as_str())
            }
            Self::Unwritable(Unwritable::TooDeep) => "the arguments are nested too deep".to_owned(),
            Self::Unwritable(Unwritable::TooLong) | Self::TooLong => {
                "the arguments are too long".to_owned()
            }
            Self::Unwritable(Unwritable::Foreign(what)) => {
                format!("the arguments hold what JSON cannot say: {what}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Message {
        read_json(json).unwrap_or_else(|| panic!("no message: {json}"))
    }

    fn names(message: &Message) -> Vec<&str> {
        message
            .calls
            .iter()
            .map(|call| call.name.as_deref().unwrap_or("?"))
            .collect()
    }

    #[test]
    fn the_four_dialects_are_told_by_their_shapes() {
        let rows = [
            (
                r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
                "openai_chat_json",
            ),
            (
                r#"{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
                "openai_chat_json",
            ),
            (
                r#"[{"id":"c1","type":"function","function":{"name":"f","arguments":""}}]"#,
                "openai_chat_json",
            ),
            (
                r#"{"function_call":{"name":"f","arguments":"{}"}}"#,
                "openai_chat_json",
            ),
            (
                r#"{"output":[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}]}"#,
                "openai_responses",
            ),
            (
                r#"{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}"#,
                "openai_responses",
            ),
            (
                r#"{"content":[{"type":"text","text":"Ok."},{"type":"tool_use","id":"t","name":"f","input":{}}]}"#,
                "anthropic_blocks",
            ),
            (
                r#"[{"type":"tool_use","id":"t","name":"f","input":{}}]"#,
                "anthropic_blocks",
            ),
            (
                r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}"#,
                "gemini_parts",
            ),
            (
                r#"{"parts":[{"function_call":{"name":"f","args":{}}}]}"#,
                "gemini_parts",
            ),
            (r#"{"functionCall":{"name":"f","args":{}}}"#, "gemini_parts"),
        ];
        for (json, format) in rows {
            let message = read(json);
            assert_eq!(message.format, format, "{json}");
            assert_eq!(names(&message), ["f"], "{json}");
        }
    }

    #[test]
    fn other_json_is_no_message() {
        for json in [
            "",
            "{",
            "null",
            "3",
            "[]",
            "{}",
            r#""text""#,
            r#"{"content":"x"}"#,
            r#"{"content":"x","next":[]}"#,
            r#"{"name":"f","arguments":{}}"#,
            r#"[{"name":"f","arguments":{}}]"#,
            r#"{"type":"function","name":"f"}"#,
            r#"{"type":"text","text":"x"}"#,
            r#"{"text":"x"}"#,
            r#"{"error":"x"}"#,
            r#"{"message":"x"}"#,
            r#"{"message":{"text":"x"}}"#,
            r#"{"output":[1]}"#,
            r#"{"output":[{"file":"x"}]}"#,
            r#"{"choices":["a","b"]}"#,
            r#"{"parts":[{"text":"x"}]}"#,
            r#"{"type":"message","content":"x"}"#,
            r#"{"usage":{}}"#,
            r#"{"role":"user","content":"x"}"#,
            r#"{"role":"user","content":"x","tool_calls":[]}"#,
        ] {
            assert_eq!(read_json(json), None, "{json}");
        }
    }

    #[test]
    fn text_and_reasoning_are_gathered_and_what_the_provider_ran_is_no_call() {
        let message = read(
            r#"{"content":[{"type":"thinking","thinking":" plan ","signature":"s"},
                {"type":"redacted_thinking","data":"x"},
                {"type":"thinking","thinking":"more"},
                {"type":"text","text":"I look."},
                {"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"x"}},
                {"type":"web_search_tool_result","content":[]},
                {"type":"text","text":"Found"},{"type":"text","text":" it."},
                {"type":"tool_use","id":"t1","name":"f","input":{"q":[1]}}],
                "stop_reason":"max_tokens"}"#,
        );
        assert_eq!(message.text, "I look.\n\nFound it.");
        assert_eq!(message.reasoning.as_deref(), Some("plan\nmore"));
        assert_eq!(
            message.calls,
            [Call {
                id: Some("t1".to_owned()),
                name: Some("f".to_owned()),
                arguments: Arguments::Json(r#"{"q":[1]}"#.to_owned()),
            }]
        );
        assert!(message.cut_off);
    }

    #[test]
    fn odd_members_become_faults_and_the_rest_is_kept() {
        let message = read(
            r#"{"role":"assistant","content":5,"tool_calls":[null,7,{"id":3,"function":{"name":"f","arguments":[1]}},
                {"function":{"name":"g","arguments":{"a":1}}},{"function":{"name":9,"arguments":"x"}}]}"#,
        );
        assert_eq!(names(&message), ["f", "g", "?"]);
        assert_eq!(message.calls[0].id.as_deref(), Some("3"));
        assert!(matches!(message.calls[0].arguments, Arguments::Refused(_)));
        assert_eq!(message.faults.len(), 2);
    }

    #[test]
    fn depth_does_not_recurse() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(read_json(&deep), None);
        let json = format!(r#"[{{"type":"tool_use","name":"f","input":{{"a":{deep}}}}}]"#);
        assert_eq!(read(&json).calls.len(), 1);
    }
}
