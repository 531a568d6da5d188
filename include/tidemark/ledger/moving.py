"""What a cut moves beside a published table, and what would stop a move: found out before anything is moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pyiceberg.exceptions import ValidationError
from pyiceberg.table import Table

from tidemark.lake import other_writers, pending_schema
from tidemark.lake.branches import descends_from_main, head, moved_meanwhile, properties_at, require_forward
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, beside, candidate_branch, cut_tag, moved_together, whole_beside
from tidemark.lake.properties import keeps_whole, shown
from tidemark.ledger.rows import TableRow
from tidemark.text import first_line


def in_order(target: Identifier) -> tuple[Identifier, ...]:
    """Return the tables that move with a published table, in the order in which they move."""
    rows, versions = whole_beside(target)
    return (*moved_together(target), rows, *beside(target), versions)


def required(lake: Lake, target: Identifier, cut: int) -> dict[Identifier, Table]:
    """Return the tables that a cut has to move: a published table, its state, and its whole rows if it keeps them.

    Without the whole rows of the cut, the next one would fold its events onto the whole rows of an earlier cut.
    """
    table = lake.load(target)
    more = [whole_beside(target)[0]] if has_whole(table, cut) else []
    _, *others = (*moved_together(target), *more)
    return {target: table, **{each: lake.load(each) for each in others}}


def allowed(lake: Lake, target: Identifier, needed: Mapping[Identifier, Table]) -> dict[Identifier, Table]:
    """Return the tables that a cut moves if they have its branch: history and feed, and the versions of whole rows.

    Args:
        lake: the lake.
        target: the published table.
        needed: what it requires (``required``).
    """
    rows, versions = whole_beside(target)
    found = {each: lake.find(each) for each in (*beside(target), *([versions] if rows in needed else []))}
    return {each: table for each, table in found.items() if table is not None}


def has_whole(table: Table, cut: int) -> bool:
    """Return whether a published table keeps its whole rows beside it when a cut is published."""
    branch = candidate_branch(cut)
    return keeps_whole(properties_at(table, head(table, branch)) if branch in table.refs() else table.properties)


def in_part(lake: Lake, rows: Iterable[TableRow], cut: int) -> Iterator[str]:
    """Yield, by the source's names, the tables of which a cut moved some of table, state and whole rows, not all."""
    for row in rows:
        table = lake.find(row.identifier)
        whole = whole_beside(row.identifier)[:1] if table is not None and has_whole(table, cut) else ()
        together = map(lake.find, (*moved_together(row.identifier), *whole))
        if len({cut_tag(cut) in each.refs() for each in together if each is not None}) > 1:
            yield row.object


def renamed(lake: Lake, rows: Iterable[TableRow], cut: int) -> Iterator[str]:
    """Yield, by the source's names, the tables that a cut moved and whose columns it renamed or dropped.

    Such a table has the names of the cut. Who takes it for a table of the cut before makes the change a second time.
    """
    for row in rows:
        together = map(lake.find, in_order(row.identifier))
        if any(_is_renamed(each, cut_tag(cut)) for each in together if each is not None):
            yield row.object


def _is_renamed(table: Table, tag: str) -> bool:
    """Return whether the snapshot with a tag is published under other names than it was written under."""
    ref = table.refs().get(tag)
    return ref is not None and ref.snapshot_id in shown(table.properties)


def obstacle(table: Table, cut: int) -> str | None:
    """Return why ``main`` of a table cannot move to the candidate of a cut; None if it can, or has no candidate.

    Another writer may have moved ``main``, or changed columns, partitions or the sort order since the candidate was
    built. The change of the metadata is made in memory: what PyIceberg refuses there, it would refuse in the catalog.
    """
    branch, name = candidate_branch(cut), ".".join(table.name())
    if branch not in table.refs():
        return None
    if not descends_from_main(table, branch):
        return moved_meanwhile(table, branch)
    if reason := other_writers.renamed_since_built(table, cut):
        return reason
    try:
        require_forward(table, branch, pending_schema.changes(table, cut))
    except (ValueError, ValidationError) as error:
        return (
            f"{name} cannot get the columns of cut {cut}: {first_line(error)}. Another writer changed its columns, "
            "partitions or sort order since the cut was built"
        )
    return None
