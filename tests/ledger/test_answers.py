"""What was read of a version of the ledger's tables is not read again."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import DataScan

from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger import storage
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import RebuildRow


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The filters by which tables are read, as they are."""
    found: list[str] = []
    read = DataScan.to_arrow

    def watched(scan: DataScan, *rest: Any) -> pa.Table:
        found.append(repr(scan.row_filter))
        return read(scan, *rest)

    monkeypatch.setattr(DataScan, "to_arrow", watched)
    return found


def test_a_version_is_read_once(lake: Lake, scans: list[str]) -> None:
    """An answer is given again until a commit makes a new version; other questions are read."""
    ledger = Ledger(lake, "asks_often")
    ledger.request_rebuild(["shop.t"])
    first = ledger.read("rebuilds")
    assert (first, len(scans)) == (ledger.read("rebuilds"), 1)
    first[0]["object"] = "changed by the reader"
    assert [row["object"] for row in ledger.read("rebuilds")] == ["shop.t"]
    assert ledger.read("rebuilds", equals("object", "shop.u")) == Ledger(lake, "asks_little").read("rebuilds") == []
    assert ledger.read("rebuilds", columns=("object",)) == [{"object": "shop.t"}]
    assert len(scans) == 4
    ledger.replace(RebuildRow, [RebuildRow(object="shop.u", asked="now")])
    assert sorted(ledger.rebuild_requests()) == ["shop.t", "shop.u"]
    assert len(scans) == 5


def test_only_small_answers_are_kept(lake: Lake, scans: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest of them."""
    ledger = Ledger(lake, "asks_much")
    ledger.request_rebuild(["shop.t"])
    monkeypatch.setattr(storage, "_KEPT_ANSWERS", 1)
    conditions = [equals("object", name) for name in ("shop.t", "shop.u", "shop.u", "shop.t")]
    for condition in conditions:
        ledger.read("rebuilds", condition)
    assert len(scans) == 3
    monkeypatch.setattr(storage, "_SMALL_ANSWER", -1)
    for _ in range(2):
        ledger.read("rebuilds", equals("asked", "never"))
    assert len(scans) == 5
