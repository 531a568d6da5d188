"""The column list of a DTS Record, and the shape that it makes together with the values of an image."""

from __future__ import annotations

import functools
from collections import Counter

from tidemark.avro.binary import block, chunk, varint
from tidemark.errors import MalformedMessageError
from tidemark.events import Shape
from tidemark.formats._dts import types as dts_types
from tidemark.formats._dts.types import BINARY, JSONB, MEASURED, NONE, NULL, UNTYPED


class FieldList:
    """The column list of a table from one kind of source; the same object for the same bytes."""

    __slots__ = ("_shapes", "jsonb", "names", "numbers", "raw", "source")

    def __init__(self, raw: bytes, source: str) -> None:
        self.raw = raw
        self.source = source
        columns = _columns(raw)
        self.names = tuple(name for name, _ in columns)
        self.numbers = tuple(number for _, number in columns)
        if len(set(self.names)) < len(columns):
            twice = sorted(name for name, count in Counter(self.names).items() if count > 1)
            raise MalformedMessageError(f"`fields` names a column twice: {', '.join(twice)}")
        postgresql = dts_types.FAMILIES.get(source) is dts_types.POSTGRESQL
        self.jsonb = tuple(n for n, number in enumerate(self.numbers) if postgresql and number == JSONB)
        self._shapes: dict[tuple[int, ...], Shape] = {}

    def shape(self, kinds: tuple[int, ...]) -> Shape:
        """Return the shape of images whose values have these kinds; the same object for the same kinds.

        Raises:
            UnknownTypeError: the source has no such type number.
        """
        found = self._shapes.get(kinds)
        if found is None:
            columns = zip(self.names, self.numbers, kinds, strict=True)
            found = Shape(tuple(dts_types.column(self.source, *column) for column in columns))
            if len(self._shapes) >= 1024:
                self._shapes.clear()
            self._shapes[kinds] = found
        return found


_recent: dict[tuple[bytes | None, str], FieldList] = {}
"""The last column list of each object. It is a guess that is compared with the bytes, and only saves time."""


def read_fields(buffer: bytes, place: int, source: str, name: bytes | None) -> tuple[FieldList | str | None, int]:
    branch, place = varint(buffer, place)
    if branch == 0:
        return None, place
    if branch == 1:
        text, place = chunk(buffer, place)
        return text.decode(), place
    if branch != 2:
        raise ValueError(f"branch {branch} of fields")
    recent = _recent.get((name, source))
    if recent is not None and buffer.startswith(recent.raw, place):  # a list ends in a mark: a prefix is whole
        return recent, place + len(recent.raw)
    end = place
    count, end = block(buffer, end)
    while count:
        for _ in range(count):
            _, end = chunk(buffer, end)
            _, end = varint(buffer, end)
        count, end = block(buffer, end)
    fields = _parsed(buffer[place:end], source)
    if len(_recent) >= 1024:
        _recent.clear()
    _recent[name, source] = fields
    return fields, end


_parsed = functools.lru_cache(maxsize=1024)(FieldList)


def _columns(raw: bytes) -> list[tuple[str, int]]:
    """Return the name and the ``dataTypeNumber`` of each column."""
    columns = []
    count, place = block(raw, 0)
    while count:
        for _ in range(count):
            name, place = chunk(raw, place)
            number, place = varint(raw, place)
            columns.append((name.decode(), number))
        count, place = block(raw, place)
    return columns


def merged(fields: FieldList, before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    """Return the kinds of columns that fit both images of a row.

    Raises:
        MalformedMessageError: a column has text in one image and bytes in the other.
    """
    return after if before == after else tuple(map(_common, fields.names, before, after))


def _common(name: str, before: int, after: int) -> int:
    if before == after or before in {NULL, NONE}:
        return after
    if after in {NULL, NONE}:
        return before
    if BINARY in {before, after}:
        raise MalformedMessageError(f"column '{name}' holds text before the change and bytes after it, or the reverse")
    if before >= MEASURED and after >= MEASURED and before // 128 == after // 128:
        return max(before, after)
    return UNTYPED
