//! Formats are declarations: plain data that says which markers a model writes around its calls
//! and where name and arguments stand. One engine reads them all.

mod data;
mod json_wrappers;
mod key_value;
mod named;
mod python;
mod registry;
mod tagged;
mod transcripts;

use std::sync::LazyLock;

pub use registry::{format_named, formats};

use serde::{Deserialize, Serialize};

/// How one family of models writes its calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Format {
    /// The name by which the format is pinned and reported.
    pub label: String,
    /// The models that use it.
    #[serde(default, deserialize_with = "data::texts")]
    pub models: Vec<String>,
    /// One reply with one call or more.
    #[serde(default)]
    pub example: String,
    /// The ways of writing calls; the first that fits is taken.
    pub syntaxes: Vec<Syntax>,
    /// Markers of reasoning that only this format knows: what opens a block and what closes it.
    #[serde(default)]
    pub reasoning: Vec<(String, String)>,
    /// Whether the chat template opens a block of reasoning, so that replies only close it.
    #[serde(default)]
    pub reasoning_open: bool,
    /// Markers around the answer, which are no part of it.
    #[serde(default)]
    pub wrappers: Vec<(String, String)>,
    /// Tokens that end a turn: dropped at the end and beside markup.
    #[serde(default, deserialize_with = "data::texts")]
    pub end_of_turn: Vec<String>,
}

impl Format {
    /// A format without syntaxes.
    #[must_use]
    pub fn new(label: &str, models: &[&str], example: &str) -> Self {
        Self {
            label: label.to_owned(),
            models: owned(models),
            example: example.to_owned(),
            syntaxes: Vec::new(),
            reasoning: Vec::new(),
            reasoning_open: false,
            wrappers: Vec::new(),
            end_of_turn: Vec::new(),
        }
    }

    /// The same format with tokens of its own that end a turn.
    #[must_use]
    pub fn ending_with(mut self, tokens: &[&str]) -> Self {
        self.end_of_turn.extend(owned(tokens));
        self
    }

    /// The same format with one more way of writing calls.
    #[must_use]
    pub fn with(mut self, syntax: Syntax) -> Self {
        self.syntaxes.push(syntax);
        self
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// One way of writing calls: where they stand and how each is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "data::SyntaxData", into = "data::SyntaxData")]
pub struct Syntax {
    /// Where the calls stand.
    pub place: Place,
    /// How they are written.
    pub body: Body,
}

impl Syntax {
    /// Calls between markers. Any of `open` begins the section, any of `close` ends it; without
    /// `close` the section ends with its calls.
    #[must_use]
    pub fn between(open: &[&str], close: &[&str], body: Body) -> Self {
        let place = Place::Markers {
            open: owned(open),
            close: owned(close),
        };
        Self { place, body }
    }

    /// Calls in fenced code of one of these languages.
    #[must_use]
    pub fn fenced(languages: &[&str], body: Body) -> Self {
        Self {
            place: Place::Fence {
                languages: owned(languages),
            },
            body,
        }
    }

    /// Calls that are the whole reply.
    #[must_use]
    pub fn whole(body: Body) -> Self {
        Self {
            place: Place::Whole,
            body,
        }
    }
}

/// Where calls stand in a reply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Between markers.
    Markers {
        /// Any of these begins the section.
        open: Vec<String>,
        /// Any of these ends it.
        close: Vec<String>,
    },
    /// In fenced code of one of these languages; the empty one is no language.
    Fence {
        /// In lower case.
        languages: Vec<String>,
    },
    /// They are the whole reply.
    Whole,
}

/// How calls are written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// JSON objects, or arrays of them.
    Json(JsonCalls),
    /// Workflow JSON: `{"content": ..., "next": [...]}`.
    Workflow,
    /// A name, markers, and a JSON object of arguments.
    Named(NamedCalls),
    /// An element for each call, and one for each argument in it.
    Tagged(TaggedCalls),
    /// A name, and an element for each key and for each value.
    KeyValue(KeyValueCalls),
    /// Python calls, `f(a=1)`, in a list, on lines of their own, or alone.
    Python(PythonCalls),
    /// `call:name{key:value}`, strings between quote tokens.
    Braced(BracedCalls),
    /// Messages on channels, some of them to a tool.
    Channels(ChannelCalls),
    /// Lines that begin with `Thought:`, `Action:` and the like.
    React(ReactCalls),
    /// A native message of a provider's API, as JSON text.
    Native,
}

