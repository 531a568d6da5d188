"""What Debezium writes into rows of the log alone: in place of values that the log does not have, and into labels."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tidemark.formats._debezium.enum_labels import with_plain_labels
from tidemark.formats._debezium.source import Source
from tidemark.formats._debezium.unlogged import without_unlogged
from tidemark.values import bounds

_POINT = {"x": 0.0, "y": 0.0, "wkb": "AQEAAAAAAAAAAAAAAAAAAAAAAAAA", "srid": None}

_ZEROS = [
    0, 0.0, False, "", "AA==", "0", "0.00", {"scale": 0, "value": "AA=="}, [], {}, "{}", _POINT, "1970-01-01T00:00:00Z",
    "1970-01-01Z", "00:00:00Z", "P0Y0M0DT0H0M0S", "1970-01-01 00:00:00.000", "1970-01-01",
]  # fmt: skip


@pytest.mark.parametrize("zero", _ZEROS, ids=str)
def test_a_zero_of_a_deleted_row_of_postgresql_is_no_value(zero: Any) -> None:
    """Each is what the connector wrote for a NOT NULL column, in one of its modes, or what CDL may make of it."""
    assert _left({"id": 1, "a": zero}, "postgresql") == {"id": 1}
    assert _left({"id": 1, "a": zero}, "postgresql", optional=False) == {"id": 1}
    assert _left({"id": 1, "a": zero}, "postgresql", optional=True) == {"id": 1, "a": zero}
    assert _left({"id": 1, "a": zero}, "mysql") == {"id": 1, "a": zero}
    assert _left({"id": 0, "a": zero}, "postgresql") == {"id": 0, "a": zero}


@pytest.mark.parametrize(
    "value", [1, -1, 0.5, True, "a", "AQ==", "10", "0x", [0], {"a": 1}, "1970-01-02Z", "1970-01-01 00:00:01"], ids=str
)
def test_another_value_of_a_deleted_row_stays(value: Any) -> None:
    """A default counts as no value where the schema declares it, whether or not the column may be null."""
    assert _left({"id": 1, "a": value}, "postgresql") == {"id": 1, "a": value}
    assert _left({"id": 1, "a": value}, "postgresql", optional=False) == {"id": 1, "a": value}
    assert _left({"id": 1, "a": value}, "postgresql", optional=False, default=value) == {"id": 1}
    assert _left({"id": 1, "a": value}, "postgresql", optional=True, default=value) == {"id": 1}


def _left(image: dict[str, Any], connector: str, **properties: Any) -> Any:
    fields = [{"field": "id", "type": "int32", "optional": False}, {"field": "a", "type": "string", **properties}]
    schema = _bytes({"type": "struct", "fields": [{"field": "before", "type": "struct", "fields": fields}]})
    key = _bytes({"id": image["id"]})
    return json.loads(without_unlogged(_bytes(image), key, connector, schema if properties else None))


@pytest.mark.parametrize("label", ["new", "so, so", "x\\y", "p\\,q", ",", "\\", "ü, \u2028", '"quoted", \\'])
def test_a_label_is_as_the_database_has_it(label: str) -> None:
    """Commas and backslashes are escaped in changes of MySQL; the other columns of a row are not touched."""
    written = label.replace("\\", "\\\\").replace(",", "\\,")
    allowed = f"a,{written},z"
    enum = {"field": "e", "type": "string", "name": "io.debezium.data.Enum", "parameters": {"allowed": allowed}}
    schema = _bytes({"type": "struct", "fields": [enum, {"field": "t", "type": "string"}]})
    image = _bytes({"e": written, "t": written})
    plain = with_plain_labels(image, Source(connector="mysql"), schema)
    assert plain is not None
    assert json.loads(plain) == {"e": label, "t": written}
    assert with_plain_labels(image, Source(connector="postgresql"), schema) == image
    assert label in (bounds.parsed(bounds.one_of_joined(allowed)).labels or ())


def _bytes(value: Any) -> bytes:
    return msgspec.json.encode(value)
