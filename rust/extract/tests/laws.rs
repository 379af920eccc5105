//! Laws that hold for any reply: it is read to its end, every byte is accounted for, and the way
//! it is cut into chunks changes nothing.

#![allow(clippy::unwrap_used, reason = "a test fails where it can't go on")]

use proptest::prelude::*;
use turnwarden_extract::{Event, FaultKind, Options, Parser, Reply, Tools, formats};

/// Pieces of replies: markers of every format, JSON, fences, quotes, prose.
fn pieces() -> Vec<String> {
    let mut pieces: Vec<String> = formats()
        .iter()
        .map(|format| format.example.clone())
        .collect();
    let markers = [
        "<tool_call>",
        "</tool_call>",
        "<tool_calls>",
        "</tool_calls>",
        "<function=a>",
        "</function>",
        "<parameter=x>",
        "</parameter>",
        "<think>",
        "</think>",
        "[THINK]",
        "[/THINK]",
        "◁think▷",
        "<invoke name=\"a\">",
        "</invoke>",
        "<parameter name=\"x\">",
        "<function_calls>",
        "functools[",
        "</function_calls>",
        "[TOOL_CALLS]",
        "[ARGS]",
        "[CALL_ID]",
        "<|python_tag|>",
        "<|channel|>",
        "<|message|>",
        "<|start|>",
        "<|end|>",
        "<|call|>",
        "analysis",
        "commentary to=functions.a ",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "functions.a:0",
        "]<]minimax[>[",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
        "<tool_sep>",
        "<|open|>call tool=\"a\"<|sep|>",
        "<|close|>call<|sep|>",
        "<start_function_call>",
        "call:a{",
        "<escape>",
        "<|\"|>",
        "<end_function_call>",
        "\nThought: ",
        "\nAction: ",
        "\nAction Input: ",
        "\nObservation: ",
        "\nFinal Answer: ",
        "Here is my thought process:",
        "Here is my response:",
        "<answer>",
        "</answer>",
        "</s>",
        "<|im_end|>",
        "<![CDATA[",
        "]]>",
        "<function name=\"a\">",
        "<param name=\"x\">",
        "</param>",
        "```",
        "```json\n",
        "```tool_call\n",
        "```tool_code\n",
        "```python\n",
        "````",
        "`",
        "``",
        "~~~",
        "\n",
        "\n\n",
        " ",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "'",
        ":",
        ",",
        ";",
        "(",
        ")",
        "\\",
        "//",
        "/*",
        "#",
        "é",
        "\u{feff}",
        "「",
        "a",
        "ping",
        "x=1",
        "null",
        "1e999",
        "{\"name\": \"a\", \"arguments\": {\"x\": 1}}",
        "{\"mcp\": \"a\"}",
        "{\"name\": \"a\", \"arguments\":",
        "{\"content\": \"hi\", \"next\": [",
        "{\"content\": \"",
        "\"next\": [{\"mcp\": \"a\", \"args\": {}}]}",
        "{\"foo\": 1, \"next\": [{\"mcp\": \"a\"}]}",
        "{\"role\": \"assistant\", \"tool_calls\": [",
        "[f(a=1)]",
        "print(f(x='y'))",
        "{\"content\": \"[{\\\"mcp\\\": \\\"a\\\"}]\"}",
    ];
    pieces.extend(markers.iter().map(|marker| (*marker).to_owned()));
    pieces
}

/// What JSON and the marks around it are made of, for mixtures that are nearly calls.
const SCRAPS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "｛",
    "｝",
    "\"",
    "\"",
    "\"\"",
    "'",
    "“",
    "”",
    "\\",
    "\\\"",
    "\\n",
    ":",
    "：",
    ",",
    "，",
    ";",
    "=",
    "+",
    "|",
    "<",
    ">",
    "/",
    "//",
    "/*",
    "*/",
    "#",
    "…",
    " ",
    "\n",
    "\n\n",
    "\u{feff}",
    "`",
    "```",
    "~~~",
    "a",
    "p",
    "q",
    "é",
    "1",
    "-",
    "2.5",
    "null",
    "True",
    "name:",
    "\"name\":",
    "{name:",
    "{\"name\":\"",
    "\"f\"",
    "arguments:",
    "\"arguments\":",
    "\"args\":",
    "\"parameters\":",
    "{}",
    "[]",
    "content:",
    "{content:",
    "{\"content\":\"",
    "\"n\"",
    "\"next\":[",
    "next:",
    "{\"mcp\":\"a\"}",
    "mcp:",
    "\"mcp\":",
    "function:",
    "functionCall:",
    "tool_calls:",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<toolcall>",
    "<function=f>",
    "<parameter=p>",
    "```json\n",
    "```tool_call\n",
    "\n```",
    "```\n",
    "```python\n",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<|im_end|>",
    "</s>",
    "f(",
    "[f(",
    "p=",
    "print(",
];

