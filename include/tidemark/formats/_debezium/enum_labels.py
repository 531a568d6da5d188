r"""Labels of ENUM, in which the connectors of MySQL and MariaDB escape commas and backslashes in rows of the log.

A load reads ``so, so``, and a change of the same row has ``so\, so``. The schema lists the labels as the changes have
them, with commas between: ``a,so\, so``. Without a schema nothing tells which column is an ENUM.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from tidemark.formats import _connect
from tidemark.formats._debezium.source import Source
from tidemark.formats._json import members
from tidemark.values.bounds import escaped_labels

ESCAPED = b"\\\\"
"""What an image has that holds an escaped label."""

_ENUM = "io.debezium.data.Enum"

CONNECTORS = frozenset({"mysql", "mariadb"})
"""Those of MySQL and MariaDB, which escape labels."""

_NONE: Mapping[str, Mapping[bytes, msgspec.Raw]] = MappingProxyType({})


def with_plain_labels(image: bytes | None, source: Source, schema: msgspec.Raw | bytes | None) -> bytes | None:
    """Return the image of a row of the log with the labels of its ENUMs as they are; a row of a load has them so.

    Args:
        image: the row.
        source: the block of this name.
        schema: of the message.
    """
    if not schema or image is None or ESCAPED not in image or source.connector not in CONNECTORS:
        return image
    escaped = _escaped(bytes(schema))
    if not escaped:
        return image
    found = members(image)
    plain = {
        name: labels[bytes(found[name])]
        for name, labels in escaped.items()
        if name in found and bytes(found[name]) in labels
    }
    return msgspec.json.encode({**found, **plain}) if plain else image


@functools.lru_cache(maxsize=1024)
def _escaped(schema: bytes) -> Mapping[str, Mapping[bytes, msgspec.Raw]]:
    """Return by ENUM the labels that are escaped in a message with this schema, as JSON, with what they are."""
    found = {}
    for field in _connect.row_fields(schema):
        allowed = (field.parameters or {}).get("allowed", "")
        if field.name == _ENUM and "\\" in allowed:
            plain_forms = {label: plain for label, plain in escaped_labels(allowed) if label != plain}
            found[field.field or ""] = {_json(label): msgspec.Raw(_json(plain)) for label, plain in plain_forms.items()}
    return found or _NONE


def _json(label: str) -> bytes:
    return msgspec.json.encode(label)
