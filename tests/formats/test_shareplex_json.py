"""What is peculiar to SharePlex JSON; the golden folders hold the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.doc_tables import table
from tidemark.errors import IncompleteMessageError, MalformedMessageError, MissingTableError, UnknownOperationError
from tidemark.events import (
    ChangeEvent,
    Column,
    ControlEvent,
    Encoding,
    Message,
    Operation,
    SchemaChange,
    TableId,
    Transaction,
)
from tidemark.formats import shareplex_json
from tidemark.positions import encode_position
from tidemark.values.plain import read_value

DOCUMENT_INSERT = b"""{
    "meta": {
        "time": "2017-06-16T14:24:34",
        "userid": 84,
        "op": "ins",
        "scn": "14589063118712",
        "rowid": "AAATGpAAIAAItcIAAA",
        "trans": "7.0.411499",
        "seq": 1,
        "size": 11,
        "table": "CL_BIZ1.MIO_LOG",
        "idx": "1/11",
        "posttime": "2017-06-16T14:33:52"
    },
    "data": {
        "MIO_LOG_ID": "32539737"
     }
}"""

DOCUMENT_UPDATE = b"""{
    "meta": {
        "time": "2017-06-16T15:38:13",
        "userid": 84,
        "op": "upd",
        "table": "CL_BIZ1.MIO_LOG"
    },
    "data": {
        "CNTR_NO": "1171201606"
    },
    "key": {
        "MIO_LOG_ID": "32537893",
        "PLNMIO_REC_ID": "31557806",
        "POL_CODE": null,
        "CNTR_TYPE": null,
        "CNTR_NO": "1171201606syui26"
    }
}"""
"""Without the line ``...``, which stands for members left out."""

DOCUMENT_DELETE = b"""{
    "meta": {
        "time": "2017-06-16T15:51:35",
        "userid": 84,
        "op": "del",
     },
    "data": {
        "MIO_LOG_ID": "32539739",
        "PLNMIO_REC_ID": "31557806",
        "POL_CODE": null,
        "CNTR_TYPE": null,
        "CG_NO": null
     }
}"""

ROW = {"ID": "1", "STATUS": "new", "NOTE": None}


def decode(value: bytes | dict[str, Any], place: int = 7, **options: Any) -> Any:
    """Decode a message to its one event."""
    raw = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
    message = Message(value=raw, file="f", place=place)
    (event,) = shareplex_json.decode(message, shareplex_json.Options(**options))
    return event


def change(op: str, data: Any = None, key: Any = None, **meta: Any) -> dict[str, Any]:
    """Return a message of ``SHOP.ORDERS``."""
    block = {"op": op, "table": "SHOP.ORDERS", "scn": "100", "seq": 1, "size": 2, "trans": "1.2.3"} | meta
    return {"meta": block, "data": data, "key": key}


def columns(event: ChangeEvent) -> tuple[Column, ...]:
    """Return the columns of an event's shape."""
    assert event.shape is not None
    return event.shape.columns


def test_document_insert() -> None:
    """``data`` is the row; scn and seq are the position, trans, seq and size the transaction, times are UTC."""
    event = decode(DOCUMENT_INSERT)
    assert event.table == TableId(None, "CL_BIZ1", "MIO_LOG")
    assert (event.operation, event.before) == (Operation.INSERT, None)
    assert json.loads(event.after) == {"MIO_LOG_ID": "32539737"}
    assert event.position == (1, 14589063118712, 1)
    assert event.transaction == Transaction(id="7.0.411499", number=1, last=False)
    assert (event.committed_at, event.captured_at) == (1497623074000000, 1497623632000000)
    assert (event.key, event.partial) == (None, False)


def test_document_update() -> None:
    """``key`` is the row before, ``data`` what changed in it."""
    event = decode(DOCUMENT_UPDATE)
    assert (event.operation, event.partial) == (Operation.UPDATE, True)
    before = json.loads(event.before)
    assert before["CNTR_NO"] == "1171201606syui26"
    assert json.loads(event.after) == before | {"CNTR_NO": "1171201606"}
    assert [column.name for column in columns(event)] == list(before)


