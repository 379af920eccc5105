//! `SessionGuards`: one guard for each conversation, in one process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};
use pyo3::{PyTraverseError, PyVisit};
use turnwarden_guard as core;
use turnwarden_guard::{Activity, GuardSettings, SessionLimits, SessionStore};

use super::call::{OwnedCalls, call_id_of, read_answer};
use super::clock::Clock;
use super::config::{Settings, WorkflowGuardConfig};
use super::fields::wrong;
use super::result::GuardCheckResult;
use super::workflow::WorkflowGuard;
use crate::errors::Error;

/// What a session is guarded by.
#[derive(Clone)]
struct Tenant(Arc<Settings>);

impl core::Profile for Tenant {
    fn settings(&self) -> &Arc<GuardSettings> {
        &self.0.core
    }
}

/// Configurations that are in use, by their fields as JSON: equal ones are held once.
type Known = HashMap<Vec<u8>, Weak<Settings>>;

/// Guards of many conversations in one process: thread-safe, sharded, in bounded memory.
///
/// The sessions used last are ready; the others wait as a few hundred bytes each, from which their
/// guard is rebuilt exactly as it was. The one not used for longest is forgotten first. A session
/// is locked, with those of its shard, for one turn; no Python code runs under a lock.
///
/// Args:
///     config: The configuration of every guard (`WorkflowGuardConfig` or a mapping; its fields
///         can be given as keywords too).
///     configure: A function of the session id (str) that returns the configuration of that
///         session (`WorkflowGuardConfig`, mapping, or None for `config`), for example that of
///         its tenant. Called when a session begins; equal configurations are held once.
///     max_sessions: Sessions that are kept; beyond, the one not used for longest is forgotten.
///         Sessions are shared out among the shards by a hash, so a full store forgets one when it
///         holds a little less than this; it never holds more.
///     ttl: Seconds after which an unused session is forgotten; None for never.
///     on_verdict: A function of the session id and the `GuardCheckResult`, called after each
///         `record` and `record_results`, outside of all locks.
///     on_removed: A function of the session id and the reason ("evicted", "expired" or
///         "forgotten"), called when a session is no longer kept.
///     clock: Replaces the clock; returns seconds.
///
/// Raises:
///     ConfigurationError: A value is out of its range; the message names it.
///
/// What a hook raises goes to `sys.unraisablehook`: metrics never break a run.
///
/// Example:
///     >>> guards = turnwarden.SessionGuards(max_sessions=1000)
///     >>> guards.record("alice", [("search", {"q": "tea"})]).action.value
///     'continue'
///     >>> len(guards), guards.metrics["calls"]
///     (1, 1)
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct SessionGuards {
    store: SessionStore<Tenant>,
    settings: Arc<Settings>,
    configure: Option<Py<PyAny>>,
    known: Mutex<Known>,
    on_verdict: Option<Py<PyAny>>,
    on_removed: Option<Py<PyAny>>,
    clock: Clock,
}

impl SessionGuards {
    /// What a session is guarded by, or would be.
    fn tenant(&self, id: &str, now: f64, py: Python<'_>) -> PyResult<Tenant> {
        let Some(configure) = &self.configure else {
            return Ok(Tenant(Arc::clone(&self.settings)));
        };
        if let Some(tenant) = self.store.profile(id, now) {
            return Ok(tenant);
        }
        let config = configure.bind(py).call1((id,))?;
        if config.is_none() {
            return Ok(Tenant(Arc::clone(&self.settings)));
        }
        let settings = WorkflowGuardConfig::from_value(Some(&config), None, py)?.settings;
        self.held_once(settings, py).map(Tenant)
    }

    /// The same settings, or equal ones that are in use. Those with functions equal no others.
    fn held_once(&self, settings: Arc<Settings>, py: Python<'_>) -> PyResult<Arc<Settings>> {
        if !settings.functions.is_empty() {
            return Ok(settings);
        }
        let key = settings.to_bytes(py)?.to_vec();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = known.get(&key).and_then(Weak::upgrade) {
            drop(known);
            return Ok(held);
        }
        if known.len() == known.capacity() {
            known.retain(|_, held| held.strong_count() > 0);
        }
        known.insert(key, Arc::downgrade(&settings));
        Ok(settings)
    }

