"""Notices for people: a task has failed after its last attempt, or a run is late.

A notice is always in the log. If the Airflow connection ``tidemark_alerts`` (type ``http``) is defined, the notice is
also sent there, as a POST of JSON. Chat tools show its ``text``. A notice that cannot be sent fails nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import httpx
from airflow.sdk import BaseHook, Connection, Context
from airflow.sdk.exceptions import AirflowNotFoundException

CONNECTION = "tidemark_alerts"

log = logging.getLogger(__name__)

_SECONDS = 10.0


def task_failed(context: Context) -> None:
    """Send a notice about a failed task: Airflow's ``on_failure_callback`` of every task."""
    instance: Any = context["ti"]
    error = context.get("exception")
    notice = {"event": "failed", "dag": instance.dag_id, "run": instance.run_id, "task": instance.task_id}
    text = f"{instance.dag_id}.{instance.task_id} failed in {instance.run_id}: {error or 'its process ended'}"
    _send({**notice, "text": text, "log": getattr(instance, "log_url", None)})


def run_late(context: Mapping[str, Any]) -> None:
    """Send a notice about a late run: Airflow's callback of a missed deadline.

    Runs of a backfill wait for each other, so they are never late.
    """
    run = context.get("dag_run") or {}
    if run.get("run_type") == "backfill":
        return
    dag, name = run.get("dag_id"), run.get("dag_run_id") or run.get("run_id")
    _send({"event": "late", "dag": dag, "run": name, "text": f"{dag}: run {name} is not over by its deadline"})


def _send(notice: Mapping[str, Any]) -> None:
    log.error("%s", notice["text"])
    try:
        connection = BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException:
        return
    except Exception:  # noqa: BLE001 - the notice is in the log already, and must fail nothing
        log.warning("connection %s cannot be read", CONNECTION)
        return
    try:
        httpx.post(
            _address(connection), json=dict(notice), headers=_access(connection), timeout=_SECONDS
        ).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # Without the error's text: it has the address of the webhook, which is a secret.
        log.warning("notice not sent to connection %s: %s", CONNECTION, type(error).__name__)


def _address(connection: Connection) -> str:
    """Return the address of a connection, as Airflow's HTTP hook reads it.

    ``host`` may be a whole address. ``endpoint`` of the extras follows it.
    """
    host = connection.host or ""
    base = host if "://" in host else f"{connection.schema or 'http'}://{host}"
    port = f":{connection.port}" if connection.port else ""
    return f"{base}{port}{connection.extra_dejson.get('endpoint', '')}"


def _access(connection: Connection) -> dict[str, str]:
    return {"Authorization": f"Bearer {connection.password}"} if connection.password else {}
