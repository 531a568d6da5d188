"""What each kind of schema change does to a published table: which changes are followed, and which stop it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyiceberg.table import Table

from tidemark.ddl.history import SchemaHistory
from tidemark.errors import IncompatibleSchemaError
from tidemark.sources.model import Source
from tidemark.sources.routes import is_folded
from tidemark.sources.schema_policy import Added, Gone, New, Retyped, SchemaPolicies
from tidemark.tables.columns import Evolved, unsettled_names
from tidemark.tables.evolving import Evolving
from tidemark.tables.plan import Found
from tidemark.tables.schemas import columns_of
from tidemark.tables.stored_names import NEW_PREFIX

CONSENT = "it is new at the source, and the source file says `schema: {table: hold}`: name it under `tables:`"
"""Why the events of a table wait that the source file does not name."""


def lacks_consent(source: Source, name: str) -> bool:
    """Return whether a table is not to be published before the source file names it."""
    held = source.policies_for(name).table is New.HOLD
    return held and name not in source.tables and not is_folded(name)


def followed(history: SchemaHistory, policies: SchemaPolicies) -> SchemaHistory:
    """Return what a table follows of its schema changes."""
    adds, retypes = policies.add is not Added.IGNORE, policies.type is not Retyped.KEEP
    return replace(
        history,
        renamings=tuple(each for each in history.renamings if _kind(each.new, policies) is not Gone.KEEP),
        additions=tuple(each for each in history.additions if (retypes if each.retyped else adds)),
    )


def names_apart(histories: Iterable[SchemaHistory], followed: SchemaHistory) -> tuple[tuple[str, str], ...]:
    """Return the old and the new name of each column that a rename names which a table does not follow.

    Args:
        histories: of the tables that its rows come from, with all changes.
        followed: what the table as a whole follows.
    """
    renamings = (each for history in histories for each in history.renamings if each not in followed.renamings)
    return tuple(dict.fromkeys((each.old, each.new) for each in renamings if each.new is not None))


def name_taken(history: SchemaHistory, policies: SchemaPolicies) -> str | None:
    """Return why a table stops in which a kept column has the name of a later one; None if there is none."""
    came = [(each.position, each.new) for each in history.renamings if each.new and policies.rename is not Gone.KEEP]
    if policies.add is not Added.IGNORE:
        came += [(each.position, each.name) for each in history.additions if not each.retyped]
    for renaming in history.renamings:
        taken = any(at > renaming.position and name.casefold() == renaming.old.casefold() for at, name in came)
        if taken and _kind(renaming.new, policies) is Gone.KEEP:
            word = "drop" if renaming.new is None else "rename"
            return (
                f"column {renaming.old!r} is kept (`schema: {{{word}: keep}}`), and the source has another column of "
                f"this name now. With `{word}: evolve` and a rebuild, the table gets the new one"
            )
    return None


def refuse(found: Found, table: Table, evolved: Evolved, evolving: Evolving, policies: SchemaPolicies) -> None:
    """Refuse the changes of the published columns that are not allowed, and name them all.

    Raises:
        IncompatibleSchemaError: there are such changes.
    """
    existing, unsettled = dict(columns_of(table)), unsettled_names(evolving, table)
    stored = {new: old for old, new in evolved.today.items()}
    # A column that a cut began and did not publish is there under a name of its own.
    begun = {*evolved.begun, *(NEW_PREFIX + name for name in evolved.begun.values())}
    changes = [
        f"{old!r} is {'gone' if new is None else f'called {new!r}'}"
        for old, new in evolved.today.items()
        if _kind(new, policies) is Gone.STRICT
        and old in existing
        and old not in begun
        and not evolving.is_owners(old, new)
    ]
    for name, kind in evolved.columns:
        was = existing.get(stored.get(name, name))
        if name in unsettled or was == kind:
            continue
        if was is None and policies.add is Added.STRICT:
            changes.append(f"{name!r} is new")
        elif was is not None and policies.type is Retyped.STRICT:
            changes.append(f"{name!r} was {was} and is {kind}")
    if changes:
        raise IncompatibleSchemaError(
            f"{found.object}: the schema changed at the source, and the source file says `schema: strict`: "
            f"{', '.join(changes)}. To allow it, run once with `schema: evolve`."
        )


def _kind(new: str | None, policies: SchemaPolicies) -> Gone:
    return policies.drop if new is None else policies.rename
