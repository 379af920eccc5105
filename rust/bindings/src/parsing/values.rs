//! JSON text to Python values and back.
//!
//! [`Builder`] makes Python objects from a walk over JSON text, [`write_json`] writes Python
//! values as compact JSON. Neither recurses: both keep their own stack.

use std::borrow::Cow;
use std::fmt::Write;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMapping, PySet, PyString, PyTuple,
};
use turnwarden_extract::json;

use crate::errors::{Error, type_name};

/// Values nested deeper than this are refused: they would be cyclic, or no call of any model.
const MAX_DEPTH: usize = 512;

/// Python refuses to read or show longer integers in one go.
const INTEGER_CHUNK: usize = 4000;

/// Read compact JSON, as the core writes it, into a Python value.
pub(crate) fn read_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let mut builder = Builder {
        py,
        innermost: None,
        outer: Vec::new(),
        items: Vec::new(),
        root: None,
    };
    json::visit(text, &mut builder).map_err(|error| match error {
        json::VisitError::Stopped(error) => error,
        json::VisitError::Malformed(offset) => Error::Malformed(offset).into(),
    })?;
    match builder.root {
        Some(value) => Ok(value),
        None => Err(Error::Malformed(0).into()),
    }
}

/// Read a compact JSON object, as the core writes it, into a dict.
pub(crate) fn read_object<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyDict>> {
    Ok(read_json(py, text)?.cast_into::<PyDict>()?)
}

/// A container that is being filled.
enum Open<'py> {
    /// Its items are those from `start` on.
    Array { start: usize },
    /// Takes its next value under `key`.
    Object {
        dict: Bound<'py, PyDict>,
        key: Option<Bound<'py, PyString>>,
    },
}

/// Makes Python objects from the events of a walk over JSON.
///
/// The innermost container has a place of its own, so that flat arguments, which most are, need no
/// stack.
struct Builder<'py> {
    py: Python<'py>,
    innermost: Option<Open<'py>>,
    outer: Vec<Open<'py>>,
    /// The items of the arrays that are open.
    items: Vec<Bound<'py, PyAny>>,
    root: Option<Bound<'py, PyAny>>,
}

impl<'py> Builder<'py> {
    fn put(&mut self, value: Bound<'py, PyAny>) -> PyResult<()> {
        match &mut self.innermost {
            Some(Open::Object { dict, key }) => match key.take() {
                Some(key) => dict.set_item(key, value),
                None => Ok(()),
            },
            Some(Open::Array { .. }) => {
                self.items.push(value);
                Ok(())
            }
            None => {
                self.root = Some(value);
                Ok(())
            }
        }
    }

    fn open(&mut self, container: Open<'py>) {
        let outer = self.innermost.replace(container);
        self.outer.extend(outer);
    }

    fn close(&mut self) -> Option<Open<'py>> {
        let outer = self.outer.pop();
        std::mem::replace(&mut self.innermost, outer)
    }
}

impl json::Visitor for Builder<'_> {
    type Error = PyErr;

    fn null(&mut self) -> PyResult<()> {
        self.put(self.py.None().into_bound(self.py))
    }

    fn boolean(&mut self, value: bool) -> PyResult<()> {
        self.put(PyBool::new(self.py, value).to_owned().into_any())
    }

    fn integer(&mut self, digits: &str) -> PyResult<()> {
        let number = match digits.parse::<i64>() {
            Ok(number) => number.into_pyobject(self.py)?.into_any(),
            Err(_) => read_long_integer(self.py, digits)?,
        };
        self.put(number)
    }

    fn float(&mut self, value: f64, _written: &str) -> PyResult<()> {
        self.put(PyFloat::new(self.py, value).into_any())
    }

    fn string(&mut self, text: Cow<'_, str>) -> PyResult<()> {
        self.put(PyString::new(self.py, &text).into_any())
    }

    fn key(&mut self, text: Cow<'_, str>) -> PyResult<()> {
        if let Some(Open::Object { key, .. }) = &mut self.innermost {
            *key = Some(super::keys::key(self.py, &text));
        }
        Ok(())
    }

    fn begin_object(&mut self) -> PyResult<()> {
        self.open(Open::Object {
            dict: PyDict::new(self.py),
            key: None,
        });
        Ok(())
    }

    fn end_object(&mut self) -> PyResult<()> {
        match self.close() {
            Some(Open::Object { dict, .. }) => self.put(dict.into_any()),
            _ => Ok(()),
        }
    }

    fn begin_array(&mut self) -> PyResult<()> {
        self.open(Open::Array {
            start: self.items.len(),
        });
        Ok(())
    }

    fn end_array(&mut self) -> PyResult<()> {
        match self.close() {
            Some(Open::Array { start }) => {
                let list = PyList::new(self.py, self.items.drain(start..))?;
                self.put(list.into_any())
            }
            _ => Ok(()),
        }
    }
}

