"""What is peculiar to DataHub Tuple rows; the golden folders hold the rest."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tidemark.dumps.datahub_csv import SEQUENCE_COLUMNS
from tidemark.errors import MalformedMessageError, MissingTableError, UnknownOperationError, UnknownTypeError
from tidemark.events import Column, ControlEvent, Encoding, Message, Operation, TableId
from tidemark.formats import datahub_tuple
from tidemark.formats._datahub import tuple as tuple_types
from tidemark.positions import changed
from tidemark.values.plain import read_value

DOCUMENT = Path(__file__).parents[2] / "docs" / "formats" / "datahub_tuple.md"

DOCUMENT_ROWS = """
| 1649991610688000000 | I | 1649991726000 | N | Y |
| 1649991610688000001 | U | 1649991756000 | Y | N |
| 1649991610688000001 | U | 1649991756000 | N | Y |
| 1649991610688000002 | D | 1649991774000 | Y | N |
"""
FIELDS = [
    ("_sequence_id_", "STRING"), ("_operation_type_", "STRING"), ("_excute_time_", "BIGINT"),
    ("_source_table_", "STRING"), ("_before_image_", "STRING"), ("_after_image_", "STRING"),
    ("id", "BIGINT"), ("name", "STRING"),
]  # fmt: skip


def decode(value: bytes | dict[str, Any], **options: Any) -> list[Any]:
    """Decode one message."""
    raw = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return datahub_tuple.decode(Message(value=raw, file="f", place=7), datahub_tuple.Options(**options))


def row(operation: str = "I", before: str = "N", after: str = "Y", **columns: Any) -> dict[str, Any]:
    """Return a row as DataWorks writes it."""
    return {
        "_sequence_id_": "12", "_operation_type_": operation, "_excute_time_": 1649991726000,
        "_source_table_": "orders", "_before_image_": before, "_after_image_": after, **columns,
    }  # fmt: skip


def schema(*fields: tuple[str, str]) -> dict[str, Any]:
    """Return a RecordSchema."""
    return {"fields": [{"name": name, "type": type_} for name, type_ in fields]}


def record(sequence: int, *values: str | None) -> dict[str, Any]:
    """Return a record of an answer, an insert."""
    data = [str(sequence), "I", "1649991726000", "orders", "N", "Y", *values]
    return {"SystemTime": 1526293795168, "Sequence": 0, "NextCursor": "20", "Data": data, "Attributes": {"a": "b"}}


def test_document_messages_of_one_row() -> None:
    """An insert, an update as two rows of one sequence, and a delete, as the document prints them."""
    names = ("_sequence_id_", "_operation_type_", "_excute_time_", "_before_image_", "_after_image_")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in DOCUMENT_ROWS.split("\n") if line]
    events = [
        decode({**dict(zip(names, line, strict=True)), "_source_table_": "orders", "id": "1"})[0] for line in lines
    ]
    assert [event.operation for event in events] == [
        Operation.INSERT, Operation.UPDATE, Operation.UPDATE, Operation.DELETE,
    ]  # fmt: skip
    assert [(event.before is not None, event.after is not None) for event in events] == [
        (False, True), (True, False), (False, True), (True, False),
    ]  # fmt: skip
    assert [event.position for event in events] == [
        changed(1649991610688000000, 1), changed(1649991610688000001, 0), changed(1649991610688000001, 1),
        changed(1649991610688000002, 0),
    ]  # fmt: skip
    assert [event.committed_at for event in events] == [
        1649991726000000, 1649991756000000, 1649991756000000, 1649991774000000,
    ]  # fmt: skip


def test_the_added_columns_are_not_columns_of_the_table() -> None:
    """The image holds the source's own columns, each value as it is written."""
    (event,) = decode(
        b'{"id":1.10,"_sequence_id_":"1","_operation_type_":"I","_excute_time_":1,"_source_table_":"t",'
        b'"_before_image_":"N","_after_image_":"Y","b":"\\u0061\\/","n":12345678901234567890.1230}'
    )
    assert event.after == b'{"id":1.10,"b":"\\u0061\\/","n":12345678901234567890.1230}'
    assert event.shape.columns == tuple(
        Column(name=name, encoding=Encoding.TEXT_OR_MICROS) for name in ("id", "b", "n")
    )
    assert event.key is None


