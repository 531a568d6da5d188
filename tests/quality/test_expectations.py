"""What Great Expectations is asked, what is reported of its answers, and what never is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import great_expectations
import pytest
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from support.connect_in_jvm import ConnectInJvm
from tidemark.errors import ConfigurationError, InvalidSourceError, RetriableLakeError, UnknownNameError
from tidemark.quality import data_docs
from tidemark.quality.expectations import evaluate_all
from tidemark.quality.verdicts import CheckResult, Invariant, Subject, Verdict
from tidemark.sources.check import Check
from tidemark.sources.choices import Severity
from tidemark.sources.expectation_names import EXPECTATIONS
from tidemark.spark.tuning import tuned_for

pytestmark = pytest.mark.spark

CANARY = "CANARY-4711"
HOSTILE = "<script>alert(1)</script>"
ROWS = 100


def orders(spark: SparkSession) -> DataFrame:
    """A hundred rows: id 0 to 99, total 0 to 9, one note that must never be shown, and hostile column names."""
    return spark.range(ROWS).select(
        "id",
        (F.col("id") % 10).cast("decimal(18, 2)").alias("total"),
        F.when(F.col("id") == 7, CANARY).otherwise("fine").alias("note"),
        F.lit(1).alias("a.b"),
        F.lit(CANARY).alias(HOSTILE),
    )


@pytest.fixture
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    """The rows under test; Spark is tuned for them, as a check tunes it for small tables."""
    with tuned_for(spark, [100]):
        yield orders(spark)


@pytest.fixture(autouse=True)
def _pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Data Docs be written."""
    monkeypatch.setenv("TIDEMARK_REPORT", "on")


@pytest.fixture
def quiet_home(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Path]:
    """A home of its own; fails the test when Great Expectations logged an error, as it swallows those of its pages."""
    yield tmp_path
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def candidate(
    frame: DataFrame,
    *checks: Mapping[str, Any],
    table: str = "erp.orders",
    invariants: Mapping[str, Invariant] | None = None,
) -> Subject:
    """A candidate with these checks."""
    return Subject(table=table, frame=frame, snapshot=8001, checks=checks, invariants=invariants or {})


def judge(home: Path, *candidates: Subject, cut: str = "erp-1") -> Sequence[Verdict]:
    """Verdicts of one run."""
    return evaluate_all(candidates, cut=cut, home=home)


def outline(verdict: Verdict) -> list[tuple[str, bool, str]]:
    """Name, success and observation of each result."""
    return [(result.name, result.success, result.observed) for result in verdict.results]


def between(column: str, **arguments: Any) -> dict[str, Any]:
    """A range check."""
    return {"type": "expect_column_values_to_be_between", "column": column, **arguments}


def not_null(column: str, **arguments: Any) -> dict[str, Any]:
    """A null check."""
    return {"type": "expect_column_values_to_not_be_null", "column": column, **arguments}


def pages(verdict: Verdict) -> list[Path]:
    """Pages of validation results."""
    return sorted((verdict.docs.parent / "validations").rglob("*.html"))


class Text(HTMLParser):
    """The text of a page."""

    def __init__(self, page: Path) -> None:
        """Read the page."""
        super().__init__()
        self.text = ""
        self.feed(page.read_text())

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.text += data


def links(index: Path) -> list[Path]:
    """Files that the index, a script with its rows, leads to."""
    found = re.findall(r"(?:href=\"|link_path': ')((?:validations|expectations)/[^\"']+)", index.read_text())
    return [index.parent / unquote(target) for target in found]


