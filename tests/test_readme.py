"""The README shows what the commands really print."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def shown(command: str) -> list[str]:
    """The lines that the README shows below a command."""
    _, _, after = README.partition(f"$ {command}\n")
    block, end, _ = after.partition("\n```")
    assert end, f"the README shows no output of {command}"
    return block.splitlines()


def printed(command: str) -> list[str]:
    arguments = command.split()[1:]
    done = subprocess.run(
        [sys.executable, "-m", "turnwarden", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    return [line.rstrip() for line in done.stdout.splitlines()]


def test_the_scan_in_the_readme_is_what_scan_prints() -> None:
    command = "turnwarden scan examples/runs"
    assert shown(command) == printed(command)


def test_every_line_of_the_replay_in_the_readme_is_printed() -> None:
    command = "turnwarden replay examples/runs/looping.jsonl"
    excerpt = [line for line in shown(command) if line and line != "..."]
    assert len(excerpt) > 10
    output = printed(command)
    assert [line for line in excerpt if line not in output] == []
