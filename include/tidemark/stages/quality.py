"""Quality: let Great Expectations judge the tables of a cut that is published already. Beside the flow, on demand.

The same checks as before publishing, as the source file declares them now, over the rows that the cut shows; of keys
all rows are looked at, not only the rows that the cut wrote. Whatever the verdict, nothing of the cut changes: the
results are kept beside the results from before publishing.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog
from pyspark.sql import SparkSession

from tidemark.lake.catalog import home
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.check_rows import QUALITY
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.quality.invariants import key_invariants
from tidemark.quality.key_counts import counted_at_once
from tidemark.quality.records import record
from tidemark.quality.verdicts import Subject, Verdict
from tidemark.sources.model import Source
from tidemark.spark.tuning import session_for
from tidemark.stages import StageReport
from tidemark.tables import epochs
from tidemark.tables.schemas import key_of

log = structlog.get_logger(__name__)


def run(source: Source, cut: int | None = None) -> StageReport:
    """Judge what a published cut shows; does nothing when there is none.

    Args:
        source: the source.
        cut: default: the newest. Then tables are left out that the source is published as no more.

    Returns:
        How many tables failed a blocking check, and how many others failed one that only warns. Details by table: the
        cut that last changed it, its rows, how many checks it has, how many of them block and failed, and how many
        warn. Problems are the blocking checks that failed, remarks the others.

    Raises:
        ConfigurationError: the cut is not published or no longer kept, or a declared check has an unknown expectation,
            argument or severity.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    if cut is not None:
        return _report(lake, ledger, source, cut, cuts.shown_by(ledger, cut))
    last = cuts.last_published(ledger)
    if last is None:
        return StageReport(stage="quality", source=source.source, summary={"tables": 0})
    return _report(lake, ledger, source, last.cut, _of_today(cuts.shown_by(ledger, last.cut)))


_GONE = "{}: not judged, as it was dropped since"


def _of_today(shown: Mapping[str, TableRow]) -> dict[str, TableRow]:
    """Return the rows by target, each table of the source by the target alone that it was published as last."""
    last = {row.object: target for target, row in sorted(shown.items(), key=lambda each: each[1].cut)}
    return {target: shown[target] for target in last.values()}


def _report(lake: Lake, ledger: Ledger, source: Source, cut: int, shown: Mapping[str, TableRow]) -> StageReport:
    gone = [target for target, row in shown.items() if lake.find(row.identifier) is None]
    verdicts = _judge(lake, source, {target: row for target, row in shown.items() if target not in gone}, cut)
    record(ledger, cut, QUALITY, verdicts)
    failed = [verdict for verdict in verdicts if not verdict.success]
    problems = tuple(problem for verdict in failed for problem in verdict.problems())
    warned = sum(bool(verdict.warnings()) for verdict in verdicts if verdict.success)
    summary = {"cut": cut, "tables": len(verdicts), "failed": len(failed), "warned": warned}
    log.info("judged", source=source.source, **summary)
    return StageReport(
        stage="quality",
        source=source.source,
        summary=summary,
        problems=problems,
        remarks=(
            *map(_GONE.format, gone),
            *(warning for verdict in verdicts for warning in verdict.warnings()),
        ),
        details={verdict.table: _detail(verdict, shown[verdict.table]) for verdict in verdicts},
    )


def _detail(verdict: Verdict, row: TableRow) -> dict[str, int | str]:
    counts = {"failed": len(verdict.problems()), "warned": len(verdict.warnings())}
    return {"cut": row.cut, "rows": row.rows_after or 0, "checks": len(verdict.results), **counts}


def _judge(lake: Lake, source: Source, shown: Mapping[str, TableRow], cut: int) -> tuple[Verdict, ...]:
    if not shown:
        return ()
    from tidemark.quality.expectations import evaluate_all  # noqa: PLC0415  seconds to import, and not always needed

    with session_for([row.rows_after or 0 for row in shown.values()]) as session:
        subjects = [_shown(session, lake, source, row) for row in shown.values()]
        return evaluate_all(subjects, cut=f"{source.source}-cut-{cut}", home=home())


def _shown(session: SparkSession, lake: Lake, source: Source, row: TableRow) -> Subject:
    target = row.identifier
    table = lake.load(target)
    snapshot = cuts.tagged_snapshot(table, row.cut)
    rows = session.read.option("versionAsOf", str(snapshot)).table(lake.spark_name(target))
    frame = epochs.as_shown(rows, table, snapshot)
    key = key_of(table)
    return Subject(
        table=str(target),
        frame=frame,
        snapshot=snapshot,
        checks=[
            {"type": check.type, "severity": check.judged_as, **check.arguments}
            for check in source.table_for(row.object).checks
        ],
        invariants=key_invariants(key, counted_at_once(frame, key), row),
    )
