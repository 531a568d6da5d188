"""MySQL and MariaDB as the source database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any

import pymysql
from pymysql.cursors import SSCursor

from tidemark.events import TableId
from tidemark.positions import log_number
from tidemark.reconciliation.connections import Address
from tidemark.reconciliation.databases import BATCH, CONNECT_SECONDS, Database, LogMoment, SourceTable
from tidemark.reconciliation.kinds import SourceColumn

_SESSION = (
    "SET SESSION sql_mode = ''",  # quotes and backslashes mean what the dialect of sqlglot says
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
)

_BEGIN = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"

_PLACES = ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")
"""The first is of MySQL 8.2 and newer, where the second is gone. MariaDB has both names in newer versions only."""

_REPLICAS = ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS")

_COLUMNS = """
SELECT column_name, lower(data_type) FROM information_schema.columns
 WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""


class MySQL(Database):
    """A connection to MySQL or MariaDB."""

    dialect = "mysql"
    _errors = (pymysql.MySQLError, OSError)
    _connection: pymysql.Connection[Any]

    def __init__(self, address: Address) -> None:
        """Connect.

        Raises:
            SourceDatabaseError: the database cannot be reached.
        """
        self._address = address
        options: dict[str, Any] = dict(address.options)
        for flag in ("ssl_verify_cert", "ssl_verify_identity"):
            if flag in options:
                options[flag] = options[flag].lower() == "true"
        with self._source_errors():
            self._connection = pymysql.connect(
                host=address.host or "localhost",
                port=address.port,
                user=address.user,
                password=address.password or "",
                database=address.database,
                charset="utf8mb4",
                connect_timeout=CONNECT_SECONDS,
                autocommit=True,
                **options,
            )

    def begin(self) -> LogMoment:
        """Begin a transaction, and read the place after it."""
        with self._source_errors():
            for statement in (*_SESSION, _BEGIN):
                self._all(statement)
            at = self._all("SELECT UTC_TIMESTAMP(6)")[0][0].replace(tzinfo=UTC)
            file, offset = self._log()
            is_copy = self._is_copy()
        if file is None:
            return LogMoment(at=at, text=None, is_copy=is_copy)
        number = log_number(file)
        sequence = (number, offset) if number is not None and not is_copy else ()
        return LogMoment(at=at, text=f"{file}:{offset}", sequence=sequence, is_copy=is_copy)

    def _is_copy(self) -> bool:
        """Return whether the server may copy another one, the places of whose log are in events.

        A replica does not say up to which time of the other one it has all.
        """
        for statement in _REPLICAS:
            try:
                return bool(self._all(statement))
            except (pymysql.err.ProgrammingError, pymysql.err.OperationalError):
                continue
        return True

    def _log(self) -> tuple[str | None, int]:
        """Return the file and the offset of the binary log; None if there is none, or the user may not know."""
        for statement in _PLACES:
            try:
                rows = self._all(statement)
            except (pymysql.err.ProgrammingError, pymysql.err.OperationalError):
                continue
            if rows:
                return str(rows[0][0]), int(rows[0][1])
        return None, 0

    def find(self, table: TableId) -> SourceTable | None:
        """Return a table; without a database in its name, of the database of the connection."""
        namespace = table.database or table.schema or self._address.database or ""
        with self._source_errors():
            found = self._all(_COLUMNS, (namespace, table.name))
        columns = tuple(SourceColumn(name=name, type=kind) for name, kind in found)
        return SourceTable(namespace=namespace, name=table.name, columns=columns) if columns else None

    def rows(self, statement: str) -> Iterator[Sequence[tuple[Any, ...]]]:
        """Yield the rows of a query, as the server sends them."""
        with self._source_errors(), self._connection.cursor(SSCursor) as cursor:
            cursor.execute(statement)
            while rows := cursor.fetchmany(BATCH):
                yield rows

    def _all(self, statement: str, given: Sequence[str] | None = None) -> Sequence[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, given)
            return list(cursor.fetchall())
