//! The vectors that Rust and Python share: loops that must be caught in time, runs that must be
//! left alone, and texts that repeat themselves.

use std::sync::Arc;

use serde_json::Value;
use turnwarden_guard::{
    Answer, Compared, DetectorSettings, LoopDetector, NewCall, TextLoopDetector, VolatileKeys,
};
use turnwarden_signature::Canon;

const VECTORS: &str = include_str!("../../../tests/vectors/loops.jsonl");

fn rows() -> Vec<Value> {
    let rows = VECTORS.lines().map(serde_json::from_str);
    rows.collect::<Result<_, _>>().unwrap_or_default()
}

fn answer(call: &Value) -> Option<Answer> {
    let keys = VolatileKeys::default();
    if let Some(error) = call.get("error") {
        return Some(Answer::of_error(error.as_str().unwrap_or_default(), &keys));
    }
    match call.get("result")? {
        Value::String(text) => Some(Answer::of_result(text, &keys)),
        value => {
            let canon = Canon::from_arguments_text(&value.to_string());
            Some(Answer::of_value(canon.value(), &keys))
        }
    }
}

/// Whether the detector speaks, now that no result of the turn is missing.
fn speaks(detector: &LoopDetector) -> bool {
    !detector.awaits_results() && detector.detect().is_some()
}

/// The number of the call after which the detector first speaks.
fn first_finding(calls: &[Value]) -> Option<usize> {
    let mut detector = LoopDetector::new(Arc::new(DetectorSettings::default()));
    let mut from = 0;
    while let Some(first) = calls.get(from) {
        let turn = first.get("turn");
        let later = calls.iter().skip(from + 1);
        let same = later.take_while(|call| turn.is_some() && call.get("turn") == turn);
        let size = 1 + same.count();
        let numbered = || calls.iter().enumerate().skip(from).take(size);
        detector.begin_turn();
        for (number, call) in numbered() {
            let canon = Canon::from_arguments_text(&call["args"].to_string());
            let id = number.to_string();
            let new = NewCall {
                name: call["tool"].as_str().unwrap_or_default(),
                arguments: canon.value(),
                compared: Compared::ByArguments,
                id: Some(&id),
                signature: None,
                text: None,
            };
            detector.record(new, 0);
        }
        if speaks(&detector) {
            return Some(from + size - 1);
        }
        for (number, call) in numbered() {
            if let Some(answer) = answer(call) {
                detector.record_result(answer, Some(&number.to_string()));
            }
            if speaks(&detector) {
                return Some(number);
            }
        }
        from += size;
    }
    None
}

#[test]
fn loops_are_caught_in_time_and_healthy_runs_are_left_alone() {
    let mut judged = 0;
    for row in rows() {
        let calls = row.get("calls").and_then(Value::as_array);
        let Some(calls) = calls.filter(|calls| !calls.is_empty()) else {
            continue;
        };
        assert!(row.get("policies").is_none(), "{}: set them", row["id"]);
        let expect = &row["expect"];
        let found = first_finding(calls);
        if expect["loop"] == false {
            assert_eq!(found, None, "{}: {}", row["id"], row["why"]);
        } else if row["required"] != false {
            let due = expect["by_call"].as_u64().unwrap_or(u64::MAX);
            let in_time = found.is_some_and(|found| found as u64 <= due);
            assert!(in_time, "{}: {found:?}, due {due}", row["id"]);
        }
        judged += 1;
    }
    assert!(judged > 50, "{judged}");
}

#[test]
fn texts_that_repeat_themselves_are_found() {
    let mut judged = 0;
    for row in rows() {
        let Some(chunks) = row.get("text_chunks").and_then(Value::as_array) else {
            continue;
        };
        let mut detector = TextLoopDetector::default();
        let mut chunks = chunks.iter().filter_map(Value::as_str);
        let found = chunks.any(|chunk| detector.feed(chunk).is_some());
        assert_eq!(found, row["expect"]["loop"] == true, "{}", row["id"]);
        judged += 1;
    }
    assert!(judged > 0);
}
