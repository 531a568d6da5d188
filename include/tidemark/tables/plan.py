"""What compact found about a table, and its plan for the table. Made by ``planner``, read by all that builds tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pyiceberg.table import Table

from tidemark.ddl.changes import Fill
from tidemark.ddl.history import SchemaHistory
from tidemark.ddl.lineages import Segment
from tidemark.events import Shape, TableId
from tidemark.lake import names as table_names
from tidemark.lake.names import Identifier
from tidemark.tables.row_checks import RowCheck
from tidemark.tables.withheld import NOTHING, Withheld
from tidemark.values.expressions import Term
from tidemark.values.images import NamesByShape
from tidemark.values.masking import NO_MASKS, Masks
from tidemark.values.table_columns import TableColumn


class KeyEra(NamedTuple):
    """A key that messages named from some position on."""

    key: tuple[str, ...]
    """By today's names; empty: the table had no key."""
    begins: str
    """Position of the first event in it; of the first era empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A table of the source that is folded into one with others."""

    object: str
    """As the source names it."""
    added: Mapping[str, str]
    """The columns that the source file adds to its rows."""
    since: int
    """Batch that its first event came in."""
    history: SchemaHistory = field(default_factory=SchemaHistory)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is known of one table, and of the new events that a cut takes into it."""

    object: str
    """The table as source files name it."""
    database: str | None
    schema: str | None
    name: str
    events: int
    """New change events."""
    truncates: int
    """TRUNCATEs among them."""
    shapes: Mapping[str, Shape]
    keys: Sequence[tuple[str, ...]]
    """The distinct keys that messages name."""
    unkeyed: bool = False
    """Whether any row change names no key."""
    eras: Sequence[KeyEra] = ()
    """The keys that messages named one after another; empty where one key holds for all events."""
    segments: tuple[Segment, ...] = ()
    """The names that its events came under, of a table that was renamed; empty: all events of its name."""
    positions: tuple[str, str | None] = ("", None)
    """The positions whose events are taken: from the first on, before the second; None: to the end."""
    partial: bool
    """Whether any image is partial."""
    halves: bool
    """Whether an update comes as two events, the old half and the new half. If images are partial, updates of earlier
    batches count too."""
    moves: bool = False
    """Whether an INSERT may lack values: it may be the second half of a change of the key (``folding.row_moves``)."""
    moves_ever: bool = False
    """Whether any batch had such an INSERT."""
    loads: bool = False
    """Whether new events are rows of an initial load."""
    inferred: Mapping[str, str] = field(default_factory=dict)
    """Types that were inferred from values, by column. Such columns are read as text and converted strictly."""
    history: SchemaHistory = field(default_factory=SchemaHistory)
    """Every schema change that is known for the table."""
    apart: tuple[tuple[str, str], ...] = ()
    """Old and new name, for each rename that the table as a whole does not follow: it is of a single shard, or of a
    column that is kept. The values of one column of the source stand in several columns of the table then."""
    published_batch: int = 0
    """The batch that the published table stands at; 0: nothing is published, or all events are folded again."""
    names: NamesByShape = field(default_factory=dict)
    """Today's names of columns, for shapes by epoch (``epochs.shapes_by_epoch``)."""
    withheld: Withheld = NOTHING
    """What open and undone transactions hold back; ``events`` and ``truncates`` do not count it."""
    common_path: int = 0
    """Number of leading characters that the paths of all files of the source share, or a smaller number."""
    target: Identifier | None = None
    """Where the table is published; None if it cannot be published."""
    problem: str | None = None
    """Why the table cannot be built, or cannot have a target."""
    called: Mapping[str, str] = field(default_factory=dict)
    """Columns that are published under other names, as the source file says: name at the source to published name."""
    table: Table | None = None
    """The table that the fold goes on from; None if nothing is published yet. It is the published table, or, with
    ``where`` or ``derive``, the table of its whole rows (``lake.names.whole``)."""
    published_beside: Table | None = None
    """The published table, where ``table`` is another one."""
    history_table: Table | None = None
    """The history table that goes on with ``table``; None if no versions are kept, or none are published yet."""
    shards: tuple[Shard, ...] = ()
    """The tables that are folded into it: all that have events, new or not. Empty: it is a table of its own. ``object``
    is the name that they have together (``sources.routes``)."""

    @property
    def goes_on(self) -> bool:
        """Whether the fold goes on from what is published; else it begins with the first event."""
        return self.published_batch > 0

    @property
    def at_source(self) -> TableId:
        """The table as the source names it; of folded tables, the first."""
        return TableId(self.database, self.schema, self.name)

    @property
    def published(self) -> Table | None:
        """The published table; None if there is none."""
        return self.table if self.published_beside is None else self.published_beside

    @property
    def objects(self) -> list[str]:
        """The names that its events came under, as source files name tables: of its shards, or those that it had."""
        names = [shard.object for shard in self.shards] or [segment.object for segment in self.segments]
        return list(dict.fromkeys(names)) or [self.object]

    @property
    def splits(self) -> bool:
        """Whether an update may come as two events (``halves``), and the new half may lack columns."""
        return self.partial and self.halves


