"""Find the tables that have new events or statements, and what the ledger and the catalog know of each."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from tidemark.compaction import dotted_names, renamed, tool_tables
from tidemark.compaction.run import Run, Standing
from tidemark.compaction.unplaced_copies import names_of_copies
from tidemark.ddl import migrations
from tidemark.ddl.history import SchemaHistory, histories
from tidemark.ddl.lineages import Lineages, history_of
from tidemark.ddl.stated_tables import with_events
from tidemark.errors import IncompatibleSchemaError
from tidemark.events import Operation, TableId
from tidemark.lake.filters import above, among, at_most, equals
from tidemark.lake.names import Identifier, history, whole_beside
from tidemark.lake.properties import keeps_whole
from tidemark.ledger.expired import Expired
from tidemark.ledger.rows import ContentRow, ShapeRow
from tidemark.ledger.states import TableState
from tidemark.sources.routes import is_folded
from tidemark.tables import schema_policies, shard_rules
from tidemark.tables import withheld as withholding
from tidemark.tables.plan import Found, Shard
from tidemark.tables.targets import named, refuse_name, targets_of
from tidemark.tables.withheld import Withheld

log = structlog.get_logger(__name__)


def find_tables(run: Run, lineages: Lineages) -> dict[str, Found]:
    """Return what the new events and statements say of each table, by the source's names.

    A table that is to be built again is found with all of its events.

    Args:
        run: the run.
        lineages: the tables that were renamed.
    """
    standing = run.standing.from_scratch(run.requests)
    withheld = _withheld(run, standing, lineages)
    by_table = _contents(run, standing, withheld)
    renamed.take_in(run, standing, lineages, by_table, withheld)
    mixed = dotted_names.problems(run, by_table)
    shapes, first = _shapes(run)
    known = _histories(run, by_table, lineages)
    with_events = {name: (rows[0] if rows else lineages.tables[name]).table for name, rows in by_table.items()}
    tables = with_events | _stated(run, standing, lineages, known, run.published.keys() - with_events.keys())
    paths = [row.path for row in run.ledger.files()]
    common_path = len(os.path.commonprefix(paths))  # noqa: RUF071  characters are meant
    split, moved = _with_halves(run, by_table), _with_moves(run)
    segments = {name: lineage.segments for name, lineage in lineages.tables.items()}
    own = {name: table for name, table in tables.items() if not is_folded(name)}
    targets = targets_of(run.source, own, run.ledger.targets(), first)
    finds, expired = {}, Expired(run.lake, run.source.source)
    copied = names_of_copies(run, lineages)
    for name in sorted(tables):
        own_history = SchemaHistory() if is_folded(name) else _followed(run, name, known.get(name))
        after, emptied = standing.batch_of(name), [each.position for each in own_history.emptyings]
        contents, problem = expired.left_of(by_table[name], after, emptied)
        if name in lineages.tables:  # its contents were counted in what is left
            counted = run.ledger.contents(among("object", lineages.names_of(name)), at_most("batch", run.cut.batch))
            contents, problem = by_table[name], expired.left_of(counted, after, emptied)[1]
        problem = problem or _name_taken(run, name, known)
        problem = next((mixed[own] for own in lineages.names_of(name) if own in mixed), problem)
        news = _News(
            name=name,
            table=tables[name],
            shards=tuple(_shards(run, name, known)),
            published_batch=after,
            contents=contents,
            shapes=[row for own in lineages.names_of(name) for row in shapes[own]],
            withheld=withheld.get(name, withholding.NOTHING),
        )
        found = replace(_located(run, _found(news), targets.get(name)), segments=segments.get(name, ()))
        moving = not moved.isdisjoint(lineages.names_of(name))
        finds[name] = replace(
            found,
            halves=found.halves or name in split,
            moves=found.moves and moving,
            moves_ever=moving,
            history=shard_rules.table_history(found) if found.shards else own_history,
            apart=(*schema_policies.names_apart(_histories_of(run, name, known), own_history), *copied(name)),
            common_path=common_path,
            called=run.source.table_for(name).rename,
            problem=found.problem or (f"{name}: {problem}" if problem else None),
        )
    return finds


def _shapes(run: Run) -> tuple[defaultdict[str, list[ShapeRow]], Mapping[str, int]]:
    """Return the shapes of each table, and the batch with the first of each table of the source."""
    shapes: defaultdict[str, list[ShapeRow]] = defaultdict(list)
    first: dict[str, int] = {}
    for row in run.ledger.shapes():
        shapes[run.routed.name_of(row.object)].append(row)
        first[row.object] = min(row.batch, first.get(row.object, row.batch))
    return shapes, first


def _stated(
    run: Run, standing: Standing, lineages: Lineages, known: Mapping[str, SchemaHistory], names: Iterable[str]
) -> dict[str, TableId]:
    """Return, of the published tables ``names``, the tables that new statements concern."""
    tables: dict[str, TableId] = {}
    for name in names:
        objects = run.routed.shards_of(name) or [name]
        after = standing.batch_of(name)
        if any(known[each].since(after, run.cut.batch) for each in objects if each in known):
            # None are left of a table all of whose rows were erased: nothing is there for the statement to change.
            tables.update((name, row.table) for row in run.ledger.contents(among("object", objects))[:1])
            if name in lineages.tables:
                tables[name] = lineages.tables[name].table
    return tables


def gone(run: Run, finds: Iterable[Found]) -> list[Found]:
    """Return the tables that were published and are not where the source file says that they are."""
    were_there = {
        row.object for row in run.ledger.newest_tables(equals("state", TableState.PUBLISHED))
    } - run.requests.keys()
    return [
        found
        for found in finds
        if found.object in were_there and found.goes_on and found.target is not None and found.table is None
    ]


def _histories(run: Run, tables: Iterable[str], lineages: Lineages) -> dict[str, SchemaHistory]:
    """Return the history of each table that DDL or loads concern."""
    wanted = {*tables, *run.published}
    parts = {part for name in wanted for part in run.routed.shards_of(name) or [name]}
    by_name = histories(run.ledger, {own for part in parts for own in lineages.names_of(part)})
    renamed = {name: history_of(by_name, lineages.tables[name].segments) for name in wanted & lineages.tables.keys()}
    return by_name | renamed


def _contents(run: Run, standing: Standing, withheld: Mapping[str, Withheld]) -> dict[str, list[ContentRow]]:
    """Return by table the contents of the batches that it takes events of."""
    lowest = min([standing.lowest, *(each.since - 1 for each in withheld.values() if each.since)])
    by_table: dict[str, list[ContentRow]] = defaultdict(list)
    for row in run.ledger.contents(above("batch", lowest)):
        name = run.routed.name_of(row.object)
        after = standing.batch_of(name)
        since = withheld[name].since if name in withheld else 0
        if (after < row.batch or 0 < since <= row.batch) and row.batch <= run.cut.batch:
            by_table[row.object].append(row)
    for name in _left_out(run, by_table):
        del by_table[name]
    built: dict[str, list[ContentRow]] = defaultdict(list)
    for name, rows in by_table.items():
        built[run.routed.name_of(name)] += rows
    return built


def _left_out(run: Run, contents: Mapping[str, Sequence[ContentRow]]) -> list[str]:
    """Return the tables that schema-change tools made, which are not published; one that is published stays so."""
    new = {name: rows[0].name for name, rows in contents.items()}
    if not any(map(migrations.belongs_to, new.values())):
        return []
    known = {name: name.rpartition(".")[2] for name in {*with_events(run.ledger), *run.published}}
    own = tool_tables.unpublished(run.source, known | new)
    found = [name for name in new if name in own and not run.routed.stays(name, own, run.published)]
    for name in found:
        log.info("migration_table_not_published", source=run.source.source, table=name)
    return found


def _with_halves(run: Run, contents: Mapping[str, Sequence[ContentRow]]) -> set[str]:
    """Return the tables with new partial images for which any batch had the old half of an update."""
    names = {name for name, rows in contents.items() if any(row.partial for row in rows)}
    halves = run.ledger.contents(equals("half", value=True)) if names else []
    return names & {run.routed.name_of(row.object) for row in halves if row.batch <= run.cut.batch}


def _with_moves(run: Run) -> set[str]:
    """Return the tables that had INSERTs which may be of rows that moved, in any batch up to this cut."""
    if not run.source.traits.moves_rows:
        return set()
    rows = run.ledger.contents(equals("operation", Operation.INSERT), equals("partial", value=True))
    return {run.routed.name_of(row.object) for row in rows if row.batch <= run.cut.batch}


def _withheld(run: Run, standing: Standing, lineages: Lineages) -> dict[str, Withheld]:
    """Return by table what open and undone transactions change; nothing for tables that have no events of them."""
    rows = withholding.acting(run.ledger.transactions(), standing.lowest)
    tables = withholding.tables_of(rows)
    if not (tables or lineages.tables):
        return {}
    carried = {name for name, row in run.published.items() if row.held}
    ids = {row.id for row in rows if row.id is not None}
    given_up = run.given_up.ids

    def of(own: str, name: str) -> Withheld:
        lacking = ids - run.given_up.shown_in(name) if name in carried else frozenset[str]()
        after, newest = standing.batch_of(name), run.cut.batch
        return withholding.withheld_for(rows, own, after, newest, lacking=lacking, given_up=given_up)

    found: dict[str, Withheld] = {}
    for table in tables:
        name = run.routed.name_of(table)
        found[name] = found.get(name, withholding.NOTHING) + of(table, name)
    return found | {
        name: renamed.merged([of(own, name) for own in lineages.names_of(name)]) for name in lineages.tables
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _News:
    """The ledger's rows about one table."""

    name: str
    table: TableId
    shards: tuple[Shard, ...]
    published_batch: int
    contents: Sequence[ContentRow]
    shapes: Sequence[ShapeRow]
    withheld: Withheld


