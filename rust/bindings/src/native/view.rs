//! A Python object as a [`View`]: dicts and other mappings by their keys, anything else by its
//! attributes.
//!
//! Looking runs whatever code the object has, so it may raise. What it raises is noted and counts
//! as absent; only what is no `Exception`, such as an interrupt, is passed on at the end.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use pyo3::exceptions::{PyAttributeError, PyException, PyLookupError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyModule, PyString, PyTuple,
    PyType,
};
use turnwarden_extract::native::{Key, Kind, Unwritable, View, WriteLimits, Written};

use super::halves::{Halves, replaced};
use super::write::write;
use crate::errors::type_name;

/// The names that readers ask for, as Python strings, in the order of [`Key::ALL`].
fn names(py: Python<'_>) -> &'static [Py<PyString>] {
    static NAMES: PyOnceLock<Vec<Py<PyString>>> = PyOnceLock::new();
    NAMES.get_or_init(py, || {
        let intern = |key: &Key| PyString::intern(py, key.name()).unbind();
        Key::ALL.iter().map(intern).collect()
    })
}

/// What happens while one object is looked at.
pub(super) struct Look<'py> {
    py: Python<'py>,
    names: &'static [Py<PyString>],
    raised: RefCell<Vec<String>>,
    interrupt: RefCell<Option<PyErr>>,
    /// While a stream is read: the halves of characters that wait.
    halves: Option<RefCell<Halves>>,
    /// Strings that halves were joined to or taken from: the same answer each time.
    joined: RefCell<HashMap<usize, (Bound<'py, PyString>, String)>>,
}

impl<'py> Look<'py> {
    pub(super) fn new(py: Python<'py>) -> Self {
        Self {
            py,
            names: names(py),
            raised: RefCell::default(),
            interrupt: RefCell::default(),
            halves: None,
            joined: RefCell::default(),
        }
    }

    /// Looks at a delta of a stream, with the halves of characters that the last ones left.
    pub(super) fn at_delta(py: Python<'py>, halves: Halves) -> Self {
        Self {
            halves: Some(RefCell::new(halves)),
            ..Self::new(py)
        }
    }

    /// The object to look at.
    pub(super) fn at<'a>(&'a self, object: Bound<'py, PyAny>) -> PyView<'a, 'py> {
        PyView {
            object,
            key: None,
            nature: OnceCell::new(),
            look: self,
        }
    }

    /// The text of a string that begins or ends with half a character, or follows one.
    fn joined(&self, key: Option<Key>, text: &Bound<'py, PyString>) -> PyResult<String> {
        let (Some(halves), Some(key)) = (&self.halves, key) else {
            return replaced(text);
        };
        let address = text.as_ptr() as usize;
        if let Some((_, joined)) = self.joined.borrow().get(&address) {
            return Ok(joined.clone());
        }
        let joined = halves.borrow_mut().join(key, text)?;
        // The object is kept, so that no other gets its address meanwhile.
        let known = (text.clone(), joined.clone());
        self.joined.borrow_mut().insert(address, known);
        Ok(joined)
    }

    fn halves_wait(&self) -> bool {
        let halves = self.halves.as_ref();
        halves.is_some_and(|halves| !halves.borrow().is_empty()) || !self.joined.borrow().is_empty()
    }

    /// What could not be looked at, as sentences, or an interrupt as an error; and the halves of
    /// characters that wait.
    pub(super) fn finish(self) -> (PyResult<Vec<String>>, Halves) {
        let looked = match self.interrupt.into_inner() {
            Some(interrupt) => Err(interrupt),
            None => Ok(self.raised.into_inner()),
        };
        let halves = self.halves.map(RefCell::into_inner);
        (looked, halves.unwrap_or_default())
    }

    /// Notes what looking raised.
    fn note(&self, error: PyErr, object: &Bound<'py, PyAny>, key: &str) {
        if !error.is_instance_of::<PyException>(self.py) {
            self.interrupt.borrow_mut().get_or_insert(error);
            return;
        }
        let kind = error.get_type(self.py);
        let name = kind
            .name()
            .map_or_else(|_| "an error".to_owned(), |name| name.to_string());
        let sentence = format!("{key} of {} raised {name}", type_name(object));
        let mut raised = self.raised.borrow_mut();
        if !raised.contains(&sentence) && raised.len() < 16 {
            raised.push(sentence);
        }
    }
}

/// What an object is, and how its members are reached.
#[derive(Clone)]
enum Nature<'py> {
    /// No object: it has no members.
    Plain(Kind),
    Dict(Bound<'py, PyDict>),
    /// By `object[name]`.
    Mapping,
    /// A pydantic model: its fields, and those that it has beyond its declaration. Asking it for
    /// an attribute that it lacks would cost more than all the rest.
    Model {
        fields: Bound<'py, PyDict>,
        extra: Option<Bound<'py, PyDict>>,
    },
    Attributes,
}

/// One Python object.
#[derive(Clone)]
pub(super) struct PyView<'a, 'py> {
    object: Bound<'py, PyAny>,
    /// The member that it is, or is in.
    key: Option<Key>,
    nature: OnceCell<Nature<'py>>,
    look: &'a Look<'py>,
}

