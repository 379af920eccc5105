"""Plays a recorded run to a guard, and tells what the guard would have done.

The guard gets each turn's calls before their results, as it would have in front of the agent, and
the results only of calls that it let through. The recording goes on after a stop; what then comes
is what the stop would have saved. A second guard only observes: it sees every result, and by it
the calls that went round in circles are counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from turnwarden import (
    ConfigurationError,
    GuardAction,
    GuardCheckResult,
    RecursionGuard,
    RecursionGuardConfig,
    Reply,
    ResponseParser,
    TextLoopDetector,
    ToolCall,
    WorkflowGuard,
    WorkflowGuardConfig,
    WrongTypeError,
    parse_message,
)
from turnwarden.traces.model import RecordedCall, Run, TokenUsage, Turn

__all__ = [
    "FirstWarning",
    "LoopEpisode",
    "Replay",
    "ReplayedCall",
    "ReplayedTurn",
    "RunReport",
    "Savings",
    "replay",
]

# The name under which a reply that was refused before anything ran is put to the guard.
REFUSED: Final = "_invalid"
_NO_LIMIT: Final = RecursionGuardConfig(
    warning_threshold=4_000_000_000, soft_limit=4_000_000_000, hard_limit=4_000_000_000
)
_LIMIT_REASON: Final = "recursion.hard_limit"
_SEVERITY: Final = {
    GuardAction.CONTINUE: 0,
    GuardAction.WARN: 1,
    GuardAction.BLOCK: 2,
    GuardAction.STOP: 3,
}
_TEXT: Final = "text"
_TOOL_RESPONSE: Final = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)
# As the guard tells an error that nobody marked.
_SAYS_ERROR: Final = re.compile(r"\s*(error|traceback)\b", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """A call of the run, and whether the guard would have let it run.

    Attributes:
        name: The tool's name.
        arguments: The arguments as compact JSON.
        signature: The call's signature: equal for equal calls.
        repaired: Whether its JSON had to be healed.
        allowed: Whether it would have run.
        result: What the tool answered in the recording; None when that holds no answer.
        is_error: Whether the answer is an error: marked as one, or by how its text begins.
    """

    name: str
    arguments: str
    signature: str
    repaired: bool
    allowed: bool
    result: str | None
    is_error: bool


@dataclass(frozen=True, slots=True)
class ReplayedTurn:
    """One turn of the run, and what the guard said to it.

    Attributes:
        number: Counts from 1.
        iteration_limit: The iteration that the guard refuses.
        text: What the user would have seen of the reply.
        syntax: How the calls were written; None when there are none.
        calls: The complete calls.
        incomplete: Names of calls that were cut off.
        repairs: What was healed in the reply, one name a repair.
        faults: What looked like a call and was refused, one sentence each.
        refusal: What the program said when it refused the reply.
        prompt: What the guard would have put into the prompt before this reply.
        action: What the guard would have done.
        reason: The code of why, such as `loop.exact`; None when there was nothing to say.
        loop: What was seen, when a loop was found.
        message: The guard's warning.
        repetition: Where the reply itself goes round in circles, as a sentence; None when it does
            not.
        ended_by: Why the guard would not have let the run come this far, such as `loop.exact` or
            `recursion.hard_limit`; None when it would have.
        tokens: What the turn cost, if the file says so.
        characters: Text, arguments and results, in characters.
        timestamp: When the reply came, in seconds, if the file says so.
    """

    number: int
    iteration_limit: int
    text: str
    syntax: str | None
    calls: tuple[ReplayedCall, ...]
    incomplete: tuple[str, ...]
    repairs: tuple[str, ...]
    faults: tuple[str, ...]
    refusal: str | None
    prompt: str | None
    action: GuardAction
    reason: str | None
    loop: str | None
    message: str | None
    repetition: str | None
    ended_by: str | None
    tokens: TokenUsage | None
    characters: int
    timestamp: float | None

    @property
    def runs(self) -> bool:
        """Whether the guard would have let the run come this far."""
        return self.ended_by is None


@dataclass(frozen=True, slots=True)
class FirstWarning:
    """The first time that the guard speaks of a loop.

    Attributes:
        turn: The turn, counted from 1.
        reason: The code, such as `loop.exact`.
        message: What the guard says.
    """

    turn: int
    reason: str
    message: str


@dataclass(slots=True)
class LoopEpisode:
    """Turns in a row that the guard calls a loop, or whose replies repeat themselves.

    Attributes:
        type: The type of loop, such as `exact`; `text` for replies that repeat themselves.
        first_turn: The turn of its first verdict, counted from 1.
        last_turn: The turn of its last one.
        calls: How many calls these turns made; of replies that repeat themselves none are counted.
        tools: The tools involved.
        description: What was seen first.
    """

    type: str
    first_turn: int
    last_turn: int
    calls: int
    tools: tuple[str, ...]
    description: str


@dataclass(slots=True)
class Savings:
    """What the guard would have spared the run.

    Attributes:
        calls: Calls that would not have run.
        turns: Replies that would not have been asked for.
        tokens: What these replies cost; None when the file does not say.
        characters: Their text, arguments and results, and the results of calls that did not run.
    """

    calls: int = 0
    turns: int = 0
    tokens: int | None = None
    characters: int = 0


def _no_episodes() -> list[LoopEpisode]:
    return []


@dataclass(slots=True)
class RunReport:
    """What a replay found in a run.

    Attributes:
        run: The run's id, or the file's name and the run's index.
        path: The file.
        index: The run's place in the file, from 0.
        format: The format of the file.
        outcome: What the file says about how the run ended.
        turns: How many replies.
        calls: How many calls the model made, `refused` ones among them.
        refused: Replies that the program or the parser refused before anything ran.
        incomplete: Calls that were cut off.
        repaired: Replies that were healed.
        repairs: How often each kind of repair was made.
        errors: Results that are errors.
        syntaxes: How many turns wrote their calls in each syntax.
        tools: How many calls each tool got.
        loops: The loops, in order.
        first_warning: The first verdict on a loop; None when there was none.
        blocked_at: The turn of the first call that would have been blocked.
        stopped_at: The turn at which a loop, or a budget used up, would have ended the run.
        limit_at: The turn that the iteration limit would have refused.
        iteration_limit: That limit.
        wasted_calls: Calls of turns that went round in circles, from the first verdict on.
        saved: What the guard would have spared by its verdicts; its iteration limit is not counted.
        tokens: What the run cost; None when the file does not say.
        characters: The same in characters of texts, arguments and results.
        seconds: How long the run took; None when the file does not say.
    """

    run: str
    path: str
    index: int
    format: str
    outcome: dict[str, Any]
    turns: int = 0
    calls: int = 0
    refused: int = 0
    incomplete: int = 0
    repaired: int = 0
    repairs: Counter[str] = field(default_factory=Counter[str])
    errors: int = 0
    syntaxes: Counter[str] = field(default_factory=Counter[str])
    tools: Counter[str] = field(default_factory=Counter[str])
    loops: list[LoopEpisode] = field(default_factory=_no_episodes)
    first_warning: FirstWarning | None = None
    blocked_at: int | None = None
    stopped_at: int | None = None
    limit_at: int | None = None
    iteration_limit: int = 0
    wasted_calls: int = 0
    saved: Savings = field(default_factory=Savings)
    tokens: TokenUsage | None = None
    characters: int = 0
    seconds: float | None = None

    @property
    def has_loop(self) -> bool:
        """Whether the guard found a loop."""
        return bool(self.loops)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON data, all keys always there."""
        tokens = self.tokens
        warning = self.first_warning
        return {
            "run": self.run,
            "path": self.path,
            "index": self.index,
            "format": self.format,
            "outcome": _plain(self.outcome),
            "turns": self.turns,
            "calls": self.calls,
            "refused": self.refused,
            "incomplete": self.incomplete,
            "repaired": self.repaired,
            "repairs": dict(self.repairs),
            "errors": self.errors,
            "syntaxes": dict(self.syntaxes),
            "tools": dict(self.tools),
            "loops": [
                {
                    "type": loop.type,
                    "first_turn": loop.first_turn,
                    "last_turn": loop.last_turn,
                    "calls": loop.calls,
                    "tools": list(loop.tools),
                    "description": loop.description,
                }
                for loop in self.loops
            ],
            "first_warning": warning
            and {"turn": warning.turn, "reason": warning.reason, "message": warning.message},
            "blocked_at": self.blocked_at,
            "stopped_at": self.stopped_at,
            "limit_at": self.limit_at,
            "iteration_limit": self.iteration_limit,
            "wasted_calls": self.wasted_calls,
            "saved": {
                "calls": self.saved.calls,
                "turns": self.saved.turns,
                "tokens": self.saved.tokens,
                "characters": self.saved.characters,
            },
            "tokens": tokens and {"input": tokens.input, "output": tokens.output},
            "characters": self.characters,
            "seconds": self.seconds,
        }


