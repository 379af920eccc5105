"""Reads what models reply, and guards what agents do."""

from turnwarden._core import argument_similarity, build_info, call_signature
from turnwarden.guards import (
    DEFAULT_LOOP_DETECTOR_CONFIG,
    DEFAULT_RECURSION_GUARD_CONFIG,
    DEFAULT_WORKFLOW_GUARD_CONFIG,
    Budget,
    CallRecord,
    Escalation,
    GuardAction,
    GuardCheckResult,
    GuardContext,
    LoopDetectionResult,
    LoopDetector,
    LoopDetectorConfig,
    LoopType,
    RecursionCheckResult,
    RecursionGuard,
    RecursionGuardConfig,
    ToolKind,
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
    "ToolKind",
    "ToolPolicy",
    "WorkflowGuard",
    "WorkflowGuardConfig",
    "argument_similarity",
    "build_info",
    "call_signature",
]

if build_info()["profile"] == "debug":
    import warnings

    warnings.warn(
        "turnwarden's native core is a debug build: it is many times slower than a release build; "
        "build one with `make` or `maturin develop --release`",
        RuntimeWarning,
        stacklevel=2,
    )
