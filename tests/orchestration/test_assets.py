"""What Airflow knows of published tables: which before the first run, and which events a task that publishes gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset, AssetAlias
from airflow.sdk.execution_time.context import OutletEventAccessors

from tidemark.lake.names import Identifier
from tidemark.orchestration.assets import announce, outlets_of, table_asset
from tidemark.sources.model import Source
from tidemark.stages import StageReport

ALIAS = AssetAlias("tidemark_erp")
ORDERS = Asset("tidemark://erp/orders")
ROWS = {"rows": 4, "verdict": "passed"}


def outlets(target: str, *tables: str, **targets: str) -> set[str]:
    """Return the addresses of the assets that are known beforehand."""
    named: dict[str, dict[str, str]] = {name: {} for name in tables}
    named |= {name.replace("__", "."): {"target": given} for name, given in targets.items()}
    fields = {"source": "erp", "format": "canal_json", "landing": "/landing/*", "target": target, "tables": named}
    alias, *assets = outlets_of(Source.model_validate(fields))
    assert alias == ALIAS
    assert all(isinstance(asset, Asset) for asset in assets)
    return {asset.uri for asset in assets if isinstance(asset, Asset)}


@pytest.mark.parametrize(
    ("target", "tables", "expected"),
    [
        ("{source}.{table}", {"shop.orders": None, "crm.public.people": None}, {"erp/orders", "erp/people"}),
        ("{source}.{table}", {"a.orders": None, "b.orders": None}, {"erp/orders"}),
        ("lake.{table:lower}", {"SHOP.ORDERS": None}, {"lake/orders"}),
        ("{source}.{table}", {"shop.orders": "lake.sales", "shop.x": "y"}, {"lake/sales", "erp/y"}),
        ("{source}.{table}", {"shop.*": None, "shop.orders_?": "orders"}, {"erp/orders"}),
        ("{source}.{table}", {r"shop_(\d+).orders": "orders_$1"}, set()),
        ("{source}.{schema}_{table}", {"shop.orders": None}, set()),
        ("{database}.{table}", {"shop.orders": None}, set()),
    ],
)
def test_outlets_are_the_tables_whose_names_the_source_file_tells(
    target: str, tables: dict[str, str | None], expected: set[str]
) -> None:
    """No tables of a pattern that may match many, nor tables whose target needs what only messages carry."""
    plain = [name for name, given in tables.items() if given is None]
    targets = {name: given for name, given in tables.items() if given is not None}
    assert outlets(target, *plain, **targets) == {f"tidemark://{name}" for name in expected}


def test_a_name_that_mysql_cannot_hold_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow on MySQL takes ASCII alone: the address is percent-encoded there, and as the name is elsewhere."""
    assert table_asset(Identifier("erp", "订单")).uri == "tidemark://erp/订单"
    monkeypatch.setattr("airflow.sdk.definitions.asset.SQL_ALCHEMY_CONN", "mysql://airflow@localhost/airflow")
    assert table_asset(Identifier("erp", "订单")).uri == "tidemark://erp/%E8%AE%A2%E5%8D%95"
    assert table_asset(Identifier("erp", "my orders$")).uri == "tidemark://erp/my orders$"


def heard(details: dict[str, Any], *, fresh: int = 1, attempt: int = 1) -> tuple[list[Any], dict[str, Any]]:
    """Return the outlets that publish has at its end, and by address what it says of each asset."""
    report = StageReport(stage="publish", source="erp", summary={"cut": 3, "fresh": fresh}, details=details)
    events = OutletEventAccessors()
    context: Any = {"outlet_events": events, "ti": SimpleNamespace(try_number=attempt)}
    left = announce(report, [ALIAS, ORDERS, Asset("tidemark://erp/late")], context)
    extras = {asset.uri: events[asset].extra for asset in left if isinstance(asset, Asset)}
    return left, extras | {each.dest_asset_key.uri: each.extra for each in events[ALIAS].asset_alias_events}


def test_only_what_a_cut_has_is_announced() -> None:
    """A table that the source file names by itself, any other by the alias; of events that are held, nothing."""
    left, extras = heard({"erp.orders": ROWS, "erp.found": ROWS | {"held": 2}, "erp.late": {"held": 1}})
    assert left == [ALIAS, ORDERS]
    assert extras == {
        "tidemark://erp/orders": {"cut": 3, **ROWS},
        "tidemark://erp/found": {"cut": 3, **ROWS, "held": 2},
    }


@pytest.mark.parametrize(("fresh", "attempt", "known"), [(1, 1, True), (0, 1, False), (0, 2, True)])
def test_a_run_that_published_nothing_announces_nothing(fresh: int, attempt: int, known: bool) -> None:  # noqa: FBT001
    """A second attempt announces again, because the first may have ended right after publishing."""
    left, extras = heard({"erp.orders": ROWS}, fresh=fresh, attempt=attempt)
    assert (ORDERS in left, "tidemark://erp/orders" in extras) == (known, known)
