"""Tables of the source that the ledger and the change log have under one name, because a part of a name holds a dot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidemark.compaction.run import Run
from tidemark.events import TableId
from tidemark.lake.filters import among
from tidemark.ledger.rows import ContentRow


def problems(run: Run, contents: Mapping[str, Sequence[ContentRow]]) -> dict[str, str]:
    """Return why tables stop whose events are those of several tables, by the name that they have in common.

    ``shop.a.b`` is the table ``b`` of a database ``shop.a``, and the table ``a.b`` of the database ``shop``. Nothing in
    the change log tells the rows of the two apart, so none of them is folded into the other's.

    Args:
        run: the run.
        contents: what the batches hold that a table takes events of, by the table's name at the source or its target.
    """
    seen: dict[str, set[TableId]] = {}
    for row in (row for rows in contents.values() for row in rows):
        seen.setdefault(row.object, set()).add(row.table)
    dotted = {name for name, tables in seen.items() if any(table.is_dotted for table in tables)}
    if dotted:  # of the others, the published table itself has what its name was made of
        for row in run.ledger.contents(among("object", dotted)):
            seen[row.object].add(row.table)
    return {
        run.routed.name_of(name): f"its events are of several tables at the source: {_in_parts(tables)}"
        for name, tables in seen.items()
        if len(tables) > 1
    }


def _in_parts(tables: Iterable[TableId]) -> str:
    return " and ".join(sorted(", ".join(map(repr, table.parts)) for table in tables))
