"""What the columns of a table are derived from: their names through time, and what the source file says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyiceberg.table import Table

from tidemark.ddl.names import ColumnNames
from tidemark.errors import RebuildNeededError
from tidemark.events import Column, Encoding, Shape
from tidemark.sources import model
from tidemark.tables import column_rules
from tidemark.tables.column_rules import ColumnRules
from tidemark.tables.common_types import agreed, common_type
from tidemark.tables.plan import Found
from tidemark.tables.schemas import columns_of
from tidemark.tables.stored_names import NEW_PREFIX, names_today
from tidemark.values.images import by_table_name
from tidemark.values.message_types import is_open_ended


def names_of(found: Found, table: Table | None) -> ColumnNames:
    """Return the names of a table's columns through time, spelled as the messages and the table spell them."""
    stored = (name.removeprefix(NEW_PREFIX) for name, _ in columns_of(table))
    spelled = [*(column.name for column in _all_columns(found.shapes.values())), *stored]
    return ColumnNames(found.history.renamings, spelled, found.called)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolving:
    """What the new columns of a table are derived from."""

    source: str
    """The source's name."""
    found: Found
    promised: Mapping[str, str]
    """Types that the source file gives, by today's names."""
    names: ColumnNames
    before: Mapping[str, str | None]
    """Each stored column with today's name; None for a column that was dropped, or is left out."""
    rules: ColumnRules

    def columns_of(self, shape_id: str) -> Iterable[tuple[str, Column]]:
        """Yield the published columns of a shape, with today's names."""
        for name, column in by_table_name(shape_id, self.found.shapes[shape_id], self.found.names):
            if self.rules.is_published(name):
                yield name, column

    def message_columns(self) -> Iterable[tuple[str, Column]]:
        """Yield the published columns of every shape, with today's names."""
        for shape_id in self.found.shapes:
            yield from self.columns_of(shape_id)

    def left_out(self) -> set[str]:
        """Return the columns of the messages and of the table that are not published."""
        found = self.found
        named = {name for each in found.shapes.items() for name, _ in by_table_name(*each, found.names)}
        return {name for name in named if not self.rules.is_published(name)}

    def named(self) -> set[str]:
        """Return the names that messages and statements have for columns."""
        column_names = {column.name for shape in self.found.shapes.values() for column in shape.columns}
        return column_names | {each.name for each in self.found.history.additions}

    def is_owners(self, old: str, new: str | None) -> bool:
        """Return whether a stored column goes, or gets another name, because the source file says so."""
        if new is None:
            return not self.rules.is_published(old)
        called = column_rules.names_recorded(self.found.table)
        return new in self.found.called.values() or old in called.values()

    def agreed(self, name: str, old: str | None, new: str) -> str:
        """Return the type of a column that had the type ``old``; see ``common_types.agreed``.

        Raises:
            IncompatibleSchemaError: no type holds the values of both.
            RebuildNeededError: none does, and ``old`` is no more than what a statement said before messages came.
        """
        is_declared = self.promised.get(name) == new
        if old is not None and not is_declared and common_type(old, new) is None and self._is_of_statement(name, old):
            raise RebuildNeededError(
                f"{self.found.object}: column {name!r} is {old}, as a statement said, and messages say {new}"
            )
        return agreed(name, old, new, source=self.source, table=self.found.object, is_declared=is_declared)

    def _is_of_statement(self, name: str, kind: str) -> bool:
        """Return whether a stored column has the type that a statement gave it."""
        names = self.names
        additions = (each for each in self.found.history.additions if each.type == kind)
        called = (names.today(each.name, names.behind(each)) for each in additions)
        return name in self.before.values() and any(each is not None and names.same(each, name) for each in called)

    def open_ended(self) -> dict[str, str]:
        """Return the types of columns of numbers of any size that the source file gives no type, by today's names.

        They are text, except where messages said ``decimal(38, 18)`` in an earlier version of Tidemark.
        """
        columns = list(self.message_columns())
        names = {name for name, column in columns if is_open_ended(column)} - self.promised.keys()
        scaled = ((name, column.type) for name, column in columns if column.encoding is Encoding.SCALED_STRUCT)
        return dict.fromkeys(names, "string") | {
            name: kind for name, kind in scaled if name in names and kind not in {None, "string"}
        }


def evolving_of(source: model.Source, found: Found, table: Table | None) -> Evolving:
    """Return what the new columns of a table are derived from."""
    names = names_of(found, table)
    rules = ColumnRules.of(source, found, names)
    before = {
        old: new if new is not None and rules.is_published(new) else None
        for old, new in _names_today(found, names, table).items()
    }
    promised = _promised(source.table_for(found.object), names, before)
    shown = {name for each in found.shapes.items() for name, _ in by_table_name(*each, found.names)}
    # A mask is a function of the value as text.
    promised |= {name: "string" for name in {*shown, *filter(None, before.values())} if rules.mask_of(name)}
    return Evolving(source=source.source, found=found, promised=promised, names=names, before=before, rules=rules)


def _names_today(found: Found, names: ColumnNames, table: Table | None) -> dict[str, str | None]:
    """Return each stored column with today's name; None for a column that was dropped."""
    stored = [name for name, _ in columns_of(table)]
    called = column_rules.names_recorded(table)
    other = names.renamings or called or found.called or any(name.startswith(NEW_PREFIX) for name in stored)
    if table is None or not other:
        return {name: name for name in stored}
    return names_today(found, table, names, called)


def _promised(promised: model.Table, names: ColumnNames, before: Mapping[str, str | None]) -> dict[str, str]:
    """Return the types that the source file gives, by today's names. The source file may use earlier names."""
    types = {}
    for name, kind in promised.columns.items():
        types[name if name in before.values() else names.today(name, 0) or name] = kind
    return {**types, **promised.columns}


def _all_columns(shapes: Iterable[Shape]) -> Iterable[Column]:
    return (column for shape in shapes for column in shape.columns)
