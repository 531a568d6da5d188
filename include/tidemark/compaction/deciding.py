"""Decide for each table what this run does with it: build, wait, stop, leave as it is, or build from the whole log."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import structlog
from pyiceberg.table import Table
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import guessed_types, key_eras, laid_out_beside, late_defaults, placing, row_patterns
from tidemark.compaction.decisions import BuildAnew, Decision, Stopped, Unmoved, Waiting, stopped
from tidemark.compaction.engine_failures import contained
from tidemark.compaction.event_log import new_events, shards_of
from tidemark.compaction.run import Run
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.lake import names, other_writers
from tidemark.lake.branches import cut_tags, marker
from tidemark.lake.names import Identifier
from tidemark.ledger.ledger import BY_HAND
from tidemark.ledger.states import LEFT_BEHIND
from tidemark.sources.schema_policy import Retyped
from tidemark.tables import columns as table_columns
from tidemark.tables import epochs, evolving, planner, schema_policies
from tidemark.tables.plan import Found, Plan
from tidemark.tables.schemas import columns_of, unsettled_columns
from tidemark.text import suggestion

log = structlog.get_logger(__name__)

_NOTHING_TELLS_COLUMNS = "only TRUNCATE so far, nothing tells its columns"


def decide(run: Run, finds: Mapping[str, Found]) -> tuple[list[Plan], list[Decision]]:
    """Return the plans of the tables that are to be built, and what was decided for the others."""
    decided = [contained(run, found, partial(_decide, run, found)) for found in finds.values()]
    plans = [each for each in decided if isinstance(each, Plan)]
    decisions = [each for each in decided if not isinstance(each, Plan)]
    for claimants in _by_target(plans):
        if len(claimants) > 1:
            claimed_by = " and ".join(plan.found.object for plan in claimants)
            reason = f"{claimed_by} would both be published as {claimants[0].target}; tell them apart with `target:`"
            decisions += [stopped(plan.found, reason) for plan in claimants]
            plans = [plan for plan in plans if plan.target != claimants[0].target]
    return plans, decisions


def _decide(run: Run, found: Found) -> Plan | Decision:
    if found.target is None or found.problem:
        return stopped(found, found.problem or "")
    # A table that is not there yet follows statements when its first rows come.
    stated = found.history.since(found.published_batch, run.cut.batch) and found.table is not None
    if not found.events and not stated:
        return Unmoved(object=found.object, target=found.target, withheld=found.withheld)
    request = run.requests.get(found.object)
    if _is_new(run, found) and schema_policies.lacks_consent(run.source, found.object):
        return Waiting(found=found, reason=schema_policies.CONSENT, request=request)
    others = _changed_by_others(run, found, found.target, requested=request is not None)
    return others or _planned(run, found, request)


def _is_new(run: Run, found: Found) -> bool:
    """Return whether a table was never published; one that is there without rows of a cut had a candidate only."""
    row = run.published.get(found.object)
    is_shown = found.table is not None and marker(found.table, "batch") is not None
    return not is_shown and (row is None or row.state in LEFT_BEHIND)


def _planned(run: Run, found: Found, request: str | None) -> Plan | Decision:
    try:
        plan = _plan(run, found, anew=request if found.shapes else None)
    except IncompatibleSchemaError as error:
        return stopped(found, str(error))
    except RebuildNeededError as error:
        evolves = run.source.policies_for(found.object).type is Retyped.EVOLVE or found.table is None
        if request is not None or not evolves:
            again = f"`tidemark rebuild {run.source.source} {found.object}`"
            return stopped(found, f"{error}. The table stays as it is; rebuild it: {again}")
        return BuildAnew(object=found.object, reason=str(error))
    return plan or Waiting(found=found, reason=_NOTHING_TELLS_COLUMNS, request=request)


def _changed_by_others(run: Run, found: Found, target: Identifier, *, requested: bool) -> Stopped | BuildAnew | None:
    """Return what is done about a table that another writer changed; None to go on.

    Args:
        run: the run.
        found: the table.
        target: the published table.
        requested: whether it is to be built from its whole change log, which needs nothing of what others did.
    """
    if found.table is None:
        return None
    again = f"`tidemark rebuild {run.source.source} {found.object}`"
    shown = found.published_beside
    if problem := other_writers.unwritable(found.table) or (other_writers.unwritable(shown) if shown else None):
        return stopped(found, f"{problem}: drop the table, then {again} makes it anew")
    if requested:
        return None
    state = run.lake.find(names.state(target))
    of_another_cut = shown is not None and cut_tags(shown)[-1:] != cut_tags(found.table)[-1:]
    if state is None or of_another_cut:
        reason = "its whole rows are of another cut" if of_another_cut else "the state of its rows is gone"
        return BuildAnew(object=found.object, reason=reason)
    beside = [*names.beside(target), *([names.whole(names.history(target))] if shown is not None else [])]
    tables = (found.table, shown, state, *map(run.lake.find, beside))
    changes = [text for table in tables if table is not None and (text := other_writers.changes(table))]
    if not changes:
        return None
    return stopped(
        found,
        f"{'. '.join(changes)}. No event tells of this, so nothing is published on top of it. Undo it, or {again} "
        "makes the table again from its change log, without what the other writer did",
    )


def _by_target(plans: Iterable[Plan]) -> Iterable[Sequence[Plan]]:
    ordered = sorted(plans, key=lambda plan: plan.target)
    return [list(group) for _, group in itertools.groupby(ordered, lambda plan: plan.target)]


def _plan(run: Run, found: Found, *, anew: str | None) -> Plan | None:
    """Return what is to be done to a table; None for one that is not there yet, and whose columns nothing declares.

    Args:
        run: the run.
        found: the table.
        anew: the request to build it as if there were none, or None.
    """
    known = None if anew else found.table
    events = cache(partial(new_events, run, found))
    found = _as_taken(run, events, found, known)
    if found.table is None and not found.shapes:
        return None
    key_eras.refuse_earlier(found, events, known)
    found = key_eras.followed(run, found, events, known)
    values = partial(_by_epoch, events, found, known)
    if unknown := table_columns.untyped(found, run.source, known):
        published: dict[str, str] = {}
        if anew and not anew.endswith(BY_HAND):
            unsettled = unsettled_columns(found.table)
            published = {name: kind for name, kind in columns_of(found.table) if name not in unsettled}
        found = replace(found, inferred=guessed_types.types_again(values(), found, unknown, published))
    plan = planner.plan(run.source, found, found.table, anew=bool(anew))
    laid_out_beside.refuse_loss(run, plan)
    placing.refuse_shared(run, plan)
    row_patterns.refuse_unknown(run, plan)
    if known is not None:
        late_defaults.refuse(run, plan)
        guessed_types.refuse_rounding(run, plan, values)
    _warn(run, plan)
    return plan


def _by_epoch(events: Callable[[], DataFrame], found: Found, table: Table | None) -> DataFrame:
    """Return the events that a table takes in, their shapes by epoch where its columns had other names."""
    if not found.names or found.shards:
        return events()
    return events().withColumn("shape", epochs.shape_in_epoch(evolving.names_of(found, table)))


def _warn(run: Run, plan: Plan) -> None:
    """Log what a person may have forgotten to write into the source file."""
    found = plan.found
    declared = run.source.table_for(found.object).key
    if not plan.key and found.table is None and declared is None and () not in found.keys:
        hint = "give it with `key:`, or write `key: []` to say that there is none"
        log.warning("table_without_key", object=found.object, published_as="a bag of rows", hint=hint)
    for name in table_columns.unknown_columns(run.source, plan):
        hint = suggestion(name, [column.name for column in plan.columns]).strip()
        log.warning("column_not_found", object=found.object, column=name, named_in="source file", hint=hint)


def _shards_as_taken(run: Run, events: Callable[[], DataFrame], found: Found) -> Found:
    """Return the table with the shapes that the images of its shards have when the added columns are in them."""
    read = shards_of(run, found)
    withheld = found.withheld.left_out or found.withheld.released
    occurring = set(found.shapes)
    if withheld or not read.is_uniform:
        occurring = {row["shape"] for row in events().select("shape").distinct().collect()}
    shapes, names_by_shape = read.shapes(occurring)
    return replace(found, shapes=shapes, names=names_by_shape)


def _as_taken(run: Run, events: Callable[[], DataFrame], found: Found, table: Table | None) -> Found:
    """Keep the shapes that occur among the events taken now. A rename or drop splits a shape into one per epoch.

    A column may occur only in events that wait for their transaction, or were undone with it. It is no column of the
    table yet: nothing declares its type before its values count.
    """
    if found.shards:
        return _shards_as_taken(run, events, found)
    column_names = evolving.names_of(found, table)
    renamed = column_names.touches(column.name for shape in found.shapes.values() for column in shape.columns)
    withheld = found.withheld.left_out or found.withheld.released
    if not (renamed or withheld):
        return found
    if not (column_names.renamings or withheld):  # the source file alone gives other names, and the same at any time
        shapes, by_shape = epochs.shapes_by_epoch(found.shapes, column_names, {f"{shape}@0" for shape in found.shapes})
        return replace(found, shapes=shapes, names=by_shape)
    ids = epochs.shape_in_epoch(column_names) if renamed else F.col("shape")
    occurring = {row["shape"] for row in events().select(ids.alias("shape")).distinct().collect()}
    if renamed:
        shapes, by_shape = epochs.shapes_by_epoch(found.shapes, column_names, occurring)
        return replace(found, shapes=shapes, names=by_shape)
    return replace(found, shapes={name: shape for name, shape in found.shapes.items() if name in occurring})
