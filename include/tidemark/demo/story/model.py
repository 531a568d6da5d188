"""The source database of the demo as plain values: schemas, row events, transactions, and the resulting rows."""

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
"""Rows of one table by key. In a table without a key, they are numbered, the oldest first."""


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
    """One version of the columns of a table, in the source's order."""

    table: str
    columns: tuple[Column, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the key columns; empty if the table has no key."""
        return tuple(column.name for column in self.columns if column.key)

    def key_of(self, row: Row) -> Key:
        """Return the values of the key columns of a row."""
        return tuple(row[name] for name in self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEvent:
    """A change of one row. Images are whole rows.

    SNAPSHOT and INSERT have ``after``, DELETE has ``before``, UPDATE has both.
    """

    schema: Schema
    """The table's columns when the row changed."""
    operation: Operation
    number: int
    """Number of the event in its transaction, from 1."""
    before: Row | None = None
    after: Row | None = None

    @property
    def table(self) -> str:
        """Name of the table."""
        return self.schema.table

    @property
    def key_changed(self) -> bool:
        """Whether this is an UPDATE that gave the row another key."""
        if self.before is None or self.after is None:
            return False
        return self.schema.key_of(self.before) != self.schema.key_of(self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaEvent:
    """One DDL statement."""

    kind: str
    """``CREATE``, ``ALTER``, ``RENAME``, ``TRUNCATE`` or ``CINDEX``."""
    statement: str
    schema: Schema
    """The table after the statement."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Column -> its old name."""
    defaults: Mapping[str, Value] = field(default_factory=dict)
    """New column -> its value in existing rows. A new column that is not in it is null."""

    def alter(self, rows: Rows) -> Rows:
        """Return the rows of the table after the statement."""
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
    """One transaction: row events, or one DDL statement."""

    id: int
    """Number in the order of the commits, from 1."""
    committed_at: datetime
    """UTC, in whole seconds, as in MySQL's binary log. No two transactions have the same time."""
    events: tuple[RowEvent, ...] = ()
    ddl: SchemaEvent | None = None
    late: bool = False
    """Delivered after the run of its day, in a file of that day."""
    split: bool = False
    """The dump of its day ends after its first statement. The rest is in the files of the next day."""

    @property
    def initial_load(self) -> bool:
        """Whether the events are rows of the initial load."""
        return any(event.operation is Operation.SNAPSHOT for event in self.events)

    def statements(self) -> Iterator[tuple[RowEvent, ...]]:
        """Yield the events of each bulk statement, in order: neighbours with the same table and operation."""
        for _, run in groupby(self.events, key=lambda event: (event.table, event.operation)):
            yield tuple(run)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopHistory:
    """All transactions of the shop, in the order of the commits."""

    transactions: tuple[Transaction, ...]
    schemas: Mapping[str, tuple[Schema, ...]]
    """Every version of every table, the oldest first."""
    attempts: tuple[Transaction, ...] = ()
    """Transactions that were rolled back. Only a tool that reads ahead of the commit has them in its dumps."""

    def columns(self, table: str) -> tuple[Column, ...]:
        """Return the columns of the newest version of a table."""
        return self.schemas[table][-1].columns

    def events(self) -> Iterator[RowEvent]:
        """Yield every row event, in order."""
        for transaction in self.transactions:
            yield from transaction.events

    def final_state(self) -> dict[str, list[Row]]:
        """Return table -> its rows after the last commit, ordered by key. Rows have the newest columns, in order."""
        state: dict[str, Rows] = {table: {} for table in self.schemas}
        for transaction in self.transactions:
            act(state, transaction)
        return {table: [rows[key] for key in _sorted(rows)] for table, rows in state.items()}


def act(state: dict[str, Rows], transaction: Transaction) -> None:
    """Apply a transaction to the tables: its statement, then its row events."""
    if transaction.ddl is not None:
        table = transaction.ddl.schema.table
        state[table] = transaction.ddl.alter(state[table])
    for event in transaction.events:
        apply(state[event.table], event)


def apply(rows: Rows, event: RowEvent) -> None:
    """Apply an event to the rows of its table.

    In a table without a key, the oldest row that equals the before image is removed.
    """
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
