"""Snapshots go on exactly, damaged ones are refused, and guards are small."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turnwarden import (
    ConfigurationError,
    LoopDetector,
    SnapshotError,
    ToolPolicy,
    TurnwardenError,
    WorkflowGuard,
)

SENTENCE = "a watercolour of a small {} harbour at dawn with two boats and a lighthouse"
CALLS: list[tuple[str, Any]] = [
    ("search", {"q": "tea"}),
    ("search", {"q": SENTENCE.format("grey")}),
    ("search", {"q": SENTENCE.format("blue")}),
    ("search", {"q": SENTENCE.format("teal"), "page": 2}),
    ("read_file", {"path": "a.py", "offset": 0, "limit": 100}),
    ("read_file", {"path": "a.py", "offset": 20, "limit": 50}),
    ("write_file", {"path": "a.py", "text": "x" * 600}),
    ("job_status", {}),
    ("bash", {"command": "make all"}),
    ("think", {"thought": "hm"}),
    ("pay", {"to": "x", "nonce": 3}),
    ("pay", {"to": "x", "nonce": 4}),
    ("_invalid", None),
    ("工具", '{"a": [1, 2'),
]
RESULTS: list[tuple[Any, Any]] = [
    ("one and the same answer", None),
    ({"id": 1, "rows": [1, 2]}, None),
    ("No matches found", None),
    ("", None),
    (None, "disk is full"),
    (None, "429 too many requests"),
    (None, "unknown tool pay"),
]
CONFIGS: list[dict[str, Any]] = [
    {},
    {"loop_detection": {"keep_arguments": True, "window_size": 3, "max_period": 5}},
    {"observe": True, "budget": {"max_tokens": 500, "max_calls": 30}, "locale": "zh"},
    {
        "policies": {"pay": ToolPolicy("write", ignore_arguments=["nonce"]), "job_*": "read"},
        "verbs": {"frob": "read"},
        "volatile_keys": {"rows": True, "date": False},
        "templates": {"blocked": "Not run."},
        "escalation": {"warn": 1, "block": 3, "stop": 4},
    },
]

Step = Callable[[Any], Any]


def calls_step(indices: list[int]) -> Step:
    calls = [
        {"id": str(n), "name": CALLS[i][0], "arguments": CALLS[i][1]} for n, i in enumerate(indices)
    ]
    return lambda guard: guard.record_turn(calls)


def result_step(index: int, call_id: str | None) -> Step:
    result, error = RESULTS[index]
    return lambda guard: (
        guard.record_tool_result(result, call_id, error)
        if isinstance(guard, WorkflowGuard)
        else guard.record_result(result, call_id, error)
    )


COMMON = st.one_of(
    st.lists(st.integers(0, len(CALLS) - 1), min_size=1, max_size=1).map(calls_step),
    st.lists(st.integers(0, len(CALLS) - 1), min_size=1, max_size=3).map(calls_step),
    st.builds(result_step, st.integers(0, len(RESULTS) - 1), st.sampled_from([None, "0", "1"])),
)
RARE: list[Step] = [
    lambda guard: guard.start_iteration(),
    lambda guard: guard.spend(tokens=90, cost=0.5),
    lambda guard: guard.terminate("enough"),
    lambda guard: guard.reset(),
]


def runs(steps: st.SearchStrategy[Step]) -> st.SearchStrategy[list[Step]]:
    """A few steps in laps and streaks, where loops are."""
    few = st.lists(steps, min_size=1, max_size=4)
    laps = st.tuples(few, st.integers(1, 5)).map(lambda lap: lap[0] * lap[1])
    return st.lists(laps, max_size=4).map(lambda parts: [step for part in parts for step in part])


GUARD_STEPS = st.one_of(COMMON, COMMON, COMMON, st.sampled_from(RARE))


def clock() -> float:
    return 1_000_000.0


def seen(guard: WorkflowGuard) -> list[Any]:
    calls = [(call.to_dict(), call.index) for call in guard.call_history]
    return [
        guard.check().to_dict(),
        guard.guidance(),
        guard.generate_summary(),
        guard.context.to_dict(),
        calls,
        guard.to_bytes(),
    ]


@given(st.sampled_from(CONFIGS), runs(GUARD_STEPS), runs(GUARD_STEPS))
@settings(max_examples=150, deadline=None)
def test_a_snapshot_at_any_point_goes_on_exactly_as_the_guard(
    config: dict[str, Any], before: list[Step], after: list[Step]
) -> None:
    guard = WorkflowGuard(config, clock=clock)
    for step in before:
        step(guard)
    twin = WorkflowGuard.from_bytes(guard.to_bytes(), clock=clock)
    assert twin.config.to_dict().keys() >= guard.config.to_dict().keys()
    assert seen(twin) == seen(guard)
    for step in after:
        one, other = step(guard), step(twin)
        assert one == other
    assert seen(twin) == seen(guard)


@given(runs(COMMON), runs(COMMON))
@settings(max_examples=100, deadline=None)
def test_a_snapshot_of_a_detector_goes_on_exactly(before: list[Step], after: list[Step]) -> None:
    detector = LoopDetector(clock=clock)
    for step in before:
        step(detector)
    twin = LoopDetector.from_bytes(detector.to_bytes(), clock=clock)
    for step in after:
        step(detector)
        step(twin)
        assert twin.detect().to_dict() == detector.detect().to_dict()
    assert twin.to_bytes() == detector.to_bytes()
    assert twin.generate_history_summary() == detector.generate_history_summary()


def snapshot() -> bytes:
    guard = WorkflowGuard(CONFIGS[3], clock=clock)
    for name, arguments in CALLS * 2:
        guard.start_iteration()
        guard.record_tool_call(name, arguments)
        guard.record_tool_result("one and the same answer")
    return guard.to_bytes()


SNAPSHOT = snapshot()


@given(st.lists(st.tuples(st.integers(0, len(SNAPSHOT) - 1), st.integers(1, 255)), min_size=1))
@settings(max_examples=300, deadline=None)
def test_changed_bytes_are_refused(changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(SNAPSHOT)
    for at, flip in changes:
        damaged[at] ^= flip
    if damaged == SNAPSHOT:
        return
    with pytest.raises(SnapshotError, match=r"this snapshot|these bytes"):
        WorkflowGuard.from_bytes(damaged)


@given(st.integers(0, len(SNAPSHOT) - 1), st.binary(max_size=40))
@settings(max_examples=200, deadline=None)
def test_bytes_that_were_cut_off_or_joined_are_refused(length: int, more: bytes) -> None:
    for data in (SNAPSHOT[:length] + more, SNAPSHOT + b"\0" + more, more + SNAPSHOT[length + 1 :]):
        if data == SNAPSHOT:
            continue
        with pytest.raises(SnapshotError):
            WorkflowGuard.from_bytes(data)


def test_every_single_bit_counts() -> None:
    small = WorkflowGuard(clock=clock).to_bytes()
    for at in range(len(small)):
        for bit in range(8):
            damaged = bytearray(small)
            damaged[at] ^= 1 << bit
            with pytest.raises(SnapshotError):
                WorkflowGuard.from_bytes(damaged)


def test_what_is_no_snapshot_is_refused_in_words() -> None:
    for data in (b"", b"twg", b"{}", b"\0" * 1000):
        with pytest.raises(SnapshotError, match="no snapshot of a guard"):
            WorkflowGuard.from_bytes(data)
    with pytest.raises(SnapshotError, match="cut off or changed"):
        WorkflowGuard.from_bytes(b"twgd")
    with pytest.raises(SnapshotError, match="version 99"):
        WorkflowGuard.from_bytes(b"twgd" + b"\x63" + SNAPSHOT[5:])
    with pytest.raises(SnapshotError, match="another kind of guard"):
        LoopDetector.from_bytes(SNAPSHOT)
    with pytest.raises(TypeError, match="bytes"):
        WorkflowGuard.from_bytes("twgd")  # type: ignore[arg-type]
    assert issubclass(SnapshotError, TurnwardenError)
    assert issubclass(SnapshotError, ValueError)


def test_a_function_in_a_policy_asks_for_the_configuration_again() -> None:
    config = {"policies": {"fetch": ToolPolicy(loop_key=lambda arguments: arguments["url"][:3])}}
    guard = WorkflowGuard(config, clock=clock)
    for url in ("abc", "abcd"):
        guard.record_tool_call("fetch", {"url": url})
    data = guard.to_bytes()
    with pytest.raises(ConfigurationError, match="config="):
        WorkflowGuard.from_bytes(data)
    twin = WorkflowGuard.from_bytes(data, config, clock=clock)
    assert twin.record_tool_call("fetch", {"url": "abcde"}).loop_check


def test_a_snapshot_may_go_on_with_another_configuration() -> None:
    guard = WorkflowGuard(loop_detection={"max_period": 4}, clock=clock)
    for name in "ababa":
        guard.record_tool_call(name, {"q": 1})
    twin = WorkflowGuard.from_bytes(guard.to_bytes(), {"recursion": {"hard_limit": 3}})
    assert twin.config.recursion.hard_limit == 3
    assert twin.check().loop_check.loop_type == "oscillating"


# Size.


@pytest.mark.parametrize("results", [False, True])
def test_a_default_guard_after_20_small_calls_fits_into_2_kilobytes(results: bool) -> None:
    guard = WorkflowGuard()
    for number in range(20):
        guard.start_iteration()
        guard.record_tool_call(f"tool_{number % 5}", {"query": f"weather in town {number}"})
        if results:
            guard.record_tool_result(f"{number} degrees and rain")
    assert guard.context.total_calls == 20
    assert len(guard.to_bytes()) < 2048


HELD = """
import os
from turnwarden import WorkflowGuard

def played():
    guard = WorkflowGuard()
    for number in range(20):
        guard.start_iteration()
        guard.record_tool_call(f"tool_{number % 5}", {"query": f"weather in town {number}"})
        guard.record_tool_result(f"{number} degrees and rain")
    return guard

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

warm = [played() for _ in range(500)]
before = resident()
guards = [played() for _ in range(8000)]
print((resident() - before) // len(guards))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell")
def test_the_process_grows_by_less_than_2_kilobytes_a_guard() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELD], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) < 2048


def test_a_snapshot_does_not_grow_with_the_run_or_with_what_calls_brought() -> None:
    guard = WorkflowGuard(recursion={"hard_limit": 10**9})
    sizes: list[int] = []
    for number in range(3000):
        guard.record_tool_call("frob", {"text": f"{number} " * 2000})
        guard.record_tool_result(f"{number} " * 2000)
        sizes.append(len(guard.to_bytes()))
    assert max(sizes) < 8192
    assert max(sizes[2000:]) <= max(sizes[:2000]) + 64
