"""Native messages as they stream, from the deltas of four APIs to events and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import turnwarden
from hypothesis import given
from hypothesis import strategies as st
from turnwarden import (
    FaultKind,
    MessageStream,
    ParseFault,
    ReasoningDelta,
    Reply,
    ReplyFinished,
    ResponseParser,
    TextDelta,
    TextRetracted,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    parse_message,
    to_anthropic_events,
    to_openai_chunks,
)


def run(deltas: Iterable[Any], parser: ResponseParser | None = None) -> tuple[Reply, list[Any]]:
    """Give the reply and the events of a stream, which must agree."""
    stream = MessageStream(parser)
    events: list[Any] = []
    for delta in deltas:
        events += stream.feed(delta)
    events += stream.finish()
    check_events(events, stream.reply)
    return stream.reply, events


def check_events(events: list[Any], reply: Reply) -> None:
    text, reasoning = "", ""
    arguments: dict[int, str] = {}
    ended = {}
    for event in events:
        match event:
            case TextDelta(delta):
                text += delta
            case TextRetracted(length):
                text = text[:-length]
            case ReasoningDelta(delta):
                reasoning += delta
            case ToolCallStarted(index, _, _):
                assert index == len(arguments)
                arguments[index] = ""
            case ToolCallArguments(index, delta):
                arguments[index] += delta
            case ToolCallEnded(index, call):
                assert call.arguments_json == arguments[index]
                ended[index] = call
            case ParseFault() | ReplyFinished():
                pass
    assert (text, reasoning) == (reply.text, reply.reasoning or "")
    assert tuple(ended[index] for index in sorted(ended)) == reply.tool_calls
    assert events[-1] == ReplyFinished(reply)
    assert sum(isinstance(event, ParseFault) for event in events) == len(reply.faults)


def chunk(finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"object": "chat.completion.chunk", "choices": [choice]}


def call(arguments: Any = None, *, name: str | None = None, **fields: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return fields | {"function": {key: item for key, item in function.items() if item is not None}}


def calls(reply: Reply) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments_json) for call in reply.tool_calls]


def test_a_chat_stream_gives_the_events_of_a_text_stream() -> None:
    _, events = run(
        [
            chunk(role="assistant", content=None),
            chunk(reasoning_content="Weather."),
            chunk(content="On it."),
            chunk(tool_calls=[call("", name="f", index=0, id="a", type="function")]),
            chunk(tool_calls=[call('{"x"', index=0)]),
            chunk(tool_calls=[call(": 1}", index=0)]),
            chunk("tool_calls"),
            {"object": "chat.completion.chunk", "choices": [], "usage": {"total_tokens": 9}},
        ]
    )
    assert [event.type for event in events] == [
        "reasoning_delta",
        "text_delta",
        "tool_call_started",
        "tool_call_arguments",
        "tool_call_ended",
        "reply_finished",
    ]
    assert events[2] == ToolCallStarted(0, "a", "f")
    assert events[3] == ToolCallArguments(0, '{"x":1}')


def test_fragments_without_an_index_or_an_id_go_where_they_belong() -> None:
    reply, _ = run(
        [
            chunk(tool_calls=[call('{"x": ', name="f", id="a")]),
            chunk(tool_calls=[call("1}")]),
            chunk(tool_calls=[call("{}", name="g", id="b"), call("{}", name="h", id="c")]),
        ]
    )
    assert calls(reply) == [("a", "f", '{"x":1}'), ("b", "g", "{}"), ("c", "h", "{}")]


def test_a_second_call_under_one_index_is_a_call_of_its_own() -> None:
    reply, _ = run(
        [
            chunk(tool_calls=[call('{"x": 1}', name="f", index=0, id="a")]),
            chunk(tool_calls=[call('{"x": 2}', name="f", index=0, id="b")]),
            chunk(tool_calls=[call('{"x": 3}', name="f", index=0)]),
        ]
    )
    assert [arguments for _, _, arguments in calls(reply)] == ['{"x":1}', '{"x":2}', '{"x":3}']
    assert [id for id, _, _ in calls(reply)][:2] == ["a", "b"]


def test_one_id_for_every_call_is_kept_once_and_the_calls_are_all_there() -> None:
    reply, _ = run(
        [
            chunk(tool_calls=[call('{"x": 1}', name="f", index=0, id="call_0")]),
            chunk(tool_calls=[call('{"x": 2}', name="f", index=1, id="call_0")]),
        ]
    )
    assert [arguments for _, _, arguments in calls(reply)] == ['{"x":1}', '{"x":2}']
    assert calls(reply)[0][0] == "call_0"
    assert calls(reply)[1][0] != "call_0"


def test_whole_calls_as_data_in_one_delta_are_taken() -> None:
    reply, _ = run([chunk(tool_calls=[call({"x": [1]}, name="f", id="a"), call({}, name="g")])])
    assert [call.arguments for call in reply.tool_calls] == [{"x": [1]}, {}]


def test_calls_in_the_text_of_a_stream_come_when_the_message_is_over() -> None:
    text = 'On it.<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
    stream = MessageStream()
    events = [event for letter in text for event in stream.feed(chunk(content=letter))]
    assert all(isinstance(event, TextDelta) for event in events)
    assert stream.reply.tool_calls == ()
    assert [event.type for event in stream.finish()] == [
        "tool_call_started",
        "tool_call_arguments",
        "tool_call_ended",
        "reply_finished",
    ]
    assert stream.reply == parse_message({"role": "assistant", "content": text})
    native = chunk(tool_calls=[call('{"x": 1}', name="f", index=0, id="a")])
    reply, _ = run([chunk(content=text), native])
    assert calls(reply) == [("a", "f", '{"x":1}')]
    assert reply.text == "On it."


def test_the_reply_so_far_can_be_read_at_any_time() -> None:
    stream = MessageStream()
    assert stream.reply == parse_message([])
    stream.feed(chunk(content="Hi"))
    assert (stream.reply.text, stream.finished) == ("Hi", False)
    stream.feed(chunk(tool_calls=[call("{}", name="f", index=0, id="a")]))
    assert stream.reply.tool_calls == ()
    stream.finish()
    assert (len(stream.reply.tool_calls), stream.finished) == (1, True)
    assert stream.reply is stream.reply
    assert stream.finish() == []
    with pytest.raises(turnwarden.StreamFinishedError):
        stream.feed(chunk(content="more"))


def test_a_stream_that_is_cut_off_has_no_call_that_was_not_complete() -> None:
    reply, events = run([chunk(tool_calls=[call('{"q": "x', name="f", index=0, id="a")])])
    assert reply.tool_calls == ()
    assert [call.arguments for call in reply.incomplete_calls] == [{"q": "x"}]
    assert not any(isinstance(event, ToolCallEnded) for event in events)
    reply, _ = run([chunk("length", tool_calls=[call("", name="f", index=0, id="a")])])
    assert (reply.tool_calls, len(reply.incomplete_calls)) == ((), 1)


def test_characters_that_were_cut_in_halves_are_joined() -> None:
    reply, _ = run(
        [
            chunk(content="a\ud83d"),
            chunk(content="\ude00b\ud83d", reasoning_content="\ude00"),
            chunk(content=""),
            chunk(content="c"),
            chunk(tool_calls=[call('{"x": "\ud83d', name="f", index=0, id="a")]),
            chunk(tool_calls=[call('\ude00"}', index=0)]),
        ]
    )
    assert reply.text == "a\U0001f600b\ufffdc"
    assert reply.reasoning == "\ufffd"
    assert reply.tool_calls[0].arguments == {"x": "\U0001f600"}
    assert reply.faults == ()
    reply, _ = run([chunk(content="a"), chunk(content="\ud83d")])
    assert (reply.text, len(reply.faults)) == ("a", 1)
    assert parse_message({"role": "assistant", "content": "\ude00a\ud83d"}).text == "\ufffda\ufffd"


def test_an_unknown_mapping_in_a_stream_is_a_fault() -> None:
    reply, events = run([chunk(content="Hi"), {"x": 1}, chunk(content="!")])
    assert reply.text == "Hi!"
    assert [fault.kind for fault in reply.faults] == [FaultKind.MALFORMED_MESSAGE]
    assert isinstance(events[1], ParseFault)


def test_the_parser_limits_and_types_a_stream() -> None:
    tool = {
        "name": "f",
        "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    }
    parser = ResponseParser(tools=[tool], max_calls=1)
    deltas = [
        chunk(tool_calls=[call('{"n": "3"}', name="F", index=0, id="a")]),
        chunk(tool_calls=[call("{}", name="g", index=1, id="b")]),
    ]
    reply, _ = run(deltas, parser)
    assert calls(reply) == [("a", "f", '{"n":3}')]
    assert [fault.kind for fault in reply.faults] == [FaultKind.TOO_MANY_CALLS]


def test_many_small_deltas_are_put_together() -> None:
    stream = MessageStream()
    stream.feed(chunk(tool_calls=[call('{"x": "', name="f", index=0, id="a")]))
    piece = chunk(tool_calls=[call("ab", index=0)])
    for _ in range(100_000):
        stream.feed(piece)
    stream.feed(chunk(tool_calls=[call('"}', index=0)]))
    stream.finish()
    assert stream.reply.tool_calls[0].arguments == {"x": "ab" * 100_000}


def blocks_of(events: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """Give the content blocks of Anthropic events, which must come one after the other."""
    blocks: list[tuple[str, str]] = []
    is_open = False
    for event in events:
        match event["type"]:
            case "content_block_start":
                assert (is_open, event["index"]) == (False, len(blocks))
                is_open = True
                block = event["content_block"]
                blocks.append((block.get("name", block["type"]), ""))
            case "content_block_delta":
                assert (is_open, event["index"]) == (True, len(blocks) - 1)
                (text,) = (value for key, value in event["delta"].items() if key != "type")
                blocks[-1] = (blocks[-1][0], blocks[-1][1] + text)
            case "content_block_stop":
                assert (is_open, event["index"]) == (True, len(blocks) - 1)
                is_open = False
            case _:
                assert not is_open
    return blocks


def test_what_interleaves_becomes_blocks_one_after_the_other() -> None:
    deltas = [
        chunk(
            tool_calls=[call("", name="f", index=0, id="a"), call("", name="g", index=1, id="b")]
        ),
        chunk(tool_calls=[call('{"y":2,', index=1), call('{"x":1,"w":', index=0)]),
        chunk(content="Hm, "),
        chunk(tool_calls=[call('"z":3}', index=1)]),
        chunk(content="so.", reasoning_content="thought"),
        chunk(tool_calls=[call("4}", index=0)]),
        chunk("tool_calls"),
    ]
    reply, events = run(deltas, ResponseParser(buffer_arguments=False))
    assert calls(reply) == [("a", "f", '{"x":1,"w":4}'), ("b", "g", '{"y":2,"z":3}')]
    # The first call streams while it is open, the second waits for its end.
    seen = [(event.index, event.delta) for event in events if event.type == "tool_call_arguments"]
    assert seen[0] == (0, '{"x":1')
    assert [index for index, _ in seen] == [0] * (len(seen) - 1) + [1]
    blocks = blocks_of(to_anthropic_events(events))
    assert blocks[0] == ("f", '{"x":1,"w":4}')
    assert ("g", '{"y":2,"z":3}') in blocks
    said = "".join(text for kind, text in blocks if kind == "text")
    assert (said, dict(blocks)["thinking"]) == ("Hm, so.", "thought")


def test_events_keep_the_order_of_the_parts_of_one_delta() -> None:
    parts = [
        {"functionCall": {"id": "a", "name": "f", "args": {}}},
        {"text": "so", "thought": True},
        {"functionCall": {"id": "b", "name": "g", "args": {}}},
        {"text": "Done."},
    ]
    _, events = run([{"candidates": [{"content": {"role": "model", "parts": parts}}]}])
    blocks = blocks_of(to_anthropic_events(events))
    assert blocks == [("f", "{}"), ("thinking", "so"), ("g", "{}"), ("text", "Done.")]


def test_a_call_that_is_refused_while_it_streams_does_not_hold_back_the_text() -> None:
    parser = ResponseParser(buffer_arguments=False)
    stream = parser.stream()
    text = '<tool_call>{"name": "f", "arguments": {"a": 1, "b": 1e999}}</tool_call>on'
    events = [event for character in text for event in stream.feed(character)]
    assert blocks_of(to_anthropic_events(events))[1] == ("text", "on")


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def chat_deltas(message: dict[str, Any], size: int) -> Iterator[dict[str, Any]]:
    yield chunk(role="assistant")
    for piece in pieces(message["reasoning"], size):
        yield chunk(reasoning_content=piece)
    for piece in pieces(message["text"], size):
        yield chunk(content=piece)
    for index, (name, arguments) in enumerate(message["calls"]):
        yield chunk(tool_calls=[call("", name=name, index=index, id=f"c{index}")])
        for piece in pieces(json.dumps(arguments), size):
            yield chunk(tool_calls=[call(piece, index=index)])
    yield chunk("tool_calls" if message["calls"] else "stop")


def chat_message(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": message["text"],
        "reasoning_content": message["reasoning"],
        "tool_calls": [
            call(json.dumps(arguments), name=name, id=f"c{index}")
            for index, (name, arguments) in enumerate(message["calls"])
        ],
    }


def anthropic_deltas(message: dict[str, Any], size: int) -> Iterator[dict[str, Any]]:
    def block(start: dict[str, Any], kind: str, key: str, text: str) -> Iterator[dict[str, Any]]:
        nonlocal index
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for piece in pieces(text, size):
            yield {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": kind, key: piece},
            }
        yield {"type": "content_block_stop", "index": index}
        index += 1

    index = 0
    yield {"type": "message_start", "message": {"type": "message", "content": []}}
    yield from block(
        {"type": "thinking", "thinking": ""}, "thinking_delta", "thinking", message["reasoning"]
    )
    yield from block({"type": "text", "text": ""}, "text_delta", "text", message["text"])
    for number, (name, arguments) in enumerate(message["calls"]):
        start = {"type": "tool_use", "id": f"c{number}", "name": name, "input": {}}
        yield from block(start, "input_json_delta", "partial_json", json.dumps(arguments))
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    yield {"type": "message_stop"}


def anthropic_message(message: dict[str, Any]) -> dict[str, Any]:
    blocks = [
        {"type": "thinking", "thinking": message["reasoning"], "signature": ""},
        {"type": "text", "text": message["text"]},
    ]
    for number, (name, arguments) in enumerate(message["calls"]):
        blocks.append({"type": "tool_use", "id": f"c{number}", "name": name, "input": arguments})
    return {"type": "message", "role": "assistant", "content": blocks}


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
messages = st.fixed_dictionaries(
    {
        "reasoning": st.text("ab \n", max_size=12),
        "text": st.text("ab. \n", max_size=12),
        "calls": st.lists(
            st.tuples(
                st.sampled_from("fgh"), st.dictionaries(st.text(max_size=5), values, max_size=3)
            ),
            max_size=3,
        ),
    }
)


@given(messages, st.integers(1, 9))
def test_a_stream_and_the_whole_message_agree_however_it_is_cut(
    message: dict[str, Any], size: int
) -> None:
    for whole, deltas in (
        (chat_message(message), chat_deltas(message, size)),
        (anthropic_message(message), anthropic_deltas(message, size)),
    ):
        reply = parse_message(whole)
        assert reply.faults == ()
        assert reply.text == message["text"].strip()
        assert (reply.reasoning or "") == message["reasoning"].strip()
        assert [(call.name, call.arguments) for call in reply.tool_calls] == message["calls"]
        assert [call.id for call in reply.tool_calls] == [
            f"c{n}" for n in range(len(message["calls"]))
        ]
        streamed, _ = run(deltas)
        assert streamed == reply


@given(messages, st.integers(1, 9))
def test_events_go_out_as_deltas_that_read_back_the_same(
    message: dict[str, Any], size: int
) -> None:
    reply, events = run(chat_deltas(message, size))
    for deltas in (to_openai_chunks(events), to_anthropic_events(events)):
        again, _ = run(deltas)
        assert again.text == reply.text
        assert (again.reasoning or "") == (reply.reasoning or "")
        assert calls(again) == calls(reply)
        assert again.faults == ()


MEMBERS = [
    "type",
    "choices",
    "delta",
    "message",
    "content",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "index",
    "id",
    "text",
    "input",
    "parts",
    "candidates",
    "functionCall",
    "args",
    "output",
    "item",
    "content_block",
    "partial_json",
    "response",
    "thinking",
]
TYPES = [
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_start",
    "message_delta",
    "error",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "chunk",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.reasoning_summary_text.delta",
]
scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "{", "text"])
json_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=5)
    ),
    max_leaves=20,
)
event_types = st.sampled_from(TYPES)


@given(st.lists(st.tuples(event_types | st.none(), json_values), max_size=6))
def test_no_mapping_whatever_raises(deltas: list[tuple[str | None, Any]]) -> None:
    stream = MessageStream()
    events = []
    for kind, delta in deltas:
        if isinstance(delta, dict):
            events += stream.feed(delta if kind is None else delta | {"type": kind})
    events += stream.finish()
    check_events(events, stream.reply)
    for _, delta in deltas:
        if isinstance(delta, dict | list):
            assert isinstance(parse_message(delta), Reply)


def test_objects_stream_like_mappings() -> None:
    def namespaces(value: Any) -> Any:
        if isinstance(value, list):
            return [namespaces(item) for item in value]
        if isinstance(value, dict):
            return SimpleNamespace(**{key: namespaces(item) for key, item in value.items()})
        return value

    message = {"reasoning": "r", "text": "t", "calls": [("f", {"x": 1})]}
    for deltas in (chat_deltas, anthropic_deltas):
        reply, _ = run(deltas(message, 2))
        again, _ = run(namespaces(delta) for delta in deltas(message, 2))
        assert again == reply
