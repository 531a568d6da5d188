"""What is peculiar to CDL's messages; the golden folders hold the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.cases import Case, cases
from support.doc_tables import table
from tidemark.errors import MalformedMessageError, MissingKeyError, UnknownOperationError, UnknownTypeError
from tidemark.events import TIMES, ChangeEvent, ControlEvent, Encoding, Message, Operation, TableId, Transaction
from tidemark.formats import cdl_json
from tidemark.positions import changed, encode_position, loaded

ROW = {"id": 1, "status": "new", "note": None}
PLACEHOLDER = "__debezium_unavailable_value"


def decode(value: dict[str, Any] | bytes, place: int = 1, **options: Any) -> Any:
    """Decode a message to its one event."""
    raw = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
    (event,) = cdl_json.decode(Message(value=raw, file="f", place=place), cdl_json.Options(**options))
    return event


def first(operation: str = "INSERT", data: Any = None, before: Any = None, **members: Any) -> dict[str, Any]:
    """Return a bare payload of version 1.0."""
    transaction = {"properties": [{"name": "lsn", "value": 100}, {"name": "txId", "value": 7}]}
    body = {"SEG_OWNER": "public", "TABLE_NAME": "orders", "OPERATION": operation, "data": data, "before": before}
    return {"message_version": "1.0", "TIMESTAMP": 5, "transaction": transaction, "unique": {"id": 1}} | body | members


def second(op: str = "c", after: Any = None, before: Any = None, **members: Any) -> dict[str, Any]:
    """Return a bare payload of version 2.0."""
    source = {"connector": "postgresql", "db": "shop", "schema": "public", "table": "orders", "lsn": 100, "txId": 7}
    body = {"op": op, "before": before, "after": after, "source": source | {"ts_ms": 5}}
    return {"message_version": "2.0", "unique": {"id": 1}} | body | members


def schema(*columns: dict[str, Any], row: str = "data") -> dict[str, Any]:
    """Return the schema of a message whose row has these columns."""
    return {"type": "struct", "fields": [{"type": "struct", "field": row, "fields": list(columns)}]}


def typed(event: ChangeEvent) -> dict[str, tuple[str | None, Encoding]]:
    """Return type and encoding of each column."""
    assert event.shape is not None
    return {column.name: (column.type, column.encoding) for column in event.shape.columns}


@pytest.fixture(scope="module")
def document() -> list[Any]:
    """Return the events of the two messages that the document prints."""
    (case,) = (case for case in cases("cdl_json") if case.folder.name == "document")
    assert isinstance(case, Case)
    return [case.decode(message)[0] for message in case.messages]


def test_document_cdl_json(document: list[Any]) -> None:
    """``data`` is the row, ``unique`` names the key, lsn and txId stand in the properties of the transaction."""
    event = document[0]
    assert (event.operation, event.before) == (Operation.INSERT, None)
    assert event.after == b'{"count1":13,"id":34,"time1":null,"decimalNum":null}'
    assert event.table == TableId(None, "public", "ct_pg2hudi")
    assert (event.key, event.transaction) == (("id",), Transaction(id="57227595"))
    assert event.position[:2] == (1, 163955221008)
    assert (event.committed_at, event.captured_at) == (1707047996013000, None)


def test_document_debezium_json(document: list[Any]) -> None:
    """``after`` is the row, and ``source`` carries what the members of version 1.0 carry."""
    event = document[1]
    assert (event.operation, event.before) == (Operation.INSERT, None)
    assert event.after == b'{"count1":14,"id":35,"time1":null,"decimalNum":null}'
    assert (event.key, event.transaction) == (("id",), Transaction(id="57227663"))
    assert event.position[:2] == (1, 163955586912)
    assert (event.committed_at, event.captured_at) == (1707048891235000, 1707048984208000)


def test_document_messages_are_of_one_table_with_the_same_types(document: list[Any]) -> None:
    """``time1`` is a number in one version and text in the other, and a timestamp in both."""
    assert document[0].table == document[1].table
    one, other = map(typed, document)
    assert {name: type_ for name, (type_, _) in one.items()} == {name: type_ for name, (type_, _) in other.items()}
    assert one["time1"] == ("timestamp", Encoding.EPOCH_MILLIS)
    assert other["time1"] == ("timestamp", Encoding.TEXT)
    assert one["decimalNum"] == other["decimalNum"] == (None, Encoding.TEXT)


@pytest.mark.parametrize(("first_", "second_", "operation"), [
    ("INSERT", "c", Operation.INSERT), ("UPDATE", "u", Operation.UPDATE), ("DELETE", "d", Operation.DELETE),
])  # fmt: skip
def test_operations_of_both_versions(first_: str, second_: str, operation: Operation) -> None:
    """The versions spell them differently and mean the same."""
    one, other = decode(first(first_, ROW, ROW)), decode(second(second_, ROW, ROW))
    assert one.operation is other.operation is operation
    assert (one.before, one.after, one.table, one.key, one.position) == (
        other.before, other.after, other.table, other.key, other.position,
    )  # fmt: skip


@pytest.mark.parametrize("operation", ["insert", "MERGE", "TRUNCATE", ""])
def test_an_unknown_operation_of_version_1_is_named(operation: str) -> None:
    """An operation that nobody knows never becomes an INSERT."""
    with pytest.raises(UnknownOperationError, match="CDL JSON has INSERT, UPDATE, DELETE"):
        decode(first(operation, ROW))


@pytest.mark.parametrize("op", ["r", "t", "C", ""])
def test_an_unknown_operation_of_version_2_is_named(op: str) -> None:
    """The document lists three: there is no ``r``, rows of an initial load are inserts."""
    with pytest.raises(UnknownOperationError, match="CDL has c, u, d"):
        decode(second(op, ROW))


@pytest.mark.parametrize("beside", [{"id": 1}, {"id": 1, "schema": "web"}, {"data": {"id": 1}}])
def test_a_payload_that_is_null_beside_other_members_is_no_tombstone(beside: dict[str, Any]) -> None:
    """A column may be called so, and a tombstone would hide its row."""
    with pytest.raises(UnknownOperationError):
        decode({**beside, "payload": None})
    for value in ({"payload": None}, {"schema": None, "payload": None}):
        assert decode(value).kind == "tombstone"


def test_the_version_may_be_missing() -> None:
    """The members of the message show it as well."""
    assert decode(first(data=ROW, message_version=None)).after == decode(second(after=ROW, message_version=None)).after


def test_an_unknown_version_is_named() -> None:
    """A version that is not known may mean anything by the same members."""
    with pytest.raises(MalformedMessageError, match=r"'3\.0'; known are 1\.0 and 2\.0"):
        decode(first(data=ROW, message_version="3.0"))


def test_the_heartbeat_identifier_alone_makes_no_heartbeat() -> None:
    """Data messages have it as well; a heartbeat has no operation and no row."""
    assert decode(first(data=ROW, HEARTBEAT_IDENTIFIER="279fb050")).operation is Operation.INSERT
    heartbeat = decode({"HEARTBEAT_IDENTIFIER": "279fb050", "TIMESTAMP": 5, "message_version": "1.0"})
    assert isinstance(heartbeat, ControlEvent)
    assert (heartbeat.kind, heartbeat.captured_at) == ("heartbeat", 5000)
    with pytest.raises(UnknownOperationError):
        decode({"HEARTBEAT_IDENTIFIER": "279fb050", "data": ROW, "message_version": "1.0"})


@pytest.mark.parametrize(("unique", "key"), [({"id": 1}, ("id",)), ({"b": 1, "a": 2}, ("b", "a")), (None, ())])
def test_unique_names_the_key(unique: dict[str, int] | None, key: tuple[str, ...]) -> None:
    """It may have several columns, and null says that there is no key."""
    assert decode(first(data=ROW, unique=unique)).key == key


def test_the_schema_names_the_key_where_unique_is_null() -> None:
    """A table with a key has it in every message."""
    unique = {"type": "struct", "field": "unique", "fields": [{"type": "int32", "field": "id"}]}
    message_schema = {"type": "struct", "fields": [unique]}
    assert decode({"schema": message_schema, "payload": first(data=ROW, unique=None)}).key == ("id",)


@pytest.mark.parametrize(("before", "data", "row"), [(ROW, None, ROW), (None, ROW, ROW), (None, None, {"id": 1})])
def test_a_delete_takes_the_row_that_there_is(before: Any, data: Any, row: Any) -> None:
    """``before``, else ``data``, else the values of the key."""
    event = decode(first("DELETE", data, before))
    assert json.loads(event.before) == row
    assert event.after is None


@pytest.mark.parametrize(("was", "of_postgresql", "of_oracle"), [
    ({"id": 34, "name": "", "size": 0}, {"id": 34}, {"id": 34, "name": "", "size": 0}),
    ({"id": 34, "name": "Anne", "size": 0}, {"id": 34, "name": "Anne"}, {"id": 34, "name": "Anne", "size": 0}),
    ({"id": 35, "name": "", "size": 0}, {"id": 35, "name": "", "size": 0}, {"id": 35, "name": "", "size": 0}),
    ({"id": 0, "name": "", "size": 0}, {"id": 0, "name": "", "size": 0}, {"id": 0, "name": "", "size": 0}),
    ({"name": "", "size": 0}, {"name": "", "size": 0}, {"name": "", "size": 0}),
])  # fmt: skip
def test_a_row_of_postgresql_that_moves_to_another_key_is_logged_as_a_deleted_row(
    was: dict[str, Any], of_postgresql: dict[str, Any], of_oracle: dict[str, Any]
) -> None:
    """A change of the key is one UPDATE, and zeros of the row before stand for values that were not logged."""
    row, key = {"id": 35, "name": "Anne", "size": 7}, {"unique": {"id": 35}}
    for store, left in (("POSTGRESQL", of_postgresql), ("ORACLE", of_oracle)):
        source = second()["source"] | {"connector": store.lower()}
        for message in (
            first("UPDATE", row, was, DATA_STORE=store, **key),
            second("u", row, was, source=source, **key),
        ):
            event = decode(message)
            assert (json.loads(event.before), json.loads(event.after), event.partial) == (left, row, False)


def test_a_default_of_a_row_that_moves_to_another_key_is_told_by_the_schema() -> None:
    """A zero in a column that may be null is a value: the connector writes null there."""
    columns = [{"type": "string", "field": name, **more} for name, more in {
        "id": {"optional": False}, "kind": {"optional": False, "default": "plain"}, "note": {"optional": True},
    }.items()]  # fmt: skip
    was, now = ({"id": key, "kind": "plain", "note": ""} for key in ("34", "35"))
    message = {"schema": schema(*columns, row="before"), "payload": second("u", now, was, unique={"id": "35"})}
    assert json.loads(decode(message).before) == {"id": "34", "note": ""}


def test_a_delete_without_row_and_key_is_set_aside() -> None:
    """Nobody can know which row went."""
    with pytest.raises(MissingKeyError):
        decode(first("DELETE", unique=None))


@pytest.mark.parametrize("lobs", ["note", " status ,note", '["note"]', ["note"]])
def test_a_large_object_that_an_update_lacks_is_unchanged(lobs: Any) -> None:
    """LOB_COLUMNS is a list or text of one; of an INSERT such a column is null."""
    row = {"id": 1, "status": "new"}
    update = decode(first("UPDATE", row, ROW, LOB_COLUMNS=lobs))
    assert (update.partial, update.absent) == (True, ("note",))
    assert not decode(first("INSERT", row, LOB_COLUMNS=lobs)).partial


def test_null_in_a_large_object_is_null_unless_the_option_says_otherwise() -> None:
    """The document does not say which."""
    update = first("UPDATE", ROW, LOB_COLUMNS="note")
    assert not decode(update).partial
    event = decode(update, null_lob="unchanged")
    assert (event.partial, event.absent) == (True, ("note",))


@pytest.mark.parametrize(
    "message", [first("UPDATE", {**ROW, "note": PLACEHOLDER}), second("u", {**ROW, "note": PLACEHOLDER})]
)
def test_the_placeholder_of_debezium_is_unchanged(message: dict[str, Any]) -> None:
    """PostgreSQL's log does not hold large values that were not touched."""
    event = decode(message)
    assert (event.partial, event.absent) == (True, ("note",))


