"""Publish: move ``main`` of all tables of a checked cut to its candidates, all or none of them.

No Spark: a fast-forward is one compare-and-set in the catalog for each table.
"""

from __future__ import annotations

from tidemark import cuts
from tidemark.errors import ExpectationError
from tidemark.lake import Lake
from tidemark.ledger import Ledger
from tidemark.sources import Source
from tidemark.stages import StageReport


def run(source: Source) -> StageReport:
    """Publish the newest cut; a cut that is published already is left as it is.

    The report's problems are what this cut leaves behind: tables that were stopped, files that were refused.

    Raises:
        ExpectationError: the cut failed a blocking check, or was not checked yet.
        PublishConflictError: a ``main`` moved since its candidate was built.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    cuts.finish(lake, ledger)
    cut = ledger.last_cut()
    if cut is None:
        return StageReport(stage="publish", source=source.source, summary={"tables": 0})
    if cut["state"] == cuts.FAILED:
        raise ExpectationError(
            f"{source.source}: cut {cut['cut']} failed a blocking check, nothing of it is published. Look at "
            f"`tidemark status {source.source}` and the Data Docs; after a fix of the data or the check, run "
            f"`tidemark check {source.source}` and `tidemark publish {source.source}` again."
        )
    if cut["state"] == cuts.CANDIDATE:
        raise ExpectationError(
            f"{source.source}: cut {cut['cut']} is not checked yet: `tidemark check {source.source}`"
        )
    if cut["state"] == cuts.CHECKED:
        cuts.publish(lake, ledger, cut)
    tables = cuts.tables_of(ledger, cut["cut"])
    rows = [row for row in tables if row["state"] == cuts.PUBLISHED]
    problems = [row["reason"] for row in tables if row["state"] == cuts.STOPPED]
    problems += [row["problem"] for row in ledger.read("refusals")]
    details = {row["target"]: {"rows": row["rows_after"], "verdict": row["verdict"] or ""} for row in rows}
    summary = {"cut": cut["cut"], "tables": len(rows)}
    return StageReport(
        stage="publish", source=source.source, summary=summary, problems=tuple(problems), details=details
    )