def dts(prefix: str, **columns: Any) -> dict[str, Any]:
    """Return a row as DTS writes it."""
    added_columns = {
        "record_id": 5, "instance_id": "dts-1", "db_name": "shop", "table_name": "orders", "operation_flag": "U",
        "utc_timestamp": 1649991726, "before_flag": "N", "after_flag": "Y",
    }  # fmt: skip
    return {**{prefix + name: value for name, value in added_columns.items()}, **columns}


def test_rows_of_dts_by_its_previous_naming_rule() -> None:
    """The source's own columns lose the prefix that DTS gave them; database and table are read, times in seconds."""
    (event,) = decode(dts("dts_", dts_id="1", dts_dts_flag="y"))
    assert json.loads(event.after) == {"id": "1", "dts_flag": "y"}
    assert event.table == TableId(database="shop", schema=None, name="orders")
    assert (event.position, event.committed_at) == (changed(5, 1), 1649991726000000)


def test_rows_of_dts_by_its_new_naming_rule() -> None:
    """The source's own columns keep their names, also those that look like DTS's."""
    (event,) = decode(dts("new_dts_sync_dts_", id="1", dts_record_id="9", record_id="8"))
    assert json.loads(event.after) == {"id": "1", "dts_record_id": "9", "record_id": "8"}
    assert (str(event.table), event.position) == ("shop.orders", changed(5, 1))


def test_two_columns_of_one_name_are_set_aside() -> None:
    """Without the prefix nobody could tell them apart."""
    with pytest.raises(MalformedMessageError, match="two columns have one name: dts_id, id"):
        decode(dts("dts_", dts_id="1", id="2"))


def test_containers_know_the_sequence_columns_of_the_format() -> None:
    """CSV and Parquet of Tuple rows are recognised by the columns that this format reads."""
    assert set(SEQUENCE_COLUMNS) == {names.wire["sequence"] for names in tuple_types.SETS}


@pytest.mark.parametrize("operation", ["", "i", "INSERT", "X", None])
def test_an_unknown_operation_is_named_with_what_is_allowed(operation: str | None) -> None:
    """No operation is a default."""
    with pytest.raises(UnknownOperationError, match=re.escape(f"{operation!r}; a Tuple row has I, U, D")):
        decode(row() | {"_operation_type_": operation})


@pytest.mark.parametrize(
    ("operation", "flags"),
    [
        ("I", "YN"),
        ("I", "YY"),
        ("I", "NN"),
        ("U", "YY"),
        ("U", "NN"),
        ("D", "NY"),
        ("D", "YY"),
        ("I", "ny"),
        ("U", "  "),
    ],
)
def test_flags_that_contradict_the_operation_are_set_aside(operation: str, flags: str) -> None:
    """Which image the row is, is never guessed."""
    with pytest.raises(MalformedMessageError, match="`_before_image_` is"):
        decode(row(operation, *flags, id=1))


@pytest.mark.parametrize("sequence", [None, "", "-1", "1.0", "abc", " 1", "\u0663", "9" * 100])
def test_a_row_without_a_sequence_is_set_aside(sequence: str | None) -> None:
    """Its place in the order is not known."""
    with pytest.raises(MalformedMessageError, match="_sequence_id_"):
        decode(row(id=1) | {"_sequence_id_": sequence})


def test_sequences_are_compared_as_numbers() -> None:
    """A longer sequence is later, whatever its first digit; text and number are one."""
    early, late = (decode(row(id=1) | {"_sequence_id_": sequence})[0].position for sequence in ("999", 1000))
    assert early < late


def test_a_row_without_a_table_needs_the_option() -> None:
    """The document's own table of rows has no ``_source_table_``."""
    lone_row = row(id=1)
    del lone_row["_source_table_"]
    with pytest.raises(MissingTableError, match="`table`"):
        decode(lone_row)
    assert str(decode(lone_row, table="shop.orders")[0].table) == "shop.orders"
    assert str(decode(row(id=1), table="shop.lines")[0].table) == "orders"


