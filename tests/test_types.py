"""Values come to the types that a tool's schema declares, in every format alike."""

from __future__ import annotations

from typing import Any

import format_writers
import pytest
import vectors_runner as vectors
from turnwarden import ResponseParser

POINT = {"type": "object", "properties": {"z": {"type": "integer"}}}
PROPERTIES: dict[str, Any] = {
    "n": {"type": "integer"},
    "x": {"type": "number"},
    "b": {"type": "boolean"},
    "s": {"type": "string"},
    "maybe": {"type": ["integer", "null"]},
    "nullable": {"type": "integer", "nullable": True},
    "any": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "one": {"oneOf": [{"type": "boolean"}, {"type": "array"}]},
    "level": {"enum": [1, 2, 3]},
    "kind": {"type": "string", "enum": ["1", "2"]},
    "list": {"type": "array", "items": {"type": "integer"}},
    "object": {"type": "object", "properties": {"k": {"type": "integer"}}},
    "point": {"$ref": "#/$defs/point"},
    "other": {"type": "integer", "default": 5},
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "measure",
            "parameters": {
                "type": "object",
                "$defs": {"point": POINT},
                "properties": PROPERTIES,
            },
        },
    }
]

# The parameter, what the model writes, and what the tool gets.
CASES: list[tuple[str, Any, Any]] = [
    ("n", "3", 3),
    ("n", 3, 3),
    ("n", "three", "three"),
    ("n", "3.5", "3.5"),
    ("n", "123456789012345678901234567890", 123456789012345678901234567890),
    ("x", "0.5", 0.5),
    ("b", "true", True),
    ("s", "03106", "03106"),
    ("s", "true", "true"),
    ("s", "null", "null"),
    ("s", "plain text", "plain text"),
    ("maybe", "4", 4),
    ("maybe", "null", None),
    ("nullable", "null", None),
    ("any", "7", 7),
    ("any", "null", None),
    ("one", "true", True),
    ("level", "2", 2),
    ("kind", "1", "1"),
    ("list", "[1, 2]", [1, 2]),
    ("object", '{"k": 1}', {"k": 1}),
    ("point", '{"z": 2}', {"z": 2}),
]
# What only formats with typed values can say.
NESTED: list[tuple[str, Any, Any]] = [
    ("list", ["1", 2], [1, 2]),
    ("object", {"k": "1", "more": "x"}, {"k": 1, "more": "x"}),
    ("point", {"z": "2"}, {"z": 2}),
]

PARSERS = {label: ResponseParser([label], TOOLS) for label in format_writers.WRITERS}


@pytest.mark.parametrize("label", format_writers.WRITERS)
def test_a_value_comes_to_its_declared_type(label: str) -> None:
    for key, value, wanted in [*CASES, *NESTED]:
        text = format_writers.written(label, [("measure", {key: value})])
        reply = PARSERS[label].parse(text)
        found = [call.arguments for call in reply.tool_calls]
        assert len(found) == 1, text
        assert vectors.same(found[0], {key: wanted}), (text, found)


@pytest.mark.parametrize("label", format_writers.WRITERS)
def test_nothing_is_lost_and_no_default_is_added(label: str) -> None:
    text = format_writers.written(label, [("Measure", {"n": "x y", "unknown": "kept"})])
    call = PARSERS[label].parse(text).tool_calls[0]
    assert (call.name, call.arguments) == ("measure", {"n": "x y", "unknown": "kept"})


@pytest.mark.parametrize("label", format_writers.WRITERS)
def test_what_was_written_is_read_back(label: str) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("a", {"x": "one two"}),
        ("b", {}),
        ("c", {"y": "ü"}),
    ]
    if format_writers.WRITERS[label][2] is None:
        calls = calls[:1]
    text = format_writers.written(label, calls)
    reply = ResponseParser([label]).parse(text)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == calls
