"""What is peculiar to Canal JSON; the golden folders hold the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.doc_tables import listed, table
from tidemark.errors import (
    IncompleteMessageError,
    MalformedMessageError,
    UnknownOperationError,
    UnknownTypeError,
    UnreadableValueError,
)
from tidemark.events import ChangeEvent, Column, ControlEvent, Encoding, Message, Operation, SchemaChange
from tidemark.formats import _mysql, canal_json

DOCUMENT_OLD_DELETE = b"""{
    "old": [
        {
            "shipping_type": "aaa"
        }
    ],
    "database": "dbname",
    "es": 1600161894000,
    "id": 58,
    "isDdl": false,
    "mysqlType": {
        "id": "bigint(20)",
        "shipping_type": "varchar(50)"
    },
    "pkNames": [
        "id"
    ],
    "sql": "",
    "sqlType": {
        "id": -5,
        "shipping_type": 12
    },
    "table": "tablename",
    "ts": 1600161894771,
    "type": "DELETE"
}"""

DOCUMENT_DDL = b"""{
    "database": "dbname",    The name of the source database.
    "isDdl": true,       Indicates that the operation is a DDL operation.
    "type": "DDL"
}"""


def decode(value: bytes | dict[str, Any], **options: Any) -> list[Any]:
    """Decode one message."""
    raw = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return canal_json.decode(Message(value=raw, file="f", place=7), canal_json.Options(**options))


def rows(type_: str = "INSERT", **members: Any) -> dict[str, Any]:
    """Return a message of ``shop.orders``."""
    return {"database": "shop", "table": "orders", "type": type_, "mysqlType": {"id": "int", "v": "text"}} | members


def test_document_delete_of_an_instance_before_20_march_2022() -> None:
    """The deleted row stands in ``old`` and ``data`` is missing."""
    (event,) = decode(DOCUMENT_OLD_DELETE)
    assert event.operation is Operation.DELETE
    assert json.loads(event.before) == {"shipping_type": "aaa"}
    assert event.after is None
    assert event.key == ("id",)
    assert (event.committed_at, event.captured_at) == (1600161894000000, 1600161894771000)
    assert event.shape.columns == (
        Column(name="id", type="long", encoding=Encoding.TEXT),
        Column(name="shipping_type", type="string", encoding=Encoding.PLAIN, bounds="length 50"),
    )


def test_document_delete_of_an_instance_since_20_march_2022() -> None:
    """The deleted row stands in ``data``."""
    old = b'"old": [\n        {\n            "shipping_type": "aaa"\n        }\n    ]'
    row = b'"data": [{"id": "500000287", "shipping_type": null}]'
    (event,) = decode(DOCUMENT_OLD_DELETE.replace(old, row))
    assert event.operation is Operation.DELETE
    assert event.before == b'{"id": "500000287", "shipping_type": null}'


def test_document_ddl() -> None:
    """DTS gives every DDL the type ``DDL``; rows, types and keys are missing."""
    (event,) = decode(
        {"database": "dbname", "es": 1600161894000, "id": 58, "isDdl": True, "sql": "eg: create xxx",
         "table": "tablename", "ts": 1600161894771, "type": "DDL"}
    )  # fmt: skip
    assert isinstance(event, SchemaChange)
    assert (str(event.table), event.statement, event.dialect) == ("dbname.tablename", "eg: create xxx", "mysql")


def test_document_ddl_with_its_comments_is_no_json() -> None:
    """The example as the document prints it is set aside."""
    with pytest.raises(MalformedMessageError):
        decode(DOCUMENT_DDL)


def test_images_are_the_bytes_of_the_message() -> None:
    """Numbers, blanks and escapes of an image are carried on as they are written."""
    image = b'{ "id" : 1.10, "v":"\\u0061\\/" , "n":12345678901234567890.1230 }'
    (event,) = decode(b'{"database":"d","table":"t","type":"INSERT","data":[ ' + image + b" ]}")
    assert event.after == image
    assert [column.name for column in event.shape.columns] == ["id", "v", "n"]


def test_columns_without_mysql_types_have_no_type() -> None:
    """Flink CDC writes values with JSON types and declares no others."""
    (event,) = decode(rows(mysqlType=None, data=[{"id": 1, "v": True}]))
    assert event.shape.columns == (Column(name="id"), Column(name="v"))


def test_a_whole_row_is_not_partial() -> None:
    """An UPDATE with all columns of mysqlType, and an old value, is a whole row."""
    (event,) = decode(rows("UPDATE", data=[{"id": "1", "v": "b"}], old=[{"v": "a"}]))
    assert (event.partial, event.absent) == (False, ())


@pytest.mark.parametrize("old", [None, [], [None], [{}]])
def test_an_update_without_an_old_value_is_partial(old: list[Any] | None) -> None:
    """A MINIMAL row image has no old values and only some columns; mysqlType lists no others either."""
    (event,) = decode(rows("UPDATE", mysqlType={"v": "text"}, data=[{"v": "b"}], old=old))
    assert (event.partial, event.absent, event.before) == (True, (), None)


def test_an_update_that_lacks_columns_names_them_absent() -> None:
    """A column of mysqlType that the row lacks is unchanged, not null."""
    (event,) = decode(rows("UPDATE", data=[{"id": "1"}], old=[{"id": "0"}]))
    assert (event.partial, event.absent) == (True, ("v",))


def test_partial_row_images_by_option() -> None:
    """NOBLOB row images cannot be told from whole ones, so the source file says it."""
    (event,) = decode(rows("UPDATE", data=[{"id": "1", "v": "b"}], old=[{"v": "a"}]), row_image="partial")
    assert event.partial


@pytest.mark.parametrize("row_image", ["full", "partial"])
def test_an_insert_that_lacks_columns_of_its_types_is_partial(row_image: str) -> None:
    """A column that a row lacks has its default, which the message does not have: it is neither null nor unchanged."""
    (event,) = decode(rows(data=[{"id": "1"}]), row_image=row_image)
    assert (event.operation, event.partial, event.absent, event.upsert) == (Operation.INSERT, True, ("v",), False)
    assert [column.name for column in event.shape.columns] == ["id", "v"]


@pytest.mark.parametrize("type_", ["INSERT", "ROW", "INIT", "DELETE"])
def test_an_insert_of_a_partial_row_image_may_be_whole(type_: str) -> None:
    """MySQL logs the columns that a statement gave values. A row of a load, and a deleted one, are read as they are."""
    message = rows(type_, mysqlType={"id": "int"}, data=[{"id": "1"}])
    assert not decode(message)[0].partial
    (event,) = decode(message, row_image="partial")
    assert (event.partial, event.absent) == (type_ in {"INSERT", "ROW"}, ())


def test_an_old_column_that_the_new_row_lacks_is_in_the_shape() -> None:
    """No column of either image is lost."""
    (event,) = decode(rows("UPDATE", data=[{"id": "1", "v": "b"}], old=[{"gone": "a"}]))
    assert [column.name for column in event.shape.columns] == ["id", "v", "gone"]


def test_every_unknown_type_is_named_with_what_is_allowed() -> None:
    """An operation that nobody knows never becomes an INSERT."""
    with pytest.raises(UnknownOperationError, match=r"'UPSERT'; Canal JSON knows INSERT, UPDATE, DELETE"):
        decode(rows("UPSERT", data=[{"id": "1"}]))


def test_one_wrong_row_sets_the_whole_message_aside() -> None:
    """A message never yields half its rows."""
    with pytest.raises(MalformedMessageError):
        decode(rows(data=[{"id": "1", "v": "a"}, None]))


def test_truncate_is_a_schema_change_and_a_row_change() -> None:
    """The statement is kept, and the rows before it go."""
    change, truncation = decode(rows("TRUNCATE", isDdl=True, sql="truncate table orders"))
    assert isinstance(change, SchemaChange)
    assert isinstance(truncation, ChangeEvent)
    assert truncation.operation is Operation.TRUNCATE
    assert change.position < truncation.position


def test_a_statement_that_only_speaks_of_truncating_truncates_nothing() -> None:
    """The word counts at the beginning only."""
    assert len(decode(rows("DDL", isDdl=True, sql="ALTER TABLE t TRUNCATE PARTITION p0"))) == 1


@pytest.mark.parametrize(
    ("type_", "sql"),
    [("TRUNCATE", "ALTER TABLE orders TRUNCATE PARTITION p0"), ("TRUNCATE", "TRUNCATE TABLE old.orders"),
     ("DDL", "truncate items"), ("TRUNCATE", "create table orders (id int)")],
)  # fmt: skip
def test_a_truncate_that_its_statement_contradicts_is_set_aside(type_: str, sql: str) -> None:
    """No table is emptied that the statement does not empty."""
    with pytest.raises(MalformedMessageError, match="TRUNCATE"):
        decode(rows(type_, isDdl=True, sql=sql))


@pytest.mark.parametrize(
    "sql", [None, "", "/* nightly */", "/*!50001 TRUNCATE TABLE Orders */", "truncate `shop`.orders"]
)
def test_a_truncate_by_its_type_empties_its_table(sql: str | None) -> None:
    """Its text may be missing, or says the same."""
    change, truncation = decode(rows("TRUNCATE", isDdl=True, sql=sql))
    assert (change.statement, str(truncation.table)) == (sql or "", "shop.orders")


@pytest.mark.parametrize("sql", [None, "", " ;", "-- x"])
@pytest.mark.parametrize(
    "message",
    [{"type": "ALTER"}, {"type": "CREATE", "isDdl": True}, {"type": "INSERT", "isDdl": True}, {"type": "DDL"},
     {"type": "TRUNCATE", "table": ""}],
)  # fmt: skip
def test_a_schema_change_without_its_statement_is_set_aside(sql: str | None, message: dict[str, Any]) -> None:
    """Nobody could know what it did."""
    with pytest.raises(MalformedMessageError, match=r"`sql` (is missing|holds no statement), and the type is"):
        decode(rows(sql=sql) | message)


@pytest.mark.parametrize("type_", ["CINDEX", "dindex"])
def test_an_index_needs_no_statement(type_: str) -> None:
    """Its type says everything."""
    assert [type(event) for event in decode(rows(type_, isDdl=True, sql=""))] == [SchemaChange]


NO_ROW_CHANGES: list[dict[str, Any]] = [
    {"isDdl": True, "sql": "alter table orders drop v"}, {"isDdl": True, "sql": ""}, {"isHeartbeat": True},
    {"type": "ALTER", "sql": "alter table orders drop v"}, {"type": "QUERY", "sql": None}, {"type": "GTID"},
    {"type": "TRUNCATE", "sql": "truncate orders"}, {"type": "COMMIT"}, {"type": "CINDEX"},
    {"type": "QUERY", "sql": "alter table orders rename column v to w"},
]  # fmt: skip


@pytest.mark.parametrize("images", [{"data": [{"id": "7"}]}, {"old": [None, {"v": None}]}, {"data": [{}, {"v": "b"}]}])
@pytest.mark.parametrize("message", NO_ROW_CHANGES)
def test_a_row_in_a_message_that_is_no_row_change_is_set_aside(message: dict[str, Any], images: dict[str, Any]) -> None:
    """It would be lost unseen."""
    with pytest.raises(MalformedMessageError, match="carries a row"):
        decode(rows(**images) | message)


@pytest.mark.parametrize("images", [{}, {"data": None, "old": []}, {"data": [{}], "old": [None]}])
@pytest.mark.parametrize("message", [each for each in NO_ROW_CHANGES if each.get("sql") != ""])
def test_no_row_is_lost_where_there_is_none(message: dict[str, Any], images: dict[str, Any]) -> None:
    """Null, nothing and empty objects are no rows."""
    assert not any(isinstance(event, ChangeEvent) and event.before for event in decode(rows(**images) | message))


def test_an_old_column_in_another_case_than_that_of_the_row_is_set_aside() -> None:
    """It would become a column of its own, and the new key would not replace the old one."""
    for types in ({"no": "int", "v": "text"}, {"NO": "int", "v": "text"}, None):
        with pytest.raises(MalformedMessageError, match="'NO', and `data` has 'no'"):
            decode(rows("UPDATE", mysqlType=types, data=[{"no": "2", "v": "b"}], old=[{"NO": "1"}]))


@pytest.mark.parametrize("type_", ["INSERT", "UPDATE", "INIT"])
@pytest.mark.parametrize(
    ("flag", "remedy"), [({"onlyHandleKey": True}, "commitTs 42"), ({"claimCheckLocation": "s3://a/b"}, "s3://a/b")]
)
def test_a_row_of_which_only_the_key_came_is_set_aside(type_: str, flag: dict[str, Any], remedy: str) -> None:
    """Its other values are unknown: neither null nor unchanged."""
    message = rows(type_, data=[{"id": "1"}], old=[{"id": "1"}], pkNames=["id"], _tidb={"commitTs": 42} | flag)
    with pytest.raises(IncompleteMessageError, match=next(iter(flag))) as raised:
        decode(message)
    assert remedy in str(raised.value)


def test_a_delete_of_which_only_the_key_came_is_applied() -> None:
    """The key says which row is gone. The case of ``pkNames`` may differ."""
    (event,) = decode(rows("DELETE", data=[{"id": "1"}], pkNames=["ID"], _tidb={"onlyHandleKey": True}))
    assert (event.operation, event.before, event.key) == (Operation.DELETE, b'{"id":"1"}', ("id",))


@pytest.mark.parametrize(("row", "key"), [({"id": "1"}, []), ({"id": "1"}, ["id", "v"]), ({"id": None}, ["id"])])
def test_a_delete_without_its_whole_key_is_set_aside(row: dict[str, Any], key: list[str]) -> None:
    """A part of a key, or a row of a table without one, identifies no row."""
    with pytest.raises(IncompleteMessageError):
        decode(rows("DELETE", data=[row], pkNames=key, _tidb={"onlyHandleKey": True}))


def test_a_column_called_like_the_flag_is_data() -> None:
    """Only the block ``_tidb`` of the message marks it."""
    (event,) = decode(rows(data=[{"id": "1", "v": "onlyHandleKey", "_tidb": {"onlyHandleKey": True}}]))
    assert event.operation is Operation.INSERT


@pytest.mark.parametrize("writing", [None, "latin1", "number_list"])
def test_text_that_looks_like_a_list_of_bytes_stays_text(writing: str | None) -> None:
    """Only columns of bytes are written as lists."""
    types = {"id": "int", "photo": "blob", "note": "varchar(9)"}
    image = {"id": "1", "photo": None, "note": "[1, 2]"}
    (event,) = decode(rows(mysqlType=types, data=[image]), bytes=writing)
    assert json.loads(event.after) == image


def test_latin1_by_option_reads_a_text_of_numbers_as_the_bytes_themselves() -> None:
    """A BLOB may hold the JSON text of a list."""
    (event,) = decode(rows(mysqlType={"id": "int", "v": "blob"}, data=[{"id": "1", "v": "[1, 2]"}]), bytes="latin1")
    assert json.loads(event.after)["v"] == "[1, 2]"


@pytest.mark.parametrize(
    "value", ["[128]", "[-129]", "[1,]", "[,]", "[1 2]", "[1, 2] ", "1, 2", "", "[٣]", 7, True, {}, [1.5], [256]]
)
def test_a_malformed_list_of_bytes_is_set_aside(value: object) -> None:
    """Its bytes are not guessed; the error names column and value."""
    with pytest.raises(UnreadableValueError, match="column 'v'"):
        decode(rows(mysqlType={"id": "int", "v": "varbinary(4)"}, data=[{"id": "1", "v": value}]), bytes="number_list")


@pytest.mark.parametrize("value", ["[106, 200]", "[255]", "[-1, 255]", "[1, 2]"])
def test_a_text_that_may_be_a_list_of_bytes_is_set_aside(value: str) -> None:
    """Also one of unsigned numbers; a list of other numbers is the text itself."""
    types = {"id": "int", "v": "blob"}
    with pytest.raises(UnreadableValueError, match="a list of bytes, or the text itself"):
        decode(rows(mysqlType=types, data=[{"id": "1", "v": value}]))
    (event,) = decode(rows(mysqlType=types, data=[{"id": "1", "v": "[106, 256]"}]))
    assert json.loads(event.after)["v"] == "[106, 256]"


@pytest.mark.parametrize(
    ("types", "options", "stored"),
    [
        ({"v": "binary(4)"}, {"bytes": "number_list"}, "\x07\0\0\0"),
        ({"v": "binary"}, {"bytes": "number_list"}, "\x07"),
        ({"v": "binary", "w": "varbinary(4)"}, {"bytes": "number_list"}, "\x07"),
        ({"v": "binary", "w": "varchar"}, {}, "\x07"),
    ],
)
def test_zeros_are_added_to_bytes_of_a_known_length(
    types: dict[str, str], options: dict[str, str], stored: str
) -> None:
    """Huawei DRS leaves lengths out, and then BINARY has not one byte, but an unknown number of them."""
    (event,) = decode(rows(mysqlType=types, data=[{"v": [7]}]), **options)
    assert json.loads(event.after)["v"] == stored
    (empty,) = decode(rows(mysqlType=types, data=[{"v": []}]), **options)
    assert json.loads(empty.after)["v"] == ("\0" * 4 if "(4)" in types["v"] else "")


def test_binary_alone_has_one_byte_where_types_have_lengths() -> None:
    """MySQL's BINARY is BINARY(1), and its log leaves out a zero."""
    for types in ({"v": "binary"}, {"v": "BINARY", "w": "varchar(9)"}):
        (event,) = decode(rows(mysqlType=types, data=[{"v": ""}]))
        assert json.loads(event.after)["v"] == "\0"


