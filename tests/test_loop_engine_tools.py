"""Tools: how functions are described, how arguments are checked, what their results mean."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import json
import sys
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NewType, NotRequired, Optional, TypedDict, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from turnwarden import ToolCall, TurnwardenError, WorkflowJsonResponse
from turnwarden.engine import (
    ArgumentsError,
    StandardToolResponse,
    Tool,
    ToolDefinitionError,
    ToolExecutionResult,
    ToolExecutionStatus,
    ToolOutcome,
    normalise_result,
    tool,
)
from turnwarden.engine.docstrings import read_docstring
from turnwarden.engine.hints import HintError, HintReader, UnsupportedHintError
from turnwarden.engine.results import render_outcome


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Tree:
    value: int
    children: list[Tree] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Positive:
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("n must not be negative")


class Filters(TypedDict):
    city: str
    stars: NotRequired[int]


class Loose(TypedDict, total=False):
    a: int


UserId = NewType("UserId", int)

# ruff: noqa: E501 - rows of tables

# Hints: the type, its schema, what is converted, and what is refused

HINTS: list[tuple[Any, dict[str, Any], list[tuple[Any, Any]], list[Any]]] = [
    (str, {"type": "string"}, [("x", "x")], [1, None, ["x"]]),
    (int, {"type": "integer"}, [(3, 3), ("3", 3), (3.0, 3), (" -7 ", -7)], ["3.5", 3.5, True, "x", None, "9" * 5000]),
    (float, {"type": "number"}, [(3, 3.0), (3.5, 3.5), ("2.5", 2.5)], ["x", True, None, "nan", 10**400]),
    (bool, {"type": "boolean"}, [(True, True), ("true", True), ("False", False)], [1, 0, "yes", None]),
    (None, {"type": "null"}, [(None, None)], [0, ""]),
    (Any, {}, [(1, 1), ([None], [None])], []),
    (object, {}, [({"x": 1}, {"x": 1})], []),
    (UserId, {"type": "integer"}, [("3", 3)], ["x"]),
    (list, {"type": "array", "items": {}}, [([1, "x"], [1, "x"])], ["x", {}]),
    (list[int], {"type": "array", "items": {"type": "integer"}}, [([1, "2"], [1, 2])], [[1, "x"], 3]),
    (Sequence[str], {"type": "array", "items": {"type": "string"}}, [(["a"], ["a"])], ["a"]),
    (Iterable[int], {"type": "array", "items": {"type": "integer"}}, [([1], [1])], [1]),
    (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, [([1, 1], {1})], [3]),
    (set[Any], {"type": "array", "items": {}, "uniqueItems": True}, [([1], {1})], [[{}]]),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [([1, 2], (1, 2))], ["x"]),
    (
        tuple[int, str],
        {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [{"type": "integer"}, {"type": "string"}]},
        [([1, "x"], (1, "x"))],
        [[1], [1, "x", 2], ["x", "x"], 3],
    ),
    (dict, {"type": "object", "additionalProperties": True}, [({"a": 1}, {"a": 1})], [[], "x"]),
    (
        dict[str, int],
        {"type": "object", "additionalProperties": {"type": "integer"}},
        [({"a": "1"}, {"a": 1})],
        [{"a": "x"}, []],
    ),
    (dict[int, str], {"type": "object", "additionalProperties": {"type": "string"}}, [({"1": "x"}, {1: "x"})], [{"a": "x"}]),
    (Mapping[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}, [({}, {})], [3]),
    (Literal["a", 2], {"enum": ["a", 2]}, [("a", "a"), (2, 2)], ["b", "2", True]),
    (Literal[1], {"type": "integer", "enum": [1]}, [(1, 1)], [True, "1"]),
    (Colour, {"type": "string", "enum": ["red", "blue"]}, [("red", Colour.RED)], ["green", "RED", None]),
    (Level, {"type": "integer", "enum": [1, 2]}, [(2, Level.HIGH)], [3, True]),
    (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}, [(None, None), ("3", 3)], ["x"]),  # noqa: UP045
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}, [("3", "3"), (3, 3)], [None]),  # noqa: UP007
    (int | list[int], {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}, [([1], [1]), ("2", 2)], [["x"]]),
    (Annotated[int, "how many"], {"type": "integer", "description": "how many"}, [("3", 3)], ["x"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("hint", "schema", "converted", "refused"), HINTS, ids=[str(row[0]) for row in HINTS]
)
def test_hint(hint: Any, schema: Any, converted: list[Any], refused: list[Any]) -> None:
    known = HintReader().read(hint)
    assert known.schema == schema
    for value, expected in converted:
        found = known.convert(value)
        assert found == expected
        assert type(found) is type(expected)
    for value in refused:
        with pytest.raises(HintError):
            known.convert(value)


def test_dataclass_becomes_an_object() -> None:
    reader = HintReader()
    known = reader.read(Point)
    assert known.schema == {"$ref": "#/$defs/Point"}
    assert reader.definitions["Point"] == {
        "type": "object",
        "title": "Point",
        "properties": {
            "x": {"type": "integer"},
            "y": {"type": "integer", "default": 0},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["x"],
        "additionalProperties": False,
    }
    assert known.convert({"x": "1", "tags": ["a"]}) == Point(1, 0, ["a"])
    assert known.convert(Point(3)) == Point(3)
    for value, path in [({}, ".x"), ({"x": "q"}, ".x"), ({"x": 1, "z": 2}, ".z"), ({"x": 1, "tags": [1]}, ".tags[0]")]:  # fmt: skip
        with pytest.raises(HintError) as caught:
            known.convert(value)
        assert caught.value.path == path


def test_what_a_dataclass_refuses_itself_is_told() -> None:
    with pytest.raises(HintError, match="must not be negative"):
        HintReader().read(Positive).convert({"n": -1})


def test_type_that_refers_to_itself_is_a_definition() -> None:
    reader = HintReader()
    known = reader.read(list[Tree])
    assert known.schema == {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
    children = reader.definitions["Tree"]["properties"]["children"]
    assert children == {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
    (tree,) = known.convert([{"value": 1, "children": [{"value": "2"}]}])
    assert tree == Tree(1, [Tree(2)])


def test_typed_dict_becomes_an_object() -> None:
    reader = HintReader()
    known = reader.read(Filters)
    assert reader.definitions["Filters"]["required"] == ["city"]
    assert known.convert({"city": "Oslo", "stars": "3"}) == {"city": "Oslo", "stars": 3}
    with pytest.raises(HintError, match="city: is missing"):
        known.convert({"stars": 3})
    assert HintReader().read(Loose).convert({}) == {}


def test_union_takes_the_member_that_fits_as_it_is() -> None:
    known = HintReader().read(int | str | Point | list[Point] | None)
    assert known.convert("7") == "7"
    assert known.convert({"x": 1}) == Point(1)
    assert known.convert([{"x": 1}]) == [Point(1)]
    assert known.convert(None) is None
    with pytest.raises(HintError, match="expected an integer or a string"):
        HintReader().read(int | str).convert([])
    with pytest.raises(HintError) as caught:
        HintReader().read(int | Point).convert({"x": "q"})
    assert caught.value.path == ".x"


def test_two_types_of_one_name_are_told_apart() -> None:
    def other() -> type:
        @dataclasses.dataclass
        class Point:
            z: int

        return Point

    reader = HintReader()
    first, second = reader.read(Point), reader.read(other())
    assert first.schema != second.schema
    assert set(reader.definitions) == {"Point", "Point2"}


def test_unknown_hints_are_refused_by_name() -> None:
    for hint in (complex, bytes, Callable[[int], int], typing.Generic):
        with pytest.raises(UnsupportedHintError):
            HintReader().read(hint)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_converting_either_fits_or_says_where(value: Any) -> None:
    for hint, *_ in HINTS:
        known = HintReader().read(hint)
        try:
            known.convert(value)
        except HintError:
            assert not known.accepts(value) or hint == set[Any]  # what has no hash


# Descriptions

DOCSTRINGS = [
    """Book a table.

    Takes a moment.

    Args:
        city: Where. On
            two lines.
        seats (int): How many.
        **more: The rest.

    Returns:
        Whether: it worked.
    """,
    """Book a table.

    Takes a moment.

    Parameters
    ----------
    city : str
        Where. On
        two lines.
    seats
        How many.
    **more
        The rest.

    Returns
    -------
    bool
        Whether: it worked.
    """,
    """Book a table.

    Takes a moment.

    :param city: Where. On
        two lines.
    :param int seats: How many.
    :param more: The rest.
    :returns: Whether: it worked.
    """,
]


@pytest.mark.parametrize("text", DOCSTRINGS, ids=["google", "numpy", "sphinx"])
def test_docstring_styles_say_the_same(text: str) -> None:
    assert read_docstring(text) == (
        "Book a table.\n\nTakes a moment.",
        {"city": "Where. On two lines.", "seats": "How many.", "more": "The rest."},
    )


@pytest.mark.parametrize(
    "text", ["", "Only text.", "Args:", "Note: this is text\nArgs: so is this"]
)
def test_docstring_without_sections_is_all_text(text: str) -> None:
    summary, documented = read_docstring(text)
    assert summary == ("" if text == "Args:" else text)
    assert documented == {}


@given(st.text())
def test_any_docstring_is_read(text: str) -> None:
    read_docstring(text)


def book(
    city: str, seats: Annotated[int, "How many."] = 2, /, *, colour: Colour = Colour.RED
) -> str:
    """Book a table.

    Args:
        city: Where.
        seats: Not this.
        colour: Of the cloth.
    """
    return f"{city} {seats} {colour.value}"


@pytest.fixture(params=["pydantic", "standard library"])
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to a schema."""
    if request.param == "pydantic":
        pytest.importorskip("pydantic")
    else:
        monkeypatch.setitem(sys.modules, "pydantic", None)
    return request.param


