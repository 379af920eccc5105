"""Signatures and similarity of arguments, side by side.

The peers: a hash of sorted JSON, as orjson with xxh3-64 and as the standard library's json with
sha256; rapidfuzz for strings, with and without its cutoff at 0.9.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

import orjson
import turnwarden
import xxhash
from rapidfuzz.distance import Indel
from turnwarden._core import ArgumentSketch

from benches.compare.measure import Effort, measure, seconds, table

SMALL = {"query": "weather in Oslo", "page": 2}
MEDIUM = {
    "path": "/home/user/project/src/main.py",
    "start_line": 120,
    "end_line": 180,
    "pattern": "def compute_totals",
    "include": ["*.py", "*.pyi"],
    "recursive": True,
    "max_results": 50,
    "context": {"before": 2, "after": 3},
    "encoding": "utf-8",
}
LONG_TEXT = {
    "path": "notes.txt",
    "content": "x = some_function(argument, other)  # why so\n" * 1110,
}


def nested() -> dict[str, Any]:
    """About 50 KB of rows, as a tool that writes to a table gets them."""
    generator = random.Random(1)
    rows = [
        {
            "id": generator.randrange(10**6),
            "name": f"item {generator.randrange(1000)}",
            "tags": ["a", "bb", "ccc"],
            "price": generator.random() * 100,
            "in_stock": True,
            "size": {"width": 1, "height": 2.5},
        }
        for _ in range(360)
    ]
    return {"rows": rows, "mode": "upsert"}


def sorted_orjson_xxh3(arguments: object) -> object:
    return xxhash.xxh3_64_intdigest(orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS))


def sorted_json_sha256(arguments: object) -> object:
    return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()


def signature_table(effort: Effort) -> None:
    rows: list[list[str]] = []
    for label, arguments, bar in [
        ("small dict", SMALL, "1.0"),
        ("dict", MEDIUM, "1.0"),
        ("one string", LONG_TEXT, "3"),
        ("nested", nested(), "1.0"),
    ]:
        text = orjson.dumps(arguments).decode()
        contenders: dict[str, Callable[[], object]] = {
            "call_signature": lambda value=arguments: turnwarden.call_signature("tool", value),
            "of JSON text": lambda text=text: turnwarden.call_signature("tool", text),
            "orjson + xxh3-64": lambda value=arguments: sorted_orjson_xxh3(value),
            "json + sha256": lambda value=arguments: sorted_json_sha256(value),
        }
        times = measure(contenders, effort)
        ratio = times["call_signature"] / times["orjson + xxh3-64"]
        rows.append(
            [
                f"{len(text)} B {label}",
                *(seconds(times[name]) for name in contenders),
                f"{ratio:.2f}",
                bar,
            ]
        )
    head = ["arguments", "call_signature", "of JSON text", "orjson + xxh3-64", "json + sha256"]
    print(table([*head, "ours / orjson + xxh3", "bar"], rows))


def prose(size: int, changed: int) -> str:
    """Text of about so many bytes; some words in a hundred differ from those of `changed=0`."""
    generator = random.Random(7)
    words = [f"{generator.choice(WORDS)}{generator.choice(ENDINGS)}" for _ in range(size // 7)]
    for position in generator.sample(range(len(words)), -(-len(words) * changed // 100)):
        words[position] = "something"
    return " ".join(words)


STEMS = ["har", "bo", "fis", "mis", "wat", "sof", "lig", "daw", "wid", "sho"]
WORDS = [stem + end for stem in STEMS for end in "betn"]
ENDINGS = ["", "", "s", "ing", "ed", "er", ","]


def similarity_table(effort: Effort) -> None:
    rows: list[list[str]] = []
    for size in (40, 120, 5_000, 50_000):
        one, other = prose(size, 0), prose(size, 4)
        kept = [ArgumentSketch({"text": text}) for text in (one, other)]
        contenders: dict[str, Callable[[], object]] = {
            "sketches kept": lambda kept=kept: kept[0].similarity(kept[1]),
            "one sketch made": lambda one=one: ArgumentSketch({"text": one}),
            "rapidfuzz": lambda one=one, other=other: Indel.normalized_similarity(one, other),
            "rapidfuzz, cutoff 0.9": lambda one=one, other=other: Indel.normalized_similarity(
                one, other, score_cutoff=0.9
            ),
        }
        times = measure(contenders, effort)
        rows.append(
            [
                f"two strings of {len(one)} B",
                *(seconds(times[name]) for name in contenders),
                f"{kept[0].similarity(kept[1]):.3f}",
                f"{Indel.normalized_similarity(one, other):.3f}",
                "1 us",
            ]
        )
    head = ["arguments", "sketches kept", "one sketch made", "rapidfuzz", "rapidfuzz, cutoff 0.9"]
    print(table([*head, "ours says", "rapidfuzz says", "bar, kept"], rows))


def main(effort: Effort) -> None:
    for part in (signature_table, similarity_table):
        part(effort)
        print()


if __name__ == "__main__":
    from benches.compare.measure import FULL

    main(FULL)
