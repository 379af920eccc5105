//! Declared tools: their names, and the types that their arguments are brought to.
//!
//! A schema is compiled to the set of types that a value may have, with the schemas of members and
//! items below it. A value changes its type only when nothing is lost by it; what does not fit
//! stays as it is. Cost: linear in the arguments for each level of nesting in the schema.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::calls::push_string;
use crate::json::{Mode, Reader, ReaderOptions, Status};
use crate::view::{Kind, Value};

/// How deep values are brought to their types: below, any value is allowed.
const MAX_DEPTH: usize = 32;
/// How many schemas of one definition are looked at: those beyond allow any value.
const MOST_SCHEMAS: usize = 100_000;

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
    /// The schemas of all tools.
    nodes: Vec<Node>,
    by_name: HashMap<String, usize>,
    by_lower_name: HashMap<String, usize>,
}

#[derive(Clone, Debug)]
struct Tool {
    name: String,
    parameters: Vec<(String, usize)>,
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
        let root = schema.map(|root| {
            let compiler = Compiler {
                nodes: &mut self.nodes,
                root,
                known: HashMap::new(),
                open: Vec::new(),
                budget: MOST_SCHEMAS,
            };
            compiler.compile()
        });
        let root = root.and_then(|root| self.nodes.get(root));
        let parameters = root.map_or_else(Vec::new, |root| root.properties.clone());
        self.add(name.into_owned(), parameters);
        Ok(())
    }

    fn add(&mut self, name: String, parameters: Vec<(String, usize)>) {
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
    pub(crate) fn parameter(&self, name: &str, key: &str) -> Option<Schema<'_>> {
        self.parameter_of(self.find(name)?, key)
    }

    fn parameter_of(&self, tool: &Tool, key: &str) -> Option<Schema<'_>> {
        let (_, node) = tool.parameters.iter().find(|(known, _)| known == key)?;
        Schema::at(&self.nodes, *node)
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
        let mut strings = tool.parameters.iter().filter(|(_, node)| {
            let schema = self.nodes.get(*node);
            schema.is_some_and(|schema| schema.types.contains(Types::STRING))
        });
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
        members_by(|key| self.parameter_of(tool, key), json, 0)
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

/// Which values a schema allows; no types at all mean any. Schemas that it refers to are numbers
/// of other nodes, so that recursive ones need no more room than they are written in.
#[derive(Clone, Debug, Default)]
struct Node {
    types: Types,
    /// The only values, as compact JSON, where the schema lists them.
    values: Option<Vec<String>>,
    properties: Vec<(String, usize)>,
    additional: Option<usize>,
    items: Option<usize>,
}

/// Compiles the schemas of one definition.
struct Compiler<'a, 'n> {
    nodes: &'n mut Vec<Node>,
    root: Value<'a>,
    /// The nodes of values that were met, by where these stand in memory.
    known: HashMap<usize, usize>,
    /// Nodes that are still to be filled.
    open: Vec<(usize, Value<'a>)>,
    /// How many more schemas may be taken into nodes.
    budget: usize,
}

impl<'a> Compiler<'a, '_> {
    /// The node of the whole definition.
    fn compile(mut self) -> usize {
        let node = self.node(self.root);
        while let Some((node, schema)) = self.open.pop() {
            let compiled = self.fill(schema);
            if let Some(place) = self.nodes.get_mut(node) {
                *place = compiled;
            }
        }
        node
    }

    fn node(&mut self, schema: Value<'a>) -> usize {
        let next = self.nodes.len();
        let node = *self.known.entry(address(schema)).or_insert(next);
        if node == next {
            self.nodes.push(Node::default());
            self.open.push((node, schema));
        }
        node
    }

