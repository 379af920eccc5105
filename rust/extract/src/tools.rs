//! Declared tools: their names, and the types that their arguments are brought to.
//!
//! A schema is compiled to the set of types that a value may have, with the schemas of members and
//! items below it. A value changes its type only when nothing is lost by it; what does not fit
//! stays as it is. Cost: linear in the arguments for each level of nesting in the schema.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use crate::calls::push_string;
use crate::json::{Mode, Reader, ReaderOptions, Status};
use crate::view::{Kind, Value};

/// How deep schemas are compiled: deeper ones, and recursive ones, allow any value below.
const MAX_DEPTH: usize = 12;

/// The tools that a model was given.
///
/// # Examples
///
/// ```
/// use turnwarden_extract::Tools;
///
/// let tools = Tools::from_json(
///     r#"[{"name": "search", "inputSchema": {"type": "object",
///          "properties": {"q": {"type": "string"}, "limit": {"type": "integer"}}}}]"#,
/// )?;
/// assert_eq!(tools.names().collect::<Vec<_>>(), ["search"]);
/// # Ok::<(), turnwarden_extract::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tools {
    all: Vec<Tool>,
    by_name: HashMap<String, usize>,
    by_lower_name: HashMap<String, usize>,
}

#[derive(Clone, Debug)]
struct Tool {
    name: String,
    parameters: Vec<(String, Schema)>,
}

/// Why a parser can't be made of what it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The tool definitions are no JSON.
    ToolsUnreadable {
        /// Where, in bytes from the start of the definitions.
        offset: usize,
    },
    /// A tool definition has no name.
    ToolWithoutName {
        /// Its place in the list, from 0.
        index: usize,
    },
    /// No format has this label.
    UnknownFormat {
        /// The label.
        label: String,
    },
    /// No family of models is known by this name.
    UnknownModel {
        /// The name.
        name: String,
    },
    /// A format's declaration can't be read.
    BadFormat {
        /// The format's label.
        label: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToolsUnreadable { offset } => write!(
                formatter,
                "the tool definitions are no JSON at byte {offset}; expected an array of OpenAI, \
                 Anthropic or MCP definitions"
            ),
            Self::ToolWithoutName { index } => write!(
                formatter,
                "tool definition {index} has no name; expected a member \"name\", or \"function\" \
                 with one"
            ),
            Self::UnknownFormat { label } => {
                write!(
                    formatter,
                    "no format is called {label:?}; formats() lists all labels"
                )
            }
            Self::UnknownModel { name } => write!(
                formatter,
                "no format is known for the model {name:?}; formats() lists the models, and \
                 formats=[...] pins formats by label"
            ),
            Self::BadFormat { label, problem } => write!(formatter, "format {label:?}: {problem}"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Tools {
    /// Reads tool definitions: a JSON array of OpenAI (chat or responses), Anthropic, MCP or
    /// Gemini definitions, mixed as you like; an object with such a list as `tools` will do too.
    ///
    /// Of two tools with one name the later one counts.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ToolsUnreadable`] and [`ConfigError::ToolWithoutName`].
    pub fn from_json(definitions: &str) -> Result<Self, ConfigError> {
        let compact =
            strict(definitions).map_err(|offset| ConfigError::ToolsUnreadable { offset })?;
        let root = Value::new(&compact);
        let list = match root.kind() {
            Kind::Array => root,
            Kind::Object => root.get("tools").unwrap_or(root),
            _ => return Err(ConfigError::ToolsUnreadable { offset: 0 }),
        };
        let mut tools = Self::default();
        if list.kind() == Kind::Object {
            tools.add_definition(list, 0)?;
        }
        for (index, definition) in list.items().enumerate() {
            tools.add_definition(definition, index)?;
        }
        Ok(tools)
    }

    /// The declared names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|tool| tool.name.as_str())
    }

    fn add_definition(&mut self, value: Value<'_>, index: usize) -> Result<(), ConfigError> {
        let declarations = value
            .get("functionDeclarations")
            .or_else(|| value.get("function_declarations"));
        if let Some(list) = declarations {
            return list
                .items()
                .try_for_each(|inner| self.add_definition(inner, index));
        }
        let function = value
            .get("function")
            .filter(|inner| inner.kind() == Kind::Object);
        let value = function.unwrap_or(value);
        let name = value
            .get("name")
            .and_then(Value::text)
            .filter(|name| !name.is_empty());
        let Some(name) = name else {
            return Err(ConfigError::ToolWithoutName { index });
        };
        let keys = [
            "parameters",
            "input_schema",
            "inputSchema",
            "parametersJsonSchema",
        ];
        let schema = keys.iter().find_map(|key| value.get(key));
        let schema = schema
            .map(|schema| Schema::compile(schema, schema, 0))
            .unwrap_or_default();
        self.add(name.into_owned(), schema.properties);
        Ok(())
    }

    fn add(&mut self, name: String, parameters: Vec<(String, Schema)>) {
        let index = self.all.len();
        self.by_name.insert(name.clone(), index);
        self.by_lower_name.insert(name.to_lowercase(), index);
        self.all.push(Tool { name, parameters });
    }

    fn find(&self, name: &str) -> Option<&Tool> {
        let exact = self.by_name.get(name);
        let index = exact.or_else(|| self.by_lower_name.get(&name.to_lowercase()))?;
        self.all.get(*index)
    }

    /// Whether a tool of this name was declared, in whatever case.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The declared spelling of a name.
    pub(crate) fn spelling(&self, name: &str) -> Option<String> {
        self.find(name).map(|tool| tool.name.clone())
    }

    /// The schema of a tool's parameter.
    pub(crate) fn parameter(&self, name: &str, key: &str) -> Option<&Schema> {
        let tool = self.find(name)?;
        tool.parameters
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, schema)| schema)
    }

    /// The names of a tool's parameters, in order.
    pub(crate) fn parameters(&self, name: &str) -> impl Iterator<Item = &str> {
        let parameters = self.find(name).map(|tool| tool.parameters.iter());
        parameters
            .into_iter()
            .flatten()
            .map(|(key, _)| key.as_str())
    }

    /// The tool's only parameter that is a string.
    pub(crate) fn only_string(&self, name: &str) -> Option<&str> {
        let tool = self.find(name)?;
        let mut strings = tool
            .parameters
            .iter()
            .filter(|(_, schema)| schema.types.contains(Types::STRING));
        match (strings.next(), strings.next()) {
            (Some((key, _)), None) => Some(key),
            _ => None,
        }
    }

    /// Brings the arguments of a call, a compact JSON object, to the declared types.
    pub(crate) fn typed<'a>(&self, name: &str, json: &'a str) -> Typed<'a> {
        let Some(tool) = self.find(name) else {
            return Typed {
                json: Cow::Borrowed(json),
                changed: false,
                misfit: None,
            };
        };
        members_typed(&tool.parameters, json)
    }
}