def test_document_delete_has_no_table_and_is_no_json() -> None:
    """As printed, with its comma too many, the message is set aside; without it, the option names the table."""
    with pytest.raises(MalformedMessageError):
        decode(DOCUMENT_DELETE)
    sound = DOCUMENT_DELETE.replace(b'"del",', b'"del"')
    with pytest.raises(MissingTableError, match="option `table`"):
        decode(sound)
    event = decode(sound, table="CL_BIZ1.MIO_LOG")
    assert (event.operation, event.table) == (Operation.DELETE, TableId(None, "CL_BIZ1", "MIO_LOG"))
    assert json.loads(event.before)["MIO_LOG_ID"] == "32539739"
    assert event.after is None


@pytest.mark.parametrize(
    ("text", "schema", "name"),
    [
        ('SHOP."lines"', "SHOP", "lines"), ('"shop".LINES', "shop", "LINES"), ('"Shop"."My.Lines"', "Shop", "My.Lines"),
        ('"My.Lines"', None, "My.Lines"), ('A."B"."C"', "A", "B.C"), ("A.B.C", "A", "B.C"), ("LINES", None, "LINES"),
        ('SHOP."', "SHOP", '"'), ('SHOP.a"b"', "SHOP", 'a"b"'),
    ],
)  # fmt: skip
def test_each_part_of_a_name_may_be_quoted(text: str, schema: str | None, name: str) -> None:
    """Quotation marks are no part of a name. A text with others is kept as it came."""
    assert decode(change("ins", ROW, table=text)).table == TableId(None, schema, name)
    assert decode(change("ins", ROW, table=None), table=text).table == TableId(None, schema, name)


def test_the_configured_table_is_the_one_that_messages_name() -> None:
    """A delete without table must hit the rows that inserts with it made."""
    assert decode(change("del", ROW, table=None), table="SHOP.ORDERS").table == decode(change("ins", ROW)).table


@pytest.mark.parametrize(
    ("op", "operation"),
    [
        ("ins", Operation.INSERT), ("INSERT", Operation.INSERT), ("Ins", Operation.INSERT),
        ("upd", Operation.UPDATE), ("UPDATE", Operation.UPDATE), ("del", Operation.DELETE),
        ("delete", Operation.DELETE), ("TRUNCATE", Operation.TRUNCATE), ("Truncate", Operation.TRUNCATE),
        ("UPDATE BEFORE", Operation.UPDATE), ("UPDATE_AFTER", Operation.UPDATE), ("update  after", Operation.UPDATE),
    ],
)  # fmt: skip
def test_operations_in_every_spelling(op: str, operation: Operation) -> None:
    """The document has short names in its examples and long ones in its table."""
    assert decode(change(op, None if operation is Operation.TRUNCATE else ROW)).operation is operation


@pytest.mark.parametrize("op", ["", None, "insertx", "ddl", "commit", "update during", "i"])
def test_an_unknown_operation_is_named_with_what_is_allowed(op: str | None) -> None:
    """An operation that nobody knows never becomes an INSERT."""
    with pytest.raises(UnknownOperationError, match=r"`op` is .*SharePlex has, in any case, INS, UPD, DEL, INSERT"):
        decode({"meta": {"op": op, "table": "A.B"}, "data": ROW})


def test_absent_is_unchanged_and_null_is_null() -> None:
    """A column that ``data`` of an update lacks keeps its value, one that is null there loses it."""
    event = decode(change("upd", {"STATUS": None}, {"ID": "1", "STATUS": "new", "TOTAL": "1.10"}))
    assert json.loads(event.after) == {"ID": "1", "STATUS": None, "TOTAL": "1.10"}


def test_values_of_the_overlay_are_the_bytes_of_the_message() -> None:
    """``after`` of an update is put together from the message, and no value is written anew."""
    event = decode(
        b'{"meta":{"op":"upd","table":"T"},"data":{"N":1.10},"key":{"N":1.0,"B":12345678901234567890.1230,"T":"\\u0061"}}'
    )
    assert event.after == b'{"N":1.10,"B":12345678901234567890.1230,"T":"\\u0061"}'


