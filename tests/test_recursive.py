"""Recursive workflows: the shared vectors, the rules of the design, and depth."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import pickle
import random
import signal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turnwarden import (
    ToolCall,
    WorkflowGuard,
    WorkflowGuardConfig,
    WorkflowJsonResponse,
    create_workflow_response,
)
from turnwarden.engine import (
    RunInterrupted,
    RunningLoopError,
    StandardToolResponse,
    ToolExecutionResult,
    WorkflowContext,
    WorkflowRun,
    create_context,
    execute_workflow,
    execute_workflow_sync,
    run_so_far,
    run_sync,
    start_workflow,
)
from turnwarden.engine.events import Event
from vectors_runner import by_id, rows

VECTORS = rows("recursive_engine")


def workflow(*names: str, **arguments: Any) -> dict[str, Any]:
    return {"content": "", "next": [{"mcp": name, "args": arguments} for name in names]}


class Tools:
    """Tools that answer from their lists, the last answer again and again; and what they saw."""

    def __init__(self, tools: dict[str, list[Any]]) -> None:
        self.left = {name: list(answers) for name, answers in tools.items()}
        self.log: list[dict[str, Any]] = []

    def __call__(self, name: str, arguments: dict[str, Any], context: WorkflowContext) -> Any:
        parent = context.parent
        self.log.append(
            {
                "tool": name,
                "args": arguments,
                "depth": context.depth,
                "sees_shared": copy.deepcopy(context.shared_data),
                "sees_results": [record.tool_name for record in context.results],
                "parent_results": parent and [record.tool_name for record in parent.results],
            }
        )
        answers = self.left[name]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, dict) and "throw" in answer:
            raise RuntimeError(answer["throw"])
        return answer


def run_row(row: dict[str, Any], **options: Any) -> tuple[WorkflowRun, Tools]:
    tools = Tools(row["tools"])
    limit = row["max_depth"]
    return execute_workflow_sync(row["workflow"], tools, max_depth=limit, **options), tools


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("row", [row for row in VECTORS if "answers" in row], ids=by_id)
def test_vector(row: dict[str, Any], asynchronous: bool) -> None:
    tools = Tools(row["tools"])

    async def later(name: str, arguments: dict[str, Any], context: WorkflowContext) -> Any:
        await asyncio.sleep(0)
        return tools(name, arguments, context)

    run = execute_workflow_sync(
        row["workflow"], later if asynchronous else tools, max_depth=row["max_depth"]
    )
    found = {
        "results": run.results,
        "status": run.status,
        "error": run.error,
        "log": tools.log,
        "root_results": [[record.tool_name, record.result] for record in run.context.results],
        "shared_data": run.context.shared_data,
    }
    expected = dict(row["answers"])
    if "status" not in expected:
        expected |= {"status": "completed", "error": None}
    assert {key: found[key] for key in expected} == expected


def row_of(identifier: str) -> dict[str, Any]:
    return next(row for row in VECTORS if row["id"] == identifier)


def test_every_vector_without_answers_has_a_test_below() -> None:
    by_hand = {row["id"] for row in VECTORS if "right" in row}
    assert by_hand == {"limit-loses-results", "failed-next", "child-results"}


def test_limit_ends_with_a_status_and_the_results_so_far() -> None:
    run, _ = run_row(row_of("limit-loses-results"))
    assert (run.status, run.reason) == ("limit", "limit.max_depth")
    assert run.results == ["paid work", "paid work"]
    assert run.error is not None
    assert "max_depth=2" in run.error


@pytest.mark.parametrize("on_error", ["stop", "continue"])
def test_next_workflow_of_a_failed_call_does_not_run(on_error: Any) -> None:
    run, tools = run_row(row_of("failed-next"), on_error=on_error)
    assert [entry["tool"] for entry in tools.log] == ["a"]
    (record,) = run.context.results
    assert (record.tool_name, record.result, record.error) == ("a", None, "x")
    assert (run.status, run.error) == (
        ("failed", "x") if on_error == "stop" else ("completed", None)
    )


def test_later_siblings_see_what_nested_calls_brought() -> None:
    run, tools = run_row(row_of("child-results"))
    assert tools.log[-1]["sees_results"] == ["a", "c"]
    assert [record.tool_name for record in run.context.results] == ["a", "c", "b"]


# Limits and errors


def chain(name: str, arguments: dict[str, Any], context: WorkflowContext) -> ToolExecutionResult:
    """A call that brings the same call again, without an end."""
    return ToolExecutionResult(True, context.depth, next_workflow=workflow(name))


@pytest.mark.parametrize("depth", [1, 2, 10, 37])
def test_depths_from_0_to_max_depth_minus_1_run(depth: int) -> None:
    run = execute_workflow_sync(workflow("a"), chain, max_depth=depth)
    assert run.results == list(range(depth))
    assert run.status == "limit"


def test_max_depth_is_10_by_default() -> None:
    assert len(execute_workflow_sync(workflow("a"), chain).results) == 10


def test_context_brings_its_max_depth() -> None:
    context = create_context(max_depth=3)
    assert len(execute_workflow_sync(workflow("a"), chain, context).results) == 3
    context = create_context(max_depth=3)
    assert len(execute_workflow_sync(workflow("a"), chain, context, max_depth=5).results) == 5


def test_max_calls_ends_with_a_status_and_the_results_so_far() -> None:
    run = execute_workflow_sync(workflow(*"abcde"), lambda name, *_: name, max_calls=3)
    assert (run.status, run.reason, run.results) == ("limit", "limit.max_calls", ["a", "b", "c"])
    exact = execute_workflow_sync(workflow(*"abc"), lambda name, *_: name, max_calls=3)
    assert exact.status == "completed"
    bounded = execute_workflow_sync(workflow("a"), chain, max_depth=10**6)
    assert (bounded.status, len(bounded.results)) == ("limit", 1000)


@pytest.mark.parametrize("option", [{"max_depth": 0}, {"max_calls": 0}, {"max_depth": True}])
def test_limits_out_of_range_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="from 1 up"):
        execute_workflow_sync(workflow("a"), chain, **option)
    with pytest.raises(ValueError, match="on_error"):
        execute_workflow_sync(workflow("a"), chain, on_error="ignore")  # type: ignore[arg-type]


def test_continue_makes_the_next_call_after_a_failure() -> None:
    def tool(name: str, arguments: dict[str, Any], context: WorkflowContext) -> str:
        if name == "b":
            raise ValueError("boom")
        return name

    run = execute_workflow_sync(workflow(*"abc"), tool, on_error="continue")
    assert (run.status, run.results) == ("completed", ["a", None, "c"])
    assert [record.error for record in run.failures] == ["boom"]
    stopped = execute_workflow_sync(workflow(*"abc"), tool)
    assert (stopped.status, stopped.error, stopped.reason) == ("failed", "boom", "call.failed")
    assert stopped.results == ["a", None]


@pytest.mark.parametrize(
    "answer",
    [
        {"success": False, "error": "x", "context": {"k": 1}},
        ToolExecutionResult(False, error="x", context={"k": 1}),
    ],
)
def test_context_of_a_failed_call_is_merged(answer: Any) -> None:
    run = execute_workflow_sync(workflow("a"), lambda *_: answer)
    assert run.context.shared_data == {"k": 1}


def test_unreadable_workflow_is_refused_before_anything_runs() -> None:
    for bad, error in [(None, TypeError), ("x", TypeError), ({"next": [{"x": 1}]}, Exception)]:
        with pytest.raises(error):
            execute_workflow_sync(bad, lambda *_: pytest.fail("ran"))  # type: ignore[arg-type]


def test_unreadable_next_workflow_fails_its_call_and_keeps_its_data() -> None:
    answer = {"success": True, "data": 1, "next_workflow": {"content": "", "next": [{"mcp": ""}]}}
    run = execute_workflow_sync(workflow("a"), lambda *_: answer)
    if run.status == "failed":
        assert run.results == [1]
        assert run.error is not None
        assert "next workflow" in run.error


def test_tool_may_end_the_run() -> None:
    answers = {
        "stop": StandardToolResponse("completed", "ok", should_terminate=True,
                                     termination_reason="quota"),
        "ask": StandardToolResponse("needs_input", "Which date?"),
    }  # fmt: skip
    run = execute_workflow_sync(workflow("stop", "x"), lambda name, *_: answers.get(name))
    assert (run.status, run.reason, len(run.calls)) == ("stopped", "quota", 1)
    run = execute_workflow_sync(workflow("ask", "x"), lambda name, *_: answers.get(name))
    assert (run.status, run.reason, run.error) == ("stopped", "needs_input", "Which date?")


# Calls and results


def test_both_signatures_of_execute_tool_are_called() -> None:
    def with_call(call: ToolCall, context: WorkflowContext) -> str:
        return f"{call.name} {call.arguments} {context.depth}"

    def with_name(name: str, arguments: dict[str, Any], context: WorkflowContext) -> str:
        return f"{name} {arguments} {context.depth}"

    class Object:
        async def __call__(self, name: str, arguments: Any, context: Any) -> str:
            return f"{name} {arguments} {context.depth}"

    for execute in (with_call, with_name, Object(), lambda *a: with_name(*a)):
        run = execute_workflow_sync(workflow("a", x=1), execute)  # type: ignore[arg-type]
        assert run.results == ["a {'x': 1} 0"]
    for wrong in (lambda name: name, 3, None):
        with pytest.raises(TypeError, match="execute_tool"):
            execute_workflow_sync(workflow("a"), wrong)  # type: ignore[arg-type]


def test_arguments_that_a_tool_changes_stay_on_record() -> None:
    def tool(name: str, arguments: dict[str, Any], context: WorkflowContext) -> None:
        arguments.clear()

    run = execute_workflow_sync(workflow("a", x=1), tool)
    assert run.calls[0].arguments == {"x": 1}


def test_records_hold_name_result_error_and_time() -> None:
    (record,) = execute_workflow_sync(workflow("a", x=1), lambda *_: 7).calls
    assert (record.tool_name, record.result, record.error, record.status) == (
        "a", 7, None, "completed"
    )  # fmt: skip
    assert record.timestamp > 1e9
    assert record.call_id
    assert set(record.to_dict()) >= {"tool_name", "result", "error", "timestamp"}


@pytest.mark.parametrize(
    "returned",
    [
        create_workflow_response("then", [ToolCall("b", {"n": 1})]),
        {"content": "then", "next": [{"mcp": "b", "args": {"n": 1}}]},
        {"content": "then", "next": [{"name": "b", "arguments": {"n": 1}}]},
        {"success": True, "data": 1, "nextWorkflow": workflow("b", n=1)},
        ToolExecutionResult(True, next_workflow=create_workflow_response("", [ToolCall("b", {})])),
    ],
)
def test_returned_workflow_is_a_next_workflow(returned: Any) -> None:
    seen: list[tuple[str, int]] = []

    def tool(name: str, arguments: dict[str, Any], context: WorkflowContext) -> Any:
        seen.append((name, context.depth))
        return returned if name == "a" else None

    assert execute_workflow_sync(workflow("a", "c"), tool).status == "completed"
    assert seen == [("a", 0), ("b", 1), ("c", 0)]


def test_workflow_may_be_a_parsed_one() -> None:
    parsed = WorkflowJsonResponse("", [ToolCall("a", {"x": 1})])
    assert execute_workflow_sync(parsed, lambda name, args, _: args).results == [{"x": 1}]


def test_run_is_plain_data() -> None:
    run = execute_workflow_sync(workflow("a"), lambda *_: {"success": True, "context": {"k": 1}})
    assert json.loads(json.dumps(run.to_dict()))["shared_data"] == {"k": 1}


# Guard


@pytest.mark.parametrize("guard", [WorkflowGuardConfig(), WorkflowGuard(), {"verbose": True}])
def test_guard_stops_a_loop_with_everything_kept(guard: Any) -> None:
    run = execute_workflow_sync(
        workflow(*["a"] * 20, x=1), lambda *_: "same", guard=guard, on_error="continue"
    )
    assert (run.status, run.reason) == ("stopped", "loop.exact")
    statuses = [record.status for record in run.calls]
    assert statuses[:3] == ["completed"] * 3
    assert "blocked" in statuses
    assert len(run.calls) < 8
    assert run.error


def test_blocked_call_ends_a_run_that_stops_at_errors() -> None:
    run = execute_workflow_sync(
        workflow(*["a"] * 9, x=1), lambda *_: "same", guard=WorkflowGuardConfig()
    )
    assert run.status == "stopped"
    assert run.calls[-1].status == "blocked"


# Contexts


def test_child_context_inherits() -> None:
    parent = create_context(max_depth=4, shared_data={"k": 1})
    child = create_context(parent)
    assert (child.depth, child.max_depth, child.parent) == (1, 4, parent)
    assert child.shared_data is parent.shared_data
    assert child.results == ()
    assert child.execution_id != parent.execution_id
    with pytest.raises(ValueError, match="shares its parent's data"):
        create_context(parent, shared_data={})
    with pytest.raises(ValueError, match="max_depth"):
        create_context(max_depth=0)


def test_nested_contexts_are_linked_and_share_data() -> None:
    seen: list[WorkflowContext] = []

    def tool(name: str, arguments: dict[str, Any], context: WorkflowContext) -> Any:
        seen.append(context)
        return {"success": True, "next_workflow": workflow("b")} if name == "a" else None

    root = create_context(max_depth=3)
    execute_workflow_sync(workflow("a", "c"), tool, root)
    a, b, c = seen
    assert a is c is root
    assert b.parent is root
    assert b.depth == 1
    assert b.shared_data is root.shared_data
    assert [record.tool_name for record in b.results] == ["b"]


def test_results_of_an_earlier_run_stay_in_the_context() -> None:
    context = create_context()
    execute_workflow_sync(workflow("a"), lambda name, *_: name, context)
    run = execute_workflow_sync(workflow("b"), lambda name, *_: name, context)
    assert run.results == ["b"]
    assert [record.result for record in context.results] == ["a", "b"]


class Naive:
    """The contract in its plainest form: each context has a list, and adds to its ancestors'."""

    def __init__(self, parent: Naive | None = None) -> None:
        self.parent = parent
        self.results: list[str] = []

    def record(self, name: str) -> None:
        context: Naive | None = self
        while context is not None:
            context.results.append(name)
            context = context.parent


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_results_equal_the_naive_ones_with_workflows_side_by_side(seed: int) -> None:
    """Tools run further workflows in their context or in children of it, several at a time."""
    chance = random.Random(seed)
    twins: dict[str, Naive] = {}
    contexts: list[WorkflowContext] = []
    left = 40

    def twin(context: WorkflowContext) -> Naive:
        if context.execution_id not in twins:
            parent = None if context.parent is None else twin(context.parent)
            twins[context.execution_id] = Naive(parent)
            contexts.append(context)
        return twins[context.execution_id]

    def check() -> None:
        for context in contexts:
            names = [record.result for record in context.results]
            assert names == twins[context.execution_id].results

    async def tool(name: str, arguments: dict[str, Any], context: WorkflowContext) -> Any:
        nonlocal left
        mine = twin(context)
        left -= 1
        number = f"{left}"
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
            check()
        inner: list[Any] = []
        for _ in range(chance.randrange(3) if left > 0 and context.depth < 4 else 0):
            inside = create_context(context) if chance.random() < 0.5 else context
            further = workflow(*["t"] * chance.randrange(3))
            inner.append(execute_workflow(further, tool, inside))
        await asyncio.gather(*inner)
        following = workflow(*["t"] * (chance.randrange(3) if left > 0 else 0))
        mine.record(number)  # the engine records right after this returns
        return {"success": True, "data": number, "next_workflow": following}

    asyncio.run(execute_workflow(workflow("t", "t"), tool))
    check()


