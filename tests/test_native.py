"""Native messages of four APIs, whole, as mappings or as objects with attributes."""

from __future__ import annotations

import dataclasses
import json
import math
import threading
from collections import UserDict, UserList
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
import turnwarden
from turnwarden import FaultKind, MessageStream, Reply, ResponseParser, parse_message

VECTORS = Path(__file__).parent / "vectors"

CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "One moment.",
                "reasoning_content": "I need the weather.",
                "refusal": None,
                "tool_calls": [
                    {
                        "id": "call_a",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
                    },
                    {
                        "id": "call_b",
                        "type": "function",
                        "function": {"name": "ping", "arguments": ""},
                    },
                ],
            },
        }
    ],
    "usage": {"total_tokens": 9},
}

RESPONSES = {
    "object": "response",
    "status": "completed",
    "output": [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "I need the weather."}],
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "One moment.", "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_a",
            "name": "get_weather",
            "arguments": '{"city": "Oslo"}',
        },
        {
            "type": "function_call",
            "id": "fc_2",
            "call_id": "call_b",
            "name": "ping",
            "arguments": "{}",
        },
    ],
}

ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "I need the weather.", "signature": "EqQBCg"},
        {"type": "redacted_thinking", "data": "EmwKAhgB"},
        {"type": "text", "text": "One moment."},
        {"type": "tool_use", "id": "call_a", "name": "get_weather", "input": {"city": "Oslo"}},
        {"type": "tool_use", "id": "call_b", "name": "ping", "input": {}},
    ],
    "stop_reason": "tool_use",
}

GEMINI = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "I need the weather.", "thought": True},
                    {"text": "One moment."},
                    {
                        "functionCall": {
                            "id": "call_a",
                            "name": "get_weather",
                            "args": {"city": "Oslo"},
                        },
                        "thoughtSignature": "CiQB",
                    },
                    {"functionCall": {"id": "call_b", "name": "ping"}},
                ],
            },
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {"totalTokenCount": 9},
}

MESSAGES = {
    "openai_chat_json": CHAT,
    "openai_responses": RESPONSES,
    "anthropic_blocks": ANTHROPIC,
    "gemini_parts": GEMINI,
}


def calls(reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in reply.tool_calls]


def check(reply: Reply, label: str) -> None:
    assert reply.text == "One moment."
    assert reply.reasoning == "I need the weather."
    assert [call.id for call in reply.tool_calls] == ["call_a", "call_b"]
    assert calls(reply) == [("get_weather", {"city": "Oslo"}), ("ping", {})]
    assert reply.format == label
    assert (reply.faults, reply.incomplete_calls) == ((), ())


