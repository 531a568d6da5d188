"""What compact found of a table, and what it is to do with it: made by ``planning``, read by all that builds tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyiceberg.table import Table

from tidemark.ddl.history import SchemaHistory
from tidemark.events import Shape
from tidemark.lake import names as table_names
from tidemark.lake.names import Identifier
from tidemark.tables.withheld import NOTHING, Withheld
from tidemark.values.images import NamesByShape
from tidemark.values.table_columns import TableColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the change log's new events tell of one table."""

    object: str
    database: str | None
    schema: str | None
    name: str
    events: int
    truncates: int
    shapes: Mapping[str, Shape]
    keys: Sequence[tuple[str, ...]]
    """Keys that messages named, distinct."""
    partial: bool
    """Whether any image is partial."""
    halves: bool
    """Whether any update comes as two events, the old half and the new one; beside partial images also whether any
    came so before."""
    inferred: Mapping[str, str] = field(default_factory=dict)
    """Types of columns that only their values tell; such columns are read by way of text, strictly."""
    history: SchemaHistory = field(default_factory=SchemaHistory)
    """Every schema change that is known of the table."""
    after: int = 0
    """Batch that the published table stands at."""
    names: NamesByShape = field(default_factory=dict)
    """What columns are called today, for shapes by epoch (``epochs.shapes_by_epoch``)."""
    withheld: Withheld = NOTHING
    """Of open and undone transactions; ``events`` and ``truncates`` are without them."""
    common_path: int = 0
    """Characters that the paths of all files of the source begin with alike, or fewer."""
    target: Identifier | None = None
    """Where the table is published; None where it cannot be."""
    problem: str | None = None
    """Why the table can have no target."""
    table: Table | None = None
    """What is published there; None for nothing yet."""

    @property
    def splits(self) -> bool:
        """Whether updates may come as two events of which the new one lacks columns (``halves``)."""
        return self.partial and self.halves


class Default(NamedTuple):
    """The constant that a column was added with."""

    position: str
    """Rows that were there before got it."""
    batch: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be done for one table."""

    found: Found
    target: Identifier
    key: tuple[str, ...]
    """Empty: the table is a bag of rows."""
    columns: tuple[TableColumn, ...]
    pairs_updates: bool = False
    """Whether an image of an update may come alone, its other half in another message; told of bags only."""
    today: Mapping[str, str | None] = field(default_factory=dict)
    """Stored column to its name when the cut is published, where that is another one; None for one that goes."""
    void: Collection[str] = frozenset()
    """Columns that no event has had a value for, of which nothing tells the type; they are text meanwhile."""
    begun: Mapping[str, str] = field(default_factory=dict)
    """Stored columns that were void, and are no more, to the names of the new ones that take their place."""
    defaults: Mapping[str, Default] = field(default_factory=dict)
    """Constants that rows got in columns which were added."""
    keeps_versions: bool = False
    """Whether ``<table>__history`` is kept beside the table."""
    soft: bool = False
    """Whether a deleted row stays, marked."""

    def stored(self, name: str) -> str:
        """What the table calls a column until the cut is published."""
        return next((old for old, new in self.today.items() if new == name), name)

    def new_defaults(self) -> list[tuple[TableColumn, Default]]:
        """Columns outside the key that this cut's statements added, with the constants that stored rows get in them."""
        told = ((column, self.defaults.get(column.name)) for column in self.columns if column.name not in self.key)
        return [(column, default) for column, default in told if default and self.found.after < default.batch]

    @property
    def leaving(self) -> list[str]:
        """Stored columns that go when the cut is published."""
        return [old for old, new in self.today.items() if new is None]

    @property
    def key_numbers(self) -> list[int]:
        """Numbers of the key's columns among ``columns``."""
        names = [column.name for column in self.columns]
        return [names.index(name) for name in self.key]

    @property
    def state(self) -> Identifier:
        """The table that keeps tombstones and the versions of partly written rows."""
        return table_names.state(self.target)

    @property
    def versions(self) -> Identifier:
        """The table that keeps the versions of each row."""
        return table_names.history(self.target)
