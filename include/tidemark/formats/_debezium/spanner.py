"""Nulls of Spanner's connector that stand for values which its change stream did not capture.

https://cloud.google.com/spanner/docs/change-streams#value-capture-type and the connector's source
(``KafkaSpannerTableSchemaFactory.getNewValueStructGenerator``, ``Mod``): an image is a struct of all watched columns,
and a column gets a value if the record of the stream has one, else it stays null. The key is in both images. What else
is there, ``source.value_capture_type`` says:

    OLD_AND_NEW_VALUES      an UPDATE has the columns that it changed, in both images; a DELETE has the old row
    NEW_VALUES              an UPDATE has the columns that it changed, and no old values; a DELETE has the key
    NEW_ROW                 an UPDATE has all columns, and no old values; a DELETE has the key
    NEW_ROW_AND_OLD_VALUES  an UPDATE has all columns, and old values of those that it changed; a DELETE has the old row

An INSERT has all columns. OLD_AND_NEW_VALUES is the default of a change stream. There a null in both images was written
over a null, or was not captured: the column keeps its value. A null beside an old value was written. Where there are no
old values, nothing tells a null that was written from a column that was not changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from tidemark.errors import IncompleteMessageError
from tidemark.events import Operation
from tidemark.formats._debezium.envelope import Row
from tidemark.formats._debezium.old_images import without
from tidemark.formats._debezium.source import Source
from tidemark.formats._json import NULL, members

CONNECTOR = "spanner"

_CHANGED_VALUES = "OLD_AND_NEW_VALUES"

_WHOLE_ROWS = frozenset({"NEW_ROW", "NEW_ROW_AND_OLD_VALUES"})
"""With them, an UPDATE has all columns."""

_OLD_ROWS = frozenset({"OLD_AND_NEW_VALUES", "NEW_ROW_AND_OLD_VALUES"})
"""With them, a DELETE has all columns."""

_REMEDY = (
    "let the change stream of Spanner capture whole rows (`value_capture_type = 'NEW_ROW'`), and a transform that "
    "flattens rows add `source.value_capture_type`"
)


def correct(row: Row, source: Source) -> None:
    """Let a row of an envelope have no nulls that its change stream did not capture.

    Raises:
        IncompleteMessageError: a null may be the value, or stand for a column that was not changed.
    """
    captured = source.value_capture_type
    old = members(row.before) if row.before is not None else {}
    unknown: Collection[str] = _nulls(old, row.key)
    if row.operation is Operation.UPDATE and row.after is not None and captured not in _WHOLE_ROWS:
        nulls = _nulls(members(row.after), row.key)
        unchanged = _unchanged(nulls, old if captured == _CHANGED_VALUES else {}, captured)
        row.absent += unchanged
        row.partial = row.partial or bool(unchanged)
        unknown = unchanged if captured == _CHANGED_VALUES else unknown
    elif row.operation is Operation.DELETE and captured in _OLD_ROWS:
        unknown = ()
    if unknown and row.before is not None:
        row.before = without(row.before, unknown)


def corrected(
    image: bytes, operation: Operation, columns: Collection[str], key: Collection[str] | None, source: Source
) -> bytes:
    """Return the image of a flattened row, which has no old row beside it, as ``correct`` makes it.

    Args:
        image: the row.
        operation: of the row.
        columns: the columns of the row.
        key: those of its key.
        source: the block that the added fields make.

    Raises:
        IncompleteMessageError: as ``correct``.
    """
    captured = source.value_capture_type
    if source.connector != CONNECTOR and captured is None:
        return image
    nulls = tuple(name for name in _nulls(members(image), key) if name in columns)
    if operation is Operation.UPDATE and captured not in _WHOLE_ROWS:
        _unchanged(nulls, {}, captured)
    if operation is Operation.DELETE and captured not in _OLD_ROWS and nulls:
        return without(image, nulls)
    return image


def _nulls(found: Mapping[str, msgspec.Raw], key: Collection[str] | None) -> tuple[str, ...]:
    """Return the columns that are null, without those of the key, which each change has."""
    return tuple(name for name, raw in found.items() if bytes(raw) == NULL and name not in (key or ()))


def _unchanged(nulls: tuple[str, ...], old: Mapping[str, msgspec.Raw], captured: str | None) -> tuple[str, ...]:
    """Return which columns an UPDATE did not change, or wrote null over null.

    Args:
        nulls: columns that are null in the new row.
        old: the old values of what the UPDATE changed; empty if it has none.
        captured: what the change stream captures.

    Raises:
        IncompleteMessageError: a column is null in the new row, and not in ``old``.
    """
    unknown = [name for name in nulls if name not in old]
    if unknown:
        named = ", ".join(f"`{name}`" for name in unknown[:10])
        raise IncompleteMessageError(
            f"nulls ({named}) of an UPDATE that may be values, or stand for columns that it did not change, as "
            f"`source.value_capture_type` is {captured or 'not there'}: {_REMEDY}"
        )
    return tuple(name for name in nulls if bytes(old[name]) == NULL)