/// An integer of any size, exactly.
///
/// Python's own `int(text)` refuses more than 4300 digits, so pieces are read and joined in
/// pairs: with Karatsuba multiplication about n^1.6 in the number of digits.
#[cold]
fn read_long_integer<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let int = py.get_type::<PyInt>();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let mut pieces = digits
        .as_bytes()
        .rchunks(INTEGER_CHUNK)
        .map(|piece| int.call1((String::from_utf8_lossy(piece),)))
        .collect::<PyResult<Vec<_>>>()?;
    let mut scale = int.call1((10,))?.pow(INTEGER_CHUNK, py.None())?;
    while pieces.len() > 1 {
        pieces = pieces
            .chunks(2)
            .map(|pair| match pair {
                [low, high] => high.mul(&scale)?.add(low),
                rest => rest
                    .iter()
                    .try_fold(int.call0()?, |sum, piece| sum.add(piece)),
            })
            .collect::<PyResult<Vec<_>>>()?;
        if pieces.len() > 1 {
            scale = scale.mul(&scale)?;
        }
    }
    let number = pieces.pop().map_or_else(|| int.call0(), Ok)?;
    if negative { number.neg() } else { Ok(number) }
}

/// What [`write_json`] does with values that JSON does not know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// An error with the path to the value.
    Refuse,
    /// Models and dataclasses become objects, sets become arrays, anything else its `str`.
    Convert,
}

/// Write a Python value as compact JSON, non-ASCII characters kept.
pub(crate) fn write_json(value: &Bound<'_, PyAny>, foreign: Foreign) -> PyResult<String> {
    let mut writer = Writer {
        foreign,
        out: String::new(),
        stack: Vec::new(),
    };
    writer.write(value.clone())?;
    Ok(writer.out)
}

/// A container that is being written, with what is left of it.
enum Frame<'py> {
    Array {
        items: std::vec::IntoIter<Bound<'py, PyAny>>,
        index: usize,
    },
    Object {
        items: std::vec::IntoIter<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
        key: String,
        first: bool,
    },
}

struct Writer<'py> {
    foreign: Foreign,
    out: String,
    stack: Vec<Frame<'py>>,
}

impl<'py> Writer<'py> {
    fn write(&mut self, value: Bound<'py, PyAny>) -> PyResult<()> {
        let mut next = Some(value);
        loop {
            if let Some(value) = next.take() {
                self.begin(&value)?;
            }
            match self.step()? {
                Step::Value(value) => next = Some(value),
                Step::Closed => {}
                Step::Done => return Ok(()),
            }
        }
    }

    /// Go on in the innermost container.
    fn step(&mut self) -> PyResult<Step<'py>> {
        let value = match self.stack.last_mut() {
            None => return Ok(Step::Done),
            Some(Frame::Array { items, index }) => items.next().inspect(|_| {
                if *index > 0 {
                    self.out.push(',');
                }
                *index += 1;
            }),
            Some(Frame::Object { items, .. }) => match items.next() {
                None => None,
                Some((key, value)) => {
                    let text = self.key_text(&key)?;
                    self.begin_member(text);
                    Some(value)
                }
            },
        };
        if let Some(value) = value {
            return Ok(Step::Value(value));
        }
        match self.stack.pop() {
            Some(Frame::Array { .. }) => self.out.push(']'),
            Some(Frame::Object { .. }) => self.out.push('}'),
            None => {}
        }
        Ok(Step::Closed)
    }

    fn begin_member(&mut self, text: String) {
        if let Some(Frame::Object { key, first, .. }) = self.stack.last_mut() {
            if !*first {
                self.out.push(',');
            }
            *first = false;
            write_string(&mut self.out, &text);
            self.out.push(':');
            *key = text;
        }
    }

    fn key_text(&self, key: &Bound<'py, PyAny>) -> PyResult<String> {
        if let Ok(text) = key.cast::<PyString>() {
            return string_text(text);
        }
        match self.foreign {
            Foreign::Convert => string_text(&key.str()?),
            Foreign::Refuse => Err(self.refuse(key, "a key that is")),
        }
    }

    /// Write a scalar, or open a container.
    fn begin(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        if value.is_none() {
            self.out.push_str("null");
        } else if let Ok(text) = value.cast::<PyString>() {
            self.string(text)?;
        } else if let Ok(flag) = value.cast::<PyBool>() {
            self.out
                .push_str(if flag.is_true() { "true" } else { "false" });
        } else if value.is_instance_of::<PyInt>() {
            self.integer(value)?;
        } else if let Ok(number) = value.cast::<PyFloat>() {
            self.float(number)?;
        } else if let Ok(dict) = value.cast::<PyDict>() {
            self.open_object(dict.items().iter())?;
        } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            self.open_array(value)?;
        } else {
            self.foreign(value)?;
        }
        Ok(())
    }

    fn string(&mut self, text: &Bound<'py, PyString>) -> PyResult<()> {
        match text.to_str() {
            Ok(text) => write_string(&mut self.out, text),
            Err(_) => write_string(&mut self.out, &string_text(text)?),
        }
        Ok(())
    }

    fn integer(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        match value.extract::<i64>() {
            Ok(number) => self.out.push_str(&number.to_string()),
            Err(_) => self.out.push_str(&integer_digits(value)?),
        }
        Ok(())
    }

    fn float(&mut self, number: &Bound<'py, PyFloat>) -> PyResult<()> {
        let value = number.value();
        if value.is_finite() {
            let _ = write!(self.out, "{value:?}");
            return Ok(());
        }
        match self.foreign {
            Foreign::Convert => self.out.push_str("null"),
            Foreign::Refuse => return Err(self.refuse(number, "a number that is not finite:")),
        }
        Ok(())
    }

    fn open_object(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<()> {
        let items = items
            .map(|item| item.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>())
            .collect::<PyResult<Vec<_>>>()?;
        self.check_depth()?;
        self.out.push('{');
        self.stack.push(Frame::Object {
            items: items.into_iter(),
            key: String::new(),
            first: true,
        });
        Ok(())
    }

    fn open_array(&mut self, items: &Bound<'py, PyAny>) -> PyResult<()> {
        let items = items.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        self.check_depth()?;
        self.out.push('[');
        self.stack.push(Frame::Array {
            items: items.into_iter(),
            index: 0,
        });
        Ok(())
    }

    fn check_depth(&self) -> PyResult<()> {
        if self.stack.len() < MAX_DEPTH {
            return Ok(());
        }
        Err(Error::NotJson {
            path: "$".to_owned(),
            found: format!("a value nested deeper than {MAX_DEPTH} levels"),
        }
        .into())
    }

    /// Write a value that is none of JSON's own types.
    fn foreign(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(mapping) = value.cast::<PyMapping>() {
            return self.open_object(mapping.items()?.iter());
        }
        if self.foreign == Foreign::Refuse {
            return Err(self.refuse(value, "a value that is"));
        }
        if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() {
            return self.open_array(value);
        }
        match as_plain_data(value)? {
            Some(plain) => self.begin_plain(&plain),
            None => self.string(&value.str()?),
        }
    }

    fn begin_plain(&mut self, plain: &Bound<'py, PyAny>) -> PyResult<()> {
        match plain.cast::<PyDict>() {
            Ok(dict) => self.open_object(dict.items().iter()),
            Err(_) => self.string(&plain.str()?),
        }
    }

    #[cold]
    fn refuse(&self, value: &Bound<'py, PyAny>, role: &str) -> PyErr {
        let mut path = "$".to_owned();
        for frame in &self.stack {
            match frame {
                Frame::Array { index, .. } => {
                    let _ = write!(path, "[{}]", index.saturating_sub(1));
                }
                Frame::Object { key, .. } => {
                    path.push('.');
                    path.push_str(key);
                }
            }
        }
        Error::NotJson {
            path,
            found: format!("{role} {}", type_name(value)),
        }
        .into()
    }
}

