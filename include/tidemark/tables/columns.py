"""The columns of a table: names, order and types, derived from the source file, the messages and the stored table."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from pyiceberg.table import Table

from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.events import Column
from tidemark.sources import model
from tidemark.sources.schema_policy import Added, Retyped, SchemaPolicies
from tidemark.tables.evolving import Evolving, evolving_of
from tidemark.tables.plan import Found, Plan
from tidemark.tables.reserved_names import refuse_names
from tidemark.tables.schemas import columns_of, key_of, unsettled_columns, void_columns
from tidemark.tables.stored_names import NEW_PREFIX, has_value
from tidemark.values.declared_types import types_for
from tidemark.values.message_types import table_type
from tidemark.values.table_columns import TableColumn
from tidemark.values.types import declared, is_number, wider


def unknown_columns(source: model.Source, plan: Plan) -> list[str]:
    """Return the columns that have a type in the source file's entry of a table, and that the table never had."""
    entry = source.tables.get(plan.found.object)
    known = {column.name for column in plan.columns} | {renaming.old for renaming in plan.found.history.renamings}
    known |= plan.found.called.keys()
    return sorted(entry.columns.keys() - known) if entry else []


def untyped(found: Found, source: model.Source, table: Table | None) -> list[str]:
    """Return the columns whose type must be inferred from values.

    The source file, the messages and the table declare no type for them. Names are today's names.
    """
    evolving = evolving_of(source, found, table)
    unsettled = unsettled_names(evolving, table)
    known = {*evolving.promised, *(name for name in evolving.before.values() if name not in unsettled)}
    known |= {name for name, column in evolving.message_columns() if column.type is not None}
    unknown = [name for name in dict.fromkeys(name for name, _ in evolving.message_columns()) if name not in known]
    if table is not None and source.policies_for(found.object).add is Added.IGNORE:
        return [name for name in unknown if name in unsettled]  # columns that are left out need no type
    return unknown


def unsettled_names(evolving: Evolving, table: Table | None) -> set[str]:
    """Return the columns, by today's names, whose type may still change freely, because no published row needs it."""
    names = (evolving.before.get(name) for name in unsettled_columns(table))
    return {name for name in names if name is not None}


class Evolved(NamedTuple):
    """The columns that a table will have, and what becomes of the stored columns."""

    columns: list[TableColumn]
    today: dict[str, str | None]
    """The new name of each stored column that gets another one; None for a column that goes."""
    void: set[str]
    """Columns without any value so far, for which nothing declares a type."""
    begun: dict[str, str]
    """Stored columns that were void, and go now because they get values: today's names of their successors."""


def evolved_columns(
    evolving: Evolving, table: Table | None, policies: SchemaPolicies, promised: model.Table
) -> Evolved:
    """Return the columns that a table will have, in their order, and what becomes of the stored columns.

    Args:
        evolving: what the columns are derived from.
        table: as it is published; None for a table that begins.
        policies: what schema changes do to the table. Columns that are ignored are left out of a table that exists.
        promised: what the source file says of the table; a history and a feed reserve more names for their own columns.

    Raises:
        IncompatibleSchemaError: a change would lose data, or a column has a reserved name, or an encoding that
            does not fit its type.
        RebuildNeededError: the published rows must be written again for a new type, or for one that a statement gave
            otherwise than messages do.
    """
    found, grows = evolving.found, policies.add is not Added.IGNORE
    stored = {evolving.before[name]: (name, kind) for name, kind in columns_of(table)}
    unsettled = unsettled_names(evolving, table)
    types = {name: kind for name, (_, kind) in stored.items() if name is not None and name not in unsettled}
    order = [name for name in map(evolving.before.get, dict(columns_of(table))) if name is not None]
    today = {old: new for old, new in evolving.before.items() if old != new}
    # What is published stays, and a value that it cannot hold is set aside.
    open_ended = {name: types.get(name, kind) for name, kind in evolving.open_ended().items()}
    for shape_id in found.shapes:
        columns_by_name = [each for each in evolving.columns_of(shape_id) if grows or not stored or each[0] in stored]
        _merge_order(order, list(dict.fromkeys(name for name, _ in columns_by_name)))
        for name, column in columns_by_name:
            kind = open_ended.get(name) or _type_of(evolving, name, column)
            if kind is None:
                continue
            old = types.get(name)
            if old is not None and wider(old, kind) is None and _unused(found, table, stored.get(name)):
                today[stored.pop(name)[0]] = None  # a column without any value may get any type
                old = None
            types[name] = evolving.agreed(name, old, kind)
    if grows or policies.type is not Retyped.KEEP:
        _follow_ddl(evolving, order, types, stored.keys() - unsettled)
    were_void = void_columns(table)
    for name in [name for name in types if name in stored and stored[name][0] in were_void]:
        old, kind = stored[name]
        if table is not None and not has_value(found, table, old):
            today[stored.pop(name)[0]] = None  # a new column takes its place
        else:  # somebody else wrote values into it, or gave it the mark
            types[name] = kind if name in found.inferred else evolving.agreed(name, kind, types[name])
    _refuse_rewriting(found, stored, types, unsettled)
    void = _settle(order, types, stored, were_void)
    refuse_names(found, order, promised)
    occupied = dict(columns_of(table))
    for name in order:
        if name not in stored and name in occupied:
            today[NEW_PREFIX + name] = name
    columns = [TableColumn(name, types[name]) for name in order]
    begun = {old: evolving.before[old] or old for old in were_void if today.get(old, old) is None}
    return Evolved(columns, today, void, begun)


