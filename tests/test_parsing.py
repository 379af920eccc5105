"""The Python API of response parsing: types, errors, identity, and what stays lazy."""

from __future__ import annotations

import copy
import dataclasses
import enum
import gc
import json
import math
import os
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import turnwarden
from turnwarden import (
    FaultKind,
    JSONRepairError,
    RepairKind,
    Reply,
    ResponseParser,
    ToolCall,
    TurnwardenError,
)

WORKFLOW = '{"content": "On it.", "next": [{"mcp": "search", "args": {"q": "x", "n": [1, 2.5]}}]}'
HERMES = '<think>Hm.</think>Ok.<tool_call>{"name": "ping", "arguments": {"a": 1,}}</tool_call>'
REFUSED = '<tool_call>{"name": "ping", "arguments": [1]}</tool_call>'
CUT_OFF = '{"content": "On it.", "next": [{"mcp": "search", "args": {"q": "tid'
REPLIES = [WORKFLOW, HERMES, REFUSED, CUT_OFF, "Hello.", ""]

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "parameters": {
                "type": "object",
                "properties": {"q": {"type": "string"}, "limit": {"type": "integer"}},
            },
        },
    }
]

TEXT_FUNCTIONS: list[Callable[[Any], Any]] = [
    turnwarden.parse,
    turnwarden.parse_workflow_json,
    turnwarden.parse_tool_calls,
    turnwarden.extract_text_content,
    turnwarden.has_tool_calls,
    turnwarden.parse_workflow_response,
    turnwarden.clean_llm_response,
    turnwarden.repair_json,
    ResponseParser().parse,
    ResponseParser().stream().feed,
]


# Replies


def test_a_reply_tells_everything_that_was_found() -> None:
    reply = turnwarden.parse(HERMES)
    assert reply.text == "Ok."
    assert reply.reasoning == "Hm."
    assert reply.format == "hermes"
    assert reply.workflow is None
    assert [call.name for call in reply.tool_calls] == ["ping"]
    assert reply.tool_calls[0].repaired
    assert [repair.kind for repair in reply.repairs] == [RepairKind.COMMA_DROPPED]
    assert HERMES.encode()[reply.repairs[0].offset :].startswith(b",")
    assert reply.faults == reply.incomplete_calls == ()


def test_what_was_refused_is_told() -> None:
    reply = turnwarden.parse(REFUSED)
    assert reply.tool_calls == ()
    (fault,) = reply.faults
    assert fault.kind is FaultKind.ARGUMENTS_NOT_AN_OBJECT
    assert fault.kind == "arguments_not_an_object"
    assert fault.name == "ping"
    assert fault.message
    assert 0 <= fault.offset < len(REFUSED)


def test_a_call_that_was_cut_off_is_kept_apart() -> None:
    reply = turnwarden.parse(CUT_OFF)
    assert reply.tool_calls == ()
    assert [call.arguments for call in reply.incomplete_calls] == [{"q": "tid"}]
    assert turnwarden.parse_workflow_json(CUT_OFF) is None
    assert not turnwarden.has_tool_calls(CUT_OFF)


@pytest.mark.parametrize("text", REPLIES)
def test_spans_account_for_every_byte(text: str) -> None:
    at = 0
    for span in turnwarden.parse(text).spans:
        assert span.start == at
        assert span.end > span.start
        at = span.end
    assert at == len(text.encode())


def test_workflow_json_is_the_reply_in_the_shape_of_the_reference() -> None:
    reply = turnwarden.parse(WORKFLOW)
    assert reply.workflow is not None
    assert reply.workflow.content == reply.text == "On it."
    assert reply.workflow.next == reply.tool_calls
    assert reply.workflow.to_dict() == json.loads(WORKFLOW)


def test_calls_and_arguments_are_built_once() -> None:
    reply = turnwarden.parse(WORKFLOW)
    assert reply.tool_calls is reply.tool_calls
    call = reply.tool_calls[0]
    assert call.arguments is call.arguments
    call.arguments["q"] = "changed"
    assert call.arguments["q"] == "changed"
    assert call.arguments_json == '{"q":"x","n":[1,2.5]}'
    assert call.to_anthropic()["input"]["q"] == "x"


def test_calls_outlive_their_reply() -> None:
    call = turnwarden.parse(WORKFLOW).tool_calls[0]
    gc.collect()
    assert call.arguments == {"q": "x", "n": [1, 2.5]}


