"""Restore: put the published tables of a source back to an earlier cut, until the next run. Beside the flow.

No Spark: refs are moved in the catalog.
"""

from __future__ import annotations

from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.sources.model import Source
from tidemark.stages import StageReport


def run(source: Source, cut: int) -> StageReport:
    """Restore a published cut; the next compact folds the events of the cuts after it again.

    Raises:
        ConfigurationError: the cut is not published, or no longer kept.
    """
    lake = Lake.open()
    tables = cuts.restore(lake, Ledger(lake, source.source), cut)
    return StageReport(stage="restore", source=source.source, summary={"cut": cut, "tables": tables})
