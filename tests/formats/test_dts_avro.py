"""What is peculiar to DTS Avro; the golden folders hold the rest."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import dts_records
from support.cases import FIXTURES
from support.rounds import how_many
from tidemark.demo.renderers.dts_schema import NAMESPACE
from tidemark.errors import (
    DecodeError,
    IncompleteMessageError,
    MalformedMessageError,
    UnknownTypeError,
    UnreadableValueError,
)
from tidemark.events import ChangeEvent, ControlEvent, Encoding, Message, Operation, SchemaChange
from tidemark.formats import Placing, dts_avro
from tidemark.formats._dts import types as dts_types
from tidemark.formats._dts.charsets import names_of
from tidemark.formats._dts.record import OPERATIONS
from tidemark.normalization.canonical_json import event_to_json
from tidemark.positions import encode_position
from tidemark.values.plain import read_value

CASES = sorted(path.parent for path in (FIXTURES / "dts_avro").glob("*/records.jsonl"))
DOC = Path(__file__).parents[2] / "docs" / "formats" / "dts_avro.md"
PRIMARY = {"pk_uk_info": '{"PRIMARY":["id"]}'}
ID = {"Integer": "1"}
RAW_HEARTBEAT = bytes.fromhex(
    "00"  # version 0
    "a4f509"  # id 81234
    "b0b5afd20c"  # sourceTimestamp 1696984408
    "10363730303840373810363730303040373802" "30"  # 67008@78, 67000@78, 0
    "000c382e302e3238"  # MySQL 8.0.28
    "10"  # HEARTBEAT
    "00" "00" "00" "00" "00" "00"  # no object, no times, no tags, no fields, no images
)  # fmt: skip


def message(**notation: Any) -> Message:
    """Return a message in the notation of ``dts_records``."""
    return Message(value=dts_records.encode(notation), file="f", place=7)


def decode(options: dict[str, Any] | None = None, /, **notation: Any) -> list[Any]:
    """Decode one Record."""
    return dts_avro.decode(message(**notation), dts_avro.Options(**(options or {})))


def inserted(value: Any, number: int = 253, *, source: str = "MySQL", **options: Any) -> ChangeEvent:
    """Return the INSERT of a row (1, value)."""
    (event,) = decode(
        options, operation="INSERT", object="shop.t", source=source, position="67008@78" if source == "MySQL" else "x",
        tags=PRIMARY, fields=[["id", 2 if source == "Oracle" else 8], ["v", number]], after=[ID, value],
    )  # fmt: skip
    return event


def printed(value: Any, number: int = 253, **options: Any) -> Any:
    """Return how a value is printed."""
    image = event_to_json(inserted(value, number, **options), Message(value=None, file="f", place=1))["after"]
    assert isinstance(image, dict)
    return image["v"]


def test_bytes_of_a_record_written_by_hand() -> None:
    """A heartbeat, byte by byte as Avro's specification has it, without ``bornTimestamp``."""
    (event,) = dts_avro.decode(Message(value=RAW_HEARTBEAT, file="f", place=1), dts_avro.Options())
    assert event == ControlEvent(kind="heartbeat", position=event.position, committed_at=1696984408_000000)
    assert dts_records.encode({"operation": "HEARTBEAT"}) == RAW_HEARTBEAT


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_golden_messages_are_the_records_beside_them(folder: Path) -> None:
    """What stands in Base64 is what stands in words, written by fastavro."""
    in_words = dts_records.messages(folder / "records.jsonl")
    assert (folder / "messages.b64").read_text().split("\n")[:-1] == in_words


def test_every_operation_of_the_schema_is_read() -> None:
    """No operation is left to chance: four are rows, one is DDL, the others are counted."""
    assert {*dts_avro.OPERATIONS, *dts_avro.CONTROLS, "DDL"} == set(OPERATIONS)
    assert len(OPERATIONS) == 17


def test_insert_carries_the_whole_row() -> None:
    """The after image becomes one JSON object, in the order of ``fields``."""
    event = inserted({"Character": 'a"😀\0'})
    assert (event.operation, event.before, event.partial) == (Operation.INSERT, None, False)
    assert event.after == b'{"id":"1","v":"a\\"\xf0\x9f\x98\x80\\u0000"}'
    assert (str(event.table), event.key, event.position) == ("shop.t", ("id",), (1, 78, 67008, 0, 0, "f", 7))


def test_update_has_both_images_and_one_shape() -> None:
    """A column that is null in one image has the type of the other."""
    row = {"object": "shop.t", "fields": [["id", 8], ["v", 252]], "tags": PRIMARY}
    (event,) = decode(operation="UPDATE", before=[ID, {"BinaryObject": "00ff"}], after=[ID, None], **row)
    assert (event.before, event.after) == (b'{"id":"1","v":"AP8="}', b'{"id":"1","v":null}')
    assert [(column.type, column.encoding) for column in event.shape.columns] == [
        ("long", "text"),
        ("binary", "base64"),
    ]


