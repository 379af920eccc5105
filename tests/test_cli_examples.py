"""The example script runs, and does what its first line says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "examples" / "guarded_loop.py"


def test_the_guarded_loop_is_warned_blocked_and_stopped():
    told = subprocess.run(
        [sys.executable, str(SCRIPT)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    assert told.stderr == ""
    assert told.stdout.count("runs find_table") == 3
    warned = told.stdout.index("prompt gets: Loop detected")
    blocked = told.stdout.index("block: find_table does not run")
    stopped = told.stdout.index("stop: find_table does not run")
    assert warned < blocked < stopped
    assert "loop.exact" in told.stdout
