"""The table of repairs in the documentation: every kind, and what it says happens."""

import ast
import re
from pathlib import Path

import pytest
import turnwarden
from turnwarden import RepairKind

DOCUMENTATION = Path(__file__).parent.parent / "docs" / "parsing.md"
ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| `(b?[\'\"].*[\'\"])` \| `(.*)` \|$", re.MULTILINE)
ROWS: list[tuple[str, str, str]] = ROW.findall(DOCUMENTATION.read_text(encoding="utf-8"))


def test_the_table_lists_every_kind_once() -> None:
    assert [kind for kind, _, _ in ROWS] == [str(kind) for kind in RepairKind]


@pytest.mark.parametrize(("kind", "text", "value"), ROWS, ids=[row[0] for row in ROWS])
def test_the_examples_heal_to_what_the_table_says(kind: str, text: str, value: str) -> None:
    broken = ast.literal_eval(text)
    assert turnwarden.repair_json(broken) == ast.literal_eval(value), kind
