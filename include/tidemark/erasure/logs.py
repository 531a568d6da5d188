"""Takes the rows of a subject out of the change log, raw and quarantine, and counts in the ledger what is left."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import And, BooleanExpression
from pyiceberg.table import Table

from tidemark.erasure.search import Places
from tidemark.erasure.subject import ErasedRow, Place
from tidemark.lake import file_edits, names
from tidemark.lake.data_files import Partition
from tidemark.lake.file_edits import Edit, RowsFound
from tidemark.lake.filters import among, equals, unset
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import CHANGE_LOG, QUARANTINE, RAW, VARIED, RowKind
from tidemark.ledger import cuts
from tidemark.ledger import transactions as ledger_transactions
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import BatchRow, ContentRow, TransactionRow
from tidemark.normalization import erasures
from tidemark.normalization.erasures import content_of
from tidemark.tables.eras import condition

_KEPT = frozenset({
    "batch", "object", "database", "schema", "name", "operation", "position", "committed_at", "captured_at",
    "landed_at", "transaction_id", "transaction_number", "transaction_last", "file", "place", "row",
})  # fmt: skip
"""Columns that an erased event keeps: its place, and how it counts in its transaction."""


def change_log_edit(subject: ErasedRow, events: Iterable[Place], objects: Sequence[str] = ()) -> Edit:
    """Return the edit that leaves of the subject's events their places.

    Args:
        subject: whose events.
        events: their places.
        objects: only those under these names; none: under all names of the table and of its copies.
    """
    places = frozenset(events)
    messages = {(file, place) for file, place, _ in places}
    of_table = And(equals("kind", RowKind.CHANGE.value), among("object", objects or _objects(subject)))

    def holds(rows: pa.RecordBatch) -> pa.Array:
        likely = erasures.at(rows, messages)
        if not pc.any(likely).as_py():
            return likely
        columns = (rows.column(name).to_pylist() for name in ("file", "place", "row"))
        return pa.array([place in places for place in zip(*columns, strict=True)], pa.bool_())

    return Edit(
        where=And(of_table, among("file", {file for file, _ in messages})),
        holds=holds,
        instead=_places_alone,
        plain=VARIED,
        bounded=["position"],
    )


def _places_alone(partition: Partition, rows: pa.RecordBatch) -> list[tuple[Partition, pa.RecordBatch]]:
    batch, _, table = partition
    kind = pa.repeat(pa.scalar(RowKind.ERASED.value), rows.num_rows)
    partial = pa.repeat(pa.scalar(value=False), rows.num_rows)
    own = {"kind": kind, "partial": partial}
    columns = [
        own[name] if name in own else rows.column(name) if name in _KEPT else pa.nulls(rows.num_rows, field.type)
        for name, field in zip(CHANGE_LOG.names, CHANGE_LOG, strict=True)
    ]
    return [((batch, RowKind.ERASED.value, table), pa.RecordBatch.from_arrays(columns, names=CHANGE_LOG.names))]


def quarantine_edit(
    places: Places, names_of_table: Collection[str], others: Collection[tuple[str, int]], *, unread: bool
) -> Edit:
    """Return the edit that takes the subject's messages out of the quarantine.

    What compact set aside of other rows in these messages stays, without its bytes. It stands there under the last name
    of its table, whatever name the event came with.

    Args:
        places: of the subject's rows.
        names_of_table: the names of the subject's table.
        others: file and place of those messages that also have events of other rows of it (``others_at``).
        unread: whether messages that could not be decoded go too.
    """
    messages = places.taken(unread=unread)

    def holds(rows: pa.RecordBatch) -> pa.Array:
        # Of a message that was not decoded, ``raw`` may have bytes that the quarantine does not keep any more.
        there = pc.or_(pc.is_valid(rows.column("value")), pc.is_null(rows.column("object")))
        return pc.and_(erasures.at(rows, messages), there)

    def instead(partition: Partition, rows: pa.RecordBatch) -> list[tuple[Partition, pa.RecordBatch]]:
        events = zip(*(rows.column(name).to_pylist() for name in ("object", "file", "place")), strict=True)
        stays = [
            name is not None and (name not in names_of_table or (file, place) in others) for name, file, place in events
        ]
        kept = rows.filter(pa.array(stays, pa.bool_()))
        bare = {name: pa.nulls(kept.num_rows, pa.binary()) for name in ("key", "value")}
        # The detail may quote a value, and nothing says which row has it.
        bare["detail"] = pa.repeat(pa.scalar("an erasure removed the bytes and the detail"), kept.num_rows)
        columns = [bare.get(name, kept.column(name)) for name in kept.schema.names]
        return [(partition, pa.RecordBatch.from_arrays(columns, names=kept.schema.names))]

    return Edit(where=among("file", {file for file, _ in messages}), holds=holds, instead=instead, plain=VARIED)


def others_at(log: Table, places: Places, names_of_table: Collection[str]) -> frozenset[tuple[str, int]]:
    """Return file and place of those of the subject's messages that have events of other rows of its table.

    Args:
        log: the change log.
        places: of the subject's rows.
        names_of_table: the names of the table.
    """
    fields = ("file", "place", "row")
    of_table = And(equals("kind", RowKind.CHANGE.value), among("object", names_of_table))
    where = And(of_table, among("file", {file for file, _ in places.erasable}))
    found: set[tuple[str, int]] = set()
    for rows in log.scan(row_filter=where, selected_fields=fields).to_arrow_batch_reader():
        near = rows.filter(erasures.at(rows, places.erasable)).to_pylist()
        events = [(row["file"], row["place"], row["row"]) for row in near]
        found |= {(file, place) for file, place, row in events if (file, place, row) not in places.events}
    return frozenset(found)


def count_events(lake: Lake, subject: ErasedRow, places: Places) -> int:
    """Return how many events of the subject's table are in the change log. Its copies are in no cut."""
    edit = change_log_edit(subject, places.events, subject.names)
    return file_edits.find(lake.load(names.change_log(subject.source)), edit).rows


