"""The archive of classes: the JVM maps from it the classes that it would otherwise find in jars, parse and verify.

The archive is a file beside the pinned jars, which ``python -m tidemark.class_archive`` makes. Its name says what it
was made for: Java, jars and options of the JVM. One that was made for anything else is not used. Why: docs/adr/0045.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from tidemark import jars
from tidemark.spark.java import JVM_OPTIONS, require_java

VARIABLE = "TIDEMARK_CLASS_ARCHIVE"
"""Environment variable: with ``off`` no JVM is started with the archive."""

_PREFIX, _SUFFIX = "classes-", ".jsa"


def archive_options() -> str:
    """Return the options that let a JVM with ``JVM_OPTIONS`` use the archive made for it; none if there is none.

    Raises:
        ConfigurationError: Java or a jar is not installed.
    """
    made = None if os.environ.get(VARIABLE) == "off" else find_archive()
    # Where the class path of a run differs, the JVM leaves the archive and would say so on standard output.
    return f'"-XX:SharedArchiveFile={made}" -Xlog:cds*=off' if made else ""


def find_archive() -> Path | None:
    """Return the archive made for this Java, these jars and ``JVM_OPTIONS``, if it is there and whole.

    Raises:
        ConfigurationError: as ``archive_options``.
    """
    whole = (file for file in jars.folder().glob(f"{_named()}-*{_SUFFIX}") if _is_whole(file))
    return next(whole, None)


def install(made: Path) -> Path:
    """Move a finished archive to where ``find_archive`` looks for it, and remove all others.

    A JVM that maps a removed archive keeps it. ``made`` must be on the same disk as the jars.

    Raises:
        ConfigurationError: as ``archive_options``.
    """
    with made.open("rb") as content:
        os.fsync(content.fileno())
    target = jars.folder() / f"{_named()}-{made.stat().st_size}{_SUFFIX}"
    made.replace(target)
    for other in jars.folder().glob(f"{_PREFIX}*{_SUFFIX}"):
        if other != target:
            other.unlink(missing_ok=True)
    return target


def _is_whole(archive: Path) -> bool:
    """Return whether the file is as long as its name says: a JVM that maps half of an archive crashes."""
    size = archive.stem.rpartition("-")[2]
    return size.isdecimal() and archive.stat().st_size == int(size)


def _named() -> str:
    """Return how the name of the archive begins."""
    state = hashlib.sha256(JVM_OPTIONS.encode())
    for file in _read_files():
        status = file.stat()
        # Whole seconds, as the JVM compares them: layers of an image keep no more.
        state.update(f"\n{file} {status.st_size} {int(status.st_mtime)}".encode())
    return f"{_PREFIX}{state.hexdigest()[:16]}"


def _read_files() -> Iterator[Path]:
    """Yield the files that the JVM loads classes from: Java's own, Spark's jars, the pinned jars."""
    program = require_java().resolve()
    modules = program.parents[1] / "lib" / "modules"
    yield modules if modules.is_file() else program
    yield from sorted(Path(_find_spark_home(), "jars").glob("*.jar"))  # type: ignore[no-untyped-call]
    yield from map(Path, jars.jar_paths())
