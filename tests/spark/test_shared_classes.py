"""The archive of classes: made for one Java, one set of jars and options, used whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidemark import class_archive, jars
from tidemark.spark import shared_classes
from tidemark.spark.java import require_java
from tidemark.spark.session import local_settings
from tidemark.spark.shared_classes import archive_options, find_archive, install

OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of jars without an archive, and a Spark and a Java of a file each."""
    for path in jars.jar_paths():
        (tmp_path / Path(path).name).write_bytes(b"jar")
    for name in ("java/bin/java", "java/lib/modules", "spark/jars/core.jar"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"file")
    (tmp_path / "java" / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("TIDEMARK_JARS", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.delenv(shared_classes.VARIABLE, raising=False)
    return tmp_path


def made(folder: Path, content: bytes = b"classes") -> Path:
    """Install an archive; return where it is."""
    (folder / "new").write_bytes(content)
    return install(folder / "new")


def test_the_archive_is_named_to_the_jvm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's settings have it from when it is installed, with no word of it on standard output; never with `off`."""
    assert "jsa" not in local_settings()[OPTIONS]
    archive = made(folder)
    assert local_settings()[OPTIONS].endswith(f'"-XX:SharedArchiveFile={archive}" -Xlog:cds*=off')
    monkeypatch.setenv(shared_classes.VARIABLE, "off")
    assert "jsa" not in local_settings()[OPTIONS]


@pytest.mark.parametrize("changed", ["java/lib/modules", "spark/jars/core.jar", "spark/jars/added.jar", "a pinned jar"])
def test_another_java_or_jar_needs_another_archive(folder: Path, changed: str) -> None:
    """A file that is new, of another size or of another time makes the archive unused; the next one replaces it."""
    first = made(folder)
    victim = Path(jars.jar_paths()[0]) if changed == "a pinned jar" else folder / changed
    victim.touch()
    os.utime(victim, (1_000_000_000, 1_000_000_000))
    assert find_archive() is None
    second = made(folder)
    assert second != first
    assert find_archive() == second
    assert not first.exists()


def test_other_options_need_another_archive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive of one collector or heap is not given to another."""
    made(folder)
    monkeypatch.setattr(shared_classes, "JVM_OPTIONS", "-XX:+UseG1GC")
    assert find_archive() is None


def test_half_an_archive_is_not_used(folder: Path) -> None:
    """A file that a full disk or a broken copy cut short would crash the JVM."""
    archive = made(folder)
    archive.write_bytes(b"clas")
    assert find_archive() is None
    assert archive_options() == ""


def test_where_no_archive_can_be_made_the_reason_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Java that ends at once: what it says is passed on, nothing is installed, and nothing is left behind."""
    monkeypatch.delenv("SPARK_HOME")
    (folder / "java" / "bin" / "java").write_text("#!/bin/sh\necho this Java makes none >&2\nexit 1\n")
    before = sorted(folder.iterdir())
    class_archive.main()
    output = capsys.readouterr()
    assert "this Java makes none" in output.err
    assert "starts without one" in output.out
    assert sorted(folder.iterdir()) == before


def test_nothing_of_the_user_is_reached_by_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The training writes to a lake of its own, whatever catalog, home or Spark the environment names."""
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__URI", "http://127.0.0.1:9/")
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:9")
    given = class_archive._environment(tmp_path, tmp_path / "made.jsa")
    program = "from tidemark.lake.catalog import configured_properties as properties; print(properties()['warehouse'])"
    done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (tmp_path / "home" / "warehouse").as_uri()
    assert "SPARK_REMOTE" not in given


def test_an_archive_that_does_not_fit_is_not_told(tmp_path: Path) -> None:
    """Standard output belongs to results: a JVM that leaves the archive says nothing there, and starts."""
    (tmp_path / "classes.jsa").write_bytes(b"no archive")
    command = [require_java(), f"-XX:SharedArchiveFile={tmp_path / 'classes.jsa'}", "-Xlog:cds*=off", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == ""


@pytest.mark.spark
def test_the_jvm_maps_the_archive(spark: SparkSession) -> None:
    """The archive that `make setup` made is one that Spark's JVM takes: its class path and options are the same."""
    archive = find_archive()
    if archive is None:
        pytest.skip("this environment has no archive: make setup makes it")
    number = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    assert str(archive) in Path(f"/proc/{number}/maps").read_text("utf-8")