fn reply_text() -> impl Strategy<Value = String> {
    let comments = ["// note\n", "/* a", "*/"].map(str::to_owned);
    let pieces = [pieces(), comments.to_vec()].concat();
    let markers = proptest::collection::vec(proptest::sample::select(pieces), 0..14)
        .prop_map(|pieces| pieces.concat());
    let scraps = proptest::collection::vec(proptest::sample::select(SCRAPS), 0..20)
        .prop_map(|scraps| scraps.concat());
    prop_oneof![markers, scraps]
}

/// The ways to read a reply that change what its characters mean.
fn options() -> impl Strategy<Value = Options> {
    let tools = r#"[{"name": "f", "parameters": {"type": "object", "properties": {"p": {"type": "string"}}}},
        {"name": "ping", "parameters": {"type": "object", "properties": {}}}]"#;
    let tools = Tools::from_json(tools).unwrap();
    (any::<[bool; 3]>()).prop_map(move |[reasoning_open, calls_in_reasoning, typed]| Options {
        reasoning_open,
        calls_in_reasoning,
        tools: typed.then(|| tools.clone()),
        ..Options::default()
    })
}

/// As many as CI runs, or `LAW_CASES`.
fn cases() -> u32 {
    let cases = std::env::var("LAW_CASES");
    cases.map_or(400, |cases| cases.parse().unwrap())
}

fn shape(reply: &Reply) -> String {
    let call = |call: &turnwarden_extract::ToolCall| {
        let id = if call.id_generated { "" } else { &call.id };
        format!(
            "{id}|{}|{}|{}|{:?}",
            call.name, call.arguments, call.repaired, call.span
        )
    };
    format!(
        "calls {:?}\nincomplete {:?}\ntext {:?}\nreasoning {:?}\nworkflow {:?}\ncleaned {:?}\nformat {:?}\nrepairs {:?}\nfaults {:?}\nspans {:?}",
        reply.tool_calls.iter().map(call).collect::<Vec<_>>(),
        reply.incomplete_calls.iter().map(call).collect::<Vec<_>>(),
        reply.text,
        reply.reasoning,
        reply.workflow,
        reply.cleaned,
        reply.format,
        reply.repairs,
        reply.faults,
        reply.spans,
    )
}

/// The events of a reply tell what it holds in the end, and nothing else.
fn check_events(events: &[Event], reply: &Reply, text: &str) {
    let (mut told, mut reasoning) = (String::new(), String::new());
    let mut faults = Vec::new();
    let mut arguments: Vec<String> = Vec::new();
    for event in events {
        match event {
            Event::ToolCallStarted { index, .. } => {
                assert_eq!(*index, arguments.len(), "{text:?}");
                arguments.push(String::new());
            }
            Event::ToolCallArguments { index, delta } => arguments[*index].push_str(delta),
            Event::TextDelta(delta) => told.push_str(delta),
            Event::TextRetracted { length } => {
                for _ in 0..*length {
                    told.pop();
                }
            }
            Event::ReasoningDelta(delta) => reasoning.push_str(delta),
            Event::ParseFault(fault) => faults.push(fault.clone()),
            Event::ToolCallEnded { index, call } => {
                assert_eq!(arguments[*index], call.arguments, "{text:?}");
                // A call that a closing tag alone makes part of reasoning is told to be no call.
                let drafted = reply
                    .faults
                    .iter()
                    .any(|fault| fault.kind == FaultKind::Draft && fault.offset == call.span.start);
                assert!(
                    reply.tool_calls.iter().any(|made| made.id == call.id) || drafted,
                    "{call:?} of {text:?}"
                );
            }
            Event::ReplyFinished => {}
        }
    }
    assert_eq!(told, reply.text, "text told for {text:?}");
    assert_eq!(
        reasoning,
        reply.reasoning.clone().unwrap_or_default(),
        "{text:?}"
    );
    faults.sort_by_key(|fault| fault.offset);
    assert_eq!(faults, reply.faults, "faults told for {text:?}");
}

