"""What tools return, brought into one form, and the record that a run keeps of each call.

A tool may return a `ToolExecutionResult`, a `StandardToolResponse`, a dict that has the keys of one
of them and no others (`shouldTerminate` is as good as `should_terminate`), a next workflow, or
anything else, which is its data. `normalise_result` makes a `ToolOutcome` of all of these; the
engines know nothing else.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from turnwarden._core import ToolCall, WorkflowJsonResponse

__all__ = [
    "CallStatus",
    "RunStatus",
    "StandardToolResponse",
    "ToolExecutionResult",
    "ToolExecutionStatus",
    "ToolOutcome",
    "ToolResult",
    "as_workflow",
    "error_text",
    "normalise_result",
    "plain_data",
    "render_outcome",
    "render_value",
]

NextWorkflow: TypeAlias = WorkflowJsonResponse | Mapping[str, Any]


class ToolExecutionStatus(enum.StrEnum):
    """What a tool says of its own work."""

    COMPLETED = "completed"
    CONTINUE = "continue"
    FAILED = "failed"
    NEEDS_INPUT = "needs_input"
    PARTIAL = "partial"


class RunStatus(enum.StrEnum):
    """How a run stands, or how it ended."""

    RUNNING = "running"
    COMPLETED = "completed"
    """It came to its own end: the model answered, all calls were made."""
    PAUSED = "paused"
    """A tool needs input; the run can be resumed."""
    STOPPED = "stopped"
    """The guard or a tool ended it."""
    LIMIT = "limit"
    """It reached a limit on depth or calls."""
    FAILED = "failed"
    """The model raised, or a call failed where that ends the run."""
    CANCELLED = "cancelled"
    """It was cancelled or interrupted from outside."""


class CallStatus(enum.StrEnum):
    """What became of a call."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    BLOCKED = "blocked"
    """The guard answered it with its warning; the tool did not run."""
    REFUSED = "refused"
    """No such tool, or arguments that do not fit; the tool did not run."""
    UNFINISHED = "unfinished"
    """The run ended first: it had begun or not."""


@dataclass(frozen=True, slots=True)
class ToolExecutionResult:
    """A tool's answer, with what should follow from it.

    Attributes:
        success: Whether the tool did its work.
        data: What it brought.
        error: Why it did not.
        next_workflow: Calls to make before the next one; not made when the call failed.
        context: Merged into the shared data of the run, also when the call failed.

    Raises:
        TypeError: A field of a wrong type.
    """

    success: bool
    data: Any = None
    error: str | None = None
    next_workflow: NextWorkflow | None = None
    context: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _check(self.success, bool, "success", "a bool")
        _check(self.error, (str, type(None)), "error", "a str or None")
        _check(self.context, (Mapping, type(None)), "context", "a mapping or None")
        kinds = (WorkflowJsonResponse, Mapping, type(None))
        _check(self.next_workflow, kinds, "next_workflow", "a workflow, a mapping or None")

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, in snake case."""
        return _fields(self)


@dataclass(frozen=True, slots=True)
class StandardToolResponse:
    """A tool's answer, with what it says of itself.

    Attributes:
        status: A `ToolExecutionStatus` or its text. `needs_input` pauses an agent loop.
        message: For the model; with `needs_input` the question for the user.
        data: What the tool brought.
        should_terminate: Whether the run should end after this turn.
        termination_reason: Why; goes into the run's `reason`.
        next_step_hint: For the model: what to do next.

    Raises:
        ValueError: An unknown status.
        TypeError: A field of a wrong type.
    """

    status: ToolExecutionStatus
    message: str
    data: Any = None
    should_terminate: bool = False
    termination_reason: str | None = None
    next_step_hint: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", ToolExecutionStatus(self.status))
        _check(self.message, str, "message", "a str")
        _check(self.should_terminate, bool, "should_terminate", "a bool")
        for name in ("termination_reason", "next_step_hint"):
            _check(getattr(self, name), (str, type(None)), name, "a str or None")

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, in snake case."""
        return {**_fields(self), "status": self.status.value}


