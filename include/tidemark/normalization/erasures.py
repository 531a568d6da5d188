"""What normalize, retry and reprocessing do about rows that were erased: recognise them, and keep their bytes out.

An erasure leaves a message that held its row without bytes in ``raw``. Events of other rows in the same message stay in
the change log. They cannot be derived again, so reprocessing carries them over, with the places of the erased events.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import And, BooleanExpression
from pyiceberg.table import Table

from tidemark.errors import ConfigurationError
from tidemark.events import Operation, TableId
from tidemark.lake import file_edits, names, purging
from tidemark.lake.branches import MARKER, marker
from tidemark.lake.commits import commit_files
from tidemark.lake.data_files import FileWriter, Partition, TableFolder
from tidemark.lake.file_edits import Edit
from tidemark.lake.filters import among, equals
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import CHANGE_LOG, ERASED, RAW, VARIED, RowKind
from tidemark.ledger.erasure_rows import ErasureRow
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.tally import Content, Tally
from tidemark.normalization import spans
from tidemark.normalization.erased_keys import ErasedKeys, Erasure, KeyColumn, fingerprint
from tidemark.normalization.tasks import Done
from tidemark.sources.model import Source
from tidemark.values.iso8601 import to_micros
from tidemark.values.masking import SECRET_OF_ERASURES, by_connection, secret_in
from tidemark.values.sealed_messages import exchanged

_FOUND, _SCRUBBED = "erased", "scrubbed"
"""Markers of the change log and of ``raw``: they are equal once the bytes of the erased events are gone.

