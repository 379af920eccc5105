"""What a call costs in a guard, side by side; signatures and similarity are in `signature`.

The peers are typical guards, stated anew here in their usual form, since none is published as a
library of its own:

- hash window: sha256 of sorted JSON for each call; each check counts equal hashes in the window
  and looks for an alternation at its end. The best of the guards that agents carry.
- orjson + xxh3: the same with the fastest hash that Python has.
- re-hash: keeps calls and results, and serialises and hashes the whole window at every check.
- fuzzy: compares the newest call's JSON with each one in the window by rapidfuzz's Indel ratio
  with its cutoff at 0.9.

None of them looks at results, periods above two, polls, errors or progress.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import orjson
import xxhash
from rapidfuzz.distance import Indel
from turnwarden import LoopDetector, WorkflowGuard

from benches.compare.measure import FULL, Effort, measure, seconds, table

Call = tuple[str, dict[str, Any]]
LIMIT = 10**9
NAMES = ["search", "read_file", "list_issues", "get_weather", "run_query"]
# More different calls than any window holds, so that no guard finds a loop.
CALLS: list[Call] = [
    (NAMES[number % 5], {"query": f"weather in town {number * 7919 % 4001}", "page": number % 7})
    for number in range(4001)
]


def sha256_of_json(value: object) -> object:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def xxh3_of_orjson(value: object) -> object:
    return xxhash.xxh3_64_intdigest(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


# The peers.


class HashWindow:
    """Counts equal hashes in a window."""

    def __init__(self, window: int, digest: Callable[[object], object]) -> None:
        self.digest = digest
        self.hashes: deque[object] = deque(maxlen=window)

    def record_and_check(self, call: Call) -> bool:
        self.hashes.append((call[0], self.digest(call[1])))
        count = Counter(self.hashes)[self.hashes[-1]]
        return count >= 3 or self.alternates()

    def alternates(self) -> bool:
        if len(self.hashes) < 4:
            return False
        a, b, c, d = (self.hashes[at] for at in (-4, -3, -2, -1))
        return a == c and b == d and a != b


class ReHash:
    """Hashes the whole window at every check."""

    def __init__(self, window: int) -> None:
        self.calls: deque[object] = deque(maxlen=window)

    def record_and_check(self, call: object) -> bool:
        self.calls.append(call)
        hashes = [sha256_of_json(call) for call in self.calls]
        return hashes.count(hashes[-1]) >= 3


class Fuzzy:
    """Compares the newest call with every one in the window."""

    def __init__(self, window: int) -> None:
        self.texts: deque[str] = deque(maxlen=window)

    def record_and_check(self, call: Call) -> bool:
        text = call[0] + json.dumps(call[1], sort_keys=True)
        alike = sum(
            Indel.normalized_similarity(text, other, score_cutoff=0.9) >= 0.9
            for other in self.texts
        )
        self.texts.append(text)
        return alike >= 3


# Record and check.


def guard_of(window: int) -> WorkflowGuard:
    return WorkflowGuard(loop_detection={"window_size": window}, recursion={"hard_limit": LIMIT})


def filled(step: Callable[[], object], window: int) -> Callable[[], object]:
    for _ in range(3 * window):
        step()
    return step


def ours(window: int) -> Callable[[], object]:
    guard, calls = guard_of(window), cycle(CALLS)

    def step() -> object:
        name, arguments = next(calls)
        guard.record_tool_call(name, arguments)
        return guard.check()

    return filled(step, window)


def ours_with_results(window: int) -> Callable[[], object]:
    guard, calls = guard_of(window), cycle(CALLS)
    results = cycle([f"{number} degrees, light rain, wind from the north" for number in range(997)])

    def step() -> object:
        name, arguments = next(calls)
        guard.record_tool_call(name, arguments)
        guard.record_tool_result(next(results))
        return guard.check()

    return filled(step, window)


def theirs(peer: HashWindow | ReHash | Fuzzy, window: int) -> Callable[[], object]:
    calls = cycle(CALLS)
    return filled(lambda: peer.record_and_check(next(calls)), window)


def record_table(effort: Effort, windows: tuple[int, ...]) -> None:
    rows: list[list[str]] = []
    first: dict[str, float] = {}
    for window in windows:
        contenders = {
            "record + check": ours(window),
            "with result": ours_with_results(window),
            "hash window": theirs(HashWindow(window, sha256_of_json), window),
            "orjson + xxh3": theirs(HashWindow(window, xxh3_of_orjson), window),
            "re-hash": theirs(ReHash(window), window),
            "fuzzy": theirs(Fuzzy(window), window),
        }
        times = measure(contenders, effort)
        first = first or times
        growth = (times[name] / first[name] for name in ("record + check", "with result"))
        rows.append(
            [
                str(window),
                *(seconds(times[name]) for name in contenders),
                ", ".join(f"{ratio:.2f}" for ratio in growth),
            ]
        )
    head = ["window", "record + check", "with result", "hash window", "orjson + xxh3", "re-hash"]
    print(table([*head, "fuzzy", "ours / ours at 10"], rows))
    print("\nBars: record + check 1.5 us, with result 2.5 us, 1.3 times that at window 1,000.")


# Large results and arguments.


def log_text(size: int) -> str:
    line = "INFO worker finished step {} of the import without a warning\n"
    return "".join(line.format(number % 97) for number in range(size // 60))[:size]


def rows_of(size: int) -> list[dict[str, Any]]:
    generator = random.Random(1)
    return [
        {"id": generator.randrange(10**6), "name": f"item {number}", "tags": ["a", "bb"], "n": 1.5}
        for number in range(size // 62)
    ]


def large_table(effort: Effort) -> None:
    rows: list[list[str]] = []
    results: list[tuple[str, Callable[[int], object]]] = [
        ("100 KB result, prose", lambda number: f"{number} {log_text(100_000)}"),
        ("100 KB result, JSON text", lambda number: json.dumps([number, *rows_of(100_000)])),
        ("100 KB result, a list of rows", lambda number: [number, *rows_of(100_000)]),
    ]
    for label, make in results:
        guard, values = guard_of(10), [make(number) for number in range(VARIANTS)]
        calls, turns = cycle(CALLS), cycle(values)

        def record_result(
            guard: WorkflowGuard = guard,
            calls: Iterator[Call] = calls,
            turns: Iterator[object] = turns,
        ) -> None:
            guard.record_tool_call(*next(calls))
            guard.record_tool_result(next(turns))

        rows.append(large_row(label, values, record_result, effort))
    arguments: list[tuple[str, Callable[[int], object]]] = [
        ("50 KB arguments, one text", lambda number: {"path": number, "text": log_text(50_000)}),
        ("50 KB arguments, nested", lambda number: {"rows": rows_of(50_000), "page": number}),
    ]
    for label, make in arguments:
        guard, values = guard_of(10), [make(number) for number in range(VARIANTS)]
        turns, names = cycle(values), cycle(NAMES)

        def record_call(
            guard: WorkflowGuard = guard,
            names: Iterator[str] = names,
            turns: Iterator[object] = turns,
        ) -> None:
            guard.record_tool_call(next(names), next(turns))

        rows.append(large_row(label, values, record_call, effort))
    head = ["recorded", "size", "ours", "ns a byte", "bar", "re-hash, window 10"]
    print(table([*head, "json + sha256, once"], rows))


# More than the longest period, so that no guard finds a loop.
VARIANTS = 11


def large_row(
    label: str, values: list[object], step: Callable[[], None], effort: Effort
) -> list[str]:
    first = values[0]
    size = len(first) if isinstance(first, str) else len(json.dumps(first))
    peer, turns = ReHash(10), cycle(values)
    contenders: dict[str, Callable[[], object]] = {
        "ours": step,
        "re-hash": filled(lambda: peer.record_and_check(next(turns)), 10),
        "sha256": lambda: sha256_of_json(first),
    }
    times = measure(contenders, effort)
    return [
        label,
        f"{size} B",
        seconds(times["ours"]),
        f"{1e9 * times['ours'] / size:.2f}",
        "3",
        seconds(times["re-hash"]),
        seconds(times["sha256"]),
    ]


# Size.


def played(calls: int, *, results: bool) -> WorkflowGuard:
    guard = WorkflowGuard()
    for number in range(calls):
        guard.start_iteration()
        guard.record_tool_call(*CALLS[number])
        if results:
            guard.record_tool_result(f"{number} degrees and rain")
    return guard


def resident() -> int | None:
    """Bytes of this process in memory, where the system tells."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return None
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def held(guards: list[WorkflowGuard], calls: int, count: int, *, results: bool) -> str:
    """Bytes that a guard holds, from how the process grows with many of them.

    All that were made stay in `guards`: what one row leaves must not serve the next.
    """
    gc.collect()
    before = resident()
    guards.extend(played(calls, results=results) for _ in range(count))
    after = resident()
    if before is None or after is None:
        return "not told here"
    return f"{(after - before) / count:.0f} B"


