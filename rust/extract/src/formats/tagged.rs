//! Formats with an element for each call and for each argument.

use super::{ArgumentTag, Body, Format, NameAt, Syntax, Tag, TaggedCalls, owned};

/// `<function=NAME><parameter=KEY>value</parameter></function>`
/// `<function=NAME>`, with elements for arguments or their JSON inside.
pub(super) fn function_calls() -> TaggedCalls {
    TaggedCalls {
        call: Tag {
            open: owned(&["<function="]),
            name: NameAt::Inline,
            end: ">".to_owned(),
            close: owned(&["</function>"]),
        },
        argument: ArgumentTag::Keyed(Tag {
            open: owned(&["<parameter="]),
            name: NameAt::Inline,
            end: ">".to_owned(),
            close: owned(&["</parameter>"]),
        }),
        framed: true,
        cdata: false,
    }
}

fn attribute(name: &str) -> NameAt {
    NameAt::Attribute {
        names: owned(&[name]),
        element: None,
    }
}

/// `<invoke name="NAME"><parameter name="KEY">value</parameter></invoke>`, the names of all tags
/// behind `prefix`.
fn invoke_calls(prefix: &str) -> TaggedCalls {
    let tag = |name: &str| Tag {
        open: vec![format!("<{prefix}{name}")],
        name: attribute("name"),
        end: ">".to_owned(),
        close: vec![format!("</{prefix}{name}>")],
    };
    TaggedCalls {
        call: tag("invoke"),
        argument: ArgumentTag::Keyed(tag("parameter")),
        framed: false,
        cdata: false,
    }
}

fn invoke_example(open: &str, close: &str, prefix: &str) -> String {
    format!(
        "{open}\n<{prefix}invoke name=\"search\">\n<{prefix}parameter name=\"q\">x</{prefix}parameter>\n</{prefix}invoke>\n{close}"
    )
}

pub(super) fn all() -> Vec<Format> {
    vec![
        qwen3_coder(),
        seed_oss(),
        deepseek(
            "deepseek_v32",
            &["DeepSeek V3.2", "DeepSeek Chat", "DeepSeek Reasoner"],
            "function_calls",
        ),
        deepseek("deepseek_v4", &["DeepSeek V4"], "tool_calls"),
        minimax_m2(),
        minimax_m3(),
        step3(),
        minicpm5(),
        kimi_k3(),
        anthropic_xml(),
        muse(),
        dots(),
    ]
}

fn qwen3_coder() -> Format {
    let calls = || Body::Tagged(function_calls());
    Format::new(
        "qwen3_coder",
        &[
            "Qwen3-Coder",
            "Qwen3.5",
            "Qwen3.6",
            "Nemotron Nano",
            "Nemotron 3",
            "MiMo",
            "Step 3.5",
        ],
        "<tool_call>\n<function=search>\n<parameter=q>\nx\n</parameter>\n</function>\n</tool_call>",
    )
    .with(Syntax::between(
        &["<tool_call>"],
        &["</tool_call>"],
        calls(),
    ))
    .with(Syntax::between(&["<function="], &["</tool_call>"], calls()))
}

fn seed_oss() -> Format {
    let calls = || Body::Tagged(function_calls());
    let mut format = Format::new(
        "seed_oss",
        &["Seed-OSS"],
        "<seed:tool_call>\n<function=search>\n<parameter=q>x</parameter>\n</function>\n</seed:tool_call>",
    )
    .with(Syntax::between(&["<seed:tool_call>"], &["</seed:tool_call>"], calls()))
    .ending_with(&["<seed:eos>"]);
    format.reasoning = vec![("<seed:think>".to_owned(), "</seed:think>".to_owned())];
    format
}

fn deepseek(label: &str, models: &[&str], section: &str) -> Format {
    let open = format!("<｜DSML｜{section}>");
    let close = format!("</｜DSML｜{section}>");
    let example = invoke_example(&open, &close, "｜DSML｜")
        .replace("name=\"q\"", "name=\"q\" string=\"true\"");
    Format::new(label, models, &example).with(Syntax::between(
        &[open.as_str()],
        &[close.as_str()],
        Body::Tagged(invoke_calls("｜DSML｜")),
    ))
}

fn minimax_m2() -> Format {
    let (open, close) = ("<minimax:tool_call>", "</minimax:tool_call>");
    Format::new(
        "minimax_m2",
        &["MiniMax M2", "MiniMax M2.5"],
        &invoke_example(open, close, ""),
    )
    .with(Syntax::between(
        &[open],
        &[close],
        Body::Tagged(invoke_calls("")),
    ))
}

