"""How often the detector of texts that repeat themselves speaks in recorded replies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from turnwarden import TextLoopDetector
from turnwarden.traces import TraceError, UnknownFormatError, find_files, read_runs


@dataclass
class Replies:
    """The replies of one format.

    Attributes:
        runs: How many runs they are from.
        count: How many there are; empty ones do not count.
        size: Their length in bytes.
        longest: The length of the longest.
        alarms: Where the detector spoke, one line each.
    """

    runs: int = 0
    count: int = 0
    size: int = 0
    longest: int = 0
    alarms: list[str] = field(default_factory=list[str])

    def add(self, text: str, place: str) -> None:
        """Counts a reply, and whether the detector speaks in it."""
        size = len(text.encode(errors="replace"))
        self.count += 1
        self.size += size
        self.longest = max(self.longest, size)
        detector = TextLoopDetector()
        if detector.feed(text):
            self.alarms.append(f"{place}: {detector.kind} from byte {detector.start} of {size}")


@dataclass
class Recordings:
    """What was found in files and folders.

    Attributes:
        replies: By format.
        unknown: How many files are of no known format.
        unread: Files that could not be read to their end, and why.
    """

    replies: dict[str, Replies] = field(default_factory=dict[str, Replies])
    unknown: int = 0
    unread: list[str] = field(default_factory=list[str])


def recorded_replies(paths: Sequence[Path]) -> Recordings:
    """Reads every reply of the recorded runs in files and folders.

    Raises:
        TraceError: A path does not exist or may not be read.
    """
    found = Recordings()
    for file in find_files(paths):
        try:
            for place, source, texts in _runs(file.path):
                replies = found.replies.setdefault(source, Replies())
                replies.runs += 1
                for turn, text in texts:
                    replies.add(text, f"{place}, turn {turn + 1}")
        except UnknownFormatError:
            found.unknown += 1
        except TraceError as error:
            found.unread.append(str(error))
    return found


def _runs(path: str) -> Iterator[tuple[str, str, Iterator[tuple[int, str]]]]:
    for run in read_runs(path):
        place = f"{Path(path).name}, run {run.index + 1}"
        yield place, run.source, ((turn.index, turn.text) for turn in run if turn.text)
