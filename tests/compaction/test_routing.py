"""What a run takes in where the source file folds tables otherwise than before: nothing is lost on the way."""

from __future__ import annotations

from typing import Any

from tidemark.compaction import tool_tables
from tidemark.compaction.routing import Routing
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import ContentRow, TableRow
from tidemark.ledger.states import TableState
from tidemark.sources.model import Source
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


SHARDS = r"shop_(\d+).people_(\d+)"


def _source(**fields: Any) -> Source:
    return Source.model_validate({"source": "erp", "format": "canal_json", "landing": "in/*"} | fields)


def _own(tables: dict[str, dict[str, Any]], *names: str, **fields: Any) -> set[str]:
    known = {name: name.rpartition(".")[2] for name in names}
    return tool_tables.unpublished(_source(tables=tables, **fields), known)


def test_a_tools_table_is_left_out_beside_any_table_of_the_source() -> None:
    """Beside one that has events, whether it is folded or not, and beside one with an entry of its own."""
    copy, shard = "shop_00._people_0_gho", "shop_00.people_0"
    folded = {SHARDS: {"target": "people", "add": {"shard": "$1"}, "mask": {"email": "hash"}}}
    assert _own({}, copy, shard) == _own(folded, copy, shard) == {copy}
    assert _own(folded, copy) == _own({shard: {"mask": {"email": "hash"}}}, copy) == {copy}
    assert _own(folded, copy, shard, migration_tables=True) == set()
    # Nothing tells of a table that it was made for: a pattern is for both.
    assert _own({}, copy) == _own({"shop_*": {"mask": {"email": "hash"}}}, copy) == set()
    assert _own(folded, "shop_00._bills_0_gho") == _own(folded, "shop_00.people_new", shard) == set()


def test_a_folded_copy_is_behind_nothing(lake: Lake) -> None:
    """It is not published, so no run waits for it; one that was published, or is folded with other tables, goes on."""
    ledger, copy, table = Ledger(lake, "routed"), "t_1._people_gho", "t_1.people"
    ledger.replace(ContentRow, [_content(copy, 2), _content(table, 1)])
    apart = _source(source="routed", tables={"t_*.*": {"target": "{table}", "add": {"tenant": "{database}"}}})
    people, copies = "t_*.* -> routed.people", "t_*.* -> routed._people_gho"
    routed = Routing.of(apart, ledger, {}, 2)
    assert (routed.names, routed.name_of(copy), routed.behind(_row(people, 2))) == ({people}, copy, {})
    there = Routing.of(apart, ledger, {people: 1, copies: 1}, 2)
    assert there.shards_of(copies) == [copy]
    assert [each.stays(copy, {copy}, {people, copies}) for each in (routed, there)] == [False, True]
    together = _source(source="routed", tables={"t_*.*": {"target": "all", "add": {"table": "{table}"}}})
    mixed = Routing.of(together, ledger, {}, 2)
    assert mixed.shards_of("t_*.* -> routed.all") == [copy, table]
    assert not mixed.stays(copy, {copy}, {"t_*.* -> routed.all"})


def _content(table: str, batch: int) -> ContentRow:
    database, _, name = table.partition(".")
    return ContentRow(
        batch=batch, object=table, database=database, schema=None, name=name, operation="INSERT", shape="s",
        partial=False, key=("id",), half=False, events=1,
    )  # fmt: skip
