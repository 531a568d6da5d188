"""The rows of the ledger's tables: one frozen type for each table.

Each type has the columns of its table in ``schemas`` without ``source``, which the ledger knows, and ``at``, the time
of writing, which the ledger sets. Where a reader needs that time, the type has it as ``written_at``.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, NamedTuple

import msgspec

from tidemark.events import Operation, Shape, TableId
from tidemark.lake.names import Identifier
from tidemark.ledger.event_counts import EventCounts
from tidemark.ledger.states import CutState, TableState, VerdictWord
from tidemark.ledger.tally import LOAD, Content, LoggedStatement, shape_from
from tidemark.values.iso8601 import from_micros


class LedgerRow(msgspec.Struct, frozen=True, kw_only=True, rename={"written_at": "at"}):
    """A row of one table of the ledger."""

    TABLE: ClassVar[str]
    """Name of the table."""


class FileRow(LedgerRow, frozen=True, kw_only=True):
    """A dump file that was landed."""

    TABLE = "files"
    batch: int
    path: str
    size: int
    modified: str
    checksum: str
    container: str
    messages: int
    interval_start: datetime | None


class BatchRow(LedgerRow, frozen=True, kw_only=True):
    """What became of the messages of a batch."""

    TABLE = "batches"
    batch: int
    landed: int
    decoded: int
    control: int
    quarantined: int
    events: int
    retry_of: int | None = None
    logs: tuple[str, ...] | None = None
    """The partitions of topics and series of files that the messages came in, two at most, where that may decide the
    order of statements."""
    heard: datetime | None = None
    """The time of the newest control event, such as a heartbeat."""
    reprocessed: int | None = None
    """The number of the reprocessing that derived its events; None: they were derived once."""
    written_at: datetime | None = None

    @property
    def landed_with(self) -> int:
        """The batch that the messages landed with."""
        return self.batch if self.retry_of is None else self.retry_of

    @property
    def accounted(self) -> int:
        """Messages whose fate is known."""
        return self.decoded + self.control + self.quarantined


class SourceFileRow(LedgerRow, frozen=True, kw_only=True):
    """What the source file said when messages were last read."""

    TABLE = "source_files"
    batch: int
    """The newest batch then."""
    declared: str
    """What it said, as JSON (``normalization.source_changes``)."""


class ContentRow(LedgerRow, frozen=True, kw_only=True):
    """Change events of a batch that a plan does not need to tell apart, counted."""

    TABLE = "contents"
    batch: int
    object: str
    database: str | None
    schema: str | None
    name: str
    operation: str
    shape: str | None
    partial: bool
    key: tuple[str, ...] | None
    half: bool
    events: int

    @property
    def moves(self) -> bool:
        """Whether they are INSERTs that may lack values."""
        return self.partial and self.operation == Operation.INSERT

    @property
    def table(self) -> TableId:
        """The table as the source names it."""
        return TableId(self.database, self.schema, self.name)

    @classmethod
    def of(cls, batch: int, content: Content, events: int) -> ContentRow:
        """Return the row for ``events`` change events of one content."""
        table = content.table
        return cls(
            batch=batch,
            object=str(table),
            database=table.database,
            schema=table.schema,
            name=table.name,
            operation=content.operation,
            shape=content.shape,
            partial=content.partial,
            key=content.key,
            half=content.half,
            events=events,
        )


def instant_of(micros: int | None) -> datetime | None:
    """Return epoch µs as a time."""
    return None if micros is None else from_micros(micros)


class ShapeRow(LedgerRow, frozen=True, kw_only=True):
    """The columns (JSON) of a shape, and the batch that it came first in."""

    TABLE = "shapes"
    batch: int
    object: str
    shape: str
    columns: str

    @property
    def seniority(self) -> tuple[int, int, str]:
        """Shapes in its order, by batch and width, keep the source's order of columns as the table grows."""
        return (self.batch, len(self.columns), self.shape)

    def parsed(self) -> Shape:
        """Return the shape."""
        return shape_from(self.columns)


