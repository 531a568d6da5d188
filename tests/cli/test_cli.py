"""The command line: exit statuses, results on standard output, errors that help on standard error."""

from __future__ import annotations

import json
import logging
import shlex
from pathlib import Path

import duckdb
import pytest
import structlog
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from support.statuses import source_status
from tidemark import __version__, formats
from tidemark.cli.app import app
from tidemark.demo.runner import Outcome
from tidemark.demo.secret import secret_file
from tidemark.errors import ConfigurationError
from tidemark.lake.lake import Lake

RUNNER = CliRunner()

SOURCE = """\
source: cli_shop
format: canal_json
landing: {landing}/%Y-%m-%d/*
tables:
  shop.items:
    checks:
      - {{type: expect_column_values_to_be_between, column: price, min_value: 0}}
"""


def message(number: int, price: str, kind: str = "INSERT") -> str:
    """One row as Canal writes it."""
    row = {"id": str(number), "price": price}
    types = {"id": "bigint", "price": "decimal(10,2)"}
    head = {"database": "shop", "table": "items", "type": kind, "isDdl": False, "pkNames": ["id"], "sql": "", "id": 1}
    return json.dumps(head | {"es": 1, "ts": 2, "data": [row], "old": None, "mysqlType": types, "sqlType": {}}) + "\n"


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one source file, and its landing folder."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "shop.yaml").write_text(SOURCE.format(landing=tmp_path / "landing"), encoding="utf-8")
    monkeypatch.setenv("TIDEMARK_SOURCES", str(folder))
    return tmp_path


def deliver(root: Path, day: str, name: str, *lines: str) -> Path:
    """Write a dump file."""
    folder = root / "landing" / day
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text("".join(lines), encoding="utf-8")
    return file


@pytest.mark.spark
def test_names_and_values_steer_no_terminal(sources: Path, spark: SparkSession, lake: Lake) -> None:
    """A table that a hostile message names, and a value in a row: what would steer a terminal is written as escapes."""
    (sources / "sources" / "odd.yaml").write_text(SOURCE.format(landing=sources / "landing").replace("_shop", "_odd"))
    hostile = message(1, "1.10").replace('"items"', '"\\u001b[2J\\u009b31m\\u202e"')
    deliver(sources, "2026-01-05", "a.jsonl", hostile)
    done = RUNNER.invoke(app, ["run", "cli_odd", "--start", "2026-01-05", "--end", "2026-01-06"])
    assert done.exit_code == 1, done.output
    shown = RUNNER.invoke(app, ["status", "cli_odd"])
    rows = RUNNER.invoke(app, ["sql", "SELECT chr(27) || '[2J' || chr(10) || '表' AS \"a\x1b\""])
    for printed in (done.output, shown.output, rows.output):
        assert not {"\x1b", "\x9b", "\u202e"} & set(printed)
    assert r"shop.\x1b[2J\x9b31m\u202e" in shown.output
    assert [line.strip() for line in rows.stdout.splitlines()] == [r"a\x1b", r"\x1b[2J\n表"]