@pytest.mark.parametrize("message", [
    first("DELETE", None, {**ROW, "note": PLACEHOLDER}), second("d", None, {**ROW, "note": PLACEHOLDER}),
    first("UPDATE", ROW, {**ROW, "note": PLACEHOLDER}), second("u", ROW, {**ROW, "note": PLACEHOLDER}),
])  # fmt: skip
def test_the_placeholder_is_no_value_of_an_old_row(message: dict[str, Any]) -> None:
    """A delete of a bag would find no row with such a text, and a row that is kept would show it."""
    assert json.loads(decode(message).before) == {"id": 1, "status": "new"}


def test_an_update_that_lacks_all_large_objects_is_none_of_a_whole_row() -> None:
    """Also where no column of the message is called so: the table may have it, and would lose its value."""
    event = decode(second("u", {"id": 1}, {"id": 1}, LOB_COLUMNS=["note"]))
    assert (event.partial, event.absent) == (True, ())


@pytest.mark.parametrize("prefix", ["com.xxx.cdc.data.", "com.huawei.cdc.data.", "cdc.", ""])
@pytest.mark.parametrize(("end", "physical", "type_", "encoding"), [
    ("Decimal", "string", None, Encoding.TEXT), ("DECIMAL", "string", None, Encoding.TEXT),
    ("timestamp", "string", "timestamp", Encoding.TEXT), ("Timestamp", "int64", "timestamp", Encoding.EPOCH_MILLIS),
])  # fmt: skip
def test_vendor_types_are_told_by_their_ends(
    prefix: str, end: str, physical: str, type_: str | None, encoding: Encoding
) -> None:
    """The document prints ``com.xxx`` for the package."""
    column = {"type": physical, "name": f"{prefix}{end}", "field": "c"}
    event = decode({"schema": schema(column), "payload": first(data={"c": None})})
    assert typed(event) == {"c": (type_, encoding)}


