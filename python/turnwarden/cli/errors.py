"""The error that ends a command with a line instead of a traceback."""

from __future__ import annotations

__all__ = ["CommandError"]


class CommandError(Exception):
    """What went wrong, for the user to read; the command ends with code 2."""
