"""Tables built again from their change log: the same rows, whatever came before, and other columns and keys."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.histories import COLUMNS, canal, deliver, generated, message, mixed
from support.rounds import crash_windows, how_many
from support.running import die_at, run_all
from tidemark.errors import UnknownNameError
from tidemark.lake import copies
from tidemark.lake.branches import branch_from_main
from tidemark.lake.lake import Lake
from tidemark.lake.properties import PUBLISHED_PROPERTY, REBUILT_PROPERTY, STATE_PROPERTIES
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage, run_task
from tidemark.sources.model import Source
from tidemark.stages import REBUILD, RETRY, STAGES, StageReport

pytestmark = pytest.mark.spark

INT, TEXT = {"id": "int", "n": "int"}, {"id": "int", "n": "varchar(9)"}


def _rebuild(source: Source, **arguments: Any) -> list[StageReport]:
    first, *others = REBUILD
    return [run_stage(first, source, **arguments), *(run_stage(stage, source) for stage in others)]


def _rows(lake: Lake, source: str, table: str) -> list[str]:
    return sorted(map(repr, lake.load((source, table)).scan().to_arrow().to_pylist()))


def _assert_ledger_closes(lake: Lake, source: str) -> None:
    names = ("applied", "superseded", "duplicate", "held", "quarantined")
    for row in Ledger(lake, source).read("tables"):
        assert row["events"] == sum(row[name] for name in names), row
        assert min(row[name] for name in names) >= 0, row
    for row in Ledger(lake, source).read("batches"):
        assert row["landed"] == row["decoded"] + row["control"] + row["quarantined"], row


def _problems(reports: Iterable[StageReport]) -> list[str]:
    return [problem for report in reports for problem in report.problems]


def _canal(name: str, landing: Path, **tables: Any) -> Source:
    fields = {"source": name, "format": "canal_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate(fields)


_HISTORIES = 8


@pytest.mark.prove
def test_a_rebuilt_table_is_the_incremental_one(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Generated histories, mixed: rebuilt in the middle and at the end, rows and positions are as they were."""
    dice = random.Random(7)  # noqa: S311  a test's own mixing
    histories = {f"t{number}": generated(f"t{number}", 700 + number) for number in range(_HISTORIES)}
    tables = {f"shop.{name}": {"key": changes[0].key, "columns": COLUMNS} for name, changes in histories.items()}
    fields = {"source": "rebuilt", "format": "debezium_json", "landing": str(tmp_path / "*"), "tables": tables}
    source = Source.model_validate(fields)
    runs = [mixed(dice, changes, 3) for changes in histories.values()]
    for run in range(3):
        deliver(tmp_path, f"{run}", map(message, (change for delivery in runs for change in delivery[run])))
        assert _problems(run_all(source).values()) == []
        before = {name: _rows(lake, "rebuilt", name) for name in histories}
        assert any(before.values())
        if run:
            assert _problems(_rebuild(source)) == []
            assert {name: _rows(lake, "rebuilt", name) for name in histories} == before
    assert Ledger(lake, "rebuilt").rebuild_requests() == {}
    _assert_ledger_closes(lake, "rebuilt")
    assert [name for name in lake.tables("rebuild") if "__rebuilt__" in name or name.startswith("rebuilt__")] == []


def test_a_rebuild_takes_key_and_columns_from_the_source_file(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """A changed key stops its table until it is rebuilt, a type that holds more is followed; no reader sees a half."""
    landing = tmp_path / "landing"
    source = _canal("rekeyed", landing)
    deliver(landing, "1", [
        canal("orders", "INSERT", INT, ("1", "5"), ("2", "5")),
        canal("typed", "INSERT", INT, ("1", "5"), ("2", "6")),
        canal("other", "INSERT", INT, ("1", "5")),
    ])  # fmt: skip
    run_all(source)
    deliver(landing, "2", [canal("orders", "INSERT", INT, ("1", "7")), canal("typed", "INSERT", TEXT, ("3", "x"))])
    changed = _canal(
        "rekeyed", landing, **{"shop.orders": {"key": ["id", "n"]}, "shop.typed": {"columns": {"n": "string"}}}
    )
    problems = _problems(run_all(changed).values())
    assert any("tidemark rebuild rekeyed shop.orders" in problem for problem in problems)
    assert not any("shop.typed" in problem for problem in problems)
    old = {name: _rows(lake, "rekeyed", name) for name in ("orders", "typed", "other")}
    seen: list[dict[str, list[str]]] = []
    asked = [{"table": table} for table in ("orders", "rekeyed.typed")]
    for stage, arguments in [*((REBUILD[0], each) for each in asked), *((stage, {}) for stage in REBUILD[1:])]:
        run_stage(stage, changed, **arguments)
        seen.append({name: _rows(lake, "rekeyed", name) for name in old})
    assert all(rows in (old, seen[-1]) for rows in seen)
    assert _values(lake, "orders") == [(1, 5), (1, 7), (2, 5)]
    assert _values(lake, "typed") == [(1, "5"), (2, "6"), (3, "x")]
    assert seen[-1]["other"] == old["other"]
    typed = lake.load(("rekeyed", "typed"))
    first = typed.scan(snapshot_id=typed.refs()["cut_1"].snapshot_id).to_arrow().to_pylist()
    assert sorted(row["n"] for row in first) == [5, 6]  # an earlier cut is read as it was published
    frame = spark.read.option("versionAsOf", "cut_1").table(lake.spark_name(("rekeyed", "typed")))
    assert sorted(row["n"] for row in frame.collect()) == [5, 6]
    deliver(landing, "3", [canal("orders", "DELETE", INT, ("1", "5")), canal("typed", "UPDATE", TEXT, ("2", "y"))])
    assert _problems(run_all(changed).values()) == []
    assert _values(lake, "orders") == [(1, 7), (2, 5)]
    assert _values(lake, "typed") == [(1, "5"), (2, "y"), (3, "x")]
    _assert_ledger_closes(lake, "rekeyed")


def _values(lake: Lake, table: str, source: str = "rekeyed") -> list[tuple[Any, ...]]:
    rows = lake.load((source, table)).scan().to_arrow().drop_columns(["_cdc_position", "_cdc_committed_at"])
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)


