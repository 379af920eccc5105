"""The detector finds what the rules say, no more and no less.

The oracle below keeps everything and looks at everything each time, straight from the wording of
the rules; the detector keeps counts and marks. They must agree after every step of any run.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, pairwise, takewhile
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from turnwarden import LoopDetector, argument_similarity

MEMORY = 16  # turns that errors, scattered repeats and lookups look back
WINDOW = 10  # turns that similarity looks at
LONGEST_PERIOD = 8


class Found(NamedTuple):
    """What a rule has to say."""

    loop_type: str
    detail: str | None
    length: int


class Answer(NamedTuple):
    """A result, and what it says."""

    text: str
    failed: bool = False
    transient: bool = False
    unknown_tool: bool = False
    nothing: bool = False

    @property
    def wordy(self) -> bool:
        return len(self.text.split()) > 1


ANSWERS = [
    Answer("three rows of data"),
    Answer("another thing entirely"),
    Answer("ok"),
    Answer("", nothing=True),
    Answer("No matches found", nothing=True),
    Answer("Error: disk is full", failed=True),
    Answer("Error: bad path", failed=True),
    Answer("Error: 429 too many requests", failed=True, transient=True),
    Answer("Error: unknown tool frob", failed=True, unknown_tool=True),
]

# Kinds are declared, so that neither names nor commands have to be understood here.
KINDS = {
    "look": "read",
    "seek": "read",
    "save": "write",
    "wait_for": "poll",
    "muse": "idle",
    "do": "unknown",
    "_invalid_reply": "unknown",
}
COMMANDS = {"ls -l": "read", "make all": "unknown", "rm old.txt": "write", "sleep 1": "idle"}

WORDS = "a watercolour of a small grey harbour at dawn with two boats and a lighthouse"
ARGUMENTS: list[Any] = [
    {},
    {"q": "tea"},
    {"q": "coffee"},
    {"q": WORDS},
    {"q": WORDS.replace("grey", "blue")},
    {"q": WORDS.replace("two", "six")},
    {"q": WORDS, "page": 1},
    {"q": WORDS, "page": 2},
    {"q": WORDS, "page": 3},
    {"path": "a.py", "offset": 0, "limit": 100},
    {"path": "a.py", "offset": 90, "limit": 100},
    {"path": "a.py", "offset": 10, "limit": 60},
    {"path": "a.py", "start_line": 5, "end_line": 50},
    {"file": "b.py", "start": 1, "end": 40},
]


@dataclass(eq=False)
class Call:
    tool: str
    arguments: Any
    turn: int = 0
    answer: Answer | None = None
    first_write: bool = False

    @property
    def shell(self) -> bool:
        return self.tool == "bash"

    @property
    def kind(self) -> str:
        return COMMANDS[self.arguments["command"]] if self.shell else KINDS[self.tool]

    @property
    def signature(self) -> str:
        return f"{self.tool} {json.dumps(self.arguments, sort_keys=True)}"

    @property
    def failed(self) -> bool:
        return self.answer is not None and self.answer.failed

    @property
    def refused(self) -> bool:
        if self.answer is None:
            return False
        return self.answer.unknown_tool or self.tool.startswith("_invalid")

    @property
    def fails_for_good(self) -> bool:
        transient = self.answer is not None and self.answer.transient
        return (self.failed or self.refused) and not transient

    @property
    def may_write(self) -> bool:
        if self.kind == "write":
            return not self.failed
        return self.kind == "unknown" and self.shell

    @property
    def new_write(self) -> bool:
        return self.first_write and self.may_write


class Oracle:
    """All calls and results of a run; every rule reads them from the start."""

    def __init__(self) -> None:
        self.turns: list[list[Call]] = []
        self.any_result = False
        self.writes: set[str] = set()
        self.covered: dict[str, set[int]] = {}
        self.stale = 0

    # What happens.

    def turn(self, calls: list[Call]) -> None:
        judged = [call for call in calls if call.kind != "idle"]
        for call in judged:
            call.turn = len(self.turns)
            if call.may_write:
                call.first_write = call.signature not in self.writes
                if call.kind == "unknown":
                    self.note_write(call)
            self.note_read(call)
        if judged:
            self.turns.append(judged)

    def result(self, call: Call, answer: Answer) -> None:
        self.any_result = True
        call.answer = answer
        if call.kind == "write" and not answer.failed:
            self.note_write(call)

    def note_write(self, call: Call) -> None:
        if call.new_write:
            self.covered.clear()
        self.writes.add(call.signature)

    def note_read(self, call: Call) -> None:
        lines = lines_of(call)
        if not lines:
            self.stale = 0
            return
        known = self.covered.setdefault(call.arguments.get("path") or call.arguments["file"], set())
        self.stale = self.stale + 1 if 4 * len(lines - known) < len(lines) else 0
        known |= lines

    # What it amounts to.

    def detect(self) -> Found | None:
        if not self.turns or self.waits():
            return None
        rules: list[Callable[[], Found | None]] = [
            self.exact,
            self.errors,
            self.similar,
            self.laps,
            self.scatter,
            self.coverage,
            self.lookups,
        ]
        return next((found for rule in rules if (found := rule())), None)

    def waits(self) -> bool:
        return self.any_result and any(call.answer is None for call in self.turns[-1])

    def same(self, one: Call, other: Call) -> bool:
        return one.signature == other.signature and one.answer == other.answer

    def element(self, turn: list[Call]) -> Counter[tuple[str, Answer | None]]:
        return Counter((call.signature, call.answer) for call in turn)

    def recent(self) -> list[list[Call]]:
        return self.turns[-MEMORY:]

    def budget(self) -> int:
        return min(
            6
            if (call.answer and call.answer.transient) or (call.kind == "poll" and not call.failed)
            else 3
            for call in self.turns[-1]
        )

    def exact(self) -> Found | None:
        elements = [self.element(turn) for turn in reversed(self.turns)]
        equal = len(list(takewhile(lambda element: element == elements[0], elements)))
        return Found("exact", None, equal) if equal >= self.budget() else None

    def errors(self) -> Found | None:
        last = self.turns[-1][-1]
        streak: list[Call] = []
        for turn in reversed(self.recent()):
            concerned = [c for c in turn if c.tool == last.tool or (last.refused and c.refused)]
            others = [call for call in turn if call not in concerned]
            if any(call.new_write for call in others):
                break
            if not concerned and not last.refused:
                continue
            if not concerned or not all(call.fails_for_good for call in concerned):
                break
            streak.append(concerned[-1])
        alike = takewhile(lambda c: (c.tool, c.answer) == (last.tool, last.answer), streak)
        length = max(len(list(alike)), len(list(takewhile(lambda c: c.refused, streak))))
        unknown = takewhile(lambda c: c.answer is not None and c.answer.unknown_tool, streak)
        if last.fails_for_good and (length >= 4 or min(length, len(list(unknown))) >= 3):
            return Found("no_progress", "errors", length)
        return None

    def similar(self) -> Found | None:
        calls = [call for turn in self.turns[-WINDOW:] for call in turn]
        last = calls[-1]
        is_patient = last.kind == "poll" or (self.any_result and last.kind == "unknown")
        needed = 6 if is_patient else 3
        run = [last]
        for before, after in pairwise(reversed([*calls])):
            if not self.alike(after, before):
                break
            run.append(after)
        newest = run[:needed]
        if len(newest) < needed or len({call.turn for call in newest}) == 1:
            return None
        if len({call.signature for call in newest}) == 1 or has_cursor(newest[::-1]):
            return None
        return Found("similar", None, len(run))

    def alike(self, before: Call, after: Call) -> bool:
        if before.tool != after.tool or before.answer != after.answer:
            return False
        for call in (before, after):
            if self.any_result and (call.failed or (call.kind == "write" and call.answer)):
                return False
            if not self.any_result and (call.kind == "write" or call.shell):
                return False
        return argument_similarity(before.arguments, after.arguments) >= 0.9

    def laps(self) -> Found | None:
        elements = [self.element(turn) for turn in self.turns]
        laps = 3 if self.any_result else 2
        for period in range(2, LONGEST_PERIOD + 1):
            lap = elements[-period:]
            if any(one != lap[0] for one in lap) and elements[-period * laps :] == lap * laps:
                return Found("oscillating" if period == 2 else "periodic", None, period)
        return None

    def scatter(self) -> Found | None:
        if not self.any_result:
            return None
        for call in reversed(self.turns[-1]):
            times = 0
            for turn in reversed(self.recent()):
                times += any(self.same(call, other) for other in turn)
                written = (o for o in turn if o.new_write and o.signature != call.signature)
                if turn is not self.turns[-1] and any(written):
                    break
            if times >= 4 + self.budget() - 3:
                return Found("no_progress", "scatter", times)
        return None

    def coverage(self) -> Found | None:
        enough = self.any_result and self.stale >= 4
        return Found("no_progress", "coverage", self.stale) if enough else None

    def lookups(self) -> Found | None:
        last = self.turns[-1][-1]

        def count(fits: Callable[[Call, Answer], bool]) -> int:
            def counts(turn: list[Call]) -> bool:
                call = turn[-1]
                if len(turn) > 1 or call.kind != "read" or call.answer is None or call.failed:
                    return False
                return fits(call, call.answer)

            return len(list(takewhile(counts, reversed(self.recent()))))

        nothing = count(lambda call, answer: answer.nothing)
        equal = count(
            lambda call, answer: (
                answer.wordy and call.tool == last.tool and call.answer == last.answer
            )
        )
        length = max(nothing, equal)
        differ = len({turn[-1].signature for turn in self.turns[-5:]}) > 1
        if self.any_result and length >= 5 and differ:
            return Found("no_progress", "lookups", length)
        return None


def lines_of(call: Call) -> set[int]:
    arguments = call.arguments
    if call.kind != "read" or not ("path" in arguments or "file" in arguments):
        return set()
    start = next(arguments[key] for key in ("offset", "start_line", "start") if key in arguments)
    if "limit" in arguments:
        return set(range(start, start + arguments["limit"]))
    end = next(arguments[key] for key in ("end_line", "end") if key in arguments)
    return set(range(start, end + 1))


def has_cursor(calls: list[Call]) -> bool:
    """Whether a numeric argument, or a number in a text equal but for it, moves one way."""
    keys = set.intersection(*(set(call.arguments) for call in calls))
    for key in keys:
        values = [call.arguments[key] for call in calls]
        if any(isinstance(value, str) for value in values):
            assert not re.search(r"\d", "".join(map(str, values)))
            continue
        steps = [after - before for before, after in pairwise(values)]
        if all(step > 0 for step in steps) or all(step < 0 for step in steps):
            return True
    return False


# Runs.


def calls() -> st.SearchStrategy[tuple[str, Any]]:
    tools = [tool for tool in KINDS if tool not in ("muse", "_invalid_reply")]
    common = st.tuples(st.sampled_from(tools), st.sampled_from(ARGUMENTS))
    rare = st.tuples(st.sampled_from(["muse", "_invalid_reply"]), st.sampled_from(ARGUMENTS[:3]))
    shell = st.sampled_from(list(COMMANDS)).map(lambda command: ("bash", {"command": command}))
    return st.one_of(common, common, shell, rare)


Step = tuple[list[tuple[str, Any]], list[Answer | None]]


def steps(answers: st.SearchStrategy[Answer | None]) -> st.SearchStrategy[Step]:
    def with_answers(turn: list[tuple[str, Any]]) -> st.SearchStrategy[Step]:
        results = st.lists(answers, min_size=len(turn), max_size=len(turn))
        return results.map(lambda results: (turn, results))

    one = st.lists(calls(), min_size=1, max_size=1)
    several = st.lists(calls(), min_size=1, max_size=3)
    return st.one_of(one, one, one, several).flatmap(with_answers)


def runs(answers: st.SearchStrategy[Answer | None]) -> st.SearchStrategy[list[Step]]:
    """Runs of few different turns, in laps and streaks: where loops are."""

    def from_few(few: list[Step]) -> st.SearchStrategy[list[Step]]:
        two = st.lists(st.sampled_from(few), min_size=2, max_size=2)
        some = st.one_of(st.lists(st.sampled_from(few), max_size=6), two)
        lap = st.tuples(some, st.integers(1, 7)).map(lambda pair: pair[0] * pair[1])
        parts = st.lists(st.one_of(lap, streaks(answers)), max_size=4)
        return parts.map(lambda parts: [step for part in parts for step in part])

    return st.lists(steps(answers), min_size=1, max_size=5).flatmap(from_few)


def streaks(answers: st.SearchStrategy[Answer | None]) -> st.SearchStrategy[list[Step]]:
    """One tool with many arguments and few answers."""

    def streak(drawn: tuple[str, slice, list[Answer | None]]) -> st.SearchStrategy[list[Step]]:
        tool, of, few = drawn
        call = st.sampled_from(ARGUMENTS[of]).map(lambda arguments: [(tool, arguments)])
        step = st.tuples(call, st.sampled_from(few).map(lambda answer: [answer]))
        return st.lists(step, min_size=3, max_size=9)

    tools = st.sampled_from(["look", "look", "seek", "do", "save", "wait_for"])
    groups = st.sampled_from([slice(3, 6), slice(3, 9), slice(9, 14), slice(1, 14)])
    few = st.lists(answers, min_size=1, max_size=2)
    return st.tuples(tools, groups, few).flatmap(streak)


def readings() -> st.SearchStrategy[list[Step]]:
    """Reads of lines of few files, each with an answer of its own, and now and then a write."""

    def read(path: str, start: int, length: int) -> tuple[str, Any]:
        return "look", {"path": path, "offset": start, "limit": length}

    reads = st.builds(
        read, st.sampled_from("aaab"), st.integers(0, 5).map(lambda n: 20 * n), st.integers(1, 120)
    )
    writes = st.sampled_from([1, 1, 2]).map(lambda text: ("save", {"path": "a", "text": text}))
    others = st.sampled_from(
        [("muse", {}), ("bash", {"command": "make all"}), ("seek", {"q": "x"})]
    )
    call = st.integers(0, 19).flatmap(lambda n: writes if n == 0 else others if n == 1 else reads)

    def with_answers(calls: list[tuple[str, Any]]) -> list[Step]:
        return [([call], [Answer(f"text number {n}")]) for n, call in enumerate(calls)]

    return st.lists(call, min_size=6, max_size=20).map(with_answers)


def found_by(detector: LoopDetector) -> Found | None:
    result = detector.detect()
    if result.loop_type is None or result.loop_length is None:
        return None
    return Found(result.loop_type.value, result.detail, result.loop_length)


def play(run: list[Step], delays: Iterable[int] = (0,)) -> Iterator[tuple[LoopDetector, Oracle]]:
    """Gives each turn, then each result, to both; results may come some turns late."""
    detector, oracle = LoopDetector(policies=KINDS), Oracle()
    delay = cycle(delays)
    due: list[tuple[int, str, Call, Answer]] = []
    for now, (turn, answers) in enumerate(run):
        recorded = {f"{now}-{index}": Call(*call) for index, call in enumerate(turn)}
        oracle.turn(list(recorded.values()))
        detector.record_turn(
            [
                {"id": call_id, "name": call.tool, "arguments": call.arguments}
                for call_id, call in recorded.items()
            ]
        )
        yield detector, oracle
        for (call_id, call), answer in zip(recorded.items(), answers, strict=True):
            if answer is not None:
                due.append((now + next(delay), call_id, call, answer))
        for _, call_id, call, answer in [result for result in due if result[0] <= now]:
            oracle.result(call, answer)
            detector.record_result(answer.text, call_id=call_id)
            yield detector, oracle
        due = [result for result in due if result[0] > now]


def check(run: list[Step], delays: Iterable[int] = (0,)) -> None:
    for number, (detector, oracle) in enumerate(play(run, delays)):
        expected = oracle.detect()
        assert found_by(detector) == expected, f"at step {number}"


@settings(max_examples=200, deadline=None)
@given(runs(st.sampled_from(ANSWERS)))
def test_detection_with_results_is_what_the_rules_say(run: list[Step]) -> None:
    check(run)


@settings(max_examples=100, deadline=None)
@given(readings())
def test_what_was_read_already_is_what_the_rules_say(run: list[Step]) -> None:
    check(run)


KINDS_FOUND = {
    ("exact", None),
    ("similar", None),
    ("oscillating", None),
    ("periodic", None),
    ("no_progress", "errors"),
    ("no_progress", "scatter"),
    ("no_progress", "coverage"),
    ("no_progress", "lookups"),
}


def test_the_runs_that_are_drawn_hold_every_kind_of_loop() -> None:
    found: set[tuple[str, str | None]] = set()

    def play_all(run: list[Step]) -> None:
        for _, oracle in play(run):
            if verdict := oracle.detect():
                found.add(verdict[:2])

    for drawn, count in ((runs(st.sampled_from(ANSWERS)), 150), (readings(), 50)):
        drawing = settings(max_examples=count, deadline=None, derandomize=True, database=None)
        drawing(given(drawn)(play_all))()
    assert found == KINDS_FOUND


@settings(max_examples=100, deadline=None)
@given(runs(st.none()))
def test_detection_without_results_is_what_the_rules_say(run: list[Step]) -> None:
    check(run)


@settings(max_examples=150, deadline=None)
@given(runs(st.one_of(st.none(), st.sampled_from(ANSWERS[:4]))))
def test_detection_with_some_results_missing_is_what_the_rules_say(run: list[Step]) -> None:
    check(run)


@settings(max_examples=100, deadline=None)
@given(
    runs(st.sampled_from(ANSWERS)),
    st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=1, max_size=12),
)
def test_results_that_come_late_are_taken_up(run: list[Step], delays: list[int]) -> None:
    check(run, delays)


def test_similar_calls_are_found_behind_many_whose_results_came_late() -> None:
    answer = ANSWERS[0]
    three = [("look", {}), ("bash", {"command": "ls -l"}), ("look", {})]
    busy: list[Step] = [(three, [answer] * 3)] * 40
    alike: list[Step] = [([("look", ARGUMENTS[index])], [answer]) for index in (3, 4, 3, 5)]
    check([*busy, *alike], delays=[0, 1])
