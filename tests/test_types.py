"""Values come to the types that a tool's schema declares, in every format alike."""

from __future__ import annotations

import json
from typing import Any

import format_writers
import pytest
import turnwarden
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


def _parser(schema: dict[str, Any], **more: Any) -> turnwarden.ResponseParser:
    parameters = {"type": "object", "properties": {"v": schema}, **more}
    return turnwarden.ResponseParser(tools=[{"name": "f", "input_schema": parameters}])


def _reply(parser: turnwarden.ResponseParser, value: Any) -> turnwarden.Reply:
    call = json.dumps({"name": "f", "arguments": {"v": value}})
    return parser.parse(f"<tool_call>{call}</tool_call>")


@pytest.mark.parametrize(
    ("schema", "value", "typed", "fits"),
    [
        ({"enum": [1, 2]}, "2", 2, True),
        ({"enum": [1, 2]}, "9", "9", False),
        ({"enum": [1, 2]}, 9, 9, False),
        ({"type": "string", "enum": ["a", "b"]}, "a", "a", True),
        ({"type": "string", "enum": ["a", "b"]}, "A", "A", False),
        ({"type": "string", "enum": ["a"], "nullable": True}, None, None, True),
        ({"const": "1"}, 1, "1", True),
        ({"anyOf": [{"enum": ["a"]}, {"type": "string"}]}, "b", "b", True),
    ],
)
def test_a_value_that_an_enum_does_not_list_stays_and_is_told(
    schema: dict[str, Any], value: Any, typed: Any, fits: bool
) -> None:
    reply = _reply(_parser(schema), value)
    assert reply.tool_calls[0].arguments == {"v": typed}
    assert type(reply.tool_calls[0].arguments["v"]) is type(typed)
    assert ("type_mismatch" not in [str(fault.kind) for fault in reply.faults]) is fits


def test_recursive_schemas_type_values_at_any_level_and_cost_nothing_to_read() -> None:
    fields: dict[str, Any] = {f"p{n}": {"$ref": "#/$defs/node"} for n in range(50)}
    node = {"type": "object", "properties": {**fields, "n": {"type": "integer"}}}
    parser = _parser({"$ref": "#/$defs/node"}, **{"$defs": {"node": node}})
    value: Any = {"n": "3"}
    expected: Any = {"n": 3}
    for level in range(20):
        value, expected = {f"p{level}": value}, {f"p{level}": expected}
    assert _reply(parser, value).tool_calls[0].arguments == {"v": expected}
