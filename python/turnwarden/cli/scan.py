"""`turnwarden scan`: many recorded runs, and which of them went round in circles."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from turnwarden.cli.console import (
    Column,
    Console,
    Progress,
    Style,
    clean,
    counted,
    open_console,
    shorten,
    squeeze,
    width_of,
)
from turnwarden.cli.policy import add_policy_option, read_policy

if TYPE_CHECKING:
    from turnwarden.traces import RunReport, TraceError, UnknownFormatError

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage]

__all__ = ["add_to"]

_LISTED: Final = 100  # runs up to which clean ones are listed too
_NAMED: Final = 10  # files of unknown format that are named
_SHORTEST_NAME: Final = 44  # cells that the name of a run gets on the narrowest terminal


def add_to(commands: Commands) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "scan",
        help="read many recorded runs and tell which went round in circles",
        description="Reads recorded runs from files and folders, plays each to a guard, and "
        "prints a table: runs, calls, loops by type, first warning, wasted calls. Wasted calls "
        "are those of turns that the guard calls a loop.",
        epilog="Exit codes: 0 clean, 1 loops found (with --fail-on-loop), 2 an input could not "
        "be read.",
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="files and folders; - is stdin")
    parser.add_argument("--json", action="store_true", help="print one JSON object a run")
    parser.add_argument(
        "--fail-on-loop", action="store_true", help="exit with code 1 when a run has a loop"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help=f"list clean runs too when there are over {_LISTED}, and name every file of unknown "
        "format",
    )
    add_policy_option(parser)
    add_limit_option(parser)
    parser.set_defaults(command=run)


def add_limit_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--max-mib N`."""
    parser.add_argument(
        "--max-mib",
        metavar="N",
        type=_positive,
        default=64,
        help="longest line or array element that is read, in MiB (default: 64)",
    )


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 1 on")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    from turnwarden.traces import find_files, scan

    config = read_policy(options.policy)
    console = open_console()
    notes = _Notes(names_all=options.all)
    files = find_files(options.paths, on_error=notes.error)
    found = _Findings(console, as_json=options.json, lists_all=options.all)
    interrupted = False
    with Progress(sum(file.size for file in files)) as progress:
        notes.progress = progress
        reports = scan(
            files,
            config=config,
            on_error=notes.error,
            on_unknown=notes.unknown,
            progress=progress.read,
            max_value_bytes=options.max_mib * 1024 * 1024,
        )
        try:
            for report in reports:
                if options.json and sys.stdout.isatty():
                    progress.clear()
                found.add(report)
                progress.run()
        except KeyboardInterrupt:
            interrupted = True
    if not options.json and (found.has_runs or not interrupted):
        found.show()
    notes.name_unknown()
    if interrupted:
        raise KeyboardInterrupt
    if notes.has_errors:
        return 2
    return 1 if options.fail_on_loop and found.has_loops else 0


class _Notes:
    """What is told besides the report: errors at once, unknown formats in the end."""

    _MOST_PER_FILE: Final = 5

    def __init__(self, *, names_all: bool) -> None:
        self.progress: Progress | None = None
        self._names_all = names_all
        self.has_errors = False
        self._unknown: list[UnknownFormatError] = []
        self._in_file: tuple[str, int] = ("", 0)

    def error(self, error: TraceError) -> None:
        """Names what could not be read; in one file the first few places."""
        self.has_errors = True
        path, count = self._in_file
        if error.path != path:
            self._close_file()
            count = 0
        self._in_file = (error.path, count + 1)
        if count < self._MOST_PER_FILE:
            self._say(str(error))

    def unknown(self, unknown: UnknownFormatError) -> None:
        """Remembers a file of a format that has no reader."""
        self._unknown.append(unknown)

    def name_unknown(self) -> None:
        """Counts and names the files of unknown formats."""
        self._close_file()
        if not self._unknown:
            return
        count = len(self._unknown)
        named = count if self._names_all else _NAMED
        names = ", ".join(unknown.path for unknown in self._unknown[:named])
        more = f" and {count - named:,} more (--all names them)" if count > named else ""
        self._say(f"{counted(count, 'file')} of unknown format passed over: {names}{more}")

    def _close_file(self) -> None:
        path, count = self._in_file
        if count > self._MOST_PER_FILE:
            self._say(f"{path}: {count - self._MOST_PER_FILE:,} more places could not be read")
        self._in_file = ("", 0)

    def _say(self, text: str) -> None:
        if self.progress is not None:
            self.progress.clear()
        print(f"turnwarden: {clean(text)}", file=sys.stderr, flush=True)