def test_change_of_the_key_is_one_update() -> None:
    """Both keys stand in the message: before has the old one."""
    (event,) = decode(
        operation="UPDATE", object="shop.t", tags=PRIMARY, fields=[["id", 8]], before=[ID], after=[{"Integer": "2"}]
    )
    assert (event.before, event.after) == (b'{"id":"1"}', b'{"id":"2"}')


def test_not_captured_is_unchanged_and_null_is_null() -> None:
    """EmptyObject NONE leaves the column out of the image; EmptyObject NULL and the null branch are null."""
    fields = [["id", 8], ["a", 252], ["b", 3], ["c", 3]]
    (event,) = decode(
        operation="UPDATE", object="shop.t", tags=PRIMARY, fields=fields, before=None,
        after=[ID, {"EmptyObject": "NONE"}, {"EmptyObject": "NULL"}, None],
    )  # fmt: skip
    assert event.after == b'{"id":"1","b":null,"c":null}'
    assert (event.partial, event.absent) == (True, ("a",))


def test_images_of_another_operation_are_left_out() -> None:
    """An INSERT has no before image, and a DELETE no after image, whatever the Record carries."""
    row = {"object": "shop.t", "tags": PRIMARY, "fields": [["id", 8]], "before": [ID], "after": [ID]}
    (insert,), (delete,) = decode(operation="INSERT", **row), decode(operation="DELETE", **row)
    assert (insert.before, delete.after) == (None, None)


def test_initial_load_ranks_below_every_change() -> None:
    """An INIT row that comes late does not undo a change."""
    row = {"object": "shop.t", "tags": PRIMARY, "fields": [["id", 8]], "after": [ID]}
    (load,), (change,) = decode(operation="INIT", **row), decode(operation="INSERT", **row)
    assert load.operation is Operation.SNAPSHOT
    assert load.position < change.position


def test_positions_are_numbers() -> None:
    """Log 100 is behind log 99, and offset 1000 behind offset 999."""
    row = {"object": "shop.t", "tags": PRIMARY, "fields": [["id", 8]], "after": [ID], "operation": "INSERT"}
    found = [decode(position=position, **row)[0].position for position in ("999@99", "1000@99", "4@100")]
    assert found == sorted(found)


def test_position_by_the_dump_alone() -> None:
    """After a failover the logs count anew, so the source file may say that the dump is the order."""
    row = {"object": "shop.t", "tags": PRIMARY, "fields": [["id", 8]], "after": [ID], "operation": "INSERT"}
    (event,) = decode({"order": "dump"}, position="lsn:1", **row)
    assert event.position == (1, 0, 0, "f", 7)


@pytest.mark.parametrize("position", ["lsn:1", "", "1@", "@1", "1@2@3", "-1@2", "1" * 20 + "@1"])
def test_a_position_that_mysql_does_not_have_is_refused(position: str) -> None:
    """A position that cannot be ordered is never taken for another."""
    with pytest.raises(MalformedMessageError, match="sourcePosition"):
        decode(operation="INSERT", object="shop.t", tags=PRIMARY, fields=[["id", 8]], after=[ID], position=position)


@pytest.mark.parametrize("txid", ["", "0"])
def test_an_unknown_transaction_is_none(txid: str) -> None:
    """DTS writes ``0`` where it does not know the transaction."""
    (event,) = decode(operation="COMMIT", txid=txid)
    assert event.transaction is None


def test_a_record_with_a_byte_too_many_is_refused() -> None:
    """Behind the Record may stand ``bornTimestamp`` and nothing else."""
    value = dts_records.encode({"operation": "HEARTBEAT", "born": 5})
    with pytest.raises(MalformedMessageError, match="ends at byte"):
        dts_avro.decode(Message(value=value + b"\0", file="f", place=1), dts_avro.Options())


def test_blocks_of_negative_count_are_read() -> None:
    """Avro allows an array in several blocks, with their sizes in bytes in front."""
    (event,) = dts_avro.decode(Message(value=_in_blocks(), file="f", place=1), dts_avro.Options())
    assert event.after == b'{"a":"1","b":"2"}'


