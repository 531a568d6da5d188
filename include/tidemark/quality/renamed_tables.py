"""Tables that were renamed in new batches: whether their rows are what the source has under their name is in doubt.

A rename that is not followed (``ddl.lineages``) leaves an event with the table of the name that it came with. So the
table of the new name lacks the rows from before, and after a swap each of two tables has rows of the other. A complete
load after the rename settles it, and so does a statement that empties the table; else a person decides (docs/adr/0037).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from tidemark.ddl.history import histories
from tidemark.ddl.table_renames import not_followed
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.ledger.tally import LOAD
from tidemark.quality.doubts import Doubt

RENAMED = "renames of the table that are not followed"


def doubts_about_renames(
    ledger: Ledger, rows: Iterable[TableRow], batch: int, *, folded: Mapping[str, str], followed: Container[str]
) -> dict[str, list[Doubt]]:
    """Return the doubts about tables that a cut moves for the first time since they were renamed.

    Args:
        ledger: of the source.
        rows: the tables that the cut moves.
        batch: the last batch that the cut holds.
        folded: tables that are folded into one of these, and its name.
        followed: positions of the statements whose renames are followed (``ddl.lineages``).
    """
    built = {row.object for row in rows}
    objects = [*built, *(name for name, into in folded.items() if into in built)]
    statements = [row for row in ledger.statements() if row.dialect != LOAD and row.batch <= batch] if objects else []
    statements = [row for row in statements if row.position not in followed]
    renames = not_followed(statements, objects)
    if not renames:
        return {}
    moved, settled = _moved(ledger), histories(ledger, renames)
    found: dict[str, list[Doubt]] = {}
    for name, of_table in renames.items():
        emptyings = settled[name].until(batch).emptyings if name in settled else ()
        settled_at = max((emptying.position for emptying in emptyings), default="")
        new = [
            each
            for each in of_table
            if each.batch > moved.get(folded.get(name, name), 0) and each.position >= settled_at
        ]
        if new:
            found[name] = [Doubt(RENAMED, len(new), _reason(name, new[-1].statement))]
    return found


def _moved(ledger: Ledger) -> dict[str, int]:
    """Return by table the last batch of the newest published cut that moved it."""
    published = {row.cut for row in ledger.cuts() if row.state == cuts.PUBLISHED}
    rows = sorted(
        (row for row in ledger.tables() if row.cut in published and cuts.is_built(row)), key=lambda row: row.cut
    )
    return {row.object: row.batch for row in rows}


def _reason(name: str, statement: str) -> str:
    return (
        f"it was renamed, or got the name of another table: {statement[:200]}. Rows belong to the name that they came "
        f"with, so {name} may lack rows from before the statement, or hold rows of another table. Load the renamed "
        f"tables anew: a complete load after the statement replaces their rows. If the rows are right as they are, "
        f"approve the cut"
    )