def _found(news: _News) -> Found:
    used = {row.shape for row in news.contents}
    new = [row for row in news.contents if row.batch > news.published_batch]
    events, truncates = news.withheld.taken
    return Found(
        object=news.name,
        shards=news.shards,
        published_batch=news.published_batch,
        database=news.table.database,
        schema=news.table.schema,
        name=news.table.name,
        events=events + sum(row.events for row in new),
        truncates=truncates + sum(row.events for row in new if row.operation == Operation.TRUNCATE),
        shapes={
            row.shape: row.parsed() for row in sorted(news.shapes, key=lambda row: row.seniority) if row.shape in used
        },
        keys=sorted({row.key for row in news.contents if row.key is not None}),
        unkeyed=any(row.key is None for row in news.contents if row.operation != Operation.TRUNCATE),
        partial=any(row.partial for row in news.contents),
        halves=any(row.half for row in news.contents),
        moves=any(row.moves for row in news.contents),
        loads=any(row.operation == Operation.SNAPSHOT for row in new),
        withheld=news.withheld,
    )


def _shards(run: Run, name: str, known: Mapping[str, SchemaHistory]) -> Iterator[Shard]:
    """Yield the tables that are folded under a name."""
    for table in run.routed.shards_of(name):
        yield Shard(
            object=table,
            added=run.routed.folded[table].added,
            since=run.routed.first[table],
            history=_followed(run, name, known.get(table)),
        )


