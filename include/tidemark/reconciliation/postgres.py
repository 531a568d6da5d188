"""PostgreSQL as the source database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from typing import Any

import psycopg
from psycopg import IsolationLevel

from tidemark.events import TableId
from tidemark.reconciliation.connections import Address
from tidemark.reconciliation.databases import BATCH, CONNECT_SECONDS, Database, LogMoment, SourceTable
from tidemark.reconciliation.kinds import SourceColumn

_SESSION = (
    "SET TimeZone TO 'UTC'",
    "SET DateStyle TO 'ISO, YMD'",
    "SET IntervalStyle TO 'postgres'",
    "SET search_path TO pg_catalog",  # no function of a schema of the database stands in for one of the catalog
)

_PLACE = """
SELECT clock_timestamp(),
       CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END::text
"""

_CLOCK = "SELECT clock_timestamp(), NULL"

_COPIED = "SELECT pg_is_in_recovery(), pg_last_xact_replay_timestamp()"

_COLUMNS = """
SELECT a.attname,
       CASE WHEN coalesce(b.typtype, t.typtype) = 'e' THEN 'enum'
            ELSE format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, NULL) END
  FROM pg_attribute a
  JOIN pg_class c ON c.oid = a.attrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_type b ON b.oid = t.typbasetype
 WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p', 'f', 'm', 'v')
   AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum
"""


class Postgres(Database):
    """A connection to PostgreSQL 13 or newer."""

    dialect = "postgres"
    _errors = (psycopg.Error,)
    _connection: psycopg.Connection[tuple[Any, ...]]

    def __init__(self, address: Address) -> None:
        """Connect.

        Raises:
            SourceDatabaseError: the database cannot be reached.
        """
        self._address = address
        options = {key: value for key, value in address.options.items() if key != "host"}
        with self._source_errors():
            self._connection = psycopg.connect(
                host=address.host or address.options.get("host"),
                port=address.port,
                user=address.user,
                password=address.password,
                dbname=address.database,
                connect_timeout=CONNECT_SECONDS,
                application_name="tidemark reconcile",
                client_encoding="utf8",
                **options,  # type: ignore[arg-type]
            )
            self._connection.isolation_level = IsolationLevel.REPEATABLE_READ
            self._connection.read_only = True

    def begin(self) -> LogMoment:
        """Begin a transaction; the first query fixes what it sees, and the place is read after it.

        What a replica has replayed is asked in a transaction before: within this one, it would be more than is seen.
        """
        with self._source_errors():
            row = self._connection.execute(_COPIED.encode()).fetchone()
            self._connection.rollback()
            for statement in (*_SESSION, "SELECT 1"):
                self._connection.execute(statement.encode())
            is_copy, copied = row if row is not None else (False, None)
            return replace(self._place(), is_copy=is_copy, copied=copied and copied.astimezone(UTC))

    def _place(self) -> LogMoment:
        try:
            with self._connection.transaction():
                row = self._connection.execute(_PLACE).fetchone()
        except psycopg.errors.InsufficientPrivilege:
            row = self._connection.execute(_CLOCK).fetchone()
        at, text = row if row is not None else (None, None)
        if text is None:
            return LogMoment(at=at, text=None)
        high, low = str(text).split("/")
        return LogMoment(at=at, text=str(text), sequence=((int(high, 16) << 32) + int(low, 16),))

    def find(self, table: TableId) -> SourceTable | None:
        """Return a table; without a schema in its name, of the schema ``public``."""
        for namespace in dict.fromkeys([table.schema or table.database or "public", table.schema or "public"]):
            with self._source_errors():
                found = self._connection.execute(_COLUMNS, (namespace, table.name)).fetchall()
            if found:
                columns = tuple(SourceColumn(name=name, type=kind) for name, kind in found)
                return SourceTable(namespace=namespace, name=table.name, columns=columns)
        return None

    def rows(self, statement: str) -> Iterator[Sequence[tuple[Any, ...]]]:
        """Yield the rows of a query, by a cursor of the server."""
        with self._source_errors(), self._connection.cursor(name="tidemark") as cursor:
            cursor.execute(statement.encode())
            while rows := cursor.fetchmany(BATCH):
                yield rows

    def _recover(self) -> None:
        """End the transaction, which takes no further statement; there is none where connecting failed."""
        with suppress(AttributeError):
            self._connection.rollback()
