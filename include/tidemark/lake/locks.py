"""One writer a source at any time: what schedule, backfill, maintenance and the command line hold while they write.

The lock lives where the catalog lives, and ends with the process that holds it, however that ends: nothing is left to
be cleared after a crash, and no clock decides.

- catalog in PostgreSQL: an advisory lock of that database, so it binds every machine;
- any other: a lock on a file, beside the database of an SQLite catalog, else in ``TIDEMARK_HOME``.
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
from tidemark.lake.catalog import catalog_name, catalog_properties, home, opening

log = structlog.get_logger(__name__)

PATIENCE = 3600.0
"""Seconds that the command line waits for another writer of its source."""

_POLL = 0.5

_within: Mapping[str, threading.RLock] = defaultdict(threading.RLock)

_held: set[str] = set()
"""Sources that this process holds: a run that holds its source runs stages that hold it again."""

Release = Callable[[], None]


@contextmanager
def hold(source: str, *, patience: float = PATIENCE) -> Iterator[None]:
    """Be the only writer of a source; within one thread it may be held again.

    Args:
        source: name of the source.
        patience: seconds to wait for another writer; 0 tries once.

    Raises:
        SourceBusyError: another writer is not done in time.
        RetriableLakeError: as ``SourceBusyError`` is one; the database of the catalog cannot be reached.
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
    give_up = time.monotonic() + patience
    told = False
    while (release := _take(source)) is None:
        if time.monotonic() >= give_up:
            raise SourceBusyError(
                f"{source}: another run is writing this source, and was not done after {patience:.0f} s. "
                "Nothing was done; run it again when the other is over."
            )
        if not told:
            log.info("waiting_for_other_writer", source=source, patience=patience)
            told = True
        time.sleep(_POLL)
    return release


def _take(source: str) -> Release | None:
    """Take the lock if it is free."""
    with opening():
        properties = catalog_properties()
        url = make_url(properties.get("uri", "")) if properties.get("type") == "sql" else None
        name = f"{catalog_name()}.{source}"
        if url is not None and url.get_backend_name() == "postgresql":
            return _take_advisory(url, name)
    beside = Path(url.database).parent if url is not None and url.database else home()
    return _take_file(beside / "locks" / name)


def _take_file(file: Path) -> Release | None:
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return partial(os.close, handle)


def _take_advisory(url: URL, name: str) -> Release | None:
    # Read as a signed 64-bit integer, which is what PostgreSQL takes.
    key = int.from_bytes(hashlib.sha256(f"tidemark:{name}".encode()).digest()[:8], signed=True)
    connection = _engine(url).connect()
    if connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": key}).scalar():
        return connection.close  # not pooled: the session ends, and with it the lock
    connection.close()
    return None


@lru_cache(maxsize=4)
def _engine(url: URL) -> Engine:
    alive = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 5}
    return create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=alive)
