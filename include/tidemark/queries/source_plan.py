"""``tidemark plan``: what a run would land, what changed in the source file, and what each change touches and needs.

No Spark: the ledger and the metadata of the published tables have all of it. A lake that is not there is not made.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pyiceberg.table import Table

from tidemark.events import TableId
from tidemark.lake import names
from tidemark.lake.branches import marker
from tidemark.lake.catalog import lacks_embedded
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.normalization import source_changes
from tidemark.normalization.source_changes import Need, SourceFileChange
from tidemark.queries import landing_remarks
from tidemark.queries.pending_files import Pending, nothing_new, pending
from tidemark.sources import model
from tidemark.sources.choices import Deletes
from tidemark.sources.model import Source
from tidemark.sources.routes import entry_of, route_of
from tidemark.tables.schemas import DELETED, columns_of, key_of
from tidemark.tables.targets import named, named_apart
from tidemark.values.declared_types import entry_for
from tidemark.values.types import wider

_BY_STATE: Final = frozenset({"key", "columns", "target", "deletes", "history"})
"""Parts that are compared with the published table itself, which says more than the earlier source file."""

_COMMANDED: Final = (Need.REPROCESS, Need.REBUILD, Need.RETRY)
"""Needs that a person has to meet by a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A table of the source that has events."""

    object: str
    target: Identifier | None
    """Where it is published; None if it never was."""
    wanted: Identifier
    """Where the source file wants it."""
    table: Table | None
    history: bool
    """Whether it has a history."""
    rows: int
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """What a change touches of one table."""

    table: str
    """As it is published, else as the source names it."""
    columns: tuple[str, ...] = ()
    """Empty: all columns."""
    rows: int = 0
    """Published rows."""
    events: int = 0
    """Events in the change log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChange:
    """A change of the source file, with what it touches and what it needs."""

    change: SourceFileChange
    need: Need
    touches: Sequence[Touch] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlan:
    """What a run of a source would do, and what changes of its file need."""

    source: str
    cut: int
    """Newest cut; 0 for none."""
    next_cut: int
    """The number that the next cut gets."""
    files: Pending
    nothing_new: str
    """Why no file would land; empty if files would."""
    remarks: tuple[str, ...] = ()
    """What is remarked of files that would not land."""
    changes: Sequence[PlannedChange] = ()
    arguments: tuple[str, ...] = field(default=())
    """Options of the interval, for the command."""

    @property
    def needs_a_command(self) -> bool:
        """Whether a change has no effect on what landed before, until a person gives a command."""
        return any(each.need in _COMMANDED for each in self.changes)

    @property
    def commands(self) -> list[str]:
        """The commands that do all of it, in order. Reprocessing also builds the tables again, and lands what waits."""
        needs = {each.need for each in self.changes}
        run = " ".join(["tidemark run", self.source, *self.arguments])
        if Need.REPROCESS in needs:
            return [f"tidemark run {self.source} --reprocess"]
        tables = {touch.table for each in self.changes if each.need is Need.REBUILD for touch in each.touches}
        commands = [f"tidemark rebuild {self.source} {shlex.quote(table)}" for table in sorted(tables)]
        commands += [f"tidemark quarantine retry {self.source}"] if Need.RETRY in needs else []
        return [*commands, *([run] if self.files.fresh else [])]


def plan_of(source: Source, start: datetime | None = None, end: datetime | None = None) -> SourcePlan:
    """Return the plan of a source for an interval; without bounds, for all that is not landed.

    Raises:
        ConfigurationError: the landing path is wrong or has a part that does not exist, or the catalog cannot be
            opened as it is configured.
        RetriableLakeError: the catalog cannot be reached.
    """
    given = (("--start", start), ("--end", end))
    arguments = tuple(word for option, bound in given if bound for word in (option, bound.isoformat()))
    lake = None if lacks_embedded() else Lake.open()
    ledger = None if lake is None else Ledger(lake, source.source)
    batch = 0 if lake is None else int(marker(lake.find(names.raw(source.source)), "batch") or 0)
    cut = ledger.last_cut() if ledger else None
    files = pending(source, ledger, batch, start, end)
    return SourcePlan(
        source=source.source,
        cut=cut.cut if cut else 0,
        next_cut=cuts.number_of_next(ledger) if ledger else 1,
        files=files,
        nothing_new="" if files.fresh else nothing_new(source, files, start, end),
        remarks=tuple(landing_remarks.of_pending(source, files, start)),
        changes=_changes(lake, ledger, source) if lake and ledger else (),
        arguments=arguments,
    )


def unmet(lake: Lake, ledger: Ledger, source: Source) -> list[SourceFileChange]:
    """Return the changes of the source file that have no effect on what landed before, for a run to report.

    A key or a type that the published tables have by now, after a rebuild, is left out.
    """
    changes = source_changes.without_effect(source, ledger)
    if not any(change.part in _BY_STATE for change in changes):
        return changes
    published = list(_published(lake, ledger, source))
    differing = {
        (each.object, planned.change.part, planned.change.name)
        for each in published
        if each.table is not None
        for planned in _by_state(source, each, each.table)
    }
    before: Mapping[str, Any] = (source_changes.known(ledger) or {}).get("tables", {})

    def is_open(change: SourceFileChange) -> bool:
        concerned = [each for each in published if change.entry in _entries_of(each.object, before, source)]
        there = [each for each in concerned if each.table is not None]
        return not there or any((each.object, change.part, change.name) in differing for each in there)

    return [change for change in changes if change.part not in _BY_STATE or is_open(change)]


