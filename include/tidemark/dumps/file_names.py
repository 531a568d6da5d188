"""The order of dump files by their paths, in which numbers count as numbers: ``changes-9`` comes before ``changes-10``.

Where nothing else orders events, the path of their file is a part of their position, and positions compare as text. So
a path is written into a position as a text that sorts in this order (``FileOrder.text``). A number keeps its digits if
it has as many as the first number that landed at that place of a path. So a path whose numbers are all padded is
written as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

_NUMBER: Final = re.compile(r"[0-9]+")

_SIGN: Final = "\0"
"""Stands where a path has no character of its own: no path has this one."""

_LARGER: Final = f":{_SIGN}"
"""Begins a number that has more digits than fit. A colon sorts above all digits."""

_LENGTHS: Final = _SIGN * 2
"""Begins the lengths at the end of a text."""

_ADDED: Final = re.compile(rf"{_LENGTHS}.*|{_LARGER}[0-9]{{4}}|{_SIGN}[0-9]{{4}}", re.DOTALL)
"""What a text has that its path has not, but for zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOrder:
    """The order of the files of a source by their paths."""

    width_at: Mapping[str, int] = field(default_factory=dict)
    """What ``widths`` found for all paths of the source. If it is empty, paths are ordered as text."""
    lengths_in_place: bool = False
    """Whether the length of a number always stands behind it, as change logs of earlier versions have it. Of two paths
    with ``2`` and ``02`` at one place, later numbers do not decide then: see docs/adr/0033."""

    def text(self, path: str) -> str:
        """Return a text for a path that sorts among other paths with numbers as numbers.

        No two paths have the same text.
        """
        pieces, lengths, at = [], "", 0
        for index, (place, match) in enumerate(numbers := list(_numbers(path))):
            digits, length = match[0], ""
            if place in self.width_at:
                digits, length = _written(digits, self.width_at[place])
            # Behind the last number of a path, its length decides nothing that a number should.
            if length and not self.lengths_in_place and index + 1 < len(numbers):
                lengths, length = f"{lengths}{_LENGTHS}{index:04d}{length}", ""
            pieces += [path[at : match.start()], digits, length]
            at = match.end()
        return "".join(pieces) + path[at:] + lengths


def widths(paths: Iterable[str]) -> dict[str, int]:
    """Return the places of paths at which numbers differ in length, each with the length of the first number there.

    A place is the text before it, with a sign in place of each number.

    Args:
        paths: in the order in which they landed. More paths behind them never change what was found.
    """
    first: dict[str, int] = {}
    differ: dict[str, int] = {}
    for path in paths:
        for place, match in _numbers(path):
            width = first.setdefault(place, len(match[0]))
            if width != len(match[0]):
                differ[place] = width
    return differ


def plain(text: str) -> str:
    """Return the path that ``FileOrder.text`` wrote as a text, but for the zeros that begin its numbers.

    >>> plain(FileOrder(width_at=widths(["p0/f9", "p0/f10"])).text("p0/f10"))
    'p0/f10'
    """
    return _ADDED.sub("", text)


def series_of(path: str) -> str:
    """Return a path with a sign in place of each number: files of one series differ in numbers alone."""
    return _NUMBER.sub("#", path)


def _numbers(path: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the place and the match of each number in a path."""
    at, place = 0, ""
    for match in _NUMBER.finditer(path):
        place += path[at : match.start()]
        yield place, match
        place, at = place + _SIGN, match.end()


def _written(number: str, width: int) -> tuple[str, str]:
    """Return a number in as many digits as ``width`` or marked as larger, and its length if that does not show it."""
    if len(number) == width:
        return number, ""
    digits = number.lstrip("0") or "0"
    length = f"{_SIGN}{len(number):04d}"
    if len(digits) <= width:
        return digits.zfill(width), length
    return f"{_LARGER}{len(digits):04d}{digits}", length if len(number) > len(digits) else ""
