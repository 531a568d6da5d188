"""CSV with a header: each row becomes a message, a JSON object from column name to text.

Grammar: RFC 4180 in UTF-8, with lines that end in LF or CRLF. An empty cell is null, and a quoted empty cell is the
empty text. A quoted cell may span lines. Rows are cut out one at a time, and one chunk of the file is in memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from tidemark.dumps.beyond_limit import MARK, TooLong, within
from tidemark.dumps.stored_file import StoredFile, check_expansion
from tidemark.errors import LandingError

SEQUENCE_COLUMNS: Final = ("_sequence_id_", "dts_record_id", "new_dts_sync_dts_record_id")
"""Rows of a DataHub TUPLE topic have one of these columns."""

_NAME: Final = re.compile(r"\.csv(?:\.(?:gz|gzip|zst|zstd|bz2))?$", re.IGNORECASE)

_HEADER: Final = re.compile(rb'(?:[^\n]*,)?"?(?:%s)"?\r?(?:,|\n|$)' % "|".join(SEQUENCE_COLUMNS).encode())

_CELL: Final = re.compile(r',("[^"]*+(?:""[^"]*+)*+"|[^",]*+)')

_Cells = list[str | None]

_encode: Final = msgspec.json.Encoder().encode


def is_csv(path: str, text: bytes) -> bool:
    """Return whether a file is CSV, by its name or by a header that has the sequence column of DataHub's rows.

    Args:
        path: of the file. CSV has ``.csv`` at the end, or before the ending of a compression.
        text: the beginning of the file, with the whole first line. JSON is never CSV, whatever the name.
    """
    start = text.lstrip()
    if not start or start[:1] in b"{[":
        return False
    return _NAME.search(path) is not None or _HEADER.match(start) is not None


def groups(chunks: Iterator[bytes], stored: StoredFile, batch_bytes: int) -> Iterator[tuple[list[int], list[bytes]]]:
    """Yield the rows as JSON objects, each with the number of its first line, in groups of about ``batch_bytes``.

    RFC 4180 allows a last row without a line end. Nothing shows whether its last cell is whole, unless a quotation mark
    closes it: ``stored.unended`` says so.

    A row that is not UTF-8 is yielded as it stands, and its decoder sets it aside with its bytes. Of a row that is too
    long, ``beyond_limit`` says what is yielded.

    Raises:
        LandingError: a row has more or fewer cells than the header, a quotation mark stands in the wrong place, or a
            row is too long and has a line end in a cell, so that its end is not certain; or the header names a column
            twice, or has one without a name. The error names the line.
    """
    rows = _rows(_noting_the_end(chunks, stored), stored.path, stored.limit)
    names = _header(next(rows, None), stored.path)
    places: list[int] = []
    values: list[bytes] = []
    size = total = 0
    for number, row in rows:
        value = within(_message(row, names, stored.path, number), stored.limit)
        places.append(number)
        values.append(value)
        size += len(value)
        if size >= batch_bytes:
            total += size
            check_expansion(stored, total)
            yield places, values
            places, values, size = [], [], 0
    if values:
        check_expansion(stored, total + size)
        yield places, values


def _message(row: bytes, names: tuple[str, ...], path: str, number: int) -> bytes:
    if row.startswith(MARK):
        return row
    try:
        text = row.decode()
    except UnicodeDecodeError:
        return row
    cells = _cells(text, path, number)
    if len(cells) != len(names):
        raise _error(path, number, f"{len(cells)} cells where the header has {len(names)}; repair the file")
    return _encode(dict(zip(names, cells, strict=True)))


def _cells(text: str, path: str, number: int) -> _Cells:
    if '"' not in text:
        return [cell or None for cell in text.split(",")]
    cells = _CELL.findall(f",{text}")
    if sum(map(len, cells)) + len(cells) != len(text) + 1:
        raise _error(path, number, "a quotation mark inside or behind a cell; put the cell in quotation marks")
    return [cell[1:-1].replace('""', '"') if cell[:1] == '"' else cell or None for cell in cells]


def _header(row: tuple[int, bytes] | None, path: str) -> tuple[str, ...]:
    number, text = row or (1, b"")
    try:
        cells = _cells(text.decode(), path, number)
    except UnicodeDecodeError as error:
        raise _error(path, number, f"the header is not UTF-8: {error}") from error
    if b"\r" in text:
        raise _error(path, number, "the header has a carriage return without a line feed; end lines with a line feed")
    names = tuple(name for name in cells if name)
    if len(names) < len(cells):
        raise _error(path, number, "the header has a column without a name; name it")
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise _error(path, number, f"the header names a column twice: {', '.join(twice)}")
    return names


def _rows(chunks: Iterator[bytes], path: str, limit: int) -> Iterator[tuple[int, bytes]]:
    """Yield each row with the number of its first line, without the line end. Blank lines are not rows."""
    parts: list[bytes] = []
    long: TooLong | None = None
    size, is_open, start, number = 0, False, 1, 1
    for piece, ends in _pieces(chunks):
        is_open ^= piece.count(b'"') % 2 == 1
        if not size:
            start = number
        size += len(piece) + 1
        parts.append(piece)
        if size > limit + 1:
            if number > start or (ends and is_open):
                raise _error(path, start, f"a row of more than {limit >> 20} MiB; {_OPEN_MARK}")
            long = long or TooLong(limit)
            for part in parts:
                long.add(part)
            parts = []
        if ends and is_open:
            parts.append(b"\n")
        elif ends:
            row = b"".join(parts).removesuffix(b"\r") if long is None else long.kept_line()
            if row and not row.isspace():
                yield start, row
            parts, size, long = [], 0, None
        number += ends
    if is_open:
        raise _error(path, start, "the file ends inside a quoted cell; fetch the file again")


_OPEN_MARK: Final = "is a quotation mark left open? If not, raise `max_message_mib` in the source file"


_ENDS: Final = (b"\n", b"\r", b'"')
"""Last bytes of a whole row."""


def _pieces(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines, in one piece or several, each with whether the line ends behind it."""
    begun = False
    """Whether a piece of a line was yielded, and its end was not."""
    for chunk in chunks:
        *whole, last = chunk.split(b"\n")
        for line in whole:
            yield line, True
        begun = bool(last) or (begun and not whole)
        if last:
            yield last, False
    if begun:
        yield b"", True


def _noting_the_end(chunks: Iterator[bytes], stored: StoredFile) -> Iterator[bytes]:
    last = b"\n"
    for chunk in chunks:
        last = chunk[-1:] or last
        yield chunk
    stored.unended = last not in _ENDS


def _error(path: str, number: int, problem: str) -> LandingError:
    return LandingError(f"{path}: line {number}: {problem}")
