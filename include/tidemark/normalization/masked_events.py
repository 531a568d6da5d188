"""Masks of values where events are made (``mask_at: landing``), before anything of them is written.

A mask is a function of the value as text (``values.masking``). The value is read here as the table would read it, and
written back into the image as text; the shape says of the column how it was masked, so nobody masks it again. Spark's
workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import NamedTuple

import msgspec

from tidemark.ddl.migrations import is_shortened, originals
from tidemark.ddl.names import connected
from tidemark.errors import MalformedMessageError, UnreadableValueError
from tidemark.events import ChangeEvent, Column, Encoding, Event, Message, Quarantined, SchemaChange, Shape, TableId
from tidemark.normalization.erased_keys import ErasedEvent
from tidemark.normalization.shapes import bounded
from tidemark.text import matches
from tidemark.values.declared_types import DeclaredEncodings, as_declared, entry_for, is_pattern, may_match_longer
from tidemark.values.masking import Mask, masked
from tidemark.values.plain import read_value

HIDDEN_DETAIL = (
    "not shown, because the source masks values and the sentence may quote one: `tidemark decode` with the dump file "
    "shows it"
)

Decoded = list[Event] | list[Event | ErasedEvent] | Quarantined
"""What a message is decoded to."""

Recognise = Callable[[Message], Decoded]

_UNREADABLE = msgspec.Raw(b'"unreadable"')
"""In place of a value that does not fit. No column of the encoding ``HEX`` can be read from it."""


class _Known(NamedTuple):
    """A shape that came before."""

    shape: Shape
    readings: Mapping[str, _Reading]
    """Of the masked columns."""
    names: frozenset[str]
    """Of all columns."""


class _Fault(Enum):
    """Stands for a value that does not fit."""

    FAULT = "fault"


_FAULT = _Fault.FAULT

_NOTHING = _Known(Shape(()), {}, frozenset())

_NO_MEMBERS: Mapping[str, msgspec.Raw] = {}

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Masked(NamedTuple):
    """What an entry of the source file says of masked columns."""

    masks: tuple[tuple[str, Mask], ...]
    """Patterns, in the order of the file."""
    renames: tuple[tuple[str, str], ...] = ()
    """Names at the source and published names: the entry may use either."""


class _Reading(NamedTuple):
    """How one column of an image is read and masked."""

    mask: Mask
    typed: Column
    declared: str | None
    written: Column
    """As the shape describes it afterwards."""
    faulty: Column
    """Likewise, where the value does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """The masks of a source, as the source file and the statements that landed give them."""

    tables: Mapping[str, Masked]
    """By entry of the source file."""
    labels: Mapping[Mask, str]
    """What shapes say of each mask (``Masks.label``)."""
    secret: bytes | None = field(default=None, repr=False)
    renamed: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """By table, the names of columns that statements connect."""
    declared: Mapping[str, DeclaredEncodings] = field(default_factory=dict)
    """By table or pattern, the types and encodings that the source file declares."""
    publishes_copies: bool = False
    """Whether tables are published that schema-change tools made."""

    def entry_of(self, table: str) -> Masked | None:
        """Return what is said of a table; of one that a tool made to change another one, what is said of that one."""
        made_for = [] if self.publishes_copies else copied(table, self.tables)
        if made_for and is_shortened(table.rpartition(".")[2]):
            return self._of_shortened(table, made_for)
        entries = [entry_for(self.tables, name) for name in (*made_for, table)]
        return next((entry for entry in entries if entry is not None and entry.masks), entries[-1])

    def _of_shortened(self, table: str, made_for: Sequence[str]) -> Masked:
        """Return all that is said of the tables that one with a shortened name may be made for, landed or not.

        Its rows are hardly ever published: a mask too many harms nothing, and one too few shows a value.

        Args:
            table: the tool's table.
            made_for: the beginning of the table's name, and entries whose names begin so.
        """
        begin, *_ = made_for
        own = [name for name in made_for if name in self.tables]
        patterns = [name for name in self.tables if is_pattern(name) and may_match_longer(name, begin)]
        entries = [self.tables[name] for name in (*own, *patterns)]
        entries += [entry for entry in [entry_for(self.tables, table)] if entry is not None]
        masks = chain.from_iterable(entry.masks for entry in entries)
        return Masked(tuple(masks), tuple(chain.from_iterable(entry.renames for entry in entries)))

    def mask_of(self, table: str, name: str) -> Mask | None:
        """Return the mask of a column, by any name that it ever had."""
        entry = self.entry_of(table)
        if entry is None or not entry.masks:
            return None
        renames = (self.renamed.get(each, ()) for each in (table, *copied(table, self.renamed)))
        called = connected([name], (*entry.renames, *chain.from_iterable(renames)))
        return next((mask for pattern, mask in entry.masks if matches(called, [pattern])), None)

    def over(self, decode: Recognise) -> Recognise:
        """Return a decoder whose events have masked values."""
        mask = self.masker()
        return lambda message: mask(decode(message))

    def masker(self) -> Callable[[Decoded], Decoded]:
        """Return what masks the events of a message, and hides why it cannot be decoded."""
        masker = _Masker(self)

        def masked_all(events: Decoded) -> Decoded:
            if isinstance(events, Quarantined):
                return Quarantined(events.reason, HIDDEN_DETAIL)
            try:
                return [masker.masked(event) for event in events]
            except (msgspec.MsgspecError, ValueError, RecursionError):  # a hostile message may raise anything
                return Quarantined(MalformedMessageError.reason, HIDDEN_DETAIL)

        return masked_all


