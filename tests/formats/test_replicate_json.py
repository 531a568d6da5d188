"""What is peculiar to Replicate in JSON; the golden folders hold the rest."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.replicate_messages import ID, column, in_json, metadata, row
from tidemark import formats
from tidemark.errors import (
    MalformedMessageError,
    MissingKeyError,
    MissingMetadataError,
    MissingTableError,
    UnknownOperationError,
    UnknownTypeError,
)
from tidemark.events import ChangeEvent, Message, Operation, SchemaChange, Transaction
from tidemark.formats import replicate_json
from tidemark.formats._replicate import types
from tidemark.formats._replicate.names import TableNames
from tidemark.formats._replicate.structure import Index, Structure
from tidemark.formats._replicate.wire import TableColumn
from tidemark.normalization.canonical_json import event_to_json

DOCUMENT = Path(__file__).parents[2] / "docs" / "formats" / "replicate_json.md"
ORDERS = {"id": column(1, "INT8", key=1), "status": column(2, "WSTRING"), "total": column(3, "NUMERIC", 18, 2)}
FOUR = {f"c{number}": column(number, "INT4", key=int(number == 3)) for number in range(1, 5)}
DATA = {"id": 1, "status": "new", "total": "1.10"}


def message(value: bytes | dict[str, Any], **record: Any) -> Message:
    """Make a message of bytes, or of an object without envelope."""
    return Message(value=value if isinstance(value, bytes) else json.dumps(value).encode(), file="f", place=7, **record)


def known_of(*messages: bytes, **options: Any) -> formats.Known:
    """Return what is known from metadata messages."""
    pairs = [replicate_json.metadata(message(value), replicate_json.Options(**options)) for value in messages]
    return formats.gather(pair for pair in pairs if pair is not None)


ORDERS_KNOWN = known_of(in_json("MD", metadata(ORDERS)))


def decode(
    value: bytes | dict[str, Any],
    known: formats.Known = ORDERS_KNOWN,
    record: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Decode one message to its one event."""
    (event,) = replicate_json.decode(message(value, **(record or {})), replicate_json.Options(**options), known)
    return event


def after(event: ChangeEvent) -> dict[str, Any]:
    """Return the columns that ``after`` has, as printed."""
    printed = event_to_json(event, message(b""))["after"]
    assert isinstance(printed, dict)
    return printed


def test_document_metadata_message() -> None:
    """Its columns, in the order of their ordinals, are the shape of a schema change of the table that lineage names."""
    shuffled = {name: ORDERS[name] for name in ("total", "id", "status")}
    event = decode(in_json("MD", metadata(shuffled)))
    assert isinstance(event, SchemaChange)
    assert str(event.table) == "shop.orders"
    assert event.shape is not None
    assert [(each.name, each.type) for each in event.shape.columns] == [
        ("id", "long"),
        ("status", "string"),
        ("total", "decimal(18, 2)"),
    ]
    assert event.captured_at == 1767225600000000


def test_document_data_message() -> None:
    """The headers are read: operation, sequence, time in UTC, transaction, number and last event in it."""
    headers = {"transactionEventCounter": 4, "transactionLastEvent": "True", "changeMask": "02", "columnMask": "07"}
    event = decode(in_json("DT", row("UPDATE", DATA, DATA, seq=197, **headers)))
    assert event.operation is Operation.UPDATE
    assert event.position == (1, 20260102030405000000000000000000197, 4)
    assert event.committed_at == 1767323045000000
    assert event.transaction == Transaction(id="00000000000000000000000000060008", number=4, last=True)
    assert event.key == ("id",)