def namespaces(value: Any) -> Any:
    """The same message as objects with attributes, but for call arguments."""
    if isinstance(value, list):
        return [namespaces(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = ("input", "args")
    return SimpleNamespace(
        **{key: item if key in kept else namespaces(item) for key, item in value.items()}
    )


class Model:
    """Behaves like a pydantic model: fields in `__dict__`, others beyond, and `__getattr__`."""

    __pydantic_validator__ = object()

    def __init__(self, fields: dict[str, Any], extra: dict[str, Any] | None) -> None:
        object.__setattr__(self, "__dict__", fields)
        object.__setattr__(self, "__pydantic_extra__", extra)

    __slots__ = ("__dict__", "__pydantic_extra__")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"asked for {name}, which is not there")


def models(value: Any) -> Any:
    if isinstance(value, list):
        return [models(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {
        key: item if key in ("input", "args") else models(item) for key, item in value.items()
    }
    extra = {"reasoning_content": fields.pop("reasoning_content", None)}
    return Model(fields, extra)


def user_dicts(value: Any) -> Any:
    if isinstance(value, list):
        return UserList([user_dicts(item) for item in value])
    if isinstance(value, dict):
        return UserDict({key: user_dicts(item) for key, item in value.items()})
    return value


def proxies(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(proxies(item) for item in value)
    if isinstance(value, dict):
        return MappingProxyType({key: proxies(item) for key, item in value.items()})
    return value


def dataclass_of(value: Any) -> Any:
    if isinstance(value, list):
        return [dataclass_of(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = [(key, Any) for key in value]
    kind = dataclasses.make_dataclass("Message", fields, frozen=True, slots=True)
    return kind(*[dataclass_of(item) for item in value.values()])


@pytest.mark.parametrize("make", [dict, namespaces, models, user_dicts, proxies, dataclass_of])
@pytest.mark.parametrize("label", MESSAGES)
def test_messages_of_all_apis_are_read_from_mappings_and_objects_alike(
    label: str, make: Any
) -> None:
    check(parse_message(make(MESSAGES[label])), label)


@pytest.mark.parametrize("make", [dict, list, namespaces, models])
def test_parts_of_messages_are_read_too(make: Any) -> None:
    convert = make if make in (namespaces, models) else lambda value: value
    choice = CHAT["choices"][0]
    for part in (choice, choice["message"]):
        check(parse_message(convert(part)), "openai_chat_json")
    check(parse_message(convert(RESPONSES["output"])), "openai_responses")
    check(parse_message(convert(ANTHROPIC["content"])), "anthropic_blocks")
    candidate = GEMINI["candidates"][0]
    for part in (candidate, candidate["content"], candidate["content"]["parts"]):
        check(parse_message(convert(part)), "gemini_parts")
    for part in (choice["message"]["tool_calls"], choice["message"]["tool_calls"][0]):
        assert parse_message(convert(part)).tool_calls[0].id == "call_a"
    for part in (RESPONSES["output"][2], ANTHROPIC["content"][3], candidate["content"]["parts"][2]):
        assert calls(parse_message(convert(part))) == [("get_weather", {"city": "Oslo"})]


def test_snake_case_of_gemini_is_read_like_camel_case() -> None:
    parts = [{"function_call": {"name": "ping", "args": {"n": 1}}}, {"text": "Ok."}]
    reply = parse_message({"candidates": [{"content": {"parts": parts}, "finish_reason": "STOP"}]})
    assert (reply.text, calls(reply)) == ("Ok.", [("ping", {"n": 1})])


def test_the_older_function_call_is_a_call() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "ping", "arguments": "{}"},
    }
    assert calls(parse_message(message)) == [("ping", {})]


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning_content": "plan"},
        {"reasoning": "plan"},
        {"reasoning_content": "plan", "reasoning": "plan"},
        {"reasoning_content": "", "reasoning": "plan"},
        {"reasoning_content": None, "thinking": "plan"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "plan"}]},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "plan"}]},
                {"type": "text", "text": "Hi"},
            ]
        },
        {"content": "<think>plan</think>Hi"},
    ],
)
def test_reasoning_is_found_under_the_names_that_servers_use(fields: dict[str, Any]) -> None:
    reply = parse_message({"role": "assistant", "content": "Hi"} | fields)
    assert (reply.text, reply.reasoning) == ("Hi", "plan")


def test_no_reasoning_is_none() -> None:
    for fields in ({}, {"reasoning_content": None}, {"reasoning_content": ""}):
        assert parse_message({"role": "assistant", "content": "Hi"} | fields).reasoning is None


