"""Restore: put the published tables of a source back to an earlier cut, until the next run. Beside the flow.

Refs are moved in the catalog, without Spark. Only feeds need it: what changed is added to them for their readers.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.lake import names
from tidemark.lake.feeds import in_step
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger import cuts, restoring
from tidemark.ledger.ledger import Ledger
from tidemark.sources.model import Source
from tidemark.stages import StageReport


def run(source: Source, cut: int) -> StageReport:
    """Restore a published cut; the next compact folds the events of the cuts after it again.

    If the process is killed before what changed is in a feed, the next cut adds it.

    Raises:
        ConfigurationError: the cut is not published, or no longer kept.
        LakeError: the store or the engine failed.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    cuts.finish_or_drop(lake, ledger)
    shows = dict(_fed(lake, ledger, source))
    tables = restoring.restore(lake, ledger, cut)
    # Feeds get no rows from before a mask: the table is to be built again.
    again = {str(ledger.targets().get(name)) for name in ledger.rebuild_requests()}
    for target, before in shows.items():
        from tidemark.compaction import feeding  # noqa: PLC0415  needs Spark, which no other restore does

        if str(target) not in again and lake.find(target) is not None:
            feeding.follow(lake, target, cut, before)
    return StageReport(stage="restore", source=source.source, summary={"cut": cut, "tables": tables})


def _fed(lake: Lake, ledger: Ledger, source: Source) -> Iterator[tuple[Identifier, int | None]]:
    """Yield the tables that have a feed, and the snapshot of each with the rows that its feed shows."""
    for target, name in cuts.ever_published(ledger):
        identifier = Identifier.parse(target)
        table, feed = lake.find(identifier), lake.find(names.feed(identifier))
        if source.table_for(name).feed and table is not None and feed is not None:
            yield identifier, in_step(table, feed)
