"""The agent loop: model, parser, guard and tools, until there is an answer or a reason to stop.

    iteration -> prompt (with the guard's text when it has one) -> model -> reply
        -> no calls: done
        -> calls: guard -> tools (in parallel) -> results -> next iteration

`AgentLoop` is configuration; every run has its own state and its own guard. Whatever ends a run,
what was done is kept: the messages are valid for the API at every moment, every call that was made
has its record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from turnwarden._core import ConfigurationError, ResponseParser
from turnwarden.engine.asking import wants_tools
from turnwarden.engine.checking import (
    check_callable,
    check_limit,
    check_seconds,
    check_type,
    guard_config,
)
from turnwarden.engine.driving import refuse_running_loop, run_sync
from turnwarden.engine.errors import RunInterrupted
from turnwarden.engine.events import EventSink
from turnwarden.engine.handles import RunHandle
from turnwarden.engine.history import ANTHROPIC, OPENAI, MessageStyle
from turnwarden.engine.run_result import RunResult
from turnwarden.engine.running import LoopSettings, Run
from turnwarden.engine.streams import EventStream
from turnwarden.engine.tools import Tool, collect_tools
from turnwarden.guards import WorkflowGuardConfig

if TYPE_CHECKING:
    from turnwarden.state import WorkflowConfig

__all__ = ["AgentLoop", "Model"]

Model: TypeAlias = Callable[..., Any]
"""Takes the messages, and by keyword the `tools` if it has such a parameter. Gives, or awaits,
text, an iterator of chunks of text or of native deltas, or a native message or response."""


class AgentLoop:
    """Asks a model and makes its calls until there is an answer or a reason to stop.

    Args:
        model: See `Model`.
        tools: Functions, or what `@tool` made of them.
        guard: Configuration of the guard that every run makes for itself.
        parser: Reads the replies; by default one that knows the tools.
        max_parallel_tools: How many calls of one reply run at a time.
        tool_timeout: Seconds for one call, None for no limit; a tool may have its own.
        message_style: Whether the history is OpenAI's or Anthropic's.
        on_event: Is given the events of every run.
        workflow_id: Goes into the events.
        revision: Goes into the events.

    Attributes:
        tools: The tools by name.
        tool_definitions: What the model is told of them, in the style of the history.

    Raises:
        ToolDefinitionError: A function that cannot be a tool.
        TypeError: A guard in place of its configuration, or another argument of a wrong type.
        ValueError: A limit out of its range.

    Example:
        >>> def add(a: int, b: int) -> int:
        ...     return a + b
        >>> replies = iter(['{"content": "", "next": [{"mcp": "add", "args": {"a": 1, "b": 2}}]}',
        ...                 "It is 3."])
        >>> result = AgentLoop(lambda messages: next(replies), [add]).run_sync("1 + 2?")
        >>> result.text, result.results[0].result
        ('It is 3.', 3)
    """

    def __init__(
        self,
        model: Model,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        guard: WorkflowGuardConfig | Mapping[str, Any] | None = None,
        parser: ResponseParser | None = None,
        max_parallel_tools: int = 8,
        tool_timeout: float | None = 30.0,
        *,
        message_style: MessageStyle = "openai",
        on_event: EventSink | None = None,
        workflow_id: str | None = None,
        revision: str | None = None,
    ) -> None:
        if not callable(model):
            raise TypeError(f"the model must be callable, not {type(model).__name__}")
        check_limit("max_parallel_tools", max_parallel_tools)
        check_seconds("tool_timeout", tool_timeout)
        check_type("parser", parser, ResponseParser, optional=True)
        check_callable("on_event", on_event)
        if message_style not in ("openai", "anthropic"):
            raise ValueError(f"message_style must be openai or anthropic, not {message_style!r}")
        self.tools = collect_tools(tools)
        self.tool_definitions = [_definition(item, message_style) for item in self.tools.values()]
        self._settings = LoopSettings(
            model=model,
            options={"tools": self.tool_definitions} if wants_tools(model) else {},
            tools=self.tools,
            guard=guard_config(guard) or WorkflowGuardConfig(),
            parser=_parser_for(self.tools.values()) if parser is None else parser,
            max_parallel_tools=max_parallel_tools,
            tool_timeout=tool_timeout,
            style=OPENAI if message_style == "openai" else ANTHROPIC,
            sinks=() if on_event is None else (on_event,),
            workflow_id=workflow_id,
            revision=revision,
        )

    @classmethod
    def from_config(
        cls,
        config: WorkflowConfig,
        model: Model,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        **options: Any,
    ) -> Self:
        """Make a loop with the limits of a `WorkflowConfig`.

        Its `model`, when it names one that is known, picks the syntax that replies are read in.

        Args:
            config: The configuration.
            model: See `Model`.
            tools: See `AgentLoop`.
            options: Other arguments of `AgentLoop`.
        """
        collected = list(collect_tools(tools).values())
        options.setdefault("guard", config.guard_config())
        options.setdefault("tool_timeout", config.tool_timeout)
        if config.model is not None:
            options.setdefault("parser", _parser_for(collected, config.model))
        return cls(model, collected, **options)

    async def run(self, messages: str | Iterable[Any]) -> RunResult:
        """Run to the end.

        Args:
            messages: What to start with: a text, or messages (dicts or an SDK's objects).

        Raises:
            ModelError: The model raised, or gave no reply; its `run` holds what was done.
            asyncio.CancelledError: Passed through; its `run` holds what was done (`run_so_far`
                finds it also behind the TimeoutError of `asyncio.timeout`).
        """
        return await Run.begin(self._settings, messages).run()

    def run_sync(self, messages: str | Iterable[Any]) -> RunResult:
        """Run to the end from synchronous code.

        An event loop runs only if something is asynchronous: the model, a tool, or a thread.

        Raises:
            RunningLoopError: Called inside a running event loop.
            RunInterrupted: Ctrl-C; its `run` holds what was done.
            ModelError: The model raised, or gave no reply; its `run` holds what was done.
        """
        refuse_running_loop("await loop.run(...)")
        return _drive(Run.begin(self._settings, messages))

    def start(self, messages: str | Iterable[Any]) -> RunHandle[RunResult]:
        """Run in a task of its own, inside a running event loop.

        Returns:
            A handle: await it, cancel it, ask it for `result_so_far`.
        """
        run = Run.begin(self._settings, messages)
        return RunHandle(run)

    def stream(self, messages: str | Iterable[Any]) -> EventStream[RunResult]:
        """Run, and give the events as they come.

        Returns:
            An asynchronous iterator. Leaving it early ends the run (in `async with`, or by
            `aclose()`, before the next statement; else when it is collected).

        Example:
            >>> import asyncio
            >>> async def main():
            ...     async for event in AgentLoop(lambda messages: "Hello.").stream("Hi"):
            ...         print(event.type)
            >>> asyncio.run(main())
            run_started
            iteration_started
            reply_received
            run_finished
        """
        return EventStream(Run.begin(self._settings, messages))

    async def resume(self, run: RunResult | RunHandle[RunResult], input: Any = None) -> RunResult:
        """Go on with a run that ended early.

        Args:
            run: A paused run; or one that was cancelled or failed, to try again.
            input: The answer to its questions: a text, content blocks, or a whole message. Needed
                for a paused run.

        Returns:
            The result of the whole run, from its first message on. The run given stays as it is.

        Raises:
            ResumeError: The run is not over, was answered or stopped, or needs an input.
            TypeError: What is given is no run of an agent loop.
        """
        return await Run.go_on(self._settings, run, input).run()

    def resume_sync(self, run: RunResult | RunHandle[RunResult], input: Any = None) -> RunResult:
        """The same from synchronous code; see `run_sync`."""
        refuse_running_loop("await loop.resume(...)")
        return _drive(Run.go_on(self._settings, run, input))

    def resume_stream(
        self, run: RunResult | RunHandle[RunResult], input: Any = None
    ) -> EventStream[RunResult]:
        """The same, giving the events as they come; see `stream`."""
        return EventStream(Run.go_on(self._settings, run, input))


def _drive(run: Run) -> RunResult:
    try:
        return run_sync(run.run())
    except KeyboardInterrupt as error:
        run.abort()  # Ctrl-C may come before its first step, or between its last two
        raise RunInterrupted(run.so_far()) from error


def _definition(item: Tool, style: MessageStyle) -> dict[str, Any]:
    return item.to_openai() if style == "openai" else item.to_anthropic()


def _parser_for(tools: Iterable[Tool], model_name: str | None = None) -> ResponseParser:
    """A parser that knows the tools, and the syntax of the model if that is known."""
    definitions = [item.to_openai() for item in tools] or None
    if model_name is not None:
        with contextlib.suppress(ConfigurationError):  # such as a model behind a native API
            return ResponseParser.for_model(model_name, tools=definitions)
    return ResponseParser(tools=definitions)
