"""JSON text in bulk: which layout a text has, and where its values begin and end.

Values are cut out verbatim and never become Python objects. The search looks at brackets and strings only. So a value
with an error inside is still one value, and its decoder refuses that value alone. Grammar: RFC 8259.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from tidemark.dumps.beyond_limit import LIMIT, TooLong
from tidemark.dumps.json_skipping import Skipper
from tidemark.errors import LandingError


class TextLayout(StrEnum):
    """How messages stand in a JSON text."""

    LINES = "json_lines"
    """One message on each line. Blank lines are not messages."""
    ARRAY = "json_array"
    """The messages are the elements of one array."""
    VALUES = "json_values"
    """Objects or arrays follow one another. Each may take any number of lines."""


_OPENING: Final = {ord("}"): ord("{"), ord("]"): ord("[")}

_SPACE: Final = re.compile(rb"[ \t\r\n]*+")

_STRING: Final = rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+'
"""A string, without its closing quote. It contains no line end (section 7)."""

_TO_BRACKET: Final = re.compile(
    rb'[^"{}\[\]]*+(?:%s"[^"{}\[\]]*+)*+(?:(?P<bracket>[{}\[\]])|(?P<broken>%s\\?\n))?' % (_STRING, _STRING)
)

_SCALAR: Final = re.compile(rb'%s"|[^\s,"{}\[\]]++' % _STRING)

_OBJECT_LINE: Final = re.compile(rb'\{\s*"')

_RAW: Final = msgspec.json.Decoder(msgspec.Raw)


def is_valid(text: bytes) -> bool:
    """Return whether the text is one JSON value, with or without blanks around it."""
    try:
        _RAW.decode(text)
    except RecursionError:
        return True  # Too deep to check here: its decoder decides.
    except msgspec.MsgspecError:
        return False
    return True


def layout_of(text: bytes, *, whole: bool) -> TextLayout:
    """Return the layout of a text, recognised by its beginning.

    One broken message must not change the layout. So the first element alone decides for an array. A text is
    ``VALUES`` only if all its values are sound. Any other text is ``LINES`` if one of its later lines is an object by
    itself.

    Args:
        text: the beginning of a text, without byte-order mark, with the whole of its first line that is not blank.
        whole: whether the text ends there.
    """
    lines = _whole_lines(text, whole=whole)
    first_is_valid = bool(lines) and is_valid(lines[0])
    if _begins_as_array(text) and not (first_is_valid and len(lines) > 1):
        return TextLayout.ARRAY
    if all(map(is_valid, lines)) and lines:
        return TextLayout.LINES
    values = _leading_values(text)
    if values and not (first_is_valid and all(b"\n" not in value for value in values)):
        return TextLayout.VALUES
    if _holds_object_line(lines[1:]):
        return TextLayout.LINES
    return _layout_of_first(lines[0] if lines else text)


def _whole_lines(text: bytes, *, whole: bool) -> list[bytes]:
    *lines, last = text.split(b"\n")
    if whole and is_valid(last):
        lines.append(last)
    return [line for line in lines if line.strip()]


def _holds_object_line(lines: list[bytes]) -> bool:
    return any(_OBJECT_LINE.match(line) is not None and is_valid(line) for line in lines)


def _begins_as_array(text: bytes) -> bool:
    if not text.lstrip().startswith(b"["):
        return False
    values = _values_of(text)
    try:
        next(values.elements(), None)
    except LandingError:
        return values.ended and not _holds_object_line(text.split(b"\n")[1:])
    return True


def _leading_values(text: bytes) -> list[bytes]:
    """Return the whole values of a text; none if one of them, or anything between two of them, is not JSON."""
    found = []
    values = _values_of(text)
    try:
        for value in values.each():
            found.append(value)  # noqa: PERF402  the values before an error count
    except LandingError:
        if not values.ended:
            return []
    return found if all(map(is_valid, found)) else []


def _layout_of_first(line: bytes) -> TextLayout:
    """Return the layout of a text without a sound value: ``VALUES`` if its first line leaves a bracket open."""
    values = _values_of(line)
    try:
        next(values.each(), None)
    except LandingError:
        return TextLayout.VALUES if values.ended else TextLayout.LINES
    return TextLayout.LINES


def _values_of(text: bytes) -> Values:
    return Values(iter((text,)), "", limit=len(text))


class _TooLongError(Exception):
    """The value that begins here has more bytes than a value may have."""


class Values:
    """Cuts a stream of JSON text into values. It holds the text of one value at a time in memory."""

    def __init__(self, chunks: Iterator[bytes], path: str, *, limit: int = LIMIT) -> None:
        self.ended = False
        """Whether the end of the text was reached."""
        self._chunks = chunks
        self._path = path
        self._limit = limit
        self._text = b""
        self._at = 0
        self._passed = 0
        """Bytes of the stream before ``_text``."""

    def each(self) -> Iterator[bytes]:
        """Yield the objects and arrays that follow one another.

        Raises:
            LandingError: the text ends inside a value, or something else stands there. The error names the byte.
        """
        while (first := self._peek()) is not None:
            if first not in b"{[":
                raise self._error(self._at, "neither an object nor an array begins here")
            yield self.value()

    def elements(self) -> Iterator[bytes]:
        """Yield the elements of the array that makes up the whole text; raises as ``each`` does."""
        self._take(b"[")
        if self._peek() == ord("]"):
            self._at += 1
        else:
            yield from self._separated()
        if self._peek() is not None:
            raise self._error(self._at, "something follows the array")

    def value(self) -> bytes:
        """Return the value that begins here, or what is kept of one that is too long, and go on behind it."""
        first = self._peek()
        if first is None:
            raise self._cut()
        try:
            end = self._bracketed() if first in b"{[" else self._scalar()
        except _TooLongError:
            return self._skipped()
        if end - self._at > self._limit:
            return self._skipped()
        value, self._at = self._text[self._at : end], end
        return value

    def _skipped(self) -> bytes:
        """Go on behind a value that is too long, and return what is kept of it."""
        if self._text[self._at] not in b'{["':
            raise self._error(self._at, "no JSON value begins here")
        long, skipper = TooLong(self._limit), Skipper()
        while True:
            try:
                end = skipper.end(self._text, self._at)
            except ValueError as error:
                raise self._error(self._at, str(error)) from error
            long.add(self._text[self._at : end])
            if end is not None:
                self._at = end
                return long.kept()
            self._passed += len(self._text)
            self._text, self._at = next(self._chunks, b""), 0
            if not self._text:
                self.ended = True
                raise self._cut()

    def _separated(self) -> Iterator[bytes]:
        separator = ord(",")
        while separator == ord(","):
            value = self.value()
            separator = self._take(b",]")
            yield value

    def _bracketed(self) -> int:
        opened = bytearray()
        end = self._at
        while True:
            found = _TO_BRACKET.match(self._text, end)
            if found is None or found.lastgroup is None:
                end -= self._more()
                continue
            if found["broken"]:
                raise self._error(found.end() - 1, "a line ends in a string")
            end = found.end()
            bracket = self._text[end - 1]
            if bracket not in _OPENING:
                opened.append(bracket)
            elif opened.pop() != _OPENING[bracket]:
                raise self._error(end - 1, "a bracket closes one of the other kind")
            if not opened:
                return end

    def _scalar(self) -> int:
        while True:
            found = _SCALAR.match(self._text, self._at)
            if found and (found[0].startswith(b'"') or found.end() < len(self._text) or self.ended):
                break
            if found is None and (self._peek() != ord('"') or b"\n" in self._text[self._at :]):
                raise self._error(self._at, "no JSON value begins here")
            self._more(required=found is None)
        if not is_valid(found[0]):
            raise self._error(self._at, "no JSON value begins here")
        return found.end()

    def _take(self, allowed: bytes) -> int:
        byte = self._peek()
        if byte is None:
            raise self._cut()
        if byte not in allowed:
            raise self._error(self._at, f"expected one of {' '.join(allowed.decode())}")
        self._at += 1
        return byte

    def _peek(self) -> int | None:
        """Return the next byte that is not blank; None at the end of the text."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if self.ended:
                return None
            self._more(required=False)

    def _more(self, *, required: bool = True) -> int:
        """Read the next chunk, drop the bytes before the current value, and return how many they were."""
        dropped = self._at
        if len(self._text) - dropped > self._limit:
            raise _TooLongError
        chunk = next(self._chunks, None)
        self.ended = chunk is None
        if chunk is None and required:
            raise self._cut()
        self._text = self._text[dropped:] + (chunk or b"")
        self._passed += dropped
        self._at = 0
        return dropped

    def _cut(self) -> LandingError:
        return self._error(len(self._text), "the text ends inside a value or array")

    def _error(self, at: int, problem: str) -> LandingError:
        where = f"{self._path}: byte {self._passed + at} of the expanded text"
        return LandingError(f"{where}: {problem}, so the next message cannot be found; fetch or repair the file")