def size_table(effort: Effort) -> None:
    rows: list[list[str]] = []
    count = 20_000 if effort is FULL else 2_000
    kept: list[WorkflowGuard] = []
    for calls, results in [(0, False), (5, True), (20, False), (20, True)]:
        guard = played(calls, results=results)
        data = guard.to_bytes()
        contenders: dict[str, Callable[[], object]] = {
            "to_bytes": guard.to_bytes,
            "from_bytes": lambda data=data: WorkflowGuard.from_bytes(data),
        }
        times = measure(contenders, effort)
        rows.append(
            [
                f"{calls} calls{', with results' if results else ''}",
                f"{len(data)} B",
                held(kept, calls, count, results=results),
                *(seconds(times[name]) for name in contenders),
            ]
        )
    print(table(["default guard after", "snapshot", "in memory", "to_bytes", "from_bytes"], rows))
    print("\nBar: under 2 KB after 20 calls with small arguments.")


def detector_table(effort: Effort) -> None:
    """The detector alone, and what single steps of the guard cost."""
    guard, detector, calls = guard_of(10), LoopDetector(), cycle(CALLS)
    filled(lambda: guard.record_tool_call(*next(calls)), 10)
    contenders: dict[str, Callable[[], object]] = {
        "loop and call alone": lambda: next(calls),
        "guard.record_tool_call": lambda: guard.record_tool_call(*next(calls)),
        "detector.record_call": lambda: detector.record_call(*next(calls)),
        "detector.detect": detector.detect,
        "guard.check": guard.check,
        "guard.guidance": guard.guidance,
        "guard.start_iteration": guard.start_iteration,
    }
    times = measure(contenders, effort)
    print(table(["step", "time"], [[name, seconds(times[name])] for name in contenders]))


def main(effort: Effort) -> None:
    windows = (10, 100, 1_000) if effort is FULL else (10, 100)
    record_table(effort, windows)
    print()
    for part in (large_table, size_table, detector_table):
        part(effort)
        print()


if __name__ == "__main__":
    main(FULL)