def test_every_byte_can_be_written_as_a_number() -> None:
    """The image then has the byte as one Latin-1 character."""
    text = str(list(range(-128, 128)))
    (event,) = decode(rows(mysqlType={"v": "longblob"}, data=[{"v": text}]), bytes="number_list")
    assert json.loads(event.after)["v"].encode("latin-1") == bytes([*range(128, 256), *range(128)])


def test_initial_load_ranks_below_every_change() -> None:
    """An INIT row that comes late does not undo a change."""
    (load,) = decode(rows("INIT", data=[{"id": "1", "v": "a"}]))
    (change,) = decode(rows(data=[{"id": "1", "v": "a"}]))
    assert load.position < change.position


@pytest.mark.parametrize(
    ("text", "type_", "encoding"),
    [
        ("tinyint(1)", "int", "text"), ("INT", "int", "text"), ("int(10) unsigned zerofill", "long", "text"),
        ("integer UNSIGNED", "long", "text"), ("mediumint unsigned", "int", "text"), ("bigint", "long", "text"),
        ("bigint(20) unsigned", "decimal(20, 0)", "text"), ("bit(1)", "decimal(20, 0)", "text"),
        ("decimal", "decimal(38, 18)", "text"), ("NUMERIC(8,3)", "decimal(8, 3)", "text"),
        ("decimal(10)", "decimal(10, 0)", "text"), ("decimal(38, 38) unsigned", "decimal(38, 38)", "text"),
        ("decimal(65,30)", "string", "plain"), ("float(7,4)", "float", "text"),
        ("float(24)", "float", "text"), ("FLOAT(25)", "double", "text"), ("float(30,2)", "float", "text"),
        ("double precision", "double", "text"),
        ("decimal(0)", "decimal(10, 0)", "text"), ("date", "date", "text"),
        ("datetime(6)", "timestamp", "text"), ("timestamp", "timestamp", "text"),
        ("time(3)", "string", "plain"), ("year(4)", "int", "text"), ("varchar(255)", "string", "plain"),
        ("enum('unsigned','b')", "string", "plain"), ("set('a','b')", "string", "plain"), ("json", "string", "plain"),
        ("varbinary(16)", "binary", "latin1"), ("longblob", "binary", "latin1"), ("POINT", "binary", "latin1"),
        (" National  Varchar(3)", "string", "plain"),
    ],
)  # fmt: skip
def test_mysql_types(text: str, type_: str, encoding: str) -> None:
    """Type texts come in any case, with or without lengths."""
    found = _mysql.column("c", text)
    assert (found.name, found.type, found.encoding) == ("c", type_, Encoding(encoding))