def test_an_unknown_vendor_type_is_named_unless_it_is_text() -> None:
    """A number could mean any time; text is kept as it is."""
    known = {"type": "string", "name": "com.xxx.cdc.data.Clob", "field": "c"}
    assert typed(decode({"schema": schema(known), "payload": first(data={"c": "x"})}))["c"][0] == "string"
    unknown = {"type": "int64", "name": "com.xxx.cdc.data.Clob", "field": "c"}
    with pytest.raises(UnknownTypeError, match=r"'com\.xxx\.cdc\.data\.Clob' \(int64\)"):
        decode({"schema": schema(unknown), "payload": first(data={"c": 1})})


@pytest.mark.parametrize(("physical", "logical", "type_", "encoding"), table("cdl_json", "schema type"))
def test_types_of_the_page(physical: str, logical: str, type_: str, encoding: str) -> None:
    """Every line of the page's table is what the code makes of such a column."""
    name = {"": None, "any other": "com.xxx.cdc.data.Other"}.get(logical, logical.replace("...", "com.xxx.cdc.data."))
    column = {"type": physical, "name": name, "field": "c"}
    for version, row in ((first(data={"c": None}), "data"), (second(after={"c": None}), "after")):
        event = decode({"schema": schema(column, row=row), "payload": version})
        expected = None if type_.startswith("by the source file") else type_
        (made,) = event.shape.columns
        assert (made.name, made.type, made.encoding) == ("c", expected, Encoding(encoding))


