"""Verdicts as rows of the ledger, where reports find them without Great Expectations."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.lake.filters import equals
from tidemark.ledger.check_rows import CheckRow
from tidemark.ledger.ledger import Ledger
from tidemark.quality.verdicts import Verdict


def record(ledger: Ledger, cut: int, stage: str, verdicts: Iterable[Verdict]) -> None:
    """Put what the checks of a cut found in the place of what the same stage recorded of the cut before.

    Args:
        ledger: of the source.
        cut: number of the cut.
        stage: ``check`` or ``quality``.
        verdicts: one for each table.
    """
    rows = [
        CheckRow(
            cut=cut,
            stage=stage,
            target=verdict.table,
            place=place,
            name=result.name,
            columns=result.columns,
            severity=str(result.severity),
            success=result.success,
            observed=result.observed,
            expected=result.expected,
        )
        for verdict in verdicts
        for place, result in enumerate(verdict.results)
    ]
    if rows:
        ledger.replace(CheckRow, rows, equals("cut", cut), equals("stage", stage))
