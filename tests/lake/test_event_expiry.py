"""Events and quarantined bytes that are past their time go; what would need them is refused, and no row changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log
from support.histories import COLUMNS, Table, deliver, message
from support.ledgers import age
from support.reference import Change
from support.rounds import PROVING
from support.running import run_all
from tidemark.compaction.settled_tables import settled
from tidemark.errors import ConfigurationError
from tidemark.lake.filters import above, equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import KEY_PROPERTY, OBJECT_PROPERTY, SEGMENTS_PROPERTY, SHARDS_PROPERTY
from tidemark.ledger.expired import Expired
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.normalization import decodable
from tidemark.pipeline import run_stage
from tidemark.queries.explain import explain
from tidemark.sources.model import Source
from tidemark.stages import REBUILD, StageReport

NAME = "expiring"
PLAIN, KEPT, BAG, WHOLE, MOVED, WENT = (Table(name) for name in ("plain", "kept", "bag", "whole", "moved", "went"))


def _source(landing: Path) -> Source:
    tables = {
        "shop.kept": {"key": ["id"], "columns": COLUMNS, "history": True},
        "shop.bag": {"key": [], "columns": COLUMNS},
        "shop.*": {"key": ["id"], "columns": COLUMNS},
    }
    fields = {
        "source": NAME,
        "format": "debezium_json",
        "landing": str(landing / "*"),
        "tables": tables,
        "maintenance": {"keep_cuts": 1, "keep_days": 0},
        "retention": {"changelog_days": 90, "quarantine_days": 30},
    }
    return Source.model_validate(fields)


def _keyless(changes: list[Change]) -> list[Change]:
    return [change._replace(key=()) if change.table == "bag" else change for change in changes]


def _run(source: Source, landing: Path, file: str, changes: list[Change], *more: bytes) -> dict[str, StageReport]:
    deliver(landing, file, [*map(message, _keyless(changes)), *more])
    return run_all(source)


def _values(lake: Lake, table: str) -> list[tuple[Any, ...]]:
    rows = lake.load((NAME, table)).scan(selected_fields=("id", "name", "note")).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def _batches(lake: Lake, table: str) -> set[int]:
    scan = lake.load(("changelog", NAME)).scan(row_filter=equals("object", f"shop.{table}"), selected_fields=("batch",))
    return set(scan.to_arrow()["batch"].to_pylist())


def _rebuild(source: Source, table: str) -> dict[str, StageReport]:
    return {stage: run_stage(stage, source, **({"table": table} if stage == "rebuild" else {})) for stage in REBUILD}


def _unknown_keys(source: Source, table: str) -> list[str]:
    """What an erasure of a row says of keys that the row may have had."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIDEMARK_ERASE_SECRET", "a secret of the tests, long enough")
        report = run_stage("erase", source, table=f"{NAME}.{table}", key=["id=2"], dry_run=True)
    return [problem.partition(" (")[0] for problem in report.problems]


def _assert_only_one_is_built_again(lake: Lake, source: Source, table: str) -> None:
    """What would need the events of other tables is refused or left out, and a request for one of them is dropped."""
    retried = run_stage("retry", source)
    assert (retried.summary["rebuilds"], *(each.partition(":")[0] for each in retried.remarks)) == (0, "shop.plain")
    for gone in ("plain", "whole"):
        with pytest.raises(ConfigurationError, match="those of batches up to 1 are past their time"):
            run_stage("rebuild", source, table=gone)
    Ledger(lake, NAME).request_rebuild(["shop.plain"], by_hand=True)  # by an earlier version
    rebuilt = _rebuild(source, table)
    assert rebuilt["compact"].remarks[0].startswith("shop.plain goes on from what is published")
    stopped = {row["object"] for row in Ledger(lake, NAME).read("tables") if row["state"] == "stopped"}
    assert "shop.plain" not in stopped


def _assert_bytes_are_gone(lake: Lake) -> None:
    """Old messages in quarantine have neither bytes nor details that quote them, but a reason and a place."""
    aside = lake.load(("quarantine", NAME)).scan().to_arrow().sort_by([("batch", "ascending")]).to_pylist()
    assert [(row["batch"], row["value"], row["detail"] is None) for row in aside] == [
        (1, None, True),
        (1, None, True),
        (2, b"young", False),
    ]
    assert all(row["reason"] and row["place"] is not None for row in aside)