def test_values_of_all_kinds_come_exactly() -> None:
    arguments = (
        '{"i":123456789012345678901234567890,"n":-0,"f":-1.5e-7,"s":"\\u00e9\\ud83d\\ude00\\n",'
        '"b":[true,false,null],"o":{"":{}},"a":[[],[[]]]}'
    )
    text = f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>'
    call = turnwarden.parse(text).tool_calls[0]
    assert call.arguments == json.loads(arguments)
    assert call.arguments_json == arguments
    assert type(call.arguments["f"]) is float
    assert type(call.arguments["n"]) is int


@pytest.mark.parametrize("digits", [19, 20, 4299, 4301, 12_345])
@pytest.mark.parametrize("sign", ["", "-"])
def test_integers_of_any_length_are_exact(digits: int, sign: str) -> None:
    text = sign + "".join(str((7 * at + 1) % 10) for at in range(digits))
    value = turnwarden.repair_json(f'{{"n": {text}}}')["n"]
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        assert value == int(text)
    finally:
        sys.set_int_max_str_digits(limit)
    assert ToolCall("f", {"n": value}).arguments_json == f'{{"n":{text}}}'


def test_deep_arguments_neither_overflow_nor_vanish() -> None:
    depth = 400
    arguments = '{"a":' * depth + "1" + "}" * depth
    call = turnwarden.parse(f'{{"mcp": "f", "args": {arguments}}}').tool_calls[0]
    value: Any = call.arguments
    for _ in range(depth):
        value = value["a"]
    assert value == 1


# Calls


def test_a_call_can_be_made_by_hand() -> None:
    call = ToolCall("search", {"q": "é", "n": 1.0}, id="c1")
    assert (call.id, call.name, call.arguments) == ("c1", "search", {"q": "é", "n": 1.0})
    assert call.arguments_json == '{"q":"é","n":1.0}'
    assert not call.repaired
    assert ToolCall("search").arguments == {}
    assert ToolCall("search", "  ").arguments_json == "{}"
    healed = ToolCall("search", "{q: 'x',}")
    assert healed.arguments == {"q": "x"}
    assert healed.repaired


def test_generated_ids_are_unique_and_well_formed() -> None:
    ids = {ToolCall("ping").id for _ in range(10_000)}
    assert len(ids) == 10_000
    for id in ids:
        assert id.startswith("call_")
        assert len(id) == 29
        assert id[5:].isalnum()
        assert id.isascii()


def test_generated_ids_do_not_count_in_comparisons_and_given_ones_do() -> None:
    assert turnwarden.parse(HERMES) == turnwarden.parse(HERMES)
    assert ToolCall("a", {"x": 1}) == ToolCall("a", {"x": 1})
    assert hash(ToolCall("a", {"x": 1})) == hash(ToolCall("a", {"x": 1}))
    assert ToolCall("a", id="1") == ToolCall("a", id="1")
    assert ToolCall("a", id="1") != ToolCall("a", id="2")
    assert ToolCall("a") != ToolCall("b")
    assert ToolCall("a", {"x": 1}) != ToolCall("a", {"x": True})
    assert ToolCall("a") != "a"


def test_the_order_of_keys_does_not_matter() -> None:
    left, right = ToolCall("f", {"a": 1, "b": 2}), ToolCall("f", {"b": 2, "a": 1.0})
    assert left == right
    assert hash(left) == hash(right)
    assert left.signature == right.signature


@pytest.mark.parametrize(
    "arguments",
    [{}, {"q": "x"}, {"n": [1, 2.5, None, True, 10**30]}, {"é": {"\ud800": "\udfff"}}],
)
def test_a_calls_signature_is_that_of_its_name_and_arguments(arguments: dict[str, Any]) -> None:
    call = ToolCall("search", arguments)
    assert call.signature == turnwarden.call_signature("search", call.arguments)
    assert len(call.signature) == 32


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"a": {1, 2}}, "$.a"),
        ({"a": [0, {"b": object()}]}, "$.a[1].b"),
        ({1: 2}, "$"),
        ({"a": math.nan}, "$.a"),
        ({"a": math.inf}, "$.a"),
    ],
)
def test_arguments_that_json_cannot_carry_are_refused_with_their_path(
    arguments: Any, where: str
) -> None:
    with pytest.raises(TypeError, match=r"\(at " + where.replace("$", r"\$").replace("[", r"\[")):
        ToolCall("f", arguments)


