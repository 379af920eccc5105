//! Repairs, faults and spans: what the parser tells about how it read a reply.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use turnwarden_extract::json::RepairKind;
use turnwarden_extract::{self as extract, FaultKind, SpanKind};

use super::limit::Offset;
use super::text::Utf8;
use crate::string_enum::StringEnum;

pub(crate) static REPAIR_KIND: StringEnum = StringEnum::new(
    "RepairKind",
    "What a repair did: the closed list of things that are healed.",
    || RepairKind::ALL.iter().map(|kind| kind.as_str()).collect(),
);

pub(crate) static FAULT_KIND: StringEnum = StringEnum::new(
    "FaultKind",
    "Why something that looked like a call was refused.",
    || FaultKind::ALL.iter().map(|kind| kind.as_str()).collect(),
);

pub(crate) static SPAN_KIND: StringEnum = StringEnum::new(
    "SpanKind",
    "What a stretch of a reply turned out to be.",
    || SpanKind::ALL.iter().map(|kind| kind.as_str()).collect(),
);

/// One thing that was healed.
///
/// Attributes:
///     kind (RepairKind): What was done.
///     offset (int): Where, in bytes of the reply as UTF-8.
///
/// Example:
///     >>> reply = turnwarden.parse('{"content": "Hi", "next": [],}')
///     >>> reply.repairs
///     (Repair('comma_dropped', 28),)
#[pyclass(frozen, eq, hash, module = "turnwarden", name = "Repair")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyRepair(pub(crate) extract::Repair);

#[pymethods]
impl PyRepair {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&'static str, &'static str) = ("kind", "offset");

    #[new]
    fn new(kind: Utf8, offset: Offset) -> PyResult<Self> {
        let Utf8(kind) = kind;
        let kind = known(&kind, &RepairKind::ALL, RepairKind::as_str)?;
        Ok(Self(extract::Repair {
            kind,
            offset: offset.0,
        }))
    }

    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        REPAIR_KIND.member(py, self.0.kind.as_str())
    }

    #[getter]
    fn offset(&self) -> usize {
        self.0.offset
    }

    /// Give the repair as plain data, fit for `json.dumps`.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("kind", self.0.kind.as_str())?;
        dict.set_item("offset", self.0.offset)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!("Repair('{}', {})", self.0.kind.as_str(), self.0.offset)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (&'static str, usize)) {
        let repair = &slf.get().0;
        (
            slf.get_type().into_any(),
            (repair.kind.as_str(), repair.offset),
        )
    }
}

/// Something that looked like a call and was refused, or a limit that was reached.
///
/// Attributes:
///     kind (FaultKind): Why.
///     offset (int): Where, in bytes of the reply as UTF-8.
///     name (str | None): The tool's name as far as it was read.
///     message (str): What was found, what was expected, and what to do; fit to be told to the
///         model.
///
/// Example:
///     >>> reply = turnwarden.parse('<tool_call>{"name": "ping", "arguments": [1]}</tool_call>')
///     >>> reply.tool_calls, reply.faults[0].kind, reply.faults[0].name
///     ((), <FaultKind.ARGUMENTS_NOT_AN_OBJECT: 'arguments_not_an_object'>, 'ping')
#[pyclass(frozen, eq, hash, module = "turnwarden", name = "Fault")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyFault(pub(crate) extract::Fault);

#[pymethods]
impl PyFault {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&'static str, &'static str, &'static str, &'static str) =
        ("kind", "offset", "name", "message");

    #[new]
    fn new(kind: Utf8, offset: Offset, name: Option<Utf8>, message: Utf8) -> PyResult<Self> {
        let Utf8(kind) = kind;
        let kind = fault_kind(&kind)?;
        Ok(Self(extract::Fault {
            kind,
            offset: offset.0,
            name: name.map(|name| name.0),
            message: message.0,
        }))
    }

    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        FAULT_KIND.member(py, self.0.kind.as_str())
    }

    #[getter]
    fn offset(&self) -> usize {
        self.0.offset
    }

    #[getter]
    fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    #[getter]
    fn message(&self) -> &str {
        &self.0.message
    }

    /// Give the fault as plain data, fit for `json.dumps`.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("kind", self.0.kind.as_str())?;
        dict.set_item("offset", self.0.offset)?;
        dict.set_item("name", self.0.name.as_deref())?;
        dict.set_item("message", &self.0.message)?;
        Ok(dict)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.0.name.as_deref().into_pyobject(py)?.repr()?;
        let message = self.0.message.as_str().into_pyobject(py)?.repr()?;
        Ok(format!(
            "Fault('{}', {}, name={name}, message={message})",
            self.0.kind.as_str(),
            self.0.offset,
        ))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> (
        Bound<'py, PyAny>,
        (&'static str, usize, Option<String>, String),
    ) {
        let fault = &slf.get().0;
        (
            slf.get_type().into_any(),
            (
                fault.kind.as_str(),
                fault.offset,
                fault.name.clone(),
                fault.message.clone(),
            ),
        )
    }
}

/// A stretch of a reply, and what it turned out to be.
///
/// Attributes:
///     kind (SpanKind): `text`, `reasoning`, `call`, `markup` or `fault`.
///     start (int): The first byte, counted in the reply as UTF-8.
///     end (int): One past the last byte.
///
/// Example:
///     >>> [str(span.kind) for span in turnwarden.parse("<think>Hm.</think>Hello").spans]
///     ['markup', 'reasoning', 'markup', 'text']
#[pyclass(frozen, eq, hash, module = "turnwarden", name = "Span")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PySpan(pub(crate) SpanKind, pub(crate) extract::Span);

#[pymethods]
impl PySpan {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&'static str, &'static str, &'static str) = ("kind", "start", "end");

    #[new]
    fn new(kind: Utf8, start: Offset, end: Offset) -> PyResult<Self> {
        let Utf8(kind) = kind;
        let kind = known(&kind, &SpanKind::ALL, SpanKind::as_str)?;
        Ok(Self(
            kind,
            extract::Span {
                start: start.0,
                end: end.0,
            },
        ))
    }

    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        SPAN_KIND.member(py, self.0.as_str())
    }

    #[getter]
    fn start(&self) -> usize {
        self.1.start
    }

    #[getter]
    fn end(&self) -> usize {
        self.1.end
    }

    /// Give the span as plain data, fit for `json.dumps`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("kind", self.0.as_str())?;
        dict.set_item("start", self.1.start)?;
        dict.set_item("end", self.1.end)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!(
            "Span('{}', {}, {})",
            self.0.as_str(),
            self.1.start,
            self.1.end
        )
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> (Bound<'py, PyAny>, (&'static str, usize, usize)) {
        let span = slf.get();
        (
            slf.get_type().into_any(),
            (span.0.as_str(), span.1.start, span.1.end),
        )
    }
}

/// The fault kind of a name in snake case.
pub(crate) fn fault_kind(name: &str) -> PyResult<FaultKind> {
    known(name, &FaultKind::ALL, FaultKind::as_str)
}

fn known<T: Copy>(name: &str, all: &[T], as_str: impl Fn(T) -> &'static str) -> PyResult<T> {
    all.iter()
        .copied()
        .find(|kind| as_str(*kind) == name)
        .ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|kind| as_str(*kind)).collect();
            crate::errors::Error::Configuration(format!("{name:?} is none of {}", names.join(", ")))
                .into()
        })
}
