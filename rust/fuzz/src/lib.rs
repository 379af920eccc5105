//! The laws of a reply, checked by more than one target.

use std::sync::LazyLock;

use turnwarden_extract::{Event, Options, Parser, Reply, ToolCall};

/// One with all defaults, and one that passes on all it can.
static PARSERS: LazyLock<[Parser; 2]> = LazyLock::new(|| {
    let eager = Options {
        buffer_arguments: false,
        calls_in_reasoning: true,
        ..Options::default()
    };
    [Options::default(), eager].map(|options| Parser::new(options).expect("no formats to name"))
});

/// Checks one text, cut at the places that `cuts` gives: every law that holds for all replies.
pub fn check_reply(text: &str, cuts: &[u8]) {
    for parser in PARSERS.iter() {
        check_with(parser, text, cuts);
    }
}

/// Checks one text as one parser reads it.
pub fn check_with(parser: &Parser, text: &str, cuts: &[u8]) {
    let whole = parser.parse(text);
    spans_cover(&whole, text.len());
    for call in whole.tool_calls.iter().chain(&whole.incomplete_calls) {
        let arguments = whole_json(&call.arguments);
        assert!(arguments.is_object(), "{:?}", call.arguments);
        assert!(!call.name.is_empty());
    }

    let mut stream = parser.stream();
    let mut events = Vec::new();
    for chunk in pieces(text, cuts) {
        stream.feed(chunk, &mut events);
    }
    stream.finish(&mut events);
    let chunked = stream.into_reply();
    assert_eq!(shown(&whole), shown(&chunked));
    assert_eq!(streamed_text(&events), whole.text);
    arguments_join(&events);
}

fn whole_json(text: &str) -> serde_json::Value {
    use serde::Deserialize;
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    serde_json::Value::deserialize(&mut reader).expect("arguments are JSON")
}

/// Cuts a text at characters, each piece as long as the next byte of `cuts` says.
pub fn pieces<'a>(text: &'a str, cuts: &[u8]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut lengths = cuts.iter().cycle();
    while !rest.is_empty() {
        let wanted = 1 + usize::from(*lengths.next().unwrap_or(&0) % 8);
        let end = rest
            .char_indices()
            .nth(wanted)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        found.push(piece);
        rest = after;
    }
    found
}

fn spans_cover(reply: &Reply, length: usize) {
    let mut at = 0;
    for (_, span) in &reply.spans {
        assert_eq!(span.start, at, "spans adjoin: {:?}", reply.spans);
        assert!(span.end >= span.start);
        at = span.end;
    }
    assert_eq!(at, length, "spans end with the reply: {:?}", reply.spans);
}

fn calls(list: &[ToolCall]) -> Vec<(&str, &str, bool)> {
    list.iter()
        .map(|call| (call.name.as_str(), call.arguments.as_str(), call.repaired))
        .collect()
}

/// All of a reply but the ids made for it.
fn shown(reply: &Reply) -> String {
    format!(
        "{:?}",
        (
            calls(&reply.tool_calls),
            calls(&reply.incomplete_calls),
            &reply.text,
            &reply.reasoning,
            &reply.workflow,
            &reply.cleaned,
            &reply.format,
            &reply.repairs,
            &reply.faults,
            &reply.spans,
        )
    )
}

fn streamed_text(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        match event {
            Event::TextDelta(delta) => text.push_str(delta),
            Event::TextRetracted { length } => {
                for _ in 0..*length {
                    assert!(text.pop().is_some(), "more is taken back than was given");
                }
            }
            _ => {}
        }
    }
    text
}

fn arguments_join(events: &[Event]) {
    let mut joined: Vec<(usize, String)> = Vec::new();
    for event in events {
        match event {
            Event::ToolCallStarted { index, .. } => joined.push((*index, String::new())),
            Event::ToolCallArguments { index, delta } => {
                if let Some((_, text)) = joined.iter_mut().rev().find(|(at, _)| at == index) {
                    text.push_str(delta);
                }
            }
            Event::ToolCallEnded { index, call } => {
                let found = joined.iter().rev().find(|(at, _)| at == index);
                assert_eq!(
                    found.map(|(_, text)| text.as_str()),
                    Some(call.arguments.as_str())
                );
            }
            _ => {}
        }
    }
}

/// Checks what a native message came to: calls are whole, and events say what the reply says.
pub fn check_message(reply: &Reply, events: &[Event]) {
    let mut ids = std::collections::HashSet::new();
    for call in reply.tool_calls.iter().chain(&reply.incomplete_calls) {
        assert!(whole_json(&call.arguments).is_object(), "{call:?}");
        assert!(!call.name.is_empty() && !call.id.is_empty());
        assert!(ids.insert(&call.id), "two calls have the id {:?}", call.id);
    }
    assert_eq!(streamed_text(events), reply.text);
    arguments_join(events);
    let mut reasoning = String::new();
    let mut ended = Vec::new();
    for event in events {
        match event {
            Event::ReasoningDelta(delta) => reasoning.push_str(delta),
            Event::ToolCallEnded { call, .. } => ended.push(call.id.as_str()),
            _ => {}
        }
    }
    assert_eq!(reasoning, reply.reasoning.as_deref().unwrap_or_default());
    let calls: Vec<&str> = reply
        .tool_calls
        .iter()
        .map(|call| call.id.as_str())
        .collect();
    assert_eq!(ended, calls);
    assert!(matches!(events.last(), Some(Event::ReplyFinished)));
}
