"""The page about guards: its drawings hold and its tables are whole."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from turnwarden import LoopDetectionResult, WorkflowGuard
from turnwarden.guards import (
    DEFAULT_PROGRAMS,
    DEFAULT_SHELL_TOOLS,
    DEFAULT_TEMPLATES,
    DEFAULT_VERBS,
    DEFAULT_VOLATILE_KEYS,
    REASON_CODES,
    ToolKind,
    WorkflowGuardConfig,
)

PAGE = (Path(__file__).parent.parent / "docs/guards.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


# That the blocks of the page run is tested with those of all pages.

# Drawings.

TOOLS = {
    "S": "search",
    "R": "read_file",
    "W": "write_file",
    "P": "job_status",
    "X": "_invalid",
}
SENTENCE = "a watercolour of a small {} harbour at dawn with two boats and a lighthouse"


class Drawing:
    """Plays a drawn sequence on a guard that never stops."""

    def __init__(self) -> None:
        self.guard = WorkflowGuard(observe=True)
        self.news = 0
        self.brought: dict[str, str] = {}

    def play(self, turn: str) -> LoopDetectionResult:
        match = re.fullmatch(r"([A-Z])(.*?)([=≠∅!?]?)", turn)
        assert match, turn
        letter, drawn, brings = match.groups()
        tool = TOOLS.get(letter, f"frob_{letter.lower()}")
        self.guard.record_tool_call(tool, self.arguments(letter, drawn))
        if brings in "!?" and brings:
            self.guard.record_tool_result(error=self.error(letter, tool, brings))
        elif brings:
            self.guard.record_tool_result(self.result(tool, brings))
        return self.guard.check().loop_check

    def arguments(self, letter: str, drawn: str) -> dict[str, Any]:
        if letter == "X":
            self.news += 1
            return {"reply": self.news}
        if letter == "W":
            self.news += 1
            return {"path": "notes.txt", "text": f"line {self.news}"}
        if letter == "R":
            start, end = map(int, drawn.split("-"))
            return {"path": "notes.txt", "start_line": start, "end_line": end}
        if drawn.startswith("("):
            return {"query": SENTENCE.format(drawn[1:-1])}
        if drawn.startswith("#"):
            return {"query": SENTENCE.format("grey"), "page": int(drawn[1:])}
        return {"query": drawn.strip('"')} if drawn else {}

    def error(self, letter: str, tool: str, brings: str) -> str:
        if brings == "?":
            return f"{tool}: read timed out"
        if letter == "X":
            return f"complaint {self.news}"
        return f"Unknown tool: {tool}" if letter == "N" else f"{tool}: disk is full"

    def result(self, tool: str, brings: str) -> str:
        if brings == "∅":
            return "No matches found"
        if brings == "≠":
            self.news += 1
            return f"{tool} brought number {self.news}"
        return self.brought.setdefault(tool, f"the text of {tool}")


ROWS = [line.split(None, 1) for block in blocks("drawings") for line in block.splitlines()]


@pytest.mark.parametrize(("name", "drawing"), [row for row in ROWS if row[1].startswith("caught")])
def test_what_is_drawn_as_caught_is_caught_at_its_last_turn(name: str, drawing: str) -> None:
    player, turns = Drawing(), drawing.removeprefix("caught").split()
    *before, last = [player.play(turn) for turn in turns]
    assert not any(before)
    assert name in (last.loop_type, last.detail)


@pytest.mark.parametrize(("name", "drawing"), [row for row in ROWS if row[1].startswith("left")])
def test_what_is_drawn_as_left_alone_draws_no_verdict(name: str, drawing: str) -> None:
    player, turns = Drawing(), drawing.removeprefix("left alone").split()
    assert not any(player.play(turn) for turn in turns), name


def test_every_type_has_a_drawing_of_each_kind() -> None:
    kinds = Counter((name, drawing.split()[0]) for name, drawing in ROWS)
    types = {code.rsplit(".", 1)[-1] for code in REASON_CODES if code.startswith("loop.")}
    assert {name for name, _ in kinds} == types
    assert set(kinds) == {(name, kind) for name in types for kind in ("caught", "left")}


# Tables.


def table_of_kinds(title: str) -> dict[str, ToolKind]:
    _, _, after = PAGE.partition(f"| {title} | kind |\n|---|---|\n")
    table: dict[str, ToolKind] = {}
    for line in after.partition("\n\n")[0].splitlines():
        words, kind = line.strip("| ").split(" | ")
        table |= dict.fromkeys(words.split(), ToolKind(kind.split("`")[1]))
    return table


def test_tables_of_the_page_are_the_tables_of_the_package() -> None:
    assert table_of_kinds("verbs") == DEFAULT_VERBS
    assert table_of_kinds("programs") == DEFAULT_PROGRAMS
    shells = re.search(r"^Shells are (.*), in any case", PAGE, flags=re.MULTILINE)
    assert shells
    assert tuple(re.findall(r"`(\w+)`", shells[1])) == DEFAULT_SHELL_TOOLS
    listed = re.search(r"`DEFAULT_VOLATILE_KEYS`: ([a-z_ ]+)\.", PAGE)
    assert listed
    keys = {key.replace("_", "") for key in listed[1].split()}
    assert keys == set(DEFAULT_VOLATILE_KEYS)


def test_every_reason_code_is_on_the_page() -> None:
    assert [code for code in REASON_CODES if f"`{code}`" not in PAGE] == []


def test_every_template_is_on_the_page_with_its_fields() -> None:
    _, _, after = PAGE.partition("| keys | fields |\n|---|---|\n")
    listed: dict[str, set[str]] = {}
    for line in after.partition("\n\n")[0].splitlines():
        keys, fields = (set(re.findall(r"`(\w+)`", cell)) for cell in line.strip("|").split("|"))
        if "suggest_" in keys:
            keys |= {key.replace("loop_", "suggest_") for key in keys}
        listed |= dict.fromkeys(keys - {"suggest_", "loop_"}, fields)
    assert set(listed) == set(DEFAULT_TEMPLATES["en"])
    for key, fields in listed.items():
        WorkflowGuardConfig(templates={key: "".join(f"{{{field}}}" for field in fields)})
        for texts in DEFAULT_TEMPLATES.values():
            assert set(re.findall(r"{(\w+)}", texts[key])) <= fields


def test_tables_are_read_only() -> None:
    for table in (DEFAULT_VERBS, DEFAULT_PROGRAMS, DEFAULT_TEMPLATES, DEFAULT_TEMPLATES["en"]):
        with pytest.raises(TypeError):
            table["new"] = "read"  # type: ignore[index]
    assert isinstance(DEFAULT_SHELL_TOOLS, tuple)
