"""Runs: random graphs against a naive interpreter, many at once, very long ones, cut ones."""

from __future__ import annotations

import asyncio
import gc
import random
import signal
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graph_models import FIELDS, Ended, Interpreter, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from turnwarden.engine import (
    AgentCoreEngine,
    ContractError,
    GraphError,
    Node,
    NodeContext,
    NodeError,
    Retry,
    RoundLimitError,
    RunInterrupted,
    RunningLoopError,
    RunStatus,
    define_workflow,
    fan_out,
    route,
    run_so_far,
)

KINDS = {NodeError: "node", ContractError: "contract", RoundLimitError: "rounds"}


def ended(engine: AgentCoreEngine[Any, Any, Any], state: dict[str, Any]) -> Ended:
    """How a run of the engine ended, in the interpreter's terms."""

    async def main() -> Ended:
        handle = engine.start(state)
        run = await handle.wait()
        path = [event.node_id for event in run.events if event.type == "node_started"]
        assert [event.sequence for event in run.events] == list(range(len(run.events)))
        times = [event.timestamp for event in run.events]
        assert times == sorted(times)
        error = None if handle.task.cancelled() else handle.task.exception()
        if isinstance(error, GraphError):
            assert run.events[-1].type == "run_finished"
            how = KINDS[type(error)]
            return Ended(how, None, error.node_id, error.field, run.state, path, run.rounds)
        assert error is None
        delivered = run.events[-2]
        return Ended(
            "delivered", handle.task.result(), run.node_id, delivered.field, run.state, path,
            run.rounds,
        )  # fmt: skip

    return asyncio.run(main())


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32))
def test_random_graphs_run_as_the_naive_interpreter_says(seed: int) -> None:
    source = random.Random(seed)
    nodes = random_graph(source)
    state = {name: source.choice([None, 0, 1]) for name in FIELDS if source.random() < 0.8}
    expected = Interpreter(nodes, max_rounds=6).run(state)
    workflow = define_workflow(id="w", nodes=nodes)
    assert ended(AgentCoreEngine(workflow, max_rounds=6), state) == expected


def test_the_random_graphs_end_in_every_way_and_split_and_err() -> None:
    seen: set[str] = set()
    for seed in range(300):
        source = random.Random(seed)
        nodes = random_graph(source)
        state = {name: source.choice([None, 0, 1]) for name in FIELDS if source.random() < 0.8}
        result = Interpreter(nodes, max_rounds=6).run(state)
        seen.add(result.how)
        seen |= {"split"} if any("." in name for name in result.path) else set()
        seen |= {"erred"} if result.state.get("error") and result.how == "delivered" else set()
    assert seen == {"delivered", "node", "contract", "rounds", "split", "erred"}


# Many at once, and very long ones


def chain(length: int, run: Callable[..., Any]) -> Any:
    nodes = [
        Node(
            id=f"n{n}", starts_round=n == 0, run=run,
            routes=[route.to(f"n{n + 1}") if n + 1 < length else route.deliver("count")],
        )
        for n in range(length)
    ]  # fmt: skip
    return define_workflow(id="chain", nodes=nodes)


def test_a_thousand_runs_at_once_do_not_disturb_each_other() -> None:
    running = most = 0

    async def step(state: dict[str, Any], ctx: NodeContext[Any]) -> dict[str, Any]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        assert ctx.idempotency_key.startswith(f"run-{state['name']}:")
        return {"count": state["count"] + 1}

    engine = AgentCoreEngine(chain(10, step), guard={})

    async def main() -> list[Any]:
        return await asyncio.gather(
            *(engine.run({"name": n, "count": n}, run_id=f"run-{n}") for n in range(1000))
        )

    assert asyncio.run(main()) == [n + 10 for n in range(1000)]
    assert most == 1000


@pytest.mark.parametrize("guarded", [False, True])
def test_memory_stays_flat_over_ten_thousand_rounds(guarded: bool) -> None:
    sizes: list[int] = []

    def work(state: dict[str, Any]) -> dict[str, Any]:
        count = state["count"] + 1
        if count in (2_000, 10_000):
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
        return {"count": count, "text": "x" * 1000 + str(count)}

    node = Node(
        id="again", starts_round=True, run=work,
        routes=[route.deliver_if(lambda state: state["count"] == 10_000, "count"),
                route.to("again")],
    )  # fmt: skip
    limits = {"warning_threshold": 19_000, "soft_limit": 19_500, "hard_limit": 20_000}
    options: Any = {"guard": {"recursion": limits}} if guarded else {"max_rounds": 10_000}
    engine = AgentCoreEngine(define_workflow(id="w", nodes=[node]), keep_events=100, **options)
    tracemalloc.start()
    try:
        assert engine.run_sync({"count": 0}) == 10_000
    finally:
        tracemalloc.stop()
    early, late = sizes
    assert late < early + 100_000, (early, late)  # the first 2,000 rounds alone held 2 MB of text


