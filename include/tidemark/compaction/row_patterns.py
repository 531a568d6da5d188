"""Whether the engine knows the regular expressions of checks that keep rows back, before it folds a table with them."""

from __future__ import annotations

from functools import lru_cache

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidemark.compaction.run import Run
from tidemark.errors import IncompatibleSchemaError
from tidemark.tables.plan import Plan

_UNKNOWN = "INVALID_PARAMETER_VALUE.PATTERN"


def refuse_unknown(run: Run, plan: Plan) -> None:
    """Refuse to judge rows by what is no regular expression of Java, in which Spark has them.

    Raises:
        IncompatibleSchemaError: a check has such a pattern.
    """
    for check in plan.row_checks:
        pattern = check.arguments.get("regex")
        if pattern is not None and not _is_known(run.session, pattern):
            raise IncompatibleSchemaError(
                f"{plan.found.object}: `on_fail` of {check}: {pattern!r} is no regular expression of Java. Correct the "
                "check"
            )


@lru_cache(maxsize=1000)
def _is_known(session: SparkSession, pattern: str) -> bool:
    """Return whether the engine knows a pattern. Python's own expressions are others, so they are not asked."""
    try:
        session.sql("SELECT '' RLIKE ?", args=[pattern]).collect()
    except PySparkException as error:
        if error.getCondition() != _UNKNOWN:
            raise
        return False
    return True
