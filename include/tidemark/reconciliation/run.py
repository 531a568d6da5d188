"""``tidemark reconcile``: the published tables of a source against its database, table by table, into the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog
from pyiceberg.table import Table

from tidemark.errors import ConfigurationError, UnknownNameError
from tidemark.events import TableId
from tidemark.lake.earlier_schemas import names_with
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.reconciliation_rows import Class, DifferingKey, ReconciliationRow, Result
from tidemark.ledger.rows import TableRow
from tidemark.reconciliation import kept_keys, kinds
from tidemark.reconciliation.classing import Log, NewEvents, settling
from tidemark.reconciliation.comparing import Comparison, Differences, Evidence, UncomparableError
from tidemark.reconciliation.connections import Address, address_of
from tidemark.reconciliation.databases import Database, LogMoment, SourceTable
from tidemark.reconciliation.mysql import MySQL
from tidemark.reconciliation.postgres import Postgres
from tidemark.reconciliation.workbench import LakeTable
from tidemark.sources.model import Source
from tidemark.tables.column_rules import derived_columns, masks_recorded, names_recorded
from tidemark.tables.column_rules import recorded as rules_of
from tidemark.tables.schemas import DELETED, OWN_COLUMNS, OWN_PREFIX, key_of
from tidemark.tables.shard_rules import recorded
from tidemark.text import harmless, suggestion
from tidemark.values.declared_types import entry_for

log = structlog.get_logger(__name__)

KEPT_RUNS = 50
"""Comparisons of a table that the ledger keeps. One table may be compared far more often than the others."""

_DATABASES: Mapping[str, type[Postgres | MySQL]] = {"postgres": Postgres, "mysql": MySQL}


def reconcile(
    source: Source, table: str | None = None, *, connection: str | None = None
) -> Iterator[ReconciliationRow]:
    """Compare the published tables of a source with its database; yield the row of each, once the ledger has it.

    Args:
        source: the source.
        table: only this table, as it is published (``erp.orders``, ``orders``) or as the source names it.
        connection: the connection as text, where the caller has it from Airflow; None: from the environment.

    Raises:
        ConfigurationError: the source file names no connection, the connection is not set, or there is no such table.
        SourceDatabaseError: the database cannot be reached, or refused a query.
    """
    if source.reconcile is None:
        raise ConfigurationError(
            f"the source file of {source.source} has no `reconcile`: add `reconcile: {{connection: NAME}}`, where NAME "
            "is an environment variable with the URL of the source database, or an Airflow connection"
        )
    lake = Lake.existing()
    ledger = Ledger(lake, source.source)
    address = address_of(source.reconcile.connection, connection)
    rows = _wanted(source, _published(ledger), table)
    earlier = ledger.reconciliations()
    number = earlier[-1].run + 1 if earlier else 1
    with _opened(address) as database:
        for each in rows:
            row = _published(ledger).get(each.object, each)  # a cut may have been published meanwhile
            past = [each for each in earlier if each.object == row.object]
            work = _Work(lake, ledger, source, database, past)
            erased = kept_keys.finished(ledger, row.object)
            gone = past[-KEPT_RUNS].run if len(past) >= KEPT_RUNS else 0
            outcome = kept_keys.write(lake, source.source, work.outcome(row, number), erased, gone)
            log.info("reconciled", source=source.source, table=outcome.target, result=outcome.result)
            yield outcome


def compared_before(source: Source) -> set[str]:
    """Return the tables, as the source names them, that a run which the ledger keeps has compared."""
    rows = Ledger(Lake.existing(), source.source).reconciliations()
    return {row.object for row in rows if row.result != Result.NOT_COMPARED}


def _opened(address: Address) -> Database:
    return _DATABASES[address.dialect](address)


def _published(ledger: Ledger) -> dict[str, TableRow]:
    """Return by object where published tables stand, also those that are stopped; each row has its target."""
    targets = ledger.targets()
    return {
        name: msgspec.structs.replace(row, target=str(targets[name]))
        for name, row in sorted(ledger.published_tables().items())
        if name in targets
    }


def _wanted(source: Source, named: Mapping[str, TableRow], table: str | None) -> list[TableRow]:
    """Return where the tables stand that are to be compared.

    Raises:
        ConfigurationError: nothing is published, or no published table has a name that was given: comparing less than
            was asked for would look like success.
    """
    if not named:
        raise ConfigurationError(f"nothing of {source.source} is published yet: `tidemark run {source.source}`")
    if table is not None:
        found = [row for name, row in named.items() if table in {name, row.target, row.identifier.name}]
        if not found:
            raise UnknownNameError(f"Unknown table '{table}' of {source.source}.{suggestion(table, named)}")
        return found
    patterns = source.reconcile.tables if source.reconcile else ()
    for pattern in patterns:
        if not any(entry_for({pattern: True}, name) for name in named):
            hint = suggestion(pattern, named)
            raise UnknownNameError(f"`reconcile: tables` of {source.source}: no published table is '{pattern}'.{hint}")
    return [row for name, row in named.items() if not patterns or entry_for(dict.fromkeys(patterns, True), name)]


@dataclass(frozen=True, slots=True)
class _Work:
    """The comparison of one table."""

    lake: Lake
    ledger: Ledger
    source: Source
    database: Database
    earlier: Sequence[ReconciliationRow]

    def outcome(self, row: TableRow, number: int) -> ReconciliationRow:
        """Return the row of a table for the ledger."""
        begun = ReconciliationRow(
            run=number,
            object=row.object,
            target=str(row.identifier),
            result=Result.NOT_COMPARED,
            cut=row.cut,
            batch=row.batch,
            verified_through=self.earlier[-1].verified_through if self.earlier else None,
            verified_place=self.earlier[-1].verified_place if self.earlier else None,
        )
        table = self.lake.find(row.identifier)
        if table is None:
            return _with(begun, reason="it is not published yet")
        if folded := recorded(table):
            return _with(begun, reason=f"it is folded from {len(folded)} tables, which cannot be compared together yet")
        if (where := rules_of(table).get("where")) is not None:
            return _with(
                begun, reason=f"`where` leaves rows of the source out, which cannot be told apart yet: {where}"
            )
        snapshot = table.current_snapshot()  # before the source is read: the lake is never ahead of it
        place = self.database.begin()
        try:
            read = {"read_at": place.at, "place": place.text, "shown_through": place.through}
            begun = _with(begun, **read, sequence=json.dumps(place.sequence))
            there = self.database.find(self._name(row.object))
            if there is None:
                return _with(begun, reason="the user of the connection sees no such table in the source database")
            return self._compared(begun, row, _LakeNow(table, snapshot.snapshot_id if snapshot else None), there, place)
        finally:
            self.database.end()

    def _forget_keys(self) -> None:
        """Forget the keys that earlier comparisons named: they are the source's, and the key is masked now."""
        if any(past.keys != "[]" for past in self.earlier):
            forgotten = [_with(past, keys="[]") for past in self.earlier]
            self.ledger.replace(ReconciliationRow, forgotten, equals("object", self.earlier[-1].object))

    def _name(self, name: str) -> TableId:
        rows = self.ledger.contents(equals("object", name))
        return rows[0].table if rows else TableId(None, None, name)

    def _compared(
        self, begun: ReconciliationRow, row: TableRow, now: _LakeNow, there: SourceTable, place: LogMoment
    ) -> ReconciliationRow:
        key = key_of(now.table)
        masked = masks_recorded(now.table).kinds
        if not masked.keys().isdisjoint(key):
            self._forget_keys()
        pairs = kinds.pairs_of(
            self.database.dialect,
            there.columns,
            now.columns(),
            key,
            changed=masked,
            called=names_recorded(now.table),
        )
        lake = LakeTable(now.table, now.snapshot, pairs, now.is_soft(), shortened=self.database.dialect == "mysql")
        comparison = Comparison(self.database, there, lake)
        begun = _with(begun, columns=len(pairs.all), left_out=msgspec.json.encode(pairs.left_out).decode())
        problem = _problem(pairs, key)
        if problem:
            found = comparison.count() if pairs.all else None
            counts = {"source_rows": found.source_rows, "lake_rows": found.lake_rows} if found else {}
            return _with(begun, reason=problem, **counts)
        end = Log.of(self.ledger, self.source, self.database.dialect, place.at)
        known = Evidence(
            events=NewEvents(self.lake, now.table, row, self.source.source, pairs),
            reached=end.passed(place.at, place.sequence),
            earlier=settling(self.earlier, end),
        )
        try:
            return _compared_row(begun, comparison.compare(known), known.earlier, place)
        except UncomparableError as error:
            return _with(begun, reason=str(error))


