"""A landing pattern, taken apart: which paths match, and which time each of them names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from tidemark.dumps.time_fields import lacking
from tidemark.errors import ConfigurationError

_DIGITS: Final = {"Y": 4, "m": 2, "d": 2, "j": 3, "H": 2, "M": 2, "S": 2}

_STATIC: Final = re.compile(r"(?:[^%*?]|%%)*")

_AUTHORITY: Final = re.compile(r"(?:\w[\w+.-]*://[^/]*/)?")

_QUERY: Final = re.compile(r"\?\w+=[^/]*$")

_TOKEN: Final = re.compile(r"(?P<folders>(?:(?<=/)|^)\*\*/)|(?P<any>\*+)|(?P<one>\?)|%(?P<field>.?)|(?P<text>[^*?%]+)")

_SHOWN: Final = r"(?![._])"
"""Stands before a wildcard at the start of a name, so that it matches no hidden file."""

_UNFINISHED: Final = (".tmp", ".part")


class _Digits(Enum):
    """How many digits a field of time has. Each way matches what the ways before it match."""

    ALL = auto()
    """As many as ``strftime`` writes."""
    ALONE = auto()
    """Fewer too, where no digit stands beside them: ``hour=9``."""
    ANY = auto()
    """Fewer too, wherever they stand: in ``2026111`` it is not known which number is the shorter one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A landing pattern, taken apart."""

    root: str
    """The folder above the first wildcard or field of time."""
    query: str
    """Options at the end of a URI, with the question mark."""
    rest: str
    """The pattern below ``root``."""
    depth: int | None
    """How many levels of folders to list, ``root`` included; None for all."""
    ways: tuple[re.Pattern[str], ...]
    """Match a path below ``root``: with all digits of its times, with fewer where it is certain which they are, and
    where it is not."""

    def times(self, name: str) -> dict[str, int] | None:
        """Return the numbers of the fields of time in a path below ``root``; None if the path does not match.

        A number may lack its leading zeros where no digit stands beside it. A path with all digits is read with these.
        """
        exact, alone, _ = self.ways
        found = exact.fullmatch(name) or alone.fullmatch(name)
        return _numbers(found) if found else None

    def nearly(self, name: str) -> bool:
        """Return whether a path that does not match would do so with the leading zeros that its times lack."""
        found = self.ways[2].fullmatch(name)
        return found is not None and _numbers(found) is not None and self.times(name) is None


def parsed(pattern: str) -> Pattern:
    """Return a landing pattern, taken apart.

    Raises:
        ConfigurationError: a field of time is unknown, or stands without a coarser one that it needs.
    """
    query = _QUERY.search(pattern) if "://" in pattern else None
    path = pattern[: query.start()] if query else pattern
    static, folder = _end(_STATIC, path), len(path.rstrip("/"))
    cut = max(_end(_AUTHORITY, path), path.rfind("/", 0, min(static, folder)) + 1)
    root, rest = path[:cut] or "./", path[cut:]
    if rest.endswith("/") or not rest:
        rest += "*"
    elif rest == "**" or rest.endswith("/**"):
        rest += "/*"
    ways, depth = _compile(rest, pattern), None if "**/" in rest else rest.count("/") + (1 if _ends_wild(rest) else 2)
    root = root.replace("%%", "%25" if "://" in root else "%")
    return Pattern(root=root, query=query[0] if query else "", rest=rest, depth=depth, ways=ways)


def part_of(rest: str) -> re.Pattern[str]:
    """Return the beginning of the part of a pattern below its root, down to a folder, as a regular expression."""
    return re.compile(_expression(rest, [], rest, _Digits.ALONE), re.ASCII | re.DOTALL)


def _numbers(found: re.Match[str]) -> dict[str, int] | None:
    """Return the numbers of the fields of time that were found; None if one field has two."""
    numbers = {(group[0], int(digits)) for group, digits in found.groupdict().items()}
    by_field = dict(numbers)
    return by_field if len(by_field) == len(numbers) else None


def _end(regex: re.Pattern[str], text: str) -> int:
    found = regex.match(text)
    return found.end() if found else 0


def _ends_wild(rest: str) -> bool:
    return re.search(r"[*?][^/]*$", rest) is not None


def _compile(rest: str, pattern: str) -> tuple[re.Pattern[str], ...]:
    """Return the part of a pattern below its root as a regular expression, for each number of digits."""
    folder = "" if _ends_wild(rest) else f"(?:/{_SHOWN}[^/]+)?"
    unfinished = "".join(rf"(?<!{re.escape(ending)})" for ending in _UNFINISHED if not rest.endswith(ending))
    ways = []
    for digits in _Digits:
        fields: list[str] = []
        expression = _expression(rest, fields, pattern, digits)
        if problem := lacking(fields):
            raise ConfigurationError(f"{pattern}: {problem}")
        ways.append(re.compile(expression + folder + unfinished, re.ASCII | re.DOTALL))
    return tuple(ways)


def _expression(rest: str, fields: list[str], pattern: str, digits: _Digits) -> str:
    tokens = _TOKEN.finditer(rest.replace("%%", "\0"))
    return "".join(
        _text(token) if token["field"] is None else _field(token, fields, pattern, digits) for token in tokens
    )


def _text(token: re.Match[str]) -> str:
    shown = _SHOWN if token.start() == 0 or token.string[token.start() - 1] == "/" else ""
    if token["folders"]:
        return f"(?:{_SHOWN}[^/]+/)*"
    if token["any"]:
        return shown + "[^/]*"
    if token["one"]:
        return shown + "[^/]"
    return re.escape(token["text"].replace("\0", "%"))


def _field(token: re.Match[str], fields: list[str], pattern: str, digits: _Digits) -> str:
    """Return a field of time as a regular expression, in a group that is named after it and counted."""
    field = token["field"]
    if field not in _DIGITS:
        raise ConfigurationError(
            f"{pattern}: unknown field of time '%{field}'; allowed are %{' %'.join(_DIGITS)}, and %% for a percent sign"
        )
    count, most = fields.count(field), _DIGITS[field]
    fields.append(field)
    if count and digits is _Digits.ALL:
        return f"(?P={field}0)"
    number = f"[0-9]{{{most}}}"
    if digits is not _Digits.ALL and field != "Y":
        short = f"[0-9]{{1,{most}}}"
        number = short if digits is _Digits.ANY else rf"(?:{number}|(?<![0-9]){short}(?![0-9]))"
    return f"(?P<{field}{count}>{number})"
