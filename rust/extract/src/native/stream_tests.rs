//! Streams of the four dialects, with what servers do to them, down to pieces and calls.

use proptest::prelude::*;

use super::dialect::Reader;
use super::json_view::Tape;
use super::message::{Arguments, Collector, Message};

/// What a stream of deltas, each as JSON, says.
fn stream(deltas: &[impl AsRef<str>]) -> Message {
    let mut reader = Reader::default();
    let mut collector = Collector::new(usize::MAX);
    for delta in deltas {
        let tape = Tape::read(delta.as_ref()).unwrap_or_else(|| panic!("{}", delta.as_ref()));
        reader
            .delta(&tape.root(), &mut collector)
            .unwrap_or_else(|_| panic!("no delta: {}", delta.as_ref()));
    }
    let format = reader.dialect().map_or("none", |dialect| dialect.label());
    collector.into_message(format)
}

/// A stream of `tool_calls` entries, one list a chunk.
fn chat(lists: &[&str]) -> Vec<String> {
    let chunk = |list: &&str| {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":{list}}},"finish_reason":null}}]}}"#
        )
    };
    lists.iter().map(chunk).collect()
}

/// The calls as `id name arguments`, with `-` for what is missing.
fn calls(message: &Message) -> Vec<String> {
    let part = |part: &Option<String>| part.clone().unwrap_or_else(|| "-".to_owned());
    let line = |call: &super::message::Call| {
        let arguments = match &call.arguments {
            Arguments::Text(text) | Arguments::Json(text) | Arguments::Input(text) => text,
            Arguments::Refused(sentence) => sentence,
        };
        format!("{} {} {}", part(&call.id), part(&call.name), arguments)
    };
    message.calls.iter().map(line).collect()
}

fn chat_calls(lists: &[&str]) -> Vec<String> {
    calls(&stream(&chat(lists)))
}