    /// What a schema says, with all that it is made of: references and alternatives.
    fn fill(&mut self, schema: Value<'a>) -> Node {
        let mut node = Node::default();
        let (mut parts, mut seen) = (vec![schema], HashSet::new());
        let mut alternatives = false;
        while let Some(part) = parts.pop() {
            if !seen.insert(address(part)) {
                continue;
            }
            let Some(budget) = self.budget.checked_sub(1) else {
                return Node::default();
            };
            self.budget = budget;
            for (key, value) in part.members() {
                match key {
                    "anyOf" | "oneOf" | "allOf" => {
                        alternatives |= key != "allOf";
                        let from = parts.len();
                        parts.extend(value.items());
                        parts.get_mut(from..).unwrap_or_default().reverse();
                    }
                    "$ref" => parts.extend(resolve(self.root, value)),
                    _ => self.take(&mut node, key, value),
                }
            }
        }
        if alternatives {
            node.values = None;
        }
        node
    }

    fn take(&mut self, node: &mut Node, key: &str, value: Value<'a>) {
        match key {
            "type" => node.add_type(value),
            "nullable" if value.kind() == Kind::True => node.types.add(Types::NULL),
            "enum" => node.add_values(value.items()),
            "const" => node.add_values(std::iter::once(value)),
            "properties" => {
                for (name, inner) in value.members() {
                    let name = crate::calls::unquote(name);
                    let inner = self.node(inner);
                    node.properties.push((name, inner));
                }
            }
            "additionalProperties" if value.kind() == Kind::Object => {
                node.additional = Some(self.node(value));
            }
            "items" if value.kind() == Kind::Object => node.items = Some(self.node(value)),
            _ => {}
        }
    }
}

/// Where a value stands in memory: what tells it from others of its text.
fn address(value: Value<'_>) -> usize {
    value.json().as_ptr().addr()
}

impl Node {
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

    fn add_values<'v>(&mut self, values: impl Iterator<Item = Value<'v>>) {
        let listed = self.values.get_or_insert_default();
        for value in values {
            self.types.add(Types::of(value));
            listed.push(value.json().to_owned());
        }
    }
}

/// A schema among those of its tools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schema<'a> {
    nodes: &'a [Node],
    node: &'a Node,
}

impl<'a> Schema<'a> {
    fn at(nodes: &'a [Node], node: usize) -> Option<Self> {
        let node = nodes.get(node)?;
        Some(Self { nodes, node })
    }

    fn allows(self, types: Types) -> bool {
        self.node.types == Types::default() || self.node.types.contains(types)
    }

    fn is_only_string(self) -> bool {
        self.node.types == Types::STRING
    }

    /// Whether a value is one of those that the schema lists, if it lists any.
    fn lists(self, value: Value<'_>) -> bool {
        let Some(values) = &self.node.values else {
            return true;
        };
        // `nullable` allows what the list need not hold.
        value.kind() == Kind::Null || values.iter().any(|listed| equal(Value::new(listed), value))
    }

    fn member(self, key: &str) -> Option<Self> {
        let known = self.node.properties.iter().find(|(known, _)| known == key);
        let node = known.map(|(_, node)| *node).or(self.node.additional)?;
        Self::at(self.nodes, node)
    }

    fn items(self) -> Option<Self> {
        Self::at(self.nodes, self.node.items?)
    }
}

/// Whether two values are the same; containers are not looked into.
fn equal(left: Value<'_>, right: Value<'_>) -> bool {
    match (left.kind(), right.kind()) {
        (Kind::String, Kind::String) => left.text() == right.text(),
        (Kind::Number, Kind::Number) => {
            let number = |value: Value<'_>| value.json().parse::<f64>().ok();
            left.json() == right.json() || number(left) == number(right)
        }
        (left, right) => left == right,
    }
}

/// What a local reference such as `#/$defs/Point` points to.
fn resolve<'a>(root: Value<'a>, reference: Value<'_>) -> Option<Value<'a>> {
    let path = reference.text()?;
    let path = path.strip_prefix('#')?;
    let names = path.split('/').filter(|name| !name.is_empty());
    let name = |name: &str| name.replace("~1", "/").replace("~0", "~");
    names
        .map(name)
        .try_fold(root, |value, name| value.get(&name))
}

