"""Tables whose key changed at the source: events are folded by the key that held at their place in the log.

A table is built era by era. Each era goes on from the rows that the era before it left, and tells them apart by its own
key. So a delete or an update that has the old key alone finds its row. All of this is done beside the published table,
in a rebuild. Events from before the change that come later begin another rebuild (docs/adr/0044).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_

from pyiceberg.table import Table
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction.candidate import Prepared, prepare
from tidemark.compaction.decisions import Built
from tidemark.compaction.event_log import new_events
from tidemark.compaction.merging import remove
from tidemark.compaction.run import Run
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.events import Operation
from tidemark.folding import frames, key_bounds
from tidemark.lake.copies import EmptyLake
from tidemark.lake.filters import among
from tidemark.ledger.event_counts import NO_EVENTS
from tidemark.spark.session import checkpointed
from tidemark.tables import evolving
from tidemark.tables.eras import keyed_since
from tidemark.tables.keys import KeySpan, eras_of
from tidemark.tables.plan import Found, KeyEra, Plan
from tidemark.tables.schemas import DELETED, POSITION, key_of
from tidemark.text import quoted


def followed(run: Run, found: Found, events: Callable[[], DataFrame], known: Table | None) -> Found:
    """Return a table that takes in all of its events with the keys that they named one after another.

    Args:
        run: the run.
        found: the table.
        events: returns the events that it takes in.
        known: the published table; None if the table takes in all events.

    Raises:
        RebuildNeededError: several keys held one after another, and the table has to be built from all events.
        IncompatibleSchemaError: messages do not show which key held when, or the source file gives a key that no longer
            holds.
    """
    declared = run.source.table_for(found.object).key
    if found.shards:  # each has its own log: the key of all is one, or they cannot be folded together
        return found
    if declared is not None and (not declared or not _is_contradicted(run, found, declared)):
        return found
    if known is not None:
        _require_same_key(run, found, events, known, declared)
        return found
    if len({frozenset(key) for key in found.keys}) + found.unkeyed < 2:
        return found
    names = evolving.names_of(found, None)
    eras = _since_last_emptying(found, eras_of(found.object, _spans(events()), names))
    if not eras:  # all that there is waits for its transactions
        return found
    if declared is not None and set(declared) != set(eras[-1].key):
        raise IncompatibleSchemaError(
            f"{found.object}: the source file gives the key {list(declared)}, which messages named too, and now they "
            f"name {list(eras[-1].key)}. Take `key:` out of the source file, and run again: the table is built with "
            "each key for its time"
        )
    found = replace(found, keys=[eras[-1].key], eras=eras if len(eras) > 1 else ())
    if found.eras and found.object not in run.requests:
        raise RebuildNeededError(f"{found.object}: messages name the keys {[list(era.key) for era in eras]} in turn")
    return found


def refuse_earlier(found: Found, events: Callable[[], DataFrame], known: Table | None) -> None:
    """Refuse to go on with events from before the table got its key, or its name.

    Args:
        found: the table.
        events: returns the events that it takes in.
        known: the published table; None if the table takes in all events.

    Raises:
        RebuildNeededError: there are such events.
    """
    since = max(keyed_since(known), found.segments[-1].begins if found.segments else "")
    first = events().agg(F.min("position")).first() if known is not None and since else None
    if first is not None and first[0] is not None and first[0] < since:
        raise RebuildNeededError(f"{found.object}: events came from before it got its key or its name")


def _is_contradicted(run: Run, found: Found, declared: Sequence[str]) -> bool:
    """Return whether messages named the key that the source file gives, and another one too."""
    if all(set(key) == set(declared) for key in found.keys):
        return False
    named = [
        row.key for row in run.ledger.contents(among("object", found.objects)) if row.key and row.batch <= run.cut.batch
    ]
    return set(declared) in [set(key) for key in named]


def _require_same_key(
    run: Run, found: Found, events: Callable[[], DataFrame], known: Table, declared: Sequence[str] | None
) -> None:
    """Check that no new event is of a time with another key.

    Raises:
        RebuildNeededError: one is.
    """
    key = key_of(known)
    others = [list(each) for each in found.keys if each and declared is not None and set(each) != set(declared)]
    if others:
        raise RebuildNeededError(
            f"{found.object}: messages name the keys {others}, and the source file {list(declared or ())}"
        )
    if key and found.unkeyed and declared is None and not _name_it_throughout(found, events):
        named = [row for row in run.ledger.contents(among("object", found.objects)) if row.key]
        if named:
            raise RebuildNeededError(f"{found.object}: messages name no key any more, and the table has {key}")


def _name_it_throughout(found: Found, events: Callable[[], DataFrame]) -> bool:
    """Return whether new messages that name a key come before and after those that name none."""
    spans = _spans(events()) if any(found.keys) else []
    unnamed = [span for span in spans if span.key is None]
    return any(each.key and each.first < span.last and span.first < each.last for each in spans for span in unnamed)


def _spans(events: DataFrame) -> list[KeySpan]:
    rows = (
        events.where(F.col("operation") != Operation.TRUNCATE).groupBy("key").agg(F.min("position"), F.max("position"))
    )
    return [KeySpan(None if key is None else tuple(key), first, last) for key, first, last in rows.collect()]


def _since_last_emptying(found: Found, eras: Sequence[KeyEra]) -> list[KeyEra]:
    """Return the eras whose events count.

    A complete load, or a statement that empties the table, settles the eras before it.
    """
    settled = max((each.position for each in found.history.emptyings), default="")
    ends = [era.begins for era in eras[1:]]
    return [era for era, end in zip(eras, [*ends, None], strict=True) if end is None or end > settled]


def build(run: Run, plan: Plan, beside: EmptyLake, build_candidate: Callable[[Prepared], Built]) -> Built:
    """Build the candidate of a table from all its events, era by era.

    Args:
        run: the run, on the lake beside.
        plan: made as if there were no table yet.
        beside: the lake beside.
        build_candidate: builds a table that is prepared.

    Raises:
        IncompatibleSchemaError: the new key of a row from before is null, or several rows have the same.
        LedgerError: events went missing between the change log and the fold.
    """
    if not plan.found.eras:
        return build_candidate(prepare(run, plan))
    built: list[Built] = []
    phases, let_go = _phases(run, plan), 0
    for place, phase in enumerate(phases):
        if place:
            let_go += _let_go(run, phase, phases[place - 1]) if plan.soft else 0
            beside.go_on(run.cut.branch, without=plan.state)
            _refuse_unknown(run, phase, plan.found.eras[place - 1])
        built.append(build_candidate(prepare(run, phase)))
    return replace(
        built[-1],
        counts=sum((each.counts for each in built), NO_EVENTS),
        rows_change=sum(each.rows_change for each in built) - let_go,
        committed_at=max((each.committed_at for each in built if each.committed_at is not None), default=None),
    )


def _phases(run: Run, plan: Plan) -> list[Plan]:
    """Return the plan of each era: its key, and its events."""
    found, eras = plan.found, plan.found.eras
    ends = [*(era.begins for era in eras[1:]), None]
    pairs = run.source.traits.pairs_updates
    phases = []
    for place, (era, end) in enumerate(zip(eras, ends, strict=True)):
        begins = era.begins if place else ""
        emptyings = tuple(each for each in found.history.emptyings if each.position >= begins)
        within = replace(found, positions=(begins, end), history=replace(found.history, emptyings=emptyings))
        if place:
            within = replace(within, withheld=replace(found.withheld, held=0, discarded=0))
        rows = new_events(run, within)
        counted = rows.agg(F.count("*"), F.count_if(F.col("operation") == Operation.TRUNCATE)).first()
        events, truncates = (int(counted[0]), int(counted[1])) if counted else (0, 0)
        within = replace(within, events=events, truncates=truncates)
        phases.append(replace(plan, found=within, key=era.key, pairs_updates=not era.key and pairs))
    return phases


def _let_go(run: Run, phase: Plan, earlier: Plan) -> int:
    """Delete rows that are only marked as deleted, where the new key does not tell them apart; return how many.

    They have null in it, or another row has the same: a row that lives, or one that was deleted later.
    """
    if not phase.key or not earlier.key:
        return 0
    key = [F.col(quoted(name)) for name in phase.key]
    own = [F.col(quoted(name)) for name in earlier.key]  # a TRUNCATE marks many rows at one position
    newest = Window.partitionBy(*key).orderBy(F.col(DELETED), F.desc(POSITION), *own)
    goes = F.col(DELETED) & (_has_null(key) | (F.row_number().over(newest) > 1))
    rows = run.read(phase.rows, run.cut.branch).select(*frames.key_columns(earlier), goes.alias("goes"))
    gone = checkpointed(rows.where("goes").drop("goes"))
    if count := gone.count():
        remove(gone, earlier, run.lake.spark_name(phase.rows, run.cut.branch), key_bounds.ANY)
    return count


def _has_null(key: Sequence[Expression]) -> Expression:
    return reduce(or_, [column.isNull() for column in key])


def _refuse_unknown(run: Run, phase: Plan, before: KeyEra) -> None:
    """Refuse to go on with rows that the new key does not tell apart."""
    if not phase.key:
        return
    settled = max((each.position for each in phase.found.history.emptyings), default="")
    stored = run.read(phase.rows, run.cut.branch).where(F.col(POSITION) >= settled)
    columns = [F.col(quoted(name)) for name in phase.key]
    by_key = stored.groupBy(*(column.alias(f"k{place}") for place, column in enumerate(columns))).agg(
        F.count("*").alias("rows"), F.max(_has_null(columns)).alias("null")
    )
    counted = by_key.agg(
        F.sum(F.when(F.col("null"), F.col("rows"))), F.sum(F.when(~F.col("null") & (F.col("rows") > 1), F.col("rows")))
    ).first()
    nulls, twice = (int(counted[0] or 0), int(counted[1] or 0)) if counted else (0, 0)
    if nulls or twice:
        raise IncompatibleSchemaError(
            f"{phase.found.object}: the key changed from {list(before.key)} to {list(phase.key)} at the source, and of "
            f"the rows from before {nulls} have null in a part of the new key, and {twice} share it with another row. "
            "Load the table anew at the source: a complete load after the change replaces them, and the next run goes "
            "on. In formats without marks for loads, name the load under `reloads` in the source file"
        )
