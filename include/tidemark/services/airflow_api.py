"""The part of Airflow's REST API that Tidemark uses: DAGs, backfills, runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import httpx

from tidemark.errors import RetriableLakeError

_PARTS = ("metadatabase", "scheduler", "dag_processor")


def health_of(url: str) -> dict[str, Any] | None:
    """Return what the Airflow at an address says of its parts, which needs no user; None if it does not answer."""
    try:
        answer = httpx.get(f"{url.rstrip('/')}/api/v2/monitor/health", timeout=5).raise_for_status().json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


class AirflowApi:
    """One Airflow, used as one of its users (simple auth manager). It logs in at the first request."""

    def __init__(self, url: str, *, user: str, password: str) -> None:
        """Send no request yet."""
        self.url = url
        self._credentials = {"username": user, "password": password}
        self._client: httpx.Client | None = None

    def close(self) -> None:
        """Close the connections."""
        if self._client:
            self._client.close()
            self._client = None

    def is_healthy(self) -> bool:
        """Return whether database, scheduler and DAG processor report that they work."""
        health = health_of(self.url) or {}
        return all((health.get(part) or {}).get("status") == "healthy" for part in _PARTS)

    def request(self, method: str, path: str, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401 - httpx's own
        """Send a request to a path below ``/api/v2``, and return the answer.

        Raises:
            RetriableLakeError: the API answers with an error, which the text has, or does not answer.
        """
        try:
            response = self._connected().request(method, f"/api/v2/{path}", **parameters)
        except httpx.HTTPError as error:
            raise RetriableLakeError(f"Airflow does not answer at {self.url}: {error}") from error
        if response.is_error:
            raise RetriableLakeError(f"Airflow answers {response.status_code} to {method} {path}: {response.text}")
        return dict(response.json()) if response.content else {}

    def get_page(self, path: str) -> httpx.Response:
        """Return the answer for a page of the web server, as its user gets it; the path begins with a slash."""
        return self._connected().get(f"{self.url}{path}", follow_redirects=True)

    def token(self) -> str:
        """Return the token of the user, which the web interface keeps in the cookie ``_token``."""
        return str(self._connected().headers["Authorization"]).partition(" ")[2]

    def dag_ids(self) -> set[str]:
        """Return the ids of the DAGs that the DAG processor has read."""
        return {dag["dag_id"] for dag in self.request("GET", "dags", params={"limit": 1000})["dags"]}

    def paused_dag_ids(self) -> set[str]:
        """Return the ids of the DAGs whose runs do not start."""
        found = self.request("GET", "dags", params={"limit": 1000, "paused": True})["dags"]
        return {dag["dag_id"] for dag in found}

    def import_errors(self) -> dict[str, str]:
        """Return DAG file -> its import error."""
        found = self.request("GET", "importErrors", params={"limit": 1000})["import_errors"]
        return {error["filename"]: error["stack_trace"] for error in found}

    def unpause(self, dag_id: str) -> None:
        """Allow runs of a DAG to start."""
        self.request("PATCH", f"dags/{dag_id}", json={"is_paused": False})

    def pause(self, dag_id: str) -> None:
        """Let no run of a DAG start."""
        self.request("PATCH", f"dags/{dag_id}", json={"is_paused": True})

    def backfill(
        self, dag_id: str, start: datetime, end: datetime, *, again: bool = False, backwards: bool = False
    ) -> int:
        """Request a run of every interval that starts from ``start`` to ``end``, both included; return its id.

        Airflow runs them one at a time, the oldest first; with ``backwards``, the newest first. ``again`` also runs
        intervals that have a finished run.
        """
        wanted = {
            "dag_id": dag_id,
            "from_date": start.isoformat(),
            "to_date": end.isoformat(),
            "max_active_runs": 1,
            "reprocess_behavior": "completed" if again else "none",
            "run_backwards": backwards,
        }
        return int(self.request("POST", "backfills", json=wanted)["id"])

    def trigger(self, dag_id: str, form: Mapping[str, Any]) -> str:
        """Request a run with a completed trigger form; return the run's id."""
        return str(
            self.request("POST", f"dags/{dag_id}/dagRuns", json={"logical_date": None, "conf": form})["dag_run_id"]
        )

    def is_backfilling(self, dag_id: str) -> bool:
        """Return whether a backfill of a DAG is not over yet. Until it is, Airflow takes no other one of the DAG."""
        found = self.request("GET", "backfills", params={"dag_id": dag_id, "active": True})["backfills"]
        return any(backfill["completed_at"] is None for backfill in found)

    def runs(self, dag_ids: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return DAG -> run -> state, with the run of the oldest interval first.

        It is one request for all DAGs, because callers repeat it many times.
        """
        states: dict[str, dict[str, str]] = {dag_id: {} for dag_id in dag_ids}
        seen = 0
        while True:  # Airflow's settings limit the size of a page
            wanted = {"dag_ids": [*states], "order_by": "logical_date", "page_offset": seen}
            page = self.request("POST", "dags/~/dagRuns/list", json=wanted)
            for run in page["dag_runs"]:
                states[run["dag_id"]][run["dag_run_id"]] = run["state"]
            seen += len(page["dag_runs"])
            if not page["dag_runs"] or seen >= page["total_entries"]:
                return states

    def tasks(self, dag_id: str, run_id: str) -> dict[str, dict[str, Any]]:
        """Return task -> its state, attempts and times in a run, by the API's names."""
        found = self.request("GET", f"dags/{dag_id}/dagRuns/{run_id}/taskInstances")["task_instances"]
        return {task["task_id"]: task for task in found}

    def task_states(self, dag_ids: Iterable[str]) -> dict[str, dict[str, dict[str, str | None]]]:
        """Return DAG -> run -> task -> state, of all runs of some DAGs; it is one request, as ``runs``."""
        states: dict[str, dict[str, dict[str, str | None]]] = {dag_id: {} for dag_id in dag_ids}
        seen = 0
        while True:
            wanted = {"dag_ids": [*states], "order_by": "id", "page_offset": seen}
            page = self.request("POST", "dags/~/dagRuns/~/taskInstances/list", json=wanted)
            for task in page["task_instances"]:
                states[task["dag_id"]].setdefault(task["dag_run_id"], {})[task["task_id"]] = task["state"]
            seen += len(page["task_instances"])
            if not page["task_instances"] or seen >= page["total_entries"]:
                return states

    def _connected(self) -> httpx.Client:
        if self._client is None:
            answer = httpx.post(f"{self.url}/auth/token", json=self._credentials, timeout=60).raise_for_status()
            bearer = {"Authorization": f"Bearer {answer.json()['access_token']}"}
            self._client = httpx.Client(base_url=self.url, headers=bearer, timeout=60)
        return self._client
