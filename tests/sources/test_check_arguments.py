"""Bounds of checks: a source file may have those that Great Expectations takes, and no others."""

from __future__ import annotations

from datetime import UTC, date, datetime

import great_expectations.expectations.core  # noqa: F401  registers them
import pytest
from great_expectations.compatibility.pydantic import ValidationError as LibraryError
from great_expectations.expectations.registry import get_expectation_impl
from pydantic import ValidationError

from tidemark.sources.check import Check

VALUES = "expect_column_values_to_be_between"
LENGTHS = "expect_column_value_lengths_to_be_between"
COLUMNS = "expect_table_column_count_to_be_between"
SPREAD = "expect_column_stdev_to_be_between"

TAKEN = {
    VALUES: ["2020-1-1", "2020-1-1 8:00", "2020-01-01T00:00:00.1234567", "2020-01-01 00:00:00+0800", "1e6", "1_000"],
    LENGTHS: ["3", " 3 ", "1_000", 9.0],
    COLUMNS: ["3", "9.0", "1e1"],
    SPREAD: ["0.5", "1e-3"],
}

REFUSED = {
    VALUES: [
        "2020-W01",
        "2020-W01-1",
        "20200101T000000",
        "2020-01-01T00",
        "2020-01-01T00:00:00,5",
        "2020-01-01x00:00:00",
        "2020-01-01 00:00:00 +08:00",
        "2020-001",
        "none",
        "",
    ],
    LENGTHS: ["1e6", "9.0", "x"],
    COLUMNS: ["x"],
    SPREAD: ["2020-01-01", "x"],
}


def problems(name: str, **arguments: object) -> list[str]:
    """Return what is wrong with a check of these arguments."""
    column = {} if name.startswith("expect_table") else {"column": "c"}
    try:
        Check.model_validate({"type": name, **column, **arguments})
    except ValidationError as error:
        return [each["msg"] for each in error.errors()]
    return []


def takes(name: str, value: object) -> bool:
    """Return whether the installed library takes a bound."""
    column = {} if name.startswith("expect_table") else {"column": "c"}
    try:
        get_expectation_impl(name)(min_value=value, **column)
    except LibraryError:
        return False
    return True


def test_a_bound_is_one_that_great_expectations_takes() -> None:
    """What it takes is valid, and what it would refuse when the cut is judged is refused with the file."""
    assert {name: [problems(name, min_value=each) for each in values] for name, values in TAKEN.items()} == {
        name: [[]] * len(values) for name, values in TAKEN.items()
    }
    assert [(name, each) for name in REFUSED for each in REFUSED[name] if not problems(name, min_value=each)] == []
    assert [(name, each) for name, values in TAKEN.items() for each in values if not takes(name, each)] == []
    assert [(name, each) for name, values in REFUSED.items() for each in values if takes(name, each)] == []


@pytest.mark.parametrize("bound", [date(2020, 1, 1), datetime(2020, 1, 1, 8, tzinfo=UTC)])
def test_a_date_or_time_of_yaml_is_a_bound(bound: date) -> None:
    """A reader of YAML that knows dates gives no text."""
    assert problems(VALUES, min_value=bound) == []


@pytest.mark.parametrize("endless", [float("inf"), "inf", float("-inf")])
def test_an_infinite_bound_needs_another_one(endless: object) -> None:
    """It says that the other side is open; by itself it would let every value pass."""
    assert problems(VALUES, min_value=0, max_value=endless) == []
    assert problems(VALUES, max_value=endless) == [
        f"'{endless}' is no bound by itself: give another one that values lie beyond."
    ]
    assert len(problems(VALUES, min_value=float("-inf"), max_value=endless)) == 2
    assert problems(LENGTHS, min_value=0, max_value=endless) == [
        f"'{endless}' is no whole number, and a count is judged."
    ]


def test_nan_is_no_bound() -> None:
    """No value lies beyond it."""
    assert problems(VALUES, max_value=float("nan")) == ["'nan' is no number, date or time."]
