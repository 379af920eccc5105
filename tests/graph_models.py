"""Random graphs, good and broken in each way, and a naive interpreter of the contract.

What nodes and predicates do is a plain program in their descriptions, so that the interpreter reads
it and shares no code with the engine.
"""

from __future__ import annotations

import dataclasses
import json
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from turnwarden.engine import Node, RouteKind, WorkflowNode, fan_out, route

AnyNode = WorkflowNode[Any, Any]
Finding = tuple[str, str | None]

FIELDS = ["a", "b", "c", "d"]


# What nodes do, as data


def program(source: random.Random) -> dict[str, Any]:
    """What a node does each time: how its update looks, or that it raises."""
    return {
        "sets": {name: source.choice([None, 0, 1, 2]) for name in FIELDS if source.random() < 0.3},
        "counts": source.choice(FIELDS) if source.random() < 0.5 else None,
        "fails": source.choice(["never", "never", "never", "raises", "reports", "by count"]),
        "returns_none": source.random() < 0.1,
        "breaks": source.random() < 0.02,
    }


def act(what: dict[str, Any], state: dict[str, Any], visits: int) -> Any:
    """Do what a program says."""
    fails = what["fails"]
    if fails == "raises" or (fails == "by count" and visits % 2):
        raise ValueError(f"visit {visits}")
    if what["breaks"]:
        return ["no mapping"]
    if what["returns_none"]:
        return None
    update = dict(what["sets"])
    if what["counts"]:
        update[what["counts"]] = (state.get(what["counts"]) or 0) + 1
    if fails == "reports":
        update["error"] = f"reported at {visits}"
    return update


def test_of(condition: dict[str, Any]) -> Callable[[dict[str, Any]], bool]:
    def predicate(state: dict[str, Any]) -> bool:
        return holds(condition, state)

    predicate.__name__ = json.dumps(condition)
    return predicate


def holds(condition: dict[str, Any], state: dict[str, Any]) -> bool:
    value = state.get(condition["field"]) or 0
    return value % condition["modulo"] == condition["rest"]


def condition_of(source: random.Random) -> dict[str, Any]:
    return {"field": source.choice(FIELDS), "modulo": source.choice([2, 3]), "rest": 1}


# Good graphs


def random_graph(source: random.Random, *, fan_outs: bool = True) -> list[AnyNode]:
    """A graph that is right: every node is come to, and only rounds go back."""
    count = source.randint(1, 8)
    names = [f"n{position}" for position in range(count)]
    rounds = [position == 0 or source.random() < 0.4 for position in range(count)]
    nodes: list[AnyNode] = []
    for position, name in enumerate(names):
        forward = names[position + 1] if position + 1 < count else None
        back = [names[one] for one in range(position + 1) if rounds[one]]
        ahead = names[position + 1 :]
        routes = _conditional_routes(source, ahead + back)
        branches: list[AnyNode] = []
        if fan_outs and forward is not None and source.random() < 0.3:
            branches = _branches(source, name)
            merge = {one: _pick_last for one in [*FIELDS, "error"] if source.random() < 0.9}
            routes.append(fan_out([one.id for one in branches], join=forward, merge=merge))
        elif forward is not None:
            routes.append(route.to(forward))
        else:
            routes.append(route.deliver(source.choice(FIELDS)))
        nodes.append(
            _node(source, name, routes, starts_round=rounds[position], runs=source.random() < 0.8)
        )
        nodes += branches
    return nodes


def _pick_last(first: Any, second: Any) -> Any:
    """A reducer that tells in which order it was called."""
    return second


def _conditional_routes(source: random.Random, targets: list[str]) -> list[Any]:
    routes: list[Any] = []
    for _ in range(source.randint(0, 2)):
        kind = source.choice(["to_if", "to_if_error", "deliver_if"])
        if kind == "to_if":
            routes.append(route.to_if(test_of(condition_of(source)), source.choice(targets)))
        elif kind == "to_if_error":
            routes.append(route.to_if_error(source.choice(targets)))
        else:
            routes.append(route.deliver_if(test_of(condition_of(source)), source.choice(FIELDS)))
    return routes


