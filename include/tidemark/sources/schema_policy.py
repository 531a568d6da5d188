"""The effect of each kind of schema change at the source, as a source file declares it (docs/schema-changes.md)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter


class SchemaPolicy(StrEnum):
    """The effect of a schema change at the source on the published table."""

    EVOLVE = "evolve"
    """The published table gets the change."""
    STRICT = "strict"
    """The table is stopped, with the reason, until the change is allowed."""
    IGNORE = "ignore"
    """The published table keeps its columns. Other columns of the source are left out."""


class Added(StrEnum):
    """The effect of a new column."""

    EVOLVE = "evolve"
    """The published table gets the column."""
    STRICT = "strict"
    """The table is stopped, with the reason."""
    IGNORE = "ignore"
    """The column is left out."""


class Gone(StrEnum):
    """The effect of a column that is dropped, or gets another name."""

    EVOLVE = "evolve"
    """The column goes, or is renamed."""
    STRICT = "strict"
    """The table is stopped, with the reason."""
    KEEP = "keep"
    """The column stays under its name, with the values of rows from before. A new name is a new column."""


class Retyped(StrEnum):
    """The effect of another type, which holds the values of both."""

    EVOLVE = "evolve"
    """The column gets the type; if its rows have to be written again for it, the table is built anew."""
    STRICT = "strict"
    """The table is stopped, with the reason."""
    KEEP = "keep"
    """Statements change no type. The column gets a type that rows need, unless its rows had to be written again for it:
    then the table is stopped."""


class New(StrEnum):
    """The effect of a table that is new at the source."""

    EVOLVE = "evolve"
    """It is published."""
    HOLD = "hold"
    """Its events wait until the source file has an entry of its name under ``tables``."""


class SchemaPolicies(BaseModel):
    """The effect of each kind of schema change. What is not given: of an entry, as the source says; else ``evolve``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    add: Added = Added.EVOLVE
    """A column is new."""
    drop: Gone = Gone.EVOLVE
    """A column is dropped by a statement."""
    rename: Gone = Gone.EVOLVE
    """A column gets another name by a statement."""
    type: Retyped = Retyped.EVOLVE
    """A column gets another type."""
    table: New = New.EVOLVE
    """A table is new."""


_SAME_FOR_ALL: Final = {
    SchemaPolicy.EVOLVE: SchemaPolicies(),
    SchemaPolicy.STRICT: SchemaPolicies(add=Added.STRICT, drop=Gone.STRICT, rename=Gone.STRICT, type=Retyped.STRICT),
    SchemaPolicy.IGNORE: SchemaPolicies(add=Added.IGNORE, drop=Gone.KEEP, rename=Gone.KEEP, type=Retyped.KEEP),
}


def resolved(of_source: DeclaredPolicy, of_table: DeclaredPolicy | None) -> SchemaPolicies:
    """Return what holds for a table: what its entry says, and what the source says for the other kinds of change."""
    if isinstance(of_source, SchemaPolicy):
        of_source = _SAME_FOR_ALL[of_source]
    if isinstance(of_table, SchemaPolicy):
        return _SAME_FOR_ALL[of_table]
    return of_source if of_table is None else of_source.model_copy(update=of_table.model_dump(exclude_unset=True))


_ONE_FOR_ALL: Final = TypeAdapter(SchemaPolicy)


def _declared(given: object) -> object:
    """Return one policy for all kinds of change, or one for each.

    Raises:
        ValidationError: it is neither.
    """
    if given is None or isinstance(given, SchemaPolicies):
        return given
    return SchemaPolicies.model_validate(given) if isinstance(given, dict) else _ONE_FOR_ALL.validate_python(given)


DeclaredPolicy = Annotated[
    SchemaPolicy | SchemaPolicies,
    BeforeValidator(_declared, json_schema_input_type=SchemaPolicy | SchemaPolicies),
]
