//! `ToolCall`: one call that a model asked for.
//!
//! The call's data stays in Rust, shared by everything that shows the call; the arguments become
//! Python objects when `arguments` is first read.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use turnwarden_extract::{self as extract, json};
use turnwarden_signature::{Signature, signature_of_json};

use super::text::{Text, Utf8, read_text};
use super::values::{Foreign, read_object, write_json};
use crate::errors::Error;

/// A call and what was computed from it.
#[derive(Debug)]
pub(crate) struct Call {
    inner: extract::ToolCall,
    signature: OnceLock<Signature>,
}

impl Call {
    pub(crate) fn new(inner: extract::ToolCall) -> Arc<Self> {
        Arc::new(Self {
            inner,
            signature: OnceLock::new(),
        })
    }

    /// The parsed call.
    pub(crate) fn get(&self) -> &extract::ToolCall {
        &self.inner
    }

    /// The call's signature, computed on first use.
    pub(crate) fn signature(&self) -> Signature {
        *self
            .signature
            .get_or_init(|| signature_of_json(&self.inner.name, &self.inner.arguments))
    }

    /// The id, unless it was made here: made ids do not take part in comparisons.
    fn given_id(&self) -> Option<&str> {
        (!self.inner.id_generated).then_some(self.inner.id.as_str())
    }
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.inner.name == other.inner.name
            && self.given_id() == other.given_id()
            && (self.inner.arguments == other.inner.arguments
                || self.signature() == other.signature())
    }
}

impl Eq for Call {}

impl Hash for Call {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.given_id().hash(state);
        self.signature().hash(state);
    }
}

/// One call that a model asked for: a tool's name and its arguments.
///
/// Calls come from a parsed reply; they can also be made by hand. Two calls are equal when their
/// names, their arguments and the ids that the model gave are; generated ids do not count.
///
/// Args:
///     name: The tool's name.
///     arguments: A mapping, the text of a JSON object (healed when it needs to be), or None for
///         no arguments.
///     id: The call's id; by default `call_` and 24 random characters.
///
/// Attributes:
///     id (str): The model's own id, or a generated one.
///     name (str): The tool's name.
///     arguments (dict[str, Any]): The arguments; built on first use and kept, so that changes to
///         the dict are seen by later readers of `arguments`, but not by the other attributes.
///     arguments_json (str): The arguments as compact JSON: the model's own text less white space
///         outside strings, only repaired parts rewritten.
///     signature (str): 128 bits as 32 hexadecimal digits, the same for equal names and
///         arguments in any order of keys; `call_signature(name, arguments)` gives the same.
///     repaired (bool): Whether anything in the call had to be healed.
///
/// Raises:
///     WrongTypeError: When `arguments` holds something that JSON cannot carry.
///     JSONRepairError: When `arguments` is a text that cannot be healed to JSON.
///     ConfigurationError: When the name is empty, or the text is JSON but no object.
///
/// Example:
///     >>> call = turnwarden.ToolCall("search", {"q": "tides", "limit": 2}, id="call_1")
///     >>> call
///     ToolCall('search', {"q":"tides","limit":2}, id='call_1')
///     >>> call.arguments["q"], call.arguments_json
///     ('tides', '{"q":"tides","limit":2}')
///     >>> match call:
///     ...     case turnwarden.ToolCall("search", {"q": query}):
///     ...         print(query)
///     tides
#[pyclass(frozen, module = "turnwarden", name = "ToolCall")]
pub(crate) struct PyToolCall {
    call: Arc<Call>,
    arguments: OnceLock<Py<PyDict>>,
}

impl PyToolCall {
    /// Show a call to Python.
    pub(crate) fn from_call(call: Arc<Call>) -> Self {
        Self {
            call,
            arguments: OnceLock::new(),
        }
    }

    /// The call's data.
    pub(crate) fn call(&self) -> &Arc<Call> {
        &self.call
    }
}

