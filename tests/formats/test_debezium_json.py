"""What is peculiar to Debezium JSON and to Lindorm's dialect of it; the golden folders hold the rest."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.doc_tables import listed, table
from tidemark.errors import MalformedMessageError, MissingKeyError, MissingTableError, UnknownOperationError
from tidemark.events import ChangeEvent, Column, ControlEvent, Encoding, Message, Operation
from tidemark.formats import _connect, debezium_json
from tidemark.formats._debezium.placeholders import forms, unavailable
from tidemark.formats._json import untyped
from tidemark.positions import encode_position, identity
from tidemark.values.message_types import table_type
from tidemark.values.plain import read_value

PLACEHOLDER = "__debezium_unavailable_value"
LINDORM = {
    "version": "v1.0", "db": "ld-xxxx", "namespace": "default", "table": "customers", "ts_ms": 1465491411807,
}  # fmt: skip
ANNE_MARIE = {"id": "1004", "first_name": "Anne Marie", "last_name": "Kretchmar"}
ANNE = {"id": "1004", "first_name": "Anne", "last_name": "Kretchmar"}


def decode(value: dict[str, Any] | bytes, *, key: bytes | None = None, place: int = 1, **options: Any) -> ChangeEvent:
    """Decode a message of one row change."""
    raw = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
    (event,) = debezium_json.decode(
        Message(value=raw, file="f", place=place, key=key), debezium_json.Options(**options)
    )
    assert isinstance(event, ChangeEvent)
    return event


def change(op: str, before: Any = None, after: Any = None, **source: Any) -> dict[str, Any]:
    """Return a bare envelope."""
    block = {"connector": "postgresql", "db": "shop", "schema": "public", "table": "orders", "lsn": 100} | source
    return {"op": op, "before": before, "after": after, "source": block, "ts_ms": 1}


def lindorm(op: str, before: Any, after: Any) -> ChangeEvent:
    """Decode a message as Lindorm's document prints them."""
    payload = {"op": op, "ts_ms": 1465491411815, "before": before, "after": after, "source": LINDORM}
    return decode({"schema": {}, "payload": payload}, dialect="lindorm")


def test_lindorm_document_format_description() -> None:
    """The schema beside the payload types the columns, though it describes the payload and not an envelope class."""
    row = [{"type": "int32", "optional": False, "field": "id"}, {"type": "string", "optional": False, "field": "name"}]
    schema = {"type": "struct", "fields": [
        {"type": "string", "optional": False, "field": "op"},
        {"type": "struct", "fields": row, "optional": True, "field": "before"},
        {"type": "struct", "fields": row, "optional": True, "field": "after"}], "optional": False}  # fmt: skip
    payload = {
        "op": "u",
        "before": {"id": 1004, "name": "Jane"},
        "after": {"id": 1004, "name": "Anne"},
        "source": LINDORM,
    }
    event = decode({"payload": payload, "schema": schema}, dialect="lindorm")
    assert event.shape is not None
    assert event.shape.columns == (Column(name="id", type="int"), Column(name="name", type="string"))


def test_lindorm_document_insert() -> None:
    """An insert of an SQL table is a whole row; instance, namespace and table name the table."""
    event = lindorm("c", None, ANNE)
    assert (event.operation, event.partial) == (Operation.INSERT, False)
    assert str(event.table) == "ld-xxxx.default.customers"
    assert (event.committed_at, event.captured_at) == (1465491411807000, 1465491411815000)


def test_lindorm_document_update() -> None:
    """An update has both images, whole."""
    event = lindorm("u", ANNE_MARIE, ANNE)
    assert event.before is not None
    assert event.after is not None
    assert (json.loads(event.before), json.loads(event.after)) == (ANNE_MARIE, ANNE)


def test_lindorm_document_row_deletion() -> None:
    """A delete has the row in ``before``."""
    event = lindorm("d", ANNE_MARIE, None)
    assert (event.operation, event.after) == (Operation.DELETE, None)


def test_lindorm_document_column_deletion() -> None:
    """A column that ``after`` lacks is null: the row is whole, and the shape still has the column."""
    event = lindorm("u", ANNE_MARIE, {"id": "1004", "first_name": "Anne Marie"})
    assert (event.partial, event.absent) == (False, ())
    assert event.shape is not None
    assert [column.name for column in event.shape.columns] == ["id", "first_name", "last_name"]


def test_lindorm_old_row_lacks_what_is_null() -> None:
    """A column that ``before`` lacks was null: not unchanged, which is how a partial old row would be read."""
    event = lindorm("u", {"id": "1004", "first_name": "Anne Marie"}, ANNE_MARIE)
    assert event.before is not None
    assert json.loads(event.before) == {**dict.fromkeys(ANNE_MARIE), "id": "1004", "first_name": "Anne Marie"}
    assert (event.partial, event.absent) == (False, ())


def test_lindorm_document_hbase_put() -> None:
    """A put has the cells that it wrote, as Base64 of raw bytes; ``ROW`` is the key."""
    event = lindorm("c", None, {"ROW": "dXNlcjE=", "f_name": "bHVja3k="})
    assert (event.operation, event.partial, event.upsert, event.key) == (Operation.UPDATE, True, True, ("ROW",))
    assert event.shape is not None
    assert {(column.type, column.encoding) for column in event.shape.columns} == {("binary", Encoding.BASE64)}


def test_a_column_that_an_update_deleted_is_written_as_the_others_of_its_hbase_table() -> None:
    """Its old value is Base64 of raw bytes, as all values of such a table are, with a schema and without one."""
    old, new = {"ROW": "cmFjazc=", "f_note": "b2xk", "f_size": "MTI1"}, {"ROW": "cmFjazc="}
    for before, after in ((old, new), (old, {**new, "f_other": "eA=="}), ({**new, "f_size": "MTI1"}, new)):
        event = lindorm("u", before, after)
        assert event.shape is not None
        assert {column.name for column in event.shape.columns} == {*before, *after}
        assert {(column.type, column.encoding) for column in event.shape.columns} == {("binary", Encoding.BASE64)}
    gone = decode({"op": "d", "before": None, "source": LINDORM}, key=b'{"ROW":"cmFjazc="}', dialect="lindorm")
    assert gone.shape is not None
    assert gone.shape.columns == (Column(name="ROW", type="binary", encoding=Encoding.BASE64),)


