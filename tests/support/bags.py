"""Changes of tables without a key, written down one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from support.histories import position
from support.reference import Change, Row
from tidemark.events import Operation

COLUMNS = {"name": "string", "size": "double", "extra": "long"}
"""Columns of a bag that was made wider."""


class Bag:
    """A table without a key, whose changes a test writes down by the values of whole rows."""

    def __init__(self, name: str, columns: Sequence[str] = ("name", "size")) -> None:
        self.name = name
        self.columns = tuple(columns)

    def wider(self) -> Bag:
        """The same table after a column was added."""
        return Bag(self.name, (*self.columns, "extra"))

    def insert(self, at: int, *values: Any) -> Change:
        """A row was inserted."""
        return self._change(at, Operation.INSERT, None, values)

    def delete(self, at: int, *values: Any) -> Change:
        """A row was deleted."""
        return self._change(at, Operation.DELETE, values, None)

    def update(self, at: int, old: Sequence[Any], new: Sequence[Any]) -> Change:
        """A row was updated."""
        return self._change(at, Operation.UPDATE, old, new)

    def truncate(self, at: int) -> Change:
        """All rows went."""
        return self._change(at, Operation.TRUNCATE, None, None)

    def _change(self, at: int, operation: Operation, old: Sequence[Any] | None, new: Sequence[Any] | None) -> Change:
        before, after = (self._row(old) if old is not None else None), (self._row(new) if new is not None else None)
        return Change(self.name, operation, position(at, operation), (), before, after)

    def _row(self, values: Sequence[Any]) -> Row:
        return dict(zip(self.columns, values, strict=True))
