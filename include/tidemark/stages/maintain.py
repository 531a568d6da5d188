"""Maintain: rewrite small files, fold deletes, drop what is past its time. Beside the flow, once a day or a week.

It changes no row that readers see. Of a published table, its history and its state nothing is touched while a cut is
under way: the candidates begin where ``main`` stands, and could not be published if it moved.
"""

from __future__ import annotations

from collections.abc import Iterator

import structlog
from pyspark.sql import SparkSession

from tidemark.compaction import state
from tidemark.compaction.horizons import Horizons, horizons_of
from tidemark.errors import UnknownNameError
from tidemark.lake import maintenance, names, retention
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, Namespace
from tidemark.lake.statistics import rows_in
from tidemark.ledger import cuts, restoring
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.read_once import ReadOnce
from tidemark.ledger.schemas import NAMES
from tidemark.normalization import retrying
from tidemark.sources.model import Source
from tidemark.spark.session import open_session
from tidemark.spark.tuning import tuned_for
from tidemark.stages import StageReport
from tidemark.text import suggestion

log = structlog.get_logger(__name__)


def run(source: Source, table: str | None = None) -> StageReport:
    """Maintain the tables of a source: published ones, state, raw, change log, quarantine, and the ledger.

    Args:
        source: the source; its ``maintenance`` says what is kept for how long.
        table: only this one with its history and state, by its published name, with or without its namespace, or the
            source's.

    Returns:
        Details by table: data and delete files and bytes before and after, tags dropped, snapshots expired, orphans
        removed, tombstones dropped (state tables only).

    Raises:
        UnknownNameError: the source has published no such table.
        LakeError: the store or the engine failed; running again goes on.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    retrying.finish_retry(lake, source.source)
    restoring.finish(lake, ledger)
    chosen = _chosen(lake, source, ledger, table)
    open_cut = cuts.under_way(ledger)
    summary: dict[str, int | str] = {}
    if open_cut is not None:
        summary["skipped"] = f"published tables, as cut {open_cut.cut} is not published ({open_cut.state})"
        log.warning("maintenance_skips_tables", source=source.source, cut=open_cut.cut, state=open_cut.state)
        chosen = []
    logs = [] if table else list(_logs(lake, source))
    details: dict[str, dict[str, int | str]] = {}
    if chosen or logs:
        session = open_session()
        horizons = horizons_of(lake, ReadOnce(lake, source.source), source, idle=open_cut is None)
        for identifier in [*chosen, *logs]:
            with tuned_for(session, [rows_in(lake.load(identifier))]):
                details[str(identifier)] = _maintain(session, lake, identifier, horizons)
    for name in ("tags", "snapshots", "orphans", "tombstones"):
        summary[name] = sum(int(detail.get(name, 0)) for detail in details.values())
    log.info("maintained", source=source.source, tables=len(details), **summary)
    return StageReport(
        stage="maintain",
        source=source.source,
        summary={"tables": len(details), **summary},
        details=details,
        remarks=tuple(_SHARED.format(name) for name, detail in details.items() if "orphans" not in detail),
    )


_SHARED = (
    "{}: orphan files stay, as its folder is, holds or lies in that of another table. Write another `layout.location`, "
    "drop the table, and `tidemark rebuild` it"
)


def _chosen(lake: Lake, source: Source, ledger: Ledger, table: str | None) -> list[Identifier]:
    published = cuts.ever_published(ledger)
    exact = [identifiers for names, identifiers in published.items() if table is None or table in names]
    chosen = exact or [found for (target, _), found in published.items() if table == Identifier.parse(target).name]
    if table is not None and not chosen:
        hint = suggestion(table, [target for target, _ in published])
        raise UnknownNameError(f"{source.source} has published no table '{table}'.{hint}")
    return [identifier for identifiers in chosen for identifier in identifiers if lake.find(identifier)]


def _logs(lake: Lake, source: Source) -> Iterator[Identifier]:
    own = [kind(source.source) for kind in (names.raw, names.change_log, names.quarantine)]
    for identifier in [*own, *map(names.ledger, NAMES)]:
        if lake.find(identifier) is not None:
            yield identifier


def _maintain(session: SparkSession, lake: Lake, identifier: Identifier, horizons: Horizons) -> dict[str, int | str]:
    before = maintenance.size_of(lake.load(identifier))
    done: dict[str, int | str] = {"tags": cuts.drop_tags(lake.load(identifier), horizons.cut)}
    if identifier.namespace == Namespace.RAW and horizons.messages:
        done["dropped_files"] = retention.drop_up_to(lake.load(identifier), horizons.messages)
    if identifier.namespace == Namespace.CHANGE_LOG and horizons.events:
        done["dropped_files"] = retention.drop_events(lake.load(identifier), horizons.settled, horizons.events)
    if identifier.namespace == Namespace.QUARANTINE and horizons.quarantined:
        done["without_bytes"] = retention.without_bytes(lake, lake.load(identifier), horizons.quarantined)
    if identifier.namespace == Namespace.STATE and not names.is_whole(identifier.name):
        done["tombstones"] = state.rewrite(session, lake, identifier, horizons.tombstones.up_to(identifier))
    elif identifier.namespace != Namespace.LEDGER:  # each commit of the ledger puts small files together
        maintenance.rewrite(session, lake, identifier)
    done["snapshots"] = maintenance.expire(session, lake, identifier, horizons.snapshots)
    if str(identifier) not in horizons.shared:
        done["orphans"] = maintenance.remove_orphans(session, lake, identifier, horizons.orphans)
    after = maintenance.size_of(lake.load(identifier))
    sizes = zip(before._fields, before, after, strict=True)
    return {**{name: f"{was}->{now}" for name, was, now in sizes}, **done}