@pytest.mark.parametrize("order", ["big", "little"])
def test_document_change_mask(order: str) -> None:
    """The document's 0B stands for the columns at ordinals 1, 2 and 4, whichever way its one byte is read."""
    data = dict.fromkeys(FOUR, 5) | {"c3": None, "c1": None}
    known = known_of(in_json("MD", metadata(FOUR | {"c3": column(3, "INT4"), "c1": column(1, "INT4", key=1)})))
    event = decode(in_json("DT", row("UPDATE", data, columnMask="0B")), known, mask_byte_order=order)
    assert event.absent == ("c3",)
    assert event.partial


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("REFRESH", Operation.SNAPSHOT),
        ("INSERT", Operation.INSERT),
        ("UPDATE", Operation.UPDATE),
        ("DELETE", Operation.DELETE),
    ],
)
def test_document_operations(operation: str, expected: Operation) -> None:
    """The four operations of the document are told apart, and only an initial load ranks below the changes."""
    event = decode(in_json("DT", row(operation, DATA)))
    assert event.operation is expected
    assert event.position[0] == (0 if operation == "REFRESH" else 1)


def test_document_initial_load_has_no_headers_of_changes() -> None:
    """REFRESH has empty texts and null masks: no time, no transaction, the place in the dump for order."""
    event = decode(in_json("DT", row("REFRESH", DATA)))
    assert (event.committed_at, event.transaction, event.partial) == (None, None, False)
    assert event.position == (0, 0, 0, "f", 7)


def test_document_external_schema_id_leads_to_the_table() -> None:
    """A bare message is of the table whose metadata has the id in its headers."""
    event = decode(row("INSERT", DATA, externalSchemaId=ID))
    assert str(event.table) == "shop.orders"
    assert event.key == ("id",)


def test_document_table_in_the_message() -> None:
    """A bare message that names schema and table needs no id, and finds its metadata by them."""
    assert decode({"schema": "shop", "table": "orders", **row("INSERT", DATA)}).key == ("id",)
    other = decode({"schema": "crm", "table": "orders", **row("INSERT", DATA)})
    assert (str(other.table), other.key) == ("crm.orders", None)


@pytest.mark.parametrize(
    ("topic", "table", "key"),
    [("shop.orders", "shop.orders", ("id",)), ("orders", "shop.orders", ("id",)), ("crm.a.b", "crm.a.b", None)],
)
def test_topic_is_the_last_resort(topic: str, table: str, key: tuple[str, ...] | None) -> None:
    """Without id and name the topic is the table, as the endpoint calls it: of known metadata, else as it stands."""
    event = decode(in_json("DT", row("INSERT", DATA), None), record={"topic": topic, "partition": 0, "offset": 1})
    assert (str(event.table), event.key) == (table, key)


def test_a_missing_schema_id_is_not_made_up_by_the_topic() -> None:
    """With an id that is nowhere, the row waits for its metadata, whatever the topic; the option may name the table."""
    value = in_json("DT", row("INSERT", DATA), "F" * 32)
    with pytest.raises(MissingMetadataError, match=r"F{32}.*land the dump of the metadata topic"):
        decode(value, record={"topic": "shop.orders", "partition": 0, "offset": 1})
    assert decode(value, table="shop.orders").key == ("id",)
    with pytest.raises(MissingMetadataError):
        decode(value, table="shop.elsewhere")


def test_metadata_that_is_lost() -> None:
    """By an option rows are read without it: of the table that the option or the topic names, else not at all."""
    value = in_json("DT", row("INSERT", DATA), "F" * 32)
    event = decode(value, record={"topic": "crm.notes", "partition": 0, "offset": 1}, metadata="optional")
    assert (str(event.table), event.key) == ("crm.notes", None)
    assert str(decode(value, table="crm.other", metadata="optional").table) == "crm.other"
    with pytest.raises(MissingTableError):
        decode(value, metadata="optional")


def test_columns_tell_the_table_only_where_one_has_them() -> None:
    """A bare row without any name is of the one known table with its columns; two such tables, and it is set aside."""
    assert str(decode(row("INSERT", DATA)).table) == "shop.orders"
    twins = known_of(in_json("MD", metadata(ORDERS)), in_json("MD", metadata(ORDERS, "2", "copies"), "2"))
    with pytest.raises(MissingTableError, match="option `table`"):
        decode(row("INSERT", DATA), twins)
    with pytest.raises(MissingTableError):
        decode(row("INSERT", {"id": 1}))


