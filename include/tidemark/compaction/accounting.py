"""The ledger's row of a built table: what became of each of its events."""

from __future__ import annotations

from pyiceberg.table import Table

from tidemark.lake.branches import ancestry


def merge_counts(table: Table, start: int, branch: str) -> dict[str, int]:
    """Rows that the commits on a branch since ``start`` inserted, updated and deleted, as they tell."""
    counts = dict.fromkeys(("inserted", "updated", "deleted"), 0)
    for snapshot in ancestry(table, branch):
        if snapshot.snapshot_id == start:
            break
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        merged = {name: summary.get(f"spark.merge-into.num-target-rows-{name}") for name in counts}
        if not any(merged.values()):
            merged["inserted"] = summary.get("added-records")  # an append
        for name, told in merged.items():
            counts[name] += int(told or 0)
    return counts
