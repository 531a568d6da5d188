"""What the lab needs from Maven Central: of each part (``debezium``, ``canal``, ``mysql``) what its ``PART.xml`` names.

The files are fetched once into the environment, and verified against ``PART.lock``. After a change of such a file,
``python lab/fetching.py lock`` writes the locks again.
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
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies"

_OF_MYSQL: Final = ("bin/mysqld", "lib/private/", "share/")


@cache
def jars(part: str) -> Path:
    """Return the folder of all files of a part, complete and verified."""
    target, lock = _folder(part), _lock(part)
    wanted = dict(reversed(line.split(maxsplit=1)) for line in lock.read_text(encoding="utf-8").splitlines())
    if not all((target / name).is_file() for name in wanted):
        _fetch(part)
    for name, checksum in wanted.items():
        if (found := _checksum(target / name)) != checksum:
            raise ConfigurationError(f"{target / name} has SHA-256 {found}, but {lock.name} pins {checksum}: delete it")
    return target


def mysql_folder() -> Path:
    """Return the base folder of MySQL, unpacked."""
    target = jars("mysql") / "unpacked"
    if not (target / "bin" / "mysqld").is_file():
        shutil.rmtree(target, ignore_errors=True)
        part = target.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        (archive,) = jars("mysql").glob("*.zip")
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(part, [name for name in packed.namelist() if name.startswith(_OF_MYSQL)])
        (part / "bin" / "mysqld").chmod(0o755)
        (part / "bin" / "mysqld-debug").unlink()
        part.rename(target)
    return target


@cache
def java(part: str, program: str) -> list[str]:
    """Return the command that runs a program of this folder with the jars of a part; what follows are its arguments."""
    target, path = jars(part) / "classes", f"{jars(part)}/*"
    compiler = shutil.which("javac")
    if compiler is None:
        raise ConfigurationError("javac is missing: apt-get install openjdk-17-jdk-headless")
    subprocess.run([compiler, "-d", target, "-cp", path, HERE / f"{program}.java"], check=True)
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return ["java", "-Xmx1500m", "-XX:TieredStopAtLevel=1", quiet, "-cp", f"{target}:{path}", program]


def _folder(part: str) -> Path:
    return folder().parent / "lab" / part


def _lock(part: str) -> Path:
    return HERE / f"{part}.lock"


def _fetch(part: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ConfigurationError("Maven is missing: apt-get install maven")
    where = ["-f", str(HERE / f"{part}.xml"), f"-DoutputDirectory={_folder(part)}", "-Dmdep.prependGroupId=true"]
    subprocess.run([maven, "-q", "-B", _COPY, *where], check=True)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_lock(part: str) -> None:
    _fetch(part)
    files = sorted(file for file in _folder(part).iterdir() if file.suffix in {".jar", ".zip"})
    _lock(part).write_text("".join(f"{_checksum(file)} {file.name}\n" for file in files), encoding="utf-8")


if __name__ == "__main__" and sys.argv[1:] == ["lock"]:
    for each in ("debezium", "canal", "mysql"):
        _write_lock(each)
