//! Reads calls and results from Python objects, before any lock is taken.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::exceptions::{PyBaseException, PyException};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};
use turnwarden_guard::{Answer, Compared, LoopKey, NewCall, VolatileKeys, shown_name};
use turnwarden_signature::{Canon, Signature, Value, with_scratch};

use super::config::Settings;
use super::policy::member;
use crate::errors::Error;
use crate::parsing::call::{Call, PyToolCall};
use crate::signature::{write_arguments, write_call};

/// What a call is expected to be, for errors.
const A_CALL: &str = "a ToolCall, anything with a name and arguments, or a (name, arguments) pair";

/// A call as Python objects, or as the parser left it.
pub(super) struct ReadCall<'py> {
    name: Name<'py>,
    arguments: Arguments<'py>,
    id: Option<Name<'py>>,
    py: Python<'py>,
}

/// A text that lives in Python or in a parsed call.
enum Name<'py> {
    Python(Bound<'py, PyString>),
    Parsed(Arc<Call>, fn(&Call) -> &str),
}

impl Name<'_> {
    fn get(&self) -> Cow<'_, str> {
        match self {
            Self::Python(name) => match name.to_str() {
                Ok(name) => Cow::Borrowed(name),
                Err(_) => name.to_string_lossy(),
            },
            Self::Parsed(call, part) => Cow::Borrowed(part(call)),
        }
    }
}

enum Arguments<'py> {
    None,
    Python(Bound<'py, PyAny>),
    Parsed(Arc<Call>),
}

impl<'py> ReadCall<'py> {
    pub(super) fn new(
        name: Bound<'py, PyString>,
        arguments: Option<Bound<'py, PyAny>>,
        id: Option<Bound<'py, PyString>>,
    ) -> Self {
        Self {
            py: name.py(),
            name: Name::Python(name),
            arguments: arguments.map_or(Arguments::None, Arguments::Python),
            id: id.map(Name::Python),
        }
    }

    /// A `ToolCall`, any object with `name` and `arguments`, a dict of those, a native call of
    /// `OpenAI` or Anthropic, or a pair.
    pub(super) fn from_object(call: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(parsed) = call.cast::<PyToolCall>() {
            return Ok(Self::from_parsed(parsed.get().call(), call.py()));
        }
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
        let name = name.ok_or_else(|| Error::wrong_type("a call", A_CALL, call))?;
        let mut arguments = None;
        for key in ["arguments_json", "arguments", "args", "input"] {
            arguments = arguments.or(member(of, key)?);
        }
        // An id of another type is none: the result then goes to the first call without one.
        let id = member(call, "id")?.and_then(|id| call_id_of(Some(&id)).ok().flatten());
        Ok(Self::new(name, arguments, id))
    }

    fn from_parsed(call: &Arc<Call>, py: Python<'py>) -> Self {
        Self {
            name: Name::Parsed(Arc::clone(call), |call| &call.get().name),
            arguments: Arguments::Parsed(Arc::clone(call)),
            id: Some(Name::Parsed(Arc::clone(call), |call| &call.get().id)),
            py,
        }
    }

    fn from_pair(pair: &Bound<'py, PyTuple>) -> PyResult<Self> {
        let wrong = || Error::wrong_type("a call", A_CALL, pair);
        if !(1..=2).contains(&pair.len()) {
            return Err(wrong().into());
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
        let key = self.loop_key(settings)?;
        let id = self.id.as_ref().map(Name::get);
        let name = self.name.get();
        with_scratch(|canon| {
            let start = self.write(&name, canon)?;
            let arguments = canon.as_bytes().get(start..).unwrap_or_default();
            let text = self.argument_text(settings, Value::from_bytes(arguments));
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
            Ok(work(self.py, call))
        })
    }

    /// Writes name and arguments, ready to be signed; returns where the arguments begin.
    fn write(&self, name: &str, canon: &mut Canon) -> PyResult<usize> {
        if let (Name::Python(name), Arguments::Python(arguments)) = (&self.name, &self.arguments) {
            return write_call(name, arguments, None, canon);
        }
        let start = Signature::begin(canon, name.as_bytes());
        match &self.arguments {
            Arguments::Parsed(call) => canon.arguments_text(call.get().arguments.as_bytes()),
            Arguments::Python(arguments) => write_arguments(arguments, None, canon)?,
            Arguments::None => {
                canon.begin_object();
                canon.end_object();
            }
        }
        Ok(start)
    }

    /// What the tool's policy compares calls by.
    fn loop_key(&self, settings: &Settings) -> PyResult<Key> {
        if settings.functions.is_empty() {
            return Ok(Key::Arguments);
        }
        let tool = settings.core.detection.tools.get(&self.name.get());
        let Some(LoopKey::Function(number)) = tool.policy().map(|policy| &policy.loop_key) else {
            return Ok(Key::Arguments);
        };
        let Some(function) = settings.functions.get(*number as usize) else {
            return Ok(Key::Arguments);
        };
        let key = function.bind(self.py).call1((self.arguments_as_value()?,));
        let key = match key {
            Ok(key) => key,
            // Such as a key that the model left out: no fault of the caller's.
            Err(error) if error.is_instance_of::<PyException>(self.py) => {
                self.log_failed_loop_key(&error);
                return Ok(Key::Arguments);
            }
            Err(error) => return Err(error),
        };
        if key.cast::<PyBool>().is_ok_and(|flag| !flag.is_true()) {
            return Ok(Key::Never);
        }
        let mut canon = Canon::default();
        write_arguments(&key, None, &mut canon).map_err(|error| {
            let reason = error.value(self.py);
            let name = shown_name(&self.name.get()).into_owned();
            let message =
                format!("the loop_key of {name} returned what is no JSON value: {reason}");
            Error::Configuration(message)
        })?;
        Ok(Key::Value(canon))
    }

    /// Says that a function of the user's failed; that it cannot be said fails nothing.
    fn log_failed_loop_key(&self, error: &PyErr) {
        let log = || -> PyResult<()> {
            let logging = self.py.import(intern!(self.py, "logging"))?;
            let logger = logging.call_method1("getLogger", ("turnwarden.guards",))?;
            let text = "the loop_key of %s raised %s: the call is compared by its arguments";
            let name = shown_name(&self.name.get()).into_owned();
            let kind = error.get_type(self.py).name()?;
            logger.call_method1("warning", (text, name, kind))?;
            Ok(())
        };
        drop(log());
    }

    /// The arguments as a function of the user's expects them.
    fn arguments_as_value(&self) -> PyResult<Bound<'py, PyAny>> {
        let text = match &self.arguments {
            Arguments::None => return Ok(PyDict::new(self.py).into_any()),
            Arguments::Parsed(call) => PyString::new(self.py, &call.get().arguments),
            Arguments::Python(arguments) => match arguments.cast::<PyString>() {
                Ok(text) => text.clone(),
                Err(_) => return Ok(arguments.clone()),
            },
        };
        let json = self.py.import(intern!(self.py, "json"))?;
        let value = json.call_method1(intern!(self.py, "loads"), (&text,));
        Ok(value.unwrap_or_else(|_| text.into_any()))
    }

