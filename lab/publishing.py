"""One setting of a round in one delivery: what of it Tidemark publishes, compared with the rows of the database."""

from __future__ import annotations

import functools
import logging
import os
import random
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from capturing import Captured
from deliveries import DELIVERIES
from matrix import ROUNDS, Round
from producers import Setting
from reasons import Reason, reasons
from source_files import of_file
from sqlalchemy import Engine, event

import tidemark
from support.comparing import compare
from support.lakes import empty_lake, leave_the_disk_to_the_system
from tidemark.lake import names
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import OBJECT_PROPERTY
from tidemark.ledger.contradiction_rows import IN_WORDS
from tidemark.quality.data_docs import Recorder
from tidemark.spark import session

_OPTIONS = "spark.driver.extraJavaOptions"
_HEAP = "-Xms1200m -Xmn700m -XX:ParallelGCThreads=1"


@dataclass
class Outcome:
    """What came of one table in one setting and delivery of a round."""

    round: str
    setting: str
    delivery: str
    table: str
    found: str
    """How the rows differ; empty if they are equal."""
    why: str | None = None
    details: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    """Contradictions that Tidemark reported for the table, where there were none."""

    @property
    def is_wrong(self) -> bool:
        """Whether rows differ for no known reason, or Tidemark reported contradictions that are none."""
        return bool((self.found and not self.why) or self.alarms)

    def lines(self) -> str:
        """Return what is printed of it."""
        state = "equal" if not self.found else "known" if self.why else "DIFFERS"
        details = [] if not self.found or self.why else self.details
        more = [self.why or self.found] if self.found else []
        more += [f"told: {line[:400]}" for line in details] + [f"FALSE ALARM: {line[:400]}" for line in self.alarms]
        head = f"{self.round}\t{self.setting}\t{self.delivery}\t{self.table}\t{state}\n"
        return "".join([head, *(f"    {line}\n" for line in more)])


Published = tuple[list[Outcome], float]
"""What came of the tables of a combination, and the seconds that it took."""


@dataclass(frozen=True)
class Combination:
    """A setting of a round in a delivery, and the tables of it that are published."""

    round: str
    setting: str
    delivery: str
    tables: Sequence[str]
    captured: Path
    """The folder of what the round brought."""
    seed: int
    before_images: str
    is_kept: bool
    """Whether its dumps stay, and the lake has all others beside it."""

    @property
    def name(self) -> str:
        """A name for its source."""
        return re.sub(r"\W", "_", f"{self.round}_{self.setting}_{self.delivery}".lower())


def prepare(folder: Path) -> None:
    """Give this process a lake of its own below a folder, and spare it what the lab does not need.

    That is: reports and pages of checks, waiting for the disk, and a heap that grows with each run.
    """
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    os.environ.update(TIDEMARK_HOME=str(folder / f"lake-{os.getpid()}"), TIDEMARK_REPORT="off")
    options = f"{session.LOCAL_SETTINGS[_OPTIONS]} {_HEAP}"
    session.LOCAL_SETTINGS = {**session.LOCAL_SETTINGS, _OPTIONS: options, "spark.buffer.pageSize": "1m"}
    Recorder.write_pages = lambda _recorder: None
    event.listen(Engine, "connect", leave_the_disk_to_the_system)


def publish(each: Combination) -> Published:
    """Publish a combination in this process, and compare."""
    begin = time.monotonic()
    landing = Path(os.environ["TIDEMARK_HOME"]).parent / each.name
    landing.mkdir()
    try:
        return list(_outcomes(each, landing)), time.monotonic() - begin
    finally:
        if not each.is_kept:
            shutil.rmtree(landing)
            # All sources of a lake share its ledger: each run would take longer than the one before.
            empty_lake(Path(os.environ["TIDEMARK_HOME"]))


def _outcomes(each: Combination, landing: Path) -> Iterator[Outcome]:
    round_, setting = _named(each)
    captured = Captured.read(each.captured, [setting]).of(each.tables)
    source = tidemark.Source.model_validate({
        "source": each.name, "landing": str(landing / "*.jsonl"), "max_deletes": 1.0, "max_quarantined": 1.0,
        "invariants": {
            "before_images": each.before_images, "loaded_again": "warn" if setting.loads_add else "block",
        }, **of_file(round_, setting),
    })  # fmt: skip
    problems: list[str] = []
    chance = random.Random(each.seed)  # noqa: S311 - where a stream is cut is no secret
    for number, dump in enumerate(DELIVERIES[each.delivery](captured.records[setting.name], chance)):
        (landing / f"{number}.jsonl").write_text("".join(f"{record.line()}\n" for record in dump), encoding="utf-8")
        problems += [text for report in tidemark.run(source) for text in (*report.problems, *report.remarks)]
    lake = Lake.existing()
    published, set_aside = _published(lake, each.name), _set_aside(lake, each.name)
    for truth in (captured.loaded if setting.brings == "loaded" else captured.truths).values():
        rows = published.get(truth.name)
        expected = captured.changed(truth, rows or ()) if setting.brings == "changes" else truth
        mentions = [text for text in (*set_aside, *problems) if re.search(rf"\b{re.escape(truth.name)}\b", text)]
        found = compare(expected, rows)
        known = list(reasons(each.round, each.setting, truth.name))
        left = functools.reduce(lambda rest, one: rest.without(one.columns, one.rows), known, found)
        why = None if left else "; ".join(dict.fromkeys(one.why for one in known))
        alarms = [] if each.delivery == "shuffled" or setting.brings == "changes" else _contradictions(mentions, known)
        yield Outcome(each.round, each.setting, each.delivery, truth.name, str(found), why, mentions[-6:], alarms)


def _named(each: Combination) -> tuple[Round, Setting]:
    round_ = next(one for one in ROUNDS if one.name == each.round)
    return round_, next(one for one in round_.connectors if one.name == each.setting)


def _contradictions(texts: Iterable[str], known: Iterable[Reason]) -> list[str]:
    """Return the contradictions that Tidemark reported and no reason explains: in order, a sound stream has none."""
    explained = {IN_WORDS[kind] for one in known for kind in one.contradictions}
    kinds = [words for words in IN_WORDS.values() if words not in explained]
    return [text for text in dict.fromkeys(texts) if any(words in text for words in kinds) and "The first is" in text]


def _published(lake: Lake, source: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all published tables of a source, by the name of the table in the database."""
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