enum Step<'py> {
    Value(Bound<'py, PyAny>),
    Closed,
    Done,
}

/// The fields of a pydantic model or a dataclass; None for anything else.
fn as_plain_data<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    if value.is_instance_of::<pyo3::types::PyType>() {
        return Ok(None);
    }
    if let Some(dump) = value.getattr_opt(intern!(py, "model_dump"))? {
        let options = PyDict::new(py);
        options.set_item("mode", "json")?;
        options.set_item("by_alias", true)?;
        return dump.call((), Some(&options)).map(Some);
    }
    let Some(fields) = value.getattr_opt(intern!(py, "__dataclass_fields__"))? else {
        return Ok(None);
    };
    let dict = PyDict::new(py);
    for name in fields.try_iter()? {
        let name = name?.cast_into::<PyString>()?;
        if let Some(field) = value.getattr_opt(&name)? {
            dict.set_item(name, field)?;
        }
    }
    Ok(Some(dict.into_any()))
}

/// The decimal digits of an integer of any size.
#[cold]
pub(crate) fn integer_digits(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = value.py();
    let int = py.get_type::<PyInt>();
    let zero = int.call0()?;
    let scale = int.call1((10,))?.pow(INTEGER_CHUNK, py.None())?;
    let negative = value.lt(&zero)?;
    let mut rest = value.abs()?;
    let mut pieces = Vec::new();
    while rest.ge(&scale)? {
        let (quotient, piece) = rest
            .divmod(&scale)?
            .extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        pieces.push(format!(
            "{:0>INTEGER_CHUNK$}",
            int.call1((piece,))?.str()?.to_str()?
        ));
        rest = quotient;
    }
    // `int(...)` first: a subclass may show itself as something else.
    let mut digits = int.call1((rest,))?.str()?.to_str()?.to_owned();
    if negative {
        digits.insert(0, '-');
    }
    digits.extend(pieces.iter().rev().map(String::as_str));
    Ok(digits)
}

/// The text of a `str`, lone surrogates replaced.
fn string_text(text: &Bound<'_, PyString>) -> PyResult<String> {
    super::text::read_text(text.as_any(), "text").map(super::text::Text::into_string)
}

/// Write a JSON string literal, non-ASCII characters kept.
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            0x0C => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(text.get(from..at).unwrap_or_default());
        if escape.is_empty() {
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.push_str(escape);
        }
        from = at + 1;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out.push('"');
}
