"""What commands share: exit statuses, arguments, and running stages with their reports."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from types import MappingProxyType
from typing import Annotated, Any, ParamSpec

import typer

from tidemark.cli.printing import tell
from tidemark.errors import ConfigurationError, RetriableLakeError, TidemarkError
from tidemark.sources.files import find_source
from tidemark.stages import StageReport
from tidemark.text import first_line, harmless
from tidemark.values.iso8601 import moment

P = ParamSpec("P")

SourceName = Annotated[str, typer.Argument(metavar="SOURCE", help="Name of a source (a file in include/sources).")]

Start = Annotated[str | None, typer.Option(help="Start of the interval, ISO 8601, UTC unless it has an offset.")]

End = Annotated[str | None, typer.Option(help="End of the interval; it is not part of the interval.")]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]


def exits(command: Callable[P, None]) -> Callable[P, None]:
    """Return a command that turns errors into exit statuses.

    An unexpected error ends with status 3 and a traceback. Python's own status for it would be 1, which means that
    data was held back.
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except TidemarkError as error:
            tell(f"{type(error).__name__}: {error}")
            raise typer.Exit(error.exit_status) from error
        except BrokenPipeError:  # the reader closed the pipe (| head); Python would raise this again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            from tidemark.pipeline import STORE_ERRORS

            if isinstance(error, STORE_ERRORS):
                tell(f"RetriableLakeError: the store or the engine failed: {first_line(error)}")
            else:
                traceback.print_exception(error)
            raise typer.Exit(RetriableLakeError.exit_status) from error

    return run


def interval(start: str | None, end: str | None) -> tuple[datetime | None, datetime | None]:
    """Return the bounds of an interval that the user wrote.

    Raises:
        ConfigurationError: a bound is no moment, or the interval ends before it starts.
    """
    bounds = moment(start), moment(end)
    if bounds[0] and bounds[1] and bounds[0] >= bounds[1]:
        raise ConfigurationError(f"the interval ends ({end}) before it starts ({start})")
    return bounds


def run_stages(
    stages: Sequence[str],
    name: str,
    start: str | None = None,
    end: str | None = None,
    *,
    rehearsed: bool = False,
    arguments: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> None:
    """Run stages of one source, print their reports, and exit with status 1 if data was held back.

    Args:
        stages: names of the stages, in order.
        name: name of the source.
        start: start of the interval, as the user wrote it.
        end: end of the interval, as the user wrote it.
        rehearsed: only show what reprocessing would change.
        arguments: stage -> arguments for that stage alone.

    Raises:
        ConfigurationError: the interval ends before it starts.
    """
    from tidemark.lake import locks
    from tidemark.pipeline import rehearse, run_stage

    bounds = interval(start, end)
    source = find_source(name)
    if rehearsed:
        for report in rehearse(stages, source, *bounds):
            print_report(report)
            for problem in report.problems:
                tell(f"would be held back: {problem}")
        return
    problems: dict[str, None] = {}
    with locks.hold(source.source):
        for stage in stages:
            report = run_stage(stage, source, *bounds, **arguments.get(stage, {}))
            print_report(report)
            problems.update(dict.fromkeys(report.problems))
            if report.has_problems and stage == "check":
                break  # publish would refuse
    for problem in problems:
        tell(f"held back: {problem}")
    if problems:
        raise typer.Exit(1)


def print_report(report: StageReport) -> None:
    """Print what a stage did: its summary in one line, then one line for each table; remarks to standard error."""
    words = " ".join(f"{name}={value}" for name, value in report.summary.items())
    typer.echo(f"{report.source} {report.stage}: {words}")
    for table, counts in report.details.items():
        typer.echo(f"  {harmless(table)}: " + " ".join(f"{name}={value}" for name, value in counts.items()))
    for remark in report.remarks:
        tell(f"note: {remark}")
