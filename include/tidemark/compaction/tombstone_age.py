"""How long tombstones stay: an event may be ``tombstone_days`` late, counted to the day on which it landed.

What landed may wait: its table is stopped, no cut has taken its batch, its transaction is open. Until it is folded, the
tombstones stay that it would have met on that day. A message in quarantine may stay there for ever, so it keeps none;
if it is decoded after all, its tables are built again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from pyiceberg.table import Table

from tidemark.compaction import renamed
from tidemark.compaction.routing import Routing
from tidemark.lake import names
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import TOMBSTONES_PROPERTY
from tidemark.ledger import cuts, transactions
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import BatchRow, FileRow, TableRow, TransactionRow
from tidemark.ledger.states import LEFT_BEHIND
from tidemark.ledger.tally import Tally
from tidemark.ledger.transactions import GivenUp
from tidemark.sources.model import Source


class GoneTombstones(msgspec.Struct, frozen=True, kw_only=True):
    """The tombstones that went from a state table because of their age."""

    batch: int = 0
    """The newest batch of one of them; 0: none went."""
    position: str = ""
    """The highest position of one of them."""

    @classmethod
    def of(cls, state: Table | None) -> GoneTombstones:
        """Return what went from a state table."""
        text = "" if state is None else state.properties.get(TOMBSTONES_PROPERTY, "")
        return msgspec.json.decode(text, type=cls) if text else cls()

    def remember(self, state: Table) -> None:
        """Write to a state table that these tombstones go, before they do."""
        known = GoneTombstones.of(state)
        both = GoneTombstones(batch=max(known.batch, self.batch), position=max(known.position, self.position))
        if both != known:
            with state.transaction() as transaction:
                transaction.set_properties({TOMBSTONES_PROPERTY: msgspec.json.encode(both).decode()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """When what a source delivered landed."""

    batches: Sequence[BatchRow]
    landed: Mapping[int, datetime]
    """When the first file of each batch landed. A batch that is not normalized has no row in ``batches``, and one that
    was decoded again has a later time there."""
    late: timedelta
    """How late an event may be."""

    @classmethod
    def of(cls, ledger: Ledger, source: Source) -> Arrivals:
        """Return when the batches of a source landed."""
        batches = ledger.batches()
        files = ledger.arrow(FileRow.TABLE, columns=("batch", "at")).group_by("batch").aggregate([("at", "min")])
        landed = dict(zip(*(files[name].to_pylist() for name in ("batch", "at_min")), strict=True))
        normalized = {row.batch: row.written_at for row in batches if row.written_at}
        return cls(batches=batches, landed=normalized | landed, late=timedelta(days=source.maintenance.tombstone_days))

    def past(self, landed: datetime) -> int:
        """Return the last batch whose tombstones an event that landed at a time need not meet; 0 for none."""
        dead = landed - self.late
        return max((row.batch for row in self.batches if row.written_at and row.written_at < dead), default=0)

    def since(self, after: int) -> Iterator[datetime]:
        """Yield when the messages of the batches above one landed; retried ones landed with an earlier batch."""
        retried = {row.batch: row.retry_of for row in self.batches if row.retry_of}
        for batch, at in self.landed.items():
            if batch > after:
                yield self.landed.get(retried.get(batch, batch), at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Which tombstones are past their time."""

    usual: int
    """Last batch whose tombstones are; 0: none."""
    of: Mapping[Identifier, int]
    """By state table, the same where events of its table wait."""

    def up_to(self, state: Identifier) -> int:
        """Return the last batch whose tombstones may go from a state table; 0 for none."""
        return self.of.get(state, self.usual)


def past(ledger: Ledger, source: Source, now: datetime) -> Past:
    """Return which tombstones no event meets any more that landed, or lands from now on."""
    arrivals, last, targets = Arrivals.of(ledger, source), cuts.last_published(ledger), ledger.targets()
    taken = last.batch if last is not None else 0
    usual = arrivals.past(min([now, *arrivals.since(taken)]))
    known, given_up = ledger.transactions(), transactions.given_up(ledger)
    found: dict[Identifier, int] = {}
    # Of two objects that were published as one table, the one that made it last: shards may be folded by now.
    newest = {
        targets[name]: row
        for name, row in sorted(ledger.published_tables().items(), key=lambda each: each[1].cut)
        if name in targets
    }
    for target, row in newest.items():
        waits = _waits_after(row, taken, known, given_up)
        if waits is not None:
            found[names.state(target)] = arrivals.past(min([now, *arrivals.since(waits)]))
    return Past(usual=usual, of=found)


def _waits_after(row: TableRow, taken: int, known: Sequence[TransactionRow], given_up: GivenUp) -> int | None:
    """Return the batch above which events of a table wait, where it lags behind what the cuts have taken."""
    is_behind = row.state in LEFT_BEHIND
    if not (is_behind or row.held):
        return None
    stood, shown = row.batch if is_behind else taken, given_up.shown_in(row.object)
    # What was open then is not in the table, though it has ended since.
    rows = [*transactions.as_of(known, stood).values(), *(each for each in known if each.batch > stood)]
    held = [each.since - 1 for each in rows if each.state == transactions.OPEN and each.id not in shown]
    return min([stood, *held])


def orphaned(
    lake: Lake, source: Source, batches: Mapping[int, int], found: Mapping[int, Sequence[Tally]], done: int
) -> set[str]:
    """Return the tables with events among retried messages whose tombstones went after the messages had landed.

    Folded as they are, such events would revive rows: no trace is left of their deletes. A rebuild has it.

    Args:
        lake: the lake.
        source: the source.
        batches: from the batch that messages landed with to the batch of their events.
        found: what was counted, by batch of the events.
        done: the last batch of the change log.
    """
    ledger = Ledger(lake, source.source)
    arrivals, gone = Arrivals.of(ledger, source), _gone(lake, ledger, source, done)
    tables = set[str]()
    for first, batch in batches.items():
        at = arrivals.landed.get(first)
        needed = arrivals.past(at) if at is not None else 0
        spans = [(name, span.oldest) for tally in found[batch] for name, span in tally.spans.items()]
        tables |= {
            name
            for name, oldest in spans
            if any(each.batch > needed and oldest <= each.position for each in gone.get(name, ()))
        }
    return tables


def _gone(lake: Lake, ledger: Ledger, source: Source, done: int) -> Mapping[str, Sequence[GoneTombstones]]:
    """Return by table of the source what went from the states of the published tables that take its events in."""
    published, targets = ledger.published_tables(), ledger.targets()
    routed, lineages = Routing.of(source, ledger, published, done), renamed.known_to(ledger, source, done)
    found: dict[str, list[GoneTombstones]] = {}
    for name in published.keys() & targets.keys():
        gone = GoneTombstones.of(lake.find(names.state(targets[name])))
        for each in (routed.shards_of(name) or lineages.names_of(name)) if gone.batch else ():
            found.setdefault(each, []).append(gone)
    return found
