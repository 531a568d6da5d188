"""Source files: what a right one says, and the exact words about a wrong one."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from unittest.mock import Mock
from zoneinfo import ZoneInfo

import great_expectations.expectations.core  # noqa: F401  registers them
import pytest
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.registry import (
    get_expectation_impl,
    list_registered_expectation_implementations,
)
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tidemark import INCLUDE, formats
from tidemark.errors import ConfigurationError, InvalidSourceError, UnknownNameError
from tidemark.sources import fields
from tidemark.sources.choices import Deletes, Severity
from tidemark.sources.expectation_names import EXPECTATIONS, REFUSED, REQUIRED
from tidemark.sources.files import find_source, load_source, load_sources, read_sources, validate
from tidemark.sources.model import Source, Table
from tidemark.sources.yaml_document import MAX_BYTES, Value, dotted, read_document

GALLERY = Path(__file__).parents[1] / "fixtures" / "invalid" / "sources"
WRONG_FILES = sorted(GALLERY.glob("*.yaml"))
SMALLEST = "source: {name}\nformat: canal_json\nlanding: /landing/*.json\n"
FULL = """\
source: erp
format: canal_json
options: {}
landing: ${TIDEMARK_TEST_ROOT}/erp/${TIDEMARK_TEST_UNSET:-all}/%Y-%m-%d/100%%/*.json.gz
schedule: "@daily"
start_date: 2026-01-01
target: "{source}.{database}_{table}"
tables:
  shop.orders:
    key: [id]
    history: false
    deletes: hard
    columns: {total: "decimal(18,2)", y: long, at: timestamp}
    encodings: {at: epoch_ms}
    checks:
      - {type: expect_column_values_to_be_between, column: total, min_value: 0}
      - {type: expect_table_row_count_to_be_between, min_value: 1, severity: warn}
  shop.*:
    key: [a]
  "*":
    key: [b]
"""


def write(folder: Path, name: str, text: str) -> Path:
    """Write a source file and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    """Return the source of a file that uses every key."""
    monkeypatch.setenv("TIDEMARK_TEST_ROOT", "/landing")
    return load_source(write(tmp_path, "erp.yaml", FULL))


def test_full_file_is_read_as_written(full: Source) -> None:
    """Every key of a source file arrives, typed."""
    assert full.landing == "/landing/erp/all/%Y-%m-%d/100%%/*.json.gz"
    assert (full.schedule, full.start_date) == ("@daily", datetime(2026, 1, 1, tzinfo=UTC))
    assert (full.target, full.dag_id) == ("{source}.{database}_{table}", "cdc_erp")
    assert isinstance(full.options, formats.resolve("canal_json").Options)
    orders = full.tables["shop.orders"]
    assert (orders.key, orders.history, orders.deletes) == (("id",), False, Deletes.HARD)
    assert orders.columns == {"total": "decimal(18, 2)", "y": "long", "at": "timestamp"}
    assert full.written()["shop.orders"] == {"at": ("timestamp", "epoch_ms")}
    assert [(check.severity, check.arguments) for check in orders.checks] == [
        (Severity.BLOCK, {"column": "total", "min_value": 0}),
        (Severity.WARN, {"min_value": 1}),
    ]


def test_smallest_file_has_the_documented_defaults(tmp_path: Path) -> None:
    """Three keys are enough."""
    source = load_source(write(tmp_path, "a.yaml", SMALLEST.format(name="a")))
    assert (source.schedule, source.target, source.tables) == (None, "{source}.{table}", {})
    assert source.table_for("any.thing") == Table(key=None, history=False, deletes=Deletes.HARD)


def test_table_is_found_by_name_then_by_the_first_pattern(full: Source) -> None:
    """An exact name wins over a pattern, and the first pattern over later ones."""
    assert full.table_for("shop.orders").key == ("id",)
    assert full.table_for("shop.items").key == ("a",)
    assert full.table_for("stock.items").key == ("b",)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [("a?c", "abc", True), ("a?c", "ac", False), ("a[b]c", "abc", False), ("a.c", "abc", False), ("A*", "abc", False)],
)
def test_only_star_and_question_mark_are_special(pattern: str, name: str, *, expected: bool) -> None:
    """Brackets and dots of a pattern stand for themselves, and case counts."""
    key = {"key": ["id"]}
    source = Source.model_validate(
        {"source": "s", "format": "canal_json", "landing": "/x", "tables": {pattern: key}},
    )
    assert (source.table_for(name).key == ("id",)) is expected


@pytest.mark.parametrize(
    ("address", "holds"),
    [
        ("s3://key:secret@dumps/erp/*", True),
        ("s3://key@dumps/erp/*", True),
        ("S3://${TIDEMARK_TEST_KEYS}@dumps/erp/*", True),
        ("abfss://dumps:secret@account.dfs.core.windows.net/erp/*", True),
        ("abfs://:secret@account.dfs.core.windows.net/erp/*", True),
        ("abfs://dumps@account.dfs.core.windows.net/erp/*?sv=1&sig=secret", True),
        ("abfs://dumps@account.dfs.core.windows.net/erp/*?client_secret=secret", True),
        ("abfs://dumps@account.dfs.core.windows.net/erp/*?tenant_id=1", False),
        ("az://dumps/erp/*?sv=1&sig=secret", True),
        ("s3://dumps/erp/*?region=a&session_token=secret", True),
        ("s3://dumps/erp/*?secret_key=secret", True),
        ("gs://dumps/erp/*?access_token=secret", True),
        ("s3://dumps/x?sig=*/y", False),
        ("file:///l/a?sig=1.json", False),
        ("file:///l/a?token=1.json", False),
        ("hdfs://etl:secret@name/erp/*", True),
        ("hdfs://etl@name:8020/erp/*", False),
        ("gs://anonymous@dumps/erp/*", False),
        ("s3://dumps/a@b/c:d@e/*?region=us-east-1&endpoint_override=http%%3A//store%%3A9000", False),
        ("/srv/a:b@c/*", False),
    ],
)
def test_a_landing_path_holds_no_key_of_its_store(
    address: str, monkeypatch: pytest.MonkeyPatch, *, holds: bool
) -> None:
    """Tables and logs would show it, so it is refused, and not shown; a container, user or place is none."""
    monkeypatch.setenv("TIDEMARK_TEST_KEYS", "key:secret")
    fields = {"source": "s", "format": "canal_json", "landing": address}
    if not holds:
        assert Source.model_validate(fields).landing == address
        return
    with pytest.raises(ValidationError, match="holds a key or a password of its store") as caught:
        Source.model_validate(fields)
    assert "secret" not in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize("path", WRONG_FILES, ids=lambda path: path.stem)
