"""The state table of a published table: tombstones, versions of cells, TRUNCATEs (``tables.schemas.state_schema``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.table import Table
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.types import MapType, StringType

from tidemark.compaction.merging import only_after
from tidemark.compaction.run import Run
from tidemark.compaction.tombstone_age import GoneTombstones
from tidemark.folding import cells as row_cells
from tidemark.folding import frames
from tidemark.folding.truncates import TruncateEvent
from tidemark.lake import maintenance
from tidemark.lake.branches import MARKER
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.statistics import upper_bound
from tidemark.spark.session import checkpointed
from tidemark.tables.plan import Plan

_KINDS = ("tombstone", "cells", "truncate")
_KEPT = ("position", "versions", "batch")
_VERSIONS = MapType(StringType(), StringType())


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the state table of a candidate holds, as its files say without a scan by Spark."""

    run: Run
    plan: Plan
    kinds: Collection[str]
    """Kinds of its rows."""
    newest: str | None
    """No position in it is above this one; None where its files do not say."""
    truncates: Sequence[TruncateEvent]

    @classmethod
    def of(cls, run: Run, plan: Plan, table: Table) -> State:
        """Return the state of a table; ``table`` is its state table, on the candidate branch."""
        files = [task.file for task in table.scan().plan_files() if task.file.record_count]
        kinds = frozenset(file.partition[0] for file in files)
        truncates = _truncates(table, plan) if "truncate" in kinds else []
        return cls(run=run, plan=plan, kinds=kinds, newest=upper_bound(table, files, "position"), truncates=truncates)

    def rows(self) -> DataFrame:
        """Return the rows of the state, with the versions of cells under the names that columns have today.

        Columns: ``k0 .. kn``, ``kind``, ``position``, ``versions``, ``batch``.
        """
        versions = F.col("versions")
        renamed = {**self.plan.today, **self.plan.begun}
        if renamed:
            versions = row_cells.renamed_versions(versions, renamed).alias("versions")
        state = self.run.read(self.plan.state)
        return state.select(*frames.key_names(self.plan), "kind", "position", versions, "batch")

    def tombstones(self) -> DataFrame:
        """Return the keys that were deleted, each at its position."""
        return self.rows().where(F.col("kind") == "tombstone")

    def is_below(self, oldest: str | None) -> bool:
        """Return whether all that is kept is older than the oldest new event, which is at this position."""
        return oldest is not None and self.newest is not None and self.newest < oldest

    def has(self, truncate: TruncateEvent) -> bool:
        """Return whether the state holds a TRUNCATE of the same place."""
        return any((kept.shard, kept.position) == (truncate.shard, truncate.position) for kept in self.truncates)

    def keep(self, ready: DataFrame, truncates: Iterable[TruncateEvent], *, rows: bool) -> None:
        """Append what later runs need: tombstones, versions of rows written in parts, TRUNCATEs that are new.

        Args:
            ready: the rows that are merged.
            truncates: those that are known.
            rows: whether any of the rows may be deleted or written in parts.
        """
        fresh = [each for each in truncates if not self.has(each)]
        if rows or fresh:
            self._append(ready, fresh)

    def _append(self, ready: DataFrame, truncates: Sequence[TruncateEvent]) -> None:
        keys = frames.key_names(self.plan)
        branch = self.run.lake.spark_name(self.plan.state, self.run.cut.branch)
        if self.plan.today and "cells" in self.kinds:
            cells = self.rows().where(F.col("kind") == "cells")
            self.run.session.sql(f"DELETE FROM {branch} WHERE kind = 'cells'")  # noqa: S608  every part is quoted
            cells.writeTo(branch).append()
        versions = "versions" if "versions" in ready.columns else F.lit(None).cast(_VERSIONS).alias("versions")
        kind = F.when(F.col("deleted"), "tombstone").otherwise("cells").alias("kind")
        rows = ready.select(*keys, kind, "position", versions, F.lit(self.run.cut.batch).alias("batch"))
        rows = rows.where((F.col("kind") == "tombstone") | F.col("versions").isNotNull())
        for truncate in truncates:
            committed = F.lit(truncate.at or None).cast("string")
            shard = {keys[-1]: truncate.shard} if self.plan.found.shards else {}
            mark = self.run.session.range(1).select(
                *(F.lit(shard.get(key)).alias(key) for key in keys),
                F.lit("truncate").alias("kind"),
                F.lit(truncate.position).alias("position"),
                F.create_map(F.lit(row_cells.REST), committed).alias("versions"),
                F.lit(self.run.cut.batch).alias("batch"),
            )
            rows = rows.unionByName(mark)
        rows.writeTo(branch).append()

    def marks(self) -> dict[str, str]:
        """Return the position of each kind of row; of a table without a key, which has one row of a kind."""
        rows = self.run.lake.load(self.plan.state).scan().to_arrow().to_pylist()
        return {row["kind"]: row["position"] for row in rows}

    def mark(self, before: Mapping[str, str], reached: Mapping[str, str]) -> None:
        """Write the positions that a table without a key has reached, in place of ``before``; no commit for no change.

        Args:
            before: ``marks``.
            reached: kind to position; empty for none.
        """
        new = {kind: position for kind, position in reached.items() if position}
        if new == before:
            return
        table = self.run.lake.load(self.plan.state)
        rows = [{"kind": kind, "position": position, "batch": self.run.cut.batch} for kind, position in new.items()]
        written = pa.Table.from_pylist(rows, schema=table.schema().as_arrow())
        if before:
            table.overwrite(written, branch=self.run.cut.branch)
        else:
            table.append(written, branch=self.run.cut.branch)


