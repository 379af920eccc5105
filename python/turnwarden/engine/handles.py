"""Handles of runs that go on in tasks of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, Protocol, TypeVar

from turnwarden.engine.driving import is_loop_running
from turnwarden.engine.errors import RunningLoopError

__all__ = ["RunHandle", "Runnable", "TaskHandle"]

ResultT = TypeVar("ResultT")
DeliveredT = TypeVar("DeliveredT")
DeliveredT_co = TypeVar("DeliveredT_co", covariant=True)
SoFarT = TypeVar("SoFarT")
SoFarT_co = TypeVar("SoFarT_co", covariant=True)


class Runnable(Protocol[DeliveredT_co, SoFarT_co]):
    """A run that has not begun."""

    @property
    def run_id(self) -> str:
        """Which run."""
        ...

    def run(self) -> Coroutine[Any, Any, DeliveredT_co]:
        """Run to the end."""
        ...

    def so_far(self) -> SoFarT_co:
        """What was done so far."""
        ...

    def abort(self) -> None:
        """Note that it was cancelled, if nothing noted its end."""
        ...


class TaskHandle(Generic[DeliveredT, SoFarT]):
    """A run in a task of its own: await it for what it delivers.

    Args:
        run: What runs; it must not have begun.

    Raises:
        RunningLoopError: No event loop is running.
    """

    __slots__ = ("_run", "_task")

    def __init__(self, run: Runnable[DeliveredT, SoFarT]) -> None:
        if not is_loop_running():
            raise RunningLoopError(
                "a run can be started only inside a running event loop; use the function that "
                "ends in _sync"
            )
        self._run = run
        self._task = asyncio.get_running_loop().create_task(run.run(), name=f"run {run.run_id}")

    def __repr__(self) -> str:
        state = "done" if self._task.done() else "running"
        return f"<{type(self).__name__} {self.run_id} {state}>"

    def __await__(self) -> Generator[Any, None, DeliveredT]:
        return self._task.__await__()

    @property
    def run_id(self) -> str:
        """Which run."""
        return self._run.run_id

    @property
    def result_so_far(self) -> SoFarT:
        """What was done so far; once the run is over, by whatever end, all of it."""
        if self._task.done():
            self._run.abort()  # nothing else notes the end of one that was cancelled at once
        return self._run.so_far()

    @property
    def task(self) -> asyncio.Task[DeliveredT]:
        """The task that runs."""
        return self._task

    def done(self) -> bool:
        """Whether the run is over."""
        return self._task.done()

    def cancel(self) -> bool:
        """Ask the run to stop; await the handle to see it stopped.

        Returns:
            False when it was over already.
        """
        return self._task.cancel()

    async def wait(self) -> SoFarT:
        """Wait for the end, whatever it is, and return what was done.

        Returns:
            The result; after a cancellation or an error what was done until then.

        Raises:
            asyncio.CancelledError: The caller itself was cancelled; the run goes on.
        """
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.exception()  # retrieved, so that nobody warns of it
        return self.result_so_far


class RunHandle(TaskHandle[ResultT, ResultT]):
    """A running run of an agent loop or of a workflow in JSON. Await it for the result."""

    __slots__ = ()
