"""Tables some of whose events have a place in the source's log, and others a place in the dump alone.

Such places cannot be compared, and still one of them ranks above the other. That comes about where events were decoded
by an earlier version of a format, or with another option ``order``, and later ones were not. The positions in the
ledger (``spans``) tell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from tidemark.formats import Placing
from tidemark.lake.filters import at_most
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import CutRow
from tidemark.ledger.tally import is_placed, log_of
from tidemark.quality.judged_batches import JudgedBatches
from tidemark.quality.source_verdict import SourceResult
from tidemark.quality.verdicts import CheckResult
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source
from tidemark.text import harmless, listed

MIXED_ORDERS: Final = "tables with places in the log and places in the dump"
"""Name of the check."""


def judged(ledger: Ledger, source: Source, batches: JudgedBatches, cut: CutRow) -> Iterator[SourceResult]:
    """Yield a finding if new events of a table have a place of one kind, and other events of it one of the other kind.

    After a reprocess that no published cut has shown, the events of all batches count as new.
    """
    if source.traits.placing_of is None:
        return
    begun = batches.begun(cut)
    spans = ledger.spans(at_most("batch", batches.newest))
    new = {span.object for span in spans if span.batch > begun}
    if tables := sorted(new & _mixed(source, spans)):
        result = CheckResult.of_findings(MIXED_ORDERS, Severity.BLOCK, len(tables), columns=tuple(tables))
        yield SourceResult(result, (harmless(_sentence(source, tables)),))


def _mixed(source: Source, spans: Iterable[SpanRow]) -> set[str]:
    """Return the tables that have places of both kinds in one log: between two logs the number of the log decides."""
    found = defaultdict[tuple[str, int], set[Placing | None]](set)
    for span in spans:
        for end in (span.oldest, span.newest):
            if end and is_placed(end):
                found[span.object, log_of(end)].add(source.traits.placing(end))
    return {name for (name, _), kinds in found.items() if kinds >= {Placing.LOG, Placing.DUMP}}


def _sentence(source: Source, tables: list[str]) -> str:
    return (
        f"{source.source}: some events of {listed(tables)} have a place in the source's log, and "
        "others a place in the dump alone. Nothing compares the two, so older events may hide newer ones. If an "
        "earlier version of Tidemark, or another option `order`, decoded some of them, "
        f"`tidemark run {source.source} --reprocess` gives all the same kind of place. If they still differ then, set "
        "the option `order` to `dump`, and run it again"
    )
