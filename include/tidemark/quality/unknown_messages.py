"""Messages of a cut that name an operation or a type that the format does not know: the producer was changed."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.table import Table

from tidemark.errors import UnknownOperationError, UnknownTypeError
from tidemark.lake.filters import among
from tidemark.quality.judged_batches import JudgedBatches
from tidemark.quality.set_aside import in_quarantine, one_of
from tidemark.quality.source_verdict import SourceResult
from tidemark.quality.verdicts import CheckResult
from tidemark.sources.choices import Severity

UNKNOWN_MESSAGES = "messages with an unknown operation or type"
"""Name of the check."""

_REASONS = (UnknownOperationError.reason, UnknownTypeError.reason)


def judged(source: str, quarantine: Table, batches: JudgedBatches, severity: Severity) -> Iterator[SourceResult]:
    """Yield how many messages of a cut name something unknown, with the place of one of them; nothing for none.

    Quarantine is partitioned by batch and reason, so the metadata of its files gives their number, and one row is read.

    Args:
        source: name of the source.
        quarantine: its table.
        batches: that the cut is judged by.
        severity: what the source file says.
    """
    scan = in_quarantine(quarantine, batches, among("reason", _REASONS))
    count = sum(task.file.record_count for task in scan.plan_files())
    if not count:
        return
    result = CheckResult.of_findings(UNKNOWN_MESSAGES, severity, count)
    sentence = (
        f"{source}: {count} {UNKNOWN_MESSAGES}.{one_of(scan)} `tidemark quarantine list {source}` has all. "
        "The producer, or a table, is not what it was"
    )
    yield SourceResult(result, (sentence,))
