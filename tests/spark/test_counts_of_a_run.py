"""What a small run asks of Spark, in counts that are the same on every machine: jobs, stages, tasks, shuffled bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.histories import Table, deliver, message
from support.running import run_all
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


MOST = Counts(jobs=19, stages=38, tasks=60, shuffled=9_000)
"""A tenth above the 17 jobs, 34 stages and 7,347 bytes that were counted on 2026-11-25. The 39 tasks were counted with
two cores; rows that the driver gives to Spark are read by as many tasks as there are cores."""


class Watch:
    """Counts what Spark does from now on. Spark remembers the last thousand jobs and stages."""

    def __init__(self, spark: SparkSession) -> None:
        """Note the newest job and stage."""
        self._context = spark.sparkContext
        jobs, stages = self._seen()
        self._before = ({job.jobId() for job in jobs}, {stage.stageId() for stage in stages})

    def counts(self) -> Counts:
        """Return what was done since."""
        known_jobs, known_stages = self._before
        jobs, stages = self._seen()
        ran = [stage for stage in stages if stage.stageId() not in known_stages and stage.numCompleteTasks()]
        return Counts(
            jobs=sum(job.jobId() not in known_jobs for job in jobs),
            stages=len(ran),
            tasks=sum(stage.numCompleteTasks() for stage in ran),
            shuffled=sum(stage.shuffleWriteBytes() for stage in ran),
        )

    def _seen(self) -> tuple[list[Any], list[Any]]:
        scala, jvm = self._context._jsc.sc(), self._context._jvm
        scala.listenerBus().waitUntilEmpty()
        store, listed = scala.statusStore(), jvm.scala.jdk.javaapi.CollectionConverters.asJava
        stages = store.stageList(None, False, False, self._context._gateway.new_array(jvm.double, 0), None)  # noqa: FBT003  Scala's
        return list(listed(store.jobsList(None))), list(listed(stages))


def test_a_small_run_stays_small(source: Callable[..., Source], spark: SparkSession) -> None:
    """A second run over two tables, one with a history: what is added to it shows here, on any machine."""
    settings = {"key": ["id"], "columns": {"id": "long", "name": "string"}}
    shop = source("debezium_json", tables={"shop.orders": {**settings, "history": True}, "shop.lines": settings})
    orders, lines = (Table(name, columns=("id", "name")) for name in ("orders", "lines"))
    first = [message(table.insert(row, row, "x")) for table in (orders, lines) for row in range(1, 21)]
    deliver(Path(shop.landing).parent, "0", first)
    run_all(shop)
    watch = Watch(spark)
    second = [message(table.insert(row, row, "y")) for table in (orders, lines) for row in range(31, 41)]
    deliver(Path(shop.landing).parent, "1", second)
    run_all(shop)
    done = watch.counts()
    assert done.jobs > 0
    assert all(found <= most for found, most in zip(done, MOST, strict=True)), done
