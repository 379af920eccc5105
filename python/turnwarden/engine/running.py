"""One run of the agent loop: its state, and its steps.

Everything that a run has done lies in lists that only grow, and in the open turn, whose place in
them is known: so what was done so far can be told at any moment, wherever the run is cut.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import functools
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from turnwarden._core import FaultKind, Reply, ResponseParser, ToolCall
from turnwarden.engine.asking import Answer, Asking
from turnwarden.engine.calling import AbandonedThread, call_tool
from turnwarden.engine.checking import check_type
from turnwarden.engine.contexts import WorkflowContext, create_context
from turnwarden.engine.driving import event_loop_needed
from turnwarden.engine.errors import ModelError, ResumeError, attach_run
from turnwarden.engine.events import (
    EventEmitter,
    EventSink,
    GuardSpoke,
    IterationStarted,
    ReplyProgress,
    ReplyReceived,
    RunFinished,
    RunPaused,
    RunStarted,
    ToolAbandoned,
    ToolFinished,
    ToolStarted,
)
from turnwarden.engine.handles import RunHandle
from turnwarden.engine.history import (
    CallAnswer,
    HistoryStyle,
    Message,
    as_messages,
    ids_in,
    plain_message,
    with_guidance,
    with_unique_ids,
)
from turnwarden.engine.recursive import (
    WorkflowExecution,
    WorkflowRun,
)
from turnwarden.engine.results import (
    CallStatus,
    RunStatus,
    ToolExecutionStatus,
    ToolOutcome,
    ToolResult,
    error_text,
    render_outcome,
    render_value,
)
from turnwarden.engine.run_result import Question, RunResult
from turnwarden.engine.tools import ArgumentsError, Tool
from turnwarden.guards import GuardCheckResult, WorkflowGuard, WorkflowGuardConfig
from turnwarden.state import Unset

__all__ = ["LoopSettings", "Run"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """What all runs of a loop share."""

    model: Callable[..., Any]
    options: dict[str, Any]
    tools: dict[str, Tool]
    guard: WorkflowGuardConfig
    parser: ResponseParser
    max_parallel_tools: int
    tool_timeout: float | None
    style: HistoryStyle
    sinks: tuple[EventSink, ...]
    workflow_id: str | None
    revision: str | None


@dataclass(slots=True)
class _Call:
    """A call of the turn, and what became of it."""

    call: ToolCall
    tool: Tool | None = None
    arguments: tuple[list[Any], dict[str, Any]] | None = None
    started: float | None = None
    record: ToolResult | None = None
    text: str = ""
    following: WorkflowExecution | None = None
    signals: tuple[tuple[ToolCall, ToolOutcome], ...] = ()

    def records(self, turn: int) -> Iterator[ToolResult]:
        """Its record, and those of the calls that it brought."""
        yield self.record or _record_of(
            self, ToolOutcome.failed(self._unfinished), CallStatus.UNFINISHED, turn
        )
        if self.following is not None:
            for record in self.following.so_far().calls:
                yield dataclasses.replace(record, turn=turn)

    def answer(self) -> CallAnswer:
        """What the model is told; of a call that is not finished, that it is not."""
        if self.record is None:
            return CallAnswer(self.call, f"Error: {self._unfinished}", True)
        return CallAnswer(self.call, self.full_text, self.record.error is not None)

    @property
    def full_text(self) -> str:
        """The text of its result, with what the calls that it brought did."""
        if self.following is None:
            return self.text
        return _with_following(self.text, self.following.so_far())

    @property
    def _unfinished(self) -> str:
        if self.started is None:
            return "the run ended before this call was begun"
        return "the run ended before this call was finished; it may have had effects"


@dataclass(slots=True)
class _Turn:
    """A reply, and the calls made from it.

    The first two say where its messages and records begin in those of the run: writing them there
    again changes nothing.
    """

    first_message: int
    first_record: int
    iteration: int
    assistant: Message | None
    calls: list[_Call]
    refused: list[ToolCall]
    notes: list[str]

    def messages(self, style: HistoryStyle) -> list[Message]:
        """The reply and the answers to its calls, as they are now."""
        answers = style.answers([item.answer() for item in self.calls], self.notes)
        return answers if self.assistant is None else [self.assistant, *answers]

    def records(self) -> list[ToolResult]:
        """What became of its calls, as it is now."""
        return [record for item in self.calls for record in item.records(self.iteration)]


@dataclass(frozen=True, slots=True)
class _End:
    """How a run ends."""

    status: RunStatus
    reason: str


class _ToolCancelled(Exception):  # noqa: N818 - carries a cancellation out of a group of tasks
    """A tool was cancelled by somebody else than the run."""

    def __init__(self, error: asyncio.CancelledError) -> None:
        self.error = error
        super().__init__(error)


class Run:
    """One run.

    Args:
        settings: Of the loop.
        run_id: Which run.
        messages: What it begins with; the run's own list.
        guard: The run's own.
        sequence: Where its events go on.
    """

    def __init__(
        self,
        settings: LoopSettings,
        run_id: str,
        messages: list[Message],
        guard: WorkflowGuard,
        sequence: int = 0,
    ) -> None:
        self.run_id = run_id
        self._settings = settings
        self._messages = messages
        self._guard = guard
        self._events = EventEmitter(
            run_id,
            settings.sinks,
            workflow_id=settings.workflow_id,
            revision=settings.revision,
            sequence=sequence,
        )
        self._used_ids = ids_in(messages)
        self._records: list[ToolResult] = []
        self._iterations = 0
        self._turn: _Turn | None = None
        self._asking: Asking | None = None
        self._reply: Reply | None = None
        self._status = RunStatus.RUNNING
        self._reason: str | None = None
        self._questions: tuple[Question, ...] = ()
        self._abandoned: list[AbandonedThread] = []
        self._shared_data: dict[str, Any] = {}
        self._is_resumed = False

    @classmethod
    def begin(cls, settings: LoopSettings, messages: str | Iterable[Any]) -> Run:
        """A new run."""
        guard = WorkflowGuard(settings.guard)
        return cls(settings, f"run-{secrets.token_hex(8)}", as_messages(messages), guard)

    @classmethod
    def go_on(
        cls, settings: LoopSettings, earlier: RunResult | RunHandle[RunResult], given: Any
    ) -> Run:
        """A run that goes on where an earlier one ended.

        Raises:
            ResumeError: It is not over, has its answer already, or needs an input.
        """
        result = earlier.result_so_far if isinstance(earlier, RunHandle) else earlier
        check_type("the run to go on with", result, RunResult)
        _refuse_to_resume(result, given)
        messages = [*result.messages, *_input_messages(given)]
        run = cls(settings, result.run_id, messages, copy.copy(result.guard), result.next_sequence)
        run._records = list(result.results)
        run._iterations = result.iterations
        run._reply = result.reply
        run._abandoned = list(result.abandoned)
        run._shared_data = dict(result.shared_data)
        run._is_resumed = True
        return run

    def listen(self, sink: EventSink) -> None:
        """Hand the events to one more."""
        self._events.sinks.append(sink)

    def so_far(self) -> RunResult:
        """What was done so far; of a run that is over, all of it."""
        messages, records = list(self._messages), list(self._records)
        if (turn := self._turn) is not None:
            messages[turn.first_message :] = turn.messages(self._settings.style)
            records[turn.first_record :] = turn.records()
        partial = None if self._asking is None else self._asking.partial
        reply = self._reply if partial is None else partial
        is_running = self._status is RunStatus.RUNNING
        return RunResult(
            status=self._status,
            reason=self._reason,
            text="" if reply is None else reply.text,
            iterations=self._iterations,
            results=records,
            messages=messages,
            summary=self._guard.generate_summary(),
            guard=copy.copy(self._guard) if is_running else self._guard,
            reply=reply,
            questions=self._questions,
            abandoned=tuple(self._abandoned),
            shared_data=dict(self._shared_data),
            run_id=self.run_id,
            next_sequence=self._events.sequence,
        )

    def abort(self) -> None:
        """The run was cancelled before it began."""
        if self._status is RunStatus.RUNNING:
            self._status, self._reason = RunStatus.CANCELLED, "cancelled"

    # The course of a run

    async def run(self) -> RunResult:
        """Run to the end, whichever comes.

        Raises:
            ModelError: The model raised, or gave no reply.
            asyncio.CancelledError: Passed through, with the run so far as `run`.
        """
        try:
            self._events.emit(RunStarted, is_resumed=self._is_resumed)
            end = await self._iterate()
        except BaseException as error:
            self._finish(_end_by(error))
            attach_run(error, self.so_far())
            raise
        self._finish(end)
        return self.so_far()

    def _finish(self, end: _End) -> None:
        self._status, self._reason = end.status, end.reason
        if self._turn is not None:
            self._close_turn(self._turn)
        if end.status in (RunStatus.COMPLETED, RunStatus.STOPPED):
            self._guard.terminate(end.reason)  # so that its summary and context say so
        if not self._events.sinks:
            return
        if end.status is RunStatus.PAUSED:
            self._events.emit(RunPaused, questions=self._questions)
        self._events.emit(RunFinished, status=end.status, reason=end.reason, result=self.so_far())

    async def _iterate(self) -> _End:
        while True:
            check = self._guard.start_iteration()
            self._report(check)
            if not check.allow_continue:
                return _stopped(check)
            self._iterations += 1
            answer = await self._ask()
            turn = self._open_turn(answer)
            if not turn.calls and not turn.notes:
                return _End(RunStatus.COMPLETED, "answered")
            end = await self._make_calls(turn)
            self._close_turn(turn)
            if end is not None:
                return end

    async def _ask(self) -> Answer:
        guidance = self._guard.guidance()
        if self._events.sinks:
            self._events.emit(IterationStarted, iteration=self._iterations, guidance=guidance)
        prompt = with_guidance(self._messages, guidance)
        settings = self._settings
        self._asking = Asking(settings.parser, self._report_progress)
        try:
            answer = await self._asking.ask(settings.model, prompt, **settings.options)
        except Exception as error:
            said = f"{type(error).__name__}: {error_text(error)}"
            raise ModelError(f"the model failed: {said}") from error
        self._reply, self._asking = answer.reply, None
        if answer.tokens is not None:
            self._guard.spend(tokens=answer.tokens)
        if self._events.sinks:
            self._events.emit(
                ReplyReceived,
                iteration=self._iterations,
                call_count=len(answer.reply.tool_calls),
                reply=answer.reply,
            )
        return answer

    def _open_turn(self, answer: Answer) -> _Turn:
        reply, style = answer.reply, self._settings.style
        calls = with_unique_ids(reply.tool_calls, self._used_ids, style)
        is_clean = not reply.faults and not reply.incomplete_calls
        refused = [] if is_clean else list(_refused_calls(reply))
        turn = _Turn(
            first_message=len(self._messages),
            first_record=len(self._records),
            iteration=self._iterations,
            assistant=style.assistant(reply, calls, answer.native),
            calls=[_Call(call) for call in calls],
            refused=[ToolCall(f"_invalid_{name}") for name, _ in refused],
            notes=[note for _, note in refused],
        )
        self._turn = turn
        return turn

    def _close_turn(self, turn: _Turn) -> None:
        """Put the turn into the history. Doing it twice, or in part, changes nothing."""
        self._messages[turn.first_message :] = turn.messages(self._settings.style)
        self._records[turn.first_record :] = turn.records()
        self._turn = None

    # The calls of a turn

    async def _make_calls(self, turn: _Turn) -> _End | None:
        """Make the calls of a turn; how the run ends, if it does."""
        verdict = self._guard.record_turn([*(item.call for item in turn.calls), *turn.refused])
        self._report(verdict)
        ready = [item for item in turn.calls if self._is_ready(item, verdict)]
        stopped = verdict
        try:
            await self._run_calls(ready)
        finally:
            later = self._tell_guard(turn)
        if stopped.allow_continue and later is not None:
            stopped = later
        return self._end_of(turn, stopped)

    def _is_ready(self, item: _Call, verdict: GuardCheckResult) -> bool:
        """Whether a call can be made; else it is answered."""
        if not verdict.allow_continue or not verdict.allows(item.call):
            text = verdict.warning_message or "the guard ended this run"
            self._settle(item, ToolOutcome.failed(text), CallStatus.BLOCKED, text)
            return False
        item.tool = self._settings.tools.get(item.call.name)
        if item.tool is None:
            self._settle(item, ToolOutcome.failed(self._unknown(item.call)), CallStatus.REFUSED)
            return False
        try:
            item.arguments = item.tool.bind(item.call.arguments)
        except ArgumentsError as error:
            self._settle(item, ToolOutcome.failed(str(error)), CallStatus.REFUSED)
            return False
        return True

    def _unknown(self, call: ToolCall) -> str:
        known = ", ".join(self._settings.tools) or "none"
        return f"unknown tool {_shown(call.name)}; known tools: {known}"

    async def _run_calls(self, ready: Sequence[_Call]) -> None:
        workers = min(len(ready), self._settings.max_parallel_tools)
        if workers > 1 and any(_waits(item) for item in ready):
            await self._run_in_parallel(ready, workers)
            return
        for item in ready:
            await self._run_call(item)

    async def _run_in_parallel(self, ready: Sequence[_Call], workers: int) -> None:
        await event_loop_needed()
        waiting = iter(ready)

        async def work() -> None:
            for item in waiting:
                try:
                    await self._run_call(item)
                except asyncio.CancelledError as error:
                    task = asyncio.current_task()
                    if task is not None and task.cancelling():
                        raise
                    raise _ToolCancelled(error) from error  # a group would pass over it

        cancelled: asyncio.CancelledError | None = None
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(work())
        except* _ToolCancelled as signals:
            cancelled = cast("_ToolCancelled", signals.exceptions[0]).error
        if cancelled is not None:
            raise cancelled

    async def _run_call(self, item: _Call) -> None:
        """Run one call, and the workflow that it may return."""
        tool = cast("Tool", item.tool)
        item.started = time.perf_counter()
        self._report_start(item.call)
        outcome, status = await self._call_tool(item, tool, item.call, item.arguments or ([], {}))
        self._settle(item, outcome, status)
        if outcome.next_workflow is not None and outcome.next_workflow.next:
            await self._run_next_workflow(item, outcome)

    async def _call_tool(
        self,
        item: _Call,
        tool: Tool,
        call: ToolCall,
        arguments: tuple[list[Any], dict[str, Any]],
    ) -> tuple[ToolOutcome, CallStatus]:
        default = self._settings.tool_timeout
        timeout = default if isinstance(tool.timeout, Unset) else tool.timeout
        abandon = functools.partial(self._abandon, tool, call)
        outcome, status = await call_tool(tool, arguments, timeout, abandon)
        if outcome.should_terminate or outcome.status is ToolExecutionStatus.NEEDS_INPUT:
            item.signals = (*item.signals, (call, outcome))
        return outcome, status

    def _abandon(self, tool: Tool, call: ToolCall, seconds: float) -> None:
        """A thread is given up."""
        self._abandoned.append(AbandonedThread(tool.name, call.id, seconds))
        _logger.warning("the thread of tool %r outlived its time: abandoned", tool.name)
        self._events.emit(ToolAbandoned, call_id=call.id, tool_name=tool.name, seconds=seconds)

    async def _run_next_workflow(self, item: _Call, outcome: ToolOutcome) -> None:
        """Make the calls that a result brings, before the model sees the result."""

        async def call_nested(call: ToolCall, _: WorkflowContext) -> ToolOutcome:
            tool = self._settings.tools.get(call.name)
            if tool is None:
                return ToolOutcome.failed(self._unknown(call))
            arguments = tool.bind(call.arguments)
            started = time.perf_counter()
            self._report_start(call)
            nested, status = await self._call_tool(item, tool, call, arguments)
            self._report_result(call, nested, status, time.perf_counter() - started)
            return nested

        item.following = WorkflowExecution(
            outcome.next_workflow,
            call_nested,
            create_context(shared_data=self._shared_data),
            guard=self._settings.guard,
            needs_loop=False,
        )
        await item.following.run()

    def _settle(
        self, item: _Call, outcome: ToolOutcome, status: CallStatus, text: str | None = None
    ) -> None:
        """A call has its result."""
        if outcome.context:
            self._shared_data.update(outcome.context)
        item.text = render_outcome(outcome) if text is None else text
        item.record = _record_of(item, outcome, status, self._iterations)
        self._report_result(item.call, outcome, status, item.record.duration)

    def _report_start(self, call: ToolCall) -> None:
        if not self._events.sinks:
            return
        self._events.emit(
            ToolStarted,
            call_id=call.id,
            tool_name=call.name,
            arguments=call.arguments,
            turn=self._iterations,
        )

    def _report_result(
        self, call: ToolCall, outcome: ToolOutcome, status: CallStatus, duration: float | None
    ) -> None:
        if not self._events.sinks:
            return
        self._events.emit(
            ToolFinished,
            call_id=call.id,
            tool_name=call.name,
            status=status,
            duration=duration,
            result=outcome.data,
            error=outcome.error,
            turn=self._iterations,
        )

    # The guard

    def _tell_guard(self, turn: _Turn) -> GuardCheckResult | None:
        """Record the results that are there; the verdict that stops the run, if one does."""
        stopped: GuardCheckResult | None = None
        for item in turn.calls:
            record = item.record
            if record is not None and record.status is not CallStatus.BLOCKED:
                verdict = self._guard.record_tool_result(
                    item.full_text, call_id=item.call.id, error=record.error
                )
                stopped = stopped or self._stopping(verdict)
        for call, note in zip(turn.refused, turn.notes, strict=True):
            verdict = self._guard.record_tool_result(note, call_id=call.id, error=note)
            stopped = stopped or self._stopping(verdict)
        return stopped

    def _stopping(self, verdict: GuardCheckResult) -> GuardCheckResult | None:
        self._report(verdict)
        return None if verdict.allow_continue else verdict

    def _end_of(self, turn: _Turn, verdict: GuardCheckResult) -> _End | None:
        """How the run ends after this turn, if it does: by a tool, the guard, or a question."""
        signals = [signal for item in turn.calls for signal in item.signals]
        for _, outcome in signals:
            if outcome.should_terminate:
                reason = outcome.termination_reason or "tool.should_terminate"
                return _End(RunStatus.STOPPED, reason)
        if not verdict.allow_continue:
            return _stopped(verdict)
        self._questions = tuple(
            Question(call.id, call.name, outcome.message, outcome.data)
            for call, outcome in signals
            if outcome.status is ToolExecutionStatus.NEEDS_INPUT
        )
        return _End(RunStatus.PAUSED, "needs_input") if self._questions else None

    def _report(self, verdict: GuardCheckResult) -> None:
        if not self._events.sinks or verdict.action == "continue":
            return
        self._events.emit(
            GuardSpoke,
            action=str(verdict.action),
            reason=verdict.force_terminate_reason or next(iter(verdict.reasons), None),
            message=verdict.warning_message,
        )

    def _report_progress(self, event: Any) -> None:
        self._events.emit(ReplyProgress, iteration=self._iterations, event=event)


def _end_by(error: BaseException) -> _End:
    if isinstance(error, ModelError):
        return _End(RunStatus.FAILED, "model.error")
    if isinstance(error, Exception):
        return _End(RunStatus.FAILED, "engine.error")
    return _End(RunStatus.CANCELLED, "cancelled")


def _stopped(verdict: GuardCheckResult) -> _End:
    return _End(RunStatus.STOPPED, verdict.force_terminate_reason or "guard.stop")


def _waits(item: _Call) -> bool:
    tool = cast("Tool", item.tool)
    return tool.is_async or tool.thread


def _record_of(item: _Call, outcome: ToolOutcome, status: CallStatus, turn: int) -> ToolResult:
    return ToolResult(
        tool_name=item.call.name,
        result=outcome.data,
        error=outcome.error,
        timestamp=time.time(),
        status=status,
        call_id=item.call.id,
        arguments=item.call.arguments,
        duration=None if item.started is None else time.perf_counter() - item.started,
        turn=turn,
    )


def _with_following(text: str, run: WorkflowRun) -> str:
    """A result's text, with what the calls that it brought did."""
    calls: list[dict[str, Any]] = []
    for record in run.calls:
        brought = {"result": record.result} if record.error is None else {"error": record.error}
        calls.append({"tool": record.tool_name, **brought})
    followed: dict[str, Any] = {"result": text, "calls": calls}
    if run.status is not RunStatus.COMPLETED:
        followed["calls_ended_by"] = run.error or run.reason
    return render_value(followed)


