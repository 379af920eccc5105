//! The shared vectors: what must come out of which reply, whole, character by character and at
//! random splits, with the format detected and with it pinned.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails where it can't go on, and its numbers are small"
)]

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use turnwarden_extract::{Event, Options, Parser, Reply, SpanKind, Tools, format_named};

fn rows(file: &str) -> Vec<Value> {
    let path = format!("{}/../../tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The declared tools of a row, as definitions.
fn tools(row: &Value) -> Option<Tools> {
    let declared = row.get("tools")?.as_object()?;
    let definitions: Vec<Value> = declared
        .iter()
        .map(|(name, parameters)| {
            let properties: serde_json::Map<String, Value> = parameters
                .as_object()
                .unwrap()
                .iter()
                .map(|(key, kind)| {
                    let schema = match kind {
                        Value::Null => serde_json::json!({}),
                        kind => serde_json::json!({ "type": kind }),
                    };
                    (key.clone(), schema)
                })
                .collect();
            serde_json::json!({
                "name": name,
                "inputSchema": {"type": "object", "properties": properties},
            })
        })
        .collect();
    Some(Tools::from_json(&Value::Array(definitions).to_string()).unwrap())
}

fn parser(row: &Value, formats: Option<Vec<String>>) -> Parser {
    Parser::new(Options {
        formats,
        tools: tools(row),
        ..Options::default()
    })
    .unwrap()
}

/// Reads JSON of any depth.
fn json(text: &str) -> Value {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    Value::deserialize(&mut reader).unwrap()
}

/// A call as the vectors write it.
type Call = (String, Value);

fn calls(list: &[turnwarden_extract::ToolCall]) -> Vec<Call> {
    list.iter()
        .map(|call| (call.name.clone(), json(&call.arguments)))
        .collect()
}

fn expected_calls(list: &Value) -> Vec<Call> {
    let of_item = |item: &Value| match item {
        Value::Array(pair) => (pair[0].as_str().unwrap().to_owned(), pair[1].clone()),
        item => (
            item["name"].as_str().unwrap().to_owned(),
            item["arguments"].clone(),
        ),
    };
    list.as_array().unwrap().iter().map(of_item).collect()
}

/// Numbers compare by value: 2.0 and 2 are one.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => {
                serde_json::json!(float as i64)
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), plain(value)))
            .collect(),
        value => value.clone(),
    }
}

fn same_calls(left: &[Call], right: &[Call]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|(left, right)| left.0 == right.0 && plain(&left.1) == plain(&right.1))
}

/// What is compared between two readings of one reply: everything but generated ids.
fn shape(reply: &Reply) -> String {
    let call = |call: &turnwarden_extract::ToolCall| {
        let id = if call.id_generated { "" } else { &call.id };
        format!(
            "{id}|{}|{}|{}|{:?}",
            call.name, call.arguments, call.repaired, call.span
        )
    };
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        reply.tool_calls.iter().map(call).collect::<Vec<_>>(),
        reply.incomplete_calls.iter().map(call).collect::<Vec<_>>(),
        reply.text,
        reply.reasoning,
        reply.workflow,
        reply.cleaned,
        reply.format,
        reply.repairs,
        reply.faults,
        reply.spans,
    )
}

/// Reads a reply in chunks and checks that its events tell the same as the reply.
fn streamed(parser: &Parser, chunks: &[&str]) -> Reply {
    let mut stream = parser.stream();
    let mut events = Vec::new();
    for chunk in chunks {
        stream.feed(chunk, &mut events);
    }
    stream.finish(&mut events);
    let reply = stream.into_reply();
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut arguments: BTreeMap<usize, String> = BTreeMap::new();
    let mut ended = Vec::new();
    for event in events {
        match event {
            Event::TextDelta(delta) => text.push_str(&delta),
            Event::ReasoningDelta(delta) => reasoning.push_str(&delta),
            Event::TextRetracted { length } => {
                for _ in 0..length {
                    text.pop().unwrap();
                }
            }
            Event::ToolCallArguments { index, delta } => {
                arguments.entry(index).or_default().push_str(&delta);
            }
            Event::ToolCallEnded { index, call } => {
                assert_eq!(arguments.get(&index), Some(&call.arguments));
                ended.push(call.id);
            }
            _ => {}
        }
    }
    assert_eq!(text, reply.text);
    assert_eq!(reasoning, reply.reasoning.clone().unwrap_or_default());
    for call in &reply.tool_calls {
        assert!(ended.contains(&call.id));
    }
    reply
}

fn assert_spans_account_for_all(input: &str, reply: &Reply) {
    let mut at = 0;
    for (_, span) in &reply.spans {
        assert_eq!(span.start, at, "{input:?}\n{:?}", reply.spans);
        assert!(span.end > span.start);
        at = span.end;
    }
    assert_eq!(at, input.len(), "{input:?}\n{:?}", reply.spans);
    let faults = reply.spans.iter().any(|(kind, _)| *kind == SpanKind::Fault);
    assert!(!faults || !reply.faults.is_empty(), "{input:?}");
}

/// Random splits, the same ones each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

