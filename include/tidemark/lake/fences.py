"""Fences: what keeps a writer that lost its source from committing, in the commit itself.

A process may be stopped at any instruction, for any time, and go on. Asking whether it still holds its source is of no
use right before a commit: it may be stopped between the two. So each commit that this process makes carries the
question as a requirement, which the catalog checks in the same step that changes the table.

The requirement is about a branch of the table, ``writer_<source>``, with no rows: its one snapshot carries the *token*
of the writer that put it there. Who takes a source over puts a new one on each table of the source (``shut``) before it
reads any of them. Each commit of the earlier writer then fails, also one that is under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import AssertRefSnapshotId, TableRequirement, TableUpdate

from tidemark.errors import LostSourceError
from tidemark.lake import clocks, names
from tidemark.lake.retries import retried

_TOKEN = "tidemark.writer"  # noqa: S105  an entry in a snapshot's summary, and no secret


class Writer(Protocol):
    """Whoever holds the lock of a source in this process."""

    @property
    def token(self) -> int | None:
        """The number of the writer, above the numbers of all writers before it; None where no fence is needed."""

    def require(self) -> None:
        """Raise ``LostSourceError`` if this process is known to hold the source no longer."""


_writers: dict[str, Writer] = {}
"""By source, who writes it in this process."""


@contextmanager
def writing(source: str, writer: Writer) -> Iterator[None]:
    """Let every commit of this process require that ``writer`` was not shut out."""
    _writers[source] = writer
    try:
        yield
    finally:
        del _writers[source]


def guarded(catalog: Catalog) -> Catalog:
    """Return the catalog; its commits require what the writers of this process have to, and no time goes back."""
    commit = clocks.watched(catalog).commit_table

    def commit_table(
        table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        updates = clocks.not_before(updates, table.metadata.last_updated_ms)
        if names.is_lease(table.name()):
            return commit(table, requirements, updates)
        fences = tuple(_fences(table))
        try:
            return commit(table, (*requirements, *fences), updates)
        except CommitFailedException:
            if fences:
                _refuse_shut_out(catalog, table)
            raise

    unchecked: Any = catalog  # a table commits by the catalog that it was loaded from
    unchecked.commit_table = commit_table
    return catalog


def shut(table: Table, source: str, token: int) -> None:
    """Make every commit to a table fail that a writer of the source with a lower token makes from now on."""
    if token_of(table, source) < token:
        _put(table, source, token)


@retried(CommitFailedException)
def _put(table: Table, source: str, token: int) -> None:
    table.refresh()
    if table.current_snapshot() is None:  # only then may a table have other branches
        with table.transaction() as transaction, transaction.update_snapshot().fast_append():
            pass
    entry = {_TOKEN: str(token)}
    with table.transaction() as transaction:
        branch = transaction.update_snapshot(snapshot_properties=entry, branch=names.fence(source))
        with branch.fast_append():
            pass


def _fences(table: Table) -> Iterable[TableRequirement]:
    """Yield what a commit to a table requires: its fences stand as they stood when the table was read.

    Raises:
        LostSourceError: the source was lost, or the table shuts this writer out.
    """
    for source, writer in tuple(_writers.items()):
        writer.require()
        if writer.token is None or not table.metadata.snapshots:
            continue
        _refuse(table, source, writer.token)
        ref = table.metadata.refs.get(names.fence(source))
        yield AssertRefSnapshotId.model_validate(
            {"ref": names.fence(source), "snapshot-id": ref.snapshot_id if ref else None}
        )


def _refuse_shut_out(catalog: Catalog, table: Table) -> None:
    """Raise ``LostSourceError`` if a commit failed because the table shuts this writer out."""
    try:
        now = catalog.load_table(table.name())
    except NoSuchTableError:
        return
    for source, writer in tuple(_writers.items()):
        if writer.token is not None:
            _refuse(now, source, writer.token)


def _refuse(table: Table, source: str, token: int) -> None:
    newest = token_of(table, source)
    if newest > token:
        raise LostSourceError(
            f"{source}: another run took this source over (its number is {newest}, this run's is {token}), because "
            f"this one did not say in time that it still writes. Nothing more of this run is committed, and "
            f"{'.'.join(table.name())} stays as it is. Run it again when the other is over."
        )


def token_of(table: Table, source: str) -> int:
    """Return the number of the writer that put the fence of a source on a table; 0 if there is none."""
    snapshot = table.snapshot_by_name(names.fence(source))
    entries = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary else {}
    return int(entries.get(_TOKEN, 0))