#[test]
fn fragments_are_joined_by_index_also_when_they_interleave() {
    assert_eq!(
        chat_calls(&[
            r#"[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]"#,
            r#"[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}]"#,
            r#"[{"index":0,"function":{"arguments":"{\"x\":"}},{"index":1,"function":{"arguments":"{\"y\":"}}]"#,
            r#"[{"index":1,"id":null,"function":{"name":null,"arguments":"2}"}}]"#,
            r#"[{"index":0,"function":{"arguments":"1}"}}]"#,
        ]),
        [r#"a f {"x":1}"#, r#"b g {"y":2}"#]
    );
}

#[test]
fn ids_and_names_that_are_repeated_on_each_delta_make_one_call() {
    for id in [r#""id":"a","#, ""] {
        let list = |arguments: &str| {
            format!(r#"[{{"index":0,{id}"function":{{"name":"f","arguments":"{arguments}"}}}}]"#)
        };
        let lists = ["", r#"{\"x\":"#, r#"{\"y\":1"#, "}}", ""].map(list);
        let lists: Vec<&str> = lists.iter().map(String::as_str).collect();
        let id = if id.is_empty() { "-" } else { "a" };
        assert_eq!(chat_calls(&lists), [format!(r#"{id} f {{"x":{{"y":1}}}}"#)]);
    }
}

#[test]
fn another_id_on_later_deltas_makes_no_other_call() {
    assert_eq!(
        chat_calls(&[
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]"#,
            r#"[{"index":0,"id":"b","function":{"arguments":"{\"x\":"}}]"#,
            r#"[{"index":0,"id":"b","function":{"arguments":"{}}"}}]"#,
            r#"[{"index":0,"id":"b","function":{"arguments":""}}]"#,
        ]),
        [r#"a f {"x":{}}"#]
    );
}

#[test]
fn calls_without_an_index_are_told_by_id_or_name() {
    assert_eq!(
        chat_calls(&[
            r#"[{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]"#,
            r#"[{"function":{"arguments":"1}"}}]"#,
            r#"[{"id":"b","function":{"name":"f","arguments":"{}"}},{"id":"c","function":{"name":"g","arguments":"{}"}}]"#,
            r#"[{"function":{"name":"h","arguments":"{\"z\":1}"}}]"#,
            r#"[{"function":{"name":"h","arguments":"{\"z\":2}"}}]"#,
            r#"[{"function":{"name":"i"}}]"#,
            r#"[{"function":{"name":"j"}}]"#,
        ]),
        [
            r#"a f {"x":1}"#,
            "b f {}",
            "c g {}",
            r#"- h {"z":1}"#,
            r#"- h {"z":2}"#,
            "- i ",
            "- j "
        ]
    );
}

#[test]
fn a_second_call_under_the_same_index_is_a_call_of_its_own() {
    // Told by its id.
    assert_eq!(
        chat_calls(&[
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
            r#"[{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}]"#,
        ]),
        [r#"a f {"x":1}"#, r#"b f {"x":2}"#]
    );
    // Told by its name, in fragments.
    assert_eq!(
        chat_calls(&[
            r#"[{"index":0,"function":{"name":"f","arguments":"{\"x\""}}]"#,
            r#"[{"index":0,"function":{"arguments":":1}"}}]"#,
            r#"[{"index":0,"function":{"name":"f","arguments":""}}]"#,
            r#"[{"index":0,"function":{"arguments":"{\"x\":2}"}}]"#,
            r#"[{"index":0,"function":{"name":"g","arguments":""}}]"#,
            r#"[{"index":0,"function":{"arguments":"{}"}}]"#,
        ]),
        [r#"- f {"x":1}"#, r#"- f {"x":2}"#, "- g {}"]
    );
    // Told by its id, before any arguments, and continued by id.
    assert_eq!(
        chat_calls(&[
            r#"[{"index":0,"id":"a","function":{"name":"f"}}]"#,
            r#"[{"index":0,"id":"b","function":{"name":"g"}}]"#,
            r#"[{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}}]"#,
            r#"[{"index":0,"id":"b","function":{"arguments":"{\"y\""}}]"#,
            r#"[{"index":0,"function":{"arguments":":1}"}}]"#,
        ]),
        [r#"a f {"x":1}"#, r#"b g {"y":1}"#]
    );
}

#[test]
fn one_id_for_all_calls_does_not_make_them_one() {
    assert_eq!(
        chat_calls(&[
            r#"[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]"#,
            r#"[{"index":1,"id":"x","function":{"name":"f","arguments":"{\"a\""}}]"#,
            r#"[{"index":1,"id":"x","function":{"arguments":":2}"}}]"#,
            r#"[{"index":0,"id":"x","function":{"name":"g","arguments":"{}"}}]"#,
        ]),
        [r#"x f {"a":1}"#, r#"x f {"a":2}"#, "x g {}"]
    );
}

#[test]
fn indexes_that_count_fragments_make_no_other_calls() {
    assert_eq!(
        chat_calls(&[
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]"#,
            r#"[{"index":1,"function":{"arguments":"{\"x\":"}}]"#,
            r#"[{"index":2,"function":{"arguments":"1}"}}]"#,
            r#"[{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}]"#,
            r#"[{"index":1,"function":{"arguments":"}"}}]"#,
        ]),
        [r#"a f {"x":1}"#, "b g {}"]
    );
}

#[test]
fn indexes_that_count_fragments_are_seen_whatever_a_fragment_begins_with() {
    assert_eq!(
        chat_calls(&[
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]"#,
            r#"[{"index":1,"function":{"arguments":"{\"y\":[1, "}}]"#,
            r#"[{"index":2,"function":{"arguments":"{\"z\":\""}}]"#,
            r#"[{"index":3,"function":{"arguments":"{\"}]}"}}]"#,
            r#"[{"index":4,"function":{"arguments":"}"}}]"#,
            r#"[{"index":5,"function":{"arguments":"\n"}}]"#,
        ]),
        ["a f {\"x\":{\"y\":[1, {\"z\":\"{\"}]}}\n"]
    );
}

#[test]
fn fragments_without_an_index_go_by_position_only_when_all_of_a_delta_do() {
    let begun = [
        r#"[{"id":"a","function":{"name":"f","arguments":"{"}}]"#,
        r#"[{"id":"b","function":{"name":"g","arguments":"{"}}]"#,
    ];
    let by_position = r#"[{"function":{"arguments":"}"}},{"function":{"arguments":"}"}}]"#;
    assert_eq!(
        chat_calls(&[begun[0], begun[1], by_position]),
        ["a f {}", "b g {}"]
    );
    // The first call is complete, so both belong to the second.
    let whole = r#"[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#;
    let parts = r#"[{"function":{"arguments":"\"y\":"}},{"function":{"arguments":"2}"}}]"#;
    assert_eq!(
        chat_calls(&[whole, begun[1], parts]),
        [r#"a f {"x":1}"#, r#"b g {"y":2}"#]
    );
    // The first of these goes on with the last call, and a new one begins behind it.
    let mixed = r#"[{"function":{"arguments":"}"}},{"id":"c","function":{"name":"h","arguments":"{"}},{"function":{"arguments":"}"}}]"#;
    assert_eq!(
        chat_calls(&[whole, begun[1], mixed]),
        [r#"a f {"x":1}"#, "b g {}", "c h {}"]
    );
}

#[test]
fn arguments_before_name_and_id_are_kept() {
    assert_eq!(
        chat_calls(&[
            r#"[{"index":0,"function":{"arguments":"{\"x\":"}}]"#,
            r#"[{"index":0,"id":"a","function":{"arguments":"1"}}]"#,
            r#"[{"index":0,"function":{"name":"f","arguments":"}"}}]"#,
            r#"[{"index":1,"function":{"arguments":"{}"}}]"#,
            r#"[{"index":1,"id":"b","function":{"name":"g"}}]"#,
        ]),
        [r#"a f {"x":1}"#, "b g {}"]
    );
}

#[test]
fn names_in_parts_and_names_so_far_are_put_together() {
    assert_eq!(
        chat_calls(&[
            r#"[{"index":0,"id":"a","function":{"name":"get_"}}]"#,
            r#"[{"index":0,"function":{"name":"weather"}}]"#,
            r#"[{"index":0,"function":{"arguments":"{}"}}]"#,
            r#"[{"index":1,"id":"b","function":{"name":"get"}}]"#,
            r#"[{"index":1,"id":"b","function":{"name":"get_time","arguments":"{}"}}]"#,
        ]),
        ["a get_weather {}", "b get_time {}"]
    );
}

#[test]
fn arguments_that_come_again_or_as_data_count_once() {
    assert_eq!(
        chat_calls(&[
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
            r#"[{"index":0,"function":{"arguments":"{\"x\":1}"}}]"#,
            r#"[{"index":1,"id":"b","function":{"name":"g","arguments":{"y":[1]}}}]"#,
        ]),
        [r#"a f {"x":1}"#, r#"b g {"y":[1]}"#]
    );
}

#[test]
fn null_fields_and_chunks_without_a_message_are_nothing() {
    let message = stream(&[
        r#"{"choices":[],"prompt_filter_results":[{}]}"#,
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":null,"function_call":null,"refusal":null,"reasoning_content":null},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":null}]}"#,
        r#"{"choices":[null,{"index":0,"delta":{"content":"Hi","tool_calls":[null]}}]}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"other"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"total_tokens":3}}"#,
        r#"{"usage":{"total_tokens":3},"object":"chat.completion.chunk"}"#,
    ]);
    assert_eq!(message.text, "Hi");
    assert_eq!((message.calls.len(), message.faults.len()), (0, 0));
}

#[test]
fn reasoning_fields_of_servers_are_read_once_each() {
    let message = stream(&[
        r#"{"choices":[{"delta":{"reasoning_content":"  pl","reasoning":"  pl"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"an"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":" it\n","content":""}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"now"}],"content":"Hi"}}]}"#,
    ]);
    assert_eq!(message.reasoning.as_deref(), Some("plan it\nnow"));
    assert_eq!(message.text, "Hi");
}

#[test]
fn the_older_function_call_streams_too() {
    let message = stream(&[
        r#"{"choices":[{"delta":{"function_call":{"name":"f","arguments":""}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":"{\"x\""}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":":1}"}},"finish_reason":"function_call"}]}"#,
    ]);
    assert_eq!(calls(&message), [r#"- f {"x":1}"#]);
}

#[test]
fn custom_tools_of_chat_take_plain_text() {
    assert_eq!(
        chat_calls(&[
            r#"[{"index":0,"id":"a","type":"custom","custom":{"name":"sql","input":"SELECT "}}]"#,
            r#"[{"index":0,"custom":{"input":"{1}"}}]"#,
        ]),
        ["a sql SELECT {1}"]
    );
}

#[test]
fn anthropic_events_are_put_together_by_block() {
    let message = stream(&[
        r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":null}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me "}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"see."}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQ"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"x"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Looking."}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"query\":1}"}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"web_search_tool_result","content":[]}}"#,
        r#"{"type":"content_block_stop","index":4}"#,
        r#"{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}"#,
        r#"{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"{\"x\""}}"#,
        r#"{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":":1}"}}"#,
        r#"{"type":"content_block_stop","index":5}"#,
        r#"{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"t2","name":"g","input":{"y":1}}}"#,
        r#"{"type":"content_block_stop","index":5}"#,
        r#"{"type":"content_block_start","index":6,"content_block":{"type":"text","text":"Then"}}"#,
        r#"{"type":"text","text":"Then","snapshot":"Then"}"#,
        r#"{"type":"content_block_stop","index":6}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!(message.format, "anthropic_blocks");
    assert_eq!(calls(&message), [r#"t1 f {"x":1}"#, r#"t2 g {"y":1}"#]);
    assert_eq!(message.text, "Looking.\n\nThen");
    assert_eq!(message.reasoning.as_deref(), Some("Let me see."));
    assert!(message.faults.is_empty());
}

#[test]
fn anthropic_events_without_index_or_start_lose_nothing() {
    let message = stream(&[
        r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"t2","name":"g","input":{}}}"#,
        r#"{"type":"content_block_delta","delta":{"partial_json":"{\"x\":1}"}}"#,
        r#"{"type":"content_block_stop"}"#,
        r#"{"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"Hi"}}"#,
        r#"{"type":"content_block_delta","index":8,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    ]);
    assert_eq!(calls(&message), ["t1 f {}", r#"t2 g {"x":1}"#, "- - {}"]);
    assert_eq!(message.text, "Hi");
    assert_eq!(
        message.faults,
        ["the provider reports an error: Overloaded"]
    );
}

#[test]
fn responses_events_are_put_together_by_item() {
    let message = stream(&[
        r#"{"type":"response.created","response":{"id":"r","output":[],"status":"in_progress"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs","type":"reasoning","summary":[]}}"#,
        r#"{"type":"response.reasoning_summary_part.added","item_id":"rs","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs","output_index":0,"summary_index":0,"delta":"First"}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs","output_index":0,"summary_index":0,"delta":"."}"#,
        r#"{"type":"response.reasoning_summary_text.done","item_id":"rs","output_index":0,"summary_index":0,"text":"First."}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs","output_index":0,"summary_index":1,"delta":"Second."}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs","type":"reasoning","summary":[{"type":"summary_text","text":"First."},{"type":"summary_text","text":"Second."}]}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"m","type":"message","role":"assistant","content":[]}}"#,
        r#"{"type":"response.content_part.added","item_id":"m","output_index":1,"content_index":0,"part":{"type":"output_text","text":""}}"#,
        r#"{"type":"response.output_text.delta","item_id":"m","output_index":1,"content_index":0,"delta":"Hel"}"#,
        r#"{"type":"response.output_text.delta","item_id":"m","output_index":1,"content_index":0,"delta":"lo"}"#,
        r#"{"type":"response.output_text.done","item_id":"m","output_index":1,"content_index":0,"text":"Hello"}"#,
        r#"{"type":"response.content_part.done","item_id":"m","output_index":1,"content_index":0,"part":{"type":"output_text","text":"Hello"}}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"m","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}}"#,
        r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"fc","type":"function_call","call_id":"c1","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc","output_index":2,"delta":"{\"x\""}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc","output_index":2,"delta":":1}"}"#,
        r#"{"type":"response.function_call_arguments.done","item_id":"fc","output_index":2,"arguments":"{\"x\":1}"}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"fc","type":"function_call","call_id":"c1","name":"f","arguments":"{\"x\":1}"}}"#,
        r#"{"type":"response.output_item.added","output_index":3,"item":{"id":"ct","type":"custom_tool_call","call_id":"c2","name":"sql","input":""}}"#,
        r#"{"type":"response.custom_tool_call_input.delta","item_id":"ct","output_index":3,"delta":"SEL"}"#,
        r#"{"type":"response.custom_tool_call_input.done","item_id":"ct","output_index":3,"input":"SELECT"}"#,
        r#"{"type":"response.output_item.done","output_index":3,"item":{"id":"ct","type":"custom_tool_call","call_id":"c2","name":"sql","input":"SELECT"}}"#,
        r#"{"type":"response.output_item.added","output_index":4,"item":{"id":"ws","type":"web_search_call"}}"#,
        r#"{"type":"response.web_search_call.completed","item_id":"ws","output_index":4}"#,
        r#"{"type":"response.output_item.done","output_index":4,"item":{"id":"ws","type":"web_search_call","status":"completed","action":{"type":"search"}}}"#,
        r#"{"type":"response.output_item.done","output_index":5,"item":{"id":"ls","type":"local_shell_call","call_id":"c3","action":{"type":"exec","command":["ls"]}}}"#,
        r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}]}}"#,
    ]);
    assert_eq!(message.format, "openai_responses");
    assert_eq!(
        calls(&message),
        [
            r#"c1 f {"x":1}"#,
            "c2 sql SELECT",
            r#"c3 local_shell {"type":"exec","command":["ls"]}"#
        ]
    );
    assert_eq!(message.text, "Hello");
    assert_eq!(message.reasoning.as_deref(), Some("First.\nSecond."));
    assert!(message.faults.is_empty());
}

#[test]
fn responses_events_that_only_tell_the_end_are_read_from_it() {
    let message = stream(&[
        r#"{"type":"response.output_text.done","item_id":"m","output_index":0,"content_index":0,"text":"Hello"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"other","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello"},{"type":"output_text","text":" you"}]}}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}}"#,
        r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#,
    ]);
    assert_eq!(message.text, "Hello you");
    assert_eq!(calls(&message), ["c1 f {}"]);
    assert!(message.cut_off);
    let message = stream(&[
        r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}]}}"#,
    ]);
    assert_eq!(calls(&message), ["c1 f {}"]);
}

#[test]
fn responses_items_whose_ids_change_are_told_by_index() {
    let message = stream(&[
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"x1","type":"function_call","call_id":"c1","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"x2","output_index":0,"delta":"{\"a\""}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"x3","output_index":0,"delta":":1}"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"x4","type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"}}"#,
    ]);
    assert_eq!(calls(&message), [r#"c1 f {"a":1}"#]);
}

#[test]
fn gemini_chunks_follow_one_another() {
    let message = stream(&[
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"I th","thought":true}]},"index":0}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"ink.","thought":true},{"text":"Hel"}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"lo"}]}}],"usageMetadata":{}}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"x":1}},"thoughtSignature":"s"},{"functionCall":{"name":"f","args":{"x":1}}}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"function_call":{"id":"g1","name":"g"}},{"executableCode":{"code":"1"}},{"text":"","thoughtSignature":"s"}]},"finishReason":"STOP"}]}"#,
        r#"{"usageMetadata":{"totalTokenCount":3}}"#,
    ]);
    assert_eq!(message.format, "gemini_parts");
    assert_eq!(
        calls(&message),
        [r#"- f {"x":1}"#, r#"- f {"x":1}"#, "g1 g "]
    );
    assert_eq!(message.text, "Hello");
    assert_eq!(message.reasoning.as_deref(), Some("I think."));
}

