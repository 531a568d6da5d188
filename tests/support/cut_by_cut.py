"""A source that is run cut by cut, with what was to be seen of its tables after each: many rules share its runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from support.debezium_log import Message
from support.histories import deliver
from tidemark.lake.lake import Lake
from tidemark.pipeline import run_stage
from tidemark.queries.status import status_of
from tidemark.sources.model import Source
from tidemark.stages import STAGES, StageReport
from tidemark.tables.schemas import COMMITTED_AT, POSITION

Shown = tuple[str, list[tuple[Any, ...]]]
"""Names of columns in their order, and rows."""


def of_log(name: str, landing: Path, tables: dict[str, Any] | None = None, **fields: Any) -> Source:
    """A source of ``debezium_log``; its tables have the key ``id`` unless ``tables`` are given."""
    document = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), **fields}
    return Source.model_validate({**document, "tables": tables or {"shop.*": {"key": ["id"]}}})


def shown(lake: Lake, source: str, table: str) -> Shown:
    """Columns and rows of a published table, without those that Tidemark adds to each."""
    found = lake.load((source, table)).scan().to_arrow().drop_columns([POSITION, COMMITTED_AT])
    return " ".join(found.schema.names), sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


class CutByCut:
    """What was to be seen of a source after each step."""

    def __init__(self, lake: Lake, name: str, landing: Path) -> None:
        self.lake = lake
        self.name = name
        self.landing = landing
        self.tables: dict[str, dict[str, Shown]] = {}
        self.reports: dict[str, dict[str, StageReport]] = {}
        self.status: dict[str, dict[str, Any]] = {}
        self.quarantined: dict[str, list[str | None]] = {}
        """By step: the table of each event that is set aside."""

    def source(self, entries: dict[str, dict[str, Any]], **fields: Any) -> Source:
        """The source file, with an entry for each of these tables."""
        tables = {f"shop.{name}": {"key": ["id"], **entry} for name, entry in entries.items()}
        return of_log(self.name, self.landing, {**tables, "shop.*": {"key": ["id"]}}, **fields)

    def deliver(self, step: str, messages: Iterable[Message]) -> None:
        """Put a dump into the landing folder."""
        deliver(self.landing, step, messages)

    def run(self, step: str, source: Source, stages: Sequence[str] = STAGES) -> None:
        """Run stages, and see what is there then."""
        self.reports[step] = {stage: run_stage(stage, source, None, None) for stage in stages}
        names = [name for name in self.lake.tables(self.name) if not name.endswith("__changes")]
        self.tables[step] = {name: shown(self.lake, self.name, name) for name in names}
        self.status[step] = status_of(self.lake, self.name)
        aside = self.lake.find(("quarantine", self.name))
        self.quarantined[step] = [] if aside is None else aside.scan().to_arrow().column("object").to_pylist()

    def problems(self, step: str) -> dict[str, str]:
        """What compact says is wrong, by table."""
        return {text.partition(":")[0]: text for text in self.reports[step]["compact"].problems}
