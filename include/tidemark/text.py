"""Text for people and for Spark: control characters escaped, names quoted and suggested, errors in one line.

Names, values and reasons come from messages. They may contain characters that control a terminal.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line ends, and characters that change the direction of writing; also surrogates, which cannot be
printed at all."""


def harmless(text: str) -> str:
    r"""Return the text with the characters that control a terminal written as escapes.

    >>> harmless("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    return _STEERING.sub(_escape, text)


def harmless_lines(text: str) -> str:
    """Return the same for a text of several lines, and keep its line ends."""
    return "\n".join(map(harmless, text.split("\n")))


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def first_line(error: BaseException) -> str:
    """Return the first line of the text of an error of a library, at most 500 characters."""
    return (str(error).strip().partition("\n")[0] or type(error).__name__)[:500]


def quoted(name: str) -> str:
    """Return a name quoted for Spark SQL, so that Spark reads it unchanged, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "check"), counted(0, "check")
    ('1 check', '0 checks')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, five unless it is said otherwise, and how many more there are.

    >>> listed(["a", "b"]), listed(list("abcdefg")), listed("abcd", 3)
    ('a, b', 'a, b, c, d, e and 2 more', 'a, b, c and 1 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def enumerated(phrases: Sequence[str], most: int = 5) -> str:
    """Return the first phrases, and how many more there are; a phrase may have commas of its own.

    >>> enumerated(["a, b", "c", "d"], 2)
    'a, b; c; 1 more'
    """
    more = [f"{len(phrases) - most} more"] if len(phrases) > most else []
    return "; ".join([*phrases[:most], *more])


def key_text(names: Iterable[str], values: Iterable[object]) -> str:
    """Return a key as text.

    >>> key_text(["id", "place"], [1, "a"])
    'id=1, place=a'
    """
    return ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def printable(text: str) -> str:
    """Return a text with a question mark for each sign that is not printed."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def matches(names: Iterable[str], patterns: Iterable[str]) -> bool:
    """Return whether a name fits a pattern, with ``*`` and ``?``; the case of letters does not matter."""
    expressions = [re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".") for pattern in patterns]
    flags = re.DOTALL | re.IGNORECASE
    return any(re.fullmatch(expression, name, flags) for name in names for expression in expressions)


_VALUES = re.compile(
    r"""(?P<kept>`[^`]*`|\b\w*(?:char2?|binary|bit|int|integer|decimal|numeric|number|time|timestamp|float|double)\s*
    \(\s*\d{1,5}(?:\s*,\s*\d{1,5})?\s*\))|(?P<text>'[^']*(?:'|$)|"[^"]*(?:"|$))|(?<!\w)\d[\w.]*""",
    re.IGNORECASE | re.VERBOSE,
)
"""Quoted names and the sizes of types; texts, which may be values, and in some databases names; numbers."""

_UNCLEAR = re.compile(r"\\\\|\$\w*\$|--|/\*|\#")
"""What lets two databases read the quotation marks behind it differently, and comments."""


def without_values(statement: str) -> str:
    """Return the first 200 characters of a statement, without the texts and numbers in it that may be values.

    >>> without_values("ALTER TABLE t ADD c varchar(9) DEFAULT 'a secret', ADD d int DEFAULT 42")
    "ALTER TABLE t ADD c varchar(9) DEFAULT '...', ADD d int DEFAULT ..."
    """
    if unclear := _UNCLEAR.search(statement):
        begins = [at for at in (statement.find("'"), statement.find('"'), unclear.start()) if at >= 0]
        statement = f"{statement[: min(begins)]}..."
    shown = _VALUES.sub(lambda found: found["kept"] or ("'...'" if found["text"] else "..."), statement)
    return " ".join(shown.split())[:200]


def suggestion(name: str, allowed: Iterable[str]) -> str:
    """Return a hint with the nearest allowed name and all allowed names: ``" Did you mean 'x'? Allowed: x, y."``."""
    names = sorted(allowed)
    return f"{nearest(name, names)} Allowed: {', '.join(names) or 'none'}."


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Return a hint with the nearest allowed name, ``" Did you mean 'x'?"``, or nothing if none is near.

    Names with dots are also compared by their last parts: ``ordres`` is near to ``erp.orders``.
    """
    names = sorted(allowed)
    if near := difflib.get_close_matches(name, names, n=1):
        return f" Did you mean '{near[0]}'?"
    by_last = {other.rpartition(".")[2]: other for other in reversed(names)}
    last = difflib.get_close_matches(name.rpartition(".")[2], by_last, n=1)
    return f" Did you mean '{by_last[last[0]]}'?" if last else ""
