"""Similarity of arguments: the definition in the docstring, against a naive model of it."""

from __future__ import annotations

import datetime
import doctest
import json
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turnwarden import argument_similarity, call_signature

PROMPT = (
    "a portrait of an old fisherman in heavy rain, holding a lantern, warm light, cinematic mood, "
    "oil painting, muted colours, soft shadows, harbour in the background"
)

SHORT_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1000, 10**20)
    | st.sampled_from([0.5, 2.25, 1e-7, 1e300])
    | st.text("ab é", max_size=12),
    lambda values: (
        st.lists(values, max_size=3) | st.dictionaries(st.sampled_from("abc"), values, max_size=3)
    ),
    max_leaves=8,
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text("ab \n", min_size=100),
    lambda values: (
        st.lists(values, max_size=40) | st.dictionaries(st.text(max_size=3), values, max_size=40)
    ),
    max_leaves=50,
)


def naive_similarity(one: Any, other: Any) -> float:
    """The definition, word by word."""
    one_leaves, other_leaves = dict(leaves(one)), dict(leaves(other))
    alike = total = 0.0
    for path in one_leaves | other_leaves:
        found = [side[path] for side in (one_leaves, other_leaves) if path in side]
        weight = max(math.log2(2 + length(leaf)) for leaf in found)
        total += weight
        if len(found) == 2:
            alike += weight * leaf_similarity(*found)
    return alike / total


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Any]]:
    if value and isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif value and isinstance(value, list):
        for position, item in enumerate(value):
            yield from leaves(item, (*path, position))
    else:
        yield path, value


def length(leaf: Any) -> int:
    return len(leaf if isinstance(leaf, str) else json.dumps(leaf))


def leaf_similarity(one: Any, other: Any) -> float:
    if isinstance(one, str) and isinstance(other, str):
        total = len(one) + len(other)
        return 2 * common_subsequence(one, other) / total if total else 1.0
    return float(call_signature("", [one]) == call_signature("", [other]))


def common_subsequence(one: str, other: str) -> int:
    row = [0] * (len(other) + 1)
    for character in one:
        diagonal = 0
        for position, candidate in enumerate(other):
            above = row[position + 1]
            row[position + 1] = (
                diagonal + 1 if character == candidate else max(above, row[position])
            )
            diagonal = above
    return row[-1]


@settings(deadline=None)
@given(SHORT_VALUES, SHORT_VALUES)
def test_short_arguments_have_the_similarity_of_the_definition(one: Any, other: Any) -> None:
    found = argument_similarity({"": one}, {"": other})
    assert found == pytest.approx(naive_similarity({"": one}, {"": other}), abs=1e-9)


@settings(deadline=None)
@given(VALUES, VALUES)
def test_similarity_is_symmetric_and_from_0_to_1(one: Any, other: Any) -> None:
    found = argument_similarity([one], [other])
    assert 0 <= found <= 1
    assert found == pytest.approx(argument_similarity([other], [one]), abs=1e-12)


@settings(deadline=None)
@given(VALUES, VALUES)
def test_similarity_is_1_exactly_for_equal_arguments(one: Any, other: Any) -> None:
    assert argument_similarity([one], [one]) == 1
    is_equal = call_signature("", [one]) == call_signature("", [other])
    assert (argument_similarity([one], [other]) == 1) == is_equal


def test_prompts_one_word_apart_are_similar() -> None:
    words = PROMPT.split()
    for position in range(len(words)):
        other = " ".join([*words[:position], "children", *words[position + 1 :]])
        assert argument_similarity({"prompt": PROMPT, "n": 1}, {"prompt": other, "n": 1}) >= 0.9


def test_unlike_arguments_are_far_from_similar() -> None:
    assert argument_similarity({"a": 1}, {"b": 1}) == 0
    assert argument_similarity({"q": "weather in Oslo"}, {"q": "restaurants near me"}) < 0.5
    assert argument_similarity({"q": PROMPT * 20}, {"q": PROMPT[::-1] * 20}) < 0.6


@pytest.mark.parametrize("size", [200, 600, 1500])
@pytest.mark.parametrize("changes", [1, 3, 10])
def test_long_strings_have_about_the_similarity_of_their_characters(
    size: int, changes: int
) -> None:
    words = [f"w{index * 7919 % 9973}" for index in range(size // 6)]
    other = list(words)
    for change in range(changes):
        other[change * len(words) // changes] = "changed"
    texts = [" ".join(words), " ".join(other)]
    exact = leaf_similarity(*texts)
    assert argument_similarity(*[{"text": text} for text in texts]) == pytest.approx(
        exact, abs=0.08
    )


def test_arguments_are_read_as_for_signatures() -> None:
    assert argument_similarity(None, {}) == 1
    assert argument_similarity('{"a": 1}', {"a": 1.0}) == 1
    assert argument_similarity({"a": (1, 2)}, {"a": [1, 2]}) == 1
    assert argument_similarity({"a": True}, {"a": 1}) < 1
    with pytest.raises(TypeError, match=r'arguments\["at"\].*date'):
        argument_similarity({"at": datetime.date(2024, 5, 1)}, {})
    circular: list[Any] = []
    circular.append(circular)
    with pytest.raises(ValueError, match="contains itself"):
        argument_similarity({}, circular)


def test_hostile_arguments_are_compared() -> None:
    deep: Any = "end"
    for _ in range(10_000):
        deep = [deep]
    hostile = [
        {f"key {index}": index for index in range(100_000)},
        {"deep": deep},
        {"long": "\x00\ud800 " * 300_000},
        {"same": "a" * 1_000_000},
        [[]] * 100_000,
        "\ud83d",
        {"digits": "9" * 100_000, "number": 10**4000},
    ]
    for one, other in pairwise(hostile):
        assert 0 <= argument_similarity(one, other) < 1
        assert argument_similarity(one, one) == 1


def test_examples_of_the_docstrings_run() -> None:
    for function in (argument_similarity, call_signature):
        test = doctest.DocTestFinder().find(function, function.__name__, module=False)[0]
        assert test.examples
        assert doctest.DocTestRunner().run(test).failed == 0
