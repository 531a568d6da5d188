"""The key of a table: from the source file, else from the messages, which may name another one from some place on."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from pyiceberg.table import Table

from tidemark.ddl.names import ColumnNames
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.sources import model
from tidemark.tables.evolving import Evolving
from tidemark.tables.plan import Default, Found, KeyEra
from tidemark.tables.schemas import key_of
from tidemark.text import without_values


class KeySpan(NamedTuple):
    """The positions of the row changes that name one key."""

    key: tuple[str, ...] | None
    """As the messages name it; None: they name none."""
    first: str
    last: str


def planned(evolving: Evolving, promised: model.Table, table: Table | None, names: Sequence[str]) -> tuple[str, ...]:
    """Return the key by today's names: from the source file, else from the messages, else from the published table.

    Args:
        evolving: what the columns of the table are derived from.
        promised: what the source file says of the table.
        table: the published table; None if there is none, or if it is built again.
        names: the columns that the table is to have.

    Raises:
        IncompatibleSchemaError: messages name several keys in no order, the source file gives another key than the
            table has, or no message has one of its columns.
        RebuildNeededError: messages name another key than the table has.
    """
    found = evolving.found

    def today(key: Sequence[str]) -> tuple[str, ...]:
        """Return a key by today's names; it may be given by earlier names."""
        return tuple(name if name in names else evolving.names.today(name, 0) or name for name in key)

    stored = tuple(evolving.before.get(name) or name for name in key_of(table))
    added = tuple(promised.add) if found.shards else ()
    named = {today((*(name for name in added if name not in key), *key)) for key in found.keys if key}
    if promised.key is not None:
        key = today(promised.key)
    elif len(named) > 1 and table is None:
        raise IncompatibleSchemaError(
            f"{found.object}: messages name different keys {sorted(named)}; give one with `key:`"
        )
    else:
        key = next((each for each in sorted(named) if set(each) != set(stored)), stored)
    if table is not None and key != stored:
        _refuse(evolving, stored, key, is_named=set(key) in [set(each) for each in named])
    if table is not None and promised.key is None and stored and () in found.keys and not found.shards:
        raise RebuildNeededError(f"{found.object}: messages name no key any more, and the table has {list(stored)}")
    if promised.key and not any(found.keys):
        _refuse_outgrown(evolving, key, names)
    missing = [name for name in key if name not in names]
    if missing and not evolving.rules.is_published(missing[0]):
        raise IncompatibleSchemaError(f"{found.object}: {missing[0]!r} is part of the key, so it cannot be left out")
    if missing:
        raise IncompatibleSchemaError(f"{found.object}: no message has the key column {missing[0]!r}")
    return key


def _refuse(evolving: Evolving, stored: tuple[str, ...], key: tuple[str, ...], *, is_named: bool) -> None:
    """Refuse to go on with another key than the published table has: only messages can show from where on it holds.

    Raises:
        RebuildNeededError: the messages name the new key.
        IncompatibleSchemaError: the source file alone gives it.
    """
    name = evolving.found.object
    if is_named:
        raise RebuildNeededError(f"{name}: messages name the key {list(key)}, and the table has {list(stored)}")
    again = f"rebuild it (`tidemark rebuild {evolving.source} {name}`)"
    if not stored:
        raise IncompatibleSchemaError(
            f"{name} was published without a key, as a bag of rows, and now has the key {list(key)}: "
            f"{again}, or write `key: []` in the source file"
        )
    raise IncompatibleSchemaError(f"{name}: the key changed from {list(stored)} to {list(key)}: {again}")


def _refuse_outgrown(evolving: Evolving, key: tuple[str, ...], columns: Sequence[str]) -> None:
    """Refuse a key of the source file that is a part of the one that a statement gave the table: rows may share it.

    Raises:
        IncompatibleSchemaError: it is.
    """
    found, names = evolving.found, evolving.names
    if not found.history.keys:
        return
    newest = max(found.history.keys)
    epoch, spelled = names.epoch(newest.position, after=True), {name.casefold(): name for name in columns}
    newest_key = [names.today(name, epoch) or name for name in newest.columns]
    now = [spelled.get(name.casefold(), name) for name in newest_key]
    if set(key) < set(now):
        raise IncompatibleSchemaError(
            f"{found.object}: the source file gives the key {list(key)}, and the table has another one at the source, "
            f"so rows may share it: {without_values(newest.statement)}. Write `key: [{', '.join(now)}]`, and rebuild "
            f"the table (`tidemark rebuild {evolving.source} {found.object}`)"
        )


def refuse_late(found: Found, key: Container[str], defaults: Mapping[str, Default]) -> None:
    """Refuse to go on where new statements gave the rows of old events values in columns of the key.

    Args:
        found: the table; some of its events are published or set aside already.
        key: its key.
        defaults: by column, the constant that rows got when it was added.

    Raises:
        RebuildNeededError: they did.
    """
    if late := [name for name, default in defaults.items() if name in key and default.batch > found.published_batch]:
        raise RebuildNeededError(f"{found.object}: rows from before got values in {late[0]!r}, a part of the key")


def eras_of(table: str, spans: Iterable[KeySpan], names: ColumnNames) -> list[KeyEra]:
    """Return the keys that messages named one after another, with the position at which each begins.

    Messages that name no key before any does are of a table without a key; so are those that say that there is none.
    Where some name the key and others do not, in no order, it is the key of all.

    Args:
        table: as the source names it, for errors.
        spans: of each key that messages name.
        names: the names of the table's columns through time.

    Raises:
        IncompatibleSchemaError: messages name keys in turns, or name none after they named one.
    """
    ordered = sorted(spans, key=lambda span: span.first)
    named, unnamed = [span for span in ordered if span.key is not None], [span for span in ordered if span.key is None]
    eras: list[KeyEra] = []
    reached = ""
    for span in [*_without_key(table, named, unnamed), *named]:
        key = _by_todays_names(span, names)
        if eras and set(eras[-1].key) != set(key) and span.first <= reached:
            keys = sorted({era.key for era in eras} | {key})
            raise IncompatibleSchemaError(
                f"{table}: messages name different keys {keys}, and not one after another; give one with `key:`"
            )
        if not eras or set(eras[-1].key) != set(key):
            eras.append(KeyEra(key, span.first if eras else ""))
        reached = max(reached, span.last)
    return eras


def _without_key(table: str, named: Sequence[KeySpan], unnamed: Sequence[KeySpan]) -> Sequence[KeySpan]:
    """Return the span of messages that name no key, where they are of a time in which the table had none.

    Raises:
        IncompatibleSchemaError: they come after messages that named one, and none of these comes later.
    """
    for span in unnamed:
        if any(each.first < span.last and span.first < each.last for each in named):
            return ()
        before = [each for each in named if each.last < span.first]
        if before:
            was = before[-1].key or ()
            raise IncompatibleSchemaError(
                f"{table}: messages named the key {list(was)}, and later ones name none. If the table lost its key at "
                f"the source, write `key: []` in the source file; if not, write `key: [{', '.join(was)}]`"
            )
    return unnamed


def _by_todays_names(span: KeySpan, names: ColumnNames) -> tuple[str, ...]:
    epoch = names.epoch(span.first)
    return tuple(names.today(name, epoch) or name for name in span.key or ())
