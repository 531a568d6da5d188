"""What a run takes in where the source file folds tables otherwise than before: nothing is lost on the way."""

from __future__ import annotations

from tidemark.compaction.routing import Routing
from tidemark.ledger.rows import TableRow
from tidemark.ledger.states import TableState
from tidemark.sources.routes import Route, Target

ENTRY = r"shop_(\d).orders"
NAME = f"{ENTRY} -> erp.orders"
ROUTE = Route(target=Target("erp", "orders"), folded=NAME)


def _row(name: str, batch: int, state: TableState = TableState.PUBLISHED) -> dict[str, TableRow]:
    return {name: TableRow(cut=batch, object=name, state=state, batch=batch)}


def _routing(*folded: str, former: tuple[str, ...] = (), **newest: int) -> Routing:
    first = {"shop_1.orders": 1, "shop_2.orders": 2, "other.items": 1}
    names = {"orders": NAME, "one": "shop_1.orders", "items": "other.items"}
    known = {names[name]: batch for name, batch in newest.items()}
    return Routing(folded=dict.fromkeys(folded, ROUTE), first=first, newest=known, former=former)


def test_tables_that_are_folded_from_now_on_begin_at_the_first_batch() -> None:
    """They were published apart so far; those rows say nothing of the folded table."""
    routed = _routing("shop_1.orders", "shop_2.orders", orders=3, items=3)
    published = routed.current({**_row("shop_1.orders", 3), **_row("other.items", 3)})
    assert published.keys() == {"other.items"}
    assert routed.behind(published) == {NAME: 0}
    assert routed.shards_of(NAME) == ["shop_1.orders", "shop_2.orders"]


def test_tables_that_are_folded_no_more_take_in_what_came_meanwhile() -> None:
    """One that was published before goes on from there; one that never was begins at the first batch."""
    routed = _routing(former=(NAME,), one=3, items=3)
    there = {**_row(NAME, 3), **_row("other.items", 3)}
    assert routed.behind(routed.current({**there, **_row("shop_1.orders", 1)})) == {"shop_1.orders": 1}
    assert routed.behind(routed.current(there)) == {"shop_1.orders": 0}


def test_nothing_is_behind_while_the_source_file_stays() -> None:
    """A stopped or waiting table has a standing of its own, and a table that never matched is not looked for."""
    routed = _routing("shop_1.orders", "shop_2.orders", orders=3, one=3)
    assert routed.behind(_row(NAME, 3)) == {}
    for state in (TableState.STOPPED, TableState.WAITING):
        assert routed.behind(_row(NAME, 1, state)) == {}
    assert _routing(former=("x.* -> erp.y",), one=3).behind({}) == {}
