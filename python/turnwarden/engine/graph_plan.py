"""A workflow made ready to run: ids resolved to nodes, functions to one way of calling them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, cast

from turnwarden.engine.graph_definition import AgentWorkflowDefinition
from turnwarden.engine.graph_nodes import (
    Calling,
    SubWorkflow,
    WorkflowNode,
    calling_of,
    context_keyword,
)
from turnwarden.engine.graph_validation import workflow_of
from turnwarden.engine.route import Reducer, Route, RouteKind

__all__ = ["Plan", "PlanNode", "PlanRoute", "plan_of"]


class PlanRoute:
    """A route with its nodes in place of their ids."""

    __slots__ = ("branches", "field", "kind", "merge", "name", "predicate", "target", "target_id")

    def __init__(self, route: Route[Any], nodes: Mapping[str, PlanNode]) -> None:
        self.kind: RouteKind = route.kind
        self.name = route.kind.value
        self.target_id = route.target
        self.field: str = route.field or ""
        self.predicate: Callable[[Any], Any] | None = route.predicate
        self.target: PlanNode | None = None if route.target is None else nodes[route.target]
        self.branches: tuple[PlanNode, ...] = tuple(nodes[name] for name in route.branches)
        self.merge: Mapping[str, Reducer] = route.merge


class PlanNode:
    """A node with all that is known of it beforehand."""

    __slots__ = (
        "always",
        "call",
        "checks_entry",
        "error_route",
        "function",
        "id",
        "is_plain",
        "node",
        "provides",
        "requires",
        "routes",
        "runs",
        "starts_round",
        "sub",
        "takes_context",
    )

    def __init__(self, node: WorkflowNode[Any, Any]) -> None:
        self.node = node
        self.id = node.id
        self.starts_round = bool(node.starts_round)
        self.requires = tuple(node.requires)
        self.provides = tuple(node.provides)
        self.checks_entry = self.starts_round or bool(self.requires)
        self.is_plain = node.retry is None and node.timeout is None
        self.routes: tuple[PlanRoute, ...] = ()
        self.error_route: PlanRoute | None = None
        self.always: PlanRoute | None = None
        workflow = workflow_of(node.run)
        self.sub: SubWorkflow[Any, Any] | None = None
        self.function: Callable[..., Any] | None = None
        self.takes_context = False
        if workflow is not None:
            is_sub = isinstance(node.run, SubWorkflow)
            self.sub = node.run if is_sub else SubWorkflow(workflow)  # type: ignore[assignment]
        elif callable(node.run):
            self.function, self.takes_context = _callable(node.run)
        self.call = cast("Callable[..., Any]", self.function)
        self.runs = self.function is not None or self.sub is not None

    def link(self, nodes: Mapping[str, PlanNode]) -> None:
        """Resolve its routes."""
        self.routes = tuple(PlanRoute(route, nodes) for route in self.node.routes)
        if len(self.routes) == 1:
            self.always = self.routes[0]
        for route in self.routes:
            if route.kind is RouteKind.TO_IF_ERROR:
                self.error_route = route
                break


def _callable(function: Callable[..., Any]) -> tuple[Callable[..., Any], bool]:
    calling = calling_of(function)
    if calling is not Calling.KEYWORD_CONTEXT:
        return function, calling is Calling.STATE_AND_CONTEXT
    keyword = context_keyword(function)

    @functools.wraps(function)
    def with_keyword(state: Any, context: Any) -> Any:
        return function(state, **{keyword: context})

    return with_keyword, True


class Plan:
    """A workflow made ready to run."""

    __slots__ = ("entry", "nodes")

    def __init__(self, workflow: AgentWorkflowDefinition[Any, Any, Any]) -> None:
        self.nodes = {node.id: PlanNode(node) for node in workflow.nodes}
        for node in self.nodes.values():
            node.link(self.nodes)
        self.entry = self.nodes[workflow.entry_node_id]


def plan_of(workflow: AgentWorkflowDefinition[Any, Any, Any]) -> Plan:
    """The plan of a workflow, made once and kept on it."""
    plan: Plan | None = workflow._plan  # pyright: ignore[reportPrivateUsage]
    if plan is None:
        plan = Plan(workflow)
        object.__setattr__(workflow, "_plan", plan)
    return plan
