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

const NATIVE: &[(&str, &[&str], &str)] = &[
    (
        "openai_chat_json",
        &["OpenAI chat completions"],
        r#"{"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{\"q\": \"x\"}"}}]}"#,
    ),
    (
        "openai_responses",
        &["OpenAI Responses"],
        r#"{"output": [{"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{\"q\": \"x\"}"}]}"#,
    ),
    (
        "anthropic_blocks",
        &["Anthropic Messages"],
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
