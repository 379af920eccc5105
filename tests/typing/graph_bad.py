"""Workflows whose types do not fit: pyright must complain where a line ends in `# wrong`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from turnwarden.engine import (
    AgentCoreEngine,
    AgentWorkflowDefinition,
    Node,
    NodeContext,
    WorkflowNode,
    define_workflow,
    route,
)


class Greeting(TypedDict, total=False):
    name: str
    answer: str


class Other(TypedDict):
    number: int


@dataclass
class Services:
    greeting: str


def greet(state: Greeting, ctx: NodeContext[Services]) -> Mapping[str, object]:
    return {"answer": ctx.runtime.salutation}  # wrong


def of_other(state: Other) -> Mapping[str, object] | None:
    return None


def returns_a_list(state: Greeting) -> list[str]:
    return [state["nmae"]]  # wrong


def is_other(state: Other) -> bool:
    return state["number"] > 0


async def is_async(state: Greeting) -> bool:
    return True


lists: WorkflowNode[Greeting, None] = Node(id="a", run=returns_a_list)  # wrong
others: WorkflowNode[Greeting, None] = Node(id="a", run=of_other)  # wrong
of_others: WorkflowNode[Greeting, None] = Node(id="a", routes=[route.to_if(is_other, "b")])  # wrong
later = route.to_if(is_async, "b")  # wrong
swapped = route.to_if("b", is_other)  # wrong
nameless: WorkflowNode[Greeting, None] = Node(description="no id")  # wrong

workflow: AgentWorkflowDefinition[Greeting, str, Services] = define_workflow(
    id="greeting",
    nodes=[Node(id="greet", starts_round=True, run=greet, routes=[route.deliver("answer")])],
)
workflow.id = "other"  # wrong
workflow.nodes[0].id = "other"  # wrong

mixed: AgentWorkflowDefinition[Greeting, str, Services] = define_workflow(  # wrong
    id="mixed",
    nodes=[Node(id="a", starts_round=True, run=of_other, routes=[route.deliver("x")])],  # wrong
)

engine = AgentCoreEngine(workflow)
services = Services("Hello")


async def run() -> None:
    number: int = await engine.run({"name": "Ivan"}, runtime=services)  # wrong
    await engine.run({"number": 5}, runtime=services)  # wrong
    await engine.run({"name": "Ivan"}, runtime="services")  # wrong
    handle = engine.start({"name": "Ivan"}, runtime=services)
    handle.state["number"]  # wrong
    print(number)
