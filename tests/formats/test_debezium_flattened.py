"""Flattened rows: which fields are columns, and which column is the key. The golden folders hold the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.errors import MissingKeyError
from tidemark.events import ChangeEvent, Message, Operation
from tidemark.formats import debezium_json


def decode(row: dict[str, Any] | None, key: Any = None, **options: Any) -> ChangeEvent:
    """Decode one flattened row."""
    value, record_key = (None if each is None else json.dumps(each).encode() for each in (row, key))
    message = Message(value=value, key=record_key, file="f", place=1)
    (event,) = debezium_json.decode(message, debezium_json.Options(**{"table": "app.users"} | options))
    assert isinstance(event, ChangeEvent)
    return event


def columns(event: ChangeEvent) -> list[str]:
    """Return the columns of an event."""
    return [column.name for column in event.shape.columns] if event.shape else []


@pytest.mark.parametrize("name", ["__v", "__typename", "__version", "__name", "__source_lang", "__", "__OP", "_op"])
def test_fields_that_the_transform_does_not_add_are_columns(name: str) -> None:
    """Two underscores alone make no metadata."""
    event = decode({"_id": "a", name: 1, "__op": "c"}, {"id": "a"})
    assert columns(event) == ["_id", name]


@pytest.mark.parametrize(
    "name",
    ["__deleted", "__table", "__collection", "__db", "__schema", "__source_ts_ms", "__source_version", "__source_name",
     "__lsn", "__ts_ns", "__transaction_id", "__total_order", "__updateDescription_removedFields", "__keyspace"],
)  # fmt: skip
def test_fields_that_the_transform_adds_are_no_columns(name: str) -> None:
    """They have their usual names unless the options say otherwise."""
    assert columns(decode({"id": 1, name: None, "__op": "c"})) == ["id"]


def test_the_settings_of_the_transform_say_which_fields_it_adds() -> None:
    """Then fields with usual names are columns, apart from ``__deleted``, whose name is fixed."""
    row = {
        "id": 1,
        "__op": "x",
        "__table": "y",
        "m_op": "r",
        "m_where": "people",
        "m_version": "3",
        "__deleted": "false",
    }
    event = decode(row, add_fields="op, table:where,version", add_fields_prefix="m_")
    assert columns(event) == ["id", "__op", "__table"]
    assert (event.operation, str(event.table)) == (Operation.SNAPSHOT, "people")


def test_an_empty_prefix_is_a_prefix() -> None:
    """A row then has fields such as ``op``, which are no envelope."""
    event = decode({"id": 1, "op": "d", "table": "t", "db": "d"}, add_fields="op,table,db", add_fields_prefix="")
    assert (event.operation, str(event.table), columns(event)) == (Operation.DELETE, "d.t", ["id"])


def test_no_added_field_at_all() -> None:
    """An empty setting is what the transform has by default."""
    event = decode({"id": 1, "__op": "x"}, add_fields="", flattened=True)
    assert columns(event) == ["id", "__op"]


@pytest.mark.parametrize(
    ("row", "options", "key"),
    [
        ({"_id": "a", "n": 1}, {}, ("_id",)),
        ({"_id": "a", "id": "b", "__collection": "users"}, {}, ("_id",)),
        ({"_id": "a", "id": "b", "__connector": "mongodb"}, {}, ("_id",)),
        ({"_id": "a", "id": "b"}, {"connector": "mongodb"}, ("_id",)),
        ({"_id": "a", "id": "b"}, {}, ("id",)),
        ({"id": "a"}, {}, ("id",)),
        ({"id": "a", "__collection": "users"}, {}, ("id",)),
        ({"n": 1}, {}, ("id",)),
    ],
)
def test_the_id_of_a_document_in_the_record_key_is_its_column(
    row: dict[str, Any], options: dict[str, Any], key: tuple[str, ...]
) -> None:
    """A table may have columns of both names; then its record key is right as it is."""
    assert decode(row | {"__op": "c"}, {"id": "a"}, **options).key == key


@pytest.mark.parametrize("deleted", [True, "true"])
@pytest.mark.parametrize("key", [{"id": "a"}, {"payload": {"id": "a"}}, {"id": '{"$oid": "a"}'}, {"id": {"$oid": "a"}}])
def test_a_deleted_document_has_its_id_from_the_record_key(deleted: object, key: dict[str, Any]) -> None:
    """Without a pre-image, a rewritten delete has no columns."""
    event = decode({"__op": "d", "__deleted": deleted}, key)
    assert (event.operation, event.key, columns(event)) == (Operation.DELETE, ("_id",), ["_id"])
    assert json.loads(event.before or b"")["_id"] == "a"


def test_a_deleted_row_that_lacks_a_key_column_has_it_from_the_record_key() -> None:
    """Null in a key column is no value either."""
    event = decode({"tenant": None, "n": 1, "__deleted": "true"}, {"tenant": 7, "code": "a"})
    assert json.loads(event.before or b"") == {"tenant": 7, "n": 1, "__deleted": "true", "code": "a"}
    assert columns(event) == ["tenant", "n", "code"]


def test_a_deleted_row_that_nothing_identifies_is_set_aside() -> None:
    """It is never a delete of a row with null in all columns."""
    with pytest.raises(MissingKeyError):
        decode({"__op": "d", "__deleted": "true"})
