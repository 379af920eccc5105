"""State of a workflow: its steps, what became of them, and how far it is.

All functions are pure. They take any workflow that has `id` and `steps`, whose steps have `id` and
`status`: a mapping (keys that this module does not know are kept) or a dataclass; a changed
workflow comes back as the same kind, and what was given is never written to. `Workflow` and
`WorkflowStep` are such dataclasses, frozen. Every function takes time linear in the number of
steps.

What is wrong in the data is refused by a `StateError` that names the field, such as
`workflow.steps[2].status`.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Self,
    TypeVar,
    cast,
    get_args,
    get_origin,
    overload,
)

from turnwarden._core import TurnwardenError

if TYPE_CHECKING:
    from turnwarden.guards import WorkflowGuardConfig

__all__ = [
    "DEFAULT_WORKFLOW_CONFIG",
    "UNSET",
    "StateError",
    "StepStatus",
    "SystemStatus",
    "Unset",
    "Workflow",
    "WorkflowConfig",
    "WorkflowStatus",
    "WorkflowStep",
    "add_steps_to_workflow",
    "create_step",
    "find_step_by_id",
    "generate_step_id",
    "generate_workflow_id",
    "get_next_pending_step",
    "get_steps_by_status",
    "get_workflow_progress",
    "get_workflow_status",
    "has_workflow_failed",
    "is_workflow_complete",
    "remove_steps_from_workflow",
    "update_step_status",
]

StepT = TypeVar("StepT", bound="WorkflowStep")
AnyStepT = TypeVar("AnyStepT")
WorkflowT = TypeVar("WorkflowT")
MadeStepT = TypeVar("MadeStepT", bound="WorkflowStep")


class StepStatus(StrEnum):
    """What became of a step. Members and their texts are interchangeable."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"

    @property
    def is_done(self) -> bool:
        """Whether nothing more will happen to the step: completed, failed or skipped."""
        return self in _DONE


_DONE: Final = frozenset({StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.SKIPPED})
_STATUS_BY_TEXT: Final[dict[object, StepStatus]] = {status.value: status for status in StepStatus}


class SystemStatus(StrEnum):
    """What a system that runs workflows is doing."""

    IDLE = "idle"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""Stands for an argument that was not given, where None is a value."""


class StateError(TurnwardenError, ValueError):
    """A workflow, a step or an argument that is not what it must be.

    Attributes:
        path: The field, such as `workflow.steps[2].status`.
        problem: What was found there, and what is expected.
    """

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(path, problem)

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


# Our own workflows


@dataclass(frozen=True, slots=True)
class WorkflowStep:
    """One step. Subclass it, as a frozen dataclass, to add fields.

    Attributes:
        id: Unique in its workflow.
        status: A `StepStatus`, or its text.
        result: What the step brought.
        error: Why it failed.
        duration: How long it took, in seconds.

    Raises:
        StateError: No usable id, or an unknown status.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True, slots=True)
        ... class ToolStep(WorkflowStep):
        ...     tool: str = ""
        >>> ToolStep("s1", tool="search").status
        <StepStatus.PENDING: 'pending'>
    """

    id: str
    status: StepStatus = StepStatus.PENDING
    result: Any = None
    error: str | None = None
    duration: float | None = None

    def __post_init__(self) -> None:
        _check_id(self.id, "step.id")
        object.__setattr__(self, "status", _status(self.status, "step.status"))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make a step of plain data.

        Args:
            data: The fields by name; `id` is required.

        Raises:
            StateError: A field is missing, unknown or not of its declared type.
        """
        return _from_dict(cls, data, "step")

    def to_dict(self) -> dict[str, Any]:
        """All fields by name, the status as text."""
        data = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        data["status"] = self.status.value
        return data


