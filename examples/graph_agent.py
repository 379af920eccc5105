"""A tool-calling agent as a graph of three nodes, with a guard; it needs no network.

    python examples/graph_agent.py

A scripted model takes the place of yours. It looks in two places at once, then repeats itself
until the guard's text in its prompt tells it to answer. Prints the events of the run as they come,
and the graph for Mermaid at the end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, TypedDict

from turnwarden import ResponseParser, ToolCall, WorkflowGuard
from turnwarden.engine import (
    AgentCoreEngine,
    AgentWorkflowDefinition,
    Node,
    NodeContext,
    define_workflow,
    route,
)


class State(TypedDict, total=False):
    """What the run knows."""

    messages: list[dict[str, Any]]
    calls: tuple[ToolCall, ...]
    answer: str | None


class Services:
    """What the nodes need: a model, a parser, tools."""

    def __init__(self) -> None:
        self.parser = ResponseParser()
        self.asked = 0

    async def model(self, messages: list[dict[str, Any]], note: str | None) -> str:
        """Reply to the messages; the note is the guard's."""
        self.asked += 1
        await asyncio.sleep(0)
        if note:
            return "The runbook does not say. Please ask the owner of the table."
        pages = ["grants", "tables"] if self.asked == 1 else ["grants"]
        calls = [{"mcp": "search", "args": {"page": page}} for page in pages]
        return json.dumps({"content": "", "next": calls})

    async def search(self, page: str) -> str:
        """Look something up."""
        await asyncio.sleep(0)
        return f"Nothing about {page}."


def guard_of(ctx: NodeContext[Services]) -> WorkflowGuard:
    if ctx.guard is None:
        raise RuntimeError("this workflow needs an engine with a guard")
    return ctx.guard


async def ask_model(state: State, ctx: NodeContext[Services]) -> Mapping[str, object]:
    messages = state.get("messages", [])
    text = await ctx.runtime.model(messages, guard_of(ctx).guidance())
    reply = ctx.runtime.parser.parse(text)
    return {
        "messages": [*messages, reply.to_openai_message()],
        "calls": reply.tool_calls,
        "answer": reply.text or None,
    }


async def call_tools(state: State, ctx: NodeContext[Services]) -> Mapping[str, object]:
    guard, calls = guard_of(ctx), state.get("calls", ())
    verdict = guard.record_turn(calls)

    async def answer(call: ToolCall) -> dict[str, Any]:
        if not verdict.allows(call):
            return call.to_openai_result(verdict.warning_message)
        result = await ctx.runtime.search(**call.arguments)
        guard.record_tool_result(result, call_id=call.id)
        return call.to_openai_result(result)

    results = await asyncio.gather(*map(answer, calls))
    return {"messages": [*state.get("messages", []), *results]}


def has_calls(state: State) -> bool:
    return bool(state.get("calls"))


AGENT: AgentWorkflowDefinition[State, str, Services] = define_workflow(
    id="agent",
    state_type=State,
    is_result=lambda value: isinstance(value, str),
    nodes=[
        Node(
            id="model",
            description="Ask the model",
            starts_round=True,
            run=ask_model,
            routes=[route.to_if(has_calls, "tools"), route.to("answer")],
        ),
        Node(id="tools", description="Make its calls", run=call_tools, routes=[route.to("model")]),
        Node(id="answer", requires=["answer"], routes=[route.deliver("answer")]),
    ],
)


async def main() -> None:
    engine = AgentCoreEngine(AGENT, guard={})
    question = {"role": "user", "content": "Who may read the table orders?"}
    async with engine.stream({"messages": [question]}, runtime=Services()) as stream:
        async for event in stream:
            if event.type in ("round_started", "node_finished", "guard_spoke"):
                told = event.to_dict()
                print(event.type, told.get("round", ""), told.get("node_id") or told.get("reason"))
        print("--", stream.result_so_far.result)
    print(AGENT.to_mermaid())


if __name__ == "__main__":
    asyncio.run(main())