def test_wrong_file_is_explained_word_for_word(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file of the gallery gives exactly the message beside it (the list of formats shortened)."""
    monkeypatch.chdir(GALLERY)
    explanation = "\n\n".join(map(str, validate([Path(path.name)])[1])) + "\n"
    assert explanation.replace(", ".join(formats.names()), "(formats)") == path.with_suffix(".txt").read_text("utf-8")


def test_gallery_is_complete() -> None:
    """The gallery holds files, and a message for each and for nothing else."""
    assert len(WRONG_FILES) >= 35
    assert {path.stem for path in WRONG_FILES} == {path.stem for path in GALLERY.glob("*.txt")}


def test_sources_are_sorted_by_name(tmp_path: Path) -> None:
    """The order of the files does not matter."""
    write(tmp_path, "1.yaml", SMALLEST.format(name="b"))
    write(tmp_path, "2.yml", SMALLEST.format(name="a"))
    write(tmp_path, "notes.txt", "no source")
    assert [source.source for source in load_sources(tmp_path)] == ["a", "b"]


def test_two_sources_do_not_name_one_folder(tmp_path: Path) -> None:
    """A location within one of another file is an error there; that of a pattern holds a folder for each table."""
    text = """
        source: {}
        format: canal_json
        landing: /srv/*.json
        tables:
          {}: {{layout: {{location: "{}"}}}}
    """
    entries = {
        "crm_eu": ("crm.customers", "s3://lake/crm"),
        "crm_us": ("crm.customers", "s3a://lake/crm/customers/"),
        "crm_apart": ("crm.customers", "s3://lake/crm_apart"),
        "crm_many": ("crm.*", "s3://lake/crm"),
    }
    for name, entry in entries.items():
        (tmp_path / f"{name}.yaml").write_text(textwrap.dedent(text.format(name, *entry)))
    number, problems = validate([tmp_path])
    assert number == len(entries)
    assert [(each.path.name, each.key, each.line) for each in problems] == [
        ("crm_us.yaml", "tables.crm.customers.layout.location", 6)
    ]
    assert f"that of crm.customers in {tmp_path}/crm_eu.yaml, s3://lake/crm." in problems[0].message
    assert len(load_sources(tmp_path)) == len(entries)


def test_name_declared_twice_names_both_files(tmp_path: Path) -> None:
    """Two files with one name are an error, and neither of them is used."""
    first = write(tmp_path, "1.yaml", SMALLEST.format(name="a"))
    second = write(tmp_path, "2.yaml", SMALLEST.format(name="a"))
    with pytest.raises(InvalidSourceError, match="declared") as caught:
        load_sources(tmp_path)
    assert str(first) in str(caught.value)
    assert f"{second}:1:9: source: " in str(caught.value)
    assert read_sources(tmp_path)[0] == []


def test_wrong_file_does_not_hide_the_others(tmp_path: Path) -> None:
    """The sources that are right are returned beside the problems."""
    write(tmp_path, "a.yaml", SMALLEST.format(name="a"))
    write(tmp_path, "b.yaml", "source: b\n")
    sources, problems = read_sources(tmp_path)
    assert [source.source for source in sources] == ["a"]
    assert {problem.key for problem in problems} == {"format", "landing"}
    assert find_source("a", tmp_path) == sources[0]


def test_finding_a_source_reads_no_file_without_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task looks for its source, one of hundreds; a name written with an escape is found all the same."""
    for name in ("a1", "b1", "b1_too"):
        write(tmp_path, f"{name}.yaml", SMALLEST.format(name=name))
    write(tmp_path, "other.yaml", SMALLEST.format(name=r'"\x63\x31"'))
    read = Mock(wraps=read_document)
    monkeypatch.setattr("tidemark.sources.files.read_document", read)
    assert find_source("b1", tmp_path).source == "b1"
    assert [call.args[0].stem for call in read.call_args_list] == ["b1", "b1_too"]
    assert find_source("c1", tmp_path).source == "c1"


def test_unknown_source_is_named_with_a_near_one(tmp_path: Path) -> None:
    """A misspelt source name suggests what was meant."""
    write(tmp_path, "a.yaml", SMALLEST.format(name="orders"))
    with pytest.raises(UnknownNameError, match="Did you mean 'orders'"):
        find_source("order", tmp_path)


def test_folder_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``TIDEMARK_SOURCES`` names the folder; one that does not exist is an error."""
    write(tmp_path, "a.yaml", SMALLEST.format(name="a"))
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path))
    assert [source.source for source in load_sources()] == ["a"]
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path / "gone"))
    with pytest.raises(ConfigurationError, match="TIDEMARK_SOURCES"):
        load_sources()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"source: \xff\n", "not UTF-8"),
        (b"#" * (MAX_BYTES + 1), "larger than"),
        (b"a: " + b"[" * 5000, "levels|readable|YAML"),
        (
            b"a: &a [x, x, x, x, x, x, x, x, x, x]\n"
            + b"".join(b"%c: &%c [%s]\n" % (98 + i, 98 + i, b", ".join([b"*%c" % (97 + i)] * 10)) for i in range(7)),
            "values",
        ),
        (SMALLEST.format(name="a").encode() + b'timezone: "\\ud800"\n', r"yaml:4:11: timezone: .* half of a character"),
        (SMALLEST.format(name="a").encode() + b"timezone: Asia/Tokyo\nstart_date: 0001-01-01\n", "5:13: start_date: "),
        (SMALLEST.format(name="a").encode() + b"log_restarts: [0001-01-01T00+14]\n", "4:16: log_restarts"),
        (SMALLEST.format(name="a").encode() + b"tables: {'(a{99999999999})': {}}\n", "is no regular expression"),
    ],
    ids=["encoding", "size", "depth", "aliases", "surrogate", "year 0", "year 0 in a list", "repetition"],
)
def test_hostile_file_ends_in_a_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    """A file made to exhaust the reader is one problem like any other."""
    path = tmp_path / "hostile.yaml"
    path.write_bytes(content)
    with pytest.raises(InvalidSourceError, match=message):
        load_source(path)


def test_a_file_that_nothing_foresaw_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an error of reading one file is, it is a problem of that file with its kind, and no more."""
    write(tmp_path, "a.yaml", SMALLEST.format(name="a"))
    write(tmp_path, "b.yaml", SMALLEST.format(name="b"))
    real = Source.model_validate
    failing = Mock(side_effect=lambda values: 1 // 0 if values["source"] == "b" else real(values))
    monkeypatch.setattr(Source, "model_validate", failing)
    sources, problems = read_sources(tmp_path)
    assert [source.source for source in sources] == ["a"]
    assert [(problem.path.name, problem.line) for problem in problems] == [("b.yaml", 1)]
    assert "ZeroDivisionError" in problems[0].message


def test_time_without_zone_is_utc(tmp_path: Path) -> None:
    """A start date with a zone is turned into UTC, one without is UTC."""
    text = SMALLEST.format(name="a")
    path = write(tmp_path, "a.yaml", f"{text}start_date: 2026-01-01T06:30:00+02:00\n")
    assert load_source(path).start_date == datetime(2026, 1, 1, 6, 30, tzinfo=timezone(timedelta(hours=2)))
    path = write(tmp_path, "a.yaml", f"{text}start_date: 2026-01-01 06:30:00\n")
    assert load_source(path).start_date == datetime(2026, 1, 1, 6, 30, tzinfo=UTC)


def test_a_start_date_is_in_the_zone_of_the_source(tmp_path: Path) -> None:
    """Unless it has a zone of its own; the order of the keys in the file does not matter."""
    text = SMALLEST.format(name="a")
    path = write(tmp_path, "a.yaml", f"{text}start_date: 2026-01-01\ntimezone: Asia/Shanghai\n")
    assert load_source(path).start_date == datetime(2025, 12, 31, 16, tzinfo=UTC)
    path = write(tmp_path, "a.yaml", f"{text}start_date: 2026-01-01T00:00:00Z\ntimezone: Asia/Shanghai\n")
    assert load_source(path).start_date == datetime(2026, 1, 1, tzinfo=UTC)
    assert load_source(path).zone == ZoneInfo("Asia/Shanghai")


def test_source_cannot_be_changed(full: Source) -> None:
    """A source is a value."""
    with pytest.raises(ValidationError, match="frozen"):
        full.format = "other"  # type: ignore[misc]


@given(st.integers(min_value=1, max_value=38), st.integers(min_value=0, max_value=99))
def test_decimal_is_accepted_up_to_its_precision(precision: int, scale: int) -> None:
    """decimal(p, s) exists for every p up to 38 and every s up to p, and for no other."""
    text = f"decimal({precision},{scale})"
    if scale <= precision:
        assert fields.column_type(text) == f"decimal({precision}, {scale})"
    else:
        with pytest.raises(ValueError, match="does not exist"):
            fields.column_type(text)


def test_yaml_values_keep_their_kind_and_place(tmp_path: Path) -> None:
    """Plain values become Python's, keys stay text, and each place is known."""
    path = write(tmp_path, "x.yaml", "a: {no: [1, 0x10, 1.5, .inf, null, true, 2026-01-01, '7']}\n1: y\n")
    document = read_document(path)
    expected: Value = {"a": {"no": [1, 16, 1.5, float("inf"), None, True, "2026-01-01", "7"]}, "1": "y"}
    assert document.value == expected
    assert document.values["a", "no", 2] == (1, 19)
    assert document.keys["1",] == (2, 1)
    assert dotted(("a", "no", 2)) == "a.no[2]"


def test_expectation_names_are_those_of_the_library() -> None:
    """The table of expectations and arguments is the installed library's."""
    skipped = {*Expectation.__fields__, "batch_id", "library_metadata"}
    library = {
        name: {
            field: bool(of.required)
            for field, of in get_expectation_impl(name).__fields__.items()
            if field not in skipped
        }
        for name in list_registered_expectation_implementations()
        if name.startswith("expect_") or name == "unexpected_rows_expectation"
    }
    assert len(library) > 50
    assert len(REFUSED) == len(library.keys() & REFUSED.keys()) == len(library) - len(EXPECTATIONS)
    judged = {name: fields for name, fields in library.items() if name not in REFUSED}
    for argument in ("row_condition", "condition_parser"):
        del judged["expect_column_pair_values_to_be_in_set"][argument]
    assert {name: frozenset(fields) for name, fields in judged.items()} == EXPECTATIONS
    needed = {name: frozenset(f for f in fields if fields[f]) for name, fields in judged.items()}
    # Each table would pass without these.
    needed["expect_column_kl_divergence_to_be_less_than"] |= {"partition_object", "threshold"}
    needed["expect_column_values_to_be_in_type_list"] |= {"type_list"}
    needed["expect_column_values_to_match_regex"] |= {"regex"}
    needed["expect_table_columns_to_match_ordered_list"] |= {"column_list"}
    needed["expect_table_columns_to_match_set"] |= {"column_set"}
    assert needed == REQUIRED


def test_importing_sources_is_cheap() -> None:
    """Reading sources pulls in no engine; Airflow does it at every parse."""
    script = "import sys, tidemark.sources\nprint(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=_environment()
    )
    heavy = {"pyspark", "pyiceberg", "great_expectations", "airflow", "pyarrow", "pandas", "sqlalchemy", "grpc"}
    assert "pydantic" in done.stdout.split()
    assert heavy & set(done.stdout.split()) == set()


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": str(INCLUDE)}
