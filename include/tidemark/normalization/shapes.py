"""The shapes of one task's images, each with an id made from its content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tidemark.events import ChangeEvent, Shape, TableId
from tidemark.values.declared_types import DeclaredEncodings, as_declared, entry_for


class Shapes:
    """Ids of shapes; decoders give the same object again and again."""

    def __init__(self, declared: Mapping[str, DeclaredEncodings]) -> None:
        self._declared = declared
        self._ids: dict[tuple[TableId, int], tuple[Shape, str]] = {}
        self._told: dict[tuple[TableId, str], str] = {}

    def ids_of(self, table: TableId, events: Sequence[ChangeEvent]) -> list[str | None]:
        """Ids of the events' shapes; most often each has that of the one before it."""
        ids: list[str | None] = []
        last: Shape | None = None
        known: str | None = None
        for event in events:
            if event.shape is not last:
                last, known = event.shape, self.id_of(table, event.shape)
            ids.append(known)
        return ids

    def id_of(self, table: TableId, shape: Shape | None) -> str | None:
        """Return the id of a shape, which follows from its content alone; None for none."""
        if shape is None:
            return None
        known = self._ids.get((table, id(shape)))
        if known is None or known[0] is not shape:  # an id may be used again after its object is gone
            written = entry_for(self._declared, str(table))
            full = as_declared(shape, written) if written else shape
            known = self._ids[table, id(shape)] = (shape, full.id)
            if (table, full.id) not in self._told:
                self._told[table, full.id] = msgspec.json.encode(full.columns).decode()
        return known[1]

    def told(self) -> list[tuple[TableId, str, str]]:
        """Return the shapes that were given an id: table, id and columns as JSON."""
        return [(table, shape_id, columns) for (table, shape_id), columns in self._told.items()]
