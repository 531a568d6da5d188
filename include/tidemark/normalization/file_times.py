"""Files whose names and whose events' times disagree on the order.

It matters where the order of files decides which event is newer. A task notes the first and last commit time of the
events that each file has of each table (``FileTimes``). They are compared file by file once all tasks are done
(``disorders``). A file whose events are all older than all events of a file before it stands in the wrong place, or its
events are late.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

_MOST: Final = 10_000
"""Files and tables that a task notes. Beyond, it notes nothing."""

_BY_FILE: Final = re.compile(r"(?:\d+\.)?011\.010\.\d+\.~[^.]*%2F")
"""Begins the position of a change that nothing but the place in a file orders (``Message.order``)."""

_SHARE: Final = 0.1
"""Part of the events of a table in one run that must stand in such files ..."""

_MANY: Final = 10
"""... or their number."""


class FileTimes(msgspec.Struct):
    """The times of the events of one table in one file."""

    table: str
    file: str
    first: int
    """Commit time, epoch µs."""
    last: int
    events: int


class Disorder(msgspec.Struct, frozen=True, kw_only=True):
    """Events of one table in files that come behind files with newer events only."""

    table: str
    events: int
    of: int
    """All events of the table that files order."""
    before: str
    """The newest file that comes too early."""
    behind: str
    """A file that comes behind it, and is older."""


class TimesNoted:
    """Notes the times of events by table and file."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], FileTimes] = {}

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Take change events of one table, as rows of the change log. All have positions of one kind."""
        if (
            not rows.num_rows
            or len(self._found) > _MOST
            or not _BY_FILE.match(rows.column("position")[0].as_py() or "")
        ):
            return
        times = pa.table({"file": rows.column("file"), "at": rows.column("committed_at").cast(pa.int64())})
        grouped = times.group_by("file").aggregate([("at", "min"), ("at", "max"), ("at", "count")])
        known = grouped.filter(pc.is_valid(grouped.column("at_min")))
        for row in known.to_pylist():
            new = FileTimes(table, row["file"], row["at_min"], row["at_max"], row["at_count"])
            _join(self._found, new)

    def close(self) -> list[FileTimes]:
        """Return what was noted."""
        return list(self._found.values()) if len(self._found) <= _MOST else []


def _join(found: dict[tuple[str, str], FileTimes], new: FileTimes) -> None:
    known = found.setdefault((new.table, new.file), new)
    if known is not new:
        known.first, known.last = min(known.first, new.first), max(known.last, new.last)
        known.events += new.events


def disorders(noted: Iterable[FileTimes], place: Callable[[str], tuple[int, str]]) -> list[Disorder]:
    """Return the tables with many events in files that are in the wrong place.

    Args:
        noted: what the tasks of one run noted.
        place: from a file to its place in the order of files.
    """
    joined: dict[tuple[str, str], FileTimes] = {}
    for each in noted:
        _join(joined, each)
    by_table: dict[str, list[FileTimes]] = defaultdict(list)
    for each in joined.values():
        by_table[each.table].append(each)
    found = (_disorder(sorted(files, key=lambda each: place(each.file))) for _, files in sorted(by_table.items()))
    return [each for each in found if each is not None]


def _disorder(files: list[FileTimes]) -> Disorder | None:
    """Return the disorder in the files of one table, in their order; None if few events stand in the wrong place."""
    newest, events, total = files[0], 0, 0
    pair: tuple[FileTimes, FileTimes] | None = None
    for each in files:
        total += each.events
        if each.last < newest.first:
            events += each.events
            pair = pair or (newest, each)
        if each.first > newest.first:
            newest = each
    if pair is None or (events < _MANY and events < total * _SHARE):
        return None
    return Disorder(table=files[0].table, events=events, of=total, before=pair[0].file, behind=pair[1].file)
