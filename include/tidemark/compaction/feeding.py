"""Adds to a table's feed what differs between its rows as readers see them and as a cut will show them.

The rows come from the files that the cut changed, whatever changed them: folding, TRUNCATE, defaults, a rebuild, a
restore. The newest snapshot of the feed records, beside the data, what the feed shows already. So no change is added
twice. If a feed is behind (it was off, or another writer broke off a cut), the table is compared with the rows that the
feed shows so far. If another writer changed the feed itself, it begins anew.
"""

from __future__ import annotations

from typing import NamedTuple

from pyiceberg.table import Table
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction.feed_rows import FeedRows
from tidemark.compaction.run import Cut
from tidemark.lake import changed_files, names, other_writers, pending_schema
from tidemark.lake.branches import branch_from_main, fast_forward, head
from tidemark.lake.commits import commit_files
from tidemark.lake.feeds import Fed, fed, in_step, summary_of
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import FEED_PROPERTIES, OBJECT_PROPERTY, SOURCE_PROPERTY
from tidemark.lake.statistics import rows_in
from tidemark.spark.session import open_session
from tidemark.tables.feeds import CHANGE_ORDINAL, OWN_NAMES, Shown, evolve, feed_schema, shown


class Feed(NamedTuple):
    """The feed of a table, to which a cut adds."""

    lake: Lake
    target: Identifier
    """The table that is followed."""
    cut: Cut


def add(feed: Feed, snapshot: int) -> None:
    """Add to the feed, on the branch of the cut, what changes for readers when ``main`` moves to a snapshot."""
    lake, target, cut = feed
    table, known = lake.load(target), lake.find(names.feed(target))
    wanted = shown(table, snapshot, cut.number, known)
    branch_from_main(_ensured(feed, table, wanted), cut.branch)
    _write(feed, wanted, snapshot, in_step(table, known))


def follow(lake: Lake, target: Identifier, cut: int, before: int | None) -> None:
    """Add to the feed, at once, what differs since ``main`` of its table was moved back to a cut.

    Args:
        lake: the lake.
        target: the table, on whose newest snapshot its ``main`` stands.
        cut: the cut that it shows.
        before: of the table, with the rows that the feed shows; None: it is behind.
    """
    table, known = lake.load(target), lake.find(names.feed(target))
    recorded = fed(known)
    if known is None or (recorded is not None and recorded.snapshot == head(table)):
        return
    feed = Feed(lake, target, Cut(number=cut, batch=0))
    branch = feed.cut.branch
    wanted = shown(table, head(table), cut, known)
    branch_from_main(_ensured(feed, table, wanted), branch)
    _write(feed, wanted, head(table), before)
    made = lake.load(names.feed(target))
    fast_forward(made, branch, changes=pending_schema.changes(made, cut))


def _ensured(feed: Feed, table: Table, wanted: Shown) -> Table:
    """Return the feed with the columns of the cut; it is made where there is none."""
    own = {name: table.properties[name] for name in (OBJECT_PROPERTY, SOURCE_PROPERTY)}
    made = feed.lake.ensure(names.feed(feed.target), feed_schema(wanted.columns), {**FEED_PROPERTIES, **own})
    return evolve(made, wanted.columns, feed.cut.number)


def _write(feed: Feed, wanted: Shown, snapshot: int, before: int | None) -> None:
    """Add the changes to the branch of the cut in one snapshot, which says what the feed shows with them.

    Args:
        feed: the feed.
        wanted: how the table will be seen.
        snapshot: of the table, with the rows that the feed is to show.
        before: of the table, with the rows that the feed shows; None: only the feed itself has these rows.
    """
    table, made = feed.lake.load(feed.target), feed.lake.load(names.feed(feed.target))
    recorded, empty = fed(made), not rows_in(made)
    anew = recorded is not None and (
        _begins_anew(recorded, wanted, behind=before is None) or other_writers.changes(made) is not None
    )
    behind = before is None and not (anew or empty)
    ordinal = 1 + (recorded.ordinal if recorded is not None else 0 if empty else _last_ordinal(feed))
    summary = summary_of(Fed(snapshot=snapshot, ordinal=ordinal, key=list(wanted.key), masks=wanted.masks))
    files = changed_files.between(table, None if anew else before, snapshot)
    if not (files or behind or anew):
        commit_files(made, [], summary=summary, branch=feed.cut.branch)
        return
    rows = FeedRows(
        session=open_session(),
        place=feed.lake.spark_name(names.feed(feed.target), feed.cut.branch),
        wanted=wanted,
    )
    changes = rows.of_files(changed_files.file_system(table), files)
    if behind:
        changes = changes.unionByName(rows.replayed())
    leaving = sorted(set(made.schema().column_names) - {column.stored for column in wanted.columns} - OWN_NAMES)
    feed_rows = rows.of_changes(changes, ordinal=ordinal, cut=feed.cut.number, leaving=leaving)
    writer = feed_rows.writeTo(rows.place)
    for name, value in summary.items():
        writer = writer.option(f"snapshot-property.{name}", value)
    if anew:
        writer.overwrite(F.lit(True))
    else:
        writer.append()


def _begins_anew(recorded: Fed, wanted: Shown, *, behind: bool) -> bool:
    """Return whether nothing that the feed holds may stay.

    Values that are masked now must not be read plain in it. Changes that it holds by another key cannot be replayed.
    """
    kept = [column for column in wanted.columns if column.was is not None]
    masked = any(recorded.masks.get(str(column.was)) != wanted.masks.get(column.name) for column in kept)
    return masked or (behind and recorded.key != list(wanted.key))


def _last_ordinal(feed: Feed) -> int:
    """Return the number of the last addition, from the rows: the snapshots that say so have expired."""
    rows = open_session().table(feed.lake.spark_name(names.feed(feed.target)))
    row = rows.agg(F.max(CHANGE_ORDINAL)).first()
    return int(row[0] or 0) if row else 0
