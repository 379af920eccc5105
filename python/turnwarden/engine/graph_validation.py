"""What is wrong with a workflow: all of it at once, each with its node and what to do.

Errors are what must go wrong; warnings are what may. Costs time linear in nodes and routes, and for
`requires` a bit for each node and each field that is required.
"""

from __future__ import annotations

import enum
import inspect
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from turnwarden.engine.graph_nodes import (
    Retry,
    SubWorkflow,
    WorkflowNode,
    calling_of,
    is_async_function,
)
from turnwarden.engine.route import Route, RouteKind

if TYPE_CHECKING:
    from turnwarden.engine.graph_definition import AgentWorkflowDefinition

__all__ = ["Finding", "FindingCode", "Severity", "validate"]

MAX_NESTING: Final = 50


class Severity(enum.StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"


class FindingCode(enum.StrEnum):
    """What is wrong."""

    WORKFLOW_INVALID = "workflow_invalid"
    """Its id, revision, state type or chain source."""
    NO_NODES = "no_nodes"
    NODE_INVALID = "node_invalid"
    """Something among the nodes that is none."""
    ID_EMPTY = "id_empty"
    ID_DUPLICATE = "id_duplicate"
    DESCRIPTION_INVALID = "description_invalid"
    ENTRY_UNKNOWN = "entry_unknown"
    ENTRY_WITHOUT_ROUND = "entry_without_round"
    NO_ROUTES = "no_routes"
    ROUTE_INVALID = "route_invalid"
    """Something among the routes that is none, or one with a part of a wrong type."""
    TARGET_UNKNOWN = "target_unknown"
    LAST_ROUTE_CONDITIONAL = "last_route_conditional"
    ROUTE_AFTER_UNCONDITIONAL = "route_after_unconditional"
    NODE_UNREACHABLE = "node_unreachable"
    CYCLE_WITHOUT_ROUND = "cycle_without_round"
    RUN_INVALID = "run_invalid"
    FIELDS_INVALID = "fields_invalid"
    FIELD_UNKNOWN = "field_unknown"
    """A field that the typed state does not have."""
    TIMING_INVALID = "timing_invalid"
    IS_RESULT_INVALID = "is_result_invalid"
    BRANCH_INVALID = "branch_invalid"
    WRITE_CONFLICT = "write_conflict"
    """Two branches of a fan-out that provide one field, without a reducer."""
    REQUIRES_UNPROVIDED = "requires_unprovided"
    PROVIDES_WITHOUT_RUN = "provides_without_run"
    NO_DELIVERY = "no_delivery"


_WARNINGS: Final = frozenset(
    {
        FindingCode.REQUIRES_UNPROVIDED,
        FindingCode.PROVIDES_WITHOUT_RUN,
        FindingCode.NO_DELIVERY,
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is, or may be, wrong with a workflow.

    Attributes:
        code: What kind of thing.
        node_id: At which node; None when it is none of a node's.
        message: What it is.
        remedy: What to do.
    """

    code: FindingCode
    node_id: str | None
    message: str
    remedy: str

    @property
    def severity(self) -> Severity:
        """Errors keep a workflow from being defined; warnings do not."""
        return Severity.WARNING if self.code in _WARNINGS else Severity.ERROR

    def __str__(self) -> str:
        where = "" if self.node_id is None else f"node {self.node_id!r}: "
        return f"{where}{self.message}; {self.remedy}"

    def to_dict(self) -> dict[str, str | None]:
        """The fields by name, with the severity."""
        return {
            "severity": self.severity.value,
            "code": self.code.value,
            "node_id": self.node_id,
            "message": self.message,
            "remedy": self.remedy,
        }


AnyNode = WorkflowNode[Any, Any]


@dataclass(frozen=True, slots=True)
class Draft:
    """A workflow before it is known to be right."""

    id: object
    revision: object
    nodes: tuple[object, ...]
    entry_node_id: object
    is_result: object
    chain_source: object
    state_type_problem: str | None
    fields: frozenset[str] | None


def validate(draft: Draft) -> list[Finding]:
    """All that is, or may be, wrong; errors first, else in the order of the nodes."""
    nodes = [cast("AnyNode", node) for node in draft.nodes if isinstance(node, WorkflowNode)]
    graph = _Graph(nodes, draft.entry_node_id)
    findings = [
        *_check_workflow(draft),
        *_check_ids(draft.nodes),
        *_check_entry(draft, graph),
    ]
    for node in nodes:
        findings += _check_run(node)
        findings += _check_timing(node)
        findings += _check_fields(node, draft.fields)
        findings += _check_routes(node, graph, draft.fields)
        findings += _check_fan_outs(node, graph)
    findings += _check_cycles(graph)
    findings += _check_reachability(graph)
    findings += _check_requires(graph)
    findings += _check_delivery(graph)
    return sorted(findings, key=lambda finding: finding.severity is Severity.WARNING)


class _Graph:
    """The nodes by id, and where one can go from each. Unknown targets are left out."""

    def __init__(self, nodes: list[AnyNode], entry: object) -> None:
        self.nodes: dict[str, AnyNode] = {}
        for node in nodes:
            if _is_name(node.id):
                self.nodes.setdefault(node.id, node)
        self.branches = {
            branch
            for node in self.nodes.values()
            for route in _routes(node)
            for branch in _branches(route)
        }
        self.after = {name: self._targets(node) for name, node in self.nodes.items()}
        self.entry = entry if isinstance(entry, str) and entry in self.nodes else None
        if entry is None and nodes and _is_name(nodes[0].id):
            self.entry = nodes[0].id
        led_to = set(self._plain_targets())
        # these go to their join by themselves, and nobody comes to them another way
        self.pure_branches = self.branches - led_to - {self.entry}
        for node in self.nodes.values():
            for route in _routes(node):
                self._add_join(route)

    def _plain_targets(self) -> Iterator[str]:
        """Where routes lead that run no branches, and where these join."""
        for node in self.nodes.values():
            yield from _only_names(route.target for route in _routes(node))

    def _targets(self, node: AnyNode) -> dict[str, None]:
        targets: dict[str, None] = {}
        for route in _routes(node):
            is_fan_out = route.kind is RouteKind.FAN_OUT
            names = _branches(route) if is_fan_out else _only_names((route.target,))
            targets.update((name, None) for name in names if name in self.nodes)
        return targets

    def _add_join(self, route: Route[Any]) -> None:
        if route.kind is not RouteKind.FAN_OUT:
            return
        for join in _only_names((route.target,)):
            for branch in _branches(route):
                if join in self.after and branch in self.after:
                    self.after[branch][join] = None

    def reachable(self, starts: Iterable[str]) -> set[str]:
        """Every node that can be come to, the starts included."""
        return _reach(starts, self.after)

    def before(self) -> dict[str, dict[str, None]]:
        """From where one comes to each node."""
        before: dict[str, dict[str, None]] = {name: {} for name in self.nodes}
        for name, targets in self.after.items():
            for target in targets:
                before[target][name] = None
        return before


def _reach(starts: Iterable[str], after: Mapping[str, Iterable[str]]) -> set[str]:
    seen = set(starts)
    left = list(seen)
    while left:
        for target in after[left.pop()]:
            if target not in seen:
                seen.add(target)
                left.append(target)
    return seen


def _routes(node: AnyNode) -> list[Route[Any]]:
    return [route for route in _items(node.routes) if isinstance(route, Route)]


def _branches(route: Route[Any]) -> tuple[str, ...]:
    return _only_names(route.branches)


def _only_names(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(cast("str", value) for value in values if _is_name(value))


def _items(value: object) -> tuple[object, ...]:
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else ()


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _names(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


# The workflow


def _check_workflow(draft: Draft) -> Iterator[Finding]:
    def finding(message: str, remedy: str) -> Finding:
        return Finding(FindingCode.WORKFLOW_INVALID, None, message, remedy)

    if not _is_name(draft.id):
        yield finding(f"its id is {draft.id!r}", "give it a name")
    if draft.revision is not None and not _is_name(draft.revision):
        yield finding(f"its revision is {draft.revision!r}", "give a text, or none at all")
    if draft.state_type_problem is not None:
        yield finding(
            f"its state_type is wrong: {draft.state_type_problem}",
            "give a TypedDict, a dataclass or a pydantic model",
        )
    if draft.chain_source is not None and not callable(getattr(draft.chain_source, "read", None)):
        yield finding(
            "its chain_source has no method `read`", "give one with `read(run_id, principal)`"
        )
    if draft.is_result is not None:
        yield from _check_is_result(draft.is_result)


def _check_is_result(is_result: object) -> Iterator[Finding]:
    code = FindingCode.IS_RESULT_INVALID
    if not callable(is_result):
        yield Finding(code, None, "is_result cannot be called", "give a function of the value")
    elif is_async_function(is_result):
        yield Finding(
            code,
            None,
            "is_result is asynchronous, and what it returns would never be looked at",
            "make it a synchronous function that returns True or False",
        )


def _check_ids(nodes: tuple[object, ...]) -> Iterator[Finding]:
    if not nodes:
        yield Finding(FindingCode.NO_NODES, None, "it has no nodes", "define at least one")
    seen: Counter[str] = Counter()
    for position, node in enumerate(nodes):
        if not isinstance(node, WorkflowNode):
            yield Finding(
                FindingCode.NODE_INVALID,
                None,
                f"its node {position} is a {type(node).__name__}",
                "make it a Node",
            )
            continue
        name = cast("object", node.id)
        if not _is_name(name):
            yield Finding(
                FindingCode.ID_EMPTY,
                name if isinstance(name, str) else None,
                f"the id of node {position} is {name!r}",
                "give it a name of its own",
            )
            continue
        description = cast("object", node.description)
        if not isinstance(description, str):
            yield Finding(
                FindingCode.DESCRIPTION_INVALID,
                node.id,
                f"its description is {description!r}",
                "describe it in a few words",
            )
        seen[node.id] += 1
        if seen[node.id] == 2:
            yield Finding(
                FindingCode.ID_DUPLICATE,
                node.id,
                "more than one node has this id",
                "give each node a name of its own",
            )


def _check_entry(draft: Draft, graph: _Graph) -> Iterator[Finding]:
    if draft.entry_node_id is not None and graph.entry is None:
        yield Finding(
            FindingCode.ENTRY_UNKNOWN,
            None,
            f"entry_node_id is {draft.entry_node_id!r}, and no node has this id",
            f"give one of {_names(graph.nodes)}",
        )
    if graph.entry is not None and graph.nodes[graph.entry].starts_round is not True:
        yield Finding(
            FindingCode.ENTRY_WITHOUT_ROUND,
            graph.entry,
            "it is the entry and starts no round",
            "set starts_round=True on it",
        )


# One node


def _check_run(node: AnyNode) -> Iterator[Finding]:
    run = cast("object", node.run)
    code = FindingCode.RUN_INVALID
    if run is None:
        if node.provides:
            yield Finding(
                FindingCode.PROVIDES_WITHOUT_RUN,
                node.id,
                "it provides fields and has no run, so nothing will set them",
                "give it a run, or leave `provides` to the node that sets them",
            )
        return
    is_workflow = isinstance(run, SubWorkflow)
    if is_workflow:
        yield from _check_subworkflow(node, cast("SubWorkflow[Any, Any]", node.run))
    workflow = workflow_of(node.run)
    if workflow is not None:
        if workflow.nesting >= MAX_NESTING:
            yield Finding(
                code,
                node.id,
                f"workflows are nested more than {MAX_NESTING} deep",
                "make one of them a graph of its own, with fewer levels",
            )
        return
    if is_workflow:
        yield Finding(code, node.id, "its workflow is none", "give subworkflow() a definition")
        return
    if not callable(run):
        yield Finding(
            code, node.id, f"its run is a {type(run).__name__}", "give a function of the state"
        )
        return
    if inspect.isgeneratorfunction(run) or inspect.isasyncgenfunction(run):
        yield Finding(
            code,
            node.id,
            "its run is a generator function, and what it yields nobody takes",
            "return the fields that change; tell what is on the way by ctx.emit",
        )
        return
    try:
        calling_of(run)
    except TypeError as error:
        yield Finding(
            code,
            node.id,
            f"its run cannot be called: {error}",
            "let it take (state) or (state, ctx)",
        )


def _check_subworkflow(node: AnyNode, run: SubWorkflow[Any, Any]) -> Iterator[Finding]:
    given = cast("object", run.input)
    if given is not None and (not callable(given) or inspect.iscoroutinefunction(given)):
        kind = "an asynchronous function" if callable(given) else f"a {type(given).__name__}"
        yield Finding(
            FindingCode.RUN_INVALID,
            node.id,
            f"the input of its workflow is {kind}",
            "give a function of the state that returns the workflow's state",
        )
    output = cast("object", run.output)
    if output is not None and not _is_name(output):
        yield Finding(
            FindingCode.RUN_INVALID,
            node.id,
            f"the output of its workflow is {output!r}, no name of a field",
            "name the field that the result goes to, or leave it out",
        )


def workflow_of(run: object) -> AgentWorkflowDefinition[Any, Any, Any] | None:
    """The workflow that a node runs; None when it runs a function."""
    from turnwarden.engine.graph_definition import AgentWorkflowDefinition

    inner = run
    if isinstance(run, SubWorkflow):
        inner = cast("object", cast("SubWorkflow[Any, Any]", run).workflow)
    if isinstance(inner, AgentWorkflowDefinition):
        return cast("AgentWorkflowDefinition[Any, Any, Any]", inner)
    return None


def _check_timing(node: AnyNode) -> Iterator[Finding]:
    code = FindingCode.TIMING_INVALID
    timeout = cast("object", node.timeout)
    if timeout is not None and not _is_above_zero(timeout):
        yield Finding(
            code,
            node.id,
            f"its timeout is {timeout!r}",
            "give seconds above 0, or None for no limit",
        )
    retry = cast("object", node.retry)
    if retry is not None:
        yield from (
            Finding(code, node.id, message, remedy) for message, remedy in _wrong_in_retry(retry)
        )
    if timeout is None and retry is None:
        return
    if node.run is None or workflow_of(node.run) is not None:
        what = "runs nothing" if node.run is None else "runs a workflow"
        yield Finding(
            code,
            node.id,
            f"it {what}, so its retry or timeout has nothing to hold for",
            "give them to nodes with a run of their own",
        )


def _wrong_in_retry(retry: object) -> Iterator[tuple[str, str]]:
    if not isinstance(retry, Retry):
        yield f"its retry is {retry!r}", "give a Retry, or None for one attempt"
        return
    if type(cast("object", retry.attempts)) is not int or retry.attempts < 1:
        yield f"its retry has attempts={retry.attempts!r}", "give a whole number from 1"
    for name, least in (("delay", 0.0), ("max_delay", 0.0), ("factor", 1.0)):
        value = getattr(retry, name)
        if not _is_number(value) or not value >= least:
            yield f"its retry has {name}={value!r}", f"give a number from {least:g}"
    kinds = cast("object", retry.on)
    for kind in cast("tuple[object, ...]", kinds) if isinstance(kinds, tuple) else (kinds,):
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            yield f"its retry has on={kind!r}", "give types of exceptions"


def _is_number(value: object) -> bool:
    is_bool = isinstance(value, bool)
    return not is_bool and isinstance(value, (int, float)) and math.isfinite(value)


def _is_above_zero(value: object) -> bool:
    return _is_number(value) and cast("float", value) > 0


def _check_fields(node: AnyNode, known: frozenset[str] | None) -> Iterator[Finding]:
    for attribute in ("requires", "provides"):
        fields = getattr(node, attribute)
        if not isinstance(fields, tuple) or not all(
            _is_name(name) for name in cast("tuple[object, ...]", fields)
        ):
            yield Finding(
                FindingCode.FIELDS_INVALID,
                node.id,
                f"its {attribute} is {fields!r}",
                "give a list of names of fields",
            )
        else:
            yield from _unknown_fields(node, attribute, cast("tuple[str, ...]", fields), known)


def _unknown_fields(
    node: AnyNode, where: str, fields: Iterable[str], known: frozenset[str] | None
) -> Iterator[Finding]:
    if known is None:
        return
    for name in fields:
        if name not in known:
            yield Finding(
                FindingCode.FIELD_UNKNOWN,
                node.id,
                f"its {where} names the field {name!r}, which the state does not have",
                f"add it to the state's type, or use one of {_names(sorted(known))}",
            )


# Routes


def _check_routes(node: AnyNode, graph: _Graph, known: frozenset[str] | None) -> Iterator[Finding]:
    routes = cast("object", node.routes)
    if not isinstance(routes, tuple):
        yield Finding(
            FindingCode.ROUTE_INVALID,
            node.id,
            f"its routes are {routes!r}",
            "give a list of routes",
        )
        return
    for item in cast("tuple[object, ...]", routes):
        if not isinstance(item, Route):
            yield Finding(
                FindingCode.ROUTE_INVALID,
                node.id,
                f"{item!r} among its routes is none",
                "make it with route.to, route.to_if, route.deliver, ...",
            )
    for route in _routes(node):
        yield from _check_route(node, route, graph, known)
    yield from _check_order(node, graph)


def _check_route(
    node: AnyNode, route: Route[Any], graph: _Graph, known: frozenset[str] | None
) -> Iterator[Finding]:
    if route.predicate is not None or route.kind in (RouteKind.TO_IF, RouteKind.DELIVER_IF):
        yield from _check_predicate(node, route)
    if route.kind in (RouteKind.DELIVER, RouteKind.DELIVER_IF):
        if _is_name(route.field):
            yield from _unknown_fields(
                node, f"route {route.kind.value}", [cast("str", route.field)], known
            )
        else:
            yield Finding(
                FindingCode.ROUTE_INVALID,
                node.id,
                f"its route {route.kind.value} delivers the field {route.field!r}",
                "name a field of the state",
            )
        return
    if route.kind is RouteKind.TO_IF_ERROR:
        yield from _unknown_fields(node, "route to_if_error (by its use)", ["error"], known)
    for target in (*cast("tuple[object, ...]", route.branches), cast("object", route.target)):
        if not isinstance(target, str) or target not in graph.nodes:
            yield Finding(
                FindingCode.TARGET_UNKNOWN,
                node.id,
                f"its route {route.kind.value} leads to {target!r}, and no node has this id",
                f"use one of {_names(graph.nodes)}" if graph.nodes else "define that node",
            )


def _check_predicate(node: AnyNode, route: Route[Any]) -> Iterator[Finding]:
    predicate = cast("object", route.predicate)
    to = route.target if route.field is None else route.field
    if not callable(predicate):
        yield Finding(
            FindingCode.ROUTE_INVALID,
            node.id,
            f"the predicate of its route {route.kind.value} to {to!r} is {predicate!r}",
            "give a function of the state first, then where to go",
        )
    elif is_async_function(predicate):
        yield Finding(
            FindingCode.ROUTE_INVALID,
            node.id,
            f"the predicate of its route {route.kind.value} to {to!r} is asynchronous, "
            "and a coroutine counts as true",
            "make it synchronous: let a node find out, and look at the state",
        )


def _check_order(node: AnyNode, graph: _Graph) -> Iterator[Finding]:
    routes = _routes(node)
    if not routes:
        if not _items(node.routes) and node.id not in graph.pure_branches:
            yield Finding(
                FindingCode.NO_ROUTES,
                node.id,
                "it has no routes",
                "add route.to(...) or route.deliver(...)",
            )
        return
    for position, route in enumerate(routes[:-1]):
        if not route.kind.is_conditional:
            yield Finding(
                FindingCode.ROUTE_AFTER_UNCONDITIONAL,
                node.id,
                f"its route {position + 1} ({route.kind.value}) always applies, "
                f"so the {len(routes) - position - 1} after it never do",
                "move it to the end",
            )
            break
    if routes[-1].kind.is_conditional and node.id not in graph.pure_branches:
        yield Finding(
            FindingCode.LAST_ROUTE_CONDITIONAL,
            node.id,
            f"its last route ({routes[-1].kind.value}) may not apply, and then there is none",
            "end with route.to(...) or route.deliver(...)",
        )


# Fan-outs


def _check_fan_outs(node: AnyNode, graph: _Graph) -> Iterator[Finding]:
    for route in _routes(node):
        if route.kind is not RouteKind.FAN_OUT:
            continue
        for message, remedy in _wrong_in_fan_out(route):
            yield Finding(FindingCode.ROUTE_INVALID, node.id, message, remedy)
        for branch in dict.fromkeys(_branches(route)):
            if branch in graph.nodes:
                yield from _check_branch(graph.nodes[branch], route, graph)
        yield from _check_conflicts(node, route, graph)


def _wrong_in_fan_out(route: Route[Any]) -> Iterator[tuple[str, str]]:
    if not route.branches:
        yield "its fan_out has no branches", "name the nodes that run in parallel"
    for name, count in Counter(_branches(route)).items():
        if count > 1:
            yield f"its fan_out names {name!r} {count} times", "name each branch once"
    if route.target in _branches(route):
        yield f"its fan_out joins at {route.target!r}, a branch of it", "join at another node"
    for name, reducer in route.merge.items():
        if not callable(cast("object", reducer)) or is_async_function(reducer):
            yield (
                f"its fan_out merges {name!r} by {reducer!r}",
                "give a synchronous function of two values, such as operator.add",
            )


def _check_branch(branch: AnyNode, route: Route[Any], graph: _Graph) -> Iterator[Finding]:
    def finding(message: str, remedy: str) -> Finding:
        return Finding(FindingCode.BRANCH_INVALID, branch.id, message, remedy)

    if branch.run is None:
        yield finding("it is a branch of a fan_out and has no run", "give it one, or leave it out")
    if branch.starts_round:
        yield finding(
            "it is a branch of a fan_out and starts a round: rounds come one after the other",
            "let the join or the node before start it",
        )
    if branch.id not in graph.pure_branches:
        return
    for one in _routes(branch):
        is_join = one.kind is RouteKind.TO and one.target == route.target
        if not is_join and one.kind is not RouteKind.TO_IF_ERROR:
            yield finding(
                f"it is a branch of a fan_out and has a route {one.kind.value} "
                f"to {one.target if one.field is None else one.field!r}",
                f"it goes to {route.target!r} by itself: leave it, and decide there",
            )


def _check_conflicts(node: AnyNode, route: Route[Any], graph: _Graph) -> Iterator[Finding]:
    writers: dict[str, list[str]] = {}
    for branch in dict.fromkeys(_branches(route)):
        if branch in graph.nodes:
            for name in dict.fromkeys(_only_names(_items(graph.nodes[branch].provides))):
                writers.setdefault(name, []).append(branch)
    for name, branches in writers.items():
        if len(branches) > 1 and name not in route.merge:
            yield Finding(
                FindingCode.WRITE_CONFLICT,
                node.id,
                f"the branches {_names(branches)} of its fan_out all provide {name!r}",
                f"say how they become one, merge={{{name!r}: reducer}}, or use a field for each",
            )


# The graph as a whole


def _check_cycles(graph: _Graph) -> Iterator[Finding]:
    """Every group of nodes that a run could go round in without beginning a round."""
    inner = {
        name: [to for to in targets if not graph.nodes[to].starts_round]
        for name, targets in graph.after.items()
        if not graph.nodes[name].starts_round
    }
    order = {name: position for position, name in enumerate(graph.nodes)}
    groups = [sorted(group, key=order.__getitem__) for group in _strongly_connected(inner)]
    for group in sorted(groups, key=lambda group: order[group[0]]):
        first = group[0]
        if len(group) == 1 and first not in inner[first]:
            continue
        cycle = _cycle_from(first, set(group), inner)
        yield Finding(
            FindingCode.CYCLE_WITHOUT_ROUND,
            first,
            f"a run could go round for ever without beginning a round: {' -> '.join(cycle)}",
            "set starts_round=True on one of these nodes",
        )


def _cycle_from(start: str, group: set[str], after: Mapping[str, list[str]]) -> list[str]:
    """A shortest way from a node back to itself."""
    came_from: dict[str, str] = {}
    left = [start]
    for name in left:  # grows while it is read
        for to in after[name]:
            if to == start:
                path = [start]
                while name != start:
                    path.append(name)
                    name = came_from[name]
                return [start, *reversed(path)]
            if to in group and to not in came_from:
                came_from[to] = name
                left.append(to)
    return [start]


def _strongly_connected(after: Mapping[str, list[str]]) -> Iterator[list[str]]:
    """Tarjan's algorithm (1972), with a stack of its own in place of recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_nodes: list[str] = []
    is_open: set[str] = set()
    for root in after:
        if root in index:
            continue
        work: list[tuple[str, Iterator[str]]] = []
        _open_node(root, index, low, open_nodes, is_open)
        work.append((root, iter(after[root])))
        while work:
            name, targets = work[-1]
            following = next(targets, None)
            if following is None:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[name])
                if low[name] == index[name]:
                    yield _close_group(name, open_nodes, is_open)
            elif following not in index:
                _open_node(following, index, low, open_nodes, is_open)
                work.append((following, iter(after[following])))
            elif following in is_open:
                low[name] = min(low[name], index[following])


def _open_node(
    name: str, index: dict[str, int], low: dict[str, int], stack: list[str], is_open: set[str]
) -> None:
    index[name] = low[name] = len(index)
    stack.append(name)
    is_open.add(name)


def _close_group(name: str, stack: list[str], is_open: set[str]) -> list[str]:
    group: list[str] = []
    while not group or group[-1] != name:
        group.append(stack.pop())
        is_open.discard(group[-1])
    return group


def _check_reachability(graph: _Graph) -> Iterator[Finding]:
    if graph.entry is None:
        return
    reachable = graph.reachable([graph.entry])
    for name in graph.nodes:
        if name not in reachable:
            yield Finding(
                FindingCode.NODE_UNREACHABLE,
                name,
                f"no way leads to it from the entry {graph.entry!r}",
                "add a route to it, or remove it",
            )


def _check_requires(graph: _Graph) -> Iterator[Finding]:
    """Fields that a node requires and no node before it provides: the state must hold them."""
    providers: dict[str, list[str]] = {}
    for node in graph.nodes.values():
        for name in _only_names(_items(node.provides)):
            providers.setdefault(name, []).append(node.id)
        for route in _routes(node):
            if route.kind is RouteKind.TO_IF_ERROR:
                providers.setdefault("error", []).append(node.id)
            for name in route.merge:
                providers.setdefault(name, []).append(node.id)
    required = {
        name: _only_names(_items(node.requires))
        for name, node in graph.nodes.items()
        if name != graph.entry  # what the entry requires is what a run is given
    }
    bits = {field: 1 << bit for bit, field in enumerate(dict.fromkeys(_chained(required)))}
    given = dict.fromkeys(graph.nodes, 0)
    for field, bit in bits.items():
        for name in providers.get(field, ()):
            given[name] |= bit
    provided = _provided_before(graph, given)
    for name, fields in required.items():
        for field in fields:
            if not provided[name] & bits[field]:
                yield Finding(
                    FindingCode.REQUIRES_UNPROVIDED,
                    name,
                    f"it requires {field!r}, which no node before it provides",
                    "let one provide it, or see that every run begins with it",
                )


def _chained(fields: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    return itertools.chain.from_iterable(fields.values())


def _provided_before(graph: _Graph, given: Mapping[str, int]) -> dict[str, int]:
    """What the nodes on some way to each node provide, as sets of bits.

    One pass over the groups of nodes that lead to each other, from the first to the last.
    """
    provided = dict.fromkeys(graph.nodes, 0)
    # Tarjan's algorithm ends a group when all that it leads to are ended.
    groups = list(_strongly_connected({name: list(to) for name, to in graph.after.items()}))
    for group in reversed(groups):
        if len(group) > 1 or group[0] in graph.after[group[0]]:
            whole = 0
            for name in group:
                whole |= provided[name] | given[name]
            provided.update(dict.fromkeys(group, whole))
        for name in group:
            passed_on = provided[name] | given[name]
            for to in graph.after[name]:
                provided[to] |= passed_on
    return provided


def _check_delivery(graph: _Graph) -> Iterator[Finding]:
    """Nodes from which no result can be come to: a run that is there ends by its limit."""
    delivering = [
        name
        for name, node in graph.nodes.items()
        if any(route.kind in (RouteKind.DELIVER, RouteKind.DELIVER_IF) for route in _routes(node))
    ]
    able = _reach(delivering, graph.before())
    for name in graph.nodes:
        if name not in able:
            yield Finding(
                FindingCode.NO_DELIVERY,
                name,
                "no way leads from it to a route that delivers",
                "add route.deliver(...), here or further on",
            )
