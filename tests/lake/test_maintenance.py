"""Maintenance changes no row that anybody sees: fewer files, snapshots and tombstones, the same tables and cuts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlparse

import pytest
from pyspark.sql import SparkSession

from support.histories import Table, deliver, message
from support.ledgers import age
from support.reference import Change, fold
from support.running import run_all
from tidemark.errors import ConfigurationError, UnknownNameError
from tidemark.lake import maintenance
from tidemark.lake.branches import head, marker
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.schemas import NAMES
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import StageReport

pytestmark = pytest.mark.spark

RUNS = 9
TABLE = Table("items")


class Shop(NamedTuple):
    """A source with a table of many small cuts."""

    source: Source
    landing: Path
    changes: list[Change]

    @property
    def name(self) -> str:
        """Name of the source."""
        return self.source.source

    def run(self, *changes: Change) -> dict[str, StageReport]:
        """Deliver changes and run all stages."""
        self.deliver(*changes)
        return run_all(self.source)

    def deliver(self, *changes: Change) -> None:
        """Deliver changes."""
        deliver(self.landing, f"{len(self.changes)}", map(message, changes))
        self.changes.extend(changes)

    def maintain(self, table: str | None = None, **kept: int) -> StageReport:
        """Maintain with other horizons than the defaults."""
        source = Source.model_validate({**self.source.model_dump(by_alias=True), "maintenance": kept})
        return run_stage("maintain", source, None, None, table=table)

    def restore(self, cut: int) -> StageReport:
        """Put the tables back."""
        return run_stage("restore", self.source, None, None, cut=cut)


def _shop(name: str, landing: Path) -> Shop:
    tables = {"shop.*": {"key": ["id"]}}
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Shop(Source.model_validate(fields), landing, [])


def _small_cut(number: int) -> list[Change]:
    """One row comes, one changes, one goes: a data file, a delete file, a tombstone, a row written in parts."""
    at = 100 * number
    return [
        TABLE.insert(at, number, "new", f"{number}"),
        TABLE.insert(at + 1, 1000 + number, "short-lived", "x"),
        TABLE.update(at + 2, max(number - 1, 1), "changed", ...),
        *([TABLE.delete(at + 3, 1000 + number - 1)] if number > 1 else []),
    ]


class First(NamedTuple):
    """What the first maintenance of a crowded source found, and what it said."""

    size: maintenance.Size
    told: dict[str, Any]
    report: StageReport
    told_after: dict[str, Any]


@pytest.fixture(scope="module")
def first(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> tuple[Shop, First]:
    """Nine cuts of one table, then the first maintenance, with the defaults."""
    shop = _shop("maintained", tmp_path_factory.mktemp("maintained"))
    for number in range(1, RUNS + 1):
        shop.run(*_small_cut(number))
    size, told = maintenance.size_of(lake.load((shop.name, "items"))), _told(lake, shop)
    report = shop.maintain()
    return shop, First(size, told, report, _told(lake, shop))


@pytest.fixture
def shop(first: tuple[Shop, First]) -> Shop:
    """The source of the first maintenance."""
    return first[0]


def _told(lake: Lake, shop: Shop) -> dict[str, Any]:
    """What readers of main and of each cut see, what the stages know to be done, what the ledger says."""
    logs = [("raw", shop.name), ("changelog", shop.name)]
    return {
        "main": _rows(lake, shop),
        "size": maintenance.size_of(lake.load((shop.name, "items"))),
        "cuts": {tag: _rows(lake, shop, tag) for tag in _cut_tags(lake, shop)},
        "markers": {name: marker(lake.load(name), "batch") for name in [*logs, (shop.name, "items")]},
        "ledger": {name: _plain(Ledger(lake, shop.name).read(name)) for name in NAMES},
        "files": {name: maintenance.size_of(table).files for name in NAMES if (table := lake.find(("ledger", name)))},
    }


def _plain(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items(), key=str)) for row in rows)


def _rows(lake: Lake, shop: Shop, ref: str | None = None) -> list[tuple[Any, ...]]:
    table = lake.load((shop.name, "items"))
    snapshot = table.refs()[ref].snapshot_id if ref else None
    rows = table.scan(snapshot_id=snapshot).to_arrow().to_pylist()
    return sorted((row["id"], row["name"], row["note"]) for row in rows)


def _expected(changes: Iterable[Change]) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["name"], row["note"]) for row in fold(changes).get("items", {}).values())


def _cut_tags(lake: Lake, shop: Shop) -> list[str]:
    return sorted(name for name in lake.load((shop.name, "items")).refs() if name.startswith("cut_"))


def test_maintenance_changes_files_and_no_row(first: tuple[Shop, First], lake: Lake) -> None:
    """Main and every cut read as before; delete files are gone, the ledger has few files, nothing is forgotten."""
    shop, (crowded, before, report, after) = first
    assert crowded.files >= maintenance.MANY_FILES
    assert crowded.delete_files >= maintenance.MANY_DELETE_FILES

    assert after["main"] == _expected([change for n in range(1, RUNS + 1) for change in _small_cut(n)])
    assert len(after["cuts"]) == RUNS
    for what in ("main", "cuts", "markers", "ledger"):
        assert after[what] == before[what], what
    assert after["size"][:2] == (1, 0)
    assert max(before["files"].values()) < RUNS

    told = report.details[f"{shop.name}.items"]
    assert told["files"] == f"{crowded.files}->1"
    assert told["delete_files"] == f"{crowded.delete_files}->0"
    assert report.summary["snapshots"] == report.summary["orphans"] == report.summary["tombstones"] == 0  # all young
    assert run_all(shop.source)["compact"].summary["events"] == 0  # what was done is still known


def test_a_table_that_needs_nothing_is_left_alone(shop: Shop, lake: Lake) -> None:
    """A second maintenance makes no snapshot: few files are no reason."""
    shop.maintain()
    names = [(shop.name, "items"), ("state", f"{shop.name}__items"), ("raw", shop.name), ("changelog", shop.name)]
    before = {name: head(lake.load(name)) for name in names}
    shop.maintain()
    assert {name: head(lake.load(name)) for name in names} == before


def test_late_events_meet_the_same_state(shop: Shop, lake: Lake) -> None:
    """After the state is rewritten, deleted rows stay dead, and cells of rows written in parts keep their positions."""
    shop.maintain()
    late = [TABLE.update(350, 1003, "revived?", "no"), TABLE.update(380, 3, "too late", "note that counts")]
    shop.run(*late)
    assert _rows(lake, shop) == _expected(shop.changes)
    kinds = lake.load(("state", f"{shop.name}__items")).scan().to_arrow().column("kind").to_pylist()
    assert {"tombstone", "cells"} <= set(kinds)


def test_old_cuts_go_and_their_snapshots_expire(
    spark: SparkSession, lake: Lake, tmp_path: Path, source: Callable[..., Source]
) -> None:
    """The newest cuts stay readable, files of others are gone from disk, the markers are not."""
    shop = _shop("expiring", tmp_path / "landing")
    for number in range(1, 5):
        shop.run(*_small_cut(number))
    table = lake.load((shop.name, "items"))
    files = {task.file.file_path for task in table.scan(snapshot_id=table.refs()["cut_1"].snapshot_id).plan_files()}
    kept = _rows(lake, shop, "cut_3")
    report = shop.maintain(keep_cuts=2, keep_days=0)
    assert _cut_tags(lake, shop) == ["cut_3", "cut_4"]
    assert _rows(lake, shop, "cut_3") == kept
    assert _rows(lake, shop) == _expected(shop.changes)
    assert int(report.details[f"{shop.name}.items"]["snapshots"]) > 0
    refs = lake.load((shop.name, "items"))
    still = {task.file.file_path for ref in refs.refs().values() for task in _planned(refs, ref.snapshot_id)}
    gone = files - still
    assert all(not Path(urlparse(file).path).exists() for file in gone)
    assert marker(lake.load(("raw", shop.name)), "batch") == marker(lake.load(("changelog", shop.name)), "batch") == "4"
    shop.run(*_small_cut(5))
    assert _rows(lake, shop) == _expected(shop.changes)


def _planned(table: Any, snapshot: int) -> Any:
    return table.scan(snapshot_id=snapshot).plan_files()


def test_a_table_that_a_kept_cut_did_not_change_keeps_its_tag(lake: Lake, shop: Shop) -> None:
    """What a cut shows of a table may be the snapshot of an earlier one."""
    table = lake.ensure((shop.name, "quiet"), lake.load((shop.name, "items")).schema(), {})
    for number in (1, 2, 8):
        table.manage_snapshots().create_tag(snapshot_id=head(table), tag_name=f"cut_{number}").commit()
    assert cuts.drop_tags(table.refresh(), 5) == 1
    assert sorted(table.refresh().refs()) == ["cut_2", "cut_8", "main"]


def test_candidates_are_not_touched(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a cut is under way its tables are skipped, with a message, and it can be published afterwards."""
    monkeypatch.setattr(maintenance, "MANY_FILES", 1)
    monkeypatch.setattr(maintenance, "MANY_DELETE_FILES", 1)
    shop = _shop("under_way", tmp_path / "landing")
    for number in range(1, 3):
        shop.run(*_small_cut(number))
    shop.deliver(*_small_cut(3))
    for stage in ("land", "normalize", "compact"):
        run_stage(stage, shop.source, None, None)
    names = [(shop.name, "items"), ("state", f"{shop.name}__items")]
    before = {name: lake.load(name).refs() for name in names}
    for stage in ("check", "publish"):
        report = shop.maintain(keep_cuts=1, keep_days=0)
        assert "cut 3 is not published" in str(report.summary["skipped"])
        assert {name: lake.load(name).refs() for name in names} == before
        assert f"raw.{shop.name}" in report.details
        run_stage(stage, shop.source, None, None)
    assert _rows(lake, shop) == _expected(shop.changes)
    moved = {name: head(lake.load(name)) for name in names}
    assert "skipped" not in shop.maintain().summary
    assert all(head(lake.load(name)) != before for name, before in moved.items())
    assert _rows(lake, shop) == _expected(shop.changes)


