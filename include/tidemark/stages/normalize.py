"""Normalize: new messages of ``raw`` into the change log, one row an event; what cannot be read into quarantine.

One pass over the new messages by the workers, which write and count; one commit of the change log that carries its own
marker. Quarantine and ledger are written before it and count only once the change log has their batch, so a killed
normalize leaves nothing behind that a later one does not replace. A format that cannot read rows without metadata
messages has these collected before, from the new messages and from the change log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

import structlog
from pyiceberg.table import Table

from tidemark import tasks, workers
from tidemark.change_log import Tally
from tidemark.data_files import ROW_GROUP_BYTES, Target
from tidemark.decode import metadata_of
from tidemark.errors import LedgerError
from tidemark.events import Message
from tidemark.formats import Known, informed, resolve, together
from tidemark.lake import LOG_PROPERTIES, Lake, marker
from tidemark.ledger import Ledger, Row, above, equals
from tidemark.rows import CHANGE_LOG, QUARANTINE, RAW, VARIED, Kind
from tidemark.sources import Source
from tidemark.stages import StageReport
from tidemark.workers import Done, RawPart

log = structlog.get_logger(__name__)


def run(source: Source, start: datetime | None = None, end: datetime | None = None) -> StageReport:
    """Decode every batch that ``raw`` has and the change log has not.

    Raises:
        LedgerError: messages went missing between ``raw`` and the change log.
        LakeError: the store or the engine failed; running again continues where it was.
    """
    lake = Lake.open()
    raw = lake.find(("raw", source.source))
    changelog = lake.ensure(
        ("changelog", source.source), CHANGE_LOG, LOG_PROPERTIES, partition_by=["batch", "kind", "object"]
    )
    done = int(marker(changelog, "batch") or 0)
    newest = int(marker(raw, "batch") or 0)
    rows = _decode(lake, source, raw, changelog, done, newest) if raw is not None and newest > done else []
    totals = Counter[str]()
    for row in rows:
        totals.update({name: row[name] for name in ("landed", "decoded", "control", "quarantined", "events")})
    log.info("normalized", source=source.source, **totals)
    return StageReport(stage="normalize", source=source.source, summary={**totals, "batch": newest})


def _decode(lake: Lake, source: Source, raw: Table, changelog: Table, done: int, newest: int) -> list[Row]:
    quarantine = lake.ensure(
        ("quarantine", source.source), QUARANTINE, LOG_PROPERTIES, partition_by=["batch", "reason", "object"]
    )
    read_from = lake.target(raw, RAW)
    parts = list(_parts(raw, read_from, done))
    work = partial(
        workers.normalize,
        format_name=source.format,
        options=source.options.model_dump(mode="json"),
        known=_known(source, parts, read_from, changelog),
        raw=read_from,
        log=lake.target(changelog, CHANGE_LOG, plain=VARIED),
        quarantine=lake.target(quarantine, QUARANTINE, plain=VARIED),
    )
    did = tasks.run(parts, work)
    ledger = Ledger(lake, source.source)
    rows = _account(ledger, did, done, newest)
    for row in rows:
        _close(source.source, row)
    lake.append_files(
        quarantine, [file for task in did for file in task.set_aside], {}, instead_of=above("batch", done)
    )
    ledger.replace("batches", rows, above("batch", done))
    lake.append_files(changelog, [file for task in did for file in task.files], {"batch": str(newest)})
    return rows


def _parts(raw: Table, read_from: Target, done: int) -> Iterable[tasks.Part]:
    """The row groups of ``raw`` that hold batches above ``done``; a few together where a file has many."""
    for planned in raw.scan(row_filter=above("batch", done)).plan_files():
        file = planned.file
        groups = len(file.split_offsets or ()) or 1
        path = read_from.path_of(file.file_path)
        size = min(ROW_GROUP_BYTES, file.file_size_in_bytes * _EXPANSION // groups)
        for group in range(groups):
            yield RawPart(path=path, batch=int(file.partition[0]), first=group, last=group + 1), size


_EXPANSION = 8
"""About how many times larger messages are than their Parquet file."""


def _known(source: Source, parts: Sequence[tasks.Part], raw: Target, changelog: Table) -> Known | None:
    """What the metadata messages of the new rows tell, and those that the change log keeps as schema changes.

    None where the format asks for none. What comes back is one pair a table and version of its structure.
    """
    module = informed(resolve(source.format))
    if module is None:
        return None
    options = source.options.model_dump(mode="json")
    collect = partial(workers.collect, format_name=source.format, options=options, raw=raw)
    told = [pair for task in tasks.run(parts, collect) for pair in task.metadata]
    rows = changelog.scan(row_filter=equals("kind", Kind.SCHEMA_CHANGE.value), selected_fields=("detail",)).to_arrow()
    kept = (Message(value=text.encode(), file="", place=0) for text in rows.column("detail").unique().to_pylist())
    return together([*told, *metadata_of(module, kept, source.options)])


def _account(ledger: Ledger, did: Iterable[Done], done: int, newest: int) -> list[Row]:
    """Write down what the batches held of each table; the rows that tell what became of their messages."""
    found: dict[int, list[Tally]] = {batch: [] for batch in range(done + 1, newest + 1)}
    for task in did:
        for batch, tally in task.tallies.items():
            found[batch].append(tally)
    ledger.tell_contents(found, done)
    landed = Counter[int]()
    for file in ledger.read("files", above("batch", done)):
        landed[file["batch"]] += file["messages"]
    return [_batch(batch, landed[batch], tallies) for batch, tallies in sorted(found.items())]


def _batch(batch: int, landed: int, tallies: Iterable[Tally]) -> Row:
    names = ("decoded", "control", "quarantined")
    counts: Mapping[str, int] = {name: sum(getattr(tally, name) for tally in tallies) for name in names}
    events = sum(count for tally in tallies for _, count in tally.contents)
    return {"batch": batch, "landed": landed, **counts, "events": events}


def _close(source: str, row: Row) -> None:
    accounted = row["decoded"] + row["control"] + row["quarantined"]
    if row["landed"] != accounted:
        raise LedgerError(
            f"{source}, batch {row['batch']}: {row['landed']} messages landed, but {row['decoded']} decoded + "
            f"{row['control']} control + {row['quarantined']} quarantined = {accounted}. Nothing of it is published."
        )