def test_a_run_keeps_its_last_events_and_their_numbers() -> None:
    node = Node(id="again", starts_round=True, run=lambda state: None, routes=[route.to("again")])
    engine = AgentCoreEngine(define_workflow(id="w", nodes=[node]), max_rounds=500, keep_events=10)
    with pytest.raises(RoundLimitError) as caught:
        engine.run_sync({})
    assert caught.value.run is not None
    events = caught.value.run.events
    assert len(events) == 10
    assert events[-1].type == "run_finished"
    assert [event.sequence for event in events] == list(range(1992, 2002))


def test_nodes_that_only_route_are_forgotten_and_cancelled_too() -> None:
    nodes = [
        Node(id="a", starts_round=True, run=lambda state: None, routes=[route.to("b")]),
        Node(id="b", starts_round=True, routes=[route.to("b")]),
    ]
    workflow = define_workflow(id="w", nodes=nodes)

    async def main() -> Any:
        engine = AgentCoreEngine(workflow, max_rounds=10**9, keep_events=10)
        handle = engine.start({})
        for _ in range(100):
            await asyncio.sleep(0)
        entries = handle._execution.log._entries  # type: ignore[attr-defined]
        assert handle.result_so_far.rounds > 1000
        assert len(entries) < 500
        handle.cancel()
        return await handle.wait()

    assert asyncio.run(main()).status is RunStatus.CANCELLED


def test_a_run_that_is_over_is_let_go_of() -> None:
    class Services:
        pass

    services = Services()
    known = weakref.ref(services)
    AgentCoreEngine(chain(3, lambda state: {"count": 1})).run_sync({}, runtime=services)
    del services
    gc.collect()
    assert known() is None


# Without and with an event loop


def test_synchronous_nodes_run_without_an_event_loop() -> None:
    def check(state: Any) -> dict[str, Any]:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return {"count": 1}

    assert AgentCoreEngine(chain(3, check)).run_sync({}) == 1
    nodes = [
        Node(id="a", starts_round=True, run=check, retry=Retry(attempts=2), routes=[route.to("b")]),
        Node(id="b", run=chain(2, check), routes=[fan_out(["c", "d"], join="e")]),
        Node(id="c", run=check),
        Node(id="d", run=chain(1, lambda state: {"other": 1}).nodes[0].run),
        Node(id="e", routes=[route.deliver("count")]),
    ]
    assert AgentCoreEngine(define_workflow(id="w", nodes=nodes)).run_sync({}) == 1


def test_run_sync_refuses_inside_a_running_loop() -> None:
    engine = AgentCoreEngine(chain(1, lambda state: {"count": 1}))

    async def main() -> None:
        with pytest.raises(RunningLoopError, match=r"await engine.run\(...\)"):
            engine.run_sync({})

    asyncio.run(main())


def test_ctrl_c_leaves_the_run_so_far() -> None:
    def interrupted(state: dict[str, Any]) -> dict[str, Any]:
        if state["count"] == 2:
            signal.raise_signal(signal.SIGINT)
        return {"count": state["count"] + 1}

    with pytest.raises(RunInterrupted) as caught:
        AgentCoreEngine(chain(5, interrupted)).run_sync({"count": 0})
    assert (caught.value.run.state, caught.value.run.status) == ({"count": 2}, "cancelled")


def test_one_engine_may_run_in_many_threads() -> None:
    engine = AgentCoreEngine(chain(50, lambda state: {"count": state["count"] + 1}))
    results: list[int] = []

    def work(start: int) -> None:
        results.extend(engine.run_sync({"count": start + n}) for n in range(20))

    threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(100 * t + n + 50 for t in range(8) for n in range(20))


# Cut runs


def awaiting_workflow(ended_nodes: list[str]) -> Any:
    """A workflow with awaits of every kind: nodes, retries, timeouts, branches, a sub-workflow."""

    def waiting(name: str, update: Any = None, fails: bool = False) -> Callable[..., Any]:
        left = 1

        async def run(state: Any) -> Any:
            nonlocal left
            try:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                if fails and left:
                    left -= 1
                    raise ConnectionError("gone")
                return update
            finally:
                ended_nodes.append(name)

        return run

    inner = define_workflow(
        id="inner",
        nodes=[Node(id="i", starts_round=True, run=waiting("i", {"inner": 1}),
                    routes=[route.deliver("inner")])],
    )  # fmt: skip
    retry = Retry(attempts=2, delay=0.0)
    return define_workflow(
        id="w",
        nodes=[
            Node(id="a", starts_round=True, run=waiting("a"), routes=[route.to("b")]),
            Node(id="b", run=waiting("b", fails=True), retry=retry, routes=[route.to("c")]),
            Node(id="c", run=waiting("c"), timeout=60.0, routes=[route.to("d")]),
            Node(id="d", run=inner, routes=[fan_out(["e", "f", "g"], join="h")]),
            Node(id="e", run=waiting("e")),
            Node(id="f", run=waiting("f"), timeout=60.0),
            Node(id="g", run=inner),
            Node(id="h", run=waiting("h", {"done": True}), routes=[route.deliver("done")]),
        ],
    )


