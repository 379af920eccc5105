//! What only looks like a call is none, in every format.

#![allow(
    clippy::unwrap_used,
    clippy::string_slice,
    reason = "a test fails where it can't go on"
)]

use turnwarden_extract::{Format, Options, Parser, Reply, formats};

fn parser() -> Parser {
    Parser::new(Options::default()).unwrap()
}

fn pinned(format: &Format) -> Parser {
    Parser::new(Options {
        formats: Some(vec![format.label.clone()]),
        ..Options::default()
    })
    .unwrap()
}

fn names(reply: &Reply) -> Vec<(&str, &str)> {
    let calls = reply.tool_calls.iter();
    calls
        .map(|call| (call.name.as_str(), call.arguments.as_str()))
        .collect()
}

#[test]
fn a_call_drafted_in_closed_reasoning_is_no_call() {
    for format in formats() {
        for parser in [parser(), pinned(format)] {
            let text = format!("<think>Perhaps {} or not.</think>Done.", format.example);
            let reply = parser.parse(&text);
            assert_eq!(names(&reply), [], "{text}");
            assert_eq!(reply.text, "Done.", "{text}");
        }
    }
}

#[test]
fn an_example_in_inline_code_is_no_call() {
    for format in formats() {
        if format.example.contains('`') || format.example.contains("\n\n") {
            continue;
        }
        for parser in [parser(), pinned(format)] {
            let text = format!("Write `{}` to call it.", format.example);
            let reply = parser.parse(&text);
            assert_eq!(names(&reply), [], "{text}");
            assert_eq!(reply.text, text);
        }
    }
}

#[test]
fn an_example_in_a_fence_of_another_language_is_no_call() {
    for format in formats() {
        if format.example.contains("```") {
            continue;
        }
        for language in ["text", "xml", "bash"] {
            for parser in [parser(), pinned(format)] {
                let text = format!("So:\n```{language}\n{}\n```\nDone.", format.example);
                let reply = parser.parse(&text);
                assert_eq!(names(&reply), [], "{text}");
                assert_eq!(reply.text, text);
            }
        }
    }
}

#[test]
fn a_reply_cut_off_anywhere_holds_only_calls_of_the_whole() {
    for format in formats() {
        for parser in [parser(), pinned(format)] {
            let whole = parser.parse(&format.example);
            assert!(!whole.tool_calls.is_empty(), "{}", format.example);
            for end in (0..format.example.len()).filter(|end| format.example.is_char_boundary(*end))
            {
                let cut = &format.example[..end];
                let reply = parser.parse(cut);
                assert!(names(&whole).starts_with(&names(&reply)), "{cut}");
            }
        }
    }
}

#[test]
fn json_that_is_no_workflow_is_text_in_prose() {
    let objects = [
        r#"{"name": "f", "arguments": {"a": 1}}"#,
        r#"{"mcp": "f", "args": {"a": 1}}"#,
        r#"{"tool": "f", "next": "x"}"#,
        r#"[{"name": "f", "arguments": {}}]"#,
        r#"{"content": "only this"}"#,
    ];
    for object in objects {
        let text = format!("I got {object} back.");
        let reply = parser().parse(&text);
        assert_eq!(names(&reply), [], "{text}");
        assert_eq!(reply.text, text);
    }
}

#[test]
fn definitions_and_objects_with_a_name_are_text() {
    let objects = [
        r#"{"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}"#,
        r#"{"name": "f", "input_schema": {"type": "object", "properties": {}}}"#,
        r#"{"name": "my-app", "version": "1"}"#,
    ];
    for object in objects {
        for text in [object.to_owned(), format!("```json\n{object}\n```")] {
            let reply = parser().parse(&text);
            assert_eq!(names(&reply), [], "{text}");
            assert_eq!(reply.text, text);
        }
    }
}

#[test]
fn comments_before_the_json_of_a_fence_are_noise() {
    let payloads = [
        r#"{"content": "", "next": [{"mcp": "f", "args": {"a": 1}}]}"#,
        r#"{"name": "f", "arguments": {"a": 1}}"#,
        r#"[{"name": "f", "arguments": {"a": 1}}]"#,
    ];
    for payload in payloads {
        for comment in ["// note\n", "/* a\n b */ ", "# note\n// more <tool_call>\n"] {
            let text = format!("```json\n{comment}{payload}\n```");
            let reply = parser().parse(&text);
            assert_eq!(names(&reply), [("f", r#"{"a":1}"#)], "{text}");
            assert_eq!(reply.text, "", "{text}");
            assert_eq!(reply.repairs.first().map(|repair| repair.offset), Some(8));
        }
    }
    let text = "```json\n// note\n{\"a\": 1}\n```";
    assert_eq!(parser().parse(text).text, text);
}
