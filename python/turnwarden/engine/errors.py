"""What the engines raise. An error that ends a run carries the run so far as `run`."""

from __future__ import annotations

import contextlib
from typing import Any

from turnwarden._core import TurnwardenError

__all__ = [
    "EngineError",
    "ModelError",
    "ResumeError",
    "RunInterrupted",
    "RunningLoopError",
    "ToolDefinitionError",
    "attach_run",
    "run_so_far",
]


class EngineError(TurnwardenError, RuntimeError):
    """The root of what the engines raise."""


class RunningLoopError(EngineError):
    """`run_sync` was called inside a running event loop, where `await run(...)` is right.

    Or `start` outside of one, where `run_sync` is.
    """


class ResumeError(EngineError, ValueError):
    """A run that cannot be resumed, or not with this input."""


class ToolDefinitionError(TurnwardenError, ValueError):
    """A function that cannot be a tool; the message says why and what to do."""


class ModelError(EngineError):
    """The model raised, or returned what is no reply. The cause is chained as `__cause__`.

    Attributes:
        run: What was done until then; its messages are fit to go on with.
    """

    def __init__(self, message: str, run: Any = None) -> None:
        super().__init__(message)
        self.run = run


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C during `run_sync`. No `TurnwardenError`, so that nobody catches it by accident.

    Attributes:
        run: What was done until then; its messages are fit to go on with.
    """

    def __init__(self, run: Any = None) -> None:
        super().__init__("the run was interrupted; what was done so far is in `.run`")
        self.run = run


def attach_run(error: BaseException, run: Any) -> None:
    """Put the run so far on the error that ends it.

    The error stays the same object: `asyncio.timeout` and task groups look at the type of a
    cancellation, so another class in its place would break them.
    """
    with contextlib.suppress(AttributeError):  # an exception that takes no attributes
        error.run = run  # type: ignore[attr-defined]


def run_so_far(error: BaseException) -> Any:
    """What a run had done when it ended by this error, or by one that led to it.

    Looks at the error and along its causes for `.run`: a cancelled run leaves it on the
    `asyncio.CancelledError`, so `asyncio.timeout` around a run has it on the cause.

    Returns:
        A `RunResult`, or for recursive workflows a `WorkflowRun`; None when there is none.
    """
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        run = getattr(current, "run", None)
        if run is not None:
            return run
        current = current.__cause__ or current.__context__
    return None