@pytest.fixture(scope="module")
def namesakes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Source:
    """A published source with two tables that share their name."""
    landing = tmp_path_factory.mktemp("namesakes")
    source = _canal("namesakes", landing).model_copy(update={"target": "{database}.{table}"})
    databases = ("namesakes_a", "namesakes_b")
    deliver(landing, "1", [canal("orders", "INSERT", INT, ("1", "5"), database=each) for each in databases])
    run_all(source)
    return source


def test_a_rebuild_deletes_no_metadata_that_the_table_names(namesakes: Source, lake: Lake) -> None:
    """An owner may keep one old metadata file only: what is built beside the table leaves the table's own alone.

    Else the table's current one goes while it is published, and no reader can open the table any more.
    """
    with lake.load(("namesakes_a", "orders")).transaction() as transaction:
        transaction.set_properties({"write.metadata.previous-versions-max": "1"})
    published = lake.load(("namesakes_a", "orders"))
    rows = _rows(lake, "namesakes_a", "orders")
    folder = Path(published.location().removeprefix("file://")) / "metadata"
    named = {each.metadata_file for each in published.metadata.metadata_log} | {published.metadata_location}
    named_files = {location.rpartition("/")[2] for location in named}
    assert named_files <= {path.name for path in folder.glob("*.metadata.json")}
    with copies.emptied(lake) as beside:
        copy = beside.ensure(("namesakes_a", "orders"), published.schema(), STATE_PROPERTIES)
        for name in "abc":
            branch_from_main(copy, name)
        assert named_files <= {path.name for path in folder.glob("*.metadata.json")}
    assert _problems(_rebuild(namesakes, table="namesakes_a.orders")) == []
    assert _rows(lake, "namesakes_a", "orders") == rows
    now, before = lake.load(("namesakes_a", "orders")).properties, published.properties
    notes = {PUBLISHED_PROPERTY: "", REBUILT_PROPERTY: ""}
    assert now.keys() - before.keys() == {REBUILT_PROPERTY}
    assert {**now, **notes} == {**before, **notes}


def test_an_unknown_table_is_named_with_those_that_there_are(namesakes: Source, lake: Lake) -> None:
    """A wrong name suggests the right one; a name that two tables share is not guessed at."""
    with pytest.raises(UnknownNameError, match=r"no table 'ordres'.*Allowed: namesakes_a.orders, namesakes_b.orders"):
        run_stage("rebuild", namesakes, table="ordres")
    with pytest.raises(UnknownNameError, match=r"is namesakes_a.orders and namesakes_b.orders"):
        run_stage("rebuild", namesakes, table="orders")
    assert Ledger(lake, "namesakes").rebuild_requests() == {}


CRASHES: Mapping[str, int] = {
    "tidemark.lake.copies._new_schema": 2,
    "tidemark.compaction.accounting.account": 1,
    "tidemark.lake.copies.EmptyLake.adopt": 1,
    "tidemark.lake.copies.to": 2,
    "tidemark.lake.copies.EmptyLake.close": 1,
    "tidemark.stages.compact._report": 1,
    "tidemark.ledger.cuts.fast_forward": 1,
    "tidemark.ledger.cuts.move": 2,
    "tidemark.ledger.ledger.Ledger.answered": 1,
}
"""Function that a rebuild does not live to run, and which call of it."""


