"""The agent loop, side by side: what one iteration costs when model and tool take no time.

An iteration is one reply with one call, and the call; the model's reply is made beforehand. Ours
parses it, guards call and result, checks the arguments and keeps the history. The peers are given
their own test models, whose replies need no parsing, and their prebuilt agents, which have no
guard. `by hand` is the loop that everyone writes: json.loads, a dict of functions, append.

The peers are in the group `bench-loop`; one that is not installed is left out.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

from turnwarden import WorkflowGuardConfig
from turnwarden.engine import AgentLoop

from benches.compare.measure import Effort, measure, seconds, table

ITERATIONS = 20
BAR = 60e-6

GUARD = WorkflowGuardConfig(
    recursion={"warning_threshold": 1000, "soft_limit": 2000, "hard_limit": 3000}
)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def add_later(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def in_text(name: str) -> list[str]:
    """Replies that make calls, all different, and the answer."""
    calls = [
        json.dumps({"content": "", "next": [{"mcp": name, "args": {"a": n, "b": 2}}]})
        for n in range(ITERATIONS)
    ]
    return [*calls, "Done."]


def native(name: str) -> list[dict[str, Any]]:
    """The same as native messages."""
    messages: list[dict[str, Any]] = []
    for n in range(ITERATIONS):
        function = {"name": name, "arguments": json.dumps({"a": n, "b": 2})}
        call = {"id": f"call_{n}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    return [*messages, {"role": "assistant", "content": "Done."}]


class Scripted:
    """A model that takes no time; `start` begins anew."""

    def __init__(self, replies: list[Any]) -> None:
        self._replies = replies
        self.start()

    def start(self) -> None:
        self._left = iter(self._replies)

    def __call__(self, messages: list[Any]) -> Any:
        return next(self._left)

    async def later(self, messages: list[Any]) -> Any:
        return next(self._left)


Contender = Callable[[], object]


def in_loop(runner: asyncio.Runner, run: Callable[[], Awaitable[Any]]) -> Contender:
    async def awaited() -> Any:
        return await run()

    loop = runner.get_loop()
    return lambda: loop.run_until_complete(awaited())


def ours(runner: asyncio.Runner, replies: list[Any]) -> Contender:
    """An asynchronous model and an asynchronous tool."""
    model = Scripted(replies)
    loop = AgentLoop(model.later, [add_later], GUARD)

    async def run() -> None:
        model.start()
        result = await loop.run("go")
        assert (result.text, len(result.results)) == ("Done.", ITERATIONS), result.reason

    return in_loop(runner, run)


def ours_synchronous() -> Contender:
    """A synchronous model and a synchronous tool: no event loop at all."""
    model = Scripted(in_text("add"))
    loop = AgentLoop(model, [add], GUARD)

    def run() -> None:
        model.start()
        result = loop.run_sync("go")
        assert (result.text, len(result.results)) == ("Done.", ITERATIONS), result.reason

    return run


def by_hand(runner: asyncio.Runner) -> Contender:
    model = Scripted(native("add_later"))
    tools = {"add_later": add_later}

    async def run() -> None:
        model.start()
        messages: list[Any] = [{"role": "user", "content": "go"}]
        while True:
            message = await model.later(messages)
            messages.append(message)
            if not message.get("tool_calls"):
                break
            for call in message["tool_calls"]:
                function = call["function"]
                result = await tools[function["name"]](**json.loads(function["arguments"]))
                answer = {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)}
                messages.append(answer)
        assert len(messages) == 2 * ITERATIONS + 2

    return in_loop(runner, run)


def langgraph(runner: asyncio.Runner) -> Contender:
    """The prebuilt agent with langchain's fake model."""
    from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
    from langchain_core.messages import AIMessage
    from langgraph.prebuilt import create_react_agent

    class Model(FakeMessagesListChatModel):
        def bind_tools(self, *_: Any, **__: Any) -> Model:
            return self

    def call(n: int) -> dict[str, Any]:
        return {"name": "add_later", "args": {"a": n, "b": 2}, "id": f"call_{n}"}

    replies = [AIMessage("", tool_calls=[call(n)]) for n in range(ITERATIONS)]
    model = Model(responses=[*replies, AIMessage("Done.")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has moved to a package with more dependencies
        agent = create_react_agent(model, [add_later])

    async def run() -> None:
        model.i = 0
        state = await agent.ainvoke(
            {"messages": [("user", "go")]}, {"recursion_limit": 10 * ITERATIONS}
        )
        assert len(state["messages"]) == 2 * ITERATIONS + 2

    return in_loop(runner, run)


def pydantic_ai(runner: asyncio.Runner) -> Contender:
    """The agent with its function model, the test model that can make these calls."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import UsageLimits

    calls = [
        ModelResponse([ToolCallPart("add_later", {"a": n, "b": 2}, f"call_{n}")])
        for n in range(ITERATIONS)
    ]
    scripted = Scripted([*calls, ModelResponse([TextPart("Done.")])])

    async def model(messages: list[Any], info: Any) -> ModelResponse:
        return await scripted.later(messages)

    agent = Agent(FunctionModel(model), tools=[add_later])
    limits = UsageLimits(request_limit=10 * ITERATIONS)

    async def run() -> None:
        scripted.start()
        result = await agent.run("go", usage_limits=limits)
        assert result.output == "Done."

    return in_loop(runner, run)


PEERS: dict[str, tuple[str, Callable[[asyncio.Runner], Contender]]] = {
    "LangGraph, prebuilt agent": ("langgraph", langgraph),
    "Pydantic AI": ("pydantic_ai", pydantic_ai),
}


def main(effort: Effort) -> None:
    """Measure and print."""
    with asyncio.Runner() as runner:
        contenders = {
            "AgentLoop, replies in text": ours(runner, in_text("add_later")),
            "AgentLoop, native messages": ours(runner, native("add_later")),
            "AgentLoop, all synchronous": ours_synchronous(),
            "by hand, no guard": by_hand(runner),
        }
        missing: list[str] = []
        for name, (module, make) in PEERS.items():
            if importlib.util.find_spec(module) is None:
                missing.append(name)
            else:
                contenders[name] = make(runner)
        best = measure(contenders, effort)
    each = {name: time / ITERATIONS for name, time in best.items()}
    reference = each["AgentLoop, replies in text"]
    rows = [[name, seconds(time), f"{time / reference:.2g}x", ""] for name, time in each.items()]
    rows[0][3] = f"{seconds(BAR)}: {'met' if reference < BAR else 'MISSED'}"
    print(table(["one iteration", "time", "of ours", "bar"], rows))
    if missing:
        print(f"\nNot installed (`pip install --group bench-loop`): {', '.join(missing)}")


if __name__ == "__main__":
    from benches.compare.measure import FULL

    main(FULL)