def _truncates(table: Table, plan: Plan) -> list[TruncateEvent]:
    rows = table.scan(row_filter=equals("kind", "truncate")).to_arrow().to_pylist()
    shard = frames.key_names(plan)[-1] if plan.found.shards else ""
    return [
        TruncateEvent(row["position"], int(dict(row["versions"] or {}).get(row_cells.REST) or 0), row.get(shard) or "")
        for row in rows
    ]


def rewrite(session: SparkSession, lake: Lake, identifier: Identifier, past: int) -> int:
    """Keep the newest row of each key and kind, and no tombstone of the batches up to ``past``.

    Compact reads the newest row alone, so only the tombstones that go change what it does: an event older than one of
    them, should it still arrive, finds no trace of the delete. Nothing is done where files and tombstones are few.

    Returns:
        How many tombstones went because of their age.
    """
    table = lake.load(identifier)
    crowded = maintenance.is_crowded(maintenance.size_of(table))
    if not (crowded or past):
        return 0
    name = lake.spark_name(identifier)
    old = (F.col("kind") == "tombstone") & (F.col("batch") <= past)
    rows = session.table(name).where(F.col("kind").isin(*_KINDS))
    if not crowded and not rows.where(old).limit(1).count():
        return 0
    keys = [field.name for field in table.schema().fields if field.name not in {"kind", *_KEPT}]
    latest = F.max_by(F.struct(*_KEPT), F.struct("position", "batch")).alias("latest")
    newest = rows.groupBy("kind", *keys).agg(latest).select(*keys, "kind", "latest.*")
    newest = checkpointed(newest)
    gone = newest.where(old).agg(F.count("*"), F.max("batch"), F.max("position")).first()
    if gone is not None and gone[0]:
        GoneTombstones(batch=gone[1], position=gone[2]).remember(table)
    # With a marker, or compact would take it for another writer's (`lake.other_writers`).
    kept = newest.where(~old).writeTo(name).option(f"snapshot-property.{MARKER}rewritten", str(past))
    only_after(kept, table).overwrite(F.col("kind").isin(*_KINDS))
    return gone[0] if gone is not None else 0
