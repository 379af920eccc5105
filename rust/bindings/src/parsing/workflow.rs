//! Workflow JSON as values: `{"content": ..., "next": [...]}`.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString, PyTuple};

use super::call::{PyToolCall, shorten};
use super::text::read_text;
use super::values::{read_object, write_string};
use crate::errors::Error;

/// A reply in workflow JSON: what the user should see, and the calls to make next.
///
/// Args:
///     content: What the user should see.
///     next: The calls; each a `ToolCall`, or a mapping with `mcp` (or `name`) and `args` (or
///         `arguments`, `params`, `parameters`, `input`).
///
/// Attributes:
///     content (str): What the user should see.
///     next (tuple[ToolCall, ...]): The calls.
///
/// Example:
///     >>> workflow = turnwarden.WorkflowJsonResponse("On it.", [{"mcp": "ping", "args": {}}])
///     >>> workflow.next[0].name
///     'ping'
///     >>> workflow.to_dict()
///     {'content': 'On it.', 'next': [{'mcp': 'ping', 'args': {}}]}
#[pyclass(frozen, module = "turnwarden", name = "WorkflowJsonResponse")]
pub(crate) struct PyWorkflowJsonResponse {
    pub(crate) content: String,
    pub(crate) next: Py<PyTuple>,
}

#[pymethods]
impl PyWorkflowJsonResponse {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&'static str, &'static str) = ("content", "next");

    #[new]
    #[pyo3(signature = (content, next=None))]
    pub(crate) fn new(
        content: &Bound<'_, PyAny>,
        next: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = content.py();
        if !content.is_instance_of::<PyString>() {
            return Err(Error::wrong_type("content", "str", content).into());
        }
        let content = read_text(content, "content")?.into_string();
        let calls = match next {
            None => Vec::new(),
            Some(next) => read_calls(next)?,
        };
        Ok(Self {
            content,
            next: PyTuple::new(py, calls)?.unbind(),
        })
    }

    #[getter]
    fn content(&self) -> &str {
        &self.content
    }

    #[getter]
    fn next<'py>(&self, py: Python<'py>) -> &Bound<'py, PyTuple> {
        self.next.bind(py)
    }

    /// Give the workflow as plain data, in the shape that models write.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut next = Vec::new();
        for call in self.calls(py)? {
            let call = call.get().call().get();
            let item = PyDict::new(py);
            item.set_item(intern!(py, "mcp"), &call.name)?;
            item.set_item(intern!(py, "args"), read_object(py, &call.arguments)?)?;
            next.push(item);
        }
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "content"), &self.content)?;
        dict.set_item(intern!(py, "next"), next)?;
        Ok(dict)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
        let Ok(other) = other.cast::<Self>() else {
            return Ok(None);
        };
        let (py, other) = (other.py(), other.get());
        Ok(Some(
            self.content == other.content && self.next.bind(py).eq(other.next.bind(py))?,
        ))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.content.hash(&mut hasher);
        self.next.bind(py).hash()?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let content = PyString::new(py, &shorten(&self.content, 80)).repr()?;
        let next = self.next.bind(py).repr()?;
        Ok(format!("WorkflowJsonResponse({content}, {next})"))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> (Bound<'py, PyAny>, (String, Bound<'py, PyTuple>)) {
        let workflow = slf.get();
        let next = workflow.next.bind(slf.py()).clone();
        (slf.get_type().into_any(), (workflow.content.clone(), next))
    }
}

impl PyWorkflowJsonResponse {
    fn calls<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyToolCall>>> {
        self.next
            .bind(py)
            .iter()
            .map(|call| Ok(call.cast_into::<PyToolCall>()?))
            .collect()
    }

    /// Write the workflow as compact JSON.
    pub(crate) fn write(&self, py: Python<'_>) -> PyResult<String> {
        let mut out = String::from("{\"content\":");
        write_string(&mut out, &self.content);
        out.push_str(",\"next\":[");
        for (index, call) in self.calls(py)?.into_iter().enumerate() {
            let call = call.get().call().get();
            if index > 0 {
                out.push(',');
            }
            out.push_str("{\"mcp\":");
            write_string(&mut out, &call.name);
            out.push_str(",\"args\":");
            out.push_str(&call.arguments);
            out.push('}');
        }
        out.push_str("]}");
        Ok(out)
    }
}

/// Read the items of `next`.
fn read_calls<'py>(next: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyToolCall>>> {
    let Ok(items) = next.try_iter() else {
        return Err(Error::wrong_type("next", "an iterable of calls", next).into());
    };
    items.map(|item| read_call(&item?)).collect()
}