#[pymethods]
impl PyToolCall {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&'static str, &'static str) = ("name", "arguments");

    #[new]
    #[pyo3(signature = (name, arguments=None, *, id=None))]
    fn new(name: Utf8, arguments: Option<&Bound<'_, PyAny>>, id: Option<Utf8>) -> PyResult<Self> {
        let (name, id) = (name.0, id.map(|id| id.0));
        if name.is_empty() {
            return Err(Error::Configuration("a tool's name cannot be empty".to_owned()).into());
        }
        let (arguments, repaired) = read_arguments(arguments)?;
        Ok(Self::from_call(Call::new(extract::ToolCall {
            id_generated: id.is_none(),
            id: id.unwrap_or_else(extract::call_id),
            name,
            arguments,
            repaired,
            span: extract::Span::default(),
        })))
    }

    #[getter]
    fn id(&self) -> &str {
        &self.call.inner.id
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        super::keys::key(py, &self.call.inner.name)
    }

    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if let Some(arguments) = self.arguments.get() {
            return Ok(arguments.bind(py).clone());
        }
        // Built outside the cell: waiting inside it would mean letting the interpreter go. Of two
        // threads that build at the same time, one is the first, and both give its dict.
        let built = read_object(py, &self.call.inner.arguments)?.unbind();
        Ok(self.arguments.get_or_init(|| built).bind(py).clone())
    }

    #[getter]
    fn arguments_json(&self) -> &str {
        &self.call.inner.arguments
    }

    #[getter]
    fn signature(&self) -> String {
        self.call.signature().to_string()
    }

    #[getter]
    fn repaired(&self) -> bool {
        self.call.inner.repaired
    }

    /// Give the call as plain data: id, name, arguments, repaired.
    ///
    /// Example:
    ///     >>> turnwarden.ToolCall("ping", id="c1").to_dict()
    ///     {'id': 'c1', 'name': 'ping', 'arguments': {}, 'repaired': False}
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let call = &self.call.inner;
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "id"), &call.id)?;
        dict.set_item(intern!(py, "name"), &call.name)?;
        dict.set_item(intern!(py, "arguments"), read_object(py, &call.arguments)?)?;
        dict.set_item(intern!(py, "repaired"), call.repaired)?;
        Ok(dict)
    }

    /// Give the call as an item of `tool_calls` in an OpenAI chat message.
    ///
    /// Example:
    ///     >>> turnwarden.ToolCall("ping", id="c1").to_openai()
    ///     {'id': 'c1', 'type': 'function', 'function': {'name': 'ping', 'arguments': '{}'}}
    pub(crate) fn to_openai<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let call = &self.call.inner;
        let function = PyDict::new(py);
        function.set_item(intern!(py, "name"), &call.name)?;
        function.set_item(intern!(py, "arguments"), &call.arguments)?;
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "id"), &call.id)?;
        dict.set_item(intern!(py, "type"), intern!(py, "function"))?;
        dict.set_item(intern!(py, "function"), function)?;
        Ok(dict)
    }

    /// Give the call as a `tool_use` block of an Anthropic message.
    ///
    /// Example:
    ///     >>> turnwarden.ToolCall("ping", id="c1").to_anthropic()
    ///     {'type': 'tool_use', 'id': 'c1', 'name': 'ping', 'input': {}}
    pub(crate) fn to_anthropic<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let call = &self.call.inner;
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "type"), intern!(py, "tool_use"))?;
        dict.set_item(intern!(py, "id"), &call.id)?;
        dict.set_item(intern!(py, "name"), &call.name)?;
        dict.set_item(intern!(py, "input"), read_object(py, &call.arguments)?)?;
        Ok(dict)
    }

    /// Give the message that answers this call in an OpenAI chat.
    ///
    /// Args:
    ///     value: What the tool gave. A `str` is sent as it is, an exception as
    ///         `Error: TypeName: message`, anything else as compact JSON; pydantic models,
    ///         dataclasses and sets become plain data, and what JSON does not know its `str`.
    ///
    /// Example:
    ///     >>> call = turnwarden.ToolCall("search", {"q": "x"}, id="c1")
    ///     >>> call.to_openai_result({"hits": 2})
    ///     {'role': 'tool', 'tool_call_id': 'c1', 'content': '{"hits":2}'}
    fn to_openai_result<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let py = value.py();
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "role"), intern!(py, "tool"))?;
        dict.set_item(intern!(py, "tool_call_id"), &self.call.inner.id)?;
        dict.set_item(intern!(py, "content"), result_text(value)?)?;
        Ok(dict)
    }

    /// Give the `tool_result` block that answers this call in an Anthropic conversation.
    ///
    /// Args:
    ///     value: As for `to_openai_result`; an exception also sets `is_error`.
    ///     is_error: Whether the result is an error although it is no exception.
    ///
    /// Example:
    ///     >>> turnwarden.ToolCall("ping", id="c1").to_anthropic_result(ValueError("no host"))
    ///     {'type': 'tool_result', 'tool_use_id': 'c1', 'content': 'Error: ValueError: no host', 'is_error': True}
    #[pyo3(signature = (value, *, is_error=false))]
    fn to_anthropic_result<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        is_error: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = value.py();
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "type"), intern!(py, "tool_result"))?;
        dict.set_item(intern!(py, "tool_use_id"), &self.call.inner.id)?;
        dict.set_item(intern!(py, "content"), result_text(value)?)?;
        if is_error || value.is_instance_of::<PyException>() {
            dict.set_item(intern!(py, "is_error"), true)?;
        }
        Ok(dict)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> Option<bool> {
        let other = other.cast::<Self>().ok()?;
        Some(self.call == other.get().call)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.call.hash(&mut hasher);
        hasher.finish()
    }

    pub(crate) fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let call = &self.call.inner;
        let name = PyString::new(py, &call.name).repr()?;
        let arguments = shorten(&call.arguments, 80);
        if call.id_generated {
            return Ok(format!("ToolCall({name}, {arguments})"));
        }
        let id = PyString::new(py, &call.id).repr()?;
        Ok(format!("ToolCall({name}, {arguments}, id={id})"))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, CallState)> {
        let call = self.call.inner.clone();
        let restore = py.get_type::<Self>().getattr(intern!(py, "_restore"))?;
        let state = (
            call.id,
            call.id_generated,
            call.name,
            call.arguments,
            call.repaired,
            (call.span.start, call.span.end),
        );
        Ok((restore, state))
    }

    /// Make a pickled call again.
    #[staticmethod]
    fn _restore(
        id: String,
        id_generated: bool,
        name: String,
        arguments: String,
        repaired: bool,
        span: (usize, usize),
    ) -> PyResult<Self> {
        let arguments = strict_object(arguments)?;
        Ok(Self::from_call(Call::new(extract::ToolCall {
            id,
            id_generated,
            name,
            arguments,
            repaired,
            span: extract::Span {
                start: span.0,
                end: span.1,
            },
        })))
    }
}

