"""What a model may give: text, chunks, native messages and deltas, as dicts or SDK objects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import turnwarden
from message_pairing import check_history
from turnwarden import ResponseParser, TextDelta
from turnwarden.engine import AgentLoop, ModelError, RunResult
from turnwarden.engine.events import Event, ReplyProgress
from turnwarden.state import WorkflowConfig

TEXT_CALL = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": "2"}}</tool_call>'
NATIVE_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'},
        }
    ],
}
NATIVE_ANSWER = {"role": "assistant", "content": "It is 3."}
ANTHROPIC_CALL = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "Adding."},
        {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1, "b": 2}},
    ],
}
ANTHROPIC_ANSWER = {"role": "assistant", "content": [{"type": "text", "text": "It is 3."}]}


def add(a: int, b: int) -> int:
    return a + b


def attributes(value: Any) -> Any:
    """The same as an object of attributes, as SDKs have them."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: attributes(item) for key, item in value.items()})
    return [attributes(item) for item in value] if isinstance(value, list) else value


def openai_deltas(message: dict[str, Any], usage: int | None = None) -> Iterator[dict[str, Any]]:
    """A message as the chunks of a stream."""

    def chunk(delta: dict[str, Any], end: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": end}
        return {"object": "chat.completion.chunk", "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for letter in message.get("content") or "":
        yield chunk({"content": letter})
    for index, call in enumerate(message.get("tool_calls", ())):
        head = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        yield chunk({"tool_calls": [head]})
        for letter in call["function"]["arguments"]:
            piece = {"index": index, "function": {"arguments": letter}}
            yield chunk({"tool_calls": [piece]})
    yield chunk({}, "tool_calls" if message.get("tool_calls") else "stop")
    if usage is not None:
        total = {"prompt_tokens": 0, "completion_tokens": usage, "total_tokens": usage}
        yield {"object": "chat.completion.chunk", "choices": [], "usage": total}


def completion(message: dict[str, Any]) -> dict[str, Any]:
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}


async def later(items: Any) -> AsyncIterator[Any]:
    for item in items:
        await asyncio.sleep(0)
        yield item


async def awaited(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


def halves(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]


# Each gives a call and an answer, in its own way.
OPENAI_WAYS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "text": lambda: (TEXT_CALL, "It is 3."),
    "bytes": lambda: (TEXT_CALL.encode(), b"It is 3."),
    "awaitable text": lambda: (awaited(TEXT_CALL), awaited("It is 3.")),
    "list of text": lambda: (halves(TEXT_CALL), halves("It is 3.")),
    "iterator of text": lambda: (iter(halves(TEXT_CALL)), iter(halves("It is 3."))),
    "generator of letters": lambda: ((c for c in TEXT_CALL), (c for c in "It is 3.")),
    "async generator": lambda: (later(halves(TEXT_CALL)), later(halves("It is 3."))),
    "awaitable async generator": lambda: (awaited(later(TEXT_CALL)), awaited(later("It is 3."))),
    "reply": lambda: (turnwarden.parse(TEXT_CALL), turnwarden.parse("It is 3.")),
    "message": lambda: (NATIVE_CALL, NATIVE_ANSWER),
    "awaitable message": lambda: (awaited(NATIVE_CALL), awaited(NATIVE_ANSWER)),
    "response": lambda: (completion(NATIVE_CALL), completion(NATIVE_ANSWER)),
    "message object": lambda: (attributes(NATIVE_CALL), attributes(NATIVE_ANSWER)),
    "response object": lambda: (
        attributes(completion(NATIVE_CALL)),
        attributes(completion(NATIVE_ANSWER)),
    ),
    "deltas": lambda: (openai_deltas(NATIVE_CALL), openai_deltas(NATIVE_ANSWER)),
    "async deltas": lambda: (
        later(openai_deltas(NATIVE_CALL)),
        later(openai_deltas(NATIVE_ANSWER)),
    ),
    "delta objects": lambda: (
        iter([attributes(chunk) for chunk in openai_deltas(NATIVE_CALL)]),
        iter([attributes(chunk) for chunk in openai_deltas(NATIVE_ANSWER)]),
    ),
    "anthropic message": lambda: (ANTHROPIC_CALL, ANTHROPIC_ANSWER),
    "anthropic blocks": lambda: (ANTHROPIC_CALL["content"], ANTHROPIC_ANSWER["content"]),
    "anthropic objects": lambda: (attributes(ANTHROPIC_CALL), attributes(ANTHROPIC_ANSWER)),
}


def run_way(way: str, style: Any, **options: Any) -> RunResult:
    replies = iter(OPENAI_WAYS[way]())
    loop = AgentLoop(lambda _: next(replies), [add], message_style=style, **options)
    return loop.run_sync("1 + 2?")


@pytest.mark.parametrize("style", ["openai", "anthropic"])
@pytest.mark.parametrize("way", OPENAI_WAYS)
def test_every_way_to_reply_gives_the_same_run(way: str, style: Any) -> None:
    result = run_way(way, style)
    assert (result.status, result.text) == ("completed", "It is 3.")
    assert [(record.tool_name, record.result) for record in result.results] == [("add", 3)]
    check_history(result.messages, style)
    assert len(result.messages) == 4
    assert json.dumps(result.messages)


def test_openai_sdk_objects_are_read() -> None:
    chat = pytest.importorskip("openai.types.chat")
    head = {"id": "x", "created": 0, "model": "m", "object": "chat.completion"}

    def response(message: dict[str, Any]) -> Any:
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
        return chat.ChatCompletion.model_validate({**head, "choices": [choice], "usage": usage})

    def chunks(message: dict[str, Any]) -> Any:
        for chunk in openai_deltas(message, usage=5):
            yield chat.ChatCompletionChunk.model_validate({**head, **chunk})

    ways = [
        [response(NATIVE_CALL), response(NATIVE_ANSWER)],
        [response(NATIVE_CALL).choices[0].message, response(NATIVE_ANSWER).choices[0].message],
        [chunks(NATIVE_CALL), later(chunks(NATIVE_ANSWER))],
    ]
    for replies in ways:
        left = iter(replies)
        result = AgentLoop(lambda _, left=left: next(left), [add]).run_sync("1 + 2?")
        assert (result.text, result.results[0].result) == ("It is 3.", 3)
        check_history(result.messages)
        assert json.dumps(result.messages)


@pytest.mark.parametrize("way", ["iterator of text", "deltas", "async generator", "async deltas"])
def test_replies_stream_as_events(way: str) -> None:
    events: list[Event] = []
    run_way(way, "openai", on_event=events.append)
    deltas = [
        event.event.text
        for event in events
        if isinstance(event, ReplyProgress) and isinstance(event.event, TextDelta)
    ]
    assert "".join(deltas) == "It is 3."
    assert {event.iteration for event in events if isinstance(event, ReplyProgress)} == {1, 2}


def test_events_of_a_reply_come_while_it_streams() -> None:
    seen: list[str] = []

    def chunks() -> Iterator[str]:
        for word in ("One ", "two ", "three."):
            seen.append(f"model: {word}")
            yield word

    def listen(event: Event) -> None:
        if isinstance(event, ReplyProgress) and isinstance(event.event, TextDelta):
            seen.append(f"event: {event.event.text}")

    AgentLoop(lambda _: chunks(), on_event=listen).run_sync("go")
    assert seen.index("model: three.") > next(
        index for index, entry in enumerate(seen) if entry.startswith("event: One")
    )


def test_anthropic_history_keeps_the_models_own_blocks() -> None:
    replies = iter([ANTHROPIC_CALL, ANTHROPIC_ANSWER])
    loop = AgentLoop(lambda _: next(replies), [add], message_style="anthropic")
    result = loop.run_sync("1 + 2?")
    assert result.messages[1]["content"] == ANTHROPIC_CALL["content"]
    assert result.messages[2]["content"][0]["tool_use_id"] == "toolu_1"


def test_openai_history_keeps_what_providers_want_to_see_again() -> None:
    signature = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    message = {
        **NATIVE_CALL,
        "reasoning_content": "Hm.",
        "tool_calls": [{**NATIVE_CALL["tool_calls"][0], **signature}],
        "audio": None,
    }
    replies = iter([message, NATIVE_ANSWER])
    kept = AgentLoop(lambda _: next(replies), [add]).run_sync("go").messages[1]
    assert kept["reasoning_content"] == "Hm."
    assert kept["tool_calls"][0]["extra_content"] == signature["extra_content"]
    assert "audio" not in kept


def call_with(arguments: str) -> dict[str, Any]:
    function = {"name": "add", "arguments": arguments}
    call = {"id": "c1", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def test_broken_native_arguments_are_healed_in_the_history_too() -> None:
    replies = iter([call_with("{'a': 1, b: 2,}"), NATIVE_ANSWER])
    result = AgentLoop(lambda _: next(replies), [add]).run_sync("go")
    check_history(result.messages)
    assert [record.result for record in result.results] == [3]


def test_native_arguments_that_were_cut_off_are_told_and_not_run() -> None:
    replies = iter([call_with('{"a": 1, "b": 2'), NATIVE_ANSWER])
    result = AgentLoop(lambda _: next(replies), [add]).run_sync("go")
    check_history(result.messages)
    assert result.results == []
    assert "was cut off" in json.dumps(result.messages)


@pytest.mark.parametrize("arguments", ["[1, 2]", "7", '"x"'])
@pytest.mark.parametrize("style", ["openai", "anthropic"])
def test_native_calls_that_make_no_sense_are_told(style: Any, arguments: str) -> None:
    prompts: list[Any] = []
    replies = iter([call_with(arguments), NATIVE_ANSWER])

    def model(messages: list[Any]) -> Any:
        prompts.append(messages)
        return next(replies)

    result = AgentLoop(model, [add], message_style=style).run_sync("go")
    assert result.text == "It is 3."
    assert result.results == []
    assert "was not made" in json.dumps(prompts[1][-1])
    check_history(prompts[1], style)


def test_native_message_without_anything_is_told_not_taken_for_an_answer() -> None:
    message = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function"}]}
    replies = iter([message, NATIVE_ANSWER])
    result = AgentLoop(lambda _: next(replies), [add]).run_sync("go")
    assert (result.text, result.iterations) == ("It is 3.", 2)
    check_history(result.messages)


@pytest.mark.parametrize(
    "bad", [None, 3, {"foo": 1}, {}, object(), [3], [None], AgentLoop, {"role": None}]
)
def test_what_is_no_reply_is_an_error_of_the_model(bad: Any) -> None:
    with pytest.raises(ModelError, match="the model failed: "):
        AgentLoop(lambda _: bad).run_sync("go")


def test_declared_tools_give_types_to_replies_in_text() -> None:
    seen: list[Any] = []

    def note(text: str, count: int) -> str:
        seen.append((text, count))
        return "ok"

    reply = (
        "<tool_call>\n<function=note>\n<parameter=text>\n7\n</parameter>\n"
        "<parameter=count>\n7\n</parameter>\n</function>\n</tool_call>"
    )
    replies = iter([reply, "done"])
    AgentLoop(lambda _: next(replies), [note]).run_sync("go")
    assert seen == [("7", 7)]


def test_parser_of_ones_own_is_used() -> None:
    parser = ResponseParser(formats=["workflow_json"])
    result = AgentLoop(lambda _: TEXT_CALL, [add], parser=parser).run_sync("go")
    assert (result.status, result.results) == ("completed", [])


@pytest.mark.parametrize("name", ["qwen3-8b", "a-model-behind-some-api"])
def test_model_of_a_config_picks_the_syntax(name: str) -> None:
    config = WorkflowConfig(model=name)
    replies = iter([TEXT_CALL, "It is 3."])
    loop = AgentLoop.from_config(config, lambda _: next(replies), [add])
    assert loop.run_sync("go").results[0].result == 3
