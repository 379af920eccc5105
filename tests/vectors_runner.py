"""Reads the shared vectors, and says what a reply must be like to satisfy one of their rows."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import turnwarden
from turnwarden import Reply, ResponseParser

VECTORS = Path(__file__).parent / "vectors"

# Rows of these labels speak of something else than one format that could be pinned.
NOT_A_FORMAT = {"reasoning", "none", "native"}


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of one file of vectors."""
    with (VECTORS / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def by_id(row: dict[str, Any]) -> str:
    """The id of a row, for `pytest.mark.parametrize`."""
    return row["id"]


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal, a boolean never being a number."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return (type(left) is type(right) and left == right) or (
        isinstance(left, int | float) and isinstance(right, int | float) and left == right
    )


def tool_definitions(tools: dict[str, dict[str, str | None]]) -> list[dict[str, Any]]:
    """OpenAI definitions of the tools that a row declares: name to parameter types."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "parameters": {
                    "type": "object",
                    "properties": {
                        key: {} if kind is None else {"type": kind} for key, kind in kinds.items()
                    },
                },
            },
        }
        for name, kinds in tools.items()
    ]


def parser_for(row: dict[str, Any], formats: list[str] | None = None) -> ResponseParser:
    """The parser that a row asks for: its tools declared, the format detected unless given."""
    tools = tool_definitions(row["tools"]) if row.get("tools") else None
    return ResponseParser(formats, tools)


def calls_of(calls: Iterable[turnwarden.ToolCall]) -> list[dict[str, Any]]:
    """Calls in the shape of the vectors."""
    return [{"name": call.name, "arguments": call.arguments} for call in calls]


def check_tool_calls_row(row: dict[str, Any], reply: Reply) -> None:
    """A reply satisfies a row of tool_calls.jsonl."""
    expect = row["expect"]
    found = calls_of(reply.incomplete_calls if row.get("incomplete") else reply.tool_calls)
    accepted = [expect["calls"], *row.get("accept_calls", [])]
    assert any(same(found, calls) for calls in accepted), (found, accepted, row["why"])
    if row.get("incomplete"):
        assert reply.tool_calls == ()
    if not row.get("content_any"):
        content = reply.text if reply.workflow is None else reply.workflow.content
        assert content.strip() == expect["content"].strip(), row["why"]
    if "reasoning" in expect and not row.get("reasoning_any"):
        assert (reply.reasoning or "").strip() == (expect["reasoning"] or "").strip(), row["why"]


def check_workflow_row(row: dict[str, Any], reply: Reply) -> None:
    """A reply satisfies a row of workflow_json.jsonl."""
    expect = row["expect"]
    if "workflow" in expect:
        workflow = None if reply.workflow is None else reply.workflow.to_dict()
        assert same(workflow, expect["workflow"]), (workflow, row.get("why"))
    if "calls" in expect:
        found = [[call.name, call.arguments] for call in reply.tool_calls]
        assert same(found, expect["calls"]), (found, row.get("why"))
    if "text" in expect:
        content = reply.text if reply.workflow is None else reply.workflow.content
        assert content == expect["text"], row.get("why")
    if "has" in expect:
        assert bool(reply.tool_calls) is expect["has"], row.get("why")
    if "success" in expect:
        success = reply.workflow is not None or bool(reply.tool_calls)
        assert success is expect["success"], row.get("why")


def random_splits(text: str, count: int = 50) -> Iterable[list[str]]:
    """Ways to cut a text into chunks, the same in every run."""
    chooser = random.Random(text)
    for _ in range(count):
        pieces = chooser.randint(1, 8)
        cuts = sorted(chooser.randint(0, len(text)) for _ in range(pieces))
        yield [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def streamed(parser: ResponseParser, chunks: Sequence[str | bytes]) -> Reply:
    """Feed chunks, check what the events promise, and give the final reply."""
    stream = parser.stream()
    events = [event for chunk in chunks for event in stream.feed(chunk)] + stream.finish()
    check_events(events)
    return stream.reply


def check_events(events: Sequence[turnwarden.Event]) -> None:
    """The events of a reply join to what its last one says."""
    last = events[-1]
    assert isinstance(last, turnwarden.ReplyFinished)
    reply = last.reply
    text, reasoning = "", ""
    arguments: dict[int, str] = {}
    started: dict[int, turnwarden.ToolCallStarted] = {}
    ended: list[turnwarden.ToolCall] = []
    faults: list[turnwarden.ParseFault] = []
    for event in events[:-1]:
        match event:
            case turnwarden.TextDelta(piece):
                assert piece
                text += piece
            case turnwarden.TextRetracted(length):
                assert 0 < length <= len(text)
                text = text[:-length]
            case turnwarden.ReasoningDelta(piece):
                assert piece
                reasoning += piece
            case turnwarden.ToolCallStarted(index):
                assert index not in started
                started[index] = event
                arguments[index] = ""
            case turnwarden.ToolCallArguments(index, delta):
                arguments[index] += delta
            case turnwarden.ToolCallEnded(index, call):
                assert (started[index].id, started[index].name) == (call.id, call.name)
                assert arguments[index] == call.arguments_json
                ended.append(call)
            case turnwarden.ParseFault():
                faults.append(event)
            case turnwarden.ReplyFinished():
                raise AssertionError("finished twice")
    assert text == reply.text
    assert reasoning == (reply.reasoning or "")
    # A call that a closing tag alone makes part of reasoning is told to be no call after all.
    made = {call.id for call in reply.tool_calls}
    assert [call for call in ended if call.id in made] == list(reply.tool_calls)
    drafts = [fault.name for fault in reply.faults if fault.kind == "draft"]
    assert all(call.name in drafts for call in ended if call.id not in made)
    told = sorted((fault.offset, fault.kind) for fault in faults)
    assert told == sorted((fault.offset, fault.kind) for fault in reply.faults)
