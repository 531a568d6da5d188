"""Signs of renames of tables that no message reports: one table stops, and another begins there with its columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from tidemark.dumps.file_names import series_of
from tidemark.events import Operation
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import ContentRow, ShapeRow

_APART = timedelta(days=1)
"""Most time between the last event of one table and the first one of the other."""


class _Seen(msgspec.Struct):
    """The events of one table."""

    first: datetime
    last: datetime
    columns: list[frozenset[str]]
    """Of its shapes."""
    loaded: bool
    """Whether rows of an initial load are among them."""


class RenameSign(NamedTuple):
    """A table that may be another one under a new name."""

    old: str
    new: str
    at: datetime

    def __str__(self) -> str:
        """Return what was seen, and what to do."""
        return (
            f"{self.new} may be {self.old} under a new name, which no message says: {self.old} has no event since "
            f"{self.at:%Y-%m-%d %H:%M} UTC, and {self.new} begins there with its columns. If so, {self.new} lacks the "
            f"rows from before: load it anew, and drop {self.old} when nobody reads it"
        )


def rename_signs(
    spans: Iterable[SpanRow], shapes: Iterable[ShapeRow], contents: Iterable[ContentRow], known: Container[str]
) -> list[RenameSign]:
    """Return the tables that may have been renamed, each new one with the old one that stopped last before it.

    A table that was loaded when it began lacks nothing. Tables whose names differ in numbers alone are made by the
    day or the month, and none of them is another one.

    Args:
        spans: what the events of each table span.
        shapes: the columns that they have.
        contents: what they are.
        known: tables that statements are known to have renamed.
    """
    loaded = {row.object for row in contents if row.operation == Operation.SNAPSHOT}
    tables = {name: each for name, each in _shapes_and_ends(spans, shapes, loaded).items() if name not in known}
    found = []
    for new, begun in tables.items():
        if begun.loaded:
            continue
        stopped = [
            (each.last, old)
            for old, each in tables.items()
            if each.last <= begun.first <= each.last + _APART and each.first < begun.first
            if series_of(old) != series_of(new) and each.columns[-1:] == begun.columns[:1]
        ]
        if stopped:
            at, old = max(stopped)
            found.append(RenameSign(old, new, at))
    return sorted(found)


def _shapes_and_ends(spans: Iterable[SpanRow], shapes: Iterable[ShapeRow], loaded: Container[str]) -> dict[str, _Seen]:
    columns: dict[str, list[frozenset[str]]] = defaultdict(list)
    for row in sorted(shapes, key=lambda row: row.batch):
        columns[row.object].append(frozenset(column.name for column in row.parsed().columns))
    found: dict[str, _Seen] = {}
    for span in spans:
        if span.first is None or span.last is None:
            continue
        each = found.setdefault(
            span.object,
            _Seen(span.first, span.last, columns[span.object], span.object in loaded or span.unplaced > 0),
        )
        each.first, each.last = min(each.first, span.first), max(each.last, span.last)
    return {name: each for name, each in found.items() if each.columns}
