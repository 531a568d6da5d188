"""What is peculiar to DataHub Blob messages; the golden folders hold the rest."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tidemark.errors import (
    IncompleteMessageError,
    MalformedMessageError,
    MissingTableError,
    UnknownOperationError,
    UnknownTypeError,
)
from tidemark.events import ChangeEvent, Column, ControlEvent, Encoding, Message, Operation, SchemaChange
from tidemark.formats import datahub_blob
from tidemark.formats._datahub import blob
from tidemark.positions import changed
from tidemark.values.plain import read_value

DOCUMENT = Path(__file__).parents[2] / "docs" / "formats" / "datahub_blob.md"

INSERT = b"""{
"schema": {
"dataColumn": [
{ "name": "id", "type": "LONG" },
{ "name": "name", "type": "STRING" },
{ "name": "comment", "type": "STRING" }
],
"source": {
"dbName": "yunshi_db",
"dbType": "MySQL",
"tableName": "t_shiyu_pk"
},
"primaryKey": ["id", "name"]
},
"payload": {
"op": "INSERT",
"after": {
"dataColumn": {
"id": 1,
"name": "joe",
"comment": "comment"
}
},
"sequenceId": "1605339516000000004",
"timestamp": {
"eventTime": 1605339932000,
"systemTime": 1605339932736,
"checkpointTime": 1605339932000
}
},
"version": "0.0.1"
}"""
UPDATE_BEFOR = (
    INSERT.replace(b'"INSERT"', b'"UPDATE_BEFOR"').replace(b'"after"', b'"before"').replace(b"000004", b"000005")
)
UPDATE_AFTER = (
    INSERT.replace(b'"INSERT"', b'"UPDATE_AFTER"').replace(b'"comment"\n}', b'"com1"\n}').replace(b"000004", b"000005")
)
DELETE = (
    INSERT.replace(b'"INSERT"', b'"DELETE"')
    .replace(b'"after"', b'"before"')
    .replace(b'"comment"\n}', b'"com1"\n}')
    .replace(b"000004", b"000006")
)
HEARTBEAT = b"""{
"schema": {},
"payload": {
"op": "MHEARTBEAT",
"timestamp": {
"eventTime": 1605339953629,
"checkpointTime": 1605339953629
}
},
"version": "0.0.1"
}"""
ALTER = b"""{
"schema": {
"source": {
"dbName": "test_db",
"dbType": "MySQL",
"tableName": "t_test_nopk"
}
},
"payload": {
"op": "ALTER",
"sequenceId": "1605339516000000035",
"ddl": {
"text": "alter table t_test_nopk add column holo text",
"ddlMeta": "rO0ABXNyACljb20uYWxpYmFiYS5kaS5wbHVnaW4uY2VudGVyLm1ldGEuRERMTWV0YQLb5Cx/YWXtAgACTAAHZGRsVGV4dHQAEkxqYXZh"
},
"timestamp": {
"eventTime": 1605342109000,
"systemTime": 1605342109259,
"checkpointTime": 1605342109000
}
},
"version": "0.0.1"
}"""


def decode(value: bytes | dict[str, Any], **options: Any) -> list[Any]:
    """Decode one message."""
    raw = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return datahub_blob.decode(Message(value=raw, file="f", place=7), datahub_blob.Options(**options))


def message(op: str = "INSERT", types: dict[str, str] | None = None, **payload: Any) -> dict[str, Any]:
    """Return a message of ``shop.orders``."""
    columns = {"id": "LONG", "v": "STRING"} if types is None else types
    schema = {
        "dataColumn": [{"name": name, "type": type_} for name, type_ in columns.items()],
        "primaryKey": ["id"],
        "source": {"dbType": "MySQL", "dbName": "shop", "tableName": "orders"},
    }
    return {"schema": schema, "payload": {"op": op, "sequenceId": "12", **payload}, "version": "0.0.1"}


def row(**columns: Any) -> dict[str, Any]:
    """Return ``before`` or ``after``."""
    return {"dataColumn": columns}


def test_document_insert() -> None:
    """The row stands in ``after``; table, composite key, types and both times are read."""
    (event,) = decode(INSERT)
    assert event.operation is Operation.INSERT
    assert json.loads(event.after) == {"id": 1, "name": "joe", "comment": "comment"}
    assert event.before is None
    assert (str(event.table), event.key) == ("yunshi_db.t_shiyu_pk", ("id", "name"))
    assert (event.committed_at, event.captured_at) == (1605339932000000, 1605339932736000)
    assert event.position == changed(1605339516000000004, 1)
    assert event.shape.columns == (
        Column(name="id", type="long", encoding=Encoding.TEXT),
        Column(name="name", type="string", encoding=Encoding.TEXT),
        Column(name="comment", type="string", encoding=Encoding.TEXT),
    )


def test_document_update_in_two_messages() -> None:
    """UPDATE_BEFOR is the image before, UPDATE_AFTER the one after it, at one position but for its last part."""
    (before,), (after,) = decode(UPDATE_BEFOR), decode(UPDATE_AFTER)
    assert (before.operation, after.operation) == (Operation.UPDATE, Operation.UPDATE)
    assert (json.loads(before.before)["comment"], before.after) == ("comment", None)
    assert (after.before, json.loads(after.after)["comment"]) == (None, "com1")
    assert (*before.position[:-1], 1) == after.position
    assert before.position[-1] == 0


def test_document_delete() -> None:
    """The deleted row stands in ``before``."""
    (event,) = decode(DELETE)
    assert event.operation is Operation.DELETE
    assert (json.loads(event.before)["comment"], event.after) == ("com1", None)


def test_document_heartbeat() -> None:
    """A heartbeat has an empty schema and no sequence; it is counted and changes nothing."""
    (event,) = decode(HEARTBEAT)
    assert isinstance(event, ControlEvent)
    assert (event.kind, event.committed_at) == ("heartbeat", 1605339953629000)


def test_document_ddl() -> None:
    """The statement is taken from ``ddl.text``."""
    (event,) = decode(ALTER)
    assert isinstance(event, SchemaChange)
    assert (str(event.table), event.dialect) == ("test_db.t_test_nopk", "mysql")
    assert event.statement == "alter table t_test_nopk add column holo text"


def test_the_java_object_of_a_ddl_is_never_read() -> None:
    """Whatever stands in ``ddlMeta``, the event is the same, and no part of the object is in it."""
    (event,) = decode(ALTER)
    assert decode(re.sub(rb'"rO0AB[^"]*"', b'{"any": ["thing", null]}', ALTER)) == [event]
    assert "rO0AB" not in repr(event)


def test_documented_operations_are_all_known() -> None:
    """The eighteen operations of the document, and the spelling UPDATE_BEFORE of real writers."""
    known = {*datahub_blob.OPERATIONS, *datahub_blob.SCHEMA_CHANGES, *datahub_blob.CONTROLS}
    assert known == {
        "INSERT", "UPDATE_BEFOR", "UPDATE_AFTER", "DELETE", "TRANSACTION_BEGIN", "TRANSACTION_END", "CREATE", "ALTER",
        "QUERY", "TRUNCATE", "RENAME", "CINDEX", "DINDEX", "GTID", "XACOMMIT", "XAROLLBACK", "ERASE", "MHEARTBEAT",
        "UPDATE_BEFORE",
    }  # fmt: skip


@pytest.mark.parametrize("op", ["", "insert", "Insert", "UPDATE", "UPSERT", None])
def test_an_unknown_operation_is_named_with_what_is_allowed(op: str | None) -> None:
    """Operations are case-sensitive, and none is a default."""
    with pytest.raises(UnknownOperationError, match=re.escape(f"`op` is {op!r}; a Blob message has INSERT")):
        decode(message() | {"payload": {"op": op, "sequenceId": "1", "after": row(id=1)}})


def test_both_spellings_of_update_befor_are_one_operation() -> None:
    """The document writes UPDATE_BEFOR, some writers UPDATE_BEFORE."""
    assert decode(message("UPDATE_BEFOR", before=row(id=1))) == decode(message("UPDATE_BEFORE", before=row(id=1)))


def test_an_update_in_one_message_has_both_images() -> None:
    """Real writers put both images into one UPDATE_AFTER."""
    (event,) = decode(message("UPDATE_AFTER", before=row(id=1, v="a"), after=row(id=1, v="b"), ddl=None))
    assert (event.operation, event.position) == (Operation.UPDATE, changed(12, 1))
    assert (event.before, event.after) == (b'{"id":1,"v":"a"}', b'{"id":1,"v":"b"}')


def test_only_the_image_of_the_operation_counts() -> None:
    """Members that the operation does not use may be there, null or not."""
    (insert,) = decode(message("INSERT", before=None, after=row(id=1)))
    (delete,) = decode(message("DELETE", before=row(id=1), after=row()))
    (before,) = decode(message("UPDATE_BEFOR", before=row(id=1), after=row(id=2)))
    assert (insert.before, delete.after, before.after) == (None, None, None)


@pytest.mark.parametrize("sequence", ["-1", -1])
def test_a_row_of_an_initial_load_ranks_below_every_change(sequence: str | int) -> None:
    """Its sequence is -1, and so is its event time: no commit time is known."""
    times = {"eventTime": -1, "systemTime": 1731661820245, "checkpointTime": -1}
    (load,) = decode(message(sequenceId=sequence, after=row(id=1), timestamp=times))
    (change,) = decode(message(sequenceId="0", after=row(id=1)))
    assert (load.operation, change.operation) == (Operation.SNAPSHOT, Operation.INSERT)
    assert load.position < change.position
    assert (load.committed_at, load.captured_at) == (None, 1731661820245000)


@pytest.mark.parametrize("op", ["TRUNCATE", "ALTER", "RENAME", "ERASE", "QUERY"])
def test_a_statement_of_no_load_with_its_sequence_is_set_aside(op: str) -> None:
    """It would rank below the rows that it changes, and a TRUNCATE would empty nothing."""
    with pytest.raises(MalformedMessageError, match="which no load has"):
        decode(message(op, sequenceId="-1", ddl={"text": "truncate table orders"}))


@pytest.mark.parametrize("op", ["CREATE", "CINDEX", "DINDEX"])
def test_a_load_may_make_its_tables(op: str) -> None:
    """What it makes is there before its rows."""
    (change,) = decode(message(op, sequenceId="-1", ddl={"text": "create table orders (id int)"}))
    assert isinstance(change, SchemaChange)


def test_sequences_are_compared_as_numbers() -> None:
    """A longer sequence is later, whatever its first digit; text and number are one."""
    (early,), (late,) = (decode(message(sequenceId=s, after=row(id=1))) for s in ("999", "1000"))
    assert early.position < late.position
    assert decode(message(sequenceId=999, after=row(id=1)))[0].position == early.position


@pytest.mark.parametrize("sequence", [None, "", "-2", "1.0", "1e3", " 1", "0x1", "\u0663", "9" * 100, int("9" * 100)])
def test_a_change_without_a_sequence_is_set_aside(sequence: str | int | None) -> None:
    """Its place in the order is not known, and a guess could undo a later change."""
    with pytest.raises(MalformedMessageError, match="sequenceId"):
        decode(message(sequenceId=sequence, after=row(id=1)))


def test_a_column_that_an_image_lacks_is_null() -> None:
    """Writers leave nulls out: the row is whole, not partial."""
    (event,) = decode(message(after=row(id=1)))
    assert (event.partial, event.absent) == (False, ())
    assert [column.name for column in event.shape.columns] == ["id", "v"]


def test_nulls_that_the_image_before_lacks_are_written_out() -> None:
    """Beside an image after it, a column that is not there would mean *unchanged*."""
    (event,) = decode(message("UPDATE_AFTER", before=row(id=1), after=row(id=1, v="b", w="c")))
    assert json.loads(event.before) == {"id": 1, "v": None, "w": None}


def test_a_column_that_the_schema_lacks_has_no_type() -> None:
    """No column of an image is lost."""
    (event,) = decode(message(after=row(id=1, v="a", rowid="AAAR3s")))
    assert event.shape.columns[-1] == Column(name="rowid")


def test_images_are_the_bytes_of_the_message() -> None:
    """Numbers, blanks and escapes of an image are carried on as they are written."""
    image = b'{ "id" : 1.10, "v":"\\u0061\\/" , "n":12345678901234567890.1230 }'
    (event,) = decode(
        json.dumps(message(after={"dataColumn": 0})).encode().replace(b'"dataColumn": 0', b'"dataColumn":' + image)
    )
    assert event.after == image


@pytest.mark.parametrize(
    ("type_", "raw", "printed"),
    [
        ("LONG", "9223372036854775807", "9223372036854775807"),
        ("LONG", '"9007199254740993"', "9007199254740993"),
        ("DOUBLE", '"1.100000"', "1.100000"),
        ("DOUBLE", "1.1", "1.1"),
        ("DOUBLE", '"NaN"', "NaN"),
        ("BOOLEAN", "true", True),
        ("BOOLEAN", '"false"', False),
        ("STRING", '"12345678901234567890.1230"', "12345678901234567890.1230"),
        ("STRING", '"\\u0000\\ud83d\\ude00"', "\0😀"),
        ("DATE", "1731661114000", "2024-11-15T08:58:34.000000Z"),
        ("DATE", '"1731661114000"', "2024-11-15T08:58:34.000000Z"),
        ("DATE", "-62135596800000", "0001-01-01T00:00:00.000000Z"),
        ("DATE", "253402300799999", "9999-12-31T23:59:59.999000Z"),
        ("BYTES", '"dGVzdF90ZXh0MTIz"', base64.b64encode(b"test_text123").decode()),
        ("BYTES", '""', ""),
        *((type_, "null", None) for type_ in ("LONG", "DOUBLE", "BOOLEAN", "STRING", "DATE", "BYTES")),
    ],
)
def test_values_of_every_type(type_: str, raw: str, printed: object) -> None:
    """Each value arrives as it is, written bare or in a string."""
    (event,) = decode(message(types={"c": type_}, after=row(c=1)))
    assert read_value(raw.encode(), event.shape.columns[0]) == printed


@pytest.mark.parametrize("type_", ["long", "INTEGER", "DECIMAL", "", "TIMESTAMP"])
def test_an_unknown_type_is_named_with_what_is_allowed(type_: str) -> None:
    """The document has six types; a seventh is no string."""
    with pytest.raises(UnknownTypeError, match=f"'c' has the type '{type_}'; StreamX has BOOLEAN, DOUBLE"):
        decode(message(types={"c": type_}, after=row(c=1)))


def test_types_are_those_of_the_documentation() -> None:
    """The table in the documentation of the format says what the code does, type by type."""
    lines = re.findall(r"^\| `([A-Z]+)` \| `([a-z]+)` \| `([a-z0-9_]+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    assert {name: (type_, Encoding(encoding)) for name, type_, encoding in lines} == blob.TYPES


def test_keys_as_the_schema_tells_them() -> None:
    """In the schema's order; an empty list says *no key*, a missing one says nothing."""
    envelope = message(after=row(id=1))
    for key, expected in ((["v", "id"], ("v", "id")), ([], ()), (None, None)):
        envelope["schema"]["primaryKey"] = key
        assert decode(envelope)[0].key == expected
    del envelope["schema"]["primaryKey"]
    assert decode(envelope)[0].key is None


