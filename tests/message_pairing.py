"""Says what is wrong with a message history, for the APIs of OpenAI and of Anthropic.

Both want every call answered right after the message that makes it, once, by id, and no message
empty. Written from what the two APIs refuse.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any


def check_history(messages: Sequence[dict[str, Any]], style: str = "openai") -> None:
    """Fail with all that is wrong."""
    problems = list((_openai if style == "openai" else _anthropic)(messages))
    assert not problems, "\n".join([*problems, json.dumps(messages, indent=1, default=str)])


def _openai(messages: Sequence[dict[str, Any]]):
    open_ids: list[str] = []
    seen: set[str] = set()
    for position, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        at = f"messages[{position}] ({role})"
        if role == "tool":
            call_id = message.get("tool_call_id")
            if call_id not in open_ids:
                yield f"{at}: answers {call_id}, which is not open here"
            else:
                open_ids.remove(call_id)
            if not isinstance(content, str):
                yield f"{at}: content is no text"
            continue
        if open_ids:
            yield f"{at}: calls {open_ids} are not answered"
            open_ids = []
        if role == "assistant":
            calls = message.get("tool_calls")
            if calls is not None and not calls:
                yield f"{at}: tool_calls is empty"
            if not calls and not content:
                yield f"{at}: neither content nor calls"
            if content == "":
                yield f"{at}: content is empty text"
            for call in calls or ():
                yield from _openai_call(call, at, seen)
                open_ids.append(call.get("id"))
        elif role in ("user", "system", "developer"):
            if not content:
                yield f"{at}: content is empty"
        else:
            yield f"{at}: no such role"
    if open_ids:
        yield f"at the end: calls {open_ids} are not answered"


def _openai_call(call: dict[str, Any], at: str, seen: set[str]):
    if call.get("type") != "function" or not call.get("id"):
        yield f"{at}: a call without type or id"
    if call.get("id") in seen:
        yield f"{at}: id {call.get('id')} is used twice"
    seen.add(call.get("id", ""))
    function = call.get("function", {})
    if not isinstance(function.get("name"), str) or not function["name"]:
        yield f"{at}: a call without a name"
    try:
        if not isinstance(json.loads(function.get("arguments")), dict):
            yield f"{at}: arguments are no object"
    except (TypeError, ValueError):
        yield f"{at}: arguments are no JSON text"


def _anthropic(messages: Sequence[dict[str, Any]]):
    open_ids: list[str] = []
    seen: set[str] = set()
    for position, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        at = f"messages[{position}] ({role})"
        if role not in ("user", "assistant"):
            yield f"{at}: no such role"
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            yield f"{at}: content is empty"
            continue
        results = [block for block in blocks if block.get("type") == "tool_result"]
        if results and (role != "user" or blocks[: len(results)] != results):
            yield f"{at}: results must be at the start of a user message"
        ids = [block.get("tool_use_id") for block in results]
        if sorted(ids) != sorted(open_ids):
            yield f"{at}: answers {ids}, open are {open_ids}"
        open_ids = []
        for block in blocks:
            kind = block.get("type")
            if kind == "text" and not str(block.get("text", "")).strip():
                yield f"{at}: an empty text block"
            if kind == "tool_use":
                if role != "assistant":
                    yield f"{at}: a call by the user"
                yield from _anthropic_call(block, at, seen)
                open_ids.append(block.get("id"))
    if open_ids:
        yield f"at the end: calls {open_ids} are not answered"


def _anthropic_call(block: dict[str, Any], at: str, seen: set[str]):
    call_id = block.get("id")
    if not isinstance(call_id, str) or not re.fullmatch("[a-zA-Z0-9_-]+", call_id):
        yield f"{at}: {call_id!r} is no id"
    if call_id in seen:
        yield f"{at}: id {call_id} is used twice"
    seen.add(str(call_id))
    if not block.get("name") or not isinstance(block.get("input"), dict):
        yield f"{at}: a call without name or input"
