//! Reads calls and results from Python objects, before any lock is taken.

use pyo3::exceptions::{PyBaseException, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyList, PyString, PyTuple};
use turnwarden_guard::{Answer, Compared, LoopKey, NewCall};
use turnwarden_signature::{Canon, Signature, Value, with_scratch};

use super::config::Settings;
use super::policy::member;
use crate::signature::{write_arguments, write_call};

/// A call as Python objects.
pub(super) struct ReadCall<'py> {
    name: Bound<'py, PyString>,
    arguments: Bound<'py, PyAny>,
    id: Option<Bound<'py, PyString>>,
}

impl<'py> ReadCall<'py> {
    pub(super) fn new(
        name: Bound<'py, PyString>,
        arguments: Option<Bound<'py, PyAny>>,
        id: Option<Bound<'py, PyString>>,
    ) -> Self {
        let arguments = arguments.unwrap_or_else(|| name.py().None().into_bound(name.py()));
        Self {
            name,
            arguments,
            id,
        }
    }

    /// A `ToolCall`, any object with `name` and `arguments`, a dict of those, a native call of
    /// `OpenAI` or Anthropic, or a pair.
    pub(super) fn from_object(call: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(pair) = call.cast::<PyTuple>() {
            return Self::from_pair(pair);
        }
        let py = call.py();
        let function = member(call, "function")?;
        let of = function.as_ref().unwrap_or(call);
        let name = match member(of, "name")? {
            Some(name) => Some(name),
            None => member(of, "tool_name")?,
        };
        let name = match name {
            Some(name) => name.cast_into::<PyString>().ok(),
            // What the model left out is an empty name, not a mistake of the caller's.
            None if is_known(of, "name")? => Some(PyString::new(py, "")),
            None => None,
        };
        let Some(name) = name else {
            let shown = call.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "a call has a name and arguments, as a ToolCall, a dict or a pair; this is {shown}"
            )));
        };
        let mut arguments = None;
        for key in ["arguments_json", "arguments", "args", "input"] {
            arguments = arguments.or(member(of, key)?);
        }
        let id = member(call, "id")?.and_then(|id| id.cast_into::<PyString>().ok());
        Ok(Self::new(name, arguments, id))
    }

    fn from_pair(pair: &Bound<'py, PyTuple>) -> PyResult<Self> {
        let wrong = || PyTypeError::new_err("a call given as a pair is (name, arguments)");
        if !(1..=2).contains(&pair.len()) {
            return Err(wrong());
        }
        let name = pair.get_item(0)?.cast_into().map_err(|_| wrong())?;
        Ok(Self::new(name, pair.get_item(1).ok(), None))
    }

    /// Gives the call to `work` as the guard takes it. No Python code runs within `work`.
    pub(super) fn with<T>(
        &self,
        settings: &Settings,
        work: impl FnOnce(Python<'py>, NewCall<'_>) -> T,
    ) -> PyResult<T> {
        let py = self.name.py();
        let text = self.argument_text(settings)?;
        let key = self.loop_key(settings)?;
        let id = self.id.as_ref().map(|id| id.to_string_lossy());
        let name = self.name.to_string_lossy();
        with_scratch(|canon| {
            let start = write_call(&self.name, &self.arguments, None, canon)?;
            let arguments = canon.as_bytes().get(start..).unwrap_or_default();
            let call = NewCall {
                name: &name,
                arguments: Value::from_bytes(arguments),
                compared: match &key {
                    Key::Arguments => Compared::ByArguments,
                    Key::Never => Compared::Never,
                    Key::Value(value) => Compared::By(value.value()),
                },
                id: id.as_deref(),
                signature: Some(Signature::of_written(canon)),
                text: text.as_deref(),
            };
            Ok(work(py, call))
        })
    }

    /// What the tool's policy compares calls by.
    fn loop_key(&self, settings: &Settings) -> PyResult<Key> {
        if settings.functions.is_empty() {
            return Ok(Key::Arguments);
        }
        let tool = settings
            .core
            .detection
            .tools
            .get(&self.name.to_string_lossy());
        let Some(LoopKey::Function(number)) = tool.policy().map(|policy| &policy.loop_key) else {
            return Ok(Key::Arguments);
        };
        let Some(function) = settings.functions.get(*number as usize) else {
            return Ok(Key::Arguments);
        };
        let py = self.name.py();
        let key = function.bind(py).call1((self.arguments_as_value()?,))?;
        if key.cast::<PyBool>().is_ok_and(|flag| !flag.is_true()) {
            return Ok(Key::Never);
        }
        let mut canon = Canon::default();
        write_arguments(&key, None, &mut canon)?;
        Ok(Key::Value(canon))
    }

    /// The arguments as a function of the user's expects them.
    fn arguments_as_value(&self) -> PyResult<Bound<'py, PyAny>> {
        let py = self.name.py();
        if self.arguments.is_none() {
            return Ok(PyDict::new(py).into_any());
        }
        let Ok(text) = self.arguments.cast::<PyString>() else {
            return Ok(self.arguments.clone());
        };
        let json = py.import(intern!(py, "json"))?;
        Ok(json
            .call_method1(intern!(py, "loads"), (text,))
            .unwrap_or_else(|_| text.clone().into_any()))
    }

    fn argument_text(&self, settings: &Settings) -> PyResult<Option<String>> {
        if !settings.core.detection.config.keep_arguments {
            return Ok(None);
        }
        let py = self.name.py();
        if let Ok(text) = self.arguments.cast::<PyString>() {
            return Ok(Some(text.to_string_lossy().into_owned()));
        }
        if self.arguments.is_none() {
            return Ok(Some("{}".to_owned()));
        }
        let json = py.import(intern!(py, "json"))?;
        json.call_method1(intern!(py, "dumps"), (&self.arguments,))?
            .extract()
            .map(Some)
    }
}

