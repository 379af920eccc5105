"""The handle of a run that goes on in a task of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from turnwarden.engine.driving import is_loop_running
from turnwarden.engine.errors import RunningLoopError

__all__ = ["RunHandle"]

ResultT = TypeVar("ResultT")


class RunHandle(Generic[ResultT]):
    """A running run. Await it for the result.

    Args:
        coroutine: What runs.
        so_far: Tells what was done so far, at any time.
        run_id: Which run.
        abort: Is called when the run was cancelled before it began.
    """

    __slots__ = ("_abort", "_so_far", "_task", "run_id")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, ResultT],
        so_far: Callable[[], ResultT],
        run_id: str,
        abort: Callable[[], None] | None = None,
    ) -> None:
        self.run_id = run_id
        self._abort = abort
        self._so_far = so_far
        if not is_loop_running():
            coroutine.close()  # it never starts: nobody shall warn of it
            raise RunningLoopError(
                "a run can be started only inside a running event loop; use the function that "
                "ends in _sync"
            )
        self._task = asyncio.get_running_loop().create_task(coroutine, name=f"run {run_id}")

    def __repr__(self) -> str:
        state = "done" if self._task.done() else "running"
        return f"<RunHandle {self.run_id} {state}>"

    def __await__(self) -> Generator[Any, None, ResultT]:
        return self._task.__await__()

    @property
    def result_so_far(self) -> ResultT:
        """What was done so far; once the run is over, by whatever end, all of it."""
        if self._abort is not None and self._task.done():
            self._abort()
        return self._so_far()

    @property
    def task(self) -> asyncio.Task[ResultT]:
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

    async def wait(self) -> ResultT:
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
