"""What commands share: exit statuses, arguments, and running stages with their reports."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial, wraps
from types import MappingProxyType
from typing import Annotated, Any, ParamSpec

import typer
from rich.text import Text

from tidemark import formats
from tidemark.cli.layout import Group, TextColumn, folded
from tidemark.cli.pipes import UNREAD, drop_unread, outlasting_readers, unread
from tidemark.cli.printing import print_groups, print_lines, print_words, tell, width
from tidemark.cli.progress import so_far, under_way
from tidemark.errors import RetriableLakeError, TidemarkError
from tidemark.sources.files import default_folder, find_source, read_sources
from tidemark.sources.model import Source
from tidemark.stages import STAGES, StageReport
from tidemark.text import harmless
from tidemark.values.iso8601 import interval_between

P = ParamSpec("P")


def source_names(incomplete: str) -> list[str]:
    """Return the names of sources that begin with ``incomplete``, for the shell."""
    return [source.source for source in read_sources(default_folder())[0] if source.source.startswith(incomplete)]


def format_names(incomplete: str) -> list[str]:
    """Return the names of formats that begin with ``incomplete``, for the shell."""
    return [name for name in formats.names() if name.startswith(incomplete)]


SourceName = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", help="Name of a source: a file in the folder of source files.", autocompletion=source_names
    ),
]

FormatName = Annotated[
    str,
    typer.Argument(
        metavar="FORMAT", help="Name of a format, as `tidemark formats` lists.", autocompletion=format_names
    ),
]

Start = Annotated[str | None, typer.Option(help="Start of the interval, ISO 8601, UTC unless it has an offset.")]

End = Annotated[str | None, typer.Option(help="End of the interval; it is not part of the interval.")]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]


def exits(command: Callable[P, None]) -> Callable[P, None]:
    """Return a command that turns errors into exit statuses.

    An unexpected error ends with status 3 and a traceback. Python's own status for it would be 1, which means that
    data was held back. If nobody reads what the command prints, it ends with status 141.
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            _end(partial(command, *args, **kwargs))
        except BrokenPipeError as error:
            drop_unread()
            raise typer.Exit(UNREAD) from error

    return run


def _end(command: Callable[[], None]) -> None:
    """Run a command to its end, and its output to the reader; errors become exit statuses, but a pipe that is unread.

    Raises:
        BrokenPipeError: nobody reads what the command prints.
    """
    try:
        command()
    except TidemarkError as error:
        tell(f"{type(error).__name__}: {error}")
        raise typer.Exit(error.exit_status) from error
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        if isinstance(error, BrokenPipeError) and unread():  # else it is a pipe to the store
            raise
        from tidemark.pipeline import as_tidemark_error, store_errors

        if isinstance(error, store_errors()):
            failure = as_tidemark_error(error, "the command failed")
            tell(f"{type(failure).__name__}: {failure}")
            raise typer.Exit(failure.exit_status) from error
        traceback.print_exception(error)
        raise typer.Exit(RetriableLakeError.exit_status) from error
    finally:
        sys.stdout.flush()


def works(command: Callable[P, None]) -> Callable[P, None]:
    """Return a command as ``exits`` does, which also goes on and has its own exit status if nobody reads its output.

    It is for commands that change something: ``tidemark run erp | head -1`` must not end after a stage.
    """
    ended = exits(command)

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with outlasting_readers():
            ended(*args, **kwargs)

    return run


