//! `WorkflowGuard` and its context.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use turnwarden_guard::{self as core, Snapshot, SnapshotKind, Spent, Verdict};

use super::call::{OwnedCalls, call_id_of, read_answer};
use super::clock::Clock;
use super::config::{Settings, WorkflowGuardConfig, bytes_of, repr, settings_of};
use super::detector::{one_call, records};
use super::fields::{big_count, wrong};
use super::result::GuardCheckResult;
use crate::errors::Error;

/// What pickle keeps of a guard: its snapshot, a configuration that holds functions, its clock.
pub(super) type PickledGuard<'py> = (
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyAny>>,
    Option<Py<PyAny>>,
);

/// How a run stands: a copy, as it was when asked for.
///
/// Attributes:
///     execution_id: A name for the run, unique to it (str).
///     current_iteration: Iterations begun (int).
///     call_history: The last calls, at most twice the window (list of `CallRecord`).
///     total_calls: Calls recorded in all (int).
///     start_time: When the guard was made or reset, in seconds of its clock (float).
///     last_activity_time: When it was last told something.
///     is_terminated: Whether `terminate` was called.
///     termination_reason: What it was given, or None.
///
/// Example:
///     >>> guard = turnwarden.WorkflowGuard()
///     >>> guard.terminate("the user left")
///     >>> guard.context.termination_reason
///     'the user left'
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct GuardContext {
    #[pyo3(get)]
    execution_id: String,
    #[pyo3(get)]
    current_iteration: u32,
    #[pyo3(get)]
    call_history: Py<PyList>,
    #[pyo3(get)]
    total_calls: u64,
    #[pyo3(get)]
    start_time: f64,
    #[pyo3(get)]
    last_activity_time: f64,
    #[pyo3(get)]
    is_terminated: bool,
    #[pyo3(get)]
    termination_reason: Option<String>,
}

#[pymethods]
impl GuardContext {
    /// Return the fields as plain data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let history = PyList::empty(py);
        for call in self.call_history.bind(py) {
            history.append(call.call_method0("to_dict")?)?;
        }
        let fields = PyDict::new(py);
        fields.set_item("execution_id", &self.execution_id)?;
        fields.set_item("current_iteration", self.current_iteration)?;
        fields.set_item("call_history", history)?;
        fields.set_item("total_calls", self.total_calls)?;
        fields.set_item("start_time", self.start_time)?;
        fields.set_item("last_activity_time", self.last_activity_time)?;
        fields.set_item("is_terminated", self.is_terminated)?;
        fields.set_item("termination_reason", &self.termination_reason)?;
        Ok(fields)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        repr("GuardContext", &self.to_dict(py)?)
    }
}

/// Guards one run: counts iterations, finds loops, keeps budgets, and says what to do.
///
/// A call costs a hash of its arguments and a look at the last few turns, whatever the window,
/// and a result a hash of its text. A default guard holds under 2 KB after 20 small calls, and
/// never arguments or results. Nothing that a model does raises; safe to share by threads and
/// after a fork.
///
/// Args:
///     config: A `WorkflowGuardConfig` or a mapping; its fields can be given as keywords too.
///     clock: Replaces the clock; returns seconds. For tests and for replaying recorded runs.
///     recursion: See `WorkflowGuardConfig`, as for all that follow.
///     loop_detection: Numbers of the loop rules.
///     escalation: What the n-th verdict does.
///     policies: What is ordered about tools.
///     tools: Tools of MCP servers.
///     verbs: Words in the names of tools.
///     programs: Programs of a shell.
///     shell_tools: Tools that run them.
///     volatile_keys: Keys whose values do not count in results.
///     budget: What the run may use up.
///     observe: Whether to report only.
///     locale: Language of the texts.
///     templates: Texts of your own.
///     verbose: Carried for the caller.
///
/// Raises:
///     ConfigurationError: A value is out of its range; the message names it.
///
/// Example:
///     >>> guard = turnwarden.WorkflowGuard()
///     >>> actions = []
///     >>> for _ in range(5):
///     ...     verdict = guard.record_tool_call("search", {"q": "tea"})
///     ...     if verdict.allows(("search", {"q": "tea"})):
///     ...         verdict = guard.record_tool_result("same old text")
///     ...     actions.append(verdict.action.value)
///     >>> actions
///     ['continue', 'continue', 'warn', 'block', 'stop']
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct WorkflowGuard {
    guard: Mutex<core::WorkflowGuard>,
    settings: Arc<Settings>,
    clock: Clock,
}

