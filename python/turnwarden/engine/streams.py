"""The events of a run as an asynchronous iterator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from turnwarden.engine.events import Event, EventSink
from turnwarden.engine.handles import Runnable

__all__ = ["EventStream"]

SoFarT = TypeVar("SoFarT")
SoFarT_co = TypeVar("SoFarT_co", covariant=True)

MAX_UNREAD: Final = 256


class _Streamed(Runnable[Any, SoFarT_co], Protocol[SoFarT_co]):
    """A run that has not begun, and that others may listen to."""

    def listen(self, sink: EventSink, /) -> None: ...


class EventStream(Generic[SoFarT]):
    """The events of a run, as they come. Made by the `stream` of an engine.

    The run's exception, if there is one, is raised after the last event.
    """

    __slots__ = ("_events", "_run")

    def __init__(
        self,
        run: _Streamed[SoFarT],
        listen: Callable[[EventSink, Callable[[], Awaitable[None]]], None] | None = None,
    ) -> None:
        self._run = run
        self._events = _events_of(run, listen)

    @property
    def result_so_far(self) -> SoFarT:
        """What was done so far; once the events are over, all of it."""
        return self._run.so_far()

    def __aiter__(self) -> EventStream[SoFarT]:
        return self

    async def __anext__(self) -> Event:
        return await self._events.__anext__()

    async def aclose(self) -> None:
        """End the run, if it is not over, and wait until nothing of it is left."""
        await self._events.aclose()
        self._run.abort()

    async def __aenter__(self) -> EventStream[SoFarT]:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def _events_of(
    run: _Streamed[Any],
    listen: Callable[[EventSink, Callable[[], Awaitable[None]]], None] | None,
) -> AsyncGenerator[Event, None]:
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    has_room = asyncio.Event()

    async def pace() -> None:
        """Let the reader have its turn, and wait for one that is far behind."""
        await asyncio.sleep(0)
        while queue.qsize() > MAX_UNREAD:
            has_room.clear()
            await has_room.wait()

    if listen is None:
        run.listen(queue.put_nowait)
    else:
        listen(queue.put_nowait, pace)
    task = asyncio.create_task(run.run(), name=f"run {run.run_id}")
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            has_room.set()
            yield event
        await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # retrieved, so that nobody warns of it