def test_a_column_that_only_the_old_row_has_is_typed_by_the_schema_of_old_rows() -> None:
    """A schema made from the payload lacks it in ``after``."""
    number, photo = {"type": "int32", "field": "id"}, {"type": "bytes", "field": "photo"}
    rows = [{"type": "struct", "field": "before", "fields": [number, photo]}]
    rows.append({"type": "struct", "field": "after", "fields": [number]})
    payload = {"op": "u", "before": {"id": 7, "photo": "AQI="}, "after": {"id": 7}, "source": LINDORM}
    event = decode({"schema": {"type": "struct", "fields": rows}, "payload": payload}, dialect="lindorm")
    assert event.shape is not None
    assert event.shape.columns == (
        Column(name="id", type="int"),
        Column(name="photo", type="binary", encoding=Encoding.BASE64),
    )


def test_a_key_that_only_the_record_key_has_is_typed_by_its_schema() -> None:
    """``before`` of a delete may lack the key, and so may its schema; flattened deletes too."""
    key = {"schema": {"type": "struct", "fields": [{"type": "int64", "field": "no"}]}, "payload": {"no": 31}}
    city = {"type": "string", "field": "city"}
    envelope = {"type": "struct", "fields": [{"type": "struct", "field": "before", "fields": [city]}]}
    deleted = {"schema": envelope, "payload": change("d", {"city": "Graz"})}
    flat = {"schema": {"type": "struct", "fields": [city]}, "payload": {"city": "Graz", "__op": "d"}}
    for message in (deleted, flat):
        event = decode(message, key=json.dumps(key).encode(), table="depot.parcels")
        assert (event.operation, event.key, event.shape and {each.name: each.type for each in event.shape.columns}) == (
            Operation.DELETE, ("no",), {"city": "string", "no": "long"},
        )  # fmt: skip
        assert json.loads(event.before or b"").items() >= {"city": "Graz", "no": 31}.items()


def test_a_column_called_row_is_no_hbase_key_elsewhere() -> None:
    """Only Lindorm has tables of the HBase kind."""
    event = decode(change("c", None, {"ROW": "x"}))
    assert (event.operation, event.key) == (Operation.INSERT, None)


def test_only_a_whole_placeholder_is_absent() -> None:
    """A row may hold the text of the placeholder in a longer text: that is data."""
    event = decode(change("u", None, {"id": 1, "a": PLACEHOLDER, "b": f"{PLACEHOLDER} ", "c": [PLACEHOLDER]}))
    assert (event.partial, event.absent) == (True, ("a", "c"))


def typed_update(row: dict[str, Any], types: dict[str, str], **options: Any) -> ChangeEvent:
    """Decode an UPDATE with a schema."""
    fields = [{"type": type_, "field": name} for name, type_ in types.items()]
    schema = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": fields}]}
    update = change("u", None, row, connector="oracle", scn="7", commit_scn="8")
    return decode({"schema": schema, "payload": update}, **options)


@pytest.mark.parametrize(
    ("placeholder", "written"),
    [
        (PLACEHOLDER, base64.b64encode(PLACEHOLDER.encode()).decode()),
        (PLACEHOLDER, PLACEHOLDER.encode().hex()),
        (PLACEHOLDER, base64.b64encode(PLACEHOLDER.encode()).decode().rstrip("=")),
        ("??>~~~??>", "Pz8+fn5+Pz8+"),
        ("??>~~~??>", "Pz8-fn5-Pz8-"),
        ("hex:fffefbff", "//77/w=="),
        ("hex:fffefbff", "__77_w=="),
        ("hex:fffefbff", "//77/w"),
        ("hex:fffefbff", "__77_w"),
        ("hex:fffefbff", "fffefbff"),
    ],
)
def test_a_placeholder_of_bytes_that_come_as_text_is_absent(placeholder: str, written: str) -> None:
    """By ``binary.handling.mode`` Oracle's connector makes text of a BLOB, also of one that an UPDATE did not touch."""
    row = {"id": 3, "scan": written, "raw": written, "title": f"{written} "}
    types = {"id": "int32", "scan": "string", "raw": "bytes", "title": "string"}
    event = typed_update(row, types, unavailable_value=placeholder)
    assert (event.partial, event.absent) == (True, ("scan", "raw"))
    assert typed_update(row, types, unavailable_value="another").absent == ()


@given(octets=st.binary(min_size=1, max_size=40))
def test_each_form_of_a_placeholder_is_found(octets: bytes) -> None:
    """The search for some bytes of an image comes first, and leaves no form out."""
    placeholder, layout = f"hex:{octets.hex()}", untyped(("a",), "binary", Encoding.BASE64)
    for form in forms(placeholder).binaries:
        assert unavailable(b'{"a":%b}' % form, layout, placeholder) == ("a",)


def test_a_text_may_be_the_digits_of_a_short_placeholder() -> None:
    """Nothing shows that a column of type ``string`` has bytes, and ``00`` is a likely text."""
    row = {"id": 3, "code": "00", "name": "AA==", "raw": "AA=="}
    types = {"id": "int32", "code": "string", "name": "string", "raw": "bytes"}
    assert typed_update(row, types, unavailable_value="hex:00").absent == ("raw",)


def test_the_same_schema_bytes_give_the_same_shape() -> None:
    """A schema that comes with every message is parsed once."""
    schema = {
        "type": "struct",
        "fields": [{"type": "struct", "field": "after", "fields": [{"type": "int32", "field": "id"}]}],
    }
    first, second = (decode({"schema": schema, "payload": change("c", None, {"id": number})}) for number in (1, 2))
    assert first.shape is second.shape


