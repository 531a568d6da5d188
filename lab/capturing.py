"""What a round brings: the records of each setting, and the rows of the database, kept in a folder."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from databases import Database, running
from matrix import Round
from producers import Record, Setting, Tool
from recording import of_tables
from truths import truths
from workloads import Workload, workload

from support.comparing import Truth, key_of


@dataclass(frozen=True)
class Captured:
    """What a round brought."""

    records: Mapping[str, list[Record]]
    """Of each setting, in order."""
    truths: Mapping[str, Truth]
    """The rows that the database had at the end."""
    loaded: Mapping[str, Truth]
    """The rows that it had when the tool started."""

    def of(self, tables: Sequence[str]) -> Captured:
        """Return what concerns these tables."""
        return Captured(
            {name: list(of_tables(records, tables)) for name, records in self.records.items()},
            *({name: truth for name, truth in each.items() if name in tables} for each in (self.truths, self.loaded)),
        )

    def changed(self, truth: Truth, published: Sequence[Mapping[str, Any]]) -> Truth:
        """Return a table without rows that neither changed nor were published: a tool that loads nothing sends none."""
        if truth.name not in self.loaded or not truth.key:
            return truth
        before = self.loaded[truth.name]
        published_keys = {key_of(truth, row) for row in published}
        return dataclasses.replace(
            truth, rows=[row for row in truth.rows if row not in before.rows or key_of(truth, row) in published_keys]
        )

    def write(self, folder: Path) -> None:
        """Write it, to be read by ``read``."""
        folder.mkdir()
        for name, records in self.records.items():
            (folder / f"{name}.jsonl").write_text("".join(f"{each.line()}\n" for each in records), encoding="utf-8")
        for name, tables in (("truths", self.truths), ("loaded", self.loaded)):
            by_table = {table: dataclasses.asdict(truth) for table, truth in tables.items()}
            (folder / f"{name}.json").write_text(json.dumps(by_table, default=_text), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path, settings: Sequence[Setting]) -> Captured:
        """Return what an earlier call of the lab wrote there, of these settings."""
        texts = {each.name: (folder / f"{each.name}.jsonl").read_text(encoding="utf-8") for each in settings}
        tables = (json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("truths", "loaded"))
        return cls(
            {name: [Record(**json.loads(line)) for line in text.split("\n") if line] for name, text in texts.items()},
            *({table: Truth(**fields) for table, fields in each.items()} for each in tables),
        )


def capture(each: Round, settings: Sequence[Setting], folder: Path) -> Captured:
    """Do the workload of a round while its tool runs in these settings."""
    work = workload(each.database)
    with running(each.database, folder, each.server) as database:
        tool = each.tool(database, settings, folder / "tool", work.of_values)
        try:
            loaded = _work(each, work, database, tool)
        finally:
            tool.stop()
        return Captured({one.name: tool.records(one.name) for one in settings}, truths(database), loaded)


def _work(each: Round, work: Workload, database: Database, tool: Tool) -> dict[str, Truth]:
    """Do the workload; the rows before the changes."""
    if not tool.reads_rows:
        tool.start()
    database.execute(*work.tables, *work.loaded)
    loaded = truths(database)
    if tool.reads_rows:
        tool.start()
    tool.have_come_to("begin")
    if each.kill:
        tool.store_places()
    database.execute(*work.changes)
    if each.kill:
        tool.have_come_to("half")
        tool.kill()
        if each.gap:
            database.execute(*work.later)
            database.forget_log()
        if each.recovers:
            tool.recover()
        tool.start()
        if each.recovers:  # it reads the tables as they are, and statements meanwhile would be of the log behind
            tool.have_come_to("recovered")
    if not each.gap:
        database.execute(*work.later)
    if each.kill and not each.recovers:  # behind statements, what it would recover is not what the rows are like
        tool.have_come_to("behind")
        tool.kill()
        tool.start()
    tool.have_come_to("end")
    tool.settle()
    return loaded


def _text(value: Any) -> str:
    return value.decode("utf-8", errors="backslashreplace") if isinstance(value, bytes) else str(value)
