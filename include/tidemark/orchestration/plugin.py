"""The Airflow plugin: the quality report and the Data Docs in Airflow's web server, behind its login.

Every component of Airflow loads plugins, so nothing heavy is imported here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from tidemark.orchestration.links import PREFIX, address, web_path

_Message = MutableMapping[str, Any]


async def serve(
    scope: _Message, receive: Callable[[], Awaitable[_Message]], send: Callable[[_Message], Awaitable[None]]
) -> None:
    """Answer a request: the ASGI application of the report, which is made at its first request."""
    from tidemark.orchestration.report_server import application  # noqa: PLC0415 - only the web server needs it

    await application()(scope, receive, send)


class TidemarkPlugin(AirflowPlugin):
    """What Tidemark adds to Airflow's web server."""

    name = "tidemark"
    fastapi_apps = [  # noqa: RUF012 - Airflow's own
        {"app": serve, "url_prefix": PREFIX, "name": "Tidemark"}
    ]
    external_views = [  # noqa: RUF012
        {"name": "Quality", "href": address(), "url_route": "quality", "destination": "nav"},
        {
            "name": "Quality",
            "href": f"{web_path()}/dag/{{DAG_ID}}",
            "url_route": "dag-quality",
            "destination": "dag",
        },
        {
            "name": "Quality",
            "href": f"{web_path()}/dag/{{DAG_ID}}/run/{{RUN_ID}}",
            "url_route": "run-quality",
            "destination": "dag_run",
        },
    ]
