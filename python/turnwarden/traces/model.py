"""What a recorded run is made of, whatever program wrote it.

A reader turns one file into `Run` objects; a run gives its `Turn` objects one by one. A turn is one
reply of the model with the results that its calls got. Nothing here is parsed yet: arguments are
kept as the file has them, and a reply whose calls stand in its text is kept as text, because
finding calls is the parser's work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turnwarden import TurnwardenError

__all__ = [
    "RecordedCall",
    "RecordedResult",
    "Run",
    "TokenUsage",
    "TraceError",
    "Turn",
]


class TraceError(TurnwardenError, ValueError):
    """A recorded run, or a part of one, that could not be read.

    Attributes:
        path: The file, `-` for standard input.
        reason: What was found and, where it helps, what to do.
        place: Where in the file, such as `line 7`; None when it is the file as a whole.
    """

    def __init__(self, path: str, reason: str, place: str | None = None) -> None:
        self.path = path
        self.reason = reason
        self.place = place
        super().__init__(path, reason, place)

    def __str__(self) -> str:
        where = f"{self.path}, {self.place}" if self.place else self.path
        return f"{where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens that the file says a turn cost: what the model read and what it wrote."""

    input: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        """Both together."""
        return self.input + self.output


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that the file holds as a call, not as text of the reply.

    Attributes:
        name: The tool's name.
        arguments: As in the file: an object, or the JSON text of one (perhaps broken).
        id: The model's id for it, unique within its turn at best.
    """

    name: str
    arguments: Mapping[str, Any] | str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """What a tool answered.

    Attributes:
        content: The answer as text; structured answers as compact JSON.
        call_id: Which call it answers; None when the file does not say.
        is_error: Whether the file marks it as an error.
        timestamp: When it came, in seconds; None when the file does not say.
    """

    content: str
    call_id: str | None = None
    is_error: bool = False
    timestamp: float | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply of the model and what came back.

    Attributes:
        index: Counts from 0 over the turns of the run.
        text: What the model wrote, without calls that the file holds separately.
        calls: The calls that the file holds as calls. None when it holds none as such: calls may
            then stand in `text`.
        results: What the tools answered, in the order of the file.
        feedback: What the user or the program said next; the result of a call that stood in `text`.
        refusal: The program's words when it refused the reply before anything ran.
        syntax: How the file writes its calls, such as `native` or `bash block`.
        tokens: What the turn cost; None when the file does not say.
        timestamp: When the reply came, in seconds; None when the file does not say.
    """

    index: int
    text: str
    calls: tuple[RecordedCall, ...] | None = None
    results: tuple[RecordedResult, ...] = ()
    feedback: str | None = None
    refusal: str | None = None
    syntax: str | None = None
    tokens: TokenUsage | None = None
    timestamp: float | None = None


def _no_outcome() -> dict[str, Any]:
    return {}


@dataclass(slots=True)
class Run:
    """One recorded run.

    The turns are read from the file while they are asked for, so a run of any length needs little
    memory. They can be had once, and only until the next run of the same file is asked for, which
    skips what is left of this one.

    Attributes:
        source: The format, such as `tau-bench`.
        path: The file, `-` for standard input.
        index: Counts from 0 over the runs of the file.
        id: The run's name in the file; None when it has none.
        tools: Tool definitions that the file carries, as they stand in it; may be empty.
        outcome: What the file says about how the run ended, such as `{"reward": 1.0}`; complete
            when the turns have been read.
    """

    source: str
    path: str
    index: int
    _turns: Iterator[Turn] = field(repr=False)
    id: str | None = None
    tools: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    outcome: dict[str, Any] = field(default_factory=_no_outcome)

    @property
    def name(self) -> str:
        """The id, or the file's name and the index where there is no id."""
        if self.id is not None:
            return self.id
        file = "stdin" if self.path == "-" else Path(self.path).name
        return f"{file}#{self.index}"

    def turns(self) -> Iterator[Turn]:
        """The turns that have not been read yet, read on demand.

        Raises:
            TraceError: A part of the file cannot be read, unless `read_runs` was told what to do
                with errors; turns already given stay valid.
        """
        return self._turns

    def __iter__(self) -> Iterator[Turn]:
        return self._turns


ErrorHandler = Callable[[TraceError], None]
"""Told of what could not be read; reading goes on with what comes after it."""
