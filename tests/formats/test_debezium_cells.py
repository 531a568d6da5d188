"""Images of cells: what is set is a value, what is not set is unchanged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.errors import IncompleteMessageError, MalformedMessageError, UnknownOperationError
from tidemark.events import ChangeEvent, Message, Operation
from tidemark.formats import debezium_json


def decode(op: str, after: Any, connector: str = "yugabytedb") -> ChangeEvent:
    """Decode a change of ``shop.people``."""
    source = {"connector": connector, "db": "shop", "table": "people", "ts_ms": 1, "lsn": 5}
    value = json.dumps({"op": op, "before": None, "after": after, "source": source}).encode()
    (event,) = debezium_json.decode(Message(value=value, key=b'{"id": 1}', file="f", place=1), debezium_json.Options())
    assert isinstance(event, ChangeEvent)
    return event


def cell(value: Any) -> dict[str, Any]:
    """Return a cell that is set."""
    return {"value": value, "set": True}


@pytest.mark.parametrize("unset", [None, {"value": None, "set": False}, {"value": "old", "set": False}])
@pytest.mark.parametrize("connector", ["yugabytedb", "postgresql"])
def test_a_cell_that_is_not_set_is_unchanged(unset: object, connector: str) -> None:
    """It is absent, and the event is partial."""
    event = decode("u", {"id": cell(1), "name": unset, "score": cell(None)}, connector)
    assert json.loads(event.after or b"") == {"id": 1, "score": None}
    assert (event.partial, event.absent, event.key) == (True, ("name",), ("id",))
    assert event.shape is not None
    assert [column.name for column in event.shape.columns] == ["id", "name", "score"]


def test_a_row_whose_cells_are_all_set_is_whole() -> None:
    """Nothing of it is unchanged."""
    event = decode("c", {"id": cell(1), "tags": cell({"value": 2, "set": True}), "set": cell("x")})
    assert json.loads(event.after or b"") == {"id": 1, "tags": {"value": 2, "set": True}, "set": "x"}
    assert (event.partial, event.absent) == (False, ())


@pytest.mark.parametrize(
    "row",
    [
        {"id": 1, "doc": {"value": 1, "set": True}},
        {"doc": {"value": 1, "set": True}, "id": 1},
        {"id": 1, "text": '{"value": 1, "set": true}'},
        {"id": 1, "set": "set", "value": {"a": 1}},
        {"map": {"value": "1", "set": "true"}},
        {"map": {"value": 1, "set": True, "other": 2}},
        {"map": {"set": True}},
        {"map": {"value": 1, "set": None}},
        {"list": [{"value": 1, "set": True}]},
    ],
)
def test_a_row_with_a_column_that_is_no_cell_has_no_cells(row: dict[str, Any]) -> None:
    """Objects, maps and texts that look like cells stay as they are."""
    event = decode("c", row)
    assert json.loads(event.after or b"") == row
    assert (event.partial, event.absent) == (False, ())


def test_an_insert_of_cassandra_changes_the_columns_that_it_sets() -> None:
    """It is an upsert."""
    event = decode("i", {"id": cell(1), "name": None}, "cassandra")
    assert (event.operation, event.partial, event.absent, event.upsert) == (Operation.UPDATE, True, ("name",), True)


def test_a_range_tombstone_of_cassandra_is_no_snapshot() -> None:
    """Which rows it deletes is not known."""
    with pytest.raises(IncompleteMessageError, match="range tombstone"):
        decode("r", {"id": cell(1)}, "cassandra")
    assert decode("r", {"id": cell(1)}).operation is Operation.SNAPSHOT


def test_operations_of_cassandra_are_its_own() -> None:
    """No other connector has an ``i``."""
    with pytest.raises(UnknownOperationError):
        decode("i", {"id": cell(1)})


def flattened(row: dict[str, Any], key: Any = None, **options: Any) -> ChangeEvent:
    """Decode a flattened row of ``shop.people``."""
    value = json.dumps({"__op": "u"} | row | {"__table": "people", "__db": "shop"}).encode()
    message = Message(value=value, key=json.dumps(key or {"code": cell(7)}).encode(), file="f", place=1)
    (event,) = debezium_json.decode(message, debezium_json.Options(**options))
    assert isinstance(event, ChangeEvent)
    return event


@pytest.mark.parametrize("added", [{"__connector": "yugabytedb"}, {"__connector": "postgresql"}, {}])
def test_cells_of_a_flattened_row_are_read(added: dict[str, Any]) -> None:
    """Debezium's own transform leaves them as they are, in the record key too."""
    row = {"code": cell(7), "name": None, "score": cell(None), "day": {"value": 3, "set": False}}
    event = flattened(row | added)
    assert json.loads(event.after or b"") == {"code": 7, "score": None}
    assert (event.operation, event.partial, event.absent) == (Operation.UPDATE, True, ("name", "day"))
    assert (event.key, str(event.table)) == (("code",), "shop.people")
    assert event.shape is not None
    assert [column.name for column in event.shape.columns] == list(row)
    whole = flattened({"code": cell(7), "name": cell("n"), "__op": "c"} | added)
    assert (whole.operation, json.loads(whole.after or b"")) == (Operation.INSERT, {"code": 7, "name": "n"})
    assert (whole.partial, whole.absent) == (False, ())


