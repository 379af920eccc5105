"""The events of one run of a workflow: kept as bare values, built when somebody looks.

An entry is `(kind, timestamp, *values)`; its sequence follows from its place. Building an event
costs ten times as much as keeping its values, and most are never looked at.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Iterable
from typing import Any, TypeAlias

from turnwarden.engine.events import Event, EventSink, hand_out

__all__ = ["Entry", "EventLog", "build_event"]

Entry: TypeAlias = tuple[Any, ...]
"""`(kind, timestamp, *values)`, the values in the order of the fields of the event's kind."""

_COMMON = frozenset(entry.name for entry in dataclasses.fields(Event))


@functools.cache
def _own_fields(kind: type[Event]) -> tuple[str, ...]:
    names = (entry.name for entry in dataclasses.fields(kind))
    return tuple(name for name in names if name not in _COMMON)


def build_event(entry: Entry, run_id: str, sequence: int, workflow_id: str, revision: str) -> Event:
    """The event that an entry stands for."""
    kind, timestamp, *values = entry
    return kind(
        run_id=run_id,
        sequence=sequence,
        timestamp=timestamp,
        workflow_id=workflow_id,
        revision=revision,
        **dict(zip(_own_fields(kind), values, strict=False)),
    )


class EventLog:
    """The last events of a run, and those who are told.

    Args:
        run_id: Which run.
        workflow_id: Which workflow.
        revision: Which revision of it.
        sinks: Who listens.
        keep: How many events are kept at least.
    """

    __slots__ = (
        "_entries",
        "_keep",
        "_limit",
        "first",
        "revision",
        "run_id",
        "sinks",
        "workflow_id",
    )

    def __init__(
        self, run_id: str, workflow_id: str, revision: str, sinks: Iterable[EventSink], keep: int
    ) -> None:
        self.run_id = run_id
        self.workflow_id = workflow_id
        self.revision = revision
        self.sinks = list(sinks)
        self.first = 0
        self._entries: list[Entry] = []
        self._keep = keep
        self._limit = 2 * keep + 1

    def add(self, kind: type[Event], *values: Any) -> None:
        """Note an event, and tell those who listen."""
        entry = (kind, time.time(), *values)
        entries = self._entries
        entries.append(entry)
        if len(entries) > self._limit:
            self._trim()
        if self.sinks:
            self._tell(entry)

    @property
    def next_sequence(self) -> int:
        """The sequence of the event to come."""
        return self.first + len(self._entries)

    def kept(self) -> tuple[int, tuple[Entry, ...]]:
        """The entries that are kept, and the sequence of the first of them."""
        excess = max(0, len(self._entries) - self._keep)
        return self.first + excess, tuple(self._entries[excess:])

    def events(self) -> tuple[Event, ...]:
        """The events that are kept."""
        first, entries = self.kept()
        return tuple(
            build_event(entry, self.run_id, sequence, self.workflow_id, self.revision)
            for sequence, entry in enumerate(entries, first)
        )

    def _trim(self) -> None:
        excess = len(self._entries) - self._keep
        del self._entries[:excess]
        self.first += excess

    def _tell(self, entry: Entry) -> None:
        event = build_event(
            entry, self.run_id, self.next_sequence - 1, self.workflow_id, self.revision
        )
        hand_out(event, self.sinks)
