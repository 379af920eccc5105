//! Where a guard's times come from.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;

use super::fields::{function, wrong};

/// Seconds, by the system's monotonic clock or by a function of the user's.
pub(super) struct Clock {
    function: Option<Py<PyAny>>,
}

impl Clock {
    /// Raises an error for what is no function.
    pub(super) fn new(given: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let function = function("clock", given.cloned())?;
        Ok(Self { function })
    }

    pub(super) fn now(&self, py: Python<'_>) -> PyResult<f64> {
        match &self.function {
            None => Ok(system_now()),
            Some(function) => {
                let told = function.bind(py).call0()?;
                let time = told.extract().ok().filter(|time: &f64| time.is_finite());
                time.ok_or_else(|| {
                    wrong("what clock returned", &told, "a finite number of seconds")
                })
            }
        }
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            function: self
                .function
                .as_ref()
                .map(|function| function.clone_ref(py)),
        }
    }

    pub(super) fn function(&self) -> Option<&Py<PyAny>> {
        self.function.as_ref()
    }
}

/// Seconds since 1970 that never step back: the time of day when this was first asked for, and
/// what the monotonic clock has counted since.
fn system_now() -> f64 {
    static START: OnceLock<(Instant, f64)> = OnceLock::new();
    let (base, epoch) = START.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        (Instant::now(), now.map_or(0.0, |now| now.as_secs_f64()))
    });
    epoch + base.elapsed().as_secs_f64()
}
