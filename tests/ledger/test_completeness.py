"""When a transaction is whole: what its end counts, what has landed, and what never lands."""

from __future__ import annotations

import msgspec
import pytest

from tidemark.ledger.completeness import (
    Lack,
    Scope,
    Times,
    adds_up,
    earliest,
    is_named,
    is_whole,
    lacks,
    newest,
    not_awaited,
)
from tidemark.ledger.tally import Ranges, Seen, merged

HERE = Scope({"shop.a": 10, "shop.b": None})


def _seen(
    counts: dict[str, int] | None, by_table: dict[str, Ranges], *, count: int | None = None, last: int | None = 50
) -> Seen:
    """A transaction whose end has landed."""
    parts = [Seen(id="t", numbers=numbers) for numbers in by_table.values()]
    seen = Seen(id="t", ended=True)
    for part in parts:
        seen = merged(seen, part)
    total = sum((counts or {}).values()) if count is None else count
    tables = {name: (1, 0) for name in by_table if name}
    return msgspec.structs.replace(seen, by_table=by_table, counts=counts, count=total, tables=tables, last=last)


WHOLE = {
    "all of it": _seen({"shop.a": 2, "shop.b": 1}, {"shop.a": [(1, 1), (3, 3)], "shop.b": [(2, 2)]}),
    "logical messages that did not land": _seen({"shop.a": 1, "": 2}, {"shop.a": [(2, 2)]}),
    "a logical message that did": _seen({"shop.a": 1, "": 2}, {"shop.a": [(2, 2)], "": [(1, 1)]}),
    "a table that never landed": _seen({"shop.a": 1, "shop.z": 5}, {"shop.a": [(6, 6)]}),
    "a table that landed later": _seen({"shop.b": 1, "shop.a": 1}, {"shop.b": [(1, 1)]}, last=9),
    "names without the database": _seen({"a": 1, "z": 1}, {"shop.a": [(1, 1)]}),
    "names with more in front": _seen({"rs0.shop.a": 1, "rs0.shop.z": 1}, {"shop.a": [(1, 1)]}),
    "the same name elsewhere": _seen({"shop.a": 1, "archive.b": 1}, {"shop.a": [(1, 1)]}),
    "no counts by table": _seen(None, {"shop.a": [(1, 2)]}, count=2),
}
OPEN = {
    "an event of a table of the source": _seen({"shop.a": 2, "shop.b": 1}, {"shop.a": [(1, 2)]}),
    "one of two events": _seen({"shop.a": 2, "": 1}, {"shop.a": [(1, 1)]}),
    "a table that landed at the same time": _seen({"shop.b": 1, "shop.a": 1}, {"shop.b": [(1, 1)]}, last=10),
    "at a time that is not known": _seen({"shop.b": 1, "shop.a": 1}, {"shop.b": [(1, 1)]}, last=None),
    "an event, and no counts by table": _seen(None, {"shop.a": [(1, 1)]}, count=2),
    "less than the total, more than the counts": _seen({"shop.a": 1}, {"shop.a": [(1, 1)]}, count=2),
    "less than the counts, as much as the total": _seen({"shop.a": 1, "shop.z": 2}, {"shop.a": [(1, 2)]}),
    "a table that the end does not count": _seen({"shop.a": 1, "shop.z": 2}, {"shop.a": [(1, 1)], "shop.b": [(2, 2)]}),
    "a table with two names at the end": _seen({"a": 1, "shop.a": 1, "z": 1}, {"shop.a": [(1, 2)]}),
    "one number in two tables": _seen({"shop.a": 1, "shop.b": 1, "z": 1}, {"shop.a": [(1, 1)], "shop.b": [(1, 1)]}),
    "a number beyond the count": _seen({"shop.a": 1, "z": 1}, {"shop.a": [(3, 3)]}),
    "numbers whose table an earlier version did not keep": msgspec.structs.replace(
        _seen({"shop.a": 1, "z": 1}, {"shop.a": [(1, 1)]}), by_table={}
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_although_the_end_counts_more(name: str) -> None:
    """Nothing waits for what is no row change, or is of a table that the source does not hold."""
    assert is_whole(WHOLE[name], HERE)


@pytest.mark.parametrize("name", OPEN)
def test_open_for_what_the_source_holds_or_what_cannot_be_known(name: str) -> None:
    """Every event of a table that has landed by then is waited for, and so is everything where counts disagree."""
    assert not is_whole(OPEN[name], HERE)


def test_what_is_undone_or_has_no_end_is_not_whole() -> None:
    """However much of it has landed."""
    whole = WHOLE["all of it"]
    assert not is_whole(msgspec.structs.replace(whole, undone=True), HERE)
    assert not is_whole(msgspec.structs.replace(whole, ended=False, count=None, counts=None), HERE)


def test_the_source_file_names_what_never_lands() -> None:
    """By name or by pattern, also of a table that has landed."""
    seen = OPEN["an event of a table of the source"]
    for name in ("shop.b", "*.b"):
        assert is_whole(seen, Scope({"shop.a": 10, "shop.b": None}, [name]))
    assert not is_whole(seen, Scope({"shop.a": 10, "shop.b": None}, ["b", "shop.z"]))
    assert not_awaited(seen, Scope({"shop.a": 10}, ["shop.b"])) == ["shop.b"]
    assert not_awaited(WHOLE["logical messages that did not land"], HERE) == []


def test_what_is_missing_is_told_by_collection() -> None:
    """As far as the messages say whose events they are."""
    missing = lacks(_seen({"shop.a": 3, "shop.b": 1, "z": 1}, {"shop.a": [(1, 1), (3, 3)]}), HERE)
    assert missing == [
        Lack(collection="shop.a", landed=2, counted=3),
        Lack(collection="shop.b", landed=0, counted=1),
    ]
    assert lacks(OPEN["an event, and no counts by table"], HERE) == [Lack(collection=None, landed=1, counted=2)]
    gap = Seen(id="t", numbers=[(1, 1), (3, 3)], flagged=True)
    assert lacks(gap, HERE) == [Lack(collection=None, landed=2, counted=None)]
    assert lacks(Seen(id="t", numbers=[(1, 3)]), HERE) == []


def test_two_ends_that_disagree_do_not_add_up() -> None:
    """The larger counts of both are believed, and all of them are waited for."""
    one, other = (_seen({"shop.a": 2, "z": count}, {"shop.a": [(1, 2)]}) for count in (1, 2))
    assert adds_up(one)
    assert adds_up(merged(one, other))
    other = _seen({"shop.a": 1, "z": 3}, {"shop.a": [(1, 2)]}, count=4)
    assert merged(one, other) == merged(other, one)
    assert not is_whole(merged(one, other), HERE)


@pytest.mark.parametrize(
    ("parts", "first", "last"),
    [
        ([], {}, {}),
        ([{"a": 5, "b": 1}, {"a": 3}, {"a": 4}], {"a": 3, "b": 1}, {"a": 5, "b": 1}),
        ([{"a": None}, {"a": 5}], {"a": None}, {"a": None}),
        ([{"a": 5}, {"a": None}, {"a": 4}], {"a": None}, {"a": None}),
    ],
)
def test_a_time_that_one_part_does_not_know_is_not_known(parts: list[Times], first: Times, last: Times) -> None:
    """A table with an event without a commit time was always there, and every transaction waits for its events."""
    assert (earliest(parts), newest(parts)) == (first, last)


def test_a_part_of_a_name_is_not_the_name() -> None:
    """Names are compared by their parts."""
    assert is_named("db.public.orders", "public.orders")
    assert is_named("shop.orders", "rs0.shop.orders")
    assert not is_named("shop.orders", "archive.orders")
    assert not is_named("shop.reorders", "orders")
