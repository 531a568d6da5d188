"""Schemas that come with messages are bounded, and no name in them means anything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.avro import reading
from tidemark.avro.reading import reader, resolve
from tidemark.errors import DecodeError, MalformedMessageError, UnknownTypeError


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    """Return the schema of a record."""
    return {"type": "record", "name": name, "fields": [{"name": each, "type": type_} for each, type_ in fields]}


def nested(depth: int) -> Any:
    """Return a schema of records in records."""
    schema: Any = "int"
    for number in range(depth):
        schema = record(("a", schema), name=f"R{number}")
    return schema


def bombs(levels: int) -> dict[str, Any]:
    """Return a small schema that names each record twice in the next: 2 to the power of its levels in all."""
    twice = [record(("a", f"R{level - 1}"), ("b", f"R{level - 1}"), name=f"R{level}") for level in range(1, levels)]
    fields = [(f"f{number}", each) for number, each in enumerate([record(("a", "int"), name="R0"), *twice])]
    return record(*fields, name="Top")


def test_values_are_read_as_stored() -> None:
    """Logical types are kept aside: a date is its number of days."""
    tree = resolve(json.dumps(record(("d", ["null", {"type": "int", "logicalType": "date"}]), ("t", "string"))))
    assert reader(tree)(b"\x02\x02\x04\xc3\xa4") == {"d": 1, "t": "ä"}
    assert tree["fields"]["d"]["branches"][1] == {"type": "int", "logical": "date"}


def test_named_types_are_used_again() -> None:
    """A name stands for the type that it was given, with or without a namespace."""
    tree = resolve(json.dumps(record(("a", record(("x", "int"), name="ns.Data")), ("b", ["null", "Data"]))))
    assert reader(tree)(b"\x02\x02\x04") == {"a": {"x": 1}, "b": {"x": 2}}


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        (record(("a", "R")), UnknownTypeError),
        (record(("a", ["null", "R"])), UnknownTypeError),
        (
            record(("a", record(("x", "int"), name="D")), ("b", record(("y", "int"), name="D")), ("c", "D")),
            MalformedMessageError,
        ),
        (record(("a", "int"), ("a", "int")), MalformedMessageError),
        (nested(40), MalformedMessageError),
        (bombs(40), MalformedMessageError),
        (record(*((f"f{number}", "null") for number in range(60_000))), MalformedMessageError),
        (record(("a", {"type": "array", "items": "null"})), UnknownTypeError),
        (record(("a", {"type": "map", "values": "null"})), UnknownTypeError),
        (record(("a", {"type": "fixed", "name": "F", "size": 2**31})), UnknownTypeError),
        (record(("a", {"type": "fixed", "name": "F", "size": -1})), UnknownTypeError),
        (record(("a", {"type": "enum", "name": "E", "symbols": []})), UnknownTypeError),
        (record(("a", [])), MalformedMessageError),
        (record(("a", [["int"]])), MalformedMessageError),
        (record(("a", "__import__('os')")), UnknownTypeError),
        ({"type": "record", "name": "R"}, UnknownTypeError),
        ({"type": "record", "name": "R", "fields": ["a"]}, MalformedMessageError),
        ({}, UnknownTypeError),
        (1, UnknownTypeError),
    ],
)
def test_hostile_schemas_are_refused(schema: Any, error: type[DecodeError]) -> None:
    """Recursion, depth, size, types that make much of few bytes, and what is no schema."""
    with pytest.raises(error):
        resolve(json.dumps(schema))


def test_schemas_that_are_too_long_or_no_json_are_refused() -> None:
    """Neither a schema of megabytes nor one of brackets reaches the parser of schemas."""
    for text in ("[" * 200_000, "{", " " * (reading.TEXT_LIMIT + 1)):
        with pytest.raises(MalformedMessageError):
            resolve(text)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x02",
        b"\x02\x03",
        b"\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x08a",
        b"\x00\x00",
        b"\x02\x02\xff",
    ],
)
def test_bytes_that_are_no_datum(value: bytes) -> None:
    """Cut, longer, of lengths below zero or beyond all memory, of no branch, no UTF-8: one error."""
    with pytest.raises(MalformedMessageError):
        reader(resolve(json.dumps(record(("a", ["null", "string"])))))(value)