/// A value brought to its declared type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Typed<'a> {
    pub(crate) json: Cow<'a, str>,
    /// Whether any value changed its type.
    pub(crate) changed: bool,
    /// The first member that does not fit and stays as it is.
    pub(crate) misfit: Option<String>,
}

/// A set of JSON types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Types(u8);

impl Types {
    const STRING: Self = Self(1);
    const INTEGER: Self = Self(2);
    const NUMBER: Self = Self(4);
    const BOOLEAN: Self = Self(8);
    const OBJECT: Self = Self(16);
    const ARRAY: Self = Self(32);
    const NULL: Self = Self(64);

    fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn named(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "string" | "str" | "text" => Self::STRING,
            "integer" | "int" => Self::INTEGER,
            "number" | "float" | "double" => Self::NUMBER,
            "boolean" | "bool" => Self::BOOLEAN,
            "object" | "dict" => Self::OBJECT,
            "array" | "list" => Self::ARRAY,
            "null" => Self::NULL,
            _ => Self::default(),
        }
    }

    /// The types of a value; a number may be of two.
    fn of(value: Value<'_>) -> Self {
        match value.kind() {
            Kind::Object => Self::OBJECT,
            Kind::Array => Self::ARRAY,
            Kind::String => Self::STRING,
            Kind::True | Kind::False => Self::BOOLEAN,
            Kind::Null => Self::NULL,
            Kind::Number if is_integer(value.json()) => Self(Self::INTEGER.0 | Self::NUMBER.0),
            Kind::Number => Self::NUMBER,
        }
    }
}

fn is_integer(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Which values a schema allows; no types at all mean any.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    types: Types,
    properties: Vec<(String, Schema)>,
    additional: Option<Box<Schema>>,
    items: Option<Box<Schema>>,
}

impl Schema {
    fn compile(schema: Value<'_>, root: Value<'_>, depth: usize) -> Self {
        let mut compiled = Self::default();
        if depth < MAX_DEPTH {
            compiled.add(schema, root, depth);
        }
        compiled
    }

