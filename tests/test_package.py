"""The package as a whole: what it is built from, and what it says of that."""

import subprocess
import sys

import turnwarden

# The package again, over a core that says the profile in the first argument.
IMPORT_AGAIN = """
import importlib, sys, turnwarden
from turnwarden import _core

build = _core.build_info()
_core.build_info = lambda: {**build, "profile": sys.argv[1]}
importlib.reload(turnwarden)
"""


def warnings_of_an_import(profile: str) -> str:
    command = [sys.executable, "-W", "always", "-c", IMPORT_AGAIN, profile]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stderr


def test_build_info_names_a_release_build() -> None:
    info = turnwarden.build_info()
    assert info["profile"] == "release"
    assert info["version"].count(".") == 2


def test_importing_a_debug_build_warns_and_says_how_to_make_another() -> None:
    warning = warnings_of_an_import("debug")
    assert "RuntimeWarning: turnwarden's native core is a debug build" in warning
    assert "maturin develop --release" in warning


def test_importing_a_release_build_says_nothing() -> None:
    assert warnings_of_an_import("release") == ""
