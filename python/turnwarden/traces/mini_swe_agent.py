"""mini-swe-agent trajectories (`.traj.json`): chat messages of an agent with one tool, bash.

In its text form the action is the one fenced block of a reply; a reply with none or several is
refused by the program, which asks again. Newer trajectories name the actions that were taken, or
hold native calls.
"""

from __future__ import annotations

import re
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
from turnwarden.traces.chat import calls_of, events_of, reply_of
from turnwarden.traces.model import RecordedCall, RecordedResult, Run
from turnwarden.traces.source import Source, Value

__all__ = ["NAME", "detect", "runs"]

NAME: Final = "mini-swe-agent"
_FENCE_LABELS: Final = ("mswea_bash_command", "bash")
_LABEL_IN_PATTERN: Final = re.compile(r"```\(?\??:?([A-Za-z_][\w-]*)")


def detect(value: object) -> bool:
    """Whether a value of a file is of this format."""
    return _is_trajectory(as_mapping(value))


def runs(source: Source, values: Iterator[Value]) -> Iterator[Run]:
    """The runs of a file: one for each trajectory."""
    index = 0
    for value in values:
        record = as_mapping(value.data)
        if not _is_trajectory(record):
            source.fail("no trajectory", value.place)
            continue
        info = as_mapping(record.get("info"))
        exit_status = as_text(info.get("exit_status"))
        messages = as_list(record["messages"])
        yield Run(
            NAME,
            source.path,
            index,
            assemble(_events(messages, _fence(info))),
            id=as_text(record.get("instance_id")),
            outcome={"exit_status": exit_status} if exit_status else {},
        )
        index += 1


def _is_trajectory(record: Mapping[str, Any]) -> bool:
    if not isinstance(record.get("messages"), list):
        return False
    form = as_text(record.get("trajectory_format")) or ""
    return form.startswith("mini-swe-agent") or "mini_version" in as_mapping(record.get("info"))


def _fence(info: Mapping[str, Any]) -> re.Pattern[str]:
    """The fenced block that is an action.

    A trajectory may carry the pattern that its agent was set up with. Only the fence's label is
    taken from it: a pattern out of a file is not run.
    """
    labels = list(_FENCE_LABELS)
    config = as_mapping(info.get("config"))
    for part in ("agent", "model"):
        pattern = as_text(as_mapping(config.get(part)).get("action_regex"))
        if pattern and (found := _LABEL_IN_PATTERN.search(pattern)):
            labels = [found.group(1)]
    names = "|".join(re.escape(label) for label in labels)
    return re.compile(rf"```(?:{names})[^\S\n]*\n(.*?)\n?```", re.DOTALL)


def _events(messages: Sequence[Any], fence: re.Pattern[str]) -> Iterator[Event]:
    expects_refusal = expects_result = False
    for message in messages:
        fields = as_mapping(message)
        role = fields.get("role")
        if role == "assistant" or fields.get("object") == "response":
            reply, refused = _reply(fields, fence)
            # The agent goes on after a reply that it refuses, so the next words refuse this one.
            expects_refusal = refused
            expects_result = reply.syntax == "bash block"
            yield reply
        elif role in ("user", "exit") and expects_refusal:
            expects_refusal = False
            if role == "user":
                yield Feedback(text_of(fields.get("content")), refusal=True)
        elif role in ("user", "exit") and expects_result:
            expects_result = False
            yield RecordedResult(text_of(fields.get("content")))
        elif fields.get("type") == "function_call_output":
            yield RecordedResult(text_of(fields.get("output")), as_text(fields.get("call_id")))
        else:
            yield from events_of((message,))


def _reply(message: Mapping[str, Any], fence: re.Pattern[str]) -> tuple[Reply, bool]:
    """The reply, and whether the agent must have refused it."""
    reply = reply_of(message)
    if reply.calls is not None:
        return reply, False
    extra = as_mapping(message.get("extra"))
    native = calls_of({"tool_calls": _function_calls(message)})
    commands = [as_mapping(action) for action in as_list(extra.get("actions"))]
    calls = native or tuple(
        RecordedCall("bash", {"command": command}, as_text(action.get("tool_call_id")))
        for action in commands
        if (command := as_text(action.get("command"))) is not None
    )
    if calls:
        named = native or any(call.id is not None for call in calls)
        syntax = "native" if named else "bash block"
        return _with_calls(reply, _output_text(message) or reply.text, calls, syntax), False
    blocks = [found.group(1).strip() for found in fence.finditer(reply.text)]
    if len(blocks) != 1:
        return _with_calls(reply, reply.text, (), None), True
    call = RecordedCall("bash", {"command": blocks[0]})
    return _with_calls(reply, fence.sub("", reply.text).strip(), (call,), "bash block"), False


def _with_calls(
    reply: Reply, text: str, calls: tuple[RecordedCall, ...], syntax: str | None
) -> Reply:
    return Reply(
        text=text, calls=calls, syntax=syntax, tokens=reply.tokens, timestamp=reply.timestamp
    )


def _function_calls(message: Mapping[str, Any]) -> list[Any]:
    """The calls of a reply that is kept in the form of OpenAI's Responses."""
    items = (as_mapping(item) for item in as_list(message.get("output")))
    return [item for item in items if item.get("type") == "function_call"]


def _output_text(message: Mapping[str, Any]) -> str:
    items = (as_mapping(item) for item in as_list(message.get("output")))
    return "\n".join(
        text_of(item.get("content")) for item in items if item.get("type") == "message"
    )
