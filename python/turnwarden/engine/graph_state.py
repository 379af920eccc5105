"""The state of a run, whichever kind it is: a dict (a TypedDict), a dataclass, a pydantic model.

The engine keeps an object of its own: nodes and predicates are given copies, and updates are
written into its own.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

__all__ = ["StateForm", "fields_of_type", "form_of"]


@dataclass(frozen=True, slots=True)
class StateForm:
    """How states of one kind are handled.

    Attributes:
        own: Makes the engine's own state of what a run is given.
        copy: Makes the copy of it that a node is given.
        read: The value of a field; None when it is missing.
        write: Puts fields into a state of the engine's own, and returns the state to go on with.
        fields: The fields that there are; None when any may be.
    """

    own: Callable[[Any], Any]
    copy: Callable[[Any], Any]
    read: Callable[[Any, str], Any]
    write: Callable[[Any, Mapping[str, Any]], Any]
    fields: frozenset[str] | None


def fields_of_type(kind: type | None) -> frozenset[str] | None:
    """The fields of a type of states; None when any may be set.

    Raises:
        TypeError: It is no TypedDict, dataclass or pydantic model.
    """
    if kind is None or kind is dict:
        return None
    if typing.is_typeddict(kind):
        keys = cast("Any", kind)
        return cast("frozenset[str]", keys.__required_keys__ | keys.__optional_keys__)
    if dataclasses.is_dataclass(kind):
        return frozenset(entry.name for entry in dataclasses.fields(kind))
    model_fields = _model_fields(cast("type", kind))
    if model_fields is None:
        raise TypeError(f"{kind!r} is no TypedDict, dataclass or pydantic model")
    return model_fields if _model_config(cast("type", kind)).get("extra") != "allow" else None


def form_of(state: Any, kind: type | None, isolate: bool) -> StateForm:
    """How to handle a state.

    Args:
        state: What the run is given.
        kind: The declared type, if there is one.
        isolate: Whether copies are deep.

    Raises:
        TypeError: The state is no mapping, dataclass or pydantic model, or not of the type.
    """
    if type(state) is not dict or kind is not None:
        _check_kind(state, kind)
    if isinstance(state, Mapping):
        return _mapping_form(kind, isolate)
    return _object_form(_kind(state), isolate)


def _check_kind(state: Any, kind: type | None) -> None:
    is_object = _is_object(state)
    if not isinstance(state, Mapping) and not is_object:
        raise TypeError(
            f"a state must be a dict, a dataclass or a pydantic model, not {type(state).__name__}"
        )
    if kind is None or kind is dict or typing.is_typeddict(kind):
        if kind is not None and is_object:
            raise TypeError(f"the state must be a dict ({kind.__name__}), not {_name(state)}")
        return
    if not isinstance(state, kind):
        raise TypeError(f"the state must be a {kind.__name__}, not {_name(state)}")


def _name(value: Any) -> str:
    return type(value).__name__


def _kind(value: object) -> type:
    return type(value)


def _is_object(state: object) -> bool:
    kind = type(state)
    return dataclasses.is_dataclass(kind) or _model_fields(kind) is not None


def _model_fields(kind: type) -> frozenset[str] | None:
    """The fields of a pydantic model; None for another type."""
    fields = getattr(kind, "model_fields", None)
    if isinstance(fields, Mapping) and callable(getattr(kind, "model_copy", None)):
        return frozenset(cast("Mapping[str, Any]", fields))
    return None


def _model_config(kind: type) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", getattr(kind, "model_config", {}))


# Mappings


@functools.lru_cache(maxsize=256)
def _mapping_form(kind: type | None, isolate: bool) -> StateForm:
    return StateForm(
        own=_deep_copy_mapping if isolate else dict[str, Any],
        copy=copy.deepcopy if isolate else dict[str, Any].copy,
        read=dict[str, Any].get,
        write=_update_dict,
        fields=fields_of_type(kind),
    )


def _deep_copy_mapping(state: Mapping[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(dict(state))


def _update_dict(state: dict[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    state.update(update)
    return state


# Objects


@functools.lru_cache(maxsize=256)
def _object_form(kind: type, isolate: bool) -> StateForm:
    fields = fields_of_type(kind)
    if dataclasses.is_dataclass(kind):
        return StateForm(
            own=copy.deepcopy if isolate else copy.copy,
            copy=copy.deepcopy if isolate else copy.copy,
            read=_read_attribute,
            write=_write_frozen if kind.__dataclass_params__.frozen else _write_attributes,  # type: ignore[attr-defined]
            fields=fields,
        )
    frozen = bool(_model_config(cast("type", kind)).get("frozen"))
    return StateForm(
        own=copy.deepcopy if isolate else copy.copy,
        copy=copy.deepcopy if isolate else copy.copy,
        read=_read_attribute,
        write=_copy_model if frozen else _assign_to_model,
        fields=fields,
    )


def _read_attribute(state: object, name: str) -> Any:
    return getattr(state, name, None)


def _write_attributes(state: Any, update: Mapping[str, Any]) -> Any:
    for name, value in update.items():
        setattr(state, name, value)
    return state


def _write_frozen(state: Any, update: Mapping[str, Any]) -> Any:
    for name, value in update.items():  # the engine's own object, that nobody else has
        object.__setattr__(state, name, value)
    return state


def _copy_model(state: Any, update: Mapping[str, Any]) -> Any:
    return state.model_copy(update=update)


def _assign_to_model(state: Any, update: Mapping[str, Any]) -> Any:
    """Assign to a copy: a model that validates assignments may refuse some of them."""
    return _write_attributes(copy.copy(state), update)