MYSQL = {"lsn": None, "connector": "mysql", "file": "bin.000009", "pos": 999, "row": 0}


@pytest.mark.parametrize(
    "source", [{}, MYSQL, {"lsn": None, "connector": "db2", "commit_lsn": "00000000:00000000:0009"}]
)
def test_a_resent_event_has_the_same_position_but_for_its_delivery(source: dict[str, Any]) -> None:
    """A connector that was killed sends events again, elsewhere in the dump."""
    first, again = (
        encode_position(decode(change("c", None, {"id": 1}, **source), place=place).position) for place in (1, 5000)
    )
    assert first < again
    assert identity(first) == identity(again)


def test_changes_of_one_log_entry_follow_the_transaction_then_the_dump() -> None:
    """All changes of a transaction that MySQL compressed have one offset, and rows are numbered anew in its parts."""
    changes = [("d", 0, 9, 1), ("c", 5, 1, 7), ("c", 0, 2, 3), ("d", 0, 2, 4), ("u", 3, 2, 5)]
    positions = []
    for op, row, place, total in changes:
        envelope = change(op, {"id": 1}, {"id": 1} if op != "d" else None, **{**MYSQL, "row": row})
        numbered = {**envelope, "transaction": {"id": "t", "total_order": total}}
        positions.append([decode(each, place=place).position for each in (envelope, numbered)])
    by_place, by_number = zip(*positions, strict=True)
    assert max(range(5), key=by_place.__getitem__) == 0
    assert sorted(range(5), key=by_number.__getitem__) == [0, 2, 3, 4, 1]


def test_positions_that_earlier_versions_stored_are_below_those_of_the_same_log_entry() -> None:
    """A lake goes on: a delivery ranks above the number of a row, and the place in the log decides before it."""
    stored = encode_position((1, 9, 999, 3, 1))
    below, same, above = (
        encode_position(decode(change("c", None, {"id": 1}, **{**MYSQL, "pos": pos})).position)
        for pos in (998, 999, 1000)
    )
    assert below < stored < same < above
    assert identity(same) == encode_position((1, 9, 999, 0, 1))


@pytest.mark.parametrize(("pos", "offset"), [(-7900, 4294959396), ("-1", 4294967295), ("12", 12), (None, 0)])
def test_a_binlog_offset_below_zero_has_wrapped(pos: object, offset: int) -> None:
    """The log has 32 bits for it: the change is behind the changes at lower offsets, not before the file's first."""
    event = decode(change("c", None, {"id": 1}, **{**MYSQL, "pos": pos}))
    assert event.position[:3] == (1, 9, offset)


@pytest.mark.parametrize("pos", [-(1 << 32), "x", "", 1 << 96])
def test_what_is_no_binlog_offset_is_set_aside(pos: object) -> None:
    """It is not taken for the beginning of the file."""
    with pytest.raises(MalformedMessageError, match=r"source\.pos"):
        decode(change("c", None, {"id": 1}, **{**MYSQL, "pos": pos}))


ORACLE = {"lsn": None, "connector": "oracle", "scn": "2122184", "commit_scn": "2122190"}
SQLSERVER = {"lsn": None, "connector": "sqlserver", "commit_lsn": "00000031:000004c8:0004"}
DB2 = {"lsn": None, "connector": "db2", "commit_lsn": "00000000:0000150f:0000000000441c2a"}


@pytest.mark.parametrize(
    ("source", "member", "values"),
    [
        ({}, "lsn", ["0/2A5C1F0", -17, "-17", "", "2.5", "٤٢", 1 << 96, "9" * 30]),
        (MYSQL, "file", ["binlog", "mysql-bin.", "000003.log", " "]),
        (MYSQL, "row", ["two", -1, ""]),
        (ORACLE, "scn", ["high", -2, "", "21.5"]),
        (ORACLE, "commit_scn", ["lost", "2122190:1:0400", -1]),
        (ORACLE, "rs_id", ["record 7", "0x0004d2.00003039", "0x0004d2.0000303z.0124"]),
        (ORACLE, "ssn", ["first", -3]),
        (SQLSERVER, "commit_lsn", ["31:4c8:4", "00000031000004c80004", "00000031:000004c8:004", "NULL", "", 49, "x"]),
        (SQLSERVER, "change_lsn", ["31:4c8:3", "0x00000031:000004c8:0003", ""]),
        (SQLSERVER, "event_serial_no", ["one", -1]),
        (DB2, "commit_lsn", ["00000000:0000150f:441c2a", "00000000:0000150f:00000000:00441c2a"]),
        ({"connector": "mongodb", "ord": 1}, "ts_ms", ["noon", -1]),
        ({"connector": "mongodb", "ts_ms": 5}, "ord", ["third", -3]),
        ({"connector": "vitess"}, "ts_ms", ["2031-05-06T07:08:09Z", -1]),
        ({"lsn": None}, "ts_ms", ["noon"]),
    ],
)
def test_a_place_in_the_log_that_cannot_be_read_is_set_aside(
    source: dict[str, Any], member: str, values: list[object]
) -> None:
    """No other place is taken for it: the change would rank among others, by its time say, and win or lose wrongly."""
    for value in values:
        with pytest.raises(MalformedMessageError, match=rf"`source\.{member}` is "):
            decode(change("c", None, {"id": 1}, **(source | {member: value})))


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ({"lsn": "44"}, (1, 44)),
        ({**MYSQL, "file": ""}, (1, 7)),
        ({**MYSQL, "pos": None, "row": None}, (1, 9, 0)),
        ({**ORACLE, "commit_scn": None}, (1, 2122184, 2122184, 0, 0, 0, 0)),
        ({**ORACLE, "commit_scn": "null", "rs_id": " ", "ssn": "3"}, (1, 2122184, 2122184, 0, 0, 0, 3)),
        ({**ORACLE, "rs_id": " 0x0004d2.00003039.0124 "}, (1, 2122190, 2122184, 0x4D2, 0x3039, 0x124, 0)),
        ({**SQLSERVER, "change_lsn": None}, (1, 0x31000004C80004, 0, 0)),
        ({**SQLSERVER, "change_lsn": "00000031:000004C8:0003"}, (1, 0x31000004C80004, 0x31000004C80003, 0)),
        (DB2, (1, 0x150F0000000000441C2A, 0, 0)),
    ],
)
def test_a_part_of_a_place_that_is_missing_is_none(source: dict[str, Any], place: tuple[int, ...]) -> None:
    """Null, and what connectors write for it. Flink CDC writes an empty file: then the time orders the changes."""
    event = decode(change("c", None, {"id": 1}, **({"ts_ms": 7} | source)))
    assert event.position[: len(place)] == place


