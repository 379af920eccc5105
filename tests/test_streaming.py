"""Streams: events, iterators, and the stream formats of other APIs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import turnwarden
import vectors_runner as vectors
from turnwarden import ResponseParser, ToolCall

CALL = '<tool_call>{"name": "search", "arguments": {"q": "x", "n": 2}}</tool_call>'
REPLY = f"<think>Hm.</think>Let me look.\n{CALL}\n{CALL}"
PARSER = ResponseParser()


def kinds(events: list[turnwarden.Event]) -> list[str]:
    return [event.type for event in events]


# Feeding


def test_text_is_passed_on_at_once() -> None:
    stream = PARSER.stream()
    assert stream.feed("Hello ") == [turnwarden.TextDelta("Hello")]
    assert stream.feed("world") == [turnwarden.TextDelta(" world")]
    assert kinds(stream.finish()) == ["reply_finished"]


def test_the_events_of_a_reply_come_in_order() -> None:
    events = PARSER.stream().feed(REPLY)
    stream = PARSER.stream()
    events = stream.feed(REPLY) + stream.finish()
    assert kinds(events) == [
        "reasoning_delta",
        "text_delta",
        "tool_call_started",
        "tool_call_arguments",
        "tool_call_ended",
        "tool_call_started",
        "tool_call_arguments",
        "tool_call_ended",
        "reply_finished",
    ]
    started = [event for event in events if isinstance(event, turnwarden.ToolCallStarted)]
    assert [(event.index, event.name) for event in started] == [(0, "search"), (1, "search")]


def test_a_stream_shows_the_reply_so_far() -> None:
    stream = PARSER.stream()
    stream.feed(f"Ok.{CALL}<tool_call>")
    assert not stream.finished
    assert stream.reply.text == "Ok."
    assert len(stream.reply.tool_calls) == 1
    stream.finish()
    assert stream.finished
    assert stream.reply is stream.reply


def test_a_second_finish_gives_nothing_and_feeding_after_it_is_an_error() -> None:
    stream = PARSER.stream()
    assert stream.finish()
    assert stream.finish() == []
    with pytest.raises(RuntimeError, match="finished") as raised:
        stream.feed("more")
    assert isinstance(raised.value, turnwarden.TurnwardenError)


def test_a_wrong_chunk_leaves_the_stream_usable() -> None:
    stream = PARSER.stream()
    stream.feed("Hel")
    with pytest.raises(TypeError, match="NoneType"):
        stream.feed(None)  # type: ignore[arg-type]
    stream.feed("lo")
    stream.finish()
    assert stream.reply.text == "Hello"


@pytest.mark.parametrize("text", ["é猫😀", "a\ud83d\ude00b", "\ud83d", "a\udc00", REPLY + "é"])
def test_characters_may_be_cut_anywhere(text: str) -> None:
    whole = PARSER.parse(text)
    assert vectors.streamed(PARSER, list(text)) == whole
    data = text.encode("utf-8", "surrogatepass")
    assert vectors.streamed(PARSER, [data[at : at + 1] for at in range(len(data))]) == whole


def test_invalid_bytes_are_replaced_the_same_at_every_split() -> None:
    data = b"a\xff\xe7\x8cb\xf0\x9f\x98"
    whole = PARSER.parse(data)
    assert whole.text == "a\ufffd\ufffdb\ufffd"
    for at in range(len(data) + 1):
        assert vectors.streamed(PARSER, [data[:at], data[at:]]) == whole


def test_str_and_bytes_chunks_can_be_mixed() -> None:
    stream = PARSER.stream()
    data = "猫".encode()
    stream.feed(data[:1])
    stream.feed(data[1:])
    stream.feed("é")
    stream.finish()
    assert stream.reply.text == "猫é"


def test_closing_tag_alone_takes_the_text_back() -> None:
    stream = PARSER.stream()
    events = stream.feed("Let me think.") + stream.feed("</think>Hello") + stream.finish()
    vectors.check_events(events)
    assert "text_retracted" in kinds(events)
    assert stream.reply.reasoning == "Let me think."
    assert stream.reply.text == "Hello"
    stream = ResponseParser(reasoning_open=True).stream()
    events = stream.feed("Let me think.") + stream.feed("</think>Hello") + stream.finish()
    vectors.check_events(events)
    assert "text_retracted" not in kinds(events)
    assert stream.reply.text == "Hello"


@pytest.mark.parametrize("buffered", [True, False])
def test_argument_deltas_join_to_the_arguments(buffered: bool) -> None:
    parser = ResponseParser(buffer_arguments=buffered)
    for row in vectors.rows("tool_calls") + vectors.rows("workflow_json"):
        assert vectors.streamed(parser, list(row["input"])) == parser.parse(row["input"])


@pytest.mark.parametrize(
    ("begun", "rest"),
    [
        ('<tool_call>{"name": "f", "arguments": {"a": [1, 2], "b": "par', 't"}}</tool_call>'),
        ('[TOOL_CALLS][{"name": "f", "arguments": {"a": [1, 2], "b": "par', 't"}}]'),
        ('[TOOL_CALLS]f{"a": [1, 2], "b": "par', 't"}'),
        ('{"content": "", "next": [{"mcp": "f", "args": {"a": [1, 2], "b": "par', 't"}}]}'),
        ("<function=f><parameter=a>[1, 2]</parameter><parameter=b>par", "t</parameter></function>"),
        (
            "<tool_call>f<arg_key>a</arg_key><arg_value>[1, 2]</arg_value>"
            "<arg_key>b</arg_key><arg_value>par",
            "t</arg_value></tool_call>",
        ),
    ],
)
def test_without_buffering_values_are_passed_on_as_they_close(begun: str, rest: str) -> None:
    stream = ResponseParser(buffer_arguments=False).stream()
    events = [event for character in begun for event in stream.feed(character)]
    assert kinds(events) == ["tool_call_started", "tool_call_arguments"]
    assert [e.delta for e in events if isinstance(e, turnwarden.ToolCallArguments)] == [
        '{"a":[1,2]'
    ]
    events += stream.feed(rest) + stream.finish()
    vectors.check_events(events)
    assert [call.arguments for call in stream.reply.tool_calls] == [{"a": [1, 2], "b": "part"}]
    assert kinds(events).count("tool_call_started") == 1

    stream = ResponseParser().stream()
    assert "tool_call_arguments" not in kinds(stream.feed(begun))


def test_values_passed_on_have_their_declared_type() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    parser = ResponseParser(tools=[{"name": "F", "inputSchema": schema}], buffer_arguments=False)
    stream = parser.stream()
    events = stream.feed('<tool_call>{"name": "f", "arguments": {"a": "3", "b": "4"')
    assert events[0].to_dict()["name"] == "F"
    assert [e.delta for e in events if isinstance(e, turnwarden.ToolCallArguments)] == ['{"a":3']
    events += stream.feed("}}</tool_call>") + stream.finish()
    vectors.check_events(events)
    assert stream.reply.tool_calls[0].arguments == {"a": 3, "b": "4"}


def test_a_call_that_turns_out_otherwise_is_told_anew() -> None:
    text = '<tool_call>{"mcp": "f", "args": {"a": 1, "b": 2}, "name": "g"}</tool_call>'
    stream = ResponseParser(buffer_arguments=False).stream()
    events = [event for character in text for event in stream.feed(character)] + stream.finish()
    assert kinds(events).count("tool_call_started") == 2
    ended = [event for event in events if isinstance(event, turnwarden.ToolCallEnded)]
    assert [(event.index, event.call.name) for event in ended] == [(1, "g")]
    assert stream.reply == ResponseParser().parse(text)


def test_many_streams_of_one_parser_do_not_mix() -> None:
    streams = [PARSER.stream() for _ in range(50)]
    for at in range(len(REPLY)):
        for stream in streams:
            stream.feed(REPLY[at])
    for stream in streams:
        stream.finish()
        assert stream.reply == PARSER.parse(REPLY)


def test_a_stream_survives_threads() -> None:
    stream = PARSER.stream()
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(stream.feed, ["word "] * 2000):
            pass
    stream.finish()
    assert stream.reply.text == ("word " * 2000).strip()


# Iterating


def test_iter_gives_the_events_of_all_chunks() -> None:
    events = list(PARSER.iter(REPLY[at : at + 4] for at in range(0, len(REPLY), 4)))
    vectors.check_events(events)
    assert isinstance(events[-1], turnwarden.ReplyFinished)
    assert events[-1].reply == PARSER.parse(REPLY)


def test_iter_keeps_what_it_has_when_the_source_breaks() -> None:
    def source() -> Iterator[str]:
        yield f"Ok.{CALL}"
        raise ConnectionError("gone")

    events = PARSER.iter(source())
    with pytest.raises(ConnectionError, match="gone"):
        list(events)
    assert events.reply.text == "Ok."
    assert len(events.reply.tool_calls) == 1


def test_iter_is_lazy() -> None:
    taken = []

    def source() -> Iterator[str]:
        for word in ("one ", "two ", "three "):
            taken.append(word)
            yield word

    events = PARSER.iter(source())
    assert taken == []
    next(events)
    assert taken == ["one "]


@pytest.mark.parametrize("wrong", [3, None])
def test_iter_needs_an_iterable(wrong: Any) -> None:
    with pytest.raises(TypeError, match="iterable"):
        PARSER.iter(wrong)


async def _chunks(text: str) -> AsyncIterator[str]:
    for at in range(0, len(text), 4):
        await asyncio.sleep(0)
        yield text[at : at + 4]


def test_aiter_gives_the_events_of_all_chunks() -> None:
    async def main() -> list[turnwarden.Event]:
        return [event async for event in PARSER.aiter(_chunks(REPLY))]

    assert asyncio.run(main()) == list(
        PARSER.iter([REPLY[at : at + 4] for at in range(0, len(REPLY), 4)])
    )


def test_aiter_takes_plain_iterables_and_keeps_what_it_has() -> None:
    async def broken() -> AsyncIterator[str]:
        yield f"Ok.{CALL}"
        raise ConnectionError("gone")

    async def main() -> None:
        events = [event async for event in PARSER.aiter([REPLY])]
        assert events == list(PARSER.iter([REPLY]))
        seen = PARSER.aiter(broken())
        with pytest.raises(ConnectionError, match="gone"):
            async for _ in seen:
                pass
        assert len(seen.reply.tool_calls) == 1

    asyncio.run(main())


# Out again


def joined_openai(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Put chunks together as a client does."""
    message: dict[str, Any] = {"content": "", "reasoning_content": "", "tool_calls": []}
    for chunk in chunks:
        assert chunk["object"] == "chat.completion.chunk"
        (choice,) = chunk["choices"]
        delta = choice["delta"]
        message["role"] = delta.get("role", message.get("role"))
        message["content"] += delta.get("content", "")
        message["reasoning_content"] += delta.get("reasoning_content", "")
        for call in delta.get("tool_calls", []):
            calls = message["tool_calls"]
            if call["index"] == len(calls):
                calls.append({"id": call["id"], "type": call["type"], "function": call["function"]})
                continue
            assert "id" not in call
            assert "name" not in call["function"]
            function = calls[call["index"]]["function"]
            calls[call["index"]]["function"] = function | {
                "arguments": function["arguments"] + call["function"]["arguments"]
            }
        message["finish_reason"] = choice["finish_reason"]
    return message


