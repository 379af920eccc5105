"""Collects the Python blocks of README.md and docs/*.md: run in order, a namespace a file.

Property tests draw the same examples in each run, so that a change is judged and not chance; new
ones are drawn with `HYPOTHESIS_PROFILE=default` (see CONTRIBUTING.md).
"""

import os
import signal

import pytest
from hypothesis import settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

settings.register_profile("repeatable", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

# Shells start what runs in the background with interrupts ignored, for which some tests would wait.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["*.md"],
).pytest()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds what the tests can be told."""
    parser.addoption(
        "--session-seconds",
        type=float,
        default=2.0,
        help="how long eight threads work on one SessionGuards",
    )
