"""Fold actions to one row for each key: its newest action, and the newest value of each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.window import WindowSpec

from tidemark.folding import frames, key_bounds, keyed_by_cell, log_places, row_images, row_needs
from tidemark.folding.frames import key_names, value_numbers
from tidemark.folding.row_images import Wanted
from tidemark.folding.truncates import Truncates
from tidemark.tables.plan import Plan
from tidemark.text import quoted
from tidemark.values.image_reader import field


def fold(
    acted: DataFrame,
    plan: Plan,
    apart: Sequence[str] = (),
    truncates: Truncates | None = None,
    *,
    images: Wanted | None = None,
) -> DataFrame:
    """Fold actions to one row for each key.

    Args:
        acted: the result of ``actions.actions``, without the actions that are set aside; where updates arrive as two
            events, the result of ``update_halves.settled``.
        plan: the table's plan.
        apart: columns of ``acted`` that say which table an action belongs to, where several tables are folded together.
        truncates: with soft deletes and partial images: all TRUNCATEs that are known.
        images: which before images are collected; ``acted`` has the columns ``row_images.KEPT``. None: none.

    Returns:
        ``apart``; ``k0 .. kn``; ``position``, ``committed_at``, ``deleted`` and ``moved_away`` of the key's newest
        action; ``c<n>``: the newest value of each column outside the key; ``duplicates``: how many events are copies
        of others; ``overtaken``: how many others are not the newest action. Deletes of old keys are counted in neither:
        their events are counted where they wrote the new key. ``differing``: how many copies say something else than
        the event, where the position is its identity. Where the plan ``compares``: ``begins``, what the key's
        oldest action needs, and ``breaks``, how many others contradict the one before (``row_needs``). With
        ``images``: ``row_images.FOLDED``.

        A delete writes null to ``c<n>``. With soft deletes, deletes that are the newest actions leave the row as it was
        with the values of their old images. Then there are ``first``, the position of the key's oldest action,
        and ``keeps``: there are only deletes, so a value that none of them has is the stored one.

        With partial images also ``whole_at``, the position at which the row was last written whole (null: never),
        ``in_part``, whether any event wrote a part of a row that has to be there, ``ended_at``, the position of its
        last delete (null: none), and ``p<n>``, the position at which a column was written (null: no event wrote it; in
        a row that is deleted softly: no event had it). For a key that has only idle halves of updates, the row has the
        counts and no position: each is overtaken.
    """
    keys = [*apart, *key_names(plan)]
    if plan.found.partial:
        return keyed_by_cell.fold(acted, plan, keys, truncates, images=images)
    return _newest(acted, plan, keys, images=images)


_LONGEST_PATH = 1 << 16


def _newest(acted: DataFrame, plan: Plan, keys: Sequence[str], *, images: Wanted | None) -> DataFrame:
    """Return the newest action of each key: where all images are whole, nothing of the older ones is left."""
    cells = [field(number) for number in value_numbers(plan)]
    payload = ["position", "committed_at", "deleted", "moved_away", *cells]
    # All actions of a key meet in one task, sorted. Those of a hot key spill to disk when they exceed the memory.
    order = Window.partitionBy(*keys).orderBy(*map(F.desc, ("position", "own file", "place", "row")))
    of_key = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    own, no = ~F.col("moved_away"), F.lit(False)
    steps = {"age": F.row_number().over(order), "is_copy": F.coalesce(_repeats(plan, own, order), no)}
    counts = {
        "duplicates": F.count_if(own & F.col("is_copy")).over(of_key),
        # In the row of the newest action, which is the one that stays.
        "overtaken": F.count_if(own & ~F.col("is_copy")).over(of_key) - own.cast("int"),
    }
    if plan.compares:
        steps["breaks"] = row_needs.breaks(order)
        counts |= {"begins": F.last("needs").over(of_key), "breaks": F.count_if("breaks").over(of_key)}
    marks = _shown_softly(cells, of_key) if plan.soft else {}
    # The common beginning of all paths would be a quarter of the bytes that are shuffled and sorted.
    own_file = F.substring("file", plan.found.common_path + 1, _LONGEST_PATH)
    own_columns = {"own file": own_file}
    if images:
        own_columns |= row_images.own_images()
        steps |= row_images.met(cells, order, pairs=images.pairs)
        counts |= {name: each.over(of_key) for name, each in row_images.folded().items()}
    if plan.has_deliveries:
        own_columns["content"] = log_places.content(["deleted", *cells])
    else:
        own_columns["content"] = frames.content(plan)
        other = F.lead("content").over(order) != F.col("content")
        steps["differs"] = F.coalesce(own & _repeats(plan, own, order) & other, no)
        counts["differing"] = F.count_if("differs").over(of_key)
    ordered = acted.withColumns(own_columns).withColumns(steps)
    ordered = ordered.withColumns(row_images.compared(key_names(plan), pairs=images.pairs)) if images else ordered
    newest = ordered.withColumns(counts | marks).where(F.col("age") == 1)
    # As SQL: PySpark calls the JVM four times for each column of a `select`.
    return newest.selectExpr(*map(quoted, dict.fromkeys([*keys, *payload, *counts, *marks])))


def _shown_softly(cells: Sequence[str], newest_first: WindowSpec) -> dict[str, Expression]:
    """Return what rows show where deletes are soft: in each cell, the newest value that an action has for it.

    A whole image has a value for all cells. A delete has the values of its old image that are not null: a null there
    may as well stand for a value that was not captured.
    """

    def newest_value(cell: str) -> Expression:
        value = F.when(~F.col("deleted") | F.col(cell).isNotNull(), F.struct(cell))
        return F.first(value, ignorenulls=True).over(newest_first)[cell]

    return {
        **{cell: newest_value(cell) for cell in cells},
        "first": F.min("position").over(newest_first),
        "keeps": F.every("deleted").over(newest_first),
    }


def _repeats(plan: Plan, own: Expression, order: WindowSpec) -> Expression:
    """Return whether an action is a copy of the one behind it."""

    def same(column: Expression) -> Expression:
        return F.lead(F.when(own, column)).over(order) == column

    if not plan.has_deliveries:
        return same(F.col("position"))
    return same(log_places.log_place()) & F.lead("content").over(order).eqNullSafe(F.col("content"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What ``totals`` counted; what was not asked for is 0."""

    duplicates: int = 0
    overtaken: int = 0
    newest: int = 0
    """Rows whose newest action is an event of their own key: the table decides what becomes of it."""
    away: int = 0
    """Rows whose key moved away: each of them is deleted."""
    deletes: int = 0
    marks: int = 0
    """Deletes of their own key, where deletes are soft."""
    parts: int = 0
    """Rows that an event wrote a part of."""
    differing: int = 0
    """Copies that say something else than their event."""
    committed_at: int = 0
    """Of the newest action, epoch µs, UTC; 0: unknown."""
    oldest: str | None = None
    """The lowest position; None: there is no row."""
    bounds: Mapping[str, str | None]
    """``key_bounds.totals``."""
    fresh: int = 0
    """Keys that begin without a row and end with one."""
    maybe_fresh: int = 0
    gone: int = 0
    """Keys that begin with a row and end without one."""
    maybe_gone: int = 0
    passing: int = 0
    """Keys that begin without a row and end without one."""
    breaks: int = 0
    """Actions that contradict the one before."""
    following: int = 0
    unproved: int = 0
    telling: int = 0
    silent: int = 0
    """These four: ``row_images.folded``."""
    images: int = 0
    """Before images that were collected."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return the totals in a row of ``totals``, which has nulls or nothing at all where there was no row to count.

        Raises:
            TypeError: the row has a column that is no total.
        """
        bounds = {name: value for name, value in row.items() if key_bounds.is_bound(name)}
        counts = {name: value for name, value in row.items() if name not in bounds and value is not None}
        return cls(bounds=bounds, **counts)

    @property
    def events(self) -> int:
        """All events that were folded."""
        return self.duplicates + self.overtaken + self.newest