@pytest.mark.parametrize("row", [{"code": cell(7), "name": None}, {"code": None, "name": cell("n")}, {}])
def test_a_deleted_row_of_cells_has_its_key_from_the_record_key(row: dict[str, Any]) -> None:
    """The cells that are null are no values of the row."""
    event = flattened(row | {"__op": "d", "__deleted": "true", "__connector": "yugabytedb"})
    assert (event.operation, event.key, event.partial) == (Operation.DELETE, ("code",), False)
    image = json.loads(event.before or b"")
    assert image["code"] == 7
    assert image.get("name") == ("n" if row.get("name") else None)
    assert "name" not in image or row.get("name")


def test_the_schema_of_a_flattened_row_of_cells_has_the_types_of_their_values() -> None:
    """As in an envelope."""
    parts = [{"type": "int32", "name": "io.debezium.time.Date", "field": "value"}, {"type": "boolean", "field": "set"}]
    fields = [{"type": "struct", "field": "day", "fields": parts}, {"type": "string", "field": "__op"}]
    value = {"schema": {"type": "struct", "fields": fields}, "payload": {"day": cell(19000), "__op": "c"}}
    message = Message(value=json.dumps(value).encode(), file="f", place=1)
    (event,) = debezium_json.decode(message, debezium_json.Options(table="shop.people"))
    assert isinstance(event, ChangeEvent)
    assert event.shape is not None
    assert [(column.name, column.type) for column in event.shape.columns] == [("day", "date")]
    assert event.after == b'{"day":19000}'


def test_cells_beside_a_field_that_no_setting_names_are_set_aside() -> None:
    """Else the text of each cell would be published as the value."""
    row = {"code": cell(7), "name": cell("n"), "__stamp": 5}
    with pytest.raises(MalformedMessageError, match=r"__stamp.*add_fields"):
        flattened(row | {"__connector": "yugabytedb"})
    with pytest.raises(MalformedMessageError, match="__stamp"):
        flattened(row, connector="yugabytedb")
    named = flattened(row, connector="yugabytedb", add_fields="op,table,db,ts_ms:stamp")
    assert json.loads(named.after or b"") == {"code": 7, "name": "n"}


@pytest.mark.parametrize(
    ("added", "options", "partial"),
    [
        ({}, {}, False),
        ({}, {"row_image": "partial"}, True),
        ({"__connector": "postgresql"}, {"row_image": "partial"}, True),
        ({"__connector": "yugabytedb"}, {}, True),
        ({}, {"connector": "yugabytedb"}, True),
        ({"__connector": "yugabytedb"}, {"row_image": "full"}, False),
    ],
)
def test_an_update_of_the_columns_that_were_set_is_partial(
    added: dict[str, Any], options: dict[str, Any], *, partial: bool
) -> None:
    """YugabyteDB's own transform leaves the others out."""
    row, key = {"code": 7, "age": 30}, {"code": 7}
    event = flattened(row | added, key, **options)
    assert (event.operation, event.partial, event.absent) == (Operation.UPDATE, partial, ())
    assert not flattened({"__op": "c"} | row | added, key, **options).partial
    assert not flattened({"__deleted": "true"} | row | added, key, **options).partial


def test_a_column_of_the_schema_that_a_partial_row_lacks_is_unchanged() -> None:
    """It is in the shape of the event, so the event names it."""
    names = ["code", "age", "name", "__op", "__connector"]
    schema = {"type": "struct", "fields": [{"type": "string", "field": name} for name in names]}
    row = {"code": "7", "age": None, "__op": "u", "__connector": "yugabytedb"}
    value = json.dumps({"schema": schema, "payload": row}).encode()
    options = debezium_json.Options(table="shop.people")
    (event,) = debezium_json.decode(Message(value=value, file="f", place=1), options)
    assert isinstance(event, ChangeEvent)
    assert (event.partial, event.absent) == (True, ("name",))