def test_cancellation_at_every_await_leaves_no_task_behind() -> None:
    async def cut_after(turns: int, how: str) -> bool:
        """Cancel after so many turns of the event loop; whether there was something to cancel."""
        ended_nodes: list[str] = []
        engine = AgentCoreEngine(awaiting_workflow(ended_nodes), guard={})
        handle = engine.start({})
        for _ in range(turns):
            await asyncio.sleep(0)
        if handle.done():
            assert await handle is True
            return False
        if how == "handle":
            handle.cancel()
        else:
            handle.task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await handle
        assert asyncio.all_tasks() == {asyncio.current_task()}
        run = handle.result_so_far
        assert (run.status, run.reason) == (RunStatus.CANCELLED, "cancelled")
        if run.events:  # it had begun
            assert run.events[-1].type == "run_finished"
            assert run_so_far(caught.value).state == run.state
        started = [event for event in run.events if event.type == "node_started"]
        assert len(ended_nodes) <= len(started) + 2  # those of the inner runs
        return True

    for how in ("handle", "task"):
        turns = 0
        while asyncio.run(cut_after(turns, how)):
            turns += 1
        assert turns > 15


def test_a_timeout_around_a_run_finds_what_was_done() -> None:
    async def slow(state: Any) -> None:
        await asyncio.sleep(60)

    nodes = [
        Node(id="a", starts_round=True, run=lambda state: {"a": 1}, routes=[route.to("b")]),
        Node(id="b", run=slow, routes=[route.deliver("a")]),
    ]

    async def main() -> Any:
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.01):
                await AgentCoreEngine(define_workflow(id="w", nodes=nodes)).run({})
        return run_so_far(caught.value)

    assert asyncio.run(main()).state == {"a": 1}


def test_a_run_of_synchronous_nodes_can_be_cancelled_too() -> None:
    async def main() -> Any:
        node = Node(id="n", starts_round=True, run=lambda state: None, routes=[route.to("n")])
        engine = AgentCoreEngine(define_workflow(id="w", nodes=[node]), max_rounds=10**9)
        handle = engine.start({})
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        handle.cancel()
        return await handle.wait()

    assert asyncio.run(main()).status is RunStatus.CANCELLED


def test_a_run_cancelled_before_it_began_is_cancelled() -> None:
    async def main() -> Any:
        handle = AgentCoreEngine(chain(2, lambda state: {"count": 1})).start({"x": 1})
        handle.cancel()
        return await handle.wait()

    run = asyncio.run(main())
    assert (run.status, run.state, run.steps) == (RunStatus.CANCELLED, {"x": 1}, 0)


def test_a_node_in_a_thread_sees_that_the_run_was_cancelled() -> None:
    seen = threading.Event()
    began = threading.Event()

    def work(state: Any, ctx: NodeContext[Any]) -> None:
        began.set()
        while not ctx.cancelled:
            pass
        seen.set()

    async def main() -> None:
        node = Node(id="n", starts_round=True, run=work, timeout=60, routes=[route.deliver("x")])
        handle = AgentCoreEngine(define_workflow(id="w", nodes=[node])).start({})
        await asyncio.to_thread(began.wait, 30)
        handle.cancel()
        with pytest.raises(asyncio.CancelledError):
            await handle

    asyncio.run(main())
    assert seen.wait(30)


# Streams


def test_stream_gives_the_events_as_they_come() -> None:
    async def main() -> list[tuple[str, int]]:
        entered = 0

        def step(state: Any) -> dict[str, Any]:
            nonlocal entered
            entered += 1
            return {"count": entered}

        stream = AgentCoreEngine(chain(3, step)).stream({})
        seen = [(event.type, entered) async for event in stream]
        assert stream.result_so_far.result == 3
        return seen

    seen = asyncio.run(main())
    started = [entered for type, entered in seen if type == "node_finished"]
    assert started == [1, 2, 3]  # told before the next node ran, although none of them waits