def test_cyclic_arguments_are_refused() -> None:
    arguments: dict[str, Any] = {}
    arguments["self"] = arguments
    with pytest.raises(TypeError, match="nested deeper"):
        ToolCall("f", arguments)


@pytest.mark.parametrize("arguments", [[1], 1, True, object()])
def test_arguments_that_are_no_mapping_are_a_type_error(arguments: Any) -> None:
    with pytest.raises(TypeError, match=r"JSON|mapping"):
        ToolCall("f", arguments)


@pytest.mark.parametrize("arguments", ["[1]", '"x"', "3"])
def test_json_text_that_is_no_object_is_a_value_error(arguments: str) -> None:
    with pytest.raises(ValueError, match="object"):
        ToolCall("f", arguments)


def test_a_call_needs_a_name() -> None:
    with pytest.raises(ValueError, match="empty"):
        ToolCall("")


def test_messages_are_in_the_shape_of_the_apis() -> None:
    reply = turnwarden.parse(
        'Ok.<tool_call>{"name": "search", "arguments": {"q": "x"}, "id": "c1"}</tool_call>'
    )
    call = reply.tool_calls[0]
    function = {"name": "search", "arguments": '{"q":"x"}'}
    assert call.to_openai() == {"id": call.id, "type": "function", "function": function}
    assert reply.to_openai_message() == {
        "role": "assistant",
        "content": "Ok.",
        "tool_calls": [call.to_openai()],
    }
    assert call.to_anthropic() == {
        "type": "tool_use",
        "id": call.id,
        "name": "search",
        "input": {"q": "x"},
    }
    assert reply.to_anthropic_message() == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Ok."}, call.to_anthropic()],
    }


def test_a_message_of_calls_alone_has_no_content() -> None:
    reply = turnwarden.parse('<tool_call>{"name": "ping", "arguments": {}}</tool_call>')
    assert reply.to_openai_message()["content"] is None
    assert [block["type"] for block in reply.to_anthropic_message()["content"]] == ["tool_use"]
    assert turnwarden.parse("").to_openai_message() == {"role": "assistant", "content": ""}


def test_reasoning_is_in_a_message_only_when_asked_for() -> None:
    reply = turnwarden.parse("<think>Hm.</think>Hello")
    assert "reasoning_content" not in reply.to_openai_message()
    assert reply.to_openai_message(include_reasoning=True)["reasoning_content"] == "Hm."


class Colour(enum.StrEnum):
    RED = "red"


@dataclasses.dataclass
class Hit:
    title: str
    tags: set[str]


class Model:
    def model_dump(self, *, mode: str, by_alias: bool) -> dict[str, Any]:
        assert mode == "json"
        return {"by_alias": by_alias}


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("as it is", "as it is"),
        (Colour.RED, "red"),
        ({"n": 1, "s": "é"}, '{"n":1,"s":"é"}'),
        ([1, (2, None)], "[1,[2,null]]"),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        (math.nan, "null"),
        ({1: 2}, '{"1":2}'),
        (Hit("x", {"t"}), '{"title":"x","tags":["t"]}'),
        ([Model()], '[{"by_alias":true}]'),
        (ValueError("bad"), "Error: ValueError: bad"),
        (b"raw", "b'raw'"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_result_becomes_the_text_of_a_message(value: object, content: str) -> None:
    call = ToolCall("f", id="c1")
    got = call.to_openai_result(value)["content"]
    assert got == content or json.loads(got) == content
    assert call.to_anthropic_result(value)["content"] == got
    assert ("is_error" in call.to_anthropic_result(value)) is isinstance(value, Exception)


def test_a_result_is_paired_with_its_call() -> None:
    call = ToolCall("f", id="c1")
    assert call.to_openai_result("x")["tool_call_id"] == "c1"
    assert call.to_anthropic_result("x", is_error=True) == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": "x",
        "is_error": True,
    }


# What all results have in common


