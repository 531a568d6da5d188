"""What a lake that lives for a while needs not: its rows afterwards, and the certainty that they are on the disk."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path


def empty_lake(home: Path) -> None:
    """Drop all that the embedded lake in a home has."""
    if (home / "catalog.db").exists():
        with closing(sqlite3.connect(home / "catalog.db", timeout=60)) as catalog, catalog:
            catalog.execute("DELETE FROM iceberg_tables")
            catalog.execute("DELETE FROM iceberg_namespace_properties")
        shutil.rmtree(home / "warehouse", ignore_errors=True)


def leave_the_disk_to_the_system(connection: object, _record: object) -> None:
    """Let SQLite not wait until what is committed is on the disk. For the event ``connect`` of SQLAlchemy."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")
