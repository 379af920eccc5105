"""Parallel nodes (`fan_out`), and workflows as nodes."""

from __future__ import annotations

import asyncio
import operator
from typing import Any

import pytest
from turnwarden.engine import (
    AgentCoreEngine,
    AgentWorkflowDefinition,
    ContractError,
    Node,
    NodeContext,
    NodeError,
    Retry,
    RoundLimitError,
    WorkflowDefinitionError,
    define_workflow,
    fan_out,
    route,
    subworkflow,
)

Workflow = AgentWorkflowDefinition[Any, Any, Any]


def split(branches: list[Any], merge: Any = None, deliver: str = "out", **options: Any) -> Workflow:
    names = [branch.id for branch in branches if not branch.id.startswith("on_")]
    return define_workflow(
        id="split",
        nodes=[
            Node(id="start", starts_round=True, routes=[fan_out(names, join="end", merge=merge)]),
            *branches,
            Node(id="end", routes=[route.deliver(deliver)]),
        ],
        **options,
    )


def writing(name: str, update: Any, **options: Any) -> Any:
    return Node(id=name, run=lambda state: update, **options)


def codes(error: pytest.ExceptionInfo[WorkflowDefinitionError]) -> list[tuple[str, str | None]]:
    return [(one.code.value, one.node_id) for one in error.value.findings]


# fan_out


def test_branches_really_run_at_the_same_time() -> None:
    async def main() -> Any:
        barrier = asyncio.Barrier(3)

        async def meet(state: Any, ctx: NodeContext[Any]) -> dict[str, Any]:
            await barrier.wait()
            return {"out": [ctx.node_id]}

        branches = [Node(id=name, run=meet) for name in "abc"]
        engine = AgentCoreEngine(split(branches, {"out": operator.add}))
        async with asyncio.timeout(30):
            return await engine.run({})

    assert asyncio.run(main()) == ["a", "b", "c"]


def test_updates_are_merged_in_the_order_of_the_branches_whichever_was_first() -> None:
    async def main() -> Any:
        second_done = asyncio.Event()

        async def first(state: Any) -> dict[str, Any]:
            await second_done.wait()
            return {"out": ["first"], "one": 1}

        async def second(state: Any) -> dict[str, Any]:
            second_done.set()
            return {"out": ["second"], "two": 2}

        branches = [Node(id="x", run=first), Node(id="a", run=second)]
        handle = AgentCoreEngine(split(branches, {"out": operator.add})).start({"out": ["old"]})
        assert await handle == ["first", "second"]
        return handle.state

    assert asyncio.run(main()) == {"out": ["first", "second"], "one": 1, "two": 2}


def test_synchronous_branches_need_no_event_loop() -> None:
    def check(state: Any) -> dict[str, Any]:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return {"out": 1}

    branches = [Node(id="a", run=check, retry=Retry(attempts=2)), writing("b", {"other": 2})]
    assert AgentCoreEngine(split(branches)).run_sync({}) == 1


def test_branches_see_the_state_at_the_fan_out_and_not_each_other() -> None:
    seen: list[Any] = []

    def look(state: dict[str, Any]) -> dict[str, Any]:
        seen.append(dict(state))
        state["mine"] = True
        return {f"n{len(seen)}": 1}

    branches = [Node(id="a", run=look), Node(id="b", run=look)]
    AgentCoreEngine(split(branches, deliver="n2")).run_sync({"x": 1})
    assert seen == [{"x": 1}, {"x": 1}]


def test_two_branches_that_provide_one_field_need_a_reducer() -> None:
    branches = [writing(name, {"out": 1}, provides=["out"]) for name in "ab"]
    with pytest.raises(WorkflowDefinitionError) as caught:
        split(branches)
    assert codes(caught) == [("write_conflict", "start")]
    assert "'a', 'b'" in str(caught.value)
    assert AgentCoreEngine(split(branches, {"out": operator.add})).run_sync({}) == 2


def test_two_branches_that_write_one_field_undeclared_are_a_contract_error() -> None:
    engine = AgentCoreEngine(split([writing(name, {"out": 1}) for name in "ab"]))
    with pytest.raises(ContractError, match=r"'a' and 'b' both write it") as caught:
        engine.run_sync({})
    assert (caught.value.node_id, caught.value.field) == ("start", "out")


def test_a_reducer_that_raises_is_a_contract_error() -> None:
    branches = [writing("a", {"out": 1}), writing("b", {"out": "x"})]
    with pytest.raises(ContractError, match="its reducer raised TypeError") as caught:
        AgentCoreEngine(split(branches, {"out": operator.add})).run_sync({})
    assert isinstance(caught.value.__cause__, TypeError)


def fail(state: Any) -> Any:
    raise ValueError("no")


def test_a_branch_that_raises_ends_the_run_once_all_have_ended() -> None:
    ended: list[str] = []

    async def slow(state: Any) -> dict[str, Any]:
        await asyncio.sleep(0.01)
        ended.append("slow")
        return {"out": 1}

    branches = [Node(id="a", run=fail), Node(id="b", run=slow)]
    with pytest.raises(NodeError) as caught:
        AgentCoreEngine(split(branches)).run_sync({})
    assert caught.value.node_id == "a"
    assert ended == ["slow"]
    assert caught.value.run is not None
    assert caught.value.run.state == {"out": 1}  # what the others brought is not lost


