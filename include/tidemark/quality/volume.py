"""How many events of a table a cut has, against the cuts before: far more or far fewer than usual is worth a look."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tidemark.ledger.erasing_cuts import is_of_an_erasure
from tidemark.ledger.rows import TableRow
from tidemark.ledger.states import TableState
from tidemark.quality.verdicts import Invariant
from tidemark.sources.choices import Consequence, Severity

VOLUME = "events in the cut"
"""Name of the invariant."""

_FEWEST = 10
"""Cuts of a table from which on something is usual."""

_MOST = 30
"""The newest cuts that are compared with."""

_FACTOR = 4.0
"""The band reaches at least from a quarter of the median to four times the median."""

_WIDEST = 100.0
"""It reaches at most from a hundredth of the median to a hundred times the median."""

_SPREADS = 5.0
"""The band reaches so many standard deviations to each side, estimated from the median of deviations."""

_NORMAL = 1.4826
"""A standard deviation, in medians of deviations, where numbers are distributed normally."""


class UsualVolume(NamedTuple):
    """The usual number of events of a table."""

    low: int
    high: int


def usual(counts: Sequence[int]) -> UsualVolume | None:
    """Return the usual band of some numbers; None where they are too few to tell.

    The median and the median deviation from it are of logarithms, because volumes differ by factors. A day that was far
    off moves neither, so the band stays as it is after it.
    """
    if len(counts) < _FEWEST:
        return None
    logs = [math.log1p(count) for count in counts]
    middle = statistics.median(logs)
    spread = _NORMAL * statistics.median([abs(log - middle) for log in logs])
    reach = min(max(_SPREADS * spread, math.log(_FACTOR)), math.log(_WIDEST))
    return UsualVolume(max(0, round(math.expm1(middle - reach))), round(math.expm1(middle + reach)))


def invariants_of(
    rows: Iterable[TableRow], past: Iterable[TableRow], consequence: Consequence
) -> dict[str, dict[str, Invariant]]:
    """Return by object the invariant about its number of events; none without enough cuts before.

    Args:
        rows: tables of a cut.
        past: tables of cuts; only published ones count.
        consequence: what the source file says.
    """
    if consequence is Consequence.OFF:
        return {}
    before = defaultdict[str, list[TableRow]](list)
    for row in past:
        if row.state == TableState.PUBLISHED and row.rebuilt is None and not is_of_an_erasure(row):
            before[row.object].append(row)
    found = {}
    for row in rows:
        earlier = sorted((each for each in before[row.object] if each.cut < row.cut), key=lambda each: each.cut)
        band = usual([each.events for each in earlier[-_MOST:]])
        if band is not None and row.rebuilt is None:
            severity = Severity(consequence.value)
            found[row.object] = {
                VOLUME: Invariant(
                    value=row.events, minimum=band.low, maximum=band.high, severity=severity, approvable=True
                )
            }
    return found
