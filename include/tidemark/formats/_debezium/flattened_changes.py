"""Changes of flattened rows. For their members see ``flattened``."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidemark.events import ChangeEvent, Message, Operation, TableId
from tidemark.formats import _connect
from tidemark.formats._debezium import cells, commits, flattened, spanner, tombstones
from tidemark.formats._debezium import source as debezium_source
from tidemark.formats._debezium.cells import YUGABYTEDB, Cells
from tidemark.formats._debezium.flattened import FlatRow
from tidemark.formats._debezium.log_rows import corrected
from tidemark.formats._debezium.old_images import captured
from tidemark.formats._debezium.options import Options
from tidemark.formats._debezium.placeholders import is_selected, unavailable
from tidemark.formats._debezium.source import Source
from tidemark.formats._json import RowLayout, members, untyped

APART = (
    "Let the flattening transform add the database (`add.fields` with `db,schema`; of MongoDB `db`, of Vitess and "
    "Cassandra `keyspace`) and dump the rows again into a new source, or give each of them a source of its own"
)
"""What keeps rows apart whose tables have one name."""


def change(
    message: Message, value: bytes, found: Mapping[str, msgspec.Raw], schema: bytes | None, options: Options
) -> ChangeEvent:
    """Return the change of a flattened row. Its image is the whole object; its shape lacks the added fields.

    Args:
        message: the row, perhaps with its schema.
        value: the row.
        found: the members of the row.
        schema: of the message, where it has one.
        options: of the source.

    Raises:
        DecodeError: the message is set aside.
    """
    left_out = flattened.metadata_of(tuple(found), options.add_fields, options.add_fields_prefix)
    fields = flattened.added(options.add_fields, options.add_fields_prefix)
    row = flattened.read_row(value, found, left_out, fields)
    source = row.source
    source.connector = source.connector or options.connector
    log, table = tombstones.log_and_table(source, message, options, found)
    places = flattened.source_fields(left_out, options.add_fields, options.add_fields_prefix) if log is source else ()
    read = _cells(row, found)
    if read is not None:
        row, found = row._replace(image=read.image), members(read.image)
    key = flattened.key_of(cells.key_of(_connect.key_struct(message.key)) if message.key else None, row, found)
    layout = ((_connect.row_layout(schema, left_out) if schema else None) or untyped(())).widened(row.columns)
    deleted = row.operation is Operation.DELETE
    image = row.image
    if deleted:
        image = flattened.deleted_image(row, key)
        layout = layout.widened(key.names, _connect.layout_of_key(key)) if key else layout
        image = captured(image, layout, options.unavailable_value)
    image = corrected(image, row.operation, message.key, source, schema) or image
    image = spanner.corrected(image, row.operation, row.columns, key.names if key else None, source)
    absent = () if deleted else _unchanged(image, layout, row, read, options)
    return ChangeEvent(
        table=table,
        operation=row.operation,
        position=debezium_source.position(log, row.operation, None, message, places),
        committed_at=debezium_source.micros(source.ts_us, source.ts_ms),
        captured_at=debezium_source.micros(row.ts_us, row.ts_ms),
        before=image if deleted else None,
        after=None if deleted else image,
        shape=layout.shape,
        partial=bool(absent) or _is_partial(row, options),
        absent=absent,
        key=key.names if key else None,
        load=debezium_source.load(log, row.operation) if options.loads == "complete" else None,
        after_commit=None if log.sequence is None else commits.last_commit(log, row.operation),
        of_database=_of_database(table, source, message.topic),
    )


def _of_database(table: TableId, source: Source, topic: str | None) -> str | None:
    """Return what tells the database of a row from others, where the row names its table without one: its topic.

    Debezium calls a topic by server, database or schema, and table. A topic of another name holds other rows as well.
    """
    if topic is None or table.database is not None or not (source.table or source.collection):
        return None
    return topic.removesuffix(f".{table.name}")


def _cells(row: FlatRow, found: Mapping[str, msgspec.Raw]) -> Cells | None:
    if not cells.may_have(row.image):
        return None
    return cells.of_flattened({name: found[name] for name in row.columns}, row.source.connector)


def _unchanged(image: bytes, layout: RowLayout, row: FlatRow, read: Cells | None, options: Options) -> tuple[str, ...]:
    """Return the columns that are not set, and those that hold the placeholder."""
    unset = read.absent if read is not None else ()
    if _is_partial(row, options):
        unset += layout.missing(row.columns)
    if is_selected(row.operation, row.source):
        return unset
    return unset + unavailable(image, layout, options.unavailable_value)


def _is_partial(row: FlatRow, options: Options) -> bool:
    """Return whether columns that a row lacks are unchanged."""
    if row.operation is not Operation.UPDATE:
        return False
    return row.source.connector == YUGABYTEDB if options.row_image is None else options.row_image == "partial"
