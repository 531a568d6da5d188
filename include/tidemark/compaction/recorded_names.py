"""What published tables record of the names that their events came under, against what is known of renames now.

A source file that changes may have other renames followed than before, and so may files that land. A table says under
which names its rows came (``tidemark.segments``). What today's source file makes of earlier batches does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidemark.ddl.lineages import Lineages, Segment
from tidemark.ddl.rename_statements import may_rename
from tidemark.lake.lake import Lake
from tidemark.lake.properties import OBJECT_PROPERTY
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import StatementRow
from tidemark.sources.routes import is_folded
from tidemark.tables.eras import segments_of

Recorded = Mapping[str, tuple[Segment, ...]]
"""By table, the names that its events came under."""


def recorded_names(lake: Lake, ledger: Ledger, tables: Iterable[str]) -> Recorded:
    """Return what tables record that are published and whose names occur in a statement that may rename tables.

    Args:
        lake: where the tables are.
        ledger: of the source.
        tables: as the source names them.
    """
    texts = "\n".join(row.statement.casefold() for row in ledger.ddl() if may_rename(row.statement))
    if not texts:
        return {}
    targets, found = ledger.targets(), {}
    for name in tables:
        last = name.rpartition(".")[2].casefold()
        if is_folded(name) or name not in targets or last not in texts:
            continue
        table = lake.find(targets[name])
        # Another table may be published in its place by now.
        if table is not None and table.properties.get(OBJECT_PROPERTY) == name and table.current_snapshot():
            found[name] = segments_of(table)
    return found


def stale(recorded: Recorded, now: Lineages) -> set[str]:
    """Return the tables whose rows came under other names than those that are known now."""
    return {name for name, segments in recorded.items() if segments != now.segments_of(name)}


def partners_of(differing: Iterable[str], recorded: Recorded, now: Lineages) -> set[str]:
    """Return the names whose events go to some tables, or came from them, and the tables that share such a name.

    Args:
        differing: of the tables that are recorded, those whose names are others now.
        recorded: what published tables record.
        now: what is known of renames now.
    """
    shared = {each.object for name in differing for each in (*recorded[name], *now.segments_of(name))}
    return shared | {name for name in now.tables if not shared.isdisjoint(now.names_of(name))}


def followed_before(recorded: Recorded, statements: Sequence[StatementRow]) -> frozenset[tuple[str, str]]:
    """Return positions and texts of the statements that published tables were built by: a name began or ended there.

    Args:
        recorded: the published tables.
        statements: of the source.
    """
    places = {each.ends for segments in recorded.values() for each in segments if each.ends}
    places |= {segments[-1].begins for segments in recorded.values()}
    return frozenset((row.position, row.statement) for row in statements if row.position in places)
