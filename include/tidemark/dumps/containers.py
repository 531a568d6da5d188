"""From a dump file to its messages, verbatim, in the order of the file.

A container is recognised by its content, CSV also by its name. There are:

- JSON text in one of three layouts (``json_text.TextLayout``), Parquet, and Avro object container files
  (``avro_file``). Their messages may be wrapped as Kafka records, JSON texts also as kcat writes records (``kcat``).
- Lines of Kafka's console consumer (``console_lines``).
- CSV and Parquet with rows of a DataHub topic. Each row becomes a JSON object.

To add a container, add a branch to ``_open`` and a function that yields record batches of ``MESSAGES``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.dumps import avro_file, console_lines, datahub_csv, datahub_parquet, json_lines, kafka_records, kcat
from tidemark.dumps.beyond_limit import LIMIT, MARK
from tidemark.dumps.content import DumpContent, guarded
from tidemark.dumps.json_lines import Group
from tidemark.dumps.json_text import TextLayout, Values, layout_of
from tidemark.dumps.other_kinds import refuse_other_kinds
from tidemark.dumps.stored_file import READ_STEP, StoredFile, expand, opened, reading
from tidemark.dumps.wrapping import Wrapping
from tidemark.errors import LandingError

MESSAGES: Final = kafka_records.MESSAGES
"""Columns of every batch; see ``kafka_records.MESSAGES``."""

PARQUET: Final = "parquet"

CSV: Final = "csv"

AVRO: Final = "avro"

CONSOLE: Final = "console"

_BATCH_MESSAGES: Final = 10_000

_BATCH_BYTES: Final = READ_STEP

_BEGINNING: Final = 1 << 20
"""Bytes at the beginning of a text that decide its layout."""

_MARK: Final = b"\xef\xbb\xbf"
"""UTF-8 byte-order mark. It belongs to the file, not to the first message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What was found in a dump file by reading all of it."""

    sha256: str
    """SHA-256 of the stored bytes, hexadecimal."""
    size: int
    """Number of stored bytes."""
    messages: int
    container: str
    """``json_lines``, ``json_array``, ``json_values``, ``csv``, ``console``, ``parquet`` or ``avro``."""
    kafka: bool
    """Whether the messages are wrapped as Kafka records."""
    unended: bool = False
    """Whether the last message has no end, so that it may be cut."""


def inspect(
    path: str,
    take: Callable[[pa.RecordBatch], None] | None = None,
    *,
    sha256: str | None = None,
    size: int | None = None,
    limit: int = LIMIT,
    wrapping: Wrapping | None = None,
) -> Inspection:
    """Read a dump file once, from start to end, and return what it holds.

    A whole line that is not JSON is a message, too. Of a message that is too long, ``beyond_limit`` says what is kept.

    Args:
        path: a local path or a URI that ``pyarrow.fs`` knows.
        take: is called with each batch of messages, as ``read`` yields them. Whether the file is sound is known only at
            its end.
        sha256: the checksum that the file must have; None for any.
        size: read the file as it was when it had this number of bytes; None: all of it.
        limit: most bytes of one message.
        wrapping: what the messages of a text are wrapped in; None: its beginning decides.

    Raises:
        LandingError: the file is cut, damaged, still being written, no regular file, or in an unknown container. Or it
            is beyond a limit (64 GiB expanded, 200 times expanded after 64 MiB), or has another checksum. Or nothing
            shows where a message that is too long ends.
    """
    with opened(path, limit=limit, size=size) as stored:
        content = _open(stored, _BATCH_MESSAGES, _BATCH_BYTES, wrapping)
        messages = 0
        for batch in content.batches:
            messages += batch.num_rows
            if take is not None:
                take(batch)
        found = stored.sha256()
        if sha256 not in {None, found}:
            raise LandingError(f"{path}: another file than before (SHA-256 {sha256}); land it again when it rests")
        return Inspection(
            sha256=found,
            size=stored.size,
            messages=messages,
            container=content.container,
            kafka=content.kafka,
            unended=stored.unended,
        )


def read(
    path: str, *, batch_messages: int = _BATCH_MESSAGES, batch_bytes: int = _BATCH_BYTES, limit: int = LIMIT
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a dump file in its order, as batches of ``MESSAGES``.

    Args:
        path: a local path or a URI that ``pyarrow.fs`` knows.
        batch_messages: most rows of a batch.
        batch_bytes: bytes of a batch. A batch may exceed them by one message.
        limit: most bytes of one message.

    Raises:
        LandingError: as for ``inspect``. Batches from before the fault may have been yielded by then.
    """
    with opened(path, limit=limit) as stored:
        yield from _open(stored, batch_messages, min(batch_bytes, _BATCH_BYTES)).batches


