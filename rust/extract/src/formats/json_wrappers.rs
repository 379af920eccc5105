//! Formats that put JSON between markers of their own, or use it bare.

use super::{Body, Format, JsonCalls, Syntax};

fn marked(open: &[&str], close: &[&str]) -> Syntax {
    Syntax::between(open, close, Body::Json(JsonCalls::marked()))
}

pub(super) fn all() -> Vec<Format> {
    vec![
        Format::new(
            "hermes",
            &["Hermes", "Qwen2.5", "Qwen3"],
            "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}\n</tool_call>",
        )
        .with(marked(&["<tool_call>"], &["</tool_call>"])),
        Format::new(
            "granite4",
            &["Granite 4"],
            "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}\n</tool_call>",
        )
        .with(marked(&["<tool_call>"], &["</tool_call>"])),
        Format::new(
            "llama3_json",
            &["Llama 3.1", "Llama 3.2", "Llama 3.3"],
            r#"{"name": "search", "parameters": {"q": "x"}}"#,
        )
        .with(marked(&["<|python_tag|>"], &["<|eom_id|>", "<|eot_id|>"]))
        .with(Syntax::whole(Body::Json(JsonCalls::unmarked()))),
        Format::new(
            "xlam",
            &["xLAM"],
            r#"[{"name": "search", "arguments": {"q": "x"}}, {"name": "ping", "arguments": {}}]"#,
        )
        .with(Syntax::whole(Body::Json(JsonCalls::unmarked())))
        .with(Syntax::fenced(
            &["", "json"],
            Body::Json(JsonCalls::unmarked()),
        )),
        Format::new(
            "mistral",
            &["Mistral", "Ministral", "Devstral", "Magistral"],
            r#"[TOOL_CALLS] [{"name": "search", "arguments": {"q": "x"}}]"#,
        )
        .with(marked(&["[TOOL_CALLS]"], &[])),
    ]
}
