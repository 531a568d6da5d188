"""``tidemark init``: the file that it writes is valid, says what the sample showed, and runs as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from support.histories import canal
from tidemark.cli.app import app
from tidemark.cli.landing_pattern import pattern_of
from tidemark.dumps.listing import find
from tidemark.events import ChangeEvent, Column, Encoding, Quarantined
from tidemark.lake.lake import Lake
from tidemark.normalization.decoding import decoded_files
from tidemark.sources.files import load_source
from tidemark.sources.model import Source
from tidemark.values.plain import read_value

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


def test_checks_are_proposed_from_what_many_rows_have_in_common(folder: Path, tmp_path: Path) -> None:
    """Numbers that are never negative, few words, no nulls; nothing of the key, and nothing of what rows differ in."""
    types = {**TYPES, "state": "varchar(9)", "delta": "int", "at": "datetime"}
    rows = [
        (
            str(n),
            f"{n}.10",
            f"note {n}",
            ("new", 'paid: "x"')[n % 2],
            str(n - 3),
            None if n == 7 else "2026-01-01 00:00:00",
        )
        for n in range(40)
    ]
    part = canal("orders", "UPDATE", types, ("1", "-1", "x", "odd", "1", None), old={"note": "y"})
    sample = _dump(
        tmp_path / "a.jsonl", canal("orders", "INSERT", types, *rows), canal("few", "INSERT", types, *rows[:29])
    )
    _init("erp", "--format", "canal_json", str(sample))
    path = folder / "erp.yaml"
    path.write_text(re.sub("^    # ", "    ", path.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8")
    found = load_source(path).table_for("shop.orders").checks
    assert [(check.type, check.arguments["column"]) for check in found] == [
        ("expect_column_values_to_be_between", "total"),
        ("expect_column_values_to_be_in_set", "state"),
        ("expect_column_values_to_not_be_null", "total"),
        ("expect_column_values_to_not_be_null", "note"),
        ("expect_column_values_to_not_be_null", "state"),
        ("expect_column_values_to_not_be_null", "delta"),
    ]
    assert found[1].arguments["value_set"] == ["new", 'paid: "x"']
    assert found[1].severity == "warn"
    assert "# true of all 40 rows of the sample; severity" in path.read_text(encoding="utf-8")
    assert len(load_source(path).table_for("shop.few").checks) == 1  # the example
    _dump(tmp_path / "b.jsonl", canal("orders", "INSERT", types, *rows), part)
    _init("later", "--format", "canal_json", str(tmp_path / "b.jsonl"))
    assert "min_value: 0" not in (folder / "later.yaml").read_text(encoding="utf-8")


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


def _sample_of(case: Path, folder: Path) -> Path:
    """A dump with the messages of a fixture; binary ones are values of Kafka records, in Base64."""
    binary = case / "messages.b64"
    if not binary.exists():
        return case / "messages.jsonl"
    values = binary.read_text(encoding="ascii").splitlines()
    records = ({"topic": "t", "partition": 0, "offset": number, "value": value} for number, value in enumerate(values))
    return _dump(folder / "records.jsonl", *(json.dumps(record).encode() for record in records))


@pytest.mark.parametrize("case", sorted(FORMATS.glob("*/*")), ids=lambda case: f"{case.parent.name}-{case.name}")
def test_every_fixture_of_every_format_gives_a_valid_file_that_reads_it(
    case: Path, folder: Path, tmp_path: Path
) -> None:
    """Whatever messages there are, all their values are read by the guessed types; without a change no file is made."""
    written = _sample_of(case, tmp_path)
    options = json.loads((case / "options.json").read_text()) if (case / "options.json").exists() else {}
    given = [part for name, value in options.items() for part in ("--option", f"{name}={value}")]
    arguments = ["init", "sample", "--format", case.parent.name, str(written), "--take-guesses", *given]
    done = RUNNER.invoke(app, arguments)
    events = [
        event
        for _, decoded in decoded_files(case.parent.name, [str(written)], options)
        if not isinstance(decoded, Quarantined)
        for event in decoded
        if isinstance(event, ChangeEvent)
    ]
    if not events:
        assert done.exit_code == 1, done.output
        assert "no change event among the" in done.stderr
        assert not folder.exists()
        return
    assert done.exit_code == 0, done.output
    source = load_source(folder / "sample.yaml")
    for event in events:
        promised = source.table_for(str(event.table))
        for name, raw in _untyped_values(event):
            encoding = Encoding(promised.encodings.get(name, Encoding.PLAIN))
            if name in promised.columns:
                read_value(raw, Column(name, promised.columns[name], encoding))


def _untyped_values(event: ChangeEvent) -> Iterator[tuple[str, bytes]]:
    """The captured values of columns for which the messages declare neither a type nor an encoding."""
    columns = event.shape.columns if event.shape else ()
    plain = {column.name for column in columns if column.type is None and column.encoding == "plain"}
    members = msgspec.json.decode(event.after or b"{}", type=dict[str, msgspec.Raw])
    yield from ((name, bytes(raw)) for name, raw in members.items() if name in plain - set(event.absent))


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


def test_without_a_format_it_is_the_one_of_the_sample(folder: Path, tmp_path: Path) -> None:
    """A sample that no format reads ends it with status 1 and no file, and so does one in another format."""
    sample = _dump(tmp_path / "a.jsonl", canal("orders", "INSERT", TYPES, ("1", "5.10", "x")))
    assert _init("erp", str(sample)).format == "canal_json"
    unknown = _dump(tmp_path / "b.jsonl", b'{"a": 1}')
    for arguments, wanted, status in (
        (["other", str(unknown)], "no format reads a change in the first 1 messages", 1),
        (["other", "--format", "debezium_json", str(sample)], "looks like canal_json", 1),
        (["other"], "--format", 2),
    ):
        done = RUNNER.invoke(app, ["init", *arguments])
        assert (done.exit_code, done.stdout) == (status, "")
        assert wanted in done.stderr
    assert [path.name for path in folder.glob("*.yaml")] == ["erp.yaml"]


VALUES = {
    "id": [7001, 7002],
    "total": ["VSc=", "J40="],
    "placed_at": [1772265600000000, 1772265600000001],
    "seen_at": [1772265600000],
    "born": [17000],
    "paid": [True, False],
    "rate": [1.5, 2],
    "huge": [1e300],
    "beyond": [123456789012345678901],
    "variable": [{"scale": 2, "value": "J40="}],
    "created": ["2026-01-01T00:00:00Z"],
    "day": ["2026-01-31"],
    "quantity": ["12", "7"],
    "amount": ["12.50"],
    "phone": ["0049151", "12"],
    "note": ["abcd", "efgh"],
    "document": [{"a": 1}],
    "mixed": [1, "x"],
    "order_no": [1772265600000],
    "empty": [None],
}
"""Values as messages without a schema have them."""


def _bare(row: dict[str, object]) -> bytes:
    place = {
        "connector": "postgresql",
        "ts_ms": 1767225600000,
        "db": "shop",
        "schema": "p",
        "table": "orders",
        "lsn": 1,
    }
    return json.dumps({"op": "c", "ts_ms": 1767225600000, "before": None, "after": row, "source": place}).encode()


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A dump whose messages declare no types, in a folder of its day."""
    longest = max(map(len, VALUES.values()))
    rows = [{name: values[number % len(values)] for name, values in VALUES.items()} for number in range(longest)]
    return _dump(tmp_path / "dumps" / "dt=2026-01-02" / "a.jsonl.1", *map(_bare, rows))