def test_function_is_described_by_signature_and_docstring(source: str) -> None:
    made = Tool(book)
    assert (made.name, made.description) == ("book", "Book a table.")
    properties = made.parameters["properties"]
    assert properties["city"] == {"type": "string", "description": "Where."}
    assert properties["seats"] == {"type": "integer", "description": "How many.", "default": 2}
    assert properties["colour"]["description"] == "Of the cloth."
    assert properties["colour"]["default"] == "red"
    assert made.parameters["required"] == ["city"]
    assert made.parameters["additionalProperties"] is False
    assert json.dumps(made.to_openai())
    assert made.to_openai()["function"]["parameters"] is made.parameters
    assert made.to_anthropic()["input_schema"] is made.parameters


def test_arguments_are_brought_to_the_hints(source: str) -> None:
    made = Tool(book)
    positional, keywords = made.bind({"city": "Oslo", "seats": "3", "colour": "blue"})
    assert (positional, keywords) == (["Oslo", 3], {"colour": Colour.BLUE})
    assert made(*positional, **keywords) == "Oslo 3 blue"
    positional, keywords = made.bind({"city": "Oslo"})
    assert made(*positional, **keywords) == "Oslo 2 red"


def test_every_problem_is_listed(source: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        Tool(book).bind({"seats": "x", "colour": "green", "table": 3})
    names = [problem.split(":")[0] for problem in caught.value.problems]
    assert names == ["city", "seats", "colour", "table"]
    assert str(caught.value).startswith("the arguments of book do not fit: city: is missing; ")
    assert isinstance(caught.value, TurnwardenError)
    assert isinstance(caught.value, ValueError)


def test_nested_types_are_described_and_built(source: str) -> None:
    def draw(points: list[Point], tree: Tree | None = None) -> None: ...

    made = Tool(draw)
    assert json.dumps(made.parameters)
    assert set(made.parameters["$defs"]) == {"Point", "Tree"}
    _, keywords = made.bind(
        {"points": [{"x": 1}], "tree": {"value": 1, "children": [{"value": 2}]}}
    )
    assert keywords == {"points": [Point(1)], "tree": Tree(1, [Tree(2)])}
    with pytest.raises(ArgumentsError) as caught:
        made.bind({"points": [{"x": 1}, {"x": "q"}]})
    assert caught.value.problems[0].startswith("points[1].x: ")


def test_typed_dict_is_read_either_way(source: str) -> None:
    def search(filters: Filters) -> None: ...

    assert Tool(search).bind({"filters": {"city": "Oslo"}})[1] == {"filters": {"city": "Oslo"}}


def test_pydantic_takes_what_the_standard_library_does_not() -> None:
    pytest.importorskip("pydantic")

    def remind(on: datetime.date) -> None: ...

    assert Tool(remind).parameters["properties"]["on"]["format"] == "date"
    assert Tool(remind).bind({"on": "2026-01-31"})[1] == {"on": datetime.date(2026, 1, 31)}


def test_unknown_types_are_refused_with_a_remedy(source: str) -> None:
    class Odd:
        pass

    def use(odd: Odd) -> None: ...

    use.__annotations__ = {"odd": Odd}
    with pytest.raises(ToolDefinitionError, match=r"use cannot be described.*parameters="):
        Tool(use)


def test_deep_arguments_are_refused_not_overflowed(source: str) -> None:
    def draw(tree: Tree) -> None: ...

    deep: dict[str, Any] = {"value": 1}
    for _ in range(20_000):
        deep = {"value": 1, "children": [deep]}
    with pytest.raises(ArgumentsError):
        Tool(draw).bind({"tree": deep})


@dataclasses.dataclass
class Picky:
    n: int

    def __post_init__(self) -> None:
        raise ZeroDivisionError("picky")


def test_whatever_a_type_raises_is_a_problem(source: str) -> None:
    def use(picky: Picky) -> None: ...

    with pytest.raises(ArgumentsError, match="picky"):
        Tool(use).bind({"picky": {"n": 1}})


def test_function_without_hints_takes_anything(source: str) -> None:
    def free(a, b=3, *rest, **more):  # type: ignore[no-untyped-def]
        return a, b, more

    made = Tool(free)
    assert made.parameters["required"] == ["a"]
    assert "additionalProperties" not in made.parameters
    positional, keywords = made.bind({"a": [1], "c": 4})
    assert made(*positional, **keywords) == ([1], 3, {"c": 4})


def test_methods_partials_and_objects_are_tools() -> None:
    class Shop:
        def buy(self, item: str) -> str:
            """Buy something."""
            return item

        async def __call__(self, item: str) -> str:
            return item

    shop = Shop()
    assert Tool(shop.buy).parameters["required"] == ["item"]
    assert Tool(shop.buy).description == "Buy something."
    assert Tool(shop, name="shop").is_async
    assert Tool(shop, name="shop").bind({"item": "x"})[1] == {"item": "x"}
    partial = Tool(functools.partial(book, "Oslo"))
    assert partial.name == "book"
    assert partial.parameters["required"] == []


def test_decorator_keeps_the_function_callable() -> None:
    @tool
    def one(n: int) -> int:
        """One."""
        return n

    @tool(name="second", description="Two.", timeout=3, thread=True)
    def two(n: int) -> int:
        return n

    assert (one(3), one.name, one.description) == (3, "one", "One.")
    assert (two(3), two.name, two.description, two.timeout, two.thread) == (3, "second", "Two.", 3, True)  # fmt: skip
    assert repr(two) == "<Tool second>"
    assert one.__doc__ == "One."


def test_schema_of_ones_own_replaces_the_hints() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    made = Tool(lambda **given: given, name="remote", parameters=schema)
    assert made.parameters == schema
    assert made.bind({"x": "as is", "y": 1})[1] == {"x": "as is", "y": 1}
    with pytest.raises(ArgumentsError, match="x: is missing"):
        made.bind({})


def bad_generator() -> Any:
    yield 1


async def bad_async_generator() -> Any:
    yield 1


async def bad_thread() -> None: ...


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (lambda: 1, {}, "lambda"),
        (3, {}, "callable"),
        (bad_generator, {}, "generator"),
        (bad_async_generator, {}, "generator"),
        (bad_thread, {"thread": True}, "needs no thread"),
        (book, {"name": ""}, "no name"),
        (book, {"name": "a b"}, "no name"),
        (book, {"timeout": 0}, "above 0"),
    ],
)
def test_what_cannot_be_a_tool_is_refused(function: Any, options: Any, message: str) -> None:
    with pytest.raises(ToolDefinitionError, match=message):
        Tool(function, **options)


