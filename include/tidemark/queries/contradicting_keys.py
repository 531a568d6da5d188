"""Looks up the keys of rows that events contradict in the change log, because the ledger keeps the places alone.

So a key is gone from the next report when its events are: after an erasure, or at the end of their time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache

from pyiceberg.expressions import And

from tidemark.lake.filters import among, equals
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RowKind
from tidemark.lake.log_tables import find_change_log
from tidemark.lake.names import Identifier
from tidemark.ledger.contradiction_rows import ContradictionRow
from tidemark.ledger.ledger import Ledger
from tidemark.quality.disclosure import short
from tidemark.queries import row_events
from tidemark.queries.row_life_masks import MaskedText
from tidemark.queries.row_life_scan import FIELDS, LogRow, log_rows
from tidemark.queries.row_life_steps import Reader
from tidemark.text import harmless, key_text


def contradicting_keys(lake: Lake, source: str, rows: Iterable[ContradictionRow]) -> dict[ContradictionRow, str]:
    """Return the key of the first event of each contradiction, as text; without those that cannot be shown.

    An update that moves a row has two keys, its old and its new one. A key is not shown if a column of it is masked; if
    the table has no key, is folded of several, is not published or was dropped; or if the event is no longer in the
    change log.
    """
    wanted = defaultdict[tuple[str, int, str], list[ContradictionRow]](list)
    for row in rows:
        if row.file is not None and row.place is not None and row.position is not None:
            wanted[row.file, row.place, row.position].append(row)
    changelog = find_change_log(lake, source)
    if not wanted or changelog is None:
        return {}
    files, places, positions = zip(*wanted, strict=True)
    where = And(equals("kind", RowKind.CHANGE), among("file", files), among("place", places))
    where = And(where, among("position", positions))
    events = log_rows(changelog.scan(row_filter=where, selected_fields=FIELDS).to_arrow())
    reader_of = _readers(lake, source)
    matches = (
        (row, reader_of(row.object), event)
        for event in events
        for row in wanted.get((event.file, event.place, event.position), ())
    )
    return {row: key for row, reader, event in matches if reader is not None and (key := _key_of(reader, event))}


def _readers(lake: Lake, source: str) -> Callable[[str], Reader | None]:
    """Return what gives the reader of a table's events, by its name at the source; None if it is not published."""
    published = Ledger(lake, source).published_tables()

    @cache
    def reader_of(name: str) -> Reader | None:
        standing = published.get(name)
        table = lake.find(Identifier.parse(standing.target)) if standing is not None and standing.target else None
        if standing is None or table is None:
            return None
        return Reader.of(lake, table, row_events.history(lake, table).until(standing.batch))

    return reader_of


def _key_of(reader: Reader, event: LogRow) -> str | None:
    # Events of tables that are folded into one have shapes of their own.
    if not reader.key or reader.masks.kinds.keys() & set(reader.key) or event.shape not in reader.shapes:
        return None
    keys = reader.keys(event)
    if any(isinstance(value, MaskedText) for key in keys for value in key.values()):
        return None
    return short(harmless(" or ".join(key_text(key, key.values()) for key in keys))) or None
