"""The message history of an agent loop, valid for the API that it is sent to at every moment.

Two styles: OpenAI's chat API (an assistant message with `tool_calls`, then one `tool` message for
each) and Anthropic's (an assistant message with `tool_use` blocks, then one user message with a
`tool_result` block for each). Both ask for the same: every call is answered right after the message
that makes it, once, by id; no message is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from turnwarden._core import Reply, ToolCall

__all__ = [
    "ANTHROPIC",
    "OPENAI",
    "CallAnswer",
    "HistoryStyle",
    "Message",
    "MessageStyle",
    "as_messages",
    "ids_in",
    "plain_message",
    "with_unique_ids",
]

Message: TypeAlias = dict[str, Any]
MessageStyle: TypeAlias = Literal["openai", "anthropic"]


@dataclass(slots=True)
class CallAnswer:
    """What the model is told about one of its calls."""

    call: ToolCall
    text: str
    is_error: bool


class HistoryStyle(Protocol):
    """How one API wants its messages."""

    def assistant(
        self, reply: Reply, calls: Sequence[ToolCall], native: Mapping[str, Any] | None
    ) -> Message | None:
        """The message for a reply; None when it would be empty.

        Args:
            reply: What was read.
            calls: Its calls, with ids that are unique in the run.
            native: The message as the model gave it, when it gave one.
        """
        ...

    def answers(self, answers: Sequence[CallAnswer], notes: Sequence[str]) -> list[Message]:
        """The messages that answer calls, and say what else is to be said."""
        ...

    def accepts_id(self, call_id: str) -> bool:
        """Whether the API takes this id."""
        ...


def as_messages(messages: str | Iterable[Any]) -> list[Message]:
    """Messages as dicts, copied: a text is one message of the user.

    Raises:
        TypeError: Something that is no message.
    """
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    if isinstance(messages, Mapping):
        raise TypeError("expected a text or a list of messages, not one message")
    if isinstance(messages, (bytes, bytearray)) or not isinstance(
        cast("object", messages), Iterable
    ):
        kind = type(cast("object", messages)).__name__
        raise TypeError(f"expected a text or a list of messages, not {kind}")
    converted: list[Message] = []
    for position, message in enumerate(messages):
        plain = plain_message(message)
        if plain is None or "role" not in plain:
            raise TypeError(f"messages[{position}] is no message: it needs a role")
        converted.append(plain)
    return converted


def plain_message(message: object) -> Message | None:
    """A message as a new dict, from a mapping or an SDK's object; None when it is neither."""
    if isinstance(message, Mapping):
        return dict(cast("Mapping[str, Any]", message))
    dump = getattr(message, "model_dump", None)
    if callable(dump) and not isinstance(message, type):
        return cast("Message", dump(exclude_none=True))
    fields = getattr(message, "__dict__", None)
    if not isinstance(fields, dict) or isinstance(message, type):
        return None
    known = cast("Message", fields)
    return {key: value for key, value in known.items() if value is not None}


# Ids


def ids_in(messages: Iterable[Mapping[str, Any]]) -> set[str]:
    """The ids of all calls in a history."""
    found: set[str] = set()
    for message in messages:
        content = message.get("content")
        for part in (*_dicts(message.get("tool_calls")), *_dicts(content)):
            call_id = part.get("id")
            if isinstance(call_id, str):
                found.add(call_id)
    return found


def with_unique_ids(
    calls: Iterable[ToolCall], used: set[str], style: HistoryStyle
) -> list[ToolCall]:
    """The calls, those anew whose ids were used before or that the API would not take.

    Some models count their ids from 0 in every reply.
    """
    unique: list[ToolCall] = []
    for call in calls:
        kept = call
        if call.id in used or not style.accepts_id(call.id):
            kept = ToolCall(call.name, call.arguments_json)
        used.add(kept.id)
        unique.append(kept)
    return unique


def _dicts(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, (list, tuple)):
        return []
    items = cast("Sequence[object]", value)
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]


# Guidance: at the end of the prompt, not in the history


def with_guidance(messages: Sequence[Message], guidance: str | None) -> list[Message]:
    """A prompt: the messages, with the guard's text at the end when there is one.

    It joins the last message when that is the user's, since some chat templates refuse two in a
    row; a system message at the end is refused by more of them.
    """
    prompt = list(messages)
    if guidance is None:
        return prompt
    last = prompt[-1] if prompt else {}
    content = last.get("content")
    if last.get("role") != "user":
        prompt.append({"role": "user", "content": guidance})
    elif isinstance(content, str):
        prompt[-1] = {**last, "content": f"{content}\n\n{guidance}" if content else guidance}
    else:
        blocks = cast("list[Any]", list(content or ()))
        prompt[-1] = {**last, "content": [*blocks, {"type": "text", "text": guidance}]}
    return prompt


