"""Judges tables with Great Expectations, which only this module, ``suites``, ``data_docs`` and ``docs_pages`` import.

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
from typing import Any, NamedTuple

import great_expectations as gx
import pandas as pd  # type: ignore[import-untyped]
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.data_context.data_context.file_data_context import FileDataContext
from great_expectations.validator.v1_validator import Validator
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame

from tidemark.errors import ExpectationError, RetriableLakeError
from tidemark.quality import disclosure
from tidemark.quality.data_docs import CANDIDATE, METRICS, Recorder, index_page, open_context
from tidemark.quality.disclosure import short
from tidemark.quality.suites import PLACE, SuiteCheck, stood_in, suite_of
from tidemark.quality.verdicts import CheckResult, Subject, Verdict
from tidemark.sources.choices import Severity


class _Judged(NamedTuple):
    check: SuiteCheck
    result: ExpectationValidationResult


def evaluate_all(subjects: Sequence[Subject], *, cut: str, home: Path) -> tuple[Verdict, ...]:
    """Judge the tables of one run, and update the Data Docs in ``home/quality`` once.

    A check that cannot be evaluated (missing column, unfit type) is a failed check, and so is one whose arguments Great
    Expectations refuses: the other checks and tables are judged. Runs of other sources may use the same ``home`` at the
    same time.

    Args:
        subjects: the tables of the run, each once.
        cut: identifier of the run; its name in the Data Docs.
        home: ``TIDEMARK_HOME``.

    Returns:
        One verdict for each table, in the order of ``subjects``.

    Raises:
        ConfigurationError: a check has an unknown expectation, argument or severity; nothing is evaluated.
        ExpectationError: Great Expectations returned fewer results than there are checks.
        RetriableLakeError: Spark can no longer read a table.
    """
    suites = [suite_of(subject) for subject in subjects]
    folder = home / "quality"
    context = open_context(folder)
    recorder = Recorder(context, folder=folder, cut=cut)
    verdicts = []
    for subject, (declared, invariants) in zip(subjects, suites, strict=True):
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


def _judge(
    context: FileDataContext, subject: Subject, declared: Sequence[SuiteCheck], invariants: Sequence[SuiteCheck]
) -> list[_Judged]:
    metrics = pd.DataFrame({name: [invariant.value] for name, invariant in subject.invariants.items()})
    judged: list[_Judged] = []
    if subject.frame is not None:
        judged = _evaluate(context, subject.frame, [check for check in declared if not check.refused])
        if any(_raised(each.result) for each in judged):
            _read_one(subject.table, subject.frame)
        judged = sorted([*judged, *_not_judged(declared)], key=lambda each: _place(each.result))
    judged += _validate(context, METRICS, metrics, invariants)
    if len(judged) != len(subject.checks) + len(subject.invariants):
        raise ExpectationError(f"{subject.table}: {len(judged)} results, fewer than checks declared; not published")
    return [_Judged(check, _without_values(check, result)) for check, result in judged]


def _not_judged(checks: Sequence[SuiteCheck]) -> Iterator[_Judged]:
    """Yield a failed result for each check that Great Expectations refuses; what it observed is why."""
    for check in checks:
        if check.refused:
            yield _Judged(check, _failed(check, result={"observed_value": check.refused}))


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


def _evaluate(context: FileDataContext, frame: DataFrame, checks: Sequence[SuiteCheck]) -> list[_Judged]:
    """Evaluate all declared checks in one bundle, then evaluate again, one by one, those that raised an error.

    If Spark refuses one check, all checks of its bundle raise the error.
    """
    try:
        judged = _validate(context, CANDIDATE, frame, checks)
    except Exception:  # noqa: BLE001  which check raised it is found one by one
        return [each for check in checks for each in _alone(context, frame, check)]
    return [
        again for each in judged for again in (_alone(context, frame, each.check) if _raised(each.result) else [each])
    ]


def _alone(context: FileDataContext, frame: DataFrame, check: SuiteCheck) -> list[_Judged]:
    """Return the result of one check, also if Great Expectations raises an error in place of a result."""
    try:
        return _validate(context, CANDIDATE, frame, [check])
    except Exception as error:  # noqa: BLE001  some arguments are read only now, and their errors have no kind in common
        info = {"raised_exception": True, "exception_message": str(error), "exception_traceback": ""}
        shown = stood_in(check)  # the page could not show such arguments
        return [_Judged(shown, _failed(shown, exception_info=info))]


def _failed(check: SuiteCheck, **fields: Any) -> ExpectationValidationResult:  # noqa: ANN401 - the library's own
    return ExpectationValidationResult(success=False, expectation_config=check.expectation.configuration, **fields)


def _validate(
    context: FileDataContext, source: str, frame: DataFrame | pd.DataFrame, checks: Sequence[SuiteCheck]
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
    places = [(check, (check.expectation.meta or {})[PLACE]) for check in checks]
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
    return (result.expectation_config.meta or {})[PLACE] if result.expectation_config else None


def _without_values(check: SuiteCheck, result: ExpectationValidationResult) -> ExpectationValidationResult:
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


def _error(check: SuiteCheck, result: ExpectationValidationResult) -> str:
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
            approvable=check.approvable,
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