def results() -> list[Any]:
    """One of each class that the parser gives, with its parts."""
    found: list[Any] = []
    for text in REPLIES:
        reply = turnwarden.parse(text)
        found += [reply, *reply.tool_calls, *reply.incomplete_calls]
        found += [*reply.repairs, *reply.faults, *reply.spans]
        found += [turnwarden.parse_workflow_response(text)]
        found += list(ResponseParser().iter([text]))
    found += [workflow for reply in found if (workflow := getattr(reply, "workflow", None))]
    found += [turnwarden.TextRetracted(3), turnwarden.ParseFault("junk", 1, "m", "n")]
    return found


@pytest.mark.parametrize("result", results(), ids=lambda result: type(result).__name__)
def test_results_compare_hash_pickle_copy_and_show_themselves(result: Any) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        other = pickle.loads(pickle.dumps(result, protocol))
        assert type(other) is type(result)
        assert other == result
        assert hash(other) == hash(result)
        assert repr(other) == repr(result)
    assert copy.copy(result) == copy.deepcopy(result) == result
    assert result != object()
    assert repr(result).startswith(f"{type(result).__name__}(")
    json.dumps(result.to_dict())
    assert type(result).__module__ == "turnwarden"
    assert type(result).__doc__
    for name in type(result).__match_args__:
        getattr(result, name)
        with pytest.raises(AttributeError):
            setattr(result, name, None)
    with pytest.raises(AttributeError):
        result.something_else = 1


def test_generated_ids_survive_pickling_and_stay_generated() -> None:
    call = turnwarden.parse(HERMES).tool_calls[0]
    other = pickle.loads(pickle.dumps(call))
    assert other.id == call.id
    assert other == turnwarden.parse(HERMES).tool_calls[0]


def test_kinds_are_strings() -> None:
    assert RepairKind("comma_dropped") is RepairKind.COMMA_DROPPED
    assert pickle.loads(pickle.dumps(FaultKind.JUNK)) is FaultKind.JUNK
    assert f"{turnwarden.SpanKind.CALL}" == "call"
    assert turnwarden.Repair(RepairKind.COMMA_DROPPED, 3) == turnwarden.Repair("comma_dropped", 3)
    with pytest.raises(ValueError, match="nonsense"):
        turnwarden.Repair("nonsense", 0)


# Texts


