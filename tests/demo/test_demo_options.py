"""The demo's source with options of tables: the history of its shards, and what its options must make of it."""

from __future__ import annotations

import stat
from collections import Counter
from pathlib import Path

import pytest

from tidemark.demo.render import render
from tidemark.demo.secret import VARIABLE, environment_of_masks, make_secret, secret_file
from tidemark.demo.story.model import Row, ShopHistory
from tidemark.demo.story.options import as_owners_want
from tidemark.demo.story.shards import sharded
from tidemark.demo.story.shop_history import history
from tidemark.sources.files import default_folder, load_source


@pytest.fixture(scope="module")
def shop() -> ShopHistory:
    """Return the one history."""
    return history()


@pytest.fixture(scope="module")
def wanted(shop: ShopHistory) -> dict[str, list[Row]]:
    """Return what the source must publish."""
    return as_owners_want(shop, "a secret of some length")


def test_the_shards_have_all_orders_and_the_other_tables_are_the_same(shop: ShopHistory) -> None:
    """Each order lies in one shard, and in the one that its id says."""
    whole, parts = shop.final_state(), sharded(shop).final_state()
    shards = [parts.pop(f"orders_{shard}") for shard in (0, 1)]
    orders = whole.pop("orders")
    assert parts == whole
    assert all(shards)
    assert sorted((row for rows in shards for row in rows), key=repr) == sorted(orders, key=repr)
    assert {row["order_id"] % 2 for row in shards[1]} == {1}  # type: ignore[operator]  # ids are numbers


def test_every_option_shows_in_the_rows(shop: ShopHistory, wanted: dict[str, list[Row]]) -> None:
    """Rows that are left out, values that are masked, kept and derived, and customers that still join with orders."""
    final = shop.final_state()
    assert 0 < len(wanted["order_lines"]) < len(final["order_lines"])
    assert any(row["quantity"] == 3 for row in wanted["order_lines"])  # the end of the filter
    assert {None, b""} < {row["receipt"] for row in wanted["payments"]}
    assert {row["currency"] for row in wanted["payments"]} == {"EUR", "CHF"}
    numbers = {row["customer_number"] for row in wanted["customers"]}
    assert len(numbers) == len(final["customers"])
    assert {row["customer_number"] for row in wanted["orders"]} & numbers
    plain = {str(row[name]) for row in final["customers"] for name in ("customer_number", "name", "email") if row[name]}
    assert not plain & {str(value) for row in wanted["customers"] for value in row.values()}


def test_versions_are_fewer_than_events_and_end_with_the_rows(shop: ShopHistory, wanted: dict[str, list[Row]]) -> None:
    """Of each order, the versions follow each other, and the current ones are the rows."""
    versions = wanted["orders__history"]
    event_count = sum(event.table == "orders" and event.after is not None for event in shop.events())
    assert len(wanted["orders"]) < len(versions) < event_count
    times = {"valid_from", "valid_to", "is_current"}
    current = [{name: row[name] for name in row if name not in times} for row in versions if row["is_current"]]
    assert sorted(current, key=repr) == sorted(wanted["orders"], key=repr)
    assert max(Counter(row["order_id"] for row in versions).values()) > 30
    assert all(row["valid_to"] is None or row["valid_from"] <= row["valid_to"] for row in versions)  # type: ignore[operator]  # times


def test_the_secret_is_made_once_for_a_home_and_only_its_owner_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it, tasks get no variable; the source file names the variable that they get."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "one"))
    assert environment_of_masks() == {}
    make_secret()
    made = environment_of_masks()
    make_secret()
    assert environment_of_masks() == made
    assert stat.S_IMODE(secret_file().stat().st_mode) == 0o600
    assert load_source(default_folder() / "shop_options.yaml").mask_secret == VARIABLE
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "other"))
    make_secret()
    assert environment_of_masks() != made


def test_rendering_twice_gives_the_same_bytes(shop: ShopHistory, tmp_path: Path) -> None:
    """The dumps have both shards, a broken message and late files."""
    one, other = (render("shop_options", shop, tmp_path / name) for name in ("one", "other"))
    assert [path.read_bytes() for path in one.files] == [path.read_bytes() for path in other.files]
    assert (one.total.broken, one.total.unknown_operation) == (1, 1)
    assert one.late_files
    assert one.total.duplicates
