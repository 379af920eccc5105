"""Formats do not talk across: an example counts where it stands as a reply, and nowhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest
import turnwarden
import vectors_runner as vectors
from turnwarden import Format, ResponseParser

FORMATS = turnwarden.formats()
LABELS = [format.label for format in FORMATS]
PINNED = {label: ResponseParser([label]) for label in LABELS}
ROWS = [row for row in vectors.rows("tool_calls") if row["format"] in LABELS]

each_format = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.label)


def test_labels_are_unique() -> None:
    assert len(set(LABELS)) == len(LABELS)


@each_format
def test_a_format_describes_itself(format: Format) -> None:
    assert format.to_dict() == {
        "label": format.label,
        "models": list(format.models),
        "example": format.example,
    }
    assert format.label in repr(format)
    assert format == turnwarden.formats()[LABELS.index(format.label)]
    assert hash(format) == hash(turnwarden.formats()[LABELS.index(format.label)])


@each_format
def test_an_example_is_read_detected_and_pinned(format: Format) -> None:
    detected = turnwarden.parse(format.example)
    pinned = PINNED[format.label].parse(format.example)
    assert detected.tool_calls
    assert detected.tool_calls == pinned.tool_calls
    assert pinned.format == format.label
    assert detected.text == pinned.text
    assert not detected.faults
    assert not detected.incomplete_calls


@each_format
def test_an_example_is_no_call_where_it_is_only_shown(format: Format) -> None:
    fence = "`" * 3
    for parser in (ResponseParser(), PINNED[format.label]):
        for shown in (
            f"In a script:\n{fence * 2}text\n{format.example}\n{fence * 2}\nThat is all.",
            f"<think>I could write {format.example} here.</think>Done.",
        ):
            reply = parser.parse(shown)
            assert reply.tool_calls == (), shown
            assert reply.incomplete_calls == (), shown
        if fence not in format.example and "\n" not in format.example:
            code = f"Write `` {format.example} `` to call it."
            reply = parser.parse(code)
            assert reply.tool_calls == ()
            assert reply.text == code


@pytest.mark.parametrize("row", ROWS, ids=vectors.by_id)
def test_a_format_that_is_pinned_reads_no_wrong_calls_of_others(row: dict[str, Any]) -> None:
    expect = row["expect"]["calls"]
    accepted = [[], expect, *row.get("accept_calls", [])]
    right = {json.dumps(call, sort_keys=True) for calls in accepted for call in calls}
    for label, parser in PINNED.items():
        calls = vectors.calls_of(parser.parse(row["input"]).tool_calls)
        wrong = [c for c in calls if json.dumps(c, sort_keys=True) not in right]
        assert not wrong, (label, wrong)
