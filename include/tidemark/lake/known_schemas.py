"""The Avro schemas of manifests, each of which PyIceberg takes apart once in a process.

Every manifest and every list of manifests begins with its schema, as JSON of some 5 KB. For each file that it opens,
PyIceberg makes a schema of Iceberg from it, and from that one a tree of readers, which takes ten times as long as
reading the few entries of a small table. The files of a lake have a handful of schemas: one for each partition spec.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from pyiceberg.avro import file as avro_files
from pyiceberg.avro.reader import Reader
from pyiceberg.avro.resolver import resolve_reader
from pyiceberg.schema import Schema
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

_MOST = 256
"""Schemas that are kept, and trees of readers."""

_KEY = "avro.schema"


def remember() -> None:
    """Let PyIceberg take schemas and readers that it made before from memory."""
    header: Any = avro_files.AvroFileHeader
    header.get_schema = _schema_of
    readers: Any = avro_files
    readers.resolve_reader = reader
    readers.construct_reader = lambda schema, types: reader(schema, schema, types, {})


def _schema_of(header: avro_files.AvroFileHeader) -> Schema:
    """Return the schema that a file's header has.

    Raises:
        ValueError: it has none.
    """
    if _KEY not in header.meta:
        raise ValueError("No schema found in Avro file headers")
    return schema(header.meta[_KEY])


@lru_cache(_MOST)
def schema(text: str) -> Schema:
    """Return the schema that a text of Avro says. Nothing changes a schema once it is made."""
    return AvroSchemaConversion().avro_to_iceberg(json.loads(text))


def reader(
    written: Schema, wanted: Schema, types: Mapping[int, Callable[..., Any]], enums: Mapping[int, Callable[..., Any]]
) -> Reader:
    """Return what reads records of one schema as records of another. It holds nothing of a file."""
    return _reader(_Same(written), _Same(wanted), tuple(types.items()), tuple(enums.items()))


class _Same:
    """A schema, as a key that is equal to itself alone: comparing two schemas takes as long as making a reader."""

    __slots__ = ("schema",)

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.schema is self.schema

    def __hash__(self) -> int:
        return id(self.schema)


@lru_cache(_MOST)
def _reader(
    written: _Same,
    wanted: _Same,
    types: tuple[tuple[int, Callable[..., Any]], ...],
    enums: tuple[tuple[int, Callable[..., Any]], ...],
) -> Reader:
    return resolve_reader(written.schema, wanted.schema, dict(types), dict(enums))