# Depth


DEPTH = 100_000


def test_100_000_levels_overflow_nothing() -> None:
    innermost: list[WorkflowContext] = []

    def tool(name: str, arguments: dict[str, Any], context: WorkflowContext) -> Any:
        innermost[:] = [context]
        return ToolExecutionResult(True, context.depth, next_workflow=NEXT)

    run = execute_workflow_sync(workflow("a"), tool, max_depth=DEPTH, max_calls=DEPTH)
    assert (run.status, len(run.results)) == ("limit", DEPTH)
    (context,) = innermost
    assert context.depth == DEPTH - 1
    assert len(context.results) == 1
    assert len(run.context.results) == DEPTH
    assert "depth=99999" in repr(context)
    assert repr(run)
    assert json.dumps(run.to_dict())
    copied = pickle.loads(pickle.dumps(context))
    assert copied.depth == DEPTH - 1
    assert copied.parent.execution_id == context.parent.execution_id
    assert len(copied.parent.parent.results) == 3
    assert copied.shared_data is copied.parent.shared_data
    del run
    innermost.clear()
    del context, copied  # a chain of 100,000 parents goes at once
    gc.collect()


NEXT = create_workflow_response("", [ToolCall("a", {})])


def test_deep_context_is_copied() -> None:
    context = create_context(max_depth=10**6)
    for _ in range(5000):
        context = create_context(context)
    copied = copy.deepcopy(context)
    assert copied.depth == 5000
    assert copied.parent is not context.parent


