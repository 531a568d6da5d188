"""The folders of the tables of a source."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger


def folders(lake: Lake, ledger: Ledger) -> Iterator[tuple[str, str]]:
    """Yield the name and the folder of each table that was ever published, or moves with one, and is there."""
    for identifier in {each for tables in cuts.ever_published(ledger).values() for each in tables}:
        if (table := lake.find(identifier)) is not None:
            yield str(identifier), table.location()
