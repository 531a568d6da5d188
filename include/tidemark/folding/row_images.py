"""Images of one row that follow each other: the before image of an event is, as text, the after image before it.

Pure ``DataFrame -> DataFrame`` functions. One producer writes both images, so a sound stream usually has the same text
twice. Hashes of texts prove it without reading an image. Images that they do not prove are collected for a share of the
events, and ``compaction.before_image_samples`` reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.window import WindowSpec

from tidemark.events import Operation
from tidemark.folding import log_places, row_needs

_WAS, _LEFT, _TEXT = "was hash", "left hash", "was text"

KEPT = (_WAS, _LEFT, _TEXT)
"""Columns of events (``with_images``) that actions keep."""

_TELLS = "tells"
"""Column of actions: whether an UPDATE has a before image; null for other actions."""

ACTED = (*KEPT, _TELLS)
"""Columns of actions (``own_images``)."""

IMAGES = "images"
"""Column of folded rows: before images to compare, with what the event behind left. An array of structs, or null."""

LONGEST = 1 << 14
"""Characters: no longer image is handed to the driver."""


class Wanted(NamedTuple):
    """Which before images of a batch are collected."""

    share: int
    """Of so many events, one has it."""
    pairs: bool
    """Whether images that do not follow as texts are collected too, with what the event behind left."""


def with_images(events: DataFrame, share: int) -> DataFrame:
    """Return events with hashes of their images, and some with the before image itself.

    Args:
        events: row changes of the change log.
        share: of so many events, one has it.
    """
    operation = F.col("operation")
    was = F.when(operation.isin(Operation.UPDATE.value, Operation.DELETE.value), F.col("before"))
    left = F.when(operation.isin(Operation.INSERT.value, Operation.UPDATE.value), F.col("after"))
    is_in = F.length(was) <= LONGEST
    if share > 1:
        is_in &= F.pmod(F.xxhash64("position", "place"), F.lit(share)) == 0
    return events.withColumns({_WAS: _hash(was), _LEFT: _hash(left), _TEXT: F.when(is_in, was)})


def _hash(text: Expression) -> Expression:
    return F.when(text.isNotNull(), F.xxhash64(text))


def own_images() -> dict[str, Expression]:
    """Return columns of actions: the hashes and the before image of the action's own row."""
    is_of_row = F.col("needs") == row_needs.ROW  # a row that moved here was another one before
    own = {name: F.when(is_of_row, F.col(f"`{name}`")) for name in (_WAS, _TEXT)}
    left = F.when(~F.col("deleted"), F.col(f"`{_LEFT}`"))
    is_update = left.isNotNull() & F.col("needs").isin(row_needs.ROW, row_needs.ANY)
    return {**own, _LEFT: left, _TELLS: F.when(is_update, F.col(f"`{_WAS}`").isNotNull())}


_BEHIND, _HASH, _PLACE, _OLDEST, _FOLLOWS = "behind", "hash behind", "place behind", "is oldest", "follows"


def met(cells: Sequence[str], newest_first: WindowSpec, *, pairs: bool) -> dict[str, Expression]:
    """Return columns of actions: what the action behind leaves, and whether there is none.

    Args:
        cells: names of the columns outside the key.
        newest_first: the actions of a key.
        pairs: ``Wanted.pairs``.
    """
    found = {
        _HASH: F.lead(F.col(f"`{_LEFT}`")).over(newest_first),
        _PLACE: F.lead(log_places.log_place()).over(newest_first),
        _OLDEST: F.lead("position").over(newest_first).isNull(),
    }
    return {**found, _BEHIND: F.lead(_leaves(cells)).over(newest_first)} if pairs else found


def met_in_parts(cells: Sequence[str], oldest_first: WindowSpec) -> dict[str, Expression]:
    """Return the same columns of an ``event`` of a key whose events write parts of the row.

    Events that do not say what they leave are passed over, such as old halves of updates.
    """
    before = oldest_first.rowsBetween(Window.unboundedPreceding, -1)
    left = F.col(f"event.`{_LEFT}`")

    def last(value: Expression) -> Expression:
        return F.last(F.when(left.isNotNull(), value), ignorenulls=True).over(before)

    return {
        _HASH: last(left),
        _PLACE: last(log_places.log_place()),
        _OLDEST: F.lag("position").over(oldest_first).isNull(),
        _BEHIND: last(_leaves(cells, "event.")),
    }


def _leaves(cells: Sequence[str], event: str = "") -> Expression:
    """Return what an action leaves, and when."""
    row = F.struct(*(F.col(f"{event}{cell}").alias(cell) for cell in cells))
    is_known = F.col(f"{event}`{_LEFT}`").isNotNull()
    return F.struct(_at(event), F.when(is_known, row).alias("left"))


def _at(event: str) -> Expression:
    return F.unix_micros(f"{event}committed_at").alias("at")


def compared(keys: Sequence[str], event: str = "", *, pairs: bool = True) -> dict[str, Expression]:
    """Return columns of actions with ``met``: whether the row before is what was left of it, and what to compare.

    Args:
        keys: names of the key columns.
        event: a prefix for the columns of the action.
        pairs: ``Wanted.pairs``.
    """
    was, text, is_oldest = F.col(f"{event}`{_WAS}`"), F.col(f"{event}`{_TEXT}`"), F.col(f"`{_OLDEST}`")
    follows = F.when(F.col(f"`{_PLACE}`") != log_places.log_place(), was == F.col(f"`{_HASH}`"))
    own = [F.col(f"{event}{name}").alias(name) for name in ("shape", "absent")]
    own += [(F.col(f"{event}deleted") & ~F.col(f"{event}moved_away")).alias("deletes"), F.col("position"), _at(event)]
    behind = [F.col(_BEHIND)] if pairs else []
    image = F.struct(F.struct(*keys).alias("key"), text.alias("was"), *own, *behind, is_oldest.alias("is_oldest"))
    is_wanted = is_oldest | ~follows if pairs else is_oldest
    return {_FOLLOWS: follows, IMAGES: F.when(text.isNotNull() & is_wanted, image)}


def folded(event: str = "") -> dict[str, Expression]:
    """Return aggregates over the actions of a key with ``compared``: counts of before images, and ``IMAGES``.

    ``following``: images that follow as texts; ``unproved``: images that do not; ``telling`` and ``silent``: UPDATEs
    with a before image and without.

    Args:
        event: a prefix for the columns of the action.
    """
    tells = F.col(f"{event}{_TELLS}")
    return {
        "following": F.count_if(_FOLLOWS),
        "unproved": F.count_if(~F.col(_FOLLOWS)),
        "telling": F.count_if(tells),
        "silent": F.count_if(~tells),
        IMAGES: F.collect_list(IMAGES),
    }


FOLDED = ("following", "unproved", "telling", "silent", IMAGES)
"""Names of ``folded``."""


def totals() -> list[Expression]:
    """Return aggregates over folded rows."""
    counts = [F.sum(name).alias(name) for name in FOLDED if name != IMAGES]
    return [*counts, F.sum(F.size(IMAGES)).alias(IMAGES)]
