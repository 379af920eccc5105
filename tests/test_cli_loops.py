"""`scan` and `replay` from the command line: each kind of loop in a recorded run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from turnwarden.cli import main

Step = tuple[str, dict[str, Any], str]


def recorded(steps: Iterable[Step]) -> str:
    """A run in OpenAI's form, each call in a turn of its own."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for at, (tool, arguments, result) in enumerate(steps):
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": f"c{at}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{at}", "content": result})
    return json.dumps({"messages": messages})


def marked_errors(count: int) -> str:
    """A run in Anthropic's form whose results are marked as errors; their texts do not say so."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for at in range(count):
        use = {"type": "tool_use", "id": f"t{at}", "name": "pay", "input": {"amount": at}}
        back = {
            "type": "tool_result",
            "tool_use_id": f"t{at}",
            "content": "card refused",
            "is_error": True,
        }
        messages.append({"role": "assistant", "content": [use]})
        messages.append({"role": "user", "content": [back]})
    return json.dumps({"messages": messages})


def searches(*pairs: tuple[str, str]) -> list[Step]:
    return [("search", {"q": question}, result) for question, result in pairs]


SAME = ("tea", "the same three rows")
WORDS = ("tea", "oslo", "maple", "ferry", "violin", "quartz")
RANGES = ((1, 200), (50, 150), (20, 120), (60, 190), (10, 90), (30, 80))
SENTENCE = "a watercolour of a small {} harbour at dawn with two boats and a lighthouse"

CHANT = "I will look at the file again. " * 60


def replies(*texts: str) -> str:
    """A run of replies without calls."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for text in texts:
        messages.append({"role": "assistant", "content": text})
        messages.append({"role": "user", "content": "go on"})
    return json.dumps({"messages": messages})


# Name: the run, the code of the first warning, its turn, and the calls in turns that are a loop.
KINDS: dict[str, tuple[str, str, int, int]] = {
    "exact": (recorded(searches(*[SAME] * 6)), "loop.exact", 3, 4),
    "errors in texts": (
        recorded(("edit", {"old": word}, "Error: text not found") for word in WORDS),
        "loop.no_progress.errors",
        4,
        3,
    ),
    "errors that are marked": (marked_errors(6), "loop.no_progress.errors", 4, 3),
    "similar": (
        recorded(
            searches(*((SENTENCE.format(c), "nine pictures") for c in ("grey", "blue", "teal")))
        ),
        "loop.similar",
        3,
        1,
    ),
    "oscillating": (
        recorded([("open", {"page": "a"}, "page a"), ("open", {"page": "b"}, "page b")] * 4),
        "loop.oscillating",
        6,
        3,
    ),
    "periodic": (
        recorded([("open", {"page": page}, f"page {page}") for page in "abc"] * 3),
        "loop.periodic",
        9,
        1,
    ),
    "scatter": (
        recorded(
            step
            for word in WORDS[:4]
            for step in [("open", {"page": "faq"}, "the faq"), *searches((word, word))]
        ),
        "loop.no_progress.scatter",
        7,
        1,
    ),
    "coverage": (
        recorded(
            ("read_file", {"path": "a.c", "start_line": start, "end_line": end}, f"from {start}")
            for start, end in RANGES
        ),
        "loop.no_progress.coverage",
        5,
        2,
    ),
    "lookups": (
        recorded(searches(*((word, "No matches found") for word in WORDS))),
        "loop.no_progress.lookups",
        5,
        2,
    ),
}


