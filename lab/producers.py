"""What capture tools of the lab have in common: settings, records, and how far they have come."""

from __future__ import annotations

import json
import os
import time
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from databases import Database

from tidemark.errors import RetriableLakeError
from tidemark.services.processes import Server

MARKS: Final = "lab_marks"
"""A table whose rows show how far a tool has come."""

OWN: Final = (MARKS, "lab_signals")
"""The tables of the lab itself, which are compared with nothing."""

PARTITIONS: Final = 3

PLACES_SECONDS: Final = 30
"""How often a tool stores its places in the log. What it sent since then, it sends again after it was killed."""

_END_OF_LOAD: Final = r"\"snapshot\":\"last\""
"""What the last row of Debezium's initial load says of itself, in the text of a line."""


@dataclass(frozen=True)
class Setting:
    """One setting of a capture tool, and what a source file says because of it."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    of_values: bool = False
    """Whether it is only about how values are written: then it captures the tables of values."""
    encodings: Mapping[str, str] = field(default_factory=dict)
    """Kinds of columns (``bytes``, ``bits``) whose encoding messages do not declare -> the one in the source file."""
    loads_add: bool = False
    """Whether loads without a place in the log only add rows: a person says so in the source file, or approves."""
    brings: Literal["all", "changes", "loaded"] = "all"
    """Whether all rows come, only those that change while the tool runs, or only those that are there at its start."""


@dataclass(frozen=True)
class Record:
    """A record as Kafka would hold it."""

    topic: str
    partition: int
    offset: int
    key: str | None
    value: str | None

    def line(self) -> str:
        """Return the record as a line of a dump."""
        return json.dumps(self.__dict__, ensure_ascii=False)


class Tool(ABC):
    """A capture tool beside one database, in a process of its own: a properties file for each setting."""

    format: ClassVar[str]
    """The format in which Tidemark reads what it sends."""

    reads_rows: ClassVar[bool]
    """Whether it reads what tables hold when it starts. One that does not is started before they are made."""

    def __init__(self, database: Database, settings: Sequence[Setting], folder: Path, of_values: Sequence[str]) -> None:
        """Write the properties; start nothing yet."""
        self._database = database
        self._of_values = "|".join((*of_values, MARKS))
        self._folder = folder
        self._log = folder / "log"
        self._server: Server | None = None
        folder.mkdir()
        self._files = {each.name: folder / f"{each.name}.properties" for each in settings}
        self._load_only = {each.name for each in settings if each.brings == "loaded"}
        for number, each in enumerate(settings):
            lines = [f"{name}={_escaped(value)}" for name, value in self._properties(number, each).items()]
            self._files[each.name].write_text("\n".join(lines), encoding="utf-8")

    @abstractmethod
    def _properties(self, number: int, setting: Setting) -> dict[str, str]: ...

    @abstractmethod
    def _command(self) -> list[str]: ...

    def start(self) -> None:
        """Start with all settings, each where it stopped."""
        files = [str(file) for file in self._files.values()]
        self._server = Server(self.format, [*self._command(), *files], environment=os.environ, log=self._log)

    def stop(self) -> None:
        """End in order."""
        if self._server:
            self._server.stop()
            self._server = None

    def kill(self) -> None:
        """End at once: what the tool has not stored of its places is sent again after the next start."""
        if self._server:
            self._server.stop(patience=0)
            self._server = None

    def have_come_to(self, mark: str, *, seconds: float = 180.0) -> None:
        """Insert rows until one has been sent in every setting, as a change; so all initial loads have ended."""
        waiting, end, number = dict(self._files), time.monotonic() + seconds, 0
        while waiting:
            if self._server:
                self._server.check()
            failed = [line for line in self._log.read_text(encoding="utf-8").splitlines() if "ENGINE FAILED" in line]
            if failed or time.monotonic() > end:
                raise RetriableLakeError(f"no mark {mark!r} of {sorted(waiting)}: {failed}, see {self._log}")
            self._database.execute(f"INSERT INTO {MARKS} (mark) VALUES ('{mark} {number}')")
            number += 1
            time.sleep(1)
            waiting = {name: file for name, file in waiting.items() if not self._has_come(name, mark)}

    def _has_come(self, name: str, mark: str) -> bool:
        """Return whether a change has this mark, or of a setting that only loads, whether all is loaded.

        No initial load reads the table of marks.
        """
        if name in self._load_only:
            return any(_END_OF_LOAD in line for line in _lines(self._files[name]))
        return any(MARKS in line and mark in line for line in _lines(self._files[name]))

    def recover(self) -> None:
        """Lose what it knows of the tables, and be configured to read that again at the next start, and no rows."""
        raise NotImplementedError(f"{type(self).__name__} keeps nothing of tables")

    def store_places(self) -> None:
        """Wait until the tool has just stored its places."""
        time.sleep(PLACES_SECONDS)
        self.have_come_to("stored")

    def settle(self) -> None:
        """Wait until no rows are sent any more: an incremental snapshot goes on behind the newest change."""
        sent = -1
        while sent != (sent := sum(MARKS not in line for file in self._files.values() for line in _changes(file))):
            time.sleep(5)

    def records(self, name: str) -> list[Record]:
        """Return what was sent in a setting, as Kafka would hold it: by the hash of the key in partitions."""
        offsets: Counter[tuple[str, int]] = Counter()
        return [_record(json.loads(line), offsets) for line in _lines(self._files[name])]


def _changes(file: Path) -> Iterator[str]:
    return (line for line in _lines(file) if "heartbeat" not in line)


def _lines(file: Path) -> Iterator[str]:
    """Yield the whole lines that a tool wrote. One that was killed may have left half a line, and gone on behind it."""
    written = Path(f"{file}.jsonl")
    if written.exists():
        for line in written.read_text(encoding="utf-8").split("\n"):
            if line.startswith("{") and line.endswith("}"):
                yield line


def _record(sent: Mapping[str, Any], offsets: Counter[tuple[str, int]]) -> Record:
    key = sent.get("key")
    partition = zlib.crc32(key.encode()) % PARTITIONS if key else 0
    place = (sent["topic"], partition)
    offsets[place] += 1
    return Record(sent["topic"], partition, offsets[place] - 1, key, sent["value"])


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")