@pytest.mark.spark
@pytest.mark.more
def test_events_past_their_time(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They go where a table needs them no more; rows stay; a rebuild is refused until a load, or all is decoded again.

    ``make prove`` builds all tables again from what is decoded again, as ``test_reprocess_with_open_transactions.py``.
    It has a table without a key too, of which a test below says what goes.
    """
    monkeypatch.setattr("tidemark.stages.maintain.NAMES", ())  # the ledger's tables, which take most of the time
    source = _source(tmp_path)
    rows = [(1, "a", "x"), (2, "b", "x")]
    old = [*PLAIN.load(10, *rows)]
    old += [table.insert(10 + row[0], *row) for table in (KEPT, MOVED, *((BAG,) if PROVING else ())) for row in rows]
    old += [WHOLE.insert(11, *rows[0]), WHOLE.insert(12, 2, "b", None)]
    _run(source, tmp_path, "1", old, b"no json", b"nor this")
    age(lake, NAME, days=100)
    _run(source, tmp_path, "2", [PLAIN.update(30, 1, "new", ...), KEPT.update(30, 1, "new", "x")], b"young")
    report = run_stage("maintain", source)
    assert report.details[f"changelog.{NAME}"]["dropped_files"] == 3  # plain, whole, moved
    assert report.details[f"quarantine.{NAME}"]["without_bytes"] == 2
    left: dict[str, set[int]] = {"plain": {2}, "whole": set(), "kept": {1, 2}, **({"bag": {1}} if PROVING else {})}
    assert {name: _batches(lake, name) for name in left} == left
    _assert_bytes_are_gone(lake)
    if PROVING:
        again = run_stage("maintain", source).details
        assert (again[f"changelog.{NAME}"]["dropped_files"], again[f"quarantine.{NAME}"]["without_bytes"]) == (0, 0)

    late = [
        PLAIN.update(15, 1, "late", "late"),
        PLAIN.insert(31, None, "set", "aside"),
        WENT.insert(27, 3, "c", "z"),
        *([BAG.delete(25, 2, "b", "x")] if PROVING else []),
        KEPT.update(15, 2, "late", "x"),
    ]
    rename = Log("moved").statement(26, "RENAME TABLE moved TO went")
    filled = Log("whole").ddl(40, "ADD COLUMN IF NOT EXISTS note varchar(9) DEFAULT 'y'")
    _run(source, tmp_path, "3", late, rename, filled)
    stopped = {row["object"]: row["reason"] for row in Ledger(lake, NAME).read("tables") if row["state"] == "stopped"}
    assert stopped.keys() == {"shop.went", "shop.whole"}  # in the latter, nobody knows whose nulls came with the rows
    assert all("those of batches up to 1 are past their time" in reason for reason in stopped.values())
    expected = [(1, "new", "late"), (2, "b", "x")]
    assert _values(lake, "plain") == expected
    assert _values(lake, "moved") == [(1, "a", "x"), (2, "b", "x")]  # not emptied before its rows are elsewhere
    if PROVING:
        assert _values(lake, "bag") == [(1, "a", "x")]
    life = explain(lake, f"{NAME}.plain", ["id=2"])
    assert (life.expired, len(life.chapters), explain(lake, f"{NAME}.kept", ["id=2"]).expired) == (1, 0, 0)
    assert _unknown_keys(source, "plain") == [f"{NAME}.plain: events of batches up to 1 are past their time"]
    assert _unknown_keys(source, "kept") == []

    _assert_only_one_is_built_again(lake, source, "kept")
    assert (_values(lake, "plain"), _values(lake, "whole")) == (expected, [(1, "a", "x"), (2, "b", None)])

    _run(source, tmp_path, "4", [*PLAIN.load(50, (1, "loaded", "y")), PLAIN.insert(60, 3, "c", "z")])
    assert _values(lake, "plain") == [(1, "loaded", "y"), (3, "c", "z")]
    for row in Ledger(lake, NAME).read("tables"):
        assert row["events"] == sum(row[name] for name in ("applied", "superseded", "duplicate", "held", "quarantined"))

    with pytest.raises(ConfigurationError, match="Give no dates"):
        decodable.require(NAME, None, Expired(lake, NAME), {2, 3, 4})
    run_stage("normalize", source, reprocess=True)
    assert Expired(lake, NAME).among() == set()
    if PROVING:
        assert [problem for report in run_all(source).values() for problem in report.problems] == []
        assert _values(lake, "whole") == [(1, "a", "x"), (2, "b", None)]
        assert _values(lake, "plain") == [(1, "loaded", "y"), (3, "c", "z")]


EMPTIED, FOLDED, NEW_NAME = "shop.moved", "shop.orders_(\\d) -> names.orders", "shop.went"
"""A table that was renamed, and is published as an empty one under its old name; what a table was folded into."""


def _published_names(lake: Lake, *, requested: bool = False, bag: bool = False, **went: Any) -> Source:
    """Publish tables without events: one that was renamed, and one that was folded into another later on."""
    segments = json.dumps([[EMPTIED, "", "5"], [NEW_NAME, "5", None]])
    shards = json.dumps({"shop.orders_1": {}, "shop.orders_2": {}})
    more = {NEW_NAME: {SEGMENTS_PROPERTY: segments}, FOLDED: {SHARDS_PROPERTY: shards}}
    targets = {EMPTIED: "moved", NEW_NAME: "went", "shop.orders_1": "orders_1", FOLDED: "orders", "shop.other": "other"}
    rows = [TableRow(cut=2, object="shop.waits", state="stopped", batch=2)]
    for name, target in targets.items():
        key = "[]" if bag and target == "other" else '["id"]'
        properties = {KEY_PROPERTY: key, OBJECT_PROPERTY: name} | more.get(name, {})
        published = lake.ensure(Identifier("names", target), pa.schema([("id", pa.int64())]), properties)
        if published.properties[KEY_PROPERTY] != key:  # by another test
            with published.transaction() as transaction:
                transaction.set_properties({KEY_PROPERTY: key})
        rows.append(TableRow(cut=2, object=name, target=f"names.{target}", state="published", batch=2))
    ledger = Ledger(lake, "names")
    ledger.replace(CutRow, [CutRow(cut=2, state="published", batch=2)], above("cut", -1))
    ledger.replace(TableRow, rows, above("cut", -1))
    ledger.answered(ledger.rebuild_requests())
    if requested:
        ledger.request_rebuild([NEW_NAME])
    tables = {NEW_NAME: {"key": ["id"], **went}, "shop.*": {"key": ["id"]}}
    fields = {"source": "names", "format": "debezium_json", "landing": "x", "tables": tables}
    return Source.model_validate({**fields, "retention": {"changelog_days": 90}})


@pytest.mark.parametrize(
    ("went", "goes"),
    [
        ({}, {EMPTIED, NEW_NAME, "shop.other"}),
        ({"history": True}, {"shop.other"}),
        ({"deletes": "soft"}, {"shop.other"}),
        ({"requested": True}, {"shop.other"}),
        ({"bag": True}, {EMPTIED, NEW_NAME}),
    ],
    ids=["plain", "history", "soft", "requested", "bag"],
)
def test_events_stay_that_another_table_takes_in(lake: Lake, went: dict[str, Any], goes: set[str]) -> None:
    """A renamed table takes in the events of its earlier name, and a folded one the events of its shards.

    Those of a table without a key stay too: its rows are counted.
    What the source file says of that name alone, and what is published under it, counts for nothing.
    """
    source = _published_names(lake, **went)
    assert settled(lake, Ledger(lake, "names"), source) == goes


@pytest.mark.parametrize(
    ("retention", "late", "problem"),
    [
        ({"changelog_days": 60}, 90, r"changelog_days\n.*must be 90 \(`maintenance: tombstone_days`\) or more"),
        ({"changelog_days": 60}, 61, "changelog_days"),
        ({"changelog_days": 60, "raw_days": 90}, 60, r"quarantine_days\n.*must be 60 \(`changelog_days`\) or less"),
        ({"changelog_days": 60, "raw_days": 9, "quarantine_days": 61}, 60, "quarantine_days"),
        ({"changelog_days": 60}, 60, None),
        ({"changelog_days": 60, "quarantine_days": 90}, 60, None),
        ({"changelog_days": 60, "raw_days": 9, "quarantine_days": 60}, 60, None),
        ({"raw_days": 9}, 60, None),
    ],
)
def test_what_is_kept_fits_together(retention: dict[str, int], late: int, problem: str | None) -> None:
    """Events stay as long as others may be late, and no bytes stay that nothing leads to."""
    fields = {"source": "short", "format": "canal_json", "landing": "x", "maintenance": {"tombstone_days": late}}
    if problem is None:
        assert Source.model_validate({**fields, "retention": retention}).retention.model_dump(exclude_none=True)
    else:
        with pytest.raises(ValueError, match=problem):
            Source.model_validate({**fields, "retention": retention})
