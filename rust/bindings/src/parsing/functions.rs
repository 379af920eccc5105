//! The functions of the module: one reply in, one answer out.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyMapping, PyString, PyTuple};
use turnwarden_extract::json;

use super::limit::{Limit, Threads};
use super::parser::{PyResponseParser, given_parser, parse_batch, parse_text};
use super::reply::{PyReply, ReplyData};
use super::text::read_text;
use super::values::read_json;
use super::workflow::{PyWorkflowJsonResponse, PyWorkflowParseResult};
use crate::errors::Error;

/// Parse a reply with a given parser, or the default one.
fn read_reply(
    text: &Bound<'_, PyAny>,
    parser: Option<&Bound<'_, PyResponseParser>>,
) -> PyResult<ReplyData> {
    let source = read_text(text, "a reply")?;
    Ok(parse_text(text.py(), given_parser(parser)?, source))
}

/// Parse a model's reply: calls, visible text, reasoning.
///
/// Args:
///     text: The raw text of the reply, `str` or UTF-8 `bytes`. Lone surrogates and invalid UTF-8
///         become U+FFFD, each recorded in `reply.repairs`: a reply is never lost over its encoding.
///     parser: The parser to use; one that detects the format by default.
///
/// Raises:
///     WrongTypeError: When `text` is neither `str` nor `bytes`; no text whatever raises anything.
///
/// Cost: linear in the text. Values are built as Python objects only when they are read.
///
/// Example:
///     >>> reply = turnwarden.parse('{"content": "On it.", "next": [{"mcp": "ping", "args": {}}]}')
///     >>> reply.text, reply.tool_calls
///     ('On it.', (ToolCall('ping', {}),))
#[pyfunction]
#[pyo3(signature = (text, parser=None))]
pub(crate) fn parse(
    text: &Bound<'_, PyAny>,
    parser: Option<&Bound<'_, PyResponseParser>>,
) -> PyResult<PyReply> {
    read_reply(text, parser).map(PyReply::from_data)
}

/// Parse a batch of replies on all cores, without the interpreter lock.
///
/// Args:
///     texts: An iterable of replies, each `str` or `bytes`.
///     parser: The parser to use; one that detects the format by default.
///     threads: How many threads at most; as many as there are cores by default.
///
/// Returns:
///     The replies, in the order of the texts.
///
/// Example:
///     >>> [reply.text for reply in turnwarden.parse_many(["One", b"Two"])]
///     ['One', 'Two']
#[pyfunction]
#[pyo3(signature = (texts, parser=None, *, threads=None))]
pub(crate) fn parse_many<'py>(
    texts: &Bound<'py, PyAny>,
    parser: Option<&Bound<'py, PyResponseParser>>,
    threads: Option<Threads>,
) -> PyResult<Bound<'py, PyList>> {
    parse_batch(given_parser(parser)?, texts, threads)
}

/// Read a reply as workflow JSON; None when it is something else, or is not finished.
///
/// Example:
///     >>> turnwarden.parse_workflow_json('{"content": "Hi", "next": []}')
///     WorkflowJsonResponse('Hi', ())
///     >>> turnwarden.parse_workflow_json('{"content": "Hi", "next": [{"mcp": "pi')
#[pyfunction]
#[pyo3(signature = (text, parser=None))]
pub(crate) fn parse_workflow_json(
    text: &Bound<'_, PyAny>,
    parser: Option<&Bound<'_, PyResponseParser>>,
) -> PyResult<Option<PyWorkflowJsonResponse>> {
    PyReply::from_data(read_reply(text, parser)?).workflow(text.py())
}

/// Read the complete calls of a reply, in any format.
///
/// Example:
///     >>> turnwarden.parse_tool_calls('<tool_call>{"name": "ping", "arguments": {}}</tool_call>')
///     (ToolCall('ping', {}),)
#[pyfunction]
#[pyo3(signature = (text, parser=None))]
pub(crate) fn parse_tool_calls<'py>(
    text: &Bound<'py, PyAny>,
    parser: Option<&Bound<'py, PyResponseParser>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let reply = PyReply::from_data(read_reply(text, parser)?);
    Ok(reply.tool_calls(text.py())?.clone())
}

/// Read what the user should see: the workflow's content when there is one, else the visible text.
///
/// Example:
///     >>> turnwarden.extract_text_content("<think>Hm.</think>Hello")
///     'Hello'
#[pyfunction]
#[pyo3(signature = (text, parser=None))]
pub(crate) fn extract_text_content<'py>(
    text: &Bound<'py, PyAny>,
    parser: Option<&Bound<'py, PyResponseParser>>,
) -> PyResult<Bound<'py, PyString>> {
    let data = read_reply(text, parser)?;
    Ok(PyString::new(text.py(), data.text_content()))
}

/// Tell whether a reply holds at least one complete call.
///
/// Example:
///     >>> turnwarden.has_tool_calls("No calls here.")
///     False
#[pyfunction]
#[pyo3(signature = (text, parser=None))]
pub(crate) fn has_tool_calls(
    text: &Bound<'_, PyAny>,
    parser: Option<&Bound<'_, PyResponseParser>>,
) -> PyResult<bool> {
    Ok(!read_reply(text, parser)?.tool_calls.is_empty())
}

