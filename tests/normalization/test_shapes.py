"""Shapes of images get their ids once, and are not kept for ever."""

from __future__ import annotations

import weakref

from tidemark.events import ChangeEvent, Column, Operation, Shape, TableId
from tidemark.normalization.erased_keys import EVER, EVERYWHERE, ErasedKeys, Erasure, KeyColumn, Recogniser
from tidemark.normalization.masked_events import Masked, Masking, _Masker
from tidemark.normalization.shapes import MOST_SHAPES, Shapes, bounded
from tidemark.positions import changed
from tidemark.values.masking import Mask

ORDERS = TableId("shop", None, "orders")


class _Kept:
    """Something that can be referred to weakly, as a shape cannot."""


def test_a_shape_that_is_made_anew_for_each_message_is_one_shape() -> None:
    """A decoder that makes a new object for each message, as its own cache is too small, gets the same id each time."""
    shapes = Shapes({})
    ids = {shapes.id_of(ORDERS, Shape((Column("id", "long"), Column("n")))) for _ in range(MOST_SHAPES + 10)}
    assert len(ids) == 1
    assert [(table, shape_id) for table, shape_id, _ in shapes.entries()] == [(ORDERS, *ids)]
    assert len(shapes._ids) <= MOST_SHAPES


def test_erased_keys_and_masks_keep_no_more_shapes() -> None:
    """Each of them has something to know of each shape."""
    key = (KeyColumn(name="id", type="long", called=("id",)),)
    erasure = Erasure(object="shop.orders", columns=key, digest="", before=EVER, horizon=EVERYWHERE)
    recogniser = Recogniser(ErasedKeys(secret=b"secret", erasures=(erasure,)))
    masked = Masked((("n", Mask.REDACT),), ())
    masker = _Masker(Masking(tables={"shop.orders": masked}, labels={Mask.REDACT: "redact"}))
    for number in range(MOST_SHAPES + 10):
        event = ChangeEvent(
            table=ORDERS,
            operation=Operation.INSERT,
            position=changed(number),
            after=b'{"id":1,"n":2}',
            shape=Shape((Column("id", "long"), Column("n"))),
        )
        recogniser.is_erased(event)
        masker.masked(event)
    for known in (recogniser._shapes, masker._known, masker._shapes):
        assert 0 < len(known) <= MOST_SHAPES


def test_what_is_known_by_shape_is_forgotten_beyond_a_limit() -> None:
    """No object is held beyond the limit, and what came last is known."""
    known: dict[int, _Kept] = {}
    first = weakref.ref(bounded(known).setdefault(0, _Kept()))
    for number in range(1, MOST_SHAPES + 1):
        bounded(known)[number] = _Kept()
    assert first() is None
    assert list(known) == [MOST_SHAPES]
