"""Reads the constant of a DEFAULT clause; what is no constant is named, never guessed."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from tidemark.ddl.words import UnreadableError, Words, shown

Constant = Decimal | str | bytes | bool | None
"""A number, a text, bits and bytes, true or false, or NULL."""


class BitString(str):
    """A bit string of PostgreSQL: a text of zeros and ones, which is a binary number where a number is needed."""

    __slots__ = ()


class UnknownValueError(Exception):
    """The value that rows have in a new column is not known from the statement; the text says why."""


class ConstantReader(Words):
    """A reader of the expression behind DEFAULT."""

    def constant(self) -> Constant:
        """Return the constant.

        Raises:
            UnknownValueError: the expression is none.
        """
        self._skip_on_null()
        begins = self.at
        try:
            value = self._signed(0)
        except (UnknownValueError, UnreadableError, InvalidOperation, ValueError):
            self._is_unknown(begins)
        if self.at < len(self.tokens) and self.word() not in _BEHIND:
            self._is_unknown(begins)
        return value

    def _skip_on_null(self) -> None:
        """Skip Oracle's ON NULL FOR INSERT AND UPDATE: it does not change what rows get that are there."""
        if self.dialect == "oracle" and self.takes("ON"):
            while self.word() in {"NULL", "FOR", "INSERT", "AND", "UPDATE", "ONLY"}:
                self.at += 1

    def _is_unknown(self, begins: int) -> NoReturn:
        found = " ".join(shown(token) for token in self.tokens[begins : begins + 6])
        raise UnknownValueError(f"the value of {found[:60]!r} is not known here")

    def _signed(self, depth: int) -> Constant:
        """Read a constant with signs, brackets and casts around it."""
        if depth > _DEEPEST:
            raise UnreadableError("brackets in brackets")
        if self.takes_kind(TokenType.L_PAREN):
            value = self._signed(depth + 1)
            self._closes()
        elif self.takes_kind(TokenType.PLUS):
            value = self._number(self._signed(depth + 1))
        elif self.takes_kind(TokenType.DASH):
            number = self._number(self._signed(depth + 1))
            value = number.copy_negate() if number else number  # a minus before it would round to 28 digits
        elif self.word() == "CAST" and self._kind(1) is TokenType.L_PAREN:
            self.at += 2
            value = self._signed(depth + 1)
            if not self.takes("AS"):
                raise UnreadableError("a CAST without AS")
            value = self._cast(value)
            self._closes()
        else:
            value = self._literal()
        while self.takes_kind(TokenType.DCOLON):
            value = self._cast(value)
        return value

    def _closes(self) -> None:
        if not self.takes_kind(TokenType.R_PAREN):
            raise UnreadableError("a bracket is not closed")

    @staticmethod
    def _number(value: Constant) -> Decimal:
        if isinstance(value, bytes):
            return Decimal(int.from_bytes(value, "big"))
        if not isinstance(value, Decimal):
            raise UnreadableError("a sign before what is no number")
        return value

    def _kind(self, ahead: int = 0) -> TokenType | None:
        place = self.at + ahead
        return self.tokens[place].token_type if place < len(self.tokens) else None

    def _cast(self, value: Constant) -> Constant:
        """Return the value as a cast to the type that follows makes it."""
        from tidemark.ddl.declaration import Declaration  # noqa: PLC0415
        from tidemark.ddl.filled import filled  # noqa: PLC0415  a cast fills as a column does

        start = self.at
        self.at += 1
        while self.at < len(self.tokens) and (
            self.word() in _OF_A_TYPE or self._kind() in {TokenType.L_BRACKET, TokenType.R_BRACKET}
        ):
            self.at += 1
        if self.takes_kind(TokenType.L_PAREN):
            while self._kind() in {TokenType.NUMBER, TokenType.COMMA, TokenType.DASH}:
                self.at += 1
            self._closes()
        while self.word() in _OF_A_TYPE:
            self.at += 1
        declaration = Declaration.of(self.tokens[start : self.at], self.dialect)
        if value is None:
            return None
        fill = filled(value, declaration)
        if fill.text is None:
            raise UnreadableError("a cast that is not followed")
        return Decimal(fill.text) if declaration.is_number else fill.text

    def _literal(self) -> Constant:
        kind, text = self._kind(), "" if self.at >= len(self.tokens) else self.tokens[self.at].text
        if kind is TokenType.DOT and self._kind(1) is TokenType.NUMBER:
            self.at += 2
            return _decimal(f".{self.tokens[self.at - 1].text}")
        self.at += 1
        if kind is TokenType.NUMBER:
            if self.dialect == "oracle" and self.word() in {"F", "D"}:
                self.at += 1
            return _decimal(text)
        value: Constant = None
        if kind in _TEXTS:
            value = text + self._continued()
        elif kind in {TokenType.TRUE, TokenType.FALSE} and self.dialect != "tsql":
            value = kind is TokenType.TRUE
        elif kind is TokenType.INTRODUCER:
            value = self._introduced(text.lower().removeprefix("_"))
        elif kind in {TokenType.BIT_STRING, TokenType.HEX_STRING}:
            value = self._bits(self.tokens[self.at - 1])
        elif kind is not TokenType.NULL:
            value = self._named(text.upper())
        return value

    def _continued(self) -> str:
        """Return the texts that follow a text at once: in MySQL they are one."""
        text = ""
        while self.dialect == "mysql" and self._kind() is TokenType.STRING:
            text += self.tokens[self.at].text
            self.at += 1
        return text

    def _introduced(self, charset: str) -> Constant:
        """Read what follows a character set, such as ``_utf8mb4'x'``."""
        kind = self._kind()
        self.at += 1
        if kind in {TokenType.HEX_STRING, TokenType.BIT_STRING}:
            octets = self._bits(self.tokens[self.at - 1])
            if charset == "binary" or not isinstance(octets, bytes):
                return octets
            if charset in _CHARSETS:
                return octets.decode(_CHARSETS[charset])
        elif kind is TokenType.STRING:
            text = self.tokens[self.at - 1].text + self._continued()
            if charset == "binary" and text.isascii():
                return text.encode()
            if (text.isascii() and charset not in _WIDE) or charset in {"utf8", "utf8mb3", "utf8mb4"}:
                return text
        raise UnreadableError("a text of another character set")

    def _bits(self, token: Token) -> Constant:
        """Return a literal of bits or hexadecimal digits: PostgreSQL has bit strings and numbers, others have bytes."""
        digits, is_hex = token.text, token.token_type is TokenType.HEX_STRING
        marks = token.end - token.start + 1 - len(digits)
        if self.dialect == "postgres":
            if marks == len("0x"):
                return Decimal(int(digits, 16 if is_hex else 2))
            return BitString("".join(f"{int(digit, 16):04b}" for digit in digits) if is_hex else digits)
        if not digits:
            return b""
        width = (len(digits) + 1) // 2 if is_hex else (len(digits) + 7) // 8
        return int(digits, 16 if is_hex else 2).to_bytes(width, "big")

    def _named(self, word: str) -> Constant:
        """Read a constant that begins with a word: a typed text such as ``DATE '2026-01-31'``, or an empty JSON."""
        if self._kind() is TokenType.STRING and word in {"DATE", "TIME", "TIMESTAMP", "DATETIME"}:
            self.at += 1
            return self.tokens[self.at - 1].text
        empty = (self._kind(), self._kind(1)) == (TokenType.L_PAREN, TokenType.R_PAREN)
        if empty and self.dialect == "mysql" and word in _EMPTY_JSON:
            self.at += 2
            return _EMPTY_JSON[word]
        raise UnreadableError("no constant")