def test_types_and_encodings_are_guessed_from_values(folder: Path, bare: Path) -> None:
    """What the values alone decide stays a comment; what is assumed is given only when asked, with an example."""
    assert _init("erp", str(bare)).table_for("shop.p.orders").columns == {}
    taken = _init("erp_taken", str(bare), "--take-guesses").table_for("shop.p.orders")
    assert taken.columns == {
        "total": "decimal(38, 2)",
        "placed_at": "timestamp",
        "seen_at": "timestamp",
        "born": "date",
        "variable": "decimal(38, 18)",
        "created": "timestamptz",
        "day": "date",
        "quantity": "long",
        "amount": "decimal(38, 18)",
    }
    assert taken.encodings == {
        "total": "unscaled_base64",
        "placed_at": "epoch_us",
        "seen_at": "epoch_ms",
        "born": "epoch_days",
        "variable": "scaled_struct",
        "quantity": "text",
        "amount": "text",
    }
    text = (folder / "erp.yaml").read_text(encoding="utf-8")
    assert "2 digits after the point are assumed; VSc= reads 217.99" in text
    assert "1772265600000000 reads 2026-02-28T08:00:00" in text
    kinds = dict(re.findall(r'#   (\w+): "?([\w(), ]+?)"?  #', text))
    decided = ("id", "paid", "rate", "huge", "beyond", "phone", "note", "document", "mixed", "order_no", "empty")
    assert {name: kinds[name] for name in decided} == {
        "id": "long",
        "paid": "boolean",
        "rate": "decimal(38, 18)",
        "huge": "double",
        "beyond": "decimal(38, 0)",
        **dict.fromkeys(("phone", "note", "document", "mixed", "empty"), "string"),
        "order_no": "long",
    }


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([{"id": 1, "b": 1}, {"id": 2, "b": 1}], "# key: [id]  # a guess"),
        ([{"id": 1, "b": 1}, {"id": 1, "b": 1}], "# key: [id]  # a guess"),
        (
            [{"id": 1, "a": 1, "b": 1}, {"id": 1, "a": 1, "b": 2}, {"id": 2, "a": 1, "b": 1}],
            "# key: [id, b]  # a guess",
        ),
        ([{"id": 1, "a": 1, "b": 1}, {"id": 1, "a": 1, "b": 2}, {"id": 1, "a": 2, "b": 1}], "# key: none is guessed"),
        ([{"id": None, "b": 1}, {"id": 2, "b": 1}], "# key: none is guessed"),
    ],
)
def test_a_guessed_key_is_one_that_the_rows_of_the_sample_bear_out(
    rows: list[dict[str, object]], line: str, folder: Path, tmp_path: Path
) -> None:
    """A row that came twice is one row; a key has no null, and a pair of columns is tried."""
    _init("erp", str(_dump(tmp_path / "a.jsonl", *map(_bare, rows))))
    assert line in (folder / "erp.yaml").read_text("utf-8")


