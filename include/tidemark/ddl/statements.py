"""Reads DDL text as changes of tables; a text that is not understood for certain is ``Unparsed``, never a guess.

sqlglot's tokenizers split the text into words. The clauses are read here, because sqlglot's parsers give up on a whole
statement for one clause that they do not know. The text has a maximum length and is read in one pass, without
recursion: a hostile statement costs a fraction of a second at most. Nothing is executed. ``column_types`` knows the
vendors' types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from tidemark.ddl.alter_table import Clause
from tidemark.ddl.changes import AlterCopy, Change, CreateCopy, DropTable, RenameTable, Truncate, Unparsed
from tidemark.ddl.clauses import clauses_of
from tidemark.ddl.migrations import is_copy
from tidemark.ddl.words import UnreadableError, Words, capitals, split, words_of
from tidemark.formats import executed

MAX_LENGTH = 65_536
"""Most characters of a statement that is read."""

DIALECTS = frozenset({"mysql", "postgres", "oracle", "tsql"})


def parse(statement: str, dialect: str) -> tuple[Change, ...]:
    """Read DDL text, and return what it changes.

    Args:
        statement: DDL text; several statements may follow one another.
        dialect: one of ``DIALECTS``.

    Returns:
        The changes in the order of the text; none for a statement that changes no table (an index, a comment, grants, a
        new table that is no copy of a tool). A hostile text raises nothing.
    """
    return tuple(change for part in parse_each(statement, dialect) for change in part)


@lru_cache(maxsize=4096)
def parse_each(statement: str, dialect: str) -> tuple[tuple[Change, ...], ...]:
    """Read DDL text as ``parse`` does, and return what each of its statements changes."""
    if dialect not in DIALECTS:
        return _unparsed(f"DDL of the dialect {dialect!r} is not read")
    if len(statement) > MAX_LENGTH:
        return _unparsed(f"a statement of {len(statement)} characters; {MAX_LENGTH} are read")
    if _hides(statement):
        return _unparsed("a part of the statement stands in an executable comment")
    try:
        tokens = words_of(executed(statement) if dialect == "mysql" else statement, dialect)
        return tuple(_changes(list(split(tokens, TokenType.SEMICOLON)), dialect))
    except SqlglotError:
        return _unparsed("a quotation mark or a comment is not closed")
    except Exception as error:  # noqa: BLE001  the ledger keeps the statement: an error would end every later run
        return _unparsed(f"reading it failed: {type(error).__name__}")


def _unparsed(reason: str) -> tuple[tuple[Change, ...], ...]:
    return ((Unparsed(None, reason),),)


def _changes(parts: Sequence[Sequence[Token]], dialect: str) -> Iterator[tuple[Change, ...]]:
    """Yield what each of the parts of a text between its semicolons does."""
    ends = dialect != "postgres" and any(capitals(part[0]) == "END" for part in parts)
    for part in parts:
        words = [capitals(token) for token in part]
        if _is_routine(words, dialect):
            return  # The rest is its body. What that does is logged when it runs.
        if ends or _opens_block(words, dialect):
            yield (Unparsed(None, "a block of statements, of which it is not known what ran"),)
            return
        yield tuple(StatementReader(part, dialect).read())


def _is_routine(words: Sequence[str], dialect: str) -> bool:
    """Return whether a statement defines a routine with a body of statements; in PostgreSQL most bodies are texts."""
    if words[0] not in {"CREATE", "ALTER"} or (dialect == "postgres" and ("BEGIN", "ATOMIC") not in pairwise(words)):
        return False
    return next((word for word in words[1:_MOST_BEFORE] if word in _ROUTINES | _NO_ROUTINES), "") in _ROUTINES


_MOST_BEFORE = 16
"""Most words of a statement up to the one that says what it creates."""

_ROUTINES = frozenset({"BODY", "EVENT", "FUNCTION", "PACKAGE", "PROC", "PROCEDURE", "TRIGGER"})

_NO_ROUTINES = frozenset({"DATABASE", "INDEX", "SCHEMA", "SEQUENCE", "TABLE", "USER", "VIEW"})


def _opens_block(words: Sequence[str], dialect: str) -> bool:
    """Return whether a statement opens a block, and no transaction."""
    begins = [place for place, word in enumerate(words[: None if dialect == "tsql" else 1]) if word == "BEGIN"]
    return any(not _OF_TRANSACTIONS.issuperset(words[place + 1 : place + 2]) for place in begins)


_OF_TRANSACTIONS = frozenset({"DISTRIBUTED", "ISOLATION", "READ", "TRAN", "TRANSACTION", "WORK"})


def _hides(statement: str) -> bool:
    """Return whether a change stands in a comment that MySQL, MariaDB or TiDB executes.

    The comments with which mysqldump switches keys off and on are not meant: they change nothing. TiDB writes many of
    its own words in comments, which change no columns.
    """
    if any(_CHANGING_OF_TIDB.search(comment[0]) for comment in _COMMENTS_OF_TIDB.finditer(statement)):
        return True
    executable = "/*!" in statement or "/*M!" in statement
    return executable and bool(_CHANGING.search(statement)) and not _KEYS_SWITCHED.fullmatch(statement)


_CHANGING = re.compile(
    r"(?<![^\W\d])(?:alter|drop|rename|truncate)\b|\bor\s+replace\b(?:\s|\*/)*table\b", re.IGNORECASE
)
"""A version may stand right before the word: ``/*!50003DROP TABLE t */``."""

_COMMENTS_OF_TIDB = re.compile(r"/\*T!.*?(?:\*/|\Z)", re.DOTALL)

_CHANGING_OF_TIDB = re.compile(r"\b(?:add|alter|change|drop|modify|rename|truncate)\b", re.IGNORECASE)

_KEYS_SWITCHED = re.compile(r"\s*/\*!\d+ alter table [^/]{1,300} (?:dis|en)able keys \*/;?\s*", re.IGNORECASE)

_HARMLESS_STATEMENTS = frozenset([
    "ANALYZE", "AUDIT", "BEGIN", "CALL", "COMMENT", "COMMIT", "DELETE", "EXPLAIN", "FLUSH", "GRANT",
    "INSERT", "LOCK", "NOAUDIT", "OPTIMIZE", "PURGE", "REINDEX", "REPLACE", "REVOKE", "SAVEPOINT", "SELECT", "SET",
    "START", "UNLOCK", "UPDATE", "USE", "VACUUM", "XA",
])  # fmt: skip
"""First words of statements that change no columns, and no rows without change events."""


_NAMING = frozenset({"AUDIT", "EXPLAIN", "NOAUDIT"})
"""First words of statements that name other statements, and do not run them."""

_HOLDING = frozenset({"CLUSTER", "DOMAIN", "EXTENSION", "TABLESPACE", "TYPE", "USER"})
"""What takes tables or columns with it when it is dropped with CASCADE or INCLUDING."""


class StatementReader(Words):
    """A reader of one statement."""

    def changes(self) -> Iterator[Change]:
        """Yield what the statement does; see ``Words.changes``."""
        word = self.word()
        self._is_one(word)
        self.at += 1
        if word == "ALTER":
            yield from self._alter()
        elif word == "DROP":
            yield from self._drop()
        elif word == "TRUNCATE":
            yield from self._truncate()
        elif word == "RENAME":
            yield from self._rename_tables()
        elif word == "CREATE":
            yield from self._create()
        elif word == "SET" and self.dialect == "mysql" and self.takes("STATEMENT"):
            raise UnreadableError("settings for a statement that is not found")
        elif word and word not in _HARMLESS_STATEMENTS:
            raise UnreadableError(f"a statement that begins with {word[:40]!r}")

    def _is_one(self, first: str) -> None:
        """Check that no other statement begins within this one: SQL Server needs no semicolons."""
        if first in _NAMING or (first == "ALTER" and self.dialect != "tsql"):
            return
        if any(
            word in {"ALTER", "DROP", "RENAME", "TRUNCATE"} and following == "TABLE"
            for word, following in pairwise(map(capitals, self.tokens[1:]))
        ):
            raise UnreadableError("another statement begins within it")

    def _drop(self) -> Iterator[Change]:
        if self.word() in {"DATABASE", "SCHEMA"}:
            raise UnreadableError("all tables of a database were dropped; the published ones stay as they are")
        with_more = not {"CASCADE", "INCLUDING"}.isdisjoint(map(capitals, self.tokens))
        if self.word() == "OWNED" or (self.word() in _HOLDING and with_more):
            raise UnreadableError("what was dropped along with it is not known")
        if not (self.takes("TABLE") or self.takes("TABLES")):
            return
        self.exists()
        yield from (DropTable(name) for name in self.names())
        if self.dialect == "oracle" and self.takes("AS"):
            self.identifier()  # what the table is called in the recycle bin
        self.ends("CASCADE", "RESTRICT", "PURGE", "WAIT", "NOWAIT")

    def _create(self) -> Iterator[Change]:
        """Yield the drop that an OR REPLACE is, and the copy that is created to change the schema of a table."""
        replaces = self.takes("OR") and self.takes("REPLACE")
        if not self.takes("TABLE"):
            return
        conditional = self.exists()
        try:
            table = self.name()
        except UnreadableError:
            if replaces:
                raise
            return  # of a new table that no tool made
        if replaces:
            yield DropTable(table)
        if is_copy(table.parts[-1]):
            self.takes_kind(TokenType.L_PAREN)
            yield CreateCopy(table, declares=self.word() != "LIKE", conditional=conditional)

    def _truncate(self) -> Iterator[Change]:
        self.takes("TABLE")
        self.only()
        names = list(self.names())
        cascades = "CASCADE" in map(capitals, self.tokens[self.at :])
        self.ends("CASCADE", "RESTRICT", "RESTART", "CONTINUE", "DROP", "REUSE", "PRESERVE", "PURGE", "WAIT", "NOWAIT")
        yield from map(Truncate, names)
        if cascades:
            yield Unparsed(names[0], "tables that refer to it were emptied, too, and the statement does not name them")

    def _rename_tables(self) -> Iterator[Change]:
        if self.word() in {"USER", "INDEX"}:
            return
        if not (self.takes("TABLE") or self.takes("TABLES")) and self.dialect != "oracle":
            raise UnreadableError("a RENAME without TABLE")
        more = True
        while more:
            conditional = self.exists()
            old = self.name()
            self._waits()
            if not self.takes("TO"):
                raise UnreadableError("a RENAME without TO", old)
            yield RenameTable(old, self.name(), conditional)
            more = self.takes_kind(TokenType.COMMA)
        self.ends()

    def _alter(self) -> Iterator[Change]:
        while self.word() in {"ONLINE", "OFFLINE", "IGNORE", "FOREIGN"}:
            self.at += 1
        if not self.takes("TABLE"):
            self._of_many_tables()
            return
        conditional = self.exists()
        self.only()
        table = self.name()
        self.takes_kind(TokenType.STAR)
        self._waits()
        if self.dialect == "tsql" and self.takes("WITH"):
            self.at += 1  # CHECK or NOCHECK
        clauses = clauses_of(self.tokens[self.at :], self.dialect)
        changes = [change for tokens in clauses for change in Clause(tokens, self.dialect, table).read()]
        if not changes and is_copy(table.parts[-1]):
            yield AlterCopy(table)
        # All clauses are of the table as it was called before, wherever among them it gets another name.
        yield from (change for change in changes if not isinstance(change, RenameTable))
        for each in changes:
            if isinstance(each, RenameTable):
                rename = each._replace(conditional=conditional)
                yield _into_bin(rename) if self.dialect == "oracle" else rename

    def _of_many_tables(self) -> None:
        """Check that an ALTER of something else changes no tables with it."""
        words = list(map(capitals, self.tokens[self.at :]))
        if words[:1] == ["SCHEMA"] and not {"RENAME", "TRANSFER"}.isdisjoint(words):
            raise UnreadableError("tables got the name of another schema")
        if words[:1] == ["TYPE"] and ("RENAME", "VALUE") in pairwise(words):
            raise UnreadableError("a label got another text, also in rows that are there")
        if words[:1] == ["TYPE"] and any((word, "ATTRIBUTE") in pairwise(words) for word in ("ADD", "ALTER", "DROP")):
            raise UnreadableError("values of the type changed, also in rows that are there")

    def _waits(self) -> None:
        """Skip how long MariaDB waits for the table's lock."""
        if self.dialect == "mysql" and not self.takes("NOWAIT"):
            self.at += 2 * (self.word() == "WAIT")


def _into_bin(rename: RenameTable) -> RenameTable | DropTable:
    """Return a rename of Oracle, or the drop that it is: a dropped table gets a name in the recycle bin.

    LogMiner shows the rename, and then the drop.
    """
    return DropTable(rename.table) if rename.new.parts[-1].startswith("BIN$") else rename
