"""The guard's set-up that commands read from a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from turnwarden.cli.errors import CommandError

if TYPE_CHECKING:
    from turnwarden import WorkflowGuardConfig

__all__ = ["add_policy_option", "read_policy"]


def add_policy_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--policy FILE`."""
    parser.add_argument(
        "--policy",
        metavar="FILE",
        help="TOML file with the guard's limits, thresholds and tool policies",
    )


def read_policy(path: str | None) -> WorkflowGuardConfig:
    """The configuration in a file; the defaults when there is none.

    Raises:
        CommandError: The file cannot be read, or holds a wrong value.
    """
    from turnwarden import WorkflowGuardConfig

    if path is None:
        return WorkflowGuardConfig()
    try:
        return WorkflowGuardConfig.from_toml(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except (ValueError, TypeError) as error:
        raise CommandError(f"{path}: {error}") from error