def _branches(source: random.Random, name: str) -> list[AnyNode]:
    branches: list[AnyNode] = []
    for position in range(source.randint(1, 3)):
        routes = [route.to_if_error("n0")] if source.random() < 0.4 else []
        branches.append(_node(source, f"{name}.{position}", routes, starts_round=False, runs=True))
    return [dataclasses.replace(one, provides=()) for one in branches]


def _node(
    source: random.Random, name: str, routes: list[Any], *, starts_round: bool, runs: bool
) -> AnyNode:
    what = program(source)
    return Node(
        id=name,
        description=json.dumps(what) if runs else "",
        starts_round=starts_round,
        run=runner_of(what) if runs else None,
        requires=[source.choice(FIELDS)] if source.random() < 0.05 else [],
        provides=[source.choice(FIELDS)] if runs and source.random() < 0.1 else [],
        routes=routes,
    )


def runner_of(what: dict[str, Any]) -> Callable[..., Any]:
    """A function for a node; how often it ran is in the state that it counts by."""

    def run(state: dict[str, Any], ctx: Any) -> Any:
        visits = int(ctx.idempotency_key.split(":")[1])
        return act(what, state, visits)

    return run


# Broken graphs: each gives the nodes, and what must be found


def _changed(nodes: list[AnyNode], position: int, **values: Any) -> list[AnyNode]:
    return [
        dataclasses.replace(node, **values) if at == position else node
        for at, node in enumerate(nodes)
    ]


def _main(source: random.Random, nodes: list[AnyNode]) -> int:
    """The place of a node that is no branch."""
    return source.choice([at for at, node in enumerate(nodes) if "." not in node.id])


def _duplicate(source: random.Random, nodes: list[AnyNode]) -> tuple[list[AnyNode], list[Finding]]:
    twin = source.choice([node for node in nodes if node.id.strip()])
    return [*nodes, twin], [("id_duplicate", twin.id)]


def _empty_id(source: random.Random, nodes: list[AnyNode]) -> tuple[list[AnyNode], list[Finding]]:
    name = source.choice(["", " ", "\t"])
    return [*nodes, Node(id=name, routes=[route.deliver("a")])], [("id_empty", name)]


def _unknown_target(
    source: random.Random, nodes: list[AnyNode]
) -> tuple[list[AnyNode], list[Finding]]:
    at = _main(source, nodes)
    node = nodes[at]
    routes = (route.to_if(test_of(condition_of(source)), "nowhere"), *node.routes)
    return _changed(nodes, at, routes=routes), [("target_unknown", node.id)]


def _unreachable(
    source: random.Random, nodes: list[AnyNode]
) -> tuple[list[AnyNode], list[Finding]]:
    island = Node(id="island", starts_round=True, routes=[route.to(nodes[0].id)])
    return [*nodes, island], [("node_unreachable", "island")]


def _no_routes(source: random.Random, nodes: list[AnyNode]) -> tuple[list[AnyNode], list[Finding]]:
    at = _main(source, nodes)
    return _changed(nodes, at, routes=()), [("no_routes", nodes[at].id)]


def _entry_without_round(
    source: random.Random, nodes: list[AnyNode]
) -> tuple[list[AnyNode], list[Finding]]:
    return _changed(nodes, 0, starts_round=False), [("entry_without_round", nodes[0].id)]


def _cycle(source: random.Random, nodes: list[AnyNode]) -> tuple[list[AnyNode], list[Finding]]:
    at = _main(source, nodes)
    node = nodes[at]
    ring = [f"ring{position}" for position in range(source.randint(1, 4))]
    routes = (route.to_if(test_of(condition_of(source)), ring[0]), *node.routes)
    members = [
        Node(id=name, routes=[route.to(ring[(position + 1) % len(ring)])])
        for position, name in enumerate(ring)
    ]
    return [*_changed(nodes, at, routes=routes), *members], [("cycle_without_round", ring[0])]


