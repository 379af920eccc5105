"""Puts the events of a recorded conversation together to turns.

Readers say what happened, one event after another: the model replied, a tool answered, somebody
spoke. Which answer belongs to which reply is settled here, for all formats in the same way, with a
bounded number of turns held at a time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, cast

from turnwarden.traces.model import RecordedCall, RecordedResult, TokenUsage, Turn

__all__ = [
    "Event",
    "Feedback",
    "Reply",
    "as_list",
    "as_mapping",
    "as_text",
    "assemble",
    "seconds",
    "text_of",
    "usage_of",
]

# Replies in a row without an answer that are held: they may turn out to be one parallel batch.
_MOST_PENDING: Final = 64
_MILLISECONDS_FROM: Final = 1e11  # as seconds, that would be the year 5138
_YEAR_1: Final = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_YEAR_9999: Final = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
_MOST_TOKENS: Final = 10**12  # of one turn; more is a mistake in the file


@dataclass(frozen=True, slots=True)
class Reply:
    """The model replied; see `Turn` for the fields.

    Attributes:
        key: Replies in a row with one key are parts of one reply.
    """

    text: str
    calls: tuple[RecordedCall, ...] | None = None
    syntax: str | None = None
    refusal: str | None = None
    tokens: TokenUsage | None = None
    timestamp: float | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """The user or the program spoke.

    Attributes:
        text: What was said.
        refusal: Whether it refuses the reply before it, which then ran nothing.
    """

    text: str
    refusal: bool = False


Event = Reply | RecordedResult | Feedback


def _no_results() -> list[RecordedResult]:
    return []


@dataclass(slots=True)
class _OpenTurn:
    """A turn that may still get answers."""

    text: str
    calls: list[RecordedCall] | None
    syntax: str | None
    refusal: str | None
    tokens: TokenUsage | None
    timestamp: float | None
    key: str | None
    results: list[RecordedResult] = field(default_factory=_no_results)
    feedback: str | None = None
    unanswered: Counter[str | None] = field(default_factory=Counter[str | None])

    def __post_init__(self) -> None:
        self.unanswered.update(call.id for call in self.calls or ())

    def add_result(self, result: RecordedResult) -> None:
        """Takes in an answer."""
        self.results.append(result)
        self.unanswered[result.call_id] -= 1

    def join(self, other: Reply | _OpenTurn) -> None:
        """Takes in a later part of the same reply."""
        if other.text and other.text != self.text:
            self.text = f"{self.text}\n{other.text}" if self.text else other.text
        self._add_calls(other.calls or ())
        self.syntax = self.syntax or other.syntax
        self.tokens = other.tokens or self.tokens

    def _add_calls(self, calls: Iterable[RecordedCall]) -> None:
        known: dict[str | None, list[RecordedCall]] = {}
        for call in self.calls or ():
            known.setdefault(call.id, []).append(call)
        for call in calls:
            # Logs of streams repeat a message as it grows.
            if call.id is not None and call in known.get(call.id, ()):
                continue
            self.calls = self.calls or []
            self.calls.append(call)
            self.unanswered[call.id] += 1

    def close(self, index: int) -> Turn:
        return Turn(
            index=index,
            text=self.text,
            calls=None if self.calls is None else tuple(self.calls),
            results=tuple(self.results),
            feedback=self.feedback,
            refusal=self.refusal,
            syntax=self.syntax,
            tokens=self.tokens,
            timestamp=self.timestamp,
        )


def assemble(events: Iterable[Event]) -> Iterator[Turn]:
    """Puts events together to turns.

    Replies in a row whose answers come together are one turn: some programs write each parallel
    call as a message of its own. An answer to no call that is known is passed over.
    """
    pending: list[_OpenTurn] = []
    index = 0
    for event in events:
        match event:
            case Reply():
                if pending and event.key is not None and event.key == pending[-1].key:
                    pending[-1].join(event)
                    continue
                answered = bool(pending) and _is_answered(pending[-1])
                while pending and (answered or len(pending) >= _MOST_PENDING):
                    yield pending.pop(0).close(index)
                    index += 1
                pending.append(_open(event))
            case RecordedResult():
                _answer(pending, event)
            case Feedback():
                if pending:
                    _speak(pending[-1], event)
    for turn in pending:
        yield turn.close(index)
        index += 1


def _open(reply: Reply) -> _OpenTurn:
    return _OpenTurn(
        text=reply.text,
        calls=None if reply.calls is None else list(reply.calls),
        syntax=reply.syntax,
        refusal=reply.refusal,
        tokens=reply.tokens,
        timestamp=reply.timestamp,
        key=reply.key,
    )


def _is_answered(turn: _OpenTurn) -> bool:
    return bool(turn.results) or turn.feedback is not None or turn.refusal is not None


def _answer(pending: list[_OpenTurn], result: RecordedResult) -> None:
    """Gives an answer to the reply that waits for it."""
    if not pending:
        return
    if result.call_id is not None:
        for at in range(len(pending) - 1, -1, -1):
            if pending[at].unanswered[result.call_id] > 0:
                for later in pending[at + 1 :]:
                    pending[at].join(later)
                del pending[at + 1 :]
                pending[at].add_result(result)
                return
    last = pending[-1]
    if last.calls is None or len(last.results) < len(last.calls):
        # The file names another id, or none: answers come in the order of the calls.
        last.add_result(RecordedResult(result.content, None, result.is_error, result.timestamp))


def _speak(turn: _OpenTurn, feedback: Feedback) -> None:
    if feedback.refusal:
        turn.refusal = feedback.text
    elif turn.feedback is None:
        turn.feedback = feedback.text


def as_mapping(value: object) -> Mapping[str, Any]:
    """The value when it is an object, else an empty one: recorded files hold anything anywhere."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[Any]:
    """The value when it is an array, else an empty one."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def as_text(value: object) -> str | None:
    """The value when it is a string that is not empty, or a number as one; else None."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return None