# Refused calls

_REFUSING: Final = frozenset(
    {
        FaultKind.UNREADABLE_ARGUMENTS,
        FaultKind.ARGUMENTS_NOT_AN_OBJECT,
        FaultKind.MISSING_ARGUMENTS,
        FaultKind.MISSING_NAME,
        FaultKind.JUNK,
        FaultKind.NUMBER_OUT_OF_RANGE,
        FaultKind.TOO_DEEP,
        FaultKind.TOO_MANY_CALLS,
        FaultKind.ARGUMENTS_TOO_LONG,
    }
)


def _refused_calls(reply: Reply) -> Iterator[tuple[str, str]]:
    """Names of the calls in a reply that were not made, and what the model is told."""
    is_empty = not reply.tool_calls and not reply.text
    for fault in reply.faults:
        is_refused = fault.kind in _REFUSING
        if is_refused or (is_empty and fault.kind == FaultKind.MALFORMED_MESSAGE):
            what = f"Your call of {_shown(fault.name)}" if fault.name else "A call of yours"
            yield (
                fault.name or "",
                f"Error: {what} could not be read and was not made: {fault.message}. "
                "Write it again, complete and valid.",
            )
    for call in reply.incomplete_calls:
        yield (
            call.name,
            f"Error: your call of {_shown(call.name)} was cut off and was not made. "
            "Write it again, complete; if it is long, in smaller parts.",
        )


def _shown(name: str) -> str:
    """A name that a model made up, as a message shows it: short, and on one line."""
    return repr(name if len(name) <= 64 else f"{name[:61]}...")


# Resuming


def _refuse_to_resume(result: RunResult, given: Any) -> None:
    if result.status is RunStatus.RUNNING:
        raise ResumeError("the run is not over")
    if result.status not in (RunStatus.PAUSED, RunStatus.CANCELLED, RunStatus.FAILED):
        raise ResumeError(
            f"the run is {result.status} ({result.reason}); start another one with its messages"
        )
    if result.status is RunStatus.PAUSED and given is None:
        asked = "; ".join(question.message for question in result.questions)
        raise ResumeError(f"the run waits for an input: {asked}")


def _input_messages(given: Any) -> list[Message]:
    """What the user gave, as messages: a text, content blocks, or a message."""
    if given is None:
        return []
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if isinstance(given, Sequence):
        return [{"role": "user", "content": list(cast("Sequence[Any]", given))}]
    message = plain_message(given)
    if message is None or "role" not in message:
        raise ResumeError(f"the input must be a text, blocks or a message, not {given!r}")
    return [message]
