"""Compact: fold new events of the change log onto the published tables, each on a candidate branch.

*Compact* is log compaction (the last image per key); rewriting small files is maintenance. All tables of the source
that have new events are built side by side in one Spark session and belong to one cut. A schema change that would lose
data stops its table, with the reason, and no other.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark import cuts, held, inference, planning
from tidemark.candidates import Candidate, Cut
from tidemark.errors import IncompatibleSchemaError
from tidemark.events import Operation
from tidemark.held import Withheld
from tidemark.lake import MARKER, Lake, marker
from tidemark.ledger import Ledger, Row, above, equals
from tidemark.planning import Found, Plan
from tidemark.session import open_session, tuned_for
from tidemark.sources import Source, Transactions
from tidemark.stages import StageReport

log = structlog.get_logger(__name__)

_SIDE_BY_SIDE = 4
"""Tables that are built at once: a commit waits for the catalog longer than it computes."""

_BATCH_PROPERTY = f"spark.sql.iceberg.snapshot-property.{MARKER}batch"


def run(source: Source) -> StageReport:
    """Build the candidate of every table that has events which no published cut holds.

    An earlier candidate that was never published is dropped and built again from where ``main`` stands; a cut whose
    publishing was cut short is finished first.

    Raises:
        LedgerError: events went missing.
        LakeError: the store or the engine failed; running again starts from ``main``.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    cuts.finish(lake, ledger)
    last = cuts.last_published(ledger)
    newest = int(marker(lake.find(("changelog", source.source)), "batch") or 0)
    stands = _stands(ledger, last)
    if newest <= min([last["batch"] if last else 0, *stands.values()]) and not _released(ledger, source):
        return _report(source, [])
    cut = Cut(number=(last["cut"] if last else 0) + 1, batch=newest)
    session = open_session()
    cuts.drop_candidates(lake, ledger, cut.number)
    finds = _find(ledger, source, stands, last["batch"] if last else 0, newest)
    known = {name: row["rows_after"] or 0 for name, row in ledger.published_tables().items()}
    size = sum(found.events + known.get(name, 0) for name, found in finds.items())
    with tuned_for(session, size):
        rows = _build(session, lake, source, finds, cut, stands, last["batch"] if last else 0)
    for row in rows:
        row["rows_before"] = known.get(row["object"], 0)
        row["rows_after"] = row["rows_before"] + row.pop("rows_change", 0)
    ledger.replace("tables", rows, equals("cut", cut.number))
    ledger.replace("cuts", [{"cut": cut.number, "state": cuts.CANDIDATE, "batch": newest}], equals("cut", cut.number))
    return _report(source, rows)


def _stands(ledger: Ledger, last: Row | None) -> dict[str, int]:
    """Objects that stand behind the last cut because they were stopped, and the batch they stand at."""
    published = ledger.published_tables().items() if last else ()
    return {name: row["batch"] for name, row in published if row["state"] == cuts.STOPPED}


def _released(ledger: Ledger, source: Source) -> bool:
    """Whether events that were held are held no more, though nothing new has come."""
    ignored = source.transactions == Transactions.IGNORE
    return ignored and any(row["held"] for row in ledger.published_tables().values())


def _find(ledger: Ledger, source: Source, stands: Mapping[str, int], default: int, newest: int) -> dict[str, Found]:
    """What the new events tell of each table, as normalize counted them, and those that are taken in late."""
    withheld = _withheld(ledger, source, stands, default, newest)
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
    return {
        name: _found(name, rows, shapes[name], stands.get(name, default), withheld.get(name, held.NOTHING))
        for name, rows in sorted(by_object.items())
    }


def _withheld(
    ledger: Ledger, source: Source, stands: Mapping[str, int], default: int, newest: int
) -> dict[str, Withheld]:
    """What open and undone transactions change, by table; nothing of tables that have no events of them."""
    rows = held.acting(ledger.read("transactions"), min([default, *stands.values()]))
    tables = held.tables_of(rows)
    if not tables:
        return {}
    carried = {name for name, row in ledger.published_tables().items() if row["held"]}
    ignored = source.transactions == Transactions.IGNORE
    return {
        name: held.withheld(rows, name, stands.get(name, default), newest, carried=name in carried, ignored=ignored)
        for name in tables
    }


