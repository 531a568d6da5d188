"""Judges tables with Great Expectations, which only this module, ``data_docs`` and ``docs_pages`` import.

The import takes about four seconds, so the stages import this module only when there is something to judge. Great
Expectations accepts frames of a classic session and of Spark Connect alike. The checks of one table are bundled into
few Spark jobs. The built-in invariants are numbers already: they are judged in pandas, without Spark.

No value of a row gets into a result, a page or a log. No samples are requested, and of the observations only counts,
names and figures about many rows are kept (``disclosure``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import great_expectations as gx
import pandas as pd  # type: ignore[import-untyped]
from great_expectations.compatibility.pydantic import ValidationError
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.data_context.data_context.file_data_context import FileDataContext
from great_expectations.expectations.core.expect_column_max_to_be_between import ExpectColumnMaxToBeBetween
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.registry import get_expectation_impl
from great_expectations.validator.v1_validator import Validator
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame

from tidemark.errors import ExpectationError, InvalidSourceError, RetriableLakeError, UnknownNameError
from tidemark.quality import disclosure
from tidemark.quality.data_docs import CANDIDATE, METRICS, Recorder, index_page, open_context
from tidemark.quality.disclosure import short
from tidemark.quality.verdicts import CheckResult, Invariant, Subject, Verdict
from tidemark.sources.choices import Severity
from tidemark.sources.expectation_names import EXPECTATIONS
from tidemark.text import suggestion

_SEVERITIES: Final = {Severity.BLOCK: FailureSeverity.CRITICAL, Severity.WARN: FailureSeverity.WARNING}

_COLUMN_ARGUMENTS: Final = ("column", "column_A", "column_B", "column_list", "column_set")

_PLACE: Final = "place"
"""Key in an expectation's ``meta``: its place in the table's suite, because results come back in another order."""


class _Check(NamedTuple):
    """One declared check or invariant with its expectation."""

    name: str
    columns: tuple[str, ...]
    severity: Severity
    expected: str
    expectation: Expectation
    shows_observed: bool


class _Judged(NamedTuple):
    check: _Check
    result: ExpectationValidationResult


def evaluate_all(candidates: Sequence[Subject], *, cut: str, home: Path) -> tuple[Verdict, ...]:
    """Judge the tables of one run, and update the Data Docs in ``home/quality`` once.

    A check that cannot be evaluated (missing column, unfit type) is a failed check. Runs of other sources may use the
    same ``home`` at the same time.

    Args:
        candidates: the tables of the run, each once.
        cut: identifier of the run; its name in the Data Docs.
        home: ``TIDEMARK_HOME``.

    Returns:
        One verdict for each table, in the order of ``candidates``.

    Raises:
        ConfigurationError: a check has an unknown expectation or argument, or a wrong value; nothing is evaluated.
        ExpectationError: Great Expectations returned fewer results than there are checks.
        RetriableLakeError: Spark can no longer read a table.
    """
    suites = [_suite(subject) for subject in candidates]
    folder = home / "quality"
    context = open_context(folder)
    recorder = Recorder(context, folder=folder, cut=cut)
    verdicts = []
    for subject, (declared, invariants) in zip(candidates, suites, strict=True):
        judged = _judge(context, subject, declared, invariants)
        verdict = _verdict(subject.table, judged, docs=index_page(folder))
        recorder.record(
            table=subject.table,
            snapshot=subject.snapshot,
            success=verdict.success,
            expectations=[each.check.expectation for each in judged],
            results=[each.result for each in judged],
        )
        verdicts.append(verdict)
    recorder.write_pages()
    return tuple(verdicts)


def _suite(subject: Subject) -> tuple[list[_Check], list[_Check]]:
    """Return the declared checks and the invariants of a table."""
    start, invariants = len(subject.checks), subject.invariants.items()
    return (
        [_build(subject.table, place, check) for place, check in enumerate(subject.checks)],
        [_build_invariant(place, *invariant) for place, invariant in enumerate(invariants, start)],
    )


def _build(table: str, place: int, check: Mapping[str, Any]) -> _Check:
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
    try:
        expectation = get_expectation_impl(name)(meta={_PLACE: place}, severity=_SEVERITIES[severity], **arguments)
    except ValidationError as error:
        raise InvalidSourceError(f"{table}: {name}: {_bad_argument(error)}") from error
    columns = tuple(column for key in _COLUMN_ARGUMENTS for column in _listed(arguments.get(key)))
    expected = ", ".join(f"{key} {value}" for key, value in arguments.items() if key != "column")
    shown = disclosure.may_show_observed(name)
    return _Check(name, columns, Severity(severity), short(expected), expectation, shows_observed=shown)


def _build_invariant(place: int, name: str, invariant: Invariant) -> _Check:
    """Return the check of an invariant: it expects the maximum of a one-row column, which is the number itself.

    So the page shows the number.
    """
    low, high, severity = invariant.minimum, invariant.maximum, _SEVERITIES[invariant.severity]
    expected = str(low) if low == high else f"{low} to {high}"
    said = f"There are no {name}." if low == high == 0 else f"Number of {name}: {expected}."
    expectation = ExpectColumnMaxToBeBetween(
        column=name, min_value=low, max_value=high, severity=severity, meta={_PLACE: place}, description=said
    )
    return _Check(name, invariant.columns, invariant.severity, expected, expectation, shows_observed=True)


def _judge(
    context: FileDataContext, subject: Subject, declared: Sequence[_Check], invariants: Sequence[_Check]
) -> list[_Judged]:
    metrics = pd.DataFrame({name: [invariant.value] for name, invariant in subject.invariants.items()})
    judged: list[_Judged] = []
    if subject.frame is not None:
        judged = _evaluate(context, CANDIDATE, subject.frame, declared)
        if any(_raised(each.result) for each in judged):
            _read_one(subject.table, subject.frame)
    judged += _evaluate(context, METRICS, metrics, invariants)
    if len(judged) != len(subject.checks) + len(subject.invariants):
        raise ExpectationError(f"{subject.table}: {len(judged)} results, fewer than checks declared; not published")
    return [_Judged(check, _without_values(check, result)) for check, result in judged]


def _read_one(table: str, frame: DataFrame) -> None:
    """Read one row, to distinguish checks that cannot be evaluated from a lost candidate or a lost Spark.

    Raises:
        RetriableLakeError: no row can be read. This is no failed check.
    """
    try:
        frame.limit(1).toArrow()  # unlike Python, Arrow knows every year that a row may hold
    except Exception as error:  # the kinds differ between classic Spark and Spark Connect
        text = f"{table}: Spark cannot read the candidate ({type(error).__name__}); run check again"
        raise RetriableLakeError(text) from error


def _evaluate(
    context: FileDataContext, source: str, frame: DataFrame | pd.DataFrame, checks: Sequence[_Check]
) -> list[_Judged]:
    """Evaluate all checks in one bundle, then evaluate again, one by one, those that raised an error.

    If Spark refuses one check, all checks of its bundle raise the error.
    """
    judged = _validate(context, source, frame, checks)
    return [
        again
        for each in judged
        for again in (_validate(context, source, frame, [each.check]) if _raised(each.result) else [each])
    ]


def _validate(
    context: FileDataContext, source: str, frame: DataFrame | pd.DataFrame, checks: Sequence[_Check]
) -> list[_Judged]:
    if not checks:
        return []
    validator = Validator(
        batch_definition=context.data_sources.get(source).get_asset(source).get_batch_definition(source),
        batch_parameters={"dataframe": frame},
        result_format={"result_format": "BASIC", "partial_unexpected_count": 0},
    )
    suite = gx.ExpectationSuite(name=source, expectations=[check.expectation for check in checks])
    with _quiet_errors():
        results = {_place(result): result for result in validator.validate_expectation_suite(suite).results}
    places = [(check, (check.expectation.meta or {})[_PLACE]) for check in checks]
    return [_Judged(check, results[place]) for check, place in places if place in results]


@contextmanager
def _quiet_errors() -> Iterator[None]:
    """Keep PySpark from printing an error's text, which may quote a row; the caller reports the error."""
    # `PySparkLogger` makes the loggers, because PySpark later expects loggers of its own class under these names.
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _place(result: ExpectationValidationResult) -> Any:  # noqa: ANN401 - meta is free-form
    return (result.expectation_config.meta or {})[_PLACE] if result.expectation_config else None


