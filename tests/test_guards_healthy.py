"""Honest work in any order draws no verdict, and a loop that comes after it is caught in time.

The pieces are drawn with numbers and words of their own. What goes on in each is what real agents
do: page, poll with pauses, edit and test, work through a batch, retry, read a file in ranges,
narrow a search.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import pytest
from turnwarden import WorkflowGuard


class Step(NamedTuple):
    tool: str
    arguments: dict[str, Any]
    result: str | None = None
    error: str | None = None


NOUNS = "tea oslo maple ferry violin quartz lantern harbour canyon velvet 发票 合同 库存 物流"
WORDS = NOUNS.split()
Piece = Callable[[Random, int], Iterator[Step]]


def paging(random: Random, number: int) -> Iterator[Step]:
    tool = random.choice(["list_orders", "search_issues", "fetch_page", "获取列表"])
    key, size = random.choice([("page", 1), ("offset", 50), ("offset", 200)])
    query = f"{random.choice(WORDS)} {number}"
    for page in range(random.randint(3, 9)):
        yield Step(tool, {"query": query, key: page * size}, f"{query}: rows of page {page}")


def polling(random: Random, number: int) -> Iterator[Step]:
    tool = random.choice(["job_status", "get_build_status", "training_progress"])
    for state in range(random.randint(1, 4)):
        for attempt in range(random.randint(1, 5)):
            yield Step(tool, {"job": f"job-{number}"}, f"state {state} of job {number}")
            if random.random() < 0.5:
                yield Step("sleep", {"seconds": 2**attempt}, "")


def looking_after_sleep(random: Random, number: int) -> Iterator[Step]:
    for state in range(random.randint(1, 4)):
        for _ in range(random.randint(1, 5)):
            command = f"sleep {random.choice([5, 10, 30])} && tail -n 1 job{number}.log"
            yield Step("bash", {"command": command}, f"step {state} of job {number}")


def editing_and_testing(random: Random, number: int) -> Iterator[Step]:
    path = f"module{number}.py"
    test = random.choice(
        [("run_tests", {"path": path}), ("bash", {"command": f"pytest -q {path} 2>&1 | tail -3"})]
    )
    for edit in range(random.randint(2, 7)):
        if random.random() < 0.5:
            arguments = {"path": path, "old": f"limit = {edit}", "new": f"limit = {edit + 1}"}
            yield Step("edit_file", arguments, "1 replacement made")
        else:
            yield Step("execute_bash", {"command": f"sed -i 's/a{edit}/b{edit}/' {path}"}, "")
        yield Step(*test, f"1 failed in 0.{random.randint(10, 99)}s")


def batch(random: Random, number: int) -> Iterator[Step]:
    kind = random.randrange(4)
    for index, word in enumerate(random.sample(WORDS, random.randint(3, 9))):
        if kind == 0:
            yield Step("write_file", {"path": f"{number}/{word}.md", "text": word}, "写入成功")
        elif kind == 1:
            yield Step("send_email", {"to": f"{word}@example.com", "invoice": number}, "sent")
        elif kind == 2:
            yield Step("read_file", {"path": f"{number}/{word}.py"}, f"text of {word} {number}")
        else:
            yield Step("resize_image", {"path": f"{number}/shot_{index:03d}.png"}, "resized")


def retrying(random: Random, number: int) -> Iterator[Step]:
    call = ("fetch_url", {"url": f"https://host{number}.example/rates"})
    error = random.choice(["503 Service Unavailable", "read timed out", "请求过于频繁"])
    for _ in range(random.randint(1, 5)):
        yield Step(*call, error=error)
    yield Step(*call, f"rates of {number}")


def reading_in_ranges(random: Random, number: int) -> Iterator[Step]:
    step, overlap = random.choice([100, 200, 400]), random.choice([0, 10, 20])
    for part in range(random.randint(3, 9)):
        start = part * (step - overlap) + 1
        arguments = {"path": f"{number}.log", "start_line": start, "end_line": start + step - 1}
        yield Step("read_file", arguments, f"part {part} of {number}")


def narrowing_a_search(random: Random, number: int) -> Iterator[Step]:
    query = f"question {number}"
    for hits in (random.randint(50, 99), random.randint(5, 40), 0, random.randint(1, 3)):
        query += f" {random.choice(WORDS)}"
        answer = f"{hits} hits for {query}" if hits else "No matches found"
        yield Step(random.choice(["search_code", "search_docs"]), {"query": query}, answer)


def trying_arguments(random: Random, number: int) -> Iterator[Step]:
    for hour in range(17, 17 + random.randint(1, 4)):
        time = {"table": number, "time": f"{hour}:00"}
        yield Step("book_table", time, error=f"nothing free at {hour}:00")
    yield Step("book_table", {"table": number, "time": "noon"}, f"booked {number}")


def committing(random: Random, number: int) -> Iterator[Step]:
    for step in range(random.randint(1, 6)):
        yield Step("bash", {"command": f"git commit -qm 'Step {number}.{step}'"}, "")
        yield Step("bash", {"command": "git status --short"}, "")


PIECES: list[Piece] = [
    paging,
    polling,
    looking_after_sleep,
    editing_and_testing,
    batch,
    retrying,
    reading_in_ranges,
    narrowing_a_search,
    trying_arguments,
    committing,
]


# Loops: what is done, and the call, counted from 0, by which the guard has to speak.
Loop = Callable[[Random, int], tuple[list[Step], int]]


def same_call(random: Random, number: int) -> tuple[list[Step], int]:
    step = Step("search_docs", {"query": f"rules {number}"}, f"three rows of {number}")
    return [step] * 5, 2


def stuck_poll(random: Random, number: int) -> tuple[list[Step], int]:
    return [Step("job_status", {"job": f"stuck-{number}"}, f"queued: {number}")] * 8, 5


def same_error(random: Random, number: int) -> tuple[list[Step], int]:
    error = f"account {number} is closed"
    tries = [Step("pay", {"amount": amount}, error=error) for amount in range(5)]
    asides = [Step("read_file", {"path": f"{number}-{n}.txt"}, f"{number} {n}") for n in range(5)]
    if random.random() < 0.5:
        return tries, 3
    return [step for pair in zip(tries, asides, strict=True) for step in pair], 6


def lap(random: Random, number: int) -> tuple[list[Step], int]:
    period = random.randint(2, 8)
    steps = [Step("open_page", {"url": f"/{number}/{n}"}, f"{number}: {n}") for n in range(period)]
    return steps * 4, 3 * period - 1


def scattered(random: Random, number: int) -> tuple[list[Step], int]:
    again = Step("get_page", {"url": f"/faq/{number}"}, f"faq {number}")
    steps: list[Step] = []
    for between in range(4):
        others = [
            Step("search_web", {"q": f"{number} {between} {n}"}, f"{number}.{between}.{n}")
            for n in range(random.randint(1, 3))
        ]
        steps += [again, *others]
    at = [index for index, step in enumerate(steps) if step is again]
    return steps, at[3]


def reading_again(random: Random, number: int) -> tuple[list[Step], int]:
    ranges = [(1, 300), *((random.randint(1, 200), random.randint(201, 300)) for _ in range(5))]
    steps = [
        Step(
            "read_file",
            {"path": f"again{number}.py", "start_line": start, "end_line": end},
            f"{number}: from {start} to {end}, {at}",
        )
        for at, (start, end) in enumerate(ranges)
    ]
    return steps, 4


def fruitless_guesses(random: Random, number: int) -> tuple[list[Step], int]:
    answer = random.choice(["No matches found", "未找到相关结果", '{"hits": [], "total": 0}'])
    guesses = random.sample(WORDS, 7)
    return [Step("grep", {"pattern": f"{word}_{number}"}, answer) for word in guesses], 4


LOOPS: list[Loop] = [
    same_call,
    stuck_poll,
    same_error,
    lap,
    scattered,
    reading_again,
    fruitless_guesses,
]


# What the guard says.


def first_verdict(steps: list[Step]) -> tuple[int, str] | None:
    """The number of the call at which it speaks, and why."""
    guard = WorkflowGuard(observe=True)
    for number, step in enumerate(steps):
        guard.record_tool_call(step.tool, step.arguments)
        guard.record_tool_result(step.result, error=step.error)
        verdict = guard.check()
        if verdict.loop_check.loop_detected:
            return number, f"{verdict.reasons[0]}: {steps[max(0, number - 6) : number + 1]}"
    return None


def honest_work(random: Random) -> list[Step]:
    pieces = random.choices(PIECES, k=random.randint(2, 5))
    return [step for number, piece in enumerate(pieces) for step in piece(random, number)]


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.__name__)
def test_each_piece_of_honest_work_is_left_alone(piece: Piece) -> None:
    for seed in range(50):
        assert first_verdict(list(piece(Random(seed), seed))) is None


def test_pieces_of_honest_work_in_any_order_are_left_alone() -> None:
    for seed in range(200):
        assert first_verdict(honest_work(Random(seed))) is None, f"seed {seed}"


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_a_loop_after_honest_work_is_caught_in_time(loop: Loop) -> None:
    for seed in range(30):
        random = Random(seed)
        before = honest_work(random)
        steps, due = loop(random, 1000 + seed)
        found = first_verdict([*before, *steps])
        assert found is not None, f"seed {seed}"
        assert len(before) <= found[0] <= len(before) + due, f"seed {seed}: {found}"