def _in_blocks() -> bytes:
    """Return an INSERT whose arrays and map are one block for each item, each with its size."""

    def text(content: bytes) -> bytes:
        return bytes([len(content) * 2]) + content

    def blocks(*items: bytes) -> bytes:
        return b"".join(b"\x01" + bytes([len(item) * 2]) + item for item in items) + b"\0"

    fields = blocks(text(b"a") + b"\x06", text(b"b") + b"\x06")
    image = blocks(*(b"\x02\x08" + text(digit) for digit in (b"1", b"2")))
    tags = blocks(text(b"pk_uk_info") + text(b'{"PRIMARY":["a"]}'), text(b"x") + text(b"y"))
    header = b"\0\0\0" + text(b"1@1") + text(b"1@1") + text(b"0") + b"\0" + text(b"8") + b"\0"
    times = b"\x02" + blocks(b"\x04", b"\x06")
    return header + b"\x02" + text(b"s.t") + times + tags + b"\x04" + fields + b"\0" + b"\x04" + image


def test_truncations_name_their_tables() -> None:
    """One DDL may empty several tables; each gets its own event behind the schema change."""
    change, *emptied = decode(operation="DDL", object="app", source="PostgreSQL", after='truncate a."B", c')
    assert isinstance(change, SchemaChange)
    assert [str(event.table) for event in emptied] == ["app.a.B", "app.c"]
    assert [event.position for event in (change, *emptied)] == [(1, 0, 0, "f", 7, number) for number in range(3)]


LOGICAL = {"l_db_name": "shop", "l_tb_name": "orders"}


@pytest.mark.parametrize(("name", "statement"), [
    ("shop_0003.orders_0042", "TRUNCATE TABLE orders"), ("shop_0003", "truncate table `shop`.`Orders`"),
    ("shop_0003.orders", "TRUNCATE orders"), ("shop.orders", "TRUNCATE TABLE shop.orders"),
])  # fmt: skip
def test_a_statement_of_polardb_x_is_about_the_logical_table(name: str, statement: str) -> None:
    """Rows are of the logical table, so a TRUNCATE of a shard's name would empty nothing."""
    for source in ("DRDS", "MySQL"):
        events = decode(operation="DDL", object=name, source=source, tags=LOGICAL, after=statement)
        assert [str(event.table) for event in events] == ["shop.orders", "shop.orders"]
    (change,) = decode(operation="DDL", object=name, source="DRDS", tags=LOGICAL, after="ALTER TABLE orders ADD c INT")
    assert str(change.table) == "shop.orders"


@pytest.mark.parametrize(("name", "statement"), [
    ("shop_0003.orders_0042", "TRUNCATE TABLE orders_0042"),
    ("shop_0003.orders_0042", "ALTER TABLE ORDERS_0042 ADD c INT"),
    ("shop_0003.orders_0042", "TRUNCATE shop_0003.orders"), ("shop_0003", "TRUNCATE orders_0042"),
    ("shop_0003.orders_0042", "ALTER TABLE `orders_0042` ADD orders INT"),
])  # fmt: skip
def test_a_statement_about_a_shard_is_set_aside(name: str, statement: str) -> None:
    """It changes a part of the rows of the logical table, and nothing tells which."""
    with pytest.raises(IncompleteMessageError, match="load the table again"):
        decode(operation="DDL", object=name, source="DRDS", tags=LOGICAL, after=statement)


@pytest.mark.parametrize(("name", "statement", "source"), [
    ("shop.b", "TRUNCATE a", "MySQL"), ("shop.b", "TRUNCATE TABLE other.b", "MySQL"),
    ("app.public.a", "TRUNCATE b, c", "PostgreSQL"), ("ora.SCOTT.EMP", "truncate table dept", "Oracle"),
])  # fmt: skip
def test_a_truncate_of_another_table_than_the_one_named_is_set_aside(name: str, statement: str, source: str) -> None:
    """Which of them was emptied, nobody can tell, and both would be."""
    with pytest.raises(MalformedMessageError, match="which one was emptied"):
        decode(operation="DDL", object=name, source=source, after=statement)


def test_a_truncate_of_several_tables_empties_the_one_that_is_named() -> None:
    """The statement says of the others that they are emptied."""
    change, emptied = decode(operation="DDL", object="app.public.a", source="PostgreSQL", after="TRUNCATE a, b")
    assert isinstance(change, SchemaChange)
    assert (str(emptied.table), emptied.operation) == ("app.public.a", Operation.TRUNCATE)


def test_a_ddl_with_a_row_is_set_aside() -> None:
    """The row would be lost."""
    row: dict[str, Any] = {"fields": [["id", 8]], "before": [{"Integer": "1"}]}
    with pytest.raises(MalformedMessageError, match="a DDL carries a row"):
        decode(operation="DDL", object="s.t", after="ALTER TABLE t ADD c INT", **row)


