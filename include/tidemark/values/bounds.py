"""What a type of the source allows, where the type of the published column allows more: a length, a range, labels.

Shapes keep it as a text: ``length 20``, ``range 0 255``, ``labels ["new", "paid"]``, ``joined ["new", "paid"]``.
Formats import this module, so it imports nothing slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec


class Bounds(NamedTuple):
    """What values of a column may be. What is not known is None."""

    length: int | None = None
    """Most characters of a text."""
    low: int | None = None
    high: int | None = None
    labels: tuple[str, ...] | None = None
    """The texts of an enum. The number of a label is allowed too, and the empty text, by which MySQL marks an error."""
    joined: bool = False
    """Whether a label may be several of these with commas between them."""


def length(most: int) -> str:
    """Return the bounds of a text of so many characters."""
    return f"length {most}"


def between(low: int, high: int) -> str:
    """Return the bounds of a number."""
    return f"range {low} {high}"


def whole(bits: int, *, unsigned: bool) -> str:
    """Return the bounds of a whole number of so many bits."""
    return between(0, 2**bits - 1) if unsigned else between(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def one_of(labels: Sequence[str]) -> str:
    """Return the bounds of an enum."""
    return f"labels {msgspec.json.encode(labels).decode()}"


def one_of_joined(labels: str) -> str:
    """Return the bounds of an enum whose labels come with commas between them, and may have commas in them.

    Some tools escape commas and backslashes in labels, and others do not.
    """
    parts = labels.split(",")
    if "\\" in labels:
        known = frozenset(parts)
        parts += [plain for _, plain in escaped_labels(labels) if plain not in known]
    return f"joined {msgspec.json.encode(parts).decode()}"


def escaped_labels(labels: str) -> list[tuple[str, str]]:
    r"""Return labels with commas between them, each as it is written and as it is; a backslash escapes a comma.

    >>> escaped_labels(r"a,so\, so,x\\y")
    [('a', 'a'), ('so\\, so', 'so, so'), ('x\\\\y', 'x\\y')]
    """
    return [(label, _ESCAPED.sub(r"\1", label)) for label in _BETWEEN.findall(labels)]


_BETWEEN = re.compile(r"(?:\A|(?<=,))(?:[^\\,]|\\.|\\\Z)*(?=,|\Z)", re.DOTALL)

_ESCAPED = re.compile(r"\\([\\,])")


def parsed(text: str) -> Bounds:
    """Return the bounds that a text of the functions above says.

    >>> parsed("range -128 127").low, parsed('labels ["a"]').labels
    (-128, ('a',))
    """
    kind, _, rest = text.partition(" ")
    if kind == "length":
        return Bounds(length=int(rest))
    if kind == "range":
        low, high = map(int, rest.split(" "))
        return Bounds(low=low, high=high)
    return Bounds(labels=msgspec.json.decode(rest, type=tuple[str, ...]), joined=kind == "joined")


def widest(texts: Iterable[str | msgspec.UnsetType]) -> Bounds | None:
    """Return what all of some bounds allow together; None if one is not known, or they are of several kinds.

    >>> widest(["length 20", "length 30"]), widest(["length 20", msgspec.UNSET])
    (Bounds(length=30, low=None, high=None, labels=None, joined=False), None)
    """
    found = []
    for text in texts:
        if isinstance(text, msgspec.UnsetType):
            return None
        found.append(parsed(text))
    lengths = [each.length for each in found if each.length is not None]
    ranges = [(each.low, each.high) for each in found if each.low is not None and each.high is not None]
    labels = [label for each in found if each.labels is not None for label in each.labels]
    if found and len(lengths) == len(found):
        return Bounds(length=max(lengths))
    if found and len(ranges) == len(found):
        return Bounds(low=min(low for low, _ in ranges), high=max(high for _, high in ranges))
    if found and all(each.labels is not None for each in found):
        return Bounds(labels=tuple(dict.fromkeys(labels)), joined=any(each.joined for each in found))
    return None
