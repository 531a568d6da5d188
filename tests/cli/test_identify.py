"""``tidemark identify`` says what a dump file is; ``tidemark decode`` with the wrong format says what it looks like."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import fastavro
import pytest
import yaml
from typer.testing import CliRunner

from support.histories import canal
from tidemark.cli.app import app
from tidemark.normalization.identifying import identify, other_format
from tidemark.sources.files import load_source

RUNNER = CliRunner()
FORMATS = Path(__file__).parents[1] / "fixtures" / "formats"
TYPES = {"id": "bigint", "note": "varchar(9)"}
WITHOUT_CHANGES = {"control_messages", "statement_text", "unknown_types", "quarantined", "numbers_as_text"}
OF_OPTIONS = {"flattened_settings"}
"""Only the options of these say what their messages are: `__op` is a column of the table."""


def _goldens() -> list[Path]:
    found = sorted(FORMATS.glob("*/*/messages.jsonl"))
    return [path for path in found if path.parent.name not in WITHOUT_CHANGES | OF_OPTIONS]


@pytest.mark.parametrize("path", _goldens(), ids=lambda path: "/".join(path.parts[-3:-1]))
def test_golden_messages_are_of_their_format(path: Path) -> None:
    """No other format reads more of them, and none as many."""
    best, *others = identify(str(path)).readings
    assert best.format == path.parts[-3]
    assert all(each.rank < best.rank for each in others)


def test_a_file_is_told_with_the_first_lines_of_a_source_file(tmp_path: Path) -> None:
    """Format, container and tables are comments, and the whole output is a source file."""
    messages = [canal("orders", "INSERT", TYPES, ("1", "x"), key=("id",)), b"{broken}"]
    lines = [
        json.dumps({"topic": "t", "partition": 0, "offset": number, "value": message.decode()})
        for number, message in enumerate(messages)
    ]
    dump = tmp_path / "shop-50%.jsonl.gz"
    dump.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n"))
    done = RUNNER.invoke(app, ["identify", str(dump)])
    assert done.exit_code == 0, done.output
    assert "JSON lines of Kafka records" in done.stdout
    assert "canal_json reads 1 of the first 2 messages as changes of shop.orders" in done.stdout
    file = tmp_path / "shop_50.yaml"
    file.write_text(done.stdout)
    source = load_source(file)
    assert (source.source, source.format) == ("shop_50", "canal_json")
    assert source.landing == str(tmp_path / "*.jsonl.gz").replace("%", "%%")


def test_json_is_never_taken_for_avro(tmp_path: Path) -> None:
    """Bytes of JSON may look like Avro whose schema is missing."""
    dump = tmp_path / "a.jsonl"
    message = {"op": "c", "before": None, "after": {"id": 1}, "source": {"connector": "oracle"}, "ts_ms": 1}
    dump.write_text(json.dumps({**message, "source": 5}) + "\n")
    assert [each.format for each in identify(str(dump)).readings if each.format.endswith("_avro")] == []


def test_records_of_avro_are_told(tmp_path: Path) -> None:
    """A container of Kafka records whose values are JSON."""
    fields = [("topic", "string"), ("partition", "int"), ("offset", "long"), ("value", "bytes")]
    schema = {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    file = io.BytesIO()
    value = canal("orders", "INSERT", TYPES, ("1", "x"), key=("id",))
    fastavro.writer(file, schema, [{"topic": "t", "partition": 0, "offset": 1, "value": value}])
    (tmp_path / "a.avro").write_bytes(file.getvalue())
    done = RUNNER.invoke(app, ["identify", str(tmp_path / "a.avro")])
    assert "Avro of Kafka records" in done.stdout
    assert yaml.safe_load(done.stdout)["format"] == "canal_json"


def test_a_file_that_no_format_reads_ends_with_status_1(tmp_path: Path) -> None:
    """Others are identified all the same, and a name cannot steer a terminal. A file that is not there ends with 2."""
    (tmp_path / "a\x1b[31m.jsonl").write_bytes(b'{"a": 1}\n')
    (tmp_path / "b.jsonl").write_bytes(canal("orders", "INSERT", TYPES, ("1", "x"), key=("id",)) + b"\n")
    paths = sorted(map(str, tmp_path.iterdir()))
    assert RUNNER.invoke(app, ["identify", *paths]).exit_code == 1
    done = RUNNER.invoke(app, ["identify", *paths, str(tmp_path / "absent")])
    assert done.exit_code == 2
    assert "no format reads a change in the first 1 messages" in done.stdout
    assert "format: canal_json" in done.stdout
    assert "absent" in done.stderr
    assert "\x1b" not in done.stdout


def test_a_file_in_another_format_than_the_source_says_is_told(tmp_path: Path) -> None:
    """None where the format is right, where no format reads the file, and where the file is gone."""
    dump, odd = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    dump.write_bytes(canal("orders", "INSERT", TYPES, ("1", "x"), key=("id",)) + b"\n")
    odd.write_bytes(b'{"a": 1}\n')
    assert other_format(str(dump), "debezium_json") == "canal_json"
    assert other_format(str(dump), "canal_json") is None
    assert other_format(str(odd), "canal_json") is None
    assert other_format(str(tmp_path / "gone"), "canal_json") is None


def test_decoding_with_the_wrong_format_says_which_one_it_looks_like(tmp_path: Path) -> None:
    """The events go to standard output as always, the hint to standard error; the right format gets no hint."""
    dump = tmp_path / "a.jsonl"
    dump.write_bytes(canal("orders", "INSERT", TYPES, ("1", "x"), key=("id",)) + b"\n")
    wrong = RUNNER.invoke(app, ["decode", "debezium_json", str(dump)])
    assert "looks like canal_json, which knows 1 of its first 1 messages: `tidemark decode canal_json`" in wrong.stderr
    assert json.loads(wrong.stdout)["quarantined"]
    right = RUNNER.invoke(app, ["decode", "canal_json", str(dump)])
    assert right.stderr == ""


@pytest.mark.parametrize(
    "command", [["decode", "canal_json"], ["identify"], ["init", "crm"]], ids=lambda words: words[0]
)
def test_a_file_that_cannot_be_opened_is_an_error_of_usage(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is wrong, and no data was held back; so it is of a folder, beside a file that can be read."""
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path / "sources"))
    dump = tmp_path / "a.jsonl"
    dump.write_bytes(canal("orders", "INSERT", TYPES, ("1", "x"), key=("id",)) + b"\n")
    for path, problem in ((tmp_path / "none.jsonl", "cannot be opened"), (tmp_path, "not a regular file")):
        done = RUNNER.invoke(app, [*command, str(dump), str(path)])
        assert (done.exit_code, f"{path}: {problem}" in done.stderr) == (2, True), done.output
