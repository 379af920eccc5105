"""`turnwarden replay`: one recorded run, turn by turn, as a guard would have seen it."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from turnwarden.cli.console import (
    Console,
    Style,
    clean,
    counted,
    open_console,
    shorten,
    squeeze,
    width_of,
)
from turnwarden.cli.errors import CommandError
from turnwarden.cli.policy import add_policy_option, read_policy
from turnwarden.cli.scan import add_limit_option

if TYPE_CHECKING:
    from turnwarden.traces import ReplayedCall, ReplayedTurn, Run, RunReport, TraceError

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage]

__all__ = ["add_to"]

_INDENT: Final = " " * 12


def add_to(commands: Commands) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser(
        "replay",
        help="show one recorded run turn by turn, and what a guard would have done",
        description="Shows one recorded run turn by turn: the calls found, what was repaired, "
        "iteration and loop status, what the guard would have put into the prompt, where it "
        "would have warned, blocked or stopped, and what that would have saved.",
    )
    parser.add_argument("file", metavar="FILE", help="the file; - is stdin")
    parser.add_argument(
        "--run",
        metavar="N",
        help="which run of the file: its index from 0, or its id (default: the first)",
    )
    parser.add_argument(
        "--full", action="store_true", help="show arguments, results and prompts in full"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, as scan does")
    add_policy_option(parser)
    add_limit_option(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    from turnwarden.traces import UnknownFormatError, read_runs, replay

    config = read_policy(options.policy)
    errors: list[TraceError] = []
    runs = read_runs(
        options.file, on_error=errors.append, max_value_bytes=options.max_mib * 1024 * 1024
    )
    try:
        chosen = _choose(runs, options, errors)
        played = replay(chosen, config=config)
        if options.json:
            print(json.dumps(played.finish().to_dict(), ensure_ascii=False))
        else:
            screen = _Screen(open_console(), is_full=options.full)
            screen.open(chosen, config_file=options.policy)
            for turn in played:
                screen.turn(turn)
            screen.close(played.report)
            if options.run is None and next(runs, None) is not None:
                screen.note("The file holds more runs; --run N shows another one.")
    except UnknownFormatError as unknown:
        raise CommandError(str(unknown)) from unknown
    if errors:
        more = f" (and {len(errors) - 1:,} more such places)" if len(errors) > 1 else ""
        raise CommandError(f"{errors[0]}{more}")
    return 0


def _choose(runs: Iterator[Run], options: argparse.Namespace, errors: list[TraceError]) -> Run:
    wanted: str | None = options.run
    count = 0
    for run in runs:
        if wanted is None or wanted in (str(run.index), run.id):
            return run
        count += 1
    if errors:
        raise CommandError(str(errors[0]))
    if count == 0:
        raise CommandError(f"{options.file}: no runs in it")
    raise CommandError(f"{options.file}: no run {wanted}; it holds {count:,}, counted from 0")


@dataclass(slots=True)
class _Repeat:
    """Equal calls with equal results."""

    name: str
    arguments: str
    turns: list[int]


class _Screen:
    """Shows turns as they come."""

    _MOST_REPEATS: Final = 5
    _MOST_SIGNATURES: Final = 10_000

    def __init__(self, console: Console, *, is_full: bool) -> None:
        self._console = console
        self._is_full = is_full
        self._shown_prompt: str | None = None
        self._repeats: dict[tuple[str, int], _Repeat] = {}

    def open(self, run: Run, *, config_file: str | None) -> None:
        """Says which run this is."""
        self._console.line(clean(f"{run.name}  ({run.source}, {run.path})"), "title")
        if config_file is not None:
            self._console.line(clean(f"guard set up by {config_file}"), "dim")

    def turn(self, turn: ReplayedTurn) -> None:
        """Shows one turn."""
        self._console.line()
        self._head(turn)
        self._prompt(turn)
        if turn.text:
            self._pair("says", squeeze(turn.text), "dim")
        for call in turn.calls:
            self._call(turn, call)
        for name in turn.incomplete:
            self._pair("cut off", clean(f"call of {name or '(no name)'}: not run"), "warn")
        for repair, count in _counted(turn.repairs):
            self._pair("repaired", repair if count == 1 else f"{repair} x{count}", "good")
        for fault in turn.faults:
            self._pair("fault", squeeze(fault), "warn")
        if turn.refusal is not None:
            self._pair("refused", squeeze(turn.refusal), "warn")
        self._verdict(turn)

    def close(self, report: RunReport) -> None:
        """Shows what came of it."""
        self._console.line()
        self._console.line("summary", "title")
        for label, text, style in _summary(report):
            self._pair(label, text, style)
        for repeat in self._most_repeated():
            turns = ", ".join(str(turn) for turn in repeat.turns[:8])
            more = ", …" if len(repeat.turns) > 8 else ""
            said = f"x{len(repeat.turns)} with the same result, turns {turns}{more}: "
            self._pair("repeated", f"{said}{clean(repeat.name)} {clean(repeat.arguments)}", "warn")

    def note(self, text: str) -> None:
        """Says something besides."""
        self._console.line()
        self._console.line(text, "dim")

    def _head(self, turn: ReplayedTurn) -> None:
        bar = _bar(turn.number, turn.iteration_limit)
        parts: list[tuple[str, Style]] = [(f"turn {turn.number:<4} ", "title"), (bar, "plain")]
        if turn.timestamp is not None:
            time = datetime.fromtimestamp(turn.timestamp, UTC)
            parts.append((f"  {time:%H:%M:%S}", "dim"))
        if turn.tokens is not None:
            parts.append((f"  {turn.tokens.input:,} + {turn.tokens.output:,} tokens", "dim"))
        if turn.syntax is not None:
            parts.append((f"  {clean(turn.syntax)}", "dim"))
        if turn.ended_by is not None:
            parts.append((f"  after the end ({turn.ended_by})", "dim"))
        self._console.spans(*parts)

    def _prompt(self, turn: ReplayedTurn) -> None:
        """The prompt's addition, where it says more than the one before it did."""
        if turn.prompt is None:
            return
        gist = _COUNTS.sub("#", turn.prompt)
        if gist == self._shown_prompt and not self._is_full:
            return
        self._shown_prompt = gist
        for at, line in enumerate(turn.prompt.strip().splitlines()):
            self._pair("prompt" if at == 0 else "", f"| {clean(line)}", "dim", keep=True)

    def _call(self, turn: ReplayedTurn, call: ReplayedCall) -> None:
        mark = "  (does not run)" if not call.allowed and turn.action != "continue" else ""
        room = self._console.width - len(_INDENT) - width_of(call.name) - len(mark) - 1
        arguments = clean(call.arguments)
        if not self._is_full:
            arguments = shorten(arguments, max(room, 20))
        self._pair(
            "call", f"{clean(call.name) or '(no name)'} {arguments}{mark}", "plain", keep=True
        )
        if call.result is None:
            self._pair("", "-> no result recorded", "dim")
            return
        self._remember(turn, call)
        text = call.result if self._is_full else squeeze(call.result)
        lines = text.splitlines() or [""]
        label = "-> error: " if call.is_error else "-> "
        for at, line in enumerate(lines):
            start = label if at == 0 else "   "
            style: Style = "warn" if call.is_error else "dim"
            self._pair("", start + (clean(line) or "(empty)" if at == 0 else clean(line)), style)

    def _verdict(self, turn: ReplayedTurn) -> None:
        if turn.repetition is not None:
            self._pair("LOOP", f"loop.text: {turn.repetition}", "warn")
        action = str(turn.action)
        style = _ACTION_STYLES.get(action)
        if style is None:
            return
        said = turn.message if self._is_full else turn.loop or turn.message
        self._pair(action.upper(), f"{turn.reason or ''}: {squeeze(said or '')}", style)

    def _pair(self, label: str, text: str, style: Style, *, keep: bool = False) -> None:
        """A line with a label; longer text is cut, unless all is to be shown."""
        if not self._is_full and not keep:
            text = shorten(text, max(self._console.width - len(_INDENT), 20))
        self._console.spans((f"  {label:<10}", style), (text, style))

    def _remember(self, turn: ReplayedTurn, call: ReplayedCall) -> None:
        key = (call.signature, hash(call.result))
        repeat = self._repeats.get(key)
        if repeat is None:
            if len(self._repeats) >= self._MOST_SIGNATURES:
                return
            arguments = shorten(call.arguments, 200)
            repeat = self._repeats[key] = _Repeat(call.name, arguments, [])
        repeat.turns.append(turn.number)

    def _most_repeated(self) -> list[_Repeat]:
        repeats = [repeat for repeat in self._repeats.values() if len(repeat.turns) > 1]
        repeats.sort(key=lambda repeat: -len(repeat.turns))
        return repeats[: self._MOST_REPEATS]


