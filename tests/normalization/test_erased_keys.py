"""Events of erased rows are recognised by the keyed hashes of their keys, however the keys are written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.events import ChangeEvent, Column, Encoding, Operation, Shape, TableId
from tidemark.normalization.erased_keys import (
    EVER,
    EVERYWHERE,
    ErasedKeys,
    Erasure,
    KeyColumn,
    Recogniser,
    canonical,
    digest_of,
    fingerprint,
)
from tidemark.positions import encode_position
from tidemark.queries.row_key import key_given
from tidemark.values.table_columns import TableColumn

SECRET = b"a secret of the tests"
ORDERS = TableId("shop", None, "orders")
BEFORE, HORIZON = 1_000, encode_position((1, 50))


def _event(operation: str, before: Any = None, after: Any = None, **fields: Any) -> ChangeEvent:
    columns = tuple(Column(name, *kind) for name, kind in fields.pop("kinds", {"id": ("int",), "n": ("int",)}).items())
    images = {side: None if image is None else json.dumps(image).encode() for side, image in
              (("before", before), ("after", after))}  # fmt: skip
    given = {"table": ORDERS, "position": (1, 9), "committed_at": BEFORE, **fields}
    return ChangeEvent(operation=Operation(operation), shape=Shape(columns), **images, **given)


def _recogniser(kind: str = "int", value: str = "7", called: tuple[str, ...] = ("id",)) -> Recogniser:
    digest = digest_of(SECRET, "shop.orders", [("id", canonical(value, kind) or "")])
    columns = (KeyColumn(name="id", type=kind, called=called),)
    erasure = Erasure(object="shop.orders", columns=columns, digest=digest, before=BEFORE, horizon=HORIZON)
    return Recogniser(ErasedKeys(secret=SECRET, erasures=(erasure,)))


@pytest.mark.parametrize(
    ("event", "erased"),
    [
        (_event("INSERT", after={"id": 7, "n": 1}), True),
        (_event("INSERT", after={"id": "007", "n": 1}), True),
        (_event("INSERT", after={"id": 8, "n": 7}), False),
        (_event("DELETE", before={"id": 7}), True),
        (_event("UPDATE", before={"n": 1}, after={"id": 7, "n": 2}), True),
        (_event("UPDATE", before={"id": 7}, after={"n": 2}, partial=True), True),
        (_event("UPDATE", before={"id": 7}, after={"id": 8, "n": 2}), True),
        (_event("UPDATE", before={"id": 8}, after={"id": 7, "n": 2}), True),
        (_event("TRUNCATE"), False),
        (_event("INSERT", after={"id": None, "n": 7}), False),
        (_event("INSERT", after={"id": [7], "n": 7}), False),
        (_event("INSERT", after={"id": 7}, table=TableId("shop", None, "other")), False),
    ],
)
def test_an_event_is_recognised_by_its_key_before_or_after(event: ChangeEvent, *, erased: bool) -> None:
    """An event is of an erased row if it has the key on either side, and in its own table."""
    assert _recogniser().is_erased(event) is erased


_TWO = {"region": ("string",), "id": ("int",), "n": ("int",)}


@pytest.mark.parametrize(
    ("event", "erased"),
    [
        (_event("INSERT", after={"id": 1, "region": "eu", "n": 1}, kinds=_TWO), True),
        (_event("INSERT", after={"region": "us", "id": 1}, kinds=_TWO), False),
        (_event("INSERT", after={"region": "eu", "id": 2}, kinds=_TWO), False),
        (_event("INSERT", after={"id": 1}, kinds=_TWO), False),
        (_event("INSERT", after={"region": None, "id": 1}, kinds=_TWO), False),
        (_event("UPDATE", before={"id": 1}, after={"region": "eu", "id": 2, "n": 3}, kinds=_TWO), True),
        (_event("UPDATE", before={"region": "us"}, after={"region": "eu", "id": 1}, kinds=_TWO), True),
        (_event("UPDATE", before={"region": "eu", "id": 2}, after={"id": 1}, partial=True, kinds=_TWO), True),
        (_event("UPDATE", before={"id": 3}, after={"region": "eu", "id": 2}, kinds=_TWO), False),
    ],
)
def test_a_key_of_two_columns_is_recognised_by_both(event: ChangeEvent, *, erased: bool) -> None:
    """An image that has one of them alone has the other one from the image beside it: that column did not change."""
    columns = tuple(KeyColumn(name=name, type=_TWO[name][0], called=(name,)) for name in ("region", "id"))
    digest = digest_of(SECRET, "shop.orders", [("region", "eu"), ("id", "1")])
    erasure = Erasure(object="shop.orders", columns=columns, digest=digest, before=BEFORE, horizon=HORIZON)
    assert Recogniser(ErasedKeys(secret=SECRET, erasures=(erasure,))).is_erased(event) is erased


@pytest.mark.parametrize(
    ("committed_at", "position", "erased"),
    [
        (BEFORE, (1, 9), True),
        (BEFORE, (1, 10**40), True),
        (BEFORE + 1, (1, 9), False),
        (None, (1, 50), True),
        (None, (1, 51), False),
        (None, (0, 99), True),
        (BEFORE, (1, 0, -1), True),
        (BEFORE + 1, (1, 0, -1), False),
        (None, (1, 0, -1), True),
    ],
)
def test_a_later_event_is_of_a_new_row(committed_at: int | None, position: Any, *, erased: bool) -> None:
    """The commit time decides; without one, the position does, unless it is none, as one with the offset -1."""
    event = _event("INSERT", after={"id": 7}, committed_at=committed_at, position=position)
    assert _recogniser().is_erased(event) is erased


@pytest.mark.parametrize(("position", "erased"), [((1, 9), False), ((1, 20), True), ((1, 39), True), ((1, 40), False)])
def test_a_key_counts_while_the_row_had_it(position: Any, *, erased: bool) -> None:
    """Before that, and after that, another row had the key, or another table the name."""
    columns = (KeyColumn(name="id", type="int", called=("id",)),)
    digest = digest_of(SECRET, "shop.orders", [("id", "7")])
    begins, ends = encode_position((1, 20)), encode_position((1, 40))
    erasure = Erasure(
        object="shop.orders", columns=columns, digest=digest, before=BEFORE, horizon=HORIZON, begins=begins, ends=ends
    )
    event = _event("INSERT", after={"id": 7}, position=position)
    assert Recogniser(ErasedKeys(secret=SECRET, erasures=(erasure,))).is_erased(event) is erased


def test_the_search_before_an_erasure_leaves_out_no_event() -> None:
    """Whatever its position, and with or without a commit time, every event of the key is found."""
    every = Erasure(object="shop.orders", columns=(), digest="", before=EVER, horizon=EVERYWHERE)
    for position in ((0,), (1, "\U0010ffff~z", 10**60), (9, 10**98)):
        assert every.covers(None, encode_position(position))
        assert every.covers(2**62, encode_position(position))


@pytest.mark.parametrize(
    ("kind", "wanted", "written", "wire"),
    [
        ("decimal(9, 2)", "1.50", "1.5", ("decimal(9, 1)", Encoding.TEXT)),
        ("long", "7", "7", ("int", Encoding.TEXT)),
        ("string", "ä'\"\\", "ä'\"\\", ("string",)),
        ("timestamp", "1970-01-01T00:00:01", 1000, ("timestamp", Encoding.EPOCH_MILLIS)),
        ("date", "1970-01-02", 1, ("date", Encoding.EPOCH_DAYS)),
        ("binary", "AP8=", "00ff", ("binary", Encoding.HEX)),
        ("double", "1.0", 1, ("double",)),
    ],
)
def test_a_key_is_one_key_however_it_is_written(kind: str, wanted: str, written: Any, wire: Any) -> None:
    """The hash is made of the value that is published, and not of the text of a message."""
    value = key_given("t", [f"id={wanted}"], {"id": TableColumn("id", kind)}, ["id"])["id"]
    event = _event("INSERT", after={"Id": written}, kinds={"Id": wire})
    assert _recogniser(kind, str(value), ("Id", "id")).is_erased(event)


@pytest.mark.parametrize(
    ("kind", "wanted", "same", "other"),
    [
        (
            "decimal(38, 0)",
            "12345678901234567890123456789",
            "012345678901234567890123456789",
            "12345678901234567890123456788",
        ),
        ("decimal(38, 0)", "-" + "9" * 38, "-" + "9" * 38, "-" + "9" * 37 + "8"),
        (
            "decimal(38, 10)",
            "1234567890123456789012345678.01",
            "1234567890123456789012345678.0100",
            "1234567890123456789012345678.02",
        ),
        (
            "decimal(29, 1)",
            "1234567890123456789012345678.0",
            "1234567890123456789012345678",
            "1234567890123456789012345678.1",
        ),
        ("decimal(9, 2)", "0", "-0.00", "0.01"),
    ],
)
def test_a_key_of_many_digits_is_no_other_key(kind: str, wanted: str, same: str, other: str) -> None:
    """Every digit counts: an event of the neighbour's row stays whole."""
    recogniser = _recogniser(kind, wanted)
    kinds = {"id": (kind, Encoding.TEXT)}
    assert recogniser.is_erased(_event("INSERT", after={"id": same}, kinds=kinds))
    assert not recogniser.is_erased(_event("INSERT", after={"id": other}, kinds=kinds))


def test_the_hash_tells_no_key_and_depends_on_all_of_it() -> None:
    """Another secret, table, column or value gives another hash, and the fingerprint is none of them."""
    made = {
        digest_of(secret, table, [(column, value)])
        for secret in (SECRET, b"other")
        for table in ("shop.a", "shop.b")
        for column in ("id", "no")
        for value in ("7", "8")
    }
    assert len(made) == 16
    assert fingerprint(SECRET) != fingerprint(b"other")
    assert not any(each.startswith(fingerprint(SECRET)) for each in made)


def test_an_erased_event_keeps_its_place_alone() -> None:
    """Of an erased event nothing but table, operation, position, times and transaction goes on."""
    event = _event("UPDATE", before={"id": 7, "n": 123_456}, after={"id": 7, "n": 654_321})
    other = _event("INSERT", after={"id": 8, "n": 1})
    found, numbers = _recogniser().stripped([other, event])
    assert found[0] is other
    assert numbers == [1]
    assert "123456" not in repr(found[1])
    assert (found[1].position, found[1].committed_at) == (event.position, event.committed_at)
