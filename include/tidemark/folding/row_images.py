"""Images of one row that follow each other: the before image of an event is, as text, the after image before it.

Pure ``DataFrame -> DataFrame`` functions. One producer writes both images, so a sound stream usually has the same text
twice. Hashes of texts prove it without reading an image. What they do not prove is told of a share of the events, for
``compaction.before_image_samples`` to read.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.window import WindowSpec

from tidemark.events import Operation
from tidemark.folding import contradictions, log_places

_WAS, _LEFT, _TEXT = "was hash", "left hash", "was text"

KEPT = (_WAS, _LEFT, _TEXT)
"""Columns of events (``with_images``) that actions keep."""

_TELLS = "tells"
"""Column of actions: whether an UPDATE has a before image; null for other actions."""

ACTED = (*KEPT, _TELLS)
"""Columns of actions (``told``)."""

IMAGES = "images"
"""Column of folded rows: before images to compare, with what the event behind left. An array of structs, or null."""

LONGEST = 1 << 14
"""Characters: no longer image is handed to the driver."""


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


def told() -> dict[str, Expression]:
    """Return columns of actions: the hashes and the before image of the action's own row."""
    is_of_row = F.col("needs") == contradictions.ROW  # a row that moved here was another one before
    own = {name: F.when(is_of_row, F.col(f"`{name}`")) for name in (_WAS, _TEXT)}
    left = F.when(~F.col("deleted"), F.col(f"`{_LEFT}`"))
    is_update = left.isNotNull() & F.col("needs").isin(contradictions.ROW, contradictions.ANY)
    return {**own, _LEFT: left, _TELLS: F.when(is_update, F.col(f"`{_WAS}`").isNotNull())}


_BEHIND, _OLDEST, _FOLLOWS = "behind", "is oldest", "follows"


def met(cells: Sequence[str], newest_first: WindowSpec) -> dict[str, Expression]:
    """Return columns of actions: what the action behind leaves, and whether there is none.

    Args:
        cells: names of the columns outside the key.
        newest_first: the actions of a key.
    """
    behind = F.lead(_leaves(cells)).over(newest_first)
    return {_BEHIND: behind, _OLDEST: F.lead("position").over(newest_first).isNull()}


def met_in_parts(cells: Sequence[str], oldest_first: WindowSpec) -> dict[str, Expression]:
    """Return the same columns of an ``event`` of a key whose events write parts of the row.

    Events that do not tell what they leave are passed over: old halves of updates.
    """
    before = oldest_first.rowsBetween(Window.unboundedPreceding, -1)
    told = F.when(F.col(f"event.`{_LEFT}`").isNotNull(), _leaves(cells, "event."))
    behind = F.last(told, ignorenulls=True).over(before)
    return {_BEHIND: behind, _OLDEST: F.lag("position").over(oldest_first).isNull()}


def _leaves(cells: Sequence[str], event: str = "") -> Expression:
    """Return what an action leaves, and where it is."""
    left = F.col(f"{event}`{_LEFT}`")
    row = F.when(left.isNotNull(), F.struct(*(F.col(f"{event}{cell}").alias(cell) for cell in cells)))
    return F.struct("position", _at(event), left.alias("hash"), row.alias("left"))


def _at(event: str) -> Expression:
    return F.unix_micros(f"{event}committed_at").alias("at")


def compared(keys: Sequence[str], event: str = "") -> dict[str, Expression]:
    """Return columns of actions with ``met``: whether the row before is what was left of it, and what to compare.

    Args:
        keys: names of the key columns.
        event: a prefix for the columns of the action.
    """
    was, text = (F.col(f"{event}`{name}`") for name in (_WAS, _TEXT))
    is_other = log_places.log_place(f"{_BEHIND}.position") != log_places.log_place()
    follows = F.when(is_other, was == F.col(f"{_BEHIND}.hash"))
    own = [F.col(f"{event}{name}").alias(name) for name in ("shape", "absent")]
    own.append((F.col(f"{event}deleted") & ~F.col(f"{event}moved_away")).alias("deletes"))
    image = F.struct(F.struct(*keys).alias("key"), text.alias("was"), *own, "position", _at(event), _BEHIND)
    return {_FOLLOWS: follows, IMAGES: F.when(text.isNotNull() & (F.col(f"`{_OLDEST}`") | ~follows), image)}


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
