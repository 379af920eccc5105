"""Routes: where a run goes after a node. In order, the first that applies is taken.

route.to("next")                    always
route.to_if(predicate, "next")      when the predicate says so of the state
route.to_if_error("failure")        when the node erred
route.deliver("answer")             ends the run with a field of the state
route.deliver_if(predicate, "answer")
route.fan_out(["a", "b"], join="next", merge={"notes": operator.add})
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as with_default
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar

from turnwarden.engine.checking import as_tuple, check_type

__all__ = [
    "Reducer",
    "Route",
    "RouteKind",
    "deliver",
    "deliver_if",
    "fan_out",
    "to",
    "to_if",
    "to_if_error",
]

StateT_contra = TypeVar("StateT_contra", contravariant=True)

Reducer: TypeAlias = Callable[[Any, Any], Any]
"""Makes one value of two: `operator.add` joins lists. Called in the order of the branches."""


class RouteKind(enum.StrEnum):
    """Which kind of route."""

    TO = "to"
    TO_IF = "to_if"
    TO_IF_ERROR = "to_if_error"
    DELIVER = "deliver"
    DELIVER_IF = "deliver_if"
    FAN_OUT = "fan_out"

    @property
    def is_conditional(self) -> bool:
        """Whether a route of this kind may not apply."""
        return self in (RouteKind.TO_IF, RouteKind.TO_IF_ERROR, RouteKind.DELIVER_IF)


@dataclass(frozen=True, slots=True)
class Route(Generic[StateT_contra]):
    """One way on from a node; made by the functions of this module.

    Attributes:
        kind: Which kind.
        target: The node that comes next; of a fan-out the node that joins its branches.
        field: The field of the state that is delivered.
        predicate: Says of the state whether the route applies.
        branches: The nodes that run in parallel.
        merge: How a field is made one that several branches write.
    """

    kind: RouteKind
    target: str | None = None
    field: str | None = None
    predicate: Callable[[StateT_contra], bool] | None = None
    branches: tuple[str, ...] = ()
    merge: Mapping[str, Reducer] = with_default(default_factory=dict[str, Reducer])


def to(node: str) -> Route[object]:
    """Go to a node, always.

    Args:
        node: Its id.
    """
    return Route(RouteKind.TO, target=node)


def to_if(predicate: Callable[[StateT_contra], bool], node: str) -> Route[StateT_contra]:
    """Go to a node when the state says so.

    Args:
        predicate: A synchronous function of the state. What it raises ends the run.
        node: The node's id.

    Example:
        >>> to_if(lambda state: state["tries"] < 3, "again").target
        'again'
    """
    return Route(RouteKind.TO_IF, target=node, predicate=predicate)


def to_if_error(node: str) -> Route[object]:
    """Go to a node when this one erred.

    A node errs when its `run` raised, or its own update holds an `error` that is not None; a node
    without `run` errs when the state holds one.

    Args:
        node: The node's id.
    """
    return Route(RouteKind.TO_IF_ERROR, target=node)


def deliver(field: str) -> Route[object]:
    """End the run with a field of the state as its result.

    Args:
        field: Which; it must be set.
    """
    return Route(RouteKind.DELIVER, field=field)


def deliver_if(predicate: Callable[[StateT_contra], bool], field: str) -> Route[StateT_contra]:
    """End the run with a field of the state when the state says so.

    Args:
        predicate: A synchronous function of the state. What it raises ends the run.
        field: Which; it must be set.
    """
    return Route(RouteKind.DELIVER_IF, field=field, predicate=predicate)


def fan_out(
    nodes: Iterable[str], *, join: str, merge: Mapping[str, Reducer] | None = None
) -> Route[object]:
    """Run several nodes in parallel, always, then go on at one.

    Each branch sees the state as it was at the fan-out. All of them run to their end; then their
    updates are applied in the order of `nodes`, whichever was first in time. A branch goes to the
    join by itself; of routes it may have `to_if_error`. When a branch erred that has such a route,
    it is taken in place of the join; the first such branch in order wins.

    Args:
        nodes: The ids of the branches.
        join: The id of the node that comes next.
        merge: For each field that more than one branch writes how two values of it become one.
            The values are those of the branches; what the state held before is replaced.

    Example:
        >>> import operator
        >>> fan_out(["search", "read"], join="answer", merge={"notes": operator.add}).branches
        ('search', 'read')
    """
    names = (nodes,) if isinstance(nodes, str) else as_tuple("nodes", nodes, "ids of nodes")
    if merge is not None:
        check_type("merge", merge, Mapping)
    reducers = MappingProxyType(dict(merge or {}))
    return Route(RouteKind.FAN_OUT, target=join, branches=names, merge=reducers)
