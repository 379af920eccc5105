"""What the engines refuse, and that they say what was wrong with it."""

from __future__ import annotations

import gc
import math
import sys
import warnings
from typing import Any

import pytest
from turnwarden import WorkflowGuard
from turnwarden.engine import (
    AgentCoreEngine,
    AgentLoop,
    Node,
    RunInterrupted,
    RunningLoopError,
    RunStatus,
    StandardToolResponse,
    Tool,
    ToolDefinitionError,
    create_context,
    define_workflow,
    execute_workflow_sync,
    route,
    start_workflow,
)
from turnwarden.engine.events import Event

WORKFLOW: dict[str, Any] = {"content": "", "next": [{"mcp": "a"}]}
GRAPH = define_workflow(
    id="graph", nodes=[Node(id="only", starts_round=True, routes=[route.deliver("x")])]
)


def model(messages: list[dict[str, Any]]) -> str:
    return "Done."


def double(x: int) -> int:
    """Double a number."""
    return 2 * x


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"max_parallel_tools": 0}, ValueError, "max_parallel_tools must be an int from 1 up"),
        ({"max_parallel_tools": "3"}, ValueError, "max_parallel_tools must be an int from 1 up"),
        ({"max_parallel_tools": 2.5}, ValueError, "max_parallel_tools must be an int from 1 up"),
        ({"max_parallel_tools": True}, ValueError, "max_parallel_tools must be an int from 1 up"),
        ({"max_parallel_tools": None}, ValueError, "max_parallel_tools must be an int from 1 up"),
        ({"tool_timeout": 0}, ValueError, "tool_timeout must be a number above 0 or None, not 0"),
        ({"tool_timeout": math.nan}, ValueError, "tool_timeout must be a number above 0 or None"),
        ({"tool_timeout": "3"}, ValueError, "tool_timeout must be a number above 0 or None"),
        ({"parser": 5}, TypeError, "parser must be a ResponseParser or None, not int"),
        ({"on_event": 5}, TypeError, "on_event must be callable or None, not int"),
        ({"guard": WorkflowGuard()}, TypeError, "guard must be a WorkflowGuardConfig"),
        ({"message_style": "x"}, ValueError, "message_style must be openai or anthropic"),
    ],
)
def test_a_loop_refuses_options_by_their_name(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as error:
        AgentLoop(model, **options)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("messages", [5, None, b"Hi", {"role": "user", "content": "Hi"}])
def test_a_run_begins_with_a_text_or_messages(messages: Any) -> None:
    with pytest.raises(TypeError, match="expected a text or a list of messages, not"):
        AgentLoop(model).run_sync(messages)


@pytest.mark.parametrize("run", [5, None, "run-1"])
def test_only_a_run_of_a_loop_is_resumed(run: Any) -> None:
    with pytest.raises(TypeError, match="the run to go on with must be a RunResult, not"):
        AgentLoop(model).resume_sync(run, "yes")
    other = execute_workflow_sync(WORKFLOW, lambda *_: 1)
    with pytest.raises(TypeError, match="must be a RunResult, not WorkflowRun"):
        AgentLoop(model).resume_sync(other, "yes")  # type: ignore[arg-type]


def test_a_run_paused_in_one_loop_may_be_answered_twice_and_in_another() -> None:
    def ask() -> StandardToolResponse:
        return StandardToolResponse("needs_input", "Which?")

    replies = iter(['{"content": "", "next": [{"mcp": "ask"}]}'])
    paused = AgentLoop(lambda messages: next(replies), [ask]).run_sync("Go")
    assert paused.status is RunStatus.PAUSED
    for answer in ("this", "that"):
        ended = AgentLoop(model, message_style="openai").resume_sync(paused, answer)
        assert ended.text == "Done."
        assert ended.messages[-2]["content"] == answer
    assert paused.status is RunStatus.PAUSED


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"guard": 5}, "guard must be a WorkflowGuard, a WorkflowGuardConfig, a mapping"),
        ({"context": 5}, "context must be a WorkflowContext or None, not int"),
        ({"on_event": 5}, "on_event must be callable or None, not int"),
    ],
)
def test_a_workflow_refuses_options_by_their_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as error:
        execute_workflow_sync(WORKFLOW, lambda *_: 1, **options)
    assert str(error.value).startswith(message)


