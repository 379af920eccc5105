"""OpenAI chat messages: a list of messages, an object that holds one, or a message a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from turnwarden.traces.assembly import as_list, as_mapping, as_text, assemble
from turnwarden.traces.chat import events_of, is_message
from turnwarden.traces.model import Run
from turnwarden.traces.source import Source, Value

__all__ = ["NAME", "detect", "runs"]

NAME: Final = "openai-chat"

_ID_KEYS: Final = (
    "id",
    "run_id",
    "trace_id",
    "session_id",
    "conversation_id",
    "thread_id",
    "task_id",
    "custom_id",
)
_OUTCOME_KEYS: Final = ("reward", "score", "success", "correct", "exit_status", "outcome")


def detect(value: object) -> bool:
    """Whether a value of a file is of this format."""
    return is_message(value) or _messages(value) is not None


def runs(source: Source, values: Iterator[Value]) -> Iterator[Run]:
    """The runs of a file: one for each list of messages."""
    waiting: list[Value] = []
    index = 0
    while True:
        value = waiting.pop() if waiting else next(values, None)
        if value is None:
            return
        if is_message(value.data):
            run = _run_of_messages(source, index, value, values, waiting)
            yield run
            for _ in run:  # what the caller left is not part of the next run
                pass
        elif (messages := _messages(value.data)) is not None:
            yield _run_of_record(source, index, as_mapping(value.data), messages)
        else:
            source.fail("no chat messages", value.place)
            continue
        index += 1


def _run_of_messages(
    source: Source, index: int, first: Value, values: Iterator[Value], waiting: list[Value]
) -> Run:
    """A run whose messages are the values themselves, read on as its turns are asked for."""

    def messages() -> Iterator[Any]:
        yield first.data
        for value in values:
            is_other = not is_message(value.data) and _messages(value.data) is not None
            if is_other or value.group != first.group:
                waiting.append(value)
                return
            yield value.data

    return Run(NAME, source.path, index, assemble(events_of(messages())))


def _run_of_record(
    source: Source, index: int, record: Mapping[str, Any], messages: Sequence[Any]
) -> Run:
    found = (as_text(record.get(key)) for key in _ID_KEYS)
    return Run(
        NAME,
        source.path,
        index,
        assemble(events_of([*messages, *_answers(record)])),
        id=next((name for name in found if name is not None), None),
        tools=tuple(as_mapping(tool) for tool in _tools(record) if as_mapping(tool)),
        outcome={key: record[key] for key in _OUTCOME_KEYS if key in record},
    )


def _messages(value: object) -> Sequence[Any] | None:
    """The list of messages in a value: the value, its `messages`, or those of a logged request."""
    if isinstance(value, list):
        entries = as_list(value)  # pyright: ignore[reportUnknownArgumentType] - JSON
        return entries if any(is_message(entry) for entry in entries) else None
    record = as_mapping(value)
    for holder in (record, as_mapping(record.get("request")), as_mapping(record.get("body"))):
        messages = holder.get("messages")
        entries = as_list(messages)
        if any(is_message(entry) for entry in entries) or messages == []:
            return entries
    return None


def _tools(record: Mapping[str, Any]) -> Sequence[Any]:
    for holder in (record, as_mapping(record.get("request")), as_mapping(record.get("body"))):
        tools = as_list(holder.get("tools"))
        if tools:
            return tools
    return ()


def _answers(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The reply to a logged request."""
    response = as_mapping(record.get("response"))
    for holder in (record, response, as_mapping(response.get("body"))):
        for choice in as_list(holder.get("choices"))[:1]:
            message = as_mapping(as_mapping(choice).get("message"))
            if message:
                yield {"role": "assistant", "usage": holder.get("usage"), **message}
