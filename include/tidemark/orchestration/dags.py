"""Airflow DAGs: for each source its flow and its comparison, and one for each kind of work beside the flow."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, chain
from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from tidemark.errors import ConfigurationError
from tidemark.orchestration import alerts
from tidemark.orchestration.assets import outlets_of
from tidemark.orchestration.notifiers import notifiers_of
from tidemark.orchestration.reconcile_operator import ReconcileOperator
from tidemark.orchestration.stage_operator import StageOperator
from tidemark.sources.files import find_source, read_sources
from tidemark.sources.model import DAG_PREFIX, Source
from tidemark.sources.schedules import longest_wait
from tidemark.stages import STAGES
from tidemark.values.iso8601 import EPOCH

log = logging.getLogger(__name__)

RECONCILE_PREFIX = "reconcile_"
"""Prefix of the ids of the DAGs that compare sources with their databases."""

TASKS: Mapping[str, Any] = {
    "owner": "tidemark",
    "retries": 3,
    "retry_delay": timedelta(seconds=20),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=10),
    "on_failure_callback": alerts.task_failed,
}
"""Arguments of every task. Only errors of the store or the engine are tried again; ``stage_operator`` fails a task at
once if the error is in the data or the configuration."""

_OPTIONS: Mapping[str, Sequence[str]] = {"normalize": ("reprocess", "dry_run"), "publish": ("approve",)}
"""Stage -> its options in the trigger form."""


def build_dag(source: Source) -> DAG:
    """Return the DAG of a source: the five stages in a row, one run for each data interval."""
    with DAG(
        dag_id=source.dag_id,
        auto_register=False,  # Airflow would know a half of it, where an error ends the block
        description=f"{source.format} dumps of {source.source} into checked Iceberg tables",
        schedule=_timetable(source.schedule, source.timezone),
        start_date=source.start_date,
        catchup=False,
        max_active_runs=1,
        deadline=_deadline(source),
        default_args={**TASKS, **_when_a_task_fails(source)},
        params={
            "start": _moment("Start of the interval", "In place of the run's own, as 2026-01-31 00:00."),
            "end": _moment("End of the interval", "The first moment that is not part of it, as 2026-02-01 00:00."),
            "reprocess": _switch("Reprocess", "Decode again what landed in the interval before."),
            "dry_run": _switch(
                "Dry run of reprocessing",
                "With Reprocess: work on copies, log how many rows of each table would differ, and change nothing.",
            ),
            "approve": number_param(
                "Approve cut (number)",
                "Publish this cut, which awaits approval, as it is, and do nothing else: 12. `tidemark status` has it.",
            ),
        },
        tags={"tidemark", "cdc", source.format},
        doc_md=_describe(source),
    ) as dag:
        before = [_stage(source, stage) for stage in STAGES[:-1]]
        chain(*before, _stage(source, STAGES[-1], outlets=outlets_of(source)))
    return dag


def build_reconciliation(source: Source) -> DAG:
    """Return the DAG that compares a source with its database; it does not wait for other runs of the source."""
    schedule = source.reconcile.schedule if source.reconcile else None
    with DAG(
        dag_id=f"{RECONCILE_PREFIX}{source.source}",
        auto_register=False,  # as above
        description=f"Compare the published tables of {source.source} with its database.",
        schedule=_timetable(schedule, source.timezone),
        start_date=EPOCH,
        catchup=False,
        max_active_runs=1,
        default_args={**TASKS, **_when_a_task_fails(source)},
        params={"table": table_param()},
        tags={"tidemark", "lake"},
    ) as dag:
        ReconcileOperator(source=source.source)
    return dag


def flow_dags(wanted: str | None = None) -> Iterator[DAG]:
    """Yield the DAG of each source; one that cannot be built is logged and left out (``require_dags`` raises for it).

    Args:
        wanted: id of the only DAG that Airflow reads the file for. Each task reads it again, and needs only its own.

    Raises:
        ConfigurationError: the source of the wanted DAG is wrong. What else keeps that DAG from being built is raised,
            too.
    """
    yield from _built(_sources(DAG_PREFIX, wanted), build_dag, wanted)


def reconcile_dags(wanted: str | None = None) -> Iterator[DAG]:
    """Yield the DAG that compares it with its database for each source that has one; otherwise as ``flow_dags``."""
    yield from _built(_compared(_sources(RECONCILE_PREFIX, wanted)), build_reconciliation, wanted)


def require_dags(sources: Sequence[Source]) -> None:
    """Build the DAGs of sources, to see whether Airflow takes them.

    Raises:
        ConfigurationError: one cannot be built; with all that cannot.
    """
    wrong = [
        f"{source.source}: its DAG{of} cannot be built: {type(made).__name__}: {made}"
        for of, some, build in (("", sources, build_dag), (" of reconcile", _compared(sources), build_reconciliation))
        for source, made in _attempts(some, build)
        if isinstance(made, Exception)
    ]
    if wrong:
        raise ConfigurationError("\n".join(wrong))


def _sources(prefix: str, wanted: str | None) -> list[Source]:
    """Return all right sources, or only the one whose DAG is wanted."""
    if wanted and wanted.startswith(prefix):
        return [find_source(wanted.removeprefix(prefix))]
    return read_sources()[0]


def _compared(sources: Iterable[Source]) -> list[Source]:
    """Return the sources that are compared with their databases."""
    return [source for source in sources if source.reconcile is not None]


def _built(sources: Iterable[Source], build: Callable[[Source], DAG], wanted: str | None) -> Iterator[DAG]:
    for source, made in _attempts(sources, build):
        if isinstance(made, Exception):
            if wanted:
                raise made
            log.error("a DAG of %s cannot be built", source.source, exc_info=made)
        else:
            yield made


def _attempts(sources: Iterable[Source], build: Callable[[Source], DAG]) -> Iterator[tuple[Source, DAG | Exception]]:
    """Yield for each source its DAG, or why it cannot be built: other sources must keep theirs, whatever is wrong."""
    for source in sources:
        try:
            yield source, build(source)
        except Exception as error:  # noqa: BLE001 - whatever Airflow raises
            yield source, error


def _stage(source: Source, stage: str, **more: Any) -> StageOperator:  # noqa: ANN401 - Airflow's own arguments
    """Return the task of a stage.

    A later stage has more weight than an earlier one: where slots are few, a source that has begun is published before
    others begin. By Airflow's own rule all sources would land first. The first stage has the weight that this rule
    gives it, so that the tasks of other DAGs do not go before it more than usual.
    """
    weight = len(STAGES) + STAGES.index(stage)
    return StageOperator(
        stage=stage,
        source=source.source,
        options=_OPTIONS.get(stage, ()),
        priority_weight=weight,
        weight_rule="absolute",
        **more,
    )


def build_maintenance(sources: Sequence[Source]) -> DAG:
    """Return the DAG that maintains all sources each night, two at a time.

    A run by the trigger form can maintain a single source.
    """
    dag = _beside("lake_maintenance", "Keep the tables of all sources small and fast.", sources, schedule="30 3 * * *")
    with dag:
        for source in sources:
            more = _when_a_task_fails(source)
            StageOperator(task_id=source.source, stage="maintain", source=source.source, options=["table"], **more)
    return dag


def build_on_demand(
    name: str, stages: Sequence[str], description: str, sources: Sequence[Source], options: Mapping[str, Param]
) -> DAG:
    """Return the DAG ``lake_<name>``: stages in a row, for the source that the trigger form names.

    The options of the form go to the stage ``name``.
    """
    dag = _beside(f"lake_{name}", description, sources, options=options)
    with dag:
        chain(*(StageOperator(stage=stage, options=list(options) if stage == name else ()) for stage in stages))
    return dag


def table_param() -> Param:
    """Return the field of a trigger form for a table."""
    return text_param("Table", "A published table, without its namespace, as orders. Empty: all tables.")


def text_param(title: str, description: str) -> Param:
    """Return a field of a trigger form for a text, which may stay empty."""
    return Param(None, type=["null", "string"], title=title, description=description)


def number_param(title: str, description: str) -> Param:
    """Return a field of a trigger form for a number, which may stay empty."""
    return Param(None, type=["null", "integer"], minimum=1, title=title, description=description)


def _beside(
    dag_id: str,
    description: str,
    sources: Sequence[Source],
    *,
    schedule: str | None = None,
    options: Mapping[str, Param] | None = None,
) -> DAG:
    names = [source.source for source in sources]
    every = "The source to work on. Empty: all sources."
    choice = Param(None, type=["null", "string"], enum=[None, *names], title="Source", description=every)
    if schedule is None:
        first, one = names[0] if names else None, "The source to work on."
        choice = Param(first, type="string", enum=names or None, title="Source", description=one)
    return DAG(
        dag_id=dag_id,
        description=description,
        schedule=_timetable(schedule),
        start_date=EPOCH,
        catchup=False,
        max_active_runs=1,
        max_active_tasks=2,
        default_args=dict(TASKS),
        params={"source": choice, **(options or {"table": table_param()})},
        tags={"tidemark", "lake"},
        doc_md=f"{description}\n\nIt waits for other runs of the same source, because a source has one writer.\n",
    )


def _when_a_task_fails(source: Source) -> dict[str, Any]:
    """Return the argument of a task of a source that names what is called once it has failed for good."""
    return {"on_failure_callback": [alerts.task_failed, *notifiers_of(source)]}


def _timetable(schedule: str | None, timezone: str = "UTC") -> CronDataIntervalTimetable | None:
    # Airflow 3 would give a bare cron text intervals of zero length (its setting create_cron_data_intervals).
    return CronDataIntervalTimetable(schedule, timezone=timezone) if schedule else None


def _deadline(source: Source) -> DeadlineAlert | None:
    """Return the deadline of a run: one more interval after its own, at least an hour. It only sends a notice.

    Airflow adds one time to the start of every interval. Where intervals differ, as over a weekend, it is the longest:
    a notice may come late, and none comes before the next run is due.
    """
    if source.schedule is None:
        return None
    return DeadlineAlert(
        # The start of the interval. With the time of queueing, Airflow 3.3 answers 500 if a task of the run is cleared.
        reference=DeadlineReference.DAGRUN_LOGICAL_DATE,
        interval=longest_wait(source.schedule, source.start_date, source.zone),
        callback=SyncCallback(alerts.run_late),
    )


def _moment(title: str, description: str) -> Param:
    return Param(None, type=["null", "string"], format="date-time", title=f"{title} (UTC)", description=description)


def _switch(title: str, description: str) -> Param:
    # With the type "boolean" alone, the form would mark the field as mandatory.
    return Param(False, type=["boolean", "null"], title=title, description=description)  # noqa: FBT003 - Airflow's own


def _describe(source: Source) -> str:
    tables = "".join(
        f"| `{name}` | {', '.join(table.key or ()) or 'as the messages name it'} | {table.deletes} "
        f"| {'yes' if table.history else 'no'} | {len(table.checks)} |\n"
        for name, table in source.tables.items()
    )
    head = "| table | key | deletes | history | checks |\n| --- | --- | --- | --- | --- |\n"
    return (
        f"**{source.source}**: `{source.format}` dumps from `{source.landing}` into `{source.target}`. Times of the "
        f"schedule and of paths are in the zone {source.timezone}.\n\n"
        f"{head + tables if tables else 'Tables are discovered, with the key that messages name.'}\n\n"
        "Triggered by hand, `start` and `end` (UTC) replace the data interval of the run. Past intervals are run by a "
        "backfill. Each published table is an asset, `tidemark://<namespace>/<table>`.\n"
    )
