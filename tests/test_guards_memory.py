"""A guard holds as much after a long run as after a short one, whatever the run does."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from turnwarden import LoopDetector, WorkflowGuard

Call = tuple[str, dict[str, Any]]

RUNS: dict[str, Callable[[int], Call]] = {
    "writes that are all new": lambda n: ("write_file", {"path": f"{n}.txt", "text": str(n)}),
    "commands that may write": lambda n: ("bash", {"command": f"make target-{n}"}),
    "ranges of ever more files": lambda n: ("read_file", {"path": f"{n}", "offset": 0, "limit": 9}),
    "ranges apart in one file": lambda n: (
        "read_file",
        {"path": "log", "offset": n * 7919 % 100_003 * 10, "limit": 5},
    ),
    "tools of ever more names": lambda n: (f"tool_{n}", {}),
    "searches": lambda n: ("search", {"query": f"question {n} about the harbour at dawn"}),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("with_results", [True, False])
def test_a_guard_stays_as_small_as_it_was(name: str, with_results: bool) -> None:
    guard = WorkflowGuard(observe=True)
    numbers = count()

    def size_after(calls: int) -> int:
        for _ in range(calls):
            number = next(numbers)
            guard.record_tool_call(*RUNS[name](number))
            if with_results:
                guard.record_tool_result(f"answer {number}")
        return len(guard.to_bytes())

    after_a_while, much_later = size_after(2000), size_after(8000)
    assert much_later <= after_a_while * 1.05
    assert much_later < 32 * 1024


def test_a_write_that_was_forgotten_is_at_worst_taken_for_new() -> None:
    detector = LoopDetector()

    def write(number: int) -> None:
        detector.record_call("write_file", {"path": f"{number}.txt", "text": "x"})
        detector.record_result("written")

    for number in range(1000):
        write(number)
    for number in range(4):  # long forgotten, so this is progress between the reads
        detector.record_call("get_page", {"url": "/faq"})
        detector.record_result("FAQ text")
        write(number)
        assert not detector.detect()
    for number in range(4):  # these are remembered
        detector.record_call("get_page", {"url": "/faq"})
        detector.record_result("FAQ text")
        write(number)
    detector.record_call("get_page", {"url": "/faq"})
    detector.record_result("FAQ text")
    assert detector.detect().detail == "scatter"
