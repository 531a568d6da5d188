"""Which columns of a table are published, and which are masked, as the source file says (docs/table-options.md).

The source file may use any name that a column ever had: a rename at the source uncovers nothing. The table as a whole
does not follow a rename of a single shard, or of a column that is kept. The values of one column of the source stand in
several columns of the table then, which are masked alike, or left out together. The published table records what it was
built by (``RULES_PROPERTY``), so that a changed source file is noticed, and queries know the masks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from pyiceberg.table import Table

from tidemark.ddl.names import ColumnNames, connected, earlier
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.events import Column
from tidemark.lake.properties import NAMES_PROPERTY, RULES_PROPERTY
from tidemark.sources import model
from tidemark.sources.history import History
from tidemark.sources.routes import SHARD_COLUMN, is_folded
from tidemark.tables.plan import Found
from tidemark.text import matches
from tidemark.values.masking import ONE_TO_ONE, Mask, Masks, check_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRules:
    """What the source file says of the columns of one table."""

    promised: model.Table
    variable: str | None
    """The environment variable that holds the secret of masks."""
    names: ColumnNames
    pairs: tuple[tuple[str, str], ...] = ()
    """Old and new names that one column of the source has in the table side by side (``Found.apart``)."""
    own: frozenset[str] = frozenset()
    """Columns that the source file adds, and the column that tells shards apart: they are published as they are."""

    @classmethod
    def of(cls, source: model.Source, found: Found, names: ColumnNames) -> ColumnRules:
        """Return the rules of a table, whose columns have had the ``names``."""
        promised = source.table_for(found.object)
        own = frozenset({*promised.add, SHARD_COLUMN} if is_folded(found.object) else ())
        pairs = (*found.apart, *found.called.items()) if found.apart else ()
        return cls(promised=promised, variable=source.mask_secret, names=names, pairs=pairs, own=own)

    def is_published(self, name: str) -> bool:
        """Return whether a column, by today's name, is published."""
        select, exclude = self.promised.select, self.promised.exclude
        if (not exclude and select is None) or name in self.own:
            return True
        if matches(self.called(name), exclude):
            return False
        # A selected column stays under later names. An earlier name may be another column's, so it has to be listed.
        return select is None or matches(earlier(self._followed(name), self.pairs), select)

    def mask_of(self, name: str) -> Mask | None:
        """Return the mask of a column, by today's name: the first in the source file that fits."""
        if name in self.own:
            return None
        called = self.called(name) if self.promised.mask else ()
        return next((mask for pattern, mask in self.promised.mask.items() if matches(called, [pattern])), None)

    def tracked(self, names: Iterable[str]) -> frozenset[str] | None:
        """Return the columns, by today's names, whose changes begin a version; None: each event begins one."""
        history = self.promised.history
        if not isinstance(history, History):
            return None
        called = {name: self.called(name) for name in names}
        return frozenset(
            name
            for name, all_names in called.items()
            if (history.track is None or matches(all_names, history.track)) and not matches(all_names, history.ignore)
        )

    def masks(self, names: Iterable[str]) -> Masks:
        """Return the masks of columns, by today's names."""
        kinds = ((name, self.mask_of(name)) for name in names)
        return Masks({name: mask for name, mask in kinds if mask is not None}, self.variable)

    def called(self, name: str) -> list[str]:
        """Return every name that a column had or has: at the source, in any shard, and as it is published."""
        return connected(self._followed(name), self.pairs)

    def elsewhere(self, name: str, columns: Iterable[str]) -> list[str]:
        """Return which other columns of the table have values of the same column of the source."""
        if not self.pairs or name in self.own:
            return []
        same = {each.casefold() for each in connected([name, self.names.at_source(name)], self.pairs)}
        return [each for each in columns if each != name and each not in self.own and each.casefold() in same]

    def _followed(self, name: str) -> list[str]:
        """Return today's names of a column, and those that it had before renames that the table followed."""
        then = ((each.old, self.names.epoch(each.position)) for each in self.names.renamings)
        return [name, self.names.at_source(name), *(old for old, epoch in then if self.names.today(old, epoch) == name)]


def refuse_unfit(table: str, key: Sequence[str], masks: Masks, left_out: Iterable[str]) -> None:
    """Refuse rules under which rows could not be told apart.

    Raises:
        IncompatibleSchemaError: a column of the key has another mask than ``hmac``; or the table has no key, and a
            column that tells its rows apart would go.
    """
    for name in key:
        if masks.kinds.get(name) not in {None, Mask.HMAC}:
            raise IncompatibleSchemaError(f"{table}: {name!r} is part of the key; only hmac keeps rows apart")
    if key:
        return
    lossy = [name for name, mask in masks.kinds.items() if mask not in ONE_TO_ONE]
    if gone := sorted({*left_out, *lossy}):
        raise IncompatibleSchemaError(
            f"{table}: it has no key, so all columns together tell its rows apart. Publish "
            f"{', '.join(map(repr, gone))} as they are or masked with hmac, or give the table a key with `key:`"
        )


def names_recorded(table: Table | None) -> dict[str, str]:
    """Return which columns of a published table have other names than at the source: name there to published name."""
    names: dict[str, str] = json.loads(table.properties.get(NAMES_PROPERTY, "{}")) if table is not None else {}
    return names