@pytest.mark.parametrize("buffered", [True, False])
def test_openai_chunks_join_to_the_message(buffered: bool) -> None:
    parser = ResponseParser(buffer_arguments=buffered)
    chunks = list(turnwarden.to_openai_chunks(parser.iter(REPLY), model="m"))
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert {chunk["model"] for chunk in chunks} == {"m"}
    assert "role" not in chunks[1]["choices"][0]["delta"]
    message = joined_openai(chunks)
    reply = parser.parse(REPLY)
    assert message["role"] == "assistant"
    assert message["content"] == reply.text
    assert message["reasoning_content"] == reply.reasoning
    assert [call["function"] for call in message["tool_calls"]] == [
        call.to_openai()["function"] for call in reply.tool_calls
    ]
    assert message["finish_reason"] == "tool_calls"
    json.dumps(chunks)


def test_the_finish_reason_tells_how_the_reply_ended() -> None:
    for text, reason in [
        ("Hello", "stop"),
        (CALL, "tool_calls"),
        (CALL[:-30], "length"),
        ("", "stop"),
    ]:
        chunks = list(turnwarden.to_openai_chunks(PARSER.iter([text])))
        assert joined_openai(chunks)["finish_reason"] == reason


@pytest.mark.parametrize("buffered", [True, False])
def test_a_call_that_is_cut_off_never_looks_like_one_without_arguments(buffered: bool) -> None:
    parser = ResponseParser(buffer_arguments=buffered)
    text = CALL + '<tool_call>{"name": "delete_all", "arg'
    message = joined_openai(list(turnwarden.to_openai_chunks(parser.iter([text]))))
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["search"]


