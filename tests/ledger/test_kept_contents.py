"""What a source has in a table of the ledger is read once, and seen at once when a commit changes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import FileScanTask
from pyiceberg.types import TimestamptzType

from tidemark.lake import names
from tidemark.lake.filters import among, equals
from tidemark.lake.lake import Lake
from tidemark.ledger import storage
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.read_once import ReadOnce
from tidemark.ledger.reconciliation_rows import ReconciliationRow, Result
from tidemark.ledger.rows import RebuildRow


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each reading of a table took."""
    found: list[int] = []
    read = ArrowScan.to_table

    def watched(scan: ArrowScan, tasks: Iterable[FileScanTask]) -> pa.Table:
        taken = list(tasks)
        found.append(len(taken))
        return read(scan, taken)

    monkeypatch.setattr(ArrowScan, "to_table", watched)
    return found


def forget(*_: Any) -> None:
    """Let nothing that was read be known, as in a process that begins."""
    storage._contents.clear()


def requests(ledger: Ledger) -> list[str]:
    """The tables that are to be built again."""
    return sorted(ledger.rebuild_requests())


def test_a_version_is_read_once(lake: Lake, reads: list[int]) -> None:
    """Whatever is asked of it. What a reader does to an answer changes no other."""
    ledger = Ledger(lake, "asks_often")
    ledger.request_rebuild(["shop.t"])
    forget()
    reads.clear()
    first = ledger.read("rebuilds")
    first[0]["object"] = "changed by the reader"
    assert requests(ledger) == ["shop.t"]
    assert ledger.read("rebuilds", equals("object", "shop.u")) == ledger.read("rebuilds", among("object", [])) == []
    assert ledger.read("rebuilds", equals("object", "shop.t"), columns=("object",)) == [{"object": "shop.t"}]
    assert reads == [1]
    assert Ledger(lake, "asks_little").read("rebuilds") == []


def test_what_was_written_is_not_read(lake: Lake, reads: list[int]) -> None:
    """A commit of one source changes what is known of it, and of no other."""
    one, other = Ledger(lake, "one"), Ledger(lake, "other")
    one.request_rebuild(["shop.t"])
    other.request_rebuild(["shop.v"])
    one.replace(RebuildRow, [RebuildRow(object="shop.u", asked="now")])
    reads.clear()
    assert requests(one) == ["shop.t", "shop.u"]
    assert reads == []
    one.forget(RebuildRow, equals("object", "shop.t"))
    one.replace(RebuildRow, [RebuildRow(object="shop.u", asked="later")], equals("object", "shop.u"))
    assert one.rebuild_requests() == {"shop.u": "later"}
    assert requests(other) == ["shop.v"]
    forget()
    assert one.rebuild_requests() == {"shop.u": "later"}


def test_commits_of_another_process_are_seen(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a question, and between the reading and the commit of this process."""
    ledger = Ledger(lake, "written_twice")
    ledger.request_rebuild(["shop.t"])
    commit = storage.commit_files

    def elsewhere(name: str) -> None:
        """Write a request as another process does, which knows nothing of this one, and this one nothing of it."""
        known = dict(storage._contents)
        forget()
        ledger.replace(RebuildRow, [RebuildRow(object=name, asked="now")])
        forget()
        storage._contents.update(known)

    elsewhere("shop.u")
    assert requests(ledger) == ["shop.t", "shop.u"]

    def late(*args: Any, **rest: Any) -> None:
        monkeypatch.setattr(storage, "commit_files", commit)
        elsewhere("shop.v")
        commit(*args, **rest)

    monkeypatch.setattr(storage, "commit_files", late)
    ledger.request_rebuild(["shop.w"])
    assert requests(ledger) == ["shop.t", "shop.u", "shop.v", "shop.w"]


def test_few_contents_are_kept(lake: Lake, reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest of them, and small ones. Of large tables, the files that may have an answer are read."""
    names = ["first", "second"]
    for name in names:
        Ledger(lake, name).request_rebuild(["shop.t"])
    monkeypatch.setattr(storage, "_KEPT_CONTENTS", 1)
    forget()
    reads.clear()
    assert [requests(Ledger(lake, name)) for name in (*names, "second", "first")] == [["shop.t"]] * 4
    assert reads == [1, 1, 1]
    monkeypatch.setattr(storage, "_SMALL_CONTENT", 0)
    for _ in range(2):
        assert requests(Ledger(lake, "second")) == ["shop.t"]
    assert reads == [1, 1, 1, 1, 1]
    monkeypatch.setattr(storage, "_SMALL", 0)
    rows = Ledger(lake, "second").read("rebuilds", equals("object", "shop.u"), columns=("asked",))
    assert (rows, reads[-1]) == ([], 0)


@pytest.mark.parametrize("reader", [Ledger, ReadOnce])
@pytest.mark.parametrize("many", [False, True])
def test_a_table_of_an_earlier_version_is_read_without_its_newest_columns(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, reader: type[Ledger], *, many: bool
) -> None:
    """They come when the table is next written. Until then, rows have what is said where nothing is known."""
    source = f"earlier_{reader.__name__}_{many}".lower()
    row = ReconciliationRow(run=1, object="shop.t", target="shop.t", cut=1, batch=1, result=Result.EQUAL)
    Ledger(lake, source).replace(ReconciliationRow, [row])
    with lake.load(names.ledger(ReconciliationRow.TABLE)).update_schema() as update:
        update.delete_column("shown_through")
    forget()
    monkeypatch.setattr(storage, "_SMALL", 0 if many else storage._SMALL)
    assert reader(lake, source).last_reconciliations()["shop.t"].shown_through is None
    with lake.load(names.ledger(ReconciliationRow.TABLE)).update_schema() as update:
        update.add_column("shown_through", TimestamptzType())
