"""Capture tools of the lab: Debezium's engine, embedded in one process for all settings of a round."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from databases import USER, Database
from fetching import classes, jars

from tidemark.errors import RetriableLakeError
from tidemark.services.processes import LOOPBACK, Server

MARKS: Final = "lab_marks"
"""A table whose rows tell how far a connector has come."""

PARTITIONS: Final = 3

_CONNECTORS: Final = {
    "postgresql": "io.debezium.connector.postgresql.PostgresConnector",
    "mysql": "io.debezium.connector.mysql.MySqlConnector",
    "mariadb": "io.debezium.connector.mariadb.MariaDbConnector",
}


@dataclass(frozen=True)
class Setting:
    """One setting of a connector, and what a source file says because of it."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    of_values: bool = False
    """Whether it is only about how values are written: then it captures the tables of values."""
    encodings: Mapping[str, str] = field(default_factory=dict)
    """Kinds of columns (``bytes``, ``bits``) whose encoding the messages do not tell -> the one of the source file."""


@dataclass(frozen=True)
class Record:
    """A record as Kafka would hold it."""

    topic: str
    partition: int
    offset: int
    key: str | None
    value: str | None

    def line(self) -> str:
        """The record as a line of a dump."""
        return json.dumps(self.__dict__, ensure_ascii=False)


class Debezium:
    """Engines of one database, one for each setting."""

    def __init__(self, database: Database, settings: Sequence[Setting], folder: Path, of_values: Sequence[str]) -> None:
        """Write their properties; start nothing yet."""
        self._database = database
        self._of_values = "|".join((*of_values, MARKS))
        self._folder = folder
        self._log = folder / "log"
        self._server: Server | None = None
        folder.mkdir()
        self._files = {each.name: folder / f"{each.name}.properties" for each in settings}
        for number, each in enumerate(settings):
            lines = [f"{name}={_escaped(value)}" for name, value in self._properties(number, each).items()]
            self._files[each.name].write_text("\n".join(lines), encoding="utf-8")

    def start(self) -> None:
        """Start all engines where they stopped."""
        files = [str(file) for file in self._files.values()]
        path = f"{classes()}:{jars()}/*"
        command = [
            "java",
            "-Xmx1500m",
            "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-cp",
            path,
            "Capture",
            *files,
        ]
        self._server = Server("debezium", command, environment=os.environ, log=self._log)

    def stop(self) -> None:
        """End all engines, in order."""
        if self._server:
            self._server.stop()
            self._server = None

    def kill(self) -> None:
        """End all engines at once: what they have not stored of their places is sent again after the next start."""
        if self._server:
            self._server.stop(patience=0)
            self._server = None

    def have_come_to(self, mark: str, *, seconds: float = 180.0) -> None:
        """Insert rows until every engine has sent one as a change; so all have ended their initial loads."""
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
            waiting = {name: file for name, file in waiting.items() if not _has_mark(file, mark)}

    def settle(self) -> None:
        """Wait until no engine sends rows any more: an incremental snapshot goes on behind the newest change."""
        sent = -1
        while sent != (sent := sum(MARKS not in line for file in self._files.values() for line in _changes(file))):
            time.sleep(5)

    def records(self, name: str) -> list[Record]:
        """What an engine sent, as Kafka would hold it: by the hash of the key in partitions."""
        offsets: Counter[tuple[str, int]] = Counter()
        return [_record(json.loads(line), offsets) for line in _lines(self._files[name])]

    def _properties(self, number: int, setting: Setting) -> dict[str, str]:
        database, name = self._database, setting.name.replace("-", "_")
        common = {
            "name": name,
            "connector.class": _CONNECTORS[database.kind],
            "topic.prefix": name,
            "database.hostname": LOOPBACK,
            "database.port": str(database.port),
            "database.user": USER,
            "database.password": database.password,
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": str(self._folder / f"{name}.offsets"),
            "offset.flush.interval.ms": "2000",
            "poll.interval.ms": "100",
            "skipped.operations": "none",
            "snapshot.include.collection.list": rf"(lab|public)\.(?!{MARKS}).*",
            "value.converter.schemas.enable": "true",
            "key.converter.schemas.enable": "true",
        }
        if database.kind == "postgresql":
            common |= {"database.dbname": "lab", "plugin.name": "pgoutput", "slot.name": f"lab_{number}",
                       "publication.name": f"lab_{number}", "slot.drop.on.stop": "false"}  # fmt: skip
        else:
            common |= {"database.server.id": str(1000 + number), "database.include.list": "lab",
                       "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
                       "schema.history.internal.file.filename": str(self._folder / f"{name}.history"),
                       "database.ssl.mode": "disabled"}  # fmt: skip
        if setting.of_values:
            common["table.include.list"] = rf"(lab|public)\.({self._of_values})"
        return common | dict(setting.settings)


def _has_mark(file: Path, mark: str) -> bool:
    """Whether a change has this mark: no initial load reads the table of marks."""
    return any(MARKS in line and mark in line for line in _lines(file))


def _changes(file: Path) -> Iterator[str]:
    return (line for line in _lines(file) if "heartbeat" not in line)


def _lines(file: Path) -> Iterator[str]:
    """The whole lines that an engine wrote. One that was killed may have left half a line, and went on behind it."""
    written = Path(f"{file}.jsonl")
    if written.exists():
        for line in written.read_text(encoding="utf-8").split("\n"):
            if line.startswith("{") and line.endswith("}"):
                yield line


def _record(sent: Mapping[str, Any], offsets: Counter[tuple[str, int]]) -> Record:
    key = sent["key"]
    partition = zlib.crc32(key.encode()) % PARTITIONS if key else 0
    place = (sent["topic"], partition)
    offsets[place] += 1
    return Record(sent["topic"], partition, offsets[place] - 1, key, sent["value"])


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")
