//! The list of all formats, in the order in which they are tried where markers are shared.

use std::sync::{Arc, LazyLock};

use super::{Body, Format, JsonCalls, Syntax};

static FORMATS: LazyLock<Vec<Arc<Format>>> =
    LazyLock::new(|| families().into_iter().map(Arc::new).collect());

/// All formats that are read.
#[must_use]
pub fn formats() -> &'static [Arc<Format>] {
    &FORMATS
}

/// The format with this label.
#[must_use]
pub fn format_named(label: &str) -> Option<&'static Arc<Format>> {
    FORMATS.iter().find(|format| format.label == label)
}

fn families() -> Vec<Format> {
    vec![
        Format::new(
            "workflow_json",
            &[],
            r#"{"content": "On it.", "next": [{"mcp": "search", "args": {"q": "x"}}]}"#,
        )
        .with(Syntax::whole(Body::Workflow)),
        Format::new(
            "hermes",
            &["Hermes", "Qwen2.5", "Qwen3", "Granite 4"],
            "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}\n</tool_call>",
        )
        .with(Syntax::between(
            &["<tool_call>"],
            &["</tool_call>"],
            Body::Json(JsonCalls::marked()),
        )),
    ]
}
