"""Judges candidates with Great Expectations, which this module and ``data_docs.py`` alone know.

Importing it costs about four seconds, so only the stage ``check`` does. Great Expectations takes frames of a classic
session and of Spark Connect alike. The checks of one table are bundled into few Spark jobs; the built-in invariants
are numbers already and are judged in pandas, without Spark.

No value of a row gets into a result, a page or a log: samples are not asked for, and of what Great Expectations
observed only counts, names and figures about many rows are kept.
"""

from __future__ import annotations

import re
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
from tidemark.quality.data_docs import CANDIDATE, METRICS, Recorder, index_page, open_context
from tidemark.quality.verdicts import CheckResult, Invariant, Subject, Verdict
from tidemark.sources.expectation_names import EXPECTATIONS
from tidemark.sources.model import Severity
from tidemark.text import suggestion

_SEVERITIES: Final = {Severity.BLOCK: FailureSeverity.CRITICAL, Severity.WARN: FailureSeverity.WARNING}

_COLUMN_ARGUMENTS: Final = ("column", "column_A", "column_B", "column_list", "column_set")

_PLACE: Final = "place"
"""Key of an expectation's ``meta``: its place in the table's suite, as results come back in another order."""

_COUNTS: Final = {"element_count", "unexpected_count", "unexpected_percent", "missing_count", "missing_percent"}

_AGGREGATE: Final = re.compile(
    "expect_table_|expect_column_(to_exist|type_to_be|unique_value_count|proportion_of|mean|stdev|sum)"
    "|expect_column_values_to_be_(of_type|in_type_list)"
)
"""Expectations whose ``observed_value`` is a figure or a name; that of all others may be the value of one row."""

_BEFORE_READING: Final = re.compile(r"\[(UNRESOLVED_COLUMN|DATATYPE_MISMATCH)")
"""Spark errors found before a row is read; the text of others (``CAST_INVALID_INPUT``) may quote a row's value."""

_JAVA_ERROR: Final = re.compile(r"(?:[a-z]\w*\.)+(\w+(?:Exception|Error))\b")

_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")

_LENGTH: Final = 200


class _Check(NamedTuple):
    """One declared check or invariant, built."""

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
    """Judge the candidates of one run and update the Data Docs in ``home/quality`` once.

    A check that cannot be evaluated (missing column, unfit type) is a failed check. Runs of other sources may use the
    same ``home`` at the same time.

    Args:
        candidates: the tables of the run, each once.
        cut: identifier of the run; its name in the Data Docs.
        home: ``TIDEMARK_HOME``.

    Returns:
        One verdict a candidate, in their order.

    Raises:
        ConfigurationError: a check names an unknown expectation or argument, or a wrong value; nothing is evaluated.
        ExpectationError: Great Expectations judged fewer checks than declared.
        RetriableLakeError: Spark can no longer read a candidate.
    """
    suites = [_suite(candidate) for candidate in candidates]
    folder = home / "quality"
    context = open_context(folder)
    recorder = Recorder(context, folder=folder, cut=cut)
    verdicts = []
    for candidate, (declared, invariants) in zip(candidates, suites, strict=True):
        judged = _judge(context, candidate, declared, invariants)
        verdict = _verdict(candidate.table, judged, docs=index_page(folder))
        recorder.record(
            table=candidate.table,
            snapshot=candidate.snapshot,
            success=verdict.success,
            expectations=[each.check.expectation for each in judged],
            results=[each.result for each in judged],
        )
        verdicts.append(verdict)
    recorder.write_pages()
    return tuple(verdicts)


def _suite(candidate: Subject) -> tuple[list[_Check], list[_Check]]:
    start, invariants = len(candidate.checks), candidate.invariants.items()
    return (
        [_build(candidate.table, place, check) for place, check in enumerate(candidate.checks)],
        [_build_invariant(place, *invariant) for place, invariant in enumerate(invariants, start)],
    )


