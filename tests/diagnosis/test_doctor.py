"""``tidemark doctor``: it names what is missing, with what to do, and makes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner

from tidemark import INCLUDE
from tidemark.cli.app import app
from tidemark.diagnosis import machine, schedulers, stores
from tidemark.errors import ConfigurationError
from tidemark.lake.catalog import cuts_password
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger

RUNNER = CliRunner()

HOLDER = """\
import time
from tidemark.lake import locks
with locks.hold("erp"):
    print("held", flush=True)
    time.sleep(60)
"""

SOURCE = "source: {name}\nformat: canal_json\nlanding: {landing}\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that does not exist, and a folder of source files with one source whose landing has a file."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path / "sources"))
    monkeypatch.delenv("AIRFLOW__CORE__EXECUTOR", raising=False)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    (tmp_path / "sources").mkdir()
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.jsonl").write_text("{}\n")
    (tmp_path / "sources" / "erp.yaml").write_text(SOURCE.format(name="erp", landing=f"{tmp_path}/landing/*"))
    return tmp_path


def examined(*arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Run the command; return its exit status, and its findings by what was looked at."""
    done = RUNNER.invoke(app, ["doctor", "--json", *arguments])
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    return done.exit_code, {finding["what"]: finding for finding in findings}


def test_all_is_well_without_a_lake_and_none_is_made(place: Path) -> None:
    """Status 0 on a machine that `make setup` made, with every part looked at, and no home afterwards."""
    status, found = examined()
    assert status == 0, found
    parts = {
        "python",
        "java",
        "jars",
        "class archive",
        "memory",
        "disk",
        "home",
        "catalog",
        "lock",
        "sources",
        "landing of erp",
        "airflow",
    }
    assert set(found) == parts
    assert found["landing of erp"]["found"] == f"1 files match {place}/landing/*"
    assert "not made yet" in found["catalog"]["found"]
    assert not (place / "home").exists()


def test_each_mistake_is_a_problem_with_what_to_do(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java, no jars, a wrong file, no landing folder: status 1, each with a remedy; a common lack is shown once."""
    monkeypatch.setenv("JAVA_HOME", str(place))
    monkeypatch.setenv("TIDEMARK_JARS", str(place / "jars"))
    for name in ("crm", "hr"):
        (place / "sources" / f"{name}.yaml").write_text(SOURCE.format(name=name, landing=f"{place}/nowhere/{name}/*"))
    (place / "sources" / "bad.yaml").write_text(SOURCE.format(name="bad", landing="x").replace("canal", "canl"))
    status, found = examined()
    wrong = {what: each for what, each in found.items() if each["level"] == "problem"}
    assert status == 1
    assert set(wrong) == {"java", "jars", "source file", "landing of crm, hr"}
    assert all(each["do"] for each in wrong.values())
    assert "make setup" in wrong["jars"]["do"]
    assert f"{place}/nowhere" in wrong["landing of crm, hr"]["found"]
    assert "bad.yaml:2" in wrong["source file"]["found"]
    assert examined("erp")[1].keys().isdisjoint({"source file", "landing of crm, hr"})
    shown = RUNNER.invoke(app, ["doctor"]).stdout
    assert "problem  java: " in shown
    assert "4 problems" in shown


def test_a_fresh_checkout_has_no_problem(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundled sources have no dumps yet: a warning says what names a folder. One that is named must be there."""
    monkeypatch.chdir(place)
    (place / "landing").rename(place / "dumps")
    text = SOURCE.format(name="erp", landing="${TIDEMARK_LANDING:-landing}/erp/%Y-%m-%d/*")
    (place / "sources" / "erp.yaml").write_text(text)
    monkeypatch.delenv("TIDEMARK_LANDING", raising=False)
    status, found = examined()
    assert (status, found["landing of erp"]["level"]) == (0, "warning")
    assert "TIDEMARK_LANDING" in found["landing of erp"]["do"]
    monkeypatch.setenv("TIDEMARK_LANDING", str(place / "landing"))
    status, found = examined()
    assert (status, found["landing of erp"]["level"]) == (1, "problem")


@pytest.mark.parametrize(
    ("version", "level"),
    [('openjdk version "17.0.15" 2025', "ok"), ('java version "1.8.0_392"', "problem"), ('x version "21"', "warning")],
)
def test_java_is_told_by_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, level: str
) -> None:
    """17 is what tests run on; an older one is a problem, a newer one a warning."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert machine.java().level == level


def test_a_jar_that_was_changed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checksum is looked at, not only the name."""
    real = machine.jars.folder()
    for jar in real.iterdir():
        (tmp_path / jar.name).symlink_to(jar)
    monkeypatch.setenv("TIDEMARK_JARS", str(tmp_path))
    assert machine.pinned_jars().level == "ok"
    victim = Path(machine.jars.jar_paths()[0])
    victim.unlink()
    victim.write_bytes(b"not a jar")
    assert machine.pinned_jars().level == "problem"
    assert victim.name in machine.pinned_jars().found


