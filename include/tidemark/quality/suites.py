"""Builds what Great Expectations judges of a table: its declared checks and its invariants, each as an expectation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from great_expectations.compatibility.pydantic import ValidationError
from great_expectations.expectations.core.expect_column_max_to_be_between import ExpectColumnMaxToBeBetween
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.registry import get_expectation_impl

from tidemark.errors import InvalidSourceError, UnknownNameError
from tidemark.quality import disclosure
from tidemark.quality.disclosure import short
from tidemark.quality.verdicts import Invariant, Subject
from tidemark.sources.choices import Severity
from tidemark.sources.expectation_names import EXPECTATIONS
from tidemark.text import suggestion

PLACE: Final = "place"
"""Key in an expectation's ``meta``: its place in the table's suite, because results come back in another order."""

_SEVERITIES: Final = {Severity.BLOCK: FailureSeverity.CRITICAL, Severity.WARN: FailureSeverity.WARNING}

_COLUMN_ARGUMENTS: Final = ("column", "column_A", "column_B", "column_list", "column_set")


class SuiteCheck(NamedTuple):
    """One declared check or invariant with its expectation."""

    name: str
    columns: tuple[str, ...]
    severity: Severity
    expected: str
    expectation: Expectation
    shows_observed: bool
    approvable: bool = False
    refused: str | None = None
    """Why Great Expectations refuses its arguments; the expectation only stands for it on the page then."""


def suite_of(subject: Subject) -> tuple[list[SuiteCheck], list[SuiteCheck]]:
    """Return the declared checks and the invariants of a table.

    Raises:
        ConfigurationError: a check has an unknown expectation, argument or severity.
    """
    start, invariants = len(subject.checks), subject.invariants.items()
    return (
        [_build(subject.table, place, check) for place, check in enumerate(subject.checks)],
        [_build_invariant(place, *invariant) for place, invariant in enumerate(invariants, start)],
    )


def _build(table: str, place: int, check: Mapping[str, Any]) -> SuiteCheck:
    """Return a declared check, built from the class of its expectation.

    If a suite built it, Great Expectations would only log an unknown type, and drop the check.
    """
    name = str(check.get("type", ""))
    arguments = {key: value for key, value in check.items() if key not in {"type", "severity"}}
    if name not in EXPECTATIONS:
        raise UnknownNameError(f"{table}: unknown expectation '{name}'.{suggestion(name, EXPECTATIONS)}")
    for key in sorted(arguments.keys() - EXPECTATIONS[name]):
        raise UnknownNameError(f"{table}: {name} has no argument '{key}'.{suggestion(key, EXPECTATIONS[name])}")
    severity = check.get("severity", Severity.BLOCK)
    if severity not in list(Severity):
        raise InvalidSourceError(f"{table}: {name}: severity must be block or warn, not '{severity}'")
    columns = tuple(column for key in _COLUMN_ARGUMENTS for column in _listed(arguments.get(key)))
    text = short(", ".join(f"{key} {value}" for key, value in arguments.items() if key != "column"))
    shown = disclosure.may_show_observed(name)
    common: dict[str, Any] = {"meta": {PLACE: place}, "severity": _SEVERITIES[severity]}
    try:
        expectation = get_expectation_impl(name)(**common, **arguments)
    except (ValidationError, OverflowError) as error:  # of one table: it is no reason to stop the others
        why = short(f"not judged, correct its {_bad_argument(error)}")
        expectation = _stand_in(name, **common)
        return SuiteCheck(name, columns, Severity(severity), text, expectation, shows_observed=True, refused=why)
    return SuiteCheck(name, columns, Severity(severity), text, expectation, shows_observed=shown)


def stood_in(check: SuiteCheck) -> SuiteCheck:
    """Return a check with an expectation that only stands for its own on the page."""
    own = check.expectation
    return check._replace(expectation=_stand_in(check.name, meta=own.meta, severity=own.severity))


def _stand_in(name: str, **common: Any) -> Expectation:  # noqa: ANN401 - the library's own
    said = f"{name} has arguments that can be judged."
    return ExpectColumnMaxToBeBetween(column=name, max_value=0, description=said, **common)


def _build_invariant(place: int, name: str, invariant: Invariant) -> SuiteCheck:
    """Return the check of an invariant: it expects the maximum of a one-row column, which is the number itself.

    So the page shows the number.
    """
    low, high, severity = invariant.minimum, invariant.maximum, _SEVERITIES[invariant.severity]
    expected = str(low) if low == high else f"{low} to {high}"
    said = f"There are no {name}." if low == high == 0 else f"Number of {name}: {expected}."
    expectation = ExpectColumnMaxToBeBetween(
        column=name, min_value=low, max_value=high, severity=severity, meta={PLACE: place}, description=said
    )
    return SuiteCheck(
        name,
        invariant.columns,
        invariant.severity,
        expected,
        expectation,
        shows_observed=True,
        approvable=invariant.approvable,
    )


def _bad_argument(error: ValidationError | OverflowError) -> str:
    if isinstance(error, OverflowError):
        return f"arguments: {error}"
    first = error.errors()[0]
    return f"argument '{'.'.join(str(part) for part in first['loc'])}': {first['msg']}"


def _listed(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [str(part) for part in values if part is not None]