def _found(name: str, rows: Sequence[Row], shapes: Iterable[Row], after: int, withheld: Withheld) -> Found:
    used = {row["shape"] for row in rows}
    new = [row for row in rows if row["batch"] > after]
    events, truncates = withheld.taken
    return Found(
        object=name,
        database=rows[0]["database"],
        schema=rows[0]["schema"],
        name=rows[0]["name"],
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
    cut: Cut,
    stands: Mapping[str, int],
    default: int,
) -> list[Row]:
    planned: list[tuple[Plan, int]] = []
    rows: list[Row] = []
    for name, found in finds.items():
        after = stands.get(name, default)
        try:
            if not found.events:
                rows.append(_unmoved(cut, source, found))
                continue
            planned.append((_plan(session, lake, source, found, after, cut.batch), after))
        except IncompatibleSchemaError as error:
            rows.append(_stopped(cut, found, after, str(error)))
    for target, claimants in _by_target(planned).items():
        if len(claimants) > 1:
            names = " and ".join(plan.found.object for plan, _ in claimants)
            reason = f"{names} would both be published as {target}; tell them apart with `target:`"
            rows += [_stopped(cut, plan.found, after, reason) for plan, after in claimants]
            planned = [item for item in planned if item not in claimants]
    with _marked(session, cut.batch), ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        jobs = [pool.submit(Candidate(session, lake, source.source, plan, cut).build, after) for plan, after in planned]
        rows += [job.result() for job in jobs]
    return rows


def _plan(session: SparkSession, lake: Lake, source: Source, found: Found, after: int, batch: int) -> Plan:
    table = lake.find(planning.target_of(source, found))
    if table is None and not found.shapes:
        raise IncompatibleSchemaError(f"{found.object}: only TRUNCATE so far, nothing tells its columns")
    unknown = planning.untyped(found, source.table_for(found.object), table)
    if unknown:
        images = _images(session, lake, source, found, after, batch)
        found = replace(found, inferred=inference.types_of(images, unknown))
    return planning.plan(source, found, table)


def _images(session: SparkSession, lake: Lake, source: Source, found: Found, after: int, batch: int) -> DataFrame:
    changelog = session.table(lake.spark_name(("changelog", source.source)))
    events = held.taken(changelog, found.object, after, batch, found.withheld)
    return events.select(F.coalesce("after", "before").alias("image"))


def _by_target(planned: Iterable[tuple[Plan, int]]) -> dict[str, list[tuple[Plan, int]]]:
    ordered = sorted(planned, key=lambda item: item[0].target)
    return {".".join(key): list(group) for key, group in itertools.groupby(ordered, lambda item: item[0].target)}


def _stopped(cut: Cut, found: Found, after: int, reason: str) -> Row:
    log.warning("table_stopped", object=found.object, reason=reason)
    withheld = found.withheld
    events = found.events + withheld.held + withheld.discarded
    counts = {"events": events, "applied": 0, "superseded": 0, "duplicate": 0, "quarantined": 0}
    state = {"state": cuts.STOPPED, "reason": reason, "batch": after, "held": events}
    return {"cut": cut.number, "object": found.object, **counts, **state}


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


def _report(source: Source, rows: Sequence[Row]) -> StageReport:
    names = ("events", "applied", "superseded", "duplicate", "held", "quarantined")
    totals = {name: sum(row[name] for row in rows) for name in names}
    problems = tuple(row["reason"] for row in rows if row["state"] == cuts.STOPPED)
    details = {row["object"]: {name: row[name] for name in names} for row in rows}
    log.info("compacted", source=source.source, tables=len(rows), **totals)
    summary = {"tables": len(rows), **totals}
    return StageReport(stage="compact", source=source.source, summary=summary, problems=problems, details=details)