def test_the_schema_name_is_part_of_the_table() -> None:
    """PostgreSQL and SQL Server have schemas between database and table."""
    envelope = message(after=row(id=1))
    envelope["schema"]["source"]["schemaName"] = "sales"
    assert str(decode(envelope)[0].table) == "shop.sales.orders"


def test_a_message_without_a_table_needs_the_option() -> None:
    """Without it the message is set aside, and says which option to set."""
    envelope = message(after=row(id=1))
    envelope["schema"]["source"] = None
    with pytest.raises(MissingTableError, match="`table`"):
        decode(envelope)
    assert str(decode(envelope, table="shop.lines")[0].table) == "shop.lines"


@pytest.mark.parametrize("op", ["TRUNCATE", "ERASE"])
def test_truncate_is_a_schema_change_and_a_row_change(op: str) -> None:
    """The statement is kept, and the rows before it go; ERASE is what its statement says."""
    change, truncation = decode(message(op, ddl={"text": "truncate table orders"}))
    assert isinstance(change, SchemaChange)
    assert isinstance(truncation, ChangeEvent)
    assert truncation.operation is Operation.TRUNCATE
    assert changed(11, 1) < change.position < truncation.position < changed(13, 0)


def test_erase_with_a_drop_empties_nothing() -> None:
    """A dropped table is no row change."""
    assert [type(event) for event in decode(message("ERASE", ddl={"text": "drop table orders"}))] == [SchemaChange]


