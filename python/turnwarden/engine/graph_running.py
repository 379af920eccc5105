"""One run of a workflow: the loop over rounds, nodes and routes.

    enter (round, limit, requires) -> step -> absorb (update, provides) -> route -> next node

The loop is a pure function of the definition, the state and the outcomes of the steps; what has an
effect is a step, and goes through the seam (`graph_steps`). Memory stays flat over any number of
rounds: of the past only the last events are kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from time import time as now
from typing import Any, Final, Generic, NoReturn, TypeVar, cast

from turnwarden.engine.driving import event_loop_needed, is_awaitable, is_loop_running
from turnwarden.engine.errors import attach_run
from turnwarden.engine.events import (
    Event,
    EventSink,
    GuardSpoke,
    NodeEmitted,
    NodeFailed,
    NodeFinished,
    NodeStarted,
    ResultDelivered,
    RoundStarted,
    RouteTaken,
    RunFinished,
    RunStarted,
)
from turnwarden.engine.graph_definition import AgentWorkflowDefinition
from turnwarden.engine.graph_errors import (
    ContractError,
    GraphError,
    NodeError,
    RoundLimitError,
    RunStoppedError,
)
from turnwarden.engine.graph_fan_out import apply_branches, gather
from turnwarden.engine.graph_log import Entry, EventLog, entry_of
from turnwarden.engine.graph_nodes import NodeContext, SubWorkflow, WorkflowNode
from turnwarden.engine.graph_plan import PlanNode, PlanRoute, plan_of
from turnwarden.engine.graph_run import GraphRun
from turnwarden.engine.graph_state import StateForm, form_of
from turnwarden.engine.graph_steps import (
    RunInfo,
    Step,
    StepFailure,
    StepLayer,
    StepOutcome,
    text_of,
)
from turnwarden.engine.graph_trying import try_node
from turnwarden.engine.results import RunStatus
from turnwarden.engine.route import RouteKind
from turnwarden.guards import WorkflowGuard, WorkflowGuardConfig

__all__ = ["EngineSettings", "GraphExecution"]

StateT = TypeVar("StateT")
ResultT = TypeVar("ResultT")
RuntimeT = TypeVar("RuntimeT")

VISITS_BETWEEN_PAUSES: Final = 64
_UPDATES: Final[frozenset[Any]] = frozenset({dict, type(None)})

_NODE_STARTED: Final = NodeStarted.type
_NODE_FINISHED: Final = NodeFinished.type
_ROUTE_TAKEN: Final = RouteTaken.type
_ROUND_STARTED: Final = RoundStarted.type
_RESULT_DELIVERED: Final = ResultDelivered.type
_RUN_STARTED: Final = RunStarted.type
_RUN_FINISHED: Final = RunFinished.type


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What all runs of an engine share."""

    guard: WorkflowGuardConfig | None
    max_rounds: int
    isolate: bool
    sinks: tuple[EventSink, ...]
    layer: StepLayer | None
    keep_events: int


class _NodeClock:
    """The guard's clock: real time while a node runs, else where the last step left it.

    So what the guard says follows from the outcomes of the steps, also when they are replayed.
    """

    __slots__ = ("_now", "_running_since")

    def __init__(self) -> None:
        self._now = now()
        self._running_since: float | None = None

    def __call__(self) -> float:
        if self._running_since is None:
            return self._now
        return self._now + perf_counter() - self._running_since

    def start(self) -> None:
        self._running_since = perf_counter()

    def stop(self, duration: float) -> None:
        self._now += duration
        self._running_since = None