class StatementRow(LedgerRow, frozen=True, kw_only=True):
    """A statement that may change a table, or the beginning of a complete initial load."""

    TABLE = "ddl"
    batch: int
    database: str | None
    schema: str | None
    name: str | None
    position: str
    dialect: str
    statement: str
    at: datetime | None = None
    """When the statement was committed; of a load, when it was read. The column is not a stamp here."""
    together: tuple[str, ...] | None = None
    """Of a part of a statement: the tables that the whole statement changed."""

    @property
    def is_load(self) -> bool:
        """Whether it is the beginning of a load: then ``statement`` is no DDL."""
        return self.dialect == LOAD

    @classmethod
    def of(cls, batch: int, statement: LoggedStatement) -> StatementRow:
        """Return the row of a statement of one batch."""
        table = statement.table or TableId(statement.database, statement.schema, "")
        return cls(
            batch=batch,
            database=table.database,
            schema=table.schema,
            name=table.name or None,
            position=statement.position,
            dialect=statement.dialect,
            statement=statement.text,
            at=instant_of(statement.at),
            together=statement.together or None,
        )


class Snapshots(NamedTuple):
    """Where a cut takes a table."""

    base: int
    """Snapshot of ``main`` that the candidate was built on."""
    candidate: int


class TableRow(LedgerRow, frozen=True, kw_only=True):
    """Where one table stands in one cut, and what became of its events."""

    TABLE = "tables"
    cut: int
    object: str
    target: str | None = None
    state: TableState
    reason: str | None = None
    batch: int
    events: int = 0
    applied: int = 0
    superseded: int = 0
    duplicate: int = 0
    held: int = 0
    quarantined: int = 0
    erased: int | None = None
    rebuilt: str | None = None
    rows_before: int | None = None
    rows_after: int | None = None
    deleted: int | None = None
    committed_at: datetime | None = None
    base: int | None = None
    snapshot: int | None = None
    verdict: VerdictWord | None = None
    written_at: datetime | None = None

    @property
    def snapshots(self) -> Snapshots:
        """The snapshots of a table that was built.

        Raises:
            ValueError: the table has no candidate in this cut.
        """
        if self.base is None or self.snapshot is None:
            raise ValueError(f"{self.object} was not built in cut {self.cut}: it is {self.state}")
        return Snapshots(self.base, self.snapshot)

    def with_counts(self, counts: EventCounts) -> TableRow:
        """Return the row with other counts of its events."""
        return msgspec.structs.replace(self, **counts.by_name())

    @property
    def counts(self) -> EventCounts:
        """What became of the events."""
        return EventCounts(**{name: getattr(self, name) or 0 for name in EventCounts.__struct_fields__})

    @property
    def identifier(self) -> Identifier:
        """The published table.

        Raises:
            ValueError: the row is of a table that has no target.
        """
        if self.target is None:
            raise ValueError(f"{self.object} has no target in cut {self.cut}")
        return Identifier.parse(self.target)


class RebuildRow(LedgerRow, frozen=True, kw_only=True):
    """A request to build a table again from its whole change log."""

    TABLE = "rebuilds"
    object: str
    asked: str


class ReprocessingRow(LedgerRow, frozen=True, kw_only=True):
    """A batch whose events are being derived again."""

    TABLE = "reprocessing"
    batch: int


class CutRow(LedgerRow, frozen=True, kw_only=True):
    """A cut and its state."""

    TABLE = "cuts"
    cut: int
    state: CutState
    batch: int
    reprocessed: int | None = None
    """The newest reprocessing before it was built."""
    given_up: tuple[str, ...] | None = None
    """The open transactions whose events it takes (``transactions: ignore``), and no published cut before it took."""
    built_by: str | None = None
    """A digest of what the source file said about building (``normalization.build_digest``); None: nobody noted it."""
    written_at: datetime | None = None


class TransactionRow(LedgerRow, frozen=True, kw_only=True):
    """How a source transaction stood once a batch was normalized; without an id, that the source sends markers."""

    TABLE = "transactions"
    batch: int
    id: str | None
    state: str
    since: int
    events: int
    seen: str
    written_at: datetime | None = None
