"""The share of a cut's messages that cannot be read: beyond its limit, the source file does not fit the dumps."""

from __future__ import annotations

from tidemark.lake.filters import above, at_most
from tidemark.ledger.ledger import Ledger
from tidemark.normalization.identifying import other_format
from tidemark.quality.of_source import Finding
from tidemark.quality.verdicts import CheckResult
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source

UNREAD_MESSAGES = "messages quarantined beyond the limit"
"""Name of the check."""


def judged(ledger: Ledger, source: Source, new: tuple[int, int], severity: Severity) -> Finding | None:
    """Return whether no more messages are set aside than may be; None if none is.

    Args:
        ledger: of the source.
        source: the source.
        new: the last batch that is published, and the batch of the cut. What is judged came in between.
        severity: what the source file says.
    """
    published, batch = new
    batches = ledger.batches(above("batch", published), at_most("batch", batch))
    # What was retried leaves the quarantine, and is subtracted there.
    landed, quarantined = (sum(getattr(row, name) for row in batches) for name in ("landed", "quarantined"))
    if not quarantined:
        return None
    allowed = source.quarantinable(landed)
    result = CheckResult(
        name=UNREAD_MESSAGES,
        columns=(),
        severity=severity,
        success=quarantined <= allowed,
        observed=f"{quarantined} of {landed}",
        expected=f"at most {allowed}",
    )
    if result.success:
        return Finding(result)
    told = (
        f"{quarantined} of {landed} messages of {source.source} cannot be read (allowed: {allowed}): "
        f"{_looks_like(ledger, source, new)}`tidemark quarantine list {source.source}` tells the reasons; "
        "`max_quarantined` sets the limit"
    )
    return Finding(result, (told,))


def _looks_like(ledger: Ledger, source: Source, new: tuple[int, int]) -> str:
    """Return that the newest file of the cut is in another format than the source file says; empty if it is not so."""
    published, batch = new
    files = [row.path for row in ledger.landed_files(batch) if row.batch > published]
    likely = other_format(files[-1], source.format) if files else None
    if likely is None:
        return ""
    return (
        f"{files[-1]} looks like {likely} and not like {source.format}: correct `format`, then "
        f"`tidemark run {source.source} --reprocess`; "
    )