@pytest.mark.parametrize(("timestamp", "micros"), [
    (1707047996013, 1707047996013000), ("1707047996013", 1707047996013000),
    ("2024-02-04 11:59:56.013", 1707047996013000), ("2024-02-04T19:59:56.013+08:00", 1707047996013000), (None, None),
])  # fmt: skip
def test_timestamp_as_number_and_as_text(timestamp: Any, micros: int | None) -> None:
    """TIMESTAMP is epoch milliseconds, its digits, or ISO 8601."""
    assert decode(first(data=ROW, TIMESTAMP=timestamp)).committed_at == micros


def test_changes_of_one_lsn_stand_in_the_order_of_the_dump() -> None:
    """Changes of one transaction may share an lsn, in both versions."""
    events = [decode(first(data=ROW), place=9), decode(second(after=ROW), place=10)]
    assert events[0].position < events[1].position
    later = first(data=ROW) | {"transaction": {"properties": [{"name": "lsn", "value": "1000"}]}}
    assert events[1].position < decode(later, place=1).position


def test_rows_without_lsn_rank_below_changes() -> None:
    """Rows of an initial load that comes late do not undo a change."""
    load = first(data=ROW, transaction=None, TIMESTAMP=1707047996013)
    assert decode(load).position < decode(first(data=ROW)).position


