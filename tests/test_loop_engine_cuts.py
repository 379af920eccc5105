"""Nothing that a run has done is lost, wherever it is cut."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import turnwarden.engine
from message_pairing import check_history
from turnwarden.engine import (
    AgentLoop,
    RunInterrupted,
    RunResult,
    StandardToolResponse,
    run_so_far,
    tool,
)

ENGINE = str(Path(turnwarden.engine.__file__).parent)
STYLES = ["openai", "anthropic"]


def calls(*items: tuple[str, dict[str, Any]], text: str = "") -> str:
    following = [{"mcp": name, "args": arguments} for name, arguments in items]
    return json.dumps({"content": text, "next": following})


class World:
    """What models and tools did, to compare with what a run says that it did."""

    def __init__(self) -> None:
        self.replies = 0
        self.begun: list[str] = []
        self.ended: list[str] = []

    def check(self, run: RunResult, style: str) -> None:
        """Everything done is in the run, and the history is valid."""
        check_history(run.messages, style)
        assert run.iterations >= self.replies
        made: Counter[str] = Counter()
        done: Counter[str] = Counter()
        for record in run.results:
            key = f"{record.tool_name} {(record.arguments or {}).get('n')}"
            made[key] += record.status in ("completed", "failed", "timed_out", "unfinished")
            done[key] += record.status == "unfinished" or record.result is not None
        assert Counter(self.begun) <= made, "a call that was begun is not on record"
        assert Counter(self.ended) <= done, "a result is not on record"
        assert run.summary
        assert json.dumps(run.to_dict())
        assert self.replies - 1 <= sum(m["role"] == "assistant" for m in run.messages)


def asynchronous_loop(world: World, style: Any) -> AgentLoop:
    """A streamed model, parallel tools, a failing one, a next workflow, a sleep at every step."""

    def begin(name: str, n: int) -> None:
        world.begun.append(f"{name} {n}")

    def end(name: str, n: int) -> None:
        world.ended.append(f"{name} {n}")

    async def work(n: int) -> int:
        begin("work", n)
        for _ in range(n):
            await asyncio.sleep(0)
        end("work", n)
        return n

    async def fail(n: int) -> int:
        begin("fail", n)
        await asyncio.sleep(0)
        raise ValueError("boom")

    async def plan(n: int) -> dict[str, Any]:
        begin("plan", n)
        await asyncio.sleep(0)
        end("plan", n)
        return {"content": "then", "next": [{"mcp": "work", "args": {"n": 7}}]}

    def quick(n: int) -> int:
        begin("quick", n)
        end("quick", n)
        return n

    replies = [
        calls(("work", {"n": 1}), text="First."),
        calls(
            ("work", {"n": 3}), ("quick", {"n": 4}), ("fail", {"n": 1}), ("work", {"n": 2}),
            ("nope", {}), ("work", {}), ("plan", {"n": 5}),
        ),
        calls(("plan", {"n": 6}), text="Third."),
        "Done.",
    ]  # fmt: skip

    async def model(messages: list[Any]) -> Any:
        check_history(messages, style)
        await asyncio.sleep(0)
        reply = replies[world.replies]

        async def stream() -> Any:
            for start in range(0, len(reply), 40):
                await asyncio.sleep(0)
                yield reply[start : start + 40]
            world.replies += 1

        return stream()

    tools = [work, fail, plan, quick]
    return AgentLoop(model, tools, message_style=style, max_parallel_tools=3)


async def cut_after(steps: int, start: Callable[[], Any]) -> tuple[Any, asyncio.Task[Any]]:
    """Cancel after so many turns of the event loop."""
    handle = start()
    for _ in range(steps):
        await asyncio.sleep(0)
        if handle.done():
            break
    handle.cancel()
    await asyncio.wait([handle.task])
    return handle, handle.task


@pytest.mark.parametrize("style", STYLES)
def test_cancelled_at_every_await(style: Any) -> None:
    async def once(steps: int) -> bool:
        world = World()
        handle, task = await cut_after(steps, lambda: asynchronous_loop(world, style).start("go"))
        run = handle.result_so_far
        world.check(run, style)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        if not task.cancelled():
            assert task.result().text == "Done."
            return False
        assert (run.status, run.reason) == ("cancelled", "cancelled")
        with pytest.raises(asyncio.CancelledError) as caught:
            await handle
        if steps > 0:  # else it was cancelled before it began
            assert run_so_far(caught.value).results == run.results
        return True

    steps = 0
    while asyncio.run(once(steps)):
        steps += 1
    assert steps > 30


@pytest.mark.parametrize("style", STYLES)
def test_cancelled_run_can_go_on_from_every_await(style: Any) -> None:
    async def once(steps: int) -> bool:
        world = World()
        loop = asynchronous_loop(world, style)
        handle, task = await cut_after(steps, lambda: loop.start("go"))
        if not task.cancelled():
            return False
        result = await loop.resume(handle)
        check_history(result.messages, style)
        assert result.text == "Done."
        return True

    for steps in range(0, 60, 3):
        if not asyncio.run(once(steps)):
            break


def test_timeout_around_a_run_keeps_what_was_done() -> None:
    async def main() -> None:
        world = World()

        async def hang() -> None:
            await asyncio.sleep(30)

        loop = AgentLoop(
            lambda _: calls(("quick", {"n": 1}), ("hang", {})), [hang, quick_of(world)]
        )
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.02):
                await loop.run("go")
        run = run_so_far(caught.value)
        world.check(run, "openai")
        assert [record.status for record in run.results] == ["completed", "unfinished"]
        assert "may have had effects" in run.results[1].error
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def quick_of(world: World) -> Callable[[int], int]:
    def quick(n: int) -> int:
        world.begun.append(f"quick {n}")
        world.ended.append(f"quick {n}")
        return n

    return quick


@pytest.mark.parametrize("count", [1, 3])
def test_cancellation_that_a_tool_starts_itself_passes_through(count: int) -> None:
    ended: list[str] = []

    async def give_up() -> None:
        raise asyncio.CancelledError("mine")

    async def work() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("work")

    async def main() -> None:
        items = [("work", {})] * (count - 1) + [("give_up", {})]
        loop = AgentLoop(lambda _: calls(*items), [give_up, work])
        with pytest.raises(asyncio.CancelledError, match="mine") as caught:
            await loop.run("go")
        run = run_so_far(caught.value)
        assert run.status == "cancelled"
        assert len(run.results) == count
        check_history(run.messages)
        assert len(ended) == count - 1
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_tool_that_answers_its_cancellation_slowly_is_awaited() -> None:
    ended: list[str] = []

    async def tidy() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            ended.append("tidy")

    async def main() -> None:
        handle = AgentLoop(lambda _: calls(("tidy", {}), ("tidy", {})), [tidy]).start("go")
        for _ in range(6):
            await asyncio.sleep(0)
        handle.cancel()
        await handle.wait()
        assert ended == ["tidy", "tidy"]

    asyncio.run(main())


def test_generators_of_the_model_are_closed_when_a_run_is_cut() -> None:
    closed: list[str] = []

    async def main() -> None:
        async def chunks() -> Any:
            try:
                yield "Hel"
                await asyncio.sleep(30)
            finally:
                await asyncio.sleep(0)
                closed.append("closed")

        handle = AgentLoop(lambda _: chunks()).start("go")
        for _ in range(4):
            await asyncio.sleep(0)
        assert handle.result_so_far.text == "Hel"
        handle.cancel()
        run = await handle.wait()
        assert (run.status, run.text) == ("cancelled", "Hel")
        assert run.reply is not None
        check_history(run.messages)
        assert closed == ["closed"]

    asyncio.run(main())


def test_stream_that_breaks_keeps_the_text_so_far() -> None:
    def chunks() -> Any:
        yield "Half an "
        raise OSError("connection reset")

    with pytest.raises(turnwarden.engine.ModelError, match="connection reset") as caught:
        AgentLoop(lambda _: chunks()).run_sync("go")
    assert caught.value.run.text.startswith("Half an")


def test_thread_is_abandoned_and_reported_when_the_run_is_cancelled() -> None:
    release = threading.Event()

    @tool(thread=True)
    def hang() -> None:
        release.wait(30)

    async def main() -> None:
        handle = AgentLoop(lambda _: calls(("hang", {})), [hang]).start("go")
        for _ in range(4):
            await asyncio.sleep(0.001)
        handle.cancel()
        run = await handle.wait()
        assert [thread.tool_name for thread in run.abandoned] == ["hang"]
        assert run.results[0].status == "unfinished"
        release.set()
        await asyncio.sleep(0.01)

    asyncio.run(main())


# Every way to end, at every point


WAYS = {
    "answered": ("completed", "answered"),
    "hard limit": ("stopped", "recursion.hard_limit"),
    "loop": ("stopped", "loop.exact"),
    "terminated": ("stopped", "enough"),
    "needs input": ("paused", "needs_input"),
    "model raises": ("failed", "model.error"),
    "model gives nonsense": ("failed", "model.error"),
    "cancelled": ("cancelled", "cancelled"),
    "interrupted": ("cancelled", "cancelled"),
    "timeout": ("cancelled", "cancelled"),
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_end_keeps_what_was_done(way: str, turns: int, style: Any) -> None:
    """So many good turns, with parallel calls and a failing one, then the end."""
    world = World()

    async def work(n: int) -> int:
        world.begun.append(f"work {n}")
        await asyncio.sleep(0)
        world.ended.append(f"work {n}")
        return n + 1

    def fail(n: int) -> int:
        world.begun.append(f"fail {n}")
        raise ValueError("boom")

    async def end(n: int) -> Any:
        if way == "terminated":
            return StandardToolResponse(
                "completed", "m", should_terminate=True, termination_reason="enough"
            )
        if way == "needs input":
            return StandardToolResponse("needs_input", "Which?")
        if way == "cancelled":
            raise asyncio.CancelledError
        if way == "interrupted":
            signal.raise_signal(signal.SIGINT)
        return await asyncio.sleep(30)

    def model(messages: list[Any]) -> Any:
        check_history(messages, style)
        done = world.replies
        world.replies += 1
        if done < turns:
            return calls(("work", {"n": 10 * done + 1}), ("fail", {"n": done}), text="Going on.")
        if way == "loop":
            return calls(("work", {"n": 99}))
        if way == "hard limit":
            return calls(("work", {"n": 10 * done + 1}))
        if way.startswith("model"):
            world.replies -= 1
            if way == "model raises":
                raise OSError("gone")
            return {"foo": 1}
        return "Done." if way == "answered" else calls(("work", {"n": 98}), ("end", {"n": 97}))

    limit = turns + 2 if way == "hard limit" else 30
    guard = {"recursion": {"hard_limit": limit}}
    loop = AgentLoop(model, [work, fail, end], guard, message_style=style)

    async def within_time() -> RunResult:
        async with asyncio.timeout(0.05):
            return await loop.run("go")

    try:
        run = asyncio.run(within_time()) if way == "timeout" else loop.run_sync("go")
    except (Exception, KeyboardInterrupt, asyncio.CancelledError) as error:
        run = run_so_far(error)
    assert (run.status, run.reason) == WAYS[way]
    world.check(run, style)
    assert len([record for record in run.results if record.tool_name == "fail"]) == turns
    assert run.guard.context.current_iteration >= run.iterations >= turns
    assert [m["role"] for m in run.messages].count("assistant") >= turns


# Ctrl-C


def synchronous_loop(world: World, style: Any) -> AgentLoop:
    def work(n: int) -> int:
        world.begun.append(f"work {n}")
        world.ended.append(f"work {n}")
        return n

    def fail(n: int) -> int:
        world.begun.append(f"fail {n}")
        raise ValueError("boom")

    def plan(n: int) -> dict[str, Any]:
        world.begun.append(f"plan {n}")
        world.ended.append(f"plan {n}")
        return {"content": "then", "next": [{"mcp": "work", "args": {"n": 7}}]}

    def ask(n: int) -> StandardToolResponse:
        world.begun.append(f"ask {n}")
        return StandardToolResponse("needs_input", "Which?")

    replies = [
        calls(("work", {"n": 1}), text="First."),
        calls(
            ("work", {"n": 2}), ("fail", {"n": 1}), ("nope", {}), ("work", {}), ("plan", {"n": 3})
        ),
        calls(("work", {"n": 4}), ("ask", {"n": 5})),
    ]

    def model(messages: list[Any]) -> str:
        world.replies += 1
        return replies[world.replies - 1]

    return AgentLoop(model, [work, fail, plan, ask], message_style=style)


class InterruptAt:
    """Raises KeyboardInterrupt before the n-th line that the engine runs."""

    def __init__(self, line: int) -> None:
        self.left = line
        self.where = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(ENGINE):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                sys.settrace(None)
                raise KeyboardInterrupt
        return self

    def __enter__(self) -> InterruptAt:
        sys.settrace(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)


# An interrupt between making a coroutine and starting it leaves it unawaited, in any program.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("style", "stride"), [("openai", 3), ("anthropic", 11)])
def test_interrupted_anywhere_in_the_engine(style: Any, stride: int) -> None:
    line = 1
    kept = 0
    while True:
        line += stride
        world = World()
        loop = synchronous_loop(world, style)
        try:
            with InterruptAt(line) as interrupt:
                result = loop.run_sync("go")
        except RunInterrupted as error:
            kept += 1
            try:
                world.check(error.run, style)
            except AssertionError as problem:
                raise AssertionError(f"cut at {interrupt.where}: {problem}") from problem
            continue
        except KeyboardInterrupt:
            # Before the run began, or after it ended: nothing is lost but the result itself.
            assert not world.begun or len(world.begun) == 7, interrupt.where
            continue
        assert interrupt.left > 0
        assert result.status == "paused"
        break
    assert kept > 1500 // stride


def test_ctrl_c_in_one_of_several_calls_ends_the_others() -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("wait")

    def interrupt() -> None:
        raise KeyboardInterrupt

    reply = calls(("wait", {}), ("interrupt", {}), ("wait", {}))
    with pytest.raises(RunInterrupted) as caught:
        AgentLoop(lambda _: reply, [wait, interrupt]).run_sync("go")
    run = caught.value.run
    check_history(run.messages)
    assert run.status == "cancelled"
    assert [record.status for record in run.results] == ["unfinished"] * 3
    assert ended


def test_ctrl_c_in_a_synchronous_tool_keeps_what_was_done() -> None:
    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    world = World()
    reply = calls(("quick", {"n": 1}), ("interrupt", {}), ("quick", {"n": 2}))
    loop = AgentLoop(lambda _: reply, [quick_of(world), interrupt])
    with pytest.raises(KeyboardInterrupt) as caught:
        loop.run_sync("go")
    assert isinstance(caught.value, RunInterrupted)
    assert not isinstance(caught.value, Exception)
    run = caught.value.run
    world.check(run, "openai")
    assert [record.status for record in run.results] == ["completed", "unfinished", "unfinished"]
    assert "was begun" in run.results[2].error
    assert "may have had effects" in run.results[1].error


@pytest.mark.parametrize("where", ["tool", "model"])
def test_ctrl_c_in_asynchronous_work_keeps_what_was_done(where: str) -> None:
    ended: list[str] = []

    async def interrupt() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(30)
        finally:
            ended.append("tool")

    world = World()

    async def model(messages: list[Any]) -> str:
        await asyncio.sleep(0)
        if len(messages) > 1 and where == "model":
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(30)
        extra = [("interrupt", {})] if where == "tool" else []
        return calls(("quick", {"n": 1}), *extra)

    with pytest.raises(RunInterrupted) as caught:
        AgentLoop(model, [quick_of(world), interrupt]).run_sync("go")
    run = caught.value.run
    world.check(run, "openai")
    assert run.status == "cancelled"
    assert ended == (["tool"] if where == "tool" else [])


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit()])
def test_other_exits_pass_through_with_what_was_done(error: BaseException) -> None:
    def leave() -> None:
        raise error

    world = World()
    reply = calls(("quick", {"n": 1}), ("leave", {}))
    with pytest.raises(type(error)) as caught:
        AgentLoop(lambda _: reply, [quick_of(world), leave]).run_sync("go")
    world.check(run_so_far(caught.value), "openai")


def test_sink_that_raises_does_not_end_a_run(caplog: pytest.LogCaptureFixture) -> None:
    def sink(event: object) -> None:
        raise ValueError("sink")

    assert AgentLoop(lambda _: "ok", on_event=sink).run_sync("go").text == "ok"
    assert "an event sink raised" in caplog.text


def test_error_of_the_engine_itself_keeps_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    from turnwarden.engine import running

    world = World()
    loop = AgentLoop(lambda _: calls(("quick", {"n": 1})), [quick_of(world)])

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(running.Run, "_end_of", broken)
    with pytest.raises(ZeroDivisionError) as caught:
        loop.run_sync("go")
    run = run_so_far(caught.value)
    world.check(run, "openai")
    assert (run.status, run.reason) == ("failed", "engine.error")
