//! `ResponseParser`: an immutable, reusable parser.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZero;
use std::sync::OnceLock;
use std::thread;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use turnwarden_extract::{self as extract, Limits, Options, Parser, Tools};

use super::formats::PyFormat;
use super::limit::{Limit, Threads};
use super::reply::{PyReply, ReplyData};
use super::stream::{PyEventIterator, PyResponseStream};
use super::text::{Text, Utf8, read_text};
use super::values::{Foreign, write_json};
use crate::errors::Error;

/// Texts longer than this are parsed without the interpreter, so that other threads can run.
const DETACH_FROM: usize = 16 * 1024;

/// Parse one text; what was replaced while decoding it is among the repairs.
pub(crate) fn parse_text(py: Python<'_>, parser: &Parser, text: Text<'_>) -> ReplyData {
    let source = text.as_str();
    let reply = if source.len() < DETACH_FROM {
        parser.parse(source)
    } else {
        py.detach(|| parser.parse(source))
    };
    ReplyData::new(reply, text.into_repairs())
}

/// The parser that the module's functions use when none is given.
fn default_parser() -> PyResult<&'static Parser> {
    static PARSER: OnceLock<Parser> = OnceLock::new();
    if let Some(parser) = PARSER.get() {
        return Ok(parser);
    }
    let parser = Settings::default().parser()?;
    Ok(PARSER.get_or_init(|| parser))
}

/// The parser that was given, or the default one.
pub(crate) fn given_parser<'a>(
    parser: Option<&'a Bound<'_, PyResponseParser>>,
) -> PyResult<&'a Parser> {
    match parser {
        Some(parser) => Ok(&parser.get().parser),
        None => default_parser(),
    }
}

/// What a parser was made with.
#[derive(Clone, PartialEq, Eq, Hash)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches that do not depend on each other"
)]
struct Settings {
    formats: Option<Vec<String>>,
    /// Those of the formats that are not built in.
    own_formats: Vec<extract::Format>,
    /// Tool definitions as a JSON array.
    tools: Option<String>,
    reasoning_open: bool,
    calls_in_reasoning: bool,
    buffer_arguments: bool,
    stop_on_text_loop: bool,
    max_depth: usize,
    max_reply_bytes: usize,
    max_calls: usize,
    max_argument_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            formats: None,
            own_formats: Vec::new(),
            tools: None,
            reasoning_open: false,
            calls_in_reasoning: false,
            buffer_arguments: true,
            stop_on_text_loop: false,
            max_depth: limits.max_depth,
            max_reply_bytes: limits.max_reply_bytes,
            max_calls: limits.max_calls,
            max_argument_bytes: limits.max_argument_bytes,
        }
    }
}

impl Settings {
    fn parser(&self) -> PyResult<Parser> {
        let configuration = |error: extract::ConfigError| Error::Configuration(error.to_string());
        let tools = match &self.tools {
            Some(definitions) => Some(Tools::from_json(definitions).map_err(configuration)?),
            None => None,
        };
        let options = Options {
            formats: self.formats.clone(),
            own_formats: self.own_formats.clone(),
            tools,
            reasoning_open: self.reasoning_open,
            calls_in_reasoning: self.calls_in_reasoning,
            buffer_arguments: self.buffer_arguments,
            stop_on_text_loop: self.stop_on_text_loop,
            limits: Limits {
                max_depth: self.max_depth,
                max_reply_bytes: self.max_reply_bytes,
                max_calls: self.max_calls,
                max_argument_bytes: self.max_argument_bytes,
            },
        };
        Ok(Parser::new(options).map_err(configuration)?)
    }
}

