//! A store of sessions answers as so many guards would, whatever it freezes and forgets.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use turnwarden_guard::{
    Activity, Answer, Compared, GuardSettings, NewCall, SessionLimits, SessionStore, VolatileKeys,
    WorkflowGuard,
};
use turnwarden_signature::Canon;

fn record(guard: &mut WorkflowGuard, tool: &str, arguments: &str, now: f64) {
    let canon = Canon::from_arguments_text(arguments);
    let call = NewCall {
        name: tool,
        arguments: canon.value(),
        compared: Compared::ByArguments,
        id: None,
        signature: None,
        text: None,
    };
    guard.record_turn([call], now);
}

fn answer(guard: &mut WorkflowGuard, text: &str, now: f64) {
    let keys = VolatileKeys::default();
    guard.record_result(Answer::of_result(text, &keys), None, now);
}

type Store = SessionStore<Arc<GuardSettings>>;

fn step(store: &Store, settings: &Arc<GuardSettings>, id: &str, call: (u8, u8), now: f64) {
    let (tool, result) = call;
    let work = |guard: &mut WorkflowGuard| {
        record(guard, &format!("tool_{tool}"), r#"{"q": "tea"}"#, now);
        answer(guard, &format!("answer {result}"), now);
        guard.check(now)
    };
    store.record(id, settings, now, Activity::Turn, work);
}

#[test]
fn a_session_that_waited_goes_on_exactly_as_it_was() {
    let settings = Arc::new(GuardSettings::default());
    let limits = SessionLimits {
        max_sessions: 100_000,
        ttl: None,
    };
    let store: Store = SessionStore::new(limits);
    let mut alone: HashMap<String, WorkflowGuard> = HashMap::new();
    for lap in 0..4_u8 {
        for number in 0..9000_u32 {
            let id = format!("session {number}");
            let tool = if number % 3 == 0 { 0 } else { lap };
            let now = f64::from(lap) + f64::from(number) / 10_000.0;
            step(&store, &settings, &id, (tool, 0), now);
            let guard = alone
                .entry(id)
                .or_insert_with(|| WorkflowGuard::new(Arc::clone(&settings), 0, now));
            record(guard, &format!("tool_{tool}"), r#"{"q": "tea"}"#, now);
            answer(guard, "answer 0", now);
        }
    }
    let counts = store.counts();
    assert!(counts.hot < 5000 && counts.rebuilt > 10_000, "{counts:?}");
    assert_eq!(
        (counts.sessions, counts.created, counts.turns),
        (9000, 9000, 36_000)
    );
    for (id, guard) in &alone {
        let kept = store.guard(id, 9.0).map(|(kept, _)| kept.to_bytes(b""));
        assert_eq!(kept, Some(guard.to_bytes(b"")), "{id}");
    }
}

#[test]
fn memory_is_bounded_and_the_least_used_goes_first() {
    let settings = Arc::new(GuardSettings::default());
    let limits = SessionLimits {
        max_sessions: 10,
        ttl: None,
    };
    let store: Store = SessionStore::new(limits);
    for number in 0..100_u8 {
        step(&store, &settings, "used", (0, number), 0.0);
        step(&store, &settings, &format!("other {number}"), (1, 0), 0.0);
    }
    assert_eq!(store.counts().sessions, 10);
    assert_eq!(store.counts().evicted, 91);
    let guard = store.guard("used", 0.0).map(|(guard, _)| guard);
    assert_eq!(guard.map(|guard| guard.detector().total_calls()), Some(100));
    assert!(store.guard("other 90", 0.0).is_none());
    assert!(store.guard("other 91", 0.0).is_some());
}

proptest! {
    #[test]
    fn sessions_are_those_of_a_naive_store(
        steps in prop::collection::vec((0_u8..12, 0_u8..2, 0_u8..2, 0_u8..3, any::<bool>()), 1..120),
    ) {
        const MOST: usize = 5;
        const TTL: f64 = 6.0;
        let settings = Arc::new(GuardSettings::default());
        let limits = SessionLimits { max_sessions: MOST, ttl: Some(TTL) };
        let store: Store = SessionStore::new(limits);
        // From the least to the most recently used.
        let mut naive: Vec<(String, f64, WorkflowGuard)> = Vec::new();
        let mut now = 0.0;
        for (session, tool, result, seconds, forget) in steps {
            now += f64::from(seconds);
            let id = session.to_string();
            if forget && session < 3 {
                let known = naive.iter().any(|(known, ..)| *known == id);
                naive.retain(|(known, ..)| *known != id);
                prop_assert_eq!(store.forget(&id).is_some(), known);
                continue;
            }
            step(&store, &settings, &id, (tool, result), now);
            naive.retain(|(_, used, _)| now - used <= TTL);
            let at = naive.iter().position(|(known, ..)| *known == id);
            let mut guard = at.map_or_else(
                || WorkflowGuard::new(Arc::clone(&settings), 0, now),
                |at| naive.remove(at).2,
            );
            record(&mut guard, &format!("tool_{tool}"), r#"{"q": "tea"}"#, now);
            answer(&mut guard, &format!("answer {result}"), now);
            naive.push((id, now, guard));
            if naive.len() > MOST {
                naive.remove(0);
            }
            for (id, used, guard) in &naive {
                let kept = store.guard(id, now).map(|(kept, _)| kept.to_bytes(b""));
                prop_assert_eq!(kept, (now - used <= TTL).then(|| guard.to_bytes(b"")));
            }
            prop_assert!(usize::try_from(store.counts().sessions).is_ok_and(|kept| kept <= MOST));
        }
    }
}
