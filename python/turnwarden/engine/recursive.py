"""Recursive workflows: calls whose results may bring further calls, run depth first.

    workflow -> call -> result -> its next workflow -> ... -> next call

`execute_workflow` makes the calls one after the other. A result may hold a next workflow, which
runs before the next call, in a child context. An explicit stack holds the workflows that are open,
so depth costs memory and nothing else; a call costs the same at any depth.
"""

from __future__ import annotations

import inspect
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from turnwarden._core import ToolCall, WorkflowJsonResponse
from turnwarden.engine.checking import check_callable, check_limit, check_type
from turnwarden.engine.contexts import WorkflowContext, create_context
from turnwarden.engine.driving import event_loop_needed, is_awaitable, refuse_running_loop, run_sync
from turnwarden.engine.errors import RunInterrupted, attach_run
from turnwarden.engine.events import (
    EventEmitter,
    EventSink,
    GuardSpoke,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolStarted,
    WorkflowEntered,
    WorkflowLeft,
)
from turnwarden.engine.handles import RunHandle
from turnwarden.engine.results import (
    CallStatus,
    RunStatus,
    ToolExecutionStatus,
    ToolOutcome,
    ToolResult,
    as_workflow,
    error_text,
    normalise_result,
    render_value,
)
from turnwarden.guards import GuardCheckResult, WorkflowGuard, WorkflowGuardConfig

__all__ = [
    "ExecuteTool",
    "WorkflowExecution",
    "WorkflowRun",
    "execute_workflow",
    "execute_workflow_sync",
    "start_workflow",
]

DEFAULT_MAX_CALLS: Final = 1000

ExecuteTool: TypeAlias = (
    Callable[[str, dict[str, Any], "WorkflowContext"], Any]
    | Callable[[ToolCall, "WorkflowContext"], Any]
)
"""Runs one call: `(name, arguments, context)` or `(call, context)`, synchronous or not."""

