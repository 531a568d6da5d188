"""New events that nothing ranks for certain: of a log that may have begun anew, of a load that may replace a table.

Both are found in the ledger alone (``spans``). A doubt holds the cut back, and a person decides: the source file says
``log_restarts`` or ``reloads``, or the cut is approved as it is (docs/adr/0030).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from tidemark import formats
from tidemark.ledger.order_rows import SpanRow
from tidemark.quality.verdicts import Invariant
from tidemark.sources.model import Source

LOG_WENT_BACK = "tables whose log went back while time went on"

UNPLACED_LOAD = "loaded rows that may replace the table"


class Doubt(NamedTuple):
    """One doubt about the new events of a table."""

    invariant: str
    """Its name."""
    value: int
    """What the invariant counts."""
    reason: str
    """What was seen and what decides it, for a person; without the table's name."""


def doubts_about(source: Source, spans: Iterable[SpanRow], published: int) -> dict[str, list[Doubt]]:
    """Return the doubts about the events of new batches, by the table as source files name it.

    Args:
        source: the source.
        spans: what the events of each table span in each batch up to the cut's.
        published: the last batch that is published; later ones are new.
    """
    old, new = defaultdict[str, list[SpanRow]](list), defaultdict[str, list[SpanRow]](list)
    for span in spans:
        (new if span.batch > published else old)[span.object].append(span)
    found = defaultdict[str, list[Doubt]](list)
    by_offset = formats.orders_by_offset(formats.resolve(source.format))
    for tables in _logs(old, new, by_offset=by_offset):
        before, now = ([span for name in tables for span in of[name] if _placed(span)] for of in (old, new))
        doubts = _went_back(source, before, now)
        for name in tables:
            found[name] += doubts
    for name, rows in new.items():
        found[name] += _unplaced(source, name, old[name], rows)
    return {name: doubts for name, doubts in found.items() if doubts}


def invariants(doubts: Iterable[Doubt]) -> dict[str, Invariant]:
    """Return the doubts about one table as invariants."""
    return {doubt.invariant: Invariant(value=doubt.value) for doubt in doubts}


def _logs(
    old: Mapping[str, Sequence[SpanRow]], new: Mapping[str, Sequence[SpanRow]], *, by_offset: bool
) -> list[list[str]]:
    """Return the tables with new and old changes, in groups whose positions can be compared.

    Where positions are offsets of Kafka, each table is in a partition of its own. Files and lines say nothing: their
    names are those of the delivery. Elsewhere all tables share the log of
    the source: in a log that is not in the order of commits, one table alone may well go back.
    """
    known = [name for name, rows in sorted(new.items()) if _any_placed(rows) and _any_placed(old.get(name, ()))]
    if by_offset:
        return [[name] for name in known if _is_offset(max(span.newest for span in old[name] if _placed(span)))]
    return [known] if known else []


def _went_back(source: Source, before: Sequence[SpanRow], now: Sequence[SpanRow]) -> list[Doubt]:
    """Return the doubt about new changes that are all later than all old ones and lie below them."""
    begins = min((span.first for span in now if span.first), default=None)
    ended = max((span.last for span in before if span.last), default=None)
    if begins is None or ended is None or begins <= ended:
        return []
    if max(span.newest for span in now) >= max(span.newest for span in before):
        return []
    reason = (
        f"its changes from {_text(begins)} on are later than all that is published (to {_text(ended)}), and their "
        f"positions lie below it. If the source's log began anew (failover, upgrade, restore, new topic), write "
        f"`log_restarts: [{_text(begins)}]` into the source file and run `tidemark run {source.source} --reprocess` "
        f"for the intervals since then; if they are late events of the same log, approve the cut"
    )
    return [Doubt(LOG_WENT_BACK, 1, reason)]


def _unplaced(source: Source, name: str, old: Iterable[SpanRow], new: Iterable[SpanRow]) -> list[Doubt]:
    """Return the doubt about rows that were loaded after changes of the table were published, and rank below these."""
    ended = max((span.last for span in old if _placed(span) and span.last), default=None)
    if ended is None:
        return []
    loaded = [span for span in new if span.unplaced_last is not None and span.unplaced_last > ended]
    if not loaded:
        return []
    count = sum(span.unplaced for span in loaded)
    at = min(span.first or span.unplaced_last or ended for span in loaded)
    reason = (
        f"{count} rows of it were loaded after {_text(ended)}, the newest change that is published. They rank below "
        f"all changes, so rows that are there already stay as they are. If the table was loaded anew, write `tables: "
        f"{{{name}: {{reloads: [{_text(at)}]}}}}` into the source file and run `tidemark run {source.source} "
        f"--reprocess` for the intervals since then: the load replaces the table; else approve the cut"
    )
    return [Doubt(UNPLACED_LOAD, count, reason)]


def _placed(span: SpanRow) -> bool:
    """Return whether the newest event of a span has a place in the log: the first part of its position is odd."""
    first = span.newest.partition(".")[0][2:]
    return first.isdecimal() and int(first) % 2 == 1


def _any_placed(spans: Iterable[SpanRow]) -> bool:
    return any(map(_placed, spans))


def _is_offset(position: str) -> bool:
    """Return whether a place in the dump is the offset of a Kafka record, not a file and a line (``Message.order``)."""
    return position.partition(".")[2].startswith("011.")


def _text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
