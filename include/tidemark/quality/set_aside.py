"""Where messages and events that a cut sets aside are: counts alone help nobody to find them."""

from __future__ import annotations

from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import DataScan, Table

from tidemark.lake.filters import equals
from tidemark.ledger.rows import TableRow
from tidemark.quality.judged_batches import JudgedBatches
from tidemark.text import harmless


def in_quarantine(quarantine: Table, batches: JudgedBatches, *conditions: BooleanExpression) -> DataScan:
    """Return what was set aside of some batches, to be counted or looked at.

    Args:
        quarantine: of the source.
        batches: that the messages landed with.
        *conditions: on its columns.
    """
    scan = quarantine.scan(batches.condition(), selected_fields=("file", "place"))
    for condition in conditions:
        scan = scan.filter(condition)
    return scan


def one_of(scan: DataScan) -> str:
    """Return a sentence with the place of one message, and a blank before it; empty if there is none."""
    found = scan.update(limit=1).to_arrow().to_pylist()
    return f" One is message {found[0]['place']} of {harmless(found[0]['file'])}." if found else ""


def sentence(source: str, row: TableRow, quarantine: Table | None) -> str:
    """Return a sentence about the events of a table that a cut sets aside, with the place of one of them."""
    # Also of earlier batches: a table that is built again has all of its events.
    batches, of_table = JudgedBatches(published=0, newest=row.batch), equals("object", row.object)
    where = "" if quarantine is None else one_of(in_quarantine(quarantine, batches, of_table))
    return (
        f"{row.target}: {row.quarantined} of {row.events} events are set aside.{where} "
        f"`tidemark quarantine list {source}` has all"
    )
