"""What a cut does to one table: its target, columns and types, key, and how its images are read.

Decided on the driver from the shapes that the batch's events were delivered under: a handful of rows, whatever the
number of events. Types come from the source file first, then from the shapes, then from the values seen.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from pyiceberg.table import Table

from tidemark import formats, sources
from tidemark.declared import held_by
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.events import Column, Shape
from tidemark.evolution import NEW_PREFIX, is_empty, names_today
from tidemark.images import TableColumn, by_table_name
from tidemark.lake import Identifier
from tidemark.plan import Default, Found, Plan
from tidemark.schema_history import Names
from tidemark.table_schemas import (
    DELETED,
    IS_CURRENT,
    OBJECT_PROPERTY,
    OWN_COLUMNS,
    OWN_PREFIX,
    POSITION,
    SOURCE_PROPERTY,
    VALID_FROM,
    VALID_TO,
    columns_of,
    key_of,
    unsettled_columns,
    void_columns,
)
from tidemark.types import declared, is_number, joined, wider

_HISTORY_COLUMNS = (VALID_FROM, VALID_TO, IS_CURRENT)
_RESERVED_COLUMNS = frozenset({
    "", "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number",
    "_change_type", "_change_ordinal", "_commit_snapshot_id",
})  # fmt: skip
"""Iceberg's metadata columns: engines refuse to open a table that has one of them (Iceberg specification, Reserved
Field IDs)."""


def target_of(source: sources.Source, found: Found) -> Identifier:
    """Where a table is published.

    Raises:
        IncompatibleSchemaError: the names that the messages bring cannot name a table.
    """
    parts = {
        "source": source.source,
        "database": found.database or "",
        "schema": found.schema or "",
        "table": found.name,
    }
    namespace, _, name = source.target.format_map(parts).partition(".")
    for part in (namespace, name):
        if problem := name_problem(part):
            raise IncompatibleSchemaError(f"{found.object}: {part!r} {problem}; name the table with `target:`")
    return (namespace, name)


def plan(source: sources.Source, found: Found, table: Table | None, *, anew: bool = False) -> Plan:
    """Decide columns, types and key of a table.

    Args:
        source: the source file.
        found: what the change log tells.
        table: the published table, where there is one.
        anew: whether its columns, types and key are to be forgotten.

    Raises:
        IncompatibleSchemaError: the change would lose data, or the key changed.
    """
    promised = source.table_for(found.object)
    _claim(source, found, table)
    table = None if anew else table
    follows = source.schema_policy is not sources.SchemaPolicy.IGNORE
    evolving = _evolving(found, promised, table)
    evolved = _columns(evolving, table, follows=follows, history=promised.history)
    columns, today = evolved.columns, evolved.today
    if source.schema_policy is sources.SchemaPolicy.STRICT and table is not None:
        _refuse_changes(found, table, evolved, _unsettled(evolving, table))
    key = _key(source.source, evolving, promised, table, [column.name for column in columns])
    soft = promised.deletes is sources.Deletes.SOFT
    if table is not None and not soft and DELETED in table.schema().column_names:
        raise IncompatibleSchemaError(
            f"{found.object}: the source file says `deletes: hard`, but the table holds rows that were deleted softly; "
            f"write `deletes: soft` again, or fold it anew with `tidemark rebuild {source.source} {found.object}`"
        )
    if not key and (soft or promised.history):
        raise IncompatibleSchemaError(
            f"{found.object}: nothing tells its rows apart, so it can have neither a history nor soft deletes: give it "
            "a key with `key:`, or leave `history` and `deletes` out"
        )
    return Plan(
        found=found,
        target=target_of(source, found),
        key=key,
        columns=tuple(columns),
        today=today,
        void=evolved.void,
        begun=evolved.begun,
        defaults=_defaults(found, evolving.names),
        pairs_updates=not key and formats.pairs_updates(formats.resolve(source.format)),
        history=promised.history,
        soft=soft,
    )


def names_of(found: Found, table: Table | None) -> Names:
    """Follows the names of a table's columns."""
    stored = (name.removeprefix(NEW_PREFIX) for name, _ in columns_of(table))
    return Names(found.history.renamings, [*(column.name for column in _all_columns(found.shapes.values())), *stored])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evolving:
    """A table on its way to the schema of today."""

    found: Found
    promised: Mapping[str, str]
    """Types of the source file, by today's names."""
    names: Names
    before: Mapping[str, str | None]
    """Stored columns, and what each is called today."""

    def told(self) -> Iterable[tuple[str, Column]]:
        """Columns that messages tell, by today's names."""
        for shape_id, shape in self.found.shapes.items():
            yield from by_table_name(shape_id, shape, self.found.names)