def _conditional_end(
    source: random.Random, nodes: list[AnyNode]
) -> tuple[list[AnyNode], list[Finding]]:
    at = _main(source, nodes)
    node = nodes[at]
    kept = [one for one in node.routes if one.kind.is_conditional]
    routes = (*kept, route.to_if(test_of(condition_of(source)), nodes[0].id))
    return _changed(nodes, at, routes=routes), [("last_route_conditional", node.id)]


def _after_unconditional(
    source: random.Random, nodes: list[AnyNode]
) -> tuple[list[AnyNode], list[Finding]]:
    at = _main(source, nodes)
    node = nodes[at]
    routes = (*node.routes, route.deliver("a"))
    return _changed(nodes, at, routes=routes), [("route_after_unconditional", node.id)]


def _conflict(source: random.Random, nodes: list[AnyNode]) -> tuple[list[AnyNode], list[Finding]]:
    at = _main(source, nodes)
    node = nodes[at]
    kept = [one for one in node.routes if one.kind.is_conditional]
    split = fan_out(["left", "right"], join=nodes[0].id, merge={"b": operator.add})
    branches = [
        Node(id=name, run=lambda state: None, provides=["a", "b"]) for name in ("left", "right")
    ]
    return (
        [*_changed(nodes, at, routes=(*kept, split)), *branches],
        [("write_conflict", node.id)],
    )


def _branch_with_round(
    source: random.Random, nodes: list[AnyNode]
) -> tuple[list[AnyNode], list[Finding]]:
    at = _main(source, nodes)
    kept = [one for one in nodes[at].routes if one.kind.is_conditional]
    split = fan_out(["branch"], join=nodes[0].id)
    branch = Node(id="branch", starts_round=True, run=lambda state: None)
    return [*_changed(nodes, at, routes=(*kept, split)), branch], [("branch_invalid", "branch")]


def _bad_run(source: random.Random, nodes: list[AnyNode]) -> tuple[list[AnyNode], list[Finding]]:
    at = source.randrange(len(nodes))
    run = source.choice([5, "run", lambda: None, lambda a, b, c: None])
    return _changed(nodes, at, run=run), [("run_invalid", nodes[at].id)]


broken: dict[str, Callable[[random.Random, list[AnyNode]], tuple[list[AnyNode], list[Finding]]]] = {
    "duplicate": _duplicate,
    "empty id": _empty_id,
    "unknown target": _unknown_target,
    "unreachable": _unreachable,
    "no routes": _no_routes,
    "entry without round": _entry_without_round,
    "cycle": _cycle,
    "conditional end": _conditional_end,
    "after unconditional": _after_unconditional,
    "conflict": _conflict,
    "branch with round": _branch_with_round,
    "bad run": _bad_run,
}

GOOD_GRAPHS = {"duplicate", "empty id", "unknown target", "unreachable", "entry without round"}
"""Ways to break a graph that leave each other's findings as they are."""


# The interpreter: the contract read line by line, with no thought of speed


@dataclass
class Ended:
    """How a run ended, and what it went through."""

    how: str
    value: Any = None
    node: str | None = None
    field: str | None = None
    state: dict[str, Any] = dataclasses.field(default_factory=dict)
    path: list[str] = dataclasses.field(default_factory=list)
    rounds: int = 0


class _End(Exception):  # noqa: N818 - it carries the end of a run to its top
    def __init__(self, how: str, node: str, field: str | None = None, value: Any = None) -> None:
        super().__init__(how)
        self.how, self.node, self.field, self.value = how, node, field, value


