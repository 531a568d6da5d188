"""Statements and initial loads that batches show otherwise as they are decoded again, and the tables they concern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyiceberg.expressions import BooleanExpression

from tidemark.ddl.history import SchemaHistory, histories_of
from tidemark.ddl.rename_statements import may_rename, named_in
from tidemark.ddl.stated_tables import KnownTables
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import StatementRow
from tidemark.ledger.sealed_statements import unsealed
from tidemark.ledger.tally import Tally


def concerned(ledger: Ledger, found: Mapping[int, Sequence[Tally]], replaced: BooleanExpression) -> set[str]:
    """Return the tables whose history or names change, whether the batches have events of them or not.

    A statement that is read only now is of an old batch. A table that stands behind that batch does not look for it.

    Args:
        ledger: of the source, with what it has had of the batches until now.
        found: what the batches have now.
        replaced: the rows of the ledger that it has had of them.
    """
    new = {
        unsealed(StatementRow.of(batch, each))
        for batch, tallies in found.items()
        for tally in tallies
        for each in tally.statements
    }
    old = set(ledger.statements(replaced))
    changed = old ^ new
    if not changed:
        return set()
    objects = {row.object: row.table for row in ledger.contents()}
    objects |= {
        str(each.table): each.table for tallies in found.values() for tally in tallies for each, _ in tally.contents
    }
    others = set(ledger.statements()) - old
    before, now = (_histories(others | rows, objects) for rows in (old, new))
    renames = [row for row in changed if not row.is_load and may_rename(row.statement)]
    known = KnownTables(objects)
    renamed = {name for row in renames for name in named_in(row, objects, known)}
    return renamed | {name for name in objects if before.get(name) != now.get(name)}


def _histories(rows: Iterable[StatementRow], objects: Mapping[str, object]) -> dict[str, SchemaHistory]:
    return histories_of(sorted(rows, key=lambda row: (row.position, row.batch, row.statement)), objects.keys())
