"""No value that stands anywhere in a recorded run makes a command fail."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turnwarden.cli import main

CALL = {"id": "c0", "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}}
ANSWER = {"role": "tool", "tool_call_id": "c0", "content": "found", "timestamp": 1_700_000_001}
ASKED = {
    "role": "assistant",
    "content": [{"type": "text", "text": "I look."}],
    "tool_calls": [CALL],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2},
    "timestamp": "2026-01-02T03:04:05Z",
}
CHAT = [{"role": "user", "content": "go"}, ASKED, ANSWER, {"role": "assistant", "content": "Done."}]
TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
BLOCKS = [
    {"type": "thinking", "thinking": "hm"},
    {"type": "tool_use", "id": "t0", "name": "Bash", "input": {"command": "ls"}},
]
SESSION = {"sessionId": "s", "isSidechain": False, "timestamp": "2026-01-02T03:04:05Z"}

RECORDINGS = {
    "openai-chat": {"id": "r", "messages": CHAT, "tools": [TOOL], "score": 0.5},
    "swe-agent": {
        "instance_id": "i",
        "trajectory": [
            {"action": "ls", "observation": "a.py", "response": "r", "thought": "t"},
            {"action": "cat a.py", "observation": "", "response": "r", "thought": "t"},
        ],
        "history": [{"role": "assistant", "content": "c", "action": "ls", "agent": "main"}],
        "info": {"exit_status": "submitted"},
    },
    "mini-swe-agent": {
        "instance_id": "i",
        "trajectory_format": "mini-swe-agent-1",
        "info": {"exit_status": "Submitted", "config": {"agent": {"action_regex": "```bash"}}},
        "messages": [
            {"role": "assistant", "content": "Look.\n```bash\nls\n```"},
            {"role": "user", "content": "<returncode>0</returncode>"},
            {"role": "assistant", "content": "No block.", "extra": {"response": {"usage": {}}}},
            {"role": "user", "content": "Please give one action."},
        ],
    },
    "tau-bench": [
        {"task_id": 3, "trial": 0, "reward": 0.0, "info": {"error": "e"}, "traj": CHAT},
    ],
}
LINES = [
    {"type": "summary", "summary": "s", "leafUuid": "u1"},
    {
        **SESSION,
        "type": "assistant",
        "uuid": "u0",
        "parentUuid": None,
        "message": {
            "role": "assistant",
            "id": "m0",
            "content": BLOCKS,
            "usage": {"input_tokens": 3, "output_tokens": 4},
        },
    },
    {
        **SESSION,
        "type": "user",
        "uuid": "u1",
        "parentUuid": "u0",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t0", "content": "ok"}],
        },
    },
    {
        **SESSION,
        "type": "assistant",
        "uuid": "u2",
        "parentUuid": None,
        "isSidechain": True,
        "message": {"role": "assistant", "content": "done"},
    },
]

ODD = (
    *(None, True, False, 0, -1, 3.5, float("nan"), float("inf"), float("-inf"), 1e300, -1e300),
    *(10**18, -(10**18), 10**400, -(10**400)),
    *("", "x", "\ud800", "\x1b[31m\x07", "Error: no", '{"a":', "2026-13-45T99:99:99Z"),
    *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"),
    *([], {}, [None], [[]], [{}], {"": None}, {"a": {"b": [1, "x"]}}),
)


def places(value: object, path: tuple = ()):
    """Every place of a JSON value below its root."""
    members = value.items() if isinstance(value, dict) else ()
    elements = enumerate(value) if isinstance(value, list) else members
    for key, inner in elements:
        yield (*path, key)
        yield from places(inner, (*path, key))


def replaced(value, path: tuple, by: object):
    """The value with another one at a place."""
    value = copy.deepcopy(value)
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = by
    return value


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def check(path, capsys) -> None:
    for command in (["scan"], ["scan", "--json"], ["replay", "--full"], ["replay", "--json"]):
        code = main([*command, str(path)])
        out, err = capsys.readouterr()
        assert code in (0, 2)
        assert bool(err) or code == 0
        assert not {"\x1b", "\x07"} & {*out, *err}
        for line in out.splitlines() if "--json" in command else ():
            json.loads(line, parse_constant=refuse_constant)


@pytest.mark.parametrize("name", RECORDINGS)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_no_value_in_a_recording_makes_a_command_fail(name, data, tmp_path, capsys):
    recording = RECORDINGS[name]
    where = data.draw(st.sampled_from(list(places(recording))))
    path = tmp_path / "run.json"
    path.write_text(json.dumps(replaced(recording, where, data.draw(st.sampled_from(ODD)))))
    check(path, capsys)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_no_value_in_a_session_makes_a_command_fail(data, tmp_path, capsys):
    where = data.draw(st.sampled_from(list(places(LINES))))
    lines = replaced(LINES, where, data.draw(st.sampled_from(ODD)))
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    check(path, capsys)


def chat(tmp_path, **more):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"messages": CHAT, **more}))
    return path


@pytest.mark.parametrize(
    "time", [float("nan"), float("inf"), 1e300, 10**400, -(10**400), "0001-01-01T00:00:00+23:59"]
)
def test_a_time_that_no_clock_shows_is_passed_over(tmp_path, capsys, time):
    path = chat(tmp_path)
    record = json.loads(path.read_text())
    record["messages"][1]["timestamp"] = time
    path.write_text(json.dumps(record))
    assert main(["replay", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["seconds"] is None


@pytest.mark.parametrize("tokens", [10**13, 10**400, -1])
def test_tokens_that_no_turn_costs_are_passed_over(tmp_path, capsys, tokens):
    path = chat(tmp_path)
    record = json.loads(path.read_text())
    record["messages"][1]["usage"]["prompt_tokens"] = tokens
    path.write_text(json.dumps(record))
    assert main(["replay", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == {"input": 0, "output": 2}


def test_tools_without_a_name_leave_the_others_their_types(tmp_path, capsys):
    parameters = {"type": "object", "properties": {"q": {"type": "string"}}}
    tools = [
        {"type": "web_search"},
        {"type": "function", "function": {"name": "search", "parameters": parameters}},
        {"name": 5},
    ]
    assert main(["replay", str(chat(tmp_path, tools=tools))]) == 0
    assert 'search {"q":"1"}' in capsys.readouterr().out


def test_an_outcome_that_is_no_json_number_is_null(tmp_path, capsys):
    path = chat(tmp_path, score=float("nan"), reward=[float("inf"), 1.0])
    assert main(["scan", "--json", str(path)]) == 0
    report = json.loads(capsys.readouterr().out, parse_constant=refuse_constant)
    assert report["outcome"] == {"score": None, "reward": [None, 1.0]}