/// Calls as messages to a tool: the header of the message names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChannelCalls {
    /// Taken off the beginning of a recipient's name.
    pub prefix: String,
}

/// The labels of a `ReAct` transcript; each stands at the beginning of a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReactCalls {
    /// Before reasoning.
    pub thought: String,
    /// Before a tool's name, or a JSON object with name and input.
    pub action: String,
    /// Before the input.
    pub input: String,
    /// Before a tool's result: nothing that follows is the model's to say.
    pub observation: String,
    /// Before the answer.
    pub answer: String,
    /// The keys of a JSON object in place of name and input.
    pub json: JsonCalls,
}

/// Calls as a name, markers, and arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NamedCalls {
    /// Any of these opens a call; none: a call begins with its name.
    #[serde(deserialize_with = "data::texts")]
    pub open: Vec<String>,
    /// Markers after the name, and what the text behind each of them is.
    pub parts: Vec<(String, Part)>,
    /// Any of these closes a call; several may stand in a row.
    #[serde(deserialize_with = "data::texts")]
    pub close: Vec<String>,
    /// Taken off the beginning of a name.
    pub prefix: String,
    /// Whether `:0` or the like may follow the name; all of it is the call's id then.
    pub indexed: bool,
}

/// What the text behind a marker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The tool's name, if there is any text.
    Name,
    /// The call's id.
    Id,
    /// A JSON object of arguments.
    Arguments,
    /// Plain text, up to what closes the call, that is the whole input.
    Input,
    /// Of no interest.
    Ignored,
}

/// Calls as elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaggedCalls {
    /// The element of a call.
    pub call: Tag,
    /// The element of an argument.
    pub argument: ArgumentTag,
    /// Whether a value stands on lines of its own: one line end on each side is no part of it.
    #[serde(default)]
    pub framed: bool,
    /// Whether a value may be `<![CDATA[...]]>`.
    #[serde(default)]
    pub cdata: bool,
}

/// An element: `open`, its name or attributes, `end`, content, `close`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tag {
    /// Any of these opens it.
    #[serde(deserialize_with = "data::texts")]
    pub open: Vec<String>,
    /// Where its name stands.
    #[serde(default)]
    pub name: NameAt,
    /// Ends the opening tag.
    #[serde(default = "data::tag_end")]
    pub end: String,
    /// Any of these closes it.
    #[serde(deserialize_with = "data::texts")]
    pub close: Vec<String>,
}

/// Where the name of an element stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum NameAt {
    /// Right behind `open`, as in `<function=NAME>`.
    #[default]
    Inline,
    /// In any of these attributes; or, without such an attribute, in a first element of its own.
    Attribute {
        /// The names of the attributes.
        #[serde(deserialize_with = "data::texts")]
        names: Vec<String>,
        /// What stands around the name in an element of its own.
        #[serde(default)]
        element: Option<(String, String)>,
    },
}

/// How the arguments of a call are written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ArgumentTag {
    /// Elements of one kind, which say their key.
    Keyed(Tag),
    /// The key is the element's name: `open` key `end` value `close` key `end`.
    Element {
        /// Begins an opening tag.
        open: String,
        /// Ends a tag.
        end: String,
        /// Begins a closing tag.
        close: String,
        /// Markers around all arguments, which mean nothing.
        #[serde(default, deserialize_with = "data::texts")]
        around: Vec<String>,
    },
}

