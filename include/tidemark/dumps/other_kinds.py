"""Files of other kinds than dump files, known by their first bytes and refused by name."""

from __future__ import annotations

from typing import Final

from tidemark.errors import LandingError

_OTHER_KINDS: Final = {
    b"\x1f\x8b": "compressed twice",
    b"\x28\xb5\x2f\xfd": "compressed twice",
    b"BZh": "compressed twice",
    b"PK\x03\x04": "a zip archive",
    b"\xfd7zXZ": "xz",
    b"\x04\x22\x4d\x18": "lz4",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"PAR1": "compressed Parquet",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}

_TAR: Final = (b"ustar\0", b"ustar  \0")
"""Stands at ``_TAR_AT`` in an archive of tar: of POSIX.1, and of GNU."""

_TAR_AT: Final = 257


def refuse_other_kinds(path: str, text: bytes) -> None:
    """Raise ``LandingError`` if a content, uncompressed, begins as a file of another kind does."""
    found = next((kind for magic, kind in _OTHER_KINDS.items() if text.startswith(magic)), None)
    if text.startswith(_TAR, _TAR_AT):
        found = "a tar archive"
    if found is not None:
        raise LandingError(f"{path}: {found}, which is not read; unpack or convert it to JSON lines in UTF-8")