@dataclass(frozen=True, slots=True)
class Workflow(Generic[StepT]):
    """A workflow of steps of one type. Subclass it, as a frozen dataclass, to add fields.

    Attributes:
        id: Unique where workflows are kept.
        steps: In the order in which they run; any iterable is taken.

    Raises:
        StateError: No usable id, or something that is no step.

    Example:
        >>> workflow = Workflow("wf-1", [WorkflowStep("s1"), WorkflowStep("s2")])
        >>> get_workflow_progress(update_step_status(workflow, "s1", "completed"))
        50
    """

    id: str
    steps: tuple[StepT, ...] = ()

    def __post_init__(self) -> None:
        _check_id(self.id, "workflow.id")
        steps = _as_steps(self.steps, "workflow.steps")
        for position, step in enumerate(steps):
            if not isinstance(step, WorkflowStep):
                raise StateError(f"workflow.steps[{position}]", _expected("a WorkflowStep", step))
        object.__setattr__(self, "steps", tuple(steps))

    @overload
    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self: ...
    @overload
    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], step_type: type[MadeStepT]
    ) -> Workflow[MadeStepT]: ...
    @classmethod
    def from_dict(cls, data: Mapping[str, Any], step_type: type[WorkflowStep] | None = None) -> Any:
        """Make a workflow of plain data.

        Args:
            data: The fields by name; `id` is required, `steps` are mappings.
            step_type: What the steps become; by default what a subclass such as
                `class Job(Workflow[ToolStep])` says, else `WorkflowStep`.

        Raises:
            StateError: A field is missing, unknown or not of its declared type.
        """
        _check_mapping(data, "workflow")
        steps = _as_steps(data.get("steps", ()), "workflow.steps")
        kind = _step_type_of(cls) if step_type is None else step_type
        made = [
            _from_dict(kind, step, f"workflow.steps[{position}]")
            for position, step in enumerate(steps)
        ]
        return _from_dict(cls, {**data, "steps": tuple(made)}, "workflow", given=("steps",))

    def to_dict(self) -> dict[str, Any]:
        """All fields by name, the steps as plain data."""
        data = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        data["steps"] = [step.to_dict() for step in self.steps]
        return data


@dataclass(frozen=True, slots=True)
class WorkflowStatus(Generic[AnyStepT]):
    """How a workflow stands.

    Attributes:
        status: Of the whole: pending, running, completed or failed.
        completed_steps: How many are completed.
        failed_steps: How many failed.
        pending_steps: How many have not begun.
        total_steps: How many there are.
        current_step: The first running step, else the first pending one, else None.
    """

    status: StepStatus
    completed_steps: int
    failed_steps: int
    pending_steps: int
    total_steps: int
    current_step: AnyStepT | None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name; a current step that is a dataclass as plain data."""
        return {
            "status": self.status.value,
            "completed_steps": self.completed_steps,
            "failed_steps": self.failed_steps,
            "pending_steps": self.pending_steps,
            "total_steps": self.total_steps,
            "current_step": _plain(self.current_step),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowConfig:
    """How a workflow is run: what an agent loop and its guard are made from.

    Attributes:
        max_iterations: The iteration that reaches it is refused.
        tool_timeout: Seconds that one tool call may take; None for no limit.
        verbose: Whether the guard tells more.
        model: The model's name. It picks the syntax that replies are read in.
        enable_loop_detection: Whether repeated calls are judged.
        warning_threshold: The iteration from which the model is warned.
        soft_limit: The iteration from which it is told to finish.

    `warning_threshold` and `soft_limit` at their defaults give way to a smaller
    `max_iterations`; others must be in order.

    Raises:
        StateError: A value out of its range.
    """

    max_iterations: int = 20
    tool_timeout: float | None = 30.0
    verbose: bool = False
    model: str | None = None
    enable_loop_detection: bool = True
    warning_threshold: int = 10
    soft_limit: int = 15

    def __post_init__(self) -> None:
        for name in ("max_iterations", "warning_threshold", "soft_limit"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise StateError(f"config.{name}", f"expected an int from 1 up, found {value!r}")
        for name in ("verbose", "enable_loop_detection"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise StateError(f"config.{name}", _expected("a bool", value))
        timeout = self.tool_timeout
        if timeout is not None and not _is_positive_number(timeout):
            raise StateError(
                "config.tool_timeout", f"expected seconds above 0 or None, found {timeout!r}"
            )
        if self.model is not None and not isinstance(cast("object", self.model), str):
            raise StateError("config.model", _expected("a model's name or None", self.model))
        self._check_order()

    def _check_order(self) -> None:
        names = ("warning_threshold", "soft_limit", "max_iterations")
        given = [n for n in names if n == "max_iterations" or not self._is_default(n)]
        for lower, upper in itertools.pairwise(given):
            if getattr(self, lower) > getattr(self, upper):
                raise StateError(
                    f"config.{lower}",
                    f"{getattr(self, lower)} is above {upper}, {getattr(self, upper)}; "
                    "the limits must be in order",
                )

    def _is_default(self, name: str) -> bool:
        return getattr(self, name) == _config_defaults()[name]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make a configuration of plain data; what is not given keeps its default.

        Raises:
            StateError: An unknown field, or a value out of its range.
        """
        return _from_dict(cls, data, "config")

    def to_dict(self) -> dict[str, Any]:
        """All fields by name."""
        return {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}

    def guard_config(self) -> WorkflowGuardConfig:
        """The configuration of a guard with these limits.

        Example:
            >>> WorkflowConfig(max_iterations=5).guard_config().recursion.hard_limit
            5
        """
        from turnwarden.guards import ToolPolicy, WorkflowGuardConfig

        recursion: dict[str, Any] = {"hard_limit": self.max_iterations}
        for name in ("warning_threshold", "soft_limit"):
            if not self._is_default(name):
                recursion[name] = getattr(self, name)
        if self.enable_loop_detection:
            return WorkflowGuardConfig(recursion=recursion, verbose=self.verbose)
        policies = {"*": ToolPolicy("exempt")}
        return WorkflowGuardConfig(recursion=recursion, policies=policies, verbose=self.verbose)


