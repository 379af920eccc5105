"""What a run of a workflow did, as far as it came."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from turnwarden.engine.events import Event
from turnwarden.engine.graph_log import Entry, build_event
from turnwarden.engine.results import RunStatus
from turnwarden.guards import WorkflowGuard

__all__ = ["GraphRun"]

StateT = TypeVar("StateT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class GraphRun(Generic[StateT, ResultT]):
    """What a run did, as far as it came. Errors that end a run carry it as `run`.

    Attributes:
        run_id: Which run.
        workflow_id: Which workflow.
        revision: Which revision of it.
        status: completed, limit, stopped, failed or cancelled; running while it does.
        reason: Why: `delivered`, `limit.max_rounds`, the guard's code, `node.error`,
            `contract.error`, `engine.error` or `cancelled`.
        state: A copy of the state.
        rounds: How many rounds began.
        steps: How many nodes ran, or began to.
        node_id: Where it is, or where it ended.
        result: What was delivered.
        guard: The guard of this run, when the engine has one.
    """

    run_id: str
    workflow_id: str
    revision: str
    status: RunStatus
    reason: str | None
    state: StateT
    rounds: int
    steps: int
    node_id: str | None
    result: ResultT | None = None
    guard: WorkflowGuard | None = field(default=None, repr=False, compare=False)
    _first: int = field(default=0, repr=False)
    _entries: tuple[Entry, ...] = field(default=(), repr=False)

    @property
    def events(self) -> tuple[Event, ...]:
        """Its events, the last `keep_events` of them. They are built anew each time."""
        return tuple(
            build_event(entry, self.run_id, sequence, self.workflow_id, self.revision)
            for sequence, entry in enumerate(self._entries, self._first)
        )

    def to_dict(self) -> dict[str, Any]:
        """All but the guard; the state as it is."""
        return {
            "run_id": self.run_id,
            "workflow_id": self.workflow_id,
            "revision": self.revision,
            "status": self.status.value,
            "reason": self.reason,
            "state": self.state,
            "rounds": self.rounds,
            "steps": self.steps,
            "node_id": self.node_id,
            "result": self.result,
            "events": [event.to_dict() for event in self.events],
        }

    def __reduce__(self) -> tuple[Any, ...]:
        # A guard is pickled as its bytes, and goes on with the real clock.
        values = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        guard = values["guard"]
        values["guard"] = None if guard is None else (guard.to_bytes(), guard.config)
        return _restore, (values,)


def _restore(values: dict[str, Any]) -> GraphRun[Any, Any]:
    guard = values.pop("guard")
    restored = None if guard is None else WorkflowGuard.from_bytes(*guard)
    return GraphRun(guard=restored, **values)
