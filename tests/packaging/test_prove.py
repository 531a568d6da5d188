"""``make prove`` runs every test that tries more there."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_what_tries_more_is_marked() -> None:
    """``make prove`` chooses tests by their markers: without one, a module would never try what it keeps for it."""
    modules = [(path, path.read_text("utf-8")) for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    tries_more = re.compile(r"from support.rounds import .*\b(how_many|PROVING|ROUNDS)\b")
    more = {path: text for path, text in modules if tries_more.search(text)}
    assert len(more) > 10
    assert [path.name for path, text in more.items() if not re.search(r"mark\.(more|prove)\b", text)] == []