def test_tombstones_past_their_time_go_and_are_counted(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Old deletes are forgotten, in any number; younger ones are not. What then arrives late revives its row."""
    shop = _shop("forgetting", tmp_path / "landing")
    shop.run(TABLE.insert(10, 1, "a", "b"), TABLE.insert(11, 2, "a", "b"), TABLE.delete(20, 1))
    age(lake, shop.name, days=100)
    shop.run(TABLE.delete(30, 2))
    state = ("state", f"{shop.name}__items")
    cut_1 = lake.load(state).refs()["cut_1"].snapshot_id

    assert shop.maintain(tombstone_days=101).summary["tombstones"] == 0
    report = shop.maintain()
    assert report.details[".".join(state)]["tombstones"] == 1
    assert lake.load(state).scan().to_arrow().column("k0").to_pylist() == [2]
    assert lake.load(state).scan(snapshot_id=cut_1).to_arrow().num_rows == 1

    shop.run(TABLE.update(15, 1, "revived", "b"), TABLE.update(16, 2, "dead", "b"))
    assert _rows(lake, shop) == [(1, "revived", "b")]


def test_orphans_go_when_they_are_old_enough(shop: Shop, lake: Lake) -> None:
    """A file of a run going on is young and stays; one that an aborted run left goes after the horizon."""
    shop.maintain()
    folder = Path(urlparse(lake.load((shop.name, "items")).location()).path) / "data"
    old, young = folder / "aborted.parquet", folder / "going_on.parquet"
    for file, days in ((old, 4), (young, 2)):
        file.write_bytes(b"left behind")
        at = time.time() - days * 86400
        os.utime(file, (at, at))
    report = shop.maintain(f"{shop.name}.items")
    assert (old.exists(), young.exists()) == (False, True)
    assert report.summary["orphans"] == 1
    assert _rows(lake, shop) == _expected(shop.changes)


def test_one_table_alone(shop: Shop) -> None:
    """By its published name, with or without namespace, or the source's; a wrong name is told with what there is."""
    names = {f"{shop.name}.items", f"state.{shop.name}__items"}
    assert set(shop.maintain(f"{shop.name}.items").details) == names
    assert set(shop.maintain("items").details) == names
    assert set(shop.maintain("shop.items").details) == names
    with pytest.raises(UnknownNameError, match=f"{shop.name}.items"):
        shop.maintain("shop.itmes")


def test_an_earlier_cut_is_restored_until_the_next_run(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Tables are as the cut published them, one that it did not have is gone; the next run folds the rest again."""
    shop = _shop("restored", tmp_path / "landing")
    other = Table("others")
    for number in range(1, 4):
        shop.run(*_small_cut(number), *([other.insert(1, 1, "a", "b")] if number == 3 else []))
    final, second = _rows(lake, shop), _rows(lake, shop, "cut_2")
    assert second != final

    assert shop.restore(2).summary == {"cut": 2, "tables": 1}
    assert _rows(lake, shop) == second
    assert _cut_tags(lake, shop) == ["cut_1", "cut_2"]
    assert lake.find((shop.name, "others")) is None
    shop.restore(2)  # again is nothing

    reports = run_all(shop.source)
    assert [problem for report in reports.values() for problem in report.problems] == []
    assert _rows(lake, shop) == final == _expected(shop.changes)
    assert lake.load((shop.name, "others")).scan().to_arrow().num_rows == 1

    with pytest.raises(ConfigurationError, match="published cuts: 1 to 3"):
        shop.restore(7)
    shop.maintain(keep_cuts=1, keep_days=0)
    with pytest.raises(ConfigurationError, match="no longer kept"):
        shop.restore(1)
    assert _rows(lake, shop) == final
