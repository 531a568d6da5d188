"""Compares what Tidemark publishes with the rows of real databases, captured by real tools.

    make lab, or: .venv/bin/python lab/run.py [--round NAME] [--setting NAME] [--delivery NAME] [--keep FOLDER]

See ``docs/lab.md`` for what is compared and what was found.
"""

from __future__ import annotations

import argparse
import functools
import logging
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from databases import running
from deliveries import DELIVERIES
from matrix import ROUNDS, Round
from producers import Record, Setting
from reasons import reasons
from recording import record
from truths import truths
from workloads import workload

import tidemark
from support.comparing import Difference, Truth, compare
from tidemark.lake import names
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import OBJECT_PROPERTY

SEED = 29


@dataclass(frozen=True)
class Captured:
    """What a round brought: the records of each setting, and the rows that the database had at the end."""

    records: Mapping[str, list[Record]]
    truths: Mapping[str, Truth]


@dataclass
class Outcome:
    """What came of one workload in one setting and delivery."""

    round: str
    setting: str
    delivery: str
    table: str
    found: str
    """How the rows differ; empty if they are equal."""
    why: str | None = None
    details: list[str] = field(default_factory=list)


def main() -> int:
    """Run the rounds that are asked for; 0 if every table is equal, or differs for a reason that is known."""
    arguments = _arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    folder = Path(tempfile.mkdtemp(prefix="tidemark-lab-", dir=arguments.keep))
    folder.chmod(0o755)  # PostgreSQL runs as another user
    os.environ.update(TIDEMARK_HOME=str(folder / "lake"), TIDEMARK_REPORT="off")
    outcomes: list[Outcome] = []
    try:
        for each in ROUNDS:
            if arguments.round and each.name not in arguments.round:
                continue
            settings = [one for one in each.connectors if not arguments.setting or one.name in arguments.setting]
            captured = _capture(each, settings, folder / each.name)
            for setting in settings:
                if arguments.record:
                    record(
                        Path(arguments.record), _of_file(each, setting), captured.records[setting.name], captured.truths
                    )
                    continue
                for delivery in arguments.delivery or (["in order"] if setting.of_values else DELIVERIES):
                    for outcome in _outcomes(each, setting, delivery, captured, folder):
                        _print(outcome)
                        outcomes.append(outcome)
    finally:
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return int(any(outcome.found and not outcome.why for outcome in outcomes))


def _capture(each: Round, settings: Sequence[Setting], folder: Path) -> Captured:
    work = workload(each.database)
    with running(each.database, folder, each.server) as database:
        tool = each.tool(database, settings, folder / "tool", work.of_values)
        try:
            if not tool.reads_rows:
                tool.start()
            database.execute(*work.tables, *work.loaded)
            if tool.reads_rows:
                tool.start()
            tool.have_come_to("begin")
            if each.kill:
                tool.store_places()
            database.execute(*work.changes)
            if each.kill:
                tool.have_come_to("half")
                tool.kill()
                tool.start()
            database.execute(*work.later)
            if each.kill:
                tool.have_come_to("behind")
                tool.kill()
                tool.start()
            tool.have_come_to("end")
            tool.settle()
        finally:
            tool.stop()
        return Captured({one.name: tool.records(one.name) for one in settings}, truths(database))


def _outcomes(each: Round, setting: Setting, delivery: str, captured: Captured, folder: Path) -> Iterable[Outcome]:
    name = re.sub(r"\W", "_", f"{each.name}_{setting.name}_{delivery}".lower())
    landing = folder / name
    landing.mkdir()
    source = tidemark.Source.model_validate({
        "source": name, "landing": str(landing / "*.jsonl"), "max_deletes": 1.0, "max_quarantined": 1.0,
        **_of_file(each, setting),
    })  # fmt: skip
    problems: list[str] = []
    begin = time.monotonic()
    for number, dump in enumerate(DELIVERIES[delivery](captured.records[setting.name], random.Random(SEED))):  # noqa: S311
        (landing / f"{number}.jsonl").write_text("".join(f"{record.line()}\n" for record in dump), encoding="utf-8")
        problems = [text for report in tidemark.run(source) for text in (*report.problems, *report.remarks)]
    sys.stderr.write(f"{name}: {time.monotonic() - begin:.0f} s\n")
    lake = Lake.existing()
    published, set_aside = _published(lake, name), _set_aside(lake, name)
    for truth in captured.truths.values():
        if setting.of_values and truth.name not in workload(each.database).of_values:
            continue
        rows = published.get(truth.name)
        told = [text for text in (*problems, *set_aside) if re.search(rf"\b{re.escape(truth.name)}\b", text)]
        found = compare(truth, rows)
        known = list(reasons(each.name, setting.name, truth.name))
        left = functools.reduce(Difference.without, (one.columns for one in known), found)
        why = None if left else "; ".join(dict.fromkeys(one.why for one in known))
        yield Outcome(each.name, setting.name, delivery, truth.name, str(found), why, told[:6])


def _of_file(each: Round, setting: Setting) -> dict[str, Any]:
    """What the source file says because of the tool and its setting."""
    return {"format": each.tool.format, "options": dict(setting.options), "tables": _said(each, setting)}


def _said(each: Round, setting: Setting) -> dict[str, Any]:
    """What the source file says of tables: because of the database, and because of the setting."""
    work, where = workload(each.database), "lab.public." if each.database == "postgresql" else "lab."
    said: dict[str, Any] = {name: dict(table) for name, table in work.said.items()}
    for kind, encoding in setting.encodings.items():
        for name, columns in work.binary[kind].items():
            table = said.setdefault(name, {})
            table["columns"] = {**table.get("columns", {}), **dict.fromkeys(columns, "binary")}
            table["encodings"] = {**table.get("encodings", {}), **dict.fromkeys(columns, encoding)}
    return {where + name: table for name, table in said.items() if not setting.of_values or name in work.of_values}


def _published(lake: Lake, source: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of all published tables of a source, by the name of the table in the database."""
    found = {}
    for name in lake.tables(source):
        table = lake.load(Identifier(source, name))
        if (object_ := table.properties.get(OBJECT_PROPERTY)) and table.current_snapshot():
            found[object_.rsplit(".", 1)[-1]] = table.scan().to_arrow().to_pylist()
    return found


def _set_aside(lake: Lake, source: str) -> list[str]:
    table = lake.find(names.quarantine(source))
    if table is None:
        return []
    rows = table.scan(selected_fields=("reason", "detail", "object")).to_arrow().to_pylist()
    return [f"{row['object']} {row['reason']}: {row['detail']}" for row in rows]


def _print(outcome: Outcome) -> None:
    state = "equal" if not outcome.found else "known" if outcome.why else "DIFFERS"
    sys.stdout.write(f"{outcome.round}\t{outcome.setting}\t{outcome.delivery}\t{outcome.table}\t{state}\n")
    if outcome.found:
        sys.stdout.write(f"    {outcome.why or outcome.found}\n")
        sys.stdout.writelines(f"    told: {line[:400]}\n" for line in outcome.details if not outcome.why)
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--round", action="append", choices=[each.name for each in ROUNDS])
    parser.add_argument("--setting", action="append")
    parser.add_argument("--delivery", action="append", choices=DELIVERIES)
    parser.add_argument("--record", help="a folder: write a few tables of one round and setting there, publish nothing")
    parser.add_argument("--keep", help="a folder in which everything stays, to be looked at")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
