//! Arguments that came as Python data, as compact JSON. Does not recurse; a cycle runs into the
//! limit of depth, and sharing that multiplies runs into the limit of length.

use std::fmt::Write as _;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use turnwarden_extract::native::{Unwritable, WriteLimits, Written};

use super::halves::replaced;
use super::view::{is_mapping, is_sequence};
use crate::errors::type_name;
use crate::parsing::values::{integer_digits, write_string};

/// Why a value could not be written.
pub(super) enum Error {
    /// It is not for JSON.
    Unwritable(Unwritable),
    /// Reading it raised.
    Raised(PyErr),
}

impl From<PyErr> for Error {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

/// Writes a value.
pub(super) fn write(value: &Bound<'_, PyAny>, limits: WriteLimits) -> Result<Written, Error> {
    let mut writer = Writer {
        written: Written::default(),
        open: Vec::new(),
        limits,
    };
    writer.begin(value)?;
    while let Some(frame) = writer.open.last_mut() {
        let first = std::mem::replace(&mut frame.first, false);
        match frame.rest.next() {
            None => {
                let closer = frame.closer;
                writer.open.pop();
                writer.written.json.push(closer);
            }
            Some((key, value)) => {
                if !first {
                    writer.written.json.push(',');
                }
                if let Some(key) = key {
                    writer.key(&key)?;
                }
                writer.begin(&value)?;
            }
        }
        if writer.written.json.len() > limits.bytes {
            return Err(Error::Unwritable(Unwritable::TooLong));
        }
    }
    Ok(writer.written)
}

type Member<'py> = (Option<Bound<'py, PyAny>>, Bound<'py, PyAny>);

/// A container that is being written.
struct Frame<'py> {
    rest: std::vec::IntoIter<Member<'py>>,
    closer: char,
    first: bool,
}

struct Writer<'py> {
    written: Written,
    open: Vec<Frame<'py>>,
    limits: WriteLimits,
}

impl<'py> Writer<'py> {
    /// Writes a scalar, or opens a container.
    fn begin(&mut self, value: &Bound<'py, PyAny>) -> Result<(), Error> {
        let json = &mut self.written.json;
        if let Ok(text) = value.cast::<PyString>() {
            self.string(text)?;
        } else if value.is_none() {
            json.push_str("null");
        } else if let Ok(flag) = value.cast::<PyBool>() {
            json.push_str(if flag.is_true() { "true" } else { "false" });
        } else if value.is_instance_of::<PyInt>() {
            match value.extract::<i64>() {
                Ok(number) => json.push_str(&number.to_string()),
                Err(_) => json.push_str(&integer_digits(value)?),
            }
        } else if let Ok(number) = value.cast::<PyFloat>() {
            self.float(number.value());
        } else if is_mapping(value) {
            self.open_object(value)?;
        } else if is_sequence(value) {
            let items = value.try_iter()?;
            let items = items.map(|item| item.map(|item| (None, item)));
            let items = items.collect::<PyResult<Vec<_>>>()?;
            self.open('[', ']', items)?;
        } else {
            let plain = plain_data(value)?.ok_or_else(|| {
                Error::Unwritable(Unwritable::Foreign(format!(
                    "a value of type {}",
                    type_name(value)
                )))
            })?;
            self.open_object(&plain)?;
        }
        Ok(())
    }

    fn string(&mut self, text: &Bound<'py, PyString>) -> PyResult<()> {
        if let Ok(text) = text.to_str() {
            write_string(&mut self.written.json, text);
        } else {
            self.written.repaired = true;
            write_string(&mut self.written.json, &replaced(text)?);
        }
        Ok(())
    }

    fn float(&mut self, number: f64) {
        if number.is_finite() {
            // Writing to a string cannot fail.
            let _ = write!(self.written.json, "{number:?}");
        } else {
            self.written.repaired = true;
            self.written.json.push_str("null");
        }
    }

    /// Writes a key: a string, or what `json.dumps` makes one of.
    fn key(&mut self, key: &Bound<'py, PyAny>) -> Result<(), Error> {
        if let Ok(text) = key.cast::<PyString>() {
            self.string(text)?;
        } else if key.is_none() {
            self.written.json.push_str("\"null\"");
        } else if let Ok(flag) = key.cast::<PyBool>() {
            let text = if flag.is_true() {
                "\"true\""
            } else {
                "\"false\""
            };
            self.written.json.push_str(text);
        } else if key.is_instance_of::<PyInt>() || key.is_instance_of::<PyFloat>() {
            self.string(&key.str()?)?;
        } else {
            return Err(Error::Unwritable(Unwritable::Foreign(format!(
                "a key of type {}",
                type_name(key)
            ))));
        }
        self.written.json.push(':');
        Ok(())
    }

    fn open_object(&mut self, mapping: &Bound<'py, PyAny>) -> Result<(), Error> {
        // A copy of the items: the mapping may change while they are written.
        let items = match mapping.cast::<PyDict>() {
            Ok(dict) => dict.items().into_any(),
            Err(_) => mapping.call_method0(intern!(mapping.py(), "items"))?,
        };
        let pair = |item: PyResult<Bound<'py, PyAny>>| {
            let (key, value) = item?.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
            Ok((Some(key), value))
        };
        let members = items.try_iter()?.map(pair).collect::<PyResult<Vec<_>>>()?;
        self.open('{', '}', members)
    }

    fn open(&mut self, opener: char, closer: char, members: Vec<Member<'py>>) -> Result<(), Error> {
        if self.open.len() >= self.limits.depth {
            return Err(Error::Unwritable(Unwritable::TooDeep));
        }
        self.written.json.push(opener);
        self.open.push(Frame {
            rest: members.into_iter(),
            closer,
            first: true,
        });
        Ok(())
    }
}

/// The fields of a pydantic model, a dataclass or a namespace, as a dict; `None` for anything
/// else.
fn plain_data<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    let class = value.get_type();
    if class.hasattr(intern!(py, "model_dump"))? {
        let options = PyDict::new(py);
        options.set_item("mode", "json")?;
        let dumped = value.call_method(intern!(py, "model_dump"), (), Some(&options))?;
        return Ok(Some(dumped).filter(is_mapping));
    }
    if class.hasattr(intern!(py, "__dataclass_fields__"))? {
        let dict = PyDict::new(py);
        for name in value
            .getattr(intern!(py, "__dataclass_fields__"))?
            .try_iter()?
        {
            let name = name?.cast_into::<PyString>()?;
            if let Some(field) = value.getattr_opt(&name)? {
                dict.set_item(name, field)?;
            }
        }
        return Ok(Some(dict.into_any()));
    }
    let namespace = py
        .import(intern!(py, "types"))?
        .getattr(intern!(py, "SimpleNamespace"))?;
    if value.is_instance(&namespace)? {
        return Ok(Some(value.getattr(intern!(py, "__dict__"))?));
    }
    Ok(None)
}