def _without_values(check: _Check, result: ExpectationValidationResult) -> ExpectationValidationResult:
    """Return a result without anything that may be a value of a row."""
    raised = _raised(result)
    return ExpectationValidationResult(
        success=bool(result.success) and not raised,
        expectation_config=result.expectation_config,
        result=disclosure.figures(result.result, with_observed=check.shows_observed),
        exception_info={
            "raised_exception": raised,
            "exception_message": _error(check, result) if raised else "",
            "exception_traceback": "",
        },
    )


def _raised(result: ExpectationValidationResult) -> bool:
    return any(info["raised_exception"] for info in _exceptions(result))


def _exceptions(result: ExpectationValidationResult) -> list[Mapping[str, Any]]:
    info = result.exception_info or {}
    return [info] if "raised_exception" in info else list(info.values())  # one error, or one a metric


def _error(check: _Check, result: ExpectationValidationResult) -> str:
    text = next((str(info["exception_message"]) for info in _exceptions(result) if info["raised_exception"]), "")
    return disclosure.error_line(text, check.columns)


def _verdict(table: str, judged: Sequence[_Judged], *, docs: Path) -> Verdict:
    results = tuple(
        CheckResult(
            name=check.name,
            columns=check.columns,
            severity=check.severity,
            success=bool(result.success),
            observed=_observed(result),
            expected=check.expected,
        )
        for check, result in judged
    )
    success = all(result.success or result.severity is Severity.WARN for result in results)
    return Verdict(table=table, success=success, results=results, docs=docs)


def _observed(result: ExpectationValidationResult) -> str:
    if _raised(result):
        return str((result.exception_info or {})["exception_message"])
    if "observed_value" in result.result:
        return short(str(result.result["observed_value"]))
    if "unexpected_count" in result.result:
        return f"{result.result['unexpected_count']} of {result.result['element_count']} unexpected"
    return "not shown, may be the value of one row"


def _bad_argument(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"argument '{'.'.join(str(part) for part in first['loc'])}': {first['msg']}"


def _listed(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [str(part) for part in values if part is not None]