def _require_lake(source: Source, bounds: tuple[datetime | None, datetime | None], *, lands: bool) -> None:
    """Check that there is a lake, or that stages which land files may find one to land.

    Raises:
        ConfigurationError: there is no lake, and nothing lands or the landing path has a part that does not exist.
    """
    from tidemark.lake.catalog import lacks_embedded
    from tidemark.lake.lake import Lake
    from tidemark.queries.pending_files import nothing_new, pending

    if not lands:
        Lake.existing()
    elif lacks_embedded() and not (files := pending(source, None, 0, *bounds)).fresh:
        nothing_new(source, files, *bounds)


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
        ConfigurationError: the interval ends before it starts, or there is no lake to work on.
    """
    from tidemark.ledger import writing
    from tidemark.pipeline import published_cut, rehearse, turns

    bounds = interval_between(start, end)
    source = find_source(name)
    _require_lake(source, bounds, lands=stages[0] == "land" and not rehearsed)
    if rehearsed:
        with under_way(f"{source.source} rehearsal of {', '.join(stages)}"):
            rehearsal = rehearse(stages, source, *bounds)
        _print_rehearsal(rehearsal)
        return
    reports: list[StageReport] = []
    idle: list[str] = []
    with writing.hold(source.source):
        before = published_cut(source) if "publish" in stages else 0
        for turn in turns(stages, source, *bounds, options=arguments):
            with under_way(so_far(source.source, turn.stage, reports)) as clock:
                report = turn.run()
            if turn.stage == "publish" and report.summary.get("cut", 0) == before:
                _print_unmoved(report, before, reports, idle)
                idle = []
            elif turn.stage in STAGES and _is_idle(report) and len(stages) > 1:
                idle += report.remarks
            else:
                print_report(report, took=clock.seconds)
            reports.append(report)
    for remark in idle:
        tell(f"note: {remark}")
    problems = dict.fromkeys(problem for report in reports for problem in report.problems)
    for problem in problems:
        tell(f"held back: {problem}")
    if problems:
        raise typer.Exit(1)


def _print_rehearsal(reports: Sequence[StageReport]) -> None:
    for report in reports:
        print_report(report)
        for problem in report.problems:
            tell(f"would be held back: {problem}")


def _print_unmoved(report: StageReport, cut: int, earlier: Sequence[StageReport], idle: Sequence[str]) -> None:
    """Print in one line that publish moved no table, why, and which cut readers see as before (0: none).

    Args:
        report: of publish.
        cut: the cut that stands.
        earlier: reports of the stages before.
        idle: remarks of those that had nothing to do.
    """
    what = "nothing new" if all(map(_is_idle, earlier)) else "no table changed"
    stands = f"cut {cut} stands" if cut else "nothing is published yet"
    line = f"{report.source}: {'; '.join(map(harmless, idle)) or what}; {stands}"
    print_lines([Text(part) for part in folded(line, width(), indent=4)])
    tell_remarks(report)


def _is_idle(report: StageReport) -> bool:
    """Return whether a stage found nothing to do."""
    return not report.problems and not any(value for name, value in report.summary.items() if name != "batch")


def print_report(report: StageReport, *, with_details: bool = True, took: float | None = None) -> None:
    """Print what a stage did: its summary in one line, then one line for each table; remarks to standard error.

    A terminal also gets the seconds that it took.
    """
    words = [f"{name}={harmless(str(value))}" for name, value in report.summary.items()]
    words += [f"({took:.0f} s)"] if took is not None and width() is not None else []
    words.sort(key=lambda word: "/" in word)  # a path may be longer than a line, so it comes last
    print_words(f"{report.source} {report.stage}:", words)
    if report.details and with_details:
        print_groups(*_table_of(report.details), indented=True)
    tell_remarks(report)


def tell_remarks(report: StageReport) -> None:
    """Print the remarks of a report to standard error."""
    for remark in report.remarks:
        tell(f"note: {remark}")


def _table_of(details: Mapping[str, Mapping[str, int | str]]) -> tuple[list[TextColumn], list[Group]]:
    names = dict.fromkeys(name for counts in details.values() for name in counts)
    numbers = {name for name in names if not any(isinstance(counts.get(name), str) for counts in details.values())}
    said = any(value for counts in details.values() for value in counts.values())
    columns = [
        TextColumn(name=name, number=name in numbers, optional=said, is_state=name not in numbers) for name in names
    ]
    rows = [[table, *(str(counts.get(name, "")) for name in names)] for table, counts in details.items()]
    return [TextColumn(name="table"), *columns], [Group(rows=rows)]
