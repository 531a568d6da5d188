"""One table against the source: counts and checksums by bucket, then the keys of the buckets that differ."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from tidemark.ledger.reconciliation_rows import Class, DifferingKey, ReconciliationRow
from tidemark.reconciliation import canonical, classing, statements
from tidemark.reconciliation.databases import Database, SourceTable
from tidemark.reconciliation.workbench import LakeTable, Workbench

LISTED = 500
"""Most keys of a table that are kept."""

_LONGEST_KEY = 500
"""Characters of a key that is kept."""

_EXPLAINED = 20
"""Most keys whose differing columns are looked up."""

_MANY_BUCKETS = 1000
"""If more buckets differ, the keys of all are read: naming them would make the query long and save little."""

_Bucket = tuple[int, int]
"""Number of rows, and checksum."""


class UncomparableError(Exception):
    """A table cannot be compared; with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """How the two sides differ."""

    source_rows: int
    lake_rows: int
    counts: Mapping[str, int] = field(default_factory=dict)
    """Class -> number of keys; of a table without a key, of rows."""
    keys: Sequence[DifferingKey] = ()
    settled: bool = False
    """Whether no key differs any more that differed in the earlier comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What explains differences, beside the two tables."""

    events: classing.NewEvents
    reached: bool
    """Whether the change log is past the place at which the source was read."""
    earlier: ReconciliationRow | None
    """The newest earlier comparison that can be settled."""


class Comparison:
    """A table of the lake beside the table at the source, within one transaction of the source."""

    def __init__(self, database: Database, there: SourceTable, lake: LakeTable) -> None:
        self._database = database
        self._lake = lake
        self._pairs = lake.pairs
        self._source = statements.Side(
            dialect=database.dialect,
            table=statements.table(there.name, there.namespace),
            key=[(pair.source, pair.kind) for pair in lake.pairs.key],
            columns=[(pair.source, pair.kind) for pair in lake.pairs.all],
            shortened=lake.shortened,
        )

    def count(self) -> Differences:
        """Return the numbers of rows alone."""
        with Workbench() as bench:
            here = bench.ask(self._lake, _duck(statements.counted(self._lake.side)))[0][0]
        return Differences(source_rows=self._count_source(), lake_rows=int(here))

    def _count_source(self) -> int:
        rows = self._database.rows(self._sql(statements.counted(self._source)))
        return sum(int(row[0]) for some in rows for row in some)

    def compare(self, known: Evidence) -> Differences:
        """Return how the sides compare, with why keys differ.

        Raises:
            UncomparableError: the source database cannot show a row of it.
        """
        digits = statements.digits_for(known.events.row.rows_after or 0)
        with Workbench() as bench:
            here = _by_bucket([bench.ask(self._lake, _duck(statements.buckets(self._lake.side, digits)))])
            there = _by_bucket(self._database.rows(self._sql(statements.buckets(self._source, digits))))
            differing = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
            found = Differences(source_rows=_rows(there), lake_rows=_rows(here))
            if not differing:
                return found
            names = differing if len(differing) <= _MANY_BUCKETS else None
            bench.take_lake(self._lake, _duck(statements.keys(self._lake.side, digits, names)))
            bench.take_source(self._database.rows(self._sql(statements.keys(self._source, digits, names))))
            bench.differ(keyed=bool(self._pairs.key))
            return self._classed(bench, known, found)

    def _classed(self, bench: Workbench, known: Evidence, found: Differences) -> Differences:
        earlier = known.earlier
        suspects = classing.suspects(earlier, self._pairs)
        reached = self._take_events(bench, known, suspects)
        counts = bench.classify(reached=reached)
        listed = bench.listed(LISTED) if self._pairs.key else []
        # A key with a null is none: nobody can ask for its row.
        keys = [self._key(row) for row in listed if canonical.NULL not in row[0].split("|")]
        kept = [each for each in keys if sum(map(len, each.key.values())) <= _LONGEST_KEY]
        before = classing.kept(earlier, self._pairs)
        settled = earlier is not None and len(before) == earlier.differing_count and not bench.differ_still(before)
        return replace(found, counts=counts, keys=self._with_columns(bench, kept), settled=settled)

    def _take_events(self, bench: Workbench, known: Evidence, suspects: Sequence[str]) -> bool:
        """Let the bench know the events and the suspects; return whether no difference can be a change to come."""
        batch = known.earlier.batch if known.earlier else known.events.row.batch
        marks = _Marks()
        bench.take_changed(marks.watch(known.events.since(batch)))
        if not self._pairs.key:
            fell_out = known.earlier is not None and known.earlier.differing_count > 0 and not marks.any
            bench.take_suspected([])
            return not marks.pending and (known.reached or fell_out)
        bench.take_suspected([] if marks.all_keys else suspects)
        return known.reached and not marks.all_pending

    def _key(self, row: tuple[str, str, str, bool]) -> DifferingKey:
        text, why, kind, pending = row
        cells = zip(self._pairs.key, canonical.key_cells(text), strict=True)
        key = {pair.lake: canonical.given(pair.kind, cell) for pair, cell in cells}
        return DifferingKey(why=Class(why), kind=Class(kind), key=key, pending=pending)

    def _with_columns(self, bench: Workbench, keys: Sequence[DifferingKey]) -> list[DifferingKey]:
        """Return the keys, the first of those that are different with the columns that differ."""
        texts = {canonical.key_of(self._pairs.key, each.key): each for each in keys if each.kind is Class.DIFFERENT}
        few = list(texts)[:_EXPLAINED]
        if not few:
            return list(keys)
        digests = [hashlib.md5(text.encode("utf-8", "surrogatepass")).hexdigest() for text in few]  # noqa: S324
        there = {row[0]: row[1:] for row in self._rows_of(statements.columns(self._source, digests))}
        here = {row[0]: row[1:] for row in bench.ask(self._lake, _duck(statements.columns(self._lake.side, digests)))}
        named = {
            id(texts[text]): [
                pair.lake
                for pair, one, other in zip(self._pairs.all, there[text], here[text], strict=True)
                if one != other
            ]
            for text in few
            if text in there and text in here
        }
        return [_key_with_columns(each, named.get(id(each))) for each in keys]

    def _rows_of(self, query: exp.Select) -> Iterable[tuple[str, ...]]:
        return (tuple(row) for some in self._database.rows(self._sql(query)) for row in some)

    def _sql(self, query: exp.Select) -> str:
        return statements.sql(query, self._database.dialect)


