"""The statements whose place among the rows is certain: renames of tables are followed from there on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from tidemark.ddl.migrations import reloads_of
from tidemark.ddl.rename_statements import drops_any, named_in
from tidemark.ddl.stated_tables import KnownTables
from tidemark.events import TableId
from tidemark.formats import Placing
from tidemark.lake.filters import at_most
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import StatementRow
from tidemark.sources.model import Source


def placed(
    ledger: Ledger, source: Source, rows: Sequence[StatementRow], objects: Mapping[str, TableId], batch: int
) -> list[StatementRow]:
    """Return the statements whose place among the rows of the tables that they rename or drop is certain.

    Where positions are places in the dump, that is so if all messages were dumped in one order: from one partition of
    a topic, or in files whose names differ in numbers alone and whose times agree. A statement that comes again there
    has another place, and the first one counts.

    Args:
        ledger: of the source.
        source: the source.
        rows: statements that may rename or drop tables.
        objects: the tables that have events, by their names in source files.
        batch: the last batch that counts.
    """
    known = KnownTables(objects)
    found: list[StatementRow] = []
    seen: dict[tuple[str, datetime | None], str] = {}
    dumped: DumpOrders | None = None
    for row in sorted(rows, key=lambda row: (row.position, row.batch)):
        placing = source.traits.placing(row.position)
        names = named_in(row, objects, known)
        # A name that a rename gave has no events of its own, mostly: its DROP shows that the name is free again.
        if placing is None or not (names or row.together or drops_any(row)) or not rank_alike(source, row, names):
            continue
        if placing is Placing.DUMP:
            dumped = dumped or DumpOrders(ledger, batch)
            if seen.setdefault((row.statement, row.at), row.position) != row.position or not dumped.places(row, names):
                continue
        found.append(row)
    return found


def rank_alike(source: Source, row: StatementRow, names: Collection[str]) -> bool:
    """Return whether the table of a statement and the tables that it renames were loaded equally often until then.

    Each load of ``reloads`` raises the positions of a table (``normalization.new_logs``).
    """
    table = str(TableId(row.database, row.schema, row.name or ""))
    declared = {name: entry.reloads for name, entry in source.tables.items()}
    reloads = [reloads_of(declared, name) for name in {table, *names}]
    if row.at is None or not any(reloads):
        return not any(reloads)
    return len({sum(moment <= row.at for moment in each) for each in reloads}) == 1


class DumpOrders:
    """The orders in which the messages of a source were dumped."""

    def __init__(self, ledger: Ledger, batch: int) -> None:
        """Read what the ledger has of the batches up to ``batch``."""
        batches = [row for row in ledger.batches(at_most("batch", batch)) if row.retry_of is None]
        noted = all(row.logs is not None for row in batches)
        self._ledger, self._batch = ledger, batch
        self.is_one = noted and len({log for row in batches for log in row.logs or ()}) == 1
        self._spans = ledger.spans(at_most("batch", batch)) if self.is_one else []

    @cached_property
    def has_topics(self) -> bool:
        """Whether records came in several topics of Kafka, of which a position says nothing."""
        return len({each.topic for each in self._ledger.offsets(at_most("batch", self._batch))}) > 1

    def places(self, row: StatementRow, names: Collection[str]) -> bool:
        """Return whether there is one order, and the times of rows in files agree with it at a statement."""
        if not self.is_one or row.position.split(".")[1] == OFFSET or row.at is None:
            return self.is_one
        return not any(_contradicts(span, row.position, row.at) for span in self._spans if span.object in names)


OFFSET = "011"
"""Second part of a position that is the offset of a Kafka record (``Message.order``)."""


def order_of(position: str) -> list[str]:
    """Return the beginning of a place in the dump that places in the same order share: log, kind and partition."""
    parts = position.split(".")
    return parts[:3] if parts[1] == OFFSET else parts[:2]


def _contradicts(span: SpanRow, position: str, at: datetime) -> bool:
    """Return whether rows on one side of a statement have a time of the other side."""
    before = span.newest < position and span.last is not None and span.last > at
    after = span.oldest is not None and span.oldest > position and span.first is not None and span.first < at
    return before or after