@pytest.mark.parametrize("deleted_at", [1707040003000, 1707040005000, 1707040007000])
def test_without_lsn_the_dump_is_the_order(deleted_at: int) -> None:
    """A clock orders no changes: a statement may carry the time that it began at, or come from another server."""
    insert, update = first(data=ROW, TIMESTAMP=1707040000000), first("UPDATE", ROW, TIMESTAMP=1707040005000)
    delete = first("DELETE", before=ROW, TIMESTAMP=deleted_at)
    again = second(after=ROW)
    again["source"] |= {"lsn": None, "ts_ms": 1707040004000}
    bare = {"transaction": None, "DATA_STORE": "ORACLE"}
    messages = [*(each | bare for each in (insert, update, delete)), again]
    positions = [decode(message, place=place).position for place, message in enumerate(messages, 1)]
    assert positions == sorted(set(positions))


@pytest.mark.parametrize(
    "message",
    [
        first("UPDATE", ROW, transaction=None, DATA_STORE="OPENGAUSS"),
        first("DELETE", before=ROW, transaction=None, DATA_STORE="DRS-openGauss-JSON"),
        first("UPDATE", ROW, transaction=None, DATA_STORE="POSTGRES"),
        second("d", before=ROW, source={"connector": "opengauss", "schema": "public", "table": "orders", "ts_ms": 5}),
        second("u", ROW, source={"connector": "GaussDB", "schema": "public", "table": "orders", "ts_ms": 5}),
        first("UPDATE", ROW, transaction=None, DATA_STORE="POSTGRESQL"),
        first(
            "DELETE", before=ROW, DATA_STORE="POSTGRESQL", transaction={"properties": [{"name": "txId", "value": 7}]}
        ),
        second("u", ROW, source={"connector": "postgresql", "schema": "public", "table": "orders", "ts_ms": 5}),
    ],
)
def test_a_change_of_a_database_with_lsn_needs_its_lsn(message: dict[str, Any]) -> None:
    """Below all changes it would be hidden by any of them. A row of a load has none, and ranks there."""
    with pytest.raises(MalformedMessageError, match=r"of [\w-]+ without `lsn`"):
        decode(message)
    decode(first(data=ROW, transaction=None, DATA_STORE="POSTGRESQL"))


@pytest.mark.parametrize("doc", [{"id": 1}, {"a": {"id": 1}}, [{"id": 1}], '{"id":1}'])
def test_the_key_of_a_row_is_no_part_of_its_values(doc: Any) -> None:
    """A member of that name and value may stand in an object of the row, in front of the key or behind it."""
    for row in ({"id": 2, "doc": doc}, {"doc": doc, "id": 2}):
        with pytest.raises(MalformedMessageError, match="has another key"):
            decode(first(data=row))
        decode(first(data=row, unique={"id": 2}))


@pytest.mark.parametrize(
    "message",
    [
        first("UPDATE", ROW, transaction=None),
        first("DELETE", before=ROW, transaction=None, DATA_STORE=""),
        second("u", ROW, source={"schema": "public", "table": "orders", "ts_ms": 5}),
        second("d", before=ROW, source={"connector": "DRS", "schema": "public", "table": "orders", "ts_ms": 5}),
        second("d", before=ROW, source=None, SEG_OWNER="public", TABLE_NAME="orders"),
    ],
)
def test_a_change_that_may_have_an_lsn_needs_one(message: dict[str, Any]) -> None:
    """Version 2.0 comes from databases with ``lsn`` alone, and one that is not named may be such a database."""
    with pytest.raises(MalformedMessageError, match="without `lsn`"):
        decode(message, table="public.orders")


def test_names_of_properties_are_read_in_any_case() -> None:
    """A change whose ``LSN`` went unseen would rank as a row of a load."""
    spelled = {"properties": [{"name": "LSN", "value": 100}, {"name": "TXID", "value": 7}]}
    event = decode(first("UPDATE", ROW, transaction=spelled, DATA_STORE="POSTGRESQL"))
    assert (event.position, event.transaction) == (decode(first("UPDATE", ROW)).position, Transaction(id="7"))


