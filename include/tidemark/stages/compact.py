"""Compact: fold new events of the change log onto the published tables, each on a candidate branch.

*Compact* is log compaction (the last image per key); rewriting small files is maintenance. All tables of the source
that have new events are built side by side in one Spark session and belong to one cut. A schema change that would lose
data stops its table, with the reason, and no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache

import structlog

from tidemark.compaction import rebuilding
from tidemark.compaction.building import build
from tidemark.compaction.candidate import Cut
from tidemark.compaction.finding import (
    batches_in_state,
    find_tables,
    is_awaiting_approval,
    is_released,
    under_schema_policy,
)
from tidemark.errors import IncompatibleSchemaError
from tidemark.lake.branches import marker
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger, Row
from tidemark.normalization import retrying
from tidemark.sources.model import Source
from tidemark.spark.session import open_session
from tidemark.stages import StageReport
from tidemark.tables import targets
from tidemark.tables.plan import Found

log = structlog.get_logger(__name__)


def run(source: Source) -> StageReport:
    """Build the candidate of every table that has events which no published cut holds.

    An earlier candidate that was never published is dropped and built again from where ``main`` stands, but for one
    that is held for approval: it stays until there are new events. A cut whose publishing was cut short is finished
    first.

    Raises:
        LedgerError: events went missing.
        LakeError: the store or the engine failed; running again starts from ``main``.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    cuts.finish(lake, ledger)
    retrying.finish_retry(lake, source.source)
    last = cuts.last_published(ledger)
    newest = int(marker(lake.find(("changelog", source.source)), "batch") or 0)
    stands = batches_in_state(ledger, last, cuts.STOPPED)
    asked = ledger.rebuilds()
    nothing_new = newest <= min([last["batch"] if last else 0, *stands.values()]) and not is_released(ledger, source)
    if not asked and (nothing_new or is_awaiting_approval(ledger, newest)):
        return _report(source, [], {})
    stands |= batches_in_state(ledger, last, cuts.WAITING)
    cut = Cut(number=cuts.next_number(lake, ledger), batch=newest)
    session = open_session()
    published = ledger.published_tables()
    finds = find_tables(
        ledger, source, stands | dict.fromkeys(asked, 0), last["batch"] if last else 0, newest, published
    )
    finds = {name: under_schema_policy(source, found) for name, found in finds.items()}
    known = {name: row["rows_after"] or 0 for name, row in published.items()}
    sizes = {name: found.events + known.get(name, 0) for name, found in finds.items()}
    were_there = {row["object"] for row in ledger.read("tables", equals("state", cuts.PUBLISHED))} - asked.keys()
    if gone := _gone(lake, source, [found for name, found in finds.items() if name in were_there and found.after]):
        return _begin_anew(source, ledger, dict.fromkeys(gone, "it was published, and is not there any more"))
    rows = build(session, lake, source, finds, sizes, cut, stands, last["batch"] if last else 0, asked)
    if anew := {row["object"]: row.pop("anew") for row in rows if "anew" in row}:
        return _begin_anew(source, ledger, anew)
    rows += rebuilding.without_events(lake, ledger, cut, {name: asked[name] for name in asked.keys() - finds.keys()})
    for row in rows:
        row["rows_before"] = known.get(row["object"], 0)
        row["rows_after"] = (0 if row.get("rebuilt") else row["rows_before"]) + row.pop("rows_change", 0)
        if row.get("rebuilt"):
            row["deleted"] = row.pop("lost", max(0, row["rows_before"] - row["rows_after"]))
    ledger.replace("tables", rows, equals("cut", cut.number))
    ledger.replace("cuts", [{"cut": cut.number, "state": cuts.CANDIDATE, "batch": newest}], equals("cut", cut.number))
    return _report(source, rows, {name: _ddl_not_followed(found) for name, found in finds.items()})


def _begin_anew(source: Source, ledger: Ledger, reasons: Mapping[str, str]) -> StageReport:
    """Run again, and build the tables that have a reason from their whole change log."""
    for name, reason in reasons.items():
        log.warning("table_built_anew", object=name, reason=reason)
    ledger.ask_for_rebuild(reasons)
    return run(source)


def _gone(lake: Lake, source: Source, finds: Iterable[Found]) -> list[str]:
    """Tables that are not where the source file says that they are, though they were published."""
    listed = cache(lake.tables)
    gone = []
    for found in finds:
        with suppress(IncompatibleSchemaError):  # of a name that cannot be one, which planning tells
            target = targets.target_of(source, found)
            # Listing is one question for all of them; catalogs may fold the case of what they list.
            if target[1] not in listed(target[0]) and lake.find(target) is None:
                gone.append(found.object)
    return gone


def _ddl_not_followed(found: Found) -> str:
    """Statements of the new batches that were not followed: told, and no reason to hold anything back."""
    notes = [note.text for note in found.history.notes if note.batch > found.after]
    for note in notes:
        log.warning("ddl_not_followed", object=found.object, statement=note)
    return "; ".join(notes)


def _report(source: Source, rows: Sequence[Row], ddl: Mapping[str, str]) -> StageReport:
    names = ("events", "applied", "superseded", "duplicate", "held", "quarantined")
    totals = {name: sum(row[name] for row in rows) for name in names}
    problems = tuple(row["reason"] for row in rows if row["state"] == cuts.STOPPED)
    details: dict[str, dict[str, int | str]] = {row["object"]: {name: row[name] for name in names} for row in rows}
    for name, told in ddl.items():
        if told and name in details:
            details[name]["ddl"] = told
    log.info("compacted", source=source.source, tables=len(rows), **totals)
    summary = {"tables": len(rows), **totals}
    return StageReport(stage="compact", source=source.source, summary=summary, problems=problems, details=details)