@pytest.mark.spark
def test_run_to_sql(sources: Path, spark: SparkSession, lake: Lake) -> None:
    """A run publishes; refused files and failed checks end it with 1; sql, status, quarantine show what came of it."""
    deliver(sources, "2026-01-01", "a.jsonl", message(1, "1.10"), message(2, "0.00"), "{broken}\n")
    done = RUNNER.invoke(app, ["run", "cli_shop", "--start", "2026-01-01", "--end", "2026-01-02"])
    assert done.exit_code == 0, done.output
    assert "cli_shop publish: cut=1 tables=1" in done.stdout
    idle = RUNNER.invoke(app, ["run", "cli_shop", "--start", "2026-01-01", "--end", "2026-01-02"])
    assert idle.exit_code == 0, idle.output
    (line,) = idle.stdout.splitlines()
    assert line.startswith(
        "cli_shop: no new files in [2026-01-01T00:00:00+00:00, 2026-01-02T00:00:00+00:00): of 1 that match"
    )
    assert line.endswith("; cut 1 stands")
    assert "no new files" not in idle.stderr

    answer = RUNNER.invoke(app, ["sql", "SELECT id, price FROM cli_shop.items ORDER BY id", "--format", "json"])
    assert [json.loads(line) for line in answer.stdout.splitlines()] == [
        {"id": 1, "price": "1.10"},
        {"id": 2, "price": "0.00"},
    ]
    for statement in (
        "SELECT count(*) AS n FROM cli_shop.items a JOIN cli_shop.items b USING (id), range(1)",
        "SELECT count(*) AS n FROM cli_shop.items WHERE price >= (SELECT min(price) FROM cli_shop.items)",
        "WITH i AS (FROM cli_shop.items) SELECT count(*) AS n FROM i a JOIN i b USING (id)",
    ):
        twice = RUNNER.invoke(app, ["sql", statement, "--format", "csv"])
        assert twice.stdout.splitlines() == ["n", "2"], twice.output
    items = lake.load(("cli_shop", "items")).scan().to_arrow()
    assert [str(total) for (total,) in duckdb.sql("SELECT sum(price) FROM items").fetchall()] == ["1.10"]
    assert items.num_rows == 2

    changes = "SELECT operation, after.price AS price, place FROM cli_shop.items__changes ORDER BY place"
    answer = RUNNER.invoke(app, ["sql", changes, "--format", "csv"])
    assert answer.stdout.splitlines() == ["operation,price,place", "INSERT,1.10,1", "INSERT,0.00,2"]

    aside = RUNNER.invoke(app, ["quarantine", "show", "cli_shop", "--json"])
    (entry,) = [json.loads(line) for line in aside.stdout.splitlines()]
    assert (entry["reason"], entry["place"], entry["value"]) == ("malformed", 3, "e2Jyb2tlbn0=")
    block = RUNNER.invoke(app, ["quarantine", "show", "cli_shop"]).stdout.splitlines()
    assert [line.split(maxsplit=1)[1] for line in block if line.split()[0] in {"file", "value"}] == [
        str(sources / "landing" / "2026-01-01" / "a.jsonl"),
        "{broken}",
    ]

    deliver(sources, "2026-01-01", "a.jsonl", message(1, "9.99"))
    deliver(sources, "2026-01-01", "late.jsonl", message(3, "3.00"))
    changed = RUNNER.invoke(app, ["run", "cli_shop", "--start", "2026-01-02", "--end", "2026-01-03"])
    assert changed.exit_code == 1
    assert "changed since it was landed" in changed.stderr
    assert lake.load(("cli_shop", "items")).scan().to_arrow().num_rows == 3

    deliver(sources, "2026-01-03", "b.jsonl", message(4, "-1.00"))
    failed = RUNNER.invoke(app, ["run", "cli_shop", "--start", "2026-01-03", "--end", "2026-01-04"])
    assert failed.exit_code == 1
    assert "expect_column_values_to_be_between" in failed.stderr
    assert lake.load(("cli_shop", "items")).scan().to_arrow().num_rows == 3
    shown = RUNNER.invoke(app, ["status", "cli_shop"]).stderr
    assert "cut 3 failed a check, and nothing of it is published: cli_shop.items: expect_column_values_to_be" in shown
    assert "`tidemark check cli_shop` and `tidemark publish cli_shop` go on" in shown
    again = RUNNER.invoke(app, ["publish", "cli_shop"])
    assert again.exit_code == 1
    assert "failed a blocking check" in again.stderr

    deliver(sources, "2026-01-03", "c.jsonl", message(4, "1.00", "UPDATE"))
    mended = RUNNER.invoke(app, ["run", "cli_shop", "--start", "2026-01-03", "--end", "2026-01-04"])
    assert lake.load(("cli_shop", "items")).scan().to_arrow().num_rows == 4, mended.output

    (status,) = [json.loads(line) for line in RUNNER.invoke(app, ["status", "--json"]).stdout.splitlines()]
    assert status["messages"] == {"landed": 6, "decoded": 5, "control": 0, "quarantined": 1}
    assert status["tables"]["cli_shop.items"]["rows"] == 4
    assert status["tables"]["cli_shop.items"]["state"] == "published"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["run", "cli_shpo"], "cli_shop"),
        (["run", "cli_shop", "--start", "yesterday"], "2026-01-31"),
        (["run", "cli_shop", "--start", "2026-01-02", "--end", "2026-01-01"], "before it starts"),
        (["sql", "DROP TABLE cli_shop.items"], "only queries"),
        (["sql", "SELECT * FROM nowhere.at_all"], "nowhere.at_all"),
        (["decode", "canl_json", "x"], "canal_json"),
        (["decode", "canal_json", "x", "--option", "dialect"], "KEY=VALUE"),
    ],
)
@pytest.mark.usefixtures("lake")
def test_wrong_usage_ends_with_2_and_helps(sources: Path, arguments: list[str], wanted: str) -> None:
    """What was wrong is named, with what would be right."""
    done = RUNNER.invoke(app, arguments)
    assert done.exit_code == 2, done.output
    assert wanted in done.stderr


