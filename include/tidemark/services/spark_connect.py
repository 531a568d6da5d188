"""A warm Spark on this machine that many tasks share: Spark's own Connect server, on the loopback address only.

Starting Spark takes at least eight seconds of processor time. A stage that joins this server saves them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tidemark import INCLUDE
from tidemark.services.private_files import write_private
from tidemark.services.processes import LOOPBACK, Server, answers, free_port, wait_until

CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"

_START_SECONDS = 120.0


class SparkConnectServer:
    """The server as a child process; a context manager that starts and stops it.

    ``settings`` have Spark's own names and values. They go to a file that only this user can read, and never to the
    command line, because a catalog's password may be among them.
    """

    def __init__(
        self,
        *,
        folder: Path,
        settings: Mapping[str, str],
        driver_memory: str = "4g",
        port: int | None = None,
    ) -> None:
        """Choose a port and start nothing yet. ``folder`` gets the log and the settings."""
        self.port = port or free_port()
        self.folder = folder
        self._memory = driver_memory
        self._settings = {
            **settings,
            "spark.master": "local[*]",
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.ui.enabled": "false",
            "spark.connect.grpc.binding.address": LOOPBACK,
            "spark.connect.grpc.binding.port": str(self.port),
        }
        self._server: Server | None = None

    @property
    def url(self) -> str:
        """Address of the server, for ``SPARK_REMOTE``."""
        return f"sc://{LOOPBACK}:{self.port}"

    @property
    def connection(self) -> str:
        """The server as an Airflow connection, for ``AIRFLOW_CONN_SPARK_DEFAULT``."""
        return f'{{"conn_type": "spark_connect", "host": "sc://{LOOPBACK}", "port": {self.port}}}'

    def __enter__(self) -> Self:
        self.start()
        self.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server and return at once. Call ``wait`` before using it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        properties = self.folder / "spark.conf"
        write_private(properties, "".join(f"{name} {_escaped(value)}\n" for name, value in self._settings.items()))
        command = [
            str(Path(sys.executable).with_name("spark-submit")),
            *("--properties-file", str(properties)),
            *("--driver-memory", self._memory),
            *("--class", CLASS),
            "spark-internal",
        ]
        self._server = Server("Spark Connect", command, environment=_environment(), log=self.folder / "spark.log")

    def wait(self) -> None:
        """Wait until the server answers.

        Raises:
            RetriableLakeError: it ended or does not answer in time; with the end of its log.
        """
        servers = [self._server] if self._server else []
        wait_until(lambda: answers(self.port), servers=servers, seconds=_START_SECONDS, what="Spark Connect")

    def stop(self) -> None:
        """Stop the server, its JVM and its Python workers; do nothing if it does not run."""
        if self._server:
            self._server.stop()
            self._server = None


def _escaped(value: str) -> str:
    """Return a value as a Java properties file needs it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _environment() -> dict[str, str]:
    path = [str(INCLUDE), *filter(None, [os.environ.get("PYTHONPATH")])]
    python = {"PYTHONPATH": os.pathsep.join(path), "PYSPARK_PYTHON": sys.executable}
    # With SPARK_REMOTE, the server would be a client of another server.
    return {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"} | python
