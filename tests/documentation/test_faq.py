"""The page of questions quotes errors that the program has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tidemark import PACKAGE

FAQ = Path(__file__).parents[2] / "docs" / "faq.md"

QUOTED = [text.strip("`") for text in re.findall(r"(?m)^### (.+)$", FAQ.read_text("utf-8"))]

HOLE = "\0"


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Every text in the program, with a sign in the place of each value; backquotes left out, as in headings."""
    found = []
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else HOLE for part in node.values)
                found.append("".join(map(str, parts)).replace("`", ""))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value.replace("`", ""))
    return found


@pytest.mark.parametrize("quoted", QUOTED)
def test_each_quoted_error_is_one_of_the_programs(texts: list[str], quoted: str) -> None:
    """Its words stand in one text of the program, in their order."""
    pieces = [re.escape(piece.strip()) for piece in quoted.split("...") if piece.strip()]
    assert max(map(len, pieces)) >= 10
    wanted = re.compile(".*".join(pieces), re.DOTALL)
    assert any(wanted.search(text) for text in texts), quoted


def test_there_are_many() -> None:
    """A page without errors would pass the test above."""
    assert len(QUOTED) >= 20
