"""The web application that shows the quality report and the Data Docs to people whom Airflow knows.

Airflow does not ask who calls an application of a plugin, so this one asks Airflow: every route needs a user who may
read DAGs. It only reads, and only files of the two sites: a path is checked part by part, and a symbolic link has no
page.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path, PurePosixPath

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.xcom import XComModel
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import FileResponse, RedirectResponse
from sqlalchemy import select

from tidemark.lake.catalog import home
from tidemark.orchestration.links import CUT, DATA_DOCS, REPORT, address
from tidemark.report.words import cut_page
from tidemark.sources.model import DAG_PREFIX

_PART = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9_.~+=-]*")
"""A part of the path of a page or of a file that pages need; none begins with a dot."""

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".woff2": "font/woff2",
    ".otf": "font/otf",
    ".png": "image/png",
    ".gif": "image/gif",
    ".svg": "image/svg+xml",
    ".ico": "image/x-icon",
}

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-cache",
}

_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)

_DOCS_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    "sandbox allow-scripts allow-same-origin"
)
"""Great Expectations' pages have scripts. They reach neither Airflow's API nor another window."""


def page_file(path: str, root: Path) -> Path | None:
    """Return the file of a page below ``root`` (``TIDEMARK_HOME/quality``); None if there is no such page.

    A path that is not spelled plainly, leads outside of the two sites, or crosses a symbolic link has no file.
    """
    parts = path.split("/")
    if not all(_PART.fullmatch(part) for part in parts) or PurePosixPath(path).suffix not in _TYPES:
        return None
    sites = [folder.split("/") for folder in (REPORT, DATA_DOCS)]
    if not any(parts[: len(site)] == site and len(parts) > len(site) for site in sites):
        return None
    found = root.resolve().joinpath(*parts)
    return found if found.is_file() and found.resolve() == found else None


async def _may_read(user: GetUserDep) -> None:
    """Refuse users who may not read DAGs; ``GetUserDep`` refuses callers whom Airflow does not know."""
    if not get_auth_manager().is_authorized_dag(method="GET", user=user):
        raise HTTPException(status_code=403, detail="The report is for users who may read DAGs.")


@cache
def application() -> FastAPI:
    """Return the application; it has no page about itself."""
    app = FastAPI(title="Tidemark", openapi_url=None, docs_url=None, redoc_url=None, dependencies=[Depends(_may_read)])
    app.add_api_route("/quality/{path:path}", _page, methods=["GET"], response_class=FileResponse)
    app.add_api_route("/dag/{dag_id}", _of_dag, methods=["GET"], response_class=RedirectResponse)
    app.add_api_route("/dag/{dag_id}/run/{run_id:path}", _of_run, methods=["GET"], response_class=RedirectResponse)
    return app


def _page(path: str) -> FileResponse:
    found = page_file(path, home() / "quality")
    if found is None:
        raise HTTPException(status_code=404, detail="There is no such page. `tidemark report` writes the report.")
    policy = _REPORT_POLICY if path.startswith(f"{REPORT}/") else _DOCS_POLICY
    headers = _ALWAYS | {"Content-Security-Policy": policy}
    return FileResponse(found, headers=headers, media_type=_TYPES[found.suffix])


def _of_dag(dag_id: str) -> RedirectResponse:
    """Lead to the page of the source whose DAG it is, else to the page of all sources."""
    source = dag_id.removeprefix(DAG_PREFIX) if dag_id.startswith(DAG_PREFIX) else ""
    return _first_of(f"{REPORT}/{source}/index.html")


def _of_run(dag_id: str, run_id: str, session: SessionDep) -> RedirectResponse:
    """Lead to the page of the newest cut that a task of the run judged or published, else as the tab of the DAG does.

    A cut is not known where no task had one yet, or where a submitted job judged it.
    """
    of_run = (XComModel.dag_id == dag_id, XComModel.run_id == run_id, XComModel.key == CUT)
    match session.scalar(select(XComModel.value).where(*of_run).order_by(XComModel.timestamp.desc()).limit(1)):
        case {"source": str(source), "cut": int(cut)}:
            return _first_of(f"{REPORT}/{source}/{cut_page(cut)}", f"{REPORT}/{source}/index.html")
        case _:
            return _of_dag(dag_id)


def _first_of(*pages: str) -> RedirectResponse:
    """Lead to the first page that there is, else to the page of all sources."""
    known = [page for page in pages if page_file(page, home() / "quality") is not None]
    return RedirectResponse(address(*known[:1]), status_code=303)
