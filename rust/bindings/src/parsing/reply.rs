//! `Reply`: everything found in one reply, kept in Rust until it is asked for.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use turnwarden_extract as extract;

use super::call::{Call, PyToolCall, shorten};
use super::kinds::{PyFault, PyRepair, PySpan};
use super::workflow::PyWorkflowJsonResponse;

/// Everything found in one reply of a model.
///
/// Attributes:
///     tool_calls (tuple[ToolCall, ...]): The complete calls, in the order of the reply.
///     incomplete_calls (tuple[ToolCall, ...]): Calls that were cut off, healed as far as they go;
///         never run them unasked.
///     text (str): What the user should see: no reasoning, no call markup, no special tokens.
///     reasoning (str | None): The reasoning blocks, trimmed and joined by newlines; None when
///         there are none.
///     workflow (WorkflowJsonResponse | None): The reply as workflow JSON, when it is that.
///     cleaned (str): The reply without reasoning and without the fences around its payload.
///     format (str | None): The label of the format that the calls came in, such as `hermes`.
///     repairs (tuple[Repair, ...]): What was healed, for logs.
///     faults (tuple[Fault, ...]): What looked like a call and was refused; the model can be told.
///     spans (tuple[Span, ...]): What each byte of the reply turned out to be: adjoining spans
///         from the first byte to the last.
///
/// Replies are immutable, compare by value (generated ids aside), and can be pickled and matched.
///
/// Example:
///     >>> reply = turnwarden.parse(
///     ...     '<think>Weather.</think>On it.'
///     ...     '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
///     ... )
///     >>> reply.text, reply.reasoning, reply.format
///     ('On it.', 'Weather.', 'hermes')
///     >>> reply.tool_calls[0].name, reply.tool_calls[0].arguments
///     ('get_weather', {'city': 'Oslo'})
#[pyclass(frozen, module = "turnwarden", name = "Reply")]
pub(crate) struct PyReply {
    data: ReplyData,
    tool_calls: OnceLock<Py<PyTuple>>,
    incomplete_calls: OnceLock<Py<PyTuple>>,
}

/// What pickle keeps of a reply besides its calls and texts.
type Records = (Vec<Py<PyRepair>>, Vec<Py<PyFault>>, Vec<Py<PySpan>>);

/// A reply of the core, its calls shared with the Python objects that show them.
#[derive(PartialEq, Eq)]
pub(crate) struct ReplyData {
    pub(crate) tool_calls: Vec<Arc<Call>>,
    pub(crate) incomplete_calls: Vec<Arc<Call>>,
    pub(crate) text: String,
    pub(crate) reasoning: Option<String>,
    pub(crate) workflow: Option<extract::Workflow>,
    pub(crate) cleaned: String,
    pub(crate) format: Option<String>,
    pub(crate) repairs: Vec<extract::Repair>,
    pub(crate) faults: Vec<extract::Fault>,
    pub(crate) spans: Vec<(extract::SpanKind, extract::Span)>,
}

impl ReplyData {
    /// Take over a reply of the core; `replaced` is what was replaced while decoding its text.
    pub(crate) fn new(reply: extract::Reply, replaced: Vec<extract::Repair>) -> Self {
        let shared = |calls: Vec<extract::ToolCall>| calls.into_iter().map(Call::new).collect();
        let mut repairs = reply.repairs;
        if !replaced.is_empty() {
            repairs.extend(replaced);
            repairs.sort_by_key(|repair| repair.offset);
        }
        Self {
            tool_calls: shared(reply.tool_calls),
            incomplete_calls: shared(reply.incomplete_calls),
            text: reply.text,
            reasoning: reply.reasoning,
            workflow: reply.workflow,
            cleaned: reply.cleaned,
            format: reply.format,
            repairs,
            faults: reply.faults,
            spans: reply.spans,
        }
    }

    /// The workflow's content when there is one, else the visible text.
    pub(crate) fn text_content(&self) -> &str {
        match &self.workflow {
            Some(workflow) => &workflow.content,
            None => &self.text,
        }
    }
}

impl PyReply {
    /// Show a reply of the core to Python.
    pub(crate) fn from_data(data: ReplyData) -> Self {
        Self {
            data,
            tool_calls: OnceLock::new(),
            incomplete_calls: OnceLock::new(),
        }
    }

    /// The reply's data, for its last user.
    pub(crate) fn into_data(self) -> ReplyData {
        self.data
    }
}