def test_one_id_for_two_tables() -> None:
    """An id that stands for several tables needs one of them named, and never takes another."""
    known = known_of(in_json("MD", metadata(ORDERS)), in_json("MD", metadata(ORDERS, table="copies")))
    value = in_json("DT", row("INSERT", DATA))
    assert str(decode(value, known, table="shop.copies").table) == "shop.copies"
    assert (
        str(decode(value, known, record={"topic": "shop.orders", "partition": 0, "offset": 1}).table) == "shop.orders"
    )
    with pytest.raises(MissingTableError, match="several tables"):
        decode(value, known)
    with pytest.raises(MissingTableError, match="several tables"):
        decode(value, known, table="shop.third")


def test_newest_version_of_an_id_counts() -> None:
    """The same id with another structure is read by the newest version, in whatever order the two are known."""
    older, newer = (in_json("MD", metadata(columns, version=version)) for columns, version in ((ORDERS, 1), (FOUR, 12)))
    for known in (known_of(older, newer), known_of(newer, older)):
        assert decode(in_json("DT", row("INSERT", dict.fromkeys(FOUR, 1))), known).key == ("c3",)


def test_metadata_told_again_is_the_same() -> None:
    """A restarted task writes the metadata again with another time and order of columns: the content stays."""
    again = metadata({name: ORDERS[name] for name in reversed(ORDERS)})
    again["lineage"] |= {"timestamp": "2026-06-01T00:00:00.000", "server": "replicate-2"}
    assert known_of(in_json("MD", metadata(ORDERS)), in_json("MD", again)) == ORDERS_KNOWN


def test_content_is_a_metadata_message_that_tells_the_same() -> None:
    """What is kept of a metadata message gives the same id, content, shape and table when it is read again."""
    ((id_, (content,)),) = ORDERS_KNOWN.items()
    assert replicate_json.metadata(message(content), replicate_json.Options()) == (id_, content)
    first, again = decode(in_json("MD", metadata(ORDERS))), decode(content)
    assert (again.statement.encode(), again.table, again.shape) == (content, first.table, first.shape)


def test_metadata_is_none_of_a_row() -> None:
    """A row is no metadata, not even one that has its mark in a text."""
    value = in_json("DT", row("INSERT", DATA | {"status": "tableStructure"}))
    assert replicate_json.METADATA_MARK in value
    assert replicate_json.metadata(message(value), replicate_json.Options()) is None
    assert replicate_json.metadata(Message(value=None, file="f", place=1), replicate_json.Options()) is None


def test_composite_key_is_in_the_order_of_its_positions() -> None:
    """``primaryKeyPosition`` orders the key, 0 is outside; a table without key says so."""
    columns = {"a": column(1, "INT4", key=2), "b": column(2, "INT4"), "c": column(3, "INT4", key=1)}
    data = {"a": 1, "b": 2, "c": 3}
    assert decode(row("INSERT", data), known_of(in_json("MD", metadata(columns)))).key == ("c", "a")
    keyless = {name: {**properties, "primaryKeyPosition": 0} for name, properties in columns.items()}
    assert decode(row("INSERT", data), known_of(in_json("MD", metadata(keyless)))).key == ()


def test_real_masks_of_sixteen_columns() -> None:
    """00FFFF has all columns, and 007FFF all but the one at ordinal 16: a number, read from its right end."""
    columns = {f"c{number}": column(number, "INT4", key=int(number == 1)) for number in range(1, 17)}
    known, data = known_of(in_json("MD", metadata(columns))), dict.fromkeys(columns, 1)
    assert not decode(row("UPDATE", data, columnMask="00FFFF", changeMask="008080"), known).partial
    event = decode(row("UPDATE", data | {"c16": None}, columnMask="007fff"), known)
    assert event.absent == ("c16",)
    assert "c16" not in after(event)