fn minimax_m3() -> Format {
    let mark = "]<]minimax[>[<";
    let tagged = TaggedCalls {
        call: Tag {
            open: vec![format!("{mark}invoke")],
            name: attribute("name"),
            end: ">".to_owned(),
            close: vec![format!("{mark}/invoke>")],
        },
        argument: ArgumentTag::Element {
            open: mark.to_owned(),
            end: ">".to_owned(),
            close: format!("{mark}/"),
            around: Vec::new(),
        },
        framed: false,
        cdata: false,
    };
    let example = format!(
        "{mark}tool_call>\n{mark}invoke name=\"search\">\n{mark}q>x{mark}/q>\n{mark}/invoke>\n{mark}/tool_call>"
    );
    Format::new("minimax_m3", &["MiniMax M3"], &example).with(Syntax::between(
        &[format!("{mark}tool_call>").as_str()],
        &[format!("{mark}/tool_call>").as_str()],
        Body::Tagged(tagged),
    ))
}

fn step3() -> Format {
    let example = "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"search\"><steptml:parameter name=\"q\">x</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>";
    let mut calls = invoke_calls("steptml:");
    // What Step-3 writes before each call opens it, too.
    calls.call.open.insert(
        0,
        "<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke".to_owned(),
    );
    calls
        .call
        .close
        .insert(0, "</steptml:invoke><｜tool_call_end｜>".to_owned());
    Format::new("step3", &["Step 3"], example).with(Syntax::between(
        &["<｜tool_calls_begin｜>", "<steptml:invoke"],
        &["<｜tool_calls_end｜>"],
        Body::Tagged(calls),
    ))
}

fn minicpm5() -> Format {
    let tag = |name: &str| Tag {
        open: vec![format!("<{name}")],
        name: attribute("name"),
        end: ">".to_owned(),
        close: vec![format!("</{name}>")],
    };
    let calls = TaggedCalls {
        call: tag("function"),
        argument: ArgumentTag::Keyed(tag("param")),
        framed: false,
        cdata: true,
    };
    Format::new(
        "minicpm5",
        &["MiniCPM5"],
        "<function name=\"search\"><param name=\"q\"><![CDATA[a < b]]></param></function>",
    )
    .with(Syntax::between(&["<function"], &[], Body::Tagged(calls)))
}

fn kimi_k3() -> Format {
    let tag = |name: &str, key: &str| Tag {
        open: vec![format!("<|open|>{name}")],
        name: attribute(key),
        end: "<|sep|>".to_owned(),
        close: vec![format!("<|close|>{name}<|sep|>")],
    };
    let calls = TaggedCalls {
        call: tag("call", "tool"),
        argument: ArgumentTag::Keyed(tag("argument", "key")),
        framed: false,
        cdata: false,
    };
    Format::new(
        "kimi_k3",
        &["Kimi K3"],
        "<|open|>tools<|sep|><|open|>call tool=\"search\" index=\"1\"<|sep|><|open|>argument key=\"q\" type=\"string\"<|sep|>x<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
    )
    .with(Syntax::between(
        &["<|open|>tools<|sep|>", "<|open|>call"],
        &["<|close|>tools<|sep|>"],
        Body::Tagged(calls),
    ))
}

fn anthropic_xml() -> Format {
    let (open, close) = ("<function_calls>", "</function_calls>");
    let old = TaggedCalls {
        call: Tag {
            open: owned(&["<invoke>"]),
            name: NameAt::Attribute {
                names: owned(&["name"]),
                element: Some(("<tool_name>".to_owned(), "</tool_name>".to_owned())),
            },
            end: String::new(),
            close: owned(&["</invoke>"]),
        },
        argument: ArgumentTag::Element {
            open: "<".to_owned(),
            end: ">".to_owned(),
            close: "</".to_owned(),
            around: owned(&["<parameters>", "</parameters>"]),
        },
        framed: false,
        cdata: false,
    };
    Format::new(
        "anthropic_xml",
        &["Claude"],
        &invoke_example(open, close, ""),
    )
    .with(Syntax::between(
        &[open],
        &[close],
        Body::Tagged(invoke_calls("")),
    ))
    .with(Syntax::between(&[open], &[close], Body::Tagged(old)))
}

fn muse() -> Format {
    let (open, close) = ("<atem:function_calls>", "</atem:function_calls>");
    Format::new("muse", &["Muse"], &invoke_example(open, close, "atem:")).with(Syntax::between(
        &[open],
        &[close],
        Body::Tagged(invoke_calls("atem:")),
    ))
}

fn dots() -> Format {
    let (open, close) = ("<dots_function_call>", "</dots_function_call>");
    Format::new("dots", &["dots.llm1"], &invoke_example(open, close, "")).with(Syntax::between(
        &[open],
        &[close],
        Body::Tagged(invoke_calls("")),
    ))
}