@dataclass(slots=True)  # not frozen: that doubles the cost of making one
class ToolOutcome:
    """What a tool returned, in the one form that the engines know.

    Attributes:
        success: Whether the tool did its work.
        status: What it says of that.
        data: What it brought.
        error: Why it failed; None when it did not.
        message: For the model or, with `needs_input`, for the user; may be empty.
        should_terminate: Whether the run should end after this turn.
        termination_reason: Why.
        next_step_hint: For the model: what to do next.
        next_workflow: Calls to make before the next one; None when the call failed.
        context: To be merged into the shared data of the run.
    """

    success: bool
    status: ToolExecutionStatus = ToolExecutionStatus.COMPLETED
    data: Any = None
    error: str | None = None
    message: str = ""
    should_terminate: bool = False
    termination_reason: str | None = None
    next_step_hint: str | None = None
    next_workflow: WorkflowJsonResponse | None = None
    context: Mapping[str, Any] | None = None

    @classmethod
    def failed(cls, error: str) -> ToolOutcome:
        """The outcome of a call that brought nothing but an error."""
        return cls(False, ToolExecutionStatus.FAILED, error=error)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A call that was made, and what became of it.

    Attributes:
        tool_name: As the model wrote it.
        result: What the tool brought; None when it brought nothing.
        error: Why it failed; None when it did not.
        timestamp: When the result came, in seconds since 1970.
        status: What became of the call.
        call_id: Pairs the call with its result.
        arguments: What the tool was called with.
        duration: Seconds that the tool took; None when it did not run.
        turn: The iteration, or the depth in a recursive workflow, that made the call.
    """

    tool_name: str
    result: Any
    error: str | None
    timestamp: float
    status: CallStatus = CallStatus.COMPLETED
    call_id: str | None = None
    arguments: Mapping[str, Any] | None = None
    duration: float | None = None
    turn: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, the status as text."""
        return {**_fields(self), "status": self.status.value}


def _fields(holder: Any) -> dict[str, Any]:
    return {entry.name: getattr(holder, entry.name) for entry in dataclasses.fields(holder)}


