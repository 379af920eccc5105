//! Native messages of any shape, whole and as deltas: no panic, events join to the reply, and
//! arguments are JSON objects.
#![no_main]

use std::sync::OnceLock;

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use turnwarden_extract::native::{Key, MessageStream, Tape, read_json, read_message};
use turnwarden_extract::{Options, Parser};

const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "f",
    " ",
    "{",
    "}",
    "{}",
    "{\"x\":",
    "1}",
    "\"",
    "null",
    "text",
    "thinking",
    "tool_use",
    "server_tool_use",
    "function",
    "function_call",
    "custom_tool_call",
    "message",
    "reasoning",
    "length",
    "stop",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_start",
    "message_delta",
    "text_delta",
    "input_json_delta",
    "thinking_delta",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.delta",
    "response.reasoning_summary_text.delta",
    "response.completed",
    "$.a",
    "$.a[0].b",
    "<think>",
    "</think>",
    "assistant",
    "local_shell_call",
    "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
];

/// A value of the words that messages are made of.
#[derive(Debug)]
struct Node(Value);

impl<'a> Arbitrary<'a> for Node {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        value(input, 7).map(Node)
    }
}

fn value(input: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let kinds = if depth == 0 { 5 } else { 10 };
    Ok(match input.int_in_range(0..=kinds)? {
        0 => Value::Null,
        1 => Value::Bool(input.arbitrary()?),
        2 => Value::from(input.int_in_range(-1..=3_i64)?),
        3 => Value::from(String::arbitrary(input)?),
        4 | 5 => Value::from(*input.choose(TEXTS)?),
        6 | 7 => {
            let length = input.int_in_range(0..=3)?;
            let items = (0..length).map(|_| value(input, depth - 1));
            Value::Array(items.collect::<Result<_>>()?)
        }
        _ => {
            let length = input.int_in_range(0..=5)?;
            let mut members = Map::new();
            for _ in 0..length {
                let key = input.choose(Key::ALL)?.name();
                members.insert(key.to_owned(), value(input, depth - 1)?);
            }
            Value::Object(members)
        }
    })
}

fn parser(buffer_arguments: bool) -> &'static Parser {
    static PARSERS: OnceLock<[Parser; 2]> = OnceLock::new();
    let parsers = PARSERS.get_or_init(|| {
        [false, true].map(|buffer_arguments| {
            let options = Options {
                buffer_arguments,
                ..Options::default()
            };
            Parser::new(options).expect("the formats are built in")
        })
    });
    &parsers[usize::from(buffer_arguments)]
}

fuzz_target!(|input: (Vec<Node>, bool)| {
    let (deltas, buffer_arguments) = input;
    let parser = parser(buffer_arguments);
    let mut stream = MessageStream::new(parser);
    let mut events = Vec::new();
    for Node(delta) in &deltas {
        let text = delta.to_string();
        let tape = Tape::read(&text).expect("serde_json writes JSON");
        let _ = stream.feed(&tape.root(), &mut events);
        let _ = stream.reply();
        let _ = read_message(parser, &tape.root());
        let _ = read_json(&text);
    }
    stream.finish(&mut events);
    turnwarden_fuzz::check_message(&stream.into_reply(), &events);
});
