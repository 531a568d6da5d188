"""The databases of the lab: each a server of its own in a folder, on the loopback address."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
import pymysql
from fetching import mysql_folder

from support.source_databases import mariadb, password
from tidemark.errors import ConfigurationError
from tidemark.services.processes import LOOPBACK, Server, free_port, wait_until

USER: Final = "lab"


@dataclass(frozen=True)
class Database:
    """A server that runs, and how to get in."""

    kind: str
    port: int
    password: str

    def connect(self) -> Any:
        """Return a connection in which each statement commits itself, until a BEGIN."""
        if self.kind == "postgresql":
            return psycopg.connect(
                host=LOOPBACK, port=self.port, user=USER, password=self.password, dbname="lab", autocommit=True
            )
        return pymysql.connect(
            host=LOOPBACK, port=self.port, user=USER, password=self.password, database="lab", autocommit=True,
            init_command="SET time_zone='+00:00', sql_mode=''", use_unicode=True, charset="utf8mb4",
        )  # fmt: skip

    def execute(self, *statements: str) -> None:
        """Execute statements one by one in a connection of their own."""
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def forget_log(self) -> None:
        """Drop what the log holds: the place where a tool stopped is not there any more."""
        with self.connect() as connection, connection.cursor() as cursor:
            if self.kind == "postgresql":
                cursor.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
                wait_until(lambda: _drop_slots(cursor), servers=[], seconds=60, what="the end of the slots")
                return
            cursor.execute("FLUSH BINARY LOGS")
            cursor.execute("SHOW MASTER STATUS")
            cursor.execute("PURGE BINARY LOGS TO %s", cursor.fetchone()[:1])


def _drop_slots(cursor: Any) -> bool:
    """Drop the slots that no tool uses; whether there is none any more."""
    cursor.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active")
    cursor.execute("SELECT FROM pg_replication_slots")
    return cursor.fetchone() is None


@contextmanager
def running(kind: str, folder: Path, settings: Mapping[str, str]) -> Iterator[Database]:
    """Run a database of this kind within the context, with these settings of its server."""
    start = {"postgresql": _postgresql, "mysql": _mysql, "mariadb": _mariadb}[kind]
    folder.mkdir(parents=True)
    with start(folder, settings) as database:
        yield database


@contextmanager
def _postgresql(folder: Path, settings: Mapping[str, str]) -> Iterator[Database]:
    programs = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
    if programs is None:
        raise ConfigurationError("PostgreSQL is missing: apt-get install postgresql postgresql-contrib")
    root = os.geteuid() == 0  # PostgreSQL refuses to run as root
    user: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if root else {}
    database = Database("postgresql", free_port(), password())
    secret = folder / "password"
    secret.write_text(database.password, encoding="utf-8")
    data = folder / "data"
    data.mkdir()
    if root:
        owner = pwd.getpwnam("postgres")
        for path in (folder, data, secret):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    create = [programs / "initdb", "-D", data, "-U", USER, "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8"]
    subprocess.run([*create, "--locale=C.UTF-8"], check=True, capture_output=True, cwd=folder, **user)
    own = {"wal_level": "logical", "max_replication_slots": "40", "max_wal_senders": "40", "fsync": "off",
           "max_prepared_transactions": "5", "listen_addresses": LOOPBACK, "unix_socket_directories": "",
           "port": str(database.port), "timezone": "UTC", **settings}  # fmt: skip
    command = [str(programs / "postgres"), "-D", str(data)]
    for name, value in own.items():
        command += ["-c", f"{name}={value}"]
    if root:
        command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]
    server = Server("postgresql", command, environment=os.environ, log=folder / "log")
    try:
        where = {"host": LOOPBACK, "port": database.port, "user": USER, "password": database.password}
        wait_until(lambda: _enters(psycopg.connect, **where), servers=[server], seconds=60, what="PostgreSQL's start")
        with psycopg.connect(**where, dbname="postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE lab")
        yield database
    finally:
        server.stop()


@contextmanager
def _mariadb(folder: Path, settings: Mapping[str, str]) -> Iterator[Database]:
    database = Database("mariadb", free_port(), password())
    network = ["--skip-networking=0", f"--port={database.port}", f"--bind-address={LOOPBACK}", "--binlog-format=ROW"]
    with mariadb(folder, database.password, *network, *_options(settings)):
        _let_in(database, unix_socket=str(folder / "s"), password=database.password)
        yield database


@contextmanager
def _mysql(folder: Path, settings: Mapping[str, str]) -> Iterator[Database]:
    base = mysql_folder()
    database = Database("mysql", free_port(), password())
    data, socket = folder / "data", folder / "s"
    me = pwd.getpwuid(os.getuid()).pw_name
    begin = [str(base / "bin" / "mysqld"), "--no-defaults", f"--basedir={base}", f"--datadir={data}", f"--user={me}"]
    made = subprocess.run([*begin, "--initialize-insecure"], capture_output=True, check=False)
    if made.returncode:
        missing = "apt-get install libaio1 libncurses6"
        raise ConfigurationError(f"MySQL cannot run here ({missing}): {made.stderr.decode(errors='replace')[-800:]}")
    network = [f"--port={database.port}", f"--bind-address={LOOPBACK}", "--mysqlx=OFF", f"--socket={socket}"]
    log = ["--log-bin=mysql-bin", "--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"]
    small = ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0", "--performance-schema=OFF"]
    command = [*begin, *network, *log, *small, f"--pid-file={folder / 'pid'}", *_options(settings)]
    server = Server("mysql", command, environment=os.environ, log=folder / "log")
    try:
        ready = {"unix_socket": str(socket), "user": "root", "password": ""}
        wait_until(lambda: _enters(pymysql.connect, **ready), servers=[server], seconds=120, what="MySQL's start")
        _let_in(database, unix_socket=str(socket), password="")
        yield database
    finally:
        server.stop()


def _let_in(database: Database, **root: str) -> None:
    with pymysql.connect(user="root", **root) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE lab CHARACTER SET utf8mb4")
        cursor.execute(f"CREATE USER {USER}@'%%' IDENTIFIED BY %s", (database.password,))
        cursor.execute(f"GRANT ALL ON *.* TO {USER}@'%'")


def _enters(connect: Any, **how: Any) -> bool:
    try:
        connect(**how, **({"dbname": "postgres"} if connect is psycopg.connect else {})).close()
    except (psycopg.OperationalError, pymysql.OperationalError):
        return False
    return True


def _options(settings: Mapping[str, str]) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
