"""The guards answer the shared vectors: every script, every answer."""

import dataclasses
import enum
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from turnwarden import Escalation, LoopDetector, RecursionGuard, WorkflowGuard

ROWS = [
    row
    for line in (Path(__file__).parent / "vectors/guards_and_state.jsonl").read_text().splitlines()
    for row in [json.loads(line)]
    if row["id"].startswith(("rg-", "ld-", "wg-"))
]
PROPERTIES = {
    "call_history",
    "config",
    "context",
    "current_iteration",
    "remaining_iterations",
}


# What the reference design leaves out where there is nothing to say.
OPTIONAL = [
    "description",
    "force_terminate_reason",
    "involved_tools",
    "loop_length",
    "loop_type",
    "suggestion",
    "termination_reason",
    "warning_message",
]


class Script:
    """Runs the steps of one row on one object whose clock stands still between ticks."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.guard: Any = None

    def run(self, step: Mapping[str, Any]) -> Any:
        if "tick" in step:
            self.now += step["tick"] / 1000
            return None
        if "new" in step:
            self.guard = self.make(step["new"], step.get("config"))
            return None
        if step["method"] in PROPERTIES:
            return getattr(self.guard, step["method"])
        return getattr(self.guard, step["method"])(*step["args"])

    def make(self, name: str, config: Any) -> Any:
        def clock() -> float:
            return self.now

        match name:
            case "RecursionGuard":
                return RecursionGuard(config)
            case "LoopDetector":
                return LoopDetector(config, clock=clock)
            case "WorkflowGuard":
                return WorkflowGuard(config, clock=clock, escalation=Escalation.strict())
        raise AssertionError(name)


def plain(value: Any) -> Any:
    """Results as the data that the vectors are written in."""
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def mismatch(got: Any, expected: Any, path: str = "answer") -> str | None:
    """What differs first, or None: of an object only the keys given are compared."""
    if isinstance(expected, dict) and "text_with" in expected:
        missing = [piece for piece in expected["text_with"] if piece not in (got or "")]
        if not isinstance(got, str) or missing:
            return f"{path}: {got!r} lacks {missing}"
        return None
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return f"{path}: {got!r} is no object"
        absent = {key: None for key in OPTIONAL if key in got and key not in expected}
        found = (
            mismatch(got.get(key), item, f"{path}.{key}")
            for key, item in (absent | expected).items()
        )
        return next((text for text in found if text), None)
    if isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            return f"{path}: {got!r} is not {expected!r}"
        found = (mismatch(*pair, f"{path}[]") for pair in zip(got, expected, strict=True))
        return next((text for text in found if text), None)
    if isinstance(expected, str) and "<" in expected:
        pattern = re.escape(expected)
        for mark, stands_for in {"<H>": "[0-9a-f]+", "<T>": r"\d[\d.]*", "<R>": r"\w+"}.items():
            pattern = pattern.replace(re.escape(mark), stands_for)
        return None if re.fullmatch(pattern, str(got)) else f"{path}: {got!r} is not {expected!r}"
    return None if got == expected else f"{path}: {got!r} is not {expected!r}"


@pytest.mark.parametrize(
    "row", [row for row in ROWS if "answers" in row], ids=lambda row: row["id"]
)
def test_guard_answers_as_the_vector_says(row: dict[str, Any]) -> None:
    script = Script()
    for step, answer in zip(row["script"], row["answers"], strict=True):
        got = plain(script.run(step))
        if answer is None or "ok" not in answer:
            continue
        assert not mismatch(got, answer["ok"]), step


# Rows that say in prose what must happen instead.

HAND_WRITTEN = {row["id"] for row in ROWS if "answers" not in row}


def run(row_id: str) -> list[Any]:
    HAND_WRITTEN.discard(row_id)
    row = next(row for row in ROWS if row["id"] == row_id)
    script = Script()
    return [script.run(step) for step in row["script"]]


@pytest.mark.parametrize(("row_id", "count"), [("rg-over-22", 22), ("rg-over-40", 40)])
def test_status_bar_is_full_past_the_limit(row_id: str, count: int) -> None:
    *_, check, text = run(row_id)
    assert check.is_hard_limit
    assert check.current_iteration == count
    assert "█" * 20 in text
    assert f"{count}/20" in text
    assert f"{count * 5}%" in text


@pytest.mark.parametrize(
    ("row_id", "field"),
    [
        ("rg-negative", "hard_limit is -5"),
        ("rg-unordered", "soft_limit is 5"),
        ("ld-thr1", "repeat_threshold is 1"),
        ("ld-thr0", "repeat_threshold is 0"),
        ("ld-window0", "window_size is 0"),
    ],
)
def test_wrong_values_are_refused_by_name(row_id: str, field: str) -> None:
    with pytest.raises(ValueError, match=f"{field}; allowed: ."):
        run(row_id)


def test_none_means_the_default() -> None:
    assert run("rg-null")[-1].should_continue


def test_one_tool_that_flips_is_named_once_and_its_calls_are_told_apart() -> None:
    result = run("ld-osc-same-tool")[-2]
    assert result.loop_type == "oscillating"
    assert result.involved_tools == ("t",)
    assert len(set(re.findall(r"t#[0-9a-f]+", result.description))) == 2


@pytest.mark.parametrize(
    "row_id", ["ld-nested", "ld-nested-list", "ld-nested-osc", "ld-collision2"]
)
def test_different_calls_are_no_loop(row_id: str) -> None:
    assert not run(row_id)[-2].loop_detected


def test_a_period_of_seven_is_found() -> None:
    result = run("ld-period7")[-2]
    assert (result.loop_type, result.loop_length) == ("periodic", 7)


def test_equal_nested_values_are_equal_whatever_the_order_of_their_keys() -> None:
    assert run("ld-sim-nested-order")[-2].loop_type == "similar"


def test_repeat_threshold_does_not_delay_patterns() -> None:
    assert run("ld-thr-gates-patterns")[-2].loop_type == "oscillating"


def test_context_shows_the_calls() -> None:
    *_, context, history = run("wg-context-history")
    assert [call.tool_name for call in context.call_history] == ["a"]
    assert [call.tool_name for call in history] == ["a"]


def test_summary_counts_calls_that_the_history_has_forgotten() -> None:
    assert "25" in run("wg-summary-trimmed")[-1]


def test_durations_are_never_negative() -> None:
    assert "-" not in run("wg-clock-back")[-1]


def test_every_row_is_tested() -> None:
    assert not HAND_WRITTEN
