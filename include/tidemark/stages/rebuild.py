"""Rebuild: request that tables are built again from their whole change log.

The next compact builds them beside the published tables, with columns, types and key from the source file and the
shapes alone. The result is a candidate of its cut like any other: it is checked before it is seen, and ``main`` moves
to it in one commit. The request stays until that cut is published; another request replaces it. A table whose events
are past their time (``retention: changelog_days``) cannot be built again, and gets no request.
"""

from __future__ import annotations

import structlog

from tidemark.compaction import rebuild_requests
from tidemark.errors import ConfigurationError, UnknownNameError
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger.ledger import Ledger
from tidemark.sources.model import Source
from tidemark.stages import StageReport
from tidemark.text import suggestion

log = structlog.get_logger(__name__)


def run(source: Source, table: str | None = None) -> StageReport:
    """Request one table, or all that have events; of all, those that cannot be built again are left out.

    Args:
        source: the source.
        table: as it is published (``erp.orders``, ``orders``), or as the source names it (``shop.orders``).

    Raises:
        UnknownNameError: the source has no such table, or more than one.
        ConfigurationError: events of the table are past their time, so it cannot be built again.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    targets = {row.object: "" for row in ledger.contents()}
    targets |= {name: str(target) for name, target in ledger.targets().items()}
    requested = sorted(targets) if table is None else [_named(source, targets, table)]
    unmet = rebuild_requests.unmet(lake, source, requested)
    if table is not None and unmet:
        raise ConfigurationError(f"{source.source}: {_refusal(*unmet.popitem())}")
    requested = [name for name in requested if name not in unmet]
    ledger.request_rebuild(requested, by_hand=True)
    log.info("rebuild_asked", source=source.source, tables=requested)
    remarks = tuple(_refusal(*each) for each in unmet.items())
    return StageReport(stage="rebuild", source=source.source, summary={"tables": len(requested)}, remarks=remarks)


def _refusal(name: str, problem: str) -> str:
    return f"{name} is not built again, and stays as it is: {problem}"


def _named(source: Source, targets: dict[str, str], table: str) -> str:
    exact = [name for name, target in targets.items() if table in {name, target}]
    found = exact or [name for name, target in targets.items() if table == Identifier.parse(target).name]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownNameError(f"{source.source}: '{table}' is {' and '.join(sorted(found))}; name one of them.")
    hint = suggestion(table, {target or name for name, target in targets.items()})
    raise UnknownNameError(f"{source.source} has no table '{table}'.{hint}")