/// What pickle keeps of a call.
type CallState = (String, bool, String, String, bool, (usize, usize));

/// The arguments of a call made by hand, and whether they were healed.
fn read_arguments(arguments: Option<&Bound<'_, PyAny>>) -> PyResult<(String, bool)> {
    let Some(value) = arguments else {
        return Ok(("{}".to_owned(), false));
    };
    if value.is_instance_of::<PyString>() {
        let text = read_text(value, "arguments")?;
        return heal_arguments(&text);
    }
    let written = write_json(value, Foreign::Refuse)?;
    if written.starts_with('{') {
        return Ok((written, false));
    }
    Err(Error::wrong_type("arguments", "a mapping, JSON text or None", value).into())
}

fn heal_arguments(text: &Text<'_>) -> PyResult<(String, bool)> {
    if text.as_str().trim().is_empty() {
        return Ok(("{}".to_owned(), false));
    }
    let healed =
        json::repair(text.as_str(), &json::ReaderOptions::default()).map_err(Error::Repair)?;
    let repaired = !healed.repairs.is_empty();
    strict_object(healed.json).map(|arguments| (arguments, repaired))
}

fn strict_object(arguments: String) -> PyResult<String> {
    if arguments.starts_with('{') {
        return Ok(arguments);
    }
    let message = format!(
        "arguments must be a JSON object, not {}",
        shorten(&arguments, 40)
    );
    Err(Error::Configuration(message).into())
}

/// A tool's result as the text of a message.
fn result_text<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let py = value.py();
    if let Ok(text) = value.cast_exact::<PyString>() {
        return Ok(text.clone());
    }
    if value.is_instance_of::<PyString>() {
        let text = read_text(value, "a result")?.into_string();
        return Ok(PyString::new(py, &text));
    }
    if value.is_instance_of::<PyException>() {
        let kind = value.get_type().name()?;
        let message = value.str()?;
        return Ok(PyString::new(py, &format!("Error: {kind}: {message}")));
    }
    Ok(PyString::new(py, &write_json(value, Foreign::Convert)?))
}

/// At most `length` characters of a text, with a mark where it was cut.
pub(crate) fn shorten(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
