"""The Java that Spark's JVM is started with, and its options."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tidemark.errors import ConfigurationError

MISSING = "Java 17 is missing: apt-get install openjdk-17-jre-headless"

# A plan over wide rows compiles to huge methods, which the JVM would never compile by default. The thresholds keep the
# optimizing compiler for code that runs for each row: most of the code is planning, which runs once.
JVM_OPTIONS = (
    "-XX:-DontCompileHugeMethods -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000 -XX:+UseParallelGC"
)
"""Measured in docs/adr/0009. A cluster may set them by ``spark.executor.extraJavaOptions``."""

QUICK_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""For a run of few rows: the compiler that is done soonest, with as much room as both have together."""


def require_java() -> Path:
    """Return the program that Spark starts: ``JAVA_HOME/bin/java``, else the first ``java`` on the path.

    Raises:
        ConfigurationError: there is none.
    """
    if given := os.environ.get("JAVA_HOME"):
        program = Path(given) / "bin" / "java"
        if not os.access(program, os.X_OK):
            raise ConfigurationError(f"{MISSING}. JAVA_HOME is {given}, and there is no program {program}")
        return program
    found = shutil.which("java")
    if found is None:
        raise ConfigurationError(f"{MISSING}. No program `java` is on the path, and JAVA_HOME is not set")
    return Path(found)