def _check(value: object, kind: type | tuple[type, ...], name: str, expected: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {expected}, not {_kind(value)}")


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


# One form

_SNAKE_CASE: Final[dict[Any, str]] = {
    "nextWorkflow": "next_workflow",
    "shouldTerminate": "should_terminate",
    "terminationReason": "termination_reason",
    "nextStepHint": "next_step_hint",
}
_EXECUTION_KEYS: Final = frozenset({"success", "data", "error", "next_workflow", "context"})
_RESPONSE_NEEDS: Final = frozenset({"status", "message"})
_RESPONSE_KEYS: Final = _RESPONSE_NEEDS | {
    "data",
    "should_terminate",
    "termination_reason",
    "next_step_hint",
}
_PLAIN_TYPES: Final = frozenset({str, type(None), int, float, bool, list})


def normalise_result(value: Any) -> ToolOutcome:
    """Bring what a tool returned into one form.

    Args:
        value: Anything.

    Returns:
        The outcome. A next workflow that cannot be read makes it a failed one, with the data kept.
    """
    kind = cast("type[object]", type(value))
    if kind in _PLAIN_TYPES:
        return ToolOutcome(True, data=value)
    if kind is dict:
        return _from_mapping(value)
    if isinstance(value, ToolOutcome):
        return value
    if isinstance(value, ToolExecutionResult):
        return _from_execution(value)
    if isinstance(value, StandardToolResponse):
        return _from_response(value)
    if isinstance(value, WorkflowJsonResponse):
        return ToolOutcome(True, data=value, next_workflow=value)
    if isinstance(value, Mapping):
        return _from_mapping(cast("Mapping[Any, Any]", value))
    return ToolOutcome(True, data=value)


def _from_mapping(value: Mapping[Any, Any]) -> ToolOutcome:
    """A mapping whose keys are all those of one of the two; else it is data."""
    if "next" in value and _is_workflow(value):
        return _with_next(value, value, None)
    if "success" not in value and "status" not in value:
        return ToolOutcome(True, data=value)
    fields = cast("dict[str, Any]", {_SNAKE_CASE.get(key, key): value[key] for key in value})
    try:
        if "success" in fields and fields.keys() <= _EXECUTION_KEYS:
            return _from_execution(ToolExecutionResult(**fields))
        if _RESPONSE_NEEDS <= fields.keys() <= _RESPONSE_KEYS:
            return _from_response(StandardToolResponse(**fields))
    except (TypeError, ValueError):
        pass  # the keys are theirs by chance
    return ToolOutcome(True, data=value)


def _from_execution(result: ToolExecutionResult) -> ToolOutcome:
    if not result.success:
        error = result.error or "the tool reported a failure"
        return _failure(result.data, error, result.context)
    if result.next_workflow is None:
        return ToolOutcome(True, data=result.data, context=result.context)
    return _with_next(result.next_workflow, result.data, result.context)


def _from_response(response: StandardToolResponse) -> ToolOutcome:
    is_failure = response.status is ToolExecutionStatus.FAILED
    return ToolOutcome(
        not is_failure,
        response.status,
        data=response.data,
        error=(response.message or "the tool reported a failure") if is_failure else None,
        message=response.message,
        should_terminate=response.should_terminate,
        termination_reason=response.termination_reason,
        next_step_hint=response.next_step_hint,
    )


def _with_next(workflow: NextWorkflow, data: Any, context: Mapping[str, Any] | None) -> ToolOutcome:
    try:
        readable = as_workflow(workflow)
    except (TypeError, ValueError) as error:
        return _failure(data, f"its next workflow cannot be read: {error}", context)
    return ToolOutcome(True, data=data, next_workflow=readable, context=context)


def _failure(data: Any, error: str, context: Mapping[str, Any] | None) -> ToolOutcome:
    return ToolOutcome(False, ToolExecutionStatus.FAILED, data=data, error=error, context=context)


def _is_workflow(value: Mapping[Any, Any]) -> bool:
    """Whether a mapping has a string `content` and a list `next` of calls."""
    following = value.get("next")
    return (
        isinstance(value.get("content"), str)
        and isinstance(following, (list, tuple))
        and all(map(_is_call, cast("Iterable[object]", following)))
    )


def _is_call(item: object) -> bool:
    if isinstance(item, ToolCall):
        return True
    if not isinstance(item, Mapping):
        return False
    call = cast("Mapping[str, Any]", item)
    return isinstance(call.get("mcp", call.get("name")), str)


def as_workflow(workflow: object) -> WorkflowJsonResponse:
    """A workflow, from one or from a mapping.

    Raises:
        TypeError: Neither.
        ValueError: A call in it that cannot be read.
    """
    if isinstance(workflow, WorkflowJsonResponse):
        return workflow
    if not isinstance(workflow, Mapping):
        raise TypeError(
            f"a workflow must be a WorkflowJsonResponse or a mapping with `content` "
            f"and `next`, not {_kind(workflow)}"
        )
    fields = cast("Mapping[str, Any]", workflow)
    return WorkflowJsonResponse(fields.get("content") or "", fields.get("next") or ())


# Text for the model


def render_outcome(outcome: ToolOutcome) -> str:
    """What the model reads of an outcome."""
    is_plain = outcome.status is ToolExecutionStatus.COMPLETED and not outcome.message
    if is_plain and outcome.next_step_hint is None and outcome.success:
        return render_value(outcome.data)
    if not outcome.success:
        parts: dict[str, Any] = {"error": outcome.error}
    elif is_plain:
        parts = {}
    else:
        parts = {"status": outcome.status.value, "message": outcome.message or None}
    parts["next_step_hint"] = outcome.next_step_hint
    said = {key: value for key, value in parts.items() if value is not None}
    if said.keys() == {"error"} and outcome.data is None:
        return f"Error: {outcome.error}"
    if said.keys() == {"status", "message"} and outcome.data is None:
        is_done = outcome.status is ToolExecutionStatus.COMPLETED
        return outcome.message if is_done else f"{outcome.status.value}: {outcome.message}"
    text = render_value({**said, "data": outcome.data} if outcome.data is not None else said)
    return text if outcome.success else f"Error: {text}"


def render_value(value: Any) -> str:
    """A value as text: a string as it is, all else as JSON, or what its `repr` says."""
    kind = cast("type[object]", type(value))
    if kind is str:
        return value
    if kind is int:
        return str(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=plain_data)
    except Exception:  # too deep, a cycle, or an object whose own methods raise
        return _repr_of(value)


def plain_data(value: Any) -> Any:
    """A value that JSON does not know as one that it does.

    Raises:
        TypeError: There is no such value.
    """
    for name in ("to_dict", "model_dump"):  # ours; pydantic's
        method = getattr(value, name, None)
        if callable(method) and not isinstance(value, type):
            return method()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(cast("Any", value))
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    if isinstance(value, (set, frozenset)):
        return list(cast("set[Any]", value))
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    return str(cast("object", value))


def _repr_of(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # a broken or endless repr must not lose the call's result
        return f"<{_kind(value)}>"


def error_text(error: BaseException) -> str:
    """What an exception says; with its type's name where that alone tells what happened."""
    try:
        text = str(error)
    except Exception:  # a broken __str__ must not lose the error
        text = ""
    name = type(error).__name__
    if not text:
        return name
    return f"{name}: {text}" if isinstance(error, LookupError) else text
