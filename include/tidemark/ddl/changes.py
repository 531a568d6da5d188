"""What DDL does to tables: a small closed set of changes (``ddl_statements`` reads them from text)."""

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
    """Iceberg type string; None for a type that is not known here."""
    default: str | None
    """Text of the constant that rows get which existed before; None for null, and for what is no constant."""


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
    """A column got another type, or was declared again as it was."""

    table: Name
    name: str
    type: str | None


class RenameTable(NamedTuple):
    """Rows go on under another name."""

    table: Name
    new: Name


class DropTable(NamedTuple):
    """A table and its rows went."""

    table: Name


class Truncate(NamedTuple):
    """All rows went."""

    table: Name


class Unparsed(NamedTuple):
    """A statement, or a clause of one, that may matter and was not understood."""

    table: Name | None
    reason: str


Change = AddColumn | DropColumn | RenameColumn | ChangeType | RenameTable | DropTable | Truncate | Unparsed
