"""Which events of the change log a table takes in: new ones, all of them, earlier halves of updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RowKind
from tidemark.sources.model import Source
from tidemark.tables.plan import Found, Plan
from tidemark.tables.withheld import Withheld


class Whole(NamedTuple):
    """How events of any batch are read."""

    plan: Plan
    """With what all of them tell."""
    read: Callable[[DataFrame], DataFrame]
    """Gives events of the change log the shapes that ``plan`` knows."""


def taken(changelog: DataFrame, table: str, after: int, batch: int, found: Withheld) -> DataFrame:
    """The change events that a table takes in on its way from one batch to another.

    Args:
        changelog: rows of ``CHANGE_LOG``.
        table: as source files name it.
        after: batch at which the table stands.
        batch: batch that it is to reach.
        found: ``withheld``.
    """
    new = (F.col("batch") > after) & (F.col("batch") <= batch)
    if found.left_out:
        new &= ~F.coalesce(F.col("transaction_id").isin(*sorted(found.left_out)), F.lit(False))
    if found.released:
        earlier = (F.col("batch") >= found.since) & (F.col("batch") <= after)
        new |= earlier & F.col("transaction_id").isin(*sorted(found.released))
    return changelog.where((F.col("kind") == RowKind.CHANGE) & (F.col("object") == table) & new)


def taken_of_all(changelog: DataFrame, tables: Sequence[str], after: int, batch: int) -> DataFrame:
    """The change events of several tables that stand at one batch, and that transactions change nothing about."""
    new = (F.col("batch") > after) & (F.col("batch") <= batch)
    return changelog.where((F.col("kind") == RowKind.CHANGE) & F.col("object").isin(*tables) & new)


def log_of(changelog: DataFrame, table: str, batch: int, without: frozenset[str]) -> DataFrame:
    """All change events of a table up to a batch, but for those of some transactions.

    Args:
        changelog: rows of ``CHANGE_LOG``.
        table: as source files name it.
        batch: last batch.
        without: ids of transactions: ``Withheld.waiting`` for all that the published table is to hold, with
            ``Withheld.released`` for what it held before.
    """
    of_table = (F.col("kind") == RowKind.CHANGE) & (F.col("object") == table) & (F.col("batch") <= batch)
    if without:
        of_table &= ~F.coalesce(F.col("transaction_id").isin(*sorted(without)), F.lit(False))
    return changelog.where(of_table)


def new_events(session: SparkSession, lake: Lake, source: Source, found: Found, batch: int) -> DataFrame:
    """Return the change events that a table takes in, before there is a plan for it."""
    changelog = session.table(lake.spark_name(("changelog", source.source)))
    return taken(changelog, found.object, found.after, batch, found.withheld)
