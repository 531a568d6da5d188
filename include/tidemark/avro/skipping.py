"""Avro schemas of dump files, compiled to functions that find where a datum ends without building objects from it.

https://avro.apache.org/docs/1.12.0/specification/. A schema in a file may be hostile. So its size, its depth and the
number of parts of one datum are limited. A type that contains itself is refused, because data could nest without end.
An array whose items take no bytes is refused, because a few bytes could be any number of items.

A general reader builds objects that are not needed here: fastavro 1.13 takes twice the time for a DTS Record. The tests
compare the two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tidemark.avro.binary import block, chunk, varint

SCHEMA_LIMIT: Final = 1 << 20
"""Largest schema, in bytes."""

_DEPTH_LIMIT: Final = 64

_STEPS_LIMIT: Final = 100_000
"""Most types that reading one datum may pass. The items of an array or map are counted once."""

Skip = Callable[[bytes, int], int]
"""(bytes, place where a datum begins) to the place behind the datum. If the bytes are no such datum, the function
raises an IndexError or a ValueError, or returns a place behind the end of the bytes."""


class AvroType(NamedTuple):
    """One type of a schema."""

    name: str
    """``record``, ``union``, ``string``, ``long``, ..."""
    skip: Skip
    least: int
    """Bytes of the shortest datum."""
    steps: int = 1
    """Types that reading one datum may pass."""
    fields: tuple[tuple[str, AvroType], ...] = ()
    """The fields of a record."""
    branches: tuple[AvroType, ...] = ()
    """The branches of a union."""
    logical: str | None = None
    """``logicalType``."""


def parse(text: bytes) -> AvroType:
    """Return a schema, compiled.

    Raises:
        ValueError: the text is not a schema, or the schema is beyond a limit.
    """
    if len(text) > SCHEMA_LIMIT:
        raise ValueError(f"the schema has more than {SCHEMA_LIMIT >> 20} MiB")
    try:
        return _Parser().kind(json.loads(text), "", _DEPTH_LIMIT)
    except RecursionError as error:
        raise ValueError("the schema is nested too deeply") from error


def branch_of(union: AvroType, buffer: bytes, place: int) -> tuple[AvroType, int]:
    """Return the branch of a union that stands at ``place``, and the place of its datum."""
    number, place = varint(buffer, place)
    if not 0 <= number < len(union.branches):
        raise ValueError(f"branch {number} of a union of {len(union.branches)}")
    return union.branches[number], place


def _skip_number(buffer: bytes, place: int) -> int:
    while buffer[place] >= 0x80:
        place += 1
    return place + 1


def _skip_chunk(buffer: bytes, place: int) -> int:
    size = buffer[place]
    if size < 0x80 and not size & 1:
        return place + 1 + (size >> 1)
    return chunk(buffer, place)[1]


def _skip_fixed(size: int) -> Skip:
    return lambda _buffer, place: place + size


def _skip_record(skips: tuple[Skip, ...]) -> Skip:
    def skip(buffer: bytes, place: int) -> int:
        for each in skips:
            place = each(buffer, place)
        return place

    return skip


def _skip_union(skips: tuple[Skip, ...]) -> Skip:
    def skip(buffer: bytes, place: int) -> int:
        byte = buffer[place]
        number, place = (byte >> 1, place + 1) if not byte & 0x81 else varint(buffer, place)
        if not 0 <= number < len(skips):
            raise ValueError(f"branch {number} of a union of {len(skips)}")
        return skips[number](buffer, place)

    return skip


def _skip_blocks(item: Skip, least: int) -> Skip:
    """Return what skips blocks of items that take ``least`` bytes or more. Items of one size read no byte."""

    def skip(buffer: bytes, place: int) -> int:
        count, place = block(buffer, place)
        while count:
            if count * least > len(buffer) - place:
                raise IndexError("more items than what is left holds")
            for _ in range(count):
                place = item(buffer, place)
            count, place = block(buffer, place)
        return place

    return skip


_PRIMITIVES: Final[Mapping[str, AvroType]] = {
    "null": AvroType("null", _skip_fixed(0), 0),
    "boolean": AvroType("boolean", _skip_fixed(1), 1),
    "int": AvroType("int", _skip_number, 1),
    "long": AvroType("long", _skip_number, 1),
    "float": AvroType("float", _skip_fixed(4), 4),
    "double": AvroType("double", _skip_fixed(8), 8),
    "bytes": AvroType("bytes", _skip_chunk, 1),
    "string": AvroType("string", _skip_chunk, 1),
}


class _Parser:
    """Compiles one schema. A name is known from its definition on."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType | None] = {}
        """By full name; None while the type is being defined."""

    def kind(self, schema: Any, namespace: str, depth: int) -> AvroType:  # noqa: ANN401 - whatever JSON the file holds
        if depth == 0:
            raise ValueError("the schema is nested too deeply")
        if isinstance(schema, str):
            return self._reference(schema, namespace)
        if isinstance(schema, list):
            return self._union(schema, namespace, depth)
        if not isinstance(schema, dict) or "type" not in schema:
            raise ValueError(f"no type of Avro: {json.dumps(schema)[:80]}")
        type_ = schema["type"]
        if not isinstance(type_, str):
            return self.kind(type_, namespace, depth - 1)
        found = self._complex(type_, schema, namespace, depth)
        logical = schema.get("logicalType")
        if found.steps > _STEPS_LIMIT:
            raise ValueError(f"a datum has more than {_STEPS_LIMIT} parts")
        return found._replace(logical=logical) if isinstance(logical, str) else found

    def _complex(self, type_: str, schema: dict[str, Any], namespace: str, depth: int) -> AvroType:
        match type_:
            case "record" | "error":
                return self._define(schema, namespace, depth)
            case "enum":
                return self._name(schema, namespace, AvroType("enum", _skip_number, 1))
            case "fixed":
                size = schema.get("size")
                if type(size) is not int or not 0 <= size < 1 << 31:
                    raise ValueError(f"a fixed of size {size!r}")
                return self._name(schema, namespace, AvroType("fixed", _skip_fixed(size), size))
            case "array":
                item = self.kind(schema.get("items"), namespace, depth - 1)
                if item.least == 0:
                    raise ValueError("an array of items that take no bytes")
                return AvroType("array", _skip_blocks(item.skip, item.least), 1, 1 + item.steps)
            case "map":
                value = self.kind(schema.get("values"), namespace, depth - 1)
                entry = _skip_record((_skip_chunk, value.skip))
                return AvroType("map", _skip_blocks(entry, 1 + value.least), 1, 2 + value.steps)
            case _:
                return self._reference(type_, namespace)

    def _reference(self, name: str, namespace: str) -> AvroType:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full not in self._named:
            raise ValueError(f"unknown type {name[:80]!r}")
        found = self._named[full]
        if found is None:
            raise ValueError(f"type {name[:80]!r} contains itself")
        return found

    def _union(self, schema: list[Any], namespace: str, depth: int) -> AvroType:
        branches = tuple(self.kind(branch, namespace, depth - 1) for branch in schema)
        if not branches:
            raise ValueError("a union of nothing")
        steps = 1 + max(branch.steps for branch in branches)
        skip = _skip_union(tuple(branch.skip for branch in branches))
        return AvroType("union", skip, 1 + min(branch.least for branch in branches), steps, branches=branches)

    def _define(self, schema: dict[str, Any], namespace: str, depth: int) -> AvroType:
        full = self._full_name(schema, namespace)
        self._named[full] = None
        inner = full.rpartition(".")[0]
        fields = schema.get("fields")
        if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
            raise ValueError(f"record {full[:80]!r} has no list of fields")
        kinds = tuple((str(field.get("name")), self.kind(field.get("type"), inner, depth - 1)) for field in fields)
        record = AvroType(
            "record",
            _skip_record(tuple(kind.skip for _, kind in kinds)),
            sum(kind.least for _, kind in kinds),
            1 + sum(kind.steps for _, kind in kinds),
            fields=kinds,
        )
        self._named[full] = record
        return record

    def _name(self, schema: dict[str, Any], namespace: str, kind: AvroType) -> AvroType:
        self._named[self._full_name(schema, namespace)] = kind
        return kind

    def _full_name(self, schema: dict[str, Any], namespace: str) -> str:
        name, own = schema.get("name"), schema.get("namespace", namespace)
        if not isinstance(name, str) or not name or not isinstance(own, str):
            raise ValueError(f"a {schema['type']} without a name")
        full = name if "." in name or not own else f"{own}.{name}"
        if full in self._named or full in _PRIMITIVES:
            raise ValueError(f"type {full[:80]!r} is defined twice")
        return full
