"""The only place that makes a Spark session, with the settings that stay; ``tuning`` has those of a plan.

The environment decides which Spark is used: ``SPARK_REMOTE`` names a Spark Connect server, ``spark-submit`` brings its
own master, and without either Spark runs in this process on all cores. The stages use the DataFrame API that all three
have. Spark's settings for the lake's catalog are derived from PyIceberg's configuration (``Lake.spark_settings``).
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import Any, cast

import structlog
from pyspark import SparkConf, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from tidemark.errors import SparkNeededError
from tidemark.jars import jar_paths
from tidemark.lake.lake import Lake
from tidemark.spark import connect_sessions, jvm_lookups
from tidemark.spark.java import JVM_OPTIONS, QUICK_COMPILER, require_java
from tidemark.spark.quiet_start import without_banner
from tidemark.spark.shared_classes import archive_options

log = structlog.get_logger(__name__)

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

_LOGGING = Path(__file__).with_name("log4j2.properties").as_uri()

_OPTIONS = "spark.driver.extraJavaOptions"

_REDACTION = "spark.redaction.regex"

_KEPT_BACK = (
    r"(?i)secret|password|passwd|token|credential|access.?key|account.?key|connection.?string|authorization|"
    r"jdbc\.user|uri"
)
"""Matches the settings of a catalog whose values Spark must not show."""

LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.sql.extensions": EXTENSIONS,
    # Hadoop's own local file system starts a process, `chmod`, for each file that it writes.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    _OPTIONS: f"-Dlog4j2.configurationFile={_LOGGING} {JVM_OPTIONS}",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.python.daemon.module": "tidemark.worker_daemon",
    # Spark frees what earlier runs kept when the JVM collects garbage.
    "spark.cleaner.periodicGC.interval": "5min",
    # One run generates more classes than Spark keeps by default. Without this, the next run would compile them again.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Without these two, every part of an expression would note its line of Python and a stack of the JVM. That took
    # half of the time that building the plan of a small table takes.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    # A secret in a setting or a URL must not appear in an event log or an EXPLAIN.
    _REDACTION: _KEPT_BACK,
}
"""Settings that are fixed when Spark starts. A cluster's own come with spark-submit or from the Connect server."""

SESSION_SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "true",
    # A file that cannot be read to its end is an error. It never means fewer rows.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Equal code is one class, at whatever place of a plan, so that the cache of classes (above) finds it.
    "spark.sql.codegen.useIdInClassName": "false",
    # Spark writes each plan as text for its UI, again for every stage: 45 ms for a wide plan, 0.6 ms in short form.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "1",
    # With each query, Spark shows the settings of its session, those of the catalog among them.
    "spark.sql.redaction.options.regex": f"{_KEPT_BACK}|url",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    # Spark would work out what follows from each part of a condition, and that again in every step of a plan: minutes
    # for a wide table. Without it, the keys of a join get no "is not null".
    "spark.sql.constraintPropagation.enabled": "false",
    # Adaptive execution merges partitions until there is one for each core, and further where they are small: about
    # 50,000 rows of a shuffle are worth a task.
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "true",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "4m",
}

PARTITIONS = "spark.sql.shuffle.partitions"
"""Setting: how many partitions a shuffle has."""

_QUICK_ROWS = 1_000_000
"""Fewer rows than these are done before the JVM's optimizing compiler would have paid for itself (docs/adr/0070)."""


def checkpointed(frame: DataFrame) -> DataFrame:
    """Return a frame with the same rows, which are computed once, at their first use, and kept.

    The rows are kept in memory, or on disk if memory is short, until the last reference to the frame is gone. Plans on
    the frame begin with the kept rows. So Spark does not compute them for each plan, nor again after a table that they
    were read from is written. If an executor is lost, its rows are lost too, and the stage fails.
    """
    return frame.localCheckpoint(eager=False)


def named(frame: DataFrame, views: ExitStack) -> DataFrame:
    """Return the same frame; with Spark Connect, read from a temporary view.

    Spark Connect nests each frame in the plan of the frames that are built on it, and allows 100 levels. A view begins
    at the first level. ``views`` drops the view when it closes.
    """
    if not is_remote():
        return frame
    session, name = frame.sparkSession, f"tidemark_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    views.callback(session.catalog.dropTempView, name)
    return session.table(name)


