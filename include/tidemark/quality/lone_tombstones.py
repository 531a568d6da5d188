"""Records without a value in a source whose messages never deleted a row: what the records delete stays in the tables.

Kafka's producers send such a record behind the message of a delete. Where there is no such message, the record is the
delete: Debezium's ``ExtractNewRecordState`` drops the message by default, and so does log compaction. The record names
no table, so it deletes nothing unless the source file says which table it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.events import Operation
from tidemark.lake import names
from tidemark.lake.filters import at_most, equals
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RowKind
from tidemark.ledger.ledger import Ledger
from tidemark.quality.judged_batches import JudgedBatches
from tidemark.quality.set_aside import one_of
from tidemark.quality.source_verdict import SourceResult
from tidemark.quality.verdicts import CheckResult
from tidemark.sources.choices import Severity

LONE_TOMBSTONES = "records without a value, and no delete"
"""Name of the check."""


def judged(lake: Lake, source: str, batches: JudgedBatches, severity: Severity) -> Iterator[SourceResult]:
    """Yield how many records without a value came, with the place of one of them, if no DELETE ever came.

    The change log is read only where no batch has a DELETE, and a judged one has messages that are no changes.

    Args:
        lake: with the change log and the ledger of the source.
        source: its name.
        batches: that the cut is judged by.
        severity: what the source file says.
    """
    ledger, up_to = Ledger(lake, source), at_most("batch", batches.newest)
    changelog = lake.find(names.change_log(source))
    if changelog is None or not any(row.control for row in ledger.batches(up_to) if batches.holds(row.batch)):
        return
    if ledger.contents(up_to, equals("operation", Operation.DELETE)):
        return
    scan = changelog.scan(batches.condition(), selected_fields=("file", "place"))
    for condition in (equals("kind", RowKind.CONTROL.value), equals("operation", "tombstone")):
        scan = scan.filter(condition)
    if not (count := scan.count()):
        return
    result = CheckResult.of_findings(LONE_TOMBSTONES, severity, count)
    sentence = (
        f"{source}: {count} records have no value, and no message of the source ever deleted a row.{one_of(scan)} If "
        "they are its deletes (Debezium's ExtractNewRecordState without `__deleted`, or a compacted topic), the "
        "rows are still there. Set `delete.tombstone.handling.mode` to `rewrite` at the connector, or write `options: "
        f"{{flattened: true, table: ...}}` and derive again what landed, with `tidemark run {source} --reprocess`. If "
        "they delete nothing, write `invariants: {lone_tombstones: off}`"
    )
    yield SourceResult(result, (sentence,))
