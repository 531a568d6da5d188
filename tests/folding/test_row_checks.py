"""Each check that keeps rows back finds the rows that Great Expectations finds."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.errors import IncompatibleSchemaError
from tidemark.folding import row_checks as predicates
from tidemark.quality.verdicts import Subject
from tidemark.sources.expectation_names import ROW_WISE
from tidemark.sources.model import Table
from tidemark.spark.tuning import tuned_for
from tidemark.tables.row_checks import RowCheck, in_effect
from tidemark.values.table_columns import TableColumn

_NAN = float("nan")
_COLUMNS = {
    "text": "string", "other": "string", "number": "int", "big": "decimal(38,10)", "real": "double", "flag": "boolean",
    "day": "date", "at": "timestamp",
}  # fmt: skip
_ROWS: list[tuple[Any, ...]] = [
    ("a", "a", 1, Decimal("0.1"), 0.1, True, date(2026, 1, 1), datetime(2026, 1, 1)),  # noqa: DTZ001  wall clock
    ("", "a", 0, Decimal("0.1000000001"), -0.0, False, date(2025, 12, 31), datetime(2025, 12, 31, 23, 59, 59, 999999)),  # noqa: DTZ001
    ("a\nb", "z", -1, Decimal(9999999999999999999999999999), _NAN, None, date(9999, 12, 31), datetime(1, 1, 1)),  # noqa: DTZ001
    ("Ä😀", None, 2147483647, Decimal("-0.1"), float("inf"), True, date(1, 1, 1), datetime(2026, 1, 1, 0, 0, 1)),  # noqa: DTZ001
    (None, "b", None, None, None, None, None, None),
    (None, None, 2, Decimal(2), 2.0, False, date(2026, 1, 2), None),
    ("12", "9", 12, Decimal(12), 12.5, True, date(2026, 1, 3), datetime(2026, 1, 3)),  # noqa: DTZ001
]
_BETWEEN, _IN, _NOT_IN = (
    f"expect_column_values_to_{rest}" for rest in ("be_between", "be_in_set", "not_be_in_set")
)  # fmt: skip
_GREATER = "expect_column_pair_values_a_to_be_greater_than_b"
_A_B = {"column_A": "text", "column_B": "other"}
_CHECKS: list[dict[str, Any]] = [
    *({"type": f"expect_column_values_to_{rest}", "column": column}
      for rest in ("be_null", "not_be_null") for column in _COLUMNS),
    *({"type": _BETWEEN, "column": column, "min_value": 0, "max_value": 2, **strict}
      for column in ("number", "big", "real")
      for strict in ({}, {"strict_min": True}, {"strict_max": True}, {"strict_min": True, "strict_max": True})),
    *({"type": _BETWEEN, "column": column, bound: 0.1}
      for column in ("number", "big", "real") for bound in ("min_value", "max_value")),
    {"type": _BETWEEN, "column": "day", "min_value": "2026-01-01"},
    {"type": _BETWEEN, "column": "day", "min_value": date(2026, 1, 1), "strict_min": True},
    {"type": _BETWEEN, "column": "at", "max_value": "2026-01-01T00:00:00"},
    {"type": _BETWEEN, "column": "at", "min_value": "2025-12-31 23:59:59.999999", "strict_min": True},
    *({"type": kind, "column": "text", "value_set": ["a", "", "12"]} for kind in (_IN, _NOT_IN)),
    *({"type": kind, "column": "big", "value_set": [0.1, 12]} for kind in (_IN, _NOT_IN)),
    *({"type": kind, "column": "real", "value_set": [0.1, 0, 2]} for kind in (_IN, _NOT_IN)),
    *({"type": kind, "column": "flag", "value_set": [True]} for kind in (_IN, _NOT_IN)),
    *({"type": f"expect_column_values_to_{rest}", "column": "text", "regex": regex}
      for rest in ("match_regex", "not_match_regex") for regex in ("^a$", "a", "^$", "[0-9]+", "^.$", "Ä")),
    *({"type": "expect_column_value_lengths_to_be_between", "column": "text", **bounds}
      for bounds in ({"min_value": 1}, {"max_value": 1}, {"min_value": 1, "max_value": 2, "strict_max": True})),
    *({"type": "expect_column_value_lengths_to_equal", "column": "text", "value": length} for length in (0, 1, 2, 3)),
    {"type": "expect_column_pair_values_to_be_equal", **_A_B},
    {"type": "expect_column_pair_values_to_be_equal", "column_A": "number", "column_B": "real"},
    {"type": _GREATER, **_A_B},
    {"type": _GREATER, **_A_B, "or_equal": True},
    {"type": _GREATER, "column_A": "big", "column_B": "real", "or_equal": True},
]  # fmt: skip


def _rules(checks: list[dict[str, Any]]) -> tuple[RowCheck, ...]:
    table = Table.model_validate({"checks": [{**check, "on_fail": "quarantine"} for check in checks]})
    columns = [TableColumn(name, kind.replace("(38,10)", "(38, 10)")) for name, kind in _COLUMNS.items()]
    return in_effect("shop.t", table, columns)


@pytest.mark.spark
def test_great_expectations_finds_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    """For each check: a null passes, NaN is above all numbers, and lengths count characters.

    Great Expectations counts rows. The n-th row is there 2**n times, so a count shows which rows were found.
    """
    from tidemark.quality.expectations import evaluate_all

    schema = ", ".join(f"{name} {kind}" for name, kind in {**_COLUMNS, "at": "timestamp_ntz"}.items())
    rows = spark.createDataFrame(_ROWS, schema)
    rules = _rules(_CHECKS)
    assert len(rules) == len(_CHECKS)
    assert {rule.type for rule in rules} == ROW_WISE
    judged = rows.select(*(predicates.fails(rule, F.col).alias(f"f{n}") for n, rule in enumerate(rules))).collect()
    found = [[row[f"f{n}"] for n in range(len(rules))] for row in judged]
    assert None not in {value for row in found for value in row}
    subject = Subject(
        table="kept.rows",
        frame=spark.createDataFrame([row for n, row in enumerate(_ROWS) for _ in range(2**n)], schema),
        snapshot=1,
        checks=[{**check, "severity": "block"} for check in _CHECKS],
        invariants={},
    )
    with tuned_for(spark, [2 ** len(_ROWS)]):
        (verdict,) = evaluate_all([subject], cut="kept-1", home=tmp_path)
    ours = [sum(2**n for n, row in enumerate(found) if row[rule]) for rule in range(len(rules))]
    theirs = [int(result.observed.split(" of ")[0]) for result in verdict.results]
    assert [
        comparison for comparison in zip(_CHECKS, ours, theirs, strict=True) if comparison[1] != comparison[2]
    ] == []
    assert [result.success for result in verdict.results] == [not count for count in theirs]
    assert any(theirs)


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ({"type": _BETWEEN, "column": "text", "min_value": 0}, "type string is not compared with"),
        ({"type": _BETWEEN, "column": "number", "min_value": "0"}, "type int is not compared with"),
        ({"type": _BETWEEN, "column": "flag", "min_value": 0}, "type boolean is not compared with"),
        ({"type": _IN, "column": "number", "value_set": [1, True]}, "type int is not compared with"),
        ({"type": "expect_column_values_to_match_regex", "column": "number", "regex": "1"}, "type int is not"),
        ({"type": "expect_column_value_lengths_to_equal", "column": "number", "value": 1}, "type int is not"),
        ({"type": _GREATER, "column_A": "text", "column_B": "day"}, "string is not compared with date"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_column_is_refused(check: dict[str, Any], problem: str) -> None:
    """Spark would end the run at the first value that it cannot convert."""
    with pytest.raises(IncompatibleSchemaError, match=problem):
        _rules([check])


@pytest.mark.parametrize(
    "check",
    [
        {"type": _BETWEEN, "column": "text", "min_value": "a"},
        {"type": _BETWEEN, "column": "number"},
        {"type": _BETWEEN, "column": "day", "min_value": "soon"},
        {"type": _IN, "column": "text", "value_set": [None]},
        {"type": _IN, "column": "text", "value_set": []},
    ],
)
def test_what_fits_no_column_is_refused_with_the_source_file(check: dict[str, Any]) -> None:
    """No value could be compared with it, whatever the column."""
    with pytest.raises(ValidationError, match=r"min_value|value_set"):
        _rules([check])


def test_a_check_of_a_column_that_is_not_there_is_not_in_effect() -> None:
    """Great Expectations fails it; here it keeps nothing back."""
    assert _rules([{"type": _BETWEEN, "column": "gone", "min_value": 0}]) == ()