def test_unresolvable_hint_is_refused() -> None:
    def use(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ToolDefinitionError, match="use cannot be resolved"):
        Tool(use)


# Results

NEXT = {"content": "", "next": [{"mcp": "b", "args": {}}]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ToolExecutionResult(True, 1), {"success": True, "data": 1}),
        ({"success": True, "data": 1}, {"success": True, "data": 1}),
        ({"success": False, "error": "x"}, {"success": False, "error": "x", "status": "failed"}),
        ({"success": False}, {"success": False, "error": "the tool reported a failure"}),
        ({"success": True, "context": {"k": 1}}, {"context": {"k": 1}}),
        (
            {"success": False, "error": "x", "data": 3, "context": {"k": 1}},
            {"data": 3, "error": "x", "context": {"k": 1}},
        ),
        ({"success": False, "error": "x", "nextWorkflow": NEXT}, {"next_workflow": None}),
        (
            StandardToolResponse("partial", "half", data=1, next_step_hint="go"),
            {"success": True, "status": "partial", "data": 1, "message": "half", "next_step_hint": "go"},
        ),
        ({"status": "failed", "message": "no"}, {"success": False, "error": "no"}),
        ({"status": "continue", "message": ""}, {"success": True, "status": "continue"}),
        ({"status": "needs_input", "message": "?"}, {"status": "needs_input", "message": "?"}),
        (
            {
                "status": "completed", "message": "m", "shouldTerminate": True,
                "terminationReason": "r", "nextStepHint": "h",
            },
            {"should_terminate": True, "termination_reason": "r", "next_step_hint": "h"},
        ),
        (
            {"status": "completed", "message": "m", "should_terminate": True},
            {"should_terminate": True},
        ),
    ],
)  # fmt: skip
def test_results_are_brought_into_one_form(value: Any, expected: dict[str, Any]) -> None:
    outcome = normalise_result(value)
    assert {key: getattr(outcome, key) for key in expected} == expected
    assert normalise_result(outcome) is outcome