    fn add(&mut self, schema: Value<'_>, root: Value<'_>, depth: usize) {
        for (key, value) in schema.members() {
            match key {
                "type" => self.add_type(value),
                "nullable" if value.kind() == Kind::True => self.types.add(Types::NULL),
                "enum" => value
                    .items()
                    .for_each(|item| self.types.add(Types::of(item))),
                "const" => self.types.add(Types::of(value)),
                "anyOf" | "oneOf" | "allOf" if depth < MAX_DEPTH => {
                    value
                        .items()
                        .for_each(|part| self.add(part, root, depth + 1));
                }
                "$ref" if depth < MAX_DEPTH => {
                    if let Some(target) = resolve(root, value) {
                        self.add(target, root, depth + 1);
                    }
                }
                "properties" => {
                    for (name, inner) in value.members() {
                        let name = crate::calls::unquote(name);
                        let inner = Self::compile(inner, root, depth + 1);
                        self.properties.push((name, inner));
                    }
                }
                "additionalProperties" if value.kind() == Kind::Object => {
                    self.additional = Some(Box::new(Self::compile(value, root, depth + 1)));
                }
                "items" if value.kind() == Kind::Object => {
                    self.items = Some(Box::new(Self::compile(value, root, depth + 1)));
                }
                _ => {}
            }
        }
    }

    fn add_type(&mut self, value: Value<'_>) {
        if let Some(name) = value.text() {
            self.types.add(Types::named(&name));
        }
        for item in value.items() {
            if let Some(name) = item.text() {
                self.types.add(Types::named(&name));
            }
        }
    }

    fn allows(&self, types: Types) -> bool {
        self.types == Types::default() || self.types.contains(types)
    }

    fn is_only_string(&self) -> bool {
        self.types == Types::STRING
    }
}

/// What a local reference such as `#/$defs/Point` points to.
fn resolve<'a>(root: Value<'a>, reference: Value<'_>) -> Option<Value<'a>> {
    let path = reference.text()?;
    let path = path.strip_prefix("#/")?;
    path.split('/').try_fold(root, super::view::Value::get)
}

/// Brings a compact JSON value to what `schema` declares.
pub(crate) fn typed<'a>(schema: Option<&Schema>, json: &'a str) -> Typed<'a> {
    let same = Typed {
        json: Cow::Borrowed(json),
        changed: false,
        misfit: None,
    };
    let Some(schema) = schema else {
        return same;
    };
    let value = Value::new(json);
    if schema.allows(Types::of(value)) {
        return match value.kind() {
            Kind::Object if !schema.properties.is_empty() || schema.additional.is_some() => {
                object_typed(schema, json)
            }
            Kind::Array => match &schema.items {
                Some(items) => items_typed(items, json),
                None => same,
            },
            _ => same,
        };
    }
    match converted(schema, value) {
        Some(json) => {
            let inner = typed(Some(schema), &json);
            Typed {
                json: Cow::Owned(inner.json.into_owned()),
                changed: true,
                misfit: inner.misfit,
            }
        }
        None => Typed {
            misfit: Some(String::new()),
            ..same
        },
    }
}

fn members_typed<'a>(properties: &[(String, Schema)], json: &'a str) -> Typed<'a> {
    let schema_of = |key: &str| {
        properties
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, schema)| schema)
    };
    members_by(schema_of, json)
}

fn object_typed<'a>(schema: &Schema, json: &'a str) -> Typed<'a> {
    let schema_of = |key: &str| {
        let known = schema.properties.iter().find(|(known, _)| known == key);
        known
            .map(|(_, inner)| inner)
            .or(schema.additional.as_deref())
    };
    members_by(schema_of, json)
}

fn members_by<'a, 's>(schema_of: impl Fn(&str) -> Option<&'s Schema>, json: &'a str) -> Typed<'a> {
    let mut out = Rewriting::default();
    for (key, value) in Value::new(json).members() {
        let decoded = crate::calls::unquote(key);
        let inner = typed(schema_of(&decoded), value.json());
        out.take(
            &inner,
            value.json(),
            || decoded.clone(),
            |json| {
                json.push('"');
                json.push_str(key);
                json.push_str("\":");
            },
        );
    }
    out.finish(json, '{', '}')
}

fn items_typed<'a>(items: &Schema, json: &'a str) -> Typed<'a> {
    let mut out = Rewriting::default();
    for (index, value) in Value::new(json).items().enumerate() {
        let inner = typed(Some(items), value.json());
        out.take(&inner, value.json(), || index.to_string(), |_| {});
    }
    out.finish(json, '[', ']')
}

/// A container that is written anew if any of its values changes.
#[derive(Default)]
struct Rewriting {
    json: String,
    changed: bool,
    misfit: Option<String>,
}