def test_long_mask() -> None:
    """117 columns have masks of 15 bytes, the bit of the last one in the first of them."""
    columns = {f"c{number}": column(number, "INT4", key=int(number == 1)) for number in range(1, 118)}
    event = decode(
        row("UPDATE", dict.fromkeys(columns, 1) | {"c117": None}, columnMask="0F" + "FF" * 14, externalSchemaId=ID),
        known_of(in_json("MD", metadata(columns))),
    )
    assert event.absent == ("c117",)


SIXTEEN = {f"c{number}": column(number, "INT4", key=int(number == 1)) for number in range(1, 17)}
VALUES = dict.fromkeys(SIXTEEN, 5) | {"c16": None}


@pytest.mark.parametrize(
    ("operation", "data", "before"),
    [
        ("INSERT", VALUES, None),
        ("UPDATE", VALUES, None),
        ("UPDATE", VALUES | {"c8": None}, VALUES),
        ("DELETE", VALUES, None),
        ("DELETE", None, VALUES),
    ],
)
def test_a_value_outside_of_the_column_mask_is_never_dropped(
    operation: str, data: dict[str, Any] | None, before: dict[str, Any] | None
) -> None:
    """The mask lacks c16. Read in the other order of bytes it lacks c8, which has a value in one of the images."""
    body = row(operation, data, before, columnMask="FF7F", externalSchemaId=ID)
    known = known_of(in_json("MD", metadata(SIXTEEN)))
    with pytest.raises(MalformedMessageError, match=r"`columnMask` leaves out c8, .* `mask_byte_order`"):
        decode(body, known)
    event = decode(body, known, mask_byte_order="little")
    assert event.absent == (() if operation == "DELETE" else ("c16",))
    assert event.before is None or json.loads(event.before) == dict.fromkeys(list(SIXTEEN)[:-1], 5)


def test_a_mask_of_another_version_with_the_same_id_drops_no_value() -> None:
    """The newest version reads all rows of an id, and a row of an older one may have its columns in another order."""
    older = {"id": column(1, "INT8", key=1), "a": column(2, "WSTRING"), "b": column(3, "WSTRING")}
    newer = {"id": column(1, "INT8", key=1), "b": column(2, "WSTRING"), "a": column(3, "WSTRING")}
    known = known_of(in_json("MD", metadata(older)), in_json("MD", metadata(newer, version=2)))
    with pytest.raises(MalformedMessageError, match="`columnMask` leaves out a"):
        decode(in_json("DT", row("UPDATE", {"id": 1, "a": "x", "b": None}, columnMask="03")), known)
    assert decode(in_json("DT", row("UPDATE", {"id": 1, "a": "x", "b": None}, columnMask="05")), known).absent == ("b",)


def test_masked_out_null_is_unchanged_and_masked_in_null_is_null() -> None:
    """Of two nulls, the one outside of the column mask is absent and the other is a value."""
    event = decode(row("UPDATE", {"id": 1, "status": None, "total": None}, columnMask="05"))
    assert after(event) == {"id": "1", "total": None}
    assert (event.partial, event.absent) == (True, ("status",))


def test_a_column_that_an_update_lacks_is_unchanged() -> None:
    """Without a mask too: null would take the place of the value that is there. An INSERT has no value before it."""
    partial = {"id": 1, "status": "new"}
    update, insert = (decode(in_json("DT", row(operation, partial))) for operation in ("UPDATE", "INSERT"))
    assert (update.partial, update.absent) == (True, ("total",))
    assert (insert.partial, insert.absent) == (False, ())


def test_before_image_does_not_show_what_it_does_not_know() -> None:
    """A column outside of the mask is in neither image; all others are there verbatim."""
    before = {"id": 1, "status": None, "total": "1.10"}
    event = decode(in_json("DT", row("UPDATE", DATA | {"status": None}, before, columnMask="05")))
    assert event.before == b'{"id":1,"total":"1.10"}'


