"""Feeds as their readers take them: replayed from the beginning, beside the published rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, feed
from tidemark.tables.feeds import AFTER, CHANGE_ORDINAL, CHANGE_TYPE, INSERT, OWN_NAMES

Rows = Counter[str]


def changes(lake: Lake, table: Identifier) -> list[dict[str, Any]]:
    """All rows of a feed, in the order of their additions."""
    found: list[dict[str, Any]] = lake.load(feed(table)).scan().to_arrow().to_pylist()
    return sorted(found, key=lambda row: row[CHANGE_ORDINAL])


def replayed(lake: Lake, table: Identifier) -> Rows:
    """The rows that come about where each change of the feed is made, from nothing on."""
    rows: Rows = Counter()
    for change in changes(lake, table):
        rows[_told(change)] += 1 if change[CHANGE_TYPE] in {INSERT, AFTER} else -1
    return Counter({row: count for row, count in rows.items() if count})


def published(lake: Lake, table: Identifier) -> Rows:
    """The rows that readers of the table see."""
    return Counter(map(_told, lake.load(table).scan().to_arrow().to_pylist()))


def _told(row: dict[str, Any]) -> str:
    return repr(sorted((name, value) for name, value in row.items() if name not in OWN_NAMES))
