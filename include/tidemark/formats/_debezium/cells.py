"""Images whose columns are cells, as the connectors of YugabyteDB and Cassandra write them.

https://docs.yugabyte.com/stable/additional-features/change-data-capture/ (replica identity ``CHANGE``) and
https://debezium.io/documentation/reference/stable/connectors/cassandra.html:

    {"id": {"value": 1, "set": true}, "name": null, "score": {"value": null, "set": true}}

A cell that is null, or whose ``set`` is false, was not captured: its column is unchanged. A cell with ``set`` and the
value null says that the column is null. Cassandra's operation ``i`` is an upsert: columns that it does not set keep
their values. Its ``r`` is a range tombstone, which deletes rows that it does not name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from tidemark.errors import IncompleteMessageError, MalformedMessageError, MissingKeyError
from tidemark.events import Operation
from tidemark.formats._connect import Struct
from tidemark.formats._debezium.envelope import Row
from tidemark.formats._json import ABSENT, NULL, RowLayout, members, untyped

CASSANDRA = {"i": Operation.UPDATE, "u": Operation.UPDATE, "d": Operation.DELETE}
"""Operations of Cassandra's connector."""

YUGABYTEDB = "yugabytedb"
"""Connector whose columns are cells, or, where its own transform flattens rows, the columns that a change set."""

_RANGE = frozenset({"_range_start", "_range_end"})
"""Members of Cassandra's images that are no columns."""

_encode = msgspec.json.Encoder().encode


class Cell(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One cell. ``deletion_ts`` and ``ttl`` are Cassandra's."""

    value: msgspec.Raw
    set: bool
    deletion_ts: msgspec.Raw = ABSENT
    ttl: msgspec.Raw = ABSENT


class Cells(NamedTuple):
    """An image of cells, read."""

    image: bytes
    """The row of the cells that are set."""
    names: tuple[str, ...]
    """All columns."""
    absent: tuple[str, ...]
    """Columns that are not set."""


_cell = msgspec.json.Decoder(Cell | None)


def may_have(image: bytes) -> bool:
    """Return whether an image may have cells; False for most images without reading them."""
    return b'"set"' in image


def read(image: bytes) -> Cells | None:
    """Return the cells of an image; None if it has a column that is none."""
    found = {name: bytes(raw) for name, raw in members(image).items() if name not in _RANGE}
    try:
        cells = {name: _cell.decode(raw) for name, raw in found.items()}
    except (msgspec.MsgspecError, RecursionError):
        return None
    values = {name: cell.value for name, cell in cells.items() if cell is not None and cell.set}
    if not values:
        return None
    return Cells(_encode(values), tuple(cells), tuple(name for name in cells if name not in values))


def of_flattened(columns: Mapping[str, msgspec.Raw], connector: str | None) -> Cells | None:
    """Return the cells of a flattened row; None if it has none.

    Args:
        columns: of the row, by name.
        connector: that wrote it, where it is known.

    Raises:
        MalformedMessageError: only some columns of a row of YugabyteDB are cells.
    """
    found = read(_encode(columns))
    if found is None and connector == YUGABYTEDB:
        others = [name for name, raw in columns.items() if bytes(raw) != NULL and read(_encode({name: raw})) is None]
        if any(bytes(raw) != NULL and name not in others for name, raw in columns.items()):
            raise MalformedMessageError(
                f"{', '.join(others)} beside columns that are cells: name the fields that the transform adds in the "
                "option `add_fields`"
            )
    return found


def row_of(
    operation: Operation, before: bytes | None, after: bytes | None, typed: RowLayout | None, key: Struct | None
) -> Row | None:
    """Return the row of images with cells; None if they have none.

    Args:
        operation: of the envelope.
        before: the old row.
        after: the new row. For a deleted row of Cassandra it has the key.
        typed: the layout in the message's schema.
        key: the struct of the record key.

    Raises:
        MissingKeyError: a deleted row lacks a part of its key.
    """
    old, new = (read(image) if image is not None else None for image in (before, after))
    deleted = operation is Operation.DELETE
    cells = (old or new) if deleted else new
    if cells is None:
        return None
    names = key.names if key else None
    layout = typed.widened(cells.names) if typed else untyped(cells.names)
    if deleted:
        if lacking := [name for name in names or () if name in cells.absent]:
            raise MissingKeyError(f"a delete without {', '.join(lacking)}, a part of its key: it may delete many rows")
        return Row(operation, cells.image, None, layout, key=names)
    earlier = old.image if old is not None and operation is Operation.UPDATE else None
    if old is not None:
        layout = layout.widened(old.names)
    return Row(operation, earlier, cells.image, layout, bool(cells.absent), cells.absent, names)


def key_of(key: Struct | None) -> Struct | None:
    """Return a record key with the values of its cells, where it has any."""
    cells = read(key.image) if key is not None and may_have(key.image) else None
    return key if key is None or cells is None else Struct(cells.image, key.schema, key.names)


def range_tombstone() -> IncompleteMessageError:
    """Return the error of a delete that does not name its rows."""
    return IncompleteMessageError(
        "`op` r of Cassandra is a range tombstone: it deletes rows that the message does not name; capture the table "
        "again, and delete single rows at the source"
    )