WITHOUT_PLACE = [
    ({"lsn": None}, "lsn"),
    ({"lsn": 0}, "lsn"),
    ({**MYSQL, "file": "", "ts_ms": 0}, "ts_ms"),
    ({**MYSQL, "file": None, "pos": None, "row": None}, "file"),
    ({**ORACLE, "scn": None}, "scn"),
    ({**ORACLE, "scn": "null"}, "scn"),
    ({**ORACLE, "scn": "0"}, "scn"),
    ({**SQLSERVER, "commit_lsn": None}, "commit_lsn"),
    ({"connector": "mongodb", "ts_ms": None}, "ts_ms"),
    ({"connector": "vitess", "ts_ms": None}, "ts_ms"),
    ({"connector": "vitess", "ts_ms": 0}, "ts_ms"),
]


@pytest.mark.parametrize(("source", "member"), WITHOUT_PLACE)
def test_a_change_without_a_place_among_the_others_is_set_aside(source: dict[str, Any], member: str) -> None:
    """By its time it would win over all changes with a place, and without a time it would lose to all."""
    for op in "cudt":
        images = {"before": {"id": 1}} if op == "d" else {} if op == "t" else {"after": {"id": 1}}
        with pytest.raises(MalformedMessageError, match=rf"`source\.{member}`"):
            decode(change(op, **images, **({"ts_ms": 7} | source)))
    assert decode(change("r", None, {"id": 1}, snapshot="incremental", **source)).position[0] == 0


@pytest.mark.parametrize("time", [None, 0])
def test_a_change_of_lindorm_without_a_time_is_set_aside(time: int | None) -> None:
    """The time is all that orders its changes: a delete without one would lose to the row that it deletes."""
    envelope = {"op": "d", "before": ANNE, "after": None, "ts_ms": 9, "source": {**LINDORM, "ts_ms": time}}
    with pytest.raises(MalformedMessageError, match=r"`source\.ts_ms`"):
        decode(envelope, dialect="lindorm")


def test_a_statement_without_a_place_is_set_aside() -> None:
    """It would apply to rows from before it, or to none."""
    block = {"connector": "mysql", "db": "shop", "table": "orders", "file": None, "pos": None, "ts_ms": 7}
    statement = {"source": block, "databaseName": "shop", "ddl": "ALTER TABLE orders DROP COLUMN a"}
    with pytest.raises(MalformedMessageError, match=r"`source\.file`"):
        decode(statement)
    described = json.dumps(statement | {"ddl": None, "tableChanges": []}).encode()
    (event,) = debezium_json.decode(Message(value=described, file="f", place=1), debezium_json.Options())
    assert isinstance(event, ControlEvent)


def test_a_source_without_connector_and_time_is_ordered_by_the_dump() -> None:
    """Other tools write envelopes without a place, all of them."""
    envelope = {"op": "c", "before": None, "after": {"id": 1}, "source": {"db": "shop", "table": "orders"}}
    assert decode(envelope, place=3).position == (1, 0, 0, 0, "f", 3)


def test_the_place_of_a_load_that_cannot_be_read_is_set_aside() -> None:
    """Its rows would rank below every change, and replace nothing."""
    with pytest.raises(MalformedMessageError, match=r"`source\.lsn` is "):
        decode(change("r", None, {"id": 1}, snapshot="true", lsn="0/2A5C1F0"))
    assert decode(change("r", None, {"id": 1}, snapshot="incremental", lsn=None)).position[0] == 0


@pytest.mark.parametrize("number", ["second", -2, "", "1.0"])
def test_a_number_in_a_transaction_that_cannot_be_read_is_set_aside(number: object) -> None:
    """It orders the changes at one place of the log, and null would rank the change before all of them."""
    numbered = change("c", None, {"id": 1}) | {"transaction": {"id": "77:8", "total_order": number}}
    with pytest.raises(MalformedMessageError, match=r"`transaction\.total_order` is "):
        decode(numbered)


@pytest.mark.parametrize(("count", "of_table", "member"), [("many", 2, "event_count"), (2, -1, "data_collections")])
def test_an_end_with_a_count_that_cannot_be_read_is_set_aside(count: object, of_table: object, member: str) -> None:
    """Its transaction would be taken for whole before all its events have landed."""
    with pytest.raises(MalformedMessageError, match=f"`{member}.* is "):
        _end(count, {"public.a": of_table})


def test_the_delete_of_a_key_change_ranks_before_its_create() -> None:
    """Both halves have the position of the one UPDATE at the source."""
    delete, create = decode(change("d", {"id": 1})), decode(change("c", None, {"id": 2}))
    assert delete.position < create.position


LIFE: list[tuple[str, Any, Any]] = [
    ("c", None, {"id": 1}), ("u", {"id": 1}, {"id": 1, "a": 2}), ("d", {"id": 1, "a": 2}, None), ("c", None, {"id": 1}),
]  # fmt: skip