def _problem(pairs: kinds.ColumnPairs, key: Sequence[str]) -> str | None:
    if problem := kinds.key_problem(pairs, key):
        return problem
    if not key and pairs.left_out:
        return f"it has no key, and not every column can be compared: {', '.join(map(harmless, pairs.left_out))}"
    return None if pairs.all else "no column can be compared"


@dataclass(frozen=True, slots=True)
class _LakeNow:
    """A published table at the snapshot that is compared."""

    table: Table
    snapshot: int | None

    def _types(self) -> dict[str, str]:
        if self.snapshot is None:
            return {column.name: str(column.field_type) for column in self.table.schema().fields}
        written = self.table.scan(snapshot_id=self.snapshot).projection().fields
        types = {column.name: str(column.field_type) for column in written}
        return {name: types[column] for column, name in names_with(self.table, self.snapshot).items()}

    def columns(self) -> dict[str, str]:
        """Return the columns of the source in it, each with its type."""
        own = {*OWN_COLUMNS, *derived_columns(self.table)}
        return {
            name: kind for name, kind in self._types().items() if name not in own and not name.startswith(OWN_PREFIX)
        }

    def is_soft(self) -> bool:
        """Return whether it may have deleted rows."""
        return DELETED in self._types()


def _compared_row(
    begun: ReconciliationRow, found: Differences, earlier: ReconciliationRow | None, place: LogMoment
) -> ReconciliationRow:
    """Return the row with how the sides compare."""
    counts = {each.value: found.counts.get(each.value, 0) for each in Class}
    wrong = sum(counts.values()) - counts[Class.BEHIND.value]
    result = Result.DIFFERS if wrong else Result.BEHIND if counts[Class.BEHIND.value] else Result.EQUAL
    verified: dict[str, Any] = {}
    if result is Result.EQUAL and place.through is not None:
        verified = {"verified_through": place.through, "verified_place": begun.place}
    elif found.settled and earlier is not None and not place.is_copy and _is_later(earlier, begun):
        verified = {"verified_through": earlier.shown_through, "verified_place": earlier.place}
    keys = msgspec.json.encode(list[DifferingKey](found.keys)).decode()
    return _with(
        begun, result=result, source_rows=found.source_rows, lake_rows=found.lake_rows, keys=keys, **counts, **verified
    )


def _is_later(earlier: ReconciliationRow, begun: ReconciliationRow) -> bool:
    known = begun.verified_through
    return earlier.shown_through is not None and (known is None or earlier.shown_through > known)


def _with(row: ReconciliationRow, **fields: Any) -> ReconciliationRow:  # noqa: ANN401  the fields of the row
    return msgspec.structs.replace(row, **fields)
