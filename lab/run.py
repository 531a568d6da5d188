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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from capturing import Captured, capture
from deliveries import DELIVERIES
from matrix import ROUNDS, Round
from producers import Setting
from reasons import Reason, reasons
from recording import record
from workloads import workload

import tidemark
from support.comparing import compare
from tidemark.lake import names
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import OBJECT_PROPERTY
from tidemark.ledger.contradiction_rows import IN_WORDS


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
    alarms: list[str] = field(default_factory=list)
    """Contradictions that Tidemark told of the table, where there were none."""


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
            captured = _captured(each, settings, folder, arguments)
            if arguments.capture:
                continue
            for setting in settings:
                if arguments.record:
                    record(
                        Path(arguments.record), _of_file(each, setting), captured.records[setting.name], captured.truths
                    )
                    continue
                for delivery in arguments.delivery or (["in order"] if setting.of_values else DELIVERIES):
                    for outcome in _outcomes(each, setting, delivery, captured, folder, arguments):
                        _print(outcome)
                        outcomes.append(outcome)
    finally:
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return int(any((outcome.found and not outcome.why) or outcome.alarms for outcome in outcomes))


def _captured(each: Round, settings: Sequence[Setting], folder: Path, arguments: argparse.Namespace) -> Captured:
    """What a round brings now, or brought an earlier call."""
    if arguments.captured:
        captured = Captured.read(Path(arguments.captured) / each.name / "captured", settings)
    else:
        captured = capture(each, settings, folder / each.name)
        captured.write(folder / each.name / "captured")
    return captured.of(arguments.table) if arguments.table else captured


def _outcomes(
    each: Round, setting: Setting, delivery: str, captured: Captured, folder: Path, arguments: argparse.Namespace
) -> Iterable[Outcome]:
    name = re.sub(r"\W", "_", f"{each.name}_{setting.name}_{delivery}".lower())
    landing = folder / name
    landing.mkdir()
    source = tidemark.Source.model_validate({
        "source": name, "landing": str(landing / "*.jsonl"), "max_deletes": 1.0, "max_quarantined": 1.0,
        "invariants": {
            "before_images": arguments.before_images, "loaded_again": "warn" if setting.loads_add else "block",
        }, **_of_file(each, setting),
    })  # fmt: skip
    problems: list[str] = []
    begin, chance = time.monotonic(), random.Random(arguments.seed)  # noqa: S311
    for number, dump in enumerate(DELIVERIES[delivery](captured.records[setting.name], chance)):
        (landing / f"{number}.jsonl").write_text("".join(f"{record.line()}\n" for record in dump), encoding="utf-8")
        problems += [text for report in tidemark.run(source) for text in (*report.problems, *report.remarks)]
    sys.stderr.write(f"{name}: {time.monotonic() - begin:.0f} s\n")
    lake = Lake.existing()
    published, set_aside = _published(lake, name), _set_aside(lake, name)
    for truth in (captured.loaded if setting.brings == "loaded" else captured.truths).values():
        if setting.of_values and truth.name not in workload(each.database).of_values:
            continue
        rows = published.get(truth.name)
        expected = captured.changed(truth, rows or ()) if setting.brings == "changes" else truth
        told = [text for text in (*set_aside, *problems) if re.search(rf"\b{re.escape(truth.name)}\b", text)]
        found = compare(expected, rows)
        known = list(reasons(each.name, setting.name, truth.name))
        left = functools.reduce(lambda rest, one: rest.without(one.columns, one.rows), known, found)
        why = None if left else "; ".join(dict.fromkeys(one.why for one in known))
        alarms = [] if delivery == "shuffled" or setting.brings == "changes" else _contradictions(told, known)
        yield Outcome(each.name, setting.name, delivery, truth.name, str(found), why, told[-6:], alarms)


def _contradictions(told: Iterable[str], known: Iterable[Reason]) -> list[str]:
    """What Tidemark told of contradictions that no reason explains: in order, a sound stream has none."""
    explained = {IN_WORDS[kind] for one in known for kind in one.contradictions}
    kinds = [words for words in IN_WORDS.values() if words not in explained]
    return [text for text in dict.fromkeys(told) if any(words in text for words in kinds) and "The first is" in text]


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
    sys.stdout.writelines(f"    FALSE ALARM: {line[:400]}\n" for line in outcome.alarms)
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--round", action="append", choices=[each.name for each in ROUNDS])
    parser.add_argument("--setting", action="append")
    parser.add_argument("--table", action="append", help="publish this table alone, or these")
    parser.add_argument("--delivery", action="append", choices=DELIVERIES)
    parser.add_argument("--record", help="a folder: write a few tables of one round and setting there, publish nothing")
    parser.add_argument("--keep", help="a folder in which everything stays, to be looked at")
    parser.add_argument("--capture", action="store_true", help="publish nothing; with --keep, to be published later")
    parser.add_argument("--captured", help="a folder that an earlier call kept: publish what it captured")
    parser.add_argument("--seed", type=int, default=29, help="where streams are cut and how they are mixed")
    parser.add_argument(
        "--before-images",
        choices=["warn", "off"],
        default="warn",
        help="what each source file says of them",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
