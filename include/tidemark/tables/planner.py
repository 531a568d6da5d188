"""Plans what a cut does to one table: its target, its columns and their types, its key, and how its images are read.

The plan is made on the driver, from the shapes of the new events: a handful of rows, whatever the number of events.
Types come from the source file first, then from the shapes, then from the values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.table import Table

from tidemark.errors import IncompatibleSchemaError
from tidemark.sources import choices, model
from tidemark.sources.history import History
from tidemark.sources.routes import SHARD_COLUMN
from tidemark.tables import column_rules, feeds, keys, layouts, row_checks, row_rules, schema_policies, shard_rules
from tidemark.tables.columns import Evolved, evolved_columns
from tidemark.tables.defaults import defaults_of
from tidemark.tables.evolving import Evolving, evolving_of
from tidemark.tables.plan import Default, Found, Plan
from tidemark.tables.row_checks import RowCheck
from tidemark.tables.schemas import DELETED, columns_of
from tidemark.tables.targets import claim, named
from tidemark.values.masking import Masks
from tidemark.values.table_columns import TableColumn
from tidemark.values.types import wider


def plan(source: model.Source, found: Found, table: Table | None, *, anew: bool = False) -> Plan:
    """Return the plan for a table.

    Args:
        source: the source file.
        found: what is known of the table and its new events.
        table: the published table; None if there is none.
        anew: whether to forget its columns, types and key, because all events are folded again.

    Raises:
        IncompatibleSchemaError: a schema change would lose data, the key changed, or the source file asks for what the
            table cannot have.
        RebuildNeededError: a schema change needs the published rows to be written again.
    """
    promised = source.table_for(found.object)
    claim(source, found, found.published, anew=anew)
    built_by = column_rules.recorded(found.published)
    table = None if anew else table
    _refuse_shards(found, promised, table)
    evolving = evolving_of(source, found, table)
    stored = {new: old for old, new in evolving.before.items() if new is not None}
    if table is not None:  # before types are compared: a mask makes text of any type
        _refuse_stale(evolving, promised, built_by, stored)
    evolved = _evolved(source, evolving, table)
    # The column that tells shards apart stands last, as Tidemark's own columns do.
    columns = sorted(evolved.columns, key=lambda column: bool(found.shards) and column.name == SHARD_COLUMN)
    stored_as = {column.name: stored.get(column.name, column.name) for column in columns}
    key, masks = keys.planned(evolving, promised, table, list(stored_as)), evolving.rules.masks(stored_as)
    _refuse_columns(source, evolving, key, masks)
    _refuse_kept(source.source, found, promised, table, key)
    defaults = _defaults(evolving, table, key, columns)
    checks = _row_checks(evolving, promised, table, key, evolved, defaults)
    rules = row_rules.planned(evolving, promised, columns, goes_on=table is not None)
    _refuse_layout(found, promised, table, evolved, rules)
    return Plan(
        found=found,
        target=found.target or named(source, found.at_source),
        key=(*key, SHARD_COLUMN) if found.shards else key,
        columns=tuple(columns),
        today=evolved.today,
        void=evolved.void,
        begun=evolved.begun,
        defaults=defaults,
        pairs_updates=not key and source.traits.pairs_updates,
        has_deliveries=source.traits.has_deliveries,
        ranks_copies=source.traits.ranks_copies,
        keeps_versions=bool(promised.history),
        tracked=rules.tracked(evolving.rules.tracked(stored_as)),
        tracking=promised.history.rule if isinstance(promised.history, History) else None,
        is_fed=promised.feed,
        soft=promised.deletes is choices.Deletes.SOFT,
        compares=not checks and _compares(source, found, has_key=bool(key)),
        compares_images=not checks and _compares_images(source, found, has_key=bool(key)),
        row_checks=checks,
        masks=masks,
        names_record=json.dumps(found.called) if found.called or column_rules.names_recorded(found.table) else None,
        where=rules.where,
        derived=rules.derived,
        column_rules=column_rules.to_record(promised, masks, evolving.left_out(), stored_as, built_by),
    )


def _refuse_columns(source: model.Source, evolving: Evolving, key: Sequence[str], masks: Masks) -> None:
    table = evolving.found.object
    column_rules.refuse_unfit(table, key, masks, evolving.left_out())
    column_rules.refuse_masked_otherwise(source.source, table, masks, evolving.message_columns())


def _evolved(source: model.Source, evolving: Evolving, table: Table | None) -> Evolved:
    """Return the columns that a table gets, if the source file allows their names and what changed of them."""
    found, policies = evolving.found, source.policies_for(evolving.found.object)
    evolved = evolved_columns(evolving, table, policies, source.table_for(found.object))
    column_rules.refuse_names_twice(found.object, found.called, evolving.named())
    if table is not None:
        schema_policies.refuse(found, table, evolved, evolving, policies)
    return evolved


def _refuse_stale(
    evolving: Evolving, promised: model.Table, built_by: Mapping[str, Any], stored: Mapping[str, str]
) -> None:
    """Refuse to go on from rows that other masks, or other expressions, made."""
    table = evolving.found.object
    shown = [*dict.fromkeys([*stored, *(name for name, _ in evolving.message_columns())])]
    column_rules.refuse_stale(table, built_by, evolving.rules.masks(shown), shown, stored)
    column_rules.refuse_other_rows(table, built_by, promised)


def _defaults(
    evolving: Evolving, table: Table | None, key: Sequence[str], columns: Sequence[TableColumn]
) -> dict[str, Default]:
    """Return the defaults of added columns; a key column cannot get one late."""
    defaults = defaults_of(evolving.found, evolving.names, columns)
    if table is not None:
        keys.refuse_late(evolving.found, key, defaults)
    return defaults


def _row_checks(
    evolving: Evolving,
    promised: model.Table,
    table: Table | None,
    key: Sequence[str],
    evolved: Evolved,
    defaults: Mapping[str, Default],
) -> tuple[RowCheck, ...]:
    """Return the checks that keep rows back.

    Raises:
        RebuildNeededError: other checks judged the rows of the table, or the same ones by other values.
    """
    found, names = evolving.found, [column.name for column in evolved.columns]
    checks = row_checks.in_effect(found.object, promised, evolved.columns, evolved.void)
    row_checks.refuse_parts(found.object, checks, lambda name: evolving.rules.elsewhere(name, names))
    if table is not None:
        filled = {name for name, default in defaults.items() if found.published_batch < default.batch}
        given_up = {old for old, new in evolving.before.items() if old != new}
        row_checks.refuse_stale(found.object, table, checks, filled | given_up)
    row_checks.refuse_unfit(found.object, promised, key, whole=not (found.partial or found.halves or found.moves))
    return checks


def _refuse_shards(found: Found, promised: model.Table, table: Table | None) -> None:
    """Refuse to fold tables into one that cannot have their rows."""
    if found.shards:
        shard_rules.refuse_unfit(found, promised)
    if found.shards and table is not None:
        shard_rules.refuse_onward(found, table)


def _refuse_kept(source: str, found: Found, promised: model.Table, table: Table | None, key: Sequence[str]) -> None:
    """Refuse to keep deleted rows, versions or shards where the table cannot have them."""
    soft = promised.deletes is choices.Deletes.SOFT
    if table is not None and not soft and DELETED in table.schema().column_names:
        raise IncompatibleSchemaError(
            f"{found.object}: the source file says `deletes: hard`, but the table holds rows that were deleted softly; "
            f"write `deletes: soft` again, or fold it anew with `tidemark rebuild {source} {found.object}`"
        )
    if found.shards and not key:
        raise IncompatibleSchemaError(
            f"{found.object}: nothing tells the rows of a table apart that others are folded into: give it a key with "
            "`key:`, in which columns of `add` may stand"
        )
    if not all((key, *(era.key for era in found.eras))) and (soft or promised.history):
        raise IncompatibleSchemaError(
            f"{found.object}: nothing tells its rows apart, so it can have neither a history nor soft deletes: give it "
            "a key with `key:`, or leave `history` and `deletes` out"
        )


def _compares(source: model.Source, found: Found, *, has_key: bool) -> bool:
    """Return whether events are compared with the rows that they need.

    They cannot be while transactions wait, nor where rows come from several names or keys, or bring values from other
    rows. Without a key, events must be distinguishable from their copies, and be whole.
    """
    if found.shards or found.eras or found.segments or found.moves or found.withheld.left_out:
        return False
    if not has_key and (found.partial or source.traits.ranks_copies):
        return False
    of = source.invariants
    return {of.missing_rows, of.existing_rows, of.before_images} != {choices.Consequence.OFF}


def _compares_images(source: model.Source, found: Found, *, has_key: bool) -> bool:
    """Return whether before images are compared with the row before."""
    is_on = source.invariants.before_images is not choices.Consequence.OFF
    return has_key and is_on and _compares(source, found, has_key=has_key)


def _refuse_layout(
    found: Found, promised: model.Table, table: Table | None, evolved: Evolved, rules: row_rules.RowRules
) -> None:
    """Refuse a layout that does not fit the columns or a feed, and columns that the layout does not allow to go."""
    if promised.feed:
        feeds.refuse_format(found.object, found.published, promised.layout)
    types = {**dict(evolved.columns), **{name: term.type for name, term in rules.derived.items()}}
    if promised.layout is not None:
        layouts.refuse_unfit(found.object, promised.layout, types.items())
    stored = dict(columns_of(found.published))
    if table is None:  # built anew: a column with another type may be another column
        kept = {
            name: kind for name, kind in stored.items() if name in types and wider(kind, types[name]) == types[name]
        }
    else:
        kept = {name: kind for name, kind in stored.items() if evolved.today.get(name, name) is not None}
    layouts.refuse_loss(found.object, found.published, kept, promised.layout)
