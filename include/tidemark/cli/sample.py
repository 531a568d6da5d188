"""What sample dumps have, for ``tidemark init``: tables, keys, types, values, and when the oldest event was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from tidemark.cli.guesses import Guess, guess
from tidemark.cli.proposed_checks import Rows
from tidemark.events import ChangeEvent, Column, Operation, Quarantined, SchemaChange
from tidemark.normalization.decoding import decoded_files
from tidemark.values.message_types import table_type

_VALUES = 200
"""Values of a column that a guess is made from."""

_ROWS = 200
"""Rows that a guess of the key is compared with."""

_WHOLE = frozenset({Operation.SNAPSHOT, Operation.INSERT})

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(slots=True)
class SeenTable:
    """What the sample has of one table."""

    name: str
    operations: Counter[str] = field(default_factory=Counter)
    keys: set[tuple[str, ...]] = field(default_factory=set)
    columns: dict[str, str | None] = field(default_factory=dict)
    """Column -> the type in the last message that gave one; None if no message did."""
    untyped: dict[str, Column] = field(default_factory=dict)
    """Columns without a type, as the last message described them."""
    values: dict[str, list[bytes]] = field(default_factory=dict)
    """The first values of columns without a type, as JSON; each value once, null never."""
    rows: Rows = field(default_factory=Rows)
    """The rows, for the checks that are proposed."""
    loaded: dict[Operation, list[dict[str, bytes]]] = field(default_factory=dict)
    """The first rows that were loaded or inserted, of a table whose key no message names; each once."""

    def guessed_key(self) -> tuple[str, ...]:
        """Return the columns that are most likely the key, where no message names one.

        The column whose name says so, with one more if rows of the sample have it alike; none if no other column tells
        them apart.
        """
        names = {name.lower(): name for name in reversed(self.columns)}
        table = self.name.lower()
        likely = ("id", f"{table}_id", f"{table.removesuffix('s')}_id", f"{table}id", "uuid", *list(names)[-1:])
        first = next((names[name] for name in likely if name in names), None)
        if first is None:
            return ()
        pairs = ((first, name) for name in self.columns if name != first)
        return next((key for key in ((first,), *pairs) if self._tells_apart(key)), ())

    def _tells_apart(self, key: tuple[str, ...]) -> bool:
        """Return whether no two different rows that came whole have the same values in these columns, and none null."""
        rows = self.loaded.get(Operation.SNAPSHOT) or self.loaded.get(Operation.INSERT, [])
        values = [tuple(row.get(name, b"null") for name in key) for row in rows]
        return len(set(values)) == len(values) and not any(b"null" in each for each in values)

    def guesses(self) -> dict[str, Guess]:
        """Return how the values of columns without a type can be read."""
        keys = {name for key in self.keys for name in key} or {*self.guessed_key()}
        return {
            name: guess(self.untyped[name], self.values.get(name, ()), is_key=name in keys)
            for name, kind in self.columns.items()
            if kind is None
        }


@dataclass(slots=True)
class Sample:
    """What the sample has."""

    messages: int = 0
    tables: dict[str, SeenTable] = field(default_factory=dict)
    quarantined: Counter[str] = field(default_factory=Counter)
    oldest: int | None = None
    """When the oldest event was committed, or captured; epoch µs."""


def look_at(format_name: str, samples: Sequence[str], options: Mapping[str, object]) -> Sample:
    """Return what sample dumps have.

    Raises:
        ConfigurationError: the format or an option is unknown.
        LandingError: a sample cannot be read to its end.
    """
    sample = Sample()
    for _, decoded in decoded_files(format_name, samples, options):
        sample.messages += 1
        if isinstance(decoded, Quarantined):
            sample.quarantined[f"{decoded.reason}, as {decoded.detail}"] += 1
            continue
        for event in decoded:
            if isinstance(event, ChangeEvent):
                _note(sample, event)
            elif isinstance(event, SchemaChange) and str(event.table) in sample.tables:
                sample.tables[str(event.table)].operations["schema change"] += 1
    return sample


def _note(sample: Sample, event: ChangeEvent) -> None:
    at = event.committed_at if event.committed_at is not None else event.captured_at
    if at is not None:
        sample.oldest = at if sample.oldest is None else min(sample.oldest, at)
    seen = sample.tables.setdefault(str(event.table), SeenTable(event.table.name))
    seen.operations[event.operation] += 1
    if event.key is not None and event.operation is not Operation.TRUNCATE:
        seen.keys.add(event.key)
    seen.rows.add(event)
    if not any(seen.keys) and event.operation in _WHOLE and event.after is not None:
        rows = seen.loaded.setdefault(event.operation, [])
        if len(rows) < _ROWS:
            row = {name: bytes(value) for name, value in _members.decode(event.after).items()}
            rows += [row] if row not in rows else []
    untyped = []
    for column in event.shape.columns if event.shape else ():
        kind = table_type(column.type) if column.type else None
        seen.columns[column.name] = kind or seen.columns.get(column.name)
        if kind is None:
            seen.untyped[column.name] = column
            untyped.append(column.name)
    if untyped:
        _keep_values(seen, event, untyped)


def _keep_values(seen: SeenTable, event: ChangeEvent, names: Sequence[str]) -> None:
    for image, absent in ((event.after, event.absent), (event.before, ())):
        members = _members.decode(image) if image is not None else {}
        for name in names:
            kept = seen.values.setdefault(name, [])
            if name not in members or name in absent or len(kept) == _VALUES:
                continue
            raw = bytes(members[name])
            if raw != b"null" and raw not in kept:
                kept.append(raw)
