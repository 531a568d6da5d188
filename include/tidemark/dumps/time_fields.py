"""Which fields of time of a landing path say a time together. Reading a source file imports this module."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

_COARSER: Final = {"m": "Y", "d": "m", "j": "Y", "H": "dj", "M": "H", "S": "M"}
"""By field of time: the coarser fields. The path needs one of them too."""


def lacking(fields: Collection[str]) -> str | None:
    """Return which field of a path says no time, and what to add; None if all of them say one together."""
    for field in fields:
        needed = _COARSER.get(field)
        if needed and not set(needed) & set(fields):
            return f"%{field} says no time without %{' or %'.join(needed)}; add it"
    return None
