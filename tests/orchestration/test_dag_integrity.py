"""The DAGs of the source files, as Airflow's own DAG bag reads them."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pendulum
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import CronDataIntervalTimetable
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.interval import CronDataIntervalTimetable as CoreTimetable

from support.airflow_world import Heard
from tidemark.orchestration import alerts
from tidemark.sources import files
from tidemark.sources.schedules import next_moment
from tidemark.stages import STAGES

ROOT = Path(__file__).parents[2]
DAGS = ROOT / "dags"
LAKE = {"lake_maintenance", "lake_quality", "lake_rebuild", "lake_retry"}
"""DAGs of the work beside the flow."""
SOURCE = "source: {name}\nformat: canal_json\nlanding: /landing/{name}/*\nschedule: {schedule}\n"


def bag(folder: Path, monkeypatch: pytest.MonkeyPatch) -> DagBag:
    """Read ``dags/`` over a folder of source files."""
    monkeypatch.setenv("TIDEMARK_SOURCES", str(folder))
    return DagBag(dag_folder=str(DAGS), bundle_path=DAGS, bundle_name="dags-folder")


def write(folder: Path, name: str, schedule: str = '"@daily"') -> None:
    """Write a right source file."""
    (folder / f"{name}.yaml").write_text(SOURCE.format(name=name, schedule=schedule), "utf-8")


def test_every_declared_source_has_its_dag(monkeypatch: pytest.MonkeyPatch) -> None:
    """The repository's own sources give their DAGs, without an import error."""
    declared = {source.dag_id for source in files.load_sources(ROOT / "include" / "sources")}
    found = bag(ROOT / "include" / "sources", monkeypatch)
    assert declared
    assert set(found.dags) == declared | LAKE
    assert found.import_errors == {}


def test_a_task_builds_no_dag_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow reads the file of a DAG again for each of its tasks, and says which DAG it wants."""
    for name in ("erp", "crm", "crm_old"):
        write(tmp_path, name)
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "cdc_crm")
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path))
    found = DagBag(dag_folder=str(DAGS / "cdc_sources.py"), bundle_path=DAGS, bundle_name="dags-folder")
    assert set(found.dags) == {"cdc_crm"}


def test_dag_is_five_stages_in_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Land >> normalize >> compact >> check >> publish, one run at a time, nothing caught up."""
    write(tmp_path, "erp")
    dag = bag(tmp_path, monkeypatch).dags["cdc_erp"]
    assert tuple(task.task_id for task in dag.topological_sort()) == STAGES
    assert [sorted(task.downstream_task_ids) for task in dag.topological_sort()] == [
        *([name] for name in STAGES[1:]),
        [],
    ]
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert {task.max_active_tis_per_dag for task in dag.tasks} == {1}
    assert "canal_json" in str(dag.doc_md)


def test_a_run_that_has_begun_goes_before_those_that_have_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler gives a free slot to the later of two stages."""
    write(tmp_path, "erp")
    known = DagSerialization.from_dict(DagSerialization.to_dict(bag(tmp_path, monkeypatch).dags["cdc_erp"]))
    weights = [task.weight_rule.get_weight(SimpleNamespace(task=task)) for task in map(known.get_task, STAGES)]
    assert weights == [5, 6, 7, 8, 9]


def test_forms_say_what_they_take_and_nothing_is_mandatory_but_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each field has a title and a text; only the source of work on demand has to be filled in, and it is already."""
    for dag in bag(ROOT / "include" / "sources", monkeypatch).dags.values():
        for name, param in dag.params.items():
            field = dag.params.get_param(name)
            schema = field.schema
            assert schema["title"], (dag.dag_id, name)
            assert field.description, (dag.dag_id, name)
            # As Airflow's form decides it.
            mandatory = not isinstance(schema["type"], list) or "null" not in schema["type"]
            on_demand = dag.dag_id in LAKE - {"lake_maintenance"}
            assert mandatory == (on_demand and name == "source"), (dag.dag_id, name)
            assert param is not None or not mandatory


