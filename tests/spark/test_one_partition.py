"""Plans for tables of up to 50,000 rows: what is gathered in one partition is joined and grouped there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.conf import RuntimeConfig

from support.histories import Table, deliver, message
from support.running import run_all
from tidemark.compaction import building
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.decisions import Built
from tidemark.compaction.keyed_candidate import Fold
from tidemark.lake import names
from tidemark.lake.lake import Lake
from tidemark.sources.model import Source
from tidemark.spark.tuning import gathered, is_in_one_partition, sent, small_side, tuned_for

pytestmark = pytest.mark.spark

SETTINGS = (
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.optimizer.excludedRules",
    "spark.sql.shuffle.partitions",
    "spark.sql.adaptive.enabled",
)


def _plan(frame: DataFrame) -> str:
    return frame._jdf.queryExecution().executedPlan().toString()


def _settings(spark: SparkSession) -> list[str | None]:
    return [spark.conf.get(name, None) for name in SETTINGS]


def _pair(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Return keys 0 to 9, ten times each and in four partitions; and the even ones, in three."""
    many = spark.range(0, 100, 1, 4).select((F.col("id") % 10).alias("key"), "id")
    few = spark.range(0, 10, 2, 3).select(F.col("id").alias("key"), (F.col("id") * 7).alias("value"))
    return many, few


@pytest.mark.parametrize(("how", "rows"), [("inner", 50), ("left", 100), ("left_semi", 50), ("left_anti", 50)])
def test_gathered_frames_are_joined_and_grouped_without_a_shuffle(spark: SparkSession, how: str, rows: int) -> None:
    """Nor is a side of a join sent anywhere."""
    with tuned_for(spark, [50_000, 3]):
        many, few = map(gathered, _pair(spark))
        joined = many.unionByName(many).join(small_side(few, is_gathered=True), "key", how)
        numbered = joined.withColumn("number", F.row_number().over(Window.partitionBy("key").orderBy("id")))
        grouped = numbered.groupBy("key").agg(F.sum("number").alias("numbers"))
        plan, found = _plan(grouped), sorted(map(tuple, grouped.collect()))
    assert "Exchange" not in plan, plan
    assert "ShuffledHashJoin" in plan
    keys = [key for key in range(10) if rows == 100 or (key % 2 == 0) is (how != "left_anti")]
    assert found == [(key, sum(range(1, 21))) for key in keys]


def test_larger_tables_are_not_gathered(spark: SparkSession) -> None:
    """Small sides of joins with them are sent to all tasks, also by a plan in one partition."""
    many, few = _pair(spark)
    with tuned_for(spark, [50_001, 3]):
        assert not is_in_one_partition()
        assert gathered(many) is many
    assert gathered(many) is many
    assert sent(few) is few
    with tuned_for(spark, [50_000]):
        plans = [_plan(many.join(side, "key")) for side in (small_side(few, is_gathered=False), sent(few))]
    for plan in plans:
        assert "BroadcastHashJoin" in plan
        assert "Exchange hashpartitioning" not in plan


def test_the_session_is_left_as_it_was(spark: SparkSession) -> None:
    """Also by an error, and by a caller within another one."""
    before = _settings(spark)

    def fail() -> None:
        with tuned_for(spark, [1]):
            within = _settings(spark)
            with tuned_for(spark, [300_000]):
                assert _settings(spark) == within
                assert not is_in_one_partition()
            assert is_in_one_partition()
            assert _settings(spark) == within != before
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not is_in_one_partition()
    assert _settings(spark) == before


def test_settings_that_cannot_be_made_leave_none(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of a process that goes on are the usual ones."""
    before = _settings(spark)
    put = type(spark.conf).set

    def refuse(conf: RuntimeConfig, name: str, value: str) -> None:
        if name == SETTINGS[1] and value != before[1]:
            raise ConnectionError
        put(conf, name, value)

    monkeypatch.setattr(type(spark.conf), "set", refuse)
    with pytest.raises(ConnectionError), tuned_for(spark, [1]):
        pytest.fail("the plans of a small table need all settings")
    assert not is_in_one_partition()
    assert _settings(spark) == before


def test_a_table_is_built_in_one_partition_unless_its_files_are_large(
    source: Callable[..., Source], spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many rows compact reads is known of what is new, and of the table. Of other tables the size is."""
    columns = {"id": "long", "name": "string"}
    shop = source("debezium_json", tables={"shop.*": {"key": ["id"], "columns": columns, "deletes": "soft"}})
    table, landing = Table("t", columns=("id", "name")), Path(shop.landing).parent
    deliver(landing, "0", [message(table.insert(n, n, f"name {n}")) for n in range(1, 9)])
    run_all(shop)
    plans: dict[str, str] = {}
    sent: list[bool] = []
    build = building.build_candidate

    def watched(prepared: Prepared, fold: Fold | None = None) -> Built:
        run = prepared.run
        state, quarantine = run.read(prepared.plan.state), run.read(names.quarantine(shop.source))
        plans.update(stored=_plan(prepared.stored()), state=_plan(state), quarantine=_plan(quarantine))
        plans["snapshot"] = _plan(prepared.stored_at(prepared.tip()))
        keys = run.session.range(1).select(F.col("id"))
        joined = prepared.stored().join(run.small_side(keys, prepared.plan.rows), "id", "left_semi")
        sent.append("BroadcastHashJoin" in _plan(joined))
        return build(prepared, fold)

    monkeypatch.setattr(building, "build_candidate", watched)
    deliver(landing, "1", [message(table.update(20, 1, "other")), message(table.delete(21, 2))])
    run_all(shop)
    assert {name for name, plan in plans.items() if "Coalesce 1" in plan} == set(plans)
    monkeypatch.setattr("tidemark.compaction.run._BYTES_OF_A_TASK", 1)
    deliver(landing, "2", [message(table.update(30, 3, "third"))])
    run_all(shop)
    assert [name for name, plan in plans.items() if "Coalesce" in plan] == ["quarantine"]  # it has no file
    assert sent == [False, True]
    rows = lake.load((shop.source, "t")).scan().to_arrow().select(["id", "name"]).to_pylist()
    assert {row["id"]: row["name"] for row in rows} == {
        1: "other", 2: "name 2", 3: "third", **{n: f"name {n}" for n in range(4, 9)}
    }  # fmt: skip
