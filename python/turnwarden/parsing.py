"""Response parsing: replies of models to calls, text and reasoning.

The classes and functions are native (`turnwarden._core`); this module gathers them and adds what
is plain Python: the asynchronous iterator over events, and the way from events to the stream
formats of OpenAI and Anthropic.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar, cast, get_args, overload

from turnwarden._core import (
    ConfigurationError,
    EventIterator,
    Fault,
    FaultKind,
    Format,
    JSONRepairError,
    MessageStream,
    ParseFault,
    ReasoningDelta,
    Repair,
    RepairKind,
    Reply,
    ReplyFinished,
    ResponseParser,
    ResponseStream,
    Span,
    SpanKind,
    StreamBusyError,
    StreamFinishedError,
    TextDelta,
    TextRetracted,
    ToolCall,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    TurnwardenError,
    UnknownModelError,
    WorkflowJsonResponse,
    WorkflowParseResult,
    WrongTypeError,
    clean_llm_response,
    create_workflow_response,
    extract_text_content,
    formats,
    has_tool_calls,
    parse,
    parse_many,
    parse_message,
    parse_tool_calls,
    parse_workflow_json,
    parse_workflow_response,
    repair_json,
    serialize_workflow_response,
)

__all__ = [
    "AsyncEvents",
    "ConfigurationError",
    "Event",
    "EventIterator",
    "Fault",
    "FaultKind",
    "Format",
    "JSONRepairError",
    "MessageStream",
    "ParseFault",
    "ReasoningDelta",
    "Repair",
    "RepairKind",
    "Reply",
    "ReplyFinished",
    "ResponseParser",
    "ResponseStream",
    "Span",
    "SpanKind",
    "StreamBusyError",
    "StreamFinishedError",
    "TextDelta",
    "TextRetracted",
    "ToolCall",
    "ToolCallArguments",
    "ToolCallEnded",
    "ToolCallStarted",
    "TurnwardenError",
    "UnknownModelError",
    "WorkflowJsonResponse",
    "WorkflowParseResult",
    "WrongTypeError",
    "clean_llm_response",
    "create_workflow_response",
    "extract_text_content",
    "formats",
    "has_tool_calls",
    "parse",
    "parse_many",
    "parse_message",
    "parse_tool_calls",
    "parse_workflow_json",
    "parse_workflow_response",
    "repair_json",
    "serialize_workflow_response",
    "to_anthropic_events",
    "to_openai_chunks",
]

Event: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | ToolCallStarted
    | ToolCallArguments
    | ToolCallEnded
    | TextRetracted
    | ParseFault
    | ReplyFinished
)
"""What a reply does while it streams."""

Chunk: TypeAlias = "str | bytes"


class AsyncEvents:
    """Gives the events of a reply while its chunks arrive. Made by `ResponseParser.aiter`.

    Attributes:
        reply: What was found so far, also when the source of the chunks raised.
    """

    __slots__ = ("_chunks", "_stream", "_waiting")

    def __init__(
        self, stream: ResponseStream, chunks: AsyncIterable[Chunk] | Iterable[Chunk]
    ) -> None:
        if isinstance(chunks, bytes | bytearray):
            raise _wrong_type("chunks", "an iterable of str or bytes", chunks)
        if not isinstance(chunks, AsyncIterable):
            chunks = _as_async(_iterate(chunks, "chunks", "an iterable of str or bytes"))
        self._stream = stream
        self._chunks = aiter(chunks)
        self._waiting: deque[Event] = deque()

    @property
    def reply(self) -> Reply:
        """What was found so far; once the events are over, the reply."""
        return self._stream.reply

    def __aiter__(self) -> AsyncEvents:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            if self._stream.finished:
                raise StopAsyncIteration
            if self._stream.stopped:
                self._waiting.extend(self._stream.finish())
                continue
            try:
                chunk = await anext(self._chunks)
            except StopAsyncIteration:
                self._waiting.extend(self._stream.finish())
            else:
                self._waiting.extend(self._stream.feed(chunk))
        return self._waiting.popleft()


_Item = TypeVar("_Item")


def _iterate(items: Iterable[_Item], name: str, expected: str) -> Iterator[_Item]:
    """Begin to iterate at once, so that what cannot be iterated over is refused at the call."""
    try:
        return iter(items)
    except TypeError:
        raise _wrong_type(name, expected, items) from None


def _wrong_type(name: str, expected: str, found: object) -> WrongTypeError:
    return WrongTypeError(f"{name} must be {expected}, not {type(found).__qualname__}")


def _option(name: str, value: object, expected: type) -> None:
    """Refuse an option of a wrong type; a bool is no int."""
    if not isinstance(value, expected) or isinstance(value, bool):
        raise _wrong_type(name, expected.__name__, value)


async def _as_async(chunks: Iterator[Chunk]) -> AsyncIterator[Chunk]:
    for chunk in chunks:
        yield chunk


class _Writer(Protocol):
    """Turns events into the messages of a wire format."""

    def write(self, event: Event) -> Iterator[dict[str, Any]]: ...


_EVENT_TYPES = get_args(Event)


def _checked(event: Event, position: int) -> Event:
    if not isinstance(event, _EVENT_TYPES):
        expected = "an event, such as ResponseStream.feed gives"
        raise _wrong_type(f"events[{position}]", expected, event)
    return event


def _convert(events: Iterator[Event], writer: _Writer) -> Iterator[dict[str, Any]]:
    for position, event in enumerate(events):
        yield from writer.write(_checked(event, position))


async def _convert_async(
    events: AsyncIterable[Event], writer: _Writer
) -> AsyncIterator[dict[str, Any]]:
    position = 0
    async for event in events:
        for message in writer.write(_checked(event, position)):
            yield message
        position += 1


def _converted(
    events: Iterable[Event] | AsyncIterable[Event], writer: _Writer
) -> Iterator[dict[str, Any]] | AsyncIterator[dict[str, Any]]:
    if isinstance(events, AsyncIterable):
        return _convert_async(events, writer)
    expected = "an iterable of events"
    if isinstance(events, (str, bytes, Mapping)):
        raise _wrong_type("events", expected, cast("object", events))
    return _convert(_iterate(events, "events", expected), writer)


class _Calls:
    """The calls that a client has seen, numbered in the order in which it sees them.

    A call is shown from its first arguments on: one that is cut off before then, or refused, would
    look to the client like a call without arguments.
    """

    __slots__ = ("_numbers", "_started", "_with_arguments")

    def __init__(self) -> None:
        self._started: dict[int, ToolCallStarted] = {}
        self._numbers: dict[int, int] = {}
        self._with_arguments: set[int] = set()

    def __len__(self) -> int:
        return len(self._numbers)

    def start(self, event: ToolCallStarted) -> None:
        self._started[event.index] = event

    def show(self, index: int, call: ToolCall | None = None) -> tuple[int, ToolCallStarted | None]:
        """Give the call's number, and its start when the client has not seen it yet."""
        if index in self._numbers:
            return self._numbers[index], None
        number = self._numbers[index] = len(self._numbers)
        started = self._started.pop(index, None)
        if started is None and call is not None:
            started = ToolCallStarted(index, call.id, call.name)
        return number, started

    def arguments_seen(self, index: int) -> bool:
        """Tell whether arguments of the call were shown before, and note that they are now."""
        if index in self._with_arguments:
            return True
        self._with_arguments.add(index)
        return False


