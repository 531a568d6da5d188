"""Which load a row of Debezium belongs to: known by the position that all rows of a complete load carry."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.events import ChangeEvent, ControlEvent, Event, Message
from tidemark.formats import debezium_json
from tidemark.positions import Position, encode_position

MYSQL = {"connector": "mysql", "db": "shop", "table": "orders", "file": "mysql-bin.000003", "pos": 154, "row": 0}
POSTGRESQL = {"connector": "postgresql", "db": "shop", "schema": "public", "table": "orders", "lsn": 100}
ORACLE = {"connector": "oracle", "schema": "SHOP", "table": "ORDERS", "scn": "1513734"}
SQLSERVER = {"connector": "sqlserver", "schema": "dbo", "table": "orders", "commit_lsn": "00000025:00000d98:00a2"}
MONGODB = {"connector": "mongodb", "db": "shop", "collection": "orders", "ts_ms": 5, "ord": 9}
LINDORM = {"version": "v1.0", "db": "ld-x", "namespace": "default", "table": "orders", "ts_ms": 5}


def decode(value: dict[str, Any], place: int = 1, **options: Any) -> Event:
    """Decode a message of one event."""
    message = Message(value=json.dumps(value).encode(), file="f", place=place)
    (event,) = debezium_json.decode(message, debezium_json.Options(**options))
    return event


def load(source: dict[str, Any], snapshot: Any, op: str = "r", **options: Any) -> Position | None:
    """The load that a row belongs to, by its message."""
    image = '{"_id":1}' if "collection" in source else {"id": 1}
    event = decode({"op": op, "after": image, "source": {**source, "snapshot": snapshot}, "ts_ms": 1}, **options)
    assert isinstance(event, ChangeEvent)
    return event.load


@pytest.mark.parametrize(
    "snapshot", [True, "true", "first", "first_in_data_collection", "last_in_data_collection", "last"]
)
def test_every_row_of_a_complete_load_tells_where_it_began(snapshot: bool | str) -> None:  # noqa: FBT001
    """The only row of a table is marked as its last one, and older connectors mark none but the last of all."""
    assert load(MYSQL, snapshot) == (1, 3, 154, 0, 1)


@pytest.mark.parametrize("snapshot", ["incremental", "false", False, None, ""])
def test_a_row_that_comes_beside_the_changes_is_of_no_complete_load(snapshot: bool | str | None) -> None:  # noqa: FBT001
    """An incremental load reads the table in chunks; without a mark nothing is known."""
    assert load(MYSQL, snapshot) is None


@pytest.mark.parametrize(
    ("source", "began"),
    [
        (MYSQL, (1, 3, 154, 0, 1)),
        ({**MYSQL, "connector": "mariadb"}, (1, 3, 154, 0, 1)),
        (POSTGRESQL, (1, 100, 0, 1)),
        (ORACLE, (1, 1513734, 1513734, 0, 0, 0, 0, 0, 1)),
        (SQLSERVER, (1, 0x0000002500000D9800A2, 0, 0, 1)),
        ({**SQLSERVER, "connector": "db2"}, (1, 0x0000002500000D9800A2, 0, 0, 1)),
        (MONGODB, None),
        ({"connector": "vitess", "db": "shop", "table": "orders", "ts_ms": 5}, None),
        ({**POSTGRESQL, "lsn": None}, None),
        ({**MYSQL, "file": None}, None),
    ],
    ids=lambda value: value.get("connector") if isinstance(value, dict) else "",
)
def test_a_load_is_known_by_its_place_in_the_log(source: dict[str, Any], began: Position | None) -> None:
    """Where a connector does not give all rows of a load one place in a log, loads cannot be told apart."""
    assert load(source, "true") == began


def test_a_load_begins_below_its_rows_and_above_what_it_holds() -> None:
    """Earlier changes are below, later ones above, and so is a change at the same place: it is not replaced."""
    row = decode({"op": "r", "after": {"id": 1}, "source": {**MYSQL, "snapshot": "true"}, "ts_ms": 1})
    assert isinstance(row, ChangeEvent)
    assert row.load is not None
    before, at, behind = (
        decode({"op": "c", "after": {"id": 1}, "source": {**MYSQL, "pos": pos, "snapshot": "false"}, "ts_ms": 1})
        for pos in (153, 154, 155)
    )
    positions = [before.position, row.load, row.position, at.position, behind.position]
    assert sorted(map(encode_position, positions)) == list(map(encode_position, positions))


def test_rows_of_one_load_have_one_beginning() -> None:
    """Whatever their place in the dump and their mark."""
    rows = [
        decode({"op": "r", "after": {"id": 1}, "source": {**POSTGRESQL, "snapshot": mark}, "ts_ms": 1}, place)
        for place, mark in enumerate(("first", "true", "last"), start=1)
    ]
    assert {row.load for row in rows if isinstance(row, ChangeEvent)} == {(1, 100, 0, 1)}
    assert len({row.position for row in rows}) == 3


@pytest.mark.parametrize("op", ["c", "u"])
def test_a_change_that_is_marked_as_of_a_load_begins_none(op: str) -> None:
    """Only what says itself that it was read from the table replaces anything."""
    assert load(MYSQL, "true", op) is None


def test_the_source_file_may_say_that_loads_are_partial() -> None:
    """Filters of the connector do not show in its messages."""
    assert load(MYSQL, "true", loads="partial") is None


def test_a_flattened_row_tells_its_load_with_the_fields_that_were_added() -> None:
    """``add.fields``: op, source.snapshot and the fields of the position."""
    row = {"id": 1, "__op": "r", "__source_snapshot": "true", "__table": "orders"}
    added = {f"__source_{name}": MYSQL[name] for name in ("connector", "db", "file", "pos", "row")}
    event = decode({**row, **added})
    assert isinstance(event, ChangeEvent)
    assert event.load == (1, 3, 154, 0, 1)


def test_lindorm_tells_of_no_load() -> None:
    """Its messages have neither a mark nor a place in a log."""
    event = decode({"op": "r", "after": {"id": 1}, "source": LINDORM, "ts_ms": 1}, dialect="lindorm")
    assert isinstance(event, ChangeEvent)
    assert event.load is None


@pytest.mark.parametrize("snapshot", [True, "true"])
def test_statements_of_a_load_describe_and_change_nothing(snapshot: bool | str) -> None:  # noqa: FBT001
    """A load of MySQL begins with DROP TABLE IF EXISTS of every table, which nobody executed."""
    source = {**MYSQL, "snapshot": snapshot}
    statement = {"source": source, "databaseName": "shop", "ddl": "DROP TABLE IF EXISTS `shop`.`orders`", "ts_ms": 1}
    event = decode({**statement, "tableChanges": []})
    assert isinstance(event, ControlEvent)
    assert event.kind == "table_description"
