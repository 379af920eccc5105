"""The README shows what the commands really print."""

import re
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


def test_the_table_of_what_works_names_a_state_and_a_page_for_each_part() -> None:
    rows = [line.strip("|").split("|") for line in README.splitlines() if line.startswith("| ")]
    parts = [[cell.strip() for cell in row] for row in rows if len(row) == 3][1:]
    assert len(parts) > 5
    for name, state, page in parts:
        assert re.split("[:;]", state)[0] in {"works", "works in part", "not yet"}, name
        assert state == "not yet" or page, name


def test_every_link_to_a_file_leads_to_one() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    pages.append(ROOT / "benches" / "README.md")
    targets = [
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    assert targets
    assert [(page.name, to) for page, to in targets if not (page.parent / to).exists()] == []