/// Parses replies. Immutable, reusable, and safe to share between threads.
///
/// Args:
///     formats: The formats to look for: labels (`turnwarden.formats()` lists them), `Format`
///         objects, or both; all built-in ones by default. On untrusted text, pinning is better
///         than detection.
///     tools: The tools that the model was given: OpenAI, Anthropic or MCP definitions, as
///         mappings or SDK objects. Names then make calls of JSON that would otherwise be text,
///         and argument values are brought to their declared types where that loses nothing.
///     reasoning_open: Whether the prompt's template already opened a reasoning block, so that the
///         reply begins inside it. By default what the pinned formats say.
///     calls_in_reasoning: Whether calls drafted in reasoning count as calls.
///     buffer_arguments: While streaming, whether argument deltas come once the arguments are
///         complete (True), or value by value.
///     stop_on_text_loop: Whether a reply that begins to repeat itself ends there: a fault of the
///         kind `text_loop` says at which byte the repetition began, what came before it is kept,
///         and chunks that still come are ignored. See `TextLoopDetector` for what is found; in
///         the arguments of calls only cycles that go on for pages are.
///     max_depth: Levels of nesting that arguments may have.
///     max_reply_bytes: Bytes of a reply that are read.
///     max_calls: Calls of one reply.
///     max_argument_bytes: Bytes of the arguments of one call.
///
/// What goes over a limit becomes a fault; what came before is kept.
///
/// Raises:
///     ConfigurationError: When a format label is unknown or given twice, a tool definition
///         cannot be read, or a limit is negative.
///
/// Example:
///     >>> parser = turnwarden.ResponseParser(formats=["hermes"])
///     >>> parser.parse('<tool_call>{"name": "ping", "arguments": {}}</tool_call>').tool_calls[0].name
///     'ping'
#[pyclass(frozen, module = "turnwarden", name = "ResponseParser")]
pub(crate) struct PyResponseParser {
    parser: Parser,
    settings: Settings,
}

impl PyResponseParser {
    fn from_settings(settings: Settings) -> PyResult<Self> {
        Ok(Self {
            parser: settings.parser()?,
            settings,
        })
    }
}