impl WorkflowGuard {
    fn lock(&self) -> MutexGuard<'_, core::WorkflowGuard> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn of(guard: core::WorkflowGuard, settings: Arc<Settings>, clock: Clock) -> Self {
        Self {
            guard: Mutex::new(guard),
            settings,
            clock,
        }
    }

    fn result(&self, verdict: Verdict) -> GuardCheckResult {
        GuardCheckResult {
            verdict,
            settings: Arc::clone(&self.settings),
        }
    }
}

fn execution_id(guard: &core::WorkflowGuard) -> String {
    let milliseconds = (guard.start_time() * 1000.0).round();
    format!("wf-{milliseconds:.0}-{:012x}", guard.identity() >> 16)
}

#[pymethods]
impl WorkflowGuard {
    #[new]
    #[pyo3(
        signature = (config=None, *, clock=None, **fields),
        text_signature = "(config=None, *, clock=None, recursion=None, loop_detection=None, escalation=None, policies=None, tools=None, verbs=None, programs=None, shell_tools=None, volatile_keys=None, budget=None, observe=None, locale=None, templates=None, verbose=None)"
    )]
    fn new(
        config: Option<&Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let settings = WorkflowGuardConfig::from_value(config, fields, py)?.settings;
        let clock = Clock::new(clock)?;
        let guard =
            core::WorkflowGuard::new(Arc::clone(&settings.core), new_identity(py), clock.now(py)?);
        Ok(Self {
            guard: Mutex::new(guard),
            settings,
            clock,
        })
    }

    /// Begin an iteration; the run may go on while `allow_continue` holds.
    fn start_iteration(&self, py: Python<'_>) -> PyResult<GuardCheckResult> {
        let now = self.clock.now(py)?;
        let verdict = self.lock().start_iteration(now);
        Ok(self.result(verdict))
    }

    /// Record the calls of one turn before they run, and return the verdict on them.
    ///
    /// Parallel calls of one reply are one turn, whatever their order; `verdict.allows(call)` says
    /// which of them may run.
    ///
    /// Args:
    ///     calls: The calls: `ToolCall`, native calls of a provider, or (name, arguments) pairs.
    ///
    /// Raises:
    ///     WrongTypeError: What is given is no call, or its arguments hold what JSON does not have;
    ///         the message names the path. Nothing is recorded then.
    ///     SignatureError: Arguments contain themselves, or are nested deeper than 16384.
    fn record_turn(&self, calls: &Bound<'_, PyAny>) -> PyResult<GuardCheckResult> {
        let now = self.clock.now(calls.py())?;
        let calls = OwnedCalls::read(calls, &self.settings)?;
        let verdict = self.lock().record_turn(calls.iter(), now);
        Ok(self.result(verdict))
    }

    /// Record one call as a turn of its own, before it runs, and return the verdict on it.
    ///
    /// Args:
    ///     tool: The tool's name (str), or the whole call as for `record_turn`.
    ///     arguments: Its arguments: a mapping, JSON text, or None.
    ///     call_id: The model's id of the call, to find its result by.
    ///
    /// Raises:
    ///     WrongTypeError: The arguments hold what JSON does not have; the message names the path.
    ///     SignatureError: They contain themselves, or are nested deeper than 16384.
    #[pyo3(signature = (tool, arguments=None, call_id=None))]
    fn record_tool_call(
        &self,
        tool: &Bound<'_, PyAny>,
        arguments: Option<Bound<'_, PyAny>>,
        call_id: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<GuardCheckResult> {
        let now = self.clock.now(tool.py())?;
        let call = one_call(tool, arguments, call_id_of(call_id)?)?;
        let verdict = call.with(&self.settings, |_, call| {
            self.lock().record_turn([call], now)
        })?;
        Ok(self.result(verdict))
    }

    /// Record what a call brought, and return the verdict on it.
    ///
    /// Args:
    ///     result: Any value. What is no JSON is known by its `str`. A text that begins with
    ///         `Error` or `Traceback` is an error, and so is an exception.
    ///     call_id: The id of its call; None for the first of the last turn that has no result.
    ///     error: An exception, a text, or True when the result is the error.
    #[pyo3(signature = (result=None, call_id=None, error=None))]
    fn record_tool_result(
        &self,
        result: Option<&Bound<'_, PyAny>>,
        call_id: Option<&Bound<'_, PyAny>>,
        error: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<GuardCheckResult> {
        let now = self.clock.now(py)?;
        let answer = read_answer(result, error, &self.settings);
        let id = call_id_of(call_id)?;
        let id = id.as_ref().map(|id| id.to_string_lossy());
        let verdict = self.lock().record_result(answer, id.as_deref(), now);
        Ok(self.result(verdict))
    }

    /// Return how the run stands; changes nothing.
    fn check(&self, py: Python<'_>) -> PyResult<GuardCheckResult> {
        let now = self.clock.now(py)?;
        let verdict = self.lock().check(now);
        Ok(self.result(verdict))
    }

    /// Return the text for the next prompt, or None when all is well; changes nothing.
    fn guidance(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let now = self.clock.now(py)?;
        let verdict = self.lock().check(now);
        Ok(verdict.guidance())
    }

    /// Return what `guidance` returns: its name in the reference design.
    fn generate_prompt_injection(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.guidance(py)
    }

    /// Return what was done in the run, for a report; changes nothing.
    fn generate_summary(&self, py: Python<'_>) -> PyResult<String> {
        let now = self.clock.now(py)?;
        Ok(self.lock().summary(now))
    }

    /// End the run: later iterations are refused with this reason.
    fn terminate(&self, reason: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(text) = reason.cast::<PyString>() else {
            return Err(Error::wrong_type("a reason", "a str", reason).into());
        };
        self.lock().terminate(&text.to_string_lossy());
        Ok(())
    }

    /// Begin anew.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let now = self.clock.now(py)?;
        self.lock().reset(now);
        Ok(())
    }

    /// Take note of what the run used up, for its budget.
    ///
    /// Args:
    ///     tokens: Tokens of a reply and its prompt; None, which some providers send, is 0.
    ///     cost: Cost, in the unit of the budget.
    ///     calls: Calls that were made and are not recorded.
    ///
    /// Raises:
    ///     ConfigurationError: A number is below 0 or not finite.
    #[pyo3(
        signature = (*, tokens=None, cost=None, calls=None),
        text_signature = "($self, *, tokens=0, cost=0.0, calls=0)"
    )]
    fn spend(
        &self,
        tokens: Option<&Bound<'_, PyAny>>,
        cost: Option<&Bound<'_, PyAny>>,
        calls: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<GuardCheckResult> {
        let spent = Spent {
            calls: spent_count("calls", calls)?,
            tokens: spent_count("tokens", tokens)?,
            cost: spent_cost(cost)?,
        };
        let now = self.clock.now(py)?;
        let mut guard = self.lock();
        guard.spend(spent);
        Ok(self.result(guard.check(now)))
    }

    #[getter]
    fn context(&self, py: Python<'_>) -> PyResult<GuardContext> {
        let guard = self.lock();
        let calls = records(guard.detector(), guard.start_time());
        let context = GuardContext {
            execution_id: execution_id(&guard),
            current_iteration: guard.current_iteration(),
            call_history: PyList::empty(py).unbind(),
            total_calls: guard.detector().total_calls(),
            start_time: guard.start_time(),
            last_activity_time: guard.last_activity_time(),
            is_terminated: guard.termination_reason().is_some(),
            termination_reason: guard.termination_reason().map(str::to_owned),
        };
        drop(guard);
        for call in calls {
            context.call_history.bind(py).append(Py::new(py, call)?)?;
        }
        Ok(context)
    }

    #[getter]
    fn call_history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let guard = self.lock();
        let calls = records(guard.detector(), guard.start_time());
        drop(guard);
        PyList::new(py, calls)
    }

    #[getter]
    fn current_iteration(&self) -> u32 {
        self.lock().current_iteration()
    }

    #[getter]
    fn config(&self) -> WorkflowGuardConfig {
        WorkflowGuardConfig {
            settings: Arc::clone(&self.settings),
        }
    }

    /// Return a guard with the same state, independent from now on.
    fn copy(&self, py: Python<'_>) -> Self {
        Self {
            guard: Mutex::new(self.lock().clone()),
            settings: Arc::clone(&self.settings),
            clock: self.clock.clone_ref(py),
        }
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        self.copy(py)
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>, py: Python<'_>) -> Self {
        self.copy(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, PickledGuard<'py>)> {
        let restore = py.get_type::<Self>().getattr(intern!(py, "_restore"))?;
        let config = self.settings.picklable(py)?;
        let clock = self.clock.function().map(|clock| clock.clone_ref(py));
        Ok((restore, (self.to_bytes(py)?, config, clock)))
    }

    /// Make a pickled guard again.
    #[staticmethod]
    fn _restore(
        data: &Bound<'_, PyAny>,
        config: Option<&Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Self::from_bytes(data, config, clock)
    }

    /// Return the guard's state, with its configuration, as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let configuration = self.settings.to_bytes(py)?;
        let bytes = self.lock().to_bytes(configuration);
        Ok(PyBytes::new(py, &bytes))
    }

    /// Return the guard that `to_bytes` was called on, as it was then.
    ///
    /// Args:
    ///     data: What `to_bytes` returned (bytes or bytearray).
    ///     config: Goes on with this configuration instead of the one in the snapshot; needed
    ///         where a policy has a function as its `loop_key`.
    ///     clock: Replaces the clock; returns seconds.
    ///
    /// Raises:
    ///     SnapshotError: The bytes are no snapshot, damaged, or of a later version.
    ///
    /// Example:
    ///     >>> guard = turnwarden.WorkflowGuard()
    ///     >>> _ = guard.record_tool_call("search", {"q": "tea"})
    ///     >>> turnwarden.WorkflowGuard.from_bytes(guard.to_bytes()).context.total_calls
    ///     1
    #[staticmethod]
    #[pyo3(signature = (data, config=None, *, clock=None))]
    fn from_bytes(
        data: &Bound<'_, PyAny>,
        config: Option<&Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let data = bytes_of(data)?;
        let snapshot =
            Snapshot::open(SnapshotKind::WorkflowGuard, &data).map_err(Error::Snapshot)?;
        let settings = settings_of(&snapshot, config)?;
        let guard = core::WorkflowGuard::from_snapshot(&snapshot, Arc::clone(&settings.core));
        Ok(Self {
            guard: Mutex::new(guard.map_err(Error::Snapshot)?),
            settings,
            clock: Clock::new(clock)?,
        })
    }

    fn __repr__(&self) -> String {
        let guard = self.lock();
        let calls = guard.detector().total_calls();
        let limit = self.settings.core.recursion.hard_limit;
        let iteration = guard.current_iteration();
        format!("<WorkflowGuard at iteration {iteration} of {limit}, {calls} calls>")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.clock.function())
    }
}

fn spent_count(field: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    value.map_or(Ok(0), |value| big_count(field, value))
}

fn spent_cost(value: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
    let Some(value) = value else { return Ok(0.0) };
    let cost: Option<f64> = value.extract().ok();
    cost.filter(|cost| *cost >= 0.0 && cost.is_finite())
        .ok_or_else(|| wrong("cost", value, "a finite number of 0 or more"))
}

/// A number that no other guard has, here or in another process (after a fork, too).
fn new_identity(py: Python<'_>) -> u64 {
    static SEED: PyOnceLock<RandomState> = PyOnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    SEED.get_or_init(py, RandomState::new)
        .hash_one((count, std::process::id()))
}
