"""The statements that added the columns of a table: the first one of each column filled the rows that were there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidemark.ddl.history import Addition
from tidemark.ddl.names import ColumnNames


def first_additions(additions: Iterable[Addition], names: ColumnNames) -> Iterator[tuple[str, Addition]]:
    """Yield the first addition of each column, with the name that the column has today.

    Be it with null, that statement filled the column. A later one, with IF NOT EXISTS, found it there and did nothing.

    Args:
        additions: of one table, by position and order.
        names: of the table's columns.
    """
    seen = set[str]()
    for added in additions:
        name = names.today(added.name, names.behind(added))
        if not added.retyped and name is not None and names.normal(name) not in seen:
            seen.add(names.normal(name))
            yield name, added