def test_what_is_guessed_is_told_with_the_next_steps(folder: Path, bare: Path) -> None:
    """On standard error; standard output has the path alone."""
    done = RUNNER.invoke(app, ["init", "erp", str(bare)])
    assert done.stdout == f"{folder / 'erp.yaml'}\n"
    assert "(shop.p.orders: total, placed_at, seen_at, born, variable, created, day, quantity, amount)" in done.stderr
    assert "tidemark validate\n" in done.stderr
    assert "tidemark run erp\n" in done.stderr


def test_landing_and_start_date_are_those_of_the_sample(folder: Path, bare: Path) -> None:
    """The file is found by the pattern; the start is the day of the oldest event, or of the path if that is earlier."""
    source = _init("erp", str(bare))
    assert [file.path for file in find(source.landing, start=None, end=None).files] == [str(bare)]
    assert source.landing.endswith("/dt=%Y-%m-%d/*")
    assert source.start_date == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("sample", "pattern", "day"),
    [
        ("/d/erp/2026-01-02/a.json.gz", "/d/erp/%Y-%m-%d/*.json.gz", date(2026, 1, 2)),
        ("/d/erp/2026/01/02/a-2026-01-02.json", "/d/erp/%Y/%m/%d/*.json", date(2026, 1, 2)),
        ("/d/20260102/05/part-0.parquet", "/d/%Y%m%d/%H/*.parquet", date(2026, 1, 2)),
        ("/d/year=2026/month=01/day=02/hour=05/a.avro", "/d/year=%Y/month=%m/day=%d/hour=%H/*.avro", date(2026, 1, 2)),
        ("/d/2026-01-02/shop/topic/a.json", "/d/%Y-%m-%d/shop/topic/*.json", date(2026, 1, 2)),
        ("/d/orders-2026-01-02-0001.json.zst", "/d/orders-%Y-%m-%d*.json.zst", date(2026, 1, 2)),
        ("/d/dt=2026-1-2/hour=9/a.json", "/d/dt=%Y-%m-%d/hour=%H/*.json", date(2026, 1, 2)),
        ("/d/year=2026/month=1/day=2/h=5/a.avro", "/d/year=%Y/month=%m/day=%d/h=%H/*.avro", date(2026, 1, 2)),
        ("/d/2026-01-02/9/a.json", "/d/%Y-%m-%d/9/*.json", date(2026, 1, 2)),
        ("/d/2026.1.2/a.json", "/d/2026.1.2/*.json", None),
        ("/d/plain/a.json", "/d/plain/*.json", None),
        ("/d/50%/w*t?/a", "/d/50%%/w?t?/*", None),
        ("/d/120260102/a.json", "/d/120260102/*.json", None),
        ("s3://bucket/erp/2026-01-02/a.json", "s3://bucket/erp/%Y-%m-%d/*.json", date(2026, 1, 2)),
        ("/landing/erp/2026-01-02/a.json", "${TIDEMARK_LANDING:-landing}/erp/%Y-%m-%d/*.json", date(2026, 1, 2)),
    ],
)
def test_a_day_in_the_path_becomes_fields_of_time(
    sample: str, pattern: str, day: date | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also an hour below it; what has a meaning in a pattern is not taken from the path as it is."""
    monkeypatch.setenv("TIDEMARK_LANDING", "/landing")
    assert pattern_of(sample) == (pattern, day)


@pytest.mark.spark
def test_the_file_runs_as_it_is(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, lake: Lake
) -> None:
    """Init, then run over the same dump: the rows are published, and status shows both ledgers."""
    monkeypatch.setenv("TIDEMARK_LANDING", str(tmp_path))
    committed = canal("orders", "INSERT", TYPES, ("1", "5.10", "x"), ("2", "6.10", "y"))
    sample = _dump(tmp_path / "drafted" / "2026-01-01" / "a.jsonl", committed, b"{broken}")
    _init("drafted", "--format", "canal_json", str(sample))
    done = RUNNER.invoke(app, ["run", "drafted"])
    assert done.exit_code == 0, done.output
    assert lake.load(("drafted", "orders")).scan().to_arrow().num_rows == 2

    (status,) = map(json.loads, RUNNER.invoke(app, ["status", "drafted", "--json"]).stdout.splitlines())
    assert status["messages"] == {"landed": 2, "decoded": 1, "control": 0, "quarantined": 1}
    assert status["closes"] is True
    orders = status["tables"]["drafted.orders"]
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
        "erased": 0,
        "quarantined": 0,
        "held": 0,
        "closes": True,
        "reconciled": None,
        "verified_through": None,
        "verified_place": None,
        "feed": None,
        "log": None,
    }
    shown = RUNNER.invoke(app, ["status", "drafted"]).stdout
    assert "drafted: 2 messages landed = 1 decoded + 0 control + 1 quarantined\n" in shown
