"""Guards of agent runs: iterations, loops, budgets, and what to do about them.

The classes are those of the native core; this module adds the enums, the default configurations
and the tables that tell what a tool does.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from turnwarden._core import (
    Budget,
    CallRecord,
    Escalation,
    GuardCheckResult,
    GuardContext,
    LoopDetectionResult,
    LoopDetector,
    LoopDetectorConfig,
    RecursionCheckResult,
    RecursionGuard,
    RecursionGuardConfig,
    SessionGuards,
    SignatureError,
    SnapshotError,
    TextLoopDetector,
    ToolPolicy,
    WorkflowGuard,
    WorkflowGuardConfig,
    guard_tables,
)

__all__ = [
    "DEFAULT_LOOP_DETECTOR_CONFIG",
    "DEFAULT_PROGRAMS",
    "DEFAULT_RECURSION_GUARD_CONFIG",
    "DEFAULT_SHELL_TOOLS",
    "DEFAULT_TEMPLATES",
    "DEFAULT_VERBS",
    "DEFAULT_VOLATILE_KEYS",
    "DEFAULT_WORKFLOW_GUARD_CONFIG",
    "REASON_CODES",
    "Budget",
    "CallRecord",
    "Escalation",
    "GuardAction",
    "GuardCheckResult",
    "GuardContext",
    "LoopDetectionResult",
    "LoopDetector",
    "LoopDetectorConfig",
    "LoopType",
    "RecursionCheckResult",
    "RecursionGuard",
    "RecursionGuardConfig",
    "SessionGuards",
    "SignatureError",
    "SnapshotError",
    "TextLoopDetector",
    "ToolKind",
    "ToolPolicy",
    "WorkflowGuard",
    "WorkflowGuardConfig",
]


class GuardAction(StrEnum):
    """What a verdict asks for, from the mildest to the sternest."""

    CONTINUE = "continue"
    """Nothing stands against going on."""
    WARN = "warn"
    """Go on, and tell the model."""
    BLOCK = "block"
    """Answer this call with the warning instead of running it."""
    STOP = "stop"
    """End the run."""


class LoopType(StrEnum):
    """How calls go round in circles."""

    EXACT = "exact"
    """The last turns are the same."""
    SIMILAR = "similar"
    """The last calls of one tool are nearly the same."""
    OSCILLATING = "oscillating"
    """Two turns alternate."""
    PERIODIC = "periodic"
    """A longer lap comes again and again."""
    NO_PROGRESS = "no_progress"
    """Calls that differ and lead nowhere; `LoopDetectionResult.detail` says in which way."""
    TEXT = "text"
    """A reply that repeats itself."""


class ToolKind(StrEnum):
    """What a tool does, as far as progress is concerned."""

    READ = "read"
    """Looks at something and leaves it as it is."""
    WRITE = "write"
    """Changes something: a write that was not made before is progress."""
    POLL = "poll"
    """Asks how something is coming along: the same answer is patience for a while."""
    IDLE = "idle"
    """Does nothing outside the model: think, plan, sleep, wait."""
    EXEMPT = "exempt"
    """Never judged."""
    UNKNOWN = "unknown"
    """Not known."""


DEFAULT_RECURSION_GUARD_CONFIG = RecursionGuardConfig()
DEFAULT_LOOP_DETECTOR_CONFIG = LoopDetectorConfig()
DEFAULT_WORKFLOW_GUARD_CONFIG = WorkflowGuardConfig()

_TABLES = guard_tables()


def _kinds(words: Mapping[str, str]) -> Mapping[str, ToolKind]:
    return MappingProxyType({word: ToolKind(kind) for word, kind in words.items()})


DEFAULT_VERBS: Mapping[str, ToolKind] = _kinds(_TABLES["verbs"])
"""Words in a tool's name and what they say it does; `verbs=` changes them."""
DEFAULT_PROGRAMS: Mapping[str, ToolKind] = _kinds(_TABLES["programs"])
"""Programs of a command line and what they do; `programs=` changes them."""
DEFAULT_SHELL_TOOLS: tuple[str, ...] = _TABLES["shell_tools"]
"""Tools whose `command` or `cmd` argument decides; `shell_tools=` adds to them."""
DEFAULT_VOLATILE_KEYS: tuple[str, ...] = _TABLES["volatile_keys"]
"""Keys whose values do not count when results are compared; `volatile_keys=` changes them."""
DEFAULT_TEMPLATES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {locale: MappingProxyType(texts) for locale, texts in _TABLES["templates"].items()}
)
"""The texts of each language by key; `templates=` replaces them one by one."""
REASON_CODES: tuple[str, ...] = _TABLES["reasons"]
"""Every code that `GuardCheckResult.reasons` can hold, besides what `terminate` was given."""
