"""Masks where events are made: the text that the table would read, by any name, and nothing plain left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from support.options import SECRET, SECRET_VARIABLE, masked_text, the_secret
from tidemark.errors import UnreadableValueError
from tidemark.events import ChangeEvent, Column, Encoding, Event, Message, Operation, Quarantined, Shape, TableId
from tidemark.normalization.masked_events import HIDDEN_DETAIL, Masked, Masking
from tidemark.values.masking import Mask, Masks, labelled
from tidemark.values.plain import read_value

TABLE = TableId("shop", None, "people")
SAMPLES: Mapping[Encoding, tuple[str | None, Any]] = {
    Encoding.PLAIN: ("decimal(9, 2)", 1.10),
    Encoding.TEXT: ("decimal(9, 2)", "12.50"),
    Encoding.UNSCALED_BASE64: ("decimal(9, 2)", "AfQ="),
    Encoding.SCALED_STRUCT: ("string", {"scale": 2, "value": "AfQ="}),
    Encoding.BASE64: ("binary", "QWJj"),
    Encoding.LATIN1: ("binary", "Abc"),
    Encoding.HEX: ("binary", "416263"),
    Encoding.EPOCH_SECONDS: ("timestamp", 1_767_225_600),
    Encoding.EPOCH_MILLIS: ("timestamp", 1_767_225_600_123),
    Encoding.EPOCH_MICROS: ("timestamptz", 1_767_225_600_123_456),
    Encoding.EPOCH_NANOS: ("timestamp", 1_767_225_600_123_456_000),
    Encoding.TEXT_OR_MILLIS: ("string", ""),
    Encoding.TEXT_OR_MICROS: ("string", "1767225600123456"),
    Encoding.EPOCH_DAYS: ("date", 20_454),
    Encoding.MILLIS_OF_DAY: ("string", 1_000),
    Encoding.MICROS_OF_DAY: ("string", -1_000_001),
    Encoding.NANOS_OF_DAY: ("string", 1_000_000_001),
    Encoding.BITS_LE_BASE64: ("binary", "QQ=="),
}
"""A type and a value for each encoding."""


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret of masks in the environment."""
    the_secret(monkeypatch)


def _masking(masks: Mapping[str, str], **changed: Any) -> Masking:
    entry = Masked(tuple((name, Mask(mask)) for name, mask in masks.items()), tuple(changed.pop("rename", {}).items()))
    labels = {mask: labelled(mask, SECRET_VARIABLE) for mask in Mask}
    return Masking(**{"tables": {"shop.people": entry}, "labels": labels, "secret": SECRET.encode(), **changed})


def _event(shape: Shape | None, after: Any, before: Any = None, table: TableId = TABLE) -> ChangeEvent:
    images = {"after": json.dumps(after).encode(), "before": None if before is None else json.dumps(before).encode()}
    return ChangeEvent(table=table, operation=Operation.UPDATE, position=(1, 1), shape=shape, **images)


def _masked(masking: Masking, event: ChangeEvent) -> ChangeEvent:
    decoded = masking.over(lambda _: [event])(Message(value=b"", file="f", place=1))
    assert isinstance(decoded, list)
    [found] = decoded
    assert isinstance(found, ChangeEvent)
    return found


def _image(event: ChangeEvent, image: bytes | None) -> dict[str, Any]:
    """The values of an image as its shape says, read as text."""
    assert image is not None
    assert event.shape is not None
    members = msgspec.json.decode(image, type=dict[str, msgspec.Raw])
    columns = [column for column in event.shape.columns if column.name in members]
    return {column.name: read_value(bytes(members[column.name]), column) for column in columns}


@pytest.mark.parametrize("encoding", list(Encoding))
def test_each_encoding_is_masked_as_the_text_of_its_value(encoding: Encoding) -> None:
    """The mask is of the text that the plain reader gives, whatever the mask, and null stays null."""
    kind, value = SAMPLES[encoding]
    text = read_value(json.dumps(value).encode(), Column("c", "string", encoding), kind)
    assert isinstance(text, str)
    for mask in Mask:
        event = _event(Shape((Column("c", kind, encoding), Column("id", "long"))), {"c": value, "id": 1}, {"c": None})
        found = _masked(_masking({"c": mask}), event)
        assert found.shape is not None
        assert _image(found, found.after) == {"c": masked_text(mask, text), "id": "1"}
        assert _image(found, found.before) == {"c": None}
        label = Masks({"c": mask}, SECRET_VARIABLE).label("c")
        assert found.shape.columns == (Column("c", "string", masked=str(label)), Column("id", "long"))


def test_a_value_that_cannot_be_read_stays_unreadable() -> None:
    """Its bytes are gone, and the other image keeps its sound value."""
    event = _event(Shape((Column("c", "binary", Encoding.BASE64),)), {"c": "QWJj"}, {"c": "/w=="})
    found = _masked(_masking({"c": "last4"}), event)
    assert _image(found, found.after) == {"c": "****"}
    assert b"/w" not in (found.before or b"")
    with pytest.raises(UnreadableValueError):
        _image(found, found.before)


def test_other_members_stay_the_bytes_that_they_were() -> None:
    """Numbers are not rounded, and columns that no shape describes are masked by their names all the same."""
    event = ChangeEvent(
        table=TABLE,
        operation=Operation.INSERT,
        position=(1, 1),
        after=b'{"n": 1.10, "big":12345678901234567890.123, "c":"x", "mystery": "y"}',
        shape=Shape((Column("n"), Column("big"), Column("c"))),
    )
    found = _masked(_masking({"c": "redact", "m*": "redact"}), event)
    assert found.after == b'{"n":1.10,"big":12345678901234567890.123,"c":"****","mystery":"****"}'
    assert found.shape == Shape((Column("n"), Column("big"), Column("c", "string", masked="redact")))


