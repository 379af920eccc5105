"""A format of the user's own: one declaration, and everything that holds for the others holds."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import turnwarden
import vectors_runner as vectors
from hypothesis import given
from hypothesis import strategies as st
from turnwarden import ConfigurationError, Format, ResponseParser, WrongTypeError

# The declaration, as CONTRIBUTING.md describes it.
ACME = Format(
    "acme",
    models=["Acme Anvil"],
    example='Ok. <anvil:call>@search<anvil:with>{"q": "x"}</anvil:call>',
    syntaxes=[
        {
            "open": "<anvil:call>",
            "close": "</anvil:call>",
            "calls": {"named": {"prefix": "@", "parts": [["<anvil:with>", "arguments"]]}},
        }
    ],
    reasoning=[("<anvil:musing>", "</anvil:musing>")],
    end_of_turn=["<anvil:over>"],
)

# Its vectors: the text, the calls, the text that is left, the reasoning.
VECTORS: list[tuple[str, list[tuple[str, dict[str, Any]]], str, str | None]] = [
    (ACME.example, [("search", {"q": "x"})], "Ok.", None),
    ("No call at all.<anvil:over>", [], "No call at all.", None),
    (
        "<anvil:musing>hm</anvil:musing>A<anvil:call>@a<anvil:with>{}</anvil:call>\n"
        '<anvil:call>@b<anvil:with>{"n": {"m": [1, 2]}}</anvil:call>B<anvil:over>',
        [("a", {}), ("b", {"n": {"m": [1, 2]}})],
        "A\nB",
        "hm",
    ),
    (
        '<anvil:call>@f<anvil:with>{"s": "</anvil:call> and {"}</anvil:call>',
        [("f", {"s": "</anvil:call> and {"})],
        "",
        None,
    ),
    # Healed: a comma too many, single quotes, a brace that is missing.
    ("<anvil:call>@f<anvil:with>{'s': 'é', }</anvil:call>", [("f", {"s": "é"})], "", None),
    ('<anvil:call>@f<anvil:with>{"s": {"t": 1}</anvil:call>', [("f", {"s": {"t": 1}})], "", None),
]

each_vector = pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))


def acme(**options: Any) -> ResponseParser:
    return ResponseParser(["fence_json", ACME], **options)


@each_vector
def test_replies_are_read_whole_and_at_every_split(vector: tuple[Any, ...]) -> None:
    text, calls, rest, reasoning = vector
    reply = acme().parse(text)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == calls
    assert "".join(reply.text.split()) == "".join(rest.split())
    assert reply.reasoning == reasoning
    assert reply.format == ("acme" if calls else None)
    for at in range(len(text) + 1):
        assert vectors.streamed(acme(), [text[:at], text[at:]]) == reply
    assert vectors.streamed(acme(), list(text)) == reply


# Marks around the words of markers, also such as no built-in format has.
STYLES = ["<{}>", "<{}:", "[{}]", "<|{}|>", "⟦{}⟧", "@@{};", "§{}§", "%{}%", "{}!!", "$({})",
          "\\{}.", "🛠{}🛠", "{}=>", "A_LONG_WORD_BEFORE_{}<", "{{{{{}"]  # fmt: skip
SYNTAXES = ["json", "named", "inline", "attributes", "key_value"]


def declared(style: str, kind: str) -> tuple[Format, str]:
    """Give a format whose markers are all of one style, and two calls as it writes them."""

    def mark(word: str) -> str:
        return style.format(word)

    arguments = '{"q": "a b", "n": 3}'
    match kind:
        case "json":
            calls: Any = {"json": {}}
            text = f'{{"name": "f", "arguments": {arguments}}}{{"name": "g", "arguments": {{}}}}'
        case "named":
            calls = {"named": {"open": mark("one"), "close": mark("done"),
                               "parts": [[mark("with"), "arguments"]]}}  # fmt: skip
            text = f"{mark('one')}f{mark('with')}{arguments}{mark('done')}"
            text += f"{mark('one')}g{mark('with')}{{}}{mark('done')}"
        case "key_value":
            calls = {"key_value": {"open": mark("one"), "close": mark("done"),
                                   "name_end": mark("with"),
                                   "key": [mark("key"), mark("yek")],
                                   "value": [mark("val"), mark("lav")]}}  # fmt: skip
            text = f"{mark('one')}f{mark('with')}"
            for key, value in (("q", "a b"), ("n", "3")):
                text += f"{mark('key')}{key}{mark('yek')}{mark('val')}{value}{mark('lav')}"
            text += f"{mark('done')}{mark('one')}g{mark('with')}{mark('done')}"
        case _:
            inline = kind == "inline"
            name: Any = "inline" if inline else {"attribute": {"names": ["id"]}}
            call = {"open": mark("one"), "name": name, "end": "|", "close": mark("done")}
            argument = {"open": mark("arg"), "name": name, "end": "|", "close": mark("end")}
            calls = {"tagged": {"call": call, "argument": {"keyed": argument}}}
            naming = "{}|" if inline else ' id="{}"|'
            text = f"{mark('one')}{naming.format('f')}"
            for key, value in (("q", "a b"), ("n", "3")):
                text += f"{mark('arg')}{naming.format(key)}{value}{mark('end')}"
            text += f"{mark('done')}{mark('one')}{naming.format('g')}{mark('done')}"
    syntax = {"open": mark("begin"), "close": mark("over"), "calls": calls}
    return Format("styled", [syntax]), f"{mark('begin')}{text}{mark('over')}"


@pytest.mark.parametrize("kind", SYNTAXES)
@pytest.mark.parametrize("style", STYLES)
def test_markers_may_be_any_text(style: str, kind: str) -> None:
    format, text = declared(style, kind)
    if kind == "attributes" and style in ("<{}>", "[{}]", "<|{}|>", "$({})", "⟦{}⟧"):
        pytest.skip("a tag that is closed has no attributes")
    parser = ResponseParser([format])
    reply = parser.parse(f"Well. {text} Then.")
    calls = [(call.name, call.arguments) for call in reply.tool_calls]
    assert calls == [("f", {"q": "a b", "n": 3}), ("g", {})]
    assert (reply.text, reply.faults) == ("Well.  Then.", ())
    assert vectors.streamed(parser, list(f"Well. {text} Then.")) == reply


def test_it_is_detected_among_all_others() -> None:
    every = ResponseParser([*turnwarden.formats(), ACME])
    for text, calls, _, _ in VECTORS:
        reply = every.parse(text)
        assert [(call.name, call.arguments) for call in reply.tool_calls] == calls


def test_types_come_from_schemas() -> None:
    tools = vectors.tool_definitions({"f": {"n": "integer", "s": "string"}})
    text = '<anvil:call>@F<anvil:with>{"n": "3", "s": 4}</anvil:call>'
    call = acme(tools=tools).parse(text).tool_calls[0]
    assert (call.name, call.arguments) == ("f", {"n": 3, "s": "4"})


def test_what_is_only_shown_is_no_call() -> None:
    for shown in (
        f"Write `{ACME.example}`.",
        f"~~~text\n{ACME.example}\n~~~\n",
        f"<anvil:musing>{ACME.example}</anvil:musing>done",
    ):
        assert acme().parse(shown).tool_calls == ()


def test_a_call_that_is_cut_off_is_incomplete() -> None:
    reply = acme().parse('<anvil:call>@f<anvil:with>{"q": "x')
    assert reply.tool_calls == ()
    assert [(c.name, c.arguments) for c in reply.incomplete_calls] == [("f", {"q": "x"})]


def test_a_template_may_open_the_reasoning() -> None:
    data = {**ACME.to_dict(), "reasoning_open": True}
    parser = ResponseParser([Format.from_dict(data)])
    assert parser.reasoning_open
    reply = parser.parse("hm</anvil:musing>Hello.")
    assert (reply.reasoning, reply.text) == ("hm", "Hello.")
    assert not ResponseParser([Format.from_dict(data)], reasoning_open=False).reasoning_open


def test_a_parser_pickles_with_its_own_formats() -> None:
    parser = acme(max_calls=3)
    again = pickle.loads(pickle.dumps(parser))
    assert again == parser
    assert hash(again) == hash(parser)
    assert again.formats == ("fence_json", "acme")
    assert again.parse(ACME.example) == parser.parse(ACME.example)
    other = Format.from_dict({**ACME.to_dict(), "end_of_turn": []})
    assert ResponseParser(["fence_json", other], max_calls=3) != parser


@pytest.mark.parametrize("formats", [["hermes", "hermes"], [ACME, ACME], ["acme", ACME]])
def test_two_formats_with_one_label_are_refused(formats: list[Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"two formats are named|acme"):
        ResponseParser(formats)


def test_a_format_may_take_the_place_of_one_that_is_built_in() -> None:
    mine = Format("hermes", [{"open": "<my>", "close": "</my>", "calls": {"json": {}}}])
    parser = ResponseParser([mine])
    assert parser.parse('<my>{"name": "f", "arguments": {}}</my>').tool_calls[0].name == "f"
    assert not parser.parse('<tool_call>{"name": "f", "arguments": {}}</tool_call>').tool_calls


JSON_CALLS: dict[str, Any] = {"open": "<a>", "close": "</a>", "calls": {"json": {}}}


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({}, "label"),
        ({"label": "a"}, "syntaxes"),
        ({"label": "a", "syntaxes": []}, "syntaxes"),
        ({"label": "", "syntaxes": [JSON_CALLS]}, "label"),
        ({"label": 3, "syntaxes": [JSON_CALLS]}, "label"),
        ({"label": "a", "syntaxes": [JSON_CALLS], "colour": "red"}, "colour"),
        ({"label": "a", "syntaxes": [{"calls": {"json": {}}}]}, r"syntaxes\[0\].*open"),
        ({"label": "a", "syntaxes": [{**JSON_CALLS, "fence": "x"}]}, r"syntaxes\[0\].*fence"),
        ({"label": "a", "syntaxes": [{**JSON_CALLS, "open": [" "]}]}, r"syntaxes\[0\].open\[0\]"),
        ({"label": "a", "syntaxes": [{**JSON_CALLS, "open": "```x"}]}, r"open\[0\].*fence"),
        ({"label": "a", "syntaxes": [{**JSON_CALLS, "calls": "jsonn"}]}, r"syntaxes\[0\].calls"),
        ({"label": "a", "syntaxes": [{**JSON_CALLS, "calls": "workflow"}]}, "whole"),
        (
            {"label": "a", "syntaxes": [{**JSON_CALLS, "calls": {"json": {"name": []}}}]},
            r"syntaxes\[0\].calls.json.name",
        ),
        (
            {"label": "a", "syntaxes": [{"whole": True, "calls": {"json": {}}}]},
            r"syntaxes\[0\].calls.json.explicit",
        ),
        (
            {"label": "a", "syntaxes": [JSON_CALLS], "reasoning": [["<t>", "<t>"]]},
            r"reasoning\[0\]",
        ),
        ({"label": "a", "syntaxes": [JSON_CALLS], "reasoning": [["<t>"]]}, r"reasoning\[0\]"),
        ({"label": "a", "syntaxes": [JSON_CALLS], "end_of_turn": [""]}, r"end_of_turn\[0\]"),
    ],
)
def test_an_error_names_the_field(data: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationError, match=field):
        Format.from_dict(data)


def test_what_json_does_not_know_is_a_type_error() -> None:
    with pytest.raises(WrongTypeError):
        Format("a", [{**JSON_CALLS, "open": {"<a>"}}])
    with pytest.raises(WrongTypeError):
        ResponseParser([3])  # type: ignore[list-item]


@pytest.mark.parametrize("wrong", [None, 3, "{}", b"{}", ["label"], object()])
def test_what_is_no_mapping_is_a_type_error_that_names_both(wrong: Any) -> None:
    found = type(wrong).__name__
    with pytest.raises(WrongTypeError, match=f"data must be a mapping, not {found}"):
        Format.from_dict(wrong)


@pytest.mark.parametrize(
    "change",
    [
        {"syntaxes": 3},
        {"syntaxes": {}},
        {"syntaxes": [None]},
        {"syntaxes": [{**JSON_CALLS, "calls": "json"}]},
        {"syntaxes": [{**JSON_CALLS, "calls": {"json": 3}}]},
        {"syntaxes": [{**JSON_CALLS, "calls": {"workflow": {}}}]},
        {"syntaxes": [{**JSON_CALLS, "calls": 3}]},
        {"reasoning": {}},
        {"reasoning": [3]},
        {"wrappers": [["<a>"]]},
        {"models": [3]},
    ],
)
def test_an_error_speaks_of_labels_fields_and_data_only(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f'format "a": {next(iter(change))}') as raised:
        Format.from_dict({"label": "a", "syntaxes": [JSON_CALLS]} | change)
    for word in ("struct", "tuple", "sequence", "variant", "map,", "Data", "expected value"):
        assert word not in str(raised.value)


def test_lone_surrogates_in_labels_are_replaced() -> None:
    format = Format("a\ud800", [JSON_CALLS], example="\ud800")
    assert (format.label, format.example) == ("a\ufffd", "\ufffd")
    with pytest.raises(ConfigurationError, match="no format is called"):
        ResponseParser(["\ud800"])
    with pytest.raises(turnwarden.UnknownModelError):
        ResponseParser.for_model("\ud800")


@pytest.mark.parametrize("wrong", [None, 3, "search", b"x", ["search"], ("search",)])
def test_a_tool_definition_is_a_mapping_or_an_object(wrong: Any) -> None:
    with pytest.raises(WrongTypeError, match=r"tools\[0\] must be"):
        ResponseParser(tools=[wrong])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["label", "syntaxes", "open", "close", "calls", "json", "tagged", "name"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_data_is_a_format_or_a_clear_error(data: Any) -> None:
    try:
        format = Format.from_dict(data)
    except (ConfigurationError, WrongTypeError):
        return
    assert Format.from_dict(format.to_dict()) == format
