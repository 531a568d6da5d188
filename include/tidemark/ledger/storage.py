"""How rows of the ledger's tables are exchanged: one commit each, whatever is in it, without Spark."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import reduce
from threading import Lock
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import ArrowScan, expression_to_pyarrow
from pyiceberg.table import FileScanTask, Table

from tidemark.lake import names as table_names
from tidemark.lake.commits import commit_files
from tidemark.lake.data_files import FileWriter
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake, with_columns
from tidemark.lake.properties import LAKE_PROPERTY, LAKE_VERSION, TABLE_PROPERTIES, require_known
from tidemark.lake.retries import retried
from tidemark.ledger.schemas import SCHEMAS

_retried = retried(CommitFailedException, ValidationException, attempts=12)
"""Two sources may write the ledger at once; their commits do not conflict, they only have to queue. A commit that finds
its files replaced already (it was written, and its answer got lost) writes the same rows again."""

_MANY_SNAPSHOTS = 40
"""Snapshots of a ledger table from which on all but the newest are expired.

Each commit reads, copies and writes the list of them, and nothing reads an old one."""

_KEPT_SNAPSHOTS = 10

_SMALL = 1 << 20
"""Bytes of a file below which each commit puts its rows into the file that it writes.

A source then has one small file in a ledger table, whatever the number of its runs, and a commit reads and writes a
megabyte at the most beside its own rows."""


@_retried
def replace(lake: Lake, name: str, source: str, rows: pa.Table, where: BooleanExpression | None) -> None:
    """Put rows of a source in the place of those that ``where`` names; None: only append."""
    _exchange(lake, table_of(lake, name), source, rows, where)


def table_of(lake: Lake, name: str) -> Table:
    """Return a table of the ledger; make it if it is missing.

    Raises:
        ConfigurationError: a newer version of Tidemark wrote the lake.
    """
    properties = {**TABLE_PROPERTIES, LAKE_PROPERTY: str(LAKE_VERSION)}
    return require_known(lake.ensure(table_names.ledger(name), SCHEMAS[name], properties, partition_by=["source"]))


def find(lake: Lake, name: str) -> Table | None:
    """Return a table of the ledger, if it is there; errors as ``table_of``."""
    table = lake.find(table_names.ledger(name))
    return None if table is None else require_known(table)


def read(table: Table, source: str, conditions: Sequence[BooleanExpression], columns: Sequence[str]) -> pa.Table:
    """Return the rows of a source in a table of the ledger that all conditions name.

    The stages of a run ask the same table again and again. So the rows of a source are kept where they are few.

    Args:
        table: the table.
        source: the source.
        conditions: about its rows.
        columns: the columns to return, as far as the table has them (``known_columns``); ``*`` for all.
    """
    rows, known = _content(table, source), known_columns(columns, table.schema().column_names)
    if rows is None:
        where = reduce(And, conditions, equals("source", source))
        return table.scan(row_filter=where, selected_fields=tuple(known)).to_arrow()
    for condition in conditions:
        rows = rows.filter(_in_arrow(table, condition))
    return rows if "*" in columns else rows.select(known)


def newest(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    """Return of the rows that agree in the columns ``by`` the one with the highest cut, ordered by it.

    A ledger keeps a row for each table in each cut, for years: few are wanted, and a row as an object costs the most.
    """
    ordered = rows.sort_by("cut")
    numbered = ordered.select(by).append_column("", pa.array(range(ordered.num_rows), pa.int64()))
    last = numbered.group_by(list(by), use_threads=False).aggregate([("", "max")])["_max"]
    return ordered.take(last.take(pc.sort_indices(last)))


def known_columns(wanted: Sequence[str], there: Collection[str]) -> list[str]:
    """Return the columns that a table has of those that are wanted; ``*`` stays.

    A table that an earlier version made gets its newest columns when it is next written.
    """
    return [name for name in wanted if name == "*" or name in there]


class _Content(NamedTuple):
    """The rows of a source in one version of a table."""

    version: tuple[int | None, int]
    rows: pa.Table | None
    """None if they are many."""


_contents: OrderedDict[tuple[str, str], _Content] = OrderedDict()
"""By table and source, what it had when it was last read or written. A version of a table never changes."""

_lock = Lock()

_SMALL_CONTENT, _KEPT_CONTENTS = 4 << 20, 64
"""Bytes in memory of a content that is kept, and how many are."""


def _content(table: Table, source: str) -> pa.Table | None:
    """Return all rows of a source in a table; None if they are many."""
    version = _version(table)
    known = _contents.get(_name(table, source))
    if known is not None and known.version == version:
        return known.rows
    tasks = list(table.scan(row_filter=equals("source", source)).plan_files())
    is_few = sum(task.file.file_size_in_bytes for task in tasks) < _SMALL
    rows = _rows_of(table, tasks) if is_few else None
    _keep(table, source, version, rows)
    return rows


def _keep(table: Table, source: str, version: tuple[int | None, int], rows: pa.Table | None) -> None:
    name = _name(table, source)
    is_kept = rows is not None and rows.nbytes <= _SMALL_CONTENT
    with _lock:
        _contents.pop(name, None)
        _contents[name] = _Content(version, rows if is_kept else None)
        while len(_contents) > _KEPT_CONTENTS:
            _contents.popitem(last=False)


def _name(table: Table, source: str) -> tuple[str, str]:
    return str(table.metadata.table_uuid), source


def _version(table: Table) -> tuple[int | None, int]:
    return table.metadata.current_snapshot_id, table.metadata.current_schema_id


def _rows_of(table: Table, tasks: Iterable[FileScanTask]) -> pa.Table:
    return ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_table(tasks)


def _in_arrow(table: Table, where: BooleanExpression) -> pc.Expression:
    return expression_to_pyarrow(bind(table.schema(), where, case_sensitive=True), table.schema())


@_retried
def delete(lake: Lake, name: str, source: str, where: BooleanExpression) -> None:
    """Delete the rows of a source that ``where`` names."""
    if (table := find(lake, name)) is not None:
        _exchange(lake, table, source, SCHEMAS[name].empty_table(), where)


def _exchange(lake: Lake, table: Table, source: str, rows: pa.Table, where: BooleanExpression | None) -> None:
    """Put rows in the place of the rows that ``where`` names, in one commit; None: only append.

    The files that hold those rows, and small ones, are replaced by one file, which also has their other rows. A commit
    costs much the same whatever is in it: this is one commit, where PyIceberg's overwrite makes two or three.
    """
    table = with_columns(table, rows.schema)
    tasks = _to_replace(table, source, where)
    known = _content(table, source)
    held = _rows_of(table, tasks) if known is None else known
    others = held.filter(_unnamed(table, AlwaysFalse() if where is None else where))
    if rows.num_rows > 0 or len(others) < len(held):
        before = table.metadata.current_snapshot_id
        written = pa.concat_tables([rows, others.select(rows.schema.names).cast(rows.schema)]).combine_chunks()
        _write(lake, table, source, written, tasks)
        # What is few is one file, which this commit wrote, unless another writer was there in between.
        newest = table.current_snapshot()
        if known is not None and newest is not None and newest.parent_snapshot_id == before:
            _keep(table, source, _version(table), written)
        _expire(table)


def _to_replace(table: Table, source: str, where: BooleanExpression | None) -> list[FileScanTask]:
    """Return the files of a source that are small, or may hold rows that ``where`` names."""
    files = list(table.scan(row_filter=equals("source", source)).plan_files())
    small = [task for task in files if task.file.file_size_in_bytes < _SMALL]
    if where is None or len(small) == len(files):
        return small
    found = table.scan(row_filter=where).plan_files()
    return [*small, *(task for task in found if task.file.file_size_in_bytes >= _SMALL)]


def _unnamed(table: Table, where: BooleanExpression) -> pc.Expression:
    """Return what names the rows that ``where`` does not."""
    named = _in_arrow(table, where)
    return named.is_null() | ~named


def _write(lake: Lake, table: Table, source: str, rows: pa.Table, instead_of: Sequence[FileScanTask]) -> None:
    writer = FileWriter(lake.folder_of(table, rows.schema))
    for batch in rows.to_batches():
        writer.write((source,), batch)
    commit_files(table, writer.close(), replaced=[task.file for task in instead_of])


def _expire(table: Table) -> None:
    """Drop old snapshots from the table's metadata; their files stay until `maintain` removes what nothing uses.

    Where another writer was faster, or has dropped them (a ``ValueError``), the next commit finds what is left. The row
    is written by then, so nothing may make the caller write it again.
    """
    snapshots = sorted(table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number or 0)
    if len(snapshots) >= _MANY_SNAPSHOTS:
        named = {ref.snapshot_id for ref in table.refs().values()}
        gone = [each.snapshot_id for each in snapshots[:-_KEPT_SNAPSHOTS] if each.snapshot_id not in named]
        with suppress(CommitFailedException, ValidationException, ValueError):
            table.maintenance.expire_snapshots().by_ids(gone).commit()
