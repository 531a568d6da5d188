"""Compact: fold new events of the change log onto the published tables, each on a candidate branch.

*Compact* is log compaction (the last image per key); rewriting small files is maintenance. All tables of the source
that have new events are built side by side in one Spark session and belong to one cut. A schema change that would lose
data stops its table, with the reason, and no other.
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache, partial

import structlog
from pyiceberg.table import Table
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark import cuts, deriving, epochs, guesses, held, planning, rebuilding, together
from tidemark.bag_candidates import candidate_of
from tidemark.branches import MARKER, marker
from tidemark.candidates import Candidate, Cut, Fold
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.events import Operation
from tidemark.held import Withheld
from tidemark.lake import Lake
from tidemark.ledger import BY_HAND, Ledger, Row
from tidemark.plan import Found, Plan
from tidemark.row_filters import above, equals
from tidemark.schema_history import History, histories
from tidemark.session import is_small, open_session, tuned_for
from tidemark.sources import SchemaPolicy, Source, Transactions
from tidemark.stages import StageReport
from tidemark.table_schemas import columns_of, unsettled_columns
from tidemark.yaml_errors import suggestion

log = structlog.get_logger(__name__)

_SIDE_BY_SIDE = 4
"""Tables that are built at once: a commit waits for the catalog longer than it computes."""

_NOTHING_TOLD = "only TRUNCATE so far, nothing tells its columns"

_BATCH_PROPERTY = f"spark.sql.iceberg.snapshot-property.{MARKER}batch"


def run(source: Source) -> StageReport:
    """Build the candidate of every table that has events which no published cut holds.

    An earlier candidate that was never published is dropped and built again from where ``main`` stands, but for one
    that is held for approval: it stays until there are new events. A cut whose publishing was cut short is finished
    first.

    Raises:
        LedgerError: events went missing.
        LakeError: the store or the engine failed; running again starts from ``main``.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    cuts.finish(lake, ledger)
    deriving.finish_retry(lake, source.source)
    last = cuts.last_published(ledger)
    newest = int(marker(lake.find(("changelog", source.source)), "batch") or 0)
    stands = _stands(ledger, last, cuts.STOPPED)
    asked = ledger.rebuilds()
    nothing_new = newest <= min([last["batch"] if last else 0, *stands.values()]) and not _released(ledger, source)
    if not asked and (nothing_new or _is_held(ledger, newest)):
        return _report(source, [], {})
    stands |= _stands(ledger, last, cuts.WAITING)
    cut = Cut(number=cuts.next_number(lake, ledger), batch=newest)
    session = open_session()
    published = ledger.published_tables()
    finds = _find(ledger, source, stands | dict.fromkeys(asked, 0), last["batch"] if last else 0, newest, published)
    finds = {name: _told_by_ddl(source, found) for name, found in finds.items()}
    known = {name: row["rows_after"] or 0 for name, row in published.items()}
    sizes = {name: found.events + known.get(name, 0) for name, found in finds.items()}
    were_there = {row["object"] for row in ledger.read("tables", equals("state", cuts.PUBLISHED))} - asked.keys()
    if gone := _gone(lake, source, [found for name, found in finds.items() if name in were_there and found.after]):
        return _begin_anew(source, ledger, dict.fromkeys(gone, "it was published, and is not there any more"))
    rows = _build(session, lake, source, finds, sizes, cut, stands, last["batch"] if last else 0, asked)
    if anew := {row["object"]: row.pop("anew") for row in rows if "anew" in row}:
        return _begin_anew(source, ledger, anew)
    rows += rebuilding.without_events(lake, ledger, cut, {name: asked[name] for name in asked.keys() - finds.keys()})
    for row in rows:
        row["rows_before"] = known.get(row["object"], 0)
        row["rows_after"] = (0 if row.get("rebuilt") else row["rows_before"]) + row.pop("rows_change", 0)
        if row.get("rebuilt"):
            row["deleted"] = row.pop("lost", max(0, row["rows_before"] - row["rows_after"]))
    ledger.replace("tables", rows, equals("cut", cut.number))
    ledger.replace("cuts", [{"cut": cut.number, "state": cuts.CANDIDATE, "batch": newest}], equals("cut", cut.number))
    return _report(source, rows, {name: _ddl_not_followed(found) for name, found in finds.items()})