@pytest.mark.parametrize("function", TEXT_FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("wrong", [None, 3, bytearray(b"x"), ["x"], {"content": "x"}, object()])
def test_what_is_neither_str_nor_bytes_is_a_type_error_that_names_it(
    function: Callable[[Any], Any], wrong: object
) -> None:
    with pytest.raises(TypeError, match="str or bytes") as raised:
        function(wrong)
    assert type(wrong).__name__ in str(raised.value)
    assert isinstance(raised.value, TurnwardenError)


@pytest.mark.parametrize("text", REPLIES)
def test_bytes_are_read_as_utf8(text: str) -> None:
    text += "é猫😀"
    assert turnwarden.parse(text.encode()) == turnwarden.parse(text)


def test_lone_surrogates_become_replacement_characters_and_are_recorded() -> None:
    reply = turnwarden.parse("a\ud800b\udfffc")
    assert reply.text == "a\ufffdb\ufffdc"
    assert reply.repairs == (
        turnwarden.Repair(RepairKind.SURROGATE_REPLACED, 1),
        turnwarden.Repair(RepairKind.SURROGATE_REPLACED, 5),
    )


def test_surrogate_pairs_in_two_halves_are_joined() -> None:
    reply = turnwarden.parse("\ud83d\ude00!")
    assert reply.text == "😀!"
    assert reply.repairs == ()


def test_invalid_utf8_becomes_replacement_characters_and_is_recorded() -> None:
    reply = turnwarden.parse(b"a\xffb\xe7\x8c")
    assert reply.text == "a\ufffdb\ufffd"
    assert [repair.kind for repair in reply.repairs] == [RepairKind.UTF8_REPLACED] * 2
    assert turnwarden.repair_json(b'{"a": "\xff"}') == {"a": "\ufffd"}


def test_a_str_subclass_is_a_str() -> None:
    class Text(str):
        __slots__ = ()

        def __str__(self) -> str:
            raise AssertionError("not asked for")

    assert turnwarden.parse(Text("Hello")).text == "Hello"


# Parsers


def test_a_parser_is_a_value() -> None:
    parser = ResponseParser(["hermes"], TOOLS, reasoning_open=True, max_depth=9)
    assert parser == pickle.loads(pickle.dumps(parser)) == copy.deepcopy(parser)
    assert hash(parser) == hash(pickle.loads(pickle.dumps(parser)))
    assert parser != ResponseParser()
    assert parser.formats == ("hermes",)
    assert (parser.reasoning_open, parser.max_depth) == (True, 9)
    assert ResponseParser().formats is None
    assert repr(parser) == (
        "ResponseParser(formats=['hermes'], tools=[...], reasoning_open=True, max_depth=9)"
    )
    assert repr(ResponseParser()) == "ResponseParser()"


def test_defaults_are_those_of_the_documentation() -> None:
    parser = ResponseParser()
    assert parser.buffer_arguments
    assert not parser.reasoning_open
    assert not parser.calls_in_reasoning
    assert parser.max_depth == 512
    assert parser.max_reply_bytes >= 1 << 20
    assert parser.max_calls >= 100
    assert parser.max_argument_bytes >= 1 << 20


@pytest.mark.parametrize("formats", [["nonsense"], ["hermes", "nonsense"]])
def test_an_unknown_format_is_a_value_error_that_names_it(formats: list[str]) -> None:
    with pytest.raises(ValueError, match="nonsense") as raised:
        ResponseParser(formats)
    assert isinstance(raised.value, turnwarden.ConfigurationError)


@pytest.mark.parametrize(
    "arguments", [{"formats": "hermes"}, {"formats": 3}, {"formats": [3]}, {"tools": "x"}]
)
def test_options_of_a_wrong_type_are_type_errors(arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        ResponseParser(**arguments)


def test_declared_tools_give_values_their_types() -> None:
    text = '<tool_call>{"name": "Search", "arguments": {"q": "x", "limit": "3"}}</tool_call>'
    assert turnwarden.parse(text).tool_calls[0].arguments == {"q": "x", "limit": "3"}
    call = ResponseParser(tools=TOOLS).parse(text).tool_calls[0]
    assert (call.name, call.arguments) == ("search", {"q": "x", "limit": 3})


def test_tools_of_all_three_kinds_and_as_objects_are_read() -> None:
    schema = TOOLS[0]["function"]["parameters"]  # type: ignore[index]

    @dataclasses.dataclass
    class McpTool:
        name: str
        inputSchema: Any  # noqa: N815

    text = '<tool_call>{"name": "search", "arguments": {"limit": "3"}}</tool_call>'
    for tools in (
        TOOLS,
        [{"name": "search", "input_schema": schema}],
        [{"name": "search", "inputSchema": schema}],
        [McpTool("search", schema)],
    ):
        call = ResponseParser(tools=tools).parse(text).tool_calls[0]
        assert call.arguments == {"limit": 3}


def test_calls_in_reasoning_count_only_when_asked_for() -> None:
    text = '<think><tool_call>{"name": "ping", "arguments": {}}</tool_call></think>Done.'
    assert turnwarden.parse(text).tool_calls == ()
    assert len(ResponseParser(calls_in_reasoning=True).parse(text).tool_calls) == 1


def test_over_a_limit_there_is_a_fault_and_what_came_before_is_kept() -> None:
    call = '<tool_call>{"name": "ping", "arguments": {"a": [1, [2]]}}</tool_call>'
    reply = ResponseParser(max_calls=2).parse("Hi." + 3 * call)
    assert len(reply.tool_calls) == 2
    assert FaultKind.TOO_MANY_CALLS in [fault.kind for fault in reply.faults]
    reply = ResponseParser(max_depth=2).parse("Hi." + call)
    assert reply.tool_calls == ()
    assert FaultKind.TOO_DEEP in [fault.kind for fault in reply.faults]
    reply = ResponseParser(max_argument_bytes=4).parse("Hi." + call)
    assert reply.tool_calls == ()
    assert FaultKind.ARGUMENTS_TOO_LONG in [fault.kind for fault in reply.faults]
    reply = ResponseParser(max_reply_bytes=len("Hi." + call) + 2).parse("Hi." + call + "More.")
    assert len(reply.tool_calls) == 1
    assert FaultKind.REPLY_TOO_LONG in [fault.kind for fault in reply.faults]
    assert reply.text.startswith("Hi.")


def test_one_parser_serves_many_threads() -> None:
    parser = ResponseParser(tools=TOOLS)
    texts = [text.replace("On it.", f"Number {n}.") for n in range(50) for text in REPLIES]
    expected = [parser.parse(text) for text in texts]

    def work(_: int) -> list[Reply]:
        replies = [parser.parse(text) for text in texts]
        for reply in replies:
            _ = [call.arguments for call in reply.tool_calls]
        return replies

    with ThreadPoolExecutor(8) as pool:
        for replies in pool.map(work, range(8)):
            assert replies == expected


def test_one_reply_is_read_by_many_threads() -> None:
    reply = turnwarden.parse(WORKFLOW)
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: id(reply.tool_calls[0].arguments), range(200)))
    assert len(set(seen)) == 1


