"""Kafka Connect schemas, as the JSON converter writes them beside a payload, with Debezium's logical types.

Sources of the logical types: https://debezium.io/documentation/reference/stable/connectors/ ("Data type mappings" of
each connector) and ``org.apache.kafka.connect.data``. An unknown logical name of these two is an error, because its
values would be misread. Any other name says nothing about the encoding, so the physical type counts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from tidemark.errors import UnknownTypeError
from tidemark.events import Column, Encoding
from tidemark.formats._json import ABSENT, NULL, RowLayout, members, read, unwrap
from tidemark.values import bounds
from tidemark.values.message_types import DIGITS

_STRING = ("string", Encoding.PLAIN)

_DATE = ("date", Encoding.EPOCH_DAYS)

_MILLIS = ("timestamp", Encoding.EPOCH_MILLIS)

_MILLIS_OF_DAY = ("string", Encoding.MILLIS_OF_DAY)

PHYSICAL: dict[str, tuple[str, Encoding]] = {
    "boolean": ("boolean", Encoding.PLAIN),
    "int8": ("int", Encoding.PLAIN),
    "int16": ("int", Encoding.PLAIN),
    "int32": ("int", Encoding.PLAIN),
    "int64": ("long", Encoding.PLAIN),
    "float": ("float", Encoding.PLAIN),
    "float32": ("float", Encoding.PLAIN),
    "double": ("double", Encoding.PLAIN),
    "float64": ("double", Encoding.PLAIN),
    "string": _STRING,
    "bytes": ("binary", Encoding.BASE64),
    "struct": _STRING,
    "map": _STRING,
    "array": _STRING,
}
"""Schema ``type`` to column type. Nested values are kept as their JSON text."""

_RANGES = {f"int{bits}": bounds.whole(bits, unsigned=False) for bits in (8, 16)}
"""Schema ``type`` to what it allows, where the type of the column allows more."""

_CHARACTERS = frozenset({"CHAR", "VARCHAR", "VARCHAR2", "BPCHAR", "NCHAR", "NVARCHAR", "NVARCHAR2"})
"""Types of databases whose length is in characters, or in smaller units: a character takes one or more of them."""

_GEOMETRIES = ("Point", "Geometry", "Geography", "Line", "Circle")

_VECTORS = ("DoubleVector", "FloatVector", "HalfVector", "SparseVector", "SparseDoubleVector", "TiDBVectorFloat32")

_STRUCTURED = ("Date", "Time", "Timestamp", "ZonedTime", "ZonedTimestamp", "Duration")

LOGICAL: dict[str, tuple[str, Encoding]] = {
    "org.apache.kafka.connect.data.Date": _DATE,
    "org.apache.kafka.connect.data.Time": _MILLIS_OF_DAY,
    "org.apache.kafka.connect.data.Timestamp": _MILLIS,
    "io.debezium.time.Date": _DATE,
    "io.debezium.time.Time": _MILLIS_OF_DAY,
    "io.debezium.time.MicroTime": ("string", Encoding.MICROS_OF_DAY),
    "io.debezium.time.NanoTime": ("string", Encoding.NANOS_OF_DAY),
    "io.debezium.time.Timestamp": _MILLIS,
    "io.debezium.time.MicroTimestamp": ("timestamp", Encoding.EPOCH_MICROS),
    "io.debezium.time.NanoTimestamp": ("timestamp", Encoding.EPOCH_NANOS),
    "io.debezium.time.ZonedTimestamp": ("timestamptz", Encoding.PLAIN),
    "io.debezium.time.ZonedTime": _STRING,
    "io.debezium.time.IsoDate": ("date", Encoding.PLAIN),
    "io.debezium.time.IsoTime": _STRING,
    "io.debezium.time.IsoTimestamp": ("timestamp", Encoding.PLAIN),
    "io.debezium.time.Year": ("int", Encoding.PLAIN),
    "io.debezium.time.MicroDuration": ("long", Encoding.PLAIN),
    "io.debezium.time.NanoDuration": ("long", Encoding.PLAIN),
    "io.debezium.time.Interval": _STRING,
    # Oracle's NUMBER and PostgreSQL's numeric have no declared precision and scale. Only text holds all their values.
    "io.debezium.data.VariableScaleDecimal": ("string", Encoding.SCALED_STRUCT),
    "io.debezium.data.Bits": ("binary", Encoding.BITS_LE_BASE64),
    **dict.fromkeys((f"io.debezium.data.{name}" for name in ("Enum", "EnumSet", "Json", "Xml", "Uuid")), _STRING),
    **dict.fromkeys(
        (f"io.debezium.data.{name}" for name in ("Ltree", "Tsvector", "TsVector", "TsQuery", "Inet")), _STRING
    ),
    **dict.fromkeys((f"io.debezium.data.geometry.{name}" for name in _GEOMETRIES), _STRING),
    **dict.fromkeys((f"io.debezium.data.{name}" for name in _VECTORS), _STRING),
    **dict.fromkeys((f"io.debezium.data.vector.{name}" for name in _VECTORS), _STRING),
    **dict.fromkeys((f"io.debezium.time.Structured{name}" for name in _STRUCTURED), _STRING),
}
"""Schema ``name`` to column type. MySQL's time may be negative or above 24 h. Geometries, vectors, and times that are
structs of their parts, stay JSON text."""

DECIMAL = "org.apache.kafka.connect.data.Decimal"

_NAMESPACES = ("io.debezium.data.", "io.debezium.time.", "org.apache.kafka.connect.data.")


_ROUTING = "__dbz__"
"""Prefix of fields that routing transforms add to record keys."""


class ConnectSchema(msgspec.Struct, gc=False):
    """A schema, or a field of a struct schema."""

    type: str
    name: str | None = None
    """The logical type."""
    field: str | None = None
    """Name of the field in its struct."""
    parameters: dict[str, str] | None = None
    optional: bool = False
    default: msgspec.Raw = ABSENT
    fields: list[ConnectSchema] | None = None


def columns(row: Iterable[ConnectSchema]) -> list[Column]:
    """Return the columns of a row struct, in its order.

    Raises:
        UnknownTypeError: a type of Kafka Connect or Debezium is not in the tables above.
    """
    return [column(field) for field in row]


def column(field: ConnectSchema) -> Column:
    """Return the column of one field of a row struct; raises as ``columns`` does."""
    name = field.field or ""
    if field.name == DECIMAL:
        return Column(name=name, type=_decimal(name, field.parameters or {}), encoding=Encoding.UNSCALED_BASE64)
    if field.name in LOGICAL:
        type_, encoding = LOGICAL[field.name]
    elif field.name is not None and field.name.startswith(_NAMESPACES):
        raise UnknownTypeError(f"column '{name}' has the logical type '{field.name}', which is not known")
    elif cell := _cell(field):
        return column(msgspec.structs.replace(cell, field=name))
    elif field.type in PHYSICAL:
        type_, encoding = PHYSICAL[field.type]
    else:
        raise UnknownTypeError(f"column '{name}' has the type '{field.type}'; Connect has {', '.join(PHYSICAL)}")
    return Column(name=name, type=type_, encoding=encoding, bounds=_bounds(field))


def _bounds(field: ConnectSchema) -> str | UnsetType:
    """Return what a field allows beyond what the type of its column does.

    Debezium gives the labels of an enum, and the length of a text if ``column.propagate.source.type`` names the column.
    """
    parameters = field.parameters or {}
    if field.name == "io.debezium.data.Enum" and parameters.get("allowed"):
        return bounds.one_of_joined(parameters["allowed"])
    if field.name in LOGICAL:
        return UNSET
    length = parameters.get("__debezium.source.column.length", "")
    if field.type == "string" and parameters.get("__debezium.source.column.type", "").upper() in _CHARACTERS:
        return bounds.length(int(length)) if _LENGTH.fullmatch(length) else UNSET
    return _RANGES.get(field.type, UNSET)


def _cell(field: ConnectSchema) -> ConnectSchema | None:
    """Return the schema of the value in a cell ``{value, set}`` (YugabyteDB, Cassandra); None for any other field."""
    parts = {part.field: part for part in field.fields or ()} if field.type == "struct" else {}
    return parts.get("value") if parts.keys() - {"deletion_ts", "ttl"} == {"value", "set"} else None


_LENGTH = re.compile(r"[1-9][0-9]{0,9}")

_INTEGER = re.compile(r"-?[0-9]{1,4}")


def _decimal(name: str, parameters: dict[str, str]) -> str:
    """Return the decimal type that Connect's Decimal declares, with any precision and scale.

    A schema without a precision allows any number. Its type has 38 digits, the most of Iceberg.
    """
    scale, precision = parameters.get("scale", "0"), parameters.get("connect.decimal.precision")
    if not _INTEGER.fullmatch(scale) or not (precision is None or _INTEGER.fullmatch(precision)):
        raise UnknownTypeError(
            f"column '{name}' is a decimal of scale {scale!r} and precision {precision!r}, and not of whole numbers; "
            "set the connector's decimal.handling.mode to string"
        )
    places = int(scale)
    digits = DIGITS + min(places, 0) if precision is None else int(precision)
    return f"decimal({max(digits, places, 1)}, {places})"


class Struct(NamedTuple):
    """A Connect struct of a record key: its JSON object, the bytes of its schema (None: no schema), its field names."""

    image: bytes
    schema: bytes | None
    names: tuple[str, ...]


def key_struct(key: bytes) -> Struct | None:
    """Return the struct of a record key, bare or as ``{schema, payload}``; None for null and for any other key.

    A transform that takes one field from the key leaves a number or a text, whose column nothing names. The names do
    not include fields that routing transforms add (``__dbz__physicalTableIdentifier``): they are no columns.

    Raises:
        MalformedMessageError: the object is broken, or names a field twice.
    """
    if key.lstrip()[:1] != b"{":
        return None
    image, schema = unwrap(key)
    if image.lstrip()[:1] != b"{":
        return None
    names = tuple(name for name in members(image) if not name.startswith(_ROUTING))
    return Struct(image, schema, names) if names else None


def layout_of_key(key: Struct) -> RowLayout | None:
    """Return the layout in the schema of a record key; None without a schema."""
    return row_layout(key.schema) if key.schema else None


def has_value(key: bytes) -> bool:
    """Return whether a record key, bare or as ``{schema, payload}``, is not null.

    Raises:
        MalformedMessageError: the object is broken.
    """
    key = key.strip()
    return (unwrap(key)[0] if key[:1] == b"{" else key) != NULL


class Layouts(NamedTuple):
    """The columns in an envelope's schema. If both images have the same columns, both fields are one object."""

    before: RowLayout
    after: RowLayout


