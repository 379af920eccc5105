"""Parallel nodes: waits for all branches, and makes one update of theirs.

What comes of it depends on the order of the branches only, never on which was first in time.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from turnwarden.engine.driving import event_loop_needed, is_loop_running
from turnwarden.engine.events import RouteTaken
from turnwarden.engine.graph_plan import PlanNode, PlanRoute
from turnwarden.engine.graph_steps import StepOutcome
from turnwarden.engine.route import RouteKind

if TYPE_CHECKING:
    from turnwarden.engine.graph_running import GraphExecution

__all__ = ["apply_branches", "gather"]

ValueT = TypeVar("ValueT")


async def gather(
    run: GraphExecution[Any, Any, Any], begun: Sequence[StepOutcome | Awaitable[StepOutcome]]
) -> list[StepOutcome]:
    """Wait for steps that have begun; when one ends by an exception the others are cancelled."""
    outcomes: list[StepOutcome | None] = []
    left: dict[int, Coroutine[Any, Any, StepOutcome]] = {}
    for position, one in enumerate(begun):
        outcomes.append(one if isinstance(one, StepOutcome) else None)
        if not isinstance(one, StepOutcome):
            left[position] = one if inspect.iscoroutine(one) else _await(one)
    if left and not run.has_layer and not is_loop_running():
        _step_without_loop(left, outcomes)
    if left:
        await run.need_loop()
        await _finish(left, outcomes)
    return cast("list[StepOutcome]", outcomes)


def _step_without_loop(
    left: dict[int, Coroutine[Any, Any, StepOutcome]], outcomes: list[StepOutcome | None]
) -> None:
    """Take each as far as it comes without an event loop: to its end, or to where it asks for one.

    Raises:
        BaseException: What one of them raises; the others are closed.
    """
    try:
        for position, coroutine in tuple(left.items()):
            try:
                coroutine.send(None)
            except StopIteration as finished:
                outcomes[position] = finished.value
                del left[position]
    except BaseException:
        for coroutine in left.values():
            coroutine.close()
        raise


async def _finish(
    left: dict[int, Coroutine[Any, Any, StepOutcome]], outcomes: list[StepOutcome | None]
) -> None:
    tasks: dict[int, asyncio.Task[StepOutcome]] = {}
    try:
        async with asyncio.TaskGroup() as group:
            for position, coroutine in left.items():
                tasks[position] = group.create_task(coroutine)
    except BaseExceptionGroup as errors:
        first = errors.exceptions[0]
        raise first from first.__cause__
    for position, task in tasks.items():
        outcomes[position] = task.result()


async def _await(awaitable: Awaitable[ValueT]) -> ValueT:
    await event_loop_needed()
    return await awaitable


def apply_branches(
    run: GraphExecution[Any, Any, Any],
    source: PlanNode,
    route: PlanRoute,
    outcomes: Sequence[StepOutcome],
) -> PlanNode:
    """Take in what the branches brought.

    Returns:
        The join, or where the first branch goes that erred and has a route for it.
    """
    _take_over(run, outcomes)
    run.pass_time(max(outcome.duration for outcome in outcomes))
    branches = list(zip(route.branches, outcomes, strict=True))
    updates = [(branch, _update_of(run, branch, outcome)) for branch, outcome in branches]
    merged = _merge(run, source, route, updates)
    if merged:
        run.write(source, merged)
    _check_provides(run, branches, updates)
    return _next(run, route, branches, updates)


def _take_over(run: GraphExecution[Any, Any, Any], outcomes: Sequence[StepOutcome]) -> None:
    """Tell what happened within replayed steps, in the order in which it did."""
    for outcome in outcomes:
        if outcome.guard is not None:
            run.take_over(StepOutcome(guard=outcome.guard, is_live=outcome.is_live))
    replayed = [entry for outcome in outcomes if not outcome.is_live for entry in outcome.trail]
    for _, entry in sorted(replayed, key=lambda one: one[0]):
        run.log.note(entry)


def _update_of(
    run: GraphExecution[Any, Any, Any], branch: PlanNode, outcome: StepOutcome
) -> dict[str, Any]:
    if outcome.failure is not None:
        run.tell_failure(branch, outcome.duration, outcome.failure)
        return {}
    update = run.checked_update(branch, outcome.update)
    run.tell_success(branch, outcome.duration, update)
    return update


def _merge(
    run: GraphExecution[Any, Any, Any],
    source: PlanNode,
    route: PlanRoute,
    updates: Sequence[tuple[PlanNode, dict[str, Any]]],
) -> dict[str, Any]:
    """One update of those of all branches."""
    merged: dict[str, Any] = {}
    writers: dict[str, str] = {}
    for branch, update in updates:
        for name, value in update.items():
            if name not in merged:
                merged[name] = value
                writers[name] = branch.id
                continue
            reducer = route.merge.get(name)
            if reducer is None:
                run.break_contract(
                    source.id,
                    name,
                    f"its branches {writers[name]!r} and {branch.id!r} both write it, "
                    "and its fan_out does not say how they become one (merge=)",
                )
            try:
                merged[name] = reducer(merged[name], value)
            except Exception as error:
                problem = f"its reducer raised {type(error).__name__}: {error}"
                run.break_contract(source.id, name, problem, error)
    return merged


def _check_provides(
    run: GraphExecution[Any, Any, Any],
    branches: Sequence[tuple[PlanNode, StepOutcome]],
    updates: Sequence[tuple[PlanNode, dict[str, Any]]],
) -> None:
    for (branch, outcome), (_, update) in zip(branches, updates, strict=True):
        if outcome.failure is not None or update.get("error") is not None:
            continue
        for name in branch.provides:
            if run.read(name) is None:
                run.break_contract(branch.id, name, "it is to be provided here and missing or None")


def _next(
    run: GraphExecution[Any, Any, Any],
    route: PlanRoute,
    branches: Sequence[tuple[PlanNode, StepOutcome]],
    updates: Sequence[tuple[PlanNode, dict[str, Any]]],
) -> PlanNode:
    """Where to go on. The first branch that raised without a route for it ends the run."""
    following: PlanNode | None = None
    for (branch, outcome), (_, update) in zip(branches, updates, strict=True):
        failure = outcome.failure
        if failure is not None and (branch.error_route is None or not failure.is_routable):
            run.fail(branch, failure)
        is_error = failure is not None or update.get("error") is not None
        if following is not None or not is_error or branch.error_route is None:
            continue
        if failure is not None:
            run.write_error(branch, failure)
        following = cast("PlanNode", branch.error_route.target)
        run.tell(RouteTaken, run.round, branch.id, RouteKind.TO_IF_ERROR.value, following.id)
    return following or cast("PlanNode", route.target)
