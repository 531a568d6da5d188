"""What is peculiar to Replicate in Avro; the golden folders hold the rest, and rows are read as those in JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.replicate_messages import (
    HEADERS,
    ID,
    column,
    data_schema,
    in_avro,
    in_json,
    metadata,
    metadata_in_avro,
    metadata_schema,
    row,
    row_in_avro,
    written,
)
from tidemark import formats
from tidemark.errors import MalformedMessageError, MissingMetadataError, UnknownOperationError, UnknownTypeError
from tidemark.events import ChangeEvent, Message, SchemaChange
from tidemark.formats import replicate_avro, replicate_json
from tidemark.formats._replicate.avro_columns import LOGICAL
from tidemark.normalization.canonical_json import event_to_json

DOCUMENT = Path(__file__).parents[2] / "docs" / "formats" / "replicate_avro.md"
ORDERS = {"id": column(1, "INT8", key=1), "status": column(2, "WSTRING"), "total": column(3, "NUMERIC", 18, 2)}
SCHEMA = data_schema({"id": "long", "status": "string", "total": "string"})
DATA = {"id": 1, "status": "new", "total": "1.10"}
METADATA = metadata_in_avro(ORDERS, SCHEMA)


def message(value: bytes, **record: Any) -> Message:
    """Make a message."""
    return Message(value=value, file="f", place=7, **record)


def known_of(*messages: bytes) -> formats.Known:
    """Return what is known from metadata messages."""
    pairs = [replicate_avro.metadata(message(value), replicate_avro.Options()) for value in messages]
    return formats.gather(pair for pair in pairs if pair is not None)


KNOWN = known_of(METADATA)


def decode(value: bytes, known: formats.Known = KNOWN, record: dict[str, Any] | None = None, **options: Any) -> Any:
    """Decode one message to its one event."""
    (event,) = replicate_avro.decode(message(value, **(record or {})), replicate_avro.Options(**options), known)
    return event


def of_column(type_: object, value: object, properties: dict[str, Any]) -> ChangeEvent:
    """Decode a row of one column, written as ``type_`` stores it."""
    schema, stored = (data_schema({"c": each}) for each in (type_, _stored(type_)))
    known = known_of(metadata_in_avro({"c": properties}, schema))
    event: ChangeEvent = decode(row_in_avro(stored, row("REFRESH", {"c": value})), known)
    return event


def _stored(type_: object) -> object:
    return {key: part for key, part in type_.items() if key != "logicalType"} if isinstance(type_, dict) else type_


def printed(event: ChangeEvent) -> Any:
    """Return ``after`` as ``tidemark decode`` prints it."""
    return event_to_json(event, message(b""))["after"]


def test_document_envelope() -> None:
    """An envelope begins with the five bytes atMSG, then the type of the message, and holds its bytes."""
    value = in_avro("DT", b"\x01\x02", None)
    assert value == b"atMSG\x04DT\x00\x00\x00\x04\x01\x02"


def test_document_metadata_message() -> None:
    """It is read by the schema that it brings, and describes the table, its columns and the schema of its rows."""
    event = decode(METADATA)
    assert isinstance(event, SchemaChange)
    assert str(event.table) == "shop.orders"
    assert json.loads(json.loads(event.statement)["dataSchema"]) == SCHEMA
    assert event.shape is not None
    assert [each.type for each in event.shape.columns] == ["long", "string", "decimal(18, 2)"]


@pytest.mark.parametrize("operation", ["REFRESH", "INSERT", "UPDATE", "DELETE"])
@pytest.mark.parametrize(
    "masks", [{}, {"changeMask": "03", "columnMask": "03"}, {"changeMask": "01", "columnMask": "07"}]
)
def test_rows_are_those_of_json(operation: str, masks: dict[str, str]) -> None:
    """The same row gives the same event as in JSON: images, masks as bytes, position, transaction, key."""
    data = {**DATA, "total": None}
    body = row(operation, data, data if operation == "UPDATE" else None, transactionEventCounter=2, **masks)
    in_text = replicate_json.metadata(message(in_json("MD", metadata(ORDERS))), replicate_json.Options())
    assert in_text is not None
    (expected,) = replicate_json.decode(
        message(in_json("DT", body)), replicate_json.Options(), formats.gather([in_text])
    )
    assert decode(row_in_avro(SCHEMA, body)) == expected


def test_row_before_its_metadata() -> None:
    """Nothing reads a row but its schema: without it the row waits, and says for what."""
    with pytest.raises(MissingMetadataError, match=ID):
        decode(row_in_avro(SCHEMA, row("INSERT", DATA)), formats.NOTHING, table="shop.orders")


def test_row_is_read_by_its_own_schema() -> None:
    """Of two versions of a table, each row is read by the one whose id it has."""
    wider = data_schema({"status": "string", "id": "long", "total": "string", "note": "string"})
    known = known_of(METADATA, metadata_in_avro(ORDERS, wider, "2", version=2))
    first = decode(row_in_avro(SCHEMA, row("INSERT", DATA)), known)
    second = decode(row_in_avro(wider, row("INSERT", {**DATA, "note": "n"}), "2"), known)
    assert json.loads(first.after) == DATA
    assert json.loads(second.after) == {**DATA, "note": "n"}
    assert [each.name for each in second.shape.columns] == ["status", "id", "total", "note"]


def test_bare_rows_need_the_one_structure_of_a_table() -> None:
    """Without envelope there is no id: the topic or the option names the table, and only one version may be known."""
    headers = {"transactionEventCounter": None, "transactionLastEvent": None}
    value = written(SCHEMA, row("INSERT", DATA, **headers))
    assert json.loads(decode(value, table="shop.orders").after) == DATA
    assert decode(value, record={"topic": "orders", "partition": 0, "offset": 1}).key == ("id",)
    with pytest.raises(MissingMetadataError, match="not exactly one structure"):
        decode(value, record={"topic": "other", "partition": 0, "offset": 1})
    twice = known_of(METADATA, metadata_in_avro(ORDERS, SCHEMA, "2", version=2))
    with pytest.raises(MissingMetadataError, match="not exactly one structure"):
        decode(value, twice, table="shop.orders")
    with pytest.raises(MalformedMessageError, match="no atMSG envelope"):
        decode(value)


def naming_schema() -> dict[str, Any]:
    """Return the schema of rows that may name their table, beside the headers or in them."""
    schema = data_schema({"id": "long", "status": "string", "total": "string"})
    names = [{"name": name, "type": ["null", "string"]} for name in ("schema", "table")]
    schema["fields"][2]["type"] = {**HEADERS, "fields": [*HEADERS["fields"], *names]}
    schema["fields"] += names
    return schema


@pytest.mark.parametrize("by", ["headers", "message"])
def test_a_row_that_names_another_table_than_its_id_waits_for_the_metadata(by: str) -> None:
    """Two tables of one structure may share an id: the row is of the named table, or of none."""
    schema = naming_schema()
    orders, copies = (metadata_in_avro(ORDERS, schema, table=table) for table in ("orders", "copies"))
    name, none = {"schema": "shop", "table": "copies"}, {"schema": None, "table": None}
    body = row("INSERT", DATA, **(name if by == "headers" else none)) | (name if by == "message" else none)
    value = row_in_avro(schema, body)
    record = {"topic": "changes", "partition": 0, "offset": 1}
    for options in ({}, {"table": "shop.orders"}):
        with pytest.raises(MissingMetadataError, match=r"is known of shop\.orders only"):
            decode(value, known_of(orders), record, **options)
    assert str(decode(value, known_of(orders, copies), record, table="shop.orders").table) == "shop.copies"
    assert str(decode(value, known_of(orders), record, schema_ids="unique").table) == "shop.orders"
    assert str(decode(value, known_of(copies), record).table) == "shop.copies"


def test_a_bare_row_that_names_another_table_than_the_option_is_set_aside() -> None:
    """Without an id nothing but the option or the topic finds its structure."""
    schema = naming_schema()
    known = known_of(metadata_in_avro(ORDERS, schema))
    headers = {"transactionEventCounter": None, "transactionLastEvent": None, "schema": "shop"}
    value = written(schema, row("INSERT", DATA, table="copies", **headers) | {"schema": None, "table": None})
    with pytest.raises(MissingMetadataError, match=r"names the table shop\.copies and has no schema id"):
        decode(value, known, table="shop.orders")
    same = written(schema, row("INSERT", DATA, table="orders", **headers) | {"schema": None, "table": None})
    assert str(decode(same, known, table="shop.orders").table) == "shop.orders"


@pytest.mark.parametrize("text", ["tableStructure", '"tableStructure":{"tableColumns":{}}}', '{"tableStructure":{}}'])
def test_a_row_that_begins_and_reads_like_metadata_is_a_row(text: str) -> None:
    """Without envelope, -62 is written as the first byte of a JSON object, and a text may hold any word."""
    schema = data_schema({})
    fields = [{"name": "id", "type": "int"}, {"name": "tableStructure", "type": "string"}]
    schema["fields"][0]["type"] = {"type": "record", "name": "Data", "fields": fields}
    known = known_of(metadata_in_avro({"id": column(1, "INT4", key=1), "tableStructure": column(2, "STRING")}, schema))
    headers = {"transactionEventCounter": None, "transactionLastEvent": None}
    data = {"id": -62, "tableStructure": text}
    value = written(schema, row("INSERT", data, **headers))
    assert value.startswith(b"{")
    assert json.loads(decode(value, known, table="shop.orders").after) == data
    assert replicate_avro.metadata(message(value), replicate_avro.Options()) is None


def test_content_is_a_metadata_message_that_tells_the_same() -> None:
    """What is kept is JSON, and gives the same id, content, shape and table when it is read again."""
    ((id_, (content,)),) = KNOWN.items()
    assert content.startswith(b"{")
    assert replicate_avro.metadata(message(content), replicate_avro.Options()) == (id_, content)
    first, again = decode(METADATA), decode(content)
    assert (again.statement.encode(), again.table, again.shape) == (content, first.table, first.shape)


def test_columns_may_be_named_like_types() -> None:
    """The record of a column is named after it, so that names may repeat: none of them means anything."""
    columns = {
        name: column(number, "INT4", key=1) for number, name in enumerate(("Lineage", "Headers", "Data", "R"), 1)
    }
    schema = data_schema(dict.fromkeys(columns, "int"))
    known = known_of(in_avro("MD", _plainly(columns, schema), ID, _renamed(columns)))
    assert json.loads(
        decode(row_in_avro(schema, row("INSERT", dict.fromkeys(columns, 1))), known).after
    ) == dict.fromkeys(columns, 1)


def _plainly(columns: dict[str, Any], schema: dict[str, Any]) -> bytes:
    # fastavro writes no schema in which a name is defined twice, so the same bytes are written by another one
    own = metadata_schema([f"x{number}" for number in range(len(columns))])
    body = metadata(
        {f"x{number}": properties for number, properties in enumerate(columns.values())}, data_schema=json.dumps(schema)
    )
    return written(own, body)


def _renamed(columns: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(metadata_schema([f"x{number}" for number in range(len(columns))]))
    for number, name in enumerate(columns):
        text = text.replace(f'"x{number}"', f'"{name}"')
    schema: dict[str, Any] = json.loads(text)
    return schema


@pytest.mark.parametrize(
    ("type_", "value", "properties", "expected"),
    [
        ("long", 2**63 - 1, column(1, "INT8", key=1), str(2**63 - 1)),
        ("long", 2**53 + 1, column(1, "NUMERIC", 18, 0, 1), str(2**53 + 1)),
        ("double", float("nan"), column(1, "REAL8"), "NaN"),
        ("double", float("-inf"), column(1, "REAL8"), "-Infinity"),
        ("double", 5e-324, column(1, "REAL8"), "5e-324"),
        ("float", 0.5, column(1, "REAL4"), "0.5"),
        ("string", "NUL \x00 😀 \\", column(1, "STRING"), "NUL \x00 😀 \\"),
        ("string", "00ff", column(1, "BYTES"), "AP8="),
        ("bytes", b"\x00\xff", column(1, "BYTES"), "AP8="),
        ({"type": "int", "logicalType": "date"}, -719162, column(1, "DATE"), "0001-01-01"),
        ({"type": "int", "logicalType": "time-millis"}, 86399999, column(1, "TIME"), "23:59:59.999000"),
        ({"type": "long", "logicalType": "timestamp-micros"}, -1, column(1, "DATETIME"), "1969-12-31T23:59:59.999999"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2},
            (10**38 - 1).to_bytes(16, "big", signed=True),
            column(1, "NUMERIC", 38, 2),
            f"{'9' * 36}.99",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": -2},
            (-1234).to_bytes(2, "big", signed=True),
            column(1, "NUMERIC", 20, -2),
            "-123400",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 5},
            (12).to_bytes(1, "big", signed=True),
            column(1, "NUMERIC", 2, 5),
            "0.00012",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 65, "scale": 30},
            (10**65 - 1).to_bytes(28, "big", signed=True),
            column(1, "NUMERIC", 65, 30),
            f"{'9' * 35}.{'9' * 30}",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0},
            (2**64 - 1).to_bytes(9, "big", signed=True),
            column(1, "UINT8"),
            str(2**64 - 1),
        ),
    ],
)
def test_values_are_exact(type_: object, value: object, properties: dict[str, Any], expected: str) -> None:
    """What Avro stores is what is published, and null is null."""
    assert printed(of_column(type_, value, properties)) == {"c": expected}
    assert printed(of_column(type_, None, {**properties, "primaryKeyPosition": 0})) == {"c": None}


def test_text_that_is_no_utf8_is_set_aside() -> None:
    """Bytes that are no text never become one."""
    value = row_in_avro(SCHEMA, row("INSERT", DATA)).replace(b"new", b"n\xffw")
    with pytest.raises(MalformedMessageError, match="utf-8"):
        decode(value)


@pytest.mark.parametrize(
    ("schema", "error", "text"),
    [
        ({"c": {"type": "array", "items": "null"}}, UnknownTypeError, "array"),
        ({"c": {"type": "map", "values": "int"}}, UnknownTypeError, "map"),
        ({"c": {"type": "record", "name": "X", "fields": []}}, UnknownTypeError, "column 'c' is an Avro record"),
        ({"c": {"type": "bytes", "logicalType": "decimal", "precision": 10**4}}, UnknownTypeError, "precision 10000"),
        ({"c": {"type": "bytes", "logicalType": "decimal"}}, UnknownTypeError, "precision None"),
    ],
)
def test_columns_that_rows_do_not_have(schema: dict[str, Any], error: type[Exception], text: str) -> None:
    """A type that no row of Replicate has sets the metadata message aside, and says which."""
    with pytest.raises(error, match=text):
        decode(metadata_in_avro({"c": column(1, "STRING")}, data_schema(schema)))


def test_headers_of_other_types_are_refused() -> None:
    """The schema of the headers comes with the messages as well; a sequence that is a record is no sequence."""
    odd = data_schema({"id": "long"})
    fields = [{"name": "operation", "type": "string"}, {"name": "timestamp", "type": "long"}]
    odd["fields"][2]["type"] = {"type": "record", "name": "Headers", "fields": fields}
    known = known_of(metadata_in_avro(ORDERS, odd))
    body = {"data": {"id": 1}, "beforeData": None, "headers": {"operation": "INSERT", "timestamp": 1}}
    with pytest.raises(MalformedMessageError, match="`headers` that Replicate does not write"):
        decode(in_avro("DT", written(odd, body)), known)


def test_a_row_without_headers_is_refused() -> None:
    """The schema may allow null for them."""
    nullable = data_schema({"id": "long"})
    nullable["fields"][2]["type"] = ["null", HEADERS]
    body = written(nullable, {"data": {"id": 1}, "beforeData": None, "headers": None})
    with pytest.raises(MalformedMessageError, match="`headers` is null"):
        decode(in_avro("DT", body), known_of(metadata_in_avro(ORDERS, nullable)))


def _with_old_record(**columns: object) -> dict[str, Any]:
    """The schema of rows with a date and a double, and with an old row of other columns."""
    schema = data_schema({"id": "long", "day": {"type": "int", "logicalType": "date"}, "size": "double"})
    fields = [{"name": name, "type": ["null", kind]} for name, kind in columns.items()]
    schema["fields"][1]["type"] = ["null", {"type": "record", "name": "Old", "fields": fields}]
    return schema


def test_an_old_row_may_lack_columns() -> None:
    """Those that it has are read; the double that it lacks is absent."""
    schema = _with_old_record(id="long", day={"type": "int", "logicalType": "date"})
    new = {"id": 5, "day": 20_000, "size": 1.5}
    event = decode(
        row_in_avro(schema, row("UPDATE", new, {"id": 4, "day": 19_000})), known_of(metadata_in_avro(ORDERS, schema))
    )
    assert (json.loads(event.before), json.loads(event.after)) == ({"id": 4, "day": 19_000}, new)


@pytest.mark.parametrize(("columns", "named"), [
    ({"id": "long", "day": "int"}, "day"), ({"id": "string", "size": "float"}, "id, size"),
])  # fmt: skip
def test_an_old_row_of_other_types_is_refused(columns: dict[str, object], named: str) -> None:
    """It would be read by the types of the new row: days since 1970 where a plain number stands."""
    schema = _with_old_record(**columns)
    with pytest.raises(MalformedMessageError, match=f"`beforeData` has other types than `data` for {named}"):
        decode(metadata_in_avro({"note": column(1, "STRING")}, schema))


def test_unknown_operation_is_named() -> None:
    """An operation that the schema knows and Replicate does not is set aside with its name."""
    merging = data_schema({"id": "long"})
    operation = {"name": "operation", "type": {"type": "enum", "name": "operation", "symbols": ["MERGE"]}}
    merging["fields"][2]["type"] = {**HEADERS, "fields": [operation, *HEADERS["fields"][1:]]}
    with pytest.raises(UnknownOperationError, match="'MERGE'; Replicate has REFRESH"):
        decode(row_in_avro(merging, row("MERGE", {"id": 1})), known_of(metadata_in_avro(ORDERS, merging)))


def test_a_cut_or_longer_message_is_no_row() -> None:
    """Each byte of a message counts: one less or one more, and it is set aside."""
    body = row_in_avro(SCHEMA, row("INSERT", DATA))
    for end in range(5, len(body)):
        with pytest.raises(MalformedMessageError):
            decode(body[:end])
    with pytest.raises(MalformedMessageError, match="1 bytes more"):
        decode(body + b"\x00")


def test_an_envelope_in_json_is_not_taken_for_avro() -> None:
    """Rows in JSON under the name of this format are set aside, not guessed at."""
    with pytest.raises(MalformedMessageError, match="no atMSG envelope"):
        decode(in_json("DT", row("INSERT", DATA)))


def test_tombstone() -> None:
    """A record without value is counted and changes nothing."""
    (event,) = replicate_avro.decode(msgspec.structs.replace(message(b""), value=None), replicate_avro.Options())
    assert (
        event == (replicate_json.decode(msgspec.structs.replace(message(b""), value=None), replicate_json.Options()))[0]
    )


def test_document_types_are_those_of_the_code() -> None:
    """Each row of the table of types in the docs is what a column so stored becomes."""
    text = DOCUMENT.read_text().partition("## Types")[2]
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$", text, re.MULTILINE)
    assert len(rows) > 20
    kinds = set()
    for name, stored, type_, encoding in rows:
        kind, _, logical = stored.partition(" ")
        kinds.add((kind, logical))
        digits = {"precision": 12, "scale": 3} if logical == "decimal" else {}
        extra = (
            {"name": "F", "size": 2} if kind == "fixed" else {"name": "E", "symbols": ["a"]} if kind == "enum" else {}
        )
        avro = {"type": kind, **extra, **digits, **({"logicalType": logical} if logical else {})}
        base, precision, scale = (*re.split(r"[(,)]", name), "0", "0")[:3]
        schema = data_schema({"c": avro})
        event = decode(metadata_in_avro({"c": column(1, base, int(precision), int(scale))}, schema))
        assert (name, [(each.type, each.encoding.value) for each in event.shape.columns]) == (name, [(type_, encoding)])
    assert {*LOGICAL, ("bytes", "decimal"), ("fixed", "decimal")} <= kinds
