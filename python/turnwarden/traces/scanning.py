"""Replays every run in files and folders, and reports on each."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from turnwarden import WorkflowGuardConfig
from turnwarden.traces.model import ErrorHandler, TraceError
from turnwarden.traces.reading import read_runs
from turnwarden.traces.replaying import RunReport, replay
from turnwarden.traces.source import MAX_VALUE_BYTES, UnknownFormatError

__all__ = ["FoundFile", "find_files", "scan"]

# In a folder, a file with one of these endings should hold a run: when it is empty or no text,
# that is an error. Any other such file is of no format that we know.
_RUN_ENDINGS: Final = frozenset((".json", ".jsonl", ".ndjson", ".traj"))
_MOST_DOUBTS: Final = 100
_PASSED_FOLDERS: Final = frozenset(("node_modules", "__pycache__"))


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to scan.

    Attributes:
        path: The file, `-` for standard input.
        size: Its size in bytes; 0 when that is not known.
        is_named: Whether it was named itself, not found in a folder.
    """

    path: str
    size: int
    is_named: bool


def find_files(
    paths: Iterable[str | os.PathLike[str]], *, on_error: ErrorHandler | None = None
) -> list[FoundFile]:
    """The files behind paths: the path itself, or all that is in a folder, sorted by name.

    Hidden folders inside a folder are passed over, links to folders are not followed, and a file
    that is met twice is listed once.

    Args:
        paths: Files and folders; `-` is standard input.
        on_error: Told of what cannot be read; without it that raises.

    Raises:
        TraceError: A path does not exist, may not be read, or is a folder without files.
    """

    def fail(path: str, reason: str) -> None:
        error = TraceError(path, reason)
        if on_error is None:
            raise error
        on_error(error)

    files: list[FoundFile] = []
    seen: set[str] = set()
    for given in paths:
        path = os.fspath(given)
        if path == "-":
            files.append(FoundFile(path, 0, is_named=True))
            continue
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            fail(path, (error.strerror or str(error)).lower())
            continue
        found = _files_in(path, fail) if stat.S_ISDIR(mode) else [path]
        if stat.S_ISDIR(mode) and not found:
            fail(path, "no files in this folder")
        for name in found:
            real = os.path.realpath(name)
            if real not in seen:
                seen.add(real)
                files.append(FoundFile(name, _size(name), is_named=name == path))
    return files


def _files_in(folder: str, fail: Callable[[str, str], None]) -> list[str]:
    def refuse(error: OSError) -> None:
        fail(os.fspath(error.filename or folder), (error.strerror or str(error)).lower())

    found: list[str] = []
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _PASSED_FOLDERS
        )
        paths = (os.path.join(parent, name) for name in sorted(names))
        found.extend(path for path in paths if os.path.isfile(path))
    return found


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def scan(
    paths: Iterable[str | os.PathLike[str] | FoundFile],
    *,
    config: WorkflowGuardConfig | None = None,
    on_error: ErrorHandler | None = None,
    on_unknown: Callable[[UnknownFormatError], None] | None = None,
    progress: Callable[[int], None] | None = None,
    max_value_bytes: int = MAX_VALUE_BYTES,
) -> Iterator[RunReport]:
    """Replays every run in files and folders, one after another, in little memory.

    Args:
        paths: Files and folders, or what `find_files` found.
        config: How the guard is set up; the defaults of `WorkflowGuard` when None.
        on_error: Told of what cannot be read; the scan goes on. Without it that raises.
        on_unknown: Told of files in formats that no reader knows.
        progress: Told how many bytes were read, each time some were.
        max_value_bytes: The longest line or array element that is read.

    Yields:
        A report a run.

    Raises:
        TraceError: Something cannot be read, and there is no `on_error`.

    Example:
        >>> from turnwarden.traces import scan
        >>> [report.run for report in scan(["examples/runs"]) if report.has_loop]
        ['looping.jsonl#0']
    """
    for path in paths:
        found = [path] if isinstance(path, FoundFile) else find_files([path], on_error=on_error)
        for file in found:
            yield from _scan_file(file, config, on_error, on_unknown, progress, max_value_bytes)


def _scan_file(
    file: FoundFile,
    config: WorkflowGuardConfig | None,
    on_error: ErrorHandler | None,
    on_unknown: Callable[[UnknownFormatError], None] | None,
    progress: Callable[[int], None] | None,
    max_value_bytes: int,
) -> Iterator[RunReport]:
    read = 0

    def count(size: int) -> None:
        nonlocal read
        read += size
        if progress is not None:
            progress(size)

    doubts = None if _should_hold_runs(file) else _Doubts()
    handler = on_error if doubts is None else doubts.add
    has_runs = False
    unknown: UnknownFormatError | None = None
    try:
        runs = read_runs(
            file.path, on_error=handler, max_value_bytes=max_value_bytes, progress=count
        )
        for run in runs:
            has_runs = True
            yield replay(run, config=config, prompts=False).finish()
    except UnknownFormatError as answer:
        unknown = answer
    if doubts is not None:
        unknown = unknown or doubts.settle(file, on_error, has_runs=has_runs)
    if unknown is not None and on_unknown is not None:
        on_unknown(unknown)
    if progress is not None:
        progress(max(file.size - read, 0))


def _should_hold_runs(file: FoundFile) -> bool:
    return file.is_named or os.path.splitext(file.path)[1].lower() in _RUN_ENDINGS


class _Doubts:
    """Errors in a file that lay in a folder and may be something else altogether."""

    def __init__(self) -> None:
        self._errors: list[TraceError] = []

    def add(self, error: TraceError) -> None:
        if len(self._errors) < _MOST_DOUBTS:
            self._errors.append(error)

    def settle(
        self, file: FoundFile, on_error: ErrorHandler | None, *, has_runs: bool
    ) -> UnknownFormatError | None:
        """Errors in a file with runs are errors; a file without runs is of an unknown format."""
        for error in self._errors:
            if not has_runs and not isinstance(error.__cause__, OSError):
                return UnknownFormatError(file.path, error.reason)
            if on_error is None:
                raise error
            on_error(error)
        return None
