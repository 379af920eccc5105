//! The events of a stream as light Python objects.
//!
//! All of them are frozen, compare by value, can be matched, pickled and made by hand; `type` names
//! the event in snake case.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use turnwarden_extract::{Event, FaultKind};

use super::call::{Call, PyToolCall};
use super::kinds::{FAULT_KIND, fault_kind};
use super::limit::Offset;
use super::reply::PyReply;
use super::text::Utf8;

/// Define an event class: its fields in order, and those that take part in comparisons.
macro_rules! event {
    (
        $(#[$meta:meta])*
        $class:ident as $name:literal ($tag:literal) {
            $($field:ident: $type:ty $(= $default:tt)?),+
        } compared by [$($compared:ident),+]
    ) => {
        $(#[$meta])*
        #[pyclass(frozen, get_all, module = "turnwarden", name = $name)]
        pub(crate) struct $class {
            $($field: $type),+
        }

        #[pymethods]
        impl $class {
            #[classattr]
            #[pyo3(name = "type")]
            const TYPE: &'static str = $tag;

            #[classattr]
            fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
                PyTuple::new(py, [$(stringify!($field)),+])
            }

            #[new]
            #[pyo3(signature = ($($field $(= $default)?),+))]
            fn new($($field: $type),+) -> Self {
                Self { $($field),+ }
            }

            /// Give the event as plain data, with its `type`.
            fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
                let dict = PyDict::new(slf.py());
                dict.set_item("type", $tag)?;
                $(dict.set_item(stringify!($field), plain(&slf.getattr(stringify!($field))?)?)?;)+
                Ok(dict)
            }

            fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
                if !other.is_instance_of::<Self>() {
                    return Ok(None);
                }
                $(
                    let name = stringify!($compared);
                    if !slf.getattr(name)?.eq(other.getattr(name)?)? {
                        return Ok(Some(false));
                    }
                )+
                Ok(Some(true))
            }

            fn __hash__(slf: &Bound<'_, Self>) -> PyResult<isize> {
                let fields = [$(slf.getattr(stringify!($compared))?),+];
                PyTuple::new(slf.py(), fields)?.hash()
            }

            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                let fields = [$(slf.getattr(stringify!($field))?.repr()?.to_string()),+];
                Ok(format!("{}({})", $name, fields.join(", ")))
            }

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
                let fields = [$(slf.getattr(stringify!($field))?),+];
                Ok((slf.get_type().into_any(), PyTuple::new(slf.py(), fields)?))
            }
        }
    };
}

event! {
    /// More visible text.
    ///
    /// Attributes:
    ///     text (str): The next piece; the pieces join to `reply.text`, less what was retracted.
    PyTextDelta as "TextDelta" ("text_delta") { text: Utf8 } compared by [text]
}

event! {
    /// More reasoning.
    ///
    /// Attributes:
    ///     text (str): The next piece; the pieces join to `reply.reasoning`.
    PyReasoningDelta as "ReasoningDelta" ("reasoning_delta") { text: Utf8 } compared by [text]
}

event! {
    /// A call has begun. Generated ids differ from run to run, so ids are not compared.
    ///
    /// Attributes:
    ///     index (int): The call's place among the calls of the reply, from 0.
    ///     id (str): The call's id.
    ///     name (str): The tool's name.
    PyToolCallStarted as "ToolCallStarted" ("tool_call_started") {
        index: Offset, id: Utf8, name: Utf8
    } compared by [index, name]
}

event! {
    /// More of a call's arguments.
    ///
    /// Attributes:
    ///     index (int): Which call.
    ///     delta (str): The next piece; the pieces of one call join to its `arguments_json`.
    PyToolCallArguments as "ToolCallArguments" ("tool_call_arguments") {
        index: Offset, delta: Utf8
    } compared by [index, delta]
}

event! {
    /// A call is complete.
    ///
    /// Attributes:
    ///     index (int): Which call.
    ///     call (ToolCall): The call.
    PyToolCallEnded as "ToolCallEnded" ("tool_call_ended") {
        index: Offset, call: Py<PyToolCall>
    } compared by [index, call]
}

