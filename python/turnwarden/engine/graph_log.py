"""The events of one run of a workflow: kept as bare values, built when somebody looks.

An entry is `(kind, timestamp, *values)`; its sequence follows from its place. Building an event
costs ten times as much as keeping its values, and most are never looked at. The kind is a text
where it can be, so that the garbage collector need not look into entries.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from turnwarden.engine import events
from turnwarden.engine.events import Event, EventSink, hand_out

__all__ = ["Entry", "EventLog", "build_event", "entry_of"]

Entry: TypeAlias = tuple[Any, ...]
"""`(kind, timestamp, *values)`, the values in the order of the fields of the event's kind."""

_COMMON = frozenset(entry.name for entry in dataclasses.fields(Event))
_KINDS: Final[dict[str, type[Event]]] = {
    kind.type: kind
    for kind in vars(events).values()
    if isinstance(kind, type) and issubclass(kind, Event)
}


def entry_of(kind: type[Event], *values: Any) -> Entry:
    """An entry that happened now."""
    is_known = _KINDS.get(kind.type) is kind
    return (kind.type if is_known else kind, time.time(), *values)


@functools.cache
def _own_fields(kind: type[Event]) -> tuple[str, ...]:
    names = (entry.name for entry in dataclasses.fields(kind))
    return tuple(name for name in names if name not in _COMMON)


def build_event(entry: Entry, run_id: str, sequence: int, workflow_id: str, revision: str) -> Event:
    """The event that an entry stands for.

    Raises:
        KeyError: No event is of that kind.
    """
    named, timestamp, *values = entry
    kind = _KINDS[named] if isinstance(named, str) else named
    return kind(
        run_id=run_id,
        sequence=sequence,
        timestamp=timestamp,
        workflow_id=workflow_id,
        revision=revision,
        **dict(zip(_own_fields(kind), values, strict=False)),  # what is missing has a default
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

    __slots__ = ("_entries", "_first", "_keep", "revision", "run_id", "sinks", "workflow_id")

    def __init__(
        self, run_id: str, workflow_id: str, revision: str, sinks: Iterable[EventSink], keep: int
    ) -> None:
        self.run_id = run_id
        self.workflow_id = workflow_id
        self.revision = revision
        self.sinks = list(sinks)
        self._first = 0
        self._entries: list[Entry] = []
        self._keep = keep

    def add(self, kind: type[Event], *values: Any) -> None:
        """Note an event that happens now, and tell those who listen."""
        self.note(entry_of(kind, *values))

    def note(self, entry: Entry) -> None:
        """Note an entry, and tell those who listen."""
        self._entries.append(entry)
        if self.sinks:
            self._tell(entry)

    def trim(self) -> None:
        """Let go of what need not be kept; costs O(1) an event, since it waits for many."""
        excess = len(self._entries) - self._keep
        if excess > self._keep:
            del self._entries[:excess]
            self._first += excess

    @property
    def next_sequence(self) -> int:
        """The sequence of the event to come."""
        return self._first + len(self._entries)

    def kept(self) -> tuple[int, tuple[Entry, ...]]:
        """The entries that are kept, and the sequence of the first of them."""
        excess = max(0, len(self._entries) - self._keep)
        return self._first + excess, tuple(self._entries[excess:])

    def events(self) -> tuple[Event, ...]:
        """The events that are kept."""
        first, entries = self.kept()
        return tuple(
            build_event(entry, self.run_id, sequence, self.workflow_id, self.revision)
            for sequence, entry in enumerate(entries, first)
        )

    def _tell(self, entry: Entry) -> None:
        sequence = self.next_sequence - 1
        event = build_event(entry, self.run_id, sequence, self.workflow_id, self.revision)
        hand_out(event, self.sinks)
