"""The report in Airflow's web server: only for people whom Airflow knows, and only files of the two sites."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from airflow.api_fastapi.common.db.common import _get_session
from airflow.api_fastapi.core_api.security import get_user
from airflow.models.base import Base
from airflow.models.xcom import XComModel
from airflow.plugins_manager import get_fastapi_plugins
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

from tidemark.orchestration import report_server
from tidemark.orchestration.links import CUT, address
from tidemark.orchestration.plugin import TidemarkPlugin, serve
from tidemark.orchestration.stage_operator import StageOperator

SECRET = "a file of the server"  # noqa: S105 - not one


@pytest.fixture
def quality(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with both sites, files beside them, and links that lead out of them."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    quality = tmp_path / "quality"
    docs = quality / "gx" / "uncommitted" / "data_docs" / "local_site"
    for file, text in {
        quality / "site" / "index.html": "the report",
        quality / "site" / "erp" / "index.html": "the source erp",
        quality / "site" / "erp" / "cut-3.html": "a cut",
        quality / "site" / "erp" / "table-erp.a~3Cb.html": "a table",
        quality / "site" / "erp" / "pages.json": SECRET,
        quality / "site" / ".hidden.html": SECRET,
        docs / "index.html": "the docs",
        docs / "vendor" / "jquery.min.js": "jquery",
        quality / "gx" / "great_expectations.yml": SECRET,
        quality / "gx" / "uncommitted" / "other.html": SECRET,
        tmp_path / "secret.html": SECRET,
        tmp_path / "outside" / "index.html": SECRET,
    }.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (quality / "site" / "link.html").symlink_to(tmp_path / "secret.html")
    (quality / "site" / "folder").symlink_to(tmp_path / "outside")
    return quality


@pytest.fixture
def database() -> Iterator[Session]:
    """Airflow's table of what tasks left, in memory."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    Base.metadata.create_all(engine, [XComModel.__table__])
    with Session(engine) as session:
        yield session


