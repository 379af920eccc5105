"""Recorded agent runs: what they hold, and what a guard would have said to them.

`read_runs` reads one file in any known format as a stream of turns, `replay` plays a run to a
guard, `scan` does so for whole folders.
"""

from turnwarden.traces.model import RecordedCall, RecordedResult, Run, TokenUsage, TraceError, Turn
from turnwarden.traces.reading import READERS, Reader, read_runs
from turnwarden.traces.replaying import (
    FirstWarning,
    LoopEpisode,
    Replay,
    ReplayedCall,
    ReplayedTurn,
    RunReport,
    Savings,
    replay,
)
from turnwarden.traces.scanning import FoundFile, find_files, scan
from turnwarden.traces.source import MAX_VALUE_BYTES, UnknownFormatError

__all__ = [
    "MAX_VALUE_BYTES",
    "READERS",
    "FirstWarning",
    "FoundFile",
    "LoopEpisode",
    "Reader",
    "RecordedCall",
    "RecordedResult",
    "Replay",
    "ReplayedCall",
    "ReplayedTurn",
    "Run",
    "RunReport",
    "Savings",
    "TokenUsage",
    "TraceError",
    "Turn",
    "UnknownFormatError",
    "find_files",
    "read_runs",
    "replay",
    "scan",
]
