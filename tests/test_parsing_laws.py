"""Laws of parsing, on texts that a generator makes."""

from __future__ import annotations

import json
from typing import Any

import turnwarden
import vectors_runner as vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from turnwarden import ResponseParser

PARSER = ResponseParser()
PIECES = [
    "<think>", "</think>", "<tool_call>", "</tool_call>", '{"name": "f", "arguments": {"a": 1}}',
    '{"content": "', '", "next": [', '{"mcp": "f", "args": {', "```json\n", "\n```", "`", '"', "\\",
    "{", "}", "[", "]", ",", ":", "[TOOL_CALLS]", "<function=f>", "<parameter=a>", "</parameter>",
    "</function>", "<|python_tag|>", "f(a=1)", "[f(a='x')]", "<|im_end|>", "\n\n", " ", "text",
    "猫", "\ud83d", "\ude00", "Action: f\nAction Input: {",
    "<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>",
    "null",
]  # fmt: skip

messy = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=14).map("".join)
any_text = st.text(st.characters(codec=None, categories=None), max_size=60)
texts = messy | any_text
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=6), inner, max_size=4
        )
    ),
    max_leaves=12,
)
objects = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6), values, max_size=4
)


@given(texts)
@settings(max_examples=300)
def test_no_text_raises_and_every_byte_is_accounted_for(text: str) -> None:
    reply = turnwarden.parse(text)
    at = 0
    for span in reply.spans:
        assert span.start == at
        at = span.end
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert at == len(joined.encode())
    reply.to_dict()
    repr(reply)


@given(texts, st.data())
@settings(max_examples=300)
def test_every_split_equals_the_whole(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert vectors.streamed(PARSER, chunks) == PARSER.parse(text)


@given(st.binary(max_size=40), st.data())
def test_every_split_of_any_bytes_equals_the_whole(raw: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    chunks = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert vectors.streamed(PARSER, chunks) == PARSER.parse(raw)


@given(objects, st.booleans(), st.none() | st.integers(0, 3))
def test_valid_arguments_come_back_exactly(
    arguments: dict[str, Any], ascii: bool, indent: int | None
) -> None:
    payload = json.dumps({"name": "f", "arguments": arguments}, ensure_ascii=ascii, indent=indent)
    reply = turnwarden.parse(f"<tool_call>{payload}</tool_call>")
    (call,) = reply.tool_calls
    assert not call.repaired
    assert vectors.same(call.arguments, arguments)
    assert vectors.same(json.loads(call.arguments_json), arguments)
    assert call.signature == turnwarden.call_signature("f", arguments)
    assert call == turnwarden.ToolCall("f", arguments)


@given(values, st.booleans(), st.none() | st.integers(0, 3))
def test_valid_json_is_returned_as_it_says(value: Any, ascii: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    assert vectors.same(turnwarden.repair_json(text), value)


@given(texts)
@settings(max_examples=300)
def test_healing_raises_nothing_but_its_error(text: str) -> None:
    try:
        value = turnwarden.repair_json(text)
    except turnwarden.JSONRepairError:
        return
    again = turnwarden.repair_json(json.dumps(value, ensure_ascii=False))
    assert vectors.same(again, value)


def is_part_of(part: Any, whole: Any) -> bool:
    """Whether `part` is `whole` with members, items and ends of scalars missing at its end."""
    match part, whole:
        case dict(), dict():
            return all(key in whole and is_part_of(part[key], whole[key]) for key in part)
        case list(), list():
            return len(part) <= len(whole) and all(map(is_part_of, part, whole))
        case str(), str():
            return whole.startswith(part)
        case ((int() | float()), float()) if not isinstance(part, bool):
            return True  # The exponent may be what was cut.
        case int(), int() if not isinstance(part, bool):
            return str(whole).startswith(str(part))
        case _:
            return vectors.same(part, whole)


@given(objects, st.data())
@settings(max_examples=300)
def test_what_a_cut_text_closed_is_kept(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=False)
    cut = data.draw(st.integers(1, len(text)))
    assert is_part_of(turnwarden.repair_json(text[:cut]), value)


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.lists(
        st.tuples(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), objects),
        max_size=3,
    ),
)
def test_a_workflow_is_written_as_json_of_its_parts(
    content: str, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    workflow = turnwarden.create_workflow_response(
        content, [{"mcp": name, "args": arguments} for name, arguments in calls]
    )
    text = turnwarden.serialize_workflow_response(workflow)
    assert json.loads(text) == workflow.to_dict()


@given(st.lists(texts, max_size=8))
def test_a_batch_equals_its_single_parses(batch: list[str]) -> None:
    assert turnwarden.parse_many(batch) == [turnwarden.parse(text) for text in batch]