    /// Records with the session's guard, then calls the hooks.
    fn record_with(
        &self,
        id: &str,
        tenant: &Tenant,
        now: f64,
        activity: Activity,
        work: impl FnOnce(&mut core::WorkflowGuard) -> core::Verdict,
        py: Python<'_>,
    ) -> PyResult<Py<GuardCheckResult>> {
        let recorded = self.store.record(id, tenant, now, activity, work);
        let (verdict, settings, removed) = match recorded {
            Some(recorded) => (recorded.verdict, recorded.profile.0, recorded.removed),
            None => (unknown(tenant, now), Arc::clone(&tenant.0), Vec::new()),
        };
        let result = Py::new(py, GuardCheckResult { verdict, settings })?;
        for session in &removed {
            self.tell_removed(session, py);
        }
        if let Some(hook) = &self.on_verdict {
            unraisable(hook.bind(py).call1((id, result.clone_ref(py))));
        }
        Ok(result)
    }

    fn tell_removed(&self, session: &core::RemovedSession<Tenant>, py: Python<'_>) {
        if let Some(hook) = &self.on_removed {
            unraisable(hook.bind(py).call1((&*session.id, session.why.as_str())));
        }
    }
}

/// How a session stands that has not begun.
fn unknown(tenant: &Tenant, now: f64) -> core::Verdict {
    core::WorkflowGuard::new(Arc::clone(&tenant.0.core), 0, now).check(now)
}

/// Hands what a hook raised to the interpreter.
fn unraisable(result: PyResult<Bound<'_, PyAny>>) {
    if let Err(error) = result {
        Python::attach(|py| error.write_unraisable(py, None));
    }
}

