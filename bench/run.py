"""Measures land, normalize and compact against the floor: the least that Spark does with the same messages.

    make bench, or: .venv/bin/python bench/run.py --changes 500000 --rows 4000000 --batches 3

See ``README.md`` beside this file for what is measured, and ``results.md`` for figures.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import psutil
import structlog
from generator import COLUMNS, DATABASE, FILES, KEY, Generator, Written
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.lake.lake import Lake
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.spark.session import open_session
from tidemark.stages import STAGES
from tidemark.values.types import spark_type

PROMISED = 3.0
"""Most that land, normalize and compact may cost together, in floors."""

MEASURED = ("land", "normalize", "compact")
NAME = "bench"

_IMAGE = ", ".join(f"{name}: {spark_type(kind)}" for name, kind in COLUMNS.items())
_ENVELOPE = (
    f"before struct<{_IMAGE}>, after struct<{_IMAGE}>, "
    "source struct<file: string, pos: bigint, row: int, ts_ms: bigint>, op string, ts_ms bigint"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one step took."""

    cpu: float
    """Seconds of processor time, user and system, of this process and all that it started."""
    wall: float
    """Seconds."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(cpu=self.cpu + other.cpu, wall=self.wall + other.wall)


Costs = dict[str, Cost]


def main() -> int:
    """Run the benchmark; 0 when the promise holds."""
    arguments = _arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    home = Path(tempfile.mkdtemp(prefix="tidemark-bench-", dir=arguments.folder))
    os.environ["TIDEMARK_HOME"] = str(home / "lake")
    try:
        batches, size = _run(home, arguments)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    ratio = _ratio(_median(batches))
    print(f"\n{_report(arguments, batches, size)}")
    return int(ratio > PROMISED)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--changes", type=int, default=500_000, help="changes of a batch (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of the table before (default: %(default)s)")
    parser.add_argument("--tables", type=int, default=1, help="tables they are spread over (default: %(default)s)")
    parser.add_argument("--batches", type=int, default=5, help="batches measured (default: %(default)s)")
    parser.add_argument("--folder", help="where the lake and the dumps lie meanwhile (default: the system's temp)")
    return parser.parse_args()


def _run(home: Path, arguments: argparse.Namespace) -> tuple[list[Costs], int]:
    """Load the table, then measure batch by batch; the costs, and the bytes of a message."""
    source = _source(home / "landing")
    generator = Generator(arguments.rows, tables=arguments.tables)
    loaded = generator.initial_load(home / "landing" / "0")
    _say(f"initial load: {loaded.rows} rows in {loaded.size >> 20} MiB of JSON")
    session = open_session()
    # The first runs of everything compile it: they are not measured.
    _floor(session, loaded.files[:3], home / "floor")
    _verify_floor(session, home / "floor")
    for stage, cost in _stages(source).items():
        _say(f"  {stage}: {cost.cpu:.1f} s CPU, {cost.wall:.1f} s")
    _verify(session, generator.tables, loaded)
    _drop(loaded)
    batches = []
    for number in range(1, arguments.batches + 1):
        written = generator.changes(home / "landing" / str(number), arguments.changes)
        floor = _measured(partial(_floor, session, written.files, home / "floor"))
        batches.append({"floor": floor, **_stages(source)})
        _verify(session, generator.tables, written)
        _drop(written)
        _say(f"batch {number}: " + ", ".join(f"{name} {cost.cpu:.1f}" for name, cost in batches[-1].items()))
    return batches, written.size // written.messages


def _source(landing: Path) -> Source:
    return Source.model_validate(
        {
            "source": NAME,
            "format": "debezium_json",
            "landing": str(landing / "*" / "*.jsonl"),
            "tables": {f"{DATABASE}.*": {"key": [KEY], "columns": COLUMNS}},
        }
    )


def _floor(session: SparkSession, files: list[Path], target: Path) -> None:
    """Read the text, parse the envelope with its schema, write typed Parquet: no key, no order, no table."""
    text = session.read.text([str(file) for file in files])
    parsed = text.select(F.from_json("value", _ENVELOPE).alias("change"))
    _typed(parsed).write.mode("overwrite").option("compression", "zstd").parquet(str(target))


def _typed(parsed: DataFrame) -> DataFrame:
    """One typed row a message: operation, position, times, and the row's columns."""
    image = F.coalesce("change.after", "change.before").alias("image")
    told = ["change.op", "change.source.file", "change.source.pos", "change.source.row", "change.source.ts_ms"]
    return parsed.select(*told, F.col("change.ts_ms").alias("captured_ms"), image).select("*", "image.*").drop("image")


