"""Definitions: every finding, what they say of themselves, random graphs."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import random
from collections.abc import Callable
from typing import Any, TypedDict

import pytest
from graph_models import GOOD_GRAPHS, AnyNode, broken, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from turnwarden.engine import (
    AgentWorkflowDefinition,
    FindingCode,
    Node,
    Retry,
    Severity,
    WorkflowDefinitionError,
    define_workflow,
    fan_out,
    route,
    subworkflow,
)

Workflow = AgentWorkflowDefinition[Any, Any, Any]


def errors_of(nodes: Any, **options: Any) -> list[tuple[str, str | None]]:
    try:
        define_workflow(id=options.pop("id", "w"), nodes=nodes, **options)
    except WorkflowDefinitionError as error:
        return [(one.code.value, one.node_id) for one in error.findings]
    return []


def warnings_of(nodes: Any, **options: Any) -> list[tuple[str, str | None]]:
    workflow = define_workflow(id="w", nodes=nodes, **options)
    assert all(one.severity is Severity.WARNING for one in workflow.warnings)
    return [(one.code.value, one.node_id) for one in workflow.warnings]


def only(**options: Any) -> list[AnyNode]:
    return [Node(**{"id": "a", "starts_round": True, "routes": [route.deliver("x")], **options})]


def async_call(*_: Any) -> Any: ...


async def later(*_: Any) -> Any: ...


class State(TypedDict, total=False):
    x: int
    y: int


# Findings


@pytest.mark.parametrize(
    ("nodes", "options", "expected"),
    [
        (only(), {"id": ""}, ("workflow_invalid", None)),
        (only(), {"id": None}, ("workflow_invalid", None)),
        (only(), {"revision": ""}, ("workflow_invalid", None)),
        (only(), {"state_type": int}, ("workflow_invalid", None)),
        (only(), {"chain_source": object()}, ("workflow_invalid", None)),
        (only(), {"is_result": True}, ("is_result_invalid", None)),
        (only(), {"is_result": later}, ("is_result_invalid", None)),
        (only(), {"is_result": functools.partial(later, 1)}, ("is_result_invalid", None)),
        ([], {}, ("no_nodes", None)),
        ([*only(), "b"], {}, ("node_invalid", None)),
        (only(id=""), {}, ("id_empty", "")),
        (only(id="  "), {}, ("id_empty", "  ")),
        (only(id=None), {}, ("id_empty", None)),
        (only(id=["a"]), {}, ("id_empty", None)),
        (only() + only(), {}, ("id_duplicate", "a")),
        (only(description=b"x"), {}, ("description_invalid", "a")),
        (only(description=None), {}, ("description_invalid", "a")),
        (only(), {"entry_node_id": "b"}, ("entry_unknown", None)),
        (only(), {"entry_node_id": 5}, ("entry_unknown", None)),
        (only(starts_round=False), {}, ("entry_without_round", "a")),
        (only(routes=[]), {}, ("no_routes", "a")),
        (only(routes=None), {}, ("route_invalid", "a")),
        (only(routes="to"), {}, ("route_invalid", "a")),
        (only(routes=["to"]), {}, ("route_invalid", "a")),
        (only(routes=[route.to("b")]), {}, ("target_unknown", "a")),
        (only(routes=[route.to(["b"])]), {}, ("target_unknown", "a")),  # type: ignore[arg-type]
        (only(routes=[route.to(None)]), {}, ("target_unknown", "a")),  # type: ignore[arg-type]
        (only(routes=[route.deliver("")]), {}, ("route_invalid", "a")),
        (only(routes=[route.deliver(None)]), {}, ("route_invalid", "a")),  # type: ignore[arg-type]
        (only(routes=[route.to_if("a", bool), route.deliver("x")]), {}, ("route_invalid", "a")),  # type: ignore[arg-type]
        (only(routes=[route.to_if(later, "a"), route.deliver("x")]), {}, ("route_invalid", "a")),
        (only(routes=[route.to_if(None, "a"), route.deliver("x")]), {}, ("route_invalid", "a")),  # type: ignore[arg-type]
        (only(routes=[route.deliver_if(later, "x")]), {}, ("last_route_conditional", "a")),
        (only(run=5), {}, ("run_invalid", "a")),
        (only(run=lambda: None), {}, ("run_invalid", "a")),
        (only(run=lambda state: (yield)), {}, ("run_invalid", "a")),
        (only(run=lambda a, b, c: None), {}, ("run_invalid", "a")),
        (only(run=lambda state, *, other: None), {}, ("run_invalid", "a")),
        (only(run=subworkflow(5)), {}, ("run_invalid", "a")),  # type: ignore[arg-type]
        (only(requires="x"), {}, ("fields_invalid", "a")),
        (only(provides=[5]), {}, ("fields_invalid", "a")),
        (only(requires=[["x"]]), {}, ("fields_invalid", "a")),
        (only(requires=["z"]), {"state_type": State}, ("field_unknown", "a")),
        (only(run=later, provides=["z"]), {"state_type": State}, ("field_unknown", "a")),
        (only(routes=[route.deliver("z")]), {"state_type": State}, ("field_unknown", "a")),
        (only(run=later, timeout=0), {}, ("timing_invalid", "a")),
        (only(run=later, timeout=-1.0), {}, ("timing_invalid", "a")),
        (only(run=later, timeout=float("nan")), {}, ("timing_invalid", "a")),
        (only(run=later, timeout="5"), {}, ("timing_invalid", "a")),
        (only(run=later, retry=3), {}, ("timing_invalid", "a")),
        (only(run=later, retry=Retry(attempts=0)), {}, ("timing_invalid", "a")),
        (only(run=later, retry=Retry(delay=-1)), {}, ("timing_invalid", "a")),
        (only(run=later, retry=Retry(factor=0.5)), {}, ("timing_invalid", "a")),
        (only(run=later, retry=Retry(on=KeyboardInterrupt)), {}, ("timing_invalid", "a")),  # type: ignore[arg-type]
        (only(retry=Retry()), {}, ("timing_invalid", "a")),
    ],
)  # fmt: skip
def test_each_error_is_found_with_its_node(
    nodes: Any, options: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    assert expected in errors_of(nodes, **options)


def test_error_routes_need_a_field_for_the_error() -> None:
    nodes = [
        Node(id="a", starts_round=True, routes=[route.to_if_error("b"), route.deliver("x")]),
        Node(id="b", routes=[route.deliver("x")]),
    ]
    assert errors_of(nodes, state_type=State) == [("field_unknown", "a")]
    assert errors_of(nodes) == []


def test_requires_is_judged_as_by_walking_every_way() -> None:
    chooser = random.Random(8)
    fields = "uvwxyz"
    for _ in range(200):
        count = chooser.randint(1, 9)
        names = [f"n{n}" for n in range(count)]
        after = {name: chooser.sample(names, chooser.randint(0, min(3, count))) for name in names}
        for name, following in itertools.pairwise(names):
            after[name].append(following)
        provides = {name: chooser.sample(fields, chooser.randint(0, 2)) for name in names}
        requires = {name: chooser.sample(fields, chooser.randint(0, 2)) for name in names}
        nodes = [
            Node(
                id=name, starts_round=True, run=later,
                provides=provides[name], requires=requires[name],
                routes=[*(route.to_if(bool, to) for to in after[name]), route.deliver("u")],
            )
            for name in names
        ]  # fmt: skip
        expected: list[tuple[str, str]] = []
        for name in names[1:]:
            before: set[str] = set()
            while True:
                more = {n for n in names if before.union([name]).intersection(after[n])} - before
                if not more:
                    break
                before |= more
            given = {field for one in before for field in provides[one]}
            expected += [
                ("requires_unprovided", name) for field in requires[name] if field not in given
            ]
        found = [one for one in warnings_of(nodes) if one[0] == "requires_unprovided"]
        assert found == expected


def test_the_input_and_output_of_a_workflow_in_a_node_are_checked() -> None:
    inner = define_workflow(
        id="inner", nodes=[Node(id="a", starts_round=True, routes=[route.deliver("x")])]
    )

    async def slow(state: object) -> object:
        return state

    for wrong in ({"input": 5}, {"input": slow}, {"output": 5}, {"output": ""}, {"output": []}):
        run = subworkflow(inner, **wrong)  # pyright: ignore[reportArgumentType]
        node = Node(id="n", starts_round=True, run=run, routes=[route.deliver("x")])
        assert errors_of([node]) == [("run_invalid", "n")], wrong


def test_a_requires_that_no_path_provides_is_a_warning() -> None:
    nodes = [
        Node(id="a", starts_round=True, run=later, requires=["given"], provides=["x"],
             routes=[route.to_if(bool, "b"), route.to("c")]),
        Node(id="b", requires=["x", "y"], routes=[route.deliver("x")]),
        Node(id="c", run=later, provides=["y"], routes=[route.deliver("y")]),
    ]  # fmt: skip
    assert warnings_of(nodes) == [("requires_unprovided", "b")]


def test_an_error_route_provides_the_error() -> None:
    nodes = [
        Node(id="a", starts_round=True, routes=[route.to_if_error("b"), route.to("c")]),
        Node(id="b", requires=["error"], routes=[route.deliver("error")]),
        Node(id="c", routes=[route.deliver("x")]),
    ]
    assert warnings_of(nodes) == []


def test_a_node_with_provides_and_no_run_is_a_warning() -> None:
    assert warnings_of(only(provides=["x"])) == [("provides_without_run", "a")]


def test_a_node_from_which_nothing_is_delivered_is_a_warning() -> None:
    nodes = [
        Node(id="a", starts_round=True, routes=[route.to_if(bool, "b"), route.deliver("x")]),
        Node(id="b", starts_round=True, routes=[route.to("b")]),
    ]
    assert warnings_of(nodes) == [("no_delivery", "b")]


def test_warnings_are_told_with_the_definition_too() -> None:
    described = define_workflow(id="w", nodes=only(provides=["x"])).describe()
    (warning,) = described["warnings"]
    assert warning.keys() == {"severity", "code", "node_id", "message", "remedy"}
    assert (warning["severity"], warning["node_id"]) == ("warning", "a")


def test_the_error_pickles_and_keeps_its_findings() -> None:
    import pickle

    with pytest.raises(WorkflowDefinitionError) as caught:
        define_workflow(id="w", nodes=only(routes=[]))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.findings) == (str(caught.value), caught.value.findings)
    assert isinstance(again, ValueError)


def test_large_graphs_are_validated_without_recursion() -> None:
    count = 20_000
    nodes = [
        Node(id=f"n{n}", starts_round=n == 0, requires=["x"] if n else (), run=later,
             provides=["x"], routes=[route.to(f"n{n + 1}")])
        for n in range(count)
    ]  # fmt: skip
    nodes.append(Node(id=f"n{count}", routes=[route.to("n1")]))
    assert [code for code, _ in errors_of(nodes)] == ["cycle_without_round"]
    nodes[-1] = Node(id=f"n{count}", routes=[route.deliver("x")])
    assert warnings_of(nodes) == []


# Plain data


def sample() -> Workflow:
    def is_done(state: Any) -> bool:
        return bool(state)

    def is_text(value: object) -> bool:
        return isinstance(value, str)

    child = define_workflow(id="child", revision="c1", nodes=only())
    return define_workflow(
        id="sample",
        is_result=is_text,
        nodes=[
            Node(id="a", description='Say "hi" <b>|x|</b>', starts_round=True, run=later,
                 provides=["x"], retry=Retry(attempts=2), timeout=1.5,
                 routes=[route.to_if(is_done, "b"), route.to_if_error("c"), route.to("d")]),
            Node(id="b", run=child, routes=[route.deliver_if(is_done, "x"), route.to("a")]),
            Node(id="c", requires=["error"], routes=[route.deliver("error")]),
            Node(id="d", routes=[fan_out(["e", "f"], join="c", merge={"n": max})]),
            Node(id="e", run=later),
            Node(id="f", run=subworkflow(child, input=is_done, output="n")),
        ],
    )  # fmt: skip


def test_describe_is_plain_stable_data() -> None:
    described = sample().describe()
    assert json.loads(json.dumps(described)) == described
    assert described == sample().describe()
    assert described["entry_node_id"] == "a"
    assert described["is_result"] == "is_text"
    assert [node["id"] for node in described["nodes"]] == list("abcdef")
    assert described["nodes"][0] == {
        "id": "a",
        "description": 'Say "hi" <b>|x|</b>',
        "starts_round": True,
        "run": "later",
        "requires": [],
        "provides": ["x"],
        "retry": {
            "attempts": 2, "delay": 0.5, "factor": 2.0, "max_delay": 30.0, "on": ["Exception"],
        },
        "timeout": 1.5,
        "routes": [
            {"kind": "to_if", "predicate": "is_done", "target": "b"},
            {"kind": "to_if_error", "target": "c"},
            {"kind": "to", "target": "d"},
        ],
    }  # fmt: skip
    assert described["nodes"][3]["routes"] == [
        {"kind": "fan_out", "branches": ["e", "f"], "join": "c", "merge": {"n": "max"}}
    ]
    assert described["nodes"][5]["run"] == {
        "workflow": "child", "revision": "c1", "input": "is_done", "output": "n",
    }  # fmt: skip


def test_describe_cannot_be_used_to_change_the_workflow() -> None:
    workflow = sample()
    workflow.describe()["nodes"].clear()
    assert workflow.describe() == sample().describe()


def test_to_mermaid_draws_every_node_and_route() -> None:
    assert sample().to_mermaid().splitlines() == [
        "flowchart TD",
        "    start((start))",
        '    n0[["a: Say #quot;hi#quot; #lt;b#gt;#124;x#124;#lt;/b#gt;"]]',
        '    n1["b"]',
        '    n2["c"]',
        '    n3["d"]',
        '    n4["e"]',
        '    n5["f"]',
        '    r0(["x"])',
        '    r1(["error"])',
        "    start --> n0",
        '    n0 -->|"if is_done"| n1',
        '    n0 -->|"on error"| n2',
        "    n0 --> n3",
        '    n1 -->|"if is_done"| r0',
        "    n1 --> n0",
        "    n2 --> r1",
        "    n3 ==> n4",
        "    n4 -.-> n2",
        "    n3 ==> n5",
        "    n5 -.-> n2",
    ]


# Random graphs


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_every_good_graph_is_accepted(seed: int) -> None:
    nodes = random_graph(random.Random(seed))
    workflow = define_workflow(id="w", nodes=nodes)
    assert [node.id for node in workflow.nodes] == [node.id for node in nodes]
    assert {one.code for one in workflow.warnings} <= {
        FindingCode.NO_DELIVERY,
        FindingCode.REQUIRES_UNPROVIDED,
    }


@pytest.mark.parametrize("breakage", sorted(broken))
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_every_way_to_break_a_graph_is_found_at_its_node(breakage: str, seed: int) -> None:
    source = random.Random(seed)
    nodes, expected = broken[breakage](source, random_graph(source))
    assert set(expected) <= set(errors_of(nodes))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_what_is_broken_in_several_ways_is_found_all_at_once(seed: int) -> None:
    source = random.Random(seed)
    nodes, expected = random_graph(source), set[tuple[str, str | None]]()
    for breakage in source.sample(sorted(GOOD_GRAPHS), 3):
        nodes, more = broken[breakage](source, nodes)
        expected |= set(more)
    assert expected <= set(errors_of(nodes))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_cycles_and_reachability_are_those_of_a_naive_search(seed: int) -> None:
    nodes = scrambled(random.Random(seed))
    found = errors_of(nodes)
    assert {node for code, node in found if code == "node_unreachable"} == naive_unreachable(nodes)
    on_cycles = naive_on_cycles(nodes)
    reported = {node for code, node in found if code == "cycle_without_round"}
    assert reported <= on_cycles
    assert bool(reported) == bool(on_cycles)


def scrambled(source: random.Random) -> list[AnyNode]:
    """A graph whose routes lead anywhere and whose rounds begin anywhere."""
    nodes = random_graph(source, fan_outs=False)
    names = [node.id for node in nodes]

    def elsewhere(one: Any) -> Any:
        return one if one.target is None else dataclasses.replace(one, target=source.choice(names))

    return [
        dataclasses.replace(
            node,
            starts_round=position == 0 or source.random() < 0.3,
            routes=tuple(map(elsewhere, node.routes)),
        )
        for position, node in enumerate(nodes)
    ]


def targets_of(node: AnyNode) -> set[str]:
    return {one.target for one in node.routes if one.target is not None}


def naive_reach(nodes: list[AnyNode], start: str, allowed: Callable[[AnyNode], bool]) -> set[str]:
    """Grow the set of nodes that are come to until it no longer grows."""
    by_id = {node.id: node for node in nodes}
    reached = {start}
    while True:
        more = {
            to
            for name in reached
            for to in targets_of(by_id[name])
            if allowed(by_id[to]) and to not in reached
        }
        if not more:
            return reached
        reached |= more


def naive_unreachable(nodes: list[AnyNode]) -> set[str | None]:
    reached = naive_reach(nodes, nodes[0].id, lambda node: True)
    return {node.id for node in nodes} - reached


def naive_on_cycles(nodes: list[AnyNode]) -> set[str | None]:
    by_id = {node.id: node for node in nodes}

    def is_inner(node: AnyNode) -> bool:
        return not node.starts_round

    return {
        node.id
        for node in nodes
        if is_inner(node)
        and any(
            node.id in naive_reach(nodes, to, is_inner)
            for to in targets_of(node)
            if is_inner(by_id[to])
        )
    }