def test_counts_are_told_in_the_order_of_the_source_file(frame: DataFrame, quiet_home: Path) -> None:
    """Each declared check has one result, in order, with counts instead of rows."""
    (verdict,) = judge(
        quiet_home,
        candidate(
            frame,
            between("total", min_value=0, max_value=8),
            not_null("a.b"),
            {"type": "expect_table_row_count_to_equal", "value": ROWS},
            {"type": "expect_compound_columns_to_be_unique", "column_list": ["id", "total"]},
        ),
    )
    assert verdict.success is False
    assert outline(verdict) == [
        ("expect_column_values_to_be_between", False, "10 of 100 unexpected"),
        ("expect_column_values_to_not_be_null", True, "0 of 100 unexpected"),
        ("expect_table_row_count_to_equal", True, "100"),
        ("expect_compound_columns_to_be_unique", True, "0 of 100 unexpected"),
    ]
    assert [result.columns for result in verdict.results] == [("total",), ("a.b",), (), ("id", "total")]
    assert verdict.results[0].expected == "min_value 0, max_value 8"


def test_a_warning_does_not_block(frame: DataFrame, quiet_home: Path) -> None:
    """A failed check of severity warn is reported and the table still passes; without severity it blocks."""
    check = between("total", max_value=8)
    warned, blocked = judge(
        quiet_home,
        candidate(frame, {**check, "severity": "warn"}, table="erp.warned"),
        candidate(frame, check, table="erp.blocked"),
    )
    assert (warned.success, warned.results[0].success, warned.results[0].severity) == (True, False, Severity.WARN)
    assert (blocked.success, blocked.results[0].success, blocked.results[0].severity) == (False, False, Severity.BLOCK)


def test_a_time_beyond_the_years_of_python_is_no_lost_candidate(frame: DataFrame, quiet_home: Path) -> None:
    """PostgreSQL's infinity, say: a check that looks at the value itself fails, and the others are judged."""
    beyond = frame.withColumn("at", F.timestamp_micros(F.lit(9223372036825200000)))
    latest = {"type": "expect_column_max_to_be_between", "column": "at", "max_value": "2100-01-01", "severity": "warn"}
    (verdict,) = judge(quiet_home, candidate(beyond, latest, not_null("at")))
    assert [(result.success, result.severity) for result in verdict.results[:2]] == [
        (False, Severity.WARN),
        (True, Severity.BLOCK),
    ]
    assert verdict.success


def test_a_check_that_cannot_be_evaluated_fails_alone(spark: SparkSession, quiet_home: Path) -> None:
    """A missing column and a type that Spark refuses are failed checks, and take no other check with them."""
    (verdict,) = judge(
        quiet_home,
        candidate(
            orders(spark),
            not_null("gone"),
            {"type": "expect_column_values_to_be_in_set", "column": "note", "value_set": [1, 2]},
            between("total", min_value="2026-01-01"),
            {"type": "expect_column_values_to_match_regex", "column": "note", "regex": "(["},
            not_null("id"),
            between("total", max_value=8),
        ),
    )
    (_, *results) = outline(verdict)
    assert outline(verdict)[0][1:] == (False, 'Error: The column "gone" in BatchData does not exist.')
    assert results[0] == ("expect_column_values_to_be_in_set", False, "[CAST_INVALID_INPUT]")
    assert results[1][1:][0] is False
    assert results[1][2].startswith("[DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] Cannot resolve '...'")
    assert results[2][1] is False
    assert "PatternSyntaxException" in results[2][2]
    assert results[3:] == [
        ("expect_column_values_to_not_be_null", True, "0 of 100 unexpected"),
        ("expect_column_values_to_be_between", False, "10 of 100 unexpected"),
    ]


def test_equal_checks_are_both_judged(frame: DataFrame, quiet_home: Path) -> None:
    """A check declared twice has two results: none is dropped."""
    (verdict,) = judge(quiet_home, candidate(frame, not_null("id"), not_null("id", severity="warn"), not_null("id")))
    assert len(verdict.results) == 3
    assert [result.severity for result in verdict.results] == [Severity.BLOCK, Severity.WARN, Severity.BLOCK]


