"""SWE-agent trajectories (`.traj`): steps with the command that was run and what it printed.

A step's `action` is one command line: its first word is the tool, as in `open main.py`. Files that
hold only a `history` (demonstrations) are read from its messages.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from turnwarden.traces.assembly import (
    Event,
    Feedback,
    Reply,
    as_list,
    as_mapping,
    as_text,
    assemble,
    text_of,
)
from turnwarden.traces.chat import events_of, reply_of
from turnwarden.traces.model import RecordedCall, RecordedResult, Run
from turnwarden.traces.source import Source, Value

__all__ = ["NAME", "detect", "runs"]

NAME: Final = "swe-agent"
_STEP_KEYS: Final = frozenset(("action", "observation"))
_HISTORY_KEYS: Final = frozenset(("agent", "message_type", "action", "thought"))


def detect(value: object) -> bool:
    """Whether a value of a file is of this format."""
    return _is_trajectory(as_mapping(value))


def runs(source: Source, values: Iterator[Value]) -> Iterator[Run]:
    """The runs of a file: one for each trajectory, and one for each attempt of one."""
    index = 0
    for value in values:
        record = as_mapping(value.data)
        if not _is_trajectory(record):
            source.fail("no trajectory", value.place)
            continue
        for attempt in _attempts(record):
            yield _run(source, index, attempt)
            index += 1


def _is_trajectory(record: Mapping[str, Any]) -> bool:
    if isinstance(record.get("attempts"), list) and isinstance(record.get("info"), dict):
        return any(_is_trajectory(as_mapping(attempt)) for attempt in record["attempts"])
    steps = record.get("trajectory")
    if isinstance(steps, list):
        known = [as_mapping(step).keys() >= _STEP_KEYS for step in as_list(record["trajectory"])]
        return all(known) if known else "history" in record or "info" in record
    entries = as_list(record.get("history"))
    return any(_is_history_entry(as_mapping(entry)) for entry in entries)


def _is_history_entry(entry: Mapping[str, Any]) -> bool:
    return "role" in entry and not _HISTORY_KEYS.isdisjoint(entry.keys())


def _attempts(record: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """A trajectory may be a list of tries of the same task, with its own steps repeating one."""
    attempts = [as_mapping(attempt) for attempt in as_list(record.get("attempts"))]
    return [attempt for attempt in attempts if _is_trajectory(attempt)] or [record]


def _run(source: Source, index: int, record: Mapping[str, Any]) -> Run:
    steps = as_list(record.get("trajectory"))
    events = _events(steps) if steps else _history_events(as_list(record.get("history")))
    info = as_mapping(record.get("info"))
    exit_status = as_text(info.get("exit_status"))
    return Run(
        NAME,
        source.path,
        index,
        assemble(events),
        id=as_text(record.get("instance_id")),
        outcome={"exit_status": exit_status} if exit_status else {},
    )


def _events(steps: Sequence[Any]) -> Iterator[Event]:
    for entry in steps:
        step = as_mapping(entry)
        action = as_text(step.get("action")) or ""
        observation = text_of(step.get("observation"))
        thought = as_text(step.get("thought"))
        text = thought if thought is not None else text_of(step.get("response"))
        call = _call(action)
        yield Reply(
            text=text,
            calls=() if call is None else (call,),
            syntax=None if call is None else "action",
        )
        yield Feedback(observation) if call is None else RecordedResult(observation)


def _call(action: str) -> RecordedCall | None:
    command = action.strip()
    if not command:
        return None
    return RecordedCall(_first_word(command), {"command": command})


def _first_word(command: str) -> str:
    word = command.split(None, 1)[0]
    if word[0] in "\"'":
        try:
            return shlex.split(word)[0]
        except (ValueError, IndexError):
            return word
    return word


def _history_events(entries: Sequence[Any]) -> Iterator[Event]:
    """The messages of a history: native calls where they are kept, else the action."""
    waits = False
    for entry in entries:
        message = as_mapping(entry)
        if message.get("is_demo") is True:
            continue
        role = message.get("role")
        if role == "assistant":
            reply = _history_reply(message)
            waits = reply.syntax == "action"
            yield reply
        elif role == "user" and waits:
            waits = False
            yield RecordedResult(text_of(message.get("content")))
        else:
            yield from events_of((entry,))


def _history_reply(message: Mapping[str, Any]) -> Reply:
    reply = reply_of(message)
    if reply.calls is not None:
        return reply
    call = _call(as_text(message.get("action")) or "")
    thought = as_text(message.get("thought"))
    return Reply(
        text=thought if thought is not None else reply.text,
        calls=() if call is None else (call,),
        syntax=None if call is None else "action",
    )
