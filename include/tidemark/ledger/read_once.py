"""A ledger for readers that ask many questions: it reads each of its tables once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import expression_to_pyarrow
from pyiceberg.schema import Schema

from tidemark.lake.lake import Lake
from tidemark.ledger import storage
from tidemark.ledger.ledger import Ledger


class ReadOnce(Ledger):
    """The ledger of one source, as each of its tables was when it was first read."""

    def __init__(self, lake: Lake, source: str) -> None:
        super().__init__(lake, source)
        self._kept: dict[str, tuple[Schema, pa.Table]] = {}

    def read(self, name: str, *conditions: BooleanExpression, columns: Sequence[str] = ("*",)) -> list[dict[str, Any]]:
        """Return the rows of one ledger table for this source as dictionaries, stamp and all, in no order."""
        if name not in self._kept:
            table = storage.find(self._lake, name)
            if table is None:
                return []
            self._kept[name] = table.schema(), storage.read(table, self._source, (), ("*",))
        schema, rows = self._kept[name]
        for condition in conditions:
            rows = rows.filter(expression_to_pyarrow(bind(schema, condition, case_sensitive=True)))
        known = storage.known_columns(columns, rows.schema.names)
        found: list[dict[str, Any]] = (rows if "*" in columns else rows.select(known)).to_pylist()
        return found
