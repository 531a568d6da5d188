"""Plans for tables of a size: interpreted for few rows, and in one partition for fewer still."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from threading import Event

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.spark.session import PARTITIONS, open_session

_FEW_ROWS = 200_000

_INTERPRETED: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Of a wide table: expressions that occur twice are remembered for a row, by default a hundred of them.
    "spark.sql.subexpressionElimination.cache.maxEntries": "10000",
}
"""Settings for plans over few rows, where compiling the plan takes longer than interpreting it. A run of four small
tables takes half the processor time with them (docs/adr/0009)."""

_IN_ONE_PARTITION: Mapping[str, str] = {
    # Both sides of a join are in one place: none has to be sent there by a job of its own.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # A join below the step that gathers a table would shuffle the table first.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin",
}
"""Settings for plans whose frames are gathered in one partition."""

_ROWS_OF_A_TASK = 50_000
"""Rows that are worth a task where tables are small."""

_in_one_partition = Event()


def _switch(event: Event, *, on: bool) -> None:
    if on:
        event.set()
    else:
        event.clear()


def _in_one_go(rows: int, *, most: int) -> dict[str, str]:
    """Return settings for small tables, the largest of which has about this number of rows; ``most`` partitions.

    Planning each stage again and starting many tasks takes longer than the work on such tables. They also get few new
    files, and tables of up to 50,000 rows a single one. Tables that are built side by side keep the cores busy.
    """
    partitions = min(most, max(1, -(-rows // _ROWS_OF_A_TASK)))
    settings = {"spark.sql.adaptive.enabled": "false", PARTITIONS: str(partitions)}
    return settings if partitions > 1 else {**settings, **_IN_ONE_PARTITION}


@contextmanager
def tuned_for(session: SparkSession, tables: Collection[int]) -> Iterator[None]:
    """Tune the session for plans over tables with about these numbers of rows; restore its settings at the end."""
    settings: dict[str, str] = {}
    if all(map(is_small, tables)):
        settings |= _in_one_go(max(tables, default=0), most=int(str(session.conf.get(PARTITIONS))))
    if is_small(sum(tables)):
        settings |= _INTERPRETED
    before = {name: session.conf.get(name, None) for name in settings}
    was_in_one = _in_one_partition.is_set()
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        _switch(_in_one_partition, on=settings.keys() >= _IN_ONE_PARTITION.keys())
        yield
    finally:
        _switch(_in_one_partition, on=was_in_one)
        for name, kept in before.items():
            if kept is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, kept)


@contextmanager
def session_for(tables: Collection[int]) -> Iterator[SparkSession]:
    """Give the session, opened for tables with about these numbers of rows and tuned for them."""
    session = open_session(sum(tables))
    with tuned_for(session, tables):
        yield session


def is_in_one_partition() -> bool:
    """Return whether the tables that the session is tuned for are so small that plans have one partition."""
    return _in_one_partition.is_set()


def gathered(frame: DataFrame) -> DataFrame:
    """Return a frame with the same rows; of small tables, in one partition.

    What is joined and grouped of such frames stays in one task, with no shuffle between. Only for rows that are few for
    certain: one task reads all files of the frame.
    """
    return frame.coalesce(1) if is_in_one_partition() else frame


def small_side(frame: DataFrame, *, is_gathered: bool) -> DataFrame:
    """Return a frame marked as the small side of a join.

    Args:
        frame: the small side.
        is_gathered: whether the other side is ``gathered``: there the frame is hashed in the one task. Otherwise it is
            sent to all tasks that read the other side, so that nothing of that is shuffled.
    """
    return frame.hint("shuffle_hash") if is_gathered else F.broadcast(frame)


def sent(frame: DataFrame) -> DataFrame:
    """Return a frame of new events marked to be joined with earlier ones, which may be many more.

    Where tables are built in one partition, Spark would sort the earlier events in one task. There the new ones are few
    for certain, and are sent to all tasks that read the earlier ones. Elsewhere Spark chooses.
    """
    return F.broadcast(frame) if is_in_one_partition() else frame


def is_small(rows: int) -> bool:
    """Return whether a table has so few rows that ``tuned_for`` can run its plan in one go.

    Such tables are best built apart from large ones.
    """
    return rows < _FEW_ROWS