class Interpreter:
    """Runs a graph of `random_graph`."""

    def __init__(self, nodes: list[AnyNode], max_rounds: int) -> None:
        self.nodes = {node.id: node for node in nodes}
        self.entry = nodes[0].id
        self.max_rounds = max_rounds
        self.rounds = 0
        self.steps = 0
        self.path: list[str] = []
        self.state: dict[str, Any] = {}

    def run(self, state: dict[str, Any]) -> Ended:
        self.state = dict(state)
        name = self.entry
        try:
            while True:
                name = self.visit(self.nodes[name])
        except _End as end:
            return Ended(
                end.how, end.value, end.node, end.field, self.state, self.path, self.rounds
            )

    def visit(self, node: AnyNode) -> str:
        """Enter a node, run it, and say which comes next."""
        if node.starts_round:
            if self.rounds == self.max_rounds:
                raise _End("rounds", node.id)
            self.rounds += 1
        for name in node.requires:
            if self.state.get(name) is None:
                raise _End("contract", node.id, name)
        raised: str | None = None
        erred = False
        if node.run is None:
            erred = self.state.get("error") is not None
        else:
            update, raised = self.call(node)
            erred = raised is not None or update.get("error") is not None
            self.state.update(update)
        if raised is not None:
            if not any(one.kind is RouteKind.TO_IF_ERROR for one in node.routes):
                raise _End("node", node.id)
            self.state["error"] = raised
        if node.run is not None and not erred:
            for name in node.provides:
                if self.state.get(name) is None:
                    raise _End("contract", node.id, name)
        for one in node.routes:
            if self.applies(one, erred):
                return self.follow(node, one)
        raise AssertionError("no route applies")

    def call(self, node: AnyNode) -> tuple[dict[str, Any], str | None]:
        """What a node returned, or what it raised."""
        visits = self.steps
        self.steps += 1
        self.path.append(node.id)
        try:
            update = act(json.loads(node.description), dict(self.state), visits)
        except ValueError as error:
            return {}, f"ValueError: {error}"
        if update is None:
            return {}, None
        if not isinstance(update, dict):
            raise _End("contract", node.id)
        return update, None

    def applies(self, one: Any, erred: bool) -> bool:
        if one.kind in (RouteKind.TO_IF, RouteKind.DELIVER_IF):
            return holds(json.loads(one.predicate.__name__), self.state)
        return erred if one.kind is RouteKind.TO_IF_ERROR else True

    def follow(self, node: AnyNode, one: Any) -> str:
        if one.kind in (RouteKind.DELIVER, RouteKind.DELIVER_IF):
            if self.state.get(one.field) is None:
                raise _End("contract", node.id, one.field)
            raise _End("delivered", node.id, one.field, self.state[one.field])
        if one.kind is RouteKind.FAN_OUT:
            return self.split(node, one)
        return one.target

    def split(self, node: AnyNode, one: Any) -> str:
        """Run the branches one after the other, each on the state as it is now."""
        for name in one.branches:
            for needed in self.nodes[name].requires:
                if self.state.get(needed) is None:
                    raise _End("contract", name, needed)
        calls = []
        broken_branch: _End | None = None
        for name in one.branches:
            try:
                calls.append((self.nodes[name], *self.call(self.nodes[name])))
            except _End as end:  # all branches run before any of them is judged
                broken_branch = broken_branch or end
        if broken_branch is not None:
            raise broken_branch
        merged: dict[str, Any] = {}
        for _, update, _ in calls:
            for name, value in update.items():
                if name in merged:
                    if name not in one.merge:
                        raise _End("contract", node.id, name)
                    merged[name] = one.merge[name](merged[name], value)
                else:
                    merged[name] = value
        self.state.update(merged)
        following = None
        for branch, update, raised in calls:
            has_route = bool(branch.routes)
            if raised is not None and not has_route:
                raise _End("node", branch.id)
            erred = raised is not None or update.get("error") is not None
            if erred and has_route and following is None:
                following = branch.routes[0].target
                if raised is not None:
                    self.state["error"] = raised
        return following or one.target
