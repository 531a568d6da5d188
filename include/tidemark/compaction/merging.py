"""Writing folded rows into a candidate branch: one MERGE, one commit.

The columns of what is merged have names that no column of a table has (``OWN_PREFIX``): a MERGE resolves the names of
both sides together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyiceberg.table import Table
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.folding.frames import key_names, value_numbers
from tidemark.folding.key_bounds import KeyBounds
from tidemark.folding.truncates import TruncateEvent
from tidemark.lake.branches import head
from tidemark.sources.routes import SHARD_COLUMN
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import COMMITTED_AT, DELETED, IS_CURRENT, OWN_PREFIX, POSITION, VALID_FROM, VALID_TO
from tidemark.text import quoted
from tidemark.values.image_reader import field

THERE = f"{OWN_PREFIX}there"
"""Column of changed rows: whether the whole table has the row."""

INSIDE = f"{OWN_PREFIX}inside"
"""Column of changed rows: whether the published table is to have the row."""


def only_after(writer: DataFrameWriterV2, table: Table) -> DataFrameWriterV2:
    """Return the writer of an overwrite on ``main``; it fails if others changed what it replaces.

    Without this, Iceberg replaces whatever is there when it commits: also the rows of another run, which took the
    source over meanwhile.

    Args:
        writer: the writer.
        table: the table as it was loaded before any of its rows were read.
    """
    return writer.option("isolation-level", "serializable").option("validate-from-snapshot-id", str(head(table)))


def upsert(ready: DataFrame, plan: Plan, branch: str, bounds: KeyBounds, *, by_cell: bool) -> None:
    """Insert, update and delete rows; a row that stands at a newer position stays.

    Args:
        ready: ``folding.keyed.fold``, or ``folding.cells.combine`` where ``by_cell``.
        plan: the table's.
        branch: the candidate branch as Spark names it.
        bounds: of the keys of ``ready``.
        by_cell: whether a late cell may be written into a row that stays where it is.
    """
    values = [field(number) for number in value_numbers(plan)]
    keeps = ["keeps"] if plan.soft and not by_cell else []
    source, new = _source(ready, [*key_names(plan), *values, "position", "committed_at", "deleted", *keeps])
    key = _key(plan, new)
    cells = {plan.columns[number].name: new[field(number)] for number in value_numbers(plan)}
    kept = {name: _kept(plan, name, value, new["keeps"]) for name, value in cells.items()} if keeps else {}
    cells |= {POSITION: new["position"], COMMITTED_AT: new["committed_at"]}
    if plan.soft:
        cells[DELETED] = new["deleted"]
    newer = new["position"] > F.col(POSITION)
    if by_cell:
        newer |= new["position"] == F.col(POSITION)
    gone = new["deleted"]
    merge = source.mergeInto(branch, _same(key, plan) & _near(bounds, plan))
    leaving = {quoted(name): F.lit(None) for name in plan.leaving}
    whole = _quoted(key | cells, plan) | leaving
    if plan.soft:
        merge.whenMatched(newer).update(_quoted(cells | kept, plan)).whenNotMatched().insert(whole).merge()
        return
    merge = merge.whenMatched(newer & gone).delete().whenMatched(newer).update(_quoted(cells, plan))
    merge.whenNotMatched(~gone).insert(whole).merge()


def _kept(plan: Plan, name: str, value: Expression, keeps: Expression) -> Expression:
    """Return a cell of a row that only deletes wrote: the stored value, where their old images have none."""
    return F.when(keeps & value.isNull(), F.col(quoted(plan.stored(name)))).otherwise(value)


def remove(rows: DataFrame, plan: Plan, branch: str, bounds: KeyBounds) -> None:
    """Delete the rows of some keys. Only the key is read of the table, and nothing of the table is shuffled.

    Args:
        rows: ``k0 .. kn``, a key once.
        plan: the table's.
        branch: the candidate branch as Spark names it.
        bounds: of these keys.
    """
    source, gone = _source(rows, key_names(plan))
    same = _same(_key(plan, gone), plan) & _near(bounds, plan)
    source.mergeInto(branch, same).whenMatched().delete().merge()


def delete_older(session: SparkSession, plan: Plan, branch: str, truncate: TruncateEvent) -> None:
    """Delete the rows below the position of a TRUNCATE; with soft deletes mark them, at its position and time.

    A row that is marked keeps its values. Where several tables are folded into one, the others' rows stay.
    """
    where, args = f"{POSITION} < :position", {"position": truncate.position}
    if plan.found.shards:
        where, args = f"{where} AND {SHARD_COLUMN} = :shard", {**args, "shard": truncate.shard}
    if not plan.soft:
        session.sql(f"DELETE FROM {branch} WHERE {where}", args=args)  # noqa: S608  every part is quoted
        return
    time = f"timestamp_micros({truncate.at:d})" if truncate.at else "NULL"
    marked = {POSITION: ":position", COMMITTED_AT: time, DELETED: "true"}
    assignments = ", ".join(f"{quoted(name)} = {value}" for name, value in marked.items())
    session.sql(f"UPDATE {branch} SET {assignments} WHERE {where}", args=args)  # noqa: S608  every part is quoted


def mark_alive(session: SparkSession, branch: str) -> None:
    """Mark the rows that were written before deletes became soft."""
    session.sql(f"UPDATE {branch} SET {DELETED} = false WHERE {DELETED} IS NULL")  # noqa: S608  every part is quoted


def empty_cells(emptied: DataFrame, plan: Plan, branch: str) -> None:
    """Empty the cells that ``folding.cells.emptied`` names, in rows that stand at the position it gives."""
    source, empty = _source(emptied, emptied.columns)
    cells = {
        plan.columns[number].name: F.when(~empty[field(number)], F.col(quoted(plan.stored(plan.columns[number].name))))
        for number in value_numbers(plan)
    }
    merge = source.mergeInto(branch, _same(_key(plan, empty), plan))
    merge.whenMatched(F.col(POSITION) == empty["position"]).update(_quoted(cells, plan)).merge()


def fill(older: DataFrame, plan: Plan, branch: str, values: Mapping[str, Expression]) -> None:
    """Give rows that were there before columns were added the columns' defaults.

    Args:
        older: rows of the table that are to get them: ``k0 .. kn``; for a bag ``position``, for a history both.
        plan: the table's.
        branch: the candidate branch as Spark names it.
        values: constants by column; a cell that is not null stays.
    """
    source, old = _source(older, older.columns)
    cells = {name: F.coalesce(F.col(quoted(plan.stored(name))), value) for name, value in values.items()}
    same = _same(_key(plan, old), plan) if plan.key else F.lit(True)
    if "position" in old:
        same &= F.col(POSITION) == old["position"]
    source.mergeInto(branch, same).whenMatched().update(_quoted(cells, plan)).merge()


def exchange(rows: DataFrame, plan: Plan, branch: str) -> None:
    """Insert and delete rows of a table without a key; equal rows are distinguished by their positions.

    Args:
        rows: ``bags.changed``.
        plan: the table's.
        branch: the candidate branch as Spark names it.
    """
    names = {column.name: field(number) for number, column in enumerate(plan.columns)}
    names |= {POSITION: "position", COMMITTED_AT: "committed_at"}
    source, new = _source(rows, [*names.values(), "deleted"])
    merge = source.mergeInto(branch, F.col(POSITION) == new["position"])
    cells = {name: new[own] for name, own in names.items()}
    leaving = {quoted(name): F.lit(None) for name in plan.leaving}
    merge = merge.whenMatched(new["deleted"]).delete()
    merge.whenNotMatched(~new["deleted"]).insert(_quoted(cells, plan) | leaving).merge()


def append(rows: DataFrame, plan: Plan, branch: str) -> None:
    """Add rows that delete nothing.

    Args:
        rows: of keys that the table does not have (``folding.keyed.fold``); for a bag ``changed`` or ``sides`` of
            ``folding.bags``.
        plan: the table's.
        branch: the candidate branch as Spark names it.
    """
    cells = _key(plan, {own: F.col(own) for own in key_names(plan)})
    cells |= {plan.columns[number].name: F.col(field(number)) for number in value_numbers(plan)}
    cells |= {POSITION: F.col("position"), COMMITTED_AT: F.col("committed_at")}
    stored = [value.alias(plan.stored(name)) for name, value in cells.items()]
    rows.select(*stored, *(F.lit(None).alias(name) for name in plan.leaving)).writeTo(branch).append()


def overwrite_made(rows: DataFrame, plan: Plan, branch: str) -> None:
    """Put rows that were made of whole ones, with today's names of their columns, in place of all that are there."""
    stored = [F.col(quoted(name)).alias(plan.stored(name)) for name in rows.columns]
    rows.select(*stored, *(F.lit(None).alias(name) for name in plan.leaving)).writeTo(branch).overwrite(F.lit(True))


