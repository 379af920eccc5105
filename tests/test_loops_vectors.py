"""Recorded loops are caught in time, and healthy runs are left alone."""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from turnwarden import GuardAction, TextLoopDetector, WorkflowGuard

VECTORS = Path(__file__).parent / "vectors"
ROWS = [
    json.loads(line)
    for name in ("loops.jsonl", "loops_more.jsonl")
    for line in (VECTORS / name).read_text(encoding="utf-8").splitlines()
]
CALL_ROWS = [row for row in ROWS if row.get("calls")]


def turns(calls: list[dict[str, Any]]) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """Calls with their numbers, those with one `turn` together."""
    numbered = enumerate(calls)
    for _, turn in groupby(numbered, key=lambda item: item[1].get("turn", f"call {item[0]}")):
        yield list(turn)


def first_verdict(row: dict[str, Any], *, with_results: bool = True) -> int | None:
    """The number of the call after which the guard first spoke of a loop."""
    guard = WorkflowGuard(policies=row.get("policies"))
    for turn in turns(row["calls"]):
        calls = [{"id": str(n), "name": call["tool"], "args": call["args"]} for n, call in turn]
        if guard.record_turn(calls).loop_check.loop_detected:
            return turn[-1][0]
        for number, call in turn if with_results else ():
            if "result" in call or "error" in call:
                guard.record_tool_result(
                    call.get("result"), call_id=str(number), error=call.get("error")
                )
            if guard.check().loop_check.loop_detected:
                return number
    return None


@pytest.mark.parametrize(
    "row", [row for row in CALL_ROWS if row["expect"]["loop"]], ids=lambda row: row["id"]
)
def test_loop_is_caught_in_time(row: dict[str, Any]) -> None:
    found = first_verdict(row)
    last = row["expect"]["by_call"]
    in_time = found is not None and (last is None or found <= last)
    if not row.get("required", True) and not in_time:
        pytest.skip("nice to have")
    assert in_time, f"{row['why']} (found: {found}, due: {last})"


@pytest.mark.parametrize(
    "row", [row for row in CALL_ROWS if not row["expect"]["loop"]], ids=lambda row: row["id"]
)
def test_healthy_run_is_left_alone(row: dict[str, Any]) -> None:
    assert first_verdict(row) is None, row["why"]


def test_a_loop_that_goes_on_is_stopped() -> None:
    row = next(row for row in CALL_ROWS if row["id"] == "miss-warn-once")
    guard = WorkflowGuard()
    actions: list[GuardAction] = []
    for call in row["calls"]:
        actions.append(guard.record_tool_call(call["tool"], call["args"]).action)
        guard.record_tool_result(error=call["error"])
    assert actions[3:5] == [GuardAction.BLOCK, GuardAction.STOP]


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.get("text_chunks")], ids=lambda row: row["id"]
)
def test_text_that_repeats_itself_is_found(row: dict[str, Any]) -> None:
    detector = TextLoopDetector()
    found = [detector.feed(chunk) for chunk in row["text_chunks"]]
    assert any(found) == row["expect"]["loop"], row["why"]