_ACTION_STYLES: Final[dict[str, Style]] = {"warn": "warn", "block": "block", "stop": "stop"}
_COUNTS: Final = re.compile(r"[\d█░]+")
_CELLS: Final = 20


def _bar(number: int, limit: int) -> str:
    filled = min(number * _CELLS // max(limit, 1), _CELLS)
    return f"{'█' * filled}{'░' * (_CELLS - filled)} {number}/{limit}"


def _counted(names: Sequence[str]) -> list[tuple[str, int]]:
    return list(Counter(names).items())


def _summary(report: RunReport) -> Iterator[tuple[str, str, Style]]:
    """The lines of the summary: label, text and style."""
    tools = ", ".join(f"{clean(name)} {count:,}" for name, count in report.tools.most_common())
    took = "" if report.seconds is None else f" in {_duration(report.seconds)}"
    yield "run", f"{counted(report.turns, 'turn')}, {counted(report.calls, 'call')}{took}", "plain"
    if tools:
        yield "tools", tools, "plain"
    if report.errors:
        yield "errors", counted(report.errors, "result is an error", "results are errors"), "warn"
    if report.outcome:
        ended = ", ".join(f"{key}: {value}" for key, value in report.outcome.items())
        yield "outcome", squeeze(ended), "plain"
    if report.repaired:
        kinds = ", ".join(_times(kind, count) for kind, count in report.repairs.most_common())
        yield "healed", f"{counted(report.repaired, 'reply', 'replies')}: {kinds}", "good"
    if report.refused:
        yield (
            "refused",
            f"{counted(report.refused, 'reply', 'replies')} of which nothing ran",
            "warn",
        )
    yield from _loop_lines(report)
    if report.limit_at is not None:
        beyond = report.turns - report.limit_at + 1
        yield (
            "limit",
            f"iteration limit {report.iteration_limit:,} reached at turn {report.limit_at:,}: the "
            f"last {'turn' if beyond == 1 else f'{beyond:,} turns'} would not have run",
            "stop",
        )


def _loop_lines(report: RunReport) -> Iterator[tuple[str, str, Style]]:
    warning = report.first_warning
    if warning is None:
        yield "loops", "none", "good"
        if report.stopped_at is not None:  # a budget was used up
            yield "stops", f"at turn {report.stopped_at}", "stop"
            yield "saves", _savings(report), "good"
        return
    for loop in report.loops:
        where = (
            f"turn {loop.first_turn}"
            if loop.first_turn == loop.last_turn
            else f"turns {loop.first_turn} to {loop.last_turn}"
        )
        yield "loop", f"{loop.type}, {where}: {squeeze(loop.description)}", "warn"
    yield "warns", f"at turn {warning.turn} ({warning.reason})", "warn"
    if report.blocked_at is not None:
        yield "blocks", f"at turn {report.blocked_at}", "block"
    if report.stopped_at is not None:
        yield "stops", f"at turn {report.stopped_at}", "stop"
    yield "wasted", f"{counted(report.wasted_calls, 'call')} in turns that are a loop", "warn"
    yield "saves", _savings(report), "good"


def _savings(report: RunReport) -> str:
    saved = report.saved
    share = saved.calls / report.calls if report.calls else 0.0
    text = f"{saved.calls:,} of {report.calls:,} calls ({share:.0%})"
    if saved.turns:
        text += f", {saved.turns:,} of {report.turns:,} replies"
    if report.tokens is not None:
        return f"{text}, {saved.tokens or 0:,} of {report.tokens.total:,} tokens"
    return f"{text}, {saved.characters:,} of {report.characters:,} characters"


def _times(name: str, count: int) -> str:
    return name if count == 1 else f"{name} x{count}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
