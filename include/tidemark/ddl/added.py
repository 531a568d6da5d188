"""What the definition of a column says beside its type: what rows that are there get, and whether it is the key."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from sqlglot.tokenizer_core import Token

from tidemark.ddl.changes import Fill
from tidemark.ddl.constants import ConstantReader, UnknownValueError
from tidemark.ddl.declaration import Declaration
from tidemark.ddl.filled import NULL, filled, implicit
from tidemark.ddl.words import outside, outside_or_none


def is_key(tokens: Sequence[Token], dialect: str) -> bool:
    """Return whether a definition makes its column the primary key. In MySQL, KEY alone does so, and UNIQUE KEY not.

    Args:
        tokens: the definition behind the name of the column.
        dialect: of the statement.
    """
    words = " ".join(outside(tokens)).split()  # PRIMARY KEY may be one token
    pairs = set(itertools.pairwise(["", *words]))
    return ("PRIMARY", "KEY") in pairs or (
        dialect == "mysql" and any(word == "KEY" and before != "UNIQUE" for before, word in pairs)
    )


def fill(tokens: Sequence[Token], declared: Declaration) -> tuple[Fill, str | None]:
    """Return what existing rows get in a new column, and why that is not known, where it is not.

    Args:
        tokens: the definition behind the name of the column.
        declared: its type.
    """
    dialect = declared.dialect
    words = [word or "" for word in outside_or_none(tokens)]  # a CHECK may say NOT NULL, too
    place = _place_of_default(words)
    pairs = set(itertools.pairwise(words))
    required = ("NOT", "NULL") in pairs or is_key(tokens, dialect)
    try:
        if _COMPUTED & set(words[: len(words) if place is None else place]):
            return NULL, "the database computes its values"
        if place is not None:
            if dialect == "tsql" and not required and ("WITH", "VALUES") not in pairs:
                return NULL, None  # SQL Server leaves rows as they are
            return filled(ConstantReader(tokens[place + 1 :], dialect).constant(), declared), None
        # MySQL fills a column that must not be null with the zero of its type.
        if dialect == "mysql" and required:
            return implicit(declared), None
    except UnknownValueError as error:
        return NULL, str(error)
    return NULL, _not_certain(words, declared)


def _not_certain(words: Sequence[str], declared: Declaration) -> str | None:
    """Return why it is not certain that rows get null where a definition gives them nothing; None where it is."""
    may_be_null = any(word == "NULL" and before not in {"NOT", "SET"} for before, word in itertools.pairwise(words))
    if (declared.dialect, declared.word) == ("mysql", "timestamp") and not may_be_null:
        return "MySQL fills a TIMESTAMP with null or a time, as explicit_defaults_for_timestamp says"
    return None


_COMPUTED = frozenset([
    "AUTO_INCREMENT", "GENERATED", "AS", "IDENTITY", "SERIAL", "SERIAL2", "SERIAL4", "SERIAL8", "BIGSERIAL",
    "SMALLSERIAL", "ROWVERSION",
])  # fmt: skip
"""Words of columns that the database fills with values of its own."""


def _place_of_default(words: Sequence[str]) -> int | None:
    """Return the place of the word DEFAULT that begins a column's own clause; None where there is none."""
    for place, word in enumerate(words):
        if word == "DEFAULT" and words[place - 1] not in {"SET", "BY", "COLUMN_FORMAT", "STORAGE"}:
            return place
    return None
