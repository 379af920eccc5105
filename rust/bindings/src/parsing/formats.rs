//! The formats that are read, as Python sees them.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use turnwarden_extract as extract;

/// How one family of models writes its calls.
///
/// Attributes:
///     label (str): The name by which the format is pinned and reported.
///     models (tuple[str, ...]): The models that use it.
///     example (str): A reply with one call or more.
///
/// Example:
///     >>> hermes = next(f for f in turnwarden.formats() if f.label == "hermes")
///     >>> turnwarden.parse(hermes.example).format
///     'hermes'
#[pyclass(frozen, module = "turnwarden", name = "Format")]
pub(crate) struct PyFormat(extract::Format);

#[pymethods]
impl PyFormat {
    #[getter]
    fn label(&self) -> &str {
        &self.0.label
    }

    #[getter]
    fn models<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.models)
    }

    #[getter]
    fn example(&self) -> &str {
        &self.0.example
    }

    /// Give label, models and example as plain data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("label", &self.0.label)?;
        dict.set_item("models", &self.0.models)?;
        dict.set_item("example", &self.0.example)?;
        Ok(dict)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> Option<bool> {
        let other = other.cast::<Self>().ok()?;
        Some(self.0 == other.get().0)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.0.label.as_str().into_pyobject(py)?.hash()
    }

    fn __repr__(&self) -> String {
        format!("<Format {}>", self.0.label)
    }
}

/// Give all formats that are read, in the order in which they are tried.
///
/// Example:
///     >>> "workflow_json" in [format.label for format in turnwarden.formats()]
///     True
#[pyfunction]
pub(crate) fn formats(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    let shown = extract::formats()
        .iter()
        .map(|format| Bound::new(py, PyFormat(extract::Format::clone(format))))
        .collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, shown)
}
