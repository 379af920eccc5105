"""Nodes: what a workflow consists of, and what a node is given when it runs."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast

from turnwarden.engine.route import Route

if TYPE_CHECKING:
    from turnwarden.engine.graph_definition import AgentWorkflowDefinition
    from turnwarden.guards import WorkflowGuard

__all__ = [
    "Calling",
    "Node",
    "NodeContext",
    "Retry",
    "Run",
    "SubWorkflow",
    "Update",
    "WorkflowNode",
    "calling_of",
    "context_keyword",
    "function_name",
    "is_async_function",
    "subworkflow",
]

StateT_contra = TypeVar("StateT_contra", contravariant=True)
RuntimeT = TypeVar("RuntimeT")
RuntimeT_co = TypeVar("RuntimeT_co", covariant=True)

Update: TypeAlias = Mapping[str, object] | None
"""What a node returns: the fields of the state that change, or None."""


class NodeContext(Generic[RuntimeT_co]):
    """What a node is given beside the state, when its `run` takes a second argument.

    Attributes:
        runtime: The services that were given at `run(state, runtime=...)`.
        guard: The guard of this run; None without one on the engine.
        round: The round, from 1.
        run_id: Which run.
        node_id: Which node.
        idempotency_key: `run_id:sequence:node`: the same whenever this step runs again.
    """

    __slots__ = ("_services", "idempotency_key", "node_id", "round")

    def __init__(
        self, services: _Services[RuntimeT_co], node_id: str, round: int, idempotency_key: str
    ) -> None:
        self._services = services
        self.node_id = node_id
        self.round = round
        self.idempotency_key = idempotency_key

    def __repr__(self) -> str:
        return f"<NodeContext {self.idempotency_key} round={self.round}>"

    @property
    def runtime(self) -> RuntimeT_co:
        """The services that were given at `run(state, runtime=...)`."""
        return self._services.runtime

    @property
    def guard(self) -> WorkflowGuard | None:
        """The guard of this run; None without one on the engine.

        Record calls and results on it. Its verdict on the next round takes them into account.
        """
        return self._services.guard_for_node()

    @property
    def run_id(self) -> str:
        """Which run."""
        return self._services.run_id

    @property
    def cancelled(self) -> bool:
        """Whether the run was asked to stop: for nodes that work long without awaiting."""
        return self._services.is_cancelled

    def emit(self, name: str, value: object = None) -> None:
        """Tell those who listen to the run something: an event `NodeEmitted`.

        Args:
            name: What it is about; it may go into any log.
            value: Anything; it goes into logs only when asked.
        """
        self._services.emit_from_node(self, name, value)


class _Services(Protocol[RuntimeT_co]):
    """What a run does for its nodes."""

    @property
    def run_id(self) -> str: ...
    @property
    def runtime(self) -> RuntimeT_co: ...
    @property
    def is_cancelled(self) -> bool: ...
    def guard_for_node(self) -> WorkflowGuard | None: ...
    def emit_from_node(self, context: NodeContext[Any], name: str, value: object) -> None: ...


Run: TypeAlias = (
    Callable[[StateT_contra], Update | Awaitable[Update]]
    | Callable[[StateT_contra, NodeContext[RuntimeT]], Update | Awaitable[Update]]
)
"""A node's work: `run(state)` or `run(state, ctx)`, synchronous or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often a node is tried that raises, and how long to wait in between.

    Attributes:
        attempts: How often it is tried at most, the first time included.
        delay: Seconds before the second attempt.
        factor: What the delay is multiplied by each time.
        max_delay: Seconds; no delay is longer.
        on: The exceptions that are worth another attempt; time-outs are `TimeoutError`.

    Example:
        >>> retry = Retry(attempts=4, delay=0.5, max_delay=1.5)
        >>> [retry.delay_before(attempt) for attempt in (2, 3, 4)]
        [0.5, 1.0, 1.5]
    """

    attempts: int = 3
    delay: float = 0.5
    factor: float = 2.0
    max_delay: float = 30.0
    on: type[Exception] | tuple[type[Exception], ...] = Exception

    def delay_before(self, attempt: int) -> float:
        """Seconds to wait before an attempt, counted from 1."""
        try:
            delay = self.delay * self.factor ** (attempt - 2)
        except OverflowError:
            return self.max_delay
        return min(delay, self.max_delay)

    def describe(self) -> dict[str, Any]:
        """The fields as plain data."""
        kinds = self.on if isinstance(self.on, tuple) else (self.on,)
        return {
            "attempts": self.attempts,
            "delay": self.delay,
            "factor": self.factor,
            "max_delay": self.max_delay,
            "on": [function_name(kind) for kind in kinds],
        }


@dataclass(frozen=True, slots=True)
class SubWorkflow(Generic[StateT_contra, RuntimeT]):
    """A workflow that a node runs; made by `subworkflow`.

    Attributes:
        workflow: Which.
        input: Makes its state of this one; by default it gets a copy of this one.
        output: The field that its result goes to; by default the one that it delivered.
    """

    workflow: AgentWorkflowDefinition[Any, Any, RuntimeT]
    input: Callable[[StateT_contra], object] | None = None
    output: str | None = None


def subworkflow(
    workflow: AgentWorkflowDefinition[Any, Any, RuntimeT],
    *,
    input: Callable[[StateT_contra], object] | None = None,
    output: str | None = None,
) -> SubWorkflow[StateT_contra, RuntimeT]:
    """Run a workflow as a node: `Node(run=subworkflow(...))`, or just `Node(run=workflow)`.

    It runs with the same runtime, limits and sinks, counts rounds of its own, and has a guard of
    its own when the engine has one. Its run id is the idempotency key of the node.

    Args:
        workflow: Which.
        input: Makes its state of this one; by default it gets a copy of this one.
        output: The field that its result goes to; by default the one that it delivered.
    """
    return SubWorkflow(workflow, input, output)


@dataclass(frozen=True, slots=True, eq=False)
class WorkflowNode(Generic[StateT_contra, RuntimeT]):
    """One node of a workflow. `Node` is its short name.

    Attributes:
        id: Its name in the workflow.
        description: What it does, in a few words.
        starts_round: Whether entering it begins a round. Limits, guards and checkpoints count
            rounds.
        run: Its work. Takes the state, or the state and a `NodeContext`, and returns what changes.
            Or a workflow. Without one the node only routes.
        requires: Fields that must be set when it is entered.
        provides: Fields that must be set when it has run and did not err.
        routes: Where to go from here: the first that applies. See `turnwarden.engine.route`.
        retry: How often to try when it raises; by default once.
        timeout: Seconds for one attempt; by default no limit. An asynchronous `run` is cancelled
            and awaited. A synchronous one runs in a thread when it has a timeout, since nothing
            else can be left: a thread that outlives its time is abandoned and reported.
    """

    id: str
    description: str = ""
    _: KW_ONLY
    starts_round: bool = False
    run: (
        Run[StateT_contra, RuntimeT]
        | SubWorkflow[StateT_contra, RuntimeT]
        | AgentWorkflowDefinition[Any, Any, RuntimeT]
        | None
    ) = None
    requires: Sequence[str] = ()
    provides: Sequence[str] = ()
    routes: Sequence[Route[StateT_contra]] = ()
    retry: Retry | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        for name in ("requires", "provides", "routes"):
            object.__setattr__(self, name, _as_tuple(getattr(self, name)))


Node = WorkflowNode


def _as_tuple(value: Any) -> Any:
    """A tuple of what is a list or the like; anything else as it is, for the validation to see."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return tuple(cast("Iterable[Any]", value))
    return value


