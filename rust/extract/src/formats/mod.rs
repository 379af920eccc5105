//! Formats are declarations: plain data that says which markers a model writes around its calls
//! and where name and arguments stand. One engine reads them all.

mod json_wrappers;
mod registry;

pub use registry::{format_named, formats};

/// How one family of models writes its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The name by which the format is pinned and reported.
    pub label: String,
    /// The models that use it.
    pub models: Vec<String>,
    /// One reply with one call or more.
    pub example: String,
    /// The ways of writing calls; the first that fits is taken.
    pub syntaxes: Vec<Syntax>,
    /// Markers of reasoning that only this format knows: what opens a block and what closes it.
    pub reasoning: Vec<(String, String)>,
    /// Whether the chat template opens a block of reasoning, so that replies only close it.
    pub reasoning_open: bool,
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
        }
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// JSON objects, or arrays of them.
    Json(JsonCalls),
    /// Workflow JSON: `{"content": ..., "next": [...]}`.
    Workflow,
}

/// Calls as JSON objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonCalls {
    /// Keys of the tool's name, by precedence.
    pub name: Vec<String>,
    /// Keys of the arguments, by precedence.
    pub arguments: Vec<String>,
    /// Keys of the call's id, by precedence.
    pub id: Vec<String>,
    /// Whether the only key of an object is the name and its value the arguments.
    pub name_is_key: bool,
    /// Whether the markup itself says that these are calls, so that a name is enough.
    pub explicit: bool,
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