def test_an_update_is_partial_unless_the_source_logs_whole_rows() -> None:
    """SharePlex sends key columns only in ``key`` of a table with a key: the rest of the row must stay as it is."""
    update = change("upd", {"YEAR_END": 2015}, {"BAND_NAME": "Rush"})
    assert decode(update).partial
    assert not decode(update, row_image="full").partial


def test_the_halves_of_an_update_differ_in_the_last_part_of_their_position_only() -> None:
    """Compaction puts halves together by that; the place in the dump has no part in it."""
    before = decode(change("UPDATE BEFORE", ROW), place=9)
    after = decode(change("UPDATE AFTER", {**ROW, "ID": "2"}), place=3)
    assert (before.position, after.position) == ((1, 100, 1, 0), (1, 100, 1, 1))
    assert (before.after, after.before) == (None, None)
    assert (json.loads(before.before)["ID"], json.loads(after.after)["ID"]) == ("1", "2")


def test_only_the_new_half_of_an_update_ends_a_transaction() -> None:
    """The last operation of a transaction is two messages, and the transaction ends with the second."""
    halves = [decode(change(op, ROW, seq=2)).transaction for op in ("UPDATE BEFORE", "UPDATE AFTER")]
    assert [half.last for half in halves] == [False, True]


@pytest.mark.parametrize("missing", ["scn", "seq"])
def test_halves_that_cannot_be_put_together_are_set_aside(missing: str) -> None:
    """An old row and a new row of nobody knows which update are no update."""
    with pytest.raises(MalformedMessageError, match="which halves"):
        decode(change("UPDATE AFTER", ROW, **{missing: None}))


def test_positions_compare_as_numbers() -> None:
    """SCN 1000 follows 999, seq 10 follows 9, and beyond 64 bits it goes on."""
    places = [("999", 9), ("999", 10), ("1000", 1), (str(2**63), 1), (str(10**30), 1)]
    positions = [decode(change("ins", ROW, scn=scn, seq=seq, size=12)).position for scn, seq in places]
    texts = [encode_position(position) for position in positions]
    assert positions == sorted(positions)
    assert texts == sorted(texts)


@pytest.mark.parametrize(
    "meta",
    [
        {"seq": 3, "size": 2},
        {"seq": 3, "size": 4, "idx": "1/2"},
        {"seq": 1, "size": 4, "idx": "1/2"},
        {"seq": None, "size": None, "idx": "3/2"},
        {"seq": 0},
        {"seq": None, "size": None, "idx": "0/2"},
        {"seq": "3", "size": None, "idx": "1/2"},
    ],
)
def test_numbers_of_a_transaction_that_contradict_each_other_are_set_aside(meta: dict[str, Any]) -> None:
    """The transaction would wait for ever, or be published in part."""
    with pytest.raises(MalformedMessageError, match="which is"):
        decode(change("ins", ROW, **meta))


@pytest.mark.parametrize(("op", "data", "key"), [
    ("del", {"ID": "2"}, {"ID": "1", "NOTE": "x"}), ("UPDATE BEFORE", {"ID": "2"}, {"ID": "1"}),
    ("upd", {"note": "y"}, {"ID": "1", "NOTE": "x"}),
])  # fmt: skip
def test_rows_that_contradict_each_other_are_set_aside(op: str, data: dict[str, Any], key: dict[str, Any]) -> None:
    """A row mixed of two is none of the source, and a column spelled in two ways would be two columns."""
    with pytest.raises(MalformedMessageError, match="contradict each other in"):
        decode(change(op, data, key))


