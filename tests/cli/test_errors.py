"""Errors that running a command again never mends end with status 2, and what only reads makes no lake."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from types import ModuleType

import pytest
from pyiceberg.exceptions import ForbiddenError, ServiceUnavailableError, UnauthorizedError
from pyspark.errors import PySparkRuntimeError
from sqlalchemy.exc import OperationalError
from typer.testing import CliRunner

from tidemark.cli.app import app
from tidemark.errors import ConfigurationError, RetriableLakeError
from tidemark.lake.catalog import opening
from tidemark.pipeline import as_tidemark_error, store_errors
from tidemark.spark import session
from tidemark.spark.java import require_java

RUNNER = CliRunner()
COMMANDS = (
    "status",
    "sql SHOW+TABLES",
    "explain erp.orders id=1",
    "quarantine list erp",
    "quarantine show erp --json",
    "quarantine retry erp",
    "quality erp",
    "rebuild erp",
    "maintain erp",
    "restore erp --cut 1",
    "run erp --reprocess --dry-run",
    "report",
    "report erp --json",
    "dbt erp",
    "erase erp.orders id=1",
    "normalize erp",
    "compact erp",
    "check erp",
    "publish erp",
)


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one source file; its parent is the working directory."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "erp.yaml").write_text(f"source: erp\nformat: canal_json\nlanding: {tmp_path}/landing/*\n")
    monkeypatch.setenv("TIDEMARK_SOURCES", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_what_needs_a_lake_makes_none(command: str, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the folder, and whether the environment says so or the working directory."""
    arguments = [word.replace("+", " ") for word in command.split()]
    for home, why in (("/no/such/lake", "TIDEMARK_HOME is /no/such/lake"), ("", "TIDEMARK_HOME is not set")):
        monkeypatch.setenv("TIDEMARK_HOME", home)
        done = RUNNER.invoke(app, arguments)
        assert done.exit_code == 2, done.output
        assert f"there is no lake in {home or sources.parent / '.tidemark'} ({why}" in done.stderr
        assert done.stdout == ""
    assert [path.name for path in sources.parent.iterdir()] == ["sources"]


@pytest.mark.parametrize("command", ["run", "land", "plan"])
def test_a_landing_folder_that_is_not_there_is_named_and_makes_no_lake(command: str, sources: Path) -> None:
    """As where the working directory is another one than the path of the source file takes for granted."""
    done = RUNNER.invoke(app, [command, "erp"], env={"TIDEMARK_HOME": ""})
    assert done.exit_code == 2, done.output
    assert f"there is no {sources.parent / 'landing'}, so no file can match" in done.stderr
    assert [path.name for path in sources.parent.iterdir()] == ["sources"]


def test_a_plan_says_why_nothing_would_land(sources: Path) -> None:
    """A folder without files yet is no error."""
    (sources.parent / "landing").mkdir()
    done = RUNNER.invoke(app, ["plan", "erp"], env={"TIDEMARK_HOME": ""})
    assert done.exit_code == 0, done.output
    assert "erp: no new files: no file has ever matched" in done.stdout
    assert done.stdout.splitlines()[-1] == "nothing to do"


def test_a_configured_catalog_that_is_not_there_is_named(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its file; reading makes no file."""
    file = sources.parent / "other.db"
    for name, value in {"type": "sql", "uri": f"sqlite:///{file}", "warehouse": "/w"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__TIDEMARK__{name.upper()}", value)
    done = RUNNER.invoke(app, ["status"])
    assert done.exit_code == 2, done.output
    assert f"catalog 'tidemark': there is no lake in {file}" in done.stderr
    assert not file.exists()


def test_without_java_nothing_is_tried_again(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is not started; the error says what to install, and what names the Java that is not there."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigurationError, match=r"Java 17 is missing: apt-get install .*JAVA_HOME is not set"):
        session._open(None, is_quick=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=f"JAVA_HOME is {tmp_path}"):
        require_java()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={}), ConfigurationError),
        (PermissionError(errno.EACCES, "denied"), ConfigurationError),
        (OSError(errno.EROFS, "read-only"), ConfigurationError),
        (UnauthorizedError("no"), ConfigurationError),
        (ForbiddenError("no"), ConfigurationError),
        (OSError(errno.ENOSPC, "no space left"), RetriableLakeError),
        (ConnectionResetError(errno.ECONNRESET, "reset"), RetriableLakeError),
        (ServiceUnavailableError("later"), RetriableLakeError),
        (OperationalError("SELECT 1", {}, Exception("gone")), RetriableLakeError),
    ],
)
def test_only_what_may_go_over_is_retriable(error: Exception, kind: type[Exception]) -> None:
    """Airflow tries status 3 again, and status 2 never."""
    translated = as_tidemark_error(error, "land of erp failed")
    assert type(translated) is kind
    assert str(translated).startswith("land of erp failed")


@pytest.mark.parametrize("kind", ["glue", "hive"])
def test_a_package_that_a_catalog_needs_is_named(kind: str, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock has no package for Glue or Hive: the error says what to install, and is no traceback."""
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__TYPE", kind)
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__URI", "thrift://127.0.0.1:9")
    ended = RUNNER.invoke(app, ["status"])
    assert ended.exit_code == ConfigurationError.exit_status
    assert f"pip install 'pyiceberg[{kind}]'" in ended.stderr


def test_errors_of_the_packages_of_a_catalog_are_those_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Throttling by Glue goes over. Its package is not here, so a module of its name stands in for it."""
    assert not {error.__module__ for error in store_errors()} & {"botocore.exceptions", "thrift.Thrift"}
    package = ModuleType("botocore.exceptions")
    throttled = type("ClientError", (Exception,), {})
    vars(package).update(ClientError=throttled, BotoCoreError=type("BotoCoreError", (Exception,), {}))
    monkeypatch.setitem(sys.modules, "botocore.exceptions", package)
    assert issubclass(throttled, store_errors())
    with pytest.raises(RetriableLakeError, match="cannot be opened: slow down"), opening():
        raise throttled("slow down")
