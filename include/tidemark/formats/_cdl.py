"""The Connect schemas of CDL messages, and the values that CDL writes in more than one way.

CDL has logical types of its own, beside the types of Kafka Connect and Debezium. The document prints their package as
``com.xxx``, so they are recognised by the last part of their names, in any case.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from tidemark.errors import MalformedMessageError, UnknownTypeError
from tidemark.events import Column, Encoding, Message, Operation
from tidemark.formats import _connect
from tidemark.formats._connect import ConnectSchema
from tidemark.formats._debezium import source as debezium_source
from tidemark.formats._debezium.log_places import Number
from tidemark.formats._debezium.unlogged import has_as_text
from tidemark.formats._json import NULL, RowLayout, members
from tidemark.formats._scalars import differ
from tidemark.positions import Position, changed, loaded
from tidemark.values import iso8601

APART = (
    "Write `options: {with_database: true}` into the source file, and name its tables with their databases there, then "
    "run `tidemark run SOURCE --reprocess`"
)
"""What keeps the rows of several databases apart (``Traits.apart``)."""

VENDOR_TYPES: dict[tuple[str, str], tuple[str | None, Encoding]] = {
    # text with any number of digits and any scale. The schema declares neither, so the source file has to.
    ("decimal", "string"): (None, Encoding.TEXT),
    ("timestamp", "string"): ("timestamp", Encoding.TEXT),
    ("timestamp", "int64"): ("timestamp", Encoding.EPOCH_MILLIS),
}
"""Last part of the name and schema ``type`` to column type; None where the messages do not declare it."""

_CONNECT = ("org.apache.kafka.connect.", "io.debezium.")

_TEXTS = frozenset({"string", "struct", "array", "map"})
"""Schema types that are kept as text. Under an unknown logical name, they still cannot be misread."""


class Layouts(NamedTuple):
    """The columns in a message's schema. Equal layouts are one object."""

    before: RowLayout | None
    after: RowLayout | None
    unique: RowLayout | None


@functools.lru_cache(maxsize=1024)
def layouts(schema: bytes) -> Layouts:
    """Return the layouts of the images that ``schema`` describes. Version 1.0 calls ``after`` ``data``.

    Raises:
        MalformedMessageError: not a Connect schema.
        UnknownTypeError: a column has an unknown type.
    """
    named = {field.field: field for field in _connect.fields(schema)}
    after = _layout(named.get("after") or named.get("data"))
    before = _layout(named.get("before"))
    if before is not None and after is not None and before.shape == after.shape:
        before = after
    return Layouts(before=before or after, after=after or before, unique=_layout(named.get("unique")))


def _layout(row: ConnectSchema | None) -> RowLayout | None:
    return RowLayout(map(_column, row.fields)) if row is not None and row.fields else None


def _column(field: ConnectSchema) -> Column:
    if field.name is None or field.name.startswith(_CONNECT):
        return _connect.column(field)
    end = field.name.rpartition(".")[2].lower()
    if (end, field.type) in VENDOR_TYPES:
        type_, encoding = VENDOR_TYPES[end, field.type]
        return Column(name=field.field or "", type=type_, encoding=encoding)
    if field.type in _TEXTS:
        return _connect.column(field)
    known = ", ".join(f"{name} ({physical})" for name, physical in VENDOR_TYPES)
    raise UnknownTypeError(
        f"column '{field.field}' has the type '{field.name}' ({field.type}), which is not known; CDL has {known}"
    )


def key(unique: bytes, found: Layouts | None) -> tuple[str, ...] | None:
    """Return the columns of ``unique``, by the schema or else by its value. A null ``unique`` gives an empty key."""
    if found is not None and found.unique is not None:
        return tuple(found.unique.names)
    if not unique:
        return None
    return () if unique == NULL else tuple(members(unique))


def check_key(unique: bytes | None, *rows: bytes | None) -> None:
    """Check that ``unique`` has the key of one of the rows that a message is about.

    A row that lacks a column of it tells nothing, and neither does a null, or a value of another kind.

    Raises:
        MalformedMessageError: it has another key.
    """
    if unique is None:
        return
    begins = (unique, unique[:-1] + b",")
    for row in rows:
        if row is not None and (row.startswith(begins) or _has_key(row, unique)):  # the key mostly comes first
            return
    shown = unique[:200].decode(errors="replace")
    raise MalformedMessageError(
        f"`unique` is {shown}, and the row has another key: which row is meant, nobody can tell; deliver the message "
        "as CDL wrote it, or load the table again"
    )


