"""Replays: what a guard would have done in a recorded run, and what that would have saved."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from turnwarden import WorkflowGuardConfig
from turnwarden.traces import TraceError, UnknownFormatError, find_files, read_runs, replay, scan

RUNS = Path(__file__).parent.parent / "examples" / "runs"


@pytest.fixture
def play(tmp_path):
    """Replays messages; gives the turns and the report."""

    def _play(messages: list[dict], *, record: dict | None = None, config=None):
        path = tmp_path / "run.json"
        path.write_text(json.dumps({**(record or {}), "messages": messages}))
        run = next(read_runs(path))
        played = replay(run, config=config)
        return list(played), played.report

    return _play


def asks(name: str, arguments: object, id: str = "c", **more) -> dict:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": text}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}


def answers(content: str, id: str = "c", **more) -> dict:
    return {"role": "tool", "tool_call_id": id, "content": content, **more}


def says(content: str, **more) -> dict:
    return {"role": "assistant", "content": content, **more}


def hears(content: str) -> dict:
    return {"role": "user", "content": content}


def in_text(name: str, **arguments: object) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def test_equal_calls_with_equal_results_are_warned_blocked_and_stopped(play):
    turns, report = play([asks("f", {"a": 1}), answers("x")] * 7)
    assert [str(turn.action) for turn in turns] == [
        "continue",
        "continue",
        "warn",
        "block",
        "stop",
        "continue",
        "continue",
    ]
    assert [turn.runs for turn in turns] == [True] * 5 + [False] * 2
    assert [turn.calls[0].allowed for turn in turns] == [True] * 3 + [False] * 4
    assert (report.first_warning.turn, report.blocked_at, report.stopped_at) == (3, 4, 5)
    assert report.first_warning.reason == "loop.exact"
    assert report.wasted_calls == 5
    assert (report.saved.calls, report.saved.turns) == (4, 2)
    (loop,) = report.loops
    assert (loop.type, loop.first_turn, loop.last_turn, loop.calls) == ("exact", 3, 7, 5)
    assert loop.tools == ("f",)


USAGE = {"prompt_tokens": 100, "completion_tokens": 10}


def test_tokens_that_a_turn_cost_change_no_verdict_on_loops(play):
    def run(**more) -> list[dict]:
        circle = [asks("f", {"a": 1}, **more), answers("x")] * 4
        others = [
            message
            for at in range(3)
            for message in (asks(f"g{at}", {"n": at}, **more), answers(f"r{at}"))
        ]
        return [*circle, *others, says("Done.", **more)]

    with_tokens, report = play(run(usage=USAGE))
    without, _ = play(run())

    def verdicts(turns):
        return [(turn.action, turn.reason, turn.loop, turn.message) for turn in turns]

    assert verdicts(with_tokens) == verdicts(without)
    assert [str(turn.action) for turn in with_tokens[2:5]] == ["warn", "block", "continue"]
    assert with_tokens[3].loop == "f was called 4 times in a row with the same arguments."
    assert (report.blocked_at, report.stopped_at, report.saved.tokens) == (4, None, 0)


def test_a_budget_is_judged_for_itself_while_a_loop_stands(play):
    messages = [asks("f", {"a": 1}, usage=USAGE), answers("x")] * 4
    messages += [asks("g", {"n": 0}, usage=USAGE), answers("y"), says("Done.", usage=USAGE)]
    turns, report = play(messages, config=WorkflowGuardConfig(budget={"max_tokens": 600}))
    said = [(str(turn.action), turn.reason) for turn in turns]
    assert said[2:] == [
        ("warn", "loop.exact"),
        ("block", "loop.exact"),
        ("warn", "budget.tokens"),
        ("stop", "budget.tokens"),
    ]
    assert [call.allowed for call in turns[4].calls] == [True]
    assert report.stopped_at == 6


def test_a_poll_whose_answer_changes_is_no_loop(play):
    messages = [
        message
        for number in range(8)
        for message in (asks("get_status", {"job": 1}), answers(f"{number}0% of the pages"))
    ]
    _, report = play(messages)
    assert not report.has_loop


def test_tokens_saved_are_those_of_the_turns_after_the_stop(play):
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    _, report = play([asks("f", {}, usage=usage), answers("x")] * 8)
    assert report.tokens.total == 880
    assert report.saved.tokens == 330


def test_the_answer_to_a_call_in_the_text_counts_as_a_result(play):
    call = in_text("f", a=1)
    _, report = play([says(call), hears("x" * 100), says("Done."), hears("Thanks.")])
    assert report.characters == len(call) + 100 + len("Done.")


def test_without_tokens_characters_are_counted(play):
    _, report = play([asks("f", {}), answers("x" * 100)] * 8)
    assert report.tokens is None
    assert report.saved.tokens is None
    assert report.characters == 8 * 102
    assert report.saved.characters == 3 * 102 + 2 * 100  # after the stop, and two blocked results


def test_calls_in_the_text_get_the_next_message_as_their_result(play):
    turns, report = play([says("Hm.\n" + in_text("f", a=1)), hears("x")] * 5)
    assert turns[0].syntax == "hermes"
    assert turns[0].text == "Hm."
    assert turns[0].calls[0].result == "x"
    assert report.first_warning.turn == 3


def test_one_message_that_answers_several_calls_is_taken_apart(play):
    response = "<tool_response>\n{}\n</tool_response>"
    turns, _ = play(
        [
            says(in_text("f") + in_text("g")),
            hears(response.format("one") + "\n" + response.format("two")),
            says(in_text("f") + in_text("g")),
            hears("both at once"),
        ]
    )
    assert [[call.result for call in turn.calls] for turn in turns] == [
        ["one", "two"],
        ["both at once", "both at once"],
    ]


def test_results_find_their_calls_by_id_and_else_in_order(play):
    calls = [asks("f", {}, "1")["tool_calls"][0], asks("g", {}, "2")["tool_calls"][0]]
    both = {"role": "assistant", "content": "", "tool_calls": calls}
    turns, _ = play([both, answers("for g", "2"), answers("for f", "1")])
    assert [call.result for call in turns[0].calls] == ["for f", "for g"]
    turns, _ = play([both, answers("first", "x"), answers("second", "y")])
    assert [call.result for call in turns[0].calls] == ["first", "second"]


def test_equal_ids_within_a_turn_are_no_obstacle(play):
    calls = [asks("f", {}, "x")["tool_calls"][0], asks("g", {}, "x")["tool_calls"][0]]
    both = {"role": "assistant", "content": "", "tool_calls": calls}
    turns, report = play([both, answers("one", "x"), answers("two", "x")] * 4)
    assert [call.result for call in turns[0].calls] == ["one", "two"]
    assert report.first_warning.turn == 3


def test_broken_arguments_are_healed_and_told(play):
    turns, report = play([asks("f", "{'a': True,}"), answers("x")])
    assert json.loads(turns[0].calls[0].arguments) == {"a": True}
    assert turns[0].calls[0].repaired
    assert report.repaired == 1
    assert sum(report.repairs.values()) == len(turns[0].repairs) > 0


def test_a_call_that_is_cut_off_is_told_and_not_run(play):
    turns, report = play([asks("f", '{"a": "hal')])
    assert turns[0].calls == ()
    assert turns[0].incomplete == ("f",)
    assert (report.incomplete, report.refused, report.calls) == (1, 1, 1)


def test_arguments_that_are_no_object_are_a_fault(play):
    turns, report = play([asks("f", "[1, 2]"), asks("g", {})])
    assert turns[0].calls == ()
    assert turns[0].faults
    assert report.refused == 1
    assert turns[1].calls[0].name == "g"


def test_replies_that_the_program_refused_are_an_error_streak(tmp_path):
    path = tmp_path / "run.traj.json"
    pair = [says("no block"), hears("Please give exactly one action, found 0.")]
    path.write_text(
        json.dumps({"messages": pair * 6, "trajectory_format": "mini-swe-agent-1", "info": {}})
    )
    (report,) = scan([path])
    assert (report.calls, report.refused) == (6, 6)
    assert report.loops[0].type == "no_progress"


def test_errors_that_the_file_marks_are_counted(play):
    _, report = play([asks("f", {}), answers("no", is_error=True), asks("g", {}), answers("ok")])
    assert report.errors == 1


def test_tools_that_the_file_declares_give_arguments_their_types(play):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    turns, _ = play([says(in_text("f", n="3"))], record={"tools": tools})
    assert json.loads(turns[0].calls[0].arguments) == {"n": 3}


def test_time_comes_from_the_recording(play):
    _, report = play(
        [
            asks("f", {}, timestamp="2026-01-01T00:00:00Z"),
            answers("x"),
            asks("g", {}, timestamp="2026-01-01T00:01:30Z"),
        ]
    )
    assert report.seconds == 90


def test_the_iteration_limit_is_reported_and_loops_behind_it_are_found(play):
    messages = [
        message
        for number in range(25)
        for message in (asks(f"tool_{number}", {}), answers(f"result {number}"))
    ]
    turns, report = play([*messages, *[asks("f", {}), answers("x")] * 3])
    assert (report.limit_at, report.iteration_limit) == (20, 20)
    assert [turn.number for turn in turns if turn.runs] == list(range(1, 20))
    assert {str(turn.action) for turn in turns[:-1]} == {"continue"}
    assert report.first_warning.turn == 28
    config = WorkflowGuardConfig(recursion={"hard_limit": 100})
    _, report = play(messages, config=config)
    assert report.limit_at is None


def test_the_prompt_says_what_the_guard_would_have_put_there(play):
    turns, _ = play([asks("f", {}), answers("x")] * 5)
    assert turns[3].prompt is not None
    assert "f" in turns[3].prompt
    assert turns[3].prompt != turns[1].prompt


def test_tool_names_and_arguments_of_any_text_are_no_obstacle(play):
    _, report = play([asks("näme \ud800\x00", {"a": "\ud800"}), answers("\udfff")] * 4)
    assert report.calls == 4
    json.dumps(report.to_dict())


def test_a_report_is_plain_json_data(play):
    _, report = play([asks("f", {}), answers("x")] * 4)
    assert json.loads(json.dumps(report.to_dict())) == report.to_dict()


# scan


def test_a_folder_is_scanned_in_order_and_whole():
    assert [report.run for report in scan([RUNS])] == [
        "broken_replies.jsonl#0",
        "healthy.jsonl#0",
        "looping.jsonl#0",
    ]


def test_errors_raise_unless_somebody_listens(tmp_path):
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text(json.dumps([asks("f", {})]))
    with pytest.raises(TraceError):
        list(scan([tmp_path]))
    errors: list[TraceError] = []
    assert len(list(scan([tmp_path], on_error=errors.append))) == 1
    assert len(errors) == 1


def test_unknown_formats_are_told_to_who_listens(tmp_path):
    (tmp_path / "notes.md").write_text("# Notes")
    unknown: list[UnknownFormatError] = []
    assert list(scan([tmp_path], on_unknown=unknown.append)) == []
    assert [Path(found.path).name for found in unknown] == ["notes.md"]


def test_progress_comes_to_the_size_of_all_files(tmp_path):
    (tmp_path / "a.md").write_text("# Notes" * 100_000)
    (tmp_path / "b.json").write_text(json.dumps([asks("f", {})]))
    files = find_files([tmp_path])
    seen: list[int] = []
    list(scan(files, progress=seen.append))
    assert sum(seen) == sum(file.size for file in files)


def test_links_do_not_make_a_scan_go_round_in_circles(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([asks("f", {})]))
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "same.json").symlink_to(tmp_path / "a.json")
    (tmp_path / "gone.json").symlink_to(tmp_path / "nothing")
    assert len(list(scan([tmp_path]))) == 1


def test_a_scan_of_a_long_run_needs_little_memory(tmp_path):
    path = tmp_path / "long.jsonl"
    with path.open("w") as file:
        for number in range(800):
            file.write(json.dumps(asks("read", {"n": number})) + "\n")
            file.write(json.dumps(answers(f"{number} " + "x" * 10_000)) + "\n")
    tracemalloc.start()
    (report,) = scan([path])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.calls == 800
    assert peak < 4_000_000
