"""``tidemark explain``: every event of one row, from the change log, and what became of it.

No Spark: the table's part of the change log is streamed as Arrow batches. Arrow drops the events whose images cannot
contain the key (``row_life_scan``), and ``row_life_steps`` reads the others as compact does. Only the events of the row
are kept in memory.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from typing import Any

import msgspec
import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression
from pyiceberg.table import Table

from tidemark.ddl.history import Emptying
from tidemark.errors import UnknownNameError
from tidemark.events import Operation
from tidemark.lake import names as table_names
from tidemark.lake.filters import among, equals, starts_with
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RowKind
from tidemark.lake.properties import OBJECT_PROPERTY, SOURCE_PROPERTY, keeps_whole
from tidemark.ledger import transactions as ledger_transactions
from tidemark.ledger.expired import Expired
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.states import CutState, TableState
from tidemark.ledger.waiting import waiting
from tidemark.queries import named_tables, row_events, row_life
from tidemark.queries.row_events import RowEvents
from tidemark.queries.row_key import key_given
from tidemark.queries.row_life import Chapter, Key, Outcome, Step
from tidemark.queries.row_life_masks import shown
from tidemark.queries.row_life_scan import FIELDS, LogRow, log_rows, made
from tidemark.queries.row_life_steps import Aside, Reader
from tidemark.queries.shard_views import folded_name, is_view, names_of, shard_of
from tidemark.sources.routes import SHARD_COLUMN
from tidemark.tables import column_rules, eras, reasons, row_checks
from tidemark.tables.schemas import OWN_PREFIX, POSITION
from tidemark.values.plain_types import Value
from tidemark.values.types import decimal_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """The events of one row, and the row as it is published."""

    table: str
    key: Key
    chapters: Sequence[Chapter]
    """In the order of position."""
    rows: pa.Table
    """The published row, with Tidemark's own columns; no row if it is gone. With soft deletes, a deleted row is still
    there, marked. In a table without a key, all rows that have the values."""
    expired: int = 0
    """The last batch whose events are past their time; 0 if all events of the table are there."""
    left_out: str | None = None
    """The filter (``where``) that such a row does not pass; None where all are published."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """How far the published table has come."""

    batch: int
    """Last batch of the change log that the table holds."""
    beyond: Aside
    """Why the table does not hold events of later batches."""
    open: Mapping[str, str]
    """Transactions whose events up to ``batch`` the table does not hold yet, and what they lack."""
    undone: frozenset[str]
    """Transactions that were rolled back."""

    def aside(self, row: LogRow) -> Aside | None:
        """Return why the published table does not hold an event; None if nothing but the event itself prevents it."""
        if row.batch > self.batch:
            return self.beyond
        if row.transaction_id in self.undone:
            return Outcome.ROLLED_BACK, "its transaction was rolled back"
        if row.transaction_id is not None and row.transaction_id in self.open:
            return Outcome.HELD, f"its transaction is open: {self.open[row.transaction_id]}"
        return None


def explain(lake: Lake, name: str, given: Sequence[str]) -> Life:
    """Return the life of one row.

    Args:
        lake: the lake.
        name: the table, as ``source.table``, or ``table`` if one source has such a table.
        given: the row's key, as texts ``COLUMN=VALUE``.

    Raises:
        ConfigurationError: there is no such table or column, a column is missing or not in the key, or a column cannot
            hold its value.
    """
    identifier, table = find_table(lake, name)
    name = str(identifier)
    table, given = shard_of(table, name, given)
    standing = _standing(lake, table)
    history = row_events.history(lake, table)
    reader = Reader.of(lake, table, history.until(standing.batch))
    wanted = key_given(name, given, reader.columns, reader.key)
    steps = RowEvents(lake, table, reader).steps(wanted, standing.aside)
    steps += _emptied(lake, table, history.emptyings, standing)
    start = min((step.position for step in steps if step.operation != Operation.TRUNCATE), default=None)
    own = [step for step in steps if start is not None and step.position >= start]
    chosen = _with_values(table, reader, wanted)
    whole = lake.load(table_names.whole(identifier)) if keeps_whole(table.properties) else table
    rows = _rows(table, chosen)
    kept = rows if whole is table else _rows(whole, chosen)
    if reader.key:
        if row_checks.recorded(whole) != row_checks.as_text(()):
            own = _with_kept_back_marked(lake, table, own, set(kept.column(POSITION).to_pylist()))
        if any(map(_needs_another_row, own)):
            own = _with_set_aside_marked(lake, table, own)
        chapters = row_life.tell(_with_lone_halves_marked(lake, table, own, standing), soft=reader.soft)
    else:
        chapters = row_life.tell_bag(_with_set_aside_marked(lake, table, own), set(kept.column(POSITION).to_pylist()))
    past = Expired(lake, table.properties[SOURCE_PROPERTY]).among(eras.names_of(eras.segments_of(table)))
    expired = max((batch for _, batch in past), default=0)
    left_out = column_rules.recorded(table).get("where") if kept.num_rows > rows.num_rows else None
    return Life(table=name, key=wanted, chapters=chapters, rows=rows, expired=expired, left_out=left_out)


def find_table(lake: Lake, name: str) -> tuple[table_names.Identifier, Table]:
    """Return a published table of a source, named as ``source.table``, or ``table`` if one source has such a table.

    Raises:
        UnknownNameError: there is no such table.
    """
    identifier, table = named_tables.find(lake, name)
    if SOURCE_PROPERTY not in table.properties:
        raise UnknownNameError(f"'{name}' is no table of a source: `tidemark status` lists those that are.")
    return identifier, table


def _standing(lake: Lake, table: Table) -> _Standing:
    ledger = Ledger(lake, table.properties[SOURCE_PROPERTY])
    row = ledger.published_tables().get(folded_name(table))
    newest = ledger.last_cut()
    batch = row.batch if row else 0
    # If the source ignores transactions, the table holds the events of open ones, and the ledger counts none as held.
    holds_back = row is not None and row.held > 0
    rows = ledger.transactions()
    shown = ledger_transactions.given_up(ledger).shown_in(folded_name(table))
    waits_for = {each.id: each.why for each in waiting(rows, batch, but=shown)} if holds_back else {}
    undone = ledger_transactions.ids_in(rows, batch, ledger_transactions.UNDONE) - shown
    if row is not None and row.state == TableState.STOPPED:
        return _Standing(batch, (Outcome.HELD, f"the table is stopped: {row.reason}"), waits_for, undone)
    waits = "the next compact takes it"
    if newest is not None and newest.state != CutState.PUBLISHED:
        waits = f"behind the published cut; the newest is cut {newest.cut}, {newest.state}"
    return _Standing(batch, (Outcome.WAITING, waits), waits_for, undone)


def _emptied(lake: Lake, table: Table, emptyings: Sequence[Emptying], standing: _Standing) -> Iterator[Step]:
    """Yield the statements and initial loads that emptied the table, which act like TRUNCATEs."""
    if not emptyings:
        return
    changelog = lake.load(table_names.change_log(table.properties[SOURCE_PROPERTY]))
    batches = {emptying.position: emptying.batch for emptying in emptyings if not emptying.load}
    if batches:
        stated = And(equals("kind", RowKind.SCHEMA_CHANGE), among("position", batches))
        for row in log_rows(changelog.scan(row_filter=stated, selected_fields=FIELDS).to_arrow()):
            if row.batch == batches[row.position]:
                yield _emptying(row, standing)
    mine = And(equals("kind", RowKind.CHANGE), eras.condition(eras.segments_of(table)))
    for emptying in emptyings:
        if emptying.load:  # any row of the load represents it
            rows = And(mine, starts_with("position", f"{emptying.position}."))
            for row in log_rows(changelog.scan(row_filter=rows, selected_fields=FIELDS, limit=1).to_arrow()):
                load = msgspec.structs.replace(row, position=emptying.position, batch=emptying.batch)
                yield _emptying(load, standing)


def _emptying(row: LogRow, standing: _Standing) -> Step:
    return made(msgspec.structs.replace(row, operation=Operation.TRUNCATE), deletes=True, aside=standing.aside(row))


def _needs_another_row(step: Step) -> bool:
    """Return whether an event may lack values of a row with another key: an old half, or a row that moved."""
    return step.partial and (step.operation == Operation.INSERT or row_life.new_half(step) == step.position)


def _with_set_aside_marked(lake: Lake, table: Table, steps: Sequence[Step]) -> list[Step]:
    """Return the steps; a step that compact set aside into quarantine is marked with the reason.

    The quarantine is read where the row's own events are not enough to repeat compact's decision.
    """
    quarantine = lake.find(table_names.quarantine(table.properties[SOURCE_PROPERTY]))
    if quarantine is None or not steps:
        return list(steps)
    places = And(among("file", [step.file for step in steps]), among("place", [step.place for step in steps]))
    where = And(among("object", names_of(table)), places)
    fields = ("batch", "file", "place", "reason", "detail")
    rows = quarantine.scan(row_filter=where, selected_fields=fields).to_arrow().to_pylist()
    reasons_by_place = {(row["batch"], row["file"], row["place"]): (row["reason"], row["detail"]) for row in rows}
    return [_marked(step, *reasons_by_place.get((step.batch, step.file, step.place), ("", ""))) for step in steps]


def _with_kept_back_marked(lake: Lake, table: Table, steps: Sequence[Step], published: Collection[str]) -> list[Step]:
    """Return the steps; those whose row fails a check that keeps rows back are marked.

    The quarantine has messages. Of a message with several rows, it does not say which one failed, but a row that is
    published as the event left it did not.
    """
    marked = _with_set_aside_marked(lake, table, steps)
    return [old if old.position in published else new for old, new in zip(steps, marked, strict=True)]


def _marked(step: Step, reason: str, detail: str | None) -> Step:
    """Return the step as compact took it, which set the event aside for a reason, or did not.

    A row that fails a check leaves its old key, and the table, unless the check keeps the last good row.
    """
    why = f"{reason}: {detail}" if detail else reason  # the detail may be past its time
    by_check = reason in {reasons.CHECK_FAILED, reasons.CHECK_FAILED_KEPT_GOOD}
    if not reason or step.aside or (by_check and step.moved_to is not None):
        return step
    if reason == reasons.CHECK_FAILED:
        return replace(step, deletes=True, cells={}, kept_back=why)
    return replace(step, aside=(Outcome.QUARANTINED, why))


def _with_lone_halves_marked(lake: Lake, table: Table, steps: Sequence[Step], standing: _Standing) -> list[Step]:
    """Return the steps; an old half of an update is marked if it does nothing because its new half is missing.

    The new half may have this key or another key.
    """
    mine = {step.position for step in steps if step.aside is None}
    missing = {row_life.new_half(step) for step in steps if step.half and step.partial} - mine
    there = set(mine)
    if missing:
        changelog = lake.load(table_names.change_log(table.properties[SOURCE_PROPERTY]))
        where = And(eras.condition(eras.segments_of(table)), among("position", missing))
        rows = log_rows(
            changelog.scan(row_filter=And(equals("kind", RowKind.CHANGE), where), selected_fields=FIELDS).to_arrow()
        )
        found = [made(row, deletes=False, aside=standing.aside(row)) for row in rows]
        there |= {step.position for step in _with_set_aside_marked(lake, table, found) if step.aside is None}
    waits = (Outcome.WAITING, "it does nothing without the new half of the update")
    return [
        replace(step, aside=step.aside or waits)
        if step.half and step.partial and row_life.new_half(step) not in there
        else step
        for step in steps
    ]


def _with_values(table: Table, reader: Reader, wanted: Key) -> BooleanExpression:
    """Return the condition that a published row has these values."""
    where: BooleanExpression = AlwaysTrue()
    if is_view(table):
        where = equals(SHARD_COLUMN, table.properties[OBJECT_PROPERTY])
    for name, value in shown(wanted, reader.masks).items():
        where = And(where, equals(name, literal(value, reader.columns[name].type)))
    return where


def _rows(table: Table, where: BooleanExpression) -> pa.Table:
    rows = table.scan(row_filter=where).to_arrow()
    return rows.select([name for name in rows.column_names if not name.startswith(OWN_PREFIX)])


def literal(value: Value, kind: str) -> Any:  # noqa: ANN401  of the column's type
    """Return a value as PyIceberg compares it with a column of a type."""
    if parts := decimal_parts(kind):
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-parts[1]), context=Context(prec=38))
    return _LITERALS[kind](str(value)) if kind in _LITERALS else value


_LITERALS: Mapping[str, Callable[[str], object]] = {
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "binary": base64.b64decode,
    "timestamptz": lambda text: text.replace("Z", "+00:00"),
}
