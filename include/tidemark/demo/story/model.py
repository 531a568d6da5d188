"""The source database of the demo as plain values: schemas, row events, transactions, and the state they lead to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import groupby

from tidemark.events import Operation

Value = int | Decimal | str | bytes | datetime | date | float | None

Row = dict[str, Value]

Key = tuple[Value, ...]

Rows = dict[Key, Row]
"""Rows of one table by key; those of a table without a key by running numbers, the oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table of the shop."""

    name: str
    type: str
    """Iceberg type string that every format must publish."""
    mysql_type: str
    nullable: bool = False
    key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """One version of a table's columns, in the source's order."""

    table: str
    columns: tuple[Column, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the key columns; a table without a key has none."""
        return tuple(column.name for column in self.columns if column.key)

    def key_of(self, row: Row) -> Key:
        """Values of the key columns of a row."""
        return tuple(row[name] for name in self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEvent:
    """One row changed; images are whole rows.

    SNAPSHOT and INSERT have ``after``, DELETE has ``before``, UPDATE both.
    """

    schema: Schema
    """The table's columns when the row changed."""
    operation: Operation
    number: int
    """Number in the transaction, from 1."""
    before: Row | None = None
    after: Row | None = None

    @property
    def table(self) -> str:
        """Name of the table."""
        return self.schema.table

    @property
    def key_changed(self) -> bool:
        """True for an UPDATE that gave the row another key."""
        if self.before is None or self.after is None:
            return False
        return self.schema.key_of(self.before) != self.schema.key_of(self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaEvent:
    """One DDL statement."""

    kind: str
    """``CREATE``, ``ALTER``, ``TRUNCATE`` or ``CINDEX``."""
    statement: str
    schema: Schema
    """The table after the statement."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Column → what it was called before."""
    defaults: Mapping[str, Value] = field(default_factory=dict)
    """New column → what it has in the rows that are there; null in one that is not named."""

    def alter(self, rows: Rows) -> Rows:
        """Return what the statement makes of the rows of its table."""
        if self.kind == "TRUNCATE":
            return {}
        return {
            key: {column.name: self._cell(row, column.name) for column in self.schema.columns}
            for key, row in rows.items()
        }

    def _cell(self, row: Row, name: str) -> Value:
        return row.get(self.renamed.get(name, name), self.defaults.get(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """What one commit did: row events, or one DDL statement."""

    id: int
    """Ascending with the commits, from 1."""
    committed_at: datetime
    """UTC, whole seconds, as the binary log of MySQL keeps it; no two transactions share one."""
    events: tuple[RowEvent, ...] = ()
    ddl: SchemaEvent | None = None
    late: bool = False
    """Delivered after the run of day 3, in a file of its own day."""
    split: bool = False
    """Its dump breaks off after the first statement; the rest is in the files of the next day."""

    @property
    def initial_load(self) -> bool:
        """True when the events are the rows of an initial load."""
        return any(event.operation is Operation.SNAPSHOT for event in self.events)

    def statements(self) -> Iterator[tuple[RowEvent, ...]]:
        """Yield runs of events of one table and one operation, in order: one bulk statement each."""
        for _, run in groupby(self.events, key=lambda event: (event.table, event.operation)):
            yield tuple(run)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All that happened in the shop, in the order of the commits."""

    transactions: tuple[Transaction, ...]
    schemas: Mapping[str, tuple[Schema, ...]]
    """Every version of every table, the oldest first."""
    attempts: tuple[Transaction, ...] = ()
    """Transactions that were rolled back. Only a tool that reads ahead of the commit tells of them."""

    def columns(self, table: str) -> tuple[Column, ...]:
        """Columns of the newest version of a table."""
        return self.schemas[table][-1].columns

    def events(self) -> Iterator[RowEvent]:
        """Yield every row event, in order."""
        for transaction in self.transactions:
            yield from transaction.events

    def final_state(self) -> dict[str, list[Row]]:
        """Rows of every table after the last commit, by key; each row has the newest columns, in their order."""
        state: dict[str, Rows] = {table: {} for table in self.schemas}
        for transaction in self.transactions:
            act(state, transaction)
        return {table: [rows[key] for key in _sorted(rows)] for table, rows in state.items()}


def act(state: dict[str, Rows], transaction: Transaction) -> None:
    """Do to the tables what a transaction did: its statement, then its row events."""
    if transaction.ddl is not None:
        table = transaction.ddl.schema.table
        state[table] = transaction.ddl.alter(state[table])
    for event in transaction.events:
        apply(state[event.table], event)


def apply(rows: Rows, event: RowEvent) -> None:
    """Do to the rows of one table what the event says. Without a key, the oldest row goes that equals the old one."""
    schema = event.schema
    if event.before is not None:
        before = event.before
        del rows[schema.key_of(before) if schema.key else next(key for key, row in rows.items() if row == before)]
    if event.after is not None:
        rows[schema.key_of(event.after) if schema.key else _next(rows)] = event.after


def _next(rows: Rows) -> Key:
    return (max((number for (number,) in rows if isinstance(number, int)), default=0) + 1,)


def _sorted(rows: Rows) -> list[Key]:
    return sorted(rows, key=lambda key: [part for part in key if isinstance(part, int)])
