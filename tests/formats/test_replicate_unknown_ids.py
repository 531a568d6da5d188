"""Rows of Replicate whose schema id is not known of their table, or that have none: which structure reads them."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from support.replicate_messages import column, in_json, metadata, row
from tidemark import formats
from tidemark.errors import MalformedMessageError, MissingMetadataError, MissingTableError
from tidemark.events import ChangeEvent, Message
from tidemark.formats import replicate_json

FIRST, SECOND = "A" * 32, "B" * 32
OLD = {"id": column(1, "INT8", key=1), "name": column(2, "WSTRING"), "note": column(3, "WSTRING")}
NEW = {
    "id": column(1, "INT8", key=1),
    "age": column(2, "INT4"),
    "name": column(3, "WSTRING"),
    "note": column(4, "CLOB"),
}
MESSAGES = (
    in_json("MD", metadata(OLD, FIRST, version=1), FIRST),
    in_json("MD", metadata(NEW, SECOND, version=2), SECOND),
)
OF_OLD = {"id": 1, "name": "Ann", "note": None}
OF_NEW = {"id": 1, "age": None, "name": None, "note": None}


def known_of(*values: bytes) -> formats.Known:
    """Return what is known from metadata messages."""
    options = replicate_json.Options()
    pairs = [replicate_json.metadata(Message(value=value, file="m", place=1), options) for value in values]
    return formats.gather(pair for pair in pairs if pair is not None)


def decode(
    body: dict[str, Any], id_: str | None, known: formats.Known, topic: str | None = None, **options: Any
) -> ChangeEvent:
    """Decode a row, of the table that the option names unless there is a topic."""
    if topic is None:
        options = {"table": "shop.orders"} | options
    message = Message(value=in_json("DT", body, id_), file="f", place=7, topic=topic, partition=0, offset=1)
    (event,) = replicate_json.decode(message, replicate_json.Options(**options), known)
    assert isinstance(event, ChangeEvent)
    return event


@pytest.mark.parametrize("id_", [SECOND, None])
@pytest.mark.parametrize("topic", [None, "shop.orders"])
def test_a_mask_is_never_read_by_a_structure_with_other_columns(id_: str | None, topic: str | None) -> None:
    """The old one would take the mask for that of a whole row, and the null of a column without a value for a value."""
    update = row("UPDATE", OF_NEW, columnMask="07")
    with pytest.raises(MissingMetadataError):
        decode(update, id_, known_of(MESSAGES[0]), topic)
    if id_ is None or topic is None:
        assert decode(update, id_, known_of(*MESSAGES), topic).absent == ("note",)


def test_a_row_without_id_is_read_in_the_same_way_whichever_structures_landed() -> None:
    """A row of the old structure stays one: by the newest, its mask would call the last column captured."""
    update = row("UPDATE", OF_OLD, columnMask="03")
    for count in (1, 2):
        for landed in itertools.permutations(MESSAGES, count):
            if MESSAGES[0] in landed:
                event = decode(update, None, known_of(*landed))
                assert (event.absent, event.key) == (("note",), ("id",))
            else:
                with pytest.raises(MissingMetadataError, match=r"exactly the columns of the row.*shop\.orders"):
                    decode(update, None, known_of(*landed))


@pytest.mark.parametrize("lacking", ["name", "note"])
def test_a_row_without_id_that_lacks_a_column_is_set_aside(lacking: str) -> None:
    """It may be of a structure that has not landed."""
    data = {name: value for name, value in OF_OLD.items() if name != lacking}
    with pytest.raises(MissingMetadataError):
        decode(row("UPDATE", data), None, known_of(*MESSAGES))


def test_the_newest_structure_with_the_columns_of_a_row_reads_it() -> None:
    """Their order does not matter, because the structures of one table may differ in types alone."""
    wider = in_json("MD", metadata(OLD | {"id": column(1, "NUMERIC", 20, 0, key=1)}, "C" * 32, version=3), "C" * 32)
    shuffled = {name: OF_OLD[name] for name in reversed(OF_OLD)}
    event = decode(row("INSERT", shuffled), None, known_of(*MESSAGES, wider))
    assert event.shape is not None
    assert {each.name: each.type for each in event.shape.columns}["id"] == "decimal(20, 0)"


@pytest.mark.parametrize("id_", ["F" * 32, None])
def test_a_mask_that_contradicts_the_row_is_refused(id_: str | None) -> None:
    """The columns fit, and yet the structure is another: this one leaves out a column that has a value.

    Landing the metadata helps only where the structure is not known by the id.
    """
    with pytest.raises(MissingMetadataError, match="`columnMask` leaves out name, which has a value: without"):
        decode(row("UPDATE", OF_OLD, columnMask="05"), id_, known_of(*MESSAGES))
    with pytest.raises(MalformedMessageError, match="`columnMask` leaves out name, which has a value; is the option"):
        decode(row("UPDATE", OF_OLD, columnMask="05"), FIRST, known_of(*MESSAGES))


def test_without_metadata_by_option_such_a_row_is_read_without_types() -> None:
    """Where the metadata is lost, no structure with other columns reads the row either."""
    event = decode(row("INSERT", OF_NEW), SECOND, known_of(MESSAGES[0]), metadata="optional")
    assert json.loads(event.after or b"") == OF_NEW
    assert event.shape is not None
    assert {each.type for each in event.shape.columns} == {None}
    assert decode(row("INSERT", OF_OLD), SECOND, known_of(MESSAGES[0]), metadata="optional").key == ("id",)


def test_columns_find_a_table_by_any_of_its_structures() -> None:
    """A row without any name is of the one table that has or had exactly its columns."""
    other = in_json("MD", metadata(OLD, "D" * 32, "people"), "D" * 32)
    bare = Message(value=json.dumps(row("INSERT", OF_OLD)).encode(), file="f", place=7)
    (event,) = replicate_json.decode(bare, replicate_json.Options(), known_of(*MESSAGES))
    assert isinstance(event, ChangeEvent)
    assert (str(event.table), event.key) == ("shop.orders", ("id",))
    with pytest.raises(MissingTableError):
        replicate_json.decode(bare, replicate_json.Options(), known_of(*MESSAGES, other))


def test_a_message_without_a_row_is_malformed_whatever_landed() -> None:
    """No metadata message could make it readable."""
    with pytest.raises(MalformedMessageError):
        decode(row("INSERT", None), None, known_of(*MESSAGES))


OF_COPIES = in_json("MD", metadata(OLD, FIRST, "copies"), FIRST)
NAMINGS: list[dict[str, Any]] = [
    {"schema": "shop", "table": "copies"},
    {"table": "copies"},
    {"headers": {"schema": "shop", "table": "copies"}},
    {"schema": "shop", "table": "copies", "topic": "shop.changes"},
]


def named(names: dict[str, Any], id_: str | None = FIRST) -> Message:
    """Return a row of the old structure that names its table, in the message or by its topic."""
    body = row("INSERT", OF_OLD, **names.get("headers", {}))
    body |= {name: names[name] for name in ("schema", "table") if name in names}
    return Message(value=in_json("DT", body, id_), file="f", place=7, topic=names.get("topic"), partition=0, offset=1)


def table_of(message: Message, known: formats.Known, **options: Any) -> str:
    """Return the table of a row."""
    (event,) = replicate_json.decode(message, replicate_json.Options(**options), known)
    assert isinstance(event, ChangeEvent)
    return str(event.table)


@pytest.mark.parametrize("names", NAMINGS)
def test_a_row_that_names_another_table_than_its_id_waits_for_the_metadata(names: dict[str, Any]) -> None:
    """Two tables of one structure may share an id: whichever metadata landed first, the row is of the named table."""
    known, later = known_of(MESSAGES[0]), known_of(MESSAGES[0], OF_COPIES)
    for options in ({}, {"table": "shop.orders"}):
        with pytest.raises(MissingMetadataError, match=r"is known of shop\.orders only, .* `schema_ids: unique`"):
            table_of(named(names), known, **options)
        assert table_of(named(names), later, **options) == "shop.copies"
    assert table_of(named(names), known, schema_ids="unique") == "shop.orders"


@pytest.mark.parametrize("names", NAMINGS)
def test_such_a_row_is_never_read_as_one_of_the_other_table(names: dict[str, Any]) -> None:
    """Not by an external id either, and not without metadata."""
    external = {"headers": {"externalSchemaId": FIRST, **names.get("headers", {})}}
    with pytest.raises(MissingMetadataError):
        table_of(named(names | external, None), known_of(MESSAGES[0]))
    assert table_of(named(names), known_of(MESSAGES[0]), metadata="optional").lower().endswith("copies")


def test_a_row_that_names_its_table_is_read_by_another_id_of_the_table() -> None:
    """As is a row with an unknown id."""
    known = known_of(MESSAGES[0], in_json("MD", metadata(OLD, SECOND, "copies"), SECOND))
    assert table_of(named(NAMINGS[0]), known) == "shop.copies"
    with pytest.raises(MissingMetadataError, match=r"is known of shop\.orders only"):
        table_of(named({"topic": "shop.copies"}), known)


@pytest.mark.parametrize(
    "topic",
    ["shop.orders", "Shop.Orders", "orders", "copies", "changes", "shop.changes", "crm.changes", "prod.shop.copies"],
)
def test_a_topic_that_may_have_several_tables_denies_no_id(topic: str) -> None:
    """Only one that is called like another known table does; and the message itself says it better."""
    copies = in_json("MD", metadata(OLD, SECOND, "copies"), SECOND)
    assert table_of(named({"topic": topic}), known_of(MESSAGES[0], copies)) == "shop.orders"
    assert (
        table_of(named({"topic": "shop.copies", "schema": "shop", "table": "orders"}), known_of(MESSAGES[0], copies))
        == "shop.orders"
    )


def test_a_topic_that_is_another_known_table_denies_an_id() -> None:
    """Whatever its schema is called."""
    other = metadata(NEW, SECOND, "clients")
    other["lineage"]["schema"] = "crm"
    assert table_of(named({"topic": "crm.clients"}), known_of(MESSAGES[0])) == "shop.orders"
    with pytest.raises(MissingMetadataError, match=r"known of shop\.orders only"):
        table_of(named({"topic": "crm.clients"}), known_of(MESSAGES[0], in_json("MD", other, SECOND)))
