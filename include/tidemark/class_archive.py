"""Makes the archive of classes that Spark's JVM starts from: ``python -m tidemark.class_archive``.

It is part of ``make setup``. A process of its own runs a small source through the stages in a lake of its own, and its
JVM writes down at its end which classes it had loaded. A second call finds the archive and makes none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tidemark import INCLUDE, jars
from tidemark.cli.logs import configure_logging
from tidemark.errors import ConfigurationError
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.spark.session import open_session
from tidemark.spark.shared_classes import VARIABLE, find_archive, install
from tidemark.stages import STAGES

_ROWS = 20

_LAKE = "class_archive"
"""Name of the catalog of the training: one that no configuration names, so that it is the embedded one."""


def main() -> None:
    """Make the archive if it is missing, and print its path. Where it cannot be made, say why: Spark needs none."""
    found = find_archive()
    if found is None:
        with tempfile.TemporaryDirectory(dir=jars.folder(), prefix="classes-") as place:
            found = _made(Path(place))
    sys.stdout.write(f"{found or 'no archive of classes was made: Spark starts without one'}\n")


def _made(place: Path) -> Path | None:
    """Make the archive in an empty folder and install it; return None if the JVM writes none."""
    archive = place / "made.jsa"
    trained = subprocess.run(
        [sys.executable, "-m", "tidemark.class_archive", "train"],
        cwd=place,
        env=_environment(place, archive),
        # The JVM writes the archive after Python has ended. It holds standard output open, which is read to its end.
        capture_output=True,
        text=True,
        check=False,
    )
    if trained.returncode or not archive.is_file():
        sys.stderr.write(f"{trained.stdout}{trained.stderr}")
        return None
    return install(archive)


def _environment(place: Path, archive: Path) -> dict[str, str]:
    """Return the environment of the training: nothing in it leads to a lake or a Spark of the user's."""
    kept = {name: value for name, value in os.environ.items() if name not in {"SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"}}
    path = os.pathsep.join([str(INCLUDE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {
        **kept,
        "PYTHONPATH": path,
        "TIDEMARK_HOME": str(place / "home"),
        "TIDEMARK_CATALOG": _LAKE,
        "TIDEMARK_REPORT": "off",
        VARIABLE: "off",
        "SPARK_SUBMIT_OPTS": f'-XX:ArchiveClassesAtExit="{archive}" -XX:TieredStopAtLevel=1',
    }


def _train() -> None:
    """Run what most runs run: the stages over a load and over changes, then a plan that Spark compiles."""
    configure_logging()
    if any(name.startswith(f"PYICEBERG_CATALOG__{_LAKE.upper()}__") for name in os.environ):
        raise ConfigurationError(f"a catalog {_LAKE} is configured: it would be written to")
    place = Path.cwd()
    source = Source.model_validate(
        {
            "source": "training",
            "format": "canal_json",
            "landing": str(place / "*.jsonl"),
            "tables": {"shop.orders": {"history": True}, "shop.visits": {"key": []}},
        }
    )
    for number, operation in enumerate(("INSERT", "UPDATE")):
        messages = [_message(table, operation, number) for table in ("orders", "visits")]
        (place / f"{number}.jsonl").write_text("\n".join(messages), encoding="utf-8")
        for stage in STAGES:
            run_stage(stage, source)
    session = open_session()
    read = session.read.text(str(place / "*.jsonl")).selectExpr("from_json(value, 'es bigint, `table` string') AS m")
    read.selectExpr("m.*").groupBy("table").count().write.parquet(str(place / "compiled"))
    session.stop()


def _message(table: str, operation: str, number: int) -> str:
    """Return a message of Canal with rows of a table."""
    rows = [{"id": str(row), "item": f"item {number}", "total": f"{row}.50"} for row in range(_ROWS)]
    head = {"database": "shop", "table": table, "type": operation, "isDdl": False, "pkNames": ["id"], "sql": ""}
    types = {
        "mysqlType": {"id": "bigint", "item": "varchar(20)", "total": "decimal(18,2)"},
        "sqlType": {"id": -5, "item": 12, "total": 3},
    }
    old = [{"item": "item 0"} for _ in rows] if operation == "UPDATE" else None
    times = {"es": 1_767_225_600_000 + number, "ts": 1_767_225_600_000 + number, "id": number}
    return json.dumps({**head, **types, **times, "data": rows, "old": old})


if __name__ == "__main__":
    if sys.argv[1:] == ["train"]:
        _train()
    else:
        main()
