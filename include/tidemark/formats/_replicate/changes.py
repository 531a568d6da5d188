"""From a data message of Replicate, in JSON or Avro, to a row change: operation, masks, position, transaction.

``changeSequence`` orders all changes of a task. It has 16 digits of a time and 19 of a counter. Rows of the initial
load (REFRESH) have none.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from typing import Final, Literal

import msgspec

from tidemark.errors import MalformedMessageError, MissingKeyError, MissingMetadataError, UnknownOperationError
from tidemark.events import ChangeEvent, Message, Operation, SchemaChange, Transaction
from tidemark.formats._json import NULL, members
from tidemark.formats._replicate.structure import Structure
from tidemark.formats._replicate.wire import Headers, Lineage, Options, Row
from tidemark.positions import Position, changed, loaded
from tidemark.values import iso8601

OPERATIONS = {
    "REFRESH": Operation.SNAPSHOT,
    "INSERT": Operation.INSERT,
    "UPDATE": Operation.UPDATE,
    "DELETE": Operation.DELETE,
}

DIALECT = "replicate"
"""``SchemaChange.dialect``: the statement is not SQL but a metadata message."""


def schema_change(message: Message, lineage: Lineage | None, statement: bytes, table: Structure) -> SchemaChange:
    """Return the schema change of a metadata message, at the time when the message was written."""
    written = lineage.timestamp if lineage else None
    captured_at = _time(written)
    return SchemaChange(
        table=table.table,
        position=changed(_sequence_of(written), *message.order),
        statement=statement.decode(),
        dialect=DIALECT,
        captured_at=captured_at,
        shape=table.layout.shape,
    )


def change(message: Message, row: Row, table: Structure, options: Options, *, guessed: bool) -> ChangeEvent:
    """Return the row change of a data message.

    Args:
        message: the data message.
        row: what is in it.
        table: the structure that reads the row.
        options: of the source.
        guessed: whether the structure was not found by the schema id of the row.

    Raises:
        UnknownOperationError: Replicate has no such operation.
        MalformedMessageError: an image is missing, a header is broken, or the mask leaves out a value.
        MissingMetadataError: the mask leaves out a value, and the structure is a guess.
        MissingKeyError: the message lacks a key column.
    """
    headers = row.headers
    operation = _operation(headers)
    # A name of a column has a quotation mark: an image without one has no columns.
    data = row.data if row.data and b'"' in row.data else None
    old = row.before if row.before and b'"' in row.before else None
    image = data or (old if operation is Operation.DELETE else None)
    if image is None:
        raise MalformedMessageError(f"`data` is missing, null or empty, and the operation is {headers.operation}")
    committed_at = _time(headers.timestamp)
    mask = _mask(headers.columnMask, options.mask_byte_order)
    masked = table.outside(mask) if mask is not None and mask != table.full else ()
    layout, missing = table.layout, _NONE
    if not layout.fits(image):
        found = members(image)
        layout, missing = layout.widened(found), layout.missing(found)
    if masked:
        _check_mask(masked, image, old, guessed=guessed)
    before: bytes | None = None
    after: bytes | None = image
    absent = _NONE
    if operation is Operation.DELETE:
        before, after = _deleted(image, table, headers, options, masked, is_whole=not missing), None
    else:
        if masked or (missing and operation is Operation.UPDATE):
            absent = tuple(dict.fromkeys((*masked, *missing)))
        if absent or missing:
            _check_key(table, table.layout.names.keys() - {*absent, *missing})
        if operation is Operation.UPDATE and old is not None:
            before = _captured(old, masked, ()) if masked else old
            layout = layout if layout.fits(before) else layout.widened(members(before))
    return ChangeEvent(
        table=table.table,
        operation=operation,
        position=_position(headers, operation, message),
        committed_at=committed_at,
        transaction=_transaction(headers),
        before=before,
        after=after,
        shape=layout.shape,
        partial=bool(absent),
        absent=absent,
        key=table.key,
    )


def _deleted(
    image: bytes, table: Structure, headers: Headers, options: Options, masked: tuple[str, ...], *, is_whole: bool
) -> bytes:
    """Return what is known of a deleted row.

    Raises:
        MissingKeyError: the message lacks a key column.
    """
    changes = _mask(headers.changeMask, options.mask_byte_order)
    unsure = table.outside(changes) if changes and changes != table.full else ()
    before = _captured(image, masked, unsure)
    if not is_whole or before is not image:
        _check_key(table, members(before).keys())
    return before


def _operation(headers: Headers) -> Operation:
    operation = OPERATIONS.get(headers.operation or "")
    if operation is None:
        raise UnknownOperationError(f"`operation` is {headers.operation!r}; Replicate has {', '.join(OPERATIONS)}")
    return operation


def _captured(image: bytes, masked: tuple[str, ...], unsure: tuple[str, ...]) -> bytes:
    """Return an old image without the nulls that stand for unknown values.

    These are the columns ``masked``, outside ``columnMask``. In a DELETE they are also nulls in the columns ``unsure``,
    outside ``changeMask``: that mask has the key, and Replicate fills the other columns with nulls.
    """
    if not (masked or unsure):
        return image
    found = members(image)
    kept = {
        name: value
        for name, value in found.items()
        if name not in masked and not (name in unsure and bytes(value) == NULL)
    }
    return image if len(kept) == len(found) else msgspec.json.encode(kept)


def _check_mask(masked: tuple[str, ...], *images: bytes | None, guessed: bool) -> None:
    """Refuse a mask that leaves out a column with a value: Replicate fills in null for what it does not know.

    So the bits are those of other columns. The values that the mask leaves out would be lost, and the nulls that it
    does not leave out would be published.
    """
    for image in images:
        found = {} if image is None else members(image)
        lost = next((name for name in masked if bytes(found.get(name, NULL)) != NULL), None)
        if lost is None:
            continue
        problem = f"`columnMask` leaves out {lost[:80]}, which has a value"
        if guessed:
            raise MissingMetadataError(
                f"{problem}: without the table's metadata message it cannot be read; land that, and the message again "
                "with it or later; is the option `mask_byte_order` right?"
            )
        raise MalformedMessageError(
            f"{problem}; is the option `mask_byte_order` right, and is the newest metadata message with the schema id "
            "that of the row?"
        )


def _check_key(table: Structure, there: Collection[str]) -> None:
    lost = [name for name in table.key or () if name not in there]
    if lost:
        raise MissingKeyError(
            f"the message lacks {', '.join(lost)} of the key of {table.table}: which row, nobody can tell"
        )


_NONE: tuple[str, ...] = ()

_HEXADECIMAL = re.compile(r"(?:[0-9a-fA-F]{2}){1,12500}")


@functools.lru_cache(maxsize=1024)
def _mask(text: str | None, order: Literal["big", "little"]) -> int | None:
    """Return a mask; None without one. The column of ordinal 1 has the least significant bit, and so on upwards."""
    if not text:
        return None
    if not _HEXADECIMAL.fullmatch(text):
        raise MalformedMessageError(f"a mask that is no hexadecimal number of whole bytes: {text[:80]!r}")
    return int.from_bytes(bytes.fromhex(text), order)


def _position(headers: Headers, operation: Operation, message: Message) -> Position:
    """Return the change sequence and the place in the transaction; without a sequence, time and place in the dump."""
    text = headers.changeSequence
    number = _number("transactionEventCounter", headers.transactionEventCounter) or 0
    if text is None or text == "":
        if operation is Operation.SNAPSHOT:
            return loaded(*message.order)
        if not headers.timestamp:
            raise MalformedMessageError("neither `changeSequence` nor `timestamp`: the change has no place in the log")
        return changed(_sequence_of(headers.timestamp), number, *message.order)
    sequence = _number("changeSequence", text) or 0
    if operation is Operation.SNAPSHOT:
        return changed(sequence, number, *message.order)
    return changed(sequence, number)


_DIGITS: Final = 60
"""Most digits of a number. A sequence has 35."""


def _number(name: str, value: str | int | None) -> int | None:
    if type(value) is str and value.isascii() and value.isdecimal() and len(value) <= _DIGITS:
        return int(value)
    if value is None or value == "":
        return None
    if type(value) is int and 0 <= value < 10**_DIGITS:
        return value
    raise MalformedMessageError(f"`{name}` is {str(value)[:80]!r}, which is no number of a sequence")


_CLOCK = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,12}))?", re.ASCII)


@functools.lru_cache(maxsize=4096)
def _sequence_of(timestamp: str | None) -> int:
    """Return the first change sequence of a time: 14 digits for its seconds, 2 for hundredths, and 19 zeros."""
    found = _CLOCK.match(timestamp or "")
    if found is None:
        return 0
    *clock, fraction = found.groups(default="")
    return int("".join(clock) + fraction[:2].ljust(2, "0") + "0" * 19)


_FINER = re.compile(r"(?<=\.\d{6})\d+", re.ASCII)


@functools.lru_cache(maxsize=4096)
def _time(text: str | None) -> int | None:
    """Return the epoch µs of a UTC time. Finer digits are cut off."""
    if not text:
        return None
    if len(text) > 40:
        raise MalformedMessageError(f"`timestamp` is {text[:80]!r}, which is no time")
    try:
        micros, offset = iso8601.read(_FINER.sub("", text))
    except ValueError as error:
        raise MalformedMessageError(f"`timestamp` is {text[:80]!r}: {error}") from error
    return micros - offset


def _transaction(headers: Headers) -> Transaction | None:
    number = _number("transactionEventCounter", headers.transactionEventCounter)
    mark = headers.transactionLastEvent
    last = _last(mark) if isinstance(mark, str) else mark
    if not headers.transactionId and number is None and last is None:
        return None
    return Transaction(id=headers.transactionId or None, number=number, last=last)


def _last(text: str) -> bool | None:
    """Return the flag that is written as text, as in the document."""
    known = {"true": True, "false": False, "": None}
    if text.lower() not in known:
        raise MalformedMessageError(f"`transactionLastEvent` is {text[:80]!r}; it is true or false")
    return known[text.lower()]
