//! Where a guard's times come from.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;

/// Seconds, by the system's monotonic clock or by a function of the user's.
pub(super) enum Clock {
    /// Monotonic, and lined up with the time of day when the guard was made.
    System { base: Instant, epoch: f64 },
    /// A Python callable that returns seconds.
    Function(Py<PyAny>),
}

impl Clock {
    pub(super) fn new(function: Option<Bound<'_, PyAny>>) -> Self {
        match function.filter(|function| !function.is_none()) {
            Some(function) => Self::Function(function.unbind()),
            None => Self::system(0.0),
        }
    }

    /// The system's clock, as if started so many seconds ago.
    pub(super) fn system(elapsed: f64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self::System {
            base: Instant::now(),
            epoch: now.map_or(0.0, |now| now.as_secs_f64()) - elapsed,
        }
    }

    pub(super) fn now(&self, py: Python<'_>) -> PyResult<f64> {
        match self {
            Self::System { base, epoch } => Ok(epoch + base.elapsed().as_secs_f64()),
            Self::Function(function) => function.bind(py).call0()?.extract(),
        }
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::System { base, epoch } => Self::System {
                base: *base,
                epoch: *epoch,
            },
            Self::Function(function) => Self::Function(function.clone_ref(py)),
        }
    }

    pub(super) fn function(&self) -> Option<&Py<PyAny>> {
        match self {
            Self::System { .. } => None,
            Self::Function(function) => Some(function),
        }
    }
}
