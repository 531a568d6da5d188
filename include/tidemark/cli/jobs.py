"""The entry point that ``jobs/`` call: one stage as a Spark application, with arguments from Airflow."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tidemark.cli.logs import configure_logging
from tidemark.cli.printing import tell
from tidemark.cli.running import End, SourceName, Start, print_report, works
from tidemark.errors import TidemarkError
from tidemark.sources.files import find_source
from tidemark.stages import PROBLEMS_VARIABLE
from tidemark.values.iso8601 import interval_between


def job(stage: str) -> None:
    """Run one stage as a Spark job, with the arguments of the process.

    The arguments are ``SOURCE [--start T] [--end T]`` and the stage's own options. The process ends with the stage's
    exit status. A refused file or a stopped table does not fail land, normalize or compact, so that the other tables
    are still published. Publish reports it again and fails.
    """
    configure_logging()

    def command(
        source: SourceName,
        start: Start = None,
        end: End = None,
        table: Annotated[str | None, typer.Option(help="Only this table.")] = None,
        reason: Annotated[str | None, typer.Option(help="Only messages set aside for this reason.")] = None,
        cut: Annotated[int | None, typer.Option(help="This cut.")] = None,
        approve: Annotated[int | None, typer.Option(help="Publish this cut, although it deletes many rows.")] = None,
        *,
        reprocess: Annotated[bool | None, typer.Option("--reprocess", help="Decode the interval again.")] = None,
        dry_run: Annotated[bool | None, typer.Option("--dry-run", help="Show what reprocessing would change.")] = None,
    ) -> None:
        from tidemark.pipeline import HOLDING, run_task

        options: dict[str, Any] = {
            "table": table,
            "reason": reason,
            "cut": cut,
            "approve": approve,
            "reprocess": reprocess,
            "dry_run": dry_run,
        }
        try:
            report = run_task(stage, find_source(source), *interval_between(start, end), **options)
        except TidemarkError as error:
            _leave([f"{type(error).__name__}: {error}"])
            raise
        _leave(report.problems)
        print_report(report)
        for problem in report.problems:
            tell(f"held back: {problem}")
        if report.has_problems and stage in HOLDING:
            raise typer.Exit(1)

    typer.run(works(command))


def _leave(problems: Sequence[str]) -> None:
    """Leave problems where the task that submitted this job looks for them."""
    if place := os.environ.get(PROBLEMS_VARIABLE):
        Path(place).write_text(json.dumps(list(problems)), encoding="utf-8")
