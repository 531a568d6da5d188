"""``tidemark demo``: run the bundled sources through real Airflow DAGs, Spark and Iceberg, and compare the results.

One Spark Connect server stays warm for all tasks. Airflow, with its scheduler, its DAG processor and an embedded
PostgreSQL, runs beside it. All dumps are rendered from the same history, so the result is known: every source must
publish the same tables, row by row, or what the options of its tables make of them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog

from tidemark import INCLUDE
from tidemark.demo.board import Board, States
from tidemark.demo.comparison import OPTIONS, differences
from tidemark.demo.render import SOURCES, STAGING, deliver_late, render
from tidemark.demo.secret import environment_of_masks, make_secret
from tidemark.demo.story.model import ShopHistory
from tidemark.demo.story.shop_history import history
from tidemark.errors import ContractError, RetriableLakeError, UnknownNameError
from tidemark.lake.catalog import home
from tidemark.lake.lake import Lake
from tidemark.queries.status import status_of
from tidemark.queries.status_answer import Status
from tidemark.services.airflow import AirflowService, RunStates
from tidemark.services.airflow_settings import USER
from tidemark.services.spark_connect import SparkConnectServer
from tidemark.sources.files import BUNDLED
from tidemark.sources.model import DAG_PREFIX
from tidemark.spark.session import local_settings

log = structlog.get_logger(__name__)

BACKFILLED = datetime(2026, 1, 1, tzinfo=UTC)
"""The day that a backfill runs."""

REST = (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 5, tzinfo=UTC))
"""The interval of the last run: three days, so that each source has two runs less."""

_RUNS = 2
"""Runs of each source."""

DEFAULT = tuple(name for name in SOURCES if name != "shop_debezium_bare")
"""Sources of the demo by default: one of each format, of each dialect, and one with options of tables."""

_DAGS = INCLUDE.parent / "dags"

_BACKFILL = "backfill__"
"""Beginning of the ids of runs that a backfill requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of the demo."""

    statuses: Sequence[Status]
    """The status of each source, as ``tidemark status --json`` prints it."""
    differences: Sequence[str]
    """Published tables that are not what the history ends with. If there are any, the demo has failed."""
    seconds: float


def run(names: Iterable[str] = DEFAULT) -> Outcome:
    """Render the dumps, run four days of every source through Airflow, and compare what they publish.

    Late files are delivered after the first run.

    Raises:
        UnknownNameError: there is no such demo source.
        ContractError: a run failed in Airflow. The error names the folder of the logs.
        RetriableLakeError: Airflow or Spark did not start.
    """
    began = time.monotonic()
    names = sorted(names)
    for name in names:
        if name not in SOURCES:
            raise UnknownNameError(f"no demo source {name!r}: there are {', '.join(sorted(SOURCES))}")
    with Board(names, _RUNS) as board:
        board.step("writing the dumps")
        landing = home() / "demo" / "landing"
        shop = lay_out(names, landing)
        _run(names, landing, board)
        board.step("comparing the published tables")
        lake = Lake.open()
        wrong = [problem for name in names for problem in differences(lake, name, shop)]
        statuses = [status_of(lake, name) for name in names]
    return Outcome(statuses=statuses, differences=wrong, seconds=time.monotonic() - began)


def _run(names: Sequence[str], landing: Path, board: Board) -> None:
    """Start Spark and Airflow, run four days of every source, and stop both."""
    server = SparkConnectServer(
        folder=home() / "demo" / "spark",
        settings={**local_settings(is_quick=True), "spark.sql.shuffle.partitions": "4"},
    )
    airflow = AirflowService(
        home(),
        dags=_DAGS,
        port=None,
        schedules=False,
        environment=_environment(landing, server.connection),
    )
    with ExitStack() as started:
        started.callback(server.stop)
        board.step("starting Spark and Airflow")
        server.start()  # it starts while Airflow does
        started.enter_context(airflow)
        server.wait()
        _run_days(airflow, names, landing, board)


def _environment(landing: Path, connection: str) -> dict[str, str]:
    """Return what Airflow and its tasks need in their environment; a shell may name other sources and dumps."""
    return {
        "TIDEMARK_LANDING": str(landing),
        "TIDEMARK_SOURCES": str(BUNDLED),
        **environment_of_masks(),
        "AIRFLOW_CONN_SPARK_DEFAULT": connection,
        # The source files do not change during the demo, so Airflow need not read the DAGs again.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
    }


def lay_out(names: Iterable[str], landing: Path) -> ShopHistory:
    """Write the dumps of bundled sources below ``landing``, unless they are there already; return their history.

    A source that masks columns gets its secret too.
    """
    shop = history()
    for name in names:
        _render(name, shop, landing)
        if name == OPTIONS:
            make_secret()
    return shop


def _render(name: str, shop: ShopHistory, landing: Path) -> None:
    """Write the dumps of a source, unless they are there: dumps that were landed must not change."""
    if (landing / name).exists():
        return
    shutil.rmtree(landing / STAGING / name, ignore_errors=True)
    rendered = render(name, shop, landing)
    log.info("dumps_rendered", source=name, files=len(rendered.files), messages=rendered.total.messages)


def _run_days(airflow: AirflowService, names: Sequence[str], landing: Path, board: Board) -> None:
    """Run one day by a backfill, deliver the late files, and run the other three days by the trigger form, in one run.

    Each source goes on by itself. A second backfill would have to wait, because Airflow notes only every 30 s that a
    backfill is over.

    Raises:
        ContractError: a run failed.
    """
    sources = {f"{DAG_PREFIX}{name}": name for name in names}
    form = {"start": REST[0].isoformat(), "end": REST[1].isoformat()}
    last: dict[str, str] = {}

    def go_on(states: RunStates) -> bool:
        """Request the last run of sources whose backfill is done; return whether there are any."""
        ready = sorted(states.keys() - last.keys())
        ready = [dag for dag in ready if _is_backfilled(states[dag])]
        for dag in ready:
            deliver_late(sources[dag], landing)
            last[dag] = airflow.api.trigger(dag, form)
        board.watch(lambda: _tasks(airflow, sources))
        return bool(ready)

    where = f"{airflow.url} (user {USER}, password in {airflow.folder / 'passwords.json'})"
    board.step(f"running four days of each source in {_RUNS} runs, the second one with late files", address=where)
    with unpaused(airflow, sorted(sources)):
        for dag in sources:
            airflow.backfill(dag, BACKFILLED, BACKFILLED, again=True)
        states = airflow.wait_runs(sources, watch=go_on)
    failed = [
        f"{dag} {run}"
        for dag, runs in states.items()
        for run, state in runs.items()
        if state != "success" and (run.startswith(_BACKFILL) or run == last.get(dag))
    ]
    if failed:
        raise ContractError(f"failed in Airflow: {', '.join(failed)}; the tasks' logs are in {airflow.folder / 'logs'}")


def _is_backfilled(runs: Mapping[str, str]) -> bool:
    """Return whether the run of the backfill is there and succeeded; a demo of an earlier version left some more."""
    return {state for run, state in runs.items() if run.startswith(_BACKFILL)} == {"success"}


def _tasks(airflow: AirflowService, sources: Mapping[str, str]) -> States:
    """Return the states of all tasks for the board."""
    return {sources[dag]: runs for dag, runs in airflow.api.task_states(sources).items()}


@contextmanager
def unpaused(airflow: AirflowService, dags: Sequence[str]) -> Iterator[None]:
    """Let DAGs run within the context. Afterwards those that were paused are paused again.

    ``make up`` uses the same Airflow, and would start a scheduled run of each DAG that is left unpaused.
    """
    paused = airflow.wait_dags(dags)
    try:
        yield
    finally:
        with suppress(RetriableLakeError):  # an Airflow that ended: the error of the demo says why
            for dag in sorted(paused):
                airflow.api.pause(dag)
