//! `RecursionGuard`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use turnwarden_guard as core;

use super::config::{RecursionGuardConfig, Settings, texts_from};
use super::fields::Fields;
use super::result::RecursionCheckResult;

/// What pickle keeps of a guard: its fields and its iteration.
type PickledCount<'py> = (Bound<'py, PyDict>, u32);

/// Counts the iterations of one run against its limits.
///
/// The iteration that reaches the hard limit is refused, so `hard_limit - 1` run, and the last
/// of them is told that it is the last. Constant time and memory; safe to share by threads.
///
/// Args:
///     config: A `RecursionGuardConfig` or a mapping; keyword arguments win over it.
///     warning_threshold: See `RecursionGuardConfig`, as for the three that follow.
///     soft_limit: See `RecursionGuardConfig`.
///     hard_limit: See `RecursionGuardConfig`.
///     max_iterations: See `RecursionGuardConfig`.
///     locale: Language of the texts, "en" or "zh".
///     templates: Texts of your own, by the keys of `guards.DEFAULT_TEMPLATES`.
///
/// Raises:
///     ConfigurationError: A value is out of its range; the message names it.
///
/// Example:
///     >>> guard = turnwarden.RecursionGuard(hard_limit=3)
///     >>> [guard.increment().should_continue for _ in range(3)]
///     [True, True, False]
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct RecursionGuard {
    guard: Mutex<core::RecursionGuard>,
    settings: Arc<Settings>,
}

impl RecursionGuard {
    fn lock(&self) -> MutexGuard<'_, core::RecursionGuard> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn result(&self, guard: core::RecursionGuard) -> RecursionCheckResult {
        RecursionCheckResult {
            guard,
            texts: Arc::clone(&self.settings),
        }
    }
}

#[pymethods]
impl RecursionGuard {
    #[new]
    #[pyo3(
        signature = (config=None, **fields),
        text_signature = "(config=None, *, warning_threshold=None, soft_limit=None, hard_limit=None, max_iterations=None, locale=None, templates=None)"
    )]
    fn new(
        config: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let fields = fields.map_or_else(|| Ok(PyDict::new(py)), PyDictMethods::copy)?;
        let texts = PyDict::new(py);
        for key in ["locale", "templates"] {
            if let Some(value) = fields.get_item(key)? {
                texts.set_item(key, value)?;
                fields.del_item(key)?;
            }
        }
        let texts = texts_from(&mut Fields::new("RecursionGuard", None, Some(&texts), py)?)?;
        let config = RecursionGuardConfig::from_value(config, Some(&fields), py)?.config;
        let core = core::GuardSettings {
            recursion: config,
            texts,
            ..core::GuardSettings::default()
        };
        Ok(Self {
            guard: Mutex::new(core::RecursionGuard::new(config)),
            settings: Arc::new(Settings {
                core: Arc::new(core),
                ..Settings::default()
            }),
        })
    }

    /// Begin an iteration and return where the run stands.
    fn increment(&self) -> RecursionCheckResult {
        let mut guard = self.lock();
        guard.increment();
        self.result(*guard)
    }

    /// Return where the run stands.
    fn check(&self) -> RecursionCheckResult {
        self.result(*self.lock())
    }

    /// Begin anew.
    fn reset(&self) {
        self.lock().reset();
    }

    #[getter]
    fn current_iteration(&self) -> u32 {
        self.lock().current_iteration()
    }

    #[getter]
    fn remaining_iterations(&self) -> u32 {
        self.lock().remaining_iterations()
    }

    #[getter]
    fn config(&self) -> RecursionGuardConfig {
        RecursionGuardConfig {
            config: self.settings.core.recursion,
        }
    }

    /// Return a guard at the same iteration, independent from now on.
    fn copy(&self) -> Self {
        Self {
            guard: Mutex::new(*self.lock()),
            settings: Arc::clone(&self.settings),
        }
    }

    fn __copy__(&self) -> Self {
        self.copy()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.copy()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, PickledCount<'py>)> {
        let restore = py.get_type::<Self>().getattr(intern!(py, "_restore"))?;
        let fields = self.config().to_dict(py)?;
        let texts = &self.settings.core.texts;
        fields.set_item("locale", texts.locale.as_str())?;
        let templates = PyDict::new(py);
        for (key, template) in texts.own_templates() {
            templates.set_item(key, template)?;
        }
        fields.set_item("templates", templates)?;
        Ok((restore, (fields, self.current_iteration())))
    }

    /// Make a pickled guard again.
    #[staticmethod]
    fn _restore(
        fields: &Bound<'_, PyDict>,
        current_iteration: u32,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let guard = Self::new(None, Some(fields), py)?;
        *guard.lock() = core::RecursionGuard::at(guard.settings.core.recursion, current_iteration);
        Ok(guard)
    }

    /// Return the text for the next prompt, or None below the first threshold.
    fn generate_prompt_injection(&self) -> Option<String> {
        let guard = *self.lock();
        let texts = &self.settings.core.texts;
        core::iteration_guidance(texts, guard.config, guard.current_iteration())
    }

    fn __repr__(&self) -> String {
        let guard = *self.lock();
        let (current, limit) = (guard.current_iteration(), guard.config.hard_limit);
        format!("<RecursionGuard at {current} of {limit}>")
    }
}
