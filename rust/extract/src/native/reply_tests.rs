//! Native messages, whole and streamed, up to replies and events.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::json_view::Tape;
use super::stream::{MessageStream, read_message};
use crate::{Event, FaultKind, Limits, Options, Parser, Reply};

fn parser() -> Parser {
    Parser::new(Options::default()).unwrap()
}

fn limited(limits: Limits) -> Parser {
    Parser::new(Options {
        limits,
        ..Options::default()
    })
    .unwrap()
}

fn unbuffered() -> Parser {
    Parser::new(Options {
        buffer_arguments: false,
        ..Options::default()
    })
    .unwrap()
}

fn whole(parser: &Parser, message: &Value) -> Reply {
    let text = message.to_string();
    let tape = Tape::read(&text).unwrap();
    read_message(parser, &tape.root()).unwrap()
}

/// The reply and the events of a stream.
fn streamed(parser: &Parser, deltas: &[Value]) -> (Reply, Vec<Event>) {
    let mut stream = MessageStream::new(parser);
    let mut events = Vec::new();
    for delta in deltas {
        let text = delta.to_string();
        let tape = Tape::read(&text).unwrap();
        stream.feed(&tape.root(), &mut events).unwrap();
    }
    stream.finish(&mut events);
    let reply = stream.reply();
    assert!(matches!(events.last(), Some(Event::ReplyFinished)));
    check_events(&events, &reply);
    (reply, events)
}

/// What events say joins to what the reply says.
fn check_events(events: &[Event], reply: &Reply) {
    let (mut text, mut reasoning) = (String::new(), String::new());
    let mut arguments: Vec<String> = Vec::new();
    let mut ended = Vec::new();
    let mut faults = Vec::new();
    for event in events {
        match event {
            Event::TextDelta(delta) => text.push_str(delta),
            Event::ReasoningDelta(delta) => reasoning.push_str(delta),
            Event::ToolCallStarted { index, .. } => {
                assert_eq!(*index, arguments.len());
                arguments.push(String::new());
            }
            Event::ToolCallArguments { index, delta } => arguments[*index].push_str(delta),
            Event::ToolCallEnded { index, call } => {
                assert_eq!(call.arguments, arguments[*index]);
                ended.push((
                    *index,
                    call.id.clone(),
                    call.name.clone(),
                    call.arguments.clone(),
                ));
            }
            Event::TextRetracted { length } => {
                for _ in 0..*length {
                    text.pop();
                }
            }
            Event::ParseFault(fault) => faults.push(fault.clone()),
            Event::ReplyFinished => {}
        }
    }
    ended.sort();
    let ended: Vec<_> = ended
        .into_iter()
        .map(|(_, id, name, json)| (id, name, json))
        .collect();
    let calls: Vec<_> = reply
        .tool_calls
        .iter()
        .map(|call| (call.id.clone(), call.name.clone(), call.arguments.clone()))
        .collect();
    assert_eq!(ended, calls);
    assert_eq!(text, reply.text);
    assert_eq!(reasoning, reply.reasoning.clone().unwrap_or_default());
    assert_eq!(faults.len(), reply.faults.len());
}

/// The reply's calls as `id name arguments`; made ids as `-`.
fn calls(reply: &Reply) -> Vec<String> {
    let line = |call: &crate::ToolCall| {
        let id = if call.id_generated { "-" } else { &call.id };
        format!("{id} {} {}", call.name, call.arguments)
    };
    let mut lines: Vec<String> = reply.tool_calls.iter().map(line).collect();
    let cut = reply.incomplete_calls.iter();
    lines.extend(cut.map(|call| format!("cut off: {}", line(call))));
    lines
}

fn chat(arguments: &Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}},
    ]})
}

fn faults(reply: &Reply) -> Vec<FaultKind> {
    reply.faults.iter().map(|fault| fault.kind).collect()
}

