"""What the graph engine raises. Each error says where it happened, and carries the run so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from turnwarden._core import TurnwardenError
from turnwarden.engine.errors import EngineError

if TYPE_CHECKING:
    from turnwarden.engine.graph_run import GraphRun
    from turnwarden.engine.graph_validation import Finding

__all__ = [
    "ChainAccessError",
    "ContractError",
    "GraphError",
    "NodeError",
    "ReplayError",
    "RoundLimitError",
    "RunStoppedError",
    "WorkflowDefinitionError",
]


class WorkflowDefinitionError(TurnwardenError, ValueError):
    """A workflow that cannot be run as it is defined; the message lists all that is wrong.

    Attributes:
        workflow_id: Which workflow.
        findings: What is wrong: a `Finding` each, with its node and what to do.
    """

    def __init__(self, workflow_id: str, findings: Iterable[Finding]) -> None:
        self.workflow_id = workflow_id
        self.findings = tuple(findings)
        count = len(self.findings)
        head = f"workflow {workflow_id!r} has {count} error{'' if count == 1 else 's'}:"
        super().__init__("\n".join([head, *(f"- {finding}" for finding in self.findings)]))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.workflow_id, self.findings)


class GraphError(EngineError):
    """A run of a workflow that ended without a result.

    Attributes:
        problem: What went wrong, without the place.
        workflow_id: Which workflow.
        revision: Which revision of it.
        node_id: Which node; None when it is none of a node's.
        field: Which field of the state, where it is one.
        round: In which round, from 1; 0 before the first.
        run: What was done until then: state, events, rounds.
    """

    def __init__(
        self,
        problem: str,
        *,
        workflow_id: str = "",
        revision: str = "",
        node_id: str | None = None,
        field: str | None = None,
        round: int = 0,
        run: GraphRun[Any, Any] | None = None,
    ) -> None:
        self.problem = problem
        self.workflow_id = workflow_id
        self.revision = revision
        self.node_id = node_id
        self.field = field
        self.round = round
        self.run = run
        where = f"workflow {workflow_id!r}, revision {revision!r}"
        if node_id is not None:
            where += f", node {node_id!r}"
        if round:
            where += f", round {round}"
        if field is not None:
            where += f", field {field!r}"
        super().__init__(f"{where}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.problem, _place(self))


def _place(error: GraphError) -> dict[str, Any]:
    """Where it happened. The run stays behind: its state may hold what cannot be pickled."""
    names = ("workflow_id", "revision", "node_id", "field", "round")
    return {name: getattr(error, name) for name in names}


def _restore(kind: type[GraphError], problem: str, place: dict[str, Any]) -> GraphError:
    return kind(problem, **place)


class NodeError(GraphError):
    """A node raised, and no route of it takes errors. The cause is chained as `__cause__`."""


class ContractError(GraphError, ValueError):
    """A node, a route or a result that breaks what the definition promises. It is never routed."""


class RunStoppedError(GraphError):
    """A limit or the guard ended the run.

    Attributes:
        reason: A stable code such as `limit.max_rounds`, `recursion.hard_limit` or `loop.exact`.
    """

    def __init__(self, problem: str, *, reason: str = "", **place: Any) -> None:
        super().__init__(problem, **place)
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.problem, {**_place(self), "reason": self.reason})


class RoundLimitError(RunStoppedError):
    """The run took all rounds that it may: `max_rounds`, or the guard's hard limit."""


class ReplayError(EngineError, ValueError):
    """A recording that does not fit the run."""


class ChainAccessError(EngineError, PermissionError):
    """Run records that cannot be read here, or not by this principal."""