def test_a_catalog_that_does_not_answer_shows_no_secret(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address is shown without user, password and options, and a connection is given up in seconds."""
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__TYPE", "sql")
    monkeypatch.setenv(
        "PYICEBERG_CATALOG__TIDEMARK__URI", "postgresql+psycopg://etl:hunter2@127.0.0.1:1/lake?password=hunter3"
    )
    status, found = examined()
    assert status == 1
    assert found["catalog"]["level"] == "problem"
    assert "hunter" not in json.dumps(found)
    for uri, shown in {
        "postgresql+psycopg://etl:hunter2@db.example.com/lake?password=x": "postgresql+psycopg://db.example.com/lake",
        "https://etl:hunter2@rest.example.com:8181/api?token=x": "https://rest.example.com:8181/api",
    }.items():
        assert stores.shown_address(uri) == shown


@pytest.mark.parametrize("type_", ["sql", "rest"])
def test_a_password_with_an_at_sign_is_refused_and_not_shown(
    place: Path, monkeypatch: pytest.MonkeyPatch, type_: str
) -> None:
    """Readers of addresses would take its second half for the host."""
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__TYPE", type_)
    for uri in ("postgresql+psycopg://etl:hqx@tqr2@127.0.0.1:1/lake", "mysql+pymysql://etl:hqx@tq/r2?@127.0.0.1/lake"):
        monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__URI", uri)
        status, found = examined()
        assert status == 1
        assert "%40" in found["catalog"]["found"]
        assert not [text for text in ("hqx", "tqr2", "tq/r2", "r2@") if text in json.dumps(found)]
        assert stores.shown_address(uri) == "(no address)"
        for opened in (Lake.open, Lake.existing):
            with pytest.raises(ConfigurationError, match="Write each `@` of a password, or of an option, as `%40`"):
                opened()


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql+psycopg://etl:hun%40ter2@db/lake?options=a%40b",
        "postgresql+psycopg://etl@db/la@ke",
        "sqlite:////home/a:b@c/d@e/catalog.db",
        "https://rest.example.com/a:b@c@d",
        "thrift://one:9083,two:9083",
    ],
)
def test_other_addresses_have_whole_passwords(uri: str) -> None:
    """An `@` elsewhere, or one that is written as `%40`, ends no password."""
    assert not cuts_password(uri)


def test_a_clock_that_is_behind_the_lake_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it stops a run: the newest commit of the ledger is compared with the clock of this machine."""
    Ledger(Lake.open(), "erp").leave_number(1)
    assert examined()[1]["clock"]["level"] == "ok"
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 300 * 10**9)
    status, found = examined()
    assert (status, found["clock"]["level"]) == (1, "problem")
    assert found["clock"]["found"].startswith("the clock of this machine is 0:0")
    assert "clocks.md" in found["clock"]["do"]


def test_an_sql_catalog_without_a_lake_stays_as_it_is(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doctor says that it answers and has no lake; no table is made in it. With a lake, its namespaces are counted."""
    database = place / "other.db"
    database.touch()
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__URI", f"sqlite:///{database}")
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__WAREHOUSE", (place / "warehouse").as_uri())
    assert "holds no lake yet" in examined()[1]["catalog"]["found"]
    assert database.stat().st_size == 0
    properties = {"type": "sql", "uri": f"sqlite:///{database}", "warehouse": (place / "warehouse").as_uri()}
    Lake("tidemark", properties).catalog.create_namespace("erp")
    assert examined()[1]["catalog"]["found"].endswith("answers, 1 namespaces")


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("AIRFLOW__CORE__EXECUTOR", "LocalExecutor", "ok"),
        ("AIRFLOW__CORE__EXECUTOR", "LocalExecutor,CeleryExecutor", "problem"),
        ("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "extra": {"deploy-mode": "cluster"}}', "problem"),
        ("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "extra": {"deploy-mode": "client"}}', "ok"),
    ],
)
def test_a_lock_of_this_machine_beside_tasks_on_others_is_a_problem(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, level: str
) -> None:
    """Executors and deploy modes that run stages elsewhere need a lock that reaches there."""
    monkeypatch.setenv(name, value)
    assert stores.lock_reach().level == level


def test_executor_is_read_from_airflows_own_file(place: Path) -> None:
    """airflow.cfg counts where the environment says nothing."""
    (place / "airflow").mkdir()
    (place / "airflow" / "airflow.cfg").write_text("[core]\nexecutor = KubernetesExecutor\nsecret = %x\n")
    assert stores.lock_reach().level == "problem"
    assert "KubernetesExecutor" in stores.lock_reach().found


def test_who_writes_a_source_is_told_and_since_when(place: Path) -> None:
    """The holder's process, machine and command; nobody once it ended, also by SIGKILL."""
    environment = {**os.environ, "PYTHONPATH": str(INCLUDE)}
    process = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline()
    found = examined()[1]["lock of erp"]
    process.kill()
    process.communicate()
    assert f"process {process.pid} on " in found["found"]
    assert ", since 20" in found["found"]
    assert "lock of erp" not in examined()[1]


@pytest.fixture
def airflow(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """A server that answers as Airflow's health page does, at the address that ``make up`` wrote down."""
    health: dict[str, object] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(health).encode())

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    (place / "home" / "airflow").mkdir(parents=True)
    record = {"url": f"http://127.0.0.1:{server.server_port}"}
    (place / "home" / "airflow" / "up.json").write_text(json.dumps(record))
    yield health
    server.shutdown()
    server.server_close()


def test_parts_of_airflow_that_do_not_run_are_named(airflow: dict[str, object]) -> None:
    """A part that is not healthy is a problem; a triggerer that was never started is none."""
    airflow |= {"scheduler": {"status": "healthy"}, "triggerer": {"status": None}}
    assert [each.level for each in schedulers.examined()] == ["ok"]
    airflow["scheduler"] = {"status": "unhealthy"}
    (found,) = schedulers.examined()
    assert (found.level, found.found.startswith("scheduler at http")) == ("problem", True)


def test_an_airflow_that_does_not_answer_is_a_problem(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the environment names one."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://127.0.0.1:1")
    assert [each.level for each in schedulers.examined()] == ["problem"]
