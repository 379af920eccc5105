"""The graph engine, side by side: a step, many runs at once, the memory of a run that waits.

A step is a node that does nothing: what is measured is what the engines add. All runs are chains of
nodes; a peer's chain is made as its documentation does, with its own state and without persistence,
tracking or tracing.

The peers are in the group `bench-graph`; one that is not installed is left out.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import importlib.metadata
import importlib.util
import itertools
import logging
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

from turnwarden.engine import AgentCoreEngine, Node, define_workflow, route

from benches.compare.measure import Effort, measure, seconds, table

STEPS = 10
IN_TURN = 20
RUNS = 1000
PARKED = 500
STEP_BARS = {"sync": 4e-6, "async": 6e-6}
RUNS_BAR = 15_000
MEMORY_BAR = 5_000

Start = Callable[[], Awaitable[Any]]
"""Begins a run, and waits for its end."""
NAMES = [f"n{n}" for n in range(STEPS)]


def nothing(state: Any) -> None:
    pass


async def nothing_later(state: Any) -> None:
    pass


# Ours


def chain(run: Callable[[Any], Any]) -> AgentCoreEngine[Any, Any, Any]:
    following = [route.to(name) for name in NAMES[1:]] + [route.deliver("x")]
    nodes = [
        Node(id=name, starts_round=name == "n0", run=run, routes=[after])
        for name, after in zip(NAMES, following, strict=True)
    ]
    return AgentCoreEngine(define_workflow(id="chain", nodes=nodes))


def ours_sync() -> Callable[[], object]:
    engine = chain(nothing)
    return lambda: engine.run_sync({"x": 1})


def ours(wait: Callable[[Any], Awaitable[None]]) -> Start:
    engine = chain(wait)
    return lambda: engine.run({"x": 1})


# Peers


def transitions_sync() -> Callable[[], object]:
    from transitions import Machine

    class Model:
        def step(self) -> None:
            pass

    states = [*NAMES, "end"]

    machine = Machine(None, states, initial="n0", auto_transitions=False)
    machine.add_ordered_transitions(states, trigger="go", loop=False, after="step")

    def run() -> None:
        model: Any = Model()
        machine.add_model(model)
        for _ in NAMES:
            model.go()
        machine.remove_model(model)

    return run


def transitions_async(wait: Callable[[Any], Awaitable[None]]) -> Start:
    """One machine for all runs, a model for each."""
    from transitions.extensions.asyncio import AsyncMachine

    class Model:
        async def step(self) -> None:
            await wait(None)

    states = [*NAMES, "end"]
    machine = AsyncMachine(None, states, initial="n0", auto_transitions=False)
    machine.add_ordered_transitions(states, trigger="go", loop=False, after="step")

    async def run() -> None:
        model: Any = Model()
        machine.add_model(model)
        for _ in NAMES:
            await model.go()
        machine.remove_model(model)

    return run


def burr_application(actions: list[Any]) -> Any:
    from burr.core import ApplicationBuilder

    builder = ApplicationBuilder().with_actions(**dict(zip(NAMES, actions, strict=True)))
    pairs = itertools.pairwise(NAMES)
    return builder.with_transitions(*pairs).with_state(x=1).with_entrypoint("n0").build()


def burr_sync() -> Callable[[], object]:
    from burr.core import State, action

    @action(reads=["x"], writes=[])
    def step(state: State) -> State:
        return state

    def run() -> None:
        burr_application([step] * STEPS).run(halt_after=[NAMES[-1]])

    return run


def burr_async(wait: Callable[[Any], Awaitable[None]]) -> Start:
    from burr.core import State, action

    @action(reads=["x"], writes=[])
    async def step(state: State) -> State:
        await wait(None)
        return state

    async def run() -> None:
        await burr_application([step] * STEPS).arun(halt_after=[NAMES[-1]])

    return run


def pydantic_graph(wait: Callable[[Any], Awaitable[None]]) -> Start:
    from pydantic_graph import GraphBuilder, StepContext

    builder = GraphBuilder(state_type=dict, output_type=type(None))

    async def step(ctx: StepContext[dict[str, Any], None, None]) -> None:
        await wait(None)

    steps = [builder.step(step, node_id=name) for name in NAMES]
    builder.add(builder.edge_from(builder.start_node).to(steps[0]))
    for one, following in itertools.pairwise(steps):
        builder.add(builder.edge_from(one).to(following))
    builder.add(builder.edge_from(steps[-1]).to(builder.end_node))
    graph = builder.build()
    return lambda: graph.run(state={"x": 1})


def langgraph_compiled(step: Callable[[Any], Any]) -> Any:
    from langgraph.graph import END, START, StateGraph
    from typing_extensions import TypedDict

    class State(TypedDict):
        x: int

    graph = StateGraph(State)
    for name in NAMES:
        graph.add_node(name, step)
    for one, following in zip([START, *NAMES], [*NAMES, END], strict=True):
        graph.add_edge(one, following)
    return graph.compile()


def langgraph_sync() -> Callable[[], object]:
    compiled = langgraph_compiled(lambda state: {"x": 1})
    return lambda: compiled.invoke({"x": 1})


def langgraph(wait: Callable[[Any], Awaitable[None]]) -> Start:
    async def step(state: Any) -> dict[str, int]:
        await wait(None)
        return {"x": 1}

    compiled = langgraph_compiled(step)
    return lambda: compiled.ainvoke({"x": 1})


def llama_index(wait: Callable[[Any], Awaitable[None]]) -> Start:
    """One step that is given its own event again: a workflow has a class for each event."""
    from workflows import Workflow, step
    from workflows.events import Event, StartEvent, StopEvent

    class Walk(Event):
        left: int

    class Chain(Workflow):
        @step
        async def begin(self, ev: StartEvent) -> Walk:
            await wait(None)
            return Walk(left=STEPS - 1)

        @step
        async def walk(self, ev: Walk) -> Walk | StopEvent:
            if not ev.left:
                return StopEvent(result=1)
            await wait(None)
            return Walk(left=ev.left - 1)

    namespace = {"Walk": Walk, "StartEvent": StartEvent, "StopEvent": StopEvent}
    globals().update(namespace)  # the annotations are texts, and looked up there

    async def run() -> None:
        await Chain(timeout=None).run()

    return run


SYNC: dict[str, tuple[str, Callable[[], Callable[[], object]]]] = {
    "transitions": ("transitions", transitions_sync),
    "Burr": ("burr", burr_sync),
    "LangGraph": ("langgraph", langgraph_sync),
}
ASYNC: dict[str, tuple[str, Callable[[Callable[[Any], Awaitable[None]]], Start]]] = {
    "transitions": ("transitions", transitions_async),
    "Burr": ("burr", burr_async),
    "pydantic-graph": ("pydantic_graph", pydantic_graph),
    "LangGraph": ("langgraph", langgraph),
    "LlamaIndex Workflows": ("workflows", llama_index),
}
PACKAGES = ["transitions", "apache-burr", "pydantic-graph", "langgraph", "llama-index-workflows"]


def is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def in_turn(runner: asyncio.Runner, start: Start) -> Callable[[], object]:
    """Runs one after the other: to wake up the loop costs as much as a run does."""

    async def run() -> None:
        for _ in range(IN_TURN):
            await start()

    loop = runner.get_loop()
    return lambda: loop.run_until_complete(run())


def at_once(runner: asyncio.Runner, start: Start) -> Callable[[], object]:
    """A thousand runs at once."""

    async def run() -> None:
        await asyncio.gather(*(start() for _ in range(RUNS)))

    loop = runner.get_loop()
    return lambda: loop.run_until_complete(run())


def called() -> None:
    for _ in NAMES:
        nothing(None)


async def awaited() -> None:
    for _ in NAMES:
        await nothing_later(None)


def print_steps(runner: asyncio.Runner, effort: Effort) -> None:
    sync = {"AgentCoreEngine": ours_sync(), "plain call": called}
    sync |= {name: make() for name, (module, make) in SYNC.items() if is_there(module)}
    starts = {"AgentCoreEngine": ours(nothing_later), "plain await": awaited}
    for name, (module, make) in ASYNC.items():
        if is_there(module):
            starts[name] = make(nothing_later)
    later = {name: in_turn(runner, start) for name, start in starts.items()}
    for kind, contenders, runs in (("sync", sync, 1), ("async", later, IN_TURN)):
        times = measure(contenders, effort)
        best = {name: time / STEPS / runs for name, time in times.items()}
        reference = best["AgentCoreEngine"]
        bar = STEP_BARS[kind]
        rows = [
            [name, seconds(time), f"{time / reference:.2g}x", ""] for name, time in best.items()
        ]
        rows[0][3] = f"{seconds(bar)}: {'met' if reference < bar else 'MISSED'}"
        print(table([f"{kind} step, in runs of {STEPS}", "time", "of ours", "bar"], rows), "\n")


async def pause(_: Any) -> None:
    await asyncio.sleep(0)


def print_runs(runner: asyncio.Runner, effort: Effort) -> None:
    for title, wait in (("no-op", nothing_later), ("waiting a turn of the loop", pause)):
        starts = {"AgentCoreEngine": ours(wait)}
        starts |= {name: make(wait) for name, (module, make) in ASYNC.items() if is_there(module)}
        contenders = {name: at_once(runner, start) for name, start in starts.items()}
        best = measure(contenders, effort)
        rows = [[name, f"{RUNS / time:,.0f}", ""] for name, time in best.items()]
        rate = RUNS / best["AgentCoreEngine"]
        rows[0][2] = f"{RUNS_BAR:,}: {'met' if rate >= RUNS_BAR else 'MISSED'}"
        head = f"{RUNS:,} runs at once, {STEPS} steps, {title}"
        print(table([head, "runs a second", "bar"], rows), "\n")


def parked(make: Callable[[Callable[[Any], Awaitable[None]]], Start], place: int) -> float:
    """Bytes that a run holds that waits in its n-th node: its task included."""

    async def main() -> float:
        never = asyncio.Event()
        arrived = asyncio.Semaphore(0)
        calls: contextvars.ContextVar[list[int]] = contextvars.ContextVar("calls")

        async def wait(_: Any) -> None:
            mine = calls.get()
            mine[0] += 1
            if mine[0] == place:
                arrived.release()
                await never.wait()
            await asyncio.sleep(0)

        start = make(wait)

        async def run() -> None:
            calls.set([0])
            await start()

        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        tasks = [asyncio.create_task(run()) for _ in range(PARKED)]
        async with asyncio.timeout(60):
            for _ in tasks:
                await arrived.acquire()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return held / PARKED

    return asyncio.run(main())


def waiting_alone(wait: Callable[[Any], Awaitable[None]]) -> Start:
    """No engine at all: what a task costs, and the counting here."""
    return lambda: wait(None)


def print_memory() -> None:
    makers = {"AgentCoreEngine": ours}
    makers |= {name: make for name, (module, make) in ASYNC.items() if is_there(module)}
    rows: list[list[str]] = []
    for name, make in makers.items():
        first, fifth = parked(make, 1), parked(make, 5)
        rows.append([name, f"{first / 1000:.1f} KB", f"{fifth / 1000:.1f} KB", ""])
        if make is ours:
            rows[0][3] = f"{MEMORY_BAR / 1000:g} KB: {'met' if first < MEMORY_BAR else 'MISSED'}"
    rows.append(["no engine", f"{parked(waiting_alone, 1) / 1000:.1f} KB", "", ""])
    print(table(["a run that waits", "in its first node", "in its fifth", "bar"], rows), "\n")


def main(effort: Effort) -> None:
    """Measure and print."""
    logging.disable(logging.WARNING)
    with asyncio.Runner() as runner:
        print_steps(runner, effort)
        print_runs(runner, effort)
    print_memory()
    there = [name for name in PACKAGES if has_distribution(name)]
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in there))
    if missing := [name for name in PACKAGES if name not in there]:
        print(f"\nNot installed (`pip install --group bench-graph`): {', '.join(missing)}")


def has_distribution(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    from benches.compare.measure import FULL

    main(FULL)