def refuse_names_twice(table: str, called: Mapping[str, str], columns: Iterable[str]) -> None:
    """Refuse to publish a column under the name of another one.

    Args:
        table: as the source names it.
        called: name at the source to published name.
        columns: names of columns in messages and statements.

    Raises:
        IncompatibleSchemaError: the source has, or had, a column of such a name.
    """
    for name, new in called.items():
        if new in columns:
            raise IncompatibleSchemaError(
                f"{table}: `rename` calls {name!r} {new!r}, and the source has a column of that name: choose another"
            )


def recorded(table: Table | None) -> dict[str, Any]:
    """Return what a table records of its rules: ``left_out``, ``masks``, ``variable``, ``check``; empty for nothing."""
    rules: dict[str, Any] = json.loads(table.properties.get(RULES_PROPERTY, "{}")) if table is not None else {}
    return rules


def labels(rules: Mapping[str, Any]) -> dict[str, str]:
    """Return by column how a table's values are masked, and with which secret: with another one they are others."""
    masks, check = rules.get("masks", {}), rules.get("check")
    return {name: f"{mask} {check}" if mask == Mask.HMAC else mask for name, mask in masks.items()}


def masks_recorded(table: Table) -> Masks:
    """Return the masks that a published table was built with."""
    rules = recorded(table)
    return Masks({name: Mask(mask) for name, mask in rules.get("masks", {}).items()}, rules.get("variable"))


def to_record(
    promised: model.Table, masks: Masks, left_out: Iterable[str], stored: Mapping[str, str], before: Mapping[str, Any]
) -> str | None:
    """Return what the table is to record, as JSON; None where there is nothing to record, and was nothing.

    Args:
        promised: what the source file says of it.
        masks: of its columns.
        left_out: columns that are not published.
        stored: the names that its columns have until the cut is published, by today's names.
        before: what it records now.
    """
    names = sorted({*left_out, *before.get("left_out", ())} - stored.keys())
    rules: dict[str, Any] = {"left_out": names} if names else {}
    if masks.kinds:
        kinds = {**masks.kinds, **{stored[name]: mask for name, mask in masks.kinds.items()}}
        rules["masks"] = {name: mask.value for name, mask in sorted(kinds.items())}
        if masks.variable and Mask.HMAC in masks.kinds.values():
            rules |= {"variable": masks.variable, "check": check_of(masks.variable)}
    rules |= row_rules(promised)
    return json.dumps(rules) if rules or before else None


def row_rules(promised: model.Table) -> dict[str, Any]:
    """Return what a table records of ``where`` and ``derive``; empty for nothing."""
    rules = {"where": promised.where, "derive": promised.derive}
    return {name: value for name, value in rules.items() if value}


def refuse_other_rows(table: str, before: Mapping[str, Any], promised: model.Table) -> None:
    """Refuse to go on from rows that were chosen or made by other expressions.

    Args:
        table: as the source names it.
        before: what the published table records.
        promised: what the source file says.

    Raises:
        RebuildNeededError: the source file has another ``where``, or another ``derive``.
    """
    now = row_rules(promised)
    for name in ("where", "derive"):
        if before.get(name) != now.get(name):
            then, wanted = (json.dumps(each.get(name)) if each.get(name) else "nothing" for each in (before, now))
            raise RebuildNeededError(f"{table}: `{name}` was {then}, and is {wanted} now")


def derived_columns(table: Table) -> frozenset[str]:
    """Return the columns of a published table that expressions made: no message has them."""
    return frozenset(recorded(table).get("derive", {}))


def refuse_masked_otherwise(source: str, table: str, masks: Masks, columns: Iterable[tuple[str, Column]]) -> None:
    """Refuse to read values that were masked before they were written, and otherwise than the source file says now.

    Args:
        source: name of the source.
        table: as the source names it.
        masks: of its columns.
        columns: columns of images, each with today's name.

    Raises:
        IncompatibleSchemaError: only the messages have the plain values.
    """
    for name, column in columns:
        if column.masked is not msgspec.UNSET and column.masked != masks.label(name):
            then, now = column.masked.partition(" ")[0], masks.kinds.get(name, "not masked")
            change = f"was {then}, and is to be {now} now" if then != now else f"has another secret ({now})"
            raise IncompatibleSchemaError(
                f"{table}: the change log has values of {column.name!r} that were masked when they landed: the mask "
                f"{change}. `tidemark run {source} --reprocess` derives them anew from the messages"
            )


def refuse_stale(
    table: str, before: Mapping[str, Any], masks: Masks, columns: Iterable[str], stored: Mapping[str, str]
) -> None:
    """Refuse to go on from rows that were built by other rules.

    Args:
        table: as the source names it.
        before: what the published table records.
        masks: of its columns.
        columns: its columns, by today's names.
        stored: the names of those that it has already, by today's names.

    Raises:
        RebuildNeededError: stored values are masked otherwise than the source file says, or were left out so far.
    """
    was = before.get("masks", {})
    for name in columns:
        now = masks.kinds.get(name)
        if name not in stored:
            if name in before.get("left_out", ()):
                raise RebuildNeededError(f"{table}: column {name!r} was left out so far, and is to be published now")
        elif was.get(stored[name]) != now:
            then = was.get(stored[name]) or "not masked"
            raise RebuildNeededError(f"{table}: column {name!r} was {then}, and is to be {now or 'not masked'} now")
    keyed = Mask.HMAC in masks.kinds.values() and Mask.HMAC in was.values()
    if keyed and masks.variable and check_of(masks.variable) != before.get("check"):
        raise RebuildNeededError(f"{table}: the secret of its masks changed")
