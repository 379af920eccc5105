"""Wrong and odd values at the edge of guards: named when they are the caller's, taken otherwise."""

import copy
import json
import logging
import math
import pickle
from pathlib import Path
from typing import Any

import pytest
import turnwarden
from turnwarden import (
    ConfigurationError,
    GuardAction,
    LoopDetector,
    LoopDetectorConfig,
    RecursionGuard,
    SignatureError,
    ToolPolicy,
    TurnwardenError,
    WorkflowGuard,
    WorkflowGuardConfig,
    WrongTypeError,
    argument_similarity,
    call_signature,
)

NO_NUMBERS = ["3", [], {}, b"3", True, 2.5, object()]

LEAST_AND_MOST = {
    "window_size": (1, 1_000_000),
    "repeat_threshold": (2, 1_000_000),
    "poll_threshold": (2, 1_000_000),
    "pattern_laps": (2, 1_000_000),
    "max_period": (2, 64),
    "error_streak": (2, 256),
    "unknown_tool_streak": (2, 256),
    "scatter_threshold": (2, 256),
    "coverage_threshold": (2, 256),
    "lookup_threshold": (2, 256),
    "memory_turns": (2, 256),
}
FIELDS = [("loop_detection", field, *ends) for field, ends in LEAST_AND_MOST.items()]
FIELDS += [
    ("recursion", field, 1, 2**32 - 1)
    for field in ("warning_threshold", "soft_limit", "hard_limit", "max_iterations")
]
FIELDS += [("escalation", field, 1, 2**32 - 1) for field in ("warn", "block", "stop")]
FIELDS += [("budget", field, 1, 2**64 - 1) for field in ("max_calls", "max_tokens")]


@pytest.mark.parametrize(("part", "field", "least", "most"), FIELDS)
def test_every_count_is_refused_outside_its_range_and_the_range_named(
    part: str, field: str, least: int, most: int
) -> None:
    for value in [-(2**70), -1, least - 1, most + 1, 2**70, math.nan, *NO_NUMBERS]:
        with pytest.raises(ConfigurationError) as error:
            WorkflowGuardConfig({part: {field: value}})
        start = f"{part}.{field} is "
        assert str(error.value).startswith(start), value
        allowed = str(error.value).partition("; allowed: ")[2]
        if (field, value) in [("block", 0), ("stop", 0)]:
            assert allowed.startswith("1 or more, since warn is 1") or "block is" in allowed
        else:
            assert allowed == f"an integer from {least} to {most}", value
    if field not in ("block", "stop"):  # those have a step before them
        assert WorkflowGuardConfig({part: {field: least}})
    assert WorkflowGuardConfig({part: {field: most}})


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, "0.5", True, []])
def test_a_wrong_similarity_is_named_with_its_range(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"allowed: a number from 0 to 1$"):
        LoopDetectorConfig(similarity_threshold=value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"recursion": 3}, "recursion is 3; allowed: RecursionGuardConfig, or a mapping"),
        ({"loop_detection": "x"}, "loop_detection is 'x'; allowed: LoopDetectorConfig"),
        ({"escalation": "strict"}, "escalation is 'strict'; allowed: Escalation"),
        ({"budget": [1]}, "budget is [1]; allowed: Budget, or a mapping of its fields"),
        ({"policies": {"a": 3}}, "policies.a is 3; allowed: a ToolPolicy, a mapping"),
        ({"policies": {3: "read"}}, "a key of policies is 3; allowed: names of tools"),
        ({"policies": {"a": {"x": 1}}}, "policies.a has no field 'x'; it has kind"),
        ({"recursion": {"x": 1}}, "recursion has no field 'x'; it has max_iterations"),
        ({"verbs": {3: "read"}}, "a key of verbs is 3; allowed: words"),
        ({"volatile_keys": {3: True}}, "a key of volatile_keys is 3; allowed: names of keys"),
        ({"tools": 3}, "tools is 3; allowed: a list of tools"),
        ({"tools": "abc"}, "tools is 'abc'; allowed: a list of tools"),
        ({"tools": {"name": "a"}}, "tools is {'name': 'a'}; allowed: a list of tools"),
        ({"tools": [{"name": "a"}, 3]}, "tools[1] is 3; allowed: a tool: a mapping, or an"),
    ],
)
def test_wrong_parts_are_named_by_their_path(config: dict[str, Any], message: str) -> None:
    for make in (WorkflowGuard, WorkflowGuardConfig):
        with pytest.raises(ConfigurationError) as error:
            make(config)
        assert message in str(error.value)