def test_a_batch_keeps_the_order_and_equals_single_parses() -> None:
    texts = [f"Number {n} {WORKFLOW if n % 3 else HERMES}" for n in range(500)]
    single = [turnwarden.parse(text) for text in texts]
    for threads in (None, 1, 2, 7):
        assert turnwarden.parse_many(texts, threads=threads) == single
    parser = ResponseParser()
    assert turnwarden.parse_many(iter(texts), parser) == parser.parse_many(texts) == single
    assert turnwarden.parse_many([]) == []


def test_a_batch_takes_bytes_and_broken_text() -> None:
    replies = turnwarden.parse_many([b"a\xff", "b\ud800", "", "c"])
    assert [reply.text for reply in replies] == ["a\ufffd", "b\ufffd", "", "c"]
    assert [len(reply.repairs) for reply in replies] == [1, 1, 0, 0]


@pytest.mark.parametrize("texts", ["text", 3, ["a", None]])
def test_a_batch_of_a_wrong_type_is_a_type_error(texts: Any) -> None:
    with pytest.raises(TypeError):
        turnwarden.parse_many(texts)


def test_an_id_that_is_a_number_is_told_from_the_beginning() -> None:
    text = '<tool_call>{"id": 7, "name": "f", "arguments": {"a": 1, "b": 2}}</tool_call>'
    events = list(ResponseParser(buffer_arguments=False).iter(text))
    started = next(event for event in events if isinstance(event, turnwarden.ToolCallStarted))
    ended = next(event for event in events if isinstance(event, turnwarden.ToolCallEnded))
    assert started.id == ended.call.id == "7"


def test_one_text_of_bytes_is_no_list_of_chunks() -> None:
    parser = ResponseParser()
    for call in (parser.iter, parser.aiter, parser.parse_many):
        with pytest.raises(turnwarden.WrongTypeError, match="must be an iterable"):
            call(b"abc")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [b"x", 1, len])
def test_the_name_of_a_tool_is_a_str(name: Any) -> None:
    for tool in ({"name": name}, {"type": "function", "function": {"name": name}}):
        with pytest.raises(turnwarden.WrongTypeError, match=r"the name of tools\[1\]"):
            ResponseParser(tools=[{"name": "f"}, tool])


