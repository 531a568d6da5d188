"""Reads the words of a DDL statement one after another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot.dialects import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from tidemark.ddl.changes import Change, Name, Unparsed


class UnreadableError(Exception):
    """A part of a statement is not understood; ``table`` if it was read before that part."""

    def __init__(self, reason: str, table: Name | None = None) -> None:
        super().__init__(reason)
        self.table = table


class Words:
    """A reader of a statement, or of a part of one, from word to word."""

    def __init__(self, tokens: Sequence[Token], dialect: str) -> None:
        self.tokens = tokens
        self.dialect = dialect
        self.at = 0

    def read(self) -> Iterator[Change]:
        """Yield what the text does; only ``Unparsed`` if a part of the text is not understood."""
        try:
            yield from list(self.changes())
        except UnreadableError as error:
            yield Unparsed(error.table, str(error))

    def changes(self) -> Iterator[Change]:
        """Yield what the text does.

        Raises:
            UnreadableError: a part of the text is not understood.
        """
        raise NotImplementedError

    def names(self) -> Iterator[Name]:
        """Yield names of tables, which commas separate."""
        yield self.name()
        self.takes_kind(TokenType.STAR)
        while self.takes_kind(TokenType.COMMA):
            yield self.name()
            self.takes_kind(TokenType.STAR)

    def name(self) -> Name:
        """Read the name of a table."""
        parts = [self.identifier()]
        while self.takes_kind(TokenType.DOT):
            parts.append(self.identifier())
        if len(parts) > 3:
            raise UnreadableError("a name of more than three parts")
        return Name(tuple(parts))

    def identifier(self) -> str:
        """Read one name, and return it as the source's catalog has it."""
        if self.at >= len(self.tokens):
            raise UnreadableError("a name is missing at the end")
        token = self.tokens[self.at]
        self.at += 1
        if token.token_type is TokenType.IDENTIFIER:
            return token.text
        if not _PLAIN_NAME.fullmatch(token.text) or token.token_type is TokenType.STRING:
            raise UnreadableError(f"{shown(token)[:40]!r} where a name is expected")
        return _folded(token.text, self.dialect)

    def exists(self) -> bool:
        """Skip IF EXISTS or IF NOT EXISTS; return whether it was there."""
        following = [capitals(token) for token in self.tokens[self.at + 1 : self.at + 3]]
        words = " ".join(following).split()  # NOT EXISTS may be one token
        conditional = self.word() == "IF" and (words[:1] == ["EXISTS"] or words[:2] == ["NOT", "EXISTS"])
        if conditional:
            self.at += 1
            self.takes("NOT")
            self.takes("EXISTS")
        return conditional

    def only(self) -> None:
        """Skip PostgreSQL's ONLY; elsewhere it may be the name of a table."""
        if self.dialect == "postgres":
            self.takes("ONLY")

    def ends(self, *allowed: str) -> None:
        """Check that nothing follows, or only words from ``allowed`` on, which do not matter.

        Raises:
            UnreadableError: something else follows.
        """
        word = self.word()
        if self.at < len(self.tokens) and word not in allowed:
            raise UnreadableError(f"{word[:40]!r} where the statement should end")

    def word(self) -> str:
        """Return the next keyword, in capitals; empty for a quoted name and at the end."""
        if self.at >= len(self.tokens) or self.tokens[self.at].token_type in QUOTED:
            return ""
        return self.tokens[self.at].text.upper().partition(" ")[0]

    def takes(self, word: str) -> bool:
        """Skip a keyword if it is next; return whether it was."""
        taken = self.word() == word
        self.at += taken
        return taken

    def takes_kind(self, kind: TokenType) -> bool:
        """Skip a token of this kind if it is next; return whether it was."""
        taken = self.at < len(self.tokens) and self.tokens[self.at].token_type is kind
        self.at += taken
        return taken


QUOTED = frozenset({TokenType.IDENTIFIER, TokenType.STRING})

_PLAIN_NAME = re.compile(r"[\w$#@]+")


def _folded(name: str, dialect: str) -> str:
    """Return an unquoted name as the source's catalog has it."""
    return name.upper() if dialect == "oracle" else name.lower() if dialect == "postgres" else name


def split(tokens: Sequence[Token], separator: TokenType) -> Iterator[Sequence[Token]]:
    """Yield the parts between the separators that are not inside brackets, without empty parts."""
    depth = start = 0
    for place, token in enumerate(tokens):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if token.token_type is separator and depth <= 0:
            if place > start:
                yield tokens[start:place]
            start = place + 1
    if len(tokens) > start:
        yield tokens[start:]


def outside(tokens: Sequence[Token]) -> list[str]:
    """Return the words that stand in no brackets, in capitals; empty for quoted names and texts."""
    return [word for word in outside_or_none(tokens) if word is not None]


def outside_or_none(tokens: Sequence[Token]) -> list[str | None]:
    """Return for each token what ``outside`` has of it; None if it stands in brackets, or is one."""
    found: list[str | None] = []
    depth = 0
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        is_outside = depth <= 0 and token.token_type is not TokenType.R_PAREN
        found.append(capitals(token) if is_outside else None)
    return found


def capitals(token: Token) -> str:
    """Return a word in capitals; empty for a quoted name and for a text."""
    return "" if token.token_type in QUOTED else token.text.upper()


def closing(tokens: Sequence[Token]) -> int | None:
    """Return the index of the bracket that closes one opened before the first token; None if there is none."""
    depth = 1
    for place, token in enumerate(tokens):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0:
            return place
    return None


def words_of(statement: str, dialect: str) -> list[Token]:
    """Return the words and signs of a text, without its comments."""
    read = Dialect.get_or_raise(dialect)
    found: list[Token] = []
    for token in read.tokenize(statement):
        # sqlglot takes RENAME for a command where a statement begins with it, and does not split the text behind it.
        of_command = found and found[-1].text.upper() == "RENAME" and token.token_type is TokenType.STRING
        if of_command and (len(found) == 1 or found[-2].token_type is TokenType.SEMICOLON):
            found += read.tokenize(token.text)
        else:
            found.append(token)
    return found


def shown(token: Token) -> str:
    """Return a part of a statement as reports may show it: nothing of a text or a number, which may be a value."""
    if token.token_type.name.endswith("STRING"):
        return "'...'"
    return "..." if token.token_type is TokenType.NUMBER else token.text
