"""What a killed task left on a Spark Connect server ends before the next task of its source writes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql.connect.client import SparkConnectClient

from support.listening import LOOPBACK_ONLY, addresses
from tidemark.services.spark_connect import SparkConnectServer
from tidemark.spark import connect_sessions
from tidemark.spark.session import local_settings

WORK = """
import sys
from pyspark.sql import SparkSession
session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
print(session.range(1).count(), flush=True)
sys.stdin.readline()
session.sql("SELECT max(hash(id)) FROM range(1000000000000)").collect()
"""
"""Says that its session is there, waits for a line, and works for hours then."""

TABLE = """
import sys
from pyspark.sql import SparkSession
session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()

def on_a_worker(batches):
    from tidemark.normalization import tasks  # what a task imports
    for batch in batches:
        yield batch

for name, value in (("", "org.apache.iceberg.spark.SparkCatalog"), (".type", "hadoop"), (".warehouse", sys.argv[2])):
    session.conf.set(f"spark.sql.catalog.own{name}", value)
session.range(3).mapInArrow(on_a_worker, "id long").writeTo("own.db.numbers").create()
print(session.table("own.db.numbers").count())
"""
"""Writes an Iceberg table of a catalog of its session, with rows that Python made."""

pytestmark = [pytest.mark.spark, pytest.mark.more]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkConnectServer]:
    """A warm Spark that tasks share."""
    folder = tmp_path_factory.mktemp("connect") / "spark"
    with SparkConnectServer(folder=folder, settings=local_settings(), driver_memory="1g") as server:
        yield server


def test_work_of_an_earlier_session_ends(server: SparkConnectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source had another session before the half hour was over: its work is cancelled, that of others goes on."""
    before, other = str(uuid4()), str(uuid4())
    client = SparkConnectClient(f"{server.url}/")
    working = [
        subprocess.Popen(
            [sys.executable, "-c", WORK, f"{server.url}/;session_id={session}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        for session in (before, other)
    ]
    try:
        # Work that begins takes every core: the other session has to be there before.
        for each in working:
            assert each.stdout is not None
            assert each.stdout.readline() == "1\n"
        for each in working:
            assert each.stdin is not None
            each.stdin.write("\n")
        time.sleep(2)
        monkeypatch.setenv(connect_sessions.EARLIER_SESSIONS_VARIABLE, f"{uuid4()},{before}")
        connect_sessions.end(client, connect_sessions.earlier())
        assert working[0].wait(timeout=60) != 0
        assert working[1].poll() is None
    finally:
        for each in working:
            each.kill()
            each.communicate()
        # The server goes on with the work of a client that is gone.
        connect_sessions.end(client, [before, other])
        client.close()


def test_settings_are_private_and_nothing_listens_beyond_this_machine(server: SparkConnectServer) -> None:
    """A catalog's password may be among the settings."""
    assert (server.folder / "spark.conf").stat().st_mode & 0o777 == 0o600
    assert addresses(server.port)
    assert addresses(server.port) <= LOOPBACK_ONLY


def test_a_client_writes_a_table_and_its_workers_have_tidemark(server: SparkConnectServer, tmp_path: Path) -> None:
    """The server has the jars, and tells its workers which Python they are; they find the package."""
    command = [sys.executable, "-c", TABLE, server.url, tmp_path.as_uri()]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == "3\n", done.stderr[-3000:]


def test_sessions_of_a_source_follow_the_clock() -> None:
    """Within half an hour a source has one session; the next one knows it, and those of a day, as earlier ones."""
    now, later, next_day = (connect_sessions.ids_of("erp", seconds) for seconds in (1799.0, 1800.0, 86_400.0))
    assert connect_sessions.ids_of("erp", 0.0) == now
    assert now[0] == later[1]
    assert now[0] in next_day
    assert len(set(now)) == len(now)
    assert not {*now} & {*connect_sessions.ids_of("crm", 0.0)}
