"""The five stages over what docker-compose.yaml names, without Docker: a catalog, an object store, and a Spark cluster.

The catalog is the REST server of the image, Iceberg's own; the store is moto, which speaks S3. Both are pinned, and
fetched once. The cluster takes part in ``make prove``; ``make test`` submits to a Spark that is its own executor.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pyspark
import pytest
import yaml
from pyarrow import fs

from support.browser import PROGRAM as BROWSER
from support.browser import browser
from support.histories import Table, deliver, message
from support.reference import fold
from support.rounds import PROVING
from support.spark_cluster import event_log, executors, spark_cluster, spark_submit
from tidemark import jars
from tidemark.jars import jar_paths
from tidemark.services.processes import LOOPBACK, Server, answers, free_port, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.more]

ROOT = Path(__file__).parents[2]
LOCKS = Path(__file__).with_name("object_store")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yaml").read_text("utf-8"))
FETCHED = jars.folder().with_name("for-tests")
"""Beside the pinned jars: what only these tests need."""
OWNED = "canary-7c03"
"""Value of a setting that an owner's own rule keeps back."""
SECRETS = {"S3_ACCESS_KEY": "access", "S3_SECRET_KEY": "canary-7c02"}

DAYS = ("run rested --start 2026-01-01 --end 2026-01-02", "run rested --start 2026-01-02 --end 2026-01-03")
UPKEEP = ("rebuild rested", "maintain rested")
COMMANDS = (*DAYS, *UPKEEP) if PROVING else ("run rested",)
PROGRAM = """\
import sys

from tidemark.cli.app import app

for command in sys.argv[1:]:
    status = app(command.split(), standalone_mode=False)
    if status:
        raise SystemExit(f"{command}: {status}")
query = "SELECT id, name, note FROM rested.items ORDER BY id"
app(["sql", "--format", "json", query], standalone_mode=False)
"""
"""One process, as each would start a Spark of its own."""


def fetched(jars_: Mapping[str, str]) -> list[Path]:
    """Return jars of Maven Central, by path and SHA-256; those that are missing are fetched by Spark's own resolver."""
    paths = [FETCHED / Path(path).name for path in jars_]
    if not all(path.exists() for path in paths):
        FETCHED.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "ivy.xml").write_text(wanted(jars_), "utf-8")
            ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
            command = ["java", "-cp", str(ivy), "org.apache.ivy.Main", "-cache", f"{folder}/cache"]
            command += [
                "-ivy",
                f"{folder}/ivy.xml",
                "-retrieve",
                f"{FETCHED}/[artifact]-[revision](-[classifier]).[ext]",
            ]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout
    for path, sha256 in zip(paths, jars_.values(), strict=True):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256, path
    return paths


def wanted(paths: Iterable[str]) -> str:
    """Write what Ivy is to resolve."""
    module = ET.Element("ivy-module", version="2.0")
    ET.SubElement(module, "info", organisation="tidemark", module="tests")
    dependencies = ET.SubElement(module, "dependencies")
    for module_path, files in itertools.groupby(paths, lambda path: path.rpartition("/")[0]):
        *organisation, name, revision = module_path.split("/")
        dependency = ET.SubElement(
            dependencies, "dependency", org=".".join(organisation), name=name, rev=revision, transitive="false"
        )
        for file in files:
            artifact = ET.SubElement(dependency, "artifact", name=name, type="jar")
            classifier = file.removeprefix(f"{module_path}/{name}-{revision}").removesuffix(".jar").removeprefix("-")
            if classifier:
                artifact.set("{http://ant.apache.org/ivy/maven}classifier", classifier)
    return ET.tostring(module, encoding="unicode")


def jars_of_catalog() -> list[Path]:
    """Return the jars of the REST server, behind Iceberg's access to S3 as the image has it."""
    text = (ROOT / "docker" / "Dockerfile").read_text("utf-8")
    found = re.search(r"org.apache.iceberg:(iceberg-aws-bundle):(\S+) \\\s+(\w{64})", text)
    assert found
    name, version, sha256 = found.groups()
    lines = (LOCKS / "catalog.lock").read_text("utf-8").splitlines()
    own = dict(line.split() for line in lines if not line.startswith("#"))
    return fetched({f"org/apache/iceberg/{name}/{version}/{name}-{version}.jar": sha256, **own})