def _evolving(found: Found, promised: sources.Table, table: Table | None) -> _Evolving:
    names = names_of(found, table)
    before = _names_today(found, names, table)
    return _Evolving(found=found, promised=_promised(promised, names, before), names=names, before=before)


def _names_today(found: Found, names: Names, table: Table | None) -> dict[str, str | None]:
    stored = [name for name, _ in columns_of(table)]
    if table is None or not (names.renamings or any(name.startswith(NEW_PREFIX) for name in stored)):
        return {name: name for name in stored}
    return names_today(found.object, table, stored, names, found.after, POSITION)


def _promised(promised: sources.Table, names: Names, before: Mapping[str, str | None]) -> dict[str, str]:
    """Types of the source file, which may name columns as they were called once."""
    types = {}
    for name, kind in promised.columns.items():
        types[name if name in before.values() else names.today(name, 0) or name] = kind
    return {**types, **promised.columns}


def _defaults(found: Found, names: Names) -> dict[str, Default]:
    defaults: dict[str, Default] = {}
    for told in found.history.additions:
        name = names.today(told.name, names.epoch(told.position, after=True))
        if told.default is not None and name is not None:
            defaults.setdefault(name, Default(told.position, told.batch, told.default))
    return defaults


def _refuse_changes(found: Found, table: Table, evolved: _Evolved, unsettled: Container[str]) -> None:
    existing = dict(columns_of(table))
    stored = {new: old for old, new in evolved.today.items()}
    changes = [
        f"{old!r} is {'gone' if new is None else f'called {new!r}'}"
        for old, new in evolved.today.items()
        if old in existing and old not in evolved.begun
    ]
    for name, kind in evolved.columns:
        if name in unsettled:
            continue
        was = existing.get(stored.get(name, name))
        if was is None:
            changes.append(f"{name!r} is new")
        elif was != kind:
            changes.append(f"{name!r} was {was} and is {kind}")
    if changes:
        raise IncompatibleSchemaError(
            f"{found.object}: the schema changed at the source, and the source file says `schema: strict`: "
            f"{', '.join(changes)}. To allow it, run once with `schema: evolve`."
        )


def _claim(source: sources.Source, found: Found, table: Table | None) -> None:
    """Refuse to write one table over what another was published as."""
    if table is None:
        return
    owner = (table.properties.get(SOURCE_PROPERTY), table.properties.get(OBJECT_PROPERTY))
    if owner != (source.source, found.object):
        raise IncompatibleSchemaError(
            f"{found.object} would be published as {'.'.join(target_of(source, found))}, which holds {owner[1]} of "
            f"source {owner[0]}; tell them apart with `target:`"
        )


def unknown_columns(source: sources.Source, plan: Plan) -> list[str]:
    """Columns that the source file gives a type in a table's own entry, and that the table neither has nor had."""
    entry = source.tables.get(plan.found.object)
    known = {column.name for column in plan.columns} | {told.old for told in plan.found.history.renamings}
    return sorted(entry.columns.keys() - known) if entry else []


def untyped(found: Found, source: sources.Source, table: Table | None) -> list[str]:
    """Columns, by today's names, whose type neither source file, nor messages, nor table tell: the values decide."""
    evolving = _evolving(found, source.table_for(found.object), table)
    unsettled = _unsettled(evolving, table)
    known = {*evolving.promised, *(name for name in evolving.before.values() if name not in unsettled)}
    known |= {name for name, column in evolving.told() if column.type is not None}
    unknown = [name for name in dict.fromkeys(name for name, _ in evolving.told()) if name not in known]
    if table is not None and source.schema_policy is sources.SchemaPolicy.IGNORE:
        return [name for name in unknown if name in unsettled]  # columns that are left out need no type
    return unknown


def _unsettled(evolving: _Evolving, table: Table | None) -> set[str]:
    """Columns, by today's names, whose type no published row needs."""
    names = (evolving.before.get(name) for name in unsettled_columns(table))
    return {name for name in names if name is not None}


def _all_columns(shapes: Iterable[Shape]) -> Iterable[Column]:
    return (column for shape in shapes for column in shape.columns)


class _Evolved(NamedTuple):
    """A table's columns, and what becomes of stored ones."""

    columns: list[TableColumn]
    today: dict[str, str | None]
    """Of those that do not stay as they are called."""
    void: set[str]
    begun: dict[str, str]
    """Stored columns that were void, to the names that they have today."""