/// Read workflow, calls, text and cleaned reply at once.
///
/// `success` is: a workflow or at least one call.
///
/// Example:
///     >>> turnwarden.parse_workflow_response("Just text.").success
///     False
#[pyfunction]
#[pyo3(signature = (text, parser=None))]
pub(crate) fn parse_workflow_response(
    text: &Bound<'_, PyAny>,
    parser: Option<&Bound<'_, PyResponseParser>>,
) -> PyResult<PyWorkflowParseResult> {
    let py = text.py();
    let reply = PyReply::from_data(read_reply(text, parser)?);
    let tool_calls = reply.tool_calls(py)?.clone().unbind();
    let workflow = match reply.workflow(py)? {
        Some(workflow) => Some(Py::new(py, workflow)?),
        None => None,
    };
    let data = reply.into_data();
    Ok(PyWorkflowParseResult {
        success: data.workflow.is_some() || !data.tool_calls.is_empty(),
        workflow,
        tool_calls,
        text_content: data.text_content().to_owned(),
        cleaned_response: data.cleaned,
    })
}

/// Give a reply without its reasoning and without the fences around its payload.
///
/// Example:
///     >>> turnwarden.clean_llm_response('<think>Hm.</think>```json\n{"content": "", "next": []}\n```')
///     '{"content": "", "next": []}'
#[pyfunction]
#[pyo3(signature = (text, parser=None))]
pub(crate) fn clean_llm_response<'py>(
    text: &Bound<'py, PyAny>,
    parser: Option<&Bound<'py, PyResponseParser>>,
) -> PyResult<Bound<'py, PyString>> {
    let data = read_reply(text, parser)?;
    Ok(PyString::new(text.py(), &data.cleaned))
}

/// Make a workflow response.
///
/// Args:
///     content: What the user should see.
///     next: The calls; each a `ToolCall`, or a mapping with `mcp` and `args`.
///
/// Example:
///     >>> turnwarden.create_workflow_response("On it.", [{"mcp": "ping", "args": {}}])
///     WorkflowJsonResponse('On it.', (ToolCall('ping', {}),))
#[pyfunction]
#[pyo3(signature = (content, next=None))]
pub(crate) fn create_workflow_response(
    content: &Bound<'_, PyAny>,
    next: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyWorkflowJsonResponse> {
    PyWorkflowJsonResponse::new(content, next)
}

/// Write a workflow response as compact JSON, non-ASCII characters kept.
///
/// Args:
///     workflow: A `WorkflowJsonResponse`, or a mapping with `content` and `next`.
///
/// Example:
///     >>> workflow = turnwarden.create_workflow_response("猫", [{"mcp": "ping", "args": {}}])
///     >>> turnwarden.serialize_workflow_response(workflow)
///     '{"content":"猫","next":[{"mcp":"ping","args":{}}]}'
#[pyfunction]
pub(crate) fn serialize_workflow_response(workflow: &Bound<'_, PyAny>) -> PyResult<String> {
    const EXPECTED: &str = "a WorkflowJsonResponse, or a mapping with `content` and `next`";
    let py = workflow.py();
    if let Ok(response) = workflow.cast::<PyWorkflowJsonResponse>() {
        return response.get().write(py);
    }
    let Ok(mapping) = workflow.cast::<PyMapping>() else {
        return Err(Error::wrong_type("workflow", EXPECTED, workflow).into());
    };
    let (content, next) = (intern!(py, "content"), intern!(py, "next"));
    for key in [content, next] {
        if !mapping.contains(key)? {
            let message = format!("the workflow has no `{key}`; it must be {EXPECTED}");
            return Err(Error::Configuration(message).into());
        }
    }
    PyWorkflowJsonResponse::new(&mapping.get_item(content)?, Some(&mapping.get_item(next)?))?
        .write(py)
}

/// Heal a bare JSON text and read it.
///
/// What is healed is the closed list of `RepairKind`; values are never invented, and strings that
/// are closed keep every character. Valid JSON is returned exactly as it says.
///
/// Args:
///     text: The text, `str` or UTF-8 `bytes`; prose and fences around the value are skipped.
///     max_depth: Levels of nesting that the value may have.
///
/// Returns:
///     The value: dict, list, str, int, float, bool or None.
///
/// Raises:
///     JSONRepairError: When there is nothing that can be read safely; it has `kind` and `offset`.
///     WrongTypeError: When `text` is neither `str` nor `bytes`.
///
/// Example:
///     >>> turnwarden.repair_json("{name: 'Oslo', tags: [1, 2,], ok: True")
///     {'name': 'Oslo', 'tags': [1, 2], 'ok': True}
#[pyfunction]
#[pyo3(signature = (text, *, max_depth=None))]
pub(crate) fn repair_json<'py>(
    text: &Bound<'py, PyAny>,
    max_depth: Option<Limit>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = text.py();
    let source = read_text(text, "a JSON text")?;
    let mut options = json::ReaderOptions::default();
    if let Some(max_depth) = max_depth {
        options.max_depth = max_depth.0;
    }
    let healed = json::repair(source.as_str(), &options).map_err(Error::Repair)?;
    read_json(py, &healed.json)
}
