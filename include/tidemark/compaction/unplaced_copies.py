"""What statements changed in the copy of a schema-change tool, where it is not known which swap of the copy brought it.

The table gets what the copy became, from the swap on (``ddl.migrations``). So the statements about the copy and the
swap have to be compared. Where they cannot be, the first cut that moves the table with them is held, and a masked
column stays masked under each name that the copy gave it (docs/adr/0113).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from tidemark.compaction.comparable_places import ComparablePlaces
from tidemark.compaction.placed_statements import rank_alike
from tidemark.compaction.run import Run
from tidemark.compaction.unplaced_statements import UNPLACED_STATEMENT, Moved
from tidemark.ddl.changes import AddColumn, DropColumn, RenameColumn
from tidemark.ddl.history import Addition, SchemaHistory, histories
from tidemark.ddl.lineages import Lineages
from tidemark.ddl.names import Renaming
from tidemark.ddl.rename_statements import may_rename
from tidemark.ddl.stated import Stated
from tidemark.ddl.stated_tables import KnownTables, in_turn, with_events
from tidemark.ddl.swaps import Swaps
from tidemark.lake.filters import at_most
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import StatementRow
from tidemark.quality.doubt import Doubt
from tidemark.quality.renamed_tables import last_moved
from tidemark.sources.model import Source
from tidemark.sources.schema_policy import SchemaPolicies
from tidemark.tables import schema_policies
from tidemark.text import without_values


class UnplacedChange(NamedTuple):
    """A change of a copy, and a swap of the copy of which it is not known whether it brought the change."""

    stated: Stated
    swap: StatementRow
    why: str

    @property
    def batch(self) -> int:
        """The first batch that shows it."""
        return max(self.stated.row.batch, self.swap.batch)

    @property
    def names(self) -> tuple[str, str] | None:
        """The old and the new name of a column, if the statement renames one."""
        change = self.stated.change
        return (change.old, change.new) if isinstance(change, RenameColumn) else None

    def alters_rows(self, policies: SchemaPolicies) -> bool:
        """Return whether the change gives earlier rows of a table other columns or values, by its policies."""
        row, order, history = self.stated.row, self.stated.order, SchemaHistory()
        match self.stated.change:
            case RenameColumn(_, old, new):
                history = SchemaHistory(renamings=(Renaming(row.position, row.batch, old, new, order),))
            case DropColumn(_, name):
                history = SchemaHistory(renamings=(Renaming(row.position, row.batch, name, None, order),))
            case AddColumn(_, name, kind, text, octets) if text is not None or octets is not None:
                added = Addition(row.position, row.batch, name, kind, None, retyped=False, order=order)
                history = SchemaHistory(additions=(added,))
        followed = schema_policies.followed(history, policies)
        return bool(followed.renamings or followed.additions)


def unplaced_changes(ledger: Ledger, source: Source, batch: int) -> Mapping[str, Sequence[UnplacedChange]]:
    """Return by table, as source files name it, what statements of the batches up to ``batch`` changed in its copies.

    Only what cannot be compared with a swap of the copy is returned, whether a swap seems to follow it or not.
    """
    rows = ledger.ddl(at_most("batch", batch))
    if not any(may_rename(row.statement) for row in rows):
        return {}
    known = KnownTables(with_events(ledger))
    places, found = ComparablePlaces(ledger, source, batch), defaultdict[str, list[UnplacedChange]](list)
    for table, stated, swap in _pairs(rows, known):
        if (why := places.why_not(stated.row, swap, table)) is not None:
            found[table].append(UnplacedChange(stated, swap, why))
    return found


def names_apart(found: Mapping[str, Sequence[UnplacedChange]], tables: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return the names that copies of some tables gave to columns: these may be the tables' columns by now."""
    named = (each.names for table in tables for each in found.get(table, ()))
    return tuple(dict.fromkeys(filter(None, named)))


def names_of_copies(run: Run, lineages: Lineages) -> Callable[[str], tuple[tuple[str, str], ...]]:
    """Return what tells the ``names_apart`` of a table that a run builds: of its shards, or under all its names."""
    found = unplaced_changes(run.ledger, run.source, run.cut.batch)
    return lambda name: names_apart(found, run.routed.shards_of(name) or lineages.names_of(name))


def doubts_about_copies(ledger: Ledger, source: Source, cut: Moved) -> dict[str, list[Doubt]]:
    """Return the doubts about tables that a cut moves for the first time since a copy took their names."""
    names = {own: row.object for row in cut.rows for own in cut.lineages.names_of(row.object)}
    names |= {name: into for name, into in cut.folded.items() if into in names}
    unplaced = unplaced_changes(ledger, source, cut.batch) if names else {}
    if unplaced.keys().isdisjoint(names):
        return {}
    moved, loaded = last_moved(ledger), histories(ledger, names)
    found: dict[str, list[Doubt]] = {}
    for name, into in names.items():
        emptyings = loaded.get(name, SchemaHistory()).until(cut.batch).emptyings
        settled = max((each.position for each in emptyings if each.load), default="")
        policies = source.policies_for(into)
        new = [
            each
            for each in unplaced.get(name, ())
            if each.batch > moved.get(into, 0) and each.alters_rows(policies)
            if each.swap.position >= settled or not rank_alike(source, each.swap, {name})
        ]
        if new:
            found[name] = [Doubt(UNPLACED_STATEMENT, len(new), _reason(name, new[-1]))]
    return found


def _pairs(rows: Sequence[StatementRow], known: KnownTables) -> Iterator[tuple[str, Stated, StatementRow]]:
    """Yield each change of a copy with each swap by which the copy took the name of a table, and with the table."""
    swaps, changed = Swaps(rows, known), defaultdict[str, list[Stated]](list)
    taken = [(copy, table, row) for row in rows for copy, table in swaps.copies_of(row)]
    for stated, _, _ in in_turn(rows, known) if taken else ():
        if isinstance(stated.change, RenameColumn | DropColumn | AddColumn):
            changed[known.normal(stated.change.table, stated.row)].append(stated)
    for copy, table, row in taken:
        for name in known.alike(table):
            yield from ((name, stated, row) for stated in changed[copy])


def _reason(name: str, unplaced: UnplacedChange) -> str:
    stated, swap = (without_values(row.statement) for row in (unplaced.stated.row, unplaced.swap))
    return (
        "a schema-change tool altered a copy of it, and a copy took its name, and nothing tells which was first: "
        f"{stated}; {swap}. The reason: {unplaced.why}. So columns may lack their new names, and rows from before the "
        "defaults of new columns. Load the table anew at the source, later than the second statement, and write the "
        f"moment under `reloads` of {name} into the source file: the load replaces the rows. If the rows are right as "
        "the cut has them, approve it. No cut waits for it where the source has one topic, and the table and its "
        "copies one partition"
    )
