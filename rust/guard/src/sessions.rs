//! Guards of many conversations in one process, in bounded memory.
//!
//! ```text
//! id ──hash──> shard:  hot (guards)  ──the one not used for longest──> cold (their bytes) ──> forgotten
//!                        ^──────────────────── used again ────────────────────┘
//! ```
//!
//! A shard is locked for one turn of one session. Most sessions wait for their next turn, so only
//! those used last are guards that are ready; the others are kept as the few hundred bytes that a
//! guard is rebuilt from, exactly as it was. Everything is by the order of use: what is frozen or
//! forgotten is always what was not used for longest.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::ladder::GuardAction;
use crate::workflow::{GuardSettings, Verdict, WorkflowGuard};

/// Shards of a large store.
const MOST_SHARDS: usize = 32;
/// Sessions that are worth a shard of their own.
const SHARD: usize = 64;
/// Guards of a shard that are ready.
const HOT: usize = 128;

/// What a session is guarded by: settings, and what the caller keeps with them.
pub trait Profile: Clone {
    /// The settings of the session's guard.
    fn settings(&self) -> &Arc<GuardSettings>;
}

impl Profile for Arc<GuardSettings> {
    fn settings(&self) -> &Arc<GuardSettings> {
        self
    }
}

/// How much a store holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionLimits {
    /// Sessions that are kept. They are shared out among the shards, so a full store may forget
    /// a session when it is a little below.
    pub max_sessions: usize,
    /// Seconds after which a session that is not used is forgotten.
    pub ttl: Option<f64>,
}

/// Why a session is no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Removal {
    /// There was no room: it was the one not used for longest.
    Evicted,
    /// It was not used for too long.
    Expired,
    /// The caller asked for it.
    Forgotten,
}

impl Removal {
    /// The name in snake case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Evicted => "evicted",
            Self::Expired => "expired",
            Self::Forgotten => "forgotten",
        }
    }
}

/// A session that is no longer kept. Its profile is dropped by the caller, outside of all locks.
#[derive(Debug)]
pub struct RemovedSession<P> {
    /// Its id.
    pub id: Box<str>,
    /// Why.
    pub why: Removal,
    /// What it was guarded by.
    pub profile: P,
}

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The calls of a turn.
    Turn,
    /// So many results.
    Results(u64),
}

/// What a turn brought.
#[derive(Debug)]
pub struct Recorded<P> {
    /// The verdict.
    pub verdict: Verdict,
    /// What the session is guarded by.
    pub profile: P,
    /// Sessions that had to go.
    pub removed: Vec<RemovedSession<P>>,
}

/// What a store holds, and what happened in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Sessions that are kept.
    pub sessions: u64,
    /// Those of them whose guard is ready.
    pub hot: u64,
    /// Bytes of the others, without what keeps them in order.
    pub cold_bytes: u64,
    /// Sessions that were begun.
    pub created: u64,
    /// Sessions that were forgotten for want of room.
    pub evicted: u64,
    /// Sessions that were forgotten because they were not used.
    pub expired: u64,
    /// Sessions that the caller forgot.
    pub forgotten: u64,
    /// Guards that were rebuilt.
    pub rebuilt: u64,
    /// Turns recorded.
    pub turns: u64,
    /// Calls recorded.
    pub calls: u64,
    /// Results recorded.
    pub results: u64,
    /// Verdicts that warned.
    pub warned: u64,
    /// Verdicts that blocked.
    pub blocked: u64,
    /// Verdicts that stopped.
    pub stopped: u64,
}

