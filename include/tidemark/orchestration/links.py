"""Where Airflow shows the quality report: addresses in its web server, and the buttons of tasks that lead there."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlparse

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

PREFIX = "/tidemark"
"""Where the web server has the report, below its own address."""

REPORT, DATA_DOCS = "site", "gx/uncommitted/data_docs/local_site"
"""Folders of ``TIDEMARK_HOME/quality`` that the web server shows."""


CUT = "tidemark_cut"
"""Key of the XCom in which a task leaves its source and the number of its cut."""


def address(page: str = f"{REPORT}/index.html") -> str:
    """Return the address of a page of the report or of the Data Docs, without the host."""
    return f"{web_path()}/quality/{quote(page)}"


def web_path() -> str:
    """Return where the web server has the report, without the host."""
    base = urlparse(str(conf.get("api", "base_url", fallback=""))).path.rstrip("/")
    return f"{base}{PREFIX}"


class QualityLink(BaseOperatorLink):
    """The button that leads to the report: to the page of the task's source, where the task has one."""

    name = "Quality"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ANN401, ARG002 - Airflow's own
        """Return the address of the page."""
        source = getattr(operator, "source", None)
        return address(f"{REPORT}/{source}/index.html") if source else address()


class DataDocsLink(BaseOperatorLink):
    """The button that leads to the Data Docs."""

    name = "Data Docs"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ANN401, ARG002 - Airflow's own
        """Return the address of their index."""
        return address(f"{DATA_DOCS}/index.html")