@pytest.mark.parametrize(
    ("data", "masks", "expected"),
    [
        ({"id": 1, "status": None, "total": None}, {"changeMask": "01", "columnMask": "07"}, {"id"}),
        ({"id": 1, "status": None, "total": None}, {"changeMask": "01", "columnMask": "01"}, {"id"}),
        ({"id": 1, "status": "a", "total": None}, {"changeMask": "01", "columnMask": "07"}, {"id", "status"}),
        ({"id": 1, "status": None, "total": None}, {"changeMask": None, "columnMask": None}, {"id", "status", "total"}),
        (dict.fromkeys(DATA), {"changeMask": "00", "columnMask": "00"}, None),
    ],
)
@pytest.mark.parametrize("place", ["data", "beforeData"])
def test_deleted_row_has_what_its_masks_vouch_for(
    data: dict[str, Any], masks: dict[str, Any], expected: set[str] | None, place: str
) -> None:
    """In either place, a null that no mask vouches for is left out; without its key the delete is set aside."""
    images = (data if place == "data" else None, data if place == "beforeData" else None)
    body = row("DELETE", *images, externalSchemaId=ID, **masks)
    if expected is None:
        with pytest.raises(MissingKeyError, match="lacks id"):
            decode(body)
    else:
        event = decode(body)
        assert event.after is None
        assert set(json.loads(event.before)) == expected


def test_key_change_is_one_update() -> None:
    """The old key stands in ``beforeData``."""
    event = decode(in_json("DT", row("UPDATE", DATA | {"id": 2}, DATA, changeMask="01", columnMask="07")))
    assert (json.loads(event.before)["id"], json.loads(event.after)["id"]) == (1, 2)


def test_image_travels_verbatim() -> None:
    """No digit, blank or escape of a row changes, and a bare decimal keeps its zeros."""
    image = b'{"id" : 9007199254740993, "status":"\\u00e9\\ud83d\\ude00 NUL \\u0000","total":1.10}'
    value = in_json("DT", row("INSERT", DATA)).replace(json.dumps(DATA, separators=(",", ":")).encode(), image)
    event = decode(value)
    assert event.after == image
    assert after(event) == {"id": "9007199254740993", "status": "é😀 NUL \x00", "total": "1.10"}


def test_sequence_is_a_number() -> None:
    """Sequences of unequal length compare as numbers, and events of one sequence by their number."""
    short, long = (decode(row("INSERT", DATA, changeSequence=text)) for text in ("999", "1000"))
    assert short.position < long.position
    first, second = (decode(row("INSERT", DATA, transactionEventCounter=text)) for text in ("9", 10))
    assert first.position < second.position


def test_a_sequence_of_35_digits_may_be_a_number() -> None:
    """It has the place that its text has; the bound is that of a text, 60 digits."""
    for digits in ("20260102030405010000000000000000007", "9" * 60):
        as_text, as_number = (decode(row("INSERT", DATA, changeSequence=each)) for each in (digits, int(digits)))
        assert as_number.position == as_text.position == (1, int(digits), 0)
    with pytest.raises(MalformedMessageError, match="changeSequence"):
        decode(row("INSERT", DATA, changeSequence=10**60))


