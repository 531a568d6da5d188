"""A search for a text in every file under a folder, also in what Parquet and Avro files compress."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import fastavro
import pyarrow.parquet as pq


def files_with(folder: Path, text: str) -> set[str]:
    """Return the files under a folder that hold a text, as paths from the folder."""
    return files_with_each(folder, text)[text]


def files_with_each(folder: Path, *texts: str) -> dict[str, set[str]]:
    """Return the files under a folder by the text that they hold: each file is read once for all texts."""
    found: dict[str, set[str]] = {text: set() for text in texts}
    for file in folder.rglob("*"):
        for text in _held(file, texts) if file.is_file() else ():
            found[text].add(str(file.relative_to(folder)))
    return found


def _held(file: Path, texts: Sequence[str]) -> set[str]:
    content = file.read_bytes()
    read = b""
    if content[:4] == b"PAR1":
        read = (repr(pq.read_table(file, partitioning=None).to_pylist()) + _metadata(file)).encode()
    elif content[:4] == b"Obj\x01":
        with file.open("rb") as opened:
            read = repr(list(fastavro.reader(opened))).encode()
    elif content[:2] == b"\x1f\x8b":
        read = gzip.decompress(content)
    return {text for text in texts if text.encode() in content or text.encode() in read}


def _metadata(file: Path) -> str:
    groups = pq.ParquetFile(file).metadata
    return repr([groups.row_group(number).to_dict() for number in range(groups.num_row_groups)])
