//! Limits and counts as Python gives them.

use core::convert::Infallible;
use std::num::NonZero;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

use crate::errors::Error;

/// A limit that was given as a Python integer. One too large for the machine is no limit; a
/// negative one is refused.
#[derive(Clone, Copy)]
pub(crate) struct Limit(pub(crate) usize);

impl<'py> FromPyObject<'_, 'py> for Limit {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let limit = natural(
            value,
            "a limit must be 0 or more; leave it out for the default",
        )?;
        Ok(Self(limit.unwrap_or(usize::MAX)))
    }
}

/// A number of threads, 1 or more. One too large for the machine is as many as there is work for.
#[derive(Clone, Copy)]
pub(crate) struct Threads(pub(crate) NonZero<usize>);

impl<'py> FromPyObject<'_, 'py> for Threads {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        const REASON: &str = "threads must be 1 or more; leave it out for one a core";
        let count = natural(value, REASON)?.unwrap_or(usize::MAX);
        match NonZero::new(count) {
            Some(count) => Ok(Self(count)),
            None => Err(Error::Configuration(REASON.to_owned()).into()),
        }
    }
}

/// A place in a text or among the calls of a reply, or a length.
#[derive(Clone, Copy)]
pub(crate) struct Offset(pub(crate) usize);

impl<'py> FromPyObject<'_, 'py> for Offset {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        const REASON: &str =
            "an offset, an index or a length must be 0 or more, and no larger than a text can be";
        match natural(value, REASON)? {
            Some(offset) => Ok(Self(offset)),
            None => Err(Error::Configuration(REASON.to_owned()).into()),
        }
    }
}

impl<'py> IntoPyObject<'py> for &Offset {
    type Target = PyInt;
    type Output = Bound<'py, PyInt>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        self.0.into_pyobject(py)
    }
}

/// An integer that is not negative; None when it is too large for the machine.
fn natural(value: Borrowed<'_, '_, PyAny>, reason: &str) -> PyResult<Option<usize>> {
    if value.is_instance_of::<PyBool>() {
        return Err(Error::wrong_type("a number", "int", &value).into());
    }
    let error = match value.extract::<usize>() {
        Ok(number) => return Ok(Some(number)),
        Err(error) => error,
    };
    if !error.is_instance_of::<PyOverflowError>(value.py()) {
        return Err(error);
    }
    if value.lt(0)? {
        return Err(Error::Configuration(reason.to_owned()).into());
    }
    Ok(None)
}
