"""``tidemark init``: the file that it writes is valid, says what the sample told, and runs as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from support.histories import canal
from tidemark.cli.app import app
from tidemark.lake.lake import Lake
from tidemark.sources.files import load_source
from tidemark.sources.model import Source

RUNNER = CliRunner()
FORMATS = Path(__file__).parents[1] / "fixtures" / "formats"
TYPES = {"id": "bigint", "total": "decimal(10,2)", "note": "varchar(9)"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the source files, not made yet."""
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path / "sources"))
    return tmp_path / "sources"


def _dump(path: Path, *messages: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in messages))
    return path


def _init(*arguments: str) -> Source:
    done = RUNNER.invoke(app, ["init", *arguments])
    assert done.exit_code == 0, done.output
    return load_source(Path(done.stdout.strip()))


def test_tables_keys_and_types_are_those_of_the_sample(folder: Path, tmp_path: Path) -> None:
    """Keys that messages name are written; types, checks and guesses are comments."""
    sample = _dump(
        tmp_path / "a.jsonl",
        canal("orders", "INSERT", TYPES, ("1", "5.10", "x"), key=("id",)),
        canal("log", "INSERT", {"at": "datetime", "log_id": "int"}, ("2026-01-01 00:00:00", "1"), key=None),
        b"{broken}",
    )
    done = RUNNER.invoke(app, ["init", "erp", "--format", "canal_json", str(sample)])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(folder / "erp.yaml")
    assert "1 messages cannot be read: malformed" in done.stderr
    source = load_source(folder / "erp.yaml")
    assert (source.source, source.format) == ("erp", "canal_json")
    assert source.table_for("shop.orders").key == ("id",)
    assert source.table_for("shop.log").key is None
    text = (folder / "erp.yaml").read_text(encoding="utf-8")
    assert '#   total: "decimal(10, 2)"\n' in text
    assert "column: total, min_value: 0" in text
    assert "# key: [log_id]  # a guess" in text
    assert "shop.orders:  # in the sample: 1 INSERT\n" in text


def test_what_is_commented_is_valid_too(folder: Path, tmp_path: Path) -> None:
    """With columns and checks taken out of their comments the file is right as well."""
    sample = _dump(tmp_path / "a.jsonl", canal("orders", "INSERT", TYPES, ("1", "5.10", "x")))
    _init("erp", "--format", "canal_json", str(sample))
    path = folder / "erp.yaml"
    path.write_text(re.sub("^    # ", "    ", path.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8")
    promised = load_source(path).table_for("shop.orders")
    assert promised.columns == {"id": "long", "total": "decimal(10, 2)", "note": "string"}
    assert [check.type for check in promised.checks] == ["expect_column_values_to_be_between"]


def test_without_a_sample_it_is_a_template(folder: Path) -> None:
    """Valid as it is, with an example in comments; options of the format are kept with their types."""
    assert _init("crm", "--format", "debezium_json").tables == {}
    source = _init("crm_flat", "--format", "debezium_json", "--option", "flattened=true")
    assert source.options.model_dump()["flattened"] is True


def test_names_of_any_kind_are_written_as_they_are(folder: Path, tmp_path: Path) -> None:
    """Nothing in a message's names ends a line, a text or a comment of the file."""
    odd = 'a: "b"\n# c\u2028\u202e\\ {d}, [e] null'
    sample = _dump(tmp_path / "a.jsonl", canal(odd, "INSERT", {odd: "int", "null": "int"}, ("1", "2"), key=(odd,)))
    source = _init("odd", "--format", "canal_json", str(sample))
    assert source.tables.keys() == {f"shop.{odd}"}
    assert source.table_for(f"shop.{odd}").key == (odd,)


@pytest.mark.parametrize("case", sorted(FORMATS.glob("*/*")), ids=lambda case: f"{case.parent.name}-{case.name}")
def test_every_fixture_of_every_format_gives_a_valid_file(case: Path, folder: Path, tmp_path: Path) -> None:
    """Whatever messages there are."""
    written = case / "messages.jsonl"
    if not written.exists():
        pytest.skip("its messages are no lines of JSON")
    options = json.loads((case / "options.json").read_text()) if (case / "options.json").exists() else {}
    given = [part for name, value in options.items() for part in ("--option", f"{name}={value}")]
    _init("sample", "--format", case.parent.name, str(written), *given)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["erp", "--format", "canl_json"], "canal_json"),
        (["Erp", "--format", "canal_json"], "is no name"),
        (["raw", "--format", "canal_json"], "reserved"),
        (["taken", "--format", "canal_json"], "is in"),
        (["erp", "--format", "canal_json", "--option", "row_imag=full"], "row_image"),
    ],
)
def test_what_cannot_be_written_is_told(arguments: list[str], wanted: str, folder: Path) -> None:
    """Exit status 2; nothing is written, and no file is written over."""
    _init("taken", "--format", "shareplex_json")
    before = (folder / "taken.yaml").read_bytes()
    done = RUNNER.invoke(app, ["init", *arguments])
    assert done.exit_code == 2, done.output
    assert wanted in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["taken.yaml", "tidemark.schema.json"]
    assert (folder / "taken.yaml").read_bytes() == before


@pytest.mark.spark
def test_the_file_runs_as_it_is(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, lake: Lake
) -> None:
    """Init, then run over the same dump: the rows are published, and status tells both ledgers."""
    monkeypatch.setenv("TIDEMARK_LANDING", str(tmp_path))
    committed = canal("orders", "INSERT", TYPES, ("1", "5.10", "x"), ("2", "6.10", "y"))
    sample = _dump(tmp_path / "drafted" / "2026-01-01" / "a.jsonl", committed, b"{broken}")
    _init("drafted", "--format", "canal_json", str(sample))
    done = RUNNER.invoke(app, ["run", "drafted"])
    assert done.exit_code == 0, done.output
    assert lake.load(("drafted", "orders")).scan().to_arrow().num_rows == 2

    (told,) = map(json.loads, RUNNER.invoke(app, ["status", "drafted", "--json"]).stdout.splitlines())
    assert told["messages"] == {"landed": 2, "decoded": 1, "control": 0, "quarantined": 1}
    assert told["closes"] is True
    orders = told["tables"]["drafted.orders"]
    assert orders.pop("lag_seconds") > 0
    assert orders == {
        "object": "shop.orders",
        "state": "published",
        "reason": None,
        "verdict": "passed",
        "rows": 2,
        "rows_before": 0,
        "deleted": 0,
        "committed_at": "2026-01-01T00:00:00+00:00",
        "events": 2,
        "applied": 2,
        "superseded": 0,
        "duplicate": 0,
        "quarantined": 0,
        "held": 0,
        "closes": True,
    }
    shown = RUNNER.invoke(app, ["status", "drafted"]).stdout
    assert "drafted: 2 messages landed = 1 decoded + 0 control + 1 quarantined\n" in shown
