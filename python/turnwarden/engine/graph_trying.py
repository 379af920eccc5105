"""Calls a node that has a retry or a timeout: as often as it may, each time within its time."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, cast

from turnwarden.engine.calling import TimedOut, call_in_thread, within
from turnwarden.engine.driving import is_awaitable, is_loop_running
from turnwarden.engine.events import NodeAbandoned, NodeFailed, NodeRetried, NodeStarted
from turnwarden.engine.graph_errors import ContractError
from turnwarden.engine.graph_nodes import Retry, is_async_function
from turnwarden.engine.graph_plan import PlanNode
from turnwarden.engine.graph_steps import StepFailure, StepOutcome

if TYPE_CHECKING:
    from turnwarden.engine.graph_running import GraphExecution

__all__ = ["try_node"]

_ONCE: Final = Retry(attempts=1)


async def try_node(
    run: GraphExecution[Any, Any, Any],
    node: PlanNode,
    key: str,
    state: Any,
    copy: Callable[[Any], Any],
) -> StepOutcome:
    """Call a node until it returns, or its attempts are used up.

    Args:
        run: Which run.
        node: Which node.
        key: The key of the step, the same for all attempts.
        state: The state; each attempt has a copy of its own.
        copy: Makes the copy.
    """
    retry = node.node.retry or _ONCE
    attempt = 1
    while True:
        started = time.perf_counter()
        try:
            return StepOutcome(await _call(run, node, key, copy(state)))
        except Exception as error:  # whatever a node raises is the outcome of its step
            is_last = attempt >= retry.attempts or isinstance(error, ContractError)
            failure = StepFailure.of(error)
            if is_last or not isinstance(error, retry.on):
                return StepOutcome(failure=failure)
        seconds = time.perf_counter() - started
        attempt += 1
        delay = retry.delay_before(attempt)
        place = (run.round, node.id)
        run.tell_in_step(key, NodeFailed, *place, seconds, failure.type, failure.message)
        run.tell_in_step(key, NodeRetried, *place, attempt, delay)
        await _wait(delay)
        run.tell_in_step(key, NodeStarted, *place, attempt)


async def _call(run: GraphExecution[Any, Any, Any], node: PlanNode, key: str, state: Any) -> Any:
    """Call a node once, within its time."""
    timeout = node.node.timeout
    work = functools.partial(run.call, node, key, state)
    deadline = None if timeout is None else time.perf_counter() + timeout
    try:
        if timeout is None or is_async_function(node.function):
            value = work()
        else:
            await run.need_loop()
            abandoned = functools.partial(run.tell_in_step, key, NodeAbandoned, run.round, node.id)
            value = await call_in_thread(work, f"node {node.id}", timeout, abandoned)
        if not is_awaitable(value):
            return value
        await run.need_loop()
        left = None if deadline is None else max(0.0, deadline - time.perf_counter())
        return await within(cast("Awaitable[Any]", value), left)
    except TimedOut:
        raise TimeoutError(f"it took longer than {timeout:g} seconds") from None


async def _wait(seconds: float) -> None:
    """Wait: in the event loop if there is one, else just so."""
    if is_loop_running():
        await asyncio.sleep(seconds)
    elif seconds > 0:
        time.sleep(seconds)
