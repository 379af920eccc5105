//! What guards answer. Texts, enums and dicts are made when asked for.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use turnwarden_guard::{self as core, Finding, GuardAction, IterationLevel, RecursionGuard, Texts};

use super::call::ReadCall;
use super::config::{Settings, repr};
use super::enums;

/// How far a run has come, from `RecursionGuard.check` and `GuardCheckResult`.
///
/// Attributes:
///     current_iteration: Iterations begun (int).
///     should_continue: Whether this iteration may run.
///     is_warning: Whether the warning threshold is reached, and no limit.
///     is_soft_limit: Whether the soft limit is reached, and not the hard one.
///     is_hard_limit: Whether the hard limit is reached.
///     warning_message: What the model is told, or None below all thresholds.
///
/// Example:
///     >>> turnwarden.RecursionGuard(warning_threshold=1).increment().is_warning
///     True
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct RecursionCheckResult {
    pub(super) guard: RecursionGuard,
    pub(super) texts: Arc<Settings>,
}

#[pymethods]
impl RecursionCheckResult {
    #[getter]
    fn current_iteration(&self) -> u32 {
        self.guard.current_iteration()
    }

    #[getter]
    fn should_continue(&self) -> bool {
        self.guard.check() != IterationLevel::HardLimit
    }

    #[getter]
    fn is_warning(&self) -> bool {
        self.guard.check() == IterationLevel::Warning
    }

    #[getter]
    fn is_soft_limit(&self) -> bool {
        self.guard.check() == IterationLevel::SoftLimit
    }

    #[getter]
    fn is_hard_limit(&self) -> bool {
        self.guard.check() == IterationLevel::HardLimit
    }

    #[getter]
    fn warning_message(&self) -> Option<String> {
        let texts = &self.texts.core.texts;
        core::iteration_warning(texts, self.guard.config, self.guard.current_iteration())
    }

    /// Return the fields as plain data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("current_iteration", self.current_iteration())?;
        fields.set_item("should_continue", self.should_continue())?;
        fields.set_item("is_warning", self.is_warning())?;
        fields.set_item("is_soft_limit", self.is_soft_limit())?;
        fields.set_item("is_hard_limit", self.is_hard_limit())?;
        fields.set_item("warning_message", self.warning_message())?;
        Ok(fields)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        repr("RecursionCheckResult", &self.to_dict(py)?)
    }

    fn __copy__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyRef<'py, Self> {
        slf
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.guard == other.guard && self.warning_message() == other.warning_message()
    }
}

/// Whether calls go round in circles; true in a condition when they do.
///
/// Everything but `loop_detected` is None without a loop. Texts are made when asked for.
///
/// Attributes:
///     loop_detected: Whether there is a loop (bool).
///     loop_type: Which (`LoopType`).
///     detail: For no_progress in which way: "errors", "scatter", "coverage" or "lookups".
///     reason: The stable reason code, such as "loop.exact".
///     loop_length: Turns, calls or errors in a row so far; for laps the period in turns.
///     involved_tools: Names of the tools, each once, in order (tuple of str, as the model
///         wrote them: escape them before they get into a prompt).
///     description: What was seen, safe for a prompt.
///     suggestion: What to do about it, safe for a prompt.
///     confidence: Strength of the evidence, 0 to 1; an order, not a probability.
///     evidence: Numbers of the calls, counted from 0 over the run (tuple of int).
///
/// Example:
///     >>> detector = turnwarden.LoopDetector()
///     >>> for _ in range(3):
///     ...     detector.record_call("search", {"q": "tea"})
///     >>> found = detector.detect()
///     >>> found.loop_type.value, found.loop_length, found.evidence
///     ('exact', 3, (0, 1, 2))
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct LoopDetectionResult {
    pub(super) finding: Option<Arc<Finding>>,
    pub(super) texts: Arc<Settings>,
}

impl LoopDetectionResult {
    fn texts(&self) -> &Texts {
        &self.texts.core.texts
    }

    fn of_finding<T>(&self, read: impl FnOnce(&Finding) -> T) -> Option<T> {
        self.finding.as_deref().map(read)
    }
}

#[pymethods]
impl LoopDetectionResult {
    #[getter]
    fn loop_detected(&self) -> bool {
        self.finding.is_some()
    }

    #[getter]
    fn loop_type(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.of_finding(|finding| enums::loop_type(py, finding.rule.loop_type()))
            .transpose()
    }