@pytest.mark.parametrize(
    ("text", "operations"),
    [
        ("alter table orders rename column a to b", []),
        ("/* x */ DROP TABLE orders", []),
        ("truncate table orders", [Operation.TRUNCATE]),
    ],
)
def test_a_query_that_changes_a_schema_is_a_schema_change(text: str, operations: list[Operation]) -> None:
    """It says what the operations of schema changes say, and has their place."""
    change, *others = decode(message("QUERY", ddl={"text": text}))
    assert isinstance(change, SchemaChange)
    assert (change.statement, change.position, str(change.table)) == (text, changed(12, 0), "shop.orders")
    assert [event.operation for event in others] == operations


@pytest.mark.parametrize("operation", ["ALTER", "CREATE", "RENAME", "ERASE", "QUERY"])
@pytest.mark.parametrize("text", ["update orders set v = 1", "create table orders as select 1", "select `shop`.`f`(5)"])
def test_text_that_changes_rows_is_set_aside_under_any_operation(operation: str, text: str) -> None:
    """A schema change changes no rows that the message lacks; with annotations, rows have messages of their own."""
    envelope = message(operation, ddl={"text": text})
    with pytest.raises(IncompleteMessageError, match="SQL text of a change without its rows"):
        decode(envelope)
    kind = ControlEvent if operation == "QUERY" else SchemaChange
    assert [type(event) for event in decode(envelope, annotations=True)] == [kind]