@contextmanager
def opened_content(path: str) -> Iterator[DumpContent]:
    """Open a dump file, to read as many of its messages as are wanted.

    Raises:
        LandingError: as for ``inspect``; iterating the batches raises it, too.
    """
    with opened(path) as stored:
        yield _open(stored, _BATCH_MESSAGES, _BATCH_BYTES)


@guarded
def _open(stored: StoredFile, batch_messages: int, batch_bytes: int, wrapping: Wrapping | None = None) -> DumpContent:
    if stored.head().startswith(b"PAR1"):
        return _open_parquet(stored, batch_messages, batch_bytes)
    if stored.path.lower().endswith(".parquet"):
        raise LandingError(f"{stored.path}: named .parquet but does not begin as Parquet; fetch the file again")
    return _open_text(stored, batch_messages, batch_bytes, wrapping)


def _open_parquet(stored: StoredFile, batch_messages: int, batch_bytes: int) -> DumpContent:
    if stored.goes_on:
        raise LandingError(f"{stored.path}: Parquet cannot grow, as its last bytes describe it; deliver another file")
    stored.sha256()
    with reading(stored.path):
        source = stored.random_access()
        metadata = pq.read_metadata(source)
        rows = datahub_parquet.are_rows(metadata.schema.to_arrow_schema())
    limits = {"batch_messages": batch_messages, "batch_bytes": batch_bytes}
    batches: Iterator[pa.RecordBatch]
    if rows:
        batches = itertools.starmap(_plain_batch, datahub_parquet.groups(stored, source, metadata, **limits))
    else:
        batches = kafka_records.parquet_batches(stored, source, metadata, **limits)
    wrapping = Wrapping.PLAIN if rows else Wrapping.KAFKA
    return DumpContent(container=PARQUET, wrapping=wrapping, batches=stored.while_unchanged(batches))


def _open_text(stored: StoredFile, batch_messages: int, batch_bytes: int, wrapping: Wrapping | None) -> DumpContent:
    chunks = expand(stored, batch_bytes)
    text, whole = _beginning(chunks, stored.limit)
    if text.startswith(avro_file.MAGIC) or stored.path.lower().endswith(".avro"):
        return _open_avro(stored, text, chunks, batch_messages, batch_bytes)
    refuse_other_kinds(stored.path, text)
    text = text.removeprefix(_MARK)
    chunks = itertools.chain((text,), chunks)
    if wrapping is None and datahub_csv.is_csv(stored.path, text):
        rows = datahub_csv.groups(chunks, stored, batch_bytes)
        batches = itertools.starmap(_plain_batch, _split(rows, batch_messages))
        return DumpContent(container=CSV, wrapping=Wrapping.PLAIN, batches=batches)
    if wrapping is Wrapping.CONSOLE or (wrapping is None and console_lines.are_records(text, whole=whole)):
        groups = json_lines.groups(chunks, stored.path, stored.limit, console_lines.is_whole)
        container, wrapping = CONSOLE, Wrapping.CONSOLE
    else:
        layout = layout_of(text, whole=whole)
        container, groups = layout.value, _groups(layout, chunks, stored, batch_bytes)
    first = list(_until_a_whole_message(groups))
    wrapping = wrapping or _wrapping([value for _, values in first for value in values])
    parts = _split(itertools.chain(first, groups), batch_messages)
    return DumpContent(container=container, wrapping=wrapping, batches=itertools.starmap(_TO_BATCH[wrapping], parts))