@pytest.fixture(scope="module")
def crashing(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    """A source whose table is rebuilt under another key and type each time."""
    landing = tmp_path_factory.mktemp("crashing")
    source = _canal("rebuild_crash", landing)
    deliver(landing, "1", [canal(name, "INSERT", INT, ("1", "5"), ("2", "6")) for name in ("one", "two")])
    run_all(source)
    return landing, source


@pytest.mark.parametrize(
    "point",
    crash_windows(
        CRASHES,
        usually={
            "tidemark.lake.copies.EmptyLake.adopt",
        },
    ),
)
def test_a_killed_rebuild_leaves_the_old_table_or_the_new(
    point: str,
    crashing: tuple[Path, Source],
    lake: Lake,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed at a point, a reader sees all of the one or all of the other; run again, it is done."""
    landing, _ = crashing
    kinds = {"int": ["id"], "string": ["n"], "decimal(10, 2)": ["id", "n"]}
    now = str(lake.load(("rebuild_crash", "one")).schema().find_type("n"))
    kind, key = list(kinds.items())[(list(kinds).index(now) + 1) % 3]
    changed = _canal("rebuild_crash", landing, **{"shop.*": {"key": key, "columns": {"n": kind}}})
    names = ("one", "two")
    before = {name: _rows(lake, "rebuild_crash", name) for name in names}
    with monkeypatch.context() as patched:
        die_at(patched, point, CRASHES[point])
        with pytest.raises(SystemExit):
            _rebuild(changed)
    killed = {name: _rows(lake, "rebuild_crash", name) for name in names}
    assert _problems(run_stage(stage, changed) for stage in ("compact", "check", "publish")) == []
    after = {name: _rows(lake, "rebuild_crash", name) for name in names}
    assert after != before
    assert all(killed[name] in (before[name], after[name]) for name in names)
    assert [str(field.field_type) for field in lake.load(("rebuild_crash", "one")).schema().fields][1] == kind
    assert len(_values(lake, "one", "rebuild_crash")) == 2
    assert Ledger(lake, "rebuild_crash").rebuild_requests() == {}
    _assert_ledger_closes(lake, "rebuild_crash")


@pytest.mark.more
def test_a_rehearsal_tells_what_would_differ_and_changes_nothing(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """A changed option adds, removes and changes rows: first reported, then done; an unchanged one changes none."""
    landing = tmp_path / "landing"
    fields = {"source": "rehearsed", "format": "canal_json", "landing": str(landing / "*")}
    source = Source.model_validate({**fields, "options": {"row_image": "partial"}})
    wide = {"id": "int", "n": "int", "m": "int"}
    deliver(landing, "1", [canal("orders", "INSERT", wide, ("1", "5", "6"), ("2", "7", "8"))])
    deliver(landing, "2", [canal("orders", "UPDATE", INT, ("1", "9"), old={"n": "5"}), b"{"])
    run_all(source)
    assert _values(lake, "orders", "rehearsed") == [(1, 9, 6), (2, 7, 8)]
    changed = Source.model_validate(fields)
    for tried, expected in how_many(usually=((changed, 1),), proving=((source, 0), (changed, 1))):
        before = _everything(lake)
        difference = run_task("normalize", tried, reprocess=True, dry_run=True)
        assert difference.details == {"rehearsed.orders": {"added": 0, "removed": 0, "changed": expected}}
        assert _everything(lake) == before
        assert not list((tmp_path / "landing").parent.glob("**/rehearsal"))
    done = ((source, [(1, 9, 6), (2, 7, 8)]), (changed, [(1, 9, None), (2, 7, 8)]))
    for tried, rows in how_many(usually=done[1:], proving=done):
        before = _rows(lake, "rehearsed", "orders")
        reports = {
            stage: run_stage(stage, tried, **({"reprocess": True} if stage == "normalize" else {})) for stage in STAGES
        }
        assert _problems(reports.values()) == []
        assert _values(lake, "orders", "rehearsed") == rows
        assert (_rows(lake, "rehearsed", "orders") == before) == (tried is source)
    _assert_ledger_closes(lake, "rehearsed")


def _everything(lake: Lake) -> dict[tuple[str, ...], str]:
    """Where the metadata of every table lies: nothing was committed to one that is where it was."""
    tables = [name for (space,) in lake.catalog.list_namespaces() for name in lake.catalog.list_tables(space)]
    return {name: lake.catalog.load_table(name).metadata_location for name in tables}


def test_what_compact_set_aside_is_retried_by_building_its_table_again(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """Values that do not fit, and a null key: after a fix of the source file their rows are published."""
    landing = tmp_path / "landing"
    price = {"id": "int", "p": "decimal(8,2)"}
    deliver(landing, "1", [
        canal("prices", "INSERT", price, ("1", "5.10"), ("2", "5.123")),
        canal("prices", "INSERT", price, ("3", "1.00"), key=("id",)),
    ])  # fmt: skip
    source = _canal("retried_rows", landing)
    run_all(source)
    assert len(_values(lake, "prices", "retried_rows")) == 2
    fixed = _canal("retried_rows", landing, **{"shop.prices": {"columns": {"p": "decimal(10, 3)"}}})
    reports = [run_stage(stage, fixed) for stage in RETRY]
    assert reports[1].summary["rebuilds"] == 1
    assert _problems(reports) == []
    assert [str(row[1]) for row in _values(lake, "prices", "retried_rows")] == ["5.100", "5.123", "1.000"]
    assert lake.load(("quarantine", "retried_rows")).scan().to_arrow().num_rows == 0
    assert run_stage("retry", fixed).summary["rebuilds"] == 0
    _assert_ledger_closes(lake, "retried_rows")
