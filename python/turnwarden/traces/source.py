"""Opens a file of recorded runs and gives its JSON values one at a time.

Three shapes of files hold runs: one JSON value, a JSON array of values, and JSON lines. All three
become a stream of `Value`s: the one object, the elements of the array, or the lines. At most one
value is held in memory, and no value larger than `max_value_bytes`; a longer one is an error, not
an empty machine. Cost: linear in the file.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, Final, cast

from turnwarden import TurnwardenError
from turnwarden.traces.model import ErrorHandler, TraceError

__all__ = ["MAX_VALUE_BYTES", "Source", "UnknownFormatError", "Value"]

MAX_VALUE_BYTES: Final = 64 * 1024 * 1024
_CHUNK: Final = 256 * 1024
_HEAD: Final = 64 * 1024
_BYTE_ORDER_MARK: Final = codecs.BOM_UTF8
_JSON_SPACE: Final = b" \t\r\n"
_DECODER: Final = json.JSONDecoder()
_COMPRESSED: Final = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PK\x03\x04": "zip",
}
_CUT_OFF: Final = "the JSON is cut off"
_RUN_DEPTH: Final = 2  # an array of records, each with its array of messages
_SPACE: Final = re.compile(r"[ \t\r\n]*")


class UnknownFormatError(TurnwardenError, ValueError):
    """The file is of no format that has a reader; it may be fine all the same.

    Attributes:
        path: The file, `-` for standard input.
        reason: What was found instead.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(path, reason)

    def __str__(self) -> str:
        return f"{self.path}: unknown format ({self.reason})"


@dataclass(frozen=True, slots=True)
class Value:
    """One JSON value of the file.

    Attributes:
        data: The value.
        place: Where it stands, for messages: `line 7` or `element 7`.
        offset: Byte offset of its line; -1 where values cannot be read again by offset.
        group: Which array of the file it is an element of, -1 for none.
    """

    data: Any
    place: str
    offset: int = -1
    group: int = -1


