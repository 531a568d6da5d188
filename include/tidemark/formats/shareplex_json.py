"""SharePlex JSON, as DTS and SharePlex write changes of an Oracle database to Kafka: one message for each row.

"Data formats of a Kafka cluster" of DTS, "Shareplex JSON":

    {"meta": {"time": "2017-06-16T14:24:34", "userid": 84, "op": "ins", "scn": "14589063118712",
     "rowid": "AAATGpAAIAAItcIAAA", "trans": "7.0.411499", "seq": 1, "size": 11, "table": "CL_BIZ1.MIO_LOG",
     "idx": "1/11", "posttime": "2017-06-16T14:33:52"}, "data": {"MIO_LOG_ID": "32539737"}}

``data`` is the inserted or deleted row. Of an update it holds the changed columns: a column that it lacks is unchanged,
and a column with null was set to null. ``key`` is the old row as far as the source logs it, at least its key. So
``after`` is ``key`` overlaid by ``data``, in the bytes of the message. The messages do not name types or key columns.
``rowid`` is not read, because a row that moves gets another one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Literal

import msgspec
from pydantic import BaseModel, ConfigDict

from tidemark.errors import (
    IncompleteMessageError,
    MalformedMessageError,
    MissingTableError,
    UnknownOperationError,
)
from tidemark.events import ChangeEvent, ControlEvent, Event, Message, Operation, SchemaChange, TableId, Transaction
from tidemark.formats import Traits
from tidemark.formats._json import ABSENT, NULL, RowLayout, image_of, members, read, untyped
from tidemark.formats._shareplex import number_of, overlaid, sequence
from tidemark.positions import Position, changed
from tidemark.values import iso8601

TOOLS = ("SharePlex", "Alibaba DTS")

UNTOLD = ("types", "the key", "the table of some deletes")

TRAITS = Traits(pairs_updates=True)

OPERATIONS = {
    "ins": Operation.INSERT,
    "upd": Operation.UPDATE,
    "del": Operation.DELETE,
    "insert": Operation.INSERT,
    "update": Operation.UPDATE,
    "delete": Operation.DELETE,
    "truncate": Operation.TRUNCATE,
    "update before": Operation.UPDATE,
    "update after": Operation.UPDATE,
}
"""Operations, in any case, with a blank or an underscore between words: the document has ``ins`` in its examples and
``INSERT`` in its table. ``drop column`` is one more operation, but not a row change."""

BEFORE, AFTER = "update before", "update after"
"""An update as two messages with the same ``scn`` and ``seq``: the old row, then the new one."""

DROP_COLUMN = "drop column"


class Options(BaseModel):
    """Facts that SharePlex messages do not contain."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    table: str | None = None
    """Table (``OWNER.TABLE``) of messages that name no table."""
    row_image: Literal["partial", "full"] = "partial"
    """``full`` if the source logs every column for every update (supplemental logging of all columns). ``key`` is then
    the whole row."""


class Meta(msgspec.Struct, gc=False):
    """The part of a message beside the row, without ``userid`` and ``rowid``."""

    op: str | None = None
    table: str | None = None
    """``OWNER.TABLE``."""
    scn: int | str | None = None
    """System change number of the commit: a string of digits."""
    seq: int | str | None = None
    """Number of the operation in its transaction, counted from 1."""
    size: int | str | None = None
    """Number of operations in the transaction."""
    idx: str | None = None
    """``seq/size``."""
    trans: str | None = None
    time: str | None = None
    """Time of the commit at the source, UTC, with or without ``Z``."""
    posttime: str | None = None
    """Time of the commit at the target."""


class SharePlexMessage(msgspec.Struct, gc=False):
    """The wire envelope."""

    meta: Meta
    data: msgspec.Raw = ABSENT
    key: msgspec.Raw = ABSENT


_message = msgspec.json.Decoder(SharePlexMessage)

_PART = r'(?:"[^"]+"|[^".]+)'

_PARTS = re.compile(rf"{_PART}(?:\.{_PART})*+")

_EACH_PART = re.compile(_PART)


def decode(message: Message, options: Options) -> list[Event]:
    """Return the event of ``message``; of a DROP COLUMN among other operations, also one that counts for them.

    Raises:
        DecodeError: the message is set aside.
    """
    if message.value is None or message.value == NULL:
        return [ControlEvent(kind="tombstone", position=changed(*message.order))]
    envelope = read(_message, message.value)
    meta = envelope.meta
    op = _operation(meta.op or "")
    if op == DROP_COLUMN:
        return _dropped_column(envelope, message, options)
    operation = OPERATIONS.get(op)
    if operation is None:
        allowed = ", ".join(map(str.upper, [*OPERATIONS, DROP_COLUMN]))
        raise UnknownOperationError(f"`op` is {meta.op!r}; SharePlex has, in any case, {allowed}")
    before, after, layout = _images(operation, op, envelope)
    return [
        ChangeEvent(
            table=_table(meta, options),
            operation=operation,
            position=_position(meta, op, message),
            committed_at=_micros(meta.time),
            captured_at=_micros(meta.posttime),
            transaction=_transaction(meta, op),
            before=before,
            after=after,
            shape=layout.shape if layout else None,
            partial=operation is Operation.UPDATE and options.row_image == "partial",
        )
    ]


