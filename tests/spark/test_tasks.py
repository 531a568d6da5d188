"""As many tasks as the machine has cores for, where there are rows for them, and one task for few rows."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.spark.tuning import tuned_for

PARTITIONS, ADAPTIVE = "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled"

PROGRAM = """
import json, sys
sys.path.insert(0, "tests")
from pyspark.sql import SparkSession
from spark.test_tasks import tasks_of
from tidemark.spark.session import SESSION_SETTINGS, local_settings
cores = int(sys.argv[1])
settings = {**local_settings(), **SESSION_SETTINGS, "spark.master": f"local[{cores}]"}
settings["spark.sql.shuffle.partitions"] = str(2 * cores)
session = SparkSession.builder.config(map=settings).getOrCreate()
print(json.dumps([tasks_of(session, rows) for rows in (1_000, 30_000, 250_000, 1_000_000)]))
"""


def tasks_of(session: SparkSession, rows: int) -> int:
    """Run a plan with one shuffle of about 100 bytes a row, tuned for its rows; return the tasks of its last stage."""
    spark, group = session.sparkContext, uuid.uuid4().hex
    value = F.concat(F.sha2(F.col("id").cast("string"), 256), F.md5(F.col("id").cast("string")))
    keyed = session.range(0, rows, 1, 2).select((F.col("id") % (rows - rows // 10)).alias("key"), value.alias("value"))
    spark.setJobGroup(group, "counted")
    try:
        with tuned_for(session, [rows]):
            keyed.groupBy("key").agg(F.max("value")).write.format("noop").mode("overwrite").save()
    finally:
        spark._jsc.clearJobGroup()
    tracker = spark.statusTracker()
    stages = [
        tracker.getStageInfo(number) for job in tracker.getJobIdsForGroup(group) for number in _stages(tracker, job)
    ]
    done = [stage for stage in stages if stage is not None and stage.numCompletedTasks]
    return int(max(done, key=lambda stage: stage.stageId).numTasks)


def _stages(tracker: Any, job: int) -> list[int]:
    info = tracker.getJobInfo(job)
    return list(info.stageIds) if info else []


@pytest.mark.parametrize(
    ("tables", "partitions", "adaptive"),
    [
        ([], "1", "false"),
        ([0], "1", "false"),
        ([50_000], "1", "false"),
        ([50_001], "2", "false"),
        ([10, 150_000, 40_000], "3", "false"),
        ([199_999], "4", "false"),
        ([200_000], "16", "true"),
        ([10, 200_000], "16", "true"),
    ],
)
def test_small_tables_get_a_task_for_each_50_000_rows(tables: list[int], partitions: str, adaptive: str) -> None:
    """The largest of the tables decides; large ones are left to adaptive execution; all is as before at the end."""
    held = {PARTITIONS: "16", ADAPTIVE: "true"}
    conf = SimpleNamespace(get=lambda name, _=None: held.get(name, "as before"), set=held.__setitem__)
    with tuned_for(SimpleNamespace(conf=conf), tables):  # type: ignore[arg-type]
        assert (held[PARTITIONS], held[ADAPTIVE]) == (partitions, adaptive)
    assert (held[PARTITIONS], held[ADAPTIVE]) == ("16", "true")


@pytest.mark.spark
def test_all_cores_work_where_there_are_rows_for_them(spark: SparkSession) -> None:
    """Few rows are one task; from 50,000 on no shuffle is read by a single one, unless there is a single core."""
    cores = spark.sparkContext.defaultParallelism
    assert [tasks_of(spark, rows) for rows in (1_000, 30_000)] == [1, 1]
    assert tasks_of(spark, 60_000) == 2
    assert tasks_of(spark, 250_000) >= min(cores, 4)


@pytest.mark.prove
@pytest.mark.parametrize("cores", [8, 16])
def test_more_cores_get_more_tasks(cores: int) -> None:
    """With 8 and 16 threads, a million rows are as many tasks at least; 1,000 and 30,000 rows are still one."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(cores)], capture_output=True, text=True, check=True)
    few, some, many, most = json.loads(done.stdout.splitlines()[-1])
    assert (few, some) == (1, 1)
    assert many >= 4
    assert most >= cores