class GraphExecution(Generic[StateT, ResultT, RuntimeT]):
    """One run. It is also what nodes are served by, through their context."""

    __slots__ = (
        "_clock",
        "_copy",
        "_form",
        "_guard",
        "_guard_uses",
        "_is_cancelled",
        "_layer",
        "_loop",
        "_nodes",
        "_note",
        "_pace",
        "_parent",
        "_plan",
        "_read",
        "_settings",
        "_state",
        "_step",
        "_thread",
        "_time",
        "_trails",
        "_write",
        "delivered_field",
        "elapsed",
        "log",
        "node_id",
        "reason",
        "result",
        "round",
        "run_id",
        "runtime",
        "status",
        "steps",
        "workflow",
    )

    def __init__(
        self,
        workflow: AgentWorkflowDefinition[StateT, ResultT, RuntimeT],
        settings: EngineSettings,
        state: StateT,
        runtime: RuntimeT,
        run_id: str | None = None,
        parent: GraphExecution[Any, Any, Any] | None = None,
    ) -> None:
        self.workflow = workflow
        self.run_id = f"run-{secrets.token_hex(8)}" if run_id is None else run_id
        self.runtime = runtime
        self.round = 0
        self.steps = 0
        self.node_id: str | None = None
        self.status = RunStatus.RUNNING
        self.reason: str | None = None
        self.result: ResultT | None = None
        self.delivered_field = ""
        self.elapsed = 0.0
        self._settings = settings
        self._parent = parent
        self._plan = plan_of(workflow)
        self._nodes = self._plan.nodes
        self._form = form = form_of(state, workflow.state_type, settings.isolate)
        self._copy = form.copy
        self._read = form.read
        self._write = form.write
        self._state: Any = _owned(form, state, workflow.id)
        sinks = settings.sinks if parent is None else parent.log.sinks
        self.log = EventLog(
            self.run_id, workflow.id, workflow.revision, sinks, settings.keep_events
        )
        self._note = self.log.note
        self._layer = settings.layer
        self._clock = None if settings.guard is None else _NodeClock()
        self._guard = (
            None if settings.guard is None else WorkflowGuard(settings.guard, clock=self._clock)
        )
        self._guard_uses = 0
        self._trails: dict[str, list[tuple[int, Entry]]] | None = None
        self._is_cancelled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._time = now()  # of the last event: those that follow at once have the same
        self._pace: Callable[[], Awaitable[None]] | None = None
        self._step: Step = self._run_node
        if settings.layer is not None:
            self._step = settings.layer.bind(self._run_node, self._info())

    # What nodes are served by

    @property
    def is_cancelled(self) -> bool:
        """Whether the run, or one that it is part of, was asked to stop."""
        return self._is_cancelled or (self._parent is not None and self._parent.is_cancelled)

    @property
    def has_layer(self) -> bool:
        """Whether somebody stands between the loop and the steps."""
        return self._layer is not None

    def guard_for_node(self) -> WorkflowGuard | None:
        """The guard; from now on it counts as used."""
        self._guard_uses += 1
        return self._guard

    def emit_from_node(self, context: NodeContext[Any], name: str, value: object) -> None:
        """Tell what a node has to tell. From a thread it is told in that of the run."""
        event = (context.idempotency_key, NodeEmitted, context.round, context.node_id, name, value)
        if threading.get_ident() == self._thread:
            self.tell_in_step(*event)
        elif self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the thread was abandoned
                self._loop.call_soon_threadsafe(self._tell_late, event)

    def _tell_late(self, event: tuple[Any, ...]) -> None:
        if self.status is RunStatus.RUNNING:
            self.tell_in_step(*event)

    def tell_in_step(self, key: str, kind: type[Any], *values: Any) -> None:
        """Tell an event that happened within a step; a layer may want to keep it."""
        entry = entry_of(kind, *values)
        if self._layer is not None:
            if self._trails is None:
                self._trails = {}
            self._trails.setdefault(key, []).append((self.log.next_sequence, entry))
        self._note(entry)

    # What those outside are served by

    def so_far(self) -> GraphRun[StateT, ResultT]:
        """What was done so far."""
        first, entries = self.log.kept()
        return GraphRun(
            run_id=self.run_id,
            workflow_id=self.workflow.id,
            revision=self.workflow.revision,
            status=self.status,
            reason=self.reason,
            state=self._copy(self._state),
            rounds=self.round,
            steps=self.steps,
            node_id=self.node_id,
            result=self.result,
            guard=self._guard,
            _first=first,
            _entries=entries,
        )

    def state_so_far(self) -> StateT:
        """A copy of the state."""
        return self._copy(self._state)

    def listen(self, sink: EventSink, pace: Callable[[], Awaitable[None]] | None = None) -> None:
        """Add somebody who listens, and who may hold the run between steps by `pace`."""
        self.log.sinks.append(sink)
        self._pace = pace

    def cancel(self) -> None:
        """Ask the run to stop; it does before its next step."""
        self._is_cancelled = True

    def abort(self) -> None:
        """The run was cancelled before it began."""
        if self.status is RunStatus.RUNNING:
            self.status, self.reason = RunStatus.CANCELLED, "cancelled"

    # The run

    async def run(self) -> ResultT:
        """Run to the end."""
        self._thread = threading.get_ident()
        if is_loop_running():
            await self.need_loop()
        self._time = now()
        self._note((_RUN_STARTED, self._time, False))
        try:
            self.result = cast("ResultT", await self._run_nodes())
        except BaseException as error:
            self._end_by(error)
            raise
        self.status, self.reason = RunStatus.COMPLETED, "delivered"
        self._note((_RUN_FINISHED, now(), self.status, self.reason, self.result))
        return self.result

    def _end_by(self, error: BaseException) -> None:
        """Note how the run ended, and put what was done on the error."""
        if isinstance(error, RunStoppedError):
            is_limit = error.reason == "limit.max_rounds"
            self.status = RunStatus.LIMIT if is_limit else RunStatus.STOPPED
            self.reason = error.reason
        elif isinstance(error, GraphError):
            self.status = RunStatus.FAILED
            self.reason = "node.error" if isinstance(error, NodeError) else "contract.error"
        elif isinstance(error, Exception):
            self.status, self.reason = RunStatus.FAILED, "engine.error"
        else:
            self._is_cancelled = True
            self.status, self.reason = RunStatus.CANCELLED, "cancelled"
        self.tell(RunFinished, self.status, self.reason, None)
        attach_run(error, self.so_far())

    def tell(self, kind: type[Event], *values: Any) -> None:
        """Tell an event that happens now."""
        self.log.add(kind, *values)
        self._time = now()

    async def _run_nodes(self) -> Any:
        node = self._plan.entry
        visits = 0
        while True:
            visits += 1
            if node.checks_entry:
                self._enter(node)
            if node.runs:
                begun = self._begin(node)
                if type(begun) is StepOutcome:
                    outcome = begun
                elif self._layer is None:
                    outcome = await cast("Awaitable[StepOutcome]", begun)
                else:
                    outcome = await self._outcome_of(begun)
                erred = self._absorb(node, outcome)
            else:
                self.node_id = node.id
                erred = self._read(self._state, "error") is not None
            route = node.always or self._choose(node, erred)
            self._note((_ROUTE_TAKEN, self._time, self.round, node.id, route.name, route.target_id))
            if route.target is None:
                return self._deliver(node, route.field)
            node = await self._fan_out(node, route) if route.branches else route.target
            if self._is_cancelled or self._parent is not None:
                self._stop_if_cancelled()
            if self._pace is not None or not visits % VISITS_BETWEEN_PAUSES:
                await self._between_steps()

    async def _between_steps(self) -> None:
        """Forget old events, and let others have their turn."""
        self.log.trim()
        if self._pace is not None:
            await self._pace()
        elif self._loop is not None:
            await asyncio.sleep(0)
        self._time = now()

    def _stop_if_cancelled(self) -> None:
        if self.is_cancelled:
            raise asyncio.CancelledError("the run was cancelled")

    def _enter(self, node: PlanNode) -> None:
        if node.starts_round:
            self._begin_round(node)
        for name in node.requires:
            if self._read(self._state, name) is None:
                self.break_contract(node.id, name, "it is required here and missing or None")

    def _begin_round(self, node: PlanNode) -> None:
        guard = self._guard
        if guard is not None:
            self._ask_guard(node, guard)
        elif self.round >= self._settings.max_rounds:
            raise RoundLimitError(
                f"all {self._settings.max_rounds} rounds are taken (max_rounds)",
                reason="limit.max_rounds",
                **self.place(node.id),
            )
        self.round += 1
        self._note((_ROUND_STARTED, self._time, self.round, node.id))

    def _ask_guard(self, node: PlanNode, guard: WorkflowGuard) -> None:
        """Let the guard count the round; what it says is told, and ends the run when it must."""
        verdict = guard.start_iteration()
        reasons = verdict.reasons
        if reasons:
            reason = verdict.force_terminate_reason or reasons[0]
            self.tell(GuardSpoke, str(verdict.action), reason, verdict.warning_message)
        if verdict.allow_continue:
            return
        reason = verdict.force_terminate_reason or "guard.stop"
        kind = RoundLimitError if reason == "recursion.hard_limit" else RunStoppedError
        raise kind(
            f"the guard stopped the run ({reason}): {verdict.warning_message or 'no more rounds'}",
            reason=reason,
            **self.place(node.id),
        )

    # Steps

    def _begin(self, node: PlanNode) -> StepOutcome | Awaitable[StepOutcome]:
        """Begin the step of a node."""
        key = f"{self.run_id}:{self.steps}:{node.id}"
        self.steps += 1
        self.node_id = node.id
        self._note((_NODE_STARTED, self._time, self.round, node.id, 1))
        if node.sub is not None:
            return self._run_sub(node, key)
        return self._step(node.node, key, self._copy(self._state))

    async def _outcome_of(self, begun: StepOutcome | Awaitable[StepOutcome]) -> StepOutcome:
        """Await a step. Our own asks for an event loop itself, where it needs one."""
        if isinstance(begun, StepOutcome):  # of a subclass
            return begun
        if self._layer is not None:
            await self.need_loop()
        return await begun

    async def need_loop(self) -> None:
        """Await this before awaiting anything that may suspend."""
        if self._loop is None:
            await event_loop_needed()
            self._loop = asyncio.get_running_loop()

    def _run_node(
        self, node: WorkflowNode[Any, Any], key: str, state: Any
    ) -> StepOutcome | Awaitable[StepOutcome]:
        """The engine's own step: the only place where a node's function is called."""
        plan = self._nodes[node.id]
        if self._clock is not None:
            self._clock.start()
        uses = self._guard_uses
        started = perf_counter()
        if not plan.is_plain:
            return self._try_node(plan, key, state, started, uses)
        failure: StepFailure | None = None
        update: Any = None
        try:
            update = self.call(plan, key, state) if plan.takes_context else plan.call(state)
            if type(update) not in _UPDATES and is_awaitable(update):
                return self._await_node(update, key, started, uses)
        except Exception as error:  # whatever a node raises is the outcome of its step
            failure = StepFailure.of(error)
        if self._layer is None:
            return StepOutcome(update, failure, perf_counter() - started, (), None, True)
        return self._complete(StepOutcome(update, failure), key, started, uses)

    def call(self, node: PlanNode, key: str, state: Any) -> Any:
        """Call a node's function."""
        function = cast("Callable[..., Any]", node.function)
        if node.takes_context:
            return function(state, NodeContext(self, node.id, self.round, key))
        return function(state)

    async def _await_node(
        self, value: Awaitable[Any], key: str, started: float, uses: int
    ) -> StepOutcome:
        if self._loop is None:
            await self.need_loop()
        try:
            outcome = StepOutcome(await value)
        except Exception as error:  # whatever a node raises is the outcome of its step
            outcome = StepOutcome(None, StepFailure.of(error))
        return self._complete(outcome, key, started, uses)

    async def _try_node(
        self, node: PlanNode, key: str, state: Any, started: float, uses: int
    ) -> StepOutcome:
        """Call a node that has a retry or a timeout."""
        outcome = await try_node(self, node, key, state, self._copy)
        return self._complete(outcome, key, started, uses)

    def _complete(self, outcome: StepOutcome, key: str, started: float, uses: int) -> StepOutcome:
        """Add how long it took, and what a layer may want to keep."""
        outcome.duration = perf_counter() - started
        outcome.is_live = True
        if self._layer is not None:
            outcome.trail = tuple(self._trails.pop(key, ())) if self._trails else ()
            if self._guard is not None and self._guard_uses != uses:
                outcome.guard = (self._guard_uses, self._guard.to_bytes())
        return outcome

    async def _run_sub(self, node: PlanNode, key: str) -> StepOutcome:
        """Run a workflow as a node. Its own nodes go through the seam, it does not.

        How it ends is the outcome of the node; what a layer raises ends this run too.
        """
        sub = cast("SubWorkflow[Any, Any]", node.sub)
        try:
            given = self._copy(self._state)
            state = given if sub.input is None else sub.input(given)
        except Exception as error:  # as with a function: what it raises is the outcome
            return StepOutcome(None, StepFailure.of(error), is_live=True)
        try:
            child: GraphExecution[Any, Any, Any] = GraphExecution(
                sub.workflow, self._settings, state, self.runtime, key, self
            )
        except TypeError as error:  # no state for it, whatever happens at run time
            failure = dataclasses.replace(StepFailure.of(error), is_routable=False)
            return StepOutcome(None, failure, is_live=True)
        try:
            value = await child.run()
        except GraphError as error:
            return StepOutcome(None, StepFailure.of(error), child.elapsed, is_live=True)
        update = {sub.output or child.delivered_field: value}
        return StepOutcome(update, None, child.elapsed, is_live=True)

    # Outcomes

    def _absorb(self, node: PlanNode, outcome: StepOutcome) -> bool:
        """Take in what a step brought; whether the node erred."""
        if not outcome.is_live:
            self.take_over(outcome)
        duration = outcome.duration
        self.pass_time(duration)
        if outcome.failure is not None:
            return self._absorb_failure(node, duration, outcome.failure)
        update = outcome.update
        if update is None:
            self._time = timestamp = now()
            self._note((_NODE_FINISHED, timestamp, self.round, node.id, duration))
        else:
            checked = self.checked_update(node, update)
            self.write(node, checked)
            if self.tell_success(node, duration, checked):
                return True
        for name in node.provides:
            if self._read(self._state, name) is None:
                self.break_contract(node.id, name, "it is to be provided here and missing or None")
        return False

    def _absorb_failure(self, node: PlanNode, duration: float, failure: StepFailure) -> bool:
        self.tell_failure(node, duration, failure)
        if node.error_route is None or not failure.is_routable:
            self.fail(node, failure)
        self.write_error(node, failure)
        return True

    def take_over(self, outcome: StepOutcome) -> None:
        """Bring the run to where a replayed step left it."""
        for _, entry in outcome.trail:
            self._note(entry)
        if outcome.guard is not None and self._settings.guard is not None:
            uses, state = outcome.guard
            if uses > self._guard_uses:
                self._guard_uses = uses
                self._guard = WorkflowGuard.from_bytes(
                    state, self._settings.guard, clock=self._clock
                )

    def pass_time(self, duration: float) -> None:
        """Let the run's own time go on by a step."""
        self.elapsed += duration
        if self._clock is not None:
            self._clock.stop(duration)

    def tell_failure(self, node: PlanNode, duration: float, failure: StepFailure) -> None:
        """Tell that a node raised."""
        self.tell(NodeFailed, self.round, node.id, duration, failure.type, failure.message)

    def tell_success(self, node: PlanNode, duration: float, update: dict[str, Any]) -> bool:
        """Tell that a node ran, and when its update holds an error that too.

        Returns:
            Whether it does.
        """
        self._time = timestamp = now()
        told = copy.deepcopy(update) if self._settings.isolate else update
        self._note((_NODE_FINISHED, timestamp, self.round, node.id, duration, tuple(update), told))
        error = update.get("error")
        if error is None:
            return False
        self.tell(NodeFailed, self.round, node.id, duration, None, text_of(error))
        return True

    def checked_update(self, node: PlanNode, update: object) -> dict[str, Any]:
        """A copy of an update that is one."""
        if update is None:
            return {}
        if not isinstance(update, Mapping):
            self.break_contract(
                node.id,
                None,
                f"its run returned a {type(update).__name__}; "
                "return a mapping of the fields that change, or None",
            )
        try:
            checked = dict(cast("Mapping[Any, Any]", update))
        except Exception as error:  # a mapping of the user's own, whose methods may raise
            self.break_contract(
                node.id, None, f"its update cannot be read: {text_of(error)}", error
            )
        known = self._form.fields
        for name in checked:
            if type(name) is not str:
                self.break_contract(node.id, None, f"its update has the key {name!r}, no name")
            if known is not None and name not in known:
                self.break_contract(
                    node.id, name, "its update sets a field that the state does not have"
                )
        if not self._settings.isolate:
            return checked
        try:
            return copy.deepcopy(checked)
        except Exception as error:
            self.break_contract(node.id, None, "its update cannot be copied (isolate)", error)

    def write(self, node: PlanNode, update: Mapping[str, Any]) -> None:
        """Put fields into the state."""
        try:
            self._state = self._write(self._state, update)
        except Exception as error:  # such as a model that validates assignments
            name = next(iter(update)) if len(update) == 1 else None
            problem = f"the state refuses the update: {StepFailure.of(error)}"
            self.break_contract(node.id, name, problem, error)

    def write_error(self, node: PlanNode, failure: StepFailure) -> None:
        """Put what a node raised into the state."""
        known = self._form.fields
        if known is not None and "error" not in known:
            self.break_contract(
                node.id,
                "error",
                f"it raised {failure.type}, and the state has no field to hold it",
                failure.exception,
            )
        self.write(node, {"error": str(failure)})

    def fail(self, node: PlanNode, failure: StepFailure) -> NoReturn:
        """End the run by what a node raised."""
        problem = f"it raised {failure}"
        if failure.is_routable:
            raise NodeError(problem, **self.place(node.id)) from failure.exception
        self.break_contract(node.id, None, problem, failure.exception)

    def place(self, node_id: str, field: str | None = None) -> dict[str, Any]:
        """Where something happened, for an error."""
        return {
            "workflow_id": self.workflow.id,
            "revision": self.workflow.revision,
            "node_id": node_id,
            "field": field,
            "round": self.round,
        }

    def break_contract(
        self, node_id: str, field: str | None, problem: str, cause: BaseException | None = None
    ) -> NoReturn:
        """End the run by a broken contract."""
        raise ContractError(problem, **self.place(node_id, field)) from cause

    # Routes

    def _choose(self, node: PlanNode, erred: bool) -> PlanRoute:
        for route in node.routes:
            kind = route.kind
            if kind is RouteKind.TO_IF_ERROR:
                if erred:
                    return route
            elif route.predicate is None or self._holds(node, route):
                return route
        return self.break_contract(node.id, None, "none of its routes applies")

    def _holds(self, node: PlanNode, route: PlanRoute) -> bool:
        predicate = cast("Callable[[Any], Any]", route.predicate)
        to = route.field or (route.target.id if route.target is not None else "")
        try:
            answer = predicate(self._copy(self._state))
            if not is_awaitable(answer):
                return bool(answer)
        except Exception as error:
            problem = f"the predicate of its route to {to!r} raised {StepFailure.of(error)}"
            self.break_contract(node.id, None, problem, error)
        _discard(answer)
        problem = f"the predicate of its route to {to!r} is asynchronous"
        return self.break_contract(node.id, None, problem)

    def _deliver(self, node: PlanNode, field: str) -> Any:
        value = self._read(self._state, field)
        if value is None:
            self.break_contract(node.id, field, "it is to be delivered and missing or None")
        is_result = self.workflow.is_result
        if is_result is not None:
            self._check_result(node, field, value, is_result)
        self.delivered_field = field
        self._note((_RESULT_DELIVERED, now(), self.round, node.id, field, value))
        return value

    def _check_result(
        self, node: PlanNode, field: str, value: Any, is_result: Callable[[Any], bool]
    ) -> None:
        try:
            answer: object = is_result(value)
        except Exception as error:
            self.break_contract(node.id, field, f"is_result raised {StepFailure.of(error)}", error)
        if answer is not True:
            _discard(answer)
            self.break_contract(
                node.id, field, f"is_result refuses the value: it returned {answer!r}, not True"
            )

    async def _fan_out(self, node: PlanNode, route: PlanRoute) -> PlanNode:
        """Run the branches, apply what they brought, and say where to go on."""
        for branch in route.branches:
            self._enter(branch)
        begun = [self._begin(branch) for branch in route.branches]
        outcomes = await gather(self, begun)
        return apply_branches(self, node, route, outcomes)

    def read(self, name: str) -> Any:
        """A field of the state; None when it is missing."""
        return self._read(self._state, name)

    def _info(self) -> RunInfo:
        return RunInfo(
            run_id=self.run_id,
            workflow_id=self.workflow.id,
            revision=self.workflow.revision,
            state=self._copy(self._state),
            emit=self.tell,
        )


def _owned(form: StateForm, state: Any, workflow_id: str) -> Any:
    """The run's own copy of the state that it was given."""
    try:
        return form.own(state)
    except Exception as error:
        raise TypeError(
            f"the state cannot be copied for a run of {workflow_id!r}: {error}; "
            "give one whose values can be, or leave isolate out"
        ) from error


def _discard(value: object) -> None:
    """Close a coroutine that nobody will await."""
    close = getattr(value, "close", None)
    if is_awaitable(value) and callable(close):
        close()
