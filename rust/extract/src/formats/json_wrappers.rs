//! Formats that put JSON between markers of their own, or use it bare.

use super::{Body, Format, JsonCalls, Syntax, owned};

const HERMES: &str =
    "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}\n</tool_call>";

fn marked(open: &[&str], close: &[&str]) -> Syntax {
    Syntax::between(open, close, Body::Json(JsonCalls::marked()))
}

fn bare() -> Syntax {
    Syntax::whole(Body::Json(JsonCalls::unmarked()))
}

#[allow(clippy::too_many_lines, reason = "a list of declarations")]
pub(super) fn all() -> Vec<Format> {
    let cohere = JsonCalls {
        name: owned(&["tool_name", "name"]),
        arguments: owned(&["parameters", "arguments"]),
        id: owned(&["tool_call_id"]),
        ..JsonCalls::marked()
    };
    let apertus = JsonCalls {
        name_is_key: true,
        ..JsonCalls::marked()
    };
    vec![
        Format::new("hermes", &[
                "Hermes",
                "DeepHermes",
                "Qwen2.5",
                "Qwen3",
                "Qwen Max",
                "Qwen Plus",
                "Qwen Turbo",
                "QwQ",
                "DeepSeek R1 Distill Qwen",
                "DeepSeek R1 0528 Qwen3",
                "SmolLM3",
                "EXAONE 4",
            ], HERMES)
            .with(marked(&["<tool_call>"], &["</tool_call>"]))
            .ending_with(&["[|endofturn|]"]),
        Format::new("granite4", &["Granite 4"], HERMES)
            .with(marked(&["<tool_call>"], &["</tool_call>"])),
        Format::new("ernie45", &["ERNIE 4.5"], HERMES)
            .with(marked(&["<tool_call>"], &["</tool_call>"])),
        Format::new("longcat", &["LongCat"], &HERMES.replace("tool_call", "longcat_tool_call"))
            .with(marked(&["<longcat_tool_call>"], &["</longcat_tool_call>"])),
        Format::new(
            "granite",
            &["Granite 3"],
            r#"<|tool_call|>[{"name": "search", "arguments": {"q": "x"}}]"#,
        )
        .with(marked(&["<|tool_call|>"], &[]))
        .with(marked(&["<tool_call>"], &["</tool_call>"])),
        Format::new(
            "granite_20b",
            &["Granite 20B FunctionCalling"],
            r#"<function_call> {"name": "search", "arguments": {"q": "x"}}"#,
        )
        .with(marked(&["<function_call>"], &["</function_call>"])),
        Format::new(
            "internlm",
            &["InternLM 2", "InternLM 2.5", "InternLM 3", "Intern-S1"],
            r#"Sure.<|action_start|><|plugin|>{"name": "search", "parameters": {"q": "x"}}<|action_end|>"#,
        )
        .with(marked(
            &["<|action_start|><|plugin|>", "<|action_start|> <|plugin|>"],
            &["<|action_end|>"],
        )),
        Format::new(
            "jamba",
            &["Jamba"],
            r#"<tool_calls>[{"name": "search", "arguments": {"q": "x"}}]</tool_calls>"#,
        )
        .with(marked(&["<tool_calls>"], &["</tool_calls>"])),
        Format::new(
            "hunyuan_a13b",
            &["Hunyuan A13B", "Hunyuan 7B", "Hunyuan 4B", "Hunyuan 1.8B", "Hunyuan 0.5B"],
            r#"<tool_calls>[{"name": "search", "arguments": {"q": "x"}}]</tool_calls>"#,
        )
        .with(marked(&["<tool_calls>"], &["</tool_calls>"])),
        Format::new(
            "minimax_m1",
            &["MiniMax M1", "MiniMax Text"],
            "<tool_calls>\n{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_calls>",
        )
        .with(marked(&["<tool_calls>"], &["</tool_calls>"])),
        Format::new(
            "phi4_mini",
            &["Phi-4-mini"],
            r#"functools[{"name": "search", "arguments": {"q": "x"}}]"#,
        )
        .with(marked(&["functools["], &[]))
        .with(marked(&["<|tool_call|>functools[", "<|tool_call|>"], &["<|/tool_call|>"])),
        Format::new(
            "xlam",
            &["xLAM", "Hammer"],
            r#"[{"name": "search", "arguments": {"q": "x"}}, {"name": "ping", "arguments": {}}]"#,
        )
        .with(bare())
        .with(Syntax::fenced(&["", "json"], Body::Json(JsonCalls::unmarked()))),
        Format::new(
            "nemotron_deci",
            &[
                "Llama Nemotron",
                "Nemotron Ultra",
                "Nemotron Super 49B",
                "Nemotron Nano 9B",
                "Nemotron Nano 12B",
            ],
            r#"<TOOLCALL>[{"name": "search", "arguments": {"q": "x"}}]</TOOLCALL>"#,
        )
        .with(marked(&["<TOOLCALL>"], &["</TOOLCALL>"]))
        .with(bare()),
        Format::new(
            "apertus",
            &["Apertus"],
            r#"Ok. <|tools_prefix|>[{"search": {"q": "x"}}, {"ping": {}}]<|tools_suffix|>"#,
        )
        .with(Syntax::between(&["<|tools_prefix|>"], &["<|tools_suffix|>"], Body::Json(apertus)))
        .ending_with(&["<|assistant_end|>"]),
        Format::new(
            "cohere_command",
            &["Command A", "Command R7B"],
            r#"<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "search", "parameters": {"q": "x"}}]<|END_ACTION|>"#,
        )
        .with(Syntax::between(
            &["<|START_ACTION|>"],
            &["<|END_ACTION|>"],
            Body::Json(cohere.clone()),
        )),
        Format::new(
            "gigachat3",
            &["GigaChat 3", "GigaChat"],
            r#"Ok.<|function_call|>{"name": "search", "arguments": {"q": "x"}}</s>"#,
        )
        .with(marked(&["<|function_call|>", "function call<|role_sep|>"], &[]))
        .ending_with(&["<|message_sep|>"]),
        cohere_command_r(cohere),
    ]
}

fn cohere_command_r(calls: JsonCalls) -> Format {
    Format::new(
        "cohere_command_r",
        &["Command R"],
        "Action: ```json\n[{\"tool_name\": \"search\", \"parameters\": {\"q\": \"x\"}}]\n```",
    )
    .with(Syntax::between(&["\nAction:"], &[], Body::Json(calls)))
}
