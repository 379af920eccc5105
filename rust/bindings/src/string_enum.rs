//! Python string enums made from the closed lists of the Rust crates.
//!
//! A member of such an enum equals its string (`RepairKind.COMMA_DROPPED == "comma_dropped"`), and
//! the list has one home: the Rust enum.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};

/// A Python `enum.StrEnum` whose members are made once and looked up by value.
pub(crate) struct StringEnum {
    name: &'static str,
    doc: &'static str,
    values: fn() -> Vec<&'static str>,
    made: PyOnceLock<Made>,
}

struct Made {
    class: Py<PyAny>,
    members: Vec<(&'static str, Py<PyAny>)>,
}

impl StringEnum {
    /// Describe the enum; it is made when it is first asked for. `values` are snake-case names,
    /// which become the members' names in upper case.
    pub(crate) const fn new(
        name: &'static str,
        doc: &'static str,
        values: fn() -> Vec<&'static str>,
    ) -> Self {
        Self {
            name,
            doc,
            values,
            made: PyOnceLock::new(),
        }
    }

    /// The member for a value; a value that is no member comes back as a plain string.
    pub(crate) fn member<'py>(
        &self,
        py: Python<'py>,
        value: &'static str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let members = &self.made(py)?.members;
        match members.iter().find(|(known, _)| *known == value) {
            Some((_, member)) => Ok(member.bind(py).clone()),
            None => Ok(value.into_pyobject(py)?.into_any()),
        }
    }

    /// Put the enum into the module.
    pub(crate) fn register(&self, module: &Bound<'_, PyModule>) -> PyResult<()> {
        let made = self.made(module.py())?;
        module.add(self.name, made.class.bind(module.py()))
    }

    fn made<'a>(&'a self, py: Python<'_>) -> PyResult<&'a Made> {
        self.made.get_or_try_init(py, || self.make(py))
    }

    fn make(&self, py: Python<'_>) -> PyResult<Made> {
        let values = (self.values)();
        let pairs = values.iter().map(|value| (value.to_uppercase(), *value));
        let options = PyDict::new(py);
        options.set_item("module", "turnwarden")?;
        let class = py
            .import("enum")?
            .getattr("StrEnum")?
            .call((self.name, PyList::new(py, pairs)?), Some(&options))?;
        class.setattr("__doc__", self.doc)?;
        let members = values
            .iter()
            .map(|value| Ok((*value, class.call1((*value,))?.unbind())))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(Made {
            class: class.unbind(),
            members,
        })
    }
}
