"""Our guard, and rules of other detectors, stated anew from what their projects say of them.

None of the others is a library of its own, so each is written here as its public description has
it, with the benefit of the doubt: arguments are compared as JSON with sorted keys, and one call of
a turn after the other. README.md names where each description stands.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from turnwarden import WorkflowGuard, WorkflowGuardConfig

from benches.quality.runs import Call


class Detector(Protocol):
    """Is told of a run and says when it goes round in circles."""

    def turn(self, calls: Sequence[Call]) -> bool:
        """The calls of one reply, before they run; whether they are a loop."""
        ...

    def answer(self, index: int, call: Call) -> bool:
        """What a call of the last turn brought; whether that makes it a loop."""
        ...


class Turnwarden:
    """Our guard with its default configuration; it only reports."""

    def __init__(self, policies: Mapping[str, Any]) -> None:
        # The configuration is shared and large, a guard is small.
        config = WorkflowGuardConfig(policies=dict(policies)) if policies else _DEFAULT
        self._guard = WorkflowGuard(config, observe=True)

    def turn(self, calls: Sequence[Call]) -> bool:
        verdict = self._guard.record_turn(
            [
                {"id": str(index), "name": call.tool, "arguments": call.arguments}
                for index, call in enumerate(calls)
            ]
        )
        return verdict.loop_check.loop_detected

    def answer(self, index: int, call: Call) -> bool:
        self._guard.record_tool_result(call.result, call_id=str(index), error=call.error)
        return self._guard.check().loop_check.loop_detected

    @property
    def reasons(self) -> tuple[str, ...]:
        return self._guard.check().reasons


_DEFAULT = WorkflowGuardConfig()


class _OnCalls:
    """A rule on the names and arguments of calls; results are not looked at."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def key(self, call: Call) -> str:
        return key_of(call)

    def is_loop(self) -> bool:
        raise NotImplementedError

    def turn(self, calls: Sequence[Call]) -> bool:
        found = False
        for call in calls:
            self.keys.append(self.key(call))
            found = self.is_loop() or found
        return found

    def answer(self, index: int, call: Call) -> bool:
        return False


class EqualInARow(_OnCalls):
    """So many calls in a row have one name and equal arguments."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def is_loop(self) -> bool:
        last = self.keys[-self.count :]
        return len(last) == self.count and len(set(last)) == 1


class NamesInARow(EqualInARow):
    """So many calls in a row have one name, whatever their arguments."""

    def key(self, call: Call) -> str:
        return call.tool


class Alternating(_OnCalls):
    """The last four calls are A, B, A, B."""

    def is_loop(self) -> bool:
        last = self.keys[-4:]
        return len(last) == 4 and last[:2] == last[2:] and last[0] != last[1]


class CallsOfOneTool(_OnCalls):
    """A tool is called more often than so many times in the whole run."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.counts = Counter[str]()

    def is_loop(self) -> bool:
        self.counts[self.keys[-1]] += 1
        return self.counts[self.keys[-1]] > self.most

    def key(self, call: Call) -> str:
        return call.tool


class EqualPairsInARow:
    """So many times in a row the same call brought the same result."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.pairs: list[tuple[str, str]] = []

    def turn(self, calls: Sequence[Call]) -> bool:
        return False

    def answer(self, index: int, call: Call) -> bool:
        brought = call.result if call.error is None else call.error
        self.pairs.append((key_of(call), json.dumps(brought, sort_keys=True, default=str)))
        last = self.pairs[-self.count :]
        return len(last) == self.count and len(set(last)) == 1


def key_of(call: Call) -> str:
    """One text for a name and equal arguments."""
    return f"{call.tool} {json.dumps(call.arguments, sort_keys=True, default=str)}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A detector of the tables.

    Attributes:
        name: As the tables call it.
        make: Makes one for a run, given the policies of its tools.
        reads_results: Whether results make a difference to it.
        needs_results: Whether it says nothing without them.
    """

    name: str
    make: Callable[[Mapping[str, Any]], Detector]
    reads_results: bool = False
    needs_results: bool = False


OURS = Entry("turnwarden", Turnwarden, reads_results=True)
OTHERS = (
    Entry("three identical calls in a row", lambda _: EqualInARow(3)),
    Entry(
        "four identical calls with results",
        lambda _: EqualPairsInARow(4),
        reads_results=True,
        needs_results=True,
    ),
    Entry("five identical hashes in a row", lambda _: EqualInARow(5)),
    Entry("A-B-A-B", lambda _: Alternating()),
    Entry("eight times the same name", lambda _: NamesInARow(8)),
    Entry("cap of 6 calls a tool", lambda _: CallsOfOneTool(6)),
    Entry("cap of 20 calls a tool", lambda _: CallsOfOneTool(20)),
)
ENTRIES = (OURS, *OTHERS)
