"""The columns of Replicate's rows in Avro: types and encodings from the schema of data messages."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.avro.reading import Tree
from tidemark.errors import MalformedMessageError, UnknownTypeError
from tidemark.events import Column, Encoding
from tidemark.formats._replicate.types import column
from tidemark.formats._replicate.wire import TableColumn

LOGICAL: dict[tuple[str, str], tuple[str, Encoding]] = {
    ("int", "date"): ("date", Encoding.EPOCH_DAYS),
    ("int", "time-millis"): ("string", Encoding.MILLIS_OF_DAY),
    ("long", "time-micros"): ("string", Encoding.MICROS_OF_DAY),
    ("long", "timestamp-millis"): ("timestamp", Encoding.EPOCH_MILLIS),
    ("long", "timestamp-micros"): ("timestamp", Encoding.EPOCH_MICROS),
    ("long", "timestamp-nanos"): ("timestamp", Encoding.EPOCH_NANOS),
    ("long", "local-timestamp-millis"): ("timestamp", Encoding.EPOCH_MILLIS),
    ("long", "local-timestamp-micros"): ("timestamp", Encoding.EPOCH_MICROS),
    ("long", "local-timestamp-nanos"): ("timestamp", Encoding.EPOCH_NANOS),
}
"""Avro type and logical type to column type. Replicate's DATETIME has no zone. Bytes with the logical type decimal are
not listed: the schema gives their digits. Any other logical type says nothing about how the value is stored."""

PHYSICAL: dict[str, tuple[str, Encoding]] = {
    "boolean": ("boolean", Encoding.TEXT),
    "int": ("int", Encoding.TEXT),
    "long": ("long", Encoding.TEXT),
    "float": ("float", Encoding.TEXT),
    "double": ("double", Encoding.TEXT),
    "string": ("string", Encoding.PLAIN),
    "enum": ("string", Encoding.PLAIN),
    "null": ("string", Encoding.PLAIN),
    "bytes": ("binary", Encoding.BASE64),
    "fixed": ("binary", Encoding.BASE64),
}
"""Avro type to column type, for columns that metadata lacks. Bytes stay bytes, whatever metadata says."""


def record_of(tree: Tree, name: str) -> Mapping[str, Tree]:
    """Return the fields of a record in the schema of data messages."""
    field = stored_type(name, tree.get("fields", {}).get(name, {"type": "missing"}))
    if field["type"] != "record":
        raise MalformedMessageError(f"`dataSchema` has no record `{name}`")
    fields: Mapping[str, Tree] = field["fields"]
    return fields


def check_old(tree: Tree, listed: Mapping[str, TableColumn]) -> None:
    """Check that old rows have their columns as new ones have them: both are read by the types of the new ones.

    Raises:
        MalformedMessageError: they have not.
    """
    new = record_of(tree, "data")
    old = stored_type("beforeData", tree.get("fields", {}).get("beforeData", {"type": "null"})).get("fields", {})
    wrong = [name for name in old if name in new and not _is_alike(name, old[name], new[name], listed.get(name))]
    if wrong:
        raise MalformedMessageError(f"`beforeData` has other types than `data` for {', '.join(wrong)[:200]}")


def _is_alike(name: str, old: Tree, new: Tree, listed: TableColumn | None) -> bool:
    if stored_type(name, old)["type"] != stored_type(name, new)["type"]:
        return False
    return column_of(name, old, listed) == column_of(name, new, listed)


def stored_type(name: str, tree: Tree) -> Tree:
    """Return the type of a field. A union may have one type beside null."""
    if tree["type"] != "union":
        return tree
    branches: list[Tree] = [branch for branch in tree["branches"] if branch["type"] != "null"]
    if len(branches) > 1:
        raise UnknownTypeError(f"`{name[:80]}` is an Avro union of several types; Replicate writes one, or null")
    return branches[0] if branches else {"type": "null"}


def column_of(name: str, tree: Tree, listed: TableColumn | None) -> Column:
    """Return a column, with the encoding of the schema and the type of metadata.

    Raises:
        UnknownTypeError: rows have no such type.
    """
    stored = stored_type(name, tree)
    kind, logical = stored["type"], stored.get("logical")
    if logical == "decimal" and kind in {"bytes", "fixed"}:
        return _decimal(name, stored)
    if (kind, str(logical)) in LOGICAL:
        type_, encoding = LOGICAL[kind, str(logical)]
        return Column(name=name, type=type_, encoding=encoding)
    if kind not in PHYSICAL:
        raise UnknownTypeError(f"column '{name[:80]}' is an Avro {kind}; rows have {', '.join(PHYSICAL)}")
    if listed is not None and kind not in {"bytes", "fixed"}:
        return column(name, listed)
    return Column(name, *PHYSICAL[kind])


def _decimal(name: str, stored: Tree) -> Column:
    """Return a decimal of any scale: Oracle's NUMBER(5, -2) and NUMBER(2, 5) are numbers, too."""
    precision, scale = stored.get("precision"), stored.get("scale", 0)
    if not (type(precision) is int and type(scale) is int and precision > 0 and max(precision, abs(scale)) < 10_000):
        raise UnknownTypeError(
            f"column '{name[:80]}' is a decimal of precision {precision} and scale {scale}; both must be whole numbers "
            "of up to four digits, or let the endpoint write no logical types"
        )
    return Column(name=name, type=f"decimal({max(precision, scale)}, {scale})", encoding=Encoding.UNSCALED_BASE64)