def test_changes_of_oracle_that_share_an_scn_are_in_the_order_of_their_delivery() -> None:
    """Without rs_id, ssn and total_order, the log says nothing else of their order."""
    messages = [change(code, before, after, **ORACLE) for code, before, after in LIFE]
    events = [decode(message, place=place) for place, message in enumerate(messages, 9)]
    positions = [encode_position(event.position) for event in events]
    assert positions == sorted(positions)
    assert [event.position[-2:] for event in events] == [("", 1), ("", 1), ("", 0), ("", 1)]


@pytest.mark.parametrize("place", [{"rs_id": "0x0004d2.00003039.0124"}, {"ssn": 4}, {"total": 3}])
def test_the_delete_of_a_key_change_of_oracle_ranks_before_its_create(place: dict[str, Any]) -> None:
    """Where the log tells its changes apart, only the two halves of one UPDATE share a place."""
    block = {"transaction": {"id": "5.3.8", "total_order": place["total"]} if "total" in place else None}
    source = {**ORACLE, **{name: value for name, value in place.items() if name != "total"}}
    create = change("c", None, {"id": 2}, **source) | block
    delete = change("d", {"id": 1}, **source) | block
    assert decode(delete).position[:9] < decode(create).position[:9]


@pytest.mark.parametrize(("code", "rank"), [("d", 0), ("c", 1)])
def test_a_stored_position_of_oracle_stays_valid(code: str, rank: int) -> None:
    """Its rank stood before the delivery: the identity is the same, and at one place the new position is higher."""
    before, after = ({"id": 1}, None) if code == "d" else (None, {"id": 1})
    event = decode(change(code, before, after, **ORACLE))
    place, delivery = event.position[:8], event.position[9:-2]
    for each in (0, 1):
        stored = encode_position((*place, each, "", *delivery, ""))
        assert stored < encode_position(event.position)
        assert (identity(stored) == identity(encode_position(event.position))) is (each == rank)
    above = encode_position((*place[:2], place[2] + 1, *place[3:], 0, "", *delivery, ""))
    assert above > encode_position(event.position)


def test_binlog_positions_compare_as_numbers() -> None:
    """File 100000 follows file 999999's predecessor, and position 1000 follows 999."""
    files = ["bin.000999", "bin.001000", "bin.999999", "bin.1000000"]
    places = [(file, pos) for file in files for pos in (999, 1000)]
    events = [
        decode(change("c", None, {"id": 1}, connector="mysql", file=file, pos=pos, row=0)) for file, pos in places
    ]
    positions = [event.position for event in events]
    assert positions == sorted(positions)


def test_a_month_in_the_name_of_the_log_comes_before_the_number_of_its_file() -> None:
    """The numbers begin anew with each base name; a base name without a month is no part of the order."""
    files = ["db1-bin.000900", "log-202511.000120", "log-202512.000001", "log-202601.000003", "log-20260131.000001"]
    events = [decode(change("c", None, {"id": 1}, connector="mysql", file=file, pos=4)) for file in files]
    assert [event.position for event in events] == sorted(event.position for event in events)
    others = ("db2-2012.000003", "x-202613.000003")
    same = [decode(change("c", None, {"id": 1}, connector="mysql", file=file, pos=4)) for file in others]
    assert {event.position[1] for event in same} == {3}


def test_a_delete_without_row_takes_the_record_key() -> None:
    """With REPLICA IDENTITY NOTHING only the key says which row went."""
    event = decode(
        change("d"), key=b'{"schema":{"type":"struct","fields":[{"type":"int64","field":"id"}]},"payload":{"id":7}}'
    )
    assert (event.before, event.key) == (b'{"id":7}', ("id",))
    assert event.shape is not None
    assert event.shape.columns == (Column(name="id", type="long"),)


def test_a_delete_without_row_and_key_is_set_aside() -> None:
    """Nobody can know which row went."""
    with pytest.raises(MissingKeyError):
        decode(change("d"))


def test_a_key_with_a_broken_struct_is_set_aside() -> None:
    """A wrong key would hit a wrong row."""
    with pytest.raises(MalformedMessageError):
        decode(change("d"), key=b'{"id":1,"id":2}')


def test_an_unknown_operation_is_named() -> None:
    """An operation that nobody knows never becomes an INSERT."""
    with pytest.raises(UnknownOperationError, match="'x'; Debezium has c, u, d, r, t, m"):
        decode(change("x", None, {"id": 1}))


@pytest.mark.parametrize("op", ["c", "u", "r"])
def test_a_row_without_columns_is_set_aside(op: str) -> None:
    """A table without a key would get a row of nulls."""
    with pytest.raises(MalformedMessageError, match="`after` is missing, null or empty"):
        decode(change(op, None, {}))


def test_a_delete_of_a_row_without_columns_needs_the_record_key() -> None:
    """As one without a row: the key says which row it is."""
    with pytest.raises(MissingKeyError):
        decode(change("d", {}))
    assert decode(change("d", {}), key=b'{"id":64}').before == b'{"id":64}'


@pytest.mark.parametrize("op", ["m", "t"])
@pytest.mark.parametrize("images", [{"before": {"id": 63}}, {"after": {"id": 63}}, {"before": {"id": 63}, "after": {}}])
@pytest.mark.parametrize("more", [{}, {"region": "eu"}])
def test_an_operation_without_a_row_that_has_one_is_set_aside(op: str, images: Any, more: dict[str, Any]) -> None:
    """A row under ``m`` would be counted as control and lost, and one under ``t`` would empty its table."""
    with pytest.raises(MalformedMessageError, match=f"`op` is {op}, which has no row"):
        decode(change(op, **images) | more)
    message = Message(value=json.dumps(change(op) | more).encode(), file="f", place=1)
    (event,) = debezium_json.decode(message, debezium_json.Options())
    assert isinstance(event, ControlEvent if op == "m" else ChangeEvent)


def test_a_message_without_table_needs_the_option() -> None:
    """``source`` names the table, never the topic; the option names it for messages that do not."""
    bare = change("c", None, {"id": 1}, table=None)
    with pytest.raises(MissingTableError, match="option `table`"):
        decode(bare)
    assert str(decode(bare, table="shop.public.orders").table) == "shop.public.orders"


