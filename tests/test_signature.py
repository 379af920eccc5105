"""Signatures of calls: equal exactly when the calls are."""

from __future__ import annotations

import collections
import datetime
import enum
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turnwarden import call_signature

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parent / "vectors" / "signatures.jsonl")
    .read_text("utf-8")
    .splitlines()
]

KEYS = st.text(max_size=10) | st.sampled_from(
    ["a", "ab", "b", "query", "workflow_id", "workflow_name"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([0.0, -0.0, 1.0, 2.0**53, 2**53, 2**63, -(2**63), 2**64])
)
VALUES = st.recursive(
    SCALARS,
    lambda values: st.lists(values, max_size=5) | st.dictionaries(KEYS, values, max_size=20),
    max_leaves=12,
)


def canon(value: Any) -> Any:
    """Equal for equal values: the definition, naively."""
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 2**53:
            return "int", int(value)
        return "float", repr(value)
    if isinstance(value, (bool, str)) or value is None:
        return type(value).__name__, value
    if isinstance(value, int):
        return "int", value
    if isinstance(value, dict):
        return "object", tuple(sorted((key, canon(item)) for key, item in value.items()))
    return "array", tuple(canon(item) for item in value)


def read(text: str) -> Any:
    """Arguments given as text, as values."""
    try:
        return json.loads(text) if text.strip() else None
    except ValueError:
        return text


@pytest.mark.parametrize("row", VECTORS, ids=lambda row: row["id"])
def test_vector_has_its_signature_as_text_and_as_objects(row: dict[str, Any]) -> None:
    assert call_signature(row["name"], row["text"]) == row["signature"]
    value = read(row["text"])
    if not isinstance(value, str):  # a string would be read as text again
        assert call_signature(row["name"], value) == row["signature"]


def test_vectors_are_equal_exactly_when_their_values_are() -> None:
    for one in VECTORS:
        for other in VECTORS:
            values = [canon(read(row["text"]) or {}) for row in (one, other)]
            is_equal = one["name"] == other["name"] and values[0] == values[1]
            assert (one["signature"] == other["signature"]) == is_equal, (one["id"], other["id"])


@settings(deadline=None)
@given(VALUES, VALUES)
def test_signatures_are_equal_exactly_when_arguments_are(one: Any, other: Any) -> None:
    signatures = [call_signature("tool", {"a": value}) for value in (one, other)]
    assert (signatures[0] == signatures[1]) == (canon(one) == canon(other))


@settings(deadline=None)
@given(VALUES, st.randoms())
def test_key_order_does_not_count(value: Any, random: Any) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            items = [(key, shuffled(item)) for key, item in value.items()]
            random.shuffle(items)
            return dict(items)
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    assert call_signature("tool", [value]) == call_signature("tool", [shuffled(value)])


@settings(deadline=None)
@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_json_text_has_the_signature_of_its_value(value: Any, indent: int, ascii: bool) -> None:
    text = json.dumps([value], indent=indent, ensure_ascii=ascii)
    assert call_signature("tool", text) == call_signature("tool", [value])


@settings(deadline=None)
@given(VALUES)
def test_containers_of_other_kinds_have_the_signature_of_their_content(value: Any) -> None:
    class OtherStr(str):
        pass

    class OtherInt(int):
        def __repr__(self) -> str:
            return "not a number"

    def other(value: Any) -> Any:
        if isinstance(value, dict):
            items = {OtherStr(key): other(item) for key, item in value.items()}
            return collections.OrderedDict(items)
        if isinstance(value, list):
            return tuple(other(item) for item in value)
        if isinstance(value, str):
            return OtherStr(value)
        return OtherInt(value) if type(value) is int else value

    assert call_signature("tool", [value]) == call_signature("tool", [other(value)])


def test_signature_is_32_hexadecimal_digits_that_never_change() -> None:
    signature = call_signature("search", {"query": "tea", "page": 1})
    assert signature == call_signature("search", '{"page": 1.0, "query": "tea"}')
    assert signature == "63202f58f4a75f6a5dfab1280e3ea6ee"


def test_no_arguments_are_written_in_many_ways() -> None:
    signatures = {call_signature("t", arguments) for arguments in (None, {}, "", " ", "{}", "null")}
    assert len(signatures) == 1


def test_text_that_is_no_json_is_a_string() -> None:
    assert call_signature("t", "tea") == call_signature("t", '"tea"')
    assert call_signature("t", "{'a': 1}") != call_signature("t", {"a": 1})
    assert call_signature("t", {"a": '{"b": 1}'}) != call_signature("t", {"a": {"b": 1}})


def test_keys_that_json_would_convert_are_converted() -> None:
    arguments = {7: "a", 2.5: "b", True: "c", None: "d", float("nan"): "e", float("-inf"): "f"}
    assert call_signature("t", arguments) == call_signature("t", json.dumps(arguments))
    assert call_signature("t", {1: "a", "1": "b"}) == call_signature("t", {"1": "b"})
    assert call_signature("t", {"1": "b", 1: "a"}) == call_signature("t", {"1": "a"})


def test_enums_count_as_their_values() -> None:
    class Color(enum.StrEnum):
        RED = "red"

    class Size(enum.IntEnum):
        LARGE = 3

    assert call_signature("t", {"c": Color.RED, "s": Size.LARGE}) == call_signature(
        "t", {"c": "red", "s": 3}
    )
    assert call_signature("t", {Color.RED: 1, Size.LARGE: 2}) == call_signature(
        "t", {"red": 1, "3": 2}
    )


def test_integers_are_exact_at_any_size() -> None:
    sizes = (2**53, 2**63, 2**64, 10**40, 10**5000)
    signatures = {
        call_signature("t", {"n": sign * n + d})
        for n in sizes
        for d in (-1, 0, 1)
        for sign in (1, -1)
    }
    assert len(signatures) == 30


def test_lone_surrogates_are_told_apart() -> None:
    texts = ["\ud83d", "\ude00", "\ude00\ud83d", "😀", "?", "\ufffd"]
    assert len({call_signature("t", {"s": text}) for text in texts}) == len(texts)
    assert len({call_signature("t", {text: 1}) for text in texts}) == len(texts)
    assert len({call_signature(text, {}) for text in texts}) == len(texts)
    for text in texts:
        assert call_signature("t", {"s": text}) == call_signature("t", json.dumps({"s": text}))
        assert call_signature("t", {text: 1}) == call_signature("t", json.dumps({text: 1}))


def test_values_that_are_no_json_are_named_with_their_path() -> None:
    with pytest.raises(
        TypeError, match=r'arguments\["since"\]\[1\].*date is not a JSON value.*default='
    ):
        call_signature("t", {"q": "tea", "since": [1, datetime.date(2024, 5, 1)]})
    with pytest.raises(TypeError, match=r'arguments\["a"\].*keys must be.*not tuple'):
        call_signature("t", {"a": {(1, 2): 3}})
    with pytest.raises(TypeError, match="arguments: set"):
        call_signature("t", {1, 2})
    with pytest.raises(TypeError, match="bytes"):
        call_signature("t", {"a": b"bytes"})


def test_default_converts_what_json_does_not_have() -> None:
    day = datetime.date(2024, 5, 1)
    signature = call_signature("t", {"since": day, "tags": {1}}, default=lambda value: str(value))
    assert signature == call_signature("t", {"since": "2024-05-01", "tags": "{1}"})
    assert call_signature("t", [day], default=lambda _: None) == call_signature("t", [None])
    nested = call_signature(
        "t", {"a": {1}}, default=lambda value: [day] if isinstance(value, set) else "day"
    )
    assert nested == call_signature("t", {"a": ["day"]})


def test_an_exception_of_default_comes_through() -> None:
    def refuse(value: object) -> object:
        raise LookupError(f"no {type(value).__name__}")

    with pytest.raises(LookupError, match="no set"):
        call_signature("t", {"a": {1}}, default=refuse)


def test_default_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match=r'arguments\["a"\].*default='):
        call_signature("t", {"a": object()}, default=lambda value: value)
    with pytest.raises(ValueError, match="nested deeper"):
        call_signature("t", object(), default=lambda _: [object()])