@pytest.mark.parametrize(
    "value",
    [
        None, 1, "text", [1], (1,), object(),
        {}, {"a": 1},
        {"success": "yes", "data": 1},
        {"success": True, "rows": 5},
        {"success": True, "error": 5},
        {"success": True, "context": "text"},
        {"status": "open", "message": "m"},
        {"status": "completed"},
        {"status": "completed", "order": 7},
        {"status": "completed", "message": 3},
        {"content": "page", "next": "cursor"},
        {"content": 3, "next": []},
        {"content": "page", "next": [1]},
        {"next": [{"mcp": "a"}]},
    ],
)  # fmt: skip
def test_any_other_value_is_data(value: Any) -> None:
    assert normalise_result(value) == ToolOutcome(True, data=value)


@pytest.mark.parametrize(
    "value",
    [
        WorkflowJsonResponse("hm", [ToolCall("b", {})]),
        {"content": "hm", "next": [{"mcp": "b", "args": {}}]},
        {"content": "hm", "next": [{"name": "b"}], "more": 1},
        {"content": "hm", "next": (ToolCall("b", {}),)},
        {"success": True, "next_workflow": NEXT},
        {"success": True, "nextWorkflow": {"next": [{"mcp": "b"}]}},
    ],
)
def test_next_workflow_is_found(value: Any) -> None:
    outcome = normalise_result(value)
    assert outcome.next_workflow is not None
    assert [call.name for call in outcome.next_workflow.next] == ["b"]
    assert outcome.success
    if "success" not in (value if isinstance(value, dict) else {}):
        assert outcome.data is value


