"""What the demo's sources published, beside what the history says that they must publish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from tidemark.demo.secret import environment_of_masks
from tidemark.demo.story.model import ShopHistory
from tidemark.demo.story.options import as_owners_want
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.tables.schemas import COMMITTED_AT, POSITION

OPTIONS = "shop_options"
"""The source with options of tables. The others publish the tables of the shop as they are."""

FEED = "orders__feed"
"""The feed that it keeps: replayed, it gives the table."""

_ADDS = frozenset({"insert", "update_postimage"})

_OF_FEED = frozenset({"_change_type", "_change_ordinal", "_cut"})
"""Columns of a feed that its table does not have."""


def differences(lake: Lake, source: str, shop: ShopHistory) -> list[str]:
    """Return the published tables of a source that are not what the history ends with."""
    if source == OPTIONS:
        (secret,) = environment_of_masks().values()
        wanted = as_owners_want(shop, secret)
        found = {name: _ordered(_rows(lake, source, name).to_pylist()) for name in wanted}
        wanted[FEED], found[FEED] = wanted["orders"], _ordered(_replayed(_rows(lake, source, FEED).to_pylist()))
    else:
        wanted = shop.final_state()
        found = {name: published(lake, source, name, shop) for name in wanted}
    return [f"{source}.{name}" for name in wanted if found[name] != _ordered(wanted[name])]


def published(lake: Lake, source: str, table: str, shop: ShopHistory) -> list[dict[str, Any]]:
    """Return the rows of a published table of the shop, ordered by their values.

    Columns that the shop's table no longer has are left out if they are null in every row. Formats without statements
    leave such columns.
    """
    rows = _rows(lake, source, table)
    today = {column.name for column in shop.columns(table)}
    gone = [name for name in rows.column_names if name not in today and rows[name].null_count == len(rows)]
    return _ordered(rows.drop_columns(gone).to_pylist())


def _rows(lake: Lake, source: str, table: str) -> pa.Table:
    return lake.load(Identifier(source, table)).scan().to_arrow().drop_columns([POSITION, COMMITTED_AT])


def _replayed(changes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that the changes of a feed lead to. A row that is not there once shows how often it is."""
    rows: Counter[tuple[tuple[str, Any], ...]] = Counter()
    for change in changes:
        row = tuple((name, value) for name, value in change.items() if name not in _OF_FEED)
        rows[row] += 1 if change["_change_type"] in _ADDS else -1
    return [dict(row) | ({} if count == 1 else {"times": count}) for row, count in rows.items() if count]


def _ordered(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: [str(row[name]) for name in sorted(row)])
