//! The vectors that Rust and Python share: loops that must be caught in time, runs that must be
//! left alone, and texts that repeat themselves.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use turnwarden_guard::{
    Answer, Compared, DetectorSettings, KindTables, LoopDetector, LoopKey, NewCall,
    TextLoopDetector, ToolPolicy, Tools, VolatileKeys,
};
use turnwarden_signature::Canon;

const VECTORS: [&str; 2] = [
    include_str!("../../../tests/vectors/loops.jsonl"),
    include_str!("../../../tests/vectors/loops_more.jsonl"),
];

fn rows() -> Vec<Value> {
    let rows = VECTORS.iter().flat_map(|file| file.lines());
    let rows = rows.map(serde_json::from_str);
    rows.collect::<Result<_, _>>().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<Box<str>> {
    let texts = value.as_array().into_iter().flatten();
    texts.filter_map(Value::as_str).map(Into::into).collect()
}

/// A policy as the rows have it: a kind alone, or an object.
fn policy(given: &Value) -> ToolPolicy {
    let kind = given.as_str().or_else(|| given["kind"].as_str());
    let fields = texts(&given["loop_key"]);
    ToolPolicy {
        kind: kind.and_then(|kind| kind.parse().ok()),
        ignore_arguments: texts(&given["ignore_arguments"]),
        repeat_threshold: given["repeat_threshold"]
            .as_u64()
            .and_then(|count| count.try_into().ok()),
        loop_key: if fields.is_empty() {
            LoopKey::Arguments
        } else {
            LoopKey::Fields(fields)
        },
    }
}

fn settings(row: &Value) -> Arc<DetectorSettings> {
    let given = row["policies"].as_object().into_iter().flatten();
    let policies = given.map(|(tool, given)| (tool.as_str().into(), policy(given)));
    let tools = Tools::new(KindTables::default(), policies.collect(), HashMap::new());
    Arc::new(DetectorSettings {
        tools,
        ..DetectorSettings::default()
    })
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
fn first_finding(calls: &[Value], settings: Arc<DetectorSettings>) -> Option<usize> {
    let mut detector = LoopDetector::new(settings);
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
        let expect = &row["expect"];
        let found = first_finding(calls, settings(&row));
        if expect["loop"] == false {
            assert_eq!(found, None, "{}: {}", row["id"], row["why"]);
        } else if row["required"] != false {
            let due = expect["by_call"].as_u64().unwrap_or(u64::MAX);
            let in_time = found.is_some_and(|found| found as u64 <= due);
            assert!(in_time, "{}: {found:?}, due {due}", row["id"]);
        }
        judged += 1;
    }
    assert!(judged > 150, "{judged}");
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