@pytest.mark.parametrize(
    ("uri", "status", "wanted"),
    [
        ("postgresql+psycopg://etl:swordfish@127.0.0.1:1/lake", 3, "cannot be opened: "),
        ("postgresql+psycopg9://etl:swordfish@127.0.0.1:1/lake", 2, "postgresql+psycopg://"),
        ("swordfish", 2, ".pyiceberg.yaml"),
    ],
)
@pytest.mark.parametrize("command", ["status", "run cli_shop", "explain cli_shop.items id=1", "sql SELECT+1"])
def test_a_catalog_that_cannot_be_opened_is_told_without_its_password(
    sources: Path, monkeypatch: pytest.MonkeyPatch, command: str, uri: str, status: int, wanted: str
) -> None:
    """Whether a person must mend the configuration or the store is away, no command ends as if data were held back."""
    properties = {"type": "sql", "uri": uri, "warehouse": (sources / "warehouse").as_uri()}
    monkeypatch.setenv("TIDEMARK_CATALOG", "away")
    for name, value in properties.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__AWAY__{name.upper()}", value)
    done = RUNNER.invoke(app, [word.replace("+", " ") for word in command.split()])
    assert done.exit_code == status, done.output
    assert wanted in done.stderr
    assert "swordfish" not in done.output


@pytest.mark.usefixtures("lake")
def test_an_error_that_nobody_thought_of_does_not_end_as_data_held_back(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its traceback is shown, and the status means a failure."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr("tidemark.queries.status.status_of", fail)
    done = RUNNER.invoke(app, ["status", "cli_shop"])
    assert done.exit_code == 3
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError: a mistake" in done.stderr


def test_the_embedded_lake_stands_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But one whose name holds what ends a path for Java's driver of SQLite."""
    for name in ("per%20cent", "a b#ü%"):
        monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / name))
        assert Lake.open().tables("anything") == []
        assert (tmp_path / name / "catalog.db").is_file()
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "what?"))
    with pytest.raises(ConfigurationError, match="without '\\?'"):
        Lake.open()


def test_the_help_has_every_command_in_its_group() -> None:
    """No summary is cut, and no command stands outside of the groups."""
    done = RUNNER.invoke(app, ["--help"], env={"COLUMNS": "80"})
    assert "…" not in done.stdout
    groups = [line.split()[1:-1] for line in done.stdout.splitlines() if line.startswith("╭")]
    assert [" ".join(words).rstrip(" ─") for words in groups] == [
        "Options", "Daily", "Inspect", "Repair", "One stage alone", "Set up",
    ]  # fmt: skip


def test_formats_are_told_with_tools_gaps_and_options() -> None:
    """As text, and as JSON, one object a format."""
    listing = RUNNER.invoke(app, ["formats"])
    assert [line for line in listing.stdout.splitlines() if line and line[0] != " "] == formats.names()
    (canal,) = [
        json.loads(line) for line in RUNNER.invoke(app, ["formats", "canal_json", "--json"]).stdout.splitlines()
    ]
    assert "TiCDC" in canal["tools"]
    assert canal["cannot_tell"]
    assert canal["options"]["row_image"] == {
        "type": "full or partial",
        "default": "full",
        "meaning": "`partial` for `binlog_row_image` NOBLOB or MINIMAL: columns that an UPDATE lacks are unchanged, "
        "and columns that an INSERT lacks are not known.",
    }
    assert canal["options"]["table"]["default"] is None
    assert "  option annotations (boolean, default false): " in listing.stdout
    assert RUNNER.invoke(app, ["formats", "canl_json"]).exit_code == 2


def test_the_shell_completes_sources_and_formats(sources: Path) -> None:
    """Typer's own completion, with the names of today."""
    for words, wanted in (("tidemark run cli", "cli_shop"), ("tidemark decode can", "canal_json")):
        environment = {"_TIDEMARK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "2"}
        done = RUNNER.invoke(app, [], env=environment, prog_name="tidemark")
        assert done.stdout.split() == [wanted]


def test_the_version_is_printed_alone() -> None:
    """With status 0, and without a command."""
    done = RUNNER.invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"tidemark {__version__}\n")