def _build(table: str, place: int, check: Mapping[str, Any]) -> _Check:
    """Build from the class itself: in a suite, Great Expectations logs and drops a type that it does not know."""
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
    return _Check(name, columns, Severity(severity), _short(expected), expectation, bool(_AGGREGATE.match(name)))


def _build_invariant(place: int, name: str, invariant: Invariant) -> _Check:
    """Ask for the maximum of the one-row frame: it is the number itself, and the page shows it."""
    low, high, severity = invariant.minimum, invariant.maximum, _SEVERITIES[invariant.severity]
    expectation = ExpectColumnMaxToBeBetween(
        column=name, min_value=low, max_value=high, severity=severity, meta={_PLACE: place}
    )
    expected = str(low) if low == high else f"{low} to {high}"
    return _Check(name, (), invariant.severity, expected, expectation, shows_observed=True)


def _judge(
    context: FileDataContext, candidate: Subject, declared: Sequence[_Check], invariants: Sequence[_Check]
) -> list[_Judged]:
    metrics = pd.DataFrame({name: [invariant.value] for name, invariant in candidate.invariants.items()})
    judged = _evaluate(context, CANDIDATE, candidate.frame, declared)
    if any(_raised(each.result) for each in judged):
        _read_one(candidate)
    judged += _evaluate(context, METRICS, metrics, invariants)
    if len(judged) != len(candidate.checks) + len(candidate.invariants):
        raise ExpectationError(f"{candidate.table}: {len(judged)} results, fewer than checks declared; not published")
    return [_Judged(check, _without_values(check, result)) for check, result in judged]


def _read_one(candidate: Subject) -> None:
    """Tell a lost candidate or a lost Spark, which is no failed check, from checks that cannot be evaluated."""
    try:
        candidate.frame.limit(1).toArrow()  # unlike Python, Arrow knows every year that a row may hold
    except Exception as error:  # the kinds differ between classic Spark and Spark Connect
        text = f"{candidate.table}: Spark cannot read the candidate ({type(error).__name__}); run check again"
        raise RetriableLakeError(text) from error


def _evaluate(
    context: FileDataContext, source: str, frame: DataFrame | pd.DataFrame, checks: Sequence[_Check]
) -> list[_Judged]:
    """Evaluate all checks in one bundle, then those that failed to evaluate one by one.

    One check that Spark refuses takes its whole bundle with it; alone it cannot.
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
    """Silence PySpark's own print of an error's text: it may quote a row, and the error is told here."""
    # Made by PySpark, as it expects a logger of its class under these names later.
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
    kept = _COUNTS | {"observed_value"} if check.shows_observed else _COUNTS
    figures = {key: value for key, value in result.result.items() if key in kept}
    if "unexpected_percent" not in figures:
        figures.pop("unexpected_count", None)  # the page cannot show the one without the other
    raised = _raised(result)
    return ExpectationValidationResult(
        success=bool(result.success) and not raised,
        expectation_config=result.expectation_config,
        result=figures,
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
    """Return the first line of the error without what it may quote from a row."""
    text = next((str(info["exception_message"]) for info in _exceptions(result) if info["raised_exception"]), "")
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no message")
    condition = re.search(r"\[[A-Z][A-Z0-9_.]+\]", line)
    if condition and not _BEFORE_READING.search(line):
        return condition.group()
    if line.startswith(("An error occurred while calling", "Job aborted")):  # what happened follows, in Java's words
        return _short(", ".join(dict.fromkeys(_JAVA_ERROR.findall(text))))
    return _short(_QUOTED.sub(lambda quoted: quoted[0] if quoted[0][1:-1] in check.columns else "'...'", line))


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
        return _short(str(result.result["observed_value"]))
    if "unexpected_count" in result.result:
        return f"{result.result['unexpected_count']} of {result.result['element_count']} unexpected"
    return "not shown, may be the value of one row"


def _bad_argument(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"argument '{'.'.join(str(part) for part in first['loc'])}': {first['msg']}"


def _listed(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [str(part) for part in values if part is not None]


def _short(text: str) -> str:
    return text if len(text) <= _LENGTH else f"{text[: _LENGTH - 3]}..."
