//! Hostile replies cost no more for each byte than others: twice the text, twice the work.

use std::time::Instant;

use turnwarden_extract::{Options, Parser, formats};

/// Each family is a piece that is repeated.
fn families() -> Vec<String> {
    let mut families: Vec<String> = formats()
        .iter()
        .map(|format| format.example.clone())
        .collect();
    let pieces = [
        "<",
        "{",
        "[",
        "(",
        "\"",
        "'",
        "`",
        "\\",
        ",",
        ":",
        "/*",
        "//",
        "#",
        "<think>",
        "</think>",
        "```",
        "```json\n",
        "```json\n{\"",
        "```python\n",
        "```\n",
        "``` ",
        "`a",
        "{\"a\":",
        "{\"a\" x ",
        "{\"content\":\"",
        "{\"next\":[",
        "[{\"mcp\":",
        "<tool_call>",
        "</tool_call>",
        "<tool_call>{\"",
        "<tool_call>x",
        "<function=a><parameter=b>",
        "<parameter=b>",
        "</parameter>",
        "<invoke name=\"",
        "<function_calls>",
        "[TOOL_CALLS]",
        "[TOOL_CALLS]a{",
        "<|channel|>",
        "<|message|>",
        "<|start|>a",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>f<｜tool▁sep｜>",
        "<|tool_call>call:a{",
        "</s>",
        "</s> ",
        "\nAction: a\n",
        "\nThought: ",
        "\nAction: a\nAction Input: ",
        "[f(",
        "[f(a='",
        "a(",
        " ",
        "\n",
        "<tool_call>a<arg_key>",
        "<arg_value>",
        "]<]minimax[>[<invoke name=\"a\">",
        "<tool>a</tool>",
        "functools[",
        "<function name=\"a\"><param name=\"x\"><![CDATA[",
        "◁think▷",
        "{tool} ",
        "<|open|>call",
        "<think>`",
        "~~~",
        "{\"content\":\"a\"} ",
    ];
    families.extend(pieces.iter().map(|piece| (*piece).to_owned()));
    families
}

#[test]
fn hostile_replies_are_read_to_their_end() {
    let parser = Parser::new(Options::default()).unwrap();
    for piece in families() {
        for prefix in ["", "Some text. "] {
            let text = format!("{prefix}{}", piece.repeat(1 + (32 << 10) / piece.len()));
            let reply = parser.parse(&text);
            assert_eq!(
                reply.spans.last().map(|(_, span)| span.end),
                Some(text.len()),
                "{piece:?}"
            );
        }
    }
}

#[test]
#[ignore = "a measurement: run it by hand, in release"]
fn twice_the_text_costs_twice_the_time() {
    let parser = Parser::new(Options::default()).unwrap();
    for piece in families() {
        let time = |length: usize| {
            let text = piece.repeat(1 + length / piece.len());
            let runs = (0..3).map(|_| {
                let start = Instant::now();
                std::hint::black_box(parser.parse(&text));
                start.elapsed()
            });
            runs.min().unwrap().as_nanos() as f64 / text.len() as f64
        };
        let (small, large) = (time(64 << 10), time(256 << 10));
        if large > 20.0 || large / small > 1.4 {
            println!("{piece:?}: {small:.1} then {large:.1} ns a byte");
        }
    }
}
