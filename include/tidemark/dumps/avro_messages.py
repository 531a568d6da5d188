"""From a datum of an Avro file to a message, by the rules that ``avro_file`` lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tidemark.avro.binary import chunk, varint
from tidemark.avro.skipping import AvroType, branch_of
from tidemark.dumps.kafka_records import WITHOUT_PARTITION, bytes_of_key, bytes_of_text

Row = tuple[bytes | None, bytes | None, str | None, int | None, int | None, int | None]
"""The columns of ``MESSAGES`` after ``place``."""

Read = Callable[[bytes, int], tuple[Row, int]]
"""(bytes of a block, place where a datum begins) to the datum's message and the place behind the datum."""

_RECORD_FIELDS: Final = frozenset({"topic", "partition", "offset", "value"})

_INTEGERS: Final = frozenset({"int", "long", "null"})

_TYPES: Final = {
    "topic": frozenset({"string", "null"}),
    "partition": _INTEGERS,
    "offset": _INTEGERS,
    "timestamp": _INTEGERS,
}


def reader(schema: AvroType) -> tuple[bool, Read]:
    """Return whether the data are Kafka records, and the function that makes a row of one datum.

    Raises:
        ValueError: a field of a Kafka record has another type, or a datum takes no bytes, so that a few bytes could be
            any number of data.
    """
    if schema.least == 0:
        raise ValueError("a datum takes no bytes")
    if schema.name == "record" and {name for name, _ in schema.fields} >= _RECORD_FIELDS:
        return True, _record_reader(schema)

    def read(buffer: bytes, place: int) -> tuple[Row, int]:
        content, end = _content(schema, buffer, place)
        return (None, content, None, None, None, None), end

    return False, read


def _content(kind: AvroType, buffer: bytes, place: int) -> tuple[bytes | None, int]:
    """Return the content of bytes or a string, None for null, or the binary form of any other datum."""
    if kind.name == "union":
        kind, place = branch_of(kind, buffer, place)
        return _content(kind, buffer, place)
    if kind.name in {"bytes", "string"}:
        return chunk(buffer, place)
    end = kind.skip(buffer, place)
    return (None if kind.name == "null" else buffer[place:end]), end


def _record_reader(schema: AvroType) -> Read:
    fields = [(_PLACES.get(name), kind) for name, kind in schema.fields]
    for name, kind in schema.fields:
        _check(name, kind)

    def read(buffer: bytes, place: int) -> tuple[Row, int]:
        row: list[bytes | int | str | None] = [None] * 6
        for number, kind in fields:
            if number is None:
                place = kind.skip(buffer, place)
            else:
                row[number], place = _READERS[number](kind, buffer, place)
        if row[_PARTITION] is None and row[_OFFSET] is not None:
            raise ValueError(WITHOUT_PARTITION)
        return tuple(row), place  # type: ignore[return-value]

    return read


def _check(name: str, kind: AvroType) -> None:
    kinds = {each.name for each in kind.branches or (kind,)}
    wrong = kinds - _TYPES.get(name, kinds)
    if wrong:
        raise ValueError(f"`{name}` of a Kafka record is {', '.join(sorted(wrong))}; write it as Kafka has it")


def _bytes(of_text: Callable[[str], bytes]) -> Callable[[AvroType, bytes, int], tuple[bytes | None, int]]:
    """Return the function that reads a key or a value. Text is JSON or Base64, as in records of other containers."""

    def read(kind: AvroType, buffer: bytes, place: int) -> tuple[bytes | None, int]:
        if kind.name == "union":
            kind, place = branch_of(kind, buffer, place)
        content, place = _content(kind, buffer, place)
        if kind.name == "string" and content is not None:
            return of_text(content.decode()), place
        return content, place

    return read


def _topic(kind: AvroType, buffer: bytes, place: int) -> tuple[str | None, int]:
    content, place = _content(kind, buffer, place)
    return (None if content is None else content.decode()), place


def _number(least: int, most: int) -> Callable[[AvroType, bytes, int], tuple[int | None, int]]:
    def read(kind: AvroType, buffer: bytes, place: int) -> tuple[int | None, int]:
        if kind.name == "union":
            kind, place = branch_of(kind, buffer, place)
        if kind.name == "null":
            return None, place
        number, place = varint(buffer, place)
        if kind.logical in {"timestamp-micros", "local-timestamp-micros"}:
            number //= 1000
        if not least <= number <= most:
            raise ValueError(f"{number} is no partition, offset or time of Kafka")
        return number, place

    return read


_PARTITION, _OFFSET = 3, 4

_PLACES: Final = {"key": 0, "value": 1, "topic": 2, "partition": _PARTITION, "offset": _OFFSET, "timestamp": 5}

_READERS: Final[tuple[Callable[[AvroType, bytes, int], tuple[bytes | int | str | None, int]], ...]] = (
    _bytes(bytes_of_key), _bytes(bytes_of_text), _topic,
    _number(0, 2**31 - 1), _number(0, 2**63 - 1), _number(-(2**63), 2**63 - 1),
)  # fmt: skip
