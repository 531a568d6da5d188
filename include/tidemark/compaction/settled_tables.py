"""The tables that go on from what is published, so that their earlier events may go."""

from __future__ import annotations

from tidemark.events import Operation
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.states import TableState
from tidemark.sources.choices import Deletes
from tidemark.sources.model import Source
from tidemark.sources.routes import is_folded
from tidemark.tables import shard_rules
from tidemark.tables.eras import names_of, segments_of
from tidemark.tables.schemas import key_of


def settled(lake: Lake, ledger: Ledger, source: Source) -> frozenset[str]:
    """Return the tables that go on from what is published, whatever comes: no event of theirs is folded twice.

    A table is not settled if it counts equal rows, keeps versions or marked rows, is folded from several, has rows that
    may have moved without their large values, is stopped or waits, or is to be built again. A table that gave its
    events to such a one, by a rename, is not settled either: its own published table may be empty.
    """
    inserts = ledger.contents(equals("operation", Operation.INSERT))
    moving = {row.object for row in inserts if row.moves and source.traits.moves_rows}
    requested = ledger.rebuild_requests()
    found, needed = set[str](), set[str]()
    for name, row in ledger.published_tables().items():
        promised, table = source.table_for(name), lake.find(row.identifier) if row.target is not None else None
        taken_in = {name} if table is None else {*names_of(segments_of(table)), *shard_rules.recorded(table)}
        plain = not (promised.history or promised.deletes is Deletes.SOFT or is_folded(name) or taken_in & moving)
        stands = row.state in {TableState.PUBLISHED, TableState.UNMOVED}
        if plain and stands and key_of(table) and name not in requested:
            found.add(name)
        else:
            needed |= taken_in
    return frozenset(found - needed)