def test_change_without_sequence_stands_at_its_time() -> None:
    """Its time is the first 16 digits of a sequence, so it stands among those that have one; then the dump's order."""
    missing = decode(row("INSERT", DATA, changeSequence=None, timestamp="2026-01-02 03:04:05.129"))
    assert missing.position[:2] == (1, 20260102030405120000000000000000000)
    assert decode(row("INSERT", DATA, seq=1)).position < missing.position
    fractions = ["", ".0", ".05", ".25", ".3", ".50", ".6123456", ".99"]
    found = [
        decode(row("INSERT", DATA, changeSequence=None, timestamp=f"2026-01-02 03:04:05{fraction}"))
        for fraction in fractions
    ]
    places = [event.position[1] % 10**21 // 10**19 for event in found]
    assert places == [0, 0, 5, 25, 30, 50, 61, 99]


@pytest.mark.parametrize("text", ["", "null"])
def test_no_last_event_told(text: str) -> None:
    """A counter and a flag that are missing stay untold."""
    insert = row("INSERT", DATA, transactionLastEvent="" if text == "" else None, transactionId="")
    assert decode(insert).transaction is None


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (in_json("DT", row("MERGE", DATA)), UnknownOperationError, "'MERGE'; Replicate has REFRESH, INSERT"),
        (in_json("DT", row("insert", DATA)), UnknownOperationError, "'insert'"),
        (in_json("ML", row("INSERT", DATA)), UnknownOperationError, "'ML'; Replicate has MD, DT"),
        (in_json("DT", metadata(ORDERS)), MalformedMessageError, "of the other type"),
        (in_json("DT", None), MalformedMessageError, "`message` is null"),
        (in_json("DT", {"data": DATA}), MalformedMessageError, "without `headers`"),
        (in_json("MD", metadata({"a": column(0, "INT4")})), MalformedMessageError, "ordinals"),
        (in_json("MD", metadata({"a": column(2_000_000_000, "INT4")})), MalformedMessageError, "ordinals"),
        (in_json("MD", metadata({"a": column(1, "INT9")})), UnknownTypeError, "'INT9'; Replicate has BOOLEAN"),
        (in_json("MD", metadata(ORDERS, id_=""), None), MalformedMessageError, "without `schemaId`"),
        (in_json("DT", row("INSERT", DATA, columnMask="7")), MalformedMessageError, "whole bytes"),
        (in_json("DT", row("INSERT", DATA, columnMask="1_0")), MalformedMessageError, "whole bytes"),
        (in_json("DT", row("INSERT", DATA, columnMask="F" * 40_000)), MalformedMessageError, "whole bytes"),
        (in_json("DT", row("INSERT", DATA, columnMask="FF")), MalformedMessageError, "beyond the 3 columns"),
        (in_json("DT", row("INSERT", DATA, changeSequence="9" * 99)), MalformedMessageError, "changeSequence"),
        (in_json("DT", row("INSERT", DATA, changeSequence=-1)), MalformedMessageError, "changeSequence"),
        (in_json("DT", row("UPDATE", DATA, changeSequence="", timestamp=None)), MalformedMessageError, "no place"),
        (in_json("DT", row("DELETE", DATA, changeSequence=None, timestamp="")), MalformedMessageError, "no place"),
        (in_json("DT", row("INSERT", DATA, timestamp="2026-02-30T00:00:00")), MalformedMessageError, "timestamp"),
        (
            in_json("DT", row("INSERT", DATA, timestamp="2026-02-03T00:00:00." + "1" * 50)),
            MalformedMessageError,
            "no time",
        ),
        (in_json("DT", row("UPDATE", DATA | {"id": None}, columnMask="06")), MissingKeyError, "lacks id of the key"),
    ],
)
def test_what_is_set_aside_says_why(value: bytes, error: type[Exception], text: str) -> None:
    """Whatever cannot be read is refused with the value in question and what would be right."""
    with pytest.raises(error, match=re.escape(text)):
        decode(value)


def test_columns_named_twice_are_refused() -> None:
    """Neither a row nor a metadata message may name a column twice: two readers would read two things."""
    twice = json.dumps(metadata(ORDERS)).replace('"status"', '"id"').encode()
    with pytest.raises(MalformedMessageError, match="twice"):
        decode(twice)
    with pytest.raises(MalformedMessageError, match="twice"):
        decode(in_json("DT", row("INSERT", DATA)).replace(b'"status"', b'"id"'))


def test_too_many_columns_are_refused() -> None:
    """A table has 10,000 columns at most."""
    with pytest.raises(MalformedMessageError, match="10001 columns"):
        decode(metadata({f"c{number}": column(number, "INT4") for number in range(1, 10_002)}))