def _stages(source: Source) -> Costs:
    return {stage: _measured(partial(_stage, stage, source)) for stage in STAGES}


def _stage(stage: str, source: Source) -> None:
    report = run_stage(stage, source, None, None)
    if report.has_problems:
        sys.exit(f"{stage} held something back: {'; '.join(report.problems)}")


def _verify(session: SparkSession, tables: list[str], written: Written) -> None:
    """A figure counts only if the published tables are right."""
    lake = Lake.open()
    sums = [session.table(lake.spark_name((NAME, name))).agg(F.count("*"), F.sum("reference")) for name in tables]
    rows, references = (sum(numbers) for numbers in zip(*(found.collect()[0] for found in sums), strict=True))
    if (rows, references) != (written.rows, written.references):
        sys.exit(f"wrong result: rows and sum {(rows, references)}, expected {(written.rows, written.references)}")


def _verify_floor(session: SparkSession, folder: Path) -> None:
    """A floor that fails to read values would be slower than one that reads them: Spark throws for each."""
    found = session.read.parquet(str(folder))
    always = [name for name in found.columns if name != "remark"]  # null in most rows
    if lost := found.where(F.greatest(*(F.col(name).isNull() for name in always))).count():
        sys.exit(f"the floor read {lost} rows with nulls where the messages have none")


def _drop(written: Written) -> None:
    """Make room: what was landed is in the lake."""
    shutil.rmtree(written.files[0].parent)


def _measured(work: Callable[[], None]) -> Cost:
    cpu, wall = _cpu_seconds(), time.perf_counter()
    work()
    return Cost(cpu=_cpu_seconds() - cpu, wall=time.perf_counter() - wall)


_workers: dict[psutil.Process, float] = {}
"""Python workers and their times as last seen. Spark's daemon ignores SIGCHLD, so nobody inherits their times when
they end, which they do after a minute without work: what was seen last is what they took."""


def _cpu_seconds() -> float:
    """Processor seconds so far of this process, Spark's JVM and the Python workers, those that ended included."""
    me = psutil.Process()
    total = 0.0
    for process in (me, *me.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # ended since it was listed
            times = process.cpu_times()[:4]  # user, system, and both of children that it waited for
            if _is_worker(process):
                _workers[process] = sum(times)
            else:
                total += sum(times[:2] if _is_daemon(process) else times)
    return total + sum(_workers.values())


def _is_worker(process: psutil.Process) -> bool:
    parent = process.parent()
    return process in _workers or (parent is not None and _is_daemon(parent))


def _is_daemon(process: psutil.Process) -> bool:
    """Whether it forks workers: what these took is counted from themselves, while they live."""
    return any(word.endswith("daemon") for word in process.cmdline())


def _median(batches: list[Costs]) -> Costs:
    return {
        name: Cost(
            cpu=statistics.median(batch[name].cpu for batch in batches),
            wall=statistics.median(batch[name].wall for batch in batches),
        )
        for name in batches[0]
    }


def _together(costs: Costs) -> Cost:
    return sum((costs[stage] for stage in MEASURED), Cost(cpu=0.0, wall=0.0))


def _ratio(costs: Costs) -> float:
    return _together(costs).cpu / costs["floor"].cpu


def _report(arguments: argparse.Namespace, batches: list[Costs], size: int) -> str:
    medians = _median(batches)
    floor = medians["floor"].cpu
    together = " + ".join(MEASURED)
    rows = [("floor", medians["floor"]), *((stage, medians[stage]) for stage in MEASURED)]
    rows += [(f"**{together}**", _together(medians)), ("check", medians["check"]), ("publish", medians["publish"])]
    where = f"{arguments.rows:,} rows in {arguments.tables} table(s)"
    measured = (
        f"{arguments.changes:,} changes of {size} bytes in {FILES} files a batch, to {where}; "
        f"medians of {len(batches)} batches, each published before the next."
    )
    ratios = ", ".join(f"{_ratio(batch):.2f}" for batch in batches)
    lines = [
        measured,
        "",
        "| step | CPU s | x floor | wall s |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {name} | {cost.cpu:.1f} | {cost.cpu / floor:.2f} | {cost.wall:.1f} |" for name, cost in rows),
        "",
        f"By batch, {together} in floors: {ratios}. Promised: {PROMISED} or less.",
        "",
        _machine(),
    ]
    return "\n".join(lines)


def _machine() -> str:
    memory = psutil.virtual_memory().total / (1 << 30)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    libraries = ", ".join(f"{name} {version(name)}" for name in ("tidemark", "pyspark", "pyiceberg", "pyarrow"))
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, {libraries}. Load of the machine at the end: {load}."
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