fn read_call<'py>(item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyToolCall>> {
    const EXPECTED: &str = "a ToolCall, or a mapping with `mcp` and `args`";
    if let Ok(call) = item.cast::<PyToolCall>() {
        return Ok(call.clone());
    }
    let Ok(mapping) = item.cast::<PyMapping>() else {
        return Err(Error::wrong_type("an item of next", EXPECTED, item).into());
    };
    let Some(name) = first_member(mapping, &["name", "mcp"])? else {
        return Err(Error::Configuration(
            "an item of next has neither `mcp` nor `name`".to_owned(),
        )
        .into());
    };
    let keys = ["arguments", "args", "params", "parameters", "input"];
    let arguments = first_member(mapping, &keys)?;
    let id = first_member(mapping, &["id"])?;
    let options = PyDict::new(item.py());
    options.set_item("id", id)?;
    let class = item.py().get_type::<PyToolCall>();
    let call = class.call((name, arguments), Some(&options))?;
    Ok(call.cast_into::<PyToolCall>()?)
}

/// The first of some keys that a mapping has.
fn first_member<'py>(
    mapping: &Bound<'py, PyMapping>,
    keys: &[&str],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    for key in keys {
        if mapping.contains(key)? {
            return mapping.get_item(key).map(Some);
        }
    }
    Ok(None)
}

/// Everything the reference functions tell about one reply, at once.
///
/// Attributes:
///     success (bool): Whether there is a workflow or at least one call.
///     workflow (WorkflowJsonResponse | None): The reply as workflow JSON.
///     tool_calls (tuple[ToolCall, ...]): The complete calls, in any format.
///     text_content (str): The workflow's content, or else the visible text.
///     cleaned_response (str): The reply without reasoning and payload fences.
///
/// Example:
///     >>> result = turnwarden.parse_workflow_response('{"content": "Hi", "next": []}')
///     >>> result.success, result.text_content, result.tool_calls
///     (True, 'Hi', ())
#[pyclass(frozen, get_all, module = "turnwarden", name = "WorkflowParseResult")]
pub(crate) struct PyWorkflowParseResult {
    pub(crate) success: bool,
    pub(crate) workflow: Option<Py<PyWorkflowJsonResponse>>,
    pub(crate) tool_calls: Py<PyTuple>,
    pub(crate) text_content: String,
    pub(crate) cleaned_response: String,
}

#[pymethods]
impl PyWorkflowParseResult {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        &'static str,
    ) = (
        "success",
        "workflow",
        "tool_calls",
        "text_content",
        "cleaned_response",
    );

    #[new]
    fn new(
        success: bool,
        workflow: Option<Py<PyWorkflowJsonResponse>>,
        tool_calls: &Bound<'_, PyAny>,
        text_content: String,
        cleaned_response: String,
    ) -> PyResult<Self> {
        let calls = read_calls(tool_calls)?;
        Ok(Self {
            success,
            workflow,
            tool_calls: PyTuple::new(tool_calls.py(), calls)?.unbind(),
            text_content,
            cleaned_response,
        })
    }

    /// Give the result as plain data, fit for `json.dumps`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let workflow = match &self.workflow {
            Some(workflow) => Some(workflow.get().to_dict(py)?),
            None => None,
        };
        let mut calls = Vec::new();
        for call in self.tool_calls.bind(py) {
            calls.push(call.cast_into::<PyToolCall>()?.get().to_dict(py)?);
        }
        let dict = PyDict::new(py);
        dict.set_item("success", self.success)?;
        dict.set_item("workflow", workflow)?;
        dict.set_item("tool_calls", calls)?;
        dict.set_item("text_content", &self.text_content)?;
        dict.set_item("cleaned_response", &self.cleaned_response)?;
        Ok(dict)
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
        let Ok(other) = other.cast::<Self>() else {
            return Ok(None);
        };
        Self::fields(slf)?.eq(Self::fields(other)?).map(Some)
    }

    fn __hash__(slf: &Bound<'_, Self>) -> PyResult<isize> {
        Self::fields(slf)?.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let workflow = self.workflow.as_ref().map(|workflow| workflow.bind(py));
        Ok(format!(
            "WorkflowParseResult(success={}, workflow={}, tool_calls={}, text_content={})",
            if self.success { "True" } else { "False" },
            workflow.into_pyobject(py)?.repr()?,
            self.tool_calls.bind(py).repr()?,
            PyString::new(py, &shorten(&self.text_content, 80)).repr()?,
        ))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((slf.get_type().into_any(), Self::fields(slf)?))
    }
}

impl PyWorkflowParseResult {
    fn fields<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, result) = (slf.py(), slf.get());
        (
            result.success,
            result.workflow.as_ref().map(|workflow| workflow.bind(py)),
            result.tool_calls.bind(py),
            &result.text_content,
            &result.cleaned_response,
        )
            .into_pyobject(py)
    }
}