event! {
    /// Text that was streamed is taken back: a later marker made it reasoning.
    ///
    /// Attributes:
    ///     length (int): How many characters, from the end of the text so far.
    PyTextRetracted as "TextRetracted" ("text_retracted") { length: Offset } compared by [length]
}

event! {
    /// The reply is over; always the last event.
    ///
    /// Attributes:
    ///     reply (Reply): Everything that was found.
    PyReplyFinished as "ReplyFinished" ("reply_finished") { reply: Py<PyReply> } compared by [reply]
}

/// A fault kind as a field: shown as a member of the string enum.
#[derive(Clone, Copy)]
pub(crate) struct KindField(FaultKind);

impl<'py> IntoPyObject<'py> for KindField {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        FAULT_KIND.member(py, self.0.as_str())
    }
}

impl<'py> FromPyObject<'_, 'py> for KindField {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        fault_kind(&value.extract::<Utf8>()?.0).map(Self)
    }
}

event! {
    /// Something that looked like a call was refused, or a limit was reached.
    ///
    /// Attributes:
    ///     kind (FaultKind): Why.
    ///     offset (int): Where, in bytes of the reply as UTF-8.
    ///     message (str): What was found, what was expected, and what to do.
    ///     name (str | None): The tool's name as far as it was read.
    PyParseFault as "ParseFault" ("parse_fault") {
        kind: KindField, offset: Offset, message: Utf8, name: Option<Utf8> = None
    } compared by [kind, offset, message, name]
}

/// A field as plain data.
fn plain<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(call) = value.cast::<PyToolCall>() {
        return Ok(call.get().to_dict(value.py())?.into_any());
    }
    if let Ok(reply) = value.cast::<PyReply>() {
        return Ok(PyReply::to_dict(reply)?.into_any());
    }
    if let Ok(text) = value.cast::<PyString>() {
        // Members of string enums become plain strings.
        return Ok(PyString::new(value.py(), &text.to_cow()?).into_any());
    }
    Ok(value.clone())
}

/// Show an event of the core to Python; `reply` is asked for when the reply is over.
pub(crate) fn show_event(
    py: Python<'_>,
    event: Event,
    reply: impl FnOnce() -> PyResult<Py<PyReply>>,
) -> PyResult<Bound<'_, PyAny>> {
    let object = match event {
        Event::TextDelta(text) => Bound::new(py, PyTextDelta { text: Utf8(text) })?.into_any(),
        Event::ReasoningDelta(text) => {
            Bound::new(py, PyReasoningDelta { text: Utf8(text) })?.into_any()
        }
        Event::ToolCallStarted { index, id, name } => Bound::new(
            py,
            PyToolCallStarted {
                index: Offset(index),
                id: Utf8(id),
                name: Utf8(name),
            },
        )?
        .into_any(),
        Event::ToolCallArguments { index, delta } => Bound::new(
            py,
            PyToolCallArguments {
                index: Offset(index),
                delta: Utf8(delta),
            },
        )?
        .into_any(),
        Event::ToolCallEnded { index, call } => {
            let call = Py::new(py, PyToolCall::from_call(Call::new(call)))?;
            Bound::new(
                py,
                PyToolCallEnded {
                    index: Offset(index),
                    call,
                },
            )?
            .into_any()
        }
        Event::TextRetracted { length } => Bound::new(
            py,
            PyTextRetracted {
                length: Offset(length),
            },
        )?
        .into_any(),
        Event::ParseFault(fault) => {
            let fault = PyParseFault {
                kind: KindField(fault.kind),
                offset: Offset(fault.offset),
                message: Utf8(fault.message),
                name: fault.name.map(Utf8),
            };
            Bound::new(py, fault)?.into_any()
        }
        Event::ReplyFinished => Bound::new(py, PyReplyFinished { reply: reply()? })?.into_any(),
    };
    Ok(object)
}