class Source:
    """A file that is read forward, value by value.

    Args:
        path: A file, or `-` for standard input.
        on_error: Told of values that cannot be read; without it they raise.
        max_value_bytes: The longest line or array element that is read.
        progress: Told of every stretch of bytes read.

    Attributes:
        path: The file.
        bytes_read: How far reading has come.
        failures: How many parts could not be read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        on_error: ErrorHandler | None = None,
        max_value_bytes: int = MAX_VALUE_BYTES,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self._on_error = on_error
        self._max = max_value_bytes
        self._progress = progress
        self.bytes_read = 0
        self.failures = 0
        self._file = _open(self.path)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __del__(self) -> None:
        # A run may be read after the iterator that gave it is gone, so the file stays open as
        # long as anything can read from it.
        file = getattr(self, "_file", None)
        if file is not None:
            file.close()

    def fail(self, reason: str, place: str | None = None) -> None:
        """Reports what could not be read, or raises it when nobody listens."""
        self.failures += 1
        error = TraceError(self.path, reason, place)
        if self._on_error is None:
            raise error
        self._on_error(error)

    def values(self) -> Iterator[Value]:
        """The values of the file in order.

        Raises:
            UnknownFormatError: The file holds no JSON.
            TraceError: The file is empty, is no text, or a value cannot be read.
        """
        head = self._head()
        if head.startswith(b"["):
            yield from self._elements()
        elif self._is_lines(head):
            yield from self._lines()
        else:
            yield from self._elements()

    def value_at(self, offset: int) -> Any:
        """Reads the line at a byte offset that `values` gave, once that has come to its end."""
        self._file.seek(offset)
        return _decode(self._file.readline(self._max + 1))

    def _head(self) -> bytes:
        """The file's beginning from the first byte that is no white space, once it looks sound."""
        while True:
            start = self._file.tell()
            head = self._file.read(_HEAD)
            if not head:
                raise TraceError(self.path, "the file is empty")
            if start == 0:
                if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    raise TraceError(self.path, "UTF-16 text; save it as UTF-8")
                for mark, program in _COMPRESSED.items():
                    if head.startswith(mark):
                        raise TraceError(self.path, f"compressed with {program}; unpack it first")
                if head.startswith(_BYTE_ORDER_MARK):
                    head = head[len(_BYTE_ORDER_MARK) :]
                    start += len(_BYTE_ORDER_MARK)
            if b"\0" in head:
                raise TraceError(self.path, "binary data, no recorded run")
            stripped = head.lstrip(_JSON_SPACE)
            if stripped:
                break
        self._file.seek(start + len(head) - len(stripped))
        if stripped[:1] not in (b"{", b"["):
            raise UnknownFormatError(self.path, "no JSON")
        return stripped

    def _is_lines(self, head: bytes) -> bool:
        """Whether each line is a value of its own, judged by the first two."""
        first, newline, rest = head.partition(b"\n")
        first = first.strip()
        if not newline or isinstance(_try_decode(first), dict):
            return True
        if first.endswith((b"{", b"[", b",")):
            return False
        # A broken line may come first, but a laid-out object has no object on its second line.
        return isinstance(_try_decode(rest.partition(b"\n")[0]), dict)

    def _lines(self) -> Iterator[Value]:
        number = 0
        offset = self._file.tell()
        while True:
            line = self._file.readline(self._max + 1)
            if not line:
                return
            number += 1
            start, offset = offset, offset + len(line)
            if len(line) > self._max:
                offset += self._skip_line(line)
                self.fail(self._too_long(), f"line {number}")
                continue
            self._report(len(line))
            if not line.strip(_JSON_SPACE):
                continue
            try:
                data = _decode(line)
            except (ValueError, RecursionError) as error:
                reason = _explain(error, cut_off=not line.endswith(b"\n"))
                self.fail(reason, f"line {number}")
                if reason == _CUT_OFF and (rest := _complete_part(line.decode("utf-8", "replace"))):
                    yield Value(rest, f"line {number}", start)
                continue
            yield Value(data, f"line {number}", start)

    def _skip_line(self, line: bytes) -> int:
        """Passes over the rest of an over-long line; returns how many bytes that were."""
        skipped = 0
        self._report(len(line))
        while not line.endswith(b"\n"):
            line = self._file.readline(_CHUNK)
            if not line:
                break
            skipped += len(line)
            self._report(len(line))
        return skipped

    def _elements(self) -> Iterator[Value]:
        """Values one after another, arrays among them taken apart into their elements.

        Each element is read by the standard library's scanner from a window of text. When the
        window ends inside the element it is doubled and the element read again, so the cost stays
        linear.
        """
        window = _Window(self._file, self._report)
        group = -1
        count = 0
        inside = False
        while True:
            character = window.skip_space()
            if character == "":
                if inside:
                    self.fail("the file is cut off: its array is never closed", f"element {count}")
                return
            if not inside and character == "[":
                window.advance(1)
                inside, count, group = True, 0, group + 1
                continue
            if inside and character == "]":
                window.advance(1)
                inside = False
                continue
            if inside and count and character == ",":
                window.advance(1)
                character = window.skip_space()
            count += 1
            place = f"element {count}" if inside else f"value {count}"
            try:
                data = window.value(self._max)
            except _TooLong:
                self.fail(self._too_long(), place)
                return
            except (ValueError, RecursionError) as error:
                reason = _explain(error, cut_off=window.ended)
                self.fail(reason, place)
                if reason == _CUT_OFF and (rest := _complete_part(window.rest())):
                    yield Value(rest, place, group=group if inside else -1)
                return
            yield Value(data, place, group=group if inside else -1)

    def _report(self, count: int) -> None:
        self.bytes_read += count
        if self._progress is not None:
            self._progress(count)

    def _too_long(self) -> str:
        return f"longer than {self._max:,} bytes; raise the limit to read it"


class _TooLong(Exception):  # noqa: N818 - never leaves this file
    """A value is longer than the limit."""


