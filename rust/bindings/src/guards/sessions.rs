//! `SessionGuards`: one guard for each conversation, in one process.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use turnwarden_guard as core;

use super::call::{OwnedCalls, read_answer};
use super::clock::Clock;
use super::config::{Settings, WorkflowGuardConfig};
use super::fields::wrong;
use super::result::GuardCheckResult;

const SHARDS: usize = 16;

/// Guards of many conversations: sharded, least recently used ones forgotten first.
///
/// Args:
///     config: The configuration of every guard.
///     max_sessions: Sessions that are kept; beyond, the one not used for longest is forgotten.
///     ttl: Seconds after which an unused session is forgotten; None for never.
///     clock: Replaces the clock; returns seconds.
///
/// Example:
///     >>> guards = turnwarden.SessionGuards(max_sessions=1000)
///     >>> guards.record("alice", [("search", {"q": "tea"})]).action.value
///     'continue'
///     >>> len(guards)
///     1
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct SessionGuards {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    settings: Arc<Settings>,
    clock: Clock,
    per_shard: usize,
    ttl: Option<f64>,
}

#[derive(Default)]
struct Shard {
    sessions: HashMap<Arc<str>, Session>,
    /// Sessions by when they were last used.
    order: BTreeMap<u64, Arc<str>>,
    ticks: u64,
}

struct Session {
    guard: core::WorkflowGuard,
    tick: u64,
    used: f64,
}

impl Shard {
    /// The session of this id, now the one used last; made if there is none.
    fn session(
        &mut self,
        id: &str,
        settings: &Settings,
        ttl: Option<f64>,
        now: f64,
    ) -> &mut Session {
        self.forget_expired(ttl, now);
        self.ticks += 1;
        let tick = self.ticks;
        let key = match self.sessions.get_key_value(id) {
            Some((key, session)) => {
                self.order.remove(&session.tick);
                Arc::clone(key)
            }
            None => Arc::from(id),
        };
        self.order.insert(tick, Arc::clone(&key));
        let session = self.sessions.entry(key).or_insert_with(|| Session {
            guard: core::WorkflowGuard::new(Arc::clone(&settings.core), 0, now),
            tick,
            used: now,
        });
        session.tick = tick;
        session.used = now;
        session
    }

    fn forget_expired(&mut self, ttl: Option<f64>, now: f64) {
        let Some(ttl) = ttl else { return };
        while let Some((&tick, id)) = self.order.first_key_value() {
            let is_old = self
                .sessions
                .get(id)
                .is_none_or(|session| now - session.used > ttl);
            if !is_old {
                return;
            }
            self.sessions.remove(id);
            self.order.remove(&tick);
        }
    }

    fn keep_at_most(&mut self, most: usize) {
        while self.sessions.len() > most {
            let Some((_, id)) = self.order.pop_first() else {
                return;
            };
            self.sessions.remove(&id);
        }
    }
}

impl SessionGuards {
    fn shard(&self, id: &str) -> MutexGuard<'_, Shard> {
        let hash = usize::try_from(self.hasher.hash_one(id) % SHARDS as u64).unwrap_or(0);
        let shard = &self.shards[hash];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_session(
        &self,
        id: &str,
        now: f64,
        work: impl FnOnce(&mut core::WorkflowGuard) -> core::Verdict,
    ) -> GuardCheckResult {
        let mut shard = self.shard(id);
        let session = shard.session(id, &self.settings, self.ttl, now);
        let verdict = work(&mut session.guard);
        shard.keep_at_most(self.per_shard);
        drop(shard);
        GuardCheckResult {
            verdict,
            settings: Arc::clone(&self.settings),
        }
    }
}

#[pymethods]
impl SessionGuards {
    #[new]
    #[pyo3(
        signature = (config=None, *, max_sessions=100_000, ttl=None, clock=None, **fields),
        text_signature = "(config=None, *, max_sessions=100000, ttl=None, clock=None, **fields)"
    )]
    fn new(
        config: Option<&Bound<'_, PyAny>>,
        max_sessions: i64,
        ttl: Option<f64>,
        clock: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let settings = WorkflowGuardConfig::from_value(config, fields, py)?.settings;
        let most = usize::try_from(max_sessions).ok().filter(|&most| most > 0);
        let Some(most) = most else {
            let value = max_sessions.into_pyobject(py)?.into_any();
            return Err(wrong("max_sessions", &value, "1 or more"));
        };
        if let Some(ttl) = ttl.filter(|&ttl| ttl.is_nan() || ttl <= 0.0) {
            let value = ttl.into_pyobject(py)?.into_any();
            return Err(wrong("ttl", &value, "a number of seconds above 0"));
        }
        Ok(Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            settings,
            clock: Clock::new(clock),
            per_shard: most.div_ceil(SHARDS),
            ttl,
        })
    }

    /// Record the calls of one turn of a session, and return the verdict on them.
    fn record(&self, session_id: &str, calls: &Bound<'_, PyAny>) -> PyResult<GuardCheckResult> {
        let now = self.clock.now(calls.py())?;
        let calls = OwnedCalls::read(calls, &self.settings)?;
        Ok(self.with_session(session_id, now, |guard| {
            guard.record_turn(calls.iter(), now)
        }))
    }

    /// Record what calls of a session brought: a list of results, or a dict of them by call id.
    fn record_results(
        &self,
        session_id: &str,
        results: &Bound<'_, PyAny>,
    ) -> PyResult<GuardCheckResult> {
        let py = results.py();
        let now = self.clock.now(py)?;
        let mut answers = Vec::new();
        if let Ok(by_id) = results.cast::<PyDict>() {
            for (id, result) in by_id {
                let id = id.cast::<PyString>()?.to_string_lossy().into_owned();
                answers.push((Some(id), read_answer(Some(&result), None, &self.settings)));
            }
        } else {
            for result in results.try_iter()? {
                answers.push((None, read_answer(Some(&result?), None, &self.settings)));
            }
        }
        Ok(self.with_session(session_id, now, |guard| {
            for (id, answer) in answers {
                guard.record_result(answer, id.as_deref(), now);
            }
            guard.check(now)
        }))
    }

    /// Return how a session stands; an unknown one stands as a new one would. Changes nothing.
    fn check(&self, session_id: &str, py: Python<'_>) -> PyResult<GuardCheckResult> {
        let now = self.clock.now(py)?;
        let shard = self.shard(session_id);
        let known = shard.sessions.get(session_id);
        let alive = known.filter(|session| self.ttl.is_none_or(|ttl| now - session.used <= ttl));
        let verdict = match alive {
            Some(session) => session.guard.check(now),
            None => core::WorkflowGuard::new(Arc::clone(&self.settings.core), 0, now).check(now),
        };
        drop(shard);
        Ok(GuardCheckResult {
            verdict,
            settings: Arc::clone(&self.settings),
        })
    }

    /// Forget a session; return whether there was one.
    fn forget(&self, session_id: &str) -> bool {
        let mut shard = self.shard(session_id);
        let Some(session) = shard.sessions.remove(session_id) else {
            return false;
        };
        shard.order.remove(&session.tick);
        true
    }

    fn __len__(&self) -> usize {
        let lock = |shard: &Mutex<Shard>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.sessions.len()
        };
        self.shards.iter().map(lock).sum()
    }
}
