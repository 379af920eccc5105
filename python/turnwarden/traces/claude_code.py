"""Claude Code sessions: one JSON object a line, the blocks of one message on several lines.

One file may hold several runs: the session, each of its sub-agents ("sidechains"), and sessions
that were resumed into it. They are told apart by the links from line to line. The run that begins
the file is read as it streams; of the others only the places of their lines are kept until it is
their turn.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from turnwarden.traces.assembly import (
    Event,
    Reply,
    as_mapping,
    as_text,
    assemble,
    seconds,
    text_of,
    usage_of,
)
from turnwarden.traces.chat import calls_of, said_of
from turnwarden.traces.model import Run
from turnwarden.traces.source import Source, Value

__all__ = ["NAME", "detect", "runs"]

NAME: Final = "claude-code"
_SESSION_KEYS: Final = frozenset(("sessionId", "session_id", "uuid", "parentUuid"))
_SYNTHETIC: Final = "<synthetic>"  # the model's name on lines that the program wrote itself


def detect(value: object) -> bool:
    """Whether a value of a file is of this format."""
    return _is_session_line(as_mapping(value))


def _is_session_line(line: Mapping[str, Any]) -> bool:
    match line.get("type"):
        case "user" | "assistant":
            return isinstance(line.get("message"), dict) and not _SESSION_KEYS.isdisjoint(
                line.keys()
            )
        case "summary":
            return "leafUuid" in line
        case "file-history-snapshot":
            return "snapshot" in line
        case _:
            return False


def runs(source: Source, values: Iterator[Value]) -> Iterator[Run]:
    """The runs of a file: the one that begins it first, then the others as they begin."""
    threads = _Threads()
    first = next((value for value in values if threads.claim(value) is not None), None)
    if first is None:
        return
    live = threads.last

    def lines() -> Iterator[Mapping[str, Any]]:
        yield as_mapping(first.data)
        for value in values:
            thread = threads.claim(value)
            if thread is live:
                yield as_mapping(value.data)
            elif thread is not None:
                thread.places.append(value.offset)

    yield Run(
        NAME,
        source.path,
        0,
        assemble(_events(lines())),
        id=live.name,
        outcome=threads.outcome,
    )
    others = [thread for thread in threads.all if thread.places]
    for index, thread in enumerate(others, start=1):
        again = (as_mapping(source.value_at(offset)) for offset in thread.places)
        yield Run(NAME, source.path, index, assemble(_events(again)), id=thread.name)


@dataclass(slots=True)
class _Thread:
    """The lines of one run."""

    name: str | None
    is_sidechain: bool
    places: array[int] = field(default_factory=lambda: array("q"))


class _Threads:
    """Tells by its links to which run a line belongs.

    Keeps the id of every line: about 200 bytes a line, whatever its length.
    """

    def __init__(self) -> None:
        self.all: list[_Thread] = []
        self.last = _Thread(None, is_sidechain=False)
        self.outcome: dict[str, Any] = {}
        self._of_line: dict[str, _Thread] = {}
        self._of_key: dict[tuple[str | None, str | None], _Thread] = {}

    def claim(self, value: Value) -> _Thread | None:
        """The run that the line is a message of; None when it is no message, or a copy of one."""
        line = as_mapping(value.data)
        kind = line.get("type")
        if kind == "result":
            self.outcome["result"] = line.get("subtype")
        own_id = as_text(line.get("uuid"))
        if own_id is not None and own_id in self._of_line:
            return None  # a session that was resumed repeats the lines before
        is_message = kind in ("user", "assistant") and isinstance(line.get("message"), dict)
        if own_id is None and not is_message:
            return None
        self.last = self._thread_of(line)
        if own_id is not None:
            self._of_line[own_id] = self.last
        return self.last if is_message else None

    def _thread_of(self, line: Mapping[str, Any]) -> _Thread:
        session = as_text(line.get("sessionId")) or as_text(line.get("session_id"))
        agent = as_text(line.get("agentId")) or as_text(line.get("parent_tool_use_id"))
        parent = as_text(line.get("parentUuid"))
        if agent is not None:
            return self._keyed(session, agent)
        before = None if parent is None else self._of_line.get(parent)
        is_sidechain = line.get("isSidechain") is True
        if before is not None and before.is_sidechain is is_sidechain:
            if not is_sidechain:  # resumed under another id: later lines may only have that
                self._of_key.setdefault((session, None), before)
            return before
        if is_sidechain:
            return self._new(f"{session or 'session'}/sidechain-{len(self.all)}", is_sidechain=True)
        return self._keyed(session, None)

    def _keyed(self, session: str | None, agent: str | None) -> _Thread:
        thread = self._of_key.get((session, agent))
        if thread is None:
            name = session if agent is None else f"{session or 'session'}/agent-{agent}"
            thread = self._new(name, is_sidechain=agent is not None)
            self._of_key[session, agent] = thread
        return thread

    def _new(self, name: str | None, *, is_sidechain: bool) -> _Thread:
        thread = _Thread(name, is_sidechain)
        self.all.append(thread)
        return thread


def _events(lines: Iterator[Mapping[str, Any]]) -> Iterator[Event]:
    for line in lines:
        message = as_mapping(line.get("message"))
        timestamp = line.get("timestamp")
        if line.get("type") == "user":
            yield from said_of({**message, "timestamp": timestamp})
        elif message.get("model") != _SYNTHETIC:
            calls = calls_of(message)
            yield Reply(
                text=text_of(message.get("content")),
                # A reply of several lines has its calls in later ones: no line's text is searched.
                calls=calls,
                syntax="native" if calls else None,
                tokens=usage_of(message.get("usage")),
                timestamp=seconds(timestamp),
                key=as_text(message.get("id")) or as_text(line.get("requestId")),
            )
