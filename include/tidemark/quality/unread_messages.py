"""The share of a cut's messages that cannot be read: beyond its limit, the source file does not fit the dumps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyiceberg.table import Table

from tidemark.lake.filters import at_most, unset
from tidemark.ledger.ledger import Ledger
from tidemark.normalization.identifying import other_format
from tidemark.quality.judged_batches import JudgedBatches
from tidemark.quality.set_aside import in_quarantine, one_of
from tidemark.quality.source_verdict import SourceResult
from tidemark.quality.verdicts import CheckResult
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source

UNREAD_MESSAGES = "messages quarantined beyond the limit"
"""Name of the check."""


class _Share(NamedTuple):
    """Messages that are judged together."""

    batches: JudgedBatches
    landed: int
    quarantined: int
    allowed: int

    @property
    def excess(self) -> int:
        """How many more are set aside than may be."""
        return self.quarantined - self.allowed


def judged(ledger: Ledger, source: Source, quarantine: Table, batches: JudgedBatches) -> Iterator[SourceResult]:
    """Yield whether no more messages are set aside than may be; nothing if none is.

    Messages that are new and messages that were derived again are judged each on their own, as neither makes the share
    of the other small. The worse of both is reported.

    Args:
        ledger: of the source.
        source: the source.
        quarantine: its table.
        batches: that the cut is judged by.
    """
    shares = [share for part in batches.parts() if (share := _share(ledger, source, part)).quarantined > 0]
    if not shares:
        return
    worse = max(shares, key=lambda share: share.excess)
    result = CheckResult(
        name=UNREAD_MESSAGES,
        columns=(),
        severity=Severity(source.invariants.quarantined_share.value),
        success=worse.excess <= 0,
        observed=f"{worse.quarantined} of {worse.landed}",
        expected=f"at most {worse.allowed}",
        approvable=True,
    )
    if result.success:
        yield SourceResult(result)
        return
    again = " that were derived again" if worse.batches.again else ""
    sentence = (
        f"{worse.quarantined} of {worse.landed} messages of {source.source}{again} cannot be read (allowed: "
        f"{worse.allowed}).{one_of(in_quarantine(quarantine, worse.batches, unset('object')))}"
        f"{_looks_like(ledger, source, worse.batches)} `tidemark quarantine list {source.source}` tells the reasons; "
        "`max_quarantined` sets the limit"
    )
    yield SourceResult(result, (sentence,))


def _share(ledger: Ledger, source: Source, batches: JudgedBatches) -> _Share:
    """Return what became of the messages of batches. A retry counts with the batch that its messages landed with."""
    rows = [row for row in ledger.batches(at_most("batch", batches.newest)) if batches.holds(row.landed_with)]
    landed = sum(row.landed for row in rows)
    return _Share(batches, landed, sum(row.quarantined for row in rows), source.quarantinable(landed))


def _looks_like(ledger: Ledger, source: Source, batches: JudgedBatches) -> str:
    """Return that the newest file of batches is in another format than the source file says; empty if it is not so."""
    files = [row.path for row in ledger.landed_files(batches.newest) if batches.holds(row.batch)]
    likely = other_format(files[-1], source.format) if files else None
    if likely is None:
        return ""
    return (
        f" {files[-1]} looks like {likely} and not like {source.format}: correct `format`, then "
        f"`tidemark run {source.source} --reprocess`."
    )
