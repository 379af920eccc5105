//! Formats that are no markup around calls: channels, `ReAct`, native messages.

use super::{Body, ChannelCalls, Format, Place, ReactCalls, Syntax};

fn syntax(place: Place, body: Body) -> Syntax {
    Syntax { place, body }
}

pub(super) fn all() -> Vec<Format> {
    let mut all = vec![harmony(), react()];
    for (label, models, example) in NATIVE {
        all.push(Format::new(label, models, example).with(syntax(Place::Whole, Body::Native)));
    }
    all
}

/// Models behind the APIs of `OpenAI` and those that speak like them.
const OPENAI: &[&str] = &[
    "GPT-3.5", "GPT-4", "GPT-4o", "GPT-5", "ChatGPT", "o1", "o3", "o4", "Codex", "Grok",
];

const NATIVE: &[(&str, &[&str], &str)] = &[
    (
        "openai_chat_json",
        OPENAI,
        r#"{"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{\"q\": \"x\"}"}}]}"#,
    ),
    (
        "openai_responses",
        OPENAI,
        r#"{"output": [{"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{\"q\": \"x\"}"}]}"#,
    ),
    (
        "anthropic_blocks",
        &["Claude"],
        r#"{"content": [{"type": "text", "text": "Ok."}, {"type": "tool_use", "id": "tu_1", "name": "search", "input": {"q": "x"}}]}"#,
    ),
    (
        "gemini_parts",
        &["Gemini"],
        r#"{"candidates": [{"content": {"parts": [{"text": "Ok."}, {"functionCall": {"name": "search", "args": {"q": "x"}}}]}}]}"#,
    ),
];

fn harmony() -> Format {
    let calls = ChannelCalls {
        prefix: "functions.".to_owned(),
    };
    Format::new(
        "harmony",
        &["gpt-oss"],
        r#"<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>commentary to=functions.search <|constrain|>json<|message|>{"q": "x"}<|call|>"#,
    )
    .with(syntax(Place::Whole, Body::Channels(calls)))
}

fn react() -> Format {
    Format::new(
        "react",
        &["LangChain ReAct agent", "LlamaIndex ReAct agent"],
        "Thought: look it up\nAction: search\nAction Input: {\"q\": \"x\"}",
    )
    .with(syntax(Place::Whole, Body::React(ReactCalls::default())))
}
