"""Draws a workflow as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from turnwarden.engine.graph_nodes import WorkflowNode, function_name
from turnwarden.engine.route import Route, RouteKind

if TYPE_CHECKING:
    from turnwarden.engine.graph_definition import AgentWorkflowDefinition

__all__ = ["draw"]


def draw(workflow: AgentWorkflowDefinition[Any, Any, Any]) -> str:
    """The chart's text, its lines in the order of nodes and routes."""
    names = {node.id: f"n{position}" for position, node in enumerate(workflow.nodes)}
    results: dict[str, str] = {}
    edges = [line for node in workflow.nodes for line in _edges(node, names, results)]
    lines = ["flowchart TD", "    start((start))"]
    lines += [f"    {names[node.id]}{_box(node)}" for node in workflow.nodes]
    lines += [f"    {name}([{_quoted(field)}])" for field, name in results.items()]
    lines += [f"    start --> {names[workflow.entry_node_id]}", *edges]
    return "\n".join(lines)


def _box(node: WorkflowNode[Any, Any]) -> str:
    label = _quoted(f"{node.id}: {node.description}" if node.description else node.id)
    return f"[[{label}]]" if node.starts_round else f"[{label}]"


def _edges(
    node: WorkflowNode[Any, Any], names: dict[str, str], results: dict[str, str]
) -> Iterator[str]:
    source = names[node.id]
    for route in node.routes:
        if route.kind is RouteKind.FAN_OUT:
            for branch in route.branches:
                yield f"    {source} ==> {names[branch]}"
                yield f"    {names[branch]} -.-> {names[route.target or '']}"
            continue
        if route.field is not None:
            target = results.setdefault(route.field, f"r{len(results)}")
        else:
            target = names[route.target or ""]
        label = _label(route)
        yield f"    {source} -->{'' if label is None else f'|{_quoted(label)}|'} {target}"


def _label(route: Route[Any]) -> str | None:
    if route.kind is RouteKind.TO_IF_ERROR:
        return "on error"
    return None if route.predicate is None else f"if {function_name(route.predicate)}"


_ESCAPES = str.maketrans(
    {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "\n": " ", "\r": " ", "|": "#124;"}
)


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'
