"""Folding: from the events of one table to one row a key, and from there to what the table must hold.

Pure ``DataFrame -> DataFrame`` functions. Every cell is a register whose last writer, by position, wins; a whole image
writes all cells of its row, a delete writes null to all of them. Last-writer-wins is associative, commutative and
idempotent, so the outcome depends on the set of events alone: not on their order, their split into runs, or repeats.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.encodings import READERS
from tidemark.events import Encoding, Operation
from tidemark.images import UNREADABLE, Image, TableColumn, any_of, by_table_name, field, read_images
from tidemark.lake import quoted
from tidemark.plan import Plan
from tidemark.table_schemas import DELETED
from tidemark.types import spark_type

KEPT = ("position", "committed_at", "shape", "partial", "absent", "batch", "file", "place", "row")
"""Columns of the change log that actions keep."""

NULL_KEY = "null_key"
UNREADABLE_VALUE = "unreadable_value"
MISFIT = "does not fit its type: "
"""Begins the detail of an unreadable value; the name of its column follows, as the message has it."""
PARTIAL_KEY_CHANGE = "partial_key_change"
TRUNCATED = "truncated"

REST = ""
"""Name, in the versions of a row, that stands for every column not named there: no column is called so."""


def key_names(plan: Plan) -> list[str]:
    """Names of the key's columns in every frame of this module: ``k0 .. kn``."""
    return [f"k{place}" for place in range(len(plan.key))]


def key_columns(plan: Plan) -> list[Expression]:
    """The key's columns of a published table, under the names that they have in every frame of this module."""
    return [F.col(quoted(name)).alias(key) for name, key in zip(plan.key, key_names(plan), strict=True)]


def of_today(stored: DataFrame, plan: Plan) -> DataFrame:
    """A published table or its history under the names that its columns will have when the cut is published."""
    if not plan.today:
        return stored
    names = ((name, plan.today.get(name, name)) for name in stored.columns)
    return stored.select(*(F.col(quoted(old)).alias(new) for old, new in names if new is not None))


def value_numbers(plan: Plan) -> list[int]:
    """Numbers of the table's columns that are not in the key."""
    return [number for number in range(len(plan.columns)) if number not in set(plan.key_numbers)]