def _config_defaults() -> Mapping[str, Any]:
    return {entry.name: entry.default for entry in dataclasses.fields(WorkflowConfig)}


# Changing a workflow


def update_step_status(
    workflow: WorkflowT,
    step_id: str,
    status: StepStatus | str,
    result: Any = UNSET,
    error: str | Unset | None = UNSET,
    duration: float | Unset | None = UNSET,
) -> WorkflowT:
    """Set the status of a step, and what came of it.

    A step set to completed, running or pending without an error loses the error it had, and the
    duration that went with it.

    Args:
        workflow: A mapping or a dataclass.
        step_id: Whose status; an id that is not there changes nothing.
        status: A `StepStatus` or its text.
        result: What the step brought; not given, the step keeps what it has.
        error: Why it failed.
        duration: How long it took, in seconds.

    Returns:
        The changed workflow, or the very one given when it has no such step.

    Raises:
        StateError: An unknown status, bad data, or a value for a field that a dataclass lacks.

    Example:
        >>> workflow = {"id": "wf", "steps": [{"id": "a", "status": "failed", "error": "timeout"}]}
        >>> update_step_status(workflow, "a", "completed", result=7)
        {'id': 'wf', 'steps': [{'id': 'a', 'status': 'completed', 'result': 7}]}
    """
    new_status = _status(status, "status")
    given = {"result": result, "error": error, "duration": duration}
    changes: dict[str, Any] = {key: value for key, value in given.items() if value is not UNSET}
    changes["status"] = new_status
    stale: list[str] = []
    if new_status not in (StepStatus.FAILED, StepStatus.SKIPPED) and changes.get("error") is None:
        stale = [key for key in ("error", "duration") if key not in changes]

    steps: list[Any] = []
    found = False
    for position, (step, identifier, _) in enumerate(_read(workflow)):
        if identifier == step_id:
            found = True
            steps.append(_changed(step, changes, stale, f"workflow.steps[{position}]"))
        else:
            steps.append(step)
    return _with_steps(workflow, steps) if found else workflow


def add_steps_to_workflow(workflow: WorkflowT, steps: Iterable[Any]) -> WorkflowT:
    """Append steps whose ids are not there yet.

    Args:
        workflow: A mapping or a dataclass.
        steps: The new steps; of two with one id, the first counts. For a `Workflow` they may be
            mappings, such as `create_step` makes: each becomes a step of the kind that is there.

    Returns:
        The longer workflow, or the very one given when nothing is new.

    Raises:
        StateError: Bad data.
    """
    known = {identifier for _, identifier, _ in _read(workflow)}
    new: list[Any] = []
    given = _read_steps(_as_steps(steps, "steps"), "steps")
    for position, (step, identifier, _) in enumerate(given):
        if identifier not in known:
            known.add(identifier)
            new.append(_step_for(workflow, step, f"steps[{position}]"))
    return _with_steps(workflow, [*_steps_of(workflow), *new]) if new else workflow


