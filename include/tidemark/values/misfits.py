"""What does not fit in an image: the value, its column, its encoding and type, and the remedy, as ``decode`` says it.

Spark's workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

import msgspec
import pyarrow as pa

from tidemark.errors import UnreadableValueError
from tidemark.events import Column, Shape
from tidemark.values.plain import read_value

PLACE = ("batch", "file", "place", "row")
"""What names an event of the change log."""

DESCRIBED = pa.schema([
    ("batch", pa.int32()), ("file", pa.string()), ("place", pa.int64()), ("row", pa.int32()), ("found", pa.string()),
])  # fmt: skip
"""``found``: what does not fit, as a sentence for people; null where the plain reader finds nothing."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def described(
    batches: Iterable[pa.RecordBatch],
    *,
    shapes: Mapping[str, Shape],
    types: Mapping[str, str],
    hidden: Container[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield a row of ``DESCRIBED`` for each row of an image that does not fit.

    Args:
        batches: ``PLACE``; ``named``, the column that Spark's reader named; ``before``, ``after``; ``shape``, its id.
        shapes: the shapes, by their ids.
        types: the types of the table's columns, by the names that messages have for them.
        hidden: columns, by the same names, whose values are not shown.
    """
    for batch in batches:
        found = []
        for row in batch.to_pylist():
            shape = shapes.get(row["shape"])
            sentence = misfit(row, shape, types, hidden) if shape else None
            found.append({**{name: row[name] for name in PLACE}, "found": sentence})
        yield pa.RecordBatch.from_pylist(found, schema=DESCRIBED)


def misfit(
    row: Mapping[str, str | None], shape: Shape, types: Mapping[str, str], hidden: Container[str] = ()
) -> str | None:
    """Return what the plain reader says of the first value that does not fit; None where it finds none.

    The column that Spark's reader named comes first. Where it named the image as a whole, any column is looked at.
    """
    columns = [column for column in shape.columns if column.name not in hidden]
    columns.sort(key=lambda column: column.name != row["named"])
    for image in (row["after"], row["before"]):
        members = _members.decode(image) if image is not None else {}
        for column in columns:
            raw = members.get(column.name)
            if raw is None:
                continue
            typed = Column(column.name, types.get(column.name, column.type), column.encoding)
            try:
                read_value(bytes(raw), typed, column.type)
            except UnreadableValueError as error:
                return str(error)
    return None
