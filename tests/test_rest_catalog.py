"""The five stages over an Iceberg REST catalog: the server that docker-compose.yaml starts, without Docker."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyiceberg.catalog import load_catalog

from histories import Table, deliver, message
from reference import fold
from tidemark.jars import jar_paths
from tidemark.processes import LOOPBACK, Server, answers, free_port, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[1]
LOCK = Path(__file__).with_name("rest_catalog.lock")
MAVEN = "https://repo1.maven.org/maven2"
SERVER = "org.apache.iceberg.rest.RESTCatalogServer"


def server_jars() -> list[str]:
    """Fetch the jars of the server that are missing beside the pinned ones, and verify them all; their paths."""
    folder = Path(jar_paths()[0]).with_name("rest-catalog")
    folder.mkdir(exist_ok=True)
    found = []
    for line in LOCK.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        path, sha256 = line.split()
        jar = folder / Path(path).name
        if not jar.exists():
            with urllib.request.urlopen(f"{MAVEN}/{path}", timeout=120) as answer:  # noqa: S310 - a constant
                part = jar.with_suffix(f".{os.getpid()}")
                part.write_bytes(answer.read())
                part.rename(jar)
        assert hashlib.sha256(jar.read_bytes()).hexdigest() == sha256, jar
        found.append(str(jar))
    return found


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[str]:
    """A REST catalog on the loopback address, its warehouse in a folder; its address."""
    port = free_port(None)
    jars = [*server_jars(), *jar_paths(), str(Path(pyspark.__file__).parent / "jars" / "*")]
    jars = [jar for jar in jars if "iceberg-spark-runtime" not in jar]
    environment = {
        **os.environ,
        "REST_PORT": str(port),
        "CATALOG_REST_PORT": str(port),
        "CATALOG_URI": f"jdbc:sqlite:{tmp_path / 'rest.db'}?journal_mode=WAL&busy_timeout=30000",
        "CATALOG_CLIENTS": "1",
        "CATALOG_WAREHOUSE": (tmp_path / "warehouse").as_uri(),
    }
    command = ["java", "-Xmx256m", "-cp", os.pathsep.join(jars), SERVER]
    server = Server("REST catalog", command, environment=environment, log=tmp_path / "rest.log")
    try:
        wait_until(lambda: answers(port), servers=[server], seconds=90, what="the REST catalog")
        yield f"http://{LOOPBACK}:{port}"
    finally:
        server.stop()


def test_five_stages_over_a_rest_catalog_publish_the_model(catalog: str, tmp_path: Path) -> None:
    """Two runs, a rebuild and maintenance, PyIceberg and Spark both through the server: the rows are the model's."""
    table = Table("items")
    first = [table.insert(1, 1, "a", "b"), table.insert(2, 2, "x", "y")]
    then = [table.update(3, 1, "c", ...), table.delete(4, 2), table.insert(5, 3, "d", "e")]
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "shop.yaml").write_text(
        f"source: rested\nformat: debezium_json\nlanding: {tmp_path}/landing/*\n"
        "tables: {'shop.*': {key: [id], history: true}}\n",
        encoding="utf-8",
    )
    environment = {
        **os.environ,
        "TIDEMARK_HOME": str(tmp_path / "home"),
        "TIDEMARK_SOURCES": str(tmp_path / "sources"),
        "PYICEBERG_CATALOG__TIDEMARK__TYPE": "rest",
        "PYICEBERG_CATALOG__TIDEMARK__URI": catalog,
        "PYTHONPATH": str(ROOT / "include"),
    }

    def tidemark(*arguments: str) -> str:
        command = [sys.executable, "-c", "from tidemark.cli import main; main()", *arguments]
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr[-5000:]
        return done.stdout

    deliver(tmp_path / "landing", "0", map(message, first))
    assert "rested publish: cut=1 tables=1" in tidemark("run", "rested")
    deliver(tmp_path / "landing", "1", map(message, then))
    assert "rested publish: cut=2 tables=1" in tidemark("run", "rested")
    expected = [(row["id"], row["name"], row["note"]) for row in fold([*first, *then])["items"].values()]

    def published() -> list[tuple[object, ...]]:
        answer = tidemark("sql", "--format", "json", "SELECT id, name, note FROM rested.items ORDER BY id")
        return [tuple(json.loads(line).values()) for line in answer.splitlines()]

    assert published() == sorted(expected)
    assert "rested publish: cut=3 tables=1" in tidemark("rebuild", "rested")
    assert "rested maintain: tables=" in tidemark("maintain", "rested")
    assert published() == sorted(expected)
    found = load_catalog("tidemark", type="rest", uri=catalog).load_table(("rested", "items"))
    assert found.location().startswith((tmp_path / "warehouse").as_uri())
    assert {f"cut_{number}" for number in (1, 2, 3)} <= found.refs().keys()
    assert not (tmp_path / "home" / "catalog.db").exists()
