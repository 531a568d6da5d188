"""Flattened rows: which fields are columns, and which column is the key. The golden folders hold the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.errors import (
    IncompleteMessageError,
    MalformedMessageError,
    MissingKeyError,
    MissingTableError,
    UnknownOperationError,
)
from tidemark.events import ChangeEvent, ControlEvent, Message, Operation, SchemaChange
from tidemark.formats import debezium_json


def decode(row: dict[str, Any] | None, key: Any = None, offset: int | None = None, **options: Any) -> ChangeEvent:
    """Decode one flattened row."""
    value, record_key = (None if each is None else json.dumps(each).encode() for each in (row, key))
    message = Message(value=value, key=record_key, file="f", place=1, offset=offset)
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
    value = "false" if name == "__deleted" else 5 if name == "__source_ts_ms" else None
    assert columns(decode({"id": 1, name: value, "__op": "c"})) == ["id"]


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


@pytest.mark.parametrize(
    ("identity", "plain"),
    [
        ('"K-7"', "K-7"),
        ('"7"', "7"),
        ('"\\u00e9"', "é"),
        ("7", "7"),
        ("K-7", "K-7"),
        ('"K', '"K'),
        ("{K}", "{K}"),
        ('{"$numberLong": "-7"}', -7),
        ('{"$numberInt": "7"}', 7),
        ({"$numberLong": "7"}, 7),
        (7, 7),
        ({"town": "Ulm", "n": 7}, {"town": "Ulm", "n": 7}),
        ('{"town":"Ulm","n":7}', '{"town":"Ulm","n":7}'),
    ],
)
def test_the_id_of_a_deleted_document_is_as_documents_have_it(identity: object, plain: object) -> None:
    """Also from a key that only the connector wrote, and a tombstone has the same one."""
    event = decode({"__op": "d", "__deleted": True}, {"id": identity})
    assert json.loads(event.before or b"")["_id"] == plain
    tombstone = decode(None, {"id": identity}, flattened=True, connector="mongodb")
    assert json.loads(tombstone.before or b"") == {"_id": plain}


@pytest.mark.parametrize(
    "identity",
    ['{"town": "Ulm", "n": 7}', '{"$date": {"$numberLong": "7"}}', '{"$numberDouble": "7.5"}', '{"$numberInt": "x"}'],
)
def test_an_id_that_may_be_a_text_or_an_object_is_set_aside(identity: str) -> None:
    """A delete of the other one would leave the document there. Where the row has its id, the key is not asked."""
    marks = {"__deleted": True, "__collection": "users"}
    for row in (marks, marks | {"_id": None}):
        with pytest.raises(MalformedMessageError, match="is the id this text, or the object"):
            decode(row, {"id": identity})
    with pytest.raises(MalformedMessageError, match="is the id this text, or the object"):
        decode(None, {"id": identity}, flattened=True, connector="mongodb")
    assert json.loads(decode(marks | {"_id": "x"}, {"id": identity}).before or b"")["_id"] == "x"
    assert decode({"_id": "x", "__op": "u"}, {"id": identity}).key == ("_id",)


def test_a_deleted_row_that_lacks_a_key_column_has_it_from_the_record_key() -> None:
    """Null in a key column is no value either."""
    event = decode({"tenant": None, "n": 1, "__deleted": "true"}, {"tenant": 7, "code": "a"})
    assert json.loads(event.before or b"") == {"tenant": 7, "n": 1, "__deleted": "true", "code": "a"}
    assert columns(event) == ["tenant", "n", "code"]


def test_a_deleted_row_that_nothing_identifies_is_set_aside() -> None:
    """It is never a delete of a row with null in all columns."""
    with pytest.raises(MissingKeyError):
        decode({"__op": "d", "__deleted": "true"})


@pytest.mark.parametrize("deleted", ["True", "TRUE", "FALSE", "1", "0", "yes", "t", "", " true", None])
@pytest.mark.parametrize("more", [{}, {"__op": "u"}, {"__op": "d"}])
@pytest.mark.parametrize("flattened", [False, True])
def test_a_mark_of_a_delete_that_nobody_knows_is_set_aside(deleted: object, more: Any, *, flattened: bool) -> None:
    """An update in its place would bring the deleted row back."""
    with pytest.raises(UnknownOperationError, match=r"`__deleted` is .*; the transform writes true and false"):
        decode({"id": 52, "town": "Ulm", "__deleted": deleted} | more, {"id": 52}, flattened=flattened)


@pytest.mark.parametrize("deleted", [1, 0, 1.0, [], {}])
def test_a_mark_of_a_delete_of_another_type_is_set_aside(deleted: object) -> None:
    """A number is no boolean, though languages count 1 as true."""
    with pytest.raises(MalformedMessageError, match="wrong type"):
        decode({"id": 52, "__deleted": deleted}, {"id": 52})


@pytest.mark.parametrize("op", ["", None, "t", "m", "U", "delete", "x"])
@pytest.mark.parametrize("more", [{}, {"__deleted": "true"}, {"__deleted": False}])
def test_an_operation_of_a_row_that_nobody_knows_is_set_aside(op: object, more: dict[str, Any]) -> None:
    """Only a row that lacks the field is an update. A TRUNCATE has no row, so the transform writes none."""
    with pytest.raises(UnknownOperationError, match=r"`__op` is .*; a flattened row has c, u, d, r"):
        decode({"id": 52, "town": "Ulm", "__op": op} | more, {"id": 52})


@pytest.mark.parametrize(
    ("marks", "operation"),
    [
        ({"__deleted": "false"}, Operation.UPDATE),
        ({"__deleted": False}, Operation.UPDATE),
        ({"__deleted": "false", "__op": "r"}, Operation.SNAPSHOT),
        ({"__op": "d"}, Operation.DELETE),
        ({"__deleted": True, "__op": "d"}, Operation.DELETE),
        ({"__deleted": "true"}, Operation.DELETE),
    ],
)
def test_the_marks_of_a_row_say_what_became_of_it(marks: dict[str, Any], operation: Operation) -> None:
    """As the transform writes them, of rows and of documents."""
    assert decode({"id": 52} | marks, {"id": 52}).operation is operation


LIKE_ENVELOPES: list[dict[str, Any]] = [
    {"id": 7, "payload": None},
    {"id": 7, "payload": {"op": "c", "source": {"table": "others"}, "after": {"id": 9}}},
    {"id": 7, "schema": "web", "payload": {"op": "c", "source": {}, "before": None, "after": {"id": 9}}},
    {"id": 7, "op": "m", "source": {}},
    {"id": 7, "op": "d", "source": {"table": "others"}, "before": {"id": 9}, "after": None},
    {"op": "c", "source": {"table": "others"}, "after": {"id": 9}, "ts_ms": 5},
]


@pytest.mark.parametrize("row", LIKE_ENVELOPES, ids=json.dumps)
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_marks_of_a_flattened_row_count_before_columns_that_are_called_as_members_are(
    row: dict[str, Any], *, wrapped: bool
) -> None:
    """A table of an outbox has a column ``payload``, whatever is in it."""
    for marks, operation in (
        ({"__op": "u"}, Operation.UPDATE),
        ({"__op": "c", "__deleted": "false"}, Operation.INSERT),
        ({"__deleted": "true"}, Operation.DELETE),
    ):
        value = row | marks
        event = decode({"schema": None, "payload": value} if wrapped else value, {"id": 7})
        assert (event.operation, str(event.table), event.partial) == (operation, "app.users", False)
        assert {name: json.loads(event.after or event.before or b"")[name] for name in row} == row
        assert columns(event)[: len(row)] == list(row)


@pytest.mark.parametrize("row", LIKE_ENVELOPES[:-1], ids=json.dumps)
def test_where_every_message_is_a_flattened_row_its_columns_are_no_members(row: dict[str, Any]) -> None:
    """Not even the marks are needed, unless all columns are called as members are."""
    event = decode(row, {"id": 7}, flattened=True)
    assert (event.operation, json.loads(event.after or b"")) == (Operation.UPDATE, row)


def test_a_logical_message_among_flattened_rows_is_one() -> None:
    """The transform lets it pass, as it is no row."""
    content = {"prefix": "p", "content": "eA=="}
    found = {"op": "m", "ts_ms": 1, "source": {"connector": "postgresql"}, "message": content, "transaction": None}
    value = json.dumps(found | {"ts_us": 1000, "ts_ns": 1000000}).encode()
    options = debezium_json.Options(flattened=True, table="app.users")
    (event,) = debezium_json.decode(Message(value=value, key=b'{"prefix":"p"}', file="f", place=1), options)
    assert isinstance(event, ControlEvent)
    assert event.kind == "message"


@pytest.mark.parametrize(
    "value",
    [
        *LIKE_ENVELOPES[:3],
        {"payload": None, "source": {}},
        {"schema": None, "payload": None, "id": 7},
        {"schema": None, "payload": {"op": "c", "note": "an order"}, "id": 7},
        {"schema": {}, "payload": {"status": "BEGIN", "id": "8"}, "id": 7},
        {"schema": {}, "payload": "{}", "id": 7},
    ],
    ids=json.dumps,
)
def test_a_payload_beside_other_members_is_no_envelope(value: dict[str, Any]) -> None:
    """Nothing says that it is a flattened row, so it is set aside."""
    with pytest.raises(MalformedMessageError):
        decode(value, {"id": 7})


def test_an_envelope_with_a_member_that_a_transform_added_is_one() -> None:
    """Only the marks make a flattened row."""
    envelope = {"op": "c", "after": {"id": 7, "__op": "x"}, "source": {"table": "users"}, "region": "eu", "ts_ms": 3}
    for value in (envelope, {"schema": {}, "payload": envelope}, {"payload": envelope}):
        event = decode(value, {"id": 7})
        assert (event.operation, str(event.table), event.captured_at) == (Operation.INSERT, "users", 3000)
        assert columns(event) == ["id", "__op"]


@pytest.mark.parametrize("schema", [None, {"type": "struct", "fields": []}], ids=json.dumps)
def test_a_member_beside_the_schema_and_the_payload_changes_nothing(schema: Any) -> None:
    """An envelope stands behind them, or a row with its marks; the other member is reported as unknown elsewhere."""
    envelope = {"op": "u", "after": {"id": 7}, "source": {"table": "users"}, "ts_ms": 3}
    for payload in (envelope, envelope | {"region": "eu"}, {"id": 7, "__op": "u"}):
        value = {"schema": schema, "payload": payload}
        assert decode(value | {"headers": {"a": "b"}}, {"id": 7}) == decode(value, {"id": 7})


@pytest.mark.parametrize("name", ["id", "payload"])
def test_a_flattened_row_is_checked_as_an_envelope_is(name: str) -> None:
    """It has to be UTF-8, and may have a byte order mark."""
    value = b'{"%b":"\xc3\xa9","__op":"c"}' % name.encode()
    for written in (value, b"\xef\xbb\xbf" + value):
        (event,) = debezium_json.decode(Message(value=written, file="f", place=1), debezium_json.Options(table="t"))
        assert isinstance(event, ChangeEvent)
        assert event.after == value
    broken = Message(value=value.replace(b"\xc3", b""), file="f", place=1)
    with pytest.raises(MalformedMessageError, match="not UTF-8"):
        debezium_json.decode(broken, debezium_json.Options(table="t"))


ADDED = [
    {"__source_ts_ms": 1465581029100},
    {"__connector": "postgresql", "__lsn": 24023128},
    {"__connector": "mysql", "__file": "mysql-bin.000003", "__pos": 484},
    {"__table": "users", "__source_ts_ms": 1465581029100},
    {
        "__db": "app",
        "__collection": "users",
        "__connector": "mongodb",
        "__ts_ms": 1465581029100,
        "__source_ts_ms": 1465581029100,
    },
]


@pytest.mark.parametrize("added", ADDED, ids=json.dumps)
@pytest.mark.parametrize("op", ["c", "u"])
def test_a_tombstone_is_newer_than_the_row_before_it_whatever_places_the_row_has(op: str, added: Any) -> None:
    """A tombstone has its place in the dump alone, so the rows that it deletes are ordered by theirs."""
    row = {"id": 1, "__op": op} | added
    earlier, again = (decode(row, {"id": 1}, flattened=True, offset=offset) for offset in (4, 6))
    delete = decode(None, {"id": 1}, flattened=True, offset=5)
    assert earlier.position < delete.position < again.position
    assert earlier.table == delete.table == again.table
    assert earlier.committed_at == (1465581029100000 if "__source_ts_ms" in added else None)


@pytest.mark.parametrize("added", ADDED, ids=json.dumps)
def test_a_row_that_tells_deletes_keeps_its_place_in_the_log(added: dict[str, Any]) -> None:
    """Where deletes are rewritten, a tombstone follows one, and rows that a connector sends again are the same."""
    row = {"id": 1, "__op": "c", "__deleted": "false"} | added
    rewritten, by_log = (decode(row, {"id": 1}, flattened=flattened) for flattened in (True, False))
    assert rewritten.position == by_log.position


@pytest.mark.parametrize(
    ("added", "member"),
    [
        ({"__source_ts_ms": None}, "ts_ms"),
        ({"__connector": "postgresql", "__lsn": None, "__source_ts_ms": 5}, "lsn"),
        ({"__connector": "mysql", "__file": None, "__source_ts_ms": 5}, "file"),
        ({"__connector": "mongodb", "__source_ts_ms": None}, "ts_ms"),
    ],
)
def test_a_row_without_a_place_that_the_transform_adds_is_set_aside(added: dict[str, Any], member: str) -> None:
    """The other rows have it, and nothing ranks this one among them."""
    with pytest.raises(MalformedMessageError, match=rf"`source\.{member}`"):
        decode({"id": 1, "__op": "u"} | added)


@pytest.mark.parametrize(
    ("added", "number"),
    [({}, 0), ({"__connector": "postgresql"}, 0), ({"__connector": "postgresql", "__source_ts_ms": 5}, 5)],
)
def test_rows_are_ordered_by_what_the_transform_adds(added: dict[str, Any], number: int) -> None:
    """By the time, or by the place in the dump alone, where none of them has more."""
    assert decode({"id": 1, "__op": "u"} | added, offset=9).position == (1, number, 1, 0, 9)


def test_a_load_that_the_dump_alone_orders_replaces_nothing() -> None:
    """Rows of a load have no place that they share with tombstones."""
    row = {"id": 1, "__op": "r", "__connector": "postgresql", "__lsn": 24023128, "__source_snapshot": "true"}
    read = decode(row, {"id": 1}, flattened=True, offset=0)
    assert read.load is None
    assert read.position < decode(None, {"id": 1}, flattened=True, offset=1).position


@pytest.mark.parametrize("named", [{"__table": "orders"}, {"__table": "users", "__db": "web"}])
def test_a_row_of_another_table_than_the_one_that_tombstones_delete_is_set_aside(named: dict[str, Any]) -> None:
    """Its tombstones would delete rows of the table of the option, and its own rows would stay for ever."""
    row = {"id": 1, "__op": "c"} | named
    with pytest.raises(MissingTableError, match=r"tombstones delete rows of app\.users"):
        decode(row, {"id": 1}, flattened=True)
    assert decode(row, {"id": 1}).table.name == named["__table"]
    assert decode(row | {"__deleted": "false"}, {"id": 1}, flattened=True).table.name == named["__table"]


STATEMENT = {
    "source": {"connector": "mysql", "db": "app", "table": "users", "snapshot": "false", "file": "b.000001", "pos": 9},
    "ts_ms": 1, "ts_us": 1, "ts_ns": 1, "databaseName": "app", "schemaName": None, "ddl": "TRUNCATE TABLE users",
    "tableChanges": [],
}  # fmt: skip
MARKERS = [
    {"status": "BEGIN", "id": "t", "event_count": None, "data_collections": None, "ts_ms": 1},
    {"status": "END", "id": "t", "event_count": 1, "ts_ms": 1,
     "data_collections": [{"data_collection": "app.users", "event_count": 1}]},
    STATEMENT | {"source": STATEMENT["source"] | {"snapshot": "true"}},
]  # fmt: skip


@pytest.mark.parametrize("marker", MARKERS)
def test_what_comes_between_flattened_rows_is_no_row(marker: dict[str, Any]) -> None:
    """Markers of transactions and descriptions of tables have no added fields, and a row may have none either."""
    message = Message(value=json.dumps(marker).encode(), key=b'{"id":"t"}', file="f", place=1)
    (event,) = debezium_json.decode(message, debezium_json.Options(flattened=True, table="app.users"))
    assert isinstance(event, ControlEvent)
    columns = dict.fromkeys(marker, 1) | {"more": 1}
    assert decode(columns, {"id": 1}, flattened=True).operation is Operation.UPDATE


UNMARKED: list[dict[str, Any]] = [
    {"id": 31, "ddl": "drop the parcel at the door"},
    {"id": 31, "ddl": None, "note": "x"},
    {"id": 31, "tableChanges": None},
    {"source": "web", "databaseName": "app", "ddl": "ALTER TABLE users ADD a INT", "id": 31},
    {"databaseName": "app", "ddl": "ALTER TABLE users ADD a INT"},
    {"id": "31", "status": "END", "amount": 12},
    {"id": "31", "status": "BEGIN", "event_count": 1, "amount": 12},
    {"id": "31", "status": "END"},
    {"id": "31", "status": "BEGIN"},
    {"id": "31", "status": "END", "ts_ms": 5},
    {"serverName": "db7"},
    {"ts_ms": 5, "city": "Oslo"},
    {"ts_us": 5},
    {"id": 31, "op": "m"},
    {"id": 31, "op": "d"},
    {"id": 31, "op": "t"},
]


@pytest.mark.parametrize("row", UNMARKED, ids=json.dumps)
@pytest.mark.parametrize("schema", [False, True])
def test_a_row_without_marks_is_no_message_of_another_kind(row: dict[str, Any], *, schema: bool) -> None:
    """Nothing says that it is a row. It is set aside, and neither counts as control nor ends a transaction."""
    value = {"schema": None, "payload": row} if schema else row
    with pytest.raises(MalformedMessageError):
        decode(value, {"id": 31})
    event = decode(value, {"id": 31}, flattened=True)
    assert (event.operation, json.loads(event.after or b"")) == (Operation.UPDATE, row)


def _without(message: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name not in names}


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (MARKERS[0], "transaction_begin"),
        (_without(MARKERS[0], "ts_ms"), "transaction_begin"),
        (_without(MARKERS[0], "event_count", "data_collections"), "transaction_begin"),
        (MARKERS[1], "transaction_end"),
        (_without(MARKERS[1], "ts_ms"), "transaction_end"),
        (_without(MARKERS[1], "data_collections", "ts_ms"), "transaction_end"),
        (MARKERS[1] | {"ts_us": 1000, "ts_ns": 1000000}, "transaction_end"),
        (MARKERS[2], "table_description"),
        (_without(MARKERS[2], "schemaName", "ts_ms", "ts_us", "ts_ns"), "table_description"),
        (_without(MARKERS[2], "ddl"), "table_description"),
        (_without(STATEMENT, "tableChanges", "schemaName", "ts_ms", "ts_us", "ts_ns"), None),
        (STATEMENT | {"position": {"file": "b.000001", "pos": 9}}, None),
        ({"ts_ms": 5}, "heartbeat"),
        ({"ts_ms": 5, "ts_us": 5000, "ts_ns": 5000000}, "heartbeat"),
    ],
    ids=str,
)
@pytest.mark.parametrize("schema", [False, True])
def test_what_is_no_row_has_the_members_of_its_version(
    message: dict[str, Any], kind: str | None, *, schema: bool
) -> None:
    """Earlier versions lack some members, and converters leave out nulls."""
    value = json.dumps({"schema": {}, "payload": message} if schema else message).encode()
    (event,) = debezium_json.decode(Message(value=value, file="f", place=1), debezium_json.Options())
    assert event.kind == kind if isinstance(event, ControlEvent) else isinstance(event, SchemaChange) and kind is None


def test_an_envelope_without_a_source_is_one() -> None:
    """Other tools write the images and ``op`` alone, and transforms may put a member beside them."""
    for more in ({}, {"region": "eu"}):
        assert decode({"op": "c", "before": None, "after": {"id": 31}} | more).operation is Operation.INSERT
        assert decode({"op": "d", "before": {"id": 31}, "after": None} | more).operation is Operation.DELETE


def test_a_statement_about_rows_that_the_dump_orders_is_set_aside() -> None:
    """It has a place in the log, and they have none: a TRUNCATE would empty the table of newer rows."""
    message = Message(value=json.dumps(STATEMENT).encode(), key=b'{"databaseName":"app"}', file="f", place=1)
    with pytest.raises(IncompleteMessageError, match="leave the topic of schema changes out"):
        debezium_json.decode(message, debezium_json.Options(flattened=True, table="app.users"))
    for options in (debezium_json.Options(flattened=True), debezium_json.Options(flattened=True, table="app.orders")):
        (event,) = debezium_json.decode(message, options)
        assert isinstance(event, SchemaChange)


def test_a_tombstone_of_a_table_that_nothing_names_is_set_aside() -> None:
    """All messages are flattened rows, so it is the delete of one."""
    with pytest.raises(MissingTableError, match="names no table"):
        decode(None, {"id": 1}, flattened=True, table=None)


@pytest.mark.parametrize(
    ("topic", "fields", "expected"),
    [
        ("crm.north.users", {"__table": "users"}, "crm.north"),
        ("crm.south.users", {"__table": "users"}, "crm.south"),
        ("crm.south.users", {"__collection": "users"}, "crm.south"),
        ("crm.south.users", {"__table": "users", "__schema": "south"}, "crm.south"),
        ("routed", {"__table": "users"}, "routed"),
        (None, {"__table": "users"}, None),
        ("crm.south.users", {"__table": "users", "__db": "south"}, None),
        ("crm.south.users", {"__table": "users", "__keyspace": "south"}, None),
        ("crm.south.users", {}, None),
    ],
)
def test_the_topic_tells_rows_apart_whose_table_is_named_without_its_database(
    topic: str | None, fields: dict[str, str], expected: str | None
) -> None:
    """Tables of one name in two schemas come in two topics. The option ``table`` is the user's own word."""
    value = json.dumps({"id": 1, "__op": "c", "__source_ts_ms": 5, **fields}).encode()
    message = Message(value=value, key=b'{"id":1}', file="f", place=1, topic=topic, partition=0, offset=3)
    (event,) = debezium_json.decode(message, debezium_json.Options(table="users"))
    assert isinstance(event, ChangeEvent)
    assert (event.table.name, event.of_database) == ("users", expected)
