"""Which columns of a table can be compared, and how: pairs of a column at the source and a column of the lake."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from tidemark.text import harmless


class ValueKind(StrEnum):
    """What the values of a pair of columns are. It decides which text stands for a value on both sides."""

    BOOLEAN = "boolean"
    NUMBER = "number"
    """Whole numbers and decimals: digits without leading zeros, and without zeros at the end of a fraction."""
    DOUBLE = "double"
    """The 64 bits of the nearest double, as digits 0 and 1; zero has no sign, and NaN is a word."""
    DATE = "date"
    WALL = "wall"
    """A date and a time of day, without zeros at the end of the fraction."""
    INSTANT = "instant"
    """The same in UTC."""
    TEXT = "text"
    PADDED = "padded"
    """Text of a fixed length: blanks at its end do not count."""
    BYTES = "bytes"
    """Hexadecimal digits."""


NO_KEYS = frozenset({ValueKind.DOUBLE})
"""Kinds whose text says nothing to people. A key of such a kind is not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """A column as the catalog of the source database describes it."""

    name: str
    type: str
    """Name of its type there, without arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPair:
    """A column of the lake and the column of the source that it must equal."""

    source: str
    lake: str
    kind: ValueKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPairs:
    """What is compared of a table."""

    key: tuple[ColumnPair, ...]
    """In the order of the key; empty for a table without a key."""
    all: tuple[ColumnPair, ...]
    """The key, then every other column that is compared."""
    left_out: Mapping[str, str]
    """Column -> why it is not compared."""


_NUMBERS: Mapping[str, ValueKind] = {"int": ValueKind.NUMBER, "long": ValueKind.NUMBER, "decimal": ValueKind.NUMBER}

_TEXT: Mapping[str, ValueKind] = {"string": ValueKind.TEXT}

_BYTES: Mapping[str, ValueKind] = {"binary": ValueKind.BYTES}


def _each(names: str, kinds: Mapping[str, ValueKind]) -> dict[str, Mapping[str, ValueKind]]:
    return {name.strip(): kinds for name in names.split(",")}


_POSTGRES: Mapping[str, Mapping[str, ValueKind]] = {
    "boolean": {"boolean": ValueKind.BOOLEAN},
    **_each("smallint, integer, bigint, numeric", _NUMBERS),
    "real": {"float": ValueKind.DOUBLE},
    "double precision": {"double": ValueKind.DOUBLE},
    **_each("text, character varying, uuid, enum", _TEXT),
    "character": {"string": ValueKind.PADDED},
    "date": {"date": ValueKind.DATE},
    "timestamp without time zone": {"timestamp": ValueKind.WALL},
    "timestamp with time zone": {"timestamptz": ValueKind.INSTANT},
    "bytea": _BYTES,
}

_MYSQL: Mapping[str, Mapping[str, ValueKind]] = {
    **_each("tinyint, bit", {"boolean": ValueKind.BOOLEAN, **_NUMBERS}),
    **_each("smallint, mediumint, int, bigint, decimal, year", _NUMBERS),
    **_each("char, varchar, tinytext, text, mediumtext, longtext, enum, set, uuid", _TEXT),
    "date": {"date": ValueKind.DATE},
    "datetime": {"timestamp": ValueKind.WALL},
    "timestamp": {"timestamptz": ValueKind.INSTANT},
    **_each("binary, varbinary, tinyblob, blob, mediumblob, longblob", _BYTES),
}

_KINDS: Mapping[str, Mapping[str, Mapping[str, ValueKind]]] = {"postgres": _POSTGRES, "mysql": _MYSQL}


def kind_of(dialect: str, source_type: str, lake_type: str) -> ValueKind | None:
    """Return how a column of the source is compared with a column of the lake; None where no text is exact for both."""
    word = lake_type.partition("(")[0].strip()
    return _KINDS[dialect].get(source_type, {}).get(word)


def pairs_of(
    dialect: str,
    source: Sequence[SourceColumn],
    lake: Mapping[str, str],
    key: Sequence[str],
    *,
    changed: Collection[str] = (),
    called: Mapping[str, str] = MappingProxyType({}),
) -> ColumnPairs:
    """Return the pairs of columns to compare, and why other columns are not compared.

    A column of the lake belongs to the column of the source with the same name, unless it is published under another.

    Args:
        dialect: of the source database.
        source: columns of the table there.
        lake: column -> Iceberg type string, without Tidemark's own columns.
        key: key columns of the lake's table.
        changed: columns of the lake whose values are not the source's on purpose.
        called: columns that are published under other names: name at the source to published name.
    """
    there = {column.name: column.type for column in source}
    at_source = {name: name for name in lake} | {new: old for old, new in called.items() if new in lake}
    left_out = {name: "the lake does not have it" for name in there if name not in at_source.values()}
    found: dict[str, ColumnPair] = {}
    for name in dict.fromkeys([*key, *lake]):
        source_name = at_source.get(name, name)
        if source_name not in there:
            left_out[name] = "the source does not have it"
        elif name in changed:
            left_out[name] = "it is published with other values"
        elif kind := kind_of(dialect, there[source_name], lake[name]):
            found[name] = ColumnPair(source=source_name, lake=name, kind=kind)
        else:
            left_out[name] = (
                f"{there[source_name]} at the source and {lake[name]} in the lake have no text that is exact"
            )
    whole_key = all(name in found and found[name].kind not in NO_KEYS for name in key)
    return ColumnPairs(
        key=tuple(found[name] for name in key) if whole_key else (), all=tuple(found.values()), left_out=left_out
    )


def key_problem(pairs: ColumnPairs, key: Iterable[str]) -> str | None:
    """Return why a table with a key cannot be compared by it; None if it can."""
    names = list(key)
    if len(pairs.key) == len(names):
        return None
    wrong = next((name for name in names if name in pairs.left_out), names[0])
    return f"its key cannot be compared: {harmless(wrong)}: {pairs.left_out.get(wrong, 'it is a binary fraction')}"
