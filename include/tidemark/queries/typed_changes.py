"""The view ``<table>__changes``: every event of a table, typed, with operation, position, times and origin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyiceberg.table import Table
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.ddl import history
from tidemark.ddl import names as ddl_names
from tidemark.ddl.lineages import Segment
from tidemark.events import Shape
from tidemark.lake import names as table_names
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RowKind
from tidemark.lake.names import Identifier
from tidemark.lake.properties import OBJECT_PROPERTY, SOURCE_PROPERTY
from tidemark.ledger.ledger import Ledger
from tidemark.queries import row_events
from tidemark.spark.session import open_session
from tidemark.tables import epochs, eras
from tidemark.tables.column_rules import derived_columns, masks_recorded, names_recorded
from tidemark.tables.plan import Shard
from tidemark.tables.schemas import OWN_COLUMNS
from tidemark.tables.shard_rules import recorded
from tidemark.tables.shards import Shards
from tidemark.values.image_reader import field
from tidemark.values.images import NamesByShape, read_images
from tidemark.values.table_columns import Image, TableColumn

_META = (
    "operation",
    "position",
    "committed_at",
    "captured_at",
    "landed_at",
    "transaction_id",
    "transaction_number",
    "transaction_last",
    "partial",
    "absent",
    "batch",
    "file",
    "place",
    "row",
)


def typed_changes(lake: Lake, identifier: Identifier) -> DataFrame:
    """Return the change log of a published table, with the columns and types of the table.

    Returns:
        ``operation``, ``position``, the times, the transaction, ``partial``, ``absent``, the origin, and the structs
        ``before`` and ``after``, with masks as in the table; in no order.
    """
    table = lake.load(identifier)
    source = table.properties[SOURCE_PROPERTY]
    made = derived_columns(table)
    fields = [column for column in table.schema().fields if column.name not in {*OWN_COLUMNS, *made}]
    columns = [TableColumn(column.name, str(column.field_type)) for column in fields]
    folded = recorded(table)
    changelog = open_session().table(lake.spark_name(table_names.change_log(source)))
    segments = [Segment(each, "", None) for each in folded] or eras.segments_of(table)
    shapes: Mapping[str, Shape] = Ledger(lake, source).shapes_of(*eras.names_of(segments))
    frame = changelog.where((F.col("kind") == RowKind.CHANGE) & eras.are_within(segments))
    by_shape: NamesByShape = {}
    if folded:
        shards = _shards(lake, table, folded)
        frame = shards.read(frame)
        shapes, by_shape = shards.shapes()
    elif (past := _past(lake, table, shapes.values(), columns)) is not None:
        every = [f"{shape}@{epoch}" for shape in shapes for epoch in range(len(past.renamings) + 1)]
        shapes, by_shape = epochs.shapes_by_epoch(shapes, past, every)
        frame = frame.withColumn("shape", epochs.shape_in_epoch(past))
    images = [Image(F.col(image), columns, f"{image}_image") for image in ("before", "after")]
    frame = read_images(frame, images, shapes=shapes, names=by_shape, masks=masks_recorded(table))
    return frame.select(*_META, *(_struct(image, columns) for image in ("before", "after")))


def _shards(lake: Lake, table: Table, folded: Mapping[str, Mapping[str, str]]) -> Shards:
    """Return how the events of a folded table are read, with the schema changes up to the published ones."""
    ledger = Ledger(lake, table.properties[SOURCE_PROPERTY])
    row = ledger.published_tables().get(table.properties[OBJECT_PROPERTY])
    known = history.histories(ledger, folded) if row else {}
    until = {name: each.until(row.batch) for name, each in known.items()} if row else {}
    shards = [
        Shard(object=name, added=added, since=0, history=until.get(name, history.SchemaHistory()))
        for name, added in folded.items()
    ]
    return Shards(shards, names_recorded(table), ledger.shapes_by_object(folded), table)


def _past(
    lake: Lake, table: Table, shapes: Iterable[Shape], columns: Iterable[TableColumn]
) -> ddl_names.ColumnNames | None:
    """Return the names of columns through the renames and drops that the table follows, up to the published ones.

    None if no image has a column under another name than today's.
    """
    ledger, name = Ledger(lake, table.properties[SOURCE_PROPERTY]), table.properties[OBJECT_PROPERTY]
    row = ledger.published_tables().get(name)
    renamings = row_events.history(lake, table).until(row.batch).renamings if row else ()
    wire = {column.name for shape in shapes for column in shape.columns}
    spelled = [*wire, *(column.name for column in columns)]
    names = ddl_names.ColumnNames(renamings, spelled, names_recorded(table))
    return names if names.touches(wire) else None


def _struct(image: str, columns: list[TableColumn]) -> Column:
    cells = (F.col(f"{image}_image.{field(n)}").alias(column.name) for n, column in enumerate(columns))
    return F.when(F.col(image).isNotNull(), F.struct(*cells)).alias(image)