OTHER = {**ROW, "id": 9}


@pytest.mark.parametrize(
    "message",
    [
        first("INSERT", OTHER),
        first("UPDATE", OTHER),
        first("UPDATE", OTHER, {**ROW, "id": 8}),
        first("DELETE", OTHER),
        first("DELETE", before=OTHER),
        second("c", OTHER),
        second("u", OTHER),
        second("d", before=OTHER),
        first("INSERT", {"id": "b"}, unique={"id": "a"}),
        first("INSERT", {"id": True}, unique={"id": False}),
        first("INSERT", {"id": 1, "part": 2}, unique={"part": 3, "id": 1}),
        first("INSERT", {"id": 1, "note": {}}, unique={"id": 2}),
    ],
)
def test_a_key_that_is_not_the_one_of_the_row_is_set_aside(message: dict[str, Any]) -> None:
    """It says that the key changed, or that another row is meant; the row under the other key would stay."""
    with pytest.raises(MalformedMessageError, match="the row has another key"):
        decode(message)


@pytest.mark.parametrize(
    "message",
    [
        first("UPDATE", OTHER, ROW),  # the key before, and the row before that has it
        first("UPDATE", OTHER, ROW, unique={"id": 9}),
        first("INSERT", {"id": 1.50, "a": "x"}, unique={"id": 1.5}),
        first("INSERT", {"id": "\u00e9"}, unique={"id": "é"}),
        first("INSERT", {"id": "1"}, unique={"id": 1}),
        first("INSERT", {"id": 1}, unique={"id": None}),
        first("INSERT", {"status": "new"}),
        first("INSERT", {"note": {"id": 2}, "id": 1}),
    ],
)
def test_a_key_that_may_be_the_one_of_the_row_is_read(message: dict[str, Any]) -> None:
    """Numbers and texts of one value may be written in several ways, and what the row lacks contradicts nothing."""
    assert isinstance(decode(message), ChangeEvent)


def test_a_key_with_an_exponent_of_any_length_is_read() -> None:
    """JSON allows it, and it is compared with nothing."""
    for number in (b"1e99999999999999999999", b"-1E-" + b"9" * 5000):
        event = decode(
            json.dumps(first("INSERT", ROW)).encode().replace(b'"unique": {"id": 1}', b'"unique": {"id": %s}' % number)
        )
        assert isinstance(event, ChangeEvent)


@pytest.mark.parametrize(
    "members",
    [
        {"TABLE_NAME": "orders"},
        {"transaction": {"properties": [{"name": "lsn", "value": 5}]}},
        {"source": {"connector": "postgresql", "table": "orders"}},
        {"DDL": "ALTER TABLE orders RENAME COLUMN a TO b"},
    ],
)
def test_a_heartbeat_has_nothing_of_a_change(members: dict[str, Any]) -> None:
    """Data messages have its identifier too, so a change that lost its operation would be counted as one."""
    beat = {"message_version": "1.0", "message_type": "1", "HEARTBEAT_IDENTIFIER": "279f", "TIMESTAMP": 5}
    assert isinstance(decode(beat | {"SEG_OWNER": None, "DDL": None}), ControlEvent)
    with pytest.raises(UnknownOperationError):
        decode(beat | members)
    with pytest.raises(UnknownOperationError):
        decode({"schema": {}, "payload": beat | members})


