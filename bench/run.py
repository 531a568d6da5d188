"""Measures batches of changes against the floor: the least that Spark does with the same messages.

    make bench, or: .venv/bin/python bench/run.py --changes 500000 --rows 4000000 --batches 3

See ``README.md`` beside this file for what is measured, and ``results.md`` for figures.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import floor
import peers
import structlog
from costs import Cost, Costs, of_call, of_process
from generator import COLUMNS, DATABASE, FILES, KEY, Generator, Written
from reporting import Read, median, ratio, reading, report, table

from tidemark.lake.lake import Lake
from tidemark.pipeline import run_stage
from tidemark.queries import sql
from tidemark.sources.model import Source
from tidemark.spark.session import open_session
from tidemark.stages import STAGES

PROMISED = 3.0
"""Most that land, normalize and compact may cost together in a warm process, in floors."""

MEASURED = ("land", "normalize", "compact")
NAME = "bench"
PARTITIONED, HISTORY = "bench_partitioned", "bench_history"
"""The sources with `--layout` and `--history`: they take the same dumps into tables of their own."""
RUN, STAGE, WARM = "run", "stage", "warm"
_MODES = {
    RUN: "each batch by `tidemark run` in a new process",
    STAGE: "each stage of each batch in a new process",
    WARM: "all batches in one warm process",
}
_TIDEMARK = str(Path(sys.executable).with_name("tidemark"))


def main() -> int:
    """Run the benchmark; 0 when the promise holds."""
    arguments = _arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    home = Path(tempfile.mkdtemp(prefix="tidemark-bench-", dir=arguments.folder))
    os.environ.update(TIDEMARK_HOME=str(home / "lake"), TIDEMARK_SOURCES=str(home / "sources"))
    try:
        loads, batches, size = _run(home, arguments)
        reads = _read(home, arguments.peers)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    where = f"{arguments.rows:,} rows in {arguments.tables} table(s)"
    if arguments.layout:
        where += f", and to another one, partitioned by {', '.join(arguments.layout)}"
    where += ", and to another one with a history" if arguments.history else ""
    measured = (
        f"{arguments.changes:,} changes of {size} bytes in {FILES} files a batch, to {where}, "
        f"{_MODES[arguments.mode]}; medians of {len(batches)} batches, each published before the next."
    )
    summed = {RUN: (RUN,), STAGE: STAGES, WARM: MEASURED}[arguments.mode]
    print(f"\n{report(measured, batches, summed)}")
    if loads:
        where = "the first work of a process" if arguments.mode == WARM else "in new processes"
        print(f"\nThe initial load before, {where}:\n\n{table(loads)}")
    if reads:
        print(f"\nReading every column after the last batch, in a new process:\n\n{reading(reads)}")
    if arguments.mode != WARM:
        return 0
    print(f"\nPromised: {PROMISED} floors or less.")
    return int(ratio(median(batches), MEASURED) > PROMISED)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    shown = "; ".join(f"{name}: {what}" for name, what in _MODES.items())
    parser.add_argument("--mode", choices=_MODES, default=RUN, help=f"{shown} (default: %(default)s)")
    parser.add_argument("--changes", type=int, default=500_000, help="changes of a batch (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of the table before (default: %(default)s)")
    parser.add_argument("--tables", type=int, default=1, help="tables they are spread over (default: %(default)s)")
    parser.add_argument("--batches", type=int, default=5, help="batches measured (default: %(default)s)")
    parser.add_argument(
        "--layout",
        action="append",
        default=[],
        metavar="FIELD",
        help=f"also measure a partitioned table; a partition field, such as 'bucket(16, {KEY})'",
    )
    parser.add_argument(
        "--peers",
        nargs="*",
        choices=peers.NAMES,
        default=[],
        help="systems that merge the same batches, in processes as Tidemark's; their rows are compared at the end",
    )
    parser.add_argument("--history", action="store_true", help="the same batches also into a table with a history")
    parser.add_argument("--folder", help="where the lake and the dumps lie meanwhile (default: the system's temp)")
    arguments = parser.parse_args()
    if arguments.peers and (arguments.mode == STAGE or arguments.tables != 1):
        parser.error(f"--peers needs --mode {RUN} or {WARM}, and one table")
    return arguments


def _run(home: Path, arguments: argparse.Namespace) -> tuple[Costs, list[Costs], int]:
    """Load the table, then measure batch by batch.

    Returns:
        The costs of the load, the costs of each batch, and the bytes of a message.
    """
    sources = [_source(NAME, home / "landing")]
    if arguments.layout:
        sources.append(_source(PARTITIONED, home / "landing", layout={"partition": arguments.layout}))
    if arguments.history:
        sources.append(_source(HISTORY, home / "landing", history=True))
    (home / "sources").mkdir()
    for source in sources:
        text = json.dumps(source)  # JSON is YAML
        (home / "sources" / f"{source['source']}.yaml").write_text(text, encoding="utf-8")
    generator = Generator(arguments.rows, tables=arguments.tables)
    loaded = generator.initial_load(home / "landing" / "0")
    _say(f"initial load: {loaded.rows} rows in {loaded.size >> 20} MiB of JSON")
    loads, work = _prepared(arguments.mode, sources, loaded, home / "floor")
    served = []
    cost_of: dict[str, Callable[..., Cost]] = {}
    for peer in arguments.peers:
        _peer(home, peer, peers.FETCH)  # by Spark's resolver, so in a process of its own
        cost_of[peer] = partial(_peer, home, peer)
        if arguments.mode == WARM:
            served.append(peers.Served(peer, home / "peers" / peer))
            cost_of[peer] = served[-1].cost_of
        loads[peer] = cost_of[peer](peers.LOAD, *loaded.files)
    _say(f"initial load: {', '.join(f'{name} {cost.cpu:.1f}' for name, cost in loads.items())} s CPU")
    _verify(sources, generator.tables, loaded)
    _drop(loaded)
    batches = []
    for number in range(1, arguments.batches + 1):
        written = generator.changes(home / "landing" / str(number), arguments.changes)
        batches.append(work(written))
        batches[-1] |= {peer: cost(peers.MERGE, *written.files) for peer, cost in cost_of.items()}
        _verify(sources, generator.tables, written)
        _drop(written)
        _say(f"batch {number}: " + ", ".join(f"{name} {cost.cpu:.1f}" for name, cost in batches[-1].items()))
    for process in served:
        process.end()
    return loads, batches, written.size // written.messages


def _prepared(
    mode: str, settings: list[dict[str, Any]], loaded: Written, target: Path
) -> tuple[Costs, Callable[[Written], Costs]]:
    """Publish the initial load; return its costs in new processes, and what measures a batch."""
    if mode != WARM:
        names = [each["source"] for each in settings]
        loads = {_step(RUN, name): _command(RUN, name) for name in names}
        return loads, partial(
            _in_new_processes, names=names, commands=("run",) if mode == RUN else STAGES, target=target
        )
    sources = [Source.model_validate(each) for each in settings]
    session = open_session()
    # The first runs of everything compile it: they are not measured.
    floor.write(session, loaded.files[:3], target)
    floor.verify(session, target)
    for stage, cost in _stages(sources).items():
        _say(f"  {stage}: {cost.cpu:.1f} s CPU, {cost.wall:.1f} s")
    return {}, partial(_warm, sources=sources, target=target)


def _source(name: str, landing: Path, **options: object) -> dict[str, Any]:
    table = {"key": [KEY], "columns": COLUMNS, **options}
    return {
        "source": name,
        "format": "debezium_json",
        "landing": str(landing / "*" / "*.jsonl"),
        "tables": {f"{DATABASE}.*": table},
    }


def _warm(written: Written, *, sources: list[Source], target: Path) -> Costs:
    least = of_call(partial(floor.write, open_session(), written.files, target))
    return {"floor": least, **_stages(sources)}


def _stages(sources: list[Source]) -> Costs:
    return {
        _step(stage, source.source): of_call(partial(_stage, stage, source)) for source in sources for stage in STAGES
    }


def _step(name: str, source: str) -> str:
    return name if source == NAME else f"{name}, {source.removeprefix(f'{NAME}_')}"


def _stage(stage: str, source: Source) -> None:
    done = run_stage(stage, source, None, None)
    if done.has_problems:
        sys.exit(f"{stage} held something back: {'; '.join(done.problems)}")


def _in_new_processes(written: Written, *, names: list[str], commands: tuple[str, ...], target: Path) -> Costs:
    files = [str(file) for file in written.files]
    least = of_process([sys.executable, floor.__file__, str(target), *files], {})
    costs = {_step(command, name): _command(command, name) for name in names for command in commands}
    return {"floor": least, **costs}


def _command(name: str, source: str) -> Cost:
    return of_process([_TIDEMARK, name, source], {})


def _peer(home: Path, name: str, step: str, *more: str | Path) -> Cost:
    folder = home / "peers" / name
    folder.mkdir(parents=True, exist_ok=True)
    return of_process(peers.command(name, folder, step, *map(str, more)), {})


def _read(home: Path, names: list[str]) -> dict[str, Read]:
    """Let each system's table be read; end the benchmark if two of them differ."""
    found, rows = {}, {}
    for name in (peers.TIDEMARK, *names) if names else ():
        asked = [f"tidemark.{NAME}.orders_0"] if name == peers.TIDEMARK else []
        cost = _peer(home, name, peers.READ, *asked)
        rows[name] = (home / "peers" / name / "read.json").read_text(encoding="utf-8")
        tables = home / ("lake/warehouse/bench" if name == peers.TIDEMARK else f"peers/{name}/tables")
        found[name] = Read(cost=cost, files=[file.stat().st_size for file in tables.rglob("*") if file.is_file()])
    if len(set(rows.values())) > 1:
        sys.exit(f"the systems do not have the same rows: {rows}")
    return found


def _verify(sources: list[dict[str, Any]], tables: list[str], written: Written) -> None:
    """Check that the published tables are right: a figure counts only then."""
    lake = Lake.open()
    for source in (each["source"] for each in sources):
        queries = [f'SELECT count(*) AS n, sum(reference) AS r FROM {source}."{name}"' for name in tables]  # noqa: S608
        sums = [sql.query(lake, query) for query in queries]
        rows, references = (sum(int(found[name][0].as_py()) for found in sums) for name in ("n", "r"))
        if (rows, references) != (written.rows, written.references):
            wanted = written.rows, written.references
            sys.exit(f"wrong result of {source}: rows and sum {(rows, references)}, expected {wanted}")


def _drop(written: Written) -> None:
    """Make room: what was landed is in the lake."""
    shutil.rmtree(written.files[0].parent)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
