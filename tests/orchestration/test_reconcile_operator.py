"""The comparison with the source database under Airflow: its DAG by its own schedule, its task with a connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from sqlalchemy.engine import make_url

from support import source_databases
from support.source_databases import ahead, has_come_to, published
from tidemark.events import TableId
from tidemark.lake.lake import Lake
from tidemark.orchestration.reconcile_operator import ReconcileOperator

DAGS = Path(__file__).parents[2] / "dags"
SOURCE = "source: {name}\nformat: canal_json\nlanding: /landing/*\ntimezone: Europe/Berlin\n"
RECONCILE = 'reconcile: {connection: erp_db, schedule: "30 5 * * *", tables: ["db.*"]}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Source files: one with a database to compare with, one without."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "airy.yaml").write_text(SOURCE.format(name="airy") + RECONCILE)
    (folder / "plain.yaml").write_text(SOURCE.format(name="plain"))
    monkeypatch.setenv("TIDEMARK_SOURCES", str(folder))
    return folder


def test_a_source_with_a_database_has_a_dag_of_its_own_schedule(folder: Path) -> None:
    """In the zone of the source, with a form like that of other DAGs; a source without a database has none."""
    found = DagBag(dag_folder=str(DAGS / "reconcile_sources.py"), bundle_path=DAGS, bundle_name="dags-folder")
    assert found.import_errors == {}
    assert set(found.dags) == {"reconcile_airy"}
    dag = found.dags["reconcile_airy"]
    assert dag.timetable == CronDataIntervalTimetable("30 5 * * *", timezone="Europe/Berlin")
    assert [task.task_id for task in dag.tasks] == ["reconcile"]
    field = dag.params.get_param("table")
    assert (field.schema["title"], "as orders" in str(field.description)) == ("Table", True)


def test_a_source_whose_dag_cannot_be_built_takes_no_other_with_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others keep theirs, all flows too; the source is named, under the file of no DAG."""
    (folder / "berry.yaml").write_text(SOURCE.format(name="berry") + RECONCILE)

    def refused(*, source: str) -> ReconcileOperator:
        if source == "airy":
            raise ValueError("Airflow takes no such task")
        return ReconcileOperator(source=source)

    monkeypatch.setattr("tidemark.orchestration.dags.ReconcileOperator", refused)
    found = DagBag(dag_folder=str(DAGS), bundle_path=DAGS, bundle_name="dags-folder")
    assert {name for name in found.dags if name.startswith("reconcile_")} == {"reconcile_berry"}
    assert {"cdc_airy", "cdc_berry", "cdc_plain"} <= set(found.dags)
    assert list(found.import_errors) == ["cdc_source_errors.py"]
    message = found.import_errors["cdc_source_errors.py"]
    assert "airy: its DAG of reconcile cannot be built: ValueError: Airflow takes no such task" in message


def test_a_task_builds_no_dag_but_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of the flow."""
    (folder / "berry.yaml").write_text(SOURCE.format(name="berry") + RECONCILE)
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "reconcile_berry")
    found = DagBag(dag_folder=str(DAGS / "reconcile_sources.py"), bundle_path=DAGS, bundle_name="dags-folder")
    assert set(found.dags) == {"reconcile_berry"}


def test_the_task_uses_airflows_connection_and_fails_for_what_differs(
    folder: Path, lake: Lake, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Being behind fails nothing, and a wrong connection is no reason to try again.

    A task that compared nothing is no success, and it fails for what was compared before.
    """
    context: Any = {"params": {"table": None}}
    task = ReconcileOperator(source="airy")
    with pytest.raises(AirflowFailException, match="connection 'erp_db' is not set"):
        task.execute(context)
    password = source_databases.password()
    with source_databases.postgres(tmp_path_factory.mktemp("pg"), password) as url:
        host = str(make_url(url).query["host"])
        with psycopg.connect(host=host, user="postgres", password=password, autocommit=True) as database:
            database.execute("CREATE TABLE t (id int PRIMARY KEY)")
            database.execute("INSERT INTO t VALUES (1)")
        monkeypatch.setenv("AIRFLOW_CONN_ERP_DB", url.replace("postgresql+psycopg", "postgres"))
        published(lake, "airy", TableId("db", "public", "t"), {"id": "int"}, [], key=["id"])
        with psycopg.connect(host=host, user="postgres", password=password, autocommit=True) as database:
            database.execute("ALTER TABLE t RENAME TO away")
            with pytest.raises(AirflowSkipException, match="no table could be compared"):
                task.execute(context)
            database.execute("ALTER TABLE away RENAME TO t")
            assert task.execute(context) == {"airy.t": "behind"}
            database.execute("ALTER TABLE t RENAME TO away")
            for _ in range(2):
                with pytest.raises(
                    AirflowFailException, match=r"not any more: airy\.t: the user of the connection sees"
                ):
                    task.execute(context)
            database.execute("ALTER TABLE away RENAME TO t")
        has_come_to(lake, "airy", 1, ahead())
        with pytest.raises(AirflowFailException, match=r"airy\.t differ from the source database") as caught:
            task.execute(context)
        assert password not in str(caught.value)