def totals(plan: Plan, *, images: bool = False) -> list[Expression]:
    """Return aggregates over the rows of ``fold``, named as in ``Totals``.

    They are for the ledger, and for the choice how a batch is written.
    """
    return [
        F.sum("duplicates").alias("duplicates"),
        F.sum("overtaken").alias("overtaken"),
        F.count_if(~F.col("moved_away")).alias("newest"),
        F.count_if("moved_away").alias("away"),
        F.count_if("deleted").alias("deletes"),
        F.count_if(F.col("deleted") & ~F.col("moved_away") & F.lit(plan.soft)).alias("marks"),
        F.count_if("in_part" if plan.found.partial else F.lit(False)).alias("parts"),
        F.unix_micros(F.max("committed_at")).alias("committed_at"),
        F.min("first" if plan.soft else "position").alias("oldest"),
        *key_bounds.totals(plan),
        *(row_images.totals() if images else []),
        *(_begun() if plan.compares else []),
        *([] if plan.has_deliveries else [F.sum("differing").alias("differing")]),
    ]


def _begun() -> list[Expression]:
    """Return how many keys begin without a row, or may, and how many lose one: what a merge must find."""
    row, no_row = row_needs.ROW, row_needs.NO_ROW
    is_untold = ~F.col("begins").isin(row, no_row)
    return [
        F.count_if((F.col("begins") == no_row) & ~F.col("deleted")).alias("fresh"),
        F.count_if(is_untold & ~F.col("deleted")).alias("maybe_fresh"),
        F.count_if((F.col("begins") == row) & F.col("deleted")).alias("gone"),
        F.count_if(is_untold & F.col("deleted")).alias("maybe_gone"),
        F.count_if((F.col("begins") == no_row) & F.col("deleted") & ~F.col("moved_away")).alias("passing"),
        F.sum("breaks").alias("breaks"),
    ]


def truncated_softly(folded: DataFrame, plan: Plan, truncates: Truncates) -> DataFrame:
    """Return the folded rows after a TRUNCATE, for a table with soft deletes.

    The TRUNCATE deletes, at its position, every key that has an event before it, and carries none of its values.

    Args:
        folded: the result of ``fold`` over all events, also the events before the TRUNCATE.
        plan: the table's plan.
        truncates: all that are known; at least one.
    """
    over = truncates.position(plan)
    dead = F.coalesce(F.col("position") < over, F.lit(False))
    steps = {
        "committed_at": F.when(dead, truncates.committed_at(plan)).otherwise(F.col("committed_at")),
        "deleted": F.col("deleted") | dead,
        "position": F.when(F.col("position").isNotNull(), F.greatest("position", over)),
    }
    if plan.found.partial:
        steps["whole_at"] = F.greatest("whole_at", over)
    return folded.withColumns(steps)