def _decimal(text: str) -> Decimal:
    number = Decimal(text)
    if len(text) > _LONGEST or abs(number.adjusted()) > _LONGEST:
        raise UnreadableError("a number of very many digits")
    return number


_DEEPEST = 20

_LONGEST = 400
"""Most digits of a number; a double has at most 309 before the point."""

_TEXTS = frozenset({
    TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.RAW_STRING, TokenType.NATIONAL_RAW_STRING,
    TokenType.HEREDOC_STRING, TokenType.BYTE_STRING,
})  # fmt: skip
"""Texts; PostgreSQL's ``E'...'`` is sqlglot's BYTE_STRING."""

_EMPTY_JSON = {"JSON_OBJECT": "{}", "JSON_ARRAY": "[]"}

_CHARSETS = {
    "utf8": "utf-8", "utf8mb3": "utf-8", "utf8mb4": "utf-8", "ascii": "ascii", "latin1": "cp1252", "ucs2": "utf-16-be",
    "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be", "gbk": "gbk", "gb18030": "gb18030",
    "big5": "big5", "sjis": "shift_jis", "cp932": "cp932", "euckr": "euc_kr",
}  # fmt: skip
"""MySQL's character sets, and Python's names for them."""

_WIDE = frozenset({"ucs2", "utf16", "utf16le", "utf32"})
"""Character sets in which the bytes of an ASCII text are another text."""

_OF_A_TYPE = frozenset({"VARYING", "PRECISION", "WITHOUT", "WITH", "TIME", "ZONE", "UNSIGNED", "SIGNED", "INTEGER"})
"""Words behind the first one of a type."""

_BEHIND = frozenset([
    "AFTER", "AUTO_INCREMENT", "CHECK", "COLLATE", "COLUMN_FORMAT", "COMMENT", "COMPRESSED", "CONSTRAINT", "DEFERRABLE",
    "DISABLE", "ENABLE", "ENCRYPT", "ENGINE_ATTRIBUTE", "FIRST", "INITIALLY", "INVISIBLE", "KEY", "NOT", "NULL", "ON",
    "PRIMARY", "REFERENCES", "SECONDARY_ENGINE_ATTRIBUTE", "STORAGE", "UNIQUE", "VISIBLE", "WITH",
])  # fmt: skip
"""First words of the clauses that may follow the expression of DEFAULT."""
