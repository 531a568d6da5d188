"""Finds the end of a JSON value that is too long to be held in memory."""

from __future__ import annotations

import re
from typing import Final

_DEEPEST: Final = 1 << 20
"""Most brackets that may be open."""

_MARK: Final = re.compile(rb'["{}\[\]]')

_IN_STRING: Final = re.compile(rb'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+', re.DOTALL)

_OPENING: Final = {ord("}"): ord("{"), ord("]"): ord("[")}


class Skipper:
    """Follows the brackets and strings of one value, piece by piece. It holds none of the text."""

    def __init__(self) -> None:
        self._opened = bytearray()
        self._in_string = False
        self._escaped = False

    def end(self, text: bytes, at: int) -> int | None:
        """Return the place behind the value in a piece that is read from ``at`` on; None if it goes on behind it.

        Raises:
            ValueError: the text is no JSON.
        """
        while at < len(text):
            if self._in_string:
                at = self._string(text, at)
            elif (mark := _MARK.search(text, at)) is None:
                return None
            else:
                at = mark.end()
                self._bracket(mark[0][0])
            if not self._opened and not self._in_string:
                return at
        return None

    def _string(self, text: bytes, at: int) -> int:
        """Go on in a string, and return the place behind it or behind the piece."""
        if self._escaped:
            self._escaped, at = False, at + 1
        found = _IN_STRING.match(text, at)
        at = found.end() if found else at
        if at == len(text):
            return at
        if text[at] == ord("\n"):
            raise ValueError("a line ends in a string")
        self._escaped = text[at] == ord("\\")  # the last byte of the piece
        self._in_string = self._escaped
        return at + 1

    def _bracket(self, byte: int) -> None:
        if byte == ord('"'):
            self._in_string = True
        elif byte not in _OPENING:
            if len(self._opened) == _DEEPEST:
                raise ValueError("too many brackets in brackets")
            self._opened.append(byte)
        elif not self._opened or self._opened.pop() != _OPENING[byte]:
            raise ValueError("a bracket closes one of the other kind")
