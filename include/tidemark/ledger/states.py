"""In which states a cut and its tables are, and the words of a verdict. The ledger stores these texts.

Each set has a type of its own, as a cut can be checked and a table cannot: where two sets share a text, it stands in
both.
"""

from __future__ import annotations

from enum import StrEnum


class CutState(StrEnum):
    """How far a cut has come."""

    CANDIDATE = "candidate"
    """It is compacted and not checked."""
    FAILED = "failed"
    AWAITING_APPROVAL = "held"
    """Only checks failed that a person may overrule: a person may approve it."""
    CHECKED = "checked"
    PUBLISHING = "publishing"
    PUBLISHED = "published"
    REPLACED = "replaced"
    """The cut awaited approval and was dropped for one that holds more, it lost a candidate, or another writer moved a
    ``main``. Its number is not used again, as someone may be approving it."""


class TableState(StrEnum):
    """Where a table stands in a cut."""

    CANDIDATE = "candidate"
    PUBLISHED = "published"
    STOPPED = "stopped"
    UNMOVED = "unmoved"
    """All new events of the table are held, or belong to undone transactions: the table stays, and its row counts
    them."""
    WAITING = "waiting"
    """There is no table yet: nothing but TRUNCATE came for it, or it lacks consent. It stands where a stopped one
    would."""


LEFT_BEHIND = frozenset({TableState.STOPPED, TableState.WAITING})
"""States of a table that took in nothing of its cut: it stands where it stood before."""


class VerdictWord(StrEnum):
    """What check found of a table, in one word."""

    PASSED = "passed"
    WARNED = "warned"
    """Only checks failed that block nothing."""
    FAILED = "failed"
    HELD = "held"
    """Only checks failed that a person may overrule."""
    APPROVED = "approved"
    """It was held, and a person approved the cut."""
