//! Formats that write calls as Python or, as Gemma does, with braces.

use super::{Body, BracedCalls, Format, JsonCalls, PythonCalls, Syntax, owned};

fn python() -> Body {
    Body::Python(PythonCalls::default())
}

pub(super) fn all() -> Vec<Format> {
    vec![
        Format::new(
            "pythonic",
            &["Llama 3.2", "Llama 4", "ToolACE", "watt-tool"],
            r#"[search(q="x"), ping()]"#,
        )
        .with(Syntax::whole(python()))
        .with(Syntax::between(
            &["<|python_start|>"],
            &["<|python_end|>"],
            python(),
        )),
        Format::new(
            "pythonic/olmo3",
            &["OLMo 3"],
            "<function_calls>\nping()\nsearch(q=\"x\")\n</function_calls>",
        )
        .with(Syntax::between(
            &["<function_calls>"],
            &["</function_calls>"],
            python(),
        )),
        Format::new(
            "pythonic/lfm2",
            &["LFM2"],
            r#"<|tool_call_start|>[search(q="x")]<|tool_call_end|>Checking."#,
        )
        .with(Syntax::between(
            &["<|tool_call_start|>"],
            &["<|tool_call_end|>"],
            python(),
        ))
        .with(Syntax::between(
            &["<|tool_call_start|>"],
            &["<|tool_call_end|>"],
            Body::Json(JsonCalls::marked()),
        )),
        Format::new(
            "pythonic/gemma3",
            &["Gemma 3"],
            "```tool_code\nprint(search(q=\"x\"))\n```",
        )
        .with(Syntax::fenced(&["tool_code"], python())),
        Format::new(
            "gemma4",
            &["Gemma 4"],
            r#"<|tool_call>call:search{q:<|"|>x<|"|>,limit:3}<tool_call|>"#,
        )
        .with(Syntax::between(
            &["<|tool_call>"],
            &["<tool_call|>"],
            braced(),
        ))
        .ending_with(&["<|tool_response>"]),
        Format::new(
            "functiongemma",
            &["FunctionGemma"],
            "<start_function_call>call:search{q:<escape>x<escape>,limit:3}<end_function_call>",
        )
        .with(Syntax::between(
            &["<start_function_call>"],
            &["<end_function_call>"],
            braced(),
        ))
        .ending_with(&["<start_function_response>"]),
    ]
}

pub(super) fn llama3_json() -> Format {
    let tool = PythonCalls {
        suffix: ".call".to_owned(),
    };
    let (open, close) = (&["<|python_tag|>"], &["<|eom_id|>", "<|eot_id|>"]);
    Format::new(
        "llama3_json",
        &[
            "Llama 3.1",
            "Llama 3.2",
            "Llama 3.3",
            "DeepSeek R1 Distill Llama",
        ],
        r#"{"name": "search", "parameters": {"q": "x"}}"#,
    )
    .with(Syntax::between(
        open,
        close,
        Body::Json(JsonCalls::marked()),
    ))
    .with(Syntax::between(open, close, Body::Python(tool)))
    .with(Syntax::between(
        &["<function="],
        &[],
        Body::Tagged(super::tagged::function_calls()),
    ))
    .with(Syntax::whole(Body::Json(JsonCalls::unmarked())))
}

fn braced() -> Body {
    Body::Braced(BracedCalls {
        prefix: "call:".to_owned(),
        quotes: owned(&["<|\"|>", "<escape>"]),
    })
}