def test_a_stream_raises_the_error_of_the_run_after_its_last_event() -> None:
    async def main() -> list[str]:
        node = Node(id="n", starts_round=True, routes=[route.deliver("x")])
        stream = AgentCoreEngine(define_workflow(id="w", nodes=[node])).stream({})
        seen = [(await anext(stream)).type for _ in range(4)]
        with pytest.raises(ContractError):
            await anext(stream)
        return seen

    assert asyncio.run(main())[-1] == "run_finished"


def test_leaving_a_stream_ends_the_run() -> None:
    async def main() -> None:
        ended_nodes: list[str] = []
        async with AgentCoreEngine(awaiting_workflow(ended_nodes)).stream({}) as stream:
            async for event in stream:
                if event.type == "node_finished":
                    break
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert stream.result_so_far.status is RunStatus.CANCELLED

    asyncio.run(main())


def test_a_run_waits_for_a_reader_that_is_far_behind() -> None:
    async def main() -> int:
        node = Node(id="n", starts_round=True, run=lambda state: None, routes=[route.to("n")])
        engine = AgentCoreEngine(define_workflow(id="w", nodes=[node]), max_rounds=10**9)
        async with engine.stream({}) as stream:
            await anext(stream)
            for _ in range(2000):
                await asyncio.sleep(0)
            return stream.result_so_far.rounds

    assert asyncio.run(main()) < 200


# What a run says of itself


def test_a_run_so_far_is_plain_data_and_pickles() -> None:
    import json
    import pickle

    node = Node(id="n", starts_round=True, run=lambda state: {"a": 1}, routes=[route.to("n")])
    workflow = define_workflow(id="w", nodes=[node])
    with pytest.raises(GraphError) as caught:
        AgentCoreEngine(workflow, guard={}).run_sync({})
    run = caught.value.run
    assert run is not None
    again = pickle.loads(pickle.dumps(run))
    assert again == run
    assert again.events == run.events
    assert again.guard.current_iteration == run.guard.current_iteration  # type: ignore[union-attr]
    assert json.loads(json.dumps(run.to_dict()))["status"] == "stopped"
    error = pickle.loads(pickle.dumps(caught.value))
    assert (str(error), error.node_id, error.reason) == (str(caught.value), "n", run.reason)


def test_engine_arguments_are_checked() -> None:
    workflow = chain(1, lambda state: None)
    with pytest.raises(TypeError, match="define_workflow"):
        AgentCoreEngine("w")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_rounds"):
        AgentCoreEngine(workflow, max_rounds=0)
    with pytest.raises(ValueError, match="max_rounds"):
        AgentCoreEngine(workflow, max_rounds=True)
    with pytest.raises(TypeError, match="guard"):
        AgentCoreEngine(workflow, guard=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="layer"):
        AgentCoreEngine(workflow, layer=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="isolate must be a bool, not str"):
        AgentCoreEngine(workflow, isolate="yes")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="run_id must be a str or None, not int"):
        AgentCoreEngine(workflow).run_sync({}, run_id=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="nodes must be an iterable of Nodes, not NoneType"):
        define_workflow(id="w", nodes=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="nodes must be an iterable of ids of nodes, not int"):
        route.fan_out(5, join="a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="merge must be a Mapping, not str"):
        route.fan_out(["a"], join="a", merge="x")  # type: ignore[arg-type]


# The example


def test_the_example_shows_a_warned_agent_that_answers() -> None:
    example = Path(__file__).parent.parent / "examples" / "graph_agent.py"
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "guard_spoke  loop.exact" in ran.stdout
    assert "-- The runbook does not say." in ran.stdout
    assert "flowchart TD" in ran.stdout


def test_update_that_cannot_be_read_is_a_contract_error():
    class Unreadable(dict):
        def __iter__(self):
            raise RuntimeError("gone")

        def keys(self):
            raise RuntimeError("gone")

    node = Node(
        id="read",
        starts_round=True,
        run=lambda state: Unreadable(answer=1),
        routes=[route.deliver("answer")],
    )
    with pytest.raises(ContractError, match="update cannot be read: gone") as caught:
        AgentCoreEngine(define_workflow(id="reading", nodes=[node])).run_sync({})
    error = caught.value
    assert (error.workflow_id, error.node_id, error.round) == ("reading", "read", 1)
    assert error.run is not None
    assert error.run.reason == "contract.error"
    assert isinstance(error.__cause__, RuntimeError)


def test_a_state_that_cannot_be_isolated_is_refused_by_name() -> None:
    workflow = define_workflow(
        id="flow", nodes=[Node(id="a", starts_round=True, routes=[route.deliver("x")])]
    )
    with pytest.raises(TypeError, match="cannot be copied for a run of 'flow'"):
        AgentCoreEngine(workflow, isolate=True).run_sync({"x": threading.Lock()})
