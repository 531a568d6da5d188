"""Messages that were too long when they landed are read again from their dump files, once the limit is high enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from tidemark.dumps import containers
from tidemark.dumps.beyond_limit import MARK, header_of
from tidemark.dumps.wrapping import Reading
from tidemark.errors import LandingError

log = structlog.get_logger(__name__)

_Rows = dict[int, pa.RecordBatch]
"""Place in a dump file to the message there, a batch of one row."""


def with_raised_limit(
    raw: pa.RecordBatch, reading: Reading, sizes: Mapping[str, int] = MappingProxyType({})
) -> pa.RecordBatch:
    """Return messages of ``RAW``; in place of what was kept of a message that was too long, the message itself.

    A message stays as it is if it is still too long, or if its dump file is not there any more or has other content.

    Args:
        raw: the messages.
        reading: how dump files are read now.
        sizes: by checksum, the bytes that a file had when it was landed, if it grew later.
    """
    marked = pc.fill_null(pc.starts_with(raw.column("value"), MARK), fill_value=False)
    if not pc.any(marked).as_py():
        return raw
    wanted: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for index in pc.indices_nonzero(marked).to_pylist():
        header = header_of(raw.column("value")[index].as_py())
        if header is not None and header.size <= reading.limit:
            file, checksum = raw.column("file")[index].as_py(), raw.column("checksum")[index].as_py()
            wanted[file, checksum][raw.column("place")[index].as_py()] = index
    found: _Rows = {}
    for (file, checksum), places in wanted.items():
        rows = _read(file, checksum, places, reading, sizes.get(checksum))
        found |= {places[place]: row for place, row in rows.items()}
    return _replaced(raw, found) if found else raw


def _read(file: str, checksum: str, places: Mapping[int, int], reading: Reading, size: int | None) -> _Rows:
    """Return the messages at the places of a dump file; none if the file is not the one that landed.

    ``size`` is the number of bytes that landed, if the file grew later.
    """
    rows: _Rows = {}

    def take(batch: pa.RecordBatch) -> None:
        for number, place in enumerate(batch.column("place").to_pylist()):
            if place in places:
                rows[place] = batch.slice(number, 1)

    try:
        containers.inspect(file, take, sha256=checksum, size=size, limit=reading.limit, wrapping=reading.wrapping)
    except LandingError as error:
        log.warning("not_read_again", file=file, messages=len(places), problem=str(error))
        return {}
    return rows


def _replaced(raw: pa.RecordBatch, found: _Rows) -> pa.RecordBatch:
    parts: list[pa.RecordBatch] = []
    start = 0
    for index in sorted(found):
        read, own = found[index], raw.slice(index, 1)
        arrays = [
            read.column(name) if name in read.schema.names and name != "place" else own.column(name)
            for name in raw.schema.names
        ]
        parts += [raw.slice(start, index - start), pa.RecordBatch.from_arrays(arrays, schema=raw.schema)]
        start = index + 1
    parts.append(raw.slice(start))
    return pa.concat_batches(parts)
