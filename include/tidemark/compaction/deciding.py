"""Decide for each table what this run does with it: build, wait, stop, leave as it is, or build from the whole log."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial

import structlog
from pyiceberg.table import Table
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import guessed_types
from tidemark.compaction.candidate import Cut
from tidemark.compaction.event_log import new_events
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import BY_HAND, Row
from tidemark.sources.model import SchemaPolicy, Source
from tidemark.tables import columns as table_columns
from tidemark.tables import epochs, planner, targets
from tidemark.tables.plan import Found, Plan
from tidemark.tables.schemas import columns_of, unsettled_columns
from tidemark.text import suggestion

_NOTHING_TOLD = "only TRUNCATE so far, nothing tells its columns"

log = structlog.get_logger(__name__)


def plan_all(
    session: SparkSession,
    lake: Lake,
    source: Source,
    finds: Mapping[str, Found],
    cut: Cut,
    stands: Mapping[str, int],
    default: int,
    asked: Mapping[str, str],
) -> tuple[list[tuple[Plan, int]], list[Row]]:
    """What is to be built and from which batch on, and the rows of the tables that are not."""
    planned: list[tuple[Plan, int]] = []
    rows: list[Row] = []
    for name, found in finds.items():
        after = stands.get(name, default)
        try:
            if not found.events and not _concerned(lake, source, found, cut):
                rows.append(_unmoved(cut, source, found))
                continue
            anew = asked.get(name) if found.shapes else None
            plan = _plan(session, lake, source, found, cut.batch, anew=anew)
            if plan is None:
                told = {"state": cuts.WAITING, "reason": _NOTHING_TOLD, "rebuilt": asked.get(name)}
                rows.append({**_standing(cut, found, after), **told})
            else:
                planned.append((plan, found.after))
        except IncompatibleSchemaError as error:
            rows.append(_stopped(cut, found, after, str(error)))
        except RebuildNeededError as error:
            if name in asked or source.schema_policy is not SchemaPolicy.EVOLVE:
                rows.append(_stopped(cut, found, after, f"{error}. The table stays as it is; rebuild it."))
            else:
                rows.append({**_standing(cut, found, after), "anew": str(error)})
    for target, claimants in _by_target(planned).items():
        if len(claimants) > 1:
            names = " and ".join(plan.found.object for plan, _ in claimants)
            reason = f"{names} would both be published as {target}; tell them apart with `target:`"
            rows += [_stopped(cut, plan.found, stands.get(plan.found.object, default), reason) for plan, _ in claimants]
            planned = [item for item in planned if item not in claimants]
    return planned, rows


def _concerned(lake: Lake, source: Source, found: Found, cut: Cut) -> bool:
    """Whether statements alone change a table; one that is not there yet follows them when its first rows come."""
    stated = found.history.since(found.after, cut.batch)
    return stated and lake.find(targets.target_of(source, found)) is not None


def _plan(
    session: SparkSession, lake: Lake, source: Source, found: Found, batch: int, *, anew: str | None
) -> Plan | None:
    """What is to be done to a table; None for one that there is not yet, and that nothing tells the columns of.

    ``anew`` is the asking to build it as if there were none, or None.
    """
    table = lake.find(targets.target_of(source, found))
    known = None if anew else table
    events = cache(partial(new_events, session, lake, source, found, batch))
    found = _as_taken(events, found, known)
    if table is None and not found.shapes:
        return None
    if unknown := table_columns.untyped(found, source, known):
        values = events()
        if found.names:
            values = values.withColumn("shape", epochs.shape_in_epoch(table_columns.names_of(found, known)))
        published: dict[str, str] = {}
        if anew and not anew.endswith(BY_HAND):
            unsettled = unsettled_columns(table)
            published = {name: kind for name, kind in columns_of(table) if name not in unsettled}
        found = replace(found, inferred=guessed_types.types_again(values, found, unknown, published))
    plan = planner.plan(source, found, table, anew=bool(anew))
    if not plan.key and table is None and source.table_for(found.object).key is None and () not in found.keys:
        hint = "give it with `key:`, or write `key: []` to say that there is none"
        log.warning("table_without_key", object=found.object, published_as="a bag of rows", hint=hint)
    for name in table_columns.unknown_columns(source, plan):
        hint = suggestion(name, [column.name for column in plan.columns]).strip()
        log.warning("column_not_found", object=found.object, column=name, named_in="source file", hint=hint)
    return plan


def _as_taken(events: Callable[[], DataFrame], found: Found, table: Table | None) -> Found:
    """Keep the shapes of the events that are taken, those of before a rename or drop told from the same ones after it.

    A column that only events tell which wait for their transaction, or were undone with it, is none of the table's yet:
    nothing tells its type before their values count.
    """
    names = table_columns.names_of(found, table)
    renamed = names.touches(column.name for shape in found.shapes.values() for column in shape.columns)
    if not (renamed or found.withheld.left_out or found.withheld.released):
        return found
    ids = epochs.shape_in_epoch(names) if renamed else F.col("shape")
    occurring = {row["shape"] for row in events().select(ids.alias("shape")).distinct().collect()}
    if renamed:
        shapes, by_shape = epochs.shapes_by_epoch(found.shapes, names, occurring)
        return replace(found, shapes=shapes, names=by_shape)
    return replace(found, shapes={name: shape for name, shape in found.shapes.items() if name in occurring})


def _by_target(planned: Iterable[tuple[Plan, int]]) -> dict[str, list[tuple[Plan, int]]]:
    ordered = sorted(planned, key=lambda item: item[0].target)
    return {".".join(key): list(group) for key, group in itertools.groupby(ordered, lambda item: item[0].target)}


def _stopped(cut: Cut, found: Found, after: int, reason: str) -> Row:
    log.warning("table_stopped", object=found.object, reason=reason)
    return {**_standing(cut, found, after), "state": cuts.STOPPED, "reason": reason}


def _standing(cut: Cut, found: Found, after: int) -> Row:
    """The row of a table that stays where it is, its new events held; without what tells why."""
    events = found.events + found.withheld.held + found.withheld.discarded
    counts = {"events": events, "applied": 0, "superseded": 0, "duplicate": 0, "held": events, "quarantined": 0}
    return {"cut": cut.number, "object": found.object, "batch": after, **counts}


def _unmoved(cut: Cut, source: Source, found: Found) -> Row:
    """The row of a table that has nothing to take in: its new events are held, or of undone transactions."""
    withheld = found.withheld
    counts = {"applied": 0, "superseded": withheld.discarded, "duplicate": 0, "held": withheld.held, "quarantined": 0}
    told = {"object": found.object, "target": ".".join(targets.target_of(source, found)), "state": cuts.UNMOVED}
    return {"cut": cut.number, "batch": cut.batch, "events": sum(counts.values()), **told, **counts}
