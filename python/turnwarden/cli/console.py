"""What the commands print with: plain text anywhere, colours where `rich` and a terminal are.

Names and texts in recorded runs come from models and tools, so everything is made safe for a
terminal first: no control character reaches it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol, TextIO

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "Column",
    "Console",
    "Progress",
    "Style",
    "clean",
    "counted",
    "open_console",
    "shorten",
    "squeeze",
    "width_of",
]

Style = Literal["plain", "title", "dim", "good", "warn", "block", "stop"]

_UNSAFE: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_PLAIN_WIDTH: Final = 100  # where the output is no terminal


def clean(text: str) -> str:
    """Text on one line without anything that a terminal would act upon."""
    text = _UNSAFE.sub(lambda found: _visible(found.group()), text)
    return _SURROGATE.sub("\ufffd", text)


def _visible(character: str) -> str:
    match character:
        case "\n":
            return "\\n"
        case "\t":
            return "\\t"
        case "\r":
            return "\\r"
        case "\x1b":
            return "\\e"
        case _:
            return "\ufffd"


def squeeze(text: str) -> str:
    """Text on one line, each stretch of white space one space; for prose."""
    return clean(" ".join(text.split()))


def shorten(text: str, width: int) -> str:
    """Text cut to a width in cells; what was left out is marked and counted."""
    if width_of(text) <= width:
        return text
    note = f"… +{len(text):,}"
    room = max(width - len(note), 1)
    kept = _fit(text, room)
    return f"{kept}… +{len(text) - len(kept):,}"


def _fit(text: str, width: int) -> str:
    """As many characters from the start as the width holds."""
    used = 0
    for at, character in enumerate(text[: width + 1]):
        used += _cells(character)
        if used > width:
            return text[:at]
    return text[:width]


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and what it counts, such as `1 run` or `2,000 runs`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def width_of(text: str) -> int:
    """How many cells of a terminal a text takes."""
    return len(text) if text.isascii() else sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Column:
    """A column of a table: its title and to which side its cells go."""

    def __init__(self, title: str, *, right: bool = False) -> None:
        self.title = title
        self.right = right


class Console(Protocol):
    """Where a command prints to."""

    @property
    def width(self) -> int:
        """How many cells a line has."""
        ...

    def line(self, text: str = "", style: Style = "plain") -> None:
        """Prints a line; the text must have been cleaned."""
        ...

    def spans(self, *parts: tuple[str, Style]) -> None:
        """Prints a line of parts with styles of their own."""
        ...

    def table(
        self, columns: Sequence[Column], rows: Sequence[Sequence[str]], styles: Sequence[Style] = ()
    ) -> None:
        """Prints a table; `styles` has one entry a row."""
        ...


class PlainConsole:
    """Prints plain text."""

    def __init__(self, file: TextIO, width: int) -> None:
        self._file = file
        self._width = width

    @property
    def width(self) -> int:
        """How many cells a line has."""
        return self._width

    def line(self, text: str = "", style: Style = "plain") -> None:
        """Prints a line."""
        del style
        self._file.write(text.rstrip() + "\n")

    def spans(self, *parts: tuple[str, Style]) -> None:
        """Prints a line of parts."""
        self.line("".join(text for text, _ in parts))

    def table(
        self, columns: Sequence[Column], rows: Sequence[Sequence[str]], styles: Sequence[Style] = ()
    ) -> None:
        """Prints a table, its columns as wide as their widest cell."""
        del styles
        widths = [
            max(width_of(column.title), *(width_of(row[at]) for row in rows), 0)
            for at, column in enumerate(columns)
        ]
        titles = [column.title for column in columns]
        self.line(_row(titles, columns, widths))
        self.line("  ".join("-" * width for width in widths))
        for row in rows:
            self.line(_row(row, columns, widths))


def _row(cells: Iterable[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    padded: list[str] = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        space = " " * (width - width_of(cell))
        padded.append(space + cell if column.right else cell + space)
    return "  ".join(padded)


def open_console(file: TextIO | None = None) -> Console:
    """The console for a stream: rich on a terminal when `turnwarden[cli]` is installed."""
    stream = sys.stdout if file is None else file
    is_terminal = stream.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else _PLAIN_WIDTH
    if is_terminal and _may_colour() and importlib.util.find_spec("rich") is not None:
        from turnwarden.cli.rich_console import RichConsole

        return RichConsole(stream)
    return PlainConsole(stream, max(width, 40))


def _may_colour() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Progress:
    """A bar on the error stream while files are read; nothing where that is no terminal.

    Args:
        total: How many bytes there are to read.
        file: The stream; the error stream by default.
    """

    _INTERVAL: Final = 0.1
    _CELLS: Final = 24

    def __init__(self, total: int, file: TextIO | None = None) -> None:
        self._file = sys.stderr if file is None else file
        self._is_shown = self._file.isatty() and os.environ.get("TERM") != "dumb"
        self._total = max(total, 1)
        self._done = 0
        self._runs = 0
        self._next = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()

    def read(self, count: int) -> None:
        """Counts bytes that were read."""
        self._done += count
        self._draw()

    def run(self) -> None:
        """Counts a run that is done."""
        self._runs += 1
        self._draw()

    def clear(self) -> None:
        """Takes the bar away, so that a line can be printed."""
        if self._is_shown:
            self._file.write("\r\x1b[K")
            self._file.flush()
            self._next = 0.0

    def _draw(self) -> None:
        if not self._is_shown:
            return
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._INTERVAL
        share = min(self._done / self._total, 1.0)
        filled = int(share * self._CELLS)
        bar = "█" * filled + "░" * (self._CELLS - filled)
        text = f"{bar} {share:4.0%}  {self._runs:,} runs"
        self._file.write(f"\r{text}\x1b[K")
        self._file.flush()
