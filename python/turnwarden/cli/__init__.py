"""The command line: `turnwarden scan`, `replay` and `parse`.

Exit codes: 0 fine, 1 loops found (`scan --fail-on-loop`), 2 an input could not be read, the output
not written, or an argument is wrong, 130 interrupted, 141 the reader of the output went away.
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
    with _somewhere_to_complain():
        for stream in (sys.stdout, sys.stderr):
            _accept_any_text(stream)
        try:
            return _run(arguments)
        except CommandError as error:
            return _complain(str(error), 2)
        except KeyboardInterrupt:
            return _complain("interrupted", INTERRUPTED)
        except BrokenPipeError:
            _forget(sys.stdout)
            return _complain("the output was closed before everything was written", BROKEN_PIPE)
        except OSError as error:  # inputs that fail are errors of their own
            _forget(sys.stdout)
            reason = (error.strerror or str(error)).lower()
            return _complain(f"the output cannot be written: {reason}", 2)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        options = _parser().parse_args(arguments)
        if _is_closed("stdout"):
            raise CommandError("standard output is closed")
        return options.command(options)
    finally:  # here, where it can be told that it failed
        for name in ("stdout", "stderr"):
            if not _is_closed(name):
                getattr(sys, name).flush()


def _is_closed(name: str) -> bool:
    """Whether the program was started without a stream; Python then has None in its place."""
    return getattr(sys, name, None) is None


def _somewhere_to_complain() -> contextlib.AbstractContextManager[object]:
    if _is_closed("stderr"):
        return contextlib.redirect_stderr(io.StringIO())
    return contextlib.nullcontext()


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
    try:
        print(f"turnwarden: {clean(message)}", file=sys.stderr, flush=True)
    except OSError:  # nobody reads that either
        _forget(sys.stderr)
    return code


def _accept_any_text(stream: TextIO) -> None:
    """Characters that the terminal's encoding lacks are replaced: no report fails on one."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")


def _forget(stream: TextIO) -> None:
    """Points a stream nowhere, or Python complains about it once more when it ends."""
    with contextlib.suppress(OSError, ValueError):  # it may be no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
