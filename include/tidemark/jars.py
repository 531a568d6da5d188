"""The pinned jars: what Spark needs, and WebJars with the scripts and styles of pages.

They are fetched once, verified by checksum, then used from disk. ``python -m tidemark.jars`` (part of ``make setup``)
fetches them from Maven Central with Spark's own resolver, and puts them under the environment's
``share/tidemark/jars``. A run resolves nothing over the network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tidemark import PACKAGE
from tidemark.errors import ConfigurationError

LOCK = PACKAGE / "jars.lock"

PAGES_LOCK = PACKAGE / "pages.lock"
"""Jars of another kind: scripts and styles of pages, which Spark never sees."""

FETCH = "`python -m tidemark.jars`, in a checkout `make setup`"
"""The command that fetches the jars, for people."""


class Jar(NamedTuple):
    """A jar that ``jars.lock`` pins: one line of it."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def filename(self) -> str:
        """Name of the file, as Spark's resolver writes it."""
        return f"{self.group}_{self.artifact}-{self.version}.jar"


def folder() -> Path:
    """Return the folder of the jars: ``TIDEMARK_JARS``, or else a folder in the Python environment."""
    return Path(os.environ.get("TIDEMARK_JARS", Path(sys.prefix) / "share" / "tidemark" / "jars"))


def locked(lock: Path = LOCK) -> Iterator[Jar]:
    """Yield the jars that a lock file pins, by default those that Spark needs."""
    for line in lock.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            coordinates, sha256 = line.split()
            group, artifact, version = coordinates.split(":")
            yield Jar(group, artifact, version, sha256)


def jar_paths() -> list[str]:
    """Return the paths of all pinned jars.

    Raises:
        ConfigurationError: a jar is missing.
    """
    paths = [folder() / jar.filename for jar in locked()]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise ConfigurationError(f"jars missing in {folder()}: {', '.join(missing)}. {FETCH} fetches them")
    return [str(path) for path in paths]


def verified() -> list[Path]:
    """Return the paths of all pinned jars, after comparing their checksums with ``jars.lock``.

    Raises:
        ConfigurationError: a jar is missing, or has another checksum.
    """
    paths = [Path(path) for path in jar_paths()]
    for path, jar in zip(paths, locked(), strict=True):
        _verify(path, jar)
    return paths


def fetch() -> list[Path]:
    """Fetch missing jars, verify all jars against both lock files, and return their paths.

    Raises:
        ConfigurationError: a jar has another checksum than the pinned one. Such a jar is not installed.
    """
    return install([*locked(), *locked(PAGES_LOCK)], folder())


def install(jars: Sequence[Jar], target: Path) -> list[Path]:
    """Fetch the jars that are missing in a folder, verify all of them, and return their paths.

    Raises:
        ConfigurationError: as ``fetch``.
    """
    target.mkdir(parents=True, exist_ok=True)
    missing = [jar for jar in jars if not (target / jar.filename).is_file()]
    if missing:
        with tempfile.TemporaryDirectory() as cache:
            _resolve(missing, cache)
            for jar in missing:
                source = Path(cache) / "jars" / jar.filename
                _verify(source, jar)
                shutil.copyfile(source, target / jar.filename)
    for jar in jars:
        _verify(target / jar.filename, jar)
    return [target / jar.filename for jar in jars]


def _resolve(jars: Sequence[Jar], cache: str) -> None:
    """Let Spark's resolver fetch jars into a folder, in a process of its own.

    It writes a hundred lines, with warnings about hosts that nobody needs. These lines are shown only if it fails.
    """
    packages = ",".join(f"{jar.group}:{jar.artifact}:{jar.version}" for jar in jars)
    program = "import sys; from tidemark.jars import resolve; resolve(*sys.argv[1:])"
    command = [sys.executable, "-c", program, packages, cache]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603  our own
    if done.returncode:
        raise ConfigurationError(
            f"jars could not be fetched, which needs Java 17 and a way to Maven Central:\n{done.stdout}{done.stderr}"
        )


def resolve(packages: str, cache: str) -> None:
    """Fetch packages, named by their coordinates and separated by commas, into a folder."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  heavy, and needed only when a jar is missing

    settings: dict[str, bool | float | int | str | None] = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.jars.ivy": cache,
        "spark.jars.packages": packages,
    }
    SparkSession.builder.config(map=settings).getOrCreate().stop()


def _verify(path: Path, jar: Jar) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != jar.sha256:
        raise ConfigurationError(
            f"{path.name} has SHA-256 {found}, but its lock pins {jar.sha256}: delete {path}; {FETCH} fetches it"
        )


def main() -> int:
    """Fetch what is missing, say how many jars are where, and return the exit status."""
    sys.stderr.write(f"fetching jars into {folder()}, unless they are there\n")
    try:
        count = len(fetch())
    except ConfigurationError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return error.exit_status
    sys.stdout.write(f"{count} pinned jars are in {folder()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