def _changes(lake: Lake, ledger: Ledger, source: Source) -> list[PlannedChange]:
    before = source_changes.known(ledger)
    published = list(_published(lake, ledger, source))
    found = [] if before is None else source_changes.since(before, source)
    set_aside = sum(row.quarantined for row in ledger.batches())
    planned = [
        _planned(change, before or {}, source, published, set_aside) for change in found if not _is_by_state(change)
    ]
    for each in published:
        if each.table is not None:
            planned += _by_state(source, each, each.table)
    return sorted(planned, key=lambda each: list(Need).index(each.need), reverse=True)


def _is_by_state(change: SourceFileChange) -> bool:
    return change.part in _BY_STATE


def _published(lake: Lake, ledger: Ledger, source: Source) -> Iterator[Published]:
    """Yield the tables of the source that have events, in the order of the source's names."""
    events, ids = Counter[str](), dict[str, TableId]()
    routed: dict[str, str] = {}
    for content in ledger.contents():
        if content.object not in routed:
            routed[content.object] = route_of(source, content.table).folded or content.object
        events[routed[content.object]] += content.events
        ids[routed[content.object]] = content.table
    targets, shown = ledger.targets(), ledger.published_tables()
    for name, table_id in sorted(ids.items()):
        target = targets.get(name) if name in shown else None
        row = shown.get(name)
        yield Published(
            object=name,
            target=target,
            wanted=target if target == named_apart(source, table_id) and target else named(source, table_id),
            table=lake.find(target) if target else None,
            history=target is not None and lake.find(names.history(target)) is not None,
            rows=(row.rows_after or 0) if row else 0,
            events=events[name],
        )


def _touch(each: Published, columns: Iterable[str] = ()) -> Touch:
    shown = str(each.target) if each.target else each.object
    return Touch(table=shown, columns=tuple(columns), rows=each.rows, events=each.events)


def _planned(
    change: SourceFileChange, before: Mapping[str, Any], source: Source, published: Sequence[Published], set_aside: int
) -> PlannedChange:
    """Return what a change touches; one that touches nothing that landed needs nothing."""
    if change.entry is None:
        touched = list(published)
    else:
        then: Mapping[str, Any] = before.get("tables", {})
        touched = [each for each in published if change.entry in _entries_of(each.object, then, source)]
    columns = [change.name] if change.part == "encodings" and change.name else []
    need = change.need
    if (need is Need.RETRY and not set_aside) or (need is not Need.RETRY and not touched and not set_aside):
        need = Need.NOTHING
    return PlannedChange(change=change, need=need, touches=[_touch(each, columns) for each in touched])


def _entries_of(name: str, then: Mapping[str, Any], source: Source) -> set[str]:
    """Return the entries of ``tables`` that say something of a table, before and now."""
    return {
        entry
        for tables in ({entry: entry for entry in then}, {entry: entry for entry in source.tables})
        if (entry := entry_for(tables, entry_of(name))) is not None
    }


def _by_state(source: Source, each: Published, table: Table) -> Iterator[PlannedChange]:
    """Yield in what a published table differs from what the source file says of it."""
    promised, columns = source.table_for(each.object), dict(columns_of(table))
    entry = each.object
    stored = key_of(table)
    # A key may be written by an earlier name of a column: only compact can tell.
    if promised.key is not None and list(promised.key) != stored and columns.keys() >= set(promised.key):
        change = SourceFileChange(part="key", entry=entry, before=stored, after=list(promised.key))
        yield PlannedChange(change=change, need=Need.REBUILD, touches=[_touch(each)])
    for name, kind in promised.columns.items():
        was = columns.get(name)
        if was is not None and was != kind:
            change = SourceFileChange(part="columns", entry=entry, name=name, before=was, after=kind)
            need = Need.RUN if wider(was, kind) == kind else Need.REBUILD
            yield PlannedChange(change=change, need=need, touches=[_touch(each, [name])])
    if each.target is not None and each.wanted != each.target:
        change = SourceFileChange(part="target", entry=entry, before=str(each.target), after=str(each.wanted))
        yield PlannedChange(change=change, need=Need.RUN, touches=[_touch(each)])
    yield from _kept(promised, each, table)


def _kept(promised: model.Table, each: Published, table: Table) -> Iterator[PlannedChange]:
    soft = DELETED in table.schema().column_names
    if soft != (promised.deletes is Deletes.SOFT):
        now, need = (Deletes.HARD, Need.REBUILD) if soft else (Deletes.SOFT, Need.RUN)
        then = Deletes.SOFT if soft else Deletes.HARD
        change = SourceFileChange(part="deletes", entry=each.object, before=then.value, after=now.value)
        yield PlannedChange(change=change, need=need, touches=[_touch(each, [DELETED])])
    if promised.history and not each.history:
        change = SourceFileChange(part="history", entry=each.object, before=False, after=True)
        yield PlannedChange(change=change, need=Need.RUN, touches=[_touch(each)])
