"""The report of a benchmark, as Markdown for ``results.md``."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

import psutil
from costs import Cost, Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What it takes to read a table once, and what lies on the disk for it."""

    cost: Cost
    files: list[int]
    """Bytes of each file, of all snapshots."""


def reading(reads: Mapping[str, Read]) -> str:
    """Return a table of reads."""
    rows = (
        f"| {name} | {read.cost.cpu:.1f} | {read.cost.wall:.1f} | {len(read.files)} | {sum(read.files) >> 20} |"
        for name, read in reads.items()
    )
    return "\n".join(["| table of | CPU s | wall s | files | MiB |", "| --- | ---: | ---: | ---: | ---: |", *rows])


def median(batches: Sequence[Costs]) -> Costs:
    """Return the median of each step over batches, and the most memory of all."""
    return {
        name: Cost(
            cpu=statistics.median(batch[name].cpu for batch in batches),
            wall=statistics.median(batch[name].wall for batch in batches),
            memory=max(batch[name].memory for batch in batches),
        )
        for name in batches[0]
    }


def together(costs: Costs, steps: Sequence[str]) -> Cost:
    """Return the sum of some steps."""
    return sum((costs[step] for step in steps), Cost(cpu=0.0, wall=0.0))


def ratio(costs: Costs, steps: Sequence[str]) -> float:
    """Return the processor seconds of some steps, in floors."""
    return together(costs, steps).cpu / costs["floor"].cpu


def report(measured: str, batches: Sequence[Costs], summed: Sequence[str]) -> str:
    """Return the report: what was measured, a table of medians, the batches one by one, the machine.

    ``summed`` are the steps whose sum stands in the table, where they are more than one.
    """
    medians = median(batches)
    floor = medians["floor"].cpu
    rows = list(medians.items())
    name = " + ".join(summed)
    if len(summed) > 1:
        rows.insert(1 + len(summed), (f"**{name}**", together(medians, summed)))
    each = ", ".join(f"{together(batch, summed).cpu:.1f} ({ratio(batch, summed):.2f})" for batch in batches)
    return "\n".join(
        [
            measured,
            "",
            table(dict(rows), floor),
            "",
            f"By batch, {name} in CPU s (in floors): {each}.",
            "",
            _machine(),
        ]
    )


def table(costs: Costs, floor: float | None = None) -> str:
    """Return a table of costs; also in floors, where there is one."""
    lines = ["| step | CPU s |" + (" x floor |" if floor else "") + " wall s | MiB |"]
    lines.append("| --- | ---: |" + (" ---: |" if floor else "") + " ---: | ---: |")
    for step, cost in costs.items():
        times = f" {cost.cpu / floor:.2f} |" if floor else ""
        lines.append(f"| {step} | {cost.cpu:.1f} |{times} {cost.wall:.1f} | {round(cost.memory) or ''} |")
    return "\n".join(lines)


def _machine() -> str:
    memory = psutil.virtual_memory().total / (1 << 30)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    libraries = ", ".join(f"{name} {version(name)}" for name in ("tidemark", "pyspark", "pyiceberg", "pyarrow"))
    return (
        f"{datetime.now(UTC):%Y-%m-%d}. {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}, {libraries}. "
        f"Load of the machine at the end: {load}."
    )