def test_a_context_refuses_a_parent_that_is_none() -> None:
    with pytest.raises(TypeError, match="parent must be a WorkflowContext or None, not int"):
        create_context(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="shared_data must be a dict or None, not int"):
        create_context(shared_data=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": 5}, "5 is no name for a tool"),
        ({"name": ""}, "'' is no name for a tool"),
        ({"name": "two words"}, "'two words' is no name for a tool"),
        ({"timeout": "x"}, "the timeout of double must be a number above 0 or None, not 'x'"),
        ({"timeout": -1}, "the timeout of double must be a number above 0 or None, not -1"),
        ({"timeout": True}, "the timeout of double must be a number above 0 or None, not True"),
    ],
)
def test_a_tool_that_cannot_be_one_says_why(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolDefinitionError) as error:
        Tool(double, **options)
    assert str(error.value).startswith(message)


def test_a_function_without_a_signature_asks_for_a_schema() -> None:
    with pytest.raises(ToolDefinitionError, match="dict does not tell its parameters"):
        Tool(dict)
    assert Tool(dict, parameters={"type": "object"}).name == "dict"


def test_start_outside_of_a_loop_says_so_and_leaves_nothing_behind(
    recwarn: pytest.WarningsRecorder,
) -> None:
    starts = [
        lambda: AgentLoop(model).start("Hi"),
        lambda: start_workflow(WORKFLOW, lambda *_: 1),
        lambda: AgentCoreEngine(GRAPH).start({}),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for start in starts:
            with pytest.raises(RunningLoopError, match="inside a running event loop"):
                start()
        gc.collect()
    assert [warning for warning in recwarn if "never awaited" in str(warning.message)] == []


class InterruptedAt:
    """A sink that is interrupted by the first event of a type."""

    def __init__(self, kind: str) -> None:
        self.kind: str | None = kind

    def __call__(self, event: Event) -> None:
        if event.type == self.kind:
            self.kind = None
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["run_started", "iteration_started", "reply_received"])
def test_a_run_that_was_interrupted_is_cancelled_wherever_it_was(kind: str) -> None:
    loop = AgentLoop(model, on_event=InterruptedAt(kind))
    with pytest.raises(RunInterrupted) as error:
        loop.run_sync("Hi")
    run = error.value.run
    assert (run.status, run.reason) == (RunStatus.CANCELLED, "cancelled")
    assert run.messages[0] == {"role": "user", "content": "Hi"}
    assert loop.resume_sync(run).text == "Done."


@pytest.mark.parametrize("kind", ["run_started", "workflow_entered", "tool_started"])
def test_a_workflow_that_was_interrupted_is_cancelled_wherever_it_was(kind: str) -> None:
    with pytest.raises(RunInterrupted) as error:
        execute_workflow_sync(WORKFLOW, lambda *_: 1, on_event=InterruptedAt(kind))
    assert (error.value.run.status, error.value.run.reason) == ("cancelled", "cancelled")


def test_an_interrupt_before_the_first_step_leaves_a_run_that_can_go_on() -> None:
    loop = AgentLoop(model)

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_name == "_drive" and frame.f_code.co_filename.endswith("driving.py"):
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    try:
        sys.settrace(trace)
        with pytest.raises(RunInterrupted) as error:
            loop.run_sync("Hi")
    finally:
        sys.settrace(before)
    assert error.value.run.status is RunStatus.CANCELLED
    assert loop.resume_sync(error.value.run).text == "Done."