@dataclass(slots=True)
class _Marks:
    """What events concern that name no key."""

    any: bool = False
    pending: bool = False
    all_keys: bool = False
    all_pending: bool = False

    def watch(self, parts: Iterable[classing.Changes]) -> Iterable[classing.Changes]:
        """Yield the keys of events, and note what there was."""
        for part in parts:
            for key, pending in part:
                self.any = True
                self.pending |= pending
                self.all_keys |= not key
                self.all_pending |= not key and pending
            yield part


def _key_with_columns(key: DifferingKey, columns: list[str] | None) -> DifferingKey:
    if columns is None:
        return key
    return DifferingKey(why=key.why, kind=key.kind, key=key.key, columns=columns, pending=key.pending)


def _duck(query: exp.Select) -> str:
    return query.sql(dialect=canonical.LAKE)


def _by_bucket(parts: Iterable[Sequence[tuple[object, ...]]]) -> dict[str, _Bucket]:
    """Return the buckets by name.

    Raises:
        UncomparableError: the database made no text of a row: the row cannot be told from others.
    """
    found = {}
    for name, count, total, texts in (row for part in parts for row in part):
        if count != texts:
            raise UncomparableError(
                "the database makes no text of rows that are so long: raise its `max_allowed_packet`, or leave the "
                "table out of `reconcile: tables`"
            )
        found[str(name)] = int(str(count)), int(str(total))
    return found


def _rows(buckets: Mapping[str, _Bucket]) -> int:
    return sum(count for count, _ in buckets.values())
