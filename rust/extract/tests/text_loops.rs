//! Replies that repeat themselves end where they begin to, with all that came before.

#![allow(clippy::panic, reason = "a test fails where it cannot go on")]

use proptest::prelude::*;
use turnwarden_extract::{Event, FaultKind, Options, Parser, Reply, Span};

fn parser() -> Parser {
    let options = Options {
        stop_on_text_loop: true,
        ..Options::default()
    };
    Parser::new(options).unwrap_or_else(|error| panic!("{error}"))
}

fn loop_offset(reply: &Reply) -> Option<usize> {
    let faults = reply.faults.iter();
    let mut loops = faults.filter(|fault| fault.kind == FaultKind::TextLoop);
    let found = loops.next().map(|fault| fault.offset);
    assert!(loops.next().is_none());
    found
}

const CALL: &str =
    "<tool_call>\n{\"name\": \"ping\", \"arguments\": {\"host\": \"a\"}}\n</tool_call>\n";
const SENTENCE: &str = "I will look at the file again. ";

#[test]
fn what_came_before_the_repetition_is_kept() {
    let text = format!("Hello.\n{CALL}{}", SENTENCE.repeat(400));
    let reply = parser().parse(&text);
    assert_eq!(reply.tool_calls.len(), 1);
    assert!(reply.text.starts_with("Hello.\n"), "{}", reply.text);
    assert!(reply.text.len() < 600, "{}", reply.text.len());
    let start = text.find(SENTENCE).unwrap_or_default();
    assert!(loop_offset(&reply).is_some_and(|offset| offset.abs_diff(start) <= 1));
    // Without the option the reply is read to its end.
    let whole = Parser::new(Options::default()).map(|parser| parser.parse(&text));
    assert!(whole.is_ok_and(|whole| whole.faults.is_empty() && whole.text.len() > 10_000));
}

#[test]
fn reasoning_and_the_content_of_workflow_json_are_watched() {
    let reasoning = format!("<think>{}", SENTENCE.repeat(400));
    let reply = parser().parse(&reasoning);
    assert!(loop_offset(&reply).is_some_and(|offset| offset <= 7));
    assert!(
        reply
            .reasoning
            .is_some_and(|reasoning| reasoning.starts_with(SENTENCE))
    );

    let workflow = format!("{{\"content\": \"{}", SENTENCE.repeat(400));
    let reply = parser().parse(&workflow);
    assert!(
        loop_offset(&reply).is_some_and(|offset| offset.abs_diff(13) <= 1),
        "{reply:?}"
    );
    assert!(reply.text.starts_with(SENTENCE) && reply.text.len() < 600);
}

#[test]
fn equal_rows_in_the_arguments_of_a_call_are_data() {
    let rows = "yes, the same row again\\n".repeat(200);
    let json = format!(
        "<tool_call>\n{{\"name\": \"write\", \"arguments\": {{\"text\": \"{rows}\"}}}}\n</tool_call>"
    );
    let tagged = format!(
        "<tool_call>\n<function=write>\n<parameter=text>\n{}</parameter>\n</function>\n</tool_call>",
        "I write this row once more.\n".repeat(200)
    );
    let calls = format!("Now:\n{}", CALL.repeat(30));
    for (text, count) in [(json, 1), (tagged, 1), (calls, 30)] {
        let reply = parser().parse(&text);
        assert_eq!(loop_offset(&reply), None, "{text}");
        assert_eq!(reply.tool_calls.len(), count);
    }
}

#[test]
fn arguments_without_end_are_a_loop() {
    let text = format!(
        "<tool_call>\n{{\"name\": \"write\", \"arguments\": {{\"text\": \"{}",
        "again and ".repeat(9000)
    );
    let reply = parser().parse(&text);
    assert!(loop_offset(&reply).is_some());
    assert_eq!(reply.incomplete_calls.len(), 1);
    assert!(
        reply
            .incomplete_calls
            .iter()
            .all(|call| call.arguments.len() < 20_000)
    );
}

fn pieces() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "Hello there. ",
        "<think>",
        "</think>",
        "\n\n",
        "```\n",
        "```json\n",
        "{\"content\": \"",
        "\", \"next\": []}",
        "<tool_call>",
        "</tool_call>",
        CALL,
        "[TOOL_CALLS]",
        "{\"name\": \"a\", \"arguments\": {\"x\": \"",
        "\"}}",
        "| a | b |\n",
        "- an item\n",
        "Thought: ",
        "`",
        "<",
        "é",
    ])
    .prop_map(str::to_owned)
}

fn repeated() -> impl Strategy<Value = String> {
    let units = vec![
        SENTENCE,
        "ny",
        "Wait, let me see {n}. ",
        "so on and ",
        "好的。我再看一次。",
        "x = 1\n",
        CALL,
    ];
    (prop::sample::select(units), 1_usize..80).prop_map(|(unit, times)| {
        let lap = |n: usize| unit.replace("{n}", &n.to_string());
        (0..times).map(lap).collect()
    })
}

fn replies() -> impl Strategy<Value = String> {
    let part = prop_oneof![2 => pieces(), 1 => repeated()];
    prop::collection::vec(part, 1..12).prop_map(|parts| parts.concat())
}

/// What there is to compare: everything but the random ids of calls.
fn shown(reply: &Reply) -> String {
    let calls = |calls: &[turnwarden_extract::ToolCall]| {
        let call = |call: &turnwarden_extract::ToolCall| {
            format!("{} {} {:?}", call.name, call.arguments, call.span)
        };
        calls.iter().map(call).collect::<Vec<_>>()
    };
    format!(
        "{:?}",
        (
            (
                &reply.text,
                &reply.reasoning,
                &reply.workflow,
                &reply.cleaned,
                &reply.format
            ),
            (&reply.repairs, &reply.faults, &reply.spans),
            calls(&reply.tool_calls),
            calls(&reply.incomplete_calls),
        )
    )
}

proptest! {
    #[test]
    fn any_cut_into_chunks_gives_the_same_reply(text in replies(), size in 1_usize..40) {
        let parser = parser();
        let whole = parser.parse(&text);
        let mut stream = parser.stream();
        let mut events = Vec::new();
        let characters: Vec<char> = text.chars().collect();
        for chunk in characters.chunks(size) {
            stream.feed(&chunk.iter().collect::<String>(), &mut events);
        }
        let stopped = stream.is_stopped();
        stream.finish(&mut events);
        prop_assert_eq!(shown(stream.reply()), shown(&whole));
        prop_assert_eq!(stopped, loop_offset(&whole).is_some());
        let told = events.iter().filter(|event| matches!(event, Event::ParseFault(fault) if fault.kind == FaultKind::TextLoop));
        prop_assert_eq!(told.count(), usize::from(stopped));
    }

    #[test]
    fn a_stopped_reply_is_the_reply_up_to_where_the_repetition_was_found(text in replies()) {
        let stopped = parser().parse(&text);
        if loop_offset(&stopped).is_none() {
            return Ok(());
        }
        let end = stopped.spans.last().map_or(0, |(_, Span { end, .. })| *end);
        prop_assert!(end < text.len() || end == text.len());
        let plain = Parser::new(Options::default()).unwrap_or_else(|error| panic!("{error}"));
        let plain = plain.parse(text.get(..end).unwrap_or_default());
        let mut without_loop = stopped.clone();
        without_loop.faults.retain(|fault| fault.kind != FaultKind::TextLoop);
        prop_assert_eq!(shown(&without_loop), shown(&plain));
    }
}
