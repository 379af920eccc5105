"""Reading what runs did: the application's own, authorized reader of run records.

The engine stores nothing. An application that keeps the events of its runs gives a workflow a
`WorkflowChainSource`, which alone decides who may read what.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from turnwarden.engine.events import Event
from turnwarden.engine.graph_errors import ChainAccessError

__all__ = ["InMemoryChainSource", "WorkflowChainSource"]


class WorkflowChainSource(Protocol):
    """Reads the records of runs, for those who may."""

    def read(
        self, run_id: str, principal: object, /
    ) -> Sequence[Event] | Awaitable[Sequence[Event]]:
        """The events of a run, in their order.

        Args:
            run_id: Which run.
            principal: Who asks, in the application's own terms.

        Raises:
            ChainAccessError: The principal may not read this run; or there is no such run, which
                an answer should not tell apart.
        """
        ...


class InMemoryChainSource:
    """Keeps the events of runs in memory, without a limit: for tests and examples.

    Args:
        may_read: Says whether a principal may read a run. Nobody may unless it returns exactly
            True; None as the principal never may.

    Example:
        >>> from turnwarden.engine import AgentCoreEngine, Node, define_workflow, route
        >>> source = InMemoryChainSource(lambda run_id, principal: principal == "auditor")
        >>> node = Node(id="only", starts_round=True, run=lambda state: {"answer": 1},
        ...             routes=[route.deliver("answer")])
        >>> workflow = define_workflow(id="w", nodes=[node], chain_source=source)
        >>> engine = AgentCoreEngine(workflow, on_event=source.record)
        >>> engine.run_sync({}, run_id="run-1")
        1
        >>> len(engine.read_chain_sync("run-1", "auditor")) > 0
        True
    """

    def __init__(self, may_read: Callable[[str, object], bool]) -> None:
        self._may_read = may_read
        self._events: dict[str, list[Event]] = {}
        self._lock = threading.Lock()

    def record(self, event: Event) -> None:
        """Keep an event; give it to an engine as `on_event`."""
        with self._lock:
            self._events.setdefault(event.run_id, []).append(event)

    def read(self, run_id: str, principal: object, /) -> tuple[Event, ...]:
        """See `WorkflowChainSource`."""
        if principal is None or self._may_read(run_id, principal) is not True:
            raise _refusal(run_id)
        with self._lock:
            events = self._events.get(run_id)
            if events is None:
                raise _refusal(run_id)
            return tuple(events)


def _refusal(run_id: str) -> ChainAccessError:
    return ChainAccessError(f"there is no run {run_id!r} that this principal may read")
