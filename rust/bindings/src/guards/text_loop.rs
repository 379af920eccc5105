//! `TextLoopDetector`.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use turnwarden_guard as core;

/// Finds a reply that repeats itself while it streams.
///
/// Cycles of sentences and of characters are found; tables, rulers and code fences are left out.
/// Constant memory, linear time.
///
/// Example:
///     >>> detector = turnwarden.TextLoopDetector()
///     >>> detector.feed("ny" * 50), detector.feed("ny" * 500)
///     (False, True)
///     >>> detector.start
///     0
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct TextLoopDetector {
    detector: Mutex<(core::TextLoopDetector, Option<core::TextLoop>)>,
}

#[pymethods]
impl TextLoopDetector {
    #[new]
    fn new() -> Self {
        Self {
            detector: Mutex::default(),
        }
    }

    /// Take the next piece of the text; return whether the text repeats itself.
    fn feed(&self, delta: &str) -> bool {
        let mut state = self.detector.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 = state.0.feed(delta);
        state.1.is_some()
    }

    /// Begin a new text.
    fn reset(&self) {
        *self.detector.lock().unwrap_or_else(PoisonError::into_inner) = Default::default();
    }

    #[getter]
    fn loop_detected(&self) -> bool {
        self.found().is_some()
    }

    #[getter]
    fn start(&self) -> Option<usize> {
        self.found().map(|found| found.start)
    }

    #[getter]
    fn period(&self) -> Option<usize> {
        self.found().map(|found| found.period)
    }
}

impl TextLoopDetector {
    fn found(&self) -> Option<core::TextLoop> {
        self.detector
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
    }
}
