//! `SessionGuards`: one guard for each conversation, in one process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyMapping, PyString};
use pyo3::{PyTraverseError, PyVisit};
use turnwarden_guard as core;
use turnwarden_guard::{Activity, GuardSettings, SessionLimits, SessionStore};

use super::call::{OwnedCalls, call_id_of, read_answer};
use super::clock::Clock;
use super::config::{Settings, WorkflowGuardConfig};
use super::fields::{big_count, function, wrong};
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

/// How many sessions are kept when nothing else is said.
const MAX_SESSIONS: usize = 100_000;

fn most_sessions(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let most = big_count("max_sessions", value).ok();
    let most = most.filter(|&most| most > 0).map(usize::try_from);
    most.and_then(Result::ok)
        .ok_or_else(|| wrong("max_sessions", value, "a whole number of 1 or more"))
}

fn seconds(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let seconds = value.extract().ok().filter(|&seconds: &f64| seconds > 0.0);
    seconds
        .filter(|_| !value.is_instance_of::<PyBool>())
        .ok_or_else(|| wrong("ttl", value, "a number of seconds above 0"))
}

/// The id of a session, as text. Ids are not made to fit: two sessions might become one.
fn session_of<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    let Ok(text) = value.cast::<PyString>() else {
        return Err(Error::wrong_type("session_id", "a str", value).into());
    };
    text.to_str()
        .map_err(|_| wrong("session_id", value, "a str without lone surrogates"))
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
            config=None, *, configure=None, max_sessions=None, ttl=None, on_verdict=None,
            on_removed=None, clock=None, **fields
        ),
        text_signature = "(config=None, *, configure=None, max_sessions=100000, ttl=None, on_verdict=None, on_removed=None, clock=None, **fields)"
    )]
    #[expect(clippy::too_many_arguments, reason = "options, all keywords")]
    fn new(
        config: Option<&Bound<'_, PyAny>>,
        configure: Option<Bound<'_, PyAny>>,
        max_sessions: Option<&Bound<'_, PyAny>>,
        ttl: Option<&Bound<'_, PyAny>>,
        on_verdict: Option<Bound<'_, PyAny>>,
        on_removed: Option<Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let settings = WorkflowGuardConfig::from_value(config, fields, py)?.settings;
        let max_sessions = max_sessions.map_or(Ok(MAX_SESSIONS), most_sessions)?;
        let ttl = ttl.map(seconds).transpose()?;
        Ok(Self {
            store: SessionStore::new(SessionLimits { max_sessions, ttl }),
            settings,
            configure: function("configure", configure)?,
            known: Mutex::default(),
            on_verdict: function("on_verdict", on_verdict)?,
            on_removed: function("on_removed", on_removed)?,
            clock: Clock::new(clock)?,
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
    fn record(
        &self,
        session_id: &Bound<'_, PyAny>,
        calls: &Bound<'_, PyAny>,
    ) -> PyResult<Py<GuardCheckResult>> {
        let py = calls.py();
        let session_id = session_of(session_id)?;
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
    ///         An exception is an error, and a text that begins with `Error` or `Traceback`.
    ///     errors: What went wrong, in the form of `results`: for each call an exception, a text,
    ///         True when its result is the error, or None. A mapping may name calls that have no
    ///         result; a list is as long as that of the results.
    ///
    /// Raises:
    ///     TypeError: The results or the errors are neither, or not of one form. Nothing is
    ///         recorded then.
    ///     ConfigurationError: The lists differ in length. Nothing is recorded then.
    #[pyo3(signature = (session_id, results, errors=None))]
    fn record_results(
        &self,
        session_id: &Bound<'_, PyAny>,
        results: &Bound<'_, PyAny>,
        errors: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<GuardCheckResult>> {
        let py = results.py();
        let session_id = session_of(session_id)?;
        let now = self.clock.now(py)?;
        let tenant = self.tenant(session_id, now, py)?;
        let answers = read_answers(
            results,
            errors.filter(|errors| !errors.is_none()),
            &tenant.0,
        )?;
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
    fn check(&self, session_id: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<GuardCheckResult> {
        let session_id = session_of(session_id)?;
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
    fn guard(
        &self,
        session_id: &Bound<'_, PyAny>,
        py: Python<'_>,
    ) -> PyResult<Option<WorkflowGuard>> {
        let session_id = session_of(session_id)?;
        let now = self.clock.now(py)?;
        let known = self.store.guard(session_id, now);
        Ok(known.map(|(guard, Tenant(settings))| {
            WorkflowGuard::of(guard, settings, self.clock.clone_ref(py))
        }))
    }

    /// Forget a session; return whether there was one.
    fn forget(&self, session_id: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<bool> {
        let forgotten = self.store.forget(session_of(session_id)?);
        if let Some(session) = &forgotten {
            self.tell_removed(session, py);
        }
        Ok(forgotten.is_some())
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

    fn __contains__(&self, session_id: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<bool> {
        let session_id = session_of(session_id)?;
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

/// What calls brought, each with the id of its call where that is said.
type Answers = Vec<(Option<String>, core::Answer)>;

fn read_answers(
    results: &Bound<'_, PyAny>,
    errors: Option<&Bound<'_, PyAny>>,
    settings: &Settings,
) -> PyResult<Answers> {
    if let Ok(results) = results.cast::<PyMapping>() {
        return answers_by_id(results, errors, settings);
    }
    let results = items_of(results, "the results", "a list or a mapping")?;
    let errors = match errors {
        None => Vec::new(),
        Some(errors) => {
            let listed = items_of(errors, "the errors", "a list, as the results are")?;
            if listed.len() != results.len() {
                let (given, due) = (listed.len(), results.len());
                let message =
                    format!("errors has {given} entries for {due} results; allowed: one for each");
                return Err(Error::Configuration(message).into());
            }
            listed
        }
    };
    let with_error = |(at, result)| (None, read_answer(Some(result), errors.get(at), settings));
    Ok(results.iter().enumerate().map(with_error).collect())
}

fn answers_by_id(
    results: &Bound<'_, PyMapping>,
    errors: Option<&Bound<'_, PyAny>>,
    settings: &Settings,
) -> PyResult<Answers> {
    let mut read = Vec::new();
    for item in results.items()? {
        let (id, result) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        read.push((id_of(&id)?, Some(result), None));
    }
    let by_id = |errors| -> PyResult<Bound<'_, PyMapping>> {
        let wrong = || Error::wrong_type("the errors", "a mapping, as the results are", errors);
        Ok(errors.cast::<PyMapping>().map_err(|_| wrong())?.clone())
    };
    let Some(errors) = errors.map(by_id).transpose()? else {
        return Ok(answers_of(read, settings));
    };
    let places: HashMap<_, _> = read
        .iter()
        .enumerate()
        .map(|(at, read)| (read.0.clone(), at))
        .collect();
    for item in errors.items()? {
        let (id, error) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let id = id_of(&id)?;
        match places.get(&id).and_then(|&at| read.get_mut(at)) {
            Some(read) => read.2 = Some(error),
            None => read.push((id, None, Some(error))),
        }
    }
    Ok(answers_of(read, settings))
}

/// The id of a call, its result, its error.
type Told<'py> = (
    Option<String>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
);

fn answers_of(told: Vec<Told<'_>>, settings: &Settings) -> Answers {
    let answer = |(id, result, error): Told<'_>| {
        (id, read_answer(result.as_ref(), error.as_ref(), settings))
    };
    told.into_iter().map(answer).collect()
}

fn id_of(id: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    Ok(call_id_of(Some(id))?.map(|id| id.to_string_lossy().into_owned()))
}

/// The items of a list; a text is none, nor is a mapping.
fn items_of<'py>(
    given: &Bound<'py, PyAny>,
    what: &'static str,
    expected: &'static str,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let is_other = given.is_instance_of::<PyString>()
        || given.is_instance_of::<PyBytes>()
        || given.cast::<PyMapping>().is_ok();
    let items = given.try_iter().ok().filter(|_| !is_other);
    items
        .ok_or_else(|| Error::wrong_type(what, expected, given))?
        .collect()
}
