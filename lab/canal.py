"""Canal's embedded server, from the beginning of the log."""

from __future__ import annotations

from databases import USER
from fetching import java
from producers import Setting, Tool

from tidemark.services.processes import LOOPBACK


class Canal(Tool):
    """One server of one database. It has one setting."""

    format = "canal_json"
    reads_rows = False

    def _command(self) -> list[str]:
        return java("canal", "CaptureByCanal")

    def _properties(self, number: int, setting: Setting) -> dict[str, str]:  # noqa: ARG002 - there is one
        return {"host": LOOPBACK, "port": str(self._database.port), "user": USER, "password": self._database.password,
                "log": "mysql-bin.000001"} | dict(setting.settings)  # fmt: skip
