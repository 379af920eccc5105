"""Asks a model, and reads whatever it gives: text, chunks, a native message, a finished reply."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from turnwarden._core import Reply, ResponseParser
from turnwarden.engine.driving import event_loop_needed, is_awaitable
from turnwarden.engine.history import Message, plain_message
from turnwarden.parsing import MessageStream, parse_message

__all__ = ["Answer", "Asking", "wants_tools"]


@dataclass(slots=True)
class Answer:
    """What a model gave.

    Attributes:
        reply: What was read.
        native: The native message, when the model gave one whole.
        tokens: What the provider says that it cost; None when it does not say.
    """

    reply: Reply
    native: Message | None = None
    tokens: int | None = None


class _Stream(Protocol):
    """Text or native deltas on their way to a reply."""

    @property
    def reply(self) -> Reply: ...
    def feed(self, chunk: Any, /) -> list[Any]: ...
    def finish(self) -> list[Any]: ...


class Asking:
    """One question to a model.

    Args:
        parser: Reads the reply.
        on_progress: Is given the parsing events of a reply that streams.
    """

    __slots__ = ("_on_progress", "_parser", "_stream", "_usage")

    def __init__(self, parser: ResponseParser, on_progress: Callable[[Any], None]) -> None:
        self._parser = parser
        self._on_progress = on_progress
        self._stream: _Stream | None = None
        self._usage = _Usage()

    @property
    def partial(self) -> Reply | None:
        """What was read of a reply that streams, as far as it came."""
        return None if self._stream is None else self._stream.reply

    async def ask(self, model: Callable[..., Any], prompt: list[Message], **options: Any) -> Answer:
        """Call the model and read the reply.

        Raises:
            TypeError: What it gave is no reply.
        """
        given = model(prompt, **options)
        if is_awaitable(given):
            await event_loop_needed()
            given = await cast("Awaitable[Any]", given)
        if isinstance(given, (str, bytes)):
            return Answer(self._parser.parse(given))
        if isinstance(given, Reply):
            return Answer(given)
        if hasattr(given, "__aiter__"):
            await event_loop_needed()
            return await self._read_async(given)
        if hasattr(given, "__next__") or _is_list_of_text(given):
            return self._read(given)
        return self._read_message(given)

    def _read_message(self, given: Any) -> Answer:
        message = native_message(given)
        if message is None:
            raise TypeError(
                "a model must return text, an iterator of chunks of text or of native deltas, a "
                f"native message or a Reply, not {type(given).__name__}"
            )
        reply = parse_message(given, self._parser)
        self._usage.read(given)
        return Answer(reply, message, self._usage.total)

    async def _read_async(self, chunks: Any) -> Answer:
        iterator: AsyncIterator[Any] = chunks.__aiter__()
        try:
            async for chunk in iterator:
                self._feed(chunk)
        finally:
            await _close_async(iterator)
        return self._finish()

    def _read(self, chunks: Any) -> Answer:
        iterator: Iterator[Any] = iter(chunks)
        try:
            for chunk in iterator:
                self._feed(chunk)
        finally:
            close = getattr(iterator, "close", None)
            if callable(close):
                close()
        return self._finish()

    def _feed(self, chunk: Any) -> None:
        stream = self._stream
        if stream is None:
            is_text = isinstance(chunk, (str, bytes))
            stream = self._parser.stream() if is_text else MessageStream(self._parser)
            self._stream = stream
        if not isinstance(chunk, (str, bytes)):
            self._usage.read(chunk)
        for event in stream.feed(chunk):
            self._on_progress(event)

    def _finish(self) -> Answer:
        stream = self._stream
        if stream is None:
            return Answer(self._parser.parse(""))
        for event in stream.finish():
            self._on_progress(event)
        return Answer(stream.reply, tokens=self._usage.total)


async def _close_async(iterator: Any) -> None:
    """Close a generator or an SDK's stream, so that nothing is left open when a run is cut."""
    for name in ("aclose", "close"):
        close = getattr(iterator, name, None)
        if callable(close):
            closing = close()
            if inspect.isawaitable(closing):
                await closing
            return


# The fields by which a native message or response shows that it is one.
_NATIVE = ("role", "content", "tool_calls", "output", "candidates", "parts")


def native_message(given: Any) -> Message | None:
    """The message in what a model gave, which may be a whole response or a list of blocks.

    Returns:
        The message as a new dict; None when it is none.
    """
    choices = _get(given, "choices")
    if isinstance(choices, (list, tuple)) and choices:
        return plain_message(_get(cast("list[Any]", choices)[0], "message"))
    if isinstance(given, (list, tuple)):
        blocks = [plain_message(block) for block in cast("list[Any]", given)]
        return None if None in blocks else {"content": blocks}
    is_native = any(_get(given, name) is not None for name in _NATIVE)
    return plain_message(given) if is_native else None


def _is_list_of_text(given: Any) -> bool:
    if not isinstance(given, (list, tuple)):
        return False
    chunks = cast("list[object]", given)
    return all(isinstance(chunk, (str, bytes)) for chunk in chunks)


def _get(holder: Any, name: str) -> Any:
    if isinstance(holder, Mapping):
        return cast("Mapping[str, Any]", holder).get(name)
    return getattr(holder, name, None)


class _Usage:
    """The tokens that a provider says a reply cost, in the words of OpenAI or of Anthropic.

    In a stream they come in pieces, each with the count so far.
    """

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def read(self, given: Any) -> None:
        for holder in (given, _get(given, "message")):
            usage = None if holder is None else _get(holder, "usage")
            for name in ("total_tokens", "input_tokens", "output_tokens"):
                count = None if usage is None else _get(usage, name)
                if isinstance(count, int):
                    self._counts[name] = count

    @property
    def total(self) -> int | None:
        """All tokens; None when nothing was said."""
        if "total_tokens" in self._counts:
            return self._counts["total_tokens"]
        return sum(self._counts.values()) if self._counts else None


def wants_tools(model: Callable[..., Any]) -> bool:
    """Whether a model takes the definitions of the tools, by a parameter named `tools`."""
    try:
        parameters = inspect.signature(model).parameters
    except (TypeError, ValueError):
        return False
    wanted = parameters.get("tools")
    return wanted is not None and wanted.kind is not wanted.POSITIONAL_ONLY