class _OpenAIChunks:
    """Writes chat.completion.chunk objects."""

    __slots__ = ("_base", "_calls", "_role")

    def __init__(self, model: str, id: str | None, created: int | None) -> None:
        _option("model", model, str)
        if id is not None:
            _option("id", id, str)
        if created is not None:
            _option("created", created, int)
        self._base = {
            "id": id if id is not None else f"chatcmpl-{os.urandom(12).hex()}",
            "object": "chat.completion.chunk",
            "created": created if created is not None else int(time.time()),
            "model": model,
        }
        self._calls = _Calls()
        self._role: dict[str, Any] = {"role": "assistant"}

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        if self._role:
            delta, self._role = self._role | delta, {}
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._base | {"choices": [choice]}

    def _start(self, number: int, started: ToolCallStarted) -> dict[str, Any]:
        function = {"name": started.name, "arguments": ""}
        call = {"index": number, "id": started.id, "type": "function", "function": function}
        return self._chunk({"tool_calls": [call]})

    def _arguments(self, number: int, delta: str) -> dict[str, Any]:
        call = {"index": number, "function": {"arguments": delta}}
        return self._chunk({"tool_calls": [call]})

    def write(self, event: Event) -> Iterator[dict[str, Any]]:
        match event:
            case TextDelta(text):
                yield self._chunk({"content": text})
            case ReasoningDelta(text):
                yield self._chunk({"reasoning_content": text})
            case ToolCallStarted():
                self._calls.start(event)
            case ToolCallArguments(index, delta):
                number, started = self._calls.show(index)
                if started is not None:
                    yield self._start(number, started)
                self._calls.arguments_seen(index)
                yield self._arguments(number, delta)
            case ToolCallEnded(index, call):
                number, started = self._calls.show(index, call)
                if started is not None:
                    yield self._start(number, started)
                if not self._calls.arguments_seen(index):
                    yield self._arguments(number, call.arguments_json)
            case ReplyFinished(reply):
                yield self._chunk({}, self._finish_reason(reply))
            case TextRetracted() | ParseFault():
                pass

    def _finish_reason(self, reply: Reply) -> str:
        if reply.incomplete_calls:
            return "length"
        return "tool_calls" if len(self._calls) else "stop"


