"""Clocks that were set back: no time in a table's metadata goes back, so every engine goes on reading it."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, tzinfo

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from support.rounds import PROVING
from tidemark.errors import RetriableLakeError
from tidemark.lake import branches, clocks
from tidemark.lake.branches import branch_from_main, head
from tidemark.lake.lake import Lake
from tidemark.pipeline import as_tidemark_error

SCHEMA = pa.schema([("id", pa.int64())])


def _set_back(patched: pytest.MonkeyPatch, seconds: int) -> None:
    """Let the clock of this process be behind by so many seconds."""
    now, nanoseconds = time.time, time.time_ns

    class Late(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) - timedelta(seconds=seconds)

    patched.setattr(time, "time", lambda: now() - seconds)
    patched.setattr(time, "time_ns", lambda: nanoseconds() - seconds * 10**9)
    patched.setattr("pyiceberg.table.update.datetime", Late)


def _made(lake: Lake, name: str) -> Table:
    table = lake.ensure(("clocks", name), SCHEMA, {"format-version": "2"})
    table.append(pa.table({"id": [1]}, SCHEMA))
    return table


def _assert_times_rise(table: Table) -> None:
    metadata = table.refresh().metadata
    moves = [entry.timestamp_ms for entry in metadata.snapshot_log]
    files = [entry.timestamp_ms for entry in metadata.metadata_log]
    assert moves == sorted(moves)
    assert files == sorted(files)
    assert metadata.last_updated_ms >= max(*moves, *files, *(each.timestamp_ms for each in metadata.snapshots))


@pytest.mark.parametrize("seconds", [45, 7200])
def test_no_time_goes_back_where_the_clock_does(lake: Lake, monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    """Rows, properties, branches and tags are committed as ever, also by who loaded the table before another commit."""
    table = _made(lake, f"late_{seconds}")
    before = lake.load(("clocks", f"late_{seconds}"))
    table.append(pa.table({"id": [2]}, SCHEMA))
    with monkeypatch.context() as patched:
        _set_back(patched, seconds)
        with before.transaction() as transaction:
            transaction.set_properties({"a": "b"})
        table.refresh().append(pa.table({"id": [3]}, SCHEMA))
        branch_from_main(table, "beside")
        table.append(pa.table({"id": [4]}, SCHEMA), branch="beside")
        table.refresh().manage_snapshots().create_tag(head(table), "kept").commit()
    table.refresh().append(pa.table({"id": [5]}, SCHEMA))
    _assert_times_rise(table)
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [1, 2, 3, 5]


def test_a_move_waits_for_a_clock_that_is_far_behind(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of ``main`` says when readers saw what. A clock that is a little behind stops nothing."""
    table = _made(lake, "moved")
    branch_from_main(table, "next").append(pa.table({"id": [2]}, SCHEMA), branch="next")
    with monkeypatch.context() as patched:
        _set_back(patched, 300)
        late = r"clocks\.moved: the clock of this machine is 0:0[45]:\d\d behind the last commit, of 20"
        with pytest.raises(RetriableLakeError, match=late):
            branches.fast_forward(table.refresh(), "next")
    assert len(table.refresh().scan().to_arrow()) == 1
    with monkeypatch.context() as patched:
        _set_back(patched, 40)
        branches.fast_forward(table, "next")
    _assert_times_rise(table)
    assert len(table.refresh().scan().to_arrow()) == 2


def _gone_back(lake: Lake, name: str, monkeypatch: pytest.MonkeyPatch) -> Table:
    """Make a table as an earlier version left it: its newest commit is two minutes before the one before it."""
    _made(lake, name)
    unwatched = load_catalog(lake.name, **lake.properties).load_table(("clocks", name))
    with monkeypatch.context() as patched:
        _set_back(patched, 120)
        unwatched.append(pa.table({"id": [2]}, SCHEMA))
    log = [entry.timestamp_ms for entry in unwatched.metadata.snapshot_log]
    assert log != sorted(log)
    return lake.load(("clocks", name))


def test_a_table_whose_times_went_back_is_mended_by_the_next_commit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any commit does, also one that only sets a property."""
    table = _gone_back(lake, "mended", monkeypatch)
    with table.transaction() as transaction:
        transaction.set_properties({"a": "b"})
    _assert_times_rise(table)


@pytest.mark.spark
@pytest.mark.more
def test_spark_reads_what_a_late_clock_wrote(spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Iceberg's Java library refuses a table whose times go back by more than a minute, and reads these."""
    table = _made(lake, "read")
    with monkeypatch.context() as patched:
        _set_back(patched, 120)
        table.append(pa.table({"id": [2]}, SCHEMA))
    back = _gone_back(lake, "read_again", monkeypatch)
    if PROVING:  # the library reads the metadata twenty times before it gives up, which takes a minute and a half
        with pytest.raises(Exception, match="Expected sorted snapshot log entries"):
            spark.table(lake.spark_name(("clocks", "read_again"))).count()
    with back.transaction() as transaction:
        transaction.set_properties({"a": "b"})
    assert [spark.table(lake.spark_name(("clocks", name))).count() for name in ("read", "read_again")] == [2, 2]


def test_what_spark_says_of_a_late_clock_is_explained() -> None:
    """Its words do not name the clock."""
    text = "Invalid update timestamp 1: before the latest metadata log entry timestamp 2"
    assert clocks.is_refusal(RuntimeError(text))
    assert "clock of this machine is far behind" in str(as_tidemark_error(OSError(text), "compact of erp failed"))
    assert "clock" not in str(as_tidemark_error(OSError("disk"), "compact of erp failed"))
