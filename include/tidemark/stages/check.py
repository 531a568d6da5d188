"""Check: let Great Expectations judge every candidate of the cut before anybody sees it.

Declared checks come from the source file; the invariants are built in: no key is null, no key occurs twice, the rows
are as many as the ledger says, and the ledger of events closes. A failed blocking check holds the whole cut back: its
candidates stay on their branches for inspection.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark import cuts
from tidemark.lake import Lake, home, properties_at, quoted
from tidemark.ledger import Ledger, Row, equals
from tidemark.planning import KEY_PROPERTY
from tidemark.session import open_session, tuned_for
from tidemark.sources import Source
from tidemark.stages import StageReport
from tidemark.verdicts import Candidate, Invariant, Verdict

log = structlog.get_logger(__name__)


def run(source: Source) -> StageReport:
    """Judge the candidates of the newest cut; does nothing when the newest cut is published.

    Raises:
        ConfigurationError: a declared check cannot be built.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    cut = ledger.last_cut()
    if cut is None or cut["state"] in {cuts.PUBLISHED, cuts.PUBLISHING}:
        return StageReport(stage="check", source=source.source, summary={"tables": 0})
    rows = [row for row in cuts.tables_of(ledger, cut["cut"]) if row["state"] != cuts.STOPPED]
    verdicts = _judge(lake, source, rows, cut["cut"])
    failed = [verdict for verdict in verdicts if not verdict.success]
    _remember(ledger, cut, verdicts)
    cuts.set_state(ledger, cut, cuts.FAILED if failed else cuts.CHECKED)
    problems = tuple(problem for verdict in failed for problem in _problems(verdict))
    warnings = sum(not result.success for verdict in verdicts for result in verdict.results) - len(problems)
    log.info("checked", source=source.source, cut=cut["cut"], tables=len(verdicts), failed=len(failed))
    summary: dict[str, int | str] = {"tables": len(verdicts), "failed": len(failed), "warnings": warnings}
    if verdicts:
        summary["docs"] = str(verdicts[0].docs)
    return StageReport(stage="check", source=source.source, summary=summary, problems=problems)


def _judge(lake: Lake, source: Source, rows: list[Row], cut: int) -> tuple[Verdict, ...]:
    if not rows:
        return ()
    from tidemark.expectations import evaluate_all  # noqa: PLC0415  seconds to import, and not always needed

    session = open_session()
    with tuned_for(session, sum(row["rows_after"] for row in rows)):
        candidates = [_candidate(session, lake, source, row) for row in rows]
        return evaluate_all(candidates, cut=f"{source.source}-cut-{cut}", home=home())


def _candidate(session: SparkSession, lake: Lake, source: Source, row: Row) -> Candidate:
    namespace, _, name = row["target"].partition(".")
    table = lake.load((namespace, name))
    key = json.loads(properties_at(table, row["snapshot"])[KEY_PROPERTY])
    frame = session.read.option("versionAsOf", str(row["snapshot"])).table(lake.spark_name((namespace, name)))
    base = {task.file.file_path for task in table.scan(snapshot_id=row["base"]).plan_files()}
    files = {task.file.file_path for task in table.scan(snapshot_id=row["snapshot"]).plan_files()} - base
    checks = source.table_for(row["object"]).checks
    return Candidate(
        table=row["target"],
        frame=frame,
        snapshot=row["snapshot"],
        checks=[{"type": check.type, "severity": check.severity, **check.arguments} for check in checks],
        invariants={**_key_invariants(frame, key, sorted(files), row), **_ledger_invariants(row)},
    )


def _key_invariants(frame: DataFrame, key: list[str], files: list[str], row: Row) -> dict[str, Invariant]:
    """Of the keys that this cut wrote; those of untouched rows were checked when they were written."""
    columns = [F.col(quoted(name)) for name in key]
    null = F.when(F.greatest(*(column.isNull().cast("int") for column in [*columns, columns[0]])) == 1, 1)
    totals = frame.agg(F.count("*").alias("rows"), F.count(null).alias("null_keys")).first()
    found = totals.asDict() if totals else {"rows": 0, "null_keys": 0}
    written = frame.where(F.col("_file").isin(*files)).select(*columns).distinct() if files else None
    repeated = 0
    if written is not None:
        twice = frame.select(*columns).join(written, key, "left_semi").groupBy(*columns).count().where("count > 1")
        repeated = twice.count()
    return {
        "null keys": Invariant(value=found["null_keys"]),
        "duplicate keys": Invariant(value=repeated),
        "rows beyond the ledger's count": Invariant(value=found["rows"] - row["rows_after"]),
    }


def _ledger_invariants(row: Mapping[str, int]) -> dict[str, Invariant]:
    accounted = sum(row[name] for name in ("applied", "superseded", "duplicate", "held", "quarantined"))
    return {"events not accounted for": Invariant(value=row["events"] - accounted)}


def _remember(ledger: Ledger, cut: Row, verdicts: tuple[Verdict, ...]) -> None:
    by_table = {verdict.table: verdict for verdict in verdicts}
    rows = cuts.tables_of(ledger, cut["cut"])
    for row in rows:
        row.pop("at", None)
        verdict = by_table.get(row["target"])
        if verdict is not None:
            row["verdict"] = _word(verdict)
    ledger.replace("tables", rows, equals("cut", cut["cut"]))


def _word(verdict: Verdict) -> str:
    if not verdict.success:
        return "failed"
    return "passed" if all(result.success for result in verdict.results) else "warned"


def _problems(verdict: Verdict) -> list[str]:
    return [
        f"{verdict.table}: {result.name} ({', '.join(result.columns) or 'table'}) failed: {result.observed}; "
        f"expected {result.expected}. See {verdict.docs}"
        for result in verdict.results
        if not result.success and result.severity == "block"
    ]
