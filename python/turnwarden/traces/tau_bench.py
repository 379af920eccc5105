"""tau-bench results: an array of task runs, each with its chat messages in `traj`.

Its text-based agents write a call as `Action:` and a JSON object at the end of the reply, and get
`API output:` back from the user's side; the action `respond` is the answer to the user, no call.
"""

from __future__ import annotations

import json
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
)
from turnwarden.traces.chat import events_of, reply_of
from turnwarden.traces.model import RecordedCall, RecordedResult, Run
from turnwarden.traces.source import Source, Value

__all__ = ["NAME", "detect", "runs"]

NAME: Final = "tau-bench"
_ACTION: Final = "Action:"
_ANSWER: Final = "API output: "


def detect(value: object) -> bool:
    """Whether a value of a file is of this format."""
    return _is_task_run(as_mapping(value))


def runs(source: Source, values: Iterator[Value]) -> Iterator[Run]:
    """The runs of a file: one for each task run."""
    index = 0
    for value in values:
        record = as_mapping(value.data)
        if not _is_task_run(record):
            source.fail("no task run", value.place)
            continue
        yield Run(
            NAME,
            source.path,
            index,
            assemble(_events(as_list(record["traj"]))),
            id=_name(record),
            outcome=_outcome(record),
        )
        index += 1


def _is_task_run(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("traj"), list) and not record.keys().isdisjoint(
        ("task_id", "reward", "trial")
    )


def _name(record: Mapping[str, Any]) -> str | None:
    task = as_text(record.get("task_id"))
    trial = as_text(record.get("trial"))
    if task is None:
        return None
    return f"task-{task}" if trial is None else f"task-{task}-trial-{trial}"


def _outcome(record: Mapping[str, Any]) -> dict[str, Any]:
    outcome = {key: record[key] for key in ("reward",) if key in record}
    error = as_text(as_mapping(record.get("info")).get("error"))
    return {**outcome, "error": error} if error else outcome


def _events(messages: Sequence[Any]) -> Iterator[Event]:
    for message in messages:
        fields = as_mapping(message)
        if fields.get("role") == "assistant":
            yield _reply(fields)
            continue
        for event in events_of((message,)):
            if isinstance(event, Feedback) and event.text.startswith(_ANSWER):
                yield RecordedResult(event.text.removeprefix(_ANSWER))
            else:
                yield event


def _reply(message: Mapping[str, Any]) -> Reply:
    reply = reply_of(message)
    if reply.calls is not None or _ACTION not in reply.text:
        return reply
    thought, _, action = reply.text.rpartition(_ACTION)
    try:
        call = as_mapping(json.loads(action.strip()))
    except (ValueError, RecursionError):
        return reply
    name = as_text(call.get("name"))
    if name is None:
        return reply
    if name == "respond":
        content = as_text(as_mapping(call.get("arguments")).get("content"))
        return Reply(content or "", calls=(), tokens=reply.tokens, timestamp=reply.timestamp)
    recorded = RecordedCall(name, as_mapping(call.get("arguments")))
    return Reply(
        text=thought.strip(),
        calls=(recorded,),
        syntax="action text",
        tokens=reply.tokens,
        timestamp=reply.timestamp,
    )
