"""The structures of tables that Replicate's metadata messages describe, and how rows find them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from tidemark.errors import DecodeError, MalformedMessageError, MissingTableError
from tidemark.events import TableId
from tidemark.formats import Known
from tidemark.formats._json import RowLayout
from tidemark.formats._replicate.names import TableNames
from tidemark.formats._replicate.types import column
from tidemark.formats._replicate.wire import StoredContent, parsed


class Structure:
    """A table, known from metadata or from one row, ready for reading rows."""

    def __init__(
        self,
        table: TableId,
        layout: RowLayout,
        ordinals: dict[str, int],
        key: tuple[str, ...] | None,
        *,
        version: int = 0,
    ) -> None:
        self.table = table
        self.layout = layout
        self.ordinals = ordinals
        """By column: its bit in a mask, counted from 0."""
        self.full = sum({1 << bit for bit in ordinals.values()})
        """The mask with all columns."""
        self.key = key
        self.version = version
        self._outside: dict[int, tuple[str, ...]] = {}

    def outside(self, mask: int) -> tuple[str, ...]:
        """Return the columns that are not in a mask.

        Raises:
            MalformedMessageError: the mask has more bits than the table has columns.
        """
        found = self._outside.get(mask)
        if found is None:
            if mask.bit_length() > self.full.bit_length():
                raise MalformedMessageError(
                    f"the mask {mask:X} has bits beyond the {len(self.ordinals)} columns of {self.table}; is the "
                    "option `mask_byte_order` right?"
                )
            if len(self._outside) >= 256:
                self._outside.clear()
            found = tuple(name for name, bit in self.ordinals.items() if not mask >> bit & 1)
            self._outside[mask] = found
        return found


class StructureFacts(NamedTuple):
    """The facts in a content beside its columns: arguments of ``Structure``."""

    table: TableId
    ordinals: dict[str, int]
    key: tuple[str, ...]
    version: int


def facts(content: StoredContent) -> StructureFacts:
    """Return the facts in a content beside its columns."""
    listed = content.tableStructure["tableColumns"]
    keyed = sorted((column.primaryKeyPosition, name) for name, column in listed.items() if column.primaryKeyPosition)
    return StructureFacts(
        table=TableId(database=None, schema=content.lineage.schema or None, name=content.lineage.table or ""),
        ordinals={name: column.ordinal - 1 for name, column in listed.items()},
        key=tuple(name for _, name in keyed),
        version=content.lineage.tableVersion or 0,
    )


@functools.lru_cache(maxsize=4096)
def structure(text: bytes) -> Structure:
    """Return the structure of a content, for rows in JSON; the same object for the same bytes.

    Raises:
        UnknownTypeError: a column has a type that Replicate does not have.
    """
    content = parsed(text)
    layout = RowLayout(column(*item) for item in content.tableStructure["tableColumns"].items())
    table, ordinals, key, version = facts(content)
    return Structure(table, layout, ordinals, key, version=version)


S = TypeVar("S", bound=Structure)


class Index(Generic[S]):
    """The structures of a ``Known``, by id and by table."""

    def __init__(self, known: Known, build: Callable[[bytes], S]) -> None:
        self._known = known
        self.build = build
        self._built: dict[bytes, S | DecodeError] = {}
        self._found: dict[tuple[str, TableNames], S] = {}

    def _structure(self, text: bytes) -> S:
        """Return the structure of a content, built once. A failure is kept too, because a table has many rows."""
        found = self._built.get(text)
        if found is None:
            try:
                found = self.build(text)
            except DecodeError as error:
                found = error
            self._built[text] = found
        if isinstance(found, DecodeError):
            raise found.with_traceback(None)
        return found

    def by_id(self, id_: str, names: TableNames) -> S | None:
        """Return the structure with an id, of a table that the row may be of; None if no such structure is known.

        Raises:
            MissingTableError: the id is that of several tables, and nothing names one of them.
        """
        found = self._found.get((id_, names))
        if found is None and (found := self._search(id_, names)) is not None:
            if len(self._found) >= 4096:
                self._found.clear()
            self._found[id_, names] = found
        return found

    def _search(self, id_: str, names: TableNames) -> S | None:
        found = [structure for structure in self._of_id(id_) if not self._denied(structure.table, names)]
        if len({structure.table for structure in found}) > 1:
            named = {str(each) for each in (names.own or names.option, names.topic) if each is not None}
            found = [structure for structure in found if str(structure.table) in named]
            if len({structure.table for structure in found}) != 1:
                raise MissingTableError(
                    f"the schema id '{id_[:80]}' is that of several tables, and the message names none"
                )
        return _newest(found)

    def _denied(self, table: TableId, names: TableNames) -> bool:
        """Return whether a row with a schema id of this table says that it is of another one."""
        fit = names.fit(table)
        return not fit if fit is not None else names.topic in self._full_names

    def tables_of_id(self, id_: str) -> list[str]:
        """Return the tables that an id is known of."""
        return sorted({str(structure.table) for structure in self._of_id(id_)})

    def _of_id(self, id_: str) -> list[S]:
        return [self._structure(text) for text in self._known.get(id_, ())]

    def by_table(self, table: TableId) -> S | None:
        """Return the newest structure of a table."""
        return _newest(self._tables.get(table, ()))

    def fitting(self, table: TableId, columns: Collection[str]) -> S | None:
        """Return the newest structure of a table that has exactly these columns."""
        wanted = set(columns)
        return _newest(each for each in self._tables.get(table, ()) if each.layout.names.keys() == wanted)

    def table_of_topic(self, topic: str) -> TableId | None:
        """Return the one table that a topic is named after, with or without schema."""
        tables = [table for table in self._tables if topic in {str(table), table.name}]
        return tables[0] if len(tables) == 1 else None

    def table_of_columns(self, columns: Collection[str]) -> TableId | None:
        """Return the one table of which a structure has exactly these columns."""
        tables = [table for table in self._tables if self.fitting(table, columns) is not None]
        return tables[0] if len(tables) == 1 else None

    def versions(self, table: TableId) -> int:
        """Return how many structures of a table are known."""
        return len(self._tables.get(table, ()))

    @functools.cached_property
    def _tables(self) -> dict[TableId, list[S]]:
        tables: dict[TableId, list[S]] = {}
        for structure in self._readable():
            tables.setdefault(structure.table, []).append(structure)
        return tables

    @functools.cached_property
    def _full_names(self) -> set[str]:
        return {str(table) for table in self._tables if table.schema}

    def _readable(self) -> Iterator[S]:
        for contents in self._known.values():
            for text in contents:
                try:
                    yield self._structure(text)
                except DecodeError:
                    continue  # a row that needs it raises the error


def _newest(found: Iterable[S]) -> S | None:
    # contents are sorted, so every machine takes the same one of equal versions
    return max(found, key=lambda structure: structure.version, default=None)


_indexes: dict[int, tuple[Known, Index[Any]]] = {}


def index(known: Known, build: Callable[[bytes], S]) -> Index[S]:
    """Return the index of ``known``, made once for each function ``build`` from content to structure."""
    found = _indexes.get(id(known) ^ id(build))
    if found is None or found[0] is not known or found[1].build is not build:
        if len(_indexes) >= 16:
            _indexes.clear()
        found = _indexes[id(known) ^ id(build)] = (known, Index(known, build))
    return found[1]
