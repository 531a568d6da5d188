"""Fold actions to one row for each key where images may be parts of rows: each cell has a newest writer of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.folding import frames, log_places, row_images, row_needs
from tidemark.folding.captured import Captured
from tidemark.folding.frames import key_names, value_numbers
from tidemark.folding.row_images import Wanted
from tidemark.folding.truncates import Truncates
from tidemark.tables.plan import Plan
from tidemark.text import quoted
from tidemark.values.image_reader import field


def fold(
    acted: DataFrame, plan: Plan, keys: Sequence[str], truncates: Truncates | None, *, images: Wanted | None
) -> DataFrame:
    """Return the newest action of each key, with the newest value of each of its cells; as ``keyed.fold``."""
    once, cells = _once(acted, plan, keys, images=images), _cells(plan)
    newest = [
        F.max(_acts_at()).alias("position"),
        F.max_by(F.struct("event.committed_at", "event.deleted", "event.moved_away"), _acts_at()).alias("newest"),
        F.sum(F.when(F.col("copies") > 0, F.col("copies") - 1).otherwise(0)).alias("duplicates"),
        F.count_if(F.col("copies") > 0).alias("distinct"),
        F.count_if("differs").alias("differing"),
        F.max(F.when(~F.col("event.partial") | F.col("event.deleted"), _acts_at())).alias("whole_at"),
    ]
    is_part = F.col("event.partial") & ~F.col("event.deleted") & ~row_needs.may_make_rows("event.")
    newest += [F.some(is_part).alias("in_part"), F.max(F.when(F.col("event.deleted"), _acts_at())).alias("ended_at")]
    oldest_first = Window.partitionBy(*keys).orderBy("position")
    if plan.compares:
        once = once.withColumn("breaks", row_needs.breaks_in_parts(oldest_first))
        newest += [F.min_by("event.needs", _acts_at()).alias("begins"), F.count_if("breaks").alias("breaks")]
    if images:
        once = once.withColumns(row_images.met_in_parts(cells, oldest_first))
        once = once.withColumns(row_images.compared(key_names(plan), "event."))
        newest += [each.alias(name) for name, each in row_images.folded("event.").items()]
    if plan.soft:
        once = once.withColumn("died_at", _last_delete(keys))
        newest += [
            F.min(_acts_at()).alias("first"),
            F.every(F.col("event.deleted") | F.col("event.idle")).alias("keeps"),
            F.max_by(F.struct("position", "died_at"), F.when(~F.col("event.deleted"), _acts_at())).alias("written"),
        ]
    folded = once.groupBy(*keys).agg(*newest, *_last_written(plan))
    if plan.soft:
        folded = folded.withColumn("emptied_at", _emptied_at(plan, truncates))
    values = [column for number in value_numbers(plan) for column in _value_and_position(plan, number)]
    marks = ["first", "keeps"] if plan.soft else []
    overtaken = F.col("distinct") - F.coalesce((~F.col("newest.moved_away")).cast("int"), F.lit(0))
    counts = [F.col("duplicates"), overtaken.alias("overtaken"), F.col("differing")]
    ended_at = F.greatest("ended_at", "emptied_at") if plan.soft else F.col("ended_at")
    counts += [F.col("whole_at"), F.col("in_part"), ended_at.alias("ended_at")]
    counts += [F.col("begins"), F.col("breaks")] if plan.compares else []
    counts += [F.col(name) for name in row_images.FOLDED] if images else []
    return folded.select(*keys, "position", "newest.*", *values, *counts, *marks)


def _once(acted: DataFrame, plan: Plan, keys: Sequence[str], *, images: Wanted | None) -> DataFrame:
    """Return the actions, each once with the number of its copies, as the struct ``event``."""
    acted = acted if "idle" in acted.columns else acted.withColumn("idle", F.lit(False))
    own = F.when(~F.col("moved_away"), 1).otherwise(0)
    place = F.struct("file", "place", "row")
    payload = ["committed_at", "deleted", "moved_away", "shape", "partial", "absent", "upsert", "idle"]
    payload += ["needs"] if plan.compares else []
    if images:
        acted, payload = acted.withColumns(row_images.own_images()), [*payload, *map(quoted, row_images.ACTED)]
    cells = _cells(plan)
    # Copies of one event have one position. All actions of a key meet in one task, sorted, so that both groupings
    # stream through it, and so does a hot key.
    acted, identity = acted.repartition(*keys), ["position"]
    copies = [F.sum(own).alias("copies"), F.max_by(F.struct(*payload, *cells), place).alias("event")]
    if plan.has_deliveries:
        content = log_places.content(["deleted", "partial", "absent", *cells])
        position = F.when(content.isNull(), F.col("position"))
        acted = acted.withColumns({"content": content, "alone": position, log_places.LOG_PLACE: log_places.log_place()})
        identity = [log_places.LOG_PLACE, "content", "alone"]
        place = F.struct("position", "file", "place", "row")
        copies = [
            copies[0],
            F.max_by(F.struct(*payload, *cells), place).alias("event"),
            F.max("position").alias("position"),
        ]
    differs = F.lit(False) if plan.has_deliveries else _contents_differ(plan)
    return acted.groupBy(*keys, *identity).agg(*copies, differs.alias("differs"))


def _cells(plan: Plan) -> list[str]:
    return [field(number) for number in value_numbers(plan)]


def _contents_differ(plan: Plan) -> Expression:
    """Return whether the copies of an event say different things."""
    content = F.when(~F.col("moved_away"), frames.content(plan))
    return F.coalesce(F.min(content) != F.max(content), F.lit(False))


def _last_delete(keys: Sequence[str]) -> Expression:
    """Return the position of the last delete of the key before an event."""
    before = Window.partitionBy(*keys).orderBy("position").rowsBetween(Window.unboundedPreceding, -1)
    return F.max(F.when(F.col("event.deleted"), _acts_at())).over(before)


def _emptied_at(plan: Plan, truncates: Truncates | None) -> Expression:
    """Return the position of the last delete or TRUNCATE before the newest write: the life that it ended is over."""
    ended = F.col("written.died_at")
    if not truncates:
        return ended
    over = F.filter(truncates.positions(plan), lambda truncate: truncate < F.col("written.position"))
    return F.greatest(ended, F.array_max(over))


def _value_and_position(plan: Plan, number: int) -> list[Expression]:
    """Return the newest value of a column and the position of its writer."""
    value, at = F.col(f"w{number}.value"), F.col(f"w{number}.position")
    if plan.soft:
        # Values from before the row's last life do not belong to the row, and a deleted row does not show them.
        emptied = F.coalesce(F.col("emptied_at") >= at, F.lit(False))
        value, at = F.when(~emptied, value), F.greatest(at, "emptied_at")
    return [value.alias(field(number)), at.alias(f"p{number}")]


def _acts_at() -> Expression:
    """Return the position of an event that does something; null for an idle half of an update."""
    return F.when(~F.col("event.idle"), F.col("position"))


def _last_written(plan: Plan) -> Iterator[Expression]:
    """Yield the newest value of each column with the position of its writer, as the struct ``w<n>``."""
    captured = Captured(plan, "event.")
    for number in value_numbers(plan):
        value, written = F.col(f"event.{field(number)}"), captured.writes(number)
        if plan.soft:
            written = F.when(F.col("event.deleted"), value.isNotNull()).otherwise(written)
        newest = F.max_by(F.struct("position", value.alias("value")), F.when(written, _acts_at()))
        yield newest.alias(f"w{number}")
