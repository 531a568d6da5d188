"""A comparison that runs beside an erasure does not bring the erased key back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.canary import files_with
from tidemark.lake.lake import Lake
from tidemark.ledger.erasure_rows import BEGUN, DONE, ErasureRow
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.reconciliation_rows import Class, DifferingKey, ReconciliationRow, Result
from tidemark.reconciliation import kept_keys

AT = datetime(2026, 12, 1, tzinfo=UTC)
FIELDS = {"reading": "[]", "secret": "s", "horizon": "", "before": AT}


def _erasure(state: str, table: str = "shop.people") -> ErasureRow:
    return ErasureRow(object=table, digest="d", state=state, **FIELDS)


def _outcome(source: str) -> ReconciliationRow:
    key = DifferingKey(why=Class.LOST, kind=Class.LOST, key={"mail": f"gone@{source}"})
    fields = {"object": "shop.people", "target": "x.people", "result": Result.DIFFERS, "cut": 1, "batch": 1}
    return ReconciliationRow(run=1, lost=1, keys=msgspec.json.encode([key]).decode(), **fields)


@pytest.mark.parametrize(
    ("before", "meanwhile", "kept"),
    [
        ([], [], 1),
        ([_erasure(DONE)], [_erasure(DONE)], 1),
        ([], [_erasure(DONE, "shop.orders")], 1),
        ([], [_erasure(BEGUN)], 0),
        ([], [_erasure(DONE)], 0),
        ([_erasure(BEGUN)], [_erasure(DONE)], 0),
        ([_erasure(BEGUN)], [_erasure(BEGUN)], 0),
    ],
)
def test_keys_are_kept_only_if_no_row_was_erased_meanwhile(
    lake: Lake, request: pytest.FixtureRequest, before: list[ErasureRow], meanwhile: list[ErasureRow], kept: int
) -> None:
    """An erasure that was not over when the comparison began may have looked for its key already; the counts stay."""
    source = f"kept_{abs(hash(request.node.name))}"
    ledger = Ledger(lake, source)
    if before:
        ledger.replace(ErasureRow, before)
    finished = kept_keys.finished(ledger, "shop.people")
    if before:
        ledger.forget(ErasureRow)
    if meanwhile:
        ledger.replace(ErasureRow, meanwhile)
    written = kept_keys.write(lake, source, _outcome(source), finished, 0)
    assert ledger.reconciliations()[0].differing == written.differing
    assert (len(written.differing), written.lost) == (kept, 1)


def test_comparisons_of_one_table_push_out_none_of_another(lake: Lake) -> None:
    """The newest comparison of a table tells a lost key from one that is behind, however often others are compared."""
    source = "kept_apart"
    for run, table in enumerate(("people", "orders", "orders", "orders"), 1):
        outcome = msgspec.structs.replace(_outcome(source), run=run, object=f"shop.{table}")
        kept_keys.write(lake, source, outcome, [], 2)
    assert [(row.run, row.object) for row in Ledger(lake, source).reconciliations()] == [
        (1, "shop.people"),
        (3, "shop.orders"),
        (4, "shop.orders"),
    ]


def test_keys_that_were_written_before_an_erasure_was_seen_go_with_their_files(
    lake: Lake, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An erasure that begins between the last look and the write finds no key to remove."""
    source, replace = "kept_late", Ledger.replace

    def late(self: Ledger, kind: Any, rows: Any, *conditions: Any) -> None:
        if kind is ReconciliationRow and not self.erasures():
            replace(self, ErasureRow, [_erasure(BEGUN)])
        replace(self, kind, rows, *conditions)

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "replace", late)
        kept_keys.write(lake, source, _outcome(source), [], 0)
    assert [row.differing for row in Ledger(lake, source).reconciliations()] == [[]]
    assert files_with(home, f"gone@{source}") == set()
