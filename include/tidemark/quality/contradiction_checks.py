"""Invariants about events that contradict the rows of their table, as compact noted them in the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tidemark.ledger.contradiction_rows import IN_WORDS, LOADED_AGAIN, ContradictionRow
from tidemark.quality.doubt import Doubt
from tidemark.quality.verdicts import Invariant
from tidemark.sources.choices import Consequence, Severity
from tidemark.sources.invariants import Invariants
from tidemark.sources.model import Source
from tidemark.text import harmless


def invariants_of(rows: Iterable[ContradictionRow], declared: Invariants) -> dict[str, dict[str, Invariant]]:
    """Return by object, by name, how many of its events contradict rows.

    Args:
        rows: of the cut.
        declared: what the source file says now; a kind that is off by now is left out.
    """
    found = defaultdict[str, dict[str, Invariant]](dict)
    for row in rows:
        consequence = getattr(declared, row.kind)
        if consequence is not Consequence.OFF:
            found[row.object][IN_WORDS[row.kind]] = Invariant(
                value=row.events, severity=Severity(consequence.value), approvable=True
            )
    return dict(found)


def blocking(rows: Iterable[ContradictionRow], source: Source) -> dict[str, list[Doubt]]:
    """Return by object what holds a cut of a source back, with the place of the first event and what to do."""
    found = defaultdict[str, list[Doubt]](list)
    for row in rows:
        if getattr(source.invariants, row.kind) is Consequence.BLOCK:
            remedy = _reload(row, source.source) if row.kind == LOADED_AGAIN else _LOST
            reason = f"{row.events} {IN_WORDS[row.kind]}: {harmless(row.origin)}. {remedy}"
            found[row.object].append(Doubt(IN_WORDS[row.kind], row.events, reason))
    return dict(found)


_LOST = (
    "An event before it is lost, or was set aside. Deliver it and run again; or approve the cut; or load the table anew"
)


def _reload(row: ContradictionRow, source: str) -> str:
    return (
        "They rank below all changes, and rows that a second load does not bring stay. If the table was loaded anew, "
        f"write `tables: {{{row.object}: {{reloads: [MOMENT]}}}}` (a time before the first row of the load) into the "
        f"source file and run `tidemark run {source} --reprocess` for the intervals since then: the load replaces the "
        "table; else approve the cut, or correct the key"
    )
