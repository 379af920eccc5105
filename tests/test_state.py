"""The state functions: the shared vectors, the rules of section 4 of the design, and bad data."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from turnwarden import state
from turnwarden._core import TurnwardenError
from turnwarden.state import (
    DEFAULT_WORKFLOW_CONFIG,
    UNSET,
    StateError,
    StepStatus,
    SystemStatus,
    Workflow,
    WorkflowConfig,
    WorkflowStatus,
    WorkflowStep,
    add_steps_to_workflow,
    create_step,
    find_step_by_id,
    generate_step_id,
    generate_workflow_id,
    get_next_pending_step,
    get_steps_by_status,
    get_workflow_progress,
    get_workflow_status,
    has_workflow_failed,
    is_workflow_complete,
    remove_steps_from_workflow,
    update_step_status,
)
from vectors_runner import by_id, rows

STATUSES = [status.value for status in StepStatus]
VECTORS = [row for row in rows("guards_and_state") if row["id"].startswith("st-")]


def workflow_of(*statuses: str) -> dict[str, Any]:
    steps = [{"id": f"s{i}", "status": status} for i, status in enumerate(statuses, 1)]
    return {"id": "wf", "steps": steps}


def holds(found: Any, expected: Any) -> bool:
    """Whether what was found has what is expected; of an object only the keys given count."""
    if isinstance(expected, Mapping):
        plain = found if isinstance(found, Mapping) else vars_of(found)
        return all(holds(plain.get(key), value) for key, value in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(holds, found, expected))
    if isinstance(expected, str) and "<T>" in expected:
        return found.startswith(expected.split("<")[0])
    return found == expected and isinstance(found, bool) == isinstance(expected, bool)


def vars_of(found: Any) -> dict[str, Any]:
    return {entry.name: getattr(found, entry.name) for entry in dataclasses.fields(found)}


@pytest.mark.parametrize("row", [row for row in VECTORS if "answers" in row], ids=by_id)
def test_vector(row: dict[str, Any]) -> None:
    for step, answer in zip(row["script"], row["answers"], strict=True):
        arguments = copy.deepcopy(step["args"])
        found = getattr(state, step["fn"])(*arguments)
        if answer.get("same"):
            assert found is arguments[0]
        if answer.get("undefined"):
            assert found is None
        else:
            assert holds(found, answer["ok"]), found
        assert arguments == step["args"], "the input was changed"


def test_every_vector_without_answers_has_a_test_below() -> None:
    by_hand = {row["id"] for row in VECTORS if "right" in row}
    assert by_hand == {
        "st-upd-retry-error",
        "st-upd-bad-status",
        "st-status-empty",
        "st-prog-199-200",
        "st-create-override",
    }


# update_step_status


def test_retry_that_succeeds_loses_error_and_duration() -> None:
    failed = {
        "id": "w",
        "steps": [{"id": "a", "status": "failed", "error": "timeout", "duration": 9}],
    }
    step = update_step_status(failed, "a", "completed", "ok")["steps"][0]
    assert step == {"id": "a", "status": "completed", "result": "ok"}


@pytest.mark.parametrize("status", ["completed", "running", "pending"])
@pytest.mark.parametrize("error", [UNSET, None])
def test_status_without_error_clears_error_and_old_duration(status: str, error: Any) -> None:
    step = WorkflowStep("a", StepStatus.FAILED, error="x", duration=9)
    changed = update_step_status(Workflow("w", (step,)), "a", status, error=error).steps[0]
    assert (changed.status, changed.error, changed.duration) == (status, None, None)


@pytest.mark.parametrize("status", ["failed", "skipped"])
def test_failed_and_skipped_keep_error_and_duration(status: str) -> None:
    step = WorkflowStep("a", StepStatus.FAILED, error="x", duration=9)
    changed = update_step_status(Workflow("w", (step,)), "a", status).steps[0]
    assert (changed.error, changed.duration) == ("x", 9)


def test_duration_that_is_given_stays() -> None:
    changed = update_step_status(workflow_of("running"), "s1", "completed", duration=0)
    assert changed["steps"][0] == {"id": "s1", "status": "completed", "duration": 0}


def test_completed_with_an_error_keeps_the_old_duration() -> None:
    workflow = {"id": "w", "steps": [{"id": "a", "status": "failed", "duration": 9}]}
    changed = update_step_status(workflow, "a", "completed", error="half done")
    assert changed["steps"][0]["duration"] == 9


def test_none_is_a_result_and_unset_is_not() -> None:
    workflow = {"id": "w", "steps": [{"id": "a", "status": "running", "result": 1}]}
    assert update_step_status(workflow, "a", "running", None)["steps"][0]["result"] is None
    assert update_step_status(workflow, "a", "running")["steps"][0]["result"] == 1
    assert repr(UNSET) == "UNSET"
    assert pickle.loads(pickle.dumps(UNSET)) is UNSET


def test_unknown_id_changes_nothing() -> None:
    workflow = workflow_of("pending")
    assert update_step_status(workflow, "nope", "running") is workflow


@pytest.mark.parametrize("step_id", ["s1", "nope"])
@pytest.mark.parametrize("status", ["compleeted", "", None, 1, [], "PENDING"])
def test_invalid_status_is_a_value_error(step_id: str, status: Any) -> None:
    with pytest.raises(ValueError, match="expected one of pending, running, completed"):
        update_step_status(workflow_of("pending"), step_id, status)


def test_status_of_a_mapping_stays_plain_text() -> None:
    changed = update_step_status(workflow_of("pending"), "s1", StepStatus.RUNNING)
    assert type(changed["steps"][0]["status"]) is str


def test_other_steps_are_the_same_objects() -> None:
    workflow = workflow_of("pending", "pending")
    changed = update_step_status(workflow, "s1", "running")
    assert changed["steps"][1] is workflow["steps"][1]


# Kinds of workflows


@dataclass
class Job:
    id: str
    steps: list[Any]
    owner: str = "me"


@dataclass(frozen=True, slots=True)
class ToolStep(WorkflowStep):
    tool: str = ""
    retries: int = 0
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OwnedWorkflow(Workflow[ToolStep]):
    owner: str = ""


STEP = {"id": "s1", "status": "pending", "mcp": "search"}
KINDS = [
    {"id": "w", "steps": [STEP], "extra": 1},
    OrderedDict({"id": "w", "steps": (STEP,)}),
    defaultdict(list, {"id": "w", "steps": [STEP]}),
    MappingProxyType({"id": "w", "steps": [MappingProxyType(STEP)]}),
    Job("w", [STEP]),
    Job("w", [WorkflowStep("s1")]),
    Workflow("w", (WorkflowStep("s1"),)),
    OwnedWorkflow("w", (ToolStep("s1", tool="search"),), owner="me"),
]


@pytest.mark.parametrize("workflow", KINDS, ids=lambda workflow: type(workflow).__name__)
def test_every_kind_comes_back_as_itself(workflow: Any) -> None:
    before = repr(workflow)
    changed = update_step_status(workflow, "s1", "completed", *([] if is_plain(workflow) else [7]))
    assert type(changed) is type(workflow)
    assert is_workflow_complete(changed)
    assert get_workflow_status(changed).completed_steps == 1
    longer = add_steps_to_workflow(changed, [find_step_by_id(changed, "s1"), new_step(workflow)])
    assert type(longer) is type(workflow)
    assert get_workflow_progress(longer) == 50
    steps_before, steps_after = steps_of(workflow), steps_of(longer)
    assert type(steps_after) is type(steps_before)
    assert [type(step) for step in steps_after[:1]] == [type(step) for step in steps_before]
    assert steps_of(remove_steps_from_workflow(longer, ["n"])) == steps_of(changed)
    assert repr(workflow) == before


def is_plain(workflow: Any) -> bool:
    return isinstance(workflow, Mapping)


def steps_of(workflow: Any) -> Any:
    return workflow["steps"] if is_plain(workflow) else workflow.steps


def new_step(workflow: Any) -> Any:
    return WorkflowStep("n") if isinstance(workflow, Workflow) else {"id": "n", "status": "pending"}


def test_unknown_keys_are_kept() -> None:
    workflow = {"id": "w", "x": {"y": 1}, "steps": [{"id": "a", "status": "pending", "z": [2]}]}
    changed = update_step_status(workflow, "a", "running")
    assert changed["x"] is workflow["x"]
    assert changed["steps"][0]["z"] is workflow["steps"][0]["z"]


def test_dataclass_without_the_field_says_so() -> None:
    @dataclass
    class Bare:
        id: str
        status: str = "pending"

    job = Job("w", [Bare("a")])
    assert update_step_status(job, "a", "running").steps[0].status == "running"
    with pytest.raises(StateError, match=r"workflow\.steps\[0\]\.result.*Bare has no such field"):
        update_step_status(job, "a", "completed", result=1)


def test_readers_take_any_object_with_the_attributes() -> None:
    class Thing:
        id = "w"
        steps = (WorkflowStep("a"),)

    assert get_workflow_progress(Thing()) == 0
    with pytest.raises(StateError, match="workflow: expected a mapping or a dataclass"):
        update_step_status(Thing(), "a", "running")


# add, remove


def test_add_returns_the_same_object_when_nothing_is_new() -> None:
    workflow = workflow_of("pending")
    assert add_steps_to_workflow(workflow, [{"id": "s1", "status": "failed"}]) is workflow
    assert add_steps_to_workflow(workflow, []) is workflow


def test_add_skips_known_ids_within_the_new_ones_too() -> None:
    new = [{"id": "n", "status": "pending", "v": 1}, {"id": "n", "status": "pending", "v": 2}]
    assert add_steps_to_workflow(workflow_of(), iter(new))["steps"] == new[:1]


def test_remove_refuses_one_text() -> None:
    with pytest.raises(StateError, match="step_ids: expected several ids"):
        remove_steps_from_workflow(workflow_of("pending"), "s1")


def test_remove_of_nothing_is_the_same_object() -> None:
    workflow = workflow_of("pending")
    assert remove_steps_from_workflow(workflow, ("zz",)) is workflow


# Status and progress


def test_empty_workflow_is_complete_in_all_three_answers() -> None:
    workflow = workflow_of()
    assert get_workflow_status(workflow).status is StepStatus.COMPLETED
    assert is_workflow_complete(workflow)
    assert get_workflow_progress(workflow) == 100
    assert not has_workflow_failed(workflow)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["completed", "failed", "running", "pending"], "failed"),
        (["running", "pending"], "running"),
        (["completed", "pending"], "running"),
        (["skipped", "pending"], "running"),
        (["completed", "skipped"], "completed"),
        (["skipped"], "completed"),
        (["pending"], "pending"),
    ],
)
def test_overall_status(statuses: list[str], expected: str) -> None:
    assert get_workflow_status(workflow_of(*statuses)).status == expected


def test_current_step_is_the_running_one_else_the_pending_one_else_none() -> None:
    def current(*statuses: str) -> Any:
        step = get_workflow_status(workflow_of(*statuses)).current_step
        return step and step["id"]

    assert current("completed", "pending", "running", "running") == "s3"
    assert current("completed", "pending", "pending") == "s2"
    assert current("completed") is None


def test_progress_is_never_100_before_the_last_step_ends() -> None:
    assert get_workflow_progress(workflow_of(*["completed"] * 199, "running")) == 99
    assert get_workflow_progress(workflow_of(*["completed"] * 200)) == 100


@given(st.lists(st.sampled_from(STATUSES), max_size=300))
def test_answers_agree(statuses: list[str]) -> None:
    workflow = workflow_of(*statuses)
    status = get_workflow_status(workflow)
    progress = get_workflow_progress(workflow)
    done = sum(value in ("completed", "failed", "skipped") for value in statuses)
    assert (progress == 100) == is_workflow_complete(workflow) == (done == len(statuses))
    assert (status.status == "failed") == has_workflow_failed(workflow)
    if statuses and done < len(statuses):
        exact = 100 * done / len(statuses)
        assert abs(progress - exact) <= 0.5 or progress == 99
    assert status.total_steps == len(statuses)
    assert status.pending_steps == len(get_steps_by_status(workflow, "pending"))
    pending = get_next_pending_step(workflow)
    assert (pending is None) == (status.pending_steps == 0)
    assert json.dumps(status.to_dict())


def test_status_to_dict_of_our_own_steps_is_plain() -> None:
    status: WorkflowStatus[WorkflowStep] = get_workflow_status(Workflow("w", (WorkflowStep("a"),)))
    assert json.loads(json.dumps(status.to_dict()))["current_step"]["id"] == "a"


# Making steps and ids


def test_fields_do_not_override_id_and_status() -> None:
    step = create_step("a", {"id": "b", "status": "completed", "tool": "t"})
    assert step == {"id": "a", "status": "pending", "tool": "t"}
    assert create_step("a", status="running")["status"] == "running"
    with pytest.raises(StateError, match="status"):
        create_step("a", status="nope")
    with pytest.raises(StateError, match="step_id"):
        create_step("")


def test_ids_are_unique_and_carry_the_prefix() -> None:
    ids = {generate_workflow_id() for _ in range(2000)}
    assert len(ids) == 2000
    assert all(identifier.startswith("wf-") for identifier in ids)
    assert generate_workflow_id("job").startswith("job-")
    assert generate_step_id("wf-1", 3) == "wf-1-step-3"


# Our own types


def test_enums_and_their_texts_are_interchangeable() -> None:
    assert StepStatus.PENDING == "pending"
    assert {StepStatus.PENDING: 1}["pending"] == 1
    assert json.dumps([SystemStatus.PAUSED]) == '["paused"]'
    assert [status.value for status in SystemStatus] == [
        "idle",
        "running",
        "paused",
        "completed",
        "failed",
        "cancelled",
    ]
    assert StepStatus.SKIPPED.is_done
    assert not StepStatus.RUNNING.is_done


def test_workflow_round_trips_through_plain_data() -> None:
    workflow = OwnedWorkflow(
        "w", (ToolStep("a", "completed", result={"x": 1}, tool="t", tags=["q"]),), "me"
    )
    data = json.loads(json.dumps(workflow.to_dict()))
    assert OwnedWorkflow.from_dict(data, ToolStep) == workflow
    assert OwnedWorkflow.from_dict(data) == workflow
    assert type(Workflow.from_dict({"id": "w", "steps": [{"id": "a"}]}).steps[0]) is WorkflowStep
    assert pickle.loads(pickle.dumps(workflow)) == workflow
    assert copy.deepcopy(workflow) == workflow


def test_workflow_is_frozen() -> None:
    workflow = Workflow("w", [WorkflowStep("a")])
    assert workflow.steps == (WorkflowStep("a"),)
    with pytest.raises(dataclasses.FrozenInstanceError):
        workflow.id = "x"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        workflow.steps[0].status = StepStatus.FAILED  # type: ignore[misc]


def test_status_given_as_text_becomes_the_member() -> None:
    assert WorkflowStep("a", "failed").status is StepStatus.FAILED  # type: ignore[arg-type]


# Bad data


@pytest.mark.parametrize(
    ("workflow", "path"),
    [
        (None, "workflow.id"),
        ({}, "workflow.id"),
        ({"id": "", "steps": []}, "workflow.id"),
        ({"id": 3, "steps": []}, "workflow.id"),
        ({"id": "w"}, "workflow.steps"),
        ({"id": "w", "steps": None}, "workflow.steps"),
        ({"id": "w", "steps": "abc"}, "workflow.steps"),
        ({"id": "w", "steps": {"a": 1}}, "workflow.steps"),
        ({"id": "w", "steps": [1]}, "workflow.steps[0].id"),
        ({"id": "w", "steps": [{"id": "a", "status": "pending"}, {"id": "b"}]}, "steps[1].status"),
        ({"id": "w", "steps": [{"status": "pending"}]}, "workflow.steps[0].id"),
        ({"id": "w", "steps": [{"id": "a", "status": "done"}]}, "workflow.steps[0].status"),
        ({"id": "w", "steps": [{"id": "a", "status": {}}]}, "workflow.steps[0].status"),
        (Job("w", [WorkflowStep("a"), Job("b", [])]), "workflow.steps[1].status"),
    ],
)
def test_bad_data_is_refused_with_its_path(workflow: Any, path: str) -> None:
    readers = [get_workflow_status, is_workflow_complete, get_workflow_progress]
    for function in [*readers, lambda w: update_step_status(w, "q", "running")]:
        with pytest.raises(StateError) as caught:
            function(workflow)
        assert caught.value.path.endswith(path)
        assert str(caught.value).startswith(f"{caught.value.path}: ")
        assert isinstance(caught.value, TurnwardenError)
        assert isinstance(caught.value, ValueError)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_bad_new_steps_are_refused_with_their_path() -> None:
    with pytest.raises(StateError, match=r"^steps\[1\]\.status: expected one of"):
        add_steps_to_workflow(
            workflow_of(), [{"id": "a", "status": "pending"}, {"id": "b", "status": "x"}]
        )
    with pytest.raises(StateError, match=r"^steps: expected a list"):
        add_steps_to_workflow(workflow_of(), {"id": "a", "status": "pending"})


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ([], "workflow"),
        ({}, "workflow.id"),
        ({"id": 1}, "workflow.id"),
        ({"id": "w", "stepz": []}, "workflow.stepz"),
        ({"id": "w", "owner": 3}, "workflow.owner"),
        ({"id": "w", "steps": [[]]}, "workflow.steps[0]"),
        ({"id": "w", "steps": [{"status": "pending"}]}, "workflow.steps[0].id"),
        ({"id": "w", "steps": [{"id": ""}]}, "workflow.steps[0].id"),
        ({"id": "w", "steps": [{"id": "a", "status": "x"}]}, "workflow.steps[0].status"),
        ({"id": "w", "steps": [{"id": "a", "retries": "x"}]}, "workflow.steps[0].retries"),
        ({"id": "w", "steps": [{"id": "a", "tags": ["q", 1]}]}, "workflow.steps[0].tags[1]"),
        ({"id": "w", "steps": [{"id": "a", "colour": 1}]}, "workflow.steps[0].colour"),
        ({"id": "w", "steps": [{"id": "a", "error": 1}]}, "workflow.steps[0].error"),
    ],
)
def test_from_dict_refuses_bad_data_with_its_path(data: Any, path: str) -> None:
    with pytest.raises(StateError) as caught:
        OwnedWorkflow.from_dict(data, ToolStep)
    assert caught.value.path == path


def test_workflow_refuses_what_is_no_step() -> None:
    with pytest.raises(StateError, match=r"workflow\.steps\[0\]: expected a WorkflowStep"):
        Workflow("w", [{"id": "a"}])  # type: ignore[list-item]


def test_messages_do_not_repeat_long_values() -> None:
    with pytest.raises(StateError) as caught:
        update_step_status(workflow_of("pending"), "s1", "x" * 10_000)
    assert len(str(caught.value)) < 300


# WorkflowConfig


def test_config_has_the_defaults_of_the_design() -> None:
    assert DEFAULT_WORKFLOW_CONFIG.to_dict() == {
        "max_iterations": 20,
        "tool_timeout": 30.0,
        "verbose": False,
        "model": None,
        "enable_loop_detection": True,
        "warning_threshold": 10,
        "soft_limit": 15,
    }
    assert WorkflowConfig.from_dict({}) == DEFAULT_WORKFLOW_CONFIG


@pytest.mark.parametrize(
    "data",
    [
        {"max_iterations": 0},
        {"max_iterations": True},
        {"max_iterations": "many"},
        {"tool_timeout": 0},
        {"tool_timeout": -1.0},
        {"tool_timeout": float("nan")},
        {"verbose": 1},
        {"model": 3},
        {"soft_limit": 30},
        {"warning_threshold": 12, "soft_limit": 11},
        {"iterations": 3},
    ],
)
def test_config_refuses_bad_values_with_their_path(data: dict[str, Any]) -> None:
    with pytest.raises(StateError) as caught:
        WorkflowConfig.from_dict(data)
    assert caught.value.path == f"config.{next(iter(data))}"


def test_guard_of_a_config_has_its_limits() -> None:
    config = WorkflowConfig(max_iterations=30, warning_threshold=5, soft_limit=25, verbose=True)
    guard = config.guard_config()
    limits = guard.recursion
    assert (limits.warning_threshold, limits.soft_limit, limits.hard_limit) == (5, 25, 30)
    assert guard.verbose


def test_default_thresholds_give_way_to_a_small_limit() -> None:
    limits = WorkflowConfig(max_iterations=4).guard_config().recursion
    assert limits.hard_limit == 4
    assert limits.warning_threshold <= limits.soft_limit <= 4


@pytest.mark.parametrize("enabled", [True, False])
def test_loop_detection_can_be_switched_off(enabled: bool) -> None:
    from turnwarden import WorkflowGuard

    guard = WorkflowGuard(WorkflowConfig(enable_loop_detection=enabled).guard_config())
    verdicts = []
    for _ in range(8):
        guard.start_iteration()
        verdicts.append(guard.record_tool_call("search", {"q": 1}).action)
        verdicts.append(guard.record_tool_result("nothing").action)
    assert any(action != "continue" for action in verdicts) is enabled


def test_steps_made_as_plain_data_join_a_workflow_of_ours_as_its_own_kind() -> None:
    empty: Workflow[WorkflowStep] = Workflow("w")
    grown = add_steps_to_workflow(empty, [create_step("a"), WorkflowStep("b"), create_step("a")])
    assert grown.steps == (WorkflowStep("a"), WorkflowStep("b"))
    with pytest.raises(StateError, match=r"^steps\[1\]"):
        add_steps_to_workflow(grown, [create_step("c"), create_step("d", {"unknown": 1})])


def test_ids_to_remove_are_several_or_refused() -> None:
    workflow = workflow_of("pending")
    for wrong in (5, None, "s1"):
        with pytest.raises(StateError, match=r"^step_ids: expected several ids, found"):
            remove_steps_from_workflow(workflow, wrong)  # type: ignore[arg-type]
