//! Declarations and response templates from outside: each makes a format or a clear error, and
//! what a format reads keeps the laws of all replies.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use turnwarden_extract::{Format, Options, Parser};

const KEYS: &[&str] = &[
    "fields",
    "tool_calls",
    "thinking",
    "content",
    "open",
    "close",
    "open_pattern",
    "repeats",
    "transform",
    "type",
    "function",
    "name",
    "arguments",
    "start_anchor",
    "start_anchor_pattern",
    "x-regex",
    "x-parser",
    "x-regex-iterator",
    "properties",
    "items",
    "optional",
];
const WORDS: &[&str] = &[
    "json",
    "text",
    "function",
    "{content}",
    "{name}",
    "<call>",
    "</call>",
    "<t>",
    "(.*?)",
    "(?P<name>\\w+)",
    "\\s*",
    "[",
    "",
    "object",
    "array",
    "key-value",
    "xml-inline",
    "python",
];

/// A value of the words that response templates are made of.
#[derive(Debug)]
struct Node(Value);

impl<'a> Arbitrary<'a> for Node {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        value(input, 5).map(Node)
    }
}

fn value(input: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let kinds = if depth == 0 { 3 } else { 9 };
    Ok(match input.int_in_range(0..=kinds)? {
        0 => Value::Bool(input.arbitrary()?),
        1 => Value::from(String::arbitrary(input)?),
        2 | 3 => Value::from(*input.choose(WORDS)?),
        4 => {
            let length = input.int_in_range(0..=3)?;
            let items = (0..length).map(|_| value(input, depth - 1));
            Value::Array(items.collect::<Result<_>>()?)
        }
        _ => {
            let mut members = Map::new();
            for _ in 0..input.int_in_range(0..=5)? {
                let key = (*input.choose(KEYS)?).to_owned();
                members.insert(key, value(input, depth - 1)?);
            }
            Value::Object(members)
        }
    })
}

fuzz_target!(|input: (Node, &str, bool)| {
    let (Node(template), text, wrapped) = input;
    let template = if wrapped {
        serde_json::json!({"fields": {"tool_calls": template}})
    } else {
        template
    };
    let Ok(format) = Format::from_response_template(&template.to_string(), "fuzzed") else {
        return;
    };
    let options = Options {
        formats: Some(vec!["fuzzed".to_owned()]),
        own_formats: vec![format.clone()],
        ..Options::default()
    };
    let parser = Parser::new(options).expect("the format was checked");
    for text in [text, format.example.as_str()] {
        turnwarden_fuzz::check_with(&parser, text, &[0, 3]);
    }
});