def open_session(rows: int | None = None) -> SparkSession:
    """Return the one session of this process; start Spark, or join the Spark that the environment names.

    Args:
        rows: about how many messages or events the caller has to work through, if it knows. They decide which compilers
            the JVM has, if this call starts it.

    Raises:
        ConfigurationError: Java or the jars are not installed, or the catalog's kind is unknown to Spark.
        SparkNeededError: within ``without_spark``.
    """
    if _spark_is_off.is_set():
        raise SparkNeededError("there is more to do than can be done without Spark")
    remote = os.environ.get("SPARK_REMOTE")
    if remote not in _sessions:
        _sessions[remote] = _open(remote, is_quick=rows is not None and rows < _QUICK_ROWS)
    return _sessions[remote]


@contextmanager
def without_spark() -> Iterator[None]:
    """Make ``open_session`` raise ``SparkNeededError``, so that a stage ends where it needs Spark.

    A stage that needs no Spark is done. A stage may be stopped at any point and run again, so nothing has to be undone.
    """
    _spark_is_off.set()
    try:
        yield
    finally:
        _spark_is_off.clear()


_spark_is_off = Event()


_sessions: dict[str | None, SparkSession] = {}
"""By the address of the Connect server; None for the Spark of this process."""


def _open(remote: str | None, *, is_quick: bool) -> SparkSession:
    lake = Lake.open()
    if remote:
        session = SparkSession.builder.remote(remote).getOrCreate()
        # A task that was killed may have left work on the server, which would write at the same time as this one.
        session.interruptAll()
        connect_sessions.end(cast("Any", session).client, connect_sessions.earlier())
    else:
        # Workers must run this interpreter, which has tidemark and its libraries.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if not _is_submitted():
            require_java()
        with without_banner():
            settings = _submitted_settings(lake) if _is_submitted() else _local_settings(is_quick=is_quick)
            session = SparkSession.builder.config(map=dict(settings)).getOrCreate()
        jvm_lookups.remember(session.sparkContext._jvm)  # noqa: SLF001  PySpark's functions are looked up there
    for name, value in {**SESSION_SETTINGS, **lake.spark_settings()}.items():
        session.conf.set(name, value)
    log.debug("spark_session_open", remote=bool(remote), version=session.version)
    return session


def local_settings(*, is_quick: bool = False) -> Mapping[str, str]:
    """Return the settings of a Spark that runs in its driver alone, with the pinned jars on its class path.

    With ``is_quick``, its JVM has the quick compiler alone (docs/adr/0070).

    Raises:
        ConfigurationError: Java or a jar is not installed.
    """
    cores = os.cpu_count() or 1
    options = [LOCAL_SETTINGS[_OPTIONS], archive_options(), QUICK_COMPILER if is_quick else ""]
    return {
        **LOCAL_SETTINGS,
        _OPTIONS: " ".join(filter(None, options)),
        PARTITIONS: str(2 * cores),
        # Not `spark.jars`, which the driver loads only after it has looked at its first files.
        "spark.driver.extraClassPath": os.pathsep.join(jar_paths()),
    }


def _is_submitted() -> bool:
    """Return whether ``spark-submit`` runs this process: Java runs already, and has a master and jars."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _submitted_settings(lake: Lake) -> Mapping[str, str]:
    """Return the settings of an application that was submitted.

    The catalog's settings belong to the application, not only to the session. Spark writes the settings of a session
    into the event log with each job, and hides a secret only if the application has the setting too. Nothing of this is
    on a command line.
    """
    SparkContext._ensure_initialized()  # noqa: SLF001  the settings that it was submitted with are in the JVM
    redacted = SparkConf().get(_REDACTION)
    own = {"spark.sql.extensions": EXTENSIONS, "spark.app.name": "tidemark"}
    return {**own, **lake.spark_settings(), _REDACTION: f"{_KEPT_BACK}|{redacted}" if redacted else _KEPT_BACK}


def _local_settings(*, is_quick: bool) -> Mapping[str, str]:
    return {**local_settings(is_quick=is_quick), "spark.master": "local[*]", "spark.app.name": "tidemark"}