# Functions


class Calling(enum.Enum):
    """How a node's function is called."""

    STATE = enum.auto()
    STATE_AND_CONTEXT = enum.auto()
    KEYWORD_CONTEXT = enum.auto()


_CONTEXT_NAMES: Final = frozenset({"ctx", "context"})
_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


def calling_of(function: Callable[..., Any]) -> Calling:
    """How a function wants to be called.

    A second positional parameter is the context, unless it has a default and another name than
    `ctx` or `context`, as in `lambda state, step=step: ...`.

    Raises:
        TypeError: It takes neither `(state)` nor `(state, ctx)`.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return Calling.STATE  # a callable that tells nothing
    positional = [one for one in parameters if one.kind in _POSITIONAL]
    takes_any = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters)
    needed = [one for one in positional if one.default is inspect.Parameter.empty]
    keywords = [one for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    needed_keywords = {one.name for one in keywords if one.default is inspect.Parameter.empty}
    if not (positional or takes_any) or len(needed) > 2 or not needed_keywords <= _CONTEXT_NAMES:
        raise TypeError(f"it takes {inspect.signature(function)}")
    if len(needed) == 2 or (len(positional) > 1 and positional[1].name in _CONTEXT_NAMES):
        return Calling.STATE_AND_CONTEXT
    if any(one.name in _CONTEXT_NAMES for one in keywords):
        return Calling.KEYWORD_CONTEXT
    return Calling.STATE


def context_keyword(function: Callable[..., Any]) -> str:
    """The name of the keyword that a function takes the context by."""
    parameters = inspect.signature(function).parameters
    return next(name for name in parameters if name in _CONTEXT_NAMES)


def is_async_function(function: object) -> bool:
    """Whether a function, or the `__call__` of an object, is declared with `async def`."""
    while isinstance(function, functools.partial):
        function = function.func
    call = getattr(function, "__call__", None)  # noqa: B004 - the method itself is looked at
    return any(
        inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one)
        for one in (function, call)
    )


def function_name(function: object) -> str:
    """The name of a function or a type, stable from run to run."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__
