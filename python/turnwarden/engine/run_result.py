"""What a run of the agent loop did."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from turnwarden._core import Reply
from turnwarden.engine.calling import AbandonedThread
from turnwarden.engine.history import Message
from turnwarden.engine.results import RunStatus, ToolResult
from turnwarden.guards import WorkflowGuard

__all__ = ["Question", "RunResult"]


@dataclass(frozen=True, slots=True)
class Question:
    """What a tool needs to know before it can do its work.

    Attributes:
        call_id: Which call.
        tool_name: Which tool.
        message: The question.
        data: What the tool gave with it.
    """

    call_id: str
    tool_name: str
    message: str
    data: Any = None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {
            "call_id": self.call_id,
            "tool_name": self.tool_name,
            "message": self.message,
            "data": self.data,
        }


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run did, however it ended.

    Attributes:
        status: completed, paused, stopped, failed or cancelled; running while it does.
        reason: Why: `answered`, `needs_input`, the guard's code such as `loop.exact` or
            `recursion.hard_limit`, what a tool gave as its termination reason (else
            `tool.should_terminate`), `model.error`, or `cancelled`.
        text: What the last reply says to the user, as far as it came.
        iterations: How often the model was asked.
        results: A record of every call, in the order of the replies.
        messages: The history, valid to go on with: every call in it is answered.
        summary: The guard's words on the run.
        guard: The guard of this run.
        reply: The last reply, as far as it came.
        questions: What is asked, of a run that is paused.
        abandoned: Threads of tools that outlived their time and still run.
        shared_data: What tools gave as `context`, merged.
        run_id: Which run.
        next_sequence: Where its events would go on.
    """

    status: RunStatus
    reason: str | None
    text: str
    iterations: int
    results: list[ToolResult]
    messages: list[Message] = field(repr=False)
    summary: str = field(repr=False)
    guard: WorkflowGuard = field(repr=False, compare=False)
    reply: Reply | None = field(default=None, repr=False)
    questions: tuple[Question, ...] = ()
    abandoned: tuple[AbandonedThread, ...] = ()
    shared_data: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    run_id: str = ""
    next_sequence: int = field(default=0, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # A guard is pickled as its bytes, and goes on with the real clock.
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        values["guard"] = (self.guard.to_bytes(), self.guard.config)
        return _restore, (values,)

    def to_dict(self) -> dict[str, Any]:
        """All but the guard, as plain data where the tools' results are."""
        return {
            "run_id": self.run_id,
            "status": self.status.value,
            "reason": self.reason,
            "text": self.text,
            "iterations": self.iterations,
            "results": [record.to_dict() for record in self.results],
            "messages": self.messages,
            "summary": self.summary,
            "questions": [question.to_dict() for question in self.questions],
            "abandoned": [thread.to_dict() for thread in self.abandoned],
            "shared_data": self.shared_data,
        }


def _restore(values: dict[str, Any]) -> RunResult:
    data, config = values.pop("guard")
    return RunResult(guard=WorkflowGuard.from_bytes(data, config), **values)