def test_tables_of_one_name_in_two_databases_of_spanner_are_two_tables() -> None:
    """``database_id`` is the database where ``db`` is not there."""
    blocks = [
        {"database_id": "a"},
        {"database_id": "b"},
        {"database_id": "a", "db": ""},
        {"database_id": "a", "db": "a"},
        {"database_id": 5},
        {"database_id": 5, "db": "a"},
        {"database_id": None, "db": "a"},
    ]
    events = [
        decode({"op": "c", "after": {"id": 1}, "source": {"connector": "spanner", "ts_ms": 1, "table": "t", **block}})
        for block in blocks
    ]
    assert [str(event.table) for event in events] == ["a.t", "b.t", "a.t", "a.t", "5.t", "a.t", "a.t"]


def test_an_image_may_be_written_with_blanks_and_in_another_order() -> None:
    """Only the columns count, and the shape follows the image."""
    events = [decode(b'{"op":"c","source":{"table":"blanks"},"after":%b}' % image)
              for image in (b'{"a":1,"b":2}', b'{ "a" : 1 , "b" : 2 }', b'{"b":2,"a":1}')]  # fmt: skip
    shapes = [tuple(column.name for column in event.shape.columns) for event in events if event.shape]
    assert shapes == [("a", "b"), ("a", "b"), ("b", "a")]


def test_types_of_the_page() -> None:
    """The page's table has every schema type and every logical type, with what the code makes of such a column."""
    documented = {
        name: (type_, encoding)
        for names, type_, encoding in table("debezium_json", "schema type or logical name")
        for name in listed(names)
    }
    assert documented.pop("Decimal") == ("decimal(p, s)", "unscaled_base64")
    known = _connect.PHYSICAL | {name.rpartition(".")[2]: made for name, made in _connect.LOGICAL.items()}
    assert documented == {name: (type_, str(encoding)) for name, (type_, encoding) in known.items()}


def test_names_of_two_packages_mean_the_same() -> None:
    """Date, Time and Timestamp are in Debezium's package and in Kafka Connect's."""
    for name in ("Date", "Time", "Timestamp"):
        debezium, connect = f"io.debezium.time.{name}", f"org.apache.kafka.connect.data.{name}"
        assert _connect.LOGICAL[debezium] == _connect.LOGICAL[connect]


def mongodb(op: str, after: Any = None, before: Any = None, key: bytes | None = None, **source: Any) -> ChangeEvent:
    """Decode a change of a document."""
    block = {"connector": "mongodb", "db": "inventory", "collection": "customers", "ts_ms": 5, "ord": 1} | source
    return decode({"op": op, "after": after, "before": before, "source": block}, key=key)


def test_a_document_is_a_row_of_its_id_and_its_text() -> None:
    """No digit of a document changes, and the next one may have other fields."""
    document = '{"_id": {"$oid": "596e275826f08b2730779e1f"}, "n": 1.10}'
    event = mongodb("c", document)
    assert (event.operation, event.key) == (Operation.INSERT, ("_id",))
    assert str(event.table) == "inventory.customers"
    assert json.loads(event.after or b"") == {"_id": '{"$oid":"596e275826f08b2730779e1f"}', "document": document}


@pytest.mark.parametrize(
    ("key", "document"),
    [
        ('"1004"', '{"$numberLong": "1004"}'), ('"1004"', "1004"), ('"\\"a\\""', '"a"'),
        ('"{\\"$oid\\" : \\"596e\\"}"', '{"$oid":"596e"}'), ('"{\\"a\\": [1, 2]}"', '{"a":[1,2]}'),
    ],
)  # fmt: skip
def test_the_id_of_a_delete_is_that_of_its_document(key: str, document: str) -> None:
    """The record key writes an id with other blanks, and integers without their wrapping."""
    deleted = mongodb("d", key=b'{"id":%b}' % key.encode())
    written = mongodb("c", f'{{"_id":{document}}}')
    assert json.loads(deleted.before or b"")["_id"] == json.loads(written.after or b"")["_id"]


def test_an_id_of_text_is_not_one_of_digits() -> None:
    """A document may have the id "1004" beside one with 1004."""
    texts = [json.loads(mongodb("c", f'{{"_id":{id_}}}').after or b"")["_id"] for id_ in ('"1004"', "1004")]
    assert texts == ['"1004"', "1004"]


@pytest.mark.parametrize(
    ("key", "document"),
    [
        (b'{"id":"1004"}', '{"_id":"1004"}'),
        (b'{"id":"64f0c1"}', '{"_id":"64f0c1"}'),
        (b'{"id":"true"}', '{"_id": "true"}'),
    ],
)
def test_a_key_with_the_bare_text_of_an_id_is_set_aside(key: bytes, document: str) -> None:
    """It may be another document's, or nobody knows whether it is of a text or an object id; the error says why."""
    for op, before in (("c", None), ("u", document), ("r", None)):
        with pytest.raises(MalformedMessageError, match="a transform or a converter of the key changed it"):
            mongodb(op, document, before, key=key)
    with pytest.raises(MalformedMessageError, match="a transform or a converter of the key changed it"):
        mongodb("d", None, document, key=key)


def test_changes_of_documents_stand_in_the_order_of_the_oplog() -> None:
    """Time, then ord as a number; an initial load ranks before the changes that began with it."""
    changes = [("r", 5, 9, {"snapshot": "true"}), ("c", 5, 9, {}), ("c", 5, 10, {}), ("c", 6, 1, {})]
    positions = [mongodb(op, '{"_id":1}', ts_ms=ts_ms, ord=ord_, **more).position for op, ts_ms, ord_, more in changes]
    assert positions == sorted(positions)


def test_a_deleted_document_that_nothing_identifies_is_set_aside() -> None:
    """Without pre-image and record key, nobody can know which went."""
    with pytest.raises(MissingKeyError):
        mongodb("d")