def _has_key(row: bytes, unique: bytes) -> bool:
    if has_as_text(row, unique):
        return True
    found, keys = members(row), members(unique)
    return not keys.keys() <= found.keys() or not any(differ(bytes(found[name]), bytes(keys[name])) for name in keys)


def lsn(value: Number) -> int | None:
    """Return a log sequence number; None if the message has none, or 0, which is no place in PostgreSQL's log.

    Raises:
        MalformedMessageError: not a number. Without it, the order would be wrong.
    """
    if value is None:
        return None
    number = debezium_source.whole_number(value)
    if number is None:
        raise MalformedMessageError(f"`lsn` is {str(value)[:60]!r}, not a log sequence number")
    return number or None


_WITH_LSN = ("postgres", "gauss")
"""Parts of the names of databases whose changes have an ``lsn``, in lower case: PostgreSQL, openGauss, GaussDB."""

_OF_CHANGES = frozenset({Operation.UPDATE, Operation.DELETE})
"""Operations that no row of an initial load has."""

_ABOVE_TIMES = 10**16
"""Ranks above a time in ms: positions without ``lsn`` had one here (docs/adr/0089)."""


def lsn_of(database: str | None) -> str:
    """Return what writes ``lsn``: a database of this kind, or one that is not named; empty if it has none."""
    if not database:
        return "a database that no `DATA_STORE` names"
    return database if any(name in database.lower() for name in _WITH_LSN) else ""


def position(lsn: int | None, message: Message, operation: Operation, *, needs_lsn: str) -> Position:
    """Return ``lsn``, then the place in the dump, because changes of one transaction may share an ``lsn``.

    Rows of an initial load, and of databases that have no ``lsn``, rank below all others, in the order of the dump.

    ``needs_lsn`` is what writes ``lsn`` with each change; empty where the database has none.

    Raises:
        MalformedMessageError: an UPDATE or a DELETE has none, and needs one.
    """
    if lsn is None:
        if operation in _OF_CHANGES and needs_lsn:
            raise MalformedMessageError(
                f"{operation} of {needs_lsn} without `lsn` (or it is 0), which its changes have: nothing ranks it "
                "among them; deliver it as CDL wrote it, or load the table again"
            )
        return loaded(_ABOVE_TIMES, *message.order)
    return changed(lsn, *message.order)


def micros(time: Number) -> int | None:
    """Return the epoch µs of a TIMESTAMP, which is epoch ms (a number or its digits) or ISO 8601 text in UTC.

    Raises:
        MalformedMessageError: it is neither.
    """
    if time is None or isinstance(time, int) or time.isdecimal():
        return debezium_source.micros(None, time)
    return _text_micros(time)


@functools.lru_cache(maxsize=1024)
def _text_micros(text: str) -> int:
    try:
        instant, offset = iso8601.read(text)
    except ValueError as error:
        raise MalformedMessageError(f"{text[:60]!r} is no time in ISO 8601: {error}") from error
    return instant - offset


@functools.lru_cache(maxsize=1024)
def _listed(text: str) -> tuple[str, ...]:
    if text.lstrip()[:1] == "[":
        try:
            return tuple(msgspec.json.decode(text, type=list[str]))
        except msgspec.MsgspecError as error:
            raise MalformedMessageError(f"LOB_COLUMNS is no list of names: {error}") from error
    return tuple(name.strip() for name in text.split(",") if name.strip())


def names(lobs: str | list[str]) -> tuple[str, ...]:
    """Return the names in LOB_COLUMNS: a list, or a text that is a JSON list or has names between commas.

    Raises:
        MalformedMessageError: the JSON is broken.
    """
    return _listed(lobs) if isinstance(lobs, str) else tuple(lobs)


MISSING: frozenset[bytes | None] = frozenset({None})

NULL_TOO: frozenset[bytes | None] = frozenset({None, NULL})
"""Values of a large object that mean *not captured*. None stands for a missing member."""


def not_captured(
    lobs: str | list[str], found: Mapping[str, msgspec.Raw], unchanged: frozenset[bytes | None]
) -> tuple[str, ...]:
    """Return the large objects that an UPDATE did not capture. ``found`` are the members of its row."""
    return tuple(name for name in names(lobs) if (bytes(found[name]) if name in found else None) in unchanged)


@functools.lru_cache(maxsize=1024)
def merged(absent: tuple[str, ...], more: tuple[str, ...], layout: RowLayout) -> tuple[str, ...]:
    """Return the columns of ``absent``, and those of ``more`` that the layout has, each once."""
    return tuple(dict.fromkeys((*absent, *(name for name in more if name in layout.names))))