def test_the_name_that_was_given_is_the_one_that_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"^max_iterations is 5; allowed: 8 or more"):
        RecursionGuard(max_iterations=5, soft_limit=8)


TOML_ERRORS = [
    ("x = ", "no valid TOML: Invalid value"),
    ("[recursion]\na = 1\na = 2", "no valid TOML: Cannot overwrite a value"),
    ("[recursion]\nhard_limit = 1979-05-27", "recursion.hard_limit is datetime.date"),
    ("[recursion]\nhard_limit = 2.0", "recursion.hard_limit is 2.0; allowed: an integer"),
    ("recursion = 3", "recursion is 3; allowed: RecursionGuardConfig, or a mapping"),
    ("[loop_detection]\nsimilarity_threshold = nan", "allowed: a number from 0 to 1"),
    ("[policies.pay]\nloop_key = true", "policies.pay.loop_key is True; allowed"),
    ("nosuch = 1", "WorkflowGuardConfig has no field 'nosuch'"),
]


@pytest.mark.parametrize(("text", "message"), TOML_ERRORS)
def test_errors_in_toml_are_ours_and_say_what_is_wrong(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "guard.toml"
    path.write_text(text, "utf-8")
    for source in (text, path):
        with pytest.raises(ConfigurationError) as error:
            WorkflowGuardConfig.from_toml(source)
        assert message in str(error.value)


def test_sources_of_toml_that_cannot_be_read_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"give the path of a file as pathlib\.Path"):
        WorkflowGuardConfig.from_toml("guard.toml")
    with pytest.raises(FileNotFoundError):
        WorkflowGuardConfig.from_toml(tmp_path / "guard.toml")
    for source in (3, b"x = 1", None):
        with pytest.raises(WrongTypeError, match="TOML must be a text"):
            WorkflowGuardConfig.from_toml(source)  # type: ignore[arg-type]
    path = tmp_path / "guard.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match=r"guard\.toml: no valid TOML"):
        WorkflowGuardConfig.from_toml(path)
    path.write_text("[recursion]\nhard_limit = 30", "utf-8-sig")  # as some editors write it
    assert WorkflowGuardConfig.from_toml(path).recursion.hard_limit == 30


def circle() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("arguments", [circle(), nested(20_000)], ids=["circle", "deep"])
def test_arguments_without_an_end_are_an_error_of_ours(arguments: Any) -> None:
    for use in (
        lambda: call_signature("a", arguments),
        lambda: argument_similarity(arguments, {}),
        lambda: WorkflowGuard().record_tool_call("a", arguments),
        lambda: LoopDetector(keep_arguments=True).record_call("a", arguments),
    ):
        with pytest.raises(SignatureError) as error:
            use()
        assert isinstance(error.value, (TurnwardenError, ValueError))
        assert len(str(error.value)) < 300


@pytest.mark.parametrize("value", [b"x", {1, 2}, object(), 1j, ...])
def test_values_that_are_no_json_are_an_error_of_ours(value: Any) -> None:
    for arguments in (value, {"a": [value]}):
        for guard in (WorkflowGuard(), WorkflowGuard(loop_detection={"keep_arguments": True})):
            with pytest.raises(WrongTypeError, match="cannot sign arguments"):
                guard.record_tool_call("a", arguments)
            assert guard.call_history == []
        with pytest.raises(WrongTypeError, match="cannot sign arguments"):
            call_signature("a", arguments)


def test_the_path_in_an_error_stays_short() -> None:
    value: Any = {"k" * 1_000_000: b""}
    for _ in range(5000):
        value = {"deep": value}
    with pytest.raises(WrongTypeError) as error:
        call_signature("a", value)
    assert "more …]" in str(error.value)
    assert len(str(error.value)) < 1000