@pytest.mark.parametrize("schedule", ['"@daily"', '"@hourly"', '"15 3 * * 1"', '"@quarterly"'])
def test_schedule_gives_intervals_of_full_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedule: str) -> None:
    """Airflow's default for a cron text, an interval without width, is never used."""
    write(tmp_path, "erp", schedule)
    timetable = bag(tmp_path, monkeypatch).dags["cdc_erp"].timetable
    assert isinstance(timetable, CronDataIntervalTimetable)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe", "UTC"])
def test_schedule_is_in_the_zone_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    """Airflow's timetable has it, and the moments that stages compute are those of the timetable, in any week."""
    write(tmp_path, "erp")
    with (tmp_path / "erp.yaml").open("a") as file:
        file.write(f"timezone: {zone}\nstart_date: 2026-01-01\n")
    dag = bag(tmp_path, monkeypatch).dags["cdc_erp"]
    midnight = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone))
    assert dag.start_date == midnight
    assert dag.timetable == CronDataIntervalTimetable("@daily", timezone=zone)
    for schedule in ("@hourly", "@daily", "30 2 * * *", "*/15 * * * *", "0 */6 * * *", "0 0 * * 0", "5 1-3 * * *"):
        timetable = CoreTimetable(schedule, timezone=zone)
        for month, number in ((1, 1), (3, 7), (3, 28), (4, 4), (10, 3), (10, 24), (10, 31)):
            moment = pendulum.datetime(2026, month, number, 20)
            for _ in range(60 if "*" in schedule[:4] else 10):
                following = timetable._get_next(moment)
                assert next_moment(schedule, moment, ZoneInfo(zone)) == following, (schedule, moment)
                moment = following


def test_days_of_23_and_25_hours() -> None:
    """The interval of such a day is as long as the day."""
    berlin = ZoneInfo("Europe/Berlin")
    for month, number, hours in ((3, 29, 23), (3, 30, 24), (10, 25, 25)):
        begin = next_moment("@daily", datetime(2026, month, number - 1, 12, tzinfo=berlin), berlin)
        assert next_moment("@daily", begin, berlin) - begin == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("schedule", "hours"),
    [("@daily", 48), ("*/5 * * * *", 1 + 1 / 12), ("0 6 * * 1-5", 96), ("0 6,12,18 * * *", 18), ("@monthly", 62 * 24)],
)
def test_no_run_is_late_before_the_next_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedule: str, hours: float
) -> None:
    """One width is added to the start of all intervals: over a weekend, or a night, it is the widest."""
    write(tmp_path, "erp", f'"{schedule}"')
    (deadline,) = bag(tmp_path, monkeypatch).dags["cdc_erp"].deadline
    assert deadline.interval == timedelta(hours=hours)
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for _ in range(40):
        end = next_moment(schedule, begin)
        assert begin + deadline.interval >= max(next_moment(schedule, end), end + timedelta(hours=1))
        begin = end


def test_source_without_schedule_waits_for_a_trigger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``schedule: null`` is a DAG that nothing but a person starts."""
    write(tmp_path, "erp", "null")
    assert not bag(tmp_path, monkeypatch).dags["cdc_erp"].timetable.can_be_scheduled


def test_wrong_file_is_one_import_error_and_takes_no_other_source_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right sources keep their DAGs; the wrong one is named with file, line and key.

    The error must not stand under the file of the DAGs: Airflow unschedules every DAG of a file with an import error.
    """
    write(tmp_path, "erp")
    (tmp_path / "crm.yaml").write_text("source: crm\nformat: canl_json\nlanding: /landing/*\n", "utf-8")
    found = bag(tmp_path, monkeypatch)
    assert set(found.dags) == {"cdc_erp"} | LAKE
    assert {dag.relative_fileloc for dag in found.dags.values()} == {"cdc_sources.py", "lake_operations.py"}
    assert list(found.import_errors) == ["cdc_source_errors.py"]
    message = found.import_errors["cdc_source_errors.py"]
    assert f"{tmp_path / 'crm.yaml'}:2:9: format: unknown format 'canl_json'. Did you mean 'canal_json'?" in message


