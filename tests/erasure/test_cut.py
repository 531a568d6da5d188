"""The cut of an erasure, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from support import hand_built
from tidemark.erasure import cut as erasing
from tidemark.lake.lake import Lake
from tidemark.ledger.check_rows import CHECK, CheckRow
from tidemark.ledger.contradiction_rows import ContradictionRow
from tidemark.ledger.states import CutState

if TYPE_CHECKING:
    from tidemark.erasure.subject import ErasedRow

PLACE: dict[str, Any] = {"place": 1, "columns": (), "severity": "error", "observed": "", "expected": ""}


def test_nothing_of_a_cut_that_failed_is_said_of_the_erasure(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets the number of that cut, and no check judges it: what was found of the published cut before stays."""
    shop = hand_built.Source(lake, "numbered")
    shop.publish(1)
    shop.build(2, CutState.FAILED)
    checks = [
        CheckRow(cut=number, stage=CHECK, target="numbered.one", name="unique", success=number == 1, **PLACE)
        for number in (1, 2)
    ]
    shop.ledger.replace(CheckRow, checks)
    contradictions = [ContradictionRow(cut=number, object="one", kind="before_images", events=3) for number in (1, 2)]
    shop.ledger.replace(ContradictionRow, contradictions)
    monkeypatch.setattr(erasing, "targets_of", lambda *_: SimpleNamespace(published={}))
    number, _ = erasing.publish(lake, shop.ledger, cast("ErasedRow", SimpleNamespace(source="numbered")), 0)
    assert number == 2
    assert {(row.cut, row.state) for row in shop.ledger.cuts()} == {
        (1, CutState.PUBLISHED),
        (2, CutState.PUBLISHED),
    }
    assert [row.cut for row in shop.ledger.checks()] == [1]
    assert [row.cut for row in shop.ledger.contradictions()] == [1]
