"""Engines that run agents: the agent loop, recursive workflows, graphs, and what they tell."""

from turnwarden.engine import route
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
from turnwarden.engine.graph import AgentCoreEngine, GraphRunHandle
from turnwarden.engine.graph_chain import InMemoryChainSource, WorkflowChainSource
from turnwarden.engine.graph_definition import AgentWorkflowDefinition, define_workflow
from turnwarden.engine.graph_errors import (
    ChainAccessError,
    ContractError,
    GraphError,
    NodeError,
    ReplayError,
    RoundLimitError,
    RunStoppedError,
    WorkflowDefinitionError,
)
from turnwarden.engine.graph_nodes import (
    Node,
    NodeContext,
    Retry,
    SubWorkflow,
    WorkflowNode,
    subworkflow,
)
from turnwarden.engine.graph_run import GraphRun
from turnwarden.engine.graph_steps import (
    Recorder,
    Recording,
    Replayer,
    RunInfo,
    Step,
    StepLayer,
    StepOutcome,
)
from turnwarden.engine.graph_validation import Finding, FindingCode, Severity
from turnwarden.engine.handles import RunHandle
from turnwarden.engine.loop import AgentLoop
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
from turnwarden.engine.route import Route, RouteKind, fan_out
from turnwarden.engine.run_result import Question, RunResult
from turnwarden.engine.streams import EventStream
from turnwarden.engine.tools import ArgumentsError, Tool, tool

__all__ = [
    "AbandonedThread",
    "AgentCoreEngine",
    "AgentLoop",
    "AgentWorkflowDefinition",
    "ArgumentsError",
    "CallStatus",
    "ChainAccessError",
    "ContractError",
    "EngineError",
    "Event",
    "EventEmitter",
    "EventSink",
    "EventStream",
    "Finding",
    "FindingCode",
    "GraphError",
    "GraphRun",
    "GraphRunHandle",
    "InMemoryChainSource",
    "LoggingSink",
    "ModelError",
    "Node",
    "NodeContext",
    "NodeError",
    "Question",
    "Recorder",
    "Recording",
    "ReplayError",
    "Replayer",
    "ResumeError",
    "Retry",
    "RoundLimitError",
    "Route",
    "RouteKind",
    "RunHandle",
    "RunInfo",
    "RunInterrupted",
    "RunResult",
    "RunStatus",
    "RunStoppedError",
    "RunningLoopError",
    "Severity",
    "StandardToolResponse",
    "Step",
    "StepLayer",
    "StepOutcome",
    "SubWorkflow",
    "Tool",
    "ToolDefinitionError",
    "ToolExecutionResult",
    "ToolExecutionStatus",
    "ToolOutcome",
    "ToolResult",
    "WorkflowChainSource",
    "WorkflowContext",
    "WorkflowDefinitionError",
    "WorkflowNode",
    "WorkflowRun",
    "create_context",
    "define_workflow",
    "execute_workflow",
    "execute_workflow_sync",
    "fan_out",
    "normalise_result",
    "route",
    "run_so_far",
    "run_sync",
    "start_workflow",
    "subworkflow",
    "tool",
]
