"""Labels of ENUM and SET: instead of a label, Canal and TiCDC write the number that MySQL keeps.

``mysqlType`` names the members, and ``sqlType`` tells a number from a label: a producer that writes labels gives them
the type of a text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from tidemark.errors import UnreadableValueError
from tidemark.formats._json import NULL, members, read

_LISTED = re.compile(r"\s*(enum|set)\s*\(\s*('(?:[^'\\]|'')*'(?:\s*,\s*'(?:[^'\\]|'')*')*)\s*\)", re.IGNORECASE)
"""A type with its members. Tools write a backslash in a label in more ways than one, so such a list is not read."""

_LABEL = re.compile(r"'((?:[^']|'')*)'")

_NUMBERS = {"enum": frozenset({4}), "set": frozenset({-7, 2004, -2})}
"""The numbers of ``java.sql.Types`` under which numbers come: INTEGER; BIT, BLOB and BINARY.

Canal writes the ``sqlType`` of the last row of a message. Where that row has null in a SET, it is BLOB, and before
1.1.7 BINARY. All other rows have numbers then, too, and so have old values. An ENUM that is null is INTEGER as well."""

_types = msgspec.json.Decoder(dict[str, str])

_type_codes = msgspec.json.Decoder(dict[str, int])

_MOST_DIGITS = 20
"""A SET has 64 members at the most."""

_encode = msgspec.json.encode


class EnumLabels(NamedTuple):
    """The members of an ENUM or a SET."""

    kind: str
    labels: tuple[str, ...]


_NONE: Mapping[str, EnumLabels] = MappingProxyType({})


def numbered(types: msgspec.Raw, numbers: msgspec.Raw) -> Mapping[str, EnumLabels]:
    """Return the columns whose values are numbers of members, with the members.

    Args:
        types: ``mysqlType``.
        numbers: ``sqlType``; it is looked at if a type has members.
    """
    listed = _listed(bytes(types))
    if not listed or not numbers or bytes(numbers) == NULL:
        return _NONE
    type_codes = read(_type_codes, bytes(numbers))
    return {name: of for name, of in listed.items() if type_codes.get(name) in _NUMBERS[of.kind]}


@functools.lru_cache(maxsize=1024)
def _listed(types: bytes) -> Mapping[str, EnumLabels]:
    if not types or types == NULL:
        return _NONE
    found = {name: _LISTED.match(text) for name, text in read(_types, types).items()}
    return {
        name: EnumLabels(match[1].lower(), tuple(label.replace("''", "'") for label in _LABEL.findall(match[2])))
        for name, match in found.items()
        if match
    }


def labelled(image: bytes, columns: Mapping[str, EnumLabels]) -> bytes:
    """Return a row with labels in the place of numbers; the same object if it has none.

    Args:
        image: the row.
        columns: ``numbered``.

    Raises:
        UnreadableValueError: there is no member with such a number.
    """
    found = members(image)
    texts = {name: bytes(found[name]).strip(b'"') for name in columns if name in found}
    numbers = {name: int(text) for name, text in texts.items() if text.isdigit() and len(text) <= _MOST_DIGITS}
    if not numbers:
        return image
    labels = {name: msgspec.Raw(_encode(_label(name, number, columns[name]))) for name, number in numbers.items()}
    return _encode(found | labels)


def _label(name: str, number: int, of: EnumLabels) -> str:
    """Return the label of an ENUM, where 0 stands for a value that was none; the labels of a SET."""
    if number >= (1 << len(of.labels) if of.kind == "set" else len(of.labels) + 1):
        raise UnreadableValueError(
            f"column '{name}' has the number {number}, but `mysqlType` names {len(of.labels)} members of the "
            f"{of.kind.upper()}: the type is of another time than the row"
        )
    if of.kind == "set":
        return ",".join(label for place, label in enumerate(of.labels) if number >> place & 1)
    return of.labels[number - 1] if number else ""
