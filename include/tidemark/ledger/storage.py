"""How rows of the ledger's tables are exchanged: one commit each, whatever is in it, without Spark."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from threading import Lock

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import ArrowScan, expression_to_pyarrow
from pyiceberg.table import FileScanTask, Table

from tidemark.lake import names as table_names
from tidemark.lake.commits import commit_files
from tidemark.lake.data_files import Writer
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


def read(table: Table, where: BooleanExpression, columns: Sequence[str]) -> pa.Table:
    """Return the rows of a table of the ledger that ``where`` names.

    A version of a table never changes, and the stages of a run ask the same of one version again and again. So small
    answers are kept.
    """
    question = (table.metadata_location, repr(where), tuple(columns))
    known = _answers.get(question)
    if known is None:
        known = table.scan(row_filter=where, selected_fields=tuple(columns)).to_arrow()
        if known.nbytes <= _SMALL_ANSWER:
            with _lock:
                _answers[question] = known
                while len(_answers) > _KEPT_ANSWERS:
                    _answers.popitem(last=False)
    return known


_answers: OrderedDict[tuple[str, str, tuple[str, ...]], pa.Table] = OrderedDict()

_lock = Lock()

_SMALL_ANSWER, _KEPT_ANSWERS = 1 << 16, 200
"""Bytes of an answer that is kept, and how many are."""


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
    others = list(_others(table, tasks, AlwaysFalse() if where is None else where, rows.schema))
    changes = rows.num_rows > 0 or sum(task.file.record_count for task in tasks) > sum(map(len, others))
    if changes:
        _write(lake, table, source, pa.concat_tables([rows, *others]), tasks)


def _to_replace(table: Table, source: str, where: BooleanExpression | None) -> list[FileScanTask]:
    """Return the files of a source that are small, or may hold rows that ``where`` names."""
    files = list(table.scan(row_filter=equals("source", source)).plan_files())
    small = [task for task in files if task.file.file_size_in_bytes < _SMALL]
    if where is None or len(small) == len(files):
        return small
    found = table.scan(row_filter=where).plan_files()
    return [*small, *(task for task in found if task.file.file_size_in_bytes >= _SMALL)]


def _others(
    table: Table, tasks: Iterable[FileScanTask], where: BooleanExpression, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Yield the rows of files that ``where`` does not name."""
    schema_now = table.schema()
    named = expression_to_pyarrow(bind(schema_now, where, case_sensitive=True), schema_now)
    for task in tasks:
        rows = ArrowScan(table.metadata, table.io, schema_now, AlwaysTrue()).to_table([task])
        yield rows.filter(named.is_null() | ~named).select(schema.names).cast(schema)


def _write(lake: Lake, table: Table, source: str, rows: pa.Table, instead_of: Sequence[FileScanTask]) -> None:
    writer = Writer(lake.target(table, rows.schema))
    for batch in rows.combine_chunks().to_batches():
        writer.write((source,), batch)
    commit_files(table, writer.close(), replaced=[task.file for task in instead_of])
    _expire(table)


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