def test_custom_tools_give_their_input_to_the_only_string_parameter() -> None:
    tool = {
        "name": "sql",
        "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}},
    }
    chat = {
        "tool_calls": [
            {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT {"}}
        ]
    }
    responses = [{"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "SELECT {"}]
    for message in (chat, responses):
        assert calls(parse_message(message)) == [("sql", {"input": "SELECT {"})]
        parser = ResponseParser(tools=[tool])
        assert calls(parse_message(message, parser)) == [("sql", {"query": "SELECT {"})]


def test_tools_that_the_provider_ran_itself_are_no_calls() -> None:
    for message in (
        [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}],
        [{"type": "web_search_call", "id": "ws", "action": {"type": "search"}}],
        {"parts": [{"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}}]},
    ):
        reply = parse_message(message)
        assert (reply.tool_calls, reply.faults) == ((), ())


def test_built_in_tools_that_the_application_runs_are_calls() -> None:
    item = {"type": "local_shell_call", "call_id": "a", "action": {"command": ["ls"]}}
    assert calls(parse_message([item])) == [("local_shell", {"command": ["ls"]})]


def test_blocks_of_text_that_something_keeps_apart_stay_apart() -> None:
    text = [{"type": "text", "text": part} for part in ("I look.", "Found", " it.")]
    call = {"type": "tool_use", "id": "a", "name": "ping", "input": {}}
    assert parse_message([text[0], call, text[1], text[2]]).text == "I look.\n\nFound it."


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {}),
        ("null", {}),
        (None, {}),
        ('{"a": 1,}', {"a": 1}),
        ("{'a': True}", {"a": True}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('{}{"a": 1}', {"a": 1}),
        ('{"a": 1}}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ({"a": (1, 2.5, None, True, "é")}, {"a": [1, 2.5, None, True, "é"]}),
        ({"a": 10**60}, {"a": 10**60}),
        ({1: {True: None}}, {"1": {"true": None}}),
        (SimpleNamespace(a=1), {"a": 1}),
        (UserDict(a=UserList([1])), {"a": [1]}),
    ],
)
def test_arguments_are_healed_when_text_and_taken_when_data(
    arguments: Any, expected: dict[str, Any]
) -> None:
    reply = parse_message(
        {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": arguments}}]}
    )
    assert calls(reply) == [("f", expected)]
    assert reply.faults == ()


def test_arguments_that_are_data_keep_their_types() -> None:
    tool = {
        "name": "f",
        "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    }
    parser = ResponseParser(tools=[tool])
    for arguments, expected in (('{"n": "3"}', 3), ({"n": "3"}, "3")):
        message = {"tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}
        assert calls(parse_message(message, parser)) == [("f", {"n": expected})]


def test_what_json_cannot_say_is_replaced_and_told() -> None:
    message = {
        "tool_calls": [{"function": {"name": "f", "arguments": {"a": math.nan, "b": "\ud83d"}}}]
    }
    (call,) = parse_message(message).tool_calls
    assert call.arguments == {"a": None, "b": "\ufffd"}
    assert call.repaired


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
DEEP: list[Any] = []
for _ in range(2000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ("[1]", FaultKind.ARGUMENTS_NOT_AN_OBJECT),
        ("3", FaultKind.ARGUMENTS_NOT_AN_OBJECT),
        ([1], FaultKind.ARGUMENTS_NOT_AN_OBJECT),
        (3, FaultKind.ARGUMENTS_NOT_AN_OBJECT),
        ('{"a": ' + "[" * 2000, FaultKind.TOO_DEEP),
        ({"a": CYCLE}, FaultKind.TOO_DEEP),
        ({"a": DEEP}, FaultKind.TOO_DEEP),
        ({"a": object()}, FaultKind.UNREADABLE_ARGUMENTS),
        ({"a": {b"x": 1}}, FaultKind.UNREADABLE_ARGUMENTS),
        ({(1, 2): 1}, FaultKind.UNREADABLE_ARGUMENTS),
    ],
)
def test_arguments_that_cannot_be_read_are_faults_and_the_rest_is_kept(
    arguments: Any, kind: FaultKind
) -> None:
    message = {
        "content": "Hi",
        "tool_calls": [
            {"id": "a", "function": {"name": "f", "arguments": arguments}},
            {"id": "b", "function": {"name": "g", "arguments": "{}"}},
        ],
    }
    reply = parse_message(message)
    assert (reply.text, calls(reply)) == ("Hi", [("g", {})])
    assert [(fault.kind, fault.name) for fault in reply.faults] == [(kind, "f")]


def test_truncated_arguments_are_incomplete() -> None:
    reply = parse_message(
        {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"q": "x'}}]}
    )
    assert reply.tool_calls == ()
    assert [(call.id, call.arguments) for call in reply.incomplete_calls] == [("a", {"q": "x"})]


def test_calls_in_the_text_count_when_there_are_none_natively() -> None:
    text = 'On it.\n<tool_call>{"name": "ping", "arguments": {"n": 1}}</tool_call>'
    for message in (
        {"role": "assistant", "content": text},
        {"role": "assistant", "content": text, "tool_calls": []},
        {"content": [{"type": "text", "text": text}]},
        {"output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}]},
        {"candidates": [{"content": {"parts": [{"text": text}]}}]},
    ):
        reply = parse_message(message)
        assert (reply.text, calls(reply), reply.format) == (
            "On it.",
            [("ping", {"n": 1})],
            "hermes",
        )
        assert reply == parse_message(message)


def test_workflow_json_in_the_text_is_a_workflow() -> None:
    text = '{"content": "On it.", "next": [{"mcp": "ping", "args": {}}]}'
    reply = parse_message({"role": "assistant", "content": text})
    assert reply.workflow is not None
    assert reply.workflow.content == "On it."
    assert calls(reply) == [("ping", {})]


def test_a_call_that_arrives_natively_and_in_the_text_counts_once() -> None:
    message = {
        "role": "assistant",
        "content": '<tool_call>{"name": "ping", "arguments": {"b": 2, "a": 1}}</tool_call>',
        "tool_calls": [{"id": "x", "function": {"name": "ping", "arguments": '{"a": 1, "b": 2}'}}],
    }
    reply = parse_message(message)
    assert [(call.id, call.arguments) for call in reply.tool_calls] == [("x", {"a": 1, "b": 2})]
    assert (reply.text, reply.faults) == ("", ())
    message["tool_calls"][0]["function"]["name"] = "pong"
    reply = parse_message(message)
    assert calls(reply) == [("pong", {"a": 1, "b": 2})]
    assert [fault.kind for fault in reply.faults] == [FaultKind.CALL_IN_TEXT]


def test_ids_are_kept_and_made_where_there_are_none() -> None:
    message = {
        "tool_calls": [
            {"id": id, "function": {"name": "f", "arguments": {"n": n}}}
            for n, id in enumerate(["x", "x", "", None, 7, "x"])
        ]
    }
    ids = [call.id for call in parse_message(message).tool_calls]
    assert (ids[0], ids[4]) == ("x", "7")
    assert len(set(ids)) == 6
    assert all(id.startswith("call_") for id in (ids[1], ids[2], ids[3], ids[5]))


ODD: list[Any] = [
    None,
    True,
    5,
    1.5,
    "x",
    b"x",
    [],
    [[]],
    {},
    {"type": 5},
    {1},
    object(),
    print,
    int,
]


@pytest.mark.parametrize("label", MESSAGES)
def test_odd_types_inside_a_message_never_raise(label: str) -> None:
    def variants(value: Any) -> Any:
        """The value with one part replaced, for each part and each odd value."""
        yield from ODD
        if isinstance(value, dict):
            for key, item in value.items():
                for variant in variants(item):
                    yield {**value, key: variant}
        elif isinstance(value, list):
            for index, item in enumerate(value):
                for variant in variants(item):
                    yield [*value[:index], variant, *value[index + 1 :]]

    message = MESSAGES[label]
    for key, item in message.items():
        for variant in variants(item):
            assert isinstance(parse_message({**message, key: variant}), Reply)
            stream = MessageStream()
            stream.feed({**message, key: variant})
            stream.finish()


def test_what_is_readable_beside_an_odd_part_is_kept() -> None:
    message = {
        "role": "assistant",
        "content": 5,
        "reasoning_content": ["plan"],
        "tool_calls": [
            None,
            "x",
            {"function": {"name": 7}},
            CHAT["choices"][0]["message"]["tool_calls"][0],
        ],
    }
    reply = parse_message(message)
    assert (reply.reasoning, calls(reply)) == ("plan", [("get_weather", {"city": "Oslo"})])
    kinds = [fault.kind for fault in reply.faults]
    assert kinds.count(FaultKind.MALFORMED_MESSAGE) == 2
    assert kinds.count(FaultKind.MISSING_NAME) == 1


@pytest.mark.parametrize("value", [None, True, 5, 1.5, "text", b"bytes", {1}, object(), print, int])
def test_what_is_no_message_at_all_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match="must be a mapping, a list or an SDK object"):
        parse_message(value)
    with pytest.raises(turnwarden.WrongTypeError, match="must be a mapping or an SDK object"):
        MessageStream().feed(value)


@pytest.mark.parametrize("value", [{}, {"x": 1}, [1], [{"x": 1}], [[]]])
def test_a_mapping_or_list_of_something_else_is_a_fault(value: Any) -> None:
    assert [fault.kind for fault in parse_message(value).faults] == [FaultKind.MALFORMED_MESSAGE]


def test_an_empty_message_is_an_empty_reply() -> None:
    for message in ([], {"choices": []}, {"content": []}, {"role": "assistant", "content": None}):
        reply = parse_message(message)
        assert (reply.text, reply.tool_calls, reply.faults) == ("", (), ())


def test_an_error_of_the_provider_is_a_fault() -> None:
    reply = parse_message({"error": {"message": "Overloaded"}})
    assert "Overloaded" in reply.faults[0].message


class Raising:
    role = "assistant"
    tool_calls = CHAT["choices"][0]["message"]["tool_calls"]

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    @property
    def content(self) -> str:
        raise self.error("no")


def test_an_attribute_that_raises_is_a_fault_and_an_interrupt_is_passed_on() -> None:
    reply = parse_message(Raising(ValueError))
    assert len(reply.tool_calls) == 2
    assert [fault.message for fault in reply.faults] == [
        "content of test_native.Raising raised ValueError"
    ] or ("raised ValueError" in reply.faults[0].message)
    assert parse_message(Raising(AttributeError)).faults == ()
    with pytest.raises(KeyboardInterrupt):
        parse_message(Raising(KeyboardInterrupt))
    stream = MessageStream()
    with pytest.raises(KeyboardInterrupt):
        stream.feed(Raising(KeyboardInterrupt))
    stream.feed({"content": "still there"})
    stream.finish()
    assert stream.reply.text == "still there"


def test_objects_that_answer_to_any_name_are_harmless() -> None:
    assert isinstance(parse_message(MagicMock()), Reply)


def test_a_cyclic_message_is_read_once() -> None:
    message: dict[str, Any] = {"role": "assistant", "content": "Hi"}
    message["message"] = message
    message["tool_calls"] = [message]
    reply = parse_message(message)
    assert reply.text == "Hi"


def test_parts_in_another_thread_and_in_themselves_are_refused_while_one_is_read() -> None:
    stream = MessageStream()

    class Inside:
        @property
        def choices(self) -> Any:
            with pytest.raises(turnwarden.StreamBusyError):
                stream.feed({"choices": []})
            with pytest.raises(turnwarden.StreamBusyError):
                stream.finish()
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            return [{"delta": {"content": "Hi"}}]

    refused = []

    def other() -> None:
        try:
            stream.feed({"choices": []})
        except RuntimeError as error:
            refused.append(error)

    stream.feed(Inside())
    stream.finish()
    assert stream.reply.text == "Hi"
    assert refused


def test_replies_go_out_as_they_came() -> None:
    for message in MESSAGES.values():
        reply = parse_message(message)
        again = parse_message(reply.to_openai_message(include_reasoning=True))
        check(again, "openai_chat_json")
        anthropic = parse_message(reply.to_anthropic_message())
        assert (anthropic.text, anthropic.tool_calls) == (reply.text, reply.tool_calls)
        assert [call.id for call in anthropic.tool_calls] == ["call_a", "call_b"]


def test_a_native_message_as_text_is_the_same_message() -> None:
    for label, message in MESSAGES.items():
        check(turnwarden.parse(json.dumps(message)), label)


NATIVE = [
    row
    for row in map(json.loads, (VECTORS / "tool_calls.jsonl").read_text("utf-8").splitlines())
    if row["format"] in MESSAGES
]


@pytest.mark.parametrize("row", NATIVE, ids=lambda row: row["id"])
def test_vectors_of_native_messages_hold_for_the_decoded_message(row: dict[str, Any]) -> None:
    tools = [
        {
            "name": name,
            "input_schema": {"properties": {key: {"type": kind} for key, kind in types.items()}},
        }
        for name, types in row["tools"].items()
    ]
    reply = parse_message(json.loads(row["input"]), ResponseParser(tools=tools))
    expect = row["expect"]
    found = reply.incomplete_calls if row.get("incomplete") else reply.tool_calls
    assert [{"name": call.name, "arguments": call.arguments} for call in found] == expect["calls"]
    assert (reply.text, reply.reasoning) == (expect["content"], expect.get("reasoning"))
    assert reply.format == row["format"]


@pytest.mark.parametrize("role", ["user", "tool", "system", "developer", "function"])
def test_messages_of_users_and_tools_hold_no_calls(role: str) -> None:
    text = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
    for message in (
        {"role": role, "content": text},
        {"role": role, "content": [{"type": "text", "text": text}]},
        {"role": role, "parts": [{"text": text}]},
    ):
        reply = parse_message(message)
        assert (reply.text, reply.tool_calls) == ("", ())
        assert [fault.kind for fault in reply.faults] == [FaultKind.MALFORMED_MESSAGE]


@pytest.mark.parametrize("key", ["arguments", "args", "params", "parameters", "input"])
@pytest.mark.parametrize("value", ['{"q": "x"}', {"q": "x"}])
def test_arguments_are_found_under_the_names_that_servers_use(key: str, value: Any) -> None:
    for call in (
        {"id": "c1", "name": "search", key: value},
        {"id": "c1", "type": "function", "function": {"name": "search", key: value}},
    ):
        reply = parse_message({"role": "assistant", "content": None, "tool_calls": [call]})
        assert [call.arguments for call in reply.tool_calls] == [{"q": "x"}]


def test_text_beside_calls_is_kept_where_there_is_no_content() -> None:
    call = {"name": "search", "parameters": {"q": "x"}}
    reply = parse_message({"text": "I will look.", "tool_calls": [call]})
    assert reply.text == "I will look."
    assert len(reply.tool_calls) == 1


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": [{"text": "Ok"}, {"toolUse": {"name": "search"}}]},
        {"output": {"message": {"role": "assistant", "content": []}}, "usage": {}},
        {"messages": [{"role": "assistant"}], "usage": {}} | {"output": {}},
        {"role": "assistant", "content": [{"type": "tool-call", "toolName": "f", "args": {}}]},
        {"role": "assistant", "content": [{"type": "toolCall", "name": "f", "arguments": {}}]},
    ],
)
def test_what_an_unknown_api_says_is_never_lost_in_silence(message: Any) -> None:
    reply = parse_message(message)
    assert [str(fault.kind) for fault in reply.faults] == ["malformed_message"]


def test_the_same_call_once_more_counts_once() -> None:
    call = {"id": "c1", "function": {"name": "ping", "arguments": "{}"}}
    other = {"id": "c1", "function": {"name": "ping", "arguments": '{"n": 1}'}}
    reply = parse_message({"role": "assistant", "tool_calls": [call, call, other]})
    assert [call.arguments for call in reply.tool_calls] == [{}, {"n": 1}]
    assert len({call.id for call in reply.tool_calls}) == 2