def test_an_item_of_a_wrong_type_is_named_by_its_place() -> None:
    with pytest.raises(TypeError, match=r"texts\[1\] must be str or bytes, not NoneType"):
        turnwarden.parse_many(["a", None])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"formats\[1\] must be .* not int"):
        ResponseParser(["hermes", 3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"tools\[1\] must be .* not str"):
        ResponseParser(tools=[*TOOLS, "search"])  # type: ignore[list-item]


# Workflow responses


def test_a_workflow_response_goes_out_and_comes_back() -> None:
    workflow = turnwarden.create_workflow_response(
        'Say "猫"\n',
        [{"mcp": "a", "args": {"x": [1]}}, ToolCall("b"), {"name": "c", "input": None}],
    )
    text = turnwarden.serialize_workflow_response(workflow)
    assert text == (
        '{"content":"Say \\"猫\\"\\n","next":[{"mcp":"a","args":{"x":[1]}},'
        '{"mcp":"b","args":{}},{"mcp":"c","args":{}}]}'
    )
    assert turnwarden.parse_workflow_json(text) == workflow
    assert turnwarden.serialize_workflow_response(json.loads(text)) == text


def test_a_workflow_response_needs_calls() -> None:
    for wrong in ([3], [{"args": {}}], "x", 3, [{"mcp": ""}], [{"mcp": "a", "args": [1]}]):
        with pytest.raises((TypeError, ValueError)):
            turnwarden.create_workflow_response("", wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        turnwarden.create_workflow_response(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="content"):
        turnwarden.serialize_workflow_response({"next": []})
    with pytest.raises(TypeError, match="int"):
        turnwarden.serialize_workflow_response(3)  # type: ignore[arg-type]


# Errors


def test_all_exceptions_have_one_root_and_a_built_in_base() -> None:
    classes = [
        value
        for name in turnwarden.__all__
        if isinstance(value := getattr(turnwarden, name), type) and issubclass(value, Exception)
    ]
    assert TurnwardenError in classes
    for class_ in classes:
        assert issubclass(class_, TurnwardenError)
        assert class_.__module__ == "turnwarden"
        assert class_.__doc__
        if class_ is not TurnwardenError:
            assert issubclass(class_, ValueError | TypeError | RuntimeError | TimeoutError)


def test_a_repair_error_tells_kind_and_offset_and_survives_pickling() -> None:
    with pytest.raises(JSONRepairError) as raised:
        turnwarden.repair_json('{"n": 1e999}')
    error = raised.value
    assert isinstance(error, ValueError)
    assert error.kind == "number_out_of_range"
    assert error.offset == 6
    other = pickle.loads(pickle.dumps(error))
    assert (other.kind, other.offset, str(other)) == (error.kind, error.offset, str(error))


def test_repair_has_a_depth_limit() -> None:
    assert turnwarden.repair_json("[[[1]]]", max_depth=3) == [[[1]]]
    with pytest.raises(JSONRepairError) as raised:
        turnwarden.repair_json("[[[1]]]", max_depth=2)
    assert raised.value.kind == "too_deep"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_processes_make_different_ids() -> None:
    text = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
    turnwarden.parse(text)
    reader, writer = os.pipe()
    child = os.fork()
    made = turnwarden.parse(text).tool_calls[0].id
    if child == 0:
        os.write(writer, made.encode())
        os._exit(0)
    os.close(writer)
    assert os.read(reader, 64).decode() != made
    os.waitpid(child, 0)
    os.close(reader)


@pytest.mark.parametrize(
    "limit", ["max_depth", "max_reply_bytes", "max_calls", "max_argument_bytes"]
)
def test_a_limit_may_be_huge_but_not_negative(limit: str) -> None:
    call = '<tool_call>{"name": "ping", "arguments": {"x": [1]}}</tool_call>'
    for huge in (2**63, 2**64, 10**400):
        parser = ResponseParser(**{limit: huge})  # pyright: ignore[reportArgumentType]
        assert len(parser.parse(call).tool_calls) == 1
    for negative in (-1, -(2**70)):
        with pytest.raises(turnwarden.ConfigurationError, match="0 or more") as raised:
            ResponseParser(**{limit: negative})  # pyright: ignore[reportArgumentType]
        assert limit in raised.value.__notes__[0]


@pytest.mark.parametrize(
    "option", ["max_depth", "max_reply_bytes", "max_calls", "max_argument_bytes"]
)
def test_a_limit_is_an_integer_that_is_not_negative(option: str) -> None:
    for wrong, error in (
        (-1, turnwarden.ConfigurationError),
        (-(2**70), turnwarden.ConfigurationError),
        (True, TypeError),
    ):
        with pytest.raises(error) as raised:
            ResponseParser(**{option: wrong})
        assert option in raised.value.__notes__[0]


def test_a_batch_needs_one_thread_or_more() -> None:
    parser = ResponseParser()
    for wrong, error in (
        (-1, turnwarden.ConfigurationError),
        (0, turnwarden.ConfigurationError),
        (False, TypeError),
    ):
        for parse_batch in (parser.parse_many, turnwarden.parse_many):
            with pytest.raises(error) as raised:
                parse_batch(["text"], threads=wrong)
            assert "threads" in raised.value.__notes__[0]
    assert [reply.text for reply in parser.parse_many(["text"], threads=2**70)] == ["text"]


@pytest.mark.parametrize("wrong", [-1, 2**70, True])
def test_an_offset_is_a_place_in_a_text(wrong: int) -> None:
    for make in (
        lambda: turnwarden.Repair("comment_dropped", wrong),
        lambda: turnwarden.Fault("junk", wrong, None, "junk"),
        lambda: turnwarden.Span("text", wrong, 1),
        lambda: turnwarden.Span("text", 0, wrong),
    ):
        with pytest.raises((turnwarden.ConfigurationError, turnwarden.WrongTypeError)):
            make()
