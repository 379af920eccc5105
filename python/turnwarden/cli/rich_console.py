"""The console in colours; needs `turnwarden[cli]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TextIO

import rich.box
import rich.console
import rich.table
import rich.text

from turnwarden.cli.console import Column, Style

__all__ = ["RichConsole"]

_STYLES: Final[dict[Style, str]] = {
    "plain": "",
    "title": "bold",
    "dim": "dim",
    "good": "green",
    "warn": "yellow",
    "block": "magenta",
    "stop": "bold red",
}


class RichConsole:
    """Prints with colours, tables with lines."""

    def __init__(self, file: TextIO) -> None:
        self._console = rich.console.Console(file=file, highlight=False, soft_wrap=True)

    @property
    def width(self) -> int:
        """How many cells a line has."""
        return self._console.width

    def line(self, text: str = "", style: Style = "plain") -> None:
        """Prints a line."""
        self._console.print(rich.text.Text(text, style=_STYLES[style]))

    def spans(self, *parts: tuple[str, Style]) -> None:
        """Prints a line of parts with styles of their own."""
        text = rich.text.Text()
        for part, style in parts:
            text.append(part, style=_STYLES[style])
        self._console.print(text)

    def table(
        self, columns: Sequence[Column], rows: Sequence[Sequence[str]], styles: Sequence[Style] = ()
    ) -> None:
        """Prints a table; `styles` has one entry a row."""
        table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column in columns:
            justify = "right" if column.right else "left"
            table.add_column(rich.text.Text(column.title), justify=justify, no_wrap=True)
        for at, row in enumerate(rows):
            style = styles[at] if at < len(styles) else "plain"
            table.add_row(*(rich.text.Text(cell) for cell in row), style=_STYLES[style])
        self._console.print(table)
