"""A Spark cluster on this machine, started by the commands of docker-compose.yaml, and what is submitted to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidemark import INCLUDE
from tidemark.services.processes import LOOPBACK, Server, answers, free_port, wait_until


@contextmanager
def spark_cluster(folder: Path, services: Mapping[str, Any]) -> Iterator[str]:
    """Start a master and one worker; yield the master's address.

    Args:
        folder: gets the logs, and the worker's folder ``work``.
        services: the services of docker-compose.yaml.
    """
    port, pages = free_port(None), [free_port(None), free_port(None)]
    url = f"spark://{LOOPBACK}:{port}"
    changes = {"spark-master": LOOPBACK, "7077": str(port), "8081": str(pages[0]), "spark://spark-master:7077": url}
    environment = {**os.environ, "SPARK_LOCAL_IP": LOOPBACK, "SPARK_WORKER_DIR": str(folder / "work")}
    environment |= {"SPARK_WORKER_CORES": "2", "SPARK_WORKER_MEMORY": "2g", "PYSPARK_PYTHON": sys.executable}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    servers: list[Server] = []
    try:
        for name, page in zip(("spark-master", "spark-worker"), pages, strict=True):
            command = [{**changes, "8081": str(page)}.get(word, word) for word in services[name]["command"]]
            command[0] = str(Path(sys.executable).with_name(command[0]))
            servers.append(Server(name, command, environment=environment, log=folder / f"{name}.log"))
            wait_until(lambda page=page: answers(page), servers=servers, seconds=90, what=name)  # type: ignore[misc]
        yield url
    finally:
        for server in reversed(servers):
            server.stop()


def spark_submit(master: str, jars: Iterable[str]) -> list[str]:
    """Return the command that submits a program of the library to a cluster, without the program."""
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", master, "--jars", ",".join(jars)]
    command += ["--conf", f"spark.executorEnv.PYTHONPATH={INCLUDE}", "--conf", f"spark.driver.host={LOOPBACK}"]
    return [*command, "--conf", "spark.ui.enabled=false", "--driver-memory", "1g"]


def event_log(folder: Path, *, owned: str) -> list[str]:
    """Return what a submitted program needs to write its event log as one file of text.

    Args:
        folder: where.
        owned: the value of a setting that an owner's rule keeps back.
    """
    settings = {
        "eventLog.enabled": "true",
        "eventLog.dir": folder.as_uri(),
        "eventLog.compress": "false",
        "eventLog.rolling.enabled": "false",
        "redaction.regex": "owned",
        "hadoop.owned": owned,
    }
    return [word for name, value in settings.items() for word in ("--conf", f"spark.{name}={value}")]


def executors(folder: Path) -> list[str]:
    """Return what each executor of the cluster's worker wrote to its log."""
    return [file.read_text(encoding="utf-8") for file in (folder / "work").glob("app-*/*/stderr")]
