//! Response parsing as Python sees it: thin classes over `turnwarden-extract`.
//!
//! Results stay in Rust until they are asked for; one file a class or a job.

pub(crate) mod call;
pub(crate) mod events;
pub(crate) mod formats;
pub(crate) mod functions;
pub(crate) mod keys;
pub(crate) mod kinds;
pub(crate) mod parser;
pub(crate) mod reply;
pub(crate) mod stream;
pub(crate) mod text;
pub(crate) mod values;
pub(crate) mod workflow;

use pyo3::prelude::*;

/// Put what is made at run time into the module: the string enums.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for kinds in [&kinds::REPAIR_KIND, &kinds::FAULT_KIND, &kinds::SPAN_KIND] {
        kinds.register(module)?;
    }
    Ok(())
}