def _plain(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome as JSON that any program reads: Python also takes, and writes, NaN."""
    try:
        text = json.dumps(outcome)
    except RecursionError:
        return {}
    plain: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
    return plain


def replay(run: Run, *, config: WorkflowGuardConfig | None = None, prompts: bool = True) -> Replay:
    """Plays a run to a guard.

    Args:
        run: A run from `read_runs`.
        config: How the guard is set up; the defaults of `WorkflowGuard` when None.
        prompts: Whether to write out what the guard would have put into each prompt.

    Returns:
        An iterator over the turns, whose `report` is complete when it has come to its end.

    Example:
        >>> from turnwarden.traces import read_runs, replay
        >>> run = next(read_runs("examples/runs/looping.jsonl"))
        >>> played = replay(run)
        >>> [turn.number for turn in played if turn.action == "stop"]
        [7]
        >>> played.report.first_warning.reason
        'loop.exact'
    """
    return Replay(run, config=config or WorkflowGuardConfig(), prompts=prompts)


class Replay:
    """The turns of a run as a guard saw them, and in the end the report.

    Attributes:
        run: The run that is played.
        report: What was found so far.
    """

    def __init__(self, run: Run, *, config: WorkflowGuardConfig, prompts: bool) -> None:
        self.run = run
        self._parser = _parser_for(run.tools)
        self._clock = _RecordedClock()
        self._limits = RecursionGuard(config.recursion)
        self._real = WorkflowGuard(config, clock=self._clock) if prompts else None
        # Without the iteration limit: loops that come behind it are found too.
        endless = WorkflowGuardConfig(config, recursion=_NO_LIMIT)
        self._loops = WorkflowGuard(endless, clock=self._clock)
        self._observer = WorkflowGuard(endless, observe=True, clock=self._clock)
        self._stop_reason: str | None = None
        self._last_calling: int | None = None  # the last turn that made a call
        self.report = RunReport(
            run=run.name,
            path=run.path,
            index=run.index,
            format=run.source,
            outcome=run.outcome,
            iteration_limit=self._limits.config.hard_limit,
        )
        self._turns = map(self._play, run)

    def __iter__(self) -> Iterator[ReplayedTurn]:
        return self._turns

    def __next__(self) -> ReplayedTurn:
        return next(self._turns)

    def finish(self) -> RunReport:
        """Plays what is left and gives the report."""
        for _ in self:
            pass
        return self.report

    def _play(self, turn: Turn) -> ReplayedTurn:
        self._clock.set(turn.timestamp)
        number = turn.index + 1
        ended_by = self._begin(number)
        prompt = self._prompt()
        reply = _read(turn, self._parser)
        verdict = self._judge(turn, reply) if self._stop_reason is None else _after_stop(reply)
        played = ReplayedTurn(
            number=number,
            iteration_limit=self.report.iteration_limit,
            text=reply.text,
            syntax=reply.syntax,
            calls=tuple(
                ReplayedCall(
                    name=asked.call.name,
                    arguments=asked.call.arguments_json,
                    signature=asked.call.signature,
                    repaired=asked.call.repaired,
                    allowed=allowed,
                    result=None if asked.answer is None else asked.answer.content,
                    is_error=asked.answer is not None and asked.answer.says_error,
                )
                for asked, allowed in zip(reply.calls, verdict.allowed, strict=True)
                if asked.call.name != REFUSED
            ),
            incomplete=reply.incomplete,
            repairs=reply.repairs,
            faults=reply.faults,
            refusal=reply.refusal,
            prompt=prompt,
            action=verdict.action,
            reason=verdict.reason,
            loop=None if verdict.loop is None else verdict.loop.description,
            message=verdict.message,
            repetition=_repetition(turn, reply),
            ended_by=ended_by,
            tokens=turn.tokens,
            characters=reply.characters,
            timestamp=turn.timestamp,
        )
        self._observe(number, reply)
        if played.repetition is not None:
            self._observe_text(number, played.repetition)
        self._count(played, verdict, reply)
        return played

    def _begin(self, number: int) -> str | None:
        """Starts the turn; why a guarded agent would not have come this far."""
        iteration = self._limits.increment()
        if not iteration.should_continue and self.report.limit_at is None:
            self.report.limit_at = number
        self._loops.start_iteration()
        self._observer.start_iteration()
        if self._stop_reason is not None:
            return self._stop_reason
        return None if self.report.limit_at is None else _LIMIT_REASON

    def _prompt(self) -> str | None:
        """What the guard with its limit, as it is set up, would put into the prompt."""
        if self._real is None or self._stop_reason is not None:
            return None
        if not self._real.start_iteration().allow_continue:
            self._real = None  # the limit has ended the run; loops are still looked for
            return None
        return self._real.guidance()

    def _judge(self, turn: Turn, reply: _Reply) -> _Verdict:
        if self._real is not None:
            _put(self._real, reply, turn.tokens)
        verdict = _put(self._loops, reply, turn.tokens)
        if verdict.action is GuardAction.STOP:
            self._stop_reason = verdict.reason or ""
        return verdict

    def _observe(self, number: int, reply: _Reply) -> None:
        """Counts the turn as wasted when the guard that sees everything calls it a loop."""
        loop = _put(self._observer, reply, None).standing_loop
        if loop is None:
            return
        report = self.report
        calls = len(reply.calls)
        report.wasted_calls += calls
        last = next((loop for loop in reversed(report.loops) if loop.type != _TEXT), None)
        if last is not None and last.type == loop.type and last.last_turn == self._last_calling:
            last.last_turn = number
            last.calls += calls
            return
        report.loops.append(
            LoopEpisode(
                type=loop.type,
                first_turn=number,
                last_turn=number,
                calls=calls,
                tools=loop.tools,
                description=loop.description,
            )
        )

    def _observe_text(self, number: int, repetition: str) -> None:
        """Notes a reply that repeats itself; its calls are judged for themselves."""
        report = self.report
        if report.first_warning is None:
            report.first_warning = FirstWarning(number, f"loop.{_TEXT}", repetition)
        last = next((loop for loop in reversed(report.loops) if loop.type == _TEXT), None)
        if last is not None and last.last_turn == number - 1:
            last.last_turn = number
            return
        report.loops.append(LoopEpisode(_TEXT, number, number, 0, (), repetition))

    def _count(self, turn: ReplayedTurn, verdict: _Verdict, reply: _Reply) -> None:
        report = self.report
        report.turns += 1
        report.calls += len(reply.calls)
        report.refused += reply.refusal is not None
        report.incomplete += len(turn.incomplete)
        report.repaired += bool(turn.repairs)
        report.repairs.update(turn.repairs)
        report.errors += sum(call.is_error for call in turn.calls)
        report.tools.update(call.name for call in turn.calls)
        report.characters += turn.characters
        if turn.syntax is not None:
            report.syntaxes[turn.syntax] += 1
        if turn.tokens is not None:
            before = report.tokens or TokenUsage()
            report.tokens = TokenUsage(
                before.input + turn.tokens.input, before.output + turn.tokens.output
            )
            report.saved.tokens = report.saved.tokens or 0
        report.seconds = self._clock.elapsed
        if reply.calls:
            self._last_calling = turn.number
        self._count_verdict(turn, verdict)

    def _count_verdict(self, turn: ReplayedTurn, verdict: _Verdict) -> None:
        report = self.report
        if verdict.loop is not None and report.first_warning is None:
            report.first_warning = FirstWarning(turn.number, turn.reason or "", turn.message or "")
        if turn.action is GuardAction.BLOCK and report.blocked_at is None:
            report.blocked_at = turn.number
        saved = report.saved
        saved.calls += verdict.allowed.count(False)
        if report.stopped_at is not None:  # this turn came after the stop
            saved.turns += 1
            saved.characters += turn.characters
            if turn.tokens is not None:
                saved.tokens = (saved.tokens or 0) + turn.tokens.total
            return
        saved.characters += sum(len(call.result or "") for call in turn.calls if not call.allowed)
        if turn.action is GuardAction.STOP:
            report.stopped_at = turn.number


class _RecordedClock:
    """The clock of the recording, for the guards: in seconds, never going back."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._now = 0.0

    def __call__(self) -> float:
        return self._now

    @property
    def elapsed(self) -> float | None:
        """Seconds from the first time stamp to the last; None when there was none."""
        return None if self._first is None else self._now - self._first

    def set(self, timestamp: float | None) -> None:
        """Moves the clock to a time stamp of the recording."""
        if timestamp is None:
            return
        if self._first is None:
            self._first = self._now = timestamp
        self._now = max(self._now, timestamp)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a call got back."""

    content: str
    is_error: bool

    @property
    def says_error(self) -> bool:
        """Whether it is an error, marked or by its text."""
        return self.is_error or _SAYS_ERROR.match(self.content) is not None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call with its answer; an answer is missing where the recording has none."""

    call: ToolCall
    answer: _Answer | None


@dataclass(frozen=True, slots=True)
class _Reply:
    """A recorded turn after parsing."""

    text: str
    syntax: str | None
    calls: tuple[_Asked, ...]
    incomplete: tuple[str, ...]
    repairs: tuple[str, ...]
    faults: tuple[str, ...]
    refusal: str | None
    characters: int


@dataclass(frozen=True, slots=True)
class _Said:
    """One answer of a guard."""

    action: GuardAction
    reason: str | None
    message: str | None


_NOTHING_SAID: Final = _Said(GuardAction.CONTINUE, None, None)


@dataclass(frozen=True, slots=True)
class _Loop:
    """The loop that a verdict speaks of."""

    type: str
    tools: tuple[str, ...]
    description: str


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What a guard said to a turn: the gravest of its answers.

    Attributes:
        action: What it would have done.
        reason: The code of why; None when there was nothing to say.
        message: The warning.
        loop: The first loop that it spoke of, perhaps before the calls ran.
        standing_loop: The loop that there still is once all results are in: what a call brings
            may be new, and then the turn was none.
        allowed: Which of the calls it would have let run.
    """

    action: GuardAction
    reason: str | None
    message: str | None
    loop: _Loop | None
    standing_loop: _Loop | None
    allowed: tuple[bool, ...]


def _after_stop(reply: _Reply) -> _Verdict:
    """No guard is asked any more: nothing of the reply would have run."""
    return _Verdict(GuardAction.CONTINUE, None, None, None, None, (False,) * len(reply.calls))


def _put(guard: WorkflowGuard, reply: _Reply, tokens: TokenUsage | None) -> _Verdict:
    """Puts a turn to a guard: the calls together, then the results of those that it lets run."""
    said: list[_Said] = []
    if tokens is not None:
        said.append(_said_of_budget(guard.spend(tokens=tokens.total)))
    checks: list[GuardCheckResult] = []
    allowed: list[bool] = []
    if reply.calls:
        verdict = guard.record_turn([asked.call for asked in reply.calls])
        checks.append(verdict)
        allowed = [verdict.allows(asked.call) for asked in reply.calls]
    for asked, may_run in zip(reply.calls, allowed, strict=True):
        if not may_run or asked.answer is None:
            continue
        content = asked.answer.content
        error = content if asked.answer.is_error else None
        checks.append(guard.record_tool_result(content, call_id=asked.call.id, error=error))
    said.extend(
        _Said(check.action, _main_reason(check.reasons), check.warning_message) for check in checks
    )
    gravest = max(said, key=lambda one: _SEVERITY[one.action], default=_NOTHING_SAID)
    loops = [loop for check in checks if (loop := _loop_of(check)) is not None]
    return _Verdict(
        action=gravest.action,
        reason=gravest.reason,
        message=gravest.message,
        loop=loops[0] if loops else None,
        standing_loop=_loop_of(checks[-1]) if checks else None,
        allowed=tuple(allowed),
    )


def _said_of_budget(check: GuardCheckResult) -> _Said:
    """What `spend` said of the budget: its answer also repeats what stands from the turn before."""
    reason = next((reason for reason in check.reasons if reason.startswith("budget.")), None)
    if reason is None:
        return _NOTHING_SAID
    is_stop = check.action is GuardAction.STOP
    action = GuardAction.STOP if is_stop else GuardAction.WARN
    return _Said(action, reason, check.warning_message)


def _main_reason(reasons: tuple[str, ...]) -> str | None:
    """A loop before a limit: it is what can be mended."""
    loops = [reason for reason in reasons if reason.startswith("loop.")]
    return next(iter(loops or reasons), None)


def _loop_of(check: GuardCheckResult) -> _Loop | None:
    found = check.loop_check
    if not found.loop_detected or found.loop_type is None:
        return None
    return _Loop(str(found.loop_type), found.involved_tools or (), found.description or "")


def _parser_for(tools: Sequence[Mapping[str, Any]]) -> ResponseParser:
    """A parser that knows the tools of a run; definitions that it cannot read are passed over.

    Among them are the tools that providers run themselves, which have a type and no name.
    """
    definitions = [dict(tool) for tool in tools]
    try:
        return ResponseParser(tools=definitions or None)
    except (ConfigurationError, WrongTypeError):
        return ResponseParser(tools=[tool for tool in definitions if _is_readable(tool)] or None)


def _is_readable(definition: dict[str, Any]) -> bool:
    try:
        ResponseParser(tools=[definition])
    except (ConfigurationError, WrongTypeError):
        return False
    return True


def _read(turn: Turn, parser: ResponseParser) -> _Reply:
    """Finds the calls of a turn, where they are held as calls and where they stand in the text."""
    found = _Found() if turn.calls is None else _read_calls(turn.calls, parser)
    text = turn.text
    if turn.calls is None:
        reply = parser.parse(turn.text)
        text = reply.text
        found.add(reply)
    refusal = turn.refusal
    if refusal is None and not found.calls and not turn.results:
        refusal = found.refusal
    calls = _pair(found.calls, turn)
    if refusal is not None and not calls:
        calls = (_Asked(ToolCall(REFUSED, {"turn": turn.index}), _Answer(refusal, is_error=True)),)
    return _Reply(
        text=text,
        syntax=turn.syntax or found.syntax,
        calls=calls,
        incomplete=tuple(found.incomplete),
        repairs=tuple(found.repairs),
        faults=tuple(found.faults),
        refusal=refusal,
        characters=_characters(turn) + _answered_by_feedback(turn, calls),
    )


class _Found:
    """What the parser found in a turn."""

    def __init__(self) -> None:
        self.calls: list[tuple[str | None, ToolCall]] = []
        self.incomplete: list[str] = []
        self.repairs: list[str] = []
        self.faults: list[str] = []
        self.syntax: str | None = None

    @property
    def refusal(self) -> str | None:
        """Why nothing of the reply could run, when calls were meant."""
        if self.faults:
            return self.faults[0]
        return f"the call of {self.incomplete[0]} was cut off" if self.incomplete else None

    def add(self, reply: Reply) -> None:
        self.calls.extend((call.id, call) for call in reply.tool_calls)
        self.incomplete.extend(call.name for call in reply.incomplete_calls)
        self.repairs.extend(str(repair.kind) for repair in reply.repairs)
        self.faults.extend(fault.message for fault in reply.faults)
        if reply.tool_calls or reply.incomplete_calls:
            self.syntax = reply.format


def _read_calls(recorded: tuple[RecordedCall, ...], parser: ResponseParser) -> _Found:
    """Reads calls that the file holds as calls, one at a time: a broken one costs only itself."""
    found = _Found()
    for call in recorded:
        function = {"name": call.name, "arguments": call.arguments}
        native = {"id": call.id, "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [native]}
        before = len(found.calls)
        found.add(parse_message(message, parser))
        # The recorded id, which its result may name, where the call's own had to be healed.
        found.calls[before:] = [(call.id, read) for _, read in found.calls[before:]]
    return found


def _pair(calls: list[tuple[str | None, ToolCall]], turn: Turn) -> tuple[_Asked, ...]:
    """Gives each call its answer: by id, else in order."""
    answers: list[_Answer | None] = [None] * len(calls)
    contents = [_Answer(result.content, result.is_error) for result in turn.results]
    ids = [result.call_id for result in turn.results]
    if not contents and turn.calls is None and turn.feedback is not None:
        contents = [_Answer(turn.feedback, is_error=False)]
        ids = [None]
    if len(contents) == 1 < len(calls) and ids[0] is None:
        contents = _split(contents[0], len(calls))
        ids = [None] * len(contents)
    named: dict[str | None, deque[int]] = {}
    for at, (call_id, _) in enumerate(calls):
        named.setdefault(call_id, deque()).append(at)
    in_order = iter(range(len(calls)))
    for content, wanted in zip(contents, ids, strict=True):
        if wanted is not None:
            places = named.get(wanted)
            at = places.popleft() if places else None
        else:
            at = next((place for place in in_order if answers[place] is None), None)
        if at is not None:
            answers[at] = content
    distinct = _with_distinct_ids([call for _, call in calls])
    return tuple(_Asked(call, answer) for call, answer in zip(distinct, answers, strict=True))


def _split(answer: _Answer, count: int) -> list[_Answer]:
    """Takes one message apart that answers several calls; each gets it whole if that fails."""
    parts: list[str] = _TOOL_RESPONSE.findall(answer.content)
    if len(parts) == count:
        return [_Answer(part, answer.is_error) for part in parts]
    return [answer] * count


def _with_distinct_ids(calls: list[ToolCall]) -> list[ToolCall]:
    """The calls with ids that differ, as the guard needs them: some models repeat theirs."""
    if len({call.id for call in calls}) == len(calls):
        return calls
    return [ToolCall(call.name, call.arguments_json) for call in calls]


def _repetition(turn: Turn, reply: _Reply) -> str | None:
    """Where the reply repeats itself; calls that could be read are data and left out."""
    is_read = bool(reply.calls) and reply.refusal is None
    detector = TextLoopDetector()
    if not detector.feed(reply.text if is_read else turn.text):
        return None
    return f"The reply repeats itself from byte {detector.start} on."


def _characters(turn: Turn) -> int:
    calls = sum(len(_arguments_text(call)) for call in turn.calls or ())
    return len(turn.text) + calls + sum(len(result.content) for result in turn.results)


def _answered_by_feedback(turn: Turn, calls: tuple[_Asked, ...]) -> int:
    """The length of what came next, when it is the answer to calls that stand in the text."""
    is_answer = not turn.results and turn.calls is None and turn.refusal is None
    answered = is_answer and any(asked.answer is not None for asked in calls)
    return len(turn.feedback or "") if answered else 0


def _arguments_text(call: RecordedCall) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(dict(call.arguments), ensure_ascii=False, separators=(",", ":"))
