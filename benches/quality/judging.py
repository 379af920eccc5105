"""Plays runs to detectors and counts what they say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from turnwarden import TextLoopDetector

from benches.quality.detectors import Detector, Entry, Turnwarden
from benches.quality.runs import LabelledRun, LabelledText


@dataclass(slots=True)
class Score:
    """What a detector did with a group of runs.

    Attributes:
        loops: How many runs go round in circles.
        caught: In how many of them it spoke at all.
        in_time: In how many by the call that the label names.
        healthy: How many runs do not go round in circles.
        false_alarms: In how many of these it spoke.
    """

    loops: int = 0
    caught: int = 0
    in_time: int = 0
    healthy: int = 0
    false_alarms: int = 0

    def count(self, *, is_loop: bool, by_call: int | None, spoke_at: int | None) -> None:
        """Takes up one run."""
        spoke = spoke_at is not None
        if not is_loop:
            self.healthy += 1
            self.false_alarms += spoke
            return
        self.loops += 1
        self.caught += spoke
        self.in_time += spoke_at is not None and (by_call is None or spoke_at <= by_call)


def first_alarm(run: LabelledRun, detector: Detector, *, with_results: bool) -> int | None:
    """The number of the call, from 0, at which it first spoke.

    A turn is judged as a whole before its calls run: what is said then counts as said at its last
    call. With results it is judged again after each of them.
    """
    first = 0
    for turn in run.turns:
        if detector.turn(turn):
            return first + len(turn) - 1
        for index, call in enumerate(turn):
            if with_results and call.is_answered and detector.answer(index, call):
                return first + index
        first += len(turn)
    return None


def alarms(
    runs: Iterable[LabelledRun], entry: Entry, *, with_results: bool = True
) -> dict[str, int | None]:
    """When a detector first spoke in each of the runs, by their names."""
    return {
        run.id: first_alarm(run, entry.make(run.policies), with_results=with_results)
        for run in runs
    }


def scores(
    runs: Iterable[LabelledRun], entry: Entry, *, with_results: bool = True
) -> dict[str, Score]:
    """What a detector did with the runs that have a label, by their groups."""
    labelled = [run for run in runs if run.is_loop is not None]
    spoke = alarms(labelled, entry, with_results=with_results)
    found: dict[str, Score] = {}
    for run in labelled:
        score = found.setdefault(run.group, Score())
        score.count(is_loop=bool(run.is_loop), by_call=run.by_call, spoke_at=spoke[run.id])
    return found


def text_scores(texts: Iterable[LabelledText]) -> dict[str, Score]:
    """What our detector of texts that repeat themselves did, by their groups."""
    found: dict[str, Score] = {}
    for text in texts:
        detector = TextLoopDetector()
        spoke_at = next((n for n, chunk in enumerate(text.chunks) if detector.feed(chunk)), None)
        score = found.setdefault(text.group, Score())
        score.count(is_loop=text.is_loop, by_call=None, spoke_at=spoke_at)
    return found


def solved_runs(runs: Iterable[LabelledRun]) -> list[LabelledRun]:
    """Runs that did their task, but for those that a reader found to go round in circles."""
    return [run for run in runs if run.is_solved and not run.is_loop]


def reasons(run: LabelledRun, *, with_results: bool = True) -> tuple[str, ...]:
    """Why our guard first spoke in a run."""
    guard = Turnwarden(run.policies)
    spoke = first_alarm(run, guard, with_results=with_results) is not None
    return guard.reasons if spoke else ()
