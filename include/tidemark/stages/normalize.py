"""Normalize: new messages of ``raw`` into the change log, one row an event; what cannot be read into quarantine.

One pass over the new messages on Spark's workers, one commit that carries its own marker. A format that cannot read
rows without metadata messages has these collected before, from the new messages and from the change log. The ledger of
each batch is counted from what was written, not from what was meant: ``landed = decoded + control + quarantined``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import structlog
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.pandas.types import from_arrow_schema

from tidemark import workers
from tidemark.errors import LedgerError
from tidemark.formats import Known, together
from tidemark.lake import LOG_PROPERTIES, MARKER, Lake, marker
from tidemark.ledger import Ledger, Row, above
from tidemark.quarantine import quarantine
from tidemark.rows import CHANGE_LOG, RAW, Kind
from tidemark.session import open_session
from tidemark.sources import Source
from tidemark.stages import StageReport

log = structlog.get_logger(__name__)


def run(source: Source) -> StageReport:
    """Decode every batch that ``raw`` has and the change log has not.

    Raises:
        LedgerError: messages went missing between ``raw`` and the change log.
        LakeError: the store or the engine failed; running again continues where it was.
    """
    lake = Lake.open()
    raw = marker(lake.find(("raw", source.source)), "batch")
    changelog = lake.ensure(
        ("changelog", source.source), CHANGE_LOG, LOG_PROPERTIES, partition_by=["batch", "kind", "object"]
    )
    done = int(marker(changelog, "batch") or 0)
    newest = int(raw or 0)
    if newest > done:
        _append(lake, source, done, newest)
    ledger = Ledger(lake, source.source)
    counted = max((int(row["batch"]) for row in ledger.read("batches")), default=0)
    rows = _count(lake, ledger, source, counted, newest) if newest > counted else []
    totals = Counter[str]()
    for row in rows:
        totals.update({name: row[name] for name in ("landed", "decoded", "control", "quarantined", "events")})
    log.info("normalized", source=source.source, **totals)
    return StageReport(stage="normalize", source=source.source, summary={**totals, "batch": newest})


def _append(lake: Lake, source: Source, done: int, newest: int) -> None:
    session = open_session()
    raw = session.table(lake.spark_name(("raw", source.source)))
    new = raw.where((F.col("batch") > done) & (F.col("batch") <= newest)).select(*RAW.names)
    changelog = session.table(lake.spark_name(("changelog", source.source)))
    options = source.options.model_dump(mode="json")
    decode = workers.decoder(source.format, options, _known(source.format, options, new, changelog))
    events = new.mapInArrow(decode, from_arrow_schema(CHANGE_LOG))
    target = events.writeTo(lake.spark_name(("changelog", source.source)))
    target.option(f"snapshot-property.{MARKER}batch", str(newest)).append()


def _known(format_name: str, options: Mapping[str, Any], new: DataFrame, changelog: DataFrame) -> Known | None:
    """What the metadata messages of the new rows tell, and those that the change log keeps as schema changes.

    None where the format asks for none. Rows without the format's mark never reach a worker; what comes back is one row
    a table and version of its structure.
    """
    mark = workers.metadata_mark(format_name)
    if mark is None:
        return None
    arrived = new.where(F.contains(F.col("value"), F.lit(mark))).select("value")
    kept = changelog.where(F.col("kind") == Kind.SCHEMA_CHANGE).select(F.col("detail").cast("binary").alias("value"))
    collect = workers.collector(format_name, options)
    told = arrived.unionAll(kept.distinct()).mapInArrow(collect, from_arrow_schema(workers.METADATA)).distinct()
    return together((row["id"], bytes(row["content"])) for row in told.collect())


def _count(lake: Lake, ledger: Ledger, source: Source, counted: int, newest: int) -> list[Row]:
    """Write the ledger of the batches above ``counted``, and their quarantine; a killed run does both again."""
    session = open_session()
    changelog = session.table(lake.spark_name(("changelog", source.source)))
    new = changelog.where((F.col("batch") > counted) & (F.col("batch") <= newest))
    kinds = _counts(new)
    landed = Counter[int]()
    for file in ledger.read("files", above("batch", counted)):
        landed[file["batch"]] += file["messages"]
    rows = [_batch(batch, landed[batch], kinds[batch]) for batch in sorted(landed)]
    if any(row["quarantined"] for row in rows):
        undecoded = new.where(F.col("kind") == Kind.QUARANTINED)
        found = undecoded.select("batch", "file", "place", F.col("operation").alias("reason"), "detail", "object")
        quarantine(lake, source.source, found, counted)
    for row in rows:
        _close(source.source, row)
    ledger.replace("batches", rows)
    return rows


def _counts(new: DataFrame) -> Mapping[int, Mapping[str, tuple[int, int]]]:
    """(rows, first rows of a message) by batch and kind."""
    firsts = F.sum(F.when(F.col("row") == 0, 1).otherwise(0))
    counts: dict[int, dict[str, tuple[int, int]]] = defaultdict(dict)
    for row in new.groupBy("batch", "kind").agg(F.count("*").alias("rows"), firsts.alias("messages")).collect():
        counts[row["batch"]][row["kind"]] = (row["rows"], row["messages"])
    return counts


def _batch(batch: int, landed: int, kinds: Mapping[str, tuple[int, int]]) -> Row:
    none = (0, 0)
    decoded = kinds.get(Kind.CHANGE, none)[1] + kinds.get(Kind.SCHEMA_CHANGE, none)[1]
    return {
        "batch": batch,
        "landed": landed,
        "decoded": decoded,
        "control": kinds.get(Kind.CONTROL, none)[1],
        "quarantined": kinds.get(Kind.QUARANTINED, none)[1],
        "events": kinds.get(Kind.CHANGE, none)[0],
    }


def _close(source: str, row: Row) -> None:
    accounted = row["decoded"] + row["control"] + row["quarantined"]
    if row["landed"] != accounted:
        raise LedgerError(
            f"{source}, batch {row['batch']}: {row['landed']} messages landed, but {row['decoded']} decoded + "
            f"{row['control']} control + {row['quarantined']} quarantined = {accounted}. Nothing of it is published."
        )