#[pymethods]
impl PyResponseParser {
    #[new]
    #[pyo3(signature = (
        formats=None, tools=None, *, reasoning_open=None, calls_in_reasoning=false,
        buffer_arguments=true, stop_on_text_loop=false, max_depth=None, max_reply_bytes=None,
        max_calls=None, max_argument_bytes=None,
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the options of a parser, all keywords"
    )]
    fn new(
        formats: Option<&Bound<'_, PyAny>>,
        tools: Option<&Bound<'_, PyAny>>,
        reasoning_open: Option<bool>,
        calls_in_reasoning: bool,
        buffer_arguments: bool,
        stop_on_text_loop: bool,
        max_depth: Option<Limit>,
        max_reply_bytes: Option<Limit>,
        max_calls: Option<Limit>,
        max_argument_bytes: Option<Limit>,
    ) -> PyResult<Self> {
        let defaults = Settings::default();
        let chosen = formats.map(read_formats).transpose()?;
        let opened = chosen.as_ref().is_some_and(Chosen::reasoning_open);
        let (labels, own_formats) = match chosen {
            Some(chosen) => (Some(chosen.labels), chosen.own),
            None => (None, Vec::new()),
        };
        Self::from_settings(Settings {
            formats: labels,
            own_formats,
            tools: tools.map(read_tools).transpose()?,
            reasoning_open: reasoning_open.unwrap_or(opened),
            calls_in_reasoning,
            buffer_arguments,
            stop_on_text_loop,
            max_depth: max_depth.map_or(defaults.max_depth, |limit| limit.0),
            max_reply_bytes: max_reply_bytes.map_or(defaults.max_reply_bytes, |limit| limit.0),
            max_calls: max_calls.map_or(defaults.max_calls, |limit| limit.0),
            max_argument_bytes: max_argument_bytes
                .map_or(defaults.max_argument_bytes, |limit| limit.0),
        })
    }

    /// Make a parser for the formats of a model, by the name that people use for it.
    ///
    /// Organisations, sizes and quantisations around the name do not matter. When the model's
    /// template opens the reasoning block, `reasoning_open` is set.
    ///
    /// Args:
    ///     name: The model's name, such as `Qwen/Qwen2.5-7B-Instruct` or `hermes3:8b`.
    ///     tools: As for `ResponseParser`, and so the other options.
    ///
    /// Raises:
    ///     UnknownModelError: When no format knows the model.
    ///
    /// Example:
    ///     >>> turnwarden.ResponseParser.for_model("NousResearch/Hermes-3-Llama-3.1-8B")
    ///     ResponseParser(formats=['hermes'])
    #[classmethod]
    #[pyo3(signature = (
        name, tools=None, *, reasoning_open=None, calls_in_reasoning=false,
        buffer_arguments=true, stop_on_text_loop=false, max_depth=None, max_reply_bytes=None,
        max_calls=None, max_argument_bytes=None,
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the options of a parser, all keywords"
    )]
    fn for_model(
        _class: &Bound<'_, PyType>,
        name: Utf8,
        tools: Option<&Bound<'_, PyAny>>,
        reasoning_open: Option<bool>,
        calls_in_reasoning: bool,
        buffer_arguments: bool,
        stop_on_text_loop: bool,
        max_depth: Option<Limit>,
        max_reply_bytes: Option<Limit>,
        max_calls: Option<Limit>,
        max_argument_bytes: Option<Limit>,
    ) -> PyResult<Self> {
        let Some(model) = extract::formats_for_model(&name.0) else {
            return Err(Error::UnknownModel(name.0).into());
        };
        let defaults = Settings::default();
        Self::from_settings(Settings {
            formats: Some(model.labels.into_iter().map(str::to_owned).collect()),
            own_formats: Vec::new(),
            tools: tools.map(read_tools).transpose()?,
            reasoning_open: reasoning_open.unwrap_or(model.reasoning_open),
            calls_in_reasoning,
            buffer_arguments,
            stop_on_text_loop,
            max_depth: max_depth.map_or(defaults.max_depth, |limit| limit.0),
            max_reply_bytes: max_reply_bytes.map_or(defaults.max_reply_bytes, |limit| limit.0),
            max_calls: max_calls.map_or(defaults.max_calls, |limit| limit.0),
            max_argument_bytes: max_argument_bytes
                .map_or(defaults.max_argument_bytes, |limit| limit.0),
        })
    }

    /// Parse a reply that is there as a whole.
    ///
    /// Args:
    ///     text: The raw text of the model's reply, `str` or UTF-8 `bytes`. Lone surrogates and
    ///         invalid UTF-8 become U+FFFD, each recorded in `reply.repairs`.
    ///
    /// Raises:
    ///     WrongTypeError: When `text` is neither; no text whatever raises anything.
    ///
    /// Cost: linear in the text.
    fn parse(&self, text: &Bound<'_, PyAny>) -> PyResult<PyReply> {
        let source = read_text(text, "a reply")?;
        let data = parse_text(text.py(), &self.parser, source);
        Ok(PyReply::from_data(data))
    }

    /// Begin to parse a reply that arrives in chunks.
    ///
    /// Example:
    ///     >>> stream = turnwarden.ResponseParser().stream()
    ///     >>> stream.feed("Hel"), stream.feed("lo")
    ///     ([TextDelta('Hel')], [TextDelta('lo')])
    ///     >>> stream.finish()[-1].reply.text
    ///     'Hello'
    fn stream(&self) -> PyResponseStream {
        PyResponseStream::new(&self.parser)
    }

    /// Parse chunks as they come, and give the events.
    ///
    /// Args:
    ///     chunks: An iterable of `str` or `bytes`; bytes may be cut inside a character.
    ///
    /// Returns:
    ///     An iterator over events; its `reply` is what was found so far, also when the source of
    ///     the chunks raises.
    ///
    /// Example:
    ///     >>> for event in turnwarden.ResponseParser().iter(["Hel", "lo"]):
    ///     ...     print(type(event).__name__)
    ///     TextDelta
    ///     TextDelta
    ///     ReplyFinished
    #[pyo3(name = "iter")]
    fn events_of(&self, chunks: &Bound<'_, PyAny>) -> PyResult<PyEventIterator> {
        PyEventIterator::new(self.stream(), chunks)
    }

    /// Parse chunks from an asynchronous (or plain) iterable, and give the events.
    ///
    /// The asynchronous twin of `iter`, for `async for`.
    fn aiter<'py>(&self, chunks: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        static EVENTS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = chunks.py();
        let class = EVENTS.import(py, "turnwarden.parsing", "AsyncEvents")?;
        class.call1((self.stream(), chunks))
    }

    /// Parse a batch on all cores, without the interpreter lock.
    ///
    /// Args:
    ///     texts: An iterable of replies, each `str` or `bytes`.
    ///     threads: How many threads at most; as many as there are cores by default.
    ///
    /// Returns:
    ///     The replies, in the order of the texts.
    #[pyo3(signature = (texts, *, threads=None))]
    fn parse_many<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyList>> {
        parse_batch(&self.parser, texts, threads)
    }

    /// The labels that the parser is pinned to, or None when it detects the format.
    #[getter]
    fn formats<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        match &self.settings.formats {
            Some(formats) => PyTuple::new(py, formats).map(Some),
            None => Ok(None),
        }
    }

    /// Whether replies begin inside a reasoning block.
    #[getter]
    fn reasoning_open(&self) -> bool {
        self.settings.reasoning_open
    }

    /// Whether calls drafted in reasoning count.
    #[getter]
    fn calls_in_reasoning(&self) -> bool {
        self.settings.calls_in_reasoning
    }

    /// Whether argument deltas come once the arguments are complete.
    #[getter]
    fn buffer_arguments(&self) -> bool {
        self.settings.buffer_arguments
    }

    /// Whether a reply that begins to repeat itself ends there.
    #[getter]
    fn stop_on_text_loop(&self) -> bool {
        self.settings.stop_on_text_loop
    }

    /// Levels of nesting that arguments may have.
    #[getter]
    fn max_depth(&self) -> usize {
        self.settings.max_depth
    }

    /// Bytes of a reply that are read.
    #[getter]
    fn max_reply_bytes(&self) -> usize {
        self.settings.max_reply_bytes
    }

    /// Calls of one reply.
    #[getter]
    fn max_calls(&self) -> usize {
        self.settings.max_calls
    }

    /// Bytes of the arguments of one call.
    #[getter]
    fn max_argument_bytes(&self) -> usize {
        self.settings.max_argument_bytes
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> Option<bool> {
        let other = other.cast::<Self>().ok()?;
        Some(self.settings == other.get().settings)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.settings.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let settings = &self.settings;
        let defaults = Settings::default();
        let mut options = Vec::new();
        if let Some(formats) = &settings.formats {
            let labels: Vec<_> = formats.iter().map(|label| format!("'{label}'")).collect();
            options.push(format!("formats=[{}]", labels.join(", ")));
        }
        if settings.tools.is_some() {
            options.push("tools=[...]".to_owned());
        }
        for (name, value, default) in [
            ("reasoning_open", settings.reasoning_open, false),
            ("calls_in_reasoning", settings.calls_in_reasoning, false),
            ("buffer_arguments", settings.buffer_arguments, true),
            ("stop_on_text_loop", settings.stop_on_text_loop, false),
        ] {
            if value != default {
                options.push(format!("{name}={}", if value { "True" } else { "False" }));
            }
        }
        for (name, value, default) in [
            ("max_depth", settings.max_depth, defaults.max_depth),
            (
                "max_reply_bytes",
                settings.max_reply_bytes,
                defaults.max_reply_bytes,
            ),
            ("max_calls", settings.max_calls, defaults.max_calls),
            (
                "max_argument_bytes",
                settings.max_argument_bytes,
                defaults.max_argument_bytes,
            ),
        ] {
            if value != default {
                options.push(format!("{name}={value}"));
            }
        }
        format!("ResponseParser({})", options.join(", "))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyDict>,))> {
        let settings = &self.settings;
        let state = PyDict::new(py);
        state.set_item("formats", settings.formats.as_ref())?;
        let own = settings.own_formats.iter().map(extract::Format::to_json);
        state.set_item("own_formats", own.collect::<Vec<_>>())?;
        state.set_item("tools", settings.tools.as_ref())?;
        state.set_item("reasoning_open", settings.reasoning_open)?;
        state.set_item("calls_in_reasoning", settings.calls_in_reasoning)?;
        state.set_item("buffer_arguments", settings.buffer_arguments)?;
        state.set_item("stop_on_text_loop", settings.stop_on_text_loop)?;
        state.set_item("max_depth", settings.max_depth)?;
        state.set_item("max_reply_bytes", settings.max_reply_bytes)?;
        state.set_item("max_calls", settings.max_calls)?;
        state.set_item("max_argument_bytes", settings.max_argument_bytes)?;
        let restore = py.get_type::<Self>().getattr(intern!(py, "_restore"))?;
        Ok((restore, (state,)))
    }

    /// Make a pickled parser again.
    #[classmethod]
    fn _restore(_class: &Bound<'_, PyType>, state: &Bound<'_, PyDict>) -> PyResult<Self> {
        let field = |name: &str| state.as_any().get_item(name);
        let own: Vec<String> = field("own_formats")?.extract()?;
        let own = own.iter().map(|json| extract::Format::from_json(json));
        Self::from_settings(Settings {
            formats: field("formats")?.extract()?,
            own_formats: own
                .collect::<Result<_, _>>()
                .map_err(|error| Error::Configuration(error.to_string()))?,
            tools: field("tools")?.extract()?,
            reasoning_open: field("reasoning_open")?.extract()?,
            calls_in_reasoning: field("calls_in_reasoning")?.extract()?,
            buffer_arguments: field("buffer_arguments")?.extract()?,
            stop_on_text_loop: field("stop_on_text_loop")?.extract()?,
            max_depth: field("max_depth")?.extract()?,
            max_reply_bytes: field("max_reply_bytes")?.extract()?,
            max_calls: field("max_calls")?.extract()?,
            max_argument_bytes: field("max_argument_bytes")?.extract()?,
        })
    }
}

