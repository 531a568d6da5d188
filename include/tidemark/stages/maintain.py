"""Maintain: rewrite small files, fold deletes, drop what is past its time. Beside the flow, once a day or a week.

It changes no row that readers see. Of a published table, its history and its state nothing is touched while a cut is
under way: the candidates begin where ``main`` stands, and could not be published if it moved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import structlog
from pyspark.sql import SparkSession

from tidemark.compaction import state, tombstone_age
from tidemark.errors import UnknownNameError
from tidemark.events import Operation
from tidemark.lake import maintenance, names, retention
from tidemark.lake.branches import marker
from tidemark.lake.filters import at_most, equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, Namespace
from tidemark.lake.statistics import rows_in
from tidemark.ledger import cuts, transactions
from tidemark.ledger.folders import folders
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.read_once import ReadOnce
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.schemas import NAMES
from tidemark.ledger.states import LEFT_BEHIND, TableState
from tidemark.sources.choices import Deletes
from tidemark.sources.layout import sharing
from tidemark.sources.model import Source
from tidemark.sources.routes import is_folded
from tidemark.spark.session import open_session
from tidemark.spark.tuning import tuned_for
from tidemark.stages import StageReport
from tidemark.tables import shard_rules
from tidemark.tables.eras import names_of, segments_of
from tidemark.tables.schemas import key_of
from tidemark.text import suggestion

log = structlog.get_logger(__name__)


class _Horizons(NamedTuple):
    """What is older may go."""

    cut: int
    """The oldest cut that stays readable."""
    snapshots: datetime
    orphans: datetime
    tombstones: tombstone_age.Past
    messages: int
    """Last batch whose messages are past their time; 0: none."""
    events: int
    """Last batch whose events are past their time; 0: none."""
    settled: frozenset[str]
    """Tables, as the source names them, that go on without earlier events."""
    quarantined: int
    """Last batch whose messages in quarantine lose their bytes; 0: none."""
    shared: frozenset[str]
    """Tables whose folder is, holds or lies in that of another one: what one does not know there is of the other."""


def run(source: Source, table: str | None = None) -> StageReport:
    """Maintain the tables of a source: published ones, state, raw, change log, quarantine, and the ledger.

    Args:
        source: the source; its ``maintenance`` says what is kept for how long.
        table: only this one with its history and state, by its published name, with or without its namespace, or the
            source's.

    Returns:
        Details by table: data and delete files and bytes before and after, tags dropped, snapshots expired, orphans
        removed, tombstones dropped (state tables only).

    Raises:
        UnknownNameError: the source has published no such table.
        LakeError: the store or the engine failed; running again goes on.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    cuts.finish(lake, ledger)
    chosen = _chosen(lake, source, ledger, table)
    open_cut = cuts.under_way(ledger)
    summary: dict[str, int | str] = {}
    if open_cut is not None:
        summary["skipped"] = f"published tables, as cut {open_cut.cut} is not published ({open_cut.state})"
        log.warning("maintenance_skips_tables", source=source.source, cut=open_cut.cut, state=open_cut.state)
        chosen = []
    logs = [] if table else list(_logs(lake, source))
    details: dict[str, dict[str, int | str]] = {}
    if chosen or logs:
        session = open_session()
        horizons = _horizons(lake, ReadOnce(lake, source.source), source, idle=open_cut is None)
        for identifier in [*chosen, *logs]:
            with tuned_for(session, [rows_in(lake.load(identifier))]):
                details[str(identifier)] = _maintain(session, lake, identifier, horizons)
    for name in ("tags", "snapshots", "orphans", "tombstones"):
        summary[name] = sum(int(detail.get(name, 0)) for detail in details.values())
    log.info("maintained", source=source.source, tables=len(details), **summary)
    return StageReport(
        stage="maintain",
        source=source.source,
        summary={"tables": len(details), **summary},
        details=details,
        remarks=tuple(_SHARED.format(name) for name, detail in details.items() if "orphans" not in detail),
    )


_SHARED = (
    "{}: orphan files stay, as its folder is, holds or lies in that of another table. Write another `layout.location`, "
    "drop the table, and `tidemark rebuild` it"
)


def _chosen(lake: Lake, source: Source, ledger: Ledger, table: str | None) -> list[Identifier]:
    published = cuts.ever_published(ledger)
    exact = [identifiers for names, identifiers in published.items() if table is None or table in names]
    chosen = exact or [found for (target, _), found in published.items() if table == Identifier.parse(target).name]
    if table is not None and not chosen:
        hint = suggestion(table, [target for target, _ in published])
        raise UnknownNameError(f"{source.source} has published no table '{table}'.{hint}")
    return [identifier for identifiers in chosen for identifier in identifiers if lake.find(identifier)]


def _logs(lake: Lake, source: Source) -> Iterator[Identifier]:
    own = [kind(source.source) for kind in (names.raw, names.change_log, names.quarantine)]
    for identifier in [*own, *map(names.ledger, NAMES)]:
        if lake.find(identifier) is not None:
            yield identifier


def _horizons(lake: Lake, ledger: Ledger, source: Source, *, idle: bool) -> _Horizons:
    now, kept, retained = datetime.now(UTC), source.maintenance, source.retention
    young = now - timedelta(days=kept.keep_days)
    oldest = cuts.oldest_kept(ledger, newest=kept.keep_cuts, since=young)
    decoded = int(marker(lake.find(names.change_log(source.source)), "batch") or 0)
    expires = retained.changelog_days is not None and idle
    going_on = settled(lake, ledger, source) if expires else frozenset()
    return _Horizons(
        cut=oldest,
        snapshots=young,
        orphans=now - timedelta(days=kept.orphan_days),
        tombstones=tombstone_age.past(ledger, source, now),
        messages=_past_messages(ledger, source, now, decoded),
        events=_past_events(ledger, source, oldest, now, going_on) if expires else 0,
        settled=going_on,
        quarantined=_last_before(ledger, now - timedelta(days=retained.quarantine_days))
        if retained.quarantine_days is not None
        else 0,
        shared=frozenset(sharing(folders(lake))),
    )


