"""Calls one tool: inline, awaited, or in a thread, within its time."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
import time
import types
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from turnwarden.engine.driving import event_loop_needed, is_awaitable
from turnwarden.engine.results import (
    CallStatus,
    ToolOutcome,
    error_text,
    normalise_result,
)
from turnwarden.engine.tools import Tool

__all__ = ["AbandonedThread", "TimedOut", "call_in_thread", "call_tool", "within"]

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class AbandonedThread:
    """A tool's thread that outlived its time or its run. It still runs; its result is dropped.

    Attributes:
        tool_name: Which tool.
        call_id: Which call.
        seconds: How long it had run when it was given up.
    """

    tool_name: str
    call_id: str
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {"tool_name": self.tool_name, "call_id": self.call_id, "seconds": self.seconds}


class TimedOut(Exception):  # noqa: N818 - our own signal, told apart from a tool's TimeoutError
    """The time of what was called is over."""


async def call_tool(
    tool: Tool,
    arguments: tuple[Sequence[Any], Mapping[str, Any]],
    timeout: float | None,
    on_abandoned: Callable[[float], None],
) -> tuple[ToolOutcome, CallStatus]:
    """Call a tool and bring what it returns or raises into one form.

    Args:
        tool: Which tool.
        arguments: Its positional and its keyword arguments.
        timeout: Seconds, None for no limit.
        on_abandoned: Is told how long a thread had run, when one is given up.

    Raises:
        asyncio.CancelledError: Passed through; an asynchronous tool has ended by then.
    """
    positional, keywords = arguments
    try:
        if tool.thread:
            work = functools.partial(tool.function, *positional, **keywords)
            value = await call_in_thread(work, f"tool {tool.name}", timeout, on_abandoned)
        else:
            value = tool.function(*positional, **keywords)
            if is_awaitable(value):
                await event_loop_needed()
                value = await within(cast("Awaitable[Any]", value), timeout)
        outcome = normalise_result(value)
    except TimedOut:
        return ToolOutcome.failed(f"timed out after {timeout:g} seconds"), CallStatus.TIMED_OUT
    except Exception as error:  # whatever a tool raises is the result of its call
        return ToolOutcome.failed(error_text(error)), CallStatus.FAILED
    return outcome, CallStatus.COMPLETED if outcome.success else CallStatus.FAILED


async def within(awaitable: Awaitable[ValueT], timeout: float | None) -> ValueT:
    """Await something; once its time is over it is cancelled, and awaited until it has ended.

    A coroutine is stepped once without a timer: most of the cost of a call that does not really
    wait would be the timer's.
    """
    if timeout is None:
        return await awaitable
    if isinstance(awaitable, types.CoroutineType):
        coroutine = cast("types.CoroutineType[Any, Any, ValueT]", awaitable)
        try:
            first = coroutine.send(None)
        except StopIteration as finished:
            return finished.value
        awaitable = _Stepped(coroutine, first)
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            return await awaitable
    except TimeoutError:
        if limit.expired():
            raise TimedOut from None
        raise


class _Stepped(Generic[ValueT]):
    """A coroutine that was stepped once, and what it then asked its event loop for."""

    __slots__ = ("_asked", "_coroutine")

    def __init__(self, coroutine: types.CoroutineType[Any, Any, ValueT], asked: Any) -> None:
        self._coroutine = coroutine
        self._asked = asked

    def __await__(self) -> Generator[Any, Any, ValueT]:
        try:
            while True:
                try:
                    answer = yield self._asked
                except GeneratorExit:
                    self._coroutine.close()
                    raise
                except BaseException as error:
                    self._asked = self._coroutine.throw(error)
                else:
                    self._asked = self._coroutine.send(answer)
        except StopIteration as finished:
            return finished.value


async def call_in_thread(
    function: Callable[[], Any],
    name: str,
    timeout: float | None,
    on_abandoned: Callable[[float], None],
) -> Any:
    """Call in a thread of its own.

    Args:
        function: What to call.
        name: Of the thread: what it runs.
        timeout: Seconds, None for no limit.
        on_abandoned: Is told how long the thread had run, when it is given up.

    Raises:
        TimedOut: The time is over; the thread goes on.
    """
    # Not in the loop's executor: its threads are joined when the loop closes, so one that hangs
    # would hang the program. Ours are daemons.
    await event_loop_needed()
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            value = context.run(function)
        except BaseException as error:  # handed over to the loop, whatever it is
            _hand_over(loop, done, None, error)
        else:
            _hand_over(loop, done, value, None)

    started = time.perf_counter()
    threading.Thread(target=work, name=name, daemon=True).start()
    try:
        return await within(done, timeout)
    except (TimedOut, asyncio.CancelledError):
        on_abandoned(time.perf_counter() - started)
        raise


def _hand_over(
    loop: asyncio.AbstractEventLoop,
    done: asyncio.Future[Any],
    value: Any,
    error: BaseException | None,
) -> None:
    if error is not None and not isinstance(error, Exception):
        error = RuntimeError(f"the thread ended by {error_text(error)}")
    elif isinstance(error, StopIteration):  # no future takes it
        error = RuntimeError("what ran in the thread raised StopIteration")

    def settle() -> None:
        if done.done():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    with contextlib.suppress(RuntimeError):  # the loop is closed: the thread was abandoned
        loop.call_soon_threadsafe(settle)