def test_default_may_sign_and_may_change_what_is_being_signed() -> None:
    arguments: dict[str, Any] = {"a": {1}, "b": [1, {2}, 3], "c": "kept"}

    def clear(value: set[int]) -> str:
        arguments.clear()
        return call_signature("inner", {"n": list(value)})

    signature = call_signature("t", arguments, default=clear)
    inner = [call_signature("inner", {"n": [n]}) for n in (1, 2)]
    assert signature == call_signature("t", {"a": inner[0], "b": [1, inner[1], 3], "c": "kept"})


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("length", [1, 2, 40, 3000])
def test_circular_arguments_are_refused(length: int, width: int) -> None:
    first: list[Any] = []
    last = first
    for _ in range(length - 1):
        last = [last]
    first.extend({"again": last} for _ in range(width))
    with pytest.raises(ValueError, match="contains itself"):
        call_signature("t", {"a": first})


def test_a_value_met_twice_is_no_circle() -> None:
    shared = [1]
    assert call_signature("t", [[shared, shared], shared]) == call_signature("t", [[[1], [1]], [1]])


def nested(depth: int) -> Any:
    value: Any = {}
    for level in range(depth - 1):
        value = {"a": value, "b": level} if level % 2 else [value]
    return value


def test_deep_arguments_are_signed_without_recursion() -> None:
    assert call_signature("t", nested(10_000)) != call_signature("t", nested(10_002))
    shallow = nested(300)
    assert call_signature("t", shallow) == call_signature("t", json.dumps(shallow))
    with pytest.raises(ValueError, match="nested deeper than 16384"):
        call_signature("t", nested(100_000))
    assert call_signature("t", "[" * 100_000 + "]" * 100_000)  # no JSON that anyone could read


def test_hostile_arguments_are_signed() -> None:
    call_signature("n" * 1_000_000, {"\x00\n\x7f": "\x1b[31m"})
    many = {f"key {index % 977}{index}": index for index in range(100_000)}
    assert call_signature("t", many) == call_signature("t", json.dumps(many))


def test_name_must_be_a_string() -> None:
    with pytest.raises(TypeError, match="str"):
        call_signature(1, {})  # type: ignore[arg-type]


def test_many_threads_sign_at_once() -> None:
    arguments = {"rows": [{"id": index, "name": f"item {index}"} for index in range(50)]}
    expected = call_signature("t", arguments)
    found: list[str] = []

    def sign() -> None:
        found.extend(call_signature("t", arguments) for _ in range(200))

    threads = [threading.Thread(target=sign) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 1600
