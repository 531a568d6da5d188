"""Judges the candidates of a cut: what the source file declares, and the invariants that are counted in their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.lake import names
from tidemark.lake.catalog import home
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.quality import value_bounds
from tidemark.quality.invariants import (
    Opened,
    count_keys,
    delete_invariants,
    history_invariants,
    key_invariants,
    ledger_invariants,
    opened_candidate,
    quarantine_invariants,
)
from tidemark.quality.verdicts import Invariant, Subject, Verdict
from tidemark.sources.choices import Consequence, Severity
from tidemark.sources.model import Source
from tidemark.spark.session import open_session, tuned_for
from tidemark.tables.schemas import DELETED


def judge(
    lake: Lake, ledger: Ledger, source: Source, rows: Sequence[TableRow], more: Mapping[str, Mapping[str, Invariant]]
) -> tuple[tuple[Verdict, ...], tuple[str, ...]]:
    """Return a verdict for each table of a cut, and sentences that say where the first of wrong values is.

    Args:
        lake: the lake.
        ledger: of the source.
        source: the source.
        rows: the tables of the cut that were built.
        more: by object, invariants that need no look at the rows.
    """
    if not rows:
        return (), ()
    session = open_session(sum(row.rows_after or 0 for row in rows))
    from tidemark.quality.expectations import evaluate_all  # noqa: PLC0415  seconds to import, and not always needed

    asked = source.invariants.value_bounds
    bounds = {} if asked is Consequence.OFF else value_bounds.bounds_of(ledger, source, rows)
    with tuned_for(session, [row.rows_after or 0 for row in rows]):
        tables = [opened_candidate(session, lake, row, bounds.get(row.object, {})) for row in rows]
        candidates, told = [], []
        for opened, counts in zip(tables, count_keys(tables), strict=True):
            invariants = key_invariants(opened, counts) | dict(more.get(opened.row.object, {}))
            if opened.bounds:
                beyond, place = _beyond(lake, source, opened, counts["beyond_bounds"])
                invariants[value_bounds.VALUE_BOUNDS] = beyond
                told += place
            candidates.append(_candidate(session, lake, source, opened, invariants))
        verdicts = evaluate_all(candidates, cut=f"{source.source}-cut-{rows[0].cut}", home=home())
    return verdicts, tuple(told)


def _beyond(lake: Lake, source: Source, opened: Opened, count: int) -> tuple[Invariant, list[str]]:
    """Return the invariant about values beyond the bounds of their types, and a sentence about the first of them."""
    severity = Severity(source.invariants.value_bounds.value)
    if not count:
        return Invariant(value=0, severity=severity), []
    found = value_bounds.invariant(opened.written, opened.bounds, severity)
    changelog = lake.find(names.change_log(source.source))
    place = value_bounds.first(opened.written, opened.bounds, opened.key, changelog)
    return found, [f"{opened.row.target}: {count} {value_bounds.VALUE_BOUNDS}: {place}"]


def _candidate(
    session: SparkSession, lake: Lake, source: Source, opened: Opened, found: Mapping[str, Invariant]
) -> Subject:
    row, frame = opened.row, opened.frame
    checks = source.table_for(row.object).checks
    alive = frame.where(~F.col(DELETED)) if DELETED in frame.columns else frame
    return Subject(
        table=str(row.identifier),
        frame=alive,
        snapshot=opened.snapshot,
        checks=[{"type": check.type, "severity": check.judged_as, **check.arguments} for check in checks],
        invariants={
            **found,
            **delete_invariants(source, row),
            **quarantine_invariants(source, row),
            **history_invariants(session, lake, row, opened.key, alive),
            **ledger_invariants(row.counts),
        },
    )