@pytest.mark.parametrize(("data", "key"), [(1, 1.0), ("1", 1), (1.50, "1.5"), ("\u00e9", "é"), ({"a": 1}, {"a": 2})])
def test_one_value_may_be_written_in_two_ways(data: Any, key: Any) -> None:
    """The row is the one in ``data``, unless two texts, numbers or flags differ, or one is null."""
    event = decode(change("del", {"ID": data}, {"ID": key, "NOTE": "x"}))
    assert json.loads(event.before) == {"ID": data, "NOTE": "x"}
    with pytest.raises(MalformedMessageError, match="contradict each other in"):
        decode(change("del", {"ID": data}, {"ID": None}))


def test_a_size_of_zero_is_not_known() -> None:
    """Only a size that is known can be too small."""
    assert decode(change("ins", ROW, seq=3, size=0)).transaction == Transaction(id="1.2.3", number=3, last=False)


def test_two_columns_whose_names_differ_in_case_are_two() -> None:
    """Oracle has such names where they are quoted."""
    key = {"ID": "1", "note": "a", "NOTE": "b"}
    assert json.loads(decode(change("upd", {"note": "c"}, key)).after) == key | {"note": "c"}


@pytest.mark.parametrize(("data", "key"), [(ROW, None), (None, {"ID": "1"})])
def test_a_truncate_with_a_row_is_set_aside(data: Any, key: Any) -> None:
    """It may be a delete of one row, and would empty the table."""
    with pytest.raises(MalformedMessageError, match="a TRUNCATE with a row"):
        decode(change("TRUNCATE", data, key))


@pytest.mark.parametrize("data", [{"COLUMN_NAME": "V"}, {"ID": "1"}, {"NOTE": None, "ID": 1}])
def test_drop_column_with_values_is_set_aside(data: dict[str, Any]) -> None:
    """A member with a value may be the key of a row, or say the column's name in its value."""
    for message in (change("DROP COLUMN", data), change("DROP COLUMN", None, data)):
        with pytest.raises(IncompleteMessageError, match="load the table again"):
            decode(message)
    assert (
        decode(change("DROP COLUMN", {"NOTE": ""}, size=1)).statement
        == 'ALTER TABLE "SHOP"."ORDERS" DROP COLUMN "NOTE"'
    )


def test_a_message_that_is_sent_again_has_the_same_position() -> None:
    """SCN and seq are one change, wherever in the dump."""
    assert decode(change("ins", ROW), place=1).position == decode(change("ins", ROW), place=5000).position


def test_without_scn_the_place_in_the_dump_is_the_order() -> None:
    """SharePlex may be set to send no more than operation and table."""
    bare = {"meta": {"op": "ins", "table": "PHUNT.ROCK_BAND"}, "data": {"BAND_NAME": "Rush", "YEAR_START": 1974}}
    first, second = (decode(bare, place=place) for place in (9, 10))
    assert first.position < second.position < decode(change("ins", ROW)).position
    assert first.transaction is None


@pytest.mark.parametrize(
    ("meta", "transaction"),
    [
        ({}, Transaction(id="1.2.3", number=1, last=False)),
        ({"seq": 2}, Transaction(id="1.2.3", number=2, last=True)),
        ({"seq": None, "size": None, "idx": "2/2"}, Transaction(id="1.2.3", number=2, last=True)),
        ({"size": None}, Transaction(id="1.2.3", number=1, last=None)),
        ({"trans": None}, Transaction(id="100", number=1, last=False)),
        ({"trans": None, "scn": None}, None),
    ],
)
def test_transactions(meta: dict[str, Any], transaction: Transaction | None) -> None:
    """``idx`` says what seq and size say, and the SCN of the commit names a transaction that ``trans`` does not."""
    assert decode(change("ins", ROW, **meta)).transaction == transaction


def test_idx_gives_what_seq_or_size_lacks() -> None:
    """Each of them may stand alone, and agrees with ``idx``."""
    for meta, number, last in (
        ({"seq": 10, "size": 10, "idx": "10/10"}, 10, True),
        ({"seq": 9, "size": None, "idx": "9/10"}, 9, False),
        ({"seq": None, "size": 10, "idx": "10/10"}, 10, True),
    ):
        event = decode(change("ins", ROW, **meta))
        assert event.position == (1, 100, number)
        assert event.transaction == Transaction(id="1.2.3", number=number, last=last)


