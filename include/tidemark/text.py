"""Text of messages on a terminal: names, values and reasons may hold what would steer it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

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


def first_line(error: BaseException) -> str:
    """What an error of somebody else's says, short enough for a line."""
    return (str(error).strip().partition("\n")[0] or type(error).__name__)[:500]


def quoted(name: str) -> str:
    """A name as Spark reads it back unchanged, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def suggestion(name: str, allowed: Iterable[str]) -> str:
    """Say what was meant perhaps, and what is allowed: ``" Did you mean 'x'? Allowed: x, y."``."""
    names = sorted(allowed)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return f"{hint} Allowed: {', '.join(names) or 'none'}."
