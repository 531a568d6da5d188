"""Places of changes in files: where the names of files order changes, because nothing else does.

Files of one *stem* have one folder, and one name up to its last number: ``orders-0-200.json`` and
``orders-0-300.json``. A partition or a server writes files of a stem of its own, beside those of others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from urllib.parse import unquote

from tidemark.dumps.file_names import plain
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import FileRow
from tidemark.values.iso8601 import to_micros

Stem = tuple[int, str]
"""The interval of its files, 0 without one, and their path up to its last number."""

_IN_A_FILE: Final = re.compile(r"\d+\.010\.\d\d(\d+)\.~([^.]*)")
"""Begins the position of a change that its place in a file orders (``Message.order``): log, interval, file."""

_COMPRESSED: Final = re.compile(r"\.bz2$", re.IGNORECASE)
"""Ends a path in a number that is none of the file."""

_UP_TO_NUMBER: Final = re.compile(r"(.*/)?(?:(.*?)[0-9]+[^0-9]*$)?", re.DOTALL)

_ZEROS: Final = re.compile(r"(?<![0-9])0+(?=[0-9])")


def is_in_file(position: str) -> bool:
    """Return whether a position is of a change that its place in a file orders."""
    return _IN_A_FILE.match(position) is not None


def stem_at(position: str) -> Stem | None:
    """Return the stem of the file that a position is a place in; None for any other position."""
    found = _IN_A_FILE.match(position)
    return (int(found[1]), _up_to_number(plain(unquote(found[2])))) if found else None


def stems_that_landed(files: Iterable[FileRow]) -> set[Stem]:
    """Return the stems of files that landed."""
    return {(to_micros(file.interval_start) if file.interval_start else 0, _up_to_number(file.path)) for file in files}


def ends_of(spans: Iterable[SpanRow]) -> set[str]:
    """Return the lowest and the highest position of each span."""
    return {end for span in spans for end in (span.oldest or span.newest, span.newest)}


def highest_beside(before: Sequence[SpanRow], newest: str, known: Callable[[], set[Stem | None]]) -> str | None:
    """Return the highest known place of old changes of a table that new ones are compared with; None: with nothing.

    A stem that had files before is compared with itself: a partition or a server writes it beside the others. A new
    one is compared with all.

    Args:
        before: of old changes.
        newest: the highest place of new ones.
        known: returns the stems that had files before, of any table.
    """
    found, stem = ends_of(before), stem_at(newest)
    beside = {end for end in found if stem_at(end) == stem}
    return max(beside or (() if stem in known() else found), default=None)


def _up_to_number(path: str) -> str:
    """Return the folder of a path, and its name up to its last number: without one, nothing of it.

    Zeros that begin numbers are left out, because positions may have others (``FileOrder``).
    """
    found = _UP_TO_NUMBER.match(_COMPRESSED.sub("", path))
    return _ZEROS.sub("", "".join(part or "" for part in found.groups())) if found else path
