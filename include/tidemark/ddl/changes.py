"""What DDL does to tables: a small closed set of changes, which ``ddl.statements`` reads from text."""

from __future__ import annotations

from typing import NamedTuple


class Name(NamedTuple):
    """A table as a statement names it: ``table``, ``owner.table``, ``database.owner.table``."""

    parts: tuple[str, ...]


class AddColumn(NamedTuple):
    """A column was added."""

    table: Name
    name: str
    type: str | None
    """Iceberg type string; None for a type that ``column_types`` does not know."""
    default: str | None
    """Text of the constant that existing rows get; None for null, and for a default that is not a constant."""


class DropColumn(NamedTuple):
    """A column was dropped, with its values."""

    table: Name
    name: str


class RenameColumn(NamedTuple):
    """A column got another name."""

    table: Name
    old: str
    new: str


class ChangeType(NamedTuple):
    """A column got another type, or was declared again with the same type."""

    table: Name
    name: str
    type: str | None


class RenameTable(NamedTuple):
    """A table got another name, under which its rows go on."""

    table: Name
    new: Name


class DropTable(NamedTuple):
    """A table was dropped, with its rows."""

    table: Name


class Truncate(NamedTuple):
    """All rows of a table were removed."""

    table: Name


class Unparsed(NamedTuple):
    """A statement, or a clause of one, that may matter and was not understood."""

    table: Name | None
    reason: str


Change = AddColumn | DropColumn | RenameColumn | ChangeType | RenameTable | DropTable | Truncate | Unparsed