def _type_of(evolving: Evolving, name: str, column: Column) -> str | None:
    """Return the type of a column: from the source file, else from the message, else from its values, else None.

    Raises:
        IncompatibleSchemaError: the type cannot hold values of the column's encoding.
    """
    found = evolving.found
    of_message = table_type(column.type) if column.type else None
    kind = evolving.promised.get(name) or of_message or found.inferred.get(name)
    others = types_for(column.encoding, kind) if kind else None
    if others:
        raise IncompatibleSchemaError(
            f"{found.object}: column {name!r} comes as {column.encoding}, which no {kind} holds; give it another type "
            f"in the source file (`columns: {{{name}: ...}}`): {', '.join(others)}"
        )
    return kind


def _refuse_rewriting(
    found: Found, stored: Mapping[str | None, tuple[str, str]], types: Mapping[str, str], unsettled: set[str]
) -> None:
    """Refuse types that can hold all values, but cannot read them as they are written in the table's files."""
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
    """Give every column a type, and return the void columns. They are text for now: text can hold any value."""
    void = {name for name in order if name not in types and (name not in stored or stored[name][0] in were_void)}
    for name in order:
        kind = stored[name][1] if name in stored else types.get(name, "string")
        types[name] = wider(kind, types.get(name, kind)) or types[name]
    return void


def _unused(found: Found, table: Table | None, stored: tuple[str, str] | None) -> bool:
    """Return whether a stored column has no value, in rows of today or in versions that they had before.

    A key column counts as used, because tombstones have its type too.
    """
    if table is None or stored is None or stored[0] in key_of(table):
        return False
    return not has_value(found, table, stored[0])


def _follow_ddl(evolving: Evolving, order: list[str], types: dict[str, str], stored: Container[str | None]) -> None:
    """Add columns and change types as DDL says. Types of the messages and of the source file come before DDL.

    Raises:
        IncompatibleSchemaError: a boolean becomes a number.
    """
    found, names = evolving.found, evolving.names
    declared_types = {name for name, column in evolving.message_columns() if column.type is not None}
    declared_types |= evolving.promised.keys()
    for addition in found.history.additions:
        name = names.today(addition.name, names.behind(addition))
        if name is None or addition.type is None or addition.batch <= found.published_batch:
            continue
        if not evolving.rules.is_published(name) or evolving.rules.mask_of(name):
            continue
        name = next((known for known in order if names.same(known, name)), name)
        if name in declared_types or (addition.retyped and name not in order):
            continue
        old = types.get(name)
        if name not in stored and old is not None:
            # A declaration says more than the values so far: numbers without fractions may be of a type with fractions.
            of_one_kind = is_number(old) and (is_number(addition.type) or addition.type == "string")
            types[name] = addition.type if of_one_kind else old
            continue
        kind = declared(old, addition.type)
        if kind is None and old is not None:
            kind = evolving.agreed(name, old, addition.type)
        if kind is not None:
            types[name] = kind
            if name not in order:
                order.append(name)


def _merge_order(order: list[str], names: Sequence[str]) -> None:
    """Insert new names into ``order``, each behind the name that it follows in the message."""
    place = 0
    for name in names:
        if name in order:
            place = order.index(name) + 1
        else:
            order.insert(place, name)
            place += 1
