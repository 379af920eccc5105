"""Engines that run agents: the agent loop, recursive workflows, and what they tell."""

from turnwarden.engine.calling import AbandonedThread
from turnwarden.engine.contexts import WorkflowContext, create_context
from turnwarden.engine.driving import run_sync
from turnwarden.engine.errors import (
    EngineError,
    ModelError,
    ResumeError,
    RunInterrupted,
    RunningLoopError,
    ToolDefinitionError,
    run_so_far,
)
from turnwarden.engine.events import Event, EventEmitter, EventSink, LoggingSink
from turnwarden.engine.handles import RunHandle
from turnwarden.engine.loop import AgentLoop, EventStream
from turnwarden.engine.recursive import (
    WorkflowRun,
    execute_workflow,
    execute_workflow_sync,
    start_workflow,
)
from turnwarden.engine.results import (
    CallStatus,
    RunStatus,
    StandardToolResponse,
    ToolExecutionResult,
    ToolExecutionStatus,
    ToolOutcome,
    ToolResult,
    normalise_result,
)
from turnwarden.engine.run_result import Question, RunResult
from turnwarden.engine.tools import ArgumentsError, Tool, tool

__all__ = [
    "AbandonedThread",
    "AgentLoop",
    "ArgumentsError",
    "CallStatus",
    "EngineError",
    "Event",
    "EventEmitter",
    "EventSink",
    "EventStream",
    "LoggingSink",
    "ModelError",
    "Question",
    "ResumeError",
    "RunHandle",
    "RunInterrupted",
    "RunResult",
    "RunStatus",
    "RunningLoopError",
    "StandardToolResponse",
    "Tool",
    "ToolDefinitionError",
    "ToolExecutionResult",
    "ToolExecutionStatus",
    "ToolOutcome",
    "ToolResult",
    "WorkflowContext",
    "WorkflowRun",
    "create_context",
    "execute_workflow",
    "execute_workflow_sync",
    "normalise_result",
    "run_so_far",
    "run_sync",
    "start_workflow",
    "tool",
]
