"""What runs on Spark's Python workers, and in the process of a small run: light to import.

A task takes files and gives back one row: what it wrote and counted. The rows themselves go to Parquet where they are
made (``data_files``).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark import containers
from tidemark.change_log import Decoder, Tally
from tidemark.compression import opened
from tidemark.data_files import Partition, Target, Writer, Written
from tidemark.declared import Written as Declared
from tidemark.decode import decode_message, metadata_of
from tidemark.errors import LandingError
from tidemark.events import Message
from tidemark.formats import Known, informed, resolve
from tidemark.rows import RAW
from tidemark.transactions import READ, Told, Tracker

Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

DONE = pa.schema([("done", pa.binary())])
"""One row a task: ``Done`` as JSON."""


class Hashed(msgspec.Struct, frozen=True, kw_only=True):
    """The SHA-256 of a dump file, or the problem for which it is refused."""

    path: str
    checksum: str = ""
    problem: str | None = None


class Landed(msgspec.Struct, frozen=True, kw_only=True):
    """What landing a dump file told, or the problem for which it is refused: nothing of it is in a file then."""

    path: str
    messages: int = 0
    container: str = ""
    problem: str | None = None


class Done(msgspec.Struct, kw_only=True):
    """What one task wrote and counted."""

    files: list[Written] = []
    """Of ``raw``, or of the change log."""
    set_aside: list[Written] = []
    """Of quarantine."""
    tallies: dict[int, Tally] = {}
    """By batch, what became of its messages."""
    metadata: list[tuple[str, bytes]] = []
    """Id and content of what metadata messages told, distinct."""
    hashed: list[Hashed] = []
    landed: list[Landed] = []
    transactions: Told | None = None


class Dump(msgspec.Struct, frozen=True, kw_only=True):
    """One dump file, with the checksum that ``hash_dumps`` told."""

    path: str
    interval: int
    """Epoch µs; 0 for none."""
    checksum: str


class RawPart(msgspec.Struct, frozen=True, kw_only=True):
    """Some row groups of one data file of ``raw``."""

    path: str
    """In the file system of its table."""
    batch: int
    first: int
    """Row groups ``[first, last)``."""
    last: int


def on_tasks(tasks: Sequence[bytes], work: Callable[[bytes], bytes]) -> Batches:
    """Batches with a column ``id`` in, batches of ``DONE`` out: ``work`` for the task of each number."""
    return partial(_on_tasks, tasks=tasks, work=work)


def _on_tasks(
    batches: Iterable[pa.RecordBatch], *, tasks: Sequence[bytes], work: Callable[[bytes], bytes]
) -> Iterator[pa.RecordBatch]:
    # Spark collects garbage after each task, and would look through all that was imported.
    gc.freeze()
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield pa.RecordBatch.from_pylist([{"done": work(tasks[number])}], schema=DONE)


def hash_dumps(task: bytes) -> bytes:
    """Tell the checksums of dump files (paths) as stored (``Done``)."""
    return msgspec.json.encode(Done(hashed=[_hashed(path) for path in msgspec.json.decode(task, type=list[str])]))


def _hashed(path: str) -> Hashed:
    try:
        with opened(path) as stored:
            return Hashed(path=path, checksum=stored.sha256())
    except LandingError as error:
        return Hashed(path=path, problem=str(error))


def land(task: bytes, *, batch: int, landed_at: int, target: Target) -> bytes:
    """Write the messages of dump files (``list[list[Dump]]``) as ``raw``; what was written and told (``Done``).

    Of files with the same content the first sound one lands: as what a file is read may hang on its name.
    """
    together = Writer(target)
    done = Done()
    for same in msgspec.json.decode(task, type=list[list[Dump]]):
        for dump in same:
            own = Writer(target)
            told = _landed(dump, own, batch, landed_at)
            done.landed.append(told)
            if told.problem is None:
                done.files += own.hand_over(together)
                break
            own.discard()
    done.files += together.close()
    return msgspec.json.encode(done)


def _landed(dump: Dump, writer: Writer, batch: int, landed_at: int) -> Landed:
    told = {
        "batch": batch,
        "interval_start": dump.interval or None,
        "file": dump.path,
        "checksum": dump.checksum,
        "landed_at": landed_at,
    }
    constants = {name: pa.scalar(value, RAW.field(name).type) for name, value in told.items()}
    try:
        found = containers.inspect(
            dump.path, lambda messages: writer.write((batch,), _as_raw(messages, constants)), sha256=dump.checksum
        )
    except LandingError as error:
        return Landed(path=dump.path, problem=str(error))
    return Landed(path=dump.path, messages=found.messages, container=found.container)


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
    declared: Mapping[str, Declared] = MappingProxyType({}),
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


def _as_raw(messages: pa.RecordBatch, constants: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
    arrays = [
        pa.repeat(constants[name], len(messages)) if name in constants else messages.column(name) for name in RAW.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=RAW)
