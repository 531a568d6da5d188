"""Combine folded rows with the stored rows, cell by cell: the newest writer of each cell wins."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.folding.frames import key_columns, key_names, value_numbers
from tidemark.folding.truncates import Truncates
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import DELETED
from tidemark.text import quoted
from tidemark.values.image_reader import field
from tidemark.values.table_columns import any_of

REST = ""
"""Key in the versions of a row. It stands for every column that is not named there; no column has this name."""


def not_dead(folded: DataFrame, tombstones: DataFrame, plan: Plan) -> DataFrame:
    """Return the folded rows without keys whose tombstone is not older: a late event does not revive a row."""
    keys = key_names(plan)
    newest = tombstones.groupBy(*keys).agg(F.max("position").alias("died_at"))
    alive = F.col("died_at").isNull() | (F.col("died_at") < F.col("position"))
    return folded.join(newest, keys, "left").where(alive).drop("died_at")


def combine(folded: DataFrame, stored: DataFrame, state: DataFrame, plan: Plan) -> DataFrame:
    """Combine the new cells of each key with its stored row, and return what the row becomes.

    Args:
        folded: the result of ``keyed.fold``, for a batch with partial images or a table with rows written in parts.
        stored: the table's rows: its columns, ``_cdc_position``, ``_cdc_committed_at``.
        state: the table's state rows.
        plan: the table's plan.

    Returns:
        One row for each key: ``k0 .. kn``, ``position``, ``committed_at``, ``deleted``, ``moved_away``, ``c<n>``, and
        ``versions``: from column name to the position at which the cell was written, with ``REST`` for the columns not
        named. ``versions`` is null if the row was written whole at ``position``. ``changes``: whether the events
        change anything, of the row or of what is kept of a deleted one; only then the other columns say what.
        ``writes``: whether they change the table. ``lacks``: whether an event wrote a part of a row that has to be
        there, and nothing that is known wrote the rest.
    """
    keys = key_names(plan)
    rows = stored.select(
        *key_columns(plan),
        F.col("_cdc_position").alias("t_position"),
        F.col("_cdc_committed_at").alias("t_committed_at"),
        *([F.coalesce(F.col(DELETED), F.lit(False)).alias("t_deleted")] if plan.soft else []),
        *(F.col(quoted(plan.columns[n].name)).alias(f"t{n}") for n in value_numbers(plan)),
    )
    dead = state.where(F.col("kind") == "tombstone").groupBy(*keys).agg(F.max("position").alias("died_at"))
    cells = state.where(F.col("kind") == "cells").groupBy(*keys)
    versions = cells.agg(F.max_by(F.struct("position", "versions"), F.struct("position", "batch")).alias("kept"))
    wanted = rows.join(folded.select(*keys), keys, "left_semi")
    joined = folded.join(wanted, keys, "left")
    joined = joined.join(dead, keys, "left").join(versions, keys, "left")
    return _combined(joined, plan)


def _combined(joined: DataFrame, plan: Plan) -> DataFrame:
    """Return what rows become, from folded rows joined with their stored row, tombstone and cell versions.

    Of each cell, ``t<n>`` is the stored value and ``v<n>`` its position; ``n<n>`` and ``m<n>`` are value and position
    after the batch. ``rest`` (stored) and ``merged_rest`` (after) are the position of the cells without a position of
    their own.
    """
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
    changed = F.col("alive") & any_of([F.col("newer"), F.col("merged_rest") > F.col("rest"), *taken.values()])
    gone = F.col("deleted") & F.col("newer")
    # With soft deletes, the delete of a row that is not there makes one.
    writes = changed if plan.soft else changed & (F.col("exists") | ~gone)
    merged = stepped.withColumns(
        {
            **{f"n{n}": F.when(taken[n], _taken(plan, n)).when(F.col("exists"), _stored(plan, n)) for n in numbers},
            **{f"m{n}": F.when(taken[n], _written(plan, n)).otherwise(F.col(f"v{n}")) for n in numbers},
            "changes": F.coalesce(changed, F.lit(False)),
            "writes": F.coalesce(writes, F.lit(False)),
        }
    )
    in_part = F.col("in_part") if plan.found.partial else F.lit(False)
    # A delete of the batch itself wrote null to the cells, and is no tombstone yet.
    last_end = F.greatest(floor, "ended_at") if plan.found.partial else floor
    unwritten = any_of([F.lit(False), *(F.col(f"m{n}") <= last_end for n in numbers)])
    return merged.select(
        *key_names(plan),
        F.col("final").alias("position"),
        F.when(F.col("newer"), F.col("committed_at")).otherwise(F.col("t_committed_at")).alias("committed_at"),
        gone.alias("deleted"),
        "moved_away",
        *(F.col(f"n{n}").alias(field(n)) for n in numbers),
        F.when(~gone & (F.col("merged_rest") != F.col("final")), _versions(plan)).alias("versions"),
        "changes",
        "writes",
        (F.col("changes") & ~gone & F.coalesce(in_part & unwritten, F.lit(False))).alias("lacks"),
    )


def _stored(plan: Plan, number: int) -> Expression:
    """Return a stored cell; null where the row is deleted softly, and the cell only shows what the row held."""
    value = F.col(f"t{number}")
    return F.when(~F.col("t_deleted"), value) if plan.soft else value


def _taken(plan: Plan, number: int) -> Expression:
    """Return the value of a cell that the batch writes."""
    value = F.col(field(number))
    if not plan.soft:
        return value
    untold = F.col(f"p{number}").isNull() if plan.found.partial else F.col("keeps") & value.isNull()
    # What a deleted row shows from before ends where the row was written again meanwhile.
    shown = F.when(~F.col("t_deleted") | F.col("keeps"), F.col(f"t{number}"))
    # A delete below a newer row writes null to its cells, as every delete does.
    return F.when(~F.col("deleted"), value).when(F.col("newer"), F.when(untold, shown).otherwise(value))


def _written(plan: Plan, number: int) -> Expression:
    """Return the position at which the batch wrote a cell; without partial images every event writes all cells."""
    if not plan.found.partial:
        return F.col("position")
    at = F.col(f"p{number}")
    return F.when(F.col("deleted"), F.col("position")).otherwise(at) if plan.soft else at


def _stored_version(name: str) -> Expression:
    """Return the position at which the table's cell was written; for a missing row, the position of its tombstone."""
    return F.coalesce(F.try_element_at("kept", F.lit(name)), F.col("rest"))