fn streamed(parser: &Parser, text: &str, lengths: &[usize]) -> Reply {
    let mut stream = parser.stream();
    let mut events = Vec::new();
    let mut rest = text;
    let mut lengths = lengths.iter().cycle();
    while !rest.is_empty() {
        let mut length = lengths.next().copied().unwrap_or(1).min(rest.len());
        while !rest.is_char_boundary(length) {
            length += 1;
        }
        stream.feed(&rest[..length], &mut events);
        rest = &rest[length..];
    }
    stream.finish(&mut events);
    let reply = stream.into_reply();
    check_events(&events, &reply, text);
    reply
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_is_accounted_for_and_every_split_gives_the_same(
        text in reply_text(),
        lengths in proptest::collection::vec(1_usize..9, 1..5),
        options in options(),
    ) {
        let unbuffered = Options { buffer_arguments: false, ..options.clone() };
        let parser = Parser::new(options).unwrap();
        let reply = parser.parse(&text);
        let mut at = 0;
        for (_, span) in &reply.spans {
            prop_assert_eq!(span.start, at, "{:?} in {:?}", &reply.spans, &text);
            at = span.end;
        }
        prop_assert_eq!(at, text.len(), "{:?} in {:?}", &reply.spans, &text);
        for call in reply.tool_calls.iter().chain(&reply.incomplete_calls) {
            let arguments: Result<serde_json::Value, _> = serde_json::from_str(&call.arguments);
            prop_assert!(arguments.is_ok_and(|value| value.is_object()), "{} in {text:?}", call.arguments);
        }
        let whole = shape(&reply);
        prop_assert_eq!(shape(&streamed(&parser, &text, &[1])), whole.clone(), "{:?}", &text);
        prop_assert_eq!(shape(&streamed(&parser, &text, &lengths)), whole.clone(), "{:?}", &text);
        let parser = Parser::new(unbuffered).unwrap();
        prop_assert_eq!(shape(&streamed(&parser, &text, &lengths)), whole, "{:?}", &text);
    }
}

