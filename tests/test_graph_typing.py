"""What the types of the graph engine let pass, and refuse, as pyright in strict mode sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyright", reason="needs the group lint")

TYPING = Path(__file__).parent / "typing"


@pytest.fixture(scope="module")
def complaints() -> dict[str, set[int]]:
    """The lines that pyright complains of, by file."""
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "-p", str(TYPING)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 2
    lines: dict[str, set[int]] = {"graph_good.py": set(), "graph_bad.py": set()}
    for one in report["generalDiagnostics"]:
        lines[Path(one["file"]).name].add(one["range"]["start"]["line"] + 1)
    return lines


def test_workflows_whose_types_fit_pass(complaints: dict[str, set[int]]) -> None:
    assert complaints["graph_good.py"] == set()


def test_workflows_whose_types_do_not_fit_are_refused(complaints: dict[str, set[int]]) -> None:
    lines = (TYPING / "graph_bad.py").read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) > 10
    found = complaints["graph_bad.py"]
    assert {lines[number - 1] for number in wrong - found} == set()  # wrong and not refused
    assert {lines[number - 1] for number in found - wrong} == set()  # refused and not wrong