@pytest.mark.parametrize("byte", [0, 0x20, 0xFF])
def test_a_filler_is_passed_over(byte: int) -> None:
    """The SDK of DTS skips values of 48 bytes; a Record of this length is read, and other lengths are set aside."""
    (event,) = dts_avro.decode(Message(value=bytes([byte] * 48), file="f", place=7), dts_avro.Options())
    assert isinstance(event, ControlEvent)
    assert event.kind == "noop"
    for length in (47, 49):
        with pytest.raises(MalformedMessageError):
            dts_avro.decode(Message(value=bytes([byte] * length), file="f", place=7), dts_avro.Options())
    record = next(value for length in range(20) if len(value := _heartbeat("1" * length)) == 48)
    (event,) = dts_avro.decode(Message(value=record, file="f", place=7), dts_avro.Options())
    assert event.kind == "heartbeat"


def _heartbeat(position: str) -> bytes:
    return dts_records.encode({"operation": "HEARTBEAT", "position": position})


@pytest.mark.parametrize("statement", ["UPDATE t SET a = 1", "DELETE FROM t", "CREATE TABLE t SELECT 1", "CALL p()"])
def test_text_that_changes_rows_is_no_ddl(statement: str) -> None:
    """A log of MySQL in STATEMENT format has it in place of the rows; PostgreSQL's rows come from its log."""
    for source in ("MySQL", "DRDS"):
        with pytest.raises(IncompleteMessageError, match="the log is not in ROW format"):
            decode(operation="DDL", object="app", source=source, position="67008@78", after=statement)
    (change,) = decode(operation="DDL", object="app", source="PostgreSQL", after=statement)
    assert isinstance(change, SchemaChange)


@pytest.mark.parametrize("operation", ["INSERT", "UPDATE", "DELETE"])
@pytest.mark.parametrize("image", ["before", "after"])
def test_text_in_place_of_columns_says_that_the_log_is_not_in_row_format(operation: str, image: str) -> None:
    """A log of MySQL has it; of other sources, and of another text, it is not known what it means."""
    place = {"object": "app.t", "position": "67008@78"}
    with pytest.raises(IncompleteMessageError, match=r"REPLACE.*the log is not in ROW format"):
        decode(operation=operation, source="MySQL", **{image: "REPLACE INTO t VALUES (7)"}, **place)
    for source, text in (("Oracle", "DELETE FROM t"), ("MySQL", "ALTER TABLE t ADD v int")):
        with pytest.raises(MalformedMessageError, match="a text where the columns of a row belong"):
            decode(operation=operation, source=source, **{image: text}, **place)


def test_text_that_changes_rows_is_no_ddl_of_other_sources() -> None:
    """Their logs have no such text, so it is not known what the message means."""
    for source in ("Oracle", "SQLServer"):
        with pytest.raises(MalformedMessageError, match="a DDL whose text changes rows, without the rows"):
            decode(operation="DDL", object="app", source=source, after="DELETE FROM t")


@pytest.mark.parametrize("source", ["DB2", "OTHER"])
def test_what_mysql_alone_logs_is_ddl_of_a_source_that_is_not_mysql(source: str) -> None:
    """A log has no format there that could be set to ROW."""
    for statement in ("CREATE TABLE t AS (SELECT 1 FROM u) WITH NO DATA", "CALL SYSPROC.ADMIN_CMD('REORG TABLE t')"):
        (change,) = decode(operation="DDL", object="app", source=source, after=statement)
        assert isinstance(change, SchemaChange)
    with pytest.raises(MalformedMessageError, match="a DDL whose text changes rows, without the rows"):
        decode(operation="DDL", object="app", source=source, after="DELETE FROM t")


def test_many_columns_of_one_name_are_refused_at_once() -> None:
    """Each name is counted once: a message may have a million of them."""
    fields = [[f"c{number}", 3] for number in range(100_000)] * 2
    began = time.process_time()
    with pytest.raises(MalformedMessageError, match="`fields` names a column twice: c0, c1, c10, "):
        decode(operation="INSERT", object="shop.t", fields=fields, after=[None] * len(fields))
    assert time.process_time() - began < 10  # about 1; in the square of the names it is minutes


def test_hostile_ddl_is_looked_at_in_bounded_time() -> None:
    """A pattern that backtracks would stop a run: a text of any shape is read or refused at once."""
    for statement in (
        "truncate " + "a," * 4000,
        "truncate " + "/*" * 4000,
        "truncate " + "a." * 4000,
        " " * 9000 + "x",
    ):
        try:
            decode(operation="DDL", object="shop", after=statement)
        except DecodeError:
            continue