@pytest.mark.parametrize(
    "bad", [{"next": [{}]}, {"next": [{"mcp": "a", "args": [1]}]}, {"next": 3}]
)
def test_unreadable_next_workflow_is_a_failure_with_its_data(bad: Any) -> None:
    outcome = normalise_result({"success": True, "data": 1, "next_workflow": bad})
    assert (outcome.success, outcome.data) == (False, 1)
    assert outcome.error is not None
    assert outcome.error.startswith("its next workflow cannot be read: ")


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: ToolExecutionResult("yes"), TypeError),
        (lambda: ToolExecutionResult(True, error=3), TypeError),
        (lambda: ToolExecutionResult(True, context=[1]), TypeError),
        (lambda: ToolExecutionResult(True, next_workflow="x"), TypeError),
        (lambda: StandardToolResponse("done", "x"), ValueError),
        (lambda: StandardToolResponse("completed", 3), TypeError),
        (lambda: StandardToolResponse("completed", "x", should_terminate=1), TypeError),
        (lambda: StandardToolResponse("completed", "x", next_step_hint=1), TypeError),
    ],
)
def test_wrong_results_are_refused_where_they_are_made(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_results_are_plain_data() -> None:
    response = StandardToolResponse("partial", "m", data=1)
    assert json.loads(json.dumps(response.to_dict()))["status"] == "partial"
    assert ToolExecutionResult(True, 1).to_dict()["data"] == 1
    assert [status.value for status in ToolExecutionStatus] == [
        "completed", "continue", "failed", "needs_input", "partial"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        ({"ö": [1, None]}, '{"ö": [1, null]}'),
        (None, "null"),
        (Point(1), '{"x": 1, "y": 0, "tags": []}'),
        ({"success": False, "error": "x"}, "Error: x"),
        ({"success": False, "error": "x", "data": 1}, 'Error: {"error": "x", "data": 1}'),
        ({"status": "completed", "message": "done"}, "done"),
        ({"status": "partial", "message": "half"}, "partial: half"),
        (
            {"status": "completed", "message": "done", "data": 1},
            '{"status": "completed", "message": "done", "data": 1}',
        ),
        ({"success": True}, "null"),
    ],
)
def test_model_reads_results_as_text(value: Any, text: str) -> None:
    assert render_outcome(normalise_result(value)) == text
