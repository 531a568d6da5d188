"""The history for tools that tell no statements: what a statement did to rows comes as changes of these rows.

A column with another name cannot be told by row images alone: it would be published as a new one, null in all rows
that nothing touched, beside the old one. Nor can a default, or that a column went. Who runs such a tool has the rows
sent again after a statement, so that is what the dump holds, in place of the statement and in one transaction: each
row that the statement changed is deleted as it was and inserted as it is. So the tables of all formats end with the
same rows in the same columns; beside them a tool without statements leaves the columns that went, null in every row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidemark.demo.story.model import History, Row, RowEvent, Rows, Schema, SchemaEvent, Transaction, act
from tidemark.events import Operation


def rows_only(history: History, *, truncates: bool = False) -> History:
    """Return the history with row events for what its statements did.

    Args:
        history: As it happened.
        truncates: The tool tells that a table was emptied; else the rows that were there are deleted one by one.

    Returns:
        The same commits with the same ids and times. Statements stay, for tools that tell at least the new columns,
        but for those that emptied a table and are spelled out.
    """
    state: dict[str, Rows] = {table: {} for table in history.schemas}
    schemas = {table: versions[0] for table, versions in history.schemas.items()}
    transactions = []
    for transaction in history.transactions:
        ddl = transaction.ddl
        if ddl is None or (ddl.kind == "TRUNCATE" and truncates):
            transactions.append(transaction)
        else:
            table = ddl.schema.table
            transactions.append(_spelled_out(transaction, ddl, state[table], schemas[table]))
            schemas[table] = ddl.schema
        act(state, transaction)
    return replace(history, transactions=tuple(transactions))


def _spelled_out(transaction: Transaction, ddl: SchemaEvent, rows: Rows, schema: Schema) -> Transaction:
    events = tuple(replace(event, number=number) for number, event in enumerate(_events(ddl, rows, schema), start=1))
    return replace(transaction, events=events, ddl=None if ddl.kind == "TRUNCATE" else ddl)


def _events(ddl: SchemaEvent, rows: Rows, schema: Schema) -> Iterator[RowEvent]:
    after = ddl.alter(rows)
    changed = [key for key, row in rows.items() if key not in after or _told(after[key]) != _told(row)]
    for key in changed:
        yield RowEvent(schema=schema, operation=Operation.DELETE, number=0, before=rows[key])
    for key in changed:
        if key in after:
            yield RowEvent(schema=ddl.schema, operation=Operation.INSERT, number=0, after=after[key])


def _told(row: Row) -> Row:
    """What a row says: a column that it lacks is null."""
    return {name: value for name, value in row.items() if value is not None}
