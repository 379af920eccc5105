"""The contract of the graph engine, row by row: each test is named after its row."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import pydantic
import pytest
from turnwarden.engine import (
    AgentCoreEngine,
    AgentWorkflowDefinition,
    ChainAccessError,
    ContractError,
    GraphError,
    InMemoryChainSource,
    Node,
    NodeContext,
    NodeError,
    Retry,
    RoundLimitError,
    RunStatus,
    RunStoppedError,
    WorkflowDefinitionError,
    define_workflow,
    route,
)

Run = Callable[..., Any]
MODES = ["run_sync", "run"]


def drive(engine: AgentCoreEngine[Any, Any, Any], mode: str, state: Any, **options: Any) -> Any:
    if mode == "run_sync":
        return engine.run_sync(state, **options)
    return asyncio.run(engine.run(state, **options))


def asynchronous(function: Run) -> Run:
    """The same function as a coroutine that really waits."""

    async def later(state: Any) -> Any:
        await asyncio.sleep(0)
        return function(state)

    return later


def one_node(run: Run | None, field: str = "answer", **options: Any) -> Any:
    node = Node(id="only", starts_round=True, run=run, routes=[route.deliver(field)], **options)
    return define_workflow(id="one", nodes=[node])


def run_one(run: Run | None, state: Any = None, field: str = "answer", **options: Any) -> Any:
    return AgentCoreEngine(one_node(run, field, **options)).run_sync(state or {})


def greeting() -> AgentWorkflowDefinition[dict[str, Any], Any, Any]:
    def check(state: dict[str, Any]) -> dict[str, Any] | None:
        return None if state.get("name") else {"error": "no name"}

    def greet(state: dict[str, Any]) -> dict[str, Any]:
        return {"answer": f"Hello, {state['name']}!"}

    return define_workflow(
        id="greeting",
        nodes=[
            Node(
                id="check", description="Check the name", starts_round=True, run=check,
                routes=[route.to_if_error("failure"), route.to("greet")],
            ),
            Node(
                id="greet", description="Greet", provides=["answer"], run=greet,
                routes=[route.deliver("answer")],
            ),
            Node(
                id="failure", description="Say what is wrong", requires=["error"],
                routes=[route.deliver("error")],
            ),
        ],
    )  # fmt: skip


# The example of the design


@pytest.mark.parametrize("mode", MODES)
def test_the_greeting_workflow_greets_or_says_what_is_wrong(mode: str) -> None:
    engine = AgentCoreEngine(workflow=greeting())
    assert drive(engine, mode, {"name": "Ivan"}) == "Hello, Ivan!"
    assert drive(engine, mode, {}) == "no name"
    assert greeting().warnings == ()


# run


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrap", [lambda run: run, asynchronous], ids=["sync", "async"])
def test_run_takes_the_state_sync_or_async_and_returns_a_partial_update(
    mode: str, wrap: Callable[[Run], Run]
) -> None:
    workflow = one_node(wrap(lambda state: {"answer": state["a"] + 1}))
    assert drive(AgentCoreEngine(workflow), mode, {"a": 1, "b": 2}) == 2


def test_run_may_return_none() -> None:
    assert run_one(lambda state: None, {"answer": 7}) == 7


def test_run_takes_the_context_as_second_argument() -> None:
    seen: list[NodeContext[Any]] = []

    def run(state: dict[str, Any], ctx: NodeContext[Any]) -> dict[str, Any]:
        seen.append(ctx)
        return {"answer": ctx.runtime["add"] + state["a"]}

    engine = AgentCoreEngine(one_node(run))
    assert engine.run_sync({"a": 1}, runtime={"add": 2}, run_id="r") == 3
    ctx = seen[0]
    assert (ctx.round, ctx.guard, ctx.cancelled, ctx.node_id) == (1, None, False, "only")
    assert ctx.idempotency_key == "r:0:only"
    assert callable(ctx.emit)


def test_the_idempotency_key_counts_the_steps_of_the_run() -> None:
    keys: list[str] = []

    def run(state: dict[str, Any], ctx: NodeContext[Any]) -> dict[str, Any]:
        keys.append(ctx.idempotency_key)
        return {"n": state["n"] + 1}

    node = Node(
        id="again", starts_round=True, run=run,
        routes=[route.deliver_if(lambda state: state["n"] == 3, "n"), route.to("again")],
    )  # fmt: skip
    AgentCoreEngine(define_workflow(id="w", nodes=[node])).run_sync({"n": 0}, run_id="r")
    assert keys == ["r:0:again", "r:1:again", "r:2:again"]


@pytest.mark.parametrize(
    "run",
    [
        lambda state, ctx: {"answer": ctx.round},
        lambda state, context=None: {"answer": context.round},
        lambda state, *, ctx: {"answer": ctx.round},
        lambda state, bound=1: {"answer": bound},
        lambda *states: {"answer": len(states)},
    ],
)
def test_run_is_given_what_its_parameters_ask_for(run: Run) -> None:
    assert run_one(run) == 1


def test_a_node_without_run_only_routes() -> None:
    workflow = define_workflow(
        id="w",
        nodes=[
            Node(id="first", starts_round=True, routes=[route.to("second")]),
            Node(id="second", routes=[route.deliver("a")]),
        ],
    )
    assert AgentCoreEngine(workflow).run_sync({"a": 1}) == 1


@pytest.mark.parametrize("wrong", [[("answer", 1)], "answer", 5, {1: 2}, {"answer": 1, None: 2}])
def test_run_returning_no_mapping_of_fields_is_a_contract_error(wrong: Any) -> None:
    with pytest.raises(ContractError, match="'only'"):
        run_one(lambda state: wrong)


def test_an_update_may_be_any_mapping() -> None:
    import types

    assert run_one(lambda state: types.MappingProxyType({"answer": 1})) == 1


def test_emit_tells_those_who_listen() -> None:
    def run(state: Any, ctx: NodeContext[Any]) -> dict[str, Any]:
        ctx.emit("half", {"done": 0.5})
        return {"answer": 1}

    told: list[Any] = []
    AgentCoreEngine(one_node(run), on_event=told.append).run_sync({})
    emitted = [event for event in told if event.type == "node_emitted"]
    assert [(one.node_id, one.round, one.name, one.value) for one in emitted] == [
        ("only", 1, "half", {"done": 0.5})
    ]


# run returns


def test_run_returns_the_delivered_value() -> None:
    value = object()
    assert run_one(lambda state: {"answer": value}) is value


def test_errors_carry_the_partial_run_with_state_events_and_rounds() -> None:
    def fail(state: Any) -> Any:
        raise ValueError("no")

    nodes = [
        Node(id="first", starts_round=True, run=lambda state: {"a": 1}, routes=[route.to("then")]),
        Node(id="then", starts_round=True, run=fail, routes=[route.deliver("a")]),
    ]
    with pytest.raises(NodeError) as caught:
        AgentCoreEngine(define_workflow(id="w", nodes=nodes)).run_sync({"z": 0})
    run = caught.value.run
    assert run is not None
    assert (run.state, run.rounds, run.status) == ({"z": 0, "a": 1}, 2, RunStatus.FAILED)
    assert [event.type for event in run.events] == [
        "run_started",
        "round_started", "node_started", "node_finished", "route_taken",
        "round_started", "node_started", "node_failed",
        "run_finished",
    ]  # fmt: skip


def test_start_gives_a_handle_with_events_state_cancel_and_result() -> None:
    async def main() -> None:
        entered = asyncio.Event()
        go_on = asyncio.Event()

        async def wait(state: Any) -> dict[str, Any]:
            entered.set()
            await go_on.wait()
            return {"answer": 1}

        engine = AgentCoreEngine(one_node(wait))
        handle = engine.start({"a": 1})
        await entered.wait()
        assert [event.type for event in handle.events][-1] == "node_started"
        assert handle.state == {"a": 1}
        assert handle.result_so_far.status is RunStatus.RUNNING
        assert not handle.done()
        go_on.set()
        assert await handle == 1
        assert await handle.result() == 1
        assert handle.state == {"a": 1, "answer": 1}
        assert handle.result_so_far.result == 1
        assert handle.cancel() is False

        entered.clear()
        go_on.clear()
        second = engine.start({})
        await entered.wait()
        assert second.cancel() is True
        assert (await second.wait()).status is RunStatus.CANCELLED
        with pytest.raises(asyncio.CancelledError):
            await second

    asyncio.run(main())


# round


def rounds_until_stopped(**options: Any) -> tuple[int, GraphError]:
    count = 0

    def work(state: Any) -> None:
        nonlocal count
        count += 1

    node = Node(id="again", starts_round=True, run=work, routes=[route.to("again")])
    with pytest.raises(GraphError) as caught:
        AgentCoreEngine(define_workflow(id="w", nodes=[node]), **options).run_sync({})
    return count, caught.value


def test_rounds_are_limited_to_twenty_by_default() -> None:
    count, error = rounds_until_stopped()
    assert isinstance(error, RoundLimitError)
    assert count == 20
    assert error.run is not None
    assert (error.run.rounds, error.run.status) == (20, RunStatus.LIMIT)


@pytest.mark.parametrize("limit", [1, 3, 50])
def test_max_rounds_limits_rounds(limit: int) -> None:
    count, error = rounds_until_stopped(max_rounds=limit)
    assert (count, error.reason) == (limit, "limit.max_rounds")  # type: ignore[attr-defined]


def test_with_a_guard_its_limits_count_instead() -> None:
    count, error = rounds_until_stopped(guard={}, max_rounds=3)
    assert count == 19  # the iteration that reaches the hard limit is refused
    assert isinstance(error, RoundLimitError)
    assert error.reason == "recursion.hard_limit"
    count, _ = rounds_until_stopped(guard={"recursion": {"hard_limit": 40}})
    assert count == 39


def test_the_guard_warns_at_ten_and_fifteen_then_stops_at_twenty() -> None:
    told: list[Any] = []
    rounds_until_stopped(guard={}, on_event=told.append)
    began = [event.round for event in told if event.type == "round_started"]
    assert began == list(range(1, 20))
    spoke = [event for event in told if event.type == "guard_spoke"]
    assert [event.reason for event in spoke] == [
        *["recursion.warning"] * 5, *["recursion.soft_limit"] * 5, "recursion.hard_limit",
    ]  # fmt: skip
    assert [event.action for event in spoke] == [*["warn"] * 10, "stop"]


def test_only_nodes_that_start_a_round_count() -> None:
    nodes = [
        Node(id="a", starts_round=True, run=lambda state: {"n": state["n"] + 1},
             routes=[route.to("b")]),
        Node(id="b", routes=[route.to("c")]),
        Node(id="c", routes=[route.deliver_if(lambda state: state["n"] == 20, "n"),
                             route.to("a")]),
    ]  # fmt: skip
    assert AgentCoreEngine(define_workflow(id="w", nodes=nodes)).run_sync({"n": 0}) == 20


def test_the_entry_must_start_a_round_and_a_cycle_must_too() -> None:
    with pytest.raises(WorkflowDefinitionError) as caught:
        define_workflow(
            id="w",
            nodes=[
                Node(id="a", routes=[route.to("b")]),
                Node(id="b", routes=[route.to("c")]),
                Node(id="c", routes=[route.to_if(bool, "b"), route.deliver("x")]),
            ],
        )
    assert [(one.code, one.node_id) for one in caught.value.findings] == [
        ("entry_without_round", "a"),
        ("cycle_without_round", "b"),
    ]
    assert "b -> c -> b" in str(caught.value)


def test_calls_recorded_on_the_guard_stop_the_run_when_they_go_round() -> None:
    def work(state: Any, ctx: NodeContext[Any]) -> None:
        assert ctx.guard is not None
        ctx.guard.record_tool_call("find", {"q": 1})
        ctx.guard.record_tool_result("nothing")

    node = Node(id="again", starts_round=True, run=work, routes=[route.to("again")])
    workflow = define_workflow(id="w", nodes=[node])
    with pytest.raises(RunStoppedError) as caught:
        AgentCoreEngine(workflow, guard={}).run_sync({})
    assert caught.value.reason == "loop.exact"
    assert not isinstance(caught.value, RoundLimitError)
    assert caught.value.run is not None
    assert (caught.value.run.status, caught.value.run.rounds) == (RunStatus.STOPPED, 5)


def test_every_run_has_a_guard_of_its_own() -> None:
    guards: list[Any] = []

    def work(state: Any, ctx: NodeContext[Any]) -> dict[str, Any]:
        guards.append(ctx.guard)
        return {"answer": 1}

    engine = AgentCoreEngine(one_node(work), guard={})
    engine.run_sync({})
    engine.run_sync({})
    assert guards[0] is not guards[1]
    assert [guard.current_iteration for guard in guards] == [1, 1]


# routes


def routed(routes: list[Any], state: dict[str, Any], run: Run | None = None) -> str:
    """Where the routes of a node lead."""
    names = ["a", "b", "c"]
    targets = [
        Node(id=name, run=lambda state, name=name: {"at": name}, routes=[route.deliver("at")])
        for name in names
    ]
    used = {one.target for one in routes}
    first = Node(id="first", starts_round=True, run=run, routes=routes)
    nodes = [first, *(node for node in targets if node.id in used)]
    return AgentCoreEngine(define_workflow(id="w", nodes=nodes)).run_sync(state)


def test_the_first_route_that_applies_is_taken() -> None:
    routes = [
        route.to_if(lambda state: state["x"] > 2, "a"),
        route.to_if(lambda state: state["x"] > 1, "b"),
        route.to("c"),
    ]
    assert [routed(routes, {"x": x}) for x in (3, 2, 1)] == ["a", "b", "c"]


def test_deliver_if_delivers_when_its_predicate_says_so() -> None:
    routes = [route.deliver_if(lambda state: state["x"], "x"), route.to("a")]
    assert routed(routes, {"x": 5}) == 5
    assert routed(routes, {"x": 0}) == "a"


def raising(state: Any) -> Any:
    raise ValueError("no")


def test_error_routes_are_tried_in_their_order_too() -> None:
    routes = [route.to_if(lambda state: state["x"], "a"), route.to_if_error("b"), route.to("c")]
    assert routed(routes, {"x": True}, raising) == "a"
    assert routed(routes, {"x": False}, raising) == "b"
    assert routed(routes, {"x": False}, lambda state: None) == "c"


@pytest.mark.parametrize(
    ("routes", "code"),
    [
        ([route.to_if(bool, "a")], "last_route_conditional"),
        ([route.to("a"), route.deliver_if(bool, "x")], "route_after_unconditional"),
        ([route.to_if_error("a")], "last_route_conditional"),
        ([route.to("a"), route.deliver("x")], "route_after_unconditional"),
        ([route.deliver("x"), route.to("a")], "route_after_unconditional"),
        ([], "no_routes"),
    ],
)
def test_the_last_route_must_be_unconditional_and_nothing_may_follow_one(
    routes: list[Any], code: str
) -> None:
    nodes = [
        Node(id="first", starts_round=True, routes=routes),
        Node(id="a", routes=[route.deliver("x")]),
    ]
    with pytest.raises(WorkflowDefinitionError) as caught:
        define_workflow(id="w", nodes=nodes)
    assert (code, "first") in [(one.code, one.node_id) for one in caught.value.findings]


def test_a_predicate_that_raises_is_a_contract_error_and_not_routed() -> None:
    routes = [route.to_if(lambda state: state["nope"], "a"), route.to_if_error("b"), route.to("c")]
    with pytest.raises(ContractError, match="predicate") as caught:
        routed(routes, {})
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.node_id == "first"


def test_a_predicate_cannot_change_the_state() -> None:
    def predicate(state: dict[str, Any]) -> bool:
        state["x"] = "changed"
        return False

    assert routed([route.to_if(predicate, "a"), route.deliver("x")], {"x": 1}) == 1


def test_a_predicate_that_turns_out_to_be_asynchronous_is_a_contract_error() -> None:
    async def later() -> bool:
        return False

    with pytest.raises(ContractError, match="asynchronous"):
        routed([route.to_if(lambda state: later(), "a"), route.to("b")], {})


# error


def test_an_exception_becomes_error_in_the_state_and_is_routed() -> None:
    routes = [route.to_if_error("a"), route.to("b")]
    nodes = [
        Node(id="first", starts_round=True, run=raising, routes=routes),
        Node(id="a", routes=[route.deliver("error")]),
        Node(id="b", routes=[route.deliver("x")]),
    ]
    workflow = define_workflow(id="w", nodes=nodes)
    assert AgentCoreEngine(workflow).run_sync({}) == "ValueError: no"


@pytest.mark.parametrize("mode", MODES)
def test_an_exception_without_an_error_route_leaves_the_run_as_node_error(mode: str) -> None:
    for run in (raising, asynchronous(raising)):
        with pytest.raises(NodeError, match="ValueError: no") as caught:
            drive(AgentCoreEngine(one_node(run)), mode, {"answer": 1})
        assert isinstance(caught.value.__cause__, ValueError)
        assert caught.value.run is not None
        assert "error" not in caught.value.run.state


def test_an_error_in_an_update_is_routed_when_there_is_a_route_for_it() -> None:
    routes = [route.to_if_error("a"), route.to("b")]
    assert routed(routes, {}, lambda state: {"error": "bad"}) == "a"
    assert routed(routes, {}, lambda state: {"error": None}) == "b"
    assert routed(routes, {}, lambda state: {"error": ""}) == "a"  # not None: an error


def test_an_error_in_an_update_is_data_without_a_route_for_it() -> None:
    assert run_one(lambda state: {"error": "bad", "answer": 1}) == 1
    assert run_one(lambda state: {"error": "bad"}, field="error") == "bad"


def test_an_error_of_another_node_in_the_state_is_not_the_nodes_own() -> None:
    routes = [route.to_if_error("a"), route.to("b")]
    assert routed(routes, {"error": "old"}, lambda state: {}) == "b"


def test_a_node_without_run_errs_when_the_state_holds_an_error() -> None:
    routes = [route.to_if_error("a"), route.to("b")]
    assert routed(routes, {"error": "old"}) == "a"
    assert routed(routes, {"error": None}) == "b"
    assert routed(routes, {}) == "b"


def test_contract_errors_are_never_routed() -> None:
    routes = [route.to_if_error("a"), route.to("b")]
    with pytest.raises(ContractError):
        routed(routes, {}, lambda state: 5)

    def breaks(state: Any) -> Any:
        raise ContractError("mine")

    with pytest.raises(ContractError, match="mine"):
        routed(routes, {}, breaks)


def test_cancellation_is_never_routed() -> None:
    async def main() -> None:
        started = asyncio.Event()

        async def wait(state: Any) -> None:
            started.set()
            await asyncio.sleep(60)

        nodes = [
            Node(id="first", starts_round=True, run=wait,
                 routes=[route.to_if_error("a"), route.deliver("error")]),
            Node(id="a", routes=[route.deliver("error")]),
        ]  # fmt: skip
        handle = AgentCoreEngine(define_workflow(id="w", nodes=nodes)).start({})
        await started.wait()
        handle.cancel()
        with pytest.raises(asyncio.CancelledError):
            await handle
        assert "error" not in handle.state

    asyncio.run(main())


def test_an_exception_without_a_message_is_told_by_its_type() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def odd(state: Any) -> Any:
        raise OddError

    nodes = [
        Node(id="first", starts_round=True, run=odd,
             routes=[route.to_if_error("a"), route.deliver("x")]),
        Node(id="a", routes=[route.deliver("error")]),
    ]  # fmt: skip
    assert AgentCoreEngine(define_workflow(id="w", nodes=nodes)).run_sync({}) == "OddError"


# requires, provides


@pytest.mark.parametrize("state", [{}, {"need": None}])
def test_a_required_field_that_is_missing_or_none_is_a_contract_error(state: Any) -> None:
    ran: list[Any] = []
    with pytest.raises(ContractError) as caught:
        run_one(ran.append, state, requires=["need"])
    assert (caught.value.node_id, caught.value.field) == ("only", "need")
    assert "'only'" in str(caught.value)
    assert "'need'" in str(caught.value)
    assert ran == []


@pytest.mark.parametrize("value", [0, "", False, []])
def test_a_required_field_may_be_false(value: Any) -> None:
    assert run_one(lambda state: {"answer": 1}, {"need": value}, requires=["need"]) == 1


@pytest.mark.parametrize("update", [{}, None, {"answer": None}])
def test_a_provided_field_that_is_missing_or_none_is_a_contract_error(update: Any) -> None:
    with pytest.raises(ContractError) as caught:
        run_one(lambda state: update, provides=["answer"])
    assert (caught.value.node_id, caught.value.field) == ("only", "answer")


def test_provides_does_not_hold_for_a_node_that_erred() -> None:
    def nodes(run: Run) -> list[Any]:
        return [
            Node(id="first", starts_round=True, run=run, provides=["x"],
                 routes=[route.to_if_error("a"), route.deliver("x")]),
            Node(id="a", routes=[route.deliver("error")]),
        ]  # fmt: skip

    for run, said in ((raising, "ValueError: no"), (lambda state: {"error": "bad"}, "bad")):
        workflow = define_workflow(id="w", nodes=nodes(run))
        assert AgentCoreEngine(workflow).run_sync({}) == said


# deliver


@pytest.mark.parametrize("state", [{}, {"answer": None}])
def test_the_delivered_field_must_be_set(state: Any) -> None:
    with pytest.raises(ContractError) as caught:
        run_one(None, state)
    assert caught.value.field == "answer"


def judged(is_result: Any) -> Any:
    node = Node(id="only", starts_round=True, routes=[route.deliver("answer")])
    workflow = define_workflow(id="w", nodes=[node], is_result=is_result)
    return AgentCoreEngine(workflow).run_sync({"answer": 5})


def test_is_result_must_return_exactly_true() -> None:
    assert judged(lambda value: value == 5) == 5


@pytest.mark.parametrize("answer", [False, None, 1, "yes", [1]])
def test_anything_else_of_is_result_is_a_contract_error(answer: Any) -> None:
    with pytest.raises(ContractError) as caught:
        judged(lambda value: answer)
    assert (caught.value.node_id, caught.value.field) == ("only", "answer")


def test_an_exception_in_is_result_is_a_contract_error() -> None:
    with pytest.raises(ContractError, match="ZeroDivisionError") as caught:
        judged(lambda value: value / 0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_coroutine_of_is_result_is_a_contract_error() -> None:
    async def later() -> bool:
        return True

    with pytest.raises(ContractError):
        judged(lambda value: later())


class AsyncJudge:
    async def __call__(self, value: Any) -> bool:
        return True


async def async_judge(value: Any) -> bool:
    return True


@pytest.mark.parametrize("is_result", [AsyncJudge(), async_judge])
def test_an_asynchronous_is_result_is_a_definition_error(is_result: Any) -> None:
    with pytest.raises(WorkflowDefinitionError, match="is_result is asynchronous"):
        judged(is_result)


# unknown keys


class Typed(TypedDict):
    name: str
    answer: NotRequired[str]


@dataclass
class Record:
    name: str
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Frozen:
    name: str
    answer: str | None = None


class Model(pydantic.BaseModel):
    name: str
    answer: str | None = None


class FrozenModel(pydantic.BaseModel, frozen=True):
    name: str
    answer: str | None = None


STATES = [
    (Typed, {"name": "x"}),
    *((kind, kind(name="x")) for kind in (Record, Frozen, Model, FrozenModel)),
]


def name_of(state: Any) -> str:
    return state["name"] if isinstance(state, dict) else state.name


@pytest.mark.parametrize(
    ("kind", "state"), STATES, ids=lambda value: getattr(value, "__name__", "")
)
def test_states_may_be_typed_dicts_dataclasses_and_models(kind: Any, state: Any) -> None:
    def greet(state: Any) -> dict[str, Any]:
        return {"answer": f"Hello, {name_of(state)}"}

    before = json.dumps(state if isinstance(state, dict) else str(state))
    node = Node(id="greet", starts_round=True, run=greet, routes=[route.deliver("answer")])
    for state_type in (kind, None):
        workflow = define_workflow(id="w", nodes=[node], state_type=state_type)
        assert AgentCoreEngine(workflow).run_sync(state) == "Hello, x"
        assert json.dumps(state if isinstance(state, dict) else str(state)) == before


@pytest.mark.parametrize(
    ("kind", "state"), STATES, ids=lambda value: getattr(value, "__name__", "")
)
def test_an_update_key_that_a_typed_state_does_not_have_is_a_contract_error(
    kind: Any, state: Any
) -> None:
    node = Node(
        id="greet", starts_round=True, run=lambda state: {"anwser": 1},
        routes=[route.deliver("answer")],
    )  # fmt: skip
    workflow = define_workflow(id="w", nodes=[node], state_type=kind)
    with pytest.raises(ContractError) as caught:
        AgentCoreEngine(workflow).run_sync(state)
    assert (caught.value.node_id, caught.value.field) == ("greet", "anwser")


def test_a_state_that_is_not_of_its_type_is_refused() -> None:
    node = Node(id="only", starts_round=True, routes=[route.deliver("answer")])
    engine = AgentCoreEngine(define_workflow(id="w", nodes=[node], state_type=Record))
    with pytest.raises(TypeError, match="Record"):
        engine.run_sync({"answer": 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dict"):
        AgentCoreEngine(define_workflow(id="w", nodes=[node])).run_sync(5)  # type: ignore[arg-type]


def test_a_model_that_validates_assignments_refuses_wrong_values() -> None:
    class Strict(pydantic.BaseModel, validate_assignment=True):
        count: int = 0

    with pytest.raises(ContractError) as caught:
        run_one(lambda state: {"count": "many"}, Strict(), field="count")
    assert caught.value.field == "count"
    assert run_one(lambda state: {"count": "5"}, Strict(), field="count") == 5


def test_an_error_that_a_typed_state_cannot_hold_is_a_contract_error() -> None:
    nodes = [
        Node(id="first", starts_round=True, run=raising,
             routes=[route.to_if_error("a"), route.deliver("name")]),
        Node(id="a", routes=[route.deliver("name")]),
    ]  # fmt: skip
    with pytest.raises(WorkflowDefinitionError, match="'error'"):
        define_workflow(id="w", nodes=nodes, state_type=Record)
    with pytest.raises(ContractError) as caught:
        AgentCoreEngine(define_workflow(id="w", nodes=nodes)).run_sync(Record("x"))
    assert caught.value.field == "error"
    assert isinstance(caught.value.__cause__, ValueError)


# definition errors


def test_all_definition_errors_are_reported_at_once_each_with_its_node() -> None:
    with pytest.raises(WorkflowDefinitionError) as caught:
        define_workflow(
            id="broken",
            nodes=[
                Node(id="entry", routes=[route.to("nowhere")]),
                Node(id="", routes=[route.deliver("x")]),
                Node(id="twin", starts_round=True, routes=[route.to("loop")]),
                Node(id="twin", routes=[route.deliver("x")]),
                Node(id="loop", routes=[route.to("loop")]),
                Node(id="bare"),
            ],
        )
    found = {(one.code.value, one.node_id) for one in caught.value.findings}
    assert found == {
        ("entry_without_round", "entry"),
        ("target_unknown", "entry"),
        ("id_empty", ""),
        ("id_duplicate", "twin"),
        ("node_unreachable", "twin"),
        ("node_unreachable", "loop"),
        ("node_unreachable", "bare"),
        ("cycle_without_round", "loop"),
        ("no_routes", "bare"),
    }
    assert all(one.remedy and one.message for one in caught.value.findings)
    for finding in caught.value.findings:
        assert str(finding) in str(caught.value)


def test_an_unknown_entry_is_a_definition_error() -> None:
    node = Node(id="a", starts_round=True, routes=[route.deliver("x")])
    with pytest.raises(WorkflowDefinitionError, match="'b'"):
        define_workflow(id="w", nodes=[node], entry_node_id="b")


def test_the_entry_is_the_first_node_by_default() -> None:
    nodes = [
        Node(id="a", starts_round=True, routes=[route.deliver("x")]),
        Node(id="b", starts_round=True, routes=[route.to("a")]),
    ]
    assert define_workflow(id="w", nodes=nodes[:1]).entry_node_id == "a"
    assert define_workflow(id="w", nodes=nodes, entry_node_id="b").entry_node_id == "b"


# read-only, and plain data


def test_a_definition_is_read_only_and_so_are_its_nodes() -> None:
    workflow = greeting()
    with pytest.raises(AttributeError):
        workflow.id = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del workflow.nodes  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        workflow.nodes[0].id = "other"  # type: ignore[misc]
    assert isinstance(workflow.nodes, tuple)
    assert isinstance(workflow.nodes[0].routes, tuple)


def test_a_definition_does_not_change_with_the_lists_that_it_was_made_of() -> None:
    routes = [route.deliver("answer")]
    nodes = [Node(id="a", starts_round=True, routes=routes)]
    workflow = define_workflow(id="w", nodes=nodes)
    routes.clear()
    nodes.clear()
    assert len(workflow.nodes) == 1
    assert AgentCoreEngine(workflow).run_sync({"answer": 1}) == 1


# revision


def test_the_revision_is_in_every_event() -> None:
    told: list[Any] = []
    node = Node(id="only", starts_round=True, routes=[route.deliver("answer")])
    workflow = define_workflow(id="w", nodes=[node], revision="7")
    AgentCoreEngine(workflow, on_event=told.append).run_sync({"answer": 1})
    assert {(event.workflow_id, event.revision) for event in told} == {("w", "7")}
    assert [event.sequence for event in told] == list(range(len(told)))


def test_the_revision_follows_from_the_graph_when_none_is_given() -> None:
    assert greeting().revision == greeting().revision
    node = Node(id="only", starts_round=True, routes=[route.deliver("answer")])
    other = dataclasses.replace(node, requires=("answer",))
    revisions = {define_workflow(id="w", nodes=[one]).revision for one in (node, other)}
    assert len(revisions) == 2


# chain_source


def chained(may_read: Any = lambda run_id, principal: principal == "auditor") -> Any:
    source = InMemoryChainSource(may_read)
    node = Node(id="only", starts_round=True, routes=[route.deliver("answer")])
    workflow = define_workflow(id="w", nodes=[node], chain_source=source)
    return AgentCoreEngine(workflow, on_event=source.record)


def test_read_chain_asks_the_chain_source() -> None:
    engine = chained()
    engine.run_sync({"answer": 1}, run_id="r")
    events = asyncio.run(engine.read_chain("r", "auditor"))
    assert [event.type for event in events][0::5] == ["run_started"]
    assert events[-1].type == "run_finished"
    assert engine.read_chain_sync("r", "auditor") == events


@pytest.mark.parametrize("principal", [None, "", "visitor", 5])
def test_read_chain_without_authority_is_refused(principal: Any) -> None:
    engine = chained()
    engine.run_sync({"answer": 1}, run_id="r")
    with pytest.raises(ChainAccessError):
        engine.read_chain_sync("r", principal)


def test_authority_is_exactly_true_and_nobody_is_none() -> None:
    engine = chained(lambda run_id, principal: "yes")
    engine.run_sync({"answer": 1}, run_id="r")
    with pytest.raises(ChainAccessError):
        engine.read_chain_sync("r", "auditor")
    with pytest.raises(ChainAccessError):
        chained(lambda run_id, principal: True).read_chain_sync("r", None)


def test_an_unknown_run_is_refused_in_the_same_words() -> None:
    engine = chained(lambda run_id, principal: run_id == "other")
    engine.run_sync({"answer": 1}, run_id="r")
    said = []
    for run_id in ("r", "other"):
        with pytest.raises(ChainAccessError) as caught:
            engine.read_chain_sync(run_id, "auditor")
        said.append(str(caught.value).replace(repr(run_id), "_"))
    assert said[0] == said[1]


def test_read_chain_without_a_chain_source_raises() -> None:
    with pytest.raises(ChainAccessError, match="no chain_source"):
        asyncio.run(AgentCoreEngine(greeting()).read_chain("r", "auditor"))


def test_a_chain_source_may_be_asynchronous() -> None:
    class Source:
        async def read(self, run_id: str, principal: object, /) -> tuple[Any, ...]:
            await asyncio.sleep(0)
            return ()

    node = Node(id="only", starts_round=True, routes=[route.deliver("answer")])
    engine = AgentCoreEngine(define_workflow(id="w", nodes=[node], chain_source=Source()))
    assert engine.read_chain_sync("r", "p") == ()


# Runtime


def test_the_runtime_is_given_to_nodes_and_serialised_nowhere() -> None:
    runtime = object()
    told: list[Any] = []

    def run(state: Any, ctx: NodeContext[object]) -> dict[str, Any]:
        assert ctx.runtime is runtime
        return {"answer": 1}

    async def main() -> Any:
        handle = AgentCoreEngine(one_node(run), on_event=told.append).start({}, runtime=runtime)
        await handle
        return handle.result_so_far

    run_so_far = asyncio.run(main())
    assert "object object" not in repr([told, run_so_far.to_dict()])


# per node


def flaky(times: int) -> Run:
    left = times

    def run(state: Any) -> dict[str, Any]:
        nonlocal left
        if left:
            left -= 1
            raise ConnectionError("gone")
        return {"answer": 1}

    return run


def test_there_is_no_retry_and_no_timeout_by_default() -> None:
    node = Node(id="a")
    assert (node.retry, node.timeout) == (None, None)
    with pytest.raises(NodeError):
        run_one(flaky(1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrap", [lambda run: run, asynchronous], ids=["sync", "async"])
def test_a_node_is_retried_as_often_as_declared(mode: str, wrap: Callable[[Run], Run]) -> None:
    retry = Retry(attempts=3, delay=0.001)
    told: list[Any] = []
    engine = AgentCoreEngine(one_node(wrap(flaky(2)), retry=retry), on_event=told.append)
    assert drive(engine, mode, {}) == 1
    retried = [(event.attempt, event.delay) for event in told if event.type == "node_retried"]
    assert retried == [(2, 0.001), (3, 0.002)]
    attempts = [event.attempt for event in told if event.type == "node_started"]
    assert attempts == [1, 2, 3]
    failed = AgentCoreEngine(one_node(wrap(flaky(3)), retry=retry))
    with pytest.raises(NodeError, match="ConnectionError"):
        drive(failed, mode, {})


def test_only_the_declared_exceptions_are_retried() -> None:
    retry = Retry(attempts=3, delay=0.0, on=TimeoutError)
    with pytest.raises(NodeError, match="ConnectionError"):
        run_one(flaky(1), retry=retry)


def test_every_attempt_has_the_same_key_and_a_fresh_state() -> None:
    seen: list[Any] = []

    def run(state: dict[str, Any], ctx: NodeContext[Any]) -> dict[str, Any]:
        seen.append((ctx.idempotency_key.partition(":")[2], dict(state)))
        state["x"] = "changed"
        if len(seen) < 3:
            raise ValueError
        return {"answer": 1}

    run_one(run, {"x": 1}, retry=Retry(attempts=3, delay=0.0))
    assert seen == [("0:only", {"x": 1})] * 3


@pytest.mark.parametrize("mode", MODES)
def test_a_node_that_outlives_its_time_has_failed(mode: str) -> None:
    ended: list[str] = []

    async def slow(state: Any) -> dict[str, Any]:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("slow")
        return {"answer": 1}

    with pytest.raises(NodeError, match=r"TimeoutError: it took longer than 0\.01 s") as caught:
        drive(AgentCoreEngine(one_node(slow, timeout=0.01)), mode, {})
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert ended == ["slow"]


@pytest.mark.parametrize("mode", MODES)
def test_a_synchronous_node_has_its_time_too_and_is_abandoned(mode: str) -> None:
    import threading

    release = threading.Event()

    def slow(state: Any, ctx: NodeContext[Any]) -> dict[str, Any]:
        release.wait(30)
        ctx.emit("late")
        return {"answer": 1}

    told: list[Any] = []
    engine = AgentCoreEngine(one_node(slow, timeout=0.02), on_event=told.append)
    with pytest.raises(NodeError, match="TimeoutError"):
        drive(engine, mode, {})
    release.set()
    assert [event.node_id for event in told if event.type == "node_abandoned"] == ["only"]
    assert told[-1].type == "run_finished"


def test_a_synchronous_node_within_its_time_may_emit_from_its_thread() -> None:
    def quick(state: Any, ctx: NodeContext[Any]) -> dict[str, Any]:
        ctx.emit("here")
        return {"answer": 1}

    told: list[Any] = []
    assert AgentCoreEngine(one_node(quick, timeout=30), on_event=told.append).run_sync({}) == 1
    types = [event.type for event in told]
    assert types.index("node_started") < types.index("node_emitted") < types.index("node_finished")


def test_time_outs_are_retried_and_routed_like_other_exceptions() -> None:
    async def slow(state: Any) -> Any:
        await asyncio.sleep(60)

    retry = Retry(attempts=2, delay=0.0, on=TimeoutError)
    nodes = [
        Node(id="first", starts_round=True, run=slow, timeout=0.01, retry=retry,
             routes=[route.to_if_error("a"), route.deliver("x")]),
        Node(id="a", routes=[route.deliver("error")]),
    ]  # fmt: skip
    told: list[Any] = []
    engine = AgentCoreEngine(define_workflow(id="w", nodes=nodes), on_event=told.append)
    assert engine.run_sync({}) == "TimeoutError: it took longer than 0.01 seconds"
    assert [event.type for event in told].count("node_failed") == 2


# copies


def test_changing_what_a_node_got_or_returned_changes_nothing_of_the_engines() -> None:
    kept: list[dict[str, Any]] = []

    def run(state: dict[str, Any]) -> dict[str, Any]:
        state["given"] = "changed"
        update = {"answer": 1}
        kept.extend([state, update])
        return update

    def check(state: dict[str, Any]) -> None:
        for one in kept:
            one["answer"] = one["given"] = "changed later"
        assert state == {"given": [1], "answer": 1}

    given = {"given": [1]}
    nodes = [
        Node(id="first", starts_round=True, run=run, routes=[route.to("second")]),
        Node(id="second", run=check, routes=[route.deliver("answer")]),
    ]
    assert AgentCoreEngine(define_workflow(id="w", nodes=nodes)).run_sync(given) == 1
    assert given == {"given": [1]}


def test_isolate_keeps_the_engine_from_changes_inside_values_too() -> None:
    kept: list[Any] = []

    def run(state: dict[str, Any]) -> dict[str, Any]:
        state["given"].append("changed")
        update = {"answer": [1]}
        kept.extend([state["given"], update["answer"]])
        return update

    def check(state: dict[str, Any]) -> None:
        for one in kept:
            one.append("later")
        assert state == {"given": [1], "answer": [1]}

    given = {"given": [1]}
    nodes = [
        Node(id="first", starts_round=True, run=run, routes=[route.to("second")]),
        Node(id="second", run=check, routes=[route.deliver("answer")]),
    ]
    workflow = define_workflow(id="w", nodes=nodes)
    assert AgentCoreEngine(workflow, isolate=True).run_sync(given) == [1]
    assert given == {"given": [1]}
    with pytest.raises(NodeError):  # shallow copies share what is inside
        AgentCoreEngine(workflow).run_sync(given)


def test_an_update_that_cannot_be_copied_deeply_is_a_contract_error() -> None:
    import threading

    workflow = one_node(lambda state: {"answer": threading.Lock()})
    with pytest.raises(ContractError, match="isolate"):
        AgentCoreEngine(workflow, isolate=True).run_sync({})


# errors


def test_errors_name_workflow_revision_node_field_and_round() -> None:
    node = Node(id="greet", starts_round=True, requires=["name"], routes=[route.deliver("name")])
    workflow = define_workflow(id="greeting", nodes=[node], revision="r7")
    with pytest.raises(ContractError) as caught:
        AgentCoreEngine(workflow).run_sync({})
    error = caught.value
    place = (error.workflow_id, error.revision, error.node_id, error.field, error.round)
    assert place == ("greeting", "r7", "greet", "name", 1)
    for part in ("'greeting'", "'r7'", "'greet'", "'name'", "round 1"):
        assert part in str(error)


def test_every_public_function_of_routes_is_documented() -> None:
    for name in route.__all__:
        assert inspect.getdoc(getattr(route, name)) or name == "Reducer"
