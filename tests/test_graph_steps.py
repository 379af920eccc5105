"""The seam: every effect goes through a step, so a run can be recorded, replayed, gone on with."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import operator
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from turnwarden.engine import (
    AgentCoreEngine,
    AgentWorkflowDefinition,
    ContractError,
    Event,
    GraphError,
    Node,
    NodeContext,
    NodeError,
    Recorder,
    Recording,
    Replayer,
    ReplayError,
    Retry,
    RunInfo,
    RunStoppedError,
    Step,
    StepOutcome,
    WorkflowNode,
    define_workflow,
    fan_out,
    route,
)
from turnwarden.engine.events import CheckpointWritten

Workflow = AgentWorkflowDefinition[Any, Any, Any]


class Effects:
    """What the nodes of a workflow did outside."""

    def __init__(self) -> None:
        self.calls: list[str] = []


def busy_workflow(effects: Effects, asynchronous: bool) -> Workflow:
    """Every kind of thing that a run can do: retries, emits, errors, branches, a workflow."""
    tries = 0

    def noted(name: str, update: Any = None) -> Callable[[Any], Any]:
        def run(state: Any) -> Any:
            effects.calls.append(name)
            return update

        async def later(state: Any) -> Any:
            await asyncio.sleep(0)
            return run(state)

        return later if asynchronous else run

    def flaky(state: Any, ctx: NodeContext[Any]) -> dict[str, Any]:
        nonlocal tries
        tries += 1
        effects.calls.append("flaky")
        ctx.emit("try", tries)
        if tries % 2:
            raise ConnectionError("gone")
        assert ctx.guard is not None
        ctx.guard.record_tool_call("flaky", {"n": state.get("n")})
        return {"n": state.get("n", 0) + 1}

    def failing(state: Any) -> Any:
        effects.calls.append("failing")
        raise ValueError("bad")

    child = define_workflow(
        id="child",
        nodes=[
            Node(id="ask", starts_round=True, run=noted("ask"), routes=[route.to("say")]),
            Node(id="say", run=noted("say", {"said": "hi"}), routes=[route.deliver("said")]),
        ],
    )
    return define_workflow(
        id="busy",
        nodes=[
            Node(id="flaky", starts_round=True, run=flaky, retry=Retry(attempts=2, delay=0.0),
                 routes=[route.to_if(lambda state: state["n"] < 3, "flaky"), route.to("fail")]),
            Node(id="fail", run=failing, routes=[route.to_if_error("split"), route.deliver("n")]),
            Node(id="split", starts_round=True, requires=["error"],
                 routes=[fan_out(["left", "right", "sub"], join="end",
                                 merge={"notes": operator.add})]),
            Node(id="left", run=noted("left", {"notes": ["l"]}), provides=["notes"]),
            Node(id="right", run=noted("right", {"notes": ["r"]}), provides=["notes"]),
            Node(id="sub", run=child),
            Node(id="end", run=noted("end", {"done": True}), routes=[route.deliver("notes")]),
        ],
    )  # fmt: skip


def outcome_of(engine: AgentCoreEngine[Any, Any, Any], state: Any, run_id: str = "r") -> Any:
    """What a run delivers, or the kind of error that ends it and what it says."""
    try:
        return engine.run_sync(state, run_id=run_id)
    except GraphError as error:
        return type(error), str(error)


def comparable(events: list[Event]) -> list[dict[str, Any]]:
    return [{**event.to_dict(), "timestamp": None, "duration": None} for event in events]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_run_replayed_from_recorded_outcomes_gives_the_same_events(asynchronous: bool) -> None:
    effects = Effects()
    workflow = busy_workflow(effects, asynchronous)
    recorder, told = Recorder(), list[Event]()
    engine = AgentCoreEngine(workflow, guard={}, layer=recorder, on_event=told.append)
    assert outcome_of(engine, {}) == ["l", "r"]
    assert sorted(effects.calls) == sorted(
        ["flaky"] * 6 + ["failing", "left", "right", "ask", "say", "end"]
    )

    made = list(effects.calls)
    recording = Recording.from_dict(json.loads(json.dumps(recorder.recording("r").to_dict())))
    again: list[Event] = []
    replaying = AgentCoreEngine(
        workflow, guard={}, layer=Replayer(recording), on_event=again.append
    )
    assert outcome_of(replaying, recording.state) == ["l", "r"]
    assert effects.calls == made  # nothing ran
    assert comparable(again) == comparable(told)


@pytest.mark.parametrize("kept", range(13))
def test_a_run_goes_on_from_wherever_its_recording_ends(kept: int) -> None:
    effects = Effects()
    workflow = busy_workflow(effects, asynchronous=False)
    recorder = Recorder()
    told: list[Event] = []
    engine = AgentCoreEngine(workflow, guard={}, layer=recorder, on_event=told.append)
    outcome_of(engine, {})
    recording = recorder.recording("r")
    keys = list(recording.outcomes)
    known = {key: recording.outcomes[key] for key in keys[:kept]}
    cut = dataclasses.replace(recording, outcomes=known)
    effects.calls.clear()
    again: list[Event] = []
    resuming = AgentCoreEngine(
        workflow, guard={}, layer=Replayer(cut, resume=True), on_event=again.append
    )
    assert outcome_of(resuming, cut.state) == ["l", "r"]
    assert len(effects.calls) >= len(keys) - kept
    if kept >= 3:  # the attempts before that are flaky by count
        assert [event.type for event in again] == [event.type for event in told]


def looping() -> Workflow:
    def work(state: Any, ctx: NodeContext[Any]) -> None:
        assert ctx.guard is not None
        ctx.guard.record_tool_call("find", {"q": 1})
        ctx.guard.record_tool_result("nothing")

    node = Node(id="again", starts_round=True, run=work, routes=[route.to("again")])
    return define_workflow(id="looping", nodes=[node])


def test_what_nodes_recorded_on_the_guard_is_replayed_too() -> None:
    recorder, told, again = Recorder(), list[Event](), list[Event]()
    engine = AgentCoreEngine(looping(), guard={}, layer=recorder, on_event=told.append)
    ended = outcome_of(engine, {})
    assert ended[0] is RunStoppedError
    layer = Replayer(recorder.recording("r"))
    replaying = AgentCoreEngine(looping(), guard={}, layer=layer, on_event=again.append)
    assert outcome_of(replaying, {}) == ended
    assert comparable(again) == comparable(told)


def test_a_budget_of_seconds_counts_the_time_in_nodes_also_when_it_is_replayed() -> None:
    clock_free = {"budget": {"max_seconds": 0.05}}

    async def wait(state: Any) -> None:
        await asyncio.sleep(0.02)

    node = Node(id="again", starts_round=True, run=wait, routes=[route.to("again")])
    workflow = define_workflow(id="w", nodes=[node])
    recorder = Recorder()
    ended = outcome_of(AgentCoreEngine(workflow, guard=clock_free, layer=recorder), {})
    assert ended[0] is RunStoppedError
    assert "budget.seconds" in ended[1]
    layer = Replayer(recorder.recording("r"))
    assert outcome_of(AgentCoreEngine(workflow, guard=clock_free, layer=layer), {}) == ended


def simple(run: Callable[..., Any], **options: Any) -> Workflow:
    node = Node(id="only", starts_round=True, run=run, routes=[route.deliver("answer")])
    return define_workflow(id="simple", nodes=[node], **options)


def recording_of(workflow: Workflow, state: Any) -> Recording:
    recorder = Recorder()
    outcome_of(AgentCoreEngine(workflow, layer=recorder), state)
    return recorder.recording("r")


def test_what_a_node_raised_is_replayed_too() -> None:
    def fail(state: Any) -> Any:
        raise ValueError("no")

    workflow = simple(fail)
    recording = Recording.from_dict(recording_of(workflow, {}).to_dict())
    with pytest.raises(NodeError, match="ValueError: no"):
        AgentCoreEngine(workflow, layer=Replayer(recording)).run_sync({}, run_id="r")


def test_a_recording_keeps_what_was_returned_not_what_became_of_it() -> None:
    made: list[Any] = []

    def make(state: Any) -> dict[str, Any]:
        made.append([1])
        return {"answer": made[-1]}

    workflow = simple(make)
    recording = recording_of(workflow, {})
    made[0].append(2)
    replayed = AgentCoreEngine(workflow, layer=Replayer(recording))
    first = replayed.run_sync({}, run_id="r")
    first.append(3)
    assert replayed.run_sync({}, run_id="r") == [1]


def test_another_revision_is_refused_unless_allowed() -> None:
    recording = recording_of(simple(lambda state: {"answer": 1}, revision="1"), {})
    newer = simple(lambda state: {"answer": 2}, revision="2")
    with pytest.raises(ReplayError, match=r"revision '1'.*'2'"):
        AgentCoreEngine(newer, layer=Replayer(recording)).run_sync({}, run_id="r")
    layer = Replayer(recording, allow_other_revision=True)
    assert AgentCoreEngine(newer, layer=layer).run_sync({}, run_id="r") == 1


def test_another_run_is_refused() -> None:
    workflow = simple(lambda state: {"answer": 1})
    recording = recording_of(workflow, {})
    for run_id in ("other", "r2", None):
        with pytest.raises(ReplayError, match="run_id='r'"):
            AgentCoreEngine(workflow, layer=Replayer(recording)).run_sync({}, run_id=run_id)


def test_a_step_that_is_not_recorded_ends_the_run_with_what_was_done() -> None:
    workflow = simple(lambda state: {"answer": 1})
    recording = dataclasses.replace(recording_of(workflow, {}), outcomes={})
    with pytest.raises(ReplayError, match="r:0:only") as caught:
        AgentCoreEngine(workflow, layer=Replayer(recording)).run_sync({"x": 1}, run_id="r")
    assert caught.value.run.state == {"x": 1}  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", [{}, {"run_id": "r", "state": {}, "revisions": {}}, {
    "run_id": "r", "state": {}, "revisions": {}, "outcomes": {"k": {"update": 1}}}])  # fmt: skip
def test_what_is_no_recording_is_refused(wrong: Any) -> None:
    with pytest.raises(ReplayError):
        Recording.from_dict(wrong)


# Layers of one's own


class Journal:
    """A layer as a journal would be: asynchronous, and it tells of its checkpoints."""

    def __init__(self) -> None:
        self.kept: dict[str, StepOutcome] = {}
        self.began: list[RunInfo] = []

    def bind(self, step: Step, run: RunInfo, /) -> Step:
        self.began.append(run)

        async def journaled(node: WorkflowNode[Any, Any], key: str, state: Any) -> StepOutcome:
            await asyncio.sleep(0)
            if key not in self.kept:
                begun = step(node, key, state)
                outcome = begun if isinstance(begun, StepOutcome) else await begun
                self.kept[key] = outcome.stored()
                await asyncio.sleep(0)
                run.emit(CheckpointWritten, 1, node.id, key)
                return outcome
            return self.kept[key].stored()

        return journaled


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_layer_may_be_asynchronous_and_tell_events(asynchronous: bool) -> None:
    effects, journal, told = Effects(), Journal(), list[Event]()
    workflow = busy_workflow(effects, asynchronous)
    engine = AgentCoreEngine(workflow, guard={}, layer=journal, on_event=told.append)
    assert outcome_of(engine, {"x": 1}) == ["l", "r"]
    written = [event.key for event in told if isinstance(event, CheckpointWritten)]
    assert sorted(written) == sorted(journal.kept)
    assert journal.began[0].state == {"x": 1}
    assert journal.began[0].run_id == "r"
    assert [info.workflow_id for info in journal.began] == ["busy", "child"]
    made = len(effects.calls)
    assert outcome_of(engine, {"x": 1}) == ["l", "r"]
    assert len(effects.calls) == made


def test_what_a_layer_raises_ends_the_run_and_is_not_the_nodes() -> None:
    class Full:
        def bind(self, step: Step, run: RunInfo, /) -> Step:
            def full(node: Any, key: str, state: Any) -> StepOutcome | Awaitable[StepOutcome]:
                raise OSError("disk full")

            return full

    nodes = [
        Node(id="a", starts_round=True, run=lambda state: None,
             routes=[route.to_if_error("b"), route.to("b")]),
        Node(id="b", routes=[route.deliver("x")]),
    ]  # fmt: skip
    engine = AgentCoreEngine(define_workflow(id="w", nodes=nodes), layer=Full())
    with pytest.raises(OSError, match="disk full") as caught:
        engine.run_sync({"x": 1})
    assert caught.value.run.reason == "engine.error"  # type: ignore[attr-defined]


def test_what_a_layer_raises_in_a_branch_ends_the_run_bare() -> None:
    class Picky:
        def bind(self, step: Step, run: RunInfo, /) -> Step:
            async def picky(node: WorkflowNode[Any, Any], key: str, state: Any) -> StepOutcome:
                await asyncio.sleep(0)
                if node.id == "left":
                    raise OSError("disk full")
                begun = step(node, key, state)
                return begun if isinstance(begun, StepOutcome) else await begun

            return picky

    engine = AgentCoreEngine(busy_workflow(Effects(), asynchronous=True), guard={}, layer=Picky())
    with pytest.raises(OSError, match="disk full"):
        engine.run_sync({})


@pytest.mark.parametrize("recorded", range(4))
def test_what_a_layer_raises_in_a_sub_workflow_ends_the_run_too(recorded: int) -> None:
    inner = simple(lambda state: {"answer": 1}, revision="1")
    nodes = [
        Node(id="a", starts_round=True, run=inner,
             routes=[route.to_if_error("b"), route.to("b")]),
        Node(id="b", routes=[fan_out(["c", "d"], join="e")]),
        Node(id="c", run=lambda state: None),
        Node(id="d", run=inner),
        Node(id="e", routes=[route.deliver("answer")]),
    ]  # fmt: skip
    workflow = define_workflow(id="w", nodes=nodes)
    recording = recording_of(workflow, {})
    keys = sorted(recording.outcomes)
    assert keys == ["r:0:a:0:only", "r:1:c", "r:2:d:0:only"]
    kept = {key: recording.outcomes[key] for key in keys[:recorded]}
    layer = Replayer(dataclasses.replace(recording, outcomes=kept))
    engine = AgentCoreEngine(workflow, layer=layer)
    if recorded == 3:
        assert engine.run_sync({}, run_id="r") == 1
        return
    with pytest.raises(ReplayError, match="is not recorded"):
        engine.run_sync({}, run_id="r")


def test_a_contract_error_is_one_when_it_is_replayed() -> None:
    def breaks(state: Any) -> Any:
        raise ContractError("mine")

    nodes = [
        Node(id="a", starts_round=True, run=breaks, routes=[route.to_if_error("b"), route.to("b")]),
        Node(id="b", routes=[route.deliver("x")]),
    ]
    workflow = define_workflow(id="w", nodes=nodes)
    recording = Recording.from_dict(recording_of(workflow, {}).to_dict())
    with pytest.raises(ContractError):
        AgentCoreEngine(workflow, layer=Replayer(recording)).run_sync({"x": 1}, run_id="r")
