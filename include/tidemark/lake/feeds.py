"""What a feed shows of its table. The commit that adds changes writes it into the newest snapshot of the feed."""

from __future__ import annotations

import msgspec
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH

from tidemark.lake import other_writers
from tidemark.lake.branches import MARKER, head, marker
from tidemark.lake.commits import commit_files
from tidemark.lake.properties import published

FED = "fed"
"""Marker of a feed (``Fed``, as JSON)."""


class Fed(msgspec.Struct, frozen=True, kw_only=True):
    """What the newest snapshot of a feed says."""

    snapshot: int
    """Of the published table: replaying the feed gives its rows."""
    ordinal: int
    """Number of the last addition."""
    key: list[str]
    masks: dict[str, str]
    """By masked column, how."""


def summary_of(state: Fed) -> dict[str, str]:
    """Return the entries that say so in the summary of a snapshot of the feed."""
    return {MARKER + FED: msgspec.json.encode(state).decode()}


def fed(feed: Table | None, branch: str = MAIN_BRANCH) -> Fed | None:
    """Return what a feed says that it shows; None if there is no feed, or it does not say."""
    text = marker(feed, FED, branch)
    return None if text is None else msgspec.json.decode(text, type=Fed)


def in_step(table: Table, feed: Table | None) -> int | None:
    """Return a snapshot of a table with the rows that its feed shows; None if the feed is behind.

    Maintenance moves ``main`` to other files with the same rows. Where another writer changed rows, it is the snapshot
    that was published, as long as the table has it.
    """
    state = fed(feed)
    if state is None or state.snapshot != published(table.properties).get("snapshot"):
        return None
    if not other_writers.row_changes(table, state.snapshot):
        return head(table)
    return state.snapshot if table.snapshot_by_id(state.snapshot) is not None else None


def keep_in_step(table: Table, feed: Table | None, branch: str) -> None:
    """Note in a feed that it shows the rows on a branch of its table, where the same rows were taken out of both."""
    state = fed(feed)
    if feed is not None and state is not None and in_step(table, feed) is not None:
        now = msgspec.structs.replace(state, snapshot=head(table, branch))
        commit_files(feed, [], summary=summary_of(now), branch=branch)