def test_pickled_context_goes_on_as_before() -> None:
    root = create_context(shared_data={"k": 1})
    kept: list[WorkflowContext] = []

    def tool(name: str, arguments: dict[str, Any], context: WorkflowContext) -> Any:
        kept.append(pickle.loads(pickle.dumps(context)))
        return {"success": True, "next_workflow": workflow("b")} if name == "a" else None

    execute_workflow_sync(workflow("a", "c"), tool, root)
    child = kept[1]
    assert child.parent is not None
    run = execute_workflow_sync(workflow("x"), lambda *_: "x", child)
    assert [record.result for record in child.results] == ["x"]
    assert [record.tool_name for record in child.parent.results] == ["a", "x"]
    assert run.context is child


# Synchronous, asynchronous, cut


def test_synchronous_tools_need_no_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("an event loop was made")

    monkeypatch.setattr(asyncio, "Runner", refuse)
    monkeypatch.setattr(asyncio, "new_event_loop", refuse)
    assert execute_workflow_sync(workflow("a"), lambda *_: 1).results == [1]
    assert run_sync(execute_workflow(workflow("a"), lambda *_: 1)).results == [1]


def test_sync_refuses_a_running_loop() -> None:
    async def main() -> None:
        with pytest.raises(RunningLoopError, match="await execute_workflow"):
            execute_workflow_sync(workflow("a"), lambda *_: 1)
        with pytest.raises(RunningLoopError):
            run_sync(execute_workflow(workflow("a"), lambda *_: 1))

    asyncio.run(main())


