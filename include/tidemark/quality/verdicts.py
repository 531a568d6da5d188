"""What the stage ``check`` asks and what it is told, apart from the engine that judges (``expectations.py``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from tidemark.sources.model import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """A number about a candidate that must lie in ``[minimum, maximum]``; zero unless said otherwise."""

    value: int
    minimum: int | None = 0
    maximum: int | None = 0
    severity: Severity = Severity.BLOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is to be judged of one table before it is published."""

    table: str
    """Published name, ``source.table``; the stable name of the suite and of the pages."""
    frame: DataFrame
    """Of a classic session or of Spark Connect."""
    snapshot: int
    """Iceberg snapshot that ``frame`` reads."""
    checks: Sequence[Mapping[str, Any]]
    """As the source file has them: ``type``, ``severity`` (``block`` if absent) and the expectation's own arguments."""
    invariants: Mapping[str, Invariant]
    """Name for people, as ``duplicate keys``, to the number found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What became of one check; holds no value of a row."""

    name: str
    """Expectation type, or the name of the invariant."""
    columns: tuple[str, ...]
    severity: Severity
    success: bool
    observed: str
    """Counts and figures, or the first line of the error; at most 200 characters."""
    expected: str
    """The arguments declared; at most 200 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All check results of one table, the declared ones first, each kind in the order given."""

    table: str
    success: bool
    """No blocking check failed."""
    results: tuple[CheckResult, ...]
    docs: Path
    """Index page of the Data Docs."""

    def problems(self) -> list[str]:
        """Say of each blocking check that failed what was found and what was expected."""
        return [
            f"{self.table}: {result.name} ({', '.join(result.columns) or 'table'}) failed: {result.observed}; "
            f"expected {result.expected}. See {self.docs}"
            for result in self.results
            if not result.success and result.severity is Severity.BLOCK
        ]
