"""What one run of compact knows: its cut, where the published tables stand, and which are to be built again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from tidemark.compaction.routing import Routing
from tidemark.lake import names
from tidemark.lake.lake import Lake
from tidemark.lake.maintenance import size_of
from tidemark.lake.names import Identifier
from tidemark.lake.statistics import rows_in
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.read_once import ReadOnce
from tidemark.ledger.rows import TableRow
from tidemark.ledger.transactions import GivenUp
from tidemark.sources.model import Source
from tidemark.spark.tuning import gathered, is_in_one_partition, small_side
from tidemark.tables.plan import Found

_BYTES_OF_A_TASK = 32 << 20
"""Files of a table that one task reads; Iceberg gives it four times as many at the most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The cut that a run builds."""

    number: int
    batch: int
    """Last batch of the change log that it holds."""

    @property
    def branch(self) -> str:
        """Name of the candidate branch in every table of the cut."""
        return names.candidate_branch(self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far the published tables of a source have come, in batches of the change log."""

    batch: int
    """Last batch of the newest published cut; 0 for none."""
    behind: Mapping[str, int] = field(default_factory=dict)
    """Tables that stand at an earlier batch, by the source's names."""

    def batch_of(self, table: str) -> int:
        """Return the batch that a table stands at."""
        return self.behind.get(table, self.batch)

    @property
    def lowest(self) -> int:
        """The batch that all tables have reached."""
        return min([self.batch, *self.behind.values()])

    def from_scratch(self, tables: Iterable[str]) -> Standing:
        """Return the same standing for all tables but some, which stand before the first batch."""
        return replace(self, behind={**self.behind, **dict.fromkeys(tables, 0)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of compact."""

    session: SparkSession
    lake: Lake
    source: Source
    cut: Cut
    standing: Standing
    published: Mapping[str, TableRow]
    """By the source's names, the newest row that says where the published table stands."""
    requests: Mapping[str, str]
    """Tables that are to be built again from their whole change log, and the request."""
    routed: Routing = field(default_factory=Routing)
    """The tables that are folded into others."""
    given_up: GivenUp = field(default_factory=GivenUp)
    """The open transactions that hold nothing back, also those that this cut takes."""
    sizes: dict[Identifier, int] = field(default_factory=dict)
    """Bytes of the files of tables that were read."""

    ledgers: dict[str, Ledger] = field(default_factory=dict)
    """By name of the source, its ledger, which is read once in a run."""

    @property
    def ledger(self) -> Ledger:
        """The ledger of the source, as each of its tables was when the run first read it, or last wrote it."""
        return self.ledgers.setdefault(self.source.source, ReadOnce(self.lake, self.source.source))

    def beside(self, lake: Lake) -> Run:
        """Return this run on another lake."""
        return replace(self, lake=lake, sizes={}, ledgers={})

    def read(self, identifier: Identifier, branch: str | None = None) -> DataFrame:
        """Return a table, or a branch of it, as a frame; ``gathered`` where its files are small enough for one task."""
        return self._in_one_task(identifier, self.session.table(self.lake.spark_name(identifier, branch)))

    def at(self, identifier: Identifier, snapshot: int) -> DataFrame:
        """Return a snapshot of a table as a frame, as ``read`` does."""
        version = self.session.read.option("versionAsOf", str(snapshot))
        return self._in_one_task(identifier, version.table(self.lake.spark_name(identifier)))

    def small_side(self, frame: DataFrame, identifier: Identifier) -> DataFrame:
        """Return a frame marked as the small side of a join with a table that is ``read``."""
        return small_side(frame, is_gathered=self._is_gathered(identifier))

    def _in_one_task(self, identifier: Identifier, rows: DataFrame) -> DataFrame:
        return gathered(rows) if self._is_gathered(identifier) else rows

    def _is_gathered(self, identifier: Identifier) -> bool:
        """Return whether one task reads a table, by the size that its files had when the run first asked."""
        if not is_in_one_partition():
            return False
        if identifier not in self.sizes:
            self.sizes[identifier] = size_of(self.lake.load(identifier)).bytes
        return self.sizes[identifier] <= _BYTES_OF_A_TASK

    def changes(self) -> DataFrame:
        """Return the change log of the source."""
        return self.session.table(self.lake.spark_name(names.change_log(self.source.source)))

    def rows_of(self, table: str) -> int:
        """Return how many rows a table had when it was last published."""
        row = self.published.get(table)
        return (row.rows_after or 0) if row else 0

    def size_of(self, found: Found) -> int:
        """Return about how many rows building a table reads."""
        rows = rows_in(found.table) if found.published_beside is not None and found.table is not None else None
        return found.events + (self.rows_of(found.object) if rows is None else rows)