/// Calls as a name with keys and values in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyValueCalls {
    /// Any of these opens a call; none: a call begins with its name.
    #[serde(default, deserialize_with = "data::texts")]
    pub open: Vec<String>,
    /// Any of these may follow the name.
    #[serde(default, deserialize_with = "data::texts")]
    pub name_end: Vec<String>,
    /// What stands around a key.
    pub key: (String, String),
    /// What may stand around the type of a value.
    #[serde(default)]
    pub kind: Option<(String, String)>,
    /// What stands around a value.
    pub value: (String, String),
    /// Any of these closes a call.
    #[serde(default, deserialize_with = "data::texts")]
    pub close: Vec<String>,
}

/// Python calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PythonCalls {
    /// Taken off the end of a name: `.call` in `search.call(q="x")`.
    pub suffix: String,
}

/// Calls as `call:name{...}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BracedCalls {
    /// Begins a call.
    #[serde(default)]
    pub prefix: String,
    /// Stands on both sides of a string.
    #[serde(default, deserialize_with = "data::texts")]
    pub quotes: Vec<String>,
}

/// Calls as JSON objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JsonCalls {
    /// Keys of the tool's name, by precedence.
    #[serde(deserialize_with = "data::texts")]
    pub name: Vec<String>,
    /// Keys of the arguments, by precedence.
    #[serde(deserialize_with = "data::texts")]
    pub arguments: Vec<String>,
    /// Keys of the call's id, by precedence.
    #[serde(deserialize_with = "data::texts")]
    pub id: Vec<String>,
    /// Whether the only key of an object is the name and its value the arguments.
    pub name_is_key: bool,
    /// Whether arguments may be a plain string, which is the whole input.
    pub plain_input: bool,
    /// Whether the markup itself says that these are calls, so that a name is enough.
    pub explicit: bool,
}

impl Default for JsonCalls {
    fn default() -> Self {
        Self::marked()
    }
}

impl Default for ReactCalls {
    /// The labels that most agents use.
    fn default() -> Self {
        Self {
            thought: "Thought:".to_owned(),
            action: "Action:".to_owned(),
            input: "Action Input:".to_owned(),
            observation: "Observation:".to_owned(),
            answer: "Final Answer:".to_owned(),
            json: JsonCalls {
                name: owned(&["action", "tool_name", "tool", "name"]),
                arguments: owned(&["action_input", "parameters", "arguments", "args", "input"]),
                plain_input: true,
                ..JsonCalls::marked()
            },
        }
    }
}

impl JsonCalls {
    /// The keys that most formats use, in explicit markup.
    #[must_use]
    pub fn marked() -> Self {
        Self {
            name: owned(&["name", "mcp", "tool_name", "tool"]),
            arguments: owned(&["arguments", "args", "params", "parameters", "input"]),
            id: owned(&["id", "call_id", "tool_call_id"]),
            name_is_key: false,
            plain_input: false,
            explicit: true,
        }
    }

    /// JSON without markup: a call only when it says so.
    #[must_use]
    pub fn unmarked() -> Self {
        Self {
            name: owned(&["name", "mcp"]),
            explicit: false,
            ..Self::marked()
        }
    }
}

/// The keys of JSON without markup.
pub(crate) static UNMARKED: LazyLock<JsonCalls> = LazyLock::new(JsonCalls::unmarked);

/// The same keys where the place itself says that there are calls.
pub(crate) static LISTED: LazyLock<JsonCalls> = LazyLock::new(|| JsonCalls {
    explicit: true,
    ..JsonCalls::unmarked()
});

impl Body {
    /// What opens and closes single calls.
    pub(crate) fn call_markers(&self) -> impl Iterator<Item = &str> {
        let (open, close) = match self {
            Self::Named(calls) => (calls.open.as_slice(), calls.close.as_slice()),
            Self::Tagged(calls) => (calls.call.open.as_slice(), calls.call.close.as_slice()),
            Self::KeyValue(calls) => (calls.open.as_slice(), calls.close.as_slice()),
            Self::Json(_)
            | Self::Workflow
            | Self::Python(_)
            | Self::Braced(_)
            | Self::Channels(_)
            | Self::React(_)
            | Self::Native => (&[][..], &[][..]),
        };
        close.iter().chain(open).map(String::as_str)
    }
}