def test_without_lsn_a_change_ranks_above_those_of_an_older_lake() -> None:
    """Their positions begin with a time. None of them may hide a change that comes now."""
    newest = encode_position(loaded(TIMES.stop // 1000, 1, 0, 99))
    assert newest < encode_position(decode(first(data=ROW, transaction=None)).position) < encode_position(changed(0))


@pytest.mark.parametrize("lsn", [0, "0", "000"])
def test_an_lsn_of_0_is_no_place(lsn: int | str) -> None:
    """PostgreSQL has no such place: a change there would lose to all others. A row with it is one of a load."""
    numbered = {"transaction": {"properties": [{"name": "lsn", "value": lsn}]}}
    source = {"connector": "postgresql", "schema": "public", "table": "orders", "lsn": lsn, "ts_ms": 5}
    for message in (
        first("UPDATE", ROW) | numbered,
        first("DELETE", before=ROW) | numbered,
        second("u", ROW, source=source),
        second("d", before=ROW, source=source),
    ):
        with pytest.raises(MalformedMessageError, match="without `lsn` \\(or it is 0\\)"):
            decode(message)
    bare = decode(first(data=ROW, transaction=None))
    assert decode(first(data=ROW) | numbered).position == decode(second(after=ROW, source=source)).position
    assert decode(first(data=ROW) | numbered).position == bare.position


def test_an_lsn_that_is_none_sets_the_message_aside() -> None:
    """Another order would be another state."""
    broken = {"properties": [{"name": "lsn", "value": "0/16B3748"}]}
    with pytest.raises(MalformedMessageError, match="not a log sequence number"):
        decode(first(data=ROW, transaction=broken))


def test_tables_with_their_database() -> None:
    """Version 2.0 names the database, version 1.0 does not, so by default it is no part of the name."""
    assert decode(second(after=ROW)).table == TableId(None, "public", "orders")
    assert decode(second(after=ROW), with_database=True).table == TableId("shop", "public", "orders")


def test_the_database_that_a_name_leaves_out_is_told_beside_it() -> None:
    """So rows of two databases in one table are seen; version 1.0 does not tell the database."""
    assert decode(second(after=ROW)).of_database == "shop"
    assert decode(second(after=ROW), with_database=True).of_database is None
    assert decode(first(data=ROW)).of_database is None


def test_the_configured_table_is_the_one_that_messages_name() -> None:
    """``schema.table`` in the option and in the messages are the same table."""
    assert decode(first(data=ROW, TABLE_NAME=None), table="public.orders").table == decode(first(data=ROW)).table


def test_the_same_schema_bytes_give_the_same_shape() -> None:
    """A schema that comes with every message is parsed once."""
    message_schema = schema({"type": "int32", "field": "id"})
    payloads = [first(data={"id": n}, unique={"id": n}) for n in (1, 2)]
    one, other = (decode({"schema": message_schema, "payload": payload}) for payload in payloads)
    assert one.shape is other.shape


@pytest.mark.parametrize("value", [
    b'{"payload":{"OPERATION":"INSERT","data":{"id":1,"id":2},"TABLE_NAME":"t"}}',
    b'{"payload":{"OPERATION":"INSERT","data":{"id":"\xff"},"TABLE_NAME":"t"}}',
    b'{"schema":{"fields":"x"},"payload":{"OPERATION":"INSERT","data":{"id":1},"TABLE_NAME":"t"}}',
    b'{"payload":' + b"[" * 100_000,
])  # fmt: skip
def test_hostile_messages_are_set_aside(value: bytes) -> None:
    """A column named twice, bytes that are no text, a schema that is none, depth without end."""
    with pytest.raises(MalformedMessageError):
        decode(value)


@pytest.mark.parametrize("lacking", [{"status": "sent"}, {"id": None, "status": "sent"}, {"status": "sent", "id": 1}])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_deleted_row_has_its_key_from_unique(version: str, lacking: dict[str, Any]) -> None:
    """A row may be logged without its key, and ``unique`` has it."""
    value = first("DELETE", before=lacking) if version == "1.0" else second("d", before=lacking)
    event = decode(value)
    assert json.loads(event.before) == {"id": 1, "status": "sent"}
    assert typed(event).keys() == {"id", "status"}


def test_a_key_that_only_unique_has_has_its_type() -> None:
    """So has a column of the old row that the new one lacks."""
    key, status = {"type": "int64", "field": "id"}, {"type": "string", "field": "status"}
    rows = [{"type": "struct", "field": name, "fields": [status]} for name in ("before", "data")]
    of_row = {"type": "struct", "fields": [*rows, {"type": "struct", "field": "unique", "fields": [key]}]}
    event = decode({"schema": of_row, "payload": first("DELETE", before={"status": "sent"})})
    assert typed(event)["id"] == ("long", Encoding.PLAIN)
    rows[0]["fields"] = [status, {"type": "bytes", "field": "photo"}]
    payload = first("UPDATE", data={"status": "new"}, before={"status": "sent", "photo": "AQI="})
    assert typed(decode({"schema": of_row, "payload": payload}))["photo"] == ("binary", Encoding.BASE64)