def remove_steps_from_workflow(workflow: WorkflowT, step_ids: Iterable[str]) -> WorkflowT:
    """Remove the steps with these ids; ids that are not there are passed over.

    Returns:
        The shorter workflow, or the very one given when nothing was removed.

    Raises:
        StateError: Bad data, or one text in place of several ids.
    """
    if isinstance(step_ids, str):
        raise StateError("step_ids", f"expected several ids, found one text, {step_ids!r}")
    if not isinstance(cast("object", step_ids), Iterable):
        raise StateError("step_ids", _expected("several ids", step_ids))
    removed = set(step_ids)
    steps = list(_read(workflow))
    kept = [step for step, identifier, _ in steps if identifier not in removed]
    return workflow if len(kept) == len(steps) else _with_steps(workflow, kept)


# Reading a workflow


@overload
def get_workflow_status(workflow: Workflow[StepT]) -> WorkflowStatus[StepT]: ...
@overload
def get_workflow_status(workflow: object) -> WorkflowStatus[Any]: ...
def get_workflow_status(workflow: Any) -> WorkflowStatus[Any]:
    """How the workflow stands.

    It is failed when any step failed; else running when a step runs, or some are done and some
    pending; else completed when all are done, as they are when there are none; else pending.

    Raises:
        StateError: Bad data.
    """
    counts = dict.fromkeys(StepStatus, 0)
    first: dict[StepStatus, Any] = {}
    for step, _, status in _read(workflow):
        counts[status] += 1
        first.setdefault(status, step)
    current = first.get(StepStatus.RUNNING, first.get(StepStatus.PENDING))
    return WorkflowStatus(
        status=_overall(counts),
        completed_steps=counts[StepStatus.COMPLETED],
        failed_steps=counts[StepStatus.FAILED],
        pending_steps=counts[StepStatus.PENDING],
        total_steps=sum(counts.values()),
        current_step=current,
    )


def _overall(counts: Mapping[StepStatus, int]) -> StepStatus:
    done = sum(counts[status] for status in _DONE)
    if counts[StepStatus.FAILED]:
        return StepStatus.FAILED
    if counts[StepStatus.RUNNING] or (done and counts[StepStatus.PENDING]):
        return StepStatus.RUNNING
    return StepStatus.PENDING if counts[StepStatus.PENDING] else StepStatus.COMPLETED


def is_workflow_complete(workflow: object) -> bool:
    """Whether every step is completed, failed or skipped; true when there are none.

    Raises:
        StateError: Bad data.
    """
    return all(status in _DONE for _, _, status in _read(workflow))


def has_workflow_failed(workflow: object) -> bool:
    """Whether any step failed.

    Raises:
        StateError: Bad data.
    """
    return any(status is StepStatus.FAILED for _, _, status in _read(workflow))