def replace_made(rows: DataFrame, plan: Plan, branch: str, identity: Sequence[str]) -> None:
    """Insert, update and delete rows that were made of whole ones.

    Args:
        rows: today's names of their columns, and ``INSIDE``; each row once.
        plan: the table's.
        branch: the candidate branch as Spark names it.
        identity: columns that tell its rows apart.
    """
    source, new = _source(rows, rows.columns)
    cells = _quoted({name: new[name] for name in rows.columns if name != INSIDE}, plan)
    same = reduce(and_, [F.col(quoted(plan.stored(name))) == new[name] for name in identity])
    merge = source.mergeInto(branch, same).whenMatched(~new[INSIDE]).delete().whenMatched().update(cells)
    leaving = {quoted(name): F.lit(None) for name in plan.leaving}
    merge.whenNotMatched(new[INSIDE]).insert(cells | leaving).merge()


def _source(frame: DataFrame, names: list[str]) -> tuple[DataFrame, dict[str, Expression]]:
    own = {name: f"{OWN_PREFIX}{name}" for name in names}
    return frame.select(*(F.col(quoted(name)).alias(own[name]) for name in names)), {
        n: F.col(quoted(own[n])) for n in names
    }


def _key(plan: Plan, columns: Mapping[str, Expression]) -> dict[str, Expression]:
    return {name: columns[own] for name, own in zip(plan.key, key_names(plan), strict=True)}