@pytest.mark.parametrize(
    ("words", "terminal", "level"),
    [
        ([], True, logging.WARNING),
        (["-v"], True, logging.INFO),
        (["-vv"], True, logging.DEBUG),
        ([], False, logging.INFO),
        (["--verbose"], False, logging.DEBUG),
    ],
)
def test_a_terminal_gets_log_lines_only_when_asked(
    sources: Path, monkeypatch: pytest.MonkeyPatch, *, words: list[str], terminal: bool, level: int
) -> None:
    """The option stands before the command or behind it; what is no terminal gets what was done in any case."""
    monkeypatch.setattr("tidemark.cli.logs.is_terminal", lambda: terminal)
    for arguments in ([*words, "validate"], ["validate", *words]):
        assert RUNNER.invoke(app, arguments).exit_code == 0
        assert structlog.get_config()["wrapper_class"] is structlog.make_filtering_bound_logger(level)


def test_the_arguments_of_another_program_are_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """``-v`` behind ``airflow`` is Airflow's own."""
    given: list[list[str]] = []
    monkeypatch.setattr("tidemark.services.airflow_commands.run", lambda _, arguments, **__: given.append(arguments))
    monkeypatch.setenv("TIDEMARK_LANDING", "/landing")
    assert RUNNER.invoke(app, ["-v", "airflow", "dags", "list", "-v", "--verbose"]).exit_code == 0
    assert given == [["dags", "list", "-v", "--verbose"]]


def test_validate_counts_files_and_none_is_an_error(tmp_path: Path) -> None:
    """A folder counts for its files, and a wrong folder is not green in CI."""
    folder, empty = tmp_path / "two", tmp_path / "empty"
    folder.mkdir()
    empty.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.yaml").write_text(f"source: {name}\nformat: canal_json\nlanding: /landing/*\n")
    done = RUNNER.invoke(app, ["validate", str(folder)])
    assert (done.exit_code, done.stdout) == (0, "2 source files are valid\n")
    done = RUNNER.invoke(app, ["validate", str(folder / "a.yaml")])
    assert (done.exit_code, done.stdout) == (0, "1 source file is valid\n")
    for arguments, variable in (([str(folder), str(empty)], str(folder)), ([], str(empty))):
        done = RUNNER.invoke(app, ["validate", *arguments], env={"TIDEMARK_SOURCES": variable})
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"No source file (*.yaml, *.yml) in {empty}" in done.stderr


def test_validate_names_file_and_line(sources: Path) -> None:
    """A wrong source file is reported with file, line and a suggestion."""
    (sources / "sources" / "wrong.yaml").write_text("source: wrong\nformat: canal_jsn\nlanding: x\n", encoding="utf-8")
    done = RUNNER.invoke(app, ["validate"])
    assert done.exit_code == 2
    assert "wrong.yaml:2" in done.stderr
    assert "canal_json" in done.stderr


def test_decode_prints_events_without_spark(tmp_path: Path) -> None:
    """Canonical events as JSON lines; a message that cannot be read has its place among them."""
    file = tmp_path / "dump.jsonl"
    file.write_text(message(1, "1.10") + "{broken}\n", encoding="utf-8")
    done = RUNNER.invoke(app, ["decode", "canal_json", str(file)])
    assert done.exit_code == 0
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert first["after"] == {"id": "1", "price": "1.10"}
    assert second["quarantined"]["reason"] == "malformed"


@pytest.mark.parametrize("given", [None, "/srv/the lake"])
def test_the_demo_ends_with_commands_for_what_was_run(given: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that was run, in the home of the run, written as a shell takes it; and where a secret of masks is."""
    outcome = Outcome(
        statuses=[source_status(name, {}) for name in ("shop_dts", "shop_options")], differences=[], seconds=1
    )
    monkeypatch.setattr("tidemark.demo.runner.run", lambda _: outcome)
    monkeypatch.setattr("sys.argv", ["tidemark"])
    if given:
        monkeypatch.setenv("TIDEMARK_HOME", given)
    else:
        monkeypatch.delenv("TIDEMARK_HOME")
    done = RUNNER.invoke(app, ["demo", "shop_dts", "shop_options"])
    assert done.exit_code == 0, done.output
    prefix = "TIDEMARK_HOME='/srv/the lake' " if given else ""
    assert f"  set aside     {prefix}tidemark quarantine show shop_dts\n" in done.stdout
    assert f"  its masks     export SHOP_MASK_SECRET=$(cat {shlex.quote(str(secret_file()))})" in done.stdout
    assert "shop_canal" not in done.stdout
