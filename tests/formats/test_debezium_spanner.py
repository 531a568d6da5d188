"""Changes of Spanner: what a change stream did not capture comes as a null, and is no null of the row."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.errors import IncompleteMessageError
from tidemark.events import ChangeEvent, Message, Operation
from tidemark.formats import debezium_json

Row = dict[str, Any]

BOTH, NEW, WHOLE, WHOLE_AND_OLD = "OLD_AND_NEW_VALUES", "NEW_VALUES", "NEW_ROW", "NEW_ROW_AND_OLD_VALUES"


def decode(value: Row, key: Row | None, **options: Any) -> ChangeEvent:
    """Decode one record."""
    raw_key = None if key is None else json.dumps(key).encode()
    message = Message(value=json.dumps(value).encode(), key=raw_key, file="f", place=1)
    (event,) = debezium_json.decode(message, debezium_json.Options(**options))
    assert isinstance(event, ChangeEvent)
    return event


def change(op: str, before: Row | None, after: Row | None, captured: str | None, key: Row | None) -> ChangeEvent:
    """Decode a change of ``fleet.boats``."""
    source = {
        "connector": "spanner",
        "database_id": "fleet",
        "table": "boats",
        "ts_ms": 7,
        "value_capture_type": captured,
    }
    return decode({"op": op, "before": before, "after": after, "source": source}, key)


def image(raw: bytes | None) -> Row | None:
    """Return an image as an object."""
    return None if raw is None else json.loads(raw)


def test_a_column_that_is_null_before_and_after_is_unchanged() -> None:
    """It was null and was written as null, or it was not captured: the row has the value that it had in both cases."""
    event = change(
        "u",
        {"hull": 4, "name": None, "port": "Kiel", "crew": None, "note": "new"},
        {"hull": 4, "name": None, "port": "Emden", "crew": 9, "note": None},
        BOTH,
        {"hull": 4},
    )
    assert (event.operation, event.partial, event.absent) == (Operation.UPDATE, True, ("name",))
    assert image(event.before) == {"hull": 4, "port": "Kiel", "crew": None, "note": "new"}
    assert {**(image(event.after) or {}), "name": None} == {
        "hull": 4, "name": None, "port": "Emden", "crew": 9, "note": None,
    }  # fmt: skip


def test_a_part_of_the_key_that_is_null_is_a_value() -> None:
    """Keys of Spanner may be null, and each change has them."""
    event = change("u", {"a": 1, "b": None, "c": "x"}, {"a": 1, "b": None, "c": "y"}, BOTH, {"a": 1, "b": None})
    assert (event.partial, event.absent, image(event.before)) == (False, (), {"a": 1, "b": None, "c": "x"})
    event = change("u", {"a": 1, "b": None, "c": None}, {"a": 1, "b": None, "c": "y"}, NEW, {"a": 1, "b": None})
    assert (event.partial, event.absent, image(event.before)) == (False, (), {"a": 1, "b": None})


@pytest.mark.parametrize("captured", [NEW, "UNKNOWN", "VALUES_OF_NEXT_YEAR", None])
def test_an_update_whose_nulls_may_be_unchanged_columns_is_set_aside(captured: str | None) -> None:
    """Without old values nothing tells them apart. An UPDATE without nulls has the whole row."""
    with pytest.raises(IncompleteMessageError, match=r"`name`, `port`.*value_capture_type = 'NEW_ROW'"):
        change("u", {"hull": 4}, {"hull": 4, "name": None, "port": None, "crew": 9}, captured, {"hull": 4})
    event = change("u", {"hull": 4, "crew": None}, {"hull": 4, "crew": 9}, captured, {"hull": 4})
    assert (event.partial, event.absent, image(event.before)) == (False, (), {"hull": 4})


@pytest.mark.parametrize("before", [None, {}, {"hull": 4}])
def test_an_update_whose_old_row_lacks_a_column_is_set_aside(before: Row | None) -> None:
    """The connector writes an old row with each UPDATE; where something took it away, a null may be either."""
    with pytest.raises(IncompleteMessageError, match="`name`"):
        change("u", before, {"hull": 4, "name": None}, BOTH, {"hull": 4})


@pytest.mark.parametrize("captured", [WHOLE, WHOLE_AND_OLD])
def test_a_stream_of_whole_rows_has_nulls_that_are_nulls(captured: str) -> None:
    """Of the old row it has the changed columns at most, so a null there says nothing."""
    event = change(
        "u", {"hull": 4, "name": None, "port": "Kiel"}, {"hull": 4, "name": None, "port": None}, captured, {"hull": 4}
    )
    assert (event.partial, event.absent) == (False, ())
    assert image(event.after) == {"hull": 4, "name": None, "port": None}
    assert image(event.before) == {"hull": 4, "port": "Kiel"}


@pytest.mark.parametrize("captured", [BOTH, NEW, WHOLE, WHOLE_AND_OLD, None])
def test_an_insert_has_all_columns(captured: str | None) -> None:
    """What a stream captures makes no difference to it."""
    event = change("c", None, {"hull": 4, "name": None}, captured, {"hull": 4})
    assert (event.partial, event.absent, image(event.after)) == (False, (), {"hull": 4, "name": None})


@pytest.mark.parametrize(
    ("captured", "was"),
    [
        (BOTH, {"hull": 4, "name": None, "port": "Kiel"}),
        (WHOLE_AND_OLD, {"hull": 4, "name": None, "port": "Kiel"}),
        (NEW, {"hull": 4, "port": "Kiel"}),
        (WHOLE, {"hull": 4, "port": "Kiel"}),
        (None, {"hull": 4, "port": "Kiel"}),
    ],
)
def test_a_deleted_row_has_nulls_where_old_values_are_captured(captured: str | None, was: Row) -> None:
    """Elsewhere a null says nothing, and a row that is deleted softly keeps what it had."""
    event = change("d", {"hull": 4, "name": None, "port": "Kiel"}, None, captured, {"hull": 4})
    assert (event.operation, image(event.before), event.key) == (Operation.DELETE, was, ("hull",))


def test_nulls_of_another_connector_are_nulls() -> None:
    """Only Spanner's change streams leave out what did not change."""
    row = {"hull": 4, "name": None}
    source = {"connector": "mysql", "db": "fleet", "table": "boats", "file": "binlog.000003", "pos": 4}
    event = decode({"op": "u", "before": row, "after": row, "source": source}, {"hull": 4})
    assert (event.partial, event.absent, image(event.before)) == (False, (), row)