def actions(events: DataFrame, plan: Plan, truncated: str | None, kept: Sequence[str] = KEPT) -> DataFrame:
    """Read the images of row changes and tell which key each of them acts on.

    An update whose key changed acts twice: it deletes the old key and writes the new one, at the same position.

    Args:
        events: row changes of the change log, of one table (no TRUNCATE).
        plan: the table's.
        truncated: position of the newest TRUNCATE; older events act no more.
        kept: columns of the change log that stay.

    Returns:
        ``k0 .. kn``; ``c<n>`` (the columns outside the key, typed; where ``deleted`` null, or what the old image holds,
        with soft deletes); ``deleted``; ``moved_away`` (the delete of an old key); ``set_aside`` (why the event takes
        no part: a reason, or null), ``detail``; ``half`` (the old half of an update in two events: it deletes its key);
        and ``kept``.
    """
    keys = [plan.columns[number] for number in plan.key_numbers]
    update = F.col("operation") == Operation.UPDATE
    whole_update = F.col("after").isNotNull() & update
    # In a projection of their own: what `from_json` is given directly, Spark interprets. And the rows that are parsed
    # are without the images as they came, of which most old ones are not looked at.
    texts = {
        "new text": F.coalesce("after", "before"),
        "old text": F.when(whole_update & ~_same_key(plan), F.col("before")),
        "half": F.col("after").isNull() & update,
    }
    new, old = F.col("`new text`"), F.col("`old text`")
    images = [Image(new, plan.columns, "image"), Image(old, keys, "old")]
    if plan.soft:  # apart from the old key, as a value that does not fit is no reason to set an update aside
        images.append(Image(old, plan.columns, "was"))
    wanted = events.select("operation", *kept, *(text.alias(name) for name, text in texts.items()))
    read = read_images(wanted, images, shapes=plan.found.shapes, names=plan.found.names)
    told_before = [F.col(f"old.{field(place)}") for place in range(len(keys))]
    named = [f"new {name}" for name in key_names(plan)]
    # In a projection of its own, because it is used often and must be made once.
    new_key = [
        F.coalesce(F.col(f"image.{field(number)}"), F.when(F.col("partial"), before))
        for number, before in zip(plan.key_numbers, told_before, strict=True)
    ]
    old_key = [F.coalesce(before, now) for before, now in zip(told_before, new_key, strict=True)]
    olds = [f"old {name}" for name in key_names(plan)]
    keyed = read.withColumns(dict(zip([*named, *olds], [*new_key, *old_key], strict=True)))
    after = [F.col(quoted(name)) for name in named]
    before = [F.col(quoted(name)) for name in olds]
    moved = F.coalesce(any_of([was != now for was, now in zip(before, after, strict=True)]), F.lit(False))
    # What the old row held in the columns that were not captured is not known here, and must not become null unseen.
    torn = moved & F.col("partial")
    writes = (F.col("operation") != Operation.DELETE) & ~F.col("half")
    verdict = [(~writes).alias("deleted"), *_set_aside(after, keys, torn, writes, truncated)]
    stays = F.struct(F.lit(False).alias("moved_away"), *verdict)
    leaves = F.struct(F.lit(True).alias("moved_away"), F.lit(True).alias("deleted"), *verdict[1:])
    # The verdict comes out of the generator because the optimizer pushes no filter on it below one: pushed further, a
    # filter would parse the image again for every column it asks about.
    sides = keyed.withColumn("side", F.explode(F.when(moved, F.array(stays, leaves)).otherwise(F.array(stays))))
    left, alive = F.col("side.moved_away"), ~F.col("side.deleted")
    acted = [
        F.when(left, was).otherwise(now).alias(name)
        for name, was, now in zip(key_names(plan), before, after, strict=True)
    ]
    cells = [
        (
            F.when(left, cell(plan, number, "was")).otherwise(cell(plan, number))
            if plan.soft
            else F.when(alive, cell(plan, number))
        ).alias(field(number))
        for number in value_numbers(plan)
    ]
    return sides.select(*acted, *cells, "side.*", "half", *kept)


def cell(plan: Plan, number: int, image: str = "image") -> Expression:
    """The value of a column in a read image; rows from before it was added got its default at the source."""
    column, value = plan.columns[number], F.col(f"{image}.{field(number)}")
    default = plan.defaults.get(column.name)
    if default is None:
        return value
    told = F.coalesce(F.col("shape").isin(*_holders(plan, column.name)), F.lit(False))
    return F.when((F.col("position") < default.position) & ~told, default_value(column, default.text)).otherwise(value)


def default_value(column: TableColumn, text: str) -> Expression:
    """The constant of a DEFAULT clause as a value; null where the type cannot hold it."""
    return READERS[Encoding.TEXT](F.lit(text), column.type).cast(spark_type(column.type))


def _holders(plan: Plan, name: str) -> dict[str, str]:
    """The shapes that have a column of the table, and what they call it."""
    found = plan.found
    return {
        shape_id: column.name
        for shape_id, shape in found.shapes.items()
        for told, column in by_table_name(shape_id, shape, found.names)
        if told == name
    }


_LEADING = 4
"""Most members of an image that are looked at for the key."""
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
"""A name that JSON writes as it is."""


def _same_key(plan: Plan) -> Expression:
    """Whether the old image begins, up to and with its key, as the new one does: then there is no need to parse it.

    Asked of tables whose key columns come first, as they mostly do; false means that the key may be the same. What
    stands before the name of the member behind the key is compared as text, which costs less than any pattern does. A
    comma and a quotation mark begin a member wherever a name and a colon follow them; that it is one of the row, and
    not of a value, is told by the brackets.
    """
    leading = {tuple(column.name for column in shape.columns[: _LEADING + 1]) for shape in plan.found.shapes.values()}
    if len(leading) != 1 or plan.found.names:
        return F.lit(False)
    names = next(iter(leading))
    if not set(plan.key) <= set(names[:_LEADING]) or not all(map(_PLAIN.fullmatch, names)):
        return F.lit(False)
    places = [names.index(name) for name in plan.key]
    behind = names[max(places) + 1 :]
    new, old = (
        F.substring_index(image, f',"{behind[0]}":', 1) if behind else F.col(image) for image in ("after", "before")
    )
    holds_key = [
        F.contains(new, F.lit(f',"{names[place]}":')) if place else F.startswith(new, F.lit(f'{{"{names[0]}":'))
        for place in places
    ]
    flat = (F.locate("{", new, 2) == 0) & (F.locate("[", new) == 0)
    return F.coalesce(reduce(and_, [new == old, *holds_key, flat]), F.lit(False))


