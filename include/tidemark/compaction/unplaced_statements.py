"""Statements that change what earlier rows of a table are, and whose place among these rows is not known.

Such a statement empties the table, renames or drops a column, or adds one with a default. It acts on the rows below its
position. Where positions are places in the dump, they can be compared within one partition alone: offsets of two
partitions, or of two topics, say nothing of each other. The first cut that moves the table with such a statement is
held (docs/adr/0052).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from tidemark.compaction.placed_statements import OFFSET, DumpOrders, order_of, rank_alike
from tidemark.ddl.history import SchemaHistory, histories
from tidemark.ddl.lineages import Lineages
from tidemark.events import Operation, TableId
from tidemark.formats import Placing
from tidemark.lake.filters import at_most, equals
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import StatementRow, TableRow
from tidemark.positions import encode_position
from tidemark.quality.doubt import Doubt
from tidemark.quality.renamed_tables import last_moved
from tidemark.sources.model import Source
from tidemark.sources.schema_policy import SchemaPolicies
from tidemark.tables import schema_policies
from tidemark.text import without_values

UNPLACED_STATEMENT = "statements without a place among the rows"


class Effect(NamedTuple):
    """What a statement does to the rows from before it."""

    does: str
    else_: str
    """What may be wrong if its place is not known."""


_EMPTIES = Effect("empties the table", "rows from before it may still be there, and rows from after it may be gone")
_NAMES = Effect("renames or drops a column", "rows may be read with the column names of its other side")
_ADDS = Effect("adds a column with a default", "rows from before it may lack the default")


class AlteringStatement(NamedTuple):
    """A statement that alters what earlier rows of a table are."""

    position: str
    batch: int
    effect: Effect


class Unplaced(NamedTuple):
    """Why a statement has no place among the rows of a table, and the first batch that shows it."""

    batch: int
    reason: str


class Moved(NamedTuple):
    """The tables that a cut moves."""

    rows: Sequence[TableRow]
    batch: int
    """The last batch that the cut holds."""
    folded: Mapping[str, str]
    """Tables that are folded into one of these, and its name."""
    lineages: Lineages
    """The tables that were renamed."""


def doubts_about_statements(ledger: Ledger, source: Source, cut: Moved) -> dict[str, list[Doubt]]:
    """Return the doubts about tables that a cut moves for the first time with a statement that has no place.

    Formats whose statements all have a place in a log have no such doubt.
    """
    names = {row.object: cut.lineages.names_of(row.object) for row in cut.rows}
    names |= {name: [name] for name, into in cut.folded.items() if into in names}
    if not names or not source.traits.orders_by_dump:
        return {}
    places = _Places(ledger, source, cut.batch, {own for each in names.values() for own in each})
    found: dict[str, list[tuple[AlteringStatement, Unplaced]]] = defaultdict(list)
    for name in sorted(names):
        policies = source.policies_for(cut.folded.get(name, name))
        for own in names[name]:
            every = ((stated, places.unplaced(stated, own)) for stated in places.stated(own, policies))
            found[name] += [(stated, unplaced) for stated, unplaced in every if unplaced is not None]
    moved = last_moved(ledger) if any(found.values()) else {}
    for name, each in found.items():
        standing = moved.get(cut.folded.get(name, name), 0)
        found[name] = [(stated, unplaced) for stated, unplaced in each if unplaced.batch > standing]
    return {name: [_doubt(name, each, places.texts)] for name, each in found.items() if each}


class _Places:
    """The places of the statements and of the rows of a source."""

    def __init__(self, ledger: Ledger, source: Source, batch: int, names: Collection[str]) -> None:
        self._ledger, self._source, self._batch = ledger, source, batch
        rows = ledger.ddl(at_most("batch", batch))
        self._rows = {row.position: row for row in sorted(rows, key=lambda row: row.batch, reverse=True)}
        self._histories = histories(ledger, names)
        self.texts = {position: row.statement for position, row in self._rows.items()}

    def stated(self, name: str, policies: SchemaPolicies) -> Iterator[AlteringStatement]:
        """Yield what changed earlier rows under a name, since its table was last loaded anew (``reloads``)."""
        history = self._histories.get(name, SchemaHistory()).until(self._batch)
        history = schema_policies.followed(history, policies)
        settled = max((each.position for each in history.emptyings if each.load), default="")
        found = [AlteringStatement(*each[:2], _EMPTIES) for each in history.emptyings if not each.load]
        found += self._without_text(name, {each.batch for each in found})
        found += [AlteringStatement(*each[:2], _NAMES) for each in history.renamings]
        found += [AlteringStatement(*each[:2], _ADDS) for each in history.additions if each.default is not None]
        for each in sorted(found):
            if each.position >= settled or not self._ranks_alike(each, name):
                yield each

    def _without_text(self, name: str, stated: Collection[int]) -> list[AlteringStatement]:
        """Return the TRUNCATEs that are known from the types of messages alone, each with a place of its batch."""
        batches = self._truncated[name].difference(stated)
        spans = self._spans[name] if batches else []
        return [AlteringStatement(span.newest, span.batch, _EMPTIES) for span in spans if span.batch in batches]

    @cached_property
    def _truncated(self) -> Mapping[str, set[int]]:
        """The batches with a TRUNCATE, by table."""
        found: dict[str, set[int]] = defaultdict(set)
        for row in self._ledger.contents(equals("operation", Operation.TRUNCATE)):
            found[row.object].add(row.batch)
        return found

    @cached_property
    def _spans(self) -> Mapping[str, list[SpanRow]]:
        """What the events of each table span, by table."""
        found: dict[str, list[SpanRow]] = defaultdict(list)
        for row in self._ledger.spans(at_most("batch", self._batch)):
            found[row.object].append(row)
        return found

    @cached_property
    def _dumped(self) -> DumpOrders:
        return DumpOrders(self._ledger, self._batch)

    def unplaced(self, stated: AlteringStatement, name: str) -> Unplaced | None:
        """Return why a statement has no place among the rows under a name; None if it has one."""
        if not self._ranks_alike(stated, name):
            reason = "`reloads` of the table raised the positions of its rows, and not that of the statement"
            return Unplaced(stated.batch, reason)
        placing = self._source.traits.placing(stated.position)
        if placing is None:
            return Unplaced(stated.batch, "its message has no place in the order of the rows")
        return self._unplaced_in_dump(stated, name) if placing is Placing.DUMP else None

    def _ranks_alike(self, stated: AlteringStatement, name: str) -> bool:
        """Return whether ``reloads`` raised the positions of a statement as those of the rows at its time."""
        row = self._rows.get(stated.position)
        return row is None or rank_alike(self._source, row, {name})

    def _unplaced_in_dump(self, stated: AlteringStatement, name: str) -> Unplaced | None:
        if self._dumped.is_one:
            return None
        row = self._rows.get(stated.position)
        if row is not None and self._dumped.has_topics and not _is_named(name, row):
            reason = "its message does not name the table, and may have come in another topic than the rows"
            return Unplaced(stated.batch, reason)
        apart = [span.batch for span in self._spans[name] if _is_apart(span, stated.position)]
        reason = "rows of the table were dumped in another partition, or otherwise than it"
        return Unplaced(max(stated.batch, min(apart)), reason) if apart else None


def _is_named(name: str, row: StatementRow) -> bool:
    """Return whether the message of a statement names a table: producers choose its topic by that name."""
    return str(TableId(row.database, row.schema, row.name or "")).casefold() == name.casefold()


_FIRST = encode_position((0,))
"""The third part of a place in the dump, of a record in the first partition (``Message.order``)."""


def _is_apart(span: SpanRow, position: str) -> bool:
    """Return whether rows of a span lie, or may lie, in another order of the dump than a statement.

    Rows of another log (``log_restarts``) are compared by the log. Where the lowest row is of an earlier log, or was
    loaded, it is not known in which partition the rows of the statement's log begin: in the first one at the lowest.
    """
    log, order = position.partition(".")[0], order_of(position)
    oldest, newest = ((end or "").partition(".")[0] for end in (span.oldest, span.newest))
    if newest < log or oldest > log:
        return False
    if newest > log or order_of(span.newest) != order:
        return True
    if oldest == log:
        return order_of(span.oldest or "") != order
    return order[1] == OFFSET and order[2] != _FIRST


def _doubt(name: str, found: Sequence[tuple[AlteringStatement, Unplaced]], texts: Mapping[str, str]) -> Doubt:
    stated, unplaced = found[-1]
    text = without_values(texts.get(stated.position, "TRUNCATE"))
    reason = (
        f"a statement {stated.effect.does}, and has no place among the rows: {text}. The reason: {unplaced.reason}. "
        f"So {stated.effect.else_}. Load the table anew at the source, later than the statement, and write the moment "
        f"under `reloads` of {name} into the source file: the load replaces the rows. If the rows are right as the cut "
        "has them, approve it"
    )
    return Doubt(UNPLACED_STATEMENT, len(found), reason)
