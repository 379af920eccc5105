"""How the side-by-side scripts measure.

All contenders of a row run in turn, many rounds over, so that a busy moment of the machine hits
all of them; the figure is the minimum of the rounds. A round runs a contender as often as it
takes for the clock not to matter.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

SAMPLE_SECONDS = 0.004


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    rounds: int
    seconds: float
    """At most so long for one contender; at least one round is done."""

    cap: float
    """A row that may never end is given up after so many seconds."""


FULL = Effort(rounds=150, seconds=6.0, cap=30.0)
QUICK = Effort(rounds=2, seconds=0.2, cap=1.5)


def measure(contenders: dict[str, Callable[[], object]], effort: Effort) -> dict[str, float]:
    """Seconds of one call of each contender: the minimum over interleaved rounds."""
    repeats = {name: _repeats(call) for name, call in contenders.items()}
    best = dict.fromkeys(contenders, float("inf"))
    spent = dict.fromkeys(contenders, 0.0)
    gc.collect()
    gc.disable()
    try:
        for _ in range(effort.rounds):
            for name, call in contenders.items():
                if spent[name] > effort.seconds:
                    continue
                elapsed = _time(call, repeats[name])
                spent[name] += elapsed
                best[name] = min(best[name], elapsed / repeats[name])
    finally:
        gc.enable()
    return best


def capped(work: Callable[[], object], cap: float) -> object | None:
    """What `work` gives, or None when it takes longer than `cap` seconds.

    It runs in a process of its own, because nothing else ends native code that does not return.

    Raises:
        RuntimeError: When the process ends without a result.
    """
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(work, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(cap) else None
    except EOFError:
        raise RuntimeError("the measured process ended without a result") from None
    finally:
        process.kill()
        process.join()


def _send(work: Callable[[], object], sender: Connection) -> None:
    sender.send(work())


def _repeats(call: Callable[[], object]) -> int:
    repeats = 1
    while (elapsed := _time(call, repeats)) < SAMPLE_SECONDS:
        repeats = max(repeats * 2, int(repeats * SAMPLE_SECONDS / max(elapsed, 1e-9)))
    return repeats


def _time(call: Callable[[], object], repeats: int) -> float:
    numbers = range(repeats)
    start = time.perf_counter()
    for _ in numbers:
        call()
    return time.perf_counter() - start


def seconds(value: float) -> str:
    """A duration for a table."""
    if value < 1e-3:
        return f"{value * 1e6:.3g} us" if value < 9.995e-5 else f"{value * 1e6:.0f} us"
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g} s"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