Behind an id of its own, a marker has the batches of ``raw`` with the messages; without any, all may have them."""

_MANY_BATCHES = 100
"""Batches from which on a marker names none."""

_key_columns = msgspec.json.Decoder(tuple[KeyColumn, ...])

Places = Collection[tuple[str, int]]
"""File and place of messages."""


def secret() -> bytes:
    """Return the secret of the keyed hashes, from the environment.

    Raises:
        ConfigurationError: it is not set, or too short to keep a key from being guessed.
    """
    elsewhere = by_connection(SECRET_OF_ERASURES)
    return secret_in(SECRET_OF_ERASURES, "keys of erased rows are kept as hashes made", elsewhere=elsewhere)


def keys_of(ledger: Ledger, source: Source) -> ErasedKeys | None:
    """Return the erased keys of a source; None if there are none.

    Raises:
        ConfigurationError: there are some, and the secret is missing, or another one than they were hashed with.
    """
    rows = ledger.erasures()
    if not rows:
        return None
    known = secret()
    require_same_secret(source.source, rows, known)
    return ErasedKeys(secret=known, erasures=tuple(map(erasure_of, rows)), declared=source.written())


def require_same_secret(source: str, rows: Iterable[ErasureRow], known: bytes) -> None:
    """Refuse a secret that is not the one that keys were hashed with."""
    if others := [row for row in rows if row.secret != fingerprint(known)]:
        raise ConfigurationError(
            f"{source}: rows of {others[0].object} were erased with another {SECRET_OF_ERASURES}; without it they "
            f"would come back when they are delivered again. Set the one that was used then"
        )


def erasure_of(row: ErasureRow) -> Erasure:
    """Return a row of the ledger as workers need it."""
    return Erasure(
        object=row.object,
        columns=_key_columns.decode(row.reading),
        digest=row.digest,
        before=to_micros(row.before),
        horizon=row.horizon,
        begins=row.begins or "",
        ends=row.ends,
    )


def messages_edit(places: Places) -> Edit:
    """Return the edit that takes the bytes from messages of ``raw``, and leaves their places."""
    files = {file for file, _ in places}
    return Edit(
        where=among("file", files),
        holds=lambda rows: pc.and_(at(rows, places), pc.not_equal(_checksums(rows), ERASED)),
        instead=lambda partition, rows: [(partition, _without_bytes(rows))],
        plain=VARIED,
    )


def marks(tasks: Iterable[Done], batches: Collection[int]) -> dict[str, str]:
    """Return the marker of a commit of the change log after which ``raw`` is to be scrubbed; nothing for no scrubbing.

    The bytes go only when the change log has the events of the other rows in the same messages.

    Args:
        tasks: what was decoded.
        batches: the batches that its messages landed with.
    """
    if not any(task.erased for task in tasks):
        return {}
    named = sorted(batches) if len(batches) < _MANY_BATCHES else []
    return {_FOUND: " ".join([uuid.uuid4().hex, *map(str, named)])}


def scrub(lake: Lake, source: str) -> None:
    """Take the bytes from the messages of ``raw`` whose erased events came again, physically.

    Does nothing if no erased event came again since the last complete call. Does nothing in a rehearsal either: its
    tables share their files with the lake.
    """
    if lake.at(names.raw(source)) != names.raw(source):
        return
    raw, log = lake.find(names.raw(source)), lake.find(names.change_log(source))
    found = marker(log, _FOUND)
    if raw is None or log is None or found is None or found == marker(raw, _SCRUBBED):
        return
    rows = log.scan(row_filter=equals("kind", RowKind.ERASED.value), selected_fields=("file", "place")).to_arrow()
    places = set(zip(rows.column("file").to_pylist(), rows.column("place").to_pylist(), strict=True))
    edit, batches = messages_edit(places), [int(batch) for batch in found.split(" ")[1:]]
    if batches:  # the partitions of ``raw``: nothing else tells which of its files have a message
        edit = replace(edit, where=And(edit.where, among("batch", batches)))
    file_edits.apply(lake, raw, RAW, edit)
    purging.purge(raw)
    quarantine = lake.find(names.quarantine(source))
    if quarantine is not None:
        purging.purge(quarantine)
    commit_files(raw, [], summary={**file_edits.markers(raw), MARKER + _SCRUBBED: found})


def at(rows: pa.RecordBatch, places: Places) -> pa.Array:
    """Return which rows of ``raw``, quarantine or change log are of messages at some places."""
    likely = pc.is_in(rows.column("place"), pa.array({place for _, place in places}, pa.int64()))
    if not pc.any(likely).as_py():
        return likely
    pairs = zip(rows.column("file").to_pylist(), rows.column("place").to_pylist(), strict=True)
    return pa.array([pair in places for pair in pairs], pa.bool_())


def _checksums(rows: pa.RecordBatch) -> pa.Array:
    return pc.fill_null(rows.column("checksum"), "")


def _without_bytes(rows: pa.RecordBatch) -> pa.RecordBatch:
    instead = {"value": pa.nulls(rows.num_rows, pa.binary()), "key": pa.nulls(rows.num_rows, pa.binary())}
    instead["checksum"] = pa.repeat(pa.scalar(ERASED), rows.num_rows)
    return exchanged(rows, instead)


def carried_over(
    raw: Table, changelog: Table, replaced: BooleanExpression, target: TableFolder, landed_with: Mapping[int, int]
) -> Done | None:
    """Return the rows that reprocessing keeps, as if a task had written them; None if there are none.

    Args:
        raw: the messages.
        changelog: the change log.
        replaced: selects the rows of the batches that are derived again.
        target: where rows of the change log are written.
        landed_with: from the batch of retried messages to the batch that they landed with.
    """
    bare = raw.scan(row_filter=equals("checksum", ERASED), selected_fields=("file", "place")).to_arrow()
    places = set(zip(bare.column("file").to_pylist(), bare.column("place").to_pylist(), strict=True))
    if not places:
        return None
    writer, tallies = FileWriter(target), dict[int, Tally]()
    fields = tuple(CHANGE_LOG.names)
    where = And(replaced, among("file", {file for file, _ in places}))
    for rows in changelog.scan(row_filter=where, selected_fields=fields).to_arrow_batch_reader():
        kept = rows.filter(at(rows, places))
        for one in _by_partition(kept, landed_with):
            partition = (one.column("batch")[0].as_py(), one.column("kind")[0].as_py(), one.column("object")[0].as_py())
            writer.write(partition, one)
            if partition[1] == RowKind.CHANGE:
                _count(tallies.setdefault(int(partition[0]), Tally()), one)
    return Done(files=writer.close(), tallies=tallies)


def _by_partition(rows: pa.RecordBatch, landed_with: Mapping[int, int]) -> Iterable[pa.RecordBatch]:
    found: dict[Partition, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():  # messages of erased rows are few
        row["batch"] = landed_with.get(row["batch"], row["batch"])
        found.setdefault((row["batch"], row["kind"], row["object"]), []).append(row)
    return [pa.RecordBatch.from_pylist(each, schema=CHANGE_LOG) for each in found.values()]


def _count(tally: Tally, rows: pa.RecordBatch) -> None:
    counts = dict(tally.contents)
    for row in rows.to_pylist():
        content = content_of(row)
        counts[content] = counts.get(content, 0) + 1
    tally.contents = list(counts.items())
    name = str(rows.column("object")[0].as_py())
    if name in tally.spans:
        tally.spans[name].add(spans.of_rows(rows))
    else:
        tally.spans[name] = spans.of_rows(rows)


def content_of(row: Mapping[str, Any]) -> Content:
    """Return what a change event, a row of the change log, counts as in the ledger's contents."""
    return Content(
        TableId(row["database"], row["schema"], row["name"]),
        row["operation"],
        row["shape"],
        row["partial"],
        None if row["key"] is None else tuple(row["key"]),
        row["operation"] == Operation.UPDATE and row["after"] is None,
    )