# The two styles

_UNREADABLE: Final = "(a reply that could not be read)"

# What providers put beside content and calls, and want to see again.
_CARRIED: Final = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking_blocks",
    "provider_specific_fields",
    "extra_content",
    "refusal",
    "name",
)


class _OpenAI:
    """Chat completions."""

    def assistant(
        self, reply: Reply, calls: Sequence[ToolCall], native: Mapping[str, Any] | None
    ) -> Message | None:
        message: Message = {"role": "assistant", "content": reply.text or None}
        if native is not None:
            carried = {key: native[key] for key in _CARRIED if native.get(key) is not None}
            message.update(carried)
        if calls:
            message["tool_calls"] = _with_native_fields(calls, native)
        elif not reply.text:
            if not _has_refused_calls(reply):
                return None
            message["content"] = reply.cleaned.strip() or _UNREADABLE
        return message

    def answers(self, answers: Sequence[CallAnswer], notes: Sequence[str]) -> list[Message]:
        messages = [answer.call.to_openai_result(answer.text) for answer in answers]
        if notes:
            messages.append({"role": "user", "content": "\n\n".join(notes)})
        return messages

    def accepts_id(self, call_id: str) -> bool:
        return bool(call_id)


def _with_native_fields(
    calls: Sequence[ToolCall], native: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Calls with the fields that the provider gave each, such as a thought's signature."""
    given = {item.get("id"): item for item in _dicts((native or {}).get("tool_calls"))}
    return [{**given.get(call.id, {}), **call.to_openai()} for call in calls]


_ANTHROPIC_ID: Final = re.compile(r"[A-Za-z0-9_-]+")


class _Anthropic:
    """Messages with blocks."""

    def assistant(
        self, reply: Reply, calls: Sequence[ToolCall], native: Mapping[str, Any] | None
    ) -> Message | None:
        blocks = self._blocks(reply, calls, native)
        if blocks:
            return {"role": "assistant", "content": blocks}
        if not _has_refused_calls(reply):
            return None
        text = reply.cleaned.strip() or _UNREADABLE
        return {"role": "assistant", "content": [{"type": "text", "text": text}]}

    def _blocks(
        self, reply: Reply, calls: Sequence[ToolCall], native: Mapping[str, Any] | None
    ) -> list[dict[str, Any]]:
        """The model's own blocks, thoughts with their signatures among them, or new ones."""
        given = _blocks_of(native)
        text = [{"type": "text", "text": reply.text}] if reply.text.strip() else []
        if not any(block.get("type") == "tool_use" for block in given):
            thoughts = [dict(block) for block in given if _is_thought(block)]
            blocks = [*text, *(call.to_anthropic() for call in calls)]
            return [*thoughts, *blocks] if blocks else []
        made = [call.to_anthropic() for call in calls]
        kept = [dict(block) for block in given if block.get("type") != "tool_use"]
        spoken = [block for block in kept if block.get("type") != "text" or block.get("text")]
        return [*spoken, *made] if made or text else []

    def answers(self, answers: Sequence[CallAnswer], notes: Sequence[str]) -> list[Message]:
        blocks = [
            answer.call.to_anthropic_result(answer.text, is_error=answer.is_error)
            for answer in answers
        ]
        blocks += [{"type": "text", "text": note} for note in notes]
        return [{"role": "user", "content": blocks}] if blocks else []

    def accepts_id(self, call_id: str) -> bool:
        return _ANTHROPIC_ID.fullmatch(call_id) is not None


def _blocks_of(native: Mapping[str, Any] | None) -> list[Message]:
    """The content blocks of a native message, also when they are an SDK's objects."""
    content = None if native is None else native.get("content")
    if not isinstance(content, (list, tuple)):
        return []
    blocks = [plain_message(block) for block in cast("Sequence[object]", content)]
    return [block for block in blocks if block is not None and "type" in block]


def _is_thought(block: Mapping[str, Any]) -> bool:
    return block.get("type") in ("thinking", "redacted_thinking")


def _has_refused_calls(reply: Reply) -> bool:
    return bool(reply.faults or reply.incomplete_calls)


OPENAI: Final[HistoryStyle] = _OpenAI()
ANTHROPIC: Final[HistoryStyle] = _Anthropic()