def _begin_anew(source: Source, ledger: Ledger, reasons: Mapping[str, str]) -> StageReport:
    """Run again, and build the tables that have a reason from their whole change log."""
    for name, reason in reasons.items():
        log.warning("table_built_anew", object=name, reason=reason)
    ledger.ask_for_rebuild(reasons)
    return run(source)


def _gone(lake: Lake, source: Source, finds: Iterable[Found]) -> list[str]:
    """Tables that are not where the source file says that they are, though they were published."""
    listed = cache(lake.tables)
    gone = []
    for found in finds:
        with suppress(IncompatibleSchemaError):  # of a name that cannot be one, which planning tells
            target = planning.target_of(source, found)
            # Listing is one question for all of them; catalogs may fold the case of what they list.
            if target[1] not in listed(target[0]) and lake.find(target) is None:
                gone.append(found.object)
    return gone


def _ddl_not_followed(found: Found) -> str:
    """Statements of the new batches that were not followed: told, and no reason to hold anything back."""
    notes = [note.text for note in found.history.notes if note.batch > found.after]
    for note in notes:
        log.warning("ddl_not_followed", object=found.object, statement=note)
    return "; ".join(notes)


def _is_held(ledger: Ledger, batch: int) -> bool:
    """Whether all there is waits for approval already: what a person looks at does not change under their hands."""
    cut = ledger.last_cut()
    return cut is not None and cut["state"] == cuts.HELD and cut["batch"] == batch


def _stands(ledger: Ledger, last: Row | None, state: str) -> dict[str, int]:
    """Objects that stand behind the last cut because of their state in it, and the batch they stand at."""
    published = ledger.published_tables().items() if last else ()
    return {name: row["batch"] for name, row in published if row["state"] == state}


def _released(ledger: Ledger, source: Source) -> bool:
    """Whether events that were held are held no more, though nothing new has come."""
    ignored = source.transactions == Transactions.IGNORE
    return ignored and any(row["held"] for row in ledger.published_tables().values())


def _find(
    ledger: Ledger,
    source: Source,
    stands: Mapping[str, int],
    default: int,
    newest: int,
    published: Mapping[str, Row],
) -> dict[str, Found]:
    """What the new events and schema changes tell of each table, and the events that are taken in late."""
    withheld = _withheld(ledger, source, stands, default, newest, published)
    lowest = min([default, *stands.values(), *(each.since - 1 for each in withheld.values() if each.since)])
    shapes: dict[str, list[Row]] = defaultdict(list)
    for row in ledger.read("shapes"):
        shapes[row["object"]].append(row)
    by_object: dict[str, list[Row]] = defaultdict(list)
    for row in ledger.read("contents", above("batch", lowest)):
        name = row["object"]
        after = stands.get(name, default)
        since = withheld[name].since if name in withheld else 0
        if (after < row["batch"] or 0 < since <= row["batch"]) and row["batch"] <= newest:
            by_object[name].append(row)
    told = histories(ledger, {*by_object, *published})
    about = {name: rows[0] for name, rows in by_object.items()}
    for name in published:
        if name in told and name not in about and told[name].since(stands.get(name, default), newest):
            about[name] = ledger.read("contents", equals("object", name))[0]
    paths = [row["path"] for row in ledger.read("files")]
    common_path = len(os.path.commonprefix(paths))  # noqa: RUF071  characters are meant
    split = _with_halves(ledger, by_object, newest)
    finds = {}
    for name in sorted(about):
        after, kept = stands.get(name, default), withheld.get(name, held.NOTHING)
        found = _found(about[name], by_object[name], shapes[name], after, kept)
        finds[name] = replace(
            found,
            halves=found.halves or name in split,
            history=told.get(name, History()).until(newest),
            common_path=common_path,
        )
    return finds


def _with_halves(ledger: Ledger, contents: Mapping[str, Sequence[Row]], newest: int) -> set[str]:
    """Of tables with new partial images those of which any batch had the old half of an update."""
    names = {name for name, rows in contents.items() if any(row["partial"] for row in rows)}
    told = ledger.read("contents", equals("half", value=True)) if names else []
    return names & {row["object"] for row in told if row["batch"] <= newest}


def _withheld(
    ledger: Ledger,
    source: Source,
    stands: Mapping[str, int],
    default: int,
    newest: int,
    published: Mapping[str, Row],
) -> dict[str, Withheld]:
    """What open and undone transactions change, by table; nothing of tables that have no events of them."""
    rows = held.acting(ledger.read("transactions"), min([default, *stands.values()]))
    tables = held.tables_of(rows)
    if not tables:
        return {}
    carried = {name for name, row in published.items() if row["held"]}
    ignored = source.transactions == Transactions.IGNORE
    return {
        name: held.withheld(rows, name, stands.get(name, default), newest, carried=name in carried, ignored=ignored)
        for name in tables
    }