impl<'py> PyView<'_, 'py> {
    fn of(&self, object: Bound<'py, PyAny>, key: Option<Key>) -> Self {
        Self {
            key,
            ..self.look.at(object)
        }
    }

    fn nature(&self) -> &Nature<'py> {
        self.nature.get_or_init(|| nature(&self.object))
    }

    /// A member of a mapping, or an attribute.
    fn member(&self, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.nature() {
            Nature::Plain(_) => Ok(None),
            Nature::Dict(dict) => dict.get_item(name),
            Nature::Model { fields, extra } => match (fields.get_item(name)?, extra) {
                (None, Some(extra)) => extra.get_item(name),
                (field, _) => Ok(field),
            },
            Nature::Attributes => self.object.getattr_opt(name),
            Nature::Mapping => match self.object.get_item(name) {
                Ok(value) => Ok(Some(value)),
                Err(error) if error.is_instance_of::<PyLookupError>(self.look.py) => Ok(None),
                Err(error) => Err(error),
            },
        }
    }

    fn list_items(&self) -> PyResult<Vec<Self>> {
        if let Ok(list) = self.object.cast::<PyList>() {
            return Ok(list.iter().map(|item| self.of(item, self.key)).collect());
        }
        if let Ok(tuple) = self.object.cast::<PyTuple>() {
            return Ok(tuple.iter().map(|item| self.of(item, self.key)).collect());
        }
        let length = self.object.len()?;
        self.object
            .try_iter()?
            .take(length)
            .map(|item| item.map(|item| self.of(item, self.key)))
            .collect()
    }
}

/// Looks at what an object is; what messages are made of comes first.
fn nature<'py>(object: &Bound<'py, PyAny>) -> Nature<'py> {
    if object.is_instance_of::<PyString>() {
        return Nature::Plain(Kind::Text);
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        return Nature::Dict(dict.clone());
    }
    if object.is_none() {
        return Nature::Plain(Kind::Null);
    }
    if object.is_instance_of::<PyList>() {
        return Nature::Plain(Kind::List);
    }
    if let Some(model) = model(object) {
        return model;
    }
    if object.is_instance_of::<PyBool>() {
        return Nature::Plain(Kind::Bool);
    }
    if object.is_instance_of::<PyInt>() || object.is_instance_of::<PyFloat>() {
        return Nature::Plain(Kind::Number);
    }
    if is_mapping(object) {
        return Nature::Mapping;
    }
    if is_sequence(object) {
        return Nature::Plain(Kind::List);
    }
    let foreign = object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyByteArray>()
        || object.is_instance_of::<PyType>()
        || object.is_instance_of::<PyModule>()
        || object.is_callable();
    if foreign {
        Nature::Plain(Kind::Other)
    } else {
        Nature::Attributes
    }
}

/// The object as a pydantic model, when it is one.
fn model<'py>(object: &Bound<'py, PyAny>) -> Option<Nature<'py>> {
    let py = object.py();
    let class = object.get_type();
    if !class
        .hasattr(intern!(py, "__pydantic_validator__"))
        .unwrap_or(false)
    {
        return None;
    }
    let dict = |name| object.getattr(name).ok()?.cast_into::<PyDict>().ok();
    Some(Nature::Model {
        fields: dict(intern!(py, "__dict__"))?,
        extra: dict(intern!(py, "__pydantic_extra__")),
    })
}

impl View for PyView<'_, '_> {
    fn kind(&self) -> Kind {
        match self.nature() {
            Nature::Plain(kind) => *kind,
            Nature::Dict(_) | Nature::Mapping | Nature::Model { .. } | Nature::Attributes => {
                Kind::Object
            }
        }
    }

    fn get(&self, key: Key) -> Option<Self> {
        if self.kind() != Kind::Object {
            return None;
        }
        let name = self.look.names.get(key as usize)?.bind(self.look.py);
        match self.member(name) {
            Ok(value) => value
                .filter(|value| !value.is_none())
                .map(|value| self.of(value, Some(key))),
            Err(error) if error.is_instance_of::<PyAttributeError>(self.look.py) => None,
            Err(error) => {
                self.look.note(error, &self.object, key.name());
                None
            }
        }
    }

    fn text(&self) -> Option<Cow<'_, str>> {
        let text = self.object.cast::<PyString>().ok()?;
        match text.to_str() {
            Ok(text) if !self.look.halves_wait() => Some(Cow::Borrowed(text)),
            _ => self.look.joined(self.key, text).ok().map(Cow::Owned),
        }
    }

    fn integer(&self) -> Option<i64> {
        if self.kind() != Kind::Number {
            return None;
        }
        self.object.cast::<PyInt>().ok()?.extract().ok()
    }

    fn is_true(&self) -> bool {
        self.object
            .cast::<PyBool>()
            .is_ok_and(PyBoolMethods::is_true)
    }

    fn items(&self) -> Vec<Self> {
        if self.kind() != Kind::List {
            return Vec::new();
        }
        self.list_items().unwrap_or_else(|error| {
            self.look.note(error, &self.object, "an item");
            Vec::new()
        })
    }

    fn write(&self, limits: WriteLimits) -> Result<Written, Unwritable> {
        write(&self.object, limits).map_err(|error| match error {
            super::write::Error::Unwritable(reason) => reason,
            super::write::Error::Raised(error) => {
                let sentence = "a value that raised when it was read".to_owned();
                self.look.note(error, &self.object, "a value");
                Unwritable::Foreign(sentence)
            }
        })
    }
}

/// Whether an object that is no dict is to be asked for keys rather than attributes.
pub(super) fn is_mapping(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    let class = object.get_type();
    object.is_instance_of::<PyDict>()
        || class.hasattr(intern!(py, "__getitem__")).unwrap_or(false)
            && class.hasattr(intern!(py, "keys")).unwrap_or(false)
}

/// Whether an object that is neither list nor tuple is a list all the same.
pub(super) fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    let class = object.get_type();
    object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || [
            intern!(py, "__getitem__"),
            intern!(py, "__len__"),
            intern!(py, "__iter__"),
        ]
        .into_iter()
        .all(|name| class.hasattr(name).unwrap_or(false))
            && !is_mapping(object)
            && !object.is_instance_of::<PyString>()
            && !object.is_instance_of::<PyBytes>()
            && !object.is_instance_of::<PyByteArray>()
}