def count_uncounted(lake: Lake, ledger: Ledger, subject: ErasedRow, places: Places) -> int:
    """Return how many events of a row this erasure takes, or an earlier one took, that no published cut has counted."""
    erased = sum(row["detail"] is None for row in erased_events(lake, subject, condition(subject.segments)))
    events = erased + count_events(lake, subject, places)
    last = cuts.last_published(ledger)
    standings = ledger.tables(equals("object", subject.object))
    counted = sum(row.erased or 0 for row in standings if last is not None and row.cut <= last.cut)
    return max(0, events - counted)


def erase_events(lake: Lake, subject: ErasedRow, places: Places) -> dict[str, RowsFound]:
    """Take the rows out of the change log, and return what was removed.

    This comes last. If the command is given again, only the change log shows which keys the row had in earlier eras.
    """
    if not places.erasable:
        return {}
    log, edit = lake.load(names.change_log(subject.source)), change_log_edit(subject, places.events)
    return {str(names.change_log(subject.source)): file_edits.apply(lake, log, CHANGE_LOG, edit)}


def erase_messages(lake: Lake, subject: ErasedRow, places: Places, *, unread: bool) -> dict[str, RowsFound]:
    """Take the rows out of raw and the quarantine, one commit each, and return what was removed of each."""
    removed: dict[str, RowsFound] = {}
    messages = places.taken(unread=unread)
    quarantine = lake.find(names.quarantine(subject.source))
    if messages and quarantine is not None:
        others = others_at(lake.load(names.change_log(subject.source)), places, subject.names)
        edit = quarantine_edit(places, subject.names, others, unread=unread)
        removed[str(names.quarantine(subject.source))] = file_edits.apply(lake, quarantine, QUARANTINE, edit)
    if messages:
        raw = lake.load(names.raw(subject.source))
        removed[str(names.raw(subject.source))] = file_edits.apply(lake, raw, RAW, erasures.messages_edit(messages))
    return removed


def recount(lake: Lake, ledger: Ledger, subject: ErasedRow) -> None:
    """Count again, in the ledger, what is left in the batches from which events were erased.

    Everything is counted from the logs, so doing it again changes nothing.
    """
    log = lake.load(names.change_log(subject.source))
    left = erased_events(lake, subject, among("object", _objects(subject)))
    for name in _objects(subject):
        mine = [row for row in left if row["object"] == name]
        if batches := {row["batch"] for row in mine}:
            _recount_contents(ledger, log, name, batches)
            ids = {row["transaction_id"] for row in mine if row["transaction_id"] is not None}
            _recount_transactions(ledger, log, name, ids)
    _recount_quarantined(lake, ledger, subject.source)


def _objects(subject: ErasedRow) -> list[str]:
    """Return the names that the subject's events came under: of its table, and of copies that tools made of it."""
    return list(dict.fromkeys([*subject.names, *subject.copies.names]))


