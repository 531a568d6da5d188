"""A search for a text in every file under a folder, also in what Parquet and Avro files compress."""

from __future__ import annotations

import gzip
from pathlib import Path

import fastavro
import pyarrow.parquet as pq


def files_with(folder: Path, text: str) -> set[str]:
    """Return the files under a folder that hold a text, as paths from the folder."""
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file() and _holds(file, text)}


def _holds(file: Path, text: str) -> bool:
    content = file.read_bytes()
    if text.encode() in content:
        return True
    if content[:4] == b"PAR1":
        return text in repr(pq.read_table(file, partitioning=None).to_pylist()) or text in _metadata(file)
    if content[:4] == b"Obj\x01":
        with file.open("rb") as opened:
            return any(text in repr(record) for record in fastavro.reader(opened))
    return content[:2] == b"\x1f\x8b" and text.encode() in gzip.decompress(content)


def _metadata(file: Path) -> str:
    groups = pq.ParquetFile(file).metadata
    return repr([groups.row_group(number).to_dict() for number in range(groups.num_row_groups)])