def _set_aside(
    key: Sequence[Expression],
    columns: Sequence[TableColumn],
    torn: Expression,
    writes: Expression,
    truncated: str | None,
) -> list[Expression]:
    null = any_of([part.isNull() for part in key])
    unreadable = F.coalesce(F.col(f"image.{UNREADABLE}"), F.col(f"old.{UNREADABLE}"))
    late = F.lit(False) if truncated is None else F.col("position") < truncated
    reason = (
        F.when(writes & unreadable.isNotNull(), UNREADABLE_VALUE)
        .when(null, NULL_KEY)
        .when(late, TRUNCATED)
        .when(torn, PARTIAL_KEY_CHANGE)
    ).alias("set_aside")
    names = ", ".join(column.name for column in columns)
    detail = (
        F.when(writes & unreadable.isNotNull(), F.concat(F.lit(MISFIT), unreadable))
        .when(null, F.lit(f"the key is ({names}) and a part of it is null or missing"))
        .when(torn, F.lit(f"the key ({names}) changed, and the new row was not captured whole"))
        .alias("detail")
    )
    return [reason, detail]


def fold(acted: DataFrame, plan: Plan, apart: Sequence[str] = ()) -> DataFrame:
    """Fold actions to one row a key.

    Args:
        acted: ``actions``, without those set aside; ``halves.settled`` where updates come in two events.
        plan: the table's.
        apart: columns of ``acted`` that tell tables apart which are folded together.

    Returns:
        ``apart``; ``k0 .. kn``; ``position``, ``committed_at``, ``deleted``, ``moved_away`` of the key's newest action;
        ``c<n>``, the newest value of each column outside the key (a delete writes null; with soft deletes one that is
        the newest action leaves what its old image holds); with partial images also ``whole_at``, the position at which
        the row was last written whole (null: never), and ``p<n>``, the position a column was written at (null: no event
        wrote it); ``events`` and ``distinct_events``, without the deletes of old keys. Of a key with idle halves alone
        there are the counts, and no position.
    """
    keys = [*apart, *key_names(plan)]
    return _by_cell(acted, plan, keys) if plan.found.partial else _newest(acted, plan, keys)


_LONGEST_PATH = 1 << 16


def _newest(acted: DataFrame, plan: Plan, keys: Sequence[str]) -> DataFrame:
    """The newest action of each key: whole images leave nothing of the older ones."""
    cells = [field(number) for number in value_numbers(plan)]
    payload = ["position", "committed_at", "deleted", "moved_away", *cells]
    # All of a key's actions meet in one task, sorted; those of a hot key go to the disk where memory ends.
    order = Window.partitionBy(*keys).orderBy(*map(F.desc, ("position", "own file", "place", "row")))
    of_key = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    own = ~F.col("moved_away")
    steps = {
        "age": F.row_number().over(order),
        "is_copy": F.coalesce(F.lead(F.when(own, F.col("position"))).over(order) == F.col("position"), F.lit(False)),
    }
    counts = {
        "events": F.count_if(own).over(of_key),
        "distinct_events": F.count_if(own & ~F.col("is_copy")).over(of_key),
    }
    # What all paths begin with would be a quarter of the bytes that are shuffled and sorted.
    own_file = F.substring("file", plan.found.common_path + 1, _LONGEST_PATH)
    ordered = acted.withColumn("own file", own_file).withColumns(steps)
    newest = ordered.withColumns(counts).where(F.col("age") == 1)
    # As SQL: PySpark asks the JVM for each column of a `select` four times.
    return newest.selectExpr(*map(quoted, [*keys, *payload, *counts]))


