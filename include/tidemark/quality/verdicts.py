"""What is judged and what comes of it: the input and the output of ``expectations``, without Great Expectations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pyspark.sql import DataFrame

from tidemark.sources.choices import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """A number about a table that must lie in ``[minimum, maximum]``; without other limits, it must be zero."""

    value: int
    minimum: int | None = 0
    maximum: int | None = 0
    severity: Severity = Severity.BLOCK
    columns: tuple[str, ...] = ()
    """Which columns it is about, in a few words for each."""
    approvable: bool = False
    """Whether only a person can say that it is broken by mistake: a cut in which nothing else failed awaits approval.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is judged: one table, its declared checks and its invariants."""

    table: str
    """Published name, ``source.table``; the stable name of the suite and of the pages."""
    frame: DataFrame | None
    """The table's rows, in a frame of a classic session or of Spark Connect; None if no check is declared."""
    snapshot: int
    """Id of the Iceberg snapshot that ``frame`` reads."""
    checks: Sequence[Mapping[str, Any]]
    """The checks of the source file: ``type``, ``severity`` (``block`` if absent) and the expectation's arguments."""
    invariants: Mapping[str, Invariant]
    """From a name for people, such as ``duplicate keys``, to the number found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one check; it contains no value of a row."""

    name: str
    """Expectation type, or the name of the invariant."""
    columns: tuple[str, ...]
    severity: Severity
    success: bool
    observed: str
    """Counts and figures, or the first line of the error; at most 200 characters."""
    expected: str
    """The declared arguments; at most 200 characters."""
    approvable: bool = False
    """``Invariant.approvable``; of a declared check never."""

    @classmethod
    def of_findings(cls, name: str, severity: Severity, found: int, columns: tuple[str, ...] = ()) -> Self:
        """Return the failed check of a source in which ``found`` things are that must not be; a person can approve."""
        return cls(
            name=name,
            columns=columns,
            severity=severity,
            success=False,
            observed=str(found),
            expected="0",
            approvable=True,
        )

    @property
    def blocks(self) -> bool:
        """Whether it holds the cut back."""
        return not self.success and self.severity is Severity.BLOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All check results of one table: first the declared checks, then the invariants, each in the given order."""

    table: str
    success: bool
    """Whether no blocking check failed."""
    results: tuple[CheckResult, ...]
    docs: Path
    """Index page of the Data Docs."""

    def problems(self) -> list[str]:
        """Return a sentence for each blocking check that failed: what was found, and what was expected."""
        return [f"{self._sentence(each)}. See {self.docs}" for each in self._failed(Severity.BLOCK)]

    def warnings(self) -> list[str]:
        """Return a sentence for each check that failed and blocks nothing."""
        return [self._sentence(each) for each in self._failed(Severity.WARN)]

    def _failed(self, severity: Severity) -> list[CheckResult]:
        return [each for each in self.results if not each.success and each.severity is severity]

    def _sentence(self, result: CheckResult) -> str:
        columns = ", ".join(result.columns) or "table"
        word = "failed" if result.severity is Severity.BLOCK else "warns"
        return f"{self.table}: {result.name} ({columns}) {word}: {result.observed}; expected {result.expected}"
