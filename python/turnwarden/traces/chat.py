"""Reads chat messages as OpenAI writes them, and Anthropic's content blocks in the same lists."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from turnwarden.traces.assembly import (
    Event,
    Feedback,
    Reply,
    as_list,
    as_mapping,
    as_text,
    seconds,
    text_of,
    usage_of,
)
from turnwarden.traces.model import RecordedCall, RecordedResult, TokenUsage

__all__ = ["ROLES", "calls_of", "events_of", "is_message", "reply_of", "timestamp_of", "tokens_of"]

ROLES = frozenset(("system", "developer", "user", "assistant", "tool", "function"))


def is_message(value: object) -> bool:
    """Whether a value looks like a chat message."""
    message = as_mapping(value)
    return as_text(message.get("role")) in ROLES and not message.keys().isdisjoint(
        ("content", "tool_calls", "function_call")
    )


def events_of(messages: Iterable[object]) -> Iterator[Event]:
    """What happens in a list of chat messages; entries that are no messages are passed over."""
    for value in messages:
        message = as_mapping(value)
        match message.get("role"):
            case "assistant":
                yield reply_of(message)
            case "tool" | "function":
                yield _result_of(message)
            case "user":
                yield from said_of(message)
            case _:
                pass


def reply_of(message: Mapping[str, Any]) -> Reply:
    """An assistant message as a reply."""
    calls = calls_of(message)
    return Reply(
        text=text_of(message.get("content")),
        calls=calls or None,
        syntax="native" if calls else None,
        tokens=tokens_of(message),
        timestamp=timestamp_of(message),
    )


def said_of(message: Mapping[str, Any]) -> Iterator[Event]:
    """A user message: results that stand in it as content blocks, then its text."""
    content = message.get("content")
    timestamp = timestamp_of(message)
    for part in as_list(content):
        block = as_mapping(part)
        if block.get("type") == "tool_result":
            yield RecordedResult(
                content=text_of(block.get("content")),
                call_id=as_text(block.get("tool_use_id")),
                is_error=block.get("is_error") is True,
                timestamp=timestamp,
            )
    text = text_of(content)
    if text:
        yield Feedback(text)


def calls_of(message: Mapping[str, Any]) -> tuple[RecordedCall, ...]:
    """The calls that a message holds as calls."""
    calls = [_call_of(as_mapping(call)) for call in as_list(message.get("tool_calls"))]
    legacy = as_mapping(message.get("function_call"))
    if legacy and not calls:
        calls.append(_call_of(legacy))
    for part in as_list(message.get("content")):
        block = as_mapping(part)
        if block.get("type") in ("tool_use", "server_tool_use"):
            calls.append(_call_of(block))
    return tuple(calls)


def _call_of(call: Mapping[str, Any]) -> RecordedCall:
    """One call: OpenAI's nested form, its custom tools, or name and arguments side by side."""
    inner = as_mapping(call.get("function") or call.get("custom")) or call
    arguments: object = None
    for key in ("arguments", "input", "args", "parameters"):
        if key in inner:
            arguments = inner[key]
            break
    name = inner.get("name")
    return RecordedCall(
        name=name if isinstance(name, str) else "",
        arguments=_arguments(arguments),
        id=as_text(call.get("id") or call.get("call_id") or call.get("tool_call_id")),
    )


def _arguments(value: object) -> Mapping[str, Any] | str:
    if value is None:
        return {}
    if isinstance(value, dict | str):
        return value  # pyright: ignore[reportUnknownVariableType] - JSON
    return json.dumps(value, ensure_ascii=False)


def _result_of(message: Mapping[str, Any]) -> RecordedResult:
    ids = as_list(message.get("tool_call_ids"))
    call_id = message.get("tool_call_id") or (ids[0] if ids else None)
    return RecordedResult(
        content=text_of(message.get("content")),
        call_id=as_text(call_id),
        is_error=message.get("is_error") is True or message.get("status") == "error",
        timestamp=timestamp_of(message),
    )


def tokens_of(message: Mapping[str, Any]) -> TokenUsage | None:
    """What the message says that it cost, in the places where programs write that."""
    places = [message.get("usage"), message.get("usage_metadata")]
    if "extra" in message:
        places.append(_response_of(message).get("usage"))
    if "response_metadata" in message:
        places.append(as_mapping(message["response_metadata"]).get("token_usage"))
    tokens = (usage_of(usage) for usage in places if usage is not None)
    return next((usage for usage in tokens if usage is not None), None)


def timestamp_of(message: Mapping[str, Any]) -> float | None:
    """When the message was written."""
    places = [message.get("timestamp"), message.get("created_at"), message.get("created")]
    if "extra" in message:
        places.append(as_mapping(message["extra"]).get("timestamp"))
        places.append(_response_of(message).get("created"))
    times = (seconds(time) for time in places if time is not None)
    return next((time for time in times if time is not None), None)


def _response_of(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer of the API that some programs keep beside the message."""
    return as_mapping(as_mapping(message.get("extra")).get("response"))
