//! Hostile replies cost no more for each byte than others: twice the text, twice the work.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a test fails where it can't go on, and its figures are rounded"
)]

use std::collections::BTreeSet;
use std::time::Instant;

use turnwarden_cleanup::{CHANNEL_TOKENS, END_OF_TURN, PREFACES, REASONING, WRAPPERS};
use turnwarden_extract::formats::Place;
use turnwarden_extract::{Event, Options, Parser, formats};

/// The string literals in a declaration as it is printed.
fn literals(declaration: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = declaration;
    while let Some(from) = rest.find('"') {
        let inside = &rest[from + 1..];
        let mut escaped = false;
        let end = inside.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let Some(end) = end else { break };
        texts.push(inside[..end].replace("\\n", "\n").replace("\\\"", "\""));
        rest = &inside[end + 1..];
    }
    texts
}

/// Every text that the declarations hold: markers, keys, labels, tokens.
fn declared() -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    for format in formats() {
        texts.insert(format.example.clone());
        texts.extend(literals(&format!(
            "{:?}",
            (&format.syntaxes, &format.reasoning)
        )));
    }
    texts.extend(literals(&format!(
        "{REASONING:?} {WRAPPERS:?} {PREFACES:?} {CHANNEL_TOKENS:?} {END_OF_TURN:?}"
    )));
    texts.retain(|text| !text.is_empty());
    texts
}

/// The markers that begin a section of calls.
fn openers() -> Vec<String> {
    let mut texts = BTreeSet::new();
    for format in formats() {
        for syntax in &format.syntaxes {
            if let Place::Markers { open, .. } = &syntax.place {
                texts.extend(open.iter().cloned());
            }
        }
    }
    texts.into_iter().collect()
}

/// Each family is a piece that is repeated.
fn families() -> Vec<String> {
    let mut families: Vec<String> = declared().into_iter().collect();
    for marker in families.clone() {
        for behind in [
            "x", "{", "{\"a", "\n", " ", "a(", ":", "<think>", "</think>", "`",
        ] {
            families.push(format!("{marker}{behind}"));
        }
    }
    for pair in openers().windows(2) {
        families.push(pair.concat());
        families.push(format!("{}{{\"a\":{}", pair[0], pair[1]));
    }
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
        "“{",
        "\\\"{“\n",
        ",{“)\\\"",
        "{\"a\"::f(}",
        ",{```“",
        "{\\\"",
        "'{",
        "{`",
        "{```",
        "{“",
        "'[“{",
        "\"x\" 0 {",
        "\"x\" null {",
        "[CALL_ID]x",
        "-1.",
        "{\"a\": 1, \"b\": 0 {",
        "{\"a\": \"b\" \"",
        "{\"a\": [0 {",
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
        let wide = format!(
            "```json\n{{\"name\": \"a\", \"arguments\": {{}}}}{}",
            " ".repeat(32 << 10)
        );
        for prefix in ["", "Some text. ", &wide] {
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

/// How a family is read.
#[derive(Clone, Copy, Debug)]
enum Way {
    Whole,
    Chunks(usize),
}

fn read(parser: &Parser, text: &str, way: Way) {
    let Way::Chunks(length) = way else {
        std::hint::black_box(parser.parse(text));
        return;
    };
    let mut stream = parser.stream();
    let mut events: Vec<Event> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at(rest.ceil_char_boundary(length));
        stream.feed(chunk, &mut events);
        events.clear();
        rest = behind;
    }
    stream.finish(&mut events);
    std::hint::black_box(stream.into_reply());
}

/// Nanoseconds a byte, at best of some runs; infinite for what takes longer than a second.
fn cost(parser: &Parser, piece: &str, length: usize, way: Way, runs: usize) -> f64 {
    let text = piece.repeat(1 + length / piece.len());
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        read(parser, &text, way);
        best = best.min(start.elapsed().as_nanos() as f64 / text.len() as f64);
        if start.elapsed().as_secs() > 0 {
            break;
        }
    }
    best
}

#[test]
#[ignore = "a measurement: run it by hand, in release"]
fn twice_the_text_costs_twice_the_time() {
    let parser = Parser::new(Options::default()).unwrap();
    let families = families();
    println!("{} families", families.len());
    for way in [Way::Whole, Way::Chunks(4 << 10), Way::Chunks(16)] {
        for piece in &families {
            let small = cost(&parser, piece, 8 << 10, way, 3);
            let large = cost(&parser, piece, 64 << 10, way, 2);
            if large / small > 1.5 {
                let (small, large) = (
                    cost(&parser, piece, 32 << 10, way, 5),
                    cost(&parser, piece, 256 << 10, way, 5),
                );
                if large / small > 1.6 {
                    println!("{way:?} {piece:?}: {small:.1} then {large:.1} ns a byte");
                }
            } else if large > 25.0 && matches!(way, Way::Whole) {
                println!("dear: {piece:?}: {large:.1} ns a byte");
            }
        }
    }
}
