"""The only place that makes a Spark session, and the only one that knows Spark's settings.

Which Spark is meant is not the code's business: ``SPARK_REMOTE`` names a Spark Connect server, ``spark-submit``
brings its own master, and without either Spark runs in this process on all cores. The stages use the DataFrame API
that all three share. The lake's catalog is told to Spark as PyIceberg is configured (``lake.catalog_properties``).
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Event

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from tidemark.errors import SparkWithheldError
from tidemark.jars import jar_paths
from tidemark.lake.lake import Lake
from tidemark.spark import jvm_lookups

log = structlog.get_logger(__name__)

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

_LOGGING = Path(__file__).with_name("log4j2.properties").as_uri()

# A plan over a wide row compiles to methods that the JVM would else leave to its interpreter for good; and only what
# runs for each row is worth the optimizing compiler: planning, which runs once, is most of the code.
JVM_OPTIONS = (
    "-XX:-DontCompileHugeMethods -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000 -XX:+UseParallelGC"
)
"""Measured in docs/adr/0009; a cluster may set them with ``spark.executor.extraJavaOptions``."""

LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.sql.extensions": EXTENSIONS,
    # Hadoop's own local file system starts a process, `chmod`, for each file that it writes.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING} {JVM_OPTIONS}",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.python.daemon.module": "tidemark.worker_daemon",
    # What runs kept is freed when the JVM's garbage is collected.
    "spark.cleaner.periodicGC.interval": "5min",
    # One run generates more classes than Spark keeps by default; what the next run generates again is compiled again.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Every part of an expression would else note the line of Python it was made in, and a stack of the JVM: half of
    # the time that it takes to put the plan of a small table together.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    # One secret in a setting or a URL must not show up in an event log or an explain.
    "spark.redaction.regex": "(?i)secret|password|passwd|token|credential|access.?key|jdbc\\.user|uri",
}
"""Settings fixed when Spark starts; a cluster's own come with spark-submit or with the Connect server."""

SESSION_SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "true",
    # A file that cannot be read whole is an error, never fewer rows.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Equal code is one class, wherever in its plan it stands: see the cache of them.
    "spark.sql.codegen.useIdInClassName": "false",
    # Spark writes each plan down for its UI, again with every stage: 45 ms for a wide one, 0.6 in short form.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "1",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    # Small runs are the rule: start from what the machine has and let adaptive execution merge the rest.
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
}

_FEW_ROWS = 200_000

_INTERPRETED: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Compiling a plan costs more than interpreting it does on few rows: a run of four small tables takes half the
processor time this way (docs/adr/0009)."""

_IN_ONE_GO: Mapping[str, str] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Planning each stage anew, and many tasks, cost more than a small table has to do; and it is left with one new file.
The tables that are built side by side keep the cores at work."""


@contextmanager
def tuned_for(session: SparkSession, tables: Collection[int]) -> Iterator[None]:
    """Tune the session for plans over tables of about so many rows each, and put it back as it was."""
    settings: dict[str, str] = {}
    if all(map(is_small, tables)):
        settings |= _IN_ONE_GO
    if is_small(sum(tables)):
        settings |= _INTERPRETED
    before = {name: session.conf.get(name) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, kept in before.items():
            session.conf.set(name, str(kept))


def checkpointed(frame: DataFrame) -> DataFrame:
    """The same rows, made once at their first use and kept: on disk where memory ends, gone with the last reference.

    Plans on it begin here: Spark neither goes through what made the rows again for each, nor makes them anew once a
    table that they were read from is written to. An executor that is lost takes its rows along, and the stage fails.
    """
    return frame.localCheckpoint(eager=False)


def named(frame: DataFrame, views: ExitStack) -> DataFrame:
    """The same frame; in Spark Connect by a name, as it nests what is built on a frame, and ends at 100 levels.

    ``views`` forgets the name when it closes.
    """
    if not is_remote():
        return frame
    session, name = frame.sparkSession, f"tidemark_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    views.callback(session.catalog.dropTempView, name)
    return session.table(name)


def is_small(rows: int) -> bool:
    """Whether ``tuned_for`` has a plan over so many rows run in one go: best apart from large ones."""
    return rows < _FEW_ROWS


def open_session() -> SparkSession:
    """Start Spark, or join the one that the environment names; one session a process.

    Raises:
        ConfigurationError: the jars are not installed, or the catalog's kind is unknown to Spark.
        SparkWithheldError: within ``withheld``.
    """
    if _withheld.is_set():
        raise SparkWithheldError("there is more to do than can be done without Spark")
    return _open(os.environ.get("SPARK_REMOTE"))


@contextmanager
def without_spark() -> Iterator[None]:
    """Have ``open_session`` refuse: what a stage does without Spark is done, else it stops before it begins.

    A stage may be stopped anywhere and run again, so nothing has to be undone.
    """
    _withheld.set()
    try:
        yield
    finally:
        _withheld.clear()


_withheld = Event()


@lru_cache(maxsize=1)
def _open(remote: str | None) -> SparkSession:
    lake = Lake.open()
    if remote:
        session = SparkSession.builder.remote(remote).getOrCreate()
        # What a killed task left running on the server would write beside this one.
        session.interruptAll()
    else:
        # Workers must run this interpreter: the one that has tidemark and its libraries.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        session = SparkSession.builder.config(map=dict(_local_settings())).getOrCreate()
        jvm_lookups.remember(session.sparkContext._jvm)  # noqa: SLF001  PySpark's functions are looked up there
    for name, value in {**SESSION_SETTINGS, **lake.spark_settings()}.items():
        session.conf.set(name, value)
    log.debug("spark_session_open", remote=bool(remote), version=session.version)
    return session


def local_settings() -> Mapping[str, str]:
    """Settings of a Spark whose driver is all there is of it, with the pinned jars on its class path.

    Raises:
        ConfigurationError: a jar is not installed.
    """
    cores = os.cpu_count() or 1
    return {
        **LOCAL_SETTINGS,
        "spark.sql.shuffle.partitions": str(2 * cores),
        # Not `spark.jars`: these come after the driver has looked at its first files.
        "spark.driver.extraClassPath": os.pathsep.join(jar_paths()),
    }


def _local_settings() -> Mapping[str, str]:
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # under spark-submit: master and jars are the cluster's settings
        return {"spark.sql.extensions": EXTENSIONS, "spark.app.name": "tidemark"}
    return {**local_settings(), "spark.master": "local[*]", "spark.app.name": "tidemark"}
