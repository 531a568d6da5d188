"""The tasks of land on Spark's workers: hash dump files, and write their messages as rows of raw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import msgspec
import pyarrow as pa

from tidemark.dumps import containers
from tidemark.dumps.growth import Beginning, Rest
from tidemark.dumps.hashing import Hashed, ToHash, hashed
from tidemark.dumps.wrapping import Reading
from tidemark.errors import LandingError
from tidemark.lake.data_files import FileWriter, TableFolder, WrittenFile
from tidemark.lake.log_schemas import RAW
from tidemark.values.sealed_messages import SEALED, sealed_messages
from tidemark.values.sealing import Keys


class Hashes(msgspec.Struct, kw_only=True):
    """The result of one hashing task."""

    hashed: list[Hashed] = []


class Landed(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a landed dump file, or the problem why it is refused. A refused file adds no rows."""

    path: str
    messages: int = 0
    container: str = ""
    unended: bool = False
    """Whether its last message has no end, so that it may be cut."""
    problem: str | None = None


class Dump(msgspec.Struct, frozen=True, kw_only=True):
    """One dump file, with its checksum from ``hash_dumps``."""

    path: str
    interval: int
    """Epoch µs; 0 for none."""
    checksum: str
    size: int | None = None
    """Bytes that the checksum is of, if the file may go on behind them."""
    landed: Beginning | None = None
    """What was landed of the file before it grew."""


class Landing(msgspec.Struct, kw_only=True):
    """The result of one landing task."""

    files: list[WrittenFile] = []
    """The files that were written for ``raw``."""
    landed: list[Landed] = []


def hash_dumps(task: bytes) -> bytes:
    """Return the checksums (``Hashes``) of the stored bytes of dump files (``list[ToHash]``)."""
    return msgspec.json.encode(Hashes(hashed=[hashed(file) for file in msgspec.json.decode(task, type=list[ToHash])]))


def land(
    task: bytes, *, batch: int, landed_at: int, target: TableFolder, reading: Reading, keys: Keys | None = None
) -> bytes:
    """Write the messages of dump files (``list[list[Dump]]``) as rows of ``raw``, and return the ``Landing``.

    With ``keys``, the messages are encrypted.

    Each inner list has files with the same content. Its first sound file lands: the name may decide how a file is read,
    so one of them may be sound where another is not.
    """
    shared = FileWriter(target)
    done = Landing()
    for same in msgspec.json.decode(task, type=list[list[Dump]]):
        for dump in same:
            own = FileWriter(target)
            landed = _landed(dump, partial(_write, own, batch, landed_at, dump, keys), reading)
            done.landed.append(landed)
            if landed.problem is None:
                done.files += own.hand_over(shared)
                break
            own.discard()
    done.files += shared.close()
    return msgspec.json.encode(done)


def _write(
    writer: FileWriter, batch: int, landed_at: int, dump: Dump, keys: Keys | None, messages: pa.RecordBatch
) -> None:
    """Write messages of a dump file."""
    values = {
        "batch": batch,
        "interval_start": dump.interval or None,
        "file": dump.path,
        "checksum": dump.checksum,
        "landed_at": landed_at,
        SEALED: None,
    }
    constants = {name: pa.scalar(value, RAW.field(name).type) for name, value in values.items()}
    rows = _as_raw(messages, constants)
    writer.write((batch,), rows if keys is None else sealed_messages(rows, keys))


def _landed(dump: Dump, write: Callable[[pa.RecordBatch], None], reading: Reading) -> Landed:
    inspect = partial(containers.inspect, limit=reading.limit, wrapping=reading.wrapping)
    try:
        rest = Rest(dump.path, dump.landed, write, inspect) if dump.landed else None
        found = inspect(dump.path, rest or write, sha256=dump.checksum, size=dump.size)
        if rest is not None:
            rest.check(found)
    except LandingError as error:
        return Landed(path=dump.path, problem=str(error))
    before = dump.landed.messages if dump.landed else 0
    return Landed(
        path=dump.path,
        messages=found.messages - before,
        container=found.container,
        unended=found.unended and found.messages > 0,
    )


def _as_raw(messages: pa.RecordBatch, constants: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
    arrays = [
        pa.repeat(constants[name], len(messages)) if name in constants else messages.column(name) for name in RAW.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=RAW)
