//! Formats with keys and values in elements of their own.

use super::{Body, Format, KeyValueCalls, Syntax, owned};

/// GLM ends its turn with the role that speaks next.
const GLM_ENDS: &[&str] = &["<|observation|>", "<|user|>"];

fn pair(open: &str, close: &str) -> (String, String) {
    (open.to_owned(), close.to_owned())
}

fn arg_pairs() -> KeyValueCalls {
    KeyValueCalls {
        open: Vec::new(),
        name_end: owned(&["<tool_sep>"]),
        key: pair("<arg_key>", "</arg_key>"),
        kind: None,
        value: pair("<arg_value>", "</arg_value>"),
        close: Vec::new(),
    }
}

pub(super) fn all() -> Vec<Format> {
    let section = || {
        Syntax::between(
            &["<tool_call>"],
            &["</tool_call>"],
            Body::KeyValue(arg_pairs()),
        )
    };
    let hunyuan = KeyValueCalls {
        open: owned(&["<tool_call>"]),
        close: owned(&["</tool_call>"]),
        ..arg_pairs()
    };
    let ifm = KeyValueCalls {
        open: owned(&["<ifm|tool_call>"]),
        name_end: owned(&["<ifm|tool_sep>"]),
        key: pair("<ifm|arg_key>", "</ifm|arg_key>"),
        kind: Some(pair("<ifm|arg_type>", "</ifm|arg_type>")),
        value: pair("<ifm|arg_value>", "</ifm|arg_value>"),
        close: owned(&["</ifm|tool_call>"]),
    };
    vec![
        Format::new(
            "glm45",
            &["GLM 4.5", "GLM 4.6", "Poolside", "Laguna"],
            "<tool_call>search\n<arg_key>q</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
        )
        .with(section())
        .ending_with(GLM_ENDS),
        Format::new(
            "glm47",
            &["GLM 4.7", "GLM 5"],
            "<tool_call>search<arg_key>q</arg_key><arg_value>x</arg_value></tool_call>",
        )
        .with(section())
        .ending_with(GLM_ENDS),
        Format::new(
            "hy_v3",
            &["Hunyuan 3", "HY 3", "HY-V3"],
            "<tool_calls><tool_call>search<tool_sep><arg_key>q</arg_key><arg_value>x</arg_value></tool_call></tool_calls>",
        )
        .with(Syntax::between(&["<tool_calls>"], &["</tool_calls>"], Body::KeyValue(hunyuan)))
        .with(section()),
        Format::new(
            "ifm",
            &["K2 Think"],
            "<ifm|tool_calls><ifm|tool_call>search<ifm|arg_key>q</ifm|arg_key><ifm|arg_value>x</ifm|arg_value></ifm|tool_call></ifm|tool_calls>",
        )
        .with(Syntax::between(
            &["<ifm|tool_calls>", "<ifm|tool_call>"],
            &["</ifm|tool_calls>"],
            Body::KeyValue(ifm),
        )),
        Format::new(
            "iquest",
            &["IQuest Coder"],
            "<iquest_tool_call>search<arg_key>q</arg_key><arg_value>x</arg_value></iquest_tool_call>",
        )
        .with(Syntax::between(
            &["<iquest_tool_call>"],
            &["</iquest_tool_call>"],
            Body::KeyValue(arg_pairs()),
        )),
    ]
}