class _Window:
    """A stretch of the file's text, grown on demand and forgotten behind the reader."""

    def __init__(self, file: IO[bytes], report: Callable[[int], None]) -> None:
        self._file = file
        self._report = report
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._at = 0
        self.ended = False

    def skip_space(self) -> str:
        """Moves to the next character that is no white space and returns it; empty at the end."""
        while True:
            text = self._text
            while self._at < len(text) and text[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(text):
                return text[self._at]
            if not self._grow(_CHUNK):
                return ""

    def advance(self, count: int) -> None:
        """Passes over characters."""
        self._at += count

    def value(self, limit: int) -> Any:
        """Reads the JSON value that begins here."""
        if self._at > _CHUNK:
            self._text = self._text[self._at :]
            self._at = 0
        while True:
            try:
                data, end = _DECODER.raw_decode(self._text, self._at)
                # A number that ends with the window may go on behind it.
                if end < len(self._text) or not self._grow(_CHUNK):
                    self._at = end
                    return data
            except ValueError:
                held = len(self._text) - self._at
                if held > limit:
                    raise _TooLong from None
                if not self._grow(max(held, _CHUNK)):
                    raise

    def rest(self) -> str:
        """The text that has been read from here on."""
        return self._text[self._at :]

    def _grow(self, count: int) -> bool:
        """Reads more; False at the end of the file."""
        if self.ended:
            return False
        data = self._file.read(count)
        self._report(len(data))
        self.ended = not data
        self._text = self._text[self._at :] + self._decoder.decode(data, self.ended)
        self._at = 0
        return not self.ended


def _open(path: str) -> IO[bytes]:
    """Opens a file so that it can be read by offset; pipes are copied to a temporary file."""
    if path == "-" and getattr(sys, "stdin", None) is None:
        raise TraceError(path, "standard input is closed")
    try:
        file: BinaryIO = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise TraceError(path, _system_reason(error)) from error
    if path != "-" and file.seekable():
        return file
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the source
    try:
        while chunk := file.read(_CHUNK):
            copy.write(chunk)
    except OSError as error:
        copy.close()
        raise TraceError(path, _system_reason(error)) from error
    finally:
        if path != "-":
            file.close()
    copy.seek(0)
    return copy


def _system_reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _decode(line: bytes) -> Any:
    return json.loads(line.decode("utf-8", "replace"))


def _try_decode(line: bytes) -> Any:
    try:
        return _decode(line)
    except (ValueError, RecursionError):
        return None


def _explain(error: Exception, *, cut_off: bool) -> str:
    """Says in one line what is wrong with a JSON text."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if not isinstance(error, json.JSONDecodeError):
        return "no valid JSON (a number of too many digits)"
    at_end = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")
    if cut_off and at_end:
        return _CUT_OFF
    return f"no valid JSON ({error.msg} at character {error.pos})"


def _complete_part(text: str) -> Any:
    """What is complete in a JSON text that is cut off; None when nothing is.

    Of an object these are the members before the cut, and of the array that is cut the elements
    before it: so the messages of a run that was being written are not lost with the last one.
    """
    try:
        return _complete_value(text, _skip(text, 0), 0)
    except RecursionError:
        return None


def _complete_value(text: str, at: int, depth: int) -> Any:
    if depth > _RUN_DEPTH:
        return None
    if text.startswith("[", at):
        return _complete_elements(text, at + 1, depth) or None
    if text.startswith("{", at):
        return _complete_members(text, at + 1, depth)
    return None


def _complete_elements(text: str, at: int, depth: int) -> list[Any]:
    elements: list[Any] = []
    while True:
        at = _skip(text, at)
        try:
            value, at = _DECODER.raw_decode(text, at)
        except ValueError:
            part = _complete_value(text, at, depth + 1)
            return elements if part is None else [*elements, part]
        elements.append(value)
        at = _skip(text, at)
        if not text.startswith(",", at):
            return elements
        at += 1


def _complete_members(text: str, at: int, depth: int) -> dict[str, Any] | None:
    """The members of an object before the cut, when an array is among them."""
    members: dict[str, Any] = {}
    while True:
        try:
            key, at = _DECODER.raw_decode(text, _skip(text, at))
        except ValueError:
            break
        at = _skip(text, at)
        if not isinstance(key, str) or not text.startswith(":", at):
            break
        at = _skip(text, at + 1)
        try:
            members[key], at = _DECODER.raw_decode(text, at)
        except ValueError:
            part = _complete_value(text, at, depth + 1)
            if part is not None:
                members[key] = part
            break
        at = _skip(text, at)
        if not text.startswith(",", at):
            break
        at += 1
    return members if any(_holds_array(member) for member in members.values()) else None


def _holds_array(member: object) -> bool:
    if isinstance(member, dict):
        return any(isinstance(inner, list) for inner in cast("dict[str, Any]", member).values())
    return isinstance(member, list)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
