"""`SessionGuards`: sessions are kept apart, in bounded memory, by any number of threads."""

import collections
import gc
import random
import resource
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import pytest
import turnwarden
from turnwarden import (
    ConfigurationError,
    LoopDetector,
    SessionGuards,
    WorkflowGuard,
    WorkflowGuardConfig,
    WrongTypeError,
)
from turnwarden.guards import GuardAction, GuardCheckResult


def turn(guards: SessionGuards, session: str, call: Any, result: Any = "same old text") -> str:
    """One call of a session and its result; what the guard says then."""
    guards.record(session, [call])
    return guards.record_results(session, [result]).action.value


TEA = ("search", {"q": "tea"})


def test_a_session_is_guarded_as_a_run_is() -> None:
    guards = SessionGuards()
    actions = [turn(guards, "a", TEA) for _ in range(3)]
    assert actions == ["continue", "continue", "warn"]
    assert guards.record("a", [TEA]).action is GuardAction.BLOCK
    assert guards.check("b").action is GuardAction.CONTINUE
    assert turn(guards, "b", TEA) == "continue"
    assert "a" in guards
    assert "c" not in guards
    assert repr(guards) == "<SessionGuards: 2 sessions, 5 calls>"


def test_results_find_their_calls_by_id() -> None:
    guards = SessionGuards()
    guards.record("a", [("get_x", {"n": 1}), ("get_x", {"n": 2})])
    guards.record_results("a", {"unknown": 1})
    assert guards.metrics["results"] == 1


def test_results_are_a_list_or_a_mapping_by_call_id() -> None:
    guards = SessionGuards()
    call = {"name": "get_price", "arguments": {"of": "tea"}}
    kinds = [dict, types.MappingProxyType, collections.UserDict]
    for n, kind in enumerate(
        kinds * 2
    ):  # a price that changes is no loop: each result finds its call
        guards.record("a", [{**call, "id": n}])
        verdict = guards.record_results("a", kind({n: f"{n + 3} euros and some"}))
        assert verdict.action is GuardAction.CONTINUE
    for wrong in ("text", 5, None):
        with pytest.raises(TypeError, match="the results must be a list or a mapping"):
            guards.record_results("a", wrong)  # type: ignore[arg-type]
    assert guards.metrics["results"] == 6


def test_results_may_be_errors() -> None:
    """Four equal errors of a tool are a loop, also when its arguments differ."""

    def last(record: Callable[[SessionGuards, int], GuardCheckResult]) -> GuardAction:
        guards = SessionGuards()
        for n, word in enumerate(["tea", "oslo", "maple", "ferry"]):
            guards.record("a", [{"name": "book", "arguments": {"q": word}, "id": n}])
            verdict = record(guards, n)
        return verdict.action

    ways: list[Callable[[SessionGuards, int], GuardCheckResult]] = [
        lambda guards, n: guards.record_results("a", [OSError("no such room")]),
        lambda guards, n: guards.record_results("a", ["no such room"], [True]),
        lambda guards, n: guards.record_results("a", [None], errors=["no such room"]),
        lambda guards, n: guards.record_results("a", {n: "no such room"}, {n: True}),
        lambda guards, n: guards.record_results("a", {}, {n: "no such room"}),
    ]
    assert [last(way) for way in ways] == [GuardAction.WARN] * len(ways)
    fine = last(lambda guards, n: guards.record_results("a", [f"room {n}"], [None]))
    assert fine is GuardAction.CONTINUE


def test_errors_have_the_form_of_the_results() -> None:
    guards = SessionGuards()
    guards.record("a", [TEA])
    with pytest.raises(ConfigurationError, match="errors has 2 entries for 1 results"):
        guards.record_results("a", ["x"], [None, None])
    with pytest.raises(TypeError, match="the errors must be a mapping, as the results are"):
        guards.record_results("a", {1: "x"}, ["no"])  # type: ignore[arg-type]
    for wrong in ({1: "no"}, "no", b"no", 5):
        with pytest.raises(TypeError, match="the errors must be a list, as the results are"):
            guards.record_results("a", ["x"], wrong)  # type: ignore[arg-type]
    assert guards.metrics["results"] == 0


def test_what_is_no_session_id_is_named() -> None:
    guards = SessionGuards()
    methods = [
        lambda given: guards.record(given, [TEA]),
        lambda given: guards.record_results(given, ["x"]),
        guards.check,
        guards.guard,
        guards.forget,
        guards.__contains__,
    ]
    for method in methods:
        with pytest.raises(WrongTypeError, match="session_id must be a str, not int"):
            method(5)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match=r"session_id .* without lone surrogates"):
            method("\ud800")
    assert len(guards) == 0
    for odd in ("", "\0", "a\0b", "x" * 100_000, "😀"):
        guards.record(odd, [TEA])
        assert odd in guards


