"""What a small run asks of Spark, in counts that are the same on every machine: jobs, stages, tasks, shuffled bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.histories import Table, deliver, message
from support.rounds import PROVING
from support.running import run_all
from tidemark.compaction import row_writing
from tidemark.lake.lake import Lake
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

pytestmark = pytest.mark.spark


class Counts(NamedTuple):
    """What Spark did."""

    jobs: int
    stages: int
    """Those that ran."""
    tasks: int
    shuffled: int
    """Bytes written for other stages to read."""


MOST = Counts(jobs=8, stages=10, tasks=14, shuffled=2_000)
"""A tenth above the 7 jobs, 9 stages and 1,785 bytes that were counted on 2026-11-28. The 9 tasks were counted with
two cores; rows that the driver gives to Spark are read by as many tasks as there are cores."""


class Watch:
    """Counts what Spark does for a session from now on. Spark remembers the last thousand jobs and stages."""

    def __init__(self, spark: SparkSession) -> None:
        """Note the jobs that there are."""
        self._spark, self._tag = spark.sparkContext._jsc.sc(), spark._jsparkSession.sessionJobTag()
        self._before = self._jobs()

    def counts(self) -> Counts:
        """Return what was done since."""
        ran = self._stages()
        return Counts(
            jobs=len(self._jobs() - self._before),
            stages=len(ran),
            tasks=sum(stage.numCompleteTasks() for stage in ran),
            shuffled=sum(stage.shuffleWriteBytes() for stage in ran),
        )

    def most_read(self) -> int:
        """Return how many rows the stage that read most of them has read since."""
        return max(stage.inputRecords() for stage in self._stages())

    def _jobs(self) -> set[int]:
        self._spark.listenerBus().waitUntilEmpty()
        return set(self._spark.statusTracker().getJobIdsForTag(self._tag))

    def _stages(self) -> list[Any]:
        """Return the stages that ran since."""
        jobs = [self._spark.statusTracker().getJobInfo(job).get() for job in self._jobs() - self._before]
        stages = {stage: self._spark.statusStore().lastStageAttempt(stage) for job in jobs for stage in job.stageIds()}
        return [stage for stage in stages.values() if stage.numCompleteTasks()]


def test_a_small_run_stays_small(source: Callable[..., Source], spark: SparkSession) -> None:
    """A second run over two tables, one with a history: what is added to it shows here, on any machine.

    A row of it is inserted and deleted: that it leaves nothing is known without a look at the table.
    """
    settings = {"key": ["id"], "columns": {"id": "long", "name": "string"}}
    shop = source("debezium_json", tables={"shop.orders": {**settings, "history": True}, "shop.lines": settings})
    orders, lines = (Table(name, columns=("id", "name")) for name in ("orders", "lines"))
    first = [message(table.insert(row, row, "x")) for table in (orders, lines) for row in range(1, 21)]
    deliver(Path(shop.landing).parent, "0", first)
    run_all(shop)
    watch = Watch(spark)
    second = [message(table.insert(row, row, "y")) for table in (orders, lines) for row in range(31, 41)]
    second += [
        message(each) for table in (orders, lines) for each in (table.insert(41, 41, "z"), table.delete(42, 41, "z"))
    ]
    deliver(Path(shop.landing).parent, "1", second)
    run_all(shop)
    done = watch.counts()
    assert done.jobs > 0
    assert all(found <= most for found, most in zip(done, MOST, strict=True)), done


ROWS = 1_200
"""Of each table below, spread over twelve partitions."""

LAYOUTS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "by_month": (("id",), ["month(day)"]),
    "by_tenant": (("tenant", "id"), ["bucket(1000, tenant)"]),
    "by_shop": (("id", "shop"), ["shop"]),
}
"""Table -> its key, and its partitions: keys that grow with time, and two that follow from the key."""
LAYOUTS = {name: layout for name, layout in LAYOUTS.items() if PROVING or name != "by_tenant"}


def _of_row(number: int, note: str) -> tuple[object, ...]:
    part = number * 12 // ROWS
    return number, f"tenant {part}", 7 * part, f"2026-{part + 1:02d}-03", note


@pytest.mark.more
def test_a_merge_reads_the_partitions_that_a_batch_touches(
    source: Callable[..., Source], lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one month, tenant or shop are sought among its rows, not among all, however a batch is written."""
    columns = {"id": "long", "tenant": "string", "shop": "int", "day": "date", "note": "string"}
    tables = {
        f"shop.{name}": {"key": [*key], "columns": columns, "layout": {"partition": partition}}
        for name, (key, partition) in LAYOUTS.items()
    }
    shop = source("debezium_json", max_deletes=1, tables=tables)
    landing, known = Path(shop.landing).parent, [Table(name, key, tuple(columns)) for name, (key, _) in LAYOUTS.items()]
    rows = {number: _of_row(number, "a") for number in range(ROWS)}
    deliver(landing, "0", [message(each.insert(number + 1, *row)) for number, row in rows.items() for each in known])
    run_all(shop)
    for run, large in enumerate((ROWS * 10, 1), start=1):
        monkeypatch.setattr(row_writing, "LARGE", large)
        rows |= {number: _of_row(number, f"b{run}") for number in (3 * run, 30 * run)}
        changes = [each.update(5_000 * run, *rows[number]) for each in known for number in (3 * run, 30 * run)]
        changes += [each.delete(5_001 * run, *rows[90 + run]) for each in known]
        del rows[90 + run]
        deliver(landing, f"{run}", map(message, changes))
        for stage in ("land", "normalize"):
            run_stage(stage, shop, None, None)
        watch = Watch(spark)
        run_stage("compact", shop, None, None)
        events = 3  # of each table; the step that seeks their rows may read both
        assert 0 < watch.most_read() <= ROWS // 12 + events
        for stage in ("check", "publish"):
            run_stage(stage, shop, None, None)
        for each in known:
            found = lake.load((shop.source, each.name)).scan(selected_fields=tuple(columns)).to_arrow().to_pylist()
            published_rows = sorted((row["id"], *map(str, row.values())) for row in found)
            assert published_rows == sorted((row[0], *map(str, row)) for row in rows.values()), each.name  # type: ignore[type-var]
