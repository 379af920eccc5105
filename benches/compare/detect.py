"""What detection costs: all formats against the one that the reply uses, pinned.

Times of both in one run, interleaved, and, where valgrind is installed, instructions
(`--instructions`), which the machine's other work does not disturb.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

import turnwarden

from benches.compare.measure import FULL, Effort, measure, seconds, table
from benches.compare.parse import SMALL, coded, reasoned

ROWS = {
    "workflow JSON": SMALL,
    "reasoning block and fence": reasoned(3000),
    "code in a string": coded(30_000),
}
REPEATS = 2000


def pinned(text: str) -> turnwarden.ResponseParser:
    """A parser for the one format that the reply uses."""
    label = turnwarden.parse(text).format
    assert label is not None
    return turnwarden.ResponseParser([label])


def main(effort: Effort) -> None:
    """Prints the table of times."""
    every = turnwarden.ResponseParser()
    rows: list[list[str]] = []
    for name, text in ROWS.items():
        one = pinned(text)
        times = measure(
            {
                "all": lambda text=text: every.parse(text),
                "pinned": lambda text=text, one=one: one.parse(text),
            },
            effort,
        )
        ratio = times["all"] / times["pinned"]
        rows.append([name, seconds(times["all"]), seconds(times["pinned"]), f"{ratio:.2f}", "1.3"])
    print(table(["reply", "all formats", "one pinned", "all / pinned", "bar"], rows))


def instructions() -> None:
    """Prints the instructions of one parse, of many, less those of none."""

    def count(row: str, parser: str, repeats: int) -> int:
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable]
        arguments = ["-m", "benches.compare.detect", "--work", row, parser, str(repeats)]
        done = subprocess.run(command + arguments, capture_output=True, text=True, check=True)
        return int(done.stderr.rsplit("Collected :", 1)[1].split()[0])

    rows: list[list[str]] = []
    for name in ROWS:
        costs = {
            parser: (count(name, parser, REPEATS) - count(name, parser, 0)) / REPEATS
            for parser in ("all", "pinned")
        }
        ratio = costs["all"] / costs["pinned"]
        rows.append([name, f"{costs['all']:.0f}", f"{costs['pinned']:.0f}", f"{ratio:.2f}", "1.3"])
    print(table(["reply", "all, instructions", "pinned", "all / pinned", "bar"], rows))


def work(row: str, parser: str, repeats: int) -> None:
    """Parses one row so many times: what valgrind counts."""
    text = ROWS[row]
    chosen = pinned(text) if parser == "pinned" else turnwarden.ResponseParser()
    for _ in range(repeats):
        chosen.parse(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    elif sys.argv[1:] == ["--instructions"] and shutil.which("valgrind"):
        instructions()
    else:
        main(FULL)
