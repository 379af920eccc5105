//! From what a grammar read to a call, or to a fault: rules 2 and 8 in one place.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::formats::JsonCalls;
use crate::json::{Error, ErrorKind, Mode, Reader, ReaderOptions, Status};
use crate::view::{Kind, Value};
use crate::{Fault, FaultKind, Limits, Span, ToolCall, Tools, ids};

/// A call as a grammar read it.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) name: Option<String>,
    pub(crate) arguments: Arguments,
    pub(crate) id: Option<String>,
    /// Whether the call was closed, itself or from outside.
    pub(crate) complete: bool,
    pub(crate) repaired: bool,
    /// Where text stood in the call that is no part of it.
    pub(crate) junk: Option<usize>,
    pub(crate) span: Span,
}

impl Draft {
    /// Whether anything in it says that it is a call: a name, or arguments.
    pub(crate) fn says_call(&self) -> bool {
        self.name.is_some() || !matches!(self.arguments, Arguments::Missing)
    }
}

/// The arguments of a call as a grammar read them.
#[derive(Clone, Debug)]
pub(crate) enum Arguments {
    /// None were given.
    Missing,
    /// Compact JSON of an object.
    Json(String),
    /// A value for each key, most of them as text.
    Pairs(Vec<(String, PairValue)>),
    /// Values without keys, in order, and such with a key.
    Positional(Vec<String>, Vec<(String, PairValue)>),
    /// One text that is all the input.
    Text(String),
    /// They were there but can't be used.
    Refused(FaultKind),
}

/// The value of one argument in a format that writes them one by one.
#[derive(Clone, Debug)]
pub(crate) enum PairValue {
    /// Text whose type is not said.
    Text(String),
    /// Text that is a string, whatever it looks like.
    String(String),
    /// Compact JSON.
    Json(String),
}

/// What became of a draft.
pub(crate) enum Settled {
    /// A call, and the argument that does not fit its declared type, if any.
    Call(ToolCall, Option<String>),
    Incomplete(ToolCall),
    Fault(Fault),
}

/// The parts of an object that may be a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts<'a> {
    name: Option<(usize, Value<'a>)>,
    arguments: Option<(usize, &'a str, Value<'a>)>,
    id: Option<(usize, Value<'a>)>,
    /// The object's only key, where that is the name.
    key_as_name: Option<&'a str>,
    has_mcp: bool,
    is_definition: bool,
    plain_input: bool,
    /// The first keys that say nothing of a call.
    foreign: [Option<&'a str>; 4],
}

/// Keys beside a name that are no arguments.
const REMARKS: &[&str] = &[
    "type",
    "index",
    "status",
    "role",
    "content",
    "function",
    "description",
    "version",
    "thought",
    "thoughts",
    "thinking",
    "reasoning",
    "reason",
    "explanation",
    "comment",
];

/// Finds name, arguments and id among the members of an object.
pub(crate) fn parts<'a>(
    members: impl Iterator<Item = (&'a str, Value<'a>)>,
    keys: &JsonCalls,
) -> Parts<'a> {
    let mut parts = Parts {
        plain_input: keys.plain_input,
        ..Parts::default()
    };
    let mut inner = None;
    let mut only = None;
    for (index, (key, member)) in members.enumerate() {
        parts.take(key, member, keys);
        if key == "function" && member.kind() == Kind::Object {
            inner = Some(member);
        }
        only = (index == 0).then_some((key, member));
    }
    if keys.name_is_key
        && let (None, Some((key, member))) = (parts.name, only)
    {
        parts.key_as_name = Some(key);
        parts.arguments = Some((0, key, member));
    }
    if let (None, Some(inner)) = (parts.name, inner) {
        for (key, member) in inner.members() {
            parts.take(key, member, keys);
        }
    }
    parts
}

fn rank(keys: &[String], key: &str) -> Option<usize> {
    keys.iter().position(|known| known == key)
}

