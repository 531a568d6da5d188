"""Tables that were renamed in new batches: whether their rows are what the source has under their name is in doubt.

A rename that is not followed (``ddl.lineages``) leaves an event with the table of the name that it came with. So the
table of the new name lacks the rows from before, and after a swap each of two tables has rows of the other. A complete
load after the rename settles it, and so does a statement that empties the table; else a person decides (docs/adr/0037).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from tidemark.ddl.history import histories
from tidemark.ddl.stated_tables import with_events
from tidemark.ddl.table_renames import Comparable, TableRename, TableRenames, always
from tidemark.lake.filters import at_most, equals
from tidemark.ledger import cuts
from tidemark.ledger.check_rows import RENAMED
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import TableRow
from tidemark.ledger.states import CutState
from tidemark.quality.doubt import Doubt
from tidemark.quality.unplaced_loads import UNPLACED_LOAD
from tidemark.text import without_values


class Followed(NamedTuple):
    """Positions and texts of the statements whose renames are followed (``ddl.lineages``)."""

    now: Container[tuple[str, str]]
    before: Container[tuple[str, str]] = ()
    """As far as the published cut knows: what is followed no more since is in doubt."""


def doubts_about_renames(
    ledger: Ledger,
    rows: Iterable[TableRow],
    batch: int,
    *,
    folded: Mapping[str, str],
    followed: Followed,
    comparable: Comparable = always,
) -> dict[str, list[Doubt]]:
    """Return the doubts about tables that a cut moves for the first time since they were renamed.

    Args:
        ledger: of the source.
        rows: the tables that the cut moves.
        batch: the last batch that the cut holds.
        folded: tables that are folded into one of these, and its name.
        followed: the statements whose renames are followed.
        comparable: whether places of two messages can be compared.
    """
    built = {row.object for row in rows}
    objects = built | {name for name, into in folded.items() if into in built}
    statements = [row for row in ledger.ddl() if row.batch <= batch] if objects else []
    if not statements:
        return {}
    # What a statement means depends on all tables that there are, and not only on those that are built.
    stated = TableRenames(statements, {*objects, *with_events(ledger)})
    renames = {name: each for name, each in _renames(ledger, stated, batch, comparable).items() if name in objects}
    if not renames:
        return {}
    moved, settled = last_moved(ledger), histories(ledger, renames)
    found: dict[str, list[Doubt]] = defaultdict(list)
    for name, of_table in renames.items():
        emptyings = settled[name].until(batch).emptyings if name in settled else ()
        settled_at = max((emptying.position for emptying in emptyings), default="")
        standing = moved.get(folded.get(name, name), 0)
        open_ = [each for each in of_table if each.position >= settled_at]
        new = [each for each in open_ if each.copy or (each.position, each.statement) not in followed.now]
        new = [each for each in new if each.batch > standing or (each.position, each.statement) in followed.before]
        if new:
            found[name].append(Doubt(RENAMED, len(new), _reason(name, new[-1])))
        if known := [each for each in open_ if each not in new and (each.position, each.statement) in followed.now]:
            spans = ledger.spans(equals("object", name), at_most("batch", batch))
            found[name] += _loaded_since(spans, known, standing)
    return {name: doubts for name, doubts in found.items() if doubts}


def _renames(ledger: Ledger, stated: TableRenames, batch: int, comparable: Comparable) -> dict[str, list[TableRename]]:
    """Return the renames of each table, and the swaps that may have put an empty table in place of one with rows."""
    found = defaultdict(list, stated.by_table())
    for name, swaps in stated.unfilled_swaps(ledger.spans(at_most("batch", batch)), comparable).items():
        spans = ledger.spans(equals("object", name), at_most("batch", batch))
        found[name] += [each for each in swaps if any(_begins_before(span, each.position) for span in spans)]
    return {name: sorted(of_table, key=lambda each: (each.position, each.batch)) for name, of_table in found.items()}


def _begins_before(span: SpanRow, position: str) -> bool:
    return span.unplaced > 0 or span.oldest is None or span.oldest < position


def _loaded_since(spans: Iterable[SpanRow], renames: Sequence[TableRename], standing: int) -> list[Doubt]:
    """Return the doubt about rows under the name of a table that were loaded after renames that are followed.

    They rank below all changes, and so they count as rows of the table that had the name first.
    """
    first = renames[0]
    late = [
        span
        for span in spans
        if span.unplaced and max(span.batch, first.batch) > standing
        if first.at is None or span.unplaced_last is None or span.unplaced_last > first.at
    ]
    if not late:
        return []
    count = sum(span.unplaced for span in late)
    reason = (
        f"{count} rows under this name were loaded after a table was renamed: {without_values(first.statement)}. They "
        f"rank below all changes, so they count as rows of the table that had the name before. If they are "
        f"those of the table that has it now, write the moment of the load under `reloads` of it into the source "
        f"file, and run with --reprocess for the intervals since then; else approve the cut"
    )
    return [Doubt(UNPLACED_LOAD, count, reason)]


def last_moved(ledger: Ledger) -> dict[str, int]:
    """Return by table the last batch of the newest published cut that moved it."""
    published = {row.cut for row in ledger.cuts() if row.state == CutState.PUBLISHED}
    rows = sorted(
        (row for row in ledger.tables() if row.cut in published and cuts.is_built(row)), key=lambda row: row.cut
    )
    return {row.object: row.batch for row in rows}


def _reason(name: str, rename: TableRename) -> str:
    if rename.copy:
        seen, since = f"No event of {rename.copy} came for it", "Capture the rows of such copies, too"
        if rename.unplaced:
            seen = f"Events of {rename.copy} came in another order of the dump, and may be of an earlier copy"
            since = "Let the source have one topic, and the table and its copies one partition"
        return (
            f"a copy took its name, as schema-change tools do it: {without_values(rename.statement)}. {seen}, so the "
            f"copy may have been empty, and {name} would hold rows that the source does not have. If a tool filled the "
            f"copy, approve the cut; else load the table anew. {since}, so that no cut waits for it"
        )
    parts = ""
    if rename.together:
        parts = f" Its parts, which gave the names {', '.join(rename.together)}, are followed once all have landed."
    return (
        f"it was renamed, or got the name of another table: {without_values(rename.statement)}.{parts} Rows belong to "
        f"the name that they came with, so {name} may lack rows from before the statement, or hold rows of another "
        "table. Load the renamed tables anew: a complete load after the statement replaces their rows. If the rows are "
        "right as they are, approve the cut"
    )
