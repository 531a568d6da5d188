"""The tables that a TRUNCATE empties, read from its text, which is never executed.

Texts have any shape and length, so each pattern takes what it matches for good: a text is read once.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tidemark.errors import MalformedMessageError
from tidemark.events import TableId
from tidemark.formats._statements import executed

_COMMENT = r"/\*.*?\*/|--[^\n]*+"

_EXECUTABLE = r"/\*(?:M?!\d*+|T!(?:\[[^\]]*+\])?+)|\*/"
"""Marks around a part of a statement that MySQL, MariaDB or TiDB executes: ``/*!50001 TRUNCATE t */``."""

_BLANKS = {
    (mysql, executable): re.compile(
        "(?:" + "|".join([r"\s", *[_EXECUTABLE] * executable, _COMMENT, *[r"\#[^\n]*+"] * mysql]) + ")*+", re.DOTALL
    )
    for mysql in (False, True)
    for executable in (False, True)
}
"""By whether the dialect is MySQL's, and whether executable comments are parts of the statement."""

_QUOTED = r'`(?:[^`]|``)++`|"(?:[^"]|"")++"|\[(?:[^]]|\]\])++\]'

_NAMES = {True: re.compile(rf"{_QUOTED}|[\w$@]++"), False: re.compile(rf"{_QUOTED}|[\w$@#]++")}
"""By whether the dialect is MySQL's, where a ``#`` begins a comment."""

_VERB, _TABLE, _ONLY = (re.compile(rf"{word}\b", re.IGNORECASE) for word in ("truncate", "table", "only"))

_DOT, _STAR, _COMMA, _SEMICOLON = map(re.compile, (r"\.", r"\*", ",", ";"))

_REST = re.compile(
    r"$|;|(?:CASCADE|CONTINUE|DROP|IGNORE|IMMEDIATE|NOWAIT|PRESERVE|PURGE|RESTART|RESTRICT|REUSE|WAIT)\b", re.IGNORECASE
)
"""What may stand behind the tables. Anything else, such as PARTITION, may mean less than the whole of them."""


class Truncation(NamedTuple):
    """What a text says that begins with TRUNCATE."""

    tables: tuple[tuple[str, ...], ...]
    """The parts of each name, as the source's catalog has them."""
    rest: str
    """What stands behind the tables."""


def truncation_in(statement: str, dialect: str, *, executable: bool = False) -> Truncation | None:
    """Return what a TRUNCATE says; None for a text that does not begin with one, after any comments and settings.

    Args:
        statement: SQL text.
        dialect: of the text; empty for the general dialect.
        executable: whether executable comments of MySQL are parts of the statement, and not comments.

    Raises:
        MalformedMessageError: the text begins with TRUNCATE, and it is not certain which tables it empties.
    """
    reader = _Reader(executed(statement), dialect, executable=executable)
    if not reader.takes(_VERB):
        return None
    reader.takes(_TABLE)
    before = reader.at
    if reader.takes(_ONLY) and not reader.name.match(reader.text, reader.at):
        reader.at = before  # a table of this name
    tables = [reader.table()]
    reader.takes(_STAR)
    while reader.takes(_COMMA):
        tables.append(reader.table())
        reader.takes(_STAR)
    rest = reader.text[reader.at :]
    if () in tables or not _REST.match(rest):
        raise MalformedMessageError(f"a TRUNCATE whose tables are not certain: {statement[:200]!r}")
    return Truncation(tuple(tables), rest)


def empties(table: TableId, statement: str, dialect: str, *, says_so: bool) -> bool:
    """Return whether a message with a statement empties the table that the message names.

    Args:
        table: of the message.
        statement: its SQL text.
        dialect: of the text.
        says_so: whether the message's own operation is a TRUNCATE.

    Raises:
        MalformedMessageError: the statement contradicts the message, or it is not certain what it empties.
    """
    if says_so and is_blank(statement):
        return True
    found = truncation_in(statement, dialect, executable=says_so)
    if found is None:
        if says_so:
            raise MalformedMessageError(
                f"the operation is TRUNCATE, and the statement another one: {statement[:200]!r}"
            )
        return False
    if not any(_is(table, parts, dialect) for parts in found.tables):
        names = ", ".join(map(".".join, found.tables))
        raise MalformedMessageError(f"a TRUNCATE of {names[:200]} in a message of {table}: which one was emptied?")
    return True


def is_blank(statement: str) -> bool:
    """Return whether a text has no statement: blanks, comments and semicolons only."""
    reader = _Reader(statement, "mysql", executable=True)
    return reader.at == len(statement)


def _is(table: TableId, parts: tuple[str, ...], dialect: str) -> bool:
    """Return whether a name in a statement means the table of its message.

    The message completes the parts that the name lacks. The case does not matter: where the two differ in it alone, the
    statement means the table that the message spells, as for all DDL (``ddl.stated_tables``).
    """
    database, schema = ((part or "").casefold() for part in (table.database, table.schema))
    *owners, name = map(str.casefold, parts)
    if name != table.name.casefold():
        return False
    if len(owners) == 2:
        return owners[0] in {database, database or owners[0]} and owners[1] in {schema, schema or owners[1]}
    known = {database, schema} - {""} if dialect == "mysql" else {schema} - {""}
    return not owners or not known or owners[0] in known


class _Reader:
    """A reader of a text, from piece to piece, which stands at its first statement."""

    def __init__(self, text: str, dialect: str, *, executable: bool) -> None:
        self.text = text
        self.name = _NAMES[dialect == "mysql"]
        self.at = 0
        self._dialect = dialect
        self._blanks = _BLANKS[dialect == "mysql", executable and dialect == "mysql"]
        self._skip()
        while self.takes(_SEMICOLON):
            pass

    def takes(self, pattern: re.Pattern[str]) -> str:
        """Skip a piece, and the blanks behind it, if it is next; return it, or an empty text."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        self._skip()
        return found[0]

    def table(self) -> tuple[str, ...]:
        """Read the name of a table, and return its parts; none where there is no name of up to three parts."""
        parts = [self.takes(self.name)]
        while self.takes(_DOT):
            parts.append(self.takes(self.name))
        return tuple(_unquoted(part, self._dialect) for part in parts) if "" not in parts and len(parts) <= 3 else ()

    def _skip(self) -> None:
        blanks = self._blanks.match(self.text, self.at)
        self.at = blanks.end() if blanks else self.at


def _unquoted(name: str, dialect: str) -> str:
    """Return a name as the catalog has it. Unquoted names are in upper case in Oracle, in lower case in PostgreSQL."""
    quote = name[0]
    if quote == "[":
        return name[1:-1].replace("]]", "]")
    if quote in '`"':
        return name[1:-1].replace(quote * 2, quote)
    return name.upper() if dialect == "oracle" else name.lower() if dialect == "postgres" else name