def test_no_value_of_a_row_is_told(
    frame: DataFrame, jvm: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither verdict nor files nor output nor Spark's log hold a value, whatever Great Expectations observed of it."""
    column = {"column": "note"}
    checks = [
        {"type": "expect_column_values_to_be_in_set", "value_set": ["fine"], **column},
        {"type": "expect_column_distinct_values_to_be_in_set", "value_set": ["fine"], **column},
        {"type": "expect_column_distinct_values_to_equal_set", "value_set": ["x"], **column},
        {"type": "expect_column_most_common_value_to_be_in_set", "value_set": ["x"], "column": HOSTILE},
        {"type": "expect_column_values_to_be_unique", **column},
        {"type": "expect_column_values_to_match_regex", "regex": "^x", **column},
        between("note", min_value=5),
        {"type": "expect_column_max_to_be_between", "column": "total", "max_value": 3},
    ]
    unreadable = {"type": "expect_column_values_to_be_in_set", "value_set": [1], "column": HOSTILE}
    verdict, other = judge(tmp_path, candidate(frame, *checks), candidate(frame, unreadable, table="erp.other"))
    assert not any(result.success for result in (*verdict.results, *other.results))
    assert verdict.results[-1].observed == "not shown, may be the value of one row"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    stored = [path for path in files if path.suffix == ".json"]
    assert len(stored) == 4
    output = capfd.readouterr()
    files.append(Path(jvm["log"]))
    texts = [repr(verdict), repr(other), output.out, output.err, *(path.read_text(errors="replace") for path in files)]
    assert [text[max(0, text.find(CANARY) - 200) :][:400] for text in texts if CANARY in text] == []
    assert all('"observed_value"' not in path.read_text() for path in stored)


def test_invariants_are_judged_as_numbers(frame: DataFrame, quiet_home: Path) -> None:
    """An invariant is zero or in its range, and its number is shown."""
    invariants = {
        "null keys": Invariant(value=0),
        "duplicate keys": Invariant(value=3),
        "deleted percent": Invariant(value=21, minimum=None, maximum=20, severity=Severity.WARN),
        "rows": Invariant(value=2**63, minimum=1, maximum=None),
    }
    (verdict,) = judge(quiet_home, candidate(frame, not_null("id"), invariants=invariants))
    assert outline(verdict)[1:] == [
        ("null keys", True, "0"),
        ("duplicate keys", False, "3"),
        ("deleted percent", False, "21"),
        ("rows", True, str(2**63)),
    ]
    assert [result.expected for result in verdict.results[1:]] == ["0", "0", "None to 20", "1 to None"]
    assert verdict.success is False


def test_a_table_with_good_invariants_passes_without_checks(frame: DataFrame, quiet_home: Path) -> None:
    """No declared check is needed, nor any invariant."""
    good, bare = judge(
        quiet_home, candidate(frame, invariants={"null keys": Invariant(value=0)}), candidate(frame, table="erp.bare")
    )
    assert (good.success, len(good.results)) == (True, 1)
    assert (bare.success, bare.results) == (True, ())
    assert len(pages(good)) == 2


def test_data_docs_show_checks_and_invariants_and_escape_names(frame: DataFrame, quiet_home: Path) -> None:
    """The page of the table holds both kinds, and a hostile column name is text in it."""
    (verdict,) = judge(
        quiet_home,
        candidate(
            frame,
            not_null("total"),
            {"type": "expect_column_values_to_be_in_set", "column": HOSTILE, "value_set": [HOSTILE]},
            not_null("<script>gone()</script>"),
            invariants={"duplicate keys": Invariant(value=3), "<script>null keys": Invariant(value=0)},
        ),
        cut="<script>cut",
    )
    assert verdict.docs == quiet_home / "quality" / "gx" / "uncommitted" / "data_docs" / "local_site" / "index.html"
    (page,) = pages(verdict)
    suites = list((verdict.docs.parent / "expectations").rglob("*.html"))
    assert len(suites) == 1
    text = Text(page).text
    assert "values must never be null" in text
    assert "duplicate keys" in text
    for html in (page, *suites, verdict.docs):
        source = html.read_text()
        assert "<script>alert" not in source
        assert "<script>gone" not in source
        assert "<script>null" not in source
        assert "</script><script>" not in source
        assert "<script>cut" not in source
        assert "<script>set" not in source
        assert "<script>re" not in source
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.read_text()


HOSTILE_TABLES = [
    "../../../escaped",
    "erp.a/b",
    "..",
    "erp..orders.",
    "</script><script>.\N{GREEK SMALL LETTER ALPHA}'\"",
    "erp.a%2Fb~",
    "x" * 300,
]


def test_hostile_table_names_stay_in_the_folder(frame: DataFrame, quiet_home: Path) -> None:
    """A table's name makes no path outside the folder, and the index links to its page."""
    home = quiet_home / "a" / "b" / "home"
    invariants = {"null keys": Invariant(value=0)}
    subjects = [candidate(frame, table=table, invariants=invariants) for table in HOSTILE_TABLES]
    verdict, *_ = judge(home, *subjects, cut="../../x")
    assert len(pages(verdict)) == len(subjects)
    outside = [path for path in quiet_home.rglob("*") if path.is_file() and not path.is_relative_to(home / "quality")]
    assert outside == []
    linked = links(verdict.docs)
    assert {path.relative_to(verdict.docs.parent).parts[0] for path in linked} == {"validations", "expectations"}
    assert [path for path in linked if not path.is_file()] == []


def test_long_names_of_one_beginning_stay_apart() -> None:
    """Names too long for a file are told apart by a hash of the whole."""
    names = {data_docs._file_name("x" * 300 + end) for end in "ab"}
    assert len(names) == 2
    assert max(map(len, names)) <= 120


def test_a_run_writes_its_own_pages_only(frame: DataFrame, quiet_home: Path) -> None:
    """A later run leaves the context and the older pages as they are, and the index lists both runs."""
    table = candidate(frame, invariants={"null keys": Invariant(value=0)})
    (first,) = judge(quiet_home, table, cut="erp-1")
    kept = [*pages(first), quiet_home / "quality" / "gx" / "great_expectations.yml"]
    before = [path.stat().st_mtime_ns for path in kept]
    (second,) = judge(quiet_home, table, cut="profiling-2")
    assert len(kept) == 2
    assert [path.stat().st_mtime_ns for path in kept] == before
    assert len(pages(second)) == 2
    index = Text(second.docs).text
    assert "erp-1" in index
    assert "profiling-2" in index


def test_nothing_to_judge_writes_nothing(tmp_path: Path, spark: SparkSession) -> None:
    """A run without tables has no verdicts and writes no page."""
    assert judge(tmp_path) == ()
    assert list(tmp_path.rglob("*.html")) == []


def test_the_folder_may_be_first_used_by_several_at_once(tmp_path: Path, spark: SparkSession) -> None:
    """Whoever comes first makes the context; the others find it whole."""
    opened: list[object] = []
    threads = [
        threading.Thread(target=lambda: opened.append(data_docs.open_context(tmp_path / "quality"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 4
    assert sorted(path.name for path in (tmp_path / "quality").iterdir()) == [".lock", "gx"]


@pytest.mark.parametrize(
    ("check", "kind", "words"),
    [
        (
            {"type": "expect_column_values_to_be_betwen", "column": "id"},
            UnknownNameError,
            ["expect_column_values_to_be_between"],
        ),
        ({"column": "id"}, UnknownNameError, ["unknown expectation ''"]),
        (
            between("id", min_valeu=1),
            UnknownNameError,
            ["min_valeu", "min_value", "expect_column_values_to_be_between"],
        ),
        (not_null("id", result_format="COMPLETE"), UnknownNameError, ["result_format"]),
        (not_null("id", meta={}), UnknownNameError, ["meta"]),
        (not_null("id", severity="critical"), InvalidSourceError, ["severity", "block or warn", "critical"]),
    ],
)
def test_a_wrong_check_is_named(
    frame: DataFrame, tmp_path: Path, check: Mapping[str, Any], kind: type[ConfigurationError], words: Sequence[str]
) -> None:
    """An unknown type, argument or severity is named with table and type; nothing is evaluated."""
    with pytest.raises(kind) as caught:
        judge(tmp_path, candidate(frame, not_null("id"), check))
    assert type(caught.value) is kind
    assert [word for word in ("erp.orders", *words) if word not in str(caught.value)] == []
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_great_expectations_refuses_stops_no_other(frame: DataFrame, quiet_home: Path) -> None:
    """It is a failed check of its table and severity, which says why; the other checks and tables are judged."""
    lengths = {"type": "expect_column_value_lengths_to_equal", "column": "note", "value": "abc"}
    refused = [
        {"type": "expect_column_values_to_not_be_null"},
        between("id", mostly=7),
        {"type": "expect_column_max_to_be_between", "column": "id", "max_value": "much"},
        {"type": "expect_column_quantile_values_to_be_between", "column": "id", "quantile_ranges": 5},
        {"type": "expect_table_row_count_to_equal", "value": 10**400},
        {"type": "expect_multicolumn_sum_to_equal", "column_list": ["id", "total"], "sum_total": 10**400},
        {"type": "expect_table_row_count_to_equal", "value": {"$PARAMETER": "x"}},
        {
            "type": "expect_column_kl_divergence_to_be_less_than",
            "column": "note",
            "partition_object": {"x": 1},
            "threshold": 0.1,
        },
    ]
    mixed, warned, all_refused, other = judge(
        quiet_home,
        candidate(frame, not_null("id"), lengths, between("total", max_value=8), invariants={"x": Invariant(value=0)}),
        candidate(frame, {**lengths, "severity": "warn"}, not_null("id"), table="erp.warned"),
        candidate(frame, *refused, table="erp.refused"),
        candidate(frame, between("total", min_value=0, max_value=float("inf")), table="erp.other"),
    )
    why = "not judged, correct its argument 'value': value is not a valid float"
    assert outline(mixed) == [
        ("expect_column_values_to_not_be_null", True, "0 of 100 unexpected"),
        ("expect_column_value_lengths_to_equal", False, why),
        ("expect_column_values_to_be_between", False, "10 of 100 unexpected"),
        ("x", True, "0"),
    ]
    assert mixed.problems()[0].startswith(
        f"erp.orders: expect_column_value_lengths_to_equal (note) failed: {why}; expected value abc. See "
    )
    assert (mixed.success, warned.success, all_refused.success, other.success) == (False, True, False, True)
    assert [warning.partition(" warns: ")[2] for warning in warned.warnings()] == [f"{why}; expected value abc"]
    assert [result.observed.partition(": ")[0] for result in all_refused.results] == [
        "not judged, correct its argument 'column'",
        "not judged, correct its argument 'mostly'",
        "not judged, correct its argument 'max_value'",
        "not judged, correct its argument 'quantile_ranges'",
        "100",
        "not judged, correct its arguments",
        "No value found for $PARAMETER x",
        "Invalid partition_object provided",
    ]
    assert len(pages(other)) == 4
    (page,) = [page for page in pages(other) if "/erp/orders/" in str(page)]
    assert "expect_column_value_lengths_to_equal has arguments that can be judged" in Text(page).text
    assert why in Text(page).text


def test_great_expectations_does_drop_unknown_types(spark: SparkSession, tmp_path: Path) -> None:
    """Why each check is built from its class: a suite of names would lose one in silence."""
    data_docs.open_context(tmp_path)
    suite = great_expectations.ExpectationSuite(
        name="s",
        expectations=[
            {"type": "expect_column_to_exist", "kwargs": {"column": "id"}},
            {"type": "expect_nonsense", "kwargs": {}},
        ],
    )
    assert len(suite.expectations) == 1


def test_a_lost_engine_is_no_failed_check(spark: SparkSession, tmp_path: Path) -> None:
    """When the candidate can no longer be read, that is an error to be tried again, not a verdict."""
    path = tmp_path / "rows"
    orders(spark).select("id").write.parquet(str(path))
    frame = spark.read.parquet(str(path))
    for file in path.iterdir():
        file.unlink()
    with pytest.raises(RetriableLakeError, match=r"erp\.orders: Spark cannot read the candidate"):
        judge(tmp_path / "home", candidate(frame, not_null("id")))


def test_many_checks_are_bundled_and_nothing_is_cached(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    """Twelve checks of rows cost as many Spark jobs as one does, and the candidate is not persisted."""
    spent = []
    for number in (1, 12):
        spark.sparkContext.setJobGroup(f"bundle-{number}", "", interruptOnCancel=False)
        checks = [between("total", max_value=top) for top in range(10, 10 + number)]
        judge(tmp_path, candidate(frame, *checks))
        spent.append(len(spark.sparkContext.statusTracker().getJobIdsForGroup(f"bundle-{number}")))
    assert spent[0] > 0
    assert spent[0] == spent[1]
    assert frame.is_cached is False
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


SCENARIO = [
    between("total", max_value=8),
    not_null("gone"),
    not_null("a.b", severity="warn"),
    {"type": "expect_column_values_to_be_in_set", "column": "note", "value_set": [1]},
    {"type": "expect_column_values_to_be_in_set", "column": HOSTILE, "value_set": ["x"]},
    {"type": "expect_column_values_to_be_unique", "column": "id"},
    {"type": "expect_table_row_count_to_be_between", "min_value": 1},
    {"type": "expect_column_mean_to_be_between", "column": "total", "min_value": 1, "max_value": 5},
]


def scenario_results(spark: SparkSession, home: Path) -> list[tuple[str, bool, str]]:
    """The scenario's results."""
    (verdict,) = judge(home, candidate(orders(spark), *SCENARIO, invariants={"null keys": Invariant(value=0)}))
    assert len(pages(verdict)) == 1
    return outline(verdict)


@pytest.mark.prove
@pytest.mark.slow
def test_spark_connect_gives_the_same_verdict(spark: SparkSession, jvm: dict[str, str], tmp_path: Path) -> None:
    """A frame of Spark Connect is judged as one of a classic session, in the same JVM.

    ``make test`` has a check that passes and one that fails over Spark Connect, in ``services/test_service.py``.
    """
    script = (
        "import json, sys, pathlib, test_expectations as t\n"
        "session = t.SparkSession.builder.remote(sys.argv[1]).getOrCreate()\n"
        "session.conf.set('spark.sql.ansi.enabled', 'true')\n"
        "print(type(session).__module__)\n"
        "print(json.dumps(t.scenario_results(session, pathlib.Path(sys.argv[2]))))\n"
    )
    with ConnectInJvm(spark, jvm) as server:
        done = subprocess.run(
            [sys.executable, "-c", script, server.url, str(tmp_path / "connect")],
            capture_output=True,
            text=True,
            check=False,
            env=_environment(),
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    module, results = done.stdout.splitlines()
    assert module == "pyspark.sql.connect.session"
    assert [tuple(result) for result in json.loads(results)] == scenario_results(spark, tmp_path / "classic")


def _environment() -> dict[str, str]:
    """Return the environment without what a session of this process left there."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    here = Path(__file__).parent
    path = [here, here.parent, here.parents[1] / "include"]
    return {**inherited, "PYTHONPATH": os.pathsep.join(map(str, path))}


def test_results_are_values() -> None:
    """A result cannot be changed after the verdict."""
    result = CheckResult(name="n", columns=(), severity=Severity.WARN, success=True, observed="", expected="")
    with pytest.raises(AttributeError):
        result.success = False  # type: ignore[misc]


def test_every_expectation_that_a_source_file_may_name_can_be_judged(frame: DataFrame, quiet_home: Path) -> None:
    """By its own arguments, and for the rows of a condition alone: each passes for the rows that it is right for."""
    rows = frame.withColumns({"double": F.col("id").cast("double"), "next": F.col("id") + 1, "json": F.lit('{"a": 1}')})
    rows = rows.withColumns({"day": F.lit("2026-01-02"), "word": F.lit("abc")}).drop("a.b", HOSTILE)
    condition = {"row_condition": "id < 50"}
    checks = [
        {"type": name, **arguments, **(condition if "row_condition" in EXPECTATIONS[name] else {})}
        for name, arguments in PASSING.items()
    ]
    assert PASSING.keys() == EXPECTATIONS.keys()
    broken = [not_null("late"), not_null("late", row_condition="id < 50"), between("id", max_value=49)]
    rows = rows.withColumn("late", F.when(F.col("id") < 50, 1))
    (verdict,) = judge(quiet_home, candidate(rows, *checks, *broken))
    failed = [(result.name, result.observed) for result in verdict.results if not result.success]
    assert failed == [
        ("expect_column_values_to_not_be_null", "50 of 100 unexpected"),
        ("expect_column_values_to_be_between", "50 of 100 unexpected"),
    ]


def test_a_check_that_a_source_file_accepts_can_fail(spark: SparkSession, quiet_home: Path) -> None:
    """Whatever of its arguments is left out: either the source file is refused, or wrong rows fail."""
    rows = spark.range(ROWS).select("id", F.lit("xy").alias("word"), F.lit(7).alias("next"), F.lit(7).alias("late"))
    rows = rows.withColumn("double", F.when(F.col("id") == 0, 1e9).otherwise(0.0))
    bounds = ["min_value", "max_value"]
    checks = [
        {"type": name, **{key: value for key, value in given.items() if key not in {"mostly", *left_out}}}
        for name, given in PASSING.items()
        for left_out in (bounds, *([key] for key in given if key not in bounds))
        if given.keys() & left_out
    ]
    accepted = [check for check in checks if is_valid(check)]
    assert [check["type"] for check in accepted] == [
        "expect_column_values_to_be_null",
        "expect_column_values_to_not_be_outliers",
        "expect_column_values_to_not_be_outliers",
        "expect_multicolumn_sum_to_equal",
    ]
    (verdict,) = judge(quiet_home, candidate(rows, *accepted))
    assert [result.success for result in verdict.results] == [False] * 4


def is_valid(check: Mapping[str, Any]) -> bool:
    """Whether a source file may have a check."""
    try:
        Check.model_validate(check)
    except ValidationError:
        return False
    return True


def test_a_null_among_the_values_of_a_set_lets_nothing_else_pass(frame: DataFrame, quiet_home: Path) -> None:
    """In SQL nothing is outside of a set with a null; a check of such a set judges rows as one without the null."""
    check = Check.model_validate(
        {"type": "expect_column_values_to_be_in_set", "column": "note", "value_set": ["fine", None]}
    )
    rows = frame.withColumn("note", F.when(F.col("id") != 8, F.col("note")))
    (verdict,) = judge(quiet_home, candidate(rows, {"type": check.type, **check.arguments}))
    assert outline(verdict) == [(check.type, False, "1 of 100 unexpected")]


COLUMNS = ["id", "total", "note", "double", "next", "json", "day", "word", "late"]
PASSING: Mapping[str, Mapping[str, Any]] = {
    "expect_column_distinct_values_to_be_in_set": {"column": "word", "value_set": ["abc", "x"]},
    "expect_column_distinct_values_to_contain_set": {"column": "total", "value_set": [0, 9]},
    "expect_column_distinct_values_to_equal_set": {"column": "word", "value_set": ["abc"]},
    "expect_column_kl_divergence_to_be_less_than": {
        "column": "word",
        "partition_object": {"values": ["abc"], "weights": [1.0]},
        "threshold": 0.1,
    },
    "expect_column_max_to_be_between": {"column": "id", "max_value": 49},
    "expect_column_mean_to_be_between": {"column": "double", "min_value": 24, "max_value": 25},
    "expect_column_median_to_be_between": {"column": "double", "min_value": 24, "max_value": 25},
    "expect_column_min_to_be_between": {"column": "id", "min_value": 0},
    "expect_column_most_common_value_to_be_in_set": {"column": "word", "value_set": ["abc"]},
    "expect_column_pair_values_a_to_be_greater_than_b": {"column_A": "next", "column_B": "id"},
    "expect_column_pair_values_to_be_equal": {"column_A": "id", "column_B": "id"},
    "expect_column_pair_values_to_be_in_set": {
        "column_A": "word",
        "column_B": "day",
        "value_pairs_set": [["abc", "2026-01-02"]],
    },
    "expect_column_proportion_of_non_null_values_to_be_between": {"column": "late", "min_value": 1},
    "expect_column_proportion_of_unique_values_to_be_between": {"column": "id", "min_value": 1},
    "expect_column_quantile_values_to_be_between": {
        "column": "double",
        "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[24, 25]]},
    },
    "expect_column_stdev_to_be_between": {"column": "double", "min_value": 14, "max_value": 15},
    "expect_column_sum_to_be_between": {"column": "id", "min_value": 1225, "max_value": 1225},
    "expect_column_to_exist": {"column": "id"},
    "expect_column_type_to_be": {"column": "id", "type_": "LongType"},
    "expect_column_unique_value_count_to_be_between": {"column": "id", "min_value": 50, "max_value": 50},
    "expect_column_value_lengths_to_be_between": {"column": "word", "min_value": 3},
    "expect_column_value_lengths_to_equal": {"column": "word", "value": 3},
    "expect_column_value_z_scores_to_be_less_than": {"column": "double", "threshold": 3, "double_sided": True},
    "expect_column_values_to_be_between": {"column": "id", "max_value": 49},
    "expect_column_values_to_be_in_set": {"column": "word", "value_set": ["abc"]},
    "expect_column_values_to_be_in_type_list": {"column": "id", "type_list": ["LongType"]},
    "expect_column_values_to_be_json_parseable": {"column": "json"},
    "expect_column_values_to_be_null": {"column": "late", "mostly": 0.0},
    "expect_column_values_to_be_of_type": {"column": "id", "type_": "LongType"},
    "expect_column_values_to_be_unique": {"column": "id"},
    "expect_column_values_to_match_json_schema": {"column": "json", "json_schema": {"required": ["a"]}},
    "expect_column_values_to_match_regex": {"column": "word", "regex": "^a"},
    "expect_column_values_to_match_regex_list": {"column": "word", "regex_list": ["^a"]},
    "expect_column_values_to_match_strftime_format": {"column": "day", "strftime_format": "%Y-%m-%d"},
    "expect_column_values_to_not_be_in_set": {"column": "id", "value_set": [50, 99]},
    "expect_column_values_to_not_be_null": {"column": "late"},
    "expect_column_values_to_not_be_outliers": {"column": "double", "method": "iqr", "multiplier": 5},
    "expect_column_values_to_not_match_regex": {"column": "word", "regex": "^x"},
    "expect_column_values_to_not_match_regex_list": {"column": "word", "regex_list": ["^x"]},
    "expect_compound_columns_to_be_unique": {"column_list": ["id", "word"]},
    "expect_multicolumn_sum_to_equal": {"column_list": ["id", "next"], "sum_total": 1, "mostly": 0.0},
    "expect_multicolumn_values_to_be_equal": {"column_list": ["id", "id"]},
    "expect_select_column_values_to_be_unique_within_record": {"column_list": ["id", "next"]},
    "expect_table_column_count_to_be_between": {"min_value": len(COLUMNS)},
    "expect_table_column_count_to_equal": {"value": len(COLUMNS)},
    "expect_table_columns_to_match_ordered_list": {"column_list": COLUMNS},
    "expect_table_columns_to_match_set": {"column_set": COLUMNS},
    "expect_table_row_count_to_be_between": {"min_value": 50, "max_value": 50},
    "expect_table_row_count_to_equal": {"value": 50},
}
"""Every expectation, with arguments by which the first fifty rows pass."""
