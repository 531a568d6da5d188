"""The table of a data message of Replicate, found by the schema id or by another name in the message."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from tidemark.errors import DecodeError, MalformedMessageError, MissingMetadataError, MissingTableError
from tidemark.events import Message, TableId
from tidemark.formats import Known
from tidemark.formats._connect import key_struct
from tidemark.formats._json import RowLayout, members, table_id, untyped
from tidemark.formats._replicate.types import column
from tidemark.formats._replicate.wire import MAGIC, Content, Options, Row, parsed


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
        by_row: bool = False,
    ) -> None:
        self.table = table
        self.layout = layout
        self.ordinals = ordinals
        """By column: its bit in a mask, counted from 0."""
        self.full = sum({1 << bit for bit in ordinals.values()})
        """The mask with all columns."""
        self.key = key
        self.version = version
        self.by_row = by_row
        """Whether the table is known from a row alone. The order of the row's columns then gives their ordinals."""
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


class Facts(NamedTuple):
    """The facts in a content beside its columns: arguments of ``Structure``."""

    table: TableId
    ordinals: dict[str, int]
    key: tuple[str, ...]
    version: int


def facts(content: Content) -> Facts:
    """Return the facts in a content beside its columns."""
    listed = content.tableStructure["tableColumns"]
    keyed = sorted((column.primaryKeyPosition, name) for name, column in listed.items() if column.primaryKeyPosition)
    return Facts(
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

    def by_id(self, id_: str, table: TableId | None, topic: str | None) -> S | None:
        """Return the structure with an id. If the id has several tables, return the one that the message names.

        Raises:
            MissingTableError: the message names none of them.
        """
        contents = self._known.get(id_)
        if contents is None:
            return None
        if len(contents) == 1:
            return self._structure(contents[0])
        found = [self._structure(text) for text in contents]
        if len({structure.table for structure in found}) > 1:
            names = {str(table), topic} - {None}
            found = [structure for structure in found if str(structure.table) in names]
        if len({structure.table for structure in found}) != 1:
            raise MissingTableError(f"the schema id '{id_[:80]}' is that of several tables, and the message names none")
        return _newest(found)

    def by_table(self, table: TableId) -> S | None:
        """Return the newest structure of a table."""
        return _newest(self._tables.get(table, ()))

    def by_topic(self, topic: str) -> S | None:
        """Return the newest structure of the one table that a topic is named after, with or without schema."""
        tables = [table for table in self._tables if topic in {str(table), table.name}]
        return self.by_table(tables[0]) if len(tables) == 1 else None

    def by_columns(self, names: Iterable[str]) -> S | None:
        """Return the newest structure of the one table that has exactly these columns."""
        wanted = set(names)
        found = [each for each in map(_newest, self._tables.values()) if each and set(each.layout.names) == wanted]
        return found[0] if len(found) == 1 else None

    def versions(self, table: TableId) -> int:
        """Return how many structures of a table are known."""
        return len(self._tables.get(table, ()))

    @functools.cached_property
    def _tables(self) -> dict[TableId, list[S]]:
        tables: dict[TableId, list[S]] = {}
        for structure in self._readable():
            tables.setdefault(structure.table, []).append(structure)
        return tables

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


def structure_of_row(
    row: Row, message: Message, options: Options, known: Index[Structure], *, required: bool
) -> Structure:
    """Return the table of a row in JSON, with its columns if metadata has them.

    It is found by the schema id, or else by the table that the message or the option names. Only a row without id is
    also found by its topic, and by its columns. A table without metadata gets the columns of the row, in their order.

    Raises:
        MissingMetadataError: neither the id nor the table is known, and metadata is ``required``.
        MissingTableError: nothing names the table.
    """
    named = row.named or named_by(options)
    for id_ in (row.id, row.headers.externalSchemaId):
        found = known.by_id(id_, named, message.topic) if id_ else None
        if found is not None:
            return found
    found = known.by_table(named) if named else None
    if found is not None:
        return found
    if row.id and required:
        raise not_landed(row.id)
    return _without_id(row, message, named, known)


def structure_of_bytes(id_: str | None, message: Message, options: Options, known: Index[S]) -> S:
    """Return the table of a row in Avro. Only the schema that wrote the row can read it.

    Raises:
        MissingMetadataError: the id is not known; or there is no id, and the table does not have exactly one structure.
        MalformedMessageError: nothing names the table.
    """
    named = named_by(options)
    if id_:
        found = known.by_id(id_, named, message.topic)
        if found is None:
            raise not_landed(id_)
        return found
    if named is None and message.topic is None:
        raise MalformedMessageError(f"no {MAGIC} envelope with a schema id: nothing tells how to read the message")
    found = known.by_table(named) if named else known.by_topic(message.topic or "")
    if found is None or known.versions(found.table) > 1:
        raise MissingMetadataError(
            "the message has no schema id, and not exactly one structure is known of the table that the option "
            f"`table` or the topic names; let the endpoint write {MAGIC} envelopes"
        )
    return found


def not_landed(id_: str) -> MissingMetadataError:
    """Return the error for an unknown schema id."""
    return MissingMetadataError(
        f"no metadata message with the schema id '{id_[:80]}' has landed; land the dump of the metadata topic, and the "
        "message again with it or later; of rows in JSON see also the options `table` and `metadata`"
    )


def named_by(options: Options) -> TableId | None:
    """Return the table that the option names; None if it is not set."""
    return _table_of(options.table) if options.table else None


def _without_id(row: Row, message: Message, named: TableId | None, known: Index[Structure]) -> Structure:
    names = tuple(members(row.image or b"{}"))
    if named is None:
        found = known.by_topic(message.topic) if message.topic else None if row.id else known.by_columns(names)
        if found is not None:
            return found
        named = _table_of(message.topic) if message.topic else None
    if named is None:
        raise MissingTableError(
            "the message names no table, no schema id and no topic; set the option `table` in the source file"
        )
    return _structure_by_row(named, names, _key(message, names))


def _key(message: Message, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the columns of the record key, if it is an object with columns of the row."""
    key = key_struct(message.key) if message.key else None
    return key.names if key and key.names and set(key.names) <= set(names) else None


@functools.lru_cache(maxsize=1024)
def _table_of(text: str) -> TableId:
    """Return the table of ``schema.table`` or ``table``, as topics and the option write it."""
    found = table_id(text)
    if found.schema is not None or found.database is None:
        return found
    return TableId(database=None, schema=found.database, name=found.name)


@functools.lru_cache(maxsize=1024)
def _structure_by_row(table: TableId, names: tuple[str, ...], key: tuple[str, ...] | None) -> Structure:
    return Structure(table, untyped(names), {name: bit for bit, name in enumerate(names)}, key, by_row=True)