def _columns(evolving: _Evolving, table: Table | None, *, follows: bool, history: bool) -> _Evolved:
    found = evolving.found
    stored = {evolving.before[name]: (name, kind) for name, kind in columns_of(table)}
    unsettled = _unsettled(evolving, table)
    types = {name: kind for name, (_, kind) in stored.items() if name is not None and name not in unsettled}
    order = [name for name in map(evolving.before.get, dict(columns_of(table))) if name is not None]
    today = {old: new for old, new in evolving.before.items() if old != new}
    for shape_id, shape in found.shapes.items():
        told = [
            each for each in by_table_name(shape_id, shape, found.names) if follows or not stored or each[0] in stored
        ]
        _merge_order(order, list(dict.fromkeys(name for name, _ in told)))
        for name, column in told:
            kind = _type_of(evolving, name, column)
            if kind is None:
                continue
            old = types.get(name)
            if old is not None and wider(old, kind) is None and _unused(table, stored.get(name)):
                today[stored.pop(name)[0]] = None  # a column without any value may have any type
                old = None
            types[name] = _agreed(found, name, old, kind)
    if follows:
        _follow_ddl(evolving, order, types, stored.keys() - unsettled)
    were_void = void_columns(table)
    for name in [name for name in types if name in stored and stored[name][0] in were_void]:
        old, kind = stored[name]
        if table is not None and is_empty(table, old):
            today[stored.pop(name)[0]] = None  # a new column takes its place
        else:  # somebody wrote into it, or marked it
            types[name] = kind if name in found.inferred else _agreed(found, name, kind, types[name])
    _refuse_rewriting(found, stored, types, unsettled)
    void = _settle(order, types, stored, were_void)
    _refuse_names(found, order, history=history)
    occupied = dict(columns_of(table))
    for name in order:
        if name not in stored and name in occupied:
            today[NEW_PREFIX + name] = name
    columns = [TableColumn(name, types[name]) for name in order]
    begun = {old: evolving.before[old] or old for old in were_void if today.get(old, old) is None}
    return _Evolved(columns, today, void, begun)


def _type_of(evolving: _Evolving, name: str, column: Column) -> str | None:
    """The type that source file, message or values tell, in this order."""
    found = evolving.found
    kind = evolving.promised.get(name) or column.type or found.inferred.get(name)
    others = held_by(column.encoding, kind) if kind else None
    if others:
        raise IncompatibleSchemaError(
            f"{found.object}: column {name!r} comes as {column.encoding}, which no {kind} holds; give it another type "
            f"in the source file (`columns: {{{name}: ...}}`): {', '.join(others)}"
        )
    return kind


def _refuse_rewriting(
    found: Found, stored: Mapping[str | None, tuple[str, str]], types: Mapping[str, str], unsettled: set[str]
) -> None:
    """Refuse types that hold all values, but not as they lie in the table's files."""
    for name, (_, kind) in stored.items():
        if name is not None and name in types.keys() - unsettled and wider(kind, types[name]) != types[name]:
            raise RebuildNeededError(
                f"{found.object}: column {name!r} changed from {kind} to {types[name]}, for which the published rows "
                "have to be written again"
            )


def _settle(
    order: Sequence[str],
    types: dict[str, str],
    stored: Mapping[str | None, tuple[str, str]],
    were_void: Container[str],
) -> set[str]:
    """Give every column a type; the names of those of which nothing tells it: text can hold whatever comes."""
    void = {name for name in order if name not in types and (name not in stored or stored[name][0] in were_void)}
    for name in order:
        kind = stored[name][1] if name in stored else types.get(name, "string")
        types[name] = wider(kind, types.get(name, kind)) or types[name]
    return void


def _unused(table: Table | None, stored: tuple[str, str] | None) -> bool:
    """Whether a stored column holds nothing; one of the key counts as used, as its type is that of tombstones too."""
    if table is None or stored is None or stored[0] in key_of(table):
        return False
    return is_empty(table, stored[0])


def _follow_ddl(evolving: _Evolving, order: list[str], types: dict[str, str], stored: Container[str | None]) -> None:
    """Add columns that DDL alone tells, and change types; what messages and the source file tell comes first."""
    found, names = evolving.found, evolving.names
    told = {name for name, column in evolving.told() if column.type is not None} | evolving.promised.keys()
    for addition in found.history.additions:
        name = names.today(addition.name, names.epoch(addition.position, after=True))
        if name is None or addition.type is None or addition.batch <= found.after:
            continue
        name = next((known for known in order if names.same(known, name)), name)
        if name in told or (addition.retyped and name not in order):
            continue
        old = types.get(name)
        if name not in stored and old is not None:
            # Values seen tell less than a declaration: a number without a fraction may be of a type that has one.
            types[name] = addition.type if is_number(old) and is_number(addition.type) else old
            continue
        kind = declared(found.object, name, old, addition.type)
        if kind is not None:
            types[name] = kind
            if name not in order:
                order.append(name)


