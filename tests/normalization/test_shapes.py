"""Shapes of images get their ids once, and are not kept for ever."""

from __future__ import annotations

import weakref

from tidemark.events import Column, Shape, TableId
from tidemark.normalization.shapes import MOST_SHAPES, Shapes, bounded

ORDERS = TableId("shop", None, "orders")


class _Kept:
    """Something that can be referred to weakly, as a shape cannot."""


def test_a_shape_that_is_made_anew_for_each_message_is_one_shape() -> None:
    """A decoder that makes a new object for each message, as its own cache is too small, gets the same id each time."""
    shapes = Shapes({})
    ids = {shapes.id_of(ORDERS, Shape((Column("id", "long"), Column("n")))) for _ in range(MOST_SHAPES + 10)}
    assert len(ids) == 1
    assert [(table, shape_id) for table, shape_id, _ in shapes.entries()] == [(ORDERS, *ids)]


def test_what_is_known_by_shape_is_forgotten_beyond_a_limit() -> None:
    """No object is held beyond the limit, and what came last is known."""
    known: dict[int, _Kept] = {}
    first = weakref.ref(bounded(known).setdefault(0, _Kept()))
    for number in range(1, MOST_SHAPES + 1):
        bounded(known)[number] = _Kept()
    assert first() is None
    assert list(known) == [MOST_SHAPES]
