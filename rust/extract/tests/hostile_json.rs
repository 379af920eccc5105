//! Hostile JSON costs no more for each byte than other JSON: whole and in chunks, healed as a
//! document and read as one value.

use std::hint::black_box;
use std::time::Instant;

use turnwarden_extract::json::{Closer, Mode, Reader, ReaderOptions};

/// What a text begins with, and the piece that is repeated behind it.
const FAMILIES: [(&str, &str); 93] = [
    ("", "\""),
    ("{\"a\": \"", "\""),
    ("{\"a\": \"", "\" "),
    ("{\"a\": \"", "a\"b "),
    ("{\"a\": \"", "\","),
    ("[\"", "\",\"a "),
    ("{\"a\": \"", "one, \"b\": \""),
    ("{\"", "\": \""),
    ("{\"", "\":"),
    ("{\"", "a: 1, \""),
    ("", "{"),
    ("", "["),
    ("", "("),
    ("", "}"),
    ("", "]"),
    ("", "}])"),
    ("[{\"a\": \"", "\"}] "),
    ("[", "{\"a\":1]"),
    ("{\"a\":", "{\"a\":"),
    ("", "[{\"a\":["),
    ("[", ","),
    ("{", ","),
    ("{", ":"),
    ("[", ":"),
    ("[", ";"),
    ("{\"a\": \"", "\\"),
    ("[", "\\"),
    ("{\"a\": \"", "\\q"),
    ("{\"a\": \"", "C:\\Users\\q "),
    ("{\"a\": \"\\\\ ", "\\q"),
    ("{\"a\": \"\\\\server", "\\\\x"),
    ("[\"", "C:\\d\",\""),
    ("{\"a\": \"", "\\n"),
    ("{\"a\": \"", "\\u00"),
    ("{\"a\": \"", "\\u00e9"),
    ("{\"a\": \"", "\\ud83d"),
    ("{\"a\": \"x", "\"\\'"),
    ("{'a': 'x", "'\\\""),
    ("[", "/*"),
    ("", "/*"),
    ("[", "//"),
    ("[", "//\n"),
    ("[", "#"),
    ("[", "# \n"),
    ("[", "/"),
    ("[\u{201c}", "\u{201c} "),
    ("[", "\u{201c}a\u{201d}, "),
    ("{\"a\": \"x", "\", \u{300c}"),
    ("{\"a\": ", "\u{ab}"),
    ("['", "it's "),
    ("['", "' '"),
    ("{'a': '", "', "),
    ("[", "`"),
    ("", "```"),
    ("", "`"),
    ("", "```json\n{\"a\": \"x\n```\n"),
    ("", "~~~\n"),
    ("{\"a\": ", "ab "),
    ("{\"a\": ", "ab, "),
    ("{\"a\": ", "ab\n"),
    ("{\"a\": ", "ab\" "),
    ("{\"a\": ", "a("),
    ("{\"a\": 1", "1"),
    ("{\"a\": ", "1_"),
    ("{\"a\": 1", "1;"),
    ("{\"a\": a", "1(;"),
    ("{\"a\": 1", "1//"),
    ("[", "1,"),
    ("[", "1 "),
    ("[", "True None "),
    ("{", "True:None,"),
    ("[\"a\"", " + \"b\""),
    ("\"a\"", " + \"b\""),
    ("", "{\"a\":1}\n"),
    ("{\"a\":1}", ",\"a\":1}"),
    ("", "{\"a\",\"b\"}"),
    ("{\\\"a\\\": \\\"", "\\\\\\\" "),
    ("", "\\\""),
    ("", "{\\\"a\\\": 1}"),
    ("[", "."),
    ("[1", ", ..."),
    ("[", "\u{2026}"),
    ("x", "{a "),
    ("x", "{\"a\" "),
    ("x", "{'"),
    ("", "[(1)] {\"a\" x "),
    ("", "<think>"),
    ("", "</think>"),
    ("", "</"),
    ("[", " "),
    ("[\"", "\u{1}"),
    ("[", "(1),"),
    ("[", "Set(\"a\" "),
];

fn text(family: (&str, &str), length: usize) -> String {
    let (prefix, piece) = family;
    let text = format!("{prefix}{}", piece.repeat(1 + length / piece.len()));
    format!("{text}{}", ")".repeat(usize::from(piece.contains("Set("))))
}

fn options(mode: Mode) -> ReaderOptions {
    let closers: Vec<Closer> = match mode {
        Mode::Document => Vec::new(),
        Mode::Value => vec![
            Closer::anywhere("</tool_call>"),
            Closer::at_line_start("```"),
        ],
    };
    ReaderOptions {
        mode,
        closers: closers.into(),
        ..ReaderOptions::default()
    }
}

/// Reads the text in chunks of about this many bytes.
fn read(text: &str, mode: Mode, chunk: usize) -> Reader {
    let mut reader = Reader::new(options(mode), 0);
    let mut end = 0;
    while end < text.len() {
        end = text.len().min(end.saturating_add(chunk));
        while !text.is_char_boundary(end) {
            end += 1;
        }
        let _ = black_box(reader.read(&text[..end], end == text.len()));
    }
    reader
}

#[test]
fn hostile_texts_are_read_alike_whole_and_in_chunks() {
    for family in FAMILIES {
        for mode in [Mode::Document, Mode::Value] {
            let text = text(family, 3000);
            let whole = read(&text, mode, usize::MAX);
            for chunk in [16, 500] {
                let pieces = read(&text, mode, chunk);
                assert_eq!(pieces.output(), whole.output(), "{family:?}");
            }
        }
    }
}

/// Most bytes may be looked at a few times, none for each byte of the rest.
const WORK_A_BYTE: usize = 24;

#[test]
fn the_work_of_hostile_texts_is_bounded_for_each_byte() {
    for family in FAMILIES {
        for mode in [Mode::Document, Mode::Value] {
            for chunk in [usize::MAX, 16] {
                let text = text(family, 40_000);
                let work = read(&text, mode, chunk).work();
                assert!(
                    work < WORK_A_BYTE * text.len(),
                    "{family:?} in {mode:?}, chunks of {chunk}: {} a byte",
                    work / text.len()
                );
            }
        }
    }
}

#[test]
#[ignore = "a measurement: run it by hand, in release"]
fn hostile_json_costs_the_same_for_each_byte() {
    let kilobytes = std::env::var("HOSTILE_KB").map_or(1024, |size| size.parse().unwrap());
    for family in FAMILIES {
        for mode in [Mode::Document, Mode::Value] {
            for chunk in [usize::MAX, 4096, 16] {
                let time = |length: usize| {
                    let text = text(family, length);
                    let runs = (0..2).map(|_| {
                        let start = Instant::now();
                        black_box(read(&text, mode, chunk));
                        start.elapsed()
                    });
                    runs.min().unwrap().as_secs_f64() * 1e9
                        / f64::from(u32::try_from(text.len()).unwrap())
                };
                let small = time(64 << 10);
                let large = if small < 200.0 {
                    time(kilobytes << 10)
                } else {
                    small
                };
                let bad = large > 20.0 || large > 2.3 * small;
                let mark = if bad { "BAD" } else { "ok " };
                println!("{mark} {mode:?} {chunk:>20} {small:6.1} {large:6.1} {family:?}");
            }
        }
    }
}