def test_calls_are_numbered_as_the_client_sees_them() -> None:
    call = ToolCall("f", {"a": 1}, id="c7")
    events: list[turnwarden.Event] = [
        turnwarden.ToolCallStarted(0, "c6", "refused"),
        turnwarden.ToolCallStarted(1, "c7", "f"),
        turnwarden.ToolCallEnded(1, call),
    ]
    message = joined_openai(list(turnwarden.to_openai_chunks(events)))
    assert message["tool_calls"] == [call.to_openai()]


def joined_anthropic(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Put events together as a client does."""
    assert events[0]["type"] == "message_start"
    assert events[-1]["type"] == "message_stop"
    message = dict(events[0]["message"], content=[])
    opened: int | None = None
    pieces: dict[int, str] = {}
    for event in events[1:-1]:
        match event["type"]:
            case "content_block_start":
                assert opened is None
                opened = event["index"]
                assert opened == len(message["content"])
                message["content"].append(dict(event["content_block"]))
                pieces[opened] = ""
            case "content_block_delta":
                assert event["index"] == opened
                delta = {key: value for key, value in event["delta"].items() if key != "type"}
                ((_, piece),) = delta.items()
                pieces[event["index"]] += piece
            case "content_block_stop":
                assert event["index"] == opened
                block = message["content"][opened]
                key = {"text": "text", "thinking": "thinking", "tool_use": "input"}[block["type"]]
                block[key] = json.loads(pieces[opened]) if key == "input" else pieces[opened]
                opened = None
            case "message_delta":
                message |= event["delta"]
    assert opened is None
    return message


@pytest.mark.parametrize("buffered", [True, False])
def test_anthropic_events_join_to_the_message(buffered: bool) -> None:
    parser = ResponseParser(buffer_arguments=buffered)
    events = list(turnwarden.to_anthropic_events(parser.iter(REPLY), model="m", id="msg_1"))
    message = joined_anthropic(events)
    reply = parser.parse(REPLY)
    blocks = message["content"]
    assert (message["id"], message["model"]) == ("msg_1", "m")
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use", "tool_use"]
    assert blocks[0]["thinking"] == reply.reasoning
    assert blocks[1]["text"] == reply.text
    assert [(block["name"], block["input"]) for block in blocks[2:]] == [
        (call.name, call.arguments) for call in reply.tool_calls
    ]
    assert message["stop_reason"] == "tool_use"
    json.dumps(events)


def test_the_stop_reason_tells_how_the_reply_ended() -> None:
    for text, reason in [("Hello", "end_turn"), (CALL, "tool_use"), (CALL[:-30], "max_tokens")]:
        events = list(turnwarden.to_anthropic_events(PARSER.iter([text])))
        assert joined_anthropic(events)["stop_reason"] == reason


def test_asynchronous_events_give_asynchronous_messages() -> None:
    async def main() -> None:
        chunks = turnwarden.to_openai_chunks(PARSER.aiter(_chunks(REPLY)), id="c", created=0)
        got = [chunk async for chunk in chunks]
        assert joined_openai(got)["finish_reason"] == "tool_calls"
        events = turnwarden.to_anthropic_events(PARSER.aiter(_chunks(REPLY)))
        assert joined_anthropic([event async for event in events])["stop_reason"] == "tool_use"

    asyncio.run(main())


def test_events_match_by_position() -> None:
    match turnwarden.ToolCallEnded(3, ToolCall("f", {"a": 1})):
        case turnwarden.ToolCallEnded(index, ToolCall(name, {"a": value})):
            assert (index, name, value) == (3, "f", 1)
        case _:
            raise AssertionError


class _Aiter:
    def __init__(self, items: list[Any]) -> None:
        self._items = iter(items)

    def __aiter__(self) -> _Aiter:
        return self

    async def __anext__(self) -> Any:
        for item in self._items:
            return item
        raise StopAsyncIteration


@pytest.mark.parametrize("convert", [turnwarden.to_openai_chunks, turnwarden.to_anthropic_events])
def test_what_is_no_event_is_named_with_its_position(convert: Any) -> None:
    good = turnwarden.TextDelta("a")
    for wrong in ("text", None, 3, {"type": "text_delta"}):
        found = type(wrong).__qualname__
        with pytest.raises(TypeError, match=rf"events\[1\] must be an event, .* not {found}"):
            list(convert([good, wrong]))

        async def drain(items: list[Any]) -> None:
            async for _ in convert(_Aiter(items)):
                pass

        with pytest.raises(turnwarden.WrongTypeError, match=r"events\[1\]"):
            asyncio.run(drain([good, wrong]))


@pytest.mark.parametrize("convert", [turnwarden.to_openai_chunks, turnwarden.to_anthropic_events])
@pytest.mark.parametrize("wrong", ["text", "", b"", 3, None, {}, object()])
def test_what_cannot_hold_events_is_refused_at_the_call(convert: Any, wrong: Any) -> None:
    with pytest.raises(turnwarden.WrongTypeError, match="events must be an iterable of events"):
        convert(wrong)


def test_options_of_the_way_out_are_checked_at_the_call() -> None:
    for convert, option, wrong in (
        (turnwarden.to_openai_chunks, "model", 3),
        (turnwarden.to_openai_chunks, "id", 3),
        (turnwarden.to_openai_chunks, "created", "now"),
        (turnwarden.to_openai_chunks, "created", True),
        (turnwarden.to_anthropic_events, "model", None),
        (turnwarden.to_anthropic_events, "id", b"x"),
    ):
        with pytest.raises(TypeError, match=f"{option} must be"):
            convert([], **{option: wrong})  # pyright: ignore[reportArgumentType, reportCallIssue]


@pytest.mark.parametrize("wrong", [None, 3, object()])
def test_aiter_needs_an_iterable(wrong: Any) -> None:
    with pytest.raises(TypeError, match="chunks must be an iterable of str or bytes"):
        turnwarden.ResponseParser().aiter(wrong)


@pytest.mark.parametrize("wrong", [-1, -(2**70), 2**70, True])
def test_an_event_has_places_that_there_can_be(wrong: Any) -> None:
    call = turnwarden.ToolCall("ping")
    for make, field in (
        (lambda: turnwarden.ToolCallStarted(wrong, "c1", "ping"), "index"),
        (lambda: turnwarden.ToolCallArguments(wrong, "{}"), "index"),
        (lambda: turnwarden.ToolCallEnded(wrong, call), "index"),
        (lambda: turnwarden.TextRetracted(wrong), "length"),
        (lambda: turnwarden.ParseFault("junk", wrong, "junk"), "offset"),
    ):
        with pytest.raises((turnwarden.ConfigurationError, turnwarden.WrongTypeError)) as raised:
            make()
        assert field in raised.value.__notes__[0]


def test_lone_surrogates_in_events_and_calls_are_replaced() -> None:
    for made in (
        turnwarden.TextDelta("a\ud800").text,
        turnwarden.ReasoningDelta("a\ud800").text,
        turnwarden.ToolCallStarted(0, "c", "a\ud800").name,
        turnwarden.ToolCallArguments(0, "a\ud800").delta,
        turnwarden.ParseFault("junk", 0, "a\ud800").message,
        turnwarden.Fault("junk", 0, None, "a\ud800").message,
        turnwarden.ToolCall("a\ud800").name,
        turnwarden.ToolCall("x", id="a\ud800").id,
    ):
        assert made == "a\ufffd"
    with pytest.raises(ValueError, match="is none of"):
        turnwarden.Repair("\ud800", 0)