def test_a_name_that_is_no_text_is_an_error_of_ours() -> None:
    for name in (3, None, b"x"):
        with pytest.raises(WrongTypeError, match="the name of a tool must be a str"):
            call_signature(name, {})  # type: ignore[arg-type]


class Unreadable(dict[str, Any]):
    """A dict whose own methods fail."""

    def items(self) -> Any:
        raise RuntimeError

    keys = __iter__ = __len__ = items  # type: ignore[assignment]


@pytest.mark.parametrize(
    "arguments",
    [
        nested(10_000),
        {"n": 10**5000, "m": -(10**5000)},
        Unreadable(a=1),
        {"a": "\ud800", "\udc00": math.nan, "b": [math.inf, -0.0, 1e300]},
        {None: 1, True: 2, 1.5: 3},
    ],
)
def test_kept_arguments_need_no_code_of_theirs_and_raise_nothing(arguments: Any) -> None:
    guard = WorkflowGuard(loop_detection={"keep_arguments": True})
    for _ in range(3):
        verdict = guard.record_tool_call("a", arguments)
    assert verdict.loop_check.loop_type == "exact"
    kept = [call.arguments for call in guard.call_history]
    assert len(kept) == 3
    assert kept[0] is not None
    assert WorkflowGuard.from_bytes(guard.to_bytes()).call_history == guard.call_history


def test_kept_arguments_are_the_value_that_was_given() -> None:
    arguments = {"z": [1, 2.5, None, True], "a": {"é": 'tab\t"quote\\', "n": 2**70}, "": {}}
    detector = LoopDetector(keep_arguments=True)
    detector.record_call("a", arguments)
    detector.record_call("a", json.dumps(arguments))
    assert [call.arguments for call in detector.call_history] == [arguments, arguments]


def test_a_loop_key_that_fails_falls_back_to_the_arguments(
    caplog: pytest.LogCaptureFixture,
) -> None:
    guard = WorkflowGuard(
        policies={"fetch": ToolPolicy(loop_key=lambda arguments: arguments["url"])}
    )
    with caplog.at_level(logging.WARNING, "turnwarden.guards"):
        for arguments in ({"uri": "x"}, None, "no json", [1]):
            for _ in range(3):
                verdict = guard.record_tool_call("fetch", arguments)
            assert verdict.loop_check.loop_type == "exact", arguments
            guard.reset()
    assert "the loop_key of fetch raised KeyError" in caplog.text


def test_a_loop_key_that_returns_no_json_is_a_wrong_configuration() -> None:
    guard = WorkflowGuard(policies={"a": ToolPolicy(loop_key=lambda arguments: object())})
    with pytest.raises(ConfigurationError, match="the loop_key of a returned what is no JSON"):
        guard.record_tool_call("a", {})


def test_a_loop_key_may_be_interrupted() -> None:
    def interrupted(arguments: Any) -> str:
        raise KeyboardInterrupt

    guard = WorkflowGuard(policies={"a": ToolPolicy(loop_key=interrupted)})
    with pytest.raises(KeyboardInterrupt):
        guard.record_tool_call("a", {})


@pytest.mark.parametrize(
    "spent",
    [
        {"tokens": -1},
        {"tokens": 2**64},
        {"tokens": "7"},
        {"tokens": 1.5},
        {"calls": -1},
        {"cost": -0.5},
        {"cost": math.nan},
        {"cost": math.inf},
        {"cost": "1"},
    ],
)
def test_what_cannot_be_spent_is_refused_and_nothing_counted(spent: dict[str, Any]) -> None:
    guard = WorkflowGuard(budget={"max_tokens": 10, "max_calls": 10, "max_cost": 1.0})
    (field,) = spent
    with pytest.raises(ConfigurationError, match=f"^{field} is .*; allowed: "):
        guard.spend(**spent)
    assert guard.check().action is GuardAction.CONTINUE