impl SessionCounts {
    /// All numbers with their names.
    #[must_use]
    pub fn named(mut self) -> [(&'static str, u64); 14] {
        self.fields().map(|(name, count)| (name, *count))
    }

    fn fields(&mut self) -> [(&'static str, &mut u64); 14] {
        [
            ("sessions", &mut self.sessions),
            ("hot", &mut self.hot),
            ("cold_bytes", &mut self.cold_bytes),
            ("created", &mut self.created),
            ("evicted", &mut self.evicted),
            ("expired", &mut self.expired),
            ("forgotten", &mut self.forgotten),
            ("rebuilt", &mut self.rebuilt),
            ("turns", &mut self.turns),
            ("calls", &mut self.calls),
            ("results", &mut self.results),
            ("warned", &mut self.warned),
            ("blocked", &mut self.blocked),
            ("stopped", &mut self.stopped),
        ]
    }

    fn add(&mut self, other: Self) {
        for ((_, sum), (_, more)) in self.fields().into_iter().zip(other.named()) {
            *sum += more;
        }
    }

    fn count_verdict(&mut self, verdict: &Verdict) {
        match verdict.action() {
            GuardAction::Continue => {}
            GuardAction::Warn => self.warned += 1,
            GuardAction::Block => self.blocked += 1,
            GuardAction::Stop => self.stopped += 1,
        }
    }
}

/// A session that is ready.
#[derive(Debug)]
struct Hot<P> {
    guard: WorkflowGuard,
    profile: P,
    used: f64,
}

/// A session that waits.
#[derive(Debug)]
struct Cold<P> {
    bytes: Box<[u8]>,
    profile: P,
    used: f64,
}

#[derive(Debug)]
struct Shard<P> {
    hot: LruCache<Box<str>, Hot<P>>,
    /// All of these were used before any of `hot`.
    cold: LruCache<Box<str>, Cold<P>>,
    /// `sessions` and `hot` are not kept up here.
    counts: SessionCounts,
}

impl<P: Profile> Shard<P> {
    fn new() -> Self {
        Self {
            hot: LruCache::unbounded(),
            cold: LruCache::unbounded(),
            counts: SessionCounts::default(),
        }
    }

    fn len(&self) -> usize {
        self.hot.len() + self.cold.len()
    }

    /// The session of this id as the one used last; made with `profile` if there is none.
    fn session(&mut self, id: &str, profile: &P, now: f64) -> Option<&mut Hot<P>> {
        if !self.hot.contains(id) {
            let (id, session) = self
                .take_cold(id, now)
                .unwrap_or_else(|| self.begin(id, profile, now));
            self.hot.put(id, session);
        }
        let session = self.hot.get_mut(id)?;
        session.used = now;
        Some(session)
    }

    fn begin(&mut self, id: &str, profile: &P, now: f64) -> (Box<str>, Hot<P>) {
        self.counts.created += 1;
        let session = Hot {
            guard: WorkflowGuard::new(Arc::clone(profile.settings()), 0, now),
            profile: profile.clone(),
            used: now,
        };
        (id.into(), session)
    }

    /// Rebuilds the guard of a session that waits.
    fn take_cold(&mut self, id: &str, now: f64) -> Option<(Box<str>, Hot<P>)> {
        let (id, cold) = self.cold.pop_entry(id)?;
        self.counts.cold_bytes -= cold.bytes.len() as u64;
        self.counts.rebuilt += 1;
        let session = Hot {
            guard: cold.rebuild(now),
            profile: cold.profile,
            used: cold.used,
        };
        Some((id, session))
    }

    fn freeze_all_but(&mut self, most: usize) {
        while self.hot.len() > most {
            let Some((id, hot)) = self.hot.pop_lru() else {
                return;
            };
            let Hot {
                guard,
                profile,
                used,
            } = hot;
            let bytes = guard.freeze();
            self.counts.cold_bytes += bytes.len() as u64;
            let cold = Cold {
                bytes,
                profile,
                used,
            };
            // A copy of the id: one that stayed where it is would keep what is freed around it
            // from becoming one piece.
            self.cold.put(Box::from(&*id), cold);
        }
    }

    /// Takes out the session that was not used for longest.
    fn remove_oldest(&mut self, why: Removal) -> Option<RemovedSession<P>> {
        let oldest = match self.cold.pop_lru() {
            Some((id, cold)) => Some(self.removed_cold(id, cold, why)),
            None => self.hot.pop_lru().map(|(id, hot)| RemovedSession {
                id,
                why,
                profile: hot.profile,
            }),
        }?;
        self.count_removal(why);
        Some(oldest)
    }

    fn remove(&mut self, id: &str, why: Removal) -> Option<RemovedSession<P>> {
        let removed = if let Some((id, cold)) = self.cold.pop_entry(id) {
            self.removed_cold(id, cold, why)
        } else {
            let (id, hot) = self.hot.pop_entry(id)?;
            let profile = hot.profile;
            RemovedSession { id, why, profile }
        };
        self.count_removal(why);
        Some(removed)
    }

    fn removed_cold(&mut self, id: Box<str>, cold: Cold<P>, why: Removal) -> RemovedSession<P> {
        self.counts.cold_bytes -= cold.bytes.len() as u64;
        let profile = cold.profile;
        RemovedSession { id, why, profile }
    }

    fn count_removal(&mut self, why: Removal) {
        match why {
            Removal::Evicted => self.counts.evicted += 1,
            Removal::Expired => self.counts.expired += 1,
            Removal::Forgotten => self.counts.forgotten += 1,
        }
    }

    /// When the session that was not used for longest was used.
    fn oldest_use(&self) -> Option<f64> {
        let cold = self.cold.peek_lru().map(|(_, cold)| cold.used);
        cold.or_else(|| self.hot.peek_lru().map(|(_, hot)| hot.used))
    }
}

impl<P: Profile> Cold<P> {
    /// The guard as it was: what was frozen here can be read here.
    fn rebuild(&self, now: f64) -> WorkflowGuard {
        let settings = self.profile.settings();
        let guard = WorkflowGuard::thaw(&self.bytes, Arc::clone(settings));
        guard.unwrap_or_else(|| WorkflowGuard::new(Arc::clone(settings), 0, now))
    }
}

/// Guards of many conversations: sharded, safe to share, those not used for longest forgotten
/// first.
///
/// Times are seconds of any clock that the caller keeps to. Nothing of the caller's runs under a
/// lock, but for the work on a guard.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use turnwarden_guard::{Activity, GuardSettings, SessionLimits, SessionStore};
///
/// let limits = SessionLimits { max_sessions: 1000, ttl: Some(3600.0) };
/// let store = SessionStore::new(limits);
/// let settings = Arc::new(GuardSettings::default());
/// let recorded = store.record("alice", &settings, 0.0, Activity::Turn, |guard| {
///     guard.record_turn([], 0.0)
/// });
/// assert!(recorded.is_some_and(|recorded| recorded.removed.is_empty()));
/// assert_eq!(store.counts().sessions, 1);
/// ```
#[derive(Debug)]
pub struct SessionStore<P> {
    shards: Vec<Mutex<Shard<P>>>,
    hasher: RandomState,
    per_shard: usize,
    ttl: Option<f64>,
}

impl<P: Profile> SessionStore<P> {
    /// A store without sessions.
    #[must_use]
    pub fn new(limits: SessionLimits) -> Self {
        let most = limits.max_sessions.max(1);
        let shards = (most / SHARD).clamp(1, MOST_SHARDS);
        Self {
            shards: (0..shards).map(|_| Mutex::new(Shard::new())).collect(),
            hasher: RandomState::new(),
            per_shard: most / shards,
            ttl: limits.ttl,
        }
    }

    fn shard(&self, id: &str) -> Option<MutexGuard<'_, Shard<P>>> {
        let shards = self.shards.len() as u64;
        let index = usize::try_from(self.hasher.hash_one(id) % shards.max(1)).ok()?;
        let shard = self.shards.get(index)?;
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn has_expired(&self, used: f64, now: f64) -> bool {
        self.ttl.is_some_and(|ttl| now - used > ttl)
    }

    /// Works on the guard of a session, which is now the one used last; it is begun with
    /// `profile` if there is none. The answer is None only if the store has no shard.
    pub fn record(
        &self,
        id: &str,
        profile: &P,
        now: f64,
        activity: Activity,
        work: impl FnOnce(&mut WorkflowGuard) -> Verdict,
    ) -> Option<Recorded<P>> {
        let mut shard = self.shard(id)?;
        let mut removed = Vec::new();
        while shard
            .oldest_use()
            .is_some_and(|used| self.has_expired(used, now))
        {
            removed.extend(shard.remove_oldest(Removal::Expired));
        }
        let session = shard.session(id, profile, now)?;
        let before = session.guard.detector().total_calls();
        let verdict = work(&mut session.guard);
        let profile = session.profile.clone();
        let calls = session.guard.detector().total_calls() - before;
        shard.counts.calls += calls;
        match activity {
            Activity::Turn => shard.counts.turns += 1,
            Activity::Results(results) => shard.counts.results += results,
        }
        shard.counts.count_verdict(&verdict);
        shard.freeze_all_but(HOT);
        while shard.len() > self.per_shard {
            removed.extend(shard.remove_oldest(Removal::Evicted));
        }
        Some(Recorded {
            verdict,
            profile,
            removed,
        })
    }

    /// What a session is guarded by, if there is one.
    #[must_use]
    pub fn profile(&self, id: &str, now: f64) -> Option<P> {
        let shard = self.shard(id)?;
        let hot = shard.hot.peek(id).map(|hot| (&hot.profile, hot.used));
        let cold = || shard.cold.peek(id).map(|cold| (&cold.profile, cold.used));
        let (profile, used) = hot.or_else(cold)?;
        (!self.has_expired(used, now)).then(|| profile.clone())
    }

    /// A copy of a session's guard, if there is one. Changes nothing, not even what was used last.
    #[must_use]
    pub fn guard(&self, id: &str, now: f64) -> Option<(WorkflowGuard, P)> {
        let shard = self.shard(id)?;
        if let Some(hot) = shard.hot.peek(id) {
            let is_alive = !self.has_expired(hot.used, now);
            return is_alive.then(|| (hot.guard.clone(), hot.profile.clone()));
        }
        let cold = shard.cold.peek(id)?;
        if self.has_expired(cold.used, now) {
            return None;
        }
        Some((cold.rebuild(now), cold.profile.clone()))
    }

    /// Forgets a session; the answer is what it was, if there was one.
    #[must_use = "what is removed is to be dropped outside of locks, and told"]
    pub fn forget(&self, id: &str) -> Option<RemovedSession<P>> {
        self.shard(id)?.remove(id, Removal::Forgotten)
    }

    /// What the store holds, and what happened in it.
    #[must_use]
    pub fn counts(&self) -> SessionCounts {
        let mut sum = SessionCounts::default();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            sum.add(shard.counts);
            sum.sessions += shard.len() as u64;
            sum.hot += shard.hot.len() as u64;
        }
        sum
    }
}
