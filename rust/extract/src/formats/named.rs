//! Formats with a name, markers, and a JSON object of arguments.

use super::{Body, Format, JsonCalls, NamedCalls, Part, Syntax, owned};

fn parts(parts: &[(&str, Part)]) -> Vec<(String, Part)> {
    parts
        .iter()
        .map(|(marker, part)| ((*marker).to_owned(), *part))
        .collect()
}

pub(super) fn all() -> Vec<Format> {
    vec![
        mistral(),
        deepseek(
            "deepseek_v3",
            &["DeepSeek V3", "DeepSeek Chat V3", "DeepSeek R1"],
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{\"q\": \"x\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ),
        deepseek(
            "deepseek_v31",
            &["DeepSeek V3.1", "DeepSeek Chat V3.1", "DeepSeek V3.2 Exp"],
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>search<｜tool▁sep｜>{\"q\": \"x\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ),
        kimi_k2(),
        plamo(),
        langchain_xml(),
    ]
}

fn mistral() -> Format {
    let named = NamedCalls {
        parts: parts(&[("[CALL_ID]", Part::Id), ("[ARGS]", Part::Arguments)]),
        ..NamedCalls::default()
    };
    Format::new(
        "mistral",
        &[
            "Mistral",
            "Mixtral",
            "Ministral",
            "Devstral",
            "Magistral",
            "Codestral",
            "Pixtral",
            "Voxtral",
        ],
        r#"[TOOL_CALLS] [{"name": "search", "arguments": {"q": "x"}}]"#,
    )
    .with(Syntax::between(
        &["[TOOL_CALLS]"],
        &["[/TOOL_CALLS]"],
        Body::Json(JsonCalls::marked()),
    ))
    .with(Syntax::between(
        &["[TOOL_CALLS]"],
        &["[/TOOL_CALLS]"],
        Body::Named(named),
    ))
}

fn deepseek(label: &str, models: &[&str], example: &str) -> Format {
    let named = NamedCalls {
        open: owned(&["<｜tool▁call▁begin｜>"]),
        parts: parts(&[("<｜tool▁sep｜>", Part::Name)]),
        close: owned(&["<｜tool▁call▁end｜>"]),
        ..NamedCalls::default()
    };
    Format::new(label, models, example).with(Syntax::between(
        &["<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"],
        &["<｜tool▁calls▁end｜>"],
        Body::Named(named),
    ))
}

fn kimi_k2() -> Format {
    let named = NamedCalls {
        open: owned(&["<|tool_call_begin|>"]),
        parts: parts(&[("<|tool_call_argument_begin|>", Part::Arguments)]),
        close: owned(&["<|tool_call_end|>"]),
        prefix: "functions.".to_owned(),
        indexed: true,
    };
    Format::new(
        "kimi_k2",
        &["Kimi K2", "Kimi K2 Thinking", "Kimi K2.5", "Kimi Linear"],
        r#"<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{"q": "x"}<|tool_call_end|><|tool_calls_section_end|>"#,
    )
    .with(Syntax::between(
        &["<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_call_begin|>"],
        &["<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
        Body::Named(named),
    ))
}

fn plamo() -> Format {
    let named = NamedCalls {
        open: owned(&["<|plamo:begin_tool_request:plamo|>"]),
        parts: parts(&[
            ("<|plamo:begin_tool_name:plamo|>", Part::Name),
            ("<|plamo:end_tool_name:plamo|>", Part::Ignored),
            ("<|plamo:begin_tool_arguments:plamo|>", Part::Ignored),
            ("<|plamo:constrain|>", Part::Ignored),
            ("<|plamo:msg|>", Part::Arguments),
        ]),
        close: owned(&[
            "<|plamo:end_tool_arguments:plamo|>",
            "<|plamo:end_tool_request:plamo|>",
        ]),
        ..NamedCalls::default()
    };
    Format::new(
        "plamo",
        &["PLaMo 3"],
        r#"<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>search<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:msg|>{"q": "x"}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>"#,
    )
    .with(Syntax::between(
        &["<|plamo:begin_tool_requests:plamo|>", "<|plamo:begin_tool_request:plamo|>"],
        &["<|plamo:end_tool_requests:plamo|>"],
        Body::Named(named),
    ))
}

fn langchain_xml() -> Format {
    let named = NamedCalls {
        open: owned(&["<tool>"]),
        parts: parts(&[("</tool>", Part::Ignored), ("<tool_input>", Part::Input)]),
        close: owned(&["</tool_input>"]),
        ..NamedCalls::default()
    };
    Format::new(
        "langchain_xml",
        &["LangChain XML agent"],
        "<tool>search</tool><tool_input>tides</tool_input>",
    )
    .with(Syntax::between(&["<tool>"], &[], Body::Named(named)))
}
