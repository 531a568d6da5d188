"""What this machine has: Python, Java, the jars, memory and disk."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from tidemark import jars
from tidemark.diagnosis.findings import Finding, ok, problem, warning
from tidemark.errors import ConfigurationError
from tidemark.lake.catalog import home
from tidemark.spark.java import require_java
from tidemark.spark.shared_classes import VARIABLE, find_archive
from tidemark.text import first_line

PYTHONS: Final = ((3, 11), (3, 12), (3, 13))
"""Versions that the package accepts; every test runs on the first one."""

JAVA: Final = 17

_MEMORY: Final = 5 << 30
"""Bytes that a run may need: Spark's driver has a heap of 4 GiB."""

_DISK: Final = 2 << 30

_NEEDED_DISK: Final = 200 << 20

_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container's limit of memory stands."""

_VERSION: Final = re.compile(r'version "(?P<text>(?P<major>[0-9]+)[^"]*)"')


def examined() -> Iterator[Finding]:
    """Yield what was found about this machine."""
    yield python()
    yield java()
    yield pinned_jars()
    yield from class_archive()
    yield memory()
    yield disk()


def python() -> Finding:
    """Return whether this is a Python that Tidemark is tested with."""
    found = f"{sys.version.split()[0]} at {sys.executable}"
    if sys.version_info[:2] in PYTHONS:
        return ok("python", found)
    wanted = ".".join(map(str, PYTHONS[0]))
    return warning(
        "python", found, f"use Python {wanted}, which every test runs on: `make setup PYTHON=python{wanted}`"
    )


def java() -> Finding:
    """Return whether there is a Java that Spark runs on."""
    if remote := os.environ.get("SPARK_REMOTE"):
        return ok("java", f"not needed here: SPARK_REMOTE names a server ({remote.partition(';')[0]})")
    install = "install Java 17 (`apt-get install openjdk-17-jre-headless`), or let JAVA_HOME name it"
    try:
        program = require_java()
    except ConfigurationError:
        return problem("java", "no `java` on PATH, and JAVA_HOME names none", install)
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        return problem("java", f"{program} does not start: {first_line(error)}", install)
    version = _VERSION.search(done.stderr + done.stdout)
    if version is None:
        return problem("java", f"{program} tells no version (status {done.returncode})", install)
    major, found = int(version["major"]), f"{version['text']} at {program}"
    if major < JAVA:
        return problem("java", f"{found}: Spark needs {JAVA}", install)
    return ok("java", found) if major == JAVA else warning("java", f"{found}: tests run on {JAVA}", install)


def pinned_jars() -> Finding:
    """Return whether the jars that Spark needs are there, as ``jars.lock`` pins them."""
    try:
        count = len(jars.verified())
    except ConfigurationError as error:
        return problem("jars", str(error), f"fetch them: {jars.FETCH}")
    return ok("jars", f"{count} pinned jars in {jars.folder()}")


def class_archive() -> Iterator[Finding]:
    """Yield whether Spark starts from an archive of classes; nothing if Java, a jar or this Spark is not there."""
    if os.environ.get("SPARK_REMOTE"):
        return
    if os.environ.get(VARIABLE) == "off":
        yield ok("class archive", f"{VARIABLE} is off: Spark starts without one")
        return
    with suppress(ConfigurationError):  # of Java or a jar: ``java`` and ``pinned_jars`` report it
        found = find_archive()
        if found is not None:
            yield ok("class archive", str(found))
            return
        make = f"make it once: `{Path(sys.executable).name} -m tidemark.class_archive` (200 MB in {jars.folder()})"
        yield warning("class archive", "none for this Java and these jars: each start of Spark takes longer", make)


def memory() -> Finding:
    """Return whether a run has the memory that it may need."""
    total = min([psutil.virtual_memory().total, *_limits()])
    free = min(psutil.virtual_memory().available, total)
    found = f"{_size(free)} free of {_size(total)}"
    if free >= _MEMORY:
        return ok("memory", found)
    less = "`spark.driver.memory` is 4g: end other programs, or take a larger machine or a Spark cluster"
    return warning("memory", f"{found}; a run may need {_size(_MEMORY)}", less)


def _limits() -> Iterator[int]:
    for file in _LIMITS:
        with suppress(OSError, ValueError):
            yield int(Path(file).read_text(encoding="ascii"))


def disk() -> Finding:
    """Return whether the disk of the lake's home has room."""
    place = next(folder for folder in (home(), *home().parents) if folder.exists())
    free = shutil.disk_usage(place).free
    found = f"{_size(free)} free at {place}"
    if free >= _DISK:
        return ok("disk", found)
    do = "make room there (`tidemark maintain SOURCE` drops old cuts), or let TIDEMARK_HOME name another disk"
    return warning("disk", found, do) if free >= _NEEDED_DISK else problem("disk", found, do)


def _size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"
