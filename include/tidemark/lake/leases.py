"""Leases: the lock of a source in a catalog that has none (REST, Glue, Hive, a database other than PostgreSQL).

A lease is a record in the catalog that its holder changes every few seconds (``lease_records``). No clock of another
machine is asked: who waits looks how long the record stays the same, by its own clock. A record that did not change
for as long as it says is nobody's any more, and the next writer takes it. A holder that could not change it for most of
that time gives up by itself. One that does not even notice, as it was stopped, is shut out by its commits (``fences``).
"""

from __future__ import annotations

import threading
import time
import uuid
from datetime import UTC, datetime
from typing import Final

import structlog

from tidemark.errors import LostSourceError
from tidemark.lake import lease_records, lock_holders, names
from tidemark.lake.catalog import catalog_name, catalog_properties, configured_properties
from tidemark.lake.lake import Lake
from tidemark.lake.lease_records import LeaseRecord
from tidemark.lake.lock_holders import Holder
from tidemark.text import first_line

log = structlog.get_logger(__name__)

SECONDS: float = 60.0
"""How long a lease is good for without a word of its holder. A crash on another machine costs this much."""

_BEATS: Final = 6
"""How often a holder renews its lease in that time."""

_GOOD: Final = 0.8
"""Part of that time after which a holder that could not renew its lease takes it for lost: before others do."""


class Lease:
    """A source held by this process; ``require`` and ``token`` are what its commits ask (``fences.Writer``)."""

    def __init__(self, lake: Lake, source: str, record: LeaseRecord, *, moment: float, forced: bool) -> None:
        self.source, self.forced = source, forced
        self._lake, self._record = lake, record
        self._renewed = moment
        self._lost: str | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, name=f"lease of {source}", daemon=True)
        self._thread.start()

    @property
    def token(self) -> int:
        """The number of this writer, above the numbers of all writers before it."""
        return self._record.token

    def require(self) -> None:
        """Check that the lease is not known to be lost.

        Raises:
            LostSourceError: another run has it, or it could not be renewed in time.
        """
        unsaid = _clock() - self._renewed
        if self._lost is None and unsaid > _GOOD * self._record.seconds:
            self._lost = f"this run could not say for {unsaid:.0f} s that it still writes"
        if self._lost is not None:
            raise LostSourceError(
                f"{self.source}: this run may not write the source any more: {self._lost}. Nothing more of it is "
                "committed. Run it again when no other run writes the source."
            )

    def release(self, *, clean: bool) -> None:
        """Stop renewing; a ``clean`` end gives the source to the next at once, any other lets the lease run out."""
        self._done.set()
        self._thread.join()
        if not clean or self._lost is not None:
            return
        try:
            table = lease_records.open_table(self._lake, self.source)
            if lease_records.read(table).owner == self._record.owner:
                lease_records.exchange(table, LeaseRecord(token=self.token))
        except Exception as error:  # noqa: BLE001  the work is done; the next writer waits until the lease runs out
            log.warning("lease_not_released", source=self.source, error=first_line(error))

    def _beat_on(self) -> None:
        while not self._done.wait(self._record.seconds / _BEATS) and self._lost is None:
            try:
                self._beat()
            except Exception as error:  # noqa: BLE001  the catalog may answer again before the lease runs out
                log.warning("lease_not_renewed", source=self.source, error=first_line(error))

    def _beat(self) -> None:
        moment = _clock()
        table = lease_records.open_table(self._lake, self.source)
        found = lease_records.read(table)
        if found.owner != self._record.owner:
            self._lost = f"another run took it over ({found.who or 'it is over by now'})"
        elif lease_records.exchange(table, self._record):
            self._renewed = moment


class LeaseTaker:
    """Somebody who wants a source: what it has seen of the lease so far."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lake = Lake(catalog_name(), catalog_properties())  # used by the thread that renews, and by no other
        self._owner = str(uuid.uuid4())
        self._seen: tuple[int | None, float] | None = None
        self._forced = False
        self.saw_life = False
        """Whether the record changed while we looked: its holder lives."""

    def take(self) -> Lease | None:
        """Take the lease if nobody has it, or if whoever had it fell silent; None if it has to be waited for."""
        moment = _clock()
        table = lease_records.open_table(self._lake, self._source)
        found = lease_records.read(table)
        if found.owner == self._owner:  # taken before; only the answer was lost
            return self._leased(found, moment)
        snapshot = table.current_snapshot()
        self._forced = found.owner is not None
        if self._forced and not self._silent(found, snapshot.snapshot_id if snapshot else None):
            return None
        if self._forced:
            log.warning("source_taken_over", source=self._source, holder=found.who)
        mine = self._record(found.token + 1)
        return self._leased(mine, moment) if lease_records.exchange(table, mine) else None

    def _leased(self, record: LeaseRecord, moment: float) -> Lease:
        return Lease(self._lake, self._source, record, moment=moment, forced=self._forced)

    def _silent(self, found: LeaseRecord, snapshot: int | None) -> bool:
        """Return whether whoever has the lease has ended, or said nothing for as long as the lease is good for."""
        if lock_holders.has_ended(found.machine, found.pid, found.began):
            return True
        if self._seen is None or self._seen[0] != snapshot:
            self.saw_life = self._seen is not None
            self._seen = snapshot, _clock()
        return _clock() - self._seen[1] > found.seconds

    def _record(self, token: int) -> LeaseRecord:
        machine, pid, began = lock_holders.this_process()
        return LeaseRecord(
            token=token,
            owner=self._owner,
            who=lock_holders.description(),
            since=datetime.now(UTC),
            seconds=SECONDS,
            machine=machine,
            pid=pid,
            began=began,
        )


def holder(source: str) -> Holder | None:
    """Return who has the lease of a source by its record; None if nobody has, or if that process has ended.

    Nothing is made. A holder on another machine that ended without a word is still named.
    """
    table = Lake(catalog_name(), configured_properties()).find(names.lease(source))
    found = lease_records.FREE if table is None else lease_records.read(table)
    if found.owner is None or lock_holders.has_ended(found.machine, found.pid, found.began):
        return None
    return Holder(who=found.who, since=found.since)


def _clock() -> float:
    """Return seconds that go on while the machine sleeps, and that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