def copied(table: str, known: Iterable[str]) -> list[str]:
    """Return the tables that a tool may have made this one for, as source files name them; none for any other table.

    >>> copied("shop._people_gho", ["shop.people"]), copied("shop.people", ["shop.people"])
    (['shop.people'], [])
    """
    database, dot, name = table.rpartition(".")
    return originals(database + dot, name, known)


class _Masker:
    """Masks the values of events. It is fast when the same shape comes again, which is usual for decoders."""

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._known: dict[tuple[TableId, int], _Known] = {}
        self._masked: dict[TableId, bool] = {}
        self._shapes: dict[tuple[TableId, int, frozenset[str]], tuple[Shape, Shape]] = {}

    def masked(self, event: Event | ErasedEvent) -> Event | ErasedEvent:
        """Return an event with masked values, and with a shape that says so."""
        if type(event) is SchemaChange and event.table and event.shape and self._masks(event.table):
            return msgspec.structs.replace(event, shape=self._shape(event.table, event.shape, frozenset()))
        if type(event) is not ChangeEvent or not self._masks(event.table):
            return event
        known = self._of_shape(event.table, event.shape) if event.shape else _NOTHING
        readings: Mapping[str, _Reading] = known.readings
        before = None if event.before is None else _members.decode(event.before)
        after = None if event.after is None else _members.decode(event.after)
        if unknown := ((before or _NO_MEMBERS).keys() | (after or _NO_MEMBERS).keys()) - known.names:
            named = {name: self._reading(event.table, Column(name)) for name in unknown}  # no shape describes them
            readings = {**readings, **{name: reading for name, reading in named.items() if reading is not None}}
        old, new = self._texts(readings, before), self._texts(readings, after)
        faults = frozenset(name for each in (old, new) for name, text in each.items() if text is _FAULT)
        return msgspec.structs.replace(
            event,
            before=_written(event.before, before, old, faults),
            after=_written(event.after, after, new, faults),
            shape=event.shape and self._shape(event.table, event.shape, faults),
        )

    def _masks(self, table: TableId) -> bool:
        """Return whether any column of a table may be masked."""
        known = self._masked.get(table)
        if known is None:
            entry = self._masking.entry_of(str(table))
            known = self._masked[table] = entry is not None and bool(entry.masks)
        return known

    def _texts(
        self, readings: Mapping[str, _Reading], members: Mapping[str, msgspec.Raw] | None
    ) -> dict[str, str | _Fault | None]:
        """Return the masked values of an image, by column."""
        found: dict[str, str | _Fault | None] = {}
        members = members or _NO_MEMBERS
        for name in readings.keys() & members.keys():
            reading = readings[name]
            try:
                value = read_value(bytes(members[name]), reading.typed, reading.declared)
            except UnreadableValueError:
                found[name] = _FAULT
            else:
                found[name] = masked(reading.mask, None if value is None else str(value), self._masking.secret)
        return found

    def _of_shape(self, table: TableId, shape: Shape) -> _Known:
        """Return how the columns of a shape are masked."""
        known = self._known.get((table, id(shape)))
        if known is None or known.shape is not shape:  # Python may use an id again when its object is gone
            written = entry_for(self._masking.declared, str(table))
            full = as_declared(shape, written) if written else shape
            found = {column.name: self._reading(table, column) for column in full.columns}
            readings = {name: reading for name, reading in found.items() if reading is not None}
            known = bounded(self._known)[table, id(shape)] = _Known(shape, readings, frozenset(found))
        return known

    def _reading(self, table: TableId, column: Column) -> _Reading | None:
        mask = self._masking.mask_of(str(table), column.name)
        if mask is None:
            return None
        label = self._masking.labels[mask]
        return _Reading(
            mask=mask,
            typed=Column(column.name, "string", column.encoding),
            declared=column.type,
            written=Column(column.name, "string", Encoding.PLAIN, label),
            faulty=Column(column.name, "string", Encoding.HEX, label),
        )

    def _shape(self, table: TableId, shape: Shape, faults: frozenset[str]) -> Shape:
        """Return the shape of an image with masked values."""
        known = self._shapes.get((table, id(shape), faults))
        if known is None or known[0] is not shape:
            readings = self._of_shape(table, shape).readings
            columns = [_described(column, readings.get(column.name), faults) for column in shape.columns]
            known = bounded(self._shapes)[table, id(shape), faults] = (shape, Shape(tuple(columns)))
        return known[1]


def _described(column: Column, reading: _Reading | None, faults: frozenset[str]) -> Column:
    if reading is None:
        return column
    return reading.faulty if column.name in faults else reading.written


def _written(
    image: bytes | None,
    members: dict[str, msgspec.Raw] | None,
    texts: Mapping[str, str | _Fault | None],
    faults: frozenset[str],
) -> bytes | None:
    """Return an image with masked values. Columns with a value that does not fit are written as ``HEX``."""
    if members is None or not texts:
        return image
    for name, text in texts.items():
        if isinstance(text, _Fault):
            members[name] = _UNREADABLE
        else:
            shown = text.encode().hex() if text is not None and name in faults else text
            members[name] = msgspec.Raw(msgspec.json.encode(shown))
    return msgspec.json.encode(members)