#[test]
fn argument_strings_are_healed() {
    let rows = [
        ("", "a f {}"),
        ("  ", "a f {}"),
        ("null", "a f {}"),
        ("{}", "a f {}"),
        (r#"{"x": 1}"#, r#"a f {"x":1}"#),
        (r"{'x': 1,}", r#"a f {"x":1}"#),
        (r#""{\"x\": 1}""#, r#"a f {"x":1}"#),
        (
            r#"{"x": 12345678901234567890123}"#,
            r#"a f {"x":12345678901234567890123}"#,
        ),
        (r#"{}{"x": 1}"#, r#"a f {"x":1}"#),
        (r#"{} {}{"x": 1}"#, r#"a f {"x":1}"#),
        (r#"{"x": 1"#, r#"cut off: a f {"x":1}"#),
        (r#"{"x": "ab"#, r#"cut off: a f {"x":"ab"}"#),
    ];
    for (arguments, expected) in rows {
        let reply = whole(&parser(), &chat(&json!(arguments)));
        assert_eq!(calls(&reply), [expected], "{arguments}");
        assert!(reply.faults.is_empty(), "{arguments}");
        assert_eq!(reply.format.as_deref(), Some("openai_chat_json"));
    }
}

#[test]
fn arguments_that_are_no_object_are_faults() {
    for arguments in [
        json!("[1]"),
        json!("3"),
        json!("\"x\""),
        json!([1]),
        json!(3),
        json!(true),
    ] {
        let reply = whole(&parser(), &chat(&arguments));
        assert_eq!(calls(&reply), [""; 0], "{arguments}");
        assert_eq!(
            faults(&reply),
            [FaultKind::ArgumentsNotAnObject],
            "{arguments}"
        );
        assert_eq!(reply.faults[0].name.as_deref(), Some("f"));
    }
}

#[test]
fn a_second_value_in_the_arguments_is_a_fault_and_the_first_is_kept() {
    let reply = whole(&parser(), &chat(&json!(r#"{"x": 1}{"x": 2}"#)));
    assert_eq!(calls(&reply), [r#"a f {"x":1}"#]);
    assert_eq!(faults(&reply), [FaultKind::Junk]);
}

#[test]
fn arguments_that_are_data_are_taken_as_they_are() {
    let reply = whole(
        &parser(),
        &chat(&json!({"x": "1", "y": [null, {"z": 1.5}]})),
    );
    assert_eq!(calls(&reply), [r#"a f {"x":"1","y":[null,{"z":1.5}]}"#]);
}

#[test]
fn a_call_without_a_name_is_a_fault_and_the_others_are_kept() {
    let message = json!({"tool_calls": [
        {"id": "a", "function": {"arguments": "{}"}},
        {"id": "b", "function": {"name": "g", "arguments": "{}"}},
    ]});
    let reply = whole(&parser(), &message);
    assert_eq!(calls(&reply), ["b g {}"]);
    assert_eq!(faults(&reply), [FaultKind::MissingName]);
}

#[test]
fn a_call_that_arrives_twice_natively_counts_once_and_ids_stay_unique() {
    let call =
        |id: &str, x: u8| json!({"id": id, "function": {"name": "f", "arguments": {"x": x}}});
    let message = json!({"tool_calls": [call("a", 1), call("a", 1), call("a", 2), call("b", 1)]});
    let reply = whole(&parser(), &message);
    assert_eq!(
        calls(&reply),
        [r#"a f {"x":1}"#, r#"- f {"x":2}"#, r#"b f {"x":1}"#]
    );
    assert_ne!(reply.tool_calls[0].id, reply.tool_calls[1].id);
    let deltas: Vec<Value> = [call("a", 1), call("a", 1), call("a", 2), call("b", 1)]
        .into_iter()
        .zip(0..)
        .map(|(mut call, index)| {
            call["index"] = json!(index);
            json!({"choices": [{"delta": {"tool_calls": [call]}}]})
        })
        .collect();
    assert_eq!(calls(&streamed(&parser(), &deltas).0), calls(&reply));
}

#[test]
fn a_call_in_the_text_counts_when_there_is_none_natively() {
    let text = r#"On it.<tool_call>{"name": "f", "arguments": {"x":1}}</tool_call>"#;
    let reply = whole(&parser(), &json!({"role": "assistant", "content": text}));
    assert_eq!(calls(&reply), [r#"- f {"x":1}"#]);
    assert_eq!(
        (reply.text.as_str(), reply.format.as_deref()),
        ("On it.", Some("hermes"))
    );
    let deltas = [
        json!({"choices": [{"delta": {"content": &text[..20]}}]}),
        json!({"choices": [{"delta": {"content": &text[20..]}, "finish_reason": "stop"}]}),
    ];
    let (streamed, events) = streamed(&parser(), &deltas);
    assert_eq!(calls(&streamed), calls(&reply));
    assert_eq!(streamed.text, reply.text);
    let ended = events
        .iter()
        .filter(|event| matches!(event, Event::ToolCallEnded { .. }));
    assert_eq!(ended.count(), 1);
}

#[test]
fn a_call_drafted_in_a_reasoning_field_counts_only_when_it_is_to() {
    let message = json!({
        "reasoning_content": r#"I could <tool_call>{"name": "f", "arguments": {}}</tool_call>"#,
        "content": "Done.",
    });
    assert_eq!(calls(&whole(&parser(), &message)), [""; 0]);
    let parser = Parser::new(Options {
        calls_in_reasoning: true,
        ..Options::default()
    })
    .unwrap();
    assert_eq!(calls(&whole(&parser, &message)), ["- f {}"]);
}

#[test]
fn text_does_not_begin_in_reasoning_when_that_has_a_field_of_its_own() {
    let parser = Parser::new(Options {
        reasoning_open: true,
        ..Options::default()
    })
    .unwrap();
    let reply = whole(
        &parser,
        &json!({"reasoning_content": "plan", "content": "Hello"}),
    );
    assert_eq!(
        (reply.text.as_str(), reply.reasoning.as_deref()),
        ("Hello", Some("plan"))
    );
    let reply = whole(
        &parser,
        &json!({"role": "assistant", "content": "plan</think>Hello"}),
    );
    assert_eq!(
        (reply.text.as_str(), reply.reasoning.as_deref()),
        ("Hello", Some("plan"))
    );
}

#[test]
fn reasoning_of_both_kinds_is_joined_in_order() {
    let (reply, _) = streamed(
        &parser(),
        &[
            json!({"choices": [{"delta": {"reasoning_content": "one "}}]}),
            json!({"choices": [{"delta": {"content": "<think>two</think>Hi"}}]}),
            json!({"choices": [{"delta": {"reasoning_content": "three"}}]}),
        ],
    );
    assert_eq!(reply.reasoning.as_deref(), Some("one\ntwo\nthree"));
    assert_eq!(reply.text, "Hi");
}

#[test]
fn declared_types_are_for_argument_strings_and_names() {
    let tools = crate::Tools::from_json(
        r#"[{"name": "Search", "input_schema": {"type": "object", "properties": {
            "limit": {"type": "integer"}, "q": {"type": "string"}}}}]"#,
    );
    let parser = Parser::new(Options {
        tools: Some(tools.unwrap()),
        ..Options::default()
    })
    .unwrap();
    let call = |id: &str, arguments: Value| json!({"id": id, "function": {"name": "search", "arguments": arguments}});
    let message = json!({"tool_calls": [
        call("a", json!(r#"{"limit": "3", "q": "x"}"#)),
        call("b", json!({"limit": "3"})),
        call("c", json!(r#"{"limit": "many"}"#)),
        {"id": "d", "custom": {"name": "search", "input": "free \"text\""}},
    ]});
    let reply = whole(&parser, &message);
    assert_eq!(
        calls(&reply),
        [
            r#"a Search {"limit":3,"q":"x"}"#,
            r#"b Search {"limit":"3"}"#,
            r#"c Search {"limit":"many"}"#,
            r#"d Search {"q":"free \"text\""}"#,
        ]
    );
    assert_eq!(faults(&reply), [FaultKind::TypeMismatch]);
}

#[test]
fn a_call_that_arrives_natively_and_in_the_text_counts_once() {
    let text = r#"<tool_call>{"name": "f", "arguments": {"y": 2, "x":1}}</tool_call>"#;
    let native = json!({"id": "a", "index": 0, "function": {"name": "f", "arguments": "{\"x\": 1, \"y\": 2.0}"}});
    let reply = whole(&parser(), &json!({"content": text, "tool_calls": [native]}));
    assert_eq!(calls(&reply), [r#"a f {"x":1,"y":2.0}"#]);
    assert_eq!(reply.format.as_deref(), Some("openai_chat_json"));
    assert!(reply.text.is_empty() && reply.faults.is_empty());
    let deltas = [
        json!({"choices": [{"delta": {"content": text}}]}),
        json!({"choices": [{"delta": {"tool_calls": [native]}}]}),
    ];
    assert_eq!(calls(&streamed(&parser(), &deltas).0), calls(&reply));
}

#[test]
fn another_call_in_the_text_of_a_message_with_native_calls_is_a_fault() {
    let message = json!({
        "content": r#"<tool_call>{"name": "g", "arguments": {}}</tool_call>"#,
        "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}],
    });
    let reply = whole(&parser(), &message);
    assert_eq!(calls(&reply), ["a f {}"]);
    assert_eq!(faults(&reply), [FaultKind::CallInText]);
    assert_eq!(reply.faults[0].name.as_deref(), Some("g"));
}

#[test]
fn a_call_is_announced_early_and_ended_once_it_is_over() {
    let delta = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]});
    let deltas = [
        delta(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}})),
        delta(json!({"index": 0, "function": {"arguments": "{\"x\""}})),
        delta(json!({"index": 0, "function": {"arguments": ": 1}"}})),
        delta(json!({"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}})),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let parser = parser();
    let mut stream = MessageStream::new(&parser);
    let counts: Vec<usize> = deltas
        .iter()
        .map(|delta| {
            let mut events = Vec::new();
            let text = delta.to_string();
            stream
                .feed(&Tape::read(&text).unwrap().root(), &mut events)
                .unwrap();
            events.len()
        })
        .collect();
    // Announced with the first arguments; ended when the next one begins.
    assert_eq!(counts, [0, 1, 0, 2, 0]);
    assert_eq!(stream.reply().tool_calls.len(), 1);
    let mut events = Vec::new();
    stream.finish(&mut events);
    assert_eq!(events.len(), 4);
    stream.finish(&mut events);
    assert_eq!(events.len(), 4);
}

#[test]
fn values_are_passed_on_once_they_are_closed_where_arguments_are_not_buffered() {
    let tools = crate::Tools::from_json(
        r#"[{"name": "f", "input_schema": {"properties": {"n": {"type": "integer"}}}}]"#,
    );
    let parser = Parser::new(Options {
        buffer_arguments: false,
        tools: Some(tools.unwrap()),
        ..Options::default()
    })
    .unwrap();
    let delta = |arguments: &str| {
        json!({"choices": [{"delta": {"tool_calls": [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}},
        ]}}]})
    };
    let pieces = [
        "",
        "{'n': \"3",
        "\", \"t\": \"a",
        "b\", \"x\"",
        ": [1, {}], \"y\": 2",
        "}",
    ];
    let (reply, events) = streamed(&parser, &pieces.map(delta));
    let told: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolCallArguments { delta, .. } => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    // What follows the quote decides whether a string is over.
    assert_eq!(
        told,
        [r#"{"n":3"#, r#","t":"ab","x":[1,{}]"#, r#","y":2"#, "}"]
    );
    assert_eq!(calls(&reply), [r#"a f {"n":3,"t":"ab","x":[1,{}],"y":2}"#]);
}

#[test]
fn arguments_that_replace_others_are_not_passed_on_behind_them() {
    let item = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": ""});
    let deltas = [
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"x\": 1, \"y\": 22222"}),
        json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": "{}"}),
    ];
    let (reply, _) = streamed(&unbuffered(), &deltas);
    assert_eq!(calls(&reply), [""; 0]);
    assert_eq!(faults(&reply), [FaultKind::UnreadableArguments]);
    assert_eq!(calls(&streamed(&parser(), &deltas).0), ["a f {}"]);
}

#[test]
fn a_message_that_was_cut_off_has_its_last_call_among_the_incomplete() {
    let delta = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]});
    let deltas = [
        delta(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}})),
        delta(json!({"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}})),
        json!({"choices": [{"delta": {}, "finish_reason": "length"}]}),
    ];
    let (reply, _) = streamed(&parser(), &deltas);
    assert_eq!(calls(&reply), ["a f {}", "cut off: b g {}"]);
    let block = |name: &str| json!({"type": "tool_use", "id": name, "name": name, "input": {}});
    let deltas = [
        json!({"type": "content_block_start", "index": 0, "content_block": block("f")}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": block("g")}),
    ];
    let (reply, _) = streamed(&parser(), &deltas);
    assert_eq!(calls(&reply), ["f f {}", "cut off: g g {}"]);
}

#[test]
fn limits_become_faults_and_what_came_before_is_kept() {
    let message = json!({"tool_calls": [
        {"id": "a", "function": {"name": "f", "arguments": "{}"}},
        {"id": "b", "function": {"name": "g", "arguments": format!("{{\"x\": \"{}\"}}", "y".repeat(100))}},
        {"id": "c", "function": {"name": "h", "arguments": "{}"}},
    ]});
    let parser = limited(Limits {
        max_calls: 2,
        max_argument_bytes: 50,
        ..Limits::default()
    });
    let reply = whole(&parser, &message);
    assert_eq!(calls(&reply), ["a f {}"]);
    assert_eq!(
        faults(&reply),
        [FaultKind::TooManyCalls, FaultKind::ArgumentsTooLong]
    );
    let parser = limited(Limits {
        max_reply_bytes: 8,
        ..Limits::default()
    });
    let (reply, _) = streamed(
        &parser,
        &[
            json!({"choices": [{"delta": {"content": "Hello"}}]}),
            json!({"choices": [{"delta": {"content": " there"}}]}),
            json!({"choices": [{"delta": {"content": "!"}}]}),
        ],
    );
    assert_eq!(reply.text, "Hello th");
    assert_eq!(faults(&reply), [FaultKind::ReplyTooLong]);
}

#[test]
fn many_deltas_and_long_arguments_are_no_trouble() {
    let deltas = (0..100_000).map(|number| {
        let text = if number == 0 { "{\"x\":\"" } else { "ab" };
        json!({"choices": [{"delta": {"tool_calls": [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": text}},
        ]}, "finish_reason": "tool_calls"}]})
    });
    let mut deltas: Vec<Value> = deltas.collect();
    deltas.push(json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "\"}"}}]}}]}));
    let (reply, _) = streamed(&parser(), &deltas);
    assert_eq!(reply.tool_calls[0].arguments.len(), 99_999 * 2 + 8);
}

/// A message in plain words.
#[derive(Clone, Debug)]
struct Message {
    reasoning: String,
    text: String,
    calls: Vec<(String, Value)>,
}

fn message() -> impl Strategy<Value = Message> {
    let arguments =
        proptest::collection::vec(("[a-c]", "[a-z{}\"\\\\é ]{0,6}"), 0..3).prop_map(|members| {
            let members = members
                .into_iter()
                .map(|(key, value)| (key, Value::from(value)));
            Value::Object(members.collect())
        });
    let calls = proptest::collection::vec(("[f-h]", arguments), 0..4);
    ("[a-c \n]{0,8}", "[a-c .\n]{0,8}", calls).prop_map(|(reasoning, text, calls)| Message {
        reasoning,
        text,
        calls,
    })
}

/// Cuts a text into pieces of a few characters.
fn cut(text: &str, size: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(size)
        .map(|piece| piece.iter().collect())
        .collect()
}

impl Message {
    fn chat(&self) -> Value {
        let calls = self.calls.iter().zip(0..).map(|((name, arguments), index)| {
            json!({"id": format!("c{index}"), "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
        });
        json!({"choices": [{"message": {
            "role": "assistant", "content": self.text, "reasoning_content": self.reasoning,
            "tool_calls": calls.collect::<Vec<_>>(),
        }}]})
    }

    fn chat_deltas(&self, size: usize) -> Vec<Value> {
        let chunk = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
        let mut deltas = vec![chunk(json!({"role": "assistant"}))];
        let pieces = cut(&self.reasoning, size).into_iter();
        deltas.extend(pieces.map(|piece| chunk(json!({"reasoning_content": piece}))));
        let pieces = cut(&self.text, size).into_iter();
        deltas.extend(pieces.map(|piece| chunk(json!({"content": piece}))));
        for ((name, arguments), index) in self.calls.iter().zip(0..) {
            let id = format!("c{index}");
            let call =
                json!({"index": index, "id": id, "function": {"name": name, "arguments": ""}});
            deltas.push(chunk(json!({"tool_calls": [call]})));
            for piece in cut(&arguments.to_string(), size) {
                let call = json!({"index": index, "function": {"arguments": piece}});
                deltas.push(chunk(json!({"tool_calls": [call]})));
            }
        }
        deltas
    }

    fn anthropic(&self) -> Value {
        let mut blocks = vec![
            json!({"type": "thinking", "thinking": self.reasoning, "signature": "s"}),
            json!({"type": "text", "text": self.text}),
        ];
        for ((name, arguments), index) in self.calls.iter().zip(0..) {
            blocks.push(json!({"type": "tool_use", "id": format!("c{index}"), "name": name, "input": arguments}));
        }
        json!({"type": "message", "role": "assistant", "content": blocks})
    }

    fn anthropic_deltas(&self, size: usize) -> Vec<Value> {
        let mut deltas = Vec::new();
        let mut index = 0;
        let mut block = |start: Value, pieces: Vec<Value>| {
            deltas.push(
                json!({"type": "content_block_start", "index": index, "content_block": start}),
            );
            for piece in pieces {
                deltas.push(json!({"type": "content_block_delta", "index": index, "delta": piece}));
            }
            deltas.push(json!({"type": "content_block_stop", "index": index}));
            index += 1;
        };
        let pieces = |text: &str, kind: &str, key: &str| -> Vec<Value> {
            let piece = |piece: String| json!({"type": kind, key: piece});
            cut(text, size).into_iter().map(piece).collect()
        };
        block(
            json!({"type": "thinking", "thinking": ""}),
            pieces(&self.reasoning, "thinking_delta", "thinking"),
        );
        block(
            json!({"type": "text", "text": ""}),
            pieces(&self.text, "text_delta", "text"),
        );
        for ((name, arguments), number) in self.calls.iter().zip(0..) {
            block(
                json!({"type": "tool_use", "id": format!("c{number}"), "name": name, "input": {}}),
                pieces(&arguments.to_string(), "input_json_delta", "partial_json"),
            );
        }
        deltas
    }

    fn responses(&self) -> Value {
        let mut items = vec![
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": self.reasoning}]}),
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": self.text}]}),
        ];
        for ((name, arguments), index) in self.calls.iter().zip(0..) {
            items.push(json!({"type": "function_call", "id": format!("fc{index}"), "call_id": format!("c{index}"), "name": name, "arguments": arguments.to_string()}));
        }
        json!({"output": items})
    }

    fn responses_deltas(&self, size: usize) -> Vec<Value> {
        let whole = self.responses();
        let mut deltas = Vec::new();
        for (item, index) in whole["output"].as_array().unwrap().iter().zip(0..) {
            let kind = item["type"].as_str().unwrap();
            let (text, event) = match kind {
                "reasoning" => (self.reasoning.clone(), "reasoning_summary_text"),
                "message" => (self.text.clone(), "output_text"),
                _ => (
                    item["arguments"].as_str().unwrap().to_owned(),
                    "function_call_arguments",
                ),
            };
            let mut added = item.clone();
            for (key, empty) in [
                ("summary", json!([])),
                ("content", json!([])),
                ("arguments", json!("")),
            ] {
                if added.get(key).is_some() {
                    added[key] = empty;
                }
            }
            added["id"] = json!(format!("item{index}"));
            deltas.push(
                json!({"type": "response.output_item.added", "output_index": index, "item": added}),
            );
            let name = format!("response.{event}.delta");
            for piece in cut(&text, size) {
                deltas.push(json!({"type": name, "item_id": format!("item{index}"), "output_index": index, "content_index": 0, "summary_index": 0, "delta": piece}));
            }
            let mut done = item.clone();
            done["id"] = json!(format!("item{index}"));
            deltas.push(
                json!({"type": "response.output_item.done", "output_index": index, "item": done}),
            );
        }
        deltas
    }

    fn gemini(&self) -> Value {
        let mut parts = vec![
            json!({"text": self.reasoning, "thought": true}),
            json!({"text": self.text}),
        ];
        for ((name, arguments), index) in self.calls.iter().zip(0..) {
            parts.push(json!({"functionCall": {"id": format!("c{index}"), "name": name, "args": arguments}}));
        }
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
    }

    fn gemini_deltas(&self, size: usize) -> Vec<Value> {
        let part = |part: Value| json!({"candidates": [{"content": {"parts": [part]}}]});
        let mut deltas: Vec<Value> = cut(&self.reasoning, size)
            .into_iter()
            .map(|piece| part(json!({"text": piece, "thought": true})))
            .collect();
        deltas.extend(
            cut(&self.text, size)
                .into_iter()
                .map(|piece| part(json!({"text": piece}))),
        );
        for ((name, arguments), index) in self.calls.iter().zip(0..) {
            deltas.push(part(json!({"functionCall": {"id": format!("c{index}"), "name": name, "args": arguments}})));
        }
        deltas
    }

    /// What the reply must say.
    fn check(&self, reply: &Reply) {
        let expected: Vec<String> = self
            .calls
            .iter()
            .zip(0..)
            .map(|((name, arguments), index)| format!("c{index} {name} {arguments}"))
            .collect();
        assert_eq!(calls(reply), expected);
        assert_eq!(reply.text, self.text.trim());
        assert_eq!(
            reply.reasoning.clone().unwrap_or_default(),
            self.reasoning.trim()
        );
        assert!(reply.faults.is_empty(), "{:?}", reply.faults);
    }
}

proptest! {
    #[test]
    fn a_stream_and_the_whole_message_agree_in_every_dialect(message in message(), size in 1usize..6) {
        let parser = parser();
        let unbuffered = unbuffered();
        for (whole_message, deltas) in [
            (message.chat(), message.chat_deltas(size)),
            (message.anthropic(), message.anthropic_deltas(size)),
            (message.responses(), message.responses_deltas(size)),
            (message.gemini(), message.gemini_deltas(size)),
        ] {
            let reply = whole(&parser, &whole_message);
            message.check(&reply);
            message.check(&streamed(&parser, &deltas).0);
            message.check(&streamed(&unbuffered, &deltas).0);
        }
    }

    #[test]
    fn wrong_types_anywhere_never_panic(seed in any::<u64>(), message in message()) {
        for mut value in [message.chat(), message.anthropic(), message.responses(), message.gemini()] {
            let odd = [json!(null), json!(5), json!("x"), json!([]), json!({}), json!([[]]), json!(true)];
            let mut state = seed | 1;
            let mut next = |bound: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                usize::try_from(state >> 33).unwrap() % bound
            };
            spoil(&mut value, &odd, &mut next);
            let text = value.to_string();
            let tape = Tape::read(&text).unwrap();
            let _ = read_message(&parser(), &tape.root());
            let mut stream = MessageStream::new(&parser());
            let mut events = Vec::new();
            let _ = stream.feed(&tape.root(), &mut events);
            stream.finish(&mut events);
        }
    }
}

/// Replaces one value somewhere by another type.
fn spoil(value: &mut Value, odd: &[Value], next: &mut impl FnMut(usize) -> usize) {
    let children: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(members) => members.values_mut().collect(),
        _ => Vec::new(),
    };
    let count = children.len();
    if count > 0
        && next(4) > 0
        && let Some(child) = children.into_iter().nth(next(count))
    {
        return spoil(child, odd, next);
    }
    *value = odd[next(odd.len())].clone();
}