/// Show calls to Python, and keep the tuple in `cell`.
fn show_calls<'a, 'py>(
    py: Python<'py>,
    cell: &'a OnceLock<Py<PyTuple>>,
    calls: &[Arc<Call>],
) -> PyResult<&'a Bound<'py, PyTuple>> {
    if let Some(shown) = cell.get() {
        return Ok(shown.bind(py));
    }
    // Built outside the cell, because waiting inside it would mean letting the interpreter go.
    let calls = calls.iter().map(Arc::clone).map(PyToolCall::from_call);
    let shown = PyTuple::new(py, calls)?.unbind();
    Ok(cell.get_or_init(|| shown).bind(py))
}

#[pymethods]
impl PyReply {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&'static str, &'static str) = ("text", "tool_calls");

    #[getter]
    pub(crate) fn tool_calls<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyTuple>> {
        show_calls(py, &self.tool_calls, &self.data.tool_calls)
    }

    #[getter]
    fn incomplete_calls<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyTuple>> {
        show_calls(py, &self.incomplete_calls, &self.data.incomplete_calls)
    }

    #[getter]
    fn text(&self) -> &str {
        &self.data.text
    }

    #[getter]
    fn reasoning(&self) -> Option<&str> {
        self.data.reasoning.as_deref()
    }

    #[getter]
    pub(crate) fn workflow(&self, py: Python<'_>) -> PyResult<Option<PyWorkflowJsonResponse>> {
        let Some(workflow) = &self.data.workflow else {
            return Ok(None);
        };
        Ok(Some(PyWorkflowJsonResponse {
            content: workflow.content.clone(),
            next: self.tool_calls(py)?.clone().unbind(),
        }))
    }

    #[getter]
    fn cleaned(&self) -> &str {
        &self.data.cleaned
    }

    #[getter]
    fn format(&self) -> Option<&str> {
        self.data.format.as_deref()
    }

    #[getter]
    fn repairs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        show_all(py, &self.data.repairs, |repair| PyRepair(*repair))
    }

    #[getter]
    fn faults<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        show_all(py, &self.data.faults, |fault| PyFault(fault.clone()))
    }

    #[getter]
    fn spans<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        show_all(py, &self.data.spans, |(kind, span)| PySpan(*kind, *span))
    }

    /// Give the reply as an assistant message of an OpenAI chat.
    ///
    /// Args:
    ///     include_reasoning: Whether `reasoning_content` is set when there is reasoning; servers
    ///         of open models read it, OpenAI's own refuses unknown fields.
    ///
    /// Example:
    ///     >>> turnwarden.parse("Hello").to_openai_message()
    ///     {'role': 'assistant', 'content': 'Hello'}
    #[pyo3(signature = (*, include_reasoning=false))]
    fn to_openai_message<'py>(
        &self,
        py: Python<'py>,
        include_reasoning: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let message = PyDict::new(py);
        message.set_item(intern!(py, "role"), intern!(py, "assistant"))?;
        let content = self.data.text_content();
        let calls = self.tool_calls(py)?;
        if content.is_empty() && !calls.is_empty() {
            message.set_item(intern!(py, "content"), py.None())?;
        } else {
            message.set_item(intern!(py, "content"), content)?;
        }
        if include_reasoning && let Some(reasoning) = &self.data.reasoning {
            message.set_item(intern!(py, "reasoning_content"), reasoning)?;
        }
        if !calls.is_empty() {
            let list = PyList::empty(py);
            for call in calls {
                list.append(call.cast::<PyToolCall>()?.get().to_openai(py)?)?;
            }
            message.set_item(intern!(py, "tool_calls"), list)?;
        }
        Ok(message)
    }

    /// Give the reply as an assistant message of an Anthropic conversation.
    ///
    /// Reasoning is left out: a `thinking` block needs a signature that only the API can give.
    ///
    /// Example:
    ///     >>> turnwarden.parse("Hello").to_anthropic_message()
    ///     {'role': 'assistant', 'content': [{'type': 'text', 'text': 'Hello'}]}
    fn to_anthropic_message<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let blocks = PyList::empty(py);
        let content = self.data.text_content();
        if !content.is_empty() {
            let block = PyDict::new(py);
            block.set_item(intern!(py, "type"), intern!(py, "text"))?;
            block.set_item(intern!(py, "text"), content)?;
            blocks.append(block)?;
        }
        for call in self.tool_calls(py)? {
            blocks.append(call.cast::<PyToolCall>()?.get().to_anthropic(py)?)?;
        }
        let message = PyDict::new(py);
        message.set_item(intern!(py, "role"), intern!(py, "assistant"))?;
        message.set_item(intern!(py, "content"), blocks)?;
        Ok(message)
    }

    /// Give the reply as plain data, fit for `json.dumps`; spans are left out.
    ///
    /// Example:
    ///     >>> turnwarden.parse("Hello").to_dict()["text"]
    ///     'Hello'
    pub(crate) fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, reply) = (slf.py(), slf.get());
        let data = &reply.data;
        let workflow = match reply.workflow(py)? {
            Some(workflow) => Some(workflow.to_dict(py)?),
            None => None,
        };
        let dict = PyDict::new(py);
        dict.set_item("tool_calls", calls_to_dicts(reply.tool_calls(py)?)?)?;
        dict.set_item(
            "incomplete_calls",
            calls_to_dicts(reply.incomplete_calls(py)?)?,
        )?;
        dict.set_item("text", &data.text)?;
        dict.set_item("reasoning", data.reasoning.as_deref())?;
        dict.set_item("workflow", workflow)?;
        dict.set_item("cleaned", &data.cleaned)?;
        dict.set_item("format", data.format.as_deref())?;
        let repairs = data
            .repairs
            .iter()
            .map(|repair| PyRepair(*repair).to_dict(py));
        dict.set_item("repairs", repairs.collect::<PyResult<Vec<_>>>()?)?;
        let faults = data
            .faults
            .iter()
            .map(|fault| PyFault(fault.clone()).to_dict(py));
        dict.set_item("faults", faults.collect::<PyResult<Vec<_>>>()?)?;
        Ok(dict)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> Option<bool> {
        let other = other.cast::<Self>().ok()?;
        Some(self.data == other.get().data)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.data.cleaned.hash(&mut hasher);
        self.data.text.hash(&mut hasher);
        self.data.tool_calls.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let data = &self.data;
        let mut parts = vec![
            format!(
                "text={}",
                PyString::new(py, &shorten(&data.text, 80)).repr()?
            ),
            format!("tool_calls={}", self.tool_calls(py)?.repr()?),
        ];
        if !data.incomplete_calls.is_empty() {
            let calls = self.incomplete_calls(py)?.repr()?;
            parts.push(format!("incomplete_calls={calls}"));
        }
        if let Some(format) = &data.format {
            parts.push(format!("format='{format}'"));
        }
        for (name, count) in [
            ("repairs", data.repairs.len()),
            ("faults", data.faults.len()),
        ] {
            if count > 0 {
                parts.push(format!("{name}={count}"));
            }
        }
        Ok(format!("Reply({})", parts.join(", ")))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, reply) = (slf.py(), slf.get());
        let restore = slf.get_type().getattr(intern!(py, "_restore"))?;
        let state = (
            reply.tool_calls(py)?,
            reply.incomplete_calls(py)?,
            &reply.data.text,
            reply.data.reasoning.as_deref(),
            reply
                .data
                .workflow
                .as_ref()
                .map(|workflow| &workflow.content),
            &reply.data.cleaned,
            reply.data.format.as_deref(),
            (reply.repairs(py)?, reply.faults(py)?, reply.spans(py)?),
        );
        Ok((restore, state.into_pyobject(py)?))
    }

    /// Make a pickled reply again.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "the fields of a reply")]
    fn _restore(
        tool_calls: Vec<Py<PyToolCall>>,
        incomplete_calls: Vec<Py<PyToolCall>>,
        text: String,
        reasoning: Option<String>,
        workflow: Option<String>,
        cleaned: String,
        format: Option<String>,
        records: Records,
    ) -> Self {
        let shared = |calls: Vec<Py<PyToolCall>>| {
            let calls = calls.iter().map(|call| Arc::clone(call.get().call()));
            calls.collect()
        };
        let (repairs, faults, spans) = records;
        Self::from_data(ReplyData {
            tool_calls: shared(tool_calls),
            incomplete_calls: shared(incomplete_calls),
            text,
            reasoning,
            workflow: workflow.map(|content| extract::Workflow { content }),
            cleaned,
            format,
            repairs: repairs.iter().map(|repair| repair.get().0).collect(),
            faults: faults.iter().map(|fault| fault.get().0.clone()).collect(),
            spans: spans
                .iter()
                .map(|span| (span.get().0, span.get().1))
                .collect(),
        })
    }
}

/// Show each of the items to Python, in a tuple.
fn show_all<'py, T, P: pyo3::PyClass + Into<PyClassInitializer<P>>>(
    py: Python<'py>,
    items: &[T],
    show: impl Fn(&T) -> P,
) -> PyResult<Bound<'py, PyTuple>> {
    let shown = items
        .iter()
        .map(|item| Bound::new(py, show(item)))
        .collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, shown)
}

fn calls_to_dicts<'py>(calls: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(calls.py());
    for call in calls {
        list.append(call.cast::<PyToolCall>()?.get().to_dict(calls.py())?)?;
    }
    Ok(list)
}
