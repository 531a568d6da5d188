"""A doubt about new events, which holds the cut back or is only reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyiceberg.table import Table

from tidemark.quality.places import first_place
from tidemark.sources.choices import Severity
from tidemark.text import harmless


class Doubt(NamedTuple):
    """One doubt about the new events of a table. A person may approve a cut in spite of it."""

    invariant: str
    """Its name."""
    value: int
    """What the invariant counts."""
    reason: str
    """What was seen and what decides it, for a person; without the table's name."""
    position: str | None = None
    """Of the first event that is in doubt, where it is known."""
    severity: Severity = Severity.BLOCK
    """Whether it holds the cut, or is only reported."""

    def sentence(self, changelog: Table | None) -> str:
        """Return the reason, with the position and the message of the first event. The change log has these."""
        if self.position is None:
            return self.reason
        return f"{self.reason}. The first is {harmless(first_place(self.position, changelog))}"


def in_words(doubts: Mapping[str, Sequence[Doubt]], severity: Severity, changelog: Table | None) -> tuple[str, ...]:
    """Return the doubts of a severity, each behind the name of its table."""
    return tuple(
        f"{name}: {doubt.sentence(changelog)}"
        for name, found in doubts.items()
        for doubt in found
        if doubt.severity is severity
    )