def text_of(content: object) -> str:
    """The text of a message's content: a string, or parts of which some are text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    parts = (_text_of_part(part) for part in cast("list[object]", content))
    return "\n".join(part for part in parts if part)


def _text_of_part(part: object) -> str:
    if isinstance(part, str):
        return part
    fields = as_mapping(part)
    text = fields.get("text")
    if isinstance(text, str):
        return text
    kind = as_text(fields.get("type"))
    if kind in ("thinking", "redacted_thinking", "reasoning", "tool_use", "tool_result"):
        return ""
    if kind is not None and ("image" in kind or "audio" in kind or kind in ("file", "document")):
        return f"[{kind}]"
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"))


def usage_of(value: object) -> TokenUsage | None:
    """Reads a usage record in OpenAI's or Anthropic's words."""
    usage = as_mapping(value)
    read = _count(usage, "prompt_tokens") or (
        _count(usage, "input_tokens")
        + _count(usage, "cache_creation_input_tokens")
        + _count(usage, "cache_read_input_tokens")
    )
    written = _count(usage, "completion_tokens") or _count(usage, "output_tokens")
    return TokenUsage(read, written) if read or written else None


def _count(usage: Mapping[str, Any], key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) and 0 < value <= _MOST_TOKENS else 0


def seconds(value: object) -> float | None:
    """A time stamp in seconds: from ISO 8601 text, or from seconds or milliseconds.

    None for what is no time stamp, or lies outside the years 1 to 9998.
    """
    try:
        time = _seconds(value)
    except (ValueError, OverflowError, OSError):
        return None
    return time if time is not None and _YEAR_1 <= time < _YEAR_9999 else None


def _seconds(value: object) -> float | None:
    if isinstance(value, str):
        return datetime.fromisoformat(value).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value / 1000 if value > _MILLISECONDS_FROM else float(value)