def test_broken_metadata_spoils_its_own_rows_only() -> None:
    """Rows of a table with an unknown type say so, and rows that look for a table by name are not disturbed."""
    known = known_of(in_json("MD", metadata({"a": column(1, "INT9")}, "9", "odd")), in_json("MD", metadata(ORDERS)))
    with pytest.raises(UnknownTypeError, match="INT9"):
        decode(in_json("DT", row("INSERT", {"a": 1}), "9"), known)
    assert decode(row("INSERT", DATA), known).key == ("id",)


def test_broken_metadata_is_read_once() -> None:
    """However many rows need it, what cannot be read is tried once."""
    tried = []

    def build(text: bytes) -> Structure:
        tried.append(text)
        raise UnknownTypeError("INT9")

    index = Index({"1": (b"x",)}, build)
    for _ in range(3):
        with pytest.raises(UnknownTypeError):
            index.by_id("1", TableNames())
        assert index.table_of_topic("x") is None
    assert tried == [b"x"]


def test_document_types_are_those_of_the_code() -> None:
    """Each row of the table of types in the docs is what a column of that type becomes."""
    text = DOCUMENT.read_text().partition("## Types")[2]
    rows = re.findall(r"^\| (`[^|]+) \| `([^`]+)` \| `([^`]+)` \|$", text, re.MULTILINE)
    documented = {name: tuple(as_told) for names, *as_told in rows for name in names.replace("`", "").split(", ")}
    found = {}
    for name in documented:
        kind, precision, scale = (*re.split(r"[(,)]", name), "0", "0")[:3]
        listed = TableColumn(ordinal=1, type=kind, precision=int(precision), scale=int(scale))
        made = types.column("c", listed)
        found[name] = (made.type, made.encoding.value)
    assert found == documented
    assert {name.partition("(")[0] for name in documented} == {*types.TYPES, "NUMERIC"}


@pytest.mark.parametrize("operation", ["INSERT", "UPDATE", "DELETE", "REFRESH"])
@pytest.mark.parametrize("empty", [{}, None])
def test_a_row_without_columns_is_set_aside(operation: str, empty: dict[str, Any] | None) -> None:
    """In a table without a key it would be a row of nulls."""
    keyless = {name: column(number, "WSTRING") for number, name in enumerate(("a", "b"), 1)}
    known = known_of(in_json("MD", metadata(keyless)))
    with pytest.raises(MalformedMessageError, match="missing, null or empty"):
        decode(in_json("DT", row(operation, empty), ID), known)


def test_a_metadata_message_with_a_row_is_set_aside() -> None:
    """The row would be lost."""
    for images in ({"data": DATA}, {"beforeData": DATA}):
        with pytest.raises(MalformedMessageError, match="a metadata message carries a row"):
            decode(in_json("MD", metadata(ORDERS) | images))
        with pytest.raises(MalformedMessageError, match="a metadata message carries a row"):
            decode({**metadata(ORDERS), **images})
    assert isinstance(decode(in_json("MD", metadata(ORDERS) | {"data": None, "beforeData": {}})), SchemaChange)


@pytest.mark.parametrize(
    ("key", "names"),
    [
        (b'{"id":1}', ("id",)),
        (b'{"schema":{"type":"int64"},"payload":1}', None),
        (b'{"schema":null,"payload":"x"}', None),
        (b"1", None),
        (b"{}", None),
    ],
)
def test_a_record_key_without_names_is_no_key(key: bytes, names: tuple[str, ...] | None) -> None:
    """Of a table without metadata; the row is sound all the same."""
    optional = {"table": "DEPOT.PARCELS", "metadata": "optional"}
    event = decode(row("INSERT", {"id": 1, "city": "Graz"}), known_of(), {"key": key}, **optional)
    assert (event.operation, event.key) == (Operation.INSERT, names)