@pytest.mark.parametrize(
    ("value", "number", "text"),
    [
        ({"Integer": str(2**64 - 1)}, 8, str(2**64 - 1)),
        ({"Integer": str(-(2**63))}, 8, str(-(2**63))),
        ({"Integer": str(2**63)}, 16, str(2**63)),
        ({"Integer": "00007"}, 3, "7"),
        ({"Decimal": ["9" * 38, 38, 0]}, 246, "9" * 38),
        ({"Decimal": ["0." + "0" * 37 + "1", 38, 38]}, 246, "0." + "0" * 37 + "1"),
        ({"Decimal": ["1.10", 3, 2]}, 246, "1.10"),
        ({"Decimal": ["1." + "1" * 30, 65, 30]}, 246, "1." + "1" * 30),
        ({"Float": "nan"}, 5, "NaN"),
        ({"Float": "-inf"}, 5, "-Infinity"),
        ({"Float": 5e-324}, 5, "5e-324"),
        ({"DateTime": [1, 1, 1, 0, 0, 0, 1]}, 18, "0001-01-01T00:00:00.000001"),
        ({"DateTime": [9999, 12, 31, 23, 59, 59, 999999]}, 18, "9999-12-31T23:59:59.999999"),
        ({"DateTime": [64, 1, 1, 0, 0, 0, None]}, 18, "0064-01-01T00:00:00.000000"),
        ({"DateTime": [63, 1, 1, 0, 0, 0, 7]}, 18, "0063-01-01T00:00:00.000007"),
        ({"DateTime": [None, None, None, -838, -59, -59, 0]}, 11, "-838:59:59"),
        ({"DateTime": [None, None, None, 0, 0, 0, -1]}, 19, "-00:00:00.000001"),
        ({"Timestamp": [-62135596800, 1]}, 17, "0001-01-01T00:00:00.000001Z"),
        ({"Timestamp": [253402300799, 999999]}, 17, "9999-12-31T23:59:59.999999Z"),
        ({"Character": "\u2028\u0085\x7f"}, 253, "\u2028\u0085\x7f"),
        ({"Character": "x" * 100_000}, 252, "x" * 100_000),
        ({"TextObject": "\0"}, 245, "\0"),
    ],
)
def test_extreme_values_arrive_unchanged(value: Any, number: int, text: str) -> None:
    """The ends of every type, printed digit by digit."""
    assert printed(value, number) == text


