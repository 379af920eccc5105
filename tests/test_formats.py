"""Formats do not talk across: an example counts where it stands as a reply, and nowhere else."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import turnwarden
import vectors_runner as vectors
from turnwarden import Format, ResponseParser

FORMATS = turnwarden.formats()
LABELS = [format.label for format in FORMATS]
PINNED = {label: ResponseParser([label]) for label in LABELS}
ROWS = vectors.rows("tool_calls") + vectors.rows("tool_calls_more")

each_format = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.label)


def test_every_label_of_the_vectors_is_a_format() -> None:
    assert len(set(LABELS)) == len(LABELS)
    assert {row["format"] for row in ROWS} - vectors.NOT_A_FORMAT <= set(LABELS)


@each_format
def test_a_format_describes_itself(format: Format) -> None:
    data = format.to_dict()
    assert (data["label"], data["example"]) == (format.label, format.example)
    assert data["models"] == list(format.models)
    assert format.label in repr(format)
    assert Format.from_dict(data) == format
    assert Format.from_dict(json.loads(json.dumps(data))) == format
    assert pickle.loads(pickle.dumps(format)) == format
    assert format == turnwarden.formats()[LABELS.index(format.label)]
    assert hash(format) == hash(turnwarden.formats()[LABELS.index(format.label)])


@each_format
def test_an_example_is_read_detected_and_pinned(format: Format) -> None:
    detected = turnwarden.parse(format.example)
    pinned = PINNED[format.label].parse(format.example)
    assert detected.tool_calls
    assert detected.tool_calls == pinned.tool_calls
    assert pinned.format == format.label
    assert detected.text == pinned.text
    assert not detected.faults
    assert not detected.incomplete_calls


@each_format
def test_an_example_is_no_call_where_it_is_only_shown(format: Format) -> None:
    fence = "`" * 3
    for parser in (ResponseParser(), PINNED[format.label]):
        for shown in (
            f"In a script:\n{fence * 2}text\n{format.example}\n{fence * 2}\nThat is all.",
            f"<think>I could write {format.example} here.</think>Done.",
        ):
            reply = parser.parse(shown)
            assert reply.tool_calls == (), shown
            assert reply.incomplete_calls == (), shown
        if fence not in format.example and "\n" not in format.example:
            code = f"Write `` {format.example} `` to call it."
            reply = parser.parse(code)
            assert reply.tool_calls == ()
            assert reply.text == code


@pytest.mark.parametrize("row", ROWS, ids=vectors.by_id)
def test_a_format_that_is_pinned_reads_no_wrong_calls_of_others(row: dict[str, Any]) -> None:
    expect = row["expect"]["calls"]
    accepted = [[], expect, *row.get("accept_calls", [])]
    right = {json.dumps(call, sort_keys=True) for calls in accepted for call in calls}
    for label in LABELS:
        parser = vectors.parser_for(row, [label])
        calls = vectors.calls_of(parser.parse(row["input"]).tool_calls)
        wrong = [c for c in calls if json.dumps(c, sort_keys=True) not in right]
        assert not wrong, (label, wrong)


def test_the_table_of_formats_is_up_to_date() -> None:
    script = Path(__file__).parent.parent / "tools" / "format_table.py"
    checked = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


# Names as people write them, and the label that the model's format has.
MODELS = {
    "NousResearch/Hermes-3-Llama-3.1-8B": "hermes",
    "Qwen/Qwen2.5-7B-Instruct": "hermes",
    "qwen3:14b-q4_K_M": "hermes",
    "unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF": "qwen3_coder",
    "qwen3-coder-30b": "qwen3_coder",
    "Qwen3-Coder-480B-A35B-Instruct-FP8": "qwen3_coder",
    "ByteDance-Seed/Seed-OSS-36B-Instruct": "seed_oss",
    "mistralai/Mistral-Nemo-Instruct-2407": "mistral",
    "mistralai/Devstral-Small-2507": "mistral",
    "meta-llama/Llama-3.1-8B-Instruct": "llama3_json",
    "llama3.3:70b": "llama3_json",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": "pythonic",
    "deepseek-ai/DeepSeek-V3-0324": "deepseek_v3",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": "hermes",
    "deepseek-ai/DeepSeek-V3.1": "deepseek_v31",
    "deepseek-ai/DeepSeek-V3.2": "deepseek_v32",
    "moonshotai/Kimi-K2-Instruct-0905": "kimi_k2",
    "zai-org/GLM-4.5-Air-FP8": "glm45",
    "MiniMaxAI/MiniMax-M2": "minimax_m2",
    "ibm-granite/granite-3.3-8b-instruct": "granite",
    "ibm-granite/granite-4.0-h-small": "granite4",
    "openai/gpt-oss-20b": "harmony",
    "CohereLabs/c4ai-command-r-plus-08-2024": "cohere_command_r",
    "microsoft/Phi-4-mini-instruct": "phi4_mini",
    "ai21labs/AI21-Jamba-Large-1.5": "jamba",
    "stepfun-ai/step3": "step3",
}


@pytest.mark.parametrize("name", MODELS)
def test_a_parser_is_pinned_by_the_name_of_a_model(name: str) -> None:
    for spelled in (name, name.lower(), name.rsplit("/", 1)[-1], f"org/{name.upper()}"):
        assert MODELS[name] in (ResponseParser.for_model(spelled).formats or ())


@pytest.mark.parametrize("name", ["", "my-own-model", "org/", "llamaindex", "9", "猫"])
def test_an_unknown_model_is_an_error_that_says_what_to_do(name: str) -> None:
    with pytest.raises(ValueError, match="formats") as raised:
        ResponseParser.for_model(name)
    assert isinstance(raised.value, turnwarden.UnknownModelError)


def test_for_model_takes_the_options_of_a_parser() -> None:
    parser = ResponseParser.for_model("hermes", reasoning_open=True, max_calls=3)
    assert parser == ResponseParser(["hermes"], reasoning_open=True, max_calls=3)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ('[{"mcp": "ping", "args": {}}]', "workflow_json"),
        ('{"args": {"name": "x"}, "mcp": "ping"}', "workflow_json"),
        ('[{"name": "ping", "arguments": {}}]', "xlam"),
    ],
)
def test_bare_calls_have_the_format_that_their_keys_tell(text: str, label: str) -> None:
    for parser in (ResponseParser(), ResponseParser([label])):
        reply = parser.parse(text)
        assert [call.name for call in reply.tool_calls] == ["ping"]
        assert reply.format == label
        assert reply.text == ""
