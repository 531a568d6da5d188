"""The database of the shop. It changes rows, and keeps a log of the changes of each commit."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tidemark.demo.story.model import Row, RowEvent, Rows, Schema, SchemaEvent, Transaction, Value, act, apply
from tidemark.demo.story.schemas import SCHEMAS
from tidemark.events import Operation


class Database:
    """Tables of the shop and the log of the transactions that filled them."""

    def __init__(self) -> None:
        self.rows: dict[str, Rows] = {table: {} for table in SCHEMAS}
        self.log: list[Transaction] = []
        self.attempts: list[Transaction] = []
        """Transactions that were rolled back."""
        self._schemas: dict[str, Schema] = {table: versions[0] for table, versions in SCHEMAS.items()}
        self._open: list[RowEvent] = []

    def load(self, table: str, row: Row) -> None:
        """Add a row of the initial load."""
        self._write(table, Operation.SNAPSHOT, after=row)

    def insert(self, table: str, row: Row) -> None:
        """Insert a row; columns that it does not name are null."""
        self._write(table, Operation.INSERT, after=row)

    def update(self, table: str, *key: Value, **values: Value) -> None:
        """Set columns of the row with this key. If a key column is among them, the row gets another key.

        An update that changes nothing is not logged, as in MySQL's binary log.
        """
        before = self.rows[table][key]
        after = {**before, **values}
        if after != before:
            self._write(table, Operation.UPDATE, before=before, after=after)

    def delete(self, table: str, *key: Value) -> None:
        """Delete the row with this key."""
        self._write(table, Operation.DELETE, before=self.rows[table][key])

    def replace_one(self, table: str, row: Row, **values: Value) -> None:
        """Set columns of one row of a table without a key: of the oldest row that equals ``row``."""
        before = self._complete(table, row)
        self._write(table, Operation.UPDATE, before=before, after={**before, **values})

    def delete_one(self, table: str, row: Row) -> None:
        """Delete one row of a table without a key: the oldest row that equals ``row``."""
        self._write(table, Operation.DELETE, before=self._complete(table, row))

    def commit(self, at: datetime, *, late: bool = False, split: bool = False) -> None:
        """Commit the transaction: append its events to the log."""
        events, self._open = tuple(self._open), []
        if events:
            self.log.append(Transaction(id=self._next(), committed_at=at, events=events, late=late, split=split))

    def roll_back(self, at: datetime, *, split: bool = False) -> None:
        """Roll the transaction back: undo its events."""
        events, self._open = tuple(self._open), []
        for event in reversed(events):
            apply(self.rows[event.table], replace(event, before=event.after, after=event.before))
        self.attempts.append(Transaction(id=self._next(), committed_at=at, events=events, split=split))

    def define(self, at: datetime, ddl: SchemaEvent) -> None:
        """Run a DDL statement, which is a transaction of its own."""
        self._schemas[ddl.schema.table] = ddl.schema
        self.log.append(Transaction(id=self._next(), committed_at=at, ddl=ddl))
        act(self.rows, self.log[-1])

    def _next(self) -> int:
        return len(self.log) + len(self.attempts) + 1

    def _write(self, table: str, operation: Operation, *, before: Row | None = None, after: Row | None = None) -> None:
        event = RowEvent(
            schema=self._schemas[table],
            operation=operation,
            number=len(self._open) + 1,
            before=before,
            after=None if after is None else self._complete(table, after),
        )
        apply(self.rows[table], event)
        self._open.append(event)

    def _complete(self, table: str, row: Row) -> Row:
        return {column.name: row.get(column.name) for column in self._schemas[table].columns}
