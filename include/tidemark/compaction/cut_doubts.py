"""The doubts about the events that a cut takes in: about logs and loads, renames, and statements without a place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidemark.compaction import renamed
from tidemark.compaction.comparable_places import ComparablePlaces
from tidemark.compaction.recorded_names import followed_before, recorded_names
from tidemark.compaction.unplaced_copies import doubts_about_copies
from tidemark.compaction.unplaced_statements import Moved, doubts_about_statements
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.quality.doubt import Doubt
from tidemark.quality.doubts_of_cut import doubts_of_cut
from tidemark.quality.renamed_tables import Followed, doubts_about_renames
from tidemark.sources.model import Source
from tidemark.sources.routes import is_folded
from tidemark.tables import shard_rules


def doubts_by_table(
    lake: Lake, ledger: Ledger, source: Source, cut: CutRow, rows: Sequence[TableRow]
) -> dict[str, list[Doubt]]:
    """Return the doubts about the events that a cut takes in, by the table that takes them in.

    Args:
        lake: where the tables are.
        ledger: of the source.
        source: the source.
        cut: the cut.
        rows: its tables that were built.
    """
    last = cuts.last_published(ledger)
    now, before = (renamed.known_to(ledger, source, batch) for batch in (cut.batch, last.batch if last else 0))
    folded = _folded(lake, rows)
    into = {name: row.object for row in rows for name in now.names_of(row.object)}
    into |= folded | {row.object: row.object for row in rows}
    found = doubts_of_cut(source, ledger, cut, into)
    recorded = recorded_names(lake, ledger, [row.object for row in rows])
    followed = Followed(now.followed, before.followed | followed_before(recorded, ledger.ddl() if recorded else ()))
    comparable = ComparablePlaces(ledger, source, cut.batch).comparable
    of_renames = doubts_about_renames(ledger, rows, cut.batch, folded=folded, followed=followed, comparable=comparable)
    moved = Moved(rows, cut.batch, folded, now)
    of_statements, of_copies = (of(ledger, source, moved) for of in (doubts_about_statements, doubts_about_copies))
    for name, doubts in [*of_renames.items(), *of_statements.items(), *of_copies.items()]:
        found[name] = [*found.get(name, ()), *doubts]
    of_tables: dict[str, list[Doubt]] = {}
    for name, doubts in found.items():
        known = of_tables.setdefault(into[name], [])
        known += [doubt for doubt in doubts if doubt not in known]
    return of_tables


def _folded(lake: Lake, rows: Iterable[TableRow]) -> dict[str, str]:
    """Return the tables that are folded into tables of a cut, each with the name of what it is folded into."""
    into = [row for row in rows if is_folded(row.object)]
    return {name: row.object for row in into for name in shard_rules.recorded(lake.load(row.identifier))}