@pytest.mark.parametrize(
    ("value", "number", "reason"),
    [
        ({"DateTime": [0, 0, 0, 0, 0, 0, 0]}, 18, "no such day"),
        ({"DateTime": [2023, 2, 29, None, None, None, None]}, 10, "no such day"),
        ({"DateTime": [2024, 1, 1, 0, 0, 0, 1_000_000]}, 18, "column 'v': 1000000 microseconds are a second or more"),
        ({"DateTime": [2024, 1, 1, 0, 0, 0, -1]}, 18, "below zero"),
        ({"DateTime": [2024, 1, 1, -1, 0, 0, 0]}, 18, "below zero"),
        ({"DateTime": [None, None, None, None, None, None, None]}, 11, "neither a date nor a time of day"),
        ({"DateTime": [2024, 1, None, None, None, None, None]}, 10, "without month or day"),
        ({"DateTime": [None, None, None, 1, None, 5, None]}, 11, "without minutes"),
        ({"DateTime": [None, None, None, 1, 1, None, 5]}, 11, "no seconds"),
        ({"Timestamp": [0, -1]}, 17, "a fraction of -1"),
        ({"Character": {"charset": "utf8mb4", "hex": "c328"}}, 253, "column 'v': c3 28 is no UTF-8"),
        ({"Character": {"charset": "nobody", "hex": "61"}}, 253, "'nobody', and these are known: ascii, big5"),
        ({"Character": {"charset": "zip", "hex": "61"}}, 253, "the character set 'zip'"),
        ({"Character": {"charset": "", "hex": "61"}}, 253, "no character set"),
        ({"TimestampWithTimeZone": [[2024, 1, 1, 0, 0, 0, 0], "Mars/Olympus"]}, 17, "no zone that is known"),
        ({"TimestampWithTimeZone": [[2024, 1, 1, 0, 0, 0, 0], "+25:00"]}, 17, "no offset"),
        ({"TimestampWithTimeZone": [[2024, 10, 27, 2, 30, 0, 0], "Europe/Berlin"]}, 17, "twice or never"),
        ({"TimestampWithTimeZone": [[2024, 1, 1, None, None, None, None], "+01:00"]}, 17, "no time of day"),
        ({"Integer": "1e3"}, 8, "not an integer"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_read_are_set_aside(value: Any, number: int, reason: str) -> None:
    """The reason names the column and what is wrong with the value."""
    with pytest.raises(UnreadableValueError, match=reason):
        printed(value, number)


def test_text_without_a_character_set_by_option() -> None:
    """The source file says what DTS left out; a named character set counts before it."""
    unnamed = {"Character": {"charset": "", "hex": "c4e3"}}
    assert printed(unnamed, charset="gbk") == "你"
    assert printed({"Character": "é"}, charset="gbk") == "é"
    with pytest.raises(ValueError, match=r"unknown character set 'klingon'; known are .*gbk"):
        dts_avro.Options(charset="klingon")


def test_every_character_set_decodes() -> None:
    """Each name of the lists stands for a codec that Python has."""
    for source in ("MySQL", "Oracle"):
        for name in names_of(source):
            assert (
                printed({"Character": {"charset": name, "hex": ""}}, 253 if source == "MySQL" else 1, source=source)
                == ""
            )


def test_latin1_means_windows_in_mysql_and_iso_elsewhere() -> None:
    """0x80 is the euro sign in MySQL's latin1; the five bytes that Windows has no use for stay what they are."""
    value = {"Character": {"charset": "latin1", "hex": "80818d8f909d"}}
    assert printed(value) == "€\x81\x8d\x8f\x90\x9d"
    assert printed(value, 1043, source="PostgreSQL") == "\x80\x81\x8d\x8f\x90\x9d"


@pytest.mark.parametrize(
    ("charset", "octets", "text"),
    [
        ("greek", "c4a1e4a2b5", "Δ\u02bdδ\u02bc\u0385"),
        ("koi8u", "95a4d6", "\u2022єж"),
        ("hebrew", "e0afdf", "א\u203e\u2017"),
    ],
)
def test_characters_that_mysql_has_otherwise(charset: str, octets: str, text: str) -> None:
    """Python's codecs have quotation marks, a dot and a macron in their places."""
    assert printed({"Character": {"charset": charset, "hex": octets}}) == text


def test_a_byte_that_is_no_character_of_its_set_is_set_aside() -> None:
    """The table of the set has no character for it."""
    with pytest.raises(UnreadableValueError, match="is no greek"):
        printed({"Character": {"charset": "greek", "hex": "c1ff"}})


@pytest.mark.parametrize(
    ("source", "number", "position", "options", "text"),
    [
        ("MySQL", 18, "1@1", {}, "2024-01-01 00:00:00.500000"),
        ("PostgreSQL", 1114, "x", {}, "2024-01-01 00:00:00.500000"),
        ("PostgreSQL", 1114, "x<->y", {}, "2024-01-01 00:00:00.000500"),
        ("MySQL", 18, "x<->y", {}, "2024-01-01 00:00:00.000500"),
        ("Oracle", 180, "x", {}, "2024-01-01 00:00:00.000500"),
        ("SQLServer", 93, "x", {}, "2024-01-01 00:00:00.000500"),
        ("Oracle", 180, "x", {"fraction": "microseconds"}, "2024-01-01 00:00:00.500000"),
        ("MySQL", 18, "1@1", {"fraction": "nanoseconds"}, "2024-01-01 00:00:00.000500"),
    ],
)
def test_millis_are_micro_or_nanoseconds(source: str, number: int, position: str, options: Any, text: str) -> None:
    """The field called ``millis`` counts what its source counts, unless the source file says otherwise."""
    (event,) = decode(
        options, operation="INSERT", object="a.b", source=source, position=position, fields=[["v", number]],
        after=[{"DateTime": [2024, 1, 1, 0, 0, 0, 500_000]}],
    )  # fmt: skip
    assert json.loads(event.after) == {"v": text}


def test_nanoseconds_are_kept_in_the_image() -> None:
    """What is finer than a microsecond is not cut off: no timestamp column takes it."""
    event = inserted({"DateTime": [2024, 1, 1, 0, 0, 0, 1]}, 180, source="Oracle")
    assert json.loads(event.after or b"")["v"] == "2024-01-01 00:00:00.000000001"


@pytest.mark.parametrize("zone", ["+00:00", "+00", "UTC", "GMT", "GMT+0", "Z", "Etc/UTC", "Africa/Abidjan"])
def test_zones_are_offsets_or_regions(zone: str) -> None:
    """Whatever way a zone is written, the instant is the same."""
    value = {"TimestampWithTimeZone": [[1, 1, 1, 0, 0, 0, 0], zone]}
    if zone == "Africa/Abidjan":  # local mean time until 1912
        value = {"TimestampWithTimeZone": [[2024, 1, 1, 0, 0, 0, 0], zone]}
    assert str(printed(value, 17)).endswith("-01-01T00:00:00.000000Z")


def test_an_object_name_with_a_dot() -> None:
    """A dot inside a name is written as the six characters of its JSON escape."""
    row = {"operation": "INSERT", "tags": PRIMARY, "fields": [["id", 8]], "after": [ID]}
    (event,) = decode(object="my\\u002Edb.t\\u002E1", **row)
    assert (event.table.database, event.table.schema, event.table.name) == ("my.db", None, "t.1")


def test_logical_names_of_polardb_x() -> None:
    """A shard's rows belong to the logical table that the tags name."""
    tags = {**PRIMARY, "l_db_name": "shop", "l_tb_name": "orders"}
    row = {"operation": "INSERT", "fields": [["id", 8]], "after": [ID], "source": "DRDS"}
    (event,) = decode(object="shop_0001.orders_0007", tags=tags, **row)
    assert str(event.table) == "shop.orders"


@pytest.mark.parametrize("tags", [
    {"l_db_name": "mall", "l_tb_name": "carts"}, {"l_tb_name": "carts"}, {"l_db_name": "mall"},
])  # fmt: skip
@pytest.mark.parametrize("source", ["MySQL", "DRDS"])
def test_shards_of_polardb_x_are_ordered_by_the_dump(source: str, tags: dict[str, str]) -> None:
    """Each shard counts in the log of its own server: a row that moves to another one must not fall behind."""
    row = {"source": source, "fields": [["id", 3]], "tags": {**PRIMARY, **tags}}
    old = {"object": "mall_0002.carts_b_2", "position": "900100@311", "operation": "DELETE", "before": [ID], **row}
    new = {"object": "mall_0006.carts_b_6", "position": "4400@9", "operation": "INSERT", "after": [ID], **row}
    records = [
        Message(value=dts_records.encode(each), file="f", place=at, partition=2, offset=at)
        for at, each in enumerate((old, new), start=70)
    ]
    events = [dts_avro.decode(each, dts_avro.Options())[0] for each in records]
    assert [event.position for event in events] == [(1, 1, 2, 70), (1, 1, 2, 71)]
    assert dts_avro.TRAITS.placing(encode_position(events[0].position)) is Placing.DUMP


def test_a_statement_of_polardb_x_is_placed_by_the_dump() -> None:
    """Its log is the one of a single shard, or of none."""
    tags = {"l_db_name": "mall", "l_tb_name": "carts"}
    for statement in ("ALTER TABLE carts ADD note TEXT", "TRUNCATE TABLE carts"):
        for number, event in enumerate(decode(operation="DDL", object="mall.carts", tags=tags, after=statement)):
            assert event.position == (1, 0, 0, "f", 7, number)


@pytest.mark.parametrize(
    ("info", "key"),
    [
        ('{"PRIMARY":["id"],"uk":["v"]}', ("id",)),
        ('{"PRIMARY":["ID","V"]}', ("id", "v")),
        ('{"uk":["v"]}', ()),
        ("{}", ()),
        ("", None),
        (None, None),
    ],
)
def test_keys_come_from_the_tag(info: str | None, key: Any) -> None:
    """A primary key is the key; a unique one is none, as its columns may be null; without the tag no key is known."""
    tags = {} if info is None else {"pk_uk_info": info}
    (event,) = decode(operation="INSERT", object="a.b", tags=tags, fields=[["id", 8], ["v", 8]], after=[ID, ID])
    assert event.key == key


def test_a_null_leaves_text_or_bytes_open() -> None:
    """One type number stands for TEXT and for BLOB: only a value shows which."""
    types = [inserted(value, 252).shape for value in (None, {"Character": "a"}, {"BinaryObject": "61"})]
    assert [shape and shape.columns[1].type for shape in types] == [None, "string", "binary"]


def test_a_number_beyond_its_column_is_carried_on_untyped() -> None:
    """Nothing marks an unsigned bigint, so its largest values leave the type to the source file and lose no digit."""
    shape = inserted({"Integer": str(2**63)}, 8).shape
    assert shape is not None
    assert shape.columns[1].type is None


def test_jsonb_is_text() -> None:
    """PostgreSQL's jsonb arrives as bytes that hold the text; bytes that are none are set aside."""
    assert printed({"BinaryObject": b'{"a": 1.10}'.hex()}, 3802, source="PostgreSQL") == '{"a": 1.10}'
    with pytest.raises(UnreadableValueError, match="column 'v': jsonb: ff is no UTF-8"):
        printed({"BinaryObject": "ff"}, 3802, source="PostgreSQL")


def test_unknown_type_numbers() -> None:
    """MySQL's and Oracle's lists are closed; OIDs are open, and the value decides."""
    for source, number in (("MySQL", 244), ("DRDS", -1), ("Oracle", 0)):
        with pytest.raises(UnknownTypeError, match=rf"column 'v' has dataTypeNumber {number}; {source} has "):
            inserted(None, number, source=source)
    assert printed({"TextObject": "red"}, 99_999, source="PostgreSQL") == "red"


def test_documented_types_are_those_of_the_code() -> None:
    """The table of types in the documentation, row by row, number by number."""
    rows = re.findall(
        r"^\| (MySQL|Oracle|PostgreSQL) \| ([0-9, ]+) \| [^|]+ \| ([^|]+) \|$", DOC.read_text(), re.MULTILINE
    )
    documented: dict[str, dict[int, str]] = {}
    for source, numbers, type_ in rows:
        documented.setdefault(source, {}).update(dict.fromkeys(map(int, numbers.split(",")), type_.strip().strip("`")))
    named = {"text or bytes": dts_types.BY_VALUE, "decimal(p, s)": "decimal"}
    for source, types in documented.items():
        assert {number: named.get(type_, type_) for number, type_ in types.items()} == dict(dts_types.FAMILIES[source])
    assert set(documented) == {"MySQL", "Oracle", "PostgreSQL"}


MYSQL_VALUES: dict[str, tuple[int, Any]] = {
    "Integer": (8, st.integers(-(2**70), 2**70).map(str)),
    "Character": (253, st.text()),
    "Decimal": (246, st.decimals(allow_nan=False, allow_infinity=False, places=4, max_value=10**12).map(
        lambda number: [f"{number:f}", 38, 4])),
    "Float": (5, st.floats(allow_nan=False)),
    "Timestamp": (17, st.tuples(st.integers(-(2**40), 2**40), st.integers(0, 999_999)).map(list)),
    "DateTime": (18, st.datetimes().map(lambda moment: [*moment.timetuple()[:6], moment.microsecond])),
    "BinaryObject": (252, st.binary().map(bytes.hex)),
    "TextObject": (245, st.text()),
}  # fmt: skip


@pytest.mark.more
@settings(max_examples=how_many(usually=100, proving=300), deadline=None)
@given(data=st.data())
def test_any_record_is_read_as_fastavro_reads_it(data: st.DataObject) -> None:
    """Fields and values are those that an independent reader of Avro finds."""
    branches = data.draw(st.lists(st.sampled_from(sorted(MYSQL_VALUES)), min_size=1, max_size=6))
    fields = [[f"c{number} ☃", MYSQL_VALUES[branch][0]] for number, branch in enumerate(branches)]
    image = [{branch: data.draw(MYSQL_VALUES[branch][1])} for branch in branches]
    tags = {**data.draw(st.dictionaries(st.text(max_size=200), st.text(max_size=200), max_size=5)), **PRIMARY}
    notation = {
        "operation": "INSERT", "object": "s.t", "fields": fields, "after": image, "tags": tags,
        "seconds": data.draw(st.integers(0, 2**37)), "id": data.draw(st.integers(-(2**63), 2**63 - 1)),
        "times": data.draw(st.none() | st.lists(st.integers(0, 2**63 - 1), max_size=5)),
    }  # fmt: skip
    (event,) = decode(**notation)
    read = dts_records.decoded(dts_records.encode(notation), born=False)
    assert event.committed_at == read["sourceTimestamp"] * 1_000_000
    row = json.loads(event.after)
    assert list(row) == [field["name"] for field in read["fields"]]
    for expected, (name, value), column in zip(read["afterImages"], row.items(), event.shape.columns, strict=True):
        assert column.name == name
        _compare(expected, value, column.encoding)


def _compare(expected: Any, value: str, encoding: Encoding) -> None:
    branch, content = expected[0].removeprefix(f"{NAMESPACE}."), expected[1]
    match branch:
        case "Integer" | "Decimal" | "TextObject":
            assert value == content["value"]
        case "Character":
            assert value.encode() == content["value"]
        case "Float":
            assert float(value) == content["value"]
        case "Timestamp":
            assert re.search(rf"\.{content['millis']:06d}Z$", value)
        case "DateTime":
            parts = [int(part) for part in re.findall("[0-9]+", value)]
            assert [*parts, 0][:7] == [part or 0 for part in content.values()]
        case _:
            assert encoding is Encoding.BASE64


def test_reading_never_walks_past_the_message() -> None:
    """Counts and lengths that promise more than there is cost nothing."""
    huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"  # 2**63 - 1
    start = b"\0\0\0" + b"\0\0\0" + b"\0\0" + b"\0\0"
    for tail in (huge, b"\x02" + huge, b"\0" + huge, b"\0\x02" * 2 + huge, b"\x01\x01" * 50):
        with pytest.raises(DecodeError):
            dts_avro.decode(Message(value=start + tail, file="f", place=1), dts_avro.Options())


def test_a_tombstone_record_is_counted() -> None:
    """A Kafka record without a value changes nothing."""
    (event,) = dts_avro.decode(Message(value=None, file="f", place=1), dts_avro.Options())
    assert event.kind == "tombstone"


def test_values_are_printed_by_the_plain_reader() -> None:
    """The image holds the text of each value, and the column says how it is read."""
    event = inserted({"Decimal": ["1.10", 10, 2]}, 246)
    assert event.shape is not None
    assert read_value(b'"1.10"', event.shape.columns[1]) == "1.10"
    assert event.shape.columns[1].type == "decimal(10, 2)"