@pytest.mark.parametrize(
    ("time", "micros"),
    [
        (1649991726000, 1649991726000000), ("1649991726000", 1649991726000000), (1649991726, 1649991726000000),
        (1649991726000001, 1649991726000001), ("2022-04-15T03:02:06.000001", 1649991726000001),
        ("2022-04-15 05:02:06+02:00", 1649991726000000), (None, None), ("", None), (0, 0),
    ],
)  # fmt: skip
def test_times_of_changes(time: str | int | None, micros: int | None) -> None:
    """Milliseconds of DataWorks, seconds of DTS, microseconds of a TIMESTAMP, ISO 8601 of Parquet; UTC."""
    assert decode(row(id=1) | {"_excute_time_": time})[0].committed_at == micros


@pytest.mark.parametrize("time", ["yesterday", "9" * 18, "9" * 30, "-1", "0001-01-01T00:00:00", "1.5"])
def test_a_time_that_is_none_is_set_aside(time: str) -> None:
    """It would not fit the change log."""
    with pytest.raises(MalformedMessageError, match="`_excute_time_`"):
        decode(row(id=1) | {"_excute_time_": time})


@pytest.mark.parametrize("beside", [schema(*FIELDS), json.dumps(schema(*FIELDS))])
def test_an_answer_of_get_records_is_many_rows(beside: object) -> None:
    """Values stand in the order of the fields; the schema is an object or, as DataHub gives it, JSON in a string."""
    first, second = decode({"Records": [record(1, "7", "a"), record(2, None, "")], "RecordSchema": beside})
    assert (first.after, second.after) == (b'{"id":"7","name":"a"}', b'{"id":null,"name":""}')
    assert (first.position, second.position) == (changed(1, 1), changed(2, 1))
    assert [(column.name, column.type) for column in first.shape.columns] == [("id", "long"), ("name", "string")]
    assert (first.committed_at, first.captured_at) == (1649991726000000, 1526293795168000)


def test_the_schema_of_an_answer_may_come_by_option() -> None:
    """DataHub's own answers are without it; one beside the records counts more."""
    answer = {"Records": [record(1, "7", "a")]}
    with pytest.raises(MalformedMessageError, match="`record_schema`"):
        decode(answer)
    option = json.dumps(schema(*FIELDS))
    assert decode(answer, record_schema=option)[0].after == b'{"id":"7","name":"a"}'
    assert decode(record(1, "7", "a"), record_schema=option) == decode(answer, record_schema=option)
    other = {**answer, "RecordSchema": schema(*FIELDS[:6], ("x", "STRING"), ("y", "STRING"))}
    assert decode(other, record_schema=option)[0].after == b'{"x":"7","y":"a"}'


def test_the_schema_by_option_types_rows_of_every_kind() -> None:
    """Columns that it does not list have no type."""
    (event,) = decode(row(id="", name="", more=""), record_schema=json.dumps(schema(*FIELDS)))
    assert [column.type for column in event.shape.columns] == ["long", "string", None]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"fields":[{"name":"a"}]}', '{"fields":[{"name":"a","type":"UUID"}]}']
)
def test_a_wrong_schema_by_option_is_refused_at_once(text: str) -> None:
    """A source file is wrong before any message is read."""
    with pytest.raises(ValidationError, match="record_schema"):
        datahub_tuple.Options(record_schema=text)


def test_one_wrong_record_sets_the_whole_answer_aside() -> None:
    """A message never yields half its rows."""
    with pytest.raises(MalformedMessageError, match="record 2 has 7 values, the topic 8 fields"):
        decode({"Records": [record(1, "7", "a"), record(2, "7")], "RecordSchema": schema(*FIELDS)})


def test_a_record_of_a_blob_topic_is_told_its_format() -> None:
    """Its data are one Base64 string."""
    with pytest.raises(MalformedMessageError, match="datahub_blob"):
        decode({"Records": [{"Data": "AAEC"}], "RecordSchema": schema(*FIELDS)})