def test_a_source_that_gives_no_dag_takes_no_other_source_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow refuses the long name of an asset; the source is named, and no half of its DAG is known."""
    write(tmp_path, "erp")
    write(tmp_path, "crm")
    with (tmp_path / "crm.yaml").open("a", encoding="utf-8") as file:
        file.write(f"tables:\n  ? shop.{'a' * 1600}\n  : {{}}\n")
    found = bag(tmp_path, monkeypatch)
    assert set(found.dags) == {"cdc_erp"} | LAKE
    assert list(found.import_errors) == ["cdc_source_errors.py"]
    message = found.import_errors["cdc_source_errors.py"]
    assert "crm: its DAG cannot be built: ValueError: Asset name cannot exceed 1500 characters" in message


def test_notifiers_of_a_source_are_told_of_its_failed_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source file names Airflow's notifiers with their arguments; a wrong one is an import error and stops no DAG."""
    write(tmp_path, "erp")
    with (tmp_path / "erp.yaml").open("a", encoding="utf-8") as file:
        file.write("on_failure: [{notifier: support.airflow_world.Heard, text: '{{ ti.task_id }} of erp'}]\n")
        file.write("reconcile: {connection: erp_database, schedule: '@weekly'}\n")
    write(tmp_path, "crm")
    with (tmp_path / "crm.yaml").open("a", encoding="utf-8") as file:
        file.write(
            "on_failure: [{notifier: no.such.Notifier}, {notifier: pathlib.Path},\n"
            "             {notifier: support.airflow_world.Heard, txt: a},\n"
            "             {notifier: support.airflow_world.Heard, text: ''}]\n"
        )
    found = bag(tmp_path, monkeypatch)
    assert {"cdc_erp", "cdc_crm"} <= set(found.dags)
    for dag, task in (("cdc_erp", "check"), ("reconcile_erp", "reconcile"), ("lake_maintenance", "erp")):
        first, heard = found.dags[dag].get_task(task).on_failure_callback
        assert first is alerts.task_failed
        heard({"ti": SimpleNamespace(task_id=task), "dag": None})
    assert Heard.texts == ["check of erp", "reconcile of erp", "erp of erp"]
    message = found.import_errors["cdc_source_errors.py"]
    for sentence in (
        "crm: on_failure: there is no no.such.Notifier: No module named 'no'. Is its provider installed?",
        "crm: on_failure: pathlib.Path is no notifier of Airflow",
        "crm: on_failure: support.airflow_world.Heard does not take these arguments: ",
        "crm: on_failure: support.airflow_world.Heard does not take these arguments: no text",
    ):
        assert sentence in message


def test_parsing_is_quick_and_imports_no_engine() -> None:
    """Reading the DAGs costs less than half of what Airflow's own modules cost, and needs neither Spark nor a check."""
    script = (
        "import runpy, sys, time\n"
        "started = time.process_time()\n"
        "import airflow.sdk.definitions.dag, airflow.sdk.bases.operator\n"
        "import airflow.providers.apache.spark.operators.spark_submit\n"
        "began = time.process_time()\n"
        "runpy.run_path(sys.argv[1])\n"
        "print((time.process_time() - began) / (began - started))\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(DAGS / "cdc_sources.py")],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT / "include"), **_keep("PATH", "HOME", "AIRFLOW_HOME")},
    )
    share, modules = done.stdout.splitlines()[-2:]
    assert float(share) < 0.5
    assert {"tidemark", "airflow"} <= set(modules.split())
    assert {"pyspark", "great_expectations", "pyiceberg", "pyarrow", "pandas"} & set(modules.split()) == set()


def _keep(*names: str) -> dict[str, str]:
    return {name: os.environ[name] for name in names}
