"""Recorded agent runs: readers for the formats that agents and benchmarks leave behind.

`read_runs` reads one file in any known format as a stream of turns.
"""

from turnwarden.traces.model import RecordedCall, RecordedResult, Run, TokenUsage, TraceError, Turn
from turnwarden.traces.reading import READERS, Reader, read_runs
from turnwarden.traces.source import MAX_VALUE_BYTES, UnknownFormat

__all__ = [
    "MAX_VALUE_BYTES",
    "READERS",
    "Reader",
    "RecordedCall",
    "RecordedResult",
    "Run",
    "TokenUsage",
    "TraceError",
    "Turn",
    "UnknownFormat",
    "read_runs",
]
