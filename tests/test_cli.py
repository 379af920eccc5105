"""The command line: exit codes, bad input, what is printed where."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from turnwarden.cli import main

RUNS = Path(__file__).parent.parent / "examples" / "runs"
KEYS = {
    "run",
    "path",
    "index",
    "format",
    "outcome",
    "turns",
    "calls",
    "refused",
    "incomplete",
    "repaired",
    "repairs",
    "errors",
    "syntaxes",
    "tools",
    "loops",
    "first_warning",
    "blocked_at",
    "stopped_at",
    "limit_at",
    "iteration_limit",
    "wasted_calls",
    "saved",
    "tokens",
    "characters",
    "seconds",
}


def turnwarden(*arguments: object, **options) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        [sys.executable, "-m", "turnwarden", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        **options,
    )


@pytest.fixture
def command(capsys):
    """The command in this process, which is quicker; the same answer."""

    def _command(*arguments: object) -> subprocess.CompletedProcess[str]:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, out, err)

    return _command


def chat(*names: str) -> list[dict]:
    """A run that calls one tool after the other, each with a result of its own."""
    messages: list[dict] = [{"role": "user", "content": "go"}]
    for at, name in enumerate(names):
        function = {"name": name, "arguments": json.dumps({"n": at})}
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{at}", "type": "function", "function": function}],
            }
        )
        messages.append({"role": "tool", "tool_call_id": f"c{at}", "content": f"result {at}"})
    return messages


def circles(turns: int = 6) -> list[dict]:
    """A run that makes the same call with the same result again and again."""
    function = {"name": "search", "arguments": '{"q": "x"}'}
    call = {"id": "c", "type": "function", "function": function}
    pair = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "nothing"},
    ]
    return pair * turns


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.json"
    path.write_text(json.dumps(chat("read", "write")))
    return path


@pytest.fixture
def looping(tmp_path):
    path = tmp_path / "looping.json"
    path.write_text(json.dumps(circles()))
    return path


# The command itself


def test_the_version_is_told():
    told = turnwarden("--version")
    assert (told.returncode, told.stderr) == (0, "")
    assert re.match(r"turnwarden \d+\.\d+", told.stdout)


def test_no_command_is_an_error_that_shows_the_usage():
    told = turnwarden()
    assert told.returncode == 2
    assert "usage: turnwarden" in told.stderr


@pytest.mark.parametrize("command", ["scan", "replay", "parse"])
def test_each_command_explains_itself(command):
    told = turnwarden(command, "--help")
    assert told.returncode == 0
    assert "usage" in told.stdout


# scan: exit codes


def test_a_clean_scan_is_0_even_when_asked_to_fail_on_loops(command, good):
    told = command("scan", good, "--fail-on-loop")
    assert (told.returncode, told.stderr) == (0, "")
    assert "No loop in 1 run with 2 calls." in told.stdout


def test_a_loop_is_0_unless_asked_to_fail(command, looping):
    assert command("scan", looping).returncode == 0


def test_a_loop_is_1_when_asked_to_fail(command, looping, good):
    told = command("scan", good, looping, "--fail-on-loop")
    assert told.returncode == 1
    assert "exact" in told.stdout


def test_an_unreadable_input_is_2_and_outranks_a_loop(looping, tmp_path):
    told = turnwarden("scan", tmp_path / "missing.json", looping, "--fail-on-loop")
    assert told.returncode == 2
    assert "exact" in told.stdout
    assert told.stderr.count("\n") == 1
    assert "missing.json" in told.stderr


def test_unknown_formats_are_named_and_counted_and_no_error(command, good, tmp_path):
    (tmp_path / "notes.md").write_text("# Notes\n")
    (tmp_path / "other.json").write_text('{"resourceSpans": []}')
    told = command("scan", tmp_path)
    assert told.returncode == 0
    assert "2 files of unknown format" in told.stderr
    assert "notes.md" in told.stderr
    assert "other.json" in told.stderr


# scan: bad input

BAD = {
    "empty.json": b"",
    "spaces.jsonl": b" \n \n",
    "truncated.json": b'{"messages": [{"role": "user", "content": "go"}, {"role": "assis',
    "laid_out.json": b'{\n  "messages": [\n    {\n      "role": "user",',
    "array.json": b'[{"role": "user", "content": "go"}, {"role": "assis',
    "broken.jsonl": b'{"messages": nope}\n',
    "binary.json": bytes(range(256)) * 10,
    "nulls.jsonl": b'{"messages": "\0"}',
    "utf16.json": '{"messages": []}'.encode("utf-16"),
    "deep.json": b'{"messages": ' + b"[" * 100_000,
    "long.jsonl": b'{"messages": "' + b"x" * 1_100_000 + b'"}\n',
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("by", ["name", "folder"])
def test_bad_input_is_one_line_and_the_scan_goes_on(good, tmp_path, capsys, name, by):
    bad = tmp_path / "sub" / name
    bad.parent.mkdir()
    bad.write_bytes(BAD[name])
    code = main(["scan", str(bad if by == "name" else bad.parent), str(good), "--max-mib", "1"])
    out, err = capsys.readouterr()
    assert code == 2
    assert err.count("\n") == 1
    assert err.startswith(f"turnwarden: {bad}")
    assert "good.json" in out


def test_a_line_of_100_mb_is_one_line(tmp_path, good):
    bad = tmp_path / "huge.jsonl"
    with bad.open("wb") as file:
        file.write(b'{"messages": [{"role": "user", "content": "')
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b'"}]}\n')
        file.write(json.dumps({"messages": chat("read")}).encode() + b"\n")
    told = turnwarden("scan", bad, good)
    bad.unlink()
    assert told.returncode == 2
    assert told.stderr.count("\n") == 1
    assert "line 1: longer than" in told.stderr
    assert "huge.jsonl" in told.stdout  # the line after it was read


def test_no_traceback_reaches_a_user(tmp_path, good):
    for name, content in BAD.items():
        (tmp_path / name).write_bytes(content)
    told = turnwarden("scan", tmp_path, "--max-mib", 1)
    assert told.returncode == 2
    assert "Traceback" not in told.stderr
    assert told.stderr.count("\n") == len(BAD)
    assert "good.json" in told.stdout


def test_files_in_a_folder_that_claim_no_run_are_no_errors(command, good, tmp_path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "style.css").write_text("{color: red}")
    told = command("scan", tmp_path)
    assert told.returncode == 0
    assert "3 files of unknown format" in told.stderr


def test_hidden_folders_are_passed_over(command, good, tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "broken.json").write_text("{")
    assert command("scan", tmp_path).stderr == ""


def test_an_empty_folder_is_one_line(command, tmp_path):
    told = command("scan", tmp_path)
    assert told.returncode == 2
    assert told.stderr == f"turnwarden: {tmp_path}: no files in this folder\n"


def test_a_folder_without_runs_is_one_line(command, tmp_path):
    (tmp_path / "notes.md").write_text("# Notes\n")
    told = command("scan", tmp_path)
    assert (told.returncode, told.stdout) == (0, "no runs found\n")
    assert told.stderr.count("\n") == 1


def test_a_file_without_permission_is_one_line(good, tmp_path, capsys, monkeypatch):
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    real_open = open

    def guarded(path, *arguments, **options):
        if str(path) == str(secret):
            raise PermissionError(13, "Permission denied")
        return real_open(path, *arguments, **options)

    monkeypatch.setattr("builtins.open", guarded)
    code = main(["scan", str(secret), str(good)])
    out, err = capsys.readouterr()
    assert (code, err) == (2, f"turnwarden: {secret}: permission denied\n")
    assert "good.json" in out


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user without all rights")
def test_a_folder_without_permission_is_one_line(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o000)
    told = turnwarden("scan", folder)
    folder.chmod(0o700)
    assert told.returncode == 2
    assert "permission denied" in told.stderr


def test_many_bad_lines_of_one_file_are_counted(command, tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text(json.dumps({"messages": chat("a")}) + "\n" + '{"x"\n' * 30)
    told = command("scan", path)
    assert told.returncode == 2
    assert told.stderr.count("\n") == 6
    assert "25 more places" in told.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_closed_pipe_ends_the_scan_with_one_line(tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps({"messages": chat("a")}) + "\n" for _ in range(2_000)))
    with subprocess.Popen(
        [sys.executable, "-m", "turnwarden", "scan", "--json", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(timeout=60) == 141
    assert errors.count("\n") == 1
    assert "Traceback" not in errors


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_keeps_what_was_found(good):
    with subprocess.Popen(
        [sys.executable, "-m", "turnwarden", "scan", "--json", str(good), "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["calls"] == 2
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130
    assert errors == "turnwarden: interrupted\n"


def test_an_interrupt_before_the_first_run_does_not_say_that_there_are_none(
    good, capsys, monkeypatch
):
    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr("turnwarden.traces.scan", interrupted)
    assert main(["scan", str(good)]) == 130
    assert tuple(capsys.readouterr()) == ("", "turnwarden: interrupted\n")


# scan: what is printed


def test_json_is_one_object_a_run_with_stable_keys(command, good, looping):
    told = command("scan", "--json", good, looping)
    reports = [json.loads(line) for line in told.stdout.splitlines()]
    assert [report["run"] for report in reports] == ["good.json#0", "looping.json#0"]
    assert all(set(report) == KEYS for report in reports)
    clean, loop = reports
    assert (clean["loops"], clean["first_warning"], clean["wasted_calls"]) == ([], None, 0)
    assert loop["calls"] == 6
    assert loop["first_warning"]["turn"] == 3
    assert (loop["blocked_at"], loop["stopped_at"]) == (4, 5)
    assert loop["wasted_calls"] == 4
    assert loop["saved"]["calls"] == 3
    assert [
        (found["type"], found["first_turn"], found["last_turn"]) for found in loop["loops"]
    ] == [("exact", 3, 6)]


def test_the_table_is_aligned_without_rich(command, good, looping):
    lines = command("scan", good, looping).stdout.splitlines()
    table = lines[: lines.index("")]
    assert len(table) == 4
    starts = [match.start() for match in re.finditer(r"-+", table[1])]
    for row in (table[0], *table[2:]):
        assert all(start == 0 or row.ljust(100)[start - 1] == " " for start in starts)


def test_many_clean_runs_are_summed_up_and_listed_when_asked(command, tmp_path):
    path = tmp_path / "many.jsonl"
    lines = [json.dumps({"messages": chat("a")}) for _ in range(150)]
    path.write_text("\n".join([*lines, json.dumps({"messages": circles()})]))
    short = command("scan", path).stdout
    assert short.count("many.jsonl#") == 1
    assert "150 clean runs are not listed" in short
    assert command("scan", path, "--all").stdout.count("many.jsonl#") == 151


def test_a_file_met_twice_is_scanned_once(command, good):
    told = command("scan", "--json", good, good.parent, good)
    assert told.stdout.count("\n") == 1


def test_standard_input_is_scanned(good):
    with good.open("rb") as file:
        told = turnwarden("scan", "-", "--json", stdin=file)
    assert json.loads(told.stdout)["calls"] == 2


def test_an_encoding_without_the_characters_is_no_obstacle(tmp_path, looping):
    path = tmp_path / "odd.json"
    path.write_text(json.dumps({"id": "läuft-\ud800-円", "messages": circles()}))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for arguments in (("scan", tmp_path), ("replay", path), ("scan", "--json", tmp_path)):
        told = turnwarden(*arguments, env=environment)
        assert (told.returncode, told.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("has_rich", [True, False])
def test_a_terminal_gets_a_progress_bar_and_a_table(good, looping, has_rich):
    import pty

    block = "" if has_rich else "import sys; sys.modules['rich'] = None; "
    program = f"{block}from turnwarden.cli import main; raise SystemExit(main())"
    main_end, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [sys.executable, "-c", program, "scan", str(good), str(looping)],
        stdout=terminal,
        stderr=terminal,
        stdin=subprocess.DEVNULL,
        env=environment,
    ) as process:
        os.close(terminal)
        seen = b""
        while True:
            try:
                chunk = os.read(main_end, 65_536)
            except OSError:  # the terminal is gone when the process is
                break
            if not chunk:
                break
            seen += chunk
        assert process.wait(timeout=60) == 0
    os.close(main_end)
    text = seen.decode()
    assert "█" in text or "░" in text
    assert "\r\x1b[K" in text
    assert "looping.json" in text
    assert ("\x1b[33m" in text) is has_rich


def test_a_pipe_gets_no_bar_and_no_colours(good, looping):
    told = turnwarden("scan", good, looping)
    assert "\x1b" not in told.stdout + told.stderr
    assert told.stderr == ""


# --policy


def test_a_policy_file_sets_the_guard_up(command, looping, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text("[loop_detection]\nrepeat_threshold = 2\n")
    report = json.loads(command("scan", "--json", looping, "--policy", policy).stdout)
    assert report["first_warning"]["turn"] == 2


@pytest.mark.parametrize("content", ["loop_detection = 3\n", "[loop_detection\n", "nonsense = 1\n"])
@pytest.mark.parametrize("name", ["scan", "replay"])
def test_a_wrong_policy_is_one_line(looping, tmp_path, capsys, content, name):
    policy = tmp_path / "policy.toml"
    policy.write_text(content)
    assert main([name, str(looping), "--policy", str(policy)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"turnwarden: {policy}: ")
    assert err.count("\n") == 1


def test_a_missing_policy_is_one_line(looping, tmp_path, capsys):
    assert main(["scan", str(looping), "--policy", str(tmp_path / "none.toml")]) == 2
    assert capsys.readouterr().err.endswith("no such file or directory\n")


# replay


def test_a_replay_shows_where_the_guard_speaks_and_what_that_saves(capsys):
    assert main(["replay", str(RUNS / "looping.jsonl")]) == 0
    out = capsys.readouterr().out
    assert out.index("WARN") < out.index("BLOCK") < out.index("STOP") < out.index("after the end")
    assert "loop.exact" in out
    assert "prompt" in out
    assert re.search(
        r"saves +\d+ of \d+ calls \(\d+%\), \d+ of \d+ replies, [\d,]+ of [\d,]+ tok", out
    )
    assert "hermes" in out


def test_a_replay_of_broken_replies_shows_what_was_healed(capsys):
    assert main(["replay", str(RUNS / "broken_replies.jsonl")]) == 0
    out = capsys.readouterr().out
    assert "repaired" in out
    assert "cut off" in out
    assert re.search(r"loops +none", out)


def test_a_healthy_run_draws_no_verdict(capsys):
    assert main(["replay", str(RUNS / "healthy.jsonl")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"loops +none", out)
    assert "WARN" not in out


def test_the_iteration_limit_is_told_apart_from_loops(tmp_path, capsys):
    path = tmp_path / "long.json"
    path.write_text(json.dumps(chat(*(f"tool_{number}" for number in range(30)))))
    assert main(["replay", str(path)]) == 0
    out = capsys.readouterr().out
    assert "iteration limit 20 reached at turn 20" in out
    assert "the last 11 turns" in out


def test_long_text_is_cut_unless_asked_for(tmp_path, capsys):
    messages = chat("read")
    messages[1]["tool_calls"][0]["function"]["arguments"] = json.dumps({"text": "y" * 1_000})
    messages[2]["content"] = "first\n" + "x" * 1_000 + "\nlast"
    path = tmp_path / "long.json"
    path.write_text(json.dumps(messages))
    main(["replay", str(path)])
    short = capsys.readouterr().out
    main(["replay", str(path), "--full"])
    full = capsys.readouterr().out
    assert max(map(len, short.splitlines())) <= 100
    assert "x" * 1_000 not in short
    assert "x" * 1_000 in full
    assert "y" * 1_000 in full


def test_a_run_is_chosen_by_index_or_id(tmp_path, capsys):
    path = tmp_path / "runs.jsonl"
    records = [{"id": f"run-{name}", "messages": chat(name)} for name in ("a", "b", "c")]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    for wanted in ("1", "run-b"):
        assert main(["replay", str(path), "--run", wanted]) == 0
        out = capsys.readouterr().out
        assert "run-b" in out
        assert "run-c" not in out
    assert main(["replay", str(path)]) == 0
    assert "The file holds more runs" in capsys.readouterr().out
    assert main(["replay", str(path), "--run", "7"]) == 2
    assert capsys.readouterr().err == f"turnwarden: {path}: no run 7; it holds 3, counted from 0\n"


@pytest.mark.parametrize("name", BAD)
def test_a_replay_of_bad_input_is_one_line(tmp_path, capsys, name):
    path = tmp_path / name
    path.write_bytes(BAD[name])
    assert main(["replay", str(path), "--max-mib", "1"]) == 2
    _, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert err.startswith(f"turnwarden: {path}")


def test_a_replay_of_an_unknown_format_or_a_folder_is_one_line(tmp_path, capsys):
    path = tmp_path / "notes.md"
    path.write_text("# Notes")
    for wrong in (path, tmp_path, tmp_path / "missing"):
        assert main(["replay", str(wrong)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_what_could_be_read_is_shown_before_the_error(tmp_path, capsys):
    path = tmp_path / "cut.jsonl"
    text = "".join(json.dumps(message) + "\n" for message in chat("first", "second"))
    path.write_text(text[:-30])
    assert main(["replay", str(path)]) == 2
    out, err = capsys.readouterr()
    assert "first" in out
    assert "second" in out
    assert "cut off" in err


def test_control_characters_of_a_recording_never_reach_the_terminal(tmp_path, capsys):
    messages = chat("evil\x1b[2J\u202e")
    messages[1]["content"] = "say\x1b]0;title\x07\r\nover"
    messages[1]["tool_calls"][0]["function"]["arguments"] = '{"a": "\x9b31m"}'
    messages[2]["content"] = "\x1b[31mred\x00"
    path = tmp_path / "evil.json"
    path.write_text(json.dumps({"id": "run\x1b[1m", "messages": messages}))
    for arguments in (["replay", str(path), "--full"], ["replay", str(path)], ["scan", str(path)]):
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out)


def test_a_replay_as_json_is_the_report_of_scan(looping, capsys):
    main(["replay", str(looping), "--json"])
    replayed = json.loads(capsys.readouterr().out)
    main(["scan", str(looping), "--json"])
    assert replayed == json.loads(capsys.readouterr().out)


# parse

REPLY = (
    '<think>hm</think>Looking.\n<tool_call>\n{"name": "f", "arguments": {"a": 1,}}\n</tool_call>'
)


def test_a_reply_from_standard_input_is_parsed(capsys, monkeypatch):
    for arguments in ([], ["-"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(REPLY.encode())))
        assert main(["parse", *arguments]) == 0
        parsed = json.loads(capsys.readouterr().out)
        assert parsed["text"] == "Looking."
        assert parsed["reasoning"] == "hm"
        assert [(call["name"], call["arguments"]) for call in parsed["tool_calls"]] == [
            ("f", {"a": 1})
        ]
        assert parsed["repairs"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--model", "Qwen/Qwen3-32B-FP8"], ["ping"]),
        (["--model", "deepseek-ai/DeepSeek-V3.1"], []),
        (["--format", "xlam", "--format", "hermes"], ["ping"]),
        (["--format", "xlam"], []),
    ],
)
def test_parse_pins_formats_by_label_or_model(tmp_path, capsys, arguments, found):
    reply = tmp_path / "reply.txt"
    reply.write_text('<tool_call>{"name": "ping", "arguments": {}}</tool_call>')
    assert main(["parse", str(reply), *arguments]) == 0
    calls = json.loads(capsys.readouterr().out)["tool_calls"]
    assert [call["name"] for call in calls] == found


def test_a_reply_in_a_file_is_parsed_on_one_line_if_asked(tmp_path, capsys):
    path = tmp_path / "reply.txt"
    path.write_text("\ufeff" + REPLY)
    assert main(["parse", str(path), "--compact"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out)["format"] == "hermes"


def test_declared_tools_give_the_arguments_their_types(tmp_path, capsys):
    path = tmp_path / "reply.txt"
    path.write_text('<tool_call>{"name": "f", "arguments": {"a": "3"}}</tool_call>')
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    definition = {"type": "function", "function": {"name": "f", "parameters": schema}}
    for content in ([definition], {"tools": [definition]}):
        tools = tmp_path / "tools.json"
        tools.write_text(json.dumps(content))
        assert main(["parse", str(path), "--tools", str(tools)]) == 0
        assert json.loads(capsys.readouterr().out)["tool_calls"][0]["arguments"] == {"a": 3}


@pytest.mark.parametrize("content", [b"", b"  \n", b"\x00\x01"])
def test_parse_of_bad_input_is_one_line(tmp_path, capsys, content):
    path = tmp_path / "reply.txt"
    path.write_bytes(content)
    assert main(["parse", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"turnwarden: {path}")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--format", "no_such_format"),
        ("--tools", "/no/such/file"),
        ("--model", "no-such-model"),
    ],
)
def test_a_wrong_option_of_parse_is_one_line(tmp_path, capsys, option, value):
    path = tmp_path / "reply.txt"
    path.write_text(REPLY)
    assert main(["parse", str(path), option, value]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1


def test_parse_of_a_missing_file_and_a_folder_is_one_line(tmp_path, capsys):
    for path in (tmp_path / "missing.txt", tmp_path):
        assert main(["parse", str(path)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


# The documentation

PAGE = (Path(__file__).parent.parent / "docs" / "command-line.md").read_text(encoding="utf-8")


def test_every_key_of_the_json_is_documented():
    table = PAGE[PAGE.index("| Key |") : PAGE.index("## replay")]
    first_cells = "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|"))
    assert set(re.findall(r"`(\w+)`", first_cells)) == KEYS


def test_the_policy_file_of_the_documentation_is_a_valid_one(command, looping, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text(PAGE.split("```toml\n")[1].split("```")[0])
    told = command("scan", "--json", looping, "--policy", policy)
    assert told.returncode == 0
    assert json.loads(told.stdout)["iteration_limit"] == 60


def test_the_outputs_in_the_documentation_are_real(command, monkeypatch):
    monkeypatch.chdir(RUNS.parent.parent)
    shown = PAGE.split("$ turnwarden scan examples/runs\n")[1].split("```")[0]
    assert command("scan", "examples/runs").stdout == shown
    replayed = command("replay", "examples/runs/looping.jsonl").stdout
    shown = PAGE.split("$ turnwarden replay examples/runs/looping.jsonl\n")[1].split("```")[0]
    facts = re.findall(r"(?m)^turn .*|^  (?:call|WARN|BLOCK|STOP|saves) +[^:]+", shown)
    assert len(facts) > 5
    assert all(fact in replayed for fact in facts)


# streams that are closed or full


def shell(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A shell line in which `$0` is Python, and `$@` are the arguments of the command."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["sh", "-c", script, sys.executable, "-m", "turnwarden", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        env=environment,
    )


@pytest.fixture(params=["--version", "--help", "scan", "scan --json", "replay", "parse"])
def words(request, looping):
    """The words of each command with each output."""
    words = request.param.split()
    return words if words[0].startswith("-") else [*words, looping]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_one_line(words):
    done = shell('"$0" "$@" >/dev/full', *words)
    expected = "turnwarden: the output cannot be written: no space left on device\n"
    assert (done.returncode, done.stderr) == (2, expected)


@pytest.mark.skipif(sys.platform == "win32", reason="the shell of POSIX")
def test_an_output_that_nobody_reads_is_one_line(words, tmp_path):
    code = tmp_path / "code"
    done = shell(f'("$0" "$@"; echo $? >"{code}") | true', *words)
    # Whether the write comes after the other side has gone is chance.
    assert (code.read_text(), done.stderr) in (
        ("0\n", ""),
        ("141\n", "turnwarden: the output was closed before everything was written\n"),
    )


@pytest.mark.skipif(sys.platform == "win32", reason="the shell of POSIX")
@pytest.mark.parametrize("words", [["scan"], ["scan", "--json"], ["replay"], ["parse"]])
def test_a_closed_output_is_one_line(words, looping):
    done = shell('"$0" "$@" >&-', *words, looping)
    assert (done.returncode, done.stderr) == (2, "turnwarden: standard output is closed\n")


@pytest.mark.skipif(sys.platform == "win32", reason="the shell of POSIX")
def test_a_closed_error_stream_changes_neither_output_nor_code(looping, tmp_path):
    open_ = shell('"$0" "$@" 2>/dev/null', "scan", "--json", looping, tmp_path / "missing")
    closed = shell('"$0" "$@" 2>&-', "scan", "--json", looping, tmp_path / "missing")
    assert (closed.returncode, closed.stdout) == (2, open_.stdout)
    assert closed.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_error_stream_leaves_the_code(tmp_path):
    assert shell('"$0" "$@" 2>/dev/full', "scan", tmp_path / "missing").returncode == 2
    assert shell('"$0" "$@" 2>/dev/full', "scan").returncode == 2


@pytest.mark.skipif(sys.platform == "win32", reason="the shell of POSIX")
@pytest.mark.parametrize("command_name", ["scan", "replay", "parse"])
def test_a_closed_input_is_one_line(command_name):
    done = shell('"$0" "$@" <&-', command_name, "-")
    assert (done.returncode, done.stderr) == (2, "turnwarden: -: standard input is closed\n")


# what the lines say


def test_files_of_unknown_format_beyond_the_first_ten_are_named_when_asked(command, good, tmp_path):
    for at in range(12):
        (tmp_path / f"other{at:02}.json").write_text('{"a": 1}')
    few = command("scan", tmp_path)
    assert "12 files of unknown format" in few.stderr
    assert "other09" in few.stderr
    assert "other10" not in few.stderr
    assert few.stderr.endswith("and 2 more (--all names them)\n")
    assert command("scan", "--all", tmp_path).stderr.endswith("other11.json\n")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (gzip.compress(b"{}"), "gzip"),
        (bz2.compress(b"{}"), "bzip2"),
        (lzma.compress(b"{}"), "xz"),
        (b"\x28\xb5\x2f\xfd\x00\x00", "zstd"),
        (b"PK\x03\x04\x14\x00", "zip"),
    ],
    ids=["gzip", "bzip2", "xz", "zstd", "zip"],
)
def test_a_compressed_file_is_told_as_one(command, tmp_path, content, kind):
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    done = command("scan", path)
    expected = f"turnwarden: {path}: compressed with {kind}; unpack it first\n"
    assert (done.returncode, done.stderr) == (2, expected)


def test_utf_16_is_told_as_such_by_parse_too(command, tmp_path):
    path = tmp_path / "reply.txt"
    path.write_text("Hello", encoding="utf-16")
    done = command("parse", path)
    assert (done.returncode, done.stderr) == (
        2,
        f"turnwarden: {path}: UTF-16 text; save it as UTF-8\n",
    )


def test_one_of_a_thing_is_not_told_in_the_plural(command, tmp_path):
    path = tmp_path / "run.json"
    messages = chat("search")
    messages[1]["tool_calls"][0]["function"]["arguments"] = "{'n': 0}"
    path.write_text(json.dumps(messages[:3]))
    summary = command("replay", path).stdout.partition("summary")[2]
    assert "1 turn, 1 call\n" in summary
    assert "1 reply: quote_translated" in summary


def test_a_stop_by_a_budget_is_in_the_summary(command, good, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text("[budget]\nmax_tokens = 150\n")
    path = tmp_path / "costly.json"
    messages = chat("a", "b", "c")
    for message in messages:
        message["usage"] = {"prompt_tokens": 90, "completion_tokens": 10}
    path.write_text(json.dumps(messages))
    summary = command("replay", "--policy", policy, path).stdout.partition("summary")[2]
    assert "stops     at turn 2\n" in summary
    assert "saves     2 of 3 calls" in summary
