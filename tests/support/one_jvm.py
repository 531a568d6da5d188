"""The JVM of a test run, which all of its workers share: each has a session of Spark there, with a lake of its own.

A JVM of its own would cost each worker some 45 CPU seconds until it is warm, and 3 GiB of memory (docs/adr/0095).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.traceback_utils import SCCallSiteSync

from tidemark.spark.java import require_java
from tidemark.spark.session import local_settings

_OPTIONS = "spark.driver.extraJavaOptions"
_ROOM = "-Xms3g -Xmn2g -XX:MetaspaceSize=256m -XX:ParallelGCThreads=2"
"""A heap that is large from the start: growing to it takes a dozen collections of the whole heap."""

_BOTH = (
    "-XX:TieredStopAtLevel=4 -XX:Tier4InvocationThreshold=15000 -XX:Tier4MinInvocationThreshold=1800 "
    "-XX:Tier4CompileThreshold=45000 -XX:Tier4BackEdgeThreshold=120000 "
    "-XX:MaxInlineLevel=9 -XX:FreqInlineSize=175 -XX:InlineSmallCode=1500 -XX:SweeperThreshold=15"
)
"""Both compilers, whatever the environment says. The optimizing one takes code at a third of what ``JVM_OPTIONS`` asks,
and copies less into callers: code that plans is wide, and no part of it runs for long (docs/adr/0096). A run does not
fill the room for compiled code, so what is no longer used is not looked for."""


class OneJvm:
    """A JVM that ends with this process. Spark starts in it when the first process joins."""

    def __init__(self, log: Path, *, is_quick: bool) -> None:
        """Start it, with the quick compiler alone or with both; what it writes goes to the file ``log``.

        Raises:
            ConfigurationError: Java or a jar is not installed.
        """
        require_java()
        options = [local_settings(is_quick=is_quick)[_OPTIONS], _ROOM, *([] if is_quick else [_BOTH])]
        conf = SparkConf(loadDefaults=False).setAll(list({**_settings(), _OPTIONS: " ".join(options)}.items()))
        with log.open("w", encoding="utf-8") as out, pytest.MonkeyPatch.context() as patched:
            # Clients of Spark Connect do not say which Python works for them.
            patched.setenv("PYSPARK_PYTHON", sys.executable)
            patched.setenv("SPARK_LOCAL_DIRS", str(log.parent / "spark"))
            self._gateway: Any = launch_gateway(conf, {"stdout": out, "stderr": out})
        self._log = log

    @property
    def address(self) -> dict[str, str]:
        """Its port, its secret and the path of its log: what a process needs to join."""
        found = self._gateway.java_parameters
        return {"port": str(found.port), "secret": found.auth_token, "log": str(self._log)}

    def end(self) -> None:
        """End it, and wait until it has removed its files."""
        self._gateway.proc.stdin.close()
        self._gateway.proc.wait()


def join(address: Mapping[str, str]) -> None:
    """Make a new session of the JVM at this address the one that ``SparkSession.builder`` gives in this process."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYSPARK_GATEWAY_PORT", address["port"])
        patched.setenv("PYSPARK_GATEWAY_SECRET", address["secret"])
        patched.setenv("PYSPARK_PYTHON", sys.executable)
        gateway = launch_gateway()
        SparkContext._ensure_initialized(gateway=gateway)
        conf = SparkConf(loadDefaults=False, _jvm=gateway.jvm).setAll(list(_settings().items()))
        started = gateway.jvm.org.apache.spark.SparkContext.getOrCreate(conf._jconf)
        context = SparkContext(gateway=gateway, jsc=gateway.jvm.JavaSparkContext.fromSparkContext(started))
        # Sessions of a JVM have neither settings nor catalogs nor views in common.
        sessions = gateway.jvm.org.apache.spark.sql.classic.SparkSession.builder().sparkContext(started)
        SparkSession(context, sessions.getOrCreate().newSession())
        _name_no_callers(context)


def _name_no_callers(context: SparkContext) -> None:
    """Let Spark not look through the stacks of Python and the JVM for the line that each job is for: no UI shows it."""
    for form in ("callSite.short", "callSite.long"):
        context.setLocalProperty(form, "a test")
    SCCallSiteSync._spark_stack_depth = 1  # as within a call that has named its line


def _settings() -> dict[str, str]:
    """Return the settings of the JVM, but for its own options, and of its Spark.

    Spark takes memory in pages, by default of up to 64 MB, and each is filled with zeros first: small tables need a few
    rows of one.
    """
    own = {"spark.driver.memory": "6g", "spark.master": "local[*]", "spark.app.name": "tests"}
    # Of all workers together, Spark would forget the stages of a test before it counts them.
    kept = dict.fromkeys(("spark.ui.retainedJobs", "spark.ui.retainedStages"), "5000")
    # To free what a job sent to its tasks, Spark looks through all that jobs sent and nobody freed.
    often = {"spark.cleaner.periodicGC.interval": "1min"}
    return {**local_settings(), **own, **kept, **often, "spark.buffer.pageSize": "1m"}