def packages_of_store() -> Path:
    """Return the folder of the store's packages; they are installed there if they are not."""
    packages = FETCHED / "moto"
    if not packages.exists():
        FETCHED.mkdir(parents=True, exist_ok=True)
        install = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--require-hashes"]
        part = packages.with_name(f"moto.{os.getpid()}")
        subprocess.run([*install, "--target", str(part), "-r", str(LOCKS / "store.lock")], check=True)
        part.rename(packages)
    return packages


def settings(given: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, str]:
    """Return settings of the compose file, with its secrets filled in and its addresses changed to these."""
    filled = {name: re.sub(r"\$\{(\w+):.*\}", lambda secret: SECRETS[secret[1]], text) for name, text in given.items()}
    for before, after in changes.items():
        filled = {name: text.replace(before, after) for name, text in filled.items()}
    return filled


class Services(NamedTuple):
    """Addresses of the object store and of the REST catalog, and the jar of Iceberg's access to S3."""

    store: str
    catalog: str
    bundle: Path


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """An object store with the bucket of the compose file, and the REST catalog with its settings, on loopback.

    They are fetched, and start, side by side: a test run waits for both.
    """
    with ThreadPoolExecutor() as pool:
        fetching = pool.submit(jars_of_catalog)
        packages, (bundle, *own) = packages_of_store(), fetching.result()
    store, catalog = free_port(None), free_port(None)
    while catalog == store:
        catalog = free_port(None)
    urls = [f"http://{LOOPBACK}:{port}" for port in (store, catalog)]
    with ExitStack() as started:
        servers = [_store(packages, store, tmp_path), _catalog([*own, bundle], catalog, urls[0], tmp_path)]
        for server in servers:
            started.callback(server.stop)
        both = "the object store and the REST catalog"
        wait_until(lambda: answers(store) and answers(catalog), servers=servers, seconds=90, what=both)
        access = {"access_key": SECRETS["S3_ACCESS_KEY"], "secret_key": SECRETS["S3_SECRET_KEY"], "region": "us-east-1"}
        fs.S3FileSystem(endpoint_override=urls[0], allow_bucket_creation=True, **access).create_dir("lake")
        yield Services(*urls, bundle)


