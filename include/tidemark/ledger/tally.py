"""What a task of normalize counts and sees: contents, shapes, statements, loads, transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from tidemark.events import Column, Shape, TableId


class Content(msgspec.Struct, frozen=True):
    """What change events of one table have in common; they are counted by it, so that a plan needs no look at them."""

    table: TableId
    operation: str
    shape: str | None
    partial: bool
    key: tuple[str, ...] | None
    half: bool
    """The old half of an update that comes as two messages."""


class LoggedStatement(msgspec.Struct, frozen=True):
    """The DDL text of a message; or, in the dialect ``LOAD``, the beginning of a complete initial load of a table."""

    table: TableId | None
    """As the message names it; the text may name another one."""
    position: str
    dialect: str
    text: str
    """Of a load: what its rows say (``Load`` as JSON)."""
    at: int | None = None
    """When it was committed, else captured, else landed; epoch µs, UTC. None for a load: its rows have the times."""
    together: tuple[str, ...] = ()
    """Of a part of a statement: the tables that the whole statement changed (``SchemaChange.together``)."""
    database: str | None = None
    """Where the message names no table: the database in which the statement ran."""
    schema: str | None = None
    """Where the message names no table: the schema in which the statement ran."""

    @property
    def is_load(self) -> bool:
        """Whether it is the beginning of a load, and no DDL."""
        return self.dialect == LOAD


LOAD = "initial_load"
"""``LoggedStatement.dialect`` of what is no DDL: the beginning of a complete initial load, known from its rows."""


class Load(msgspec.Struct):
    """What the rows of a complete initial load say of it, as far as one task saw them."""

    at: int | None
    """The earliest time of a row, epoch µs; None where no row has a time."""
    row: str | None
    """Digest of the only row that was seen, however often; None: there were several."""


SEVERAL = "*"
"""``Span.commits_by`` or ``Span.database`` of more than one; no connector and no database is called so."""


class Span(msgspec.Struct):
    """What the events of one table in one batch span."""

    newest: str = ""
    """The highest position, as the change log has it."""
    oldest: str = ""
    """The lowest one."""
    first: int | None = None
    """Commit time of the earliest event, epoch µs."""
    last: int | None = None
    """Commit time of the latest event, epoch µs."""
    unplaced: int = 0
    """Rows of initial loads that nothing ranks among the changes."""
    unplaced_last: int | None = None
    """When the last of these rows was read, epoch µs."""
    back: int | None = None
    """Earliest commit time of the changes from one on that lies below a change which was delivered before it; they all
    are later than all before it. Epoch µs."""
    back_to: str = ""
    """Position of that change."""
    commits_from: str = ""
    """The lowest place of a last commit before a change (``ChangeEvent.after_commit``), encoded as positions begin;
    empty if no change carries one."""
    changes_to: str = ""
    """The highest place of a change that carries one, encoded likewise."""
    commits_by: str | None = None
    """Who read the log that these places are of; ``SEVERAL``, or None if no change carries a commit."""
    database: str | None = None
    """The database of the rows, where the table's name leaves it out (``ChangeEvent.of_database``). ``SEVERAL``, or
    None if none is known."""

    def add(self, other: Span) -> None:
        """Widen the span by another one."""
        self.newest = max(self.newest, other.newest)
        self.oldest = min(self.oldest or other.oldest, other.oldest or self.oldest)
        self.first = either(min, self.first, other.first)
        self.last = either(max, self.last, other.last)
        self.commits_from = min(self.commits_from or other.commits_from, other.commits_from or self.commits_from)
        self.changes_to = max(self.changes_to, other.changes_to)
        if self.commits_by != other.commits_by:
            self.commits_by = one_of({self.commits_by, other.commits_by})
        if self.database != other.database:
            self.database = one_of({self.database, other.database})
        self.unplaced += other.unplaced
        self.unplaced_last = either(max, self.unplaced_last, other.unplaced_last)
        if other.back is not None and (self.back is None or other.back < self.back):
            self.back, self.back_to = other.back, other.back_to


def is_placed(position: str) -> bool:
    """Return whether an encoded position is a place in the log: its first part is odd (``positions.loaded``)."""
    first = position.partition(".")[0][2:]
    return first.isdecimal() and int(first) % 2 == 1


def log_of(position: str) -> int:
    """Return which log of the source an encoded position is in: 1, and one more for each restart or reload before."""
    first = position.partition(".")[0][2:]
    return int(first) // 2 + 1 if first.isdecimal() else 1


def one_of(names: set[str | None]) -> str | None:
    """Return the one name of several; ``SEVERAL`` if they differ, None if none is known."""
    known = names - {None}
    return next(iter(known)) if len(known) == 1 else SEVERAL if known else None


def either(choose: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    """Return one of two numbers; the other one if one of them is None."""
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)


class OffsetRange(msgspec.Struct, frozen=True, array_like=True):
    """Offsets of a partition of Kafka without a gap, and the origin of the first record."""

    low: int
    high: int
    """The last offset."""
    file: str
    place: int


class OffsetsOf(msgspec.Struct, frozen=True):
    """The offsets of one partition that a task saw."""

    topic: str
    partition: int
    ranges: list[OffsetRange]
    dense: bool
    """False: they were in too many pieces, and one range stands for all of them."""


class Tally(msgspec.Struct):
    """What became of the messages of one batch, as far as one task read it."""

    landed: int = 0
    """Messages."""
    decoded: int = 0
    """Messages with change events or schema changes."""
    control: int = 0
    """Messages."""
    quarantined: int = 0
    """Messages."""
    without_bytes: int = 0
    """Messages among these that could not be tried again."""
    contents: list[tuple[Content, int]] = []
    """Change events."""
    shapes: list[tuple[TableId, str, str]] = []
    """Table, id and columns (JSON) of the shapes that the events refer to."""
    spans: dict[str, Span] = {}
    """By table as source files name it."""
    logs: list[str] = []
    """The orders that messages were dumped in (``spans.logs_of``), where the place in the dump may place statements."""
    statements: list[LoggedStatement] = []
    """DDL that may change columns or rows of a table that is there already, and complete initial loads."""
    offsets: list[OffsetsOf] = []
    """Of the messages that are records of Kafka."""
    heard: int | None = None
    """Time of the newest control event, epoch µs."""


def shape_from(text: str) -> Shape:
    """Return a shape from its columns as the ledger keeps them (JSON)."""
    return Shape(msgspec.json.decode(text, type=tuple[Column, ...]))


Ranges = list[tuple[int, int]]


class Seen(msgspec.Struct, kw_only=True):
    """What is known of one transaction that was not seen whole."""

    id: str
    since: int = 0
    """First batch with an event or a marker of it."""
    numbers: Ranges = []
    """Numbers of its events, as ranges that include both ends; empty where events have no numbers."""
    count: int | None = None
    """How many events it has, where its end marker says so."""
    by_table: dict[str, Ranges] = {}
    """Table -> numbers of its events. Without a name: numbers of events that are no row changes."""
    counts: dict[str, int] | None = None
    """Collection -> how many events it has, where the end marker says so (``completeness``)."""
    ended: bool = False
    undone: bool = False
    flagged: bool = False
    """Whether its events say which is the last."""
    tables: dict[str, tuple[int, int]] = {}
    """Table as source files name it -> change events, and the TRUNCATEs among them; copies counted."""
    first: int | None = None
    """Commit time of its earliest event, epoch µs."""
    last: int | None = None

    @property
    def whole(self) -> bool:
        """Whether all that its end counts was seen; a count counts only where events are numbered."""
        if not self.ended or self.undone:
            return False
        return self.count is None or (_covers(self.numbers, self.count) if self.numbers else bool(self.tables))


def merged(one: Seen, other: Seen) -> Seen:
    """Return what two parts of one transaction say together; the order does not matter."""
    tables = dict(one.tables)
    for name, (events, truncates) in other.tables.items():
        known = tables.get(name, (0, 0))
        tables[name] = (known[0] + events, known[1] + truncates)
    counts = [seen.count for seen in (one, other) if seen.count is not None]
    by_table = dict(one.by_table)
    for name, numbers in other.by_table.items():
        by_table[name] = merge_ranges([*by_table.get(name, ()), *numbers])
    return Seen(
        id=one.id,
        since=min(one.since, other.since),
        numbers=merge_ranges([*one.numbers, *other.numbers]),
        count=max(counts, default=None),
        by_table=by_table,
        counts=larger_counts(one.counts, other.counts),
        ended=one.ended or other.ended,
        undone=one.undone or other.undone,
        flagged=one.flagged or other.flagged,
        tables=tables,
        first=min((at for at in (one.first, other.first) if at is not None), default=None),
        last=max((at for at in (one.last, other.last) if at is not None), default=None),
    )


def larger_counts(one: Mapping[str, int] | None, other: Mapping[str, int] | None) -> dict[str, int] | None:
    """Return the counts of both; of two counts of one collection the larger."""
    given = [counts for counts in (one, other) if counts is not None]
    names = dict.fromkeys(name for counts in given for name in counts)
    return {name: max(counts.get(name, 0) for counts in given) for name in names} if given else None


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return ranges in order, and one range for ranges that overlap or touch.

    >>> merge_ranges([(5, 7), (1, 2), (3, 4), (9, 9)])
    [(1, 7), (9, 9)]
    """
    found: Ranges = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def _covers(numbers: Ranges, count: int) -> bool:
    """Return whether numbers hold 1 to ``count``."""
    return any(low <= 1 and high >= count for low, high in numbers)
