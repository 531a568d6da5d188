"""The lock of a source. The schedule, backfills, maintenance and the command line hold it while they write.

The lock is kept where the catalog is. It ends with the process that holds it, however that process ends, and never by
time: nothing has to be cleared after a crash.

- Catalog in PostgreSQL: an advisory lock of that database. It excludes writers on all machines.
- Any other catalog: a lock on a file, beside the database of an SQLite catalog, else in ``TIDEMARK_HOME``.
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
from functools import lru_cache, partial
from pathlib import Path

import structlog
from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.pool import NullPool

from tidemark.errors import SourceBusyError
from tidemark.lake import lock_holders
from tidemark.lake.catalog import catalog_name, catalog_properties, home, opening, told_properties
from tidemark.lake.lock_holders import Holder

log = structlog.get_logger(__name__)

PATIENCE = 3600.0
"""Seconds that the command line waits for another writer of its source."""

_POLL = 0.5

_TOLD_EVERY = 60.0
"""Seconds between two warnings that a run waits."""

_within: Mapping[str, threading.RLock] = defaultdict(threading.RLock)

_held: set[str] = set()
"""Sources whose lock this process has: a run holds its source, and runs stages that hold it again."""

Release = Callable[[], None]


@contextmanager
def hold(source: str, *, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of a source; a thread that holds it may hold it again.

    Args:
        source: name of the source.
        patience: seconds to wait for another writer; 0 tries once.

    Raises:
        SourceBusyError: another writer is not done in time; it is a ``RetriableLakeError``.
        RetriableLakeError: the database of the catalog cannot be reached.
    """
    with _within[source]:
        if source in _held:
            yield
            return
        release = _wait(source, patience)
        _held.add(source)
        try:
            yield
        finally:
            _held.discard(source)
            release()


def _wait(source: str, patience: float) -> Release:
    began, told = time.monotonic(), -_TOLD_EVERY
    while (release := _take(source)) is None:
        waited = time.monotonic() - began
        if waited >= patience:
            raise SourceBusyError(
                f"{source}: another run is writing this source: {holder(source) or 'unknown'}; it was not done after "
                f"{patience:.0f} s. Nothing was done; run it again when the other is over."
            )
        if waited - told >= _TOLD_EVERY and patience >= _TOLD_EVERY:
            log.warning("waiting_for_other_writer", source=source, holder=str(holder(source)), waited=int(waited))
            told = waited
        time.sleep(_POLL)
    return release


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Give a folder on this machine one writer at a time; it is made if it is missing. Waits as long as it takes."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def holder(source: str) -> Holder | None:
    """Return who holds the lock of a source, as far as it can be told; None if nobody does.

    It takes no lock, so no writer notices, and makes nothing.

    Raises:
        ConfigurationError: the catalog cannot be opened as it is configured.
        RetriableLakeError: the database of the catalog cannot be reached.
    """
    with opening():
        url, name = _database(told_properties()), _name(source)
        if reaches_all_machines():
            with _engine(url).connect() as connection:
                return lock_holders.of_database(connection, _key(name))
    return lock_holders.of_file(_file(url, name))


def reaches_all_machines() -> bool:
    """Return whether the lock excludes writers on other machines too; a lock on a file excludes those of this one."""
    return _database(told_properties()).get_backend_name() == "postgresql"


def _take(source: str) -> Release | None:
    """Take the lock if it is free, and return how to release it; else None."""
    with opening():
        url, name = _database(catalog_properties()), _name(source)
        if reaches_all_machines():
            return _take_advisory(url, name)
    return _take_file(_file(url, name))


def _database(properties: Mapping[str, str]) -> URL:
    """Return the database of a catalog; an empty URL if it has none."""
    return make_url(properties.get("uri", "")) if properties.get("type") == "sql" else URL.create("none")


def _name(source: str) -> str:
    return f"{catalog_name()}.{source}"


def _file(url: URL, name: str) -> Path:
    return (Path(url.database).parent if url.database else home()) / "locks" / name


def _take_file(file: Path) -> Release | None:
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    lock_holders.write(handle)
    return partial(_release_file, handle)


def _release_file(handle: int) -> None:
    os.ftruncate(handle, 0)
    os.close(handle)


def _key(name: str) -> int:
    """Return the number of an advisory lock: a signed 64-bit integer, as PostgreSQL wants."""
    return int.from_bytes(hashlib.sha256(f"tidemark:{name}".encode()).digest()[:8], signed=True)


def _take_advisory(url: URL, name: str) -> Release | None:
    connection = _engine(url).connect()
    if connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _key(name)}).scalar():
        return connection.close  # not pooled: closing ends the session, and the session's end releases the lock
    connection.close()
    return None


@lru_cache(maxsize=4)
def _engine(url: URL) -> Engine:
    alive = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 5}
    session = {**alive, "connect_timeout": 30, "application_name": lock_holders.session_name()}
    return create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=session)
