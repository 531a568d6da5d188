"""Refuses plans that take a column from a table beside the published one whose owner laid it out by that column.

The history, the feed, and the whole rows and versions move with the published table. Iceberg refuses to drop a column
that a table is partitioned or sorted by, so such a cut could not be published. ``layouts.refuse_loss`` looks at the
published table itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemark.compaction import history_tables
from tidemark.compaction.run import Run
from tidemark.errors import IncompatibleSchemaError
from tidemark.lake import names
from tidemark.lake.names import Identifier
from tidemark.tables import layouts
from tidemark.tables.feeds import OWN_NAMES
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import COMMITTED_AT, DELETED, INTERVAL, POSITION, columns_of
from tidemark.values.types import wider

_OWN = {POSITION, COMMITTED_AT, *(name for name, _, _ in INTERVAL), *OWN_NAMES}
"""Tidemark's own columns of these tables, which never go."""


def refuse_loss(run: Run, plan: Plan) -> None:
    """Refuse a plan under which a column goes, or is another one, that a table beside is partitioned or sorted by.

    Raises:
        IncompatibleSchemaError: there is such a column.
    """
    own = {*_OWN, *([DELETED] if plan.soft else [])}
    for identifier, of_table in _beside(plan):
        table = run.lake.find(identifier)
        used = [] if table is None else [name for name in layouts.laid_out_by(table) if name not in own]
        kept = _kept(dict(columns_of(table)), of_table, _today(run, of_table, identifier)) if used else set()
        if lost := [name for name in used if name not in kept]:
            raise IncompatibleSchemaError(
                f"{plan.found.object}: column {lost[0]!r} goes or gets another type, and {identifier} is partitioned "
                "or sorted by it: take it out there first (ALTER TABLE)"
            )


def _beside(plan: Plan) -> Iterator[tuple[Identifier, Plan]]:
    """Yield the tables that get a candidate beside the published one, each with the plan that has its columns."""
    rows, versions = names.whole_beside(plan.target)
    if plan.keeps_whole:
        yield rows, plan
    if plan.keeps_whole and plan.keeps_versions:
        yield versions, plan
    if plan.keeps_versions:
        yield names.history(plan.target), plan.of_published
    if plan.is_fed:
        yield names.feed(plan.target), plan.of_published


def _today(run: Run, plan: Plan, identifier: Identifier) -> Mapping[str, str | None]:
    """Return what becomes of columns; in a history that begins again no column is renamed (``history_tables``)."""
    begins = plan.today and names.is_history(identifier.name) and not history_tables.goes_on(run, plan)
    return {} if begins else plan.today


def _kept(stored: Mapping[str, str], plan: Plan, today: Mapping[str, str | None]) -> set[str]:
    """Return the stored columns that stay the same column under a plan."""
    types = dict(plan.columns)
    named = {name: new for name in stored if (new := today.get(name, name)) is not None and new in types}
    return {name for name, new in named.items() if wider(stored[name], types[new]) == types[new]}
