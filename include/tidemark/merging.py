"""Writing folded rows into a candidate branch: one MERGE, one commit.

The columns of what is merged have names that no column of a table has (``planning.OWN_PREFIX``): a MERGE resolves the
names of both sides together.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.folding import key_names, value_numbers
from tidemark.images import field
from tidemark.lake import quoted
from tidemark.planning import COMMITTED_AT, DELETED, IS_CURRENT, OWN_PREFIX, POSITION, VALID_FROM, VALID_TO, Plan


def upsert(ready: DataFrame, plan: Plan, branch: str, *, by_cell: bool) -> None:
    """Insert, update and delete rows; a row that stands at a newer position stays.

    Args:
        ready: ``folding.fold``, or ``folding.combine`` where ``by_cell``.
        plan: the table's.
        branch: the candidate branch as Spark names it.
        by_cell: whether a late cell may be written into a row that stays where it is.
    """
    values = [field(number) for number in value_numbers(plan)]
    source, new = _source(ready, [*key_names(plan), *values, "position", "committed_at", "deleted"])
    key = _key(plan, new)
    cells = {plan.columns[number].name: new[field(number)] for number in value_numbers(plan)}
    cells |= {POSITION: new["position"], COMMITTED_AT: new["committed_at"]}
    if plan.soft:
        cells[DELETED] = new["deleted"]
    newer = new["position"] > F.col(POSITION)
    if by_cell:
        newer |= new["position"] == F.col(POSITION)
    gone = new["deleted"]
    merge = source.mergeInto(branch, _same(key))
    if plan.soft:
        merge.whenMatched(newer).update(_quoted(cells)).whenNotMatched().insert(_quoted(key | cells)).merge()
        return
    merge = merge.whenMatched(newer & gone).delete().whenMatched(newer).update(_quoted(cells))
    merge.whenNotMatched(~gone).insert(_quoted(key | cells)).merge()


def delete_older(session: SparkSession, plan: Plan, branch: str, truncated: str, at: int | None) -> None:
    """Delete the rows below the position of a TRUNCATE; with soft deletes mark them, at its position and time."""
    if not plan.soft:
        statement = f"DELETE FROM {branch} WHERE {POSITION} < :position"  # noqa: S608  every part is quoted
        session.sql(statement, args={"position": truncated})
        return
    columns = [plan.columns[number].name for number in value_numbers(plan)]
    time = "NULL" if at is None else f"timestamp_micros({at:d})"
    told = {POSITION: ":position", COMMITTED_AT: time, DELETED: "true", **dict.fromkeys(columns, "NULL")}
    assignments = ", ".join(f"{quoted(name)} = {value}" for name, value in told.items())
    statement = f"UPDATE {branch} SET {assignments} WHERE {POSITION} < :position"  # noqa: S608  every part is quoted
    session.sql(statement, args={"position": truncated})


def mark_alive(session: SparkSession, branch: str) -> None:
    """Mark the rows that were written before deletes became soft."""
    session.sql(f"UPDATE {branch} SET {DELETED} = false WHERE {DELETED} IS NULL")  # noqa: S608  every part is quoted


def empty_cells(emptied: DataFrame, plan: Plan, branch: str) -> None:
    """Empty the cells that ``folding.emptied`` tells, in rows that stand where it says."""
    source, told = _source(emptied, emptied.columns)
    cells = {
        plan.columns[number].name: F.when(~told[field(number)], F.col(quoted(plan.columns[number].name)))
        for number in value_numbers(plan)
    }
    merge = source.mergeInto(branch, _same(_key(plan, told)))
    merge.whenMatched(F.col(POSITION) == told["position"]).update(_quoted(cells)).merge()


def _source(frame: DataFrame, names: list[str]) -> tuple[DataFrame, dict[str, Expression]]:
    own = {name: f"{OWN_PREFIX}{name}" for name in names}
    return frame.select(*(F.col(name).alias(own[name]) for name in names)), {n: F.col(quoted(own[n])) for n in names}


def _key(plan: Plan, told: Mapping[str, Expression]) -> dict[str, Expression]:
    return {name: told[own] for name, own in zip(plan.key, key_names(plan), strict=True)}


def _same(key: Mapping[str, Expression]) -> Expression:
    return reduce(and_, [F.col(quoted(name)) == value for name, value in key.items()])


def _quoted(assignments: Mapping[str, Expression]) -> dict[str, Expression]:
    return {quoted(name): value for name, value in assignments.items()}


def write_versions(rows: DataFrame, plan: Plan, branch: str, *, anywhere: bool) -> None:
    """Insert versions into a history table, and bring those that it holds up to date.

    Args:
        rows: ``history.versions``. A version never vanishes: each event that writes a row makes one.
        plan: the table's.
        branch: the candidate branch of the history table as Spark names it.
        anywhere: whether versions that have ended may change too, and with their values; else only the interval of
            current ones does.
    """
    values = [field(number) for number in value_numbers(plan)]
    names = [*key_names(plan), *values, "position", "committed_at", "valid_from", "valid_to"]
    source, new = _source(rows, names)
    cells = {plan.columns[number].name: new[field(number)] for number in value_numbers(plan)}
    interval = {
        VALID_FROM: new["valid_from"],
        VALID_TO: new["valid_to"],
        IS_CURRENT: new["valid_to"].isNull(),
    }
    same = _same(_key(plan, new)) & (F.col(POSITION) == new["position"])
    if not anywhere:
        same &= F.col(IS_CURRENT)
    merge = source.mergeInto(branch, same)
    merge = merge.whenMatched().update(_quoted(interval | cells if anywhere or plan.found.partial else interval))
    event = {POSITION: new["position"], COMMITTED_AT: new["committed_at"]}
    merge.whenNotMatched().insert(_quoted(_key(plan, new) | cells | interval | event)).merge()