impl<'a> Parts<'a> {
    fn take(&mut self, key: &'a str, member: Value<'a>, keys: &JsonCalls) {
        self.has_mcp |= key == "mcp" && member.kind() == Kind::String;
        self.is_definition |= matches!(key, "input_schema" | "inputSchema");
        if let Some(rank) = rank(&keys.name, key) {
            if self.name.is_none_or(|(best, _)| rank <= best) {
                self.name = Some((rank, member));
            }
        } else if let Some(rank) = rank(&keys.arguments, key) {
            if self.arguments.is_none_or(|(best, ..)| rank <= best) {
                self.arguments = Some((rank, key, member));
            }
        } else if let Some(rank) = rank(&keys.id, key) {
            if self.id.is_none_or(|(best, _)| rank <= best) {
                self.id = Some((rank, member));
            }
        } else if let Some(free) = self.foreign.iter_mut().find(|place| place.is_none()) {
            *free = Some(key);
        }
    }

    /// Whether arguments stand beside the name instead of under a key of their own: with a declared
    /// tool, its parameters; else anything that is no remark.
    fn is_flat(&self, name: &str, tools: Option<&Tools>) -> bool {
        let mut foreign = self.foreign.iter().flatten().copied();
        let tools = tools.filter(|tools| tools.knows(name));
        self.arguments.is_none()
            && foreign.any(|key| match tools {
                Some(tools) => tools.parameter(name, key).is_some(),
                None => !REMARKS.contains(&key),
            })
    }

    /// Whether there is a name that is a string with something in it.
    pub(crate) fn has_name(&self) -> bool {
        let name = self.name.and_then(|(_, name)| name.text());
        name.is_some_and(|name| !name.trim().is_empty()) || self.key_as_name.is_some()
    }

    /// Whether an object outside call markup says that it is a call.
    pub(crate) fn says_call(&self, tools: Option<&Tools>) -> bool {
        if self.is_definition {
            return false;
        }
        if let Some((_, key, arguments)) = self.arguments {
            let described = self.foreign.contains(&Some("description"));
            if key == "parameters" && (described || is_schema(arguments)) {
                return false;
            }
            if self.name.is_some() {
                return true;
            }
        }
        let declared = || {
            let name = self.name.and_then(|(_, name)| name.text())?;
            tools.filter(|tools| tools.knows(&name))
        };
        self.has_mcp || declared().is_some()
    }
}

/// Whether a value is a JSON Schema of an object: what a tool definition has as `parameters`.
fn is_schema(value: Value<'_>) -> bool {
    let words = |key: &str| {
        matches!(
            key,
            "type" | "properties" | "required" | "additionalProperties" | "description" | "title"
        )
    };
    let typed = value
        .get("type")
        .and_then(Value::text)
        .is_some_and(|text| text == "object");
    let reference = value.get("$schema").or_else(|| value.get("$ref"));
    let choice = ["anyOf", "oneOf", "allOf"]
        .iter()
        .filter_map(|key| value.get(key))
        .any(|choice| choice.kind() == Kind::Array);
    reference.is_some()
        || choice
        || value
            .get("properties")
            .is_some_and(|inner| inner.kind() == Kind::Object)
            && value
                .members()
                .all(|(key, _)| words(key) || key.starts_with('$'))
        || typed && value.members().all(|(key, _)| words(key))
}

/// The id that a value is: a text that is not empty, or a number.
pub(crate) fn given_id(value: Value<'_>) -> Option<String> {
    let id = match value.kind() {
        Kind::String => value.text().map(Cow::into_owned),
        Kind::Number => Some(value.json().to_owned()),
        _ => None,
    };
    id.filter(|id| !id.is_empty())
}

/// Everything that turns drafts into calls.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) tools: Option<&'a Tools>,
    pub(crate) limits: &'a Limits,
    /// Whether the values of a call are passed on before it is complete.
    pub(crate) passes_values: bool,
}