OnError: TypeAlias = Literal["stop", "continue"]


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """What a recursive workflow did.

    Attributes:
        status: completed, failed, limit, stopped or cancelled; running while it does.
        results: What each call brought, in the order in which the calls ended; None for a call
            that failed.
        context: The context that it ran in; its `results` are records with names and errors.
        error: Why it ended early; None when it completed.
        reason: The same as a code: `call.failed`, `limit.max_depth`, `limit.max_calls`,
            `cancelled`, the guard's code, or what a tool gave as its termination reason.
        calls: The records of this run's calls.
    """

    status: RunStatus
    results: list[Any]
    context: WorkflowContext
    error: str | None = None
    reason: str | None = None
    calls: tuple[ToolResult, ...] = field(default=(), repr=False)

    @property
    def failures(self) -> tuple[ToolResult, ...]:
        """The records of calls that failed."""
        return tuple(call for call in self.calls if call.error is not None)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name; of the context only its shared data."""
        return {
            "status": self.status.value,
            "results": self.results,
            "error": self.error,
            "reason": self.reason,
            "calls": [call.to_dict() for call in self.calls],
            "shared_data": self.context.shared_data,
        }


async def execute_workflow(
    workflow: WorkflowJsonResponse | Mapping[str, Any],
    execute_tool: ExecuteTool,
    context: WorkflowContext | None = None,
    *,
    max_depth: int | None = None,
    max_calls: int = DEFAULT_MAX_CALLS,
    on_error: OnError = "stop",
    guard: WorkflowGuard | WorkflowGuardConfig | Mapping[str, Any] | None = None,
    on_event: EventSink | None = None,
    workflow_id: str | None = None,
    revision: str | None = None,
) -> WorkflowRun:
    """Make the calls of a workflow, and those that their results bring.

    Args:
        workflow: A `WorkflowJsonResponse`, or a mapping with `content` and `next`.
        execute_tool: Runs one call; see `ExecuteTool`. What it returns or raises is the result.
        context: Where to run; a new one by default.
        max_depth: Workflows at this depth and deeper do not run. By default the context's: 10.
        max_calls: How many calls may be made.
        on_error: Whether a failed call ends the run, or the next call is made.
        guard: Judges every call as a turn of its own. A blocked call counts as failed.
        on_event: Is given the events of the run.
        workflow_id: Goes into the events.
        revision: Goes into the events.

    Returns:
        What was done. Limits, failures and the guard end a run with a status, not by raising.

    Raises:
        TypeError: No workflow, or an `execute_tool` that takes other arguments.
        ValueError: A call that cannot be read, or a limit out of its range.
        asyncio.CancelledError: Passed through; its `run` holds what was done, as the context does.

    Example:
        >>> import asyncio
        >>> def tool(name, arguments, context):
        ...     return {"success": True, "data": name, "context": {"last": name}}
        >>> run = asyncio.run(execute_workflow({"content": "", "next": [{"mcp": "a"}]}, tool))
        >>> run.status, run.results, run.context.shared_data
        (<RunStatus.COMPLETED: 'completed'>, ['a'], {'last': 'a'})
    """
    execution = WorkflowExecution(
        workflow, execute_tool, context, max_depth, max_calls, on_error, guard,
        on_event, workflow_id, revision,
    )  # fmt: skip
    return await execution.run()


def execute_workflow_sync(
    workflow: WorkflowJsonResponse | Mapping[str, Any],
    execute_tool: ExecuteTool,
    context: WorkflowContext | None = None,
    *,
    max_depth: int | None = None,
    max_calls: int = DEFAULT_MAX_CALLS,
    on_error: OnError = "stop",
    guard: WorkflowGuard | WorkflowGuardConfig | Mapping[str, Any] | None = None,
    on_event: EventSink | None = None,
    workflow_id: str | None = None,
    revision: str | None = None,
) -> WorkflowRun:
    """The same from synchronous code; an event loop runs only if `execute_tool` is asynchronous.

    Raises:
        RunningLoopError: Called inside a running event loop.
        RunInterrupted: Ctrl-C; its `run` holds what was done.
    """
    refuse_running_loop("await execute_workflow(...)")
    execution = WorkflowExecution(
        workflow, execute_tool, context, max_depth, max_calls, on_error, guard,
        on_event, workflow_id, revision,
    )  # fmt: skip
    try:
        return run_sync(execution.run())
    except KeyboardInterrupt as error:
        execution.abort()  # Ctrl-C may come before its first step
        raise RunInterrupted(execution.so_far()) from error


def start_workflow(
    workflow: WorkflowJsonResponse | Mapping[str, Any],
    execute_tool: ExecuteTool,
    context: WorkflowContext | None = None,
    *,
    max_depth: int | None = None,
    max_calls: int = DEFAULT_MAX_CALLS,
    on_error: OnError = "stop",
    guard: WorkflowGuard | WorkflowGuardConfig | Mapping[str, Any] | None = None,
    on_event: EventSink | None = None,
    workflow_id: str | None = None,
    revision: str | None = None,
) -> RunHandle[WorkflowRun]:
    """The same in a task of its own, inside a running event loop.

    Returns:
        A handle: await it, cancel it, ask it for `result_so_far`.
    """
    execution = WorkflowExecution(
        workflow, execute_tool, context, max_depth, max_calls, on_error, guard,
        on_event, workflow_id, revision,
    )  # fmt: skip
    return RunHandle(execution)


@dataclass(slots=True)
class _Frame:
    """A workflow that is open: its context, and the calls that are left."""

    context: WorkflowContext
    calls: Iterator[ToolCall]


@dataclass(frozen=True, slots=True)
class _Begun:
    """A call that is under way, and the place of its record among those of the run."""

    position: int
    call: ToolCall
    context: WorkflowContext
    started: float

    def record(self) -> ToolResult:
        """A record that says that the call is not finished."""
        outcome = ToolOutcome.failed(
            "the run ended before this call was finished; it may have had effects"
        )
        duration = time.perf_counter() - self.started
        return _record_of(self.call, self.context, outcome, CallStatus.UNFINISHED, duration)


def _record_of(
    call: ToolCall,
    context: WorkflowContext,
    outcome: ToolOutcome,
    status: CallStatus,
    duration: float | None,
) -> ToolResult:
    return ToolResult(
        tool_name=call.name,
        result=outcome.data,
        error=outcome.error,
        timestamp=time.time(),
        status=status,
        call_id=call.id,
        arguments=call.arguments,
        duration=duration,
        turn=context.depth,
    )


class _Ended(Exception):  # noqa: N818 - not an error: it carries the end of a run to its top
    def __init__(self, status: RunStatus, reason: str, error: str | None) -> None:
        self.status = status
        self.reason = reason
        self.error = error
        super().__init__(status, reason, error)


class WorkflowExecution:
    """One run of `execute_workflow`, whose arguments it takes.

    `needs_loop=False` says that what `execute_tool` gives to await asks for an event loop itself.
    """

    def __init__(
        self,
        workflow: object,
        execute_tool: ExecuteTool,
        context: WorkflowContext | None = None,
        max_depth: int | None = None,
        max_calls: int = DEFAULT_MAX_CALLS,
        on_error: OnError = "stop",
        guard: WorkflowGuard | WorkflowGuardConfig | Mapping[str, Any] | None = None,
        on_event: EventSink | None = None,
        workflow_id: str | None = None,
        revision: str | None = None,
        needs_loop: bool = True,
    ) -> None:
        self._needs_loop = needs_loop
        self._workflow = as_workflow(workflow)
        self._execute_tool = _one_signature(execute_tool)
        check_type("context", context, WorkflowContext, optional=True)
        check_callable("on_event", on_event)
        self._context = create_context(max_depth=max_depth) if context is None else context
        self._max_depth = self._context.max_depth if max_depth is None else max_depth
        check_limit("max_depth", self._max_depth)
        check_limit("max_calls", max_calls)
        self._max_calls = max_calls
        if on_error not in ("stop", "continue"):
            raise ValueError(f"on_error must be 'stop' or 'continue', not {on_error!r}")
        self._on_error = on_error
        self._guard = _guard_of(guard)
        self.run_id = f"run-{secrets.token_hex(8)}"
        sinks = [] if on_event is None else [on_event]
        self._events = EventEmitter(self.run_id, sinks, workflow_id=workflow_id, revision=revision)
        self._records: list[ToolResult] = []
        self._begun: _Begun | None = None
        self._status = RunStatus.RUNNING
        self._reason: str | None = None
        self._error: str | None = None

    def so_far(self) -> WorkflowRun:
        """What was done so far."""
        records = list(self._records)
        if self._begun is not None and len(records) == self._begun.position:
            records.append(self._begun.record())
        return WorkflowRun(
            status=self._status,
            results=[record.result for record in records],
            context=self._context,
            error=self._error,
            reason=self._reason,
            calls=tuple(records),
        )

    def abort(self) -> None:
        """The run was cancelled before it began."""
        if self._status is RunStatus.RUNNING:
            self._status, self._reason = RunStatus.CANCELLED, "cancelled"

    async def run(self) -> WorkflowRun:
        """Run to the end, whichever comes."""
        try:
            self._events.emit(RunStarted)
            await self._run_frames()
            self._status = RunStatus.COMPLETED
        except _Ended as end:
            self._status, self._reason, self._error = end.status, end.reason, end.error
        except BaseException as error:  # cancelled or interrupted: passed on, with what was done
            self._status, self._reason = RunStatus.CANCELLED, "cancelled"
            self._error = error_text(error)
            self._close_begun()
            attach_run(error, self.so_far())
            raise
        finally:
            if self._events.sinks:
                self._events.emit(
                    RunFinished, status=self._status, reason=self._reason, result=self.so_far()
                )
        return self.so_far()

    def _close_begun(self) -> None:
        """Record the call that the end of the run found under way, if there is one."""
        begun = self._begun
        if begun is None:
            return
        if len(self._records) == begun.position:
            self._records.append(begun.record())
        record = self._records[begun.position]
        if all(known is not record for known in begun.context.results[-1:]):
            begun.context.record(record)
        self._begun = None

    async def _run_frames(self) -> None:
        frames: list[_Frame] = []
        try:
            self._enter(frames, self._context, self._workflow)
            while frames:
                frame = frames[-1]
                call = next(frame.calls, None)
                if call is None:
                    self._leave(frames)
                    continue
                following = await self._make_call(call, frame.context)
                if following is not None and following.next:
                    self._check_depth(frame.context.depth + 1, call)
                    child = frame.context.open_child(self._max_depth)
                    self._enter(frames, child, following)
        finally:
            while frames:
                self._leave(frames)

    def _enter(
        self, frames: list[_Frame], context: WorkflowContext, workflow: WorkflowJsonResponse
    ) -> None:
        calls = workflow.next
        if calls and not frames:
            self._check_depth(context.depth, calls[0])
        frames.append(_Frame(context, iter(calls)))
        self._events.emit(
            WorkflowEntered,
            execution_id=context.execution_id,
            depth=context.depth,
            call_count=len(calls),
        )

    def _leave(self, frames: list[_Frame]) -> None:
        context = frames.pop().context
        if context is not self._context:  # the caller's own context stays open
            context.close()
        self._events.emit(WorkflowLeft, execution_id=context.execution_id, depth=context.depth)

    def _check_depth(self, depth: int, call: ToolCall) -> None:
        if depth >= self._max_depth:
            raise _Ended(
                RunStatus.LIMIT,
                "limit.max_depth",
                f"max_depth={self._max_depth} reached: the workflow at depth {depth} that "
                f"{call.name!r} belongs to or brought was not run",
            )

    async def _make_call(
        self, call: ToolCall, context: WorkflowContext
    ) -> WorkflowJsonResponse | None:
        """Make one call, record it, and return its next workflow."""
        if len(self._records) >= self._max_calls:
            raise _Ended(
                RunStatus.LIMIT,
                "limit.max_calls",
                f"max_calls={self._max_calls} reached: {call.name!r} was not called",
            )
        warning = self._ask_guard(call)
        if warning is not None:
            blocked = ToolOutcome.failed(warning)
            self._record(call, context, blocked, CallStatus.BLOCKED, None)
            self._end_if_failed(blocked, RunStatus.STOPPED, "guard.block")
            return None
        outcome = await self._call_tool(call, context)
        self._tell_guard(call, outcome)
        self._end_if_failed(outcome, RunStatus.FAILED, "call.failed")
        _end_if_asked(outcome)
        return outcome.next_workflow

    async def _call_tool(self, call: ToolCall, context: WorkflowContext) -> ToolOutcome:
        """Run one call and record what came of it."""
        started = time.perf_counter()
        self._begun = _Begun(len(self._records), call, context, started)
        self._events.emit(
            ToolStarted,
            call_id=call.id,
            tool_name=call.name,
            arguments=call.arguments,
            turn=context.depth,
        )
        try:
            value = self._execute_tool(call, context)
            if is_awaitable(value):
                if self._needs_loop:
                    await event_loop_needed()
                value = await cast("Awaitable[Any]", value)
            outcome = normalise_result(value)
        except Exception as error:  # whatever a tool raises is the result of its call
            outcome = ToolOutcome.failed(error_text(error))
        status = CallStatus.COMPLETED if outcome.success else CallStatus.FAILED
        self._record(call, context, outcome, status, time.perf_counter() - started)
        self._begun = None
        return outcome

    def _record(
        self,
        call: ToolCall,
        context: WorkflowContext,
        outcome: ToolOutcome,
        status: CallStatus,
        duration: float | None,
    ) -> None:
        record = _record_of(call, context, outcome, status, duration)
        if outcome.context:
            context.shared_data.update(outcome.context)
        self._records.append(record)
        context.record(record)
        self._events.emit(
            ToolFinished,
            call_id=call.id,
            tool_name=call.name,
            status=status,
            duration=duration,
            result=outcome.data,
            error=outcome.error,
            turn=context.depth,
        )

    def _end_if_failed(self, outcome: ToolOutcome, status: RunStatus, reason: str) -> None:
        if not outcome.success and self._on_error == "stop":
            raise _Ended(status, reason, outcome.error)

    def _ask_guard(self, call: ToolCall) -> str | None:
        """Record the call; its warning when the call must not run."""
        if self._guard is None:
            return None
        verdict = self._guard.record_tool_call(call)
        self._heed(verdict)
        if verdict.allows(call):
            return None
        return verdict.warning_message or "the guard blocked this call"

    def _tell_guard(self, call: ToolCall, outcome: ToolOutcome) -> None:
        if self._guard is not None:
            result = render_value(outcome.data)
            self._heed(self._guard.record_tool_result(result, call_id=call.id, error=outcome.error))

    def _heed(self, verdict: GuardCheckResult) -> None:
        if verdict.warning_message is None and verdict.allow_continue:
            return
        self._events.emit(
            GuardSpoke,
            action=str(verdict.action),
            reason=verdict.force_terminate_reason or next(iter(verdict.reasons), None),
            message=verdict.warning_message,
        )
        if not verdict.allow_continue:
            reason = verdict.force_terminate_reason or "guard.stop"
            raise _Ended(RunStatus.STOPPED, reason, verdict.warning_message or reason)


def _guard_of(
    guard: WorkflowGuard | WorkflowGuardConfig | Mapping[str, Any] | None,
) -> WorkflowGuard | None:
    if isinstance(guard, (WorkflowGuardConfig, Mapping)):
        return WorkflowGuard(guard)
    if guard is None or isinstance(cast("object", guard), WorkflowGuard):
        return guard
    raise TypeError(
        "guard must be a WorkflowGuard, a WorkflowGuardConfig, a mapping of its fields or None, "
        f"not {type(guard).__name__}"
    )


def _end_if_asked(outcome: ToolOutcome) -> None:
    """End the run when the tool says so, or needs what nobody here can give."""
    if outcome.should_terminate:
        reason = outcome.termination_reason or "tool.should_terminate"
        raise _Ended(RunStatus.STOPPED, reason, outcome.termination_reason)
    if outcome.status is ToolExecutionStatus.NEEDS_INPUT:
        raise _Ended(RunStatus.STOPPED, "needs_input", outcome.message or None)


def _one_signature(execute_tool: Any) -> Callable[[ToolCall, WorkflowContext], Any]:
    """One way to call a tool that takes `(name, arguments, context)` or `(call, context)`."""
    if not callable(execute_tool):
        raise TypeError(f"execute_tool must be callable, not {type(execute_tool).__name__}")
    function = cast("Callable[..., Any]", execute_tool)

    def with_three(call: ToolCall, context: WorkflowContext) -> Any:
        return function(call.name, dict(call.arguments), context)

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return with_three  # a callable that tells nothing
    for count, caller in ((3, with_three), (2, function)):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return caller
    raise TypeError(
        "execute_tool must take (name, arguments, context) or (call, context); "
        f"it takes {signature}"
    )
