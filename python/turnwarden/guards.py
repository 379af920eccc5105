"""Guards of agent runs: iterations, loops, budgets, and what to do about them.

The classes are those of the native core; this module adds the enums, the default configurations
and the tables that tell what a tool does.
"""

from enum import StrEnum

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
    SnapshotError,
    TextLoopDetector,
    ToolPolicy,
    WorkflowGuard,
    WorkflowGuardConfig,
)

__all__ = [
    "DEFAULT_LOOP_DETECTOR_CONFIG",
    "DEFAULT_RECURSION_GUARD_CONFIG",
    "DEFAULT_WORKFLOW_GUARD_CONFIG",
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
