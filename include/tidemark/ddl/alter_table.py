"""Reads the clauses of ALTER TABLE."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from tidemark.ddl.added import fill, is_key
from tidemark.ddl.changes import (
    AddColumn,
    Change,
    ChangeKey,
    ChangeType,
    DropColumn,
    Name,
    RenameColumn,
    RenameTable,
    Unparsed,
)
from tidemark.ddl.declaration import Declaration
from tidemark.ddl.rewrites import is_computed, keeps_values, type_and_expression
from tidemark.ddl.words import UnreadableError, Words, capitals, closing, outside, split

_NO_COLUMN = frozenset({"CONSTRAINT", "CHECK", "FOREIGN", "PRIMARY", "UNIQUE"})
"""Words that may follow ADD and DROP in the place of a column."""

_NO_COLUMN_OF_DIALECT: Mapping[str, frozenset[str]] = {
    "mysql": frozenset({"FULLTEXT", "INDEX", "KEY", "SPATIAL"}),
    "tsql": frozenset({"DEFAULT", "INDEX"}),
}
"""More such words. Databases demand that columns of these names are quoted."""

_NO_COLUMN_IN_PAIRS = frozenset([
    ("EXCLUDE", "USING"), ("EXCLUDE", "("), ("PERIOD", "FOR"), ("SUPPLEMENTAL", "LOG"), ("VECTOR", "INDEX"),
    ("VECTOR", "KEY"),
])  # fmt: skip
"""Two words that are no column together. The first one alone may be the name of a column."""

_OF_PARTITIONS = frozenset({"END", "FOR", "START", "VALUES"})
"""Words behind an ADD PARTITION, or behind the name of the partition."""

_NOT_MODIFIED = frozenset({"CONSTRAINT", "DEFAULT", "PARTITION", "PRIMARY", "SUBPARTITION", "UNIQUE"})
"""Words of Oracle, and of databases like it, that may follow MODIFY in the place of a column."""

_HARMLESS_CLAUSES = frozenset([
    "ALGORITHM", "ANALYZE", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CACHE", "CHARACTER", "CHARSET", "CHECK", "CHECKSUM",
    "CLUSTER", "COALESCE", "COLLATE", "COMMENT", "COMPRESS", "COMPRESSION", "DEFAULT", "DELAY_KEY_WRITE", "DISABLE",
    "ENABLE", "ENCRYPTION", "ENGINE", "FORCE", "INMEMORY", "KEY_BLOCK_SIZE", "LOCK", "LOGGING", "MAX_ROWS", "MERGE",
    "MIN_ROWS", "MONITORING", "NO", "NOCACHE", "NOCOMPRESS", "NOLOGGING", "NOMONITORING", "NOPARALLEL", "OPTIMIZE",
    "ORDER", "OWNER", "PACK_KEYS", "PARALLEL", "PARTITION", "PCTFREE", "REBUILD", "REMOVE", "REORGANIZE", "REPAIR",
    "REPLICA", "RESET", "ROW_FORMAT", "SHRINK", "SPLIT", "STATS_AUTO_RECALC", "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES", "STORAGE", "TABLESPACE", "VALIDATE", "WITH", "WITHOUT",
])  # fmt: skip
"""First words of clauses of ALTER TABLE that change neither columns nor rows."""


_ACTIONS = frozenset({"ADD", "DROP", "MODIFY", "RENAME"})

_OF_ACTIONS = frozenset({"IDENTITY", "INDEX", "STORAGE", "SUBPARTITION", "VALUES"})
"""Words of Oracle behind an ADD or a DROP that begins no clause."""


class Clause(Words):
    """A reader of one clause of ALTER TABLE."""

    def __init__(self, tokens: Sequence[Token], dialect: str, table: Name) -> None:
        super().__init__(tokens, dialect)
        self._table = table

    def changes(self) -> Iterator[Change]:
        """Yield what the clause does; see ``Words.changes``."""
        try:
            yield from self._clause()
        except UnreadableError as error:
            raise UnreadableError(str(error), self._table) from error

    def _clause(self) -> Iterator[Change]:
        self._is_one()
        word = self.word()
        self.at += 1
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
        elif word == "CONVERT":
            if not self.takes("TO"):
                raise UnreadableError("rows of a partition went or came, and no event shows them")
        elif word and word not in _HARMLESS_CLAUSES:
            raise UnreadableError(f"a clause that begins with {word[:40]!r}")

    def _is_one(self) -> None:
        """Check that no other clause begins within this one: Oracle sets no commas between clauses."""
        pairs = itertools.pairwise([*outside(self.tokens)[1:], ""]) if self.dialect == "oracle" else ()
        if any(word in _ACTIONS and following not in _OF_ACTIONS for word, following in pairs):
            raise UnreadableError("another clause begins within it")

    def _add(self) -> Iterator[Change]:
        if self._is_partition() or self._is_no_column() or self._next_two() == ("SYSTEM", "VERSIONING"):
            yield from self._primary_key()
            return
        self.takes("COLUMN")
        conditional = self.exists()  # so the column that is there may have another type, and no key
        for definition in self._definitions():
            inner = Clause(definition, self.dialect, self._table)
            if inner._is_no_column():
                yield from inner._primary_key()
                continue
            added = self._added(definition)
            yield added._replace(bounds=None) if conditional else added
            if not conditional and is_key(definition[1:], self.dialect):
                yield ChangeKey(self._table, (added.name,))

    def _is_no_column(self) -> bool:
        """Return whether an index or a constraint follows."""
        words = _NO_COLUMN | _NO_COLUMN_OF_DIALECT.get(self.dialect, frozenset())
        return self.word() in words or self._next_two() in _NO_COLUMN_IN_PAIRS

    def _is_partition(self) -> bool:
        """Return whether a partition is added, and no column of this name, which MySQL and Oracle do not allow."""
        behind = {capitals(token) for token in self.tokens[self.at + 1 : self.at + 3]}
        is_one = self.dialect in {"mysql", "oracle"} or not behind.isdisjoint(_OF_PARTITIONS)
        return self.word() == "PARTITION" and is_one

    def _next_two(self) -> tuple[str, str]:
        """Return the two words that are next, in capitals."""
        following = self.tokens[self.at + 1 : self.at + 2]
        return self.word(), following[0].text.upper() if following else ""

    def _primary_key(self) -> Iterator[Change]:
        """Yield the primary key that an ADD adds; nothing for any other constraint or index, or one without columns."""
        if self.takes("CONSTRAINT") and self.word() != "PRIMARY":
            self.at += 1  # its name
        if not self.takes("PRIMARY"):
            return
        while self.at < len(self.tokens) and not self.takes_kind(TokenType.L_PAREN):
            self.at += 1
        inside = self.tokens[self.at :]
        parts = split(inside[: closing(inside)], TokenType.COMMA)
        columns = tuple(Clause(part, self.dialect, self._table).identifier() for part in parts)
        if columns:
            yield ChangeKey(self._table, columns)

    def _added(self, definition: Sequence[Token]) -> AddColumn:
        inner = Clause(definition, self.dialect, self._table)
        name = inner.identifier()
        declared = Declaration.of(definition[1:], self.dialect)
        value, unknown = fill(definition[1:], declared)
        return AddColumn(self._table, name, declared.kind, value.text, value.octets, unknown, declared.bounds)

    def _definitions(self) -> Iterator[Sequence[Token]]:
        """Yield the definitions of columns: one, or several in brackets."""
        if not self.takes_kind(TokenType.L_PAREN):
            yield self.tokens[self.at :]
            return
        inside = self.tokens[self.at :]
        end = closing(inside)
        if end is None or (end + 1 < len(inside)):
            raise UnreadableError("what follows a list of columns in brackets")
        yield from split(inside[:end], TokenType.COMMA)

    def _drop_column(self) -> Iterator[Change]:
        word, following = self._next_two()
        if word in {"PARTITION", "PARTITIONS", "SUBPARTITION", "SUBPARTITIONS"} and following not in {
            "",
            "CASCADE",
            "RESTRICT",
        }:
            raise UnreadableError("rows of a partition went, and no event tells of them")
        is_unused = (word, following) == ("UNUSED", "COLUMNS")  # which an earlier SET UNUSED dropped already
        if self._is_no_column() or (is_unused and self.dialect == "oracle"):
            return
        self.takes("COLUMN")
        self.exists()
        for tokens in self._definitions():
            inner = Clause(tokens, self.dialect, self._table)
            yield DropColumn(self._table, inner.identifier())
            inner.ends("CASCADE", "RESTRICT", "INVALIDATE", "CHECKPOINT", "ONLINE")

    def _set(self) -> Iterator[Change]:
        """Yield what a SET does.

        Oracle's SET UNUSED drops columns. PostgreSQL's SET SCHEMA moves the table; its other SETs change no column.
        """
        if self.takes("UNUSED"):
            yield from self._drop_column()
        elif self.takes("SCHEMA"):
            yield RenameTable(self._table, Name((self.identifier(), self._table.parts[-1])))

    def _rename(self) -> Iterator[Change]:
        """Yield what a RENAME does: to the table or to a column; nothing for an index or a constraint."""
        word, following = self._next_two()
        if word in {"CONSTRAINT", "PARTITION", "SUBPARTITION"} and following != "TO":
            return
        if word in {"INDEX", "KEY"} and self.dialect == "mysql":
            return
        if self.takes("TO") or self.takes("AS"):
            yield RenameTable(self._table, self.name())
            self.ends()
            return
        self.takes("COLUMN")
        self.exists()
        old = self.name()
        if self.at >= len(self.tokens) and len(old.parts) <= 2:  # MySQL: RENAME new_name
            yield RenameTable(self._table, old)
            return
        if not self.takes("TO") or len(old.parts) > 1:
            raise UnreadableError("a RENAME without TO")
        yield RenameColumn(self._table, old.parts[0], self.identifier())
        self.ends()

    def _modify(self, *, renames: bool) -> Iterator[Change]:
        word, following = self._next_two()
        if self.dialect != "mysql" and (word in _NOT_MODIFIED or (word, following) == ("LOB", "(")):
            return
        self.takes("COLUMN")
        conditional = self.exists()
        old = self.identifier() if renames else None
        for definition in self._definitions():
            inner = Clause(definition, self.dialect, self._table)
            name = inner.identifier()
            if old is not None and old != name:
                yield RenameColumn(self._table, old, name)
            declared = Declaration.of(definition[1:], self.dialect)
            # Oracle may leave out the type: MODIFY a NOT NULL
            if declared.kind is not None:
                yield ChangeType(self._table, name, declared.kind, declared.bounds)
            if not conditional and is_key(definition[1:], self.dialect):
                yield ChangeKey(self._table, (name,))
            if is_computed(definition[1:]):
                yield Unparsed(self._table, _computed(name))

    def _alter_column(self) -> Iterator[Change]:
        if self.word() in {"CHECK", "CONSTRAINT"} or (self.word() == "INDEX" and self.dialect != "postgres"):
            return
        self.takes("COLUMN")
        name = self.identifier()
        if self.takes("SET") and not self.takes("DATA"):
            if self.word() == "EXPRESSION":
                raise UnreadableError(_computed(name))
            return
        if self.takes("TYPE") or self.dialect == "tsql":
            type_, expression = type_and_expression(self.tokens[self.at :])
            if expression is not None and not keeps_values(expression, name, self._table, type_):
                raise UnreadableError(_computed(name))
            declared = Declaration.of(type_, self.dialect)
            yield ChangeType(self._table, name, declared.kind, declared.bounds)


def _computed(column: str) -> str:
    return f"the rows got other values in {column[:40]!r}, and no event shows them"
