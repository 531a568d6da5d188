"""The order of dump files by their paths, in which numbers count as numbers: ``changes-9`` comes before ``changes-10``.

Where nothing else orders events, the path of their file is a part of their position, and positions compare as text. So
a path is written into a position as a text that sorts in this order (``in_order``). A number keeps its digits if it has
as many as the first number that landed at that place of a path. So a path whose numbers are all padded is written as it
is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

_NUMBER: Final = re.compile(r"[0-9]+")

_SIGN: Final = "\0"
"""Stands where a path has no character of its own: no path has this one."""

_LARGER: Final = f":{_SIGN}"
"""Begins a number that has more digits than fit. A colon sorts above all digits."""


def widths(paths: Iterable[str]) -> dict[str, int]:
    """Return the places of paths at which numbers differ in length, each with the length of the first number there.

    A place is the text before it, with a sign in place of each number.

    Args:
        paths: in the order in which they landed. More paths behind them never change what was found.
    """
    first: dict[str, int] = {}
    differ: dict[str, int] = {}
    for path in paths:
        for place, number in _numbers(path):
            width = first.setdefault(place, len(number))
            if width != len(number):
                differ[place] = width
    return differ


def in_order(path: str, width_at: Mapping[str, int]) -> str:
    """Return a text for a path that sorts among other paths with numbers as numbers. No two paths have the same text.

    Args:
        path: the path of a file.
        width_at: what ``widths`` found for all paths of the source.
    """
    written = (_written(number, width_at[place]) if place in width_at else number for place, number in _numbers(path))
    return _NUMBER.sub(lambda _: next(written), path)


def series_of(path: str) -> str:
    """Return a path with a sign in place of each number: files of one series differ in numbers alone."""
    return _NUMBER.sub("#", path)


def _numbers(path: str) -> Iterator[tuple[str, str]]:
    """Yield the place and the digits of each number in a path."""
    at, place = 0, ""
    for match in _NUMBER.finditer(path):
        place += path[at : match.start()]
        yield place, match[0]
        place, at = place + _SIGN, match.end()


def _written(number: str, width: int) -> str:
    """Return a number in as many digits as ``width``, or marked as larger; its own length tells equal ones apart."""
    if len(number) == width:
        return number
    digits = number.lstrip("0") or "0"
    if len(digits) <= width:
        return f"{digits.zfill(width)}{_SIGN}{len(number):04d}"
    zeros = f"{_SIGN}{len(number):04d}" if len(number) > len(digits) else ""
    return f"{_LARGER}{len(digits):04d}{digits}{zeros}"