@pytest.mark.parametrize("operation", ["INSERT", "UPDATE_BEFOR", "UPDATE_AFTER", "DELETE"])
def test_text_in_place_of_a_row_says_that_the_log_is_not_in_row_format(operation: str) -> None:
    """Under the operation of a row too, with annotations too; any other text says nothing."""
    envelope = message(operation, ddl={"text": "replace into orders values (7)"})
    for annotated in (False, True):
        with pytest.raises(IncompleteMessageError, match=r"REPLACE.*the log is not in ROW format"):
            decode(envelope, annotations=annotated)
    with pytest.raises(MalformedMessageError, match="holds no row"):
        decode(message(operation, ddl={"text": "alter table orders add v int"}))


def test_a_query_that_changes_rows_is_set_aside_unless_it_annotates_them() -> None:
    """Which rows it changed is not known; a log in ROW format has them in messages of their own."""
    envelope = message("QUERY", ddl={"text": "update orders set v = 1"})
    with pytest.raises(IncompleteMessageError, match="annotations: true"):
        decode(envelope)
    assert [type(event) for event in decode(envelope, annotations=True)] == [ControlEvent]
    assert [type(event) for event in decode(message("QUERY", ddl={"text": "flush tables"}))] == [ControlEvent]


def test_a_query_that_changes_rows_behind_other_statements_is_set_aside() -> None:
    """``USE`` and ``SET`` ahead of a change hide it nowhere."""
    envelope = message("QUERY", ddl={"text": "use shop; set @a = 7; update orders set v = @a"})
    with pytest.raises(IncompleteMessageError, match="UPDATE"):
        decode(envelope)
    assert [type(event) for event in decode(envelope, annotations=True)] == [ControlEvent]


