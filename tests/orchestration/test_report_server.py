"""The report in Airflow's web server: only for people whom Airflow knows, and only files of the two sites."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.api_fastapi.core_api.security import get_user
from airflow.plugins_manager import get_fastapi_plugins
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tidemark.orchestration import report_server
from tidemark.orchestration.links import address
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
def client(quality: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A user who may read DAGs, unless a test says otherwise."""
    manager = SimpleNamespace(is_authorized_dag=lambda **asked: asked["user"].reads)
    monkeypatch.setattr(report_server, "get_auth_manager", lambda: manager)
    report_server.application.cache_clear()
    report_server.application().dependency_overrides[get_user] = lambda: SimpleNamespace(reads=True)
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
    for path in ("quality/site/index.html", "quality/nothing", "dag/cdc_erp", "quality/site/erp/pages.json"):
        assert client.get(f"/tidemark/{path}").status_code == 401
    for path in ("docs", "openapi.json", "redoc"):
        assert client.get(f"/tidemark/{path}").status_code == 404  # they would tell what there is


def test_a_dag_leads_to_the_page_of_its_source(client: TestClient) -> None:
    """The tab of a source's DAG shows its page, that of any other DAG the page of all sources."""
    for dag, page in {
        "cdc_erp": "site/erp/index.html",
        "cdc_unknown": "site/index.html",
        "lake_quality": "site/index.html",
        "cdc_..": "site/index.html",
    }.items():
        answer = client.get(f"/tidemark/dag/{dag}")
        assert (answer.status_code, answer.headers["location"]) == (303, address(page))


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
    """The package announces it, and Airflow takes its application and its two views."""
    apps, _ = get_fastapi_plugins()
    assert [app["url_prefix"] for app in apps if app["name"] == "Tidemark"] == ["/tidemark"]
    assert [view["destination"] for view in TidemarkPlugin.external_views] == ["nav", "dag"]
