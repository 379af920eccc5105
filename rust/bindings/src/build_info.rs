//! How this build was made.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Tell how the native core was built.
#[pyfunction]
pub(crate) fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item(
        "profile",
        if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
    )?;
    let mut features: Vec<&str> = Vec::new();
    if cfg!(feature = "abi3") {
        features.push("abi3");
    }
    if cfg!(Py_GIL_DISABLED) {
        features.push("free-threaded");
    }
    info.set_item("features", features)?;
    Ok(info)
}
