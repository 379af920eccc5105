"""The command line: `turnwarden scan`, `replay` and `parse`.

Exit codes: 0 fine, 1 loops found (`scan --fail-on-loop`), 2 an input could not be read or an
argument is wrong, 130 interrupted, 141 the reader of the output went away.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Final, TextIO

from turnwarden.cli import parse, replay, scan
from turnwarden.cli.console import clean
from turnwarden.cli.errors import CommandError

__all__ = ["main"]

INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: The words of the command line; those of the process by default.

    Returns:
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        _accept_any_text(stream)
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
        sys.stdout.flush()
    except CommandError as error:
        return _complain(str(error), 2)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        _forget_output()
        return _complain("the output was closed before everything was written", BROKEN_PIPE)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="turnwarden",
        description="Reads recorded agent runs, and says which of them went round in circles.",
        epilog="Exit codes: 0 fine, 1 loops found (scan --fail-on-loop), 2 something could not "
        "be read.",
    )
    parser.add_argument("--version", action=_Version, help="print the version and how it was built")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (scan, replay, parse):
        command.add_to(commands)
    return parser


class _Version(argparse.Action):
    """Prints version and build; asks the core only when it is needed."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        del namespace, values, option_string
        from turnwarden import build_info

        build = build_info()
        print(f"turnwarden {build['version']} ({build['profile']} build)")
        parser.exit()


def _complain(message: str, code: int) -> int:
    with contextlib.suppress(OSError):  # perhaps nobody reads that either
        print(f"turnwarden: {clean(message)}", file=sys.stderr, flush=True)
    return code


def _accept_any_text(stream: TextIO) -> None:
    """Characters that the terminal's encoding lacks are replaced: no report fails on one."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")


def _forget_output() -> None:
    """Points the output nowhere, or Python complains about it once more when it ends."""
    with contextlib.suppress(OSError, ValueError):  # the output may be no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
