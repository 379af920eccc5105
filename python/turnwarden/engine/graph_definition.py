"""A workflow as it is defined: checked once, read-only, and able to say what it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from turnwarden.engine.checking import as_tuple
from turnwarden.engine.graph_errors import WorkflowDefinitionError
from turnwarden.engine.graph_nodes import SubWorkflow, WorkflowNode, function_name
from turnwarden.engine.graph_state import fields_of_type
from turnwarden.engine.graph_validation import Draft, Finding, Severity, validate, workflow_of
from turnwarden.engine.route import Route, RouteKind

if TYPE_CHECKING:
    from turnwarden.engine.graph_chain import WorkflowChainSource

__all__ = ["AgentWorkflowDefinition", "define_workflow"]

StateT = TypeVar("StateT")
ResultT = TypeVar("ResultT")
RuntimeT = TypeVar("RuntimeT")


@dataclass(frozen=True, slots=True, weakref_slot=True, init=False, eq=False, repr=False)
class AgentWorkflowDefinition(Generic[StateT, ResultT, RuntimeT]):
    """A workflow: nodes and the routes between them. `define_workflow` makes one.

    It is read-only, and may be run by any number of engines at once.

    Attributes:
        id: Its name.
        revision: Which revision: as given, else a digest of `describe()`.
        nodes: The nodes, in their order.
        entry_node_id: Where runs begin.
        is_result: Says whether a value may be delivered; None when any may.
        chain_source: The application's own reader of run records, if it has one.
        state_type: The type of the state, if it was given.
        warnings: What may go wrong, a `Finding` each.
    """

    id: str
    revision: str
    nodes: tuple[WorkflowNode[StateT, RuntimeT], ...]
    entry_node_id: str
    is_result: Callable[[Any], bool] | None
    chain_source: WorkflowChainSource | None
    state_type: type[StateT] | None
    warnings: tuple[Finding, ...]
    fields: frozenset[str] | None
    nesting: int
    _plan: Any

    def __init__(
        self,
        *,
        id: str,
        nodes: Iterable[WorkflowNode[StateT, RuntimeT]],
        revision: str | None = None,
        is_result: Callable[[Any], bool] | None = None,
        entry_node_id: str | None = None,
        chain_source: WorkflowChainSource | None = None,
        state_type: type[StateT] | None = None,
    ) -> None:
        fields, problem = _fields(state_type)
        given = as_tuple("nodes", nodes, "Nodes")
        draft = Draft(id, revision, given, entry_node_id, is_result, chain_source, problem, fields)
        findings = validate(draft)
        errors = [one for one in findings if one.severity is Severity.ERROR]
        if errors:
            raise WorkflowDefinitionError(str(id), errors)
        values: dict[str, Any] = {
            "id": id,
            "nodes": given,
            "entry_node_id": given[0].id if entry_node_id is None else entry_node_id,
            "is_result": is_result,
            "chain_source": chain_source,
            "state_type": state_type,
            "warnings": tuple(findings),
            "fields": fields,
            "nesting": 1 + max((_nesting(node) for node in given), default=0),
            "revision": revision,
            "_plan": None,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if revision is None:
            object.__setattr__(self, "revision", self._digest())

    def __repr__(self) -> str:
        return f"<AgentWorkflowDefinition {self.id!r} {self.revision} of {len(self.nodes)} nodes>"

    def describe(self) -> dict[str, Any]:
        """The workflow as plain JSON data: the same for the same workflow, fit for a diff.

        Functions are told by their names.
        """
        return {
            "id": self.id,
            "revision": self.revision,
            "entry_node_id": self.entry_node_id,
            "state_type": _name_of(self.state_type),
            "is_result": _name_of(self.is_result),
            "nodes": [_describe_node(node) for node in self.nodes],
            "warnings": [finding.to_dict() for finding in self.warnings],
        }

    def to_mermaid(self) -> str:
        """The workflow as a Mermaid flowchart. Nodes that start a round have a double border."""
        from turnwarden.engine.graph_mermaid import draw

        return draw(self)

    def _digest(self) -> str:
        described = {**self.describe(), "revision": None, "warnings": None}
        text = json.dumps(described, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def define_workflow(
    *,
    id: str,
    nodes: Iterable[WorkflowNode[StateT, RuntimeT]],
    revision: str | None = None,
    is_result: Callable[[Any], bool] | None = None,
    entry_node_id: str | None = None,
    chain_source: WorkflowChainSource | None = None,
    state_type: type[StateT] | None = None,
) -> AgentWorkflowDefinition[StateT, Any, RuntimeT]:
    """Define a workflow.

    Args:
        id: Its name.
        nodes: The nodes. Their order says nothing but which is the first.
        revision: Which revision it is; by default a digest of `describe()`, so that it changes
            when the graph does. What functions do it cannot see.
        is_result: A synchronous function that says whether a value may be delivered: exactly
            True, or the run ends with a `ContractError`.
        entry_node_id: Where runs begin; by default the first node. It must start a round.
        chain_source: The application's own reader of run records, for `engine.read_chain`.
        state_type: The type of the state: a TypedDict, a dataclass or a pydantic model. Fields
            are then checked here, and the keys of updates in each run. The latter is also done
            without it when a run is given a dataclass or a model.

    Returns:
        The workflow, read-only. What may go wrong is in its `warnings`.

    Raises:
        WorkflowDefinitionError: All that is wrong, at once.

    Example:
        >>> from turnwarden.engine import AgentCoreEngine, Node, route
        >>> def greet(state):
        ...     return {"answer": f"Hello, {state['name']}!"}
        >>> workflow = define_workflow(id="greeting", nodes=[
        ...     Node(id="greet", starts_round=True, run=greet, routes=[route.deliver("answer")]),
        ... ])
        >>> AgentCoreEngine(workflow).run_sync({"name": "Ivan"})
        'Hello, Ivan!'
    """
    return AgentWorkflowDefinition(
        id=id,
        nodes=nodes,
        revision=revision,
        is_result=is_result,
        entry_node_id=entry_node_id,
        chain_source=chain_source,
        state_type=state_type,
    )


def _fields(state_type: type | None) -> tuple[frozenset[str] | None, str | None]:
    try:
        return fields_of_type(state_type), None
    except TypeError as error:
        return None, str(error)


def _nesting(node: WorkflowNode[Any, Any]) -> int:
    workflow = workflow_of(node.run)
    return 0 if workflow is None else workflow.nesting


def _name_of(function: object) -> str | None:
    return None if function is None else function_name(function)


def _describe_node(node: WorkflowNode[Any, Any]) -> dict[str, Any]:
    return {
        "id": node.id,
        "description": node.description,
        "starts_round": node.starts_round,
        "run": _describe_run(node.run),
        "requires": list(node.requires),
        "provides": list(node.provides),
        "retry": None if node.retry is None else node.retry.describe(),
        "timeout": node.timeout,
        "routes": [_describe_route(route) for route in node.routes],
    }


def _describe_run(run: object) -> str | dict[str, Any] | None:
    workflow = workflow_of(run)
    if workflow is None:
        return _name_of(run)
    sub = cast("SubWorkflow[Any, Any]", run) if isinstance(run, SubWorkflow) else None
    return {
        "workflow": workflow.id,
        "revision": workflow.revision,
        "input": None if sub is None else _name_of(sub.input),
        "output": None if sub is None else sub.output,
    }


def _describe_route(route: Route[Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"kind": route.kind.value}
    if route.predicate is not None:
        described["predicate"] = function_name(route.predicate)
    if route.kind is RouteKind.FAN_OUT:
        merge = cast("Mapping[str, object]", route.merge)
        described["branches"] = list(route.branches)
        described["join"] = route.target
        described["merge"] = {name: function_name(one) for name, one in sorted(merge.items())}
    elif route.field is not None:
        described["field"] = route.field
    else:
        described["target"] = route.target
    return described
