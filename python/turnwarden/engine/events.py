"""What the engines tell while they work: frozen, light dataclasses, one set for all engines.

Each event names its run and stands in a sequence that counts from 0. Fields that hold what users,
models or tools said are marked: `LoggingSink` leaves them out unless asked, everything else may go
into any log. An event is only built when somebody listens.
"""

from __future__ import annotations

import dataclasses
import enum
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar, cast

__all__ = [
    "CheckpointWritten",
    "Event",
    "EventEmitter",
    "EventSink",
    "GuardSpoke",
    "IterationStarted",
    "LoggingSink",
    "NodeAbandoned",
    "NodeEmitted",
    "NodeFailed",
    "NodeFinished",
    "NodeRetried",
    "NodeStarted",
    "ReplyProgress",
    "ReplyReceived",
    "ResultDelivered",
    "RoundStarted",
    "RouteTaken",
    "RunFinished",
    "RunPaused",
    "RunStarted",
    "ToolAbandoned",
    "ToolFinished",
    "ToolStarted",
    "WorkflowEntered",
    "WorkflowLeft",
    "hand_out",
]

Marked: TypeAlias = Literal["arguments", "content"]
_ARGUMENTS: Final[dict[str, Marked]] = {"holds": "arguments"}
_CONTENT: Final[dict[str, Marked]] = {"holds": "content"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What all events have.

    Attributes:
        run_id: Which run.
        sequence: The position among the events of the run, from 0.
        timestamp: When, in seconds since 1970.
        workflow_id: Which workflow or agent, when it has a name.
        revision: Which revision of it.
    """

    type: ClassVar[str] = "event"

    run_id: str
    sequence: int
    timestamp: float
    workflow_id: str | None = None
    revision: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, and the `type`; enums and what has a `to_dict` as plain data."""
        data: dict[str, Any] = {"type": self.type}
        for entry in dataclasses.fields(self):
            data[entry.name] = _plain(getattr(self, entry.name))
        return data


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item) for item in cast("tuple[Any, ...]", value)]
    to_dict = getattr(value, "to_dict", None)
    return to_dict() if callable(to_dict) and not isinstance(value, type) else value


