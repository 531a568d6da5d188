"""Check: let Great Expectations judge every candidate of the cut before anybody sees it.

Declared checks come from the source file and judge the rows that are not deleted; the invariants are built in: no key
is null, no key occurs twice, the rows are as many as the ledger says, no more of them are deleted than one cut may
delete, the ledger of events closes, and the history has one current version for each row. A failed blocking check
holds the whole cut back: its candidates stay on their branches for inspection. Where only the limit of deletes was
broken, a person may approve the cut (docs/adr/0016).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import structlog
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark import cuts, epochs, evolution
from tidemark.branches import data_files, head, properties_at
from tidemark.lake import Lake, history_of, home, quoted
from tidemark.ledger import Ledger, Row
from tidemark.row_filters import equals
from tidemark.session import is_small, open_session, tuned_for
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
        tables = [_opened(session, lake, row) for row in rows]
        counts = _count_keys(tables)
        candidates = [_candidate(session, lake, source, *each) for each in zip(tables, counts, strict=True)]
        return evaluate_all(candidates, cut=f"{source.source}-cut-{cut}", home=home())


class _Opened(NamedTuple):
    """A candidate that is to be judged, as it will be when it is published."""

    row: Row
    """Of the ledger."""
    frame: DataFrame
    key: list[str]
    files: list[str]
    """Data files that the cut wrote, sorted."""


def _opened(session: SparkSession, lake: Lake, row: Row) -> _Opened:
    namespace, _, name = row["target"].partition(".")
    table = lake.load((namespace, name))
    after = {**properties_at(table, row["snapshot"]), **evolution.pending(table, row["cut"]).get("properties", {})}
    frame = session.read.option("versionAsOf", str(row["snapshot"])).table(lake.spark_name((namespace, name)))
    files = data_files(table, row["snapshot"]) - data_files(table, row["base"])
    return _Opened(row, epochs.as_published(frame, table, row["cut"]), json.loads(after[KEY_PROPERTY]), sorted(files))


def _candidate(
    session: SparkSession, lake: Lake, source: Source, opened: _Opened, counts: Mapping[str, int]
) -> Candidate:
    row, frame = opened.row, opened.frame
    checks = source.table_for(row["object"]).checks
    alive = frame.where(~F.col(DELETED)) if DELETED in frame.columns else frame
    return Candidate(
        table=row["target"],
        frame=alive,
        snapshot=row["snapshot"],
        checks=[{"type": check.type, "severity": check.severity, **check.arguments} for check in checks],
        invariants={
            **_key_invariants(opened, counts),
            **_delete_invariants(source, row),
            **_history_invariants(session, lake, row, opened.key, alive),
            **_ledger_invariants(row),
        },
    )


def _key_invariants(opened: _Opened, counts: Mapping[str, int]) -> dict[str, Invariant]:
    rows = {"rows beyond the ledger's count": Invariant(value=counts["rows"] - opened.row["rows_after"])}
    if not opened.key:
        return rows
    return {
        "null keys": Invariant(value=counts["null_keys"]),
        "duplicate keys": Invariant(value=counts["duplicate_keys"]),
        **rows,
    }


def _count_keys(tables: Sequence[_Opened]) -> list[Counter[str]]:
    """``rows``, ``null_keys`` and ``duplicate_keys`` of each table; of small tables many in one query."""
    found = [Counter[str](dict.fromkeys(_COUNTED, 0)) for _ in tables]
    asked: list[DataFrame] = []
    for place, opened in enumerate(tables):
        asked += _key_counts(opened, place)
        if len(asked) >= _AT_ONCE or place + 1 == len(tables) or not is_small(opened.row["rows_after"]):
            for row in _union(asked).collect():
                found[int(row["place"])].update({name: row[name] for name in _COUNTED})
            asked = []
    return found


_COUNTED = ("rows", "null_keys", "duplicate_keys")
_AT_ONCE = 32
"""Queries that are asked as one: a job of its own costs as much as counting a small table."""


def _key_counts(opened: _Opened, place: int) -> Iterator[DataFrame]:
    """Rows with ``place`` (text, of which Spark makes no code of its own) and ``_COUNTED``, to be added up.

    Duplicates are of the keys that this cut wrote; those of untouched rows were looked for when they were written.
    """
    frame, none = opened.frame, F.lit(0)
    names = [f"k{number}" for number in range(len(opened.key))]  # as a column may be called `count`
    keys = [F.col(quoted(column)).alias(name) for column, name in zip(opened.key, names, strict=True)]
    null = [column.isNull().cast("int") for column in keys]
    null_keys = F.count(F.when(F.greatest(*null, null[0]) == 1, 1)) if null else none
    yield frame.agg(F.lit(str(place)).alias("place"), *_named(F.count("*"), null_keys, none))
    if keys and opened.files:
        written = frame.where(F.col("_file").isin(*opened.files)).select(*keys).distinct()
        twice = frame.select(*keys).join(written, names, "left_semi").groupBy(*names).count().where("count > 1")
        yield twice.agg(F.lit(str(place)).alias("place"), *_named(none, none, F.count("*")))


def _named(*counts: Expression) -> list[Expression]:
    return [count.cast("bigint").alias(name) for name, count in zip(_COUNTED, counts, strict=True)]


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of some frames; a balanced tree, as Spark Connect refuses plans of more than 100 levels."""
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return _union(frames[:half]).unionAll(_union(frames[half:]))


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