def _same(key: Mapping[str, Expression], plan: Plan) -> Expression:
    return reduce(and_, [F.col(quoted(plan.stored(name))) == value for name, value in key.items()])


def _near(bounds: KeyBounds, plan: Plan) -> Expression:
    """Return a condition that holds for each row that a batch may change; by it, Iceberg need not read all files."""
    return bounds.holds(plan, {name: plan.stored(name) for name in plan.key})


def _quoted(assignments: Mapping[str, Expression], plan: Plan) -> dict[str, Expression]:
    return {quoted(plan.stored(name)): value for name, value in assignments.items()}


def write_versions(rows: DataFrame, plan: Plan, branch: str, *, anywhere: bool) -> None:
    """Insert versions into a history table, and bring those that it holds up to date.

    Args:
        rows: ``folding.versions.versions``: each event that writes a row makes one. With ``gone``, true for versions
            that go, because their event proved to be a copy of another one.
        plan: the table's.
        branch: the candidate branch of the history table as Spark names it.
        anywhere: whether versions that have ended may change too, and with their values; else only the interval of
            current ones does.
    """
    values = [field(number) for number in value_numbers(plan)]
    names = [*key_names(plan), *values, "position", "committed_at", "valid_from", "valid_to"]
    goes = [name for name in ("gone",) if name in rows.columns]
    source, new = _source(rows, [*names, *goes])
    stays = ~F.coalesce(new["gone"], F.lit(False)) if goes else F.lit(True)
    cells = {plan.columns[number].name: new[field(number)] for number in value_numbers(plan)}
    interval = {
        VALID_FROM: new["valid_from"],
        VALID_TO: new["valid_to"],
        IS_CURRENT: new["valid_to"].isNull(),
    }
    same = _same(_key(plan, new), plan) & (F.col(POSITION) == new["position"])
    if not anywhere:
        same &= F.col(IS_CURRENT)
    merge = source.mergeInto(branch, same)
    if goes:
        merge = merge.whenMatched(~stays).delete()
    merge = merge.whenMatched().update(_quoted(interval | cells if anywhere or plan.found.partial else interval, plan))
    event = {POSITION: new["position"], COMMITTED_AT: new["committed_at"]}
    leaving = {quoted(name): F.lit(None) for name in plan.leaving}
    added = _quoted(_key(plan, new) | cells | interval | event, plan) | leaving
    (merge.whenNotMatched(stays) if goes else merge.whenNotMatched()).insert(added).merge()
