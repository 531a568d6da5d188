"""Problems of routes that a source file alone shows: patterns, groups, and the columns that an entry adds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pydantic_core import InitErrorDetails

from tidemark.sources import routes
from tidemark.sources.fields import error_at
from tidemark.sources.layout import overlap
from tidemark.values.declared_types import is_expression

if TYPE_CHECKING:
    from tidemark.sources.model import Table


def problems(name: str, entry: Table) -> Iterator[InitErrorDetails]:
    """Yield what is wrong with the route of an entry; places are those in the entry.

    Args:
        name: of the entry: a table, or a pattern.
        entry: the entry.
    """
    groups = 0
    if is_expression(name):
        try:
            groups = re.compile(name).groups
        except (re.error, OverflowError, RecursionError) as error:
            yield error_at((), f"'{name}' is no regular expression: {error}. A name with ( or \\ in it is one.")
            return
    if routes.is_folded(name):
        yield error_at((), f"'{name}' names tables that are folded already: name the entry by the tables themselves.")
    for text in routes.problems(entry.target or "", groups):
        yield error_at(("target",), text)
    if routes.SHARD_COLUMN in (entry.key or ()):
        yield error_at(
            ("key",),
            f"{routes.SHARD_COLUMN} tells rows of folded tables apart already. Leave it out, or add a column of yours.",
        )
    for column, template in entry.add.items():
        for text in routes.problems(template, groups):
            yield error_at(("add", column), text)
        yield from (error_at(("add", column), text) for text in _problems_of_column(column, entry))


def _problems_of_column(column: str, entry: Table) -> Iterator[str]:
    if not column.strip() or column.startswith("_cdc_"):
        yield f"'{column}' cannot be the name of a column that is added."
    if column in entry.rename.values():
        yield f"'{column}' is the new name of another column in `rename`: choose another."
    if column in {*entry.exclude, *entry.mask, *entry.encodings}:
        yield f"'{column}' is added here, so `exclude`, `mask` and `encodings` cannot name it."


def place_problems(tables: Mapping[str, Table]) -> Iterator[InitErrorDetails]:
    """Yield an error for each ``layout.location`` that shares a folder with that of an earlier entry.

    Maintenance removes all files of a folder that its table does not know: those of the other one too.
    """
    places = [(name, table.layout.location) for name, table in tables.items() if table.layout and table.layout.location]
    for number, (name, place) in enumerate(places):
        for other, earlier in [each for each in places[:number] if overlap(place, each[1])][:1]:
            text = f"it shares a folder with that of {other}, {earlier}. Each entry needs a folder of its own."
            yield error_at(("tables", name, "layout", "location"), text)