def test_the_error_route_of_a_branch_is_taken_in_place_of_the_join() -> None:
    branches = [
        Node(id="a", run=fail, routes=[route.to_if_error("on_error")]),
        writing("b", {"out": 1}),
        Node(id="on_error", routes=[route.deliver("error")]),
    ]
    assert AgentCoreEngine(split(branches)).run_sync({}) == "ValueError: no"
    branches[0] = writing("a", {"error": "bad"}, routes=[route.to_if_error("on_error")])
    assert AgentCoreEngine(split(branches)).run_sync({}) == "bad"
    branches[0] = writing("a", {}, routes=[route.to_if_error("on_error"), route.to("end")])
    assert AgentCoreEngine(split(branches)).run_sync({}) == 1


def test_requires_of_branches_are_checked_before_any_of_them_runs() -> None:
    ran: list[Any] = []
    branches = [Node(id="a", run=ran.append), writing("b", {}, requires=["need"])]
    with pytest.raises(ContractError) as caught:
        AgentCoreEngine(split(branches)).run_sync({})
    assert (caught.value.node_id, caught.value.field, ran) == ("b", "need", [])


def test_provides_of_branches_are_checked() -> None:
    with pytest.raises(ContractError) as caught:
        AgentCoreEngine(split([writing("a", {}, provides=["out"])])).run_sync({})
    assert (caught.value.node_id, caught.value.field) == ("a", "out")


def test_branches_are_retried_and_have_their_time() -> None:
    left = 1

    async def flaky(state: Any) -> dict[str, Any]:
        nonlocal left
        left -= 1
        if left >= 0:
            await asyncio.sleep(60)
        return {"out": 1}

    retry = Retry(attempts=2, delay=0.0)
    branches = [Node(id="a", run=flaky, timeout=0.01, retry=retry), writing("b", {})]
    assert AgentCoreEngine(split(branches)).run_sync({}) == 1


@pytest.mark.parametrize(
    ("branches", "options", "expected"),
    [
        (["a", "a"], {}, ("route_invalid", "start")),
        ([], {}, ("route_invalid", "start")),
        (["a", "end"], {}, ("route_invalid", "start")),
        (["a", "nowhere"], {}, ("target_unknown", "start")),
        (["a"], {"run": None}, ("branch_invalid", "a")),
        (["a"], {"starts_round": True}, ("branch_invalid", "a")),
        (["a"], {"routes": [route.to("start")]}, ("branch_invalid", "a")),
        (["a"], {"routes": [route.deliver("x")]}, ("branch_invalid", "a")),
    ],
)
def test_wrong_fan_outs_are_definition_errors(
    branches: list[str], options: dict[str, Any], expected: tuple[str, str]
) -> None:
    branch = {"run": lambda state: None, **options}
    with pytest.raises(WorkflowDefinitionError) as caught:
        define_workflow(
            id="w",
            nodes=[
                Node(id="start", starts_round=True, routes=[fan_out(branches, join="end")]),
                Node(id="a", **branch),
                Node(id="end", routes=[route.deliver("x")]),
            ],
        )
    assert expected in codes(caught)


def test_a_branch_that_is_also_come_to_otherwise_needs_routes() -> None:
    nodes = [
        Node(id="start", starts_round=True,
             routes=[route.to_if(bool, "a"), fan_out(["a"], join="end")]),
        Node(id="a", run=lambda state: None),
        Node(id="end", routes=[route.deliver("x")]),
    ]  # fmt: skip
    with pytest.raises(WorkflowDefinitionError) as caught:
        define_workflow(id="w", nodes=nodes)
    assert codes(caught) == [("no_routes", "a")]


def test_a_cycle_through_branches_must_start_a_round() -> None:
    nodes = [
        Node(id="first", starts_round=True, routes=[route.to("start")]),
        Node(id="start", routes=[fan_out(["a"], join="end")]),
        Node(id="a", run=lambda state: None),
        Node(id="end", routes=[route.to_if(bool, "start"), route.deliver("x")]),
    ]
    with pytest.raises(WorkflowDefinitionError) as caught:
        define_workflow(id="w", nodes=nodes)
    assert codes(caught) == [("cycle_without_round", "start")]


# Workflows as nodes


def adding(**options: Any) -> Workflow:
    add = Node(
        id="add", starts_round=True, run=lambda state: {"sum": state["a"] + state["b"]},
        routes=[route.deliver("sum")], **options,
    )  # fmt: skip
    return define_workflow(id="adding", nodes=[add])


def around(run: Any, deliver: str = "sum", **options: Any) -> Workflow:
    node = Node(id="sub", starts_round=True, run=run, routes=[route.deliver(deliver)], **options)
    return define_workflow(id="around", nodes=[node])