def _wrapping(values: Sequence[bytes]) -> Wrapping:
    """Return what the messages of a JSON text are wrapped in, judged by the first ones.

    One Kafka record among them is proof. The only cost of an error is one message that looks like a record by chance. A
    broken record among others changes nothing.
    """
    if any(map(kafka_records.is_record, values)):
        return Wrapping.KAFKA
    return Wrapping.KCAT if kcat.are_records(values) else Wrapping.PLAIN


def _until_a_whole_message(groups: Iterator[Group]) -> Iterator[Group]:
    """Yield groups up to the first one with a message that is not too long; not more than a few."""
    for places, values in itertools.islice(groups, _FIRST_GROUPS):
        yield places, values
        if not all(value.startswith(MARK) for value in values):
            return


_FIRST_GROUPS: Final = 64


def _open_avro(
    stored: StoredFile, text: bytes, chunks: Iterator[bytes], batch_messages: int, batch_bytes: int
) -> DumpContent:
    if not text.startswith(avro_file.MAGIC):
        raise LandingError(f"{stored.path}: named .avro but does not begin as Avro; fetch the file again, or rename it")
    whole = itertools.chain((text,), chunks)
    found = avro_file.opened(stored, whole, batch_messages=batch_messages, batch_bytes=batch_bytes)
    wrapping = Wrapping.KAFKA if found.kafka else Wrapping.PLAIN
    return DumpContent(container=AVRO, wrapping=wrapping, batches=found.batches)


def _beginning(chunks: Iterator[bytes], limit: int) -> tuple[bytes, bool]:
    """Return the beginning of a text, with the whole first line that is not blank, and whether the text ends there."""
    text = bytearray()
    for chunk in chunks:
        text += chunk
        enough = len(text) >= _BEGINNING and b"\n" in text.lstrip()
        if enough or len(text) > limit:
            return bytes(text), False
    return bytes(text), True


def _groups(layout: TextLayout, chunks: Iterator[bytes], stored: StoredFile, batch_bytes: int) -> Iterator[Group]:
    if layout is TextLayout.LINES:
        return json_lines.groups(chunks, stored.path, stored.limit)
    values = Values(chunks, stored.path, limit=stored.limit)
    return _numbered(values.elements() if layout is TextLayout.ARRAY else values.each(), batch_bytes)


def _numbered(values: Iterator[bytes], batch_bytes: int) -> Iterator[Group]:
    group: list[bytes] = []
    start, size = 1, 0
    for value in values:
        group.append(value)
        size += len(value)
        if size >= batch_bytes:
            yield range(start, start + len(group)), group
            start, size, group = start + len(group), 0, []
    if group:
        yield range(start, start + len(group)), group


def _split(groups: Iterator[Group], batch_messages: int) -> Iterator[Group]:
    for places, values in groups:
        for start in range(0, len(values), batch_messages):
            stop = start + batch_messages
            yield places[start:stop], values[start:stop]


def _plain_batch(places: Sequence[int], values: list[bytes]) -> pa.RecordBatch:
    count = len(values)
    columns = {"place": pa.array(places, pa.int64()), "value": pa.array(values, pa.binary())}
    return pa.RecordBatch.from_arrays(
        [columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in MESSAGES],
        schema=MESSAGES,
    )


_TO_BATCH: Final[dict[Wrapping, Callable[[Sequence[int], list[bytes]], pa.RecordBatch]]] = {
    Wrapping.PLAIN: _plain_batch,
    Wrapping.KAFKA: functools.partial(kafka_records.line_batch, unwrap=kafka_records.unwrapped),
    Wrapping.KCAT: functools.partial(kafka_records.line_batch, unwrap=kcat.unwrapped),
    Wrapping.CONSOLE: functools.partial(kafka_records.line_batch, unwrap=console_lines.unwrapped),
}