def _store(packages: Path, port: int, place: Path) -> Server:
    command = [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    return Server("object store", command, environment=environment, log=place / "store.log")


def _catalog(own: Sequence[Path], port: int, store: str, place: Path) -> Server:
    others = [jar for jar in jar_paths() if "iceberg" not in Path(jar).name]
    path = [*map(str, own), *others, str(Path(pyspark.__file__).parent / "jars" / "*")]
    changes = {"http://store:8333": store, "/home/iceberg": str(place)}
    environment = {
        **os.environ,
        **settings(COMPOSE["services"]["catalog"]["environment"], changes),
        "CATALOG_REST_PORT": str(port),
        "CATALOG_HTTP__CLIENT_TYPE": "urlconnection",  # the image has another version of the AWS SDK
    }
    command = ["java", "-Xmx256m", "-cp", os.pathsep.join(path), "org.apache.iceberg.rest.RESTCatalogServer"]
    return Server("REST catalog", command, environment=environment, log=place / "catalog.log")


def test_rest_catalog_and_object_store_hold_the_model(services: Services, tmp_path: Path) -> None:
    """Two days are run with the compose file's settings: rows are the model's, and all is in the bucket.

    Spark's event log has no secret of the catalog, as ``spark/test_redaction.py`` says for every kind of secret.
    In ``make prove`` a cluster does it, with a history. Each day has a run, a rebuild and maintenance follow, and the
    report is read from the store.
    """
    store, catalog, bundle = services
    table = Table("items")
    first = [table.insert(1, 1, "a", "b"), table.insert(2, 2, "x", "y")]
    then = [table.update(3, 1, "c", ...), table.delete(4, 2), table.insert(5, 3, "d", "e")]
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "shop.yaml").write_text(
        f"source: rested\nformat: debezium_json\nlanding: {tmp_path}/landing/%Y-%m-%d/*\n"
        f"tables: {{'shop.*': {{key: [id], history: {str(PROVING).lower()}}}}}\n",
        encoding="utf-8",
    )
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    environment = {
        **os.environ,
        **settings(COMPOSE["x-lake"], {"http://store:8333": store, "http://catalog:8181": catalog}),
        "TIDEMARK_HOME": str(tmp_path / "home"),
        "TIDEMARK_SOURCES": str(tmp_path / "sources"),
        "TIDEMARK_REPORT": "on" if PROVING else "off",
        "PYTHONPATH": str(ROOT / "include"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": LOOPBACK,
    }

    deliver(tmp_path / "landing" / "2026-01-01", "0", map(message, first))
    deliver(tmp_path / "landing" / "2026-01-02", "0", map(message, then))
    (tmp_path / "events").mkdir()
    with spark_cluster(tmp_path, COMPOSE["services"]) if PROVING else nullcontext("local[2]") as master:
        command = [*spark_submit(master, [*jar_paths(), str(bundle)]), *event_log(tmp_path / "events", owned=OWNED)]
        command += [str(program), *COMMANDS]
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    logs = executors(tmp_path) if PROVING else []
    assert logs or not PROVING, "no executor of the cluster took part"
    (events,) = (file.read_text("utf-8") for file in (tmp_path / "events").iterdir())
    assert "spark.sql.catalog.tidemark.s3.secret-access-key" in events
    written = (done.stdout, done.stderr, *logs, events)
    assert not [text for text in written for secret in (SECRETS["S3_SECRET_KEY"], OWNED) if secret in text]
    for cut in range(1, 1 + len(COMMANDS) - ("maintain rested" in COMMANDS)):
        assert f"rested publish: cut={cut} tables=1" in done.stdout
    assert ("rested maintain: tables=" in done.stdout) == PROVING
    answer = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    expected = [(row["id"], row["name"], row["note"]) for row in fold([*first, *then])["items"].values()]
    assert [tuple(row.values()) for row in answer] == sorted(expected)
    access = {"access_key": SECRETS["S3_ACCESS_KEY"], "secret_key": SECRETS["S3_SECRET_KEY"], "region": "us-east-1"}
    bucket = fs.S3FileSystem(endpoint_override=store, **access)
    files = bucket.get_file_info(fs.FileSelector("lake", recursive=True))
    folders = {file.path.split("/")[1] for file in files}
    assert {"raw", "changelog", "state", "ledger", "rested"} <= folders
    assert not list((tmp_path / "home").rglob("*.parquet"))
    if PROVING and BROWSER:
        _read_the_report(tmp_path / "home" / "quality" / "site", bucket, store, tmp_path / "profile")


def _read_the_report(site: Path, bucket: fs.S3FileSystem, store: str, profile: Path) -> None:
    """Copy the pages to the store, and read them from there: a store knows files, and no index of a folder."""
    for page in site.rglob("*.html"):
        key = f"lake/report/{page.relative_to(site)}"
        with bucket.open_output_stream(key, metadata={"Content-Type": "text/html"}) as copied:
            copied.write(page.read_bytes())
    with browser(profile) as tab:
        tab.open(f"{store}/lake/report/index.html")
        for link, heading in (
            ("a.cell", f"Cut {len(COMMANDS) - 1} of rested"),  # the newest of its day: maintenance makes none
            ("nav li:nth-child(2) a", "rested"),
            ("th.name a", "rested.items"),
        ):
            address = tab.value(f"document.querySelector('{link}').href")
            tab.open(address)
            assert tab.value("document.querySelector('h1').textContent") == heading
            assert (tab.requests(), tab.complaints()) == ([address], [])
