"""Files that begin as no dump file does, refused by name."""

from __future__ import annotations

from typing import Final

from tidemark.errors import LandingError

_FOREIGN: Final = {
    b"\x1f\x8b": "compressed twice",
    b"\x28\xb5\x2f\xfd": "compressed twice",
    b"BZh": "compressed twice",
    b"PK\x03\x04": "a zip archive",
    b"\xfd7zXZ": "xz",
    b"\x04\x22\x4d\x18": "lz4",
    b"PAR1": "compressed Parquet",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


def refuse_foreign(path: str, text: bytes) -> None:
    """Raise ``LandingError`` if a content, uncompressed, begins as a file of another kind does."""
    for magic, kind in _FOREIGN.items():
        if text.startswith(magic):
            raise LandingError(f"{path}: {kind}, which is not read; unpack or convert it to JSON lines in UTF-8")
