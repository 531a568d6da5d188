"""Words that the report has for cuts."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.ledger.rows import CutRow, TableRow
from tidemark.report.figures import verdict_of
from tidemark.report.overview import by_day


def _table(verdict: str | None, *, state: str = "published", erased: int | None = None) -> TableRow:
    moved: dict[str, Any] = {"target": "inn.guests", "snapshot": 9} if erased is not None else {}
    return TableRow(cut=1, object="inn.guests", state=state, batch=1, verdict=verdict, erased=erased, **moved)


@pytest.mark.parametrize(
    ("state", "tables", "word"),
    [
        ("published", [], "passed"),
        ("published", [_table("passed"), _table("warned")], "warned"),
        ("published", [_table("passed", erased=2), _table(None, state="stopped")], "warned"),
        ("published", [_table(None, erased=1), _table(None, erased=0)], "published"),
        ("published", [_table(None, state="stopped", erased=0)], "published"),
        ("held", [_table("failed")], "held"),
    ],
)
def test_the_word_of_a_cut_is_its_worst_verdict(state: str, tables: list[TableRow], word: str) -> None:
    """No check judged the cut of an erasure, so nothing of it passed."""
    assert verdict_of(CutRow(cut=1, state=state, batch=1), tables) == word


def test_an_erasure_says_nothing_of_its_day() -> None:
    """Neither of a day that has other cuts, nor of one that has none."""
    events = {"events": {"events": 4}, "newest_commit": None}
    cuts = [
        {"cut": 1, "verdict": "passed", "at": "2026-03-04T05:00:00+00:00", **events},
        {"cut": 2, "verdict": "published", "at": "2026-03-04T06:00:00+00:00", **events},
        {"cut": 3, "verdict": "published", "at": "2026-03-05T06:00:00+00:00", **events},
    ]
    assert by_day(cuts) == {"2026-03-04": {"verdict": "passed", "cut": 1, "cuts": 1, "events": 4}}