def _by_cell(acted: DataFrame, plan: Plan, keys: Sequence[str]) -> DataFrame:
    """The newest action of each key, and of each of its cells."""
    acted = acted if "idle" in acted.columns else acted.withColumn("idle", F.lit(False))
    own = F.when(~F.col("moved_away"), 1).otherwise(0)
    place = F.struct("file", "place", "row")
    payload = ["committed_at", "deleted", "moved_away", "shape", "partial", "absent", "idle"]
    cells = [field(number) for number in value_numbers(plan)]
    # Copies of one event have one position. All of a key's actions meet in one task, sorted: the two groupings and
    # whatever hot key there is stream through it.
    once = (
        acted.repartition(*keys)
        .groupBy(*keys, "position")
        .agg(F.sum(own).alias("copies"), F.max_by(F.struct(*payload, *cells), place).alias("event"))
    )
    newest = [
        F.max(_acts_at()).alias("position"),
        F.max_by(F.struct("event.committed_at", "event.deleted", "event.moved_away"), _acts_at()).alias("newest"),
        F.sum("copies").alias("events"),
        F.sum(F.when(F.col("copies") > 0, 1).otherwise(0)).alias("distinct_events"),
        F.max(F.when(~F.col("event.partial") | F.col("event.deleted"), _acts_at())).alias("whole_at"),
    ]
    folded = once.groupBy(*keys).agg(*newest, *(_last_written(plan, number) for number in value_numbers(plan)))
    values = [
        column
        for number in value_numbers(plan)
        for column in (
            _shown(plan, number).alias(field(number)),
            F.col(f"w{number}.position").alias(f"p{number}"),
        )
    ]
    return folded.select(*keys, "position", "newest.*", *values, "events", "distinct_events", "whole_at")


def _acts_at() -> Expression:
    """Position of an event that does something."""
    return F.when(~F.col("event.idle"), F.col("position"))


def totals(plan: Plan) -> list[Expression]:
    """What the ledger, and the way a batch is written, ask of ``fold``: aggregates over its rows."""
    return [
        F.sum("events").alias("events"),
        F.sum("distinct_events").alias("distinct"),
        F.sum(F.when(F.col("moved_away"), 1).otherwise(0)).alias("away"),
        F.count_if("deleted").alias("deletes"),
        F.count_if(F.col("deleted") & ~F.col("moved_away") & F.lit(plan.soft)).alias("marks"),
        F.unix_micros(F.max("committed_at")).alias("committed_at"),
        F.min("position").alias("oldest"),
    ]


def _shown(plan: Plan, number: int) -> Expression:
    value = F.col(f"w{number}.value")
    if not plan.soft:
        return value
    # What a delete saw of the row is shown as long as the row is deleted, and revives with no part of it.
    return F.when(F.col("newest.deleted") | ~F.col(f"w{number}.deleted"), value)


def _last_written(plan: Plan, number: int) -> Expression:
    value = [F.col("position"), F.col(f"event.{field(number)}").alias("value")]
    if plan.soft:
        value.append(F.col("event.deleted"))
    written = writes_cell(plan, number, "event.")
    return F.max_by(F.struct(*value), F.when(written, _acts_at())).alias(f"w{number}")


def writes_cell(plan: Plan, number: int, event: str = "") -> Expression:
    """Whether an action writes a column; ``event`` leads to its ``partial``, ``deleted``, ``shape``, ``absent``."""
    holders = _holders(plan, plan.columns[number].name)
    captured = any_of([F.lit(False), *(_captured(holders, name, event) for name in sorted({*holders.values()}))])
    if (default := plan.defaults.get(plan.columns[number].name)) is not None:
        # What cannot have captured a column that was not there yet got its default with the row.
        told = F.coalesce(F.col(f"{event}shape").isin(*holders), F.lit(False))
        captured |= (F.col("position") < default.position) & ~told
    return ~F.col(f"{event}partial") | F.col(f"{event}deleted") | captured