    /// The arguments as text, for a guard that keeps them. Runs no Python code.
    fn argument_text(&self, settings: &Settings, canonical: Value<'_>) -> Option<String> {
        if !settings.core.detection.config.keep_arguments {
            return None;
        }
        Some(match &self.arguments {
            Arguments::Parsed(call) => call.get().arguments.clone(),
            Arguments::Python(arguments) => match arguments.cast::<PyString>() {
                Ok(text) => text.to_string_lossy().into_owned(),
                Err(_) => canonical.to_json(),
            },
            Arguments::None => canonical.to_json(),
        })
    }
}

/// The id of a call, which some models write as a number.
pub(super) fn call_id_of<'py>(
    id: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyString>>> {
    let Some(id) = id.filter(|id| !id.is_none()) else {
        return Ok(None);
    };
    if let Ok(text) = id.cast::<PyString>() {
        return Ok(Some(text.clone()));
    }
    if id.is_instance_of::<PyInt>() {
        return id.str().map(Some);
    }
    Err(Error::wrong_type("the id of a call", "a str", id).into())
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
        let no_list = calls.is_instance_of::<PyString>()
            || calls.is_instance_of::<PyBytes>()
            || calls.is_instance_of::<PyDict>();
        let items = calls.try_iter().ok().filter(|_| !no_list);
        let items = items
            .ok_or_else(|| Error::wrong_type("the calls of a turn", "a list of calls", calls))?;
        for call in items {
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
    settings: &Settings,
) -> Answer {
    let keys = &settings.core.detection.volatile_keys;
    let of_error = |text: &str| Answer::of_error(text, keys);
    let of_result = |text: &str| Answer::of_result(text, keys);
    if let Some(error) = error.filter(|error| !error.is_none()) {
        if let Ok(flag) = error.cast::<PyBool>() {
            return if flag.is_true() {
                with_text(result, of_error)
            } else {
                with_text(result, of_result)
            };
        }
        if error.is_instance_of::<PyBaseException>() {
            return of_error(&text_of_exception(error));
        }
        return with_text(Some(error), of_error);
    }
    let value = result.filter(|result| !result.is_none());
    if let Some(raised) = value.filter(|value| value.is_instance_of::<PyBaseException>()) {
        return of_error(&text_of_exception(raised));
    }
    let of_value = value.and_then(|value| of_value(value, keys));
    of_value.unwrap_or_else(|| with_text(result, of_result))
}

/// The name of an exception and its text.
fn text_of_exception(error: &Bound<'_, PyAny>) -> String {
    let name = error.get_type().name().map(|name| name.to_string());
    format!("{}: {}", name.unwrap_or_default(), text_of(error))
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
fn of_value(result: &Bound<'_, PyAny>, keys: &VolatileKeys) -> Option<Answer> {
    if result.is_instance_of::<PyString>() || result.is_instance_of::<PyBytes>() {
        return None;
    }
    let as_text = result.py().get_type::<PyString>();
    with_scratch(|canon| {
        write_arguments(result, Some(as_text.as_any()), canon).ok()?;
        Some(Answer::of_value(canon.value(), keys))
    })
}

fn text_of(value: &Bound<'_, PyAny>) -> String {
    value.str().map_or_else(
        |_| String::new(),
        |text| text.to_string_lossy().into_owned(),
    )
}