def test_drop_column_is_a_schema_change_and_names_are_quoted() -> None:
    """No row is touched, and a column's name cannot become SQL."""
    event = decode(change("DROP COLUMN", {'A"; DROP TABLE "B': None}, size=1))
    assert isinstance(event, SchemaChange)
    assert event.statement == 'ALTER TABLE "SHOP"."ORDERS" DROP COLUMN "A""; DROP TABLE ""B"'
    assert event.dialect == "oracle"


@pytest.mark.parametrize(("seq", "last"), [(1, False), (3, True)])
def test_a_drop_column_among_others_counts_in_its_transaction(seq: int, *, last: bool) -> None:
    """``size`` counts it, so its transaction would wait for its number for ever."""
    value = json.dumps(change("DROP COLUMN", {"NOTE": None}, seq=seq, size=3)).encode()
    dropped, counted = shareplex_json.decode(Message(value=value, file="f", place=1), shareplex_json.Options())
    assert isinstance(dropped, SchemaChange)
    assert isinstance(counted, ControlEvent)
    assert (counted.kind, counted.transaction) == ("drop_column", Transaction(id="1.2.3", number=seq, last=last))
    assert dropped.position < counted.position


@pytest.mark.parametrize("meta", [{"seq": 1, "size": 1}, {"seq": 1, "size": None}, {"seq": None, "size": None}])
def test_a_drop_column_that_nothing_waits_for_is_one_event(meta: dict[str, Any]) -> None:
    """It is alone in its transaction, or the size of it is not known."""
    assert isinstance(decode(change("DROP COLUMN", {"NOTE": None}, **meta)), SchemaChange)


def test_drop_column_that_names_none_has_no_statement() -> None:
    """The document shows no such message; rows that follow show what went."""
    assert decode(change("DROP COLUMN", size=1)).statement == ""


def test_equal_columns_are_one_shape() -> None:
    """Shapes are few: a row and the update of it have the same."""
    first, second = decode(change("ins", ROW)), decode(change("upd", {"NOTE": "x"}, ROW))
    assert first.shape is second.shape


def test_columns_are_read_as_the_source_file_says() -> None:
    """The message carries names only."""
    assert columns(decode(change("ins", {"ID": "1", "N": 1.5}))) == (Column(name="ID"), Column(name="N"))


@pytest.mark.parametrize(("oracle", "value", "type_", "published"), table("shareplex_json", "Oracle"))
def test_types_of_the_page(oracle: str, value: str, type_: str, published: str) -> None:
    """Every value of the page's table is read with the type that stands beside it."""
    # an untyped column that the source file says is binary is read as Base64
    encoding = Encoding.BASE64 if type_ == "binary" else Encoding.PLAIN
    assert read_value(value.encode(), Column(name=oracle, type=type_, encoding=encoding)) == published


@pytest.mark.parametrize(("op", "event"), table("shareplex_json", "`op`")[:5])
def test_operations_of_the_page(op: str, event: str) -> None:
    """Each spelling of the page is read as the event that stands beside it."""
    for spelling in op.replace("`", "").split(", "):
        operation = decode(change(spelling, None if spelling == "TRUNCATE" else ROW)).operation
        assert event.startswith(operation) or f" {operation}:" in event


@pytest.mark.parametrize("depth", [2000, 200_000])
def test_deep_nesting_is_set_aside_or_kept_as_text(depth: int) -> None:
    """No depth of a hostile value breaks the decoder."""
    nested = b"[" * depth + b"]" * depth
    value = b'{"meta":{"op":"ins","table":"T"},"data":{"A":%b}}' % nested
    try:
        event = decode(value)
    except MalformedMessageError:
        return
    assert event.after == b'{"A":%b}' % nested


def test_a_table_name_is_data() -> None:
    """Path separators and dots of a name stay in it."""
    assert decode(change("ins", ROW, table="../../etc.passwd.x")).table == TableId(None, "", "./../etc.passwd.x")