/// The formats that a parser was told to look for.
#[derive(Default)]
struct Chosen {
    labels: Vec<String>,
    /// Those that are not built in.
    own: Vec<extract::Format>,
}

impl Chosen {
    fn add(&mut self, label: String) -> PyResult<()> {
        if self.labels.contains(&label) {
            let message = format!("two formats are named {label:?}; give each label once");
            return Err(Error::Configuration(message).into());
        }
        self.labels.push(label);
        Ok(())
    }

    /// Whether the templates of these formats open a block of reasoning.
    fn reasoning_open(&self) -> bool {
        let built_in = self.labels.iter().filter_map(|l| extract::format_named(l));
        let mut formats = self.own.iter().chain(built_in.map(|format| &**format));
        formats.any(|format| format.reasoning_open)
    }
}

/// Formats: an iterable of labels and `Format` objects, but no single `str`.
fn read_formats(formats: &Bound<'_, PyAny>) -> PyResult<Chosen> {
    const EXPECTED: &str = "an iterable of format labels and Format objects";
    if formats.is_instance_of::<PyString>() {
        return Err(Error::wrong_type("formats", EXPECTED, formats).into());
    }
    let Ok(items) = formats.try_iter() else {
        return Err(Error::wrong_type("formats", EXPECTED, formats).into());
    };
    let mut chosen = Chosen::default();
    for (index, item) in items.enumerate() {
        let item = item?;
        if item.is_instance_of::<PyString>() {
            chosen.add(item.extract::<Utf8>()?.0)?;
        } else if let Ok(format) = item.cast::<PyFormat>() {
            let format = format.get().declaration();
            chosen.add(format.label.clone())?;
            if extract::format_named(&format.label).is_none_or(|known| **known != *format) {
                chosen.own.push(format.clone());
            }
        } else {
            let name = format!("formats[{index}]");
            return Err(Error::wrong_type(name, "a label (str) or a Format", &item).into());
        }
    }
    Ok(chosen)
}