def _followed(run: Run, name: str, history: SchemaHistory | None) -> SchemaHistory:
    """Return what a cut follows of the schema changes of a table."""
    known = (history or SchemaHistory()).until(run.cut.batch)
    return schema_policies.followed(known, run.source.policies_for(name))


def _name_taken(run: Run, name: str, known: Mapping[str, SchemaHistory]) -> str | None:
    """Return why a table stops in which a kept column has the name of a later one."""
    policies = run.source.policies_for(name)
    taken = (schema_policies.name_taken(each, policies) for each in _histories_of(run, name, known))
    return next(filter(None, taken), None)


def _histories_of(run: Run, name: str, known: Mapping[str, SchemaHistory]) -> list[SchemaHistory]:
    """Return the schema changes of a table or of its shards, followed or not, as far as a cut knows them."""
    return [known[each].until(run.cut.batch) for each in run.routed.shards_of(name) or [name] if each in known]


def _located(run: Run, found: Found, target: Identifier | None) -> Found:
    """Return the table with its target and what is published there, or the reason why it can have no target."""
    if target is None:
        target = named(run.source, found.at_source)
    try:
        refuse_name(found.object, target)
    except IncompatibleSchemaError as error:
        return replace(found, problem=str(error))
    table = run.lake.find(target)
    is_whole = table is not None and keeps_whole(table.properties)
    rows, versions = whole_beside(target) if is_whole else (target, history(target))
    if table is not None and run.source.table_for(found.object).history:
        found = replace(found, history_table=run.lake.find(versions))
    if is_whole:
        return replace(found, target=target, table=run.lake.find(rows), published_beside=table)
    return replace(found, target=target, table=table)
