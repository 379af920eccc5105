"""Events: what they are, and that nothing that was said gets into a log unasked."""

from __future__ import annotations

import dataclasses
import json
import logging
import pickle
from typing import Any

import pytest
from turnwarden.engine import AgentLoop, LoggingSink, RunStatus
from turnwarden.engine import events as events_module
from turnwarden.engine.events import (
    Event,
    EventEmitter,
    GuardSpoke,
    NodeFinished,
    RunFinished,
    ToolAbandoned,
    ToolFinished,
    ToolStarted,
)

KINDS = [
    kind
    for kind in vars(events_module).values()
    if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
]

REPLIES = [
    '{"content": "PRIVATE", "next": [{"mcp": "find", "args": {"q": "PRIVATE"}},'
    ' {"mcp": "find", "args": {"PRIVATE": 1}}, {"mcp": "fail", "args": {}}]}',
    "PRIVATE",
]


def find(q: str) -> str:
    return f"PRIVATE {q}"


def fail() -> None:
    raise ValueError("PRIVATE")


def run_with(sink: Any, replies: list[str] = REPLIES, **options: Any) -> None:
    given = iter(replies)
    loop = AgentLoop(lambda _: next(given), [find, fail], on_event=sink, **options)
    loop.run_sync("PRIVATE")


def example(kind: type[Event]) -> Event:
    """An event with a value in every field that has no default."""
    values = {"str": "x", "int": 1, "float": 0.5, "str | None": None, "Any": {"k": 1}}
    needed = {
        entry.name: values[str(entry.type)]
        for entry in dataclasses.fields(kind)
        if entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
    }
    return kind(**needed)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_is_a_frozen_light_dataclass_with_the_common_fields(
    kind: type[Event],
) -> None:
    event = example(kind)
    assert not hasattr(event, "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.run_id = "other"  # type: ignore[misc]
    data = event.to_dict()
    assert {"run_id", "sequence", "timestamp", "workflow_id", "revision"} <= data.keys()
    assert data["type"] == kind.type
    assert json.dumps(data)
    assert pickle.loads(pickle.dumps(event)) == event


def test_types_are_unique_and_follow_the_class() -> None:
    types = [kind.type for kind in KINDS]
    assert len(set(types)) == len(types)
    for kind in KINDS:
        assert kind.type.replace("_", "") == kind.__name__.lower()


def test_events_number_themselves_within_a_run() -> None:
    seen: list[Event] = []
    run_with(seen.append, workflow_id="agent", revision="7")
    assert [event.sequence for event in seen] == list(range(len(seen)))
    assert len({event.run_id for event in seen}) == 1
    assert {(event.workflow_id, event.revision) for event in seen} == {("agent", "7")}
    assert sorted(event.timestamp for event in seen) == [event.timestamp for event in seen]


def test_to_dict_makes_plain_data_of_enums_tuples_and_our_own_types() -> None:
    emitted: list[Event] = []
    emitter = EventEmitter("r", [emitted.append])
    emitter.emit(RunFinished, status=RunStatus.LIMIT)
    emitter.emit(NodeFinished, round=1, node_id="n", duration=0.1, keys=("a",), update={"a": 1})
    run, node = [event.to_dict() for event in emitted]
    assert type(run["status"]) is str
    assert node["keys"] == ["a"]


def test_nothing_is_built_when_nobody_listens() -> None:
    emitter = EventEmitter("r")
    emitter.emit(ToolStarted, nonsense=1)
    assert emitter.sequence == 0


# The logging sink


def logged(caplog: pytest.LogCaptureFixture, **options: Any) -> str:
    with caplog.at_level(logging.DEBUG, "turnwarden.engine"):
        run_with(LoggingSink(**options))
    return caplog.text


def test_nothing_that_was_said_is_logged_unless_asked(caplog: pytest.LogCaptureFixture) -> None:
    text = logged(caplog)
    assert "PRIVATE" not in text
    assert "tool_started" in text
    assert "tool_name='find'" in text
    assert "status='failed'" in text
    assert "status='refused'" in text


def test_arguments_are_logged_when_asked(caplog: pytest.LogCaptureFixture) -> None:
    text = logged(caplog, arguments=True)
    assert "{'q': 'PRIVATE'}" in text
    assert "result=" not in text
    assert "error=" not in text


def test_content_is_logged_when_asked(caplog: pytest.LogCaptureFixture) -> None:
    text = logged(caplog, content=True)
    assert "result='PRIVATE PRIVATE'" in text
    assert "error='PRIVATE'" in text


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_fields_that_hold_what_was_said_are_marked(kind: type[Event]) -> None:
    told = {"arguments", "result", "error", "message", "guidance", "reply", "event", "update"}
    told |= {"questions", "value"}
    for entry in dataclasses.fields(kind):
        assert (entry.name in told) == ("holds" in entry.metadata), entry.name


def test_names_of_a_model_cannot_forge_lines(caplog: pytest.LogCaptureFixture) -> None:
    name = "x\\nERROR forged"
    replies = ['{"content": "", "next": [{"mcp": "' + name + '", "args": {}}]}', "ok"]
    with caplog.at_level(logging.DEBUG, "turnwarden.engine"):
        run_with(LoggingSink(), replies)
    assert all("\n" not in record.getMessage() for record in caplog.records)
    assert "forged" in caplog.text


def test_lines_are_short(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        LoggingSink(content=True)(
            ToolFinished(
                run_id="r", sequence=0, timestamp=0.0, call_id="c", tool_name="t",
                status="completed", result="x" * 100_000,
            )
        )  # fmt: skip
    assert len(caplog.records[0].getMessage()) < 1000


@pytest.mark.parametrize(("reason", "shown"), [("loop.exact", True), ("ada@example.org", False)])
def test_reason_is_logged_when_it_is_a_code(
    caplog: pytest.LogCaptureFixture, reason: str, shown: bool
) -> None:
    event = RunFinished(run_id="r", sequence=0, timestamp=0.0, status="stopped", reason=reason)
    with caplog.at_level(logging.DEBUG):
        LoggingSink()(event)
    assert (reason in caplog.text) is shown
    with caplog.at_level(logging.DEBUG):
        LoggingSink(content=True)(event)
    assert reason in caplog.text


def test_level_and_logger_are_chosen() -> None:
    logger = logging.getLogger("test.events")
    records: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    logger.addHandler(Keep())
    logger.setLevel(logging.INFO)
    common: dict[str, Any] = {"run_id": "r", "sequence": 0, "timestamp": 0.0}
    sink = LoggingSink(logger, logging.DEBUG)
    sink(ToolStarted(**common, call_id="c", tool_name="t"))
    sink(ToolAbandoned(**common, call_id="c", tool_name="t", seconds=1.0))
    sink(GuardSpoke(**common, action="warn", message="PRIVATE"))
    assert [record.levelname for record in records] == ["WARNING", "WARNING"]
    LoggingSink(logger, logging.ERROR)(GuardSpoke(**common, action="stop"))
    assert records[-1].levelname == "ERROR"
