"""Detection figures: the command runs anywhere, its rules are what they say, its tables hold."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benches.quality.__main__ import TRACES, main, tables
from benches.quality.detectors import (
    ENTRIES,
    OURS,
    Alternating,
    CallsOfOneTool,
    EqualInARow,
    EqualPairsInARow,
    NamesInARow,
)
from benches.quality.judging import alarms, first_alarm, scores, solved_runs
from benches.quality.runs import (
    NICE_TO_HAVE,
    Call,
    LabelledRun,
    RunsError,
    recorded_runs,
    vector_runs,
)

ROOT = Path(__file__).parent.parent
README = (ROOT / "benches/quality/README.md").read_text(encoding="utf-8")


def run_of(drawn: str, **fields: Any) -> LabelledRun:
    """A turn a word: `A1` is a call of the tool A with argument 1 and result 1."""
    turns = [
        tuple(Call(name[0], {"n": name[1:]}, name[1:], None, True) for name in word.split("+"))
        for word in drawn.split()
    ]
    return LabelledRun("run", "group", tuple(turns), **{"is_loop": None, **fields})


# The command.


def test_the_command_runs_without_recorded_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TRACES, raising=False)
    done = subprocess.run(
        [sys.executable, "-m", "benches.quality"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert "| loops caught | turnwarden | turnwarden, results withheld |" in done.stdout
    assert "No recorded runs" in done.stdout


def test_the_page_shows_what_the_command_prints() -> None:
    *of_vectors, no_recorded = tables([])
    assert len(of_vectors) == 9
    assert "No recorded runs" in no_recorded
    for block in of_vectors:
        assert block in README, block


def test_the_page_about_guards_tells_the_false_alarms_without_results() -> None:
    page = (ROOT / "docs/guards.md").read_text(encoding="utf-8")
    for name, said in (
        ("loops.jsonl", "{} of the {} healthy runs in `tests/vectors/loops.jsonl`"),
        ("loops_more.jsonl", "{} of {} in `loops_more.jsonl`"),
    ):
        found = scores(vector_runs(name), OURS, with_results=False).values()
        false_alarms = sum(score.false_alarms for score in found)
        assert said.format(false_alarms, sum(score.healthy for score in found)) in page


def test_every_detector_of_the_tables_is_explained_on_the_page() -> None:
    for entry in ENTRIES:
        assert f"**{entry.name}**" in README


@pytest.mark.parametrize("by", ["option", "environment"])
def test_recorded_runs_come_from_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    write_traces(tmp_path)
    monkeypatch.delenv(TRACES, raising=False)
    if by == "environment":
        monkeypatch.setenv(TRACES, str(tmp_path))
    assert main(["--traces", str(tmp_path)] if by == "option" else []) == 0
    printed = capsys.readouterr().out
    assert "| shop: 1 | 1 | 1 | 1 | 0 | 0 |" in printed  # the third call is an alarm
    assert "| shop, borderline: 1 | 0 | 1 | 1 | 0 | 1 |" in printed  # results make the difference
    assert "| all: 1 | 0 (0.0 %) | 1 (100.0 %) |" in printed


def test_a_folder_without_runs_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--traces", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "labels.jsonl: no such file or directory" in error


# Reading.


def write_traces(folder: Path) -> None:
    def call(result: str, length: int, sha: str) -> dict[str, Any]:
        return {
            "tool": "look",
            "args": {"at": "door"},
            "result_head": result,
            "result_len": length,
            "result_sha": sha,
            "turn": sha,
        }

    closed = [call("closed", 6, "a"), call("closed", 6, "b"), call("closed", 6, "c")]
    long = [call("x" * 200, 900, str(n)) for n in range(5)]
    runs = [
        {"trace_id": "stuck", "source": "shop", "calls": closed, "outcome": {"reward": 1.0}},
        {"trace_id": "fine", "source": "shop", "calls": long, "outcome": {"reward": 1.0}},
        {"trace_id": "other", "source": "shop", "calls": closed, "outcome": {"reward": 0.0}},
    ]
    labels = [
        {"trace_id": "stuck", "loop": True, "by_call": 2, "confidence": "sure"},
        {"trace_id": "fine", "loop": False, "by_call": None, "confidence": "borderline"},
    ]
    for name, rows in (("normalised.jsonl", runs), ("labels.jsonl", labels)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / name).write_text(lines, encoding="utf-8")


def test_long_results_are_told_apart_by_their_hashes(tmp_path: Path) -> None:
    write_traces(tmp_path)
    runs = {run.id: run for run in recorded_runs(tmp_path)}
    spoke = alarms(runs.values(), OURS)
    assert spoke == {"stuck": 2, "fine": None, "other": 2}


def test_labelled_loops_are_no_false_alarms_of_solved_runs(tmp_path: Path) -> None:
    write_traces(tmp_path)
    assert [run.id for run in solved_runs(recorded_runs(tmp_path))] == ["fine"]


@pytest.mark.parametrize("line", ["{", "[]", '{"trace_id": "x", "source": "s"}'])
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    write_traces(tmp_path)
    (tmp_path / "normalised.jsonl").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(RunsError, match=r"normalised\.jsonl, line 1: "):
        recorded_runs(tmp_path)


# Judging.


def test_late_is_caught_but_not_in_time() -> None:
    run = run_of("A1 A1 A1 A1", is_loop=True, by_call=1)
    assert vars_of(scores([run], OURS)["group"]) == (1, 1, 0, 0, 0)
    run = run_of("A1 A1 A1 A1", is_loop=True, by_call=2)
    assert vars_of(scores([run], OURS)["group"]) == (1, 1, 1, 0, 0)
    run = run_of("A1 A1 A1 A1", is_loop=False)
    assert vars_of(scores([run], OURS)["group"]) == (0, 0, 0, 1, 1)


def vars_of(score: Any) -> tuple[int, ...]:
    return (score.loops, score.caught, score.in_time, score.healthy, score.false_alarms)


def test_our_guard_on_the_vectors_is_right_wherever_it_has_to_be() -> None:
    for name in ("loops.jsonl", "loops_more.jsonl"):
        for group, score in scores(vector_runs(name), OURS).items():
            assert score.false_alarms == 0, group
            assert score.in_time == score.loops or group.endswith(NICE_TO_HAVE), group


# The rules of others.


@pytest.mark.parametrize(
    ("make", "drawn", "spoke_at"),
    [
        (lambda: EqualInARow(3), "A1 A1 A1", 2),
        (lambda: EqualInARow(3), "A1 A1 A2 A1", None),
        (lambda: EqualInARow(3), "A1+A1+A1", 2),
        (lambda: EqualPairsInARow(4), "A1 A1 A1 A1", 3),
        (lambda: EqualPairsInARow(4), "A1 A1 A1 B1 A1", None),
        (Alternating, "A1 B1 A1 B1", 3),
        (Alternating, "A1 A1 A1 A1", None),
        (Alternating, "A1 B1 A1 B2", None),
        (lambda: NamesInARow(3), "A1 A2 A3", 2),
        (lambda: NamesInARow(3), "A1 A2 B3 A4", None),
        (lambda: CallsOfOneTool(2), "A1 B1 A2 B2 A3", 4),
        (lambda: CallsOfOneTool(2), "A1 B1 A2 B2", None),
    ],
)
def test_rules_of_others_are_what_they_say(make: Any, drawn: str, spoke_at: int | None) -> None:
    assert first_alarm(run_of(drawn), make(), with_results=True) == spoke_at


def test_a_rule_on_pairs_tells_results_apart() -> None:
    calls = [Call("A", {}, result, None, True) for result in ("x", "x", "y", "x", "x")]
    run = LabelledRun("run", "group", tuple((call,) for call in calls), None)
    assert first_alarm(run, EqualPairsInARow(3), with_results=True) is None
    assert first_alarm(run, EqualInARow(3), with_results=True) == 2


# Replies.


def test_replies_of_recordings_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        {"role": "user", "content": "Say it."},
        {"role": "assistant", "content": "I will say it once more. " * 40},
        {"role": "user", "content": "Stop it. " * 200},
        {"role": "assistant", "content": "Done."},
    ]
    (tmp_path / "run.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no run", encoding="utf-8")
    assert main(["--replies", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "| openai-chat | 1 | 2 | 1 KB | 1,000 B | 1 |" in printed
    assert "- alarm: run.jsonl, run 1, turn 1: cycle from byte 0 of 1000" in printed
    assert "- files of no known format: 1" in printed


def test_replies_that_cannot_be_found_are_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--replies", "no/such/folder"]) == 2
    assert "no/such/folder" in capsys.readouterr().err
