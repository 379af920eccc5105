"""Workflows whose types fit: pyright, in strict mode, has nothing to say."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict, assert_type

from turnwarden.engine import (
    AgentCoreEngine,
    AgentWorkflowDefinition,
    GraphRunHandle,
    Node,
    NodeContext,
    WorkflowNode,
    define_workflow,
    fan_out,
    route,
    subworkflow,
)


class Greeting(TypedDict):
    name: str
    answer: NotRequired[str]
    error: NotRequired[str | None]


@dataclass
class Services:
    greeting: str


def check(state: Greeting) -> Mapping[str, object] | None:
    return None if state["name"] else {"error": "no name"}


async def greet(state: Greeting, ctx: NodeContext[Services]) -> Mapping[str, object]:
    return {"answer": f"{ctx.runtime.greeting}, {state['name']}!"}


def is_text(value: object) -> bool:
    return isinstance(value, str)


def has_name(state: Greeting) -> bool:
    return bool(state["name"])


workflow: AgentWorkflowDefinition[Greeting, str, Services] = define_workflow(
    id="greeting",
    state_type=Greeting,
    is_result=is_text,
    nodes=[
        Node(
            id="check",
            starts_round=True,
            run=check,
            routes=[
                route.to_if_error("failure"),
                route.to_if(has_name, "greet"),
                route.deliver("error"),
            ],
        ),
        Node(id="greet", run=greet, provides=["answer"], routes=[route.deliver("answer")]),
        Node(id="failure", requires=["error"], routes=[route.deliver("error")]),
    ],
)

engine = AgentCoreEngine(workflow=workflow)


async def run() -> None:
    services = Services("Hello")
    assert_type(await engine.run({"name": "Ivan"}, runtime=services), str)
    handle = engine.start({"name": "Ivan"}, runtime=services)
    assert_type(handle, GraphRunHandle[Greeting, str])
    assert_type(handle.state, Greeting)
    assert_type(handle.result_so_far.result, str | None)
    assert_type(await handle, str)


def run_sync() -> None:
    assert_type(engine.run_sync({"name": "Ivan"}, runtime=Services("Hello")), str)


# Without annotations: state and runtime follow from the nodes, the result is anything.

inferred = define_workflow(
    id="inferred",
    nodes=[
        Node(id="greet", starts_round=True, run=greet, routes=[route.deliver("answer")]),
    ],
)
assert_type(inferred, AgentWorkflowDefinition[Greeting, Any, Services])

# Parts on their own

one: WorkflowNode[Greeting, Services] = Node(id="greet", run=greet)
branches = fan_out(["a", "b"], join="c", merge={"notes": operator.add})
nested: WorkflowNode[Greeting, Services] = Node(id="nested", run=workflow)


def to_greeting(state: Mapping[str, Any]) -> Greeting:
    return {"name": state["who"]}


renamed: WorkflowNode[Mapping[str, Any], Services] = Node(
    id="renamed", run=subworkflow(workflow, input=to_greeting, output="text")
)