    #[getter]
    fn detail(&self) -> Option<&'static str> {
        self.of_finding(|finding| finding.rule.detail()).flatten()
    }

    #[getter]
    fn reason(&self) -> Option<&'static str> {
        self.of_finding(|finding| finding.rule.code())
    }

    #[getter]
    fn loop_length(&self) -> Option<u32> {
        self.of_finding(|finding| finding.length)
    }

    #[getter]
    fn involved_tools<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.of_finding(|finding| PyTuple::new(py, finding.tools()))
            .transpose()
    }

    #[getter]
    fn description(&self) -> Option<String> {
        self.of_finding(|finding| core::loop_description(self.texts(), finding))
    }

    #[getter]
    fn suggestion(&self) -> Option<String> {
        self.of_finding(|finding| core::loop_suggestion(self.texts(), finding))
    }

    #[getter]
    fn confidence(&self) -> Option<f64> {
        self.of_finding(Finding::confidence)
    }

    #[getter]
    fn evidence<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.of_finding(|finding| PyTuple::new(py, &finding.evidence))
            .transpose()
    }

    /// Return the fields as plain data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("loop_detected", self.loop_detected())?;
        let loop_type = self.of_finding(|finding| finding.rule.loop_type().as_str());
        fields.set_item("loop_type", loop_type)?;
        fields.set_item("detail", self.detail())?;
        fields.set_item("loop_length", self.loop_length())?;
        fields.set_item(
            "involved_tools",
            self.of_finding(|finding| {
                finding
                    .tools()
                    .into_iter()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            }),
        )?;
        fields.set_item("description", self.description())?;
        fields.set_item("suggestion", self.suggestion())?;
        fields.set_item("confidence", self.confidence())?;
        fields.set_item(
            "evidence",
            self.of_finding(|finding| finding.evidence.clone()),
        )?;
        Ok(fields)
    }

    fn __bool__(&self) -> bool {
        self.loop_detected()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        repr("LoopDetectionResult", &self.to_dict(py)?)
    }

    fn __copy__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyRef<'py, Self> {
        slf
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.finding == other.finding
    }
}

/// The verdict on a run, as it stood when it was made. Texts are made when asked for.
///
/// Attributes:
///     action: What to do (`GuardAction`): continue, warn, block or stop.
///     allow_continue: Whether the run may go on: everything but stop.
///     force_terminate: Whether it must end: stop.
///     force_terminate_reason: The weightiest reason code, or what `terminate` was given; None
///         unless the action is stop.
///     reasons: Codes of all that the guard has to say, the weightiest first (tuple of str);
///         `guards.REASON_CODES` lists them.
///     warning_message: What the model is told, safe for a prompt; None when all is well.
///     recursion_check: How far the run has come (`RecursionCheckResult`).
///     loop_check: The loop, if any (`LoopDetectionResult`).
///
/// Example:
///     >>> guard = turnwarden.WorkflowGuard()
///     >>> for _ in range(4):
///     ...     verdict = guard.record_tool_call("search", {"q": "tea"})
///     >>> verdict.action.value, verdict.reasons
///     ('block', ('loop.exact',))
///     >>> verdict.allows(("search", {"q": "tea"})), verdict.allows(("search", {"q": "milk"}))
///     (False, True)
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct GuardCheckResult {
    pub(super) verdict: core::Verdict,
    pub(super) settings: Arc<Settings>,
}

#[pymethods]
impl GuardCheckResult {
    #[getter]
    fn action(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        enums::action(py, self.verdict.action())
    }

    #[getter]
    fn allow_continue(&self) -> bool {
        self.verdict.action() != GuardAction::Stop
    }

    #[getter]
    fn force_terminate(&self) -> bool {
        self.verdict.action() == GuardAction::Stop
    }

    #[getter]
    fn force_terminate_reason(&self) -> Option<&str> {
        self.verdict.stop_reason()
    }

    #[getter]
    fn reasons<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.verdict.reasons())
    }

    #[getter]
    fn warning_message(&self) -> Option<String> {
        self.verdict.message()
    }

    #[getter]
    fn recursion_check(&self) -> RecursionCheckResult {
        let config = self.settings.core.recursion;
        RecursionCheckResult {
            guard: RecursionGuard::at(config, self.verdict.iteration),
            texts: Arc::clone(&self.settings),
        }
    }

    #[getter]
    fn loop_check(&self) -> LoopDetectionResult {
        LoopDetectionResult {
            finding: self.verdict.finding.clone(),
            texts: Arc::clone(&self.settings),
        }
    }

    /// Return whether this call may be run.
    ///
    /// It is answered from the verdict alone: STOP allows none, BLOCK all but those of the loop.
    fn allows(&self, call: &Bound<'_, PyAny>) -> PyResult<bool> {
        match self.verdict.action() {
            GuardAction::Continue | GuardAction::Warn => return Ok(true),
            GuardAction::Stop => return Ok(false),
            GuardAction::Block => {}
        }
        let read = ReadCall::from_object(call)?;
        let signature = read.with(&self.settings, |_, call| {
            let tool = self.settings.core.detection.tools.get(call.name);
            call.signature(&tool)
        })?;
        Ok(self.verdict.allows(signature))
    }

    /// Return the fields as plain data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("action", self.verdict.action().as_str())?;
        fields.set_item("allow_continue", self.allow_continue())?;
        fields.set_item("force_terminate", self.force_terminate())?;
        fields.set_item("force_terminate_reason", self.force_terminate_reason())?;
        fields.set_item("reasons", self.verdict.reasons())?;
        fields.set_item("warning_message", self.warning_message())?;
        fields.set_item("recursion_check", self.recursion_check().to_dict(py)?)?;
        fields.set_item("loop_check", self.loop_check().to_dict(py)?)?;
        Ok(fields)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        repr("GuardCheckResult", &self.to_dict(py)?)
    }

    fn __copy__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyRef<'py, Self> {
        slf
    }

    fn __eq__(&self, other: &Self, py: Python<'_>) -> PyResult<bool> {
        self.to_dict(py)?.eq(other.to_dict(py)?)
    }
}
