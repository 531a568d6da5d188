"""Land: dump files of an interval into ``raw``, one row a message, verbatim.

Idempotent by content: a file that was landed lands nothing again, under whatever name; a changed file under the same
name is refused, and so is one that is truncated or corrupt, each whole and by name, while the others land. The files
are written to the ledger first and count only once ``raw`` has their batch, so a killed land leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import structlog

from tidemark import tasks, workers
from tidemark.lake import LOG_PROPERTIES, Lake, marker
from tidemark.landing import DumpFile, find
from tidemark.ledger import Ledger, Row
from tidemark.rows import RAW, VARIED
from tidemark.sources import Source
from tidemark.stages import StageReport
from tidemark.workers import Dump, Inspected

log = structlog.get_logger(__name__)


def run(source: Source, start: datetime | None = None, end: datetime | None = None) -> StageReport:
    """Land the files of ``[start, end)``, and late ones of intervals that were landed before.

    Without bounds, all files not yet landed. Spark starts only for more than a little to read.

    Raises:
        LakeError: the store or the engine failed; running again continues where it was.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    raw = lake.ensure(("raw", source.source), RAW, LOG_PROPERTIES, partition_by=["batch"])
    batch = int(marker(raw, "batch") or 0)
    ledger.forget_attempts(batch)
    landed = ledger.landed_files(batch)
    fresh = [file for file in _due(source, ledger, landed, start, end) if not _unchanged(file, landed.get(file.path))]
    accepted, refused = _inspect(fresh, landed) if fresh else ([], {})
    if accepted:
        _append(lake, ledger, source, accepted, batch + 1)
    _remember_refusals(ledger, refused)
    if start is not None or end is not None:
        _remember_interval(ledger, start, end)
    messages = sum(int(file["messages"]) for file in accepted)
    log.info("landed", source=source.source, files=len(accepted), messages=messages, refused=len(refused))
    summary = {"files": len(accepted), "messages": messages, "refused": len(refused), "batch": batch + bool(accepted)}
    return StageReport(stage="land", source=source.source, summary=summary, problems=tuple(refused.values()))


def _due(
    source: Source, ledger: Ledger, landed: Mapping[str, Row], start: datetime | None, end: datetime | None
) -> list[DumpFile]:
    if start is None and end is None:
        return find(source.landing, start=None, end=None, landed=landed)
    spans = [(start, end), *((row["start"], row["end"]) for row in ledger.read("intervals"))]
    bounds = [(_micros(first, -(1 << 63)), _micros(last, 1 << 62)) for first, last in spans]
    files = find(source.landing, start=None, end=None, landed=landed)
    return [file for file in files if not file.interval or any(a <= file.interval < b for a, b in bounds)]


def _micros(moment: datetime | None, default: int) -> int:
    return default if moment is None else int(moment.timestamp() * 1_000_000)


def _unchanged(file: DumpFile, landed: Row | None) -> bool:
    """Same name, size and time of change as when it was landed: not worth another read."""
    return landed is not None and landed["size"] == file.size and landed["modified"] == str(file.modified)


def _inspect(files: Sequence[DumpFile], landed: Mapping[str, Row]) -> tuple[list[Row], dict[str, str]]:
    """Read every file through; tell those to land from those to refuse (path to reason)."""
    done = tasks.run([(file.path, file.size) for file in files], workers.inspect)
    inspected = {told.path: told for task in done for told in task.inspected}
    known = {row["checksum"]: row["path"] for row in landed.values()}
    accepted: list[Row] = []
    refused: dict[str, str] = {}
    for file in files:
        told = inspected[file.path]
        before = landed.get(file.path)
        if told.problem:
            refused[file.path] = told.problem
        elif before is not None and before["checksum"] != told.checksum:
            refused[file.path] = _changed(file, before)
        elif told.checksum in known:
            log.info("already_landed", file=file.path, landed_as=known[told.checksum])
        else:
            known[told.checksum] = file.path
            accepted.append(_entry(file, told))
    return accepted, refused


def _changed(file: DumpFile, before: Row) -> str:
    return (
        f"{file.path} changed since it was landed (batch {before['batch']}, SHA-256 {before['checksum'][:12]}...): "
        "a landed file stays as it is. Deliver the new content under another name."
    )


def _entry(file: DumpFile, told: Inspected) -> Row:
    return {
        "path": file.path,
        "size": file.size,
        "modified": str(file.modified),
        "checksum": told.checksum,
        "container": told.container,
        "messages": told.messages,
        "interval_start": file.interval or None,
    }


def _append(lake: Lake, ledger: Ledger, source: Source, files: Sequence[Row], batch: int) -> None:
    ledger.replace("files", [{**file, "batch": batch} for file in files])
    raw = lake.load(("raw", source.source))
    landed_at = int(datetime.now(UTC).timestamp() * 1_000_000)
    target = lake.target(raw, RAW, plain=VARIED)
    dumps = [
        (Dump(path=f["path"], interval=f["interval_start"] or 0, checksum=f["checksum"]), f["size"]) for f in files
    ]
    done = tasks.run(dumps, partial(workers.land, batch=batch, landed_at=landed_at, target=target))
    lake.append_files(raw, [file for task in done for file in task.files], {"batch": str(batch)})


def _dump(file: Row) -> Dump:
    return Dump(path=file["path"], interval=file["interval_start"] or 0, checksum=file["checksum"])


def _remember_refusals(ledger: Ledger, refused: Mapping[str, str]) -> None:
    if refused or ledger.read("refusals"):
        ledger.forget("refusals")
        ledger.replace("refusals", [{"path": path, "problem": problem} for path, problem in refused.items()])


def _remember_interval(ledger: Ledger, start: datetime | None, end: datetime | None) -> None:
    known = {(row["start"], row["end"]) for row in ledger.read("intervals")}
    if (start, end) not in known:
        ledger.replace("intervals", [{"start": start, "end": end}])
