"""Replicate's data types, as metadata messages name them, and how JSON messages write their values.

"Replicate data types" and "Supported data types" of the Kafka and stream endpoints, https://help.qlik.com.
"""

from __future__ import annotations

from msgspec import UNSET

from tidemark.errors import UnknownTypeError
from tidemark.events import Column, Encoding
from tidemark.formats._replicate.wire import TableColumn
from tidemark.values import bounds

_INT = ("int", Encoding.TEXT)

_LONG = ("long", Encoding.TEXT)

_STRING = ("string", Encoding.PLAIN)

_BINARY = ("binary", Encoding.HEX)

TYPES: dict[str, tuple[str, Encoding]] = {
    "BOOLEAN": ("boolean", Encoding.TEXT),
    **dict.fromkeys(("INT1", "INT2", "INT3", "INT4", "UINT1", "UINT2", "UINT3"), _INT),
    **dict.fromkeys(("INT8", "UINT4"), _LONG),
    "UINT8": ("decimal(20, 0)", Encoding.TEXT),
    "REAL4": ("float", Encoding.TEXT),
    "REAL8": ("double", Encoding.TEXT),
    "DATE": ("date", Encoding.TEXT),
    "DATETIME": ("timestamp", Encoding.TEXT),
    # depends on the source: it may be negative or above 24 h
    "TIME": _STRING,
    **dict.fromkeys(("STRING", "WSTRING", "CLOB", "NCLOB", "JSON", "XML"), _STRING),
    **dict.fromkeys(("BYTES", "BLOB"), _BINARY),
}
"""Replicate type to column type and encoding in JSON. NUMERIC is missing, because each column has its own digits.
Numbers may be quoted, as Oracle's are."""


_RANGES = {
    **{f"INT{size}": bounds.whole(8 * size, unsigned=False) for size in (1, 2, 3)},
    **{f"UINT{size}": bounds.whole(8 * size, unsigned=True) for size in (1, 2, 3, 4, 8)},
}
"""Type to what it allows, where the type of the column allows more."""


def column(name: str, listed: TableColumn) -> Column:
    """Return a column as JSON messages write it.

    A NUMERIC without digits, or with more than 38, is a ``string``, because no other type holds all its values.

    Raises:
        UnknownTypeError: Replicate has no such type.
    """
    if listed.type.upper() == "NUMERIC":
        digits, scale = max(listed.precision, listed.scale) - min(listed.scale, 0), max(listed.scale, 0)
        if not 0 < digits <= 38:
            return Column(name=name, type="string")
        return Column(name=name, type=f"decimal({digits}, {scale})", encoding=Encoding.TEXT)
    found = TYPES.get(listed.type.upper())
    if found is None:
        raise UnknownTypeError(
            f"column '{name}' has the type '{listed.type[:80]}'; Replicate has {', '.join(TYPES)}, NUMERIC"
        )
    allowed = _RANGES.get(listed.type.upper(), UNSET)
    return Column(name=name, type=found[0], encoding=found[1], bounds=allowed)