def test_rows_that_no_producer_of_changes_wrote_are_set_aside() -> None:
    """A topic of plain rows has no operations: the columns that it has are named."""
    with pytest.raises(MalformedMessageError, match="it has id, name"):
        decode({"id": "1", "name": "a"})
    with pytest.raises(MalformedMessageError, match="record 1 has no producer's columns; it has id"):
        decode({"Records": [{"Data": ["1"]}], "RecordSchema": schema(("id", "BIGINT"))})


def test_the_schema_of_a_topic_is_counted() -> None:
    """The answer that describes a topic may lie among those that hold its records."""
    (event,) = decode({"Comment": "tuple", "RecordSchema": json.dumps(schema(*FIELDS)), "RecordType": "TUPLE"})
    assert isinstance(event, ControlEvent)
    assert event.kind == "record_schema"


@pytest.mark.parametrize(
    ("type_", "raw", "printed"),
    [
        ("TINYINT", '"-128"', "-128"), ("SMALLINT", "32767", "32767"), ("INTEGER", '"2147483647"', "2147483647"),
        ("BIGINT", '"-9223372036854775808"', "-9223372036854775808"), ("FLOAT", '"3.4028235e38"', "3.4028235e38"),
        ("DOUBLE", '"10.01"', "10.01"), ("DOUBLE", '"5e-324"', "5e-324"), ("BOOLEAN", '"false"', False),
        ("BOOLEAN", "true", True), ("STRING", '"yc1"', "yc1"), ("STRING", '""', ""),
        ("TIMESTAMP", '"1455869335000011"', "2016-02-19T08:08:55.000011Z"),
        ("TIMESTAMP", "-62135596800000000", "0001-01-01T00:00:00.000000Z"),
        ("TIMESTAMP", '"253402300799999999"', "9999-12-31T23:59:59.999999Z"),
        ("TIMESTAMP", '"2016-02-19 08:08:55.000011"', "2016-02-19T08:08:55.000011Z"),
        ("DECIMAL", '"99999999999999999999.999999999999999999"', "99999999999999999999.999999999999999999"),
        ("DECIMAL", '"1.10"', "1.10"),
        *((type_, '""', None) for type_ in ("TINYINT", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMP", "DECIMAL")),
        *((type_, "null", None) for type_ in tuple_types.TYPES),
    ],
)  # fmt: skip
def test_values_of_every_type(type_: str, raw: str, printed: object) -> None:
    """Each value arrives as it is, bare or in a string; an empty text is null where the column is no text."""
    fields = schema(*FIELDS[:6], ("c", type_))
    (event,) = decode(row(c="1"), record_schema=json.dumps(fields))
    assert read_value(raw.encode(), event.shape.columns[0]) == printed


def test_types_come_in_any_case_of_letters() -> None:
    """Topics made by other tools have them in lower case."""
    assert tuple_types.record_types(b'{"fields":[{"name":"a","type":"bigint"}]}') == {"a": "long"}


def test_an_unknown_type_is_named_with_what_is_allowed() -> None:
    """A type that nobody knows is no string."""
    with pytest.raises(UnknownTypeError, match="field 'c' has the type 'UUID'; a topic has TINYINT"):
        decode({"Records": [], "RecordSchema": schema(("c", "UUID"))})


def test_types_are_those_of_the_documentation() -> None:
    """The table in the documentation of the format says what the code does, type by type."""
    lines = re.findall(r"^\| `([A-Z]+)` \| `([^`]+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    assert dict(lines) == tuple_types.TYPES


def test_added_columns_are_those_of_the_documentation() -> None:
    """The table in the documentation names every added column of each set."""
    text = DOCUMENT.read_text()
    for names in tuple_types.SETS:
        assert all(f"`{column}`" in text for column in names.wire.values())


def test_a_column_twice_is_set_aside() -> None:
    """Readers disagree about which value counts."""
    with pytest.raises(MalformedMessageError, match="twice: id"):
        decode(json.dumps(row(id=1, x=2)).encode().replace(b'"x"', b'"id"'))
