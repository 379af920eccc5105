"""Runs with a label: went round in circles (from which call on), or did not.

Two forms are read: the sequences in `tests/vectors`, and a folder of recorded runs with
`normalised.jsonl` and `labels.jsonl` (README.md describes both files).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

# What the groups of doubtful runs end with.
BORDERLINE = ", borderline"
NICE_TO_HAVE = ", nice to have"

VECTORS = Path(__file__).parents[2] / "tests/vectors"


class RunsError(Exception):
    """A file of runs that cannot be read; the message says which, where and why."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call, and what came back.

    Attributes:
        tool: The tool's name.
        arguments: A JSON value, or the text of one.
        result: A JSON value or a text; None when there is none.
        error: What went wrong; None when nothing did, or when it stands in the result.
        is_answered: Whether anything came back.
    """

    tool: str
    arguments: Any
    result: Any = None
    error: str | None = None
    is_answered: bool = False


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """A run and what a reader of it said.

    Attributes:
        id: Its name.
        group: Where it is from; figures are told by group.
        turns: The calls, those of one reply together.
        is_loop: Whether it goes round in circles; None when nobody said.
        by_call: The number of the call, from 0, by which a good detector has spoken; None when
            that was not said.
        is_solved: Whether the task was done in the end; None when that is not known.
        policies: What is declared about its tools.
    """

    id: str
    group: str
    turns: tuple[tuple[Call, ...], ...]
    is_loop: bool | None
    by_call: int | None = None
    is_solved: bool | None = None
    policies: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A reply in chunks, and whether it repeats itself."""

    id: str
    group: str
    chunks: tuple[str, ...]
    is_loop: bool


def vector_runs(name: str = "loops.jsonl") -> list[LabelledRun]:
    """The sequences of calls in a file of `tests/vectors`."""
    return [_vector(row) for _, row in rows_of(VECTORS / name) if row.get("calls")]


def vector_texts(name: str = "loops.jsonl") -> list[LabelledText]:
    """The texts in a file of `tests/vectors`."""
    return [
        LabelledText(row["id"], row["kind"], tuple(row["text_chunks"]), row["expect"]["loop"])
        for _, row in rows_of(VECTORS / name)
        if row.get("text_chunks")
    ]


def _vector(row: Mapping[str, Any]) -> LabelledRun:
    def call(recorded: Mapping[str, Any]) -> Call:
        return Call(
            recorded["tool"],
            recorded["args"],
            recorded.get("result"),
            recorded.get("error"),
            "result" in recorded or "error" in recorded,
        )

    expect = row["expect"]
    is_nice_to_have = row.get("required") is False
    return LabelledRun(
        id=row["id"],
        group=row["kind"] + (NICE_TO_HAVE if is_nice_to_have else ""),
        turns=_turns(row["calls"], call),
        is_loop=expect["loop"],
        by_call=expect["by_call"],
        policies=row.get("policies") or {},
    )


def recorded_runs(folder: Path) -> list[LabelledRun]:
    """The recorded runs in a folder, with their labels.

    Raises:
        RunsError: A file is missing or broken.
    """
    labels = {row["trace_id"]: row for _, row in rows_of(folder / "labels.jsonl")}
    path = folder / "normalised.jsonl"
    runs: list[LabelledRun] = []
    for number, row in rows_of(path):
        try:
            runs.append(_recorded(row, labels.get(row["trace_id"], {})))
        except (KeyError, TypeError) as error:
            raise RunsError(f"{path}, line {number}: {error!r}") from error
    return runs


def _recorded(row: Mapping[str, Any], label: Mapping[str, Any]) -> LabelledRun:
    is_doubtful = label.get("confidence", "sure") != "sure"
    return LabelledRun(
        id=row["trace_id"],
        group=row["source"] + (BORDERLINE if is_doubtful else ""),
        turns=_turns(row["calls"], _recorded_call),
        is_loop=label.get("loop"),
        by_call=label.get("by_call"),
        is_solved=_is_solved(row.get("outcome") or {}),
    )


def _recorded_call(recorded: Mapping[str, Any]) -> Call:
    """Only the beginning of a long result is kept in the file; its hash stands for the rest."""
    head, length = recorded["result_head"], recorded["result_len"]
    text = head if length <= len(head) else f"{head}\n[the whole: {recorded['result_sha']}]"
    return Call(recorded["tool"], recorded["args"], text, None, is_answered=True)


def _is_solved(outcome: Mapping[str, Any]) -> bool | None:
    """What the run's own project says: graded, answered right, or handed in."""
    if "reward" in outcome:
        return outcome["reward"] == 1.0
    if "correct" in outcome:
        return outcome["correct"] is True
    if "exit_status" in outcome:
        return str(outcome["exit_status"]).lower() == "submitted"
    return None


def _turns(calls: list[Mapping[str, Any]], read: Any) -> tuple[tuple[Call, ...], ...]:
    """Neighbours with one `turn` are one turn; a call without one is a turn of its own."""
    numbered = enumerate(calls)
    turns = groupby(numbered, key=lambda item: item[1].get("turn", f"call {item[0]}"))
    return tuple(tuple(read(call) for _, call in turn) for _, turn in turns)


def rows_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file, one on each line, with the numbers of their lines.

    Raises:
        RunsError: The file is missing, or a line is no JSON object.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise RunsError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise RunsError(f"{path}, line {number}: {error}") from error
        if not isinstance(row, dict):
            raise RunsError(f"{path}, line {number}: no JSON object")
        yield number, row
