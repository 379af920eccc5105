"""Finds the reader for a file, and the files in a folder.

A new format is a module with `NAME`, `detect` and `runs`, and its line in `READERS`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from turnwarden.traces import claude_code, mini_swe_agent, openai_chat, swe_agent, tau_bench
from turnwarden.traces.model import ErrorHandler, Run, TraceError
from turnwarden.traces.source import MAX_VALUE_BYTES, Source, UnknownFormatError, Value

__all__ = ["READERS", "Reader", "read_runs"]

# How far into a file a value of a known format is looked for.
_MOST_VALUES: Final = 200
_MOST_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reader:
    """How one format is read.

    Attributes:
        name: What the format is called in reports.
        detect: Whether a value of a file is of the format.
        runs: The runs in the values of a file.
    """

    name: str
    detect: Callable[[object], bool]
    runs: Callable[[Source, Iterator[Value]], Iterator[Run]]


# In order: the first that knows the file reads it, the most general comes last.
READERS: Final = tuple(
    Reader(module.NAME, module.detect, module.runs)
    for module in (claude_code, swe_agent, mini_swe_agent, tau_bench, openai_chat)
)


def read_runs(
    path: str | os.PathLike[str],
    *,
    on_error: ErrorHandler | None = None,
    max_value_bytes: int = MAX_VALUE_BYTES,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Run]:
    """Reads the recorded runs of one file; the format is told from the content.

    Memory: one JSON value (a line, or an element of an array) at a time, at most
    `max_value_bytes` of text. A run's turns must be read before the next run is asked for.

    Args:
        path: The file, or `-` for standard input.
        on_error: Told of every part that cannot be read; reading goes on behind it where that is
            possible. Without it such a part raises.
        max_value_bytes: The longest JSON value that is read.
        progress: Told how many bytes were read, each time some were.

    Raises:
        UnknownFormatError: No reader knows the format.
        TraceError: The file, or a part of it, cannot be read.

    Example:
        >>> from turnwarden.traces import read_runs
        >>> for run in read_runs("examples/runs/healthy.jsonl"):
        ...     print(run.source, sum(1 for turn in run))
        openai-chat 8
    """
    try:
        yield from _read(path, on_error, max_value_bytes, progress)
    except TraceError as error:
        if on_error is None:
            raise
        on_error(error)
    except OSError as error:
        failure = TraceError(os.fspath(path), (error.strerror or str(error)).lower())
        if on_error is None:
            raise failure from error
        on_error(failure)


def _read(
    path: str | os.PathLike[str],
    on_error: ErrorHandler | None,
    max_value_bytes: int,
    progress: Callable[[int], None] | None,
) -> Iterator[Run]:
    source = Source(path, on_error=on_error, max_value_bytes=max_value_bytes, progress=progress)
    values = source.values()
    reader, passed = _find_reader(source, values)
    if reader is None:
        if not passed and source.failures:
            return  # all of it was bad, and reported
        raise UnknownFormatError(source.path, "JSON of no format that has a reader")
    for run in reader.runs(source, itertools.chain(passed, values)):
        yield run
        for _ in run:  # what the caller left is not part of the next run
            pass
    source.close()


def _find_reader(source: Source, values: Iterator[Value]) -> tuple[Reader | None, list[Value]]:
    """The reader that knows one of the first values, and the values read to find it."""
    passed: list[Value] = []
    for value in values:
        passed.append(value)
        for reader in READERS:
            if reader.detect(value.data):
                return reader, passed
        if len(passed) >= _MOST_VALUES or source.bytes_read > _MOST_BYTES:
            break
    return None, passed
