"""Debezium's engine, embedded in one process for all settings of a round."""

from __future__ import annotations

from typing import Final

from databases import USER
from fetching import java
from producers import MARKS, PLACES_SECONDS, Setting, Tool

from tidemark.services.processes import LOOPBACK

_CONNECTORS: Final = {
    "postgresql": "io.debezium.connector.postgresql.PostgresConnector",
    "mysql": "io.debezium.connector.mysql.MySqlConnector",
    "mariadb": "io.debezium.connector.mariadb.MariaDbConnector",
}


class Debezium(Tool):
    """Engines of one database, one for each setting."""

    format = "debezium_json"
    reads_rows = True

    def _command(self) -> list[str]:
        return java("debezium", "CaptureByDebezium")

    def recover(self) -> None:
        """Lose the history of statements, and be configured to build it from the tables as they are."""
        for history in self._folder.glob("*.history"):
            history.unlink()
        for file in self._files.values():
            with file.open("a", encoding="utf-8") as properties:
                properties.write("\nsnapshot.mode=recovery")  # of two lines for one setting, the last counts

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
            "offset.flush.interval.ms": str(1000 * PLACES_SECONDS),
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
        if database.kind == "mariadb":
            # Without the second, a load ends at the first YEAR: the driver makes a date of it.
            common |= {"database.ssl.mode": "disable", "driver.yearIsDateType": "false"}
        if setting.of_values:
            common["table.include.list"] = rf"(lab|public)\.({self._of_values})"
        return common | dict(setting.settings)
