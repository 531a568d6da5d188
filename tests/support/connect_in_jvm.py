"""Spark Connect in the JVM of the tests: a server that has nothing to start, and is warm."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidemark.services.processes import LOOPBACK
from tidemark.services.spark_connect import SparkConnectServer


class ConnectInJvm(SparkConnectServer):
    """Spark's Connect service, beside the classic sessions of a JVM; one at a time.

    A server of its own costs a start of Spark, and compiles all that plans once more.
    """

    def __init__(self, spark: SparkSession, address: Mapping[str, str]) -> None:
        """Choose a port. ``spark`` is a session of the JVM at this address, which names its log too."""
        super().__init__(folder=Path(address["log"]).parent, settings={})
        context: Any = spark.sparkContext
        self._context, self._none = context._jsc.sc(), context._jvm.scala.Option.empty()
        self._service = context._jvm.org.apache.spark.sql.connect.service.SparkConnectService

    def start(self) -> None:
        """Let the JVM listen."""
        for name, value in (("address", LOOPBACK), ("port", str(self.port))):
            self._context.conf().set(f"spark.connect.grpc.binding.{name}", value)
        self._service.start(self._context)

    def stop(self) -> None:
        """Let it listen no more."""
        self._service.stop(self._none, self._none)
