"""The type of a column as DDL declares it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from tidemark.ddl.column_types import scale_of, sizes_in, type_of
from tidemark.values import bounds
from tidemark.values.types import is_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The type of a column as DDL declares it."""

    dialect: str
    word: str
    """The type's first word, in small letters; empty where there is none."""
    sizes: tuple[int | None, ...]
    """Length, or precision and scale, which may be below zero; None for Oracle's ``*``."""
    labels: tuple[str, ...]
    """Of ENUM and SET."""
    kind: str | None
    """Iceberg type string."""
    in_characters: bool
    """Whether the length counts characters, and not bytes."""
    unsigned: bool

    @classmethod
    def of(cls, tokens: Sequence[Token], dialect: str) -> Declaration:
        """Return the declaration that tokens begin with."""
        words = [token.text for token in tokens]
        first = " ".join(words[:4]).lower()
        word = re.split(r"[\s(]", first, maxsplit=1)[0].strip("[]") if words else ""
        if "[" in words or "array" in first.split():
            word = "array"
        elif "varying" in first and word in {"national", "character", "char"}:
            word = "varchar"
        elif word == "time" and "with time zone" in " ".join(words[:_MODIFIERS]).lower():
            word = "timetz"
        inside = _in_brackets(tokens[:_MOST_LABELS])
        units = {each.text.upper() for each in inside}
        return cls(
            dialect=dialect,
            word=word,
            sizes=sizes_in(each.text for each in inside if each.token_type not in _TEXTS),
            labels=tuple(each.text for each in inside if each.token_type in _TEXTS),
            kind=type_of(words, dialect),
            in_characters="CHAR" in units or dialect != "oracle" or word.startswith("n"),
            unsigned=dialect == "mysql" and not {"UNSIGNED", "ZEROFILL"}.isdisjoint(map(str.upper, words[:_MODIFIERS])),
        )

    @property
    def scale(self) -> int | None:
        """Return how many digits a decimal has behind the point; None: any number of them."""
        return scale_of(self.word, self.sizes, self.dialect)

    @property
    def is_number(self) -> bool:
        """Return whether the type is one of numbers."""
        return self.kind is not None and is_number(self.kind)

    @property
    def bounds(self) -> str | None:
        """What the type allows, where the Iceberg type allows more (``values.bounds``); None where that is not certain.

        A length in bytes is one in characters too: no character takes less than a byte.
        """
        if self.kind == "string" and self.word in _CHARACTERS and self.size:
            return bounds.length(self.size)
        if self.dialect == "mysql" and self.word == "enum" and self.labels:
            return bounds.one_of([label.rstrip(" ") for label in self.labels])  # as MySQL keeps them
        bits = _BITS.get(self.dialect, {}).get(self.word)
        unsigned = self.unsigned or (self.dialect, self.word) == ("tsql", "tinyint")
        return bounds.whole(bits, unsigned=unsigned) if bits and (unsigned or bits < _OF_AN_INT) else None

    @property
    def size(self) -> int | None:
        """Return the declared length; None without one."""
        size = self.sizes[0] if self.sizes else None
        return None if size is None or size < 0 else size


def _in_brackets(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens in the brackets behind the first words of a type."""
    for place, token in enumerate(tokens[:4]):
        if token.text.upper() in {
            "DEFAULT",
            "NOT",
            "NULL",
            "CHECK",
            "COLLATE",
            "COMMENT",
            "CONSTRAINT",
            "AS",
            "REFERENCES",
        }:
            return ()
        if token.token_type is TokenType.L_PAREN:
            ends = [end for end, each in enumerate(tokens) if end > place and each.token_type is TokenType.R_PAREN]
            return tokens[place + 1 : ends[0]] if ends else ()
    return ()


_MOST_LABELS = 8192

_MODIFIERS = 16
"""Tokens of a type, with what follows it, among which UNSIGNED stands."""

_CHARACTERS = frozenset({"char", "character", "varchar", "varchar2", "nvarchar", "nvarchar2", "nchar", "bpchar"})

_BITS: Mapping[str, Mapping[str, int]] = {
    "mysql": {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "integer": 32, "bigint": 64},
    "postgres": {"smallint": 16, "int2": 16, "smallserial": 16, "serial2": 16},
    "tsql": {"tinyint": 8, "smallint": 16},
}
"""Bits of the source's types of whole numbers, unsigned ones included, where the column's type may hold more."""

_OF_AN_INT = 32

_TEXTS = frozenset({TokenType.STRING, TokenType.NATIONAL_STRING})