@functools.lru_cache(maxsize=64)
def _operation(op: str) -> str:
    """Return the operation as ``OPERATIONS`` spells it."""
    return " ".join(op.replace("_", " ").lower().split())


def _images(
    operation: Operation, op: str, envelope: SharePlexMessage
) -> tuple[bytes | None, bytes | None, RowLayout | None]:
    """Return the images before and after, and the columns of both. A deleted row is in ``data``."""
    data, key = image_of(envelope.data), image_of(envelope.key)
    if operation is Operation.TRUNCATE:
        if data or key:
            raise MalformedMessageError(
                "a TRUNCATE with a row in `data` or `key`: is the table empty, or the row gone?"
            )
        return None, None, None
    if operation is Operation.INSERT:
        if data is None:
            raise MalformedMessageError("an insert without `data`")
        return None, data, untyped(tuple(members(data)))
    row, names = overlaid(key, data, is_one=operation is Operation.DELETE or op == BEFORE)
    layout = untyped(names)
    if operation is Operation.DELETE or op == BEFORE:
        return row, None, layout
    return (None if op == AFTER else key), row, layout


def _position(meta: Meta, op: str, message: Message) -> Position:
    """Return ``scn`` and ``seq``, which identify a change; without them, the place in the dump.

    Both halves of an update have the same ``scn`` and ``seq``. A last part says which half it is.
    """
    scn, seq = number_of(meta.scn, "scn"), sequence(meta.seq, meta.size, meta.idx)[0]
    half = (0,) if op == BEFORE else (1,) if op == AFTER else ()
    if scn is not None and seq is not None:
        return changed(scn, seq, *half)
    if half:
        raise MalformedMessageError(f"{op.upper()} without `scn` and `seq`: which halves are one update?")
    return changed(*message.order) if scn is None else changed(scn, *message.order)


def _transaction(meta: Meta, op: str) -> Transaction | None:
    """Return the transaction. Of an update in two messages, only the new row can be the last event."""
    number, size = sequence(meta.seq, meta.size, meta.idx)
    id_ = meta.trans or (None if meta.scn is None else str(meta.scn))
    if id_ is None:
        return None
    last = None if number is None or size is None else number == size and op != BEFORE
    return Transaction(id=id_, number=number, last=last)


@functools.lru_cache(maxsize=1024)
def _micros(time: str | None) -> int | None:
    """Return the epoch µs of a time. It is in UTC unless it has a zone."""
    if not time:
        return None
    try:
        micros, offset = iso8601.read(time)
    except ValueError as error:
        raise MalformedMessageError(f"{time[:60]!r} is no time in ISO 8601: {error}") from error
    return micros - offset


def _table(meta: Meta, options: Options) -> TableId:
    if not (meta.table or options.table):
        raise MissingTableError("the message names no table; set the option `table` (OWNER.TABLE) in the source file")
    return _table_id(meta.table or options.table or "")


@functools.lru_cache(maxsize=1024)
def _table_id(text: str) -> TableId:
    """Return the table. Each part of its name may be quoted, and what follows the owner is the name of the table."""
    if '"' in text and _PARTS.fullmatch(text):
        owner, *rest = [part.strip('"') for part in _EACH_PART.findall(text)]
        return TableId(None, owner, ".".join(rest)) if rest else TableId(None, None, owner)
    owner, _, name = text.partition(".")
    return TableId(database=None, schema=owner, name=name) if name else TableId(None, None, text)


def _dropped_column(envelope: SharePlexMessage, message: Message, options: Options) -> list[Event]:
    """Return a DROP COLUMN. It has a statement if ``data`` or ``key`` names the columns.

    The document shows no example of such a message. A member with a value may be another thing than a dropped column.
    ``size`` counts it among the operations of its transaction, so a control event with its number follows.

    Raises:
        IncompleteMessageError: it has such a member.
    """
    meta = envelope.meta
    table = _table(meta, options)
    image = image_of(envelope.data) or image_of(envelope.key)
    found = members(image) if image else {}
    if any(bytes(value) not in {NULL, b'""'} for value in found.values()):
        raise IncompleteMessageError(
            f"a DROP COLUMN of {table} with values ({', '.join(found)[:100]}): which columns went is not certain; load "
            "the table again"
        )
    drops = ", ".join(f"DROP COLUMN {_identifier(name)}" for name in found)
    names = ".".join(_identifier(part) for part in (table.schema, table.name) if part)
    change = SchemaChange(
        table=table,
        position=_position(meta, DROP_COLUMN, message),
        statement=f"ALTER TABLE {names} {drops}" if drops else "",
        dialect="oracle",
        committed_at=_micros(meta.time),
        captured_at=_micros(meta.posttime),
    )
    return [change, *_counted(meta, change)]


def _counted(meta: Meta, change: SchemaChange) -> Iterator[ControlEvent]:
    """Yield the control event that counts for a schema change, where its transaction has other operations."""
    transaction = _transaction(meta, DROP_COLUMN)
    if transaction is None or transaction.last is None or (transaction.last and transaction.number == 1):
        return
    yield ControlEvent(
        kind="drop_column",
        position=(*change.position, 0),
        committed_at=change.committed_at,
        captured_at=change.captured_at,
        transaction=transaction,
    )


def _identifier(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
