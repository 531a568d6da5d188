"""Why a key differs: the lake is behind with it, or it is lost, extra or different.

The lake's snapshot is chosen before the source is read. So the source is never older, and a key may differ for one of
two reasons: a change that is not published yet, or a fault. It is a change that is not published yet if

- an event of the key is in the change log and not in the published table: it waits, is held, or its table is stopped;
- or the source is further in its log than what has landed, so that the change may still come.

The second is a guess until the log of the lake is past the place at which the source was read. Then an earlier
comparison settles it. If a key differed at a place, and no event of the key had come when the log passed this place,
then the key did not differ for want of an event. It is lost, extra or different.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyiceberg.expressions import And
from pyiceberg.table import Table

from tidemark.events import Operation
from tidemark.lake import names as table_names
from tidemark.lake.filters import above, equals
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RowKind
from tidemark.ledger import transactions as ledger_transactions
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.reconciliation_rows import ReconciliationRow, Result
from tidemark.ledger.rows import TableRow
from tidemark.positions import changed, encode_position
from tidemark.queries import row_events
from tidemark.queries.row_life_scan import FIELDS, LogRow, log_rows
from tidemark.queries.row_life_steps import Reader
from tidemark.reconciliation import canonical
from tidemark.reconciliation.kinds import ColumnPairs
from tidemark.sources.model import Source
from tidemark.tables import eras

_LATE = timedelta(seconds=5)
"""An event beyond a place in the log is committed after it, so far as the clock of the source does not go back."""

_AHEAD = timedelta(minutes=10)
"""A commit time is in the future if it is further ahead of the clock of the source than clocks of servers differ."""

_BY_PLACE = {"debezium_json": {"postgres": 1, "mysql": 2}}
"""Format and dialect whose positions begin with the place in the log -> how many numbers a place has."""

_OF_SERVER = frozenset({2})
"""Numbers of a place that each server of a group has for itself: a primary and its replica have binary logs of
their own, so the capture tool may have read another one. Then places never meet, and commit times decide."""

Changes = list[tuple[str, bool]]
"""Text of a key, and whether an event of it is in the change log and not published."""


@dataclass(frozen=True, slots=True)
class Log:
    """How far the change log of a source is: the newest of what has landed and is decoded."""

    newest: str
    last: datetime | None
    """Newest commit time that is not in the future."""
    numbers: int
    """How many numbers of a place positions begin with; 0: positions have no place, and commit times decide."""

    @classmethod
    def of(cls, ledger: Ledger, source: Source, dialect: str, now: datetime | None) -> Log:
        """Return how far the change log is, where the clock of the source shows ``now``.

        A commit time in the future is wrong: by it, the log would be past each place, and what is behind would be lost.
        """
        spans = ledger.spans()
        times = [span.last for span in spans if span.last is not None and (now is None or span.last <= now + _AHEAD)]
        is_plain = getattr(source.options, "dialect", None) in {None, "debezium"} and not source.log_restarts
        numbers = _BY_PLACE.get(source.format, {}).get(dialect, 0) if is_plain else 0
        return cls(max((span.newest for span in spans), default=""), max(times, default=None), numbers)

    def passed(self, at: datetime | None, sequence: Sequence[int]) -> bool:
        """Return whether the log has what the source had committed at a place: its newest event is from behind it.

        Where positions have places, they decide, as far as the commit time of the newest event does not contradict.
        """
        if at is None or self.last is None:
            return False
        later = self.last > at
        if not self.numbers or len(sequence) != self.numbers:
            return later
        behind = self.newest > encode_position(changed(*sequence)) + "/" and self.last >= at - _LATE
        return behind or (later and self.numbers in _OF_SERVER)


@dataclass(frozen=True, slots=True)
class NewEvents:
    """The events of a table that the earlier comparison, or the published table, does not have."""

    lake: Lake
    table: Table
    row: TableRow
    """Where the published table stands."""
    source: str
    pairs: ColumnPairs

    def since(self, batch: int) -> Iterator[Changes]:
        """Yield the keys of events from behind a batch on, and of all events that are held, in lists.

        A TRUNCATE concerns every key: its key is an empty text, as is the key of every event of a table without a key.
        """
        held = self._held()
        first = min([batch, self.row.batch, *(since - 1 for since in held.values())])
        changelog = self.lake.find(table_names.change_log(self.source))
        if changelog is None:
            return
        reader = self._reader()
        where = And(equals("kind", RowKind.CHANGE), eras.condition(eras.segments_of(self.table)))
        scan = changelog.scan(row_filter=And(where, above("batch", first)), selected_fields=FIELDS)
        for part in scan.to_arrow_batch_reader():
            yield [
                (key, pending)
                for row in log_rows(part)
                if (pending := row.batch > self.row.batch or row.transaction_id in held) or row.batch > batch
                for key in self._keys(reader, row)
            ]

    def _keys(self, reader: Reader, row: LogRow) -> list[str]:
        if not self.pairs.key or row.operation == Operation.TRUNCATE:
            return [""]
        return [_storable(canonical.key_of(self.pairs.key, key)) for key in reader.keys(row)]

    def _held(self) -> dict[str, int]:
        """Return the open transactions whose events the published table lacks, each with its first batch."""
        if not self.row.held:
            return {}
        ledger = Ledger(self.lake, self.source)
        newest = ledger_transactions.as_of(ledger.transactions(), self.row.batch)
        opened = {id_: row.since for id_, row in newest.items() if id_ and row.state == ledger_transactions.OPEN}
        shown = ledger_transactions.given_up(ledger).shown_in(self.row.object)
        return {id_: since for id_, since in opened.items() if id_ not in shown}

    def _reader(self) -> Reader:
        return Reader.of(self.lake, self.table, row_events.history(self.lake, self.table))


def _storable(text: str) -> str:
    """Return a text without halves of surrogate pairs, which JSON can write and no database can hold."""
    return text.encode("utf-8", "replace").decode()


def settling(earlier: Sequence[ReconciliationRow], log: Log) -> ReconciliationRow | None:
    """Return the newest earlier comparison of a table whose place the log has passed.

    A run that could not compare the table settles nothing, although it may have read a place.
    """
    compared = [row for row in earlier if row.result != Result.NOT_COMPARED]
    passed = [row for row in compared if row.read_at is not None and log.passed(row.read_at, row.places)]
    return passed[-1] if passed else None


def suspects(row: ReconciliationRow | None, pairs: ColumnPairs) -> list[str]:
    """Return the texts of the keys that differed in an earlier comparison, but those that waited to be published."""
    return _texts(row, pairs, waiting=False)


def kept(row: ReconciliationRow | None, pairs: ColumnPairs) -> list[str]:
    """Return the texts of all keys that are kept of an earlier comparison."""
    return _texts(row, pairs, waiting=True)


def _texts(row: ReconciliationRow | None, pairs: ColumnPairs, *, waiting: bool) -> list[str]:
    names = [pair.lake for pair in pairs.key]
    return [
        canonical.key_of(pairs.key, each.key)
        for each in (row.differing if row is not None and names else ())
        if (waiting or not each.pending) and each.key.keys() == set(names)
    ]
