"""The stream of JSON values under the readers: shapes of files, bad input, bounded memory."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from turnwarden.traces import TraceError, UnknownFormatError, read_runs
from turnwarden.traces.source import Source


def values(path: Path, **options) -> list:
    source = Source(path, **options)
    try:
        return [value.data for value in source.values()]
    finally:
        source.close()


@pytest.fixture
def write(tmp_path):
    def _write(content: str | bytes, name: str = "file.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return _write


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('{"a": 1}\n', [{"a": 1}]),
        ('{\n "a": {\n  "b": []\n }\n}\n', [{"a": {"b": []}}]),
        ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ('{"a": 1}\r\n\r\n  \n{"a": 2}', [{"a": 1}, {"a": 2}]),
        ('[{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}]),
        ('[\n  {"a": 1},\n  {"a": 2}\n]\n', [{"a": 1}, {"a": 2}]),
        ('[{"a": "],[{"}]', [{"a": "],[{"}]),
        ("[[1, 2], [3]]", [[1, 2], [3]]),
        ("[]", []),
        ("[1, 22, 333]", [1, 22, 333]),
        ('{"a":\n1}\n{"a":\n2}', [{"a": 1}, {"a": 2}]),
        ('\ufeff\n {"a": 1}', [{"a": 1}]),
        ('{"messages": [\n  {"role": "user"},\n  {"role": "user"}\n]}', None),
    ],
)
def test_each_shape_of_file_gives_its_values(write, content, expected):
    assert values(write(content)) == ([json.loads(content)] if expected is None else expected)


def test_arrays_in_a_row_are_told_apart(write):
    source = Source(write("[1, 2]\n[3]\n"))
    groups = [(value.data, value.group) for value in source.values()]
    source.close()
    assert groups == [(1, 0), (2, 0), (3, 1)]


@given(
    st.lists(
        st.dictionaries(st.text(max_size=5), st.text() | st.integers() | st.floats(allow_nan=False))
        | st.text(max_size=20)
        | st.integers(),
        max_size=8,
    ),
    st.sampled_from([None, 1]),
)
def test_an_array_is_taken_apart_as_json_would(tmp_path_factory, elements, indent):
    path = tmp_path_factory.mktemp("array") / "file.json"
    path.write_text(json.dumps(elements, indent=indent), encoding="utf-8")
    assert values(path) == elements


def test_elements_may_cross_any_window(write, monkeypatch):
    elements = [{"text": "ä" * length, "n": length} for length in range(40)]
    path = write(json.dumps(elements, ensure_ascii=False))
    for size in (1, 2, 3, 7, 64):
        monkeypatch.setattr("turnwarden.traces.source._CHUNK", size)
        assert values(path) == elements


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"  \n\n ", "empty"),
        (b"\x89PNG\0\0", "binary"),
        ('{"a": 1}'.encode("utf-16"), "UTF-16"),
        (b'{"messages": [{"role": "us', "cut off"),
        (b'{\n"messages": [\n{"role": "us', "cut off"),
        (b'[{"a": 1}, {"b"', "cut off"),
        (b'[{"a": 1}', "cut off"),
        (b'{"a": nope}', "no valid JSON"),
        (b'{"a": ' + b"[" * 200_000, "nested too deeply"),
        (b'[[{"a": ' + b"[" * 200_000, "nested too deeply"),
        (b'{"a": ' + b"1" * 5_000 + b"}", "too many digits"),
    ],
)
def test_bad_input_is_one_line_that_names_the_file(write, content, reason):
    path = write(content)
    with pytest.raises(TraceError) as caught:
        values(path)
    message = str(caught.value)
    assert reason in message
    assert message.startswith(str(path))
    assert "\n" not in message


@pytest.mark.parametrize("content", ["hello", "# notes\n", "name = 1\n", "42", "<html>"])
def test_a_file_that_is_no_json_is_of_an_unknown_format(write, content):
    with pytest.raises(UnknownFormatError):
        values(write(content))


def test_a_bad_line_costs_only_itself(write):
    errors: list[TraceError] = []
    path = write('{"a": 1}\n{"a": \n{"a": 3}\n{"a"')
    assert values(path, on_error=errors.append) == [{"a": 1}, {"a": 3}]
    assert [error.place for error in errors] == ["line 2", "line 4"]
    assert "cut off" in errors[1].reason


def test_a_broken_first_line_costs_only_itself(write):
    errors: list[TraceError] = []
    path = write('"a": 1}\n'.replace('"a"', '{"a') + '{"a": 2}\n{"a": 3}\n')
    assert values(path, on_error=errors.append) == [{"a": 2}, {"a": 3}]
    assert [error.place for error in errors] == ["line 1"]


def test_elements_before_a_broken_one_are_kept(write):
    errors: list[TraceError] = []
    assert values(write('[{"a": 1}, {"a": 2}, {"a'), on_error=errors.append) == [
        {"a": 1},
        {"a": 2},
    ]
    assert [error.place for error in errors] == ["element 3"]


def test_a_line_over_the_limit_is_an_error_and_the_next_is_read(write):
    errors: list[TraceError] = []
    path = write('{"a": 1}\n{"a": "' + "x" * 5000 + '"}\n{"a": 3}\n')
    assert values(path, on_error=errors.append, max_value_bytes=1000) == [{"a": 1}, {"a": 3}]
    assert "longer than 1,000 bytes" in errors[0].reason


@pytest.mark.parametrize("layout", ['[{{"a": 1}}, {{"a": "{long}"}}]', '{{\n"a": "{long}"\n}}'])
def test_an_element_over_the_limit_is_an_error(write, layout):
    path = write(layout.format(long="x" * 5_000_000))
    with pytest.raises(TraceError, match="longer than 1,000 bytes"):
        values(path, max_value_bytes=1000)


def test_broken_utf8_is_no_obstacle(write):
    assert values(write(b'{"a": "caf\xe9"}\n')) == [{"a": "caf\ufffd"}]


def test_a_missing_file_and_a_folder_are_one_line(tmp_path):
    for path in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(TraceError):
            list(read_runs(path))


def test_a_file_without_permission_is_one_line(write, monkeypatch):
    path = write("{}")

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(TraceError, match="permission denied"):
        list(read_runs(path))


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_a_pipe_is_read_like_a_file(tmp_path):
    import threading

    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=('{"a": 1}\n{"a": 2}\n',))
    writer.start()
    assert values(path) == [{"a": 1}, {"a": 2}]
    writer.join()


def test_progress_counts_every_byte(write):
    for content in ('{"a": 1}\n{"b": 2}\n', '[{"a": 1}, {"b": 2}]'):
        path = write(content)
        seen: list[int] = []
        values(path, progress=seen.append)
        assert sum(seen) == len(content)


@pytest.mark.parametrize("shape", ["lines", "array"])
def test_a_long_run_is_read_in_little_memory(tmp_path, shape):
    pair = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "read", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "x" * 10_000},
    ]
    path = tmp_path / "long.jsonl"
    with path.open("w") as file:
        file.write("[" if shape == "array" else "")
        for number in range(1_000):
            separator = "\n" if shape == "lines" else ",\n"
            file.write(separator if number else "")
            file.write(separator.join(json.dumps(message) for message in pair))
        file.write("]" if shape == "array" else "\n")
    assert path.stat().st_size > 10_000_000

    tracemalloc.start()
    turns = sum(1 for run in read_runs(path) for _ in run)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert turns == 1_000
    assert peak < 4_000_000