/// Tool definitions as a JSON array.
fn read_tools(tools: &Bound<'_, PyAny>) -> PyResult<String> {
    const EXPECTED: &str = "an iterable of tool definitions";
    if tools.is_instance_of::<PyString>() || tools.is_instance_of::<PyDict>() {
        return Err(Error::wrong_type("tools", EXPECTED, tools).into());
    }
    let Ok(definitions) = tools.try_iter() else {
        return Err(Error::wrong_type("tools", EXPECTED, tools).into());
    };
    let definitions = definitions
        .enumerate()
        .map(|(index, definition)| read_tool(definition?, index))
        .collect::<PyResult<Vec<_>>>()?;
    let list = PyList::new(tools.py(), definitions)?;
    write_json(list.as_any(), Foreign::Convert)
}

/// A tool definition: no scalar, no text and no list.
fn read_tool(definition: Bound<'_, PyAny>, index: usize) -> PyResult<Bound<'_, PyAny>> {
    const EXPECTED: &str = "a mapping or an SDK object";
    let none = definition.is_none()
        || definition.is_instance_of::<PyString>()
        || definition.is_instance_of::<PyBytes>()
        || definition.is_instance_of::<PyInt>()
        || definition.is_instance_of::<PyFloat>()
        || definition.is_instance_of::<PyList>()
        || definition.is_instance_of::<PyTuple>();
    if none {
        return Err(Error::wrong_type(format!("tools[{index}]"), EXPECTED, &definition).into());
    }
    if let Ok(members) = definition.cast::<PyDict>() {
        let function = members.get_item("function")?;
        let inner = function
            .as_ref()
            .and_then(|inner| inner.cast::<PyDict>().ok());
        let name = inner.unwrap_or(members).get_item("name")?;
        if let Some(name) =
            name.filter(|name| !name.is_none() && !name.is_instance_of::<PyString>())
        {
            let place = format!("the name of tools[{index}]");
            return Err(Error::wrong_type(place, "a str", &name).into());
        }
    }
    Ok(definition)
}

/// Parse a batch on several threads, detached from the interpreter.
pub(crate) fn parse_batch<'py>(
    parser: &Parser,
    texts: &Bound<'py, PyAny>,
    threads: Option<Threads>,
) -> PyResult<Bound<'py, PyList>> {
    let py = texts.py();
    if texts.is_instance_of::<PyString>() || texts.is_instance_of::<PyBytes>() {
        return Err(Error::wrong_type("texts", "an iterable of replies", texts).into());
    }
    let Ok(items) = texts.try_iter() else {
        return Err(Error::wrong_type("texts", "an iterable of replies", texts).into());
    };
    let items = items.collect::<PyResult<Vec<_>>>()?;
    let sources = items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            if item.is_instance_of::<PyString>() || item.is_instance_of::<PyBytes>() {
                return read_text(item, "a reply");
            }
            Err(Error::wrong_type(format!("texts[{index}]"), "str or bytes", item).into())
        })
        .collect::<PyResult<Vec<_>>>()?;
    let threads = threads
        .map(|threads| threads.0)
        .or_else(|| thread::available_parallelism().ok())
        .map_or(1, NonZero::get);
    let replies = py.detach(|| {
        let texts: Vec<&str> = sources.iter().map(Text::as_str).collect();
        extract::parse_many(parser, &texts, threads)
    });
    let shown = replies
        .into_iter()
        .zip(sources)
        .map(|(reply, source)| PyReply::from_data(ReplyData::new(reply, source.into_repairs())));
    PyList::new(py, shown.collect::<Vec<_>>())
}
