"""What Airflow says of itself, if one is known: the Airflow of ``make up``, or the one that the environment names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Final

from tidemark.diagnosis.findings import Finding, ok, problem, warning
from tidemark.lake.catalog import home
from tidemark.services.airflow_api import health_of

_ADDRESSES: Final = ("AIRFLOW__API__BASE_URL", "AIRFLOW_API_URL")

_CONNECTION: Final = "AIRFLOW_CONN_SPARK_DEFAULT"

_SPARK_PAGE: Final = "correct it: docs/operations/spark.md"


def examined() -> Iterator[Finding]:
    """Yield what was found about Airflow and its connection to Spark."""
    url = _of_make_up() or next((os.environ[name] for name in _ADDRESSES if os.environ.get(name)), None)
    if url is None:
        yield ok("airflow", "none is known here: `tidemark run` needs none, `make up` starts one")
        return
    health = health_of(url)
    if health is None:
        do = "start it (`make up`), or correct its address"
        yield problem("airflow", f"{url} does not answer", do)
        return
    yield from _parts(url, health)
    yield from _connection()


def _of_make_up() -> str | None:
    """Return the address of the Airflow that ``make up`` started from this home, as it wrote it down."""
    try:
        record = json.loads((home() / "airflow" / "up.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return str(record["url"]) if "url" in record else None


def _parts(url: str, health: dict[str, Any]) -> Iterator[Finding]:
    parts = {name: (part or {}).get("status") for name, part in health.items() if isinstance(part, dict)}
    ill = {name: status for name, status in parts.items() if status != "healthy"}
    idle = {name for name, status in ill.items() if name == "triggerer" and status is None}
    for name in sorted(ill.keys() - idle):
        yield problem(
            "airflow", f"{name} at {url} is {ill[name] or 'not running'}", f"start it, and read its log: {name}"
        )
    if not ill.keys() - idle:
        yield ok("airflow", f"{url} is healthy: {', '.join(sorted(parts.keys() - idle))}")


def _connection() -> Iterator[Finding]:
    given = os.environ.get(_CONNECTION)
    if given is None:
        return
    try:
        kind = json.loads(given).get("conn_type") if given.startswith("{") else given.partition(":")[0]
    except (ValueError, AttributeError):
        yield problem("spark_default", f"{_CONNECTION} is neither JSON nor a URI", _SPARK_PAGE)
        return
    if kind in {"spark", "spark_connect"}:
        yield ok("spark_default", f"a connection of type {kind}, from {_CONNECTION}")
    else:
        yield warning("spark_default", f"{_CONNECTION} has type {kind}", "use spark or spark_connect")