@pytest.mark.parametrize(
    "text",
    [
        "", "number(10)", "1", "(10)", "int4range", "timestamptz", "decimal(5, 6)",
        # Python refuses to make an int of so many figures.
        f"varchar({'9' * 5000})", f"decimal({'9' * 5000})", f"decimal(38, {'9' * 5000})", f"float({'9' * 5000})",
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_a_type_that_mysql_does_not_have_is_named(text: str) -> None:
    """A type nobody knows is an error, not a string."""
    with pytest.raises(UnknownTypeError, match="column 'c'"):
        _mysql.column("c", text)


@pytest.mark.parametrize(("types", "type_", "encoding"), table("canal_json", "MySQL"))
def test_types_of_the_page(types: str, type_: str, encoding: str) -> None:
    """Every type of the page's table is what the code makes of such a column."""
    for text in listed(types):
        found = _mysql.column("c", text)
        assert (found.name, found.type, found.encoding) == ("c", type_, Encoding(encoding)), text


VECTORS = {
    "TiCDC": ({"sqlType": {"id": 4, "v": 12}}, ("string", Encoding.PLAIN)),
    "TiCDC with its extension": ({"_tidb": {"commitTs": 1}}, ("string", Encoding.PLAIN)),
    "bytes of MySQL": ({"sqlType": {"id": 4, "v": 2004}}, ("binary", Encoding.LATIN1)),
    "bytes of MySQL without sqlType": ({}, ("binary", Encoding.LATIN1)),
    "another column is text": ({"sqlType": {"id": 12, "v": -4}}, ("binary", Encoding.LATIN1)),
}


@pytest.mark.parametrize("producer", VECTORS)
@pytest.mark.parametrize("type_", ["vector", "vector(3)", "VECTOR(3)"])
def test_vectors_of_tidb_are_text_and_those_of_mysql_bytes(producer: str, type_: str) -> None:
    """``sqlType`` shows which, as ``mysqlType`` is the same."""
    members, expected = VECTORS[producer]
    types = {"id": "int", "v": type_}
    (event,) = decode(
        rows(data=[{"id": "1", "v": "[1,-2.5,3e-07]"}], mysqlType=types, pkNames=["id"], **members), bytes="latin1"
    )
    assert json.loads(event.after) == {"id": "1", "v": "[1,-2.5,3e-07]"}
    assert (event.shape.columns[1].type, event.shape.columns[1].encoding) == expected


def test_the_statement_behind_settings_counts() -> None:
    """MariaDB's settings for one statement hide neither its change of rows nor its TRUNCATE."""
    with pytest.raises(IncompleteMessageError, match="DELETE"):
        decode(rows("QUERY", data=None, sql="SET STATEMENT max_statement_time=60 FOR DELETE FROM orders"))
    truncation = decode(rows("DDL", isDdl=True, sql="SET STATEMENT max_statement_time=60 FOR TRUNCATE orders"))[1]
    assert truncation.operation is Operation.TRUNCATE


@pytest.mark.parametrize("sql", ["CREATE TABLE orders AS SELECT 1", "SELECT `shop`.`f`(5)", "DO f()", "CALL p()"])
def test_text_that_changes_rows_as_queries_and_calls_do_is_set_aside(sql: str) -> None:
    """MySQL logs it where the log is not in ROW format; a text without database may annotate rows."""
    for query in (rows("QUERY", data=None, sql=sql), rows("CREATE", data=None, sql=sql, isDdl=True)):
        for options in ({}, {"annotations": True}):
            with pytest.raises(IncompleteMessageError, match="SQL text of a change without its rows"):
                decode(query, **options)
    (event,) = decode(rows("QUERY", data=None, sql=sql, table="", database=""), annotations=True)
    assert isinstance(event, ControlEvent)


def test_a_change_of_rows_behind_other_statements_of_a_query_is_set_aside() -> None:
    """They hide it nowhere; what they begin without one is only counted."""
    for sql in ("USE shop; UPDATE orders SET v = 1", "BEGIN; DELETE FROM orders; COMMIT"):
        with pytest.raises(IncompleteMessageError, match="SQL text of a change without its rows"):
            decode(rows("QUERY", data=None, sql=sql))
    (event,) = decode(rows("QUERY", data=None, sql="SET @a = 'x; UPDATE orders'; COMMIT"))
    assert isinstance(event, ControlEvent)


@pytest.mark.parametrize("is_ddl", [False, None, True])
@pytest.mark.parametrize(
    ("sql", "operations"),
    [
        ("ALTER TABLE orders RENAME COLUMN a TO b", []),
        ("/* x */ DROP TABLE orders", []),
        ("RENAME TABLE orders TO old_orders", []),
        ("truncate orders", [Operation.TRUNCATE]),
    ],
)
def test_a_query_that_changes_a_schema_is_a_schema_change(
    sql: str, operations: list[Operation], *, is_ddl: bool | None
) -> None:
    """Canal writes DDL so that its own parser does not know; it says the same as under its own type."""
    change, *others = decode(rows("QUERY", sql=sql, isDdl=is_ddl))
    assert isinstance(change, SchemaChange)
    assert (change.statement, str(change.table), change.database) == (sql, "shop.orders", None)
    assert [event.operation for event in others] == operations


@pytest.mark.parametrize("database", ["shop", ""])
def test_a_query_that_names_no_table_keeps_its_database(database: str) -> None:
    """The statement names the table, and the session its database."""
    (change,) = decode(rows("QUERY", sql="TRUNCATE orders", table="", database=database))
    assert (change.table, change.database) == (None, database or None)


@pytest.mark.parametrize("type_", ["INSERT", "DELETE", "UPDATE", "INIT"])
@pytest.mark.parametrize("data", [[{}], [{"id": "71"}, {}]])
def test_a_row_without_columns_is_set_aside(type_: str, data: list[Any]) -> None:
    """A table without a key would get or lose a row of nulls."""
    with pytest.raises(MalformedMessageError, match=f"a row of `data` has no columns, and the type is {type_}"):
        decode(rows(type_, data=data))
