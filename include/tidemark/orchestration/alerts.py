"""Telling people: of a task that has failed for good, and of a run that is late.

Always in the log; and, where the Airflow connection ``tidemark_alerts`` (type ``http``) is defined, by a POST of JSON
to it. Its ``text`` is what chat tools show. A notice that cannot be sent never fails anything.
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
    """Airflow's ``on_failure_callback`` of every task."""
    instance: Any = context["ti"]
    error = context.get("exception")
    notice = {"event": "failed", "dag": instance.dag_id, "run": instance.run_id, "task": instance.task_id}
    told = f"{instance.dag_id}.{instance.task_id} failed in {instance.run_id}: {error or 'its process ended'}"
    _send({**notice, "text": told, "log": getattr(instance, "log_url", None)})


def run_late(context: Mapping[str, Any]) -> None:
    """Airflow's callback of a missed deadline; runs of a backfill wait for each other, and are never late."""
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
    except Exception:  # noqa: BLE001 - likewise: the notice is in the log
        log.warning("connection %s cannot be read", CONNECTION)
        return
    try:
        httpx.post(
            _address(connection), json=dict(notice), headers=_access(connection), timeout=_SECONDS
        ).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # Not its text: the address of a webhook is a secret.
        log.warning("notice not sent to connection %s: %s", CONNECTION, type(error).__name__)


def _address(connection: Connection) -> str:
    """The address as Airflow's HTTP hook reads it: ``host`` may be a whole address; ``extra.endpoint`` follows it."""
    host = connection.host or ""
    base = host if "://" in host else f"{connection.schema or 'http'}://{host}"
    port = f":{connection.port}" if connection.port else ""
    return f"{base}{port}{connection.extra_dejson.get('endpoint', '')}"


def _access(connection: Connection) -> dict[str, str]:
    return {"Authorization": f"Bearer {connection.password}"} if connection.password else {}