def truncated_softly(folded: DataFrame, plan: Plan, truncated: str, at: int | None) -> DataFrame:
    """Let a TRUNCATE delete, at its position, every key with an event before it: what soft deletes make of it.

    Args:
        folded: ``fold``, of all events, those before the TRUNCATE too.
        plan: the table's.
        truncated: position of the newest TRUNCATE.
        at: when the source committed it, epoch µs, UTC.
    """
    over, dead = F.lit(truncated), F.col("position") < truncated
    steps = {
        "committed_at": F.when(dead, F.timestamp_micros(F.lit(at).cast("bigint"))).otherwise(F.col("committed_at")),
        "deleted": F.col("deleted") | dead,
        "position": F.when(F.col("position").isNotNull(), F.greatest("position", over)),
    }
    if plan.found.partial:
        steps["whole_at"] = F.greatest("whole_at", over)
    for number in value_numbers(plan):
        kept = F.col(f"p{number}") >= over if plan.found.partial else ~dead
        steps[field(number)] = F.when(kept, F.col(field(number)))
        if plan.found.partial:
            steps[f"p{number}"] = F.greatest(f"p{number}", over)
    return folded.withColumns(steps)


def _captured(holders: Mapping[str, str], name: str, event: str) -> Expression:
    """Whether the event's image holds a column that its shape calls ``name``."""
    missing = F.coalesce(F.array_contains(f"{event}absent", F.lit(name)), F.lit(False))
    shapes = [shape_id for shape_id, told in holders.items() if told == name]
    return F.coalesce(F.col(f"{event}shape").isin(*shapes), F.lit(False)) & ~missing


def not_dead(folded: DataFrame, tombstones: DataFrame, plan: Plan) -> DataFrame:
    """Drop keys whose tombstone is as new as their newest event: a late event does not revive a row."""
    keys = key_names(plan)
    newest = tombstones.groupBy(*keys).agg(F.max("position").alias("died_at"))
    alive = F.col("died_at").isNull() | (F.col("died_at") < F.col("position"))
    return folded.join(newest, keys, "left").where(alive).drop("died_at")


def combine(folded: DataFrame, stored: DataFrame, state: DataFrame, plan: Plan) -> DataFrame:
    """Fold keys' new cells with what the table holds of them, cell by cell.

    Args:
        folded: ``fold``, of a batch with partial images or for a table that has rows written in parts.
        stored: the table's rows: its columns, ``_cdc_position``, ``_cdc_committed_at``.
        state: the table's state rows.
        plan: the table's.

    Returns:
        One row for each key that changes: ``k0 .. kn``, ``position``, ``committed_at``, ``deleted``, ``moved_away``,
        ``c<n>``, and ``versions`` (column name to the position it was written at, under ``REST`` that of the columns
        not named; null when the row was written whole at ``position``).
    """
    keys = key_names(plan)
    rows = stored.select(
        *key_columns(plan),
        F.col("_cdc_position").alias("t_position"),
        F.col("_cdc_committed_at").alias("t_committed_at"),
        *(_revived(plan, n).alias(f"t{n}") for n in value_numbers(plan)),
    )
    dead = state.where(F.col("kind") == "tombstone").groupBy(*keys).agg(F.max("position").alias("died_at"))
    cells = state.where(F.col("kind") == "cells").groupBy(*keys)
    versions = cells.agg(F.max_by(F.struct("position", "versions"), F.struct("position", "batch")).alias("kept"))
    wanted = rows.join(folded.select(*keys), keys, "left_semi")
    joined = folded.join(wanted, keys, "left")
    joined = joined.join(dead, keys, "left").join(versions, keys, "left")
    return _combined(joined, plan)


def _revived(plan: Plan, number: int) -> Expression:
    """A stored cell, as far as it is more than what a deleted row shows."""
    value = F.col(quoted(plan.columns[number].name))
    return F.when(~F.coalesce(F.col(DELETED), F.lit(False)), value) if plan.soft else value


