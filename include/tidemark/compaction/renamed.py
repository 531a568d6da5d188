"""Tables that were renamed at the source: the events that they take in came under several names (``ddl.lineages``)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyiceberg.expressions import And
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction.decisions import BuildAnew, Stopped
from tidemark.compaction.event_log import new_events
from tidemark.compaction.placed_statements import placed
from tidemark.compaction.recorded_names import Recorded, partners_of, recorded_names, stale
from tidemark.compaction.run import Run, Standing
from tidemark.ddl.lineages import Lineage, Lineages, Segment, lineages
from tidemark.ddl.rename_statements import may_rename, may_rename_or_drop
from tidemark.events import Operation, TableId
from tidemark.lake import names
from tidemark.lake.filters import above, at_most, equals
from tidemark.lake.statistics import lower_bound
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import ContentRow
from tidemark.sources import routes
from tidemark.sources.model import Source
from tidemark.tables.plan import Found
from tidemark.tables.withheld import NOTHING, Withheld

NONE = Lineages()


def known_to(ledger: Ledger, source: Source, batch: int) -> Lineages:
    """Return the tables of a source that were renamed, as far as the batches up to ``batch`` show.

    Statements without a certain place among the rows (``placed_statements``) are not followed.
    """
    rows = [row for row in ledger.ddl() if row.batch <= batch]
    if not any(may_rename(row.statement) for row in rows):
        return NONE
    rows = [row for row in rows if may_rename_or_drop(row.statement)]
    objects = {row.object: row.table for row in ledger.contents() if row.batch <= batch}
    certain = placed(ledger, source, rows, objects, batch)
    is_shard = partial(_is_folded, source) if routes.folds_any(source) else _is_alone
    return lineages(certain, objects, rows, ledger.spans(at_most("batch", batch)), is_shard)


def _is_folded(source: Source, table: TableId) -> bool:
    return routes.route_of(source, table).folded is not None


def _is_alone(_: TableId) -> bool:
    return False


def outdated(run: Run, now: Lineages) -> list[BuildAnew]:
    """Return the tables to build anew because of what the run knows of renames, without tables that have a request.

    What it knows may be other than what it knew when a table was built, or other than what the table records.

    Args:
        run: the run.
        now: what it knows.
    """
    before = {batch: known_to(run.ledger, run.source, batch) for batch in _standings(run)} if now.tables else {}
    published = run.ledger.published_tables()
    recorded = recorded_names(run.lake, run.ledger, published)  # also by tables that are folded now
    differing = stale(recorded, now) - run.requests.keys()
    partners = partners_of(differing, recorded, now) - published.keys() - run.routed.folded.keys()
    changed = partners | {name for name in differing if name in run.published}
    known = now.tables.keys() | {name for each in before.values() for name in each.tables}
    found = []
    for name in sorted(known | changed):
        after = run.standing.batch_of(name)
        if name in run.requests or not after:
            continue
        lineage = now.tables.get(name)
        if name in changed or lineage != before[after].tables.get(name):
            found.append(BuildAnew(object=name, reason="tables were renamed at the source"))
        elif lineage is not None and any(segment.object in run.requests for segment in lineage.segments):
            found.append(BuildAnew(object=name, reason="events of a name that it had are read anew"))
    return found


def _standings(run: Run) -> set[int]:
    """Return the batches at which tables stand."""
    return {run.standing.batch, *run.standing.behind.values()} - {0}


def waiting_for(run: Run, now: Lineages, stops: Iterable[Stopped]) -> set[str]:
    """Return the names whose rows go to, or come from, a renamed table that is stopped before it followed the rename.

    None of them may be built anew meanwhile: rows would be published under two names, or under none.

    Args:
        run: the run.
        now: what it knows of renames.
        stops: the tables that are stopped.
    """
    stops, found = list(stops), set[str]()
    recorded = recorded_names(run.lake, run.ledger, run.published) if stops else {}
    changed = stale(recorded, now)
    for stop in stops:
        name = stop.found.object
        after = run.standing.batch_of(name)
        if name in changed or (
            name in now.tables and known_to(run.ledger, run.source, after).tables.get(name) != now.tables[name]
        ):
            found |= {name, *_partners(name, recorded, now)}
    more = set(found)
    while more:
        partners = [_partners(name, recorded, now) for name in now.tables.keys() | changed]
        more = {each for own in partners if found & own for each in own} - found
        found |= more
    return found


def _partners(name: str, recorded: Recorded, now: Lineages) -> set[str]:
    """Return the names that the events of a table came under, as it is known now, and as the table records it."""
    return {*now.names_of(name), *(each.object for each in recorded.get(name, ()))}


def take_in(
    run: Run,
    standing: Standing,
    known: Lineages,
    by_table: dict[str, list[ContentRow]],
    withheld: dict[str, Withheld],
) -> None:
    """Put the contents of renamed tables in place of the contents of their names, and update what is withheld.

    A table whose events all wait for their transactions has none. It is there, so that the ledger has what it lacks.
    """
    new_names = set(by_table)
    for name, lineage in known.tables.items():
        after, waits = standing.batch_of(name), withheld[name]
        by_table.pop(name, None)
        settled = after and name not in standing.behind and not waits.since
        if settled and not may_take_in(run, lineage.segments, new_names, after):
            continue
        rows = contents(run, after, stub_of(name, lineage, waits))
        if rows or waits.since or waits.held or waits.discarded:
            by_table[name] = rows
            withheld[name] = with_released(waits, rows, after)


def emptied(run: Run, finds: Mapping[str, Found]) -> dict[str, int]:
    """Return the tables that are to be built anew and have no event to take in, each with its events that wait.

    What is published of them belongs to tables with other names now. One that is not published yet, and whose events
    wait, is no such table: its rows begin with them.
    """
    return {
        name: found.withheld.held
        for name, found in finds.items()
        if name in run.requests and found.segments and not found.events
        if found.published is not None or not found.withheld.held
    }


def may_take_in(run: Run, segments: Sequence[Segment], new: Container[str], after: int) -> bool:
    """Return whether new events may be of a renamed table, as the ledger and the statistics of files say.

    Args:
        run: the run.
        segments: of the table.
        new: the names that have new events.
        after: the batch that the table stands at.
    """
    for segment in segments:
        if segment.object in new and (segment.ends is None or _oldest(run, segment.object, after) < segment.ends):
            return True
    return False


def _oldest(run: Run, name: str, after: int) -> str:
    """Return a position that no new event of a name is below; empty if files do not say."""
    changelog = run.lake.load(names.change_log(run.source.source))
    files = changelog.scan(row_filter=And(equals("object", name), above("batch", after))).plan_files()
    return lower_bound(changelog, (task.file for task in files), "position") or ""


def contents(run: Run, after: int, stub: Found) -> list[ContentRow]:
    """Return what a renamed table takes in of each batch, counted in the change log: the ledger counts by name.

    Args:
        run: the run.
        after: the batch that it stands at.
        stub: the table, with its names, and what transactions withhold; nothing else of it counts.
    """
    half = F.col("after").isNull() & (F.col("operation") == Operation.UPDATE)
    counted = new_events(run, replace(stub, published_batch=after))
    kinds = [*map(F.col, ("batch", "operation", "shape", "partial", "key")), half.alias("half")]
    return [
        ContentRow(
            batch=row["batch"],
            object=stub.object,
            database=stub.database,
            schema=stub.schema,
            name=stub.name,
            operation=row["operation"],
            shape=row["shape"],
            partial=bool(row["partial"]),
            key=None if row["key"] is None else tuple(row["key"]),
            half=row["half"],
            events=row["count"],
        )
        for row in counted.groupBy(*kinds).count().collect()
    ]


def with_released(withheld: Withheld, rows: Sequence[ContentRow], after: int) -> Withheld:
    """Return what is withheld of a renamed table, with the count of earlier events that it takes in now.

    Args:
        withheld: of the table, without counts.
        rows: ``contents``.
        after: the batch that the table stands at.
    """
    earlier = [row for row in rows if row.batch <= after]
    truncates = sum(row.events for row in earlier if row.operation == Operation.TRUNCATE)
    return replace(withheld, taken=(sum(row.events for row in earlier), truncates))


def stub_of(name: str, lineage: Lineage, withheld: Withheld) -> Found:
    """Return a renamed table, for which no events are found yet."""
    table = lineage.table
    return Found(
        object=name,
        database=table.database,
        schema=table.schema,
        name=table.name,
        events=0,
        truncates=0,
        shapes={},
        keys=(),
        partial=False,
        halves=False,
        withheld=withheld,
        segments=lineage.segments,
    )


def merged(parts: Sequence[Withheld]) -> Withheld:
    """Return what transactions withhold of a renamed table, by its names; events that it takes in are not counted."""
    return replace(sum(parts, NOTHING), taken=NOTHING.taken)
