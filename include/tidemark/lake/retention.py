"""Drops batches of a log that are past their time, and remembers which, so that nobody takes what is left for all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial, reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import And, Or
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from tidemark.lake import file_edits
from tidemark.lake.commits import commit_files
from tidemark.lake.data_files import Partition
from tidemark.lake.filters import among, at_most, equals, not_null
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import QUARANTINE, VARIED, RowKind

GONE_PROPERTY = "tidemark.gone-up-to"
"""Of a log: the last batch whose rows are past their time; written before they go. In a change log, the last batch from
which any table lost its events."""

_BYTES = ("key", "value", "detail")
"""Columns of a message in quarantine that may quote it."""


def gone_up_to(table: Table | None) -> int:
    """Return the last batch that a log does not hold any more; 0 for a log that holds all of them."""
    return 0 if table is None else int(table.properties.get(GONE_PROPERTY, "0"))


def drop_up_to(table: Table, batch: int) -> int:
    """Drop the batches of a log up to one, in whole files, and return how many files went.

    The files are removed with the snapshots that still have them.
    """
    _remember(table, batch)
    files = [task.file for task in table.scan(row_filter=at_most("batch", gone_up_to(table))).plan_files()]
    return _drop(table, files)


def batches_of(log: Table, objects: Collection[str], up_to: int) -> set[tuple[str, int]]:
    """Return the tables and batches, up to one, with change events in a change log. Only metadata is read."""
    return {(name, batch) for name, batch, _ in _files_of(log, objects, up_to)}


def drop_events(log: Table, objects: Collection[str], up_to: int) -> int:
    """Drop the change events of tables up to a batch from a change log, in whole files; return how many files went.

    Schema changes, control events and what erasures left stay: later events are read with them.
    """
    files = [file for _, _, file in _files_of(log, objects, up_to)] if objects else []
    if files:
        _remember(log, up_to)
    return _drop(log, files)


def _remember(log: Table, batch: int) -> None:
    if batch > gone_up_to(log):
        with log.transaction() as transaction:
            transaction.set_properties({GONE_PROPERTY: str(batch)})
        log.refresh()


def _drop(log: Table, files: Sequence[DataFile]) -> int:
    if files:
        commit_files(log, [], replaced=files, summary=file_edits.markers(log))
    return len(files)


def _files_of(log: Table, objects: Collection[str], up_to: int) -> Iterator[tuple[str, int, DataFile]]:
    where = And(equals("kind", RowKind.CHANGE.value), among("object", objects), at_most("batch", up_to))
    for task in log.scan(row_filter=where).plan_files():
        fields = log.specs()[task.file.spec_id].fields
        partition = {field.name: task.file.partition[place] for place, field in enumerate(fields)}
        yield partition["object"], partition["batch"], task.file


def without_bytes(lake: Lake, quarantine: Table, up_to: int) -> int:
    """Take bytes and details from the messages in quarantine up to a batch; return how many messages had any."""
    where = And(at_most("batch", up_to), Or(*map(not_null, _BYTES)))
    if next(iter(quarantine.scan(row_filter=where).plan_files()), None) is None:
        return 0
    edit = file_edits.Edit(where=where, holds=partial(_has_bytes, up_to), instead=_bare, plain=VARIED)
    return file_edits.apply(lake, quarantine, QUARANTINE, edit).rows


def _has_bytes(up_to: int, rows: pa.RecordBatch) -> pa.Array:
    old = pc.less_equal(rows.column("batch"), up_to)
    return pc.and_(old, reduce(pc.or_, [pc.is_valid(rows.column(name)) for name in _BYTES]))


def _bare(partition: Partition, rows: pa.RecordBatch) -> file_edits.Rows:
    nulls = {name: pa.nulls(rows.num_rows, rows.schema.field(name).type) for name in _BYTES}
    columns = [nulls.get(name, rows.column(name)) for name in rows.schema.names]
    yield partition, pa.RecordBatch.from_arrays(columns, names=rows.schema.names)
