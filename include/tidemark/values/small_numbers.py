"""Finds images that may hold a number with a negative exponent (``1e-7``): Arrow must not read it as a decimal.

Arrow (PyArrow 26.0.1) looks up the power of ten by the number's scale, without a bound. ``1e-41`` is 0 in a
``decimal(10, 2)``, other numbers become others, and ``1e-10000000`` ends the process.

Spark's workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_DASH, _BACKSLASH = ord("-"), ord("\\")


def _among(characters: str) -> np.ndarray:
    found = np.zeros(256, dtype=np.bool_)
    found[list(characters.encode())] = True
    return found


_EXPONENT, _DIGITS, _MANTISSA, _SIGNS = _among("eE"), _among("0123456789"), _among("0123456789."), _among("+-")
_OF_WORDS = _among("-+_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
"""What no number has beside its sign and digits, and an identifier may have: ``9a0e-0305e82c3301``."""

_ESCAPED = np.array([
    int.from_bytes(code.encode())
    for code in ("45", "65", "2b", "2B", "2d", "2D", "2e", "2E", *(f"3{digit}" for digit in range(10)))
])  # fmt: skip
"""Behind ``\\u00``: the characters of a number, which a text may hide so."""

_MOST_DIGITS = 40
"""Characters of a number that are looked at on each side; with more of them, it counts as one."""


def images_with(texts: pa.Array, lines: pa.Buffer) -> pa.Array | None:
    """Return which images may hold such a number; None if none does.

    Args:
        texts: the images, none of them null.
        lines: the same, one behind the other, with one byte between two.
    """
    octets = np.frombuffer(lines, np.uint8)
    places = np.concatenate([_exponents(octets), _escapes(octets)])
    if not len(places):
        return None
    ends = np.cumsum(pc.binary_length(texts).to_numpy().astype(np.int64) + 1)
    found = np.zeros(len(texts), dtype=np.bool_)
    found[np.searchsorted(ends, places, side="right")] = True
    return pa.array(found)


def _exponents(octets: np.ndarray) -> np.ndarray:
    """Return the places of dashes that are the sign of an exponent: digits on both sides, and no word around these."""
    places = np.flatnonzero(octets[2:-1] == _DASH) + 2  # two characters stand before such a dash, and one behind it
    places = places[_EXPONENT[octets[places - 1]]]
    places = places[_MANTISSA[octets[places - 2]] & _DIGITS[octets[places + 1]]]
    places = places[~_OF_WORDS[octets[_beyond(octets, places + 1, 1, _DIGITS)]]]
    before = _beyond(octets, places - 2, -1, _MANTISSA)
    is_long = _MANTISSA[octets[before]]
    beside = octets[np.maximum(before - _SIGNS[octets[before]], 0)]
    found: np.ndarray = places[is_long | ~(_OF_WORDS[beside] | _DIGITS[beside])]
    return found


def _beyond(octets: np.ndarray, places: np.ndarray, step: int, passed: np.ndarray) -> np.ndarray:
    """Return the places behind (or before, with ``step`` -1) some characters, or the last place that is looked at."""
    for _ in range(_MOST_DIGITS):
        places = np.clip(places + step * passed[octets[places]], 0, len(octets) - 1)
    return places


def _escapes(octets: np.ndarray) -> np.ndarray:
    """Return the places of escapes that stand for a character of a number."""
    places = np.flatnonzero(octets[:-5] == _BACKSLASH)
    for ahead, character in enumerate(b"u00", start=1):
        places = places[octets[places + ahead] == character]
    codes = octets[places + 4] * np.uint16(256) + octets[places + 5]
    return places[np.isin(codes, _ESCAPED)]
