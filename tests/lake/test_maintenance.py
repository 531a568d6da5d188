"""Maintenance changes no row that anybody sees: fewer files, snapshots and tombstones, the same tables and cuts.

One source for most tests, in any order: what each adds to it is a cut of its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlparse

import pytest
from pyspark.sql import SparkSession

from support.histories import Table, deliver, message
from support.ledgers import age
from support.reference import Change, fold
from support.rounds import PROVING, how_many
from support.running import run_all
from tidemark.errors import ConfigurationError, UnknownNameError
from tidemark.lake import maintenance
from tidemark.lake.branches import head, marker
from tidemark.lake.lake import Lake
from tidemark.lake.maintenance import MANY_FILES
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.schemas import NAMES as LEDGER
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import StageReport

pytestmark = [pytest.mark.spark, pytest.mark.more]

RUNS = 3
NAMES: tuple[str, ...] = how_many(usually=("batches", "cuts", "tables"), proving=tuple(LEDGER))
"""Tables of the ledger that the first maintenance looks at: each takes half a second."""
TABLE, OTHERS = Table("items"), Table("others")
LATE = [TABLE.update(250, 1002, "revived?", "no"), TABLE.update(280, 2, "too late", "note that counts")]
"""Events that come after the first maintenance, and lie before the last cut: of a deleted row, and of a newer one."""
FEW = {"MANY_FILES": 3, "MANY_DELETE_FILES": 2}
"""Limits of these tests: a table is crowded after as many cuts. ``MANY_FILES`` is the usual limit."""


class Shop(NamedTuple):
    """A source with a table of many small cuts."""

    source: Source
    landing: Path
    changes: list[Change]
    cuts: list[int]
    """Numbers of the small cuts that were delivered."""

    @property
    def name(self) -> str:
        """Name of the source."""
        return self.source.source

    def run(self, *changes: Change) -> dict[str, StageReport]:
        """Deliver changes and run all stages."""
        self.deliver(*changes)
        return run_all(self.source)

    def small_cut(self) -> list[Change]:
        """Return the changes of the next small cut."""
        self.cuts.append(len(self.cuts) + 1)
        return _small_cut(self.cuts[-1])

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
    return Shop(Source.model_validate(fields), landing, [], [])


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
    """What the first maintenance of a crowded source found, what it said, and what late events met after it."""

    size: maintenance.Size
    before: dict[str, Any]
    report: StageReport
    after: dict[str, Any]
    late: StageReport
    """Of compact, over ``LATE``."""
    late_rows: list[tuple[Any, ...]]
    late_expected: list[tuple[Any, ...]]
    kinds: set[str]
    """Of rows of the state, after that."""


@pytest.fixture(scope="module", autouse=True)
def _few_are_many() -> Iterator[None]:
    """Let a table be crowded after few cuts."""
    with pytest.MonkeyPatch.context() as patched:
        for name, limit in FEW.items():
            patched.setattr(maintenance, name, limit)
        yield


@pytest.fixture(scope="module")
def first(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> tuple[Shop, First]:
    """Cuts of one table until it is crowded, then the first maintenance, with the defaults; then late events.

    After that, no other maintenance looks at more than one table of the ledger.
    """
    shop = _shop("maintained", tmp_path_factory.mktemp("maintained"))
    for _ in range(RUNS):
        shop.run(*shop.small_cut())
    size, before = maintenance.size_of(lake.load((shop.name, "items"))), _known(lake, shop)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tidemark.stages.maintain.NAMES", NAMES)
        report = shop.maintain()
    after = _known(lake, shop)
    late = shop.run(*LATE)["compact"]
    kinds = lake.load(("state", f"{shop.name}__items")).scan().to_arrow().column("kind").to_pylist()
    rows = _rows(lake, shop), _expected(shop.changes)
    return shop, First(size, before, report, after, late, *rows, set(kinds))


@pytest.fixture(autouse=True)
def _without_the_ledger(first: tuple[Shop, First], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.stages.maintain.NAMES", ("cuts",))


@pytest.fixture
def shop(first: tuple[Shop, First]) -> Shop:
    """The source of the first maintenance."""
    return first[0]


def _known(lake: Lake, shop: Shop) -> dict[str, Any]:
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
    return sorted(
        (name for name in lake.load((shop.name, "items")).refs() if name.startswith("cut_")),
        key=lambda name: int(name.removeprefix("cut_")),
    )


def test_maintenance_changes_files_and_no_row(first: tuple[Shop, First], lake: Lake) -> None:
    """Main and every cut read as before; delete files are gone, the ledger has few files, nothing is forgotten."""
    shop, (crowded, before, report, after, late, *_) = first
    assert crowded.files >= maintenance.MANY_FILES
    assert crowded.delete_files >= maintenance.MANY_DELETE_FILES
    assert {f"ledger.{name}" for name in before["files"]} <= report.details.keys()

    assert after["main"] == _expected([change for n in range(1, RUNS + 1) for change in _small_cut(n)])
    assert len(after["cuts"]) == RUNS
    for what in ("main", "cuts", "markers", "ledger"):
        assert after[what] == before[what], what
    assert after["size"][:2] == (1, 0)
    assert max(before["files"].values()) < RUNS

    details = report.details[f"{shop.name}.items"]
    assert details["files"] == f"{crowded.files}->1"
    assert details["delete_files"] == f"{crowded.delete_files}->0"
    assert report.summary["snapshots"] == report.summary["orphans"] == report.summary["tombstones"] == 0  # all young
    assert late.summary["events"] == len(LATE)  # what was done is still known


@pytest.mark.prove
def test_a_table_that_needs_nothing_is_left_alone(shop: Shop, lake: Lake) -> None:
    """A second maintenance makes no snapshot: few files are no reason. ``make test`` has it of one table, below."""
    shop.maintain()
    names = [(shop.name, "items"), ("state", f"{shop.name}__items"), ("raw", shop.name), ("changelog", shop.name)]
    before = {name: head(lake.load(name)) for name in names}
    shop.maintain()
    assert {name: head(lake.load(name)) for name in names} == before


def test_late_events_meet_the_same_state(first: tuple[Shop, First]) -> None:
    """After the state is rewritten, deleted rows stay dead, and cells of rows written in parts keep their positions."""
    assert first[1].late_rows == first[1].late_expected
    assert {"tombstone", "cells"} <= first[1].kinds


def test_old_cuts_go_and_their_snapshots_expire(shop: Shop, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest cuts stay readable, files that only others have are gone from disk, the markers are not.

    While a cut is under way its tables are skipped, with a message, and it can be published afterwards.
    """
    shop.run(*shop.small_cut())
    table = lake.load((shop.name, "items"))
    files = {task.file.file_path for task in table.scan().plan_files()}
    with monkeypatch.context() as patched:
        patched.setattr(maintenance, "MANY_FILES", 1)
        alone = shop.maintain("items")  # later cuts have other files
    assert alone.details.keys() == _names_of(shop)
    shop.run(*shop.small_cut())
    _begin_a_cut(shop, ("land", "normalize", "compact", "check"))
    with monkeypatch.context() as patched:
        patched.setattr(maintenance, "MANY_FILES", 1)
        patched.setattr(maintenance, "MANY_DELETE_FILES", 1)
        _assert_candidates_are_not_touched(shop, lake)
    run_stage("publish", shop.source, None, None)
    *_, before, newest = _cut_tags(lake, shop)
    kept = _rows(lake, shop, before)
    logs = [("raw", shop.name), ("changelog", shop.name)]
    batches = [marker(lake.load(log), "batch") for log in logs]
    report = shop.maintain(keep_cuts=2, keep_days=0)
    assert _cut_tags(lake, shop) == [before, newest]
    assert _rows(lake, shop, before) == kept
    assert _rows(lake, shop) == _expected(shop.changes)
    assert int(report.details[f"{shop.name}.items"]["snapshots"]) > 0
    refs = lake.load((shop.name, "items"))
    still = {task.file.file_path for ref in refs.refs().values() for task in _planned(refs, ref.snapshot_id)}
    gone = files - still
    assert gone
    assert all(not Path(urlparse(file).path).exists() for file in gone)
    assert len(set(batches)) == 1
    assert [marker(lake.load(log), "batch") for log in logs] == batches
    assert run_all(shop.source)["compact"].summary["events"] == 0
    assert _rows(lake, shop) == _expected(shop.changes)