def test_limits_and_clocks_are_checked_when_they_are_given() -> None:
    for wrong in (0, -1, True, 1.5, "5", 2**70):
        with pytest.raises(ConfigurationError, match="max_sessions"):
            SessionGuards(max_sessions=wrong)  # type: ignore[arg-type]
    for wrong in (0, -1.0, True, "5", float("nan")):
        with pytest.raises(ConfigurationError, match="ttl"):
            SessionGuards(ttl=wrong)  # type: ignore[arg-type]
    for make in (SessionGuards, WorkflowGuard, LoopDetector):
        with pytest.raises(ConfigurationError, match="clock is 5; allowed: a function"):
            make(clock=5)  # type: ignore[arg-type]
    for told in ("noon", float("nan"), float("inf"), None):
        guards = SessionGuards(clock=lambda told=told: told)  # type: ignore[arg-type, return-value]
        with pytest.raises(ConfigurationError, match="what clock returned is"):
            guards.record("a", [TEA])
        assert len(guards) == 0


def test_a_clock_that_runs_back_and_forth_loses_nothing() -> None:
    times = random.Random(4)
    guards = SessionGuards(clock=lambda: times.uniform(-1e9, 1e9))
    actions = [turn(guards, "a", TEA) for _ in range(4)]
    assert actions[:3] == ["continue", "continue", "warn"]
    guard = guards.guard("a")
    assert guard is not None
    assert guard.context.total_calls == 4


def test_hooks_may_use_the_store_and_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda given: raised.append(given.exc_value))
    depth = 0

    def on_verdict(session: str, verdict: GuardCheckResult) -> None:
        nonlocal depth
        if depth < 2:
            depth += 1
            guards.record(session, [("nested", {"n": depth})])
            guards.guard(session)
            depth -= 1

    def on_removed(session: str, reason: str) -> None:
        assert session not in guards
        raise RuntimeError(session)

    guards = SessionGuards(max_sessions=2, on_verdict=on_verdict, on_removed=on_removed)
    for n in range(5):
        guards.record(f"s{n}", [TEA])
    assert guards.metrics["calls"] == 15
    assert guards.metrics["evicted"] == 3
    assert [type(error) for error in raised] == [RuntimeError] * 3


def test_a_copy_of_the_guard_shows_the_session_and_changes_nothing() -> None:
    guards = SessionGuards()
    turn(guards, "a", TEA)
    guard = guards.guard("a")
    assert isinstance(guard, WorkflowGuard)
    guard.record_tool_call("other", {})
    assert [call.tool_name for call in guard.call_history] == ["search", "other"]
    assert guards.guard("a").context.total_calls == 1  # type: ignore[union-attr]
    assert guards.guard("b") is None
    assert WorkflowGuard.from_bytes(guard.to_bytes()).context.total_calls == 2


def test_each_session_has_the_configuration_of_its_tenant() -> None:
    asked: list[str] = []
    strict = WorkflowGuardConfig(escalation={"warn": 1, "block": 1, "stop": 1})

    def configure(session: str) -> Any:
        asked.append(session)
        match session.split("/")[0]:
            case "strict":
                return strict
            case "patient":
                return {"policies": {"search": "exempt"}}
            case _:
                return None

    guards = SessionGuards(configure=configure, observe=True)
    assert [turn(guards, "strict/1", TEA) for _ in range(3)][-1] == "stop"
    assert [turn(guards, "patient/1", TEA) for _ in range(9)][-1] == "continue"
    assert [turn(guards, "other", TEA) for _ in range(9)][-1] == "warn"  # observed only
    assert asked == ["strict/1", "patient/1", "other"]  # once a session
    assert guards.check("strict/2").action is GuardAction.CONTINUE
    guards.forget("strict/1")
    turn(guards, "strict/1", TEA)
    assert asked.count("strict/1") == 2


def test_functions_of_a_tenants_policies_are_used() -> None:
    def configure(session: str) -> Any:
        if session == "by url":
            return {"policies": {"fetch": {"loop_key": lambda args: args["url"].split("?")[0]}}}
        return None

    guards = SessionGuards(configure=configure)
    for session, last in [("by url", "warn"), ("whole", "continue")]:
        calls = [("fetch", {"url": f"http://a?{word}", "x": word}) for word in ("k", "zq", "www")]
        assert [turn(guards, session, call) for call in calls][-1] == last


def test_a_wrong_configuration_is_named_and_nothing_is_recorded() -> None:
    guards = SessionGuards(configure=lambda session: {"recursion": {"hard_limit": session}})
    with pytest.raises(ConfigurationError, match="hard_limit"):
        guards.record("a", [TEA])
    assert len(guards) == 0
    with pytest.raises(ConfigurationError, match="configure is 3"):
        SessionGuards(configure=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="ttl"):
        SessionGuards(ttl=0)


