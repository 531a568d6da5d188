"""A batch newer than all of a large table: its keys' rows are removed, then added, to the same end as by a MERGE."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

from support.histories import Table, deliver, message
from support.published import without_delivery
from support.reference import fold
from support.rounds import PROVING
from support.running import run_all
from tidemark.compaction import row_writing
from tidemark.folding import cells as row_cells
from tidemark.lake.branches import ancestry
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.services.processes import wait_until
from tidemark.sources.model import Source

pytestmark = [pytest.mark.spark, pytest.mark.more]
LINES = Table("lines", key=("id", "line"), columns=("id", "line", "name"))
BATCHES = [
    [LINES.insert(number, number, 1, "a") for number in range(1, 7)],
    [
        LINES.update(20, 1, 1, "b"), LINES.update(21, 1, 1, "c"), LINES.delete(22, 2, 1, "a"),
        LINES.delete(23, 99, 1, "never there"), LINES.insert(24, 7, 1, "new"), LINES.insert(25, 8, 1, "short"),
        LINES.delete(26, 8, 1, "short"), LINES.delete(27, 3, 1, "a"), LINES.insert(28, 3, 1, "again"),
        LINES.update(29, 4, 2, "moved", was=(4, 1)),
    ],
    [LINES.update(40, 5, 1, "e"), LINES.update(19, 6, 1, "late"), LINES.insert(18, 2, 1, "late, and dead")],
    *([[LINES.insert(50, 9, 1, "only inserts")]] if PROVING else []),
]  # fmt: skip
COUNTS = [(6, 6, 0, 6, 0), (10, 5, 5, 6, 1), (3, 2, 1, 6, 0), (1, 1, 0, 7, 0)]
"""By batch: events, applied and superseded ones, rows after it, and those that it deleted."""


def _runs(source: Source, lake: Lake) -> list[tuple[set[str], dict[str, Any], list[dict[str, Any]]]]:
    """By run: how its commits were made, what the ledger has of it, and the rows after it."""
    runs = []
    seen: set[int] = set()
    for number, batch in enumerate(BATCHES):
        deliver(Path(source.landing).parent, f"{number}", map(message, batch))
        run_all(source)
        table = lake.load((source.source, "lines"))
        made = [snapshot for snapshot in ancestry(table) if snapshot.snapshot_id not in seen and snapshot.summary]
        seen |= {snapshot.snapshot_id for snapshot in made}
        kinds = {
            "merge" if any(name.startswith("spark.merge-into") for name in snapshot.summary.additional_properties)
            else "append"
            for snapshot in made if snapshot.summary is not None and snapshot.summary.get("added-records")
        }  # fmt: skip
        row = max(Ledger(lake, source.source).read("tables"), key=lambda row: int(row["cut"]))
        counts = {name: row[name] for name in ("events", "applied", "superseded", "rows_after", "deleted")}
        rows = table.scan().to_arrow().sort_by([("id", "ascending"), ("line", "ascending")]).to_pylist()
        runs.append((kinds, counts, [without_delivery(row) for row in rows]))
    return runs


class Exchanged(NamedTuple):
    """What the runs of a source led to, and what was seen while they went on."""

    runs: list[tuple[set[str], dict[str, Any], list[dict[str, Any]]]]
    met: list[str]
    """Runs that read what is kept of deletes."""
    kept: set[int]
    """Numbers of the rows that Spark was told to keep."""


def _source(landing: Path, name: str) -> Source:
    columns = dict.fromkeys(("id", "line"), "long") | {"name": "string"}
    tables = {"shop.lines": {"key": ["id", "line"], "columns": columns}}
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate(fields)


@pytest.fixture(scope="module")
def exchanged(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Exchanged:
    """The batches, where every table counts as large."""
    landing = tmp_path_factory.mktemp("exchanged")
    met: list[str] = []
    kept: set[int] = set()
    not_dead, keep = row_cells.not_dead, ClassicFrame.localCheckpoint

    def watched(*frames: Any) -> DataFrame:
        met.append(max(file.stem for file in landing.glob("*.json")))
        return not_dead(*frames)

    def keeping(frame: ClassicFrame, *args: Any, **kwargs: Any) -> DataFrame:
        found = keep(frame, *args, **kwargs)
        kept.add(found._jdf.logicalPlan().rdd().id())
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(row_cells, "not_dead", watched)
        patched.setattr(row_writing, "LARGE", 1)
        patched.setattr(ClassicFrame, "localCheckpoint", keeping)
        return Exchanged(_runs(_source(landing, "exchanged"), lake), met, kept)


def test_exchanged_as_merged(exchanged: Exchanged, spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """The rows of the model, and the numbers of a merge, which ``make prove`` makes beside; a late event is merged.

    What is kept of deletes is read for a batch with an event that may be older, and for no other.
    """
    runs, met, _ = exchanged
    assert met == ["2"]
    assert [kinds for kinds, _, _ in runs] == [{"merge"}, {"append"}, {"merge"}, {"append"}][: len(BATCHES)]
    assert [tuple(counts.values()) for _, counts, _ in runs] == COUNTS[: len(BATCHES)]
    for number, (_, _, rows) in enumerate(runs, start=1):
        found = fold(change for batch in BATCHES[:number] for change in batch)["lines"].values()
        expected = sorted((tuple(row.values()) for row in found), key=lambda row: row[:2])
        assert [tuple(row[name] for name in ("id", "line", "name")) for row in rows] == expected
    if PROVING:
        merged = _runs(_source(tmp_path, "merged"), lake)
        assert [kinds for kinds, _, _ in merged] == [{"merge"}] * len(BATCHES)
        assert [(counts, rows) for _, counts, rows in runs] == [(counts, rows) for _, counts, rows in merged]


def test_nothing_stays_of_what_a_run_kept(exchanged: Exchanged, spark: SparkSession) -> None:
    """The rows that compact keeps for several uses go with the last reference to them."""
    kept = exchanged.kept
    assert kept
    wait_until(lambda: not kept & _swept(spark), servers=[], seconds=60, poll=1, what="freeing what compact kept")
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


def _swept(spark: SparkSession) -> set[int]:
    """Which rows Spark keeps, by their numbers, once no reference is left that is not used.

    Spark is asked for descriptions. A Python reference to the rows themselves would keep them until the next look.
    """
    gc.collect()
    spark.sparkContext._jvm.System.gc()  # type: ignore[union-attr]
    return {kept.id() for kept in spark.sparkContext._jsc.sc().getRDDStorageInfo()}  # type: ignore[union-attr]
