"""What a docstring says of a function and its parameters: Google, NumPy or Sphinx style."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

__all__ = ["read_docstring"]

_PARAMETERS: Final = frozenset(
    {"args", "arguments", "parameters", "params", "keyword args", "other parameters"}
)
_HEADINGS: Final = _PARAMETERS | {
    "returns", "return", "yields", "yield", "raises", "attributes", "example", "examples",
    "note", "notes", "see also", "references", "warning", "warnings", "warns", "todo",
}  # fmt: skip
_SPHINX: Final = re.compile(r":(\w+)([^:]*):\s*(.*)")
_GOOGLE_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s*(.*)")
_NUMPY_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?$")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Read a docstring.

    Returns:
        The text before the first section, and the text for each parameter.

    Example:
        >>> read_docstring('''Add numbers.
        ...
        ...     Args:
        ...         a: The first.
        ... ''')
        ('Add numbers.', {'a': 'The first.'})
    """
    lines = inspect.cleandoc(text).splitlines()
    starts = [position for position in range(len(lines)) if _starts_section(lines, position)]
    summary = lines[: starts[0]] if starts else lines
    documented: dict[str, str] = {}
    for start, end in pairwise([*starts, len(lines)]):
        documented.update(_parameters_in(lines[start:end]))
    return "\n".join(summary).strip(), documented


def _starts_section(lines: Sequence[str], position: int) -> bool:
    line = lines[position]
    if line.startswith(":"):
        return _SPHINX.match(line) is not None
    is_underlined = position + 1 < len(lines) and _is_rule(lines[position + 1])
    has_colon = line.endswith(":")
    return line.rstrip(":").lower() in _HEADINGS and (has_colon or is_underlined)


def _is_rule(line: str) -> bool:
    return len(line) >= 3 and set(line) == {"-"}


def _parameters_in(section: Sequence[str]) -> Iterator[tuple[str, str]]:
    heading, body = section[0], section[1:]
    if heading.startswith(":"):
        return _sphinx_parameter(heading, body)
    if heading.rstrip(":").lower() not in _PARAMETERS:
        return iter(())
    if body and _is_rule(body[0]):
        return _entries(body[1:], _NUMPY_ENTRY)
    return _entries(inspect.cleandoc("\n".join(["", *body])).splitlines(), _GOOGLE_ENTRY)


def _sphinx_parameter(heading: str, body: Iterable[str]) -> Iterator[tuple[str, str]]:
    match = _SPHINX.match(heading)
    if match and match[1] in ("param", "parameter", "arg", "argument") and match[2].strip():
        yield match[2].split()[-1].lstrip("*"), _joined([match[3], *body])


def _entries(lines: Iterable[str], pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Entries begin at the margin; what is indented below belongs to them."""
    name = ""
    texts: list[str] = []
    for line in lines:
        match = None if line.startswith((" ", "\t")) else pattern.match(line)
        if match is None:
            texts.append(line)
            continue
        if name:
            yield name, _joined(texts)
        name = match[1]
        texts = [match[2]] if pattern is _GOOGLE_ENTRY else []
    if name:
        yield name, _joined(texts)


def _joined(lines: Iterable[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())