def test_a_workflow_as_a_node_puts_what_it_delivers_into_the_same_field() -> None:
    assert AgentCoreEngine(around(adding())).run_sync({"a": 1, "b": 2}) == 3


def test_subworkflow_maps_the_state_and_names_the_field() -> None:
    run = subworkflow(adding(), input=lambda state: {"a": state["x"], "b": 10}, output="total")
    assert AgentCoreEngine(around(run, "total")).run_sync({"x": 5}) == 15


def test_the_state_of_a_sub_workflow_stays_its_own() -> None:
    async def main() -> Any:
        handle = AgentCoreEngine(around(subworkflow(adding(), output="total"), "total")).start(
            {"a": 1, "b": 2}
        )
        await handle
        return handle.state

    assert asyncio.run(main()) == {"a": 1, "b": 2, "total": 3}


def test_a_sub_workflow_runs_under_the_key_of_its_node_and_tells_its_own_events() -> None:
    told: list[Any] = []
    engine = AgentCoreEngine(around(adding()), on_event=told.append)
    engine.run_sync({"a": 1, "b": 2}, run_id="r")
    inner = [event for event in told if event.run_id == "r:0:sub"]
    assert {event.workflow_id for event in inner} == {"adding"}
    assert [event.sequence for event in inner] == list(range(len(inner)))
    assert inner[0].type == "run_started"
    outer = [event for event in told if event.run_id == "r"]
    assert [event.sequence for event in outer] == list(range(len(outer)))


def test_a_sub_workflow_has_the_runtime_and_a_guard_of_its_own() -> None:
    seen: list[Any] = []

    def run(state: Any, ctx: NodeContext[Any]) -> dict[str, Any]:
        assert ctx.guard is not None
        seen.append((ctx.runtime, ctx.round, ctx.guard.current_iteration))
        return {"sum": 1}

    inner = define_workflow(
        id="inner",
        nodes=[Node(id="n", starts_round=True, run=run, routes=[route.deliver("sum")])],
    )
    AgentCoreEngine(around(inner), guard={}).run_sync({}, runtime="services")
    assert seen == [("services", 1, 1)]


def test_the_limit_of_a_sub_workflow_is_an_error_of_its_node() -> None:
    loop = Node(id="n", starts_round=True, run=lambda state: None, routes=[route.to("n")])
    inner = define_workflow(id="inner", nodes=[loop])
    with pytest.raises(NodeError, match="RoundLimitError") as caught:
        AgentCoreEngine(around(inner), max_rounds=3).run_sync({})
    cause = caught.value.__cause__
    assert isinstance(cause, RoundLimitError)
    assert cause.run is not None
    assert cause.run.rounds == 3


def test_a_broken_contract_in_a_sub_workflow_is_never_routed() -> None:
    nodes = [
        Node(id="sub", starts_round=True, run=adding(requires=["c"]),
             routes=[route.to_if_error("end"), route.to("end")]),
        Node(id="end", routes=[route.deliver("a")]),
    ]  # fmt: skip
    with pytest.raises(ContractError) as caught:
        AgentCoreEngine(define_workflow(id="w", nodes=nodes)).run_sync({"a": 1})
    assert (caught.value.workflow_id, caught.value.node_id) == ("w", "sub")
    assert isinstance(caught.value.__cause__, ContractError)
    assert caught.value.__cause__.field == "c"


@pytest.mark.parametrize("given", [5, None, [("a", 1)]])
def test_an_input_that_is_no_state_is_a_broken_contract(given: Any) -> None:
    run = subworkflow(adding(), input=lambda state: given)
    with pytest.raises(ContractError, match="TypeError: a state must be"):
        AgentCoreEngine(around(run)).run_sync({})


def test_what_input_raises_is_an_error_of_the_node() -> None:
    run = subworkflow(adding(), input=lambda state: state["nope"])
    with pytest.raises(NodeError, match="KeyError"):
        AgentCoreEngine(around(run)).run_sync({})


def test_cancelling_a_run_cancels_its_sub_workflow() -> None:
    async def main() -> None:
        began = asyncio.Event()
        ended: list[str] = []

        async def wait(state: Any) -> None:
            began.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.append("inner")

        inner = define_workflow(
            id="inner",
            nodes=[Node(id="n", starts_round=True, run=wait, routes=[route.deliver("x")])],
        )
        handle = AgentCoreEngine(around(inner)).start({})
        await began.wait()
        handle.cancel()
        with pytest.raises(asyncio.CancelledError):
            await handle
        assert ended == ["inner"]

    asyncio.run(main())


def test_retry_and_timeout_have_nothing_to_hold_for_on_a_workflow() -> None:
    with pytest.raises(WorkflowDefinitionError) as caught:
        around(adding(), timeout=1.0)
    assert codes(caught) == [("timing_invalid", "sub")]


def test_workflows_nested_too_deep_are_a_definition_error() -> None:
    workflow: Workflow = adding()
    for _ in range(49):
        workflow = around(workflow)
    with pytest.raises(WorkflowDefinitionError, match="nested"):
        around(workflow)
    assert AgentCoreEngine(workflow).run_sync({"a": 1, "b": 2}) == 3
