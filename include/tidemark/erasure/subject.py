"""Whose rows are to be erased: a key of a published table, with the keys that its row had before or had later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import And, BooleanExpression, Or
from pyiceberg.table import Table

from tidemark.errors import ConfigurationError
from tidemark.events import Operation
from tidemark.lake import names
from tidemark.lake.branches import marker
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import OBJECT_PROPERTY, SOURCE_PROPERTY
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.normalization.erased_keys import Erasure, KeyColumn, canonical, digest_of
from tidemark.queries.explain import find_table, history_of, literal, log_of
from tidemark.queries.row_key import key_given
from tidemark.queries.row_life import Key
from tidemark.queries.row_life_scan import LogRow
from tidemark.queries.row_life_steps import Reader
from tidemark.tables.column_rules import masks_recorded, names_recorded
from tidemark.tables.shard_rules import recorded

Place = tuple[str, int, int]
"""File, place of the message in it, and number of the event in the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The row that is to be erased, under all of its keys."""

    source: str
    object: str
    target: Identifier
    standing: TableRow
    """Where the published table stands."""
    reader: Reader
    keys: Sequence[Key]

    @property
    def key_columns(self) -> tuple[KeyColumn, ...]:
        """How the key is read from images."""
        columns = self.reader.columns
        return tuple(
            KeyColumn(name=name, type=columns[name].type, called=_called(self.reader, name)) for name in self.reader.key
        )

    def digests(self, secret: bytes) -> list[str]:
        """Return the keyed hash of each key."""
        return [digest_of(secret, self.object, self._texts(key)) for key in self.keys]

    def erasures(self, secret: bytes, before: int, horizon: str) -> tuple[Erasure, ...]:
        """Return the erasure of each key, up to a time and a position."""
        return tuple(
            Erasure(object=self.object, columns=self.key_columns, digest=digest, before=before, horizon=horizon)
            for digest in self.digests(secret)
        )

    def condition(self, columns: Sequence[str] = ()) -> BooleanExpression:
        """Return the condition that a row has one of the keys; ``columns`` are other names of the key's columns."""
        named = columns or self.reader.key
        each = [
            reduce(And, (equals(name, value) for name, value in zip(named, self._literals(key), strict=True)))
            for key in self.keys
        ]
        return reduce(Or, each)

    def holds(self, columns: Sequence[str] = ()) -> Callable[[pa.RecordBatch], pa.Array]:
        """Return a function that tells which rows of a batch have one of the keys."""
        named = columns or self.reader.key

        def holds(rows: pa.RecordBatch) -> pa.Array:
            found = pa.repeat(pa.scalar(value=False), rows.num_rows)
            for key in self.keys:
                one = pa.repeat(pa.scalar(value=True), rows.num_rows)
                for name, value in zip(named, self._literals(key), strict=True):
                    column = rows.column(name)
                    one = pc.and_(one, pc.fill_null(pc.equal(column, pa.scalar(value).cast(column.type)), False))  # noqa: FBT003
                found = pc.or_(found, one)
            return found

        return holds

    def _literals(self, key: Key) -> list[Any]:
        return [literal(key[name], self.reader.columns[name].type) for name in self.reader.key]

    def _texts(self, key: Key) -> list[tuple[str, str]]:
        return [(name, canonical(key[name], self.reader.columns[name].type) or "") for name in self.reader.key]


def _called(reader: Reader, name: str) -> tuple[str, ...]:
    """Return every name that images have for a column of the table, in any epoch of names."""
    epochs = range(len(reader.names.renamings) + 1)
    spelled = {column.name for shape in reader.shapes.values() for column in shape.columns}
    found = {each for each in spelled if any(reader.names.today(each, epoch) == name for epoch in epochs)}
    return tuple(sorted(found | {name}))


def source_of(lake: Lake, name: str) -> str:
    """Return the source of a published table.

    Raises:
        UnknownNameError: there is no such table.
    """
    return str(find_table(lake, name)[1].properties[SOURCE_PROPERTY])


