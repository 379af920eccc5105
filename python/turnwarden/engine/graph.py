"""The graph engine: runs workflows of nodes and routes.

    engine = AgentCoreEngine(workflow)
    result = await engine.run(state)

An engine is configuration, not state: one may have any number of runs at once. A step costs a few
microseconds beside what the node itself does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar, cast

from turnwarden.engine.checking import check_callable, check_limit, check_type, guard_config
from turnwarden.engine.driving import event_loop_needed, is_awaitable, refuse_running_loop, run_sync
from turnwarden.engine.errors import RunInterrupted
from turnwarden.engine.events import Event, EventSink
from turnwarden.engine.graph_definition import AgentWorkflowDefinition
from turnwarden.engine.graph_errors import ChainAccessError
from turnwarden.engine.graph_run import GraphRun
from turnwarden.engine.graph_running import EngineSettings, GraphExecution
from turnwarden.engine.graph_steps import StepLayer
from turnwarden.engine.handles import TaskHandle
from turnwarden.engine.streams import EventStream
from turnwarden.guards import WorkflowGuard, WorkflowGuardConfig

__all__ = ["AgentCoreEngine", "GraphRunHandle"]

StateT = TypeVar("StateT")
ResultT = TypeVar("ResultT")
RuntimeT = TypeVar("RuntimeT")

_NO_RUNTIME: Final = cast("Any", None)


class AgentCoreEngine(Generic[StateT, ResultT, RuntimeT]):
    """Runs a workflow.

    Args:
        workflow: Which.
        guard: Configuration of the guard that every run makes for itself. It counts rounds (warns
            at 10 and 15, stops at 20 by default) and judges the calls that nodes record on
            `ctx.guard`. A guard is taken for its configuration.
        max_rounds: How many rounds a run may take. With a guard its limits count instead.
        isolate: Whether nodes are given deep copies, and updates are copied deeply, so that
            nothing that a node does to its state reaches the engine's. By default copies are
            shallow.
        on_event: Is given the events of every run, those of sub-workflows included.
        layer: Stands between the loop and the steps; see `StepLayer`.
        keep_events: How many of the last events a run keeps, for its handle and its errors.

    Attributes:
        workflow: Which.

    Raises:
        TypeError: A workflow, a guard, a layer or a function that is none.
        ValueError: A limit out of its range.

    Example:
        >>> from turnwarden.engine import Node, define_workflow, route
        >>> count = Node(id="count", starts_round=True,
        ...              run=lambda state: {"n": state.get("n", 0) + 1},
        ...              routes=[route.deliver_if(lambda state: state["n"] == 3, "n"),
        ...                      route.to("count")])
        >>> AgentCoreEngine(define_workflow(id="counting", nodes=[count])).run_sync({})
        3
    """

    __slots__ = ("_settings", "workflow")

    def __init__(
        self,
        workflow: AgentWorkflowDefinition[StateT, ResultT, RuntimeT],
        *,
        guard: WorkflowGuardConfig | WorkflowGuard | Mapping[str, Any] | None = None,
        max_rounds: int = 20,
        isolate: bool = False,
        on_event: EventSink | None = None,
        layer: StepLayer | None = None,
        keep_events: int = 1000,
    ) -> None:
        if not isinstance(cast("object", workflow), AgentWorkflowDefinition):
            raise TypeError(
                f"workflow must be what define_workflow returns, not {type(workflow).__name__}"
            )
        check_limit("max_rounds", max_rounds)
        check_limit("keep_events", keep_events, least=0)
        check_type("isolate", isolate, bool)
        check_callable("on_event", on_event)
        if layer is not None and not callable(getattr(layer, "bind", None)):
            raise TypeError(f"layer must have a method `bind`, as StepLayer says, not {layer!r}")
        self.workflow = workflow
        self._settings = EngineSettings(
            guard=_guard_config(guard),
            max_rounds=max_rounds,
            isolate=isolate,
            sinks=() if on_event is None else (on_event,),
            layer=layer,
            keep_events=keep_events,
        )

    def run(
        self, state: StateT, *, runtime: RuntimeT = _NO_RUNTIME, run_id: str | None = None
    ) -> Coroutine[Any, Any, ResultT]:
        """Run to the end: a coroutine, `await engine.run(state)`.

        Args:
            state: What to begin with. It stays as it is.
            runtime: Services for the nodes, as `ctx.runtime`. Never serialised.
            run_id: Which run it is; by default a new one. A layer that knows it may go on with it.

        Returns:
            What was delivered.

        Raises:
            NodeError: A node raised, and has no route for errors.
            ContractError: A node, a route or the result broke what the definition promises.
            RoundLimitError: All rounds are taken.
            RunStoppedError: The guard stopped the run.
            asyncio.CancelledError: Passed through.

        Each of these has what was done as `run` (`run_so_far` finds it also behind the TimeoutError
        of `asyncio.timeout`).
        """
        return self._execution(state, runtime, run_id).run()

    def run_sync(
        self, state: StateT, *, runtime: RuntimeT = _NO_RUNTIME, run_id: str | None = None
    ) -> ResultT:
        """Run to the end from synchronous code; an event loop runs only if a node needs one.

        Raises:
            RunningLoopError: Called inside a running event loop.
            RunInterrupted: Ctrl-C; its `run` holds what was done.
            GraphError: As `run` does.
        """
        refuse_running_loop("await engine.run(...)")
        execution = self._execution(state, runtime, run_id)
        try:
            return run_sync(execution.run())
        except KeyboardInterrupt as error:
            raise RunInterrupted(execution.so_far()) from error

    def start(
        self, state: StateT, *, runtime: RuntimeT = _NO_RUNTIME, run_id: str | None = None
    ) -> GraphRunHandle[StateT, ResultT]:
        """Run in a task of its own, inside a running event loop.

        Returns:
            A handle: await it, cancel it, ask it for its events and its state so far.
        """
        return GraphRunHandle(self._execution(state, runtime, run_id))

    def stream(
        self, state: StateT, *, runtime: RuntimeT = _NO_RUNTIME, run_id: str | None = None
    ) -> EventStream[GraphRun[StateT, ResultT]]:
        """Run, and give the events as they come, those of sub-workflows included.

        The run waits for a reader that is far behind.

        Returns:
            An asynchronous iterator. Leaving it early ends the run (in `async with`, or by
            `aclose()`, before the next statement; else when it is collected).
        """
        execution = self._execution(state, runtime, run_id)
        return EventStream(execution, execution.listen)

    async def read_chain(self, run_id: str, principal: object) -> Sequence[Event]:
        """Read what a run did, by the chain source of the workflow.

        Args:
            run_id: Which run.
            principal: Who asks, in the application's own terms.

        Raises:
            ChainAccessError: The workflow has no chain source, or it refuses.
        """
        source = self.workflow.chain_source
        if source is None:
            raise ChainAccessError(
                f"workflow {self.workflow.id!r} has no chain_source to read run {run_id!r} from; "
                "the engine itself stores nothing"
            )
        events = source.read(run_id, principal)
        if is_awaitable(events):
            await event_loop_needed()
            return await cast("Awaitable[Sequence[Event]]", events)
        return cast("Sequence[Event]", events)

    def read_chain_sync(self, run_id: str, principal: object) -> Sequence[Event]:
        """The same from synchronous code."""
        refuse_running_loop("await engine.read_chain(...)")
        return run_sync(self.read_chain(run_id, principal))

    def _execution(
        self, state: StateT, runtime: RuntimeT, run_id: str | None
    ) -> GraphExecution[StateT, ResultT, RuntimeT]:
        check_type("run_id", run_id, str, optional=True)
        return GraphExecution(self.workflow, self._settings, state, runtime, run_id)


class GraphRunHandle(TaskHandle[ResultT, GraphRun[StateT, ResultT]], Generic[StateT, ResultT]):
    """A run that goes on in a task of its own. Await it for what it delivers."""

    __slots__ = ("_execution",)

    def __init__(self, execution: GraphExecution[StateT, ResultT, Any]) -> None:
        super().__init__(execution)
        self._execution = execution

    @property
    def events(self) -> tuple[Event, ...]:
        """The events so far, the last `keep_events` of them."""
        return self._execution.log.events()

    @property
    def state(self) -> StateT:
        """A copy of the state so far."""
        return self._execution.state_so_far()

    def cancel(self) -> bool:
        """Ask the run to stop; await the handle to see it stopped.

        Returns:
            False when it was over already.
        """
        if not self._task.done():
            self._execution.cancel()  # so that nodes in threads see it
        return super().cancel()

    async def result(self) -> ResultT:
        """What the run delivers; the same as awaiting the handle."""
        return await self._task


def _guard_config(guard: object) -> WorkflowGuardConfig | None:
    return guard.config if isinstance(guard, WorkflowGuard) else guard_config(guard)