def test_a_usage_that_a_provider_left_out_is_none_spent() -> None:
    guard = WorkflowGuard(budget={"max_tokens": 10})
    assert guard.spend(tokens=None, cost=None, calls=None).action is GuardAction.CONTINUE
    assert guard.spend(tokens=10).force_terminate_reason == "budget.tokens"


def test_ids_may_be_numbers_and_nothing_else() -> None:
    guard = WorkflowGuard()
    for _ in range(3):
        guard.record_turn(
            [{"id": 0, "name": "a", "arguments": {}}, {"id": 1, "name": "b", "arguments": {}}]
        )
        guard.record_tool_result("one", call_id=1)
        verdict = guard.record_tool_result("nought", call_id=0)
    assert verdict.loop_check.loop_type == "exact"
    for wrong in (1.5, b"x", ["x"]):
        with pytest.raises(WrongTypeError, match="the id of a call must be a str"):
            guard.record_tool_result("x", call_id=wrong)  # type: ignore[arg-type]
        with pytest.raises(WrongTypeError, match="the id of a call must be a str"):
            guard.record_tool_call("a", {}, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("calls", [3, None, "abc", {"name": "a", "arguments": {}}])
def test_a_turn_is_a_list_of_calls(calls: Any) -> None:
    for record in (WorkflowGuard().record_turn, LoopDetector().record_turn):
        with pytest.raises(WrongTypeError, match="the calls of a turn must be a list of calls"):
            record(calls)


def test_a_reason_is_a_text() -> None:
    guard = WorkflowGuard()
    for reason in (3, None, b"x"):
        with pytest.raises(WrongTypeError, match="a reason must be a str"):
            guard.terminate(reason)  # type: ignore[arg-type]
    guard.terminate("\ud800 left")
    assert guard.start_iteration().force_terminate


def go_on(guard: Any) -> list[Any]:
    """What a guard says to what comes next."""
    said: list[Any] = []
    for number in range(6):
        call = ("a", {"n": number // 4})
        if isinstance(guard, LoopDetector):
            guard.record_call(*call)
            guard.record_result("same")
            said.append(guard.detect().to_dict())
        elif isinstance(guard, RecursionGuard):
            said.append(guard.increment().to_dict())
            said.append(guard.generate_prompt_injection())
        else:
            said.append(guard.start_iteration().to_dict())
            said.append(guard.record_tool_call(*call).to_dict())
            said.append(guard.record_tool_result("same").to_dict())
    return said


def first_argument(arguments: Any) -> Any:
    return next(iter(arguments.values()))


@pytest.mark.parametrize(
    "make",
    [
        WorkflowGuard,
        lambda: WorkflowGuard(recursion={"hard_limit": 4}, locale="zh", verbose=True),
        lambda: WorkflowGuard(policies={"a": ToolPolicy(loop_key=first_argument)}),
        lambda: WorkflowGuard(clock=float),
        LoopDetector,
        lambda: LoopDetector(
            repeat_threshold=2, policies={"b": ToolPolicy(loop_key=first_argument)}
        ),
        RecursionGuard,
        lambda: RecursionGuard(hard_limit=5, locale="zh", templates={"status": "{current}"}),
    ],
)
def test_guards_can_be_pickled_and_copied_in_the_middle_of_a_run(make: Any) -> None:
    guard = make()
    go_on(guard)
    twins = [pickle.loads(pickle.dumps(guard)), copy.copy(guard), copy.deepcopy(guard)]
    expected = go_on(guard)
    for twin in twins:
        assert type(twin) is type(guard)
        assert go_on(twin) == expected


def test_what_guards_say_can_be_copied() -> None:
    guard = WorkflowGuard()
    for _ in range(3):
        verdict = guard.record_tool_call("a", {})
    for value in (verdict, verdict.loop_check, verdict.recursion_check, guard.call_history[0]):
        assert copy.copy(value) == value
        assert copy.deepcopy({"value": [value]})["value"][0] == value


def test_every_exception_of_guards_has_the_one_root() -> None:
    for name in turnwarden.guards.__all__:
        value = getattr(turnwarden.guards, name)
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, TurnwardenError)