def _names_of(shop: Shop) -> set[str]:
    """Return the table and its state, as maintenance names them."""
    return {f"{shop.name}.items", f"state.{shop.name}__items"}


def _begin_a_cut(shop: Shop, stages: Iterable[str]) -> None:
    shop.deliver(*shop.small_cut())
    for stage in stages:
        run_stage(stage, shop.source, None, None)


def _assert_candidates_are_not_touched(shop: Shop, lake: Lake) -> None:
    cut = max(row.cut for row in Ledger(lake, shop.name).cuts())
    names = [(shop.name, "items"), ("state", f"{shop.name}__items")]
    before = {name: lake.load(name).refs() for name in names}
    report = shop.maintain(keep_cuts=1, keep_days=0)
    assert f"cut {cut} is not published" in str(report.summary["skipped"])
    assert {name: lake.load(name).refs() for name in names} == before
    assert f"raw.{shop.name}" in report.details


def _planned(table: Any, snapshot: int) -> Any:
    return table.scan(snapshot_id=snapshot).plan_files()


def test_a_table_that_a_kept_cut_did_not_change_keeps_its_tag(lake: Lake, shop: Shop) -> None:
    """What a cut shows of a table may be the snapshot of an earlier one."""
    table = lake.ensure((f"{shop.name}_too", "quiet"), lake.load((shop.name, "items")).schema(), {})
    for number in (1, 2, 8):
        table.manage_snapshots().create_tag(snapshot_id=head(table), tag_name=f"cut_{number}").commit()
    assert cuts.drop_tags(table.refresh(), 5) == 1
    assert sorted(table.refresh().refs()) == ["cut_2", "cut_8", "main"]