def test_run_sync_says_so_when_a_strange_coroutine_suspends() -> None:
    class Strange:
        def __await__(self) -> Any:
            yield "something"

    async def strange() -> None:
        await Strange()

    with pytest.raises(RuntimeError, match="suspended outside an event loop"):
        run_sync(strange())


def test_cancelled_at_every_await() -> None:
    async def once(steps: int) -> bool:
        begun: list[str] = []
        ended: list[str] = []

        async def tool(name: str, arguments: dict[str, Any], context: WorkflowContext) -> Any:
            key = f"{name}{len(begun)}"
            begun.append(key)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            ended.append(key)
            answer: dict[str, Any] = {"success": True, "data": key, "context": {key: 1}}
            return {**answer, "next_workflow": workflow("n", "n")} if name == "a" else answer

        context = create_context()
        handle = start_workflow(workflow("a", "b", "a"), tool, context)
        for _ in range(steps):
            await asyncio.sleep(0)
            if handle.done():
                break
        handle.cancel()
        run = await handle.wait()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert len(run.calls) == len(begun)
        done = [record.result for record in run.calls if record.status == "completed"]
        assert done == ended or done == ended[:-1]
        assert list(context.shared_data) == done
        assert [record.result for record in context.results] == run.results
        if not handle.task.cancelled():
            assert run.status == "completed"
            return False
        assert (run.status, run.reason) == ("cancelled", "cancelled")
        with pytest.raises(asyncio.CancelledError) as caught:
            await handle
        if steps > 0:
            assert run_so_far(caught.value).results == run.results
        return True

    steps = 0
    while asyncio.run(once(steps)):
        steps += 1
    assert steps > 10