@pytest.fixture
def scan(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Scans one run; gives the object that the command prints."""

    def _scan(text: str, policy: str | None = None) -> dict[str, Any]:
        run = tmp_path / "run.json"
        run.write_text(text, encoding="utf-8")
        options: list[str] = []
        if policy is not None:
            (tmp_path / "policy.toml").write_text(policy, encoding="utf-8")
            options = ["--policy", str(tmp_path / "policy.toml")]
        assert main(["scan", "--json", *options, str(run)]) == 0
        return json.loads(capsys.readouterr().out)

    return _scan


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_loop_is_found_and_its_calls_are_counted(scan, kind: str) -> None:
    text, reason, turn, wasted = KINDS[kind]
    report = scan(text)
    assert report["first_warning"]["reason"] == reason
    assert report["first_warning"]["turn"] == turn
    assert report["wasted_calls"] == wasted
    assert sum(loop["calls"] for loop in report["loops"]) == wasted


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_shows_every_kind_of_loop_at_its_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    text, reason, turn, _ = KINDS[kind]
    path = tmp_path / "run.json"
    path.write_text(text, encoding="utf-8")
    assert main(["replay", str(path)]) == 0
    shown = capsys.readouterr().out
    before, warning, _ = shown.partition(f"WARN      {reason}: ")
    assert warning
    assert f"\nturn {turn} " in before
    assert f"\nturn {turn + 1} " not in before
    assert f"warns     at turn {turn} ({reason})" in shown


def test_replies_that_repeat_themselves_are_a_loop_of_their_own(scan) -> None:
    report = scan(replies("Let me see.", "So. " + CHANT, CHANT, "Done."))
    assert report["loops"] == [
        {
            "type": "text",
            "first_turn": 2,
            "last_turn": 3,
            "calls": 0,
            "tools": [],
            "description": report["first_warning"]["message"],
        }
    ]
    assert report["first_warning"]["turn"] == 2
    assert report["first_warning"]["reason"] == "loop.text"
    assert "repeats itself from byte " in report["first_warning"]["message"]
    assert report["wasted_calls"] == 0


def test_a_replay_shows_where_a_reply_repeats_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    path.write_text(replies("Let me see.", CHANT), encoding="utf-8")
    assert main(["replay", str(path)]) == 0
    before, line, _ = capsys.readouterr().out.partition("LOOP      loop.text: The reply repeats")
    assert line
    assert "\nturn 2 " in before


def test_what_repeats_inside_the_arguments_of_a_call_is_data(scan) -> None:
    call = json.dumps({"name": "write_file", "arguments": {"path": "a", "text": CHANT}})
    report = scan(replies(f"I write it.\n<tool_call>\n{call}\n</tool_call>"))
    assert report["calls"] == 1
    assert report["loops"] == []


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        (marked_errors(4), 4),
        (recorded(searches(("a", "Error: full"), ("b", "traceback (most recent"), ("c", "ok"))), 2),
        (recorded(searches(("a", "errors: 0"), ("b", "no error"))), 0),
    ],
)
def test_errors_are_read_from_marks_and_texts(scan, text: str, errors: int) -> None:
    assert scan(text)["errors"] == errors


def test_calls_before_the_first_verdict_are_not_wasted(scan) -> None:
    report = scan(recorded(searches(SAME, SAME)))
    assert (report["wasted_calls"], report["loops"]) == (0, [])


def test_a_call_that_would_be_blocked_and_brought_something_new_is_not_wasted(scan) -> None:
    report = scan(recorded(searches(SAME, SAME, SAME, ("tea", "a fourth row"))))
    assert report["wasted_calls"] == 1  # the third
    assert report["blocked_at"] == 4
    assert report["saved"]["calls"] == 1


def test_kinds_in_a_policy_file_are_heeded(scan) -> None:
    run = recorded([("check_deploy", {"env": "prod"}, "rolling out")] * 5)
    assert scan(run)["first_warning"]["turn"] == 3
    assert scan(run, '[policies]\ncheck_deploy = "poll"\n')["loops"] == []
    assert scan(run, '[policies]\n"check_*" = { kind = "exempt" }\n')["loops"] == []
    later = scan(run, "[policies]\ncheck_deploy = { repeat_threshold = 5 }\n")
    assert later["first_warning"]["turn"] == 5


def test_arguments_that_a_policy_file_leaves_out_do_not_count(scan) -> None:
    run = recorded(("pay", {"amount": 9, "nonce": f"{n * 7919}"}, "refused") for n in range(3))
    assert scan(run)["loops"] == []
    policy = '[policies]\npay = { ignore_arguments = ["nonce"] }\n'
    assert scan(run, policy)["first_warning"]["reason"] == "loop.exact"


def test_results_can_be_left_out_by_a_policy_file(scan) -> None:
    run = recorded(searches(*(("tea", f"row {n}") for n in range(4))))
    assert scan(run)["loops"] == []
    blind = scan(run, "[loop_detection]\ncompare_results = false\n")
    assert blind["first_warning"] == {
        "turn": 3,
        "reason": "loop.exact",
        "message": blind["first_warning"]["message"],
    }


def test_words_and_volatile_keys_of_a_policy_file_are_heeded(scan) -> None:
    build = recorded(("build", {}, f'{{"build_number": {n}, "failed": 2}}') for n in range(3))
    assert scan(build)["loops"] == []
    assert len(scan(build, "[volatile_keys]\nbuild_number = true\n")["loops"]) == 1
    waiting = recorded([("await_deploy", {}, "not yet")] * 5)
    assert len(scan(waiting)["loops"]) == 1
    assert scan(waiting, '[verbs]\nawait = "poll"\n')["loops"] == []


@pytest.mark.parametrize("name", ["scan", "replay"])
@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ('[policies]\nx = "reed"\n', "policies.x.kind is 'reed'; allowed: one of read, write"),
        ('[polices]\nx = "read"\n', "no field 'polices'"),
        ("[loop_detection]\ncoverage_threshold = 1\n", "coverage_threshold is 1; allowed: "),
        ("[policies\n", "line 1"),
    ],
)
def test_what_is_wrong_in_a_policy_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, policy: str, says: str
) -> None:
    (tmp_path / "run.json").write_text(recorded(searches(SAME)), encoding="utf-8")
    (tmp_path / "policy.toml").write_text(policy, encoding="utf-8")
    options = ["--policy", str(tmp_path / "policy.toml"), str(tmp_path / "run.json")]
    assert main([name, *options]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
