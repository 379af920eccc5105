"""Response templates are read as formats, and read replies as the built-in formats do."""

from __future__ import annotations

import json
from typing import Any

import pytest
import vectors_runner as vectors
from turnwarden import ConfigurationError, Format, ResponseParser, WrongTypeError

FUNCTION = {"type": "function", "function": "{content}"}
NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
THINK = {"open": "<think>", "close": "</think>", "content": "text"}


def template(calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A response template in which calls may repeat."""
    return {
        "defaults": {"role": "assistant"},
        "start_anchor": "<assistant>",
        "fields": {**fields, "tool_calls": {"repeats": True, **calls}},
    }


# What the tokenizers of these families could carry. The label is that of the built-in format.
TEMPLATES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen3": (
        "hermes",
        template(
            {
                "open": "<tool_call>",
                "close": "</tool_call>",
                "content": "json",
                "transform": FUNCTION,
            },
            thinking=THINK,
            content={"close_pattern": r"(?:<\|im_end\|>|$)"},
        ),
    ),
    "smollm": (
        "hermes",
        template(
            {
                "open_pattern": r"<tool_call>\s*",
                "close_pattern": r"\s*</tool_call>",
                "content": "json",
                "transform": {"type": "function", "function": "{content}"},
            },
            thinking={"open_pattern": r"(?:<think>\n?)", "close_pattern": r"\n?</think>\s*"},
            content={"close": "<|im_end|>", "content": "text"},
        ),
    ),
    "qwen3_coder": (
        "qwen3_coder",
        template(
            {
                "open_pattern": r"<tool_call>\s*<function=(?P<name>[^>\s]+)>",
                "close": "</tool_call>",
                "content": "xml-inline",
                "content_args": {
                    "tag_pattern": (r"<parameter=(?P<key>\w+)>\s*(?P<value>.*?)\s*</parameter>"),
                    "value_parser": {"name": "json", "args": {"allow_non_json": True}},
                },
                "transform": NAMED,
            },
            thinking=THINK,
        ),
    ),
    "cohere": (
        "cohere_command",
        template(
            {
                "open": "<|START_ACTION|>",
                "close_pattern": r"(?:<\|END_ACTION\|>|$)",
                "repeats": False,
                "content": "json",
                "transform_each": True,
                "transform": {
                    "type": "function",
                    "id": "{tool_call_id}",
                    "function": {"name": "{tool_name}", "arguments": "{parameters}"},
                },
            },
            thinking={"open": "<|START_THINKING|>", "close": "<|END_THINKING|>"},
            content={"open": "<|START_RESPONSE|>", "close": "<|END_RESPONSE|>"},
        ),
    ),
    "harmony": (
        "harmony",
        template(
            {
                "open_pattern": (
                    r"<\|channel\|>commentary to=functions\.(?P<name>\w+).*?<\|message\|>"
                ),
                "close": "<|call|>",
                "content": "json",
                "transform": NAMED,
            },
            thinking={"open": "<|channel|>analysis<|message|>", "close": "<|end|>"},
            content={"open": "<|channel|>final<|message|>", "close": ["<|end|>", "<|return|>"]},
        ),
    ),
    "gemma4": (
        "gemma4",
        template(
            {
                "open_pattern": r"<\|tool_call>call:(?P<name>\w+)",
                "close": "<tool_call|>",
                "content": "json",
                "content_args": {
                    "unquoted_keys": True,
                    "string_delims": [['<|"|>', '<|"|>']],
                },
                "transform": NAMED,
            },
            thinking={"open": "<|channel>thought\n", "close": "<channel|>"},
        ),
    ),
    "ernie": (
        "ernie45",
        template(
            {
                "open": "<tool_call>",
                "close": "</tool_call>",
                "content": "json",
                "transform": FUNCTION,
            },
            reasoning_content={"open_pattern": r"(?:^|<think>\s*)", "close": "</think>"},
            content={"open": "<response>\n", "close_pattern": r"\n?</response>"},
        ),
    ),
    "glm45": (
        "glm45",
        template(
            {
                "open_pattern": r"<tool_call>(?P<name>[^\n<]+)\n",
                "close": "</tool_call>",
                "content": "xml-inline",
                "content_args": {
                    "tag_pattern": (
                        r"<arg_key>(?P<key>.*?)</arg_key>\s*"
                        r"<arg_value>(?P<value>.*?)</arg_value>"
                    ),
                    "value_parser": {"name": "json", "args": {"allow_non_json": True}},
                },
                "transform": NAMED,
            },
            thinking=THINK,
        ),
    ),
    "glm47": (
        "glm47",
        template(
            {
                "open_pattern": r"<tool_call>(?P<name>[^<\s]+)",
                "close": "</tool_call>",
                "content": "xml-inline",
                "content_args": {
                    "tag_pattern": (
                        r"<arg_key>(?P<key>[^<]+)</arg_key><arg_value>(?P<value>.*?)</arg_value>"
                    ),
                    "value_parser": {"name": "json", "args": {"allow_non_json": True}},
                },
                "transform": NAMED,
            }
        ),
    ),
    "mistral": (
        "mistral",
        template(
            {
                "open": "[TOOL_CALLS]",
                "repeats": False,
                "content": "json",
                "transform_each": True,
                "transform": {
                    "type": "function",
                    "function": {"name": "{name}", "arguments": "{arguments}"},
                },
            },
            content={"close": "</s>"},
        ),
    ),
    "ministral": (
        "mistral",
        template(
            {
                "open_pattern": r"\[TOOL_CALLS\](?P<name>[\w.-]+)\[ARGS\]",
                "close_pattern": r"(?=\[TOOL_CALLS\]|</s>|$)",
                "content": "json",
                "transform": NAMED,
            },
            thinking={"open": "[THINK]", "close": "[/THINK]", "repeats": True, "join": "\n"},
        ),
    ),
    "deepseek_v31": (
        "deepseek_v31",
        template(
            {
                "open_pattern": (
                    r"(?:<｜tool▁calls▁begin｜>)?<｜tool▁call▁begin｜>(?P<name>[^<｜]+)<｜tool▁sep｜>"
                ),
                "close_pattern": r"<｜tool▁call▁end｜>(?:<｜tool▁calls▁end｜>)?",
                "content": "json",
                "transform": NAMED,
            },
            thinking=THINK,
        ),
    ),
    "kimi_k2": (
        "kimi_k2",
        template(
            {
                "open_pattern": (
                    r"(?:<\|tool_calls_section_begin\|>)?<\|tool_call_begin\|>"
                    r"functions\.(?P<name>[\w.-]+):\d+<\|tool_call_argument_begin\|>"
                ),
                "close_pattern": r"<\|tool_call_end\|>(?:<\|tool_calls_section_end\|>)?",
                "content": "json",
                "transform": NAMED,
            }
        ),
    ),
    "minimax_m2": (
        "minimax_m2",
        template(
            {
                "open_pattern": (
                    r'<minimax:tool_call>\s*<invoke\b[^>]*?\bname="(?P<name>[^"]+)"[^>]*?>'
                ),
                "close": "</minimax:tool_call>",
                "content": "xml-inline",
                "content_args": {
                    "tag_pattern": (
                        r'<parameter\b[^>]*?\bname="(?P<key>[^"]+)"[^>]*?>'
                        r"(?P<value>.*?)</parameter>"
                    ),
                    "value_parser": {"name": "json", "args": {"allow_non_json": True}},
                },
                "transform": NAMED,
            },
            thinking=THINK,
        ),
    ),
    "qwen3_5": (
        "qwen3_coder",
        template(
            {
                "open_pattern": r"\s*<tool_call>\s*<function=(?P<name>[^>]+)>\s*",
                "close_pattern": r"\s*</function>\s*</tool_call>\s*",
                "content": "xml-inline",
                "content_args": {
                    "tag_pattern": r"<parameter=(?P<key>[^>]+)>\s*(?P<value>.*?)\s*</parameter>"
                },
                "transform": NAMED,
            },
            thinking=THINK,
            content={"close_pattern": r"\s*(?:<\|im_end\|>|<\|endoftext\|>)", "content": "text"},
        ),
    ),
    "deepseek_v4": (
        "deepseek_v4",
        template(
            {
                "open_pattern": (
                    r"\s*(?:<｜DSML｜tool_calls>\s*)?<｜DSML｜invoke name=\"(?P<name>[^\"]*)\">"
                ),
                "close_pattern": r"</｜DSML｜invoke>\s*(?:</｜DSML｜tool_calls>)?",
                "content": "xml-inline",
                "content_args": {
                    "tag_pattern": (
                        r"<｜DSML｜parameter name=\"(?P<key>[^\"]*)\" string=\"(?:true|false)\">"
                        r"(?P<value>.*?)</｜DSML｜parameter>"
                    ),
                    "value_parser": {"name": "json", "args": {"allow_non_json": True}},
                },
                "transform": NAMED,
            },
            reasoning=THINK,
            content={"close": "<｜end▁of▁sentence｜>"},
        ),
    ),
    "deepseek_v3": (
        "deepseek_v3",
        template(
            {
                "open_pattern": (
                    r"(?:<｜tool▁calls▁begin｜>)?\s*<｜tool▁call▁begin｜>function<｜tool▁sep｜>"
                    r"(?P<name>[^\n]+)\n```json\n"
                ),
                "close_pattern": r"\n```<｜tool▁call▁end｜>(?:<｜tool▁calls▁end｜>)?",
                "content": "json",
                "transform": NAMED,
            },
            thinking=THINK,
        ),
    ),
}

# Rows whose markers stand in no template above: the built-in format knows more ways.
BEYOND = {
    "q3c-nowrap": "no wrapper around the function",
    "mis-arr": "an array", "mis-arr-nospace": "an array", "mis-prose": "an array",
    "mis-pyquotes": "an array",
    "mis-v13": "a name", "mis-callid": "an id", "mis-trailing": "a name",
    "k2-singular": "another section marker", "k2-empty": "a section without calls",
    "k2-ws": "white space between the section's marker and the call's",
}  # fmt: skip
OF_ONE = {"mistral": {"mis-arr", "mis-arr-nospace", "mis-prose", "mis-pyquotes"},
          "ministral": {"mis-v13", "mis-trailing"}}  # fmt: skip

CASES = [
    pytest.param(family, label, row, id=f"{family}-{row['id']}")
    for family, (label, _) in TEMPLATES.items()
    for row in vectors.rows("tool_calls")
    if row["format"] == label
    and (row["id"] in OF_ONE.get(family, set()) or row["id"] not in BEYOND)
]


@pytest.mark.parametrize(("family", "label", "row"), CASES)
def test_a_template_reads_what_the_built_in_format_reads(
    family: str, label: str, row: dict[str, Any]
) -> None:
    format = Format.from_response_template(TEMPLATES[family][1], label=label)
    tools = vectors.tool_definitions(row["tools"]) if row.get("tools") else None
    parser = ResponseParser([format], tools)
    built_in = ResponseParser([label], tools, reasoning_open=format.reasoning_open)
    found, wanted = parser.parse(row["input"]), built_in.parse(row["input"])
    assert vectors.calls_of(found.tool_calls) == vectors.calls_of(wanted.tool_calls)
    assert vectors.calls_of(found.incomplete_calls) == vectors.calls_of(wanted.incomplete_calls)
    assert (found.text, found.reasoning) == (wanted.text, wanted.reasoning)
    assert vectors.streamed(parser, list(row["input"])) == found


@pytest.mark.parametrize("family", TEMPLATES)
def test_a_template_comes_as_mapping_json_or_tokenizer_config(family: str) -> None:
    spec = TEMPLATES[family][1]
    format = Format.from_response_template(spec, label="new", models=["New 1"])
    assert (format.label, format.models) == ("new", ("New 1",))
    assert Format.from_dict(format.to_dict()) == format
    config = {"tokenizer_class": "X", "eos_token": "</s>", "response_template": spec}
    for same in (json.dumps(spec), json.dumps(spec).encode(), config, json.dumps(config)):
        assert Format.from_response_template(same, label="new", models=["New 1"]) == format


@pytest.mark.parametrize("close", ["</run>\n</do>", "</run></do>", None])
def test_a_call_and_its_section_close_in_one_pattern(close: str | None) -> None:
    pattern = {"close": close} if close else {"close_pattern": r"\s*</run>(?:\s*</do>)?"}
    spec = template({
        "open_pattern": r"<do>\s*<run=(?P<name>\w+)>",
        "content": "xml-inline",
        "content_args": {"tag_pattern": r"<(?P<key>\w+)>(?P<value>.*?)</(?P=key)>"},
        "transform": NAMED,
        **pattern,
    })  # fmt: skip
    parser = ResponseParser([Format.from_response_template(spec)])
    reply = parser.parse("One <do>\n<run=a><x>\n1</x></run>\n</do><do><run=b></run></do> two")
    calls = [(call.name, call.arguments) for call in reply.tool_calls]
    assert (reply.text, reply.faults) == ("One  two", ())
    assert calls == [("a", {"x": 1}), ("b", {})]


def test_two_calls_text_and_reasoning_come_out_of_one_reply() -> None:
    spec = template(
        {"open_pattern": r"<do name='(?P<name>[^']+)'>", "close": "</do>", "content": "xml-inline",
         "content_args": {"tag_pattern": r"<(?P<key>\w+)>(?P<value>.*?)</(?P=key)>"},
         "transform": NAMED},
        reasoning={"open": "{{", "close": "}}"},
        content={"open": ["<say>"], "close": ["</say>"]},
    )  # fmt: skip
    parser = ResponseParser([Format.from_response_template(spec)])
    reply = parser.parse("{{hm}}<say>Hi.</say><do name='a'></do><do name='b'><x>1</x><y>z</y></do>")
    assert (reply.reasoning, reply.text) == ("hm", "Hi.")
    calls = [(call.name, call.arguments) for call in reply.tool_calls]
    assert calls == [("a", {}), ("b", {"x": 1, "y": "z"})]


JSON = {"open": "<c>", "close": "</c>", "content": "json"}
XML = {
    "open_pattern": r"<c=(?P<name>\w+)>",
    "close": "</c>",
    "content": "xml-inline",
    "content_args": {"tag_pattern": r"<p=(?P<key>\w+)>(?P<value>.*?)</p>"},
    "transform": NAMED,
}


def without(map: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in map.items() if key not in keys}


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({}, "fields"),
        ({"response_schema": {}}, "response_schema"),
        ({"fields": {}}, "fields.tool_calls"),
        ({"fields": {"tool_calls": JSON}, "verion": 1}, "verion"),
        ({"fields": {"tool_calls": JSON}, "version": 2}, "version"),
        ({"fields": {"tool_calls": 3}}, "fields.tool_calls"),
        (template(JSON, mood={"open": "<m>", "close": "</m>"}), "fields.mood"),
        (template({**JSON, "openn": 1}), "fields.tool_calls.openn"),
        (template({**JSON, "open": 3}), "fields.tool_calls.open"),
        (template({**JSON, "open_pattern": "<c>"}), "fields.tool_calls.open_pattern"),
        (template({**JSON, "repeats": "yes"}), "fields.tool_calls.repeats"),
        (template({**JSON, "content": "kv-lines"}), "fields.tool_calls.content"),
        (template({**JSON, "content": "int"}), "fields.tool_calls.content"),
        (template({**JSON, "content_args": {"transform": "@"}}), "content_args.transform"),
        (template({**JSON, "transform": {"function": "{x}"}}), "transform.function"),
        (
            template({**JSON, "transform": {"name": "{a.b.c}", "arguments": "{content.a}"}}),
            "transform.name",
        ),
        (template({**JSON, "transform": {"name": "x", "arguments": "{b}"}}), "transform.name"),
        (template(without(JSON, "open")), "fields.tool_calls.open"),
        (
            template({**without(JSON, "open"), "open_pattern": r"<c(?!x)>"}),
            "fields.tool_calls.open_pattern",
        ),
        (
            template({**without(JSON, "open"), "open_pattern": r"<c\d+>"}),
            "fields.tool_calls.open_pattern",
        ),
        (
            template({**without(JSON, "close"), "close_pattern": r"</c[a-z]*>"}),
            "fields.tool_calls.close_pattern",
        ),
        (template(without(XML, "content_args")), "content_args.tag_pattern"),
        (
            template({**XML, "content_args": {"tag_pattern": r"(?P<key>.)=(?P<value>.)"}}),
            "content_args.tag_pattern",
        ),
        (
            template(
                {**XML, "content_args": {**XML["content_args"], "merge_duplicates": True}}
            ),
            "merge_duplicates",
        ),
        (
            template(
                {**XML, "content_args": {**XML["content_args"], "value_parser": {"name": "int"}}}
            ),
            "value_parser",
        ),
        (template({**XML, "open_pattern": "<c>"}), "fields.tool_calls.open_pattern"),
        (template({**XML, "transform": FUNCTION}), "fields.tool_calls.transform"),
        (template(JSON, thinking={"open": "<t>"}), "fields.thinking.close"),
        (template(JSON, thinking={"close": "</t>"}), "fields.thinking.open"),
        (template(JSON, thinking={**THINK, "content": "json"}), "fields.thinking.content"),
        (template(JSON, content={"open": "<a>"}), "fields.content.close"),
        (template(JSON, content={"open": "<a>", "close": "<a>"}), "wrappers"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_by_name(spec: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named.replace(".", r"\.")):
        Format.from_response_template(spec)


def test_what_is_no_template_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="JSON"):
        Format.from_response_template("{")
    with pytest.raises(ConfigurationError, match="object"):
        Format.from_response_template("3")
    with pytest.raises(WrongTypeError):
        Format.from_response_template(object())  # type: ignore[arg-type]
    for wrong in (None, 3, ["fields"]):
        with pytest.raises(WrongTypeError, match="spec must be a mapping, or JSON"):
            Format.from_response_template(wrong)  # type: ignore[arg-type]


def test_models_of_a_template_are_one_name_or_several() -> None:
    spec = {"fields": {"tool_calls": {"open": "<do>", "close": "</do>", "content": "json"}}}
    assert Format.from_response_template(spec, models="New 1").models == ("New 1",)
    assert Format.from_response_template(spec, models=("New 1", "New 2")).models == (
        "New 1",
        "New 2",
    )
    for wrong in (3, [3], b"x"):
        with pytest.raises(WrongTypeError, match="models"):
            Format.from_response_template(spec, models=wrong)  # type: ignore[arg-type]