def flat(captured: str | None, op: str = "u", **row: Any) -> ChangeEvent:
    """Decode a flattened change."""
    fields = {} if captured is None else {"__source_value_capture_type": captured}
    marks = {"__op": op, "__table": "boats", "__source_ts_ms": 7, "__deleted": str(op == "d").lower()}
    return decode({"hull": 4, **row, **marks, **fields}, {"hull": 4}, connector="spanner")


@pytest.mark.parametrize("captured", [BOTH, NEW, None])
def test_a_flattened_update_with_nulls_is_set_aside_unless_its_stream_has_whole_rows(captured: str | None) -> None:
    """A flattened row has no old row, so nothing tells a null from a column that did not change."""
    with pytest.raises(IncompleteMessageError, match=r"`name`.*`source.value_capture_type`"):
        flat(captured, name=None, port="Kiel")
    event = flat(captured, name="Elbe", port="Kiel")
    assert (event.partial, event.absent) == (False, ())


@pytest.mark.parametrize("captured", [WHOLE, WHOLE_AND_OLD])
def test_a_flattened_update_of_a_whole_row_has_its_nulls(captured: str) -> None:
    """What the stream captures is no column of the table."""
    event = flat(captured, name=None)
    assert (event.partial, event.absent) == (False, ())
    assert event.shape is not None
    assert [column.name for column in event.shape.columns] == ["hull", "name"]


@pytest.mark.parametrize(
    ("captured", "was"), [(BOTH, {"name": None}), (WHOLE_AND_OLD, {"name": None}), (NEW, {}), (WHOLE, {}), (None, {})]
)
def test_a_flattened_delete_has_nulls_where_old_values_are_captured(captured: str | None, was: Row) -> None:
    """As an envelope has them."""
    found = image(flat(captured, "d", name=None).before) or {}
    assert {name: value for name, value in found.items() if not name.startswith("__")} == {"hull": 4, **was}


def test_what_a_stream_captures_says_who_wrote_a_flattened_row() -> None:
    """No other connector has this field."""
    row = {"hull": 4, "name": None, "__op": "u", "__table": "boats", "__source_ts_ms": 7, "__value_capture_type": NEW}
    with pytest.raises(IncompleteMessageError, match="`name`"):
        decode(row, {"hull": 4})


def test_the_fields_of_spanner_are_no_columns() -> None:
    """A transform that adds them says where a row came from."""
    fields = dict.fromkeys(
        (
            "project_id", "instance_id", "database_id", "change_stream_name", "server_transaction_id", "low_watermark",
            "read_at_timestamp", "number_records_in_transaction", "transaction_tag", "system_transaction",
            "partition_token", "mod_number", "is_last_record_in_transaction_in_partition",
            "number_of_partitions_in_transaction",
        ),
        "1",
    )  # fmt: skip
    event = flat(WHOLE, "c", **{f"__{name}": value for name, value in fields.items()})
    assert event.shape is not None
    assert [column.name for column in event.shape.columns] == ["hull"]
