"""Where tables are published: names apart by default, names that entries give, and tables that are folded into one."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.errors import IncompatibleSchemaError
from tidemark.events import TableId
from tidemark.lake.names import Identifier, state, with_same_state
from tidemark.sources.model import Source
from tidemark.sources.routes import entry_of, is_folded, route_of
from tidemark.tables.targets import named, refuse_name, targets_of


def _source(**fields: Any) -> Source:
    return Source.model_validate({"source": "erp", "format": "canal_json", "landing": "/landing/*", **fields})


def _targets(source: Source, *names: str, published: dict[str, str] | None = None, **first: int) -> dict[str, str]:
    tables = {name: TableId(name.split(".")[0], None, name.split(".")[1]) for name in names}
    known = {name: Identifier.parse(target) for name, target in (published or {}).items()}
    batches = {name.replace("__", "."): batch for name, batch in first.items()}
    return {name: str(target) for name, target in targets_of(source, tables, known, batches).items()}


def test_tables_of_one_name_get_names_apart() -> None:
    """The first that landed has the plain name, whatever the order in which the run finds them."""
    found = _targets(_source(), "b.orders", "a.orders", "a.items", a__orders=2, b__orders=1)
    assert found == {"b.orders": "erp.orders", "a.orders": "erp.a__orders", "a.items": "erp.items"}
    assert _targets(_source(), "b.orders", "a.orders")["a.orders"] == "erp.orders"


def test_a_published_name_stays() -> None:
    """A table that appears later does not take it, even if it would have come first, and a qualified name stays too."""
    published = {"z.orders": "erp.orders", "y.orders": "erp.y__orders"}
    assert _targets(_source(), "a.orders", published=published)["a.orders"] == "erp.a__orders"
    assert _targets(_source(), "y.orders", published={"y.orders": "erp.y__orders"})["y.orders"] == "erp.y__orders"


def test_names_that_differ_in_case_are_one() -> None:
    """Some catalogs and engines take them for one."""
    assert _targets(_source(), "a.Orders", "b.orders") == {"a.Orders": "erp.Orders", "b.orders": "erp.b__orders"}


def test_names_whose_state_would_be_one_table_are_one() -> None:
    """``shop.eu__orders`` and ``shop__eu.orders`` would both have ``state.shop__eu__orders``."""
    found = _targets(_source(target="{database}.{table}"), "shop.eu__orders", "shop__eu.orders", "shop.orders")
    assert len({str(state(Identifier.parse(target))) for target in found.values()}) == 3
    assert found["shop.eu__orders"] == "shop.eu__orders"
    assert [str(each) for each in with_same_state(Identifier("shop", "eu__orders"))] == ["shop__eu.orders"]
    assert with_same_state(Identifier("erp", "orders")) == []


@pytest.mark.parametrize("namespace", ["ledger", "raw", "State", "rebuild", "rehearsal__erp", "default"])
def test_a_namespace_of_tidemark_is_no_target(namespace: str) -> None:
    """With ``target: "{database}.{table}"`` the messages name the namespace."""
    table = TableId(namespace, None, "orders")
    with pytest.raises(IncompatibleSchemaError, match="Tidemark's own tables"):
        refuse_name(str(table), named(_source(target="{database}.{table}"), table))


def test_a_name_that_an_entry_gives_is_not_changed() -> None:
    """Two tables that are given one name get it, and stop; a table that is given none goes out of their way."""
    source = _source(tables={"a.orders": {"target": "sales"}, "b.orders": {"target": "sales"}})
    found = _targets(source, "a.orders", "b.orders", "c.sales")
    assert found == {"a.orders": "erp.sales", "b.orders": "erp.sales", "c.sales": "erp.c__sales"}


@pytest.mark.parametrize(
    ("entry", "options", "table", "target", "added"),
    [
        (r"shop_(\d+).orders_(\d+)", {"target": "orders", "add": {"shard": "$1"}}, "shop_07.orders_2", "erp.orders",
         {"shard": "07"}),
        (r"shop_(\d+).orders_(\d+)", {"target": "o_$2"}, "shop_07.orders_2", "erp.o_2", {}),
        ("tenant_*.*", {"target": "{table}", "add": {"tenant": "{database:upper}"}}, "tenant_a.users", "erp.users",
         {"tenant": "TENANT_A"}),
        (r"(a|b).(x)?y", {"target": "lake.y", "add": {"x": "$2-$1"}}, "a.y", "lake.y", {"x": "-a"}),
        ("a.b", {"add": {"one": "1"}}, "a.b", "erp.b", {"one": "1"}),
    ],
)  # fmt: skip
def test_tables_are_folded(entry: str, options: Any, table: str, target: str, added: dict[str, str]) -> None:
    """A pattern with a target, or an entry that adds columns, folds; the name of all has the entry and the target."""
    source = _source(tables={entry: options})
    database, name = table.split(".")
    route = route_of(source, TableId(database, None, name))
    assert (".".join(route.target), route.added) == (target, added)
    assert route.folded == f"{entry} -> {target}"
    assert is_folded(route.folded)
    assert entry_of(route.folded) == entry
    assert source.table_for(route.folded) == source.tables[entry] == source.table_for(table)


@pytest.mark.parametrize(
    ("tables", "target"),
    [
        ({"ERP.ORDERS": {"target": "{table:lower}"}}, "erp.orders"),
        ({"ERP.*": {"key": ["id"]}}, "erp.ORDERS"),
        ({r"(\w+).orders": {"target": "x"}}, "erp.ORDERS"),
    ],
)
def test_a_table_of_its_own_is_not_folded(tables: dict[str, Any], target: str) -> None:
    """Neither by a pattern without a target, nor by its own name with one, nor by a pattern of another case."""
    route = route_of(_source(tables=tables), TableId("ERP", None, "ORDERS"))
    assert (route.folded, ".".join(route.target)) == (None, target)


def test_the_target_of_a_source_has_a_case_too() -> None:
    """Small letters for tables of a database that writes large ones."""
    source = _source(target="{source}.{database:lower}_{table:lower}")
    assert route_of(source, TableId("ERP", None, "ORDERS")).target == ("erp", "erp_orders")
