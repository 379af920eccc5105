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
    let mut all = vec![
        Format::new(
            "workflow_json",
            &[],
            r#"{"content": "On it.", "next": [{"mcp": "search", "args": {"q": "x"}}]}"#,
        )
        .with(Syntax::whole(Body::Workflow))
        .with(Syntax::whole(Body::Json(JsonCalls::unmarked()))),
        Format::new(
            "fence_tool_call",
            &[],
            "Ok.\n```tool_call\n{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}\n```",
        )
        .with(Syntax::fenced(
            &["tool_call"],
            Body::Json(JsonCalls::marked()),
        )),
        Format::new(
            "fence_json",
            &[],
            "```json\n{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}\n```",
        )
        .with(Syntax::fenced(
            &["", "json", "jsonc", "json5"],
            Body::Json(JsonCalls::unmarked()),
        )),
    ];
    all.extend(super::json_wrappers::all());
    all.extend(super::python::all());
    all.extend(super::tagged::all());
    // Behind the formats that share `<function=`: with those, more may follow.
    all.push(super::python::llama3_json());
    all.extend(super::named::all());
    all.extend(super::key_value::all());
    all.extend(super::transcripts::all());
    all
}
