"""The rows of a feed as Spark makes them: what went and what came, paired by key, each pair as its changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pyarrow.fs import FileSystem
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.types import StructField

from tidemark.lake.changed_rows import SIDE, ChangedFile
from tidemark.spark.changed_frames import rows_of
from tidemark.tables.feeds import AFTER, BEFORE, CHANGE_ORDINAL, CHANGE_TYPE, CUT, DELETE, INSERT, FeedColumn, Shown
from tidemark.text import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRows:
    """Rows on their way into a feed: columns ``c0 .. cn``, and ``SIDE``."""

    session: SparkSession
    place: str
    """Name of the branch that is written, in Spark."""
    wanted: Shown

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [f"c{number}" for number in range(len(self.wanted.columns))]

    @property
    def pairs(self) -> list[Expression]:
        """Columns that say which row before is which row after."""
        ids = [column.field_id for column in self.wanted.columns]
        return [F.col(f"c{ids.index(number)}").alias(f"k{place}") for place, number in enumerate(self.wanted.pairs)]

    def of_files(self, filesystem: FileSystem, files: Sequence[ChangedFile]) -> DataFrame:
        """Return the rows that went and came in some files."""
        stored = self.session.table(self.place).schema
        columns = [
            (column.field_id, StructField(name, stored[column.stored].dataType)) for name, column in self._named()
        ]
        return rows_of(self.session, filesystem, files, columns)

    def replayed(self) -> DataFrame:
        """Return the rows that the feed shows so far, as rows that went: of each pair the newest, if it is there."""
        rows = self.session.table(self.place)
        cells = [F.col(quoted(column.stored)).alias(name) for name, column in self._named()]
        comes = F.col(CHANGE_TYPE).isin(INSERT, AFTER)
        # One addition may hold a pair's row before and its row after: the latter counts.
        order = F.struct(F.col(CHANGE_ORDINAL), comes)
        rows = rows.select(*cells, order.alias("order"), comes.alias("comes"))
        row = F.struct(*self.columns)
        newest = rows.groupBy(*self.pairs).agg(F.max_by(F.struct("comes", row.alias("row")), "order").alias("newest"))
        there = newest.where("newest.comes").select("newest.row.*")
        return there.withColumn(SIDE, F.lit(-1))

    def of_changes(self, changes: DataFrame, *, ordinal: int, cut: int, leaving: Sequence[str]) -> DataFrame:
        """Return changes as rows of the feed: a row that is as it was makes none.

        Args:
            changes: rows that went and that came.
            ordinal: number of the addition.
            cut: number of the cut.
            leaving: columns of the feed that get no value any more.
        """
        row = F.struct(*self.columns)
        sides = changes.groupBy(*self.pairs).agg(
            F.collect_list(F.when(F.col(SIDE) < 0, row)).alias("old"),
            F.collect_list(F.when(F.col(SIDE) > 0, row)).alias("new"),
        )
        both = (F.size("old") == 1) & (F.size("new") == 1)
        sides = sides.where(~(both & F.get("old", F.lit(0)).eqNullSafe(F.get("new", F.lit(0)))))
        change = F.explode(
            F.concat(
                F.transform("old", partial(_change, F.when(both, BEFORE).otherwise(DELETE))),
                F.transform("new", partial(_change, F.when(both, AFTER).otherwise(INSERT))),
            )
        )
        typed_changes = sides.select(change.alias("change"))
        cells = [F.col(f"change.row.{name}").alias(column.stored) for name, column in self._named()]
        own = [
            F.col("change.type").alias(CHANGE_TYPE),
            F.lit(ordinal).cast("long").alias(CHANGE_ORDINAL),
            F.lit(cut).cast("int").alias(CUT),
        ]
        return typed_changes.select(*cells, *own, *(F.lit(None).alias(name) for name in leaving))

    def _named(self) -> Iterator[tuple[str, FeedColumn]]:
        return zip(self.columns, self.wanted.columns, strict=True)


def _change(kind: Expression, row: Expression) -> Expression:
    return F.struct(kind.alias("type"), row.alias("row"))