@pytest.mark.parametrize(
    ("before", "after"), [({"id": 1, "name": "Kanarie"}, {"id": 1}), ({"id": 1}, {"name": "Kanarie"})]
)
def test_a_column_that_one_image_alone_has_is_masked(before: dict[str, Any], after: dict[str, Any]) -> None:
    """The old image of an update may have a column that neither the new one nor a shape has."""
    found = _masked(_masking({"name": "redact"}), _event(Shape((Column("id", "int"),)), after, before))
    for image, was in ((found.before, before), (found.after, after)):
        assert image is not None
        assert msgspec.json.decode(image) == {name: "****" if name == "name" else 1 for name in was}


def test_names_are_those_of_any_time() -> None:
    """Renames at the source, in whatever direction and case, published names, patterns, and copies of tools."""
    masking = _masking({"email": "redact", "SHOWN": "redact"}, rename={"old": "shown"}, renamed={
        "shop.people": (("e_mail", "Mail"), ("EMAIL", "e_mail")), "shop._people_gho": (("mail", "post"),),
    })  # fmt: skip
    names = ["email", "e_mail", "mail", "old", "shown", "post", "id"]
    assert [name for name in names if masking.mask_of("shop.people", name)] == names[:5]
    assert [name for name in names if masking.mask_of("shop._people_gho", name)] == names[:6]
    assert masking.mask_of("shop.other", "email") is None
    bare, masked = Masked(()), Masked((("email", Mask.REDACT),))
    of_the_copy = _masking({}, tables={"shop.people": bare, "shop._people_gho": masked})
    assert of_the_copy.mask_of("shop._people_gho", "email") is Mask.REDACT
    long = "people_of_all_the_departments_of_the_company_that_have_an_account"[:63]
    tables, renamed = {"shop.*": bare, f"shop.{long}": masked}, {f"shop.{long}": (("mail", "email"),)}
    shortened = _masking({}, tables=tables, renamed=renamed)
    for copy in (f"_{long[:59]}_gho", f"_{long[:44]}_20260131000000_del", f"lhmn_{long[:59]}"):
        found = [shortened.mask_of(f"shop.{copy}", name) for name in ("email", "mail", "id")]
        assert found == [Mask.REDACT, Mask.REDACT, None]
    assert shortened.mask_of(f"shop._{long[:40]}_gho", "email") is None
    published = _masking({"email": "redact"}, publishes_copies=True)
    assert published.mask_of("shop._people_gho", "email") is None
    event = _event(Shape((Column("email"),)), {"email": "x"}, table=TableId("shop", None, "other"))
    assert _masked(masking, event) is event


@pytest.mark.parametrize(
    ("entry", "hidden"),
    [
        ("shop.letters_of_the_lawyers_and_notaries_since_the_house_was_founded", ["street", "phone"]),
        ("shop.*_founded", ["street", "phone"]),
        ("*house_was*", ["street", "phone"]),
        (r"shop\.letters_\w+_founded", ["street", "phone"]),
        ("shop.letters_of_the_?awyers*", ["street", "phone"]),
        ("shop.bills_*", ["phone"]),
        ("shop.letters", ["phone"]),
    ],
)
def test_a_shortened_copy_has_the_masks_of_every_table_that_it_may_be_of(entry: str, hidden: list[str]) -> None:
    """A pattern that matches the cut name does not hide the entry of the whole one, which may not have landed yet."""
    long = "letters_of_the_lawyers_and_notaries_since_the_house_was_founded"
    assert len(long) == 63
    everywhere, own = Masked((("phone", Mask.REDACT),)), Masked((("street", Mask.HASH),), (("road", "street"),))
    masking = _masking({}, tables={"shop.*": everywhere, entry: own})
    for copy in (f"_{long[:59]}_gho", f"lhmn_{long[:59]}"):
        found = [name for name in ("street", "phone", "id") if masking.mask_of(f"shop.{copy}", name)]
        assert found == hidden
        assert (masking.mask_of(f"shop.{copy}", "road") is Mask.HASH) == ("street" in hidden)
    whole = _masking({}, tables={"shop.*": everywhere, "shop.letters": own})
    assert [whole.mask_of("shop._letters_gho", name) for name in ("street", "phone")] == [Mask.HASH, None]


def test_the_source_files_encodings_are_read_first() -> None:
    """A column for which messages declare no type is read as the source file declares it, as the table would."""
    masking = _masking({"c": "hash"}, declared={"shop.*": {"c": ("decimal(9, 2)", "unscaled_base64")}})
    found = _masked(masking, _event(Shape((Column("c"),)), {"c": "AfQ="}))
    assert _image(found, found.after) == {"c": masked_text("hash", "5.00")}


def test_a_value_that_is_nested_too_deep_sets_its_message_aside() -> None:
    """A hostile value ends no run, and goes nowhere as it came."""
    nested = b"[" * 100_000 + b"]" * 100_000
    event = ChangeEvent(
        table=TABLE,
        operation=Operation.INSERT,
        position=(1, 1),
        shape=Shape((Column("c"),)),
        after=b'{"c":%b}' % nested,
    )
    found = _masking({"c": "hash"}).over(lambda _: [event])(Message(value=b"", file="f", place=1))
    assert found == Quarantined("malformed", HIDDEN_DETAIL)


def test_why_a_message_is_set_aside_is_not_told() -> None:
    """Any part of a message may stand in the sentence of its decoder."""

    def refused(_: Message) -> list[Event] | Quarantined:
        return Quarantined("malformed", "no number: 'a plain value'")

    found = _masking({"c": "hash"}).over(refused)(Message(value=b"", file="f", place=1))
    assert found == Quarantined("malformed", HIDDEN_DETAIL)
