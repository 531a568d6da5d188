"""The history for tools that write no statements: changes of rows show the effect of a statement.

Row images alone cannot show that a column was renamed. It would be published as a new column beside the old one, and
would be null in all rows that do not change afterwards. They cannot show a default either, nor that a column was
dropped. Users of such a tool let it send the rows again after a statement. So the dump has, in place of the statement
and in one transaction, a delete of each row that the statement changed, and an insert of the new row. The tables of
all formats then end with the same rows in the same columns. With a tool without statements, dropped columns remain
beside them, null in every row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidemark.demo.story.model import Row, RowEvent, Rows, Schema, SchemaEvent, ShopHistory, Transaction, act
from tidemark.events import Operation


def rows_only(history: ShopHistory, *, truncates: bool = False) -> ShopHistory:
    """Return the history with row events that show the effect of its statements.

    Args:
        history: The history with statements.
        truncates: Whether the tool writes a TRUNCATE. If not, the rows of the table are deleted one by one.

    Returns:
        The same commits with the same ids and times. Statements stay in it, for tools that write at least the new
        columns. A TRUNCATE that became deletes does not stay.
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
    changed = [key for key, row in rows.items() if key not in after or _not_null(after[key]) != _not_null(row)]
    for key in changed:
        yield RowEvent(schema=schema, operation=Operation.DELETE, number=0, before=rows[key])
    for key in changed:
        if key in after:
            yield RowEvent(schema=ddl.schema, operation=Operation.INSERT, number=0, after=after[key])


def _not_null(row: Row) -> Row:
    """Return the columns of a row that are not null, so that a null column equals one that the row lacks."""
    return {name: value for name, value in row.items() if value is not None}
