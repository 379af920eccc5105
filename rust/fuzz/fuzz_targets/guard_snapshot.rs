//! Snapshots of guards: whole ones go on exactly, damaged ones are refused or harmless.
#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use turnwarden_guard::{
    Answer, Budget, Compared, DetectorSettings, GuardSettings, LoopDetector, LoopDetectorConfig,
    NewCall, Snapshot, SnapshotKind, Spent, VolatileKeys, WorkflowGuard,
};
use turnwarden_signature::Canon;

#[derive(Arbitrary, Debug)]
struct Input {
    settings: u8,
    before: Vec<Step>,
    after: Vec<Step>,
    damage: Vec<(u16, u8)>,
    cut: Option<u16>,
    /// A state of the fuzzer's own making.
    state: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Iteration,
    Turn(Vec<(u8, u8, Option<u8>)>),
    Result(u8, Option<u8>),
    Spend(u16),
    Terminate,
    Reset,
}

const TOOLS: &[&str] = &[
    "search",
    "read_file",
    "write_file",
    "job_status",
    "bash",
    "think",
    "_invalid",
    "frob",
    "",
];
const ARGUMENTS: &[&str] = &[
    "{}",
    r#"{"q": "tea"}"#,
    r#"{"q": "a small grey harbour at dawn with two boats", "page": 1}"#,
    r#"{"q": "a small blue harbour at dawn with two boats", "page": 1}"#,
    r#"{"q": "a small blue harbour at dawn with two boats", "page": 2}"#,
    r#"{"path": "a.py", "offset": 0, "limit": 100}"#,
    r#"{"path": "a.py", "offset": 50, "limit": 60}"#,
    r#"{"command": "ls -l"}"#,
    r#"{"command": "make all"}"#,
    "no json",
];
const ANSWERS: &[&str] = &[
    "three rows of data",
    "another thing",
    "",
    "No matches found",
    "Error: disk is full",
    "Error: 429 too many requests",
    "Error: unknown tool frob",
    "took 3 ms at 2026-01-05T10:20:30Z",
];

fn pick(list: &[&'static str], index: u8) -> &'static str {
    list[usize::from(index) % list.len()]
}

fn settings(choice: u8) -> Arc<GuardSettings> {
    let is = |bit: u8| choice & (1 << bit) != 0;
    let default = LoopDetectorConfig::default();
    let config = LoopDetectorConfig {
        keep_arguments: is(0),
        window_size: if is(1) { 2 } else { default.window_size },
        max_period: if is(2) { 3 } else { default.max_period },
        compare_results: is(3).then_some(is(4)),
        ..default
    };
    Arc::new(GuardSettings {
        detection: Arc::new(DetectorSettings {
            config,
            ..DetectorSettings::default()
        }),
        budget: Budget {
            max_tokens: is(5).then_some(1000),
            ..Budget::default()
        },
        observe: is(6),
        ..GuardSettings::default()
    })
}

fn step(guard: &mut WorkflowGuard, step: &Step, now: f64) {
    match step {
        Step::Iteration => drop(guard.start_iteration(now)),
        Step::Turn(calls) => {
            let texts: Vec<Canon> = calls
                .iter()
                .map(|&(_, arguments, _)| Canon::from_arguments_text(pick(ARGUMENTS, arguments)))
                .collect();
            let ids: Vec<Option<String>> = calls
                .iter()
                .map(|(_, _, id)| id.map(|id| id.to_string()))
                .collect();
            let calls = calls.iter().zip(&texts).zip(&ids);
            let calls = calls.map(|((&(tool, arguments, _), canon), id)| NewCall {
                name: pick(TOOLS, tool),
                arguments: canon.value(),
                compared: Compared::ByArguments,
                id: id.as_deref(),
                signature: None,
                text: Some(pick(ARGUMENTS, arguments)),
            });
            drop(guard.record_turn(calls, now));
        }
        Step::Result(answer, id) => {
            let answer = Answer::of_result(pick(ANSWERS, *answer), &VolatileKeys::default());
            let id = id.map(|id| id.to_string());
            drop(guard.record_result(answer, id.as_deref(), now));
        }
        Step::Spend(tokens) => guard.spend(Spent {
            tokens: (*tokens).into(),
            ..Spent::default()
        }),
        Step::Terminate => guard.terminate("enough"),
        Step::Reset => guard.reset(now),
    }
}

fn play(guard: &mut WorkflowGuard, steps: &[Step], from: f64) {
    let mut now = from;
    for one in steps.iter().take(64) {
        now += 0.25;
        step(guard, one, now);
    }
    let verdict = guard.check(now);
    let _texts = (
        verdict.guidance(),
        verdict.reasons().len(),
        guard.summary(now),
    );
    let _calls = guard.detector().recent_calls().count();
}

/// The bytes with a checksum that fits them.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = blake3::hash(&bytes);
    bytes.extend_from_slice(&sum.as_bytes()[..8]);
    bytes
}

/// Reads bytes as a snapshot: refused with words, or a guard that can be used.
fn read(bytes: &[u8], settings: &Arc<GuardSettings>, steps: &[Step]) {
    match Snapshot::open(SnapshotKind::WorkflowGuard, bytes) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(snapshot) => match WorkflowGuard::from_snapshot(&snapshot, Arc::clone(settings)) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(mut guard) => play(&mut guard, steps, 1e9),
        },
    }
    if let Ok(snapshot) = Snapshot::open(SnapshotKind::LoopDetector, bytes)
        && let Ok((detector, _)) =
            LoopDetector::from_snapshot(&snapshot, Arc::clone(&settings.detection))
    {
        let _found = detector.detect();
    }
}

fuzz_target!(|input: Input| {
    let settings = settings(input.settings);
    let mut guard = WorkflowGuard::new(Arc::clone(&settings), 7, 1e9);
    play(&mut guard, &input.before, 1e9);

    // A whole one goes on exactly.
    let bytes = guard.to_bytes(b"{}");
    let snapshot = Snapshot::open(SnapshotKind::WorkflowGuard, &bytes).expect("a guard wrote it");
    let twin = WorkflowGuard::from_snapshot(&snapshot, Arc::clone(&settings));
    let mut twin = twin.expect("a guard wrote it");
    assert_eq!(twin.to_bytes(b"{}"), bytes);
    for one in input.after.iter().take(64) {
        step(&mut guard, one, 2e9);
        step(&mut twin, one, 2e9);
        let (one, other) = (guard.check(2e9), twin.check(2e9));
        assert_eq!(one.action(), other.action());
        assert_eq!(one.reasons(), other.reasons());
        assert_eq!(one.guidance(), other.guidance());
    }
    assert_eq!(twin.to_bytes(b"{}"), guard.to_bytes(b"{}"));

    // A damaged one is refused.
    let mut damaged = bytes.clone();
    for &(at, flip) in &input.damage {
        let at = usize::from(at) % damaged.len();
        damaged[at] ^= flip;
    }
    if let Some(cut) = input.cut {
        damaged.truncate(usize::from(cut) % (damaged.len() + 1));
    }
    if damaged != bytes {
        assert!(Snapshot::open(SnapshotKind::WorkflowGuard, &damaged).is_err());
    }

    // One whose checksum was made to fit is refused, or a guard that does no harm.
    damaged.truncate(damaged.len().saturating_sub(8));
    read(&sealed(damaged), &settings, &input.after);
    for kind in [1, 2] {
        let head = [&b"twgd"[..], &[1, kind, 0], &input.state].concat();
        read(&sealed(head), &settings, &input.after);
    }
    read(&input.state, &settings, &[]);
});