def _past_events(ledger: Ledger, source: Source, oldest: int, now: datetime, going_on: Collection[str]) -> int:
    """Return the last batch whose events may go: nothing goes on from it, neither from now nor after a restore.

    Args:
        ledger: of the source.
        source: the source.
        oldest: the oldest cut that is kept.
        now: the time.
        going_on: the tables whose events go (``settled``).
    """
    standing = list(_standing(ledger, oldest, going_on))
    stood = min((row.batch for row in standing), default=0)
    # Given up by that cut, a transaction stays so after a restore. Only a table that was left behind may lack it.
    is_behind = any(isinstance(row, TableRow) for row in standing)
    given_up = frozenset[str]() if is_behind else transactions.given_up(ledger, oldest).ids
    known = [row for row in ledger.transactions() if row.id not in given_up]
    # What was open then is released after a restore, though it has ended since. What is open now was so then, or later.
    held = [*transactions.as_of(known, stood).values(), *(row for row in known if row.batch > stood)]
    waiting = [row.since - 1 for row in held if row.state == transactions.OPEN]
    again = [batch - 1 for batch in ledger.reprocessing()]
    past = _last_before(ledger, now - timedelta(days=source.retention.changelog_days or 0))
    return max(0, min([past, stood, *waiting, *again]))


def _standing(ledger: Ledger, cut: int, tables: Collection[str]) -> Iterator[CutRow | TableRow]:
    """Yield a cut, and the tables that it left behind its batch."""
    yield from ledger.cuts(equals("cut", cut))
    known = sorted(ledger.tables(at_most("cut", cut)), key=lambda row: row.cut)
    for name, row in {row.object: row for row in known}.items():
        if name in tables and row.state in LEFT_BEHIND:
            yield row


def settled(lake: Lake, ledger: Ledger, source: Source) -> frozenset[str]:
    """Return the tables that go on from what is published, whatever comes: no event of theirs is folded twice.

    Not so where equal rows are counted, where versions or marked rows are kept, where tables are folded together, and
    where a row may have moved without its large values. Nor is a name settled that such a table takes events in from:
    what is published under the name itself may be empty, after a rename.
    """
    inserts = ledger.contents(equals("operation", Operation.INSERT))
    moving = {row.object for row in inserts if row.moves and source.traits.moves_rows}
    requested = ledger.rebuild_requests()
    found, needed = set[str](), set[str]()
    for name, row in ledger.published_tables().items():
        promised, table = source.table_for(name), lake.find(row.identifier) if row.target is not None else None
        taken_in = {name} if table is None else {*names_of(segments_of(table)), *shard_rules.recorded(table)}
        plain = not (promised.history or promised.deletes is Deletes.SOFT or is_folded(name) or taken_in & moving)
        stands = row.state in {TableState.PUBLISHED, TableState.UNMOVED}
        if plain and stands and key_of(table) and name not in requested:
            found.add(name)
        else:
            needed |= taken_in
    return frozenset(found - needed)


def _last_before(ledger: Ledger, time: datetime) -> int:
    """Return the last batch that was normalized before a time; 0 for none."""
    return max((row.batch for row in ledger.batches() if row.written_at and row.written_at < time), default=0)


def _past_messages(ledger: Ledger, source: Source, now: datetime, decoded: int) -> int:
    """Return the last batch whose messages may go: the change log has it, and nothing up to it is decoded again."""
    days = source.retention.raw_days
    if days is None:
        return 0
    again = [batch - 1 for batch in ledger.reprocessing()]
    return min([_last_before(ledger, now - timedelta(days=days)), decoded, *again])


def _maintain(session: SparkSession, lake: Lake, identifier: Identifier, horizons: _Horizons) -> dict[str, int | str]:
    before = maintenance.size_of(lake.load(identifier))
    done: dict[str, int | str] = {"tags": cuts.drop_tags(lake.load(identifier), horizons.cut)}
    if identifier.namespace == Namespace.RAW and horizons.messages:
        done["dropped_files"] = retention.drop_up_to(lake.load(identifier), horizons.messages)
    if identifier.namespace == Namespace.CHANGE_LOG and horizons.events:
        done["dropped_files"] = retention.drop_events(lake.load(identifier), horizons.settled, horizons.events)
    if identifier.namespace == Namespace.QUARANTINE and horizons.quarantined:
        done["without_bytes"] = retention.without_bytes(lake, lake.load(identifier), horizons.quarantined)
    if identifier.namespace == Namespace.STATE and not names.is_whole(identifier.name):
        done["tombstones"] = state.rewrite(session, lake, identifier, horizons.tombstones.up_to(identifier))
    elif identifier.namespace != Namespace.LEDGER:  # each commit of the ledger puts small files together
        maintenance.rewrite(session, lake, identifier)
    done["snapshots"] = maintenance.expire(session, lake, identifier, horizons.snapshots)
    if str(identifier) not in horizons.shared:
        done["orphans"] = maintenance.remove_orphans(session, lake, identifier, horizons.orphans)
    after = maintenance.size_of(lake.load(identifier))
    sizes = zip(before._fields, before, after, strict=True)
    return {**{name: f"{was}->{now}" for name, was, now in sizes}, **done}
