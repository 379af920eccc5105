//! Response parsing as Python sees it: thin classes over `turnwarden-extract`.
//!
//! Results stay in Rust until they are asked for; one file a class or a job.

pub(crate) mod call;
pub(crate) mod events;
pub(crate) mod formats;
pub(crate) mod functions;
pub(crate) mod keys;
pub(crate) mod kinds;
pub(crate) mod limit;
pub(crate) mod parser;
pub(crate) mod reply;
pub(crate) mod stream;
pub(crate) mod text;
pub(crate) mod values;
pub(crate) mod workflow;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Make the ids of this process anew: the one that it was forked from goes on with the others.
#[pyfunction]
fn forked() {
    turnwarden_extract::forked();
}

/// Put what is made at run time into the module: the string enums. Watch for forks, where there
/// are any.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let os = py.import(intern!(py, "os"))?;
    if let Some(register_at_fork) = os.getattr_opt(intern!(py, "register_at_fork"))? {
        let hooks = PyDict::new(py);
        hooks.set_item("after_in_child", wrap_pyfunction!(forked, py)?)?;
        register_at_fork.call((), Some(&hooks))?;
    }
    for kinds in [&kinds::REPAIR_KIND, &kinds::FAULT_KIND, &kinds::SPAN_KIND] {
        kinds.register(module)?;
    }
    Ok(())
}
