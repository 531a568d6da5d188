"""What people write in place of Tidemark: the newest change of each key, merged into one Iceberg or Delta table.

python bench/peers.py PEER FOLDER fetch             fetch its jars
python bench/peers.py PEER FOLDER load FILE...      make the table from an initial load
python bench/peers.py PEER FOLDER merge FILE...     merge a batch
python bench/peers.py PEER FOLDER read              read all columns, write rows and a sum to FOLDER/read.json

Each is a process of its own. A peer keeps no raw message, no log of changes and no ledger, and it finds no bad message.
It knows the order within a batch only: a change that comes in a later batch than a newer one overwrites the newer one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import floor
from generator import COLUMNS, KEY
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark import jars
from tidemark.spark.session import EXTENSIONS, open_session

FETCH, LOAD, MERGE, READ = "fetch", "load", "merge", "read"

TIDEMARK = "tidemark"
"""No peer: reads the table that Tidemark published, so that reading is compared too."""

_DELTA_JARS = Path(__file__).with_name("delta.lock")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A table format, and how it is told to merge."""

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
    found = jars.install(list(jars.locked(_DELTA_JARS)), folder.parent / "delta-jars")
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


PEERS = {
    "iceberg-merge-on-read": lambda folder: _iceberg(folder, "merge-on-read"),
    "iceberg-copy-on-write": lambda folder: _iceberg(folder, "copy-on-write"),
    "delta-deletion-vectors": _delta,
}
"""By name: returns the peer whose table lies in a folder."""


def main(name: str, folder: Path, step: str, *files: str) -> None:
    """Carry out one step of a peer."""
    if name == TIDEMARK:
        _read(open_session(), files[0], folder)
        return
    peer = PEERS[name](folder)
    if step == FETCH:
        return
    session = _session(peer)
    if step == READ:
        _read(session, peer.table, folder)
        return
    changes = floor.typed(session, [Path(file) for file in files])
    if step == LOAD:
        changes.createOrReplaceTempView("rows")
        session.sql(_create(peer))
    else:
        _newest(changes).createOrReplaceTempView("newest")
        session.sql(_merge(peer))


def _session(peer: Peer) -> SparkSession:
    """Start Spark as it is by itself, with the memory that Tidemark's has."""
    settings: dict[str, bool | float | int | str | None] = {
        "spark.master": "local[*]",
        "spark.driver.memory": "4g",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        **peer.settings,
    }
    return SparkSession.builder.config(map=settings).getOrCreate()


def _create(peer: Peer) -> str:
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in peer.properties.items())
    return (
        f"CREATE TABLE {peer.table} USING {peer.provider} TBLPROPERTIES ({properties}) "  # noqa: S608
        f"AS SELECT {', '.join(COLUMNS)} FROM rows"
    )


def _newest(changes: DataFrame) -> DataFrame:
    """Return the newest change of each key, by its place in the binlog."""
    newest_first = Window.partitionBy(KEY).orderBy(*(F.desc(name) for name in ("file", "pos", "row")))
    return changes.withColumn("_rank", F.row_number().over(newest_first)).where("_rank = 1")


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
    """Read every column of the table, and write down what the generator can tell: rows, and the sum of one column."""
    sums = [F.count(F.lit(1)), F.sum("reference"), F.sum(F.hash(*COLUMNS).cast("long"))]
    rows, references, content = session.table(table).agg(*sums).first() or (0, 0, 0)
    (folder / "read.json").write_text(json.dumps({"rows": rows, "references": references, "content": content}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
