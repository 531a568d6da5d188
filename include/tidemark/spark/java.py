"""The Java that Spark's JVM is started with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tidemark.errors import ConfigurationError

MISSING = "Java 17 is missing: apt-get install openjdk-17-jre-headless"


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