impl Rewriting {
    fn take(
        &mut self,
        inner: &Typed<'_>,
        _before: &str,
        name: impl Fn() -> String,
        key: impl Fn(&mut String),
    ) {
        if !self.json.is_empty() {
            self.json.push(',');
        }
        key(&mut self.json);
        self.json.push_str(&inner.json);
        self.changed |= inner.changed;
        if let (None, Some(path)) = (&self.misfit, &inner.misfit) {
            let dot = if path.is_empty() { "" } else { "." };
            self.misfit = Some(format!("{}{dot}{path}", name()));
        }
    }

    fn finish(self, json: &str, open: char, close: char) -> Typed<'_> {
        let json = if self.changed {
            Cow::Owned(format!("{open}{}{close}", self.json))
        } else {
            Cow::Borrowed(json)
        };
        Typed {
            json,
            changed: self.changed,
            misfit: self.misfit,
        }
    }
}

/// A value as another type that the schema allows, when nothing is lost by it.
fn converted(schema: &Schema, value: Value<'_>) -> Option<String> {
    match value.kind() {
        Kind::String => from_text(schema, value.text()?.trim()),
        Kind::Number if schema.types.contains(Types::INTEGER) => {
            let (whole, fraction) = value.json().split_once('.')?;
            let zeros = !fraction.is_empty() && fraction.bytes().all(|byte| byte == b'0');
            (zeros && is_integer(whole)).then(|| whole.to_owned())
        }
        Kind::Number | Kind::True | Kind::False if schema.types.contains(Types::STRING) => {
            Some(format!("\"{}\"", value.json()))
        }
        _ => None,
    }
}

/// Text as a value that the schema allows, other than a string.
fn from_text(schema: &Schema, text: &str) -> Option<String> {
    let null = matches!(text, "null" | "None");
    if null && !schema.is_only_string() {
        return Some("null".to_owned());
    }
    let boolean = match text {
        "true" | "True" | "TRUE" => Some("true"),
        "false" | "False" | "FALSE" => Some("false"),
        _ => None,
    };
    if let Some(boolean) = boolean.filter(|_| schema.types.contains(Types::BOOLEAN)) {
        return Some(boolean.to_owned());
    }
    let container = text.starts_with(['{', '[', '(']);
    let json = if container {
        healed(text)
    } else {
        strict(text).ok()
    }?;
    let value = Value::new(&json);
    if schema.types.contains(Types::of(value)) {
        return Some(json);
    }
    if value.kind() == Kind::Number {
        converted(schema, value)
    } else {
        None
    }
}

/// Appends text whose type is not said as the JSON value that it is meant to be; the answer is
/// whether it fits.
pub(crate) fn push_text(json: &mut String, schema: Option<&Schema>, text: &str) -> bool {
    let any = Schema::default();
    let schema = schema.unwrap_or(&any);
    let trimmed = text.trim();
    let value = if schema.is_only_string() {
        None
    } else if schema.types == Types::default() {
        strict(trimmed).ok()
    } else {
        from_text(schema, trimmed)
    };
    if let Some(value) = value {
        let inner = typed(Some(schema), &value);
        json.push_str(&inner.json);
        inner.misfit.is_none()
    } else {
        push_string(json, text);
        schema.allows(Types::STRING)
    }
}

/// Valid JSON, made compact; else where it is not valid.
fn strict(text: &str) -> Result<String, usize> {
    let (json, clean) = read(text)?;
    if clean { Ok(json) } else { Err(0) }
}

/// A valid JSON value, made compact.
pub(crate) fn strict_value(text: &str) -> Option<String> {
    strict(text).ok()
}

/// A valid JSON object, made compact.
pub(crate) fn strict_object(text: &str) -> Option<String> {
    let object = text.starts_with('{').then(|| strict(text).ok())??;
    (Value::new(&object).kind() == Kind::Object).then_some(object)
}

/// JSON that may have to be healed, made compact.
fn healed(text: &str) -> Option<String> {
    read(text).ok().map(|(json, _)| json)
}

