"""Avro schemas that come with the messages. They are read as hostile text, within limits.

A schema is resolved into a tree of our own before fastavro sees it. In the tree, every type stands where it is used,
and fastavro gets names that are made here. So no name of the message has any effect. Recursive types, arrays and maps
are refused, because a few bytes of them could become a large value. Logical types are kept beside the tree's types:
values are read exactly as they are stored, and the column's ``Encoding`` says what they mean.
https://avro.apache.org/docs/1.12.0/specification/
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import fastavro
import msgspec

from tidemark.errors import MalformedMessageError, UnknownTypeError

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

TEXT_LIMIT = 4 << 20
"""Largest schema, in bytes."""

DEPTH_LIMIT = 16

NODE_LIMIT = 50_000
"""Most types of a schema. A named type counts again at each place that uses it."""

SIZE_LIMIT = 1 << 16
"""Largest ``fixed``, in bytes."""

Tree = dict[str, Any]
"""A resolved type: ``type``, ``fields`` of a record, ``symbols`` of an enum, ``size`` of a fixed, ``branches`` of a
union; and ``logical``, ``precision``, ``scale`` as the schema has them."""


def resolve(text: str | bytes) -> Tree:
    """Return the tree of a schema.

    Raises:
        MalformedMessageError: broken, recursive, or beyond a limit.
        UnknownTypeError: a type that Avro does not have, or one that is not read here.
    """
    if len(text) > TEXT_LIMIT:
        raise MalformedMessageError(f"an Avro schema of {len(text)} bytes; {TEXT_LIMIT} are read")
    try:
        schema = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise MalformedMessageError(f"an Avro schema that is no JSON: {error}") from error
    return _Resolver().type(schema, 0)


def reader(tree: Tree) -> Callable[[bytes], Any]:
    """Return a function that reads bytes, which hold one datum of the schema.

    The function raises ``MalformedMessageError`` if the bytes are not exactly one such datum.
    """
    return reader_of(_written(tree, itertools.count()))


def reader_of(written: Any) -> Callable[[bytes], Any]:  # noqa: ANN401 - what fastavro takes
    """Return the same function for a schema of our own, written as fastavro takes it."""
    try:
        schema = fastavro.parse_schema(written)
    except fastavro.schema.SchemaParseException as error:
        raise MalformedMessageError(f"not an Avro schema: {error}") from error

    def read(value: bytes) -> Any:  # noqa: ANN401 - whatever the schema says
        stream = io.BytesIO(value)
        try:
            datum = fastavro.schemaless_reader(stream, schema, None)
        except (EOFError, IndexError, ValueError, OverflowError, MemoryError) as error:
            raise MalformedMessageError(f"not the Avro that its schema describes: {error}") from error
        if stream.tell() != len(value):
            raise MalformedMessageError(f"{len(value) - stream.tell()} bytes more than its Avro schema describes")
        return datum

    return read


class _Resolver:
    """Resolves one schema. ``_named`` holds the named types read so far; None where a name is defined twice."""

    def __init__(self) -> None:
        self._named: dict[str, Tree | None] = {}
        self._nodes = 0

    def type(self, schema: object, depth: int) -> Tree:
        self._count(1)
        if depth > DEPTH_LIMIT:
            raise MalformedMessageError(f"an Avro schema deeper than {DEPTH_LIMIT} types")
        match schema:
            case str():
                return self._by_name(schema)
            case list():
                return self._union(schema, depth)
            case {"type": dict() | list() as inner}:
                return self.type(inner, depth + 1)
            case {"type": "record", "name": str(name), "fields": list(fields)}:
                return self._define(name, {"type": "record", "fields": self._fields(fields, depth)})
        return self._plain(schema)

    def _plain(self, schema: object) -> Tree:
        """Return the tree of a type that has no parts."""
        match schema:
            case {"type": "enum", "name": str(name), "symbols": list(symbols)} if symbols:
                self._count(len(symbols))
                return self._define(name, {"type": "enum", "symbols": [str(symbol) for symbol in symbols]})
            case {"type": "fixed", "name": str(name), "size": int(size), **attributes} if 0 <= size <= SIZE_LIMIT:
                return self._define(name, {"type": "fixed", "size": size, **_logical(attributes)})
            case {"type": str(kind), **attributes} if kind not in {"record", "enum", "fixed", "array", "map"}:
                return {**self._by_name(kind), **_logical(attributes)}
        raise UnknownTypeError(
            f"an Avro type that no row has here: {str(schema)[:80]}; known are {', '.join(PRIMITIVES)}, record, enum, "
            "fixed and unions"
        )

    def _count(self, more: int) -> None:
        self._nodes += more
        if self._nodes > NODE_LIMIT:
            raise MalformedMessageError(f"an Avro schema of more than {NODE_LIMIT} types")

    def _by_name(self, name: str) -> Tree:
        if name in PRIMITIVES:
            return {"type": name}
        short = name.rpartition(".")[2]
        if short not in self._named:
            raise UnknownTypeError(f"the Avro type '{name[:80]}' is not known before it is used")
        found = self._named[short]
        if found is None:
            raise MalformedMessageError(f"the Avro type '{name[:80]}' is defined twice, or in terms of itself")
        self._count(_size(found))
        return found

    def _define(self, name: str, tree: Tree) -> Tree:
        short = name.rpartition(".")[2]
        self._named[short] = None if short in self._named else tree
        return tree

    def _union(self, branches: list[object], depth: int) -> Tree:
        if not branches or any(isinstance(branch, list) for branch in branches):
            raise MalformedMessageError("an Avro union without branches, or of unions")
        return {"type": "union", "branches": [self.type(branch, depth + 1) for branch in branches]}

    def _fields(self, fields: list[object], depth: int) -> dict[str, Tree]:
        found: dict[str, Tree] = {}
        for field in fields:
            match field:
                case {"name": str(name), "type": kind} if name not in found:
                    found[name] = self.type(kind, depth + 1)
                case _:
                    raise MalformedMessageError(f"an Avro record with the field {str(field)[:80]}, broken or twice")
        return found


def _logical(schema: Mapping[Any, Any]) -> Tree:
    """Return the logical type of a schema with its precision and scale, as far as the schema has them."""
    logical = {"logical": schema.get("logicalType"), "precision": schema.get("precision"), "scale": schema.get("scale")}
    return {key: value for key, value in logical.items() if isinstance(value, str | int)}


def _size(tree: Tree) -> int:
    parts = [*tree.get("fields", {}).values(), *tree.get("branches", ())]
    return 1 + sum(map(_size, parts))


def _written(tree: Tree, numbers: Iterator[int]) -> Any:  # noqa: ANN401 - what fastavro takes
    """Return a tree as a schema for fastavro: without logical types, with numbers for names."""
    match tree["type"]:
        case "record":
            fields = [{"name": name, "type": _written(part, numbers)} for name, part in tree["fields"].items()]
            return {"type": "record", "name": f"r{next(numbers)}", "fields": fields}
        case "union":
            return [_written(part, numbers) for part in tree["branches"]]
        case "enum":
            return {"type": "enum", "name": f"e{next(numbers)}", "symbols": tree["symbols"]}
        case "fixed":
            return {"type": "fixed", "name": f"f{next(numbers)}", "size": tree["size"]}
        case kind:
            return kind
