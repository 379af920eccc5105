"""The contexts of recursive workflows: what calls share, and the results that they see."""

from __future__ import annotations

import secrets
from typing import Any, Final, cast

from turnwarden.engine.checking import check_limit, check_type
from turnwarden.engine.results import ToolResult

__all__ = ["DEFAULT_MAX_DEPTH", "WorkflowContext", "create_context"]

DEFAULT_MAX_DEPTH: Final = 10


class _Log:
    """Records in the order in which they came, shared by a chain of open contexts.

    While a child context is open, whatever is recorded in it is recorded in its ancestors too: so
    the results of each are one stretch of a common list, and recording costs the same at any depth.
    `top` is the innermost open context. Records are passed on to `onward`, the parent of the
    outermost context here, which has a list of its own.
    """

    __slots__ = ("onward", "records", "top")

    def __init__(self, top: WorkflowContext, onward: WorkflowContext | None) -> None:
        self.records: list[ToolResult] = []
        self.top = top
        self.onward = onward


class WorkflowContext:
    """What the calls of one workflow share. Made by `create_context`, and by the engine.

    Attributes:
        execution_id: Unique.
        depth: 0 for a first workflow, 1 for one that its calls returned, and so on.
        max_depth: Workflows at this depth and deeper do not run.
        parent: The context of the workflow whose call returned this one.
        shared_data: One dict for all contexts of a run; results put their `context` in here.
    """

    __slots__ = (
        "__weakref__",
        "_end",
        "_log",
        "_start",
        "depth",
        "execution_id",
        "max_depth",
        "parent",
        "shared_data",
    )

    def __init__(
        self,
        execution_id: str,
        depth: int,
        max_depth: int,
        parent: WorkflowContext | None,
        shared_data: dict[str, Any],
    ) -> None:
        self.execution_id = execution_id
        self.depth = depth
        self.max_depth = max_depth
        self.parent = parent
        self.shared_data = shared_data
        self._log = _Log(self, parent)
        self._start = 0
        self._end: int | None = None

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The records of this workflow's calls and of those below it, in the order they came."""
        return tuple(self._log.records[self._start : self._end])

    def __repr__(self) -> str:
        end = len(self._log.records) if self._end is None else self._end
        return (
            f"<WorkflowContext {self.execution_id} depth={self.depth} max_depth={self.max_depth} "
            f"results={end - self._start}>"
        )

    # For engines

    def open_child(self, max_depth: int) -> WorkflowContext:
        """A child that shares this context's list as long as nobody else writes to that."""
        child = create_context(self, max_depth=max_depth)
        self._become_top()
        child._log = self._log
        child._start = len(self._log.records)
        self._log.top = child
        return child

    def close(self) -> None:
        """Nothing more will be recorded in this context. Used again, it goes on."""
        self._end = len(self._log.records)
        if self.parent is not None and self.parent._log is self._log:
            self._log.top = self.parent

    def record(self, record: ToolResult) -> None:
        """Add a record to this context's results and to those of every ancestor."""
        context: WorkflowContext | None = self
        while context is not None:
            context._become_top()
            context._log.records.append(record)
            context = context._log.onward

    def _become_top(self) -> None:
        """Make sure that what is recorded next belongs to this context and to its ancestors."""
        if self._end is not None:
            self._take_own_log()
        elif self._log.top is not self:
            self._move_children_out()

    def _take_own_log(self) -> None:
        """A context that was left is used again."""
        log = _Log(self, self.parent)
        log.records = self._log.records[self._start : self._end]
        self._log, self._start, self._end = log, 0, None

    def _move_children_out(self) -> None:
        """Somebody else works in an open child at the same time: give the child its own list."""
        shared = self._log
        chain = [shared.top]
        while chain[-1].parent is not self:
            chain.append(cast("WorkflowContext", chain[-1].parent))
        start = chain[-1]._start
        log = _Log(shared.top, self)
        log.records = shared.records[start:]
        for context in chain:
            context._log = log
            context._start -= start
        shared.top = self

    # A chain of any length is pickled and copied without recursion.

    def __reduce__(self) -> tuple[Any, ...]:
        levels: list[tuple[Any, ...]] = []
        context: WorkflowContext | None = self
        while context is not None:
            levels.append(
                (
                    context.execution_id,
                    context.depth,
                    context.max_depth,
                    context.shared_data,
                    context._log.records,
                    context._start,
                    context._end,
                )
            )
            context = context.parent
        return WorkflowContext._restore_chain, (levels,)

    @classmethod
    def _restore_chain(cls, levels: list[tuple[Any, ...]]) -> WorkflowContext:
        """Build a chain of contexts, the innermost first in `levels`, and return that one."""
        context: WorkflowContext | None = None
        for execution_id, depth, max_depth, shared_data, records, start, end in reversed(levels):
            parent = context
            context = cls(execution_id, depth, max_depth, parent, shared_data)
            if parent is not None and parent._log.records is records:
                context._log = parent._log
            context._log.records = records
            context._start, context._end = start, end
            if end is None:
                context._log.top = context
        return cast("WorkflowContext", context)


def create_context(
    parent: WorkflowContext | None = None,
    *,
    max_depth: int | None = None,
    shared_data: dict[str, Any] | None = None,
) -> WorkflowContext:
    """Make a context.

    Args:
        parent: Makes a child: one deeper, the same `max_depth` and `shared_data`, and results of
            its own that are the parent's too.
        max_depth: Workflows at this depth and deeper do not run; 10 for a context without parent.
        shared_data: What the calls share from the start; not for a child.

    Raises:
        ValueError: A `max_depth` below 1, or shared data for a child.
        TypeError: A parent that is no context, or shared data that is no dict.

    Example:
        >>> child = create_context(create_context(max_depth=3))
        >>> (child.depth, child.max_depth)
        (1, 3)
    """
    if max_depth is not None:
        check_limit("max_depth", max_depth)
    check_type("parent", parent, WorkflowContext, optional=True)
    check_type("shared_data", shared_data, dict, optional=True)
    execution_id = f"exec-{secrets.token_hex(8)}"
    if parent is None:
        data = {} if shared_data is None else shared_data
        depth_limit = DEFAULT_MAX_DEPTH if max_depth is None else max_depth
        return WorkflowContext(execution_id, 0, depth_limit, None, data)
    if shared_data is not None:
        raise ValueError("a child context shares its parent's data; give shared_data to the parent")
    depth_limit = parent.max_depth if max_depth is None else max_depth
    return WorkflowContext(execution_id, parent.depth + 1, depth_limit, parent, parent.shared_data)
