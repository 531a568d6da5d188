"""Looks up the keys of rows that events contradict in the change log, because the ledger keeps the places alone.

So a key is gone from the next report when its events are: after an erasure, or at the end of their time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyiceberg.expressions import And

from tidemark.lake.filters import among, equals
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RowKind
from tidemark.lake.log_tables import find_change_log
from tidemark.lake.names import Identifier
from tidemark.ledger.contradiction_rows import ContradictionRow
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.quality.disclosure import short
from tidemark.queries import row_events
from tidemark.queries.row_life_masks import MaskedText
from tidemark.queries.row_life_scan import FIELDS, LogRow
from tidemark.queries.row_life_steps import Reader
from tidemark.text import harmless, key_text


def contradicting_keys(lake: Lake, source: str, rows: Iterable[ContradictionRow]) -> dict[ContradictionRow, str]:
    """Return the key of the first event of each contradiction, as text; without those that cannot be shown.

    An update that moves a row has two keys, its old and its new one. A key is not shown if a column of it is masked, if
    the table has no key, is not published or was dropped, or if the event is no longer in the change log.
    """
    wanted = {
        (row.file, row.place, row.position): row
        for row in rows
        if row.file is not None and row.place is not None and row.position is not None
    }
    changelog = find_change_log(lake, source)
    if not wanted or changelog is None:
        return {}
    files, places, positions = zip(*wanted, strict=True)
    where = And(equals("kind", RowKind.CHANGE), among("file", files), among("place", places))
    where = And(where, among("position", positions))
    # Times may have years that Python's own times do not have.
    events = changelog.scan(row_filter=where, selected_fields=FIELDS).to_arrow()
    published = Ledger(lake, source).published_tables()
    found: dict[ContradictionRow, str] = {}
    for event in events.drop_columns(["committed_at"]).to_pylist():
        row = wanted.get((event["file"], event["place"], event["position"]))
        if row is not None and (key := _key_of(lake, published, row, event)):
            found[row] = key
    return found


def _key_of(lake: Lake, published: Mapping[str, TableRow], row: ContradictionRow, event: LogRow) -> str | None:
    standing = published.get(row.object)
    table = lake.find(Identifier.parse(standing.target)) if standing is not None and standing.target else None
    if standing is None or table is None:
        return None
    reader = Reader.of(lake, table, row_events.history(lake, table).until(standing.batch))
    if not reader.key or reader.masks.kinds.keys() & set(reader.key):
        return None
    keys = reader.keys(event)
    if any(isinstance(value, MaskedText) for key in keys for value in key.values()):
        return None
    return short(harmless(" or ".join(key_text(key, key.values()) for key in keys))) or None