def _combined(joined: DataFrame, plan: Plan) -> DataFrame:
    exists = F.col("t_position").isNotNull()
    kept = F.when(F.col("kept.position") == F.col("t_position"), F.col("kept.versions"))
    floor = F.coalesce("died_at", F.lit(""))
    alive = exists | (F.col("position") > floor)
    newer = ~exists | (F.col("position") > F.col("t_position"))
    position = F.when(newer, F.col("position")).otherwise(F.col("t_position"))
    rest = F.when(exists, F.coalesce(F.try_element_at("kept", F.lit(REST)), "t_position")).otherwise(floor)
    stepped = joined.withColumns({"kept": kept, "exists": exists, "alive": alive, "newer": newer, "final": position})
    whole_at = "whole_at" if plan.found.partial else "position"
    stepped = stepped.withColumns({"rest": rest, "merged_rest": F.greatest(rest, whole_at)})
    numbers = value_numbers(plan)
    stepped = stepped.withColumns({f"v{n}": _stored_version(plan.columns[n].name) for n in numbers})
    taken = {n: F.coalesce(_written(plan, n) > F.col(f"v{n}"), F.lit(False)) for n in numbers}
    changed = any_of([F.col("newer"), F.col("merged_rest") > F.col("rest"), *taken.values()])
    merged = stepped.withColumns(
        {
            **{f"n{n}": F.when(taken[n], _taken(plan, n)).when(F.col("exists"), F.col(f"t{n}")) for n in numbers},
            **{f"m{n}": F.when(taken[n], _written(plan, n)).otherwise(F.col(f"v{n}")) for n in numbers},
            "changed": changed,
        }
    )
    gone = F.col("deleted") & F.col("newer")
    return merged.where(F.col("alive") & F.col("changed")).select(
        *key_names(plan),
        F.col("final").alias("position"),
        F.when(F.col("newer"), F.col("committed_at")).otherwise(F.col("t_committed_at")).alias("committed_at"),
        gone.alias("deleted"),
        "moved_away",
        *(F.col(f"n{n}").alias(field(n)) for n in numbers),
        F.when(~gone & (F.col("merged_rest") != F.col("final")), _versions(plan)).alias("versions"),
    )


def _taken(plan: Plan, number: int) -> Expression:
    value = F.col(field(number))
    # A delete below a newer row writes null to its cells, as any delete does.
    return F.when(~F.col("deleted") | F.col("newer"), value) if plan.soft else value


def _written(plan: Plan, number: int) -> Expression:
    """Position at which the batch wrote a cell; without partial images every event writes all of them."""
    return F.col(f"p{number}") if plan.found.partial else F.col("position")


def _stored_version(name: str) -> Expression:
    """Position at which the table's cell was written; for a row that is not there, the key's tombstone."""
    return F.coalesce(F.try_element_at("kept", F.lit(name)), F.col("rest"))


def _versions(plan: Plan) -> Expression:
    """The positions of the cells that were not written with the rest of their row."""
    told = [(plan.columns[n].name, F.col(f"m{n}")) for n in value_numbers(plan)]
    cells = [
        F.when(at != F.col("merged_rest"), F.struct(F.lit(name).alias("name"), at.alias("at"))) for name, at in told
    ]
    rest = F.struct(F.lit(REST).alias("name"), F.col("merged_rest").alias("at"))
    return F.map_from_entries(F.array_compact(F.array(rest, *cells)))


def renamed_versions(versions: Expression, today: Mapping[str, str | None]) -> Expression:
    """Versions of a row's cells by today's names: ``today`` tells those that change, None for columns that went."""
    gone = [name for name, new in today.items() if new is None]
    kept = F.map_filter(versions, lambda name, _: ~name.isin(*gone))

    def renamed(name: Expression, _: Expression) -> Expression:
        chain = F.when(F.lit(False), name)
        for old, new in today.items():
            if new is not None:
                chain = chain.when(name == F.lit(old), F.lit(new))
        return chain.otherwise(name)

    return F.transform_keys(kept, renamed)


def emptied(state: DataFrame, plan: Plan, truncated: str) -> DataFrame:
    """Tell which cells a TRUNCATE empties in rows that live on because a newer event wrote another part of them.

    Args:
        state: the table's state rows.
        plan: the table's.
        truncated: position of the TRUNCATE.

    Returns:
        ``k0 .. kn``; ``position``, at which the row must stand; ``c<n>``: whether the cell is emptied.
    """
    cells = state.where(F.col("kind") == "cells").groupBy(*key_names(plan))
    newest = cells.agg(F.max_by(F.struct("position", "versions"), F.struct("position", "batch")).alias("kept"))
    rest = F.try_element_at("kept.versions", F.lit(REST))
    versions = ((n, F.try_element_at("kept.versions", F.lit(plan.columns[n].name))) for n in value_numbers(plan))
    flags = [(F.coalesce(version, rest) < truncated).alias(field(n)) for n, version in versions]
    survives = (rest < truncated) & (F.col("kept.position") > truncated)
    return newest.where(survives).select(*key_names(plan), "kept.position", *flags)
