"""Recognises events of erased rows, by keyed hashes of their keys. This module is light to import.

After an erasure, the ledger keeps a keyed hash (HMAC-SHA-256) of the key that was erased, and never the key. Whatever
decodes messages compares the hash of each event's key with it, so a dump that is delivered again brings nothing back.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

import msgspec

from tidemark.errors import UnreadableValueError
from tidemark.events import ChangeEvent, Column, Event, Message, Quarantined, Shape, TableId, Transaction
from tidemark.normalization.shapes import bounded
from tidemark.positions import Position, encode_position
from tidemark.values.declared_types import DeclaredEncodings, as_declared, entry_for
from tidemark.values.plain import read_value
from tidemark.values.plain_types import EXACT, Value

AGAIN = "again"
"""Detail of an erased event that was recognised when its message was decoded."""

EVER = (1 << 63) - 1
"""A time after all times: an erasure that is being searched for leaves out no event as a newer one."""

EVERYWHERE = "\U0010ffff"
"""A position above all positions, for the same purpose."""

Decode = Callable[[Message], "list[Event] | Quarantined"]
"""Returns the events of a message, or why it cannot be decoded."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class ErasedEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is left of a change event of an erased row: its place, and nothing of its values."""

    table: TableId
    operation: str
    position: Position
    committed_at: int | None = None
    captured_at: int | None = None
    transaction: Transaction | None = None


class KeyColumn(msgspec.Struct, frozen=True, kw_only=True):
    """How one column of an erased key is read from images."""

    name: str
    """In the published table."""
    type: str
    """In the published table; an Iceberg type string."""
    called: tuple[str, ...]
    """Every name that images have for it."""


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """One erased key of a table."""

    object: str
    """The table as source files name it."""
    columns: tuple[KeyColumn, ...]
    digest: str
    """``digest_of`` the key."""
    before: int
    """Epoch µs: an event that was committed later is of a new row."""
    horizon: str
    """The highest position that the table had; it decides for events without a commit time."""
    begins: str = ""
    ends: str | None = None
    """The positions from which on, and before which, the row had this key, and its events came under this name."""

    def covers(self, committed_at: int | None, position: str | None) -> bool:
        """Return whether an event of the key is of the erased row, not of one that came later, or has the key now.

        An event whose position has no text (None) enters no table, so no row can have come from it later.
        """
        if position is None:
            return committed_at is None or committed_at <= self.before
        if position < self.begins or (self.ends is not None and position >= self.ends):
            return False
        return position <= self.horizon if committed_at is None else committed_at <= self.before


def canonical(value: Value, kind: str) -> str | None:
    """Return one text for all ways to write a value of a type; None for null.

    >>> canonical("1.50", "decimal(9, 2)"), canonical("1.5", "decimal(10, 3)"), canonical("7", "long")
    ('1.5', '1.5', '7')
    >>> canonical("12345678901234567890123456789.10", "decimal(38, 2)"), canonical("-0.0", "decimal(9, 2)")
    ('12345678901234567890123456789.1', '0')
    """
    if value is None:
        return None
    text = str(value)
    if kind.startswith("decimal"):
        return f"{Decimal(text).normalize(EXACT) or Decimal():f}"
    if kind == "float":
        return repr(struct.unpack("<f", struct.pack("<f", float(text)))[0])
    return repr(float(text)) if kind == "double" else text


def digest_of(secret: bytes, table: str, key: Sequence[tuple[str, str]]) -> str:
    """Return the keyed hash of a key: names of its columns, and their values as ``canonical`` writes them."""
    return hmac.new(secret, msgspec.json.encode([table, key]), hashlib.sha256).hexdigest()


def fingerprint(secret: bytes) -> str:
    """Return a text by which a secret is recognised. It reveals nothing of the secret or of a key."""
    return hmac.new(secret, b"tidemark erase", hashlib.sha256).hexdigest()[:16]


class ErasedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The erased keys of a source, and the secret by which they are recognised."""

    secret: bytes
    erasures: tuple[Erasure, ...]
    declared: Mapping[str, DeclaredEncodings] = {}
    """By table or pattern, the types and encodings that the source file declares."""

    def by_table(self) -> dict[str, dict[tuple[KeyColumn, ...], dict[str, list[Erasure]]]]:
        """Return the erasures by table, by the columns of their key, and by their digest."""
        found: dict[str, dict[tuple[KeyColumn, ...], dict[str, list[Erasure]]]] = {}
        for each in self.erasures:
            of_table = found.setdefault(each.object, {})
            of_table.setdefault(each.columns, {}).setdefault(each.digest, []).append(each)
        return found


class Recogniser:
    """Tells the events of erased rows from others."""

    def __init__(self, keys: ErasedKeys) -> None:
        self._keys = keys
        self._by_table = keys.by_table()
        self._shapes: dict[int, tuple[Shape, dict[str, Column]]] = {}

    def is_erased(self, event: ChangeEvent) -> bool:
        """Return whether an event has, before or after it, the key of an erased row."""
        table = str(event.table)
        if table not in self._by_table or event.shape is None:
            return False
        found = self.erasures_of(table, event.shape, event.before, event.after) or ()
        return any(each.covers(event.committed_at, _position(event)) for each in found)

    def erasures_of(self, table: str, shape: Shape, before: bytes | None, after: bytes | None) -> list[Erasure] | None:
        """Return the erasures of the keys that a row has before or after an event; None if its images show no key.

        Args:
            table: as the source names it.
            shape: of the images.
            before: the image before the event.
            after: the image after it.
        """
        columns, images = self._columns(table, shape), (_image(before), _image(after))
        found, is_known = list[Erasure](), False
        for key, digests in self._by_table.get(table, {}).items():
            for values in filter(None, _keys_of(key, columns, *images)):
                is_known = True
                found += digests.get(digest_of(self._keys.secret, table, values), ())
        return found if is_known else None

    def stripped(self, events: Sequence[Event]) -> tuple[list[Event | ErasedEvent], list[int]]:
        """Return events, with only their places where their rows are erased, and the numbers of these in the list."""
        found: list[Event | ErasedEvent] = []
        numbers = []
        for number, event in enumerate(events):
            if isinstance(event, ChangeEvent) and self.is_erased(event):
                numbers.append(number)
                found.append(_stripped(event))
            else:
                found.append(event)
        return found, numbers

    def _columns(self, table: str, shape: Shape) -> dict[str, Column]:
        known = self._shapes.get(id(shape))
        if known is None or known[0] is not shape:
            written = entry_for(self._keys.declared, table)
            full = as_declared(shape, written) if written else shape
            known = bounded(self._shapes)[id(shape)] = (shape, {column.name: column for column in full.columns})
        return known[1]


class Noting:
    """A decoder that passes on only the places of events whose rows are erased, and notes them."""

    def __init__(self, keys: ErasedKeys, decode: Decode) -> None:
        self._recogniser = Recogniser(keys)
        self._decode = decode
        self.places: list[tuple[str, int, int]] = []
        """File, place and number in its message of each such event."""
        self.newest: int | None = None
        """The newest commit time of such an event (epoch µs)."""

    def __call__(self, message: Message) -> list[Event | ErasedEvent] | Quarantined:
        """Decode one message."""
        events = self._decode(message)
        if isinstance(events, Quarantined):
            return events
        found, numbers = self._recogniser.stripped(events)
        self.places += [(message.file, message.place, number) for number in numbers]
        times = (events[number].committed_at for number in numbers)
        self.newest = max((at for at in (self.newest, *times) if at is not None), default=None)
        return found


def _position(event: ChangeEvent) -> str | None:
    """Return the encoded position; None where it has a number below zero, as a Kafka record with offset -1 has."""
    try:
        return encode_position(event.position)
    except ValueError:
        return None


def _image(image: bytes | None) -> dict[str, msgspec.Raw]:
    return {} if image is None else _members.decode(image)


def _stripped(event: ChangeEvent) -> ErasedEvent:
    return ErasedEvent(
        table=event.table,
        operation=event.operation,
        position=event.position,
        committed_at=event.committed_at,
        captured_at=event.captured_at,
        transaction=event.transaction,
    )


def _keys_of(
    key: Sequence[KeyColumn],
    columns: Mapping[str, Column],
    before: Mapping[str, msgspec.Raw],
    after: Mapping[str, msgspec.Raw],
) -> Iterator[list[tuple[str, str]] | None]:
    """Yield the values of a key after an event and before it; None for a key that is not known in full."""
    for first, second in ((after, before), (before, after)):
        if first:
            values = [_value(column, columns, first, second) for column in key]
            named = [(column.name, value) for column, value in zip(key, values, strict=True) if value is not None]
            yield named if len(named) == len(key) else None


def _value(column: KeyColumn, columns: Mapping[str, Column], *images: Mapping[str, msgspec.Raw]) -> str | None:
    for image in images:
        for name in column.called:
            if name not in image or name not in columns:
                continue
            typed = Column(name, column.type, columns[name].encoding)
            try:
                return canonical(read_value(bytes(image[name]), typed, columns[name].type), column.type)
            except UnreadableValueError:
                return None
    return None
