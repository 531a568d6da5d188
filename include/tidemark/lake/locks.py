"""The lock of a source. The schedule, backfills, maintenance and the command line hold it while they write.

The lock is kept where the catalog is, and reaches as far as its writers:

- Catalog in PostgreSQL: an advisory lock of that database. It excludes writers on all machines, and ends with the
  session of the process that holds it.
- Catalog in an SQLite file: a lock on a file beside it. It ends with the process.
- Any other catalog: a lease in the catalog (``leases``), which ends a while after its holder falls silent.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol

import structlog
from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from tidemark.errors import LostSourceError, SourceBusyError
from tidemark.lake import fences, leases, lock_holders
from tidemark.lake.catalog import catalog_name, catalog_properties, configured_properties, home, opening
from tidemark.lake.lock_holders import Holder
from tidemark.text import first_line

log = structlog.get_logger(__name__)

PATIENCE = 3600.0
"""Seconds that the command line waits for another writer of its source."""

_POLL = 0.5

_POLL_FAR = 2.0
"""Seconds between two looks at a lease, each of which loads a table."""

_SQLITE: Final = "sqlite"
_POSTGRESQL: Final = "postgresql"

_WARN_EVERY = 60.0
"""Seconds between two warnings that a run waits."""

_within: Mapping[str, threading.RLock] = defaultdict(threading.RLock)

_held: set[str] = set()
"""Sources whose lock this process has: a run holds its source, and runs stages that hold it again."""


class TakenLock(fences.Writer, Protocol):
    """The lock of a source, taken."""

    @property
    def forced(self) -> bool:
        """Whether it was taken from a writer that fell silent, and may wake."""

    def release(self, *, clean: bool) -> None:
        """Give it back; not ``clean`` if the next writer has to shut out the silent one as well."""


class Taker(Protocol):
    """Somebody who wants a source."""

    @property
    def saw_life(self) -> bool:
        """Whether whoever has the source is known to live; as long as it is not, it is worth to wait."""

    def take(self) -> TakenLock | None:
        """Take the lock if it is free; else None."""


@contextmanager
def hold(source: str, *, patience: float = PATIENCE, taken_over: Callable[[int], None] | None = None) -> Iterator[None]:
    """Hold the lock of a source; a thread that holds it may hold it again. Whoever writes uses ``ledger.writing``.

    Args:
        source: name of the source.
        patience: seconds to wait for another writer; 0 tries once, which takes as long as it takes to see whether the
            other lives.
        taken_over: called with the number of this writer if the source was taken from one that fell silent: shuts it
            out.

    Raises:
        SourceBusyError: another writer is not done in time; it is a ``RetriableLakeError``.
        RetriableLakeError: the database of the catalog cannot be reached.
    """
    with _within[source]:
        if source in _held:
            yield
            return
        held = _wait(source, patience)
        _held.add(source)
        clean = not held.forced
        try:
            with fences.writing(source, held):
                clean = _shut_out(held, taken_over) or clean
                yield
        finally:
            _held.discard(source)
            held.release(clean=clean)


def _shut_out(held: TakenLock, taken_over: Callable[[int], None] | None) -> bool:
    """Shut out the writer that a lock was taken from, and return whether there was one to shut out."""
    if not held.forced or held.token is None or taken_over is None:
        return False
    taken_over(held.token)
    return True


def _wait(source: str, patience: float) -> TakenLock:
    taker, far = _taker(source), is_lease()
    began, last_warned = time.monotonic(), -_WARN_EVERY
    while (held := taker.take()) is None:
        waited = time.monotonic() - began
        if waited >= patience and taker.saw_life:
            raise SourceBusyError(
                f"{source}: another run is writing this source: {holder(source) or 'unknown'}; it was not done after "
                f"{patience:.0f} s. Nothing was done; run it again when the other is over."
            )
        if waited - last_warned >= _WARN_EVERY and patience >= _WARN_EVERY:
            log.warning("waiting_for_other_writer", source=source, holder=str(holder(source)), waited=int(waited))
            last_warned = waited
        time.sleep(_POLL_FAR if far else _POLL)
    return held


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Give a folder on this machine one writer at a time; it is made if it is missing. Waits as long as it takes."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def holder(source: str) -> Holder | None:
    """Return who holds the lock of a source, as far as that is known; None if nobody does.

    It takes no lock, so no writer notices, and makes nothing.

    Raises:
        ConfigurationError: the catalog cannot be opened as it is configured.
        RetriableLakeError: the database of the catalog cannot be reached.
    """
    with opening():
        url, name = _database(configured_properties()), _name(source)
        if url.get_backend_name() == _SQLITE:
            return lock_holders.of_file(_file(url, name))
        if url.get_backend_name() != _POSTGRESQL:
            return leases.holder(source)
        with _engine(url).connect() as connection:
            return lock_holders.of_database(connection, _key(name))


def reaches_all_machines() -> bool:
    """Return whether the lock excludes writers on other machines too; a lock on a file excludes writers on this one."""
    return _database(configured_properties()).get_backend_name() != _SQLITE


def is_lease() -> bool:
    """Return whether the lock is a lease, which outlives a holder that ends without a word."""
    return _database(configured_properties()).get_backend_name() not in {_SQLITE, _POSTGRESQL}


def _taker(source: str) -> Taker:
    with opening():
        url, name = _database(catalog_properties()), _name(source)
        if url.get_backend_name() == _SQLITE:
            return _FileTaker(file=_file(url, name))
        if url.get_backend_name() == _POSTGRESQL:
            return _AdvisoryTaker(url=url, source=source, key=_key(name))
        return leases.LeaseTaker(source)


def _database(properties: Mapping[str, str]) -> URL:
    """Return the database of a catalog; an empty URL if it has none."""
    return make_url(properties.get("uri", "")) if properties.get("type") == "sql" else URL.create("none")


def _name(source: str) -> str:
    return f"{catalog_name()}.{source}"


def _file(url: URL, name: str) -> Path:
    return (Path(url.database).parent if url.database else home()) / "locks" / name


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileTaker:
    file: Path
    saw_life: bool = True

    def take(self) -> TakenLock | None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        lock_holders.write(handle)
        return _FileLock(handle=handle)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileLock:
    handle: int
    token: int | None = None
    forced: bool = False

    def require(self) -> None:
        """Do nothing: a process has its lock on a file until it ends."""

    def release(self, *, clean: bool) -> None:  # noqa: ARG002  there is nothing to shut out
        os.ftruncate(self.handle, 0)
        os.close(self.handle)


def _key(name: str) -> int:
    """Return the number of an advisory lock: a signed 64-bit integer, as PostgreSQL wants."""
    return int.from_bytes(hashlib.sha256(f"tidemark:{name}".encode()).digest()[:8], signed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _AdvisoryTaker:
    url: URL
    source: str
    key: int
    saw_life: bool = True

    def take(self) -> TakenLock | None:
        with opening():
            connection = _engine(self.url).connect()
            if connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": self.key}).scalar():
                return _AdvisoryLock(source=self.source, connection=connection)
            connection.close()
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _AdvisoryLock:
    source: str
    connection: Connection
    token: int | None = None
    forced: bool = False
    _one: threading.Lock = field(default_factory=threading.Lock)

    def require(self) -> None:
        """Check that the session lives which has the lock: the database ends one whose client it cannot reach."""
        try:
            with self._one:
                self.connection.execute(text("SELECT 1"))
        except SQLAlchemyError as error:
            raise LostSourceError(
                f"{self.source}: the connection to the catalog's database that held the source is gone: "
                f"{first_line(error)}. Nothing more of this run is committed. Run it again when no other run writes "
                "the source."
            ) from error

    def release(self, *, clean: bool) -> None:  # noqa: ARG002  as above
        self.connection.close()  # not pooled: closing ends the session, and the session's end releases the lock


@lru_cache(maxsize=4)
def _engine(url: URL) -> Engine:
    alive = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 5}
    session = {**alive, "connect_timeout": 30, "application_name": lock_holders.session_name()}
    return create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=session)
