"""DDL text to a small closed set of changes of tables; what cannot be told for certain is ``Unparsed``, never a guess.

sqlglot's tokenizers read the text; the clauses are read here, as sqlglot's parsers give up on a whole statement for one
clause that they do not know. One pass without recursion over a text of bounded length: a hostile statement costs a
fraction of a second at most. Nothing is executed. ``column_types`` knows the vendors' types.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from sqlglot.dialects import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from tidemark.column_types import type_of

MAX_LENGTH = 65_536
"""Characters of a statement; a longer one is not read."""

DIALECTS = frozenset({"mysql", "postgres", "oracle", "tsql"})


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


@lru_cache(maxsize=4096)
def parse(statement: str, dialect: str) -> tuple[Change, ...]:
    """Read a statement.

    Args:
        statement: DDL text; several statements may follow one another.
        dialect: one of ``DIALECTS``.

    Returns:
        The changes in the statement's order; none for what changes no table (an index, a comment, grants, a new table).
    """
    if dialect not in DIALECTS:
        return (Unparsed(None, f"DDL of the dialect {dialect!r} is not read"),)
    if len(statement) > MAX_LENGTH:
        return (Unparsed(None, f"a statement of {len(statement)} characters; {MAX_LENGTH} are read"),)
    if _hides(statement):
        return (Unparsed(None, "a part of the statement stands in an executable comment"),)
    try:
        tokens = _tokens(statement, dialect)
    except SqlglotError:
        return (Unparsed(None, "a quotation mark or a comment is not closed"),)
    return tuple(change for part in _split(tokens, TokenType.SEMICOLON) for change in _Statement(part, dialect).read())


def _hides(statement: str) -> bool:
    """Whether a part stands in a comment that MySQL runs; mysqldump switches keys off and on so, which is nothing."""
    executable = "/*!" in statement or "/*M!" in statement
    return executable and bool(_CHANGING.search(statement)) and not _KEYS_SWITCHED.fullmatch(statement)


def _tokens(statement: str, dialect: str) -> list[Token]:
    """The words and signs of a text, without its comments."""
    tokens: list[Token] = Dialect.get_or_raise(dialect).tokenize(statement)
    # To sqlglot RENAME is a command whose text it leaves alone.
    if len(tokens) > 1 and tokens[0].text.upper() == "RENAME" and tokens[1].token_type is TokenType.STRING:
        return [tokens[0], *Dialect.get_or_raise(dialect).tokenize(tokens[1].text), *tokens[2:]]
    return tokens


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CHANGING = re.compile(r"\b(?:alter|drop|rename|truncate)\b", re.IGNORECASE)
_KEYS_SWITCHED = re.compile(r"\s*/\*!\d+ alter table [^/]{1,300} (?:dis|en)able keys \*/;?\s*", re.IGNORECASE)

_HARMLESS_STATEMENTS = _words(
    "ANALYZE AUDIT BEGIN CALL COMMENT COMMIT CREATE DELETE EXPLAIN FLUSH GRANT INSERT LOCK NOAUDIT OPTIMIZE PURGE "
    "REINDEX REPLACE REVOKE SAVEPOINT SELECT SET START UNLOCK UPDATE USE VACUUM XA"
)
"""First words of statements that change no columns, and no rows that events do not tell of."""

_NO_COLUMN = frozenset({"CONSTRAINT", "CHECK", "EXCLUDE", "FOREIGN", "PRIMARY", "SUPPLEMENTAL", "UNIQUE"})
"""What ADD and DROP may be followed by in the place of a column."""

_NO_COLUMN_OF_MYSQL = frozenset({"FULLTEXT", "INDEX", "KEY", "SPATIAL"})

_HARMLESS_CLAUSES = _words(
    "ALGORITHM ANALYZE AUTO_INCREMENT AVG_ROW_LENGTH CACHE CHARACTER CHARSET CHECK CHECKSUM CLUSTER COALESCE "
    "COLLATE COMMENT COMPRESS COMPRESSION CONVERT DEFAULT DELAY_KEY_WRITE DISABLE ENABLE ENCRYPTION ENGINE FORCE "
    "INMEMORY KEY_BLOCK_SIZE LOCK LOGGING MAX_ROWS MERGE MIN_ROWS MONITORING NO NOCACHE NOCOMPRESS NOLOGGING "
    "NOMONITORING NOPARALLEL OPTIMIZE ORDER OWNER PACK_KEYS PARALLEL PARTITION PCTFREE REBUILD REMOVE REORGANIZE "
    "REPAIR REPLICA RESET ROW_FORMAT SHRINK SPLIT STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES STORAGE "
    "TABLESPACE VALIDATE WAIT WITH WITHOUT"
)
"""First words of clauses of ALTER TABLE that change neither columns nor rows."""


class _Statement:
    """Reads one statement, from token to token."""

    def __init__(self, tokens: Sequence[Token], dialect: str) -> None:
        self._tokens = tokens
        self._dialect = dialect
        self._at = 0

    def read(self) -> Iterator[Change]:
        try:
            yield from list(self._statement())
        except _UnreadableError as error:
            yield Unparsed(error.table, str(error))

    def _statement(self) -> Iterator[Change]:
        word = self._word()
        self._at += 1
        if word == "ALTER":
            yield from self._alter()
        elif word == "DROP":
            yield from self._drop()
        elif word == "TRUNCATE":
            yield from self._truncate()
        elif word == "RENAME":
            yield from self._rename_tables()
        elif word == "CREATE" and self._takes("OR") and self._takes("REPLACE") and self._takes("TABLE"):
            yield DropTable(self._name())
        elif word and word not in _HARMLESS_STATEMENTS:
            raise _UnreadableError(f"a statement that begins with {word[:40]!r}")

    def _drop(self) -> Iterator[Change]:
        if self._word() in {"DATABASE", "SCHEMA"}:
            raise _UnreadableError("all tables of a database were dropped; the published ones stay as they are")
        if not (self._takes("TABLE") or self._takes("TABLES")):
            return
        self._exists()
        yield from (DropTable(name) for name in self._names())
        self._ends("CASCADE", "RESTRICT", "PURGE", "WAIT", "NOWAIT")

    def _truncate(self) -> Iterator[Change]:
        self._takes("TABLE")
        self._takes("ONLY")
        names = list(self._names())
        self._ends("CASCADE", "RESTRICT", "RESTART", "CONTINUE", "DROP", "REUSE", "PRESERVE", "PURGE", "WAIT", "NOWAIT")
        yield from map(Truncate, names)

    def _rename_tables(self) -> Iterator[Change]:
        if self._word() in {"USER", "INDEX"}:
            return
        if not (self._takes("TABLE") or self._takes("TABLES")) and self._dialect != "oracle":
            raise _UnreadableError("a RENAME of what cannot be told")
        more = True
        while more:
            self._exists()
            old = self._name()
            if not self._takes("TO"):
                raise _UnreadableError("a RENAME without TO", old)
            yield RenameTable(old, self._name())
            more = self._takes_kind(TokenType.COMMA)
        self._ends()

    def _alter(self) -> Iterator[Change]:
        while self._word() in {"ONLINE", "IGNORE", "FOREIGN"}:
            self._at += 1
        if not self._takes("TABLE"):
            return
        self._exists()
        self._takes("ONLY")
        table = self._name()
        self._takes_kind(TokenType.STAR)
        for tokens in _split(self._tokens[self._at :], TokenType.COMMA):
            yield from _Clause(tokens, self._dialect, table).read()

    def _names(self) -> Iterator[Name]:
        yield self._name()
        self._takes_kind(TokenType.STAR)
        while self._takes_kind(TokenType.COMMA):
            yield self._name()
            self._takes_kind(TokenType.STAR)

    def _name(self) -> Name:
        parts = [self._identifier()]
        while self._takes_kind(TokenType.DOT):
            parts.append(self._identifier())
        if len(parts) > 3:
            raise _UnreadableError("a name of more than three parts")
        return Name(tuple(parts))

    def _identifier(self) -> str:
        if self._at >= len(self._tokens):
            raise _UnreadableError("a name is missing at the end")
        token = self._tokens[self._at]
        self._at += 1
        if token.token_type is TokenType.IDENTIFIER:
            return token.text
        if not _PLAIN_NAME.fullmatch(token.text) or token.token_type is TokenType.STRING:
            raise _UnreadableError(f"{token.text[:40]!r} where a name is expected")
        return _folded(token.text, self._dialect)

    def _exists(self) -> None:
        if self._takes("IF"):
            self._takes("NOT")
            self._takes("EXISTS")

    def _ends(self, *allowed: str) -> None:
        word = self._word()
        if self._at < len(self._tokens) and word not in allowed:
            raise _UnreadableError(f"{word[:40]!r} where the statement should end")

    def _word(self) -> str:
        """The keyword that comes next; empty for a quoted name, and at the end."""
        if self._at >= len(self._tokens) or self._tokens[self._at].token_type in _QUOTED:
            return ""
        return self._tokens[self._at].text.upper().partition(" ")[0]

    def _takes(self, word: str) -> bool:
        taken = self._word() == word
        self._at += taken
        return taken

    def _takes_kind(self, kind: TokenType) -> bool:
        taken = self._at < len(self._tokens) and self._tokens[self._at].token_type is kind
        self._at += taken
        return taken


class _Clause(_Statement):
    """Reads one clause of ALTER TABLE."""

    def __init__(self, tokens: Sequence[Token], dialect: str, table: Name) -> None:
        super().__init__(tokens, dialect)
        self._table = table

    def _statement(self) -> Iterator[Change]:
        try:
            yield from self._clause()
        except _UnreadableError as error:
            raise _UnreadableError(str(error), self._table) from error

    def _clause(self) -> Iterator[Change]:
        word = self._word()
        self._at += 1
        if word == "ADD":
            yield from self._add()
        elif word == "DROP":
            yield from self._drop_column()
        elif word == "RENAME":
            yield from self._rename()
        elif word in {"CHANGE", "MODIFY"}:
            yield from self._modify(renames=word == "CHANGE")
        elif word == "ALTER":
            yield from self._alter_column()
        elif word == "SET":
            yield from self._set()
        elif word and word not in _HARMLESS_CLAUSES:
            raise _UnreadableError(f"a clause that begins with {word[:40]!r}")

    def _add(self) -> Iterator[Change]:
        if self._word() == "PARTITION" or self._is_no_column():
            return
        self._takes("COLUMN")
        self._exists()
        for definition in self._definitions():
            yield self._added(definition)

    def _is_no_column(self) -> bool:
        """Whether an index or a constraint follows: of columns with such names MySQL demands quotation marks."""
        if self._dialect == "mysql" and self._word() in _NO_COLUMN_OF_MYSQL:
            return True
        following = self._tokens[self._at + 1 : self._at + 2]
        period = self._word() == "PERIOD" and bool(following) and following[0].text.upper() == "FOR"
        return period or self._word() in _NO_COLUMN

    def _added(self, definition: Sequence[Token]) -> Change:
        inner = _Clause(definition, self._dialect, self._table)
        name = inner._identifier()
        rest = definition[1:]
        kind = type_of([token.text for token in rest], self._dialect)
        return AddColumn(self._table, name, kind, _default(rest, kind, self._dialect))

    def _definitions(self) -> Iterator[Sequence[Token]]:
        """Definitions of columns: one, or several in brackets."""
        if not self._takes_kind(TokenType.L_PAREN):
            yield self._tokens[self._at :]
            return
        inside = self._tokens[self._at :]
        end = _closing(inside)
        if end is None or (end + 1 < len(inside)):
            raise _UnreadableError("what follows a list of columns in brackets")
        yield from _split(inside[:end], TokenType.COMMA)

    def _drop_column(self) -> Iterator[Change]:
        word = self._word()
        if word in {"PARTITION", "SUBPARTITION"}:
            raise _UnreadableError("rows of a partition went, and no event tells of them")
        if self._is_no_column() or word == "UNUSED":  # UNUSED: those that were set so before
            return
        self._takes("COLUMN")
        self._exists()
        for tokens in self._definitions():
            inner = _Clause(tokens, self._dialect, self._table)
            yield DropColumn(self._table, inner._identifier())
            inner._ends("CASCADE", "RESTRICT", "INVALIDATE", "CHECKPOINT", "ONLINE")

    def _set(self) -> Iterator[Change]:
        """Oracle's SET UNUSED drops columns; PostgreSQL's SET SCHEMA moves the table, its other SETs change neither."""
        if self._takes("UNUSED"):
            yield from self._drop_column()
        elif self._takes("SCHEMA"):
            yield RenameTable(self._table, Name((self._identifier(), self._table.parts[-1])))

    def _rename(self) -> Iterator[Change]:
        if self._word() in {"INDEX", "KEY", "CONSTRAINT", "PARTITION", "SUBPARTITION"}:
            return
        if self._takes("TO") or self._takes("AS"):
            yield RenameTable(self._table, self._name())
            self._ends()
            return
        self._takes("COLUMN")
        self._exists()
        old = self._name()
        if self._at >= len(self._tokens) and len(old.parts) <= 2:  # MySQL: RENAME new_name
            yield RenameTable(self._table, old)
            return
        if not self._takes("TO") or len(old.parts) > 1:
            raise _UnreadableError("a RENAME without TO")
        yield RenameColumn(self._table, old.parts[0], self._identifier())
        self._ends()

    def _modify(self, *, renames: bool) -> Iterator[Change]:
        if self._word() in {"CONSTRAINT", "PARTITION", "DEFAULT", "LOB"}:
            return
        self._takes("COLUMN")
        self._exists()
        old = self._identifier() if renames else None
        for definition in self._definitions():
            inner = _Clause(definition, self._dialect, self._table)
            name = inner._identifier()
            if old is not None and old != name:
                yield RenameColumn(self._table, old, name)
            told = [token.text for token in definition[1:]]
            # Oracle may repeat no type: MODIFY a NOT NULL
            if told and (kind := type_of(told, self._dialect)) is not None:
                yield ChangeType(self._table, name, kind)

    def _alter_column(self) -> Iterator[Change]:
        if self._word() in {"INDEX", "CHECK", "CONSTRAINT"}:
            return
        self._takes("COLUMN")
        name = self._identifier()
        if self._takes("SET") and not self._takes("DATA"):
            return
        if self._takes("TYPE") or self._dialect == "tsql":
            kind = type_of([token.text for token in self._tokens[self._at :]], self._dialect)
            yield ChangeType(self._table, name, kind)


class _UnreadableError(Exception):
    def __init__(self, reason: str, table: Name | None = None) -> None:
        super().__init__(reason)
        self.table = table


_QUOTED = frozenset({TokenType.IDENTIFIER, TokenType.STRING})
_PLAIN_NAME = re.compile(r"[\w$#@]+")


def _folded(name: str, dialect: str) -> str:
    """An unquoted name as the catalog has it."""
    return name.upper() if dialect == "oracle" else name.lower() if dialect == "postgres" else name


def _split(tokens: Sequence[Token], separator: TokenType) -> Iterator[Sequence[Token]]:
    """The parts between separators that stand in no brackets; no empty ones."""
    depth = start = 0
    for place, token in enumerate(tokens):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if token.token_type is separator and depth <= 0:
            if place > start:
                yield tokens[start:place]
            start = place + 1
    if len(tokens) > start:
        yield tokens[start:]


def _closing(tokens: Sequence[Token]) -> int | None:
    """Place of the bracket that closes one opened before the first token."""
    depth = 1
    for place, token in enumerate(tokens):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0:
            return place
    return None


_NUMBERS = ("int", "long", "float", "double", "decimal")


def _default(tokens: Sequence[Token], kind: str | None, dialect: str) -> str | None:
    words = ["" if token.token_type in _QUOTED else token.text.upper() for token in tokens]
    if "DEFAULT" in words:
        return _constant(tokens[words.index("DEFAULT") + 1 :])
    generated = {"AUTO_INCREMENT", "GENERATED", "AS", "IDENTITY", "SERIAL", "BIGSERIAL"}
    required = any(pair == ("NOT", "NULL") for pair in itertools.pairwise(words))
    # MySQL fills a column that must not be null with the type's own zero.
    if dialect == "mysql" and required and kind is not None and not generated & set(words):
        return "" if kind == "string" else "0" if kind.startswith(_NUMBERS) else None
    return None


def _constant(tokens: Sequence[Token]) -> str | None:
    kinds = [token.token_type for token in tokens]
    opened = 0
    while opened < len(kinds) and kinds[opened] is TokenType.L_PAREN:
        opened += 1
    rest = tokens[opened:]
    sign = ""
    if rest and rest[0].token_type in {TokenType.DASH, TokenType.PLUS}:
        sign, rest = "-" if rest[0].token_type is TokenType.DASH else "", rest[1:]
    following = rest[1].token_type if len(rest) > 1 else None
    if not rest or (opened and following is not TokenType.R_PAREN) or following in _OPERATORS:
        return None
    match rest[0].token_type:
        case TokenType.NUMBER:
            return sign + rest[0].text
        case TokenType.STRING:
            return rest[0].text
        case TokenType.TRUE | TokenType.FALSE:
            return rest[0].text.lower()
        case TokenType.BIT_STRING if rest[0].text and not rest[0].text.strip("01"):
            return str(int(rest[0].text, 2))
    return None


_OPERATORS = frozenset({
    TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.DPIPE, TokenType.L_PAREN,
})  # fmt: skip
