"""Judges the candidates of a cut: what the source file declares, and the invariants that are counted in their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache

from pyiceberg.table import Table
from pyspark.sql import SparkSession

from tidemark.lake import names
from tidemark.lake.catalog import home
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.quality import history_counts, key_counts, set_aside, value_bounds
from tidemark.quality.candidates import Candidate, opened
from tidemark.quality.invariants import (
    delete_invariants,
    key_invariants,
    ledger_invariants,
    quarantine_invariants,
)
from tidemark.quality.verdicts import Invariant, Subject, Verdict
from tidemark.sources.choices import Consequence, Severity
from tidemark.sources.model import Source
from tidemark.spark.tuning import session_for
from tidemark.values.bounds import Bounds


def judge(
    lake: Lake, ledger: Ledger, source: Source, rows: Sequence[TableRow], more: Mapping[str, Mapping[str, Invariant]]
) -> tuple[tuple[Verdict, ...], tuple[str, ...]]:
    """Return a verdict for each table of a cut, and sentences that name wrong keys and the first of wrong values.

    Spark is opened only if a table is large or has declared checks.

    Args:
        lake: the lake.
        ledger: of the source.
        source: the source.
        rows: the tables of the cut that were built.
        more: by object, invariants that need no look at the rows.
    """
    if not rows:
        return (), ()
    from tidemark.quality.expectations import evaluate_all  # noqa: PLC0415  seconds to import, and not always needed

    consequence = source.invariants.value_bounds
    bounds = {} if consequence is Consequence.OFF else value_bounds.bounds_of(ledger, source, rows)
    changelog = lake.find(names.change_log(source.source))
    with _session_when_needed(rows) as session:
        subjects: list[Subject] = []
        sentences: list[str] = []
        for row in rows:
            candidate = opened(lake, session, row)
            counts = key_counts.counted(candidate)
            sentences += key_counts.faults(candidate, counts, changelog)
            invariants = key_invariants(candidate.key, counts, candidate.row) | dict(more.get(row.object, {}))
            if fitting := value_bounds.fitting(bounds.get(row.object, {}), candidate):
                beyond, place = _beyond(source, candidate, fitting, changelog)
                invariants[value_bounds.VALUE_BOUNDS] = beyond
                sentences += place
            aside = quarantine_invariants(source, row)
            if any(each.value for each in aside.values()):
                sentences.append(set_aside.sentence(source.source, row, lake.find(names.quarantine(source.source))))
            versions, places = history_counts.judged(candidate, changelog)
            sentences += places
            subjects.append(_subject(source, candidate, {**invariants, **aside, **versions}))
        verdicts = evaluate_all(subjects, cut=f"{source.source}-cut-{rows[0].cut}", home=home())
    return verdicts, tuple(sentences)


@contextmanager
def _session_when_needed(rows: Sequence[TableRow]) -> Iterator[Callable[[], SparkSession]]:
    """Give what opens the session, tuned for tables, at its first call; restore the settings at the end."""
    with ExitStack() as settings:

        @cache
        def session() -> SparkSession:
            return settings.enter_context(session_for([row.rows_after or 0 for row in rows]))

        yield session


def _beyond(
    source: Source, candidate: Candidate, bounds: Mapping[str, Bounds], changelog: Table | None
) -> tuple[Invariant, list[str]]:
    """Return the invariant about values beyond the bounds of their types, and a sentence about the first of them."""
    severity = Severity(source.invariants.value_bounds.value)
    found, first = value_bounds.judged(candidate, bounds, severity, changelog)
    sentence = f"{candidate.row.target}: {found.value} {value_bounds.VALUE_BOUNDS}: {first}"
    return found, [sentence] if first else []


def _subject(source: Source, candidate: Candidate, found: Mapping[str, Invariant]) -> Subject:
    row = candidate.row
    checks = source.table_for(row.object).checks
    return Subject(
        table=str(row.identifier),
        frame=candidate.alive if checks else None,
        snapshot=candidate.snapshot,
        checks=[{"type": check.type, "severity": check.judged_as, **check.arguments} for check in checks],
        invariants={
            **found,
            **delete_invariants(source, row),
            **ledger_invariants(row.counts),
        },
    )