#[pymethods]
impl SessionGuards {
    #[new]
    #[pyo3(
        signature = (
            config=None, *, configure=None, max_sessions=100_000, ttl=None, on_verdict=None,
            on_removed=None, clock=None, **fields
        ),
        text_signature = "(config=None, *, configure=None, max_sessions=100000, ttl=None, on_verdict=None, on_removed=None, clock=None, **fields)"
    )]
    #[expect(clippy::too_many_arguments, reason = "options, all keywords")]
    fn new(
        config: Option<&Bound<'_, PyAny>>,
        configure: Option<Bound<'_, PyAny>>,
        max_sessions: i64,
        ttl: Option<f64>,
        on_verdict: Option<Bound<'_, PyAny>>,
        on_removed: Option<Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let settings = WorkflowGuardConfig::from_value(config, fields, py)?.settings;
        let most = usize::try_from(max_sessions).ok().filter(|&most| most > 0);
        let Some(max_sessions) = most else {
            let value = max_sessions.into_pyobject(py)?.into_any();
            return Err(wrong("max_sessions", &value, "1 or more"));
        };
        if let Some(ttl) = ttl.filter(|&ttl| ttl.is_nan() || ttl <= 0.0) {
            let value = ttl.into_pyobject(py)?.into_any();
            return Err(wrong("ttl", &value, "a number of seconds above 0"));
        }
        Ok(Self {
            store: SessionStore::new(SessionLimits { max_sessions, ttl }),
            settings,
            configure: function("configure", configure)?,
            known: Mutex::default(),
            on_verdict: function("on_verdict", on_verdict)?,
            on_removed: function("on_removed", on_removed)?,
            clock: Clock::new(clock),
        })
    }

    /// Record the calls of one turn of a session, and return the verdict on them.
    ///
    /// Args:
    ///     session_id: The conversation (str); it begins with its first call.
    ///     calls: As for `WorkflowGuard.record_turn`.
    ///
    /// Raises:
    ///     TypeError: What is given is no call, or its arguments hold what JSON does not have; the
    ///         message names the path. Nothing is recorded then.
    fn record(&self, session_id: &str, calls: &Bound<'_, PyAny>) -> PyResult<Py<GuardCheckResult>> {
        let py = calls.py();
        let now = self.clock.now(py)?;
        let tenant = self.tenant(session_id, now, py)?;
        let calls = OwnedCalls::read(calls, &tenant.0)?;
        let work = |guard: &mut core::WorkflowGuard| guard.record_turn(calls.iter(), now);
        self.record_with(session_id, &tenant, now, Activity::Turn, work, py)
    }

    /// Record what calls of a session brought, and return how the session stands then.
    ///
    /// Args:
    ///     session_id: The conversation (str).
    ///     results: A list of results, in the order of the calls, or a mapping of them by call id.
    ///
    /// Raises:
    ///     TypeError: The results are neither. Nothing is recorded then.
    fn record_results(
        &self,
        session_id: &str,
        results: &Bound<'_, PyAny>,
    ) -> PyResult<Py<GuardCheckResult>> {
        let py = results.py();
        let now = self.clock.now(py)?;
        let tenant = self.tenant(session_id, now, py)?;
        let mut answers = Vec::new();
        if let Ok(by_id) = results.cast::<PyMapping>() {
            for item in by_id.items()? {
                let (id, result) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
                let id = call_id_of(Some(&id))?.map(|id| id.to_string_lossy().into_owned());
                answers.push((id, read_answer(Some(&result), None, &tenant.0)));
            }
        } else {
            let wrong = || Error::wrong_type("the results", "a list or a mapping", results);
            let is_text = results.is_instance_of::<PyString>();
            let items = results.try_iter().ok().filter(|_| !is_text);
            for result in items.ok_or_else(wrong)? {
                answers.push((None, read_answer(Some(&result?), None, &tenant.0)));
            }
        }
        let activity = Activity::Results(answers.len() as u64);
        let work = |guard: &mut core::WorkflowGuard| {
            for (id, answer) in answers {
                guard.record_result(answer, id.as_deref(), now);
            }
            guard.check(now)
        };
        self.record_with(session_id, &tenant, now, activity, work, py)
    }

    /// Return how a session stands; an unknown one stands as a new one would. Changes nothing.
    fn check(&self, session_id: &str, py: Python<'_>) -> PyResult<GuardCheckResult> {
        let now = self.clock.now(py)?;
        if let Some((guard, Tenant(settings))) = self.store.guard(session_id, now) {
            let verdict = guard.check(now);
            return Ok(GuardCheckResult { verdict, settings });
        }
        let tenant = self.tenant(session_id, now, py)?;
        Ok(GuardCheckResult {
            verdict: unknown(&tenant, now),
            settings: tenant.0,
        })
    }

    /// Return a copy of a session's guard, or None when there is no such session.
    ///
    /// The copy is independent: it shows the history of the session, and can be kept as bytes.
    ///
    /// Example:
    ///     >>> guards = turnwarden.SessionGuards()
    ///     >>> _ = guards.record("alice", [("search", {"q": "tea"})])
    ///     >>> [call.tool_name for call in guards.guard("alice").call_history]
    ///     ['search']
    fn guard(&self, session_id: &str, py: Python<'_>) -> PyResult<Option<WorkflowGuard>> {
        let now = self.clock.now(py)?;
        let known = self.store.guard(session_id, now);
        Ok(known.map(|(guard, Tenant(settings))| {
            WorkflowGuard::of(guard, settings, self.clock.clone_ref(py))
        }))
    }

    /// Forget a session; return whether there was one.
    fn forget(&self, session_id: &str, py: Python<'_>) -> bool {
        match self.store.forget(session_id) {
            Some(session) => {
                self.tell_removed(&session, py);
                true
            }
            None => false,
        }
    }

    /// What is kept and what happened, as numbers for a metrics system (dict of str to int).
    ///
    /// Gauges: `sessions` kept, `hot` of them ready, `cold_bytes` of the others. Counters:
    /// sessions `created`, `evicted`, `expired`, `forgotten` and `rebuilt`; `turns`, `calls` and
    /// `results` recorded; verdicts that `warned`, `blocked` and `stopped`.
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = self.store.counts();
        let metrics = PyDict::new(py);
        for (name, count) in counts.named() {
            metrics.set_item(name, count)?;
        }
        Ok(metrics)
    }

    fn __contains__(&self, session_id: &str, py: Python<'_>) -> PyResult<bool> {
        let now = self.clock.now(py)?;
        Ok(self.store.profile(session_id, now).is_some())
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.store.counts().sessions).unwrap_or(usize::MAX)
    }

    fn __repr__(&self) -> String {
        let counts = self.store.counts();
        let (sessions, calls) = (counts.sessions, counts.calls);
        format!("<SessionGuards: {sessions} sessions, {calls} calls>")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.configure)?;
        visit.call(&self.on_verdict)?;
        visit.call(&self.on_removed)?;
        visit.call(self.clock.function())
    }
}

/// A function, or None.
fn function(name: &str, given: Option<Bound<'_, PyAny>>) -> PyResult<Option<Py<PyAny>>> {
    match given.filter(|given| !given.is_none()) {
        Some(given) if !given.is_callable() => Err(wrong(name, &given, "a function")),
        given => Ok(given.map(Bound::unbind)),
    }
}