# Any run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run began, or went on after a pause.

    Attributes:
        is_resumed: Whether it goes on.
    """

    type: ClassVar[str] = "run_started"
    is_resumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """A run ended; always the last event, whatever the end was.

    Attributes:
        status: How it ended.
        reason: Why: a stable code, or what a tool or `guard.terminate` gave.
        result: All of what was done, as the run returns it.
    """

    type: ClassVar[str] = "run_finished"
    status: str
    reason: str | None = None
    result: Any = field(default=None, metadata=_CONTENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPaused(Event):
    """A run waits for input.

    Attributes:
        questions: What is asked, by whom.
    """

    type: ClassVar[str] = "run_paused"
    questions: tuple[Any, ...] = field(default=(), metadata=_CONTENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardSpoke(Event):
    """The guard warned, blocked or stopped.

    Attributes:
        action: What it did.
        reason: A stable code such as `loop.exact`.
        message: Its text.
    """

    type: ClassVar[str] = "guard_spoke"
    action: str
    reason: str | None = None
    message: str | None = field(default=None, metadata=_CONTENT)


# Calls, in an agent loop and in a recursive workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Event):
    """A tool was called.

    Attributes:
        call_id: Pairs the call with its result.
        tool_name: Which tool.
        arguments: What it was called with.
        turn: The iteration that made the call; in a recursive workflow the depth.
    """

    type: ClassVar[str] = "tool_started"
    call_id: str | None
    tool_name: str
    arguments: Mapping[str, Any] | None = field(default=None, metadata=_ARGUMENTS)
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(Event):
    """A call has its result, also when the tool did not run for it.

    Attributes:
        call_id: Pairs the call with its result.
        tool_name: Which tool.
        status: What became of the call.
        duration: Seconds that the tool took; None when it did not run.
        result: What it brought.
        error: Why it failed. It may quote arguments.
        turn: The iteration that made the call; in a recursive workflow the depth.
    """

    type: ClassVar[str] = "tool_finished"
    call_id: str | None
    tool_name: str
    status: str
    duration: float | None = None
    result: Any = field(default=None, metadata=_CONTENT)
    error: str | None = field(default=None, metadata=_CONTENT)
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAbandoned(Event):
    """A tool in a thread outlived its time; the thread still runs, its result will be dropped.

    Attributes:
        call_id: Pairs the call with its result.
        tool_name: Which tool.
        seconds: How long it had run by then.
    """

    type: ClassVar[str] = "tool_abandoned"
    call_id: str | None
    tool_name: str
    seconds: float


# The agent loop


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationStarted(Event):
    """The model is about to be asked.

    Attributes:
        iteration: Counts from 1.
        guidance: The guard's text that goes into the prompt, when there is something to say.
    """

    type: ClassVar[str] = "iteration_started"
    iteration: int
    guidance: str | None = field(default=None, metadata=_CONTENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyProgress(Event):
    """A piece of a reply that streams.

    Attributes:
        iteration: Whose reply.
        event: A parsing event, such as `turnwarden.TextDelta`.
    """

    type: ClassVar[str] = "reply_progress"
    iteration: int
    event: Any = field(metadata=_CONTENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyReceived(Event):
    """The model answered.

    Attributes:
        iteration: Whose reply.
        call_count: How many calls it makes.
        reply: A `turnwarden.Reply`.
    """

    type: ClassVar[str] = "reply_received"
    iteration: int
    call_count: int
    reply: Any = field(default=None, metadata=_CONTENT)


# Recursive workflows


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowEntered(Event):
    """A workflow begins, the first one or one that a tool returned.

    Attributes:
        execution_id: Of its context.
        depth: 0 for the first one.
        call_count: How many calls it makes.
    """

    type: ClassVar[str] = "workflow_entered"
    execution_id: str
    depth: int
    call_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowLeft(Event):
    """All calls of a workflow are made.

    Attributes:
        execution_id: Of its context.
        depth: 0 for the first one.
    """

    type: ClassVar[str] = "workflow_left"
    execution_id: str
    depth: int


# The graph engine


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStarted(Event):
    """A node that starts a round is entered.

    Attributes:
        round: Counts from 1.
        node_id: Which node.
    """

    type: ClassVar[str] = "round_started"
    round: int
    node_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarted(Event):
    """A node is about to run.

    Attributes:
        round: In which round.
        node_id: Which node.
        attempt: Counts from 1; more with retries.
    """

    type: ClassVar[str] = "node_started"
    round: int
    node_id: str
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFinished(Event):
    """A node ran.

    Attributes:
        round: In which round.
        node_id: Which node.
        duration: Seconds that it took.
        keys: The fields that it updates.
        update: What it returned.
    """

    type: ClassVar[str] = "node_finished"
    round: int
    node_id: str
    duration: float
    keys: tuple[str, ...] = ()
    update: Any = field(default=None, metadata=_CONTENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailed(Event):
    """A node raised, or reported an error.

    Attributes:
        round: In which round.
        node_id: Which node.
        duration: Seconds that it took.
        error_type: The exception's type; None for an error in an update.
        error: What it says.
    """

    type: ClassVar[str] = "node_failed"
    round: int
    node_id: str
    duration: float
    error_type: str | None = None
    error: str | None = field(default=None, metadata=_CONTENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRetried(Event):
    """A node that failed will run again.

    Attributes:
        round: In which round.
        node_id: Which node.
        attempt: The number of the attempt to come.
        delay: Seconds until then.
    """

    type: ClassVar[str] = "node_retried"
    round: int
    node_id: str
    attempt: int
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEmitted(Event):
    """A node told something by `ctx.emit`.

    Attributes:
        round: In which round.
        node_id: Which node.
        name: What it is about.
        value: What it told.
    """

    type: ClassVar[str] = "node_emitted"
    round: int
    node_id: str
    name: str
    value: Any = field(default=None, metadata=_CONTENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAbandoned(Event):
    """A node in a thread outlived its time; the thread still runs, its update will be dropped.

    Attributes:
        round: In which round.
        node_id: Which node.
        seconds: How long it had run by then.
    """

    type: ClassVar[str] = "node_abandoned"
    round: int
    node_id: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteTaken(Event):
    """A route applied.

    Attributes:
        round: In which round.
        source: The node that was left.
        kind: Which kind of route, such as `to` or `deliver`.
        target: The node that comes next, of a fan-out the join; None when a result is delivered.
    """

    type: ClassVar[str] = "route_taken"
    round: int
    source: str
    kind: str
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultDelivered(Event):
    """A run has its result.

    Attributes:
        round: In which round.
        node_id: The node that delivers.
        field: Which field of the state.
        value: The result.
    """

    type: ClassVar[str] = "result_delivered"
    round: int
    node_id: str
    field: str
    value: Any = dataclasses.field(default=None, metadata=_CONTENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWritten(Event):
    """A journal holds what a node brought.

    Attributes:
        round: In which round.
        node_id: Which node.
        key: Under which key.
    """

    type: ClassVar[str] = "checkpoint_written"
    round: int
    node_id: str
    key: str


# Sinks


EventSink: TypeAlias = Callable[[Event], object]
"""Is given every event of a run, in order, in the thread of the run. It should be quick."""

EventT = TypeVar("EventT", bound=Event)
_logger = logging.getLogger(__name__)


class EventEmitter:
    """Builds the events of one run and hands them to the sinks.

    A sink that raises is logged and passed over: an observer must not end a run.

    Args:
        run_id: Which run.
        sinks: Who listens.
        workflow_id: Which workflow or agent.
        revision: Which revision of it.
        sequence: Where the sequence goes on.
    """

    __slots__ = ("revision", "run_id", "sequence", "sinks", "workflow_id")

    def __init__(
        self,
        run_id: str,
        sinks: Iterable[EventSink] = (),
        *,
        workflow_id: str | None = None,
        revision: str | None = None,
        sequence: int = 0,
    ) -> None:
        self.run_id = run_id
        self.sinks = list(sinks)
        self.workflow_id = workflow_id
        self.revision = revision
        self.sequence = sequence

    def emit(self, kind: type[EventT], **fields: Any) -> None:
        """Build an event, if somebody listens, and hand it on."""
        if not self.sinks:
            return
        event = kind(
            run_id=self.run_id,
            sequence=self.sequence,
            timestamp=time.time(),
            workflow_id=self.workflow_id,
            revision=self.revision,
            **fields,
        )
        self.sequence += 1
        hand_out(event, self.sinks)


def hand_out(event: Event, sinks: Iterable[EventSink]) -> None:
    """Hand an event to the sinks.

    A sink that raises is logged and passed over: an observer must not end a run.
    """
    for sink in sinks:
        try:
            sink(event)
        except Exception:
            _logger.exception("an event sink raised on %s of run %s", event.type, event.run_id)


class LoggingSink:
    """Writes events to a logger, one line each.

    Names, ids, statuses, counts and durations are written. What users, models and tools said is
    not, unless asked; names are written quoted, since models make them up.

    Args:
        logger: Where to; `turnwarden.engine` by default.
        level: Of the lines; abandoned threads, and guards that speak, are warnings at least.
        arguments: Whether to write the arguments of calls.
        content: Whether to write texts, results, errors and state. Errors may quote arguments.

    Example:
        >>> import logging
        >>> from turnwarden.engine import AgentLoop, LoggingSink
        >>> loop = AgentLoop(lambda messages: "Hello.", on_event=LoggingSink(level=logging.DEBUG))
        >>> loop.run_sync("Hi").text
        'Hello.'
    """

    __slots__ = ("_hidden", "_level", "_logger")

    def __init__(
        self,
        logger: logging.Logger | None = None,
        level: int = logging.INFO,
        *,
        arguments: bool = False,
        content: bool = False,
    ) -> None:
        self._logger = logger or logging.getLogger("turnwarden.engine")
        self._level = level
        shown = {"arguments": arguments, "content": content}
        self._hidden = frozenset(kind for kind, is_shown in shown.items() if not is_shown)

    def __call__(self, event: Event) -> None:
        """Write one event."""
        level = self._level
        if isinstance(event, (ToolAbandoned, NodeAbandoned, GuardSpoke)):
            level = max(level, logging.WARNING)
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", self._line(event))

    def _line(self, event: Event) -> str:
        parts = [f"{event.type} run={event.run_id!r} #{event.sequence}"]
        for entry in dataclasses.fields(event):
            if entry.name in _IN_EVERY_LINE or entry.metadata.get("holds") in self._hidden:
                continue
            value = getattr(event, entry.name)
            is_hidden = entry.name == "reason" and self._is_said(value)
            if value is not None and not is_hidden:
                parts.append(f"{entry.name}={_short(_plain(value))}")
        return " ".join(parts)

    def _is_said(self, reason: object) -> bool:
        """Whether a reason is no code but a tool's own words, and these are hidden."""
        return "content" in self._hidden and _CODE.fullmatch(str(reason)) is None


_CODE: Final = re.compile(r"[a-z0-9_.]{1,64}")
_IN_EVERY_LINE: Final = frozenset({"run_id", "sequence", "timestamp"})


def _short(value: Any) -> str:
    text = f"{value:.6f}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 500 else f"{text[:497]}..."