def _versions(plan: Plan) -> Expression:
    """Return the positions of the cells that were not written together with the rest of their row."""
    written = [(plan.columns[n].name, F.col(f"m{n}")) for n in value_numbers(plan)]
    cells = [
        F.when(at != F.col("merged_rest"), F.struct(F.lit(name).alias("name"), at.alias("at"))) for name, at in written
    ]
    rest = F.struct(F.lit(REST).alias("name"), F.col("merged_rest").alias("at"))
    return F.map_from_entries(F.array_compact(F.array(rest, *cells)))


def renamed_versions(versions: Expression, today: Mapping[str, str | None]) -> Expression:
    """Return the versions of a row's cells under today's names.

    ``today`` maps an old name to the name of today, or to None for a dropped column; other columns keep their name.
    """
    gone = [name for name, new in today.items() if new is None]
    kept = F.map_filter(versions, lambda name, _: ~name.isin(*gone))

    def renamed(name: Expression, _: Expression) -> Expression:
        chain = F.when(F.lit(False), name)
        for old, new in today.items():
            if new is not None:
                chain = chain.when(name == F.lit(old), F.lit(new))
        return chain.otherwise(name)

    return F.transform_keys(kept, renamed)


def emptied(state: DataFrame, plan: Plan, truncates: Truncates) -> DataFrame:
    """Return which cells a TRUNCATE empties in the rows that survive it.

    A row survives if a newer event wrote a part of it; the TRUNCATE empties the cells that were written before.

    Args:
        state: the table's state rows.
        plan: the table's plan.
        truncates: all that are known; at least one.

    Returns:
        ``k0 .. kn``; ``position``, which the row in the table must have; ``c<n>``: whether the cell is emptied.
    """
    cells = state.where(F.col("kind") == "cells").groupBy(*key_names(plan))
    newest = cells.agg(F.max_by(F.struct("position", "versions"), F.struct("position", "batch")).alias("kept"))
    rest = F.try_element_at("kept.versions", F.lit(REST))
    versions = ((n, F.try_element_at("kept.versions", F.lit(plan.columns[n].name))) for n in value_numbers(plan))
    truncated = truncates.position(plan)
    flags = [(F.coalesce(version, rest) < truncated).alias(field(n)) for n, version in versions]
    survives = (rest < truncated) & (F.col("kept.position") > truncated)
    return newest.where(survives).select(*key_names(plan), "kept.position", *flags)