/// Brings a compact JSON value to what `schema` declares.
pub(crate) fn typed<'a>(schema: Option<Schema<'_>>, json: &'a str) -> Typed<'a> {
    typed_below(schema, json, 0)
}

fn typed_below<'a>(schema: Option<Schema<'_>>, json: &'a str, depth: usize) -> Typed<'a> {
    let same = Typed {
        json: Cow::Borrowed(json),
        changed: false,
        misfit: None,
    };
    let Some(schema) = schema.filter(|_| depth < MAX_DEPTH) else {
        return same;
    };
    let value = Value::new(json);
    let allowed = schema.allows(Types::of(value));
    if allowed && schema.lists(value) {
        let node = schema.node;
        return match value.kind() {
            Kind::Object if !node.properties.is_empty() || node.additional.is_some() => {
                members_by(|key| schema.member(key), json, depth + 1)
            }
            Kind::Array => match schema.items() {
                Some(items) => items_typed(items, json, depth + 1),
                None => same,
            },
            _ => same,
        };
    }
    let other = converted(schema, value).filter(|other| schema.lists(Value::new(other)));
    match other {
        Some(json) => {
            let inner = typed_below(Some(schema), &json, depth + 1);
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

fn members_by<'a, 's>(
    schema_of: impl Fn(&str) -> Option<Schema<'s>>,
    json: &'a str,
    depth: usize,
) -> Typed<'a> {
    let mut out = Rewriting::default();
    for (key, value) in Value::new(json).members() {
        let decoded = crate::calls::unquote(key);
        let inner = typed_below(schema_of(&decoded), value.json(), depth);
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

fn items_typed<'a>(items: Schema<'_>, json: &'a str, depth: usize) -> Typed<'a> {
    let mut out = Rewriting::default();
    for (index, value) in Value::new(json).items().enumerate() {
        let inner = typed_below(Some(items), value.json(), depth);
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
fn converted(schema: Schema<'_>, value: Value<'_>) -> Option<String> {
    match value.kind() {
        Kind::String => from_text(schema, value.text()?.trim()),
        Kind::Number if schema.node.types.contains(Types::INTEGER) => {
            let (whole, fraction) = value.json().split_once('.')?;
            let zeros = !fraction.is_empty() && fraction.bytes().all(|byte| byte == b'0');
            (zeros && is_integer(whole)).then(|| whole.to_owned())
        }
        Kind::Number | Kind::True | Kind::False if schema.node.types.contains(Types::STRING) => {
            Some(format!("\"{}\"", value.json()))
        }
        _ => None,
    }
}

/// Text as a value that the schema allows, other than a string.
fn from_text(schema: Schema<'_>, text: &str) -> Option<String> {
    let null = matches!(text, "null" | "None");
    if null && !schema.is_only_string() {
        return Some("null".to_owned());
    }
    let boolean = match text {
        "true" | "True" | "TRUE" => Some("true"),
        "false" | "False" | "FALSE" => Some("false"),
        _ => None,
    };
    if let Some(boolean) = boolean.filter(|_| schema.node.types.contains(Types::BOOLEAN)) {
        return Some(boolean.to_owned());
    }
    let container = text.starts_with(['{', '[', '(']);
    let json = if container {
        healed(text)
    } else {
        strict(text).ok()
    }?;
    let value = Value::new(&json);
    if schema.node.types.contains(Types::of(value)) {
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
pub(crate) fn push_text(json: &mut String, schema: Option<Schema<'_>>, text: &str) -> bool {
    let trimmed = text.trim();
    let value = match schema.filter(|schema| schema.node.types != Types::default()) {
        None => strict(trimmed).ok(),
        Some(schema) if schema.is_only_string() => None,
        Some(schema) => from_text(schema, trimmed),
    };
    if let Some(value) = value {
        let inner = typed(schema, &value);
        json.push_str(&inner.json);
        return inner.misfit.is_none();
    }
    let from = json.len();
    push_string(json, text);
    let string = Value::new(json.get(from..).unwrap_or_default());
    schema.is_none_or(|schema| schema.allows(Types::STRING) && schema.lists(string))
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
        for json in [r#"{"e":"9"}"#, r#"{"e":9}"#] {
            let typed = tools.typed("openai", json);
            assert_eq!((&*typed.json, typed.misfit.as_deref()), (json, Some("e")));
        }
    }

    #[test]
    fn recursive_schemas_take_no_more_room_than_they_are_written_in() {
        let fields = (0..40).map(|n| format!("\"p{n}\": {{\"$ref\": \"#/$defs/node\"}}"));
        let fields = fields.collect::<Vec<_>>().join(", ");
        let choices = (0..40).map(|n| format!("{{\"$ref\": \"#/$defs/c{n}\"}}"));
        let choices = choices.collect::<Vec<_>>().join(", ");
        let kinds = (0..40).map(|n| {
            format!("\"c{n}\": {{\"properties\": {{\"x\": {{\"anyOf\": [{choices}]}}}}}}")
        });
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let tools = Tools::from_json(&format!(
            r##"[{{"name": "f", "parameters": {{"properties": {{"v": {{"$ref": "#/$defs/node"}},
              "w": {{"$ref": "#/$defs/c0"}}, "all": {{"$ref": "#"}}}},
              "$defs": {{"node": {{"type": "object", "properties": {{"n": {{"type": "integer"}},
              {fields}}}}}, {kinds}}}}}}}]"##
        ))
        .unwrap();
        assert!(tools.nodes.len() < 200);
        let json = r#"{"v":{"p1":{"p39":{"p2":{"n":"3"}}}},"all":{"v":{"n":"4"}}}"#;
        let typed = tools.typed("f", json);
        assert_eq!(
            typed.json,
            r#"{"v":{"p1":{"p39":{"p2":{"n":3}}}},"all":{"v":{"n":4}}}"#
        );
        let deep = format!("{}{{}}{}", r#"{"v":{"p0":"#.repeat(300), "}}".repeat(300));
        assert_eq!(tools.typed("f", &deep).json, deep);
    }

    #[test]
    fn a_value_that_a_schema_lists_is_told_by_its_value() {
        let tools = Tools::from_json(
            r#"[{"name": "f", "parameters": {"properties": {
              "unit": {"type": "string", "enum": ["a", "\u00e9"]}, "one": {"const": "1"},
              "level": {"enum": [1, 2.0, "x"]}, "or": {"anyOf": [{"enum": ["a"]}, {"type": "string"}]},
              "none": {"enum": ["a"], "nullable": true}}}}]"#,
        )
        .unwrap();
        for (json, typed, misfit) in [
            (r#"{"unit":"é"}"#, r#"{"unit":"é"}"#, None),
            (r#"{"unit":"b"}"#, r#"{"unit":"b"}"#, Some("unit")),
            (r#"{"one":1}"#, r#"{"one":"1"}"#, None),
            (r#"{"one":2}"#, r#"{"one":2}"#, Some("one")),
            (r#"{"level":"1"}"#, r#"{"level":1}"#, None),
            (r#"{"level":2}"#, r#"{"level":2}"#, None),
            (r#"{"level":"x"}"#, r#"{"level":"x"}"#, None),
            (r#"{"level":"3"}"#, r#"{"level":"3"}"#, Some("level")),
            (r#"{"or":"b"}"#, r#"{"or":"b"}"#, None),
            (r#"{"none":null}"#, r#"{"none":null}"#, None),
        ] {
            let found = tools.typed("f", json);
            assert_eq!((&*found.json, found.misfit.as_deref()), (typed, misfit));
        }
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