def erased_events(lake: Lake, subject: ErasedRow, of_table: BooleanExpression) -> list[dict[str, Any]]:
    """Return the events that were erased and fit a condition; ``detail`` is null where an erasure found them."""
    where = And(equals("kind", RowKind.ERASED.value), of_table)
    fields = ("object", "batch", "transaction_id", "detail")
    log = lake.load(names.change_log(subject.source))
    return list(log.scan(row_filter=where, selected_fields=fields).to_arrow().to_pylist())


def _recount_contents(ledger: Ledger, log: Table, table: str, batches: set[int]) -> None:
    of_table = And(equals("kind", RowKind.CHANGE.value), equals("object", table))
    fields = ("batch", "database", "schema", "name", "operation", "shape", "partial", "key", "after")
    counts: Counter[tuple[int, Any]] = Counter()
    scan = log.scan(row_filter=And(of_table, among("batch", batches)), selected_fields=fields)
    for rows in scan.to_arrow_batch_reader():
        bare = rows.set_column(rows.schema.names.index("after"), "after", _is_there(rows.column("after")))
        counts.update((row["batch"], content_of(row)) for row in bare.to_pylist())
    where = And(among("batch", batches), equals("object", table))
    found = [ContentRow.of(batch, content, count) for (batch, content), count in sorted(counts.items(), key=repr)]
    if found:
        ledger.replace(ContentRow, found, where)
    else:
        ledger.forget(ContentRow, where)
    events: Counter[int] = Counter()
    for row in ledger.contents(among("batch", batches)):
        events[row.batch] += row.events
    changed = [
        msgspec.structs.replace(row, events=events[row.batch]) for row in ledger.batches(among("batch", batches))
    ]
    ledger.replace(BatchRow, changed, among("batch", batches))


def _is_there(column: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_valid(column), pa.scalar("there"), pa.scalar(None, pa.string()))


def _recount_transactions(ledger: Ledger, log: Table, table: str, ids: set[str]) -> None:
    """Let the ledger's rows of transactions count the events of the table that are still there."""
    rows = [row for row in ledger.transactions() if row.id in ids]
    if not rows:
        return
    of_table = And(equals("kind", RowKind.CHANGE.value), equals("object", table))
    where = And(of_table, among("transaction_id", {row.id for row in rows if row.id is not None}))
    events: dict[str, Counter[int]] = defaultdict(Counter)
    for found in log.scan(row_filter=where, selected_fields=("batch", "transaction_id")).to_arrow().to_pylist():
        events[found["transaction_id"]][found["batch"]] += 1
    changed = [_with_events(row, table, events.get(row.id or "", Counter())) for row in rows]
    ledger.replace(TransactionRow, changed, among("id", {row.id for row in rows if row.id is not None}))


def _with_events(row: TransactionRow, table: str, by_batch: Mapping[int, int]) -> TransactionRow:
    seen = ledger_transactions.seen_of(row)
    if table not in seen.tables:
        return row
    count = sum(number for batch, number in by_batch.items() if batch <= row.batch)
    tables = {**seen.tables, table: (count, seen.tables[table][1])}
    text = msgspec.json.encode(msgspec.structs.replace(seen, tables=tables)).decode()
    return msgspec.structs.replace(row, seen=text, events=sum(number for number, _ in tables.values()))


def _recount_quarantined(lake: Lake, ledger: Ledger, source: str) -> None:
    """Count messages that left the quarantine as decoded: an erased message is one without an event."""
    quarantine = lake.find(names.quarantine(source))
    if quarantine is None:
        return
    there: Counter[int] = Counter()
    for rows in quarantine.scan(
        row_filter=unset("object"), selected_fields=("batch", "object")
    ).to_arrow_batch_reader():
        there.update(rows.column("batch").to_pylist())
    rows = ledger.batches()
    retried: Counter[int] = Counter()
    for row in rows:
        if row.retry_of is not None:
            retried[row.retry_of] += row.quarantined
    changed = []
    for row in rows:
        quarantined = there[row.batch] - retried[row.batch]
        if row.retry_of is None and row.quarantined != quarantined:
            decoded = row.landed - row.control - quarantined
            changed.append(msgspec.structs.replace(row, quarantined=quarantined, decoded=decoded))
    if changed:
        ledger.replace(BatchRow, changed, among("batch", {row.batch for row in changed}))