@pytest.mark.parametrize("op", ["CREATE", "ALTER", "RENAME", "ERASE"])
def test_a_schema_change_without_its_statement_is_set_aside(op: str) -> None:
    """Nobody could know what it did."""
    with pytest.raises(MalformedMessageError, match=r"`ddl\.text` is missing"):
        decode(message(op, ddl=None))


@pytest.mark.parametrize(
    ("op", "text"),
    [("TRUNCATE", "alter table orders truncate partition p1"), ("TRUNCATE", "truncate table archive.orders"),
     ("ERASE", "truncate items"), ("QUERY", "TRUNCATE archive.orders"), ("TRUNCATE", "drop table orders")],
)  # fmt: skip
def test_a_truncate_that_its_statement_contradicts_is_set_aside(op: str, text: str) -> None:
    """No table is emptied that the statement does not empty."""
    with pytest.raises(MalformedMessageError, match="TRUNCATE"):
        decode(message(op, ddl={"text": text}))


@pytest.mark.parametrize(
    "text", [None, "", "/* nightly */", "/*!50001 TRUNCATE orders */", "truncate `shop`.`Orders`;"]
)
def test_a_truncate_by_its_operation_empties_its_table(text: str | None) -> None:
    """Its text may be missing, or says the same."""
    assert len(decode(message("TRUNCATE", ddl={"text": text}))) == 2