@pytest.fixture
def client(quality: Path, database: Session, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A user who may read DAGs, unless a test says otherwise."""
    manager = SimpleNamespace(is_authorized_dag=lambda **asked: asked["user"].reads)
    monkeypatch.setattr(report_server, "get_auth_manager", lambda: manager)
    report_server.application.cache_clear()
    overrides = report_server.application().dependency_overrides
    overrides[get_user] = lambda: SimpleNamespace(reads=True)
    overrides[_get_session] = lambda: database
    root = FastAPI()
    root.mount("/tidemark", serve)
    with TestClient(root, follow_redirects=False) as client:
        yield client
    report_server.application.cache_clear()


def test_both_sites_are_shown_under_a_policy(client: TestClient) -> None:
    """Pages, scripts and pages of tables with odd names are found; nothing may frame the Data Docs."""
    page = client.get("/tidemark/quality/site/index.html")
    assert (page.status_code, page.text) == (200, "the report")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
    assert "script-src" not in page.headers["content-security-policy"]
    assert client.get("/tidemark/quality/site/erp/table-erp.a~3Cb.html").text == "a table"
    docs = client.get("/tidemark/quality/gx/uncommitted/data_docs/local_site/index.html")
    assert docs.text == "the docs"
    assert "frame-ancestors 'none'" in docs.headers["content-security-policy"]
    assert client.get("/tidemark/quality/gx/uncommitted/data_docs/local_site/vendor/jquery.min.js").text == "jquery"


@pytest.mark.parametrize(
    "path",
    [
        "site/../../secret.html",
        "site/%2e%2e/%2e%2e/secret.html",
        "site/..%2f..%2fsecret.html",
        "site/%252e%252e/secret.html",
        "site/erp/../../gx/great_expectations.yml",
        "gx/great_expectations.yml",
        "gx/uncommitted/other.html",
        "gx/uncommitted/data_docs/local_site/../../other.html",
        "/etc/passwd",
        "site//etc/hostname.html",
        "site/%00index.html",
        "site/erp\\..\\..\\secret.html",
        "site/link.html",
        "site/folder/index.html",
        "site/.hidden.html",
        "site/erp/pages.json",
        "site/erp",
        "site",
        "",
        "s3://bucket/index.html",
        "file:///etc/hostname.html",
    ],
)
def test_no_path_reaches_anything_else(client: TestClient, quality: Path, path: str) -> None:
    """Steps up, encoded or not, absolute paths, links, hidden files, other files and other stores are not found."""
    answer = client.get(f"/tidemark/quality/{path}")
    assert answer.status_code == 404, answer.text
    assert SECRET not in answer.text
    assert report_server.page_file(path, quality) is None


def test_only_who_may_read_dags_sees_the_report(client: TestClient) -> None:
    """Airflow's own login decides: nobody without it (401), nobody without the right to read DAGs (403)."""
    overrides = report_server.application().dependency_overrides
    overrides[get_user] = lambda: SimpleNamespace(reads=False)
    assert client.get("/tidemark/quality/site/index.html").status_code == 403
    overrides.clear()
    for path in ("quality/site/index.html", "quality/nothing", "dag/cdc_erp", "dag/cdc_erp/run/a", "quality/site/x"):
        assert client.get(f"/tidemark/{path}").status_code == 401
    for path in ("docs", "openapi.json", "redoc"):
        assert client.get(f"/tidemark/{path}").status_code == 404  # they would show what there is


def test_a_dag_leads_to_the_page_of_its_source(client: TestClient) -> None:
    """The tab of a source's DAG shows its page, the tab of any other DAG the page of all sources."""
    for dag, page in {
        "cdc_erp": "site/erp/index.html",
        "cdc_unknown": "site/index.html",
        "lake_quality": "site/index.html",
        "cdc_..": "site/index.html",
    }.items():
        answer = client.get(f"/tidemark/dag/{dag}")
        assert (answer.status_code, answer.headers["location"]) == (303, address(page))


def test_a_run_leads_to_the_page_of_its_cut(client: TestClient, database: Session) -> None:
    """The tab of a run shows the cut of its newest task; without a cut, or a page of it, what the DAG's tab shows."""
    runs: dict[str, tuple[str, list[object], str]] = {
        "scheduled__2026-01-01T00:00:00+00:00": ("cdc_erp", [2, 3], "site/erp/cut-3.html"),
        "without a page": ("cdc_erp", [4], "site/erp/index.html"),
        "without a cut": ("cdc_erp", [], "site/erp/index.html"),
        "of others": ("cdc_erp", ["../../../secret"], "site/erp/index.html"),
        "on/demand": ("lake_rebuild", [3], "site/erp/cut-3.html"),
        "of all": ("lake_maintenance", [], "site/index.html"),
    }
    for number, (run, (dag, cuts, _)) in enumerate(runs.items()):
        for second, cut in enumerate(cuts):
            left = {"dag_run_id": number, "dag_id": dag, "run_id": run, "task_id": f"t{second}", "key": CUT}
            at = datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
            database.add(XComModel(**left, timestamp=at, value={"source": "erp", "cut": cut}))
    database.commit()
    for run, (dag, _, page) in runs.items():
        answer = client.get(f"/tidemark/dag/{dag}/run/{quote(run, safe='')}")
        assert (answer.status_code, answer.headers["location"]) == (303, address(page)), run


def test_tasks_that_judge_have_buttons() -> None:
    """Check and publish lead to the page of their source, and to the Data Docs."""
    links = {
        stage: StageOperator(stage=stage, source="erp").operator_extra_links for stage in ("land", "check", "publish")
    }
    assert not links["land"]
    operator = StageOperator(stage="check", source="erp")
    found = {link.name: link.get_link(operator, ti_key=None) for link in links["check"]}
    assert found == {
        "Quality": "/tidemark/quality/site/erp/index.html",
        "Data Docs": "/tidemark/quality/gx/uncommitted/data_docs/local_site/index.html",
    }
    assert [link.name for link in links["publish"]] == ["Quality", "Data Docs"]


def test_airflow_finds_the_plugin() -> None:
    """The package announces it, and Airflow takes its application and its three views."""
    apps, _ = get_fastapi_plugins()
    assert [app["url_prefix"] for app in apps if app["name"] == "Tidemark"] == ["/tidemark"]
    assert [view["destination"] for view in TidemarkPlugin.external_views] == ["nav", "dag", "dag_run"]
    assert len({view["url_route"] for view in TidemarkPlugin.external_views}) == 3
