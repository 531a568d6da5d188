"""The doubts about the events that a cut takes in, whichever batch these came in.

A table that is stopped, or whose events all wait for their transactions, takes nothing in, so it holds no other table
back. Its events come in with a later cut. They are judged then as the cuts would have judged them that went without:
the events of each against what came before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial

from tidemark.lake.filters import at_most, equals
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import CutState, TableState
from tidemark.quality.doubt import Doubt
from tidemark.quality.doubts import doubts_about, invariants
from tidemark.quality.file_places import Stem, stems_that_landed
from tidemark.quality.verdicts import Invariant
from tidemark.sources.model import Source


def doubts_of_cut(source: Source, ledger: Ledger, cut: CutRow, into: Mapping[str, str]) -> dict[str, list[Doubt]]:
    """Return the doubts about what a cut takes in, by the table as source files name it; of one kind the first.

    Args:
        source: the source.
        ledger: of the source.
        cut: the cut.
        into: the names whose events tables of the cut take in, each with the name of that table.
    """
    up_to, taken = at_most("batch", cut.batch), _taken(ledger)
    spans, offsets = ledger.spans(up_to), ledger.offsets(up_to)
    ends = sorted({0, cut.batch, *(row.batch for row in ledger.cuts(equals("state", CutState.PUBLISHED)))})
    taken_in = defaultdict[int, set[str]](set)
    for span in spans:
        table = into.get(span.object)
        if table is not None and span.batch > taken.get(table, taken.get(span.object, 0)):
            taken_in[bisect_left(ends, span.batch)].add(span.object)
    found = defaultdict[str, list[Doubt]](list)
    for end, names in sorted(taken_in.items()):
        before, batch = ends[end - 1], ends[end]
        landed = [span for span in spans if span.batch <= batch]
        files = partial(_stems, ledger, before)
        doubts = doubts_about(source, landed, before, [row for row in offsets if row.batch <= batch], files)
        for name in names & doubts.keys():
            known = {doubt.invariant for doubt in found[name]}
            found[name] += [doubt for doubt in doubts[name] if doubt.invariant not in known]
    return dict(found)


def _stems(ledger: Ledger, published: int) -> set[Stem]:
    return stems_that_landed(ledger.files(at_most("batch", published)))


def _taken(ledger: Ledger) -> dict[str, int]:
    """Return by table the last batch of the newest published cut that took in events of it."""
    rows = sorted(ledger.tables(equals("state", TableState.PUBLISHED)), key=lambda row: row.cut)
    return {row.object: row.batch for row in rows if _took_in(row)}


def _took_in(row: TableRow) -> bool:
    """Return whether a cut took in events of a table: an erasure publishes a table without any."""
    return row.rebuilt is not None or row.events > row.held + (row.erased or 0)


def invariants_by_object(
    doubts: Mapping[str, Sequence[Doubt]], *found: Mapping[str, Mapping[str, Invariant]]
) -> dict[str, dict[str, Invariant]]:
    """Return by object the invariants about its new events.

    Args:
        doubts: by object.
        found: by object, further invariants by their names.
    """
    names = {*doubts, *(name for each in found for name in each)}
    return {
        name: invariants(doubts.get(name, ()))
        | {key: value for each in found for key, value in each.get(name, {}).items()}
        for name in names
    }