class _AnthropicEvents:
    """Writes the events of an Anthropic message stream: one content block after the other.

    Text and reasoning that come while a call is open wait until its block is over.
    """

    __slots__ = ("_block", "_calls", "_index", "_message", "_open_name", "_waiting")

    def __init__(self, model: str, id: str | None) -> None:
        _option("model", model, str)
        if id is not None:
            _option("id", id, str)
        self._message: dict[str, Any] | None = {
            "id": id if id is not None else f"msg_{os.urandom(12).hex()}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        self._calls = _Calls()
        self._index = -1
        self._block: object = None
        self._open_name: str | None = None
        self._waiting: list[TextDelta | ReasoningDelta] = []

    def _begin(self) -> Iterator[dict[str, Any]]:
        if self._message is not None:
            yield {"type": "message_start", "message": self._message}
            self._message = None

    def _end_block(self) -> Iterator[dict[str, Any]]:
        if self._block is not None:
            yield {"type": "content_block_stop", "index": self._index}
            self._block = self._open_name = None
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            yield from self.write(event)

    def _open(self, block: object, content: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Begin a content block, unless it is the one that is open."""
        while self._block is not None:
            if self._block == block:
                return
            yield from self._end_block()
        self._block = block
        self._index += 1
        yield {"type": "content_block_start", "index": self._index, "content_block": content}

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _open_call(self, started: ToolCallStarted) -> Iterator[dict[str, Any]]:
        content: dict[str, Any] = {"type": "tool_use", "id": started.id, "name": started.name}
        content["input"] = {}
        yield from self._open(("call", started.index), content)
        self._open_name = started.name

    def _arguments(self, delta: str) -> dict[str, Any]:
        return self._delta({"type": "input_json_delta", "partial_json": delta})

    def write(self, event: Event) -> Iterator[dict[str, Any]]:
        yield from self._begin()
        match event:
            case TextDelta() | ReasoningDelta() if self._open_name is not None:
                self._waiting.append(event)
            case TextDelta(text):
                yield from self._open("text", {"type": "text", "text": ""})
                yield self._delta({"type": "text_delta", "text": text})
            case ReasoningDelta(text):
                yield from self._open("thinking", {"type": "thinking", "thinking": ""})
                yield self._delta({"type": "thinking_delta", "thinking": text})
            case ToolCallStarted():
                self._calls.start(event)
            case ToolCallArguments(index, delta):
                _, started = self._calls.show(index)
                if started is not None:
                    yield from self._open_call(started)
                self._calls.arguments_seen(index)
                yield self._arguments(delta)
            case ToolCallEnded(index, call):
                _, started = self._calls.show(index, call)
                if started is not None:
                    yield from self._open_call(started)
                if not self._calls.arguments_seen(index):
                    yield self._arguments(call.arguments_json)
                yield from self._end_block()
            case ReplyFinished(reply):
                while self._block is not None:
                    yield from self._end_block()
                yield from self._finish(reply)
            case ParseFault(kind, name=name):
                # The call that is open was refused: it has no end of its own.
                if name and name == self._open_name and kind != "type_mismatch":
                    yield from self._end_block()
            case TextRetracted():
                pass

    def _finish(self, reply: Reply) -> Iterator[dict[str, Any]]:
        if reply.incomplete_calls:
            reason = "max_tokens"
        else:
            reason = "tool_use" if len(self._calls) else "end_turn"
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 0}}
        yield {"type": "message_stop"}


@overload
def to_openai_chunks(
    events: Iterable[Event], *, model: str = "", id: str | None = None, created: int | None = None
) -> Iterator[dict[str, Any]]: ...


@overload
def to_openai_chunks(
    events: AsyncIterable[Event],
    *,
    model: str = "",
    id: str | None = None,
    created: int | None = None,
) -> AsyncIterator[dict[str, Any]]: ...


def to_openai_chunks(
    events: Iterable[Event] | AsyncIterable[Event],
    *,
    model: str = "",
    id: str | None = None,
    created: int | None = None,
) -> Iterator[dict[str, Any]] | AsyncIterator[dict[str, Any]]:
    """Turn the events of a reply into OpenAI `chat.completion.chunk` objects.

    A call's id and name are on its first delta only, and that comes with its first arguments, so
    that a call that is cut off before then is never seen. Calls are numbered in that order.
    Reasoning goes out as `reasoning_content`. What was sent cannot be taken back: events of kind
    `TextRetracted` give nothing (with `ResponseParser(reasoning_open=True)` they never come).

    Args:
        events: Events of one reply, from an iterable or an asynchronous iterable.
        model: The model's name in the chunks.
        id: The completion's id; a new one by default.
        created: Seconds since 1970; now by default.

    Returns:
        An iterator over chunks, asynchronous when `events` is. The last one has the finish
        reason: `tool_calls`, `stop`, or `length` when calls were cut off.

    Raises:
        WrongTypeError: When `events` cannot be iterated over, or, once it is reached, for an item
            that is no event; the message names it and its position.

    Example:
        >>> events = ResponseParser().iter(["Hel", "lo"])
        >>> for chunk in to_openai_chunks(events, id="c1", created=0):
        ...     print(chunk["choices"][0]["delta"], chunk["choices"][0]["finish_reason"])
        {'role': 'assistant', 'content': 'Hel'} None
        {'content': 'lo'} None
        {} stop
    """
    return _converted(events, _OpenAIChunks(model, id, created))


@overload
def to_anthropic_events(
    events: Iterable[Event], *, model: str = "", id: str | None = None
) -> Iterator[dict[str, Any]]: ...


@overload
def to_anthropic_events(
    events: AsyncIterable[Event], *, model: str = "", id: str | None = None
) -> AsyncIterator[dict[str, Any]]: ...


def to_anthropic_events(
    events: Iterable[Event] | AsyncIterable[Event], *, model: str = "", id: str | None = None
) -> Iterator[dict[str, Any]] | AsyncIterator[dict[str, Any]]:
    """Turn the events of a reply into the events of an Anthropic message stream.

    Text, reasoning and each call are content blocks one after the other; a call's block begins
    with its first arguments. Token counts are zero: the parser does not know them. Retracted text
    cannot be taken back and gives nothing.

    Args:
        events: Events of one reply, from an iterable or an asynchronous iterable.
        model: The model's name in the first event.
        id: The message's id; a new one by default.

    Returns:
        An iterator over events, asynchronous when `events` is.

    Raises:
        WrongTypeError: As `to_openai_chunks`.

    Example:
        >>> events = ResponseParser().iter(["Hello"])
        >>> [event["type"] for event in to_anthropic_events(events)]
        ... # doctest: +NORMALIZE_WHITESPACE
        ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop',
         'message_delta', 'message_stop']
    """
    return _converted(events, _AnthropicEvents(model, id))