def test_hooks_hear_of_verdicts_and_of_removed_sessions() -> None:
    now = [0.0]
    verdicts: list[tuple[str, str]] = []
    removed: list[tuple[str, str]] = []
    guards = SessionGuards(
        max_sessions=2,
        ttl=60,
        on_verdict=lambda session, verdict: verdicts.append((session, verdict.action.value)),
        on_removed=lambda session, reason: removed.append((session, reason)),
        clock=lambda: now[0],
    )
    for _ in range(3):
        turn(guards, "a", TEA)
    assert verdicts[-1] == ("a", "warn")
    assert len(verdicts) == 6
    for session in "bc":
        turn(guards, session, TEA)
    assert removed == [("a", "evicted")]
    now[0] = 61.0
    turn(guards, "d", TEA)
    guards.forget("d")
    assert removed[1:] == [("b", "expired"), ("c", "expired"), ("d", "forgotten")]
    metrics = guards.metrics
    assert metrics["calls"] == metrics["turns"] == metrics["results"] == 6
    assert (metrics["evicted"], metrics["expired"], metrics["forgotten"]) == (1, 2, 1)
    assert (metrics["sessions"], metrics["created"], metrics["warned"]) == (0, 4, 1)


def test_a_hook_that_fails_breaks_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", lambda raised: heard.append(raised.exc_value))
    guards = SessionGuards(on_verdict=lambda session, verdict: 1 / 0)
    assert guards.record("a", [TEA]).action is GuardAction.CONTINUE
    assert [type(error) for error in heard] == [ZeroDivisionError]


def test_a_hook_may_use_the_guards() -> None:
    guards: SessionGuards = SessionGuards(
        max_sessions=1,
        on_verdict=lambda session, verdict: guards.check(session),
        on_removed=lambda session, reason: guards.check(session),
    )
    for session in "abab":
        turn(guards, session, TEA)
    assert guards.metrics["evicted"] == 3


def test_sessions_that_wait_go_on_as_they_were() -> None:
    guards = SessionGuards(max_sessions=20_000)
    sessions = [f"session {n}" for n in range(6000)]
    for lap in range(3):
        for n, session in enumerate(sessions):
            action = turn(guards, session, TEA if n % 2 else ("search", {"q": f"{lap} {n * 7919}"}))
            if lap == 2 and n % 2:
                assert action == "warn", session
    metrics = guards.metrics
    assert metrics["sessions"] == 6000
    assert 0 < metrics["hot"] < 6000
    assert metrics["rebuilt"] > 0
    assert metrics["cold_bytes"] < 6000 * 700


def test_eight_threads_lose_no_call_and_mix_no_sessions(request: pytest.FixtureRequest) -> None:
    """Two seconds here; `pytest --session-seconds 60` for a minute.

    Half of the sessions of each thread are its own and are never evicted; the others are shared
    and far more than there is room for.
    """
    seconds = request.config.getoption("--session-seconds")
    kept = SessionGuards(observe=True, max_sessions=1000)
    crowded = SessionGuards(observe=True, max_sessions=256)
    counts = [0] * 8
    failures: list[str] = []
    end = time.monotonic() + seconds

    def work(number: int) -> None:
        random_ = random.Random(number)
        mine = [f"{number}/{n}" for n in range(20)]
        while time.monotonic() < end:
            for session in mine:
                kept.record(session, [("search", {"q": "tea"}), ("read", {"of": session})])
                kept.record_results(session, ["same", f"text {counts[number]}"])
                shared = f"shared {random_.randrange(4000)}"
                crowded.record(shared, [("search", {"of": shared})])
                counts[number] += 1
                guard = crowded.guard(shared)
                seen = guard.call_history if guard else []
                own = turnwarden.call_signature("search", {"of": shared})
                if any(call.args_hash != own for call in seen):
                    failures.append(shared)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    grown: list[int] = []
    while any(thread.is_alive() for thread in threads):
        time.sleep(min(1.0, seconds / 4))
        grown.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert failures == []
    assert kept.metrics["calls"] == 2 * sum(counts)
    assert crowded.metrics["calls"] == sum(counts)
    assert len(kept) == 160
    assert len(crowded) <= 256
    in_sessions = sum(
        guard.context.total_calls
        for n in range(8)
        for m in range(20)
        if (guard := kept.guard(f"{n}/{m}")) is not None
    )
    assert in_sessions == 2 * sum(counts)
    gc.collect()
    # Flat: from half time on hardly a megabyte more at its highest.
    assert grown[-1] - grown[len(grown) // 2] < 4096, grown