def test_ctrl_c_keeps_what_was_done() -> None:
    def tool(name: str, arguments: dict[str, Any], context: WorkflowContext) -> str:
        if name == "b":
            signal.raise_signal(signal.SIGINT)
        return name

    context = create_context()
    with pytest.raises(RunInterrupted) as caught:
        execute_workflow_sync(workflow(*"abc"), tool, context)
    run = caught.value.run
    assert [record.status for record in run.calls] == ["completed", "unfinished"]
    assert run.results == ["a", None]
    assert len(context.results) == 2


def test_handle_tells_what_was_done_so_far() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def tool(name: str, arguments: dict[str, Any], context: WorkflowContext) -> str:
            if name == "b":
                await gate.wait()
            return name

        handle = start_workflow(workflow(*"abc"), tool)
        for _ in range(5):
            await asyncio.sleep(0)
        so_far = handle.result_so_far
        assert (so_far.status, so_far.results) == ("running", ["a", None])
        assert so_far.calls[1].status == "unfinished"
        gate.set()
        assert (await handle).results == ["a", "b", "c"]

    asyncio.run(main())


def test_events_tell_the_course() -> None:
    events: list[Event] = []

    def tool(name: str, arguments: dict[str, Any], context: WorkflowContext) -> Any:
        if name == "a":
            return {"success": True, "data": 1, "next_workflow": workflow("b")}
        raise ValueError("boom")

    run = execute_workflow_sync(
        workflow("a", "c"), tool, on_event=events.append, workflow_id="w", revision="3"
    )
    assert [event.type for event in events] == [
        "run_started",
        "workflow_entered",
        "tool_started",
        "tool_finished",
        "workflow_entered",
        "tool_started",
        "tool_finished",
        "workflow_left",
        "workflow_left",
        "run_finished",
    ]
    assert [event.sequence for event in events] == list(range(10))
    assert {(event.workflow_id, event.revision) for event in events} == {("w", "3")}
    assert events[-1].to_dict()["status"] == run.status == "failed"
