"""Reprocessing: which batches are derived again, what is written down before, and which tables are built again for it.

A table cannot take back an event that is gone or changed. So its rebuild is requested, before any event is replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo

from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import Table

from tidemark.dumps.listing import moments
from tidemark.lake.filters import among
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import FileRow, ReprocessingRow
from tidemark.ledger.tally import Tally
from tidemark.normalization import file_order, restated
from tidemark.values.iso8601 import from_micros, to_micros


def batches_of(files: Iterable[FileRow], zone: tzinfo, start: datetime | None, end: datetime | None) -> set[int]:
    """Return the batches that hold a file of ``[start, end)``; without bounds, of any time.

    Args:
        files: the files that landed.
        zone: whose clock the times in their paths show.
        start: of the interval.
        end: of the interval.
    """
    return {file.batch for file in files if _is_within(file.interval_start, zone, start, end)}


def _is_within(shown: datetime | None, zone: tzinfo, start: datetime | None, end: datetime | None) -> bool:
    """Return whether a file belongs to an interval; one whose path names no time belongs to every interval.

    ``shown`` is the time that the path names, as the clock of the zone shows it.
    """
    if shown is None:
        return True
    starts = map(from_micros, moments(to_micros(shown), zone))
    return any((start is None or at >= start) and (end is None or at < end) for at in starts)


def with_retries(ledger: Ledger, batches: Iterable[int]) -> set[int]:
    """Return batches, and the batches of events whose messages landed in them and were retried."""
    landed_in = set(batches)
    return landed_in | {row.batch for row in ledger.batches() if row.retry_of in landed_in}


def announce(ledger: Ledger, batches: Collection[int]) -> None:
    """Write to the ledger that the events of batches are being derived again."""
    if batches:
        rows = [ReprocessingRow(batch=batch) for batch in batches]
        ledger.replace(ReprocessingRow, rows, among("batch", batches))


def begin(ledger: Ledger, batches: Collection[int]) -> BooleanExpression:
    """Announce batches, request the rebuilds of the tables that they have events of, and return what is replaced.

    These are the rows of the batches in change log, quarantine and ledger, with those of messages that were retried.
    """
    announce(ledger, batches)
    replaced = among("batch", with_retries(ledger, batches))
    ledger.request_rebuild(row.object for row in ledger.contents(replaced))
    if ledger.transactions():
        # Other transactions may be whole now, and a transaction may concern every table.
        ledger.request_rebuild(row.object for row in ledger.contents())
    return replaced


def concerned(ledger: Ledger, found: Mapping[int, Sequence[Tally]], replaced: BooleanExpression) -> set[str]:
    """Return the tables to build again for what the batches have now: events, or other statements than before.

    Args:
        ledger: of the source, with what it has had of the batches until now.
        found: what the batches have now.
        replaced: the rows of the ledger that it has had of them.
    """
    contents = (content for tallies in found.values() for tally in tallies for content, _ in tally.contents)
    return {str(content.table) for content in contents} | restated.concerned(ledger, found, replaced)


def in_order_of_numbers(ledger: Ledger, changelog: Table, done: int, again: Collection[int]) -> Table:
    """Return the change log, with numbers in paths that count as numbers where that contradicts no event of it.

    Args:
        ledger: of the source.
        changelog: the change log; of an earlier version, it may order files in another way.
        done: its last batch.
        again: the batches that this run derives again.
    """
    if file_order.is_by_numbers(changelog):
        return changelog
    files = ledger.landed_files(done)
    anew = {row.batch for row in files} <= set(again)
    if anew:
        announce(ledger, again)  # if this run is cut short now, the next one derives all events again
    return file_order.adopted(changelog, files, anew=anew)
