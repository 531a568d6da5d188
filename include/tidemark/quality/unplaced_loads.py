"""Doubts about rows that were loaded after changes of their table and rank below these: a second load, perhaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.tally import is_placed
from tidemark.quality.doubt import Doubt
from tidemark.quality.restarts import written
from tidemark.sources.choices import Consequence, Severity
from tidemark.sources.model import Source

UNPLACED_LOAD = "loaded rows that may replace the table"

_ADDS = {
    Consequence.BLOCK: "else approve the cut, or write `invariants: {loaded_again: warn}` if its loads only add rows",
    Consequence.WARN: "else it added the rows that were not there, as `invariants: {loaded_again: warn}` says",
}
"""What follows where a load replaces nothing, by what the source file says of such loads."""


def of_loads(source: Source, name: str, old: Iterable[SpanRow], new: Sequence[SpanRow]) -> list[Doubt]:
    """Return the doubt about rows that were loaded after changes of their table, and rank below these.

    That is so if they were read after the newest published change. Rows without a time may be, if any change is
    published.
    """
    consequence = source.invariants.loaded_again
    if consequence is Consequence.OFF:
        return []
    placed = [span for span in old if is_placed(span.newest)]
    ended = max((span.last for span in placed if span.last), default=None)
    late = [span for span in new if ended and span.unplaced_last is not None and span.unplaced_last > ended]
    unmarked = [] if source.traits.marks_loads else new
    untimed = [span for span in unmarked if placed and span.unplaced and span.unplaced_last is None]
    if ended and late:
        count, at = sum(span.unplaced for span in late), [span.first or span.unplaced_last for span in late]
        seen = f"after {written(ended)}, the newest change that is published"
    elif untimed:
        count, at, seen = sum(span.unplaced for span in untimed), [], "since, at a time that they do not tell"
    else:
        return []
    moment = min((written(each) for each in at if each), default="MOMENT")
    where = "" if moment != "MOMENT" else " (a time before the load, as Kafka's records or paths of dumps tell time)"
    reason = (
        f"{count} rows of it were loaded {seen}. They rank below "
        f"all changes, so rows that are there already stay as they are. If the table was loaded anew, write `tables: "
        f"{{{name}: {{reloads: [{moment}]}}}}`{where} into the source file and run `tidemark run {source.source} "
        f"--reprocess` for the intervals since then: the load replaces the table; {_ADDS[consequence]}"
    )
    return [Doubt(UNPLACED_LOAD, count, reason, severity=Severity(consequence.value))]