def test_an_update_that_tells_no_document_is_set_aside() -> None:
    """A connector without full updates sends what changed in a form of its own."""
    with pytest.raises(MalformedMessageError, match="change_streams_update_full"):
        mongodb("u")


@pytest.mark.parametrize("name", ["Tsvector", "HalfVector", "SparseDoubleVector", "TiDBVectorFloat32", "geometry.Line"])
def test_names_of_types_as_connectors_spell_them(name: str) -> None:
    """They are text or structs, kept as such."""
    column = {"type": "string", "name": f"io.debezium.data.{name}", "field": "c"}
    schema = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": [column]}]}
    event = decode({"schema": schema, "payload": change("c", None, {"c": "x"})})
    assert event.shape is not None
    assert event.shape.columns == (Column(name="c", type="string"),)


@pytest.mark.parametrize(
    ("connector", "earlier", "later"),
    [
        ("mysql", {"file": "bin.000009", "pos": 9, "row": 0}, {"file": "bin.000010", "pos": 4, "row": 0}),
        ("mariadb", {"file": "bin.000009", "pos": 999, "row": 1}, {"file": "bin.000009", "pos": 1000, "row": 0}),
        ("postgresql", {"lsn": 999}, {"lsn": 1000}),
        ("oracle", {"scn": "999", "commit_scn": "999"}, {"scn": "998", "commit_scn": "1000"}),
        ("sqlserver", {"commit_lsn": "00000025:00000d98:00a2"}, {"commit_lsn": "00000025:00000d98:00a3"}),
        ("db2", {"commit_lsn": "00000000:00000000:0009"}, {"commit_lsn": "00000000:00000000:000a"}),
        ("mongodb", {"ts_ms": 5, "ord": 9}, {"ts_ms": 5, "ord": 10}),
        ("vitess", {"ts_ms": 999}, {"ts_ms": 1000}),
    ],
)
def test_positions_of_every_connector(connector: str, earlier: dict[str, Any], later: dict[str, Any]) -> None:
    """Each connector's own sequence decides, as numbers, and not the place in the dump."""
    origin = {"lsn": None, "connector": connector}
    one = decode(change("c", None, {"id": 1}, **(origin | earlier)), place=2)
    other = decode(change("c", None, {"id": 1}, **(origin | later)), place=1)
    assert one.position < other.position


FLATTENED = {"id": 1004, "status": "new", "email": "annek@noanswer.org"}


def test_a_flattened_row_without_added_fields_needs_the_option() -> None:
    """Nothing in it says what it is; by option it is an UPDATE of the whole row, also with columns like a marker's."""
    with pytest.raises((MalformedMessageError, UnknownOperationError)):
        decode(FLATTENED, table="shop.customers")
    event = decode(FLATTENED, table="shop.customers", flattened=True)
    assert (event.operation, event.partial, str(event.table)) == (Operation.UPDATE, False, "shop.customers")
    assert json.loads(event.after or b"") == FLATTENED


@pytest.mark.parametrize("value", [b"null", b'{"schema":null,"payload":null}'])
def test_a_tombstone_of_flattened_rows_is_a_delete(value: bytes) -> None:
    """Flattening drops deletes by default, and the record without value is all that is left of one."""
    event = decode(value, key=b'{"id":1004}', table="shop.customers", flattened=True)
    assert (event.operation, event.before, event.key) == (Operation.DELETE, b'{"id":1004}', ("id",))
    options = debezium_json.Options(table="shop.customers")
    (control,) = debezium_json.decode(Message(value=value, file="f", place=1, key=b'{"id":1004}'), options)
    assert not isinstance(control, ChangeEvent)


OF_LOGS = [
    {"connector": "oracle", "scn": "1"}, {"connector": "mysql", "file": "log.000007", "pos": 9},
    {"connector": "mariadb", "file": "log.000007", "pos": 9}, {"connector": "postgresql", "lsn": 9},
    {"connector": "vitess", "ts_ms": 7},
]  # fmt: skip


@pytest.mark.parametrize(("code", "after"), [("u", {"id": 1, "a": "new", "b": "x"}), ("d", None)])
@pytest.mark.parametrize("source", OF_LOGS)
def test_an_old_image_is_without_the_placeholder(
    code: str, after: dict[str, Any] | None, source: dict[str, Any]
) -> None:
    """Oracle's log lacks the old value of a LOB, and MySQL's with NOBLOB: the placeholder was no value of the row."""
    event = decode(change(code, {"id": 1, "a": PLACEHOLDER, "b": "x"}, after, **source))
    assert (event.partial, event.absent) == (False, ())
    assert json.loads(event.before or b"") == {"id": 1, "b": "x"}


@pytest.mark.parametrize("connector", ["oracle", "mysql", "mariadb", "postgresql", None])
def test_a_flattened_row_that_is_deleted_is_without_the_placeholder(connector: str | None) -> None:
    """It is the row before the delete, as `before` of an envelope."""
    row = {"id": 1, "a": PLACEHOLDER, "b": "x", "__op": "d", "__deleted": "true", "__connector": connector}
    event = decode(row, key=b'{"id":1}', table="shop.customers")
    assert (event.operation, event.partial, event.absent, event.key) == (Operation.DELETE, False, (), ("id",))
    assert {name: value for name, value in json.loads(event.before or b"").items() if name[:2] != "__"} == {
        "id": 1, "b": "x",
    }  # fmt: skip
    whole = decode(row, key=b'{"id":1}', table="shop.customers", unavailable_value="another")
    assert json.loads(whole.before or b"")["a"] == PLACEHOLDER


def test_the_placeholder_may_be_told_in_hexadecimal() -> None:
    """The connector's setting has a prefix for it."""
    update = change("u", None, {"id": 1, "a": "gone", "b": "hex:676f6e65"})
    assert decode(update, unavailable_value="hex:676f6e65").absent == ("a",)


