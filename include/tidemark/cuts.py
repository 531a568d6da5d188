"""Cuts: the set of snapshots of a source's tables that is published together.

Publishing is written ahead: the cut is first marked ``publishing`` in the ledger, then each table's ``main`` is moved
by a compare-and-set, tagged, and the cut marked ``published``. A crash in between is finished by whoever comes next.
"""

from __future__ import annotations

import structlog

from tidemark.lake import Identifier, Lake, drop_ref, fast_forward, head, tag
from tidemark.ledger import Ledger, Row, equals

log = structlog.get_logger(__name__)

CANDIDATE = "candidate"
FAILED = "failed"
CHECKED = "checked"
PUBLISHING = "publishing"
PUBLISHED = "published"
STOPPED = "stopped"


def last_published(ledger: Ledger) -> Row | None:
    """The newest cut that readers of ``main`` see."""
    published = ledger.read("cuts", equals("state", PUBLISHED))
    return max(published, key=lambda row: int(row["cut"]), default=None)


def tables_of(ledger: Ledger, cut: int) -> list[Row]:
    """Rows of the cut's tables in the ledger, by name."""
    return sorted(ledger.read("tables", equals("cut", cut)), key=lambda row: str(row["object"]))


def set_state(ledger: Ledger, cut: Row, state: str) -> Row:
    """Write a cut's new state to the ledger."""
    moved = {**cut, "state": state}
    moved.pop("at", None)
    ledger.replace("cuts", [moved], equals("cut", cut["cut"]))
    return moved


def publish(lake: Lake, ledger: Ledger, cut: Row) -> None:
    """Move ``main`` of every table of the cut to its candidate, tag it, and mark the cut published.

    Raises:
        PublishConflictError: a ``main`` moved since its candidate was built.
    """
    cut = set_state(ledger, cut, PUBLISHING)
    rows = tables_of(ledger, cut["cut"])
    for row in rows:
        if row["state"] != STOPPED:
            _move(lake, row, cut["cut"])
    for row in rows:
        row.pop("at", None)
        row["state"] = row["state"] if row["state"] == STOPPED else PUBLISHED
    ledger.replace("tables", rows, equals("cut", cut["cut"]))
    ledger.rebuilt(row["rebuilt"] for row in rows if row["rebuilt"] and row["state"] != STOPPED)
    set_state(ledger, cut, PUBLISHED)
    log.info("published", cut=cut["cut"], tables=len(rows))


def finish(lake: Lake, ledger: Ledger) -> None:
    """Finish a cut whose publishing was cut short; every check had passed before it began."""
    for cut in ledger.read("cuts", equals("state", PUBLISHING)):
        log.info("publishing_resumed", cut=cut["cut"])
        publish(lake, ledger, cut)


def drop_candidates(lake: Lake, ledger: Ledger, cut: int) -> None:
    """Drop the branches of a cut that was never published."""
    for row in tables_of(ledger, cut):
        if row["state"] != STOPPED:
            for identifier in identifiers(row["target"]):
                table = lake.find(identifier)
                if table is not None:
                    drop_ref(table, f"candidate_{cut}")


def identifiers(target: str) -> tuple[Identifier, ...]:
    """The tables that move together when one is published: the table itself and its state."""
    namespace, _, name = target.partition(".")
    return (namespace, name), ("state", f"{namespace}__{name}")


def _move(lake: Lake, row: Row, cut: int) -> None:
    branch, name = f"candidate_{cut}", f"cut_{cut}"
    for identifier in identifiers(row["target"]):
        table = lake.load(identifier)
        if name in table.refs():
            continue  # moved before the crash
        if branch in table.refs():
            fast_forward(table, branch)
        tag(lake.load(identifier), name, head(lake.load(identifier)))
        drop_ref(lake.load(identifier), branch)
