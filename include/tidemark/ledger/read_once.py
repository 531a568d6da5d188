"""A ledger for readers that ask many questions: it reads each of its tables once."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import expression_to_pyarrow
from pyiceberg.schema import Schema

from tidemark.lake.lake import Lake
from tidemark.ledger import storage
from tidemark.ledger.ledger import Ledger, R
from tidemark.ledger.schemas import SCHEMAS


class ReadOnce(Ledger):
    """The ledger of one source, as each of its tables was when it was first read, or last written through this one."""

    def __init__(self, lake: Lake, source: str) -> None:
        super().__init__(lake, source)
        self._kept: dict[str, tuple[Schema, pa.Table]] = {}

    def arrow(self, name: str, *conditions: BooleanExpression, columns: Sequence[str] = ("*",)) -> pa.Table:
        """Return the rows of one ledger table for this source, stamp and all, in no order."""
        if name not in self._kept:
            table = storage.find(self._lake, name)
            if table is None:
                return SCHEMAS[name].empty_table()
            self._kept[name] = table.schema(), storage.read(table, self._source, (), ("*",))
        schema, rows = self._kept[name]
        for condition in conditions:
            rows = rows.filter(expression_to_pyarrow(bind(schema, condition, case_sensitive=True)))
        return rows if "*" in columns else rows.select(storage.known_columns(columns, rows.schema.names))

    def replace(self, kind: type[R], rows: Sequence[R], *conditions: BooleanExpression) -> None:
        """Put rows in the place of this source's rows that the conditions name (no condition: only append)."""
        super().replace(kind, rows, *conditions)
        self._kept.pop(kind.TABLE, None)

    def forget(self, kind: type[R], *conditions: BooleanExpression) -> None:
        """Delete the rows of this source that the conditions name; without conditions all of them."""
        super().forget(kind, *conditions)
        self._kept.pop(kind.TABLE, None)
