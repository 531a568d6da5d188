"""What runs on Spark's Python workers, and in the process of a small run: light to import.

A task takes files and gives back one row: what it wrote and counted. The rows themselves go to Parquet where they are
made (``data_files``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.events import Message
from tidemark.formats import Known, informed, resolve
from tidemark.lake.data_files import Partition, Target, Writer, WrittenFile
from tidemark.ledger.tally import Tally
from tidemark.normalization.decoder import Decoder
from tidemark.normalization.decoding import decode_message, metadata_of
from tidemark.normalization.transaction_tracker import READ, Told, Tracker
from tidemark.values.declared_types import DeclaredEncodings


class Done(msgspec.Struct, kw_only=True):
    """What one task wrote and counted."""

    files: list[WrittenFile] = []
    """Of the change log."""
    set_aside: list[WrittenFile] = []
    """Of quarantine."""
    tallies: dict[int, Tally] = {}
    """By batch, what became of its messages."""
    metadata: list[tuple[str, bytes]] = []
    """Id and content of what metadata messages told, distinct."""
    transactions: Told | None = None


class RawPart(msgspec.Struct, frozen=True, kw_only=True):
    """Some row groups of one data file of ``raw``."""

    path: str
    """In the file system of its table."""
    batch: int
    first: int
    """Row groups ``[first, last)``."""
    last: int


def collect(task: bytes, *, format_name: str, options: Mapping[str, Any], raw: Target) -> bytes:
    """Look through parts of ``raw`` (``list[RawPart]``) for metadata messages; what they told (``Done``)."""
    module = informed(resolve(format_name))
    told: dict[tuple[str, bytes], None] = {}
    if module is not None:
        checked = module.Options.model_validate(dict(options))
        for part in msgspec.json.decode(task, type=list[RawPart]):
            for batch in _batches(part, raw, columns=["value"]):
                messages = (Message(value=value, file="", place=0) for value in batch.column("value").to_pylist())
                told |= dict.fromkeys(metadata_of(module, messages, checked))
    return msgspec.json.encode(Done(metadata=list(told)))


def normalize(
    task: bytes,
    *,
    format_name: str,
    options: Mapping[str, Any],
    known: Known | None,
    raw: Target,
    log: Target,
    quarantine: Target,
    marked: bool = False,
    unsettled: frozenset[str] = frozenset(),
    batches: Mapping[int, int] = MappingProxyType({}),
    declared: Mapping[str, DeclaredEncodings] = MappingProxyType({}),
) -> bytes:
    """Decode the messages of parts of ``raw`` (``list[RawPart]``); what was written and counted (``Done``).

    ``marked`` tells whether the source is known to send markers of transactions, ``unsettled`` are those of which all
    is to be told. ``batches`` tells the batches that the events belong to, where these are not those that the messages
    landed with. ``declared`` is ``Source.written``.
    """
    module = resolve(format_name)
    decode = partial(decode_message, module, options=module.Options.model_validate(dict(options)), known=known)
    writer, set_aside = Writer(log), Writer(quarantine)
    decoders: dict[int, Decoder] = {}
    tracker = Tracker(marked=marked, keep=unsettled)
    for part in msgspec.json.decode(task, type=list[RawPart]):
        decoder = decoders.get(part.batch)
        if decoder is None:
            batch = batches.get(part.batch, part.batch)
            put_aside = partial(_put_aside, set_aside, part.batch)
            decoder = decoders[part.batch] = Decoder(batch, decode, writer.write, put_aside, tracker, declared)
        for messages in _batches(part, raw):
            decoder.add(messages)
    tallies = {batches.get(batch, batch): decoder.close() for batch, decoder in decoders.items()}
    return msgspec.json.encode(
        Done(files=writer.close(), set_aside=set_aside.close(), tallies=tallies, transactions=tracker.close())
    )


class LogPart(msgspec.Struct, frozen=True, kw_only=True):
    """One data file of the change log, of one table or of control events."""

    path: str
    """In the file system of the change log."""
    batch: int
    table: str | None
    """As source files name it; None for control events."""


def look(task: bytes, *, only: frozenset[str] | None, log: Target) -> bytes:
    """Look through files of the change log (``list[LogPart]``) for transactions; what they told (``Done``).

    ``only`` are the ids to look for, None for all, of a source that marks its transactions.
    """
    tracker = Tracker(marked=True, only=only)
    for part in msgspec.json.decode(task, type=list[LogPart]):
        with pq.ParquetFile(log.filesystem.open_input_file(part.path)) as file:
            for rows in file.iter_batches(_MESSAGES, columns=list(READ)):
                if part.table is None:
                    tracker.controls(part.batch, rows)
                else:
                    tracker.changes(part.batch, part.table, rows)
    return msgspec.json.encode(Done(transactions=tracker.close()))


def _put_aside(writer: Writer, batch: int, partition: Partition, rows: pa.RecordBatch) -> None:
    """A message that is set aside stays in the batch that it landed with."""
    writer.write((batch, *partition[1:]), rows)


def _batches(part: RawPart, raw: Target, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(raw.filesystem.open_input_file(part.path)) as file:
        yield from file.iter_batches(_MESSAGES, row_groups=list(range(part.first, part.last)), columns=columns)


_MESSAGES = 40_000
"""Messages that are decoded together: a row group of ``raw``, if they are of the usual size. Arrow is called for each
table in them; of 20 tables a message takes a tenth longer where 10,000 are decoded together."""
