"""What DDL does to tables: a small closed set of changes, which ``ddl.statements`` reads from text."""

from __future__ import annotations

from typing import NamedTuple


class Name(NamedTuple):
    """A table as a statement names it: ``table``, ``owner.table``, ``database.owner.table``."""

    parts: tuple[str, ...]


class Fill(NamedTuple):
    """The value that a database writes into the rows that are there when a column is added."""

    text: str | None
    """Of the value; None for null, and for bytes."""
    octets: bytes | None = None
    """What a column of bytes holds; None: the bytes of the text."""


class AddColumn(NamedTuple):
    """A column was added."""

    table: Name
    name: str
    type: str | None
    """Iceberg type string; None for a type that ``column_types`` does not know."""
    default: str | None
    """Text of the value that existing rows get; None for null, for bytes, and for a value that is not known."""
    octets: bytes | None = None
    """The value that existing rows get, for a column that holds bytes; None: the bytes of the text."""
    unknown: str | None = None
    """Why the value that existing rows get is not known; None where it is."""
    bounds: str | None = None
    """What the type allows (``values.bounds``), where that is certain."""


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
    bounds: str | None = None


class ChangeKey(NamedTuple):
    """The table got a primary key, in place of the one that it had, if any."""

    table: Name
    columns: tuple[str, ...]


class RenameTable(NamedTuple):
    """A table got another name, under which its rows go on."""

    table: Name
    new: Name
    conditional: bool = False
    """Whether nothing is renamed if there is no such table (IF EXISTS); databases log such a statement, too."""


class DropTable(NamedTuple):
    """A table was dropped, with its rows."""

    table: Name


class Truncate(NamedTuple):
    """All rows of a table were removed."""

    table: Name


class CreateCopy(NamedTuple):
    """A copy of a table was created, as schema-change tools name it (``migrations``)."""

    table: Name
    declares: bool
    """Whether with columns of its own, and not with those of another table (LIKE)."""
    conditional: bool
    """Whether nothing is created if there is one (IF NOT EXISTS)."""


class AlterCopy(NamedTuple):
    """A statement altered such a copy, and left its columns and its rows as they were."""

    table: Name


class Unparsed(NamedTuple):
    """A statement, or a clause of one, that may matter and was not understood."""

    table: Name | None
    reason: str


OfCopies = CreateCopy | AlterCopy
"""What changes no table that has another name."""

Change = (
    AddColumn
    | DropColumn
    | RenameColumn
    | ChangeType
    | ChangeKey
    | RenameTable
    | DropTable
    | Truncate
    | OfCopies
    | Unparsed
)