/// Texts that once came out otherwise in chunks than as a whole.
#[test]
fn texts_that_once_differed_are_the_same_at_every_split() {
    let texts = [
        "\"{\"mcp\": \"f\", \"args\": {<think>",
        "{\"mcp\": \"f\", \"args\": {<think>",
        "<tool_call><think><tool_call></think>",
        "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call></think>",
        "<think>a</think>b<think>c</think>d",
        "{m:t]```\n",
        "{\"content\": \"hi\", \"next\": [\"next\": [{\"mcp\": \"a\", \"args\": {}}]}",
        "{content:\",\"next\":[\"\":",
        ">{content:\",\"next\":[]<",
        "[{name:\",\"arguments\":{] <|im_end|>x",
        "{\"mcp\": \"a\", \"args\": {}}\n<|im_end|><|open|>",
        "{name:\",\"arguments\":{}}\n```\n<end_function_call>",
        "{name:\",\"parameters\":{q:}}\n```\n</atem:function_calls>",
        "d{content:\",\"next\":[{[",
        "{\"content\":\"n\"//\n|",
        "{content:```\"n\"//\n|",
        "[{{name:a\"\"args\":h｝",
        "```tool_call{name:\"\",\"t:\",",
        "{\"name\":\"h\",\"arguments\":{}}\n```{\"o\":1,\"next\":[{\"mcp\":\"a\"}]}\n```",
        "{content:\",\"next\":[<,)<",
        "<function_calls><invoke>\n\n</function_calls>",
        "```tool_call{name:\"o```s\"a",
        "```json{mcp:\"m```p\":",
        "```{mcp:\"a\n```e",
        "<｜tool▁call▁begin｜><｜tool▁sep｜>c```{q:\"h\n```j",
        "```tool_call{mcp:\"}```l",
        "```json{\"\":\"C```j\n\"next\":[{mcp:a",
        "```\no{\"e\":\",\"\n```\n`\n```json{name:\",\"arguments\":{",
        "[TOOL_CALLS][{\"name\":\"r\",[\"\":",
        "[TOOL_CALLS]r[CALL_ID]t o",
        "{t:\"\"t\"\"\",s\\\"\",\"next\":[{mcp:c[{}]}",
        "{\":[{\"\":\"\"}\"next\":[{\"\",\"name\":\",",
        "```tool_call\n{\"name\":\"t\",\"arguments\":{\"a\":1}}\n```\n\u{feff}{\"a\": 1}",
        "q{\"c\":\"\",\"next\":[{\"mcp\":\"a\"}]p:",
        "<|tool_call>call:\nh{",
        "```json{name:\",\"args\":n```\nto=<|message|>",
        "<toolcall>[{\"name\":\"p\",\"\":{}[\"\":",
        "{\"\",\"next\":[{\"mcp\":\"i\",\"\":{\"\":\"\",\"\":\"\"\n}\n}\"\" [\"\":",
        "<tool_call>{\\n\\\"name\\\": \\\"f\\\",\\n\\\"arguments\\\": {\\\"a\\\": \\\"\\\",\\n\\\"b\\\": true\\n}\\n}</tool_call>",
        "{\"role\": \"assistant\", \"tool_calls\": [{\"name\": \"a\", \"arguments\": {\"x\": 1}}\"next\": [{\"mcp\": \"a\", \"args\": {}}]}",
        "</think>{\"foo\": 1, \"next\": [{\"mcp\": \"a\"}]}<answer>",
        "<tool_call>p{a</tool_call>",
        "<function=p>{a</function>",
        "<ifm|tool_call>p{a</ifm|tool_call>",
        "<tool_call>a{</tool_calls>```python",
        "<function=f>{</tool_calls>```python",
        "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>Ok.\n```tool_call\n{\"a\": 1}\n```\nSee ```python\n<tool_call>x\n</tool_call>",
        "{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {}}",
        "{\"name\": \"f\", \"args\": {}} , {\"name\": \"g\", \"args\": {}} ;\n[{\"name\": \"h\", \"args\": {}}]",
        "{\"name\": \"f\", \"args\": {}}; { more}",
        "```\n//\n{name:\",\"arguments\":\"",
        "[{name:\",\"arguments\":{]\n```\n</s>h",
        "]```\n{content:\"",
        "{content:(a",
        "{content:(x)",
        "{\"content\": (\"x\"), \"next\": ([{\"mcp\": \"a\", \"args\": (1)}])",
        "{name:a\"\"arguments\":{}}[{a:k}{functionCall:{name:\"",
        "…{content:p\nn:\",\"next\":[",
        "{q:[/INST]<|tool_call_section_end|>{\"\"]<]minimax[>[<tool_call>",
    ];
    let parser = Parser::new(Options::default()).unwrap();
    for text in texts {
        differs_nowhere(&parser, text);
    }
    let reasoning_open = Options {
        reasoning_open: true,
        ..Options::default()
    };
    let parser = Parser::new(reasoning_open).unwrap();
    for text in ["\n<think>", ">```\n\n<｜tool▁call▁begin｜>h```{"] {
        differs_nowhere(&parser, text);
    }
    let tools = r#"[{"name": "ping", "parameters": {"type": "object", "properties": {}}}]"#;
    let with_tools = Options {
        tools: Some(Tools::from_json(tools).unwrap()),
        ..Options::default()
    };
    let parser = Parser::new(with_tools).unwrap();
    differs_nowhere(
        &parser,
        "{name:h\"\"arguments\":\"\"}\n{name:ping\"\"q\":\"",
    );
}

/// Asserts that a text is read alike at every split, and that its spans account for all of it.
fn differs_nowhere(parser: &Parser, text: &str) {
    let reply = parser.parse(text);
    let mut spans = reply.spans.iter();
    let end = spans.try_fold(0, |at, (_, span)| (at == span.start).then_some(span.end));
    assert_eq!(end, Some(text.len()), "{:?} of {text:?}", reply.spans);
    let whole = shape(&reply);
    assert_eq!(shape(&streamed(parser, text, &[1])), whole, "{text:?}");
    for at in 1..text.len() {
        let split = shape(&streamed(parser, text, &[at]));
        assert_eq!(split, whole, "{text:?} at {at}");
    }
}