/// Compact JSON of one value that is all of `text`, and whether it was valid.
fn read(text: &str) -> Result<(String, bool), usize> {
    if text.is_empty() {
        return Err(0);
    }
    let options = ReaderOptions {
        mode: Mode::Value,
        member_depth: 0,
        ..ReaderOptions::default()
    };
    let mut reader = Reader::new(options, 0);
    match reader.read(text, true) {
        Status::Done {
            end,
            complete: true,
        } => {
            if text.get(end..).is_some_and(|rest| !rest.trim().is_empty()) {
                return Err(end);
            }
            let repair = reader.repairs().first().map(|repair| repair.offset);
            Ok((reader.into_output(), repair.is_none()))
        }
        Status::Done { end, .. } => Err(end),
        Status::Failed(error) => Err(error.offset),
        Status::NeedMore => Err(text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Tools {
        Tools::from_json(
            r##"[
            {"type": "function", "function": {"name": "openai", "parameters": {"type": "object",
              "properties": {"n": {"type": "integer"}, "s": {"type": "string"},
                "b": {"type": "boolean"}, "f": {"type": "number"},
                "u": {"type": ["integer", "null"]}, "a": {"type": "array",
                  "items": {"type": "integer"}},
                "o": {"$ref": "#/$defs/o"}, "e": {"enum": [1, 2]},
                "x": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}},
              "$defs": {"o": {"type": "object", "properties": {"k": {"type": "number"}}}}}}},
            {"name": "Anthropic", "input_schema": {"properties": {"text": {"type": "string"},
              "n": {"type": "integer"}}}},
            {"name": "mcp", "inputSchema": {"properties": {"a": {"type": "string"},
              "b": {"type": "string"}}}}]"##,
        )
        .unwrap()
    }

    fn typed_json(json: &str) -> String {
        tools().typed("openai", json).json.into_owned()
    }

    #[test]
    fn definitions_of_all_kinds_are_read() {
        assert_eq!(
            tools().names().collect::<Vec<_>>(),
            ["openai", "Anthropic", "mcp"]
        );
        assert!(matches!(
            Tools::from_json(r#"[{"description": "x"}]"#),
            Err(ConfigError::ToolWithoutName { index: 0 })
        ));
        assert!(matches!(
            Tools::from_json("nonsense"),
            Err(ConfigError::ToolsUnreadable { .. })
        ));
    }

    #[test]
    fn names_match_exactly_then_ignoring_case() {
        assert_eq!(tools().spelling("anthropic").as_deref(), Some("Anthropic"));
        assert_eq!(tools().spelling("other"), None);
    }

    #[test]
    fn the_only_string_parameter_is_found() {
        assert_eq!(tools().only_string("Anthropic"), Some("text"));
        assert_eq!(tools().only_string("mcp"), None);
    }

    #[test]
    fn values_change_their_type_when_nothing_is_lost() {
        assert_eq!(typed_json(r#"{"n":"3","b":"true"}"#), r#"{"n":3,"b":true}"#);
        assert_eq!(typed_json(r#"{"n":3.0,"s":5}"#), r#"{"n":3,"s":"5"}"#);
        assert_eq!(typed_json(r#"{"a":"[1,\"2\"]"}"#), r#"{"a":[1,2]}"#);
        assert_eq!(typed_json(r#"{"o":{"k":"1.5"}}"#), r#"{"o":{"k":1.5}}"#);
        assert_eq!(
            typed_json(r#"{"n":"null","u":"null"}"#),
            r#"{"n":null,"u":null}"#
        );
        assert_eq!(typed_json(r#"{"e":"2","x":"True"}"#), r#"{"e":2,"x":true}"#);
    }

    #[test]
    fn values_that_do_not_fit_stay_and_are_told() {
        let tools = tools();
        let typed = tools.typed("openai", r#"{"n":"three","s":"null","o":{"k":[]}}"#);
        assert_eq!(typed.json, r#"{"n":"three","s":"null","o":{"k":[]}}"#);
        assert_eq!(typed.misfit.as_deref(), Some("n"));
        let typed = tools.typed("openai", r#"{"o":{"k":[]}}"#);
        assert_eq!(typed.misfit.as_deref(), Some("o.k"));
    }

    fn text(key: &str, text: &str) -> String {
        let tools = tools();
        let mut json = String::new();
        push_text(&mut json, tools.parameter("openai", key), text);
        json
    }

    #[test]
    fn text_is_read_as_its_declared_type_or_as_json() {
        assert_eq!(text("n", "3"), "3");
        assert_eq!(text("s", "3"), r#""3""#);
        assert_eq!(text("b", "True"), "true");
        assert_eq!(text("a", "['1', 2]"), "[1,2]");
        assert_eq!(text("n", "null"), "null");
        assert_eq!(text("unknown", "03106"), r#""03106""#);
        assert_eq!(text("unknown", r#"{"lat": 59.9}"#), r#"{"lat":59.9}"#);
        assert_eq!(text("unknown", "{not json}"), r#""{not json}""#);
    }
}
