"""What people write in place of Tidemark: the newest change of each key, merged into one Iceberg or Delta table.

python bench/peers.py PEER FOLDER fetch             fetch its jars
python bench/peers.py PEER FOLDER load FILE...      make the table from an initial load
python bench/peers.py PEER FOLDER merge FILE...     merge a batch
python bench/peers.py PEER FOLDER read              read all columns, write rows and a sum to FOLDER/read.json
python bench/peers.py PEER FOLDER serve             carry out the steps of the standard input, one after the other

Each is a process of its own, the last one for all batches. A peer keeps no raw message, no log of changes and no
ledger, and it finds no bad message. It knows the order within a batch only: a change that comes in a later batch than a
newer one overwrites the newer one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import changes
import floor
import psutil
import upserting
from costs import Cost, apart, of_call
from generator import COLUMNS, KEY
from pyspark.sql import SparkSession

from tidemark import jars
from tidemark.spark.session import EXTENSIONS, open_session

FETCH, LOAD, MERGE, READ, SERVE = "fetch", "load", "merge", "read", "serve"

TIDEMARK = "tidemark"
"""No peer: reads the table that Tidemark published, so that reading is compared too."""

HUDI = "hudi-merge-on-read"
"""Runs in an environment of its own (``hudi.py``)."""

UPSERT = "pyiceberg-upsert"
"""Runs without Spark (``upserting.py``)."""

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A table format, and how it is configured to merge."""

    table: str
    provider: str
    properties: Mapping[str, str]
    settings: Mapping[str, str]


def _iceberg(folder: Path, mode: str) -> Peer:
    catalog = "spark.sql.catalog.peer"
    return Peer(
        table="peer.bench.orders",
        provider="iceberg",
        properties={"format-version": "3", "write.merge.mode": mode},
        settings={
            "spark.driver.extraClassPath": ":".join(jars.jar_paths()),
            "spark.sql.extensions": EXTENSIONS,
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "hadoop",
            f"{catalog}.warehouse": str(folder / "tables"),
        },
    )


def _delta(folder: Path) -> Peer:
    found = jars.install(list(jars.locked(_HERE / "delta.lock")), folder.parent / "delta-jars")
    return Peer(
        table=f"delta.`{folder / 'tables'}`",
        provider="delta",
        properties={"delta.enableDeletionVectors": "true"},
        settings={
            "spark.driver.extraClassPath": ":".join(map(str, found)),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    )


NAMES = ("iceberg-merge-on-read", "iceberg-copy-on-write", "delta-deletion-vectors", HUDI, UPSERT)

_PEERS = {
    "iceberg-merge-on-read": lambda folder: _iceberg(folder, "merge-on-read"),
    "iceberg-copy-on-write": lambda folder: _iceberg(folder, "copy-on-write"),
    "delta-deletion-vectors": _delta,
}
"""By name: returns the peer whose table lies in a folder."""


def command(name: str, folder: Path, step: str, *more: str) -> list[str]:
    """Return the command that carries out one step of a peer."""
    if name == HUDI and step != FETCH:
        return [str(_environment(folder) / "bin" / "python"), str(_HERE / "hudi.py"), str(folder), step, *more]
    return [sys.executable, __file__, name, str(folder), step, *more]


class Served:
    """A peer in a process that stays, so that it is warm after its first batches."""

    def __init__(self, name: str, folder: Path) -> None:
        """Start the process."""
        self._process = subprocess.Popen(
            command(name, folder, SERVE), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

        apart.add(psutil.Process(self._process.pid))

    def cost_of(self, step: str, *files: Path) -> Cost:
        """Let the peer carry out a step; return what it took.

        Raises:
            SystemExit: the process ended.
        """
        return of_call(partial(self._ask, [step, *map(str, files)]), psutil.Process(self._process.pid))

    def end(self) -> None:
        """End the process, and wait for the JVM too, so that no later figure has its times."""
        jvm = psutil.Process(self._process.pid).children(recursive=True)
        self._process.communicate()
        psutil.wait_procs(jvm)

    def _ask(self, asked: list[str]) -> None:
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the process was started without pipes")
        self._process.stdin.write(f"{json.dumps(asked)}\n")
        self._process.stdin.flush()
        if all(line != changes.DONE for line in self._process.stdout):
            sys.exit(f"{' '.join(map(str, self._process.args))} ended before it was done")


def _environment(folder: Path) -> Path:
    return folder / "environment"


def _fetch_hudi(folder: Path) -> None:
    """Make the environment of Hudi, and write the columns of the table into a file for it."""
    environment = _environment(folder)
    venv.create(environment, with_pip=True)
    pip = [environment / "bin" / "pip", "--quiet", "install", "--require-hashes", "--requirement", _HERE / "hudi.txt"]
    subprocess.run(pip, check=True)
    found = jars.install(list(jars.locked(_HERE / "hudi.lock")), folder / "jars")
    shape = {"columns": floor.SPARK_TYPES, "key": KEY, "jars": [str(path) for path in found]}
    (folder / "shape.json").write_text(json.dumps(shape), encoding="utf-8")


def main(name: str, folder: Path, step: str, *files: str) -> None:
    """Carry out one step of a peer."""
    if name == TIDEMARK:
        _read(open_session(), files[0], folder)
        return
    if name == UPSERT:
        os.environ["TIDEMARK_HOME"] = str(folder / "tables")
        if step == READ:
            _read(open_session(), f"tidemark.{'.'.join(upserting.TABLE)}", folder)
        elif step != FETCH:
            changes.carry_out(lambda _, files: upserting.merge(files), step, files)
        return
    if name == HUDI:
        _fetch_hudi(folder)
        return
    peer = _PEERS[name](folder)
    if step == FETCH:
        return
    session = _session(peer)
    if step == READ:
        _read(session, peer.table, folder)
        return
    changes.carry_out(partial(_carry_out, session, peer), step, files)


def _carry_out(session: SparkSession, peer: Peer, step: str, files: Sequence[str]) -> None:
    rows = floor.typed(session, [Path(file) for file in files])
    if step == LOAD:
        rows.createOrReplaceTempView("rows")
        session.sql(_create(peer))
    else:
        changes.newest(rows, KEY).createOrReplaceTempView("newest")
        session.sql(_merge(peer))


def _session(peer: Peer) -> SparkSession:
    """Start Spark as it is by itself, with what the peer needs."""
    settings: dict[str, bool | float | int | str | None] = {**changes.AS_IT_IS, **peer.settings}
    return SparkSession.builder.config(map=settings).getOrCreate()


def _create(peer: Peer) -> str:
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in peer.properties.items())
    return (
        f"CREATE TABLE {peer.table} USING {peer.provider} TBLPROPERTIES ({properties}) "  # noqa: S608
        f"AS SELECT {', '.join(COLUMNS)} FROM rows"
    )


def _merge(peer: Peer) -> str:
    assignments = ", ".join(f"held.{name} = newest.{name}" for name in COLUMNS)
    return (
        f"MERGE INTO {peer.table} AS held USING newest ON held.{KEY} = newest.{KEY} "  # noqa: S608
        "WHEN MATCHED AND newest.op = 'd' THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {assignments} "
        f"WHEN NOT MATCHED AND newest.op <> 'd' THEN INSERT ({', '.join(COLUMNS)}) "
        f"VALUES ({', '.join(f'newest.{name}' for name in COLUMNS)})"
    )


def _read(session: SparkSession, table: str, folder: Path) -> None:
    """Read every column of the table, and write down what was read."""
    totals = changes.totals(session.table(table), [*COLUMNS])
    (folder / "read.json").write_text(json.dumps(totals), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
