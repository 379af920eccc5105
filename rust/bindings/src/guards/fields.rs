//! Reads the fields of a configuration from Python values, and says what is wrong with them.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyMapping, PyString};
use turnwarden_guard::{ConfigError, allowed_whole_numbers};

use crate::errors::Error;

pub(super) fn config_error(error: &ConfigError) -> PyErr {
    Error::Configuration(error.to_string()).into()
}

/// Fields of one configuration, taken one by one; what is left over is unknown.
pub(super) struct Fields<'py> {
    what: &'static str,
    given: Bound<'py, PyDict>,
    known: Vec<&'static str>,
}

impl<'py> Fields<'py> {
    /// Fields from a mapping and keyword arguments, of which the latter win.
    pub(super) fn new(
        what: &'static str,
        mapping: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
        py: Python<'py>,
    ) -> PyResult<Self> {
        let fields = PyDict::new(py);
        if let Some(mapping) = mapping.filter(|mapping| !mapping.is_none()) {
            let mapping = match mapping.getattr_opt("to_dict")? {
                Some(to_dict) => to_dict.call0()?,
                None => mapping.clone(),
            };
            let Ok(mapping) = mapping.cast::<PyMapping>() else {
                let expected = "a mapping, or made from keyword arguments";
                return Err(Error::wrong_type(what, expected, &mapping).into());
            };
            fields.update(mapping)?;
        }
        if let Some(keywords) = keywords {
            fields.update(keywords.as_mapping())?;
        }
        Ok(Self {
            what,
            given: fields,
            known: Vec::new(),
        })
    }

    /// The value of a field; None is as good as none.
    pub(super) fn take(&mut self, field: &'static str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.known.push(field);
        let Some(value) = self.given.get_item(field)? else {
            return Ok(None);
        };
        self.given.del_item(field)?;
        Ok(Some(value).filter(|value| !value.is_none()))
    }

    pub(super) fn count(&mut self, field: &'static str) -> PyResult<Option<u32>> {
        let value = self.take(field)?;
        value.map(|value| count(field, &value)).transpose()
    }

    /// The fields of a configuration within this one: a mapping, or something made of one.
    pub(super) fn nested(
        &mut self,
        field: &'static str,
        class: &str,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.take(field)?;
        if let Some(value) = value.as_ref().filter(|value| !has_fields(value)) {
            return Err(wrong(
                field,
                value,
                &format!("{class}, or a mapping of its fields"),
            ));
        }
        Ok(value)
    }

    pub(super) fn big_count(&mut self, field: &'static str) -> PyResult<Option<u64>> {
        let value = self.take(field)?;
        value.map(|value| big_count(field, &value)).transpose()
    }

    pub(super) fn number(&mut self, field: &'static str, allowed: &str) -> PyResult<Option<f64>> {
        let Some(value) = self.take(field)? else {
            return Ok(None);
        };
        if !value.is_instance_of::<PyBool>()
            && let Ok(number) = value.extract()
        {
            return Ok(Some(number));
        }
        Err(wrong(field, &value, allowed))
    }

    pub(super) fn flag(&mut self, field: &'static str) -> PyResult<Option<bool>> {
        let value = self.take(field)?;
        value
            .map(|value| {
                value
                    .extract()
                    .map_err(|_| wrong(field, &value, "True or False"))
            })
            .transpose()
    }

    /// Refuses what is left over.
    pub(super) fn finish(self) -> PyResult<()> {
        let Some((key, _)) = self.given.iter().next() else {
            return Ok(());
        };
        let known = self.known.join(", ");
        let what = self.what;
        let key = key.repr()?;
        let message = format!("{what} has no field {key}; it has {known}");
        Err(Error::Configuration(message).into())
    }
}

/// Whether fields of a configuration can be read from a value.
pub(super) fn has_fields(value: &Bound<'_, PyAny>) -> bool {
    value.cast::<PyMapping>().is_ok() || value.hasattr("to_dict").unwrap_or(false)
}

/// An error about a value of the wrong kind.
pub(super) fn wrong(field: &str, value: &Bound<'_, PyAny>, allowed: &str) -> PyErr {
    let shown = value
        .repr()
        .map_or_else(|_| "?".to_owned(), |shown| shown.to_string());
    let shown: String = shown.chars().take(200).collect();
    config_error(&ConfigError::new(field, shown, allowed))
}

/// A function, or None.
pub(super) fn function(
    field: &str,
    given: Option<Bound<'_, PyAny>>,
) -> PyResult<Option<Py<PyAny>>> {
    match given.filter(|given| !given.is_none()) {
        Some(given) if !given.is_callable() => Err(wrong(field, &given, "a function")),
        given => Ok(given.map(Bound::unbind)),
    }
}

pub(super) fn count(field: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    integer(value)
        .and_then(|value| value.extract().ok())
        .ok_or_else(|| wrong(field, value, &allowed_whole_numbers(field)))
}

pub(super) fn big_count(field: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    integer(value)
        .and_then(|value| value.extract().ok())
        .ok_or_else(|| wrong(field, value, &allowed_whole_numbers(field)))
}

fn integer<'a, 'py>(value: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PyInt>> {
    let is_bool = value.is_instance_of::<PyBool>();
    value.cast::<PyInt>().ok().filter(|_| !is_bool)
}

/// A str, or several of them.
pub(super) fn names(field: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<Box<str>>> {
    let allowed = "a list of str";
    if value.is_instance_of::<PyString>() {
        return Err(wrong(field, value, allowed));
    }
    let items = value.try_iter().map_err(|_| wrong(field, value, allowed))?;
    items
        .map(|item| {
            let item = item?;
            let name: String = item.extract().map_err(|_| wrong(field, &item, allowed))?;
            Ok(name.into_boxed_str())
        })
        .collect()
}
