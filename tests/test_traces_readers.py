"""The readers: what each format holds, and what real files of it do to a reader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from turnwarden.traces import READERS, TokenUsage, TraceError, UnknownFormatError, read_runs


def load(path: Path) -> list:
    """The runs of a file with their turns."""
    return [(run, list(run)) for run in read_runs(path)]


def only(path: Path):
    ((run, turns),) = load(path)
    return run, turns


@pytest.fixture
def save(tmp_path):
    def _save(value, name: str = "file", *, lines: bool = False, indent: int | None = None) -> Path:
        path = tmp_path / name
        if lines:
            path.write_text("".join(json.dumps(line) + "\n" for line in value))
        else:
            path.write_text(json.dumps(value, indent=indent))
        return path

    return _save


def call(name: str = "search", arguments="{}", id: str | None = "c0") -> dict:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*calls: dict, content: str | None = None, **more) -> dict:
    message = {"role": "assistant", "content": content, **more}
    return {**message, "tool_calls": list(calls)} if calls else message


def tool(content="ok", id: str | None = "c0", **more) -> dict:
    return {"role": "tool", "tool_call_id": id, "content": content, **more}


USER = {"role": "user", "content": "go"}
CHAT = [USER, assistant(call(arguments='{"q": 1}')), tool("found"), assistant(content="Done.")]


# OpenAI chat


@pytest.mark.parametrize(
    ("value", "lines", "runs"),
    [
        (CHAT, False, 1),
        ({"messages": CHAT}, False, 1),
        ([{"messages": CHAT}, {"messages": CHAT}], False, 2),
        ([CHAT, CHAT], False, 2),
        (CHAT, True, 1),
        ([{"messages": CHAT}, {"messages": CHAT}], True, 2),
        ([CHAT, CHAT], True, 2),
        (
            {"request": {"messages": CHAT[:3]}, "response": {"choices": [{"message": CHAT[3]}]}},
            0,
            1,
        ),
        ({"body": {"messages": CHAT[:3]}, "choices": [{"message": CHAT[3]}]}, False, 1),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_chat_messages_are_found_in_every_container(save, value, lines, runs, indent):
    found = load(save(value, lines=lines, indent=indent))
    assert len(found) == runs
    for index, (run, turns) in enumerate(found):
        assert (run.source, run.index) == ("openai-chat", index)
        assert [turn.text for turn in turns] == ["", "Done."]
        assert turns[0].calls[0].name == "search"
        assert turns[0].calls[0].arguments == '{"q": 1}'
        assert turns[0].results[0].content == "found"
        assert turns[1].calls is None


def test_the_format_is_told_from_the_content_not_from_the_name(save):
    assert only(save({"messages": CHAT}, "run.traj"))[0].source == "openai-chat"
    assert only(save({"messages": CHAT}, "notes.txt"))[0].source == "openai-chat"


def test_parallel_calls_of_one_message_are_one_turn(save):
    messages = [
        USER,
        assistant(call("a", id="1"), call("b", id="2")),
        tool("two", "2"),
        tool("one", "1"),
    ]
    _, (turn,) = only(save(messages))
    assert [call.name for call in turn.calls] == ["a", "b"]
    assert [(result.call_id, result.content) for result in turn.results] == [
        ("2", "two"),
        ("1", "one"),
    ]


def test_parallel_calls_in_messages_of_their_own_are_one_turn(save):
    messages = [
        assistant(call("a", id="1")),
        assistant(call("b", id="2")),
        tool("one", "1"),
        tool("two", "2"),
    ]
    _, (turn,) = only(save(messages))
    assert [call.name for call in turn.calls] == ["a", "b"]
    assert len(turn.results) == 2


def test_a_very_wide_turn_is_read_in_linear_time(save):
    ids = [str(number) for number in range(20_000)]
    calls = [call(id=name) for name in ids]
    _, (turn,) = only(save([assistant(*calls), *(tool(name, name) for name in reversed(ids))]))
    assert len(turn.results) == len(turn.calls) == 20_000


def test_replies_in_a_row_without_results_stay_turns_of_their_own(save):
    _, turns = only(save([assistant(call(id=f"c{number}")) for number in range(100)]))
    assert [turn.index for turn in turns] == list(range(100))
    assert all(len(turn.calls) == 1 for turn in turns)


def test_ids_that_start_again_in_each_turn_are_kept_apart(save):
    messages = [
        message
        for number in range(3)
        for message in (assistant(call(id="0")), tool(f"result {number}", "0"))
    ]
    _, turns = only(save(messages))
    assert [turn.results[0].content for turn in turns] == ["result 0", "result 1", "result 2"]


def test_equal_ids_within_a_turn_get_their_results_in_order(save):
    messages = [
        assistant(call("a", id="x"), call("b", id="x")),
        tool("for a", "x"),
        tool("for b", "x"),
    ]
    _, (turn,) = only(save(messages))
    assert [result.content for result in turn.results] == ["for a", "for b"]


def test_a_result_with_a_foreign_id_answers_the_call_that_waits(save):
    _, (turn,) = only(save([assistant(call(id="a")), tool("late", "b"), tool("extra", "c")]))
    assert [(result.call_id, result.content) for result in turn.results] == [(None, "late")]


def test_results_without_calls_are_passed_over(save):
    _, turns = only(save([tool("orphan"), USER, tool("orphan"), assistant(call()), tool("ok")]))
    assert [[result.content for result in turn.results] for turn in turns] == [["ok"]]


def test_what_the_user_says_next_is_kept_for_calls_in_text(save):
    messages = [
        USER,
        assistant(content="<tool_call>{}</tool_call>"),
        {"role": "user", "content": "42"},
    ]
    _, (turn,) = only(save(messages))
    assert turn.calls is None
    assert turn.feedback == "42"


def test_older_and_other_forms_of_calls_are_read(save):
    messages = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "one"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"name": "g", "args": {"a": 1}, "id": 7}],
        },
        {"role": "tool", "tool_call_id": 7, "content": [{"type": "text", "text": "two"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Look."},
                {"type": "tool_use", "id": "t", "name": "h", "input": {"b": 2}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": "three", "is_error": True}
            ],
        },
        {"role": "assistant", "tool_calls": [{"function": {"name": None, "arguments": None}}]},
    ]
    _, turns = only(save(messages))
    assert [turn.calls[0].name for turn in turns] == ["f", "g", "h", ""]
    assert [turn.calls[0].arguments for turn in turns] == ["{}", {"a": 1}, {"b": 2}, {}]
    assert [turn.results[0].content for turn in turns[:3]] == ["one", "two", "three"]
    assert [turn.results[0].is_error for turn in turns[:3]] == [False, False, True]
    assert turns[2].text == "Look."


def test_a_last_message_that_is_cut_off_keeps_its_broken_arguments(save):
    _, turns = only(save([*CHAT[:3], assistant(call(arguments='{"q": "half'))]))
    assert turns[-1].calls[0].arguments == '{"q": "half'


def test_messages_before_a_line_that_is_cut_off_are_kept(tmp_path):
    path = tmp_path / "cut.jsonl"
    text = "".join(json.dumps(message) + "\n" for message in CHAT)
    path.write_text(text[:-20])
    errors: list[TraceError] = []
    turns = [turn for run in read_runs(path, on_error=errors.append) for turn in run]
    assert len(turns) == 1
    assert turns[0].results[0].content == "found"
    assert "cut off" in str(errors[0])


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("container", ["object", "array of objects", "array"])
def test_messages_before_the_cut_of_a_file_are_kept(tmp_path, indent, container):
    value = {"object": {"messages": CHAT}, "array of objects": [{"messages": CHAT}], "array": CHAT}
    text = json.dumps(value[container], indent=indent)
    for cut in range(text.index("tool_call_id"), len(text) - 1):
        path = tmp_path / "cut.json"
        path.write_text(text[:cut])
        errors: list[TraceError] = []
        turns = [turn for run in read_runs(path, on_error=errors.append) for turn in run]
        assert turns[0].calls[0].name == "search"
        assert len(errors) == 1
        assert "cut off" in str(errors[0])


def test_tokens_times_tools_ids_and_outcome_are_read_where_they_stand(save):
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    definitions = [{"type": "function", "function": {"name": "search"}}]
    record = {
        "id": "run-7",
        "tools": definitions,
        "reward": 0.5,
        "messages": [
            assistant(call(), usage=usage, timestamp="2026-01-01T00:00:10Z"),
            tool("ok", timestamp=1767225611),
            assistant(content="x", created_at=1767225612000),
        ],
    }
    run, turns = only(save(record))
    assert (run.id, run.name, run.outcome) == ("run-7", "run-7", {"reward": 0.5})
    assert list(run.tools) == definitions
    assert turns[0].tokens == TokenUsage(10, 2)
    assert turns[0].tokens.total == 12
    assert turns[0].timestamp == 1767225610
    assert turns[0].results[0].timestamp == 1767225611
    assert turns[1].timestamp == 1767225612


@pytest.mark.parametrize("junk", [None, 3, "x", [], {}, {"role": "wizard"}, {"role": "tool"}])
def test_junk_between_messages_is_passed_over(save, junk):
    _, turns = only(save({"messages": [junk, *CHAT, junk]}))
    assert len(turns) == 2


def test_a_run_that_was_not_read_is_skipped(save):
    path = save([CHAT, CHAT, CHAT])
    assert [run.index for run in read_runs(path)] == [0, 1, 2]


@pytest.mark.parametrize("lines", [True, False])
def test_a_run_outlives_the_iterator_that_gave_it(save, lines):
    run = next(read_runs(save(CHAT * 2_000, lines=lines)))
    assert len(list(run)) == 4_000


def test_arrays_of_messages_in_a_row_are_runs_of_their_own(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text(f"{json.dumps(CHAT)}\n{json.dumps(CHAT, indent=1)}\n")
    assert [len(turns) for _, turns in load(path)] == [2, 2]
    assert len({id(run) for run in read_runs(path)}) == 2


# SWE-agent


def step(action: str, observation: str = "ok", **more) -> dict:
    return {"action": action, "observation": observation, "response": "r", "thought": "t", **more}


def test_the_first_word_of_an_action_is_the_tool(save):
    trajectory = [step("open main.py\n"), step("edit 1:1\nprint()\nend_of_edit"), step("submit")]
    run, turns = only(
        save({"environment": "e", "trajectory": trajectory, "info": {"exit_status": "submitted"}})
    )
    assert (run.source, run.outcome) == ("swe-agent", {"exit_status": "submitted"})
    assert [turn.calls[0].name for turn in turns] == ["open", "edit", "submit"]
    assert turns[0].calls[0].arguments == {"command": "open main.py"}
    assert [turn.results[0].content for turn in turns] == ["ok"] * 3
    assert turns[0].text == "t"


def test_a_step_without_an_action_has_no_call(save):
    _, turns = only(save({"trajectory": [step(""), step("ls", "")], "history": []}))
    assert [len(turn.calls) for turn in turns] == [0, 1]
    assert turns[1].results[0].content == ""


def test_a_history_alone_is_read_from_its_messages(save):
    history = [
        {"role": "system", "content": "s", "agent": "main"},
        {"role": "assistant", "content": "demo", "action": "ls", "agent": "main", "is_demo": True},
        {**assistant(call("open", '{"path": "a"}')), "action": "open a", "agent": "main"},
        {"role": "tool", "content": "text", "agent": "main", "tool_call_ids": ["c0"]},
        {"role": "assistant", "content": "t\n```\nls -a\n```", "thought": "t", "action": "ls -a"},
        {"role": "user", "content": "files", "agent": "main"},
    ]
    run, turns = only(save({"history": history}))
    assert run.source == "swe-agent"
    assert [turn.calls[0].name for turn in turns] == ["open", "ls"]
    assert [turn.results[0].content for turn in turns] == ["text", "files"]


def test_each_attempt_is_a_run(save):
    attempt = {"trajectory": [step("ls")], "info": {}, "history": []}
    record = {"attempts": [attempt, attempt], "info": {}, "trajectory": [step("ls")]}
    assert len(load(save(record))) == 2


# mini-swe-agent


def mini(*messages: dict, **more) -> dict:
    return {
        "info": {"exit_status": "Submitted", "mini_version": "1.0"},
        "messages": list(messages),
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": "task",
        **more,
    }


def said(text: str, **more) -> dict:
    return {"role": "assistant", "content": text, **more}


def heard(text: str, **more) -> dict:
    return {"role": "user", "content": text, **more}


def test_the_one_bash_block_is_a_call_of_bash(save):
    run, turns = only(
        save(mini(USER, said("THOUGHT: look\n\n```bash\nls -a\n```"), heard("<output>x</output>")))
    )
    assert (run.source, run.id, run.outcome) == (
        "mini-swe-agent",
        "task",
        {"exit_status": "Submitted"},
    )
    (turn,) = turns
    assert turn.text == "THOUGHT: look"
    assert turn.calls[0].name == "bash"
    assert turn.calls[0].arguments == {"command": "ls -a"}
    assert turn.results[0].content == "<output>x</output>"
    assert turn.syntax == "bash block"


def test_no_block_or_several_are_a_refused_reply(save):
    two = "```bash\nls\n```\n```bash\npwd\n```"
    _, turns = only(
        save(mini(said(two), heard("found 2 actions"), said("hm"), heard("found 0 actions")))
    )
    assert [turn.calls for turn in turns] == [(), ()]
    assert [turn.refusal for turn in turns] == ["found 2 actions", "found 0 actions"]


def test_a_block_in_another_language_is_no_action(save):
    _, (turn,) = only(save(mini(said("```python\nx\n```\n```bash\nls\n```"), heard("files"))))
    assert turn.calls[0].arguments == {"command": "ls"}


def test_the_fence_of_the_trajectory_s_own_setting_counts(save):
    info = {"config": {"agent": {"action_regex": "```sh\\s*\\n(.*?)\\n```"}}}
    _, (turn,) = only(save(mini(said("```sh\nls\n```"), heard("files"), info=info)))
    assert turn.calls[0].arguments == {"command": "ls"}


def test_a_pattern_from_the_file_is_never_run(save):
    info = {"config": {"agent": {"action_regex": "(a+)+$"}}}
    _, (turn,) = only(save(mini(said("a" * 5_000 + "!\n```bash\nls\n```"), heard("x"), info=info)))
    assert turn.calls[0].arguments == {"command": "ls"}


def test_newer_trajectories_with_actions_native_calls_and_responses_are_read(save):
    response = {
        "object": "response",
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "hm"}]},
            {
                "type": "function_call",
                "call_id": "f",
                "name": "bash",
                "arguments": '{"command": "id"}',
            },
        ],
    }
    _, turns = only(
        save(
            mini(
                said("```x\nls\n```", extra={"actions": [{"command": "ls"}]}),
                heard("files", extra={"returncode": 0}),
                assistant(call("bash", '{"command": "pwd"}', "n")),
                tool("/", "n"),
                response,
                {"type": "function_call_output", "call_id": "f", "output": "root"},
                said("```mswea_bash_command\necho done\n```"),
                {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted"}},
                trajectory_format="mini-swe-agent-1.1",
            )
        )
    )
    assert [turn.results[0].content for turn in turns] == ["files", "/", "root", "diff"]
    assert [turn.calls[0].name for turn in turns] == ["bash"] * 4
    assert turns[2].text == "hm"


def test_tokens_of_the_recorded_response_are_read(save):
    extra = {
        "response": {"created": 1767225600, "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    }
    _, (turn,) = only(save(mini(said("```bash\nls\n```", extra=extra), heard("x"))))
    assert (turn.tokens, turn.timestamp) == (TokenUsage(3, 4), 1767225600)


# tau-bench


def task(*messages: dict, **more) -> dict:
    return {"task_id": 3, "trial": 1, "reward": 1.0, "info": {}, "traj": list(messages), **more}


def test_each_task_run_is_a_run_with_its_reward(save):
    found = load(save([task(*CHAT), task(*CHAT, task_id=4, reward=0.0)]))
    assert [(run.source, run.id, run.outcome) for run, _ in found] == [
        ("tau-bench", "task-3-trial-1", {"reward": 1.0}),
        ("tau-bench", "task-4-trial-1", {"reward": 0.0}),
    ]
    assert [len(turns) for _, turns in found] == [2, 2]


def test_actions_in_the_text_are_calls_and_respond_is_none(save):
    act = 'Thought:\nlook\nAction:\n{"name": "get_user", "arguments": {"id": "x"}}'
    respond = 'Action:\n{"name": "respond", "arguments": {"content": "Hello"}}'
    _, turns = only(
        save([task(USER, said(act), heard("API output: {}"), said(respond), heard("thanks"))])
    )
    assert turns[0].calls[0].name == "get_user"
    assert turns[0].calls[0].arguments == {"id": "x"}
    assert turns[0].results[0].content == "{}"
    assert turns[1].calls == ()
    assert turns[1].text == "Hello"


def test_a_task_that_failed_to_run_has_no_turns(save):
    run, turns = only(save([task(reward=0.0, info={"error": "Timeout", "traceback": "..."})]))
    assert turns == []
    assert run.outcome == {"reward": 0.0, "error": "Timeout"}


# Claude Code


def line(kind: str, uuid: str, parent: str | None, content, **more) -> dict:
    message = {"role": kind, "content": content}
    if "id" in more:
        message["id"] = more.pop("id")
    if "usage" in more:
        message["usage"] = more.pop("usage")
    if "model" in more:
        message["model"] = more.pop("model")
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s1",
        "isSidechain": False,
        "timestamp": "2026-01-01T00:00:00Z",
        "message": message,
        **more,
    }


def use(name: str, id: str, **arguments) -> dict:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, content="ok", **more) -> dict:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def test_the_lines_of_one_message_are_one_turn(save):
    lines = [
        {"type": "summary", "summary": "s", "leafUuid": "x"},
        line("user", "u0", None, "go"),
        line("assistant", "a0", "u0", [{"type": "text", "text": "Two reads."}], id="m"),
        line("assistant", "a1", "a0", [use("Read", "t1", p=1)], id="m", usage={"input_tokens": 5}),
        line("user", "u1", "a1", [result("t1", "one")]),
        line("assistant", "a2", "a1", [use("Read", "t2", p=2)], id="m", usage={"input_tokens": 5}),
        line("user", "u2", "a2", [result("t2", [{"type": "text", "text": "two"}], is_error=True)]),
        line("assistant", "a3", "u2", [{"type": "text", "text": "Done."}], id="n"),
    ]
    run, turns = only(save(lines, lines=True))
    assert (run.source, run.id) == ("claude-code", "s1")
    assert [turn.text for turn in turns] == ["Two reads.", "Done."]
    assert [call.arguments for call in turns[0].calls] == [{"p": 1}, {"p": 2}]
    assert [result.content for result in turns[0].results] == ["one", "two"]
    assert [result.is_error for result in turns[0].results] == [False, True]
    assert turns[0].tokens == TokenUsage(5, 0)
    assert turns[0].timestamp is not None


def test_messages_that_are_logged_again_as_they_grow_count_once(save):
    lines = [
        line("assistant", "a0", None, [use("Read", "t1")], id="m"),
        line("assistant", "a1", "a0", [use("Read", "t1"), use("Read", "t2")], id="m"),
    ]
    _, (turn,) = only(save(lines, lines=True))
    assert [call.id for call in turn.calls] == ["t1", "t2"]


def test_sub_agents_are_runs_of_their_own(save):
    lines = [
        line("user", "u0", None, "go"),
        line("assistant", "a0", "u0", [use("Task", "t0")], id="m0"),
        line("user", "x0", None, "sub one", isSidechain=True),
        line("user", "y0", None, "sub two", isSidechain=True),
        line("assistant", "x1", "x0", [use("Grep", "g1")], id="x", isSidechain=True),
        line("assistant", "y1", "y0", [use("Glob", "g2")], id="y", isSidechain=True),
        line("user", "x2", "x1", [result("g1", "x")], isSidechain=True),
        line("user", "y2", "y1", [result("g2", "y")], isSidechain=True),
        line("user", "u1", "a0", [result("t0", "both done")]),
        line("assistant", "z0", None, [use("Ls", "g3")], id="z", isSidechain=True, agentId="q"),
    ]
    found = load(save(lines, lines=True))
    assert [[call.name for turn in turns for call in turn.calls] for _, turns in found] == [
        ["Task"],
        ["Grep"],
        ["Glob"],
        ["Ls"],
    ]
    assert [turns[0].results[0].content for _, turns in found[:3]] == ["both done", "x", "y"]
    assert found[3][0].id == "s1/agent-q"


def test_a_resumed_session_goes_on_and_its_copies_count_once(save):
    first = [
        line("user", "u0", None, "go"),
        line("assistant", "a0", "u0", [use("Read", "t0")], id="m0"),
        line("user", "u1", "a0", [result("t0")]),
    ]
    resumed = [
        *[{**entry, "sessionId": "s2"} for entry in first],
        line("system", "c0", "u1", "resumed", sessionId="s2"),
        line("user", "u2", "c0", "more", sessionId="s2"),
        line("assistant", "a1", "u2", [use("Read", "t1")], id="m1", sessionId="s2"),
        line("assistant", "a2", "gone", [use("Read", "t2")], id="m2", sessionId="s2"),
    ]
    _, turns = only(save([*first, *resumed], lines=True))
    assert [call.id for turn in turns for call in turn.calls] == ["t0", "t1", "t2"]


def test_sessions_one_after_another_are_runs_of_their_own(save):
    lines = [
        line("assistant", f"a{number}", None, [use("Read", "t")], sessionId=f"s{number}")
        for number in range(3)
    ]
    assert [run.id for run, _ in load(save(lines, lines=True))] == ["s0", "s1", "s2"]


def test_lines_that_the_program_wrote_are_no_replies(save):
    lines = [
        line("assistant", "a0", None, [use("Read", "t")], id="m"),
        line("assistant", "a1", "a0", [{"type": "text", "text": "API Error"}], model="<synthetic>"),
    ]
    _, turns = only(save(lines, lines=True))
    assert len(turns) == 1


def test_streamed_output_of_the_command_line_is_read(save):
    lines = [
        {"type": "system", "subtype": "init", "session_id": "s9"},
        {
            "type": "assistant",
            "session_id": "s9",
            "parent_tool_use_id": None,
            "message": {"id": "m", "role": "assistant", "content": [use("Read", "t")]},
        },
        {
            "type": "user",
            "session_id": "s9",
            "message": {"role": "user", "content": [result("t", "x")]},
        },
        {"type": "result", "subtype": "success", "session_id": "s9"},
    ]
    run, turns = only(save(lines, lines=True))
    assert (run.id, run.outcome) == ("s9", {"result": "success"})
    assert turns[0].results[0].content == "x"


# What no reader knows


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"version": 2, "samples": [{"messages": CHAT}]},
        {"history": [{"role": "user", "name": "Expert", "content": "x"}], "question": "?"},
        [{"id": 0, "source": "agent", "action": "run", "args": {}}],
        {"timestamp": "t", "type": "session_meta", "payload": {}},
        {"resourceSpans": []},
        {"trace_id": "t", "calls": []},
    ],
)
def test_other_formats_are_unknown_not_wrong(save, value):
    with pytest.raises(UnknownFormatError):
        load(save(value))


def test_every_reader_has_a_name_of_its_own():
    assert len({reader.name for reader in READERS}) == len(READERS) == 5