#[test]
fn a_call_that_gemini_could_not_read_is_told_of() {
    let message = stream(&[
        r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: f("}]}"#,
    ]);
    assert_eq!(
        message.faults,
        ["the API could not read a call: Malformed function call: f("]
    );
}

#[test]
fn gemini_arguments_may_come_one_value_at_a_time() {
    let part = |call: &str| {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{call}}}]}}}}]}}"#)
    };
    let message = stream(&[
        part(r#"{"id":"a","name":"f","willContinue":true}"#),
        part(
            r#"{"partialArgs":[{"jsonPath":"$.city","stringValue":"Os","willContinue":true}],"willContinue":true}"#,
        ),
        part(
            r#"{"partialArgs":[{"jsonPath":"$.city","stringValue":"lo"},{"jsonPath":"$.days","numberValue":3}],"willContinue":true}"#,
        ),
        part(
            r#"{"partial_args":[{"json_path":"$.when[0].open","bool_value":true},{"jsonPath":"$.until","nullValue":"NULL_VALUE"}],"will_continue":true}"#,
        ),
        part("{}"),
        part(r#"{"name":"g","args":{}}"#),
    ]);
    assert_eq!(
        calls(&message),
        [
            r#"a f {"city":"Oslo","days":3,"when":[{"open":true}],"until":null}"#,
            "- g {}"
        ]
    );
}

#[test]
fn sdk_helper_events_repeat_nothing() {
    let message = stream(&[
        r#"{"type":"chunk","chunk":{"choices":[{"index":0,"delta":{"content":"Hi"}}]},"snapshot":{}}"#,
        r#"{"type":"content.delta","delta":"Hi","snapshot":"Hi"}"#,
        r#"{"type":"tool_calls.function.arguments.delta","arguments_delta":"x"}"#,
        r#"{"type":"content.done","content":"Hi"}"#,
    ]);
    assert_eq!(message.text, "Hi");
}

/// Cuts a text into pieces at places that a seed picks.
fn cut(text: &str, seed: u64) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut state = seed | 1;
    while !rest.is_empty() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let length = rest
            .char_indices()
            .map(|(at, _)| at)
            .nth(1 + (state >> 60) as usize)
            .unwrap_or(rest.len());
        let (piece, after) = rest.split_at(length);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

proptest! {
    #[test]
    fn however_arguments_are_cut_they_are_the_same(
        values in proptest::collection::vec(("[a-z{}\"\\\\ ]{0,8}", -9i64..9), 1..4),
        seed in any::<u64>(),
        anthropic in any::<bool>(),
    ) {
        let mut deltas = Vec::new();
        let mut whole = Vec::new();
        for (index, (text, number)) in values.iter().enumerate() {
            let arguments = serde_json::json!({"text": text, "inner": {"number": [number]}}).to_string();
            let (id, name) = (format!("id{index}"), format!("tool{index}"));
            whole.push(format!("{id} {name} {arguments}"));
            if anthropic {
                deltas.push(serde_json::json!({"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}}));
                for piece in cut(&arguments, seed ^ index as u64) {
                    deltas.push(serde_json::json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": piece}}));
                }
                deltas.push(serde_json::json!({"type": "content_block_stop", "index": index}));
            } else {
                let mut call = serde_json::json!({"index": index, "id": id, "function": {"name": name, "arguments": ""}});
                for piece in cut(&arguments, seed ^ index as u64) {
                    call["function"]["arguments"] = piece.into();
                    deltas.push(serde_json::json!({"choices": [{"delta": {"tool_calls": [call]}}]}));
                    call = serde_json::json!({"index": index, "function": {}});
                }
            }
        }
        let deltas: Vec<String> = deltas.iter().map(ToString::to_string).collect();
        prop_assert_eq!(calls(&stream(&deltas)), whole);
    }

    #[test]
    fn no_json_whatever_panics(json in "[\\[\\]{}:,\"a-z0-9 ]{0,60}") {
        if let Some(tape) = Tape::read(&json) {
            let mut collector = Collector::new(usize::MAX);
            let _ = Reader::default().message(&tape.root(), &mut collector);
            let _ = Reader::default().delta(&tape.root(), &mut collector);
        }
    }
}