impl Rules<'_> {
    /// The draft that an object of the reply is.
    pub(crate) fn draft(&self, parts: &Parts<'_>, span: Span) -> Draft {
        let name = match (parts.name, parts.key_as_name) {
            (Some((_, name)), _) => name.text().map(Cow::into_owned),
            (None, key) => key.map(unquote),
        };
        let mut draft = Draft {
            name,
            arguments: Arguments::Missing,
            id: None,
            complete: true,
            repaired: false,
            junk: None,
            span,
        };
        draft.id = parts.id.and_then(|(_, id)| given_id(id));
        let named = draft.name.as_deref().unwrap_or_default().trim();
        if !named.is_empty() && parts.is_flat(named, self.tools) {
            draft.arguments = Arguments::Refused(FaultKind::MissingArguments);
        }
        if let Some((_, _, arguments)) = parts.arguments {
            self.read_arguments(arguments, &mut draft);
            let refused = matches!(draft.arguments, Arguments::Refused(_));
            if let (true, true, Some(text)) = (refused, parts.plain_input, arguments.text()) {
                draft.arguments = Arguments::Text(text.into_owned());
            }
        }
        draft
    }

    /// The draft that a call of a native message is.
    pub(crate) fn native_draft(&self, call: crate::native::Call, span: Span) -> Draft {
        use crate::native::Arguments as Native;
        let mut draft = Draft {
            name: call.name,
            arguments: Arguments::Missing,
            id: call.id,
            complete: true,
            repaired: false,
            junk: None,
            span,
        };
        draft.arguments = match call.arguments {
            Native::Text(text) => self.decoded(&text, &mut draft),
            Native::Json(json) => Arguments::Json(json),
            Native::Input(text) => Arguments::Text(text),
            Native::Refused(_) => Arguments::Refused(FaultKind::ArgumentsNotAnObject),
        };
        draft
    }

    /// Reads what stands as arguments: an object, a string that holds one, or nothing.
    pub(crate) fn read_arguments(&self, arguments: Value<'_>, draft: &mut Draft) {
        draft.arguments = match arguments.kind() {
            Kind::Object => Arguments::Json(arguments.json().to_owned()),
            Kind::Null => Arguments::Missing,
            Kind::String => self.decoded(&arguments.text().unwrap_or_default(), draft),
            _ => Arguments::Refused(FaultKind::ArgumentsNotAnObject),
        };
    }

    /// Arguments that are a JSON string of an object.
    fn decoded(&self, text: &str, draft: &mut Draft) -> Arguments {
        let mut text = Cow::Borrowed(text.trim());
        for _ in 0..2 {
            if text.is_empty() || text == "null" {
                return Arguments::Missing;
            }
            let options = ReaderOptions {
                max_depth: self.limits.max_depth,
                mode: Mode::Value,
                ..ReaderOptions::default()
            };
            let mut reader = Reader::new(options, 0);
            let Status::Done { end, complete } = reader.read(&text, true) else {
                return Arguments::Refused(FaultKind::UnreadableArguments);
            };
            draft.repaired |= !reader.repairs().is_empty();
            let value = Value::new(reader.output());
            let rest = text.get(end..).unwrap_or_default();
            match value.kind() {
                Kind::Object if rest.trim().is_empty() => {
                    draft.complete &= complete;
                    return Arguments::Json(reader.output().to_owned());
                }
                Kind::String => {
                    let inner = value.text().unwrap_or_default().trim().to_owned();
                    text = Cow::Owned(inner);
                }
                _ => break,
            }
        }
        Arguments::Refused(FaultKind::ArgumentsNotAnObject)
    }

    /// The call that a draft makes, or why it makes none.
    pub(crate) fn settle(&self, draft: Draft) -> Settled {
        let Draft {
            name,
            arguments,
            id,
            complete,
            mut repaired,
            span,
            ..
        } = draft;
        let mut misfit = None;
        let name = name.map(trimmed).filter(|name| !name.is_empty());
        let Some(name) = name else {
            return Settled::Fault(fault(FaultKind::MissingName, span.start, None));
        };
        let name = self
            .tools
            .and_then(|tools| tools.spelling(&name))
            .unwrap_or(name);
        let arguments = match arguments {
            Arguments::Refused(kind) => return Settled::Fault(fault(kind, span.start, Some(name))),
            Arguments::Missing => "{}".to_owned(),
            Arguments::Json(json) => match self.tools {
                Some(tools) => {
                    let typed = tools.typed(&name, &json);
                    repaired |= typed.changed;
                    misfit = typed.misfit;
                    typed.json.into_owned()
                }
                None => json,
            },
            Arguments::Pairs(pairs) => self.typed_pairs(&name, &pairs, &mut misfit),
            Arguments::Positional(values, pairs) => {
                if let Some(pairs) = self.named_values(&name, values, pairs) {
                    self.typed_pairs(&name, &pairs, &mut misfit)
                } else {
                    let kind = FaultKind::UnreadableArguments;
                    return Settled::Fault(fault(kind, span.start, Some(name)));
                }
            }
            Arguments::Text(text) => self.only_input(&name, &text),
        };
        if arguments.len() > self.limits.max_argument_bytes {
            return Settled::Fault(fault(FaultKind::ArgumentsTooLong, span.start, Some(name)));
        }
        let id_generated = id.is_none();
        let id = id.unwrap_or_else(ids::call_id);
        let call = ToolCall {
            id,
            id_generated,
            name,
            arguments,
            repaired,
            span,
        };
        if complete {
            Settled::Call(call, misfit)
        } else {
            Settled::Incomplete(call)
        }
    }

    /// One argument, as an object of its own.
    pub(crate) fn pair(&self, name: &str, pair: &(String, PairValue)) -> String {
        self.typed_pairs(name, std::slice::from_ref(pair), &mut None)
    }

    fn typed_pairs(
        &self,
        name: &str,
        pairs: &[(String, PairValue)],
        misfit: &mut Option<String>,
    ) -> String {
        let mut json = String::from("{");
        let keys = pairs
            .iter()
            .enumerate()
            .map(|(index, (key, _))| (key.as_str(), index));
        let later: HashMap<&str, usize> = keys.collect();
        for (index, (key, value)) in pairs.iter().enumerate() {
            if later.get(key.as_str()) != Some(&index) {
                continue;
            }
            if json.len() > 1 {
                json.push(',');
            }
            push_string(&mut json, key);
            json.push(':');
            let schema = self.tools.and_then(|tools| tools.parameter(name, key));
            let fits = match value {
                PairValue::Json(value) => {
                    let typed = crate::tools::typed(schema, value);
                    json.push_str(&typed.json);
                    typed.misfit.is_none()
                }
                PairValue::String(text) => {
                    let mut quoted = String::new();
                    push_string(&mut quoted, text);
                    let typed = crate::tools::typed(schema, &quoted);
                    json.push_str(&typed.json);
                    typed.misfit.is_none()
                }
                PairValue::Text(text) => crate::tools::push_text(&mut json, schema, text),
            };
            if !fits {
                misfit.get_or_insert_with(|| key.clone());
            }
        }
        json.push('}');
        json
    }

    /// Gives values without keys the names of the tool's parameters, in order; a single one of an
    /// unknown tool is its input.
    fn named_values(
        &self,
        name: &str,
        values: Vec<String>,
        pairs: Vec<(String, PairValue)>,
    ) -> Option<Vec<(String, PairValue)>> {
        let declared: Vec<&str> = self
            .tools
            .map(|tools| tools.parameters(name).collect())
            .unwrap_or_default();
        let single = values.len() == 1 && pairs.is_empty();
        let keys = if declared.is_empty() && single {
            vec!["input"]
        } else {
            declared
        };
        if values.len() > keys.len() {
            return None;
        }
        let named = keys
            .iter()
            .zip(values)
            .map(|(key, json)| ((*key).to_owned(), PairValue::Json(json)));
        Some(named.chain(pairs).collect())
    }

    fn only_input(&self, name: &str, text: &str) -> String {
        let parameter = self.tools.and_then(|tools| tools.only_string(name));
        let mut json = String::from("{");
        push_string(&mut json, parameter.unwrap_or("input"));
        json.push(':');
        push_string(&mut json, text);
        json.push('}');
        json
    }
}

