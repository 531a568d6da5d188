"""Images of cells: what is set is a value, what is not set is unchanged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.errors import IncompleteMessageError, UnknownOperationError
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
