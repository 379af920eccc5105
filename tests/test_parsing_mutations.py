"""Laws of parsing, on the shared cases after a few slips: what models and proxies make of a reply.

The generator of `test_parsing_laws.py` puts pieces together; here a reply that was right once is
cut, doubled and strewn with markers, so that the damage stands deep inside calls.
"""

from __future__ import annotations

import json
import random

import pytest
import turnwarden
import vectors_runner as vectors
from turnwarden import ResponseParser

LONGEST = 1500
REPLIES = [
    row["input"]
    for name in ("tool_calls", "workflow_json", "json_repair")
    for row in vectors.rows(name)
    if len(row["input"]) < LONGEST
] + [known.example for known in turnwarden.formats()]
SLIPS = [
    "<think>", "</think>", "<tool_call>", "</tool_call>", "```json\n", "```", "```python\n",
    "`", "\n", "\n\n", " ", '"', "'", "\\", "{", "}", "[", "]", "(", ")", ",", ":", "//", "/*",
    "#", "...", "\ud83d", "\ude00", "猫", "\ufeff", "\u200b", "\0", "<|im_end|>", "</s>",
    "<answer>", "</response>", "[TOOL_CALLS]", "[ARGS]", "<function=f>", "</parameter>",
    "Action: f\n", "Final Answer: ", "<|python_tag|>", "<|tool_call_start|>",
    "Here is my thought process:", '{"content": "', '"next": [', '<invoke name="f">',
    "<｜tool▁sep｜>", "f(a=1)", "\\u00", " to=f<|message|>",
]  # fmt: skip
TOOL = {"name": "f", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
PARSERS = [
    ResponseParser(),
    ResponseParser(buffer_arguments=False),
    ResponseParser(reasoning_open=True),
    ResponseParser(calls_in_reasoning=True),
    ResponseParser(tools=[TOOL]),
    ResponseParser(max_calls=1, max_depth=3, max_argument_bytes=20),
    ResponseParser(max_reply_bytes=50),
]

# What this generator found, cut down to what matters: all of these once depended on the split.
FOUND = [
    '{t:""t""",s\\"","next":[{mcp:c[{}]}',
    "[TOOL_CALLS]r[CALL_ID]t o",
    '[TOOL_CALLS]get_weather[CALL_ID]a b[ARGS]{"city": "Oslo"}',
    '{":[{"":""}"next":[{"","name":",',
    '[TOOL_CALLS][{"name":"r",["":',
    '<toolcall>[{"name":"p","":{}["":',
    '{"","next":[{"mcp":"i","":{"":"","":""\n}\n}"" ["":',
    '{t:,"next:[{\n"mcp":"e","args":{"":"","":""}}',
    '```tool_call\n{"name":"t","arguments":{"a":1}}\n```\n\ufeff{"a": 1}',
    '```json\n{"name": "search", "arguments": {"q": "x"}}\n```\n\u200b{"a": ',
    'q{"c":"","next":[{"mcp":"a"}]p:',
    '<|tool_call>call:\n\nsearch{q:<|"|>x<|"|>,limit:3}<tool_call|>',
    '```json{name:","args":n```\nto=<|message|>',
    "```tool_call\n{name: 't', aments: {a: 1,},}\n```\n"
    "Here is my thought process: plan. Here is my response: Done.",
    '```\no{"e":","\n```\n`\n```json{name:","arguments":{',
    '```tool_call{name:"o```s"a',
    '```json{mcp:"m```p":',
    '```{mcp:"a\n```e',
    '<｜tool▁call▁begin｜><｜tool▁sep｜>c```{q:"h\n```j',
    '```tool_call{mcp:"}```l',
    '```json{"":"C```j\n"next":[{mcp:a',
]


def mutated(chooser: random.Random) -> str:
    """A reply with one to four slips, now and then with another reply behind it."""
    text = chooser.choice(REPLIES)
    if chooser.random() < 0.3:
        text += chooser.choice(["", "\n", " text "]) + chooser.choice(REPLIES)
    for _ in range(chooser.randint(1, 4)):
        at = chooser.randint(0, len(text))
        match chooser.choice(["cut", "put", "put", "begin", "end", "copy"]):
            case "cut":
                text = text[:at] + text[at + chooser.randint(1, 6) :]
            case "put":
                text = text[:at] + chooser.choice(SLIPS) + text[at:]
            case "begin":
                text = text[:at] if at else text
            case "end":
                text = text[at:]
            case _:
                piece = chooser.randint(0, len(text))
                text = text[:at] + text[piece : piece + chooser.randint(1, 30)] + text[at:]
    return text


def check(parser: ResponseParser, text: str, chooser: random.Random) -> None:
    """Whole, in single characters and in random pieces it is one reply; its calls can be read."""
    whole = parser.parse(text)
    cuts = sorted(chooser.randint(0, len(text)) for _ in range(6))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    for chunks in ([text], list(text), pieces):
        reply = vectors.streamed(parser, chunks)
        assert reply == whole, chunks
        assert reply.spans == whole.spans, chunks
    for call in (*whole.tool_calls, *whole.incomplete_calls):
        assert call.name
        assert vectors.same(json.loads(call.arguments_json), call.arguments)


@pytest.mark.parametrize("text", FOUND)
@pytest.mark.parametrize("parser", PARSERS, ids=repr)
def test_a_reply_that_was_read_by_its_split_no_longer_is(parser: ResponseParser, text: str) -> None:
    check(parser, text, random.Random(0))


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_reply_keeps_the_laws(seed: int) -> None:
    chooser = random.Random(seed)
    for _ in range(100):
        check(chooser.choice(PARSERS), mutated(chooser), chooser)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_healed_needs_no_more_healing(seed: int) -> None:
    chooser = random.Random(seed)
    for _ in range(100):
        text = mutated(chooser)
        try:
            value = turnwarden.repair_json(text)
        except turnwarden.JSONRepairError:
            continue
        for indent in (None, 2):
            again = json.dumps(value, ensure_ascii=bool(indent), indent=indent)
            assert vectors.same(turnwarden.repair_json(again), value), text


DEFINITION = {
    "type": "function",
    "function": {"name": "g", "description": "d", "parameters": {"type": "object"}},
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(DEFINITION),
        json.dumps([DEFINITION, DEFINITION]),
        '{"name": "g", "parameters": {"anyOf": [{"type": "string"}]}}',
        '{"name": "g", "parameters": {"$ref": "#/x"}}',
        '{"name": "g", "description": "no parameters", "parameters": {}}',
        "Action: search\nAction Input: x\n</think>\nok",
        '```tool_code\nprint(search(q="x"))\n```</think>ok',
    ],
)
def test_definitions_and_drafts_are_no_calls(text: str) -> None:
    assert turnwarden.parse(text).tool_calls == ()


def test_calls_of_content_count_only_where_next_holds_none() -> None:
    text = '{"content":"[{\\"mcp\\":\\"a\\"}]","next":[{"mcp":"c'
    reply = turnwarden.parse(text)
    assert reply.tool_calls == ()
    assert [call.name for call in reply.incomplete_calls] == ["c"]


def test_a_byte_order_mark_begins_a_line() -> None:
    (call,) = turnwarden.parse('\ufeffAction: search\nAction Input: {"q": "x"}').tool_calls
    assert call.arguments == {"q": "x"}