enum Key {
    Arguments,
    Never,
    Value(Canon),
}

fn is_known(of: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    match of.cast::<PyDict>() {
        Ok(dict) => dict.contains(name),
        Err(_) => of.hasattr(name),
    }
}

/// Several calls, copied out of Python.
pub(super) struct OwnedCalls {
    calls: Vec<OwnedCall>,
    bytes: Vec<u8>,
}

struct OwnedCall {
    name: String,
    arguments: (usize, usize),
    key: Option<(usize, usize)>,
    never: bool,
    id: Option<String>,
    signature: Option<Signature>,
    text: Option<String>,
}

impl OwnedCalls {
    pub(super) fn read(calls: &Bound<'_, PyAny>, settings: &Settings) -> PyResult<Self> {
        let mut owned = Self {
            calls: Vec::new(),
            bytes: Vec::new(),
        };
        if let Ok(list) = calls.cast::<PyList>() {
            owned.calls.reserve_exact(list.len());
        }
        for call in calls.try_iter()? {
            ReadCall::from_object(&call?)?.with(settings, |_, call| owned.push(call))?;
        }
        Ok(owned)
    }

    fn push(&mut self, call: NewCall<'_>) {
        let arguments = self.keep(call.arguments);
        let key = match call.compared {
            Compared::By(value) => Some(self.keep(value)),
            Compared::ByArguments | Compared::Never => None,
        };
        self.calls.push(OwnedCall {
            name: call.name.to_owned(),
            arguments,
            key,
            never: call.compared == Compared::Never,
            id: call.id.map(str::to_owned),
            signature: call.signature,
            text: call.text.map(str::to_owned),
        });
    }

    fn keep(&mut self, value: Value<'_>) -> (usize, usize) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value.as_bytes());
        (start, self.bytes.len())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = NewCall<'_>> {
        let value = |(start, end): (usize, usize)| {
            Value::from_bytes(self.bytes.get(start..end).unwrap_or_default())
        };
        self.calls.iter().map(move |call| NewCall {
            name: &call.name,
            arguments: value(call.arguments),
            compared: match call.key {
                Some(key) => Compared::By(value(key)),
                None if call.never => Compared::Never,
                None => Compared::ByArguments,
            },
            id: call.id.as_deref(),
            signature: call.signature,
            text: call.text.as_deref(),
        })
    }
}

/// What a call brought. Never fails: a result that is no JSON is known by its `str`.
pub(super) fn read_answer(
    result: Option<&Bound<'_, PyAny>>,
    error: Option<&Bound<'_, PyAny>>,
) -> Answer {
    if let Some(error) = error.filter(|error| !error.is_none()) {
        if let Ok(flag) = error.cast::<PyBool>() {
            let read = if flag.is_true() {
                Answer::of_error
            } else {
                Answer::of_result
            };
            return with_text(result, read);
        }
        if error.is_instance_of::<PyBaseException>() {
            let name = error.get_type().name().map(|name| name.to_string());
            let text = format!("{}: {}", name.unwrap_or_default(), text_of(error));
            return Answer::of_error(&text);
        }
        return with_text(Some(error), Answer::of_error);
    }
    let of_value = result.filter(|result| !result.is_none()).and_then(of_value);
    of_value.unwrap_or_else(|| with_text(result, Answer::of_result))
}

fn with_text(value: Option<&Bound<'_, PyAny>>, read: impl FnOnce(&str) -> Answer) -> Answer {
    let Some(value) = value.filter(|value| !value.is_none()) else {
        return read("");
    };
    if let Ok(text) = value.cast::<PyString>() {
        return match text.to_str() {
            Ok(text) => read(text),
            Err(_) => read(&text.to_string_lossy()),
        };
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return read(&String::from_utf8_lossy(bytes.as_bytes()));
    }
    read(&text_of(value))
}

/// A result that is a value, canonical; `None` if it is none, or a text.
fn of_value(result: &Bound<'_, PyAny>) -> Option<Answer> {
    if result.is_instance_of::<PyString>() || result.is_instance_of::<PyBytes>() {
        return None;
    }
    let as_text = result.py().get_type::<PyString>();
    with_scratch(|canon| {
        write_arguments(result, Some(as_text.as_any()), canon).ok()?;
        Some(Answer::of_value(canon.value()))
    })
}

fn text_of(value: &Bound<'_, PyAny>) -> String {
    value.str().map_or_else(
        |_| String::new(),
        |text| text.to_string_lossy().into_owned(),
    )
}
