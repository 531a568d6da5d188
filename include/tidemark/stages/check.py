"""Check: let Great Expectations judge every candidate of the cut before anybody sees it.

Declared checks come from the source file and judge the rows that are not deleted; the invariants are built in: no key
is null, no key occurs twice, the rows are as many as the ledger says, no more of them are deleted than one cut may
delete, the ledger of events closes, and the history has one current version for each row. A failed blocking check
holds the whole cut back: its candidates stay on their branches for inspection. Where only the limit of deletes was
broken, a person may approve the cut (docs/adr/0016).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark import cuts, epochs, evolution
from tidemark.branches import head, properties_at
from tidemark.lake import Lake, history_of, home, quoted
from tidemark.ledger import Ledger, Row
from tidemark.row_filters import equals
from tidemark.session import open_session, tuned_for
from tidemark.sources import Severity, Source
from tidemark.stages import StageReport
from tidemark.table_schemas import DELETED, IS_CURRENT, KEY_PROPERTY, POSITION
from tidemark.verdicts import Candidate, Invariant, Verdict

log = structlog.get_logger(__name__)

_TOO_MANY_DELETED = "rows deleted beyond the limit"


def run(source: Source) -> StageReport:
    """Judge the candidates of the newest cut; does nothing when the newest cut is published.

    Raises:
        ConfigurationError: a declared check cannot be built.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    cut = ledger.last_cut()
    if cut is None or cut["state"] in {cuts.PUBLISHED, cuts.PUBLISHING, cuts.REPLACED}:
        return StageReport(stage="check", source=source.source, summary={"tables": 0})
    rows = [row for row in cuts.tables_of(ledger, cut["cut"]) if cuts.is_built(row)]
    verdicts = _judge(lake, source, rows, cut["cut"])
    failed = [verdict for verdict in verdicts if not verdict.success]
    _remember(ledger, cut, verdicts)
    state = _state(verdicts)
    cuts.set_state(ledger, cut, state)
    problems = tuple(problem for verdict in failed for problem in verdict.problems())
    warnings = sum(not result.success for verdict in verdicts for result in verdict.results) - len(problems)
    if state == cuts.HELD:
        problems += (_asks_for_approval(source, cut["cut"], rows),)
    log.info("checked", source=source.source, cut=cut["cut"], tables=len(verdicts), failed=len(failed))
    summary: dict[str, int | str] = {"tables": len(verdicts), "failed": len(failed), "warnings": warnings}
    if verdicts:
        summary["docs"] = str(verdicts[0].docs)
    return StageReport(stage="check", source=source.source, summary=summary, problems=problems)


def _judge(lake: Lake, source: Source, rows: list[Row], cut: int) -> tuple[Verdict, ...]:
    if not rows:
        return ()
    session = open_session()
    from tidemark.expectations import evaluate_all  # noqa: PLC0415  seconds to import, and not always needed

    with tuned_for(session, [row["rows_after"] for row in rows]):
        candidates = [_candidate(session, lake, source, row) for row in rows]
        return evaluate_all(candidates, cut=f"{source.source}-cut-{cut}", home=home())


def _candidate(session: SparkSession, lake: Lake, source: Source, row: Row) -> Candidate:
    namespace, _, name = row["target"].partition(".")
    table = lake.load((namespace, name))
    after = {**properties_at(table, row["snapshot"]), **evolution.pending(table, row["cut"]).get("properties", {})}
    key = json.loads(after[KEY_PROPERTY])
    frame = session.read.option("versionAsOf", str(row["snapshot"])).table(lake.spark_name((namespace, name)))
    frame = epochs.as_published(frame, table, row["cut"])
    base = {task.file.file_path for task in table.scan(snapshot_id=row["base"]).plan_files()}
    files = {task.file.file_path for task in table.scan(snapshot_id=row["snapshot"]).plan_files()} - base
    checks = source.table_for(row["object"]).checks
    alive = frame.where(~F.col(DELETED)) if DELETED in frame.columns else frame
    return Candidate(
        table=row["target"],
        frame=alive,
        snapshot=row["snapshot"],
        checks=[{"type": check.type, "severity": check.severity, **check.arguments} for check in checks],
        invariants={
            **_key_invariants(frame, key, sorted(files), row),
            **_delete_invariants(source, row),
            **_history_invariants(session, lake, row, key, alive),
            **_ledger_invariants(row),
        },
    )


def _key_invariants(frame: DataFrame, key: list[str], files: list[str], row: Row) -> dict[str, Invariant]:
    """Of the keys that this cut wrote; those of untouched rows were checked when they were written."""
    if not key:
        return {"rows beyond the ledger's count": Invariant(value=frame.count() - row["rows_after"])}
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


def _delete_invariants(source: Source, row: Row) -> dict[str, Invariant]:
    if not _deleted(row):
        return {}
    beyond = max(0, _deleted(row) - source.deletable(row["object"], row["rows_before"]))
    return {_TOO_MANY_DELETED: Invariant(value=beyond)}


def _deleted(row: Row) -> int:
    counted = row["deleted"]
    return int(max(0, row["rows_before"] - row["rows_after"]) if counted is None else counted)


def _state(verdicts: Iterable[Verdict]) -> str:
    failed = {
        result.name
        for verdict in verdicts
        for result in verdict.results
        if not result.success and result.severity == Severity.BLOCK
    }
    if not failed:
        return cuts.CHECKED
    return cuts.HELD if failed == {_TOO_MANY_DELETED} else cuts.FAILED


def _asks_for_approval(source: Source, cut: int, rows: Iterable[Row]) -> str:
    told = [
        f"{_deleted(row)} of {row['rows_before']} rows of {row['target']} (allowed: {allowed})"
        for row in rows
        if _deleted(row) > (allowed := source.deletable(row["object"], row["rows_before"]))
    ]
    return (
        f"cut {cut} of {source.source} would delete {', '.join(told)}. If that is right, "
        f"`tidemark publish {source.source} --approve {cut}` publishes it; `max_deletes` sets the limit"
    )


def _history_invariants(
    session: SparkSession, lake: Lake, row: Row, key: list[str], alive: DataFrame
) -> dict[str, Invariant]:
    """Of a history that belongs to the cut: its current versions are the rows of the table, by key and position."""
    namespace, _, name = row["target"].partition(".")
    identifier, branch = history_of((namespace, name)), f"candidate_{row['cut']}"
    table = lake.find(identifier)
    if table is None or branch not in table.refs():
        return {}
    history = session.read.option("versionAsOf", str(head(table, branch))).table(lake.spark_name(identifier))
    history = epochs.as_published(history, table, row["cut"])
    event = F.xxhash64(*(F.col(quoted(column)) for column in [*key, POSITION])).cast("decimal(20)").alias("event")
    rows = alive.select(event, F.lit(1).alias("row"))
    both = rows.unionAll(history.where(IS_CURRENT).select(event, F.lit(-1).alias("row")))
    found = both.agg(F.sum("row").alias("rows"), F.sum(F.col("event") * F.col("row")).alias("events")).first()
    told = found.asDict() if found else {}
    return {
        "rows beyond the current versions": Invariant(value=int(told.get("rows") or 0)),
        "rows unlike their current version": Invariant(value=int(bool(told.get("events")))),
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
        return "held" if _state([verdict]) == cuts.HELD else "failed"
    return "passed" if all(result.success for result in verdict.results) else "warned"