class _Findings:
    """The reports, gathered for the table or printed as they come."""

    def __init__(self, console: Console, *, as_json: bool, lists_all: bool) -> None:
        self._console = console
        self._as_json = as_json
        self._lists_all = lists_all
        self._rows: list[_Row] = []
        self._by_format: dict[str, _Total] = {}

    @property
    def has_runs(self) -> bool:
        """Whether any run was read to its end."""
        return bool(self._by_format)

    @property
    def has_loops(self) -> bool:
        """Whether any run has a loop."""
        return any(total.looping for total in self._by_format.values())

    def add(self, report: RunReport) -> None:
        """Takes in a report."""
        self._by_format.setdefault(report.format, _Total()).add(report)
        if self._as_json:
            print(json.dumps(report.to_dict(), ensure_ascii=False), flush=True)
            return
        runs = sum(total.runs for total in self._by_format.values())
        if report.has_loop or self._lists_all or runs <= _LISTED:
            self._rows.append(_Row.of(report))

    def show(self) -> None:
        """Prints the tables."""
        totals = self._by_format
        runs = sum(total.runs for total in totals.values())
        if not runs:
            self._console.line("no runs found")
            return
        rows = self._rows
        if runs > _LISTED and not self._lists_all:
            rows = [row for row in rows if row.is_loop]
        if rows:
            self._show_runs(rows)
            self._console.line()
        if runs > len(rows):
            self._console.line(f"{runs - len(rows):,} clean runs are not listed; --all lists them.")
            self._console.line()
        self._show_totals()

    def _show_runs(self, rows: Sequence[_Row]) -> None:
        folder = os.path.commonpath([os.path.dirname(row.path) for row in rows] or [""])
        many = {row.path for row in rows if row.index}
        cells = [row.cells(folder, has_siblings=row.path in many) for row in rows]
        others = sum(max(width_of(row[at]) for row in cells) + 2 for at in range(1, 8))
        room = max(self._console.width - others - 8, _SHORTEST_NAME)
        for row in cells:
            row[0] = _tail(row[0], room)
        columns = (
            Column("run"),
            Column("format"),
            Column("turns", right=True),
            Column("calls", right=True),
            Column("loops"),
            Column("first warning"),
            Column("wasted", right=True),
            Column("outcome"),
        )
        styles: list[Style] = ["warn" if row.is_loop else "plain" for row in rows]
        self._console.table(columns, cells, styles)

    def _show_totals(self) -> None:
        total = _Total()
        for part in self._by_format.values():
            total.join(part)
        types = sorted(total.loops)
        columns = [
            Column("format"),
            *(
                Column(title, right=True)
                for title in ("runs", "calls", "looping", *types, "wasted calls", "would be spared")
            ),
        ]
        parts = sorted(self._by_format.items())
        rows = [part.cells(name, types) for name, part in parts]
        if len(rows) > 1:
            rows.append(total.cells("all", types))
        self._console.table(columns, rows)
        self._console.line()
        self._console.line(_conclusion(total), "warn" if total.looping else "good")


@dataclass(frozen=True, slots=True)
class _Row:
    """What the table says about a run."""

    path: str
    index: int
    format: str
    turns: int
    calls: int
    loops: str
    first_warning: str
    wasted: int
    outcome: str
    is_loop: bool

    @classmethod
    def of(cls, report: RunReport) -> _Row:
        warning = report.first_warning
        types = Counter(loop.type for loop in report.loops)
        return cls(
            path=report.path,
            index=report.index,
            format=report.format,
            turns=report.turns,
            calls=report.calls,
            loops=", ".join(
                name if count == 1 else f"{name} x{count}" for name, count in types.items()
            ),
            first_warning="" if warning is None else f"turn {warning.turn}",
            wasted=report.wasted_calls,
            outcome=_outcome(report.outcome),
            is_loop=report.has_loop,
        )

    def cells(self, folder: str, *, has_siblings: bool) -> list[str]:
        name = os.path.relpath(self.path, folder) if folder and self.path != "-" else self.path
        return [
            clean(f"{name}#{self.index}" if has_siblings else name),
            self.format,
            f"{self.turns:,}",
            f"{self.calls:,}",
            self.loops or "-",
            self.first_warning or "-",
            f"{self.wasted:,}" if self.wasted else "-",
            self.outcome,
        ]


def _outcome(outcome: Mapping[str, Any]) -> str:
    parts = [
        value if isinstance(value, str) else f"{key} {value}" for key, value in outcome.items()
    ]
    return shorten(squeeze(", ".join(parts)), 24)


def _tail(text: str, width: int) -> str:
    """The end of a long path: there stands what tells two files apart."""
    return text if width_of(text) <= width else "…" + text[-(width - 1) :]


@dataclass(slots=True)
class _Total:
    """Sums over runs."""

    runs: int = 0
    calls: int = 0
    looping: int = 0
    wasted: int = 0
    spared: int = 0
    loops: Counter[str] = field(default_factory=Counter[str])

    def add(self, report: RunReport) -> None:
        self.runs += 1
        self.calls += report.calls
        self.looping += report.has_loop
        self.wasted += report.wasted_calls
        self.spared += report.saved.calls
        self.loops.update(loop.type for loop in report.loops)

    def join(self, other: _Total) -> None:
        self.runs += other.runs
        self.calls += other.calls
        self.looping += other.looping
        self.wasted += other.wasted
        self.spared += other.spared
        self.loops.update(other.loops)

    def cells(self, name: str, types: Sequence[str]) -> list[str]:
        counts = (self.runs, self.calls, self.looping, *(self.loops[type] for type in types))
        return [name, *(f"{count:,}" for count in (*counts, self.wasted, self.spared))]


def _conclusion(total: _Total) -> str:
    if not total.looping:
        return f"No loop in {counted(total.runs, 'run')} with {counted(total.calls, 'call')}."
    share = total.wasted / total.calls if total.calls else 0.0
    return (
        f"{total.looping:,} of {counted(total.runs, 'run')} went round in circles: "
        f"{counted(total.wasted, 'wasted call')} of {total.calls:,} ({share:.0%}); "
        f"a guard would have spared {total.spared:,}."
    )
