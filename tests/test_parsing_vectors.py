"""The shared vectors from Python: each as one text, as single characters, and at random splits."""

from __future__ import annotations

from typing import Any

import pytest
import turnwarden
import vectors_runner as vectors

TOOL_CALLS = vectors.rows("tool_calls") + vectors.rows("tool_calls_more")
WORKFLOWS = vectors.rows("workflow_json")
REPAIRS = vectors.rows("json_repair") + vectors.rows("json_repair_more")


@pytest.mark.parametrize("row", TOOL_CALLS, ids=vectors.by_id)
def test_calls_are_found_without_naming_the_format(row: dict[str, Any]) -> None:
    parser = vectors.parser_for(row)
    vectors.check_tool_calls_row(row, parser.parse(row["input"]))


@pytest.mark.parametrize(
    "row",
    [row for row in TOOL_CALLS if row["format"] not in vectors.NOT_A_FORMAT],
    ids=vectors.by_id,
)
def test_calls_are_found_with_the_format_pinned(row: dict[str, Any]) -> None:
    parser = vectors.parser_for(row, [row["format"]])
    vectors.check_tool_calls_row(row, parser.parse(row["input"]))


@pytest.mark.parametrize("row", WORKFLOWS, ids=vectors.by_id)
def test_the_functions_of_the_reference_answer_by_name(row: dict[str, Any]) -> None:
    text, expect = row["input"], row["expect"]
    vectors.check_workflow_row(row, turnwarden.parse(text))
    result = turnwarden.parse_workflow_response(text)
    workflow = turnwarden.parse_workflow_json(text)
    assert result.workflow == workflow
    if "workflow" in expect:
        assert (workflow and workflow.to_dict()) == expect["workflow"]
    if "calls" in expect:
        calls = turnwarden.parse_tool_calls(text)
        assert [[call.name, call.arguments] for call in calls] == expect["calls"]
        assert result.tool_calls == calls
    if "text" in expect:
        assert turnwarden.extract_text_content(text) == result.text_content == expect["text"]
    if "has" in expect:
        assert turnwarden.has_tool_calls(text) is expect["has"]
    if "success" in expect:
        assert result.success is expect["success"]


@pytest.mark.parametrize("row", TOOL_CALLS + WORKFLOWS, ids=vectors.by_id)
def test_every_split_gives_the_same_reply(row: dict[str, Any]) -> None:
    parser = vectors.parser_for(row)
    text = row["input"]
    whole = vectors.streamed(parser, [text])
    assert whole == parser.parse(text)
    assert vectors.streamed(parser, list(text)) == whole
    data = text.encode()
    assert vectors.streamed(parser, [data[at : at + 1] for at in range(len(data))]) == whole
    for chunks in vectors.random_splits(text):
        assert vectors.streamed(parser, chunks) == whole, chunks


@pytest.mark.parametrize("row", REPAIRS, ids=vectors.by_id)
def test_json_is_healed_or_refused(row: dict[str, Any]) -> None:
    accepted = [row["expect"], *row.get("accept", [])]
    if accepted == [None]:
        with pytest.raises(turnwarden.JSONRepairError) as refused:
            turnwarden.repair_json(row["input"])
        assert refused.value.kind
        assert 0 <= refused.value.offset <= len(row["input"].encode())
        return
    value = turnwarden.repair_json(row["input"])
    assert any(vectors.same(value, answer) for answer in accepted), (value, row["why"])
