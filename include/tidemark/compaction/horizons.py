"""What maintain may remove: the cuts, snapshots, tombstones, events and messages that are past their time.

The source file says what is kept for how long. What a later run goes on from stays longer: an event goes only if no
table is folded from it any more, a message only if its events are in the change log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tidemark.compaction import tombstone_age
from tidemark.compaction.settled_tables import settled
from tidemark.lake import names
from tidemark.lake.branches import marker
from tidemark.lake.filters import at_most, equals
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts, transactions
from tidemark.ledger.folders import folders
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import LEFT_BEHIND
from tidemark.sources.layout import sharing
from tidemark.sources.model import Source


class Horizons(NamedTuple):
    """What is older may go."""

    cut: int
    """The oldest cut that stays readable."""
    snapshots: datetime
    orphans: datetime
    tombstones: tombstone_age.Past
    messages: int
    """Last batch whose messages are past their time; 0: none."""
    events: int
    """Last batch whose events are past their time; 0: none."""
    settled: frozenset[str]
    """Tables, as the source names them, that go on without earlier events."""
    quarantined: int
    """Last batch whose messages in quarantine lose their bytes; 0: none."""
    shared: frozenset[str]
    """Tables whose folder is, holds or lies in that of another one: what one does not know there is of the other."""


def horizons_of(lake: Lake, ledger: Ledger, source: Source, *, idle: bool) -> Horizons:
    """Return what of a source's tables is past its time now, by its source file.

    Args:
        lake: where the tables are.
        ledger: of the source.
        source: the source; its ``maintenance`` and ``retention`` say what is kept for how long.
        idle: whether no cut is under way. Events go only then.
    """
    now, kept, retained = datetime.now(UTC), source.maintenance, source.retention
    young = now - timedelta(days=kept.keep_days)
    oldest = cuts.oldest_kept(ledger, newest=kept.keep_cuts, since=young)
    decoded = int(marker(lake.find(names.change_log(source.source)), "batch") or 0)
    expires = retained.changelog_days is not None and idle
    going_on = settled(lake, ledger, source) if expires else frozenset()
    return Horizons(
        cut=oldest,
        snapshots=young,
        orphans=now - timedelta(days=kept.orphan_days),
        tombstones=tombstone_age.past(ledger, source, now),
        messages=past_messages(ledger, source, now, decoded),
        events=past_events(ledger, source, oldest, now, going_on) if expires else 0,
        settled=going_on,
        quarantined=_last_before(ledger, now - timedelta(days=retained.quarantine_days))
        if retained.quarantine_days is not None
        else 0,
        shared=frozenset(sharing(folders(lake))),
    )


def past_events(ledger: Ledger, source: Source, oldest: int, now: datetime, going_on: Collection[str]) -> int:
    """Return the last batch whose events may go: nothing goes on from it, neither from now nor after a restore.

    Args:
        ledger: of the source.
        source: the source.
        oldest: the oldest cut that is kept.
        now: the time.
        going_on: the tables whose events go (``settled``).
    """
    standing = list(_standing(ledger, oldest, going_on))
    stood = min((row.batch for row in standing), default=0)
    # Given up by that cut, a transaction stays so after a restore. Only a table that was left behind may lack it.
    is_behind = any(isinstance(row, TableRow) for row in standing)
    given_up = frozenset[str]() if is_behind else transactions.given_up(ledger, oldest).ids
    known = [row for row in ledger.transactions() if row.id not in given_up]
    # What was open then is released after a restore, though it has ended since. What is open now was so then, or later.
    held = [*transactions.as_of(known, stood).values(), *(row for row in known if row.batch > stood)]
    waiting = [row.since - 1 for row in held if row.state == transactions.OPEN]
    again = [batch - 1 for batch in ledger.reprocessing()]
    past = _last_before(ledger, now - timedelta(days=source.retention.changelog_days or 0))
    return max(0, min([past, stood, *waiting, *again]))


def _standing(ledger: Ledger, cut: int, tables: Collection[str]) -> Iterator[CutRow | TableRow]:
    """Yield a cut, and the tables that it left behind its batch."""
    yield from ledger.cuts(equals("cut", cut))
    known = sorted(ledger.tables(at_most("cut", cut)), key=lambda row: row.cut)
    for name, row in {row.object: row for row in known}.items():
        if name in tables and row.state in LEFT_BEHIND:
            yield row


def _last_before(ledger: Ledger, time: datetime) -> int:
    """Return the last batch that was normalized before a time; 0 for none."""
    return max((row.batch for row in ledger.batches() if row.written_at and row.written_at < time), default=0)


def past_messages(ledger: Ledger, source: Source, now: datetime, decoded: int) -> int:
    """Return the last batch whose messages may go: the change log has it, and nothing up to it is decoded again."""
    days = source.retention.raw_days
    if days is None:
        return 0
    again = [batch - 1 for batch in ledger.reprocessing()]
    return min([_last_before(ledger, now - timedelta(days=days)), decoded, *again])