def _told_by_ddl(source: Source, found: Found) -> Found:
    """What the source's policy lets DDL tell of a table."""
    if source.schema_policy is SchemaPolicy.IGNORE:
        return replace(found, history=replace(found.history, renamings=(), additions=()))
    return found


def _found(about: Row, rows: Sequence[Row], shapes: Iterable[Row], after: int, withheld: Withheld) -> Found:
    used = {row["shape"] for row in rows}
    new = [row for row in rows if row["batch"] > after]
    events, truncates = withheld.taken
    return Found(
        object=about["object"],
        after=after,
        database=about["database"],
        schema=about["schema"],
        name=about["name"],
        events=events + sum(row["events"] for row in new),
        truncates=truncates + sum(row["events"] for row in new if row["operation"] == Operation.TRUNCATE),
        shapes={
            row["shape"]: planning.shape_from(row["columns"])
            for row in sorted(shapes, key=_seniority)
            if row["shape"] in used
        },
        keys=sorted({tuple(row["key"]) for row in rows if row["key"] is not None}),
        partial=any(row["partial"] for row in rows),
        halves=any(row["half"] for row in rows),
        withheld=withheld,
    )


def _seniority(row: Row) -> tuple[int, int, str]:
    """Shapes by batch and width, so that columns keep the source's order as the table grows."""
    return (row["batch"], len(row["columns"]), row["shape"])


def _build(
    session: SparkSession,
    lake: Lake,
    source: Source,
    finds: Mapping[str, Found],
    sizes: Mapping[str, int],
    cut: Cut,
    stands: Mapping[str, int],
    default: int,
    asked: Mapping[str, str],
) -> list[Row]:
    with tuned_for(session, sizes.values()):
        planned, rows = _plan_all(session, lake, source, finds, cut, stands, default, asked)
    if any("anew" in row for row in rows):
        return rows
    small: list[tuple[Plan, int]] = []
    large: list[tuple[Plan, int]] = []
    for plan, after in planned:
        (small if is_small(sizes[plan.found.object]) else large).append((plan, after))
    for tables in filter(None, (small, large)):
        rows += _build_side_by_side(session, lake, source, tables, sizes, cut, asked, alone=tables is large)
    return rows


def _build_side_by_side(
    session: SparkSession,
    lake: Lake,
    source: Source,
    tables: Sequence[tuple[Plan, int]],
    sizes: Mapping[str, int],
    cut: Cut,
    asked: Mapping[str, str],
    *,
    alone: bool,
) -> list[Row]:
    """Build the tables; each is folded in a plan of its own where ``alone``."""
    # Making a frame makes the session the active one of a thread. Where there is none, Spark's cache takes the settings
    # that Spark has by itself, and refuses tables with columns whose names differ in case only.
    activate = partial(session.createDataFrame, [], "nothing int")
    again = [plan for plan, _ in tables if plan.found.object in asked]
    candidates = [
        (candidate_of(plan)(session, lake, source.source, plan, cut), after)
        for plan, after in tables
        if plan.found.object not in asked
    ]
    pool = ThreadPoolExecutor(_SIDE_BY_SIDE, initializer=activate)
    with _marked(session, cut.batch), ExitStack() as views, pool:
        deque(pool.map(Candidate.prepare, (candidate for candidate, _ in candidates)), maxlen=0)
        folds: Mapping[str, Fold] = {}
        if not alone:
            folds = together.folds(session, lake, source.source, candidates, cut.batch, pool, views)
        with tuned_for(session, [sizes[plan.found.object] for plan, _ in tables]):
            jobs = [
                pool.submit(rebuilding.build, session, lake, source.source, plan, cut, asked[plan.found.object])
                for plan in again
            ]
            jobs += [
                pool.submit(_build_one, session, lake, source, candidate, after, folds.get(candidate.plan.found.object))
                for candidate, after in candidates
            ]
            return [job.result() for job in jobs]


