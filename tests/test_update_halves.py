"""Updates in two messages whose new row is partial: the halves meet in one run, or in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from histories import deliver
from running import run_all
from tidemark.lake import Lake
from tidemark.ledger import Ledger
from tidemark.sources import Source

pytestmark = pytest.mark.spark
TABLES = ("sized", "together", "apart", "reversed")
_OLD, _NEW = "UPDATE BEFORE", "UPDATE AFTER"


def _message(table: str, op: str, seq: int, **data: str) -> bytes:
    """As Quest SharePlex writes it; the update is the second and last event of its transaction, where that is told."""
    told: dict[str, Any] = {"op": op, "table": f"shop.{table}", "scn": 100, "seq": seq, "trans": f"t.{table}"}
    if table == "sized":
        told["size"] = 2
    return json.dumps({"meta": told, "data": data}).encode()


def _halves(table: str) -> tuple[bytes, bytes]:
    return (
        _message(table, _OLD, 2, id="1", name="a", note="x"),
        _message(table, _NEW, 2, id="1", name="b"),
    )


def test_halves_meet_in_one_run_or_in_one_transaction(
    source: Callable[..., Source], spark: SparkSession, lake: Lake
) -> None:
    """A column that the new half did not capture is kept where the halves meet; where they do not, it is not known.

    With `seq` and `size` an old half waits for the new one. Without, and where the new half came first, the old half
    is published as the delete that it is (docs/formats/shareplex_json.md, Halves).
    """
    shop = source("shareplex_json", tables={"shop.*": {"key": ["id"]}}, max_deletes=1)
    landing = Path(shop.landing).parent
    halves = {table: _halves(table) for table in TABLES}
    first = [_message(table, "ins", 1, id="1", name="a", note="x") for table in TABLES]
    first += [halves["sized"][0], *halves["together"], halves["apart"][0], halves["reversed"][1]]
    deliver(landing, "a", first)
    run_all(shop)
    held = {row["object"]: row["held"] for row in Ledger(lake, shop.source).read("tables")}
    assert held == {"shop.sized": 2, "shop.together": 0, "shop.apart": 0, "shop.reversed": 0}
    deliver(landing, "b", [halves["sized"][1], halves["apart"][1], halves["reversed"][0]])
    run_all(shop)
    found = {}
    for table in TABLES:
        (row,) = lake.load((shop.source, table)).scan().to_arrow().to_pylist()
        found[table] = (row["name"], row["note"])
    assert found == {"sized": ("b", "x"), "together": ("b", "x"), "apart": ("b", None), "reversed": ("b", None)}