def test_a_truncate_of_no_table_and_without_a_statement_is_set_aside() -> None:
    """Nobody could know what it emptied."""
    envelope = message("TRUNCATE", ddl=None)
    envelope["schema"]["source"] = None
    with pytest.raises(MalformedMessageError, match=r"`ddl\.text` is missing"):
        decode(envelope)


@pytest.mark.parametrize("op", ["MHEARTBEAT", "TRANSACTION_BEGIN", "GTID", "QUERY", "ALTER", "TRUNCATE", "CINDEX"])
@pytest.mark.parametrize("image", ["before", "after"])
def test_a_row_in_a_message_that_is_no_row_change_is_set_aside(op: str, image: str) -> None:
    """It would be lost unseen."""
    text = "alter table orders drop v" if op == "ALTER" else None
    with pytest.raises(MalformedMessageError, match=f"`{image}` holds a row, and `op` is {op}"):
        decode(message(op, ddl={"text": text}, **{image: row(id=None)}))
    for empty in (None, {}, {"dataColumn": None}, {"dataColumn": {}}, {"dataColumn": []}):
        assert decode(message(op, ddl={"text": text}, **{image: empty}))


def test_a_truncation_without_a_sequence_is_set_aside() -> None:
    """Which rows it empties hangs on its place in the order."""
    envelope = message("TRUNCATE")
    del envelope["payload"]["sequenceId"]
    with pytest.raises(MalformedMessageError, match="sequenceId"):
        decode(envelope)


@pytest.mark.parametrize(
    ("type_", "dialect"),
    [("MySQL", "mysql"), ("mysql", "mysql"), ("Oracle", "oracle"), ("PostgreSQL", "postgres"), ("SQLServer", "tsql"),
     ("OceanBase", "mysql"), ("something", "")],
)  # fmt: skip
def test_the_dialect_of_a_statement_is_that_of_its_database(type_: str, dialect: str) -> None:
    """In any case of letters; of an unknown database it is the general one."""
    envelope = message("ALTER", ddl={"text": "alter table orders drop v"})
    envelope["schema"]["source"]["dbType"] = type_
    assert decode(envelope)[0].dialect == dialect


def test_records_wrapped_in_base64() -> None:
    """DataHub hands out the bytes of a record as Base64: bare, in quotes, in a record, in an answer of records."""
    wrapped = base64.b64encode(INSERT)
    expected = decode(INSERT)
    assert decode(wrapped) == decode(b'"' + wrapped + b'"') == expected
    assert decode({"Data": wrapped.decode(), "Sequence": 0, "SystemTime": 1526292424292}) == expected
    answer = {"NextCursor": "2", "RecordCount": 2, "Records": [{"Data": wrapped.decode()}] * 2}
    assert decode(answer) == expected * 2


def test_one_wrong_record_sets_the_whole_answer_aside() -> None:
    """A message never yields half its rows."""
    with pytest.raises(MalformedMessageError, match="no JSON object"):
        decode({"Records": [{"Data": base64.b64encode(INSERT).decode()}, {"Data": "iVBORw0K"}]})


def test_wrapping_goes_one_level_deep() -> None:
    """An answer in an answer is no message: depth is not the sender's to choose."""
    inner = base64.b64encode(json.dumps({"Records": []}).encode()).decode()
    with pytest.raises(MalformedMessageError, match="no `payload`"):
        decode({"Records": [{"Data": inner}]})
    with pytest.raises(MalformedMessageError, match="no JSON object"):
        decode(base64.b64encode(base64.b64encode(INSERT)))


@pytest.mark.parametrize("time", [10**18, -(10**18), 253402300800000, 2**70])
def test_a_time_beyond_the_calendar_is_set_aside(time: int) -> None:
    """It would not fit the change log."""
    with pytest.raises(MalformedMessageError, match="eventTime"):
        decode(message(after=row(id=1), timestamp={"eventTime": time}))


def test_a_column_twice_is_set_aside() -> None:
    """In the schema as in an image."""
    envelope = message(after=row(id=1))
    envelope["schema"]["dataColumn"] *= 2
    with pytest.raises(MalformedMessageError, match="twice"):
        decode(envelope)
    with pytest.raises(MalformedMessageError, match="twice"):
        decode(json.dumps(message(after=row(id=1, v=2))).encode().replace(b'"v": 2', b'"id": 2'))