def _refuse_names(found: Found, columns: Iterable[str], *, history: bool) -> None:
    for name in columns:
        if problem := _column_problem(name, history=history):
            raise IncompatibleSchemaError(
                f"{found.object}: a column is called {name!r}, {problem}; of a table that is published, "
                "`schema: ignore` leaves new columns out"
            )


def _column_problem(name: str, *, history: bool) -> str | None:
    if history and name in _HISTORY_COLUMNS:
        return "which the history of a table keeps for itself, so leave `history` out for it"
    if name in OWN_COLUMNS or name.startswith(OWN_PREFIX):
        return "which Tidemark keeps for itself"
    return "which Iceberg keeps for itself" if name in _RESERVED_COLUMNS else None


def _merge_order(order: list[str], names: Sequence[str]) -> None:
    """Put new names behind the one they follow in the message."""
    place = 0
    for name in names:
        if name in order:
            place = order.index(name) + 1
        else:
            order.insert(place, name)
            place += 1


def _agreed(found: Found, name: str, old: str | None, new: str) -> str:
    if old is None:
        return new
    agreed = joined(old, new)
    if agreed is None:
        raise IncompatibleSchemaError(
            f"{found.object}: column {name!r} changed from {old} to {new}, which would lose data. The table stays as "
            f"it is; give the type in the source file (`columns: {{{name}: ...}}`) and rebuild the table."
        )
    return agreed


def _key(
    source: str, evolving: _Evolving, promised: sources.Table, table: Table | None, names: Sequence[str]
) -> tuple[str, ...]:
    found = evolving.found

    def today(key: Sequence[str]) -> tuple[str, ...]:
        """A key that may be told by the names of once."""
        return tuple(name if name in names else evolving.names.today(name, 0) or name for name in key)

    stored = tuple(evolving.before.get(name) or name for name in key_of(table))
    told = {today(key) for key in found.keys if key}
    if promised.key is not None:
        key = today(promised.key)
    elif len(told) > 1:
        raise IncompatibleSchemaError(
            f"{found.object}: messages name different keys {sorted(told)}; give one with `key:`"
        )
    else:
        key = next(iter(told), stored)
    if table is not None and key != stored:
        again = f"rebuild it (`tidemark rebuild {source} {found.object}`)"
        if not stored:
            raise IncompatibleSchemaError(
                f"{found.object} was published without a key, as a bag of rows, and now has the key {list(key)}: "
                f"{again}, or write `key: []` in the source file"
            )
        raise IncompatibleSchemaError(f"{found.object}: the key changed from {list(stored)} to {list(key)}: {again}")
    missing = [name for name in key if name not in names]
    if missing:
        raise IncompatibleSchemaError(f"{found.object}: no message has the key column {missing[0]!r}")
    return key


def shape_from(text: str) -> Shape:
    """A shape as the change log keeps it."""
    return Shape(msgspec.json.decode(text, type=tuple[Column, ...]))


_SAFE_NAME = re.compile(r"[^\W\d][\w $-]{0,126}")
_RESERVED = re.compile(r"(branch|tag|at_timestamp|snapshot_id)_.*|.*__(changes|history|state)", re.IGNORECASE)
_METADATA_TABLE = re.compile(
    "history|snapshots|files|manifests|entries|partitions|refs|metadata_log_entries|position_deletes|data_files"
    "|delete_files|changes|all_(data_files|delete_files|files|manifests|entries)",
    re.IGNORECASE,
)


def name_problem(name: str) -> str | None:
    """Why a name from a message cannot name a table, or None when it can.

    Catalogs turn names into paths and engines read some as metadata tables or branches, so a name that a message
    brings must be plain: a letter or underscore, then letters, digits, underscores, ``$``, blanks and hyphens.
    """
    if not _SAFE_NAME.fullmatch(name):
        return "is not a plain name (a letter or underscore, then letters, digits, _ $ - or blanks; 127 at most)"
    if _METADATA_TABLE.fullmatch(name) or _RESERVED.fullmatch(name):
        return "is a name that Iceberg or Tidemark uses for something else"
    return None