def _plan_all(
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


def _build_one(
    session: SparkSession, lake: Lake, source: Source, candidate: Candidate, after: int, fold: Fold | None
) -> Row:
    plan, row = candidate.plan, candidate.build(after, fold)
    follows = source.schema_policy is not SchemaPolicy.STRICT
    if follows and row["quarantined"] and guesses.are_outgrown(session, lake, source, plan, candidate.changes(after)):
        row["anew"] = "a number does not fit a type that was guessed from values"
    return row


def _concerned(lake: Lake, source: Source, found: Found, cut: Cut) -> bool:
    """Whether statements alone change a table; one that is not there yet follows them when its first rows come."""
    stated = found.history.since(found.after, cut.batch)
    return stated and lake.find(planning.target_of(source, found)) is not None


def _plan(
    session: SparkSession, lake: Lake, source: Source, found: Found, batch: int, *, anew: str | None
) -> Plan | None:
    """What is to be done to a table; None for one that there is not yet, and that nothing tells the columns of.

    ``anew`` is the asking to build it as if there were none, or None.
    """
    table = lake.find(planning.target_of(source, found))
    known = None if anew else table
    events = cache(partial(_events, session, lake, source, found, batch))
    found = _as_taken(events, found, known)
    if table is None and not found.shapes:
        return None
    if unknown := planning.untyped(found, source, known):
        values = events()
        if found.names:
            values = values.withColumn("shape", epochs.shape_in_epoch(planning.names_of(found, known)))
        published: dict[str, str] = {}
        if anew and not anew.endswith(BY_HAND):
            unsettled = unsettled_columns(table)
            published = {name: kind for name, kind in columns_of(table) if name not in unsettled}
        found = replace(found, inferred=guesses.types_again(values, found, unknown, published))
    plan = planning.plan(source, found, table, anew=bool(anew))
    if not plan.key and table is None and source.table_for(found.object).key is None and () not in found.keys:
        hint = "give it with `key:`, or write `key: []` to say that there is none"
        log.warning("table_without_key", object=found.object, published_as="a bag of rows", hint=hint)
    for name in planning.unknown_columns(source, plan):
        hint = suggestion(name, [column.name for column in plan.columns]).strip()
        log.warning("column_not_found", object=found.object, column=name, named_in="source file", hint=hint)
    return plan


def _as_taken(events: Callable[[], DataFrame], found: Found, table: Table | None) -> Found:
    """Keep the shapes of the events that are taken, those of before a rename or drop told from the same ones after it.

    A column that only events tell which wait for their transaction, or were undone with it, is none of the table's yet:
    nothing tells its type before their values count.
    """
    names = planning.names_of(found, table)
    renamed = names.touches(column.name for shape in found.shapes.values() for column in shape.columns)
    if not (renamed or found.withheld.left_out or found.withheld.released):
        return found
    ids = epochs.shape_in_epoch(names) if renamed else F.col("shape")
    occurring = {row["shape"] for row in events().select(ids.alias("shape")).distinct().collect()}
    if renamed:
        shapes, by_shape = epochs.shapes_by_epoch(found.shapes, names, occurring)
        return replace(found, shapes=shapes, names=by_shape)
    return replace(found, shapes={name: shape for name, shape in found.shapes.items() if name in occurring})


def _events(session: SparkSession, lake: Lake, source: Source, found: Found, batch: int) -> DataFrame:
    changelog = session.table(lake.spark_name(("changelog", source.source)))
    return held.taken(changelog, found.object, found.after, batch, found.withheld)


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
    told = {"object": found.object, "target": ".".join(planning.target_of(source, found)), "state": cuts.UNMOVED}
    return {"cut": cut.number, "batch": cut.batch, "events": sum(counts.values()), **told, **counts}


@contextmanager
def _marked(session: SparkSession, batch: int) -> Iterator[None]:
    """Put the marker into every commit of the session: what was done is told in the commit that does it."""
    session.conf.set(_BATCH_PROPERTY, str(batch))
    try:
        yield
    finally:
        session.conf.unset(_BATCH_PROPERTY)


def _report(source: Source, rows: Sequence[Row], ddl: Mapping[str, str]) -> StageReport:
    names = ("events", "applied", "superseded", "duplicate", "held", "quarantined")
    totals = {name: sum(row[name] for row in rows) for name in names}
    problems = tuple(row["reason"] for row in rows if row["state"] == cuts.STOPPED)
    details: dict[str, dict[str, int | str]] = {row["object"]: {name: row[name] for name in names} for row in rows}
    for name, told in ddl.items():
        if told and name in details:
            details[name]["ddl"] = told
    log.info("compacted", source=source.source, tables=len(rows), **totals)
    summary = {"tables": len(rows), **totals}
    return StageReport(stage="compact", source=source.source, summary=summary, problems=problems, details=details)
