"""The share of a cut's messages that cannot be read: beyond its limit, the source file does not fit the dumps."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.table import Table

from tidemark.lake.filters import above, at_most
from tidemark.ledger.ledger import Ledger
from tidemark.normalization.identifying import other_format
from tidemark.quality.of_source import Finding
from tidemark.quality.set_aside import in_quarantine, one_of
from tidemark.quality.verdicts import CheckResult
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source

UNREAD_MESSAGES = "messages quarantined beyond the limit"
"""Name of the check."""


def judged(ledger: Ledger, source: Source, quarantine: Table, batches: tuple[int, int]) -> Iterator[Finding]:
    """Yield whether no more messages are set aside than may be; nothing if none is.

    Args:
        ledger: of the source.
        source: the source.
        quarantine: its table.
        batches: the last batch that is published, and the batch of the cut. What is judged came in between.
    """
    published, newest = batches
    rows = ledger.batches(above("batch", published), at_most("batch", newest))
    # What was retried leaves the quarantine, and is subtracted there.
    landed, quarantined = (sum(getattr(row, name) for row in rows) for name in ("landed", "quarantined"))
    if not quarantined:
        return
    allowed = source.quarantinable(landed)
    result = CheckResult(
        name=UNREAD_MESSAGES,
        columns=(),
        severity=Severity(source.invariants.quarantined_share.value),
        success=quarantined <= allowed,
        observed=f"{quarantined} of {landed}",
        expected=f"at most {allowed}",
    )
    if result.success:
        yield Finding(result)
        return
    sentence = (
        f"{quarantined} of {landed} messages of {source.source} cannot be read (allowed: {allowed})."
        f"{one_of(in_quarantine(quarantine, batches))}{_looks_like(ledger, source, batches)} `tidemark quarantine list "
        f"{source.source}` tells the reasons; `max_quarantined` sets the limit"
    )
    yield Finding(result, (sentence,))


def _looks_like(ledger: Ledger, source: Source, batches: tuple[int, int]) -> str:
    """Return that the newest file of the cut is in another format than the source file says; empty if it is not so."""
    published, newest = batches
    files = [row.path for row in ledger.landed_files(newest) if row.batch > published]
    likely = other_format(files[-1], source.format) if files else None
    if likely is None:
        return ""
    return (
        f" {files[-1]} looks like {likely} and not like {source.format}: correct `format`, then "
        f"`tidemark run {source.source} --reprocess`."
    )
