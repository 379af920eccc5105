//! Limits as Python gives them.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors::Error;

/// A limit that was given as a Python integer. One too large for the machine is no limit; a
/// negative one is refused.
#[derive(Clone, Copy)]
pub(crate) struct Limit(pub(crate) usize);

impl<'py> FromPyObject<'_, 'py> for Limit {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let error = match value.extract::<usize>() {
            Ok(limit) => return Ok(Self(limit)),
            Err(error) => error,
        };
        if !error.is_instance_of::<PyOverflowError>(value.py()) {
            return Err(error);
        }
        if value.lt(0)? {
            let message = "a limit must be 0 or more; leave it out for the default".to_owned();
            return Err(Error::Configuration(message).into());
        }
        Ok(Self(usize::MAX))
    }
}