class Default(NamedTuple):
    """The constant that rows got when a column was added."""

    position: str
    """Position of the statement. Rows from before it got the constant."""
    batch: int
    fill: Fill
    """What the old rows hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a cut is to do with one table."""

    found: Found
    target: Identifier
    key: tuple[str, ...]
    """The key columns. Empty: the table is a bag of rows."""
    columns: tuple[TableColumn, ...]
    pairs_updates: bool = False
    """Whether the two images of an update may come in two messages. Only set for bags."""
    has_deliveries: bool = False
    """Whether the copies of an event may have different positions (``positions.placed``)."""
    compares: bool = False
    """Whether events are compared with the rows that they need (``folding.row_needs``)."""
    compares_images: bool = False
    """Whether before images are compared with the row before (``folding.row_images``)."""
    ranks_copies: bool = False
    """Whether a copy of an event ranks as a new one, because the place in the dump ends positions."""
    today: Mapping[str, str | None] = field(default_factory=dict)
    """Stored columns that get another name when the cut is published, with that name; None for a column that goes."""
    void: Collection[str] = frozenset()
    """Columns without any value so far, for which nothing declares a type. They are text for now."""
    begun: Mapping[str, str] = field(default_factory=dict)
    """Stored columns that were void, and go because they get values: today's names of their successors."""
    defaults: Mapping[str, Default] = field(default_factory=dict)
    """By column: the constant that rows got when the column was added."""
    keeps_versions: bool = False
    """Whether ``<table>__history`` is kept beside the table."""
    tracked: frozenset[str] | None = None
    """Columns whose changes begin a version in the history; None: each event begins one."""
    tracking: str | None = None
    """What the history records of ``tracked``: what the source file says; None: nothing."""
    is_fed: bool = False
    """Whether what the cut changes is added to ``<table>__feed``."""
    soft: bool = False
    """Whether a deleted row stays, marked."""
    masks: Masks = NO_MASKS
    """Columns whose values are masked, by today's names."""
    names_record: str | None = None
    """What the table records of ``Found.called``, as JSON; None: nothing."""
    row_checks: tuple[RowCheck, ...] = ()
    """Checks that keep single rows back (``tables.row_checks``)."""
    column_rules: str | None = None
    """What the table records of masked columns and of those left out (``tables.column_rules``); None: nothing."""
    where: Term | None = None
    """True for the rows that are published; None: all of them."""
    derived: Mapping[str, Term] = field(default_factory=dict)
    """Columns that are published beside ``columns``, with what makes their values."""

    def stored(self, name: str) -> str:
        """Return the name that the table has for a column until the cut is published."""
        return next((old for old, new in self.today.items() if new == name), name)

    def new_defaults(self) -> list[tuple[TableColumn, Default]]:
        """Return the columns outside the key that this cut's statements added, and the constants of stored rows.

        None where all events are folded: each got the constant as it was read. A null in a row that an earlier key left
        came with its event.
        """
        if not self.found.goes_on:
            return []
        outside = ((column, self.defaults.get(column.name)) for column in self.columns if column.name not in self.key)
        return [
            (column, default) for column, default in outside if default and self.found.published_batch < default.batch
        ]

    @property
    def readers_key(self) -> tuple[str, ...]:
        """The key that readers know: without the column that tells shards apart."""
        return self.key[:-1] if self.found.shards else self.key

    @property
    def leaving(self) -> list[str]:
        """Stored columns that go when the cut is published."""
        return [old for old, new in self.today.items() if new is None]

    @property
    def key_numbers(self) -> list[int]:
        """Indexes of the key columns in ``columns``."""
        names = [column.name for column in self.columns]
        return [names.index(name) for name in self.key]

    @property
    def keeps_whole(self) -> bool:
        """Whether whole rows are folded beside the published table, which is made from them."""
        return self.where is not None or bool(self.derived)

    @property
    def of_published(self) -> Plan:
        """The plan of the published table, where whole rows are folded beside it."""
        derived = [TableColumn(name, term.type) for name, term in self.derived.items()]
        own = self.columns[-1:] if self.found.shards else ()
        columns = (*self.columns[: len(self.columns) - len(own)], *derived, *own)
        return replace(self, columns=columns, where=None, derived={})

    @property
    def rows(self) -> Identifier:
        """The table that events are folded into."""
        return table_names.whole(self.target) if self.keeps_whole else self.target

    @property
    def state(self) -> Identifier:
        """The table that keeps tombstones, and the positions of cells in partly written rows."""
        return table_names.state(self.target)

    @property
    def versions(self) -> Identifier:
        """The table that keeps the versions of each row."""
        versions = table_names.history(self.target)
        return table_names.whole(versions) if self.keeps_whole else versions