def find_subject(lake: Lake, ledger: Ledger, name: str, given: Sequence[str], *, follow: bool) -> Subject:
    """Return the row that a person names.

    Args:
        lake: the lake.
        ledger: of the table's source.
        name: the table, as ``source.table``.
        given: the row's key, as texts ``COLUMN=VALUE``.
        follow: whether the other keys that the row had are erased as well.

    Raises:
        ConfigurationError: there is no such table or column, or the table has no key; or the row had other keys, and
            they are not to be followed.
    """
    target, table = find_table(lake, name)
    _refuse_folded(name, table)
    source, object_name = table.properties[SOURCE_PROPERTY], table.properties[OBJECT_PROPERTY]
    standing = ledger.published_tables()[object_name]
    reader = Reader.of(lake, table, history_of(lake, table).until(standing.batch))
    if not reader.key:
        raise ConfigurationError(
            f"{name} has no key, so nothing tells one row from another: give it a `key:` in the source file, "
            f"`tidemark rebuild {source} {object_name}`, then erase"
        )
    called = names_recorded(table)
    if unlike := sorted(set(reader.key) & (masks_recorded(table).kinds.keys() | called.keys() | set(called.values()))):
        raise ConfigurationError(
            f"{name}: the key column {unlike[0]!r} is masked or renamed, so the key is not as messages tell it, and a "
            "message that comes again would not be recognised. Nothing was erased. Publish the key as it is, "
            f"`tidemark rebuild {source} {object_name}`, run, then erase"
        )
    first = key_given(name, given, reader.columns, reader.key)
    keys = _all_keys(lake, table, reader, first)
    if len(keys) > 1 and not follow:
        others = "; ".join(" ".join(f"{column}={value}" for column, value in key.items()) for key in keys[1:])
        raise ConfigurationError(
            f"{name}: the row had other keys, before or later: {others}. `--follow` erases the row under all of them. "
            f"Look first with `tidemark explain` whether another row has one of these keys now"
        )
    return Subject(
        source=source,
        object=object_name,
        target=target,
        standing=standing,
        reader=reader,
        keys=keys,
    )


def _refuse_folded(name: str, table: Table) -> None:
    if shards := recorded(table):
        raise ConfigurationError(
            f"{name} is folded from {len(shards)} tables, and rows of such a table cannot be erased yet. Nothing was "
            "erased. Publish the tables apart (without `target` and `add` in the source file), run, then erase the row "
            "from its own table"
        )


def _all_keys(lake: Lake, table: Table, reader: Reader, first: Key) -> list[Key]:
    keys: list[Key] = [first]
    for key in keys:  # grows
        for step in reader.steps(log_of(lake, table), key, lambda _: None):
            for other in (step.moved_from, step.moved_to):
                if other is not None and None not in other.values() and other not in keys:
                    keys.append(dict(other))
    return keys


def events_of(lake: Lake, subject: Subject, covers: Callable[[LogRow], bool]) -> tuple[set[Place], int]:
    """Return the places of the subject's events in the change log that an erasure covers, and how many it does not."""
    table = lake.load(subject.target)
    found: set[Place] = set()
    newer: set[Place] = set()

    def note(row: LogRow) -> None:
        if row["operation"] != Operation.TRUNCATE:
            (found if covers(row) else newer).add((row["file"], row["place"], row["row"]))

    for key in subject.keys:
        for _ in subject.reader.steps(log_of(lake, table), key, note):
            pass
    return found, len(newer)


def is_normalized(lake: Lake, source: str) -> bool:
    """Return whether all messages that landed are in the change log."""
    raw, log = lake.find(names.raw(source)), lake.find(names.change_log(source))
    return int(marker(raw, "batch") or 0) <= int(marker(log, "batch") or 0)


def as_text(key: Mapping[str, object]) -> str:
    """Return a key as a person writes it."""
    return " ".join(f"{name}={value}" for name, value in key.items())
