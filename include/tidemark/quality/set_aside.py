"""Where messages and events that a cut sets aside are: counts alone help nobody to find them."""

from __future__ import annotations

from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import DataScan, Table

from tidemark.lake.filters import above, at_most, equals
from tidemark.ledger.rows import TableRow
from tidemark.text import harmless


def in_quarantine(quarantine: Table, batches: tuple[int, int], *conditions: BooleanExpression) -> DataScan:
    """Return what was set aside of some batches, to be counted or looked at.

    Args:
        quarantine: of the source.
        batches: the last batch that is published, and the batch of the cut. Only what came in between counts.
        *conditions: on its columns.
    """
    published, newest = batches
    scan = quarantine.scan(above("batch", published), selected_fields=("file", "place"))
    for condition in (at_most("batch", newest), *conditions):
        scan = scan.filter(condition)
    return scan


def one_of(scan: DataScan) -> str:
    """Return a sentence with the place of one message, and a blank before it; empty if there is none."""
    found = scan.update(limit=1).to_arrow().to_pylist()
    return f" One is message {found[0]['place']} of {harmless(found[0]['file'])}." if found else ""


def sentence(source: str, row: TableRow, quarantine: Table | None) -> str:
    """Return a sentence about the events of a table that a cut sets aside, with the place of one of them."""
    # Also of earlier batches: a table that is built again has all of its events.
    where = (
        "" if quarantine is None else one_of(in_quarantine(quarantine, (0, row.batch), equals("object", row.object)))
    )
    return (
        f"{row.target}: {row.quarantined} of {row.events} events are set aside.{where} "
        f"`tidemark quarantine list {source}` has all"
    )
