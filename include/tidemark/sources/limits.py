"""How many rows a cut may delete, and how many messages or events may be set aside, before a person has to approve."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Share = Annotated[float, Field(ge=0, le=1, strict=True)]
"""A part of the whole, 0 to 1."""

DEFAULT_MAX_DELETES = 0.5

SMALL_TABLE = 1000
"""Without ``max_deletes``, tables of at most this number of rows may lose all of them in one cut.

In a small table, deleting most of the rows can be a normal day.
"""

DEFAULT_MAX_QUARANTINED = 0.05

FEW_QUARANTINED = 10
"""Without ``max_quarantined``, fewer messages or events than these are set aside without holding the cut."""


def deletable(share: float | None, rows: int, *, rebuilt: bool) -> int:
    """Return how many of a table's published rows one cut may delete.

    Args:
        share: ``max_deletes`` of the source file; None: the default.
        rows: the published rows.
        rebuilt: whether the cut builds the table again from its change log.
    """
    if share is None:
        share = 1.0 if rows <= SMALL_TABLE and not rebuilt else DEFAULT_MAX_DELETES
    return _part(rows, share)


def quarantinable(share: float | None, count: int) -> int:
    """Return how many of so many messages or events may be set aside.

    Args:
        share: ``max_quarantined`` of the source file; None: the default.
        count: all of them.
    """
    if share is None:
        return max(_part(count, DEFAULT_MAX_QUARANTINED), FEW_QUARANTINED - 1)
    return _part(count, share)


def _part(count: int, share: float) -> int:
    """Return a share of a count, rounded down; 29 % of 100 are 29, although 100 * 0.29 is less."""
    return int(count * share + 1e-9)
