"""The tasks that derive events from messages. This module is light to import.

Tasks run on Spark's Python workers, or in the process of a small run. A task takes parts of files, and returns one JSON
object (``Done``): what it wrote and counted. It writes its rows to Parquet files itself (``lake.data_files``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from types import MappingProxyType
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.dumps.file_names import FileOrder
from tidemark.dumps.wrapping import Reading
from tidemark.errors import ConfigurationError
from tidemark.events import Message
from tidemark.formats import Known, informed, resolve, traits_of
from tidemark.lake.data_files import FileWriter, Partition, TableFolder, WrittenFile
from tidemark.lake.log_schemas import RowKind
from tidemark.ledger.completeness import LandedTables
from tidemark.ledger.tally import Tally
from tidemark.normalization.arrow_rows import messages_of, unerased, with_file_order
from tidemark.normalization.decoder import Decoder, Recognise
from tidemark.normalization.decoding import decode_message, metadata_of
from tidemark.normalization.erased_keys import Decode, ErasedKeys, Noting
from tidemark.normalization.file_times import FileTimes, TimesNoted
from tidemark.normalization.members_seen import MembersSeen, UnknownMember
from tidemark.normalization.new_logs import NewLogs, ranked
from tidemark.normalization.parts import MESSAGES, RawPart, messages_in, parted
from tidemark.normalization.protection import Protection
from tidemark.normalization.raised_limits import with_raised_limit
from tidemark.normalization.spans import logs_of
from tidemark.normalization.transaction_tracker import READ, READ_OF_CONTROLS, Tracker, TransactionsSeen
from tidemark.values.declared_types import DeclaredEncodings
from tidemark.values.sealed_messages import SEALED
from tidemark.values.sealing import Keys


class Done(msgspec.Struct, kw_only=True):
    """What one task wrote and counted."""

    files: list[WrittenFile] = []
    """Data files of the change log."""
    set_aside: list[WrittenFile] = []
    """Data files of the quarantine."""
    tallies: dict[int, Tally] = {}
    """What became of the messages of each batch, by batch."""
    metadata: list[tuple[str, bytes]] = []
    """Id and content of each distinct metadata message."""
    transactions: TransactionsSeen | None = None
    file_times: list[FileTimes] = []
    """Of events that only their file orders."""
    erased: list[tuple[str, int, int]] = []
    """File, place and number in its message of each event whose row was erased."""
    newest_erased: int | None = None
    """The newest commit time of such an event (epoch µs), where it was searched for."""
    unknown_members: list[UnknownMember] = []
    """Members of messages that the format does not know."""
    problem: str | None = None
    """Why the messages cannot be read: a key is missing. Nothing is to be committed then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How the messages of a source are decoded."""

    format_name: str
    options: Mapping[str, Any]
    """Of the format, as the source file writes them."""
    known: Known | None = None
    """The metadata of the run; None if the format needs no metadata messages."""
    reading: Reading = field(default_factory=Reading)
    """How dump files are read now. A message that was too long when it landed is read again from its file."""
    declared: Mapping[str, DeclaredEncodings] = field(default_factory=dict)
    """By table or pattern, the types and encodings that the source file declares (``Source.written``)."""
    new_logs: NewLogs = field(default_factory=NewLogs)
    """When positions begin anew, as the source file says."""
    file_order: FileOrder = field(default_factory=FileOrder)
    """The order of the files of the source, for formats whose events nothing else orders."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Checksum to bytes of files that grew later: what they had when they were landed with that checksum."""
    erased: ErasedKeys | None = None
    """The keys whose rows were erased; None if there are none."""
    keys: Keys | None = None
    """The keys that decrypt messages; None if the source file names none."""
    protection: Protection | None = None
    """Masks and encryption of what is written; None unless the source file says ``mask_at: landing``."""

    def decode(self) -> Decode:
        """Return the decoder of messages."""
        module = resolve(self.format_name)
        options = module.Options.model_validate(dict(self.options))
        decode: Decode = partial(decode_message, module, options=options, known=self.known)
        return ranked(decode, self.new_logs) if self.new_logs else decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Where the rows of events and of quarantined messages are written."""

    log: TableFolder
    quarantine: TableFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTransactions:
    """What earlier runs found out about the transactions of a source."""

    marked: bool = False
    """Whether the source is known to send markers of transactions."""
    unsettled: frozenset[str] = frozenset()
    """Ids of open and undone transactions. Whatever a task sees of them, it reports."""
    landed: LandedTables = field(default_factory=LandedTables)


def telling(work: Callable[..., bytes]) -> Callable[..., bytes]:
    """Return a task that reports a missing key to the driver: of an error on a worker, Spark keeps only the text."""

    @wraps(work)
    def task(*args: Any, **named: Any) -> bytes:  # noqa: ANN401  those of the task
        try:
            return work(*args, **named)
        except ConfigurationError as error:
            return msgspec.json.encode(Done(problem=str(error)))

    return task


@telling
def collect(
    task: bytes, *, format_name: str, options: Mapping[str, Any], raw: TableFolder, keys: Keys | None = None
) -> bytes:
    """Return the metadata messages in parts of ``raw`` (``list[RawPart]``), as ``Done``."""
    module = informed(resolve(format_name))
    found: dict[tuple[str, bytes], None] = {}
    if module is not None:
        checked = module.Options.model_validate(dict(options))
        for part in msgspec.json.decode(task, type=list[RawPart]):
            for batch in messages_in(part, raw, keys, columns=["value", SEALED]):
                messages = (Message(value=value, file="", place=0) for value in batch.column("value").to_pylist())
                found |= dict.fromkeys(metadata_of(module, messages, checked))
    return msgspec.json.encode(Done(metadata=list(found)))


@telling
def normalize(
    task: bytes,
    *,
    decoding: Decoding,
    raw: TableFolder,
    outputs: Outputs,
    transactions: KnownTransactions,
    batches: Mapping[int, int] = MappingProxyType({}),
) -> bytes:
    """Decode the messages in parts of ``raw``, write their rows, and return what was written and counted.

    Args:
        task: the parts (``list[RawPart]``, JSON), of ``raw`` or of the quarantine.
        decoding: how the messages are decoded.
        raw: the place that the parts are read from.
        outputs: where rows are written.
        transactions: what is known of the source's transactions.
        batches: from the batch that messages landed with to the batch of their events, if that is another one.

    Returns:
        A ``Done`` as JSON.
    """
    noting = None if decoding.erased is None else Noting(decoding.erased, decoding.decode())
    decode: Recognise = noting or decoding.decode()
    protection = decoding.protection
    if protection is not None:  # behind the recognition of erased keys, which are plain
        decode = protection.masking.over(decode)
    writer, set_aside = FileWriter(outputs.log), FileWriter(outputs.quarantine)
    decoders: dict[int, Decoder] = {}
    tracker = Tracker(marked=transactions.marked, keep=transactions.unsettled, landed=transactions.landed)
    times = TimesNoted()
    members = MembersSeen(decoding.format_name)

    def write(partition: Partition, rows: pa.RecordBatch) -> None:
        writer.write(partition, rows if protection is None else protection.sealed_log(partition, rows))
        if partition[1] == RowKind.CHANGE:
            times.add(str(partition[2]), rows)

    for part in msgspec.json.decode(task, type=list[RawPart]):
        batch = batches.get(part.batch, part.batch)
        if part.batch not in decoders:
            put_aside = partial(_put_aside, set_aside, part.batch, protection)
            decoders[part.batch] = Decoder(batch, decode, write, put_aside, tracker, decoding.declared)
        for messages in messages_in(part, raw, decoding.keys):
            members.add(batch, _feed(decoders[part.batch], messages, decoding))
    tallies = {batches.get(batch, batch): decoder.close() for batch, decoder in decoders.items()}
    if protection is not None:
        tallies = {batch: protection.sealed_tally(tally) for batch, tally in tallies.items()}
    return msgspec.json.encode(
        Done(
            files=writer.close(),
            set_aside=set_aside.close(),
            tallies=tallies,
            transactions=tracker.close(),
            file_times=times.close(),
            erased=noting.places if noting else [],
            unknown_members=members.close(),
        )
    )


def _feed(decoder: Decoder, messages: pa.RecordBatch, decoding: Decoding) -> pa.RecordBatch:
    """Let a decoder take messages; return those that are not erased, and that it can read."""
    messages, bare = parted(messages)
    if bare.num_rows:
        decoder.leave(bare)
    if traits_of(decoding.format_name).orders_by_dump:
        decoder.add_logs(logs_of(messages))
    decoder.offsets.add(messages)
    kept = unerased(messages)
    decoder.add_erased(messages.num_rows - kept.num_rows)
    whole = with_raised_limit(kept, decoding.reading, decoding.sizes)
    decoder.add(with_file_order(whole, decoding.file_order))
    return kept


@telling
def search(task: bytes, *, decoding: Decoding, raw: TableFolder) -> bytes:
    """Return the places of events of erased rows in parts of ``raw`` or of the quarantine, as ``Done``."""
    if decoding.erased is None:
        raise ValueError("a search for erased rows needs their keys")
    noting = Noting(decoding.erased, decoding.decode())
    for part in msgspec.json.decode(task, type=list[RawPart]):
        for messages in messages_in(part, raw, decoding.keys):
            whole = with_file_order(unerased(messages), decoding.file_order)
            for message in messages_of(whole):
                noting(message)
    return msgspec.json.encode(Done(erased=noting.places, newest_erased=noting.newest))


class LogPart(msgspec.Struct, frozen=True, kw_only=True):
    """One data file of the change log, of one table or of control events."""

    path: str
    """In the file system of the change log."""
    batch: int
    table: str | None
    """The table as source files name it; None for control events."""
    erased: bool = False
    """Whether it has what erasures left of events."""


def look(task: bytes, *, log: TableFolder, begin: Callable[[], Tracker]) -> bytes:
    """Return what files of the change log (``list[LogPart]``) show of transactions to a new tracker, as ``Done``."""
    tracker = begin()
    for part in msgspec.json.decode(task, type=list[LogPart]):
        columns = READ_OF_CONTROLS if part.table is None else READ
        with pq.ParquetFile(log.filesystem.open_input_file(part.path)) as file:
            for rows in file.iter_batches(MESSAGES, columns=list(columns)):
                _track(part, rows, tracker)
    return msgspec.json.encode(Done(transactions=tracker.close()))


def _track(part: LogPart, rows: pa.RecordBatch, tracker: Tracker) -> None:
    if part.table is None:
        tracker.controls(part.batch, rows)
    else:
        tracker.changes(part.batch, part.table, rows, erased=part.erased)


def _put_aside(
    writer: FileWriter, batch: int, protection: Protection | None, partition: Partition, rows: pa.RecordBatch
) -> None:
    """Write quarantined messages, which stay in the batch that they landed with."""
    writer.write((batch, *partition[1:]), rows if protection is None else protection.set_aside(rows))