def get_workflow_progress(workflow: object) -> int:
    """How much is completed, failed or skipped, in per cent.

    Returns:
        0 to 100, rounded half up; 100 only when every step is done, as when there are none.

    Raises:
        StateError: Bad data.
    """
    statuses = [status for _, _, status in _read(workflow)]
    total = len(statuses)
    done = sum(status in _DONE for status in statuses)
    if done == total:
        return 100
    return min(99, (200 * done + total) // (2 * total))


@overload
def find_step_by_id(workflow: Workflow[StepT], step_id: str) -> StepT | None: ...
@overload
def find_step_by_id(workflow: object, step_id: str) -> Any: ...
def find_step_by_id(workflow: Any, step_id: str) -> Any:
    """The step with this id, or None.

    Raises:
        StateError: Bad data.
    """
    return next((step for step, identifier, _ in _read(workflow) if identifier == step_id), None)


@overload
def get_steps_by_status(workflow: Workflow[StepT], status: StepStatus | str) -> list[StepT]: ...
@overload
def get_steps_by_status(workflow: object, status: StepStatus | str) -> list[Any]: ...
def get_steps_by_status(workflow: Any, status: StepStatus | str) -> list[Any]:
    """The steps with this status, in order.

    Raises:
        StateError: An unknown status, or bad data.
    """
    wanted = _status(status, "status")
    return [step for step, _, found in _read(workflow) if found is wanted]


@overload
def get_next_pending_step(workflow: Workflow[StepT]) -> StepT | None: ...
@overload
def get_next_pending_step(workflow: object) -> Any: ...
def get_next_pending_step(workflow: Any) -> Any:
    """The first pending step, or None.

    Raises:
        StateError: Bad data.
    """
    pending = (step for step, _, status in _read(workflow) if status is StepStatus.PENDING)
    return next(pending, None)


# Making steps and ids


def create_step(
    step_id: str,
    fields: Mapping[str, Any] | None = None,
    *,
    status: StepStatus | str = StepStatus.PENDING,
) -> dict[str, Any]:
    """Make a step as plain data; `WorkflowStep(step_id)` makes one of ours.

    Args:
        step_id: Its id.
        fields: What else it holds. An `id` or `status` in here does not count.
        status: Its status.

    Raises:
        StateError: No usable id, or an unknown status.

    Example:
        >>> create_step("s1", {"tool": "search"})
        {'id': 's1', 'status': 'pending', 'tool': 'search'}
    """
    _check_id(step_id, "step_id")
    step: dict[str, Any] = {"id": step_id, "status": _status(status, "status").value}
    for key, value in (fields or {}).items():
        step.setdefault(key, value)
    return step


def generate_workflow_id(prefix: str = "wf") -> str:
    """A new id: the prefix, the time in milliseconds, and 48 random bits."""
    return f"{prefix}-{time.time_ns() // 1_000_000}-{secrets.token_hex(6)}"


def generate_step_id(workflow_id: str, index: int) -> str:
    """The id of a workflow's step by its position.

    Example:
        >>> generate_step_id("wf-1", 0)
        'wf-1-step-0'
    """
    return f"{workflow_id}-step-{index}"


# Fields of mappings and dataclasses


def _read(workflow: object) -> list[tuple[Any, str, StepStatus]]:
    """Each step with its id and status.

    All are checked, also where fewer would do: whether data is refused must not depend on what
    else it holds.
    """
    _check_id(_field(workflow, "id", "workflow"), "workflow.id")
    return list(_read_steps(_steps_of(workflow), "workflow.steps"))


def _read_steps(steps: Sequence[Any], path: str) -> Iterator[tuple[Any, str, StepStatus]]:
    for position, step in enumerate(steps):
        at = f"{path}[{position}]"
        identifier = _field(step, "id", at)
        _check_id(identifier, f"{at}.id")
        yield step, identifier, _status(_field(step, "status", at), f"{at}.status")


def _steps_of(workflow: object) -> Sequence[Any]:
    return _as_steps(_field(workflow, "steps", "workflow"), "workflow.steps")


def _as_steps(steps: object, path: str) -> Sequence[Any]:
    given = cast("Any", steps)
    if isinstance(given, (list, tuple)):
        return cast("Sequence[Any]", given)
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise StateError(path, _expected("a list of steps", steps))
    return list(cast("Iterable[Any]", given))


def _field(holder: object, name: str, path: str) -> Any:
    given = cast("Any", holder)
    if isinstance(given, Mapping):
        mapping = cast("Mapping[str, Any]", given)
        if name in mapping:
            return mapping[name]
    elif hasattr(given, name):
        return getattr(given, name)
    raise StateError(f"{path}.{name}", f"is missing; found {_shown(holder)}")


def _status(value: object, path: str) -> StepStatus:
    try:
        return _STATUS_BY_TEXT[value]
    except (KeyError, TypeError):
        allowed = ", ".join(_STATUS_BY_TEXT.values())
        raise StateError(path, f"expected one of {allowed}; found {_shown(value)}") from None


def _check_id(value: object, path: str) -> None:
    if not isinstance(value, str) or not value:
        raise StateError(path, _expected("a text that is not empty", value))


def _check_mapping(value: object, path: str) -> None:
    if not isinstance(value, Mapping):
        raise StateError(path, _expected("a mapping", value))


def _step_for(workflow: object, step: Any, path: str) -> Any:
    """A step as the workflow takes it: ours takes no mapping."""
    if not isinstance(workflow, Workflow) or not isinstance(step, Mapping):
        return step
    ours = cast("Workflow[WorkflowStep]", workflow)
    kind = type(ours.steps[0]) if ours.steps else _step_type_of(type(ours))
    return _from_dict(kind, cast("Mapping[str, Any]", step), path)


def _with_steps(workflow: WorkflowT, steps: Sequence[Any]) -> WorkflowT:
    """The workflow with other steps, in the same kind of sequence as before."""
    kind = tuple if isinstance(_field(workflow, "steps", "workflow"), tuple) else list
    return _changed(workflow, {"steps": kind(steps)}, (), "workflow")


def _changed(
    holder: WorkflowT, changes: Mapping[str, Any], removed: Sequence[str], path: str
) -> WorkflowT:
    """A copy of the holder, of the same kind, with some fields set and some cleared."""
    given = cast("Any", holder)
    if isinstance(given, Mapping):
        mapping = cast("Mapping[Any, Any]", given)
        return cast("WorkflowT", _changed_mapping(mapping, changes, removed))
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        return cast("WorkflowT", _changed_dataclass(given, changes, removed, path))
    raise StateError(path, _expected("a mapping or a dataclass", holder))


def _changed_mapping(
    holder: Mapping[Any, Any], changes: Mapping[str, Any], removed: Sequence[str]
) -> Mapping[Any, Any]:
    # Plain data stays plain: a mapping holds the status as text.
    values = {
        key: value.value if isinstance(value, StepStatus) else value
        for key, value in changes.items()
    }
    if isinstance(holder, MutableMapping):
        changed = copy.copy(holder)
        changed.update(values)
        for key in removed:
            changed.pop(key, None)
        return changed
    kept = {key: value for key, value in holder.items() if key not in removed}
    return cast("Any", type(holder))({**kept, **values})


def _changed_dataclass(
    holder: Any, changes: Mapping[str, Any], removed: Sequence[str], path: str
) -> Any:
    names = {entry.name for entry in dataclasses.fields(holder)}
    for name in changes:
        if name not in names:
            kind = type(cast("object", holder)).__name__
            raise StateError(f"{path}.{name}", f"cannot be set: {kind} has no such field")
    cleared = {name: None for name in removed if name in names}
    return dataclasses.replace(holder, **cleared, **changes)


def _step_type_of(kind: type[Workflow[Any]]) -> type[WorkflowStep]:
    """The type of step that a subclass of `Workflow[...]` names."""
    for ancestor in kind.__mro__:
        for base in getattr(ancestor, "__orig_bases__", ()):
            named = get_args(base)
            if get_origin(base) is Workflow and named and isinstance(named[0], type):
                return named[0]
    return WorkflowStep


MadeT = TypeVar("MadeT")


def _from_dict(kind: type[MadeT], data: object, path: str, given: Sequence[str] = ()) -> MadeT:
    """Make a dataclass of plain data; fields in `given` are taken as they are."""
    from turnwarden.engine.hints import HintError, field_converters

    _check_mapping(data, path)
    values = dict(cast("Mapping[str, Any]", data))
    fields = {entry.name: entry for entry in dataclasses.fields(cast("Any", kind)) if entry.init}
    for name in values:
        if name not in fields:
            raise StateError(f"{path}.{name}", f"is not a field of {kind.__name__}")
    for name, entry in fields.items():
        is_required = (
            entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
        )
        if is_required and name not in values:
            raise StateError(f"{path}.{name}", "is missing")
    for name, convert in field_converters(kind).items():
        if name in values and name not in given:
            try:
                values[name] = convert(values[name])
            except HintError as error:
                raise StateError(f"{path}.{name}{error.path}", error.problem) from None
    try:
        return kind(**values)
    except StateError as error:
        _, _, rest = error.path.partition(".")
        raise StateError(f"{path}.{rest}", error.problem) from None


def _plain(step: object) -> Any:
    if isinstance(step, WorkflowStep):
        return step.to_dict()
    if dataclasses.is_dataclass(step) and not isinstance(step, type):
        return dataclasses.asdict(step)
    return step


def _is_positive_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _expected(what: str, found: object) -> str:
    return f"expected {what}, found {_shown(found)}"


def _shown(value: object) -> str:
    """A value as a message shows it: short, since it may hold anything."""
    if value is None or isinstance(value, (bool, int, float, str)):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    return f"a value of type {type(value).__name__}"


DEFAULT_WORKFLOW_CONFIG: Final = WorkflowConfig()
"""What holds when nothing else is said."""
