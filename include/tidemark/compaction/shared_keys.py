"""Keys that rows of several shards have: nothing says which of the rows is meant, so none is published."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction.candidate import Prepared
from tidemark.errors import IncompatibleSchemaError
from tidemark.folding import frames
from tidemark.tables import shard_rules

_SHOWN = 2
"""Shards that an error names."""


def refuse(prepared: Prepared, ready: DataFrame) -> None:
    """Refuse a candidate in which a key has rows of several shards.

    Each shard is folded by itself, so whether a key is shared depends on the set of events alone.

    Args:
        prepared: a table with a candidate.
        ready: the rows that were merged into it.

    Raises:
        IncompatibleSchemaError: a key is shared; the table stays as it is.
    """
    plan, run = prepared.plan, prepared.run
    if not plan.found.shards or shard_rules.tells_apart(plan.found, plan.readers_key):
        return
    *keys, shard = frames.key_names(plan)
    touched = ready.where(~F.col("deleted")).select(*keys).distinct()
    rows = run.read(plan.rows, run.cut.branch)
    stored = [F.col(f"`{plan.stored(name)}`").alias(own) for name, own in zip(plan.key, [*keys, shard], strict=True)]
    of_key = rows.select(*stored).join(touched, keys, "left_semi").groupBy(*keys)
    owners = of_key.agg(F.sort_array(F.collect_set(shard)).alias("owners")).where(F.size("owners") > 1)
    counted = owners.agg(F.count("*").alias("keys"), F.min(F.slice("owners", 1, _SHOWN)).alias("owners")).first()
    if counted is None or not counted["keys"]:
        return
    one, other = counted["owners"]
    raise IncompatibleSchemaError(
        f"{plan.target}: {counted['keys']} keys ({', '.join(plan.readers_key)}) are those of rows in several tables, "
        f"{one} and {other} among them. {_remedy(prepared, one, other)}"
    )


def _remedy(prepared: Prepared, one: str, other: str) -> str:
    """Return what to do so that the key tells two shards apart."""
    added = {shard.object: shard.added for shard in prepared.plan.found.shards}
    telling = [name for name, value in added[one].items() if value != added[other][name]]
    key = ", ".join([*telling, *prepared.plan.readers_key])
    if telling:
        return f"{' and '.join(telling)} tells them apart: take it into the key, `key: [{key}]`"
    return (
        "Add a column whose value differs, `add: {COLUMN: '...'}` with a group or a field of the table's name, and "
        "take it into the key"
    )
