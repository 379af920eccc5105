"""Prints the tables of README.md.

python -m benches.quality                 the sequences in tests/vectors
python -m benches.quality --traces DIR    recorded runs too
python -m benches.quality --replies PATH  only the replies of recordings, as `scan` reads them
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from turnwarden.traces import TraceError

from benches.quality.detectors import ENTRIES, OURS, Entry
from benches.quality.judging import Score, alarms, reasons, scores, solved_runs, text_scores
from benches.quality.replies import Recordings, recorded_replies
from benches.quality.runs import (
    BORDERLINE,
    NICE_TO_HAVE,
    LabelledRun,
    RunsError,
    recorded_runs,
    vector_runs,
    vector_texts,
)

TRACES = "TURNWARDEN_TRACES"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m benches.quality", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--traces",
        metavar="DIR",
        type=Path,
        default=os.environ.get(TRACES),
        help=f"folder with normalised.jsonl and labels.jsonl (default: ${TRACES})",
    )
    parser.add_argument(
        "--replies",
        metavar="PATH",
        type=Path,
        action="append",
        help="file or folder of recordings: how many of their replies repeat themselves",
    )
    options = parser.parse_args(arguments)
    try:
        if options.replies:
            print(reply_table(recorded_replies(options.replies)))
            return 0
        runs = recorded_runs(Path(options.traces)) if options.traces else []
    except (RunsError, TraceError) as error:
        print(f"python -m benches.quality: {error}", file=sys.stderr)
        return 2
    for block in tables(runs):
        print(block, end="\n\n")
    return 0


def tables(recorded: list[LabelledRun]) -> Iterator[str]:
    """All tables as Markdown; those of recorded runs only when there are some."""
    yield "## Sequences from bug reports (`tests/vectors/loops.jsonl`)"
    yield from labelled_tables(vector_runs())
    yield text_table()
    yield "## Sequences of our own (`tests/vectors/loops_more.jsonl`)"
    yield from labelled_tables(vector_runs("loops_more.jsonl"))
    if not recorded:
        yield f"No recorded runs: give a folder of them with --traces or ${TRACES}."
        return
    yield "## Recorded runs that were read by hand"
    yield from labelled_tables(recorded)
    yield "## Recorded runs that did their task"
    yield solved_table(recorded)


# One column a detector, and one for each way of telling it of results.


def columns() -> Iterator[tuple[Entry, bool, str]]:
    """Detectors, whether they get results, and how the column is headed."""
    for entry in ENTRIES:
        yield entry, True, entry.name
        if entry.reads_results and not entry.needs_results:
            yield entry, False, f"{entry.name}, results withheld"


def labelled_tables(runs: list[LabelledRun]) -> Iterator[str]:
    """What was caught and what was cried wolf at, by group; then where our guard went wrong."""
    runs = [run for run in runs if run.is_loop is not None]
    sizes = group_sizes(runs)
    found = [scores(runs, entry, with_results=told) for entry, told, _ in columns()]
    for score in (sizes, *found):
        score[TOTAL] = total(score)
    heads = [head for _, _, head in columns()]
    loops = [
        [f"{group}: {size.loops}", *(caught(score[group]) for score in found)]
        for group, size in sizes.items()
        if size.loops
    ]
    healthy = [
        [f"{group}: {size.healthy}", *(str(score[group].false_alarms) for score in found)]
        for group, size in sizes.items()
        if size.healthy
    ]
    yield markdown(["loops caught", *heads], loops)
    yield markdown(["false alarms on healthy runs", *heads], healthy)
    yield wrong_verdicts(runs)


TOTAL = "all that are sure"


def total(found: dict[str, Score]) -> Score:
    """All groups together, but for what is nice to have and what the reader was not sure of."""
    sure = [score for group, score in found.items() if not is_doubtful(group)]
    return Score(
        *(
            sum(getattr(score, name) for score in sure)
            for name in ("loops", "caught", "in_time", "healthy", "false_alarms")
        )
    )


def is_doubtful(group: str) -> bool:
    return group.endswith((BORDERLINE, NICE_TO_HAVE))


def caught(score: Score) -> str:
    """How many loops were caught, and how many in time where not all were."""
    late = score.caught - score.in_time
    return f"{score.caught}, {late} late" if late else str(score.caught)


def group_sizes(runs: list[LabelledRun]) -> dict[str, Score]:
    """How many loops and healthy runs each group has; groups in the order of the file."""
    sizes: dict[str, Score] = {}
    for run in runs:
        size = sizes.setdefault(run.group, Score())
        size.count(is_loop=bool(run.is_loop), by_call=None, spoke_at=None)
    return sizes


def wrong_verdicts(runs: list[LabelledRun]) -> str:
    """Each run that our guard judged otherwise than its label, with results."""
    spoke = alarms(runs, OURS)
    wrong: list[str] = []
    for run in runs:
        at = spoke[run.id]
        if not run.is_loop and at is not None:
            wrong.append(f"`{run.id}` false alarm at call {at} ({', '.join(reasons(run))})")
        if run.is_loop and at is None:
            wrong.append(f"`{run.id}` missed")
        if run.is_loop and at is not None and run.by_call is not None and at > run.by_call:
            wrong.append(f"`{run.id}` late: at call {at}, due {run.by_call}")
    return "Wrong with results: " + ("; ".join(wrong) if wrong else "none") + "."


def text_table() -> str:
    """Texts that repeat themselves: our detector of them alone, since the others have none."""
    found = text_scores(vector_texts()).values()
    total = {
        name: sum(getattr(score, name) for score in found)
        for name in ("loops", "caught", "healthy", "false_alarms")
    }
    return (
        f"Texts: {total['caught']} of {total['loops']} that repeat themselves caught, "
        f"{total['false_alarms']} false alarms on {total['healthy']}."
    )


def reply_table(found: Recordings) -> str:
    """In how many recorded replies our detector of texts speaks, by the format of the recording."""
    rows = [
        [
            source,
            str(replies.runs),
            f"{replies.count:,}",
            f"{replies.size / 1000:,.0f} KB",
            f"{replies.longest:,} B",
            str(len(replies.alarms)),
        ]
        for source, replies in sorted(found.replies.items())
    ]
    table = markdown(["format", "runs", "replies", "text", "longest", "alarms"], rows)
    alarms = [alarm for replies in found.replies.values() for alarm in replies.alarms]
    notes = [f"- alarm: {alarm}" for alarm in alarms]
    notes += [f"- not read: {reason}" for reason in found.unread]
    notes += [f"- files of no known format: {found.unknown}"] if found.unknown else []
    return "\n".join([table, "", *notes]).rstrip()


def solved_table(runs: list[LabelledRun]) -> str:
    """In how many solved runs each detector speaks; labelled loops are left out."""
    solved = solved_runs(runs)
    group_of = {run.id: run.group.removesuffix(BORDERLINE) for run in solved}
    sizes = Counter(group_of.values())
    rows = [[f"{group}: {size}"] for group, size in sizes.items()]
    last = [f"all: {len(solved)}"]
    ours: list[str] = []
    for entry, with_results, head in columns():
        spoke = alarms(solved, entry, with_results=with_results)
        hits = [run for run in solved if spoke[run.id] is not None]
        by_group = Counter(group_of[run.id] for run in hits)
        for row, group in zip(rows, sizes, strict=True):
            row.append(str(by_group[group]))
        last.append(f"{len(hits)} ({100 * len(hits) / max(len(solved), 1):.1f} %)")
        if entry is OURS:
            ours.extend(
                f"- {head}: `{run.id}` at call {spoke[run.id]} "
                f"({', '.join(reasons(run, with_results=with_results))})"
                for run in hits
            )
    table = markdown(["alarms", *(head for _, _, head in columns())], [*rows, last])
    return f"{table}\n\nOur guard spoke in:\n\n" + ("\n".join(ours) or "- none")


def markdown(heads: list[str], rows: list[list[str]]) -> str:
    """A table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    raise SystemExit(main())
