"""Refuses arguments that cannot work, by name, where they are given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from turnwarden.guards import WorkflowGuardConfig

__all__ = [
    "as_tuple",
    "check_callable",
    "check_limit",
    "check_seconds",
    "check_type",
    "guard_config",
]


ValueT = TypeVar("ValueT")


def check_type(name: str, value: object, expected: type, *, optional: bool = False) -> None:
    """Refuse what is of another type, by a TypeError."""
    if isinstance(value, expected) or (optional and value is None):
        return
    allowed = f"{expected.__name__} or None" if optional else expected.__name__
    raise TypeError(f"{name} must be a {allowed}, not {type(value).__name__}")


def as_tuple(name: str, values: Iterable[ValueT], what: str) -> tuple[ValueT, ...]:
    """The values; what cannot be iterated over is a TypeError."""
    if not isinstance(cast("object", values), Iterable):
        raise TypeError(f"{name} must be an iterable of {what}, not {type(values).__name__}")
    return tuple(values)


def check_callable(name: str, value: object) -> None:
    """Refuse what cannot be called and is not None, by a TypeError."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable or None, not {type(value).__name__}")


def check_seconds(name: str, value: object) -> None:
    """Refuse what is no number above 0 and not None, by a ValueError."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is not None and not (is_number and cast("float", value) > 0):
        raise ValueError(f"{name} must be a number above 0 or None, not {value!r}")


def check_limit(name: str, value: object, *, least: int = 1) -> None:
    """Refuse what is no int from `least` up, by a ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an int from {least} up, not {value!r}")


def guard_config(guard: object) -> WorkflowGuardConfig | None:
    """The configuration of a guard, as given; anything else is a TypeError."""
    if guard is None or isinstance(guard, WorkflowGuardConfig):
        return guard
    if isinstance(guard, Mapping):
        return WorkflowGuardConfig(**cast("Mapping[str, Any]", guard))
    raise TypeError(
        f"guard must be a WorkflowGuardConfig, not {type(guard).__name__}: "
        "every run makes its own guard"
    )