/// The text without white space around it; most have none and stay as they are.
fn trimmed(text: String) -> String {
    match text.trim() {
        inner if inner.len() == text.len() => text,
        inner => inner.to_owned(),
    }
}

/// The text of a key as it is written between its quotes.
pub(crate) fn unquote(key: &str) -> String {
    if key.contains('\\') {
        return crate::json::unescape(&format!("\"{key}\"")).into_owned();
    }
    key.to_owned()
}

/// Appends a JSON string.
pub(crate) fn push_string(json: &mut String, text: &str) {
    json.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..0x20 => "",
            _ => continue,
        };
        json.push_str(text.get(from..at).unwrap_or_default());
        if escape.is_empty() {
            json.push_str("\\u00");
            json.push(char::from(if byte < 0x10 { b'0' } else { b'1' }));
            json.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
        } else {
            json.push_str(escape);
        }
        from = at + 1;
    }
    json.push_str(text.get(from..).unwrap_or_default());
    json.push('"');
}

/// A fault with its message.
pub(crate) fn fault(kind: FaultKind, offset: usize, name: Option<String>) -> Fault {
    let of = name
        .as_deref()
        .map_or_else(String::new, |name| format!(" of {name:?}"));
    let message = match kind {
        FaultKind::UnreadableArguments => {
            format!(
                "the payload{of} at byte {offset} is no JSON and could not be healed; send it as one JSON object"
            )
        }
        FaultKind::ArgumentsNotAnObject => {
            format!(
                "the arguments{of} at byte {offset} are no JSON object; send an object with one member for each parameter"
            )
        }
        FaultKind::MissingArguments => {
            format!(
                "the arguments{of} at byte {offset} have no value, or no key of their own; send them as an object under \"arguments\""
            )
        }
        FaultKind::MissingName => {
            format!(
                "the call at byte {offset} has no tool name; send the name as a string that is not empty"
            )
        }
        FaultKind::Junk => {
            format!(
                "the text at byte {offset} stands inside call markup but belongs to no call; write only calls there"
            )
        }
        FaultKind::UnknownMember => {
            format!("the member{of} at byte {offset} has no meaning here; leave it out")
        }
        FaultKind::NumberOutOfRange => {
            format!(
                "a number{of} at byte {offset} is beyond the range of a double; send it as a string"
            )
        }
        FaultKind::TooDeep => {
            format!(
                "the payload{of} at byte {offset} is nested too deeply; flatten it or raise max_depth"
            )
        }
        FaultKind::TooManyCalls => {
            format!(
                "the call{of} at byte {offset} is one more than max_calls allows; send fewer calls in one reply"
            )
        }
        FaultKind::ArgumentsTooLong => {
            format!(
                "the arguments{of} at byte {offset} are longer than max_argument_bytes; send less, or in parts"
            )
        }
        FaultKind::ReplyTooLong => {
            format!(
                "the reply is longer than max_reply_bytes; what follows byte {offset} was not read"
            )
        }
        FaultKind::TextLoop => {
            format!(
                "the reply repeats itself from byte {offset} on and was read no further; say something new"
            )
        }
        FaultKind::TypeMismatch => {
            format!(
                "an argument{of} at byte {offset} does not fit its declared type and stays as it is; send the declared type"
            )
        }
        FaultKind::MalformedMessage => {
            format!("the message{of} makes no sense at byte {offset}")
        }
        FaultKind::CallInText => {
            format!(
                "the call{of} at byte {offset} stands in the text of a message that has native calls, and was left out; send it as they are sent"
            )
        }
        FaultKind::Draft => {
            format!(
                "the call{of} at byte {offset} was drafted in reasoning and is not made; call the tool outside reasoning"
            )
        }
    };
    Fault {
        kind,
        offset,
        name,
        message,
    }
}

/// The fault that an error of the JSON reader means.
pub(crate) fn fault_of(error: Error) -> FaultKind {
    match error.kind {
        ErrorKind::NumberOutOfRange => FaultKind::NumberOutOfRange,
        ErrorKind::TooDeep => FaultKind::TooDeep,
        _ => FaultKind::UnreadableArguments,
    }
}
