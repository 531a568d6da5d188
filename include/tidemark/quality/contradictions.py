"""Invariants about events that contradict the rows of their table, as compact noted them in the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tidemark.ledger.contradiction_rows import IN_WORDS, ContradictionRow
from tidemark.quality.doubts import Doubt
from tidemark.quality.verdicts import Invariant
from tidemark.sources.choices import Consequence, Severity
from tidemark.sources.invariants import Invariants
from tidemark.text import harmless

CONTRADICTIONS = frozenset(IN_WORDS.values())
"""Their names."""


def invariants_of(rows: Iterable[ContradictionRow], asked: Invariants) -> dict[str, dict[str, Invariant]]:
    """Return by object, by name, how many of its events contradict rows.

    Args:
        rows: of the cut.
        asked: what the source file says now; a kind that is off by now is left out.
    """
    found = defaultdict[str, dict[str, Invariant]](dict)
    for row in rows:
        consequence = getattr(asked, row.kind)
        if consequence is not Consequence.OFF:
            found[row.object][IN_WORDS[row.kind]] = Invariant(value=row.events, severity=Severity(consequence.value))
    return dict(found)


def blocking(rows: Iterable[ContradictionRow], asked: Invariants) -> dict[str, list[Doubt]]:
    """Return by object what holds a cut back, with the place of the first event and what to do."""
    found = defaultdict[str, list[Doubt]](list)
    for row in rows:
        if getattr(asked, row.kind) is Consequence.BLOCK:
            reason = (
                f"{row.events} {IN_WORDS[row.kind]}: {harmless(row.origin)}. An event before it is lost, or was set "
                "aside. Deliver it and run again; or approve the cut; or load the table anew"
            )
            found[row.object].append(Doubt(IN_WORDS[row.kind], row.events, reason))
    return dict(found)