@pytest.mark.parametrize(
    ("written", "scale", "read"),
    [
        ("EtaH", 4, "123.4567"), ("AVo=", 0, "346"), ("FJqkSQ==", 1, "34567892.1"), ("AQ==", 0, "1"),
        ("AP//////////", 0, "18446744073709551615"), ("BNI=", 0, "1234"), ("AN3h", 2, "568.01"),
        ("W6A=", 6, "0.023456"), ("ALxhTg==", 2, "123456.78"),
        ("LA//uAAAAAAAAAAAAAAAAA==", 0, "58569102859845154622791691858438258688"),
        ("/w==", 38, "-0.00000000000000000000000000000000000001"),
    ],
)  # fmt: skip
def test_decimals(written: str, scale: int, read: str) -> None:
    """Values seen in the wild, with the numbers that their databases hold."""
    field = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": str(scale)}}
    column = _connect.columns([_connect.ConnectSchema(**field, field="c")])[0]
    assert read_value(f'"{written}"'.encode(), column) == read


@pytest.mark.parametrize(
    ("parameters", "declared", "of_table"),
    [
        ({"scale": "2", "connect.decimal.precision": "10"}, "decimal(10, 2)", "decimal(10, 2)"),
        ({"scale": "2"}, "decimal(38, 2)", "decimal(38, 2)"),
        ({"scale": "-2", "connect.decimal.precision": "20"}, "decimal(20, -2)", "decimal(22, 0)"),
        ({"scale": "-2"}, "decimal(36, -2)", "decimal(38, 0)"),
        ({"scale": "-84", "connect.decimal.precision": "38"}, "decimal(38, -84)", "string"),
        ({"scale": "5", "connect.decimal.precision": "3"}, "decimal(5, 5)", "decimal(5, 5)"),
        ({"scale": "127", "connect.decimal.precision": "38"}, "decimal(127, 127)", "string"),
        ({"scale": "30", "connect.decimal.precision": "65"}, "decimal(65, 30)", "string"),
        ({"scale": "0", "connect.decimal.precision": "1000"}, "decimal(1000, 0)", "string"),
    ],
)
def test_decimals_of_any_precision_and_scale(parameters: dict[str, str], declared: str, of_table: str) -> None:
    """The shape keeps the scale of the bytes; the table gets a type that loses no value."""
    field = _connect.ConnectSchema(type="bytes", name=_connect.DECIMAL, parameters=parameters, field="c")
    column = _connect.column(field)
    assert (column.type, table_type(declared)) == (declared, of_table)


def test_the_end_of_a_transaction_counts_by_collection() -> None:
    """Logical messages count as no rows, by any of their names; of two totals the larger is believed."""
    java = "io.debezium.connector.postgresql.LogicalDecodingMessageMonitor$LogicalDecodingMessageId@"
    collections = {"public.a": 2, f"{java}1f3a": 1, f"{java}77": 1, "LOGICAL_DECODING_MESSAGE": 1, "public.message": 1}
    for event_count, number in ((6, 6), (5, 6), (None, 6), ("9", 9)):
        event = _end(event_count, collections)
        assert event.counts == {"public.a": 2, "": 3, "public.message": 1}
        assert event.transaction is not None
        assert event.transaction.number == number
    assert _end(2, {}).counts is None
    assert _end(2, {"public.a": None}).counts is None


def _end(event_count: Any, collections: dict[str, Any]) -> ControlEvent:
    counts = [{"data_collection": name, "event_count": count} for name, count in collections.items()]
    message = {"status": "END", "id": "5:1", "event_count": event_count, "data_collections": counts, "ts_ms": 1}
    (event,) = debezium_json.decode(
        Message(value=json.dumps(message).encode(), file="f", place=1), debezium_json.Options()
    )
    assert isinstance(event, ControlEvent)
    return event


@pytest.mark.parametrize(
    ("op", "source", "expected"),
    [
        ("c", {"sequence": '["24023119","24023128"]'}, ("", 24023119)),
        ("d", {"sequence": '["24023119","24023128"]', "name": "shop", "lsn": "24023128"}, ("shop", 24023119)),
        ("u", {"sequence": " [ 24023119 , 24023128 ]", "name": 7}, ("", 24023119)),
        ("c", {"sequence": '[null,"24023128"]'}, None),
        ("c", {"sequence": '["0","24023128"]'}, None),
        ("c", {"sequence": f'["{10**18}","24023128"]'}, None),
        ("c", {"sequence": '["24023119","24023128"]', "lsn": 10**18}, None),
        ("c", {"sequence": ["24023119", "24023128"]}, None),
        ("c", {"sequence": '["1:4::0:0","1:5::0:0"]'}, None),
        ("c", {"sequence": None}, None),
        ("c", {}, None),
        ("c", {"sequence": '["24023119","24023128"]', "connector": "oracle", "scn": "7"}, None),
        ("r", {"sequence": '["24023119","24023128"]', "snapshot": "true"}, None),
        ("c", {"sequence": '["24023119","24023128"]', "snapshot": "last"}, None),
    ],
)
def test_the_last_commit_before_a_change_of_postgresql(op: str, source: dict[str, Any], expected: object) -> None:
    """What is no sequence of PostgreSQL's connector gives no commit, and sets no message aside."""
    image = {"before": {"id": 1}} if op == "d" else {"after": {"id": 1}}
    assert decode(change(op, **image, **source), key=b'{"id": 1}').after_commit == expected


def test_the_last_commit_before_a_flattened_row() -> None:
    """Where the transform adds it."""
    row = {"id": 1, "__op": "u", "__table": "t", "__connector": "postgresql", "__lsn": 9, "__source_name": "shop"}
    assert decode(row | {"__source_sequence": '["7","9"]'}).after_commit == ("shop", 7)
    event = decode({**row, "__name": "a column", "__sequence": '["7","9"]'})
    assert event.after_commit == ("shop", 7)
    assert event.shape is not None
    assert [column.name for column in event.shape.columns] == ["id", "__name"]
