"""Requests to build tables again that cannot be met, because events of the tables are past their time.

A table goes on from what is published without these events, so a request that a person made does not stop it.
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from tidemark.compaction import renamed
from tidemark.compaction.routing import Routing
from tidemark.ddl.history import SchemaHistory, histories
from tidemark.ddl.lineages import history_of
from tidemark.lake import names
from tidemark.lake.branches import marker
from tidemark.lake.filters import among, at_most
from tidemark.lake.lake import Lake
from tidemark.lake.retention import gone_up_to
from tidemark.ledger.expired import Expired
from tidemark.ledger.ledger import BY_HAND, Ledger
from tidemark.ledger.rows import RebuildRow
from tidemark.sources.model import Source

log = structlog.get_logger(__name__)


def unmet(lake: Lake, source: Source, tables: Iterable[str]) -> dict[str, str]:
    """Return, of some tables, those that cannot be built again because their events are past their time, and why.

    Args:
        lake: the lake.
        source: the source.
        tables: as the source names them.
    """
    changelog = lake.find(names.change_log(source.source))
    if changelog is None or not gone_up_to(changelog):
        return {}
    ledger, expired = Ledger(lake, source.source), Expired(lake, source.source)
    newest = int(marker(changelog, "batch") or 0)
    routed = Routing.of(source, ledger, ledger.published_tables(), newest)
    lineages = renamed.known_to(ledger, source, newest)
    own = {name: routed.shards_of(routed.name_of(name)) or lineages.names_of(name) for name in tables}
    known = histories(ledger, {each for names_of in own.values() for each in names_of})
    known |= {name: history_of(known, lineage.segments) for name, lineage in lineages.tables.items() if name in own}
    found = {}
    for name, names_of in own.items():
        history = SchemaHistory() if routed.shards_of(routed.name_of(name)) else known.get(name, SchemaHistory())
        emptied = [each.position for each in history.until(newest).emptyings]
        contents = ledger.contents(among("object", names_of), at_most("batch", newest))
        if problem := expired.left_of(contents, 0, emptied)[1]:
            found[name] = problem
    return found


def dropped(lake: Lake, source: Source) -> list[str]:
    """Drop the requests of persons that cannot be met by tables that can go on, and return a sentence for each.

    Other requests stay, and their tables stop: these cannot go on from what is published.
    """
    ledger = Ledger(lake, source.source)
    requested = [name for name, request in ledger.rebuild_requests().items() if request.endswith(BY_HAND)]
    if not requested:
        return []
    published = ledger.published_tables()
    problems = unmet(lake, source, [name for name in requested if name in published and published[name].batch])
    if problems:
        ledger.forget(RebuildRow, among("object", problems))
    for name, problem in problems.items():
        log.warning("rebuild_request_dropped", object=name, reason=problem)
    return [
        f"{name} goes on from what is published, and its request for a rebuild is dropped: {problem}"
        for name, problem in sorted(problems.items())
    ]