@functools.lru_cache(maxsize=1024)
def envelope_layouts(schema: bytes) -> Layouts | None:
    """Return the layouts of the images that ``schema`` describes; None for null and ``{}``.

    Raises:
        MalformedMessageError: not a Connect schema.
        UnknownTypeError: a column has an unknown type.
    """
    named = {field.field: field for field in fields(schema)}
    before, after = named.get("before"), named.get("after")
    rows = [columns(row.fields or ()) for row in (before or after, after or before) if row is not None]
    if not rows:
        return None
    layout = RowLayout(rows[1])
    return Layouts(before=layout if rows[0] == rows[1] else RowLayout(rows[0]), after=layout)


@functools.lru_cache(maxsize=1024)
def row_layout(schema: bytes, left_out: frozenset[str] = frozenset()) -> RowLayout | None:
    """Return the layout of a struct schema (of a record key or a flattened row); None for null and ``{}``.

    Args:
        schema: the bytes of the schema.
        left_out: fields that are no columns. Those of routing transforms (``__dbz__...``) are left out too.
    """
    names = (field for field in fields(schema) if field.field not in left_out)
    found = [column for column in columns(names) if not column.name.startswith(_ROUTING)]
    return RowLayout(found) if found else None


class Absence(NamedTuple):
    """What a field may hold in place of no value."""

    optional: bool
    default: bytes
    """The JSON of its default; empty if it has none."""


@functools.lru_cache(maxsize=1024)
def absences(schema: bytes) -> dict[str, Absence]:
    """Return what the fields of a row may hold in place of no value.

    Args:
        schema: of an envelope, whose rows are in ``before``, or of the row itself.
    """
    return {field.field or "": Absence(field.optional, bytes(field.default)) for field in row_fields(schema)}


def row_fields(schema: bytes) -> list[ConnectSchema]:
    """Return the fields of the rows in an envelope, or of a row itself."""
    found = fields(schema)
    return next((field.fields for field in found if field.field == "before" and field.fields), found)


def fields(schema: bytes) -> list[ConnectSchema]:
    """Return the fields of a struct schema; none for null and ``{}``."""
    if schema == NULL or not members(schema):
        return []
    return read(_schema, schema).fields or []


_schema = msgspec.json.Decoder(ConnectSchema)
