"""What Spark shows of the settings of a catalog, of an application that was submitted.

``make test`` has the event log of another one in ``lake/test_object_store.py``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.spark_cluster import event_log, spark_submit
from tidemark import INCLUDE
from tidemark.jars import jar_paths
from tidemark.lake.lake import Lake
from tidemark.spark.session import LOCAL_SETTINGS, SESSION_SETTINGS

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


def _environment(folder: Path) -> dict[str, str]:
    """Return the settings of a catalog that has every kind of secret."""
    prefix = "PYICEBERG_CATALOG__CANARY__"
    known = {"TYPE": "sql", "URI": f"sqlite:///{folder}/catalog.db", "WAREHOUSE": folder.as_uri(), **SECRETS}
    return {"TIDEMARK_CATALOG": "canary", **{prefix + name: value for name, value in known.items()}}


def test_spark_is_told_to_show_no_key_of_the_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of an application, nor with the settings of a session; what is no secret is shown."""
    for name, value in _environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    given = Lake.open().spark_settings()
    secret = {name for name, value in given.items() if value in SECRETS.values()}
    assert len(secret) == len(SECRETS)
    for rule in (LOCAL_SETTINGS["spark.redaction.regex"], SESSION_SETTINGS["spark.sql.redaction.options.regex"]):
        assert secret <= {name for name in given if re.search(rule, name)}
        assert not re.search(rule, "spark.sql.catalog.canary.warehouse")


@pytest.mark.spark
@pytest.mark.prove
@pytest.mark.slow
def test_no_event_log_has_a_key_of_the_catalog(tmp_path: Path) -> None:
    """Spark's own rule knows some of them, and no setting of a session; an owner's rule holds as well."""
    job, events = tmp_path / "job.py", tmp_path / "events"
    job.write_text(JOB)
    events.mkdir()
    command = [*spark_submit("local[1]", map(str, jar_paths())), *event_log(events, owned="canary-6")]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"PYTHONPATH": str(INCLUDE), **_environment(tmp_path)}
    done = subprocess.run([*command, str(job)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (log,) = events.iterdir()
    shown = log.read_text()
    assert "spark.sql.catalog.canary.adls.account-key" in shown
    assert [value for value in (*SECRETS.values(), "canary-6") if value in shown] == []