@pytest.mark.prove
def test_candidates_are_maintained_after_they_are_published(
    shop: Shop, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after the check their tables are skipped; then they are maintained like those of any cut."""
    monkeypatch.setattr(maintenance, "MANY_FILES", 1)
    monkeypatch.setattr(maintenance, "MANY_DELETE_FILES", 1)
    shop.run(*shop.small_cut())  # the files that the maintenance at the end rewrites
    _begin_a_cut(shop, ("land", "normalize", "compact"))
    for stage in ("check", "publish"):
        _assert_candidates_are_not_touched(shop, lake)
        run_stage(stage, shop.source, None, None)
    assert _rows(lake, shop) == _expected(shop.changes)
    moved = {name: head(lake.load(name)) for name in [(shop.name, "items"), ("state", f"{shop.name}__items")]}
    assert "skipped" not in shop.maintain().summary
    assert all(head(lake.load(name)) != before for name, before in moved.items())
    assert _rows(lake, shop) == _expected(shop.changes)


def test_tombstones_past_their_time_go_and_are_counted(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Old deletes are forgotten, in any number; younger ones are not. What then arrives late revives its row.

    Another age than the default is in ``test_tombstone_age.py`` too.
    """
    shop = _shop("forgetting", tmp_path / "landing")
    shop.run(TABLE.insert(10, 1, "a", "b"), TABLE.insert(11, 2, "a", "b"), TABLE.delete(20, 1))
    age(lake, shop.name, days=100)
    shop.run(TABLE.delete(30, 2))
    state = ("state", f"{shop.name}__items")
    cut_1 = lake.load(state).refs()["cut_1"].snapshot_id

    if PROVING:
        assert shop.maintain("items", tombstone_days=101).summary["tombstones"] == 0
    report = shop.maintain("items")
    assert report.details[".".join(state)]["tombstones"] == 1
    assert lake.load(state).scan().to_arrow().column("k0").to_pylist() == [2]
    assert lake.load(state).scan(snapshot_id=cut_1).to_arrow().num_rows == 1

    shop.run(TABLE.update(15, 1, "revived", "b"), TABLE.update(16, 2, "dead", "b"))
    assert _rows(lake, shop) == [(1, "revived", "b")]


def test_orphans_go_when_they_are_old_enough(shop: Shop, lake: Lake) -> None:
    """A file of a run going on is young and stays; one that an aborted run left goes after the horizon.

    The table is named alone, with its namespace or the source's. A second maintenance makes no snapshot of it: few
    files are no reason.
    """
    assert shop.maintain("shop.items").details.keys() == _names_of(shop)
    names = [(shop.name, "items"), ("state", f"{shop.name}__items")]
    before = {name: head(lake.load(name)) for name in names}
    folder = Path(urlparse(lake.load((shop.name, "items")).location()).path) / "data"
    old, young = folder / "aborted.parquet", folder / "going_on.parquet"
    for file, days in ((old, 4), (young, 2)):
        file.write_bytes(b"left behind")
        at = time.time() - days * 86400
        os.utime(file, (at, at))
    report = shop.maintain(f"{shop.name}.items")
    assert report.details.keys() == _names_of(shop)
    assert {name: head(lake.load(name)) for name in names} == before
    assert (old.exists(), young.exists()) == (False, True)
    assert report.summary["orphans"] == 1
    assert _rows(lake, shop) == _expected(shop.changes)


def test_a_table_that_is_not_there_is_an_error(shop: Shop) -> None:
    """It lists the names there are."""
    with pytest.raises(UnknownNameError, match=f"{shop.name}.items"):
        shop.maintain("shop.itmes")


@pytest.mark.prove
def test_an_earlier_cut_is_restored_until_the_next_run(shop: Shop, lake: Lake) -> None:
    """Tables are as the cut published them, one that it did not have is gone; the next run folds the rest again."""
    shop.run(*shop.small_cut())
    tags = _cut_tags(lake, shop)
    cut = int(tags[-1].removeprefix("cut_"))
    earlier = _rows(lake, shop)
    shop.run(*shop.small_cut(), OTHERS.insert(1, 1, "a", "b"))
    final = _rows(lake, shop)
    assert earlier != final

    assert shop.restore(cut).summary == {"cut": cut, "tables": 1}
    assert _rows(lake, shop) == earlier
    assert _cut_tags(lake, shop) == tags
    assert lake.find((shop.name, "others")) is None
    shop.restore(cut)  # again is nothing

    reports = run_all(shop.source)
    assert [problem for report in reports.values() for problem in report.problems] == []
    assert _rows(lake, shop) == final == _expected(shop.changes)
    assert lake.load((shop.name, "others")).scan().to_arrow().num_rows == 1

    with pytest.raises(ConfigurationError, match=f"published cuts: 1 to {cut + 2}"):
        shop.restore(cut + 7)
    shop.maintain("items", keep_cuts=1, keep_days=0)
    with pytest.raises(ConfigurationError, match="no longer kept"):
        shop.restore(cut)
    assert _rows(lake, shop) == final


def test_a_table_is_crowded_by_many_small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """From eight files on, unless they are large."""
    monkeypatch.setattr(maintenance, "MANY_FILES", MANY_FILES)
    cases = ((8, 100, True), (7, 100, False), (8, 8 * maintenance.SMALL_FILE, False))
    for files, size, crowded in cases:
        assert maintenance.is_crowded(maintenance.Size(files, 0, size)) is crowded, (files, size)
