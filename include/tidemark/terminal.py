"""Text of messages on a terminal: names, values and reasons may hold what would steer it."""

from __future__ import annotations

import re

_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, ends of lines, and what turns the direction of writing; surrogates cannot be written at all."""


def harmless(text: str) -> str:
    r"""The text with what would steer a terminal written as escapes.

    >>> harmless("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    return _STEERING.sub(_escape, text)


def harmless_lines(text: str) -> str:
    """The same for text of several lines, which stay."""
    return "\n".join(map(harmless, text.split("\n")))


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
