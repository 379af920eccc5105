"""What many sessions in one `SessionGuards` weigh, and what a turn of one costs."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from turnwarden import SessionGuards

from benches.compare import measure

CALLS = 5


def resident() -> int:
    """Bytes of this process that are in memory."""
    statm = Path("/proc/self/statm").read_text(encoding="ascii")
    return int(statm.split()[1]) * resource.getpagesize()


def fill(guards: SessionGuards, sessions: int, *, results: bool) -> None:
    """Five calls with small arguments in each session, in five laps over all of them."""
    for lap in range(CALLS):
        for n in range(sessions):
            session = f"conversation-{n:08}"
            guards.record(session, [("search", {"query": f"hotels {n}", "page": lap})])
            if results:
                guards.record_results(session, [f"{n * lap} hotels found"])


def weigh(sessions: int, *, results: bool) -> dict[str, float]:
    """Bytes and seconds of a store that is filled in a process of its own."""
    before = resident()
    guards = SessionGuards(max_sessions=sessions + sessions // 8)
    began = time.perf_counter()
    fill(guards, sessions, results=results)
    seconds = time.perf_counter() - began
    return {
        "sessions": guards.metrics["sessions"],
        "bytes": resident() - before,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "cold": guards.metrics["cold_bytes"],
        "hot": guards.metrics["hot"],
        "seconds": seconds,
    }


def rows(sessions: int) -> Iterator[str]:
    """One row with results and one without, each measured in a fresh process."""
    context = multiprocessing.get_context("spawn")
    for results in (False, True):
        with context.Pool(1) as pool:
            weight = pool.apply(weigh, (sessions,), {"results": results})
        turns = sessions * CALLS
        yield (
            f"| {weight['sessions']:,.0f}{', with results' if results else ''} "
            f"| {weight['bytes'] / 1e6:,.0f} MB | {weight['peak'] / 1e6:,.0f} MB "
            f"| {weight['bytes'] / sessions:,.0f} B | {weight['cold'] / sessions:,.0f} B "
            f"| {weight['seconds'] / turns * 1e6:.2f} us |"
        )


def main(effort: measure.Effort) -> None:
    """Prints the table."""
    sessions = 1_000_000 if effort.rounds > measure.QUICK.rounds else 20_000
    print(
        f"| sessions of {CALLS} calls | grown by | peak of the process | a session "
        "| of which state | a turn, rebuilt each time |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows(sessions):
        print(row)
