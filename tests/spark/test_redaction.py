"""What Spark shows of the settings of a catalog, of an application that was submitted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.spark_cluster import spark_submit
from tidemark import INCLUDE
from tidemark.jars import jar_paths

SECRETS = {
    "CREDENTIAL": "canary-1",
    "ADLS__ACCOUNT_KEY": "canary-2",
    "ADLS__CONNECTION_STRING": "canary-3",
    "HEADER__AUTHORIZATION": "canary-4",
    "S3__SECRET_ACCESS_KEY": "canary-5",
}
JOB = """
from tidemark.spark.session import open_session
open_session().range(3).count()
open_session().stop()
"""


@pytest.mark.spark
def test_no_event_log_has_a_key_of_the_catalog(tmp_path: Path) -> None:
    """Spark's own rule knows some of them, and no setting of a session; an owner's rule holds as well."""
    job, events = tmp_path / "job.py", tmp_path / "events"
    job.write_text(JOB)
    events.mkdir()
    settings = {
        "eventLog.enabled": "true",
        "eventLog.dir": events.as_uri(),
        "eventLog.compress": "false",
        "eventLog.rolling.enabled": "false",
        "redaction.regex": "owned",
        "hadoop.owned": "canary-6",
    }
    command = spark_submit("local[1]", map(str, jar_paths()))
    command += [word for name, value in settings.items() for word in ("--conf", f"spark.{name}={value}")]
    prefix = "PYICEBERG_CATALOG__CANARY__"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"PYTHONPATH": str(INCLUDE), "TIDEMARK_CATALOG": "canary"}
    environment |= {f"{prefix}TYPE": "sql", f"{prefix}URI": f"sqlite:///{tmp_path}/catalog.db"}
    environment |= {f"{prefix}WAREHOUSE": tmp_path.as_uri(), **{prefix + name: it for name, it in SECRETS.items()}}
    done = subprocess.run([*command, str(job)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (log,) = events.iterdir()
    shown = log.read_text()
    assert "spark.sql.catalog.canary.adls.account-key" in shown
    assert [value for value in (*SECRETS.values(), "canary-6") if value in shown] == []
