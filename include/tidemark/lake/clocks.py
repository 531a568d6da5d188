"""Times in the metadata of a table never go back, whatever the clock says that made a commit.

Clocks of machines differ, and a clock that is ahead is set back one day. Iceberg's Java library, so Spark and Trino,
opens no table whose times go back by more than a minute. A catalog that is a server refuses such a commit. PyIceberg,
which writes the metadata where the catalog is SQL, Hive or Glue, does not look (docs/adr/0111).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.table import StagedTable, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate, TableRequirement, TableUpdate
from pyiceberg.typedef import Identifier

from tidemark.errors import RetriableLakeError

FAR: Final = timedelta(minutes=1)
"""How far times may go back for Iceberg's Java library."""

_REFUSED: Final = "Invalid update timestamp"
"""How Iceberg's Java library begins to say that the clock is far behind a table."""


def is_refusal(error: Exception) -> bool:
    """Return whether Iceberg's Java library refused a commit, as the clock is far behind the table."""
    return _REFUSED in str(error)


def behind(metadata: TableMetadata) -> timedelta:
    """Return how far the clock of this machine is behind the last commit of a table; negative if it is not."""
    return timedelta(milliseconds=metadata.last_updated_ms - _now())


def not_before(updates: Sequence[TableUpdate], since: int) -> tuple[TableUpdate, ...]:
    """Return the changes of a commit; each snapshot that they add has no time before ``since``, in epoch ms."""
    return tuple(map(_raised, updates, itertools.repeat(since)))


def watched(catalog: Catalog) -> Catalog:
    """Return the catalog; no time goes back in the metadata that PyIceberg writes for it."""
    unchecked: Any = catalog
    stage = getattr(unchecked, _STAGES, None)
    if stage is None:  # a server writes the metadata
        return catalog

    def staged(
        current: Table | None,
        identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        if current is None:
            new: StagedTable = stage(current, identifier, requirements, updates)
            return new
        since = current.metadata.last_updated_ms
        _require_clock(current, updates)
        made: StagedTable = stage(current, identifier, requirements, not_before(updates, since))
        made.metadata = _in_order(made.metadata, since)
        return made

    setattr(unchecked, _STAGES, staged)
    return catalog


_STAGES: Final = "_update_and_stage_table"
"""PyIceberg 0.12's method that makes the new metadata of a table, where the current one is known. It is not public, and
what is public of a commit knows the metadata only as it was when the table was loaded."""


def _raised(update: TableUpdate, since: int) -> TableUpdate:
    if not isinstance(update, AddSnapshotUpdate) or update.snapshot.timestamp_ms >= since:
        return update
    return update.model_copy(update={"snapshot": update.snapshot.model_copy(update={"timestamp_ms": since})})


def _in_order(metadata: TableMetadata, since: int) -> TableMetadata:
    """Return metadata whose times do not go back; also those that an earlier version let go back."""
    log = [entry.timestamp_ms for entry in metadata.snapshot_log]
    files = [entry.timestamp_ms for entry in metadata.metadata_log]
    last = max([since, metadata.last_updated_ms, *log])
    if last == metadata.last_updated_ms and log == sorted(log) and files == sorted(files):
        return metadata
    return metadata.model_copy(
        update={
            "last_updated_ms": last,
            "snapshot_log": list(_rising(metadata.snapshot_log)),
            "metadata_log": list(_rising(metadata.metadata_log)),
        }
    )


def _rising(entries: Sequence[Any]) -> Iterator[Any]:
    """Yield the entries of a log, each with the highest time so far."""
    times = itertools.accumulate((entry.timestamp_ms for entry in entries), max)
    for entry, highest in zip(entries, times, strict=True):
        yield entry if entry.timestamp_ms == highest else entry.model_copy(update={"timestamp_ms": highest})


def _require_clock(table: Table, updates: Sequence[TableUpdate]) -> None:
    """Refuse to move ``main`` to a snapshot that is there already, while the clock is far behind the table.

    The log of ``main`` says when readers got to see a snapshot.

    Raises:
        RetriableLakeError: the clock is far behind the last commit of the table.
    """
    added = {update.snapshot.snapshot_id for update in updates if isinstance(update, AddSnapshotUpdate)}
    moves = [
        update for update in updates if isinstance(update, SetSnapshotRefUpdate) and update.ref_name == MAIN_BRANCH
    ]
    if any(update.snapshot_id not in added for update in moves) and behind(table.metadata) > FAR:
        raise RetriableLakeError(
            f"{'.'.join(table.name())}: {described(table.metadata)}. Nothing is moved until the clock is right or has "
            "caught up; then run it again (docs/operations/clocks.md)"
        )


def described(metadata: TableMetadata) -> str:
    """Return, as the beginning of a sentence, how the clock is behind the last commit of a table."""
    last = datetime.fromtimestamp(metadata.last_updated_ms / 1000, UTC)
    seconds = round(behind(metadata).total_seconds())
    late = timedelta(seconds=seconds)
    return f"the clock of this machine is {late} behind the last commit, of {last:%Y-%m-%d %H:%M:%S} UTC"


def _now() -> int:
    return time.time_ns() // 1_000_000
