"""Replies to calls, healing, streaming and hostile input, side by side.

The peers: `find + jiter` is what a careful user writes by hand (cut the reasoning block and the
fence by `str.find`, then jiter); orjson.loads alone does no cleaning at all; dirtyjson and
json_repair heal. Tables name the row's bar, as a factor of a peer's time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import dirtyjson
import jiter
import json_repair
import orjson
import turnwarden

from benches.compare.measure import QUICK, Effort, capped, measure, seconds, table

PROMPT = "A wide shot of a harbour at dawn, fishing boats, mist over the water, soft light."
SMALL = json.dumps(
    {
        "content": "First the picture, then the film from it.",
        "next": [
            {"mcp": "generate_image", "args": {"prompt": PROMPT, "size": "1024x1024", "count": 2}},
            {"mcp": "generate_video", "args": {"prompt": "The same harbour", "seconds": 8}},
        ],
    },
    separators=(",", ":"),
)

LINE = '        result = compute(value, scale=2.5)  # keep "quoted" parts and C:\\\\paths\n'


def reasoned(size: int) -> str:
    """A reply with a reasoning block and a fence, of about so many bytes."""
    thought = "The user wants the tide tables of Oslo, and then the weather there. " * (size // 140)
    note = "Low water at six, high water at noon; mind the wind from the fjord. " * (size // 140)
    calls = [
        {"mcp": "search", "args": {"q": "tides Oslo", "limit": 5}},
        {"mcp": "write_note", "args": {"title": "Tides", "text": note, "tags": ["sea", "oslo"]}},
    ]
    payload = json.dumps({"content": "Here is the plan.", "next": calls}, indent=2)
    return f"<think>\n{thought}\n</think>\n\n```json\n{payload}\n```"


def coded(size: int) -> str:
    """A reply that writes a file of about so many bytes: code in one string."""
    code = LINE * (size // len(json.dumps(LINE)))
    call = {"mcp": "write_file", "args": {"path": "src/main.py", "text": code, "mode": 420}}
    return json.dumps({"content": "Writing it.", "next": [call]})


EVERY_SLIP = (
    "{id: 17, 'name': 'it\\'s here', \"path\": \"C:\\dir\\d+\", ok: True, none: None, // note\n"
    ' "list": [1, 2,, 3,], "text": "say "hi" now", "raw": "two\nlines", "x": .5, "y": +3 }'
)
DIRTYJSON_SLIPS = (
    "{id: 17, 'name': 'it\\'s here', \"path\": \"C:/dir\", ok: true, none: null, // note\n"
    ' "list": [1, 2, 3,], /* a longer remark */ "text": "say it now", \'x\': 5, "y": 3, }'
)


def broken(size: int, item: str) -> str:
    """A list of about so many bytes, with the slips of an item over and over."""
    items = ",\n".join([item] * (size // len(item)))
    return "{'items': [" + items + ",], 'done': true}"


def find_and_jiter(text: str) -> list[tuple[str, dict[str, Any]]]:
    """What a careful user writes by hand: cut reasoning and fence, parse, read the calls."""
    end = text.rfind("</think>")
    if end >= 0:
        text = text[end + 8 :]
    start = text.find("```")
    if 0 <= start < text.find("{"):
        text = text[text.find("\n", start) + 1 : text.rfind("```")]
    text = text[text.find("{") : text.rfind("}") + 1]
    value = jiter.from_json(text.encode())
    return [(call["mcp"], call["args"]) for call in value["next"]]


def our_calls(text: str) -> object:
    return turnwarden.parse(text).tool_calls


def our_arguments(text: str) -> object:
    return [(call.name, call.arguments) for call in turnwarden.parse(text).tool_calls]


def parse_table(effort: Effort) -> None:
    rows: list[list[str]] = []
    for label, text, bar in [
        ("workflow JSON", SMALL, "0.5, arguments 0.9"),
        ("reasoning block and fence", reasoned(3000), "0.6"),
        ("code in a string", coded(30_000), "0.6"),
    ]:
        payload = text[text.find("{") : text.rfind("}") + 1]
        assert our_arguments(text) == find_and_jiter(text)
        contenders: dict[str, Callable[[], object]] = {
            "calls": lambda text=text: our_calls(text),
            "arguments": lambda text=text: our_arguments(text),
            "find + jiter": lambda text=text: find_and_jiter(text),
            "orjson": lambda payload=payload: orjson.loads(payload),
            "json_repair": lambda payload=payload: json_repair.loads(payload),
        }
        times = measure(contenders, effort)
        hand = times["find + jiter"]
        rows.append(
            [
                f"{len(text.encode())} B {label}",
                *(seconds(times[name]) for name in contenders),
                f"{times['calls'] / hand:.2f}",
                f"{times['arguments'] / hand:.2f}",
                bar,
            ]
        )
    head = ["reply", "parse, calls", "with arguments", "find + jiter", "orjson.loads alone"]
    head += ["json_repair", "calls / hand", "arguments / hand", "bar"]
    print(table(head, rows))


def heal_table(effort: Effort) -> None:
    rows: list[list[str]] = []
    for label, text in [
        ("all kinds mixed", broken(3000, EVERY_SLIP)),
        ("the kinds that dirtyjson reads", broken(3000, DIRTYJSON_SLIPS)),
    ]:
        contenders: dict[str, Callable[[], object]] = {
            "repair_json": lambda text=text: turnwarden.repair_json(text),
            "json_repair": lambda text=text: json_repair.loads(text),
        }
        if label != "all kinds mixed":
            assert turnwarden.repair_json(text) == dirtyjson.loads(text)
            contenders["dirtyjson"] = lambda text=text: dirtyjson.loads(text)
        times = measure(contenders, effort)
        ours, peer = times["repair_json"], times.get("dirtyjson")
        rows.append(
            [
                f"{len(text)} B, {label}",
                seconds(ours),
                seconds(times["json_repair"]),
                "refuses it" if peer is None else seconds(peer),
                "" if peer is None else f"1/{peer / ours:.0f}",
            ]
        )
    head = ["broken JSON", "repair_json", "json_repair", "dirtyjson", "of dirtyjson (bar 1/50)"]
    print(table(head, rows))


def stream_table(effort: Effort) -> None:
    text = coded(30_000)
    chunks = [text[at : at + 4] for at in range(0, len(text), 4)]
    parser = turnwarden.ResponseParser()

    def ours() -> object:
        stream = parser.stream()
        for chunk in chunks:
            stream.feed(chunk)
        return stream.finish()

    def iterated() -> object:
        return list(parser.iter(chunks))

    def reparsed() -> object:
        buffer, value = "", None
        for chunk in chunks:
            buffer += chunk
            value = jiter.from_json(buffer.encode(), partial_mode="trailing-strings")
        return value

    times = measure({"feed": ours, "iter": iterated, "jiter, re-parse": reparsed}, effort)
    ratio = times["jiter, re-parse"] / times["feed"]
    rows = [
        [
            f"{len(text)} B in {len(chunks)} chunks",
            *map(seconds, times.values()),
            f"1/{ratio:.0f}",
            f"{times['feed'] / len(chunks) * 1e9:.0f} ns",
        ]
    ]
    print(table(["stream", *times, "of re-parse (bar 1/50)", "a chunk"], rows))


def hostile() -> dict[str, Callable[[int], str]]:
    """Families of hostile texts: each makes one of about so many bytes."""

    def repeated(piece: str, before: str = "", after: str = "") -> Callable[[int], str]:
        return lambda size: before + piece * (size // len(piece)) + after

    return {
        "open tags": repeated("<tool_call>"),
        "closing tags": repeated("</think>"),
        "unclosed reasoning": repeated("<think>a"),
        "fences": repeated("```json\n"),
        "quotes": repeated('"', '{"a":'),
        "braces": repeated("{"),
        "brackets": repeated("[", '{"next":'),
        "keys": repeated('{"a":', '{"content":"x","next":['),
        "escapes": repeated("\\\\", '{"content":"'),
        "bad escapes": repeated("\\d", '{"content":"'),
        "commas": repeated(",", "<tool_call>[1"),
        "colons": repeated(":", '<tool_call>{"a"'),
        "comment starts": repeated("/*", "<tool_call>{"),
        "backslashes": repeated("\\", '<tool_call>{"a": '),
        "markers": repeated("[TOOL_CALLS]"),
        "half calls": repeated('<tool_call>{"name":"f","arguments":{'),
        "words": repeated("a ", "<tool_call>{"),
        "single quotes": repeated("'", "<tool_call>{'a':"),
        "pythonic": repeated("f(a=[", "[f(a=1), "),
        "backticks": repeated("`"),
    }


def hostile_times(name: str, sizes: list[int], effort: Effort) -> dict[str, float]:
    """Seconds to parse a hostile text of each size."""
    make = hostile()[name]
    contenders: dict[str, Callable[[], object]] = {
        str(size): partial(turnwarden.parse, make(size)) for size in sizes
    }
    return measure(contenders, effort)


def hostile_table(effort: Effort) -> None:
    """How each family grows: its largest size, and the worst of all doublings."""
    sizes = [1 << power for power in (range(16, 18) if effort == QUICK else range(16, 23))]
    capped_effort = replace(effort, rounds=min(effort.rounds, 9), seconds=min(effort.seconds, 2.0))
    rows: list[list[str]] = []
    for name, make in hostile().items():
        times = capped(partial(hostile_times, name, sizes, capped_effort), 2 * effort.cap)
        if not isinstance(times, dict):
            rows.append([name, f"over {2 * effort.cap:g} s in all", "", ""])
            continue
        column = [times[str(size)] for size in sizes]
        ratios = [twice / once for once, twice in pairwise(column)]
        length = len(make(sizes[-1]).encode())
        rows.append(
            [
                name,
                seconds(column[-1]),
                f"{column[-1] / length * 1e9:.1f}",
                f"{max(ratios):.2f} at {sizes[ratios.index(max(ratios)) + 1] >> 10} KB",
            ]
        )
    head = [f"hostile, {sizes[-1] >> 10} KB", "parse", "ns a byte (bar 20)"]
    print(table([*head, f"worst doubling from {sizes[0] >> 10} KB on (bar 2.3)"], rows))


def main(effort: Effort) -> None:
    for part in (parse_table, heal_table, stream_table, hostile_table):
        part(effort)
        print()


if __name__ == "__main__":
    from benches.compare.measure import FULL

    main(FULL)
