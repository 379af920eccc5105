"""The seam of the graph engine: every effect of a run goes through `step(node, key, state)`.

The loop around it is a pure function of the definition, the state and the outcomes of the steps. A
`StepLayer` may stand between the two: to record outcomes, to give recorded ones back, to carry
steps elsewhere. The key of a step is the same whenever a run comes to it again.

    loop  ->  layer's step(node, key, state)  ->  the engine's own step  ->  the node's run
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from turnwarden.engine.graph_errors import ContractError, ReplayError
from turnwarden.engine.graph_log import Entry
from turnwarden.engine.graph_nodes import WorkflowNode

__all__ = [
    "Recorder",
    "Recording",
    "Replayer",
    "RunInfo",
    "Step",
    "StepFailure",
    "StepLayer",
    "StepOutcome",
    "text_of",
]


@dataclass(frozen=True, slots=True)
class StepFailure:
    """An exception that a node raised.

    Attributes:
        type: The name of its type.
        message: What it says.
        is_routable: Whether `to_if_error` may take it.
        exception: The exception itself, where it is at hand. Never stored.
    """

    type: str
    message: str
    is_routable: bool = True
    exception: Exception | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type

    @classmethod
    def of(cls, error: Exception) -> StepFailure:
        """The failure that an exception is."""
        is_routable = not isinstance(error, ContractError)
        return cls(type(error).__name__, text_of(error), is_routable, error)


def text_of(value: object) -> str:
    """A value as text, also when its own `__str__` raises."""
    try:
        return str(value)
    except Exception:  # a broken __str__ must not lose the error
        return ""


@dataclass(slots=True)  # not frozen: that doubles the cost of making one
class StepOutcome:
    """What a step brought: all that the loop needs to go on.

    Attributes:
        update: What the node returned.
        failure: What it raised; None when it did not.
        duration: Seconds, those between attempts included.
        trail: The events within the step, each with its sequence: attempts, what the node emitted.
        guard: How often the guard was used, and its state then; None when the node left it alone.
        is_live: Whether the events of the trail were told already. Never stored.
    """

    update: Mapping[str, object] | None = None
    failure: StepFailure | None = None
    duration: float = 0.0
    trail: tuple[tuple[int, Entry], ...] = ()
    guard: tuple[int, bytes] | None = None
    is_live: bool = field(default=False, compare=False, repr=False)

    def stored(self) -> StepOutcome:
        """A copy of its own, without what belongs to the moment.

        Raises:
            Exception: Something in the update that cannot be copied.
        """
        failure = self.failure and dataclasses.replace(self.failure, exception=None)
        update = copy.deepcopy(self.update)
        return dataclasses.replace(self, update=update, failure=failure, is_live=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, where the update is."""
        failure = self.failure
        return {
            "update": self.update,
            "failure": failure and [failure.type, failure.message, failure.is_routable],
            "duration": self.duration,
            "trail": [[sequence, *entry] for sequence, entry in self.trail],
            "guard": self.guard and [self.guard[0], self.guard[1].hex()],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StepOutcome:
        """The outcome that `to_dict` made.

        Raises:
            ReplayError: It is none.
        """
        try:
            failure, guard = data["failure"], data["guard"]
            return cls(
                update=data["update"],
                failure=None if failure is None else StepFailure(*failure),
                duration=data["duration"],
                trail=tuple((sequence, tuple(entry)) for sequence, *entry in data["trail"]),
                guard=None if guard is None else (guard[0], bytes.fromhex(guard[1])),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ReplayError(f"this is no outcome of a step: {error!r}") from error


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a layer is told of a run.

    Attributes:
        run_id: Which run; that of a sub-workflow is the key of its node.
        workflow_id: Which workflow.
        revision: Which revision of it.
        state: A copy of the state that it began with.
        emit: Adds an event to those of the run: its kind, then its own fields in order.
    """

    run_id: str
    workflow_id: str
    revision: str
    state: Any
    emit: Callable[..., None]


class Step(Protocol):
    """Runs one node, and tells what came of it. It may be asynchronous."""

    def __call__(
        self, node: WorkflowNode[Any, Any], key: str, state: Any, /
    ) -> StepOutcome | Awaitable[StepOutcome]:
        """Run a node.

        Args:
            node: Which.
            key: `run_id:sequence:node`: unique, and the same when a run comes to it again.
            state: A copy of the state, for the node to have.

        Returns:
            The outcome, or an awaitable that gives it. What a node raises is in the outcome; what
            the step itself raises ends the run.
        """
        ...


class StepLayer(Protocol):
    """Stands between the loop and the steps. `AgentCoreEngine(layer=...)` takes one."""

    def bind(self, step: Step, run: RunInfo, /) -> Step:
        """Give the step that a run uses in place of the engine's own.

        Called once a run, and once for each run of a sub-workflow.

        Args:
            step: The engine's own, or that of the layer below.
            run: Which run.
        """
        ...


@dataclass(slots=True)
class Recording:
    """The outcomes of the steps of one run.

    Attributes:
        run_id: Which run.
        state: What it began with.
        revisions: The revision of each workflow that ran, by run id: its own, its sub-workflows'.
        outcomes: The outcomes by key.
    """

    run_id: str
    state: Any
    revisions: dict[str, str] = field(default_factory=dict[str, str])
    outcomes: dict[str, StepOutcome] = field(default_factory=dict[str, StepOutcome])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, where state and updates are."""
        return {
            "run_id": self.run_id,
            "state": self.state,
            "revisions": dict(self.revisions),
            "outcomes": {key: outcome.to_dict() for key, outcome in self.outcomes.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Recording:
        """The recording that `to_dict` made.

        Raises:
            ReplayError: It is none.
        """
        try:
            outcomes = cast("Mapping[str, Any]", data["outcomes"])
            return cls(
                run_id=data["run_id"],
                state=data["state"],
                revisions=dict(data["revisions"]),
                outcomes={key: StepOutcome.from_dict(value) for key, value in outcomes.items()},
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ReplayError(f"this is no recording: {error!r}") from error


class Recorder:
    """A layer that keeps the outcome of every step, in memory.

    Updates are copied deeply, so that nobody changes them afterwards.

    Example:
        >>> from turnwarden.engine import AgentCoreEngine, Node, Replayer, define_workflow, route
        >>> add = Node(id="add", starts_round=True, run=lambda state: {"sum": state["a"] + 1},
        ...            routes=[route.deliver("sum")])
        >>> workflow = define_workflow(id="sum", nodes=[add])
        >>> recorder = Recorder()
        >>> AgentCoreEngine(workflow, layer=recorder).run_sync({"a": 1}, run_id="r")
        2
        >>> recording = recorder.recording("r")
        >>> replaying = AgentCoreEngine(workflow, layer=Replayer(recording))
        >>> replaying.run_sync(recording.state, run_id="r")
        2
    """

    def __init__(self) -> None:
        self._recordings: dict[str, Recording] = {}

    def bind(self, step: Step, run: RunInfo, /) -> Step:
        """See `StepLayer`."""
        recording = Recording(run.run_id, copy.deepcopy(run.state))
        recording.revisions[run.run_id] = run.revision
        self._recordings[run.run_id] = recording
        outcomes = recording.outcomes

        def recorded(
            node: WorkflowNode[Any, Any], key: str, state: Any
        ) -> StepOutcome | Awaitable[StepOutcome]:
            outcome = step(node, key, state)
            if not isinstance(outcome, StepOutcome):
                return record_later(key, outcome)
            outcomes[key] = outcome.stored()
            return outcome

        async def record_later(key: str, awaited: Awaitable[StepOutcome]) -> StepOutcome:
            outcome = await awaited
            outcomes[key] = outcome.stored()
            return outcome

        return recorded

    def recording(self, run_id: str) -> Recording:
        """What was recorded of a run, its sub-workflows included.

        Raises:
            KeyError: No such run.
        """
        root = self._recordings[run_id]
        whole = Recording(run_id, root.state)
        for known, part in self._recordings.items():
            if known == run_id or known.startswith(f"{run_id}:"):
                whole.revisions.update(part.revisions)
                whole.outcomes.update(part.outcomes)
        return whole


class Replayer:
    """A layer that gives recorded outcomes back: no node runs whose outcome is known.

    Args:
        recording: Of the run with the same run id.
        resume: Whether nodes run whose outcome is not recorded; by default that is an error.
        allow_other_revision: Whether another revision of the workflow may go on.

    Raises:
        ReplayError: When a run begins that is another one, or of another revision; or at a step
            that is not recorded.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        resume: bool = False,
        allow_other_revision: bool = False,
    ) -> None:
        self._recording = recording
        self._resume = resume
        self._allow_other_revision = allow_other_revision

    def bind(self, step: Step, run: RunInfo, /) -> Step:
        """See `StepLayer`."""
        self._check(run)
        outcomes = self._recording.outcomes

        def replayed(
            node: WorkflowNode[Any, Any], key: str, state: Any
        ) -> StepOutcome | Awaitable[StepOutcome]:
            known = outcomes.get(key)
            if known is not None:
                return known.stored()
            if self._resume:
                return step(node, key, state)
            raise ReplayError(
                f"step {key!r} is not recorded; Replayer(..., resume=True) would run it"
            )

        return replayed

    def _check(self, run: RunInfo) -> None:
        recording = self._recording
        root = recording.run_id
        if run.run_id != root and not run.run_id.startswith(f"{root}:"):
            raise ReplayError(
                f"the recording is of run {root!r}, not {run.run_id!r}; pass run_id={root!r}"
            )
        revision = recording.revisions.get(run.run_id, run.revision)
        if revision != run.revision and not self._allow_other_revision:
            raise ReplayError(
                f"run {run.run_id!r} was recorded with revision {revision!r} of workflow "
                f"{run.workflow_id!r}, not {run.revision!r}; allow_other_revision=True goes on"
            )
