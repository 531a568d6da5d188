"""The shapes of the images that one task decodes. A shape's id is made from its content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from tidemark.events import ChangeEvent, Shape, TableId
from tidemark.values.declared_types import DeclaredEncodings, as_declared, entry_for

MOST_SHAPES: Final = 4096
"""Shape objects that are known at one time. A decoder whose own cache is too small makes a new one for each message."""

_K = TypeVar("_K")
_V = TypeVar("_V")


def bounded(known: dict[_K, _V]) -> dict[_K, _V]:
    """Return what is known by shape object. It is forgotten first if it is of ``MOST_SHAPES``: it holds the objects."""
    if len(known) >= MOST_SHAPES:
        known.clear()
    return known


class Shapes:
    """Gives shapes their ids. It is fast when the same shape object comes again, which is usual for decoders."""

    def __init__(self, declared: Mapping[str, DeclaredEncodings]) -> None:
        self._declared = declared
        self._ids: dict[tuple[TableId, int], tuple[Shape, str]] = {}
        self._columns: dict[tuple[TableId, str], str] = {}
        """Columns as JSON, by table and id."""

    def ids_of(self, table: TableId, events: Sequence[ChangeEvent]) -> list[str | None]:
        """Return the ids of the events' shapes. Most events have the same shape as the event before."""
        ids: list[str | None] = []
        last: Shape | None = None
        known: str | None = None
        for event in events:
            if event.shape is not last:
                last, known = event.shape, self.id_of(table, event.shape)
            ids.append(known)
        return ids

    def id_of(self, table: TableId, shape: Shape | None) -> str | None:
        """Return the id of a shape, which depends on its content alone; None if there is no shape."""
        if shape is None:
            return None
        known = self._ids.get((table, id(shape)))
        if known is None or known[0] is not shape:  # Python may use an id again when its object is gone
            written = entry_for(self._declared, str(table))
            full = as_declared(shape, written) if written else shape
            known = bounded(self._ids)[table, id(shape)] = (shape, full.id)
            if (table, full.id) not in self._columns:
                self._columns[table, full.id] = msgspec.json.encode(full.columns).decode()
        return known[1]

    def entries(self) -> list[tuple[TableId, str, str]]:
        """Return the table, id and columns (JSON) of each shape that was given an id."""
        return [(table, shape_id, columns) for (table, shape_id), columns in self._columns.items()]
