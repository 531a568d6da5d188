"""Dump files: messages, how the ledger counts them, and the containers in which they are written."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

_FILES_A_DAY = 4

SENT_AGAIN = 30
"""Number of row events that are sent again."""


class MessageKind(StrEnum):
    """How the ledger counts a message."""

    ROWS = "rows"
    DDL = "ddl"
    CONTROL = "control"
    BROKEN = "broken"
    UNKNOWN_OPERATION = "unknown_operation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One message of a dump."""

    kind: MessageKind
    day: date
    """The interval whose folder has the message."""
    value: bytes | None
    """None for a tombstone record."""
    rows: int = 0
    """Number of row events in the message."""
    late: bool = False
    """Delivered after the run of its day."""
    duplicate: bool = False
    """Delivered before."""
    repeatable: bool = True
    """False if only the place in the dump distinguishes the message from an equal one. If such a message were sent
    again, it would be another event."""
    topic: str = ""
    partition: int = 0
    offset: int = 0
    timestamp: int = 0
    """Kafka record time, epoch ms."""
    key: bytes | None = None
    """Kafka record key."""


Container = Callable[[Sequence[Entry]], bytes]
"""Turns messages into the bytes of one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How the files of one day are written."""

    suffix: str
    container: Container
    records: bool
    """Whether messages are Kafka records. Only then does a dump have tombstones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpFile:
    """One file of a dump. Its entries are of one day, and all of them are late or none is."""

    name: str
    entries: tuple[Entry, ...]
    container: Container


def json_lines(entries: Iterable[Entry]) -> bytes:
    """Return the values, one a line."""
    return b"".join(entry.value + b"\n" for entry in entries if entry.value is not None)


def json_array(entries: Iterable[Entry]) -> bytes:
    """Return the values as one JSON array."""
    return b"[\n" + b",\n".join(entry.value for entry in entries if entry.value is not None) + b"\n]\n"


def pretty_json(entries: Iterable[Entry]) -> bytes:
    """Return the values one after another, each indented over several lines."""
    return b"\n".join(msgspec.json.format(entry.value, indent=2) for entry in entries if entry.value is not None)


def record_lines(entries: Iterable[Entry]) -> bytes:
    """Return Kafka records as JSON, one a line. Key and value are text."""
    return b"".join(
        msgspec.json.encode(
            {
                "topic": entry.topic,
                "partition": entry.partition,
                "offset": entry.offset,
                "timestamp": entry.timestamp,
                "key": _text(entry.key),
                "value": _text(entry.value),
            }
        )
        + b"\n"
        for entry in entries
    )


def record_parquet(entries: Iterable[Entry]) -> bytes:
    """Return Kafka records as Parquet. Key and value are text."""
    rows = list(entries)
    table = pa.table(
        {
            "topic": pa.array([entry.topic for entry in rows], pa.string()),
            "partition": pa.array([entry.partition for entry in rows], pa.int32()),
            "offset": pa.array([entry.offset for entry in rows], pa.int64()),
            "timestamp": pa.array([entry.timestamp for entry in rows], pa.int64()),
            "key": pa.array([_text(entry.key) for entry in rows], pa.string()),
            "value": pa.array([_text(entry.value) for entry in rows], pa.string()),
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def binary_lines(entries: Iterable[Entry]) -> bytes:
    """Return Kafka records as JSON, one a line. Values are Base64."""
    return record_lines(
        replace(entry, value=None if entry.value is None else base64.b64encode(entry.value)) for entry in entries
    )


def binary_parquet(entries: Iterable[Entry]) -> bytes:
    """Return Kafka records as Parquet. Values are bytes."""
    rows = list(entries)
    table = pq.read_table(io.BytesIO(record_parquet(replace(entry, value=None) for entry in rows)))
    values = pa.array([entry.value for entry in rows], pa.binary())
    buffer = io.BytesIO()
    pq.write_table(table.set_column(table.schema.get_field_index("value"), "value", values), buffer)
    return buffer.getvalue()


def gz(container: Container) -> Container:
    """Return a container that is compressed by gzip, without a time in its header."""
    return lambda entries: gzip.compress(container(entries), mtime=0)


def bz2_(container: Container) -> Container:
    """Return a container that is compressed by bzip2."""
    return lambda entries: bz2.compress(container(entries))


def zst(container: Container) -> Container:
    """Return a container that is compressed by Zstandard."""
    return lambda entries: zstandard.compress(container(entries))


VALUE_LINES_ZST = Packing(suffix="jsonl.zst", container=zst(json_lines), records=False)

VALUE_LINES_BZ2 = Packing(suffix="jsonl.bz2", container=bz2_(json_lines), records=False)

VALUE_ARRAY = Packing(suffix="json", container=json_array, records=False)

VALUE_LINES_GZ = Packing(suffix="jsonl.gz", container=gz(json_lines), records=False)

PRETTY_VALUES = Packing(suffix="json.gz", container=gz(pretty_json), records=False)

RECORD_LINES_ZST = Packing(suffix="jsonl.zst", container=zst(record_lines), records=True)

RECORD_LINES_GZ = Packing(suffix="json.gz", container=gz(record_lines), records=True)

RECORD_PARQUET = Packing(suffix="parquet", container=record_parquet, records=True)

BINARY_LINES_GZ = Packing(suffix="json.gz", container=gz(binary_lines), records=True)

BINARY_PARQUET = Packing(suffix="parquet", container=binary_parquet, records=True)


def files(
    entries: Sequence[Entry], packings: Iterable[Packing], mixer: random.Random, unknown: Callable[[bytes], bytes]
) -> list[DumpFile]:
    """Return the dump files of a history, with faults, and with rows that are sent again.

    Args:
        entries: The entries of the whole history, in order.
        packings: One for each day.
        mixer: Mixes the messages of a day over its files.
        unknown: Returns a message with an operation that its format does not have.
    """
    return spread(numbered(sent_again(with_faults(entries, unknown))), packings, mixer)


def spread(records: Sequence[Entry], packings: Iterable[Packing], mixer: random.Random) -> list[DumpFile]:
    """Return the messages of each day, mixed and spread over files. Their order is in their positions."""
    result: list[DumpFile] = []
    for day, packing in zip(sorted({record.day for record in records}), packings, strict=True):
        mine = [record for record in records if record.day == day and (packing.records or record.value is not None)]
        late = tuple(record for record in mine if record.late)
        mine = [record for record in mine if not record.late]
        mixer.shuffle(mine)
        parts = {f"part-{number:05d}": tuple(mine[number::_FILES_A_DAY]) for number in range(_FILES_A_DAY)}
        for name, part in {**parts, "part-late": late}.items():
            if part:
                result.append(DumpFile(name=f"{name}.{packing.suffix}", entries=part, container=packing.container))
    return result


def sent_again(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries with the last row events of day 2 again on day 3, as after a restart of the connector."""
    _, second, third, *_ = sorted({entry.day for entry in entries})
    rows = [entry for entry in entries if entry.day == second and entry.kind is MessageKind.ROWS and entry.repeatable]
    again = [replace(entry, day=third, duplicate=True) for entry in rows[-SENT_AGAIN:]]
    place = next(place for place, entry in enumerate(entries) if entry.day == third)
    return [*entries[:place], *again, *entries[place:]]


def numbered(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries, each with the next offset of its topic and partition, from 0."""
    ends: dict[tuple[str, int], int] = {}
    result = []
    for entry in entries:
        log = entry.topic, entry.partition
        ends[log] = ends.get(log, -1) + 1
        result.append(replace(entry, offset=ends[log]))
    return result


def with_faults(entries: Sequence[Entry], unknown: Callable[[bytes], bytes]) -> list[Entry]:
    """Return the entries with a broken message and an unknown operation among the messages of the second day.

    Args:
        entries: The entries of the whole history, in order.
        unknown: Returns a message with an operation that its format does not have.
    """
    day = sorted({entry.day for entry in entries})[1]
    places = [
        (place, entry.value)
        for place, entry in enumerate(entries)
        if entry.kind is MessageKind.ROWS and entry.day == day and not entry.late and entry.value is not None
    ]
    place, value = places[len(places) // 3]
    twin = replace(entries[place], rows=0)
    broken = replace(twin, kind=MessageKind.BROKEN, value=value[: len(value) // 2])
    strange = replace(twin, kind=MessageKind.UNKNOWN_OPERATION, value=unknown(value))
    return [*entries[:place], broken, strange, *entries[place:]]


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode()