fn splits(input: &str) -> Vec<Vec<&str>> {
    let bounds: Vec<usize> = input
        .char_indices()
        .map(|(at, _)| at)
        .chain([input.len()])
        .collect();
    let cut = |points: &[usize]| -> Vec<&str> {
        points
            .windows(2)
            .map(|pair| &input[pair[0]..pair[1]])
            .collect()
    };
    let mut all = vec![cut(&bounds)];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..80 {
        let mut points = vec![0, input.len()];
        for _ in 0..=random.below(6 + round) {
            points.push(bounds[random.below(bounds.len())]);
        }
        points.sort_unstable();
        all.push(cut(&points));
    }
    all.extend(bounds.iter().map(|at| vec![&input[..*at], &input[*at..]]));
    all
}

/// Reads a reply at many splits; the first that differs is told.
fn differs(parser: &Parser, input: &str) -> Option<String> {
    let reply = parser.parse(input);
    assert_spans_account_for_all(input, &reply);
    let whole = shape(&reply);
    splits(input).into_iter().find_map(|chunks| {
        let other = shape(&streamed(parser, &chunks));
        (other != whole).then(|| format!("in chunks {chunks:?}:\n{other}\nwhole:\n{whole}"))
    })
}

/// Why a reply is not what a row of `tool_calls.jsonl` expects.
fn wrong(row: &Value, reply: &Reply) -> Option<String> {
    let expect = &row["expect"];
    let incomplete = row.get("incomplete").is_some();
    let found = if incomplete {
        calls(&reply.incomplete_calls)
    } else {
        calls(&reply.tool_calls)
    };
    let mut accepted = vec![expected_calls(&expect["calls"])];
    if let Some(others) = row.get("accept_calls") {
        accepted.extend(others.as_array().unwrap().iter().map(expected_calls));
    }
    if !accepted.iter().any(|calls| same_calls(calls, &found)) {
        return Some(format!("calls: {found:?}, faults {:?}", reply.faults));
    }
    if incomplete && !reply.tool_calls.is_empty() {
        return Some("truncated calls among the calls".to_owned());
    }
    let content = match &reply.workflow {
        Some(workflow) if row["format"] == "workflow_json" => &workflow.content,
        _ => &reply.text,
    };
    if row.get("content_any").is_none() && content.trim() != expect["content"].as_str().unwrap() {
        return Some(format!("content: {content:?}"));
    }
    let reasoning = expect.get("reasoning").and_then(Value::as_str);
    if row.get("reasoning_any").is_none() && reply.reasoning.as_deref() != reasoning {
        return Some(format!("reasoning: {:?}", reply.reasoning));
    }
    None
}

fn check_tool_calls(pinned: bool) {
    let mut failures = Vec::new();
    let mut count = 0;
    let more = rows("tool_calls_more.jsonl");
    for row in rows("tool_calls.jsonl").into_iter().chain(more) {
        let label = row["format"].as_str().unwrap().to_owned();
        let known =
            format_named(&label).is_some() || matches!(label.as_str(), "reasoning" | "none");
        if !known || pinned && format_named(&label).is_none() {
            continue;
        }
        count += 1;
        let parser = parser(&row, pinned.then(|| vec![label]));
        let reply = parser.parse(row["input"].as_str().unwrap());
        if let Some(problem) = wrong(&row, &reply) {
            failures.push(format!("{}: {problem}", row["id"]));
        } else if let Some(problem) = differs(&parser, row["input"].as_str().unwrap()) {
            failures.push(format!("{}: {problem}", row["id"]));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count}:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn every_row_of_tool_calls_is_detected() {
    check_tool_calls(false);
}

#[test]
fn every_row_of_tool_calls_is_read_with_its_format_pinned() {
    check_tool_calls(true);
}

#[test]
fn every_row_of_workflow_json_is_read() {
    let parser = Parser::new(Options::default()).unwrap();
    let mut failures = Vec::new();
    for row in rows("workflow_json.jsonl") {
        let Some(expect) = row.get("expect") else {
            continue;
        };
        let reply = parser.parse(row["input"].as_str().unwrap());
        let mut problems = Vec::new();
        let found = calls(&reply.tool_calls);
        if let Some(expected) = expect.get("calls").filter(|calls| calls.is_array())
            && !same_calls(&found, &expected_calls(expected))
        {
            problems.push(format!("calls {found:?} faults {:?}", reply.faults));
        }
        if let Some(expected) = expect.get("workflow") {
            let found = reply
                .workflow
                .as_ref()
                .map(|workflow| workflow.content.clone());
            if found.as_deref() != expected.get("content").and_then(Value::as_str) {
                problems.push(format!("workflow {found:?}"));
            }
        }
        if let Some(expected) = expect.get("text").and_then(Value::as_str) {
            let text = reply
                .workflow
                .as_ref()
                .map_or(&reply.text, |workflow| &workflow.content);
            if !expected.starts_with("$exact:") && text != expected {
                problems.push(format!("text {text:?}"));
            }
        }
        if let Some(expected) = expect.get("success").and_then(Value::as_bool)
            && (reply.workflow.is_some() || !reply.tool_calls.is_empty()) != expected
        {
            problems.push("success".to_owned());
        }
        if problems.is_empty() {
            problems.extend(differs(&parser, row["input"].as_str().unwrap()));
        }
        if !problems.is_empty() {
            failures.push(format!("{}: {}", row["id"], problems.join("; ")));
        }
    }
    assert!(
        failures.is_empty(),
        "{}:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
