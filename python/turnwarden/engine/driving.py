"""Drives a coroutine from synchronous code, with an event loop only where one is needed.

The engines are coroutines. As long as they call synchronous functions only, nothing in them ever
suspends, so `run_sync` steps them by hand. Before they await something of the caller's they say so
by `event_loop_needed()`; `run_sync` then starts a loop and the same coroutine goes on inside it.
"""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import Coroutine, Generator
from typing import Any, Final, TypeVar

from turnwarden.engine.errors import RunningLoopError

__all__ = [
    "event_loop_needed",
    "is_awaitable",
    "is_loop_running",
    "refuse_running_loop",
    "run_sync",
]

ResultT = TypeVar("ResultT")


class _LoopNeeded:
    """What a coroutine yields to ask for an event loop."""

    def __repr__(self) -> str:
        return "<an event loop is needed>"


_LOOP_NEEDED: Final = _LoopNeeded()


def is_loop_running() -> bool:
    """Whether this thread is inside an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def is_awaitable(value: object) -> bool:
    """Whether something can be awaited; quicker than `inspect` for what mostly comes."""
    kind = type(value)
    return kind is types.CoroutineType or (kind is not str and inspect.isawaitable(value))


@types.coroutine
def event_loop_needed() -> Generator[Any, None, None]:
    """Await this before awaiting anything that may suspend."""
    if not is_loop_running():
        yield _LOOP_NEEDED


def refuse_running_loop(alternative: str) -> None:
    """Raise when this thread is inside an event loop.

    Args:
        alternative: What to call there, such as `await loop.run(...)`.

    Raises:
        RunningLoopError: It is.
    """
    if is_loop_running():
        raise RunningLoopError(
            f"run_sync would block the event loop that is running here; use `{alternative}`"
        )


def run_sync(coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine of an engine to its end.

    Args:
        coroutine: Such as `execute_workflow(...)`; one that has not started.

    Returns:
        What the coroutine returns.

    Raises:
        RunningLoopError: Called inside a running event loop.

    Example:
        >>> from turnwarden.engine import execute_workflow
        >>> workflow = {"content": "", "next": [{"mcp": "add", "args": {"a": 1, "b": 2}}]}
        >>> run = run_sync(execute_workflow(workflow, lambda name, args, _: args["a"] + args["b"]))
        >>> run.results
        [3]
    """
    try:
        refuse_running_loop("await ...")
        return _drive(coroutine)
    finally:
        coroutine.close()


def _drive(coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
    try:
        asked = coroutine.send(None)
    except StopIteration as finished:
        return finished.value
    if asked is not _LOOP_NEEDED:  # somebody else's coroutine: nothing here can wake it
        raise RuntimeError(f"the coroutine suspended outside an event loop: {asked!r}")
    with asyncio.Runner() as runner:
        return runner.run(coroutine)
